"""Our names for metrics.

To add a metric, write its class, give it a line here and a record in the tests: CONTRIBUTING says what then runs on it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any

from numpy.typing import ArrayLike

from ..core.errors import InvalidParameter, InvalidType, mention
from .abstention import Abstained
from .base import Metric
from .class_average import ClassAverage
from .linear import (
    Accuracy,
    BalancedAccuracy,
    Cost,
    FalsePositiveRate,
    Ordinal,
    PredictedShare,
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

__all__ = ["beta_of", "get_metric", "is_metric_name", "metric_names", "needed_parameter", "unknown_name"]

_F_NUMBER = re.compile(r"f(\d+(?:\.\d+)?)")


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
    "false_positive_rate": FalsePositiveRate,
    "share": PredictedShare,
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

# Names of what rules that may abstain have besides: of K classes alone they say nothing.
_OF_ABSTENTIONS: dict[str, Callable[..., Metric]] = {"abstained": Abstained}

# Other names, and examples of those with a number in them.
_SHORT = {"qwk": "quadratic_kappa", "fpr": "false_positive_rate", "f2": "f2", "f0.5": "f0.5"}

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
    "iou": "jaccard",
    "mae": "ordinal",
    "matthews": "mcc",
    "mse": "squared_ordinal",
    "sensitivity": "recall",
    "true_negative_rate": "specificity",
    "worst_recall": "min_recall",
}

# The same for names that are refused.
_REFUSED_SYNONYMS = {
    "auc": "roc_auc",
    "brier": "neg_brier_score",
    "cross_entropy": "neg_log_loss",
    "log_loss": "neg_log_loss",
    "logloss": "neg_log_loss",
    "pr_auc": "average_precision",
    "rmse": "neg_root_mean_squared_error",
}


def metric_names() -> list[str]:
    """Return the names of all metrics.

    In addition, "qwk" means "quadratic_kappa", and "f2", "f0.5" or "macro_f2" are F-measures with any number for beta.

    Returns
    -------
    list of str

    See Also
    --------
    scorer_names : Names of scikit-learn that are accepted.
    get_metric : Return the metric of a name.

    Examples
    --------
    >>> import metricwise as mw
    >>> mw.metrics.metric_names()[:3]
    ['accuracy', 'balanced_accuracy', 'cost']
    """
    return sorted(_FACTORIES)


def is_metric_name(name: str) -> bool:
    """Whether a name is one of ours."""
    return _factory(name) is not None


def beta_of(name: str) -> float | None:
    """Return the number in a name such as "f2" or "f0.5"; None for other names.

    Examples
    --------
    >>> from metricwise.metrics.registry import beta_of
    >>> beta_of("f0.5"), beta_of("fbeta")
    (0.5, None)
    """
    found = _F_NUMBER.fullmatch(name)
    return None if found is None else float(found[1])


def needed_parameter(name: str) -> str | None:
    """Return the parameter that a name of ours says nothing without; None for most names.

    Examples
    --------
    >>> from metricwise.metrics.registry import needed_parameter
    >>> needed_parameter("cost"), needed_parameter("f1")
    ('cost', None)
    """
    return _NEEDS.get(name, (None, ""))[0]


@cache
def _factory(name: str) -> Callable[..., Metric] | None:
    """What makes the metric of a name: a line of the table, or an F-measure of any number, averaged or not."""
    name = _SHORT.get(name, name)
    if name in _FACTORIES or name in _OF_ABSTENTIONS:
        return _FACTORIES.get(name) or _OF_ABSTENTIONS[name]
    average, _, rest = name.rpartition("_")
    beta = beta_of(rest)
    if beta is None or average not in ("", "macro", "weighted"):
        return None
    one = partial(FBeta, beta=beta)
    return _averaged(one, average) if average else one


@cache
def _parameters(factory: Callable[..., Metric]) -> frozenset[str]:
    return frozenset(inspect.signature(factory).parameters)


def get_metric(name: str, *, zero_division: float = 0.0, **parameters: Any) -> Metric:
    """Return a metric by name.

    Parameters
    ----------
    name : str
        One of :func:`metric_names`, "qwk", or "f" and a number for an F-measure: "f3", "macro_f0.3".
    zero_division : float, default=0.0
        The value at 0/0, for metrics that have this parameter.
    **parameters
        Further parameters of the metric.

    Returns
    -------
    Metric

    See Also
    --------
    metric_names : All names.
    resolve : Also accepts scikit-learn's names, scorers and functions.

    Examples
    --------
    >>> import metricwise as mw
    >>> mw.metrics.get_metric("fbeta", beta=2.0)
    FBeta(index=None, pos_label=None, zero_division=0.0, beta=2.0)
    """
    factory = _factory(name)
    if factory is None:
        raise unknown_name(name, _FACTORIES)
    known = _parameters(factory)
    needed, example = _NEEDS.get(name, (None, ""))
    if needed is not None and needed not in parameters:
        raise InvalidParameter(
            "metric",
            problem=f"{name!r} needs {needed}",
            remedy=f"pass the metric instead of its name: metrics.{example}",
            owner="metric",
        )
    unexpected = sorted(parameters.keys() - known)
    if unexpected:
        raise InvalidType(
            "metric", problem=f"{name!r} has the parameters {sorted(known)}, got {unexpected}", owner="metric"
        )
    if "zero_division" in known:
        parameters["zero_division"] = zero_division
    return factory(**parameters)


def unknown_name(
    name: str,
    known: Iterable[str],
    serves: Callable[[str], bool] = bool,
    refused: Mapping[str, str] | None = None,
) -> ValueError:
    """Return the error for a name that nobody knows, with the nearest that somebody does.

    Parameters
    ----------
    known : iterable of str
        Names that may be meant.
    serves : callable
        Whether a name would be taken if it were given; those that would not are named only if there is no other.
    refused : mapping of str to str, optional
        Names that are known and refused, and why.
    """
    import difflib  # for those who mistype alone

    lowered = re.sub(r"[-\s]+", "_", name.strip().lower())
    plain = lowered.removesuffix("_score")
    refused = refused or {}
    for guess in (lowered, plain, _REFUSED_SYNONYMS.get(plain, "")):
        if guess in refused:
            return InvalidParameter(
                "metric",
                problem=f"{name!r} is not known",
                remedy=f"{guess!r} is, and it {refused[guess]}",
                owner="metric",
            )
    names = list(dict.fromkeys([*known, *_SHORT]))
    meant = [guess for guess in (lowered, plain, _SYNONYMS.get(plain, "")) if guess in names]
    near = [*meant[:1]] or difflib.get_close_matches(plain, names, n=6, cutoff=0.5)
    near = ([guess for guess in near if serves(guess)] or near)[:3]
    hint = (
        f"did you mean {' or '.join(repr(n) for n in near)}?" if near else f"see {mention('metrics.metric_names()')}."
    )
    return InvalidParameter("metric", problem=f"{name!r} is not known", remedy=f"{hint}", owner="metric")
