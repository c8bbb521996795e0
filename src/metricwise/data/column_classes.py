"""Classes by the names of the columns of data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ..core.labels import (
    Categories,
    Scales,
    check_labels,
    drop_missing,
    in_scale_order,
    python_labels,
    sorted_labels,
    unique,
)
from .frames import categories_of, column_names, has_names, is_frame, is_list_of_outputs, read_table, table_columns

__all__ = ["classes_from_columns", "named_order"]


def classes_from_columns(proba: Any, y: Any, classes: Any, multioutput: bool | None) -> Any:
    """Take the classes from the column names of data frames, if `classes` does not say.

    Parameters
    ----------
    proba : array-like, or list of M array-likes
    y : array-like, or None
    classes : array-like, list of array-likes, or None
    multioutput : bool, optional
        Whether y is 2-D; None if there is no y.

    Returns
    -------
    classes
        As given; for a frame the labels of its columns, in the order of y's categories if that has one, else sorted;
        for a list a list, with None for what has no names.
    """
    if classes is not None:
        return classes
    outputs = proba if is_list_of_outputs(proba) and multioutput is not False else None
    if outputs is None and (multioutput or not is_frame(proba)):
        return None
    frames: Sequence[Any] = [proba] if outputs is None else outputs
    if not any(_is_named(frame) for frame in frames):
        return None
    labels: Sequence[Any] = [None] * len(frames) if y is None else list(table_columns(read_table(y)[0]))
    if len(labels) != len(frames):  # another number of outputs: read_labels says so
        return None
    declared = (None if y is None else categories_of(y)) or [None] * len(frames)
    named_classes = [
        _labels_of_columns(column_names(frame), output_labels, categories) if _is_named(frame) else None
        for frame, output_labels, categories in zip(frames, labels, declared, strict=True)
    ]
    return named_classes[0] if outputs is None else named_classes


def named_order(proba: Any, classes: Sequence[NDArray[Any]]) -> Scales | None:
    """Return the classes of each output in the order of its named columns; None where that is how they stand anyway.

    Parameters
    ----------
    proba : array-like, or list of M array-likes
    classes : sequence of M ndarrays
        Of each output.

    Returns
    -------
    tuple of M tuples or None
        None for an output whose columns have no names, or are in the order of the classes and sorted; None altogether
        if there is no other.
    """
    frames = proba if is_list_of_outputs(proba) else [proba]
    orders = [
        _order_of(frame, python_labels(output_classes)) for frame, output_classes in zip(frames, classes, strict=False)
    ]
    return (
        tuple(orders)
        if len(orders) == len(classes) and any(output_classes is not None for output_classes in orders)
        else None
    )


def _order_of(frame: Any, labels: list[Any]) -> tuple[Any, ...] | None:
    if not _is_named(frame):
        return None
    by_text = {str(label): label for label in labels}
    names = list(map(str, column_names(frame)))
    if len(names) != len(labels) or set(names) != set(by_text):
        return None
    order = [by_text[name] for name in names]
    return None if order == labels == sorted_labels(labels) else tuple(order)


def _is_named(proba: Any) -> bool:
    return has_names(proba) and len(column_names(proba)) > 1


def _labels_of_columns(names: list[Any], column: Any, categories: Categories | None) -> list[Any]:
    """Return the labels that the columns of a frame are named by; those of y where the names are others."""
    if column is None:
        return names
    observed = drop_missing(column)
    check_labels(observed, "y")
    labels = unique(observed)[0]
    # A table read from a file has text for column names whatever the labels are.
    declared = [] if categories is None else python_labels(categories.labels)
    by_text = {str(label): label for label in [*declared, *labels]}
    if set(labels) <= set(names):
        column_labels = names
    elif set(map(str, labels)) <= set(map(str, names)):
        column_labels = [by_text.get(str(name), name) for name in names]
    else:
        return labels
    # Sorted as labels always are: which class is the positive one must not hang on the order of the columns.
    return in_scale_order(column_labels, categories) or sorted_labels(column_labels)
