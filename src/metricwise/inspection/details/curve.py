"""What metrics and confusions are along rules from plain argmax to the one found, and beyond.

Owns which rules those are and how they are counted. Must not know how a curve is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ...core.losses import Loss
from ...fitting.constraints.resolve import bind_constraints
from ...fitting.metadata import losses_of
from ...goals.constraint import ConstraintSystem
from ...oracles import Counts
from ...oracles.problem import Problem, mixed
from ...rules import MixtureRule, WeightedRule
from ...solvers.sweep import threshold_loss
from .rules_along import at_step

__all__ = ["Curve", "count_curve", "judge_of"]

FloatArray = NDArray[np.float64]
Rule = WeightedRule | MixtureRule

_POINTS = 101
_FEW = 25  # points where every value is a call of the user's function on whole rows
_FEWEST = 11  # points that still make a curve
_GLANCE = 4_096  # rows that say where probabilities lie
_NUMBERS = 500_000  # in the confusions that are kept
_ENTRIES = 50_000_000  # that are decided: of more rows, a sample
_LEAST_ROWS = 2_000
_FURTHEST = 2.0  # steps, where the rule is at 1
_BELOW = -1e-9  # a threshold that every probability exceeds


@dataclass(frozen=True, eq=False)
class Curve:
    """The path of rules from plain argmax to the one found and beyond, with the confusion and metrics of each.

    Parameters
    ----------
    kind : {"threshold", "step"}
        Meaning of the positions. For one binary output, they are thresholds on the model's probability of class 1.
        Otherwise they are steps: argmax is at 0, the rule at 1, and larger steps go further in the same direction;
        class weights are interpolated geometrically, other losses linearly.
    position : ndarray of shape (T,)
        Positions in ascending order.
    confusion : ndarray of shape (T, M, K, K)
        Confusion tensors, counted with labels if there are any, otherwise expected; (T, M, K, K + 1) if the rule may
        abstain.
    values : dict of str to ndarray of shape (T,)
        The metric that was maximised, and those that were recorded.
    bounded : dict of str to ndarray of shape (T,)
        The metrics that constraints bound, by the names of the constraints.
    plain, chosen : int
        Positions of argmax and of the rule.
    n_rows : int
        Number of rows that were counted; a sample if there are very many.
    losses : dict of str to str
        Which of the values are minus a loss or a cost, and what that is called.

    See Also
    --------
    metricwise.displays.MetricCurveDisplay : Draw the curve.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1",
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> curve = solution.details.curve
    >>> curve.kind, curve.n_rows
    ('threshold', 4)
    """

    kind: Literal["threshold", "step"]
    position: FloatArray
    confusion: FloatArray
    values: dict[str, FloatArray]
    bounded: dict[str, FloatArray]
    plain: int
    chosen: int
    n_rows: int
    losses: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.position)


def count_curve(problem: Problem, rule: Rule) -> Curve | None:
    """Count the curve of a rule; None where confusions are too large to be kept along one.

    Parameters
    ----------
    problem : Problem
        With the aim, what is recorded, and constraints.
    rule : WeightedRule or MixtureRule
        In the user's labels.

    Returns
    -------
    Curve or None
    """
    schema = problem.schema
    whole = any(aim.metric.whole_rows for aim in (problem.aim, *problem.record.values()))
    n_points = min(_FEW if whole else _POINTS, _NUMBERS // (schema.n_outputs * schema.decision_width**2))
    if n_points < _FEWEST:
        return None
    if not whole:
        problem = _few_enough(problem, n_points)
    family = _Thresholds.of(problem, rule, n_points) or _Steps.of(problem, rule, n_points)
    judge = judge_of(problem, rule)
    confusion = family.confusions(problem, judge)
    aims = {problem.aim.name: problem.aim, **problem.record}
    values = {name: family.values(replace(problem, aim=aim), judge, confusion) for name, aim in aims.items()}
    # A rule that must not see groups has their rows pooled: gaps between them are not to be had along its curve.
    constraints = [one for one in problem.constraints if schema.n_groups > 1 or one.group is None]
    bounded = _bounded(bind_constraints(constraints, schema, judge), confusion)
    confusion = confusion[:, :, : schema.width]
    return Curve(
        family.kind,
        family.position,
        confusion,
        values,
        bounded,
        family.plain,
        family.chosen,
        problem.n_rows,
        losses_of(problem),
    )


def _bounded(limits: ConstraintSystem, confusion: FloatArray) -> dict[str, FloatArray]:
    """Return what constraints are about at confusion tensors, (T,) each; of a promise that is several, the worst."""
    found: dict[int, list[tuple[FloatArray, FloatArray]]] = {}
    names: dict[int, str] = {}
    for one in limits.constraints:
        value, given = np.asarray(one.value(confusion)), one.constraint
        slack = np.minimum(value - given.low, given.high - value)
        found.setdefault(given.promise, []).append((slack, value))
        names[given.promise] = given.name
    out = {}
    for promise, pairs in found.items():
        slacks, values = (np.stack(own) for own in zip(*pairs, strict=True))
        out[names[promise]] = np.take_along_axis(values, slacks.argmin(axis=0)[None], axis=0)[0]
    return out


def judge_of(problem: Problem, rule: Rule) -> Counts:
    """Return the oracle that rules are judged by, behind the link of one: labels where there are any.

    Without labels the recalibrated probabilities are what is believed, of every rule's decisions.
    """
    return problem.oracle("labels" if problem.labelled else "expected", rule.flatten().link)


def _values_at(problem: Problem, judge: Counts, confusion: FloatArray) -> FloatArray:
    """Return the aim of a problem at confusion tensors (T, M, K, K), as (T,)."""
    objective = problem.objective(judge)
    return np.asarray([objective.value(one) for one in confusion])


def _few_enough(problem: Problem, n_points: int) -> Problem:
    """Return the problem, or that of a sample of its rows if it has very many."""
    size = problem.schema.n_outputs * problem.schema.decision_width * n_points
    n_rows = max(_ENTRIES // size, _LEAST_ROWS)
    if problem.n_rows <= n_rows:
        return problem
    return replace(problem.sample(n_rows, 0), constraints=problem.constraints)


@dataclass(frozen=True, eq=False)
class _Thresholds:
    """Thresholds on the probability of class 1 of one binary output."""

    position: FloatArray
    plain: int
    chosen: int
    kind: ClassVar[Literal["threshold"]] = "threshold"

    @classmethod
    def of(cls, problem: Problem, rule: Rule, n_points: int) -> _Thresholds | None:
        """Return them for a rule that has one; None for other rules."""
        if rule.is_randomized or rule.multioutput or rule.width > 2 or problem.schema.n_extra:
            return None
        chosen = float(rule.flatten().rules[0].thresholds[0])
        if np.isnan(chosen):
            return None
        chosen = float(np.clip(chosen, _BELOW, 1.0))
        # Half of the points where probabilities lie, half evenly: thresholds of rare classes are small.
        rows = problem.source.glance(_GLANCE)
        seen = rows.proba.output(0)[:, 0]
        seen = np.asarray(seen if seen.ndim == 1 else seen[:, 1], dtype=np.float64)
        even = np.linspace(0, 1, max(n_points - 2, 4) // 2)
        dense = np.quantile(seen, np.linspace(0, 1, max(n_points - 2, 4) // 2))
        position = np.unique(np.concatenate([[_BELOW, 0.5, chosen], even, np.clip(dense, 0.0, 1.0)]))
        return cls(position, int(np.searchsorted(position, 0.5)), int(np.searchsorted(position, chosen)))

    def confusions(self, problem: Problem, judge: Counts) -> FloatArray:
        losses = [threshold_loss(np.array([t])) for t in self.position.tolist()]
        return judge.confusions(losses, linked=False)

    def values(self, problem: Problem, judge: Counts, confusion: FloatArray) -> FloatArray:
        return _values_at(problem, judge, confusion)


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps from argmax to a rule, and beyond."""

    rule: Rule
    position: FloatArray
    plain: int
    chosen: int
    kind: ClassVar[Literal["step"]] = "step"

    @classmethod
    def of(cls, problem: Problem, rule: Rule, n_points: int) -> _Steps:
        half = (n_points - 1) // 2
        return cls(rule, np.arange(2 * half + 1) / half * (_FURTHEST / 2), 0, half)

    def _rules(self) -> Iterator[Rule]:
        for step in self.position.tolist():
            yield self.rule.map_rules(partial(at_step, step=step))

    def confusions(self, problem: Problem, judge: Counts) -> FloatArray:
        each = [rule.flatten() for rule in self._rules()]
        if judge.link is None:
            tensors = judge.confusions([one.loss for rules, _ in each for one in rules])
            parts = np.split(tensors, len(each))
            return np.stack([mixed(part, shares) for part, (_, shares) in zip(parts, each, strict=True)])
        found = []
        for rules, shares in each:
            # With labels, who decides behind which link changes nothing of what is counted.
            oracle = problem.oracle("labels", rules[0].link) if problem.labelled else judge
            found.append(mixed(oracle.confusions([one.loss for one in rules]), shares))
        found[self.plain] = judge.confusions([Loss.argmax(problem.schema.decision_width)], linked=False)[0]
        return np.stack(found)

    def values(self, problem: Problem, judge: Counts, confusion: FloatArray) -> FloatArray:
        if problem.aim.average == "instance" and problem.labelled:  # row by row, which is no function of confusions
            return np.array([problem.value_of_rule(rule) for rule in self._rules()])
        return _values_at(problem, judge, confusion)
