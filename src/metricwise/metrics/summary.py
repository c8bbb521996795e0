"""Metrics that depend on a few sums of a confusion matrix only.

Most metrics look at the hits of each class and at its true and predicted shares, never at single cells. Such a metric
names what it looks at, its *summary*: linear functions of C, of which there are some K instead of K^2. A mixture of
rules has the mixed summary, so solvers keep and search summaries, and a thousand classes cost no more than they must.
Must not know data or solvers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ._common import FloatArray, diagonal, on_diagonal
from .base import Metric

__all__ = ["HitsAndColumns", "OfShares", "Summarised"]


class Summarised(Metric):
    """Base of the bound metrics that are functions of a summary; value and gradient follow from it.

    Subclasses implement the four methods of :class:`Metric` that deal with summaries.
    """

    def value(self, confusion: ArrayLike) -> FloatArray:
        return self.value_at(self.summary(np.asarray(confusion, dtype=np.float64)))

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        form = self.form_of(self.slope_at(self.summary(confusion)))
        if len(form) == 1:
            return form[0]
        by_hit, by_column = form
        return on_diagonal(by_hit) + by_column[..., None, :]


class OfShares(Summarised):
    """Base of the bound metrics of hits ``C[k, k]`` and predicted shares alone: whole matrices need not be counted."""

    def summary_of(self, hits: FloatArray, columns: FloatArray) -> FloatArray:
        """Return the summary of hits and predicted shares, (..., K) each."""
        raise NotImplementedError

    def summary(self, confusion: FloatArray) -> FloatArray:
        return self.summary_of(diagonal(confusion), confusion.sum(axis=-2))


class HitsAndColumns(OfShares):
    """Base of the bound metrics of hits and predicted shares of all classes, one after the other."""

    def summary_of(self, hits: FloatArray, columns: FloatArray) -> FloatArray:
        return np.concatenate([hits, columns], axis=-1)

    def form_of(self, slope: FloatArray) -> tuple[FloatArray, ...]:
        by_hit, by_column = np.split(slope, 2, axis=-1)
        return by_hit, by_column
