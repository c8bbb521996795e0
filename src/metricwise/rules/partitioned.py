"""Rules that decide rows of several kinds each by a rule of its own: those by sensitive group and those by segment."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter
from ..core.probabilities import Probabilities
from ..data.sensitive import Groups
from .base import LossMixture, RuleOfParts, RuleRows
from .calibration import TemperatureScaling, recalibrated
from .codec import (
    DECISIONS_SCHEMA,
    LABEL_SCHEMA,
    WEIGHTS_SCHEMA,
    Decision,
    array_of,
    check_keys,
    json_labels,
    json_value,
    object_of,
    read_decisions,
    read_labels,
    read_list,
    read_object,
    read_weights,
    write_decisions,
)
from .metadata import RuleMetadata
from .mixture import MixtureRule
from .weighted import WeightedRule

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
FlatRule = WeightedRule | MixtureRule  # of all rows of one kind


class PartitionedRule(RuleOfParts):
    """Base of rules that decide each row by the rule of its part: a sensitive group, or a segment."""

    @property
    @abstractmethod
    def parts(self) -> tuple[FlatRule, ...]:
        """The rule of each part, and that of all other rows behind them if there is one."""

    @property
    @abstractmethod
    def known(self) -> Groups:
        """The names of the parts."""

    @property
    @abstractmethod
    def other(self) -> FlatRule | None:
        """The rule of rows that are in no part, or whose part is not known; None: such rows are refused."""

    @property
    def by_part(self) -> list[tuple[Any, FlatRule]]:
        """The name of each part with its rule."""
        return list(zip(self.known.names, self.parts, strict=False))

    @property
    def decides_others(self) -> bool:
        """Whether there is a rule for rows that are in no part, or whose part is not known."""
        return self.other is not None

    @property
    def is_randomized(self) -> bool:
        """Whether the decisions about some part are drawn."""
        return any(rule.is_randomized for rule in self.parts)

    @property
    def seed(self) -> int:
        """Seed of the mixtures among the rules, which share it; 0 without any."""
        return next((rule.seed for rule in self.parts if isinstance(rule, MixtureRule)), 0)

    def read_groups(self, n_rows: int, **row_inputs: Any) -> IntArray:
        """Read the part of each row, one of those known unless there is a rule for other ones."""
        groups = self.known
        return groups.codes(row_inputs.get(groups.parameter), n_rows, others=self.decides_others)

    def decide(self, rows: RuleRows) -> IntArray:
        """Return the codes of the decisions about rows, each by the rule of its part, of shape (N, M)."""
        result = np.empty((rows.proba.n_rows, self.n_outputs), dtype=np.intp)
        for rule, places in self._by_part(rows):
            result[places] = rule.decide(rows.take(places))
        return result

    def distribute(self, rows: RuleRows) -> FloatArray:
        """Return the probability of each decision, (N, M, D), by the rule of each row's part."""
        result = np.zeros((rows.proba.n_rows, self.n_outputs, self.schema.decision_width))
        for rule, places in self._by_part(rows):
            result[places] = rule.distribute(rows.take(places))
        return result

    def calibrate(self, rows: RuleRows) -> Probabilities:
        """Return the probabilities behind the link of each row's part."""
        result = recalibrated(None, rows.proba)
        for rule, places in self._by_part(rows):
            for block, values in zip(result.blocks, rule.calibrate(rows.take(places)).blocks, strict=True):
                block[places] = values
        return result

    @property
    def shared_link(self) -> TemperatureScaling | None:
        """The link of all parts, if it is one."""
        first, *others = (part.shared_link for part in self.parts)
        return first if all(link == first for link in others) else None

    def _by_part(self, rows: RuleRows) -> list[tuple[FlatRule, IntArray]]:
        """The rules that decide some rows, with the places of these in order."""
        assert rows.groups is not None
        order = np.argsort(rows.groups, kind="stable")
        present, first = np.unique(rows.groups[order], return_index=True)
        places = np.split(order, first[1:]) if len(present) else []
        return [(self.parts[part], where) for part, where in zip(present.tolist(), places, strict=True)]

    def flatten(self) -> LossMixture:
        """Refuse: rows of different parts are decided by different losses or links."""
        noun = self.known.noun
        raise InvalidParameter(
            "rule",
            f"be one rule for all {noun}s",
            f"a rule by {noun}",
            "use from_solution with the result of optimize",
        )


def title_of(name: Any) -> str:
    """Return the name of a part for a sentence."""
    return ", ".join(map(repr, name)) if isinstance(name, tuple) else repr(name)


def part_lines(rule: FlatRule, metadata: RuleMetadata) -> list[str]:
    """Say what the rule of a part decides, indented; `metadata` is that of the whole rule."""
    order = {name: value for name in ("order", "ordered") if (value := getattr(metadata, name)) is not None}
    return ["  " + line for line in rule.with_metadata(**order).describe().splitlines()]


# -------------------------------------------------------------------------------------------------- fields of documents

Part = tuple[tuple[Decision, ...], Any]  # the rules of a part, and their shares where they are drawn

PART_SCHEMA = object_of(
    {
        "rules": DECISIONS_SCHEMA,
        "weights": {
            "description": "Probabilities of the rules, for all outputs or for each; null for a single rule.",
            "oneOf": [{"type": "null"}, *WEIGHTS_SCHEMA],
        },
    }
)
NAMES_OF_PARTS = array_of(array_of(LABEL_SCHEMA))


def write_part(part: Part, name: str) -> Any:
    """Return the rule of a part as JSON values."""
    decisions, weights = part
    weights = json_value(weights, f"{name}.weights")
    return {"rules": write_decisions(decisions, f"{name}.rules"), "weights": weights}


def read_part(value: Any, name: str) -> Part:
    """Read the rule of a part."""
    document = read_object(value, name)
    check_keys(document, ("rules", "weights"), name)
    decisions = read_decisions(document["rules"], f"{name}.rules")
    if document["weights"] is not None:
        return decisions, read_weights(document["weights"], f"{name}.weights")
    if len(decisions) > 1:
        raise InvalidParameter(f"{name}.weights", f"have the shares of its {len(decisions)} rules", "None")
    return decisions, None


def write_part_names(names: Sequence[Any], field: str) -> Any:
    """Return names, a label for each column that defines parts, as JSON values."""
    each = [list(name) if isinstance(name, tuple) else [name] for name in names]
    return [json_labels(_objects(labels), field) for labels in each]


def _objects(labels: Sequence[Any]) -> Any:
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def read_part_names(value: Any, field: str) -> tuple[Any, ...]:
    """Read names of parts."""
    each = read_list(value, field)
    labels = [read_labels(name, f"{field}[{g}]").tolist() for g, name in enumerate(each)]
    return tuple(tuple(name) if len(name) > 1 else name[0] for name in labels)


def decisions_of(rule: FlatRule) -> Part:
    """Return the losses and links of the rule of a part, and their shares where they are drawn."""
    part = rule.flatten()
    decisions = tuple((component.loss, component.link) for component in part.rules)
    return decisions, rule.weights if isinstance(rule, MixtureRule) else None


def flat_rule(part: Part, shared: dict[str, Any], seed: int) -> FlatRule:
    """Return the rule of a part, with the values of fields that all parts share."""
    decisions, weights = part
    rules = tuple(WeightedRule(loss, link=link, **shared) for loss, link in decisions)
    return rules[0] if weights is None else MixtureRule(rules, weights, seed)
