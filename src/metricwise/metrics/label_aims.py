"""What is maximised over very many labels: functions of three counts of each label, and the tables that increase them.

A label's counts are its hits, its predictions and its true rows, in units of rows. An aim values them and says by how
much one more prediction of probability eta would raise the value: ``scale * eta + offset``, a table of two numbers a
label. Must not know rows, rules or solvers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from .base import FractionalLinear, Linear, Metric

__all__ = ["CoverageAim", "HitAim", "LabelAim", "LabelCounts", "LabelTable", "MetricAim", "RatioTerms", "Terms"]

FloatArray = NDArray[np.float64]

_CLASSES = (0, 1)
_TINY = 1e-300


class LabelCounts(NamedTuple):
    """Counts of M labels over rows of a total weight; arrays of shape (M,)."""

    hits: FloatArray
    predicted: FloatArray
    true: FloatArray
    total: float

    def minus(self, other: LabelCounts) -> LabelCounts:
        """Return the counts without those of some rows."""
        hits, predicted, true = (mine - others for mine, others in zip(self[:3], other[:3], strict=True))
        return LabelCounts(hits, predicted, true, self.total - other.total)

    def towards(self, other: LabelCounts, share: float) -> LabelCounts:
        """Return the mean of these counts and others of the same rows, which have a share in it."""
        hits = (1 - share) * self.hits + share * other.hits
        return LabelCounts(hits, (1 - share) * self.predicted + share * other.predicted, self.true, self.total)

    def confusion(self) -> FloatArray:
        """Return the confusion matrices (M, 2, 2), shares of the total."""
        hits, predicted, true, total = self
        cells = [total - true - predicted + hits, predicted - hits, true - hits, hits]
        return np.stack(cells, axis=-1).reshape(*hits.shape, 2, 2) / max(total, _TINY)

    def pooled(self, weight: FloatArray | None) -> LabelCounts:
        """Return the weighted sums over labels, as counts of one label."""
        factor = np.ones_like(self.hits) if weight is None else weight
        hits, predicted, true = (np.array([float(counts @ factor)]) for counts in self[:3])
        return LabelCounts(hits, predicted, true, self.total * float(factor.sum()))


class LabelTable(NamedTuple):
    """Gain of predicting each label for one more row, ``scale * eta + offset``; (M,) each, or (1,) for all labels."""

    scale: FloatArray
    offset: FloatArray


class Terms(NamedTuple):
    """A linear function of the counts of a label."""

    hits: float
    true: float
    predicted: float
    total: float

    @classmethod
    def of_matrix(cls, A: FloatArray) -> Terms:
        """Return <A, C> in terms of counts."""
        (a00, a01), (a10, a11) = A.tolist()
        return cls(a11 - a01 - a10 + a00, a10 - a00, a01 - a00, a00)

    def of(self, counts: LabelCounts) -> FloatArray:
        """Return its value for each label."""
        return np.asarray(
            self.hits * counts.hits
            + self.true * counts.true
            + self.predicted * counts.predicted
            + self.total * counts.total
        )


class RatioTerms(NamedTuple):
    """A ratio of two linear functions of the counts of a label."""

    numerator: Terms
    denominator: Terms
    zero_division: float

    @property
    def is_linear(self) -> bool:
        """Whether no prediction changes the denominator."""
        return self.denominator.hits == 0 and self.denominator.predicted == 0

    @property
    def has_hits_only(self) -> bool:
        """Whether the numerator counts hits alone, so that its value is that of a few rows for rare labels."""
        return self.numerator.hits > 0 and self.numerator[1:] == (0.0, 0.0, 0.0)

    def values(self, counts: LabelCounts) -> FloatArray:
        """Return the ratio of each label."""
        above, below = self.numerator.of(counts), self.denominator.of(counts)
        empty = below <= 1e-12 * max(counts.total, _TINY)
        return np.where(empty, self.zero_division, above / np.where(empty, 1.0, below))

    def table(self, counts: LabelCounts) -> LabelTable:
        """Return the slopes of the ratio in hits and predictions."""
        above, below = self.numerator, self.denominator
        size = np.maximum(below.of(counts), _TINY)
        size = np.where(size <= 1e-12 * max(counts.total, _TINY), below.hits + below.predicted or 1.0, size)
        value = self.values(counts)
        return LabelTable(
            (above.hits - value * below.hits) / size,
            (above.predicted - value * below.predicted) / size,
        )


class LabelAim(ABC):
    """A function of the counts of all labels that is to be as large as possible.

    Attributes
    ----------
    name : str
        As the user gave it.
    average : {"micro", "macro", "instance"}
    range : (float, float)
        Smallest and largest value.
    """

    name: str
    average: str

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest value."""
        return (0.0, 1.0)

    @property
    def ratio(self) -> RatioTerms | None:
        """The ratio that is pooled or averaged; None if the aim is none."""
        return None

    @property
    def is_pooled(self) -> bool:
        """Whether the counts of all labels are added up before anything else."""
        return self.average != "macro"

    @property
    def is_linear(self) -> bool:
        """Whether one table serves whatever is predicted."""
        return False

    @property
    def is_coverage(self) -> bool:
        """Whether a label counts once it has a hit."""
        return False

    @property
    def weight(self) -> FloatArray | None:
        """Weights of the labels, (M,); None: all alike."""
        return None

    @abstractmethod
    def value(self, counts: LabelCounts) -> float:
        """Return the value of counts of labels."""

    def expected_value(self, counts: LabelCounts) -> float:
        """Return the value that is expected of rows with these expected counts."""
        return self.value(counts)

    @abstractmethod
    def table(self, counts: LabelCounts) -> LabelTable:
        """Return the table of slopes of the value at some counts."""

    def by_label(self, counts: LabelCounts) -> FloatArray | None:
        """Return the value of each label (M,), for displays; None if labels have none of their own."""
        return None

    def bind(self, true: FloatArray) -> LabelAim:
        """Return the aim for rows with so many true rows of each label."""
        return self


@dataclass(frozen=True, eq=False)
class MetricAim(LabelAim):
    """A metric of a confusion matrix of two classes, pooled over labels or averaged over them.

    Parameters
    ----------
    metric : Metric
        Of class 1 against class 0.
    average : {"micro", "macro"}
    name : str
    weight : ndarray of shape (M,), optional
    support_weighted : bool, default=False
        Whether labels are also weighted by their true rows.
    """

    metric: Metric
    average: str
    name: str
    weight: FloatArray | None = None
    support_weighted: bool = False

    def bind(self, true: FloatArray) -> LabelAim:
        """Return the aim with weights that follow from the true rows of each label."""
        if not self.support_weighted:
            return self
        weight = true if self.weight is None else true * self.weight
        return replace(self, weight=weight if weight.sum() > 0 else self.weight, support_weighted=False)

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest value of the metric."""
        return self.metric.range

    @cached_property
    def ratio(self) -> RatioTerms | None:
        """The ratio that the metric is of the counts of a label."""
        form = self.metric._of_cells(2, _CLASSES)
        if not isinstance(form, FractionalLinear):
            return None
        zero = 0.0 if form.zero_division is None else form.zero_division
        return RatioTerms(Terms.of_matrix(form.A), Terms.of_matrix(form.B), float(zero))

    @property
    def is_linear(self) -> bool:
        """Whether the slopes do not depend on what is predicted."""
        if self.ratio is not None:
            return self.ratio.is_linear
        return isinstance(self.metric.bind(np.array([0.5, 0.5]), _CLASSES), Linear)

    def _shares(self, n_labels: int) -> FloatArray:
        """Return the share of each label in the mean."""
        weight = np.ones(n_labels) if self.weight is None else self.weight
        return np.asarray(weight / max(float(weight.sum()), _TINY))

    def by_label(self, counts: LabelCounts) -> FloatArray:
        """Return the metric of each label, (M,)."""
        if self.ratio is not None:
            return self.ratio.values(counts)
        confusion = counts.confusion()
        return np.asarray(self.metric.bind(confusion.sum(axis=-1), _CLASSES).value(confusion))

    def value(self, counts: LabelCounts) -> float:
        """Return the metric of the pooled counts, or its weighted mean over labels."""
        if self.is_pooled:
            return float(self.by_label(counts.pooled(self.weight))[0])
        return float(self._shares(len(counts.hits)) @ self.by_label(counts))

    def table(self, counts: LabelCounts) -> LabelTable:
        """Return the slopes in hits and predictions of each label."""
        if not self.is_pooled:
            scale, offset = self._slopes(counts)
            shares = self._shares(len(counts.hits))
            return LabelTable(shares * scale, shares * offset)
        scale, offset = self._slopes(counts.pooled(self.weight))
        weight = np.ones(1) if self.weight is None else self.weight
        return LabelTable(scale * weight, offset * weight)

    def _slopes(self, counts: LabelCounts) -> LabelTable:
        if self.ratio is not None:
            return self.ratio.table(counts)
        confusion = counts.confusion()
        gradient = self.metric.bind(confusion.sum(axis=-1), _CLASSES).gradient(confusion) / max(counts.total, _TINY)
        offset = gradient[..., 0, 1] - gradient[..., 0, 0]
        return LabelTable(gradient[..., 1, 1] - gradient[..., 1, 0] - offset, offset)


@dataclass(frozen=True, eq=False)
class HitAim(LabelAim):
    """Weighted hits per slot, ``sum_m weight_m hits_m / (k N)``, relative to the largest value that can be reached.

    With equal weights it is precision at k; with inverse propensities, propensity-scored precision at k.

    Parameters
    ----------
    k : int
        Slots of a row. Those that stay empty are misses.
    name : str
    weight : ndarray of shape (M,), optional
        Value of a hit of each label.
    best : float, default=1.0
        What the mean value per slot is divided by.
    """

    k: int
    name: str
    weight: FloatArray | None = None
    best: float = 1.0
    average: str = "micro"

    @property
    def is_linear(self) -> bool:
        """Always."""
        return True

    def _unit(self, total: float) -> float:
        return 1.0 / max(self.k * total * self.best, _TINY)

    def value(self, counts: LabelCounts) -> float:
        """Return the value of hits in all slots."""
        hits = counts.hits.sum() if self.weight is None else counts.hits @ self.weight
        return float(hits) * self._unit(counts.total)

    def table(self, counts: LabelCounts) -> LabelTable:
        """Return the value of a hit."""
        weight = np.ones(1) if self.weight is None else self.weight
        return LabelTable(weight * self._unit(counts.total), np.zeros_like(weight))


@dataclass(frozen=True, eq=False)
class CoverageAim(LabelAim):
    """Share of the labels that have a hit, of all labels or of those with a true row.

    Expected counts are valued by ``1 - exp(-hits)``, the chance of at least one hit.

    Parameters
    ----------
    name : str
    weight : ndarray of shape (M,), optional
    """

    name: str = "label_coverage"
    weight: FloatArray | None = None
    average: str = "macro"

    @property
    def is_coverage(self) -> bool:
        """Always."""
        return True

    def _shares(self, n_labels: int) -> FloatArray:
        weight = np.ones(n_labels) if self.weight is None else self.weight
        return np.asarray(weight / max(float(weight.sum()), _TINY))

    def by_label(self, counts: LabelCounts) -> FloatArray:
        """Return 1 for labels with a hit, 0 for others."""
        return (counts.hits > 1e-12 * counts.total).astype(np.float64)

    def value(self, counts: LabelCounts) -> float:
        """Return the share of labels with a hit."""
        return float(self._shares(len(counts.hits)) @ self.by_label(counts))

    def expected_value(self, counts: LabelCounts) -> float:
        """Return the share of labels that are expected to have a hit."""
        return float(self._shares(len(counts.hits)) @ -np.expm1(-counts.hits))

    def table(self, counts: LabelCounts) -> LabelTable:
        """Return by how much the chance of a hit rises."""
        scale = self._shares(len(counts.hits)) * np.exp(-counts.hits)
        return LabelTable(scale, np.zeros_like(scale))


def is_loss(aim: LabelAim) -> bool:
    """Whether an aim that is reported, not maximised, is better if it is lower."""
    return isinstance(aim, MetricAim) and aim.metric.traits.lower_is_better


def set_metric(metric: Metric) -> tuple[float, bool, float] | None:
    """Return ``(beta ** 2, is Jaccard, zero_division)`` of a metric with a best set for each row; None otherwise."""
    form = metric._of_cells(2, _CLASSES)
    if not isinstance(form, FractionalLinear):
        return None
    terms = RatioTerms(Terms.of_matrix(form.A), Terms.of_matrix(form.B), float(form.zero_division or 0.0))
    if not terms.has_hits_only or terms.denominator.total != 0:
        return None
    hits, true, predicted = (part / terms.numerator.hits for part in terms.denominator[:3])
    if np.isclose(hits, -1.0) and np.isclose(true, 1.0) and np.isclose(predicted, 1.0):
        return 1.0, True, terms.zero_division
    if hits == 0 and predicted > 0 and true > 0 and np.isclose(true + predicted, 1.0):
        return float(true / predicted), False, terms.zero_division
    return None
