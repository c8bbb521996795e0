"""What configurations and rounds are chosen by: log loss, the metric at argmax, the metric at the best rule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import metricwise as mw

from ..generalisation.peers import confusion

__all__ = ["best_value", "log_loss", "value_at_argmax"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
LOWEST = np.finfo(np.float32).eps  # of a probability in log loss: scores were stored in single precision


def log_loss(proba: FloatArray, y: IntArray) -> float:
    return float(-np.log(np.maximum(proba[np.arange(len(y)), y], LOWEST)).mean())


def value_at_argmax(proba: FloatArray, y: IntArray, metric: str) -> float:
    matrix = confusion(y, np.argmax(proba, axis=1), proba.shape[1])
    return float(mw.metrics.get_metric(metric).value(matrix))


def best_value(proba: FloatArray, y: IntArray, metric: str) -> float:
    return mw.value_at_best(proba, y, metric, classes=np.arange(proba.shape[1]))
