"""Names with a class in them, as people write them: ``recall[urgent]``, ``precision['on hold']``, ``f1[3]``.

Owns the one way in which a class is written in text, and says where in the text something is wrong. Must not know which
names or classes there are.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from ..core.errors import InvalidParameter
from .parameters import written

__all__ = ["NAME", "NUMBER", "NamedClass", "Reader", "class_named", "read_name", "text_class", "written"]

NAME = re.compile(r"[A-Za-z_][\w.]*")
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_COMMA, _CLOSED = re.compile(","), re.compile(r"\]")
_UNQUOTED = re.compile(r"[^'\"\[\],]+(?=[\],])")  # what stands before a comma or the end of the brackets
_WORDS = {"True": True, "False": False}


class NamedClass(NamedTuple):
    """A name, and the class that it is about.

    Fields
    ------
    name : str
    label : object
        A string, a number, True or False.
    """

    name: str
    label: Any


def read_name(text: str) -> NamedClass | None:
    """Read ``name[class]``; None where there is no bracket.

    A class that is a word or a number is written as it is; any other is quoted, and so is a number that is a string.

    Parameters
    ----------
    text : str

    Returns
    -------
    NamedClass or None

    Examples
    --------
    >>> from metricwise.metrics.class_names import read_name
    >>> read_name("recall[urgent]")
    NamedClass(name='recall', label='urgent')
    >>> read_name("precision['on hold']").label, read_name("f1[-1]").label, read_name("f1")
    ('on hold', -1, None)
    """
    if "[" not in text and "]" not in text:
        return None
    reader = Reader(text, "metric")
    name = reader.take(NAME, "the name of a metric, such as recall")
    (label,) = reader.in_brackets(most=1)
    reader.end()
    return NamedClass(name, label)


def text_class(metric: Any) -> str | None:
    """Return the class that a metric names, if it is text: a single column of probabilities is that of this class.

    Numbers are left out: of 0 and 1, the column is that of 1, whichever of them the metric is about.

    Examples
    --------
    >>> from metricwise.metrics.class_names import text_class
    >>> text_class("recall[urgent]"), text_class("recall"), text_class("recall[0]")
    ('urgent', None, None)
    """
    label = class_named(metric)
    return label if isinstance(label, str) else None


def class_named(metric: Any) -> Any:
    """Return the class that a metric names, None if it names none.

    Examples
    --------
    >>> from metricwise.metrics.class_names import class_named
    >>> class_named("recall[0]"), class_named("recall")
    (0, None)
    """
    try:
        named = read_name(metric) if isinstance(metric, str) else None
    except ValueError:  # said where the metric is read
        return None
    return getattr(metric, "pos_label", None) if named is None else named.label


class Reader:
    """A text, and how far it has been read.

    Parameters
    ----------
    text : str
    owner : str
        What a refusal is about.
    """

    def __init__(self, text: str, owner: str) -> None:
        self.text, self.owner, self.at = text, owner, 0

    def skip(self) -> None:
        """Pass over blanks."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def sees(self, pattern: re.Pattern[str]) -> bool:
        """Say whether such a thing comes next."""
        self.skip()
        return pattern.match(self.text, self.at) is not None

    def take(self, pattern: re.Pattern[str], what: str) -> str:
        """Read such a thing, or say in words what was expected."""
        self.skip()
        match = pattern.match(self.text, self.at)
        if match is None:
            raise self.error(what)
        self.at = match.end()
        return match.group()

    def expect(self, sign: str) -> None:
        """Read a sign."""
        self.take(re.compile(re.escape(sign)), repr(sign))

    def end(self) -> None:
        """Refuse what is left."""
        self.skip()
        if self.at < len(self.text):
            raise self.error("nothing more")

    def label(self) -> Any:
        """Read a class: a word, a number, or anything in quotes, in which a backslash stands before a quote."""
        self.skip()
        quote = self.text[self.at : self.at + 1]
        if quote in ("'", '"'):
            inside = re.compile(rf"{quote}((?:[^{quote}\\]|\\.)*){quote}").match(self.text, self.at)
            if inside is None:
                raise self.error(f"a class that ends with {quote}")
            self.at = inside.end()
            return re.sub(r"\\(.)", r"\1", inside.group(1))
        number = NUMBER.match(self.text, self.at)
        if number is not None:
            if math.isinf(float(number.group())):
                raise self.error("a class that is a finite number")
            self.at = number.end()
            return int(number.group()) if re.fullmatch(r"[+-]?\d+", number.group()) else float(number.group())
        word = self.take(re.compile(r"\w+"), "a class: a word, a number, or anything in quotes")
        return _WORDS.get(word, word)

    def in_brackets(self, most: int) -> list[Any]:
        """Read classes in brackets, as many as there may be at most."""
        self.expect("[")
        labels: list[Any] = []
        while True:
            self.skip()
            begin = self.at
            labels.append(self.label())
            if len(labels) < most and self.sees(_COMMA):
                self.expect(",")
                continue
            unquoted = _UNQUOTED.match(self.text, begin)
            if not self.sees(_CLOSED) and unquoted is not None and unquoted.end() > self.at:
                self.at = begin
                label = " ".join(unquoted.group().strip().splitlines())
                raise self.error(f"quotes around a class that is not one word, {written(label)},")
            self.expect("]")
            return labels

    def error(self, what: str) -> ValueError:
        """Point at where the text cannot be read."""
        met = repr(self.text[self.at]) if self.at < len(self.text) else "the end"
        return InvalidParameter(
            self.owner,
            problem=f"{self.text!r} must have {what} at character {self.at + 1}, got {met}:",
            owner=self.owner,
            detail=f"\n    {self.text}\n    {' ' * self.at}^",
        )
