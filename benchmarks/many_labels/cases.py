"""What is measured: contestants of a goal, and the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from . import data
from .ours import ours
from .peers import HAS_XCOLUMNS, Contestant, peers
from .values import GOALS, Goal

Row = dict[str, Any]


@lru_cache(maxsize=1)
def open_split(name: str, split: int, n_rows: int) -> data.Split:
    """Return the rows of a task; those of the last one are kept."""
    return data.open_split(name, split, n_rows)


def contestants(goal: Goal, n_rows: int, only: str = "") -> list[Contestant]:
    """Return those whose library and name contain a text."""
    everyone = ours(goal) + (peers(goal, n_rows) if HAS_XCOLUMNS else [])
    return [one for one in everyone if only in f"{one.library} {one.name}"]


def goals_of(only: str) -> list[Goal]:
    return [goal for goal in GOALS if only in goal.title]


def head(name: str, goal: Goal, one: Contestant) -> Row:
    """Return the columns by which a line is known."""
    return {
        "set": name,
        "metric": goal.metric,
        "average": goal.average,
        "k": goal.k or "none",
        "library": one.library,
        "contestant": one.name,
        "kind": one.kind,
    }


def clock(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a call and its processor time in seconds."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start
