"""The best mixture found of rules that satisfy constraints which are not convex, such as a floor of macro-F1.

Sequential linear programming: at a point that keeps all constraints, those that are not convex are replaced by the
half-spaces of their gradients, and the convex problem is solved. What it finds need not keep the true constraints: the
best point between it and points that do is the next one. So every point keeps them, and the value never falls. Where
the constraints bend inwards nothing better lies between: then what was found is cut off by its own gradient, as if the
metric were concave there. The end is a local optimum; nothing is proved.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..core.losses import Loss
from .constrained import Effort, Feasible, InfeasibleError, Point, maximise

FloatArray = NDArray[np.float64]

__all__ = ["best_mixture", "scattered_losses"]

_LINEARISED = {Effort.KNOWN: 4, Effort.ROUGH: 3, Effort.CAUTIOUS: 12, Effort.FULL: 30, Effort.THOROUGH: 30}
_CUTS = 4  # of points that do not keep the constraints, before no better one is expected
_GRID = np.linspace(0.0, 1.0, 33)
_ZOOMS = 2
_LITTLE = 1e-6  # of the value, by which a step must improve it;
_ROUGH_LITTLE = 1e-4  # where margins are sought or resamples are fitted: less drowns in sampling error
_TOL = 1e-9  # to which bounds that are not convex are kept
_RATIO_TOL, _CONVEX_TOL = 1e-4, 1e-7  # to which a programme keeps its rows: a ratio of little is as exact as that
_RESTARTS = 3  # rules of the least violation from which one is sought that keeps the constraints
_RESTORING = 20
_SCATTERED = 48  # rules of random class weights,
_SPREAD = 1.0  # whose logarithms have this standard deviation


def scattered_losses(n_blocks: int, width: int) -> list[Loss]:
    """Return losses of random class weights, one for all blocks each: where local searches may begin, too."""
    weights = np.exp(_SPREAD * np.random.default_rng(0).normal(size=(_SCATTERED, 1, width)))
    losses = [Loss(diagonal=np.repeat(-each, n_blocks, axis=0), offset=np.zeros((n_blocks, width))) for each in weights]
    return losses if n_blocks == 1 else [Loss(full=loss.tensor()) for loss in losses]


def best_mixture(feasible: Feasible) -> Point:
    """Return the best mixture that keeps the constraints, or the best found locally where they are not convex."""
    if feasible.limits.convex:
        return maximise(feasible)
    ends = [_climbed(feasible, start) for start in _starts(feasible)]
    feasible.last = max(ends, key=lambda point: point.value)
    return feasible.last


def _starts(feasible: Feasible) -> list[Point]:
    """Points that keep the constraints: the best rule asked for, and the best on the way to it from the safest.

    Or on the way to the last local optimum, which may have kept other bounds.
    """
    kept = np.flatnonzero(feasible.kept_alone)
    if len(kept) == 0:
        return [_restored(feasible)]
    best = _pure(feasible, int(kept[feasible.values(feasible.aim[kept]).argmax()]))
    between = _between(feasible, _safest(feasible, kept), best if feasible.last is None else feasible.last)
    if feasible.effort >= Effort.FULL and between.value != best.value:
        return [best, between]
    return [max(best, between, key=lambda point: point.value)]


def _safest(feasible: Feasible, kept: NDArray[np.intp]) -> Point:
    """The rule with most to spare, of those at positions among the rules asked for."""
    bounds = [bound for bound in feasible.limits.constraints if not bound.convex]
    to_spare = np.min([feasible.to_spare(bound)[kept] for bound in bounds], axis=0)
    return _pure(feasible, int(kept[to_spare.argmax()]))


def _pure(feasible: Feasible, position: int) -> Point:
    """One of the rules asked for, in all blocks."""
    weights = np.zeros((len(feasible.losses), feasible.blocks.n_blocks))
    weights[position] = 1.0
    return feasible.point(weights, np.inf, np.zeros(len(feasible.limits.constraints)))


def _climbed(feasible: Feasible, point: Point) -> Point:
    """Climb from a point that keeps the constraints to a local optimum among such points."""
    little = _LITTLE if feasible.effort >= Effort.FULL else _ROUGH_LITTLE
    for _ in range(_LINEARISED[feasible.effort]):
        better = _improved(feasible, point)
        if better.value <= point.value + little:
            return max(point, better, key=lambda candidate: candidate.value)
        point = better
    return point


def _improved(feasible: Feasible, point: Point) -> Point:
    """The best point found by the half-spaces of gradients at a point that keeps the constraints; that one if none."""
    feasible.local = feasible.linearised(point.judged)
    for _ in range(_CUTS):
        try:
            ahead = maximise(feasible, point)
        except InfeasibleError:  # nothing but what is 0/0 keeps all rows
            return point
        kept = np.flatnonzero(feasible.kept_alone)
        others = [point, _safest(feasible, kept)] if len(kept) else [point]
        ends = [_between(feasible, other, ahead, point.value) for other in others]
        best = max(ends, key=lambda between: between.value)
        if best.value > point.value + _LITTLE:
            return best
        if not _cut(feasible, ahead, point):
            return replace(point, prices=ahead.prices)
    return point


def _between(feasible: Feasible, point: Point, ahead: Point, above: float = -np.inf) -> Point:
    """The best point that keeps the constraints between one that does and one that need not, if it is above a value."""
    before = _padded(feasible, point)
    direction = _padded(feasible, ahead) - before
    low, high, best = 0.0, 1.0, 0.0
    for _ in range(_ZOOMS):
        steps = low + (high - low) * _GRID
        spread = steps[:, None, None, None]
        values = feasible.values(point.aim + spread * (ahead.aim - point.aim))
        worth = np.flatnonzero(values > above)  # of the others nobody asks what they keep
        kept = worth[_keeps(feasible, point.judged + spread[worth] * (ahead.judged - point.judged))]
        if len(kept) == 0:
            break
        best = float(steps[kept[values[kept].argmax()]])
        width = (high - low) / (len(_GRID) - 1)
        low, high = max(best - width, 0.0), min(best + width, 1.0)
    return feasible.point(before + best * direction, np.inf, ahead.prices)


def _padded(feasible: Feasible, point: Point) -> FloatArray:
    """The weights of a point among all rules asked for by now, (T, B)."""
    missing = len(feasible.losses) - len(point.weights)
    return np.concatenate([point.weights, np.zeros((missing, point.weights.shape[1]))])


def _keeps(feasible: Feasible, judged: FloatArray) -> NDArray[np.bool_]:
    """Whether confusions (..., M, K, K) of mixtures keep all constraints, those of a programme as it does."""
    kept = np.ones(judged.shape[:-3], dtype=bool)
    for bound in feasible.limits.constraints:
        kept &= bound.keeps(judged, _TOL if not bound.convex else _RATIO_TOL if bound.of_ratio else _CONVEX_TOL)
    return kept


def _cut(feasible: Feasible, ahead: Point, point: Point) -> bool:
    """Cut off a point that violates constraints by its gradients, where that does not cut off one that keeps them."""
    new = [(q, space) for q, space in feasible.linearised(ahead.judged) if space.holds(point.judged)]
    new = [(q, space) for q, space in new if not space.holds(ahead.judged)]
    feasible.local += new
    return bool(new)


def _restored(feasible: Feasible) -> Point:
    """Look for a point that keeps the constraints from the rules asked for that violate them by least."""
    violation = feasible.limits.violation
    nearest: Point | None = None
    for start in np.argsort(violation(feasible.judged), kind="stable")[:_RESTARTS].tolist():
        point = _pure(feasible, start)
        for step in range(min(_RESTORING, feasible.n_steps + 1)):
            ahead = _linear_restoration(feasible, point, step)
            closer = _least_violation(feasible, point, ahead)
            if _keeps(feasible, closer.judged):
                return closer
            if violation(closer.judged) > violation(point.judged) - _LITTLE:
                break
            point = closer
        if nearest is None or violation(point.judged) < violation(nearest.judged):
            nearest = point
    raise InfeasibleError(nearest)


def _linear_restoration(feasible: Feasible, point: Point, step: int) -> Point:
    """The mixture that violates the half-spaces at a point by least, of rules that are asked for where they help."""
    feasible.local = feasible.linearised(point.judged)
    weights, value, prices = feasible.solve((), first_phase=True)
    if value < -feasible.tol and step < feasible.n_steps and feasible.grow(prices, step):
        weights, _, _ = feasible.solve((), first_phase=True)
    return feasible.point(weights, np.inf, point.prices)


def _least_violation(feasible: Feasible, point: Point, ahead: Point) -> Point:
    """The point of the least violation between two."""
    before = _padded(feasible, point)
    spread = _GRID[:, None, None, None]
    violation = feasible.limits.violation(point.judged + spread * (ahead.judged - point.judged))
    step = float(_GRID[violation.argmin()])
    return feasible.point(before + step * (_padded(feasible, ahead) - before), np.inf, point.prices)
