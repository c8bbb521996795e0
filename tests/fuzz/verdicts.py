"""Verdicts on inputs: right, refused in a sentence of ours, or a fault.

A kind of input has a `draw` from a random generator to a case. A case says what it is (`str`), whether it may be
refused (`refusable`), and judges itself: `judge` returns a verdict, or raises what the library raised.
"""

from __future__ import annotations

import linecache
import re
import signal
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from metricwise.core.errors import Refusal

MAX_CPU_SECONDS = 10.0  # of a case; what takes longer hangs
_MAX_SHOWN = 600  # characters of a case and of what went wrong with it


class Verdict(StrEnum):
    """What became of an input."""

    RIGHT = "right"
    REFUSED = "refused"
    FAULT = "fault"


class Case(Protocol):
    """An input, which knows how to find out whether the library deals with it."""

    @property
    def refusable(self) -> bool: ...

    def judge(self) -> Verdict: ...


@dataclass(frozen=True)
class Kind:
    """A kind of input."""

    name: str
    draw: Callable[[np.random.Generator], Case]
    about: str = ""


@dataclass(frozen=True)
class Outcome:
    """The verdict on a case, what went wrong if it is a fault, and the seconds that it took."""

    kind: str
    number: int
    verdict: Verdict
    seconds: float
    problem: str = ""
    case: str = ""
    died: bool = False  # with the process, whose memory an earlier input may have damaged


class HangError(BaseException):
    """A case took too long; no Exception, which commands turn into exit codes."""


def generator(seed: int, kind: str, number: int) -> np.random.Generator:
    """Return the generator of a case, which depends on nothing but these."""
    return np.random.default_rng([seed, zlib.crc32(kind.encode()), number])


def examine(kind: Kind, seed: int, number: int) -> Outcome:
    """Draw a case and judge it."""
    begin = time.perf_counter()
    case: Any = "while it was drawn"
    verdict, problem = Verdict.FAULT, ""
    try:
        with _time_limit(MAX_CPU_SECONDS), _strict_warnings():
            case = kind.draw(generator(seed, kind.name, number))
            verdict, problem = _judge(case)
    except HangError:
        problem = f"takes more than {MAX_CPU_SECONDS:g} seconds"
    except Exception as error:
        problem = describe_error(error)
    shown = _shorten(str(case)) if verdict == Verdict.FAULT else ""
    return Outcome(kind.name, number, verdict, time.perf_counter() - begin, _shorten(problem), shown)


def _judge(case: Case) -> tuple[Verdict, str]:
    try:
        return case.judge(), ""
    except Refusal as error:
        assert_refusal(error)
        if case.refusable:
            return Verdict.REFUSED, ""
        return Verdict.FAULT, f"refuses what is right: {error}"


def assert_refusal(error: Refusal) -> None:
    """A refusal reads as a sentence does, without NumPy's scalars; further lines show where a text is wrong."""
    sentence = str(error.sentence)
    assert sentence.strip()[-1:] in (".", "?", ":"), f"no sentence: {error}"
    assert not re.search(r"\bnp\.", sentence), f"NumPy's scalars in a sentence: {error}"
    assert "\n" not in sentence, f"lines in a sentence: {error}"


def taken(is_taken: bool) -> Verdict:
    """Return the verdict on an input that was taken, or refused in a sentence."""
    return Verdict.RIGHT if is_taken else Verdict.REFUSED


def describe_error(error: BaseException) -> str:
    """Return type, message and place of an error; of a failed assertion, its source."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split()) or linecache.getline(frame.filename, frame.lineno or 0).strip()
    place = "/".join(frame.filename.rsplit("/", 2)[-2:])
    return f"{type(error).__name__}: {text} ({place}:{frame.lineno})"


def _shorten(text: str) -> str:
    text = " ".join(text.replace(tempfile.gettempdir(), "").split())
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."


@contextmanager
def _strict_warnings() -> Iterator[None]:
    """Let warnings be errors, but for ours, which are sentences for users."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        yield


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise `HangError` after seconds of this process, so that a busy machine makes no faults."""

    def stop(*_: Any) -> None:
        raise HangError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
