"""Locks after a fork: a child inherits those that other threads of its parent held, and nobody there opens them.

Up to Python 3.11 a `cached_property` has a lock that all instances share. Knows nothing of what is cached.
"""

from __future__ import annotations

import os
import sys
from functools import cached_property
from threading import RLock
from typing import Any

__all__ = ["renew_locks"]

_PACKAGE = __name__.partition(".")[0]


def renew_locks() -> None:
    """Give new locks to the cached properties of all classes of the package that have been imported."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == _PACKAGE]
    for module in modules:
        for kind in [value for value in vars(module).values() if isinstance(value, type)]:
            _renew_locks_of(kind)


def _renew_locks_of(kind: type) -> None:
    properties: list[Any] = [value for value in vars(kind).values() if isinstance(value, cached_property)]
    for each in properties:
        each.lock = RLock()


if sys.version_info < (3, 12) and hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=renew_locks)
