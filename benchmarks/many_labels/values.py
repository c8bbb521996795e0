"""The goals, and the one judge of everybody's decisions: counts of labels, their metrics, and standard errors.

Macro averages are taken over all labels, also those that have no positives or are never predicted; 0/0 is 0. Positives
that are not stored are misses. Must not know methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

FloatArray = NDArray[np.float64]

BLOCKS = 20  # of rows, left out one at a time
BUDGETS: tuple[int | None, ...] = (1, 3, 5, None)
METRICS = ("f1", "precision", "recall", "label_coverage")


@dataclass(frozen=True)
class Goal:
    """A metric, how it is averaged over labels, and the number of labels that every row gets (None: any number)."""

    metric: str
    average: str
    k: int | None

    @property
    def title(self) -> str:
        name = self.metric.replace("_", " ").replace("f1", "F1")
        averaged = name if self.metric == "label_coverage" else f"{self.average}-{name}"
        return f"{averaged}, no budget" if self.k is None else f"{averaged}@{self.k}"


def make_goals() -> tuple[Goal, ...]:
    """Return all goals; without a budget precision, recall and coverage ask for no or for all labels."""
    averages = [("macro", metric) for metric in METRICS] + [("micro", metric) for metric in METRICS[:3]]
    budgeted = [Goal(metric, average, k) for k in BUDGETS if k for average, metric in averages]
    return (*budgeted, Goal("f1", "macro", None), Goal("f1", "micro", None))


GOALS = make_goals()


def count(decided: csr_matrix, y: csr_matrix) -> FloatArray:
    """Return hits, predicted and true labels, (3, M)."""
    return np.stack([column_sums(both(decided, y)), column_sums(decided), column_sums(y)])


def both(decided: csr_matrix, y: csr_matrix) -> csr_matrix:
    return csr_matrix(as_ones(decided).multiply(as_ones(y)))


def as_ones(matrix: csr_matrix) -> csr_matrix:
    """Return the matrix with 1 in place of what is not 0."""
    ones = csr_matrix((np.ones(len(matrix.data), np.float32), matrix.indices, matrix.indptr), shape=matrix.shape)
    if not np.all(matrix.data):
        ones.data[:] = matrix.data != 0
    return ones


def column_sums(matrix: csr_matrix) -> FloatArray:
    return np.bincount(matrix.indices, weights=(matrix.data != 0).astype(float), minlength=matrix.shape[1])


def value(goal: Goal, counts: FloatArray) -> float:
    """Return the metric of counts."""
    hits, predicted, true = counts if goal.average == "macro" else counts.sum(axis=1)
    if goal.metric == "label_coverage":
        return float(np.mean(hits > 0))
    numerator, denominator = {
        "f1": (2 * hits, predicted + true),
        "precision": (hits, predicted),
        "recall": (hits, true),
    }[goal.metric]
    return float(np.mean(ratio(numerator, denominator)))


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    return np.divide(numerator, denominator, out=np.zeros(np.shape(numerator)), where=np.asarray(denominator) > 0)


def judge(goal: Goal, decided: csr_matrix, y: csr_matrix, blocks: int = BLOCKS) -> tuple[float, list[float]]:
    """Return the value on all rows, and those without one block of rows at a time."""
    edges = np.linspace(0, y.shape[0], blocks + 1).astype(int)
    parts = [count(decided[low:high], y[low:high]) for low, high in pairwise(edges)]
    total = np.sum(parts, axis=0)
    return value(goal, total), [value(goal, total - part) for part in parts]


def jackknife(left_out: FloatArray) -> float:
    """Return the standard error of a value, or of a difference, from those without a block."""
    return float(np.sqrt((len(left_out) - 1) * np.var(left_out)))
