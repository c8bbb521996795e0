"""Solutions as JSON: all that a solver found, for another process or another day.

Owns how each field of a Solution is written and read. Rules write themselves; the rows that were solved for are left
out. Nothing that is read is ever run. JSON has no NaN and no infinity: they are the texts "NaN", "Infinity" and
"-Infinity" here.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, entry_point
from ..core.views import above
from ..rules import CostRule, serialize
from ..rules.load import rule_from_dict
from .base import Candidate, Estimate, Gain, Outcome, Promise, Recorded, Solution

__all__ = ["from_dict", "load_solution", "to_dict"]

FORMAT = "metricwise-solution"
VERSION = 1
_WHAT = "the solution"
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DEEPEST = 4  # dimensions of an array

T = TypeVar("T")


@entry_point("load_solution")
def load_solution(path: str | os.PathLike[str]) -> Solution:
    """Load a solution that was saved with :meth:`Solution.save`.

    Every field is checked, and no code from the file is executed.

    Parameters
    ----------
    path : path, or JSON text
        The file, or its content.

    Returns
    -------
    Solution
        A CostSolution if the rule is for costs per row. Its `problem` is None, because the file does not contain the
        rows.

    See Also
    --------
    metricwise.load_rule : Load a rule.
    Solution.save : Save a solution.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.solvers.solution_file import to_dict
    >>> import json
    >>> solution = mw.optimize([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], "f1",
    ...     strategy=mw.Strategy(recalibrate=False, confusion="labels"))
    >>> again = mw.load_solution(json.dumps(to_dict(solution)))
    >>> again.value == solution.value, again.status == solution.status
    (True, True)
    """
    text = serialize.read_text(path, _WHAT)
    return from_dict(serialize.read_object(serialize.parse(text, _WHAT), _WHAT))


def to_dict(solution: Solution) -> dict[str, Any]:
    """Return a solution as JSON types; :func:`from_dict` gives it back exactly.

    Parameters
    ----------
    solution : Solution

    Returns
    -------
    dict
    """
    written = {name: kind.write(getattr(solution, name)) for name, kind in _FIELDS.items()}
    return {"format": FORMAT, "version": VERSION, **written}


def from_dict(document: Mapping[str, Any]) -> Solution:
    """Return the solution of a document, every field of which is checked.

    Parameters
    ----------
    document : mapping

    Returns
    -------
    Solution
    """
    read = serialize.read_object(document, _WHAT)
    serialize.check_envelope(read, FORMAT, VERSION, _WHAT)
    serialize.check_keys(read, ("format", "version", *_FIELDS), _WHAT)
    fields = {name: kind.read(read[name], name) for name, kind in _FIELDS.items()}
    made = above("fitting.example_costs").CostSolution if isinstance(fields["rule"], CostRule) else Solution
    return made(**fields)


# ---------------------------------------------------------------------------------------------------- kinds of fields


class _Kind(NamedTuple):
    """How values of a field are written, and read from what stands under a name."""

    write: Callable[[Any], Any]
    read: Callable[[Any, str], Any]


def _refuse(name: str, expected: str, value: Any) -> ValueError:
    return InvalidParameter(name, f"be {expected}", serialize.shown(value))


def _write_number(value: float) -> float | str:
    value = float(value)
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _read_number(value: Any, name: str) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    number = serialize.as_float(value)
    if number is None or not math.isfinite(number):
        raise _refuse(name, "a number, 'NaN', 'Infinity' or '-Infinity'", value)
    return number


def _write_array(value: NDArray[Any]) -> Any:
    return [_write_array(part) for part in value] if value.ndim else _write_number(float(value))


def _read_array(value: Any, name: str) -> NDArray[np.float64]:
    def numbers(part: Any, depth: int) -> Any:
        if not isinstance(part, list):
            return _read_number(part, name)
        if depth == _DEEPEST:
            raise _refuse(name, f"an array of at most {_DEEPEST} dimensions", value)
        return [numbers(one, depth + 1) for one in part]

    if not isinstance(value, list):
        raise _refuse(name, "an array", value)
    try:
        return np.array(numbers(value, 0), dtype=np.float64)
    except InvalidParameter:
        raise
    except ValueError:
        raise _refuse(name, "a regular array", value) from None


def _read_text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise _refuse(name, "text", value)
    return value


def _read_outcome(value: Any, name: str) -> Outcome:
    values = [one.value for one in Outcome]
    if value not in values:
        raise _refuse(name, f"one of {values}", value)
    return Outcome(value)


def _read_counted(value: Any, name: str) -> str:
    if value not in ("labels", "expected"):
        raise _refuse(name, "'labels' or 'expected'", value)
    return str(value)


def _read_whole(value: Any, name: str) -> int:
    return serialize.read_int(value, name)


def _read_rule(value: Any, name: str) -> Any:
    return rule_from_dict(serialize.read_object(value, name))


@entry_point("Solution.save")
def _write_group(name: Any) -> list[Any]:
    labels = np.empty(len(name) if isinstance(name, tuple) else 1, dtype=object)
    labels[:] = name if isinstance(name, tuple) else (name,)
    return serialize.plain_labels(labels, "by_group")


def _read_group(value: Any, name: str) -> Any:
    labels = serialize.read_labels(value, name).tolist()
    return tuple(labels) if len(labels) > 1 else labels[0]


def _optional(kind: _Kind) -> _Kind:
    return _Kind(
        lambda value: None if value is None else kind.write(value),
        lambda value, name: None if value is None else kind.read(value, name),
    )


def _several(kind: _Kind) -> _Kind:
    def read(value: Any, name: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _refuse(name, "a list", value)
        return tuple(kind.read(one, f"{name}[{place}]") for place, one in enumerate(value))

    return _Kind(lambda values: [kind.write(one) for one in values], read)


def _by_name(kind: _Kind) -> _Kind:
    def read(value: Any, name: str) -> dict[str, Any]:
        return {key: kind.read(one, f"{name}.{key}") for key, one in serialize.read_object(value, name).items()}

    return _Kind(lambda values: {key: kind.write(one) for key, one in values.items()}, read)


def _record(made: type[T], **kinds: _Kind) -> _Kind:
    """A dataclass, all of its fields by name."""

    def read(value: Any, name: str) -> T:
        document = serialize.read_object(value, name)
        serialize.check_keys(document, list(kinds), name)
        return made(**{key: kind.read(document[key], f"{name}.{key}") for key, kind in kinds.items()})

    return _Kind(lambda one: {key: kind.write(getattr(one, key)) for key, kind in kinds.items()}, read)


class _OfGroup(NamedTuple):
    """What is known of a group: names are numbers, booleans and tuples too, which are no keys in JSON."""

    group: Any
    values: Any


def _by_group(kind: _Kind) -> _Kind:
    parts = _several(_record(_OfGroup, group=_Kind(_write_group, _read_group), values=kind))

    def read(value: Any, name: str) -> dict[Any, Any]:
        found = parts.read(value, name)
        groups = {one.group: one.values for one in found}
        if len(groups) < len(found):
            raise _refuse(name, "about each group once", [one.group for one in found])
        return groups

    return _Kind(lambda groups: parts.write([_OfGroup(*one) for one in groups.items()]), read)


_NUMBER = _Kind(_write_number, _read_number)
_TEXT = _Kind(str, _read_text)
_ARRAY = _Kind(_write_array, _read_array)
_INTERVAL = {"estimate": _NUMBER, "low": _NUMBER, "high": _NUMBER}
_ESTIMATE = _record(Estimate, **_INTERVAL)
_CANDIDATE = _record(
    Candidate, recipe=_TEXT, value=_NUMBER, gain=_NUMBER, std_error=_NUMBER, recorded=_by_name(_NUMBER)
)
_RECORDED = _by_name(_record(Recorded, value=_NUMBER, baseline=_NUMBER))
_PROMISE = _record(
    Promise,
    name=_TEXT,
    low=_NUMBER,
    high=_NUMBER,
    value=_NUMBER,
    margin=_NUMBER,
    confidence=_optional(_NUMBER),
    on_new_rows=_optional(_ESTIMATE),
    price=_optional(_NUMBER),
)

_FIELDS: dict[str, _Kind] = {
    "rule": _Kind(lambda rule: rule.to_dict(), _read_rule),
    "value": _NUMBER,
    "baseline": _NUMBER,
    "confusion": _ARRAY,
    "optimized_value": _NUMBER,
    "status": _TEXT,
    "n_passes": _Kind(int, _read_whole),
    "outcome": _Kind(lambda outcome: outcome.value, _read_outcome),
    "counted": _Kind(str, _read_counted),
    "history": _several(_NUMBER),
    "upper_bound": _optional(_NUMBER),
    "gain": _optional(_record(Gain, **_INTERVAL)),
    "value_on_new_rows": _optional(_ESTIMATE),
    "threshold_range": _optional(_ARRAY),
    "alternative": _optional(_NUMBER),
    "level": _optional(_ARRAY),
    "threshold": _optional(_ARRAY),
    "candidates": _several(_CANDIDATE),
    "recorded": _RECORDED,
    "constraints": _several(_PROMISE),
    "by_group": _by_group(_RECORDED),
}
