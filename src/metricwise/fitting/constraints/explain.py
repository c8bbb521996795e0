"""Says why no rule satisfies constraints, and how far rules get towards each of them.

The same search answers both, so that what is said to be reached can be asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...goals.constraint import Constraint, ConstraintSystem, GroupGap, PooledConstraint
from ...metrics import Precision
from ...metrics.abstention import Abstaining
from ...metrics.aim import AveragedMetric
from ...oracles.problem import FitStrategy, Problem
from ...solvers.constrained import Effort, InfeasibleError, Point
from .search import NoSingleRuleError, Search

__all__ = ["explain_infeasible"]

FloatArray = NDArray[np.float64]


def explain_infeasible(search: Search, nearest: Point | None) -> str:
    """Say that no rule satisfies the constraints of a search, how far rules get, and what comes nearest."""
    problem, bound = search.problem, search.limits.constraints
    promises = [
        ConstraintSystem(tuple(limit for limit in bound if limit.constraint.promise == number))
        for number in dict.fromkeys(limit.constraint.promise for limit in bound)
    ]
    names = [f"'{limits.constraints[0].constraint.name}'" for limits in promises]
    where = "on the given rows" if problem.labelled else "under the given probabilities"
    for limits, name in zip(promises, names, strict=True):
        if not limits.convex:
            reached = _best_found(search, limits, ConstraintSystem())
            if reached:
                said = f"no rule was found that satisfies {name} {where}: {reached}"
                return f"{said}; loosen the bound, or use a better model."
        elif not _can_be_kept(search, limits):
            end = _furthest(search, limits, ConstraintSystem())
            return f"no rule satisfies {name} {where}{end}; loosen the bound, or use a better model."
    if not search.limits.convex:
        return _not_found_together(search, promises, names, where)
    said = f"no rule satisfies {_listed(names)} together {where}"
    for q in reversed(range(len(promises))):
        others = [r for r in range(len(promises)) if r != q]
        rest = ConstraintSystem(tuple(limit for r in others for limit in promises[r].constraints))
        if _can_be_kept(search, rest):
            end = _furthest(search, promises[q], rest)
            if end:
                said += f": with {_listed([names[r] for r in others])},{end.removeprefix(':')}"
                return f"{said}; loosen a bound."
    if nearest is not None:
        near = ", ".join(_value_near(limits, nearest.judged) for limits in promises)
        said += f"; the closest values found are {near}"
    return f"{said}; loosen a bound."


def _not_found_together(search: Search, promises: Sequence[ConstraintSystem], names: Sequence[str], where: str) -> str:
    """Say that no rule was found that satisfies all constraints, and how far one that is not convex gets."""
    said = f"no rule was found that satisfies {_listed(names)}{' together' if len(names) > 1 else ''} {where}"
    for q in reversed([q for q, limits in enumerate(promises) if not limits.convex]):
        others = [r for r in range(len(promises)) if r != q]
        rest = ConstraintSystem(tuple(limit for r in others for limit in promises[r].constraints))
        reached = _best_found(search, promises[q], rest)
        if reached:
            return f"{said}: with {_listed([names[r] for r in others])}, {reached}; loosen a bound."
    return f"{said}; loosen a bound."


def _best_found(search: Search, limits: ConstraintSystem, rest: ConstraintSystem) -> str:
    """How far the rules get that were found and satisfy others; empty if one of them satisfies the constraint, too.

    Rounded so that what is said can be asked for. The best is among the rules that the search has asked for, which
    are few where thresholds are swept: then it is the best of all thresholds.
    """
    (first, *_), sign = limits.constraints, 1.0 if np.isfinite(limits.constraints[0].constraint.low) else -1.0
    if search.sweeps and sign > 0 and rest.constraints and len(search.pieces) == 1:
        problem = replace(search.problem, aim=_pooled_aim(first.constraint, search.problem.schema.n_outputs), record={})
        C = _best_confusion(search, problem, rest, single=True)
        judged = np.empty((0, *search.judge.priors.shape)) if C is None else C[None]
    else:
        judged = search.asked_for
        judged = judged[rest.kept(judged).all(axis=-1)]
    if len(judged) == 0 or limits.kept(judged).all(axis=-1).any():
        return ""
    reached = sign * float(np.min([sign * limit.value(judged) for limit in limits.constraints], axis=0).max())
    return f"the best found has {_term(first.constraint)} {sign * _rounded_down(sign * reached):.6g}"


def _pooled_aim(constraint: Constraint, n_outputs: int) -> AveragedMetric:
    """The metric of a constraint as an aim, of all outputs pooled."""
    return AveragedMetric(constraint.metric, "micro", np.ones(n_outputs))


def _rounded_down(value: float) -> float:
    """Three digits of a number, which are not more than it is."""
    if value == 0:
        return 0.0
    scale = 10.0 ** (2 - np.floor(np.log10(abs(value))))
    return float(np.floor(value * scale) / scale)


def _value_near(limits: ConstraintSystem, C: FloatArray) -> str:
    """The value of a constraint at a confusion tensor (M, K, K) that is furthest from its bound."""
    worst = max(limits.constraints, key=lambda limit: float(ConstraintSystem((limit,)).violation(C)))
    gap = " gap" if isinstance(worst, GroupGap) else ""
    return f"{worst.constraint.metric.name}{gap} {float(worst.value(C)):.3g}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _can_be_kept(search: Search, limits: ConstraintSystem) -> bool:
    """Whether a mixture of rules satisfies some of the constraints; of gaps of ratios that is taken for granted."""
    return bool(limits.levels) or _best_confusion(search, search.problem, limits, single=False) is not None


def _best_confusion(search: Search, problem: Problem, limits: ConstraintSystem, *, single: bool) -> FloatArray | None:
    """The confusion of the best rule that satisfies some of the constraints, None where none does."""
    recipe = FitStrategy("labels", search.recipe.recalibrate) if problem.labelled else search.recipe
    constraints = [limit.constraint for limit in limits.constraints]
    again = Search(problem, recipe, search.link, constraints, search.settings)
    try:
        return again.best(np.zeros((len(constraints), 2)), single=single, effort=Effort.THOROUGH).judged
    except (InfeasibleError, NoSingleRuleError):
        return None


def _furthest(search: Search, limits: ConstraintSystem, rest: ConstraintSystem) -> str:
    """How far the metric of a constraint gets towards its bound among rules that satisfy others; empty if unknown."""
    first = limits.constraints[0]
    if search.problem.schema.n_outputs > 1 or len(limits.constraints) > 1 or np.isinf(first.constraint.low):
        return ""
    assert isinstance(first, PooledConstraint)
    bound, constraint = first.bound, first.constraint
    problem = replace(search.problem, aim=_pooled_aim(constraint, 1), record={})
    C = None if rest.levels else _best_confusion(search, problem, rest, single=not search.settings.randomized)
    if C is None:
        return ""
    if bound.empty(C[0]):
        return f": {_term(constraint)} is 0/0, which satisfies no bound"
    value = float(bound.value(C[0]))
    if value >= constraint.low:
        return ""
    share = ""
    metric = constraint.metric.base if isinstance(constraint.metric, Abstaining) else constraint.metric
    if isinstance(metric, Precision) and bound.denominator is not None:
        share = f", at a predicted share of {float(np.sum(bound.denominator * C[0])):.2g}"
    proved = search.judge.certified or search.problem.schema.width == 2
    most = f"at most {value:.3g}" if proved else f"at most about {value:.3g}"
    return f": {_term(constraint)} reaches {most}{share}"


def _term(constraint: Constraint) -> str:
    """What a constraint bounds, as it was written."""
    return re.sub(r"^[^\[\]]*<=\s*|\s*(>=|<=|≥|≤)[^\[\]]*$", "", constraint.name) or constraint.metric.name
