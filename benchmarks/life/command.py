"""The command line: measures parts in processes, and writes their files and pages."""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from ..machine import cores, facts
from ..promise_runs import in_processes
from ..tables import write_csv, write_text
from . import adaptation, equality, expectation, streams, watching
from .peers import HAS

RESULTS = Path(__file__).parent / "results"
PARTS: dict[str, ModuleType] = {"a": adaptation, "b": expectation, "c": streams, "d": watching, "e": equality}
ALONE = {"e"}  # times, for which one process has the machine


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts asked for."""
    options = parser().parse_args(arguments)
    for part in PARTS if options.part == "all" else [options.part]:
        run_part(part, options)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.life", description=__doc__)
    made.add_argument("part", choices=(*PARTS, "all"))
    made.add_argument("--jobs", type=int, default=cores(), help="processes")
    made.add_argument("--draws", type=int, help="draws, streams or calls; other than the default, nothing is written")
    made.add_argument("--only", default="", help="sets or streams by a part of their name; nothing is written")
    made.add_argument("--tables", action="store_true", help="the pages alone, from the CSV files")
    return made


def run_part(part: str, options: argparse.Namespace) -> None:
    module = PARTS[part]
    files = read_files(module) if options.tables else measure(module, part, options)
    page = RESULTS / f"{module.FILES[0]}.md"
    made_with = stored_versions(page) if options.tables else versions()
    text = module.report(files, made_with)
    print(text)
    missing = [name for name in module.NEEDS if not HAS[name]]
    if options.tables:
        write_text(page, text)
    elif missing:
        print(f"Nothing is written, because {' and '.join(missing)} is not installed: see benchmarks/life/__init__.py.")
    elif not (options.only or options.draws):
        for name, rows in files.items():
            write_csv(RESULTS / f"{name}.csv", rows)
        write_text(page, text)


def measure(module: ModuleType, part: str, options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each file, from tasks in processes."""
    tasks = module.tasks(options.only, options.draws or module.DRAWS)
    files: dict[str, list[dict[str, Any]]] = {name: [] for name in module.FILES}
    start = time.perf_counter()
    jobs = 1 if part in ALONE else options.jobs
    for number, rows in enumerate(in_processes(module.measure, tasks, jobs), 1):
        for name, some in rows.items():
            files[name] += some
        print(f"{part}: {number} of {len(tasks)}, {time.perf_counter() - start:.0f} s", flush=True)
    return {name: complete(rows) for name, rows in files.items()}


def complete(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with the same columns; those that a row does not have are None."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return [{column: row.get(column) for column in columns} for row in rows]


def read_files(module: ModuleType) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the CSV files: numbers as numbers, empty cells as None."""
    files: dict[str, list[dict[str, Any]]] = {name: [] for name in module.FILES}
    for name in module.FILES:
        path = RESULTS / f"{name}.csv"
        if path.exists():
            with path.open(newline="") as file:
                files[name] = [{key: read_cell(cell) for key, cell in row.items()} for row in csv.DictReader(file)]
    return files


def read_cell(cell: str) -> Any:
    """Return a number, a text, or None."""
    if not cell:
        return None
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def stored_versions(page: Path) -> str:
    """Return the sentence of a page that says what it was made with."""
    if not page.exists():
        return ""
    line = next(line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("Made by"))
    return line.partition("`. ")[2]


def versions() -> str:
    machine = facts()
    peers = [f"{name} {version(name)}" for name, there in HAS.items() if there]
    listed = [f"{name} {machine[name]}" for name in ("numpy", "scipy", "scikit-learn")]
    return f"Python {machine['Python']}, metricwise {machine['metricwise']}, {', '.join(listed + peers)}."
