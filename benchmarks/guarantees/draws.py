"""Blocks of draws: every way on the same rows, and sums of what came of it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .problems import BLOCK, DRAWS, PROBLEMS, Problem, keeps
from .ways import OURS, Decide, Way, ways
from .worlds import WORLDS, Rows

Block = tuple[str, int, int, int]  # problem, rows, first draw, draws
ADDED = ("draws", "given", "broken", "aim", "ms", *(f"{kind} {part}" for kind in OURS for part in ("ahead", "squared")))
COLUMNS = ("problem", "constraint", "rows", "first draw", "way", *ADDED)


def blocks(names: Sequence[str], repeats: int | None) -> list[Block]:
    """Return blocks of all problems and sizes, the first draws of all of them first."""
    totals = {n: DRAWS[n] if repeats is None else repeats for n in DRAWS}
    return [
        (name, n, first, min(BLOCK, total - first))
        for first in range(0, max(totals.values()), BLOCK)
        for n, total in totals.items()
        for name in names
        if n in PROBLEMS[name].sizes and first < total
    ]


def measure(block: Block) -> list[dict[str, Any]]:
    """Return the sums of a block, one row for each constraint and way."""
    name, n, first, length = block
    problem = PROBLEMS[name]
    sums: dict[tuple[str, str], dict[str, float]] = {}
    world = WORLDS[problem.world]
    for number in range(first, first + length):
        rows = world.draw(np.random.default_rng([list(PROBLEMS).index(name), n, number]), n)
        for text in problem.constraints:
            outcome = outcomes(problem, text, rows, number)
            for way, result in outcome.items():
                add(sums.setdefault((text, way), dict.fromkeys(ADDED, 0.0)), result, outcome)
    keys = ("problem", "constraint", "rows", "first draw", "way")
    return [
        dict(zip(keys, (name, text, n, first, way), strict=True)) | rounded(row) for (text, way), row in sums.items()
    ]


def rounded(row: dict[str, float]) -> dict[str, float]:
    return {key: round(number, 5) if number % 1 else int(number) for key, number in row.items()}


def outcomes(problem: Problem, text: str, rows: Rows, number: int) -> dict[str, dict[str, float]]:
    due = [way for way in ways(problem, text) if way.is_due(number, len(rows.y), problem)]
    return {way.name: judged(way, problem, text, rows) for way in due}


def judged(way: Way, problem: Problem, text: str, rows: Rows) -> dict[str, float]:
    """Return whether a rule was given, whether it breaks its promise, the aim (0 without a rule), and the time."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decide = way.fit(rows, problem, text)
    ms = 1e3 * (time.process_time() - start)
    if decide is None:
        return {"given": 0, "broken": 0, "aim": 0.0, "ms": ms}
    return {"ms": ms, **of_rule(decide, problem, text)}


def of_rule(decide: Decide, problem: Problem, text: str) -> dict[str, float]:
    truth = WORLDS[problem.world].truth(decide)
    return {"given": 1, "broken": int(not keeps(text, truth)), "aim": truth[problem.aim]}


def add(row: dict[str, float], result: dict[str, float], outcome: dict[str, dict[str, float]]) -> None:
    """Add one draw to the sums of a way, with the differences of our aims and its aim in this draw."""
    row["draws"] += 1
    for key, number in result.items():
        row[key] += number
    for kind in (kind for kind in OURS if kind in outcome):
        ahead = outcome[kind]["aim"] - result["aim"]
        row[f"{kind} ahead"] += ahead
        row[f"{kind} squared"] += ahead**2
