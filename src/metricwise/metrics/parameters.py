"""Parameters that several metrics have: a class, an order of the classes, class weights, numbers.

Must not know any one metric.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InvalidParameter, argument
from ..core.labels import known_positive
from ..core.matrices import FloatArray

__all__ = [
    "check_finite",
    "check_zero_division",
    "class_weights",
    "find_class",
    "order_places",
    "ranks",
    "require_order",
    "scale_of",
    "self_ordered",
    "weight_places",
    "written",
]


def check_zero_division(value: Any) -> None:
    """Refuse a value at 0/0 outside of [0, 1]; NaN would poison every average."""
    number = isinstance(value, (int, float, np.number)) and bool(0.0 <= value <= 1.0)
    if not number:
        raise InvalidParameter("zero_division", "be a number in [0, 1]", repr(value))


def find_class(
    n_classes: int,
    classes: Sequence[Any] | None,
    index: int | None,
    label: Any,
    names: tuple[str, str] = ("index", "pos_label"),
) -> int:
    """Return the position of the class that `index` or `label` names; the positive class of a binary output without.

    Parameters
    ----------
    names : (str, str)
        What the two are called in messages.

    Raises
    ------
    ValueError
        If both or, with more than two classes, none is given, if the class is not there, or if nothing says which of
        two classes is the positive one.
    """
    by_index, by_label = names
    if index is None and label is None:
        if n_classes != 2:
            raise InvalidParameter(
                "pos_label",
                problem=f"with {n_classes} classes there is no default positive class",
                remedy=(
                    f"name one with {by_index}= or {by_label}=, or average over the classes with ClassAverage or a "
                    "name such as 'f1_macro'"
                ),
            )
        return _positive(classes)
    if index is None:
        return _find_label(classes, label, names)
    if label is not None:
        raise InvalidParameter(
            by_index,
            problem=f"give {by_index} or {by_label}, not both (got {by_index}={index!r} and {by_label}={label!r})",
        )
    if not _is_index(index, n_classes):
        raise InvalidParameter(by_index, problem=f"{by_index} must be an integer in 0..{n_classes - 1}, got {index!r}")
    return int(index)


def _is_index(value: Any, n_classes: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(0 <= value < n_classes)


def _positive(classes: Sequence[Any] | None) -> int:
    """Return the position of the class 1 or True of a binary output; without labels, of its second class."""
    if classes is None:
        return 1
    labels = list(classes)
    positive = known_positive(labels)
    if positive is not None:
        return labels.index(positive)
    first, second = labels
    name = f"f1[{second if str(second).isidentifier() else written(second)}]"
    raise InvalidParameter(
        "pos_label",
        problem=f"the positive class is ambiguous: {first!r} or {second!r}",
        remedy=(
            f"set {argument('pos_label', first)} or {argument('pos_label', second)}, or name the class in "
            f"the metric, such as {name!r}"
        ),
    )


def _find_label(classes: Sequence[Any] | None, label: Any, names: tuple[str, str] = ("index", "label")) -> int:
    by_index, by_label = names
    if classes is None:
        raise InvalidParameter(
            by_label,
            problem=f"{by_label}={label!r} needs the class labels, which are not known here",
            remedy=f"use {by_index}= instead, or bind(priors, classes)",
        )
    labels = list(classes)
    if label not in labels:
        raise InvalidParameter(by_label, problem=f"{by_label} must be one of the classes {labels}, got {label!r}")
    return labels.index(label)


def self_ordered(labels: Iterable[Any]) -> bool:
    """Whether labels have an order of their own: numbers and dates do, words have the alphabet's and mean another."""
    kinds = (Number, np.bool_, date, timedelta, np.datetime64, np.timedelta64)
    return all(issubclass(kind, kinds) for kind in set(map(type, labels)))


def require_order(order: Sequence[Any] | None, classes: Sequence[Any]) -> None:
    """Refuse words whose order nobody has given, for a metric that goes by the order of the classes."""
    if not (scale_of(order, len(classes), classes) is not None or self_ordered(classes)):
        raise InvalidParameter(
            "metric",
            problem=(
                "the metric depends on the order of the classes, which text labels do not define; pass "
                f"{argument('order', text='[lowest, ..., highest], to the call or to the metric')}. The classes "
                f"are {', '.join(map(repr, classes))}; {argument('classes')} names the columns and does "
                "not define an order"
            ),
        )


def ranks(order: Sequence[Any] | None, n_classes: int, classes: Sequence[Any] | None) -> FloatArray:
    """Return the place 0..K-1 of each class on its scale: that of its label in `order`, or among numbers and dates.

    An `order` of several tuples has one for each kind of output, and the one with the labels of this output counts.
    Without any labels, or for words without an order (which :func:`require_order` refuses), it is the position.
    """
    scale = scale_of(order, n_classes, classes)
    if scale is None and classes is not None and len(classes) == n_classes and self_ordered(classes):
        scale = _sorted_scale(classes)
    if scale is None:
        return np.arange(n_classes, dtype=np.float64)
    if classes is None:
        raise InvalidParameter(
            "order",
            problem=f"{argument('order', scale)} needs the class labels, which are not known here",
            remedy="use score(y_true, y_pred) or bind(priors, classes)",
        )
    if not (len(scale) == n_classes and len(set(scale)) == n_classes):
        raise InvalidParameter("order", f"hold each of the {n_classes} classes once", scale)
    # A search of the list for each label would be K^2 steps; what is not there is refused by that search.
    positions = {label: position for position, label in enumerate(classes)}
    out = np.empty(n_classes)
    for place, label in enumerate(scale):
        out[positions[label] if label in positions else _find_label(classes, label)] = place
    return out


def _sorted_scale(labels: Sequence[Any]) -> list[Any] | None:
    """Return numbers or dates in their order, None for what cannot be compared, such as numbers with dates."""
    try:
        return sorted(labels)
    except TypeError:
        return None


def scale_of(order: Sequence[Any] | None, n_classes: int, classes: Sequence[Any] | None) -> list[Any] | None:
    """Return the order of these classes: the one given or, of one for each kind of output, that of their labels."""
    if order is None or not all(isinstance(item, tuple) for item in order):
        return None if order is None else list(order)
    labels = None if classes is None else set(classes)
    return next((list(scale) for scale in order if set(scale) == labels and len(scale) == n_classes), None)


def order_places(order: Sequence[Any] | None, classes: Sequence[Any]) -> tuple[int, ...]:
    """Return `ranks` as integers, () for positions: what outputs that are pooled must agree on."""
    places = tuple(ranks(order, len(classes), classes).astype(int).tolist())
    return () if places == tuple(range(len(classes))) else places


def weight_places(weights: Any, classes: Sequence[Any]) -> tuple[int, ...]:
    """Return where the labels of a mapping of weights stand, () for weights by position."""
    return tuple(_find_label(classes, label) for label in weights) if isinstance(weights, Mapping) else ()


def class_weights(
    weights: ArrayLike | Mapping[Any, float], n_classes: int, classes: Sequence[Any] | None
) -> FloatArray:
    """Return one non-negative weight per class from an array of K numbers, or a mapping of labels (1 if not in it)."""
    if isinstance(weights, Mapping):
        array = np.ones(n_classes)
        for label, weight in weights.items():
            array[_find_label(classes, label)] = weight
    else:
        array = np.array(weights, dtype=np.float64)
    if array.shape != (n_classes,):
        raise InvalidParameter(
            "class_weight", f"have one number for each of the {n_classes} classes", f"shape {array.shape}"
        )
    good = bool(np.isfinite(array).all() and (array >= 0).all() and array.any())
    if not good:
        raise InvalidParameter("class_weight", "be finite, non-negative and not all zero", array.tolist())
    return array


def check_finite(value: float, parameter: str, *, above: float = -math.inf, closed: bool = False) -> None:
    """Refuse a number that is not finite, or not above (with `closed`: below) a bound."""
    good = math.isfinite(value) and (value >= above if closed else value > above)
    bound = "" if above == -math.inf else f" {'of at least' if closed else 'above'} {above:g}"
    if not good:
        raise InvalidParameter(parameter, f"be a finite number{bound}", repr(value))


def written(label: Any) -> str:
    """Return a class as it is written in a name: text in quotes, anything else as it is.

    Examples
    --------
    >>> from metricwise.metrics.parameters import written
    >>> print(written("on hold"), written(3))
    'on hold' 3
    """
    if not isinstance(label, str):
        return repr(label)
    return "'" + label.replace("\\", "\\\\").replace("'", "\\'") + "'"
