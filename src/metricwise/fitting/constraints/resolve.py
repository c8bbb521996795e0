"""Binds constraints to the class priors that an oracle counts, and refuses those that no rule can change.

Must not know how constraints are satisfied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidParameter
from ...core.labels import python_labels
from ...core.schema import Schema
from ...goals.constraint import Constraint, ConstraintSystem, GroupGap, PooledConstraint
from ...oracles.base import Oracle
from ...oracles.problem import Problem

__all__ = [
    "InfeasibleConstraintsError",
    "bind_constraints",
    "check_shown",
]

FloatArray = NDArray[np.float64]


class InfeasibleConstraintsError(InvalidParameter):
    """Raised if no rule that was found satisfies the constraints, although they are valid."""

    def __init__(self, problem: str) -> None:
        super().__init__("subject_to", problem=problem, owner="subject_to")


def check_shown(constraints: Sequence[Constraint], problem: Problem, groups: Sequence[Any] | None = None) -> None:
    """Refuse constraints about outputs without labels, and about classes whose recall is 0/0: no rule keeps those."""
    judge = problem.oracle("labels" if problem.labelled else "expected")
    names = problem.schema.output_names
    for constraint in constraints:
        m = constraint.output
        if m is not None and judge.weight[_outputs(constraint, problem.schema)].sum() == 0:
            name = m if names is None else names[m]
            raise InvalidParameter(
                "subject_to",
                problem=f"'{constraint.name}' bounds the output {name!r}, which has no labels",
                remedy="leave it out",
                owner="subject_to",
            )
    for constraint, bound in zip(
        constraints, bind_constraints(constraints, problem.schema, judge).constraints, strict=True
    ):
        if bound.constant:
            alone = bound.first if isinstance(bound, GroupGap) and bound.first.constant else bound
            g = alone.constraint.group if isinstance(alone, PooledConstraint) else constraint.minus
            where = "" if g is None else f" of the group {g if groups is None else groups[g]!r}"
            reason = f"because no row{where} has a class that the metric depends on"
            text = f"for all predictions, {reason}; leave it out, or provide such rows."
            raise InvalidParameter(
                "subject_to", problem=f"'{constraint.name}' bounds a metric that is the same {text}", owner="subject_to"
            )


def bind_constraints(constraints: Sequence[Constraint], schema: Schema, oracle: Oracle) -> ConstraintSystem:
    """Bind constraints to the class priors that an oracle counts."""
    unbounded: dict[tuple[int, int | None, int | None], PooledConstraint] = {}

    def free(constraint: Constraint, group: int | None) -> PooledConstraint:
        """The metric of a group without a bound, which many pairs of groups ask for."""
        key = id(constraint.metric), constraint.output, group
        if key not in unbounded:
            unbounded[key] = _placed(
                replace(constraint, low=-np.inf, high=np.inf, group=group, minus=None), schema, oracle
            )
        return unbounded[key]

    return ConstraintSystem(
        tuple(
            _placed(constraint, schema, oracle)
            if constraint.minus is None
            else GroupGap(constraint, free(constraint, constraint.group), free(constraint, constraint.minus))
            for constraint in constraints
        )
    )


def _placed(constraint: Constraint, schema: Schema, oracle: Oracle) -> PooledConstraint:
    """Bind a constraint to the priors of the outputs that it is about."""
    outputs = _outputs(constraint, schema)
    share = np.zeros(schema.n_outputs)
    total = oracle.weight[outputs].sum()
    share[outputs] = oracle.weight[outputs] / total if total > 0 else 1.0 / len(outputs)
    k = int(schema.n_decisions[outputs].max())
    labels = tuple(python_labels(np.asarray(schema.classes[outputs[0]])))
    return PooledConstraint(constraint.bind(share @ oracle.priors[:, :k], labels), share)


def _outputs(constraint: Constraint, schema: Schema) -> NDArray[np.intp]:
    """The outputs that a constraint is about: those of a name, or all, in one sensitive group or all of them."""
    numbers = np.arange(schema.n_outputs).reshape(schema.n_groups, -1)
    rows = slice(None) if constraint.group is None else slice(constraint.group, constraint.group + 1)
    columns = slice(None) if constraint.output is None else slice(constraint.output, constraint.output + 1)
    return np.asarray(numbers[rows, columns].reshape(-1))
