"""Shared by solvers of ratios: the line of losses ``g B - A``, and the upper bound that a point on it proves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..core.losses import Loss
from ..metrics.objective import Objective, Ratio
from ..oracles.base import Line, Oracle
from .result import SolverResult

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RatioScore:
    """The ratio of the two functionals of a walk, as what is to be as large as possible."""

    ratio: Ratio

    def value(self, at: FloatArray) -> FloatArray:
        """Return the ratios (...) of numerators and denominators (..., 2)."""
        return self.ratio.value(at[..., 0], at[..., 1])

    def bound(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return upper bounds of the ratio between numerators and denominators `low` and `high`."""
        least, most = low[..., 1], high[..., 1]
        vanishing = least <= 1e-12 * np.abs(self.ratio.B).max()
        top = high[..., 0]
        bound = top / np.where(vanishing, 1.0, np.where(top >= 0, least, most))
        return np.where(vanishing, np.inf, bound)


def line_of(
    objective: Objective, ratio: Ratio, constant: Loss, slope: Loss, vanishing: NDArray[np.bool_] | None = None
) -> Line:
    """Return a line of losses along which numerator and denominator are followed, group by group."""
    grouping = objective.grouping
    group = np.where(grouping.share > 0, grouping.group, -1)
    return Line(group, grouping.share, constant, slope, np.stack([ratio.A, ratio.B], axis=1), vanishing)


def empty_at_last(objective: Objective, ratio: Ratio) -> NDArray[np.bool_]:
    """Say which numerators and denominators (G, 2) are sums of nothing for the losses ``g B - A`` at large g.

    Where some classes never count in the denominator and the others always do, large g leaves the former only.
    """
    out = np.zeros((len(ratio.A), 2), dtype=bool)
    grouping = objective.grouping
    for g, k in enumerate(grouping.n_classes):
        never = np.asarray(~ratio.B[g, :k, :k].any(axis=0))
        # A class that some output of the group lacks cannot be what that output turns to.
        common = int(objective.n_classes[grouping.group == g].min())
        if never[:common].any() and (ratio.B[g, :k, :k][:, ~never] > 0).all():
            out[g] = not ratio.A[g, :k, :k][:, never].any(), True
    return out


def ratio_of(objective: Objective) -> Ratio:
    """Return the objective as the ratios that its solver has declared to need."""
    ratio = objective.ratio
    assert ratio is not None
    return ratio


def bounding_losses(objective: Objective, ratio: Ratio, g: FloatArray) -> list[Loss]:
    """Return the losses whose confusions prove a bound at g, (G,); see :func:`ratio_bound`."""
    return [objective.spread(loss_at(ratio.line, g)), objective.spread(ratio.line[1])]


def ratio_bound(objective: Objective, ratio: Ratio, g: FloatArray, counted: FloatArray) -> FloatArray | None:
    """Bound each ratio from above: psi* - g <= max_C <A - g B, C> / min_C <B, C>.

    Parameters
    ----------
    g : ndarray of shape (G,)
        Any numbers; the nearer to the best ratios, the tighter the bound.
    counted : ndarray of shape (2, M, K, K)
        Confusions of the bounding losses, which a certified oracle has been asked for: so the bound holds whatever rule
        a solver has found.

    Returns
    -------
    ndarray of shape (G,), or None if the denominator can vanish while something is left to gain
    """
    top, least = counted
    numerator, denominator = ratio.at(objective.grouping.pool(top))
    excess = np.maximum(numerator - g * denominator, 0.0)
    if ratio.linear:
        return g + excess
    floor = ratio.at(objective.grouping.pool(least))[1]
    if np.any((floor <= 0) & (excess > 0)):
        return None
    return g + np.where(excess > 0, excess / np.where(floor > 0, floor, 1.0), 0.0)


def loss_at(line: tuple[Loss, Loss], g: FloatArray) -> Loss:
    """Return the losses ``-A + g B`` of all groups for g of shape (G,)."""
    return line[0].map(lambda a, b: a + g.reshape((-1,) + (1,) * (a.ndim - 1)) * b, line[1])


def certify(
    result: SolverResult,
    oracle: Oracle,
    objective: Objective,
    ratio: Ratio,
    g: FloatArray,
    counted: FloatArray | None = None,
) -> SolverResult:
    """Attach the upper bound that a point on the line proves, where the oracle can prove anything.

    Parameters
    ----------
    g : ndarray of shape (G,)
    counted : ndarray of shape (2, M, K, K), optional
        Confusions of the bounding losses at g; without them they cost a pass.
    """
    if not oracle.certified:
        return result
    if counted is None:
        counted = oracle.confusions(bounding_losses(objective, ratio, g))
    bounds = ratio_bound(objective, ratio, g, counted)
    upper = None if bounds is None else max(result.value, objective.from_ratios(bounds))
    return replace(result, upper_bound=upper)


def certify_walk(
    result: SolverResult, oracle: Oracle, objective: Objective, ratio: Ratio, hoped: FloatArray, counted: FloatArray
) -> SolverResult:
    """Attach the upper bound of the best point of a walk.

    Parameters
    ----------
    hoped : ndarray of shape (G,)
        The ratios there, by running sums.
    counted : ndarray of shape (2, M, K, K)
        Confusions of the bounding losses at these. Where the rule has fallen short of them, they prove less than those
        at the ratios that it has reached, which cost a pass.
    """
    if not falls_short(result, objective, ratio, hoped):
        return certify(result, oracle, objective, ratio, hoped, counted)
    return certify(result, oracle, objective, ratio, ratio.value(*ratio.at(objective.grouping.pool(result.confusion))))


def falls_short(result: SolverResult, objective: Objective, ratio: Ratio, hoped: FloatArray) -> bool:
    """Say whether rounding has decided rows otherwise than the running sums of a walk have it."""
    reached = ratio.value(*ratio.at(objective.grouping.pool(result.confusion)))
    return bool(((reached < hoped - 1e-9) & ~objective.frozen_groups).any())
