"""``evaluate``: what a given rule is worth on rows with labels, beside argmax or another rule.

Owns the reading of its arguments, the values of two sets of decisions by any metrics, and their intervals. The rule is
given, not chosen on these rows: nothing here corrects for a choice. Must not know solvers' algorithms.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import inputs, kernels
from .dependence import in_stretches
from .inputs import Schema, column_names, is_frame, position_named, shown
from .losses import Loss
from .metrics.abstention import Abstention, check_pooled, read_abstain
from .metrics.aim import Aim
from .metrics.averages import check_average
from .metrics.base import Metric
from .metrics.for_outputs import MetricSpec, are_for_outputs, resolve_outputs, settle
from .metrics.functions import check_whole_rows
from .metrics.naming import check_same_classes, positive_places
from .metrics.resolution import Resolved, metric_meant, resolve, target_kind
from .problem import InMemory, components, mixed
from .progress import Progress
from .rules import CostRule, GroupedRule, MixtureRule, WeightedRule, anonymous_rule, as_rule
from .rules.weighted import same_classes
from .solvers import Estimate, Solution
from .sources import MemorySource
from .uncertainty import STEEP, Errors, Spread, moves, values_of_samples, within

__all__ = [
    "Comparison",
    "Decisions",
    "Evaluation",
    "allowed_for",
    "compare",
    "evaluate",
    "read_aims",
    "read_judged",
    "read_rule",
]

FloatArray = NDArray[np.float64]
Rule = WeightedRule | MixtureRule | GroupedRule

_OTHER_GROUPS = "other groups"  # what rows of groups that a rule does not know are called
_WHO = "evaluate"
_RESAMPLES = 200
_LOTS = 1 << 12
_DRAWS = 1 << 22  # numbers of resamples that are held at once
_MOST_CELLS = 1 << 22  # of confusion matrices that are valued anew


@dataclass(frozen=True)
class Comparison:
    """A metric of a rule and of its baseline, on the same rows.

    Parameters
    ----------
    value : Estimate
        The metric of the rule on the given rows, with a 95 % interval for the population that they are drawn from.
    baseline : Estimate
        The same for the baseline: plain argmax, or another rule.
    difference : Estimate
        ``value - baseline``. Its interval is that of the paired difference, which is narrower than the other two would
        suggest because both are counted on the same rows.

    See Also
    --------
    metricwise.evaluate : Returns one for every metric.

    Examples
    --------
    >>> import metricwise as mw
    >>> rule = mw.WeightedRule.from_thresholds(0.3)
    >>> comparison = mw.evaluate(rule, [0.1, 0.2, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1], "recall")["recall"]
    >>> comparison.value.estimate, comparison.baseline.estimate
    (1.0, 0.5)
    """

    value: Estimate
    baseline: Estimate
    difference: Estimate


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Mapping[str, Comparison]):
    """Results of evaluating a rule: a mapping of metric names to comparisons, which prints as a table.

    Parameters
    ----------
    comparisons : dict of str to Comparison
        One comparison per metric, by name.
    n_rows : int
        Number of rows.
    against : str
        What the rule is compared with, "argmax" or "other rule".
    by_group : dict of object to Evaluation
        The results on the rows of each sensitive group, by group name; empty if there are no groups.
    notes : tuple of str
        What should be known of the intervals: how far rows in time are taken to depend on one another, and whether
        that leaves any interval to be trusted.

    See Also
    --------
    metricwise.evaluate : Evaluates a rule.

    Examples
    --------
    >>> import metricwise as mw
    >>> rule = mw.WeightedRule.from_thresholds(0.3)
    >>> evaluation = mw.evaluate(rule, [0.1, 0.2, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1], ["recall", "precision"])
    >>> evaluation["recall"].difference.estimate
    0.5
    >>> list(evaluation.to_dict()["precision"])[:3]
    ['value', 'low', 'high']
    """

    comparisons: dict[str, Comparison]
    n_rows: int
    against: str
    by_group: dict[Any, Evaluation] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Comparison:
        return self.comparisons[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.comparisons)

    def __len__(self) -> int:
        return len(self.comparisons)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return a dict of numbers per metric, for ``pandas.DataFrame.from_dict(..., orient="index")``."""
        return {name: _numbers(one) for name, one in self.comparisons.items()}

    def __repr__(self) -> str:
        head = ["metric", "rule", self.against, "difference"]
        rows = [head, *([name, *_cells(one)] for name, one in self.comparisons.items())]
        widths = [max(len(row[c]) for row in rows) for c in range(len(head))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([f"{self.n_rows} rows, with 95 % intervals:", *lines, *self.notes])


def _numbers(comparison: Comparison) -> dict[str, float]:
    out: dict[str, float] = {}
    for name in ("value", "baseline", "difference"):
        estimate, prefix = getattr(comparison, name), "" if name == "value" else f"{name}_"
        out |= {name: estimate.estimate, f"{prefix}low": estimate.low, f"{prefix}high": estimate.high}
    return out


def _cells(comparison: Comparison) -> list[str]:
    plain = [(comparison.value, ".4f"), (comparison.baseline, ".4f"), (comparison.difference, "+.4f")]
    # Adding 0 turns -0 into 0.
    return [f"{one.estimate + 0.0:{form}} [{one.low + 0.0:{form}}, {one.high + 0.0:{form}}]" for one, form in plain]


def evaluate(
    rule: Any,
    proba: Any,
    y: ArrayLike,
    metrics: MetricSpec | Iterable[MetricSpec] | Mapping[str, MetricSpec],
    *,
    against: Any = None,
    average: str | None = None,
    sample_weight: ArrayLike | None = None,
    weight_kind: str = "importance",
    groups: ArrayLike | None = None,
    time: ArrayLike | inputs.InTime | None = None,
    sensitive_features: Any = None,
    output_weight: ArrayLike | None = None,
    pos_label: Any = None,
    missing: Any = None,
    zero_division: float = 0.0,
    abstain: bool | float | None = None,
) -> Evaluation:
    """Evaluate a rule by any metrics on labelled rows, against plain argmax or another rule, with 95 % intervals.

    The rule is taken as given. On rows that it was fitted to, both values and intervals are too optimistic: evaluate on
    rows that neither the model nor the rule was fitted to, or use `Solution.gain` and `Solution.value_on_new_rows`,
    which correct for this.

    Parameters
    ----------
    rule : WeightedRule, MixtureRule, GroupedRule, Solution, path, str or dict
        A rule, a `Solution` returned by `optimize`, a JSON file or text written by `to_json`, or a dict from `to_dict`.
        A mixture is evaluated in expectation, by the shares of its rules; for a metric of whole rows (the
        instance-average, a function that takes no `sample_weight`), by the decisions that `predict` draws.
    proba : array-like
        Class probabilities, as ``rule.predict`` takes them.
    y : array-like of shape (N,) or (N, M)
        True labels, among the rule's classes; missing labels are ignored. Columns of a data frame are matched to the
        rule's outputs by name, if the outputs have names.
    metrics : str, Metric, callable, list or dict
        One metric, a list of metrics, or a dict of names to metrics: each in any form that :func:`optimize` takes for
        `metric`. A metric for each output is a dict or a list within the list.
    against : WeightedRule, MixtureRule, GroupedRule, Solution, path, str or dict, optional
        Another rule for the same outputs and classes to compare with; None means plain argmax.
    average : {"micro", "macro", "instance"}, optional
        Average over outputs, for metrics whose names do not fix it. None means "micro"; `average` is
        required if the outputs have different classes.
    sample_weight : array-like of shape (N,), optional
        Sample weights.
    weight_kind : {"importance", "frequency"}, default="importance"
        What the sample weights mean: how much a row matters, or how many rows it stands for (whole numbers).
    groups : array-like of shape (N,), optional
        Group labels of rows that belong together, such as the rows of one patient, for standard errors that account for
        it. Exact duplicates of rows are detected without it.
    time : array-like of shape (N,), or InTime, optional
        When each row was observed, as numbers or dates: neighbours in time belong together. How far rows depend on one
        another is measured on the rows, and said in `Evaluation.notes`; :class:`metricwise.InTime` takes it as a number
        of rows.
    sensitive_features : array-like of shape (N,) or (N, F), optional
        The sensitive group of every row, which a :class:`metricwise.GroupedRule` requires. The metrics are also
        evaluated for each group.
    output_weight : array-like of shape (M,), optional
        Weights of the outputs in the average, in the order of the rule's outputs.
    pos_label : object, or list of M objects, optional
        Label of the positive class of metrics of one class: one for all outputs, or one for each. Required unless the
        labels are 0 and 1, -1 and 1, or False and True.
    missing : scalar, optional
        A code that marks missing labels, in addition to NaN, None, NA and masked entries.
    zero_division : float, default=0.0
        Value at 0/0 of metrics that are given by name.
    abstain : True or float, optional
        How abstentions count, for a rule that may abstain: a number is their cost in linear metrics, while other
        metrics count them as misses; True evaluates the metrics on the accepted rows, as in :func:`optimize`. None: as
        the rule was fitted.

    Returns
    -------
    Evaluation
        A mapping of metric names to :class:`~metricwise.evaluation.Comparison` objects.

    See Also
    --------
    WeightedRule.from_thresholds : A rule from the thresholds in use today.
    optimize : Find the rule that maximises a metric.

    Notes
    -----
    Intervals come from the delta method: standard errors follow from the influence of each row on the metric, summed
    within groups; that of the difference, from its influence on both values. If all rows of a class are decided alike,
    they do not show how often other decisions would occur, so one additional row of the class with another decision is
    allowed for. For metrics that are not smooth (`min_recall`) or too steep for a linear approximation, 200 bootstrap
    resamples are used. Intervals are clipped to the range of the metric. With `groups` or `time`, quantiles are those
    of Student's distribution for the number of groups or of stretches of time.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.beta(1, 3, 2000)
    >>> y = (rng.random(2000) < proba).astype(int)
    >>> today = mw.WeightedRule.from_thresholds(0.35)
    >>> mw.evaluate(today, proba, y, ["f1", "precision", "recall"])
    2000 rows, with 95 % intervals:
    metric     rule                     argmax                   difference
    f1         0.5645 [0.5284, 0.6007]  0.4412 [0.3970, 0.4854]  +0.1233 [+0.0857, +0.1610]
    precision  0.5656 [0.5229, 0.6083]  0.7046 [0.6465, 0.7628]  -0.1390 [-0.1850, -0.0931]
    recall     0.5635 [0.5208, 0.6061]  0.3212 [0.2810, 0.3613]  +0.2423 [+0.2055, +0.2792]
    """
    one, other = read_rule(rule, _WHO), None if against is None else read_rule(against, _WHO, "against")
    if other is not None:
        _check_alike(one, other)
    inputs.warn_of_order(_WHO, 2, proba=proba, y=y, sample_weight=sample_weight)
    allowed = allowed_for(abstain, one, other)
    source, aims = read_judged(
        one,
        proba,
        y,
        metrics,
        average=average,
        sample_weight=sample_weight,
        weight_kind=weight_kind,
        groups=groups,
        time=time,
        output_weight=output_weight,
        pos_label=pos_label,
        missing=missing,
        zero_division=zero_division,
        allowed=allowed,
        abstain_label=one.abstain_label if other is None else _label(one, other),
    )
    schema = source.schema
    argmax = anonymous_rule(Loss.argmax(schema.decision_width), schema.n_decisions)
    sensitive = _read_groups([one, other], sensitive_features, source.n_rows)
    both = [
        Decisions.of(one, _proba_for(one, proba), sensitive),
        Decisions.of(argmax, source.rows.proba, sensitive)
        if other is None
        else Decisions.of(other, _proba_for(other, proba), sensitive),
    ]
    if sensitive is not None:
        n_groups = len(sensitive.groups.names)
        source = MemorySource(replace(source.rows, group=sensitive.codes), schema).by_group(n_groups)
        aims = {name: aim.by_group(n_groups, aware=True, worst=False) for name, aim in aims.items()}
    whole = _evaluated(source, aims, both, "argmax" if other is None else "other rule")
    if sensitive is None:
        return whole
    return replace(whole, by_group=_by_group(source, aims, both, sensitive, whole.against))


def _evaluated(source: MemorySource, aims: Mapping[str, Aim], both: list[Decisions], against: str) -> Evaluation:
    found = {}
    with Progress(_WHO, len(aims)) as progress:
        for name, aim in aims.items():
            progress.stage(name)
            found[name] = compare(InMemory(source, aim), both)
    dependence = source.rows.dependence
    return Evaluation(found, source.n_rows, against, notes=() if dependence is None else (dependence.words(),))


def _by_group(
    source: MemorySource,
    aims: Mapping[str, Aim],
    both: list[Decisions],
    groups: inputs.SensitiveFeatures,
    against: str,
) -> dict[Any, Evaluation]:
    """Evaluate every group that has labels by itself."""
    out = {}
    n_groups = len(groups.groups.names)
    for g, name in enumerate(groups.groups.names):
        rows = np.flatnonzero(groups.codes == g)
        some = MemorySource(source.take(rows), source.schema, source.passes)
        if some.class_weights.reshape(n_groups, -1)[g].sum() > 0:
            out[name] = _evaluated(some, aims, [own.take(rows) for own in both], against)
    return out


# ----------------------------------------------------------------------------------------------------------- arguments


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
    data = _read_data(rule, proba, y, missing, sample_weight, weight_kind, groups, time)
    schema, rows = data.schema, data.rows
    if allowed is not None:
        schema = replace(schema, abstain_label=abstain_label)
    alpha = inputs.read_output_weight(output_weight, schema.n_outputs, _WHO)
    if groups is None and time is None and rows.repeats is None:
        rows = replace(rows, cluster=rows.copies())
    source = MemorySource(rows, schema)
    if pos_label is None and not _has_known_pair(schema):  # which the rule need not say, and may not change
        pos_label, strict = rule.facts.get("pos_label"), False
    aims = read_aims(
        metrics,
        schema,
        alpha,
        average=average,
        pos_label=pos_label,
        zero_division=zero_division,
        scales=data.scales,
        sample_weight=rows.weight,
        strict=strict,
        allowed=allowed,
    )
    if not (source.class_weights > 0)[alpha > 0].any():
        raise ValueError(f"{_WHO}: no observed label has a positive weight; check sample_weight and output_weight.")
    if time is not None:
        problems = [InMemory(source, aim) for aim in aims.values()]
        source = in_stretches(source, problems, inputs.in_time(time).length)
    return source, aims


def read_aims(
    metrics: Any,
    schema: Schema,
    output_weight: FloatArray,
    *,
    average: str | None = None,
    pos_label: Any = None,
    zero_division: Any = 0.0,
    scales: Any = None,
    sample_weight: Any = None,
    strict: bool = True,
    allowed: Abstention | None = None,
) -> dict[str, Aim]:
    """Read what a rule is judged by, each under its name; as :func:`evaluate` takes it.

    Unless `strict`, a `pos_label` that no metric wants is left alone.
    """
    aims = {}
    for name, meant in _read_metrics(metrics, schema, scales, average, pos_label, zero_division, strict).items():
        check_whole_rows(
            meant.metric, _WHO, sample_weight=sample_weight, output_weight=output_weight, average=meant.average
        )
        positive = positive_places(meant.metric, schema.classes) if meant.support_weighted else None
        metric = meant.metric
        if allowed is not None:
            check_pooled(meant.average, schema.n_classes, _WHO)
            metric = allowed.judge(metric, schema.classes)
            allowed.check(metric, schema.classes)
        aims[name] = Aim(metric, meant.average, output_weight, meant.support_weighted, positive, name)
    return aims


def read_rule(rule: Any, who: str, parameter: str = "rule") -> Rule:
    """Return the rule that is meant: of a Solution, a file, a text, a document, or itself."""
    if isinstance(rule, Solution):
        rule = rule.rule
    if not isinstance(rule, (CostRule, WeightedRule, MixtureRule, GroupedRule, str, os.PathLike, Mapping)):
        raise TypeError(
            f"{who}: {parameter} must be a rule, a Solution, a JSON file or text, or a dict from to_dict, got "
            f"{shown(rule)}."
        )
    return as_rule(rule)


def _label(rule: Rule, other: Rule) -> Any:
    return other.abstain_label if rule.abstain_label is None else rule.abstain_label


def allowed_for(abstain: Any, rule: Rule, other: Rule | None = None) -> Abstention | None:
    """Read what abstentions count for; None where nothing abstains."""
    who_may = [one for one in (rule, other) if one is not None and one.abstain_label is not None]
    if not who_may:
        if abstain is not None:
            raise ValueError(
                f"{_WHO}: abstain is only for rules that may abstain, and this rule never does; leave it out."
            )
        return None
    fitted = who_may[0].facts.get("abstain")
    if abstain is None and isinstance(fitted, (bool, float)):
        abstain = fitted
    return read_abstain(abstain, _WHO) or Abstention()


def _read_groups(rules: Iterable[Rule | None], sensitive_features: Any, n_rows: int) -> inputs.SensitiveFeatures | None:
    """Read the groups of rows: those that rules by group know, else those that there are."""
    grouped = [rule for rule in rules if isinstance(rule, GroupedRule)]
    known = [rule.known for rule in grouped]
    if not known:
        given = sensitive_features
        return None if given is None else inputs.read_sensitive_features(given, n_rows, _WHO)
    if known[0].names != known[-1].names:
        raise ValueError(
            f"{_WHO}: against must be a rule for the same groups as the rule, {shown(list(known[0].names))}, got "
            f"{shown(list(known[-1].names))}."
        )
    others = all(rule.other is not None for rule in grouped)
    codes = known[0].codes(sensitive_features, n_rows, _WHO, others=others)
    names = known[0].names
    if (codes == len(names)).any():
        return inputs.SensitiveFeatures(codes, inputs.Groups((*names, _OTHER_GROUPS)))
    return inputs.SensitiveFeatures(codes, known[0])


def _check_alike(rule: Rule, other: Rule) -> None:
    """Refuse a rule for other outputs or classes, whose decisions about the same columns mean something else."""
    if rule.multioutput != other.multioutput or not same_classes(rule.classes, other.classes):
        raise ValueError(
            f"{_WHO}: against must be a rule for the same outputs and classes as the rule, in the same order, "
            f"{_outputs(rule.schema)}, got {_outputs(other.schema)}."
        )
    names, others = rule.schema.output_names, other.schema.output_names
    if None not in (names, others) and names != others:
        raise ValueError(
            f"{_WHO}: against must be a rule for the same outputs as the rule, in the same order, {shown(names)}, got "
            f"{shown(others)}."
        )


def _outputs(schema: Schema) -> str:
    classes = [inputs.python_labels(labels) for labels in schema.classes]
    return shown(classes if schema.multioutput else classes[0])


def _read_data(
    rule: Rule, proba: Any, y: Any, missing: Any, sample_weight: Any, weight_kind: Any, groups: Any, time: Any
) -> inputs.Data:
    """Read rows with labels, the outputs in the order of the rule."""
    if y is None:
        raise ValueError(f"{_WHO}: y must hold the labels of the rows, got None.")
    schema = rule.schema
    if inputs.is_two_dimensional(y, _WHO) != schema.multioutput:
        said = f"2-D, with a column for each of its {schema.n_outputs} outputs" if schema.multioutput else "1-D"
        raise ValueError(f"{_WHO}: y must be {said}, as the rule has them, got shape {np.shape(y)}.")
    return inputs.read_data(
        proba,
        _in_order(y, proba, schema.output_names) if schema.multioutput else y,
        classes=list(schema.classes) if schema.multioutput else schema.classes[0],
        missing=missing,
        normalize=schema.normalize,
        can_normalize=False,
        sample_weight=sample_weight,
        weight_kind=weight_kind,
        groups=groups,
        time=time,
        who=_WHO,
    )


def _in_order(y: Any, proba: Any, outputs: tuple[str, ...] | None) -> Any:
    """Return y with its columns in the order of the rule's outputs, where both have names.

    The columns of multilabel probabilities are matched to the rule by name, and y must follow them: without names of
    both there is nothing to go by.
    """
    names, columns = _names(y), _names(proba)
    if outputs is None or names is None:
        known = outputs if names is None else tuple(names)
        if columns is not None and known is not None and set(columns) == set(known) and tuple(columns) != known:
            who = "y has no names" if names is None else "the outputs of the rule have no names"
            raise ValueError(
                f"{_WHO}: the columns of proba, {shown(columns)}, are not in the order {shown(list(known))}, "
                f"and they cannot be matched by name because {who}; pass proba in that order."
            )
        return y
    if set(names) != set(outputs):
        raise ValueError(
            f"{_WHO}: the columns of y must be named like the outputs of the rule, {shown(list(outputs))}, got "
            f"{shown(names)}; pass y.to_numpy() to take them by position."
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


def _proba_for(rule: Rule, proba: Any) -> inputs.Probabilities:
    return components(rule.rules[0] if isinstance(rule, GroupedRule) else rule)[0][0].read(proba, _WHO)


def _read_metrics(
    metrics: Any,
    schema: Schema,
    scales: Any,
    average: str | None,
    pos_label: Any,
    zero_division: Any,
    strict: bool = True,
) -> dict[str, Resolved]:
    """Find the metrics that are meant, each under its name."""
    if not (isinstance(zero_division, (int, float, np.number)) and 0 <= zero_division <= 1):
        raise ValueError(f"{_WHO}: zero_division must be a number in [0, 1], got {shown(zero_division)}.")
    if average is not None:
        check_average(average, _WHO)
    found: dict[str, Resolved] = {}
    listed = _listed(metrics, schema)
    for name, metric in listed:
        meant = _meant(metric, schema, average, pos_label, float(zero_division))
        name = meant.name if name is None else name
        if name in found:
            raise ValueError(
                f"{_WHO}: metrics: {name!r} is the name of two metrics; pass a dict of distinct names to metrics."
            )
        found[name] = settle(meant, schema.classes, declared=False, scales=scales)
    if strict and pos_label is not None and not any(_takes_positive(metric, schema, pos_label) for _, metric in listed):
        raise ValueError(
            f"{_WHO}: pos_label is only for metrics of one class that do not name it, and none of the metrics "
            "is one; leave it out."
        )
    return found


def _has_known_pair(schema: Schema) -> bool:
    """Whether the labels of any output show by themselves which class is the positive one."""
    pairs: tuple[set[Any], ...] = ({0, 1}, {-1, 1})
    return any(set(inputs.python_labels(labels)) in pairs for labels in schema.classes)


def _takes_positive(metric: Any, schema: Schema, pos_label: Any) -> bool:
    """Whether a metric wants a positive class, or names this one itself."""
    if are_for_outputs(metric):
        return True  # else they have been refused already
    own = metric_meant(metric, target_kind(schema.width, schema.multioutput), class_named=True).metric
    return own.wants_positive or (pos_label is not None and getattr(own, "pos_label", None) == pos_label)


def _listed(metrics: Any, schema: Schema) -> list[tuple[str | None, Any]]:
    """Metrics with their names, None where they are called what they are."""
    if isinstance(metrics, Mapping):
        outputs = set(schema.output_names or ()) if schema.multioutput else set()
        if not metrics or not all(isinstance(name, str) for name in metrics) or set(metrics) == outputs:
            raise ValueError(
                f"{_WHO}: metrics as a dict must have text keys, which name the metrics, got "
                f"{shown(list(metrics))}; to give a metric for each output, put the dict into a list: "
                "metrics=[{output: metric, ...}]."
            )
        return list(metrics.items())
    if isinstance(metrics, (str, Metric)) or not isinstance(metrics, Iterable):
        return [(None, metrics)]
    each = list(metrics)
    if not each:
        raise ValueError(f"{_WHO}: metrics must name at least one metric, such as 'f1' or ['f1', 'recall'], got none.")
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
            who=_WHO,
        )
    else:
        kind = target_kind(schema.width, several)
        meant = resolve(metric, kind, None, zero_division, pos_label, wanted_only=True)
        if average is not None and not meant.fixed:
            meant = replace(meant, average=average, average_given=True)  # type: ignore[arg-type]  # checked
    if not meant.average_given:
        check_same_classes(names, _WHO)
    return meant


# ------------------------------------------------------------------------------------------------- values and intervals


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a rule decides: codes (N, M) of each rule that it mixes, their shares (M or 1, R), and what is drawn."""

    codes: tuple[NDArray[Any], ...]
    shares: FloatArray
    drawn: NDArray[Any]

    @classmethod
    def of(cls, rule: Rule, proba: inputs.Probabilities, groups: inputs.SensitiveFeatures | None = None) -> Decisions:
        """Return the decisions about all outputs, once for every sensitive group if there are any."""
        if groups is None:
            assert not isinstance(rule, GroupedRule)
            return cls._plain(rule, proba)
        n_groups = len(groups.groups.names)
        if not isinstance(rule, GroupedRule):
            own = cls._plain(rule, proba)
            shares = own.shares if len(own.shares) == 1 else np.tile(own.shares, (n_groups, 1))
            return cls(tuple(np.tile(codes, n_groups) for codes in own.codes), shares, np.tile(own.drawn, n_groups))
        each = [components(one) for one in rule.parts[:n_groups]]
        size, n_outputs = max(len(rules) for rules, _ in each), rule.n_outputs
        dtype = kernels.code_type(rule.schema.decision_width)
        codes = np.zeros((size, proba.n_rows, n_groups * n_outputs), dtype=dtype)
        shares = np.zeros((n_groups * n_outputs, size))
        for g, (rules, own_shares) in enumerate(each):
            rows, outputs = np.flatnonzero(groups.codes == g), slice(g * n_outputs, (g + 1) * n_outputs)
            shares[outputs, : len(rules)] = own_shares
            for r, one in enumerate(rules):
                codes[r, rows, outputs] = one.decide(proba.take(rows))
        drawn = np.tile(rule.decide(proba, groups.codes).astype(dtype), n_groups)
        return cls(tuple(codes), shares, drawn)

    @classmethod
    def _plain(cls, rule: WeightedRule | MixtureRule, proba: inputs.Probabilities) -> Decisions:
        rules, shares = components(rule)
        dtype = kernels.code_type(rule.schema.decision_width)
        codes = tuple(one.decide(proba).astype(dtype) for one in rules)
        return cls(codes, shares, codes[0] if len(codes) == 1 else rule.decide(proba).astype(dtype))

    def take(self, rows: NDArray[np.intp]) -> Decisions:
        """Return those about some of the rows."""
        return Decisions(tuple(codes[rows] for codes in self.codes), self.shares, self.drawn[rows])

    @property
    def as_drawn(self) -> Decisions:
        return Decisions((self.drawn,), np.ones((1, 1)), self.drawn)

    def mix(self, tensors: list[FloatArray]) -> FloatArray:
        """Mean of arrays (S, M, ...) of each rule by their shares."""
        if len(tensors) == 1:
            return tensors[0]
        shares = np.broadcast_to(self.shares, (tensors[0].shape[1], len(tensors)))
        return np.asarray(np.einsum("mr,rsm...->sm...", shares, np.stack(tensors)))


@dataclass(frozen=True, eq=False)
class _Judged:
    """The metric of decisions, how far each row (N,) moves it, and how far rows that no row has shown would."""

    value: float
    rows: FloatArray
    unseen: FloatArray


def compare(problem: InMemory, both: list[Decisions]) -> Comparison:
    """Value two sets of decisions about the rows of a problem by its aim, with intervals."""
    metric, spread = problem.aim.metric, Spread.of(problem)
    by_row = problem.aim.average == "instance"
    if by_row or metric.whole_rows:
        both = [own.as_drawn for own in both]
    one, other = (_judge_rows(problem, own) if by_row else _judge(problem, own, spread) for own in both)
    errors = Errors(*map(spread.error, (one.rows, other.rows, one.rows - other.rows)))
    low, high = metric.range
    # Each by itself, so that what a rule is worth does not depend on what it is held against. Also if it is no number.
    drawn = [not by_row and not (metric.smooth and error <= STEEP * (high - low)) for error in errors]
    if any(drawn):
        resampled = _resampled(problem, both, spread, one.value, other.value)
        errors = Errors(*np.where(drawn, resampled, errors).tolist())
    unseen = [float(np.linalg.norm(moved)) for moved in (one.unseen, other.unseen, one.unseen - other.unseen)]
    whole = [float(np.hypot(*pair)) for pair in zip(errors, unseen, strict=True)]
    difference = one.value - other.value
    return Comparison(
        Estimate(*spread.limits(one.value, whole[0], low, high)),
        Estimate(*spread.limits(other.value, whole[1], low, high)),
        Estimate(*within(difference, spread.quantile * whole[2], low - high, high - low)),
    )


def _judge_rows(problem: InMemory, decisions: Decisions) -> _Judged:
    """Judge by the mean over rows of the metric of each."""
    each, mass = problem.by_row(decisions.drawn)
    mass = mass / mass.sum()
    value = float(each @ mass)
    return _Judged(value, (each - value) * mass, np.zeros(0))


def _judge(problem: InMemory, decisions: Decisions, spread: Spread) -> _Judged:
    rows, oracle = problem.source.rows, problem.oracle()
    assert rows.codes is not None
    C = mixed(np.stack([oracle.confusion_of(codes) for codes in decisions.codes]), decisions.shares)
    value, table = moves(problem, C)
    out, outputs = np.zeros(rows.n_rows), np.arange(len(table))
    shares = np.broadcast_to(decisions.shares, (len(table), len(decisions.codes)))
    for part in rows.proba.chunks():
        for codes, share in zip(decisions.codes, shares.T, strict=True):
            out[part] += table[outputs, rows.codes[part], codes[part]] @ share
    unseen = _unseen(problem, C, table, _unit(problem, spread))
    return _Judged(value, out if rows.weight is None else out * rows.weight, unseen)


def _unseen(problem: InMemory, C: FloatArray, table: FloatArray, unit: float) -> FloatArray:
    """How far one more row of each class of each group of outputs, (G, K), would move the metric if decided otherwise.

    Of interest, and else 0, where all rows of a class are decided alike: these say nothing of how often others are not.
    Rightly where all are wrong, any wrong way where all are right. Of very many such classes each matters little, and
    slopes will do.

    Parameters
    ----------
    C : ndarray of shape (M, K, K)
    table : ndarray of shape (M, K + 1, K)
        How far rows move the metric.
    unit : float
        Weight of a row.
    """
    objective = problem.objective(problem.oracle())
    grouping = objective.grouping
    pooled = grouping.pool(C)
    k = pooled.shape[1]
    out, eye = np.zeros(pooled.shape[:2]), np.eye(k)
    alike = np.argwhere((pooled > 0).sum(axis=2) == 1)
    for g, i in alike:
        n, total = int(grouping.n_classes[g]), float(grouping.total[g])
        right = pooled[g, i, i] > 0
        decided = (np.ones(n) - eye[i, :n]) / (n - 1) if right else eye[i, :n]
        if len(alike) * k * k > _MOST_CELLS:
            slope = float(table[grouping.first[g], i, :n] @ decided)
            out[g, i] = slope * unit if np.isfinite(slope) else 0.0
            continue
        more = pooled[g, :n, :n] * total
        more[i] += unit * decided
        more /= more.sum()
        metric = objective.metrics[g].of_rows(total + unit)
        value = float(metric.bind(more.sum(axis=1), objective.labels[g]).value(more))
        out[g, i] = (value - float(objective.values_of(int(g), pooled[g][None])[0])) * grouping.weight[g]
    return out


def _unit(problem: InMemory, spread: Spread) -> float:
    """Weight of what is drawn as one: a row, or the rows that belong together."""
    rows = problem.source.rows
    weight = 1.0 if rows.weight is None or rows.repeats is not None else float(rows.weight.mean())
    if rows.dependence is not None:  # neighbours in time are no copies of one another
        return weight * rows.dependence.inflation
    return weight * rows.n_rows / spread.n_clusters


def _resampled(problem: InMemory, both: list[Decisions], spread: Spread, *found: float) -> Errors:
    """Errors by drawing rows again, for metrics that slopes say little of.

    Root mean squares about the values found: the least of several recalls is smaller in resamples, as it is in samples.
    """
    rows, k = problem.source.rows, problem.schema.decision_width
    assert rows.codes is not None
    true, rng = rows.codes.astype(np.int32), np.random.default_rng(0)
    if spread.repeats is None and spread.n_clusters > _LOTS:  # sums of many rows vary as well, and are fewer to draw
        lot = rng.permutation(spread.n_clusters) % _LOTS
        spread = Spread(lot if spread.cluster is None else lot[spread.cluster], None, _LOTS)
    cells = [[np.where(true >= 0, true * k + codes, -1).astype(np.int32) for codes in own.codes] for own in both]
    values = np.empty((2, _RESAMPLES))
    size = max(rows.n_rows, true.shape[1] * k * k * max(map(len, cells)))
    step = max(1, _DRAWS // size)
    for start in range(0, _RESAMPLES, step):
        part = slice(start, min(start + step, _RESAMPLES))
        weight = spread.draws(part.stop - start, rng)
        weight = weight if rows.weight is None else weight * rows.weight
        for out, own, tallied in zip(values, both, cells, strict=True):
            counts = [kernels.tally(cell, weight, k * k).reshape(len(weight), -1, k, k) for cell in tallied]
            out[part] = values_of_samples(problem, own.mix(counts))
    apart = values - np.array(found)[:, None]
    return Errors(*(float(np.sqrt(np.mean(own**2))) for own in (*apart, apart[0] - apart[1])))
