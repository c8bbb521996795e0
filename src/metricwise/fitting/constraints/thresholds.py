"""All thresholds of a binary output at once: the aim and what is constrained at each, for bounds however tightened.

Must not know how margins are found, nor new rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.cached import cached_property
from ...goals.constraint import BoundConstraint, ConstraintSystem
from ...metrics.base import FractionalLinear, Linear, MinimumForm
from ...metrics.objective import Objective
from ...oracles.base import Oracle, Walk
from ...solvers.result import Outcome, SolverResult
from ...solvers.sweep import (
    along,
    confusions_along,
    sweep_within,
    threshold_line,
    threshold_loss,
    thresholds_inside,
    upper_hull,
)

__all__ = ["ThresholdCurve"]

FloatArray = NDArray[np.float64]

_ROUNDING = 1e-12  # by which a value that meets a bound may seem to miss it


@dataclass(frozen=True, eq=False)
class ThresholdCurve:
    """Thresholds of an objective of one group, counted in one pass: all of them, or of many rows those between bins.

    Parameters
    ----------
    oracle : Oracle
        Counts labels.
    objective : Objective
    limits : ConstraintSystem
        Constraints on the confusion that the objective is of.
    """

    oracle: Oracle
    objective: Objective
    limits: ConstraintSystem

    @cached_property
    def walk(self) -> Walk:
        """T intervals of thresholds, ascending, with the shares of each class that are predicted 1."""
        return self.oracle.outline(threshold_line(self.objective))

    @cached_property
    def confusions(self) -> FloatArray:
        """The confusion matrices (T, 2, 2)."""
        return confusions_along(self.walk.values, self.objective.row_priors[0])

    @cached_property
    def aim(self) -> FloatArray:
        """What is maximised, (T,); of a transform of a ratio, what it transforms."""
        ratio = self.objective.ratio
        if ratio is None:
            return self.objective.values_of(0, self.confusions)
        return np.asarray(ratio.value(*ratio.at(self.confusions[:, None]))[:, 0])

    @cached_property
    def _constrained(self) -> tuple[FloatArray, NDArray[np.bool_]]:
        """The values (Q, T) of what is constrained, and where (T,) one of them is 0/0."""
        bounds = [limit.bound for limit in self.limits.pooled]
        values = [bound.value(self.confusions) for bound in bounds]
        return np.array(values), _empty(self.limits, self.confusions)

    def kept(self, limits: ConstraintSystem) -> NDArray[np.bool_]:
        """Say which thresholds (T,) keep limits: these, with bounds that may be tighter."""
        values, empty = self._constrained
        kept = ~empty
        for value, limit in zip(values, limits.pooled, strict=True):
            low, high = limit.constraint.ends
            kept &= (value >= low - _ROUNDING) & (value <= high + _ROUNDING)
        return kept

    def glance(self, limits: ConstraintSystem) -> SolverResult | None:
        """Return the best of these thresholds that keep limits, as the running sums have it; None where none does."""
        values = np.where(self.kept(limits), self.aim, -np.inf)
        if values.max() == -np.inf:
            return None
        best = self.walk.best(values)
        threshold = thresholds_inside(self.walk.lower[best], self.walk.upper[best])
        n_classes = self.oracle.n_classes
        return SolverResult(
            losses=(self.objective.spread(threshold_loss(threshold)),),
            shares=np.ones(1),
            n_classes=n_classes,
            confusion=np.repeat(self.confusions[best], len(n_classes), axis=0),  # whose mean this is
            value=float(values[best[0]]),
            baseline=np.nan,
            outcome=Outcome.LOCAL,
            history=(float(values[best[0]]),),
            threshold=threshold,
        )

    def best(self, limits: ConstraintSystem) -> SolverResult | None:
        """Return the best of all thresholds that keep limits, counted as it decides; None where none does."""
        return sweep_within(self.oracle, self.objective, limits, outline=self.walk)

    # ---------------------------------------------------------------------------------------------------- mixtures

    @cached_property
    def mixes_exactly(self) -> bool:
        """Whether the best mixture is at a corner: of a ratio, within half-planes."""
        forms = [limit.bound.form for limit in self.limits.pooled]
        half_planes = all(isinstance(form, (Linear, FractionalLinear, MinimumForm)) for form in forms)
        return self.objective.ratio is not None and half_planes

    def mixture_value(self, limits: ConstraintSystem) -> float | None:
        """Return the metric of the best mixture of these thresholds within limits; None where there is none."""
        priors, corners = self.objective.row_priors[0], self._hull
        for limit in limits.pooled:
            for slope, level in _half_planes(limit.bound, priors):
                corners = _cut(corners, slope, level)
        confusions = confusions_along(corners, priors)
        full = ~_empty(limits, confusions)
        return float(self.objective.values_of(0, confusions[full]).max()) if full.any() else None

    @cached_property
    def _hull(self) -> FloatArray:
        """The corners (n, 2) of all that mixtures of thresholds predict 1 of each class, around it."""
        points = self.walk.values[::-1]  # from nobody to everybody
        points = points[np.append(True, np.diff(points, axis=0).any(axis=1))]  # of which hulls need each once
        above, below = upper_hull(points), upper_hull(points[:, ::-1])
        return np.concatenate([points[above], points[below[-2:0:-1]]])


def _empty(limits: ConstraintSystem, confusions: FloatArray) -> NDArray[np.bool_]:
    """Say at which confusions (T, 2, 2) one of the limits is 0/0."""
    empty = np.zeros(len(confusions), dtype=bool)
    for limit in limits.pooled:
        empty |= limit.bound.empty(confusions)
    return empty


def _half_planes(bound: BoundConstraint, priors: FloatArray) -> list[tuple[FloatArray, float]]:
    """Slopes and levels of what keeps a bound, as functions of the shares (2,) of each class that are predicted 1."""
    form = bound.form
    if not isinstance(form, MinimumForm):
        spaces = [(space.level, *along(space.A, priors)) for space in bound.half_spaces]
        return [(rise, level - nobody) for level, nobody, rise in spaces]
    nobody, *everybody = form.summary(
        confusions_along(np.array([[0.0, 0.0], [priors[0], 0.0], [0.0, priors[1]]]), priors)
    )
    rise = np.stack([(part - nobody) / (prior or 1.0) for part, prior in zip(everybody, priors, strict=True)], axis=1)
    return [(slope, bound.limits[0] - float(start)) for slope, start in zip(rise, nobody, strict=True)]


def _cut(corners: FloatArray, slope: FloatArray, level: float) -> FloatArray:
    """Return the corners of the part of a convex polygon, given by its corners (n, 2), where <slope, x> >= level."""
    beyond = corners @ slope - level
    beyond[np.abs(beyond) <= _ROUNDING * max(1.0, float(np.abs(slope).max()))] = 0.0
    following, next_beyond = np.roll(corners, -1, axis=0), np.roll(beyond, -1)
    crossed = np.flatnonzero(beyond * next_beyond < 0)
    share = beyond[crossed] / (beyond[crossed] - next_beyond[crossed])
    met = corners[crossed] + share[:, None] * (following[crossed] - corners[crossed])
    inside = np.flatnonzero(beyond >= 0)
    order = np.argsort(np.concatenate([inside, crossed + 0.5]), kind="stable")
    return np.concatenate([corners[inside], met])[order]
