"""Parts of the details that do not apply or could not be made.

Only refusals are caught where something is shown; other errors are raised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ...core.errors import InvalidParameter

__all__ = ["Missing", "NotApplicable", "attempt"]

T = TypeVar("T")


class NotApplicable(InvalidParameter):
    """The part does not exist for such a rule, or needs rows that are not available."""


@dataclass(frozen=True)
class Missing:
    """Why a part is missing: a sentence, and whether making it failed rather than does not apply."""

    reason: str
    failed: bool


def attempt(make: Callable[[], T]) -> T | Missing:
    """Return what a function makes, or why it refuses to.

    Examples
    --------
    >>> from metricwise.inspection.details.missing import NotApplicable, attempt
    >>> def curve():
    ...     raise NotApplicable("", problem="there are no rows")
    >>> attempt(curve)
    Missing(reason='there are no rows.', failed=False)
    """
    try:
        return make()
    except NotApplicable as refusal:
        return Missing(str(refusal.sentence), failed=False)
    except InvalidParameter as refusal:
        return Missing(str(refusal.sentence), failed=True)
