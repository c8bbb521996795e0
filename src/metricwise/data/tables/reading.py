"""Reading tables: columns by name, or arrays by name.

A table is opened once, which reads the names; columns are read when they are asked for, and only those. Columns of CSV
are text until somebody says that they are numbers or labels, so that an identifier such as 007 stays what it is.
"""

from __future__ import annotations

import sys
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidParameter, argument, shown
from ..columns import few, labels_of_texts
from .csv_text import HEAD_BYTES, check_head, no_number, read_head
from .formats import STANDARD_STREAM, arrow, format_of

__all__ = ["Arrays", "Columns", "open_table"]


class Columns(ABC):
    """A table of named columns.

    Attributes
    ----------
    path : str
        For messages.
    names : tuple of str
    n_rows : int
    has_texts : bool
        Whether columns are text until more is known of them.
    """

    path: str
    names: tuple[str, ...]
    has_texts: bool = False

    @property
    @abstractmethod
    def n_rows(self) -> int: ...

    @abstractmethod
    def values(self, names: Sequence[str]) -> Any:
        """Return columns as they are, as an Arrow table."""

    @abstractmethod
    def numbers(self, names: Sequence[str]) -> Any:
        """Return columns of numbers, none of which is missing, as an Arrow table."""

    @abstractmethod
    def labels(self, name: str) -> Any:
        """Return a column of labels, as an Arrow array."""

    @abstractmethod
    def moments(self, name: str) -> Any:
        """Return a column of times, numbers or dates, as an Arrow array."""

    def check(self, name: str) -> None:
        """Refuse a name that no column has."""
        if name not in self.names:
            raise InvalidParameter(
                "",
                problem=f"there is no column {shown(name)}",
                remedy=f"the columns are {few(self.names)}",
                owner=self.path,
            )

    def _check_all(self) -> None:
        twice = [name for at, name in enumerate(self.names) if name in self.names[:at]]
        if twice:
            raise InvalidParameter(
                "", problem=f"the names of columns must be distinct, got {shown(twice[0])} twice", owner=self.path
            )


@dataclass(frozen=True)
class Arrays:
    """Arrays of NumPy's, by name; the one of a .npy file has none.

    Parameters
    ----------
    path : str
    arrays : dict of str to ndarray
    """

    path: str
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
                owner=self.path,
            )
        return self.arrays[name]


def open_table(path: str, *, separator: str | None = None, tick: Callable[[], None] = lambda: None) -> Columns | Arrays:
    """Open a table, and read its names.

    Parameters
    ----------
    path : str
        Its ending says the format: .csv, .tsv, .parquet, .feather, .arrow, .npy, .npz; "-" is CSV from the standard
        input.
    separator : str, optional
        Of CSV: a comma, and a tab for .tsv.
    tick : callable, optional
        Called as reading goes on.

    Returns
    -------
    Columns or Arrays
    """
    kind = format_of(path)
    if separator is not None and kind != "csv":
        raise InvalidParameter(
            "separator", problem=f"{argument('separator')} is only for CSV", remedy="leave it out", owner=path
        )
    if kind in ("npy", "npz"):
        return _read_arrays(path)
    arrow()
    if path != STANDARD_STREAM:
        with Path(path).open("rb"):  # pyarrow's words for a file that is not there are others
            pass
    if kind == "csv":
        return _Csv(path, separator or ("\t" if path.lower().endswith(".tsv") else ","), tick)
    return _Columnar(path, kind)


def _sentence(error: Exception) -> str:
    """The first line of what a library says, as the end of a sentence."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")


# --------------------------------------------------------------------------------------------------------------- CSV


class _Csv(Columns):
    has_texts = True

    def __init__(self, path: str, separator: str, tick: Callable[[], None]) -> None:
        if len(separator) != 1:
            raise InvalidParameter(
                "separator", problem=f"a separator must be one character, got {shown(separator)}", owner=path
            )
        self.path = "standard input" if path == STANDARD_STREAM else path
        self._separator, self._tick = separator, tick
        self._content = sys.stdin.buffer.read() if path == STANDARD_STREAM else None
        self._rows: int | None = None
        head = read_head(path) if self._content is None else self._content[:HEAD_BYTES]
        check_head(head, separator, self.path)
        with self._opened() as reader:
            self.names = tuple(reader.schema.names)
        self._check_all()

    def _opened(self, types: dict[str, Any] | None = None) -> Any:
        """Return a reader of batches of some columns; all are text if no types are given."""
        import pyarrow as pa
        from pyarrow import csv

        names = None if types is None else list(types)
        read = csv.ReadOptions(use_threads=True)
        parse = csv.ParseOptions(delimiter=self._separator, newlines_in_values=True)
        convert = csv.ConvertOptions(
            include_columns=names,
            column_types=None if types is None else {name: kind for name, kind in types.items() if kind is not None},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        try:
            source = pa.BufferReader(self._content) if self._content is not None else pa.input_stream(self.path)
            return csv.open_csv(source, read, parse, convert)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise self._refusal(error) from None

    def _read(self, types: dict[str, Any]) -> Any:
        import pyarrow as pa

        batches = []
        with self._opened(types) as reader:
            try:
                for batch in reader:
                    batches.append(batch)
                    self._tick()
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                raise self._refusal(error) from None
            table = pa.Table.from_batches(batches, reader.schema)
        self._rows = table.num_rows
        if table.num_rows == 0:
            raise InvalidParameter("", problem="there are no rows below the names of the columns", owner=self.path)
        return table

    def _refusal(self, error: Exception) -> ValueError:
        said = _sentence(error)
        if "Empty CSV" in said:
            return InvalidParameter("", problem="the file is empty", owner=self.path)
        if "UTF8" in said.upper().replace("-", ""):
            return InvalidParameter("text", "be in UTF-8", owner=self.path)
        return InvalidParameter(
            "", problem=f"this is not valid CSV: {said.removeprefix('CSV parse error: ')}", owner=self.path
        )

    @property
    def n_rows(self) -> int:
        if self._rows is None:
            self.values(self.names[:1])
        assert self._rows is not None
        return self._rows

    def values(self, names: Sequence[str]) -> Any:
        import pyarrow as pa

        for name in names:
            self.check(name)
        return self._read(dict.fromkeys(names, pa.string()))

    def numbers(self, names: Sequence[str]) -> Any:
        import pyarrow as pa

        for name in names:
            self.check(name)
        try:
            table = self._read(dict.fromkeys(names, pa.float64()))
        except ValueError as error:
            self._check_numbers(names)
            raise error from None
        _refuse_nulls(table, self.path)
        return table

    def _check_numbers(self, names: Sequence[str]) -> None:
        """Say which cell is no number."""
        for name, column in zip(names, self.values(names).columns, strict=True):
            for row, text in enumerate(column.to_pylist()):
                try:
                    float(text or 0)
                except ValueError:
                    raise no_number(self.path, name, text, row) from None

    def labels(self, name: str) -> Any:
        import pyarrow as pa

        texts = self.values([name]).column(0).combine_chunks()
        encoded = (texts.chunk(0) if isinstance(texts, pa.ChunkedArray) else texts).dictionary_encode()
        return pa.array(labels_of_texts(encoded.dictionary.to_pylist())).take(encoded.indices)

    def moments(self, name: str) -> Any:
        import pyarrow as pa

        texts = self.values([name]).column(0)
        for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
            try:
                return texts.cast(kind)
            except pa.ArrowInvalid:
                continue
        raise InvalidParameter(
            "",
            problem=(
                f"the column {shown(name)} must hold numbers or dates such as 2024-01-31 or 2024-01-31 "
                f"12:30, got {shown(texts[0].as_py())}"
            ),
            owner=self.path,
        )


# ------------------------------------------------------------------------------------------------- Parquet, Feather


class _Columnar(Columns):
    def __init__(self, path: str, kind: str) -> None:
        self.path, self._kind = path, kind
        self.names = tuple(self._tried(self._schema).names)
        self._check_all()

    def _tried(self, read: Callable[[], Any]) -> Any:
        import pyarrow as pa

        try:
            return read()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            kind = self._kind.capitalize()
            raise InvalidParameter(
                "", problem=f"this is not a {kind} file: {_sentence(error)}", owner=self.path
            ) from None

    def _schema(self) -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        if self._kind == "parquet":
            return parquet.read_schema(self.path)
        with pa.memory_map(self.path) as file:
            return pa.ipc.open_file(file).schema

    def _table(self, names: Sequence[str]) -> Any:
        from pyarrow import feather, parquet

        for name in names:
            self.check(name)
        read = parquet.read_table if self._kind == "parquet" else feather.read_table
        table = self._tried(lambda: read(self.path, columns=list(names)))
        if table.num_rows == 0:
            raise InvalidParameter("", problem="there are no rows", owner=self.path)
        return table

    @cached_property
    def n_rows(self) -> int:
        return int(self._table(self.names[:1]).num_rows)

    def values(self, names: Sequence[str]) -> Any:
        return self._table(names)

    def numbers(self, names: Sequence[str]) -> Any:
        from pyarrow import types

        table = self._table(names)
        for field in table.schema:
            if not (types.is_floating(field.type) or types.is_integer(field.type) or types.is_decimal(field.type)):
                raise InvalidParameter(
                    "",
                    problem=f"the column {shown(field.name)} must hold numbers, got type {field.type}",
                    owner=self.path,
                )
        _refuse_nulls(table, self.path)
        return table

    def labels(self, name: str) -> Any:
        return self._table([name]).column(0)

    def moments(self, name: str) -> Any:
        return self._table([name]).column(0)


def _refuse_nulls(table: Any, path: str) -> None:
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            row = column.is_null().to_pylist().index(True)
            raise InvalidParameter(
                "",
                problem=f"the column {shown(name)} must hold a number in every row, got none in row {row}",
                owner=path,
            )


# ------------------------------------------------------------------------------------------------------------ arrays


def _read_arrays(path: str) -> Arrays:
    """Read arrays; what would have to be unpickled is refused."""
    try:
        with Path(path).open("rb") as file:
            if not file.read(6).startswith((b"\x93NUMPY", b"PK")):
                raise InvalidParameter("", problem="no array")
            file.seek(0)
            read = np.load(file, allow_pickle=False)
            found = dict(read) if hasattr(read, "files") else {"": read}
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        objects = "Object arrays" in str(error)
        said = "it holds Python objects, which are not read" if objects else "it is damaged, or of another kind"
        raise InvalidParameter("", problem=f"this is not a NumPy array file: {said}", owner=path) from None
    return Arrays(path, found)
