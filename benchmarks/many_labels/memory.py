"""Peak memory of fits and decisions beyond their input: the resident set at its peak, in a new process.

Rows are loaded, a call on few rows is made, then the one that is measured. ``million`` has a million labels and 100,000
rows. Needs Linux.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from .cases import Row, contestants, goals_of, head
from .data import Rows, Split, open_split
from .synthetic import N_ROWS, World, draw_rows
from .values import GOALS, Goal
from .worker import Running, save_split

KEYS = ("set", "metric", "average", "k", "library", "contestant")
MEASURED = (Goal("f1", "macro", 3), Goal("f1", "macro", None), Goal("f1", "micro", None))
MILLION, N_MILLION_ROWS = "million", 100_000


def open_rows(name: str, n_rows: int | None) -> Split:
    if name != MILLION:
        return open_split(name, 0, n_rows or N_ROWS)
    world = World(n_labels=1_000_000)
    fit, fresh = (Rows(*draw_rows(world, n_rows or N_MILLION_ROWS, fresh=number)) for number in (0, 1))
    return Split(fit, fresh)


def measure(name: str, options: Any) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        split = open_rows(name, options.rows)
        save_split(Path(temporary), split)
        asked = goals_of(options.goals)
        for goal in MEASURED if len(asked) == len(GOALS) else asked:
            for one in contestants(goal, split.fresh.y.shape[0], options.contestants):
                with Running(Path(temporary), goal, one, options.threads) as worker:
                    found = {"error": worker.error} if worker.error else worker.ask("memory")
                if "error" not in found:
                    rows.append(head(name, goal, one) | found)
                print(f"memory: {name}, {goal.title}, {one.library} {one.name}: {found}", flush=True)
    return rows
