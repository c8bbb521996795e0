"""A metric shifted and scaled: a loss that is to be small, as something to be large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._common import FloatArray
from .base import FractionalLinear, Linear, Metric

__all__ = ["Affine"]


@dataclass(frozen=True, eq=False)
class Affine(Metric):
    """``scale * psi(C) + shift``; of the form of psi where that is linear or fractional-linear.

    Parameters
    ----------
    base : Metric
    scale : float, default=-1.0
    shift : float, default=0.0

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.metrics.affine import Affine
    >>> error = Affine(mw.metrics.Accuracy(), -1.0, 1.0)
    >>> float(error.value([[0.5, 0.25], [0.0, 0.25]])), error.bind([0.75, 0.25]).family
    (0.25, 'linear')
    """

    base: Metric
    scale: float = -1.0
    shift: float = 0.0

    @property
    def name(self) -> str:  # type: ignore[override]  # made of its parts
        return f"neg_{self.base.name}" if (self.scale, self.shift) == (-1.0, 0.0) else f"affine_{self.base.name}"

    @property
    def family(self) -> str:  # type: ignore[override]  # likewise
        return self.base.family

    @property
    def concave(self) -> bool:  # type: ignore[override]  # likewise
        return self.base.concave and self.scale > 0

    @property
    def smooth(self) -> bool:  # type: ignore[override]  # likewise
        return self.base.smooth

    @property
    def range(self) -> tuple[float, float]:
        return self._limits(self.base.range)

    def _limits(self, limits: tuple[float, float]) -> tuple[float, float]:
        low, high = sorted(self.scale * end + self.shift for end in limits)
        return low, high

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        bound = self.base.bind(priors, classes)
        limits = self._limits(bound.range)
        if isinstance(bound, Linear):
            return Linear(self.scale * bound.A + self.shift, limits)
        if isinstance(bound, FractionalLinear):
            zero = bound.zero_division
            zero = None if zero is None else self.scale * zero + self.shift
            return FractionalLinear(self.scale * bound.A + self.shift * bound.B, bound.B, zero, limits)
        return Affine(bound, self.scale, self.shift)

    def value(self, confusion: ArrayLike) -> FloatArray:
        return np.asarray(self.scale * self.base.value(confusion) + self.shift)

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        return np.asarray(self.scale * self.base.gradient(confusion))
