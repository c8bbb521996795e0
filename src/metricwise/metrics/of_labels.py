"""A metric as a score of true and predicted labels, over one output or several."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.confusion import from_predictions, normalize
from ..core.errors import InvalidParameter, entry_point
from ..core.labels import label_array, python_labels
from ..data.abstention import read_abstain_label, split_abstained
from ..data.frames import is_two_dimensional, scales_of, warn_of_order
from ..data.labels import observed_labels, read_pair
from ..data.weights import read_output_weight, read_sample_weight
from .abstention import Abstention, check_pooled
from .aim import AveragedMetric
from .averages import check_average
from .base import Metric
from .functions import check_whole_rows
from .instance import row_values
from .naming import PerOutput, check_classes, check_same_classes, pooled, same_classes, with_positive
from .scales import in_order

__all__ = ["label_of_abstentions", "score"]

Classes = tuple[NDArray[Any], ...]


@entry_point()
def score(
    metric: Metric,
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    average: str | None = None,
    output_weight: ArrayLike | None = None,
    classes: Any = None,
    pos_label: Any = None,
    abstain: Abstention | None = None,
) -> float:
    """Return a metric of labels and predictions; :meth:`Metric.score` is this.

    Parameters
    ----------
    metric : Metric
    y_true, y_pred : array-like of shape (N,) or (N, M)
        True and predicted labels; missing true labels are ignored.
    sample_weight : array-like of shape (N,), optional
        Sample weights.
    average : {"micro", "macro", "instance"}, optional
        Average over outputs. None means "micro"; `average` is required if the outputs have different classes.
    output_weight : array-like of shape (M,), optional
        Weights of the outputs in the average.
    classes : array-like, or list of M array-likes, optional
        All class labels; None uses the labels that occur, for "micro" and "instance" those of all outputs. Ordinal
        metrics use their `order`, or else that of an ordered categorical `y_true`.
    pos_label : object, or list of M objects, optional
        The positive class of a metric of one class that does not name it, for all outputs or for each.
    abstain : Abstention, optional
        The label in `y_pred` that marks abstentions, and what they cost, for linear metrics; without a cost, they are
        left out, or counted as misses if the metric is not a ratio of counts. None: every prediction is a class.

    Returns
    -------
    float
    """
    if average is not None:
        check_average(average)
    allowed, gone = None if abstain is None else abstain.terms, None
    if abstain is not None:
        y_pred, gone = split_abstained(y_true, y_pred, label_of_abstentions(abstain, y_true))
    true, predicted, names = read_pair(y_true, y_pred, classes)
    warn_of_order(y_true=y_true, y_pred=y_pred, sample_weight=sample_weight)
    if pos_label is not None:
        metric = with_positive(metric, pos_label, is_two_dimensional(y_true))
    if classes is None:
        names = _with_named(metric, names)
    if average is None:
        hint = "" if classes is not None else " If all outputs have the same classes, pass them once as classes=."
        check_same_classes(names, hint)
        average = "micro"
    if average != "macro" and _pools_by_label(metric, names, classes_given=classes is not None):
        true, predicted, names = _on_common_classes(true, predicted, names)
    metric = in_order(metric, scales_of(y_true, names))
    check_classes(metric, names)
    weight = read_sample_weight(sample_weight, len(true))
    alpha = read_output_weight(output_weight, true.shape[1])
    check_whole_rows(metric, sample_weight=weight, output_weight=alpha, average=average)
    n_classes = np.array([len(labels) for labels in names], dtype=np.intp)
    if allowed is not None and gone is not None:
        metric, predicted = allowed.aim(metric), np.where(gone, n_classes, predicted)
        check_pooled(average, n_classes)
        n_classes = n_classes + 1
    width = int(n_classes.max())
    C, mass = normalize(from_predictions(true, predicted, width, weight))
    if not (mass * alpha > 0).any():
        raise InvalidParameter("y_true", "have at least one observed label of positive weight", "none")
    if average == "instance":
        return row_values(metric, true, predicted, width, alpha, weight, names).mean.value
    return AveragedMetric(metric, average, alpha).bind(C.sum(axis=-1), mass, n_classes, names).value(C)


def label_of_abstentions(abstain: Abstention, y_true: Any) -> Any:
    """Return the label that marks abstentions among predictions: the one given, or the default beside these labels."""
    if abstain.label is not None:
        return abstain.label
    return read_abstain_label(None, observed_labels(y_true).classes)


def _with_named(metric: Metric, names: Classes) -> Classes:
    """Add the positive class to an output that shows one other class alone, as scikit-learn does."""

    def complete(positive: Any, labels: NDArray[Any]) -> NDArray[Any]:
        observed = python_labels(labels)
        complete = positive is None or len(observed) != 1 or positive in observed
        return labels if complete else label_array([*observed, positive])

    positives = [getattr(metric._of_output(m), "pos_label", None) for m in range(len(names))]
    return tuple(complete(positive, labels) for positive, labels in zip(positives, names, strict=True))


def _pools_by_label(metric: Metric, names: Classes, *, classes_given: bool) -> bool:
    """Whether outputs of different classes are pooled by label instead of position.

    This holds for observed labels, of which an output may lack some, and for a named class whose position differs.
    """
    if isinstance(metric, PerOutput) or same_classes(names):
        return False
    if not classes_given:
        return True
    try:
        pooled(metric, names)
    except ValueError:  # also where an output lacks the class
        return True
    return False


def _on_common_classes(
    true: NDArray[Any], predicted: NDArray[Any], names: Classes
) -> tuple[NDArray[Any], NDArray[Any], Classes]:
    """Return codes in terms of the labels of all outputs together."""
    every = observed_labels([label for labels in names for label in python_labels(labels)]).classes[0]
    place = {label: code for code, label in enumerate(python_labels(every))}
    tables = [np.array([place[label] for label in python_labels(labels)] + [-1], dtype=np.intp) for labels in names]
    recoded = [
        np.stack([table[codes[:, m].astype(np.intp)] for m, table in enumerate(tables)], axis=1)
        for codes in (true, predicted)
    ]
    return recoded[0], recoded[1], (every,) * len(names)


Metric._score = staticmethod(score)
