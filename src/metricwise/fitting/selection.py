"""Whether to trust a rule, and what it is worth on rows it has not seen.

Owns the judgement on rows that rules have not seen: recipes are fitted to resamples of the rows, the one rule that all
these fits make together is judged on the rows that they left out, and taken if it beats argmax there. The gain over
argmax is estimated without reusing what chose. Must not know solvers or user input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.confusion import expected_confusion, from_predictions
from ..inference import Candidate, Estimate, Gain
from ..inference.uncertainty import (
    STEEP,
    Errors,
    Spread,
    bootstrap_errors,
    influence,
    one_more_right,
    values_of_counts,
    values_of_samples,
    within,
)
from ..kernels import code_type, tally
from ..metrics.aim import Aim
from ..metrics.base import Linear
from ..metrics.naming import PerOutput
from ..oracles.problem import InMemory, Problem, Recipe, argmax_rule
from ..rules import Link, WeightedRule
from ..rules.link_fit import LINK_ROWS
from ..solvers import Solver
from .bagging import PARTS, ROUNDS, Bag, Resamples, dealt_size, draw, fit_bags, links_of
from .secondary_metrics import held_out
from .solving import WIDE, Settings, solve

__all__ = ["Choice", "candidates", "choose", "judging_rows", "noticing_copies"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
P = TypeVar("P", bound=Problem)

_LARGE = LINK_ROWS  # rows above which a sample of them decides, rare classes in it: the recipes hardly differ there
_ENOUGH = 8_000  # rows of that sample
_RARE = 500  # rows of a class, up to which rules of resamples are better than one of all rows
_FEWEST = 1_000  # rows that are left of a sample because of very many outputs
_FEW = 2  # rounds of resamples where they judge only, and the rule is fitted to all rows
_MANY = 64  # outputs, beyond which the spread is that between blocks of rows
_CELLS = 1 << 20  # of confusion matrices that are held at once
_WORK = 1 << 23  # numbers, of all resamples and recipes together, that rules are fitted to
_KEPT_GAIN = 0.9  # of the gain over argmax, that the best rule for a tangent has at least
_OF_NOISE = 1.0  # of the value over the root of the number of rows: what it may lose besides, which is luck
_ROUGH = 1e-4  # tolerance of solvers on resamples: what is left of the gap drowns in sampling error
_STEPS = 30  # of solvers on resamples, at most
# Four numbers behind the estimate of a gain; "What the constants are for" in docs/generalisation.md has the tables.
# Of the standard error: resamples share rows, and the model that is deployed is not that of any fold.
_WIDEN = 1.125
# Weight of the gain that recalibrated probabilities expect, at most, beside the one that labels show.
_BELIEF = 2 / 3
# Standard errors by which a metric with a kink must gain: the minimum of several recalls is seen through noise.
_CLEARLY = 0.75
# Of the optimism of the final rule on its own rows: see `_of_all_rows`.
_FITTED_TO_ALL = 0.2


@dataclass(frozen=True, eq=False)
class Choice:
    """What the rows that were left out say.

    Parameters
    ----------
    recipe : Recipe or None
        By which all rows are to be fitted or counted; None is plain argmax.
    name : str
        What it is, in words.
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
    name: str
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
                "Plain argmax: no rule is expected to gain on new rows, judged by rows that it was not fitted "
                f"to; the best recipe tried, {best.recipe}, had a gain of {best.gain:+.2g} with a standard "
                f"error of {best.std_error:.2g}."
            )
        gain = self.gain
        return (
            f"Recipe: {self.name}. Estimated gain over argmax on new rows: {gain.estimate:+.3g} (95 % interval "
            f"{gain.low:+.3g} to {gain.high:+.3g}), from the rows that resamples left out. The rule is made for new "
            "rows; on the given ones another may be slightly better."
        )


def candidates() -> list[Recipe]:
    """Return the recipes that are fitted.

    Labels are right where probabilities are wrong, probabilities have less noise where labels are few. On the sets of
    the study (docs/generalisation.md) and with misspecified models the mean of both rules did better on new rows than
    either, than labels and probabilities counted half and half, and than a choice between them.
    """
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
        That all recalibrate, or all do not.
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
        solver = replace(solver, tol=_ROUGH, max_iter=_STEPS)
    rows, whole = _judges(problem, len(recipes), rng)
    costly = rows.aim.metric.costly
    tangent = _tangent(rows, recipes[-1], solver) if costly else None
    n_rounds = 1 if costly and tangent is None else _rounds(rows, len(recipes))
    resamples = draw(rows, rng, n_rounds if whole else min(_FEW, n_rounds))
    rows = resamples.problem
    stage("recalibrating resamples")
    link = links_of(rows, resamples, recipes[0].recalibrate)
    stage("fitting rules to resamples")
    bags = fit_bags(rows if tangent is None else replace(rows, aim=tangent), resamples, recipes, solver, link)
    stage("judging rows that were left out")
    names = [str(recipe) for recipe in recipes]
    together = whole and not any(bag.mixtures for bag in bags)
    if together:  # else all rows are fitted once, by the better recipe
        bags, names = [Bag.merged(bags)], [" and ".join([names[0], *(recipe.confusion for recipe in recipes[1:])])]
    plain = rows.decide(argmax_rule(rows)).astype(code_type(rows.schema.decision_width))
    table = _Table.of(rows, resamples, bags, plain)
    recorded = held_out(rows, table.decisions[:-1])
    tried = tuple(
        Candidate(
            name,
            float(table.value[c]),
            float(table.value[c] - table.value[-1]),
            float(table.error[c]),
            recorded={metric: values[c] for metric, values in recorded.items()},
        )
        for c, name in enumerate(names)
    )
    best = table.pick()
    gain, value = _honest(rows, table, best, seed)
    if gain is None:
        return Choice(None, "argmax", None, Gain(0.0, 0.0, 0.0), value, tried, rows)
    recipe = Recipe("labels", recipes[0].recalibrate) if together else recipes[best]
    rule = bags[best].rule(rows.schema.n_decisions) if together else None
    return Choice(recipe, names[best], rule, gain, value, tried, rows)


def _judges(problem: Problem, n_recipes: int, rng: np.random.Generator) -> tuple[InMemory, bool]:
    """Return the rows that judge, in memory, copies noticed; and whether they make the rule as well.

    They do where they are all rows, or hold all that there are of a rare class, whose few rows are what the rule varies
    with. Else some rows are enough, and of very many outputs that are averaged by macro some of those: what is asked is
    whether the rule does better than argmax at all.
    """
    rows = problem.sample(_LARGE, 0)  # what the link is fitted to as well
    most = _WORK // (PARTS * n_recipes)  # numbers
    per_row = max(rows.source.rows.proba.size // max(rows.n_rows, 1), 1)
    least = _FEWEST if problem.aim.average == "macro" else _FEWEST // 10  # outputs that are pooled have rows in common
    rows = rows.sample(min(_enough(problem), max(most // per_row, least)), int(rng.integers(1 << 31)))
    whole = rows.n_rows == problem.n_rows or _holds_the_rare(problem, rows)
    n_outputs = max(most * problem.schema.n_outputs // (_FEW * max(rows.source.rows.proba.size, 1)), 1)
    if problem.aim.average == "macro" and n_outputs < problem.schema.n_outputs:
        chosen = np.flatnonzero(~problem.keeps_argmax & (problem.aim.output_weight > 0))
        if n_outputs < len(chosen):
            chosen = np.sort(rng.choice(chosen, n_outputs, replace=False))
        rows, whole = rows.of_outputs(chosen).compact(), False
    return noticing_copies(rows), whole


def _tangent(problem: InMemory, recipe: Recipe, solver: Solver | Settings) -> Aim | None:
    """Return the aim with a metric whose values are calls replaced by its tangent at the best rule of all rows.

    Resamples are fitted to that, and none of it is a call. A rule that is best for a smooth metric is so for its
    tangent too. None where the best rule for the tangent has little of the gain, as with a kink.
    """
    oracle = problem.oracle(recipe.confusion, problem.link(recipe.recalibrate))
    objective = problem.objective(oracle)
    grouping = objective.grouping
    best = solve(problem, recipe, solver, oracle.link).confusion
    slope = objective.gradient(grouping.pool(best))
    metrics = [
        Linear(slope[g, :k, :k] if g >= 0 else np.eye(k))
        for g, k in zip(grouping.group.tolist(), problem.schema.n_decisions.tolist(), strict=True)
    ]
    metric = PerOutput(tuple(metrics)) if grouping.n_groups > 1 else metrics[int(np.argmax(grouping.group == 0))]
    average = "micro" if problem.aim.average == "instance" else problem.aim.average
    tangent = replace(problem.aim, metric=metric, average=average)
    again = solve(replace(problem, aim=tangent), recipe, solver, oracle.link).confusion
    plain = oracle.confusions([argmax_rule(problem).loss], linked=False)[0]
    top, reached, base = (objective.value(C) for C in (best, again, plain))
    noise = _OF_NOISE * abs(top) / problem.n_rows**0.5
    return tangent if top - reached <= max((1 - _KEPT_GAIN) * (top - base), noise) else None


def judging_rows(problem: Problem) -> tuple[InMemory, bool]:
    """Return rows of a problem, in memory, copies noticed; and whether they are all of its rows."""
    rows = problem.sample(_LARGE, 0)
    return noticing_copies(rows), rows.n_rows == problem.n_rows


def noticing_copies(problem: P) -> P:
    """Return the problem in which exact copies of rows belong together, if there are any.

    Whether there are is what some rows of very many say (:meth:`metricwise.core.rows.Rows.copies`); then it goes for
    all.
    """
    rows = problem.sample(_LARGE, 0).source.rows
    if rows.cluster is not None or rows.repeats is not None or rows.copies() is None:
        return problem
    return replace(problem, source=problem.source.map(lambda some: replace(some, cluster=some.content_codes())))


def _holds_the_rare(problem: Problem, sample: InMemory) -> bool:
    """Whether a single output has rare classes, and a sample all of their rows."""
    if problem.schema.n_outputs > 1:
        return False
    rows, shown = sample.source.rows, problem.source.class_rows
    assert rows.codes is not None
    drawn = tally(rows.codes, None if rows.weight is None else (rows.weight > 0).astype(np.float64), shown.shape[1])
    rare = (shown > 0) & (shown <= _RARE)
    return bool(rare.any() and (drawn >= shown)[rare].all())


def _rounds(problem: InMemory, n_recipes: int) -> int:
    """Return how many rounds of resamples are worth their time."""
    return int(np.clip(_WORK // (PARTS * n_recipes * max(dealt_size(problem), 1)), 1, ROUNDS))


def _enough(problem: Problem) -> int:
    """Rows to choose by: fewer where a row weighs very many classes cell by cell, and costs as the square of them."""
    k = problem.schema.width
    many = _LARGE if problem.n_rows <= _LARGE else _ENOUGH
    if k <= WIDE:
        return many
    ratio = problem.objective(problem.oracle()).ratio
    if ratio is None or ratio.line[0].is_diagonal:
        return many
    return max(2 * k, int(_LARGE * (WIDE / k) ** 2))


def _judged(problem: InMemory, resamples: Resamples, bag: Bag) -> NDArray[Any]:
    """Decisions (N, M) on every row by the rule that the resamples which left it out make together."""
    out = np.empty((problem.n_rows, problem.schema.n_outputs), dtype=code_type(problem.schema.decision_width))
    for rows, which in zip(resamples.rows, resamples.left_out.T, strict=True):
        out[rows] = bag.decide(problem.take(rows), which)
    return out


@dataclass(frozen=True, eq=False)
class _Table:
    """Decisions of each candidate on rows that it has not seen, and what they are worth; the last one is argmax."""

    resamples: Resamples
    bags: tuple[Bag, ...]  # C
    spread: Spread
    decisions: tuple[NDArray[Any], ...]  # C + 1, of shape (N, M)
    influence: FloatArray  # (C + 1, N): of each row on the value
    value: FloatArray  # (C + 1,)
    without: FloatArray  # (C + 1, B): the same without the rows of each block; (C + 1, 0) where nobody asks

    @classmethod
    def of(cls, problem: InMemory, resamples: Resamples, bags: Sequence[Bag], plain: NDArray[Any]) -> _Table:
        decisions = (*(_judged(problem, resamples, bag) for bag in bags), plain)
        by_block = len(bags) > 1 or _by_block(problem)
        judged = [_value_and_without(problem, resamples, codes, by_block) for codes in decisions]
        value, without = np.array([value for value, _ in judged]), np.stack([own for _, own in judged])
        moves = np.stack([_moves(problem, codes, *own) for codes, own in zip(decisions, judged, strict=True)])
        return cls(resamples, tuple(bags), _spread(problem, resamples), decisions, moves, value, without)

    @cached_property
    def error(self) -> FloatArray:
        """Standard errors (C,) of the differences in value to argmax, paired by row."""
        return np.array([self.spread.error(own - self.influence[-1]) for own in self.influence[:-1]])

    def pick(self, values: FloatArray | None = None) -> int:
        """Return the best candidate but argmax.

        Parameters
        ----------
        values : ndarray of shape (C + 1,), optional
            By which to choose, those of all rows by default.
        """
        return int(np.argmax((self.value if values is None else values)[:-1]))

    def nested(self) -> NDArray[Any]:
        """Return decisions (N, M), the rows of each block decided by the candidate that the other blocks choose."""
        if len(self.bags) == 1:
            return self.decisions[0]
        out = self.decisions[-1].copy()
        for rows, values in zip(self.resamples.rows, self.without.T, strict=True):
            out[rows] = self.decisions[self.pick(values)][rows]
        return out


def _by_block(problem: InMemory) -> bool:
    """Whether the spread over rows is taken block by block: of very many outputs, gradients of each cost too much."""
    return problem.schema.n_outputs > _MANY


def _spread(problem: InMemory, resamples: Resamples) -> Spread:
    return Spread(None, None, resamples.left_out.shape[1]) if _by_block(problem) else Spread.of(problem)


def _moves(problem: InMemory, decisions: NDArray[Any], value: float, without: FloatArray) -> FloatArray:
    """How far each row, (N,), or each block of rows, (B,), moves the metric of decisions."""
    if not _by_block(problem):
        return influence(problem, decisions)[1]
    gone = value - without  # the jackknife
    return np.asarray((gone - gone.mean()) * np.sqrt((len(gone) - 1) / len(gone)))


def _value_and_without(
    problem: InMemory, resamples: Resamples, decisions: NDArray[Any], by_block: bool = True
) -> tuple[float, FloatArray]:
    """The metric of decisions, and without the rows of each block, (B,); (0,) unless it is wanted."""
    whole = _counts(problem, decisions, slice(None))
    together = max(1, _CELLS // whole.size)
    values = [_values(problem, whole[None])]
    for start in range(0, len(resamples.rows) if by_block else 0, together):
        blocks = resamples.rows[start : start + together]
        values.append(_values(problem, whole - np.stack([_counts(problem, decisions, rows) for rows in blocks])))
    found = np.concatenate(values)
    return float(found[0]), found[1:]


def _counts(problem: InMemory, decisions: NDArray[Any], rows: Any) -> FloatArray:
    """What some rows add to the metric of decisions, to be summed: (M, K, K), or two numbers row by row."""
    some, width = problem.source.rows, problem.schema.decision_width
    assert some.codes is not None
    if problem.aim.average == "instance":
        each, mass = problem.by_row(decisions)
        return np.array([each[rows] @ mass[rows], mass[rows].sum()])
    return from_predictions(
        some.codes[rows], decisions[rows], width, None if some.weight is None else some.weight[rows]
    )


def _values(problem: InMemory, counts: FloatArray) -> FloatArray:
    """The metric of summed counts (T, M, K, K), or (T, 2) row by row."""
    if problem.aim.average == "instance":
        return np.asarray(counts[..., 0] / np.maximum(counts[..., 1], np.finfo(float).tiny))
    if _by_block(problem):  # these say how far samples vary, and so do the shares of their classes
        return values_of_samples(problem, counts)
    return values_of_counts(problem, counts)


def _honest(problem: InMemory, table: _Table, best: int, seed: int) -> tuple[Gain | None, Estimate]:
    """Estimate the gain of the best candidate, None where there is none to be had, and the value of what is chosen.

    The rows of each block are decided by what the other blocks choose.

    Parameters
    ----------
    best : int
        What is chosen by all blocks.
    seed : int
        Of the bootstrap.
    """
    decisions, plain = table.nested(), table.decisions[-1]
    if decisions is table.decisions[best]:
        value, rows = float(table.value[best]), table.influence[best]
    else:
        value, without = _value_and_without(problem, table.resamples, decisions)
        rows = _moves(problem, decisions, value, without)
    spread, unseen, base = table.spread, 0.0, float(table.value[-1])
    errors = Errors(*map(spread.error, (rows, table.influence[-1], rows - table.influence[-1])))
    errors = errors._replace(difference=max(errors.difference, float(table.error[best])))
    low, high = problem.aim.metric.range
    if not problem.aim.metric.smooth:
        drawn = bootstrap_errors(problem, decisions, plain, seed=seed)
        errors = errors._replace(difference=max(errors.difference, drawn.difference))
        unseen = _variation(problem, table.bags[best])
    elif max(errors) > STEEP * (high - low) and not _by_block(problem):
        errors = bootstrap_errors(problem, decisions, plain, seed=seed)

    correction = _of_all_rows(problem, table.bags[best], value)
    estimate, error = value + correction - unseen - base, errors.difference
    least = 0.0 if problem.aim.metric.smooth else _CLEARLY * error
    believed = _believed(problem, table, decisions, table.bags[best])
    if believed is not None:
        # Both have their say as long as they agree to what the 95 % interval allows: beyond it the model is wrong.
        apart = abs(believed - estimate)
        share = min(_BELIEF, (spread.quantile * error / apart) ** 2) if apart > 0 else _BELIEF
        estimate, error = estimate + share * (believed - estimate), (1 - share) * error
    if estimate <= least:
        return None, Estimate(*spread.limits(base, errors.second, low, high))
    shift = one_more_right(problem, decisions) - one_more_right(problem, plain) - (value - base)
    # What is handed out promises something, however much of it may be luck.
    promised = estimate**2 / (estimate + _luck(estimate - least, error))
    half = spread.quantile * _WIDEN * math.hypot(errors.difference, shift, unseen)
    gain = within(promised, half, low - high, high - low)
    value += correction - unseen - (estimate - promised)
    return Gain(*gain), Estimate(*spread.limits(value, _WIDEN * errors.first, low, high))


def _of_all_rows(problem: InMemory, bag: Bag, value: float) -> float:
    """How much better the rule of all resamples is on new rows than those that judge, whose value is given.

    What a fit loses on new rows falls as one over its rows, and is as much as it seems to gain on its own ones. Rules
    that judge are fitted to two thirds of the rows: if the final rule loses d, they lose 3/2 d, and the value of the
    final one on its own rows is 5/2 d above theirs. They are d/2 behind, a fifth of that.
    """
    if bag.mixtures:
        return 0.0
    decisions = bag.decide(problem, np.ones(bag.n_resamples, dtype=bool))
    flattered = float(_values(problem, _counts(problem, decisions, slice(None))[None])[0])
    return _FITTED_TO_ALL * max(flattered - value, 0.0)


def _believed(problem: InMemory, table: _Table, decisions: NDArray[Any], bag: Bag) -> float | None:
    """The gain of decisions over argmax as probabilities have it, recalibrated by the resamples that left a row out.

    Of few rows it says more than labels do, which are noise for the most part, and it is wrong where the model is. None
    where probabilities cannot be trusted, because nothing recalibrates them, or say too much: of the least of several
    recalls they do not know how unequal they really are.
    """
    metric, aim = problem.aim.metric, problem.aim
    recalibrated = bag.link is not None and problem.prior is None and not bag.mixtures
    if not (recalibrated and metric.smooth) or aim.average == "instance" or _by_block(problem):
        return None
    rows = problem.source.rows
    assert rows.codes is not None
    seen = None if rows.codes.min(initial=0) >= 0 else rows.codes >= 0
    blocks = [np.empty(block.shape) for block in rows.proba.blocks]
    for own, which in zip(table.resamples.rows, table.resamples.left_out.T, strict=True):
        link = bag.mean_link(which)
        assert link is not None
        for block, part in zip(blocks, link.view(rows.proba.take(own)).recalibrated().blocks, strict=True):
            block[own] = part
    proba = replace(rows.proba, blocks=tuple(blocks), link=None)
    width, n_extra = problem.schema.decision_width, problem.schema.n_extra
    counts = [expected_confusion(proba, codes, rows.weight, seen, width) for codes in (decisions, table.decisions[-1])]
    value, base = values_of_counts(problem, np.pad(np.stack(counts), [(0, 0), (0, 0), (0, n_extra), (0, 0)]))
    return float(value - base)


def _luck(estimate: float, error: float) -> float:
    """By how much a gain is overestimated on average, because it would not be told of were it below the gate.

    Parameters
    ----------
    estimate : float
        Above the gate.
    error : float
    """
    if error <= 0:
        return 0.0
    at = estimate / error
    density, below = math.exp(-at * at / 2) / math.sqrt(2 * math.pi), 0.5 * math.erfc(-at / math.sqrt(2))
    return error * density / below


def _variation(problem: InMemory, bag: Bag) -> float:
    """What a rule loses of a metric with a kink because it varies with the rows that it is fitted to.

    The rows that are left out are drawn with the others: where the rows at hand favour a class, rules adapt to it and
    seem right on them all, and what should be equal, as recalls are for the least of them, seems to be. Resamples show
    how far it is not: their rules are judged by all rows. They vary about the rule of all rows by a root of two less
    than that varies about the best one.
    """
    masks = [np.ones(bag.n_resamples, dtype=bool), *np.eye(bag.n_resamples, dtype=bool)]
    values = _values(problem, np.stack([_counts(problem, bag.decide(problem, mask), slice(None)) for mask in masks]))
    return max(0.0, float(np.sqrt(2.0) * (values[0] - np.mean(values[1:]))))
