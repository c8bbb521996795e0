"""Rules for very many labels that keep a bound: one on all labels pooled, or one on each label.

A bound on a pooled ratio has a price, which is added to the table of the aim; prices are tried in ascending order, and
judged on rows that the tables were not fitted to. A bound on each label restricts its thresholds. Must not know user
input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, mention
from ..core.label_sets import LabelSets
from ..goals.labels import LabelConstraint
from ..inference.labels import LabelJudge, standard_error
from ..inference.results import ConstraintResult, Estimate
from ..metrics.label_aims import LabelAim, LabelCounts, LabelTable, RatioTerms
from ..oracles.problem import FitStrategy
from ..solvers.labels import LabelSearch, maximise_labels, own_thresholds
from ..solvers.result import Outcome
from .constraints.resolve import InfeasibleConstraintsError
from .label_frontier import PricedTables, best_labels
from .labels import LabelFit, LabelProblem, label_oracle

__all__ = ["BoundedLabels", "fit_every_label", "fit_pooled", "priced_fits"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_PRICES = np.concatenate([[0.0], np.geomspace(0.05, 1e4, 21)])
_N_REFINED = 7
_N_ROUNDS = 2  # of refined prices
_N_LEVELS = 4  # from the bound to the end of the range, tried until one is enough
_N_HIGHER = 7  # prices beyond the chosen one, if it is not enough on all rows


class BoundedLabels(NamedTuple):
    """A fit that keeps a bound, and how it keeps it."""

    fit: LabelFit
    result: ConstraintResult


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
    """Fit the best rule found that keeps a bound on pooled labels: on the given rows, or with confidence on new ones.

    With confidence, it is that of the lowest price at which the bound holds on rows left out.
    """
    if np.isfinite(constraint.low) and np.isfinite(constraint.high):
        raise InvalidParameter(
            "subject_to",
            problem=f"{constraint.name!r} has two bounds, but rules for very many labels keep one",
            remedy="leave out the bound that does not bind",
            owner="subject_to",
        )
    stage("looking for the price of the constraint")
    if problem.targets is None or confidence is None:
        return _fit_on_given_rows(problem, recipe, constraint)
    judge = problem.judge(seed)
    choice = _choose_price(problem, recipe, constraint, confidence, judge)
    stage("fitting all rows")
    fit, price, value = _fit_at_price(problem, recipe, constraint, choice)
    margin = abs(choice.limit.margin)
    result = ConstraintResult(
        constraint.name, constraint.low, constraint.high, value, margin, confidence, choice.limit.estimate, price
    )
    status = f"The lowest price at which {constraint.name!r} holds on rows left out."
    search = LabelSearch(fit.table, _aim_value(problem, fit.count(problem)), Outcome.LOCAL, status)
    return BoundedLabels(replace(fit, search=search), result)


def _fit_on_given_rows(problem: LabelProblem, recipe: FitStrategy, constraint: LabelConstraint) -> BoundedLabels:
    """Fit the best rule found that keeps a bound on the given rows."""
    ceiling = bool(np.isinf(constraint.low))
    bound = constraint.high if ceiling else constraint.low
    best, reached = best_labels(problem, recipe, constraint, bound, ceiling=ceiling)
    if best is None:
        raise InfeasibleConstraintsError(_infeasible(constraint, reached, 0.0, None))
    value = constraint.aim.value(best.counts)
    result = ConstraintResult(constraint.name, constraint.low, constraint.high, value, 0.0, None, None, best.price)
    status = f"The best rule found that keeps {constraint.name!r} on the given rows."
    search = LabelSearch(best.fit.table, _aim_value(problem, best.counts), Outcome.LOCAL, status)
    return BoundedLabels(replace(best.fit, search=search), result)


def _aim_value(problem: LabelProblem, counts: LabelCounts) -> float:
    return problem.aim.bind(counts.true).value(counts)


class _Choice(NamedTuple):
    """Prices in the order in which tables follow one another, the place of the lowest that is enough, and its limit."""

    prices: list[float]
    place: int
    level: float
    limit: _Limit


def _choose_price(
    problem: LabelProblem, recipe: FitStrategy, constraint: LabelConstraint, confidence: float, judge: LabelJudge
) -> _Choice:
    """Return the lowest price at which a bound holds on rows left out; at a tighter level, if it must be."""
    ceiling = bool(np.isinf(constraint.low))
    bound = constraint.high if ceiling else constraint.low
    every: list[_Limit] = []
    for level in np.linspace(bound, constraint.aim.range[0 if ceiling else 1], _N_LEVELS + 1)[:-1].tolist():
        prices = _PRICES.tolist()
        limits = _limits(problem, recipe, constraint, confidence, prices, judge, level)
        every += limits
        first = _first_kept(limits)
        if first is None:
            continue
        choice = _Choice(prices, first, level, limits[first])
        for _ in range(_N_ROUNDS if first else 0):
            highest = choice.prices[choice.place]
            before = choice.prices[choice.place - 1] if choice.place else 0.0
            prices = np.geomspace(max(before, highest / 10), highest, _N_REFINED)[1:].tolist()
            limits = _limits(problem, recipe, constraint, confidence, prices, judge, level)
            first = _first_kept(limits)
            if first is None:
                break
            choice = _Choice(prices, first, level, limits[first])
        return choice
    best = min(every, key=lambda limit: limit.value) if ceiling else max(every, key=lambda limit: limit.value)
    raise InfeasibleConstraintsError(_infeasible(constraint, best.value, best.margin, confidence))


def _first_kept(limits: Sequence[_Limit]) -> int | None:
    return next((place for place, limit in enumerate(limits) if limit.keeps), None)


def _fit_at_price(
    problem: LabelProblem, recipe: FitStrategy, constraint: LabelConstraint, choice: _Choice
) -> tuple[LabelFit, float, float]:
    """Return the fit to all rows at a price, or the first higher one at which it keeps the bound on these too."""
    last = choice.prices[choice.place]
    higher = [max(last, _PRICES[1]) * 2.0**step for step in range(1, _N_HIGHER)]
    prices = [*choice.prices[: choice.place + 1], *higher]
    fits = priced_fits(problem, recipe, constraint, prices, level=choice.level)[choice.place :]
    sign = -1.0 if np.isinf(constraint.low) else 1.0
    values = [_value(problem, constraint, fit) for fit in fits]
    for margin in (abs(choice.limit.margin), 0.0):
        for price, fit, value in zip(prices[choice.place :], fits, values, strict=True):
            if _keeps(constraint, value - sign * margin):
                return fit, price, value
    return fits[0], last, values[0]


@dataclass(frozen=True)
class _Limit:
    """What a price gives of a bounded metric, with its limit on new rows."""

    value: float
    margin: float
    keeps: bool
    estimate: Estimate | None


def _limits(
    problem: LabelProblem,
    recipe: FitStrategy,
    constraint: LabelConstraint,
    confidence: float,
    prices: Sequence[float],
    judge: LabelJudge,
    level: float,
) -> list[_Limit]:
    """Return whether each price keeps the bound with confidence on rows left out."""
    halves = [np.flatnonzero(judge.block % 2 == half) for half in (0, 1)]
    parts: list[list[tuple[IntArray, LabelSets]]] = [[] for _ in prices]
    for half in (0, 1):
        fits = priced_fits(problem, recipe, constraint, prices, halves[1 - half], level)
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


def _infeasible(constraint: LabelConstraint, value: float, margin: float, confidence: float | None) -> str:
    """Say that no rule was found, and the best value that was, with its margin."""
    reach = f"the {'lowest' if np.isinf(constraint.low) else 'highest'} value found is {value:.4g}"
    if confidence is None:
        return f"No rule was found that keeps {constraint.name!r}: {reach}. Loosen the bound."
    return (
        f"No rule was found that keeps {constraint.name!r} with a confidence of {confidence:g}: {reach}, with a margin "
        f"of {margin:.2g} for new rows. Loosen the bound, give more rows, or pass {argument('confidence', None)}."
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
    elif np.isinf(constraint.low) or not _is_precision(ratio):
        # Other metrics are 0 for a label that is never predicted, so that rare labels would break their bound.
        problem_text = "a bound in every label must be a lower one on precision"
        remedy = "write 'precision >= 0.8 in every label', or bound the metric of all labels pooled"
    elif confidence is not None and problem.rows.weight is not None:
        problem_text = f"with a confidence, a bound in every label takes no {mention('sample_weight')}"
        remedy = f"pass {argument('confidence', None)}"
    if problem_text:
        raise InvalidParameter("subject_to", problem=f"{constraint.name!r}: {problem_text}", remedy=remedy)


def _is_precision(ratio: RatioTerms) -> bool:
    """Whether a ratio is the share of hits among predicted rows."""
    hits, true, predicted, total = ratio.denominator
    return ratio.has_hits_only and (hits, true, total) == (0.0, 0.0, 0.0) and predicted > 0


def _kept_cuts(constraint: LabelConstraint, counts: LabelCounts, confidence: float | None) -> NDArray[np.bool_]:
    """Return which thresholds keep the bound of their label."""
    if confidence is None:
        values = constraint.ratio.values(counts)
        return np.asarray((values >= constraint.low - 1e-12) & (values <= constraint.high + 1e-12))
    from scipy.special import betainc

    tried = counts.predicted
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
