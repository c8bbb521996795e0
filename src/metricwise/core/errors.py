"""Errors as data: the parameter, what it must be, what it was, and the remedy.

The entry point that the user called adds its name (:class:`entry_point`). Parameters within a sentence are marked by
:func:`mention` and :func:`argument`, so that the command line can name its options instead. Must not know which entry
points there are, nor the command line.
"""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

TAGS_REMEDY = "if these are the tags of each row, pass sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)"
_MAX_SHOWN = 80  # characters of a value in a message

# Characters of Unicode's private use area, which no text of a user's holds but by accident.
_START, _BETWEEN, _END = "\ue000", "\ue001", "\ue002"
_MARKED = re.compile(f"{_START}([^{_END}]*?)(?:{_BETWEEN}([^{_END}]*))?{_END}")

# The argument whose object has a setting, with braces in the place of its value.
HOMES = {
    "confusion": "strategy=mw.Strategy(confusion={})",
    "recalibrate": "strategy=mw.Strategy(recalibrate={})",
    "solver": "strategy=mw.Strategy(solver={})",
    "tol": "strategy=mw.Strategy(tol={})",
    "randomized": "strategy=mw.Strategy(randomized={})",
    "group_aware": "sensitive_features=mw.Sensitive(values, group_aware={})",
    "abstain_label": "abstain=mw.Abstention(cost, label={})",
}

# What to pass instead of keywords that no object has.
_INSTEAD = {
    "weight_kind": "pass sample_weight=mw.Frequencies(weight) for weights that count rows",
    "time": "pass groups=mw.InTime(time)",
    "half_life": "pass groups=mw.InTime(time, half_life=...)",
    "zero_division": "pass a metric object, such as mw.metrics.FBeta(zero_division=...)",
    "missing": "pass y with NaN or None for missing labels, or a masked array: np.ma.masked_equal(y, code)",
    "normalize": "divide the scores by their sums: proba / proba.sum(axis=-1, keepdims=True)",
}

# How a setting of an object is written.
_CONTAINERS = {
    "Sensitive": "mw.Sensitive(values, {})",
    "Table": "mw.Table(path, {})",
    "Abstention": "mw.Abstention(cost, {})",
}

# The entry point that was called last, and its first argument, whose class replaces "{class}".
_entered: ContextVar[tuple[str, Any]] = ContextVar("entered", default=("", None))


def mention(name: str) -> str:
    """Return the name of a parameter, marked for a :class:`Sentence`."""
    return f"{_START}{name}{_END}"


def argument(name: str, value: object = ..., *, text: str = "") -> str:
    """Return a parameter with a value, marked for a :class:`Sentence`; without a value it reads ``name=``.

    "Table.separator" is the parameter of a table, and reads ``mw.Table(path, separator=...)``. `text` is a value in
    words.
    """
    return f"{_START}{name}{_BETWEEN}{text if value is ... else shown(value)}{_END}"


class Sentence(str):
    """Text in Python's terms that remembers which parameters it names.

    Parameters
    ----------
    marked : str
        The text, with parameters marked by :func:`mention` and :func:`argument`.
    owner : str, default=""
        What the text is about, which comes before it.

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
    owner: str

    def __new__(cls, marked: str, owner: str = "") -> Sentence:
        """Remember the marks, and be the text without them."""
        text = _MARKED.sub(lambda mark: _in_python(mark[1], mark[2]), marked)
        sentence = super().__new__(cls, f"{owner}: {text}" if owner else text)
        sentence.marked, sentence.owner = marked, owner
        return sentence

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled with the marks."""
        return Sentence, (self.marked, self.owner)

    def render(self, name_argument: Callable[[str, str | None], str]) -> str:
        """Return the text alone, each parameter named by a function of its name and of its value, None without one."""
        return _MARKED.sub(lambda mark: name_argument(mark[1], mark[2]), self.marked)


def _in_python(name: str, value: str | None) -> str:
    container, _, inner = name.partition(".")
    if inner and container in _CONTAINERS:
        return _CONTAINERS[container].format(f"{inner}={value or '...'}")
    if value is None:
        return name
    return HOMES[name].format(value or "...") if name in HOMES else f"{name}={value}"


class Refusal(Exception):  # noqa: N818  a base of errors that say more
    """What the library refuses on purpose, in a sentence for the user.

    Parameters
    ----------
    text : str
        The sentence, with parameters marked; a full stop is added.
    owner : str or None
        What refuses, if it is not what the user called: an object or a file. None for a sentence that stands alone.
    detail : str
        Further lines, such as the text that could not be read with a mark where.
    """

    def __init__(self, text: str, *, owner: str | None = "", detail: str = "") -> None:
        super().__init__(text)
        self.owner, self.detail = owner, detail
        self.entry_point = ""  # what the user called, which adds its name
        self.sentence = _full(text)

    def __str__(self) -> str:
        owner = self.entry_point if self.owner == "" else self.owner
        return (f"{owner}: " if owner else "") + self.sentence + self.detail

    def within(self, before: str = "", after: str = "", *, owner: str | None = "", detail: str = "") -> Self:
        """Return the same refusal as a part of another sentence, or of another owner unless that is ""."""
        refusal = copy(self)
        refusal.sentence = _full(f"{before}{self.sentence.marked.removesuffix('.')}{after}")
        refusal.owner = self.owner if owner == "" else owner
        refusal.detail = detail or self.detail
        return refusal

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)


def _full(text: str) -> Sentence:
    """Return a text as a sentence that ends as sentences do."""
    sentence = Sentence(text)
    return sentence if sentence.endswith((".", "?", ":")) else Sentence(f"{text}.")


def _restore(kind: type[Refusal], args: tuple[Any, ...], state: dict[str, Any]) -> Refusal:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class InvalidParameter(Refusal, ValueError):  # noqa: N818  the name says that it is an error
    """Raised if a parameter has an invalid value; a ValueError.

    The message reads "owner: parameter must ..., got ...; remedy.", or "owner: problem; remedy." where a value is not
    wrong by itself. Its parts are attributes, so that no program need parse it: `parameter`, `must`, `got`, `remedy`,
    `problem`, and `entry_point`, the name of the function or class that was called.

    Parameters
    ----------
    name : str
        The parameter; "" if no single one is to blame.
    must : str
        What it must be, such as "be a number in [0, 1]".
    got : object
        What it was; a text is shown as it is.
    remedy : str
        What to do instead.
    problem : str
        What is wrong, for what "must" cannot say; it names the parameter itself.
    owner : str or None
        What refuses, if it is not what the user called, such as a file; None for a sentence that stands alone.
    detail : str
        Further lines.

    See Also
    --------
    metricwise.optimize : Raises it for arguments that it cannot use.

    Examples
    --------
    >>> import metricwise as mw
    >>> try:
    ...     mw.optimize([0.2, 0.8], [0, 1], "f1", confidence=2)
    ... except mw.InvalidParameter as error:
    ...     print(error.parameter, "|", error)
    confidence | optimize: confidence must be a number in [0.5, 1) or None, got 2.
    """

    __module__ = "metricwise"  # by which it is imported, and shown in tracebacks

    def __init__(
        self,
        name: str,
        must: str = "",
        got: object = "",
        remedy: str = "",
        *,
        problem: str = "",
        owner: str | None = "",
        detail: str = "",
    ) -> None:
        text = f"{mention(name)} must {must}" if must else problem
        text += "" if isinstance(got, str) and not got else f", got {got}"
        text += f"; {remedy}" if remedy else ""
        super().__init__(text, owner=owner, detail=detail)
        self.parameter, self.must, self.got, self.remedy, self.problem = name, must, got, remedy, problem


class InvalidType(InvalidParameter, TypeError):  # noqa: N818  as InvalidParameter
    """A parameter of a type that cannot be read."""


class MissingDependency(Refusal, ImportError):  # noqa: N818  as InvalidParameter
    """A package that is not installed, and how to install it."""


class FileIsThere(Refusal, FileExistsError):  # noqa: N818  as InvalidParameter
    """A file that would be overwritten."""


def warn(text: str, category: type[Warning] = UserWarning, *, owner: str = "") -> None:
    """Warn in the name of the owner or of the entry point, at the line of the user's that called it."""
    warnings.warn(category(Sentence(text, owner or _named(*_entered.get()))), stacklevel=_caller_level())


class entry_point:  # noqa: N801  a decorator
    """Mark what users call: what is refused or warned of within it, and has no owner yet, gets its name.

    Parameters
    ----------
    owner : str, default="{class}.{method}"
        The name that the user knows. Of methods, "{class}" and "{method}" stand for their names.
    """

    def __init__(self, owner: str = "{class}.{method}") -> None:
        self.owner = owner

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return the function with its name."""
        template = self.owner.replace("{method}", function.__name__)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            first = args[0] if args else None
            token = _entered.set((template, first))
            try:
                return function(*args, **kwargs)
            except Refusal as error:
                error.entry_point = error.entry_point or _named(template, first)
                raise
            finally:
                _entered.reset(token)

        return call


@contextmanager
def refused_by(owner: str) -> Iterator[None]:
    """Name the owner of refusals that have none: a file, for what is read from it."""
    try:
        yield
    except Refusal as error:
        error.owner = owner if error.owner == "" else error.owner
        raise


def _named(template: str, owner: object) -> str:
    """Return the name of an entry point, with the class of the object whose method it is."""
    return template.replace("{class}", (owner if isinstance(owner, type) else type(owner)).__name__)


def shown(value: Any) -> str:
    """Return a value for a message: on one line, cut where it is long; of arrays and tables, type and shape."""
    import numpy as np  # the command line loads NumPy only where it is needed

    if isinstance(value, (np.datetime64, np.timedelta64)):  # as Python's own these may be bare numbers
        return str(value)
    if isinstance(value, np.generic):
        value = value.item()
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{type(value).__name__} of shape {shape}"
    if isinstance(value, list) and any(isinstance(item, np.generic) for item in value):
        return _cut(listed(value))
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no integers of thousands of digits
        text = type(value).__name__
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."


def listed(labels: Iterable[Any]) -> str:
    """Return labels for a message, as a list."""
    return f"[{', '.join(map(shown, labels))}]"


def _caller_level() -> int:
    """Return the stack level of the first frame outside this package and scikit-learn."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("metricwise", "sklearn"):
        frame, level = frame.f_back, level + 1
    return level


def check_removed(owner: str, names: Iterable[str], taken: Iterable[str]) -> None:
    """Raise a TypeError for keywords that are settings of an object, which says what to pass instead."""
    for name in names:
        if name in taken or name not in (*HOMES, *_INSTEAD):
            continue
        instead = _INSTEAD.get(name) or f"pass {HOMES[name].format('...')}"
        raise TypeError(f"{owner}: {name}= is not a parameter; {instead}.")


def refuses_removed(owner: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate what users call: keywords that are settings of an object raise a TypeError. Keeps the signature."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        taken = frozenset(inspect.signature(function).parameters)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if not taken.issuperset(kwargs):
                check_removed(owner, kwargs, taken)
            return function(*args, **kwargs)

        return call

    return decorate
