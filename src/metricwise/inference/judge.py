"""The judge of decisions: value, influence of rows, standard errors, comparisons.

The delta method and the bootstrap are applied here, but for the limits of constraints (`confidence_limits`), which
count by cells. Must not fit rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.cached import cached_property
from ..core.losses import Loss
from ..core.matrices import with_extra
from ..metrics.objective import Objective
from ..oracles.counts import Counts
from ..oracles.problem import InMemory, argmax_rule, mixed
from ..rules.weighted import anonymous_rule
from .decisions import Decisions
from .results import Comparison, Estimate
from .spread import Errors, Spread, clip_interval

__all__ = ["MAX_DELTA_ERROR", "RESAMPLES", "Judge", "Scored", "trial_influences"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# In units of the metric's range: beyond it the linear approximation fails (MCC and G-mean of a class that is hardly
# ever predicted), and standard errors are those of the bootstrap.
MAX_DELTA_ERROR = 0.1
RESAMPLES = 200
_MAX_LOTS = 1 << 12  # of rows that are drawn together
_MAX_DRAWS = 1 << 22  # numbers of resamples that are held at once
_MAX_CELLS = 1 << 22  # of confusion matrices that are valued again with one more row


@dataclass(frozen=True, eq=False)
class Scored:
    """The metric of decisions, and what its sampling error is made of.

    Parameters
    ----------
    value : float
    influence : ndarray of shape (N,)
        Of each row on the value; sums to 0, and the sum of squares estimates the variance over samples of rows.
    n_effective : float
        Number of independent rows.
    unshown : ndarray of shape (G, K)
        Change of the value by one more row of a class whose rows are all decided alike, decided otherwise.
    can_move : bool
        Whether any decision about any row changes the value.
    """

    value: float
    influence: FloatArray
    n_effective: float
    unshown: FloatArray
    can_move: bool = True


class Judge:
    """Scores decisions about labelled rows in memory by the metric of a problem, which is bound once."""

    def __init__(self, problem: InMemory) -> None:
        self.problem, self.by_row = problem, problem.aim.average == "instance"

    @cached_property
    def spread(self) -> Spread:
        """Sampling variation of the rows."""
        return Spread.of(self.problem)

    @cached_property
    def oracle(self) -> Counts:
        """Counts with the labels."""
        return self.problem.oracle()

    @cached_property
    def objective(self) -> Objective:
        """The metric bound to the class priors of the rows."""
        return self.problem.objective(self.oracle)

    # -------------------------------------------------------------------------------------------------------- values

    def confusion(self, decisions: Decisions) -> FloatArray:
        """Return the confusion tensor (M, K, K) of decisions."""
        return mixed(np.stack([self.oracle.confusion_of(codes) for codes in decisions.codes]), decisions.shares)

    def values_of_counts(self, counts: FloatArray) -> FloatArray:
        """Return the metric of weighted counts (..., M, K, K) as (...), at the class priors of all rows.

        A class without counts is counted as missed.
        """
        shown = counts.sum(axis=-1, keepdims=True)
        C = np.divide(counts, shown, out=np.zeros_like(counts), where=shown > 0) * self.oracle.priors[..., None]
        pooled = self.objective.grouping.pool_each(C.reshape(-1, *C.shape[-3:]))
        return self.objective.totals(self.objective.values(pooled)).reshape(counts.shape[:-3])

    def values_of_samples(self, counts: FloatArray) -> FloatArray:
        """Return the metric of weighted counts (S, M, K, K) of S samples of rows, each at its own class priors.

        Over samples of rows these vary as well, unless they are known.
        """
        return self.values_of_counts(counts) if self.problem.prior is not None else self._values_at_own_priors(counts)

    def _values_at_own_priors(self, counts: FloatArray) -> FloatArray:
        C = counts / np.maximum(counts.sum(axis=(2, 3), keepdims=True), np.finfo(float).tiny)
        return self.objective.totals(self.objective.values_at_own_priors(self.objective.grouping.pool_each(C)))

    def value_with_correct_rows(self, decisions: Decisions) -> float:
        """Return the metric with one more correctly decided row of every class.

        Where a rare class is never predicted, the rows do not show how often it could be, and the sampling error is 0.
        """
        if self.by_row:
            return self.problem.value_of(decisions.drawn)
        schema, k = self.problem.schema, self.problem.schema.decision_width
        extra = np.eye(k) * (np.arange(k) < schema.n_classes[:, None])[:, :, None]
        n_labels = np.maximum(self.problem.source.class_rows.sum(axis=1), 1.0)[:, None, None]
        return float(self._values_at_own_priors((self.confusion(decisions) + extra / n_labels)[None])[0])

    # -------------------------------------------------------------------------------------------------- delta method

    def score(self, decisions: Decisions, *, unshown: bool = False) -> Scored:
        """Return the metric of decisions and the influence of each row, with that of rows not shown if asked for."""
        decisions = self._as_judged(decisions)
        rows, n_effective = self.problem.source.rows, self.spread.n_independent
        assert rows.codes is not None
        if self.by_row:
            values, mass = self.problem.by_row(decisions.drawn)
            mass = mass / mass.sum()
            mean = float(values @ mass)
            return Scored(mean, (values - mean) * mass, n_effective, np.zeros(0))
        C = self.confusion(decisions)
        table = self.influence_table(C)
        influence, outputs = np.zeros(rows.n_rows), np.arange(len(table))
        shares = np.broadcast_to(decisions.shares, (len(table), len(decisions.codes)))
        for part in rows.proba.chunks():
            for codes, share in zip(decisions.codes, shares.T, strict=True):
                influence[part] += table[outputs, rows.codes[part], codes[part]] @ share
        influence = influence if rows.weight is None else influence * rows.weight
        moved = self._unshown(C, table) if unshown else np.zeros(0)
        return Scored(self.objective.value(C), influence, n_effective, moved, bool(table.any()))

    def _as_judged(self, decisions: Decisions) -> Decisions:
        return decisions.as_drawn if self.by_row or self.problem.aim.metric.traits.needs_integer_counts else decisions

    def influence_table(self, C: FloatArray) -> FloatArray:
        """Return the influence of a row of unit weight on the metric of a confusion tensor (M, K, K).

        Of shape (M, K + 1, K), by true class and decision; the last row is zero, for missing labels (-1).
        """
        problem, oracle, objective = self.problem, self.oracle, self.objective
        grouping = objective.grouping
        pooled = grouping.pool(C)
        weight = objective.weight_at(objective.values(pooled))
        slope = grouping.spread(objective.full_gradient(pooled) * weight[:, None, None])
        slope = slope * grouping.share[:, None, None]  # (M, K, K)
        counts = with_extra(problem.source.class_weights, problem.schema.n_extra)
        factor = np.divide(oracle.priors, counts, out=np.zeros_like(counts), where=counts > 0)
        if problem.prior is None:
            # A row that moves its output's confusion moves it away from what it was, by as much.
            center = np.repeat(np.sum(slope * grouping.spread(pooled), axis=(1, 2))[:, None], counts.shape[1], axis=1)
        else:  # class priors are known: rows move the metric within their class only
            share = oracle.priors
            center = np.divide(np.sum(slope * C, axis=2), share, out=np.zeros_like(share), where=share > 0)
        table = (slope - center[:, :, None]) * factor[:, :, None]
        return np.concatenate([table, np.zeros_like(table[:, :1])], axis=1)

    def _unshown(self, C: FloatArray, table: FloatArray) -> FloatArray:
        """Change of the metric by one more row of each class of each group of outputs, (G, K), decided otherwise.

        0 unless all rows of a class are decided alike. Decided correctly where all are wrong, in any wrong way where
        all are right. For very many such classes the linear approximation serves.
        """
        objective, unit = self.objective, self._unit_weight
        grouping = objective.grouping
        pooled = grouping.pool(C)
        k = pooled.shape[1]
        out, eye = np.zeros(pooled.shape[:2]), np.eye(k)
        uniform = np.argwhere((pooled > 0).sum(axis=2) == 1)
        for g, i in uniform:
            n, total = int(grouping.n_classes[g]), float(grouping.total[g])
            decided = (np.ones(n) - eye[i, :n]) / (n - 1) if pooled[g, i, i] > 0 else eye[i, :n]
            if len(uniform) * k * k > _MAX_CELLS:
                slope = float(table[grouping.first[g], i, :n] @ decided)
                out[g, i] = slope * unit if np.isfinite(slope) else 0.0
                continue
            more = pooled[g, :n, :n] * total
            more[i] += unit * decided
            more /= more.sum()
            metric = objective.metrics[g]._of_rows(total + unit)
            value = float(metric.bind(more.sum(axis=1), objective.labels[g]).value(more))
            out[g, i] = (value - float(objective.values_of(int(g), pooled[g][None])[0])) * grouping.weight[g]
        return out

    @property
    def _unit_weight(self) -> float:
        """Weight of what is drawn as one: a row, or a cluster of rows."""
        rows = self.problem.source.rows
        if rows.weight is not None and rows.repeats is not None:
            return float(rows.weight.sum() / rows.repeats.sum())
        weight = 1.0 if rows.weight is None else float(rows.weight.mean())
        if rows.dependence is not None:  # neighbours in time are no copies of one another
            return weight * rows.dependence.inflation
        return weight * rows.n_rows / self.spread.n_clusters

    # ----------------------------------------------------------------------------------------------------- bootstrap

    def bootstrap(
        self, both: Sequence[Decisions], *, center: Sequence[float] | None = None, n: int = RESAMPLES, seed: int = 0
    ) -> Errors:
        """Return standard errors of the metric of two sets of decisions from n resamples of rows.

        Root mean squares about `center`, by default about the means of the resamples.
        """
        values = self.resampled_values(both, n, seed)
        deviations = values - (values.mean(axis=1) if center is None else np.asarray(center))[:, None]
        return Errors(*(float(np.sqrt(np.mean(d**2))) for d in (*deviations, deviations[0] - deviations[1])))

    def resampled_values(self, both: Sequence[Decisions], n_resamples: int, seed: int) -> FloatArray:
        """Return the metric of sets of decisions in Poisson resamples of rows, (len(both), R)."""
        rng, k = np.random.default_rng(seed), self.problem.schema.decision_width
        if self.by_row:
            draws = self.spread.draws(n_resamples, rng)
            pairs = [self.problem.by_row(decisions.drawn) for decisions in both]
            return np.stack([draws @ (v * mass) / np.maximum(draws @ mass, np.finfo(float).tiny) for v, mass in pairs])
        rows, spread = self.problem.source.rows, self.spread.lots(_MAX_LOTS, rng)
        assert rows.codes is not None
        true = rows.codes.astype(np.int32)
        cells = [[np.where(true >= 0, true * k + codes, -1).astype(np.int32) for codes in d.codes] for d in both]
        values = np.empty((len(both), n_resamples))
        step = max(1, _MAX_DRAWS // max(len(true), true.shape[1] * k * k * max(map(len, cells))))
        for start in range(0, n_resamples, step):
            part = slice(start, min(start + step, n_resamples))
            drawn = spread.draws(part.stop - start, rng)
            drawn = drawn if rows.weight is None else drawn * rows.weight
            for out, decisions, mix in zip(values, both, cells, strict=True):
                counts = [kernels.tally(cell, drawn, k * k).reshape(len(drawn), -1, k, k) for cell in mix]
                out[part] = self.values_of_samples(decisions.mix(counts))
        return values

    # --------------------------------------------------------------------------------------------------- comparisons

    def errors(self, both: Sequence[Decisions], scores: Sequence[Scored]) -> Errors:
        """Return standard errors of two values and their difference.

        By the delta method; by the bootstrap where the metric is not smooth or too steep. Each is decided separately,
        so that the error of a value does not depend on what it is compared with.
        """
        metric, (first, second) = self.problem.aim.metric, scores
        influences = (first.influence, second.influence, first.influence - second.influence)
        errors = Errors(*map(self.spread.error, influences))
        most = MAX_DELTA_ERROR * (metric.range[1] - metric.range[0])
        resampled = [
            not self.by_row and not (metric.traits.smooth and error <= most) for error in errors
        ]  # also if NaN
        if any(resampled):
            by_bootstrap = self.bootstrap([*map(self._as_judged, both)], center=[first.value, second.value])
            errors = Errors(*np.where(resampled, by_bootstrap, errors).tolist())
        unshown = (first.unshown, second.unshown, first.unshown - second.unshown)
        return Errors(*(float(np.hypot(e, np.linalg.norm(u))) for e, u in zip(errors, unshown, strict=True)))

    def pair(self, both: Sequence[Decisions]) -> tuple[tuple[float, float], Errors]:
        """Return the values of two sets of decisions, and the errors of both and of the difference."""
        first, second = (self.score(decisions, unshown=True) for decisions in both)
        return (first.value, second.value), self.errors(both, (first, second))

    def compare(self, both: Sequence[Decisions]) -> Comparison:
        """Return the metric of two sets of decisions and its difference, with 95 % intervals."""
        (first, second), errors = self.pair(both)
        low, high = self.problem.aim.metric.range
        return Comparison(
            Estimate(*self.spread.interval(first, errors.first, low, high)),
            Estimate(*self.spread.interval(second, errors.second, low, high)),
            Estimate(*clip_interval(first - second, self.spread.quantile * errors.difference, low - high, high - low)),
        )


def trial_influences(problems: Sequence[InMemory]) -> Iterator[FloatArray]:
    """Yield the influence (N,) of rows on the metric of argmax, and of decisions that balance the classes."""
    for problem in problems:
        judge = Judge(problem)
        priors = judge.oracle.priors
        weight = np.divide(1.0, priors, out=np.zeros_like(priors), where=priors > 0)
        balanced = anonymous_rule(Loss(diagonal=-weight, offset=np.zeros_like(weight)), problem.schema.n_decisions)
        for rule in (argmax_rule(problem), balanced):
            yield judge.score(Decisions.of_codes(problem.decide(rule))).influence
