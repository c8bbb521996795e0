"""Exit codes, and the sentence that is said where something went wrong.

Owns which error means what to whoever called the command, and how the words of the library become those of the command
line. Must not know commands.
"""

from __future__ import annotations

import ast
import os
import shlex
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..core.errors import Refusal, Sentence

__all__ = ["BAD_INPUT", "NOT_KEPT", "OK", "UNEXPECTED", "add_options", "guarded", "in_options", "note", "with_options"]

OK = 0
UNEXPECTED = 1
BAD_INPUT = 2
NOT_KEPT = 3

_TRACEBACK = "METRICWISE_TRACEBACK"
# Parameters of the library that are named otherwise here. Options of commands add themselves by their names.
_OPTIONS = {
    "Abstention.label": "--abstain-label",
    "metrics.metric_names()": "metricwise metrics",
    "random_state": "--seed",
    "sample_weight": "--weight",
    "Sensitive.unknown": "--unknown-group",
    "Table.proba": "--proba",
    "Table.proba_prefix": "--proba-prefix",
    "Table.separator": "--separator",
}
_COLUMNS = {"y": "the column of labels", "proba": "the probabilities"}
_TRUE = {"abstain": " yes"}  # options that take a value for True
_PLACEHOLDERS = {"order": " LOWEST,...,HIGHEST", "pos_label": " CLASS"}  # for values that a sentence describes


def add_options(names: Iterable[str]) -> None:
    """Let sentences name options: those of the parameters that have the same names."""
    for name in names:
        _OPTIONS.setdefault(name, f"--{name.replace('_', '-')}")


class _StoppedError(BaseException):
    """Somebody has asked the process to end."""


def note(text: str) -> None:
    """Say something besides the result, in the order in which it is said where both go the same way."""
    sys.stdout.flush()
    sys.stderr.write(f"metricwise: {text}\n")
    sys.stderr.flush()


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
    with _stopped_by_signals(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of libraries are for programmers
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _warn
        try:
            return int(call() or OK)
        except _StoppedError:
            return _fail("stopped before the end; nothing was written.", BAD_INPUT)
        except Exception as error:
            if os.environ.get(_TRACEBACK):
                traceback.print_exc()
            return _fail(*_sentence(error))


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


def in_options(refusal: Refusal) -> str:
    """Return a refusal of the library with its parameters as options, on one line.

    Parameters
    ----------
    refusal : Refusal

    Returns
    -------
    str

    Examples
    --------
    >>> import metricwise.cli.app  # whose options add themselves
    >>> from metricwise.cli.errors import in_options
    >>> from metricwise.core.errors import InvalidParameter, argument
    >>> in_options(InvalidParameter("classes", problem="a column has no label", remedy=f"pass {argument('classes')}"))
    'a column has no label; pass --classes.'
    """
    text = with_options(refusal.sentence)
    text = text if text.endswith((".", "?")) else f"{text.removesuffix(':')}."
    return f"{_OPTIONS.get(refusal.owner, refusal.owner)}: {text}" if refusal.owner else text


def with_options(sentence: str) -> str:
    """Return a sentence of the library with the parameters that it names as options.

    Parameters
    ----------
    sentence : str
        A :class:`metricwise.core.errors.Sentence`; other text is returned as it is.

    Returns
    -------
    str

    Examples
    --------
    >>> import metricwise.cli.app  # whose options add themselves
    >>> from metricwise.cli.errors import with_options
    >>> from metricwise.core.errors import Sentence, argument
    >>> with_options(Sentence(f"A mixture would add 0.01 (set {argument('randomized', True)} to get it)."))
    'A mixture would add 0.01 (set --randomized to get it).'
    """
    if not isinstance(sentence, Sentence):
        return sentence
    text = sentence.render(_as_option)
    return f"{_OPTIONS[sentence.owner]}: {text}" if sentence.owner in _OPTIONS else text


def _as_option(name: str, value: str | None) -> str:
    """Return how a parameter, with its value as Python writes it, is given on the command line."""
    if value is None and name in _COLUMNS:
        return _COLUMNS[name]
    option = _OPTIONS.get(name)
    if option is None:
        return name if value is None else f"{name}={value}"
    if not value:
        return option
    if value == "True":
        return option + _TRUE.get(name, "")
    if value.startswith("range("):
        return f"{option} {','.join(map(str, range(*ast.literal_eval(f'({value[6:-1]},)'))))}"
    if "..." in value:
        return option + _PLACEHOLDERS[name]
    return f"{option} {shlex.quote(str(ast.literal_eval(value)))}"


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
