"""One score of each row for more than two ordered classes: which rows have it, and the order of the classes.

Must not know metrics or rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, argument, listed
from ..core.labels import drop_missing, in_scale_order, per_output, python_label, sorted_labels, unique
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
    declared = None if spec.classes is None else [python_label(label) for label in per_output(spec.classes, 1)[0]]
    labels = observed if declared is None else declared
    if spec.order is not None and declared is None:
        labels = [python_label(label) for label in per_output(spec.order, 1, "order")[0] or labels]
    categories = categories_of(spec.y)
    if categories is not None and categories[0] is not None and declared is None and categories[0].ordered:
        labels = [python_label(label) for label in categories[0].labels]
    if len(labels) <= 2:
        return None
    n_rows = len(columns[0])
    if declared is None and len(labels) > max(_MAX_GRADES, n_rows * _MAX_GRADE_SHARE):
        raise InvalidParameter(
            "y",
            f"hold grades, far fewer than its {n_rows} rows, if one column of scores is for more than two classes",
            f"{len(labels)} distinct labels",
            "turn numbers into grades first, for instance with np.digitize",
        )
    unknown = [label for label in observed if label not in labels]
    if unknown:
        name = "order" if declared is None else "classes"
        raise InvalidParameter(name, f"hold all labels of y, {listed(observed)}", f"{listed(labels)}")
    if spec.order is not None:
        return [python_label(label) for label in per_output(spec.order, 1, "order")[0] or labels]
    scale = None if categories is None else in_scale_order(labels, categories[0])
    if scale is None and not all(isinstance(label, (int, float, np.datetime64)) for label in labels):
        raise InvalidParameter(
            "order",
            f"give the classes from the lowest to the highest if one column of scores is for {len(labels)} classes",
            f"{listed(labels)} without an order",
            f"pass {argument('order')}, or scores of shape (N, {len(labels)}), a column for each class",
        )
    return scale or sorted_labels(labels)
