"""Which classes the columns of proba stand for: those given, those that columns are named by, or those of y.

Owns the one question that a wrong guess would answer silently. Where labels and columns leave it open, the error asks
for `classes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, listed, shown
from ..core.rows import Probabilities
from .categories import Categories, Scales, categories_of, in_scale_order
from .encoding import (
    check_labels,
    drop_missing,
    label_array,
    python_labels,
    shared,
    sorted_labels,
    split_missing,
    unique,
)
from .frames import column_names, has_names, is_frame
from .label_tables import read_table, table_columns
from .probabilities import IntArray, is_list_of_outputs, per_output

__all__ = [
    "Classes",
    "checked_classes",
    "classes_from_columns",
    "given_classes",
    "infer_classes",
    "infer_small",
    "is_number",
    "name_classes",
    "named_order",
    "ranges",
]

Classes = tuple[NDArray[Any], ...]


def ranges(n_classes: IntArray, boolean: bool = False) -> Classes:
    """0..K_m-1 for each output; False and True for outputs of two classes if `boolean`."""
    counts = n_classes.tolist()
    made = {k: np.arange(k) if k != 2 or not boolean else np.array([False, True]) for k in set(counts)}
    return tuple([made[k] for k in counts])


def name_classes(classes: Any, proba: Probabilities) -> Classes:
    """Return the labels of every output where there is no y: those given, or 0..K_m-1."""
    found = ranges(proba.n_classes)
    if classes is None:
        return found
    given = given_classes(classes, proba)
    return shared(plain if own is None else own for own, plain in zip(given, found, strict=True))


def given_classes(classes: Any, proba: Probabilities) -> tuple[NDArray[Any] | None, ...]:
    """Check the classes of each output; None for an output that they are not known of."""
    items = per_output(classes, proba.n_outputs)
    known = iter(checked_classes([labels for labels in items if labels is not None]))
    arrays = tuple(None if labels is None else next(known) for labels in items)
    counts = proba.n_classes.tolist()
    distinct = {(id(labels), k): (labels, k) for labels, k in zip(arrays, counts, strict=True) if labels is not None}
    for labels, k in distinct.values():
        if len(labels) != k:
            raise InvalidParameter("classes", f"have one label per column of proba, {k}", len(labels))
    return arrays


def checked_classes(items: Sequence[Any], parameter: str = "classes") -> Classes:
    """Return the labels given for each output as arrays, distinct labels all of them."""
    made = {id(labels): labels for labels in items}
    arrays = {key: _distinct_labels(labels, parameter) for key, labels in made.items()}
    return shared(arrays[id(labels)] for labels in items)


def _distinct_labels(labels: Any, parameter: str) -> NDArray[Any]:
    try:
        array = label_array(labels)
        n_distinct = len(set(array.tolist()))
        missing = split_missing(array)[1]
    except (TypeError, ValueError):  # lists among the labels, or one label alone
        raise InvalidParameter(parameter, "be text, numbers or other plain labels", shown(labels)) from None
    if missing.any():
        raise InvalidParameter(parameter, "not be missing", f"NaN, None or NA as class {int(np.argmax(missing))}")
    if n_distinct < len(array):
        raise InvalidParameter(parameter, "be distinct", listed(array))
    return array


# ------------------------------------------------------------------------------------------------- by column names


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
    found = [
        _labels_of_columns(column_names(frame), own, categories) if _is_named(frame) else None
        for frame, own, categories in zip(frames, labels, declared, strict=True)
    ]
    return found[0] if outputs is None else found


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
    found = [_order_of(frame, python_labels(own)) for frame, own in zip(frames, classes, strict=False)]
    return tuple(found) if len(found) == len(classes) and any(own is not None for own in found) else None


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
    seen = drop_missing(column)
    check_labels(seen, "y")
    labels = unique(seen)[0]
    # A table read from a file has text for column names whatever the labels are.
    declared = [] if categories is None else python_labels(categories.labels)
    by_text = {str(label): label for label in [*declared, *labels]}
    if set(labels) <= set(names):
        found = names
    elif set(map(str, labels)) <= set(map(str, names)):
        found = [by_text.get(str(name), name) for name in names]
    else:
        return labels
    # Sorted as labels always are: which class is the positive one must not hang on the order of the columns.
    return in_scale_order(found, categories) or sorted_labels(found)


# ------------------------------------------------------------------------------------------------------- by labels


def infer_small(labels: IntArray, n_classes: int, floating: bool, zero_known: bool) -> NDArray[Any] | None:
    """Return what `infer_classes` makes of small whole numbers; None for what it refuses."""
    if len(labels) == n_classes:
        return labels.astype(np.float64) if floating else labels
    return np.arange(n_classes) if _are_codes(labels.tolist(), n_classes, lambda: zero_known) else None


def infer_classes(
    seen: NDArray[Any], n_classes: int, categories: Categories | None, zero_known: Callable[[], bool], output: str
) -> NDArray[Any]:
    """Return the classes of the columns of an array by the labels of its output, or ask for them.

    Parameters
    ----------
    seen : ndarray
        The labels that are not missing.
    n_classes : int
        K_m.
    categories : Categories or None
        What the labels were declared to be.
    zero_known : callable
        Says whether 0 is a class of a binary output even if all its labels are 1.
    output : str
        For messages.
    """
    labels = unique(seen)[0]
    if n_classes == 2 and (seen.dtype.kind == "b" or (labels and all(isinstance(label, bool) for label in labels))):
        return np.array([False, True])
    if categories is not None:
        known = python_labels(categories.labels)
        if len(labels) == n_classes or len(known) == n_classes:
            return _of_categories(labels if len(labels) == n_classes else known, categories, output)
    if len(labels) == n_classes:
        return label_array(labels)
    if _are_codes(labels, n_classes, zero_known):
        return np.arange(n_classes)
    sample = listed(labels) if len(labels) <= 10 else f"{listed(labels[:10])[:-1]}, ...]"
    hint = " If -1 marks missing labels, mask them or make them None." if -1 in labels else ""
    if all(is_number(label) and 1 <= label <= n_classes for label in labels):
        hint = f" They may count from 0 or from 1: classes=range({n_classes}) or classes=range(1, {n_classes + 1})."
    raise InvalidParameter(
        "proba",
        problem=f"{output} has {_counted(labels)} {sample}, but proba has {n_classes} classes",
        remedy=f"pass {argument('classes')} with the label of each column.{hint}",
    )


def _counted(labels: list[Any]) -> str:
    return "1 distinct label" if len(labels) == 1 else f"{len(labels)} distinct labels"


def _are_codes(labels: list[Any], n_classes: int, zero_known: Callable[[], bool]) -> bool:
    """Whether labels are positions among the classes: whole numbers from 0 on, 0 among them.

    Numbers from 1 on may be positions or ratings that start at 1, and those are off by one: such labels are asked for.
    """
    whole = all(is_number(v) and 0 <= v < n_classes and v == int(v) for v in labels)
    if not whole or len(labels) == 0 or 0 in labels:
        return whole
    return n_classes == 2 and zero_known()


def is_number(value: Any) -> bool:
    """Whether a label is a number; False and True are labels of their own."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _of_categories(labels: list[Any], categories: Categories, output: str) -> NDArray[Any]:
    """Return the labels of a categorical column, sorted; ask where that is not the order of its scale."""
    plain = sorted_labels(labels)
    scale = in_scale_order(labels, categories)
    if scale is None or scale == plain:
        return label_array(plain)
    raise InvalidParameter(
        "proba",
        problem=(
            f"{output} is an ordered categorical, {' < '.join(map(shown, scale))}, and the columns of proba "
            f"have no names: they may be in that order, or sorted as in scikit-learn, {listed(plain)}. Pass "
            f"{argument('classes')} with the label of each column (for a scikit-learn model, "
            "classes=model.classes_), or proba as a data frame with named columns"
        ),
        remedy="ordinal metrics follow the order of the categories either way",
    )
