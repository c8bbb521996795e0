"""Synthetic problems with known class probabilities, and metrics of confusion matrices in NumPy.

Evaluation must be independent of metricwise: nothing of it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# ---------------------------------------------------------------------------------------------------------------------
# metrics of confusion matrices (..., K, K)


def share_of(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the ratio, NaN at 0/0, which satisfies no bound."""
    return np.divide(a, b, out=np.full(np.shape(a), np.nan), where=np.asarray(b) != 0)


def hits(C: np.ndarray) -> np.ndarray:
    return np.diagonal(C, axis1=-2, axis2=-1)


def recalls(C: np.ndarray) -> np.ndarray:
    return share_of(hits(C), C.sum(axis=-1))


def f1s(C: np.ndarray) -> np.ndarray:
    return share_of(2.0 * hits(C), C.sum(axis=-1) + C.sum(axis=-2))


def micro_f1(C: np.ndarray) -> np.ndarray:
    """The first class is the negative one."""
    total = C.sum(axis=(-2, -1))
    positive = 2 * total - C[..., 0, :].sum(axis=-1) - C[..., :, 0].sum(axis=-1)
    return share_of(2.0 * hits(C)[..., 1:].sum(axis=-1), positive)


def kappa(C: np.ndarray, power: int) -> np.ndarray:
    k = C.shape[-1]
    apart = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    weight = (apart > 0) if power == 0 else apart**power
    chance = C.sum(axis=-1)[..., :, None] * C.sum(axis=-2)[..., None, :] / C.sum(axis=(-2, -1))[..., None, None]
    return 1 - share_of((weight * C).sum(axis=(-2, -1)), (weight * chance).sum(axis=(-2, -1)))


VALUES: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "accuracy": lambda C, _: share_of(hits(C).sum(axis=-1), C.sum(axis=(-2, -1))),
    "balanced_accuracy": lambda C, _: recalls(C).mean(axis=-1),
    "f1": lambda C, k: f1s(C)[..., k],
    "g_mean": lambda C, _: np.prod(recalls(C), axis=-1) ** (1 / C.shape[-1]),
    "kappa": lambda C, _: kappa(C, 0),
    "macro_f1": lambda C, _: np.nan_to_num(f1s(C)).mean(axis=-1),
    "micro_f1": lambda C, _: micro_f1(C),
    "min_recall": lambda C, _: recalls(C).min(axis=-1),
    "precision": lambda C, k: share_of(hits(C), C.sum(axis=-2))[..., k],
    "quadratic_kappa": lambda C, _: kappa(C, 2),
    "recall": lambda C, k: recalls(C)[..., k],
    "share": lambda C, k: share_of(C.sum(axis=-2), C.sum(axis=(-2, -1))[..., None])[..., k],
}


def value(name: str, C: np.ndarray) -> np.ndarray:
    """Return the metric of a name such as ``recall[2]``; class 1 without brackets."""
    metric, _, label = name.rstrip("]").partition("[")
    return VALUES[metric](np.asarray(C, dtype=float), int(label or 1))


def keeps(text: str, C: np.ndarray, slack: float = 1e-9) -> np.ndarray:
    """Return whether confusion matrices satisfy all of ``name >= number and name <= number ...``."""
    kept = np.ones(C.shape[:-2], dtype=bool)
    for name, sense, bound in map(str.split, text.split(" and ")):
        sign = 1 if sense == ">=" else -1
        kept &= sign * (value(name, C) - float(bound)) >= -slack
    return kept


def count(truth: np.ndarray, decided: np.ndarray) -> np.ndarray:
    """Return the confusion matrix of rows (N, K) with shares of each true class."""
    return np.stack([truth[decided == j].sum(axis=0) for j in range(truth.shape[1])], axis=1)


# ---------------------------------------------------------------------------------------------------------------------
# worlds


@dataclass(frozen=True)
class Draw:
    """Rows: the given probabilities, labels, and true class probabilities (N, K)."""

    given: np.ndarray
    y: np.ndarray
    truth: np.ndarray


def softmax(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def drawn(rng: np.random.Generator, scores: np.ndarray, temper: float, shift: Any) -> Draw:
    """Draw labels from the softmax of scores; the given probabilities are those of other scores."""
    truth = softmax(scores)
    y = np.minimum((truth.cumsum(axis=1) < rng.random((len(truth), 1))).sum(axis=1), truth.shape[1] - 1)
    given = softmax(temper * scores + np.asarray(shift))
    return Draw(given[:, 1] if truth.shape[1] == 2 else given, y, truth)


def binary(rng: np.random.Generator, n: int, calibrated: bool = False) -> Draw:
    """29 % positive; the given probabilities are underconfident and shifted to more positives."""
    scores = np.stack([np.zeros(n), -1.5 + 2.2 * rng.normal(size=n)], axis=1)
    return drawn(rng, scores, *((1.0, 0.0) if calibrated else (0.6, [0.0, 0.8])))


def three(rng: np.random.Generator, n: int) -> Draw:
    """Classes with 58, 23 and 19 % of the rows."""
    return drawn(rng, 1.5 * rng.normal(size=(n, 3)) + [1.5, 0.0, -0.3], 0.6, [0.0, 0.5, 0.4])


def several(rng: np.random.Generator, n: int, k: int) -> Draw:
    """Several classes, each rarer than the previous one."""
    return drawn(rng, 1.8 * rng.normal(size=(n, k)) + np.linspace(1.2, 0.0, k), 0.6, np.linspace(0.0, 0.6, k))
