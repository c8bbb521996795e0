"""Rules as JSON: the envelope, and strict readers of fields.

Owns the text. Knows JSON, labels and arrays; each rule says which fields it has. Nothing that is read is ever run.
Rules that never meet a file are most of them: what only files need is imported where it is used.
"""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType
from ..core.labels import python_labels

__all__ = [
    "FORMAT",
    "VERSION",
    "as_float",
    "check_envelope",
    "check_fields",
    "check_keys",
    "dump",
    "label_array",
    "parse",
    "plain",
    "plain_labels",
    "read_bool",
    "read_facts",
    "read_int",
    "read_label",
    "read_labels",
    "read_list",
    "read_names",
    "read_numbers",
    "read_object",
    "read_text",
    "shown",
]

FORMAT = "metricwise-rule"
VERSION = 1
_ENVELOPE = ("format", "version", "kind")
_DEPTH = 64  # of facts within facts; a rule needs few levels, and Python's own limit depends on who calls
_BITS = 10_000  # of an integer; Python writes and reads some 4,300 digits
_MAX_SHOWN_PATH = 400  # characters of a path that messages show whole

Label = str | int | float | bool


# ------------------------------------------------------------------------------------------------------- write


def plain_labels(labels: NDArray[Any], field: str = "classes") -> list[Label]:
    """Return labels as the JSON types that keep them apart: text, integers, floats and booleans."""
    values = python_labels(labels)
    for value in values:
        if type(value) not in (str, int, float, bool):
            raise InvalidType(
                field,
                "be text, integers, floats or booleans to be written as JSON",
                f"{value!r} ({type(value).__name__})",
                "convert the labels, for instance with str()",
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidParameter(field, "be finite to be written as JSON", repr(value))
        if isinstance(value, int):
            _check_size(value, field)
    return values


def _check_size(value: int, field: str) -> None:
    if value.bit_length() > _BITS:
        raise InvalidParameter(field, "hold integers of moderate size", f"one of {value.bit_length()} bits")


def plain(value: Any, field: str, depth: int = _DEPTH) -> Any:
    """Return `value` in JSON's own types, or refuse it; `depth` is how far lists and objects may still nest."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        _check_size(value, field)
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise InvalidParameter(field, "be finite to be written as JSON", repr(value))
    if depth == 0:
        top = field.partition(".")[0]
        raise InvalidParameter(top, problem=f"{top} must nest lists and objects at most {_DEPTH} deep, got more")
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), field, depth)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(item, f"{field}.{key}", depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, field, depth - 1) for item in value]
    raise InvalidType(field, "hold JSON values under text keys", type(value).__name__)


def dump(document: Mapping[str, Any], path: str | os.PathLike[str] | None) -> str:
    """Return the JSON text of a rule; with `path`, also write it there: see :func:`.files.write_text`."""
    text = _json_text(document)
    if path is not None:
        from ..core.files import write_text

        write_text(path, text)
    return text


def _json_text(document: Mapping[str, Any]) -> str:
    import json

    text = json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half a character, which only an escape can carry
        text = json.dumps(document, indent=2, allow_nan=False)
    # Rows of numbers on one line are for the reader. A line break is never inside a JSON text, so this touches none.
    return re.sub(r"\[\n\s*([^\[\]{}\"]*?)\n\s*\]", lambda row: f"[{' '.join(row[1].split())}]", text) + "\n"


# -------------------------------------------------------------------------------------------------------- read


def read_text(source: str | os.PathLike[str], what: str = "the rule") -> str:
    """Return `source` if it is JSON text, else the content of the file it names; `what` it is, for messages."""
    if isinstance(source, str) and source.lstrip().startswith(("{", "[")):
        return source
    if not isinstance(source, (str, os.PathLike)):
        raise InvalidType(what, "be a path or JSON text", type(source).__name__)
    if not os.fspath(source):
        raise InvalidParameter(what, "be a path or JSON text", "an empty text")
    from pathlib import Path

    try:
        return Path(source).read_text(encoding="utf-8-sig")  # editors may add a mark
    except UnicodeDecodeError:
        raise InvalidParameter(
            "", problem=f"{os.fspath(source)} must be a JSON file in UTF-8, got other bytes"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: the character NUL, which no path has
        if isinstance(error, OSError) and error.errno not in (errno.ENOENT, errno.ENAMETOOLONG):
            raise
        name = str(os.fspath(source))
        name = name if name.isprintable() and len(name) <= _MAX_SHOWN_PATH else shown(name).strip("'")
        raise FileNotFoundError(
            errno.ENOENT, f"No such file, nor JSON text of {what}, which starts with '{{'", name
        ) from None


def parse(text: str, what: str = "the rule") -> Any:
    """Parse JSON strictly: no NaN, no infinity, no key twice."""
    import json

    def refuse_constant(name: str) -> NoReturn:
        raise _RefusedError(f"numbers must be finite, got {name}.")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise _RefusedError(f"each field must be given once, got {shown(key)} twice.")
            found[key] = value
        return found

    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique)
    except _RefusedError as error:
        raise InvalidParameter("", problem=str(error)) from None
    except json.JSONDecodeError as error:
        raise InvalidParameter(
            what,
            "be JSON",
            f"text that is truncated or invalid at line {error.lineno}, column {error.colno} ({error.msg})",
        ) from None
    except (RecursionError, ValueError):  # nested without end, or an integer of thousands of digits
        raise InvalidParameter(what, "be JSON without very deep nesting or very long numbers", "one of these") from None


class _RefusedError(Exception):
    """Valid JSON for Python, but not for a rule."""


def read_object(value: Any, field: str) -> dict[str, Any]:
    """Check that a field is a JSON object."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        _refuse(field, "an object", value)
    return dict(value)


def check_envelope(document: dict[str, Any], form: str, newest: int, what: str) -> None:
    """Check that a document is of a format, and of a version that is known."""
    if document.get("format") != form:
        _refuse("format", repr(form), document.get("format"))
    version = document.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        _refuse("version", f"an integer from 1 to {newest}", version)
    if version > newest:
        raise InvalidParameter(
            "version",
            f"be at most {newest}",
            shown(version),
            f"{what} was written by a newer version of metricwise; upgrade metricwise",
        )


def check_fields(document: dict[str, Any], kind: str, required: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Check the envelope of a rule and that it has exactly the fields of its kind; some may be left out."""
    check_envelope(document, FORMAT, VERSION, "the rule")
    if document.get("kind") != kind:
        _refuse("kind", repr(kind), document.get("kind"))
    given = [name for name in optional if name in document]
    check_keys(document, (*_ENVELOPE, *required, *given), "the rule")


def check_keys(document: dict[str, Any], names: Sequence[str], field: str) -> None:
    """Check that an object has exactly these fields."""
    for name in names:
        if name not in document:
            raise InvalidParameter(field, f"have the field {name!r}", shown(sorted(document)))
    unknown = sorted(set(document) - set(names))
    if unknown:
        raise InvalidParameter(field, f"have only the fields {list(names)}", f"also {shown(unknown[0])}")


def read_bool(value: Any, field: str) -> bool:
    """Check that a field is true or false."""
    if not isinstance(value, bool):
        _refuse(field, "true or false", value)
    return value


def read_int(value: Any, field: str) -> int:
    """Check that a field is an integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        _refuse(field, "an integer", value)
    return value


def read_list(value: Any, field: str) -> list[Any]:
    """Check that a field is a list that is not empty."""
    if not isinstance(value, list) or not value:
        _refuse(field, "a non-empty list", value)
    return value


def read_numbers(value: Any, field: str, ndim: int) -> NDArray[np.float64]:
    """Read nested lists of finite numbers as an array of `ndim` dimensions."""
    _check_nested(value, field, ndim)
    try:
        array = np.array(value, dtype=np.float64)
    except ValueError:
        _refuse(field, f"a regular array of {ndim} dimensions", value)
    except OverflowError:  # an integer that no float is as large as
        raise InvalidParameter(field, "hold numbers of up to 1.8e308", "a larger one") from None
    if not np.isfinite(array).all():  # 1e999 is valid JSON
        raise InvalidParameter(field, "be finite", "NaN or infinity")
    return array


def as_float(value: Any) -> float | None:
    """Return a number as a float; None for what is none, also for an integer that no float is as large as."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _check_nested(value: Any, field: str, ndim: int) -> None:
    if ndim == 0:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            _refuse(field, "made of numbers", value)
        return
    for item in read_list(value, field):
        _check_nested(item, field, ndim - 1)


def read_labels(value: Any, field: str) -> NDArray[Any]:
    """Read the labels of one output; mixed types stay apart."""
    labels = read_list(value, field)
    for label in labels:
        if not isinstance(label, (str, int, float)) or (isinstance(label, float) and not math.isfinite(label)):
            _refuse(field, "made of text, finite numbers or booleans", label)
    return label_array(labels)


def read_label(value: Any, field: str = "abstain_label") -> Label:
    """Read one label."""
    return python_labels(read_labels([value], field))[0]  # type: ignore[no-any-return]  # checked there


def label_array(labels: list[Any]) -> NDArray[Any]:
    """Labels as a 1-D array; an object array where NumPy would change the type of one of them."""
    if len({type(label) for label in labels}) == 1:
        array = np.array(labels)
        # NumPy cuts trailing NULs off text and turns some pairs of integers into floats.
        if array.tolist() == labels and all(type(a) is type(b) for a, b in zip(array.tolist(), labels, strict=True)):
            return array
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def read_names(value: Any, field: str) -> tuple[str, ...]:
    """Check that a field is a list of distinct texts."""
    names = read_list(value, field)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        _refuse(field, "a list of distinct texts", value)
    return tuple(names)


def read_facts(value: Any, field: str = "facts") -> dict[str, Any]:
    """Read the facts of a rule: any JSON object of finite numbers."""
    return dict(plain(read_object(value, field), field))


def _refuse(field: str, expected: str, value: Any) -> NoReturn:
    raise InvalidParameter(field, f"be {expected}", shown(value))


def shown(value: Any) -> str:
    """Return a value as it is said in a message: not all of it where it is long."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested without end, or an integer of thousands of digits
        return f"a {type(value).__name__} too large to show"
    return text if len(text) <= 80 else text[:77] + "..."
