"""Constraints: bounds on a metric, or on its gap between two groups, as half-spaces of confusion tensors.

A bound on a metric that is neither a ratio nor concave has none, but those of its gradient at a point. Must not know
how constraints are satisfied, nor rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..core.matrices import inner
from ..metrics.abstention import Abstaining
from ..metrics.base import Form, FractionalLinear, Increasing, Linear, Metric
from ..metrics.one_vs_rest import OneVsRest

__all__ = [
    "BoundConstraint",
    "Constraint",
    "GroupGap",
    "HalfSpace",
    "PooledConstraint",
    "ConstraintSystem",
    "can_be_empty",
]

FloatArray = NDArray[np.float64]
Key = tuple[int, int]

_EMPTY = 1e-12  # of a denominator, beside its largest entry
_ROUNDING = 1e-12  # by which a value that meets a bound may seem to miss it
_LITTLE = 1e-9  # of the largest entry of a denominator: with less, a rule may be 0/0
_HALVINGS = 200


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """The confusions C with ``<A, C> >= level``.

    Parameters
    ----------
    A : ndarray of shape (K, K) or (M, K, K)
        Of one confusion matrix, or of those of all outputs.
    level : float
    """

    A: FloatArray
    level: float

    def of_outputs(self, share: FloatArray) -> HalfSpace:
        """Return what it is of the confusions of M outputs, where it is of their mean by shares (M,)."""
        return HalfSpace(share[:, None, None] * self.A, self.level)

    def holds(self, C: FloatArray) -> bool:
        """Say whether it holds a confusion (M, K, K)."""
        k = self.A.shape[-1]
        return float(np.sum(self.A * C[..., :k, :k])) >= self.level - _ROUNDING * max(float(np.abs(self.A).max()), 1.0)

    def holds_all(self, priors: FloatArray) -> bool:
        """Say whether it holds every confusion (M, K, K) with these class priors (M, K)."""
        least = float(np.sum(priors[:, : self.A.shape[-2]] * self.A.min(axis=-1)))
        return least >= self.level - _ROUNDING * max(float(np.abs(self.A).max()), 1.0)


@dataclass(frozen=True, eq=False)
class Constraint:
    """A metric that must lie between two bounds.

    Parameters
    ----------
    metric : Metric
        Of one confusion matrix, not bound.
    low, high : float
        Infinite where there is no such bound.
    output : int, optional
        The output that it is about; None: all, averaged as the aim is.
    name : str, default=""
        What the user called it.
    near_prior : bool, default=False
        Whether the bounds are on the difference to the prior of the class, of whose predicted share it is then.
    group : int, optional
        The sensitive group that it is about; None: all of them, pooled.
    minus : int, optional
        The group whose metric is taken off that of `group` before it is bounded.
    promise : int, default=0
        Which of what the user has asked for it belongs to: all of one number are kept together, or none is.
    part : int, default=0
        Which metric of those that a promise is about.

    Examples
    --------
    >>> from metricwise.metrics import Precision
    >>> from metricwise.goals.constraint import Constraint
    >>> floor = Constraint(Precision(index=1), low=0.7).bind([0.5, 0.5])
    >>> floor.keeps([[0.4, 0.1], [0.2, 0.3]]), floor.keeps([[0.3, 0.2], [0.2, 0.3]])
    (True, False)

    Nothing predicted keeps no floor:

    >>> floor.keeps([[0.5, 0.0], [0.5, 0.0]])
    False
    """

    metric: Metric
    low: float = -np.inf
    high: float = np.inf
    output: int | None = None
    name: str = ""
    near_prior: bool = False
    group: int | None = None
    minus: int | None = None
    promise: int = 0
    part: int = 0

    def bind(self, priors: Any, classes: Sequence[Any] | None = None) -> BoundConstraint:
        """Bind the metric to the class priors (K,) of the confusion that it is about."""
        around = self._place(priors, classes)
        moved = self if around is None else self._moved(float(np.asarray(priors)[around]))
        return BoundConstraint(moved, self.metric.bind(priors, classes), len(np.asarray(priors)), around)

    @property
    def ends(self) -> tuple[float, float]:
        """Both bounds."""
        return self.low, self.high

    def _place(self, priors: Any, classes: Sequence[Any] | None) -> int | None:
        """The class whose prior the bounds are around."""
        if not self.near_prior:
            return None
        metric, n_classes = self.metric, len(np.asarray(priors))
        if isinstance(metric, Abstaining):
            metric, n_classes = metric.base, n_classes - 1
        assert isinstance(metric, OneVsRest)
        return metric.position(n_classes, classes)

    def _moved(self, by: float) -> Constraint:
        return replace(self, low=self.low + by, high=self.high + by, near_prior=False)


@dataclass(frozen=True, eq=False)
class BoundConstraint:
    """A constraint whose metric is bound to the class priors; made by :meth:`Constraint.bind`.

    Parameters
    ----------
    constraint : Constraint
    metric : Metric
        Bound.
    n_classes : int
        K.
    around : int, optional
        The class whose prior, which varies with the rows as the metric does, the bounds were moved to.
    """

    constraint: Constraint
    metric: Form
    n_classes: int
    around: int | None = None

    @cached_property
    def form(self) -> Form:
        """The metric, or what it is an increasing transform of."""
        return self.metric.base if isinstance(self.metric, Increasing) else self.metric

    @cached_property
    def convex(self) -> bool:
        """Whether the confusions that keep it are a convex set: of a concave metric, those that keep a lower bound."""
        form = self.form
        floor_of_concave = form.traits.concave and bool(np.isinf(self.constraint.high))
        return isinstance(form, (Linear, FractionalLinear)) or floor_of_concave

    @property
    def extent(self) -> tuple[float, float]:
        """Between what the metric lies, whatever the class priors."""
        return self.constraint.metric.range

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The bounds on that."""
        low, high = self.constraint.low, self.constraint.high
        return (low, high) if self.form is self.metric else (self._inverse(low), self._inverse(high))

    def _inverse(self, bound: float) -> float:
        """What the transform turns into a bound: of values that it makes equal, the one that keeps it by least."""
        assert isinstance(self.metric, Increasing)
        low, high = (float(end) for end in self.form.range)
        ends = self.metric.transform(np.array([low, high]))
        if bound <= ends[0]:
            return -np.inf
        if bound > ends[1]:
            return np.inf
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.metric.transform(np.array(middle)) >= bound else (middle, high)
        return high

    def value(self, C: Any) -> FloatArray:
        """Return the metric of confusion matrices (..., K, K)."""
        return np.asarray(self.metric.value(np.asarray(C, dtype=np.float64)))

    def keeps(self, C: Any, tol: float = _ROUNDING) -> NDArray[np.bool_] | bool:
        """Say whether confusion matrices (..., K, K) keep it: within the bounds, and nothing is 0/0."""
        C = np.asarray(C, dtype=np.float64)
        value, constraint = self.value(C), self.constraint
        kept = (value >= constraint.low - tol) & (value <= constraint.high + tol)
        kept = kept & ~np.asarray(self.empty(C))
        return bool(kept) if kept.ndim == 0 else kept

    def empty(self, C: Any) -> NDArray[np.bool_] | bool:
        """Say whether it is 0/0 at confusion matrices (..., K, K)."""
        C = np.asarray(C, dtype=np.float64)
        if self.denominator is None:
            return False if C.ndim == 2 else np.zeros(C.shape[:-2], dtype=bool)
        empty = inner(self.denominator, C) <= _EMPTY * np.abs(self.denominator).max()
        return bool(empty) if np.ndim(empty) == 0 else np.asarray(empty)

    @cached_property
    def constant(self) -> bool:
        """Whether no rule changes it, as the recall of a class that no row has."""
        if not isinstance(self.form, Linear):
            return False
        A = np.asarray(self.form.as_ratio().A)
        return bool(np.ptp(A, axis=-1).max() <= _EMPTY)

    @cached_property
    def denominator(self) -> FloatArray | None:
        """B of a ratio that may be 0/0, which keeps no bound; None where there is none."""
        form = self.form
        if not isinstance(form, FractionalLinear):
            return None
        return np.asarray(form.B)

    @cached_property
    def half_spaces(self) -> tuple[HalfSpace, ...]:
        """What it is, where it is linear or a ratio: ``<A, C> / <B, C> >= b`` is ``<A - b B, C> >= 0``."""
        low, high = self.limits
        form = self.form
        if not isinstance(form, (Linear, FractionalLinear)):
            return ()
        ratio = form.as_ratio()
        linear = isinstance(form, Linear)
        spaces = []
        for bound, sign in ((low, 1.0), (high, -1.0)):
            if np.isinf(bound):
                continue
            if linear:
                spaces.append(HalfSpace(sign * np.asarray(ratio.A), sign * bound))
            else:
                spaces.append(HalfSpace(sign * (np.asarray(ratio.A) - bound * np.asarray(ratio.B)), 0.0))
        return tuple(spaces)

    def unit(self, C: FloatArray) -> float:
        """Return by how much a unit of the bound moves its half-space, at a matrix C (K, K) near it."""
        unit = 1.0
        if isinstance(self.metric, Increasing):
            rise = float(self.metric.derivative(np.asarray(self.form.value(C))))
            unit = 1.0 / rise if rise > 0 else 0.0
        return unit if self.denominator is None else unit * float(inner(self.denominator, C))

    def tightened(self, low: float, high: float) -> BoundConstraint:
        """Return the constraint whose bounds are narrower by so much, from below and from above."""
        constraint = self.constraint
        return replace(self, constraint=replace(constraint, low=constraint.low + low, high=constraint.high - high))

    def tangent(self, C: FloatArray) -> HalfSpace:
        """Return a half-space that holds all that keep a bound on a concave metric, and is tight beside C (K, K)."""
        slope = self.form.gradient(C)
        return HalfSpace(slope, self.limits[0] - float(self.form.value(C)) + float(inner(slope, C)))

    def linearised(self, C: FloatArray) -> tuple[HalfSpace, ...]:
        """Return the half-spaces that it would be if the metric were linear, with its value and gradient at C (K, K).

        They hold C where it keeps the bounds, but not all that keep them.
        """
        gradient = self.form.gradient(C)
        slope = np.where(np.isfinite(gradient), gradient, 0.0)
        shift, (low, high) = float(inner(slope, C)) - float(self.form.value(C)), self.limits
        floor = () if np.isinf(low) else (HalfSpace(slope, low + shift),)
        return floor if np.isinf(high) else (*floor, HalfSpace(-slope, -high - shift))


@dataclass(frozen=True, eq=False)
class PooledConstraint:
    """A constraint on the pooled confusion of some outputs.

    Parameters
    ----------
    bound : BoundConstraint
    share : ndarray of shape (M,)
        Weight of every output in the confusion that it is about; sums to 1.
    """

    bound: BoundConstraint
    share: FloatArray

    @property
    def constraint(self) -> Constraint:
        """As it was given."""
        return self.bound.constraint

    @property
    def range(self) -> tuple[float, float]:
        """Between what the metric lies."""
        return self.bound.metric.range

    @property
    def convex(self) -> bool:
        """Whether the confusions that keep it are a convex set."""
        return self.bound.convex

    @property
    def of_ratio(self) -> bool:
        """Whether the metric may be 0/0."""
        return self.bound.denominator is not None

    @property
    def constant(self) -> bool:
        """Whether no rule changes it."""
        return self.bound.constant

    def pool(self, C: FloatArray) -> FloatArray:
        """Return the confusions (..., k, k) that it is about, of tensors (..., M, K, K)."""
        k = self.bound.n_classes
        used = np.flatnonzero(self.share)
        return np.asarray(np.einsum("m,...mij->...ij", self.share[used], C[..., used, :k, :k]))

    def value(self, C: FloatArray) -> FloatArray:
        """Return the metric of confusion tensors (..., M, K, K)."""
        return self.bound.value(self.pool(C))

    def keeps(self, C: FloatArray, tol: float = _ROUNDING) -> NDArray[np.bool_]:
        """Say whether confusion tensors (..., M, K, K) keep it."""
        return np.asarray(self.bound.keeps(self.pool(C), tol))

    def empty(self, C: FloatArray) -> NDArray[np.bool_]:
        """Say whether it is 0/0 at confusion tensors (..., M, K, K)."""
        return np.asarray(self.bound.empty(self.pool(C)))

    @cached_property
    def half_spaces(self) -> tuple[HalfSpace, ...]:
        """What it is, where it is linear or a ratio, of the confusions of all outputs."""
        return tuple(space.of_outputs(self.share) for space in self.bound.half_spaces)

    @property
    def helpers(self) -> tuple[HalfSpace, ...]:
        """Half-spaces that it needs besides, which the bound does not move."""
        return ()

    def unbreakable(self, priors: FloatArray) -> bool:
        """Say whether every rule keeps it, or is 0/0, at class priors (M, K) of the outputs."""
        if isinstance(self.bound.form, (Linear, FractionalLinear)):
            return all(space.holds_all(priors) for space in self.half_spaces)
        return self.constraint.low <= self.range[0] and self.constraint.high >= self.range[1]

    def something(self, least: float) -> tuple[HalfSpace, ...]:
        """Return at least a little of the denominator of a ratio."""
        B = self.bound.denominator
        return () if B is None else (HalfSpace(B, least * float(np.abs(B).max())).of_outputs(self.share),)

    def tangent(self, C: FloatArray) -> HalfSpace:
        """Return a half-space that holds all that keep it, tight beside a tensor C (M, K, K); see BoundConstraint."""
        return self.bound.tangent(self.pool(C)).of_outputs(self.share)

    def linearised(self, C: FloatArray) -> tuple[HalfSpace, ...]:
        """Return its half-spaces by the gradient at a tensor C (M, K, K); see BoundConstraint."""
        return tuple(space.of_outputs(self.share) for space in self.bound.linearised(self.pool(C)))

    def unit(self, C: FloatArray) -> float:
        """Return by how much a unit of the bound moves its half-space, at a tensor C (M, K, K) near it."""
        return self.bound.unit(self.pool(C))

    def tightened(self, low: float, high: float) -> PooledConstraint:
        """Return it with bounds narrower by so much, from below and from above."""
        return replace(self, bound=self.bound.tightened(low, high))


@dataclass(frozen=True, eq=False)
class GroupGap:
    """A bound from above on what a metric of some outputs exceeds that of others by: half of a gap between two groups.

    Of a linear metric it is a half-space. Of a ratio it is bilinear, and linear where a common level is known: the one
    is at most so much above the level, the other at least the level.

    Parameters
    ----------
    constraint : Constraint
    first, second : PooledConstraint
        The metric of both, without a bound.
    level : float, optional
        The common level, of ratios.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.metrics import PredictedShare
    >>> from metricwise.goals.constraint import Constraint, GroupGap, PooledConstraint
    >>> given = Constraint(PredictedShare(index=1), high=0.1, group=0, minus=1)
    >>> one, other = (PooledConstraint(Constraint(given.metric).bind([0.5, 0.5]), share) for share in np.eye(2))
    >>> gap = GroupGap(given, one, other)
    >>> C = np.array([[[0.3, 0.2], [0.1, 0.4]], [[0.4, 0.1], [0.2, 0.3]]])
    >>> round(float(gap.value(C)), 12), bool(gap.keeps(C))
    (0.2, False)
    """

    constraint: Constraint
    first: PooledConstraint
    second: PooledConstraint
    level: float | None = None

    @property
    def range(self) -> tuple[float, float]:
        """Between what the difference lies."""
        least, most = self.first.range
        return least - most, most - least

    @property
    def extent(self) -> tuple[float, float]:
        """Between what the difference lies, whatever the class priors."""
        least, most = self.first.bound.extent
        return least - most, most - least

    @property
    def convex(self) -> bool:
        """Whether the confusions that keep it are a convex set, at a common level."""
        return True

    @property
    def of_ratio(self) -> bool:
        """Whether either may be 0/0."""
        return self.first.of_ratio or self.second.of_ratio

    @property
    def constant(self) -> bool:
        """Whether no rule changes one of them."""
        return self.first.constant or self.second.constant

    def value(self, C: FloatArray) -> FloatArray:
        """Return the difference at confusion tensors (..., M, K, K)."""
        return np.asarray(self.first.value(C) - self.second.value(C))

    def empty(self, C: FloatArray) -> NDArray[np.bool_]:
        """Say whether either is 0/0 at confusion tensors (..., M, K, K)."""
        return np.asarray(self.first.empty(C) | self.second.empty(C))

    def keeps(self, C: FloatArray, tol: float = _ROUNDING) -> NDArray[np.bool_]:
        """Say whether confusion tensors (..., M, K, K) keep it."""
        return np.asarray((self.value(C) <= self.constraint.high + tol) & ~self.empty(C))

    @cached_property
    def half_spaces(self) -> tuple[HalfSpace, ...]:
        """What it is of the confusions of all outputs; nothing without a level that it needs."""
        if not self.of_ratio:
            first, second = (np.asarray(limit.bound.form.as_ratio().A) for limit in (self.first, self.second))  # type: ignore[attr-defined]
            spread = self.second.share[:, None, None] * second - self.first.share[:, None, None] * first
            return (HalfSpace(spread, -self.constraint.high),)
        return () if self.level is None else self._between(self.first, -np.inf, self.level + self.constraint.high)

    @property
    def helpers(self) -> tuple[HalfSpace, ...]:
        """That the other one is at least the level."""
        return () if self.level is None else self._between(self.second, self.level, np.inf)

    @staticmethod
    def _between(limit: PooledConstraint, low: float, high: float) -> tuple[HalfSpace, ...]:
        bound = replace(limit.bound, constraint=replace(limit.constraint, low=low, high=high))
        return replace(limit, bound=bound).half_spaces

    def unbreakable(self, priors: FloatArray) -> bool:
        """Say whether every rule keeps it, or is 0/0, at class priors (M, K) of the outputs."""
        if self.of_ratio:
            return self.constraint.high >= self.range[1]
        return all(space.holds_all(priors) for space in self.half_spaces)

    def something(self, least: float) -> tuple[HalfSpace, ...]:
        """Return at least a little of both denominators."""
        return self.first.something(least) + self.second.something(least)

    def tangent(self, C: FloatArray) -> HalfSpace:
        """Refuse: without half-spaces there is none."""
        raise NotImplementedError("a difference of ratios needs a level")

    def linearised(self, C: FloatArray) -> tuple[HalfSpace, ...]:
        """Return nothing: its half-spaces are fixed."""
        return ()

    def unit(self, C: FloatArray) -> float:
        """Return by how much a unit of the bound moves its half-space, at a tensor C (M, K, K) near it."""
        return self.first.unit(C)

    def tightened(self, low: float, high: float) -> GroupGap:
        """Return it with a bound narrower by so much from above."""
        return replace(self, constraint=replace(self.constraint, high=self.constraint.high - high))


def can_be_empty(limit: PooledConstraint | GroupGap, priors: FloatArray) -> bool:
    """Say whether a rule can be 0/0 by a limit, which then is not kept, at class priors (M, K) of the outputs."""
    return not all(space.holds_all(priors) for space in limit.something(_LITTLE))


@dataclass(frozen=True, eq=False)
class ConstraintSystem:
    """Constraints on the confusions of M outputs, all of which are to be kept.

    Parameters
    ----------
    constraints : tuple of Q PooledConstraint or GroupGap
    narrowed : bool, default=False
        Whether their bounds are narrower than those that were given.
    """

    constraints: tuple[PooledConstraint | GroupGap, ...] = ()
    narrowed: bool = False

    @property
    def called(self) -> str:
        """What to call them in a sentence."""
        return "the tightened constraints" if self.narrowed else "the constraints"

    @property
    def convex(self) -> bool:
        """Whether the confusions that keep all of them are a convex set."""
        return all(bound.convex for bound in self.constraints)

    @property
    def pooled(self) -> tuple[PooledConstraint, ...]:
        """Those on a metric, which are all but gaps between groups."""
        return tuple(bound for bound in self.constraints if isinstance(bound, PooledConstraint))

    def shared(self, share: FloatArray) -> bool:
        """Say whether all are about one confusion, that of all outputs by shares (M,)."""
        return all(
            isinstance(bound, PooledConstraint) and np.allclose(bound.share, share, atol=1e-12)
            for bound in self.constraints
        )

    def values(self, C: FloatArray) -> FloatArray:
        """Return the values (..., Q) of confusion tensors (..., M, K, K)."""
        if not self.constraints:
            return np.empty((*C.shape[:-3], 0))
        return np.stack([bound.value(C) for bound in self.constraints], axis=-1)

    def kept(self, C: FloatArray, tol: float = _ROUNDING) -> NDArray[np.bool_]:
        """Say which are kept, (..., Q), by confusion tensors (..., M, K, K)."""
        if not self.constraints:
            return np.ones((*C.shape[:-3], 0), dtype=bool)
        return np.stack([bound.keeps(C, tol) for bound in self.constraints], axis=-1)

    def violation(self, C: FloatArray) -> FloatArray:
        """Return by how much bounds are missed, in sum, (...), at confusion tensors (..., M, K, K); 1 for a 0/0."""
        total = np.zeros(C.shape[:-3])
        for bound in self.constraints:
            value, bounds = bound.value(C), bound.constraint
            total += np.maximum(np.maximum(bounds.low - value, value - bounds.high), 0.0) + bound.empty(C)
        return total

    def empty(self, C: FloatArray) -> bool:
        """Say whether a ratio is 0/0 at a confusion tensor (M, K, K)."""
        return any(bound.empty(C) for bound in self.constraints)

    def tightened(self, margins: FloatArray) -> ConstraintSystem:
        """Return the limits whose bounds are narrower by margins (Q, 2), from below and from above."""
        narrower = [bound.tightened(*margin) for bound, margin in zip(self.constraints, margins.tolist(), strict=True)]
        return ConstraintSystem(tuple(narrower), narrowed=bool((margins > 0).any()))

    @property
    def levels(self) -> dict[Key, tuple[float, float]]:
        """What has a common level that is not known: the promise and its part, and between what its metric lies."""
        return {_key(bound): bound.first.range for bound in self.constraints if _levelled(bound)}

    def level_values(self, C: FloatArray) -> dict[Key, tuple[float, float]]:
        """Return the least and the largest value of such metrics at a confusion tensor (M, K, K)."""
        by_key: dict[Key, list[float]] = {}
        for bound in self.constraints:
            if _levelled(bound):
                by_key.setdefault(_key(bound), []).extend(
                    float(limit.value(C)) for limit in (bound.first, bound.second)
                )
        return {key: (min(values), max(values)) for key, values in by_key.items()}

    def without_levels(self) -> ConstraintSystem:
        """Return the limits that need no such level."""
        return replace(self, constraints=tuple(bound for bound in self.constraints if not _levelled(bound)))

    def at(self, levels: Mapping[Key, float]) -> ConstraintSystem:
        """Return the limits with common levels."""
        placed = [
            replace(bound, level=levels[_key(bound)]) if _levelled(bound) else bound for bound in self.constraints
        ]
        return replace(self, constraints=tuple(placed))


def _key(bound: PooledConstraint | GroupGap) -> Key:
    """The promise that a constraint is of, and which of its metrics."""
    return bound.constraint.promise, bound.constraint.part


def _levelled(bound: PooledConstraint | GroupGap) -> TypeGuard[GroupGap]:
    """Whether a constraint is linear at a common level only."""
    return isinstance(bound, GroupGap) and bound.of_ratio
