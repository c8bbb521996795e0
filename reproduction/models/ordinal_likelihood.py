"""Likelihood of an ordinal factor model with thresholds per user, and its gradient.

Owns the arithmetic on bare arrays: parameters in, penalised negative log-likelihood and gradient out. Must not know
estimators, ids or stopping.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, log_expit

__all__ = ["Design", "Penalty", "Shapes", "class_probabilities", "objective"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Shapes:
    """Sizes of the parameter blocks, which are stored one after the other in one vector.

    Parameters
    ----------
    n_users, n_items, n_classes, n_factors : int
    """

    n_users: int
    n_items: int
    n_classes: int
    n_factors: int

    @property
    def blocks(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Names and shapes."""
        steps = self.n_classes - 1
        return (
            ("common", (steps,)),  # first threshold, then logarithms of the gaps
            ("popularity", (1,)),
            ("threshold", (self.n_users, steps)),  # what a user adds to the common ones
            ("bias", (self.n_items,)),
            ("user", (self.n_users, self.n_factors)),
            ("item", (self.n_items, self.n_factors)),
            ("implicit", (self.n_items, self.n_factors)),
        )

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(int(np.prod(shape)) for _, shape in self.blocks)

    def split(self, vector: FloatArray) -> dict[str, FloatArray]:
        """Return views of the blocks."""
        out, start = {}, 0
        for name, shape in self.blocks:
            stop = start + int(np.prod(shape))
            out[name] = vector[start:stop].reshape(shape)
            start = stop
        return out


@dataclass(frozen=True, eq=False)
class Design:
    """Observed entries, and the sums over them that gradients need.

    Parameters
    ----------
    user, item, rating : integer ndarray of shape (n,)
        Codes from 0, sorted by user.
    by_user, by_item : sparse arrays of shape (n_users, n) and (n_items, n)
        Which entries belong to a user or item.
    start : integer ndarray of shape (n_users + 1,)
        Where each user's entries start.
    rated : sparse array of shape (n_users, n_items)
        1 / sqrt(number of the user's ratings) where there is one.
    popularity : ndarray of shape (n_items,)
        Centred logarithm of one plus the number of an item's ratings.
    """

    user: NDArray[np.intp]
    item: NDArray[np.intp]
    rating: NDArray[np.intp]
    by_user: Any
    by_item: Any
    start: NDArray[np.intp]
    rated: Any
    popularity: FloatArray

    @classmethod
    def of(cls, user: NDArray[np.intp], item: NDArray[np.intp], rating: NDArray[np.intp], shapes: Shapes) -> Design:
        """Build the sums of some entries."""
        n = len(rating)
        order = np.argsort(user, kind="stable")
        user, item, rating = user[order], item[order], rating[order]
        ones, rows = np.ones(n), np.arange(n)
        per_user = np.bincount(user, minlength=shapes.n_users)
        share = 1.0 / np.sqrt(np.maximum(per_user, 1))
        popularity = np.log1p(np.bincount(item, minlength=shapes.n_items))
        return cls(
            user,
            item,
            rating,
            sparse.csr_array((ones, (user, rows)), shape=(shapes.n_users, n)),
            sparse.csr_array((ones, (item, rows)), shape=(shapes.n_items, n)),
            np.concatenate([[0], np.cumsum(per_user)]),
            sparse.csr_array((share[user], (user, item)), shape=(shapes.n_users, shapes.n_items)),
            popularity - popularity[item].mean(),
        )

    def spread(self, values: FloatArray) -> Any:
        """Return one value per entry as a sparse array of shape (n_users, n_items)."""
        shape = (self.by_user.shape[0], self.by_item.shape[0])
        return sparse.csr_array((values, self.item, self.start), shape=shape)


@dataclass(frozen=True)
class Penalty:
    """Weights of the squares of each block."""

    threshold: float
    bias: float
    factor: float


def scores(blocks: dict[str, FloatArray], design: Design, user: Any, item: Any) -> FloatArray:
    """Return the score of each entry: the item's bias and the match of factors."""
    score = blocks["bias"][item] + blocks["popularity"][0] * design.popularity[item]
    if blocks["user"].shape[1]:
        vectors = blocks["user"] + design.rated @ blocks["implicit"]
        score = score + np.einsum("nf,nf->n", vectors[user], blocks["item"][item])
    return score


def thresholds(blocks: dict[str, FloatArray], user: Any) -> tuple[FloatArray, FloatArray]:
    """Return the ordered thresholds (n, K - 1) of each entry's user, and their gaps (n, K - 2)."""
    raw = blocks["common"] + blocks["threshold"]
    gaps = np.exp(raw[:, 1:])
    ordered = np.concatenate([raw[:, :1], raw[:, :1] + np.cumsum(gaps, axis=1)], axis=1)
    return ordered[user], gaps


def class_probabilities(score: FloatArray, ordered: FloatArray) -> FloatArray:
    """Return the class probabilities (n, K) of scores (n,) and thresholds (n, K - 1)."""
    below = expit(ordered - score[:, None])
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


def objective(vector: FloatArray, design: Design, shapes: Shapes, penalty: Penalty) -> tuple[float, FloatArray]:
    """Return the penalised negative log-likelihood per entry and its gradient.

    With a and b the upper and lower threshold of the observed class, less the score,
    ``log p = log s(a) + log s(-b) + log(1 - exp(b - a))`` for the logistic function s; a is infinite for the last
    class, b for the first.
    """
    blocks = shapes.split(vector)
    n = len(design.rating)
    score = scores(blocks, design, design.user, design.item)
    ordered, gaps = thresholds(blocks, design.user)
    padded = np.concatenate([np.full((n, 1), -np.inf), ordered, np.full((n, 1), np.inf)], axis=1)
    rows = np.arange(n)
    upper = padded[rows, design.rating + 1] - score
    lower = padded[rows, design.rating] - score
    gap = np.maximum(upper - lower, 1e-10)
    value = -np.sum(log_expit(upper) + log_expit(-lower) + np.log(-np.expm1(-gap)))
    with np.errstate(over="ignore"):
        excess = 1.0 / np.expm1(gap)
    to_upper, to_lower = -(expit(-upper) + excess), expit(lower) + excess
    gradient = np.zeros_like(vector)
    slopes = shapes.split(gradient)
    _score_gradient(slopes, blocks, design, -(to_upper + to_lower))
    _threshold_gradient(slopes, design, gaps, to_upper, to_lower, shapes)
    for name, weight in _penalties(penalty):
        value += 0.5 * weight * float(np.sum(blocks[name] ** 2))
        slopes[name] += weight * blocks[name]
    return value / n, gradient / n


def _penalties(penalty: Penalty) -> tuple[tuple[str, float], ...]:
    return (
        ("threshold", penalty.threshold),
        ("bias", penalty.bias),
        ("user", penalty.factor),
        ("item", penalty.factor),
        ("implicit", penalty.factor),
    )


def _score_gradient(
    slopes: dict[str, FloatArray], blocks: dict[str, FloatArray], design: Design, to_score: FloatArray
) -> None:
    slopes["bias"] += design.by_item @ to_score
    slopes["popularity"] += design.popularity @ slopes["bias"]
    if not blocks["user"].shape[1]:
        return
    vectors = blocks["user"] + design.rated @ blocks["implicit"]
    table = design.spread(to_score)
    to_vector = table @ blocks["item"]
    slopes["user"] += to_vector
    slopes["implicit"] += design.rated.T @ to_vector
    slopes["item"] += table.T @ vectors


def _threshold_gradient(
    slopes: dict[str, FloatArray],
    design: Design,
    gaps: FloatArray,
    to_upper: FloatArray,
    to_lower: FloatArray,
    shapes: Shapes,
) -> None:
    """Sum over the thresholds that a parameter moves: all of them for the first, those above for a gap."""
    steps = shapes.n_classes - 1
    table = np.zeros((shapes.n_users, steps))
    for k in range(steps):
        here = np.where(design.rating == k, to_upper, 0.0) + np.where(design.rating == k + 1, to_lower, 0.0)
        table[:, k] = design.by_user @ here
    above = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
    above[:, 1:] *= gaps
    slopes["threshold"] += above
    slopes["common"] += above.sum(axis=0)
