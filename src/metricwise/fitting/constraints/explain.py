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
from ...rules.calibration import TemperatureScaling
from ...solvers.constrained import Effort, InfeasibleError, Point
from .search import NoSingleRuleError, Search

__all__ = ["explain_infeasible"]

FloatArray = NDArray[np.float64]

_TOL = 1e-9  # of the last of three digits


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
        C = _best_confusion(search, problem, rest, single=True, link=search.link)
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
    return float(np.floor(value * scale + _TOL) / scale)


def _value_near(limits: ConstraintSystem, C: FloatArray) -> str:
    """The value of a constraint at a confusion tensor (M, K, K) that is furthest from its bound."""
    worst = max(limits.constraints, key=lambda limit: float(ConstraintSystem((limit,)).violation(C)))
    gap = " gap" if isinstance(worst, GroupGap) else ""
    return f"{worst.constraint.metric.name}{gap} {float(worst.value(C)):.3g}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _can_be_kept(search: Search, limits: ConstraintSystem) -> bool:
    """Whether a mixture of rules satisfies some of the constraints; of gaps of ratios that is taken for granted."""
    return (
        bool(limits.levels)
        or _best_confusion(search, search.problem, limits, single=False, link=search.link) is not None
    )


def _best_confusion(
    search: Search,
    problem: Problem,
    limits: ConstraintSystem,
    *,
    single: bool,
    link: TemperatureScaling | None,
) -> FloatArray | None:
    """The confusion of the best rule that satisfies some of the constraints, None where none does."""
    recipe = FitStrategy("labels", search.recipe.recalibrate) if problem.labelled else search.recipe
    constraints = [limit.constraint for limit in limits.constraints]
    again = Search(problem, recipe, link, constraints, search.settings)
    try:
        return again.best(np.zeros((len(constraints), 2)), single=single, effort=Effort.THOROUGH).judged
    except (InfeasibleError, NoSingleRuleError):
        return None


def _furthest(search: Search, limits: ConstraintSystem, rest: ConstraintSystem) -> str:
    """How far the metric of a constraint gets towards its bound among rules that satisfy others; empty if unknown."""
    several, first = search.problem.schema.n_outputs > 1, limits.constraints[0]
    if not isinstance(first, PooledConstraint) or np.isinf(first.constraint.low):
        return ""
    if several:
        return "" if rest.constraints else _furthest_in_groups(search, limits)
    if len(limits.constraints) > 1:
        return ""
    reached = _reached(search, search.problem, first, rest)
    if reached is None:
        return ""
    value, where = reached
    if np.isnan(value):
        return f": {_term(first.constraint)} is 0/0, which satisfies no bound"
    if value >= first.constraint.low:
        return ""
    return f": {_subject(search, first)} reaches {_at_most(search, value)}{where}"


def _furthest_in_groups(search: Search, limits: ConstraintSystem) -> str:
    """The same of a metric in every sensitive group, where each has a rule of its own: that of the worst of them."""
    schema = search.problem.schema
    pooled = [limit for limit in limits.constraints if isinstance(limit, PooledConstraint)]
    outputs = [np.flatnonzero(limit.share) for limit in pooled]
    every = len(pooled) == len(limits.constraints) == schema.n_groups == schema.n_outputs
    if not every or search.objective.grouping.loss is not None or any(len(output) > 1 for output in outputs):
        return ""
    reached = [
        _reached(search, search.problem.of_outputs(output), limit, ConstraintSystem(), output)
        for output, limit in zip(outputs, pooled, strict=True)
    ]
    pairs = [pair for pair in reached if pair is not None and not np.isnan(pair[0])]
    if len(pairs) < len(outputs):
        return ""
    (value, where), first = min(pairs, key=lambda pair: pair[0]), pooled[0]
    if value >= first.constraint.low:
        return ""
    of_worst = f"{where} of the group that limits it" if where else ""
    return f": {_subject(search, first)} reaches {_at_most(search, value)} in every group{of_worst}"


def _reached(
    search: Search,
    problem: Problem,
    limit: PooledConstraint,
    rest: ConstraintSystem,
    outputs: NDArray[np.intp] | None = None,
) -> tuple[float, str] | None:
    """The best value of the metric of a constraint, nan for 0/0, and how many rows that is of; None if unknown."""
    bound = limit.bound
    alone = replace(problem, aim=_pooled_aim(limit.constraint, 1), record={})
    link = search.link if search.link is None or outputs is None else search.link.of_outputs(outputs)
    C = None if rest.levels else _best_confusion(search, alone, rest, single=not search.settings.randomized, link=link)
    if C is None:
        return None
    if bound.empty(C[0]):
        return np.nan, ""
    where = ""
    metric = limit.constraint.metric
    base = metric.base if isinstance(metric, Abstaining) else metric
    if isinstance(base, Precision) and bound.denominator is not None:
        where = f", at a predicted share of {float(np.sum(bound.denominator * C[0])):.2g}"
    elif _is_of_decided(search, limit):
        where = f", at a coverage of {float(C[0, :-1, :-1].sum()):.2g}"
    return float(bound.value(C[0])), where


def _is_of_decided(search: Search, limit: PooledConstraint) -> bool:
    """Whether the metric of a constraint is that of the rows that a rule does not abstain from."""
    B = limit.bound.denominator
    return search.problem.schema.abstain_label is not None and B is not None and not B[:-1, -1].any()


def _subject(search: Search, limit: PooledConstraint) -> str:
    """What a constraint bounds, and of which rows."""
    return _term(limit.constraint) + (" of the decided rows" if _is_of_decided(search, limit) else "")


def _at_most(search: Search, value: float) -> str:
    """The value as three digits that do not exceed it, so that it can be asked for."""
    digits = f"{_rounded_down(value):.3g}"
    proved = search.judge.certified or search.problem.schema.width == 2
    return f"at most {digits}" if proved else f"at most about {digits}"


def _term(constraint: Constraint) -> str:
    """What a constraint bounds, as it was written."""
    return re.sub(r"^[^\[\]]*<=\s*|\s*(>=|<=|≥|≤)[^\[\]]*$", "", constraint.name) or constraint.metric.name
