"""Labels that declare what they can be: categories, and whether these have an order.

Owns what a categorical column says beyond its values: pandas' categorical, polars' Enum, Arrow's dictionary. Must not
know probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .encoding import is_masked, python_labels
from .frames import columns_of, is_frame

__all__ = ["Categories", "Scales", "as_labels", "categories_of", "in_scale_order", "scales_of"]

Scales = tuple[tuple[Any, ...] | None, ...]


@dataclass(frozen=True, eq=False)
class Categories:
    """What a categorical column can hold.

    Parameters
    ----------
    labels : ndarray
        In the order in which they were declared.
    ordered : bool
        Whether that order means anything.
    """

    labels: NDArray[Any]
    ordered: bool


# ---------------------------------------------------------------------------------------------- labels as an array


def as_labels(y: Any) -> Any:
    """Return labels as an array that keeps each label what it was; missing ones are None, NaN, NaT or masked."""
    if type(y) is np.ndarray or is_masked(y):
        return y
    if _is_pandas_categorical(y):
        return _categorical_labels(y)
    # A nullable column of integers must not turn into floats for the sake of its nulls.
    if _has_nulls(y):
        return _object_array(y.to_list() if hasattr(y, "to_list") else y.to_pylist())
    if hasattr(y, "isna") and not isinstance(y.dtype, np.dtype) and y.isna().any():
        return y.to_numpy(dtype=object)
    array = np.asarray(y)
    if array.dtype.kind in "US" and not hasattr(y, "dtype"):
        mixed = np.asarray(y, dtype=object)
        if not all(isinstance(label, (str, bytes)) for label in mixed.flat):
            return mixed
    return array


def _has_nulls(y: Any) -> bool:
    """Whether a polars Series (a method says) or an Arrow array (a number does) has nulls."""
    count = getattr(y, "null_count", 0)
    return bool(count() if callable(count) else count)


def _object_array(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _is_pandas_categorical(y: Any) -> bool:
    return type(getattr(y, "dtype", None)).__name__ == "CategoricalDtype"


def _categorical_labels(y: Any) -> NDArray[Any]:
    labels, codes = as_labels(y.dtype.categories), np.asarray(getattr(y, "cat", y).codes)
    gone = codes < 0
    if not gone.any():
        return np.asarray(labels[codes])
    if labels.dtype.kind in "mM":
        labels = np.append(labels, np.array("NaT", dtype=labels.dtype))
        return np.asarray(labels[codes])
    array = np.empty(len(codes), dtype=object)
    array[~gone] = labels[codes[~gone]].tolist()
    return array


# ------------------------------------------------------------------------------------------------------ categories


def categories_of(y: Any) -> list[Categories | None] | None:
    """Return the categories of each column of y, None for one that is not categorical; None where no column is."""
    if type(y) is np.ndarray or isinstance(y, (list, tuple)):
        return None
    found = [_declared(column) for column in columns_of(y)] if is_frame(y) else [_declared(y)]
    return found if any(one is not None for one in found) else None


def _declared(column: Any) -> Categories | None:
    dtype: Any = getattr(column, "dtype", None)
    if _is_pandas_categorical(column):
        return Categories(as_labels(dtype.categories), bool(dtype.ordered))
    if type(dtype).__name__ == "Enum" and hasattr(dtype, "categories"):  # polars sorts an Enum by its categories
        return Categories(as_labels(dtype.categories), True)
    kind: Any = getattr(column, "type", None)
    if hasattr(kind, "ordered") and hasattr(kind, "value_type"):  # Arrow's dictionary
        whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        return Categories(as_labels(whole.dictionary), bool(kind.ordered)) if hasattr(whole, "dictionary") else None
    return None


def in_scale_order(labels: Sequence[Any], categories: Categories | None) -> list[Any] | None:
    """Return labels in the order of the categories; None where these have none, or lack one of the labels."""
    if categories is None or not categories.ordered:
        return None
    place = {label: at for at, label in enumerate(python_labels(categories.labels))}
    return sorted(labels, key=place.__getitem__) if set(labels) <= set(place) else None


def scales_of(y: Any, classes: Sequence[NDArray[Any]]) -> Scales | None:
    """Return the classes of each output in the order that an ordered y gives them.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, M)
    classes : sequence of M ndarrays

    Returns
    -------
    tuple of M tuples or None
        None for an output whose labels have no order of their own, and None altogether if no output has one.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from metricwise.data import scales_of
    >>> y = pd.Categorical(["low", "high"], categories=["low", "mid", "high"], ordered=True)
    >>> scales_of(y, [np.array(["high", "low", "mid"])])
    (('low', 'mid', 'high'),)
    """
    categories = categories_of(y)
    if categories is None or len(categories) != len(classes):
        return None
    found = [in_scale_order(python_labels(labels), own) for labels, own in zip(classes, categories, strict=True)]
    return tuple(None if one is None else tuple(one) for one in found) if any(found) else None
