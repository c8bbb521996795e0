"""Which recipe to trust, and what it is worth on rows it has not seen.

Owns the cross-validation over the rows given: every candidate recipe is fitted on some folds and judged on the others,
one good default is left only on evidence, and the gain over argmax is estimated without reusing what chose the recipe.
Must not know solvers or user input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .metrics.instance import instance_values
from .problem import Problem, Recipe, argmax, solve
from .rules import WeightedRule
from .solvers import Gain, Solver

__all__ = ["Choice", "bootstrap_error", "candidates", "choose", "influence"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_FOLDS = 5
_SMALL = 2_000  # rows below which labels are counted on resamples and averaged
_LARGE = 20_000  # rows above which a sample of them decides: the recipes hardly differ there
_REPEATS = 2
_RESAMPLES = 8
_LEAVE = 1.0  # standard errors by which another recipe must beat the default
_ENTER = 1.0  # standard errors by which a recipe must beat argmax
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
    table : tuple of (str, float, float)
        Each candidate: name, cross-validated value, standard error of its difference to argmax.
    n_fits : int
    """

    recipe: Recipe | None
    gain: Gain
    table: tuple[tuple[str, float, float], ...]
    n_fits: int

    def words(self) -> str:
        """Say what was chosen and why."""
        found = f"{self.gain.estimate:+.3g} (95 % interval {self.gain.low:+.3g} to {self.gain.high:+.3g})"
        if self.recipe is None:
            return f"Plain argmax: no recipe promises a gain on new rows; the best was estimated at {found}."
        return f"Recipe {self.recipe}, chosen by cross-validation; gain over argmax on new rows {found}."


def candidates(n_rows: int) -> list[Recipe]:
    """Return the recipes that are tried; the first is the default."""
    resamples = _RESAMPLES if n_rows < _SMALL else 0
    return [
        Recipe("expected", recalibrate=True),
        Recipe("blended", recalibrate=True, n_bootstrap=resamples),
        Recipe("labels", n_bootstrap=resamples),
        Recipe("expected"),
    ]


def choose(problem: Problem, recipes: Sequence[Recipe], *, solver: Solver | None = None, seed: int = 0) -> Choice:
    """Choose a recipe by repeated cross-validation over the rows of a problem.

    Parameters
    ----------
    problem : Problem
        With labels.
    recipes : sequence of Recipe
        The first is the default.
    solver : Solver, optional
    seed : int
        Of the folds.

    Returns
    -------
    Choice
    """
    rng = np.random.default_rng(seed)
    if problem.proba.n_rows > _LARGE:
        problem = problem.take(np.sort(rng.choice(problem.proba.n_rows, _LARGE, replace=False)))
    trials = [_Trial.run(problem, recipes, solver, rng) for _ in range(_REPEATS)]
    table = _Table.of(problem, trials)
    best = table.pick()
    n_fits = _REPEATS * _FOLDS * sum(max(1, recipe.n_bootstrap) for recipe in recipes)
    rows = tuple((str(r), *table.against_argmax(c)) for c, r in enumerate(recipes))
    return Choice(None if best is None else recipes[best], _honest_gain(problem, trials), rows, n_fits)


@dataclass(frozen=True, eq=False)
class _Trial:
    """One division into folds: decisions for every row by rules that have not seen it."""

    fold: IntArray  # (N,)
    plain: NDArray[Any]  # (N, M)
    decisions: tuple[NDArray[Any], ...]  # one (N, M) per recipe

    @classmethod
    def run(
        cls, problem: Problem, recipes: Sequence[Recipe], solver: Solver | None, rng: np.random.Generator
    ) -> _Trial:
        fold = _folds(problem, rng)
        plain = argmax(problem)
        decisions = [plain.copy() for _ in recipes]
        for f in range(_FOLDS):
            train, test = problem.take(fold != f), fold == f
            if not _learnable(train):
                continue  # argmax stands: there is nothing to learn a rule from
            held_out = problem.proba.take(test)
            for recipe, out in zip(recipes, decisions, strict=True):
                solution, link = solve(train, recipe, solver, seed=f)
                assert isinstance(solution.rule, WeightedRule)
                proba = held_out if link is None else link.apply(held_out)
                out[test] = solution.rule.decide(proba)
        return cls(fold, plain, tuple(decisions))


@dataclass(frozen=True, eq=False)
class _Table:
    """Influences of rows on the cross-validated value of each candidate, mean over the repeats."""

    value: FloatArray  # (R + 1,): the recipes, then argmax
    influence: FloatArray  # (R + 1, N)

    @classmethod
    def of(cls, problem: Problem, trials: Sequence[_Trial]) -> _Table:
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

    def against_argmax(self, recipe: int) -> tuple[float, float]:
        """Return the value of a recipe, and the standard error of its difference to argmax."""
        return float(self.value[recipe]), self.difference(recipe, -1)[1]

    def pick(self) -> int | None:
        """Return the recipe to use, None for argmax: the default unless another is better beyond noise."""
        best, lead = 0, 0.0
        for c in range(1, len(self.value) - 1):
            difference, error = self.difference(c, 0)
            if difference > _LEAVE * error and difference > lead:
                best, lead = c, difference
        difference, error = self.difference(best, -1)
        return best if difference > _ENTER * error else None


def _honest_gain(problem: Problem, trials: Sequence[_Trial]) -> Gain:
    """Estimate the gain of choosing: the rows of each fold are decided by what the other folds choose."""
    values, rows = [], []
    for trial in trials:
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
        (value, row), (plain_value, plain_row) = influence(problem, decisions), influence(problem, trial.plain)
        values.append(value - plain_value)
        rows.append(row - plain_row)
    estimate = float(np.mean(values))
    error = float(np.sqrt(np.sum(np.mean(rows, axis=0) ** 2)))
    if not problem.metric.smooth:
        error = max(error, bootstrap_error(problem, decisions, trials[-1].plain))
    half = 1.96 * _WIDEN * error
    return Gain(estimate, estimate - half, estimate + half)


# -------------------------------------------------------------------------------------------------- statistics


def influence(problem: Problem, decisions: NDArray[Any]) -> tuple[float, FloatArray]:
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
    assert problem.codes is not None
    if problem.average == "instance":
        each, mass = instance_values(
            problem.metric,
            problem.codes,
            decisions,
            problem.proba.width,
            problem.output_weight,
            problem.sample_weight,
            problem.classes[0],
        )
        value = float(each @ mass)
        return value, (each - value) * mass
    oracle = problem.oracle()
    objective = problem.objective(oracle)
    C = oracle.confusion_of(decisions)
    pooled = objective.grouping.pool(C)
    slope = objective.full_gradient(pooled)
    out = np.zeros(len(decisions))
    weight = np.ones(len(decisions)) if problem.sample_weight is None else problem.sample_weight
    grouping = objective.grouping
    for m in np.flatnonzero((grouping.group >= 0) & (grouping.share > 0)):
        own = slope[grouping.group[m]] * grouping.weight[grouping.group[m]] * grouping.share[m]
        true = problem.codes[:, m].astype(np.intp)
        seen = true >= 0
        move = np.where(seen, own[np.maximum(true, 0), decisions[:, m]] - np.sum(own * C[m]), 0.0)
        out += move * weight / oracle.weight[m]
    return objective.value(C), out


def bootstrap_error(
    problem: Problem, first: NDArray[Any], second: NDArray[Any], n_resamples: int = 200, seed: int = 0
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


def _folds(problem: Problem, rng: np.random.Generator) -> IntArray:
    """Assign rows to folds at random, evenly within the classes of a single output."""
    n = problem.proba.n_rows
    order = rng.permutation(n)
    if problem.proba.n_outputs == 1 and problem.codes is not None:
        order = order[np.argsort(problem.codes[order, 0], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % _FOLDS
    return fold


def _learnable(problem: Problem) -> bool:
    """Whether some output has labels of two classes, with weight."""
    assert problem.codes is not None
    codes = problem.codes if problem.sample_weight is None else problem.codes[problem.sample_weight > 0]
    if len(codes) == 0:
        return False
    high = codes.max(axis=0)
    low = np.where(codes >= 0, codes, np.iinfo(codes.dtype).max).min(axis=0)
    return bool(np.any(low < high))
