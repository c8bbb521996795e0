"""The one way from a task to a fitted rule: select, fit, build.

A route is a function of a task: without constraints, with constraints, by sensitive group, or for costs per row.
Routes other than the first are imported by the calls that need them. Must not know user input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from ..core.errors import argument
from ..core.notes import Note, NoteKind, note_list
from ..data.sources.memory import MemorySource
from ..inference.dependence import notes_in_time
from ..oracles.problem import FitStrategy, Problem, argmax_rule
from ..rules.base import Rule
from ..rules.cut_points import in_unit_of_rows
from ..rules.grouped import abstaining
from ..rules.metadata import RuleMetadata
from ..solvers.result import Certificate, Outcome
from .kept import constraint_depends, kept_entries
from .metadata import metadata_of, with_estimates
from .secondary_metrics import record_rule
from .selection import select
from .solving import FitTask, FittedRule, fit
from .threshold_range import has_threshold_range, threshold_range

__all__ = ["Route", "fit_task", "n_stages", "route_of"]

Route = Callable[[FitTask], FittedRule]

_MIN_ROWS_TO_WARN = 50  # that argmax gets right without exception: the model was probably trained on them


def route_of(task: FitTask) -> Route:
    """Return the route of a task."""
    if task.segments is not None:
        from .segments import fit_segments

        of_losses = fit_constrained if task.goal.constrained else fit_losses
        return partial(fit_segments, route_of(replace(task, segments=None)), of_losses)
    if task.cost_rule is not None:
        from .example_costs import fit_example_costs

        return fit_example_costs
    if not task.goal.constrained:
        if task.problem.schema.input.is_logits:
            from .cut_points import fit_cut_points, has_cut_points

            if has_cut_points(task):
                return fit_cut_points
        return fit_plain
    if task.goal.guarantee is not None and task.goal.constraints:
        from .guarantee.fit import fit_guaranteed

        return partial(_with_other, fit_guaranteed) if task.by_group else fit_guaranteed
    return partial(_with_other, fit_groups) if task.by_group else fit_constrained


def n_stages(task: FitTask) -> int:
    """Return the largest number of stages of a fit."""
    if task.segments is not None:
        return 2 + n_stages(replace(task, segments=None))
    selects = isinstance(task.recipes, list)
    if task.cost_rule is not None:
        return 2 if selects else 1
    if not task.goal.constrained:
        return 4 if selects else 1
    if task.goal.guarantee is not None and task.goal.constraints:
        return 1
    judged = task.problem.labelled and (task.goal.confidence is not None or len(task.recipe_list) > 1)
    other = task.without_groups() if task.by_group and task.fits_unknown_groups else None
    return (2 if judged else 1) + (0 if other is None else n_stages(other))


def fit_task(task: FitTask) -> FittedRule:
    """Fit the rule of a task, and add what the user should know about it."""
    fitted = route_of(task)(task)
    rule = fitted.rule.with_metadata(**kept_entries(task, fitted))
    return replace(fitted, rule=rule) if task.cost_rule is not None else _build(task, fitted, rule)


def _build(task: FitTask, fitted: FittedRule, rule: Rule) -> FittedRule:
    """Return a fit with recorded metrics, values of groups, notes about the data and the estimates in its metadata."""
    problem, recorded, by_group = task.problem, fitted.recorded, fitted.by_group
    behind = fitted.value < fitted.baseline - 1e-12 and not fitted.constraints  # constraints have their price
    notes = [*fitted.notes, *_data_notes(problem, behind, rule.is_flat)]
    if not task.by_group:
        recorded = record_rule(problem, rule)
        if task.groups is not None:
            from .by_group import values_by_group

            text = "No constraint depends on groups, so all groups have one rule; by_group has the results of each."
            notes.append(Note(NoteKind.GROUPS, text))
            by_group = values_by_group(problem, task.groups, rule)
    of_shares = {c.promise: True for c in task.goal.constraints if constraint_depends(c, problem.schema)}
    promises = dict.fromkeys(c.promise for c in task.goal.constraints)
    depends = [promise in of_shares for promise in promises]
    rule = with_estimates(rule, fitted.gain, fitted.value_on_new_rows, fitted.constraints, depends)
    rule = rule if rule.needs else in_unit_of_rows(rule, problem.schema)
    return replace(fitted, rule=rule, notes=tuple(notes), recorded=recorded, by_group=by_group)


def _data_notes(problem: Problem, argmax_is_better: bool, by_micro_average: bool = True) -> Iterator[Note]:
    """Yield notes about the metric, the outputs and the rows."""
    if problem.aim.note:
        yield Note(NoteKind.METRIC, problem.aim.note)
    if problem.aim.average == "instance" and by_micro_average:
        text = "The instance-average is optimised through its surrogate, the micro-average."
        yield Note(NoteKind.METRIC, text)
    unlearnt = np.flatnonzero(problem.keeps_argmax)
    if len(unlearnt):
        listing = ", ".join(map(str, unlearnt[:10])) + (", ..." if len(unlearnt) > 10 else "")
        yield Note(NoteKind.DATA, f"Outputs without labels or with only one class use argmax: {listing}.")
    if argmax_is_better:
        yield Note(NoteKind.WARNING, f"Argmax is better on the given rows: try {argument('recalibrate', True)}.")
    yield from notes_in_time(problem.source, has_intervals=problem.labelled)
    source = problem.source
    if isinstance(source, MemorySource) and source.n_rows >= _MIN_ROWS_TO_WARN and source.rows.all_right():
        yield Note(
            NoteKind.WARNING,
            "The most probable class is correct in every row, as is common for rows that the model was trained on. Use "
            "out-of-fold probabilities, such as those of cross_val_predict.",
        )


# ------------------------------------------------------------------------------------------------------------- routes


def fit_plain(task: FitTask) -> FittedRule:
    """Fit a rule without constraints; of several recipes, the selection decides."""
    fitted = fit_losses(task)
    if task.problem.aim.average != "instance" or not isinstance(task.recipes, list):
        return fitted
    from .label_sets import better_sets

    return better_sets(task, fitted)


def fit_losses(task: FitTask) -> FittedRule:
    """Fit a rule of losses without constraints."""
    problem = task.problem
    if not isinstance(task.recipes, list):
        task.stage("fitting all rows")
        return fit(problem, task.recipes, task.solver, metadata_of(problem, str(task.recipes)))
    selection = select(problem, task.recipes, task.solver, seed=task.seed, stage=task.stage)
    task.stage("fitting all rows")
    metadata = metadata_of(problem, selection.name)
    note = selection.describe()
    judges = selection.judges
    if judges is not None and not has_threshold_range(judges, problem.schema.n_outputs):
        judges = None
    selection = replace(selection, judges=None)  # rows that nothing else is asked of
    if selection.recipe is None:
        fitted = _fit_argmax(problem, metadata)
    else:
        fitted = fit(problem, selection.recipe, task.solver, metadata, selection.rule)
    ranges = None if judges is None else threshold_range(judges, fitted.rule)
    return replace(
        fitted,
        notes=(*fitted.notes, *note_list(NoteKind.SELECTION, note)),
        gain=selection.gain,
        value_on_new_rows=selection.value,
        threshold_range=ranges if ranges is None or problem.schema.multioutput else ranges[0],
        candidates=selection.candidates,
    )


def _fit_argmax(problem: Problem, metadata: RuleMetadata) -> FittedRule:
    """Count argmax."""
    read_before = problem.source.passes.entries
    oracle, rule = problem.oracle(), argmax_rule(problem)
    confusion = oracle.confusions([rule.loss])[0]
    by_row = problem.aim.average == "instance"
    value = problem.value_of_rule(rule) if by_row else problem.objective(oracle).value(confusion)
    return FittedRule(
        rule=replace(rule, metadata=metadata.updated(value=value, baseline=value)),
        value=value,
        baseline=value,
        confusion=confusion[:, : problem.schema.width],
        counted="labels",
        certificate=Certificate(value),
        outcome=Outcome.ARGMAX,
        notes=(),
        history=(value,),
        n_passes=problem.passes_since(read_before),
    )


def fit_constrained(task: FitTask) -> FittedRule:
    """Fit the best rule that satisfies constraints, none of them about a sensitive group."""
    return _fit_within(task, task.problem)[0]


def fit_groups(task: FitTask) -> FittedRule:
    """Fit the best rule that satisfies constraints about sensitive groups."""
    from .by_group import rejoin_groups, split_by_group

    def linked_by_group(recipe: FitStrategy) -> FitStrategy | None:
        return replace(recipe, link_by_group=True) if recipe.recalibrate and task.group_aware else None

    split = split_by_group(task)
    return rejoin_groups(task, split, *_fit_within(task, split, linked_by_group))


def _with_other(route: Route, task: FitTask) -> FittedRule:
    """Return the fit of a route by group with the rule of rows of unknown groups."""
    fitted = route(task)
    if not task.group_aware or task.sensitive is None or task.sensitive.unknown == "refuse":
        return fitted
    if task.fits_unknown_groups:
        blind = task.without_groups()
        other = replace(route_of(blind)(blind).rule, metadata=RuleMetadata())
    else:
        other = abstaining(task.problem.schema)
    return replace(fitted, rule=replace(fitted.rule, other=other))


def _fit_within(
    task: FitTask, problem: Problem, challenger: Callable[[FitStrategy], FitStrategy | None] = lambda _: None
) -> tuple[FittedRule, FitStrategy]:
    """Fit the best rule of a problem that satisfies the constraints of a task."""
    from .constraints.fit import fit_within

    return fit_within(
        problem,
        task.recipe_list,
        task.settings,
        task.goal.confidence,
        seed=task.seed,
        metadata=metadata_of(task.problem),
        stage=task.stage,
        challenger=challenger,
    )
