"""Values of two sets of decisions by a metric, with intervals.

Owns what a rule decides about given rows (`Decisions`), and the intervals of its value, of that of another and of their
difference. Must not know what users hand over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..oracles.problem import InMemory, mixed
from ..rules.base import Rule, RuleRows
from .results import Comparison, Estimate
from .uncertainty import STEEP, Errors, Spread, moves, values_of_samples, within

__all__ = ["Decisions", "Judged", "JudgedPair", "compare", "judge", "judge_pair"]

FloatArray = NDArray[np.float64]

_RESAMPLES = 200
_LOTS = 1 << 12
_DRAWS = 1 << 22  # numbers of resamples that are held at once
_MOST_CELLS = 1 << 22  # of confusion matrices that are valued anew


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a rule decides: codes (N, M) of each rule that it mixes, their shares (M or 1, R), and what is drawn."""

    codes: tuple[NDArray[Any], ...]
    shares: FloatArray
    drawn: NDArray[Any]

    @classmethod
    def of(cls, rule: Rule, rows: RuleRows, n_groups: int = 1) -> Decisions:
        """Return the decisions about all outputs, once for every sensitive group if there are any."""
        dtype = kernels.code_type(rule.schema.decision_width)
        each, shares = rule.decide_each(rows, n_groups)
        codes = tuple(decided.astype(dtype, copy=False) for decided in each)
        if len(codes) == 1 and rows.groups is None:
            return cls(codes, shares, codes[0])
        return cls(codes, shares, np.tile(rule.decide(rows).astype(dtype), n_groups))

    def take(self, rows: NDArray[np.intp]) -> Decisions:
        """Return those about some of the rows."""
        return Decisions(tuple(codes[rows] for codes in self.codes), self.shares, self.drawn[rows])

    def of_outputs(self, outputs: slice) -> Decisions:
        """Return those about some of the outputs."""
        shares = self.shares if len(self.shares) == 1 else self.shares[outputs]
        return Decisions(tuple(codes[:, outputs] for codes in self.codes), shares, self.drawn[:, outputs])

    def of_own_group(self, groups: NDArray[np.intp]) -> Decisions:
        """Return the decisions about a single output, by those of each row's group: what is drawn, if shares differ."""
        rows = np.arange(len(groups))
        own = [codes[rows, groups][:, None] for codes in (*self.codes, self.drawn)]
        if len(self.shares) == 1 or (self.shares == self.shares[0]).all():
            return Decisions(tuple(own[:-1]), self.shares[:1], own[-1])
        return Decisions.of_codes(own[-1])

    @classmethod
    def of_codes(cls, codes: NDArray[Any], n_groups: int = 1) -> Decisions:
        """Return decisions that are known, (N, M), once for every sensitive group."""
        codes = np.tile(codes, n_groups)
        return cls((codes,), np.ones((1, 1)), codes)

    @property
    def as_drawn(self) -> Decisions:
        return Decisions((self.drawn,), np.ones((1, 1)), self.drawn)

    def mix(self, tensors: list[FloatArray]) -> FloatArray:
        """Mean of arrays (S, M, ...) of each rule by their shares."""
        if len(tensors) == 1:
            return tensors[0]
        shares = np.broadcast_to(self.shares, (tensors[0].shape[1], len(tensors)))
        return np.asarray(np.einsum("mr,rsm...->sm...", shares, np.stack(tensors)))


@dataclass(frozen=True, eq=False)
class Judged:
    """The metric of decisions, how far each row (N,) moves it, and how far rows that no row has shown would.

    `moves` says whether any decision about any row could: not, if no row is of a class that the metric is about.
    """

    value: float
    rows: FloatArray
    unseen: FloatArray
    moves: bool = True


@dataclass(frozen=True)
class JudgedPair:
    """The metric of two sets of decisions, and standard errors of both values and of their difference."""

    values: tuple[float, float]
    errors: tuple[float, float, float]


def compare(problem: InMemory, both: list[Decisions]) -> Comparison:
    """Value two sets of decisions about the rows of a problem by its aim, with intervals."""
    spread = Spread.of(problem)
    pair = judge_pair(problem, both, spread)
    (one, other), (low, high) = pair.values, problem.aim.metric.range
    return Comparison(
        Estimate(*spread.limits(one, pair.errors[0], low, high)),
        Estimate(*spread.limits(other, pair.errors[1], low, high)),
        Estimate(*within(one - other, spread.quantile * pair.errors[2], low - high, high - low)),
    )


def judge_pair(problem: InMemory, both: list[Decisions], spread: Spread) -> JudgedPair:
    """Value two sets of decisions, with standard errors."""
    metric = problem.aim.metric
    by_row = problem.aim.average == "instance"
    if by_row or metric.traits.needs_integer_counts:
        both = [own.as_drawn for own in both]
    one, other = (judge(problem, own, spread) for own in both)
    errors = Errors(*map(spread.error, (one.rows, other.rows, one.rows - other.rows)))
    low, high = metric.range
    # Each by itself, so that what a rule is worth does not depend on what it is held against. Also if it is no number.
    drawn = [not by_row and not (metric.traits.smooth and error <= STEEP * (high - low)) for error in errors]
    if any(drawn):
        resampled = _resampled(problem, both, spread, one.value, other.value)
        errors = Errors(*np.where(drawn, resampled, errors).tolist())
    unseen = [float(np.linalg.norm(moved)) for moved in (one.unseen, other.unseen, one.unseen - other.unseen)]
    first, second, difference = (float(np.hypot(*pair)) for pair in zip(errors, unseen, strict=True))
    return JudgedPair((one.value, other.value), (first, second, difference))


def judge(problem: InMemory, decisions: Decisions, spread: Spread) -> Judged:
    """Value decisions, with what each row adds to the error."""
    return _judge_rows(problem, decisions) if problem.aim.average == "instance" else _judge(problem, decisions, spread)


def _judge_rows(problem: InMemory, decisions: Decisions) -> Judged:
    """Judge by the mean over rows of the metric of each."""
    each, mass = problem.by_row(decisions.drawn)
    mass = mass / mass.sum()
    value = float(each @ mass)
    return Judged(value, (each - value) * mass, np.zeros(0))


def _judge(problem: InMemory, decisions: Decisions, spread: Spread) -> Judged:
    rows, oracle = problem.source.rows, problem.oracle()
    assert rows.codes is not None
    C = mixed(np.stack([oracle.confusion_of(codes) for codes in decisions.codes]), decisions.shares)
    value, table = moves(problem, C)
    out, outputs = np.zeros(rows.n_rows), np.arange(len(table))
    shares = np.broadcast_to(decisions.shares, (len(table), len(decisions.codes)))
    for part in rows.proba.chunks():
        for codes, share in zip(decisions.codes, shares.T, strict=True):
            out[part] += table[outputs, rows.codes[part], codes[part]] @ share
    unseen = _unseen(problem, C, table, _unit(problem, spread))
    return Judged(value, out if rows.weight is None else out * rows.weight, unseen, bool(table.any()))


def _unseen(problem: InMemory, C: FloatArray, table: FloatArray, unit: float) -> FloatArray:
    """How far one more row of each class of each group of outputs, (G, K), would move the metric if decided otherwise.

    Of interest, and else 0, where all rows of a class are decided alike: these say nothing of how often others are not.
    Rightly where all are wrong, any wrong way where all are right. Of very many such classes each matters little, and
    slopes will do.

    Parameters
    ----------
    C : ndarray of shape (M, K, K)
    table : ndarray of shape (M, K + 1, K)
        How far rows move the metric.
    unit : float
        Weight of a row.
    """
    objective = problem.objective(problem.oracle())
    grouping = objective.grouping
    pooled = grouping.pool(C)
    k = pooled.shape[1]
    out, eye = np.zeros(pooled.shape[:2]), np.eye(k)
    alike = np.argwhere((pooled > 0).sum(axis=2) == 1)
    for g, i in alike:
        n, total = int(grouping.n_classes[g]), float(grouping.total[g])
        right = pooled[g, i, i] > 0
        decided = (np.ones(n) - eye[i, :n]) / (n - 1) if right else eye[i, :n]
        if len(alike) * k * k > _MOST_CELLS:
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


def _unit(problem: InMemory, spread: Spread) -> float:
    """Weight of what is drawn as one: a row, or the rows that belong together."""
    rows = problem.source.rows
    weight = 1.0 if rows.weight is None or rows.repeats is not None else float(rows.weight.mean())
    if rows.dependence is not None:  # neighbours in time are no copies of one another
        return weight * rows.dependence.inflation
    return weight * rows.n_rows / spread.n_clusters


def _resampled(problem: InMemory, both: list[Decisions], spread: Spread, *found: float) -> Errors:
    """Errors by drawing rows again, for metrics that slopes say little of.

    Root mean squares about the values found: the least of several recalls is smaller in resamples, as it is in samples.
    """
    rows, k = problem.source.rows, problem.schema.decision_width
    assert rows.codes is not None
    true, rng = rows.codes.astype(np.int32), np.random.default_rng(0)
    if spread.repeats is None and spread.n_clusters > _LOTS:  # sums of many rows vary as well, and are fewer to draw
        lot = rng.permutation(spread.n_clusters) % _LOTS
        spread = Spread(lot if spread.cluster is None else lot[spread.cluster], None, _LOTS)
    cells = [[np.where(true >= 0, true * k + codes, -1).astype(np.int32) for codes in own.codes] for own in both]
    values = np.empty((2, _RESAMPLES))
    size = max(rows.n_rows, true.shape[1] * k * k * max(map(len, cells)))
    step = max(1, _DRAWS // size)
    for start in range(0, _RESAMPLES, step):
        part = slice(start, min(start + step, _RESAMPLES))
        weight = spread.draws(part.stop - start, rng)
        weight = weight if rows.weight is None else weight * rows.weight
        for out, own, tallied in zip(values, both, cells, strict=True):
            counts = [kernels.tally(cell, weight, k * k).reshape(len(weight), -1, k, k) for cell in tallied]
            out[part] = values_of_samples(problem, own.mix(counts))
    apart = values - np.array(found)[:, None]
    return Errors(*(float(np.sqrt(np.mean(own**2))) for own in (*apart, apart[0] - apart[1])))
