"""How new rows differ from labelled ones: class shares that move, and rows that move.

A shift is a weight for each row of the pool; new rows are drawn with replacement in proportion to it, and the true
value of a rule is that of the weighted pool. Must not know metrics or methods.

- none: all rows weigh the same; class shares are those of the labelled rows (the split is stratified).
- slight, mild, strong: the share of class k is multiplied by ``ratio ** u_k`` and scaled to sum to 1, where u is a
  random permutation of K evenly spaced numbers from -1/2 to 1/2, so that the odds of two classes change by at most
  `ratio`: 2 (slight), 3 (mild) or 12 (strong). Within a class all rows weigh the same: P(x | y) is unchanged.
- covariate 1: rows weigh ``exp(a * z)``, with z the first principal component of the standardised features, clipped at
  two standard deviations, and a random sign of a. P(y | x) is unchanged.
- covariate 2: the rows of one of five clusters (k-means on the standardised features; drawn at random) weigh r times
  as much as the others. P(y | x) is unchanged.

a and r are such that the weights are worth three quarters of the rows, ``(sum w)^2 / sum w^2 = 0.75 n``, about as
many as in a mild shift of class shares, or half of them (covariate 1 and 2, further); a is at most 2, and r at most 50.

The strengths were not fixed before results were seen. The first ones, ratios of 2 and 8 and weights worth half of the
rows, were replaced after first runs: by ratios at which rules for the true shares gain about 1 and 6 points, and by
weights as uneven as those of a mild shift. Slight shifts and those further are kept, and reported beside the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from .cases import Case

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

RATIO = {"none": 1.0, "slight": 2.0, "mild": 3.0, "strong": 12.0}
WORTH = {  # share of the rows that the weights of a covariate shift are worth
    "covariate 1": 0.75,
    "covariate 2": 0.75,
    "covariate 1, further": 0.5,
    "covariate 2, further": 0.5,
}
DIRECTIONS = ("covariate 1", "covariate 1, further")
SHIFTS = ("none", "mild", "strong", *WORTH)
MAX_CLIP = 2.0  # standard deviations of the direction
MAX_STRENGTH = 2.0
MAX_RATIO = 50.0


@dataclass(frozen=True, eq=False)
class Shift:
    """Weights of the rows of the pool, which sum to 1, and the class shares that they make."""

    name: str
    weight: FloatArray
    shares: FloatArray

    def draw(self, rng: np.random.Generator, n_rows: int) -> IntArray:
        """Return positions of rows of the pool, drawn with replacement."""
        return rng.choice(len(self.weight), size=n_rows, p=self.weight)


def make_shift(case: Case, name: str, rng: np.random.Generator) -> Shift:
    """Draw a shift of a kind."""
    weight = move_rows(case, name, rng) if name in WORTH else move_shares(case, RATIO[name], rng)
    weight = weight / weight.sum()
    return Shift(name, weight, np.bincount(case.pool_y, weight, minlength=case.n_classes))


def move_shares(case: Case, ratio: float, rng: np.random.Generator) -> FloatArray:
    """Return weights by class, for class shares that are moved."""
    steps = rng.permutation(np.linspace(-0.5, 0.5, case.n_classes))
    target = case.shares * ratio**steps
    counts = np.bincount(case.pool_y, minlength=case.n_classes)
    return np.asarray((target / target.sum() / counts)[case.pool_y])


def move_rows(case: Case, name: str, rng: np.random.Generator) -> FloatArray:
    """Return weights by features."""
    if name in DIRECTIONS:
        z = (case.direction - case.direction.mean()) / case.direction.std()
        return tilt(rng.choice([-1.0, 1.0]) * np.clip(z, -MAX_CLIP, MAX_CLIP), WORTH[name])
    share = np.bincount(case.cluster) / len(case.cluster)
    favoured = rng.integers(len(share))
    return np.where(case.cluster == favoured, cluster_ratio(float(share[favoured]), WORTH[name]), 1.0)


def worth(weight: FloatArray) -> float:
    """Return the share of rows that weights are worth."""
    return float(weight.sum() ** 2 / (weight**2).sum() / len(weight))


def tilt(z: FloatArray, target: float) -> FloatArray:
    """Return ``exp(a * z)``, with a such that the weights are worth a share of the rows."""

    def excess(strength: float) -> float:
        return worth(np.exp(strength * z)) - target

    strength = MAX_STRENGTH if excess(MAX_STRENGTH) > 0 else brentq(excess, 0.0, MAX_STRENGTH)
    return np.asarray(np.exp(strength * z))


def cluster_ratio(share: float, target: float) -> float:
    """Return how much more the rows of a cluster weigh, if it has this share of the rows."""

    def excess(ratio: float) -> float:
        return (1 - share + share * ratio) ** 2 / (1 - share + share * ratio**2) - target

    return MAX_RATIO if excess(MAX_RATIO) > 0 else float(brentq(excess, 1.0, MAX_RATIO))
