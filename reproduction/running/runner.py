"""Run an experiment: in parallel, resumable, and then its report.

Owns the spreading of tasks over processes, the resuming, the record of what was run, and the report's files. Must not
know any experiment.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..protocol import Experiment, RunSettings, Task
from ..reports.pages import write_pages
from .progress import progress
from .store import Store

__all__ = ["run_experiment"]

_PACKAGES = ("metricwise", "numpy", "scipy", "scikit-learn", "joblib")


def run_experiment(
    experiment: Experiment,
    settings: RunSettings,
    folder: Path,
    *,
    jobs: int = 1,
    say: Callable[[str], None] = print,
    command: str = "",
) -> Path:
    """Run what is not yet finished of an experiment, and write its report.

    Parameters
    ----------
    experiment : Experiment
    settings : RunSettings
    folder : pathlib.Path
        Results: ``<name>.csv`` (every repetition), ``<name>.md``, ``<name>.html``, ``<name>.json`` (what made them)
        and figures.
    jobs : int, default=1
        Processes. The numbers do not depend on it.
    say : callable
        Where lines go.
    command : str
        What was typed, for the record.

    Returns
    -------
    pathlib.Path
        The report.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = _Record(folder / f"{experiment.name}.json", experiment.name, settings, command)
    tasks = list(experiment.tasks(settings))
    store = Store(folder / f"{experiment.name}.csv", experiment.keys)
    record.check(bool(store.rows))
    waiting = [task for task in experiment.order(tasks) if task not in store]
    if waiting:
        record.write()
        _run_all(experiment, settings, waiting, store, len(tasks), jobs, record, say)
    else:
        say(f"{experiment.name}: all {len(tasks)} repetitions are there; only the report is made again")
    store.sort(tasks)
    tables = experiment.report(store.get(tasks), settings, folder)
    path = write_pages(experiment.name, tables, record.facts, settings, folder)
    say(f"{experiment.name}: {path}")
    return path


def _run_all(
    experiment: Experiment,
    settings: RunSettings,
    waiting: Sequence[Task],
    store: Store,
    total: int,
    jobs: int,
    record: _Record,
    say: Callable[[str], None],
) -> None:
    last = time.monotonic()
    try:
        with progress(experiment.name, total, total - len(waiting), say) as step:
            for task, values in _results(experiment, settings, waiting, jobs):
                store.append(task, values)
                step()
                now = time.monotonic()
                record.add_time(now - last)
                last = now
    except KeyboardInterrupt:
        kept = len([task for task in experiment.tasks(settings) if task in store])
        say(f"{experiment.name}: stopped; {kept} of {total} repetitions are kept, the same command continues")
        raise


def _results(
    experiment: Experiment, settings: RunSettings, tasks: Sequence[Task], jobs: int
) -> Iterator[tuple[Task, dict[str, float]]]:
    if jobs == 1:
        for task in tasks:
            yield _run_one(experiment, settings, task)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=2 * jobs)
    yield from parallel(delayed(_run_one)(experiment, settings, task) for task in tasks)


def _run_one(experiment: Experiment, settings: RunSettings, task: Task) -> tuple[Task, dict[str, float]]:
    from threadpoolctl import threadpool_limits

    # One thread each: sums then run in one order, and processes do not fight for cores.
    with threadpool_limits(1):
        return task, experiment.run(task, settings)


class _Record:
    """The JSON beside the results: what made them."""

    def __init__(self, path: Path, name: str, settings: RunSettings, command: str) -> None:
        self.path = path
        self.fixed = {"experiment": name, "seed": settings.seed, "quick": settings.quick, "made_up": settings.made_up}
        self.old: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.facts: dict[str, Any] = self.fixed | {
            "command": command or self.old.get("command", ""),
            "seconds": self.old.get("seconds", 0.0),
            "processor_count": _cores(),
            "versions": {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES},
        }

    def check(self, has_rows: bool) -> None:
        """Refuse to mix results of different settings, and keep the record of finished ones."""
        different = [key for key, value in self.fixed.items() if self.old and self.old.get(key) != value]
        if has_rows and (different or not self.old):
            was = {key: self.old.get(key) for key in different}
            raise ValueError(
                f"{self.path.parent} holds results of other settings ({was or 'unknown'}); choose another "
                "--output, or delete them."
            )
        if has_rows:
            self.facts = self.old

    def add_time(self, seconds: float) -> None:
        """Count the time of one more task, at once: a kill gives no notice."""
        self.facts = self.facts | {"seconds": round(self.facts.get("seconds", 0.0) + seconds, 3)}
        self.write()

    def write(self) -> None:
        self.path.write_text(json.dumps(self.facts, indent=2) + "\n", encoding="utf-8")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
