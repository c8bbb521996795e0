"""Constraints, once the class priors are known: their bounds, and what is said where no rule keeps them.

What they are about is read in :mod:`metricwise.goals.resolve`. Must not know how they are kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidParameter
from ...core.labels import python_labels
from ...core.schema import Schema
from ...goals.constraint import Constraint, Difference, Limit, Limits
from ...metrics.abstention import Abstaining
from ...metrics.aim import Aim
from ...metrics.ratio import Precision
from ...oracles.base import Oracle
from ...oracles.counts import Counts
from ...oracles.problem import Problem
from ...solvers.constrained import Feasible, InfeasibleError, Point, maximise
from ...solvers.constrained_single import best_by_labels
from ...solvers.sweep import sweep_within

__all__ = [
    "InfeasibleConstraintsError",
    "bind_limits",
    "check_shown",
    "explain_infeasible",
]

FloatArray = NDArray[np.float64]

_TOL = 1e-9


class InfeasibleConstraintsError(InvalidParameter):
    """Raised if no rule that was found satisfies the constraints, although they are valid."""

    def __init__(self, problem: str) -> None:
        super().__init__("subject_to", problem=problem, owner="subject_to")


def check_shown(constraints: Sequence[Constraint], problem: Problem, groups: Sequence[Any] | None = None) -> None:
    """Refuse constraints about outputs that have no label, and about classes whose recall is 0/0: no rule keeps those.

    Raises
    ------
    ValueError
    """
    judge = problem.oracle("labels" if problem.labelled else "expected")
    names = problem.schema.output_names
    for one in constraints:
        m = one.output
        if m is not None and judge.weight[_outputs(one, problem.schema)].sum() == 0:
            name = m if names is None else names[m]
            raise InvalidParameter(
                "subject_to",
                problem=f"'{one.name}' is about the output {name!r}, which has no label",
                remedy="leave it out",
                owner="subject_to",
            )
    for one, bound in zip(constraints, bind_limits(constraints, problem.schema, judge).constraints, strict=True):
        if bound.constant:
            alone = bound.one if isinstance(bound, Difference) and bound.one.constant else bound
            g = alone.constraint.group if isinstance(alone, Limit) else one.minus
            where = "" if g is None else f" of the group {g if groups is None else groups[g]!r}"
            reason = f"because no row{where} is of a class that it is about"
            words = f"whatever is predicted, {reason}; leave it out, or provide such rows."
            raise InvalidParameter(
                "subject_to", problem=f"'{one.name}' bounds a metric that is the same {words}", owner="subject_to"
            )


def bind_limits(constraints: Sequence[Constraint], schema: Schema, oracle: Oracle) -> Limits:
    """Bind constraints to the class priors that an oracle counts.

    Parameters
    ----------
    constraints : sequence of Constraint
    schema : Schema
    oracle : Oracle
        That counts them.

    Returns
    -------
    Limits
    """
    known: dict[tuple[int, int | None, int | None], Limit] = {}

    def free(one: Constraint, group: int | None) -> Limit:
        """The metric of a group without a bound, which many pairs of groups ask for."""
        key = id(one.metric), one.output, group
        if key not in known:
            known[key] = _placed(replace(one, low=-np.inf, high=np.inf, group=group, minus=None), schema, oracle)
        return known[key]

    return Limits(
        tuple(
            _placed(one, schema, oracle)
            if one.minus is None
            else Difference(one, free(one, one.group), free(one, one.minus))
            for one in constraints
        )
    )


def _placed(one: Constraint, schema: Schema, oracle: Oracle) -> Limit:
    """Bind a constraint to the priors of the outputs that it is about."""
    outputs = _outputs(one, schema)
    share = np.zeros(schema.n_outputs)
    total = oracle.weight[outputs].sum()
    share[outputs] = oracle.weight[outputs] / total if total > 0 else 1.0 / len(outputs)
    k = int(schema.n_decisions[outputs].max())
    labels = tuple(python_labels(np.asarray(schema.classes[outputs[0]])))
    return Limit(one.bind(share @ oracle.priors[:, :k], labels), share)


def _outputs(one: Constraint, schema: Schema) -> NDArray[np.intp]:
    """The outputs that a constraint is about: those of a name, or all, in one sensitive group or all of them."""
    numbers = np.arange(schema.n_outputs).reshape(schema.n_groups, -1)
    rows = slice(None) if one.group is None else slice(one.group, one.group + 1)
    columns = slice(None) if one.output is None else slice(one.output, one.output + 1)
    return np.asarray(numbers[rows, columns].reshape(-1))


def explain_infeasible(
    problem: Problem, judge: Counts, constraints: Sequence[Constraint], nearest: Point | None
) -> str:
    """Say that no rule keeps constraints, and how far rules get.

    Parameters
    ----------
    problem : Problem
    judge : Counts
        Counts the constraints.
    constraints : sequence of Constraint
    nearest : Point or None
        What comes nearest to all of them together.

    Returns
    -------
    str
    """
    bound = bind_limits(constraints, problem.schema, judge).constraints
    promises = [
        Limits(tuple(one for one in bound if one.constraint.promise == q))
        for q in dict.fromkeys(one.promise for one in constraints)
    ]
    names = [f"'{limits.constraints[0].constraint.name}'" for limits in promises]
    where = "on the given rows" if problem.labelled else "under these probabilities"
    for limits, name in zip(promises, names, strict=True):
        if not _can_be_kept(problem, judge, limits):
            end = _furthest(problem, judge, limits, Limits())
            return f"no rule satisfies {name} {where}{end}; loosen the bound, or use a better model."
    said = f"no rule satisfies {_listed(names)} together {where}"
    for q in reversed(range(len(promises))):
        others = [r for r in range(len(promises)) if r != q]
        rest = Limits(tuple(one for r in others for one in promises[r].constraints))
        if _can_be_kept(problem, judge, rest):
            end = _furthest(problem, judge, promises[q], rest)
            if end:
                said += f": with {_listed([names[r] for r in others])},{end.removeprefix(':')}"
                return f"{said}; loosen a bound."
    if nearest is not None:
        near = ", ".join(_value_near(limits, nearest.judged) for limits in promises)
        said += f"; the nearest that rules get is {near}"
    return f"{said}; loosen a bound."


def _value_near(limits: Limits, C: FloatArray) -> str:
    """What a promise comes to at a confusion tensor (M, K, K): the value furthest from its bound."""
    one = max(limits.constraints, key=lambda one: float(Limits((one,)).violation(C)))
    gap = " gap" if isinstance(one, Difference) else ""
    return f"{one.constraint.metric.name}{gap} {float(one.value(C)):.3g}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _can_be_kept(problem: Problem, judge: Counts, limits: Limits) -> bool:
    return _best_confusion(problem, judge, limits) is not None


def _best_confusion(problem: Problem, judge: Counts, limits: Limits) -> FloatArray | None:
    """The confusion of the best rule that keeps limits, None where none does: of mixtures, or of thresholds."""
    objective, found = problem.objective(judge), []
    if limits.levels:
        return np.zeros(0)  # a search over levels, which nothing is said of
    thresholds = problem.schema.n_outputs == 1 and objective.width == 2 and not judge.certified
    try:
        feasible = Feasible(judge, judge, objective, limits, _TOL)
        point = maximise(feasible) if thresholds else best_by_labels(feasible)
        found += [point.judged] if limits.kept(point.judged, 1e-4).all() else []
    except InfeasibleError:
        pass
    if thresholds:
        threshold = sweep_within(judge, objective, limits)  # which does better by labels
        found += [] if threshold is None else [threshold.confusion]
    return max(found, key=objective.value, default=None)


def _furthest(problem: Problem, judge: Counts, limits: Limits, rest: Limits) -> str:
    """How far the metric of a promise gets towards its bound among rules that keep others, as words; or nothing."""
    one = limits.constraints[0]
    if problem.schema.n_outputs > 1 or len(limits.constraints) > 1 or np.isinf(one.constraint.low):
        return ""
    assert isinstance(one, Limit)
    bound, given = one.bound, one.constraint
    aim = replace(problem, aim=Aim(given.metric, "micro", np.ones(1)), record={})
    C = _best_confusion(aim, judge, rest)
    if C is None:
        return ""
    if bound.empty(C[0]):
        return f": {_term(given)} is 0/0, which satisfies no bound"
    value = float(bound.value(C[0]))
    if value >= bound.constraint.low:
        return ""
    share = ""
    metric = given.metric.base if isinstance(given.metric, Abstaining) else given.metric
    if isinstance(metric, Precision) and bound.denominator is not None:
        share = f", at a predicted share of {float(np.sum(bound.denominator * C[0])):.2g}"
    proved = judge.certified or problem.schema.width == 2
    most = f"at most {value:.3g}" if proved else f"at most about {value:.3g}"
    return f": {_term(given)} reaches {most}{share}"


def _term(given: Constraint) -> str:
    """What a constraint bounds, as it was written."""
    return re.sub(r"^[^\[\]]*<=\s*|\s*(>=|<=|≥|≤)[^\[\]]*$", "", given.name) or given.metric.name
