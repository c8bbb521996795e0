"""The one way up: a Solution and a rule can be drawn and reported on by layers that lie above them.

Those are loaded when they are asked for, by name: nobody below imports them, and whoever never looks pays nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["above"]


def above(module: str) -> Any:
    """Return a module of metricwise that shows what those below it have found, such as "inspection.cards".

    Examples
    --------
    >>> from metricwise.core.views import above
    >>> above("inspection.details").__name__
    'metricwise.inspection.details'
    """
    return import_module(f"..{module}", __package__)
