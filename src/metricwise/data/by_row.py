"""Values by row with what they mean, in the place of an array: scikit-learn splits them as it splits arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

__all__ = ["RowValues", "take_rows"]

T = TypeVar("T", bound="RowValues")


def take_rows(values: Any, rows: Any) -> Any:
    """Return the values of some rows, given by a mask, a slice or indices."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if isinstance(values, (list, tuple)):
        return [values[row] for row in np.arange(len(values))[rows].tolist()]
    return values.take(rows) if hasattr(values, "to_pydict") else values[rows]


class RowValues:
    """Base of dataclasses with a field of values by row, named by `by_row`, and fields about all of them."""

    by_row: ClassVar[str]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values: scikit-learn splits what has one by rows."""
        values = getattr(self, self.by_row)
        return tuple(values.shape) if hasattr(values, "shape") else (len(values),)

    def __getitem__(self: T, rows: Any) -> T:
        """Return the same of some rows."""
        rows = rows[0] if isinstance(rows, tuple) else rows
        return cast(T, replace(cast(Any, self), **{self.by_row: take_rows(getattr(self, self.by_row), rows)}))
