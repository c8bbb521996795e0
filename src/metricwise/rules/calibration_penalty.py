"""What the parameters of a calibration are shrunk towards. Must not know rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

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

    def add(self, theta: FloatArray, value: FloatArray, gradient: FloatArray, hessian: FloatArray) -> None:
        """Add the penalty of parameters (F, k) to value, gradient and Hessian."""
        away = theta - self.center
        slope = away @ self.matrix
        value += 0.5 * (slope * away).sum(axis=1)
        gradient += slope
        hessian += self.matrix
        if self.of_scale:
            t = theta[:, 0]
            ratio = np.log(t / self.center[0])
            strength = self.strength if self.scale_strength is None else self.scale_strength
            value += 0.5 * strength * ratio**2
            gradient[:, 0] += strength * ratio / t
            hessian[:, 0, 0] += strength / t**2  # of squares that are linearised: positive for every t
