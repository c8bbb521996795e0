"""Binary outputs: one sorted sweep over all thresholds, for any metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.losses import Loss
from ..core.notes import NoteKind, note_list
from ..goals.constraint import BoundConstraint, ConstraintSystem, PooledConstraint
from ..metrics.objective import Objective
from ..oracles.base import Line, Oracle, Walk, interior
from .base import BaseSolver, FloatArray, IntArray, Needs, concave_bound, finish_walk, no_losses
from .ratios import RatioScore, bounding_losses, certify_walk, line_of
from .result import Outcome, SolverResult

# Class 1 iff p > t, exactly so in floating point: score 0 against t - p. Of two columns that do not sum to 1, p is the
# share of the second in their sum.
_CONSTANT = Loss(diagonal=np.array([[0.0, -1.0]]), offset=np.zeros((1, 2)))
_SLOPE = Loss(diagonal=np.zeros((1, 2)), offset=np.array([[0.0, 1.0]]))
_PREDICTED_ONE = np.array([[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
_CHUNK_INTERVALS = 1 << 16
_MAX_SEPARATE_GROUPS = 8  # groups that are searched in separate passes; of more, all intervals are listed in one pass
_RUN_LENGTH = 64  # intervals that are bounded together
_MAX_UNPRUNED = 1 << 10  # intervals that are evaluated without bounds
_ROUNDING = 1e-12
_MAX_CURVE_POINTS = 200  # thresholds that are tried where there is no hull
# Metrics that call a function of the user for every value:
_MAX_SLOW_VALUES = 256  # intervals that are all evaluated; of more,
_COARSE_POINTS = 64  # are evaluated on a first grid, then
_N_MAXIMA = 3  # best of them are refined
_REFINEMENT = 8  # times as finely
_FAR_BELOW = 1e9  # all values of a metric
_INCOMPLETE = (
    "The best of the evaluated thresholds: the metric is a function that is too slow to evaluate at all thresholds."
)


def threshold_loss(threshold: FloatArray) -> Loss:
    """Return the losses of "class 1 iff p > t" for thresholds of shape (G,)."""
    return _CONSTANT.map(lambda a, b: a + threshold[:, None] * b, _SLOPE)


@dataclass(frozen=True, eq=False)
class _Corner:
    """A rising metric of one group, as what is to be as large as possible along the thresholds.

    The functionals are the shares of each true class that are predicted 1. The fewer of class 0 and the more of class
    1, the better.
    """

    objective: Objective
    group: int

    def value(self, at: FloatArray) -> FloatArray:
        """Return the values (...) of shares (..., 2)."""
        return _values(self.objective, self.group, at)

    def bound(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the values at the best corners of the boxes between `low` and `high`."""
        return self.value(np.stack([np.maximum(low[..., 0], 0.0), high[..., 1]], axis=-1))


@dataclass(frozen=True)
class Sweep(BaseSolver):
    """Maximise any metric of binary outputs exactly over all thresholds.

    Guarantee: no threshold does better on the given rows; outputs that share a confusion (micro-average) share the
    threshold. With expected confusion, no deterministic rule does better, provided that the metric rewards predicting
    class 1 more, the more likely it is; `upper_bound` proves it for ratios and concave metrics. Do not use it
    separately for each of many rare labels: an exact optimum on few positives overfits. A metric given as a function of
    labels is evaluated at a few hundred thresholds at most: if there are more, at those around the best of a coarse
    grid, without a guarantee.

    Parameters
    ----------
    n_candidates : int, default=4
        Number of thresholds that are counted if rounding makes the best one differ from the running sums.

    See Also
    --------
    Path : For ratios with more than two classes.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.35, 0.4, 0.8], [0, 1, 0, 1], "mcc",
    ...     strategy=mw.Strategy(solver="sweep", confusion="labels", recalibrate=False))
    >>> round(solution.rule.threshold, 6), round(solution.value, 6)
    (0.6, 0.57735)
    """

    needs: ClassVar[Needs] = Needs(binary=True)

    n_candidates: int = 4

    def search(self, oracle: Oracle, objective: Objective) -> SolverResult:
        """Return the rule at the best threshold of every group."""
        walk, values, everywhere = self._walk(oracle, objective)
        ratio = objective.ratio
        bounding = partial(bounding_losses, objective, ratio) if oracle.certified and ratio is not None else no_losses
        result, threshold, others = finish_walk(
            oracle,
            objective,
            walk,
            values,
            points=lambda index: _thresholds(walk.lower[index], walk.upper[index]),
            loss=threshold_loss,
            value=objective.values if ratio is None else lambda pooled: ratio.value(*ratio.at(pooled)),
            n_candidates=self.n_candidates,
            status="Optimal over all thresholds." if everywhere else _INCOMPLETE,
            outcome=Outcome.OPTIMAL if everywhere else Outcome.LOCAL,
            beside=bounding,
        )
        result = replace(result, threshold=threshold)
        if ratio is not None and oracle.certified:
            return certify_walk(result, oracle, objective, ratio, values[walk.best(values)], others)
        return self._bounded(oracle, objective, result) if everywhere else result

    def _bounded(self, oracle: Oracle, objective: Objective, result: SolverResult) -> SolverResult:
        """Attach the optimum of the family, or with probabilities what holds for all rules, randomised ones as well."""
        if not oracle.certified:
            return replace(result, upper_bound=result.value)
        if objective.concave:
            bound = max(result.value, concave_bound(oracle, objective, result.confusion))
            text = f"A mixture could improve the metric by at most {bound - result.value:.2g}."
            return replace(result, upper_bound=bound, notes=(*result.notes, *note_list(NoteKind.ALTERNATIVE, text)))
        return result

    def _walk(self, oracle: Oracle, objective: Objective) -> tuple[Walk, FloatArray, bool]:
        """Follow all thresholds; return the intervals between them, the values there, and whether none is better.

        Intervals that are not worth a look, or too many to be looked at, have the value -inf.
        """
        grouping, ratio = objective.grouping, objective.ratio
        n_groups = grouping.n_groups
        constant, slope = (loss.map(lambda a: np.repeat(a, n_groups, axis=0)) for loss in (_CONSTANT, _SLOPE))
        if ratio is not None:
            score = RatioScore(ratio)
            # Above all probabilities only class 0 is predicted.
            vanishing = ~np.stack([ratio.A[:, :, 0].any(axis=1), ratio.B[:, :, 0].any(axis=1)], axis=1)
            walk = oracle.walk(line_of(objective, ratio, constant, slope, vanishing), 0.0, score)
            return walk, score.value(walk.values), True
        group = np.where(grouping.share > 0, grouping.group, -1)
        ones = np.repeat(_PREDICTED_ONE[None], n_groups, axis=0)
        vanishing = np.ones((n_groups, 2), dtype=bool)
        line = Line(group, grouping.share, constant, slope, ones, vanishing)
        if objective.monotone and n_groups <= _MAX_SEPARATE_GROUPS:
            walks = []
            for g in range(n_groups):
                part = oracle.walk(line.take(slice(g, g + 1)), 0.0, _Corner(objective, g))
                walks.append(replace(part, group=part.group + g))
            walk = Walk.joined(walks)
        else:
            walk = oracle.walk(line, 0.0)
        values, everywhere = np.full(len(walk.group), -np.inf), True
        behind = (np.diff(walk.group) > 0) | ((np.diff(walk.group) == 0) & (walk.lower[1:] >= walk.lower[:-1]))
        order = np.arange(len(values)) if behind.all() else np.lexsort((walk.lower, walk.group))
        ends = np.searchsorted(walk.group[order], np.arange(n_groups + 1))
        for g in range(n_groups):
            intervals = order[ends[g] : ends[g + 1]]
            value = partial(_values, objective, g)
            if objective.slow and len(intervals) > _MAX_SLOW_VALUES:
                values[intervals], everywhere = _values_near_best(value, walk.values[intervals]), False
                continue
            if objective.monotone and len(intervals) > _MAX_UNPRUNED:
                intervals = intervals[_promising(_Corner(objective, g), walk.values[intervals])]
            for start in range(0, len(intervals), _CHUNK_INTERVALS):
                some = intervals[start : start + _CHUNK_INTERVALS]
                values[some] = value(walk.values[some])
        return walk, values, everywhere


@dataclass(frozen=True, eq=False)
class _Within:
    """The metric of one group among thresholds that keep constraints on its confusion, -inf of the others."""

    objective: Objective
    constraints: tuple[BoundConstraint, ...]

    def value(self, at: FloatArray) -> FloatArray:
        """Return the values (...) of shares (..., 2) of each true class that are predicted 1."""
        return self.of_confusions(_confusions(at.reshape(-1, 2), self.objective.row_priors[0])).reshape(at.shape[:-1])

    def of_confusions(self, C: FloatArray) -> FloatArray:
        """Return the values (T,) of confusions (T, 2, 2); of a transform of a ratio, what it transforms."""
        kept = self.kept(C)
        values, ratio = np.full(len(C), -np.inf), self.objective.ratio
        if ratio is None:
            values[kept] = self.objective.values_of(0, C[kept])
        else:
            values[kept] = ratio.value(*ratio.at(C[kept, None]))[:, 0]
        return values

    def kept(self, C: FloatArray) -> NDArray[np.bool_]:
        """Say which confusions (T, 2, 2) keep the constraints."""
        kept = np.ones(len(C), dtype=bool)
        for constraint in self.constraints:
            kept &= constraint.keeps(C)
        return kept

    @property
    def slow(self) -> bool:
        """Whether a value or a constraint requires a call of a user's function."""
        return self.objective.slow or any(constraint.metric.traits.slow for constraint in self.constraints)

    @property
    def quick(self) -> _Within:
        """The same with the constraints that require no such call."""
        return replace(self, constraints=tuple(c for c in self.constraints if not c.metric.traits.slow))

    def guide(self, at: FloatArray) -> FloatArray:
        """Return the values of shares (T, 2), and far below them minus what the constraints are missed by."""
        C = _confusions(at, self.objective.row_priors[0])
        values, missed = self.of_confusions(C), np.zeros(len(C))
        for constraint in self.constraints:
            value, ends = constraint.value(C), constraint.constraint
            missed += np.maximum(np.maximum(ends.low - value, value - ends.high), 0.0)
        return np.where(np.isneginf(values), -_FAR_BELOW - missed, values)

    def bound(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return bounds of the metric in boxes, of a ratio or one that rises; -inf where a box keeps no half-space."""
        ratio = self.objective.ratio
        if ratio is None:
            value = _Corner(self.objective, 0).bound(low, high)
        else:
            ends = [self._extremes(A[0], low, high) for A in (ratio.A, ratio.B)]
            value = RatioScore(ratio).bound(*(np.stack(end, axis=-1) for end in zip(*ends, strict=True)))
        for space in (space for constraint in self.constraints for space in constraint.half_spaces):
            most = self._extremes(space.A, low, high)[1] - space.level
            value = np.where(most >= -2 * _ROUNDING * max(np.abs(space.A).max(), 1.0), value, -np.inf)
        return value

    def _extremes(self, A: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the largest <A, C> in boxes of shares."""
        nobody = float(A[:, 0] @ self.objective.row_priors[0])
        rise = A[:, 1] - A[:, 0]
        least, most = np.where(rise > 0, low, high), np.where(rise > 0, high, low)
        return nobody + least @ rise, nobody + most @ rise


def sweep_within(
    oracle: Oracle, objective: Objective, limits: ConstraintSystem, n_candidates: int = 16
) -> SolverResult | None:
    """Return the best of all thresholds that keep constraints, None where none does."""
    assert limits.shared(objective.grouping.share)
    bound = tuple(constraint.bound for constraint in limits.constraints if isinstance(constraint, PooledConstraint))
    grouping, score = objective.grouping, _Within(objective, bound)
    group = np.where(grouping.share > 0, grouping.group, -1)
    line = Line(group, grouping.share, _CONSTANT, _SLOPE, _PREDICTED_ONE[None], np.ones((1, 2), dtype=bool))
    walk = oracle.walk(line, 0.0, score if objective.monotone or objective.ratio is not None else None)
    everywhere = not score.slow or len(walk.group) <= _MAX_SLOW_VALUES
    if everywhere:
        chunks = range(0, len(walk.group), _CHUNK_INTERVALS)
        values = np.concatenate([score.value(walk.values[start : start + _CHUNK_INTERVALS]) for start in chunks])
    else:
        values = np.full(len(walk.group), -np.inf)
        order = np.argsort(walk.lower, kind="stable")
        feasible = order[score.quick.kept(_confusions(walk.values[order], objective.row_priors[0]))]
        guided = _values_near_best(score.guide, walk.values[feasible])
        values[feasible] = np.where(guided > -_FAR_BELOW / 2, guided, -np.inf)
    if values.max(initial=-np.inf) == -np.inf:
        return None
    result, threshold, _ = finish_walk(
        oracle,
        objective,
        walk,
        values,
        points=lambda index: _thresholds(walk.lower[index], walk.upper[index]),
        loss=threshold_loss,
        value=lambda pooled: score.of_confusions(pooled.reshape(-1, 2, 2)).reshape(pooled.shape[:-2]),
        n_candidates=n_candidates,
        status=f"Optimal over all thresholds that satisfy {limits.called}."
        if everywhere
        else f"{_INCOMPLETE} The evaluated thresholds satisfy {limits.called}.",
        outcome=Outcome.OPTIMAL if everywhere else Outcome.LOCAL,
    )
    return replace(result, threshold=threshold, upper_bound=result.value if everywhere else None)


def hull_losses(oracle: Oracle, block: IntArray, *, shared: bool = False) -> list[Loss]:
    """Return the thresholds of binary outputs that mixtures of thresholds are made of, as losses of blocks.

    Those on the upper hull of the curve of every block: no functional of its confusion that likes hits is larger at
    another threshold. Where the outputs of a block do not count alike, so that it has no such curve, thresholds all
    along it instead.

    Returns
    -------
    list of Loss
        As many as the block of most thresholds has; the others repeat their last.
    """
    n_blocks = int(block.max()) + 1
    total = np.bincount(block, oracle.weight)
    share = oracle.weight / np.where(total > 0, total, 1.0)[block]
    constant, slope = (loss.map(lambda a: np.repeat(a, n_blocks, axis=0)) for loss in (_CONSTANT, _SLOPE))
    ones, vanishing = np.repeat(_PREDICTED_ONE[None], n_blocks, axis=0), np.ones((n_blocks, 2), dtype=bool)
    walk = oracle.walk(Line(np.where(share > 0, block, -1), share, constant, slope, ones, vanishing), 0.0)
    thresholds_by_block = []
    for b in range(n_blocks):
        intervals = np.flatnonzero(walk.group == b)
        intervals = intervals[np.argsort(-walk.lower[intervals], kind="stable")]  # from nobody to everybody
        some = _along(len(intervals)) if shared else _upper_hull(walk.values[intervals])
        thresholds_by_block.append(_thresholds(walk.lower[intervals[some]], walk.upper[intervals[some]]))
    size = max(map(len, thresholds_by_block))
    thresholds = np.stack(
        [np.append(points, np.full(size - len(points), points[-1])) for points in thresholds_by_block], axis=1
    )
    return [threshold_loss(row) for row in thresholds]


def _along(n: int) -> IntArray:
    return np.unique(np.linspace(0, n - 1, min(n, _MAX_CURVE_POINTS)).astype(np.intp))


def _upper_hull(points: FloatArray) -> IntArray:
    """Return which of some points (n, 2), that ascend in both coordinates, are on the upper hull; ends included."""
    kept = np.arange(len(points))
    while len(kept) > 2:  # what is not above the line through its neighbours is no corner
        x, y = np.diff(points[kept], axis=0).T
        corner = np.concatenate([[True], y[:-1] * x[1:] > x[:-1] * y[1:], [True]])
        if corner.all():
            break
        kept = kept[corner]
    return np.asarray(kept)


def _values(objective: Objective, group: int, predicted_one: FloatArray) -> FloatArray:
    """Values (...) of a group where such shares (..., 2) of each true class are predicted 1."""
    C = _confusions(predicted_one.reshape(-1, 2), objective.row_priors[group])
    return objective.values_of(group, C).reshape(predicted_one.shape[:-1])


def _promising(corner: _Corner, predicted_one: FloatArray) -> IntArray:
    """Intervals in a row among which the best of them are: along the thresholds both shares fall."""
    begin = np.arange(0, len(predicted_one), _RUN_LENGTH)
    first, last = predicted_one[begin], predicted_one[np.minimum(begin + _RUN_LENGTH, len(predicted_one)) - 1]
    best = corner.value(first).max()
    worth = corner.bound(last, first) >= best - _ROUNDING
    return np.flatnonzero(np.repeat(worth, _RUN_LENGTH)[: len(predicted_one)])


def _values_near_best(value: Callable[[FloatArray], FloatArray], predicted_one: FloatArray) -> FloatArray:
    """Values of some of the intervals in a row, the more the nearer to the best ones; -inf of the others."""
    values = np.full(len(predicted_one), -np.inf)
    if len(values) == 0:
        return values
    step = -(-len(values) // _COARSE_POINTS)
    trial = np.arange(0, len(values), step)
    while True:
        new = trial[np.isneginf(values[trial])]
        values[new] = value(predicted_one[new])
        if step == 1:
            return values
        best = np.argsort(-values, kind="stable")[:_N_MAXIMA]
        finer = max(1, step // _REFINEMENT)
        near = best[:, None] + np.arange(-step, step + 1, finer)
        trial, step = np.unique(np.clip(near, 0, len(values) - 1)), finer


def _confusions(predicted_one: FloatArray, priors: FloatArray) -> FloatArray:
    """Confusion matrices (T, 2, 2) from the shares of each true class that are predicted 1."""
    # Running sums end a rounding away from the truth: an empty cell must be empty for a 0/0 to be one.
    ones = np.where(predicted_one < 1e-12 * priors, 0.0, np.minimum(predicted_one, priors))
    rest = priors - ones
    rest = np.where(rest < 1e-12 * priors, 0.0, rest)
    return np.stack([rest, ones], axis=-1)


def _thresholds(low: FloatArray, high: FloatArray) -> FloatArray:
    """Thresholds inside intervals, kept within [0, 1] where that decides the same."""
    left = np.where(np.isinf(low) & (high > 0), 0.0, low)
    right = np.where(np.isinf(high) & (low <= 1), 1.0, high)
    return interior(left, right)
