"""Tables of named columns: one reader for files, datasets, queries and data frames.

Small tables are read whole (`read`), large ones batch by batch in every pass (`batches`), by the same `TableReader`.
An engine with columns is a subclass, which `Table` takes as data. Must not know which column is what.
"""

from __future__ import annotations

import glob
import io
import os
import sys
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidParameter, InvalidType, argument, entry_point, shown
from ...core.label_rows import MAX_LABELS
from ..columns import few, labels_of_texts
from .formats import STANDARD_STREAM, Csv, FileFormat, arrow, file_format, scan_dataset

__all__ = [
    "MEMORY_LIMIT",
    "Arrays",
    "Table",
    "TableReader",
    "batch_rows",
    "check_distinct",
    "check_labels",
    "check_numbers",
    "closed",
    "open_file",
    "open_table",
]

T = TypeVar("T")

MEMORY_LIMIT = 1 << 28
_MIN_MEMORY_LIMIT = 1 << 20
_HELD_BATCHES = 12  # batches, and arrays made of them, that are in memory at a time: four threads count
_MIN_BATCH, _MAX_BATCH = 1 << 12, 1 << 20  # rows


@dataclass(frozen=True, eq=False)
class Table:
    """A table that is read in batches, once in every pass over the rows.

    Parameters
    ----------
    data : str, path, list of paths, pyarrow.dataset.Dataset, polars.LazyFrame, Query, or object with Arrow's C stream
    interface
        A file, a folder, or a pattern such as ``"oof/*.parquet"``, of Parquet, Feather or CSV files; a dataset or a
        query; a DuckDB relation, or the query of a database (:class:`metricwise.Query`); or a data frame of any
        library. A data frame of Spark is only for :func:`metricwise.optimize`.
    proba_prefix : str, optional
        Prefix of the names of the columns of probabilities. By default, these must be named like the classes, with any
        common prefix, or ``<output>=<class>``.
    proba : str or list of str, optional
        The column with the probability of the positive class of a binary output, one per output. Of a data frame of
        Spark, a column of arrays or vectors has the probabilities of all classes.
    separator : str, optional
        Separator of CSV files; by default a comma, or a tab for .tsv.
    memory_limit : int, default=268435456
        Maximum number of bytes of the table to hold in memory at a time.
    indices, values : str, optional
        For very many labels: two columns of lists, such as list<int32> and list<float> of Parquet. A row has the
        numbers of the labels that it stores, from 0, and their probabilities, logits or scores; labels that it does
        not store have probability 0. The column y is a list of the numbers of the true labels. All stored entries are
        read into memory.
    n_labels : int, optional
        Number of labels, with `indices`; needed to fit a rule.

    See Also
    --------
    metricwise.optimize : Optimise a rule on the table, with the name of the column of labels as y.
    metricwise.predict_table : Apply a rule to a table.

    Examples
    --------
    >>> import metricwise as mw
    >>> import pyarrow as pa
    >>> frame = pa.table({"p_no": [0.7, 0.2, 0.4], "p_yes": [0.3, 0.8, 0.6], "bought": ["no", "yes", "yes"]})
    >>> table = mw.Table(frame, proba_prefix="p_")
    >>> mw.optimize(table, "bought", "accuracy", strategy=mw.Strategy(confusion="labels", recalibrate=False)).value
    1.0

    Rows that store two of 1,000 labels each:

    >>> stored = {"label": [[3, 17], [3, 999], [17, 500]], "p": [[0.9, 0.2], [0.1, 0.8], [0.7, 0.6]]}
    >>> frame = pa.table({**stored, "true": [[3], [999], [17]]})
    >>> table = mw.Table(frame, indices="label", values="p", n_labels=1_000)
    >>> mw.optimize(table, "true", "precision@1").value
    1.0
    """

    data: Any
    proba_prefix: str | None = None
    proba: str | Sequence[str] | None = None
    separator: str | None = None
    memory_limit: int = MEMORY_LIMIT
    indices: str | None = None
    values: str | None = None
    n_labels: int | None = None

    @entry_point("{class}")
    def __post_init__(self) -> None:
        self._check_lists()
        limit: Any = self.memory_limit
        if not isinstance(limit, int) or limit < _MIN_MEMORY_LIMIT:
            raise InvalidParameter(
                "memory_limit", f"be a number of bytes of at least {_MIN_MEMORY_LIMIT}", shown(limit)
            )

    def _check_lists(self) -> None:
        """Refuse names of columns of lists that do not go together."""
        for name, other in (("indices", "values"), ("values", "indices")):
            value: Any = getattr(self, name)
            if value is None and getattr(self, other) is not None:
                raise InvalidParameter(
                    f"Table.{name}",
                    problem=f"{argument(f'Table.{other}')} needs {argument(f'Table.{name}')}, which is not given",
                    remedy="name a column of labels and one of their probabilities",
                )
            if value is not None and not isinstance(value, str):
                raise InvalidType(name, "be the name of a column of lists", shown(value))
        if self.indices is None:
            if self.n_labels is not None:
                raise InvalidParameter(
                    "Table.n_labels",
                    problem=f"{argument('Table.n_labels')} needs {argument('Table.indices')}, which is not given",
                    remedy="leave it out for a table with a column for each label",
                )
            return
        for name in ("proba", "proba_prefix"):
            if getattr(self, name) is not None:
                raise InvalidParameter(
                    f"Table.{name}",
                    problem=f"{argument(f'Table.{name}')} must be left out with {argument('Table.indices')}",
                    remedy=f"{argument('Table.values')} names the column of probabilities",
                )
        count: Any = self.n_labels
        if count is not None and (
            not isinstance(count, (int, np.integer)) or isinstance(count, bool) or not 1 <= count <= MAX_LABELS
        ):
            raise InvalidParameter("n_labels", f"be a whole number from 1 to {MAX_LABELS:,}", shown(count))


class TableReader(ABC):
    """Columns of a table, whole or batch by batch. Subclasses set `title` and `names`, and implement `scan`.

    Attributes
    ----------
    title : str
        Name in messages.
    names : tuple of str
    has_texts : bool
        Whether all columns are text until they are read as numbers or labels.
    lasting : bool
        Whether it is noticed if a later pass has other rows.

    See Also
    --------
    metricwise.Table : Takes a reader as data.
    """

    title: str
    names: tuple[str, ...]
    has_texts: bool = False
    lasting: bool = False

    @abstractmethod
    def scan(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        """Yield record batches of any size, in the same order in every pass; see `batches`."""

    def batches(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        """Yield Arrow tables of about `n_rows` rows, in the same order in every pass.

        Parameters
        ----------
        columns : mapping of str to bool
            Names, and whether a column of text is to be read as numbers.
        n_rows : int
        """
        self.check(columns)
        pa = arrow()
        held: list[Any] = []
        with closed(self.scan(columns, n_rows)) as scanned:
            for batch in scanned:
                for start in range(0, batch.num_rows, n_rows):
                    held.append(batch.slice(start, n_rows))
                    if sum(part.num_rows for part in held) > n_rows // 2:
                        yield pa.Table.from_batches(held)
                        held = []
        if held:
            yield pa.Table.from_batches(held)

    def head(self, columns: Mapping[str, bool], n_rows: int) -> Any:
        """Return about `n_rows` of the first rows, as an Arrow table."""
        with closed(self.batches(columns, n_rows)) as batches:
            for batch in batches:
                return batch
        raise RuntimeError(f"{self.title}: the number of rows must not change, got none in a later pass.")

    def check(self, names: Iterable[str]) -> None:
        """Refuse names that no column has."""
        for name in names:
            if name not in self.names:
                raise InvalidParameter(
                    "",
                    problem=f"there is no column {shown(name)}",
                    remedy=f"the columns are {few(self.names)}",
                    owner=self.title,
                )

    def read(self, names: Sequence[str]) -> Any:
        """Return whole columns as they are, as an Arrow table of at least one row."""
        self.check(names)
        batches = list(self.scan(dict.fromkeys(names, False), _MAX_BATCH))
        if not any(batch.num_rows for batch in batches):
            raise InvalidParameter("", problem="there are no rows", owner=self.title)
        return arrow().Table.from_batches(batches)

    def numbers(self, names: Sequence[str]) -> Any:
        """Return whole columns of numbers, none of which is missing, as an Arrow table."""
        table = self.read(names)
        if self.has_texts:
            table = arrow().table({name: self._parsed(name, table.column(name)) for name in names})
        return check_numbers(table, self.title, nulls=False)

    def _parsed(self, name: str, texts: Any) -> Any:
        pa = arrow()
        from pyarrow import compute

        try:
            return compute.utf8_trim_whitespace(texts).cast(pa.float64())
        except pa.ArrowInvalid as error:
            raise _not_numeric(self.title, name, texts, 0) or error from None

    def labels(self, name: str) -> Any:
        """Return a whole column of labels, as an Arrow array."""
        column = self.read([name]).column(0)
        if not self.has_texts:
            return check_labels(column, name, self.title)
        encoded = column.combine_chunks().dictionary_encode()
        encoded = encoded.combine_chunks() if hasattr(encoded, "chunks") else encoded
        encoded = encoded.chunk(0) if hasattr(encoded, "chunks") else encoded
        return arrow().array(labels_of_texts(encoded.dictionary.to_pylist())).take(encoded.indices)

    def moments(self, name: str) -> Any:
        """Return a whole column of times, numbers or dates, as an Arrow array."""
        pa, column = arrow(), self.read([name]).column(0)
        if not self.has_texts:
            return column
        for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
            try:
                return column.cast(kind)
            except pa.ArrowInvalid:
                continue
        raise InvalidParameter(
            "",
            problem=(
                f"the column {shown(name)} must hold numbers or dates such as 2024-01-31 or 2024-01-31 "
                f"12:30, got {shown(column[0].as_py())}"
            ),
            owner=self.title,
        )


@contextmanager
def closed(batches: Iterator[T]) -> Iterator[Iterator[T]]:
    """Close what batches are read from when these are no longer needed, also after an error or an interrupt.

    The traceback of an error keeps what is not closed, such as a cursor or an open result, until it is forgotten.
    """
    try:
        yield batches
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()


def check_numbers(table: Any, title: str, *, nulls: bool = True) -> Any:
    """Return an Arrow table; refuse columns of other types than numbers, and nulls unless `nulls`."""
    from pyarrow import types

    for name, column in zip(table.column_names, table.columns, strict=True):
        if not (types.is_floating(column.type) or types.is_integer(column.type) or types.is_decimal(column.type)):
            raise InvalidParameter(
                "", problem=f"the column {shown(name)} must hold numbers, got type {column.type}", owner=title
            )
        if column.null_count and not nulls:
            row = column.is_null().to_pylist().index(True)
            raise InvalidParameter(
                "",
                problem=f"the column {shown(name)} must hold a number in every row, got none in row {row}",
                owner=title,
            )
    return table


def check_labels(column: Any, name: str, title: str) -> Any:
    """Return a column of labels; refuse one of lists or other values of several parts, and of special types."""
    from pyarrow import types

    if types.is_nested(column.type):
        raise InvalidParameter(
            "",
            problem=f"the column {shown(name)} must hold one label in every row, got type {column.type}",
            remedy=f"if rows hold lists of labels, name the columns with {argument('Table.indices')} and "
            f"{argument('Table.values')}",
            owner=title,
        )
    if isinstance(column.type, arrow().BaseExtensionType):
        raise InvalidParameter(
            "",
            problem=f"the column {shown(name)} must hold text, numbers, Booleans or dates, got type {column.type}",
            remedy="convert it to text",
            owner=title,
        )
    return column


def _not_numeric(title: str, name: str, texts: Any, first_row: int) -> ValueError | None:
    """Return the error for the first text that is no number, None if all are."""
    pa = arrow()
    for row, text in enumerate(texts.to_pylist(), first_row):
        try:
            pa.scalar(None if text is None else text.strip()).cast(pa.float64())
        except pa.ArrowInvalid:
            return Csv.no_number(title, name, text, row)
    return None


def batch_rows(row_bytes: int, memory_limit: int) -> int:
    """Return how many rows are read at a time."""
    return max(_MIN_BATCH, min(_MAX_BATCH, memory_limit // (_HELD_BATCHES * max(row_bytes, 1))))


def open_table(table: Table) -> TableReader:
    """Open a table, and read the names of its columns."""
    data = table.data
    if isinstance(data, TableReader):
        return data
    if isinstance(data, arrow().RecordBatchReader):
        raise InvalidType(
            "data",
            "be readable several times",
            "a RecordBatchReader, which is exhausted after one pass",
            "pass the dataset that it reads from, or reader.read_all() if that fits in memory",
            owner="Table",
        )
    if hasattr(data, "mapInArrow"):
        raise InvalidType(
            "data",
            "be a table that this process reads",
            "a Spark data frame, which is for optimize",
            "to predict its rows, use mw.export.to_sql(rule, dialect='spark') as a column of it",
            owner="Table",
        )
    if hasattr(data, "__dask_graph__"):
        raise InvalidType(
            "data",
            "be a table that this process reads",
            "a Dask collection",
            "pass it to optimize and evaluate itself; to predict its rows, use rule.predict",
            owner="Table",
        )
    if hasattr(data, "scanner"):
        return _Dataset(data)
    if hasattr(data, "collect_batches"):
        return _Query(data)
    if hasattr(data, "__arrow_c_stream__"):
        from .queries import Relation, is_relation

        return Relation(data) if is_relation(data) else _Frame(data)
    return _Files(_paths(data), table.separator)


def open_file(path: str, separator: str | None = None, tick: Callable[[], None] = lambda: None) -> TableReader | Arrays:
    """Open one file to read whole columns of it; CSV is parsed here, once.

    Parameters
    ----------
    path : str
        "-" is CSV from the standard input.
    separator : str, optional
        Of CSV.
    tick : callable, optional
        Called as reading goes on.
    """
    kind = file_format(path, separator)
    if kind is None:
        return _read_arrays(path)
    arrow()
    return _Texts(path, kind, tick) if isinstance(kind, Csv) else _Files([path], separator)


# --------------------------------------------------------------------------------------------------------------- files


def _paths(data: Any) -> list[str]:
    """Return the files that a path, a folder, a pattern or a list of these mean, in order."""
    if isinstance(data, (list, tuple)):
        return [path for item in data for path in _paths(item)]
    if not isinstance(data, (str, os.PathLike)):
        raise InvalidType("data", "be a path, a dataset, a query or a data frame", shown(data), owner="Table")
    text = os.fspath(data)
    if Path(text).is_dir():
        files = sorted(path for path in Path(text).rglob("*") if path.is_file() and path.name[0] not in "._")
        paths = [str(path) for path in files]
    elif glob.has_magic(text) and not Path(text).exists():
        paths = sorted(path for path in glob.glob(text, recursive=True) if Path(path).is_file())  # noqa: PTH207  # of any path
    else:
        return [text]
    if not paths:
        raise InvalidParameter("", problem="there are no such files", owner=text)
    return paths


def check_distinct(names: Sequence[str], title: str) -> tuple[str, ...]:
    """Return the names of columns; refuse one that occurs twice."""
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise InvalidParameter(
            "", problem=f"the names of columns must be distinct, got {shown(twice[0])} twice", owner=title
        )
    return tuple(names)


class _Texts(TableReader):
    """CSV that is parsed once and held in memory, all columns as text."""

    has_texts = True
    lasting = True

    def __init__(self, path: str, kind: Csv, tick: Callable[[], None]) -> None:
        pa = arrow()
        from pyarrow import csv

        self.title = "standard input" if path == STANDARD_STREAM else path
        if path == STANDARD_STREAM:
            content = sys.stdin.buffer.read()
            source: Callable[[], Any] = lambda: io.BytesIO(content)  # noqa: E731
        else:
            with Path(path).open("rb"):  # raises the usual error if there is no such file
                source = lambda: pa.input_stream(path)  # noqa: E731
        batches = []
        try:
            schema = kind.header(source, self.title)
            self.names = check_distinct(schema.names, self.title)
            with csv.open_csv(source(), **kind.options(schema)) as reader:
                for batch in reader:
                    batches.append(batch)
                    tick()
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise kind.refusal(error, self.title) from None
        self._table = pa.Table.from_batches(batches, schema)
        if self._table.num_rows == 0:
            raise InvalidParameter("", problem="there are no rows below the names of the columns", owner=self.title)

    def scan(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        table = arrow().table(
            {
                name: self._parsed(name, self._table.column(name)) if numbers else self._table.column(name)
                for name, numbers in columns.items()
            }
        )
        return iter(table.to_batches(n_rows))


class _Files(TableReader):
    """Files of one format, one after the other."""

    lasting = True

    def __init__(self, paths: list[str], separator: str | None) -> None:
        kinds = {path: file_format(path) for path in paths}
        titles = {"array" if kind is None else kind.title.lower() for kind in kinds.values()}
        if len(titles) > 1:
            raise InvalidParameter(
                "", problem=f"{paths[0]} and other files: all must be of one format, got {few(sorted(titles))}"
            )
        if kinds[paths[0]] is None:
            raise InvalidParameter(
                "",
                problem="an array has no column names",
                remedy="leave these out, and pass y as an array",
                owner=paths[0],
            )
        kind = file_format(paths[0], separator)
        assert kind is not None
        self._format: FileFormat = kind
        self.has_texts = kind.has_texts
        self._paths = paths
        self.title = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
        self._stamps = {path: _stamp(path) for path in paths}
        self._schemas = {path: self._attempt(path, kind.schema) for path in paths}
        names = [self._attempt(path, lambda path: self._schemas[path].names) for path in paths]  # decoded here
        self.names = check_distinct(names[0], self.title)

    def _attempt(self, path: str, read: Callable[[str], Any]) -> Any:
        """Return what `read` returns; errors of pyarrow become sentences about the file."""
        pa = arrow()
        try:
            return read(path)
        except (
            pa.ArrowInvalid,
            pa.ArrowKeyError,
            pa.ArrowNotImplementedError,
            pa.ArrowSerializationError,
            OSError,
            UnicodeDecodeError,
        ) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            self._check_unchanged(path)
            raise self._format.refusal(error, path) from None
        except pa.ArrowMemoryError as error:
            raise InvalidParameter(
                "", problem=f"the file is damaged, or there is too little memory to read it: {error}", owner=path
            ) from None

    def _check_unchanged(self, path: str) -> None:
        if _stamp(path) != self._stamps[path]:
            raise RuntimeError(
                f"{path}: the file has changed since it was first read, so earlier counts are no longer valid; call "
                "again once the file is complete."
            ) from None

    def _common(self, columns: Mapping[str, bool]) -> Any:
        """Return the types of columns that all files have: their own, or numbers where these differ."""
        pa = arrow()
        fields = []
        for name, numbers in columns.items():
            for path, schema in self._schemas.items():
                if schema.get_field_index(name) < 0:
                    raise InvalidParameter(
                        "",
                        problem=f"there is no column {shown(name)}, which other files have",
                        remedy=f"the columns are {few(schema.names)}",
                        owner=path,
                    )
            kinds = {schema.field(name).type: path for path, schema in self._schemas.items()}
            kind = next(iter(kinds))
            if numbers and self.has_texts:
                kind = pa.float64()
            elif len(kinds) > 1:
                if not all(pa.types.is_floating(number) or pa.types.is_integer(number) for number in kinds):
                    (first, path), (second, other) = list(kinds.items())[:2]
                    raise InvalidParameter(
                        "",
                        problem=(
                            f"the column {shown(name)} must have the same type in all files, got {second}, "
                            f"but {first} in {path}"
                        ),
                        owner=other,
                    )
                kind = pa.float64()
            fields.append((name, kind))
        return pa.schema(fields)

    def scan(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        schema = self._common(columns)
        for path in self._paths:
            self._check_unchanged(path)
            batches = self._attempt(path, lambda path: self._format.scan(path, schema, n_rows))
            while (batch := self._next(path, columns, batches)) is not None:
                yield batch
            self._check_unchanged(path)

    def _next(self, path: str, columns: Mapping[str, bool], batches: Iterator[Any]) -> Any:
        """Return the next batch, None after the last; name the first cell of CSV that is no number."""
        try:
            return self._attempt(path, lambda _: next(batches, None))
        except ValueError:
            if self.has_texts:
                names = [name for name, numbers in columns.items() if numbers]
                self._attempt(path, lambda path: self._check_texts(path, names))
            raise

    def _check_texts(self, path: str, names: list[str]) -> None:
        pa, row = arrow(), 0
        for batch in self._format.scan(path, pa.schema([(name, pa.string()) for name in names]), _MIN_BATCH):
            for name, column in zip(names, batch.columns, strict=True):
                error = _not_numeric(path, name, column, row)
                if error is not None:
                    raise error from None
            row += batch.num_rows


def _stamp(path: str) -> tuple[int, int]:
    """Return what changes if a file is written to."""
    status = Path(path).stat()
    return status.st_size, status.st_mtime_ns


# ------------------------------------------------------------------------------------------ datasets, queries, frames


class _Dataset(TableReader):
    """A pyarrow dataset."""

    title = "the dataset"

    def __init__(self, data: Any) -> None:
        self._data, self.names = data, tuple(data.schema.names)

    def scan(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        return scan_dataset(self._data, list(columns), n_rows)


class _Query(TableReader):
    """A polars LazyFrame, which is run in every pass by polars' streaming engine."""

    title = "the query"

    def __init__(self, data: Any) -> None:
        self._data, self.names = data, tuple(data.collect_schema().names())

    def scan(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        query = self._data.select(list(columns))
        for frame in query.collect_batches(chunk_size=n_rows, maintain_order=True):
            yield from frame.to_arrow().to_batches()


class _Frame(TableReader):
    """A data frame of any library that has Arrow's C stream interface."""

    title = "the table"

    def __init__(self, data: Any) -> None:
        with arrow().RecordBatchReader.from_stream(data) as reader:
            self._data, self.names = data, tuple(reader.schema.names)

    def scan(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        with arrow().RecordBatchReader.from_stream(self._data) as reader:
            for batch in reader:
                yield batch.select(list(columns))


# ------------------------------------------------------------------------------------------------------------ arrays


@dataclass(frozen=True)
class Arrays:
    """NumPy arrays by name; that of a .npy file has the name ""."""

    title: str
    arrays: dict[str, NDArray[Any]]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arrays that have one."""
        return tuple(name for name in self.arrays if name)

    def get(self, name: str) -> NDArray[Any]:
        """Return the array of a name."""
        if name not in self.arrays:
            raise InvalidParameter(
                "",
                problem=f"there is no array {shown(name)}",
                remedy=f"the arrays are {few(self.names)}",
                owner=self.title,
            )
        return self.arrays[name]


def _read_arrays(path: str) -> Arrays:
    """Read arrays; what would have to be unpickled is refused."""
    try:
        with Path(path).open("rb") as file:
            if not file.read(6).startswith((b"\x93NUMPY", b"PK")):
                raise InvalidParameter("", problem="no array")
            file.seek(0)
            read = np.load(file, allow_pickle=False)
            arrays = dict(read) if hasattr(read, "files") else {"": read}
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        objects = "Object arrays" in str(error)
        said = "it holds Python objects, which are not supported" if objects else "it is damaged, or has another format"
        raise InvalidParameter("", problem=f"this is not a NumPy array file: {said}", owner=path) from None
    return Arrays(path, arrays)
