"""Averages over the classes of one output of a metric of one class: macro, weighted and micro.

(Averages over *outputs* are another thing; see :mod:`metricwise.metrics.averages`.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InvalidParameter, argument, entry_point, mention
from ._common import FloatArray, as_shares, class_weights, divide, weight_places
from .base import FractionalLinear, Linear, Metric
from .one_vs_rest import OneVsRest, free_gradient_of_classes

__all__ = ["ClassAverage"]

_AVERAGES = ("macro", "weighted", "micro")


def _is_whole(base: Any) -> bool:
    return isinstance(base, OneVsRest) and not base.names_class


@dataclass(frozen=True, eq=False)
class ClassAverage(Metric):
    """Average of a metric of one class over all K classes, ``sum_k w_k psi_k(C)``, with weights scaled to sum to 1.

    Range [0, 1]. A class without rows also counts, with the metric's `zero_division` at 0/0, as in scikit-learn with
    ``labels=classes``. Averages of recall and specificity are linear once bound.

    Parameters
    ----------
    base : OneVsRest
        The metric of one class, such as ``FBeta(beta=2)``, without `index` or `pos_label`.
    average : {"macro", "weighted", "micro"}, default="macro"
        Whether classes count equally ("macro"), by their share of the rows ("weighted"), or hits, true and predicted
        shares are summed over classes first ("micro", which makes F1, precision and recall equal to accuracy).
    class_weight : array-like of shape (K,) or dict, optional
        Further weights by position, or by label (1 for a label that is not in the dict). Not for "micro".

    See Also
    --------
    FBeta : F-measure of one class.
    metric_names : Names such as "macro_f1" for common averages.

    References
    ----------
    .. [1] Lewis (1991), "Evaluating Text Categorization", HLT.

    Examples
    --------
    >>> import metricwise as mw
    >>> macro_f1 = mw.metrics.ClassAverage(mw.metrics.FBeta())
    >>> round(float(macro_f1.value([[0.5, 0.125], [0.125, 0.25]])), 6)
    0.733333
    >>> mw.metrics.ClassAverage(mw.metrics.Recall(), "weighted").bind([0.5, 0.5]).family
    'linear'
    """

    base: OneVsRest
    average: str = "macro"
    class_weight: ArrayLike | Mapping[Any, float] | None = None

    @entry_point("{class}")
    def __post_init__(self) -> None:
        if not _is_whole(self.base):
            raise InvalidParameter(
                "base",
                f"be a metric of one class (such as FBeta()) without index or {mention('pos_label')}",
                repr(self.base),
            )
        if self.average not in _AVERAGES:
            raise InvalidParameter("average", "be 'macro', 'weighted' or 'micro'", repr(self.average))
        if not (self.class_weight is None or self.average != "micro"):
            raise InvalidParameter(
                "class_weight", f"be None with {argument('average', 'micro')}, which pools all classes"
            )

    def class_metric(self) -> Metric | None:
        return self.base.class_metric()

    @property
    def name(self) -> str:  # type: ignore[override]  # made of its parts
        # "micro_f1" is the paper's metric, which has a negative class.
        return f"{self.base.name}_micro" if self.average == "micro" else f"{self.average}_{self.base.name}"

    @property
    def by_class(self) -> bool:  # type: ignore[override]  # depends on the average
        return self.average == "macro"

    @entry_point("{class}")
    def places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return weight_places(self.class_weight, classes)

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        priors = as_shares(priors)
        if self.average == "micro":
            return self.base.pool(priors.shape[-1])
        return self.base.average(self._weights(priors, classes), priors)

    def of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> Metric | None:
        if self.average != "micro":
            return None
        pooled = self.base.pool(n_classes)
        assert isinstance(pooled, Linear | FractionalLinear)
        return pooled.as_ratio()

    def bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        priors = as_shares(priors)
        if self.average == "micro":
            return self.base.pool_undecided(priors.shape[-1] - 1)
        weights = self._weights(priors[..., :-1], classes)
        return self.base.average(np.concatenate([weights, np.zeros_like(weights[..., :1])], axis=-1), priors)

    def prior_slopes(self, confusion: FloatArray, classes: Sequence[Any] | None = None) -> FloatArray | None:
        return np.zeros(len(confusion)) if self.average == "micro" else None

    def free_gradient(self, confusion: ArrayLike, classes: Sequence[Any] | None = None) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        if self.average == "micro":
            return super().free_gradient(confusion, classes)
        return free_gradient_of_classes(self.base, lambda priors: self._weights(priors, classes), confusion)

    @entry_point("{class}")
    def _weights(self, priors: FloatArray, classes: Sequence[Any] | None) -> FloatArray:
        n_classes = priors.shape[-1]
        weights = priors if self.average == "weighted" else np.ones(n_classes)
        if self.class_weight is not None:
            weights = weights * class_weights(self.class_weight, n_classes, classes)
        return divide(weights, weights.sum(axis=-1, keepdims=True))
