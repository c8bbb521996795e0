"""How many labels a row may have: the budget of rules for binary outputs."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NO_BUDGET", "Budget"]


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
