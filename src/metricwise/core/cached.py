"""Properties that are computed once. Must not know what they are of."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801  it takes the place of that of functools
        """That of functools without its lock, which all instances of a class share in Python 3.11.

        A thread that holds it while it waits for a pass would make others wait, which may have the places of workers
        where that pass is to run.

        Examples
        --------
        >>> from metricwise.core.cached import cached_property
        >>> class Row:
        ...     @cached_property
        ...     def label(self):
        ...         print("read")
        ...         return "low"
        >>> row = Row()
        >>> row.label, row.label
        read
        ('low', 'low')
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            values = vars(instance)
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]
