"""Metrics of the labels of a row: precision and recall at k, propensity-scored precision, and label coverage.

They are no function of the confusion matrix of one label, so they serve multilabel rules with a number of labels per
row only. Must not know rows or rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InvalidParameter, argument, entry_point, shown
from ..core.label_sets import LabelSets
from .label_aims import CoverageAim, HitAim, LabelAim, MetricAim
from .linear import Recall

__all__ = ["LabelCoverage", "LabelMetric", "PrecisionAt", "PropensityPrecisionAt", "RecallAt"]

FloatArray = NDArray[np.float64]

_AT = re.compile(r"(precision|recall|propensity_precision)@(\d+)\Z")


class LabelMetric:
    """Base of metrics of the labels of a row.

    See Also
    --------
    PrecisionAt, RecallAt, PropensityPrecisionAt, LabelCoverage : The metrics.

    Examples
    --------
    >>> import metricwise as mw
    >>> isinstance(mw.metrics.RecallAt(3), mw.metrics.LabelMetric)
    True
    """

    averages: ClassVar[tuple[str, ...]] = ("micro", "instance")

    @property
    def name(self) -> str:
        """The name by which `optimize` takes it too."""
        raise NotImplementedError

    @property
    def slots(self) -> int | None:
        """Number of labels per row that the metric is about; None: any."""
        return None

    def aim(
        self,
        average: str | None,
        targets: LabelSets | None,
        weight: FloatArray | None,
        row_weight: FloatArray | None = None,
    ) -> LabelAim:
        """Return what is maximised, for rows with these true labels; `weight` is that of the labels."""
        raise NotImplementedError

    def check_average(self, average: str | None) -> None:
        """Refuse an average that the metric does not have."""
        if average is not None and average not in self.averages:
            listed = " or ".join(map(repr, self.averages))
            raise InvalidParameter("average", f"be {listed} for {self.name!r}", shown(average), "leave it out")


def _check_slots(k: Any) -> None:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidParameter("k", "be a whole number of at least 1", shown(k))


@dataclass(frozen=True)
class PrecisionAt(LabelMetric):
    """Precision at k: the share of hits among k slots of every row, ``hits / (k N)``.

    Slots that stay empty are misses. The name is "precision@3" for k = 3.

    Parameters
    ----------
    k : int
        Number of slots of a row.

    See Also
    --------
    RecallAt : Share of the true labels that are found.
    metricwise.optimize : Sets ``labels_per_row=(k, k)`` for it unless another budget of at most k labels is given.

    Examples
    --------
    >>> import metricwise as mw
    >>> mw.metrics.PrecisionAt(3).name
    'precision@3'
    """

    k: int

    @entry_point("{class}")
    def __post_init__(self) -> None:
        _check_slots(self.k)

    @property
    def name(self) -> str:
        """``precision@k``."""
        return f"precision@{self.k}"

    @property
    def slots(self) -> int:
        """K."""
        return self.k

    def aim(
        self,
        average: str | None,
        targets: LabelSets | None,
        weight: FloatArray | None,
        row_weight: FloatArray | None = None,
    ) -> LabelAim:
        """Return hits in all slots."""
        self.check_average(average)
        relative = None if weight is None else weight / weight.mean()  # so that equal weights change nothing
        return HitAim(self.k, self.name, relative)


@dataclass(frozen=True)
class RecallAt(LabelMetric):
    """Recall at k: the share of the true labels that are among k labels of every row.

    The name is "recall@3" for k = 3. With ``average="micro"`` (the default) true labels of all rows are counted
    together, "macro" is the mean over labels, and "instance" the mean over rows.

    Parameters
    ----------
    k : int
        Number of labels of a row.

    See Also
    --------
    PrecisionAt : Share of hits among the slots.
    metricwise.optimize : Sets ``labels_per_row=(k, k)`` for it unless another budget of at most k labels is given.

    Examples
    --------
    >>> import metricwise as mw
    >>> mw.metrics.RecallAt(3).name
    'recall@3'
    """

    k: int
    averages = ("micro", "macro", "instance")

    @entry_point("{class}")
    def __post_init__(self) -> None:
        _check_slots(self.k)

    @property
    def name(self) -> str:
        """``recall@k``."""
        return f"recall@{self.k}"

    @property
    def slots(self) -> int:
        """K."""
        return self.k

    def aim(
        self,
        average: str | None,
        targets: LabelSets | None,
        weight: FloatArray | None,
        row_weight: FloatArray | None = None,
    ) -> LabelAim:
        """Return the recall, averaged as asked."""
        self.check_average(average)
        return MetricAim(Recall(), average or "micro", self.name, weight)


@dataclass(frozen=True, eq=False)
class PropensityPrecisionAt(LabelMetric):
    """Propensity-scored precision at k: hits count by how unlikely it is that their label is recorded at all.

    The value of a hit is 1 / p of its label; their sum is divided by that of the k most valuable true labels of every
    row, so that 1 is the best value. Labels are needed. The name is "propensity_precision@3" for k = 3.

    Parameters
    ----------
    k : int
        Number of labels of a row.
    propensity : array-like of shape (M,), optional
        Probability that a true label is recorded. None: by the formula of Jain, Prabhu and Varma (2016),
        ``1 / (1 + C (n_m + b) ** -a)`` with ``C = (log N - 1) (b + 1) ** a`` for labels with n_m of N rows.
    a, b : float, default=0.55 and 1.5
        Of that formula.

    See Also
    --------
    PrecisionAt : The same with all labels alike.

    Examples
    --------
    >>> import metricwise as mw
    >>> mw.metrics.PropensityPrecisionAt(3).name
    'propensity_precision@3'
    """

    k: int
    propensity: ArrayLike | None = None
    a: float = 0.55
    b: float = 1.5

    @entry_point("{class}")
    def __post_init__(self) -> None:
        _check_slots(self.k)
        if self.propensity is not None:
            propensity = np.asarray(self.propensity, dtype=np.float64)
            if propensity.ndim != 1 or not ((propensity > 0) & (propensity <= 1)).all():
                raise InvalidParameter("propensity", "have shape (M,) and lie above 0 and at most at 1", "others")
            object.__setattr__(self, "propensity", propensity)

    @property
    def name(self) -> str:
        """``propensity_precision@k``."""
        return f"propensity_precision@{self.k}"

    @property
    def slots(self) -> int:
        """K."""
        return self.k

    def value_of_hits(self, targets: LabelSets) -> FloatArray:
        """Return 1 / p of each label, (M,)."""
        if self.propensity is not None:
            propensity = np.asarray(self.propensity)
            if len(propensity) != targets.n_labels:
                raise InvalidParameter("propensity", f"have shape ({targets.n_labels},)", f"{propensity.shape}")
            return np.asarray(1.0 / propensity)
        factor = (np.log(max(targets.n_rows, 3)) - 1.0) * (self.b + 1.0) ** self.a
        return np.asarray(1.0 + factor * (targets.count() + self.b) ** -self.a)

    def aim(
        self,
        average: str | None,
        targets: LabelSets | None,
        weight: FloatArray | None,
        row_weight: FloatArray | None = None,
    ) -> LabelAim:
        """Return weighted hits relative to the most that true labels allow."""
        self.check_average(average)
        if targets is None:
            raise InvalidParameter(
                "y", problem=f"{self.name!r} is relative to what the true labels allow, so y must be given"
            )
        values = self.value_of_hits(targets) * (1.0 if weight is None else weight)
        return HitAim(self.k, self.name, values, _best_mean(values, targets, self.k, row_weight))


def _best_mean(values: FloatArray, targets: LabelSets, k: int, row_weight: FloatArray | None) -> float:
    """Return the mean value per slot of the k most valuable true labels of each row."""
    order = np.lexsort((-values[targets.indices], targets.rows))
    rank = np.arange(len(order)) - np.repeat(targets.indptr[:-1], targets.sizes)
    of_rows = np.ones(targets.n_rows) if row_weight is None else row_weight
    best = (values[targets.indices[order]] * of_rows[targets.rows])[rank < k].sum()
    return float(best) / max(k * float(of_rows.sum()), 1e-300) or 1.0


@dataclass(frozen=True)
class LabelCoverage(LabelMetric):
    """Label coverage: the share of the labels that are predicted rightly for at least one row.

    The name is "label_coverage". It needs `labels_per_row`: without a budget, predicting everything is best.

    See Also
    --------
    RecallAt : Share of the true labels that are found.

    Examples
    --------
    >>> import metricwise as mw
    >>> mw.metrics.LabelCoverage().name
    'label_coverage'
    """

    averages = ("macro",)

    @property
    def name(self) -> str:
        """``label_coverage``."""
        return "label_coverage"

    def aim(
        self,
        average: str | None,
        targets: LabelSets | None,
        weight: FloatArray | None,
        row_weight: FloatArray | None = None,
    ) -> LabelAim:
        """Return the share of labels with a hit."""
        self.check_average(average)
        return CoverageAim(self.name, weight)


def read_label_metric(metric: Any) -> LabelMetric | None:
    """Return the metric of the labels of a row that a name or an object stands for; None for any other metric."""
    if isinstance(metric, LabelMetric):
        return metric
    if not isinstance(metric, str):
        return None
    if metric == "label_coverage":
        return LabelCoverage()
    if "@" not in metric:
        return None
    match = _AT.match(metric)
    if match is None:
        base, _, number = metric.partition("@")
        digits = re.match(r"[1-9]\d{0,3}", number)
        k = 5 if digits is None else int(digits[0])
        raise InvalidParameter(
            "metric",
            problem=f"a name with @ is 'precision@k', 'recall@k' or 'propensity_precision@k', got {metric!r}",
            remedy=f"for {k} labels per row and another metric, use {base!r} and {argument('labels_per_row', (k, k))}",
        )
    kinds: dict[str, Any] = {
        "precision": PrecisionAt,
        "recall": RecallAt,
        "propensity_precision": PropensityPrecisionAt,
    }
    made: LabelMetric = kinds[match[1]](int(match[2]))
    return made
