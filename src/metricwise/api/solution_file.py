"""Solutions as JSON: all that was found, for another process or another day.

Owns how each field of a solution is written and read. Rules write themselves; the rows that were solved for are left
out. Nothing that is read is ever run. JSON has no NaN and no infinity: they are the texts "NaN", "Infinity" and
"-Infinity" here.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter
from ..core.label_rows import MAX_LABELS
from ..core.notes import Note, NoteKind, note_list
from ..inference.label_summary import LabelSummary
from ..inference.results import Candidate, ConstraintResult, Estimate, Gain, Recorded
from ..inspection.view import View
from ..rules import codec
from ..rules.load import rule_from_dict
from ..rules.metadata import as_float
from ..solvers.result import Certificate, Outcome

__all__ = ["fields_of", "read_fields", "to_document"]

FORMAT = "metricwise-solution"
VERSION = 2
_WHAT = "the solution"
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DEEPEST = 4  # dimensions of an array
_MAX_LISTED = 4000  # numbers of an array that are written as lists; more are packed
_MAX_PACKED = 4 * MAX_LABELS  # numbers of the largest array, the confusions of labels
_LATER = ("by_label",)  # fields that older files do not have, and that are left out where there is nothing

T = TypeVar("T")
E = TypeVar("E", bound=Enum)


def to_document(view: View) -> dict[str, Any]:
    """Return a solution as JSON types; :func:`read_fields` gives its fields back exactly."""
    written = {name: kind.write(getattr(view, name)) for name, kind in _FIELDS.items()}
    written = {name: value for name, value in written.items() if value is not None or name not in _LATER}
    proved = {name: kind.write(getattr(view.certificate, name)) for name, kind in _CERTIFICATE.items()}
    return {"format": FORMAT, "version": VERSION, **written, **proved}


def read_fields(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the fields of the solution in a file, or in JSON text, every one of which is checked."""
    text = codec.read_text(path, _WHAT)
    return fields_of(codec.read_object(codec.parse(text, _WHAT), _WHAT))


def fields_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the solution in a document, every one of which is checked."""
    read = codec.read_object(document, _WHAT)
    codec.check_envelope(read, FORMAT, VERSION, _WHAT)
    if read["version"] == 1:
        read = _from_first_version(read)
    read = {**dict.fromkeys(_LATER), **read}
    codec.check_keys(read, ("format", "version", *_FIELDS, *_CERTIFICATE), _WHAT)
    fields = {name: kind.read(read[name], name) for name, kind in _FIELDS.items()}
    proved = {name: kind.read(read[name], name) for name, kind in _CERTIFICATE.items()}
    by_label, n_outputs = fields["by_label"], fields["rule"].n_outputs
    if by_label is not None and by_label.n_labels != n_outputs:
        raise InvalidParameter("by_label", f"be about the {n_outputs} labels of the rule", by_label.n_labels)
    return {**fields, "certificate": Certificate(**proved)}


def _from_first_version(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document of version 1, which had one text instead of notes, as one of version 2."""
    codec.check_keys(
        document, ("format", "version", "status", *(_FIELDS.keys() - {"notes", *_LATER}), *_CERTIFICATE), _WHAT
    )
    status = _read_text(document["status"], "status")
    notes = _NOTES.write(note_list(NoteKind.OUTCOME, status))
    return {name: value for name, value in document.items() if name != "status"} | {"notes": notes}


# ---------------------------------------------------------------------------------------------------- kinds of fields


class _Kind(NamedTuple):
    """How values of a field are written, and read from what stands under a name."""

    write: Callable[[Any], Any]
    read: Callable[[Any, str], Any]


def _refuse(name: str, expected: str, value: Any) -> ValueError:
    return InvalidParameter(name, f"be {expected}", codec.shown(value))


def _write_number(value: float) -> float | str:
    value = float(value)
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _read_number(value: Any, name: str) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    number = as_float(value)
    if number is None or not math.isfinite(number):
        raise _refuse(name, "a number, 'NaN', 'Infinity' or '-Infinity'", value)
    return number


def _write_array(value: NDArray[Any]) -> Any:
    if value.size > _MAX_LISTED:
        return codec.write_packed_array(value)
    return _write_list(value)


def _write_list(value: NDArray[Any]) -> Any:
    return [_write_list(part) for part in value] if value.ndim else _write_number(float(value))


def _read_array(value: Any, name: str) -> NDArray[np.float64]:
    def numbers(part: Any, depth: int) -> Any:
        if not isinstance(part, list):
            return _read_number(part, name)
        if depth == _DEEPEST:
            raise _refuse(name, f"an array of at most {_DEEPEST} dimensions", value)
        return [numbers(row, depth + 1) for row in part]

    if isinstance(value, dict):
        return codec.read_packed_array(value, name, _MAX_PACKED, _DEEPEST)
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


def _member(enum: type[E]) -> _Kind:
    """A member of an enumeration, by its value."""
    values = [member.value for member in enum]

    def read(value: Any, name: str) -> E:
        if value not in values:
            raise _refuse(name, f"one of {values}", value)
        return enum(value)

    return _Kind(lambda member: member.value, read)


def _read_counted(value: Any, name: str) -> str:
    if value not in ("labels", "expected"):
        raise _refuse(name, "'labels' or 'expected'", value)
    return str(value)


def _read_whole(value: Any, name: str) -> int:
    return codec.read_int(value, name)


def _read_rule(value: Any, name: str) -> Any:
    return rule_from_dict(codec.read_object(value, name))


def _write_group(name: Any) -> list[Any]:
    labels = np.empty(len(name) if isinstance(name, tuple) else 1, dtype=object)
    labels[:] = name if isinstance(name, tuple) else (name,)
    return codec.json_labels(labels, "by_group")


def _read_group(value: Any, name: str) -> Any:
    labels = codec.read_labels(value, name).tolist()
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
        return tuple(kind.read(entry, f"{name}[{place}]") for place, entry in enumerate(value))

    return _Kind(lambda values: [kind.write(entry) for entry in values], read)


def _by_name(kind: _Kind) -> _Kind:
    def read(value: Any, name: str) -> dict[str, Any]:
        return {key: kind.read(entry, f"{name}.{key}") for key, entry in codec.read_object(value, name).items()}

    return _Kind(lambda values: {key: kind.write(entry) for key, entry in values.items()}, read)


_ADDED = ("guarantee",)  # fields that files of earlier versions lack


def _record(made: type[T], **kinds: _Kind) -> _Kind:
    """A dataclass, all of its fields by name."""

    def read(value: Any, name: str) -> T:
        document = codec.read_object(value, name)
        codec.check_keys(document, list(kinds), name, _ADDED)
        return made(
            **{key: kind.read(document[key], f"{name}.{key}") for key, kind in kinds.items() if key in document}
        )

    return _Kind(lambda entry: {key: kind.write(getattr(entry, key)) for key, kind in kinds.items()}, read)


class _OfGroup(NamedTuple):
    """What is known of a group: names are numbers, booleans and tuples too, which are no keys in JSON."""

    group: Any
    values: Any


def _by_group(kind: _Kind) -> _Kind:
    parts = _several(_record(_OfGroup, group=_Kind(_write_group, _read_group), values=kind))

    def read(value: Any, name: str) -> dict[Any, Any]:
        entries = parts.read(value, name)
        groups = {entry.group: entry.values for entry in entries}
        if len(groups) < len(entries):
            raise _refuse(name, "about each group once", [entry.group for entry in entries])
        return groups

    return _Kind(lambda groups: parts.write([_OfGroup(*entry) for entry in groups.items()]), read)


_NUMBER = _Kind(_write_number, _read_number)
_TEXT = _Kind(str, _read_text)
_ARRAY = _Kind(_write_array, _read_array)
_INTERVAL = {"estimate": _NUMBER, "low": _NUMBER, "high": _NUMBER}
_ESTIMATE = _record(Estimate, **_INTERVAL)
_CANDIDATE = _record(
    Candidate, recipe=_TEXT, value=_NUMBER, gain=_NUMBER, std_error=_NUMBER, recorded=_by_name(_NUMBER)
)
_RECORDED = _by_name(_record(Recorded, value=_NUMBER, baseline=_NUMBER))
_CONSTRAINT = _record(
    ConstraintResult,
    name=_TEXT,
    low=_NUMBER,
    high=_NUMBER,
    value=_NUMBER,
    margin=_NUMBER,
    confidence=_optional(_NUMBER),
    on_new_rows=_optional(_ESTIMATE),
    price=_optional(_NUMBER),
    guarantee=_optional(_TEXT),
)

_BY_LABEL = _record(
    LabelSummary,
    metric=_TEXT,
    true=_ARRAY,
    predicted=_ARRAY,
    hits=_ARRAY,
    value=_ARRAY,
    baseline_predicted=_ARRAY,
    baseline_hits=_ARRAY,
    baseline=_ARRAY,
    total=_NUMBER,
    n_entries=_Kind(int, _read_whole),
    unstored=_NUMBER,
)

_NOTES = _several(_record(Note, kind=_member(NoteKind), text=_TEXT))

_FIELDS: dict[str, _Kind] = {
    "rule": _Kind(lambda rule: rule.to_dict(), _read_rule),
    "value": _NUMBER,
    "baseline": _NUMBER,
    "confusion": _ARRAY,
    "outcome": _member(Outcome),
    "notes": _NOTES,
    "counted": _Kind(str, _read_counted),
    "n_passes": _Kind(int, _read_whole),
    "history": _several(_NUMBER),
    "gain": _optional(_record(Gain, **_INTERVAL)),
    "value_on_new_rows": _optional(_ESTIMATE),
    "threshold_range": _optional(_ARRAY),
    "candidates": _several(_CANDIDATE),
    "recorded": _RECORDED,
    "constraints": _several(_CONSTRAINT),
    "by_group": _by_group(_RECORDED),
    "by_label": _optional(_BY_LABEL),
}

# Fields of the certificate, which stand beside the others in a file.
_CERTIFICATE: dict[str, _Kind] = {
    "optimized_value": _NUMBER,
    "upper_bound": _optional(_NUMBER),
    "alternative": _optional(_NUMBER),
    "level": _optional(_ARRAY),
    "threshold": _optional(_ARRAY),
}
