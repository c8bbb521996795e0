"""Confidence limits of a metric in the population, and of the difference of a metric between two groups.

Exact for proportions, by the delta method for other smooth metrics, part by part for minima. Must not know how
constraints are satisfied, nor solvers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..core.labels import python_labels
from ..core.matrices import inner
from ..core.quantiles import student_quantile
from ..goals.constraint import BoundConstraint, ConstraintSystem, GroupGap, PooledConstraint
from ..goals.proportions import cells_of, least_of
from ..oracles.problem import Problem
from ..rules.base import Rule, RuleRows
from ..rules.calibration import TemperatureScaling

__all__ = ["SampledGap", "SampledMetric", "limit_distances", "sample_constraints", "lower_limit", "upper_limit"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class SampledMetric:
    """The metric of a constraint, counted for one rule on labelled rows.

    Parameters
    ----------
    bound : BoundConstraint
    C : ndarray of shape (K, K)
        The confusion matrix that it is about.
    n_rows : float
        Number of labels; of clustered or weighted ones, the number of independent labels that are worth as much.
    labels : tuple
        The classes.
    design_effect : float, default=1.0
        Variance of the metric over that of as many independent labels of one weight.
    prior_known : bool, default=False
        Whether the class priors are known, so that they do not vary.
    parts : tuple of SampledMetric, default=()
        The metrics that it is the minimum of.
    degrees_of_freedom : float, default=inf
        Of the variance: one less than the number of clusters of rows.
    """

    bound: BoundConstraint
    C: FloatArray
    n_rows: float
    labels: tuple[Any, ...]
    design_effect: float = 1.0
    prior_known: bool = False
    parts: tuple[SampledMetric, ...] = ()
    degrees_of_freedom: float = np.inf

    @cached_property
    def value(self) -> float:
        """The metric."""
        return float(self.bound.value(self.C))

    @property
    def extra(self) -> FloatArray:
        """One more row of every class there is, decided at random."""
        k = len(self.C)
        return np.where(self.C.sum(axis=1, keepdims=True) > 0, 1.0 / k, 0.0) * np.ones((1, k))

    @cached_property
    def smooth(self) -> FloatArray:
        """The confusion matrix with these rows beside those counted: no cell is certain."""
        C = self.n_rows * self.C + self.extra
        return np.asarray(C / C.sum())

    def slopes(self, C: FloatArray) -> FloatArray:
        """Return how a row of each true class and decision moves the metric, (K, K), with mean 0 under C."""
        bound = self.bound
        slope = bound.constraint.metric._free_gradient(C, self.labels)
        if bound.around is not None:  # bounds move with the prior
            prior = C.sum(axis=1)[bound.around]
            slope = slope - ((np.arange(len(C)) == bound.around) - prior)[:, None]
        if self.prior_known:  # rows move it within their class only
            share = C.sum(axis=1, keepdims=True)
            slope = slope - np.divide(inner_rows(slope, C), share, out=np.zeros_like(share), where=share > 0)
        return np.asarray(slope)

    @cached_property
    def smooth_slopes(self) -> FloatArray:
        """The slopes at the smoothed matrix."""
        return self.slopes(self.smooth)

    @cached_property
    def variance(self) -> float:
        """Of the metric over samples of so many rows, by its slopes."""
        if self._cells is not None:  # whose slopes are known: 1 - p and -p over the share of trials
            share, trials = _share_of(self._cells, self.smooth)
            return self.design_effect * share * (1.0 - share) / (trials * max(self.n_rows, 1.0))
        slope = self.smooth_slopes
        return self.design_effect * float(inner(slope**2, self.smooth)) / max(self.n_rows, 1.0)

    @cached_property
    def proportion(self) -> tuple[FloatArray, FloatArray] | None:
        """Successes and trials, as cells (K, K) of 0 and 1, where the metric is the share of the one in the other.

        Rows move a proportion in two ways only: up by successes, down by other trials.
        """
        if self.prior_known or self.bound.around is not None:
            return None
        if self._cells is not None:
            return self._cells
        slope = self.smooth_slopes
        size = float(np.abs(slope).max())
        moving = np.where(np.abs(slope) > _SAME * size, slope / max(size, np.finfo(float).tiny), 0.0)
        ways = np.unique(np.round(moving[moving != 0.0], 7))
        if len(ways) != 2 or ways[0] * ways[1] > 0:
            return None
        successes, trials = (moving > 0).astype(float), (moving != 0).astype(float)
        share = float(inner(successes, self.smooth) / inner(trials, self.smooth))
        return (successes, trials) if abs(share - float(self._value_of(self.smooth))) < 1e-7 else None

    @cached_property
    def _cells(self) -> tuple[FloatArray, FloatArray] | None:
        """The same where the metric is defined so, as recalls and precisions are, and rows move the class priors."""
        if self.prior_known or self.bound.around is not None:
            return None
        read = cells_of(self.bound.constraint.metric, len(self.labels), self.labels)
        if read is None:
            return None
        cells = np.zeros_like(self.C), np.zeros_like(self.C)  # no row is of a decision that is no class
        for padded, part in zip(cells, read, strict=True):
            padded[: len(part)] = part
        share, trials = _share_of(cells, self.C)
        return cells if trials > 0 and abs(share - self.value) < _SAME else None

    def independent_rows(self, z: float, wide: float) -> float:
        """Return the rows that limits are of: fewer have those that Student's quantiles ask for (Korn and Graubard)."""
        return self.n_rows / self.design_effect * ((z / wide) ** 2 if z else 1.0)

    @property
    def smoothing(self) -> float:
        """By how much the metric of the smoothed matrix is larger."""
        return float(self._value_of(self.smooth) - self._value_of(self.C))

    def _value_of(self, C: FloatArray) -> FloatArray:
        """The metric, less the prior that it is held against, of confusion matrices (..., K, K) of any priors."""
        bound = self.bound
        value = bound.constraint.metric.bind(C.sum(axis=-1), self.labels).value(C)
        return np.asarray(value if bound.around is None else value - C.sum(axis=-1)[..., bound.around])


@dataclass(frozen=True, eq=False)
class SampledGap:
    """The difference of a metric between two groups without common rows."""

    bound: GroupGap
    first: SampledMetric
    second: SampledMetric

    @property
    def value(self) -> float:
        """The difference."""
        return self.first.value - self.second.value

    @property
    def variance(self) -> float:
        """Of the difference."""
        return self.first.variance + self.second.variance


def _share_of(cells: tuple[FloatArray, FloatArray], C: FloatArray) -> tuple[float, float]:
    """The share of successes in trials, NaN without any, and that of trials in all rows."""
    successes, trials = (float(inner(part, C)) for part in cells)
    return successes / trials if trials > 0 else np.nan, trials


def inner_rows(A: FloatArray, C: FloatArray) -> FloatArray:
    """Return the sums over a row of the products of two matrices, (K, 1)."""
    return np.asarray(np.sum(A * C, axis=1, keepdims=True))


def lower_limit(counted: SampledMetric | SampledGap, level: float) -> float:
    """Return the lower confidence limit of the metric in the population, at a level of at least 0.5.

    Of a proportion of independent rows, Clopper and Pearson's exact limit. Of a minimum, the least of the limits of its
    parts: one of them is the minimum in the population. Of a difference, by the distances of both values to their
    limits [1]_.

    References
    ----------
    .. [1] Zou and Donner (2008), "Construction of confidence limits about effect measures: A general approach".

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.inference.confidence_limits import SampledMetric, lower_limit
    >>> from metricwise.metrics import Precision
    >>> from metricwise.goals.constraint import Constraint
    >>> C = np.array([[70, 2], [10, 18]]) / 100
    >>> floor = Constraint(Precision(index=1), low=0.8).bind(C.sum(axis=1))
    >>> round(lower_limit(SampledMetric(floor, C, 100, (0, 1)), 0.95), 4)  # of 18 of 20
    0.7174
    """
    return _limit(counted, 1 - level, -1.0)


def upper_limit(counted: SampledMetric | SampledGap, level: float) -> float:
    """Return the upper confidence limit of the metric in the population; see :func:`lower_limit`."""
    return _limit(counted, level, 1.0)


def _limit(counted: SampledMetric | SampledGap, quantile: float, side: float) -> float:
    if isinstance(counted, SampledGap):
        first = _limit(counted.first, quantile, side) - counted.first.value
        other = _limit(counted.second, 1 - quantile, -side) - counted.second.value
        return counted.value + side * float(np.hypot(first, other))
    if counted.parts:
        return min(_limit(part, quantile, side) for part in counted.parts)
    z = NormalDist().inv_cdf(quantile)
    wide = student_quantile(z, counted.degrees_of_freedom)
    if counted.proportion is not None:
        n = counted.independent_rows(z, wide)
        hits, trials = (n * float(inner(cells, counted.C)) for cells in counted.proportion)
        return float(_proportion_limit(np.array(hits), np.array(trials), quantile, side))
    # Around the value, or that of the smoothed matrix if it is further out: few errors do not mean none.
    moved = max(side * counted.smoothing, 0.0) * side
    return counted.value + moved + wide * float(np.sqrt(counted.variance))


def _proportion_limit(hits: FloatArray, trials: FloatArray, quantile: float, side: float) -> FloatArray:
    """Clopper and Pearson's limits of proportions, (...)."""
    from scipy.special import betaincinv

    with np.errstate(invalid="ignore"):
        if side < 0:
            return np.asarray(np.where(hits > 0, betaincinv(hits, trials - hits + 1.0, quantile), 0.0))
        return np.asarray(np.where(hits < trials, betaincinv(hits + 1.0, trials - hits, quantile), 1.0))


def limit_distances(counted: SampledMetric, C: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return how far the limits of a metric are from its value, below and above, at other confusions (T, K, K).

    Of a proportion those of each confusion, counted on rows that are worth as much as those of `counted`; of any other
    metric those of `counted` itself.
    """
    if counted.parts or counted.proportion is None:
        ends = counted.value - lower_limit(counted, level), upper_limit(counted, level) - counted.value
        return np.full(len(C), ends[0]), np.full(len(C), ends[1])
    z = NormalDist().inv_cdf(level)
    n = counted.independent_rows(z, student_quantile(z, counted.degrees_of_freedom))
    hits, trials = (n * np.asarray(inner(cells, C)) for cells in counted.proportion)
    value = np.divide(hits, trials, out=np.zeros_like(hits), where=trials > 0)
    low, high = (_proportion_limit(hits, trials, *side) for side in ((1 - level, -1.0), (level, 1.0)))
    return np.asarray(value - low), np.asarray(high - value)


def sample_constraints(
    problem: Problem,
    limits: ConstraintSystem,
    confusion: FloatArray,
    rule: Callable[[], Rule],
    link: TemperatureScaling | None,
) -> list[SampledMetric | SampledGap]:
    """Return constraints as labelled rows count them for a rule over codes, which `rule` returns, behind a link.

    `confusion` (M, K, K) is that of the rule, counted with labels.
    """
    alike = problem.rows_alike
    prior_known = problem.prior is not None
    n_outputs = problem.schema.n_outputs // problem.schema.n_groups

    def counted(limit: PooledConstraint) -> SampledMetric:
        bound, C = limit.bound, limit.pool(confusion)
        outputs = np.flatnonzero(limit.share)
        labels = tuple(python_labels(np.asarray(problem.schema.classes[outputs[0]])))
        pooled = SampledMetric(
            bound, C, float(problem.source.class_rows[outputs].sum()), labels, prior_known=prior_known
        )
        parts = [replace(pooled, bound=part) for part in _parts(bound, C, labels)] or [pooled]
        if not alike or len(np.unique(outputs % n_outputs)) > 1 or prior_known:
            decided = _Decided(problem, outputs, rule(), link)
            parts = [decided.adjusted(part) for part in parts]
        return parts[0] if len(parts) == 1 else replace(pooled, parts=tuple(parts))

    sampled: dict[int, SampledMetric] = {}  # many differences share a metric of a group

    def sampled_once(limit: PooledConstraint) -> SampledMetric:
        if id(limit) not in sampled:
            sampled[id(limit)] = counted(limit)
        return sampled[id(limit)]

    out: list[SampledMetric | SampledGap] = []
    for limit in limits.constraints:
        if isinstance(limit, PooledConstraint):
            out.append(counted(limit))
        else:
            out.append(SampledGap(limit, sampled_once(limit.first), sampled_once(limit.second)))
    return out


def _parts(bound: BoundConstraint, C: FloatArray, labels: tuple[Any, ...]) -> list[BoundConstraint]:
    """What a metric is the least of, each bound to the priors of C."""
    priors = C.sum(axis=1)
    metrics = least_of(bound.constraint.metric, np.flatnonzero(priors > 0).tolist())
    return [replace(bound.constraint, metric=metric).bind(priors, labels) for metric in metrics]


@dataclass(frozen=True, eq=False)
class _Decided:
    """Rows of any weight, some of them together, with the decisions of a rule about some outputs."""

    problem: Problem
    outputs: IntArray
    rule: Rule
    link: TemperatureScaling | None

    def adjusted(self, counted: SampledMetric) -> SampledMetric:
        """Say how many independent labels are worth as much as these, and how much more they vary.

        First as if all that go together agreed (Kish's number, of those that move the metric), so that no error in ten
        copies is as little as in one; then by how far they do agree.
        """
        slope = counted.smooth_slopes
        moving = (np.abs(slope) > _SAME * np.abs(slope).max()).astype(np.float64)
        total, share = self._weights.sum(), float(inner(moving, counted.C))
        dependence = self.problem.dependence
        if share > 0 and dependence is not None:  # neighbours in time are no copies of one another
            counted = replace(counted, n_rows=counted.n_rows / dependence.inflation)
        elif share > 0:
            squares, _ = self._sum_of_squares(moving / (total * share))
            counted = replace(counted, n_rows=1 / (squares * share))
        slope = counted.smooth_slopes
        each = slope / total
        if counted.prior_known:  # rows of a class weigh what its prior is to what they are
            class_weights = self._weights.sum(axis=0)[: len(slope)]
            class_weights = np.pad(
                class_weights, (0, len(slope) - len(class_weights))
            )  # no row is of a decision that is no class
            rise = counted.smooth.sum(axis=1)
            each = (
                slope
                * np.divide(rise, class_weights, out=np.zeros(len(class_weights)), where=class_weights > 0)[:, None]
            )
        # What was smoothed is one more label of each class, whatever there is.
        smoothed = float(inner(slope**2, counted.extra)) / counted.n_rows**2
        squares, free = self._sum_of_squares(each)
        more = (squares + smoothed) / max(counted.variance, float(np.finfo(float).tiny))
        return replace(counted, design_effect=max(more, _SAME), degrees_of_freedom=free)

    @cached_property
    def _weights(self) -> FloatArray:
        return np.asarray(self.problem.source.class_weights[self.outputs])

    def _sum_of_squares(self, cells: FloatArray) -> tuple[float, float]:
        """The sum over independent rows of the squares of what their cells (K, K) add up to, times their weight.

        And its degrees of freedom, which are few where few clusters of rows are independent.
        """
        table = np.concatenate([cells, np.zeros((1, len(cells)))])  # missing labels look at the last
        outputs, rule, link = self.outputs, self.rule, self.link

        def ask(rows: Any) -> tuple[NDArray[Any], FloatArray, float]:
            proba = rows.proba if link is None else link.view(rows.proba)
            decided = rule.decide(RuleRows(proba, rows.start))
            moved = table[rows.codes[:, outputs], decided[:, outputs]].sum(axis=1)
            moved = moved if rows.weight is None else moved * rows.weight
            if rows.cluster is None:
                squares = moved**2 if rows.repeats is None else moved**2 / np.maximum(rows.repeats, 1.0)
                return np.empty(0, dtype=np.intp), np.empty(0), float(squares.sum())
            clusters, place = np.unique(rows.cluster, return_inverse=True)
            return clusters, np.asarray(np.bincount(place.reshape(-1), moved), dtype=np.float64), 0.0

        clusters, sums, squares = self.problem.source.reduce(ask, _joined)
        if len(clusters) == 0:
            return squares, np.inf
        together = np.bincount(np.unique(clusters, return_inverse=True)[1].reshape(-1), sums)
        free = max(len(together) - 1, 1)
        return float(np.sum(together**2) * len(together) / free), float(free)


def _joined(
    first: tuple[NDArray[Any], FloatArray, float], second: tuple[NDArray[Any], FloatArray, float]
) -> tuple[NDArray[Any], FloatArray, float]:
    return np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]]), first[2] + second[2]
