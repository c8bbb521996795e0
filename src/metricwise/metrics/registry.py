"""Names of metrics.

A metric gets its name where its class is defined, by :func:`register`; importing `metricwise.metrics` imports all of
these modules. Must not know any one metric.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar

from ..core.errors import InvalidParameter, InvalidType, mention
from .base import Metric

__all__ = ["get_metric", "metric_names"]

_NUMBERED_NAME = re.compile(r"(.*?)(\d+(?:\.\d+)?)")

# Other names, and examples of those with a number in them.
_SHORT = {"qwk": "quadratic_kappa", "fpr": "false_positive_rate", "f2": "f2", "f0.5": "f0.5"}

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


class Named(NamedTuple):
    """The factory of a name, and the parameter that it says nothing without, with an example of it."""

    factory: Callable[..., Metric]
    needs: str | None = None
    example: str = ""
    listed: bool = True


_NAMES: dict[str, Named] = {}
_NUMBERED: dict[str, Callable[[float], Callable[..., Metric]]] = {}  # by what stands before the number
F = TypeVar("F", bound=Callable[..., Metric])


def register(*names: str, needs: str | None = None, example: str = "", listed: bool = True) -> Callable[[F], F]:
    """Give a class, or another factory of metrics, its names."""

    def give(factory: F) -> F:
        _NAMES.update(dict.fromkeys(names, Named(factory, needs, example, listed)))
        return factory

    return give


def register_numbered(prefix: str, factory_of: Callable[[float], Callable[..., Metric]]) -> None:
    """Register names that end with a number, such as "f2", by the factory of each number."""
    _NUMBERED[prefix] = factory_of


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
    return sorted(name for name, named in _NAMES.items() if named.listed)


def is_metric_name(name: str) -> bool:
    """Whether a name is one of ours."""
    return _factory(name) is not None


def number_in(name: str, prefix: str) -> float | None:
    """Return the number at the end of a name such as "f2" or "f0.5"; None for other names."""
    match = _NUMBERED_NAME.fullmatch(name)
    return None if match is None or match[1] != prefix else float(match[2])


def needed_parameter(name: str) -> str | None:
    """Return the parameter without which a name has no meaning, such as `cost` of "cost"; None for most names."""
    named = _NAMES.get(name)
    return None if named is None else named.needs


@cache
def _factory(name: str) -> Callable[..., Metric] | None:
    """Return the factory of a name; None if it is unknown."""
    name = _SHORT.get(name, name)
    if name in _NAMES:
        return _NAMES[name].factory
    match = _NUMBERED_NAME.fullmatch(name)
    return None if match is None or match[1] not in _NUMBERED else _NUMBERED[match[1]](float(match[2]))


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
        raise unknown_name(name, metric_names())
    accepted, needed = _parameters(factory), needed_parameter(name)
    if needed is not None and needed not in parameters:
        raise InvalidParameter(
            "metric",
            problem=f"{name!r} needs {needed}",
            remedy=f"pass the metric instead of its name: metrics.{_NAMES[name].example}",
            owner="metric",
        )
    unexpected = sorted(parameters.keys() - accepted)
    if unexpected:
        raise InvalidType(
            "metric", problem=f"{name!r} has the parameters {sorted(accepted)}, got {unexpected}", owner="metric"
        )
    if "zero_division" in accepted:
        parameters["zero_division"] = zero_division
    return factory(**parameters) if parameters.keys() - {"zero_division"} else _plain(factory, **parameters)


@lru_cache(maxsize=64)
def _plain(factory: Callable[..., Metric], **zero_division: float) -> Metric:
    """Return a metric without parameters of its own: always the same object, which knows what it has derived."""
    return factory(**zero_division)


def unknown_name(
    name: str,
    names: Iterable[str],
    serves: Callable[[str], bool] = bool,
    refused: Mapping[str, str] | None = None,
) -> ValueError:
    """Return the error for an unknown name, with the nearest of the names that exist.

    Names for which `serves` is False are suggested only if there is no other; `refused` has names with the reason why
    they are not accepted.
    """
    import difflib  # needed for misspelt names only

    lowered = re.sub(r"[-\s]+", "_", name.strip().lower())
    stem = lowered.removesuffix("_score")
    refused = refused or {}
    for guess in (lowered, stem, _REFUSED_SYNONYMS.get(stem, "")):
        if guess in refused:
            return InvalidParameter(
                "metric",
                problem=f"{name!r} is not known",
                remedy=f"{guess!r} is, and it {refused[guess]}",
                owner="metric",
            )
    names = list(dict.fromkeys([*names, *_SHORT]))
    meant = [guess for guess in (lowered, stem, _SYNONYMS.get(stem, "")) if guess in names]
    near = [*meant[:1]] or difflib.get_close_matches(stem, names, n=6, cutoff=0.5)
    near = ([guess for guess in near if serves(guess)] or near)[:3]
    hint = (
        f"did you mean {' or '.join(repr(n) for n in near)}?" if near else f"see {mention('metrics.metric_names()')}."
    )
    return InvalidParameter("metric", problem=f"{name!r} is not known", remedy=f"{hint}", owner="metric")
