"""How long rows are kept that were read for a call: until it ends, however it ends. Must not know engines."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["keeping_rows", "release_at_end"]

P = ParamSpec("P")
T = TypeVar("T")

_CALL: ContextVar[ExitStack | None] = ContextVar("metricwise_call", default=None)


def keeping_rows(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a call: sources may keep rows that they have read until it ends, also by an error. Calls may be nested.

    Examples
    --------
    >>> from metricwise.data.keeping import keeping_rows, release_at_end
    >>> @keeping_rows
    ... def use():
    ...     release_at_end(lambda: print("released"))
    ...     print("used")
    >>> use()
    used
    released
    >>> release_at_end(print)
    False
    """

    @wraps(function)
    def call(*values: P.args, **named: P.kwargs) -> T:
        with ExitStack() as stack:
            token = _CALL.set(stack)
            try:
                return function(*values, **named)
            finally:
                _CALL.reset(token)

    return call


def release_at_end(release: Callable[[], object]) -> bool:
    """Have a function called when the call ends; return False, and do nothing, if there is no call."""
    stack = _CALL.get()
    if stack is None:
        return False
    stack.callback(release)
    return True
