"""What is shown of a solution, or of a rule on rows, as a dict of JSON types.

Pages, cards and the command line are rendered from it. Must not know how anything looks.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, entry_point, mention
from ..core.labels import python_labels
from ..data.sources.memory import MemorySource
from ..evaluation import evaluate
from ..evaluation.arguments import own_average, read_rule, specs_of
from ..evaluation.contenders import read_sides
from ..evaluation.labels import judge_labels
from ..fitting.metadata import loss_names, losses_of
from ..goals.for_outputs import are_for_outputs
from ..inference.label_summary import LabelSummary
from ..inference.results import Comparison, ConstraintResult, Estimate, Recorded
from ..metrics.label_aims import MetricAim, is_loss
from ..metrics.naming import same_classes
from ..metrics.resolution import metric_meant, target_kind
from ..rules.base import Rule
from ..rules.label_base import LabelRuleBase
from ..solvers.result import Outcome
from .details import Curve, Details, Missing, NotApplicable, attempt, details_of
from .label_tables import baseline_words, label_facts, label_tables
from .rule_table import rule_table
from .text import display_value, improvement, metric_losses, negated, number, percent
from .view import View

__all__ = [
    "Subject",
    "advice",
    "read_subject",
    "summarize_for_card",
    "summarize_result",
    "summarize_rule",
    "summarize_subject",
]

FloatArray = NDArray[np.float64]
T = TypeVar("T")

_MAX_MATRIX_CLASSES = 20  # of confusions that are shown cell by cell
_MAX_FLOWS = 12
_MAX_GAINS = 400
_ROUNDING = 1e-9  # below this, values along the path are equal
_PATH_DIGITS = 9  # rounding these again gives the figures
_MAX_DECIMALS = 12  # of scores along the path

_DETAIL_SECTIONS = ("path", "moves", "gains", "reliability")
_NO_LABELS = "there are no labels."
_UNCLEAR = ("show no clear difference", "shows no clear difference")

# Metrics that are shown along the path besides the maximised one, if they apply to the target.
_COMPANIONS = {
    "binary": ("f1", "precision", "recall", "accuracy", "balanced_accuracy"),
    "multiclass": ("accuracy", "balanced_accuracy", "macro_f1", "min_recall"),
    "several": ("hamming_accuracy", "f1", "precision", "recall"),
}


def summarize_subject(subject: Subject) -> dict[str, Any]:
    """Return all sections of a report but the exports."""
    return {
        **_result(subject),
        "path": _path(subject),
        "moves": _moves(subject),
        "gains": _gains(subject),
        "reliability": _reliability(subject),
        "facts": _facts(subject),
        "technical": _technical(subject),
        "missing": subject.reasons,
    }


def summarize_result(view: View) -> dict[str, Any]:
    """Return the part of a summary that needs no rows."""
    return _result(Subject(view.rule, view, None))


def summarize_for_card(view: View) -> dict[str, Any]:
    """Return the part of a summary that a card shows; there is no path if that needs a pass over rows elsewhere."""
    in_memory = "details" in vars(view) or isinstance(getattr(view.problem, "source", None), MemorySource)
    subject = _subject_of(view) if in_memory else Subject(view.rule, view, None)
    curve = subject.part("path", lambda details: details.curve, "")
    path = None if curve is None else _along(subject, curve, curve.values)
    return {**_result(subject), "path": path, "missing": subject.reasons}


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """What a rule for very many labels is worth on other rows: the name of the metric, counts by label, and more."""

    metric: str
    losses: Mapping[str, str]
    by_label: LabelSummary
    n_rows: int
    recorded: dict[str, Recorded]


@dataclass(frozen=True, eq=False)
class Subject:
    """What is summarised: a rule with a view, or with a comparison on other rows; and details if rows are available."""

    rule: Any
    view: View | None
    details: Details | None
    comparison: Comparison | None = None
    judged: JudgedRows | None = None
    missing: dict[str, Missing] = field(default_factory=dict)  # filled while sections are made

    def part(self, section: str, make: Callable[[Details], T | None], without: str) -> T | None:
        """Return a part of the details; None if it is missing, and the reason is noted: `without`, or a refusal."""
        if self.details is None:
            return None
        part = attempt(partial(make, self.details))
        if part is None:
            part = Missing(without, failed=False)
        if isinstance(part, Missing):
            self.missing[section] = part
            return None
        return part

    @property
    def reasons(self) -> dict[str, dict[str, Any]]:
        """Why sections are missing."""
        return {section: vars(missing) for section, missing in self.missing.items()}

    @property
    def by_label(self) -> LabelSummary | None:
        """Counts and values of each of very many labels."""
        if self.judged is not None:
            return self.judged.by_label
        return None if self.view is None else self.view.by_label

    @property
    def recorded(self) -> Mapping[str, Recorded]:
        """Other metrics of the rule and the baseline."""
        if self.judged is not None:
            return self.judged.recorded
        return {} if self.view is None else self.view.recorded

    @property
    def metric(self) -> str:
        """The metric by the name that it has in the problem or the rule."""
        if self.judged is not None:
            return self.judged.metric
        if self.view is None:
            assert self.details is not None and self.details.problem is not None
            return str(self.details.problem.aim.name)
        name = self.rule.metadata.metric
        return name if isinstance(name, str) and name else "the metric"

    @property
    def baseline_name(self) -> str:
        """What the rule is compared with, as a name in tables."""
        return "most probable labels" if isinstance(self.rule, LabelRuleBase) else "argmax"

    @property
    def compared_with(self) -> str:
        """What the rule is compared with, in a sentence."""
        return "the most probable labels" if isinstance(self.rule, LabelRuleBase) else "argmax"

    @property
    def losses(self) -> Mapping[str, str]:
        """The name of the loss of every metric that is minus a loss or a cost."""
        if self.judged is not None:
            return self.judged.losses
        if self.view is None:
            assert self.details is not None and self.details.problem is not None
            return losses_of(self.details.problem)
        return metric_losses(self.rule)

    @property
    def lower_is_better(self) -> bool:
        """Whether the metric is minus a loss or a cost."""
        return self.metric in self.losses

    @property
    def metric_name(self) -> str:
        """The displayed name of the metric."""
        return str(self.displayed(self.metric, None)[0])

    def displayed(self, metric: str, value: Any) -> tuple[str, Any]:
        """Return the displayed name and value of a metric."""
        return display_value(metric, value, self.losses)


@entry_point("report")
def read_subject(target: Any, proba: Any, y: Any, metrics: Any, options: dict[str, Any]) -> Subject:
    """Return what is summarised; see :func:`metricwise.report.summarize`."""
    if proba is None:
        if isinstance(target, View):
            return _subject_of(target)
        raise InvalidParameter(
            "proba",
            problem=f"{mention('proba')} and y must be given for a rule, which does not contain rows, got None",
        )
    rule = read_rule(target)
    if isinstance(rule, LabelRuleBase):
        return _subject_of_labels(rule, proba, y, metrics, options)
    if metrics is None and options.get("average") is None:
        options["average"] = own_average(rule)
    details = Details.of_rows(rule, proba, y, metrics, **options)
    assert details.problem is not None
    name, first = details.problem.aim.name, _first(metrics, rule)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the details have warned about the same rows
        comparison = evaluate(rule, proba, y, {name: first}, **options)[name]
    if not are_for_outputs(first):
        kind = target_kind(rule.schema.width, rule.schema.multioutput)
        if metric_meant(first, kind, class_named=True).metric.traits.lower_is_better:  # details have minus the loss
            parts = (comparison.value, comparison.baseline, comparison.difference)
            comparison = Comparison(*map(negated, parts))
    return Subject(rule, None, details, comparison)


def _subject_of_labels(rule: LabelRuleBase, proba: Any, y: Any, metrics: Any, options: dict[str, Any]) -> Subject:
    """Return a rule for very many labels, judged on other rows."""
    rows, goal = specs_of(None, y, metrics, options)
    judged = judge_labels(read_sides(rule, proba, None), rows, goal)
    comparisons = {name: judged.compare(name) for name in judged.aims}
    by_label = judged.by_label(next(iter(comparisons)))
    # What is shown are minus losses, as elsewhere.
    negative = {name: name for name, aim in judged.aims.items() if is_loss(aim)}
    metrics = {name: aim.metric for name, aim in judged.aims.items() if isinstance(aim, MetricAim)}
    losses = {**loss_names(metrics), **negative}
    for name in negative:
        parts = (comparisons[name].value, comparisons[name].baseline, comparisons[name].difference)
        comparisons[name] = Comparison(*map(negated, parts))
    first, *others = comparisons
    if first in negative:
        by_label = replace(by_label, value=0.0 - by_label.value, baseline=0.0 - by_label.baseline, metric=first)
    recorded = {
        name: Recorded(comparisons[name].value.estimate, comparisons[name].baseline.estimate) for name in others
    }
    shown = JudgedRows(first, losses, by_label, judged.n_rows, recorded)
    return Subject(rule, None, None, comparisons[first], judged=shown)


def _subject_of(view: View) -> Subject:
    details = attempt(partial(details_of, view))
    if isinstance(details, Missing):
        return Subject(view.rule, view, None, missing=dict.fromkeys(_DETAIL_SECTIONS, details))
    return Subject(view.rule, view, details)


def _first(metrics: Any, rule: Any) -> Any:
    """Return the first metric."""
    if metrics is None:
        return rule.metadata.metric
    if isinstance(metrics, Mapping):
        return next(iter(metrics.values()))
    return metrics[0] if isinstance(metrics, (list, tuple)) else metrics


def _number(value: Any) -> float | None:
    """Return a number that JSON has."""
    return float(value) if value is not None and math.isfinite(value) else None


def _interval(estimate: Estimate | None) -> dict[str, float | None] | None:
    if estimate is None:
        return None
    return {key: _number(getattr(estimate, key)) for key in ("estimate", "low", "high")}


# -------------------------------------------------------------------------------------------------------- the result


def _result(subject: Subject) -> dict[str, Any]:
    """Return the sections that need no rows."""
    view = subject.view
    return {
        "metric": subject.metric_name,
        "advice": dict(zip(("kind", "sentence"), _advice(subject), strict=True)),
        "figures": _figures(subject),
        "baseline": subject.baseline_name,
        "rule": summarize_rule(subject.rule),
        "promises": [] if view is None else [_constraint(constraint) for constraint in view.constraints],
        "recorded": [_pair(subject, *pair) for pair in subject.recorded.items()],
        "groups": [] if view is None else _groups(subject, view),
        "labels": _labels(subject),
        "status": "" if view is None else view.status,
    }


def _labels(subject: Subject) -> dict[str, Any] | None:
    if subject.by_label is None or not isinstance(subject.rule, LabelRuleBase):
        return None
    return label_tables(subject.rule, subject.by_label, subject.losses)


def summarize_rule(rule: Rule) -> dict[str, Any]:
    """Return the kind of a rule, its description in lines, and its table."""
    return {"kind": type(rule).__name__, "words": rule.describe().splitlines(), "table": rule_table(rule)}


def _figures(subject: Subject) -> dict[str, Any]:
    view, comparison = subject.view, subject.comparison
    new: Estimate | None
    gain: Estimate | None
    if view is not None:
        value, baseline, new, gain = view.value, view.baseline, view.value_on_new_rows, view.gain
    else:
        assert comparison is not None
        value, baseline = comparison.value.estimate, comparison.baseline.estimate
        new, gain = comparison.value, comparison.difference

    def displayed(number_or_estimate: Any) -> Any:
        return subject.displayed(subject.metric, number_or_estimate)[1]

    return {
        "value": _number(displayed(value) + 0.0),  # never -0
        "baseline": _number(displayed(baseline) + 0.0),
        "value_on_new_rows": _interval(displayed(new)),
        "gain": _interval(gain),
        "lower_is_better": subject.lower_is_better,
        "expected": view is not None and view.counted == "expected",
        "given": "these rows" if view is None else "the given rows",
    }


def _constraint(constraint: ConstraintResult) -> dict[str, Any]:
    numbers = {key: _number(getattr(constraint, key)) for key in ("low", "high", "value", "margin", "price")}
    sure = constraint.confidence
    verb = "holds" if constraint.guarantee is None else "is guaranteed"
    text = "not guaranteed on new data" if sure is None else f"{verb} on new data with {percent(sure)} confidence"
    new = _interval(constraint.on_new_rows)
    return {"name": constraint.name, **numbers, "on_new_rows": new, "kept": _is_kept(constraint), "words": text}


def _is_kept(constraint: ConstraintResult) -> bool:
    return not (constraint.value < constraint.low - 1e-9 or constraint.value > constraint.high + 1e-9)


def _pair(subject: Subject, metric: str, recorded: Any) -> dict[str, Any]:
    """Return a metric of the rule and of argmax."""
    value, baseline = (subject.displayed(metric, number)[1] for number in (recorded.value, recorded.baseline))
    return {"name": subject.displayed(metric, None)[0], "value": _number(value), "baseline": _number(baseline)}


def _groups(subject: Subject, view: View) -> list[dict[str, Any]]:
    rows = []
    for group, values in view.by_group.items():
        name = ", ".join(map(str, group)) if isinstance(group, tuple) else str(group)
        for pair in values.items():
            row = _pair(subject, *pair)
            rows.append({"group": name, "metric": row.pop("name"), **row})
    return rows


# ---------------------------------------------------------------------------------------------------------- the advice


def advice(view: View) -> tuple[str, str]:
    """Return whether to use the rule, "yes", "maybe" or "no", and a sentence about it.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.inspection.summary import advice
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> print(advice(mw.optimize(p, y, "f1"))[1])
    Use the rule: on new data it adds about 0.142 to f1 (at least 0.094 by the 95 % interval).
    """
    return _advice(Subject(view.rule, view, None))


def _advice(subject: Subject) -> tuple[str, str]:
    view, name, loss = subject.view, subject.metric_name, subject.lower_is_better
    if view is None:
        return _advice_on_rows(subject)
    if view.constraints:
        return _advice_on_constraints(subject, view)
    if view.outcome is Outcome.ARGMAX:
        if isinstance(view.rule, LabelRuleBase):
            baseline_text = f"The rule predicts {baseline_words(view.rule)}"
            return "no", f"{baseline_text}: no candidate is expected to be better on new data."
        if view.rule.schema.input.graded:
            return "no", "The rule predicts the most probable class: no other is expected to be better on new data."
        return "no", "Use argmax: no candidate is expected to be better on new data."
    gain, new = view.gain, view.value_on_new_rows
    if gain is not None:
        adds = improvement(name, gain.estimate, None if new is None else new.estimate, "about ", loss=loss)
        about = f"on new data it {adds}"
        if gain.low > 0:
            least = f"{'by ' if loss else ''}at least {number(gain.low)}"
            return "yes", f"Use the rule: {about} ({least} by the 95 % interval)."
        if gain.estimate > 0:
            return (
                "maybe",
                f"The rule is likely to help: {about}, but the 95 % interval includes zero.",
            )
        change = number(0.0 - gain.estimate if loss else gain.estimate, True)
        return "no", f"Use {subject.compared_with}: on new data the rule changes {name} by about {change}."
    difference = view.value - view.baseline
    adds = improvement(name, difference, view.value, loss=loss)
    if view.counted == "expected" and difference > 0:
        return "maybe", f"The rule {adds}, if the probabilities are calibrated; pass labels to check."
    if view.counted == "expected":
        return "no", "The rule has no expected gain under the given probabilities; pass labels to check."
    return (
        "maybe",
        f"On the given rows, the rule {adds}; the gain on new data is smaller and has not been estimated.",
    )


def _advice_on_constraints(subject: Subject, view: View) -> tuple[str, str]:
    broken = [constraint.name for constraint in view.constraints if not _is_kept(constraint)]
    if broken:
        return "no", f"Do not use the rule: it violates {', '.join(broken)} on the given rows."
    n, new = len(view.constraints), view.value_on_new_rows
    what = "the constraint" if n == 1 else "both constraints" if n == 2 else f"all {n} constraints"
    name, shown = subject.displayed(subject.metric, view.value if new is None else new.estimate)
    value = f"{name} is {number(shown)}" if new is None else f"{name} is about {number(shown)} on new data"
    levels = [constraint.confidence for constraint in view.constraints if constraint.confidence is not None]
    if len(levels) == n:
        exact = all(constraint.guarantee is not None for constraint in view.constraints)
        holds = f"this {'is guaranteed' if exact else 'holds'} on new data with {percent(min(levels))} confidence"
        return "yes", f"Use the rule to satisfy {what}: {holds}, and {value}."
    return "maybe", f"The rule satisfies {what} on the given rows, but not necessarily on new data; {value}."


def _advice_on_rows(subject: Subject) -> tuple[str, str]:
    """Return the advice on a rule that was judged on other rows."""
    assert subject.comparison is not None
    gain, name, loss = subject.comparison.difference, subject.metric_name, subject.lower_is_better
    change = negated(gain) if loss else gain
    ends = f"95 % interval {number(change.low, True)} to {number(change.high, True)}"
    if gain.low > 0:
        adds = improvement(name, gain.estimate, subject.comparison.value.estimate, loss=loss)
        return "yes", f"Use the rule: on these rows it {adds}, {ends}."
    if gain.high < 0:
        verb = "raises the" if loss else "reduces"
        return "no", f"Do not use the rule: on these rows it {verb} {name} by {number(-gain.estimate)}, {ends}."
    return (
        "maybe",
        f"No clear difference between the rule and {subject.compared_with} on these rows: {name} changes by "
        f"{number(change.estimate, True)}, {ends}.",
    )


# ------------------------------------------------------------------------------------------------------------ the path


def _path(subject: Subject) -> dict[str, Any] | None:
    """Return metrics and confusions of the rules along the path, for the slider of a page."""
    details, view = subject.details, subject.view
    curve = subject.part(
        "path", lambda details: _with_companions(details).curve, "the confusions along it are too large."
    )
    if details is None or curve is None:
        return None
    assert details.problem is not None
    return {
        **_along(subject, curve, _distinct(curve, set(details.problem.record))),
        "bounds": {limit.name: [_number(limit.low), _number(limit.high)] for limit in view.constraints} if view else {},
        "rows": curve.n_rows,
        "sampled": curve.n_rows < details.problem.n_rows,
        "beside_top": _beside_top(subject, curve),
        "positive": str(python_labels(subject.rule.classes[0])[1]),
        "confusion": _confusions(details, curve),
    }


def _along(subject: Subject, curve: Curve, values: Mapping[str, FloatArray]) -> dict[str, Any]:
    ends = curve.within(None if subject.view is None else subject.view.threshold_range)
    digits = None if curve.unit == "probability" or curve.kind == "step" else _decimals(np.ptp(curve.position))
    displayed = [display_value(name, along, curve.losses) for name, along in values.items()]
    return {
        "kind": curve.kind,
        "unit": curve.unit,
        "digits": digits,
        "position": _rounded(curve.shown_position, _PATH_DIGITS if digits is None else digits + _PATH_DIGITS),
        "plain": curve.plain,
        "chosen": curve.chosen,
        "values": {name: _rounded(along) for name, along in displayed},
        "bounded": {name: _rounded(along) for name, along in curve.bounded.items()},
        "range": None if ends is None else list(ends),
    }


def _beside_top(subject: Subject, curve: Curve) -> str | None:
    """Return why the rule is not where the metric is best along the curve; None where it is."""
    along = next(iter(curve.values.values()))
    if not np.nanmax(along) > along[curve.chosen] + _ROUNDING:
        return None
    view = subject.view
    where = f"where {subject.metric_name} is {'lowest' if subject.lower_is_better else 'highest'}"
    if view is None:
        return f"The rule was not fitted to these rows, so it is not necessarily {where}."
    if view.constraints:
        return f"The rule is not {where}, because it must satisfy the constraints."
    if view.candidates:
        return (
            f"The rule is not {where} on these rows, because it is chosen for new data: it is the mean of rules fitted "
            "to resamples of these rows, with recalibrated probabilities."
        )
    return None


def _with_companions(details: Details) -> Details:
    """Return the details with the usual metrics along the curve, if they apply to the classes."""
    rule = details.rule
    kind = "several" if rule.schema.multioutput else "binary" if rule.width == 2 else "multiclass"
    if details.problem is None:
        raise NotApplicable("", problem="the rows are not available, because files do not contain them")
    aims = dict(details.problem.record)
    for name in _COMPANIONS[kind]:
        extended = attempt(partial(details.with_metrics, [name]))
        if not isinstance(extended, Missing) and extended.problem is not None:
            aims |= {key: aim for key, aim in extended.problem.record.items() if key not in aims}
    return details.recording(aims)


def _distinct(curve: Curve, recorded: set[str]) -> dict[str, FloatArray]:
    """Return the metrics along the curve, without companions that equal another, as f1 does f1[yes]."""
    first = next(iter(curve.values))
    kept = {name: along for name, along in curve.values.items() if name == first or name in recorded}
    for name, along in curve.values.items():
        others = [*kept.values(), *curve.bounded.values()]
        if not any(np.allclose(along, other, rtol=0, atol=1e-12, equal_nan=True) for other in others):
            kept[name] = along
    return kept


def _rounded(values: FloatArray, digits: int = _PATH_DIGITS) -> list[float | None]:
    return [None if not math.isfinite(value) else round(value, digits) for value in values.tolist()]


def _decimals(span: float) -> int:
    """Return the decimals with which a thousandth of a range of scores can be told."""
    return min(max(0, 3 - math.floor(math.log10(span))), _MAX_DECIMALS)


def _confusions(details: Details, curve: Curve) -> dict[str, Any] | None:
    """Return weights of rows by true class and decision at every position, pooled over outputs."""
    rule, weight = details.rule, details.weight
    if rule.width > _MAX_MATRIX_CLASSES or not same_classes(rule.classes):
        return None
    labels, decisions = rule.classes[0], rule.schema.decisions[0]
    pooled = np.einsum("m,tmij->tij", weight, curve.confusion)[:, : len(labels), : len(decisions)]
    whole = bool(np.abs(weight - np.round(weight)).max() < 1e-6 and details.labelled)
    cells = np.round(pooled).astype(int) if whole else np.round(pooled, 2)
    return {
        "labels": [str(label) for label in python_labels(labels)],
        "decisions": [str(label) for label in python_labels(decisions)],
        "cells": cells.reshape(len(cells), -1).tolist(),
        "whole": whole,
    }


# -------------------------------------------------------------------------------------------- moves, gains, reliability


def _moves(subject: Subject) -> dict[str, Any] | None:
    moves = subject.part("moves", lambda details: details.moves, "")
    if subject.details is None or moves is None:
        return None
    schema = subject.details.rule.schema
    names = schema.output_names or [f"output {m}" for m in range(schema.n_outputs)]
    labels = [[str(label) for label in python_labels(decisions)] for decisions in schema.decisions]
    total = moves.total
    moved = [(m, a, b) for m, a, b in np.argwhere(total > 0).tolist() if a != b]
    moved.sort(key=lambda place: -total[place])
    flows = [
        {
            "output": str(names[m]) if schema.multioutput else None,
            "from": labels[m][a],
            "to": labels[m][b],
            **{kind: float(getattr(moves, kind)[m, a, b]) for kind in ("gained", "lost", "neither")},
            "total": float(total[m, a, b]),
        }
        for m, a, b in moved[:_MAX_FLOWS]
    ]
    rest = moved[_MAX_FLOWS:]
    return {
        "moved": moves.moved,
        "expected": moves.expected,
        "flows": flows,
        "more": len(rest),
        "rest": float(sum(total[place] for place in rest)),
    }


def _gains(subject: Subject) -> dict[str, Any] | None:
    gains = subject.part("gains", lambda details: details.gains, _NO_LABELS)
    if gains is None:
        return None
    order = np.argsort(-gains.difference[:, 0], kind="stable")
    if len(order) > _MAX_GAINS:
        order = np.concatenate([order[: _MAX_GAINS // 2], order[-_MAX_GAINS // 2 :]])
    columns = {
        "value": gains.value[:, 0],
        "baseline": gains.baseline[:, 0],
        **dict(zip(("difference", "low", "high"), gains.difference.T, strict=True)),
    }
    parts = [
        {"name": gains.names[p], **{key: _number(column[p]) for key, column in columns.items()}} for p in order.tolist()
    ]
    better, worse = int((columns["low"] > 0).sum()), int((columns["high"] < 0).sum())
    loss = gains.losses.get(gains.metric)
    return {
        "by": gains.by,
        "metric": gains.metric if loss is None else f"minus the {loss}",  # differences are gains
        "parts": parts,
        "n_parts": gains.n_parts,
        "better": better,
        "worse": worse,
        "words": _gains_text(gains.n_parts, better, worse),
        "rows": _counted_rows(gains.sampled),
    }


def _counted_rows(sampled: int | None) -> str:
    return "these rows" if sampled is None else f"a sample of {sampled:,} of these rows"


def _gains_text(n: int, better: int, worse: int) -> str:
    """Return how many of n parts gain, lose, or do neither clearly."""
    counts = ((better, "gain", "gains"), (worse, "lose", "loses"), (n - better - worse, *_UNCLEAR))
    verbs = [(count, singular if count == 1 else plural) for count, plural, singular in counts if count]
    (first, verb), *rest = verbs or [(0, "gain")]
    return ", ".join([f"{first} of {n} {verb}", *(f"{count} {verb}" for count, verb in rest)])


def _reliability(subject: Subject) -> dict[str, Any] | None:
    reliability = subject.part("reliability", lambda details: details.reliability, _NO_LABELS)
    if reliability is None:
        return None
    summary: dict[str, Any] = {"rows": _counted_rows(reliability.sampled), "given": reliability.given}
    for key, bins in (("before", reliability.before), ("after", reliability.after)):
        summary[key] = bins and {
            "predicted": _rounded(bins.predicted),
            "observed": _rounded(bins.observed),
            "error": bins.error,
        }
    return summary


# --------------------------------------------------------------------------------------------------------------- facts


def _facts(subject: Subject) -> list[list[str]]:
    """Return facts of the data, as pairs of text."""
    rule, details, metadata = subject.rule, subject.details, subject.rule.metadata
    schema = rule.schema
    rows = details.problem.n_rows if details is not None and details.problem is not None else metadata.rows
    if subject.by_label is not None and isinstance(rule, LabelRuleBase):
        rows = rows if subject.judged is None else subject.judged.n_rows
        return _pairs_of_text(
            ("Rows", f"{rows:,}" if isinstance(rows, int) else rows),
            *label_facts(rule, subject.by_label),
            ("Input", schema.input.plural if schema.input.is_logits else None),
            ("Average over labels", metadata.average),
        )
    sizes = sorted(set(schema.n_classes.tolist()))
    counts, by_class = metadata.class_counts, None
    if isinstance(counts, list) and len(counts) == 1 and len(counts[0]) <= _MAX_MATRIX_CLASSES:
        labels = python_labels(rule.classes[0])
        by_class = ", ".join(f"{label}: {count:,}" for label, count in zip(labels, counts[0], strict=True))
    return _pairs_of_text(
        ("Rows", f"{rows:,}" if isinstance(rows, int) else rows),
        ("Outputs", f"{schema.n_outputs:,}" if schema.multioutput else None),
        ("Classes", str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"),
        ("Rows of each class", by_class),
        ("Input", schema.input.plural if schema.input.is_logits else None),
        ("Average over outputs", metadata.average if schema.multioutput else None),
    )


def _technical(subject: Subject) -> list[list[str]]:
    """Return facts of the solver, as pairs of text."""
    view, metadata = subject.view, subject.rule.metadata
    pairs = [("Recipe", metadata.recipe), ("Version of metricwise", metadata.metricwise)]
    if view is not None:
        bound, alternative = view.upper_bound, view.alternative
        pairs += [
            ("Outcome", view.outcome.value),
            ("Counted with", "labels" if view.counted == "labels" else "probabilities"),
            ("Passes over the rows", f"{view.n_passes:,}"),
            ("Upper bound", None if bound is None else number(bound)),
            ("Gap to the upper bound", None if bound is None else f"{view.gap:.1e}"),
            ("Value of the other kind of rule", None if alternative is None else number(alternative)),
        ]
    return _pairs_of_text(*pairs)


def _pairs_of_text(*pairs: tuple[str, Any]) -> list[list[str]]:
    return [[name, str(value)] for name, value in pairs if value is not None]
