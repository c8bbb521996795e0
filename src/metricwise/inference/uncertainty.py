"""How far a value counted on some rows may be from that on others.

Owns the influence of rows on the metric of decisions, and the standard errors and intervals that follow from it. Must
not know recipes, resamples or solvers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.confusion import distributions
from ..data.sources.memory import MemorySource
from ..metrics.aim import make_objective
from ..oracles.problem import InMemory, Problem
from ..rules.base import RuleRows
from ..rules.mixture import MixtureRule
from ..rules.weighted import WeightedRule

__all__ = [
    "STEEP",
    "Errors",
    "Spread",
    "bootstrap_errors",
    "count_independent",
    "heaviest_share",
    "influence",
    "mean_interval",
    "moves",
    "one_more_right",
    "student",
    "threshold_range",
    "values_of_counts",
    "values_of_samples",
    "within",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_FEW_WEIGHTS = 64
# Of the metric's range: where the error by slopes is larger, the metric has none to speak of (MCC and G-mean of a class
# that is hardly ever predicted), and rows are drawn again instead.
STEEP = 0.1
_COSTLY_PLACES = 33  # along the thresholds, at which a metric whose values are calls is valued
_COSTLY_RESAMPLES = 40  # of the bootstrap for such a metric: the standard error is known to a ninth
_MOST_RANGES = 64  # outputs whose thresholds are looked at, one by one


@dataclass(frozen=True, eq=False)
class Spread:
    """How sums over rows vary from one sample of rows to another.

    Parameters
    ----------
    cluster : ndarray of shape (N,), int, or None
        Rows that belong together vary as one; None: each by itself.
    repeats : ndarray of shape (N,), or None
        How many independent rows a row is.
    n_clusters : int
    """

    cluster: IntArray | None
    repeats: FloatArray | None
    n_clusters: int

    @classmethod
    def of(cls, problem: InMemory) -> Spread:
        """Return the spread of sums over the rows of a problem."""
        return cls.of_rows_in(problem.source)

    @classmethod
    def of_rows_in(cls, source: MemorySource) -> Spread:
        """Return the spread of sums over the rows of a source."""
        rows = source.rows
        if rows.cluster is None:
            return cls(None, rows.repeats, rows.n_rows)
        numbers = np.unique(rows.cluster, return_inverse=True)[1].reshape(-1).astype(np.intp)
        return cls(numbers, None, int(numbers.max()) + 1)

    def of_rows(self, rows: IntArray) -> Spread:
        """Return the spread of sums over some of the rows, given by position."""
        cluster = None if self.cluster is None else self.cluster[rows]
        if cluster is None:
            return Spread(None, None if self.repeats is None else self.repeats[rows], len(rows))
        numbers = np.unique(cluster, return_inverse=True)[1].reshape(-1).astype(np.intp)
        return Spread(numbers, None, int(numbers.max()) + 1)

    def error(self, rows: FloatArray, share: float = 1.0) -> float:
        """Return the standard error of a sum of what rows (N,), which sum to 0, add to it.

        Where they are a share of all rows, that of the sum over all: rows vary less the more there are of them, but not
        what those that belong together have in common.
        """
        squares = rows**2 if self.repeats is None else rows**2 / np.where(self.repeats > 0, self.repeats, 1.0)
        alone = float(np.sum(squares))
        if self.cluster is None:
            return float(np.sqrt(share * alone))
        together = float(np.sum(np.bincount(self.cluster, rows) ** 2)) * self.n_clusters / max(self.n_clusters - 1, 1)
        return float(np.sqrt(share * together + (1 - share) * max(together - alone, 0.0)))

    def variances(self, rows: IntArray, values: FloatArray) -> FloatArray:
        """Return what each of some rows, given by position, adds to the variance of a sum of values of theirs.

        Of rows that belong together, as if they were independent, times how much more all of them vary than that.
        """
        squares = values**2
        if self.cluster is not None:
            together = np.bincount(self.cluster[rows], values)
            return np.asarray(squares * (np.sum(together**2) / max(np.sum(squares), np.finfo(float).tiny)))
        if self.repeats is not None:
            return np.asarray(squares / np.where(self.repeats[rows] > 0, self.repeats[rows], 1.0))
        return np.asarray(squares)

    def draws(self, n_resamples: int, rng: np.random.Generator) -> FloatArray:
        """Return how often rows are drawn in resamples, (R, N), in units of once."""
        if self.cluster is not None:
            return rng.poisson(1.0, (n_resamples, self.n_clusters)).astype(np.float64)[:, self.cluster]
        if self.repeats is None:
            return rng.poisson(1.0, (n_resamples, self.n_clusters)).astype(np.float64)
        return np.asarray(
            rng.poisson(self.repeats, (n_resamples, len(self.repeats))) / np.maximum(self.repeats, 1e-300)
        )

    @property
    def n_independent(self) -> float:
        """How many independent rows there are: those that belong together are one, a row may stand for several."""
        return float(self.n_clusters if self.repeats is None else self.repeats.sum())

    @property
    def quantile(self) -> float:
        """The 97.5 % quantile of Student's distribution, by the first terms of its expansion around the normal one."""
        return student(1.959963984540054, self.n_independent - 1)

    def limits(self, value: float, error: float, least: float, most: float) -> tuple[float, float, float]:
        """Return a value with a standard error and the ends of its 95 % interval, within a range.

        Rows that belong together are often few clusters, and then the error varies with the value: towards the ends of
        the range it is less. Wilson's interval allows for that, with as many independent rows as have that error.
        """
        half, width = self.quantile * error, most - least
        if self.cluster is None or half <= 0 or not np.isfinite(width) or not least < value < most:
            return within(value, half, least, most)
        share = (value - least) / width
        ratio = (half / width) ** 2 / (share * (1 - share))  # squared quantile over the number of rows
        middle = (share + ratio / 2) / (1 + ratio)
        wide = np.sqrt(ratio * share * (1 - share) + ratio**2 / 4) / (1 + ratio)
        return value, least + width * float(middle - wide), least + width * float(middle + wide)


def student(z: float, free: float) -> float:
    """Return the quantile of Student's distribution at which the normal one has z, by its expansion around that."""
    free = max(free, 1.0)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / free**power for power, term in enumerate(terms, start=1))


def count_independent(problem: Problem) -> float:
    """Return how many independent rows a problem has, wherever they lie; see :attr:`Spread.n_independent`."""
    glance = problem.source.glance(1)
    if glance.cluster is None and glance.repeats is None:
        return float(problem.n_rows)

    def ask(rows: Any) -> tuple[IntArray, float]:
        if rows.cluster is not None:
            return np.unique(rows.cluster), 0.0
        return np.empty(0, dtype=np.intp), float(rows.repeats.sum())

    def add(one: tuple[IntArray, float], other: tuple[IntArray, float]) -> tuple[IntArray, float]:
        return np.union1d(one[0], other[0]), one[1] + other[1]

    clusters, repeats = problem.source.reduce(ask, add)
    return len(clusters) + repeats


def influence(problem: InMemory, decisions: NDArray[Any]) -> tuple[float, FloatArray]:
    """Return the metric of decisions counted with labels, and how far each row moves it (the delta method).

    Parameters
    ----------
    problem : InMemory
        With labels.
    decisions : integer ndarray of shape (N, M)

    Returns
    -------
    value : float
    rows : ndarray of shape (N,)
        Sum to 0; the sum of their squares estimates the variance of the value over samples of rows.
    """
    rows, codes = problem.source.rows, problem.source.rows.codes
    assert codes is not None
    if problem.aim.average == "instance":
        each, mass = problem.by_row(decisions)
        mass = mass / mass.sum()
        value = float(each @ mass)
        return value, (each - value) * mass
    value, table = moves(problem, problem.oracle().confusion_of(decisions))
    out = np.empty(len(decisions))
    outputs = np.arange(len(table))
    for part in rows.proba.chunks():
        out[part] = table[outputs, codes[part], decisions[part]].sum(axis=1)
    return value, out if rows.weight is None else out * rows.weight


def moves(problem: InMemory, C: FloatArray) -> tuple[float, FloatArray]:
    """Return the metric of a confusion tensor, and how far a row of unit weight moves it.

    Parameters
    ----------
    problem : InMemory
        With labels.
    C : ndarray of shape (M, K, K)
        Counted with the labels.

    Returns
    -------
    value : float
    table : ndarray of shape (M, K + 1, K)
        By the true class of the row and its decision; zero in the last row, where missing labels (-1) look.
    """
    oracle = problem.oracle()
    objective = problem.objective(oracle)
    grouping = objective.grouping
    pooled = grouping.pool(C)
    weight = objective.weight_at(objective.values(pooled))
    slope = objective.full_gradient(pooled) * weight[:, None, None]
    counts = np.pad(problem.source.class_weights, [(0, 0), (0, problem.schema.n_extra)])
    factor = np.divide(oracle.priors, counts, out=np.zeros_like(counts), where=counts > 0)
    own = grouping.spread(slope) * grouping.share[:, None, None]  # (M, K, K)
    if problem.prior is None:
        # A row that moves its output's confusion moves it away from what it was, by as much.
        center = np.repeat(np.sum(own * grouping.spread(pooled), axis=(1, 2))[:, None], counts.shape[1], axis=1)
    else:  # the shares of the classes are given: rows move the metric within their class only
        share = oracle.priors
        center = np.divide(np.sum(own * C, axis=2), share, out=np.zeros_like(share), where=share > 0)
    table = (own - center[:, :, None]) * factor[:, :, None]
    return objective.value(C), np.concatenate([table, np.zeros_like(table[:, :1])], axis=1)


def threshold_range(problem: InMemory, rule: WeightedRule | MixtureRule) -> FloatArray | None:
    """Return the smallest and the largest threshold of each binary output that are as good as that of a rule.

    As good is what is not worse on the rows of the problem by more than 1.96 standard errors of the difference, which
    comes from the rows between the two thresholds.

    Parameters
    ----------
    problem : InMemory
        With labels.
    rule : WeightedRule or MixtureRule
        Behind its link.

    Returns
    -------
    ndarray of shape (M, 2), or None
        NaN where the rule has no threshold. None where outputs are not binary, share a threshold, or are too many.
    """
    schema, aim, rows = problem.schema, problem.aim, problem.source.rows
    apart = schema.n_outputs == 1 or aim.average == "macro"
    binary = bool((schema.n_decisions == 2).all()) and schema.n_outputs <= _MOST_RANGES
    if not (apart and binary) or aim.average == "instance" or rule.is_randomized:
        return None
    assert rows.codes is not None
    oracle = problem.oracle()
    _, table = moves(problem, oracle.confusion_of(rule.decide(RuleRows(rows.proba))))
    objective = problem.objective(oracle)
    group = objective.grouping.group
    counts = problem.source.class_weights
    factor = np.divide(oracle.priors, counts, out=np.zeros_like(counts), where=counts > 0)
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    out = np.full((schema.n_outputs, 2), np.nan)
    thresholds, spread = rule.flatten().rules[0].thresholds, Spread.of(problem)
    for m in np.flatnonzero((group >= 0) & ~np.isnan(thresholds)).tolist():
        p = distributions(rows.proba.output(m)[:, 0])[:, 1]
        order = np.argsort(p, kind="stable")
        order = order[rows.codes[order, m] >= 0]
        true, p, mass = rows.codes[order, m].astype(np.intp), p[order], weight[order]
        # Rows before a place are decided as 0, the others as 1.
        below = np.stack([np.append(0.0, np.cumsum(mass * (true == i) * factor[m, i])) for i in (0, 1)], axis=1)
        C = np.stack([below, below[-1] - below], axis=2)  # by true class, then decision
        values = _along(partial(objective.values_of, int(group[m])), C, objective.slow)
        step = (table[m, true, 1] - table[m, true, 0]) * mass / objective.grouping.weight[group[m]]
        noise = np.append(0.0, np.cumsum(spread.variances(order, step)))
        here = int(np.searchsorted(p, thresholds[m], side="right"))
        error = np.sqrt(np.abs(noise - noise[here]))
        good = values >= values[here] - 1.96 * error - 1e-12
        good[1:-1] &= p[1:] > p[:-1]  # equal probabilities are decided alike
        good[here] = True
        places = np.flatnonzero(good)
        edges = np.concatenate([[0.0], p, [1.0]])
        out[m] = edges[places[0]], edges[places[-1] + 1]
    return out


def _along(value: Callable[[FloatArray], FloatArray], C: FloatArray, costly: bool) -> FloatArray:
    """Return the values (T,) of confusions (T, K, K) in a row; those of a costly metric are interpolated."""
    if not costly or len(C) <= _COSTLY_PLACES:
        return value(C)
    places = np.unique(np.linspace(0, len(C) - 1, _COSTLY_PLACES).astype(np.intp))
    return np.interp(np.arange(len(C)), places, value(C[places]))


def values_of_counts(problem: InMemory, counts: FloatArray) -> FloatArray:
    """Return the metric of sums of weights of true against predicted classes, (..., M, K, K), as (...).

    They are brought to the class priors of all rows of the problem, so that the metric is bound once; a class that
    they do not show counts as missed.
    """
    oracle = problem.oracle()
    objective = problem.objective(oracle)
    shown = counts.sum(axis=-1, keepdims=True)
    C = np.divide(counts, shown, out=np.zeros_like(counts), where=shown > 0) * oracle.priors[..., None]
    values = objective.totals(objective.values(objective.grouping.pool_each(C.reshape(-1, *C.shape[-3:]))))
    return values.reshape(counts.shape[:-3])


def values_of_samples(problem: InMemory, counts: FloatArray) -> FloatArray:
    """Return the metric of such sums, (S, M, K, K), of S samples of rows, as (S,): each with the shares of its classes.

    Of samples of rows these shares vary as well, unless they are known. The metric is bound once per sample.
    """
    if problem.prior is not None:
        return values_of_counts(problem, counts)
    schema = problem.schema
    grouping = problem.objective(problem.oracle()).grouping
    out = np.empty(len(counts))
    for s, own in enumerate(counts):
        C = own / np.maximum(own.sum(axis=(1, 2), keepdims=True), np.finfo(float).tiny)
        bound = make_objective(problem.aim.metric, grouping, C.sum(axis=2), schema.n_decisions, classes=schema.classes)
        out[s] = bound.value(C)
    return out


class Errors(NamedTuple):
    """Standard errors of the metric of two sets of decisions, and of the difference."""

    first: float
    second: float
    difference: float

    @classmethod
    def of(cls, values: FloatArray) -> Errors:
        """Return those of values (2, R) in resamples."""
        return cls(*(float(np.std(own)) for own in (*values, values[0] - values[1])))


def within(value: float, half: float, least: float, most: float) -> tuple[float, float, float]:
    """Return a value and the ends of its interval, which end where the range of what is estimated does."""
    return value, max(value - half, min(value, least)), min(value + half, max(value, most))


def mean_interval(
    values: FloatArray,
    weight: FloatArray,
    spread: Spread,
    by_class: FloatArray,
    eta: FloatArray,
    largest: float = np.inf,
) -> tuple[float, float, float]:
    """Return the mean over rows of values that may have a long tail, such as costs, and the ends of its 95 % interval.

    Where a sample lacks the few large losses, its own variance lacks them too, and intervals are too narrow just where
    the mean is too small. Rows could have had other labels: the variance over these, by the probabilities, knows
    amounts that no label has hit. The standard error is that, or half way to that of labels if this is larger.

    Parameters
    ----------
    values : ndarray of shape (N,)
        By the labels.
    weight : ndarray of shape (N,)
        0 without a label.
    spread : Spread
        Of the rows.
    by_class : ndarray of shape (N, K)
        What the value would be if a row were of each class.
    eta : ndarray of shape (N, K)
        Calibrated probabilities.
    largest : float
        No value of a row is larger, and so no mean.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.inference.uncertainty import Spread, mean_interval
    >>> amount = np.array([10.0, 10.0, 10.0, 1000.0])  # lost with a probability of 0.1: not in this sample
    >>> lost = np.array([1, 0, 0, 0])
    >>> by_class, eta = np.stack([0 * amount, amount], axis=1), np.tile([0.9, 0.1], (4, 1))
    >>> mean, low, high = mean_interval(lost * amount, np.ones(4), Spread(None, None, 4), by_class, eta)
    >>> mean, high > 100
    (2.5, True)
    """
    share = weight / weight.sum()
    mean, expected = float(values @ share), np.sum(eta * by_class, axis=1)
    by_labels = (values - mean) * share
    deviation = np.sum(eta * (by_class - expected @ share) ** 2, axis=1)
    alone = Spread(None, spread.repeats, len(values))
    error, independent = spread.error(by_labels), alone.error(by_labels)
    more = error / independent if independent > 0 else 1.0  # because rows belong together
    modelled = more * alone.error(np.sqrt(deviation) * share)
    half = spread.quantile * max(modelled, (modelled + error) / 2)
    return mean, mean - half, min(mean + half, max(mean, largest))


def heaviest_share(values: FloatArray, weight: FloatArray, n_rows: int = 10) -> float:
    """Return the share of some rows, those furthest from the mean, in the variance of the mean of values (N,)."""
    share = weight / weight.sum()
    squares = np.sort(((values - values @ share) * share) ** 2)
    total = float(squares.sum())
    return float(squares[-n_rows:].sum()) / total if total > 0 else 0.0


def bootstrap_errors(
    problem: InMemory, first: NDArray[Any], second: NDArray[Any], n_resamples: int = 200, seed: int = 0
) -> Errors:
    """Return the standard errors of the metric of two sets of decisions, by resampling rows.

    Parameters
    ----------
    problem : InMemory
        With labels.
    first, second : integer ndarray of shape (N, M)

    Returns
    -------
    Errors
    """
    rows, k = problem.source.rows, problem.schema.decision_width
    assert rows.codes is not None
    rng = np.random.default_rng(seed)
    n_resamples = min(n_resamples, _COSTLY_RESAMPLES) if problem.aim.metric.traits.slow else n_resamples
    if rows.cluster is None and rows.repeats is None and rows.codes.shape[1] == 1 and problem.aim.average != "instance":
        weight, kind = (np.ones(1), np.zeros(rows.n_rows, dtype=np.intp))
        if rows.weight is not None:
            weight, kind = np.unique(rows.weight, return_inverse=True)
        if len(weight) <= _FEW_WEIGHTS:  # as those of a sample, which weighs by class
            return Errors.of(_values_of_draws(problem, first, second, weight, kind.reshape(-1), n_resamples, rng))
    draws = Spread.of(problem).draws(n_resamples, rng)
    if problem.aim.average == "instance":
        (each, mass), (other, _) = (problem.by_row(codes) for codes in (first, second))
        drawn = np.maximum(draws @ mass, np.finfo(float).tiny)
        return Errors.of(np.stack([draws @ (own * mass) / drawn for own in (each, other)]))
    true = rows.codes.astype(np.int32)
    values = []
    weight = draws if rows.weight is None else draws * rows.weight
    for decided in (first, second):
        cell = np.where(true >= 0, true * k + decided, -1).astype(np.int32)
        counts = kernels.tally(cell, weight, k * k).reshape(n_resamples, -1, k, k)
        values.append(values_of_counts(problem, counts))
    return Errors.of(np.stack(values))


def _values_of_draws(
    problem: InMemory,
    first: NDArray[Any],
    second: NDArray[Any],
    weight: FloatArray,
    weight_of: IntArray,
    n_resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """The metric of two sets of decisions about one output in resamples, (2, R).

    Rows that are alike in all that counts are drawn together: a sum of Poisson draws is one. `weight_of` (N,) says
    which of the weights (W,) a row has.
    """
    k, codes = problem.schema.decision_width, problem.source.rows.codes
    assert codes is not None
    seen = codes[:, 0] >= 0
    shape = (len(weight), k, k, k)
    kind = np.ravel_multi_index((weight_of[seen], codes[seen, 0], first[seen, 0], second[seen, 0]), shape)
    kinds, size = np.unique(kind, return_counts=True)
    heavy, label, *pair = np.unravel_index(kinds, shape)
    drawn = rng.poisson(size, (n_resamples, len(kinds))) * weight[heavy]
    cells = np.zeros((2, len(kinds), k * k))
    for cell, decided in zip(cells, pair, strict=True):
        cell[np.arange(len(kinds)), label * k + decided] = 1.0
    return values_of_counts(problem, (drawn @ cells).reshape(2, n_resamples, 1, k, k))


def one_more_right(problem: InMemory, decisions: NDArray[Any]) -> float:
    """Return the metric with one more row of every class, rightly decided.

    Where a rare class is never hit, no row says how often it might be: the sampling error is 0 and means nothing.
    """
    if problem.aim.average == "instance":
        return problem.value_of(decisions)
    oracle, schema = problem.oracle(), problem.schema
    k, n_decisions = schema.decision_width, schema.n_decisions
    extra = np.eye(k) * (np.arange(k) < schema.n_classes[:, None])[:, :, None]
    C = oracle.confusion_of(decisions) + extra / np.maximum(problem.source.class_rows.sum(axis=1), 1.0)[:, None, None]
    C = C / C.sum(axis=(1, 2), keepdims=True)
    grouping = problem.objective(oracle).grouping
    return make_objective(problem.aim.metric, grouping, C.sum(axis=2), n_decisions, classes=schema.classes).value(C)
