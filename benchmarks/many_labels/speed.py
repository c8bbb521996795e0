"""Times of fits and decisions, in processor seconds of one thread.

Every contestant has a process of its own and is warmed up. Contestants take turns, so that a busy machine is so for all
of them; the best of several calls counts. What takes long is called less often.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .cases import Row, contestants, goals_of, head
from .data import open_split
from .synthetic import N_ROWS
from .values import Goal
from .worker import Running, save_split

KEYS = ("set", "metric", "average", "k", "library", "contestant")
TRIES = 5
MANY, SOME = 2.0, 20.0  # seconds of a call: below the first it is tried often, above the second once


def measure(name: str, options: Any) -> list[Row]:
    """Return the lines of a set."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        split = open_split(name, 0, options.rows or N_ROWS)
        n_rows = split.fresh.y.shape[0]
        save_split(Path(temporary), split)
        for goal in goals_of(options.goals):
            rows += measure_goal(Path(temporary), name, goal, n_rows, options)
            print(f"speed: {name}, {goal.title}", flush=True)
    return rows


def measure_goal(folder: Path, name: str, goal: Goal, n_rows: int, options: Any) -> list[Row]:
    everyone = contestants(goal, n_rows, options.contestants)
    with ExitStack() as stack:
        running = [stack.enter_context(Running(folder, goal, one, options.threads)) for one in everyone]
        times: dict[str, list[dict[str, float]]] = {worker.contestant.name: [] for worker in running}
        for turn in range(options.tries or TRIES):
            for worker in running:
                calls = times[worker.contestant.name]
                if worker.error is None and turn < enough_tries(calls):
                    calls.append(worker.ask("time"))
    called = [one for one in everyone if times[one.name]]
    return [head(name, goal, one) | best(times[one.name]) | {"tries": len(times[one.name])} for one in called]


def enough_tries(calls: list[dict[str, float]]) -> int:
    """Return how often a call is to be made, given how long it took."""
    if not calls:
        return 1
    seconds = calls[0]["fit"] + calls[0]["decide"]
    return TRIES if seconds < MANY else 2 if seconds < SOME else 1


def best(calls: list[dict[str, float]]) -> Row:
    return {part: round(min(call[part] for call in calls), 5) for part in ("fit", "decide")}
