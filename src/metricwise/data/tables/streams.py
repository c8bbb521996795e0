"""Tables that are read in batches, as often as they are asked for: files, datasets, queries, frames.

Owns how batches of columns come out of whatever holds them, in one order, with little of it in memory at a time; that a
file is still what it was; and what is said where one is broken. Must not know which column is what.
"""

from __future__ import annotations

import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import InvalidParameter, InvalidType, argument, entry_point, shown
from ..columns import few
from .csv_text import check_head, no_number, read_head
from .formats import arrow, format_of

__all__ = ["MEMORY_LIMIT", "Stream", "Table", "batch_rows", "open_stream"]

MEMORY_LIMIT = 1 << 28
_LEAST_LIMIT = 1 << 20
_SHARE = 12  # batches, and what is made of them, that are held at a time at the most: four threads count
_FEWEST, _MOST = 1 << 12, 1 << 20  # rows of a batch


@dataclass(frozen=True, eq=False)
class Table:
    """A table that is read in batches, once in every pass over the rows.

    Parameters
    ----------
    data : str, path, list of paths, pyarrow.dataset.Dataset, polars.LazyFrame, or object with Arrow's C stream
    interface
        A file, a folder, or a pattern such as ``"oof/*.parquet"``, of Parquet, Feather or CSV files; a dataset or a
        query; or a data frame of any library.
    proba_prefix : str, optional
        Prefix of the names of the columns of probabilities. By default, these must be named like the classes, with any
        common prefix, or ``<output>=<class>``.
    proba : str or list of str, optional
        The column with the probability of the positive class of a binary output, one per output.
    separator : str, optional
        Separator of CSV files; by default a comma, or a tab for .tsv.
    memory_limit : int, default=268435456
        Maximum number of bytes of the table to hold in memory at a time.

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
    """

    data: Any
    proba_prefix: str | None = None
    proba: str | Sequence[str] | None = None
    separator: str | None = None
    memory_limit: int = MEMORY_LIMIT

    @entry_point("{class}")
    def __post_init__(self) -> None:
        limit: Any = self.memory_limit
        if not isinstance(limit, int) or limit < _LEAST_LIMIT:
            raise InvalidParameter("memory_limit", f"be a number of bytes of at least {_LEAST_LIMIT}", shown(limit))


class Stream(ABC):
    """Columns of a table, batch by batch.

    Attributes
    ----------
    title : str
        For messages.
    names : tuple of str
    texts : bool
        Whether all columns are text, until somebody says that they are numbers.
    lasting : bool
        Whether it is noticed if rows are others in another pass.
    """

    title: str
    names: tuple[str, ...]
    texts: bool = False
    lasting: bool = False

    def batches(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        """Yield Arrow tables of about so many rows, in order, all passes alike.

        Parameters
        ----------
        columns : mapping of str to bool
            Names, and whether a column of text is to be read as numbers.
        n_rows : int
        """
        for name in columns:
            if name not in self.names:
                raise InvalidParameter(
                    "",
                    problem=f"there is no column {shown(name)}",
                    remedy=f"the columns are {few(self.names)}",
                    owner=self.title,
                )
        pa = arrow()
        held: list[Any] = []
        for batch in self._read(columns, n_rows):
            for start in range(0, batch.num_rows, n_rows):
                held.append(batch.slice(start, n_rows))
                if sum(one.num_rows for one in held) > n_rows // 2:
                    yield pa.Table.from_batches(held)
                    held = []
        if held:
            yield pa.Table.from_batches(held)

    @abstractmethod
    def _read(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        """Yield record batches of any size."""


def batch_rows(row_bytes: int, memory_limit: int) -> int:
    """Return how many rows are read at a time."""
    return max(_FEWEST, min(_MOST, memory_limit // (_SHARE * max(row_bytes, 1))))


def open_stream(table: Table) -> Stream:
    """Open a table, and read the names of its columns.

    Parameters
    ----------
    table : Table

    Returns
    -------
    Stream
    """
    data = table.data
    pa = arrow()
    if isinstance(data, pa.RecordBatchReader):
        raise InvalidType(
            "data",
            "be readable several times",
            "a RecordBatchReader, which is exhausted after one pass",
            "pass what it reads from, or its read_all() if that fits in memory",
            owner="Table",
        )
    if hasattr(data, "scanner"):
        return _Dataset(data)
    if hasattr(data, "collect_batches"):
        return _Query(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _Frames(data)
    return _Files(_paths(data), table.separator)


# --------------------------------------------------------------------------------------------------------------- files


def _paths(data: Any) -> list[str]:
    """Return the files that a path, a folder, a pattern or a list of these mean, in order."""
    if isinstance(data, (list, tuple)):
        return [path for one in data for path in _paths(one)]
    if not isinstance(data, (str, os.PathLike)):
        raise InvalidType("data", "be a path, a dataset, a query or a data frame", shown(data), owner="Table")
    text = os.fspath(data)
    if Path(text).is_dir():
        files = sorted(path for path in Path(text).rglob("*") if path.is_file() and path.name[0] not in "._")
        found = [str(path) for path in files]
    elif glob.has_magic(text) and not Path(text).exists():
        found = sorted(path for path in glob.glob(text, recursive=True) if Path(path).is_file())  # noqa: PTH207  # of any path
    else:
        return [text]
    if not found:
        raise InvalidParameter("", problem="there are no such files", owner=text)
    return found


class _Files(Stream):
    """Files of one format, one after the other."""

    lasting = True

    def __init__(self, paths: list[str], separator: str | None) -> None:
        kinds = {format_of(path) for path in paths}
        if len(kinds) > 1:
            raise InvalidParameter(
                "", problem=f"{paths[0]} and other files: all must be of one format, got {few(sorted(kinds))}"
            )
        (self._kind,) = kinds
        if self._kind in ("npy", "npz"):
            raise InvalidParameter(
                "",
                problem="an array has no column names",
                remedy="leave these out, and pass y as an array",
                owner=paths[0],
            )
        if separator is not None and self._kind != "csv":
            raise InvalidParameter(
                "separator", problem=f"{argument('separator')} is only for CSV", remedy="leave it out", owner=paths[0]
            )
        self.texts = self._kind == "csv"
        self._separator = separator or ("\t" if paths[0].lower().endswith(".tsv") else ",")
        self._paths = paths
        self.title = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
        self._stamps = {path: _stamp(path) for path in paths}
        self._schemas = {path: self._tried(path, self._schema) for path in paths}
        self.names = tuple(self._schemas[paths[0]].names)

    def _tried(self, path: str, read: Any) -> Any:
        pa = arrow()
        try:
            return read(path)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowSerializationError, OSError) as error:
            raise self._refusal(path, error) from None

    def _refusal(self, path: str, error: Exception) -> Exception:
        if isinstance(error, OSError) and error.errno is not None:
            return error
        lines = str(error).strip().splitlines()
        said = (lines[0] if lines else type(error).__name__).rstrip(".")
        if _stamp(path) != self._stamps[path]:
            return _changed(path)
        kind = "CSV" if self.texts else self._kind.capitalize()
        return InvalidParameter("", problem=f"this is not a complete {kind} file: {said}", owner=path)

    def _schema(self, path: str) -> Any:
        pa = arrow()
        if self._kind == "parquet":
            from pyarrow import parquet

            return parquet.read_schema(path)
        if self._kind == "feather":
            with pa.memory_map(path) as file:
                return pa.ipc.open_file(file).schema
        from pyarrow import csv

        check_head(read_head(path), self._separator, path)
        with csv.open_csv(path, parse_options=csv.ParseOptions(delimiter=self._separator)) as reader:
            return pa.schema([(name, pa.string()) for name in reader.schema.names])

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
            if numbers and self.texts:
                kind = pa.float64()
            elif len(kinds) > 1:
                if not all(pa.types.is_floating(one) or pa.types.is_integer(one) for one in kinds):
                    (first, one), (second, other) = list(kinds.items())[:2]
                    raise InvalidParameter(
                        "",
                        problem=(
                            f"the column {shown(name)} must have the same type in all files, got {second}, "
                            f"but {first} in {one}"
                        ),
                        owner=other,
                    )
                kind = pa.float64()
            fields.append((name, kind))
        return pa.schema(fields)

    def _read(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        from pyarrow import dataset

        schema = self._common(columns)
        for path in self._paths:
            if _stamp(path) != self._stamps[path]:
                raise _changed(path)
            source = self._tried(path, lambda path: dataset.dataset(path, schema=schema, format=self._format(schema)))
            batches = _scan(source, list(columns), n_rows)
            while (batch := self._tried_numbers(path, columns, batches)) is not None:
                yield batch
            if _stamp(path) != self._stamps[path]:
                raise _changed(path)

    def _tried_numbers(self, path: str, columns: Mapping[str, bool], batches: Iterator[Any]) -> Any:
        """Return the next batch, None after the last; of CSV say which cell is no number."""
        try:
            return self._tried(path, lambda _: next(batches, None))
        except ValueError:
            if self.texts:
                self._check_numbers(path, [name for name, numbers in columns.items() if numbers])
            raise

    def _check_numbers(self, path: str, names: list[str]) -> None:
        """Refuse the first cell of CSV that is no number."""
        from pyarrow import dataset

        schema = arrow().schema([(name, arrow().string()) for name in names])
        row = 0
        for batch in _scan(dataset.dataset(path, schema=schema, format=self._format(schema)), names, _FEWEST):
            for name, column in zip(names, batch.columns, strict=True):
                for at, text in enumerate(column.to_pylist()):
                    try:
                        float(text or 0)
                    except ValueError:
                        raise no_number(path, name, text, row + at) from None
            row += batch.num_rows

    def _format(self, schema: Any) -> Any:
        from pyarrow import csv, dataset

        if self._kind != "csv":
            return self._kind
        convert = csv.ConvertOptions(
            column_types=schema, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        parse = csv.ParseOptions(delimiter=self._separator, newlines_in_values=True)
        return dataset.CsvFileFormat(parse_options=parse, convert_options=convert)


def _stamp(path: str) -> tuple[int, int]:
    """What changes where a file is written to."""
    found = Path(path).stat()
    return found.st_size, found.st_mtime_ns


def _changed(path: str) -> RuntimeError:
    return RuntimeError(
        f"{path}: the file has changed since it was first read, so earlier counts are no longer valid; call "
        "again once the file is complete."
    )


def _scan(source: Any, names: list[str], n_rows: int) -> Iterator[Any]:
    """Read ahead a little: batches are decoded by other threads while one is counted."""
    from pyarrow import dataset

    options = None
    if isinstance(getattr(source, "format", None), dataset.ParquetFileFormat):
        # By default all columns of several groups of rows are held as they are in the file, decoded or not.
        options = dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    scanner = source.scanner(
        columns=names, batch_size=n_rows, batch_readahead=2, fragment_readahead=1, fragment_scan_options=options
    )
    return iter(scanner.to_batches())


# ------------------------------------------------------------------------------------------ datasets, queries, frames


class _Dataset(Stream):
    """A dataset of pyarrow's."""

    title = "the dataset"

    def __init__(self, data: Any) -> None:
        self._data, self.names = data, tuple(data.schema.names)

    def _read(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        return _scan(self._data, list(columns), n_rows)


class _Query(Stream):
    """A LazyFrame of polars, which is run anew in every pass, by its streaming engine."""

    title = "the query"

    def __init__(self, data: Any) -> None:
        self._data, self.names = data, tuple(data.collect_schema().names())

    def _read(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        some = self._data.select(list(columns))
        for frame in some.collect_batches(chunk_size=n_rows, maintain_order=True):
            yield from frame.to_arrow().to_batches()


class _Frames(Stream):
    """Whatever has Arrow's C stream interface."""

    title = "the table"

    def __init__(self, data: Any) -> None:
        with arrow().RecordBatchReader.from_stream(data) as reader:
            self._data, self.names = data, tuple(reader.schema.names)

    def _read(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        with arrow().RecordBatchReader.from_stream(self._data) as reader:
            for batch in reader:
                yield batch.select(list(columns))
