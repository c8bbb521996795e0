"""The command line: measures blocks of draws in processes, stores them, and writes the page."""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..machine import cores, facts
from ..promise_runs import in_processes
from ..tables import write_csv, write_text
from .draws import ADDED, COLUMNS, Block, blocks, measure
from .problems import PROBLEMS
from .report import page

RESULTS = Path(__file__).parent / "results"
SECONDS_BETWEEN_SAVES = 30
Line = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    names = options.problems or list(PROBLEMS)
    folder = options.output or (None if options.repeats else RESULTS)
    store = folder and folder / "guarantees.csv"
    lines = [] if store is None else stored(store)
    if options.anew:
        lines = [line for line in lines if line["problem"] not in names]
    if not options.tables:
        lines = run(pending(blocks(names, options.repeats), lines), lines, store, options.jobs)
    text = page(lines, facts())
    print(text)
    if store is not None:
        write_text(store.with_suffix(".md"), text)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.guarantees", description=__doc__)
    made.add_argument(
        "problems", nargs="*", metavar="problem", choices=[*PROBLEMS, []], help=f"of {', '.join(PROBLEMS)}"
    )
    made.add_argument("--jobs", type=int, default=cores(), help="processes")
    made.add_argument("--repeats", type=int, help="draws of each cell; without --output nothing is written")
    made.add_argument("--output", type=Path, help="folder; without it, a full run writes to results/")
    made.add_argument("--anew", action="store_true", help="measure again what is stored")
    made.add_argument("--tables", action="store_true", help="the page alone, from guarantees.csv")
    return made


def pending(tasks: list[Block], lines: list[Line]) -> list[Block]:
    """Return the blocks that are not stored."""
    done = {(line["problem"], line["rows"], line["first draw"]) for line in lines}
    return [task for task in tasks if task[:3] not in done]


def run(tasks: list[Block], lines: list[Line], store: Path | None, jobs: int) -> list[Line]:
    """Return the lines with those of the tasks, stored from time to time."""
    if find_spec("mapie") is None:
        raise SystemExit("mapie is not installed: pip install --group bench")
    start = saved = time.monotonic()
    for number, some in enumerate(in_processes(measure, tasks, jobs), 1):
        lines = [*lines, *some]
        last = number == len(tasks)
        if store is not None and (last or time.monotonic() > saved + SECONDS_BETWEEN_SAVES):
            write_csv(store, [{column: line.get(column) for column in COLUMNS} for line in lines])
            saved = time.monotonic()
            print(f"{number} of {len(tasks)} blocks, {saved - start:.0f} s", flush=True)
    return lines


def stored(path: Path) -> list[Line]:
    """Return the lines of a file, numbers as numbers; none without a file."""
    if not path.exists():
        return []
    numbers = {"rows": int, "first draw": int, **dict.fromkeys(ADDED, float)}
    with path.open(newline="") as file:
        return [{key: numbers.get(key, str)(text) for key, text in line.items()} for line in csv.DictReader(file)]
