"""Rules as JSON: the text, strict readers of values, and the fields that all kinds of rules share.

A field declares its JSON Schema beside its reader and writer, so that the schema of files is generated (``load.py``).
Nothing that is read is ever executed.
"""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType
from ..core.inputs import KINDS
from ..core.label_rows import MAX_LABELS
from ..core.labels import python_labels
from ..core.losses import Loss
from ..core.ordinal_map import OrdinalMap
from .calibration import TemperatureScaling

FORMAT = "metricwise-rule"
VERSION = 1
_ENVELOPE = ("format", "version", "kind")
_MAX_DEPTH = 64  # of lists and objects in metadata; Python's own limit depends on the caller
_MAX_BITS = 10_000  # of an integer; Python writes and reads some 4,300 digits
_MAX_SHOWN_PATH = 400  # characters of a path that messages show whole

Json = Mapping[str, Any]
Label = str | int | float | bool
Decision = tuple[Loss, TemperatureScaling | None]


# ------------------------------------------------------------------------------------------------------- write


def json_labels(labels: NDArray[Any], field: str = "classes") -> list[Label]:
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
    if value.bit_length() > _MAX_BITS:
        raise InvalidParameter(field, "hold integers of moderate size", f"one of {value.bit_length()} bits")


def json_value(value: Any, field: str, depth: int = _MAX_DEPTH) -> Any:
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
        raise InvalidParameter(top, problem=f"{top} must nest lists and objects at most {_MAX_DEPTH} deep, got more")
    if isinstance(value, np.ndarray):
        return json_value(value.tolist(), field, depth)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: json_value(item, f"{field}.{key}", depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item, field, depth - 1) for item in value]
    raise InvalidType(field, "hold JSON values under text keys", type(value).__name__)


def dump(document: Mapping[str, Any], path: str | os.PathLike[str] | None) -> str:
    """Return the JSON text of a rule; with `path`, also write it there."""
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
    except UnicodeEncodeError:  # half a surrogate pair, which needs an escape
        text = json.dumps(document, indent=2, allow_nan=False)
    # Rows of numbers on one line, for readability; strings cannot contain line breaks.
    return re.sub(r"\[\n\s*([^\[\]{}\"]*?)\n\s*\]", lambda row: f"[{' '.join(row[1].split())}]", text) + "\n"


# -------------------------------------------------------------------------------------------------------- read


def read_text(source: str | os.PathLike[str], what: str = "the rule") -> str:
    """Return `source` if it is JSON text, else the content of the file; messages name it `what`."""
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
        document: dict[str, Any] = {}
        for key, value in pairs:
            if key in document:
                raise _RefusedError(f"each field must be given once, got {shown(key)} twice.")
            document[key] = value
        return document

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
    """Check the format and the version of a document."""
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
    """Check that a document is a rule of a kind and has exactly its fields; optional ones may be left out."""
    check_envelope(document, FORMAT, VERSION, "the rule")
    if document.get("kind") != kind:
        _refuse("kind", repr(kind), document.get("kind"))
    present = [name for name in optional if name in document]
    check_keys(document, (*_ENVELOPE, *required, *present), "the rule")


def check_keys(document: dict[str, Any], names: Sequence[str], field: str, optional: Collection[str] = ()) -> None:
    """Check that an object has exactly these fields, of which those of newer versions may be missing."""
    for name in names:
        if name not in document and name not in optional:
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


def read_seed(value: Any, field: str) -> int:
    """Check that a field is a seed of randomised rules."""
    if not 0 <= read_int(value, field) < 2**64:
        _refuse(field, "an integer from 0 to 2**64 - 1", value)
    return int(value)


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


def _refuse(field: str, expected: str, value: Any) -> NoReturn:
    raise InvalidParameter(field, f"be {expected}", shown(value))


def shown(value: Any) -> str:
    """Return a value for a message, cut where it is long."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested without end, or an integer of thousands of digits
        return f"a {type(value).__name__} too large to show"
    return text if len(text) <= 80 else text[:77] + "..."


# ------------------------------------------------------------------------------------------------------------- fields

LABEL_SCHEMA: Json = {"type": ["string", "number", "boolean"]}
_NUMBER: Json = {"type": "number"}


@dataclass(frozen=True)
class JsonField:
    """A field of a rule's document: JSON Schema, reader and writer of its value; left out if optional and None."""

    name: str
    schema: Json
    read: Callable[[Any, str], Any]
    write: Callable[[Any, str], Any] = json_value
    optional: bool = False


def nullable(read: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """Return a reader that accepts None."""
    return lambda value, name: None if value is None else read(value, name)


def array_of(items: Json, **limits: Any) -> dict[str, Any]:
    """Return the JSON Schema of a list that is not empty."""
    return {"type": "array", "minItems": 1, **limits, "items": items}


def object_of(properties: Json, description: str = "", optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return the JSON Schema of an object of these fields."""
    return {
        **({"description": description} if description else {}),
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


# ------------------------------------------------------------------------------------------- outputs and their classes


def _write_classes(classes: Any, name: str) -> Any:
    return [json_labels(labels, name) for labels in classes]


def _read_classes(value: Any, name: str) -> Any:
    outputs = read_list(value, name)
    return tuple(read_labels(labels, f"{name}[{m}]") for m, labels in enumerate(outputs))


CLASSES = JsonField(
    "classes",
    {
        "description": "For each output, the label of each class, in the order of the columns of probabilities.",
        **array_of({"type": "array", "minItems": 2, "items": LABEL_SCHEMA}),
    },
    _read_classes,
    _write_classes,
)
MULTIOUTPUT = JsonField(
    "multioutput",
    {"description": "Whether decisions about a row are a list, one for each output.", "type": "boolean"},
    read_bool,
)
NORMALIZE = JsonField(
    "normalize",
    {
        "description": "Whether the rule takes non-negative scores, and divides each row by its sum first.",
        "type": "boolean",
    },
    read_bool,
)
NAMES_SCHEMA: Json = {"oneOf": [{"type": "null"}, array_of({"type": "string"}, uniqueItems=True)]}
OUTPUT_NAMES = JsonField("output_names", NAMES_SCHEMA, nullable(read_names))
ABSTAIN_LABEL = JsonField(
    "abstain_label",
    {
        "description": "Label of an abstention: one more decision for every output, after its classes. Omitted if the "
        "rule never abstains.",
        **LABEL_SCHEMA,
    },
    read_label,
    optional=True,
)


def _read_input(value: Any, name: str) -> str:
    if value not in KINDS or not isinstance(value, str):
        _refuse(name, f"one of {', '.join(map(repr, KINDS))}", value)
    return value


INPUT = JsonField(
    "input",
    {
        "description": "What the numbers of rows are; omitted for probabilities. Links take all others for logits: eta "
        "is softmax(temperature[m] * z + bias[m]), and single columns are log-odds of the second class.",
        "enum": list(KINDS),
    },
    _read_input,
    optional=True,
)


def _read_ordinal_map(value: Any, name: str) -> OrdinalMap:
    document = read_object(value, name)
    bent = tuple(key for key in ("knots", "heights") if key in document)
    check_keys(document, ("slope", "intercepts", *bent), name)
    slope = float(read_numbers(document["slope"], f"{name}.slope", 0))
    return OrdinalMap(slope, *(read_numbers(document[key], f"{name}.{key}", 1) for key in ("intercepts", *bent)))


ORDINAL_MAP = JsonField(
    "ordinal_map",
    object_of(
        {
            "slope": {"type": "number", "exclusiveMinimum": 0},
            **dict.fromkeys(("intercepts", "knots", "heights"), array_of(_NUMBER)),
        },
        "Rows have one score z for all classes, which are ordered: P(class > k) is sigmoid(slope * u(z) - "
        "intercepts[k]), and the logarithms of the probabilities of the classes are the logits. u is z, or runs "
        "through heights at knots of z, on straight lines. Omitted if rows have no such score.",
        optional=("knots", "heights"),
    ),
    _read_ordinal_map,
    lambda ordinal_map, name: json_value(ordinal_map.to_dict(), name),
    optional=True,
)
SHARED_FIELDS = (CLASSES, MULTIOUTPUT, NORMALIZE, OUTPUT_NAMES, ABSTAIN_LABEL, INPUT, ORDINAL_MAP)
DEFAULTED_FIELDS = (INPUT.name, ORDINAL_MAP.name)  # which a kind of rule need not have: where they are left out


# --------------------------------------------------------------------------------------------------- losses and links

LOSS_SCHEMA: Json = {
    "oneOf": [
        object_of(
            {"full": array_of(array_of(array_of(_NUMBER)))},
            "The score of class j is sum_i full[m][i][j] * eta_i, added up over i in order, in double precision.",
        ),
        object_of(
            {"diagonal": array_of(array_of(_NUMBER)), "offset": array_of(array_of(_NUMBER))},
            "The score of class j is diagonal[m][j] * eta_j + offset[m][j] * s, where s is the sum of the row, added "
            "up in order.",
        ),
    ]
}
LINK_SCHEMA: Json = {
    "oneOf": [
        {"type": "null"},
        object_of(
            {
                "temperature": array_of({"type": "number", "exclusiveMinimum": 0}),
                "bias": array_of(array_of(_NUMBER)),
                "floor": {"type": "number", "minimum": 0, "exclusiveMaximum": 0.5},
            },
            "Recalibrates first: eta becomes softmax(temperature[m] * log(max(eta, floor)) + bias[m]); with floor 0, "
            "logits z become softmax(temperature[m] * z + bias[m]).",
        ),
    ]
}


def _write_loss(loss: Loss, name: str) -> Any:
    names = ("diagonal", "offset") if loss.is_diagonal else ("full",)
    return {key: json_value(array, f"{name}.{key}") for key, array in zip(names, loss.arrays, strict=True)}


def _read_loss(value: Any, name: str) -> Loss:
    document = read_object(value, name)
    if "full" in document:
        check_keys(document, ("full",), name)
        full = read_numbers(document["full"], f"{name}.full", 3)
        if full.shape[1] != full.shape[2]:
            raise InvalidParameter(f"{name}.full", "have square matrices", f"shape {full.shape}")
        return Loss(full=full)
    check_keys(document, ("diagonal", "offset"), name)
    diagonal = read_numbers(document["diagonal"], f"{name}.diagonal", 2)
    offset = read_numbers(document["offset"], f"{name}.offset", 2)
    if diagonal.shape != offset.shape:
        must = f"have the shape of {name}.diagonal, {diagonal.shape}"
        raise InvalidParameter(f"{name}.offset", must, offset.shape)
    return Loss(diagonal=diagonal, offset=offset)


def _write_link(link: TemperatureScaling | None, name: str) -> Any:
    return None if link is None else json_value(link.to_dict(), name)


def _read_link(value: Any, name: str) -> TemperatureScaling:
    document = read_object(value, name)
    check_keys(document, ("temperature", "bias", "floor"), name)
    return TemperatureScaling(
        read_numbers(document["temperature"], f"{name}.temperature", 1),
        read_numbers(document["bias"], f"{name}.bias", 2),
        float(read_numbers(document["floor"], f"{name}.floor", 0)),
    )


LOSS = JsonField("loss", {"$ref": "#/$defs/loss"}, _read_loss, _write_loss)
LINK = JsonField("link", {"$ref": "#/$defs/link"}, nullable(_read_link), _write_link)


# ------------------------------------------------------------------------------------------ numbers of very many labels

_MAX_LISTED = 1000  # numbers that are written as a list; more are packed
_BYTES = 8  # of a number
_PACKED = {"dtype": "float64"}

PACKED_SCHEMA: Json = {
    "oneOf": [
        array_of(_NUMBER),
        object_of(
            {
                "dtype": {"const": _PACKED["dtype"]},
                "n": {"type": "integer", "minimum": 1, "maximum": MAX_LABELS},
                "zlib_base64": {"type": "string", "contentEncoding": "base64"},
            },
            "The n numbers in double precision, little endian, compressed by zlib.",
        ),
    ]
}


def write_packed(values: NDArray[np.float64], name: str) -> Any:
    """Return numbers as a list, or packed if there are many."""
    if len(values) <= _MAX_LISTED:
        return json_value(values, name)
    import base64
    import zlib

    data = zlib.compress(values.astype("<f8").tobytes())
    return {**_PACKED, "n": len(values), "zlib_base64": base64.b64encode(data).decode("ascii")}


def read_packed(value: Any, name: str) -> NDArray[np.float64]:
    """Read numbers from a list, or packed: as many as are announced, which limits the memory, and all finite."""
    if isinstance(value, list):
        return read_numbers(value, name, 1)
    document = read_object(value, name)
    check_keys(document, ("dtype", "n", "zlib_base64"), name)
    if document["dtype"] != _PACKED["dtype"]:
        _refuse(f"{name}.dtype", repr(_PACKED["dtype"]), document["dtype"])
    n = read_int(document["n"], f"{name}.n")
    if not 1 <= n <= MAX_LABELS:
        _refuse(f"{name}.n", f"an integer from 1 to {MAX_LABELS}", n)
    array = np.frombuffer(_inflate(document["zlib_base64"], n, f"{name}.zlib_base64"), dtype="<f8").astype(np.float64)
    if not np.isfinite(array).all():
        raise InvalidParameter(name, "be finite", "NaN or infinity")
    return array


def write_packed_array(values: NDArray[Any]) -> Json:
    """Return numbers of any shape packed, NaN and infinity included."""
    import base64
    import zlib

    data = zlib.compress(values.astype("<f8").tobytes())
    return {**_PACKED, "shape": list(values.shape), "zlib_base64": base64.b64encode(data).decode("ascii")}


def read_packed_array(value: Any, name: str, most: int, deepest: int) -> NDArray[np.float64]:
    """Read packed numbers of any shape, no more than `most`, which limits the memory."""
    document = read_object(value, name)
    check_keys(document, ("dtype", "shape", "zlib_base64"), name)
    if document["dtype"] != _PACKED["dtype"]:
        _refuse(f"{name}.dtype", repr(_PACKED["dtype"]), document["dtype"])
    shape = [read_int(size, f"{name}.shape") for size in read_list(document["shape"], f"{name}.shape")]
    n = math.prod(shape) if all(0 < size <= most for size in shape) and 1 <= len(shape) <= deepest else 0
    if not 1 <= n <= most:
        _refuse(f"{name}.shape", f"1 to {deepest} numbers from 1, with a product of at most {most}", shape)
    data = _inflate(document["zlib_base64"], n, f"{name}.zlib_base64")
    return np.frombuffer(data, dtype="<f8").astype(np.float64).reshape(shape)


def _inflate(text: Any, n: int, name: str) -> bytes:
    """Return the bytes of n numbers; no more than these are ever inflated."""
    import base64
    import zlib

    size, must = n * _BYTES, f"hold {n} numbers, compressed by zlib and written in base64"
    if not isinstance(text, str):
        raise InvalidParameter(name, must, shown(text))
    if len(text) > 2 * size + 256:  # what cannot be compressed grows by less than that
        raise InvalidParameter(name, must, f"a text of {len(text)} characters")
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(base64.b64decode(text, validate=True), size + 1)
    except (ValueError, zlib.error):  # other characters, or bytes that are something else
        raise InvalidParameter(name, must, f"a text that is neither, {shown(text)}") from None
    if len(data) != size or not inflater.eof or inflater.unused_data:
        raise InvalidParameter(name, must, "more bytes" if len(data) > size or inflater.unused_data else "fewer bytes")
    return data


# ------------------------------------------------------------------------------------------------- several rules, drawn

DECISIONS_SCHEMA = array_of(object_of({LOSS.name: LOSS.schema, LINK.name: LINK.schema}))
_SHARES = array_of({"type": "number", "minimum": 0, "maximum": 1.000000001})
WEIGHTS_SCHEMA = (_SHARES, array_of(_SHARES))


def write_decisions(decisions: Sequence[Decision], name: str) -> Any:
    """Return losses and links as JSON values."""
    return [
        {"loss": LOSS.write(loss, f"{name}[{r}].loss"), "link": LINK.write(link, f"{name}[{r}].link")}
        for r, (loss, link) in enumerate(decisions)
    ]


def read_decisions(value: Any, name: str) -> tuple[Decision, ...]:
    """Read a list of losses and links."""
    documents = read_list(value, name)
    for r, document in enumerate(documents):
        field = f"{name}[{r}]"
        check_keys(read_object(document, field), ("loss", "link"), field)
    return tuple((LOSS.read(part["loss"], "loss"), LINK.read(part["link"], "link")) for part in documents)


def decisions_field(name: str, description: str) -> JsonField:
    """Return the field of rules that share outputs and classes: a loss and a link for each."""
    return JsonField(name, {"description": description, **DECISIONS_SCHEMA}, read_decisions, write_decisions)


def read_weights(value: Any, name: str) -> Any:
    """Read shares for all outputs or for each."""
    shares = read_list(value, name)
    return read_numbers(shares, name, 2 if isinstance(shares[0], list) else 1)


WEIGHTS = JsonField(
    "weights",
    {"description": "Probabilities of the rules, for all outputs or for each.", "oneOf": list(WEIGHTS_SCHEMA)},
    read_weights,
)
SEED = JsonField("seed", {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}, read_seed)
