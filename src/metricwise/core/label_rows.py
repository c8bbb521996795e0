"""Rows of very many labels, of which each stores few: probabilities, and the number of labels of a row.

A label that is not stored has probability 0. Must not know metrics, rules or where rows come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from .errors import InvalidParameter, shown

__all__ = [
    "CALIBRATION_FLOOR",
    "CHUNK_ENTRIES",
    "MAX_LABELS",
    "LabelRows",
    "LabelsPerRow",
    "fill_labels",
    "read_labels_per_row",
]

FloatArray = NDArray[np.float64]
LongArray = NDArray[np.int64]
LabelsPerRow = tuple[int, int]

CALIBRATION_FLOOR = 1e-6  # probabilities are kept this far from 0 and 1 before their logits are calibrated
CHUNK_ENTRIES = 1 << 22  # entries of which a calibrated copy is made at a time
MAX_LABELS = 1 << 24  # of a rule: a file of few bytes must not ask for any amount of memory


@dataclass(frozen=True, eq=False)
class LabelRows:
    """Probabilities of the labels of rows, entry by entry, as views of what the user gave.

    Parameters
    ----------
    indptr : ndarray of shape (N + 1,), int64
        Where the entries of each row begin and end.
    indices : ndarray of shape (E,), int32 or int64, or None
        The label of each entry, ascending within a row; None if every row has all labels in order.
    values : ndarray of shape (E,), float32 or float64
        Probabilities, logits or scores.
    n_labels : int
        M.
    weight : ndarray of shape (N,), optional
        Weights of the rows.

    See Also
    --------
    metricwise.data.label_rows.read_label_rows : Read sparse or dense probabilities.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from metricwise.data.label_rows import read_label_rows
    >>> rows = read_label_rows(csr_array([[0.5, 0.0, 0.2], [0.0, 0.0, 0.7]]))
    >>> rows.n_rows, rows.n_labels, rows.n_entries, rows.longest
    (2, 3, 3, 2)
    """

    indptr: LongArray
    indices: NDArray[Any] | None
    values: NDArray[Any]
    n_labels: int
    weight: FloatArray | None = None

    @classmethod
    def of_array(cls, values: NDArray[Any], weight: FloatArray | None = None) -> LabelRows:
        """Return the rows of an array (N, M) of all labels; float16 becomes float32."""
        n_rows, n_labels = values.shape
        flat = np.ascontiguousarray(values, dtype=entry_type(values.dtype)).reshape(-1)
        return cls(np.arange(n_rows + 1, dtype=np.int64) * n_labels, None, flat, n_labels, weight)

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        """E."""
        return len(self.values)

    @property
    def longest(self) -> int:
        """The largest number of entries of a row."""
        return int(np.diff(self.indptr).max(initial=0))

    def chunks(self, max_entries: int = CHUNK_ENTRIES) -> Iterator[slice]:
        """Yield slices of rows that have so many entries at most, or of a single row that has more."""
        start = 0
        while start < self.n_rows:
            most = self.indptr[start] + max_entries
            stop = max(start + 1, int(np.searchsorted(self.indptr, most, side="right")) - 1)
            yield slice(start, stop)
            start = stop

    def take(self, rows: slice) -> LabelRows:
        """Return neighbouring rows, as views."""
        first, last, _ = rows.indices(self.n_rows)
        indptr = self.indptr[first : max(first, last) + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        return LabelRows(
            indptr - indptr[0],
            None if self.indices is None else self.indices[entries],
            self.values[entries],
            self.n_labels,
            None if self.weight is None else self.weight[rows],
        )

    def without_zeros(self) -> LabelRows:
        """Return rows without labels of probability 0, if there are any: a label that is not stored is the same."""
        if self.values.all():
            return self
        stored = self.values != 0
        row_ends = np.append(0, np.cumsum(stored))[self.indptr]
        if self.indices is None:
            labels = np.tile(np.arange(self.n_labels, dtype=np.int32), self.n_rows)[stored]
        else:
            labels = self.indices[stored]
        return LabelRows(row_ends, labels, self.values[stored], self.n_labels, self.weight)

    def block(self, values: NDArray[Any] | None = None, rows: LongArray | None = None) -> kernels.LabelBlock:
        """Return what kernels take: with other values of the entries if given, and some of the rows, by number."""
        values = self.values if values is None else values
        return kernels.LabelBlock(values, self.indices, self.indptr, self.n_labels, self.weight, rows)


def entry_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which entries of a type are read: float32 for itself and half precision, else float64."""
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)


def fill_labels(offset: FloatArray, count: int) -> LongArray:
    """Return the labels by which rows that store too few are filled up: by decreasing offset, of equals the lower.

    Parameters
    ----------
    offset : ndarray of shape (M,)
    count : int
        How many at most.
    """
    if count >= len(offset) // 8:
        return np.argsort(-offset, kind="stable")[:count]
    if count == 0:
        return np.empty(0, dtype=np.int64)
    least = np.partition(offset, len(offset) - count)[len(offset) - count]
    above, equal = np.flatnonzero(offset > least), np.flatnonzero(offset == least)
    return np.concatenate([above[np.argsort(-offset[above], kind="stable")], equal[: count - len(above)]])


def read_labels_per_row(value: Any, n_labels: int | None = None) -> LabelsPerRow | None:
    """Return the least and the largest number of labels of a row; None if there is no limit.

    Parameters
    ----------
    value : int, (int, int) or None
        A number is the largest; the least is 0 then.
    n_labels : int, optional
        M, which the largest must not exceed.

    Examples
    --------
    >>> from metricwise.core.label_rows import read_labels_per_row
    >>> read_labels_per_row(3), read_labels_per_row((1, 3)), read_labels_per_row(None)
    ((0, 3), (1, 3), None)
    """
    if value is None:
        return None
    pair = value if isinstance(value, (tuple, list, np.ndarray)) else (0, value)
    numbers = [int(number) for number in pair if isinstance(number, (int, np.integer)) and not isinstance(number, bool)]
    if not (len(numbers) == len(pair) == 2 and 0 <= numbers[0] <= numbers[1] and numbers[1] >= 1):
        raise InvalidParameter(
            "labels_per_row",
            "be the largest number of labels of a row, or the least and the largest",
            shown(value),
            "pass 3 for at most 3, (1, 3) for 1 to 3, or (3, 3) for exactly 3",
        )
    low, high = numbers
    if n_labels is not None and high > n_labels:
        raise InvalidParameter(
            "labels_per_row", f"be at most the number of labels, {n_labels}", shown(value), "pass a smaller number"
        )
    return low, high
