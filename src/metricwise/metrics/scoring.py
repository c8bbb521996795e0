"""A metric as a score of true and predicted labels, over one output or several."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..confusion import from_predictions, normalize
from ..inputs import read_output_weight, read_pair, read_sample_weight, scales_of, warn_of_order
from .averages import check_average, group_outputs
from .base import Metric
from .functions import check_whole_rows
from .instance import instance_value
from .objective import make_objective
from .scales import in_order

__all__ = ["score"]


def score(
    metric: Metric,
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    average: str | None = None,
    output_weight: ArrayLike | None = None,
    classes: Any = None,
    missing: Any = None,
) -> float:
    """Return a metric of labels and predictions; :meth:`Metric.score` is this.

    Parameters
    ----------
    metric : Metric
    y_true, y_pred : array-like of shape (N,) or (N, M)
        Missing true labels add nothing.
    sample_weight : array-like of shape (N,), optional
    average : {"micro", "macro", "instance"}, default="micro"
        Over outputs.
    output_weight : array-like of shape (M,), optional
    classes : array-like, or list of M array-likes, optional
        Labels in order; None takes the sorted labels seen. Ordinal metrics go by the order of an ordered categorical
        `y_true`, unless they have an `order` of their own.
    missing : scalar, optional
        A code for a missing label.

    Returns
    -------
    float
    """
    who = f"{type(metric).__name__}.score"
    average = "micro" if average is None else average
    check_average(average, who)
    true, predicted, names = read_pair(y_true, y_pred, classes, missing, who)
    metric = in_order(metric, scales_of(y_true, names))
    warn_of_order(who, 3, y_true=y_true, y_pred=y_pred, sample_weight=sample_weight)
    weight = read_sample_weight(sample_weight, len(true), who)
    alpha = read_output_weight(output_weight, true.shape[1], who)
    check_whole_rows(metric, who, sample_weight=weight, output_weight=alpha, average=average)
    n_classes = np.array([len(labels) for labels in names], dtype=np.intp)
    width = int(n_classes.max())
    C, mass = normalize(from_predictions(true, predicted, width, weight))
    if not (mass * alpha > 0).any():
        raise ValueError(f"{who}: y_true must have an observed label of positive weight, got none.")
    if average == "instance":
        return instance_value(metric, true, predicted, width, alpha, weight, names[0])
    grouping = group_outputs(average, mass, n_classes, alpha)
    return make_objective(metric, grouping, C.sum(axis=-1), n_classes, classes=names).value(C)
