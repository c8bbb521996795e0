"""What the parameters of a calibration are shrunk towards. Must not know rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.cached import cached_property

__all__ = ["Penalty"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Penalty:
    """What the parameters theta = (t, b_1, ..., b_{k-1}), b_j = c_j - c_0, are shrunk towards, and how strongly.

    With `of_scale` it is log t that is shrunk, of which nothing is known but the scale; `scale_strength` is how
    strongly, where that differs from the biases.
    """

    center: FloatArray
    strength: float
    of_scale: bool = False
    scale_strength: float | None = None

    @cached_property
    def matrix(self) -> FloatArray:
        """(t - t_0)^2 and sum_k of the squared centred biases, as a quadratic form in theta - center."""
        k = len(self.center)
        form = np.eye(k) - 1.0 / k
        form[0] = form[:, 0] = 0.0
        form[0, 0] = 0.0 if self.of_scale else 1.0
        return self.strength * form

    @property
    def strength_of_scale(self) -> float:
        """How strongly log t is shrunk; 0 where t itself is."""
        if not self.of_scale:
            return 0.0
        return self.strength if self.scale_strength is None else self.scale_strength

    def add(self, theta: FloatArray, value: FloatArray, gradient: FloatArray, hessian: FloatArray) -> None:
        """Add the penalty of parameters (F, k) to value, gradient and Hessian."""
        kernels.add_penalty(theta, self.center, self.matrix, self.strength_of_scale, (value, gradient, hessian))
