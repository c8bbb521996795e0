"""From what was asked to a problem: rows are opened, the goal is read, and both are checked against one another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import InvalidParameter, mention
from ..core.messages import shown
from ..data import Labels, RowSpec, Schema, warn_of_assignment, warn_of_order
from ..data.open import open_rows
from ..data.sources import MemorySource, SourceBase
from ..goals.spec import Goal, GoalSpec
from ..inference.dependence import in_stretches
from ..oracles.problem import InMemory, Problem

if TYPE_CHECKING:  # loaded by the calls that need them: the rest is imported sooner
    from ..fitting.by_group import GroupTask

__all__ = ["check_constraints", "make_problem", "open_problem", "read_seed"]

_DOUBTED_ROWS = 1 << 10  # of a source that is not in memory, which say whether columns may be of other classes


def open_problem(rows: RowSpec, spec: GoalSpec) -> tuple[Problem, GroupTask | None, Goal]:
    """Open rows and read the goal for them.

    Parameters
    ----------
    rows : RowSpec
    spec : GoalSpec

    Returns
    -------
    Problem
    GroupTask or None
        None without sensitive groups.
    Goal
    """
    warn_of_order(proba=rows.proba, y=rows.y, sample_weight=rows.weight)
    rows = rows if rows.pos_label is not None else replace(rows, pos_label=spec.column_class)
    schema, source = open_rows(rows)
    sensitive = rows.read_sensitive(source.n_rows)
    names = None if sensitive is None else sensitive.groups.names
    goal = spec.read(schema, names, (lambda: source.class_rows) if source.labelled else None)
    return *make_problem(rows, schema, source, goal), goal


def make_problem(rows: RowSpec, schema: Schema, source: SourceBase, goal: Goal) -> tuple[Problem, GroupTask | None]:
    """Return the problem of rows and a goal, and what is asked of sensitive groups; refuse what rows do not allow."""
    goal.check_rows(source.rows.weight if isinstance(source, MemorySource) else None, source.labelled)
    described = source.described(replace(schema, abstain_label=goal.schema.abstain_label))
    problem = Problem(described, goal.aim, goal.prior, goal.record, goal.abstention, goal.constraints)
    _check_observed(problem)
    if source.labelled and not isinstance(rows.y, Labels):  # an estimator has assigned columns by its classes
        some = source.rows if isinstance(source, MemorySource) else source.glance(_DOUBTED_ROWS)
        assert some.codes is not None
        warn_of_assignment(some.proba, some.codes, schema.classes, schema.column_order)
    if rows.time is not None:
        problem = _in_time(problem, rows.time.length)
    return _by_group(problem, rows, goal)


def _by_group(problem: Problem, rows: RowSpec, goal: Goal) -> tuple[Problem, GroupTask | None]:
    """Return the problem whose rows know their sensitive group."""
    sensitive = rows.sensitive
    features = rows.read_sensitive(problem.n_rows)
    if sensitive is None or features is None:
        return problem, None
    sensitive.check(may_abstain=goal.abstention is not None)
    codes = features.codes

    def with_group(some: Any) -> Any:
        return replace(some, group=codes[some.start : some.start + some.n_rows])

    from ..fitting.by_group import GroupTask

    task = GroupTask(features.groups, bool(sensitive.group_aware), goal.worst_group, sensitive.unknown)
    return replace(problem, source=problem.source.map(with_group)), task


def check_constraints(problem: Problem, task: GroupTask | None, goal: Goal) -> None:
    """Refuse constraints that no rule can change on these rows."""
    if not goal.constrained:
        return
    names = None if task is None else task.groups.names
    apart = task is not None and task.needed(goal.constraints)
    from ..fitting.constraints.resolve import check_shown

    check_shown(goal.constraints, problem.by_group(task.n_groups, aware=True) if apart and task else problem, names)


def _in_time(problem: Problem, length: int | None) -> Problem:
    """Return the problem whose rows belong together by stretches of time."""
    source = problem.source
    assert isinstance(source, MemorySource)  # others refuse InTime
    judged = InMemory(source, problem.aim, problem.prior, allowed=problem.allowed)
    return replace(problem, source=in_stretches(source, [judged], length))


def _check_observed(problem: Problem) -> None:
    """Refuse weights that leave no observed label."""
    if not problem.labelled:
        return
    seen = problem.source.class_weights > 0
    if not seen[problem.aim.output_weight > 0].any():
        raise InvalidParameter(
            "sample_weight",
            problem="no observed label has a positive weight",
            remedy=f"check {mention('sample_weight')} and {mention('output_weight')}",
        )
    if problem.schema.n_outputs == 1 and seen.sum() < 2:
        raise InvalidParameter("sample_weight", "be positive for rows of at least two classes", "only one such class")


def read_seed(random_state: Any) -> int:
    """Return the seed that `random_state` stands for."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    raise InvalidParameter("random_state", "be None or a non-negative integer", shown(random_state))
