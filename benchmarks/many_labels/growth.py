"""Times by stored entries, from a million to 100 million: passes over the rows beside reading them once, and fits.

Reading once is measured in two ways: NumPy's sums of values and of indices, and their largest ones, which are found in
vectors, at the speed of memory or of the cache that holds them. Labels are 100,000 throughout; entries grow with rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .cases import Row, clock
from .data import Rows
from .ours import FIXED, decide, optimize, passes
from .peers import HAS_XCOLUMNS, decide_top
from .synthetic import World, draw_rows
from .values import Goal

KEYS = ("entries",)
ENTRIES = (10**6, 3 * 10**6, 10**7, 3 * 10**7, 10**8)
STORED_A_ROW = 53
TRIES = 5
GOAL = Goal("f1", "macro", 3)


def measure(entries: int, options: Any) -> Row:
    """Return the best times for about so many entries."""
    rows = Rows(*draw_rows(World(), entries // STORED_A_ROW))
    tries = options.tries or TRIES
    row: Row = {"entries": rows.proba.nnz, "rows": rows.y.shape[0]}
    values, labels = rows.proba.data, rows.proba.indices
    calls: dict[str, Callable[[], Any]] = {
        "sums": lambda: (values.sum(), labels.sum()),
        "maxima": lambda: (values.max(), labels.max()),
    }
    calls |= passes(rows.proba, 3)
    calls["fixed recipe"] = lambda: optimize(rows, GOAL, FIXED)
    rule = optimize(rows, GOAL, FIXED)
    calls["decide"] = lambda: decide(rule, rows.proba, GOAL)
    if HAS_XCOLUMNS:
        calls["xcolumns top k"] = lambda: decide_top(None, rows.proba, GOAL)
    for call in calls.values():
        call()
    return row | {name: min(clock(call)[1] for _ in range(tries)) for name, call in calls.items()}
