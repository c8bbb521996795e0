"""What the best rule makes of probabilities: each half of the rows is decided by the rule of the other half.

One rule is fitted to each half, without any selection, so that models can be compared by it many times. Must not know
user input.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..goals.constraint import Constraint
from ..kernels import code_type
from ..oracles.problem import FitStrategy, InMemory
from ..solvers.constrained import Effort, InfeasibleError
from .bagging import Resamples, deal_halves, decide_left_out, fit_bags, links_of
from .solving import Settings

__all__ = ["value_by_halves"]

Codes = NDArray[Any]

# The remaining gap is small beside the sampling error.
_SETTINGS = Settings(tol=1e-4, max_iter=20, n_random=0)
# Of six recipes the one whose values ranked models of two classes best on ten sets of benchmarks/training; with more
# classes, and by the choices that they led to, recipes did not differ by more than noise.
_RECIPE = FitStrategy("expected", recalibrate=True)
_RECIPE_OF_WHOLE_ROWS = FitStrategy("labels", recalibrate=True)
_MIN_SWEEP_ROWS = 400  # of the rarer of two classes, from which on the best threshold on labels is as good on new rows


def value_by_halves(problem: InMemory) -> float:
    """Return the metric of decisions about each half of labelled rows by the rule that is fitted to the other half.

    The decisions about both halves are pooled, and counted once. A half whose rows have no rule that satisfies the
    constraints leaves the other half undecided, which then has the smallest value of the metric; the value is the mean
    of the halves by their weights.
    """
    halves = deal_halves(problem)
    codes = _decide_halves(problem, halves)
    decided = codes[:, 0] >= 0
    if decided.all():
        return problem.value_of(codes)
    lowest = problem.aim.metric.range[0]
    if not decided.any():
        return lowest
    weight = _row_weight(problem)
    share = float(weight[decided].sum() / weight.sum())
    rows = np.flatnonzero(decided)
    return share * problem.take(rows).value_of(codes[rows]) + (1 - share) * lowest


def _decide_halves(problem: InMemory, halves: Resamples) -> Codes:
    """Return decisions (N, M) about each half by the rule of the other; -1 where that has none within constraints."""
    if _sweeps(problem):
        return _decide_by_thresholds(problem, halves)
    whole_rows = problem.aim.metric.traits.needs_integer_counts
    recipe = _RECIPE_OF_WHOLE_ROWS if whole_rows else _RECIPE
    if problem.constraints:
        return _decide_within(problem, halves, recipe)
    (bag,) = fit_bags(problem, halves, [recipe], _SETTINGS, links_of(problem, halves, recipe.recalibrate))
    return decide_left_out(problem, halves, bag)


def _sweeps(problem: InMemory) -> bool:
    """Whether all thresholds are compared in one pass: within constraints, and where labels are many.

    Of few labels the best threshold varies more than one by recalibrated probabilities. Slow functions of users are not
    evaluated at all thresholds.
    """
    schema = problem.schema
    if schema.n_outputs > 1 or schema.decision_width > 2 or problem.aim.metric.traits.slow:
        return False
    return bool(problem.constraints) or problem.source.class_rows.min() >= _MIN_SWEEP_ROWS


def _decide_by_thresholds(problem: InMemory, halves: Resamples) -> Codes:
    """Decide by the best threshold of the labels of each half."""
    from .constraints.resampled_thresholds import ResampledThresholds
    from .constraints.resolve import bind_constraints

    oracle = problem.oracle()
    limits = bind_constraints(problem.constraints, problem.schema, oracle)
    thresholds = ResampledThresholds(halves, None, oracle, problem.objective(oracle), limits)
    fits = thresholds.fit(np.zeros((len(problem.constraints), 2)))
    codes = np.full(thresholds.scores.shape, -1, dtype=code_type(2))
    for half, threshold in zip(fits.resamples.tolist(), fits.threshold.tolist(), strict=True):
        left_out = halves.rows[half]
        codes[left_out] = thresholds.scores[left_out] > threshold
    return codes


def _decide_within(problem: InMemory, halves: Resamples, recipe: FitStrategy) -> Codes:
    """Decide by rules that satisfy the constraints on the rows that they are fitted to."""
    codes = np.full((problem.n_rows, problem.schema.n_outputs), -1, dtype=code_type(problem.schema.decision_width))
    for left_out, kept in zip(halves.rows, halves.kept, strict=True):
        decided = _decide_rows(problem.take(left_out), problem.take(np.flatnonzero(kept)), recipe, problem.constraints)
        if decided is not None:
            codes[left_out] = decided
    return codes


def _decide_rows(
    rows: InMemory, fitted: InMemory, recipe: FitStrategy, constraints: tuple[Constraint, ...]
) -> Codes | None:
    """Decide rows by the best rule of others that satisfies constraints; None if there is none."""
    from .constraints.search import NoSingleRuleError, Search

    link = fitted.link(recipe.recalibrate)
    search = Search(fitted, recipe, link, constraints, _SETTINGS)
    try:
        rule = search.best(np.zeros((len(constraints), 2)), single=True, effort=Effort.ROUGH).result.rule
    except (InfeasibleError, NoSingleRuleError):
        return None
    return rows.decide(rule, link)


def _row_weight(problem: InMemory) -> NDArray[np.float64]:
    """Return what each row weighs, (N,)."""
    rows = problem.source.rows
    return np.ones(rows.n_rows) if rows.weight is None else np.asarray(rows.weight)
