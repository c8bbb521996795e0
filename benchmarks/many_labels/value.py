"""Values on fresh rows, with standard errors.

The synthetic set has one split, and its fresh rows are left out in blocks (jackknife). Real sets are split into random
halves several times: the error is that of the mean over splits, which share rows, so that it tells how much the split
matters, not how much other rows from the same source would.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from .cases import Row, clock, contestants, goals_of, head, open_split
from .data import SYNTHETIC
from .synthetic import N_ROWS
from .values import Goal, judge

SPLITS = 5
KEYS = ("set", "split", "metric", "average", "k", "library", "contestant")


class Task(NamedTuple):
    """A set, a split and a goal."""

    set: str
    split: int
    goal: Goal
    contestants: str
    n_rows: int


def tasks(options: Any) -> list[Task]:
    return [
        Task(name, split, goal, options.contestants, options.rows or N_ROWS)
        for name in options.sets
        for split in range(1 if name == SYNTHETIC else options.splits or SPLITS)
        for goal in goals_of(options.goals)
    ]


def measure(task: Task) -> list[Row]:
    split = open_split(task.set, task.split, task.n_rows)
    rows = []
    for one in contestants(task.goal, split.fresh.y.shape[0], task.contestants):
        rule, fit = clock(partial(one.fit, split.fit, task.goal))
        decided, decide = clock(partial(one.decide, rule, split.fresh.proba, task.goal))
        found, left_out = judge(task.goal, decided, split.fresh.y)
        kept = left_out if task.set == SYNTHETIC else []
        rows.append(
            head(task.set, task.goal, one)
            | {"split": task.split, "value": round(found, 6), "fit": round(fit, 4), "decide": round(decide, 4)}
            | {"left_out": " ".join(f"{value:.6f}" for value in kept)}
        )
    return rows
