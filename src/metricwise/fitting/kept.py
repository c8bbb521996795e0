"""What a fitted rule keeps of its rows, so that it can be judged on and moved to rows without labels.

A calibration with its sampling error, the class shares, and what becomes of the rule if these move. Must not know user
input.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.schema import Schema
from ..goals.constraint import Constraint
from ..metrics.aim import AveragedMetric
from ..metrics.class_shares import depends_on_shares as metric_depends
from ..metrics.class_shares import fixed_gains
from ..oracles.problem import Problem
from ..rules.base import Rule
from ..rules.class_shares import APPROXIMATE, EXACT, UNCHANGED
from .solving import FitTask, FittedRule

__all__ = ["constraint_depends", "depends_on_shares", "kept_entries"]

FloatArray = NDArray[np.float64]

# The best decisions for a fixed table of gains follow all of a shift, those for functions of recalls nothing of it, and
# those for ratios and other metrics something between. With 0.25 to 0.4, rules for kappa, MCC, macro-F1, quadratic
# kappa and F1 gained most of what a refit gains on the 16 real sets of benchmarks/life; from 0.75 on, all but F1 lost.
_PARTIAL_SHIFT = 1 / 3
_TOL = 1e-9  # relative difference of losses that are the same but for rounding


def kept_entries(task: FitTask, fitted: FittedRule) -> dict[str, Any]:
    """Return entries of metadata: the calibration, the class shares of `prior`, and what becomes of the rule."""
    problem, rule = task.problem, fitted.rule
    if not problem.labelled or rule.is_partitioned:
        return {}
    entries: dict[str, Any] = {"calibration": problem.calibration.to_dict()}
    if problem.prior is not None:
        entries["prior"] = [
            shares[:k].tolist() for shares, k in zip(problem.prior, problem.schema.n_classes.tolist(), strict=True)
        ]
    return entries | ({"under_new_shares": EXACT} if task.cost_rule is not None else _under_new_shares(problem, rule))


def depends_on_shares(problem: Problem) -> bool:
    """Whether the metric or a constraint of a problem depends on class shares."""
    schema = problem.schema
    return _aim_depends(problem.aim, schema) or any(constraint_depends(c, schema) for c in problem.constraints)


def _under_new_shares(problem: Problem, rule: Rule) -> dict[str, Any]:
    """Say what becomes of a rule if class shares move: "unchanged", "exact" (by Bayes' rule) or "approximate".

    Then also how much of a shift of log-odds the best decisions follow: those for a fixed table of gains, all of it.
    So do those at the bound of a constraint that depends on shares, such as a precision.
    """
    if not depends_on_shares(problem):
        return {"under_new_shares": UNCHANGED}
    followed = 1.0
    if not any(constraint_depends(constraint, problem.schema) for constraint in problem.constraints):
        gains = _fixed_gains(problem)
        if not problem.constraints and _is_closed_form(rule, problem, gains):
            return {"under_new_shares": EXACT}
        followed = _PARTIAL_SHIFT if any(table is None for table in gains.values()) else 1.0
    return {"under_new_shares": APPROXIMATE, "followed_shift": followed}


def _fixed_gains(problem: Problem) -> dict[tuple[int, int], FloatArray | None]:
    """Return the gains that the metric of an output has whatever the class shares, by metric and labels."""
    schema, aim = problem.schema, problem.aim
    return {
        _key(problem, m): fixed_gains(aim.metric._of_output(m), k, labels, schema.n_extra)
        for m, k, labels in _distinct_outputs(aim, schema)
    }


def _key(problem: Problem, m: int) -> tuple[int, int]:
    """What outputs of one metric and of the same labels share."""
    return id(problem.aim.metric._of_output(m)), id(problem.schema.classes[m])


def _aim_depends(aim: AveragedMetric, schema: Schema) -> bool:
    """Whether the averaged metric depends on class shares: pooled outputs weigh by the shares of their classes."""
    if schema.n_outputs > 1 and (aim.average != "macro" or aim.support_weighted):
        return True
    return any(
        metric_depends(aim.metric._of_output(m), k, labels, schema.n_extra)
        for m, k, labels in _distinct_outputs(aim, schema)
    )


def constraint_depends(constraint: Constraint, schema: Schema) -> bool:
    """Whether what a constraint bounds depends on class shares."""
    if constraint.near_prior or (constraint.output is None and schema.n_outputs > 1):
        return True
    m = constraint.output or 0
    return metric_depends(constraint.metric, int(schema.n_classes[m]), schema.classes[m].tolist(), schema.n_extra)


def _distinct_outputs(aim: AveragedMetric, schema: Schema) -> list[tuple[int, int, list[Any]]]:
    """Return position, number of classes and labels of one output for each metric and labels that occur."""
    first: dict[Any, tuple[int, int, list[Any]]] = {}
    for m, labels in enumerate(schema.classes):
        first.setdefault((id(aim.metric._of_output(m)), id(labels)), (m, len(labels), labels.tolist()))
    return list(first.values())


def _is_closed_form(rule: Rule, problem: Problem, gains: dict[tuple[int, int], FloatArray | None]) -> bool:
    """Whether the loss is minus the gains of a linear metric that does not depend on class shares."""
    schema = problem.schema
    if not rule.is_flat or rule.is_randomized or (schema.input.is_scores and not schema.input.has_boundary):
        return False
    losses = rule.flatten().losses[0].tensor()
    for m, k in enumerate(schema.n_classes.tolist()):
        A = gains[_key(problem, m)]
        if A is None or not _same_decisions(losses[m if len(losses) > 1 else 0], -A, k, k + schema.n_extra):
            return False
    return True


def _same_decisions(loss: FloatArray, other: FloatArray, n_classes: int, n_decisions: int) -> bool:
    """Whether two losses are the same but for a positive factor and constants of rows."""
    pair = []
    for table in (loss, other):
        table = np.asarray(table)[:n_classes, :n_decisions]
        table = table - table.mean(axis=1, keepdims=True)
        size = np.abs(table).max()
        pair.append(table / size if size > 0 else table)
    return bool(np.abs(pair[0] - pair[1]).max() <= _TOL)
