"""Progress messages for calls longer than a second.

One line on a terminal or in a notebook, which is overwritten and removed at the end; elsewhere one line per stage.
"""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, Protocol, TextIO

import numpy as np

from .errors import InvalidParameter

_DELAY = 1.0  # seconds before anything is shown
_MIN_INTERVAL = 0.1  # seconds between two updates of the line
_WATCH_INTERVAL = 0.25  # seconds between updates without ticks
_WIDTH = 20
_SCREEN_ERRORS = (OSError, ValueError, AttributeError)  # of a stream that is full, closed or replaced


class _Screen(Protocol):
    """Where a line is shown."""

    live: bool  # whether the line can be written over

    def show(self, line: str) -> None:
        """Show a line, in the place of the one before if the screen is live."""

    def wipe(self) -> None:
        """Remove the line."""


class Progress:
    """Says which of several stages something is at.

    Of several that are open at a time, one in the other or in threads, the first one is shown and the others are not:
    there is never more than one line.

    Parameters
    ----------
    title : str
        What is being done.
    n_stages : int
        How many stages there will be.
    verbose : bool, optional
        True: show it. False: never. None: on a terminal and in a notebook only.
    stream : text stream, optional
        Where to; standard error by default.
    """

    _first: ClassVar[Progress | None] = None  # the one that is shown
    _first_lock: ClassVar[threading.Lock] = threading.Lock()  # held while that is chosen or given up

    def __init__(self, title: str, n_stages: int, verbose: bool | None = None, stream: TextIO | None = None) -> None:
        self._title, self._n_stages = title, n_stages
        self._screen = _screen_of(sys.stderr if stream is None else stream, is_default=stream is None)
        self._wanted = self._screen.live if verbose is None else verbose
        self._start = self._last = time.perf_counter()
        self._stage, self._name, self._said = 0, "", ""
        self._lock, self._done = threading.Lock(), threading.Event()

    def __enter__(self) -> Progress:
        with Progress._first_lock:
            if not self._wanted or Progress._first is not None:
                return self
            Progress._first = self
        with suppress(RuntimeError):  # where no thread can be started, the line is shown by ticks only
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        with Progress._first_lock:
            if Progress._first is not self:
                return
            Progress._first = None
        with self._lock, suppress(*_SCREEN_ERRORS):
            if self._said and self._screen.live:
                self._screen.wipe()

    def stage(self, name: str) -> None:
        """Say that a stage begins."""
        self._stage, self._name = self._stage + 1, name
        self.tick()

    def tick(self) -> None:
        """Say that work goes on; free, but for looking at the clock."""
        first = Progress._first  # another thread may end it at any time
        if first is not None:
            first._look()

    @classmethod
    def _forget(cls) -> None:
        """Begin anew in a forked child, in which the thread is not that may hold the lock or show a line."""
        cls._first, cls._first_lock = None, threading.Lock()

    def _watch(self) -> None:
        """Show the line while a stage takes long and nobody ticks."""
        while not self._done.wait(_WATCH_INTERVAL):
            try:
                self._look()
            except Exception:  # a screen that another thread cannot write to; the ticks go on
                return

    def _look(self) -> None:
        now = time.perf_counter()
        if now - self._start < _DELAY or now - self._last < _MIN_INTERVAL or not self._name:
            return
        with self._lock, suppress(*_SCREEN_ERRORS):
            if not self._done.is_set():
                self._last = now
                self._show(now - self._start)

    def _show(self, seconds: float) -> None:
        text = f"{self._title}: {self._name}"
        if self._screen.live:
            done = min(_WIDTH, _WIDTH * max(self._stage - 1, 0) // max(self._n_stages, 1))
            self._screen.show(f"[{'=' * done}{' ' * (_WIDTH - done)}] {text}, {seconds:.0f} s")
        elif self._said != text:
            self._screen.show(f"{text} (stage {self._stage} of {self._n_stages}, {seconds:.0f} s)")
        self._said = text


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Progress._forget)


class _Terminal:
    """One line, written over by carriage returns."""

    live = True

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._length = stream, 0

    def show(self, line: str) -> None:
        self._write("\r" + line.ljust(self._length))
        self._length = len(line)

    def wipe(self) -> None:
        self._write("\r" + " " * self._length + "\r")
        self._length = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class _Lines:
    """A line each, which stay."""

    live = False

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()

    def wipe(self) -> None:
        pass


class _Notebook:
    """One output of a cell, which is replaced: what is saved with the notebook is empty."""

    live = True

    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, line: str) -> None:
        content = {"text/plain": line}
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def wipe(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)


def _screen_of(stream: TextIO | None, is_default: bool) -> _Screen:
    """Return where lines go: a notebook's cell, if nobody has said another stream, a terminal, or lines that stay."""
    if stream is None:  # as standard error is for programs without a console
        stream = io.StringIO()
    try:
        terminal = getattr(stream, "isatty", lambda: False)()
    except ValueError:  # it is closed
        terminal = False
    if terminal:
        return _Terminal(stream)
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    if is_default and getattr(shell, "kernel", None) is not None:
        return _Notebook(sys.modules["IPython"].display.display)
    return _Lines(stream)


def read_verbose(verbose: Any) -> bool | None:
    """Check what is said to be shown: True, False, or None for a terminal or a notebook only."""
    if verbose is None or isinstance(verbose, (bool, int, np.bool_)):
        return None if verbose is None else bool(verbose)
    raise InvalidParameter("verbose", "be True, False or None", repr(verbose))
