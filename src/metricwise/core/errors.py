"""Refusals as data: which parameter, what it must be, what it was, and the remedy.

Whoever refuses a value raises :class:`InvalidParameter` without saying on whose behalf; the entry point that the user
called adds its name (:func:`entry_point`). Parameters that a sentence names are marked by :func:`parameter` and
:func:`argument`, so that the command line can name options instead. Must not know entry points, nor the command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from .messages import shown
from .successors import HOMES

__all__ = ["InvalidParameter", "InvalidType", "Sentence", "argument", "entry_point", "parameter"]

P = ParamSpec("P")
T = TypeVar("T")

# Characters of Unicode's private use area: no text of a user's holds them but by accident, and then it stays readable.
_START, _BETWEEN, _END = "\ue000", "\ue001", "\ue002"
_MARKED = re.compile(f"{_START}([^{_END}]*?)(?:{_BETWEEN}([^{_END}]*))?{_END}")


def parameter(name: str) -> str:
    """Return the name of a parameter, marked for a :class:`Sentence`."""
    return f"{_START}{name}{_END}"


def argument(name: str, value: object = ...) -> str:
    """Return a parameter with a value, marked for a :class:`Sentence`; without a value it reads ``name=``."""
    return f"{_START}{name}{_BETWEEN}{'' if value is ... else shown(value)}{_END}"


class Sentence(str):
    """Text in Python's terms that remembers which parameters it names.

    Parameters
    ----------
    marked : str
        The text, with parameters marked by :func:`parameter` and :func:`argument`.

    Examples
    --------
    >>> from metricwise.core.errors import Sentence, argument
    >>> sentence = Sentence(f"pass {argument('pos_label', 'yes')}")
    >>> print(sentence)
    pass pos_label='yes'
    >>> sentence.render(lambda name, value: f"--{name.replace('_', '-')} {value}")
    "pass --pos-label 'yes'"
    """

    marked: str

    def __new__(cls, marked: str) -> Sentence:
        sentence = super().__new__(cls, _MARKED.sub(lambda mark: _in_python(mark[1], mark[2]), marked))
        sentence.marked = marked
        return sentence

    def __getnewargs__(self) -> tuple[str]:  # pickled with its marks
        return (self.marked,)

    def render(self, name_argument: Callable[[str, str | None], str]) -> str:
        """Return the text with each parameter named by a function of its name and of its value, None without one."""
        return _MARKED.sub(lambda mark: name_argument(mark[1], mark[2]), self.marked)


def _in_python(name: str, value: str | None) -> str:
    if value is None:
        return name
    return HOMES[name].format(value or "...") if name in HOMES else f"{name}={value}"


class InvalidParameter(ValueError):  # noqa: N818  the name says that it is an error
    """A parameter that cannot be what it was.

    The message reads "owner: parameter must ..., got ...; remedy.", or "owner: problem; remedy." where a value is not
    wrong by itself.

    Parameters
    ----------
    name : str
        The parameter; "" if no single one is to blame.
    must : str
        What it must be, such as "be a number in [0, 1]".
    got : str
        What it was, as words.
    remedy : str
        What to do instead.
    problem : str
        What is wrong, for what "must" cannot say; it names the parameter itself.
    owner : str
        The entry point that the user called.

    Examples
    --------
    >>> from metricwise.core.errors import InvalidParameter
    >>> print(InvalidParameter("tol", "be a positive number", "-1", owner="optimize"))
    optimize: tol must be a positive number, got -1.
    """

    def __init__(
        self, name: str, must: str = "", got: str = "", remedy: str = "", *, problem: str = "", owner: str = ""
    ) -> None:
        text = f"{parameter(name)} must {must}" if must else problem
        text += f", got {got}" if got else ""
        text += f"; {remedy}" if remedy else ""
        super().__init__(name, must, got, remedy)
        self.parameter, self.must, self.got, self.remedy, self.problem = name, must, got, remedy, problem
        self.owner = owner
        self.sentence = Sentence(text if text.endswith((".", "?")) else f"{text}.")

    def __str__(self) -> str:
        return f"{self.owner}: {self.sentence}" if self.owner else str(self.sentence)

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.parameter, self.must, self.got, self.remedy)
        return _restore, (type(self), fields, {"problem": self.problem, "owner": self.owner})


class InvalidType(InvalidParameter, TypeError):  # noqa: N818  as InvalidParameter
    """A parameter of a type that cannot be read."""


def _restore(kind: type[InvalidParameter], fields: tuple[str, ...], named: dict[str, str]) -> InvalidParameter:
    return kind(*fields, **named)


def entry_point(owner: str = "") -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate what users call: a refusal without an owner gets this name.

    Parameters
    ----------
    owner : str, default=""
        The name that the user knows; of methods, by default, that of the class and of the method.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except InvalidParameter as error:
                error.owner = error.owner or owner or _method_name(args[0], function.__name__)
                raise

        return call

    return decorate


def _method_name(owner: object, method: str) -> str:
    kind = owner if isinstance(owner, type) else type(owner)
    return kind.__name__ if method == "__post_init__" else f"{kind.__name__}.{method}"
