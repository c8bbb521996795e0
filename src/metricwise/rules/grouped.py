"""Rules that depend on the sensitive group of a row: one rule for each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.errors import InvalidParameter, entry_point
from ..core.losses import Loss
from ..core.probabilities import Probabilities
from ..core.schema import Schema
from ..data.sensitive import Groups
from .base import LossMixture, RuleOfParts, RuleRows, same_classes
from .calibration import TemperatureScaling, recalibrated
from .codec import (
    DECISIONS_SCHEMA,
    LABEL_SCHEMA,
    NAMES_SCHEMA,
    SEED,
    WEIGHTS_SCHEMA,
    Decision,
    JsonField,
    array_of,
    check_keys,
    json_labels,
    json_value,
    nullable,
    object_of,
    read_decisions,
    read_labels,
    read_list,
    read_names,
    read_object,
    read_weights,
    write_decisions,
)
from .metadata import NO_METADATA, RuleMetadata
from .mixture import MixtureRule
from .weighted import WeightedRule, rule_of_schema
from .writer import RuleWriter

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
T = TypeVar("T")
FlatRule = WeightedRule | MixtureRule  # of all rows of a group

# -------------------------------------------------------------------------------------------------- fields of documents

_PART_SCHEMA = object_of(
    {
        "rules": DECISIONS_SCHEMA,
        "weights": {
            "description": "Probabilities of the rules, for all outputs or for each; null for a single rule.",
            "oneOf": [{"type": "null"}, *WEIGHTS_SCHEMA],
        },
    }
)
Part = tuple[tuple[Decision, ...], Any]  # the rules of a group, and their shares where they are drawn


def _write_part(part: Part, name: str) -> Any:
    decisions, weights = part
    weights = json_value(weights, f"{name}.weights")
    return {"rules": write_decisions(decisions, f"{name}.rules"), "weights": weights}


def _read_part(value: Any, name: str) -> Part:
    document = read_object(value, name)
    check_keys(document, ("rules", "weights"), name)
    decisions = read_decisions(document["rules"], f"{name}.rules")
    if document["weights"] is not None:
        return decisions, read_weights(document["weights"], f"{name}.weights")
    if len(decisions) > 1:
        raise InvalidParameter(f"{name}.weights", f"have the shares of its {len(decisions)} rules", "None")
    return decisions, None


def _write_parts(parts: Sequence[Part], name: str) -> Any:
    return [_write_part(part, name) for part in parts]


def _read_parts(value: Any, name: str) -> tuple[Part, ...]:
    return tuple(_read_part(part, f"{name}[{g}]") for g, part in enumerate(read_list(value, name)))


def _write_groups(groups: Sequence[Any], name: str) -> Any:
    each = [list(group) if isinstance(group, tuple) else [group] for group in groups]
    return [json_labels(_objects(labels), name) for labels in each]


def _objects(labels: Sequence[Any]) -> Any:
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _read_groups(value: Any, name: str) -> tuple[Any, ...]:
    each = read_list(value, name)
    labels = [read_labels(group, f"{name}[{g}]").tolist() for g, group in enumerate(each)]
    return tuple(tuple(group) if len(group) > 1 else group[0] for group in labels)


_FIELDS = (
    JsonField(
        "groups",
        {
            "description": "Name of each group: a label for each column that defines groups.",
            **array_of(array_of(LABEL_SCHEMA)),
        },
        _read_groups,
        _write_groups,
    ),
    JsonField(
        "features",
        {"description": "Names of the columns that define groups.", **NAMES_SCHEMA},
        nullable(read_names),
    ),
    JsonField(
        "rules",
        {
            "description": "Rule of each group; if there are several, one of them is drawn for each row and output.",
            **array_of(_PART_SCHEMA),
        },
        _read_parts,
        _write_parts,
    ),
    JsonField(
        "other",
        {
            "description": "Rule for rows whose group is none of these, or missing. Omitted if such rows are refused.",
            **_PART_SCHEMA,
        },
        _read_part,
        _write_part,
        optional=True,
    ),
    SEED,
)


# ------------------------------------------------------------------------------------------------------------ the rule


@dataclass(frozen=True, eq=False)
class GroupedRule(RuleOfParts):
    """Rule that decides each row by the rule of its sensitive group.

    Two rules are equal if they decide alike; `metadata` is not compared.

    Parameters
    ----------
    rules : tuple of G WeightedRule or MixtureRule
        The rule of each group; all have the same outputs and classes.
    groups : tuple of G objects
        Names of the groups, as in `sensitive_features`; tuples if that has several columns.
    features : tuple of str, optional
        Names of these columns, by which the columns of a data frame are selected.
    metadata : RuleMetadata, or mapping
        As in WeightedRule.
    other : WeightedRule or MixtureRule, optional
        The rule of rows whose group is none of these, or missing; None: such rows raise an error. See
        :class:`metricwise.Sensitive`.

    See Also
    --------
    metricwise.optimize : Find a rule that satisfies constraints about groups.
    metricwise.Sensitive : Choose what becomes of rows of other groups.

    Examples
    --------
    >>> import metricwise as mw
    >>> strict, lenient = mw.WeightedRule.from_thresholds(0.6), mw.WeightedRule.from_thresholds(0.4)
    >>> rule = mw.GroupedRule((strict, lenient), ("a", "b"))
    >>> rule.predict([0.5, 0.5, 0.7], sensitive_features=["a", "b", "a"])
    array([0, 1, 1])
    >>> print(rule.describe())
    In group 'a':
      Predict 1 when its probability exceeds 0.6, else 0.
    In group 'b':
      Predict 1 when its probability exceeds 0.4, else 0.
    """

    rules: tuple[FlatRule, ...]
    groups: tuple[Any, ...]
    features: tuple[str, ...] | None = None
    metadata: RuleMetadata = NO_METADATA
    other: FlatRule | None = None
    kind: ClassVar[str] = "grouped"
    summary: ClassVar[str] = "A rule for each sensitive group."
    needs: ClassVar[frozenset[str]] = frozenset({"sensitive_features"})
    fields: ClassVar = _FIELDS

    @entry_point("{class}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "groups", tuple(self.groups))
        object.__setattr__(self, "features", None if self.features is None else tuple(self.features))
        object.__setattr__(self, "metadata", RuleMetadata.of(self.metadata))
        _check(self)

    @classmethod
    def of(cls, rule: FlatRule, schema: Schema, groups: Groups) -> GroupedRule:
        """Return the rule of M outputs by group, of a rule whose outputs come once for every group."""
        parts = np.arange(len(groups.names) * schema.n_outputs).reshape(len(groups.names), -1)
        rules = tuple(_of_outputs(rule, outputs, schema) for outputs in parts)
        return cls(rules, groups.names, groups.features, rule.metadata)

    # ------------------------------------------------------------------------------------------------- shapes

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """Outputs and classes, which all rules share."""
        return self.rules[0].schema

    @property
    def is_randomized(self) -> bool:
        """Whether the decisions about some group are drawn."""
        return any(rule.is_randomized for rule in self.parts)

    @property
    def seed(self) -> int:
        """Seed of the mixtures among the rules, which share it; 0 without any."""
        return next((rule.seed for rule in self.parts if isinstance(rule, MixtureRule)), 0)

    @property
    def parts(self) -> tuple[FlatRule, ...]:
        """The rule of each group, and that of other groups behind them if there is one."""
        return self.rules if self.other is None else (*self.rules, self.other)

    @property
    def unknown(self) -> str:
        """What becomes of rows of other groups: "refuse", "abstain" or "blind"; see :class:`metricwise.Sensitive`."""
        if self.other is None:
            return "refuse"
        return "abstain" if self.abstain_label is not None and self.other == abstaining(self.schema) else "blind"

    @property
    def by_group(self) -> dict[Any, FlatRule]:
        """The rule of each group by its name."""
        return dict(zip(self.groups, self.rules, strict=True))

    # ---------------------------------------------------------------------------------------------- decisions

    @property
    def known(self) -> Groups:
        """The groups of the rule."""
        return Groups(self.groups, self.features)

    def read_groups(self, sensitive_features: Any, n_rows: int) -> IntArray:
        """Read the group of each row, one of `groups` unless there is a rule for other ones."""
        return self.known.codes(sensitive_features, n_rows, others=self.other is not None)

    def decide(self, rows: RuleRows) -> IntArray:
        """Return the codes of the decisions about rows, each by the rule of its group, of shape (N, M)."""
        result = np.empty((rows.proba.n_rows, self.n_outputs), dtype=np.intp)
        for rule, places in self._by_part(rows):
            result[places] = rule.decide(rows.take(places))
        return result

    def distribute(self, rows: RuleRows) -> FloatArray:
        """Return the probability of each decision, (N, M, D), by the rule of each row's group."""
        result = np.zeros((rows.proba.n_rows, self.n_outputs, self.schema.decision_width))
        for rule, places in self._by_part(rows):
            result[places] = rule.distribute(rows.take(places))
        return result

    def calibrate(self, rows: RuleRows) -> Probabilities:
        """Return the probabilities behind the link of each row's group."""
        result = recalibrated(None, rows.proba)
        for rule, places in self._by_part(rows):
            for block, values in zip(result.blocks, rule.calibrate(rows.take(places)).blocks, strict=True):
                block[places] = values
        return result

    @property
    def shared_link(self) -> TemperatureScaling | None:
        """The link of all groups, if it is one."""
        first, *others = (part.shared_link for part in self.parts)
        return first if all(link == first for link in others) else None

    def _by_part(self, rows: RuleRows) -> list[tuple[FlatRule, IntArray]]:
        """The rules that decide some rows, with the places of these."""
        places = [np.flatnonzero(rows.groups == g) for g in range(len(self.parts))]
        return [
            (rule, rows_of_part) for rule, rows_of_part in zip(self.parts, places, strict=True) if len(rows_of_part)
        ]

    def decide_each(self, rows: RuleRows, n_groups: int = 1) -> tuple[list[IntArray], FloatArray]:
        """Return the decisions of each rule of each group, and their shares; see :meth:`.Rule.decide_each`.

        The rows of a group are decided among its outputs only; what the other outputs hold of them is never counted.
        """
        parts = [rule.flatten() for rule in self.parts[:n_groups]]
        size, n_outputs = max(len(part.rules) for part in parts), self.n_outputs
        dtype = kernels.code_type(self.schema.decision_width)
        codes = np.zeros((size, rows.proba.n_rows, n_groups * n_outputs), dtype=dtype)
        shares = np.zeros((n_groups * n_outputs, size))
        for g, part in enumerate(parts):
            places, outputs = np.flatnonzero(rows.groups == g), slice(g * n_outputs, (g + 1) * n_outputs)
            shares[outputs, : len(part.rules)] = part.shares
            for r, rule in enumerate(part.rules):
                codes[r, places, outputs] = rule.decide(rows.take(places))
        return list(codes), shares

    def flatten(self) -> LossMixture:
        """Refuse: rows of different groups are decided by different losses."""
        raise InvalidParameter(
            "rule", "be one rule for all groups", "a rule by group", "use from_solution with the result of optimize"
        )

    def accept(self, writer: RuleWriter[T]) -> T:
        """Return what a writer writes of the rule."""
        return writer.grouped(self)

    def decision_lines(self, metadata: RuleMetadata) -> list[str]:
        """Say what the rule of each group decides."""
        order = {name: value for name in ("order", "ordered") if (value := getattr(metadata, name)) is not None}

        def described(rule: FlatRule) -> list[str]:
            return ["  " + line for line in rule.with_metadata(**order).describe().splitlines()]

        lines = []
        for name, rule in self.by_group.items():
            title = ", ".join(map(repr, name)) if isinstance(name, tuple) else repr(name)
            lines += [f"In group {title}:", *described(rule)]
        if self.unknown == "abstain":
            lines += ["In any other group:", f"  Abstain: {self.abstain_label!r}."]
        elif self.other is not None:
            lines += ["In any other group:", *described(self.other)]
        return lines

    # ---------------------------------------------------------------------------------------- copies and files

    def _stored_values(self) -> dict[str, Any]:
        """Return the values of all fields of the document by name."""
        return {
            **self._shared_values(),
            "groups": self.groups,
            "features": self.features,
            "rules": [_decisions_of(rule) for rule in self.rules],
            "other": None if self.other is None else _decisions_of(self.other),
            "seed": self.seed,
        }

    @classmethod
    def _from_values(cls, values: dict[str, Any], metadata: RuleMetadata) -> GroupedRule:
        """Return the rule of the values of all fields."""
        groups, features, parts, other, seed = (values.pop(field.name) for field in _FIELDS)
        rules = tuple(_flat_rule(part, values, seed) for part in parts)
        return cls(rules, groups, features, metadata, None if other is None else _flat_rule(other, values, seed))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GroupedRule):
            return NotImplemented
        return (self.groups, self.features, self.parts) == (other.groups, other.features, other.parts)

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content


def abstaining(schema: Schema) -> WeightedRule:
    """Return the rule that always abstains, for a schema that has a label for that."""
    full = np.ones((schema.n_outputs, schema.decision_width, schema.decision_width))
    full[np.arange(schema.n_outputs), :, schema.n_decisions - 1] = 0.0
    return rule_of_schema(Loss(full=full), schema)


def of_schema(rule: FlatRule, schema: Schema) -> FlatRule:
    """Return the rule of the M outputs of a schema, of one whose outputs come once for every group and are alike."""
    return replace(_of_outputs(rule, np.arange(schema.n_outputs), schema), metadata=rule.metadata)


def _of_outputs(rule: FlatRule, outputs: IntArray, schema: Schema) -> FlatRule:
    """The rule of some of the outputs, which are those of a schema."""
    if isinstance(rule, MixtureRule):
        used = np.atleast_2d(rule.weights)
        used = used if len(used) == 1 else used[outputs]
        some = np.flatnonzero(used.max(axis=0) > 0)
        parts = [_of_outputs(rule.rules[r], outputs, schema) for r in some]
        rules = tuple(part for part in parts if isinstance(part, WeightedRule))
        if len(rules) == 1:
            return rules[0]
        weights = used[:, some] / used[:, some].sum(axis=1, keepdims=True)
        return MixtureRule(rules, weights[0] if (weights == weights[0]).all() else weights, rule.seed)
    loss = rule.loss.map(lambda a: a if len(a) == 1 else a[outputs])
    link = None if rule.link is None else rule.link.of_outputs(outputs)
    return rule_of_schema(loss, schema, link)


def _decisions_of(rule: FlatRule) -> Part:
    """Return the losses and links of the rule of a group, and their shares where they are drawn."""
    part = rule.flatten()
    decisions = tuple((component.loss, component.link) for component in part.rules)
    return decisions, rule.weights if isinstance(rule, MixtureRule) else None


def _flat_rule(part: Part, shared: dict[str, Any], seed: int) -> FlatRule:
    """Return the rule of a group."""
    decisions, weights = part
    rules = tuple(WeightedRule(loss, link=link, **shared) for loss, link in decisions)
    return rules[0] if weights is None else MixtureRule(rules, weights, seed)


def _check(rule: GroupedRule) -> None:
    rules = rule.rules
    if not rules or not all(isinstance(part, (WeightedRule, MixtureRule)) for part in rule.parts):
        kinds = [type(part).__name__ for part in rule.parts]
        raise InvalidParameter("rules", "hold a WeightedRule or a MixtureRule for every group", kinds)
    if len(rule.groups) != len(rules) or len(set(rule.groups)) < len(rules):
        raise InvalidParameter("groups", f"have a distinct name for each of the {len(rules)} rules", list(rule.groups))
    sizes = {len(name) if isinstance(name, tuple) else 1 for name in rule.groups}
    if len(sizes) > 1 or (rule.features is not None and len(rule.features) not in sizes):
        raise InvalidParameter("groups", "all have one label per feature", f"{list(rule.groups)} and {rule.features!r}")
    first = rules[0].schema
    for g, part in enumerate(rule.parts[1:], start=1):
        schema = part.schema
        alike = same_classes(schema.classes, first.classes) and schema.multioutput == first.multioutput
        alike = alike and (schema.normalize, schema.input.kind) == (first.normalize, first.input.kind)
        if not alike or schema.output_names != first.output_names:
            raise InvalidParameter(
                "rules",
                (
                    f"share outputs and classes, but those of {f'rules[{g}]' if g < len(rules) else 'other'} "
                    "differ from those of rules[0]"
                ),
            )
    if len({part.seed for part in rule.parts if isinstance(part, MixtureRule)}) > 1:
        raise InvalidParameter("rules", problem="mixtures among the rules must share their seed, got different ones")
