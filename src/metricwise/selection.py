"""Which recipe to trust, and what it is worth on rows it has not seen.

Owns the comparison of recipes on rows that their rules have not seen: every recipe is fitted to resamples of the rows,
the one rule that its fits make together is judged on the rows that they left out, and the best one is taken if it beats
argmax there. The gain over argmax is estimated without reusing what chose. Must not know solvers or user input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bags import Bag, Resamples, draw, fit_bag, links_of, spread_repeats
from .confusion import from_predictions
from .kernels import code_type
from .problem import WIDE, InMemory, Problem, Recipe, Settings, argmax_rule
from .recorded import held_out
from .rules import Link, WeightedRule
from .solvers import Candidate, Estimate, Gain, Solver
from .sources import MemorySource
from .uncertainty import Spread, bootstrap_error, influence, one_more_right, values_of_counts

__all__ = ["Choice", "candidates", "choose"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_LARGE = 20_000  # rows above which a sample of them decides, rare classes in it: the recipes hardly differ there
_LEAVE = 1.0  # standard errors by which another recipe must beat the default
_ROUGH = 1e-4  # tolerance of solvers on resamples: what is left of the gap drowns in sampling error
_WIDEN = 1.15  # resamples share rows and the rule varies too: measured, not derived


@dataclass(frozen=True, eq=False)
class Choice:
    """What the rows that were left out say.

    Parameters
    ----------
    recipe : Recipe or None
        None is plain argmax.
    rule : tuple of WeightedRule and (Link or None), or None
        What the resamples make together, over codes; None where all rows are to be fitted instead.
    gain : Gain
        Of the choice over argmax, each block of rows judged with what the other blocks chose.
    value : Estimate
        Of the metric of the choice, likewise.
    candidates : tuple of Candidate
        What was tried, and how it did.
    judges : InMemory
        The rows that it was judged on.
    """

    recipe: Recipe | None
    rule: tuple[WeightedRule, Link | None] | None
    gain: Gain
    value: Estimate
    candidates: tuple[Candidate, ...]
    judges: InMemory

    def words(self) -> str:
        """Say what was chosen and why."""
        if self.recipe is None:
            best = max(self.candidates, key=lambda one: one.gain)
            return (
                "Plain argmax: no recipe promises a gain on new rows, judged by rows that it had not seen; the best "
                f"one tried, {best.recipe}, was at {best.gain:+.2g} with a standard error of {best.std_error:.2g}."
            )
        gain = self.gain
        return (
            f"Recipe {self.recipe}, chosen by the rows that resamples left out; gain over argmax on new rows "
            f"{gain.estimate:+.3g} (95 % interval {gain.low:+.3g} to {gain.high:+.3g})."
        )


def candidates() -> list[Recipe]:
    """Return the recipes that are tried; the first is the default."""
    return [Recipe("expected", recalibrate=True), Recipe("labels", recalibrate=True)]


def choose(
    problem: Problem,
    recipes: Sequence[Recipe],
    solver: Solver | Settings,
    *,
    seed: int = 0,
    stage: Callable[[str], None] = lambda _: None,
) -> Choice:
    """Choose a recipe by the rows that resamples leave out.

    Parameters
    ----------
    problem : Problem
        With labels.
    recipes : sequence of Recipe
    solver : Solver or Settings
    seed : int
        Of the resamples.
    stage : callable, optional
        Told what is being done.

    Returns
    -------
    Choice
    """
    rng = np.random.default_rng(seed)
    if isinstance(solver, Settings) and solver.tol is None:
        solver = replace(solver, tol=_ROUGH)
    rows = _to_resample(problem.sample(_enough(problem), seed))
    resamples = draw(rows, rng)
    stage("recalibrating resamples")
    links = {wanted: links_of(rows, resamples, wanted) for wanted in {recipe.recalibrate for recipe in recipes}}
    bags = []
    for recipe in recipes:
        stage(f"fitting resamples, {recipe}")
        bags.append(fit_bag(rows, resamples, recipe, solver, links[recipe.recalibrate]))
    stage("judging rows that were left out")
    plain = rows.decide(argmax_rule(rows)).astype(code_type(rows.schema.width))
    table = _Table.of(rows, resamples, [*(_judged(rows, resamples, bag) for bag in bags), plain])
    best = table.pick()
    recorded = held_out(rows, table.decisions[:-1])
    tried = tuple(
        Candidate(
            str(recipe),
            float(table.value[c]),
            float(table.value[c] - table.value[-1]),
            float(table.error[c, -1]),
            recorded={name: values[c] for name, values in recorded.items()},
        )
        for c, recipe in enumerate(recipes)
    )
    gain, value = _honest(rows, table, best, seed)
    if best is None or gain.estimate <= 0:  # what is handed out promises something, or is argmax
        gain, value = _honest(rows, table, None, seed)
        return Choice(None, None, gain, value, tried, rows)
    whole = rows.n_rows == problem.n_rows
    rule = bags[best].rule(rows.schema.n_classes) if whole else None
    return Choice(recipes[best], rule, gain, value, tried, rows)


def _to_resample(problem: InMemory) -> InMemory:
    """Return the problem with rows that resamples may part, and those that they must not part marked."""
    rows = problem.source.rows
    if rows.repeats is not None:
        return spread_repeats(problem)
    if rows.cluster is None:
        found = rows.copies()
        if found is not None:
            rows = replace(rows, cluster=found)
            return replace(problem, source=MemorySource(rows, problem.schema, problem.source.passes))
    return problem


def _enough(problem: Problem) -> int:
    """Rows to choose by: fewer where a row weighs very many classes cell by cell, and costs as the square of them."""
    k = problem.schema.width
    if k <= WIDE:
        return _LARGE
    ratio = problem.objective(problem.oracle()).ratio
    if ratio is None or ratio.line[0].is_diagonal:
        return _LARGE
    return max(2 * k, int(_LARGE * (WIDE / k) ** 2))


def _judged(problem: InMemory, resamples: Resamples, bag: Bag) -> NDArray[Any]:
    """Decisions (N, M) on every row by the rule that the resamples which left it out make together."""
    out = np.empty((problem.n_rows, problem.schema.n_outputs), dtype=code_type(problem.schema.width))
    for rows, which in zip(resamples.rows, resamples.left_out.T, strict=True):
        out[rows] = bag.decide(problem.take(rows), which)
    return out


@dataclass(frozen=True, eq=False)
class _Table:
    """Decisions of each candidate on rows that it has not seen, and what they are worth; the last one is argmax."""

    resamples: Resamples
    spread: Spread
    decisions: tuple[NDArray[Any], ...]  # C + 1, of shape (N, M)
    influence: FloatArray  # (C + 1, N): of each row on the value
    value: FloatArray  # (C + 1,)
    without: FloatArray  # (C + 1, B): the same without the rows of each block

    @classmethod
    def of(cls, problem: InMemory, resamples: Resamples, decisions: Sequence[NDArray[Any]]) -> _Table:
        counts = np.stack([_counts(problem, resamples, codes) for codes in decisions])
        whole = counts.sum(axis=1)
        without = _values(problem, whole[:, None] - counts)
        moves = np.stack([influence(problem, codes)[1] for codes in decisions])
        return cls(resamples, Spread.of(problem), tuple(decisions), moves, _values(problem, whole), without)

    @cached_property
    def error(self) -> FloatArray:
        """Standard errors (C + 1, C + 1) of the differences in value, paired by row."""
        pairs = [[self.spread.error(one - other) for other in self.influence] for one in self.influence]
        return np.asarray(pairs)

    def pick(self, values: FloatArray | None = None) -> int | None:
        """Return the recipe to use, None for argmax: the default unless another is better beyond noise.

        Parameters
        ----------
        values : ndarray of shape (C + 1,), optional
            By which to choose, those of all rows by default.
        """
        values = self.value if values is None else values
        ahead = np.where(values[:-1] - values[0] > _LEAVE * self.error[0, :-1], values[:-1], -np.inf)
        ahead[0] = values[0]
        best = int(np.argmax(ahead))
        return best if values[best] > values[-1] else None

    def nested(self) -> NDArray[Any]:
        """Return decisions (N, M), the rows of each block decided by what the other blocks choose."""
        out = self.decisions[-1].copy()
        for rows, values in zip(self.resamples.rows, self.without.T, strict=True):
            best = self.pick(values)
            if best is not None:
                out[rows] = self.decisions[best][rows]
        return out


def _counts(problem: InMemory, resamples: Resamples, decisions: NDArray[Any]) -> FloatArray:
    """What the rows of each block add to the metric of decisions, to be summed: (B, ...)."""
    rows, width = problem.source.rows, problem.schema.width
    assert rows.codes is not None
    if problem.aim.average == "instance":
        each, mass = problem.by_row(decisions)
        return np.stack([[each[own] @ mass[own], mass[own].sum()] for own in resamples.rows])
    return np.stack(
        [
            from_predictions(rows.codes[own], decisions[own], width, None if rows.weight is None else rows.weight[own])
            for own in resamples.rows
        ]
    )


def _values(problem: InMemory, counts: FloatArray) -> FloatArray:
    """The metric of summed counts (..., M, K, K), or (..., 2) row by row."""
    if problem.aim.average == "instance":
        return np.asarray(counts[..., 0] / np.maximum(counts[..., 1], np.finfo(float).tiny))
    return values_of_counts(problem, counts)


def _honest(problem: InMemory, table: _Table, best: int | None, seed: int) -> tuple[Gain, Estimate]:
    """Estimate the gain of choosing, and the value: the rows of each block are decided by what the others choose.

    Parameters
    ----------
    best : int or None
        What is chosen in the end; None for argmax, which gains nothing for sure.
    seed : int
        Of the bootstrap.
    """
    plain = table.decisions[-1]
    if best is None:
        value, rows, estimate, half = float(table.value[-1]), table.influence[-1], 0.0, 0.0
    else:
        decisions = table.nested()
        value, rows = influence(problem, decisions)
        estimate = value - float(table.value[-1])
        # Blocks that choose argmax would hide the error of what is chosen in the end.
        error = max(table.spread.error(rows - table.influence[-1]), float(table.error[best, -1]))
        shift = one_more_right(problem, decisions) - one_more_right(problem, plain) - estimate
        if not problem.aim.metric.smooth:
            error = max(error, bootstrap_error(problem, decisions, plain, seed=seed))
        half = table.spread.quantile * _WIDEN * float(np.hypot(error, shift))
    own = table.spread.quantile * _WIDEN * table.spread.error(rows)
    return Gain(estimate, estimate - half, estimate + half), Estimate(value, value - own, value + own)
