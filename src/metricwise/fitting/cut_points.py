"""Fits cut points of one score: ordered classes by default, and two classes that are counted with labels as they are.

Scores are sorted once. A recipe fitted to a resample counts labels, or the probabilities of a map that is fitted to the
same resample, along the sorted scores; the rules of all resamples are averaged as shares of the rows below each cut.
Must not know user input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.notes import NoteKind, note_list
from ..core.ordinal_map import OrdinalMap, proba_of_maps
from ..core.probabilities import Probabilities
from ..inference.results import Gain
from ..metrics.objective import Objective
from ..oracles.problem import FitStrategy, InMemory, Problem, argmax_rule
from ..rules.calibration import link_or_base
from ..rules.cut_points import argmax_cuts, cut_point_rule
from ..rules.metadata import RuleMetadata
from ..rules.ordinal_fit import fit_ordinal_maps
from ..solvers.cut_points import (
    CutSearch,
    ProfileStack,
    ScoreProfile,
    SortedScores,
    average_thresholds,
    search_shown_cuts,
    search_stack,
)
from ..solvers.result import Certificate, Outcome
from .bagging import Resamples, draw
from .metadata import metadata_of
from .samples import MAX_ROWS
from .selection import describe_choice, judge_bags, n_rounds_for, sample_rows
from .solving import FitTask, FittedRule, Settings

__all__ = ["count_cuts", "fit_cut_points", "has_cut_points"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

# Scores, merged if there are more, of which all pairs are tried in a resample; cuts are then moved nearby. Macro-F1 on
# new rows was above that with all pairs of up to 600 scores by 0.0002 +- 0.0006 with 64, and by 0.0006 +- 0.0006 with
# 128 (six real sets, two regressors, 108 splits).
_MAX_RESAMPLE_PAIRS = 64
_MAX_RESAMPLE_SCORES = 2048  # more are merged in resamples, whose cuts vary by many more rows than are merged


def has_cut_points(task: FitTask) -> bool:
    """Whether a rule of cut points serves a task: no constraint, abstention or prior, and a solver that is not named.

    One score of ordered classes always does; scores of two classes if they are counted with labels and not mapped to
    probabilities, and no output shares its threshold with another.
    """
    problem, schema = task.problem, task.problem.schema
    if not isinstance(task.solver, Settings):
        return False
    unbound = schema.n_extra == 0 and problem.prior is None
    if not (unbound and schema.input.is_logits and problem.labelled) or problem.aim.average == "instance":
        return False
    if schema.input.graded:
        return not task.solver.randomized
    apart = schema.n_outputs == 1 or problem.aim.average == "macro"
    return apart and schema.width == 2 and task.recipes == FitStrategy("labels", recalibrate=False)


def fit_cut_points(task: FitTask) -> FittedRule:
    """Fit cut points; of several recipes, the average over resamples is judged on the rows that these left out."""
    problem = task.problem
    if not isinstance(task.recipes, list):
        task.stage("fitting all rows")
        return _fit_all(problem, task.recipes, metadata_of(problem, task.recipes.confusion))
    rng = np.random.default_rng(task.seed)
    rows, whole = sample_rows(problem, len(task.recipes), rng)
    task.stage("fitting rules to resamples")
    resamples = draw(rows, rng, n_rounds_for(rows, len(task.recipes)))
    bags = _fit_bags(resamples, task.recipes)
    names: list[str] = [recipe.confusion for recipe in task.recipes]
    if whole and len(bags) > 1:  # else all rows are fitted once, by the better recipe
        together = np.concatenate([bag.thresholds for bag in bags], axis=1)
        bags = [replace(bags[0], thresholds=together)]
        names = [" and ".join(names)]
    task.stage("evaluating rules on rows left out")
    best, gain, value, candidates = judge_bags(resamples, bags, names, task.seed)
    task.stage("fitting all rows")
    name = "argmax" if gain is None else names[best]
    metadata = metadata_of(problem, name)
    if gain is None:
        fitted = count_cuts(problem, argmax_cuts(problem.schema), metadata, Outcome.ARGMAX)
    elif whole:
        fitted = count_cuts(problem, bags[best].mean(np.ones(resamples.n_resamples, dtype=bool))[None], metadata)
    else:
        fitted = _fit_all(problem, task.recipes[best], metadata)
    return replace(
        fitted,
        notes=(
            *fitted.notes,
            *note_list(NoteKind.SELECTION, describe_choice(name, gain, candidates, "The most probable class")),
        ),
        gain=gain or Gain(0.0, 0.0, 0.0),
        value_on_new_rows=value,
        candidates=candidates,
    )


# ---------------------------------------------------------------------------------------------------------- resamples


@dataclass(frozen=True, eq=False)
class _CutBag:
    """Thresholds (R, P, K - 1) that P recipes fit to R resamples, and the profile of all rows that averages them.

    `maps` are those that are fitted to the resamples, if there are any.
    """

    thresholds: FloatArray
    profile: ScoreProfile
    maps: Sequence[OrdinalMap] | None = None

    @property
    def n_resamples(self) -> int:
        """R."""
        return len(self.thresholds)

    @property
    def is_randomized(self) -> bool:
        """Whether decisions are drawn: never."""
        return False

    def recalibrate(self, problem: InMemory, rows: IntArray, which: BoolArray) -> Probabilities | None:
        """Return the mean probabilities of some rows by the maps of some of the resamples; None without maps."""
        if self.maps is None:
            return None
        maps = [self.maps[r] for r in np.flatnonzero(which).tolist()]
        proba = proba_of_maps(maps, _scores(problem)[rows]).mean(axis=0)
        return Probabilities((proba[:, None, :],), problem.schema.n_classes)

    def mean(self, which: BoolArray) -> FloatArray:
        """Return the mean thresholds (K - 1,) of some of the resamples, a mask (R,)."""
        return average_thresholds(self.profile, np.concatenate(self.thresholds[which]))

    def decide(self, problem: InMemory, which: BoolArray) -> IntArray:
        """Return the decisions, codes (N, 1), by the mean thresholds of some of the resamples."""
        return np.asarray((_scores(problem)[:, None] > self.mean(which)).sum(axis=1)[:, None])


def _fit_bags(resamples: Resamples, recipes: Sequence[FitStrategy]) -> list[_CutBag]:
    """Fit the thresholds of recipes to every resample."""
    problem, kept = resamples.problem, resamples.kept
    counted = _Counted.of(problem)
    maps = counted.fit_maps(kept) if any(recipe.confusion != "labels" for recipe in recipes) else None
    everyone = counted.profile(FitStrategy("labels"))
    counted = replace(counted, sorted=counted.sorted.merged(_MAX_RESAMPLE_SCORES))
    bags = []
    for recipe in recipes:
        stack = counted.stack(recipe, kept, maps)
        thresholds = search_stack(stack, partial(_bind_stack, problem), max_paired_scores=_MAX_RESAMPLE_PAIRS)
        bags.append(_CutBag(thresholds[:, None], everyone, maps))
    return bags


@dataclass(frozen=True, eq=False)
class _Counted:
    """Rows of one output, sorted by their score: what recipes count along it."""

    problem: InMemory
    scores: FloatArray
    sorted: SortedScores

    @classmethod
    def of(cls, problem: InMemory) -> _Counted:
        scores = _scores(problem)
        return cls(problem, scores, SortedScores.read(scores))

    @property
    def codes(self) -> NDArray[Any]:
        codes = self.problem.source.rows.codes
        assert codes is not None
        return codes[:, 0]

    @property
    def n_classes(self) -> int:
        return self.problem.schema.width

    def fit_maps(self, kept: BoolArray | None = None) -> list[OrdinalMap]:
        """Return the map that is fitted to each resample, or to all rows."""
        rows, start = self.problem.source.rows, self.problem.schema.input.ordinal
        return fit_ordinal_maps(self.scores, self.codes, self.n_classes, rows.weight, kept, rows.frequency, start)

    def profile(self, recipe: FitStrategy, maps: Sequence[OrdinalMap] | None = None) -> ScoreProfile:
        """Return what a recipe counts of all rows, with their map."""
        return self.stack(recipe, np.ones((1, len(self.scores)), dtype=bool), maps).profile(0)

    def stack(self, recipe: FitStrategy, kept: BoolArray, maps: Sequence[OrdinalMap] | None = None) -> ProfileStack:
        """Return what a recipe counts of the rows of R resamples, a mask (R, N), with the map of each."""
        weight = self.problem.source.rows.weight
        share = kept if weight is None else kept * weight
        if recipe.confusion == "labels":
            return self.sorted.stack_of_labels(self.codes, self.n_classes, share)
        assert maps is not None
        proba = proba_of_maps(maps, self.sorted.scores)
        if recipe.confusion == "blended":
            return self.sorted.stack_of_both(self.codes, proba, share)
        return self.sorted.stack_of_probabilities(proba, share * (self.codes >= 0))


def _scores(problem: Problem) -> FloatArray:
    """Return the score of each row, (N,), of rows in memory and one output."""
    assert isinstance(problem, InMemory)
    proba = problem.source.rows.proba
    return proba.positive_column(0) if proba.scores is None else proba.scores.astype(np.float64)


def _search(problem: Problem, profile: ScoreProfile) -> CutSearch:
    """Return the best cuts of a profile."""
    return search_shown_cuts(profile, _bind(problem, profile.priors[None], np.array([profile.total])))


def _bind_stack(problem: Problem, stack: ProfileStack) -> Objective:
    """Bind the metric to the shares of the classes in each profile of a stack, a group each."""
    return _bind(problem, stack.priors, stack.totals)


def _bind(problem: Problem, priors: FloatArray, totals: FloatArray) -> Objective:
    """Bind the metric of one output to each of R priors (R, K)."""
    schema, n_groups = problem.schema, len(priors)
    aim = problem.aim if n_groups == 1 else problem.aim.tiled(1, n_groups)
    return aim.bind(priors, totals, np.repeat(schema.n_classes, n_groups), [*schema.classes] * n_groups)


# ----------------------------------------------------------------------------------------------------------- all rows


def _fit_all(problem: Problem, recipe: FitStrategy, metadata: RuleMetadata) -> FittedRule:
    """Fit cut points to all rows by one recipe, each output by itself; rows that are not in memory are sampled."""
    schema, searches, cuts, sampled = problem.schema, [], [], False
    for m in range(schema.n_outputs):
        part = problem if schema.n_outputs == 1 else problem.of_outputs(np.array([m]))
        if problem.keeps_argmax[m]:
            cuts.append(argmax_cuts(part.schema)[0])
            continue
        rows = _in_memory(part)
        sampled = sampled or rows.n_rows < part.n_rows
        counted = _Counted.of(rows)
        profile = counted.profile(recipe, None if recipe.confusion == "labels" else counted.fit_maps())
        searches.append(_search(rows, profile))
        cuts.append(profile.thresholds(searches[-1].cuts))
    exact = all(search.exact for search in searches) and not sampled
    status = "Optimal over all cut points." if exact else "A local optimum over cut points."
    status = f"The best cut points of a sample of {MAX_ROWS} rows." if sampled else status
    outcome = Outcome.OPTIMAL if exact else Outcome.LOCAL
    fitted = count_cuts(problem, np.stack(cuts), metadata, outcome, status)
    if recipe.confusion != "labels":
        optimized = searches[0].value
        return replace(fitted, certificate=Certificate(optimized, upper_bound=optimized if exact else None))
    return replace(fitted, certificate=Certificate(fitted.value, upper_bound=fitted.value if exact else None))


def _in_memory(problem: Problem) -> InMemory:
    """Return the rows of a problem: all that are in memory, a sample of others."""
    in_memory = problem.source.capacity is None
    return problem.sample(problem.n_rows if in_memory else MAX_ROWS, 0)


def count_cuts(
    problem: Problem, cuts: FloatArray, metadata: RuleMetadata, outcome: Outcome = Outcome.LOCAL, status: str = ""
) -> FittedRule:
    """Count the rule of cut points (M, K - 1)."""
    link = None if problem.schema.input.graded else link_or_base(None, problem.schema)
    return _count_rule(problem, cut_point_rule(cuts, problem.schema, link, metadata), outcome, status)


def _count_rule(problem: Problem, rule: Any, outcome: Outcome, status: str = "") -> FittedRule:
    """Count a rule and argmax with labels."""
    read_before = problem.source.passes.entries
    oracle = problem.oracle()
    objective = problem.objective(oracle)
    confusion = problem.confusion_of_rule(rule, oracle)
    argmax = problem.confusion_of_rule(argmax_rule(problem), oracle)
    value, baseline = objective.value(confusion), objective.value(argmax)
    return FittedRule(
        rule=replace(rule, metadata=rule.metadata.updated(value=value, baseline=baseline)),
        value=value,
        baseline=baseline,
        confusion=confusion[:, : problem.schema.width],
        counted="labels",
        certificate=Certificate(value),
        outcome=outcome,
        notes=tuple(note_list(NoteKind.OUTCOME, status) if status else ()),
        history=(value,),
        n_passes=problem.passes_since(read_before),
    )
