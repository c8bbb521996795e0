"""Writing tables: whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FileIsThere, InvalidParameter, argument
from ...core.files import replacing, write_bytes
from ..columns import few
from .formats import STANDARD_STREAM, arrow, format_of

__all__ = ["TableWriter", "check_target", "label_column", "write_table"]

_BATCH = 1 << 16  # rows of CSV between two signs of life


def check_target(path: str, *, force: bool = False) -> None:
    """Refuse a file that is there, unless `force`, and a folder that cannot be written to; nothing is left there.

    Parameters
    ----------
    path : str
        "-" is the standard output.
    force : bool, default=False
        Whether a file may be replaced.
    """
    if path == STANDARD_STREAM:
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InvalidParameter("", problem="this is a folder", remedy="pass the name of a file", owner=path)
    if target.exists() and not target.is_file():
        return  # a pipe or a device, which has no old content
    if target.exists() and not force:
        raise FileIsThere(
            f"the file exists; choose another name, or use {argument('force', True)} to overwrite it", owner=path
        )
    if not target.parent.is_dir():
        raise InvalidParameter("", problem=f"there is no folder {target.parent}", owner=path)
    try:
        with tempfile.TemporaryFile(dir=target.parent):  # without a name, so that nothing can be left of it
            pass
    except OSError:
        raise InvalidParameter("", problem=f"the folder {target.parent} cannot be written to", owner=path) from None


def write_table(
    path: str,
    columns: Mapping[str, Any],
    *,
    n_decided: int | None = None,
    separator: str = ",",
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Write columns to a file, by the ending of its name, or as CSV to the standard output.

    Parameters
    ----------
    path : str
    columns : mapping of str to array
        Of NumPy's or Arrow's.
    n_decided : int, optional
        How many columns, the last ones, are what a .npy file is to hold, which has no names: one as an array of shape
        (N,), several as (N, M). None: all.
    separator : str, default=","
        Of CSV; .tsv has a tab.
    tick : callable, optional
        Called as writing goes on.
    """
    kind = format_of(path, written=True)
    if kind in ("npy", "npz"):
        data = _array_bytes(path, kind, columns, n_decided)
    elif kind == "csv":
        data = _csv_bytes(columns, "\t" if path.lower().endswith(".tsv") else separator, tick)
    else:
        data = _arrow_bytes(kind, columns)
    if path == STANDARD_STREAM:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        write_bytes(path, data)


class TableWriter:
    """Writes a table batch by batch, into another file first, which takes the place of the target in the end.

    Parameters
    ----------
    path : str
        Its ending says the format: Parquet, Feather or CSV.
    separator : str, optional
        Of CSV: a comma, and a tab for .tsv.
    """

    def __init__(self, path: str, separator: str | None = None) -> None:
        self._kind = format_of(path, written=True)
        if self._kind in ("npy", "npz") or path == STANDARD_STREAM:
            raise InvalidParameter(
                "", problem="a table that is written in batches must be a .parquet, .feather or .csv file", owner=path
            )
        self._path, self._separator = path, separator or ("\t" if path.lower().endswith(".tsv") else ",")
        self._closing = ExitStack()
        self._file: Any = None
        self._writer: Any = None

    def __enter__(self) -> TableWriter:
        self._file = self._closing.enter_context(replacing(Path(os.path.realpath(self._path))))
        self._closing.push(self._end)
        return self

    def write(self, columns: Mapping[str, Any]) -> None:
        """Write some rows.

        Parameters
        ----------
        columns : mapping of str to Arrow array
            Of the same types every time.
        """
        table = arrow().table(dict(columns))
        try:
            if self._writer is None:
                self._writer = self._opened(table.schema)
            self._writer.write_table(table)
        except OSError as error:
            raise self._full(error) from None

    def _opened(self, schema: Any) -> Any:
        if self._kind == "parquet":
            from pyarrow import parquet

            return parquet.ParquetWriter(self._file, schema)
        if self._kind == "feather":
            return arrow().ipc.new_file(self._file, schema)
        from pyarrow import csv

        return csv.CSVWriter(self._file, schema, write_options=csv.WriteOptions(delimiter=self._separator))

    def _full(self, error: OSError) -> OSError:
        said = error.strerror or str(error).strip().rstrip(".")
        return OSError(error.errno, f"{said}; nothing was written to it", self._path)

    def _end(self, kind: Any, error: Any, trace: Any) -> None:
        """End what the writer began; a table that failed before need not be complete."""
        try:
            if self._writer is not None:
                self._writer.close()
        except Exception:
            with suppress(Exception):
                self._writer.close()
            if kind is None:
                raise

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self._closing.__exit__(kind, error, trace)
        except OSError as failed:
            if failed is error:
                raise
            raise self._full(failed) from None


def label_column(values: NDArray[Any]) -> Any:
    """Return labels as Arrow has them; labels of several kinds as text."""
    return _arrow_column(values)


def _arrow_column(values: Any) -> Any:
    """Return a column as Arrow has it; labels of several kinds as text."""
    pa = arrow()
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind != "O":
        return pa.array(values)
    listed = values.tolist()
    kinds = {type(value) for value in listed if value is not None}
    return pa.array(listed) if len(kinds) == 1 else pa.array([None if v is None else str(v) for v in listed])


def _arrow_bytes(kind: str, columns: Mapping[str, Any]) -> bytes:
    pa = arrow()
    from pyarrow import feather, parquet

    table = pa.table({name: _arrow_column(values) for name, values in columns.items()})
    buffer = io.BytesIO()
    if kind == "parquet":
        parquet.write_table(table, buffer)
    else:
        feather.write_feather(table, buffer)
    return buffer.getvalue()


def _csv_bytes(columns: Mapping[str, Any], separator: str, tick: Callable[[], None]) -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=separator, lineterminator="\n")
    writer.writerow(columns)
    for batch in _batches(list(columns.values())):
        writer.writerows(batch)
        tick()
    return buffer.getvalue().encode("utf-8")


def _batches(columns: list[Any]) -> Iterator[Iterator[tuple[Any, ...]]]:
    for start in range(0, len(columns[0]), _BATCH):
        parts = [column[start : start + _BATCH] for column in columns]
        lists = [part.tolist() if isinstance(part, np.ndarray) else part.to_pylist() for part in parts]
        yield zip(*lists, strict=True)


def _array_bytes(path: str, kind: str, columns: Mapping[str, Any], n_decided: int | None) -> bytes:
    arrays = {name: _plain_array(np.asarray(values), path) for name, values in columns.items()}
    buffer = io.BytesIO()
    if kind == "npz":
        # Not np.savez, in which the name "file" is taken.
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
        return buffer.getvalue()
    if n_decided is not None and n_decided < len(arrays):
        raise InvalidParameter(
            "",
            problem=f"a .npy file has no names for the columns {few(list(arrays)[:-n_decided])}",
            remedy="write .npz, .csv or .parquet to keep them",
            owner=path,
        )
    one = list(arrays.values())
    np.save(buffer, one[0] if len(one) == 1 else _plain_array(np.stack(one, axis=1), path), allow_pickle=False)
    return buffer.getvalue()


def _plain_array(array: NDArray[Any], path: str) -> NDArray[Any]:
    """Return an array that need not be pickled; labels of several kinds have none."""
    if array.dtype.kind != "O":
        return array
    values = array.ravel().tolist()
    if len({type(value) for value in values}) != 1 or not isinstance(values[0], (str, int, float, bool)):
        raise InvalidParameter(
            "missing",
            problem="labels of several kinds, or missing ones, need a .csv, .parquet or .feather file",
            owner=path,
        )
    return np.array(values).reshape(array.shape)
