"""Gradients with the class priors free to move: what formulas and differences share.

A bound metric has a gradient at fixed priors, which moves mass within rows. What is lacking is one number per row: what
mass that is added to it is worth. Must not know any one metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["centred", "row_slopes"]

FloatArray = NDArray[np.float64]

_STEP = 1e-4  # of a difference, beside the cell that it moves
_CELLS = 1 << 20  # of confusion matrices that are evaluated together


def centred(slope: FloatArray, confusion: FloatArray) -> FloatArray:
    """Return a gradient (K, K) along the matrices that sum to 1; 0 in the rows of C that are empty."""
    slope = np.where(confusion.sum(axis=1, keepdims=True) > 0, slope, 0.0)
    return np.where(confusion.sum(axis=1, keepdims=True) > 0, slope - np.sum(slope * confusion), 0.0)


class Bindable(Protocol):
    """A metric, as far as it is used here."""

    def bind(self, priors: FloatArray, classes: Sequence[Any] | None = None) -> Any:
        """Return the metric at class priors, which has a value."""
        ...


def row_slopes(metric: Bindable, confusion: FloatArray, slope: FloatArray, classes: Sequence[Any] | None) -> FloatArray:
    """Return what a gradient at fixed priors lacks, row by row: mass is added to the largest cell of each, and taken.

    Parameters
    ----------
    confusion, slope : ndarray of shape (K, K)

    Returns
    -------
    ndarray of shape (K,)
    """
    k = len(confusion)
    cells, rows = confusion.argmax(axis=1), np.arange(k)
    steps = _STEP * confusion[rows, cells]
    out = np.zeros(k)
    for some in np.array_split(rows, min(k, -(-2 * k**3 // _CELLS))):
        sides = np.repeat(confusion[None, None], 2, axis=0).repeat(len(some), axis=1)
        sides[:, rows[: len(some)], some, cells[some]] += np.outer([1.0, -1.0], steps[some])
        sides /= sides.sum(axis=(-2, -1), keepdims=True)
        up, down = metric.bind(sides.sum(axis=-1), classes).value(sides)
        out[some] = (up - down) / np.where(steps[some] > 0, 2 * steps[some], 1.0)
    return np.asarray(out - slope[rows, cells])
