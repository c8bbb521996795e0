"""What is fitted and what comes of it (FitTask, FittedRule), the choice of a solver, and the fit of one rule.

Must not know how a recipe is selected, nor read user input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, mention
from ..core.losses import Loss
from ..core.notes import Note, NoteKind, note_list
from ..core.probabilities import Probabilities
from ..data.row_spec import Sensitive
from ..data.sensitive import Groups
from ..goals.spec import Goal
from ..goals.worst import opened
from ..inference.label_summary import LabelSummary
from ..inference.results import Candidate, ConstraintResult, Estimate, Gain, Recorded
from ..metrics.naming import PerOutput
from ..metrics.objective import Objective
from ..oracles.base import Oracle, TooManyChangesError
from ..oracles.counts import Counts
from ..oracles.problem import FitStrategy, Problem, argmax_rule
from ..rules.base import described
from ..rules.calibration import TemperatureScaling
from ..rules.example_cost import CostRule
from ..rules.metadata import RuleMetadata
from ..rules.weighted import WeightedRule
from ..solvers import SOLVERS, make_solver
from ..solvers.base import BaseSolver, Solver
from ..solvers.joined import Part, join
from ..solvers.result import Certificate, Outcome, SolverResult, count_rule

__all__ = ["WIDE", "FitTask", "FittedRule", "Settings", "choose_solver", "fit", "present", "solve"]

WIDE = 200  # classes, beyond which a full loss is not walked along


@dataclass(frozen=True)
class Settings:
    """Settings of whichever solver suits the metric; a solver ignores those that it has no use for."""

    randomized: bool = False
    seed: int = 0
    tol: float | None = None
    max_iter: int | None = None
    n_random: int | None = None

    def make(self, oracle: Oracle, objective: Objective, *, walks: bool = True) -> Solver:
        """Return the solver that fits; `walks` is False where one that walks along a line of losses cannot."""
        name = choose_solver(oracle, objective, self.randomized, walks)
        return make_solver(name, **{key: vars(self)[key] for key in vars(self).keys() & SOLVERS[name].settings()})


@dataclass(frozen=True, eq=False)
class FitTask:
    """A problem, the goal that it was made for, and how a rule is looked for.

    Parameters
    ----------
    problem : Problem
    goal : Goal
    recipes : FitStrategy, or list of FitStrategy
        A list is left to the selection.
    solver : Solver or Settings
    seed : int
    groups : Groups or None
        The sensitive groups that rows have.
    segments : Groups or None
        The segments that rows have.
    sensitive : Sensitive or None
        What the rule may know of them.
    cost_rule : CostRule or None
        The rule of least expected cost, still without its link, if rows have costs of their own.
    unlabelled : Probabilities or None
        Rows without labels, which place the candidates of a guarantee.
    stage : callable
        Called with the name of each stage.
    """

    problem: Problem
    goal: Goal
    recipes: FitStrategy | list[FitStrategy]
    solver: Solver | Settings
    seed: int = 0
    groups: Groups | None = None
    sensitive: Sensitive | None = None
    cost_rule: CostRule | None = None
    unlabelled: Probabilities | None = None
    stage: Callable[[str], None] = lambda _: None
    segments: Groups | None = None

    @property
    def recipe_list(self) -> list[FitStrategy]:
        """The recipes, one or several."""
        return self.recipes if isinstance(self.recipes, list) else [self.recipes]

    @property
    def settings(self) -> Settings:
        """The settings of the solver of constraints; any other solver is refused."""
        if not isinstance(self.solver, Settings):
            raise InvalidParameter(
                "solver", f"be 'auto' if {mention('subject_to')} is given, because constraints have their own solver"
            )
        return self.solver

    @property
    def by_group(self) -> bool:
        """Whether what is asked for is about single sensitive groups."""
        about_groups = self.goal.worst_group or any(c.group is not None for c in self.goal.constraints)
        return self.groups is not None and about_groups

    @property
    def group_aware(self) -> bool:
        """Whether the rule may use the sensitive group of a row."""
        return self.sensitive is not None and bool(self.sensitive.group_aware)

    @property
    def has_group_rules(self) -> bool:
        """Whether each sensitive group has a rule of its own."""
        return self.by_group and self.group_aware

    @property
    def fits_unknown_groups(self) -> bool:
        """Whether rows of unknown groups are decided by a rule that is fitted without groups."""
        return self.group_aware and self.sensitive is not None and self.sensitive.unknown == "blind"

    def without_groups(self) -> FitTask:
        """Return the task without groups and constraints about them."""
        constraints = tuple(c for c in self.goal.constraints if c.group is None)
        goal = replace(self.goal, constraints=constraints, worst_group=False)
        aim = replace(self.problem.aim, name=opened(self.problem.aim.name)[0])
        problem = replace(self.problem, constraints=constraints, aim=aim)
        return replace(self, problem=problem, goal=goal, groups=None, sensitive=None)


@dataclass(frozen=True, eq=False)
class FittedRule:
    """A rule in the user's labels, behind its link, and what is known about it: the fields of a Solution."""

    rule: Any
    value: float
    baseline: float
    confusion: NDArray[np.float64]
    counted: Literal["labels", "expected"]
    certificate: Certificate
    outcome: Outcome
    notes: tuple[Note, ...]
    history: tuple[float, ...]
    n_passes: int
    gain: Gain | None = None
    value_on_new_rows: Estimate | None = None
    threshold_range: NDArray[np.float64] | None = None
    candidates: tuple[Candidate, ...] = ()
    recorded: dict[str, Recorded] = field(default_factory=dict)
    constraints: tuple[ConstraintResult, ...] = ()
    by_group: dict[Any, dict[str, Recorded]] = field(default_factory=dict)
    by_label: LabelSummary | None = None


# From the most exact to the most general; of those whose needs are met, the first that is not ruled out.
_PREFERENCE = ("closed_form", "path", "dinkelbach", "sweep", "column_generation", "frank_wolfe", "ascent")


def choose_solver(oracle: Oracle, objective: Objective, randomized: bool = False, walks: bool = True) -> str:
    """Name the solver that is exact, or else best, for what the objective is and what the oracle counts."""
    ratio, ruled_out = objective.ratio, set()
    if objective.width == 2 and not oracle.certified:
        # With labels the sweep is exact over all thresholds. With probabilities the path is so over all rules, also
        # those that predict class 1 where it is less likely.
        ruled_out |= {"closed_form", "path", "dinkelbach"}
    if not walks:
        # Dinkelbach's iteration reaches what the path would, but for the last thresholds between rows.
        ruled_out = {"path", "sweep"}
    if randomized and ratio is None:
        ruled_out.add("sweep")  # a mixture may be better than any threshold
    if ratio is not None and objective.width > WIDE and not ratio.line[0].is_diagonal:
        # A row that weighs very many classes cell by cell changes its decision as often: the walk along them all costs
        # far more than the few rules that Dinkelbach's iteration asks for.
        ruled_out.add("path")
    return next(name for name in _PREFERENCE if name not in ruled_out and not SOLVERS[name].needs.missing(objective))


def solve(
    problem: Problem, recipe: FitStrategy, solver: Solver | Settings, link: TemperatureScaling | None
) -> SolverResult:
    """Fit a rule by a recipe behind a link; the rule of the result is over codes, without the link."""
    oracle = problem.oracle(recipe.confusion, link)
    return _maximise(problem, recipe, solver, oracle, problem.objective(oracle, recipe))


def _maximise(
    problem: Problem, recipe: FitStrategy, solver: Solver | Settings, oracle: Counts, objective: Objective
) -> SolverResult:
    """Solve by the solver that is given, or by the one that fits each part of the outputs."""
    if len(problem.parts) > 1:
        return _maximise_parts(problem, recipe, solver, oracle, objective)
    if not isinstance(solver, Settings):
        return solver.solve(oracle, objective)
    try:
        return solver.make(oracle, objective).solve(oracle, objective)
    except TooManyChangesError as error:
        other = solver.make(oracle, objective, walks=False).solve(oracle, objective)
        return replace(other, notes=(*other.notes, *note_list(NoteKind.WARNING, error.words)))


def _maximise_parts(
    problem: Problem,
    recipe: FitStrategy,
    solver: Solver | Settings,
    oracle: Counts,
    objective: Objective,
) -> SolverResult:
    """Solve outputs of different metrics each by what its own metric is, which loses nothing: they never interact."""
    metric = problem.aim.metric
    assert isinstance(metric, PerOutput)
    learns = ~problem.keeps_argmax & (objective.grouping.group >= 0)
    tasks = []
    for outputs in (members[learns[members]] for members in problem.parts if learns[members].any()):
        title, part = metric.title(outputs.tolist()), problem.of_outputs(outputs)
        own_oracle = part.oracle(recipe.confusion, None if oracle.link is None else oracle.link.of_outputs(outputs))
        own_objective = part.objective(own_oracle, recipe)
        if isinstance(solver, BaseSolver):  # refused before any part is solved
            solver.needs.check(own_objective, type(solver).__name__, title)
        tasks.append((outputs, title, part, own_oracle, own_objective))
    parts = [
        Part(outputs, title, _maximise(part, recipe, solver, own_oracle, own_objective))
        for outputs, title, part, own_oracle, own_objective in tasks
    ]
    return join(oracle, objective, parts)


def fit(
    problem: Problem,
    recipe: FitStrategy,
    solver: Solver | Settings,
    metadata: RuleMetadata | None = None,
    fitted: tuple[WeightedRule, TemperatureScaling | None] | None = None,
) -> FittedRule:
    """Fit a rule to a problem by a recipe and count it.

    `metadata` is that of the rule without its value; `fitted` is a rule over codes and its link, which is only counted.
    """
    link = problem.link(recipe.recalibrate) if fitted is None else fitted[1]
    read_before = problem.source.passes.entries
    oracle = problem.oracle(recipe.confusion, link)
    objective = problem.objective(oracle, recipe)
    if fitted is None:
        result = _maximise(problem, recipe, solver, oracle, objective)
    else:
        result = count_rule(oracle, objective, fitted[0].loss, status="", outcome=Outcome.LOCAL)
    return present(problem, recipe, oracle, objective, result, metadata, read_before)


def present(
    problem: Problem,
    recipe: FitStrategy,
    oracle: Counts,
    objective: Objective,
    result: SolverResult,
    metadata: RuleMetadata | None = None,
    read_before: int = 0,
) -> FittedRule:
    """Count a rule that was found by a recipe: with labels if there are any, beside argmax.

    `oracle` and `objective` are those of the recipe, behind the link; `read_before` is the number of entries that had
    been read before the fit began.
    """
    link, confusion, value, baseline = oracle.link, result.confusion, result.value, result.baseline
    argmax = [Loss.argmax(problem.schema.decision_width)]
    if not problem.labelled:
        if link is not None:  # without one, argmax is what the solver has counted beside its rule
            baseline = objective.value(oracle.confusions(argmax, linked=False)[0])
    elif recipe.confusion != "labels" or link is not None or objective.padding is not None:
        # What the solver has counted is not what the user is judged by: labels, and nothing else.
        counts = oracle if recipe.confusion == "labels" else oracle.counting("labels")
        judged = objective if counts is oracle and objective.padding is None else problem.objective(counts)
        if recipe.confusion != "labels":
            confusion = problem.confusion_of_rule(result.rule, counts)
        value, baseline = judged.value(confusion), judged.value(problem.argmax_confusion(counts))
    rule = result.named(problem.schema, link)
    if problem.labelled and problem.aim.average == "instance":
        value, baseline = (problem.value_of_rule(judged_rule) for judged_rule in (rule, argmax_rule(problem)))
    certificate = result.certificate
    if objective.frozen.any():
        certificate = replace(certificate, upper_bound=None)  # outputs that keep argmax might do better
    metadata = (metadata or RuleMetadata()).updated(value=value, baseline=baseline)
    return FittedRule(
        rule=described(rule, metadata),
        value=value,
        baseline=baseline,
        confusion=confusion[:, : problem.schema.width],
        counted="labels" if problem.labelled else "expected",
        certificate=certificate,
        outcome=result.outcome,
        notes=result.notes,
        history=result.history,
        n_passes=problem.passes_since(read_before),
    )
