"""The best threshold of every group where metrics may differ by so much between two groups: algebra on curves.

Two groups are compared pair by pair of thresholds, exactly. Of more groups, all must lie in a common box of metrics:
boxes are tried in a grid, then one group is moved after the other. Must not know rows, nor what metrics mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Curve", "best_thresholds", "keep_gaps"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

_ROUNDING = 1e-12
_PAIRS_AT_ONCE = 1 << 16  # pairs of thresholds that are compared at once
_SPARSE = 8  # of which every so manieth is compared first
_MAX_THRESHOLDS = 400  # of a group that are compared at once; of more, some at first and those around the best then
_COARSE = 128  # thresholds of a group for which boxes are tried
_ANCHORS = {1: 64, 2: 16, 3: 7, 4: 5}  # places of boxes along each metric, by the number of metrics
_FEWEST_ANCHORS = 3  # likewise, of more metrics
_MAX_BOXES = 2_000  # where the boxes that begin at a threshold are as few, all of them are tried
# By which boxes reach beyond the metrics at the best thresholds without bounds; further where none keeps the bounds.
_PADS = 0.1, 0.25, 0.5
# What the distances of two groups to their limits add up to, over their hypotenuse at most: 1 where one of them is 0.
_SHARES = 0.75, 1.0
_STARTS = 4  # boxes whose thresholds are moved one after the other
_SWEEPS = 20  # over the groups


@dataclass(frozen=True, eq=False)
class Curve:
    """The thresholds of one group.

    Parameters
    ----------
    worth : ndarray of shape (T,)
        What the group adds to the aim; -inf where a threshold is not allowed.
    values : ndarray of shape (P, T)
        Metrics whose gap between groups is bounded.
    below, above : ndarray of shape (P, T)
        Distances of these to their lower and upper limits.
    """

    worth: FloatArray
    values: FloatArray
    below: FloatArray
    above: FloatArray

    def take(self, some: IntArray) -> Curve:
        """Return some of the thresholds."""
        return Curve(self.worth[some], self.values[:, some], self.below[:, some], self.above[:, some])


def keep_gaps(curves: Sequence[Curve], bounds: FloatArray, chosen: IntArray) -> BoolArray:
    """Say which choices (R, G) of a threshold of every group keep all bounds (P, G, G) on gaps and are allowed."""
    return np.asarray((_missed(curves, bounds, chosen) <= _ROUNDING) & np.isfinite(_total(curves, chosen, least=True)))


def best_thresholds(
    curves: Sequence[Curve], bounds: FloatArray, *, least: bool = False, hurried: bool = False
) -> IntArray | None:
    """Return the best threshold of every group, (G,), by position; None where none was found.

    Parameters
    ----------
    curves : sequence of G Curve
    bounds : ndarray of shape (P, G, G)
        Largest upper limit of the metric of the first group less that of the second; infinite where there is none.
    least : bool, default=False
        Whether the least worth of all groups is maximised, rather than their sum.
    hurried : bool, default=False
        Whether nothing is tried further off where the first boxes hold nothing that keeps the bounds.
    """
    pads = _PADS[:1] if hurried else _PADS
    sizes = np.array([len(curve.worth) for curve in curves])
    if sizes.max() <= _MAX_THRESHOLDS:
        return _best(curves, bounds, least, pads)
    step = -(-sizes // _MAX_THRESHOLDS)
    some = [np.unique(np.append(np.arange(0, n, by), n - 1)) for n, by in zip(sizes, step, strict=True)]
    chosen = None
    while True:
        place = _best([curve.take(part) for curve, part in zip(curves, some, strict=True)], bounds, least, pads)
        if place is None:
            return chosen
        chosen = np.array([part[t] for part, t in zip(some, place, strict=True)])
        if (step == 1).all():
            return chosen
        finer = np.maximum(step // (_MAX_THRESHOLDS // 8), 1)
        some = [
            np.unique(np.clip(np.append(np.arange(t - 2 * wide, t + 2 * wide + 1, by), t), 0, n - 1))
            for t, wide, by, n in zip(chosen, step, finer, sizes, strict=True)
        ]
        step = finer


def _best(curves: Sequence[Curve], bounds: FloatArray, least: bool, pads: Sequence[float]) -> IntArray | None:
    if not all(np.isfinite(curve.worth).any() for curve in curves):
        return None
    free = np.array([int(curve.worth.argmax()) for curve in curves])
    if keep_gaps(curves, bounds, free[None])[0]:
        return free
    if len(curves) == 2:
        return _best_pair(curves, bounds, least)
    for pad in pads:
        moved = np.array([_moved(curves, bounds, start) for start in _of_boxes(curves, bounds, least, pad)])
        moved = moved[keep_gaps(curves, bounds, moved)]
        if len(moved):
            return np.asarray(moved[_total(curves, moved, least=least).argmax()])
    return None


def _best_pair(curves: Sequence[Curve], bounds: FloatArray, least: bool) -> IntArray | None:
    """The best pair of thresholds of two groups, of all: some first, then those that are worth more than the best."""
    first, second = curves
    chosen = None
    if min(len(first.worth), len(second.worth)) > 2 * _SPARSE:
        chosen = _best_pair([curve.take(np.arange(0, len(curve.worth), _SPARSE)) for curve in curves], bounds, least)
        chosen = None if chosen is None else chosen * _SPARSE
    best = -np.inf if chosen is None else float(_total(curves, chosen[None], least=least)[0])
    order = np.argsort(-first.worth, kind="stable")
    most, size = float(second.worth.max()), max(_PAIRS_AT_ONCE // len(second.worth), 1)
    for start in range(0, len(order), size):
        some = order[start : start + size]
        if _joined(first.worth[some[0]], most, least) <= best:
            break
        worth = _joined(first.worth[some][:, None], second.worth, least)
        rows, columns = _keep_pairs(first.take(some), second, bounds[:, 0, 1], bounds[:, 1, 0], worth > best)
        if len(rows):
            place = int(worth[rows, columns].argmax())
            best, chosen = float(worth[rows[place], columns[place]]), np.array([some[rows[place]], columns[place]])
    return chosen


def _joined(first: FloatArray, second: FloatArray | float, least: bool) -> FloatArray:
    return np.minimum(first, second) if least else np.asarray(first + second)


def _keep_pairs(
    first: Curve, other: Curve, up: FloatArray, down: FloatArray, some: BoolArray
) -> tuple[IntArray, IntArray]:
    """The pairs, of some (T, S), that keep bounds (P,) on the gap from the first to the other, and back."""
    for p, (high, low) in enumerate(zip(up.tolist(), down.tolist(), strict=True)):
        gap = first.values[p][:, None] - other.values[p]
        some = some & (gap <= high + _ROUNDING) & (gap >= -low - _ROUNDING)
    rows, columns = np.nonzero(some)
    for p, (high, low) in enumerate(zip(up.tolist(), down.tolist(), strict=True)):
        if not any(side[p].any() for side in (first.above, first.below, other.above, other.below)):
            continue
        gap = first.values[p][rows] - other.values[p][columns]
        kept = gap + _hypot(first.above[p][rows], other.below[p][columns]) <= high + _ROUNDING
        kept &= _hypot(first.below[p][rows], other.above[p][columns]) - gap <= low + _ROUNDING
        rows, columns = rows[kept], columns[kept]
    return rows, columns


def _hypot(first: FloatArray, second: FloatArray) -> FloatArray | float:
    return np.sqrt(first * first + second * second) if first.any() or second.any() else 0.0


def _missed(curves: Sequence[Curve], bounds: FloatArray, chosen: IntArray) -> FloatArray:
    """By how much choices (R, G) miss bounds on gaps, in sum, (R,)."""
    values, below, above = (
        np.stack([getattr(curve, name)[:, t] for curve, t in zip(curves, chosen.T, strict=True)], axis=-1)
        for name in ("values", "below", "above")
    )  # (P, R, G)
    limit = values[..., :, None] - values[..., None, :] + np.hypot(above[..., :, None], below[..., None, :])
    return np.asarray(np.maximum(limit - bounds[:, None], 0.0).sum(axis=(0, 2, 3)))


def _total(curves: Sequence[Curve], chosen: IntArray, *, least: bool) -> FloatArray:
    worth = np.stack([curve.worth[t] for curve, t in zip(curves, chosen.T, strict=True)])
    return np.asarray(worth.min(axis=0) if least else worth.sum(axis=0))


# ---------------------------------------------------------------------------------------------------------------- boxes


def _of_boxes(curves: Sequence[Curve], bounds: FloatArray, least: bool, pad: float) -> IntArray:
    """Choices (R, G) of thresholds within a common box of metrics: the best that keep bounds, else the nearest."""
    used = np.asarray(np.isfinite(bounds).any(axis=(1, 2)))
    high, low = _allowances(bounds[used])
    thin, whole = ([_thinned(curve, used, most) for curve in curves] for most in (_COARSE, _MAX_THRESHOLDS))
    free = np.stack([curve.values[:, int(curve.worth.argmax())] for curve, _ in thin])  # (G, P)
    axes = _axes([curve for curve, _ in thin], low) or _grid(free.min(axis=0) - pad, free.max(axis=0) + pad)
    shares: Sequence[float] = (
        _SHARES if any(curve.above.any() or curve.below.any() for curve in curves) else _SHARES[:1]
    )
    tried: list[IntArray] = []
    for some in (thin, thin, whole):
        anchors = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        choices = [_inside([curve for curve, _ in some], anchors, high, low, share) for share in shares]
        chosen = np.concatenate([choice for choice, _ in choices])
        chosen = np.stack([place[t] for (_, place), t in zip(some, chosen.T, strict=True)], axis=-1)
        rank = _ranked(curves, bounds, chosen, np.concatenate([full for _, full in choices]), least)
        tried.append(chosen[rank[:_STARTS]])
        center, shares = anchors[rank[0] % len(anchors)], shares[rank[0] // len(anchors) :][:1]
        step = np.array([np.ptp(axis) / max(len(axis) - 1, 1) for axis in axes])
        axes = _grid(center - step, center + step)
    starts = np.unique(np.concatenate(tried), axis=0)
    return starts[_ranked(curves, bounds, starts, np.ones(len(starts), dtype=bool), least)[:_STARTS]]


def _axes(curves: Sequence[Curve], low: FloatArray) -> list[FloatArray] | None:
    """The anchors of boxes that begin at a threshold, metric by metric; None where that makes too many boxes."""
    axes = [
        np.unique(np.concatenate([curve.values[p] + allowed for curve, allowed in zip(curves, below, strict=True)]))
        for p, below in enumerate(low)
    ]
    return axes if np.prod([float(len(axis)) for axis in axes]) <= _MAX_BOXES else None


def _grid(begin: FloatArray, end: FloatArray) -> list[FloatArray]:
    """Anchors between two corners, metric by metric."""
    n_anchors = _ANCHORS.get(len(begin), _FEWEST_ANCHORS)
    return [np.linspace(*ends, n_anchors) for ends in zip(begin, end, strict=True)]


def _ranked(curves: Sequence[Curve], bounds: FloatArray, chosen: IntArray, full: BoolArray, least: bool) -> IntArray:
    """Positions of choices, the best first: those that keep bounds by worth, the others by how far they miss them."""
    missed = _missed(curves, bounds, chosen)
    missed = np.where(missed <= _ROUNDING, 0.0, missed) + np.where(full, 0.0, 1.0)
    return np.lexsort((-_total(curves, chosen, least=least), missed))


def _allowances(bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far above and below the anchor of a box each group may be, (P, G) each, so that pairs keep their bounds."""
    n_groups = bounds.shape[1]
    off = np.where(np.eye(n_groups, dtype=bool) | ~np.isfinite(bounds), np.nan, bounds)
    mean = np.nanmean(off, axis=(1, 2))[:, None]
    above, below = (np.where(np.isnan(side), mean, side) for side in (np.nanmean(off, axis=2), np.nanmean(off, axis=1)))
    return above - mean / 2, below - mean / 2


def _thinned(curve: Curve, used: BoolArray, most: int) -> tuple[Curve, IntArray]:
    """So many thresholds of a curve at most, and their positions in it."""
    n = len(curve.worth)
    some = np.unique(np.append(np.linspace(0, n - 1, min(n, most)).astype(np.intp), curve.worth.argmax()))
    part = curve.take(some)
    return replace(part, values=part.values[used], below=part.below[used], above=part.above[used]), some


def _inside(
    curves: Sequence[Curve], anchors: FloatArray, high: FloatArray, low: FloatArray, share: float
) -> tuple[IntArray, BoolArray]:
    """The best threshold of every group in boxes (R, P), (R, G), and whether all groups have one there."""
    chosen, full = np.empty((len(anchors), len(curves)), dtype=np.intp), np.ones(len(anchors), dtype=bool)
    for g, curve in enumerate(curves):
        outside = np.zeros((len(anchors), len(curve.worth)))
        for p, anchor in enumerate(anchors.T):
            top = curve.values[p] + share * curve.above[p] - high[p, g]
            bottom = curve.values[p] - share * curve.below[p] + low[p, g]
            outside = np.maximum(outside, np.maximum(top - anchor[:, None], anchor[:, None] - bottom))
        outside = np.where(np.isfinite(curve.worth), outside, np.inf)
        inside = outside <= _ROUNDING
        score = np.where(inside, curve.worth, -np.inf)
        empty = ~inside.any(axis=1)
        chosen[:, g] = np.where(empty, outside.argmin(axis=1), score.argmax(axis=1))
        full &= ~empty
    return chosen, full


def _moved(curves: Sequence[Curve], bounds: FloatArray, chosen: IntArray) -> IntArray:
    """Move one group after the other to where it misses bounds by least, and of those places to the best one."""
    chosen = chosen.copy()
    names = "values", "below", "above"
    values, below, above = at = [_columns(curves, chosen, name) for name in names]  # (P, G) each
    for _ in range(_SWEEPS):
        before = chosen.copy()
        for g, curve in enumerate(curves):
            missed = _missed_by(curve, values, below, above, bounds[:, g], bounds[:, :, g])
            missed = np.where(np.isfinite(curve.worth), missed, np.inf)
            near = np.flatnonzero(missed <= max(float(missed.min()), 0.0) + _ROUNDING)
            chosen[g] = near[curve.worth[near].argmax()]
            for columns, name in zip(at, names, strict=True):
                columns[:, g] = getattr(curve, name)[:, chosen[g]]
        if (chosen == before).all():
            break
    return chosen


def _columns(curves: Sequence[Curve], chosen: IntArray, name: str) -> FloatArray:
    """What all groups have at thresholds (G,), (P, G)."""
    return np.stack([getattr(curve, name)[:, t] for curve, t in zip(curves, chosen, strict=True)], axis=-1)


def _missed_by(
    curve: Curve, values: FloatArray, below: FloatArray, above: FloatArray, up: FloatArray, down: FloatArray
) -> FloatArray:
    """By how much the thresholds of one group miss bounds (P, G) beside one threshold of each group, (T,).

    Bounds on the gap to itself are infinite.
    """
    gap = curve.values[:, :, None] - values[:, None]
    rise = gap + _hypot(curve.above[:, :, None], below[:, None]) - up[:, None]
    fall = _hypot(curve.below[:, :, None], above[:, None]) - gap - down[:, None]
    return np.asarray((np.maximum(rise, 0.0) + np.maximum(fall, 0.0)).sum(axis=(0, 2)))
