"""Classes of each output: checked, inferred from the labels, and their order.

If the labels do not determine the classes of the columns, the error asks for `classes`. Must not know data frames.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, listed, mention, shown
from ..core.labels import (
    Categories,
    Scales,
    in_scale_order,
    label_array,
    per_output,
    python_labels,
    shared,
    sorted_labels,
    split_missing,
    unique,
)
from ..core.probabilities import Probabilities

__all__ = [
    "Classes",
    "checked_classes",
    "given_classes",
    "infer_classes",
    "infer_small",
    "is_number",
    "kept_order",
    "name_classes",
    "ranges",
    "read_order",
]

Classes = tuple[NDArray[Any], ...]
IntArray = NDArray[np.intp]


def ranges(n_classes: IntArray, boolean: bool = False) -> Classes:
    """0..K_m-1 for each output; False and True for outputs of two classes if `boolean`."""
    counts = n_classes.tolist()
    made = {k: np.arange(k) if k != 2 or not boolean else np.array([False, True]) for k in set(counts)}
    return tuple([made[k] for k in counts])


def name_classes(classes: Any, proba: Probabilities) -> Classes:
    """Return the classes of every output without y: `classes`, or 0..K_m-1."""
    positions = ranges(proba.n_classes)
    if classes is None:
        return positions
    checked = given_classes(classes, proba)
    return shared(
        default if output_classes is None else output_classes
        for output_classes, default in zip(checked, positions, strict=True)
    )


def given_classes(classes: Any, proba: Probabilities) -> tuple[NDArray[Any] | None, ...]:
    """Check the classes of each output; None for an output that they are not known of."""
    items = per_output(classes, proba.n_outputs)
    checked = iter(checked_classes([labels for labels in items if labels is not None]))
    arrays = tuple(None if labels is None else next(checked) for labels in items)
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


# ------------------------------------------------------------------------------------------------------- by labels


def infer_small(labels: IntArray, n_classes: int, floating: bool, zero_known: bool) -> NDArray[Any] | None:
    """Return what `infer_classes` makes of small whole numbers; None for what it refuses."""
    if len(labels) == n_classes:
        return labels.astype(np.float64) if floating else labels
    return np.arange(n_classes) if _are_codes(labels.tolist(), n_classes, lambda: zero_known) else None


def infer_classes(
    observed: NDArray[Any], n_classes: int, categories: Categories | None, zero_known: Callable[[], bool], output: str
) -> NDArray[Any]:
    """Return the classes of the columns of an array by the labels of its output, or ask for them.

    Parameters
    ----------
    observed : ndarray
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
    labels = unique(observed)[0]
    if n_classes == 2 and (observed.dtype.kind == "b" or (labels and all(isinstance(label, bool) for label in labels))):
        return np.array([False, True])
    if categories is not None:
        category_labels = python_labels(categories.labels)
        if len(labels) == n_classes or len(category_labels) == n_classes:
            return _of_categories(labels if len(labels) == n_classes else category_labels, categories, output)
    if len(labels) == n_classes:
        return label_array(labels)
    if _are_codes(labels, n_classes, zero_known):
        return np.arange(n_classes)
    sample = listed(labels) if len(labels) <= 10 else f"{listed(labels[:10])[:-1]}, ...]"
    hint = " If -1 marks missing labels, mask them or make them None." if -1 in labels else ""
    if all(is_number(label) and 1 <= label <= n_classes for label in labels):
        hint = f" They may count from 0 or from 1: classes=range({n_classes}) or classes=range(1, {n_classes + 1})."
    one_score = ""
    if n_classes == 2 and len(labels) > 2:
        one_score = f" For one score of ordered classes, such as a regression's, pass {argument('input', 'scores')}."
    raise InvalidParameter(
        "proba",
        problem=f"{output} has {_counted(labels)} {sample}, but proba has {n_classes} classes",
        remedy=f"pass {argument('classes')} with the label of each column.{hint}{one_score}",
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
    """Whether a label is a number; False and True are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _of_categories(labels: list[Any], categories: Categories, output: str) -> NDArray[Any]:
    """Return the labels of a categorical column, sorted; ask where that is not the order of its scale."""
    in_order = sorted_labels(labels)
    scale = in_scale_order(labels, categories)
    if scale is None or scale == in_order:
        return label_array(in_order)
    raise InvalidParameter(
        "proba",
        problem=(
            f"{output} is an ordered categorical, {' < '.join(map(shown, scale))}, and the columns of proba "
            f"have no names: they may be in that order, or sorted as in scikit-learn, {listed(in_order)}. Pass "
            f"{argument('classes')} with the label of each column (for a scikit-learn model, "
            "classes=model.classes_), or proba as a data frame with named columns"
        ),
        remedy="ordinal metrics follow the order of the categories either way",
    )


# --------------------------------------------------------------------------------------------- order of classes


def read_order(order: Any, classes: Sequence[NDArray[Any]], declared: Scales | None) -> Scales | None:
    """Return the classes of each output from the lowest to the highest, if an order is known.

    Parameters
    ----------
    order : array-like, list of M array-likes or None, or None
        As the user gave it.
    classes : sequence of M ndarrays
    declared : tuple of M tuples or None, optional
        The order by an ordered categorical.

    Returns
    -------
    tuple of M tuples or None
        None for an output without an order, and None altogether if no output has one.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.data.classes import read_order
    >>> read_order(["low", "mid", "high"], [np.array(["high", "low", "mid"])], None)
    (('low', 'mid', 'high'),)
    """
    if order is None:
        return declared
    items = per_output(order, len(classes), "order")
    scales: list[tuple[Any, ...] | None] = []
    for m, (labels, item) in enumerate(zip(classes, items, strict=True)):
        other = None if declared is None else declared[m]
        scale = other if item is None else _checked(item, labels, len(classes) > 1, m)
        if other is not None and scale != other:
            raise InvalidParameter(
                "order",
                problem=(
                    f"{mention('order')} is {listed(scale or ())}, but y is an ordered categorical, "
                    f"{' < '.join(map(shown, other))}"
                ),
                remedy="leave order out, or pass y.astype(str)",
            )
        scales.append(scale)
    return tuple(scales) if any(scale is not None for scale in scales) else None


def _checked(item: Any, classes: NDArray[Any], several: bool, m: int) -> tuple[Any, ...]:
    """Return the order of one output, which must hold each of its classes once."""
    (array,) = checked_classes([item], "order")
    scale, labels = tuple(python_labels(array)), python_labels(classes)
    if len(scale) != len(labels) or set(scale) != set(labels):
        where = f" of output {m}" if several else ""
        remedy = "; for outputs without an order, pass a list with None in their place" if several else ""
        raise InvalidParameter(
            "order",
            f"hold each of the classes{where} once, from the lowest to the highest: {', '.join(map(shown, labels))}",
            f"{listed(scale)}{remedy}",
        )
    return scale


def kept_order(metadata: Any, classes: Sequence[NDArray[Any]]) -> Scales | None:
    """Return the order that the metadata of a rule has of its classes; None for what is no order of them.

    Rules of earlier versions say `ordered`, for each output: whether its classes are in their order.
    """
    orders, flags = metadata.order, metadata.ordered
    class_labels = [python_labels(labels) for labels in classes]
    if not isinstance(orders, (list, tuple)) or len(orders) != len(class_labels):
        fits = isinstance(flags, (list, tuple)) and len(flags) == len(class_labels)
        orders = (
            [labels if flag is True else None for labels, flag in zip(class_labels, flags, strict=True)] if fits else ()
        )
    scales = tuple(
        tuple(scale) if isinstance(scale, (list, tuple)) and _same_labels(scale, labels) else None
        for scale, labels in zip(orders, class_labels, strict=False)
    )
    return scales if any(scale is not None for scale in scales) else None


def _same_labels(scale: Sequence[Any], labels: Sequence[Any]) -> bool:
    return len(scale) == len(labels) and all(label in scale for label in labels)
