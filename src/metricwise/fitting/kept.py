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
from ..metrics.class_shares import depends_on_shares, fixed_gains
from ..oracles.problem import Problem
from ..rules.base import Rule
from .solving import FitTask, FittedRule

__all__ = ["kept_entries"]

_TOL = 1e-9  # relative difference of losses that are the same but for rounding


def kept_entries(task: FitTask, fitted: FittedRule) -> dict[str, Any]:
    """Return entries of metadata: the calibration, the class shares of `prior`, and what becomes of the rule."""
    problem, rule = task.problem, fitted.rule
    if not problem.labelled or "sensitive_features" in rule.needs:
        return {}
    entries: dict[str, Any] = {"calibration": problem.calibration.to_dict()}
    if problem.prior is not None:
        entries["prior"] = [
            shares[:k].tolist() for shares, k in zip(problem.prior, problem.schema.n_classes.tolist(), strict=True)
        ]
    entries["under_new_shares"] = "exact" if task.cost_rule is not None else _under_new_shares(problem, rule)
    return entries


def _under_new_shares(problem: Problem, rule: Rule) -> str:
    """Say what becomes of a rule if class shares move: "unchanged", "exact" (by Bayes' rule) or "approximate"."""
    constrained = any(constraint_depends(constraint, problem.schema) for constraint in problem.constraints)
    if not constrained and not _aim_depends(problem.aim, problem.schema):
        return "unchanged"
    return "exact" if not problem.constraints and _is_closed_form(rule, problem) else "approximate"


def _aim_depends(aim: AveragedMetric, schema: Schema) -> bool:
    """Whether the averaged metric depends on class shares: pooled outputs weigh by the shares of their classes."""
    if schema.n_outputs > 1 and (aim.average != "macro" or aim.support_weighted):
        return True
    return any(
        depends_on_shares(aim.metric._of_output(m), k, labels, schema.n_extra)
        for m, k, labels in _distinct_outputs(aim, schema)
    )


def constraint_depends(constraint: Constraint, schema: Schema) -> bool:
    """Whether what a constraint bounds depends on class shares."""
    if constraint.near_prior or (constraint.output is None and schema.n_outputs > 1):
        return True
    m = constraint.output or 0
    return depends_on_shares(constraint.metric, int(schema.n_classes[m]), schema.classes[m].tolist(), schema.n_extra)


def _distinct_outputs(aim: AveragedMetric, schema: Schema) -> list[tuple[int, int, list[Any]]]:
    """Return position, number of classes and labels of one output for each metric and labels that occur."""
    first: dict[Any, tuple[int, int, list[Any]]] = {}
    for m, labels in enumerate(schema.classes):
        first.setdefault((id(aim.metric._of_output(m)), id(labels)), (m, len(labels), labels.tolist()))
    return list(first.values())


def _is_closed_form(rule: Rule, problem: Problem) -> bool:
    """Whether the loss is minus the gains of a linear metric that does not depend on class shares."""
    schema = problem.schema
    if not rule.is_flat or rule.is_randomized or (schema.input.is_scores and not schema.input.has_boundary):
        return False
    losses = rule.flatten().losses[0].tensor()
    gains = {
        (id(problem.aim.metric._of_output(m)), k): fixed_gains(
            problem.aim.metric._of_output(m), k, labels, schema.n_extra
        )
        for m, k, labels in _distinct_outputs(problem.aim, schema)
    }
    for m, k in enumerate(schema.n_classes.tolist()):
        A = gains[id(problem.aim.metric._of_output(m)), k]
        if A is None or not _same_decisions(losses[m if len(losses) > 1 else 0], -A, k, k + schema.n_extra):
            return False
    return True


def _same_decisions(loss: NDArray[np.float64], other: NDArray[np.float64], n_classes: int, n_decisions: int) -> bool:
    """Whether two losses are the same but for a positive factor and constants of rows."""
    pair = []
    for table in (loss, other):
        table = np.asarray(table)[:n_classes, :n_decisions]
        table = table - table.mean(axis=1, keepdims=True)
        size = np.abs(table).max()
        pair.append(table / size if size > 0 else table)
    return bool(np.abs(pair[0] - pair[1]).max() <= _TOL)
