"""The interface of an experiment, and its settings.

Defines the interface between experiments and the runner. Must not know any experiment, nor how tasks are distributed.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

__all__ = ["Experiment", "Row", "RunSettings", "Task", "task_rng"]

Task = tuple[Any, ...]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class RunSettings:
    """How an experiment is run.

    Parameters
    ----------
    seed : int
    quick : bool
        A few minutes' work in place of hours': fewer repetitions, smaller sizes.
    repetitions : int, optional
        None is the paper's number.
    data : pathlib.Path, optional
        Folder of the data files; None takes ``METRICWISE_DATA``, the cache, or downloads.
    made_up : bool
        Whether that folder holds made-up files.
    """

    seed: int = 0
    quick: bool = False
    repetitions: int | None = None
    data: Path | None = None
    made_up: bool = False


class Experiment(Protocol):
    """Many independent repetitions, and a report of them.

    A task is the tuple of its key columns; its result is one row, so that a results file never holds half a
    repetition.
    """

    name: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]

    def tasks(self, settings: RunSettings) -> Sequence[Task]:
        """Return all tasks, in the order that they are reported in."""
        ...

    def order(self, tasks: Sequence[Task]) -> Sequence[Task]:
        """Return the order to run tasks in."""
        ...

    def run(self, task: Task, settings: RunSettings) -> dict[str, float]:
        """Return the values of one task; they do not depend on when or where it runs."""
        ...

    def report(self, rows: Sequence[Row], settings: RunSettings, folder: Path) -> dict[str, str]:
        """Draw figures into a folder and return the report's tables by title, as Markdown."""
        ...


def task_rng(name: str, settings: RunSettings, *task: Any) -> np.random.Generator:
    """Return the random generator of a task, which depends only on the seed and the task."""
    words = [zlib.crc32(repr(part).encode()) for part in (name, *task)]
    return np.random.default_rng([settings.seed, *words])
