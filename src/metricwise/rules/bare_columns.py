"""Columns without names, as a rule takes them: as those of its fit stood, a single one as that of the second class.

Owns how columns without names are assigned to the classes of a rule, and what is said where that may not be what was
meant. Must not know how a rule decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import argument, warn
from ..core.labels import python_labels, sorted_labels
from ..core.messages import listed, shown
from ..core.schema import second_is_positive
from ..data.frames import as_array, has_names, is_list_of_outputs
from ..data.probabilities import Probabilities
from ..data.single_column import column_places, with_both_columns
from .metadata import RuleMetadata

__all__ = ["in_fitted_order", "read_single", "says_single"]

_MOST_LISTED = 3  # orders of outputs, beyond which some are left out of a message


def in_fitted_order(proba: Any, metadata: RuleMetadata, classes: Sequence[NDArray[Any]]) -> Any:
    """Return columns without names, which stand as those that the rule was fitted to did, in the order of its classes.

    Columns with names, and single ones, are returned as they are. If the columns of the fit were not sorted, a warning
    names their order.

    Parameters
    ----------
    proba : array-like, or list of M array-likes
        As the caller gave it.
    metadata : RuleMetadata
        Of the rule, with its `column_order`.
    classes : sequence of M ndarrays
    """
    known = [python_labels(labels) for labels in classes]
    orders = _column_orders(metadata.column_order, known)
    if orders is None:
        return proba
    places = [[order.index(label) for label in labels] for order, labels in zip(orders, known, strict=True)]
    if is_list_of_outputs(proba):
        bare = [m for m, part in enumerate(proba) if not has_names(part)]
        turned: Any = [
            np.take(as_array(part), places[m], axis=1) if m in bare and m < len(places) else part
            for m, part in enumerate(proba)
        ]
    else:
        array = None if has_names(proba) else as_array(proba)
        width = max(map(len, known))
        if array is None or array.ndim < 2 or array.shape[-1] != width or (array.ndim == 2) != (len(known) == 1):
            return proba  # with names, single columns, or what is refused
        bare = list(range(len(known)))
        padded = np.array([[*own, *range(len(own), width)] for own in places])
        index = padded[None] if array.ndim == 3 else padded
        turned = np.take_along_axis(array, index, axis=-1)
    unsorted = [orders[m] for m in bare if m < len(orders) and orders[m] != sorted_labels(orders[m])]
    if unsorted:
        said = list(dict.fromkeys(map(listed, unsorted)))
        warn(
            "the rule was fitted to columns with names, and these have none: they are taken in the same "
            f"order, {', '.join(said[:_MOST_LISTED])}; pass a data frame with names to be sure."
        )
    return turned


def _column_orders(stored: Any, classes: list[list[Any]]) -> list[list[Any]] | None:
    """Return the order of the columns of each output, that of its classes where none is stored; None for nonsense."""
    if not isinstance(stored, (list, tuple)) or len(stored) != len(classes):
        return None
    orders = [labels if own is None else own for own, labels in zip(stored, classes, strict=True)]
    good = (
        isinstance(own, (list, tuple)) and len(own) == len(labels) and all(label in own for label in labels)
        for own, labels in zip(orders, classes, strict=True)
    )
    return [list(own) for own in orders] if all(good) else None


def says_single(metadata: RuleMetadata, classes: Sequence[NDArray[Any]]) -> bool:
    """Whether a single column is known to be that of the second class: unless a rule was fitted to two of words."""
    return metadata.single_column is not False or second_is_positive(classes)


def read_single(
    proba: Probabilities, metadata: RuleMetadata, classes: Sequence[NDArray[Any]], pos_label: Any
) -> Probabilities:
    """Return single columns as the probabilities of the second classes, or of `pos_label`; warn where nothing says it.

    Parameters
    ----------
    proba : Probabilities
        Of single columns.
    metadata : RuleMetadata
        Of the rule.
    classes : sequence of M ndarrays
    pos_label : object, list of M objects, or None
    """
    if pos_label is not None:
        return with_both_columns(proba, column_places(classes, pos_label))
    if not says_single(metadata, classes):
        m = next(m for m, labels in enumerate(classes) if not second_is_positive([labels]))
        first, second = python_labels(classes[m])
        where = f" of output {m}" if len(classes) > 1 else ""
        warn(
            f"the single column of probabilities{where} is taken as that of {shown(second)}, the second of "
            f"the rule's classes, but the rule was fitted to two columns; pass {argument('pos_label', first)} "
            f"or {argument('pos_label', second)}, or both columns."
        )
    return proba
