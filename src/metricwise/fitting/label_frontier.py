"""The trade-off between two metrics of very many labels: the best rule found at every bound on a pooled ratio.

Without a budget, a pooled metric and a pooled bound depend on one threshold of all labels, and all thresholds are
tried. Else tables are found at prices of the bound, which rise with it. Must not know user input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..goals.labels import LabelConstraint
from ..metrics.label_aims import LabelAim, LabelCounts, LabelTable, RatioTerms
from ..oracles.labels import BothCounts, LabelOracle
from ..oracles.problem import FitStrategy
from ..solvers.labels import expected_table, maximise_labels
from .labels import EntryMap, LabelFit, LabelProblem, baseline_fit, fit_labels, label_oracle

__all__ = ["LabelFrontier", "LabelPoint", "PricedTables", "best_labels", "trace_labels"]

FloatArray = NDArray[np.float64]

_SAME = 1e-12
_STEPS = 3  # in which a table follows its own counts at a price
_FIRST_PRICE = 0.02
_MAX_PRICE = 1e5
_N_EXPLORED = 4  # bounds at which all prices are tried
_N_REFINED = 4  # prices between the last one that is too low and the first that is not
_MAX_THRESHOLDS = 4096
_SAMPLE = 1 << 20  # entries by which thresholds are placed without labels
_CHUNK = 1 << 22  # entries that are compared with thresholds at a time


class LabelPoint(NamedTuple):
    """The best fit found that keeps a bound, with its counts on the given rows."""

    bound: float
    fit: LabelFit
    counts: LabelCounts
    price: float | None = None


class LabelFrontier(NamedTuple):
    """Points from the loosest bound to the tightest, and the counts of the baseline."""

    points: list[LabelPoint]
    baseline: LabelCounts


def trace_labels(
    problem: LabelProblem,
    recipe: FitStrategy,
    constraint: LabelConstraint,
    *,
    ceiling: bool,
    n_points: int,
    stage: Callable[[str], None],
) -> LabelFrontier:
    """Return the best rules found at evenly spaced bounds on a pooled ratio.

    Parameters
    ----------
    problem : LabelProblem
    recipe : FitStrategy
    constraint : LabelConstraint
        What is bounded.
    ceiling : bool
        Whether from above.
    n_points : int
    stage : callable
        Is told what is being done.
    """
    baseline = baseline_fit(problem).count(problem)
    found = _Found.of(problem, recipe, constraint, ceiling)
    stage("looking for the ends")
    if found.by_threshold:
        found.judge_thresholds(n_points=n_points)
        return LabelFrontier(found.points(found.bounds(n_points)), baseline)
    found.judge(fit_labels(problem, recipe).table, price=0.0)
    path = _Path.begin(found)
    path.explore(found.free.other)
    bounds = found.bounds(n_points)
    for level in np.linspace(bounds[0], bounds[-1], _N_EXPLORED + 1)[1:].tolist():
        path.explore(level)
    for place, bound in enumerate(bounds[1:].tolist(), start=2):
        stage(f"point {place} of {n_points}")
        path.follow(bound)
    return LabelFrontier(found.points(bounds), baseline)


def best_labels(
    problem: LabelProblem, recipe: FitStrategy, constraint: LabelConstraint, bound: float, *, ceiling: bool
) -> tuple[LabelPoint | None, float]:
    """Return the best fit found that keeps one bound, None if none does, and the tightest value that was reached."""
    found = _Found.of(problem, recipe, constraint, ceiling)
    free = found.judge(fit_labels(problem, recipe).table, price=0.0)
    if found.keeps(free, bound):  # what the bound does not touch is not chosen by its value on these rows
        return found.point(bound, free), free.other
    if found.by_threshold:
        found.judge_thresholds(bounds=[bound])
    else:
        path = _Path.begin(found)
        path.explore(bound)
        path.follow(bound)
        for level in np.linspace(bound, constraint.aim.range[0 if ceiling else 1], _N_EXPLORED + 1)[1:].tolist():
            if found.can_keep(bound):
                break
            path.explore(level)
    return (found.points([bound])[0] if found.can_keep(bound) else None), found.end


class _Judged(NamedTuple):
    """A table with its counts on the given rows, and both metrics."""

    table: LabelTable
    counts: LabelCounts
    value: float
    other: float
    price: float | None


@dataclass(eq=False)
class _Found:
    """The tables found that no other one beats in both metrics."""

    oracle: LabelOracle
    link: EntryMap | None
    aim: LabelAim
    constraint: LabelConstraint
    sign: float
    bound_aim: LabelAim  # as it is maximised for the rows of the oracle
    kept: list[_Judged] = field(default_factory=list)

    @classmethod
    def of(cls, problem: LabelProblem, recipe: FitStrategy, constraint: LabelConstraint, ceiling: bool) -> _Found:
        """Return what is to be filled, for a problem."""
        oracle, link, aim = label_oracle(problem, recipe, None)
        true = problem.labels_true()
        judged = problem.aim if true is None else problem.aim.bind(true)
        return cls(oracle, link, judged, constraint, -1.0 if ceiling else 1.0, aim)

    @property
    def by_threshold(self) -> bool:
        """Whether one threshold of all labels is all that matters."""
        return self.aim.is_pooled and self.aim.weight is None and not self.oracle.budget.is_limited

    def judge_thresholds(self, *, n_points: int = 0, bounds: Sequence[float] = ()) -> None:
        """Judge the best threshold at some bounds, or at evenly spaced ones."""
        for table in _best_thresholds(self.oracle, self, n_points, bounds):
            self.judge(table)

    def judge(self, table: LabelTable, counts: LabelCounts | None = None, price: float | None = None) -> _Judged:
        """Value a table on the given rows, by its counts or after counting, and keep it if it is not beaten."""
        counts = self.oracle.count_both([table])[0].by_labels if counts is None else counts
        value = self.aim.value(counts) if self.oracle.labels_true is not None else self.aim.expected_value(counts)
        judged = _Judged(table, counts, value, self.constraint.aim.value(counts), price)
        if not any(self._beats(other, judged) for other in self.kept):
            self.kept = [other for other in self.kept if not self._beats(judged, other)]
            self.kept.append(judged)
        return judged

    def _beats(self, first: _Judged, second: _Judged) -> bool:
        return first.value >= second.value and self.sign * first.other >= self.sign * second.other

    def keeps(self, judged: _Judged, bound: float) -> bool:
        """Whether a bound is kept."""
        return self.sign * judged.other >= self.sign * bound - _SAME

    @property
    def free(self) -> _Judged:
        """The best one whatever is bounded."""
        return max(self.kept, key=lambda judged: (judged.value, self.sign * judged.other))

    @property
    def end(self) -> float:
        """The tightest bound that any keeps."""
        return max(self.kept, key=lambda judged: self.sign * judged.other).other

    def can_keep(self, bound: float) -> bool:
        """Whether any keeps a bound."""
        return any(self.keeps(judged, bound) for judged in self.kept)

    def bounds(self, n_points: int) -> FloatArray:
        """Return bounds from what the best one has to the tightest that any keeps."""
        return np.linspace(self.free.other, self.end, n_points)

    def points(self, bounds: Sequence[float] | FloatArray) -> list[LabelPoint]:
        """Return the best one at each bound."""
        points = []
        for bound in map(float, bounds):
            able = [judged for judged in self.kept if self.keeps(judged, bound)]
            best = max(able, key=lambda judged: (judged.value, self.sign * judged.other))
            points.append(self.point(bound, best))
        return points

    def point(self, bound: float, judged: _Judged) -> LabelPoint:
        """Return one of those found as the point of a bound."""
        fit = LabelFit(judged.table, self.link, self.oracle.factor)
        return LabelPoint(bound, fit, judged.counts, judged.price)


# ------------------------------------------------------------------------------------------------------------- prices


@dataclass(frozen=True, eq=False)
class PricedTables:
    """Tables at prices of a bound on a pooled ratio."""

    oracle: LabelOracle
    aim: LabelAim
    ratio: RatioTerms
    sign: float  # 1 for a lower bound, -1 for an upper one

    @cached_property
    def free(self) -> LabelTable:
        """The table at no price."""
        return maximise_labels(self.oracle, self.aim).table

    @cached_property
    def free_counts(self) -> LabelCounts:
        """Its counts."""
        return self.oracle.count([self.free])[0]

    def tables(self, prices: Sequence[float], level: float) -> list[LabelTable]:
        """Return the table at each price of a level, in ascending order, each from the counts of the last one."""
        counts, tables = self.free_counts, []
        for price in prices:
            table = self.free
            if price > 0:
                table, (counts, _) = self.step(counts, level, price)
            tables.append(table)
        return tables

    def step(self, counts: LabelCounts, level: float, price: float) -> tuple[LabelTable, BothCounts]:
        """Return the table at a price, found from some counts, and its counts, also by labels."""
        size = max(float(self.ratio.denominator.of(self.free_counts.pooled(None))[0]), 1e-300)
        above, below = self.ratio.numerator, self.ratio.denominator
        by_hit = self.sign * (above.hits - level * below.hits) / size
        by_prediction = self.sign * (above.predicted - level * below.predicted) / size
        factors = self.oracle.factors
        for _ in range(_STEPS):
            slopes = self._slopes(counts)
            table = LabelTable(
                (slopes.scale + price * by_hit) * factors,
                np.broadcast_to(slopes.offset + price * by_prediction, factors.shape),
            )
            both = self.oracle.count_both([table])[0]
            counts = both.counted
        return table, both

    def _slopes(self, counts: LabelCounts) -> LabelTable:
        aim = self.aim
        if aim.is_pooled or aim.ratio is None or self.oracle.confusion != "expected":
            return aim.table(counts)
        weight = np.ones(self.oracle.n_labels) if aim.weight is None else aim.weight
        return expected_table(aim.ratio, counts, weight / weight.sum())


@dataclass(eq=False)
class _Path:
    """Prices that rise with the bound, each table found from the counts of the last one that was too cheap."""

    priced: PricedTables
    found: _Found
    price: float = _FIRST_PRICE
    counts: LabelCounts | None = None

    @classmethod
    def begin(cls, found: _Found) -> _Path:
        """Judge what is best for either metric alone, and return the path from there."""
        priced = PricedTables(found.oracle, found.bound_aim, found.constraint.ratio, found.sign)
        found.judge(priced.free, price=0.0)
        if found.sign > 0:
            found.judge(maximise_labels(found.oracle, found.constraint.aim).table)
        return cls(priced, found)

    def explore(self, bound: float) -> None:
        """Judge tables at all prices of a bound, to find out what can be kept at all."""
        price, counts = _FIRST_PRICE, self.priced.free_counts
        while price < _MAX_PRICE:
            table, (counts, by_labels) = self.priced.step(counts, bound, price)
            self.found.judge(table, by_labels, price)
            price *= 2.0

    def follow(self, bound: float) -> None:
        """Judge tables at rising prices of a bound until one keeps it, and some between the last two."""
        counts = self.priced.free_counts if self.counts is None else self.counts
        low, high = self.price / 4.0, self.price
        while high < _MAX_PRICE:
            table, (after, by_labels) = self.priced.step(counts, bound, high)
            if self.found.keeps(self.found.judge(table, by_labels, high), bound):
                break
            low, high, counts = high, 2.0 * high, after
        for _ in range(_N_REFINED):
            middle = float(np.sqrt(low * high))
            table, (after, by_labels) = self.priced.step(counts, bound, middle)
            if self.found.keeps(self.found.judge(table, by_labels, middle), bound):
                high = middle
            else:
                low, counts = middle, after
        self.price, self.counts = min(low, _MAX_PRICE / 4.0), counts


# --------------------------------------------------------------------------------------------------------- thresholds


def _best_thresholds(oracle: LabelOracle, found: _Found, n_points: int, bounds: Sequence[float]) -> list[LabelTable]:
    """Return the tables of the best threshold of all labels at each of the bounds, or at evenly spaced ones."""
    levels = _levels(oracle)
    counts = _counts_above(oracle, levels)
    values, others = found.aim.by_label(counts), found.constraint.aim.by_label(counts)
    assert values is not None
    tight = found.sign * others
    best = np.lexsort((tight, values))[-1]
    ends = np.linspace(others[best], others[np.argmax(tight)], max(n_points, 2))
    chosen = {
        int(np.lexsort((tight, np.where(tight >= found.sign * bound - _SAME, values, -np.inf)))[-1])
        for bound in [*ends, *bounds]
    }
    factors = np.ones(1) if oracle.factor is None else oracle.factor
    return [LabelTable(factors, np.full(factors.shape, -levels[place])) for place in sorted(chosen)]


def _levels(oracle: LabelOracle) -> FloatArray:
    """Return thresholds in ascending order: just below the scores of true labels, or any score without labels."""
    values = oracle.block.values
    if oracle.labels_true is None:
        places = np.arange(0, len(values), max(1, len(values) // _SAMPLE))
    else:
        places = np.flatnonzero(np.signbit(values))
    scores = np.unique(_scores(oracle, places))
    if len(scores) > _MAX_THRESHOLDS:
        scores = scores[np.linspace(0, len(scores) - 1, _MAX_THRESHOLDS).round().astype(int)]
    top = float(np.abs(values).max(initial=0.0)) * float(oracle.factors.max())
    below = np.nextafter(scores[scores > 0], 0.0)
    return np.unique(np.concatenate([[0.0], below, [top]]))


def _scores(oracle: LabelOracle, places: NDArray[np.intp] | slice) -> FloatArray:
    """Return the calibrated probabilities of some entries."""
    block = oracle.block
    values: FloatArray = np.abs(block.values[places]).astype(np.float64)
    if oracle.factor is None:
        return values
    if block.indices is None:
        numbers = np.arange(places.start, places.stop) if isinstance(places, slice) else places
        labels = numbers % block.n_labels
    else:
        labels = block.indices[places]
    return np.asarray(values * oracle.factor[labels])


def _counts_above(oracle: LabelOracle, levels: FloatArray) -> LabelCounts:
    """Return the pooled counts of entries above each threshold, as those of so many labels."""
    block, n_levels = oracle.block, len(levels)
    sums = np.zeros((2, n_levels + 1))
    weight = None if block.weight is None else np.repeat(block.weight, np.diff(block.indptr))
    for start in range(0, len(block.values), _CHUNK):
        part = slice(start, min(start + _CHUNK, len(block.values)))
        scores = _scores(oracle, part)
        place = np.searchsorted(levels, scores, side="left")  # so many thresholds are below
        each = np.ones(len(scores)) if weight is None else weight[part]
        hit = scores if oracle.labels_true is None else np.signbit(block.values[part])
        sums += [np.bincount(place, each * part_of, minlength=n_levels + 1) for part_of in (hit, 1.0)]
    hits, predicted = (row[::-1].cumsum()[::-1][1:] for row in sums)
    true = oracle.true if oracle.labels_true is None else oracle.labels_true
    return LabelCounts(hits, predicted, np.full(n_levels, float(true.sum())), oracle.total * oracle.n_labels)
