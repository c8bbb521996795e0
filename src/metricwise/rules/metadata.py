"""Metadata of rules: typed fields with their JSON Schema. Must not know how a rule is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

Json = Mapping[str, Any]

_TEXT: Json = {"type": "string"}
_NUMBER_OR_NULL: Json = {"type": ["number", "null"]}
_COUNT: Json = {"type": "integer", "minimum": 0}
_TEXTS: Json = {"type": "array", "items": _TEXT}
_NUMBERS: Json = {"type": "array", "items": {"type": "number"}}
_TABLE: Json = {"type": "array", "items": _NUMBERS}
_LABEL: Json = {"type": ["string", "number", "boolean"]}
_LABELS_BY_OUTPUT: Json = {"type": "array", "items": {"type": ["array", "null"], "items": _LABEL}}
_BOUNDS = ("low", "high", "value", "confidence")

INTERVAL_SCHEMA: Json = {
    "type": "object",
    "properties": dict.fromkeys(("estimate", "low", "high"), _NUMBER_OR_NULL),
    "required": ["estimate", "low", "high"],
}
_INTERVAL: Json = {"$ref": "#/$defs/interval"}
_CONSTRAINT: Json = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        **dict.fromkeys(_BOUNDS, _NUMBER_OR_NULL),
        "of_shares": {"type": "boolean"},
    },
    "required": ["name"],
}


def _entry(description: str, schema: Json) -> Any:
    """Return a field that is None where nothing is known, with what a file may hold."""
    return field(default=None, metadata={"schema": {"description": description, **schema}})


@dataclass(frozen=True, repr=False)
class RuleMetadata:
    """Metadata of a rule: its metric, the rows that it was fitted to, and its estimated results.

    Values are JSON values. Every field is None where nothing is known; what a file or a user adds is in `extra`.

    Parameters
    ----------
    metric : str, optional
        The metric that the rule maximises.
    average : str, optional
        Average over the outputs.
    rows : int, optional
        Number of rows that the rule was fitted on.
    metricwise : str, optional
        Version that made the rule.
    pos_label : object, optional
        The class that the metric is of, or a list with that of each output, if the metric's name does not say it.
    order : list, optional
        For each output, its classes from the lowest to the highest, or None.
    single_column, column_order : bool and list, optional
        What the rule must know of columns of probabilities without names.
    losses : mapping of str to str, optional
        Metrics that are minus a loss or a cost, by name, and what people read instead.
    abstain : bool or float, optional
        What abstentions counted for in the fit.
    class_counts : list of lists of int, optional
        For each output, rows of each class.
    recipe : str, optional
        What was counted, and whether probabilities were recalibrated.
    calibration : mapping, optional
        Calibration of the rows of the fit, with its covariance and the class shares: what is needed to judge or move
        the rule on rows without labels. Decisions do not use it.
    prior : list of lists of float, optional
        For each output, the class shares that the decisions are for, if these are not those of the rows of the fit.
    moved : str, optional
        How the rule was moved to other class shares after it was fitted: "shifted" by Bayes' rule, or "adapted" to rows
        without labels.
    under_new_shares : str, optional
        What becomes of the rule if class shares move: "unchanged", "exact" or "approximate"; see `Rule.with_prior`.
    followed_shift : float, optional
        Share of a shift of the log-odds of classes that decisions follow, if they follow it approximately.
    subject_to, confidence, promises : optional
        The constraints as written, the confidence of all of them, and each with its bounds and value.
    guarantee : str, optional
        "exact" if the confidence holds for any distribution of independent rows.
    value, baseline : float, optional
        The metric on the rows of the fit, of the rule and of argmax.
    gain, value_on_new_rows : mapping, optional
        Estimates with `estimate`, `low` and `high`.
    targets, columns : list, optional
        Names of the columns of the table that the rule was fitted to.
    date : str, optional
        Date of the rule, if it was given.
    ordered : list of bool, optional
        Written by earlier versions: whether the classes of each output are in the order of their scale.
    extra : mapping of str to JSON values
        Everything else, such as a contact.
    stated : tuple of str
        Names in the order of the file that they were read from, with those that it says null for.

    See Also
    --------
    metricwise.WeightedRule.with_metadata : Add entries to those of a rule.

    Examples
    --------
    >>> import metricwise as mw
    >>> rule = mw.WeightedRule.from_thresholds(0.3).with_metadata(metric="f1", contact="ann@example.org")
    >>> rule.metadata.metric, rule.metadata.rows, rule.metadata.extra
    ('f1', None, {'contact': 'ann@example.org'})
    >>> rule.metadata.to_dict()
    {'recipe': 'by hand', 'metricwise': '...', 'metric': 'f1', 'contact': 'ann@example.org'}
    """

    metric: str | None = _entry("The metric that the rule maximises.", _TEXT)
    average: str | None = _entry("Over outputs.", {"type": ["string", "null"]})
    rows: int | None = _entry("Rows that the rule was fitted on.", _COUNT)
    metricwise: str | None = _entry("Version that wrote the rule.", _TEXT)
    pos_label: Any = _entry(  # noqa: RUF009
        "Positive class of the metric, or a list with one per output, if its name does not contain it.",
        {},
    )
    order: Sequence[Sequence[Any] | None] | None = _entry(
        "For each output, its classes from the lowest to the highest, for ordinal metrics; null if no order is known.",
        _LABELS_BY_OUTPUT,
    )
    single_column: bool | None = _entry(
        "For two classes whose labels do not identify the positive one: whether the rule was fitted to the column of "
        "the second class alone (true), or to both columns (false).",
        {"type": "boolean"},
    )
    column_order: Sequence[Sequence[Any] | None] | None = _entry(
        "For each output, its classes in the order of the named columns that the rule was fitted to, if that is not "
        "sorted or not the order of classes; else null. Columns without names are taken in this order by Python; "
        "exports take them in the order of classes.",
        _LABELS_BY_OUTPUT,
    )
    losses: Mapping[str, str] | None = _entry(
        "Metrics that are the negative of a loss or cost, with the name of the loss.",
        {"type": "object", "additionalProperties": _TEXT},
    )
    abstain: bool | float | None = _entry(
        "Cost of an abstention, or true if abstentions are allowed without a cost.",
        {"type": ["number", "boolean"]},
    )
    class_counts: Sequence[Sequence[int]] | None = _entry(
        "For each output, the number of these rows of each class.",
        {"type": "array", "items": {"type": "array", "items": _COUNT}},
    )
    recipe: str | None = _entry("What was counted, and whether probabilities were recalibrated.", _TEXT)
    calibration: Mapping[str, Any] | None = _entry(
        "Calibration of these rows, softmax(temperature * log(max(eta, floor)) + bias), of logits with floor 0; the "
        "class shares of the labels, the effective number of labelled rows, and for each output the covariance of "
        "temperature and biases less the logarithms of the shares, relative to the first class.",
        {
            "type": "object",
            "properties": {
                "temperature": _NUMBERS,
                "bias": _TABLE,
                "floor": {"type": "number"},
                "shares": _TABLE,
                "rows": _NUMBERS,
                "covariance": {"type": "array", "items": {"type": ["array", "null"], "items": _NUMBERS}},
            },
            "required": ["temperature", "bias", "floor", "shares", "rows", "covariance"],
        },
    )
    prior: Sequence[Sequence[float]] | None = _entry(
        "For each output, the class shares that the decisions are for, if these are not those of these rows.", _TABLE
    )
    moved: str | None = _entry(
        "How the rule was moved to other class shares after it was fitted: shifted by Bayes' rule, or adapted to rows "
        "without labels.",
        {"type": "string"},
    )
    under_new_shares: str | None = _entry(
        "What becomes of the rule if class shares move: it is unchanged, or moved exactly or approximately.",
        {"type": "string"},
    )
    followed_shift: float | None = _entry(
        "Share of a shift of the log-odds of classes that decisions follow, if they follow it approximately.",
        {"type": "number"},
    )
    subject_to: Sequence[str] | None = _entry("Constraints, as they were written.", _TEXTS)
    confidence: float | None = _entry(
        "Confidence level at which all constraints hold jointly in the population.", {"type": "number"}
    )
    guarantee: str | None = _entry(
        "Kind of the guarantee: 'exact' if the confidence holds for any distribution of independent rows.", _TEXT
    )
    value: float | None = _entry("Value of the metric on these rows.", _NUMBER_OR_NULL)
    baseline: float | None = _entry("Value of the metric for argmax on these rows.", _NUMBER_OR_NULL)
    gain: Mapping[str, float | None] | None = _entry(
        "Estimated gain over argmax on new data, with a 95 % interval.", _INTERVAL
    )
    value_on_new_rows: Mapping[str, float | None] | None = _entry(
        "Estimated value of the metric on new data, with a 95 % interval.", _INTERVAL
    )
    promises: Sequence[Mapping[str, Any]] | None = _entry(
        "Each constraint: its bounds (null if there is none), its value on these rows, and whether what it bounds "
        "depends on the class shares.",
        {"type": "array", "items": _CONSTRAINT},
    )
    targets: Sequence[str] | None = _entry(
        "Names of the columns of labels of a table that the rule was fitted to, one for each output.", _TEXTS
    )
    columns: Sequence[Sequence[str]] | None = _entry(
        "For each output, the columns of probabilities of that table: one for each class, in their order, or that of "
        "the second of two classes. For rows that hold lists of labels, one entry: the column of labels, and that of "
        "their probabilities.",
        {"type": "array", "items": _TEXTS},
    )
    date: str | None = _entry("Date of the rule, if it was given.", _TEXT)
    ordered: Sequence[bool] | None = _entry(
        "Written by earlier versions: whether the classes of each output are in the order of their scale.",
        {"type": "array", "items": {"type": "boolean"}},
    )
    extra: Mapping[str, Any] = field(default_factory=dict)
    stated: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, entries: Mapping[str, Any] | RuleMetadata) -> RuleMetadata:
        """Return metadata from entries by name; what does not fit a field is kept in `extra`, as it is."""
        if isinstance(entries, RuleMetadata):
            return entries
        fitting = _fitting(entries)
        extra = {name: value for name, value in entries.items() if name not in fitting}
        return cls(**fitting, extra=extra, stated=tuple(entries))

    def updated(self, **entries: Any) -> RuleMetadata:
        """Return a copy with other entries; None takes one away."""
        fitting = _fitting(entries)
        others = {name: value for name, value in entries.items() if name not in fitting and value is not None}
        stated = [name for name in {**self._names, **entries} if entries.get(name, name) is not None]
        extra = {name: value for name, value in self.extra.items() if name not in entries} | others
        updated = copy(self)  # of thirty fields, few change
        vars(updated).update(dict.fromkeys(_SCHEMAS.keys() & others) | fitting, extra=extra, stated=tuple(stated))
        return updated

    def to_dict(self) -> dict[str, Any]:
        """Return the entries by name, as files hold them."""
        values = vars(self) | dict(self.extra)
        return {name: values[name] for name in self._names}

    @property
    def _names(self) -> dict[str, None]:
        """The names of the entries in their order."""
        fields_with_values = (name for name, value in vars(self).items() if value is not None and name in _SCHEMAS)
        extra = (name for name, value in self.extra.items() if value is not None)
        return dict.fromkeys((*self.stated, *fields_with_values, *extra))

    def __repr__(self) -> str:
        values = {name: repr(value) for name, value in self.to_dict().items()}
        if self.calibration is not None:
            values["calibration"] = "{...}"  # long, and for programs
        return f"RuleMetadata({', '.join(f'{name}={value}' for name, value in values.items())})"


NO_METADATA = RuleMetadata()


def as_float(value: Any) -> float | None:
    """Return a number as a float; None for other values, and for integers beyond the range of floats."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def metadata_schema() -> dict[str, Any]:
    """Return the JSON Schema of the entries."""
    return {
        "description": "Origin of the rule. Entries do not affect decisions about given probabilities of the classes; "
        "further entries may be added.",
        "type": "object",
        "properties": dict(_SCHEMAS),
    }


# ------------------------------------------------------------------------------------------------- what fits a schema

Check = Callable[[Any], bool]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, np.integer),
    "number": (int, float, np.integer, np.floating),
    "boolean": (bool, np.bool_),
    "array": (list, tuple),
    "object": (dict, Mapping),
    "null": (type(None),),
}


def _check_of(schema: Json) -> Check:
    """Return the function that says whether a value is what a schema of this module allows."""
    if not schema:
        return lambda _: True
    if "$ref" in schema:
        return _check_of(INTERVAL_SCHEMA)
    is_type = _type_check_of(schema)
    if "items" in schema:
        of_items = _check_of_items(schema["items"])
        return lambda value: is_type(type(value)) and (value is None or of_items(value))
    if "object" in schema["type"]:
        return _check_of_object(schema)
    if "minimum" in schema:
        return lambda value: is_type(type(value)) and bool(value >= schema["minimum"])
    return lambda value: is_type(type(value))


def _type_check_of(schema: Json) -> Callable[[type], bool]:
    """Return the function that says whether values of a type may be what a schema allows."""
    names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    types = tuple(kind for name in names for kind in _TYPES[name])
    refused = None if "boolean" in names else bool  # which Python counts among the integers
    return lambda kind: kind is not refused and issubclass(kind, types)


def _check_of_items(schema: Json) -> Check:
    """Return the function that says whether all items of a list are what a schema allows."""
    if schema.keys() == {"type"}:  # long lists of numbers have few types
        is_type = _type_check_of(schema)
        return lambda values: all(map(is_type, set(map(type, values))))
    check = _check_of(schema)
    return lambda values: all(map(check, values))


def _check_of_object(schema: Json) -> Check:
    """Return the function that says whether a value is a mapping that a schema allows."""
    inner = {name: _check_of(of_name) for name, of_name in schema.get("properties", {}).items()}
    others, required = _check_of(schema.get("additionalProperties", {})), set(schema.get("required", ()))

    def check(value: Any) -> bool:
        if not isinstance(value, (dict, Mapping)) or not required <= value.keys():
            return False
        return all(inner.get(name, others)(item) for name, item in value.items())

    return check


_SCHEMAS: dict[str, Json] = {
    entry.name: entry.metadata["schema"] for entry in fields(RuleMetadata) if "schema" in entry.metadata
}
# Without the descriptions, which allow nothing.
_CHECKS: dict[str, Check] = {
    name: _check_of({key: part for key, part in schema.items() if key != "description"})
    for name, schema in _SCHEMAS.items()
}


def _fitting(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries that are what the fields of their names hold."""
    return {
        name: value
        for name, value in entries.items()
        if (check := _CHECKS.get(name)) is not None and (value is None or check(value))
    }


def headline(metadata: RuleMetadata, several: bool) -> list[str]:
    """Say which metric the rule was made for, where it is known."""
    if metadata.metric is None:
        return []
    positive, abstain = metadata.pos_label, metadata.abstain
    text = f" of {positive!r}" if isinstance(positive, (str, bool, int)) else ""
    text += f", {metadata.average} average over the outputs" if several and metadata.average is not None else ""
    if abstain is True:
        text += ", abstentions allowed"
    elif isinstance(abstain, float):
        text += f", abstentions at a cost of {abstain:g}"
    if metadata.subject_to:
        confidence = as_float(metadata.confidence)
        kind = "" if metadata.guarantee is None else "guaranteed "
        sure = "" if confidence is None else f", {kind}with a confidence of {confidence:.3g}"
        text += f", subject to {' and '.join(metadata.subject_to)}{sure}"
    loss = (metadata.losses or {}).get(metadata.metric)
    return [f"Rule for {metadata.metric if loss is None else f'the lowest {loss}'}{text}.", *_moved_lines(metadata)]


def _moved_lines(metadata: RuleMetadata) -> list[str]:
    """Say which class shares a rule was moved to, and what that is worth."""
    if metadata.moved is None:
        return []
    if metadata.moved == "adapted":
        lines = ["Adapted to the class shares of rows without labels."]
    else:
        remark = "" if metadata.under_new_shares == "exact" else " (approximate: not quite the best rule for them)"
        lines = [f"Moved to new class shares by Bayes' rule{remark}."]
    withdrawn = [promise["name"] for promise in metadata.promises or ()]
    return [*lines, *([f"No longer promised: {', '.join(withdrawn)}."] if withdrawn else [])]
