"""What ``evaluate`` compares: rules, thresholds, decisions that are given as labels, two models with a rule each.

Must not know metrics or intervals.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType, argument, mention, shown
from ..core.inputs import identity
from ..core.labels import python_labels
from ..core.losses import Loss
from ..core.probabilities import Probabilities
from ..core.schema import Schema
from ..data.frames import is_two_dimensional
from ..data.labels import read_pair
from ..data.open import open_rows
from ..data.row_spec import RowSpec
from ..data.sensitive import Groups, Partition, SensitiveFeatures, read_sensitive_features
from ..data.single_column import column_places
from ..inference.decisions import Decisions
from ..rules.base import Rule, RuleRows, same_classes
from ..rules.calibration import TemperatureScaling
from ..rules.load import load_rule, rule_from_dict
from ..rules.weighted import WeightedRule
from .arguments import check_input

__all__ = [
    "Contender",
    "Contest",
    "GivenLabels",
    "Sides",
    "Threshold",
    "check_alike",
    "codes_for",
    "groups_in",
    "input_of",
    "is_pair_of_models",
    "known_partition",
    "read_contest",
    "read_groups",
    "read_sides",
]

_OTHER_GROUPS = "other groups"  # name of the rows of groups that a rule does not know


@dataclass(frozen=True, eq=False)
class Contender:
    """A rule with the probabilities that it decides by, or decisions as labels or a threshold in place of a rule.

    A `threshold` is one of logits or scores; that of probabilities is a rule.
    """

    rule: Rule | None
    proba: Any
    labels: Any = None
    threshold: float | None = None

    def decisions(
        self,
        contest: Contest,
        y: Any,
        read: Probabilities,
        sensitive: SensitiveFeatures | None,
        cost: NDArray[np.float64] | None,
        segments: Any = None,
        *,
        start: int = 0,
    ) -> Decisions:
        """Return what is decided about rows whose probabilities have been read; `start` is that of the first."""
        n_groups = 1 if sensitive is None else len(sensitive.groups.names)
        reader = contest.reader
        if self.threshold is not None:
            return Decisions.of_codes(_above(self.threshold, read, reader.classes, contest.pos_label), n_groups)
        if self.rule is None:
            classes = list(reader.classes) if reader.multioutput else reader.classes[0]
            codes = read_pair(y, self.labels, classes)[1]
            return Decisions.of_codes(codes, n_groups)
        rows = RuleRows(read, start, codes_for(self.rule, read.n_rows, sensitive, segments), cost)
        return Decisions.of(self.rule, rows, n_groups)


def codes_for(rule: Any, n_rows: int, sensitive: SensitiveFeatures | None, segments: Any) -> NDArray[np.intp] | None:
    """Return what a rule knows of rows: their segments if it needs these, else their sensitive groups."""
    if "segments" in rule.needs:
        if isinstance(segments, SensitiveFeatures):  # read with the rows
            return segments.codes
        codes: NDArray[np.intp] = rule.read_groups(n_rows, segments=segments)
        return codes
    return None if sensitive is None else sensitive.codes


def _above(
    threshold: float, proba: Probabilities, classes: tuple[NDArray[Any], ...], pos_label: Any
) -> NDArray[np.intp]:
    """Return the codes (N, M) of two classes where the log-odds or score of the positive one exceeds a threshold."""
    places = column_places(classes, pos_label)
    columns = [proba.positive_column(m) for m in range(proba.n_outputs)]
    codes = [
        column > threshold if place else ~(-column > threshold) for column, place in zip(columns, places, strict=True)
    ]
    return np.stack(codes, axis=1).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Contest:
    """What is compared with what; without a second side, the first is compared with argmax.

    `models` are the names of two models, if these are compared; `proba` the probabilities that rows are read with;
    `reader` a rule with the outputs and classes of both sides; `by_threshold` whether a side is a threshold.
    """

    first: Contender
    second: Contender | None
    titles: tuple[str, str]
    models: tuple[str, str] | None
    proba: Any
    reader: Rule
    by_threshold: bool = False
    pos_label: Any = None

    @property
    def contenders(self) -> list[Contender]:
        """All that were given."""
        return [self.first] if self.second is None else [self.first, self.second]

    @property
    def rules(self) -> list[Rule]:
        """Their rules."""
        return [contender.rule for contender in self.contenders if contender.rule is not None]


@dataclass(frozen=True, eq=False)
class GivenLabels:
    """Decisions in place of a rule."""

    labels: Any


class Threshold(NamedTuple):
    """A threshold in place of a rule, and the parameter that it was given as."""

    value: float
    parameter: str

    def check_probability(self) -> None:
        """Refuse what is no threshold of probabilities."""
        if not (0 <= self.value <= 1 or abs(self.value) == np.inf):
            raise InvalidParameter(
                self.parameter,
                problem=f"{self.parameter} as a threshold must be a number in [0, 1], got {shown(self.value)}",
                remedy=f"pass {argument('input', 'logits')} or {argument('input', 'scores')} for a threshold on these",
            )


@dataclass(frozen=True, eq=False)
class Sides:
    """What was given as `rule` and `against`: rules, thresholds or decisions, each with its probabilities.

    `models` as in Contest.
    """

    pairs: list[tuple[Rule | Threshold | GivenLabels, Any]]
    titles: tuple[str, str]
    models: tuple[str, str] | None = None

    @property
    def rules(self) -> list[Rule]:
        """Those that are rules."""
        return [side for side, _ in self.pairs if isinstance(side, Rule)]


def read_sides(rule: Any, proba: Any, against: Any) -> Sides:
    """Read what stands for rules; the arguments are those of :func:`metricwise.evaluate`."""
    if not is_pair_of_models(rule):
        titles = ("rule", "argmax" if against is None else "other rule")
        pairs = [(_read(rule, "rule"), proba)] + ([] if against is None else [(_read(against, "against"), proba)])
        return Sides(pairs, titles)
    if against is not None or proba is not None:
        raise InvalidParameter(
            "against", problem=f"{mention('against')} and proba must be left out if rule is a dict of two models"
        )
    if len(rule) != 2:
        raise InvalidParameter("rule", problem=f"rule as a dict must hold two models, got {len(rule)}")
    first, last = map(str, rule)
    return Sides([_of_model(name, pair) for name, pair in rule.items()], (first, last), (first, last))


def read_contest(sides: Sides, y: Any, pos_label: Any, row_input: Any = None) -> Contest:
    """Read what is compared; the arguments are those of :func:`metricwise.evaluate`."""
    pairs, models = sides.pairs, sides.models
    if len(pairs) == 1 and pairs[0][1] is None:
        raise InvalidParameter(
            "proba",
            "hold the probabilities of the rows",
            "None",
            "only decisions given as labels can be compared without them, with other decisions as against",
        )
    shown_proba = next((side_proba for _, side_proba in pairs if side_proba is not None), None)
    if shown_proba is None and not all(isinstance(side, GivenLabels) for side, _ in pairs):
        raise InvalidParameter("proba", "hold the probabilities of the rows", "None")
    kind = input_of([side for side, _ in pairs], row_input, models)
    reader = _reader([side for side, _ in pairs], shown_proba, y, pos_label, kind)
    contenders = [_contender(side, side_proba, reader, pos_label) for side, side_proba in pairs]
    second = contenders[1] if len(contenders) > 1 else None
    if second is not None and contenders[0].rule is not None and second.rule is not None:
        check_alike(contenders[0].rule, second.rule, models)
    by_threshold = any(isinstance(side, Threshold) for side, _ in pairs)
    return Contest(contenders[0], second, sides.titles, models, shown_proba, reader, by_threshold, pos_label)


def is_pair_of_models(rule: Any) -> bool:
    """Whether `rule` is a dict of names and pairs of a rule and probabilities, and not a rule as a dict."""
    return isinstance(rule, Mapping) and bool(rule) and all(isinstance(pair, (tuple, list)) for pair in rule.values())


def _of_model(name: Any, pair: Any) -> tuple[Any, Any]:
    if len(pair) != 2:
        raise InvalidParameter(
            "rule",
            problem=(
                f"rule as a dict must hold a pair (rule, proba) for each of two models, got {len(pair)} "
                f"values for {name!r}"
            ),
        )
    return _read(pair[0], f"rule[{name!r}][0]"), pair[1]


def _read(rule: Any, parameter: str) -> Rule | Threshold | GivenLabels:
    """Return what stands for a rule: the rule itself, a threshold, or decisions."""
    if isinstance(getattr(rule, "rule", None), Rule):  # a Solution, or a point of a trade-off
        rule = rule.rule
    if isinstance(rule, Rule):
        return rule
    if isinstance(rule, (str, os.PathLike)):
        return load_rule(rule)
    if isinstance(rule, Mapping):
        return rule_from_dict(rule)
    if isinstance(rule, (int, float, np.number)) and not isinstance(rule, bool):
        return Threshold(float(rule), parameter)
    array_like = hasattr(rule, "__array__") or hasattr(rule, "shape")  # arrays of pyarrow have no shape
    if isinstance(rule, (list, tuple)) or (array_like and len(getattr(rule, "shape", (0,))) in (1, 2)):
        return GivenLabels(rule)
    raise InvalidType(
        parameter,
        (
            "be a rule, a Solution, a JSON file or text, a dict from to_dict, a threshold, or the "
            "decisions about the rows as labels"
        ),
        shown(rule),
    )


def input_of(sides: list[Any], declared: Any, models: tuple[str, str] | None) -> str:
    """Return what the numbers of rows are, which rules on the same rows must agree on."""
    rules = [side for side in sides if isinstance(side, Rule)]
    kinds = [rule.input for rule in rules]
    if models is None and len(set(kinds)) > 1:
        raise InvalidParameter(
            "against",
            problem=f"rule and {mention('against')} must be fitted to the same numbers, got {kinds[0]} and {kinds[1]}",
            remedy="to compare them, pass a dict of two models, each with its own numbers",
        )
    if declared is None and models is not None:
        return kinds[0] if kinds else "probabilities"
    return check_input(declared, *rules)


def _reader(sides: list[Any], proba: Any, y: Any, pos_label: Any, kind: str) -> Rule:
    """Return a rule of the outputs and classes that all have in common: one that was given, else argmax of the rows."""
    for side in sides:
        if isinstance(side, Rule):
            return side
    kind = "probabilities" if proba is None else kind
    classes, several, names = _classes(sides, proba, y, pos_label, kind)
    width = max(map(len, classes))
    link = None if kind == "probabilities" else TemperatureScaling.of_arrays(identity(len(classes), width))
    return WeightedRule(Loss.argmax(width), classes, link, multioutput=several, output_names=names, input=kind)


def _classes(sides: list[Any], proba: Any, y: Any, pos_label: Any, kind: str) -> tuple[Any, bool, Any]:
    """Return the classes by the labels of the rows and, where there are no probabilities, by the decisions."""
    if proba is None:
        pairs = [read_pair(y, side.labels, None)[2] for side in sides]
        several = is_two_dimensional(y)
        joined = [np.unique(np.concatenate([classes[m] for classes in pairs])) for m in range(len(pairs[0]))]
        return tuple(joined), several, None
    schema, _ = open_rows(RowSpec(proba, y, pos_label=pos_label, input=kind))
    return schema.classes, schema.multioutput, schema.output_names


def _contender(side: Any, proba: Any, reader: Rule, pos_label: Any) -> Contender:
    if isinstance(side, GivenLabels):
        return Contender(None, None, side.labels)
    if isinstance(side, Threshold):
        if max(map(len, reader.classes)) > 2:
            raise InvalidParameter(
                "rule",
                problem=f"a threshold is only for two classes, got {max(map(len, reader.classes))}",
                remedy="use WeightedRule.from_weights",
            )
        if reader.schema.input.is_logits:
            return Contender(None, proba, threshold=side.value)
        side.check_probability()
        thresholds: Any = [side.value] * reader.n_outputs if reader.multioutput else side.value
        classes: Any = list(reader.classes) if reader.multioutput else reader.classes[0]
        side = WeightedRule.from_thresholds(
            thresholds, classes=classes, pos_label=pos_label, output_names=reader.output_names
        )
    return Contender(side, proba)


def known_partition(
    rules: Iterable[Any], models: tuple[str, str] | None, need: str = "sensitive_features"
) -> Partition | None:
    """Return the groups or segments that rules know; None if there are no such rules.

    `models` are the names of two models whose rules these are, if there are any.
    """
    partitioned = [rule for rule in rules if need in rule.needs]
    if not partitioned:
        return None
    first, last = partitioned[0].known, partitioned[-1].known
    if first.names != last.names:
        raise _unlike(f"{first.noun}s", shown(list(first.names)), shown(list(last.names)), models)
    return Partition(first, all(rule.decides_others for rule in partitioned))


def groups_in(partition: Partition) -> Groups:
    """Return the groups of rows, with one for all that are in none of those known, if there are any."""
    groups = partition.groups
    return Groups((*groups.names, _OTHER_GROUPS)) if partition.has_others else groups


def read_groups(known: Partition | None, sensitive_features: Any, n_rows: int) -> SensitiveFeatures | None:
    """Read the groups of rows: those that rules by group know, else those that there are."""
    if known is None:
        return None if sensitive_features is None else read_sensitive_features(sensitive_features, n_rows)
    codes = known.codes(sensitive_features, n_rows)
    has_others = bool((codes == len(known.groups.names)).any())
    return SensitiveFeatures(codes, groups_in(replace(known, has_others=has_others)))


def check_alike(rule: Any, other: Any, models: tuple[str, str] | None) -> None:
    """Refuse a rule for other outputs or classes, whose decisions about the same columns mean something else."""
    schema, others = rule.schema, other.schema
    if schema.multioutput != others.multioutput or not same_classes(schema.classes, others.classes):
        raise _unlike("outputs and classes", _outputs(schema), _outputs(others), models)
    if None not in (schema.output_names, others.output_names) and schema.output_names != others.output_names:
        raise _unlike("outputs", shown(schema.output_names), shown(others.output_names), models)


def _unlike(what: str, first: str, other: str, models: tuple[str, str] | None) -> ValueError:
    """Return the error where two rules differ in what they must have in common; `models` as in Contest."""
    if models is None:
        return InvalidParameter(
            "against", f"be a rule for the same {what} as the rule, in the same order, {first}", other
        )
    return InvalidParameter(
        "rule",
        problem=(
            f"the rules of {models[0]!r} and {models[1]!r} must have the same {what}, in the same order, "
            f"got {first} and {other}"
        ),
    )


def _outputs(schema: Schema) -> str:
    classes = [python_labels(labels) for labels in schema.classes]
    return shown(classes if schema.multioutput else classes[0])
