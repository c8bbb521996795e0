"""The command line: measures parts, keeps their lines in CSV files, and writes the page."""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..life.command import complete, read_cell
from ..machine import facts
from ..promise_runs import in_processes
from ..tables import write_csv, write_text
from . import data, growth, memory, report, speed, value
from .cases import Row

RESULTS = Path(__file__).parent / "results"
PARTS = ("value", "speed", "memory", "growth")
KEYS = {"value": value.KEYS, "speed": speed.KEYS, "memory": memory.KEYS, "growth": growth.KEYS}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts asked for."""
    options = parser().parse_args(arguments)
    if options.part == "data":
        data.build([name for name in options.sets or data.MADE if name in data.MADE], options.output)
        return
    output = options.output or (None if options.rows else RESULTS)
    for part in PARTS if options.part == "all" else [part for part in PARTS if part == options.part]:
        for rows in measure(part, options):
            if output is None:
                print(*rows, sep="\n")
            else:
                keep(output, part, rows)
    if output is not None:
        write_text(output / "tables.md", report.page({part: read(output, part) for part in (*PARTS, "versions")}))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.many_labels", description=__doc__)
    made.add_argument("part", choices=("data", *PARTS, "all", "tables"))
    made.add_argument("--sets", nargs="+", choices=(*data.SETS, memory.MILLION), help="some of the sets")
    made.add_argument("--goals", default="", help="goals by a part of their title")
    made.add_argument("--contestants", default="", help="contestants by a part of their library and name")
    made.add_argument("--splits", type=int, help="random halves of real sets")
    made.add_argument("--rows", type=int, help="rows of the synthetic set")
    made.add_argument("--entries", type=int, nargs="+", help="stored entries of the part growth")
    made.add_argument("--tries", type=int, help="calls that are timed, at most")
    made.add_argument("--jobs", type=int, default=1, help="processes of the part value")
    made.add_argument("--threads", type=int, default=1, help="threads of a contestant in the parts speed and memory")
    made.add_argument("--output", type=Path, help="folder of results, or of the sets that are made")
    return made


def measure(part: str, options: argparse.Namespace) -> Iterator[list[Row]]:
    """Return lines as soon as some are measured."""
    warnings.simplefilter("ignore")  # rules of few positives
    given = options.sets
    if part == "value":
        options.sets = [name for name in given or data.SETS if name in data.SETS]
        yield from measure_values(options)
    elif part == "speed":
        yield from (speed.measure(name, options) for name in given or data.SETS if name in data.SETS)
    elif part == "memory":
        yield from (memory.measure(name, options) for name in given or (data.SYNTHETIC, memory.MILLION))
    else:
        yield from ([growth.measure(entries, options)] for entries in options.entries or growth.ENTRIES)
    options.sets = given


def measure_values(options: argparse.Namespace) -> Iterator[list[Row]]:
    tasks, start = value.tasks(options), time.perf_counter()
    done = map(value.measure, tasks) if options.jobs == 1 else in_processes(value.measure, tasks, options.jobs)
    for task, rows in zip(tasks, done, strict=True):
        print(f"value: {task.set}, {task.split}, {task.goal.title}, {time.perf_counter() - start:.0f} s", flush=True)
        yield rows


def keep(output: Path, part: str, rows: list[Row]) -> None:
    """Write lines, in place of those with the same keys."""
    if not rows:
        return
    merge(output, part, KEYS[part], rows)
    merge(output, "versions", ("part",), [{"part": part, "made with": versions()}])


def merge(output: Path, name: str, keys: Sequence[str], rows: list[Row]) -> None:
    lines = {tuple(str(row[key]) for key in keys): row for row in read(output, name) + rows}
    write_csv(output / f"{name}.csv", complete(list(lines.values())))


def read(output: Path, name: str) -> list[dict[str, Any]]:
    path = output / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [{key: read_cell(cell) for key, cell in row.items()} for row in csv.DictReader(file)]


def versions() -> str:
    machine = facts()
    listed = [f"{name} {machine[name]}" for name in ("numpy", "scipy", "xcolumns", "numba")]
    return (
        f"{machine['processor']}, {machine['cores']} cores, Python {machine['Python']}, "
        f"metricwise {machine['metricwise']}, {', '.join(listed)}"
    )
