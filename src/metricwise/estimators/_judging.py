"""The score of an estimator by a metric, and what becomes of sample weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import has_fit_parameter

from ..core.errors import InvalidParameter, entry_point, mention, warn
from ..data.labels import observed_labels
from ..goals.for_outputs import are_for_outputs
from ..metrics.naming import same_classes
from .scoring import LabelScore

__all__ = ["score_labels", "weight_for_fit"]


@entry_point("score")
def score_labels(
    scorer: LabelScore,
    classes: tuple[NDArray[Any], ...],
    y: Any,
    predicted: NDArray[Any],
    sample_weight: Any,
    declared: bool = False,
) -> float:
    """Return a metric of labels and predictions over the classes that a model knows and those that occur in y.

    Classes that the user declared are all there are.
    """
    true = observed_labels(y)
    if len(true.classes) != len(classes) or true.multioutput != (predicted.ndim == 2):
        raise InvalidParameter("y", f"have the shape of the predictions, {predicted.shape}", np.shape(y))
    pools = scorer.goal.average != "macro" and not are_for_outputs(scorer.goal.metric)
    every = list(classes) if declared else _joined_classes(classes, true.classes, pools)
    names = every if true.multioutput else every[0]
    return replace(scorer, classes=names)(y, predicted, sample_weight=sample_weight)


def _joined_classes(known: tuple[NDArray[Any], ...], seen: tuple[NDArray[Any], ...], pools: bool) -> list[NDArray[Any]]:
    """Return the classes of each output and those that occur in it; outputs that are pooled go on sharing theirs."""
    if pools and same_classes(known):
        return [_joined(known[0], np.array([v for own in seen for v in own.tolist()], dtype=object))] * len(known)
    return [_joined(*pair) for pair in zip(known, seen, strict=True)]


def _joined(known: NDArray[Any], seen: NDArray[Any]) -> NDArray[Any]:
    """Classes of the model, and those that it has never seen among them in order."""
    if set(seen.tolist()) <= set(known.tolist()):
        return known
    return observed_labels([*known.tolist(), *seen.tolist()]).classes[0]


def weight_for_fit(estimator: Any, sample_weight: Any, calibrated: bool = False) -> dict[str, Any]:
    """Return the weights as parameters of an estimator's fit, or warn that it does not take them."""
    if sample_weight is None:
        return {}
    if calibrated or has_fit_parameter(estimator, "sample_weight"):
        return {"sample_weight": sample_weight}
    warn(
        f"{type(estimator).__name__} does not take {mention('sample_weight')}, so the weights apply to the "
        "metric only. A Pipeline takes them with metadata routing enabled."
    )
    return {}
