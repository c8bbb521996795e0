"""The command, its stages, and the processes that they run in."""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..promise_runs import in_processes
from . import predictions, report, times, values
from .predictions import KINDS, NAMES, Task

__all__ = ["main"]

HERE = Path(__file__).parent
SPLITS = 3
STAGES = ("predictions", "rules", "scores", "stopping", "times", "report")
MEASURES: dict[str, Callable[[Task, Path], Iterator[dict[str, Any]]]] = {
    "rules": values.truths,
    "scores": values.scores,
    "stopping": values.stopping,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the stages asked for."""
    options = _parser().parse_args(arguments)
    options.cache.mkdir(parents=True, exist_ok=True)
    (options.cache / ".gitignore").write_text("*\n")
    tasks = _tasks(options)
    for stage in STAGES if options.stage == "run" else (options.stage,):
        if stage == "predictions":
            _predict(tasks, options)
        elif stage in MEASURES:
            _measure(stage, tasks, options)
        elif stage == "times":
            (measured,) = in_processes(times.measure, [options.quick], 1)
            report.write_times(measured, options.results)
        else:
            report.write(options.cache, options.results, options.page)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__)
    parser.add_argument("stage", choices=("run", *STAGES))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--splits", type=int, default=SPLITS, help="splits of each set")
    parser.add_argument("--sets", nargs="+", choices=NAMES, default=NAMES, metavar="SET", help="only these sets")
    parser.add_argument("--quick", action="store_true", help="times of the smaller sizes only")
    parser.add_argument("--cache", type=Path, default=Path(".cache/training"), help="folder of what is computed")
    data = os.environ.get("METRICWISE_DATA")
    parser.add_argument("--data", type=Path, default=Path(data) if data else None, help="folder of the real sets")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder for tables and measurements")
    parser.add_argument("--page", type=Path, default=HERE.parents[1] / "docs" / "training.md")
    return parser


def _tasks(options: argparse.Namespace) -> list[Task]:
    """All tasks, split by split, so that a run that is cut short is still balanced."""
    return [Task(split, name, kind) for split in range(options.splits) for name in options.sets for kind in KINDS]


def _predict(tasks: list[Task], options: argparse.Namespace) -> None:
    missing = [task for task in tasks if not task.path(options.cache).exists()]
    work = partial(predictions.compute, cache=options.cache, folder=options.data)
    for number, _ in enumerate(in_processes(work, missing, options.jobs), 1):
        _tell("predictions", number, len(missing))


def _measure(stage: str, tasks: list[Task], options: argparse.Namespace) -> None:
    """Measure what is not in the file of the stage yet; lines are appended as they come."""
    path = options.cache / f"{stage}.csv"
    done = _stored_tasks(path)
    missing = [
        task
        for task in tasks
        if (task.kind == "stopping") == (stage == "stopping") and (task.set, task.split, task.kind) not in done
    ]
    work = partial(_lines, stage, cache=options.cache)
    with path.open("a", newline="") as file:
        for number, lines in enumerate(in_processes(work, missing, options.jobs), 1):
            writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
            if file.tell() == 0:
                writer.writeheader()
            writer.writerows(lines)
            file.flush()
            _tell(stage, number, len(missing))


def _lines(stage: str, task: Task, cache: Path) -> list[dict[str, Any]]:
    rounded = MEASURES[stage](task, cache)
    return [{key: round(v, 6) if isinstance(v, float) else v for key, v in line.items()} for line in rounded]


def _stored_tasks(path: Path) -> set[tuple[str, int, str]]:
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {(line["set"], int(line["split"]), line["model"]) for line in csv.DictReader(file)}


def _tell(stage: str, number: int, total: int) -> None:
    if number % 10 == 0 or number == total:
        print(f"{stage}: {number} of {total}", flush=True)
