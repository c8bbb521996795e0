"""Constraints as people write them: ``recall[urgent] >= 0.8``, ``0.05 <= share[review] <= 0.1``.

Owns the grammar, and objects that say the same to programs. Must not know which metrics, classes or outputs there are.

    constraints := constraint ("and" constraint)*
    constraint  := term op number | number op term [op number] | term "within" number "of" "prior"
    term        := name ["[" label ["," label] "]"]           two labels are the output and the class
    op          := ">=" | "<=" | "≥" | "≤"
    number      := 0.9 | 90 %
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .class_names import NAME, NUMBER, Reader, written

__all__ = ["Wanted", "at_least", "at_most", "between", "near_prior", "read_constraints"]

_WHO = "subject_to"
_OPERATOR = re.compile(r">=|<=|≥|≤")
_STRICT = re.compile(r"[<>=]")
_AND = re.compile(r"and\b")
_WITHIN = re.compile(r"within\b")


@dataclass(frozen=True)
class Wanted:
    """A bound on a metric, before anybody has asked what its names mean.

    Parameters
    ----------
    metric : str or object
        A name, or what else :func:`metricwise.optimize` takes for a metric.
    low, high : float
        Infinite where there is no such bound.
    labels : tuple
        What stands in brackets: nothing, a class (or an output), or an output and a class.
    near_prior : float, optional
        Instead of bounds: how far the predicted share of the class may be from its share of the rows.
    text : str, default=""
        As it was written.
    """

    metric: Any
    low: float = -np.inf
    high: float = np.inf
    labels: tuple[Any, ...] = ()
    near_prior: float | None = None
    text: str = ""

    def __str__(self) -> str:
        if self.text:
            return self.text
        name = self.metric
        if not isinstance(name, str):
            name = getattr(name, "name", getattr(name, "__name__", repr(name)))
        term = f"{name}[{', '.join(map(written, self.labels))}]" if self.labels else str(name)
        if self.near_prior is not None:
            return f"{term} within {self.near_prior:g} of prior"
        if np.isinf(self.high):
            return f"{term} >= {self.low:g}"
        return f"{term} <= {self.high:g}" if np.isinf(self.low) else f"{self.low:g} <= {term} <= {self.high:g}"


def at_least(metric: Any, bound: float, *labels: Any) -> Wanted:
    """Return a floor: the metric must be at least so large.

    Parameters
    ----------
    metric : str or object
        As :func:`metricwise.optimize` takes it.
    bound : float
    *labels
        The class, or the output and the class.

    Returns
    -------
    Wanted
        For `subject_to` of :func:`metricwise.optimize`.

    See Also
    --------
    metricwise.at_most : A ceiling.
    metricwise.between : Both.
    metricwise.near_prior : A predicted share near that of the rows.

    Examples
    --------
    >>> import metricwise as mw
    >>> print(mw.at_least("precision", 0.9, "fraud"))
    precision['fraud'] >= 0.9
    """
    return Wanted(metric, low=_number(bound), labels=labels)


def at_most(metric: Any, bound: float, *labels: Any) -> Wanted:
    """Return a ceiling: the metric must be at most so large.

    Parameters
    ----------
    metric, bound, *labels
        As in :func:`metricwise.at_least`.

    Returns
    -------
    Wanted

    See Also
    --------
    metricwise.at_least : A floor.

    Examples
    --------
    >>> import metricwise as mw
    >>> print(mw.at_most("share", 0.1, "review"))
    share['review'] <= 0.1
    """
    return Wanted(metric, high=_number(bound), labels=labels)


def between(metric: Any, low: float, high: float, *labels: Any) -> Wanted:
    """Return a floor and a ceiling.

    Parameters
    ----------
    metric : str or object
    low, high : float
    *labels
        As in :func:`metricwise.at_least`.

    Returns
    -------
    Wanted

    See Also
    --------
    metricwise.at_least : A floor.

    Examples
    --------
    >>> import metricwise as mw
    >>> print(mw.between("share", 0.05, 0.1, "review"))
    0.05 <= share['review'] <= 0.1
    """
    return Wanted(metric, *_in_order(_number(low), _number(high)), labels=labels)


def near_prior(tolerance: float, *labels: Any) -> Wanted:
    """Bound how far the predicted share of a class may be from its share of the rows.

    Parameters
    ----------
    tolerance : float
    *labels
        The class, or the output and the class.

    Returns
    -------
    Wanted

    See Also
    --------
    metricwise.between : Bounds on a share itself.

    Examples
    --------
    >>> import metricwise as mw
    >>> print(mw.near_prior(0.02, "fraud"))
    share['fraud'] within 0.02 of prior
    """
    return Wanted("share", labels=labels, near_prior=_number(tolerance, least=0.0))


def read_constraints(subject_to: Any) -> tuple[Wanted, ...]:
    """Read text, objects, or a list of both; None is nothing.

    Examples
    --------
    >>> from metricwise.metrics.constraint_text import read_constraints
    >>> [(one.metric, one.low, one.labels) for one in read_constraints("precision >= 0.9 and recall[urgent] >= 80 %")]
    [('precision', 0.9, ()), ('recall', 0.8, ('urgent',))]
    """
    if subject_to is None:
        return ()
    if isinstance(subject_to, Wanted):
        return (subject_to,)
    if isinstance(subject_to, str):
        return _read_text(subject_to)
    if not isinstance(subject_to, Iterable) or isinstance(subject_to, Mapping):
        raise TypeError(
            f"{_WHO}: must be text such as 'precision >= 0.9', at_least(...), at_most(...), between(...), or a list of "
            f"these, got {type(subject_to).__name__}."
        )
    return tuple(one for part in subject_to for one in read_constraints(part))


def _read_text(text: str) -> tuple[Wanted, ...]:
    reader = Reader(text, _WHO)
    found = [_constraint(reader)]
    while reader.sees(_AND):
        reader.take(_AND, "'and'")
        found.append(_constraint(reader))
    reader.end()
    return tuple(found)


def _constraint(reader: Reader) -> Wanted:
    reader.skip()
    begin, low, high = reader.at, -np.inf, np.inf
    if reader.sees(NUMBER):
        first = _read_number(reader)
        low, high = (first, np.inf) if _operator(reader) == "<=" else (-np.inf, first)
        metric, labels = _term(reader)
        if reader.sees(_OPERATOR) or reader.sees(_STRICT):
            same = _operator(reader) == ("<=" if np.isfinite(low) else ">=")
            if not same:
                raise reader.error("a bound on the other side, as in 0.1 <= share[review] <= 0.2")
            second = _read_number(reader)
            low, high = _in_order(*((low, second) if np.isfinite(low) else (second, high)))
        return Wanted(metric, low, high, labels, text=reader.text[begin : reader.at].strip())
    metric, labels = _term(reader)
    if reader.sees(_WITHIN):
        reader.take(_WITHIN, "'within'")
        tolerance = _number(_read_number(reader), least=0.0)
        for word in ("of", "prior"):
            reader.take(re.compile(rf"{word}\b"), repr(word))
        if metric != "share":
            raise ValueError(f"{_WHO}: only a share can be near its prior, got {reader.text[begin : reader.at]!r}.")
        return Wanted(metric, labels=labels, near_prior=tolerance, text=reader.text[begin : reader.at].strip())
    if _operator(reader) == ">=":
        low = _read_number(reader)
    else:
        high = _read_number(reader)
    return Wanted(metric, low, high, labels, text=reader.text[begin : reader.at].strip())


def _term(reader: Reader) -> tuple[str, tuple[Any, ...]]:
    name = reader.take(NAME, "the name of a metric, such as recall")
    labels: list[Any] = []
    if reader.sees(re.compile(r"\[")):
        reader.expect("[")
        labels.append(reader.label())
        if reader.sees(re.compile(",")):
            reader.expect(",")
            labels.append(reader.label())
        reader.expect("]")
    return name, tuple(labels)


def _operator(reader: Reader) -> str:
    sign = reader.take(_OPERATOR, "'>=' or '<='")
    return {"≥": ">=", "≤": "<="}.get(sign, sign)


def _read_number(reader: Reader) -> float:
    value = float(reader.take(NUMBER, "a number, such as 0.9 or 90 %"))
    if reader.sees(re.compile("%")):
        reader.expect("%")
        value /= 100
    return value


def _number(bound: Any, least: float = -np.inf) -> float:
    if isinstance(bound, bool) or not isinstance(bound, (int, float, np.number)) or not least <= bound < np.inf:
        raise ValueError(
            f"{_WHO}: a bound must be a finite number{', at least 0' if least == 0 else ''}, got {bound!r}."
        )
    return float(bound)


def _in_order(low: float, high: float) -> tuple[float, float]:
    if low > high:
        raise ValueError(f"{_WHO}: the lower bound must not be above the upper one, got {low:g} and {high:g}.")
    return low, high
