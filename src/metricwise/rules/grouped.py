"""Rules that see which sensitive group a row is in: one rule for each group.

Owns which rule decides a row, and the groups that it knows. Must not know why groups are decided differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, entry_point
from ..core.losses import Loss
from ..data import Groups, Probabilities, Schema, decode
from . import serialize
from .description import headline
from .link import recalibrated, shaped_like
from .mixture import MixtureRule
from .stored import StoredRule
from .weighted import (
    WeightedRule,
    decision_to_dict,
    rule_from_fields,
    same_classes,
    shared_from_dict,
    shared_to_dict,
)

__all__ = ["GroupedRule", "abstaining"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Rule = WeightedRule | MixtureRule

_FIELDS = ("classes", "multioutput", "normalize", "output_names", "groups", "features", "rules", "seed", "facts")


@dataclass(frozen=True, eq=False)
class GroupedRule(StoredRule):
    """Rule that decides each row by the rule of its sensitive group.

    Two rules are equal if they decide alike; `facts` are not compared.

    Parameters
    ----------
    rules : tuple of G WeightedRule or MixtureRule
        The rule of each group; all have the same outputs and classes.
    groups : tuple of G objects
        Names of the groups, as in `sensitive_features`; tuples if that has several columns.
    features : tuple of str, optional
        Names of these columns, by which the columns of a data frame are selected.
    facts : mapping
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

    rules: tuple[Rule, ...]
    groups: tuple[Any, ...]
    features: tuple[str, ...] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    other: Rule | None = None

    @entry_point("{class}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "groups", tuple(self.groups))
        object.__setattr__(self, "features", None if self.features is None else tuple(self.features))
        object.__setattr__(self, "facts", dict(self.facts))
        _check(self)

    @classmethod
    def of(cls, rule: Rule, schema: Schema, groups: Groups) -> GroupedRule:
        """Return the rule of M outputs by group, of a rule whose outputs come once for every group.

        Parameters
        ----------
        rule : WeightedRule or MixtureRule
            Of G * M outputs, one group after the other.
        schema : Schema
            Of the M outputs.
        groups : Groups
        """
        parts = np.arange(len(groups.names) * schema.n_outputs).reshape(len(groups.names), -1)
        rules = tuple(_of_outputs(rule, own, schema) for own in parts)
        return cls(rules, groups.names, groups.features, rule.facts)

    # ------------------------------------------------------------------------------------------------- shapes

    @property
    def schema(self) -> Schema:
        """Outputs and classes, which all rules share."""
        return self.rules[0].schema

    @property
    def classes(self) -> tuple[NDArray[Any], ...]:
        """Label of each class of each output."""
        return self.schema.classes

    @property
    def multioutput(self) -> bool:
        """Whether predictions are 2-D."""
        return self.schema.multioutput

    @property
    def abstain_label(self) -> Any:
        """Label that is predicted if the rule abstains; None: it never does."""
        return self.schema.abstain_label

    @property
    def n_classes(self) -> IntArray:
        """K_m of each output, of shape (M,)."""
        return self.schema.n_classes

    @property
    def n_outputs(self) -> int:
        """M."""
        return self.schema.n_outputs

    @property
    def width(self) -> int:
        """K, the largest K_m."""
        return self.schema.width

    @property
    def parts(self) -> tuple[Rule, ...]:
        """The rule of each group, and that of other groups behind them if there is one."""
        return self.rules if self.other is None else (*self.rules, self.other)

    @property
    def unknown(self) -> str:
        """What becomes of rows of other groups: "refuse", "abstain" or "blind"; see :class:`metricwise.Sensitive`."""
        if self.other is None:
            return "refuse"
        return "abstain" if self.abstain_label is not None and self.other == abstaining(self.schema) else "blind"

    @property
    def by_group(self) -> dict[Any, Rule]:
        """The rule of each group by its name."""
        return dict(zip(self.groups, self.rules, strict=True))

    # ---------------------------------------------------------------------------------------------- decisions

    @entry_point()
    def predict(
        self, proba: Any, sensitive_features: Any = None, start: int = 0, *, pos_label: Any = None
    ) -> NDArray[Any]:
        """Predict labels, each row by the rule of its group.

        Parameters
        ----------
        proba : array-like
            As in WeightedRule.predict.
        sensitive_features : array-like of shape (N,) or (N, F)
            The group of every row, one of `groups` unless there is a rule for `other` ones. Columns of a data frame are
            selected by name.
        start : int, default=0
            Position of the first row, on which the draws of mixtures depend.
        pos_label : object, or list of M objects, optional
            As in WeightedRule.predict.

        Returns
        -------
        ndarray of shape (N,), or (N, M) if `multioutput`
        """
        read, codes = self._read(proba, sensitive_features, pos_label)
        labels = decode(self.decide(read, codes, start), self.schema.decisions)
        return labels if self.multioutput else labels[:, 0]

    @entry_point()
    def distribution(self, proba: Any, sensitive_features: Any = None, *, pos_label: Any = None) -> FloatArray:
        """Return the exact probability with which each class is predicted; nothing is drawn.

        Parameters
        ----------
        proba, sensitive_features, pos_label
            As in `predict`.

        Returns
        -------
        ndarray of shape (N, K), or (N, M, K) if `multioutput`
        """
        read, codes = self._read(proba, sensitive_features, pos_label)
        result = np.zeros((read.n_rows, self.n_outputs, self.schema.decision_width))
        for g, rule in enumerate(self.parts):
            rows = np.flatnonzero(codes == g)
            if len(rows):
                result[rows] = rule.distribution_of(read.take(rows))
        return result if self.multioutput else result[:, 0]

    @entry_point()
    def calibrated(
        self, proba: Any, sensitive_features: Any = None, *, pos_label: Any = None
    ) -> NDArray[Any] | list[NDArray[Any]]:
        """Return the probabilities behind the recalibration of each row's group, see :meth:`WeightedRule.calibrated`.

        Parameters
        ----------
        proba, sensitive_features, pos_label
            As in `predict`.

        Returns
        -------
        ndarray of the shape of proba, or list of M such
        """
        read, codes = self._read(proba, sensitive_features, pos_label)
        result = recalibrated(None, read)
        for g, rule in enumerate(self.parts):
            rows = np.flatnonzero(codes == g)
            if len(rows):
                for block, own in zip(result.blocks, rule.calibrated_of(read.take(rows)).blocks, strict=True):
                    block[rows] = own
        return shaped_like(proba, result, self.multioutput)

    def _read(self, proba: Any, sensitive_features: Any, pos_label: Any) -> tuple[Probabilities, IntArray]:
        read = components(self.rules[0])[0].read(proba, self.facts, pos_label)
        return read, self.known.codes(sensitive_features, read.n_rows, others=self.other is not None)

    @property
    def known(self) -> Groups:
        """The groups of the rule."""
        return Groups(self.groups, self.features)

    def decide(self, proba: Probabilities, codes: IntArray, start: int = 0) -> IntArray:
        """Predict codes of shape (N, M) for probabilities and codes (N,) of groups that have been read already."""
        result = np.empty((proba.n_rows, self.n_outputs), dtype=np.intp)
        for g, rule in enumerate(self.parts):
            rows = np.flatnonzero(codes == g)
            if len(rows):
                some = proba.take(rows)
                result[rows] = rule.decide(some) if isinstance(rule, WeightedRule) else rule.decide(some, start + rows)
        return result

    def describe(self) -> str:
        """Describe the rule of each group in a few lines of plain English."""
        lines = headline(self.facts, self.n_outputs > 1)
        known = {name: self.facts[name] for name in ("order", "ordered") if name in self.facts}

        def described(rule: Rule) -> list[str]:
            return ["  " + line for line in rule.with_facts(**known).describe().splitlines()]

        for name, rule in self.by_group.items():
            title = ", ".join(map(repr, name)) if isinstance(name, tuple) else repr(name)
            lines += [f"In group {title}:", *described(rule)]
        if self.unknown == "abstain":
            lines += ["In any other group:", f"  Abstain: {self.abstain_label!r}."]
        elif self.other is not None:
            lines += ["In any other group:", *described(self.other)]
        return "\n".join(lines)

    # ---------------------------------------------------------------------------------------- copies and files

    @entry_point()
    def to_dict(self) -> dict[str, Any]:
        """Return the rule as a dict of JSON types; `from_dict` restores it exactly."""
        parts = [_part_to_dict(rule) for rule in self.rules]
        other = {} if self.other is None else {"other": _part_to_dict(self.other)}
        names = [list(name) if isinstance(name, tuple) else [name] for name in self.groups]
        return {
            "format": serialize.FORMAT,
            "version": serialize.VERSION,
            "kind": "grouped",
            **shared_to_dict(components(self.rules[0])[0]),
            "groups": [serialize.plain_labels(_objects(own), "groups") for own in names],
            "features": None if self.features is None else list(self.features),
            "rules": parts,
            **other,
            "seed": next((rule.seed for rule in self.parts if isinstance(rule, MixtureRule)), 0),
            "facts": serialize.plain(self.facts, "facts"),
        }

    @classmethod
    @entry_point()
    def from_dict(cls, document: Mapping[str, Any]) -> GroupedRule:
        """Return the rule from a dict written by `to_dict`; every field is checked."""
        read = serialize.read_object(document, "the rule")
        serialize.check_fields(read, "grouped", _FIELDS, ("abstain_label", "other"))
        shared, seed = shared_from_dict(read), serialize.read_int(read["seed"], "seed")
        parts = serialize.read_list(read["rules"], "rules")
        rules = tuple(_rule_from(part, shared, seed, f"rules[{g}]") for g, part in enumerate(parts))
        names = [
            serialize.read_labels(name, f"groups[{g}]").tolist()
            for g, name in enumerate(serialize.read_list(read["groups"], "groups"))
        ]
        features = read["features"]
        return cls(
            rules,
            tuple(tuple(name) if len(name) > 1 else name[0] for name in names),
            None if features is None else serialize.read_names(features, "features"),
            serialize.read_facts(read["facts"]),
            _rule_from(read["other"], shared, seed, "other") if "other" in read else None,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GroupedRule):
            return NotImplemented
        return (self.groups, self.features, self.parts) == (other.groups, other.features, other.parts)

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content


def abstaining(schema: Schema) -> WeightedRule:
    """Return the rule that always abstains, for a schema that has a label for that."""
    full = np.ones((schema.n_outputs, schema.decision_width, schema.decision_width))
    full[np.arange(schema.n_outputs), :, schema.n_decisions - 1] = 0.0
    return WeightedRule(
        Loss(full=full),
        schema.classes,
        None,
        schema.multioutput,
        schema.normalize,
        output_names=schema.output_names,
        abstain_label=schema.abstain_label,
    )


def components(rule: Rule) -> tuple[WeightedRule, ...]:
    """Return the weighted rules that a rule is made of."""
    return (rule,) if isinstance(rule, WeightedRule) else rule.rules


def of_schema(rule: Rule, schema: Schema) -> Rule:
    """Return the rule of the M outputs of a schema, of one whose outputs come once for every group and are alike."""
    return replace(_of_outputs(rule, np.arange(schema.n_outputs), schema), facts=rule.facts)


def _of_outputs(rule: Rule, outputs: IntArray, schema: Schema) -> Rule:
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
    return WeightedRule(
        loss,
        schema.classes,
        link,
        schema.multioutput,
        schema.normalize,
        output_names=schema.output_names,
        abstain_label=schema.abstain_label,
    )


def _part_to_dict(rule: Rule) -> dict[str, Any]:
    """Return the rule of one group as a dict."""
    weights = None if isinstance(rule, WeightedRule) else serialize.plain(rule.weights, "weights")
    return {"rules": [decision_to_dict(one) for one in components(rule)], "weights": weights}


def _rule_from(part: Any, shared: Mapping[str, Any], seed: int, field: str) -> Rule:
    """Read the rule of one group."""
    read = serialize.read_object(part, field)
    serialize.check_keys(read, ("rules", "weights"), field)
    documents = serialize.read_list(read["rules"], f"{field}.rules")
    for r, own in enumerate(documents):
        name = f"{field}.rules[{r}]"
        serialize.check_keys(serialize.read_object(own, name), ("loss", "link"), name)
    rules = tuple(rule_from_fields(shared, own, {}) for own in documents)
    if read["weights"] is None:
        if len(rules) > 1:
            raise InvalidParameter(
                "", problem=f"{field}.weights must have the shares of its {len(rules)} rules, got None"
            )
        return rules[0]
    value = serialize.read_list(read["weights"], f"{field}.weights")
    weights = serialize.read_numbers(value, f"{field}.weights", 2 if isinstance(value[0], list) else 1)
    return MixtureRule(rules, weights, seed)


def _objects(values: list[Any]) -> NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _check(rule: GroupedRule) -> None:
    rules = rule.rules
    if not rules or not all(isinstance(one, (WeightedRule, MixtureRule)) for one in rule.parts):
        found = [type(one).__name__ for one in rule.parts]
        raise InvalidParameter("rules", "hold a WeightedRule or a MixtureRule for every group", found)
    if len(rule.groups) != len(rules) or len(set(rule.groups)) < len(rules):
        raise InvalidParameter("groups", f"have a distinct name for each of the {len(rules)} rules", list(rule.groups))
    sizes = {len(name) if isinstance(name, tuple) else 1 for name in rule.groups}
    if len(sizes) > 1 or (rule.features is not None and len(rule.features) not in sizes):
        raise InvalidParameter("groups", "all have one label per feature", f"{list(rule.groups)} and {rule.features!r}")
    first = rules[0].schema
    for g, one in enumerate(rule.parts[1:], start=1):
        own = one.schema
        alike = same_classes(own.classes, first.classes) and own.multioutput == first.multioutput
        if not alike or own.normalize != first.normalize or own.output_names != first.output_names:
            raise InvalidParameter(
                "rules",
                (
                    f"share outputs and classes, but those of {f'rules[{g}]' if g < len(rules) else 'other'} "
                    "differ from those of rules[0]"
                ),
            )
    if len({one.seed for one in rule.parts if isinstance(one, MixtureRule)}) > 1:
        raise InvalidParameter("rules", problem="mixtures among the rules must share their seed, got different ones")
