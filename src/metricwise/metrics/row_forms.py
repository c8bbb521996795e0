"""Metrics as functions of means over rows, whatever the class shares, where they are no single ratio of such means.

For who sees rows one after another, and no class shares. Must not know rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..core.matrices import FloatArray
from .base import FractionalLinear

__all__ = ["PairRatio", "RatioMean", "mean_of_recalls", "precision_of", "recall_of"]


@dataclass(frozen=True, eq=False)
class PairRatio:
    """A ratio of means over pairs of independent rows, one of which brings the true class and one the decision.

    With tables A and B of each part, the value is ``(<A, C> + <A', pi q^T>) / (<B, C> + <B', pi q^T>)``: the true class
    of one row and the decision about another are independent.

    Parameters
    ----------
    own : FractionalLinear
        A and B, of the true class of a row and the decision about it.
    crossed : FractionalLinear
        A' and B', of the true class of a row and the decision about the other.
    limits : (float, float)
        The range.
    """

    own: FractionalLinear
    crossed: FractionalLinear
    limits: tuple[float, float]


@dataclass(frozen=True, eq=False)
class RatioMean:
    """A function of ratios of means over rows that increases with each of them.

    Parameters
    ----------
    kind : {"arithmetic", "geometric", "harmonic", "quadratic", "minimum", "matthews"}
        The mean; "quadratic" is one minus the quadratic mean of what is missing to 1, and "matthews" is the correlation
        of two classes by precision, recall, specificity and negative predictive value.
    parts : tuple of P FractionalLinear
        A part without `zero_division` is left out while it is 0/0.
    weight : ndarray of shape (P,)
        Weights of the parts.
    """

    kind: str
    parts: tuple[FractionalLinear, ...]
    weight: FloatArray

    @classmethod
    def of(cls, kind: str, parts: Iterable[FractionalLinear]) -> RatioMean:
        """Return the mean of parts with equal weights."""
        parts = tuple(parts)
        return cls(kind, parts, np.full(len(parts), 1.0 / len(parts)))


def recall_of(k: int, n_classes: int) -> FractionalLinear:
    """Return the recall of a class, which is unknown while it has no row."""
    hits, rows = np.zeros((2, n_classes, n_classes))
    hits[k, k], rows[k] = 1.0, 1.0
    return FractionalLinear(hits, rows, limits=(0.0, 1.0))


def precision_of(k: int, n_classes: int) -> FractionalLinear:
    """Return the precision of a class, which is unknown while it is not predicted."""
    recall = recall_of(k, n_classes)
    return FractionalLinear(recall.A, recall.B.T, limits=(0.0, 1.0))


def mean_of_recalls(kind: str, n_classes: int) -> RatioMean:
    """Return a mean of the recalls of all classes."""
    return RatioMean.of(kind, [recall_of(k, n_classes) for k in range(n_classes)])
