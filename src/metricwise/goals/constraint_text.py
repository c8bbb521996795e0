"""Constraints as people write them: ``recall[urgent] >= 0.8``, ``0.05 <= share[review] <= 0.1``.

Owns the grammar, and objects that say the same to programs. Must not know which metrics, classes or outputs there are.

    constraints := constraint ("and" constraint)*
    constraint  := bounded ["in" ("every" "group" | "every" "label" | "group" label ("," label)*)]
    bounded     := term op number | number op term [op number] | term "within" number "of" "prior"
    term        := name ["[" label ["," label] "]"] ["gap"]   two labels are the output and the class
    op          := ">=" | "<=" | "≥" | "≤"
    number      := 0.9 | 90 %
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, InvalidType, entry_point
from ..metrics.class_names import NAME, NUMBER, Reader
from ..metrics.parameters import written
from .parity import PARITIES

__all__ = [
    "EVERY",
    "EVERY_LABEL",
    "GAP",
    "Gap",
    "ConstraintSpec",
    "at_least",
    "at_most",
    "between",
    "gap",
    "in_every_group",
    "in_group",
    "near_prior",
    "read_constraints",
]

_OPERATOR = re.compile(r">=|<=|≥|≤")
_STRICT = re.compile(r"[<>=]")
_AND = re.compile(r"and\b")
_WITHIN = re.compile(r"within\b")
_IN, _EVERY, _GROUP, _GAP, _LABEL = (re.compile(rf"{word}\b") for word in ("in", "every", "group", "gap", "label"))
_COMMA = re.compile(",")

GAP, EVERY, ONE = "gap", "every", "group"  # what a bound about sensitive groups is on
EVERY_LABEL = "every label"


@dataclass(frozen=True)
class ConstraintSpec:
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
    over : {"gap", "every", "group", "every label"}, optional
        What the bound is on where it is about sensitive groups: the largest difference between two of them, the metric
        in each of them, or in one; or the metric of each of many labels.
    group : object, optional
        The name of that one.
    """

    metric: Any
    low: float = -np.inf
    high: float = np.inf
    labels: tuple[Any, ...] = ()
    near_prior: float | None = None
    text: str = ""
    over: str | None = None
    group: Any = None

    def __post_init__(self) -> None:
        if self.over is None and isinstance(self.metric, Gap):
            object.__setattr__(self, "labels", self.metric.labels)
            object.__setattr__(self, "metric", self.metric.metric)
            object.__setattr__(self, "over", GAP)
        elif isinstance(self.metric, str) and self.metric in PARITIES:
            if self.over not in (None, GAP):
                raise InvalidParameter(
                    "subject_to",
                    problem=f"{self.metric} is already about all groups, got {_where(self).strip()!r} after it",
                    remedy="leave that out",
                    owner="subject_to",
                )
            object.__setattr__(self, "over", GAP)

    def __str__(self) -> str:
        return self.text or self._bounded() + _where(self)

    @property
    def term(self) -> str:
        """What is bounded, as it is written."""
        name = self.metric
        if not isinstance(name, str):
            name = getattr(name, "name", getattr(name, "__name__", repr(name)))
        term = f"{name}[{', '.join(map(written, self.labels))}]" if self.labels else str(name)
        return term + (" gap" if self.over == GAP and name not in PARITIES else "")

    def _bounded(self) -> str:
        term = self.term
        if self.near_prior is not None:
            return f"{term} within {self.near_prior:g} of prior"
        if np.isinf(self.high):
            return f"{term} >= {self.low:g}"
        return f"{term} <= {self.high:g}" if np.isinf(self.low) else f"{self.low:g} <= {term} <= {self.high:g}"


def _where(spec: ConstraintSpec) -> str:
    """In which groups a bound is to be kept, as it is written."""
    if spec.over in (EVERY, EVERY_LABEL):
        return " in every group" if spec.over == EVERY else " in every label"
    if spec.over != ONE:
        return ""
    return f" in group {', '.join(map(written, spec.group if isinstance(spec.group, tuple) else (spec.group,)))}"


@dataclass(frozen=True)
class Gap:
    """The largest difference of a metric between two sensitive groups; made by :func:`metricwise.gap`."""

    metric: Any
    labels: tuple[Any, ...] = ()


def gap(metric: Any, *labels: Any) -> Gap:
    """Return the largest difference of a metric between two sensitive groups, for an upper bound.

    Parameters
    ----------
    metric : str or object
        A metric as in :func:`metricwise.optimize` that is linear, or a ratio of linear metrics.
    *labels
        The class, or the output and the class.

    Returns
    -------
    Gap
        To be passed to :func:`metricwise.at_most`.

    See Also
    --------
    metricwise.in_every_group : A bound on a metric in each group.

    Examples
    --------
    >>> import metricwise as mw
    >>> print(mw.at_most(mw.gap("recall", "urgent"), 0.05))
    recall['urgent'] gap <= 0.05
    """
    return Gap(metric, labels)


@entry_point("in_every_group")
def in_every_group(constraint: ConstraintSpec) -> ConstraintSpec:
    """Return a constraint that must hold in every sensitive group.

    Parameters
    ----------
    constraint : constraint
        A constraint made by :func:`metricwise.at_least`, :func:`metricwise.at_most`, :func:`metricwise.between` or
        :func:`metricwise.near_prior`.

    Returns
    -------
    ConstraintSpec

    See Also
    --------
    metricwise.in_group : A constraint that must hold in one group.
    metricwise.gap : The largest difference between two groups.

    Examples
    --------
    >>> import metricwise as mw
    >>> print(mw.in_every_group(mw.at_least("accuracy", 0.8)))
    accuracy >= 0.8 in every group
    """
    return replace(_checked(constraint), over=EVERY, text="")


@entry_point("in_group")
def in_group(constraint: ConstraintSpec, group: Any) -> ConstraintSpec:
    """Return a constraint that must hold in one sensitive group.

    Parameters
    ----------
    constraint : constraint
        As in :func:`metricwise.in_every_group`.
    group : object
        Name of the group, as in `sensitive_features`; a tuple if that has several columns.

    Returns
    -------
    ConstraintSpec

    See Also
    --------
    metricwise.in_every_group : A constraint that must hold in all groups.

    Examples
    --------
    >>> import metricwise as mw
    >>> print(mw.in_group(mw.at_least("recall", 0.8), "women"))
    recall >= 0.8 in group 'women'
    """
    return replace(_checked(constraint), over=ONE, group=group, text="")


def _checked(constraint: Any) -> ConstraintSpec:
    if not isinstance(constraint, ConstraintSpec) or constraint.over is not None:
        raise InvalidType(
            "constraint",
            "be at_least(...), at_most(...), between(...) or near_prior(...), without a group",
            repr(str(constraint)),
            owner="subject_to",
        )
    return constraint


def at_least(metric: Any, bound: float, *labels: Any) -> ConstraintSpec:
    """Return the constraint that a metric must be at least as large as a bound.

    Parameters
    ----------
    metric : str or object
        A metric as in :func:`metricwise.optimize`.
    bound : float
        The lower bound.
    *labels
        The class, or the output and the class.

    Returns
    -------
    ConstraintSpec
        To be passed as `subject_to` to :func:`metricwise.optimize`.

    See Also
    --------
    metricwise.at_most : An upper bound.
    metricwise.between : A lower and an upper bound.
    metricwise.near_prior : A predicted share near the class prior.

    Examples
    --------
    >>> import metricwise as mw
    >>> print(mw.at_least("precision", 0.9, "fraud"))
    precision['fraud'] >= 0.9
    """
    return ConstraintSpec(metric, low=_number(bound), labels=labels)


def at_most(metric: Any, bound: float, *labels: Any) -> ConstraintSpec:
    """Return the constraint that a metric must be at most as large as a bound.

    Parameters
    ----------
    metric, bound, *labels
        As in :func:`metricwise.at_least`.

    Returns
    -------
    ConstraintSpec

    See Also
    --------
    metricwise.at_least : A lower bound.

    Examples
    --------
    >>> import metricwise as mw
    >>> print(mw.at_most("share", 0.1, "review"))
    share['review'] <= 0.1
    """
    return ConstraintSpec(metric, high=_number(bound), labels=labels)


def between(metric: Any, low: float, high: float, *labels: Any) -> ConstraintSpec:
    """Return the constraint that a metric must lie between two bounds.

    Parameters
    ----------
    metric : str or object
        As in :func:`metricwise.at_least`.
    low, high : float
        The bounds.
    *labels
        As in :func:`metricwise.at_least`.

    Returns
    -------
    ConstraintSpec

    See Also
    --------
    metricwise.at_least : A lower bound.

    Examples
    --------
    >>> import metricwise as mw
    >>> print(mw.between("share", 0.05, 0.1, "review"))
    0.05 <= share['review'] <= 0.1
    """
    return ConstraintSpec(metric, *_in_order(_number(low), _number(high)), labels=labels)


def near_prior(tolerance: float, *labels: Any) -> ConstraintSpec:
    """Return the constraint that the predicted share of a class must be near its share of the rows.

    Parameters
    ----------
    tolerance : float
        Largest absolute difference between the two shares.
    *labels
        The class, or the output and the class.

    Returns
    -------
    ConstraintSpec

    See Also
    --------
    metricwise.between : Bounds on a share itself.

    Examples
    --------
    >>> import metricwise as mw
    >>> print(mw.near_prior(0.02, "fraud"))
    share['fraud'] within 0.02 of prior
    """
    return ConstraintSpec("share", labels=labels, near_prior=_number(tolerance, least=0.0))


def read_constraints(subject_to: Any) -> tuple[ConstraintSpec, ...]:
    """Read text, objects, or a list of both; None is nothing.

    Examples
    --------
    >>> from metricwise.goals.constraint_text import read_constraints
    >>> [(one.metric, one.low, one.labels) for one in read_constraints("precision >= 0.9 and recall[urgent] >= 80 %")]
    [('precision', 0.9, ()), ('recall', 0.8, ('urgent',))]
    """
    if subject_to is None:
        return ()
    if isinstance(subject_to, ConstraintSpec):
        return (subject_to,)
    if isinstance(subject_to, str):
        return _read_text(subject_to)
    if not isinstance(subject_to, Iterable) or isinstance(subject_to, Mapping):
        raise InvalidType(
            "subject_to",
            problem=(
                "must be text such as 'precision >= 0.9', at_least(...), at_most(...), between(...), or a "
                f"list of these, got {type(subject_to).__name__}"
            ),
            owner="subject_to",
        )
    return tuple(spec for part in subject_to for spec in read_constraints(part))


def _read_text(text: str) -> tuple[ConstraintSpec, ...]:
    reader = Reader(text, "subject_to")
    specs = [_constraint(reader)]
    while reader.sees(_AND):
        reader.take(_AND, "'and'")
        specs.append(_constraint(reader))
    reader.end()
    return tuple(specs)


def _constraint(reader: Reader) -> ConstraintSpec:
    """Read a bound, and the groups that it is about."""
    reader.skip()
    begin = reader.at
    spec = _bounded(reader)
    if not reader.sees(_IN):
        return spec
    reader.take(_IN, "'in'")
    if spec.over is not None:
        raise reader.error("no group after a gap, which is about all groups,")
    group: Any = None
    if reader.sees(_EVERY):
        reader.take(_EVERY, "'every'")
        if reader.sees(_LABEL):
            reader.take(_LABEL, "'label'")
            return replace(spec, over=EVERY_LABEL, text=reader.text[begin : reader.at].strip())
        reader.take(_GROUP, "'group' or 'label'")
    else:
        reader.take(_GROUP, "'every group', or 'group' and its name,")
        names = [reader.label()]
        while reader.sees(_COMMA):
            reader.expect(",")
            names.append(reader.label())
        group = names[0] if len(names) == 1 else tuple(names)
    text = reader.text[begin : reader.at].strip()
    return replace(spec, over=EVERY if group is None else ONE, group=group, text=text)


def _bounded(reader: Reader) -> ConstraintSpec:
    reader.skip()
    begin, low, high = reader.at, -np.inf, np.inf
    if reader.sees(NUMBER):
        first = _read_number(reader)
        low, high = (first, np.inf) if _operator(reader) == "<=" else (-np.inf, first)
        metric, labels, over = _term(reader)
        if reader.sees(_OPERATOR) or reader.sees(_STRICT):
            same = _operator(reader) == ("<=" if np.isfinite(low) else ">=")
            if not same:
                raise reader.error("a bound on the other side, as in 0.1 <= share[review] <= 0.2")
            second = _read_number(reader)
            low, high = _in_order(*((low, second) if np.isfinite(low) else (second, high)))
        return ConstraintSpec(metric, low, high, labels, text=reader.text[begin : reader.at].strip(), over=over)
    metric, labels, over = _term(reader)
    if reader.sees(_WITHIN):
        reader.take(_WITHIN, "'within'")
        tolerance = _number(_read_number(reader), least=0.0)
        for word in ("of", "prior"):
            reader.take(re.compile(rf"{word}\b"), repr(word))
        if metric != "share" or over is not None:
            raise InvalidParameter(
                "subject_to",
                problem=f"'within ... of prior' is only for a share, got {reader.text[begin : reader.at]!r}",
                owner="subject_to",
            )
        return ConstraintSpec(metric, labels=labels, near_prior=tolerance, text=reader.text[begin : reader.at].strip())
    if _operator(reader) == ">=":
        low = _read_number(reader)
    else:
        high = _read_number(reader)
    return ConstraintSpec(metric, low, high, labels, text=reader.text[begin : reader.at].strip(), over=over)


def _term(reader: Reader) -> tuple[str, tuple[Any, ...], str | None]:
    name = reader.take(NAME, "the name of a metric, such as recall")
    labels = reader.in_brackets(most=2) if reader.sees(re.compile(r"\[")) else []
    over = None
    if reader.sees(_GAP):
        reader.take(_GAP, "'gap'")
        over = GAP
    return name, tuple(labels), over


def _operator(reader: Reader) -> str:
    sign = reader.take(_OPERATOR, "'>=' or '<='")
    return {"≥": ">=", "≤": "<="}.get(sign, sign)


def _read_number(reader: Reader) -> float:
    value = float(reader.take(NUMBER, "a number, such as 0.9 or 90 %,"))
    if reader.sees(re.compile("%")):
        reader.expect("%")
        value /= 100
    return value


def _number(bound: Any, least: float = -np.inf) -> float:
    if isinstance(bound, bool) or not isinstance(bound, (int, float, np.number)) or not least <= bound < np.inf:
        raise InvalidParameter(
            "subject_to",
            problem=f"a bound must be a finite number{', at least 0' if least == 0 else ''}, got {bound!r}",
            owner="subject_to",
        )
    return float(bound)


def _in_order(low: float, high: float) -> tuple[float, float]:
    if low > high:
        raise InvalidParameter(
            "subject_to",
            problem=f"the lower bound must not exceed the upper one, got {low:g} and {high:g}",
            owner="subject_to",
        )
    return low, high
