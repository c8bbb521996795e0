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
from ..core.schema import Schema
from ..data.sensitive import Groups
from .base import RuleRows, same_classes
from .codec import NAMES_SCHEMA, SEED, JsonField, array_of, nullable, read_list, read_names
from .metadata import NO_METADATA, RuleMetadata
from .mixture import MixtureRule
from .partitioned import (
    NAMES_OF_PARTS,
    PART_SCHEMA,
    FlatRule,
    Part,
    PartitionedRule,
    decisions_of,
    flat_rule,
    part_lines,
    read_part,
    read_part_names,
    title_of,
    write_part,
    write_part_names,
)
from .weighted import WeightedRule, rule_of_schema
from .writer import RuleWriter

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
T = TypeVar("T")

# -------------------------------------------------------------------------------------------------- fields of documents


def _write_parts(parts: Sequence[Part], name: str) -> Any:
    return [write_part(part, name) for part in parts]


def _read_parts(value: Any, name: str) -> tuple[Part, ...]:
    return tuple(read_part(part, f"{name}[{g}]") for g, part in enumerate(read_list(value, name)))


_FIELDS = (
    JsonField(
        "groups",
        {
            "description": "Name of each group: a label for each column that defines groups.",
            **NAMES_OF_PARTS,
        },
        read_part_names,
        write_part_names,
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
            **array_of(PART_SCHEMA),
        },
        _read_parts,
        _write_parts,
    ),
    JsonField(
        "other",
        {
            "description": "Rule for rows whose group is none of these, or missing. Omitted if such rows are refused.",
            **PART_SCHEMA,
        },
        read_part,
        write_part,
        optional=True,
    ),
    SEED,
)


# ------------------------------------------------------------------------------------------------------------ the rule


@dataclass(frozen=True, eq=False)
class GroupedRule(PartitionedRule):
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

    def accept(self, writer: RuleWriter[T]) -> T:
        """Return what a writer writes of the rule."""
        return writer.grouped(self)

    def decision_lines(self, metadata: RuleMetadata) -> list[str]:
        """Say what the rule of each group decides."""
        lines = []
        for name, rule in self.by_group.items():
            lines += [f"In group {title_of(name)}:", *part_lines(rule, metadata)]
        if self.unknown == "abstain":
            lines += ["In any other group:", f"  Abstain: {self.abstain_label!r}."]
        elif self.other is not None:
            lines += ["In any other group:", *part_lines(self.other, metadata)]
        return lines

    # ---------------------------------------------------------------------------------------- copies and files

    def _stored_values(self) -> dict[str, Any]:
        """Return the values of all fields of the document by name."""
        return {
            **self._shared_values(),
            "groups": self.groups,
            "features": self.features,
            "rules": [decisions_of(rule) for rule in self.rules],
            "other": None if self.other is None else decisions_of(self.other),
            "seed": self.seed,
        }

    @classmethod
    def _from_values(cls, values: dict[str, Any], metadata: RuleMetadata) -> GroupedRule:
        """Return the rule of the values of all fields."""
        groups, features, parts, other, seed = (values.pop(field.name) for field in _FIELDS)
        rules = tuple(flat_rule(part, values, seed) for part in parts)
        return cls(rules, groups, features, metadata, None if other is None else flat_rule(other, values, seed))

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
        alike = alike and schema.input.ordinal == first.input.ordinal
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
