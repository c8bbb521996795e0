"""The command, its stages, and the processes that they run in."""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from . import probabilities, report, rules
from .data import FRESH, SETS, WORLDS
from .further_sets import FURTHER
from .probabilities import MODELS, Task

__all__ = ["COLUMNS", "main"]

HERE = Path(__file__).parent
QUICK_SETS = ("wine", "car", "car_good", "cmc", "phishing", "student_grade", "world_rare", "world_binary")
COLUMNS = (
    *("set", "model", "split", "metric", "n_train", "n_test"),
    *rules.METHODS,
    *("recipe", "gain", "gain_low", "gain_high", "gain_test_error"),
    *(f"{method}_seconds" for method in rules.METHODS),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the stages asked for."""
    options = _parser().parse_args(arguments)
    options.cache.mkdir(parents=True, exist_ok=True)
    (options.cache / ".gitignore").write_text("*\n")
    found = options.cache / f"rules-{options.tag or ('quick' if options.quick else 'full')}.csv"
    tasks = _tasks(options)
    if options.stage in ("run", "probabilities"):
        missing = [task for task in tasks if not task.path(options.cache).exists()]
        work = partial(_probabilities, cache=options.cache, folder=options.data)
        for _ in _spread(work, missing, options.jobs, "probabilities"):
            pass
    if options.stage in ("run", "rules"):
        _rules(tasks, found, options)
    if options.stage in ("run", "report"):
        if options.quick:
            sys.stdout.write(report.summary(report.read(found)))
        else:
            report.write(report.read(found), options.results, options.page)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generalisation", description=__doc__)
    parser.add_argument("stage", choices=("run", "probabilities", "rules", "report"))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--splits", type=int, help="splits of each set (20; quick: 4)")
    names = (*SETS, *FRESH, *WORLDS, *FURTHER)
    parser.add_argument("--sets", nargs="+", choices=names, metavar="SET", help="only these sets")
    parser.add_argument("--further", action="store_true", help="the sets of the final test, and no others")
    parser.add_argument("--quick", action="store_true", help="fewer sets and splits, no peers, a summary on the screen")
    parser.add_argument("--fresh", action="store_true", help="forget the rules measured before")
    parser.add_argument("--again", action="store_true", help="measure the default anew, and keep recipes and peers")
    parser.add_argument("--cache", type=Path, default=Path(".cache/generalisation"), help="folder for probabilities")
    parser.add_argument("--tag", help="name of the file of measurements in the cache")
    data = os.environ.get("METRICWISE_DATA")
    parser.add_argument("--data", type=Path, default=Path(data) if data else None, help="folder of the real sets")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder for tables and repetitions")
    parser.add_argument("--page", type=Path, default=HERE.parents[1] / "docs" / "generalisation.md")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="a constant of metricwise.fitting.selection to change",
    )
    return parser


def _tasks(options: argparse.Namespace) -> list[Task]:
    """All cells, split by split, so that a run that is cut short is still balanced."""
    every = FURTHER if options.further else QUICK_SETS if options.quick else (*SETS, *FRESH, *WORLDS)
    names = options.sets or tuple(every)
    splits = options.splits or (4 if options.quick else 20)
    return [Task(split, name, model) for split in range(splits) for name in names for model in MODELS]


def _probabilities(task: Task, cache: Path, folder: Path | None) -> list[dict[str, Any]]:
    probabilities.compute(task, cache, folder)
    return []


def _measure(
    task: Task, cache: Path, with_peers: bool, default_only: bool, constants: dict[str, float]
) -> list[dict[str, Any]]:
    from metricwise.fitting import selection

    for name, value in constants.items():
        if not hasattr(selection, name):
            raise SystemExit(f"--set: metricwise.fitting.selection has no {name}.")
        setattr(selection, name, value)
    return list(rules.measure(task, cache, with_peers=with_peers, default_only=default_only))


def _rules(tasks: list[Task], found: Path, options: argparse.Namespace) -> None:
    """Measure what is not in the file yet; rows are appended as they come."""
    stored: dict[tuple[str, ...], dict[str, str]] = {}
    if options.again:
        stored = {_key(row): row for row in _stored(found)}
    if options.fresh or options.again:
        found.unlink(missing_ok=True)
    done = {(row["set"], row["model"], int(row["split"])) for row in _stored(found)}
    missing = [task for task in tasks if (task.set, task.model, task.split) not in done]
    constants = {name: float(value) if "." in value else int(value) for name, value in _pairs(options.set)}
    work = partial(
        _measure,
        cache=options.cache,
        with_peers=not options.quick,
        default_only=options.again,
        constants=constants,
    )
    with found.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        if file.tell() == 0:
            writer.writeheader()
        for rows in _spread(work, missing, options.jobs, "rules"):
            texts = ({k: f"{v:.6g}" if isinstance(v, float) else str(v) for k, v in row.items()} for row in rows)
            writer.writerows(stored.get(_key(row), {}) | row for row in texts)
            file.flush()


def _key(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("set", "model", "split", "metric"))


def _pairs(settings: Iterable[str]) -> Iterator[tuple[str, str]]:
    for setting in settings:
        name, _, value = setting.partition("=")
        yield name, value


def _stored(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _spread(
    work: Callable[[Task], list[dict[str, Any]]], tasks: list[Task], jobs: int, name: str
) -> Iterator[list[dict[str, Any]]]:
    """Run tasks in processes, and say how far they are."""
    if not tasks:
        return
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")  # processes are the parallelism, and times are per core
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(work, task) for task in tasks]
        for count, future in enumerate(as_completed(waiting), 1):
            yield future.result()
            if sys.stderr.isatty() or count % 50 == 0 or count == len(tasks):
                print(f"{name}: {count} of {len(tasks)}", file=sys.stderr, flush=True)
