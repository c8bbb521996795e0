"""Exit codes, and the sentence for an error. Must not know commands."""

from __future__ import annotations

import os
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core.errors import Refusal
from ..core.files import noting_writes
from .options import in_options, with_options
from .printing import note

__all__ = ["BAD_INPUT", "BROKEN", "NOT_KEPT", "OK", "UNEXPECTED", "guarded"]

OK = 0
UNEXPECTED = 1
BAD_INPUT = 2
NOT_KEPT = 3
BROKEN = 4

_TRACEBACK = "METRICWISE_TRACEBACK"


class _StoppedError(BaseException):
    """Somebody has asked the process to end."""


def guarded(call: Callable[[], Any]) -> int:
    """Call a command, say in a sentence what went wrong, and return the exit code.

    Parameters
    ----------
    call : callable
        Returns an exit code, or None for success.

    Returns
    -------
    int
    """
    with noting_writes() as writes, _stopped_by_signals(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of libraries are for programmers
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _warn
        try:
            return int(call() or OK)
        except _StoppedError:
            return _fail(_interrupted(writes.done()), BAD_INPUT)
        except Exception as error:
            if os.environ.get(_TRACEBACK):
                traceback.print_exc()
            return _fail(*_sentence(error))


def _interrupted(written: list[Path]) -> str:
    """Say that a command was stopped, and which files it had replaced by then."""
    if not written:
        return "interrupted; nothing was written."
    return f"interrupted after {' and '.join(path.name for path in written)} had been written."


def _fail(text: str, code: int) -> int:
    note(text)
    return code


def _sentence(error: Exception) -> tuple[str, int]:
    from ..fitting.constraints.resolve import InfeasibleConstraintsError

    if isinstance(error, Refusal):
        return in_options(error), NOT_KEPT if isinstance(error, InfeasibleConstraintsError) else BAD_INPUT
    if isinstance(error, MemoryError):
        return "there is not enough memory for this table.", BAD_INPUT
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{error.strerror[0].lower()}{error.strerror[1:]}.", BAD_INPUT
    return (
        f"unexpected {type(error).__name__}: {' '.join(str(error).split())} This is a bug in metricwise: "
        f"please report it, with the output of the command run with {_TRACEBACK}=1.",
        UNEXPECTED,
    )


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    sentence = message.args[0] if isinstance(message, Warning) and message.args else str(message)
    note(f"warning: {with_options(sentence)}")


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Turn a request to end into an error, so that what has been begun is tidied up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise _StoppedError

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
