"""Checks that the tools of the theory share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InvalidParameter
from ..metrics.base import Metric

FloatArray = NDArray[np.float64]
MetricLike = str | Metric | Callable[[FloatArray], float]


def read_tensor(values: Any, parameter: str) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(parameter, "be an array of numbers", type(values).__name__) from None
    if array.ndim not in (2, 3) or array.shape[-1] != array.shape[-2] or not array.size:
        raise InvalidParameter(parameter, "have shape (K, K) or (M, K, K)", array.shape)
    if not np.isfinite(array).all():
        raise InvalidParameter(parameter, "be finite", "NaN or infinity")
    return array


def read_sizes(n_classes: ArrayLike | None, tensor: FloatArray) -> NDArray[np.intp]:
    width, shape = tensor.shape[-1], (len(tensor),)
    if n_classes is None:
        return np.full(shape, width, dtype=np.intp)
    sizes = np.asarray(n_classes)
    if sizes.shape != shape or sizes.dtype.kind not in "iu" or sizes.min() < 2 or sizes.max() != width:
        raise InvalidParameter("n_classes", f"be {shape[0]} integers from 2 to {width}, which one has", repr(n_classes))
    return sizes.astype(np.intp)


def check_whole(value: Any, least: int, parameter: str) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise InvalidParameter(parameter, f"be an integer of at least {least}", repr(value))


def check_number(value: Any, parameter: str, *, low: float, high: float = math.inf) -> None:
    """Refuse what is not a finite number above `low` and at most `high`."""
    good = isinstance(value, (int, float, np.number)) and math.isfinite(value) and low < value <= high
    if not good:
        top = "" if high == math.inf else f" and at most {high:g}"
        raise InvalidParameter(parameter, f"be a finite number above {low:g}{top}", repr(value))
