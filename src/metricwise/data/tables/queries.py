"""Queries of databases, and DuckDB relations, as tables that are read in batches.

Only the columns that are needed leave the database. Rows come as Arrow batches where the driver has them, otherwise
as tuples, some at a time. Must not know which column is what. No driver is imported: connections are recognised by
the module of their type.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from inspect import iscoroutinefunction
from numbers import Number
from typing import Any, Protocol

from ...core.cached import cached_property
from ...core.errors import InvalidParameter, InvalidType, entry_point, shown
from ..columns import few
from .formats import arrow
from .query_counts import Statement, head_statement, quoted
from .reading import TableReader, check_distinct, closed

__all__ = ["Query", "Relation", "is_relation"]

_HEAD_ROWS = 16  # that say what a row takes
_MAX_ANSWERS = 1 << 16  # rows of an answer that are fetched at a time
_ROWS_NAME = "metricwise_rows"  # of the query within those that are run
_INTERRUPTED = "Query interrupted"  # what DuckDB raises as an error in place of KeyboardInterrupt
_SERVER_CURSORS = ("psycopg", "psycopg2")  # drivers whose cursors fetch all rows at once, unless they have a name


class Query(TableReader):
    """The rows of a query of a database, wherever a :class:`Table` may be.

    Columns have names as in a table: ``mw.optimize(mw.Query(connection, "SELECT * FROM oof"), "grade", "macro_f1")``.
    Only the columns that are needed are selected, and at most some batches of rows are in memory at a time.

    Parameters
    ----------
    connection : connection of DuckDB, ADBC or DB-API
        An open connection, which is used whenever rows are read and never closed. Of PostgreSQL, ADBC's
        (``adbc_driver_postgresql``) sends Arrow batches; psycopg reads through a cursor of the server.
    query : str
        One SELECT statement in the SQL of the database. Columns that are computed need names.
    copy : bool, optional
        Whether rows are written to a temporary file when they are read first, from which they are read in later passes.
        Then all passes see the same rows in the same order, whatever else is written to the database; for other rows,
        make another `Query`. False: the query is run in every pass; it must give the same rows in the same order, so
        end it with ORDER BY where the database promises none. Then PostgreSQL checks, counts and samples rows of one
        output within the database, in any order, and hardly ever sends all of them. By default rows are copied, except
        those of DuckDB, which reads as fast as files.

    See Also
    --------
    metricwise.Table : Options of tables, with a query as data: ``mw.Table(mw.Query(...), proba_prefix="p_")``.
    metricwise.predict_table : Apply a rule to the rows of a query.
    metricwise.export.to_sql : A rule as an expression, which decides rows within the database.

    Examples
    --------
    >>> import sqlite3
    >>> import metricwise as mw
    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute("CREATE TABLE oof (no REAL, yes REAL, bought TEXT)")
    >>> rows = [(0.7, 0.3, "no"), (0.2, 0.8, "yes"), (0.4, 0.6, "yes")]
    >>> _ = connection.executemany("INSERT INTO oof VALUES (?, ?, ?)", rows)
    >>> query = mw.Query(connection, "SELECT * FROM oof")
    >>> query.names
    ('no', 'yes', 'bought')
    >>> mw.optimize(query, "bought", "accuracy", strategy=mw.Strategy(confusion="labels", recalibrate=False)).value
    1.0
    >>> connection.close()
    """

    title = "the query"

    @entry_point("{class}")
    def __init__(self, connection: Any, query: str, *, copy: bool | None = None) -> None:
        if not isinstance(query, str):
            raise InvalidType("query", "be the text of a SELECT statement", shown(query))
        if copy is not None and not isinstance(copy, bool):
            raise InvalidType("copy", "be True, False or None", shown(copy))
        self._driver = _driver(connection)
        self._text = query.strip().rstrip(";")
        self.lasting = not isinstance(self._driver, _DuckDB) if copy is None else copy
        self._copies: list[_Copy] = []
        try:
            self.names = check_distinct(self._driver.names(self._select("*") + " WHERE 1 = 0"), self.title)
        except InvalidParameter:
            raise
        except Exception as error:  # of any driver
            raise InvalidParameter(
                "query", f"be a SELECT statement that {self._driver.title} can run", _sentence(error)
            ) from None

    def _select(self, columns: str) -> str:
        return f"SELECT {columns} FROM {self.rows}"

    def scan(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        """Yield record batches, of the copy if there is one."""
        copy = next((copy for copy in self._copies if copy.serves(columns)), None)
        if copy is not None:
            return copy.scan(columns)
        text = self._select(", ".join(map(quoted, columns)))
        batches = _guarded(self.title, self._driver.batches(text, columns, n_rows))
        return self._copied(columns, batches) if self.lasting else batches

    @property
    def counts(self) -> bool:
        """Whether rows are checked, counted and sampled within the database, as far as its SQL is known to do so."""
        with _one_error(self.title):
            return not self.lasting and self._driver.counts

    def answers(self, statement: Statement) -> Iterator[Any]:
        """Yield record batches of what a statement about :attr:`rows` selects: counts, or a sample."""
        return _guarded(self.title, self._driver.answers(statement.text, statement.columns))

    def head(self, columns: Mapping[str, bool], n_rows: int) -> Any:
        """Return about `n_rows` of the first rows, as an Arrow table."""
        if not self.counts:
            return super().head(columns, n_rows)
        self.check(columns)
        return arrow().Table.from_batches(list(self.answers(head_statement(self.rows, columns, _HEAD_ROWS))))

    @property
    def rows(self) -> str:
        """The query as a subquery."""
        return f"(\n{self._text}\n) {_ROWS_NAME}"

    def _copied(self, columns: Mapping[str, bool], batches: Iterator[Any]) -> Iterator[Any]:
        """Write batches as they go by; they are a copy once all have."""
        draft = _Copy(dict(columns))
        with closed(batches):
            for batch in batches:
                draft.write(batch)
                yield batch
        draft.finish()
        if self._copies and self._copies[0].n_rows != draft.n_rows:
            raise RuntimeError(
                f"{self.title}: the number of rows must not change, got {self._copies[0].n_rows} at first and "
                f"{draft.n_rows} when other columns were read; for other rows, make another Query."
            )
        self._copies.append(draft)


class Relation(TableReader):
    """A DuckDB relation, which is run in every pass."""

    title = "the relation"

    def __init__(self, data: Any) -> None:
        self._data, self.names = data, check_distinct(data.columns, self.title)

    def scan(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        some = ", ".join(map(quoted, columns))
        return _guarded(self.title, self._batches(some, n_rows))

    def _batches(self, columns: str, n_rows: int) -> Iterator[Any]:
        with _arrow_reader(self._data.project(columns), n_rows) as reader:
            yield from reader


def is_relation(data: Any) -> bool:
    """Whether data are a DuckDB relation."""
    return _library(data) == "duckdb" and hasattr(data, "project")


def _library(value: Any) -> str:
    """Return the package that the type of a value is of; compiled modules have a name of their own."""
    return type(value).__module__.partition(".")[0].lstrip("_")


def _sentence(error: Exception) -> str:
    """Return the first line of the error of a driver."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".")


@contextmanager
def _one_error(title: str) -> Iterator[None]:
    """Say in one sentence that a database failed, whatever its driver raises."""
    try:
        yield
    except InvalidParameter:
        raise
    except Exception as error:  # of any driver
        if str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from None
        raise RuntimeError(
            f"{title}: the database failed while rows were read: {_sentence(error)}; call again with an open "
            "connection, and a query that it runs to its end."
        ) from None


def _guarded(title: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches; what their driver raises becomes a sentence."""
    with closed(batches):
        while True:
            with _one_error(title):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


# -------------------------------------------------------------------------------------------------------------- copies


class _Copy:
    """Columns of all rows in a temporary file, which is removed with it."""

    def __init__(self, columns: Mapping[str, bool]) -> None:
        self._columns, self.n_rows = columns, 0
        handle, self._path = tempfile.mkstemp(suffix=".arrow", prefix="metricwise_")
        os.close(handle)
        self._remove = weakref.finalize(self, _remove, self._path)
        self._writer: Any = None

    def serves(self, columns: Mapping[str, bool]) -> bool:
        """Whether some columns are in it, read as they are to be."""
        return columns.items() <= self._columns.items()

    def write(self, batch: Any) -> None:
        try:
            if self._writer is None:
                self._writer = arrow().ipc.new_file(self._path, batch.schema)
            self._writer.write_batch(batch)
            self.n_rows += batch.num_rows
        except OSError as error:
            raise RuntimeError(
                f"The rows of the query cannot be copied to {self._path}: {_sentence(error)}; set copy=False, or "
                "TMPDIR to a folder with more room."
            ) from None

    def finish(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def scan(self, columns: Mapping[str, bool]) -> Iterator[Any]:
        if self._writer is None:  # there are no rows
            return
        with arrow().OSFile(self._path) as file:
            names = list(columns)
            places = sorted(list(self._columns).index(name) for name in names)
            options = arrow().ipc.IpcReadOptions(included_fields=places)
            with arrow().ipc.open_file(file, options=options) as reader:
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number).select(names)


def _remove(path: str) -> None:
    if os.path.exists(path):  # noqa: PTH110  # at exit, when modules may be gone
        os.unlink(path)  # noqa: PTH108


# ------------------------------------------------------------------------------------------------------------- drivers


class _Driver(Protocol):
    """How a connection is asked; `counts`: whether rows are counted in SQL."""

    title: str

    @property
    def counts(self) -> bool: ...

    def names(self, text: str) -> Sequence[str]:
        """Return the names of the columns of a query without rows."""
        ...

    def batches(self, text: str, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        """Yield the record batches of a query of these columns."""
        ...

    def answers(self, text: str, columns: Mapping[str, bool]) -> Iterator[Any]:
        """Yield the record batches of a query with few rows."""
        ...


def _driver(connection: Any) -> _Driver:
    library = _library(connection)
    if library == "duckdb" and hasattr(connection, "execute"):
        return _DuckDB(connection)
    is_async = iscoroutinefunction(getattr(connection, "commit", None))
    if library == "sqlalchemy" or is_async or not callable(getattr(connection, "cursor", None)):
        remedies = {"sqlalchemy": "of SQLAlchemy, pass engine.raw_connection().driver_connection"}
        raise InvalidType(
            "connection",
            "be an open connection of DuckDB, ADBC or DB-API",
            type(connection).__name__ if is_async else shown(connection),
            "pass one that is not asynchronous" if is_async else remedies.get(library, ""),
        )
    return _Adbc(connection) if library == "adbc_driver_manager" else _DbApi(connection, library)


def _arrow_reader(result: Any, n_rows: int) -> Any:
    """Return the stream of a DuckDB relation; its name has changed."""
    read = result.to_arrow_reader if hasattr(result, "to_arrow_reader") else result.fetch_arrow_reader
    return read(n_rows)


def _has_hash(connection: Any) -> bool:
    """Whether a server that speaks PostgreSQL's protocol has the hash that samples are drawn by."""
    with closing(connection.cursor()) as cursor:
        cursor.execute("SELECT COUNT(*) FROM pg_catalog.pg_proc WHERE proname = 'hashint8extended'")
        return bool(_tuples(cursor.fetchmany(1))[0][0])


class _DuckDB:
    """A connection of DuckDB, which is in this process and has Arrow batches."""

    title = "DuckDB"
    counts = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def names(self, text: str) -> Sequence[str]:
        return list(self._connection.sql(text).columns)

    def batches(self, text: str, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        with _arrow_reader(self._connection.sql(text), n_rows) as reader:
            yield from reader

    def answers(self, text: str, columns: Mapping[str, bool]) -> Iterator[Any]:
        yield from self.batches(text, columns, _MAX_ANSWERS)


class _Adbc:
    """A connection of ADBC, which has Arrow batches of its own size."""

    title = "the database"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @cached_property
    def counts(self) -> bool:
        is_postgres = self._connection.adbc_get_info().get("vendor_name") == "PostgreSQL"
        return is_postgres and _has_hash(self._connection)

    def names(self, text: str) -> Sequence[str]:
        with self._connection.cursor() as cursor:
            cursor.execute(text)
            return list(cursor.fetch_record_batch().schema.names)

    def batches(self, text: str, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(text)
            with cursor.fetch_record_batch() as reader:
                yield from reader

    def answers(self, text: str, columns: Mapping[str, bool]) -> Iterator[Any]:
        yield from self.batches(text, columns, _MAX_ANSWERS)


class _DbApi:
    """A connection of DB-API, which has rows as tuples."""

    title = "the database"

    def __init__(self, connection: Any, library: str) -> None:
        self._connection, self._library = connection, library
        self._types: dict[tuple[str, bool], Any] = {}

    @cached_property
    def counts(self) -> bool:
        return self._library in _SERVER_CURSORS and _has_hash(self._connection)

    def names(self, text: str) -> Sequence[str]:
        with self._transaction(), closing(self._connection.cursor()) as cursor:
            cursor.execute(text)
            return [column[0] for column in cursor.description]

    def batches(self, text: str, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        with self._transaction():
            yield from self._fetched(self._cursor(), text, columns, n_rows)

    def answers(self, text: str, columns: Mapping[str, bool]) -> Iterator[Any]:
        """Not through a cursor of the server, for which PostgreSQL does not run queries in parallel."""
        options = {"binary": True} if self._library == "psycopg" else {}  # texts may be rounded: extra_float_digits
        with self._transaction():
            yield from self._fetched(self._connection.cursor(**options), text, columns, _MAX_ANSWERS)

    def _fetched(self, cursor: Any, text: str, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        try:
            cursor.execute(text)
            while rows := cursor.fetchmany(n_rows):
                yield self._batch(_tuples(rows), columns, cursor.description, text)
        finally:
            cursor.close()

    def _transaction(self) -> Any:
        """Return a context in which psycopg leaves a transaction as it was if a statement fails or is interrupted.

        Cursors of the server need a transaction. One that the user has begun gets a savepoint.
        """
        if self._library != "psycopg":
            return nullcontext()
        is_idle = self._connection.info.transaction_status.name == "IDLE"
        return (
            _begun(self._connection) if is_idle and not self._connection.autocommit else self._connection.transaction()
        )

    def _cursor(self) -> Any:
        if self._library == "psycopg":
            return self._connection.cursor(name=_ROWS_NAME, binary=True)
        if self._library in _SERVER_CURSORS:
            return self._connection.cursor(name=_ROWS_NAME, withhold=self._connection.autocommit)
        return self._connection.cursor()

    def _batch(self, rows: Sequence[Any], columns: Mapping[str, bool], description: Any, text: str) -> Any:
        """Return rows as a record batch, with the types that columns had in the first."""
        arrays = []
        for (name, number), values, column in zip(columns.items(), zip(*rows, strict=True), description, strict=True):
            if (name, number) not in self._types:
                kind = self._declared(column[1], number)
                if kind is None and all(value is None for value in values):
                    values_of_type = self._first_value(name, text)
                    kind = _array(name, values_of_type, None, number).type
                self._types[name, number] = _array(name, values, kind, number).type
            arrays.append(_array(name, values, self._types[name, number], number))
        return arrow().record_batch(arrays, list(columns))

    def _first_value(self, name: str, text: str) -> list[Any]:
        """Return a value of a column that is not missing, if there is one."""
        cursor = self._connection.cursor()
        try:
            cursor.execute(
                f"SELECT {quoted(name)} FROM (\n{text}\n) metricwise_column WHERE {quoted(name)} IS NOT NULL"
            )
            return [row[0] for row in _tuples(cursor.fetchmany(1))]
        finally:
            cursor.close()

    def _declared(self, code: Any, number: bool) -> Any:
        """Return the type of a column as the driver has it, None where it shows by its values."""
        pa = arrow()
        known = _postgres_types(pa).get(code) if self._library in _SERVER_CURSORS else None
        if number:
            return known if known == pa.float32() else pa.float64()
        return known


@contextmanager
def _begun(connection: Any) -> Iterator[None]:
    """Roll back the transaction that a statement begins if it does not succeed."""
    try:
        yield
    except GeneratorExit:  # no more rows are needed
        raise
    except BaseException:
        with suppress(Exception):  # the connection may be lost
            connection.rollback()
        raise


def _postgres_types(pa: Any) -> dict[Any, Any]:
    """Types of Arrow by the number of PostgreSQL's."""
    texts = dict.fromkeys((25, 1042, 1043), pa.string())
    times = {1082: pa.date32(), 1114: pa.timestamp("us"), 1184: pa.timestamp("us", "UTC")}
    return {
        **texts, **times, 16: pa.bool_(), 20: pa.int64(), 21: pa.int16(), 23: pa.int32(),
        700: pa.float32(), 701: pa.float64(),
    }  # fmt: skip


def _tuples(rows: Sequence[Any]) -> Sequence[Any]:
    """Return rows as tuples, which a connection may have as mappings from the names of columns."""
    if rows and isinstance(rows[0], Mapping):
        return [tuple(row.values()) for row in rows]
    if rows and (isinstance(rows[0], (str, bytes)) or not isinstance(rows[0], Iterable)):
        raise InvalidParameter(
            "connection",
            "have rows that are tuples or mappings",
            type(rows[0]).__name__,
            "open one without a factory of rows",
            owner="Query",
        )
    return rows


def _array(name: str, values: Sequence[Any], kind: Any, number: bool) -> Any:
    """Return values of a column as an array of a type; None: the type that shows."""
    pa = arrow()
    if number:
        wrong = [value for value in values if not (value is None or _is_number(value))]
        if wrong:
            problem = f"the column {shown(name)} must hold numbers, got {shown(wrong[0])}"
            raise InvalidParameter("", problem=problem, owner=Query.title)
        return pa.array([None if value is None else float(value) for value in values], kind)
    try:
        if kind is not None and pa.types.is_integer(kind) and any(isinstance(value, float) for value in values):
            raise TypeError  # pyarrow would cut off their decimals
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError):
        kinds = sorted({type(value).__name__ for value in values if value is not None})
        raise InvalidParameter(
            "",
            problem=f"the column {shown(name)} must hold values of one type, got {few(kinds)}"
            + ("" if kind is None else f" after {kind}"),
            remedy="convert it in the query, by CAST",
            owner=Query.title,
        ) from None


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool)
