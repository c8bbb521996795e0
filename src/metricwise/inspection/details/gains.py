"""What a rule adds to plain argmax, output by output or class by class, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.losses import Loss
from ...data import Schema, python_labels, read_proba
from ...data.sources import MemorySource
from ...fitting.metadata import losses_of
from ...inference.decisions import Decisions
from ...inference.judge import Judge
from ...inference.results import Comparison
from ...metrics import FBeta
from ...metrics.aim import Aim
from ...metrics.base import Metric
from ...oracles.problem import InMemory
from ...rules import MixtureRule, RuleRows, WeightedRule, anonymous_rule

__all__ = ["Gains", "count_class_gains", "count_output_gains"]

FloatArray = NDArray[np.float64]

_MOST = 1_000  # outputs or classes that get an interval: those that change most


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


def count_output_gains(problem: InMemory, rule: WeightedRule | MixtureRule) -> Gains:
    """Value each output by itself; the rows must be in memory and have labels."""
    schema = problem.schema
    both = _decided(problem, rule)
    oracle = problem.oracle()
    seen = (problem.source.class_weights > 0).any(axis=1)
    # Cheap, and says which matter most.
    moved = np.abs(oracle.confusion_of(both[0].drawn) - oracle.confusion_of(both[1].drawn)).sum(axis=(1, 2))
    outputs = _most(np.flatnonzero(seen), moved)
    found = []
    for m in outputs:
        own = [decisions.of_outputs(slice(m, m + 1)) for decisions in both]
        found.append(Judge(problem.of_outputs(np.array([m]))).compare(own))
    by = "group" if schema.n_groups > 1 else "output"
    packed = _packed(by, problem.aim.name, [output_name(schema, m) for m in outputs], found, int(seen.sum()))
    return replace(packed, losses=losses_of(problem))


def count_class_gains(problem: InMemory, rule: WeightedRule | MixtureRule) -> Gains:
    """Value each class of a single output against the rest; the rows must be in memory and have labels.

    By what the metric is made of, class by class: recalls, precisions or F-measures; F1 where it is made of neither.
    """
    labels = python_labels(problem.schema.classes[0])
    both = _decided(problem, rule)
    oracle = problem.oracle()
    C, plain = (oracle.confusion_of(one.drawn)[0] for one in both)
    k, seen = len(labels), problem.source.class_weights[0] > 0
    moved = np.abs(C - plain).sum(axis=0)[:k] + np.abs(C - plain).sum(axis=1)[:k]
    classes = _most(np.flatnonzero(seen[:k]), moved)
    metric = problem.aim.metric.of_output(0).class_metric() or FBeta(index=1)
    found = [Judge(_against_rest(problem, j, metric)).compare([own.of_class(j) for own in both]) for j in classes]
    name = metric.name if problem.allowed is None else f"{metric.name} (abstentions are misses)"
    return _packed("class", name, [str(labels[j]) for j in classes], found, int(seen.sum()))


def _against_rest(problem: InMemory, j: int, metric: Metric) -> InMemory:
    """Return the problem of class j of a single output against the rest, two classes only."""
    rows = problem.source.rows
    eta = rows.proba.output(0)[:, 0]
    codes = np.where(rows.codes < 0, -1, rows.codes == j)  # type: ignore[operator]  # labelled
    own = replace(rows, proba=read_proba(eta[:, j] if eta.ndim == 2 else eta), codes=codes)
    return InMemory(MemorySource(own, Schema.of_codes([2])), Aim(metric, "micro", np.ones(1)))


def output_name(schema: Schema, m: int) -> str:
    """Return what an output is called."""
    return f"output {m}" if schema.output_names is None else str(schema.output_names[m])


def _most(places: NDArray[np.intp], moved: FloatArray) -> list[int]:
    if len(places) > _MOST:
        places = np.sort(places[np.argsort(-moved[places], kind="stable")[:_MOST]])
    return [int(place) for place in places]


def _decided(problem: InMemory, rule: WeightedRule | MixtureRule) -> list[Decisions]:
    schema, proba = problem.schema, problem.source.rows.proba
    plain = anonymous_rule(Loss.argmax(schema.decision_width), schema.n_decisions)
    return [Decisions.of(one, RuleRows(proba)) for one in (rule, plain)]


def _packed(by: str, metric: str, names: Sequence[str], found: Sequence[Comparison], n_parts: int) -> Gains:
    def column(pick: Any) -> FloatArray:
        triples = [(one.estimate, one.low, one.high) for one in map(pick, found)]
        return np.array(triples, dtype=np.float64).reshape(len(found), 3)

    return Gains(
        by,
        metric,
        tuple(names),
        column(lambda one: one.value),
        column(lambda one: one.baseline),
        column(lambda one: one.difference),
        n_parts,
    )
