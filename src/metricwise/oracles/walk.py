"""The walk along a line of losses: few changes are listed, many are searched through bins."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..kernels.sums import sums_to_zero
from .base import Bins, Changes, FloatArray, IntArray, Line, Score, Walk, highest

__all__ = ["Countable", "follow", "outline"]

_ALL_ROWS = 1 << 13  # so many changes of a group are sorted at once; more are looked at through bins first
_BATCH = 1 << 16  # changes that may be listed together: what is made of them stays in cache
_SEGMENTS = 1 << 15  # bins of all groups that are searched together
_BINS = (256, 8192)  # of one group
_PER_BIN = 100  # entries, for a bin that is hardly ever hit costs more than it saves
_MANY = 4  # groups, whose changes are too many to be sorted sooner than those of a few
_SAMPLE = 1 << 10  # rows that say where the changes lie, fewer of many outputs
_ZOOMS, _MOST_ZOOMS = 3, 8  # into the bins that may hold the best, and where no more of them can be held
_ROUNDING = 1e-12
_OUTLINE = (1 << 15, 1 << 13)  # changes that an outline lists one by one; of more, the bins at whose edges it is known
_NEAR = 1e-6  # intervals this much below the best are not worth a try, whatever rounding does to it


class Countable(Protocol):
    """An oracle that can note changes along a line."""

    @property
    def n_rows(self) -> int: ...

    @property
    def capacity(self) -> int | None: ...

    def changes(
        self, line: Line, grid: FloatArray, n_bins: int, listed_bins: NDArray[np.bool_] | None, summed: bool
    ) -> Changes:
        """Note the changes along a line; see :func:`metricwise.kernels.changes`."""
        ...

    def glance(self, n_rows: int) -> Countable:
        """Return the oracle of so many rows that are quick to read: for what costs time at the most if they mislead."""
        ...


def follow(oracle: Countable, line: Line, tol: float, score: Score | None, bins: Bins | None = None) -> Walk:
    """Walk along a line with any oracle that can note changes; see :meth:`Oracle.walk`.

    Few changes are listed and sorted. Many are summed in bins of g first: the sums of their positive and of their
    negative parts bound the functionals within a bin, and only bins that can hold the largest value are listed.
    """
    if score is not None and bins is not None:
        return _search(oracle, line, tol, score, 0, bins)
    outputs = np.bincount(line.group[line.group >= 0], minlength=line.n_groups)
    entries = oracle.n_rows * max(int(outputs.max(initial=0)), 1)
    most = entries * max(line.functionals.shape[-1] - 1, 1)  # changes of a group
    few = entries <= (_ALL_ROWS if line.n_groups < _MANY else _ALL_ROWS // 8)
    if score is None or (few and (oracle.capacity is None or most <= oracle.capacity)):
        per_batch = max(1, _BATCH // max(most, 1))
        walks = [
            _list_all(oracle, line.take(slice(begin, min(begin + per_batch, line.n_groups))), tol, begin, score)
            for begin in range(0, line.n_groups, per_batch)
        ]
    else:
        per_batch = max(1, _SEGMENTS // int(np.clip(entries // _PER_BIN, *_BINS)))
        walks = [
            _search(oracle, line.take(slice(begin, min(begin + per_batch, line.n_groups))), tol, score, begin)
            for begin in range(0, line.n_groups, per_batch)
        ]
    return Walk.joined(walks)


def outline(oracle: Countable, line: Line) -> Walk:
    """Return the functionals of one group at many places all along a line; see :meth:`Oracle.outline`."""
    entries = oracle.n_rows * int((line.group >= 0).sum())
    if entries <= min(_OUTLINE[0], entries if oracle.capacity is None else oracle.capacity):
        return _list_all(oracle, line, 0.0, 0, None)
    low, high = _range(oracle, line, 1.0)
    bins = _in_bins(oracle, line, low, high, _OUTLINE[1])
    changes = bins.changes
    start, change = changes.start[0], changes.sums[0, :, :2]
    values = np.concatenate([start[None], start + np.cumsum(change, axis=0)])
    for _, f in line.vanishes:
        values[:, f] = sums_to_zero(start[f], change[:, f])
    edges = low[0] + np.arange(_OUTLINE[1] + 1) * ((high - low)[0] / _OUTLINE[1])
    lower, upper = np.concatenate([[-np.inf], edges, edges[-1:]]), np.concatenate([edges[:1], edges, [np.inf]])
    return Walk(np.zeros(len(values), dtype=np.intp), lower, upper, values * changes.scale[0], bins)


def _in_bins(oracle: Countable, line: Line, low: FloatArray, high: FloatArray, n_bins: int) -> Bins:
    """Sum changes in so many bins of each group."""
    grid = np.stack([low, n_bins / (high - low)], axis=1)
    return Bins(low, high, oracle.changes(line, grid, n_bins, None, True))


def _list_all(oracle: Countable, line: Line, tol: float, offset: int, score: Score | None) -> Walk:
    grid, listed_bins = np.zeros((line.n_groups, 2)), np.ones((line.n_groups, 2), dtype=bool)
    changes = oracle.changes(line, grid, 0, listed_bins, True)
    if line.n_groups == 1:
        return _line_of_one(changes, line, tol, offset)
    return _lines(changes, line, tol, offset, score if line.n_groups >= _MANY else None)


def _nearest(walk: Walk, score: Score, offset: int, n_groups: int) -> Walk:
    """Return the intervals that are as good as the best of their group, or nearly so."""
    values, group = score.value(walk.values), walk.group - offset
    near = values >= highest(values, group, n_groups)[group] - _NEAR
    return Walk(walk.group[near], walk.lower[near], walk.upper[near], walk.values[near])


def _search(oracle: Countable, line: Line, tol: float, score: Score, offset: int, bins: Bins | None = None) -> Walk:
    """Search groups, from bins on if there are any."""
    if bins is None:
        outputs = np.bincount(line.group[line.group >= 0], minlength=line.n_groups)
        entries = oracle.n_rows * max(int(outputs.max(initial=0)), 1)
        n_bins = int(np.clip(min(_SEGMENTS // line.n_groups, entries // _PER_BIN), *_BINS))
        bins = _in_bins(oracle, line, *_range(oracle, line), n_bins)
    n_bins = bins.changes.count.shape[1] - 2
    enough = max(oracle.n_rows * int((line.group >= 0).sum()) // 4, _ALL_ROWS * line.n_groups)
    zooms = _ZOOMS
    if oracle.capacity is not None and oracle.capacity < enough:
        enough, zooms = oracle.capacity, _MOST_ZOOMS
    for zoom in range(zooms):
        listed_bins = _promising(bins.changes, line, score)
        if zoom:  # what lies outside has been ruled out
            listed_bins[:, [0, -1]] = False
        narrower = _hull(listed_bins, bins.low, bins.high, n_bins)
        if zoom == zooms - 1 or bins.changes.count[listed_bins].sum() <= enough or narrower is None:
            break
        bins = _in_bins(oracle, line, *narrower, n_bins)
    grid = np.stack([bins.low, n_bins / (bins.high - bins.low)], axis=1)
    events = oracle.changes(line, grid, n_bins, listed_bins, False)
    changes = replace(bins.changes, segment=events.segment, g=events.g, change=events.change)
    edges = bins.low[:, None] + np.arange(n_bins + 1) / grid[:, 1:]
    return _nearest(_intervals(changes, line, listed_bins, edges, tol, offset), score, offset, line.n_groups)


def _range(oracle: Countable, line: Line, wider: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Where most changes of each group lie, by a sample of the rows, and those of it that are at most so far away.

    That is in units of the range of most.
    """
    groups = line.n_groups
    sample = oracle.glance(int(np.clip((1 << 13) // len(line.group), 128, _SAMPLE)))
    grid, listed_bins = np.zeros((groups, 2)), np.ones((groups, 2), dtype=bool)
    changes = sample.changes(line, grid, 0, listed_bins, False)
    segment, g, _ = _ordered(changes, 2)
    ends = np.searchsorted(segment // 2, np.arange(groups + 1))
    number = np.diff(ends)
    some = np.append(g, 0.0)  # a group without a change may look anywhere
    low = some[np.minimum(ends[:-1] + number // 100, len(g))]
    high = some[np.minimum(np.maximum(ends[1:] - 1 - number // 100, ends[:-1]), len(g))]
    if wider:
        first, last = some[np.minimum(ends[:-1], len(g))], some[np.minimum(np.maximum(ends[1:] - 1, ends[:-1]), len(g))]
        reach = wider * (high - low)
        low, high = np.maximum(low - reach, first), np.minimum(high + reach, last)
    margin = 0.01 * (high - low) + 1e-6 * np.maximum(1.0, np.abs(low))
    return low - margin, high + margin


def _promising(changes: Changes, line: Line, score: Score) -> NDArray[np.bool_]:
    """Bins within which the score may be largest, (G, B + 2)."""
    unit = changes.scale[:, None, None]
    change, size = changes.sums[..., :2], changes.sums[..., 2:]
    edges = np.cumsum(np.concatenate([changes.start[:, None], change], axis=1), axis=1)
    for g, f in line.vanishes:
        edges[g, :, f] = sums_to_zero(changes.start[g, f], change[g, :, f])
    before, after = edges[:, :-1], edges[:, 1:]
    low, high = (before - (size - change) / 2) * unit, (before + (size + change) / 2) * unit
    best = np.maximum(score.value(after * unit).max(axis=1), score.value(changes.start * unit[:, 0]))
    slack = _ROUNDING * (1.0 + np.abs(before * unit))
    ceiling = score.bound(low - slack, high + slack)
    # The bins beside the best edge are never closed: their bounds are at least its value.
    return np.asarray((changes.count > 0) & (ceiling >= best[:, None] - _ROUNDING))


def _hull(
    listed_bins: NDArray[np.bool_], low: FloatArray, high: FloatArray, n_bins: int
) -> tuple[FloatArray, FloatArray] | None:
    """The range of g that all wanted bins lie in, or None if it is not much smaller or a bin is unbounded."""
    if listed_bins[:, 0].any() or listed_bins[:, -1].any():
        return None
    first = listed_bins.argmax(axis=1) - 1
    last = n_bins + 1 - listed_bins[:, ::-1].argmax(axis=1)
    some = listed_bins.any(axis=1)
    if np.any(some & (last - first > n_bins // 2)):
        return None
    step = (high - low) / n_bins
    # Half a bin of margin: an edge is not exactly where the bins meet.
    begin = np.where(some, low + (first - 0.5) * step, low)
    return begin, np.where(some, low + (last + 0.5) * step, high)


def _intervals(
    changes: Changes, line: Line, listed_bins: NDArray[np.bool_], edges: FloatArray, tol: float, offset: int
) -> Walk:
    """Turn listed changes into the intervals between them.

    Parameters
    ----------
    edges : ndarray of shape (G, B + 1)
        Where the bins meet, up to rounding.
    """
    n_groups, n_segments = listed_bins.shape
    segment, g, change = _ordered(changes, n_segments)
    if len(g) == 0:
        return Walk(*_whole_lines(np.arange(n_groups), offset), changes.start * changes.scale[:, None])
    begins = np.concatenate([[0], np.flatnonzero(segment[1:] != segment[:-1]) + 1])  # first change of each segment
    sizes = np.diff(begins, append=len(g))
    listed_segments, ends = segment[begins], begins + sizes - 1
    left, right = _ends(changes.count, listed_segments, g[begins], g[ends], edges)
    base = (changes.start[:, None] + np.cumsum(changes.sums[..., :2], axis=1) - changes.sums[..., :2]).reshape(-1, 2)[
        listed_segments
    ]
    # Behind each change, and before the first of each segment.
    lower, upper = np.concatenate([g, left]), np.concatenate([g[1:], right[-1:], g[begins]])
    upper[ends] = right
    unit = changes.scale[listed_segments // n_segments]
    values = np.empty((len(lower), 2))
    for f in range(2):
        running = np.cumsum(change[:, f])
        # Running sums start anew with each segment: what they were before its first change is taken off.
        running += np.repeat(base[:, f] - running[begins] + change[begins, f], sizes)
        values[: len(g), f] = running * np.repeat(unit, sizes)
        values[len(g) :, f] = base[:, f] * unit
    for s, f in _last_segments(changes.count, listed_segments, line):
        part = slice(begins[s], begins[s] + sizes[s])
        sums = sums_to_zero(base[s, f], change[part, f]) * unit[s]
        values[len(g) + s, f], values[part, f] = sums[0], sums[1:]
    group = (
        np.concatenate([segment, listed_segments]) // n_segments
        if n_groups > 1
        else np.zeros(len(lower), dtype=np.intp)
    )
    with np.errstate(invalid="ignore"):  # from -inf to -inf there is nothing, which is no interval
        gap = tol * np.maximum(1.0, np.abs(np.where(np.isinf(lower), upper, lower))) if tol else 0.0
        nonempty = upper - lower > gap
    silent = np.flatnonzero(np.bincount(group[nonempty], minlength=n_groups) == 0)
    if nonempty.all() and len(silent) == 0:
        return Walk(group + offset if offset else group, lower, upper, values)
    whole = _whole_lines(silent, 0)
    return Walk(
        np.concatenate([group[nonempty], whole[0]]) + offset,
        np.concatenate([lower[nonempty], whole[1]]),
        np.concatenate([upper[nonempty], whole[2]]),
        np.concatenate([values[nonempty], (changes.start * changes.scale[:, None])[silent]]),
    )


def _last_segments(count: NDArray[np.int64], listed_segments: IntArray, line: Line) -> list[tuple[int, int]]:
    """Listed segments after which nothing changes in groups with a functional that vanishes, and the functional."""
    group, segment = np.divmod(listed_segments, count.shape[1])
    ends = count.shape[1] - 1 - (count[:, ::-1] > 0).argmax(axis=1)
    listed = dict(zip(group[segment == ends[group]].tolist(), np.flatnonzero(segment == ends[group]), strict=True))
    return [(int(listed[g]), f) for g, f in line.vanishes if g in listed]


def _lines(changes: Changes, line: Line, tol: float, offset: int, score: Score | None) -> Walk:
    """The same for groups all of whose changes are listed, side by side as the rows of one array.

    With a score, only the intervals that are as good as the best of their group, or nearly so.
    """
    n_groups = line.n_groups
    segment, g, change = _ordered(changes, 2)
    size = np.bincount(segment // 2, minlength=n_groups)
    most = int(size.max(initial=0))
    filled = np.arange(most) < size[:, None]
    # Nothing changes beyond the last change of a group: its interval goes on to infinity, those behind it are none.
    places = np.full((n_groups, most + 2), np.inf)
    places[:, 0] = -np.inf
    places[:, 1:-1][filled] = g
    sums = np.zeros((2, n_groups, most + 1))
    sums[:, :, 0] = changes.start.T
    for f in (0, 1):
        sums[f, :, 1:][filled] = change[:, f]
    vanishing = line.vanishing if line.vanishing is not None else np.zeros((n_groups, 2), dtype=bool)
    exact = {
        f: sums_to_zero(sums[f, groups, 0], sums[f, groups, 1:]) for f in (0, 1) if (groups := vanishing[:, f]).any()
    }
    np.cumsum(sums, axis=2, out=sums)
    for f, group_sums in exact.items():
        sums[f, vanishing[:, f]] = group_sums
    sums *= changes.scale[:, None]
    lower, upper = places[:, :-1], places[:, 1:]
    with np.errstate(invalid="ignore"):  # from inf to inf there is nothing
        gap = tol * np.maximum(1.0, np.abs(np.where(np.isinf(lower), upper, lower))) if tol else 0.0
        nonempty = upper - lower > gap
    nonempty[size == 0, 0] = True
    if score is not None:
        values = np.where(nonempty, score.value(np.moveaxis(sums, 0, -1)), -np.inf)
        nonempty = values >= values.max(axis=1, keepdims=True) - _NEAR
    group, at = np.nonzero(nonempty)
    return Walk(group + offset, lower[group, at], upper[group, at], np.ascontiguousarray(sums[:, group, at].T))


def _line_of_one(changes: Changes, line: Line, tol: float, offset: int) -> Walk:
    """The same for one group all of whose changes are listed, which is how small problems are walked."""
    order = np.argsort(changes.g)
    g = changes.g[order]
    values = np.concatenate([changes.start, changes.change.take(order, axis=0)])
    exact = {f: sums_to_zero(values[0, f], values[1:, f]) for _, f in line.vanishes}
    np.cumsum(values, axis=0, out=values)
    for f, sums in exact.items():
        values[:, f] = sums
    values *= changes.scale[0]
    lower, upper = np.concatenate([[-np.inf], g]), np.concatenate([g, [np.inf]])
    if len(g):
        nonempty = np.ones(len(lower), dtype=bool)
        nonempty[1:-1] = g[1:] - g[:-1] > (tol * np.maximum(1.0, np.abs(g[:-1])) if tol else 0.0)
        lower, upper, values = lower[nonempty], upper[nonempty], values[nonempty]
    return Walk(np.full(len(lower), offset), lower, upper, values)


def _ordered(changes: Changes, n_segments: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Segments, places and changes in order of group and place."""
    segment, g, change = changes.segment, changes.g, changes.change
    behind = (segment[1:] > segment[:-1]) | ((segment[1:] == segment[:-1]) & (g[1:] >= g[:-1]))
    if behind.all():  # as kernels that keep groups apart leave them
        return segment, g, change
    order = _order(segment // n_segments, g)
    return segment[order], g[order], change.take(order, axis=0)  # which is far faster for rows than an index is


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
    count: NDArray[np.int64], listed_segments: IntArray, first: FloatArray, last: FloatArray, edges: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """How far nothing changes to the left of the first and to the right of the last change of each listed segment.

    Up to the listed segment that comes before or after it, or to the edge of the bin that is not listed but has
    changes, or to infinity.
    """
    n_segments = count.shape[1]
    if n_segments == 2:  # all changes of a group are in one segment
        return np.full(len(listed_segments), -np.inf), np.full(len(listed_segments), np.inf)
    full = np.flatnonzero(count.reshape(-1) > 0)
    listed = np.full(count.size, -1, dtype=np.intp)
    listed[listed_segments] = np.arange(len(listed_segments))
    at = np.searchsorted(full, listed_segments)
    group = listed_segments // n_segments

    def reach(neighbour: IntArray, outside: float, changes_at: FloatArray, side: int) -> FloatArray:
        adjacent = np.append(full, -1)[neighbour]
        inside = (neighbour >= 0) & (neighbour < len(full)) & (adjacent // n_segments == group)
        adjacent = np.where(inside, adjacent, listed_segments)
        edge = edges[group, np.clip(adjacent % n_segments + side, 0, edges.shape[1] - 1)]
        index = listed[adjacent]
        return np.where(inside, np.where(index >= 0, changes_at[index], edge), outside)

    # Bin b lies between edges b - 1 and b.
    return reach(at - 1, -np.inf, last, 0), reach(at + 1, np.inf, first, -1)
