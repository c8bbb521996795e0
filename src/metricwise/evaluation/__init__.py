"""``evaluate``: a rule on labelled rows, compared with argmax or another rule.

The rule is given, not chosen on these rows: nothing here corrects for a choice. Must not know solvers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.confusion import distributions
from ..core.errors import InvalidParameter, argument, entry_point, mention, refuses_removed
from ..core.losses import Loss
from ..core.probabilities import Probabilities
from ..core.progress import Progress
from ..core.schema import Schema
from ..data.frames import is_lazy, warn_of_order
from ..data.keeping import keeping_rows
from ..data.row_spec import Frequencies, InTime, RowSpec
from ..data.sensitive import Groups, SensitiveFeatures
from ..data.single_column import is_single
from ..data.sources.memory import MemorySource
from ..goals.for_outputs import MetricSpec
from ..goals.judged import list_metrics, positive_of
from ..goals.spec import GoalSpec
from ..goals.worst import opened
from ..inference.costs import CostJudge
from ..inference.decisions import Decisions
from ..inference.dependence import notes_in_time
from ..inference.judge import Judge
from ..inference.results import Comparison, Evaluation
from ..metrics.abstention import Abstention, AbstentionCost
from ..metrics.aim import AveragedMetric
from ..oracles.problem import InMemory
from ..rules.base import RuleRows
from ..rules.example_cost import CostRule
from ..rules.weighted import anonymous_rule
from .arguments import (
    ReadRows,
    allowed_for,
    is_in_table,
    own_average,
    own_metric,
    read_rows,
    read_side_proba,
)
from .by_kind import decide_kinds
from .contenders import (
    Contender,
    Contest,
    codes_for,
    groups_in,
    is_pair_of_models,
    known_partition,
    read_contest,
    read_groups,
    read_sides,
)
from .groups import GroupRows, compare_gap, compare_worst, rows_of_groups
from .labels import evaluate_labels, is_about_labels
from .quantities import COST, GroupGap, Quantity, aims_of, as_gap, read_gap

__all__ = ["evaluate"]

FloatArray = NDArray[np.float64]

_SCORES_NOTE = "Scores have no argmax of their own: it is the most probable class by the rule's map to probabilities."
_FITTED_NOTE = "Scores have no argmax of their own: it is the most probable class by a map fitted to these rows."


@entry_point("evaluate")
@refuses_removed("evaluate")
@keeping_rows
def evaluate(
    rule: Any,
    proba: Any = None,
    y: ArrayLike | str | None = None,
    metrics: MetricSpec | Iterable[MetricSpec] | Mapping[str, MetricSpec] | None = None,
    *,
    against: Any = None,
    average: str | None = None,
    sample_weight: ArrayLike | Frequencies | None = None,
    groups: ArrayLike | InTime | None = None,
    sensitive_features: Any = None,
    cost: ArrayLike | None = None,
    output_weight: ArrayLike | None = None,
    order: Any = None,
    pos_label: Any = None,
    abstain: bool | float | Abstention | None = None,
    input: str | None = None,
    segments: Any = None,
) -> Evaluation:
    """Evaluate a rule by any metrics on labelled rows, against argmax, another rule or another model.

    All values have 95 % intervals. The rule is taken as given. On rows that it was fitted to, both values and intervals
    are too optimistic: evaluate on rows that neither the model nor the rule was fitted to, or use `Solution.gain` and
    `Solution.value_on_new_rows`, which correct for this.

    Parameters
    ----------
    rule : rule, Solution, path, str, dict, float, or array-like or sparse array of shape (N,) or (N, M)
        A rule of any kind, a `Solution` returned by `optimize`, a JSON file or text written by `to_json`, or a dict
        from `to_dict`; a number, the threshold on the probability, logit or score of the positive class; or decisions,
        as labels. A mixture is evaluated in expectation, by the shares of its rules; for a metric of whole rows (the
        instance-average, a function that takes no `sample_weight`), by the decisions that `predict` draws.

        To compare two models with a rule each, a dict ``{"a": (rule_a, proba_a), "b": (rule_b, proba_b)}``; `proba` is
        left out, and the next argument is `y`.
    proba : array-like, sparse array, Table or Dask collection
        Class probabilities, logits or scores, as ``rule.predict`` takes them: for very many labels, a sparse array of
        shape (N, M), or a list of sparse pieces. Rows of a :class:`metricwise.Table` or a Dask collection are read
        batch by batch, in a few passes, and counted by their labels and decisions; with `cost`, and for very many
        labels, those of a Table are all read into memory. None if only decisions are compared.
    y : array-like of shape (N,) or (N, M), sparse array of shape (N, M), str, or list of str
        True labels, among the rule's classes; missing labels are ignored. Columns of a data frame are matched to the
        rule's outputs by name, if the outputs have names. For a Table, the names of its columns of labels.
    metrics : str, Metric, callable, list or dict, optional
        One metric, a list of metrics, or a dict of names to metrics: each in any form that :func:`optimize` takes for
        `metric`, :func:`worst_group` included, or a gap between groups: "demographic_parity", "equal_opportunity",
        "equalized_odds", "predictive_parity", "recall gap", or :func:`gap`; for indicator matrices also metrics of the
        labels of a row, such as "precision@3", "recall@3" and "label_coverage". A metric for each output is a dict or a
        list within the list. None: the metric that the rule was optimised for, or "cost" if `cost` is given.
    against : as `rule`, optional
        What to compare with, for the same outputs and classes; None means argmax: the class of the largest number. Of a
        single column of scores it is the most probable class by the rule's own map to probabilities. For very many
        labels, it is the most probable labels, as many as the rule may predict; for a rule without a limit, the labels
        of a probability above 0.5.
    average : {"micro", "macro", "instance"}, optional
        Average over outputs, for metrics whose names do not fix it. None means "micro"; `average` is
        required if the outputs have different classes.
    sample_weight : array-like of shape (N,), or Frequencies, optional
        Sample weights: how much a row matters or, as :class:`metricwise.Frequencies`, how many rows it stands for; for
        a Table, the name of a column.
    groups : array-like of shape (N,), or InTime, optional
        Group labels of rows that belong together, such as the rows of one patient, for standard errors that account for
        it; for a Table, the name of a column. Exact duplicates of rows are detected without it. For rows in time, a
        :class:`metricwise.InTime`: neighbours in time belong together, and with a half-life old rows count less.
    sensitive_features : array-like of shape (N,) or (N, F), optional
        The sensitive group of every row, which a :class:`metricwise.GroupedRule` and metrics about groups require. The
        metrics are also evaluated for each group. For a Table, the name of a column or a list of names.
    cost : array-like of shape (N, K), (N, K, K) or (N, K, K + 1), optional
        Costs of the decisions about each row, as in :func:`optimize`, for the metric "cost", minus their mean, and for
        a :class:`metricwise.CostRule`.
    output_weight : array-like of shape (M,), optional
        Weights of the outputs in the average, in the order of the rule's outputs.
    order : array-like, or list of M array-likes, optional
        Classes from the lowest to the highest, for ordinal metrics on text labels, as in :func:`optimize`. None: that
        of an ordered categorical y, or the order that the rule was fitted with.
    pos_label : object, or list of M objects, optional
        Label of the positive class of metrics of one class, and of a threshold: one for all outputs, or one for each.
        Required unless the labels are 0 and 1, -1 and 1, or False and True, or the rule knows it. If the rule was
        fitted to two columns, a single column of probabilities is that of this class.
    abstain : True, float or Abstention, optional
        How abstentions count, for a rule that may abstain: a number is their cost in linear metrics, while other
        metrics count them as misses; True evaluates the metrics on the accepted rows, as in :func:`optimize`. None: as
        the rule was fitted.
    input : {"probabilities", "logits", "log_proba", "scores"}, optional
        What the numbers in `proba` are, as in :func:`optimize`, for thresholds and decisions. None: what the rule was
        fitted to; without a rule, probabilities.
    segments : array-like of shape (N,) or (N, F), optional
        The segment of every row, which a :class:`metricwise.SegmentedRule` requires; other rules decide without it. For
        a Table, the name of a column or a list of names.

    Returns
    -------
    Evaluation
        A mapping of metric names to :class:`~metricwise.inference.Comparison` objects.

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
    resamples are used, which differ between rows in memory and elsewhere. Intervals are clipped to the range of the
    metric. With `groups`, quantiles are those of Student's distribution for the number of groups or of time periods.

    The worst group, and the two groups furthest apart, are not known: any group might be, by chance. The interval of a
    gap ends above where that of any pair of groups does, and below where those of all pairs do that hold at once, by
    Bonferroni's correction; that of the worst group's value likewise. That of a difference of two such values is paired
    if it is plain which groups are meant; else it holds the differences of all groups that might be, within what the
    two intervals allow.

    Very many labels, that is a :class:`LabelRule` or :class:`LabelSetRule`, sparse probabilities or decisions, or a
    metric of the labels of a row, are evaluated label set by label set. Rows, or groups of rows, are dealt into 20
    blocks, and intervals come from the values without each of them (the delete-a-group jackknife), with quantiles of
    Student's distribution. `sensitive_features`, `cost`, `abstain`, `order`, :class:`metricwise.Frequencies` and
    :class:`metricwise.InTime` are refused there.

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

    Two models, each with its own threshold:

    >>> noisy = np.clip(proba + rng.normal(0, 0.1, 2000), 0, 1)
    >>> mw.evaluate({"first": (0.35, proba), "second": (0.3, noisy)}, y, "f1")
    2000 rows, with 95 % intervals:
    metric  first                    second                   difference
    f1      0.5645 [0.5284, 0.6007]  0.5603 [0.5271, 0.5936]  +0.0042 [-0.0216, +0.0301]

    Three labels of each row, by probabilities in a sparse array:

    >>> from scipy.sparse import csr_array
    >>> proba = csr_array(rng.beta(1, 9, (2000, 50)))
    >>> y = csr_array((rng.random((2000, 50)) < proba.toarray()).astype(int))
    >>> rule = mw.LabelRule.from_thresholds([0.2] * 25 + [0.3] * 25, labels_per_row=(3, 3))
    >>> mw.evaluate(rule, proba, y, ["precision@3", "f1_macro"])
    2000 rows, with 95 % intervals:
    metric       rule                     argmax                   difference
    precision@3  0.3265 [0.3133, 0.3397]  0.3327 [0.3211, 0.3442]  -0.0062 [-0.0154, +0.0031]
    f1_macro     0.2311 [0.2219, 0.2403]  0.2515 [0.2436, 0.2594]  -0.0204 [-0.0268, -0.0141]
    Argmax predicts the 3 most probable labels of a row.
    """
    if is_pair_of_models(rule):
        proba, y, metrics = _without_proba(proba, y, metrics)
    sides = read_sides(rule, proba, against)
    if is_about_labels(sides, metrics):
        rows = RowSpec(None, y, sample_weight, groups, sensitive_features, cost, order=order, input=input)
        goal = GoalSpec(metrics, average, pos_label, output_weight, order=order, abstain=abstain)
        return evaluate_labels(sides, rows, goal)
    contest = read_contest(sides, y, pos_label, input)
    if cost is None and any("cost" in fitted.needs for fitted in contest.rules):
        raise InvalidParameter("cost", "give the costs of the decisions about each row, which the rule needs", "None")
    if metrics is None:
        metrics, average, pos_label = _fitted_metric(contest, cost, average, pos_label)
    warn_of_order(proba=contest.proba, y=y, sample_weight=sample_weight)
    allowed = allowed_for(abstain, *contest.rules)
    goal = GoalSpec(metrics, average, pos_label, output_weight, order=order)
    known = known_partition(contest.rules, contest.models)
    spec = RowSpec(contest.proba, y, sample_weight, groups, order=order, pos_label=pos_label, input=input)
    if cost is None:  # else all rows are in memory, and sensitive features as well
        spec = replace(spec, sensitive_features=sensitive_features, known_groups=known)
        if is_lazy(segments) or (is_in_table(contest.proba, y) and isinstance(segments, (str, list))):
            spec = _with_segments(spec, contest, segments)
    read = read_rows(
        contest.reader,
        spec,
        output_weight,
        next((rule.abstain_label for rule in contest.rules if rule.abstain_label is not None), None),
        in_memory=cost is not None,
    )
    notes = _notes_of_scores(contest, read.source.glance(1).proba)
    if not isinstance(read.source, MemorySource):
        return _evaluate_kinds(contest, goal, read, y, spec, segments, allowed, notes, cost)
    sensitive = read_groups(known, sensitive_features, read.source.n_rows)
    costs = _read_costs(contest, read.source, y, cost, allowed, segments)
    named = None if sensitive is None else sensitive.groups
    quantities = _read_quantities(goal, contest, read, named, costs, allowed)
    both = _decide(contest, read.source, y, sensitive, costs, segments)
    source = read.in_time([aim for quantity in quantities.values() for aim in aims_of(quantity)])
    assert isinstance(source, MemorySource)
    return _Evaluator(source, sensitive, costs, contest.titles, notes).evaluation(quantities, both)


def _evaluate_kinds(
    contest: Contest,
    goal: GoalSpec,
    read: ReadRows,
    y: Any,
    spec: RowSpec,
    segments: Any,
    allowed: AbstentionCost | None,
    notes: tuple[str, ...],
    cost: Any,
) -> Evaluation:
    """Evaluate on rows that are not in memory: they are counted by labels and decisions, and the kinds judged."""
    if cost is not None:
        raise InvalidParameter(
            "cost",
            problem=f"{argument('cost')} gives costs per row, which need probabilities and labels in memory",
            remedy="pass a sample of the rows as arrays",
        )
    source, groups = read.source, None
    partition, of_segments = source.partition, spec.known_groups is not None and spec.known_groups.of_segments
    if partition is not None and of_segments:
        segments = partition.groups
    elif partition is not None:
        groups = groups_in(partition)
    elif not of_segments:
        sensitive = read_groups(spec.known_groups, spec.sensitive_features, source.n_rows)
        if sensitive is not None:
            groups, codes = sensitive.groups, sensitive.codes
            source = source.map(lambda rows: replace(rows, group=codes[rows.start : rows.start + rows.n_rows]))
    quantities = _read_quantities(goal, contest, read, groups, None, allowed)
    baseline = None if contest.second is not None else _Baseline(contest, source.schema)
    decided = decide_kinds(contest, source, y, groups, segments, baseline)
    kinds = decided.rows
    evaluator = _Evaluator(kinds.source, decided.sensitive, None, contest.titles, notes, kinds.counts)
    return evaluator.evaluation(quantities, decided.both)


def _with_segments(spec: RowSpec, contest: Contest, segments: Any) -> RowSpec:
    """Return the rows with the columns of segments in the place of sensitive features."""
    known = known_partition(contest.rules, contest.models, "segments")
    if known is None:  # no rule asks for them
        return spec
    if spec.sensitive_features is not None:
        raise InvalidParameter(
            "segments",
            problem=f"{mention('segments')} and {mention('sensitive_features')} cannot both be given for rows that are "
            "not in memory",
            remedy="evaluate each by itself",
        )
    return replace(spec, sensitive_features=segments, known_groups=known)


class _Baseline:
    """What argmax decides about some rows, where nothing else is compared with."""

    def __init__(self, contest: Contest, schema: Schema) -> None:
        self.contest, self.schema = replace(contest, proba=None, first=replace(contest.first, proba=None)), schema

    def __call__(self, rows: Any, sensitive: SensitiveFeatures | None, segments: Any) -> Decisions:
        proba = _baseline_proba(self.contest, rows.proba, sensitive, segments)
        return _decide_argmax(self.schema, proba, sensitive)


# ----------------------------------------------------------------------------------------------------------- arguments


def _without_proba(proba: Any, y: Any, metrics: Any) -> tuple[None, Any, Any]:
    """Return proba, y and metrics where models bring their probabilities: what comes second is then y."""
    if proba is None:
        return None, y, metrics
    if y is None:
        return None, proba, metrics
    if metrics is None:
        return None, proba, y
    raise InvalidParameter("proba", "be left out if rule is a dict of two models, each with its own")


def _fitted_metric(contest: Contest, cost: Any, average: Any, pos_label: Any) -> tuple[str, Any, Any]:
    """Return the metric that a rule was optimised for, its average and its positive class."""
    if cost is not None:
        return COST, average, pos_label
    rule = next((r for r in contest.rules if r.metadata.metric is not None), contest.reader)
    pos_label = rule.metadata.pos_label if pos_label is None else pos_label
    return own_metric(rule), own_average(rule) if average is None else average, pos_label


@dataclass(frozen=True, eq=False)
class _Costs:
    """Costs of decisions about each row, the rule that says what a decision costs by them, and probabilities (N, K)."""

    table: FloatArray
    payer: CostRule
    eta: FloatArray


def _read_costs(
    contest: Contest, source: MemorySource, y: Any, cost: Any, allowed: AbstentionCost | None, segments: Any
) -> _Costs | None:
    if cost is None:
        return None
    schema = source.schema
    if schema.multioutput:
        raise InvalidParameter(
            "cost",
            problem=f"{argument('cost')} gives costs per row for a single output, but y is 2-D",
            remedy="evaluate the outputs one by one",
        )
    cost_rules = [rule for rule in contest.rules if "cost" in rule.needs]
    price = getattr(cost_rules[0], "abstain_cost", None) if cost_rules else None if allowed is None else allowed.cost
    payer = CostRule(schema.classes, abstain_label=schema.abstain_label, abstain_cost=price)
    return _Costs(payer.read_cost(cost, source.n_rows), payer, _calibrated(contest, source, y, segments))


def _calibrated(contest: Contest, source: MemorySource, y: Any, segments: Any) -> FloatArray:
    """Return probabilities (N, K) of a single output, calibrated if the rule does so; else the class shares."""
    proba, rule = source.rows.proba, contest.first.rule
    if contest.proba is None or (rule is None and _has_no_argmax(proba, contest)):
        return np.tile(source.class_weights / source.class_weights.sum(), (source.n_rows, 1))
    if rule is not None and "sensitive_features" not in rule.needs:
        groups = codes_for(rule, proba.n_rows, None, segments)
        proba = rule.calibrate(RuleRows(_proba_of(contest.first, contest, y, proba), groups=groups))
    return distributions(proba.output(0)[:, 0])


def _proba_of(side: Contender, contest: Contest, y: Any, rows: Probabilities) -> Probabilities:
    """Return the probabilities that a side decides by; those of the rows unless it brings others."""
    reader = contest.reader
    rule = reader if side.threshold is not None else side.rule
    if rule is None or (side.proba is contest.proba and rule.schema.normalize == reader.schema.normalize):
        return rows
    return read_side_proba(rule, side.proba, reader, y, contest.pos_label)


def _read_quantities(
    goal: GoalSpec,
    contest: Contest,
    read: ReadRows,
    groups: Groups | None,
    costs: _Costs | None,
    allowed: AbstentionCost | None,
) -> dict[str, Quantity]:
    """Return what is judged by, each under its name, in the order given."""
    schema, metrics = read.source.schema, goal.metric
    listed = list_metrics(metrics, schema)
    gaps = [as_gap(metric) for _, metric in listed]
    by_cost = [costs is not None and isinstance(metric, str) and metric == COST for _, metric in listed]
    if costs is not None and not any(by_cost) and not any("cost" in rule.needs for rule in contest.rules):
        raise InvalidParameter(
            "cost",
            problem=f"{argument('cost')} is for the metric 'cost', minus the mean cost",
            remedy="add it to metrics",
        )
    metric_places = [i for i in range(len(listed)) if gaps[i] is None and not by_cost[i]]
    kept_label, kept = positive_of(next(iter(contest.rules), contest.reader), schema, goal.pos_label)
    strict = len(metric_places) == len(listed) and not kept and not contest.by_threshold
    specs: Any = [listed[i][1] for i in metric_places]
    if isinstance(metrics, Mapping):
        specs = dict(listed[i] for i in metric_places)
    aims = {}
    if metric_places:
        spec = replace(goal, metric=specs, pos_label=kept_label)
        aims = read.aims(spec, strict=strict, by_group=groups is not None, allowed=allowed)
    quantities, rest = {}, iter(aims.items())
    names = None if groups is None else groups.names
    for (name, _), gap, cost in zip(listed, gaps, by_cost, strict=True):
        title: str
        quantity: Quantity
        if gap is not None:
            title, quantity = (
                name or gap.term,
                read_gap(gap, schema, groups=names, pos_label=kept_label, allowed=allowed),
            )
        elif cost:
            title, quantity = name or COST, COST
        else:
            title, quantity = next(rest)
        if title in quantities:
            raise InvalidParameter(
                "metrics",
                problem=f"metrics: {title!r} is the name of two metrics",
                remedy="pass a dict of distinct names",
            )
        quantities[title] = quantity
    return quantities


def _decide(
    contest: Contest,
    source: MemorySource,
    y: Any,
    sensitive: SensitiveFeatures | None,
    costs: _Costs | None,
    segments: Any,
) -> list[Decisions]:
    """Return what the rule and its baseline decide."""
    proba, schema = source.rows.proba, source.schema
    table = None if costs is None else costs.table
    probas = [_proba_of(contender, contest, y, proba) for contender in contest.contenders]
    if any(contender_proba.n_rows != proba.n_rows for contender_proba in probas):
        raise InvalidParameter(
            "rule",
            problem=(
                f"both models must have probabilities of the same {proba.n_rows} rows, in the same order, "
                f"got {[contender_proba.n_rows for contender_proba in probas]}"
            ),
        )
    both = [
        contender.decisions(contest, y, contender_proba, sensitive, table, segments)
        for contender, contender_proba in zip(contest.contenders, probas, strict=True)
    ]
    if len(both) == 1:
        baseline = _baseline_proba(contest, proba, sensitive, segments)
        both.append(_decide_argmax(schema, baseline, sensitive))
    return both


def _decide_argmax(schema: Schema, proba: Probabilities, sensitive: SensitiveFeatures | None) -> Decisions:
    """Return the decisions of argmax, once for every sensitive group if there are any."""
    argmax = anonymous_rule(Loss.argmax(schema.decision_width), schema.n_decisions)
    return Decisions.of(argmax, RuleRows(proba), 1 if sensitive is None else len(sensitive.groups.names))


def _notes_of_scores(contest: Contest, proba: Probabilities) -> tuple[str, ...]:
    """Say what argmax is of single scores, if decisions are compared with it."""
    rule = contest.first.rule
    if contest.second is not None or not contest.reader.schema.input.is_scores:
        return ()
    if rule is not None and not rule.has_map:
        return (_FITTED_NOTE,)
    return (_SCORES_NOTE,) if _has_no_argmax(proba, contest) else ()


def _has_no_argmax(proba: Probabilities, contest: Contest) -> bool:
    """Whether rows are single columns of scores, whose scale alone does not say which class is more probable."""
    return contest.reader.schema.input.is_scores and is_single(proba)


def _baseline_proba(
    contest: Contest, proba: Probabilities, sensitive: SensitiveFeatures | None, segments: Any
) -> Probabilities:
    """Return the probabilities whose largest is the baseline decision."""
    rule = contest.first.rule
    if not _has_no_argmax(proba, contest):
        return proba
    if rule is None:
        raise InvalidParameter(
            "against",
            "be given if no rule maps scores to probabilities, because a single column of scores has no argmax",
            "None",
            "pass another threshold, decisions as labels, or a rule that was fitted to scores",
        )
    if rule.shared_link is not None or not rule.has_map:  # then rows are behind a map that is fitted to them
        return proba
    return rule.calibrate(RuleRows(proba, groups=codes_for(rule, proba.n_rows, sensitive, segments)))


# -------------------------------------------------------------------------------------------------------------- values


@dataclass(frozen=True, eq=False)
class _Evaluator:
    """Rows of M outputs with labels, their sensitive groups and costs, and what the two sides are called.

    `counts` (N,) are the rows that each row stands for, if these are kinds of rows.
    """

    source: MemorySource
    sensitive: SensitiveFeatures | None
    costs: _Costs | None
    titles: tuple[str, str]
    notes: tuple[str, ...] = ()
    counts: FloatArray | None = None

    def evaluation(self, quantities: Mapping[str, Quantity], both: list[Decisions]) -> Evaluation:
        """Judge two sets of decisions, which are made once for every group if there are any."""
        groups = [] if self.sensitive is None else rows_of_groups(self.source, self.sensitive, both)
        comparisons = {}
        with Progress("evaluate", len(quantities)) as progress:
            for name, quantity in quantities.items():
                progress.stage(name)
                comparisons[name] = self.compare(name, quantity, both, groups)
        by_group = {group.name: self.of_group(group, quantities) for group in groups}
        n_rows = self.source.n_rows if self.counts is None else int(self.counts.sum())
        return Evaluation(comparisons, n_rows, self.titles[1], by_group, self._notes, self.titles[0])

    @property
    def _notes(self) -> tuple[str, ...]:
        return (*_notes(self.source), *self.notes)

    def compare(self, name: str, quantity: Quantity, both: list[Decisions], groups: list[GroupRows]) -> Comparison:
        """Judge by one quantity."""
        if isinstance(quantity, GroupGap):
            return compare_gap(self.source, groups, quantity.aims, name)
        if not isinstance(quantity, AveragedMetric):
            assert self.costs is not None
            groups_of_rows = None if self.sensitive is None else self.sensitive.codes
            pooled = both if groups_of_rows is None else [decided.of_row_group(groups_of_rows) for decided in both]
            return CostJudge(self.source, self.costs.payer, self.costs.table, self.costs.eta).compare(pooled)
        if quantity.least:
            return compare_worst(groups, replace(quantity, least=False))
        if self.sensitive is None:
            return Judge(InMemory(self.source, quantity)).compare(both)
        n_groups = len(self.sensitive.groups.names)
        rows = replace(self.source.rows, group=self.sensitive.codes)
        source = MemorySource(rows, self.source.schema, self.source.passes).by_group(n_groups)
        return Judge(InMemory(source, quantity.by_group(n_groups, aware=True, worst=False))).compare(both)

    def of_group(self, group: GroupRows, quantities: Mapping[str, Quantity]) -> Evaluation:
        """Judge the rows of one group by what has a meaning there."""
        aims = {
            opened(name)[0]: replace(quantity, least=False)
            for name, quantity in quantities.items()
            if isinstance(quantity, AveragedMetric)
        }
        comparisons = {name: Judge(InMemory(group.source, aim)).compare(group.both) for name, aim in aims.items()}
        for name, quantity in quantities.items():
            if quantity == COST and self.costs is not None:
                table, eta = self.costs.table[group.rows], self.costs.eta[group.rows]
                comparisons[name] = CostJudge(group.source, self.costs.payer, table, eta).compare(group.both)
        n_rows = group.source.n_rows if self.counts is None else int(self.counts[group.rows].sum())
        return Evaluation(comparisons, n_rows, self.titles[1], notes=_notes(group.source), title=self.titles[0])


def _notes(source: MemorySource) -> tuple[str, ...]:
    return tuple(note.text for note in notes_in_time(source))
