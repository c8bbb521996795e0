"""Increasing transforms of simpler metrics: the best rule is the simpler metric's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..core.cached import cached_property
from ..core.errors import entry_point
from ..core.matrices import FloatArray, as_shares
from .base import FractionalLinear, Increasing, Linear, Metric, Traits
from .parameters import check_finite
from .registry import register

__all__ = ["Decathlon", "Polynomial"]

# Below this headroom the slope of a root (gamma < 1) is taken as the slope here: finite instead of infinite.
_FLOOR = 1e-9


@register("polynomial")
@dataclass(frozen=True, eq=False)
class Polynomial(Metric):
    """Power of the distance to a maximal error, ``max(0, max_error - E)^gamma`` with ``E = 1 - sum_i C[i, i]``.

    Range [max(0, max_error - 1)^gamma, max_error^gamma]. It has no 0/0. (The paper prints ``(1 - diag C)^gamma``,
    which is the error itself.)

    Parameters
    ----------
    gamma : float, default=2.0
        The exponent, which must be positive.
    max_error : float, default=1.0
        The error at which the score reaches 0, which must be positive.

    See Also
    --------
    Decathlon : The same with gamma = 2.
    Increasing : Any increasing transform.

    References
    ----------
    .. [1] Rebuffi, Bilen, Vedaldi (2017), "Learning Multiple Visual Domains with Residual Adapters", NeurIPS.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.Polynomial().value([[0.5, 0.25], [0.0, 0.25]]))
    0.5625
    """

    gamma: float = 2.0
    max_error: float = 1.0

    label: ClassVar[str] = "polynomial"

    @entry_point("{class}")
    def __post_init__(self) -> None:
        for parameter in ("gamma", "max_error"):
            check_finite(getattr(self, parameter), parameter, above=0.0)

    @cached_property
    def traits(self) -> Traits:
        limits = (max(0.0, self.max_error - 1) ** self.gamma, self.max_error**self.gamma)
        return Traits(name=self.label, family="increasing transform", range=limits, fixed_form=True)

    def transform(self, accuracy: FloatArray) -> FloatArray:
        """Return the score of an accuracy."""
        return np.asarray(np.maximum(0.0, self.max_error - 1 + accuracy) ** self.gamma)

    def slope(self, accuracy: FloatArray) -> FloatArray:
        """Return the derivative of the score by the accuracy; 0 beyond the error allowed."""
        headroom = self.max_error - 1 + np.asarray(accuracy)
        inside = self.gamma * np.maximum(headroom, _FLOOR) ** (self.gamma - 1)
        return np.where(headroom < 0, 0.0, inside)

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Increasing:
        return self._transformed(Linear(np.eye(as_shares(priors).shape[-1]), (0.0, 1.0)))

    def _of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> Increasing:
        return self._transformed(Linear(np.eye(n_classes), (0.0, 1.0)).as_ratio())

    def _transformed(self, accuracy: Linear | FractionalLinear) -> Increasing:
        return Increasing(accuracy, self.transform, self.slope, self.range)

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Increasing:
        return self.bind(priors)  # one more label, which no row has


@register("decathlon")
@dataclass(frozen=True, eq=False)
class Decathlon(Polynomial):
    """Score of one domain of the Visual Decathlon, up to its scale: :class:`Polynomial` with gamma = 2.

    The challenge awards 1000 points for no error, ``1000 / max_error**2`` times this score, and sums over domains,
    which corresponds to the macro-average over outputs. Range and 0/0 as for :class:`Polynomial`.

    Parameters
    ----------
    gamma : float, default=2.0
        The exponent.
    max_error : float, default=1.0
        As in :class:`Polynomial`.

    See Also
    --------
    Polynomial : Any power.

    References
    ----------
    .. [1] Rebuffi, Bilen, Vedaldi (2017), "Learning Multiple Visual Domains with Residual Adapters", NeurIPS.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.Decathlon(max_error=0.5).value([[0.5, 0.25], [0.0, 0.25]]))
    0.0625
    """

    label: ClassVar[str] = "decathlon"
