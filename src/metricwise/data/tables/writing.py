"""Writing of tables; files are written completely or not at all."""

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
from .formats import STANDARD_STREAM, Csv, FileFormat, arrow, file_format

__all__ = ["TableWriter", "arrow_column", "check_target", "write_table"]

_BATCH = 1 << 16  # rows of CSV between two calls of `tick`


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
        NumPy or Arrow arrays.
    n_decided : int, optional
        Number of columns, the last ones, that a .npy file holds, which has no names: one as an array of shape (N,),
        several as (N, M). By default, all.
    separator : str, default=","
        Of CSV; .tsv has a tab.
    tick : callable, optional
        Called as writing goes on.
    """
    kind = _written_format(path, separator)
    if kind is None:
        data = _array_bytes(path, columns, n_decided)
    elif isinstance(kind, Csv):
        data = _csv_bytes(columns, kind.separator, tick)
    else:
        data = _arrow_bytes(columns, kind)
    if path == STANDARD_STREAM:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        write_bytes(path, data)


def _written_format(path: str, separator: str | None) -> FileFormat | None:
    kind = file_format(path, written=True)
    return Csv(separator) if separator and isinstance(kind, Csv) and kind.separator == "," else kind


class TableWriter:
    """Writes a table batch by batch, to a temporary file that replaces the target at the end.

    Parameters
    ----------
    path : str
        Its ending determines the format.
    separator : str, optional
        Of CSV: by default a comma, or a tab for .tsv.
    """

    def __init__(self, path: str, separator: str | None = None) -> None:
        kind = _written_format(path, separator)
        if kind is None or path == STANDARD_STREAM:
            raise InvalidParameter(
                "", problem="a table that is written in batches must be a .parquet, .feather or .csv file", owner=path
            )
        self._path, self._format = path, kind
        self._closing = ExitStack()
        self._file: Any = None
        self._writer: Any = None

    def __enter__(self) -> TableWriter:
        self._file = self._closing.enter_context(replacing(Path(os.path.realpath(self._path))))
        self._closing.push(self._end)
        return self

    def write(self, columns: Mapping[str, Any]) -> None:
        """Write some rows: Arrow arrays, of the same types every time."""
        table = arrow().table(dict(columns))
        try:
            if self._writer is None:
                self._writer = self._format.writer(self._file, table.schema)
            self._writer.write_table(table)
        except OSError as error:
            raise self._full(error) from None

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


def arrow_column(values: Any) -> Any:
    """Return a column as an Arrow array; labels of several kinds become text."""
    pa = arrow()
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind != "O":
        return pa.array(values)
    labels = values.tolist()
    kinds = {type(label) for label in labels if label is not None}
    return pa.array(labels) if len(kinds) == 1 else pa.array([None if v is None else str(v) for v in labels])


def _arrow_bytes(columns: Mapping[str, Any], kind: FileFormat) -> bytes:
    table = arrow().table({name: arrow_column(values) for name, values in columns.items()})
    buffer = io.BytesIO()
    writer = kind.writer(buffer, table.schema)
    writer.write_table(table)
    writer.close()
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


def _array_bytes(path: str, columns: Mapping[str, Any], n_decided: int | None) -> bytes:
    arrays = {name: _storable(np.asarray(values), path) for name, values in columns.items()}
    buffer = io.BytesIO()
    if path.lower().endswith(".npz"):
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
    decided = list(arrays.values())
    whole = decided[0] if len(decided) == 1 else _storable(np.stack(decided, axis=1), path)
    np.save(buffer, whole, allow_pickle=False)
    return buffer.getvalue()


def _storable(array: NDArray[Any], path: str) -> NDArray[Any]:
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
