"""``evaluate`` for very many labels: sparse rows, rules for these, and metrics of the labels of a row.

Decisions are sets of labels; values are counted, and intervals come from blocks of rows left out. Must not know
solvers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, InvalidType, argument, shown
from ..core.label_rows import LabelRows
from ..core.label_sets import LabelSets
from ..core.labels import python_labels
from ..core.progress import Progress
from ..core.schema import Schema
from ..data.frames import has_lists, warn_of_order
from ..data.label_rows import is_in_pieces, is_sparse, join_pieces, read_label_rows, read_label_targets
from ..data.row_spec import RowSpec
from ..data.weights import read_groups, read_row_weight, read_sample_weight
from ..goals.labels import judged_label_aims, read_label_aims
from ..goals.spec import GoalSpec
from ..goals.worst import opened
from ..inference.label_summary import LabelSummary, summarize_labels
from ..inference.labels import LabelJudge, deal_blocks
from ..inference.results import Comparison, Estimate, Evaluation
from ..metrics.label_aims import LabelAim
from ..metrics.label_metrics import LabelMetric, read_label_metric
from ..rules.base import Rule
from ..rules.label_base import LabelRuleBase, positive_numbers
from ..rules.labels import LabelRule
from .arguments import in_output_order, is_in_table, own_average, own_metric, read_from_table
from .contenders import GivenLabels, Sides, Threshold, check_alike, input_of
from .quantities import COST, as_gap

__all__ = ["JudgedLabels", "evaluate_labels", "is_about_labels", "label_value", "refuse_for_labels"]

_PAIRS = ([0, 1], [False, True])


def is_about_labels(sides: Sides, metrics: Any) -> bool:
    """Whether very many labels are evaluated: by such a rule, sparse rows or decisions, or a metric of a row."""
    for side, proba in sides.pairs:
        matrices = [proba, side.labels] if isinstance(side, GivenLabels) else [proba]
        if isinstance(side, LabelRuleBase) or has_lists(proba):
            return True
        if any(is_sparse(values) or is_in_pieces(values) for values in matrices):
            return True
    return any(_is_of_rows(metric) for metric in _listed(metrics))


def _listed(metrics: Any) -> list[Any]:
    """Return the metrics as far as they are listed."""
    if isinstance(metrics, Mapping):
        return list(metrics.values())
    return list(metrics) if isinstance(metrics, (list, tuple)) else [metrics]


def _is_of_rows(metric: Any) -> bool:
    return isinstance(metric, (str, LabelMetric)) and read_label_metric(metric) is not None


@dataclass(frozen=True, eq=False)
class JudgedLabels:
    """Two sets of decisions about very many labels, what they are judged by, and the true labels.

    `aims` has the metrics by name; `stored` the labels that the rows of the first side store, None if all.
    """

    aims: dict[str, LabelAim]
    judge: LabelJudge
    decisions: tuple[LabelSets, LabelSets]
    stored: LabelSets | None
    notes: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """N."""
        return self.judge.targets.n_rows

    def compare(self, name: str) -> Comparison:
        """Return a metric of both decisions and of their difference, with intervals."""
        return _clipped(self.aims[name], self.judge.compare(self.aims[name], *self.decisions))

    def by_label(self, name: str) -> LabelSummary:
        """Return counts and values of each label; the second decisions are the baseline."""
        targets = self.judge.targets
        n_entries, unstored = targets.n_rows * targets.n_labels, 0.0
        if self.stored is not None:
            n_entries = len(self.stored.indices)
            unstored = float((self.judge.true - targets.common(self.stored).count(self.judge.weight)).sum())
        first, second = map(self.judge.counts, self.decisions)
        return summarize_labels(self.aims[name], first, second, n_entries, unstored)


def evaluate_labels(sides: Sides, rows: RowSpec, goal: GoalSpec) -> Evaluation:
    """Evaluate decisions about very many labels; `rows` and `goal` are as :func:`metricwise.evaluate` got them."""
    judged = judge_labels(sides, rows, goal)
    comparisons = {}
    with Progress("evaluate", len(judged.aims)) as progress:
        for name in judged.aims:
            progress.stage(name)
            comparisons[name] = judged.compare(name)
    return Evaluation(comparisons, judged.n_rows, sides.titles[1], notes=judged.notes, title=sides.titles[0])


def judge_labels(sides: Sides, rows: RowSpec, goal: GoalSpec) -> JudgedLabels:
    """Read rows and metrics, and decide the rows by both sides."""
    refuse_for_labels(rows, goal)
    _check_rules(sides.rules)
    if rows.y is None:
        raise InvalidParameter("y", "hold the labels of the rows", "None")
    sides, rows = _load_tables(sides, rows)
    contest = _Contest.of(sides, rows)
    if goal.metric is None:
        goal = _with_own_metric(contest.rules, goal)
    _check_metrics(goal.metric)
    y = join_pieces(rows.y, "y")
    names = next((rule.schema.output_names for rule in contest.rules if rule.schema.output_names is not None), None)
    ordered = in_output_order(y, contest.shown_proba, names)
    n_rows, n_labels = contest.shape(ordered)
    warn_of_order(proba=contest.shown_proba, y=ordered, sample_weight=rows.sample_weight)
    read = read_label_targets(ordered, n_rows, n_labels)
    targets = LabelSets(read.indptr, read.indices, n_labels)
    weight = read_row_weight(rows, n_rows)
    clusters = None if rows.clusters is None else read_groups(rows.clusters, n_rows).astype(np.int64)
    schema = Schema((np.array([0, 1]),) * n_labels, multioutput=True, output_names=names)
    aims = judged_label_aims(goal.metric, goal, schema, targets, weight)
    first, second, notes = contest.decide(n_rows, n_labels, [metric for metric, _ in aims.values()])
    for metric, _ in aims.values():
        for decisions, title in zip((first, second), sides.titles, strict=True):
            _check_slots(metric, decisions, title)
    judge = LabelJudge(targets, weight, deal_blocks(n_rows, clusters, 0))
    named = {name: aim for name, (_, aim) in aims.items()}
    return JudgedLabels(named, judge, (first, second), contest.stored(n_labels), notes)


def label_value(goal: GoalSpec, y: Any, predicted: Any, sample_weight: Any) -> float:
    """Return what is maximised, of predicted labels: both are indicator matrices, sparse or dense."""
    shape = y.shape if hasattr(y, "shape") else np.shape(y)
    if len(shape) != 2:
        raise InvalidParameter("y", "be an indicator matrix of shape (N, M)", f"shape {tuple(shape)}")
    n_rows, n_labels = int(shape[0]), int(shape[1])
    read, decided = read_label_targets(y, n_rows, n_labels), read_label_targets(predicted, n_rows, n_labels, "y_pred")
    targets, decisions = (LabelSets(sets.indptr, sets.indices, n_labels) for sets in (read, decided))
    weight = read_sample_weight(sample_weight, n_rows)
    ((metric, aim),) = read_label_aims(goal.metric, goal, n_labels, targets, weight).values()
    _check_slots(metric, decisions, "y_pred")
    return LabelJudge(targets, weight, np.zeros(n_rows, dtype=np.int64)).value(aim, decisions)


# ---------------------------------------------------------------------------------------------------------- arguments


def refuse_for_labels(rows: RowSpec, goal: GoalSpec) -> None:
    """Refuse what is not for very many labels, by name."""
    what = "for very many labels"
    for parameter, value in (
        ("sensitive_features", rows.sensitive_features),
        ("cost", rows.cost),
        ("abstain", goal.abstain),
        ("order", rows.order),
        ("classes", rows.classes),
    ):
        if value is not None:
            raise InvalidParameter(parameter, f"be left out {what}", shown(type(value).__name__))
    if rows.time is not None:
        raise InvalidParameter("groups", f"not be an InTime {what}", "InTime", "pass the period of each row")
    if rows.counts_rows:
        raise InvalidParameter("sample_weight", f"not be Frequencies {what}", "Frequencies", "repeat the rows")
    if goal.pos_label not in (None, 1):
        raise InvalidParameter(
            "pos_label", "be 1 or None, because labels are an indicator matrix of 0 and 1", shown(goal.pos_label)
        )


def _check_rules(rules: list[Rule]) -> None:
    """Refuse rules that do not decide an indicator matrix by probabilities alone."""
    what = "for very many labels"
    for rule in rules:
        if rule.needs or rule.abstain_label is not None or not rule.multioutput:
            raise InvalidParameter(
                "rule",
                f"decide several labels by their probabilities alone {what}",
                f"a {type(rule).__name__} that {_other_trait(rule)}",
            )
        if not all(python_labels(labels) in _PAIRS for labels in {id(pair): pair for pair in rule.classes}.values()):
            raise InvalidParameter(
                "rule", f"have the classes 0 and 1 or False and True {what}", "others", "pass y as an indicator matrix"
            )


def _load_tables(sides: Sides, rows: RowSpec) -> tuple[Sides, RowSpec]:
    """Return what is compared and the rows, with the columns of tables in memory."""
    if not any(has_lists(proba) or is_in_table(proba, rows.y) for _, proba in sides.pairs):
        return sides, rows
    from ..data.tables.label_lists import load_list_table

    loaded: dict[int, RowSpec] = {}
    kind = input_of([side for side, _ in sides.pairs], rows.input, sides.models)
    for side, proba in sides.pairs:
        rule = side if isinstance(side, Rule) else next(iter(sides.rules), None)
        spec = replace(rows, proba=proba, input=kind)
        if has_lists(proba):
            loaded.setdefault(id(proba), load_list_table(spec, None if rule is None else rule.n_outputs))
        elif rule is not None and is_in_table(proba, rows.y):
            loaded.setdefault(id(proba), _load_outputs(rule, spec))
    if not loaded:
        return sides, rows
    pairs = [(side, loaded[id(proba)].proba if id(proba) in loaded else proba) for side, proba in sides.pairs]
    first = next(iter(loaded.values()))
    read = replace(rows, y=first.y, sample_weight=first.sample_weight, groups=first.groups)
    return replace(sides, pairs=pairs), read


def _load_outputs(rule: Rule, spec: RowSpec) -> RowSpec:
    """Return the rows of a table with a column for each label, in the order of the rule's outputs."""
    read = read_from_table(rule.schema, spec).rows
    codes = read.codes
    assert codes is not None
    y = np.ma.masked_array(codes, codes < 0) if (codes < 0).any() else codes
    return replace(spec, proba=positive_numbers(read.proba), y=y, sample_weight=read.weight, groups=read.cluster)


def _other_trait(rule: Rule) -> str:
    if rule.needs:
        return f"needs {' and '.join(sorted(rule.needs))}"
    return "may abstain" if rule.abstain_label is not None else "has one output"


def _with_own_metric(rules: list[Rule], goal: GoalSpec) -> GoalSpec:
    """Return the goal with the metric that a rule was optimised for, and its average."""
    rule = next((rule for rule in rules if rule.metadata.metric is not None), rules[0] if rules else None)
    if rule is None:
        raise InvalidParameter(
            "metrics", "be given, because thresholds and decisions do not name the metric that they were optimised for"
        )
    return replace(goal, metric=own_metric(rule), average=own_average(rule) if goal.average is None else goal.average)


def _check_metrics(metrics: Any) -> None:
    """Refuse metrics about sensitive groups or costs."""
    for metric in _listed(metrics):
        about_groups = opened(metric)[1] or as_gap(metric) is not None
        if about_groups or (isinstance(metric, str) and metric == COST):
            raise InvalidParameter(
                "metrics",
                f"not be about {'groups of rows' if about_groups else 'costs of rows'} for very many labels",
                shown(metric if isinstance(metric, str) else type(metric).__name__),
            )


def _check_slots(metric: LabelMetric | None, decisions: LabelSets, title: str) -> None:
    """Refuse decisions that have more labels in a row than a metric at k is about."""
    if metric is None or metric.slots is None:
        return
    largest = int(decisions.sizes.max(initial=0))
    if largest > metric.slots:
        raise InvalidParameter(
            "metrics",
            problem=f"{metric.name!r} is about at most {metric.slots} labels of a row, but {title!r} predicts "
            f"{largest} labels for row {int(decisions.sizes.argmax())}",
            remedy=f"fit the rule with {argument('labels_per_row', metric.slots)}",
        )


# ---------------------------------------------------------------------------------------------------------- decisions


@dataclass(frozen=True, eq=False)
class _Contest:
    """What decides, each with its probabilities, and what the numbers of rows are."""

    pairs: list[tuple[Rule | Threshold | GivenLabels, Any]]
    kind: str

    @classmethod
    def of(cls, sides: Sides, rows: RowSpec) -> _Contest:
        """Check what was given, and join probabilities that are given in pieces."""
        pairs = [(side, join_pieces(proba, "proba")) for side, proba in sides.pairs]
        needed = len(pairs) == 1 or any(proba is None and not isinstance(side, GivenLabels) for side, proba in pairs)
        if needed and any(proba is None for _, proba in pairs):
            raise InvalidParameter(
                "proba",
                "hold the probabilities of the rows",
                "None",
                "only decisions can be compared without them, with other decisions as against",
            )
        kind = input_of([side for side, _ in pairs], rows.input, sides.models)
        rules = sides.rules
        if len(rules) == 2:
            check_alike(rules[0], rules[1], sides.models)
        for side, proba in pairs:
            if isinstance(side, Rule) and not isinstance(side, LabelRuleBase) and is_sparse(proba):
                raise InvalidType(
                    "proba",
                    f"be dense for a {type(side).__name__}",
                    "a sparse array",
                    "pass proba.toarray(), or a LabelRule",
                )
        return cls(pairs, kind)

    @property
    def rules(self) -> list[Rule]:
        """The rules among them."""
        return [side for side, _ in self.pairs if isinstance(side, Rule)]

    @property
    def shown_proba(self) -> Any:
        """The first probabilities that were given."""
        return next((proba for _, proba in self.pairs if proba is not None), None)

    def shape(self, y: Any) -> tuple[int, int]:
        """Return N and M, by a rule, probabilities or labels."""
        shape = np.shape(y) if not hasattr(y, "shape") else y.shape
        proba = self.shown_proba
        if isinstance(proba, (list, tuple)) and len(getattr(proba[0], "shape", ())) == 2:
            proba = proba[0]  # of the first output, with a column for either class
        if len(shape) != 2:
            raise InvalidParameter("y", "be an indicator matrix of shape (N, M)", f"shape {tuple(shape)}")
        n_rows = int(shape[0]) if proba is None else len(proba) if not hasattr(proba, "shape") else int(proba.shape[0])
        n_labels = self.rules[0].n_outputs if self.rules else int(shape[1])
        return n_rows, n_labels

    def decide(
        self, n_rows: int, n_labels: int, metrics: list[LabelMetric | None]
    ) -> tuple[LabelSets, LabelSets, tuple[str, ...]]:
        """Return the labels that both sides predict, and what is to be said of them."""
        both = [self._labels_of(side, proba, n_rows, n_labels) for side, proba in self.pairs]
        if len(both) == 2:
            return both[0], both[1], ()
        baseline = self._most_probable(n_labels, metrics)
        return both[0], _decided(baseline, self._rows(n_labels), n_rows), (_baseline_note(baseline.labels_per_row),)

    def _labels_of(self, side: Rule | Threshold | GivenLabels, proba: Any, n_rows: int, n_labels: int) -> LabelSets:
        if isinstance(side, GivenLabels):
            parameter = "rule" if side is self.pairs[0][0] else "against"
            read = read_label_targets(join_pieces(side.labels, parameter), n_rows, n_labels, parameter)
            return LabelSets(read.indptr, read.indices, n_labels)
        if isinstance(side, Threshold):
            rows = self._read(proba, n_labels)
            if not self._of_logits:
                side.check_probability()
            return _above(rows, side.value)
        if isinstance(side, LabelRuleBase) and is_sparse(proba):
            return _decided(side, side.read_sparse(proba), n_rows)
        read = read_label_targets(side.predict(proba), n_rows, n_labels, "rule")
        return LabelSets(read.indptr, read.indices, n_labels)

    @property
    def _of_logits(self) -> bool:
        return self.kind != "probabilities"

    def _read(self, proba: Any, n_labels: int) -> LabelRows:
        return read_label_rows(proba, n_labels, self.kind)

    def _rows(self, n_labels: int) -> LabelRows:
        """Return the rows that the first side decides, the labels in its order."""
        side, proba = self.pairs[0]
        if isinstance(side, Rule) and not is_sparse(proba):
            return LabelRows.of_array(positive_numbers(side.read(proba)))
        return self._read(proba, n_labels)

    def stored(self, n_labels: int) -> LabelSets | None:
        """Return the labels that sparse rows of the first side store."""
        proba = self.pairs[0][1]
        if not is_sparse(proba):
            return None
        rows = self._read(proba, n_labels)
        assert rows.indices is not None
        return LabelSets(rows.indptr, rows.indices, n_labels)

    def _most_probable(self, n_labels: int, metrics: list[LabelMetric | None]) -> LabelRule:
        """Return the rule of the baseline: the most probable labels, as many as the rule or the metrics allow."""
        side = self.pairs[0][0]
        limit = side.labels_per_row if isinstance(side, LabelRuleBase) else _common_slots(metrics)
        temperature = bias = None
        if self.kind == "scores":
            if not isinstance(side, LabelRuleBase):
                raise InvalidParameter(
                    "against",
                    "be given if no rule maps scores to probabilities, because a score does not say which labels are "
                    "more probable than not",
                    "None",
                    "pass another threshold, decisions as labels, or a rule that was fitted to scores",
                )
            temperature, bias = side.temperature, side.bias
        return LabelRule(
            np.ones(n_labels),
            np.full(n_labels, -0.5),
            limit,
            temperature=temperature,
            bias=bias,
            input=self.kind if self.kind in ("probabilities", "scores") else "logits",
        )


def _common_slots(metrics: list[LabelMetric | None]) -> tuple[int, int] | None:
    """Return the number of labels that metrics at k are about, if it is one."""
    slots = {metric.slots for metric in metrics if metric is not None and metric.slots is not None}
    k = slots.pop() if len(slots) == 1 else None
    return None if k is None else (k, k)


def _decided(rule: LabelRuleBase, rows: LabelRows, n_rows: int) -> LabelSets:
    if rows.n_rows != n_rows:
        raise InvalidParameter(
            "rule", problem=f"both models must have probabilities of the same {n_rows} rows, got {rows.n_rows}"
        )
    return LabelSets(*rule.decide_labels(rows), rule.n_labels)


def _above(rows: LabelRows, threshold: float) -> LabelSets:
    """Return the stored labels whose number exceeds a threshold."""
    kept = rows.values > threshold
    indptr = np.append(0, np.cumsum(kept, dtype=np.int64))[rows.indptr]
    labels = np.arange(rows.n_entries) % rows.n_labels if rows.indices is None else rows.indices
    return LabelSets(indptr, labels[kept], rows.n_labels)


def _baseline_note(limit: tuple[int, int] | None) -> str:
    """Say what the baseline predicts."""
    if limit is None:
        return "Argmax predicts labels of a probability above 0.5."
    low, high = limit
    if low == high:
        return f"Argmax predicts the {high} most probable label{'s' * (high > 1)} of a row."
    least = "" if low == 0 else f" beyond the first {'one' if low == 1 else low}"
    return f"Argmax predicts the most probable labels of a row, at most {high}, of a probability above 0.5{least}."


# ------------------------------------------------------------------------------------------------------------- values


def _clipped(aim: LabelAim, comparison: Comparison) -> Comparison:
    """Return a comparison whose intervals do not exceed the range of the metric."""
    low, high = aim.range

    def within(estimate: Estimate, least: float, most: float) -> Estimate:
        value = estimate.estimate
        return Estimate(value, max(estimate.low, min(value, least)), min(estimate.high, max(value, most)))

    return Comparison(
        within(comparison.value, low, high),
        within(comparison.baseline, low, high),
        within(comparison.difference, low - high, high - low),
    )
