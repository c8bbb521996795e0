"""Metrics as means over observations of a stream: rows, or pairs of rows, each with a numerator and a denominator.

Owns what an observation is, how large it can be, and what its labels must be missing by for its mean to be known. Must
not know promises, bounds or batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..metrics.recall_means import GMean, HMean, QMean

__all__ = ["MEANS", "Labelled", "PairedRatio", "RatiosMean", "RowRatio", "StreamForm"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

Labelled = str
RANDOM, BY_DECISION, BY_CLASS = LABELLED = ("random", "by_decision", "by_class")


def _arithmetic(values: FloatArray, weight: FloatArray) -> FloatArray:
    return np.asarray(np.sum(weight * values, axis=-1))


def _minimum(values: FloatArray, weight: FloatArray) -> FloatArray:
    return np.asarray(np.where(weight > 0, values, np.inf).min(axis=-1))


def _matthews(values: FloatArray, _: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(values.prod(axis=-1)) - np.sqrt((1 - values).prod(axis=-1)))


# Each increases with every value, all of which are between 0 and 1.
MEANS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "arithmetic": _arithmetic,
    "geometric": GMean().mean,
    "harmonic": HMean().mean,
    "quadratic": QMean().mean,
    "minimum": _minimum,
    "matthews": _matthews,
}


@dataclass(frozen=True, eq=False)
class RowRatio:
    """A ratio of means over rows: of the entries that the true class and the decision select in two tables.

    Parameters
    ----------
    A, B : ndarray of shape (K, D)
        Numerator and denominator.
    limits : (float, float)
        Between what the ratio lies.
    n_outputs : int, default=1
        Outputs whose entries are summed for each row.
    at_zero : float, optional
        The ratio at 0/0; None: it is unknown.
    """

    A: FloatArray
    B: FloatArray
    limits: tuple[float, float]
    n_outputs: int = 1
    at_zero: float | None = None

    @property
    def parts(self) -> tuple[RowRatio, ...]:
        """Itself."""
        return (self,)

    @cached_property
    def needs_labels(self) -> bool:
        """Whether entries depend on the true class."""
        return bool((np.ptp(self.A, axis=0) > 0).any() or (np.ptp(self.B, axis=0) > 0).any())

    def is_known(self, labelled: Labelled) -> bool:
        """Say whether the rows that have labels show the ratio of all, where that a label is missing depends on it.

        It is the ratio among the rows of one decision or of one class: of these, some are as good as all.
        """
        if labelled == RANDOM or not self.needs_labels:
            return True
        occupied = (self.A != 0) | (self.B != 0)
        n_kinds = int(occupied.any(axis=0 if labelled == BY_DECISION else 1).sum())
        return self.n_outputs == 1 and n_kinds <= 1

    def observe(self, codes: IntArray, decisions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return numerators and denominators (n,) of rows with true classes (n, M), -1 if missing, and decisions."""
        counts = (codes >= 0) if self.needs_labels else np.ones(codes.shape, dtype=bool)
        true = np.maximum(codes, 0)
        a, b = (np.where(counts, table[true, decisions], 0.0).sum(axis=1) for table in (self.A, self.B))
        return a, b

    def slack_range(self, bounds: FloatArray, sign: float) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and the largest of ``sign * (a - bound * b)`` at each of some bounds."""
        slack = sign * (self.A.reshape(-1) - np.multiply.outer(bounds, self.B.reshape(-1)))
        low, high = slack.min(axis=-1), slack.max(axis=-1)
        return (low, high) if self.n_outputs == 1 else (self.n_outputs * np.minimum(low, 0), self.n_outputs * high)

    def value(self, sums: FloatArray) -> float | None:
        """Return the ratio of sums (2, 1); None if it is not known."""
        return _quotient(sums[:, 0], self.at_zero)


@dataclass(frozen=True, eq=False)
class PairedRatio:
    """A ratio of means over pairs of independent rows; see :class:`metricwise.metrics.row_forms.PairRatio`.

    Parameters
    ----------
    own, crossed : RowRatio
        Of the true class of a row and the decision about it, or about the other row.
    limits : (float, float)
        Between what the ratio lies.
    """

    own: RowRatio
    crossed: RowRatio
    limits: tuple[float, float]
    needs_labels = True
    n_outputs = 1

    @property
    def parts(self) -> tuple[PairedRatio, ...]:
        """Itself."""
        return (self,)

    def is_known(self, labelled: Labelled) -> bool:
        """Say whether the rows that have labels show the ratio of all."""
        return labelled == RANDOM

    def observe(self, codes: IntArray, decisions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return numerators and denominators (n,) of pairs of rows with true classes and decisions (n, 2) each."""
        others = decisions[:, ::-1]
        tables = ((self.own.A, self.crossed.A), (self.own.B, self.crossed.B))
        a, b = ((own[codes, decisions] + crossed[codes, others]).mean(axis=1) for own, crossed in tables)
        return a, b

    def slack_range(self, bounds: FloatArray, sign: float) -> tuple[FloatArray, FloatArray]:
        """Return limits of ``sign * (a - bound * b)`` at each of some bounds."""
        (low, high), (other_low, other_high) = (part.slack_range(bounds, sign) for part in (self.own, self.crossed))
        return low + other_low, high + other_high

    def value(self, sums: FloatArray) -> float | None:
        """Return the ratio of sums (2, 1); None if it is not known."""
        return _quotient(sums[:, 0], None)


@dataclass(frozen=True, eq=False)
class RatiosMean:
    """An increasing function of ratios of means over rows; see :class:`metricwise.metrics.row_forms.RatioMean`.

    Parameters
    ----------
    kind : str
        A key of :data:`MEANS`.
    parts : tuple of P RowRatio
    weight : ndarray of shape (P,)
    """

    kind: str
    parts: tuple[RowRatio, ...]
    weight: FloatArray
    needs_labels = True
    n_outputs = 1

    @property
    def limits(self) -> tuple[float, float]:
        """Between what the mean lies."""
        return self.combine([part.limits[0] for part in self.parts]), self.combine([p.limits[1] for p in self.parts])

    def is_known(self, labelled: Labelled) -> bool:
        """Say whether the rows that have labels show all ratios of all rows."""
        return all(part.is_known(labelled) for part in self.parts)

    def combine(self, values: list[float]) -> float:
        """Return the mean of a value for each part."""
        return float(MEANS[self.kind](np.array(values), self.weight))

    def value(self, sums: FloatArray) -> float | None:
        """Return the mean of the ratios of sums (2, P), without those that are unknown; None if it is not known."""
        values = [part.value(sums[:, [p]]) for p, part in enumerate(self.parts)]
        weight = np.array([0.0 if value is None else w for value, w in zip(values, self.weight, strict=True)])
        if weight.sum() <= 0 or (self.kind == "matthews" and None in values):
            return None
        filled = np.array([1.0 if value is None else value for value in values])
        return float(MEANS[self.kind](filled, weight / weight.sum()))


StreamForm = RowRatio | PairedRatio | RatiosMean


def _quotient(sums: FloatArray, at_zero: float | None) -> float | None:
    return float(sums[0] / sums[1]) if sums[1] > 0 else at_zero
