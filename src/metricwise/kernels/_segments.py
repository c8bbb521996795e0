"""Searches along segments between summaries, of many at once: the NumPy twins."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class RatioMeans(NamedTuple):
    """Means over K classes of a ratio of two linear functions of shares, for G groups.

    Summaries (..., G, 2 K) hold the hits of all classes, then their predicted shares. A function is ``hit * h + true *
    pi + predicted * q + total * sum(pi)``, summed in this order, and so are the classes.
    """

    weights: FloatArray  # (G, K)
    priors: FloatArray  # (G, K)
    numerator: tuple[float, float, float, float]  # of hit, true, predicted and all rows
    denominator: tuple[float, float, float, float]
    zero_division: float  # the ratio where the denominator is at most `empty`
    empty: float

    def values(self, summaries: FloatArray) -> FloatArray:
        """Return the means (..., G) of summaries (..., G, 2 K)."""
        k = self.weights.shape[-1]
        hit, predicted = summaries[..., :k], summaries[..., k:]
        total = self.priors.sum(axis=-1, keepdims=True)

        def function(of: tuple[float, float, float, float]) -> FloatArray:
            return np.asarray(of[0] * hit + of[1] * self.priors + of[2] * predicted + of[3] * total)

        above, below = function(self.numerator), function(self.denominator)
        empty = np.abs(below) <= self.empty
        ratio = np.where(empty, self.zero_division, above / np.where(empty, 1.0, below))
        return np.asarray(np.sum(self.weights * ratio, axis=-1))


def search_segments(
    values_at: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    step: FloatArray,
    longest: FloatArray,
    grid: FloatArray,
    n_zooms: int,
) -> FloatArray:
    """Return the lengths at which a function of summaries is largest along segments, by zooming in on a grid.

    Parameters
    ----------
    values_at : callable
        Takes summaries (..., G, D), returns values (..., G).
    start, step : ndarray of shape (..., G, D)
    longest : ndarray of shape (..., G)
    grid : ndarray of shape (T,)
        From 0 to 1, evenly.
    n_zooms : int

    Returns
    -------
    ndarray of shape (..., G)
        Lengths in [0, longest].
    """
    low, high = np.zeros_like(longest), longest
    steps = grid.reshape((-1,) + (1,) * longest.ndim)
    chosen = low
    for _ in range(n_zooms):
        lengths = low + steps * (high - low)
        values = values_at(start + lengths[..., None] * step)
        # Of equal values the longest step wins: it drops a vertex where it can.
        best = len(grid) - 1 - np.argmax(values[::-1], axis=0)
        chosen = np.take_along_axis(lengths, best[None], axis=0)[0]
        width = (high - low) / (len(grid) - 1)
        low, high = np.maximum(low, chosen - width), np.minimum(high, chosen + width)
    return np.asarray(chosen)


def search_ratio_means(
    means: RatioMeans, start: FloatArray, step: FloatArray, longest: FloatArray, grid: FloatArray, n_zooms: int
) -> FloatArray:
    """Return the lengths at which means of ratios are largest along segments: see :func:`search_segments`.

    The twins return the same bits.
    """
    return search_segments(means.values, start, step, longest, grid, n_zooms)
