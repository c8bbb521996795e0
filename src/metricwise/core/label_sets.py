"""Sets of labels, one for each row: true labels, and decisions. Must not know probabilities or metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LabelSets"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_MAX_ROWS_COMPARED = 1 << 14  # whose labels are compared together: more would take memory, and not be faster


@dataclass(frozen=True, eq=False)
class LabelSets:
    """The labels of each of N rows, ascending.

    Parameters
    ----------
    indptr : int64 ndarray of shape (N + 1,)
        Labels of row i are ``indices[indptr[i]:indptr[i + 1]]``.
    indices : integer ndarray
    n_labels : int
        M.
    """

    indptr: IntArray
    indices: NDArray[Any]
    n_labels: int

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.indptr) - 1

    @property
    def sizes(self) -> IntArray:
        """Number of labels of each row, (N,)."""
        return np.diff(self.indptr)

    @property
    def rows(self) -> IntArray:
        """The row of each label of a row."""
        return np.repeat(np.arange(self.n_rows), self.sizes)

    def take(self, rows: IntArray) -> LabelSets:
        """Return the sets of some rows, in their order."""
        sizes = self.sizes[rows]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        first = np.repeat(self.indptr[rows] - indptr[:-1], sizes)
        return LabelSets(indptr, self.indices[first + np.arange(indptr[-1])], self.n_labels)

    def count(self, weight: FloatArray | None = None) -> FloatArray:
        """Return the weight of the rows that have each label, (M,)."""
        of_rows = None if weight is None else weight[self.rows]
        return np.bincount(self.indices, of_rows, minlength=self.n_labels).astype(np.float64)

    def row_sums(self, label_weight: FloatArray | None = None) -> FloatArray:
        """Return the weight of the labels of each row, (N,); None: their number."""
        if label_weight is None:
            return self.sizes.astype(np.float64)
        return np.bincount(self.rows, label_weight[self.indices], minlength=self.n_rows).astype(np.float64)

    def common(self, other: LabelSets) -> LabelSets:
        """Return the labels that each row has in both."""
        shared = np.zeros(len(self.indices), dtype=bool)
        for start in range(0, self.n_rows, _MAX_ROWS_COMPARED):
            rows = slice(start, start + _MAX_ROWS_COMPARED)
            keys, others = self._keys(rows), other._keys(rows)
            if len(keys) and len(others):
                place = np.minimum(np.searchsorted(others, keys), len(others) - 1)
                shared[self.indptr[start] : self.indptr[start] + len(keys)] = others[place] == keys
        indptr = np.append(0, np.cumsum(shared))[self.indptr]
        return LabelSets(indptr, self.indices[shared], self.n_labels)

    def _keys(self, rows: slice) -> IntArray:
        """Return numbers that tell rows and labels apart, ascending, for neighbouring rows."""
        ends = self.indptr[rows.start : rows.stop + 1]
        keys = np.repeat(np.arange(len(ends) - 1), np.diff(ends)) * self.n_labels
        keys += self.indices[ends[0] : ends[-1]]
        return keys

    @classmethod
    def joined(cls, parts: list[tuple[IntArray, LabelSets]], n_rows: int) -> LabelSets:
        """Return the sets of all rows from those of parts of them, each with its row numbers."""
        n_labels = parts[0][1].n_labels
        sizes = np.zeros(n_rows, dtype=np.int64)
        for rows, labels in parts:
            sizes[rows] = labels.sizes
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        indices = np.empty(indptr[-1], dtype=parts[0][1].indices.dtype)
        for rows, labels in parts:
            first = np.repeat(indptr[rows] - labels.indptr[:-1], labels.sizes)
            indices[first + np.arange(len(labels.indices))] = labels.indices
        return cls(indptr, indices, n_labels)
