"""A sign of life from whatever takes longer than a second.

Owns when something is shown, and how: one line on a terminal that is written over and wiped in the end, or one line per
stage elsewhere. Must not know what is being done.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, TextIO

import numpy as np

__all__ = ["Progress", "read_verbose"]

_PATIENCE = 1.0  # seconds before anything is shown
_EVERY = 0.1  # seconds between two looks of the line
_WIDTH = 20


class Progress:
    """Says which of several stages something is at.

    Parameters
    ----------
    title : str
        What is being done.
    n_stages : int
        How many stages there will be.
    verbose : bool, optional
        True: show it. False: never. None: on a terminal only.
    stream : text stream, optional
        Where to; standard error by default.

    Examples
    --------
    >>> import sys
    >>> from metricwise.progress import Progress
    >>> with Progress("optimize", 2, verbose=False) as progress:
    ...     progress.stage("fitting")
    ...     progress.tick()
    """

    def __init__(self, title: str, n_stages: int, verbose: bool | None = None, stream: TextIO | None = None) -> None:
        self._title, self._n_stages = title, n_stages
        self._stream = sys.stderr if stream is None else stream
        self._terminal = bool(getattr(self._stream, "isatty", lambda: False)())
        self._shown = self._terminal if verbose is None else verbose
        self._start = self._last = time.perf_counter()
        self._stage, self._name, self._length, self._said = 0, "", 0, ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._length:
            self._write("\r" + " " * self._length + "\r")
            self._length = 0

    def stage(self, name: str) -> None:
        """Say that a stage begins."""
        self._stage, self._name = self._stage + 1, name
        self.tick()

    def tick(self) -> None:
        """Say that work goes on; free, but for looking at the clock."""
        if not self._shown:
            return
        now = time.perf_counter()
        if now - self._start < _PATIENCE or now - self._last < _EVERY:
            return
        self._last = now
        words = f"{self._title}: {self._name}"
        if not self._terminal:
            if self._said != words:
                self._said = words
                self._write(f"{words} (stage {self._stage} of {self._n_stages}, {now - self._start:.0f} s)\n")
            return
        done = min(_WIDTH, _WIDTH * max(self._stage - 1, 0) // max(self._n_stages, 1))
        line = f"[{'=' * done}{' ' * (_WIDTH - done)}] {words}, {now - self._start:.0f} s"
        self._write("\r" + line.ljust(self._length))
        self._length = len(line)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def read_verbose(verbose: Any, who: str) -> bool | None:
    """Check what is said to be shown: True, False, or None for a terminal only."""
    if verbose is None or isinstance(verbose, (bool, int, np.bool_)):
        return None if verbose is None else bool(verbose)
    raise ValueError(f"{who}: verbose must be True, False or None, got {verbose!r}.")
