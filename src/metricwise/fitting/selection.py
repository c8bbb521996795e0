"""Chooses between argmax and a fitted rule, and estimates the gain of the choice on new rows.

Rules are fitted to resamples of the rows; their average is judged on the rows that the resamples left out, and taken
if it beats argmax there. The gain is estimated without the rows that chose. Must not know solvers or user input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..core.confusion import expected_confusion, from_predictions
from ..core.matrices import with_extra
from ..core.probabilities import Probabilities
from ..data.sources.memory import MemorySource
from ..inference.decisions import Decisions
from ..inference.judge import MAX_DELTA_ERROR, RESAMPLES, Judge, Scored
from ..inference.results import Candidate, Estimate, Gain
from ..inference.spread import Errors, Spread, clip_interval
from ..kernels import code_type, tally
from ..metrics.aim import AveragedMetric
from ..metrics.base import Linear
from ..metrics.naming import PerOutput
from ..oracles.problem import FitStrategy, InMemory, Problem, argmax_rule
from ..rules.calibration import TemperatureScaling
from ..rules.weighted import WeightedRule
from ..solvers.base import Solver
from .bagging import (
    PARTS,
    ROUNDS,
    Bag,
    BaggedRule,
    Resamples,
    dealt_size,
    decide_left_out,
    draw,
    fit_bags,
    links_of,
)
from .judging_sample import FEW_CLASS_ROWS, MANY_CLASSES, draw_judging_sample
from .samples import MAX_ROWS, with_copies_clustered
from .secondary_metrics import held_out
from .solving import WIDE, Settings, solve

__all__ = ["Selection", "describe_choice", "judge_bags", "n_rounds_for", "sample_rows", "select"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_SAMPLE_ROWS = 8_000  # of the sample that chooses if there are more than MAX_ROWS: candidates hardly differ there
_MIN_KEPT_SHARE = 0.95  # of effective rows, from which on a sample serves as all rows
_RARE_CLASS_ROWS = 500  # up to which rules of resamples are better than one of all rows
_MIN_SAMPLE_ROWS = 1_000  # of very many outputs
_JUDGING_ROUNDS = 2  # of resamples that only judge, if the rule is fitted to all rows
_MAX_DELTA_OUTPUTS = 64  # beyond which standard errors are those of the jackknife over blocks of rows
_MAX_CELLS = 1 << 20  # of confusion matrices that are held at once
_MAX_FITTED = 1 << 23  # probabilities, of all resamples and candidates together, that rules are fitted to
_MIN_TANGENT_GAIN = 0.9  # of the gain over argmax, that the best rule for a tangent must have
_TANGENT_NOISE = 1.0  # of the value over the root of the number of rows: what it may lose besides
_MAX_RECALIBRATED = 1 << 22  # probabilities that are recalibrated at once; of more, a block of rows
_RESAMPLE_TOL = 1e-4  # of solvers on resamples: the remaining gap is small beside the sampling error
_RESAMPLE_MAX_ITER = 30
_SLOW_RESAMPLES = 40  # of the bootstrap for a metric whose values are calls: the standard error is known to a ninth
# The four constants below define the estimate of a gain; "What the constants are for" in docs/generalisation.md shows
# what is lost without each of them.
_WIDEN = 1.125  # factor of standard errors: resamples share rows, and the deployed model is not that of any fold
_MAX_CALIBRATED_WEIGHT = 2 / 3  # weight of the gain expected by recalibrated probabilities, beside that by labels
_MIN_KINK_ERRORS = 0.75  # standard errors that a metric with a kink must gain: minima of recalls are noisy
_OPTIMISM_SHARE = 0.2  # share of the optimism of the final rule on its own rows: see `_full_fit_correction`


@dataclass(frozen=True, eq=False)
class Selection:
    """What the rows that were left out say.

    Parameters
    ----------
    recipe : FitStrategy or None
        By which all rows are to be fitted or counted; None is argmax.
    name : str
    rule : tuple of WeightedRule and (TemperatureScaling or None), or None
        The average of the rules of resamples, over codes; None if all rows are to be fitted instead.
    gain : Gain
        Over argmax, each block of rows judged with what the other blocks chose.
    value : Estimate
        Of the metric, likewise.
    candidates : tuple of Candidate
    judges : InMemory or None
        The rows that judged; None where they are no longer held.
    """

    recipe: FitStrategy | None
    name: str
    rule: tuple[WeightedRule, TemperatureScaling | None] | None
    gain: Gain
    value: Estimate
    candidates: tuple[Candidate, ...]
    judges: InMemory | None

    def describe(self) -> str:
        """Return a sentence about what was chosen and why."""
        sentence = describe_choice(self.name, None if self.recipe is None else self.gain, self.candidates)
        return sentence if self.recipe is not None else sentence + self._limit_of_evidence

    @property
    def _limit_of_evidence(self) -> str:
        """Say why rows left out do not tell rules apart for a minimum over very many classes; empty for others."""
        assert self.judges is not None
        k, rows = self.judges.schema.width, self.judges.n_rows
        if self.judges.aim.metric.traits.smooth or k <= MANY_CLASSES or rows >= FEW_CLASS_ROWS * k:
            return ""
        return (
            f" The smallest of {k:,} recalls, each of about {max(round(rows / k), 1)} rows that judge, differs between "
            "samples by more than rules differ: pass more rows, or choose a mean of recalls, such as 'q_mean'."
        )


def describe_choice(name: str, gain: Gain | None, candidates: Sequence[Candidate], baseline: str = "Argmax") -> str:
    """Return a sentence about the candidate that was chosen and why; `gain` is None if the baseline is kept."""
    if gain is None:
        best = max(candidates, key=lambda candidate: candidate.gain)
        return (
            f"{baseline} is kept: no candidate is expected to improve the metric on new data (best: "
            f"{best.recipe}, gain {best.gain:+.2g} +- {best.std_error:.2g})."
        )
    return (
        f"Candidate: {name}. Estimated gain over {baseline[0].lower()}{baseline[1:]} on new data: "
        f"{gain.estimate:+.3g} (95 % interval "
        f"{gain.low:+.3g} to {gain.high:+.3g}). The rule is chosen for new data; another may be slightly better on "
        "the given rows."
    )


def select(
    problem: Problem,
    recipes: Sequence[FitStrategy],
    solver: Solver | Settings,
    *,
    seed: int = 0,
    stage: Callable[[str], None] = lambda _: None,
) -> Selection:
    """Choose between argmax and the rule of recipes, which share the link, by rows that resamples leave out.

    Parameters
    ----------
    problem : Problem
        With labels.
    recipes : sequence of FitStrategy
    solver : Solver or Settings
    seed : int
        Of the resamples.
    stage : callable, optional
        Called with the name of each stage.
    """
    rng = np.random.default_rng(seed)
    if isinstance(solver, Settings) and solver.tol is None:
        solver = replace(solver, tol=_RESAMPLE_TOL, max_iter=_RESAMPLE_MAX_ITER)
    judging = draw_judging_sample(problem, seed) if recipes[0].recalibrate else None
    link_of_others = None if judging is None else judging[1]
    rows, whole = sample_rows(problem, len(recipes), rng) if judging is None else (judging[0], False)
    del judging  # whose rows are put in order below
    slow = rows.aim.metric.traits.slow
    tangent = _tangent(rows, recipes[-1], solver) if slow else None
    n_rounds = 1 if slow and tangent is None else n_rounds_for(rows, len(recipes))
    resamples = draw(rows, rng, n_rounds if whole else min(_JUDGING_ROUNDS, n_rounds))
    rows = resamples.problem
    stage("recalibrating resamples")
    if link_of_others is None:
        link = links_of(rows, resamples, recipes[0].recalibrate)
    else:
        link = link_of_others.of_outputs(np.zeros(resamples.n_resamples, dtype=np.intp))
    stage("fitting rules to resamples")
    bags = fit_bags(rows if tangent is None else replace(rows, aim=tangent), resamples, recipes, solver, link)
    stage("evaluating rules on rows left out")
    names = [str(recipe) for recipe in recipes]
    together = whole and not any(bag.mixtures for bag in bags)
    if together:  # else all rows are fitted once, by the better recipe
        merged, name = BaggedRule.merged(bags), " and ".join([names[0], *(recipe.confusion for recipe in recipes[1:])])
        by_labels = [r for r, recipe in enumerate(recipes) if recipe.confusion == "labels"]
        if len(bags) > 1 and _exceeds_calibration(rows):
            bags, names = [merged, *(bags[r] for r in by_labels)], [name, *(names[r] for r in by_labels)]
        else:
            bags, names = [merged], [name]
    best, gain, value, candidates = judge_bags(resamples, bags, names, seed)
    if gain is None:
        return Selection(None, "argmax", None, Gain(0.0, 0.0, 0.0), value, candidates, rows)
    recipe = FitStrategy("labels", recipes[0].recalibrate) if together else recipes[best]
    rule = bags[best].rule(rows.schema.n_decisions) if together else None
    return Selection(recipe, names[best], rule, gain, value, candidates, rows)


def judge_bags(
    resamples: Resamples, bags: Sequence[Bag], names: Sequence[str], seed: int
) -> tuple[int, Gain | None, Estimate, tuple[Candidate, ...]]:
    """Judge bags on the rows that their resamples left out.

    Returns
    -------
    best : int
        The best of them.
    gain : Gain or None
        Over argmax; None if none is expected.
    value : Estimate
        Of what is chosen, on new rows.
    candidates : tuple of Candidate
    """
    rows = resamples.problem
    scores = _OutOfBagScores.of(rows, resamples, bags)
    recorded = held_out(rows, scores.codes[:-1])
    candidates = tuple(
        Candidate(
            name,
            scores.values[c],
            scores.values[c] - scores.values[-1],
            float(scores.errors[c]),
            recorded={metric: values[c] for metric, values in recorded.items()},
        )
        for c, name in enumerate(names)
    )
    return scores.best, *estimate_gain(scores, seed), candidates


def _exceeds_calibration(problem: InMemory) -> bool:
    """Whether rows are ranked by numbers that a calibrated probability hardly expresses: scores, or extreme logits.

    A temperature and a bias need not fit these, so that rules by labels alone are a candidate beside the usual ones.
    """
    return problem.schema.input.is_scores or problem.source.rows.proba.exceeds(-math.log(TemperatureScaling.floor))


def sample_rows(problem: Problem, n_recipes: int, rng: np.random.Generator) -> tuple[InMemory, bool]:
    """Return the rows that choose, in memory, copies clustered; and whether the rule is made of them as well.

    It is if they are all rows, or have nearly all of the weight, or hold all rows of a rare class, on which the rule
    depends most. Otherwise a sample is enough, and of very many outputs that are averaged by macro some of those: the
    question is whether the rule does better than argmax at all.
    """
    rows = problem.sample(MAX_ROWS, 0)  # what the link is fitted to as well
    complete = rows.n_rows == problem.n_rows or _has_all_weight(problem, rows)
    max_size = _MAX_FITTED // (PARTS * n_recipes)
    size, n_rows = rows.source.rows.proba.size, max(rows.n_rows, 1)
    by_macro = problem.aim.average == "macro"
    least = _MIN_SAMPLE_ROWS if by_macro else _MIN_SAMPLE_ROWS // 10  # pooled outputs have rows in common
    n_wanted = min(_max_rows(problem, complete), max(max_size // max(size // n_rows, 1), least))
    rows = rows.sample(n_wanted, int(rng.integers(1 << 31)))
    whole = (complete and rows.n_rows == n_rows) or _has_all_rare(problem, rows)
    n_outputs = max(max_size * problem.schema.n_outputs // (_JUDGING_ROUNDS * max(rows.source.rows.proba.size, 1)), 1)
    if by_macro and n_outputs < problem.schema.n_outputs:
        chosen = np.flatnonzero(~problem.keeps_argmax & (problem.aim.output_weight > 0))
        if n_outputs < len(chosen):
            chosen = np.sort(rng.choice(chosen, n_outputs, replace=False))
        rows, whole = rows.of_outputs(chosen).compact(), False
    return with_copies_clustered(rows), whole


def _tangent(problem: InMemory, recipe: FitStrategy, solver: Solver | Settings) -> AveragedMetric | None:
    """Return the aim with a slow metric replaced by its tangent at the best rule of all rows, for resamples.

    The best rule for a smooth metric is the best for its tangent too. None if the best rule for the tangent has little
    of the gain, as with a kink.
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
    argmax = oracle.confusions([argmax_rule(problem).loss], linked=False)[0]
    top, reached, base = (objective.value(C) for C in (best, again, argmax))
    noise = _TANGENT_NOISE * abs(top) / problem.n_rows**0.5
    return tangent if top - reached <= max((1 - _MIN_TANGENT_GAIN) * (top - base), noise) else None


def _has_all_weight(problem: Problem, sample: InMemory) -> bool:
    """Whether the rows that a sample leaves out, such as those of many half-lives ago, hardly weigh anything."""
    source = problem.source
    if problem.dependence is None or not problem.dependence.by_weight or not isinstance(source, MemorySource):
        return False
    return sample.source.rows.n_effective >= _MIN_KEPT_SHARE * source.rows.n_effective


def _has_all_rare(problem: Problem, sample: InMemory) -> bool:
    """Whether a single output has rare classes, and a sample all of their rows."""
    if problem.schema.n_outputs > 1:
        return False
    rows, class_rows = sample.source.rows, problem.source.class_rows
    assert rows.codes is not None
    counted = None if rows.weight is None else (rows.weight > 0).astype(np.float64)
    drawn = tally(rows.codes, counted, class_rows.shape[1])
    rare = (class_rows > 0) & (class_rows <= _RARE_CLASS_ROWS)
    return bool(rare.any() and (drawn >= class_rows)[rare].all())


def n_rounds_for(problem: InMemory, n_recipes: int) -> int:
    """Return how many rounds of resamples are worth their time."""
    return int(np.clip(_MAX_FITTED // (PARTS * n_recipes * max(dealt_size(problem), 1)), 1, ROUNDS))


def _max_rows(problem: Problem, complete: bool = True) -> int:
    """Return how many rows choose: fewer for full losses of very many classes, whose cost grows with their square."""
    k = problem.schema.width
    n_rows = MAX_ROWS if complete else _SAMPLE_ROWS
    if k <= WIDE:
        return n_rows
    ratio = problem.objective(problem.oracle()).ratio
    if ratio is None or ratio.line[0].is_diagonal:
        return n_rows
    return max(2 * k, int(MAX_ROWS * (WIDE / k) ** 2))


# ------------------------------------------------------------------------------------------- rows that were left out


class _BlockJudge(Judge):
    """Judges by the jackknife over blocks of rows: gradients of very many outputs cost too much."""

    def __init__(self, problem: InMemory, blocks: Sequence[IntArray]) -> None:
        super().__init__(problem)
        self.blocks = blocks

    @cached_property
    def spread(self) -> Spread:
        """Sampling variation of the blocks."""
        return Spread(None, None, len(self.blocks))

    def score(self, decisions: Decisions, *, unshown: bool = False) -> Scored:
        """Return the metric of decisions and the influence of each block, (B,)."""
        value, *without = _values_without_blocks(self, decisions.drawn, self.blocks)
        change = value - np.array(without)
        influence = (change - change.mean()) * np.sqrt((len(change) - 1) / len(change))
        return Scored(value, influence, float(len(change)), np.zeros(0))


def _values_without_blocks(judge: Judge, codes: NDArray[Any], blocks: Sequence[IntArray]) -> list[float]:
    """Return the metric of decisions, and that without the rows of each block, B + 1 numbers."""
    counts = _counts(judge.problem, codes, slice(None))
    step, values = max(1, _MAX_CELLS // counts.size), [*_values(judge, counts[None]).tolist()]
    for start in range(0, len(blocks), step):
        removed = [_counts(judge.problem, codes, rows) for rows in blocks[start : start + step]]
        values += _values(judge, counts - np.stack(removed)).tolist()
    return values


def _counts(problem: InMemory, codes: NDArray[Any], which: Any) -> FloatArray:
    """Return the counts (M, K, K) of decisions about some rows; for the instance-average, value and mass of rows."""
    rows = problem.source.rows
    assert rows.codes is not None
    if problem.aim.average == "instance":
        values, mass = problem.by_row(codes)
        return np.array([values[which] @ mass[which], mass[which].sum()])
    weight = None if rows.weight is None else rows.weight[which]
    return from_predictions(rows.codes[which], codes[which], problem.schema.decision_width, weight)


def _values(judge: Judge, counts: FloatArray) -> FloatArray:
    """Return the metric of summed counts (T, M, K, K), or (T, 2) for the instance-average."""
    if judge.by_row:
        return np.asarray(counts[..., 0] / np.maximum(counts[..., 1], np.finfo(float).tiny))
    if isinstance(judge, _BlockJudge):  # which measures how samples vary, with their class priors
        return judge.values_of_samples(counts)
    return judge.values_of_counts(counts)


@dataclass(frozen=True, eq=False)
class _OutOfBagScores:
    """Decisions of C candidates about rows that they were not fitted to, and their scores; argmax is the last."""

    judge: Judge
    resamples: Resamples
    bags: Sequence[Bag]
    codes: tuple[NDArray[Any], ...]
    scores: tuple[Scored, ...]

    @classmethod
    def of(cls, problem: InMemory, resamples: Resamples, bags: Sequence[Bag]) -> _OutOfBagScores:
        by_block = problem.schema.n_outputs > _MAX_DELTA_OUTPUTS
        judge = _BlockJudge(problem, resamples.rows) if by_block else Judge(problem)
        argmax = problem.decide_argmax().astype(code_type(problem.schema.decision_width))
        codes = (*(decide_left_out(problem, resamples, bag) for bag in bags), argmax)
        return cls(judge, resamples, bags, codes, tuple(judge.score(Decisions.of_codes(c)) for c in codes))

    @property
    def values(self) -> list[float]:
        """Values of all candidates and of argmax."""
        return [score.value for score in self.scores]

    @property
    def best(self) -> int:
        """The best candidate, argmax excluded."""
        return int(np.argmax(self.values[:-1]))

    @cached_property
    def errors(self) -> FloatArray:
        """Standard errors (C,) of the differences in value to argmax, paired by row."""
        argmax = self.scores[-1].influence
        return np.array([self.judge.spread.error(score.influence - argmax) for score in self.scores[:-1]])

    def nested(self) -> tuple[NDArray[Any], Scored]:
        """Return decisions (N, M), the rows of each block by the candidate that the other blocks choose; and scores."""
        if len(self.bags) == 1:
            return self.codes[0], self.scores[0]
        blocks = self.resamples.rows
        without = np.array([_values_without_blocks(self.judge, codes, blocks)[1:] for codes in self.codes[:-1]])
        nested = choose_by_block(self.codes[:-1], blocks, without.argmax(axis=0))
        return nested, self.judge.score(Decisions.of_codes(nested))


def choose_by_block(codes: Sequence[NDArray[Any]], blocks: Sequence[IntArray], chosen: IntArray) -> NDArray[Any]:
    """Return decisions (N, M), those of the rows of each block by the candidate chosen for it."""
    out = codes[0].copy()
    for rows, candidate in zip(blocks, chosen, strict=True):
        out[rows] = codes[candidate][rows]
    return out


# ------------------------------------------------------------------------------------------------------------ the gain


def estimate_gain(table: _OutOfBagScores, seed: int) -> tuple[Gain | None, Estimate]:
    """Estimate the gain of the best candidate, None if there is none, and the value of what is chosen.

    The rows of each block are decided by what the other blocks choose; `seed` is that of the bootstrap.
    """
    judge, best, metric = table.judge, table.best, table.judge.problem.aim.metric
    codes, score = table.nested()
    decisions, argmax = Decisions.of_codes(codes), Decisions.of_codes(table.codes[-1])
    value, base, spread, variation = score.value, table.scores[-1].value, judge.spread, 0.0
    influences = (score.influence, table.scores[-1].influence, score.influence - table.scores[-1].influence)
    errors = Errors(*map(spread.error, influences))
    errors = errors._replace(difference=max(errors.difference, float(table.errors[best])))
    low, high = metric.range
    n_resamples = _SLOW_RESAMPLES if metric.traits.slow else RESAMPLES
    if not metric.traits.smooth:
        resampled = _row_judge(judge).bootstrap((decisions, argmax), n=n_resamples, seed=seed)
        errors = errors._replace(difference=max(errors.difference, resampled.difference))
        variation = _variation(judge, table.bags[best])
    elif max(errors) > MAX_DELTA_ERROR * (high - low) and not isinstance(judge, _BlockJudge):
        errors = judge.bootstrap((decisions, argmax), n=n_resamples, seed=seed)

    correction = _full_fit_correction(judge, table.bags[best], value)
    estimate, error = value + correction - variation - base, errors.difference
    least = 0.0 if metric.traits.smooth else _MIN_KINK_ERRORS * error
    by_probabilities = calibrated_gain(table, codes)
    if by_probabilities is not None:
        # The weight falls where the two disagree by more than the 95 % interval allows: then the model is wrong.
        apart = abs(by_probabilities - estimate)
        weight = (
            min(_MAX_CALIBRATED_WEIGHT, (spread.quantile * error / apart) ** 2) if apart > 0 else _MAX_CALIBRATED_WEIGHT
        )
        estimate, error = estimate + weight * (by_probabilities - estimate), (1 - weight) * error
    if estimate <= least:
        return None, Estimate(*spread.interval(base, errors.second, low, high))
    shift = judge.value_with_correct_rows(decisions) - judge.value_with_correct_rows(argmax) - (value - base)
    reported = estimate**2 / (estimate + selection_bias(estimate - least, error))  # shrunk, but positive
    half = spread.quantile * _WIDEN * math.hypot(errors.difference, shift, variation)
    gain = clip_interval(reported, half, low - high, high - low)
    value += correction - variation - (estimate - reported)
    return Gain(*gain), Estimate(*spread.interval(value, _WIDEN * errors.first, low, high))


def _full_fit_correction(judge: Judge, bag: Bag, value: float) -> float:
    """Return how much better the rule of all resamples is on new rows than the rules that are judged, of given value.

    What a fit loses on new rows is proportional to one over its rows, and equals what it seems to gain on its own
    rows. Judged rules are fitted to two thirds of the rows: if the final rule loses d, they lose 3/2 d, and the value
    of the final rule on its own rows is 5/2 d above theirs. They are d/2 behind, a fifth of that.
    """
    if bag.is_randomized:
        return 0.0
    codes = bag.decide(judge.problem, np.ones(bag.n_resamples, dtype=bool))
    value_on_own_rows = float(_values(judge, _counts(judge.problem, codes, slice(None))[None])[0])
    return _OPTIMISM_SHARE * max(value_on_own_rows - value, 0.0)


def _row_judge(judge: Judge) -> Judge:
    """Return the judge that draws rows, not blocks."""
    return Judge(judge.problem) if isinstance(judge, _BlockJudge) else judge


def calibrated_gain(table: _OutOfBagScores, codes: NDArray[Any]) -> float | None:
    """Return the gain over argmax in expectation, under probabilities recalibrated by resamples that left rows out.

    With few rows it has less noise than labels, and it is wrong where the model is. None if nothing recalibrates the
    probabilities, or if they say too much: they do not show how unequal the recalls of a minimum really are.
    """
    judge, bag = table.judge, table.bags[table.best]
    problem = judge.problem
    if bag.is_randomized or problem.prior is not None or not problem.aim.metric.traits.smooth:
        return None
    if judge.by_row or isinstance(judge, _BlockJudge):
        return None
    rows = problem.source.rows
    assert rows.codes is not None
    labelled = None if rows.codes.min(initial=0) >= 0 else rows.codes >= 0
    width, n_extra = problem.schema.decision_width, problem.schema.n_extra

    def counted(proba: Probabilities, some: Any) -> FloatArray:
        weight, mass = (None if values is None else values[some] for values in (rows.weight, labelled))
        return np.stack([expected_confusion(proba, c[some], weight, mass, width) for c in (codes, table.codes[-1])])

    at_once = rows.proba.size <= _MAX_RECALIBRATED
    blocks = [np.empty(block.shape) for block in rows.proba.blocks] if at_once else []
    counts: FloatArray | float = 0.0
    for left_out, which in zip(table.resamples.rows, table.resamples.left_out.T, strict=True):
        recalibrated = bag.recalibrate(problem, left_out, which)
        if recalibrated is None:
            return None
        if not at_once:
            counts = counts + counted(recalibrated, left_out)
        for block, part in zip(blocks, recalibrated.blocks if at_once else (), strict=True):
            block[left_out] = part
    if at_once:
        counts = counted(replace(rows.proba, blocks=tuple(blocks), link=None), slice(None))
    value, base = judge.values_of_counts(with_extra(np.asarray(counts), n_extra, axis=-2))
    return float(value - base)


def selection_bias(estimate: float, error: float) -> float:
    """Return the mean overestimation of a normal estimate that is reported only if it is positive."""
    if error <= 0:
        return 0.0
    at = estimate / error
    density, below = math.exp(-at * at / 2) / math.sqrt(2 * math.pi), 0.5 * math.erfc(-at / math.sqrt(2))
    return error * density / below


def _variation(judge: Judge, bag: Bag) -> float:
    """Return what a rule loses of a metric with a kink because it varies with the rows that it is fitted to.

    The rows that are left out are drawn with the others: where the rows at hand favour a class, rules adapt to it and
    seem right on them all, and what should be equal, as recalls are for the least of them, seems to be. Resamples show
    how far it is not: their rules are judged by all rows. They vary about the rule of all rows by a root of two less
    than that varies about the best one.
    """
    masks, problem = [np.ones(bag.n_resamples, dtype=bool), *np.eye(bag.n_resamples, dtype=bool)], judge.problem
    values = _values(judge, np.stack([_counts(problem, bag.decide(problem, mask), slice(None)) for mask in masks]))
    return max(0.0, float(np.sqrt(2.0) * (values[0] - np.mean(values[1:]))))
