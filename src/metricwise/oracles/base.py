"""The interface of an oracle, and the walk along a line of losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..kernels.sums import sums_to_zero
from ..losses import Loss

__all__ = ["Changes", "Countable", "Line", "Oracle", "Score", "Walk", "follow", "interior"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_ALL_ROWS = 1 << 13  # so many changes of a group are sorted at once; more are looked at through bins first
_BATCH = 1 << 20  # entries whose changes are listed together
_SEGMENTS = 1 << 15  # bins of all groups that are searched together
_BINS = (256, 8192)  # of one group
_PER_BIN = 100  # entries, for a bin that is hardly ever hit costs more than it saves
_MANY = 16  # groups, whose changes are too many to be sorted sooner than those of a few
_SAMPLE = 1 << 10  # rows that say where the changes lie, fewer of many outputs
_ZOOMS = 3
_ROUNDING = 1e-12
_NEAR = 1e-6  # intervals this much below the best are not worth a try, whatever rounding does to it


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
        Of one structure, with the losses of all G groups.
    functionals : ndarray of shape (G, 2, K, K)
        Two linear functionals F: ``sum_m share_m <F, C[m]>`` over the outputs of each group is followed.
    vanishing : ndarray of shape (G, 2), bool, optional
        Functionals that are 0 once g is large enough, and must be so exactly for a 0/0 to be one.
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

    def scaled(self) -> Changes:
        """Return the same in units of 1."""
        own = self.scale[self.segment // self.count.shape[1]]
        return replace(
            self,
            start=self.start * self.scale[:, None],
            sums=self.sums * self.scale[:, None, None],
            change=self.change * own[:, None],
            scale=np.ones_like(self.scale),
        )


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
    """The two functionals of a line wherever they may be best.

    Between changes nothing changes, so a walk is a list of open intervals of g with the values on each.

    Parameters
    ----------
    group : ndarray of shape (T,), int
        The group that an interval is of; every group has one at least.
    lower, upper : ndarray of shape (T,)
        Ends of the intervals, -inf and inf among them.
    values : ndarray of shape (T, 2)
        The functionals on each interval.
    """

    group: IntArray
    lower: FloatArray
    upper: FloatArray
    values: FloatArray

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
        near = np.flatnonzero(values >= _highest(values, self.group, n_groups)[self.group] - _ROUNDING)
        widest = _highest(width[near], self.group[near], n_groups)
        near = near[width[near] == widest[self.group[near]]]
        first = np.full(n_groups, -1, dtype=np.intp)
        first[self.group[near[::-1]]] = near[::-1]
        return first

    def runners_up(self, values: FloatArray, group: int, n: int) -> IntArray:
        """Return the n best intervals of a group, best first; repeated if there are fewer."""
        own = np.flatnonzero(self.group == group)
        order = own[np.argsort(-values[own], kind="stable")][:n]
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


def _highest(values: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    """Largest value of each group."""
    if n_groups == 1:
        return np.asarray(values.max(keepdims=True))
    out = np.full(n_groups, -np.inf)
    np.maximum.at(out, group, values)
    return out


class Oracle(Protocol):
    """What solvers may ask of the data.

    Attributes
    ----------
    n_rows : int
        N.
    n_classes : ndarray of shape (M,), int
        K_m of each output.
    weight : ndarray of shape (M,)
        n_m, the weight of the observed labels of each output.
    priors : ndarray of shape (M, K)
        Class priors as this oracle counts them.
    certified : bool
        Whether ``confusions`` truly minimises <L, C> over all rules, so that bounds made with it are certificates.
        True where probabilities are counted, False where labels are.
    entries_read : int
        Entries (a row and an output each) that have been read so far, for this oracle or a sample of it; N * M of them
        are one pass. An oracle that counts labels and probabilities reads each entry twice.
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

    def confusions(self, losses: Sequence[Loss]) -> FloatArray:
        """Return the confusion tensors of the rules of R losses, shape (R, M, K, K), in one pass over the rows."""
        ...

    def shares(self, losses: Sequence[Loss]) -> FloatArray:
        """Return hits (the diagonals) and predicted shares (the column sums) of those tensors alone, (R, M, 2, K).

        With very many classes that is far less to count, and to hold.
        """
        ...

    def walk(self, line: Line, tol: float, score: Score | None = None) -> Walk:
        """Follow functionals of the confusion for all g along a line of losses.

        Parameters
        ----------
        line : Line
        tol : float
            Changes closer than this, relative to 1 or their size, count as one.
        score : Score, optional
            What is to be as large as possible: intervals that provably do not have the largest value of their group
            may be left out, which saves the sorting of all changes. None: all intervals are listed.

        Returns
        -------
        Walk
        """
        ...

    def sample(self, n_rows: int) -> Oracle:
        """Return the oracle of about so many of the rows, stratified by class and weighted back, always the same ones.

        Itself if it has no more.
        """
        ...


class Countable(Oracle, Protocol):
    """An oracle whose counts can be added to another's."""

    def confusion_of(self, predicted: IntArray) -> FloatArray:
        """Return the confusion tensor (M, K, K) of given decisions, codes of shape (N, M)."""
        ...

    def changes(
        self, line: Line, grid: FloatArray, n_bins: int, wanted: NDArray[np.bool_] | None, summed: bool
    ) -> Changes:
        """Note the changes along a line; see :func:`metricwise.kernels.changes`."""
        ...

    def sample(self, n_rows: int) -> Countable: ...

    def glance(self, n_rows: int) -> Countable:
        """Return the oracle of so many rows that are quick to read: for what costs time at the most if they mislead."""
        ...


# ----------------------------------------------------------------------------------------------------- following a line


def follow(oracle: Countable, line: Line, tol: float, score: Score | None) -> Walk:
    """Walk along a line with any oracle that can note changes; see :meth:`Oracle.walk`.

    Few changes are listed and sorted. Many are summed in bins of g first: the sums of their positive and of their
    negative parts bound the functionals within a bin, and only bins that can hold the largest value are listed.
    """
    outputs = np.bincount(line.group[line.group >= 0], minlength=line.n_groups)
    entries = oracle.n_rows * max(int(outputs.max(initial=0)), 1)
    if score is None or entries <= (_ALL_ROWS if line.n_groups < _MANY else _ALL_ROWS // 8):
        per_batch = max(1, _BATCH // entries)
        walks = [
            _list_all(oracle, line.take(slice(begin, min(begin + per_batch, line.n_groups))), tol, begin)
            for begin in range(0, line.n_groups, per_batch)
        ]
    else:
        per_batch = max(1, _SEGMENTS // int(np.clip(entries // _PER_BIN, *_BINS)))
        walks = [
            _search(oracle, line.take(slice(begin, min(begin + per_batch, line.n_groups))), tol, score, begin, entries)
            for begin in range(0, line.n_groups, per_batch)
        ]
    if len(walks) == 1:
        return walks[0]
    return Walk(
        np.concatenate([walk.group for walk in walks]),
        np.concatenate([walk.lower for walk in walks]),
        np.concatenate([walk.upper for walk in walks]),
        np.concatenate([walk.values for walk in walks]),
    )


def _list_all(oracle: Countable, line: Line, tol: float, offset: int) -> Walk:
    grid, wanted = np.zeros((line.n_groups, 2)), np.ones((line.n_groups, 2), dtype=bool)
    found = oracle.changes(line, grid, 0, wanted, True)
    return _intervals(found, line, wanted, np.full((line.n_groups, 1), np.inf), tol, offset)


def _search(oracle: Countable, line: Line, tol: float, score: Score, offset: int, n_entries: int) -> Walk:
    """Search groups of at most so many entries."""
    n_bins = int(np.clip(min(_SEGMENTS // line.n_groups, n_entries // _PER_BIN), *_BINS))
    low, high = _range(oracle, line)
    enough = max(oracle.n_rows * int((line.group >= 0).sum()) // 4, _ALL_ROWS * line.n_groups)
    passes = 0
    while True:
        grid = np.stack([low, n_bins / (high - low)], axis=1)
        found = oracle.changes(line, grid, n_bins, None, True)
        wanted = _promising(found, line, score)
        if passes:  # what lies outside has been ruled out
            wanted[:, [0, -1]] = False
        passes += 1
        narrower = _hull(wanted, low, high, n_bins)
        if passes == _ZOOMS or found.count[wanted].sum() <= enough or narrower is None:
            break
        low, high = narrower
    events = oracle.changes(line, grid, n_bins, wanted, False)
    found = replace(found, segment=events.segment, g=events.g, change=events.change)
    edges = low[:, None] + np.arange(n_bins + 1) / grid[:, 1:]
    walk = _intervals(found, line, wanted, edges, tol, offset)
    values, group = score.value(walk.values), walk.group - offset
    near = values >= _highest(values, group, line.n_groups)[group] - _NEAR
    return Walk(walk.group[near], walk.lower[near], walk.upper[near], walk.values[near])


def _range(oracle: Countable, line: Line) -> tuple[FloatArray, FloatArray]:
    """Where most changes of each group lie, by a sample of the rows."""
    groups = line.n_groups
    sample = oracle.glance(int(np.clip((1 << 13) // len(line.group), 128, _SAMPLE)))
    grid, wanted = np.zeros((groups, 2)), np.ones((groups, 2), dtype=bool)
    found = sample.changes(line, grid, 0, wanted, False)
    segment, g, _ = _ordered(found, 2)
    ends = np.searchsorted(segment // 2, np.arange(groups + 1))
    number = np.diff(ends)
    some = np.append(g, 0.0)  # a group without a change may look anywhere
    low = some[np.minimum(ends[:-1] + number // 100, len(g))]
    high = some[np.minimum(np.maximum(ends[1:] - 1 - number // 100, ends[:-1]), len(g))]
    margin = 0.01 * (high - low) + 1e-6 * np.maximum(1.0, np.abs(low))
    return low - margin, high + margin


def _promising(found: Changes, line: Line, score: Score) -> NDArray[np.bool_]:
    """Bins within which the score may be largest, (G, B + 2)."""
    unit = found.scale[:, None, None]
    change, size = found.sums[..., :2], found.sums[..., 2:]
    edges = np.cumsum(np.concatenate([found.start[:, None], change], axis=1), axis=1)
    for g, f in line.vanishes:
        edges[g, :, f] = sums_to_zero(found.start[g, f], change[g, :, f])
    before, after = edges[:, :-1], edges[:, 1:]
    low, high = (before - (size - change) / 2) * unit, (before + (size + change) / 2) * unit
    best = np.maximum(score.value(after * unit).max(axis=1), score.value(found.start * unit[:, 0]))
    slack = _ROUNDING * (1.0 + np.abs(before * unit))
    ceiling = score.bound(low - slack, high + slack)
    # The bins beside the best edge are never closed: their bounds are at least its value.
    return np.asarray((found.count > 0) & (ceiling >= best[:, None] - _ROUNDING))


def _hull(
    wanted: NDArray[np.bool_], low: FloatArray, high: FloatArray, n_bins: int
) -> tuple[FloatArray, FloatArray] | None:
    """The range of g that all wanted bins lie in, or None if it is not much smaller or a bin is unbounded."""
    if wanted[:, 0].any() or wanted[:, -1].any():
        return None
    first = wanted.argmax(axis=1) - 1
    last = n_bins + 1 - wanted[:, ::-1].argmax(axis=1)
    some = wanted.any(axis=1)
    if np.any(some & (last - first > n_bins // 2)):
        return None
    step = (high - low) / n_bins
    # Half a bin of margin: an edge is not exactly where the bins meet.
    begin = np.where(some, low + (first - 0.5) * step, low)
    return begin, np.where(some, low + (last + 0.5) * step, high)


def _intervals(
    found: Changes, line: Line, wanted: NDArray[np.bool_], edges: FloatArray, tol: float, offset: int
) -> Walk:
    """Turn listed changes into the intervals between them.

    Parameters
    ----------
    edges : ndarray of shape (G, B + 1)
        Where the bins meet, up to rounding.
    """
    n_groups, n_segments = wanted.shape
    if n_groups == 1 and n_segments == 2:
        return _line_of_one(found, line, tol, offset)
    segment, g, change = _ordered(found, n_segments)
    if len(g) == 0:
        return Walk(*_whole_lines(np.arange(n_groups), offset), found.start * found.scale[:, None])
    begins = np.concatenate([[0], np.flatnonzero(segment[1:] != segment[:-1]) + 1])  # first change of each segment
    sizes = np.diff(begins, append=len(g))
    own, ends = segment[begins], begins + sizes - 1
    left, right = _ends(found.count, own, g[begins], g[ends], edges)
    base = (found.start[:, None] + np.cumsum(found.sums[..., :2], axis=1) - found.sums[..., :2]).reshape(-1, 2)[own]
    # Behind each change, and before the first of each segment.
    lower, upper = np.concatenate([g, left]), np.concatenate([g[1:], right[-1:], g[begins]])
    upper[ends] = right
    unit = found.scale[own // n_segments]
    values = np.empty((len(lower), 2))
    for f in range(2):
        running = np.cumsum(change[:, f])
        # Running sums start anew with each segment: what they were before its first change is taken off.
        running += np.repeat(base[:, f] - running[begins] + change[begins, f], sizes)
        values[: len(g), f] = running * np.repeat(unit, sizes)
        values[len(g) :, f] = base[:, f] * unit
    for s, f in _last_segments(found.count, own, line):
        part = slice(begins[s], begins[s] + sizes[s])
        sums = sums_to_zero(base[s, f], change[part, f]) * unit[s]
        values[len(g) + s, f], values[part, f] = sums[0], sums[1:]
    group = np.concatenate([segment, own]) // n_segments if n_groups > 1 else np.zeros(len(lower), dtype=np.intp)
    with np.errstate(invalid="ignore"):  # from -inf to -inf there is nothing, which is no interval
        gap = tol * np.maximum(1.0, np.abs(np.where(np.isinf(lower), upper, lower))) if tol else 0.0
        there = upper - lower > gap
    silent = np.flatnonzero(np.bincount(group[there], minlength=n_groups) == 0)
    if there.all() and len(silent) == 0:
        return Walk(group + offset if offset else group, lower, upper, values)
    whole = _whole_lines(silent, 0)
    return Walk(
        np.concatenate([group[there], whole[0]]) + offset,
        np.concatenate([lower[there], whole[1]]),
        np.concatenate([upper[there], whole[2]]),
        np.concatenate([values[there], (found.start * found.scale[:, None])[silent]]),
    )


def _last_segments(count: NDArray[np.int64], own: IntArray, line: Line) -> list[tuple[int, int]]:
    """Listed segments after which nothing changes in groups with a functional that vanishes, and the functional."""
    group, segment = np.divmod(own, count.shape[1])
    ends = count.shape[1] - 1 - (count[:, ::-1] > 0).argmax(axis=1)
    listed = dict(zip(group[segment == ends[group]].tolist(), np.flatnonzero(segment == ends[group]), strict=True))
    return [(int(listed[g]), f) for g, f in line.vanishes if g in listed]


def _line_of_one(found: Changes, line: Line, tol: float, offset: int) -> Walk:
    """The same for one group all of whose changes are listed, which is how small problems are walked."""
    order = np.argsort(found.g)
    g = found.g[order]
    values = np.concatenate([found.start, found.change[order]])
    exact = {f: sums_to_zero(values[0, f], values[1:, f]) for _, f in line.vanishes}
    np.cumsum(values, axis=0, out=values)
    for f, sums in exact.items():
        values[:, f] = sums
    values *= found.scale[0]
    lower, upper = np.concatenate([[-np.inf], g]), np.concatenate([g, [np.inf]])
    if len(g):
        there = np.ones(len(lower), dtype=bool)
        there[1:-1] = g[1:] - g[:-1] > (tol * np.maximum(1.0, np.abs(g[:-1])) if tol else 0.0)
        lower, upper, values = lower[there], upper[there], values[there]
    return Walk(np.full(len(lower), offset), lower, upper, values)


def _ordered(found: Changes, n_segments: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Segments, places and changes in order of group and place."""
    segment, g, change = found.segment, found.g, found.change
    behind = (segment[1:] > segment[:-1]) | ((segment[1:] == segment[:-1]) & (g[1:] >= g[:-1]))
    if behind.all():  # as kernels that keep groups apart leave them
        return segment, g, change
    order = _order(segment // n_segments, g)
    return segment[order], g[order], change[order]


def _order(group: IntArray, g: FloatArray) -> IntArray:
    """Order by group, of which there are less than 2^16, and g."""
    if (group == group[0]).all():
        return np.argsort(g, kind="stable")  # which makes use of parts that are in order
    order = np.argsort(g)
    return order[np.argsort(group[order].astype(np.uint16), kind="stable")]  # a radix sort, for integers so small


def _whole_lines(groups: IntArray, offset: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Intervals from -inf to inf of groups whose decisions never change."""
    return groups + offset, np.full(len(groups), -np.inf), np.full(len(groups), np.inf)


def _ends(
    count: NDArray[np.int64], own: IntArray, first: FloatArray, last: FloatArray, edges: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """How far nothing changes to the left of the first and to the right of the last change of each listed segment.

    Up to the listed segment that comes before or after it, or to the edge of the bin that is not listed but has
    changes, or to infinity.
    """
    n_segments = count.shape[1]
    if n_segments == 2:  # all changes of a group are in one segment
        return np.full(len(own), -np.inf), np.full(len(own), np.inf)
    full = np.flatnonzero(count.reshape(-1) > 0)
    listed = np.full(count.size, -1, dtype=np.intp)
    listed[own] = np.arange(len(own))
    at = np.searchsorted(full, own)
    group = own // n_segments

    def reach(neighbour: IntArray, outside: float, known: FloatArray, side: int) -> FloatArray:
        there = np.append(full, -1)[neighbour]
        inside = (neighbour >= 0) & (neighbour < len(full)) & (there // n_segments == group)
        there = np.where(inside, there, own)
        edge = edges[group, np.clip(there % n_segments + side, 0, edges.shape[1] - 1)]
        index = listed[there]
        return np.where(inside, np.where(index >= 0, known[index], edge), outside)

    # Bin b lies between edges b - 1 and b.
    return reach(at - 1, -np.inf, last, 0), reach(at + 1, np.inf, first, -1)
