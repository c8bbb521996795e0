"""The interface of an oracle, and what it is asked and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.losses import Loss

__all__ = ["Bins", "Changes", "Line", "Oracle", "Score", "TooManyChangesError", "Walk", "highest", "interior"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Line:
    """Losses ``constant + g * slope`` for groups of outputs, and what to follow along them.

    Parameters
    ----------
    group : ndarray of shape (M,), int
        Which of G lines an output follows; -1 for outputs that are left out.
    share : ndarray of shape (M,)
        Weight of each output within its group.
    constant, slope : Loss
        Losses of one structure, for all G groups.
    functionals : ndarray of shape (G, 2, K, K)
        Two linear functionals F: ``sum_m share_m <F, C[m]>`` over the outputs of each group is followed.
    vanishing : ndarray of shape (G, 2), bool, optional
        Functionals that vanish for large g, and must be exactly 0 there so that 0/0 is recognised.

    See Also
    --------
    Walk : The result of following a line.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.core.losses import Loss
    >>> from metricwise.oracles.base import Line
    >>> gain, size = np.array([[[0.0, 0.0], [0.0, 2.0]]]), np.array([[[0.0, 1.0], [1.0, 2.0]]])  # of F1
    >>> functionals = np.stack([gain, size], axis=1)
    >>> line = Line(np.array([0]), np.array([1.0]), Loss(full=-gain), Loss(full=size), functionals)
    >>> line.functionals.shape
    (1, 2, 2, 2)
    """

    group: IntArray
    share: FloatArray
    constant: Loss
    slope: Loss
    functionals: FloatArray
    vanishing: NDArray[np.bool_] | None = None

    @property
    def n_groups(self) -> int:
        """G."""
        return len(self.functionals)

    @property
    def vanishes(self) -> list[tuple[int, int]]:
        """Groups and functionals that vanish."""
        return [] if self.vanishing is None else [(int(g), int(f)) for g, f in np.argwhere(self.vanishing)]

    def take(self, groups: slice) -> Line:
        """Return the line of some of the groups."""
        begin, end = groups.start, groups.stop
        if begin == 0 and end == self.n_groups:
            return self
        inside = (self.group >= begin) & (self.group < end)
        return Line(
            np.where(inside, self.group - begin, -1),
            self.share,
            self.constant.map(lambda a: a[groups] if len(a) > 1 else a),
            self.slope.map(lambda a: a[groups] if len(a) > 1 else a),
            self.functionals[groups],
            None if self.vanishing is None else self.vanishing[groups],
        )


class TooManyChangesError(RuntimeError):
    """More changes of decisions may hold the best rule than can be held.

    Parameters
    ----------
    n_changes : int
        That may hold it.
    capacity : int
        That can be held.
    """

    def __init__(self, n_changes: int, capacity: int) -> None:
        self.n_changes, self.capacity = n_changes, capacity
        super().__init__(
            f"the best rule is among {n_changes:,} changes of decisions, and the memory limit allows only "
            f"{capacity:,}; raise it, or use a solver that does not follow a line of losses, such as "
            "'dinkelbach' for ratios."
        )

    def __reduce__(self) -> tuple[type[TooManyChangesError], tuple[int, int]]:
        return TooManyChangesError, (self.n_changes, self.capacity)  # it may come from another process

    @property
    def words(self) -> str:
        """What became of it, for a status."""
        return (
            f"Not exact: the best rule is among {self.n_changes:,} changes of decisions, and the memory limit "
            f"allows only {self.capacity:,}; raise it for an exact search."
        )


@dataclass(frozen=True, eq=False)
class Changes:
    """Where decisions change along a line: sums in bins, and a list; see :func:`metricwise.kernels.changes`.

    Functionals and their changes are in units of `scale`, (G,): rows without weights are whole numbers of them, whose
    sums are exact.
    """

    start: FloatArray
    count: NDArray[np.int64]
    sums: FloatArray
    segment: IntArray
    g: FloatArray
    change: FloatArray
    scale: FloatArray

    def __add__(self, other: Changes) -> Changes:
        """Add the changes of other rows along the same line."""
        return Changes(
            self.start + other.start,
            self.count + other.count,
            self.sums + other.sums,
            np.concatenate([self.segment, other.segment]),
            np.concatenate([self.g, other.g]),
            np.concatenate([self.change, other.change]),
            self.scale,
        )

    def merged(self) -> Changes:
        """Return them with those of one place listed once, in order."""
        order = np.lexsort((self.g, self.segment))
        segment, g = self.segment[order], self.g[order]
        first = np.ones(len(g), dtype=bool)
        first[1:] = (segment[1:] != segment[:-1]) | (g[1:] != g[:-1])
        begin = np.flatnonzero(first)
        change = np.add.reduceat(self.change[order], begin, axis=0) if len(begin) else self.change
        return replace(self, segment=segment[begin], g=g[begin], change=change)

    def scaled(self, share: float = 1.0) -> Changes:
        """Return a share of them in units of 1."""
        scale = share * self.scale
        return replace(
            self,
            start=self.start * scale[:, None],
            sums=self.sums * scale[:, None, None],
            change=self.change * scale[self.segment // self.count.shape[1], None],
            scale=np.ones_like(self.scale),
        )


@dataclass(frozen=True, eq=False)
class Bins:
    """Sums of the changes along a line in bins from `low` (G,) to `high` (G,), and outside of them."""

    low: FloatArray
    high: FloatArray
    changes: Changes


class Score(Protocol):
    """A function of the two functionals of each group that is to be as large as possible."""

    def value(self, at: FloatArray) -> FloatArray:
        """Return the values (...) of functionals (..., 2)."""
        ...

    def bound(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return upper bounds (...) of the values between functionals `low` and `high`, each (..., 2)."""
        ...


@dataclass(frozen=True, eq=False)
class Walk:
    """The two functionals along a line, wherever they may be best.

    They are piecewise constant, so a walk is a list of open intervals of g with the values on each.

    Parameters
    ----------
    group : ndarray of shape (T,), int
        The group of each interval; every group has at least one.
    lower, upper : ndarray of shape (T,)
        Ends of the intervals, including -inf and inf.
    values : ndarray of shape (T, 2)
        The functionals on each interval.
    bins : Bins, optional
        Of an outline: what was counted between places, which are the edges of bins, and not all intervals.

    See Also
    --------
    Line : The line that is followed.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.oracles.base import Walk
    >>> ends = np.array([-np.inf, 0.4, np.inf])
    >>> walk = Walk(np.zeros(2, dtype=int), ends[:-1], ends[1:], np.array([[0.4, 1.0], [0.3, 0.5]]))
    >>> (walk.values[:, 0] / walk.values[:, 1]).tolist()
    [0.4, 0.6]
    """

    group: IntArray
    lower: FloatArray
    upper: FloatArray
    values: FloatArray
    bins: Bins | None = None

    @classmethod
    def joined(cls, walks: Sequence[Walk]) -> Walk:
        """Put the intervals of several groups together."""
        if len(walks) == 1:
            return walks[0]
        return cls(
            np.concatenate([walk.group for walk in walks]),
            np.concatenate([walk.lower for walk in walks]),
            np.concatenate([walk.upper for walk in walks]),
            np.concatenate([walk.values for walk in walks]),
        )

    def interior(self, index: IntArray) -> FloatArray:
        """Return a point inside each of the given intervals."""
        return interior(self.lower[index], self.upper[index])

    def best(self, values: FloatArray) -> IntArray:
        """Return the interval of largest value of each group.

        Among equals the widest: it is the one that new rows are least likely to fall into.
        """
        n_groups = int(self.group.max()) + 1
        if n_groups == 1:
            near = np.flatnonzero(values >= values.max() - _ROUNDING)
            if len(near) == 1:
                return near
        width = np.where(np.isfinite(self.lower) & np.isfinite(self.upper), self.upper - self.lower, 0.0)
        near = np.flatnonzero(values >= highest(values, self.group, n_groups)[self.group] - _ROUNDING)
        widest = highest(width[near], self.group[near], n_groups)
        near = near[width[near] == widest[self.group[near]]]
        first = np.full(n_groups, -1, dtype=np.intp)
        first[self.group[near[::-1]]] = near[::-1]
        return first

    def runners_up(self, values: FloatArray, group: int, n: int) -> IntArray:
        """Return the n best intervals of a group, best first; repeated if there are fewer."""
        members = np.flatnonzero(self.group == group)
        order = members[np.argsort(-values[members], kind="stable")][:n]
        return order[np.minimum(np.arange(n), len(order) - 1)]


def interior(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return a point inside each open interval, one unit away from the finite end of an unbounded one."""
    return np.array([_inside(*ends) for ends in zip(low.tolist(), high.tolist(), strict=True)])


def _inside(low: float, high: float) -> float:
    # The finite end that an unbounded interval leans on; 0 where there is none.
    base = low if isfinite(low) else high if isfinite(high) else 0.0
    left = low if isfinite(low) else base - max(1.0, abs(base))
    right = high if isfinite(high) else base + max(1.0, abs(base))
    middle = left + (right - left) / 2
    # Between neighbouring floats the middle is an end: the lower one is right, for a tie there goes to it.
    return left if middle >= right else middle


def highest(values: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    """Largest value of each group."""
    if n_groups == 1:
        return np.asarray(values.max(keepdims=True))
    out = np.full(n_groups, -np.inf)
    np.maximum.at(out, group, values)
    return out


class Oracle(Protocol):
    """The interface of an oracle: everything that solvers may ask of the data.

    Attributes
    ----------
    n_rows : int
        N.
    n_classes : ndarray of shape (M,), int
        K_m of each output; decisions that are not classes, such as abstaining, count as classes without rows.
    weight : ndarray of shape (M,)
        n_m, the weight of the observed labels of each output.
    priors : ndarray of shape (M, K)
        Class priors as this oracle counts them.
    certified : bool
        Whether ``confusions`` truly minimises <L, C> over all rules, so that bounds made with it are certificates. True
        if probabilities are counted, False if labels are.
    entries_read : int
        Entries (a row and an output each) that have been read so far, for this oracle or a sample of it; N * M of them
        are one pass.

    See Also
    --------
    Counts : The oracle over any source.
    """

    @property
    def n_rows(self) -> int: ...

    @property
    def n_classes(self) -> IntArray: ...

    @property
    def weight(self) -> FloatArray: ...

    @property
    def priors(self) -> FloatArray: ...

    @property
    def certified(self) -> bool: ...

    @property
    def entries_read(self) -> int: ...

    def confusions(self, losses: Sequence[Loss], linked: bool = True) -> FloatArray:
        """Return the confusion tensors of the rules of R losses, shape (R, M, K, K), in one pass over the rows.

        Parameters
        ----------
        losses : sequence of R Loss
        linked : bool, default=True
            Whether decisions are based on the probabilities after the link; False for argmax.
        """
        ...

    def confusions_beside(self, judge: Any, losses: Sequence[Loss]) -> tuple[FloatArray, FloatArray]:
        """Return the confusion tensors as this oracle and as one that counts labels of the same rows has them."""
        ...

    def shares(self, losses: Sequence[Loss]) -> FloatArray:
        """Return only the hits (diagonals) and predicted shares (column sums) of these tensors, (R, M, 2, K).

        With very many classes, this is far less to count and to store.
        """
        ...

    def walk(self, line: Line, tol: float, score: Score | None = None, bins: Bins | None = None) -> Walk:
        """Follow functionals of the confusion for all g along a line of losses.

        Parameters
        ----------
        line : Line
        tol : float
            Changes closer than this, relative to the larger of 1 and their size, count as one.
        score : Score, optional
            What is to be as large as possible: intervals that provably do not have the largest value of their group
            may be left out, which saves the sorting of all changes. None: all intervals are listed.
        bins : Bins, optional
            Of an outline of the line: with a score, the search begins with them.

        Returns
        -------
        Walk
        """
        ...

    def outline(self, line: Line) -> Walk:
        """Follow functionals of one group along a line of losses, at many places all along it.

        Few changes are all listed, as :meth:`walk` does; of more, places are the edges of bins, with a width of 0.
        """
        ...

    def sample(self, n_rows: int) -> Oracle:
        """Return the oracle of a sample of about `n_rows` rows, stratified by class and reweighted, always the same
        rows.

        The oracle itself is returned if it has no more rows.
        """
        ...
