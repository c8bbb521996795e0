"""How a problem that has been read is solved: which fit is called, and what is said of its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, mention
from ..core.progress import Progress
from ..data.sources import MemorySource
from ..fitting.by_group import GroupTask, fit_by_group, values_by_group
from ..fitting.constraints.fit import Pledge, fit_within
from ..fitting.example_costs import CostSolution, fit_row_costs
from ..fitting.metadata import facts_of, informed
from ..fitting.secondary_metrics import record_rule
from ..fitting.selection import Choice, choose
from ..fitting.solving import Settings, fit
from ..goals.constraint import Constraint
from ..goals.worst import opened
from ..inference.uncertainty import threshold_range
from ..oracles.problem import Problem, Recipe, argmax_rule
from ..rules import CostRule, GroupedRule, MixtureRule, WeightedRule
from ..rules.grouped import abstaining
from ..solvers import Outcome, Solution, Solver

__all__ = ["n_stages", "solve", "solve_row_costs", "solve_within", "with_groups"]

_SUSPICIOUS_ROWS = 50  # that argmax gets right without exception, beyond which rows will have been trained on


def n_stages(
    problem: Problem, recipe: Recipe | list[Recipe] | None, pledge: Pledge | None, task: GroupTask | None
) -> int:
    """Return how many stages there are at most: of the fit, and of that of rows of unknown groups."""
    free = 4 if isinstance(recipe, list) else 1
    if pledge is None:
        return free
    several = isinstance(recipe, list) and len(recipe) > 1
    within = 2 if problem.labelled and (pledge.confidence is not None or several) else 1
    if task is None or not (task.aware and task.unknown == "blind" and task.needed(pledge.constraints)):
        return within
    return within + (within if pledge.without_groups else free)


def solve(
    problem: Problem, recipe: Recipe | list[Recipe] | None, solver: Solver | Settings, seed: int, progress: Progress
) -> Solution:
    """Choose the recipe, if there are several, fit the rule, and say what the user should know of it."""
    choice, found = None, None
    if isinstance(recipe, list):
        choice = choose(problem, recipe, solver, seed=seed, stage=progress.stage)
        recipe, found = choice.recipe, choice.rule
    progress.stage("fitting all rows")
    facts = {**facts_of(problem), "recipe": str(recipe) if choice is None else choice.name}
    solution = _plain(problem, facts) if recipe is None else fit(problem, recipe, solver, facts, found)
    solution = replace(
        solution, status=_status(solution, problem, choice), recorded=record_rule(problem, solution.rule)
    )
    if choice is None:
        return solution
    judges = choice.judges
    some = judges.schema.n_outputs < problem.schema.n_outputs  # of very many outputs, not all judge
    ranges = None if some else threshold_range(judges, solution.rule)
    return informed(
        replace(
            solution,
            gain=choice.gain,
            value_on_new_rows=choice.value,
            threshold_range=ranges if ranges is None or problem.schema.multioutput else ranges[0],
            candidates=choice.candidates,
        )
    )


def solve_within(
    problem: Problem,
    task: GroupTask | None,
    recipe: Recipe | list[Recipe] | None,
    solver: Solver | Settings,
    pledge: Pledge,
    seed: int,
    progress: Progress,
) -> Solution:
    """Fit the best rule that keeps promises."""
    if not isinstance(solver, Settings):
        raise InvalidParameter(
            "solver", f"be 'auto' if {mention('subject_to')} is given, because constraints have their own solver"
        )
    facts = facts_of(problem)
    recipes = recipe if isinstance(recipe, list) else [recipe or Recipe()]
    if task is not None and task.needed(pledge.constraints):
        found = fit_by_group(problem, task, recipes, solver, pledge, seed=seed, facts=facts, stage=progress.stage)
        if isinstance(found.rule, GroupedRule) and task.unknown != "refuse":
            other = _other_rule(problem, task, recipe, solver, pledge, seed, progress)
            found = replace(found, rule=replace(found.rule, other=other))
        return informed(replace(found, status=_status(found, problem, None)))
    solution = fit_within(problem, recipes, solver, pledge, seed=seed, facts=facts, stage=progress.stage)
    assert not isinstance(solution.rule, GroupedRule)
    solution = replace(solution, status=_status(solution, problem, None), recorded=record_rule(problem, solution.rule))
    return informed(with_groups(problem, task, solution, pledge.constraints))


def _other_rule(
    problem: Problem,
    task: GroupTask,
    recipe: Recipe | list[Recipe] | None,
    solver: Settings,
    pledge: Pledge,
    seed: int,
    progress: Progress,
) -> WeightedRule | MixtureRule:
    """Return the rule of rows of unknown groups: it abstains, or is fitted to all rows without their groups."""
    if task.unknown == "abstain":
        return abstaining(problem.schema)
    rest = pledge.without_groups
    blind = replace(problem, constraints=rest, aim=replace(problem.aim, name=opened(problem.aim.name)[0]))
    if not rest:
        rule = solve(blind, recipe, solver, seed, progress).rule
    else:
        recipes = recipe if isinstance(recipe, list) else [recipe or Recipe()]
        rule = fit_within(
            blind, recipes, solver, replace(pledge, constraints=rest), seed=seed, stage=progress.stage
        ).rule
    assert isinstance(rule, (WeightedRule, MixtureRule))
    return replace(rule, facts={})


def with_groups(
    problem: Problem, task: GroupTask | None, solution: Solution, constraints: Sequence[Constraint] = ()
) -> Solution:
    """Say how groups fare by a rule that was found without a promise about them."""
    if task is None:
        return solution
    assert not isinstance(solution.rule, GroupedRule)
    words = "No constraint is about groups, so one rule decides all of them; by_group has the results of each."
    found = values_by_group(problem, task.groups, solution.rule, constraints)
    return replace(solution, by_group=found, status=f"{solution.status} {words}".strip())


def solve_row_costs(
    problem: Problem, rule: CostRule, recipe: Recipe | list[Recipe] | None, seed: int, show_progress: bool | None
) -> CostSolution:
    """Fit the rule for costs per row; where several recipes come into question, rows left out judge it."""
    judged = isinstance(recipe, list)
    first = recipe[0] if isinstance(recipe, list) else recipe or Recipe()
    with Progress("optimize", 2 if judged else 1, show_progress) as progress:
        return fit_row_costs(problem, rule, first.recalibrate, judged=judged, seed=seed, stage=progress.stage)


def _plain(problem: Problem, facts: dict[str, Any]) -> Solution:
    """The Solution of plain argmax."""
    read_before = problem.source.passes.entries
    oracle, rule = problem.oracle(), argmax_rule(problem)
    confusion = oracle.confusions([rule.loss])[0]
    by_row = problem.aim.average == "instance"
    value = problem.value_of_rule(rule) if by_row else problem.objective(oracle).value(confusion)
    return Solution(
        rule=replace(rule, facts={**facts, "value": value, "baseline": value}),
        value=value,
        baseline=value,
        confusion=confusion[:, : problem.schema.width],
        optimized_value=value,
        status="",
        outcome=Outcome.ARGMAX,
        n_passes=problem.passes_since(read_before),
        history=(value,),
    )


def _status(solution: Solution, problem: Problem, choice: Choice | None) -> str:
    """Say what else the user should know."""
    words = [part for part in (solution.status, choice.words() if choice else "") if part]
    if problem.aim.note:
        words.append(problem.aim.note)
    if problem.aim.average == "instance":
        words.append("The instance-average is optimised through its surrogate, the micro-average.")
    kept = np.flatnonzero(problem.keeps_argmax)
    if len(kept):
        listing = ", ".join(map(str, kept[:10])) + (", ..." if len(kept) > 10 else "")
        words.append(f"Outputs without labels or with only one class keep plain argmax: {listing}.")
    if solution.value < solution.baseline - 1e-12 and not solution.constraints:  # not by rounding alone
        words.append("Plain argmax does better on these rows: try recalibrate=True.")
    if problem.dependence is not None and problem.labelled:
        words.append(problem.dependence.words())
    source = problem.source
    if isinstance(source, MemorySource) and source.n_rows >= _SUSPICIOUS_ROWS and source.rows.all_right():
        words.append(
            "The most probable class is right in every row: are these rows that the model was trained on? Use "
            "out-of-fold probabilities, such as those of cross_val_predict."
        )
    return " ".join(words)
