"""Instance-averaging: the metric row by row, which is not a function of the confusion tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.matrices import FloatArray
from .base import Metric
from .naming import pooled

__all__ = ["RowMean", "RowValues", "row_values"]

_MAX_CELLS = 1 << 20  # cells of confusion matrices that are evaluated together


class RowMean(NamedTuple):
    """A weighted mean over rows, which adds up over parts of them."""

    total: float
    mass: float

    @property
    def value(self) -> float:
        """The mean."""
        return self.total / self.mass

    def __add__(self, other: RowMean) -> RowMean:  # type: ignore[override]  # no tuple is meant
        return RowMean(self.total + other.total, self.mass + other.mass)


class RowValues(NamedTuple):
    """The metric of each row's confusion over its outputs, and the row's weight, (N,), 0 without an observed label."""

    values: FloatArray
    mass: FloatArray

    @property
    def mean(self) -> RowMean:
        """The mean, as sums that add up over parts of the rows."""
        return RowMean(float(self.values @ self.mass), float(self.mass.sum()))


def row_values(
    metric: Metric,
    true: NDArray[Any],
    predicted: NDArray[Any],
    n_classes: int,
    output_weight: FloatArray,
    sample_weight: FloatArray | None = None,
    classes: Sequence[Sequence[Any] | NDArray[Any]] | None = None,
) -> RowValues:
    """Value every row by its own confusion over its outputs.

    `true` and `predicted` are codes (N, M), -1 where the true label is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.metrics import Accuracy
    >>> from metricwise.metrics.instance import row_values
    >>> true, predicted = np.array([[0, 1], [1, 1]]), np.array([[0, 1], [1, 0]])
    >>> row_values(Accuracy(), true, predicted, 2, np.ones(2)).mean.value
    0.75
    """
    k, n = n_classes, len(true)
    metric, labels = (metric._of_output(0), None) if classes is None else pooled(metric, classes)
    values, observed = np.zeros(n), np.zeros(n)
    step = max(1, _MAX_CELLS // (k * k))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        y, h = true[rows].astype(np.intp), predicted[rows]
        weight = np.where(y >= 0, output_weight, 0.0)
        cell = (np.arange(len(y))[:, None] * k + np.maximum(y, 0)) * k + h
        C = np.bincount(cell.ravel(), weight.ravel(), minlength=len(y) * k * k).reshape(-1, k, k)
        observed[rows] = weight.sum(axis=1)
        labelled = observed[rows] > 0
        if not labelled.any():  # a chunk of rows without labels
            continue
        shares = C[labelled] / observed[rows][labelled, None, None]
        of_rows = metric._of_rows((y >= 0).sum(axis=1, where=output_weight > 0)[labelled])
        values[rows][labelled] = of_rows.bind(shares.sum(axis=-1), labels).value(shares)
    mass = np.where(observed > 0, 1.0 if sample_weight is None else sample_weight, 0.0)
    return RowValues(values, np.asarray(mass))
