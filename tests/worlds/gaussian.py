"""Worlds whose density ratios are known: classes of normal rows, and models that are over- or underconfident."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GaussianWorld:
    """Classes of normal rows of unit variance about `means` (K, D), with `shares` (K,)."""

    means: FloatArray
    shares: FloatArray

    @classmethod
    def draw_world(cls, rng: np.random.Generator, k: int, distance: float = 1.0) -> GaussianWorld:
        """Return a world of k classes."""
        return cls(distance * rng.normal(size=(k, 3)), rng.dirichlet(np.full(k, 8.0)))

    def draw(
        self, rng: np.random.Generator, n_rows: int, shares: FloatArray | None = None
    ) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return rows and their classes, with these shares of the classes."""
        y = rng.choice(len(self.shares), n_rows, p=self.shares if shares is None else shares)
        return self.means[y] + rng.normal(size=(n_rows, self.means.shape[1])), y

    def logits(self, x: FloatArray, temperature: float = 1.0) -> FloatArray:
        """Return the logits (N, K) of a model, the true ones times a temperature."""
        distances = ((x[:, None] - self.means) ** 2).sum(axis=2)
        return np.asarray(temperature * (-0.5 * distances + np.log(self.shares)))

    def posterior(self, x: FloatArray, temperature: float = 1.0) -> FloatArray:
        """Return the probabilities (N, K) of a model."""
        z = self.logits(x, temperature)
        eta = np.exp(z - z.max(axis=1, keepdims=True))
        return np.asarray(eta / eta.sum(axis=1, keepdims=True))
