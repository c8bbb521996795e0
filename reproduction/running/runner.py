"""Run an experiment: in parallel, resumable, and then its report.

Distributes tasks over processes, resumes runs, and writes the report. Must not know any experiment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..protocol import Experiment, RunSettings, Task
from ..reports.pages import write_pages
from .progress import progress
from .record import THREADS, Record
from .store import Store

__all__ = ["run_experiment"]


def run_experiment(
    experiment: Experiment,
    settings: RunSettings,
    folder: Path,
    *,
    jobs: int = 1,
    say: Callable[[str], None] = print,
    command: str = "",
) -> Path:
    """Run the unfinished tasks of an experiment, and write its report.

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
    record = Record(folder / f"{experiment.name}.json", experiment.name, settings, command, jobs)
    tasks = list(experiment.tasks(settings))
    store = Store(folder / f"{experiment.name}.csv", experiment.keys)
    record.check(bool(store.rows))
    waiting = [task for task in experiment.order(tasks) if task not in store]
    if waiting:
        record.start()
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
    record: Record,
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

    # Few threads each: sums then run in one order, and processes do not fight for cores.
    with threadpool_limits(THREADS):
        return task, experiment.run(task, settings)
