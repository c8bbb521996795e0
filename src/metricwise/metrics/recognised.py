"""Functions and scorer objects of scikit-learn that are metrics of this package.

A function is recognised by identity, in the module that the user has imported. Must not import scikit-learn.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import InvalidParameter, argument
from .base import Affine, Metric
from .functions import function_name
from .one_vs_rest import ClassAverage, ClassRatio, SomeClasses
from .registry import get_metric

__all__ = ["Known", "Unwrapped", "known_function", "known_loss", "unwrap"]

_RANKING = "evaluates the order of the scores"
_PROBABILITY = "evaluates the probabilities themselves"

_ONE_CLASS = {
    "f1_score": "f1",
    "fbeta_score": "fbeta",
    "jaccard_score": "jaccard",
    "precision_score": "precision",
    "recall_score": "recall",
}
_REFUSED = {
    **dict.fromkeys(
        (
            "average_precision_score",
            "coverage_error",
            "dcg_score",
            "hinge_loss",
            "label_ranking_average_precision_score",
            "label_ranking_loss",
            "ndcg_score",
            "roc_auc_score",
            "top_k_accuracy_score",
        ),
        _RANKING,
    ),
    **dict.fromkeys(("brier_score_loss", "d2_brier_score", "d2_log_loss_score", "log_loss"), _PROBABILITY),
}


class Unwrapped(NamedTuple):
    """The function inside of a callable, its keyword arguments, and its sign, -1 for a loss.

    `scorer` is whether it was a scorer object, which has a sign.
    """

    function: Any
    parameters: dict[str, Any]
    sign: int
    scorer: bool = False


class Known(NamedTuple):
    """The metric of a function of scikit-learn, and the average that the function names.

    With a `suffix` ("micro", "macro", "weighted" or "samples"), the metric is of one class, and is averaged over
    outputs on multilabel targets, over classes elsewhere: over `labels`, where not over all. `loss` is the name of the
    function if it is the loss ``1 - metric``.
    """

    metric: Metric
    suffix: str | None = None
    labels: tuple[Any, ...] | None = None
    loss: str | None = None

    def over_classes(self) -> Metric:
        """Return the average over classes that `suffix` names."""
        assert isinstance(self.metric, ClassRatio)
        if self.labels is None:
            return ClassAverage(self.metric, str(self.suffix))
        return SomeClasses(self.metric, str(self.suffix), self.labels)

    def meant(self, metric: Metric) -> Metric:
        """Return the metric, or the loss ``1 - metric``."""
        return metric if self.loss is None else Affine(metric, -1.0, 1.0, title=self.loss, is_loss=True)


def unwrap(function: Any) -> Unwrapped:
    """Look into ``functools.partial`` and scorer objects; refuse scorers of anything but predicted labels."""
    parameters: dict[str, Any] = {}
    sign, scorer = 1, False
    while True:
        if isinstance(function, functools.partial) and not function.args:
            parameters = {**function.keywords, **parameters}
            function = function.func
        elif hasattr(function, "_score_func") and hasattr(function, "_sign"):
            _check_response(function)
            parameters = {**getattr(function, "_kwargs", {}), **parameters}
            sign, scorer = sign * int(function._sign), True
            function = function._score_func
        else:
            return Unwrapped(function, parameters, sign, scorer)


def _check_response(scorer: Any) -> None:
    response = getattr(scorer, "_response_method", "predict")
    if response == "predict":
        return
    reason = _PROBABILITY if response == "predict_proba" else _RANKING
    raise _refusal(f"the scorer of {function_name(scorer._score_func)}", reason)


def _refusal(name: str, reason: str) -> ValueError:
    return InvalidParameter(
        "metric",
        problem=f"{name} {reason}, not decisions",
        remedy="choose a metric of decisions, such as 'f1'",
        owner="metric",
    )


def known_function(function: Any, parameters: Mapping[str, Any], zero_division: float) -> Known | None:
    """Return the metric of a function of scikit-learn; None for other functions and other uses of it.

    The value at 0/0 is `zero_division` where the function's parameters do not set it.
    """
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or getattr(sys.modules.get("sklearn.metrics"), name, None) is not function:
        return None
    if name in _REFUSED:
        raise _refusal(name, _REFUSED[name])
    options = {key: value for key, value in parameters.items() if not (key == "sample_weight" and value is None)}
    if name in _ONE_CLASS:
        return _of_one_class(name, options, zero_division)
    reader = _READERS.get(name)
    return None if reader is None else reader(options)


def _of_one_class(name: str, options: dict[str, Any], zero_division: float) -> Known | None:
    accepted = {"average", "labels", "pos_label", "zero_division", *(["beta"] if name == "fbeta_score" else [])}
    at_zero = options.get("zero_division", "warn")
    at_zero = zero_division if isinstance(at_zero, str) and at_zero == "warn" else at_zero
    if not options.keys() <= accepted or (isinstance(at_zero, float) and math.isnan(at_zero)):
        return None  # wrong ones fail when it is called; NaN leaves classes out of an average
    if name == "fbeta_score" and "beta" not in options:
        return None
    average = options.get("average", "binary")
    if average is None:
        raise InvalidParameter(
            "metric",
            problem=f"{name} with {argument('average', None)} gives a number for each class",
            remedy="choose 'macro', 'weighted' or 'micro'",
            owner="metric",
        )
    parameters = {"beta": options["beta"]} if "beta" in options else {}
    labels = None if options.get("labels") is None else tuple(np.asarray(options["labels"]).tolist())
    if average == "binary":
        parameters["pos_label"] = options.get("pos_label")
        return Known(get_metric(_ONE_CLASS[name], zero_division=at_zero, **parameters))
    return Known(get_metric(_ONE_CLASS[name], zero_division=at_zero, **parameters), average, labels)


def _accuracy(options: dict[str, Any]) -> Known | None:
    if not options.pop("normalize", True):
        raise InvalidParameter(
            "normalize",
            "not be False, because a metric is a share of rows rather than a count",
            remedy="leave it out",
            owner="metric",
        )
    return None if options else Known(get_metric("accuracy"))


def _loss(name: str) -> Callable[[dict[str, Any]], Known | None]:
    """Return the reader of a function that is the share of wrong decisions."""

    def read(options: dict[str, Any]) -> Known | None:
        accuracy = _accuracy(options)
        return None if accuracy is None else accuracy._replace(loss=name)

    return read


def _balanced_accuracy(options: dict[str, Any]) -> Known | None:
    adjusted = options.pop("adjusted", False)
    return None if options else Known(get_metric("balanced_accuracy", adjusted=bool(adjusted)))


def _kappa(options: dict[str, Any]) -> Known | None:
    weights, labels = options.pop("weights", None), options.pop("labels", None)
    undefined = options.pop("replace_undefined_by", math.nan)
    if options or not (undefined == 0 or math.isnan(undefined)) or (labels is not None and weights is None):
        return None
    return Known(get_metric("kappa", weights=weights, order=None if labels is None else np.asarray(labels).tolist()))


def _mcc(options: dict[str, Any]) -> Known | None:
    return None if options else Known(get_metric("mcc"))


_READERS: dict[str, Callable[[dict[str, Any]], Known | None]] = {
    "accuracy_score": _accuracy,
    "balanced_accuracy_score": _balanced_accuracy,
    "cohen_kappa_score": _kappa,
    "hamming_loss": _loss("hamming_loss"),
    "matthews_corrcoef": _mcc,
    "zero_one_loss": _loss("zero_one_loss"),
}


_LOSSES = ("hamming_loss", "zero_one_loss")  # accepted by name too


def known_loss(name: str) -> Known | None:
    """Return the loss of a name; None for other names."""
    return Known(get_metric("accuracy"), loss=name) if name in _LOSSES else None
