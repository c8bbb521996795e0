"""scikit-learn's functions and scorer objects: which of them are metrics of ours.

A function is known by identity, in the module that the user has loaded already, so that exact solvers serve it. Knows
scikit-learn's functions and what its scorers look like, and must not import it.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InvalidParameter, argument
from ._common import FloatArray, as_shares, divide, prior_limits
from .affine import Affine
from .base import FractionalLinear, Linear, Metric
from .class_average import ClassAverage
from .functions import function_name
from .linear import Accuracy, BalancedAccuracy, Recall
from .one_vs_rest import ClassRatio
from .ratio import FBeta, Jaccard, Kappa, Precision
from .smooth import MCC

__all__ = ["LOSSES", "Known", "Unwrapped", "known_function", "unwrap"]

_RANKING = "judges the order of the scores"
_PROBABILITY = "judges the probabilities themselves"

_ONE_CLASS: dict[str, Callable[..., ClassRatio]] = {
    "f1_score": FBeta,
    "fbeta_score": FBeta,
    "jaccard_score": Jaccard,
    "precision_score": Precision,
    "recall_score": Recall,
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
    """A callable without what is around it: the function, its keyword arguments, and -1 where it is to be small.

    `scorer` says whether it was a scorer object, whose sign somebody has chosen.
    """

    function: Any
    parameters: dict[str, Any]
    sign: int
    scorer: bool = False


class Known(NamedTuple):
    """A metric of ours, and the average that a function of scikit-learn names.

    Parameters
    ----------
    metric : Metric
        Of one class where `suffix` is given, else all of it.
    suffix : str or None
        "micro", "macro", "weighted" or "samples": over outputs on multilabel targets, over classes elsewhere.
    labels : tuple or None
        The classes that are averaged, where not all are.
    loss : str or None
        The name of the loss ``1 - metric`` that is meant instead of the metric.
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
        """Return the metric, or the loss that it stands for."""
        return metric if self.loss is None else Affine(metric, -1.0, 1.0, title=self.loss, is_loss=True)


def unwrap(function: Any) -> Unwrapped:
    """Look into ``functools.partial`` and the scorer objects of scikit-learn.

    Raises
    ------
    ValueError
        If a scorer judges something else than predicted labels.
    """
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
    """Return what a function of scikit-learn is here; None for other functions, and where it is called in other ways.

    Parameters
    ----------
    function : callable
    parameters : mapping
        Its keyword arguments.
    zero_division : float
        Where the function is not told.
    """
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or getattr(sys.modules.get("sklearn.metrics"), name, None) is not function:
        return None
    if name in _REFUSED:
        raise _refusal(name, _REFUSED[name])
    given = {key: value for key, value in parameters.items() if not (key == "sample_weight" and value is None)}
    if name in _ONE_CLASS:
        return _of_one_class(name, given, zero_division)
    reader = _READERS.get(name)
    return None if reader is None else reader(given)


def _of_one_class(name: str, given: dict[str, Any], zero_division: float) -> Known | None:
    known = {"average", "labels", "pos_label", "zero_division", *(["beta"] if name == "fbeta_score" else [])}
    at_zero = given.get("zero_division", "warn")
    at_zero = zero_division if isinstance(at_zero, str) and at_zero == "warn" else at_zero
    if not given.keys() <= known or (isinstance(at_zero, float) and math.isnan(at_zero)):
        return None  # wrong ones fail when it is called; NaN leaves classes out of an average
    if name == "fbeta_score" and "beta" not in given:
        return None
    average = given.get("average", "binary")
    if average is None:
        raise InvalidParameter(
            "metric",
            problem=f"{name} with {argument('average', None)} gives a number for each class",
            remedy="choose 'macro', 'weighted' or 'micro'",
            owner="metric",
        )
    options: dict[str, Any] = {"zero_division": at_zero}
    if "beta" in given:
        options["beta"] = given["beta"]
    labels = None if given.get("labels") is None else tuple(np.asarray(given["labels"]).tolist())
    if average == "binary":
        return Known(_ONE_CLASS[name](pos_label=given.get("pos_label"), **options))
    return Known(_ONE_CLASS[name](**options), average, labels)


def _accuracy(given: dict[str, Any]) -> Known | None:
    if not given.pop("normalize", True):
        raise InvalidParameter(
            "normalize",
            "not be False, because a metric is a share of rows rather than a count",
            remedy="leave it out",
            owner="metric",
        )
    return None if given else Known(Accuracy())


def _loss(name: str) -> Callable[[dict[str, Any]], Known | None]:
    """Return the reader of a function that is the share of wrong decisions."""

    def read(given: dict[str, Any]) -> Known | None:
        known = _accuracy(given)
        return None if known is None else known._replace(loss=name)

    return read


def _balanced_accuracy(given: dict[str, Any]) -> Known | None:
    adjusted = given.pop("adjusted", False)
    return None if given else Known(BalancedAccuracy(adjusted=bool(adjusted)))


def _kappa(given: dict[str, Any]) -> Known | None:
    weights, labels = given.pop("weights", None), given.pop("labels", None)
    undefined = given.pop("replace_undefined_by", math.nan)
    if given or not (undefined == 0 or math.isnan(undefined)) or (labels is not None and weights is None):
        return None
    return Known(Kappa(weights, order=None if labels is None else np.asarray(labels).tolist()))


def _mcc(given: dict[str, Any]) -> Known | None:
    return None if given else Known(MCC())


_READERS: dict[str, Callable[[dict[str, Any]], Known | None]] = {
    "accuracy_score": _accuracy,
    "balanced_accuracy_score": _balanced_accuracy,
    "cohen_kappa_score": _kappa,
    "hamming_loss": _loss("hamming_loss"),
    "matthews_corrcoef": _mcc,
    "zero_one_loss": _loss("zero_one_loss"),
}


# Losses that are known by name too, as they are called in the facts of a rule.
LOSSES: dict[str, Known] = {name: Known(Accuracy(), loss=name) for name in ("hamming_loss", "zero_one_loss")}


@dataclass(frozen=True, eq=False)
class SomeClasses(Metric):
    """Average over some of the classes of a metric of one class, as scikit-learn's ``labels=`` has it.

    Parameters
    ----------
    base : ClassRatio
        The metric of one class.
    average : {"macro", "weighted", "micro"}
    labels : tuple
        The classes that count.
    """

    base: ClassRatio
    average: str
    labels: tuple[Any, ...] = field(default=())

    family: ClassVar[str] = "other"

    @property
    def name(self) -> str:  # type: ignore[override]  # made of its parts
        return f"{self.base.name}_{self.average}_of_some"

    @property
    def by_class(self) -> bool:  # type: ignore[override]  # depends on the average
        return self.average == "macro"

    def class_metric(self) -> Metric | None:
        return self.base.class_metric()

    def _positions(self, n_classes: int, classes: Sequence[Any] | None) -> list[int]:
        known = list(range(n_classes)) if classes is None else list(classes)
        if not (len(set(self.labels)) == len(self.labels) and all(label in known for label in self.labels)):
            raise InvalidParameter(
                "labels", f"be among the classes {known}, each once", list(self.labels), owner="metric"
            )
        return [known.index(label) for label in self.labels]

    def places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return tuple(self._positions(len(classes), classes))

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        priors = as_shares(priors)
        n_classes = priors.shape[-1]
        counted = self._positions(n_classes, classes)
        if self.average == "micro":
            return self._pooled(priors, counted)
        inside = np.isin(np.arange(n_classes), counted).astype(np.float64)
        weights = inside * priors if self.average == "weighted" else inside
        return self.base.average(divide(weights, weights.sum(axis=-1, keepdims=True)), priors)

    def _pooled(self, priors: FloatArray, counted: list[int]) -> Metric:
        n_classes = priors.shape[-1]
        above, below = (
            np.sum([terms.matrix(n_classes, k) for k in counted], axis=0)
            for terms in (self.base.numerator, self.base.denominator)
        )
        if not self.base.denominator.fixed:
            return FractionalLinear(above, below, self.base.zero_division, (0.0, 1.0))
        matrix = divide(above, np.sum(priors * below[:, 0], axis=-1)[..., None, None], self.base.zero_division)
        return Linear(matrix, prior_limits(matrix, priors))
