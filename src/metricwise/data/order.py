"""The order of classes: that of a call (`order=`), or that of an ordered categorical.

Owns the reading of `order`, which `classes` never sets, and the refusal of two orders of the same classes. Must not
know metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ..core.errors import InvalidParameter, listed, mention, shown
from .categories import Scales
from .classes import checked_classes
from .encoding import python_labels
from .probabilities import per_output

__all__ = ["kept_order", "read_order"]


def read_order(order: Any, classes: Sequence[NDArray[Any]], declared: Scales | None) -> Scales | None:
    """Return the classes of each output from the lowest to the highest, where somebody says so.

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
    >>> from metricwise.data.order import read_order
    >>> read_order(["low", "mid", "high"], [np.array(["high", "low", "mid"])], None)
    (('low', 'mid', 'high'),)
    """
    if order is None:
        return declared
    items = per_output(order, len(classes), "order")
    found: list[tuple[Any, ...] | None] = []
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
        found.append(scale)
    return tuple(found) if any(scale is not None for scale in found) else None


def _checked(item: Any, classes: NDArray[Any], several: bool, m: int) -> tuple[Any, ...]:
    """Return the order of one output, which must hold each of its classes once."""
    (array,) = checked_classes([item], "order")
    scale, known = tuple(python_labels(array)), python_labels(classes)
    if len(scale) != len(known) or set(scale) != set(known):
        where = f" of output {m}" if several else ""
        remedy = "; for outputs without an order, pass a list with None in their place" if several else ""
        raise InvalidParameter(
            "order",
            f"hold each of the classes{where} once, from the lowest to the highest: {', '.join(map(shown, known))}",
            f"{listed(scale)}{remedy}",
        )
    return scale


def kept_order(metadata: Any, classes: Sequence[NDArray[Any]]) -> Scales | None:
    """Return the order that the metadata of a rule has of its classes; None for what is no order of them.

    Rules of earlier versions say `ordered`, for each output: whether its classes are in their order.
    """
    orders, flags = metadata.order, metadata.ordered
    known = [python_labels(labels) for labels in classes]
    if not isinstance(orders, (list, tuple)) or len(orders) != len(known):
        fits = isinstance(flags, (list, tuple)) and len(flags) == len(known)
        orders = [labels if flag is True else None for labels, flag in zip(known, flags, strict=True)] if fits else ()
    found = tuple(
        tuple(scale) if isinstance(scale, (list, tuple)) and _same_labels(scale, labels) else None
        for scale, labels in zip(orders, known, strict=False)
    )
    return found if any(scale is not None for scale in found) else None


def _same_labels(scale: Sequence[Any], labels: Sequence[Any]) -> bool:
    return len(scale) == len(labels) and all(label in scale for label in labels)
