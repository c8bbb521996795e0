"""Rules for very many labels that keep a bound: one on all labels pooled, or one on each label.

A bound on a pooled ratio has a price, which is added to the table of the aim; prices are tried in ascending order, and
judged on rows that the tables were not fitted to. A bound on each label restricts its thresholds. Must not know user
input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument
from ..core.label_sets import LabelSets
from ..goals.labels import LabelConstraint
from ..inference.labels import LabelJudge, deal_blocks, standard_error
from ..inference.results import ConstraintResult, Estimate
from ..metrics.label_aims import LabelAim, LabelCounts, LabelTable, RatioTerms
from ..oracles.labels import BothCounts, LabelOracle
from ..oracles.problem import FitStrategy
from ..solvers.labels import LabelSearch, expected_table, maximise_labels, own_thresholds
from ..solvers.result import Outcome
from .constraints.resolve import InfeasibleConstraintsError
from .labels import LabelFit, LabelProblem, label_oracle

__all__ = ["BoundedLabels", "PricedTables", "fit_every_label", "fit_pooled", "priced_fits"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_PRICES = np.concatenate([[0.0], np.geomspace(0.05, 1e4, 21)])
_STEPS = 3  # in which a table follows its own counts at a price
_N_REFINED = 7


class BoundedLabels(NamedTuple):
    """A fit that keeps a bound, and how it keeps it."""

    fit: LabelFit
    result: ConstraintResult


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


def priced_fits(
    problem: LabelProblem,
    recipe: FitStrategy,
    constraint: LabelConstraint,
    prices: Sequence[float],
    rows: IntArray | None = None,
    level: float | None = None,
) -> list[LabelFit]:
    """Return the fits at prices of a pooled bound to all rows, or to some."""
    oracle, link, aim = label_oracle(problem, recipe, rows)
    ceiling = np.isinf(constraint.low)
    level = (constraint.high if ceiling else constraint.low) if level is None else level
    priced = PricedTables(oracle, aim, constraint.ratio, -1.0 if ceiling else 1.0)
    return [LabelFit(table, link, oracle.factor) for table in priced.tables(prices, level)]


def fit_pooled(
    problem: LabelProblem,
    recipe: FitStrategy,
    constraint: LabelConstraint,
    confidence: float | None,
    seed: int,
    stage: Callable[[str], None],
) -> BoundedLabels:
    """Fit the rule of the lowest price at which a bound on pooled labels holds, with confidence on rows left out."""
    if np.isfinite(constraint.low) and np.isfinite(constraint.high):
        raise InvalidParameter(
            "subject_to",
            problem=f"{constraint.name!r} has two bounds, but rules for very many labels keep one",
            remedy="leave out the bound that does not bind",
            owner="subject_to",
        )
    if problem.targets is None:
        confidence = None
    judge = _judge(problem, seed)
    stage("looking for the price of the constraint")
    prices = list(_PRICES)
    for _ in range(2):
        limits = _limits(problem, recipe, constraint, confidence, prices, judge)
        kept = [place for place, limit in enumerate(limits) if limit.keeps]
        if not kept:
            break
        first = kept[0]
        if first == 0:
            prices = prices[:1]
            break
        prices = np.geomspace(max(prices[first - 1], prices[first] / 10), prices[first], _N_REFINED)[1:].tolist()
    if not kept:
        raise InfeasibleConstraintsError(_infeasible(constraint, limits, confidence))
    limits = _limits(problem, recipe, constraint, confidence, prices, judge) if first else limits[:1]
    first = next((place for place, limit in enumerate(limits) if limit.keeps), len(limits) - 1)
    stage("fitting all rows")
    fit = priced_fits(problem, recipe, constraint, [float(prices[first])])[0]
    value = _value(problem, constraint, fit)
    estimate = limits[first].estimate
    bound = constraint.high if np.isinf(constraint.low) else constraint.low
    margin = 0.0 if confidence is None else abs(limits[first].margin)
    result = ConstraintResult(
        constraint.name, constraint.low, constraint.high, value, margin, confidence, estimate, float(prices[first])
    )
    outcome = Outcome.LOCAL
    status = f"The lowest price at which {constraint.name!r} holds."
    own = LabelSearch(fit.table, bound, outcome, status)
    return BoundedLabels(replace(fit, search=own), result)


@dataclass(frozen=True)
class _Limit:
    """What a price gives of a bounded metric, with its limit on new rows."""

    value: float
    margin: float
    keeps: bool
    estimate: Estimate | None


def _judge(problem: LabelProblem, seed: int) -> LabelJudge | None:
    if problem.targets is None:
        return None
    block = deal_blocks(problem.rows.n_rows, problem.clusters, seed)
    return LabelJudge(problem.targets, problem.rows.weight, block)


def _limits(
    problem: LabelProblem,
    recipe: FitStrategy,
    constraint: LabelConstraint,
    confidence: float | None,
    prices: Sequence[float],
    judge: LabelJudge | None,
) -> list[_Limit]:
    """Return whether each price keeps the bound: on rows left out with confidence, else on the given rows."""
    if confidence is None or judge is None:
        fits = priced_fits(problem, recipe, constraint, prices)
        values = [_value(problem, constraint, fit) for fit in fits]
        return [_Limit(value, 0.0, _keeps(constraint, value), None) for value in values]
    halves = [np.flatnonzero(judge.block % 2 == half) for half in (0, 1)]
    parts: list[list[tuple[IntArray, LabelSets]]] = [[] for _ in prices]
    for half in (0, 1):
        fits = priced_fits(problem, recipe, constraint, prices, halves[1 - half])
        for part, fit in zip(parts, fits, strict=True):
            part.append((halves[half], fit.decide(problem, halves[half])))
    limits = []
    quantile = _student_quantile(confidence)
    for part in parts:
        decisions = LabelSets.joined(part, problem.rows.n_rows)
        counts = judge.counts(decisions)
        value = constraint.aim.value(counts)
        left_out = judge.left_out(constraint.aim, decisions)
        margin = quantile * standard_error(left_out)
        empty = float(constraint.ratio.denominator.of(counts.pooled(None))[0]) <= 0
        sign = -1.0 if np.isinf(constraint.low) else 1.0
        keeps = not empty and _keeps(constraint, value - sign * margin)
        limits.append(_Limit(value, margin, keeps, judge.estimate(value, left_out)))
    return limits


def _keeps(constraint: LabelConstraint, value: float) -> bool:
    return constraint.low - 1e-12 <= value <= constraint.high + 1e-12


def _student_quantile(confidence: float, degrees: int = 19) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, confidence))


def _value(problem: LabelProblem, constraint: LabelConstraint, fit: LabelFit) -> float:
    """Return the bounded metric of a fit on all rows, with labels if there are any."""
    return constraint.aim.value(fit.count(problem))


def _infeasible(constraint: LabelConstraint, limits: Sequence[_Limit], confidence: float | None) -> str:
    ceiling = np.isinf(constraint.low)
    best = min(limits, key=lambda limit: limit.value) if ceiling else max(limits, key=lambda limit: limit.value)
    reach = f"the {'lowest' if ceiling else 'highest'} value found is {best.value:.4g}"
    if confidence is None:
        return f"No rule was found that keeps {constraint.name!r}: {reach}. Loosen the bound."
    return (
        f"No rule was found that keeps {constraint.name!r} with a confidence of {confidence:g}: {reach}, with a margin "
        f"of {best.margin:.2g} for new rows. Loosen the bound, give more rows, or pass {argument('confidence', None)}."
    )


# ------------------------------------------------------------------------------------------------------- every label


def fit_every_label(
    problem: LabelProblem, recipe: FitStrategy, constraint: LabelConstraint, confidence: float | None
) -> BoundedLabels:
    """Fit a threshold for each label at which its own bound holds; labels without one are never predicted.

    With `confidence`, the bound holds for a label if the exact binomial limit of its share does, one label at a time.
    """
    _check_every_label(problem, constraint, confidence)
    oracle, _, aim = label_oracle(problem, FitStrategy("labels", recalibrate=False), None)
    sweep, true = oracle.sweep(), oracle.labels_true
    assert true is not None
    label = np.repeat(np.arange(oracle.n_labels), np.diff(sweep.label_ptr))
    counts = LabelCounts(sweep.hits, sweep.predicted, true[label], oracle.total)
    kept = _kept_cuts(constraint, counts, confidence)
    worth = _worth(problem, recipe, aim, counts, label)
    thresholds = own_thresholds(sweep, np.where(kept, worth, -np.inf))
    never = np.isnan(thresholds)
    table = LabelTable(np.where(never, 0.0, 1.0), np.where(never, -1.0, -np.where(never, 0.0, thresholds)))
    decided = oracle.count([table])[0]
    by_label = constraint.ratio.values(decided)
    predicted = decided.predicted > 0
    value = float(by_label[predicted].min()) if predicted.any() else np.nan  # of nothing, no bound is violated
    n_never = int(np.count_nonzero(never & (true > 0)))
    status = (
        f"The best threshold of each label at which {constraint.name!r} holds; {n_never} labels with true rows have "
        "none and are never predicted."
    )
    search = LabelSearch(table, aim.value(decided), Outcome.LOCAL, status)
    result = ConstraintResult(constraint.name, constraint.low, constraint.high, value, 0.0, confidence)
    return BoundedLabels(LabelFit(table, None, None, search), result)


def _check_every_label(problem: LabelProblem, constraint: LabelConstraint, confidence: float | None) -> None:
    ratio = constraint.ratio
    problem_text, remedy = "", ""
    if problem.targets is None:
        problem_text, remedy = "a bound in every label needs y", "pass y, or bound the metric of all labels pooled"
    elif problem.budget.is_limited:
        problem_text = f"a bound in every label cannot be kept with {argument('labels_per_row')}, where labels compete"
        remedy = "leave one of them out, or bound the metric of all labels pooled"
    elif np.isinf(constraint.low):
        problem_text, remedy = "a bound in every label must be a lower one", "write 'precision >= 0.8 in every label'"
    elif confidence is not None and not (_is_share(ratio) and problem.rows.weight is None):
        problem_text = "with a confidence, a bound in every label is for precision and recall of rows without weights"
        remedy = f"pass {argument('confidence', None)}"
    if problem_text:
        raise InvalidParameter("subject_to", problem=f"{constraint.name!r}: {problem_text}", remedy=remedy)


def _is_share(ratio: RatioTerms) -> bool:
    """Whether a ratio is the share of hits among predicted or true rows."""
    return (
        ratio.has_hits_only
        and ratio.denominator.hits == 0
        and ratio.denominator.total == 0
        and ((ratio.denominator.true == 0) != (ratio.denominator.predicted == 0))
    )


def _kept_cuts(constraint: LabelConstraint, counts: LabelCounts, confidence: float | None) -> NDArray[np.bool_]:
    """Return which thresholds keep the bound of their label."""
    if confidence is None:
        values = constraint.ratio.values(counts)
        return np.asarray((values >= constraint.low - 1e-12) & (values <= constraint.high + 1e-12))
    from scipy.special import betainc

    below = constraint.ratio.denominator
    tried = counts.predicted if below.true == 0 else counts.true
    # The chance of so many hits or more if the share were just at the bound.
    chance = betainc(np.maximum(counts.hits, 1.0), np.maximum(tried - counts.hits, 0.0) + 1.0, constraint.low)
    return np.asarray(np.where(counts.hits >= 1, chance, 1.0) <= 1.0 - confidence)


def _worth(
    problem: LabelProblem, recipe: FitStrategy, aim: LabelAim, counts: LabelCounts, label: IntArray
) -> FloatArray:
    """Return what each threshold of a label adds to the aim."""
    if not aim.is_pooled and aim.ratio is not None:
        return aim.ratio.values(counts)
    oracle, _, _ = label_oracle(problem, replace(recipe, recalibrate=False), None)
    scale, offset = (np.broadcast_to(part, (oracle.n_labels,)) for part in maximise_labels(oracle, aim).table)
    return np.asarray(scale[label] * counts.hits + offset[label] * counts.predicted)
