"""Exit codes, and the sentence that is said where something went wrong.

Owns which error means what to whoever called the command, and how the words of the library become those of the command
line. Must not know commands.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["BAD_INPUT", "NOT_KEPT", "OK", "UNEXPECTED", "guarded", "in_options", "note", "with_options"]

OK = 0
UNEXPECTED = 1
BAD_INPUT = 2
NOT_KEPT = 3

_TRACEBACK = "METRICWISE_TRACEBACK"
# Parameters of the library that are options here by another name, or whose name is a word that sentences use.
_RENAMED = {"sample_weight": "--weight", "random_state": "--seed", "randomized": "--randomized"}
_TRUE = {"abstain": "yes"}  # options that take a value for True
_WORDS = (
    "abstain",
    "against",
    "average",
    "classes",
    "confidence",
    "force",
    "groups",
    "order",
    "proba",
    "randomized",
    "separator",
    "time",
)
_NAMES = (
    "abstain_label",
    "pos_label",
    "proba_prefix",
    "random_state",
    "sample_weight",
    "sensitive_features",
    "subject_to",
    "weight_kind",
)
_LEADING = re.compile(rf"^(y|{'|'.join(_WORDS)})\b(?= (?:must|has|is|are|and)\b)")
_LED_BY = {"y": "the column of labels", "proba": "the probabilities"}
_VALUE = r"""\.\.\.|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|range\([\d, ]+\)|[+-]?\w+(?:\.\w+)?"""
_PARAMETER = re.compile(rf"\b(?:({'|'.join(_NAMES)})\b(?:=({_VALUE})?)?|({'|'.join(_WORDS)})=({_VALUE})?)")
_ORDER = "order=[lowest, ..., highest], to the call or to the metric"
_UNKNOWN = re.compile(r"mw\.Sensitive\(values, unknown='(\w+)'\)|\bunknown='(\w+)'")
_SETTING = re.compile(r"(?:strategy|sensitive_features|abstain)=mw\.\w+\((?:\w+, )?(\w+=[^()]*)\)")  # of an object
_IN_TABLE = re.compile(r"mw\.Table\(path, (\w+=)\.\.\.\)")  # options of a table are options here
_WHO = re.compile(r"^(?:optimize|evaluate|trade_off|load_rule|to_\w+|[A-Z]\w+(?:\.\w+)?): ")


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

    if isinstance(error, MemoryError):
        return "there is not enough memory for this table.", BAD_INPUT
    if isinstance(error, InfeasibleConstraintsError):
        return in_options(str(error)), NOT_KEPT
    if isinstance(error, ImportError) and "pip install" in str(error):
        return in_options(str(error)), BAD_INPUT
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "
        return f"{where}{error.strerror[0].lower()}{error.strerror[1:]}.", BAD_INPUT
    if isinstance(error, (OSError, ValueError, TypeError)) and _is_ours(error):
        return in_options(str(error)), BAD_INPUT
    return (
        f"unexpected {type(error).__name__}: {' '.join(str(error).split())} This is a bug in metricwise: "
        f"please report it, with the output of the command run with {_TRACEBACK}=1.",
        UNEXPECTED,
    )


def _is_ours(error: Exception) -> bool:
    """Whether the library has refused something, and not a library that it uses."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and str(frames[-1].f_globals.get("__name__", "")).startswith("metricwise")


def in_options(text: str) -> str:
    """Return a sentence of the library with its parameters as options.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> from metricwise.cli.errors import in_options
    >>> in_options("optimize: name it, pos_label='a b' or pos_label='c'.")
    "name it, --pos-label 'a b' or --pos-label c."
    >>> in_options("metric: 'f3x' is not known; pass classes= with the label of each column.")
    "--metric: 'f3x' is not known; pass --classes with the label of each column."
    """
    first, *more = text.splitlines()  # a constraint is shown again, with a mark where it goes wrong
    text = _WHO.sub("", first).rstrip(":") + ("." if more else "")
    if text.startswith("metric: "):
        text = f"--{text}"
    text = _IN_TABLE.sub(r"\1", text)
    text = _UNKNOWN.sub(lambda found: f"--unknown-group {found[1] or found[2]}", text)
    text = text.replace(_ORDER, "--order LOWEST,...,HIGHEST")
    text = with_options(text.replace("see metrics.metric_names()", "see metricwise metrics"))
    return _LEADING.sub(lambda found: _LED_BY.get(found[1], f"--{found[1]}"), text)


def with_options(text: str) -> str:
    """Return some sentences with the parameters in them as options, and nothing else changed.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> from metricwise.cli.errors import with_options
    >>> with_options("Local: a mixture would add 0.01 (set randomized=True to get it).")
    'Local: a mixture would add 0.01 (set --randomized to get it).'
    """
    text = _SETTING.sub(lambda found: found[1].replace("label=", "abstain_label="), text)
    return _PARAMETER.sub(_as_option, text)


def _as_option(found: re.Match[str]) -> str:
    name, value = found[1] or found[3], found[2] or found[4]
    option = _RENAMED.get(name, f"--{name.replace('_', '-')}")
    if value == "True" and name in _TRUE:
        return f"{option} {_TRUE[name]}"
    if value is None or value == "True":
        return option
    if value == "...":
        return f"{option} CLASS."
    if value.startswith("range("):
        value = ",".join(map(str, range(*ast.literal_eval(f"({value[6:-1]},)"))))
    elif not value[0].isalnum():
        value = shlex.quote(str(ast.literal_eval(value)))
    return f"{option} {value}"


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    note(f"warning: {in_options(str(message))}")


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
