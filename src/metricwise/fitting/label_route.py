"""The way from rows of very many labels to a fitted rule: select, fit, build. Must not know user input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..core.errors import InvalidParameter, argument, mention
from ..core.notes import Note, NoteKind, note_list
from ..goals.labels import LabelConstraint
from ..inference.label_summary import summarize_labels
from ..inference.results import ConstraintResult, Recorded
from ..metrics.label_aims import LabelAim, LabelCounts, MetricAim, set_metric
from ..oracles.problem import FitStrategy
from ..rules.label_base import LabelRuleBase
from ..rules.metadata import RuleMetadata
from ..solvers.result import Certificate, Outcome
from .label_constraints import fit_every_label, fit_pooled
from .labels import LabelProblem, LabelSelection, baseline_fit, fit_labels, select_labels
from .metadata import loss_names, with_estimates
from .selection import describe_choice
from .solving import FittedRule

__all__ = ["LabelTask", "default_label_recipes", "fit_label_task", "value_of_fit"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_BASELINE = "The set of the most probable labels"


@dataclass(frozen=True, eq=False)
class LabelTask:
    """A problem of very many labels, its constraints, and how a rule is looked for."""

    problem: LabelProblem
    recipes: FitStrategy | list[FitStrategy]
    constraints: tuple[LabelConstraint, ...] = ()
    confidence: float | None = None
    seed: int = 0
    stage: Callable[[str], None] = lambda _: None

    @property
    def sets(self) -> tuple[float, bool, float] | None:
        """For an average over instances, the metric that has a best set of labels for each row."""
        aim = self.problem.aim
        if aim.average != "instance" or not isinstance(aim, MetricAim):
            return None
        return set_metric(aim.metric)


def default_label_recipes(problem: LabelProblem) -> list[FitStrategy]:
    """Return the recipes that are compared by default.

    On the sets of benchmarks/many_labels no recipe was best for all metrics. Without a budget, thresholds by labels
    were best where most labels are rare.
    """
    if not problem.budget.is_limited:
        return [FitStrategy("expected", recalibrate=True), FitStrategy("labels", recalibrate=False)]
    return [
        FitStrategy("expected", recalibrate=True),
        FitStrategy("expected", recalibrate=False),
        FitStrategy("blended", recalibrate=True),
        FitStrategy("labels", recalibrate=False),
    ]


def fit_label_task(task: LabelTask) -> FittedRule:
    """Fit the rule of a task."""
    if task.constraints:
        return _fit_bounded(task)
    recipes = task.recipes if isinstance(task.recipes, list) else [task.recipes]
    if not isinstance(task.recipes, list) or not task.problem.labelled:
        task.stage("fitting all rows")
        fitter = _fitters(task, recipes[0])[0]
        return _build(task, fitter.fit(task.problem, None), fitter.name)
    fitters = [fitter for recipe in recipes for fitter in _fitters(task, recipe)]
    fitters = list({fitter.name: fitter for fitter in fitters}.values())
    selection = select_labels(task.problem, fitters, task.seed, task.stage)
    task.stage("fitting all rows")
    if selection.chosen is None:
        return _build(task, baseline_fit(task.problem), "argmax", selection)
    fitter = fitters[selection.chosen]
    return _build(task, fitter.fit(task.problem, None), fitter.name, selection)


@dataclass(frozen=True, eq=False)
class _Fitter:
    """A way to fit a rule, by its name."""

    name: str
    fit: Callable[[LabelProblem, IntArray | None], Any]


def _fitters(task: LabelTask, recipe: FitStrategy) -> list[_Fitter]:
    """Return how a recipe fits a rule: for an average over instances, also the best set of each row."""
    table = _Fitter(str(recipe), lambda problem, rows: fit_labels(problem, recipe, rows))
    if task.sets is None:
        return [table]
    from .label_sets import fit_sets

    metric, linked = task.sets, replace(recipe, confusion="expected")
    name = f"{'recalibrated + ' if recipe.recalibrate else ''}sets"
    return [_Fitter(name, lambda problem, rows: fit_sets(problem, metric, linked, rows)), table]


def _fit_bounded(task: LabelTask) -> FittedRule:
    """Fit the rule of a task with a constraint."""
    if len(task.constraints) > 1:
        raise InvalidParameter(
            "subject_to",
            "be one constraint for very many labels",
            " and ".join(constraint.name for constraint in task.constraints),
            "keep the one that binds",
        )
    if task.problem.aim.average == "instance" or task.problem.aim.is_coverage:
        raise InvalidParameter(
            "subject_to",
            problem=f"{task.problem.aim.name} with {argument('average', task.problem.aim.average)} cannot be bounded "
            "by a constraint, for very many labels",
            remedy=f"leave {argument('subject_to')} out, or use {argument('average', 'micro')}",
        )
    recipe = task.recipes[0] if isinstance(task.recipes, list) else task.recipes
    (constraint,) = task.constraints
    if constraint.every_label:
        bounded = fit_every_label(task.problem, recipe, constraint, task.confidence)
    else:
        bounded = fit_pooled(task.problem, recipe, constraint, task.confidence, task.seed, task.stage)
    return _build(task, bounded.fit, str(recipe), constraints=(bounded.result,))


# -------------------------------------------------------------------------------------------------------------- build


def _build(
    task: LabelTask,
    fit: Any,
    name: str,
    selection: LabelSelection | None = None,
    constraints: tuple[ConstraintResult, ...] = (),
) -> FittedRule:
    """Return the rule of a fit with its values on the given rows, and what is expected of it on new ones."""
    problem = task.problem
    base = baseline_fit(problem)
    counts, baseline_counts = fit.count(problem), base.count(problem)
    aim = problem.aim.bind(counts.true)
    value, baseline = _values(problem, aim, [fit, base], [counts, baseline_counts])
    metadata = _metadata(task, name, value, baseline)
    rule: LabelRuleBase = fit.rule(problem, metadata, is_bounded=bool(task.constraints))
    recorded = {}
    for key, secondary in problem.record.items():
        pair = _values(problem, secondary.bind(counts.true), [fit, base], [counts, baseline_counts])
        recorded[key] = Recorded(*pair)
    gain, estimate = (None, None) if selection is None else (selection.gain, selection.value)
    rule = with_estimates(rule, gain, estimate, constraints, [True] * len(constraints))
    search = fit.search
    optimized = value if search is None else search.value
    proved = search is not None and search.outcome is Outcome.OPTIMAL and not constraints
    return FittedRule(
        rule=rule,
        value=value,
        baseline=baseline,
        confusion=counts.confusion(),
        counted="labels" if problem.labelled else "expected",
        certificate=Certificate(optimized, upper_bound=optimized if proved else None),
        outcome=Outcome.ARGMAX if search is None else search.outcome,
        notes=tuple(_notes(task, fit, name, selection)),
        history=(value,) if search is None else search.history,
        n_passes=0 if search is None else max(len(search.history), 1),
        gain=gain,
        value_on_new_rows=estimate,
        candidates=() if selection is None else selection.candidates,
        recorded=recorded,
        constraints=constraints,
        by_label=summarize_labels(aim, counts, baseline_counts, problem.rows.n_entries, problem.n_unstored),
    )


def _values(
    problem: LabelProblem, aim: LabelAim, fits: Sequence[Any], counts: Sequence[LabelCounts]
) -> tuple[float, float]:
    """Return the value of the rule and of the baseline."""
    first, second = (value_of_fit(problem, aim, *pair) for pair in zip(fits, counts, strict=True))
    return first, second


def value_of_fit(problem: LabelProblem, aim: LabelAim, fit: Any, counts: LabelCounts) -> float:
    """Return the value of a fit by its counts; row by row for an average over instances."""
    if problem.targets is None:
        return aim.expected_value(counts)
    if aim.average == "instance":
        return problem.judge(0).value(aim, fit.decide(problem))
    return aim.bind(counts.true).value(counts)


def _metadata(task: LabelTask, name: str, value: float, baseline: float) -> RuleMetadata:
    problem, aim = task.problem, task.problem.aim
    constrained: dict[str, Any] = {}
    if task.constraints:
        constrained = {
            "subject_to": [constraint.name for constraint in task.constraints],
            "confidence": task.confidence,
        }
    aims = {aim.name: aim, **problem.record}
    metrics = {key: one.metric for key, one in aims.items() if isinstance(one, MetricAim)}
    return RuleMetadata(
        metric=aim.name,
        average=aim.average,
        rows=problem.rows.n_rows,
        metricwise=__version__,
        recipe=name,
        value=value,
        baseline=baseline,
        losses=loss_names(metrics) or None,
        **constrained,
    )


def _notes(task: LabelTask, fit: Any, name: str, selection: LabelSelection | None) -> list[Note]:
    """Say how the search ended, which recipe was chosen, and what the rows say about the result."""
    problem = task.problem
    notes = list(note_list(NoteKind.OUTCOME, "" if fit.search is None else fit.search.status))
    if selection is not None:
        gain = None if selection.chosen is None else selection.gain
        notes += note_list(NoteKind.SELECTION, describe_choice(name, gain, selection.candidates, _BASELINE))
    if problem.aim.average == "instance" and task.sets is None:
        text = "The instance-average is optimised through its surrogate, the micro-average."
        notes.append(Note(NoteKind.METRIC, text))
    true = problem.labels_true()
    if true is not None and problem.n_unstored > 0:
        share = f"{100 * problem.n_unstored / float(true.sum()):.2g} %"
        text = f"{share} of the true labels are not stored in {mention('proba')}, and count as misses."
        notes.append(Note(NoteKind.DATA, text))
    return notes
