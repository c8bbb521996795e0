"""The parts of a problem that are guaranteed one by one: outputs, and sensitive groups whose rules differ.

Each has one output, the rows whose labels are observed, and bounds on proportions of them. Must not know tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidParameter, argument, mention
from ...core.labels import python_labels
from ...core.losses import Loss
from ...core.probabilities import Probabilities
from ...goals.constraint import Constraint
from ...goals.proportions import Proportion, proportions_of
from ...oracles.problem import InMemory, Problem
from ...rules.calibration import TemperatureScaling
from ..solving import FitTask
from .chain import OtherRows, ScoreFamily

__all__ = ["Piece", "check_rows", "split_pieces"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Piece:
    """One output, or the rows of one sensitive group of it, whose bounds are tested by themselves.

    Parameters
    ----------
    rows : InMemory
        Of a single output, all with labels.
    constraints : tuple of Constraint
    proportions : tuple of Proportion
        What these bound.
    output : int
        The output among those of the problem, whose outputs come once for every group that has a rule of its own.
    unlabelled : Probabilities or None
        Of rows without labels.
    title : str, default=""
        Which group or output it is.
    """

    rows: InMemory
    constraints: tuple[Constraint, ...]
    proportions: tuple[Proportion, ...]
    output: int = 0
    unlabelled: Probabilities | None = None
    title: str = ""

    def take(self, rows: IntArray) -> Piece:
        """Return the same of some of the rows."""
        return replace(self, rows=self.rows.take(rows))

    @property
    def above(self) -> BoolArray | None:
        """Which decisions (D,) are those of rows above a threshold, where one threshold makes the rule; else None.

        Two classes have a threshold on the probability of the second. Rules that may abstain have one on the largest
        probability, if no bound tells classes apart.
        """
        schema = self.rows.schema
        n_decisions = schema.decision_width
        if schema.input.graded:
            return None
        if schema.n_extra == 0:
            return np.array([False, True]) if schema.width == 2 else None
        symmetric = all(_is_symmetric(cells) for p in self.proportions for cells in (p.successes, p.trials))
        return np.arange(n_decisions) < schema.width if symmetric and not schema.input.is_scores else None

    @property
    def family(self) -> ScoreFamily:
        """The rules of one threshold."""
        rows, schema = self.rows.source.rows, self.rows.schema
        assert rows.codes is not None
        score, decision = self._scores(rows.proba)
        undecided = np.full(len(score), schema.width if schema.n_extra else 0, dtype=np.intp)
        shape = schema.width, schema.decision_width
        return ScoreFamily(score, rows.codes[:, 0].astype(np.intp), decision, undecided, shape, rows.group)

    def place(self, proba: Probabilities) -> OtherRows:
        """Return other rows as they place thresholds; scores alone say nothing of successes."""
        score, row_input = self._scores(proba)[0], self.rows.schema.input
        if row_input.is_scores:
            return OtherRows(score)
        is_logit = row_input.is_logits and self.rows.schema.n_extra == 0
        return OtherRows(score, 1.0 / (1.0 + np.exp(-np.clip(score, -500, 500))) if is_logit else score)

    def _scores(self, proba: Probabilities) -> tuple[FloatArray, IntArray]:
        """Return the score of each row of one output, (N,), and what it is decided as above a threshold."""
        if self.rows.schema.n_extra == 0:
            score = proba.positive_column(0)
            return score, np.ones(len(score), dtype=np.intp)
        eta = proba.output(0)[:, 0].astype(np.float64)
        eta = np.stack([1.0 - eta, eta], axis=1) if eta.ndim == 1 else eta
        return eta.max(axis=1), eta.argmax(axis=1)

    def count_losses(self, losses: Sequence[Loss], link: TemperatureScaling | None, group: int | None) -> IntArray:
        """Return the rows of each true class and decision (T, K, D) by losses behind a link, of one group or all."""
        group_of_row = self.rows.source.rows.group
        rows = self.rows if group is None else self.rows.take(np.flatnonzero(group_of_row == group))
        k = self.rows.schema.width
        shares = rows.oracle("labels", link).confusions(losses)[:, 0, :k]
        return np.rint(shares * rows.n_rows).astype(np.int64)


def _is_symmetric(cells: BoolArray) -> bool:
    """Whether cells (K, K + 1) are the same for all classes: the diagonal, the other cells, and abstentions."""
    k = len(cells)
    decided, wrong = cells[:, :k], ~np.eye(k, dtype=bool)
    return all(len(np.unique(part)) == 1 for part in (np.diag(decided), decided[wrong], cells[:, k:]) if part.size)


def split_pieces(task: FitTask, rows: InMemory, unlabelled: Probabilities | None) -> list[Piece]:
    """Return the pieces of a task: the constrained outputs, once for every group that may have a rule of its own."""
    n_outputs, n_groups = rows.schema.n_outputs, 1
    by_group = task.has_group_rules
    if by_group and task.groups is not None:
        n_groups = len(task.groups.names)
        _check_about_groups(task.goal.constraints)
    pieces = []
    for g in range(n_groups):
        for m in range(n_outputs):
            of_piece = tuple(
                replace(c, output=None if n_outputs == 1 else 0, group=None if by_group else c.group)
                for c in task.goal.constraints
                if (n_outputs == 1 or c.output == m) and (not by_group or c.group == g)
            )
            if of_piece:
                piece = _piece(rows, of_piece, m, g if by_group else None, unlabelled)
                pieces.append(replace(piece, title=_title(task, m, g if by_group else None)))
    return pieces


def _title(task: FitTask, m: int, group: int | None) -> str:
    """Return how a sentence names one of several pieces."""
    schema, parts = task.problem.schema, []
    if schema.n_outputs > 1:
        parts.append(f"of output {m if schema.output_names is None else schema.output_names[m]!r}")
    if group is not None and task.groups is not None:
        parts.append(f"in group {task.groups.names[group]!r}")
    return " ".join(parts)


def _piece(
    rows: InMemory, constraints: tuple[Constraint, ...], m: int, group: int | None, unlabelled: Probabilities | None
) -> Piece:
    single = rows if rows.schema.n_outputs == 1 else rows.of_outputs(np.array([m]))
    part = single.source.rows
    assert part.codes is not None
    shown = part.codes[:, 0] >= 0
    inside = shown if group is None else shown & (part.group == group)
    single = single if inside.all() else single.take(np.flatnonzero(inside))
    labels = python_labels(np.asarray(single.schema.classes[0]))
    proportions = [p for c in constraints for p in _proportions(c, len(labels), labels)]
    if unlabelled is not None and unlabelled.n_outputs > 1:
        unlabelled = unlabelled.of_outputs(np.array([m]))
    return Piece(single, constraints, tuple(proportions), (group or 0) * rows.schema.n_outputs + m, unlabelled)


def _proportions(constraint: Constraint, n_classes: int, labels: Sequence[object]) -> list[Proportion]:
    """Return the proportions that a constraint bounds; refuse all others by name."""
    proportions = proportions_of(constraint, n_classes, labels)
    if proportions is not None:
        return proportions
    if constraint.minus is not None:
        reason = "bounds a gap between groups"
    elif constraint.near_prior:
        reason = "bounds the distance to a class share that is not known either"
    elif np.isfinite(constraint.high) and np.isinf(constraint.low):
        reason = f"bounds {constraint.metric.name} from above"
    else:
        reason = f"bounds {constraint.metric.name}"
    raise InvalidParameter(
        "guarantee",
        problem=f"{argument('guarantee', 'exact')} is for proportions of rows, but {constraint.name!r} {reason}, which "
        "is none",
        remedy="bound precisions, recalls, accuracy, false positive rates, shares or the smallest recall, or leave "
        f"{mention('guarantee')} out: {mention('confidence')} is for all metrics",
    )


def _check_about_groups(constraints: Sequence[Constraint]) -> None:
    """Refuse bounds on the rows of all groups beside rules by group."""
    for constraint in constraints:
        if constraint.group is None:
            raise InvalidParameter(
                "guarantee",
                problem=f"{argument('guarantee', 'exact')} tests each group by itself if groups have their own rules, "
                f"but {constraint.name!r} is about the rows of all groups",
                remedy="bound it in every group, or leave it out",
            )


def check_rows(task: FitTask) -> None:
    """Refuse rows and settings for which no exact guarantee is known."""
    problem, goal = task.problem, task.goal
    schema = problem.schema
    glance = problem.source.glance(1)
    several = schema.n_outputs > 1
    refusals = [
        (not problem.labelled, "y", "needs labels, got None", "pass y"),
        (
            glance.repeats is not None,
            "sample_weight",
            "needs rows of equal weight, got frequencies",
            "leave guarantee out",
        ),
        (
            problem.dependence is not None,
            "groups",
            "needs independent rows, but rows in time depend on one another",
            "leave guarantee out",
        ),
        (
            glance.cluster is not None,
            "groups",
            "needs independent rows, but groups say that some belong together",
            "pass one row of each group",
        ),
        (
            glance.weight is not None,
            "sample_weight",
            "needs rows of equal weight, got weights",
            "leave sample_weight out",
        ),
        (problem.prior is not None, "prior", "is about rows like those given, got other class priors", "leave it out"),
        (
            task.settings.randomized,
            "randomized",
            "is for single rules, got randomized=True",
            "leave it out",
        ),
        (
            several and problem.aim.average != "macro",
            "average",
            f"needs average='macro' for several outputs, which have a rule each, got {problem.aim.average!r}",
            "pass average='macro'",
        ),
        (
            goal.worst_group,
            "metric",
            "is not available for the value of the worst group",
            "bound the metric in every group instead",
        ),
    ]
    for refused, parameter, reason, remedy in refusals:
        if refused:
            raise InvalidParameter(parameter, problem=f"{argument('guarantee', 'exact')} {reason}", remedy=f"{remedy}")
    _check_outputs(problem)


def _check_outputs(problem: Problem) -> None:
    """Refuse bounds on several outputs together, whose labels in a row depend on one another."""
    if problem.schema.n_outputs == 1:
        return
    for constraint in problem.constraints:
        if constraint.output is None:
            raise InvalidParameter(
                "subject_to",
                problem=f"{argument('guarantee', 'exact')} needs bounds on single outputs, but {constraint.name!r} "
                "pools several, whose labels in a row depend on one another",
                remedy="name the output, as in precision[output, class]",
                owner="subject_to",
            )
