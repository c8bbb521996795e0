"""Which recipe to trust, and what it is worth on rows it has not seen.

Owns the cross-validation over the rows given: every candidate recipe is fitted on some folds and judged on the others,
one good default is left only on evidence, and the gain over argmax is estimated without reusing what chose the recipe.
Must not know solvers or user input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kernels import code_type
from .metrics.instance import row_values
from .metrics.objective import make_objective
from .problem import WIDE, InMemory, Problem, Recipe, Settings, argmax_rule, solve
from .recorded import cross_validated
from .solvers import Candidate, Gain, Solver

__all__ = ["Choice", "bootstrap_error", "candidates", "choose", "influence"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_FOLDS = 5
_SMALL = 2_000  # rows below which labels are counted on resamples and averaged
_LARGE = 20_000  # rows above which a sample of them decides, rare classes in it: the recipes hardly differ there
_REPEATS = 2
_RESAMPLES = 20  # of the recipe that is chosen; in the folds they gain nothing that is worth the time
_LEAVE = 1.0  # standard errors by which another recipe must beat the default
_ENTER = 1.0  # standard errors by which a recipe must beat argmax: half as much harm as 0.5, for 2 % of the gain
_ROUGH = 1e-4  # tolerance of solvers within folds: what is left of the gap drowns in sampling error
_WIDEN = 1.15  # folds share rows and the rule varies too: measured, not derived


@dataclass(frozen=True, eq=False)
class Choice:
    """What cross-validation says.

    Parameters
    ----------
    recipe : Recipe or None
        None is plain argmax.
    gain : Gain
        Of the choice over argmax, each fold judged with what the other folds chose.
    candidates : tuple of Candidate
        What was tried, and how it did.
    n_fits : int
        Rules fitted, the final one not counted.
    """

    recipe: Recipe | None
    gain: Gain
    candidates: tuple[Candidate, ...]
    n_fits: int

    def words(self) -> str:
        """Say what was chosen and why."""
        if self.recipe is None:
            best = max(self.candidates, key=lambda one: one.gain)
            return (
                "Plain argmax: no recipe promises a gain on new rows beyond noise, judged by rows that did not choose "
                f"it; the best one tried, {best.recipe}, was at {best.gain:+.2g} with a standard error of "
                f"{best.std_error:.2g}."
            )
        gain = self.gain
        return (
            f"Recipe {self.recipe}, chosen by cross-validation; gain over argmax on new rows {gain.estimate:+.3g} "
            f"(95 % interval {gain.low:+.3g} to {gain.high:+.3g})."
        )


def candidates(n_rows: int) -> list[Recipe]:
    """Return the recipes that are tried; the first is the default."""
    resamples = _RESAMPLES if n_rows < _SMALL else 0
    return [
        Recipe("expected", recalibrate=True),
        Recipe("blended", recalibrate=True, n_bootstrap=resamples),
        Recipe("labels", n_bootstrap=resamples),
        Recipe("expected"),
    ]


def choose(problem: Problem, recipes: Sequence[Recipe], solver: Solver | Settings, *, seed: int = 0) -> Choice:
    """Choose a recipe by repeated cross-validation over the rows of a problem.

    Parameters
    ----------
    problem : Problem
        With labels.
    recipes : sequence of Recipe
        The first is the default.
    solver : Solver or Settings
    seed : int
        Of the folds, and of resamples.

    Returns
    -------
    Choice
    """
    rng = np.random.default_rng(seed)
    if isinstance(solver, Settings) and solver.tol is None:
        solver = replace(solver, tol=_ROUGH)
    rows = problem.sample(_enough(problem), seed)
    trials = [_Trial.run(rows, recipes, solver, rng) for _ in range(_REPEATS)]
    table = _Table.of(rows, trials)
    best = table.pick()
    recorded = cross_validated(rows, [trial.decisions for trial in trials])
    tried = tuple(
        Candidate(
            str(recipe),
            float(table.value[c]),
            *table.difference(c, -1),
            recorded={name: values[c] for name, values in recorded.items()},
        )
        for c, recipe in enumerate(recipes)
    )
    n_fits = _REPEATS * _FOLDS * len(recipes)
    gain = None if best is None else _honest_gain(rows, trials, tried[best].std_error, seed)
    if best is None or gain is None or gain.estimate <= 0:  # what is handed out promises something, or is argmax
        return Choice(None, Gain(0.0, 0.0, 0.0), tried, n_fits)
    return Choice(recipes[best], gain, tried, n_fits)


def _enough(problem: Problem) -> int:
    """Rows to choose by: fewer where a row weighs very many classes cell by cell, and costs as the square of them."""
    k = problem.schema.width
    if k <= WIDE:
        return _LARGE
    ratio = problem.objective(problem.oracle()).ratio
    if ratio is None or ratio.line[0].is_diagonal:
        return _LARGE
    return max(2 * k, int(_LARGE * (WIDE / k) ** 2))


@dataclass(frozen=True, eq=False)
class _Trial:
    """One division into folds: decisions for every row by rules that have not seen it."""

    fold: IntArray  # (N,)
    plain: NDArray[Any]  # (N, M)
    decisions: tuple[NDArray[Any], ...]  # one (N, M) per recipe

    @classmethod
    def run(
        cls, problem: InMemory, recipes: Sequence[Recipe], solver: Solver | Settings, rng: np.random.Generator
    ) -> _Trial:
        fold = _folds(problem, rng)
        plain = problem.decide(argmax_rule(problem)).astype(code_type(problem.schema.width))
        decisions = [plain.copy() for _ in recipes]
        for f in range(_FOLDS):
            train, test = problem.take(fold != f), fold == f
            if not _learnable(train):
                continue  # argmax stands: there is nothing to learn a rule from
            held_out = problem.take(test)
            for recipe, out in zip(recipes, decisions, strict=True):
                solution, link = solve(train, replace(recipe, n_bootstrap=0), solver)
                out[test] = held_out.decide(solution.rule, link)
        return cls(fold, plain, tuple(decisions))


@dataclass(frozen=True, eq=False)
class _Table:
    """Influences of rows on the cross-validated value of each candidate, mean over the repeats."""

    value: FloatArray  # (R + 1,): the recipes, then argmax
    influence: FloatArray  # (R + 1, N)

    @classmethod
    def of(cls, problem: InMemory, trials: Sequence[_Trial]) -> _Table:
        values, rows = [], []
        for trial in trials:
            found = [influence(problem, codes) for codes in (*trial.decisions, trial.plain)]
            values.append([value for value, _ in found])
            rows.append([row for _, row in found])
        return cls(np.mean(values, axis=0), np.mean(rows, axis=0))

    def difference(self, first: int, second: int) -> tuple[float, float]:
        """Return the difference in value of two candidates, and its standard error, paired by row."""
        rows = self.influence[first] - self.influence[second]
        return float(self.value[first] - self.value[second]), float(np.sqrt(np.sum(rows**2)))

    def pick(self) -> int | None:
        """Return the recipe to use, None for argmax: the default unless another is better beyond noise."""
        best, lead = 0, 0.0
        for c in range(1, len(self.value) - 1):
            difference, error = self.difference(c, 0)
            if difference > _LEAVE * error and difference > lead:
                best, lead = c, difference
        difference, error = self.difference(best, -1)
        return best if difference > _ENTER * error else None


def _honest_gain(problem: InMemory, trials: Sequence[_Trial], least_error: float, seed: int) -> Gain:
    """Estimate the gain of choosing: the rows of each fold are decided by what the other folds choose.

    Parameters
    ----------
    least_error : float
        Standard error of the gain of the recipe chosen in the end: folds that choose argmax would hide it.
    seed : int
        Of resamples.
    """
    values, rows, shifts = [], [], []
    for trial in trials:
        decisions = _chosen_by_the_others(problem, trial)
        (value, row), (plain_value, plain_row) = influence(problem, decisions), influence(problem, trial.plain)
        values.append(value - plain_value)
        rows.append(row - plain_row)
        shifts.append(_one_more_right(problem, decisions) - _one_more_right(problem, trial.plain) - values[-1])
    estimate = float(np.mean(values))
    error = float(np.sqrt(np.sum(np.mean(rows, axis=0) ** 2)))
    if not problem.aim.metric.smooth:
        error = max(error, bootstrap_error(problem, decisions, trials[-1].plain, seed=seed))
    half = 1.96 * _WIDEN * float(np.hypot(max(error, least_error), np.mean(shifts)))
    return Gain(estimate, estimate - half, estimate + half)


def _chosen_by_the_others(problem: InMemory, trial: _Trial) -> NDArray[Any]:
    """Return decisions (N, M), the rows of each fold decided by the recipe that the other folds choose."""
    decisions = trial.plain.copy()
    for f in range(_FOLDS):
        test = trial.fold == f
        others = problem.take(~test)
        if not test.any() or not _learnable(others):
            continue
        rest = _Trial(trial.fold[~test], trial.plain[~test], tuple(d[~test] for d in trial.decisions))
        best = _Table.of(others, [rest]).pick()
        if best is not None:
            decisions[test] = trial.decisions[best][test]
    return decisions


# -------------------------------------------------------------------------------------------------- statistics


def influence(problem: InMemory, decisions: NDArray[Any]) -> tuple[float, FloatArray]:
    """Return the metric of decisions counted with labels, and how far each row moves it (the delta method).

    Parameters
    ----------
    problem : Problem
    decisions : integer ndarray of shape (N, M)

    Returns
    -------
    value : float
    rows : ndarray of shape (N,)
        Sum to 0; the sum of their squares estimates the variance of the value over samples of rows.
    """
    rows, aim, schema = problem.source.rows, problem.aim, problem.schema
    codes = rows.codes
    assert codes is not None
    if aim.average == "instance":
        each, mass = row_values(
            aim.metric, codes, decisions, schema.width, aim.output_weight, rows.weight, schema.classes
        )
        mass = mass / mass.sum()
        value = float(each @ mass)
        return value, (each - value) * mass
    oracle = problem.oracle()
    objective = problem.objective(oracle)
    C = oracle.confusion_of(decisions)
    pooled = objective.grouping.pool(C)
    slope = objective.full_gradient(pooled)
    out = np.zeros(len(decisions))
    weight = np.ones(len(decisions)) if rows.weight is None else rows.weight
    grouping = objective.grouping
    for m in np.flatnonzero((grouping.group >= 0) & (grouping.share > 0)):
        own = slope[grouping.group[m]] * grouping.weight[grouping.group[m]] * grouping.share[m]
        true = codes[:, m].astype(np.intp)
        seen = true >= 0
        count = np.bincount(true[seen], weight[seen], minlength=len(own))
        factor = np.divide(oracle.priors[m], count, out=np.zeros_like(count), where=count > 0)
        if problem.prior is None:
            center = np.full(len(own), np.sum(own * pooled[grouping.group[m]]))
        else:  # the shares of the classes are given: rows move the metric within their class only
            share = oracle.priors[m]
            center = np.divide(np.sum(own * C[m], axis=1), share, out=np.zeros_like(share), where=share > 0)
        true = np.maximum(true, 0)
        out += np.where(seen, (own[true, decisions[:, m]] - center[true]) * factor[true] * weight, 0.0)
    return objective.value(C), out


def bootstrap_error(
    problem: InMemory, first: NDArray[Any], second: NDArray[Any], n_resamples: int = 200, seed: int = 0
) -> float:
    """Return the standard error of the difference in the metric of two sets of decisions, by resampling rows.

    Parameters
    ----------
    problem : Problem
    first, second : integer ndarray of shape (N, M)

    Returns
    -------
    float
    """
    rng = np.random.default_rng(seed)
    resamples = (problem.resampled(rng) for _ in range(n_resamples))
    return float(np.std([one.value_of(first) - one.value_of(second) for one in resamples]))


def _one_more_right(problem: InMemory, decisions: NDArray[Any]) -> float:
    """Return the metric with one more row of every class, rightly decided.

    Where a rare class is never hit, no row says how often it might be: the sampling error is 0 and means nothing.
    """
    if problem.aim.average == "instance":
        return problem.value_of(decisions)
    oracle, schema = problem.oracle(), problem.schema
    k, n_classes = schema.width, schema.n_classes
    extra = np.eye(k) * (np.arange(k) < n_classes[:, None])[:, :, None]
    C = oracle.confusion_of(decisions) + extra / np.maximum(problem.source.class_rows.sum(axis=1), 1.0)[:, None, None]
    C = C / C.sum(axis=(1, 2), keepdims=True)
    grouping = problem.objective(oracle).grouping
    return make_objective(problem.aim.metric, grouping, C.sum(axis=2), n_classes, classes=schema.classes).value(C)


def _folds(problem: InMemory, rng: np.random.Generator) -> IntArray:
    """Assign rows to folds at random, evenly within the classes of a single output."""
    n, codes = problem.n_rows, problem.source.rows.codes
    order = rng.permutation(n)
    if problem.schema.n_outputs == 1 and codes is not None:
        order = order[np.argsort(codes[order, 0], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % _FOLDS
    return fold


def _learnable(problem: InMemory) -> bool:
    """Whether some output has labels of two classes, with weight."""
    return bool(((problem.source.class_weights > 0).sum(axis=1) > 1).any())
