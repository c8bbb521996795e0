"""Rows as records of bytes, as a data frame of Spark keeps them. Must not know what is counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.cached import cached_property
from ...core.probabilities import Probabilities
from ...core.rows import Rows

__all__ = ["RecordFormat"]

_RECORD_BYTES = 1 << 13  # about, of the rows of a record: Spark sends 10,000 records at a time
_ARRAYS = ("codes", "weight", "mass", "frequency", "group", "cluster", "repeats")  # with one item for each row


@dataclass(frozen=True, eq=False)
class RecordFormat:
    """How rows are written as records: each array is a column of bytes, and a record holds some neighbouring rows.

    The bytes of the records that Spark sends at a time follow one another, so that they are read without a copy.

    Parameters
    ----------
    empty : Rows
        No rows, with arrays like those of all.
    n_rows : int
        Rows that are read at a time.
    """

    empty: Rows
    n_rows: int

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [f"a{number}" for number in range(len(_arrays(self.empty)))]

    @property
    def types(self) -> str:
        """The columns and their types, as Spark is told."""
        return ", ".join(f"{name} binary" for name in self.columns)

    def records(self, rows: Rows) -> Any:
        """Return rows as an Arrow batch of records."""
        import pyarrow as pa

        arrays = [
            np.ascontiguousarray(array.astype(like.dtype, casting="same_kind", copy=False))
            for array, like in zip(_arrays(rows), _arrays(self.empty), strict=True)
        ]
        width = max(1, _RECORD_BYTES * rows.n_rows // max(sum(array.nbytes for array in arrays), 1))
        ends = np.append(np.arange(0, rows.n_rows, width), rows.n_rows)
        columns = []
        for array in arrays:
            offsets = ends * (array.nbytes // rows.n_rows)
            buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(array)]
            columns.append(
                pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends) - 1, buffers).cast(pa.binary())
            )
        return pa.RecordBatch.from_arrays(columns, self.columns)

    def refused(self) -> Any:
        """Return a record that stands for rows that are no distributions."""
        import pyarrow as pa

        return pa.RecordBatch.from_arrays([pa.nulls(1, pa.binary()) for _ in self.columns], self.columns)

    def rows(self, batches: Iterable[Any]) -> Iterator[Rows | None]:
        """Yield the rows of Arrow batches of records, in order, from position 0 on; None if any have been refused."""
        start = 0
        for batch in batches:
            if batch.num_rows == 0:
                continue
            if any(column.null_count for column in batch.columns):
                yield None
                continue
            arrays = [_joined(column, like) for column, like in zip(batch.columns, _arrays(self.empty), strict=True)]
            whole = _with_arrays(self.empty, arrays)
            for begin in range(0, whole.n_rows, self.n_rows):
                rows = whole.take(slice(begin, begin + self.n_rows))
                yield replace(rows, start=start)
                start += rows.n_rows


def _arrays(rows: Rows) -> list[NDArray[Any]]:
    """Return all arrays of rows."""
    others = [rows.proba.scores, *(getattr(rows, name) for name in _ARRAYS)]
    return [*rows.proba.blocks, *(array for array in others if array is not None)]


def _with_arrays(like: Rows, arrays: Sequence[NDArray[Any]]) -> Rows:
    """Return rows of other arrays, in the order of `_arrays`."""
    left = iter(arrays)
    blocks = tuple(next(left) for _ in like.proba.blocks)
    scores = None if like.proba.scores is None else next(left)
    others: dict[str, Any] = {name: next(left) for name in _ARRAYS if getattr(like, name) is not None}
    return replace(like, proba=Probabilities(blocks, like.proba.n_classes, like.proba.link, scores), **others)


def _joined(column: Any, like: NDArray[Any]) -> NDArray[Any]:
    """Return the array whose bytes a column of records holds."""
    import pyarrow as pa

    column = column.cast(pa.large_binary())
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    array = np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]]
    return array.view(like.dtype).reshape(-1, *like.shape[1:])
