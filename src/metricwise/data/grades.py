"""One score of each row for more than two ordered classes: which rows have it, and the order of the classes.

Must not know metrics or rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, argument, listed
from ..core.labels import drop_missing, in_scale_order, per_output, python_label, python_labels, sorted_labels, unique
from .frames import categories_of, read_table, shape_of, table_columns
from .row_spec import RowSpec

__all__ = ["grades_of"]

_MAX_GRADES = 30  # labels that are taken for grades whatever the number of rows
_MAX_GRADE_SHARE = 0.1  # of the rows, beyond which more labels are hardly grades


def grades_of(spec: RowSpec) -> list[Any] | None:
    """Return the classes from the lowest to the highest, if scores are of one column and there are more than two.

    Numbers and dates are ordered by value, an ordered categorical y by its categories, other labels by `order`; None
    for two classes, or a column for each.
    """
    shape = shape_of(spec.proba)
    if spec.y is None or not (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)):
        return None
    columns = list(table_columns(read_table(spec.y)[0]))
    if len(columns) != 1 or len(shape_of(spec.y)) == 2:
        return None
    observed = unique(drop_missing(columns[0]))[0]
    declared, order = _listed_labels(spec.classes, "classes"), _listed_labels(spec.order, "order")
    categories = (categories_of(spec.y) or [None])[0]
    scale = python_labels(categories.labels) if categories is not None and categories.ordered else None
    labels = next(candidate for candidate in (declared, order, scale, observed) if candidate is not None)
    if len(labels) <= 2 and (declared is not None or len(observed) <= 2):
        return None
    n_rows = len(columns[0])
    if declared is None and len(labels) > max(_MAX_GRADES, n_rows * _MAX_GRADE_SHARE):
        raise InvalidParameter(
            "y",
            f"hold grades, far fewer than its {n_rows} rows, if one column of scores is for more than two classes",
            f"{len(labels)} distinct labels",
            "turn numbers into grades first, for instance with np.digitize",
        )
    _check_complete("order" if declared is None else "classes", labels, "labels of y", observed)
    if order is not None:
        _check_complete("order", order, "classes", labels)
        _check_complete("classes", labels, "labels of order", order)
        return order
    return in_scale_order(labels, categories) or _sorted_by_value(labels)


def _listed_labels(labels: Any, parameter: str) -> list[Any] | None:
    """Return the labels of the one output as Python objects; None if there are none."""
    listing = per_output(labels, 1, parameter)[0]
    return None if listing is None else [python_label(label) for label in listing]


def _check_complete(parameter: str, labels: list[Any], kind: str, needed: Sequence[Any]) -> None:
    """Refuse a list that lacks some of the labels that are needed."""
    if any(label not in labels for label in needed):
        raise InvalidParameter(parameter, f"hold all {kind}, {listed(needed)}", listed(labels))


def _sorted_by_value(labels: list[Any]) -> list[Any]:
    """Return numbers or dates in their order; refuse labels that have none."""
    if not all(isinstance(label, (int, float, np.datetime64)) for label in labels):
        raise InvalidParameter(
            "order",
            f"give the classes from the lowest to the highest if one column of scores is for {len(labels)} classes",
            f"{listed(labels)} without an order",
            f"pass {argument('order')}, or scores of shape (N, {len(labels)}), a column for each class",
        )
    return sorted_labels(labels)
