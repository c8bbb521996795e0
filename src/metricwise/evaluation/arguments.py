"""Rows, rule and metrics of ``evaluate``, as users pass them.

Must not know how values and intervals are computed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType, argument, check_removed, listed, mention, shown
from ..core.inputs import Input
from ..core.labels import Scales, python_labels
from ..core.probabilities import Probabilities
from ..core.schema import Schema
from ..data.arrays import Data, output_names, read_data
from ..data.assignment import warn_of_assignment
from ..data.classes import kept_order
from ..data.frames import column_names, is_frame, is_lazy, is_table, is_two_dimensional, position_named
from ..data.logits import warn_of_probabilities
from ..data.open import open_rows
from ..data.row_spec import InTime, RowSpec
from ..data.single_column import is_single
from ..data.sources.base import SourceBase
from ..data.sources.memory import MemorySource
from ..data.weights import read_output_weight
from ..goals.judged import positive_of, read_aims
from ..goals.spec import GoalSpec
from ..inference.dependence import in_stretches
from ..inference.judge import trial_influences
from ..kernels import LinkArrays
from ..metrics.abstention import Abstention, AbstentionCost, read_abstain
from ..metrics.aim import AveragedMetric
from ..oracles.kinds import has_copies, with_copies
from ..oracles.problem import InMemory
from ..rules.base import PARTITIONS, Rule
from ..rules.calibration_fit import LINK_ROWS
from ..rules.load import as_rule
from ..rules.reading import says_single
from ..rules.score_map import fit_input, map_scores

__all__ = [
    "Rule",
    "allowed_for",
    "baseline_map",
    "check_input",
    "in_output_order",
    "open_side",
    "is_in_table",
    "read_from_table",
    "own_average",
    "own_metric",
    "read_judged",
    "read_proba_for",
    "read_rows",
    "read_rule",
    "read_side_proba",
    "spec_for_rule",
    "specs_of",
]

FloatArray = NDArray[np.float64]

_METRIC_BY_OUTPUT = {"metrics": "metrics=[{output: metric, ...}]", "metric": "metric={output: metric, ...}"}
_DOUBTED_ROWS = 1 << 10  # of rows that are not in memory, which say whether columns may be of other classes
_OF_ROWS = frozenset({"sample_weight", "groups", "order", "pos_label", "input"})
_OF_GOAL = frozenset({"average", "output_weight", "order", "pos_label"})


def specs_of(proba: Any, y: Any, metrics: Any, options: Mapping[str, Any]) -> tuple[RowSpec, GoalSpec]:
    """Return what was asked by the parameters of :func:`evaluate`, for who hands them on."""
    taken = _OF_ROWS | _OF_GOAL
    check_removed("evaluate", options, taken)
    unknown = sorted(options.keys() - taken)
    if unknown:
        raise InvalidType(
            "",
            problem=f"{unknown[0]}= is not a parameter here",
            remedy=f"the parameters are {', '.join(sorted(taken))}",
        )
    rows = RowSpec(proba, y, **{name: value for name, value in {"input": None, **options}.items() if name in _OF_ROWS})
    return rows, GoalSpec(metrics, **{name: value for name, value in options.items() if name in _OF_GOAL})


def read_judged(
    rule: Rule, rows: RowSpec, goal: GoalSpec, *, strict: bool = True, allowed: AbstentionCost | None = None
) -> tuple[SourceBase, dict[str, AveragedMetric]]:
    """Read the rows that a rule is judged on, and what it is judged by; as :func:`evaluate` takes them.

    Unless `strict`, a `pos_label` that no metric wants is left alone.
    """
    check_input(rows.input, rule)
    read = read_rows(rule, rows, goal.output_weight, None if allowed is None else rule.abstain_label)
    pos_label, kept = positive_of(rule, read.source.schema, goal.pos_label)
    aims = read.aims(replace(goal, pos_label=pos_label), strict=strict and not kept, allowed=allowed)
    return read.in_time(list(aims.values())), aims


@dataclass(frozen=True, eq=False)
class ReadRows:
    """Rows with labels, the weights of outputs (M,), and when rows were observed."""

    source: SourceBase
    output_weight: FloatArray
    time: InTime | None = None

    def aims(self, goal: GoalSpec, **options: Any) -> dict[str, AveragedMetric]:
        """Read what rules are judged by on these rows; see :func:`metricwise.goals.judged.read_aims`."""
        source = self.source
        weight = source.rows.weight if isinstance(source, MemorySource) else None
        return read_aims(goal, source.schema, self.output_weight, sample_weight=weight, **options)

    def in_time(self, aims: Sequence[AveragedMetric]) -> SourceBase:
        """Return the source whose rows belong together by time periods, if they have times."""
        if self.time is None:
            return self.source
        assert isinstance(self.source, MemorySource)  # others refuse InTime
        problems = [InMemory(self.source, aim) for aim in aims]
        return in_stretches(self.source, trial_influences(problems), self.time)


def read_rows(
    rule: Rule, spec: RowSpec, output_weight: Any = None, abstain_label: Any = None, *, in_memory: bool = False
) -> ReadRows:
    """Read the rows that a rule is judged on; as :func:`evaluate` takes them.

    Rows of a table or a Dask collection stay where they are, unless they must be `in_memory`.
    """
    source = _behind_baseline(rule, _read_source(rule, spec, in_memory=in_memory))
    schema = replace(source.schema, abstain_label=abstain_label)
    if spec.order is None:
        schema = replace(schema, order=_order_kept(rule, schema))
    alpha = read_output_weight(output_weight, schema.n_outputs)
    if spec.proba is not None and spec.groups is None and not spec.counts_rows:
        source = _with_copies_clustered(source)
    source = source.described(schema)
    if not (source.class_weights > 0)[alpha > 0].any():
        raise InvalidParameter(
            "sample_weight",
            problem="no observed label has a positive weight",
            remedy=f"check {mention('sample_weight')} and {mention('output_weight')}",
        )
    if spec.proba is not None:
        _warn_of_proba(source, by_rule=spec.input is None)
    return ReadRows(source, alpha, spec.time)


def _with_copies_clustered(source: SourceBase) -> SourceBase:
    """Return the source with copies of rows in one cluster, if there are any."""
    if not isinstance(source, MemorySource):
        return source.map(with_copies) if has_copies(source) else source
    copies = source.rows.copies()
    return source if copies is None else source.map(lambda rows: replace(rows, cluster=copies))


def _warn_of_proba(source: SourceBase, *, by_rule: bool) -> None:
    """Warn of numbers that seem to be something else, or of other classes."""
    schema = source.schema
    rows = source.rows if isinstance(source, MemorySource) else source.glance(_DOUBTED_ROWS)
    assert rows.codes is not None
    if schema.input.is_scores and is_single(rows.proba):  # whose sign says nothing
        return
    if not warn_of_probabilities(rows.proba, schema.input, by_rule=by_rule):
        warn_of_assignment(rows.proba, rows.codes, schema.classes)


def check_input(declared: Any, *rules: Rule) -> str:
    """Return what the numbers of rows are: what rules were fitted to, which `declared` must not contradict."""
    if declared is not None:
        declared = Input.of(declared).kind
    for rule in rules:
        if declared not in (None, rule.input):
            raise InvalidParameter(
                "input",
                problem=f"the rule was fitted to {rule.schema.input.plural}, got {argument('input', declared)}",
                remedy=f"leave {mention('input')} out, and pass {rule.schema.input.plural}",
            )
        declared = rule.input
    return declared or "probabilities"


def baseline_map(rule: Rule, proba: Probabilities) -> LinkArrays | None:
    """Return the map of logits whose most probable class is argmax, as a rule's rows have it; None of probabilities.

    That is the largest number. Single columns of scores have no such thing but by the rule's own map to probabilities.
    """
    link = rule.shared_link
    if link is None or not rule.schema.input.is_scores:
        return proba.link
    return link.arrays if is_single(proba) else LinkArrays(link.temperature, np.zeros_like(link.bias), link.floor)


def _behind_baseline(rule: Rule, source: SourceBase) -> SourceBase:
    """Return rows of logits behind the map whose most probable class is argmax."""
    row_input, proba = source.schema.input, source.glance(1).proba
    if row_input.is_scores and is_single(proba) and not rule.has_map:
        return _behind_fitted_map(source)
    base = baseline_map(rule, proba)
    if base is None:
        return source
    schema = replace(source.schema, input=replace(row_input, base=base))
    return source.map(lambda rows: replace(rows, proba=rows.proba.linked(base))).described(schema)


def _behind_fitted_map(source: SourceBase) -> SourceBase:
    """Return single columns of scores behind a map that is fitted to their labels, where no rule has one."""
    rows = source.rows if isinstance(source, MemorySource) else source.sample(LINK_ROWS)
    assert rows.codes is not None
    row_input = fit_input(rows.proba, rows.codes, rows.weight, rows.frequency, source.schema.input)
    mapped = source.map(lambda part: replace(part, proba=map_scores(part.proba, row_input)))
    return mapped.described(replace(source.schema, input=row_input))


def own_metric(rule: Any, parameter: str = "metrics") -> str:
    """Return the name of the metric that a rule was optimised for; else the error asks for a parameter."""
    name: str | None = rule.metadata.metric
    if name is None:
        raise InvalidParameter(
            parameter, "be given, because the rule does not name the metric that it was optimised for"
        )
    if " (" in name:
        raise InvalidParameter(
            parameter,
            f"be given, because the rule was optimised for {name}",
            remedy=f"pass a metric for each output: {_METRIC_BY_OUTPUT[parameter]}",
        )
    return name


def own_average(rule: Any) -> str | None:
    """Return the average over outputs that a rule was optimised for, if it is known."""
    average: str | None = rule.metadata.average
    return average if rule.schema.multioutput else None


def read_rule(rule: Any, parameter: str = "rule", inputs: Collection[str] = PARTITIONS) -> Rule:
    """Return the rule that is meant: of a Solution, a file, a text, a document, or itself; see `as_rule`."""
    if isinstance(getattr(rule, "rule", None), Rule):  # a Solution, or a point of a trade-off
        rule = rule.rule
    if not isinstance(rule, (Rule, str, os.PathLike, Mapping)):
        remedy = "pass its rule_" if hasattr(rule, "rule_") else ""
        must = "be a rule, a Solution, a JSON file or text, or a dict from to_dict"
        raise InvalidType(parameter, must, shown(rule), remedy)
    return as_rule(rule, inputs)


def allowed_for(abstain: Any, *rules: Any) -> AbstentionCost | None:
    """Read what abstentions count for; None where no rule abstains."""
    who_may = [rule for rule in rules if rule.abstain_label is not None]
    if not who_may:
        if abstain is not None:
            raise InvalidParameter(
                "abstain",
                problem=f"{mention('abstain')} is only for rules that may abstain, and this rule never does",
                remedy="leave it out",
            )
        return None
    fitted = who_may[0].metadata.abstain
    if abstain is None and isinstance(fitted, (bool, float)):
        abstain = fitted
    abstention = read_abstain(abstain) or Abstention()
    if abstention.label is not None and abstention.label != who_may[0].abstain_label:
        must = f"have the label that the rule predicts, {shown(who_may[0].abstain_label)}"
        raise InvalidParameter("abstain", must, shown(abstention.label), "leave it out")
    return abstention.terms


def _order_kept(rule: Rule, schema: Schema) -> Scales | None:
    """Return the order of the classes by an ordered categorical y, else that which the rule was fitted with."""
    kept = kept_order(rule.metadata, schema.classes)
    if kept is None or schema.order is None:
        return schema.order or kept
    for said, fitted_order in zip(schema.order, kept, strict=True):
        if said is not None and fitted_order is not None and said != fitted_order:
            raise InvalidParameter(
                "y",
                problem=(
                    f"{mention('y')} is an ordered categorical, {' < '.join(map(shown, said))}, but the "
                    f"rule was fitted with the order {listed(fitted_order)}"
                ),
                remedy=f"pass y.astype(str), and {argument('order')} for an order other than that of the rule",
            )
    return tuple(said or fitted_order for said, fitted_order in zip(schema.order, kept, strict=True))


def _read_source(rule: Rule, spec: RowSpec, *, in_memory: bool) -> SourceBase:
    """Open rows with labels, the outputs in the order of the rule."""
    if spec.y is None:
        raise InvalidParameter("y", "hold the labels of the rows", "None")
    if is_lazy(spec.proba):
        return _open_for_rule(rule.schema, replace(spec, y=_lazy_in_order(rule.schema, spec.y)))
    if is_in_table(spec.proba, spec.y):
        source = _open_table(rule.schema, spec)
        return MemorySource(_all_rows(source), source.schema, source.passes) if in_memory else source
    data = _read_data(rule, spec)
    return MemorySource(data.rows, data.schema)


def _lazy_in_order(schema: Schema, y: Any) -> Any:
    """Return labels of a Dask collection with the columns in the order of the outputs, where both have names."""
    names = schema.output_names
    if names is None or not schema.multioutput or not hasattr(y, "columns"):
        return y
    by_name = {str(column): column for column in y.columns}
    return y[[by_name[name] for name in names]] if set(by_name) == set(names) else y


def _open_for_rule(schema: Schema, spec: RowSpec) -> SourceBase:
    """Open rows that are not in memory by the classes of a rule."""
    return open_rows(spec_for_rule(spec, schema))[1]


def _open_table(schema: Schema, spec: RowSpec) -> SourceBase:
    """Open the rows of a table, the outputs in the order of a rule."""
    y, several = spec.y, isinstance(spec.y, (list, tuple))
    if several != schema.multioutput or (several and len(y) != schema.n_outputs):
        names = f"the names of the columns of its {schema.n_outputs} outputs" if schema.multioutput else "one name"
        raise InvalidParameter("y", f"be {names}, as the rule has outputs", shown(y))
    if several and schema.output_names is not None and set(y) == set(schema.output_names):
        y = list(schema.output_names)
    return _open_for_rule(schema, replace(spec, y=y))


def _all_rows(source: SourceBase) -> Any:
    return source.take(np.arange(source.n_rows))


def _read_data(rule: Rule, spec: RowSpec) -> Data:
    """Read rows in memory with labels, the outputs in the order of the rule."""
    schema, proba, y = rule.schema, spec.proba, spec.y
    if is_two_dimensional(y) != schema.multioutput:
        said = f"2-D, with a column for each of its {schema.n_outputs} outputs" if schema.multioutput else "1-D"
        raise InvalidParameter("y", f"be {said}, as the rule has them", f"shape {np.shape(y)}")
    if proba is None:  # decisions alone
        proba = np.full((len(y), *([schema.n_outputs] * schema.multioutput), schema.width), 1 / schema.width)
    ordered = in_output_order(y, proba, schema.output_names) if schema.multioutput else y
    names = output_names(proba, ordered) if schema.multioutput else None
    read = replace(
        spec,
        proba=read_proba_for(rule, proba, spec.pos_label),
        y=ordered,
        classes=list(schema.classes) if schema.multioutput else schema.classes[0],
        pos_label=[labels[1] for labels in schema.classes] if schema.multioutput else schema.classes[0][1],
        normalize=schema.normalize,
        input=schema.input,
    )
    data = read_data(read)
    return replace(data, schema=replace(data.schema, output_names=None if names is None else tuple(map(str, names))))


def read_proba_for(rule: Rule, proba: Any, pos_label: Any) -> Probabilities:
    """Read probabilities as a rule takes them; a single column that it does not know the class of is of pos_label."""
    return rule.read(proba, None if says_single(rule.metadata, rule.schema.classes) else pos_label)


def is_in_table(proba: Any, y: Any) -> bool:
    """Whether rows are those of a table, whose columns y and others name."""
    return proba is not None and not is_lazy(proba) and is_table(proba, y)


def read_from_table(schema: Schema, spec: RowSpec) -> Data:
    """Read all rows of a table into memory."""
    source = _open_table(schema, spec)
    return Data(_all_rows(source), source.schema)


def spec_for_rule(spec: RowSpec, schema: Schema) -> RowSpec:
    """Return what was said of the rows of a table, with the classes of a rule."""
    classes = [python_labels(labels) for labels in schema.classes]
    return replace(
        spec,
        classes=classes if schema.multioutput else classes[0],
        pos_label=[labels[1] for labels in classes],
        normalize=schema.normalize,
        input=schema.input,
    )


def in_output_order(y: Any, proba: Any, outputs: tuple[str, ...] | None) -> Any:
    """Return y with its columns in the order of the rule's outputs, where both have names.

    The columns of multilabel probabilities are matched to the rule by name, and y must follow them: without names of
    both there is nothing to go by.
    """
    names, columns = _names(y), _names(proba)
    if outputs is None or names is None:
        output_order = outputs if names is None else tuple(names)
        if (
            columns is not None
            and output_order is not None
            and set(columns) == set(output_order)
            and tuple(columns) != output_order
        ):
            reason = "y has no names" if names is None else "the outputs of the rule have no names"
            raise InvalidParameter(
                "proba",
                problem=(
                    f"the columns of proba, {shown(columns)}, are not in the order {shown(list(output_order))}, "
                    f"and they cannot be matched by name because {reason}"
                ),
                remedy="pass proba in that order",
            )
        return y
    if set(names) != set(outputs):
        raise InvalidParameter(
            "y",
            problem=(
                f"the columns of y must be named like the outputs of the rule, {shown(list(outputs))}, got "
                f"{shown(names)}"
            ),
            remedy="pass y.to_numpy() to take them by position",
        )
    if tuple(names) == outputs:
        return y
    actual = column_names(y)
    columns_in_order = [actual[names.index(name)] for name in outputs]
    return y.select(columns_in_order) if hasattr(y, "select") else y[columns_in_order]


def _names(table: Any) -> list[str] | None:
    """Names of the columns as text; None for what has none, or has those that tables without names have."""
    if not is_frame(table) or position_named(column_names(table)):
        return None
    return list(map(str, column_names(table)))


def open_side(rule: Rule, proba: Any, reader: Rule, y: Any) -> SourceBase:
    """Open the rows that one side of a comparison decides by, where they are not in memory; see `read_side_proba`."""
    schema = replace(reader.schema, normalize=rule.schema.normalize, input=rule.schema.input)
    return _open_for_rule(schema, RowSpec(proba, y))


def read_side_proba(rule: Rule, proba: Any, reader: Rule, y: Any, pos_label: Any) -> Probabilities:
    """Read the probabilities that one side of a comparison decides by, of the outputs of `reader`."""
    if is_in_table(proba, y):
        read: Probabilities = _all_rows(open_side(rule, proba, reader, y)).proba
        return read
    return read_proba_for(rule, proba, pos_label)
