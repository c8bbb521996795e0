"""From user input to a problem: rows are opened, the goal is read, and both are checked against one another."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, argument, mention, shown
from ..core.inputs import Input
from ..core.probabilities import Probabilities
from ..core.schema import Schema
from ..data.assignment import warn_of_assignment
from ..data.frames import warn_of_order
from ..data.labels import Labels
from ..data.logits import warn_of_probabilities
from ..data.open import open_rows
from ..data.row_spec import InTime, RowSpec
from ..data.sensitive import Groups, read_segments, read_sensitive, read_sensitive_features
from ..data.sources.base import SourceBase
from ..data.sources.memory import MemorySource
from ..fitting.kept import depends_on_shares
from ..fitting.solving import FitTask
from ..goals.spec import Goal, GoalSpec
from ..inference.dependence import in_stretches
from ..inference.judge import trial_influences
from ..oracles.problem import InMemory, Problem
from ..rules.calibration_fit import LINK_ROWS
from ..rules.metadata import RuleMetadata
from ..rules.reading import read_probabilities
from ..rules.score_map import fit_input, map_scores

__all__ = ["check_constraints", "make_problem", "open_problem", "open_source", "read_seed", "read_unlabelled"]

_SAME_SHARES = 1e-9  # difference of class shares that is rounding
_DOUBTED_ROWS = 1 << 10  # of a source that is not in memory, which say whether columns may be of other classes


def open_problem(rows: RowSpec, spec: GoalSpec) -> tuple[Problem, Groups | None, Goal]:
    """Open rows and read the goal for them; return the problem, the sensitive groups if there are any, and the goal."""
    warn_of_order(proba=rows.proba, y=rows.y, sample_weight=rows.weight)
    rows = rows.with_class(spec.column_class)
    schema, source = open_source(rows)
    names = None
    if source.partition is not None:
        names = source.partition.groups.names
    elif (sensitive := read_sensitive(rows, source.n_rows)) is not None:
        names = sensitive.groups.names
    goal = spec.read(schema, names, (lambda: source.class_rows) if source.labelled else None)
    return *make_problem(rows, schema, source, goal), goal


def open_source(rows: RowSpec) -> tuple[Schema, SourceBase]:
    """Open rows; scores are mapped to probabilities by a map that is fitted to their labels."""
    schema, source = open_rows(rows)
    if not schema.input.is_scores:
        return schema, source
    if not source.labelled:
        raise InvalidParameter(
            "y",
            f"be given if {argument('input', 'scores')}, because scores have no scale but that which labels show",
            "None",
            f"pass labels, or logits with {argument('input', 'logits')}",
        )
    some = source.sample(LINK_ROWS)
    assert some.codes is not None
    schema = replace(schema, input=fit_input(some.proba, some.codes, some.weight, some.frequency, schema.input))
    return schema, source.map(partial(_with_map, schema.input)).described(schema)


def _with_map(row_input: Input, rows: Any) -> Any:
    """Return rows of scores behind their map."""
    return replace(rows, proba=map_scores(rows.proba, row_input))


def make_problem(rows: RowSpec, schema: Schema, source: SourceBase, goal: Goal) -> tuple[Problem, Groups | None]:
    """Return the problem of rows and a goal, and the sensitive groups; refuse what rows do not allow."""
    goal.check_rows(source.rows.weight if isinstance(source, MemorySource) else None, source.labelled)
    if goal.schema.abstain_label is not None:
        source = source.described(replace(schema, abstain_label=goal.schema.abstain_label))
    problem = Problem(source, goal.aim, goal.prior, goal.record, goal.abstention, goal.constraints)
    problem = _without_idle_prior(problem)
    _check_observed(problem)
    if not isinstance(rows.y, Labels):  # an estimator has assigned columns by its classes
        _warn_of_columns(source, schema)
    if rows.time is not None:
        problem = _in_time(problem, rows.time)
    return _by_group(problem, rows, goal)


def _without_idle_prior(problem: Problem) -> Problem:
    """Return the problem without priors that are those of its labels, or that nothing it is about depends on."""
    if problem.prior is None or not problem.labelled:
        return problem
    weights = problem.source.class_weights[:, : problem.schema.width]
    shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    if np.abs(shares - problem.prior).max() <= _SAME_SHARES:
        return replace(problem, prior=None)
    same_classes = ((shares > 0) == (problem.prior > 0)).all()  # a class that comes or goes changes means of recalls
    if not same_classes or problem.record or depends_on_shares(problem):
        return problem
    text = f"{problem.aim.name} is a function of recalls and does not change with class shares: prior is not used."
    aim = replace(problem.aim, note=" ".join(filter(None, [problem.aim.note, text])))
    return replace(problem, prior=None, aim=aim)


def _warn_of_columns(source: SourceBase, schema: Schema) -> None:
    """Warn of columns that seem to be of other classes, or of something else than was declared."""
    if not (source.labelled or (schema.single and schema.input.is_logits)):
        return
    some = source.rows if isinstance(source, MemorySource) else source.glance(_DOUBTED_ROWS)
    if not warn_of_probabilities(some.proba, schema.input) and some.codes is not None:
        warn_of_assignment(some.proba, some.codes, schema.classes, schema.column_order)


def _by_group(problem: Problem, rows: RowSpec, goal: Goal) -> tuple[Problem, Groups | None]:
    """Return the problem whose rows know their sensitive group or their segment, and the groups or segments."""
    source: Any = problem.source
    sensitive = rows.sensitive
    if rows.segments is not None:
        _check_segments(problem, rows, goal)
        features = read_segments(rows.segments, problem.n_rows)
    elif sensitive is not None and source.partition is not None:
        sensitive.check(may_abstain=goal.abstention is not None)
        return problem, source.partition.groups
    elif sensitive is not None:
        features = read_sensitive_features(sensitive.values, problem.n_rows)
        sensitive.check(may_abstain=goal.abstention is not None)
    else:
        return problem, None
    codes = features.codes

    def with_group(part: Any) -> Any:
        return replace(part, group=codes[part.start : part.start + part.n_rows])

    return replace(problem, source=problem.source.map(with_group)), features.groups


def _check_segments(problem: Problem, rows: RowSpec, goal: Goal) -> None:
    """Refuse rows and goals that segments cannot be combined with."""
    name = mention("segments")
    if rows.sensitive_features is not None:
        raise InvalidParameter(
            "segments",
            problem=f"{name} and {mention('sensitive_features')} cannot both be given, because what is promised about "
            "groups would depend on segments",
            remedy="leave one of them out",
        )
    if not problem.labelled:
        raise InvalidParameter("y", f"be given if {name} are, because labels tell how segments differ", "None")
    if goal.guarantee is not None:
        raise InvalidParameter(
            "segments",
            problem=f"{argument('guarantee', goal.guarantee)} cannot be combined with {name}, whose calibration is "
            "fitted to the same labels",
            remedy=f"leave {mention('guarantee')} out: the confidence is then approximate",
        )
    if problem.schema.input.graded:
        raise InvalidParameter(
            "segments",
            problem=f"{name} need a number for each class, got one score for ordered classes",
            remedy="pass probabilities of the classes",
        )
    if not isinstance(problem.source, MemorySource):
        raise InvalidParameter(
            "segments",
            problem=f"{name} need rows in memory, got a table or a lazy collection",
            remedy="read it into a data frame first, or a sample of it",
        )


def read_unlabelled(rows: RowSpec, problem: Problem, goal: Goal) -> Probabilities | None:
    """Read rows without labels, of the form of the labelled ones; they serve a guarantee only."""
    if rows.unlabelled is None:
        return None
    if goal.guarantee is None:
        raise InvalidParameter(
            "unlabelled",
            problem=f"{mention('unlabelled')} is for {argument('guarantee', 'exact')}, which is not given",
            remedy="leave it out",
        )
    schema = problem.schema
    metadata = RuleMetadata(**schema.column_facts)
    try:
        others = read_probabilities(rows.unlabelled, schema, metadata, rows.pos_label if schema.single else None)
    except InvalidParameter as error:
        raise error.within(f"{mention('unlabelled')}: ") from None
    source = problem.source
    if isinstance(source, MemorySource) and _are_same(others, source.rows.proba):
        raise InvalidParameter("unlabelled", "be other rows than those that are tested", "the same", "leave it out")
    return others


def _are_same(first: Probabilities, second: Probabilities) -> bool:
    """Whether two sets of rows are the same, in the same order."""
    pairs = zip(first.blocks, second.blocks, strict=False)
    return first.n_rows == second.n_rows and all(np.array_equal(block, other) for block, other in pairs)


def check_constraints(task: FitTask) -> None:
    """Refuse constraints about classes or groups that no row shows."""
    goal, problem, names = task.goal, task.problem, None if task.groups is None else task.groups.names
    if not goal.constrained:
        return
    from ..fitting.constraints.resolve import check_shown

    by_group = problem.by_group(len(names), aware=True) if task.by_group and names is not None else problem
    check_shown(goal.constraints, by_group, names)


def _in_time(problem: Problem, time: InTime) -> Problem:
    """Return the problem whose rows belong together by time periods."""
    source = problem.source
    assert isinstance(source, MemorySource)  # others refuse InTime
    judged = InMemory(source, problem.aim, problem.prior, allowed=problem.allowed)
    return replace(problem, source=in_stretches(source, trial_influences([judged]), time))


def _check_observed(problem: Problem) -> None:
    """Refuse weights that leave no observed label."""
    if not problem.labelled:
        return
    observed = problem.source.class_weights > 0
    if not observed[problem.aim.output_weight > 0].any():
        raise InvalidParameter(
            "sample_weight",
            problem="no observed label has a positive weight",
            remedy=f"check {mention('sample_weight')} and {mention('output_weight')}",
        )
    if problem.schema.n_outputs == 1 and observed.sum() < 2:
        raise InvalidParameter("sample_weight", "be positive for rows of at least two classes", "only one such class")


def read_seed(random_state: Any) -> int:
    """Return the seed that `random_state` stands for."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    raise InvalidParameter("random_state", "be None or a non-negative integer", shown(random_state))
