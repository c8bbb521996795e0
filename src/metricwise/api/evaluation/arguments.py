"""Arguments of ``evaluate``: the rule, the rows that it is judged on, and what it is judged by.

Owns their reading and what is refused. Must not know how values and intervals come about.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidParameter, InvalidType, argument, mention
from ...data import (
    Data,
    Groups,
    Probabilities,
    Scales,
    Schema,
    SensitiveFeatures,
    column_names,
    in_time,
    is_frame,
    is_lazy,
    is_table,
    is_two_dimensional,
    kept_order,
    known_positive,
    listed,
    output_names,
    position_named,
    python_labels,
    read_data,
    read_output_weight,
    read_sensitive_features,
    shown,
    warn_of_assignment,
)
from ...data.open import read_source
from ...data.sources import MemorySource
from ...goals.for_outputs import are_for_outputs, resolve_outputs, settle
from ...goals.worst import opened
from ...inference.dependence import in_stretches
from ...metrics.abstention import Abstention, check_pooled, read_abstain
from ...metrics.aim import Aim
from ...metrics.averages import check_average
from ...metrics.base import Metric
from ...metrics.functions import check_whole_rows
from ...metrics.naming import check_same_classes, positive_places
from ...metrics.resolution import Resolved, metric_meant, resolve, target_kind
from ...metrics.scales import check_order_agrees
from ...oracles.problem import InMemory
from ...rules import Rule, as_rule
from ...rules.bare_columns import says_single
from ...rules.base import same_classes

__all__ = [
    "Rule",
    "allowed_for",
    "check_alike",
    "is_in_table",
    "list_metrics",
    "own_average",
    "own_metric",
    "positive_of",
    "read_aims",
    "read_groups",
    "read_judged",
    "read_proba_for",
    "read_rows",
    "read_rule",
]

FloatArray = NDArray[np.float64]

_OTHER_GROUPS = "other groups"  # what rows of groups that a rule does not know are called


def read_judged(
    rule: Rule,
    proba: Any,
    y: Any,
    metrics: Any,
    *,
    average: str | None = None,
    sample_weight: Any = None,
    weight_kind: Any = "importance",
    groups: Any = None,
    time: Any = None,
    output_weight: Any = None,
    order: Any = None,
    pos_label: Any = None,
    missing: Any = None,
    zero_division: Any = 0.0,
    strict: bool = True,
    allowed: Abstention | None = None,
    abstain_label: Any = None,
) -> tuple[MemorySource, dict[str, Aim]]:
    """Read the rows that a rule is judged on, and what it is judged by; as :func:`evaluate` takes them.

    Unless `strict`, a `pos_label` that no metric wants is left alone.
    """
    read = read_rows(
        rule,
        proba,
        y,
        sample_weight=sample_weight,
        weight_kind=weight_kind,
        groups=groups,
        time=time,
        output_weight=output_weight,
        order=order,
        pos_label=pos_label,
        missing=missing,
        abstain_label=None if allowed is None else abstain_label,
    )
    pos_label, kept = positive_of(rule, read.source.schema, pos_label)
    options = {"average": average, "pos_label": pos_label, "zero_division": zero_division}
    aims = read.aims(metrics, strict=strict and not kept, allowed=allowed, **options)
    return read.in_time(list(aims.values()), time), aims


@dataclass(frozen=True, eq=False)
class ReadRows:
    """Rows with labels, the weights of outputs (M,), and whether the user gave the order of the classes."""

    source: MemorySource
    output_weight: FloatArray
    ordered: bool

    def aims(self, metrics: Any, **options: Any) -> dict[str, Aim]:
        """Read what rules are judged by on these rows; see :func:`read_aims`."""
        source = self.source
        return read_aims(
            metrics,
            source.schema,
            self.output_weight,
            ordered=self.ordered,
            sample_weight=source.rows.weight,
            **options,
        )

    def in_time(self, aims: Sequence[Aim], time: Any) -> MemorySource:
        """Return the source whose rows belong together by stretches of time, if they have times."""
        if time is None:
            return self.source
        problems = [InMemory(self.source, aim) for aim in aims]
        return in_stretches(self.source, problems, in_time(time).length)


def read_rows(
    rule: Rule,
    proba: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    weight_kind: Any = "importance",
    groups: Any = None,
    time: Any = None,
    output_weight: Any = None,
    order: Any = None,
    pos_label: Any = None,
    missing: Any = None,
    abstain_label: Any = None,
) -> ReadRows:
    """Read the rows that a rule is judged on; as :func:`evaluate` takes them."""
    data = _read_data(rule, proba, y, order, pos_label, missing, sample_weight, weight_kind, groups, time)
    schema, rows = replace(data.schema, abstain_label=abstain_label), data.rows
    if order is None:
        schema = replace(schema, order=_order_kept(rule, schema))
    alpha = read_output_weight(output_weight, schema.n_outputs)
    if proba is not None and groups is None and time is None and rows.repeats is None:
        rows = replace(rows, cluster=rows.copies())
    source = MemorySource(rows, schema)
    if not (source.class_weights > 0)[alpha > 0].any():
        raise InvalidParameter(
            "",
            problem="no observed label has a positive weight",
            remedy=f"check {mention('sample_weight')} and {mention('output_weight')}",
        )
    if proba is not None:
        assert rows.codes is not None
        warn_of_assignment(rows.proba, rows.codes, schema.classes)
    return ReadRows(source, alpha, order is not None)


def positive_of(rule: Any, schema: Schema, pos_label: Any) -> tuple[Any, bool]:
    """Return the positive class, and whether it is that which the rule keeps: it need not say it, nor may change it."""
    if pos_label is None and not _all_show_positive(schema):
        return rule.metadata.pos_label, True
    return pos_label, False


def read_aims(
    metrics: Any,
    schema: Schema,
    output_weight: FloatArray,
    *,
    average: str | None = None,
    pos_label: Any = None,
    zero_division: Any = 0.0,
    ordered: bool = False,
    sample_weight: Any = None,
    strict: bool = True,
    allowed: Abstention | None = None,
    by_group: bool = False,
) -> dict[str, Aim]:
    """Read what a rule is judged by, each under its name; as :func:`evaluate` takes it.

    Unless `strict`, a `pos_label` that no metric wants is left alone. If `by_group`, a metric may be that of the worst
    group: its aim says `least`. If `ordered`, the user gave the order of the classes, which no metric may contradict.
    """
    aims = {}
    metric_list = [(name, *opened(metric)) for name, metric in list_metrics(metrics, schema)]
    worst = [worst for _, _, worst in metric_list]
    if any(worst) and not by_group:
        raise InvalidParameter(
            "sensitive_features",
            problem=f"metrics: the worst group's value needs {mention('sensitive_features')}, the group of every row",
        )
    read = _read_metrics(metric_list, schema, average, pos_label, zero_division, strict)
    for (name, meant), least in zip(read.items(), worst, strict=True):
        if ordered:
            check_order_agrees(meant.metric, schema.order, schema.classes)
        check_whole_rows(meant.metric, sample_weight=sample_weight, output_weight=output_weight, average=meant.average)
        positive = positive_places(meant.metric, schema.classes) if meant.support_weighted else None
        metric = meant.metric
        if allowed is not None:
            check_pooled(meant.average, schema.n_classes)
            metric = allowed.judge(metric, schema.classes)
            allowed.check(metric, schema.classes)
        aims[name] = Aim(metric, meant.average, output_weight, meant.support_weighted, positive, name, least=least)
    return aims


def own_metric(rule: Any) -> str:
    """Return the name of the metric that a rule was optimised for."""
    name: str | None = rule.metadata.metric
    if name is None:
        raise InvalidParameter(
            "metrics", "be given, because the rule does not name the metric that it was optimised for"
        )
    if " (" in name:
        raise InvalidParameter(
            "metrics",
            f"be given, because the rule was optimised for {name}",
            remedy="pass a metric for each output: metrics=[{output: metric, ...}]",
        )
    return name


def own_average(rule: Any) -> str | None:
    """Return the average over outputs that a rule was optimised for, if it is known."""
    average: str | None = rule.metadata.average
    return average if rule.schema.multioutput else None


def read_rule(rule: Any, parameter: str = "rule") -> Rule:
    """Return the rule that is meant: of a Solution, a file, a text, a document, or itself."""
    if isinstance(getattr(rule, "rule", None), Rule):  # a Solution, or a point of a trade-off
        rule = rule.rule
    if not isinstance(rule, (Rule, str, os.PathLike, Mapping)):
        raise InvalidType(parameter, "be a rule, a Solution, a JSON file or text, or a dict from to_dict", shown(rule))
    return as_rule(rule)


def allowed_for(abstain: Any, *rules: Any) -> Abstention | None:
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
    return read_abstain(abstain) or Abstention()


def read_groups(
    rules: Iterable[Any], sensitive_features: Any, n_rows: int, models: tuple[str, str] | None
) -> SensitiveFeatures | None:
    """Read the groups of rows: those that rules by group know, else those that there are.

    `models` are the names of two models whose rules these are, if there are any.
    """
    grouped = [rule for rule in rules if "sensitive_features" in rule.needs]
    known = [rule.known for rule in grouped]
    if not known:
        given = sensitive_features
        return None if given is None else read_sensitive_features(given, n_rows)
    if known[0].names != known[-1].names:
        raise _unlike("groups", shown(list(known[0].names)), shown(list(known[-1].names)), models)
    others = all(rule.other is not None for rule in grouped)
    codes = known[0].codes(sensitive_features, n_rows, others=others)
    names = known[0].names
    if (codes == len(names)).any():
        return SensitiveFeatures(codes, Groups((*names, _OTHER_GROUPS)))
    return SensitiveFeatures(codes, known[0])


def check_alike(rule: Any, other: Any, models: tuple[str, str] | None) -> None:
    """Refuse a rule for other outputs or classes, whose decisions about the same columns mean something else."""
    own, others = rule.schema, other.schema
    if own.multioutput != others.multioutput or not same_classes(own.classes, others.classes):
        raise _unlike("outputs and classes", _outputs(own), _outputs(others), models)
    if None not in (own.output_names, others.output_names) and own.output_names != others.output_names:
        raise _unlike("outputs", shown(own.output_names), shown(others.output_names), models)


def _unlike(what: str, own: str, other: str, models: tuple[str, str] | None) -> ValueError:
    """Return the error where two rules differ in what they must have in common; `models` as in Contest."""
    if models is None:
        return InvalidParameter(
            "against", f"be a rule for the same {what} as the rule, in the same order, {own}", other
        )
    return InvalidParameter(
        "rules",
        problem=(
            f"the rules of {models[0]!r} and {models[1]!r} must have the same {what}, in the same order, "
            f"got {own} and {other}"
        ),
    )


def _outputs(schema: Schema) -> str:
    classes = [python_labels(labels) for labels in schema.classes]
    return shown(classes if schema.multioutput else classes[0])


def _order_kept(rule: Rule, schema: Schema) -> Scales | None:
    """Return the order of the classes by an ordered categorical y, else that which the rule was fitted with."""
    kept = kept_order(rule.metadata, schema.classes)
    if kept is None or schema.order is None:
        return schema.order or kept
    for said, own in zip(schema.order, kept, strict=True):
        if said is not None and own is not None and said != own:
            raise InvalidParameter(
                "y",
                problem=(
                    f"{mention('y')} is an ordered categorical, {' < '.join(map(shown, said))}, but the "
                    f"rule was fitted with the order {listed(own)}"
                ),
                remedy=f"pass y.astype(str), with {argument('order')} if you do not mean that of the rule",
            )
    return tuple(said or own for said, own in zip(schema.order, kept, strict=True))


def _read_data(
    rule: Rule,
    proba: Any,
    y: Any,
    order: Any,
    pos_label: Any,
    missing: Any,
    sample_weight: Any,
    weight_kind: Any,
    groups: Any,
    time: Any,
) -> Data:
    """Read rows with labels, the outputs in the order of the rule."""
    if y is None:
        raise InvalidParameter("y", "hold the labels of the rows", "None")
    schema = rule.schema
    if is_in_table(proba, y):
        return _read_from_table(schema, proba, y, order, missing, sample_weight, weight_kind, groups, time)
    if is_two_dimensional(y) != schema.multioutput:
        said = f"2-D, with a column for each of its {schema.n_outputs} outputs" if schema.multioutput else "1-D"
        raise InvalidParameter("y", f"be {said}, as the rule has them", f"shape {np.shape(y)}")
    if proba is None:  # decisions alone
        proba = np.full((len(y), *([schema.n_outputs] * schema.multioutput), schema.width), 1 / schema.width)
    ordered = _in_order(y, proba, schema.output_names) if schema.multioutput else y
    names = output_names(proba, ordered) if schema.multioutput else None
    data = read_data(
        read_proba_for(rule, proba, pos_label),
        ordered,
        classes=list(schema.classes) if schema.multioutput else schema.classes[0],
        order=order,
        missing=missing,
        normalize=schema.normalize,
        can_normalize=False,
        sample_weight=sample_weight,
        weight_kind=weight_kind,
        groups=groups,
        time=time,
        pos_label=[labels[1] for labels in schema.classes] if schema.multioutput else schema.classes[0][1],
    )
    return replace(data, schema=replace(data.schema, output_names=None if names is None else tuple(map(str, names))))


def read_proba_for(rule: Rule, proba: Any, pos_label: Any) -> Probabilities:
    """Read probabilities as a rule takes them; a single column that it does not know the class of is of pos_label."""
    return rule.read(proba, None if says_single(rule.metadata, rule.schema.classes) else pos_label)


def is_in_table(proba: Any, y: Any) -> bool:
    """Whether rows are those of a table, whose columns y and others name."""
    return proba is not None and not is_lazy(proba) and is_table(proba, y)


def _read_from_table(
    schema: Schema,
    proba: Any,
    y: Any,
    order: Any,
    missing: Any,
    sample_weight: Any,
    weight_kind: Any,
    groups: Any,
    time: Any,
) -> Data:
    """Read all rows of a table into memory."""
    several = isinstance(y, (list, tuple))
    if several != schema.multioutput or (several and len(y) != schema.n_outputs):
        names = f"the names of the columns of its {schema.n_outputs} outputs" if schema.multioutput else "one name"
        raise InvalidParameter("y", f"be {names}, as the rule has outputs", shown(y))
    if several and schema.output_names is not None and set(y) == set(schema.output_names):
        y = list(schema.output_names)
    classes = [python_labels(own) for own in schema.classes]
    data, source = read_source(
        proba,
        y,
        classes=classes if schema.multioutput else classes[0],
        order=order,
        missing=missing,
        normalize=schema.normalize,
        sample_weight=sample_weight,
        weight_kind=weight_kind,
        groups=groups,
        time=time,
        pos_label=[own[1] for own in classes],
    )
    return replace(data, rows=source.take(np.arange(source.n_rows)))


def _in_order(y: Any, proba: Any, outputs: tuple[str, ...] | None) -> Any:
    """Return y with its columns in the order of the rule's outputs, where both have names.

    The columns of multilabel probabilities are matched to the rule by name, and y must follow them: without names of
    both there is nothing to go by.
    """
    names, columns = _names(y), _names(proba)
    if outputs is None or names is None:
        known = outputs if names is None else tuple(names)
        if columns is not None and known is not None and set(columns) == set(known) and tuple(columns) != known:
            reason = "y has no names" if names is None else "the outputs of the rule have no names"
            raise InvalidParameter(
                "proba",
                problem=(
                    f"the columns of proba, {shown(columns)}, are not in the order {shown(list(known))}, "
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
    wanted = [actual[names.index(name)] for name in outputs]
    return y.select(wanted) if hasattr(y, "select") else y[wanted]


def _names(table: Any) -> list[str] | None:
    """Names of the columns as text; None for what has none, or has those that tables without names have."""
    if not is_frame(table) or position_named(column_names(table)):
        return None
    return list(map(str, column_names(table)))


def _read_metrics(
    metric_list: Sequence[tuple[str | None, Any, bool]],
    schema: Schema,
    average: str | None,
    pos_label: Any,
    zero_division: Any,
    strict: bool = True,
) -> dict[str, Resolved]:
    """Find the metrics that are meant, each under its name."""
    if not (isinstance(zero_division, (int, float, np.number)) and 0 <= zero_division <= 1):
        raise InvalidParameter("zero_division", "be a number in [0, 1]", shown(zero_division))
    if average is not None:
        check_average(average)
    found: dict[str, Resolved] = {}
    for name, metric, worst in metric_list:
        meant = _meant(metric, schema, average, pos_label, float(zero_division))
        if name is None:
            name = f"worst_group({meant.name})" if worst else meant.name
        if name in found:
            raise InvalidParameter(
                "",
                problem=f"metrics: {name!r} is the name of two metrics",
                remedy="pass a dict of distinct names to metrics",
            )
        found[name] = settle(meant, schema.classes, scales=schema.order)
    if (
        strict
        and pos_label is not None
        and not any(_takes_positive(metric, schema, pos_label) for _, metric, _ in metric_list)
    ):
        raise InvalidParameter(
            "pos_label",
            problem=(
                f"{mention('pos_label')} is only for metrics of one class that do not name it, and none of "
                "the metrics is one"
            ),
            remedy="leave it out",
        )
    return found


def _all_show_positive(schema: Schema) -> bool:
    """Whether the labels of every output show by themselves which class is the positive one."""
    return all(known_positive(python_labels(labels)) is not None for labels in schema.classes)


def _takes_positive(metric: Any, schema: Schema, pos_label: Any) -> bool:
    """Whether a metric wants a positive class, or names this one itself."""
    if are_for_outputs(metric):
        return True  # else they have been refused already
    own = metric_meant(metric, target_kind(schema.width, schema.multioutput), class_named=True).metric
    return own.wants_positive or (pos_label is not None and getattr(own, "pos_label", None) == pos_label)


def list_metrics(metrics: Any, schema: Schema) -> list[tuple[str | None, Any]]:
    """Metrics with their names, None where they are called what they are."""
    if isinstance(metrics, Mapping):
        outputs = set(schema.output_names or ()) if schema.multioutput else set()
        if not metrics or not all(isinstance(name, str) for name in metrics) or set(metrics) == outputs:
            raise InvalidParameter(
                "",
                problem=f"metrics as a dict must have text keys, which name the metrics, got {shown(list(metrics))}",
                remedy="to give a metric for each output, put the dict into a list: metrics=[{output: metric, ...}]",
            )
        return list(metrics.items())
    if isinstance(metrics, (str, Metric)) or not isinstance(metrics, Iterable):
        return [(None, metrics)]
    each = list(metrics)
    if not each:
        raise InvalidParameter("metrics", "name at least one metric, such as 'f1' or ['f1', 'recall']", "none")
    return [(None, metric) for metric in each]


def _meant(metric: Any, schema: Schema, average: str | None, pos_label: Any, zero_division: float) -> Resolved:
    """Find what is meant by one metric; `average` and `pos_label` are for those that want for them."""
    several, names = schema.multioutput, schema.classes
    if are_for_outputs(metric):
        meant = resolve_outputs(
            metric,
            names,
            several=several,
            average=average,
            zero_division=zero_division,
            pos_label=pos_label,
            outputs=schema.output_names,
        )
    else:
        kind = target_kind(schema.width, several)
        meant = resolve(metric, kind, None, zero_division, pos_label, wanted_only=True)
        if average is not None and not meant.fixed:
            meant = replace(meant, average=average, average_given=True)  # type: ignore[arg-type]  # checked
    if not meant.average_given:
        check_same_classes(names)
    return meant
