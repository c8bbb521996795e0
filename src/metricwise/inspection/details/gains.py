"""Gains of a rule over argmax by output or class, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ...core.labels import python_labels
from ...core.losses import Loss
from ...core.schema import Schema
from ...data.probabilities import read_proba
from ...data.sources.memory import MemorySource
from ...fitting.metadata import losses_of
from ...inference.decisions import Decisions
from ...inference.judge import Judge
from ...inference.results import Comparison, Estimate
from ...metrics.aim import AveragedMetric
from ...metrics.base import Metric
from ...metrics.ratio import FBeta
from ...oracles.problem import InMemory
from ...rules.base import RuleRows
from ...rules.mixture import MixtureRule
from ...rules.weighted import WeightedRule, anonymous_rule

__all__ = ["Gains", "count_class_gains", "count_output_gains"]

FloatArray = NDArray[np.float64]
Rule = WeightedRule | MixtureRule

_MAX_PARTS = 1_000  # outputs or classes with an interval: those that change most


@dataclass(frozen=True, eq=False)
class Gains:
    """Gain of a rule over argmax in each part: output, group or class.

    Parameters
    ----------
    by : {"output", "group", "class"}
        What the parts are.
    metric : str
        Name of the metric of each part.
    names : tuple of P str
        Names of the parts.
    value, baseline, difference : ndarray of shape (P, 3)
        Estimate and ends of a 95 % interval: for the rule, for argmax, and for their difference. If the rule was fitted
        to these rows, the intervals do not account for that.
    n_parts : int
        Number of all parts: if there are very many, only those that change most are listed.
    losses : dict of str to str
        What the metric is minus of, by its name, if it is minus a loss or a cost.
    sampled : int or None
        Number of rows that were counted, if they are a sample.

    See Also
    --------
    metricwise.displays.GainsDisplay : Draw the gains.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1",
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> gains = solution.details.gains
    >>> gains.by, gains.names
    ('class', ('0', '1'))
    """

    by: str
    metric: str
    names: tuple[str, ...]
    value: FloatArray
    baseline: FloatArray
    difference: FloatArray
    n_parts: int
    losses: dict[str, str] = field(default_factory=dict)
    sampled: int | None = None

    def __len__(self) -> int:
        return len(self.names)


def count_output_gains(problem: InMemory, rule: Rule) -> Gains:
    """Count the gain in each output; the rows must be in memory and have labels."""
    schema, oracle = problem.schema, problem.oracle()
    rule_decisions, argmax_decisions = _decisions(problem, rule)
    labelled = np.asarray((problem.source.class_weights > 0).any(axis=1))
    moved = oracle.confusion_of(rule_decisions.drawn) - oracle.confusion_of(argmax_decisions.drawn)
    outputs = _most_changed(labelled, np.abs(moved).sum(axis=(1, 2)))
    comparisons = [
        Judge(problem.of_outputs(np.array([m]))).compare(
            [rule_decisions.of_outputs(slice(m, m + 1)), argmax_decisions.of_outputs(slice(m, m + 1))]
        )
        for m in outputs
    ]
    by = "group" if schema.n_groups > 1 else "output"
    names = [f"output {m}" if schema.output_names is None else str(schema.output_names[m]) for m in outputs]
    return _gains(by, problem.aim.name, names, comparisons, int(labelled.sum()), losses_of(problem))


def count_class_gains(problem: InMemory, rule: Rule) -> Gains:
    """Count the gain for each class of a single output; the rows must be in memory and have labels.

    By the recall, precision or F-measure that the metric is made of, F1 if it is made of none of these.
    """
    labels, oracle = python_labels(problem.schema.classes[0]), problem.oracle()
    both = _decisions(problem, rule)
    labelled = problem.source.class_weights[0][: len(labels)] > 0
    moved = np.abs(oracle.confusion_of(both[0].drawn)[0] - oracle.confusion_of(both[1].drawn)[0])
    classes = _most_changed(labelled, (moved.sum(axis=0) + moved.sum(axis=1))[: len(labels)])
    metric = problem.aim.metric._of_output(0)._class_metric() or FBeta(index=1)
    comparisons = [
        Judge(_against_rest(problem, j, metric)).compare([decisions.of_class(j) for decisions in both]) for j in classes
    ]
    name = metric.name if problem.allowed is None else f"{metric.name} (abstentions are misses)"
    return _gains("class", name, [str(labels[j]) for j in classes], comparisons, int(labelled.sum()))


def _decisions(problem: InMemory, rule: Rule) -> tuple[Decisions, Decisions]:
    """Return the decisions of the rule and of argmax."""
    schema, rows = problem.schema, RuleRows(problem.source.rows.proba)
    argmax_rule = anonymous_rule(Loss.argmax(schema.decision_width), schema.n_decisions)
    return Decisions.of(rule, rows), Decisions.of(argmax_rule, rows)


def _most_changed(labelled: NDArray[np.bool_], moved: FloatArray) -> list[int]:
    """Return the parts with labels, or those of them that change most if there are very many."""
    places = np.flatnonzero(labelled)
    if len(places) > _MAX_PARTS:
        places = np.sort(places[np.argsort(-moved[places], kind="stable")[:_MAX_PARTS]])
    return [int(place) for place in places]


def _against_rest(problem: InMemory, j: int, metric: Metric) -> InMemory:
    """Return the problem of class j of a single output against the rest."""
    rows = problem.source.rows
    eta = rows.proba.output(0)[:, 0]
    codes = np.where(rows.codes < 0, -1, rows.codes == j)  # type: ignore[operator]  # labelled
    binary_rows = replace(rows, proba=read_proba(eta[:, j] if eta.ndim == 2 else eta), codes=codes)
    return InMemory(MemorySource(binary_rows, Schema.of_codes([2])), AveragedMetric(metric, "micro", np.ones(1)))


def _gains(
    by: str,
    metric: str,
    names: Sequence[str],
    comparisons: Sequence[Comparison],
    n_parts: int,
    losses: Mapping[str, str] | None = None,
) -> Gains:
    def triples(estimates: Iterable[Estimate]) -> FloatArray:
        rows = [(estimate.estimate, estimate.low, estimate.high) for estimate in estimates]
        return np.array(rows, dtype=np.float64).reshape(-1, 3)

    value, baseline, difference = (
        triples(getattr(comparison, part) for comparison in comparisons) for part in ("value", "baseline", "difference")
    )
    return Gains(by, metric, tuple(names), value, baseline, difference, n_parts, dict(losses or {}))
