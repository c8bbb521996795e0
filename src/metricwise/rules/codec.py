"""Rules as JSON documents: the fields of every kind, declared once.

Owns the fields, from which a document is written, read and checked, and from which the JSON Schema is generated. Text
and strict readers of single values are in ``serialize.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import InvalidParameter
from ..core.losses import Loss
from . import serialize
from .calibration import TemperatureScaling
from .metadata import INTERVAL_SCHEMA, metadata_schema

__all__ = [
    "DECISIONS_SCHEMA",
    "LABEL_SCHEMA",
    "LINK",
    "LOSS",
    "NAMES_SCHEMA",
    "SEED",
    "SHARED_FIELDS",
    "WEIGHTS",
    "WEIGHTS_SCHEMA",
    "Decision",
    "JsonField",
    "array_of",
    "decisions_field",
    "document_schema",
    "nullable",
    "object_of",
    "read_decisions",
    "read_weights",
    "write_decisions",
    "write_value",
]

Json = Mapping[str, Any]
Decision = tuple[Loss, TemperatureScaling | None]

LABEL_SCHEMA: Json = {"type": ["string", "number", "boolean"]}
_NUMBER: Json = {"type": "number"}


@dataclass(frozen=True)
class JsonField:
    """A field of a rule's document.

    Parameters
    ----------
    name : str
    schema : mapping
        JSON Schema of what stands under the name.
    write : callable
        From the value and the name to JSON values.
    read : callable
        From JSON values and the name to the value; refuses everything else.
    optional : bool
        Whether the field is left out of documents where the value is None.
    """

    name: str
    schema: Json
    write: Callable[[Any, str], Any]
    read: Callable[[Any, str], Any]
    optional: bool = False


def nullable(read: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """Return a reader or writer that lets None pass."""
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


def write_value(value: Any, name: str) -> Any:
    """Return a value in JSON's own types."""
    return serialize.plain(value, name)


# ------------------------------------------------------------------------------------------- outputs and their classes


def _write_classes(classes: Any, name: str) -> Any:
    return [serialize.plain_labels(labels, name) for labels in classes]


def _read_classes(value: Any, name: str) -> Any:
    each = serialize.read_list(value, name)
    return tuple(serialize.read_labels(labels, f"{name}[{m}]") for m, labels in enumerate(each))


CLASSES = JsonField(
    "classes",
    {
        "description": "For each output, the label of each class, in the order of the columns of probabilities.",
        **array_of({"type": "array", "minItems": 2, "items": LABEL_SCHEMA}),
    },
    _write_classes,
    _read_classes,
)
MULTIOUTPUT = JsonField(
    "multioutput",
    {"description": "Whether decisions about a row are a list, one for each output.", "type": "boolean"},
    write_value,
    serialize.read_bool,
)
NORMALIZE = JsonField(
    "normalize",
    {
        "description": "Whether the rule takes non-negative scores, and divides each row by its sum first.",
        "type": "boolean",
    },
    write_value,
    serialize.read_bool,
)
NAMES_SCHEMA: Json = {"oneOf": [{"type": "null"}, array_of({"type": "string"}, uniqueItems=True)]}
OUTPUT_NAMES = JsonField("output_names", NAMES_SCHEMA, write_value, nullable(serialize.read_names))
ABSTAIN_LABEL = JsonField(
    "abstain_label",
    {
        "description": "What a rule that may abstain says then: one more decision about every output, behind its "
        "classes. Left out where the rule never abstains.",
        **LABEL_SCHEMA,
    },
    write_value,
    serialize.read_label,
    optional=True,
)
SHARED_FIELDS = (CLASSES, MULTIOUTPUT, NORMALIZE, OUTPUT_NAMES, ABSTAIN_LABEL)


# --------------------------------------------------------------------------------------------------- losses and links

_LOSS_SCHEMA: Json = {
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
_LINK_SCHEMA: Json = {
    "oneOf": [
        {"type": "null"},
        object_of(
            {
                "temperature": array_of({"type": "number", "exclusiveMinimum": 0}),
                "bias": array_of(array_of(_NUMBER)),
                "floor": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5},
            },
            "Recalibrates first: eta becomes softmax(temperature[m] * log(max(eta, floor)) + bias[m]).",
        ),
    ]
}


def _write_loss(loss: Loss, name: str) -> Any:
    names = ("diagonal", "offset") if loss.is_diagonal else ("full",)
    return {key: serialize.plain(array, f"{name}.{key}") for key, array in zip(names, loss.arrays, strict=True)}


def _read_loss(value: Any, name: str) -> Loss:
    document = serialize.read_object(value, name)
    if "full" in document:
        serialize.check_keys(document, ("full",), name)
        full = serialize.read_numbers(document["full"], f"{name}.full", 3)
        if full.shape[1] != full.shape[2]:
            raise InvalidParameter(f"{name}.full", "have square matrices", f"shape {full.shape}")
        return Loss(full=full)
    serialize.check_keys(document, ("diagonal", "offset"), name)
    diagonal = serialize.read_numbers(document["diagonal"], f"{name}.diagonal", 2)
    offset = serialize.read_numbers(document["offset"], f"{name}.offset", 2)
    if diagonal.shape != offset.shape:
        must = f"have the shape of {name}.diagonal, {diagonal.shape}"
        raise InvalidParameter(f"{name}.offset", must, offset.shape)
    return Loss(diagonal=diagonal, offset=offset)


def _write_link(link: TemperatureScaling, name: str) -> Any:
    return serialize.plain(link.to_dict(), name)


def _read_link(value: Any, name: str) -> TemperatureScaling:
    document = serialize.read_object(value, name)
    serialize.check_keys(document, ("temperature", "bias", "floor"), name)
    return TemperatureScaling(
        serialize.read_numbers(document["temperature"], f"{name}.temperature", 1),
        serialize.read_numbers(document["bias"], f"{name}.bias", 2),
        float(serialize.read_numbers(document["floor"], f"{name}.floor", 0)),
    )


LOSS = JsonField("loss", {"$ref": "#/$defs/loss"}, _write_loss, _read_loss)
LINK = JsonField("link", {"$ref": "#/$defs/link"}, nullable(_write_link), nullable(_read_link))


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
    documents = serialize.read_list(value, name)
    for r, document in enumerate(documents):
        field = f"{name}[{r}]"
        serialize.check_keys(serialize.read_object(document, field), ("loss", "link"), field)
    return tuple((LOSS.read(part["loss"], "loss"), LINK.read(part["link"], "link")) for part in documents)


def decisions_field(name: str, description: str) -> JsonField:
    """Return the field of rules that share outputs and classes: a loss and a link for each."""
    return JsonField(name, {"description": description, **DECISIONS_SCHEMA}, write_decisions, read_decisions)


def read_weights(value: Any, name: str) -> Any:
    """Read shares for all outputs or for each."""
    shares = serialize.read_list(value, name)
    return serialize.read_numbers(shares, name, 2 if isinstance(shares[0], list) else 1)


WEIGHTS = JsonField(
    "weights",
    {"description": "Probabilities of the rules, for all outputs or for each.", "oneOf": list(WEIGHTS_SCHEMA)},
    write_value,
    read_weights,
)
SEED = JsonField("seed", {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}, write_value, serialize.read_int)


# ------------------------------------------------------------------------------------------------------------- schema


def document_schema(kinds: Mapping[str, tuple[str, Sequence[JsonField]]]) -> dict[str, Any]:
    """Return the JSON Schema of all documents, draft 2020-12.

    Parameters
    ----------
    kinds : mapping
        From the name of each kind to its description and its fields.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:metricwise:rule:{serialize.VERSION}",
        "title": "A decision rule of metricwise",
        "description": "For each output, predict the class of least score, the first of them where several tie.",
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds],
        "$defs": {
            **{kind: _kind_schema(kind, description, fields) for kind, (description, fields) in kinds.items()},
            "loss": _LOSS_SCHEMA,
            "link": _LINK_SCHEMA,
            "interval": INTERVAL_SCHEMA,
            "facts": metadata_schema(),
        },
    }


def _kind_schema(kind: str, description: str, fields: Sequence[JsonField]) -> dict[str, Any]:
    properties = {
        "format": {"const": serialize.FORMAT},
        "version": {"const": serialize.VERSION},
        "kind": {"const": kind},
        **{field.name: field.schema for field in fields},
        "facts": {"$ref": "#/$defs/facts"},
    }
    return object_of(properties, description, [field.name for field in fields if field.optional])
