"""One threshold for each sensitive group: the best that satisfy constraints, on the given rows and in the population.

All thresholds of all groups are counted in one pass. Limits of every threshold are known then, so that rules are
compared by what they promise, without margins that are found step by step. Must not know rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.cached import cached_property
from ...core.losses import Loss
from ...goals.constraint import ConstraintSystem, GroupGap, PooledConstraint
from ...inference.confidence_limits import SampledGap, SampledMetric, limit_distances
from ...metrics.objective import Objective
from ...oracles.base import Oracle
from ...solvers.group_thresholds import Curve, best_thresholds
from ...solvers.result import Outcome, SolverResult
from ...solvers.sweep import BlockCurve, block_curves, confusions_along, threshold_loss

__all__ = ["CountedThresholds", "GroupThresholds", "PromisedThresholds", "ThresholdPromise", "separates_groups"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
Sampled = Sequence[SampledMetric | SampledGap]

_TOL = 1e-9
_ROUNDING = 1e-12
_TIE = 1e-11  # of what an interval of thresholds adds to the aim per unit of its width, far less than a row does
_MAX_LIMITS = 128  # thresholds of a group whose limits are computed; those between are interpolated
_CLIMBS = 12  # steps along the slope of an aim that is not linear
_HALVINGS = 5  # of the confidence that labels allow
_LOWEST = 0.5  # such confidence
_TRIALS = 6  # at larger limits, where the first were too small
_HASTE = 1.1  # by which they are larger


def separates_groups(objective: Objective, limits: ConstraintSystem, n_outputs: int) -> bool:
    """Say whether every output of two classes is a group with a loss of its own that constraints are about."""
    grouping = objective.grouping
    pooled = grouping.n_groups == 1 or (grouping.least and grouping.n_groups == n_outputs)
    alone = all(isinstance(bound, GroupGap) or np.count_nonzero(bound.share) == 1 for bound in limits.constraints)
    binary = objective.width == 2 and grouping.loss is None and not objective.frozen.any()
    return n_outputs > 1 and pooled and alone and binary and not objective.slow


@dataclass(frozen=True, eq=False)
class _Distances:
    """How far limits are from metrics at all thresholds: of gaps (P, T) in each group, of others (T,) each."""

    below: list[FloatArray]
    above: list[FloatArray]
    alone: dict[int, tuple[FloatArray, FloatArray]]


class GroupThresholds:
    """The thresholds of all groups, and what is counted there.

    Parameters
    ----------
    oracle, judge : Oracle
        Which count the aim and the constraints.
    objective : Objective
    limits : ConstraintSystem
        With the metrics that are bounded; bounds may be narrower later.
    """

    def __init__(self, oracle: Oracle, judge: Oracle, objective: Objective, limits: ConstraintSystem) -> None:
        self.oracle, self.judge, self.objective, self.limits = oracle, judge, objective, limits
        self.n_groups = len(objective.grouping.share)
        outputs = np.arange(self.n_groups)
        self.curves = block_curves(judge, outputs)
        self.judged = _all_confusions([curve.predicted_one for curve in self.curves], judge.priors)
        self.aim = self.judged if judge is oracle else self._looked_up(block_curves(oracle, outputs))
        gaps = {_part(bound): bound for bound in limits.constraints if isinstance(bound, GroupGap)}
        self.parts = {part: p for p, part in enumerate(gaps)}

    def _looked_up(self, others: Sequence[BlockCurve]) -> list[FloatArray]:
        """The confusions of another oracle at these thresholds, which fall."""
        places = [
            np.clip(len(other.lower) - np.searchsorted(other.lower[::-1], curve.lower, side="right"), 0, None)
            for curve, other in zip(self.curves, others, strict=True)
        ]
        ones = [
            other.predicted_one[np.minimum(place, len(other.lower) - 1)]
            for place, other in zip(places, others, strict=True)
        ]
        return _all_confusions(ones, self.oracle.priors)

    @cached_property
    def metrics(self) -> list[dict[int, PooledConstraint]]:
        """The metrics of every part in each group, without a bound."""
        out: list[dict[int, PooledConstraint]] = [{} for _ in range(self.n_groups)]
        for bound in self.limits.constraints:
            if isinstance(bound, GroupGap):
                for limit in (bound.first, bound.second):
                    out[_group(limit)].setdefault(self.parts[_part(bound)], limit)
        return out

    @cached_property
    def values(self) -> list[FloatArray]:
        """The metrics (P, T) of each group."""
        out = []
        for C, limits in zip(self.judged, self.metrics, strict=True):
            values = np.zeros((len(self.parts), len(C)))
            for p, limit in limits.items():
                values[p] = limit.bound.value(C)
            out.append(values)
        return out

    @cached_property
    def defined(self) -> list[BoolArray]:
        """Thresholds of each group at which no metric of a gap is 0/0."""
        out = []
        for C, limits in zip(self.judged, self.metrics, strict=True):
            defined = np.ones(len(C), dtype=bool)
            for limit in limits.values():
                defined &= ~np.asarray(limit.bound.empty(C))
            out.append(defined)
        return out

    @cached_property
    def _exact(self) -> _Distances:
        """No distances."""
        nothing = [np.zeros_like(values) for values in self.values]
        return _Distances(nothing, nothing, {})

    # ------------------------------------------------------------------------------------------------- the search

    def best(
        self, limits: ConstraintSystem, distances: _Distances | None = None, *, hurried: bool = False
    ) -> IntArray | None:
        """Return the best thresholds (G,) that keep limits, by position; None where none were found.

        Along the slope of the aim, which is exact where that is linear, and Dinkelbach's iteration where it is a ratio.
        """
        distances = self._exact if distances is None else distances
        bounds, allowed = self._bounds(limits), self._allowed(limits, distances)
        if self.objective.grouping.least:
            worth = [self.objective.values_of(g, C) for g, C in enumerate(self.aim)]
            return best_thresholds(self._curves(worth, allowed, distances), bounds, least=True, hurried=hurried)
        chosen, value = None, -np.inf
        at = np.array([int(np.abs(curve.lower - 0.5).argmin()) for curve in self.curves])
        for _ in range(_CLIMBS):
            curves = self._curves(self._worth(at), allowed, distances)
            better = best_thresholds(curves, bounds, hurried=hurried)
            if better is None or self.value(better) <= value + _ROUNDING:
                break
            chosen, value, at = better, self.value(better), better
            if self.objective.ratio is not None and self.objective.ratio.linear:
                break
        return chosen

    def value(self, chosen: IntArray) -> float:
        """Return the aim at thresholds (G,)."""
        return self.objective.value(_at(self.aim, chosen))

    def _worth(self, at: IntArray) -> list[FloatArray]:
        """What thresholds add to the aim, by its slope at some (G,)."""
        grouping = self.objective.grouping
        slope = self.objective.gradient(grouping.pool(_at(self.aim, at)))[0]
        slope = np.where(np.isfinite(slope), slope, 0.0) if np.isfinite(slope).any() else np.eye(2)
        return [share * np.einsum("ij,tij->t", slope, C) for share, C in zip(grouping.share, self.aim, strict=True)]

    def _curves(self, worth: Sequence[FloatArray], allowed: Sequence[BoolArray], distances: _Distances) -> list[Curve]:
        return [
            Curve(np.where(keeps, gains + wide, -np.inf), values, below, above)
            for gains, wide, keeps, values, below, above in zip(
                worth, self._ties, allowed, self.values, distances.below, distances.above, strict=True
            )
        ]

    @cached_property
    def _ties(self) -> list[FloatArray]:
        """What breaks ties of thresholds (T,): the widest is the one that new rows are least likely to fall into."""
        widths = [
            np.where(np.isfinite(curve.upper - curve.lower), curve.upper - curve.lower, 0.0) for curve in self.curves
        ]
        return [_TIE * np.minimum(width, 1.0) for width in widths]

    def _bounds(self, limits: ConstraintSystem) -> FloatArray:
        """Bounds (P, G, G) on gaps."""
        out = np.full((len(self.parts), self.n_groups, self.n_groups), np.inf)
        for bound in limits.constraints:
            if isinstance(bound, GroupGap):
                place = self.parts[_part(bound)], _group(bound.first), _group(bound.second)
                out[place] = min(out[place], bound.constraint.high)
        return out

    def _allowed(self, limits: ConstraintSystem, distances: _Distances) -> list[BoolArray]:
        """Thresholds of each group that keep constraints on it alone."""
        out = [keeps.copy() for keeps in self.defined]
        for q, bound in enumerate(limits.constraints):
            if isinstance(bound, PooledConstraint):
                g = _group(bound)
                value, constraint = bound.bound.value(self.judged[g]), bound.constraint
                below, above = distances.alone.get(q, (np.zeros(1), np.zeros(1)))
                out[g] &= (value - below >= constraint.low - _TOL) & (value + above <= constraint.high + _TOL)
                out[g] &= ~np.asarray(bound.bound.empty(self.judged[g]))
        return out

    def distances(self, sampled: Sampled, level: float, factor: float) -> _Distances:
        """Return how far limits are at a level, by metrics that were counted for one rule, times a factor."""
        below, above = ([np.zeros_like(values) for values in self.values] for _ in range(2))
        alone: dict[int, tuple[FloatArray, FloatArray]] = {}
        done: set[tuple[int, int]] = set()
        for q, (bound, metric) in enumerate(zip(self.limits.constraints, sampled, strict=True)):
            if isinstance(metric, SampledMetric):
                assert isinstance(bound, PooledConstraint)
                alone[q] = self._limits_along(_group(bound), metric, level, factor)
                continue
            assert isinstance(bound, GroupGap)
            for limit, part in ((bound.first, metric.first), (bound.second, metric.second)):
                place = g, p = _group(limit), self.parts[_part(bound)]
                if place not in done:
                    below[g][p], above[g][p] = self._limits_along(g, part, level, factor)
                    done.add(place)
        return _Distances(below, above, alone)

    def _limits_along(
        self, g: int, metric: SampledMetric, level: float, factor: float
    ) -> tuple[FloatArray, FloatArray]:
        n = len(self.judged[g])
        some = np.unique(np.linspace(0, n - 1, min(n, _MAX_LIMITS)).astype(np.intp))
        below, above = limit_distances(metric, self.judged[g][some], level)
        if len(some) < n:
            below, above = (np.interp(np.arange(n), some, ends) for ends in (below, above))
        return factor * below, factor * above

    # ------------------------------------------------------------------------------------------------- the rule

    def counted(self, chosen: IntArray) -> tuple[SolverResult, FloatArray]:
        """Return the rule at thresholds (G,), counted anew, and its confusion as constraints are counted."""
        places = zip(self.curves, chosen, strict=True)
        thresholds = np.array([curve.thresholds(np.array([t]))[0] for curve, t in places])
        losses = [threshold_loss(thresholds), _argmax(self.n_groups)]
        if self.judge is self.oracle:
            aim = judged = self.oracle.confusions(losses)
        else:
            aim, judged = self.oracle.confusions_beside(self.judge, losses)
        value = self.objective.value(aim[0])
        result = SolverResult(
            losses=(losses[0],),
            shares=np.ones(1),
            n_classes=self.oracle.n_classes,
            confusion=aim[0],
            value=value,
            baseline=self.objective.value(aim[1]),
            outcome=Outcome.LOCAL,
            history=(value,),
        )
        return result, judged[0]


def _argmax(n_groups: int) -> Loss:
    argmax = Loss.argmax(2)
    return argmax.map(lambda a: np.repeat(a, n_groups, axis=0))


def _all_confusions(ones: Sequence[FloatArray], priors: FloatArray) -> list[FloatArray]:
    return [confusions_along(shares, prior[:2]) for shares, prior in zip(ones, priors, strict=True)]


def _at(confusions: Sequence[FloatArray], chosen: IntArray) -> FloatArray:
    """The confusion tensor (G, 2, 2) at thresholds (G,)."""
    return np.stack([C[t] for C, t in zip(confusions, chosen, strict=True)])


def _part(bound: GroupGap) -> tuple[int, int]:
    return bound.constraint.promise, bound.constraint.part


def _group(limit: PooledConstraint) -> int:
    return int(np.flatnonzero(limit.share)[0])


# ------------------------------------------------------------------------------------------------------- the promise

Levels = Callable[[Sampled, float, FloatArray], tuple[list[float], FloatArray]]
Short = Callable[[Sampled, Sequence[float]], tuple[BoolArray, FloatArray]]


class CountedThresholds(NamedTuple):
    """A rule of one threshold for each group, its confusion as constraints are counted, and what these count."""

    result: SolverResult
    judged: FloatArray
    sampled: Sampled


class PromisedThresholds(NamedTuple):
    """A rule, the distances (Q, 2) of its limits to the metrics, and the confidence that it keeps constraints with."""

    rule: CountedThresholds
    margins: FloatArray
    confidence: float | None


@dataclass(frozen=True, eq=False)
class ThresholdPromise:
    """The best thresholds whose confidence limits keep all constraints.

    Parameters
    ----------
    thresholds : GroupThresholds
    free : CountedThresholds
        The best on the given rows.
    sample : callable
        Counts the rule at thresholds (G,).
    levels : callable
        From what a rule counts, a confidence and the variances to begin with, to the level of each limit; returns those
        variances too.
    short : callable
        From the same and levels to which bounds are not kept, (Q, 2), and the distances of limits to metrics.
    """

    thresholds: GroupThresholds
    free: CountedThresholds
    sample: Callable[[IntArray], CountedThresholds]
    levels: Levels
    short: Short

    def at(self, confidence: float, ways: float = 1.0) -> PromisedThresholds:
        """Return the promise at a confidence, or at the largest one that labels allow; None below 0.5.

        Where `ways` constraints count as unrelated, bounds are tightened also for what would be 0.5 for one of them.
        """
        nothing = np.zeros((len(self.thresholds.limits.constraints), 2))
        levels, _ = self.levels(self.free.sampled, confidence, np.zeros(len(nothing)))
        if not self.short(self.free.sampled, levels)[0].any():
            return PromisedThresholds(self.free, nothing, confidence)
        promise = self._attempt(confidence)
        if promise is not None:
            return promise
        low, high, best = 1 - confidence, (1 - _LOWEST) * ways, PromisedThresholds(self.free, nothing, None)
        for _ in range(_HALVINGS):  # of the logarithm of the risk
            middle = float(np.sqrt(low * high))
            promise = self._attempt(1 - middle)
            low, high, best = (middle, high, best) if promise is None else (low, middle, promise)
        too_low = best.confidence is None or best.confidence < _LOWEST
        return best._replace(confidence=None) if too_low else best

    def _attempt(self, confidence: float) -> PromisedThresholds | None:
        """The best rule at a confidence, None where there is none, or no room beside what is best on the given rows.

        Rules that decide nearly all rows alike have little of a gap between groups at any confidence. They are not what
        is asked for where the gap of the best rule could not be told from the bound.
        """
        free, limits = self.free.sampled, self.thresholds.limits.constraints
        levels, begin = self.levels(free, confidence, np.zeros(len(limits)))
        short, needed = self.short(free, levels)
        promises = {bound.constraint.promise for bound, missed in zip(limits, short, strict=True) if missed.any()}
        if any(
            isinstance(bound, GroupGap) and ends[1] > bound.constraint.high + _TOL
            for bound, ends in zip(limits, needed, strict=True)
        ):
            return None
        level, factor = max(levels), 1.0
        for _ in range(_TRIALS):
            distances = self.thresholds.distances(free, level, factor)
            chosen = self.thresholds.best(self.thresholds.limits, distances, hurried=True)
            if chosen is None:
                return None
            rule = self.sample(chosen)
            levels, _ = self.levels(rule.sampled, confidence, begin)
            short, needed = self.short(rule.sampled, levels)
            if not short.any():
                tightened = np.array([bound.constraint.promise in promises for bound in limits])
                return PromisedThresholds(rule, np.where(tightened[:, None], needed, 0.0), confidence)
            level, factor = max(level, *levels), factor * (1.0 if max(levels) > level else _HASTE)
        return None
