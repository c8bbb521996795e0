"""How a problem that has been read is solved: which fit is called, and the Solution that is made of its result.

The fields of a :class:`FittedRule` and of a :class:`CostFit` are fields of a Solution by the same names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import InvalidParameter, argument, mention
from ..core.notes import Note, NoteKind, note_list
from ..core.progress import Progress
from ..data.sources import MemorySource
from ..fitting.metadata import informed, metadata_of
from ..fitting.secondary_metrics import record_rule
from ..fitting.selection import Choice, choose
from ..fitting.solving import FittedRule, Settings, fit
from ..goals.worst import opened
from ..inference import Recorded
from ..inference.uncertainty import threshold_range
from ..oracles.problem import Problem, Recipe, argmax_rule
from ..rules import CostRule, MixtureRule, Rule, RuleMetadata, WeightedRule
from ..rules.grouped import abstaining
from ..solvers import Certificate, Outcome, Solver
from .results import Solution

if TYPE_CHECKING:  # loaded by the calls that need them: the rest is imported sooner
    from ..fitting.by_group import GroupTask
    from ..goals.constraint import Constraint
    from ..goals.spec import Goal

__all__ = ["n_stages", "solve", "solve_row_costs", "solve_within"]

_SUSPICIOUS_ROWS = 50  # that argmax gets right without exception, beyond which rows will have been trained on


def n_stages(problem: Problem, recipe: Recipe | list[Recipe] | None, goal: Goal, task: GroupTask | None) -> int:
    """Return how many stages there are at most: of the fit, and of that of rows of unknown groups."""
    free = 4 if isinstance(recipe, list) else 1
    if not goal.constrained:
        return free
    several = isinstance(recipe, list) and len(recipe) > 1
    within = 2 if problem.labelled and (goal.confidence is not None or several) else 1
    if task is None or not (task.aware and task.unknown == "blind" and task.needed(goal.constraints)):
        return within
    return within + (within if _without_groups(goal.constraints) else free)


# ---------------------------------------------------------------------------------------------- without constraints


def solve(
    problem: Problem,
    task: GroupTask | None,
    recipe: Recipe | list[Recipe] | None,
    solver: Solver | Settings,
    seed: int,
    progress: Progress,
) -> Solution:
    """Choose the recipe, if there are several, fit the rule, and collect what the user should know of it."""
    fitted, choice = _fit_free(problem, recipe, solver, seed, progress)
    selection = note_list(NoteKind.SELECTION, choice.words()) if choice else ()
    notes = [*fitted.notes, *selection, *_data_notes(problem, fitted.value < fitted.baseline - 1e-12)]
    recorded = record_rule(problem, fitted.rule)
    by_group = _by_group(problem, task, fitted.rule, notes)
    gain, value = (choice.gain, choice.value) if choice else (None, None)
    return Solution(
        **{**vars(fitted), "rule": informed(fitted.rule, gain, value), "notes": tuple(notes)},
        gain=gain,
        value_on_new_rows=value,
        threshold_range=_threshold_range(problem, fitted.rule, choice) if choice else None,
        candidates=choice.candidates if choice else (),
        recorded=recorded,
        by_group=by_group,
        problem=problem,
    )


def _threshold_range(problem: Problem, rule: WeightedRule | MixtureRule, choice: Choice) -> Any:
    """Return the thresholds that are as good by the rows that judged; None if these have not all of the outputs."""
    if choice.judges.schema.n_outputs < problem.schema.n_outputs:
        return None
    ranges = threshold_range(choice.judges, rule)
    return ranges if ranges is None or problem.schema.multioutput else ranges[0]


def _fit_free(
    problem: Problem, recipe: Recipe | list[Recipe] | None, solver: Solver | Settings, seed: int, progress: Progress
) -> tuple[FittedRule, Choice | None]:
    """Choose the recipe, if there are several, and fit the rule."""
    choice, rule = None, None
    if isinstance(recipe, list):
        choice = choose(problem, recipe, solver, seed=seed, stage=progress.stage)
        recipe, rule = choice.recipe, choice.rule
    progress.stage("fitting all rows")
    metadata = metadata_of(problem).updated(recipe=str(recipe) if choice is None else choice.name)
    fitted = _fit_argmax(problem, metadata) if recipe is None else fit(problem, recipe, solver, metadata, rule)
    return fitted, choice


def _fit_argmax(problem: Problem, metadata: RuleMetadata) -> FittedRule:
    """Count plain argmax."""
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


# ------------------------------------------------------------------------------------------------- with constraints


def solve_within(
    problem: Problem,
    task: GroupTask | None,
    recipe: Recipe | list[Recipe] | None,
    solver: Solver | Settings,
    confidence: float | None,
    seed: int,
    progress: Progress,
) -> Solution:
    """Fit the best rule that keeps constraints, and collect what the user should know of it."""
    if not isinstance(solver, Settings):
        raise InvalidParameter(
            "solver", f"be 'auto' if {mention('subject_to')} is given, because constraints have their own solver"
        )
    metadata = metadata_of(problem)
    recipes = recipe if isinstance(recipe, list) else [recipe or Recipe()]
    groups: list[Note] = []
    rule: Rule
    if task is not None and task.needed(problem.constraints):
        from ..fitting.by_group import fit_by_group

        by_groups = fit_by_group(
            problem, task, recipes, solver, confidence, seed=seed, metadata=metadata, stage=progress.stage
        )
        constrained, fitted, rule = by_groups.fit, by_groups.fitted, by_groups.rule
        recorded, by_group = by_groups.recorded, by_groups.by_group
        if "sensitive_features" in rule.needs and task.unknown != "refuse":
            rule = by_groups.with_other(_other_rule(problem, task, recipe, solver, confidence, seed, progress))
    else:
        from ..fitting.constraints.fit import fit_within

        constrained = fit_within(
            problem, recipes, solver, confidence, seed=seed, metadata=metadata, stage=progress.stage
        )
        fitted, rule = constrained.fitted, constrained.fitted.rule
        recorded = record_rule(problem, fitted.rule)
        by_group = _by_group(problem, task, fitted.rule, groups)
    behind = fitted.value < fitted.baseline - 1e-12 and not constrained.constraints  # these have their price
    gain, value, notes = constrained.gain, constrained.value_on_new_rows, _data_notes(problem, behind)
    rule = informed(rule, gain, value, constrained.constraints)
    return Solution(
        **{**vars(fitted), "rule": rule, "notes": (*fitted.notes, *notes, *groups)},
        gain=gain,
        value_on_new_rows=value,
        candidates=constrained.candidates,
        recorded=recorded,
        constraints=constrained.constraints,
        by_group=by_group,
        problem=problem,
    )


def _without_groups(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """Return the constraints that are about no single group."""
    return tuple(constraint for constraint in constraints if constraint.group is None)


def _other_rule(
    problem: Problem,
    task: GroupTask,
    recipe: Recipe | list[Recipe] | None,
    solver: Settings,
    confidence: float | None,
    seed: int,
    progress: Progress,
) -> WeightedRule | MixtureRule:
    """Return the rule of rows of unknown groups: it abstains, or is fitted to all rows without their groups."""
    if task.unknown == "abstain":
        return abstaining(problem.schema)
    rest = _without_groups(problem.constraints)
    blind = replace(problem, constraints=rest, aim=replace(problem.aim, name=opened(problem.aim.name)[0]))
    if not rest:
        rule = _fit_free(blind, recipe, solver, seed, progress)[0].rule
    else:
        recipes = recipe if isinstance(recipe, list) else [recipe or Recipe()]
        from ..fitting.constraints.fit import fit_within

        rule = fit_within(blind, recipes, solver, confidence, seed=seed, stage=progress.stage).fitted.rule
    return replace(rule, metadata=RuleMetadata())


def _by_group(
    problem: Problem, task: GroupTask | None, rule: WeightedRule | MixtureRule, notes: list[Note]
) -> dict[Any, dict[str, Recorded]]:
    """Return how groups fare by a rule that was found without a constraint about them, and add a note."""
    if task is None:
        return {}
    text = "No constraint is about groups, so one rule decides all of them; by_group has the results of each."
    notes.append(Note(NoteKind.GROUPS, text))
    from ..fitting.by_group import values_by_group

    return values_by_group(problem, task.groups, rule)


# ---------------------------------------------------------------------------------------------------- costs per row


def solve_row_costs(
    problem: Problem, rule: CostRule, recipe: Recipe | list[Recipe] | None, seed: int, show_progress: bool | None
) -> Solution:
    """Fit the rule for costs per row; where several recipes come into question, rows left out judge it."""
    from ..fitting.example_costs import fit_row_costs

    judged = isinstance(recipe, list)
    first = recipe[0] if isinstance(recipe, list) else recipe or Recipe()
    with Progress("optimize", 2 if judged else 1, show_progress) as progress:
        cost_fit = fit_row_costs(problem, rule, first.recalibrate, judged=judged, seed=seed, stage=progress.stage)
    return Solution(
        **vars(cost_fit),
        certificate=Certificate(cost_fit.value, upper_bound=None if problem.labelled else cost_fit.value),
        outcome=Outcome.OPTIMAL,
        counted="labels" if problem.labelled else "expected",
        history=(cost_fit.value,),
        problem=problem,
    )


# ------------------------------------------------------------------------------------------------------------ notes


def _data_notes(problem: Problem, argmax_is_better: bool) -> Iterator[Note]:
    """Return what else the user should know: about the metric, the outputs and the rows."""
    if problem.aim.note:
        yield Note(NoteKind.METRIC, problem.aim.note)
    if problem.aim.average == "instance":
        text = "The instance-average is optimised through its surrogate, the micro-average."
        yield Note(NoteKind.METRIC, text)
    unlearnt = np.flatnonzero(problem.keeps_argmax)
    if len(unlearnt):
        listing = ", ".join(map(str, unlearnt[:10])) + (", ..." if len(unlearnt) > 10 else "")
        yield Note(NoteKind.DATA, f"Outputs without labels or with only one class keep plain argmax: {listing}.")
    if argmax_is_better:
        yield Note(NoteKind.WARNING, f"Plain argmax does better on these rows: try {argument('recalibrate', True)}.")
    if problem.dependence is not None and problem.labelled:
        yield Note(NoteKind.DATA, problem.dependence.words())
    source = problem.source
    if isinstance(source, MemorySource) and source.n_rows >= _SUSPICIOUS_ROWS and source.rows.all_right():
        yield Note(
            NoteKind.WARNING,
            "The most probable class is right in every row: are these rows that the model was trained on? Use "
            "out-of-fold probabilities, such as those of cross_val_predict.",
        )
