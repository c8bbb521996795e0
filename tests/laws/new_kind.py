"""A kind of rule that the library does not know, in one class, and its record: it must pass every law of rules."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from laws.rule_records import THREE, Record
from metricwise.core.schema import Schema
from metricwise.rules import Rule, RuleMetadata
from metricwise.rules.base import check_outputs
from metricwise.rules.codec import JsonField, read_int, read_numbers

LABELS = ("<i>low</i>", "mid", "high")


@dataclass(frozen=True)
class LeadRule(Rule):
    """Predict the most probable class if it leads by enough, else a class to fall back on."""

    classes: tuple[Any, ...]
    lead: float
    fallback: int = 0
    multioutput: bool = False
    normalize: bool = False
    output_names: tuple[str, ...] | None = None
    abstain_label: Any = None
    metadata: RuleMetadata = field(default_factory=RuleMetadata, compare=False)
    schema: Schema = field(init=False, repr=False, compare=False)
    kind: ClassVar[str] = "lead"
    summary: ClassVar[str] = "The most probable class if it leads by enough."
    fields: ClassVar = (
        JsonField("lead", {"type": "number"}, lambda value, name: float(read_numbers(value, name, 0))),
        JsonField("fallback", {"type": "integer", "minimum": 0}, read_int),
    )

    def __post_init__(self):
        schema = Schema(self.classes, self.multioutput, self.normalize, self.output_names)
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "metadata", RuleMetadata.of(self.metadata))
        check_outputs(schema, None)

    def decide(self, rows):
        eta = rows.proba.output(0)[:, 0]
        ordered = np.sort(eta, axis=1)
        return np.where(ordered[:, -1] - ordered[:, -2] > self.lead, eta.argmax(axis=1), self.fallback)[:, None]

    def decision_lines(self, metadata):
        labels = [repr(label) for label in self.classes[0].tolist()]
        return [f"Predict one of {', '.join(labels)} if it leads by {self.lead:g}, else {labels[self.fallback]}."]

    def __eq__(self, other):
        return self.to_dict() | {"facts": {}} == other.to_dict() | {"facts": {}}

    __hash__ = None


def definition(eta, row):
    """The same in exact arithmetic."""
    *_, second, first = sorted(eta[0])
    return [{eta[0].index(first) if first - second > Fraction(1, 4) else 2: Fraction(1)}]


def refused_as(what):
    return f"rule must not be a LeadRule, because {what} does not support such rules; use rule.predict"


def built():
    return LeadRule((np.array(LABELS),), 0.25, fallback=2, metadata={"metric": "accuracy"})


RECORD = Record(
    built,
    THREE,
    definition,
    refused={
        "python": refused_as("Python source"),
        "sql": refused_as("SQL"),
        "onnx": refused_as("the graph"),
        "report": "rule must decide all rows by the same losses, which a LeadRule does not; use metricwise.evaluate",
    },
)
