"""What y can be: one column or several, an array, a frame, a sparse matrix.

Owns the shape of labels. Must not know probabilities or classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.errors import TAGS_REMEDY, InvalidParameter, listed
from .categories import as_labels
from .frames import column_names, columns_of, is_frame, refuse_lazy, shape_of

__all__ = ["check_one_column", "is_two_dimensional", "read_table", "table_columns", "table_shape"]


def is_two_dimensional(y: Any) -> bool:
    """Whether labels are given for several outputs."""
    refuse_lazy(y, "y")
    return is_frame(y) or read_table(y)[1]


def read_table(y: Any) -> tuple[Any, bool]:
    """Return labels as an array (N, M), those of a data frame as the list of its columns, and whether y is 2-D."""
    refuse_lazy(y, "y")
    if hasattr(y, "tocsr"):
        y = y.toarray()
    if is_frame(y):
        names = column_names(y)
        if len(set(names)) < len(names):
            raise InvalidParameter("y", problem=f"the columns of y must have distinct names, got {listed(names)}")
        columns = [as_labels(column) for column in columns_of(y)]
        alike = len({(type(column), column.dtype) for column in columns}) == 1
        return (np.stack(columns, axis=1) if alike and columns[0].dtype.kind in "iufb" else columns), True
    try:
        array = as_labels(y)
    except ValueError:
        raise InvalidParameter("y", "have shape (N,) or (N, M)", "rows of unequal length", f"{TAGS_REMEDY}") from None
    if array.ndim == 1:
        return array[:, None], False
    if array.ndim == 2:
        return array, True
    raise InvalidParameter("y", "have shape (N,) or (N, M)", array.shape)


def table_shape(table: Any) -> tuple[int, int]:
    """Return (N, M) of what `read_table` returns."""
    if isinstance(table, list):
        return (len(table[0]) if table else 0, len(table))
    n_rows, n_outputs = table.shape
    return n_rows, n_outputs


def table_columns(table: Any) -> Iterator[Any]:
    """Yield the columns of what `read_table` returns."""
    return iter(table) if isinstance(table, list) else (table[:, m] for m in range(table.shape[1]))


def check_one_column(y: Any, proba: Any) -> None:
    """Refuse a 2-D y of one column where proba is that of one output."""
    if isinstance(proba, (list, tuple)) or hasattr(y, "tocsr"):
        return
    width = len(column_names(y)) if is_frame(y) else (*shape_of(y), 0, 0)[1]
    shape = shape_of(proba)
    if width != 1 or len(shape) in (0, 3) or shape[1:] == (1,):
        return
    if is_frame(y):
        what, remedy = f"a data frame of one column, {column_names(y)[0]!r}", f"y[{column_names(y)[0]!r}]"
    else:
        what, remedy = f"of shape {shape_of(y)}", "y.ravel()"
    raise InvalidParameter(
        "y", f"be 1-D for a single output, as in proba of shape {shape}", f"y {what}", f"pass {remedy}"
    )
