"""The interface of an oracle, and the walk along a line of losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..losses import Loss

__all__ = ["Countable", "Oracle", "Walk", "merge_events"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Walk:
    """Linear functionals of the confusion along a line of losses ``constant + g * slope``.

    Between change points nothing changes, so a walk is a list of open intervals of g with the values on each.

    Parameters
    ----------
    lower, upper : ndarray of shape (T + 1,)
        Ends of the intervals; the first begins at -inf, the last ends at inf.
    values : ndarray of shape (T + 1, F)
        The functionals on each interval.
    """

    lower: FloatArray
    upper: FloatArray
    values: FloatArray

    def interior(self, index: IntArray) -> FloatArray:
        """Return a point inside each of the given intervals, one unit away from the last change at the ends."""
        low, high = self.lower[index], self.upper[index]
        # The finite end that an unbounded interval leans on; 0 where there is none.
        base = np.where(np.isinf(low), np.where(np.isinf(high), 0.0, high), low)
        left = np.where(np.isinf(low), base - np.maximum(1.0, np.abs(base)), low)
        right = np.where(np.isinf(high), base + np.maximum(1.0, np.abs(base)), high)
        middle = left + (right - left) / 2
        # Between neighbouring floats the middle is an end: the lower one is right, for a tie there goes to it.
        return np.where(middle >= right, left, middle)

    def best(self, values: FloatArray, n: int) -> IntArray:
        """Return the n intervals of largest value, best first; repeated if there are fewer.

        Among equals the wider comes first: it is the one that new rows are least likely to fall into.
        """
        width = np.nan_to_num(self.upper - self.lower, posinf=0.0)
        cut = np.partition(values, -n)[-n] if len(values) > n else -np.inf
        near = np.flatnonzero(values >= min(cut, values.max() - 1e-12))
        order = near[np.lexsort((-width[near], -np.round(values[near], 12)))][:n]
        return order[np.minimum(np.arange(n), len(order) - 1)]


class Oracle(Protocol):
    """What solvers may ask of the data.

    Attributes
    ----------
    n_classes : ndarray of shape (M,), int
        K_m of each output.
    weight : ndarray of shape (M,)
        n_m, the weight of the observed labels of each output.
    priors : ndarray of shape (M, K)
        Class priors as this oracle counts them.
    certified : bool
        Whether ``confusions`` truly minimises <L, C> over all rules, so that bounds made with it are certificates.
        True where probabilities are counted, False where labels are.
    """

    @property
    def n_classes(self) -> IntArray: ...

    @property
    def weight(self) -> FloatArray: ...

    @property
    def priors(self) -> FloatArray: ...

    @property
    def certified(self) -> bool: ...

    def confusions(self, losses: Sequence[Loss]) -> FloatArray:
        """Return the confusion tensors of the rules of R losses, shape (R, M, K, K), in one pass over the rows."""
        ...

    def walk(
        self, outputs: IntArray, share: FloatArray, line: tuple[Loss, Loss], functionals: FloatArray, tol: float
    ) -> Walk:
        """Follow ``sum_m share_m <F, C[m]>`` for all g along ``line[0] + g * line[1]``.

        Parameters
        ----------
        outputs : ndarray of int
            Outputs that share the line.
        share : ndarray of shape (len(outputs),)
            Their weights.
        line : (constant, slope)
            Losses of one structure, each for a single output.
        functionals : ndarray of shape (F, K, K)
        tol : float
            Change points closer than this, relative to 1 or their size, count as one.

        Returns
        -------
        Walk
        """
        ...


class Countable(Oracle, Protocol):
    """An oracle whose counts can be added to another's."""

    def confusion_of(self, predicted: IntArray) -> FloatArray:
        """Return the confusion tensor (M, K, K) of given decisions, codes of shape (N, M)."""
        ...

    def events(
        self, outputs: IntArray, share: FloatArray, line: tuple[Loss, Loss], functionals: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what :func:`merge_events` makes a walk of: values at g = -inf, change points, changes."""
        ...


def merge_events(start: FloatArray, g: FloatArray, change: FloatArray, tol: float) -> Walk:
    """Sort change points, merge those that coincide, and sum the changes.

    Parameters
    ----------
    start : ndarray of shape (F,)
        Functionals at g = -inf.
    g : ndarray of shape (E,)
    change : ndarray of shape (E, F)
    tol : float
        Change points closer than this, relative to 1 or their size, are one.
    """
    order = np.argsort(g)  # points that coincide are merged, so that their order does not matter
    g = g[order]
    last = np.ones(len(g), dtype=bool)
    last[:-1] = np.diff(g) > (tol * np.maximum(1.0, np.abs(g[1:])) if tol else 0.0)
    begin = np.ones(len(g), dtype=bool)
    begin[1:] = last[:-1]
    running = np.stack([np.cumsum(column[order])[last] for column in change.T], axis=1)
    lower = np.concatenate([[-np.inf], g[last]])
    upper = np.concatenate([g[begin], [np.inf]])
    return Walk(lower, upper, start + np.concatenate([np.zeros((1, len(start))), running]))
