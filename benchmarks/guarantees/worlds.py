"""Worlds that labels are drawn from, and the true value of every rule in them.

Nothing of metricwise is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, ndtri
from scipy.stats import qmc

from ..promise_worlds import count, softmax, value

POINTS = 2**20  # of the table of a binary world
SOBOL_POWER = 17  # 2^17 points, whose means are exact to about 1e-4


@dataclass(frozen=True)
class Rows:
    """Probabilities and labels, and the probabilities of as many rows without labels."""

    proba: np.ndarray
    y: np.ndarray
    unlabelled: np.ndarray


def true_share(u: np.ndarray) -> np.ndarray:
    """Return the probability of class 1 at quantiles: log odds are normal, 29 % of the rows are positive."""
    return np.asarray(expit(-1.5 + 2.2 * ndtri(u)))


def bumps(u: np.ndarray) -> np.ndarray:
    """Return shares of class 1 that make precision rise and fall: it crosses 0.8, 0.9 and 0.95 more than once."""
    edges = np.array([0.62, 0.68, 0.74, 0.84, 0.87, 0.985])
    return np.array([0.1, 0.97, 0.25, 0.985, 0.5, 0.995, 0.7])[np.searchsorted(edges, u, side="right")]


@dataclass(frozen=True)
class BinaryWorld:
    """Scores that rise with a uniform variable, and the probability of class 1 at each of its values."""

    share: Callable[[np.ndarray], np.ndarray] = true_share
    temper: float = 1.0
    shift: float = 0.0
    steps: int | None = None  # scores are rounded to so many

    @cached_property
    def shares(self) -> np.ndarray:
        return self.share((np.arange(POINTS) + 0.5) / POINTS)

    @cached_property
    def scores(self) -> np.ndarray:
        """The scores at the edges between points (POINTS + 1)."""
        edges = np.clip(np.arange(POINTS + 1) / POINTS, 0.5 / POINTS, 1 - 0.5 / POINTS)
        return np.asarray(expit(self.temper * (-1.5 + 2.2 * ndtri(edges)) + self.shift))

    @cached_property
    def hits(self) -> np.ndarray:
        """The mass of class 1 among the points from each one on."""
        return np.append(np.cumsum(self.shares[::-1])[::-1], 0.0) / POINTS

    def scores_at(self, u: np.ndarray) -> np.ndarray:
        at, within = np.divmod(u * POINTS, 1.0)
        point = at.astype(np.int64)
        scores = self.scores[point] + within * (self.scores[point + 1] - self.scores[point])
        return scores if self.steps is None else np.round(scores * self.steps) / self.steps

    def draw(self, rng: np.random.Generator, n: int) -> Rows:
        u = rng.random(n)
        y = (rng.random(n) < self.shares[(u * POINTS).astype(np.int64)]).astype(np.int64)
        return Rows(self.scores_at(u), y, self.scores_at(rng.random(n)))

    def truth(self, decide: Callable[[np.ndarray], np.ndarray]) -> dict[str, float]:
        """Return the true values of a rule that is positive above some score."""
        first = self.first_positive(decide)
        hits, mass = self.hits[first], 1 - first / POINTS
        return {"precision": hits / mass if mass else np.nan, "recall": hits / self.hits[0]}

    def first_positive(self, decide: Callable[[np.ndarray], np.ndarray], step: int = 1024) -> int:
        """Return the first positive point, POINTS if none is: by every so many points, then by those between."""
        last = self._first(decide, np.arange(step - 1, POINTS, step))
        return POINTS if last is None else int(self._first(decide, np.arange(last - step + 1, last + 1)) or 0)

    def _first(self, decide: Callable[[np.ndarray], np.ndarray], points: np.ndarray) -> int | None:
        positive = decide(self.scores_at((points + 0.5) / POINTS)).astype(bool)
        if np.any(positive[:-1] & ~positive[1:]):
            raise AssertionError("the rule is no threshold")
        return int(points[np.argmax(positive)]) if positive[-1] else None


@dataclass(frozen=True)
class ClassWorld:
    """Three classes with 58, 23 and 19 % of the rows; the given probabilities are tempered and shifted."""

    spread: float = 1.5
    centre: tuple[float, ...] = (1.5, 0.0, -0.3)
    temper: float = 0.6
    shift: tuple[float, ...] = (0.0, 0.5, 0.4)

    def given(self, scores: np.ndarray) -> np.ndarray:
        return softmax(self.temper * scores + np.asarray(self.shift))

    @cached_property
    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Given and true probabilities of points that stand for the population."""
        uniform = qmc.Sobol(len(self.centre), seed=0).random_base2(SOBOL_POWER)
        scores = self.spread * ndtri(np.clip(uniform, 1e-9, 1 - 1e-9)) + np.asarray(self.centre)
        return self.given(scores), softmax(scores)

    def draw(self, rng: np.random.Generator, n: int) -> Rows:
        scores, others = (self.spread * rng.normal(size=(n, len(self.centre))) + np.asarray(self.centre) for _ in "ab")
        y = np.minimum((softmax(scores).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), len(self.centre) - 1)
        return Rows(self.given(scores), y, self.given(others))

    def truth(self, decide: Callable[[np.ndarray], np.ndarray]) -> dict[str, float]:
        """Return the true values of a rule; classes that are no class are abstentions."""
        given, shares = self.points
        decided = decide(given)
        kept = np.isin(decided, np.arange(shares.shape[1]))
        confusion = count(shares[kept], np.asarray(decided)[kept].astype(int)) if kept.any() else np.zeros((3, 3))
        recalls = {f"recall[{k}]": float(value(f"recall[{k}]", confusion)) for k in range(shares.shape[1])}
        return {**recalls, "accuracy": float(value("accuracy", confusion)), "coverage": float(kept.mean())}


WORLDS: dict[str, BinaryWorld | ClassWorld] = {
    "monotone": BinaryWorld(),
    "bumpy": BinaryWorld(bumps),
    "tied": BinaryWorld(steps=20),
    "tempered": BinaryWorld(temper=0.6, shift=0.8),
    "classes": ClassWorld(),
}
