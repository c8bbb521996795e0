"""What a report says, as a dict that JSON can hold."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..._version import __version__
from ...core.errors import InvalidParameter, entry_point, mention
from ...data import python_labels
from ...evaluation import Comparison, evaluate, own_average, read_rule
from ...fitting.metadata import losses_of
from ...goals.for_outputs import are_for_outputs
from ...inference import Estimate
from ...metrics.naming import same_classes
from ...metrics.resolution import metric_meant, target_kind
from ..cards.numbers import (
    advice,
    as_read,
    improvement,
    is_loss,
    losses_known,
    metric_name,
    number,
    promise_words,
    turned,
)
from ..cards.rule_table import rule_table
from ..details import Curve, Details, Missing, NotApplicable, attempt
from ..view import View
from .applying import ways_to_apply

__all__ = ["Subject", "summarize"]

FloatArray = NDArray[np.float64]
T = TypeVar("T")

_MANY_CLASSES = 20  # of which confusions are shown, cell by cell
_MOST_FLOWS = 12
_UNCLEAR = ("show no clear difference", "shows no clear difference")
_MOST_PARTS = 400
_LEVEL = 1e-9  # below this, a difference in height is rounding
_DIGITS = 9  # of numbers along the path: rounding them again shows what the figures show

_OF_ROWS = ("path", "moves", "gains", "reliability")  # sections that need details
_NO_LABELS = "there are no labels."

# What is shown beside the metric, where it means something for the target.
_COMPANIONS = {
    "binary": ("f1", "precision", "recall", "accuracy", "balanced_accuracy"),
    "multiclass": ("accuracy", "balanced_accuracy", "macro_f1", "min_recall"),
    "several": ("hamming_accuracy", "f1", "precision", "recall"),
}


@dataclass(frozen=True, eq=False)
class Subject:
    """What a report is about.

    Parameters
    ----------
    rule : WeightedRule or MixtureRule
    solution : Solution or None
        None where a rule is judged on rows that it was not fitted to.
    details : Details or None
        None where no rows are known.
    comparison : Comparison or None
        Of a rule alone, its first metric on the rows, with intervals.
    missing : dict of str to Missing
        Sections that are missing, and why; those that need details are added as they are made.
    """

    rule: Any
    solution: View | None
    details: Details | None
    comparison: Comparison | None = None
    missing: dict[str, Missing] = field(default_factory=dict)

    def part(self, section: str, make: Callable[[Details], T | None], without: str) -> T | None:
        """Return a part of the details for a section; None if it is missing, which is noted.

        Parameters
        ----------
        without : str
            Why there is no such part of some details.
        """
        if self.details is None:
            return None
        details = self.details
        made = attempt(lambda: make(details))
        if made is None:
            made = Missing(without, failed=False)
        if isinstance(made, Missing):
            self.missing[section] = made
            return None
        return made

    @classmethod
    @entry_point("report")
    def of(cls, found: Any, proba: Any = None, y: Any = None, metrics: Any = None, **options: Any) -> Subject:
        """Return the subject that is meant; see :func:`summarize`."""
        if proba is None:
            if isinstance(found, View):
                details = attempt(lambda: found.details)
                if isinstance(details, Missing):
                    return cls(found.rule, found, None, missing=dict.fromkeys(_OF_ROWS, details))
                return cls(found.rule, found, details)
            raise InvalidParameter(
                "proba",
                problem=f"{mention('proba')} and y must be given for a rule, which does not contain rows, got None",
            )
        rule = read_rule(found)
        if metrics is None and options.get("average") is None:
            options["average"] = own_average(rule)
        details = Details.of_rows(rule, proba, y, metrics, **options)
        assert details.problem is not None
        name, first = details.problem.aim.name, _first(metrics, rule)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # said above, of the same rows
            judged = evaluate(rule, proba, y, {name: first}, **options)[name]
        if not are_for_outputs(first):
            kind = target_kind(rule.schema.width, rule.schema.multioutput)
            if metric_meant(first, kind, class_named=True).metric.traits.lower_is_better:  # details have minus the loss
                judged = Comparison(*(turned(one) for one in (judged.value, judged.baseline, judged.difference)))
        return cls(rule, None, details, judged)

    @property
    def losses(self) -> Mapping[str, str]:
        """Which metrics are minus a loss or a cost, by name, and what people read instead."""
        if self.solution is None and self.details is not None and self.details.problem is not None:
            return losses_of(self.details.problem)
        return losses_known(self.rule)

    @property
    def lower_is_better(self) -> bool:
        """Whether the metric is minus a loss or a cost."""
        if self.solution is not None:
            return is_loss(self.solution)
        assert self.details is not None and self.details.problem is not None
        return self.details.problem.aim.name in self.losses


def summarize(found: Any, proba: Any = None, y: Any = None, metrics: Any = None, **options: Any) -> dict[str, Any]:
    """Return the content of a report as a dict of JSON types.

    Parameters
    ----------
    found : View, WeightedRule, MixtureRule, path, str or dict
        A solution alone is reported on the rows that it was fitted to. A rule, or a solution with other rows, is
        evaluated on those rows.
    proba, y : array-like, optional
        Labelled rows, as in :func:`metricwise.evaluate`.
    metrics : str, Metric, callable, list or dict, optional
        The metric to judge the rule by, and others; None: the metric that it was optimised for.
    **options
        As in :func:`metricwise.evaluate`: `sample_weight`, `pos_label`, `average` and so on.

    Returns
    -------
    dict

    See Also
    --------
    write : Write the report.
    render : The report as HTML.

    Examples
    --------
    >>> import json
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.report import summarize
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> summary = summarize(mw.optimize(p, y, "f1"))
    >>> summary["advice"]["kind"], summary["path"]["kind"], len(json.dumps(summary)) < 100_000
    ('yes', 'threshold', True)
    """
    subject = Subject.of(found, proba, y, metrics, **options)
    summary = {
        "metricwise": __version__,
        "metric": _metric(subject),
        "advice": _advice(subject),
        "figures": _figures(subject),
        "rule": _rule(subject),
        "promises": _promises(subject),
        "recorded": _recorded(subject),
        "path": _path(subject),
        "moves": _moves(subject),
        "groups": _groups(subject),
        "gains": _gains(subject),
        "reliability": _reliability(subject),
        "facts": _facts(subject),
        "technical": _technical(subject),
        "status": "" if subject.solution is None else subject.solution.status,
        "apply": ways_to_apply(subject.rule),
    }
    return {**summary, "missing": {name: vars(missing) for name, missing in subject.missing.items()}}


def _first(metrics: Any, rule: Any) -> Any:
    """The first of some metrics."""
    if metrics is None:
        return rule.metadata.metric
    if isinstance(metrics, Mapping):
        return next(iter(metrics.values()))
    return metrics[0] if isinstance(metrics, (list, tuple)) else metrics


def _number(value: Any) -> float | None:
    """A number that JSON has."""
    return float(value) if value is not None and math.isfinite(value) else None


def _interval(estimate: Estimate | None) -> dict[str, float | None] | None:
    if estimate is None:
        return None
    return {name: _number(getattr(estimate, name)) for name in ("estimate", "low", "high")}


# --------------------------------------------------------------------------------------------------- is it worth it


def _metric(subject: Subject) -> str:
    if subject.solution is None and subject.details is not None and subject.details.problem is not None:
        return str(as_read(subject.details.problem.aim.name, None, subject.losses)[0])
    return "the metric" if subject.solution is None else metric_name(subject.solution)


def _advice(subject: Subject) -> dict[str, str]:
    if subject.solution is not None:
        kind, sentence = advice(subject.solution)
        return {"kind": kind, "sentence": sentence}
    assert subject.comparison is not None
    gain, name, loss = subject.comparison.difference, _metric(subject), subject.lower_is_better
    value = subject.comparison.value.estimate
    change = turned(gain) if loss else gain
    ends = f"95 % interval {number(change.low, True)} to {number(change.high, True)}"
    if gain.low > 0:
        return {
            "kind": "yes",
            "sentence": f"Use the rule: on these rows it {improvement(name, gain.estimate, value, loss=loss)}, {ends}.",
        }
    if gain.high < 0:
        verb = "raises the" if loss else "reduces"
        said = f"Do not use the rule: on these rows it {verb} {name} by {number(-gain.estimate)}, {ends}."
        return {"kind": "no", "sentence": said}
    said = (
        f"These rows do not distinguish the rule from plain argmax: {name} changes by "
        f"{number(change.estimate, True)}, {ends}."
    )
    return {"kind": "maybe", "sentence": said}


def _figures(subject: Subject) -> dict[str, Any]:
    solution = subject.solution
    lower = {"lower_is_better": subject.lower_is_better}

    def read(estimate: Estimate | None) -> Estimate | None:
        return turned(estimate) if estimate is not None and subject.lower_is_better else estimate

    sign = -1.0 if subject.lower_is_better else 1.0
    if solution is None:
        assert subject.comparison is not None
        one = subject.comparison
        return {
            "value": sign * one.value.estimate + 0.0,
            "baseline": sign * one.baseline.estimate + 0.0,
            "value_on_new_rows": _interval(read(one.value)),
            "gain": _interval(one.difference),
            **lower,
            "expected": False,
            "given": "these rows",
        }
    return {
        "value": _number(sign * solution.value + 0.0),
        "baseline": _number(sign * solution.baseline + 0.0),
        "value_on_new_rows": _interval(read(solution.value_on_new_rows)),
        "gain": _interval(solution.gain),
        **lower,
        "expected": solution.counted == "expected",
        "given": "the given rows",
    }


# -------------------------------------------------------------------------------------------------------------- rule


def _rule(subject: Subject) -> dict[str, Any]:
    found = rule_table(subject.rule, most=60)
    table = None
    if found is not None:
        rows = [list(row) for row in found.rows]
        table = {"head": list(found.head), "rows": rows, "more": found.more, "caption": found.caption}
    return {"kind": type(subject.rule).__name__, "words": subject.rule.describe().splitlines(), "table": table}


def _promises(subject: Subject) -> list[dict[str, Any]]:
    if subject.solution is None:
        return []
    out = []
    for one in subject.solution.constraints:
        kept, words = promise_words(one)
        out.append(
            {
                "name": one.name,
                "low": _number(one.low),
                "high": _number(one.high),
                "value": _number(one.value),
                "margin": _number(one.margin),
                "price": _number(one.price),
                "on_new_rows": _interval(one.on_new_rows),
                "kept": kept,
                "words": words,
            }
        )
    return out


def _recorded(subject: Subject) -> list[dict[str, Any]]:
    if subject.solution is None:
        return []
    return [
        {
            "name": as_read(name, None, subject.losses)[0],
            "value": _number(as_read(name, one.value, subject.losses)[1]),
            "baseline": _number(as_read(name, one.baseline, subject.losses)[1]),
        }
        for name, one in subject.solution.recorded.items()
    ]


# -------------------------------------------------------------------------------------------------------------- path


def _path(subject: Subject) -> dict[str, Any] | None:
    """What the slider moves along: metrics and confusions of rules from argmax to the one found, and beyond."""
    details = subject.details
    if details is None:
        return None
    curve = subject.part("path", lambda details: _beside(details).curve, "the confusions along it are too large.")
    if curve is None:
        return None
    assert details.problem is not None
    shown_values = _once(curve, set(details.problem.record))
    solution = subject.solution
    bounds = (
        {} if solution is None else {one.name: [_number(one.low), _number(one.high)] for one in solution.constraints}
    )
    ends = None if solution is None else solution.threshold_range
    shown = None
    if ends is not None and ends.shape == (2,) and np.isfinite(ends).all():
        shown = [float(end) for end in ends]
    return {
        "kind": curve.kind,
        "position": _rounded(np.maximum(curve.position, 0.0)),
        "plain": curve.plain,
        "chosen": curve.chosen,
        "values": {
            name: _rounded(values) for name, values in (as_read(*pair, curve.losses) for pair in shown_values.items())
        },
        "bounded": {name: _rounded(values) for name, values in curve.bounded.items()},
        "bounds": bounds,
        "range": shown,
        "rows": curve.n_rows,
        "sampled": curve.n_rows < details.problem.n_rows,
        "beside_top": _beside_top(subject, curve),
        "positive": str(python_labels(subject.rule.classes[0])[1]),
        "confusion": _confusions(subject, curve),
    }


def _beside_top(subject: Subject, curve: Curve) -> str | None:
    """Say why the rule is not where the metric is highest along the curve; None where it is."""
    along = next(iter(curve.values.values()))
    if not np.nanmax(along) > along[curve.chosen] + _LEVEL:
        return None
    solution, end = subject.solution, "lowest" if subject.lower_is_better else "highest"
    if solution is None:
        return f"The rule was not fitted to these rows, so it need not be where {_metric(subject)} is {end} on them."
    if solution.constraints:
        return f"The rule is not where {_metric(subject)} is {end}, because it must satisfy the constraints."
    if solution.candidates:
        return (
            f"The rule is not where {_metric(subject)} is {end} on these rows, because it is made for new rows: it is "
            "the mean of rules that were fitted to resamples of these rows, on recalibrated probabilities."
        )
    return None


def _beside(details: Details) -> Details:
    """The details with the usual metrics along the curve as well, as far as they mean something."""
    rule = details.rule
    kind = "several" if rule.schema.multioutput else "binary" if rule.width == 2 else "multiclass"
    if details.problem is None:
        raise NotApplicable("", problem="the rows are not available, because files do not contain them")
    own = dict(details.problem.record)
    aims = dict(own)
    for name in _COMPANIONS[kind]:
        beside = attempt(partial(details.with_metrics, [name]))
        if not isinstance(beside, Missing) and beside.problem is not None:  # else it means nothing for such classes
            aims |= {key: aim for key, aim in beside.problem.record.items() if key not in aims}
    return details.recording(aims)


def _once(curve: Curve, own: set[str]) -> dict[str, FloatArray]:
    """The metrics along the curve without companions that are others by another name, as f1 is f1[yes]."""
    first = next(iter(curve.values))  # the metric itself
    kept = {name: values for name, values in curve.values.items() if name == first or name in own}
    for name, values in curve.values.items():
        others = [*kept.values(), *curve.bounded.values()]
        if not any(np.allclose(values, one, rtol=0, atol=1e-12, equal_nan=True) for one in others):
            kept[name] = values
    return kept


def _rounded(values: FloatArray) -> list[float | None]:
    return [None if not math.isfinite(value) else round(value, _DIGITS) for value in values.tolist()]


def _confusions(subject: Subject, curve: Curve) -> dict[str, Any] | None:
    """Weights of rows by true class and decision at every position, of all outputs with the same classes together."""
    details = subject.details
    if details is None or details.rule.width > _MANY_CLASSES or not same_classes(details.rule.classes):
        return None
    rule, weight = details.rule, details.weight
    k, d = (len(own[0]) for own in (rule.classes, rule.schema.decisions))
    pooled = np.einsum("m,tmij->tij", weight, curve.confusion)[:, :k, :d]
    whole = bool(np.abs(weight - np.round(weight)).max() < 1e-6 and details.labelled)
    cells = np.round(pooled).astype(int) if whole else np.round(pooled, 2)
    return {
        "labels": [str(label) for label in python_labels(rule.classes[0])],
        "decisions": [str(label) for label in python_labels(rule.schema.decisions[0])],
        "cells": cells.reshape(len(cells), -1).tolist(),
        "whole": whole,
    }


# ----------------------------------------------------------------------------------------------- what changes for whom


def _moves(subject: Subject) -> dict[str, Any] | None:
    details = subject.details
    moves = subject.part("moves", lambda details: details.moves, "")
    if details is None or moves is None:
        return None
    rule = details.rule
    labels = [[str(label) for label in python_labels(own)] for own in rule.schema.decisions]
    total = moves.total
    moved = [(m, a, b) for m, a, b in np.argwhere(total > 0).tolist() if a != b]
    moved.sort(key=lambda place: -total[place])
    flows = [
        {
            "output": _output_name(rule, m),
            "from": labels[m][a],
            "to": labels[m][b],
            **{kind: float(getattr(moves, kind)[m, a, b]) for kind in ("gained", "lost", "neither")},
            "total": float(total[m, a, b]),
        }
        for m, a, b in moved[:_MOST_FLOWS]
    ]
    more = moved[_MOST_FLOWS:]
    return {
        "moved": moves.moved,
        "expected": moves.expected,
        "flows": flows,
        "more": len(more),
        "rest": float(sum(total[place] for place in more)),
    }


def _output_name(rule: Any, m: int) -> str | None:
    if not rule.schema.multioutput:
        return None
    names = rule.schema.output_names
    return f"output {m}" if names is None else str(names[m])


def _groups(subject: Subject) -> list[dict[str, Any]]:
    """How every sensitive group fares, where there are any."""
    found = {} if subject.solution is None else subject.solution.by_group
    return [
        {
            "group": ", ".join(map(str, name)) if isinstance(name, tuple) else str(name),
            "metric": as_read(metric, None, subject.losses)[0],
            "value": _number(as_read(metric, one.value, subject.losses)[1]),
            "baseline": _number(as_read(metric, one.baseline, subject.losses)[1]),
        }
        for name, values in found.items()
        for metric, one in values.items()
    ]


def _gains(subject: Subject) -> dict[str, Any] | None:
    gains = subject.part("gains", lambda details: details.gains, _NO_LABELS)
    if gains is None:
        return None
    order = np.argsort(-gains.difference[:, 0], kind="stable")
    if len(order) > _MOST_PARTS:
        order = np.concatenate([order[: _MOST_PARTS // 2], order[-_MOST_PARTS // 2 :]])
    parts = [
        {
            "name": gains.names[p],
            "value": _number(gains.value[p, 0]),
            "baseline": _number(gains.baseline[p, 0]),
            "difference": _number(gains.difference[p, 0]),
            "low": _number(gains.difference[p, 1]),
            "high": _number(gains.difference[p, 2]),
        }
        for p in order.tolist()
    ]
    low, high = gains.difference[:, 1], gains.difference[:, 2]
    better, worse = int((low > 0).sum()), int((high < 0).sum())
    counts = {"better": better, "worse": worse, "words": _gains_words(gains.n_parts, better, worse)}
    loss = gains.losses.get(gains.metric)
    metric = gains.metric if loss is None else f"minus the {loss}"  # differences are gains
    found = {"by": gains.by, "metric": metric, "parts": parts, "n_parts": gains.n_parts, **counts}
    return {**found, "rows": _counted(gains.sampled)}


def _counted(sampled: int | None) -> str:
    """On which rows something was counted."""
    return "these rows" if sampled is None else f"a sample of {sampled:,} of these rows"


def _gains_words(n: int, better: int, worse: int) -> str:
    """How many of n parts gain, lose, or do neither clearly."""
    counts = ((better, "gain", "gains"), (worse, "lose", "loses"), (n - better - worse, *_UNCLEAR))
    said = [(count, one if count == 1 else several) for count, several, one in counts if count]
    (first, verb), *rest = said or [(0, "gain")]
    return ", ".join([f"{first} of {n} {verb}", *(f"{count} {verb}" for count, verb in rest)])


def _reliability(subject: Subject) -> dict[str, Any] | None:
    found = subject.part("reliability", lambda details: details.reliability, _NO_LABELS)
    if found is None:
        return None
    both = {"before": found.before, "after": found.after}
    bins = {
        name: None
        if own is None
        else {"predicted": _rounded(own.predicted), "observed": _rounded(own.observed), "error": own.error}
        for name, own in both.items()
    }
    return {**bins, "rows": _counted(found.sampled)}


# ------------------------------------------------------------------------------------------------------------- facts


def _facts(subject: Subject) -> list[list[str]]:
    """Facts of the data, as pairs of text."""
    rule, details = subject.rule, subject.details
    rows = details.problem.n_rows if details is not None and details.problem is not None else rule.metadata.rows
    pairs: list[tuple[str, Any]] = [("Rows", f"{rows:,}" if isinstance(rows, int) else rows)]
    schema = rule.schema
    if rule.schema.multioutput:
        pairs.append(("Outputs", f"{schema.n_outputs:,}"))
    sizes = sorted(set(schema.n_classes.tolist()))
    pairs.append(("Classes", str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"))
    counts = rule.metadata.class_counts
    if isinstance(counts, list) and len(counts) == 1 and len(counts[0]) <= _MANY_CLASSES:
        labels = python_labels(rule.classes[0])
        pairs.append(("Rows of each class", ", ".join(f"{a}: {b:,}" for a, b in zip(labels, counts[0], strict=True))))
    if rule.schema.multioutput:
        pairs.append(("Average over outputs", rule.metadata.average))
    return [[name, str(value)] for name, value in pairs if value is not None]


def _technical(subject: Subject) -> list[list[str]]:
    """Facts of the solver, as pairs of text."""
    metadata = subject.rule.metadata
    pairs = [("Recipe", metadata.recipe), ("Made by metricwise", metadata.metricwise)]
    if subject.solution is not None:
        pairs += _solver_facts(subject.solution)
    return [[name, str(value)] for name, value in pairs if value is not None]


def _solver_facts(solution: View) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = [
        ("Outcome", solution.outcome.value),
        ("Counted with", "labels" if solution.counted == "labels" else "probabilities"),
        ("Passes over the rows", f"{solution.n_passes:,}"),
    ]
    if solution.upper_bound is not None:
        pairs.append(("Upper bound", number(solution.upper_bound)))
        pairs.append(("Gap to the upper bound", f"{solution.gap:.1e}"))
    if solution.alternative is not None:
        pairs.append(("Value of the other kind of rule", number(solution.alternative)))
    return pairs
