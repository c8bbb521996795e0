"""Progress of long work: a bar with the time left on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]

_LINE_EVERY = 30.0  # seconds


@contextmanager
def progress(title: str, total: int, done: int, say: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Show how far work is.

    Parameters
    ----------
    title : str
    total, done : int
        Tasks in all, and those finished before.
    say : callable
        Where lines go if there is no terminal, or no rich.

    Yields
    ------
    callable
        To be called after each task.
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        yield _lines(title, total, done, say)
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(title, total, done, say)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=total, completed=done)
        yield lambda: bar.advance(task)


def _lines(title: str, total: int, done: int, say: Callable[[str], None]) -> Callable[[], None]:
    start = last = time.monotonic()
    finished = done

    def step() -> None:
        nonlocal last, finished
        finished += 1
        now = time.monotonic()
        if now - last >= _LINE_EVERY or finished == total:
            left = (now - start) / (finished - done) * (total - finished)
            say(f"{title}: {finished} of {total}, about {left / 60:.1f} minutes left")
            last = now

    return step
