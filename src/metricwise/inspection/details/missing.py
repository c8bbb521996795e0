"""Parts that are missing, and why: those that do not apply, and those that could not be made.

Owns what may be caught where something is shown: refusals, which say what is wrong. Any other error is one of the
programme, and is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ...core.errors import InvalidParameter

__all__ = ["Missing", "NotApplicable", "attempt"]

T = TypeVar("T")


class NotApplicable(InvalidParameter):
    """What is asked for does not exist for such a rule, or needs rows that are not there."""


@dataclass(frozen=True)
class Missing:
    """Why a part is missing.

    Parameters
    ----------
    reason : str
        A sentence.
    failed : bool
        Whether it could not be made, rather than does not apply.
    """

    reason: str
    failed: bool


def attempt(make: Callable[[], T]) -> T | Missing:
    """Return what a function makes, or why it refuses to; programming errors are raised.

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
