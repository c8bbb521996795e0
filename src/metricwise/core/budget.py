"""How many labels a row may have: the budget of rules for binary outputs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .errors import InvalidParameter, shown

__all__ = ["NO_BUDGET", "Budget", "read_budget"]


class Budget(NamedTuple):
    """At least `low` and at most `high` labels of each row; `high` is -1 if any number is allowed."""

    low: int = 0
    high: int = -1

    @property
    def is_limited(self) -> bool:
        """Whether labels of a row compete."""
        return self.high >= 0

    @property
    def said(self) -> tuple[int, int] | None:
        """The budget as users give it."""
        return (self.low, self.high) if self.is_limited else None

    def __str__(self) -> str:
        if not self.is_limited:
            return "any number of labels per row"
        if self.low == self.high:
            return f"exactly {self.high} label{'s' * (self.high > 1)} per row"
        at_most = f"at most {self.high} label{'s' * (self.high > 1)} per row"
        return at_most if self.low == 0 else f"at least {self.low} and {at_most}"


NO_BUDGET = Budget()


def read_budget(labels_per_row: Any, n_labels: int | None = None) -> Budget:
    """Read `labels_per_row`: None, a number k (at most k), or a pair (at least, at most).

    Parameters
    ----------
    labels_per_row : int, pair of int, or None
    n_labels : int, optional
        M, which no row can have more labels than.
    """
    if labels_per_row is None:
        return NO_BUDGET
    if isinstance(labels_per_row, Budget):
        pair: tuple[Any, ...] = tuple(labels_per_row) if labels_per_row.is_limited else (0, 1)
    else:
        is_pair = isinstance(labels_per_row, (tuple, list, np.ndarray)) and len(labels_per_row) == 2
        pair = tuple(labels_per_row) if is_pair else (0, labels_per_row)
    whole = all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in pair)
    if not whole or not 0 <= pair[0] <= pair[1] or pair[1] < 1:
        raise InvalidParameter(
            "labels_per_row",
            "be a whole number k of at least 1 (at most k labels per row) or a pair (least, most) with "
            "0 <= least <= most and most >= 1",
            shown(labels_per_row),
        )
    if n_labels is not None and pair[1] > n_labels:
        raise InvalidParameter("labels_per_row", f"be at most the number of labels, {n_labels}", shown(labels_per_row))
    return labels_per_row if isinstance(labels_per_row, Budget) else Budget(int(pair[0]), int(pair[1]))
