"""Our names for metrics.

To add a metric, write its class and give it a line here: the laws in the tests then run on it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any

from numpy.typing import ArrayLike

from .base import Metric
from .class_average import ClassAverage
from .linear import (
    Accuracy,
    BalancedAccuracy,
    Cost,
    Ordinal,
    Recall,
    Specificity,
    SquaredOrdinal,
    WeightedAccuracy,
    WeightedExponential,
)
from .one_vs_rest import OneVsRest
from .ratio import FBeta, Jaccard, Kappa, MicroF1, Precision
from .recall_means import GMean, HMean, MinRecall, QMean
from .smooth import MCC, FowlkesMallows
from .transforms import Decathlon, Polynomial

__all__ = ["get_metric", "is_metric_name", "metric_names", "unknown_name"]


def _averaged(base: Callable[..., OneVsRest], average: str) -> Callable[..., Metric]:
    def factory(
        zero_division: float = 0.0, class_weight: ArrayLike | Mapping[Any, float] | None = None
    ) -> ClassAverage:
        return ClassAverage(base(zero_division=zero_division), average, class_weight)

    return factory


_FACTORIES: dict[str, Callable[..., Metric]] = {
    "accuracy": Accuracy,
    "hamming_accuracy": Accuracy,
    "weighted_accuracy": WeightedAccuracy,
    "weighted_exponential": WeightedExponential,
    "ordinal": Ordinal,
    "squared_ordinal": SquaredOrdinal,
    "cost": Cost,
    "balanced_accuracy": BalancedAccuracy,
    "recall": Recall,
    "specificity": Specificity,
    "f1": FBeta,
    "fbeta": FBeta,
    "micro_f1": MicroF1,
    "jaccard": Jaccard,
    "precision": Precision,
    "kappa": Kappa,
    "linear_kappa": partial(Kappa, weights="linear"),
    "quadratic_kappa": partial(Kappa, weights="quadratic"),
    "polynomial": Polynomial,
    "decathlon": Decathlon,
    "g_mean": GMean,
    "h_mean": HMean,
    "q_mean": QMean,
    "min_recall": MinRecall,
    "macro_f1": _averaged(FBeta, "macro"),
    "weighted_f1": _averaged(FBeta, "weighted"),
    "macro_jaccard": _averaged(Jaccard, "macro"),
    "weighted_jaccard": _averaged(Jaccard, "weighted"),
    "macro_precision": _averaged(Precision, "macro"),
    "weighted_precision": _averaged(Precision, "weighted"),
    "macro_recall": _averaged(Recall, "macro"),
    "macro_specificity": _averaged(Specificity, "macro"),
    "mcc": MCC,
    "fowlkes_mallows": FowlkesMallows,
}

# Names that say nothing without a parameter: which one, and what to write.
_NEEDS = {
    "weighted_accuracy": ("class_weight", "WeightedAccuracy(class_weight=[1, 3])"),
    "cost": ("cost", "Cost(cost=[[0, 1], [5, 0]])"),
    "fbeta": ("beta", "FBeta(beta=2)"),
}

# What people type for names that spelling does not bring near.
_SYNONYMS = {
    "cohen_kappa": "kappa",
    "dice": "f1",
    "hamming_loss": "hamming_accuracy",
    "iou": "jaccard",
    "mae": "ordinal",
    "mse": "squared_ordinal",
    "qwk": "quadratic_kappa",
    "sensitivity": "recall",
    "true_negative_rate": "specificity",
    "worst_recall": "min_recall",
}


def metric_names() -> list[str]:
    """Return our names of metrics.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import metricwise as mw
    >>> mw.metrics.metric_names()[:3]
    ['accuracy', 'balanced_accuracy', 'cost']
    """
    return sorted(_FACTORIES)


def is_metric_name(name: str) -> bool:
    """Whether a name is one of ours."""
    return name in _FACTORIES


@cache
def _parameters(name: str) -> frozenset[str]:
    return frozenset(inspect.signature(_FACTORIES[name]).parameters)


def get_metric(name: str, *, zero_division: float = 0.0, **parameters: Any) -> Metric:
    """Return the metric with one of our names.

    Parameters
    ----------
    name : str
        One of :func:`metric_names`.
    zero_division : float, default=0.0
        The value at 0/0, for metrics that have one of their own choice.
    **parameters
        Further parameters of the metric.

    Returns
    -------
    Metric

    Examples
    --------
    >>> import metricwise as mw
    >>> mw.metrics.get_metric("fbeta", beta=2.0)
    FBeta(index=None, label=None, zero_division=0.0, beta=2.0)
    """
    if name not in _FACTORIES:
        raise unknown_name(name, _FACTORIES)
    known = _parameters(name)
    needed, example = _NEEDS.get(name, (None, ""))
    if needed is not None and needed not in parameters:
        raise ValueError(f"metric: {name!r} needs {needed}; give the metric instead of its name: metrics.{example}.")
    unexpected = sorted(parameters.keys() - known)
    if unexpected:
        raise TypeError(f"metric: {name!r} has the parameters {sorted(known)}, got {unexpected}.")
    if "zero_division" in known:
        parameters["zero_division"] = zero_division
    return _FACTORIES[name](**parameters)


def unknown_name(name: str, known: Iterable[str]) -> ValueError:
    """Return the error for a name that nobody knows, with the nearest that somebody does."""
    import difflib  # for those who mistype alone

    known = list(known)
    lowered = name.lower().replace("-", "_").replace(" ", "_")
    near = [_SYNONYMS[lowered]] if lowered in _SYNONYMS else difflib.get_close_matches(lowered, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(n) for n in near)}?" if near else "see metrics.metric_names()."
    return ValueError(f"metric: {name!r} is not known; {hint}")
