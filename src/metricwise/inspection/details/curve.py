"""Metrics and confusions along the rules from argmax to a given one, and beyond it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...core.losses import Loss
from ...core.schema import Schema
from ...fitting.constraints.resolve import bind_constraints
from ...fitting.metadata import losses_of
from ...goals.constraint import ConstraintSystem
from ...oracles.counts import Counts
from ...oracles.problem import Problem, mixed
from ...rules.calibration import TemperatureScaling, link_or_base
from ...rules.cut_points import CutPointRule, argmax_cuts
from ...rules.mixture import MixtureRule
from ...rules.weighted import WeightedRule
from ...solvers.sweep import threshold_loss

__all__ = ["Curve", "at_step", "count_curve", "judge_of"]

FloatArray = NDArray[np.float64]
Rule = WeightedRule | MixtureRule | CutPointRule

_N_POINTS = 101
_N_POINTS_OF_CALLS = 25  # if every value is a call of the user's function on whole rows
_MIN_POINTS = 11
_MAX_QUANTILE_ROWS = 4_096  # rows whose probabilities place half of the thresholds
_MAX_CONFUSION_NUMBERS = 500_000  # in the confusions that are kept
_MAX_DECIDED_ENTRIES = 50_000_000  # beyond these, a sample of rows is counted
_MIN_SAMPLE_ROWS = 2_000
_LAST_STEP = 2.0  # the rule is at step 1
_LOWEST_THRESHOLD = -1e-9  # every probability exceeds it
_MAX_SPREADS = 10.0  # interquartile ranges beyond the quartiles at which scores are far out
_CERTAIN = 1e37  # log-odds that stand for infinite ones are larger
_PAD = 0.01  # of the range of scores, by which an axis is longer
_MAX_DISTANCE = 6.0  # ranges from their middle at which argmax and the rule are shown where they are
_SAME_PLACE = 1e-12  # of the range of scores, within which two thresholds are one


@dataclass(frozen=True, eq=False)
class Curve:
    """The path of rules from argmax to the chosen one and beyond, with the confusion and metrics of each.

    Parameters
    ----------
    kind : {"threshold", "step"}
        Meaning of the positions. For one binary output, they are thresholds on the model's probability of class 1, or
        on its logit or score. Otherwise they are steps: argmax is at 0, the rule at 1, and larger steps go further in
        the same direction; class weights are interpolated geometrically, other losses linearly.
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
    unit : str, default="probability"
        What thresholds are of: "probability", "logit", "log-odds" or "score".

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
    unit: str = "probability"

    def __len__(self) -> int:
        return len(self.position)

    @property
    def shown_position(self) -> FloatArray:
        """The positions as they are shown: a probability that everything exceeds is 0."""
        return np.maximum(self.position, 0.0) if self.unit == "probability" else self.position

    def within(self, ends: FloatArray | None) -> tuple[float, float] | None:
        """Return a range of thresholds as it is shown; None if there is none, or if it has no end."""
        if ends is None or ends.shape != (2,) or np.isnan(ends).any():
            return None
        if self.unit != "probability":
            ends = np.clip(ends, self.position[0], self.position[-1])
        return (float(ends[0]), float(ends[1])) if np.isfinite(ends).all() else None


def count_curve(problem: Problem, rule: Rule) -> Curve | None:
    """Count the curve of a rule; None if the confusions along it are too large to be kept."""
    schema = problem.schema
    calls_function = any(aim.metric.traits.needs_integer_counts for aim in (problem.aim, *problem.record.values()))
    n_points = _N_POINTS_OF_CALLS if calls_function else _N_POINTS
    n_points = min(n_points, _MAX_CONFUSION_NUMBERS // (schema.n_outputs * schema.decision_width**2))
    if n_points < _MIN_POINTS:
        return None
    if not calls_function:
        problem = _sampled(problem, n_points)
    judge = judge_of(problem, rule)
    threshold = _threshold_of(problem, rule)
    rules: list[Rule] = []
    if threshold is None:
        half = (n_points - 1) // 2
        position, argmax, chosen = np.arange(2 * half + 1) / half * (_LAST_STEP / 2), 0, half
        rules = _rules_along(rule, position, schema)
        confusion = _confusions_of(rules, problem, judge)
    elif schema.input.is_logits:
        position, counted, (argmax, chosen) = _logits_around(threshold, problem, n_points)
        confusion = judge.confusions_above(counted)
    else:
        threshold = float(np.clip(threshold, _LOWEST_THRESHOLD, 1.0))
        position = _thresholds_around(threshold, problem, n_points)
        argmax, chosen = (int(np.searchsorted(position, value)) for value in (0.5, threshold))
        losses = [threshold_loss(np.array([value])) for value in position.tolist()]
        confusion = judge.confusions(losses, linked=False)
    aims = {problem.aim.name: problem.aim, **problem.record}
    values = {name: _values(replace(problem, aim=aim), judge, confusion, rules) for name, aim in aims.items()}
    # A rule that does not see groups pools their rows, so that gaps between them are not known along its curve.
    constraints = [limit for limit in problem.constraints if schema.n_groups > 1 or limit.group is None]
    return Curve(
        "step" if threshold is None else "threshold",
        position,
        confusion[:, :, : schema.width],
        values,
        _bounded(bind_constraints(constraints, schema, judge), confusion),
        argmax,
        chosen,
        problem.n_rows,
        losses_of(problem),
        schema.input.noun,
    )


def judge_of(problem: Problem, rule: Rule) -> Counts:
    """Return the oracle that counts rules: with labels, or without any with the recalibrated probabilities."""
    return problem.oracle("labels" if problem.labelled else "expected", rule.shared_link)


def _sampled(problem: Problem, n_points: int) -> Problem:
    """Return the problem, or that of a sample if it has very many rows."""
    size = problem.schema.n_outputs * problem.schema.decision_width * n_points
    n_rows = max(_MAX_DECIDED_ENTRIES // size, _MIN_SAMPLE_ROWS)
    if problem.n_rows <= n_rows:
        return problem
    return replace(problem.sample(n_rows, 0), constraints=problem.constraints)


def _threshold_of(problem: Problem, rule: Rule) -> float | None:
    """Return the threshold of a rule of one binary output; None for other rules."""
    if rule.is_randomized or rule.multioutput or rule.width > 2 or problem.schema.n_extra:
        return None
    single: Any = rule.flatten().rules[0] if rule.is_flat else rule
    threshold = float(single.thresholds[0])
    return None if np.isnan(threshold) else threshold


def _thresholds_around(threshold: float, problem: Problem, n_points: int) -> FloatArray:
    """Return thresholds, half of them at quantiles of the probabilities: those of rare classes are small."""
    eta = problem.source.glance(_MAX_QUANTILE_ROWS).proba.output(0)[:, 0]
    eta = np.asarray(eta if eta.ndim == 1 else eta[:, 1], dtype=np.float64)
    even = np.linspace(0, 1, max(n_points - 2, 4) // 2)
    dense = np.clip(np.quantile(eta, even), 0.0, 1.0)
    return np.unique(np.concatenate([[_LOWEST_THRESHOLD, 0.5, threshold], even, dense]))


def _logits_around(threshold: float, problem: Problem, n_points: int) -> tuple[FloatArray, FloatArray, tuple[int, int]]:
    """Return thresholds on log-odds or scores over the range of the rows, as they are shown and as they are counted.

    Half of them are at quantiles. The last result are the places of argmax and of a threshold: what is far from all
    rows decides as the end of the range does, and is shown there.
    """
    proba = problem.source.glance(_MAX_QUANTILE_ROWS).proba
    assert proba.link is not None
    argmax = float(proba.link.boundary[0]) + 0.0  # never -0
    number = _usual_numbers(proba.positive_column(0), argmax)
    low, span = float(number.min()), float(np.ptp(number)) or 1.0
    ends = low - _PAD * span, low + (1 + _PAD) * span
    threshold = argmax if abs(threshold - argmax) <= _SAME_PLACE * span else threshold
    shown = [
        float(np.clip(value, *ends)) if abs(value - low - span / 2) > _MAX_DISTANCE * span else value
        for value in (argmax, threshold)
    ]
    n_even = max(n_points - 2, 4) // 2
    dense = np.quantile(number, np.linspace(0, 1, n_even))
    position = np.unique(np.concatenate([shown, np.linspace(*ends, n_even), dense]))
    first, second = (int(place) for place in np.searchsorted(position, shown))
    counted = position.copy()
    counted[[first, second]] = argmax, threshold
    return position, counted, (first, second)


def _usual_numbers(number: FloatArray, otherwise: float) -> FloatArray:
    """Return the numbers that are not far out; if there are none, another one."""
    number = number[np.abs(number) < _CERTAIN]
    if len(number) == 0:
        return np.array([otherwise])
    first, last = np.quantile(number, [0.25, 0.75])
    reach = _MAX_SPREADS * (last - first)
    return number[(number >= first - reach) & (number <= last + reach)] if reach > 0 else number


def _confusions_of(rules: list[Rule], problem: Problem, judge: Counts) -> FloatArray:
    """Count rules along steps, of which the first is argmax."""
    if not rules[0].is_flat:
        return np.stack([problem.confusion_of_rule(rule, judge) for rule in rules])
    mixtures = [rule.flatten() for rule in rules]
    if judge.link is None:
        tensors = judge.confusions([loss for mixture in mixtures for loss in mixture.losses])
        parts = np.split(tensors, len(mixtures))
        return np.stack([mixed(part, mixture.shares) for part, mixture in zip(parts, mixtures, strict=True)])
    along = [judge.confusions([Loss.argmax(problem.schema.decision_width)], linked=False)[0]]
    for mixture in mixtures[1:]:
        # With labels, the link changes decisions only, and every rule has its own.
        oracle = problem.oracle("labels", mixture.link) if problem.labelled else judge
        along.append(mixed(oracle.confusions(mixture.losses), mixture.shares))
    return np.stack(along)


def _values(problem: Problem, judge: Counts, confusion: FloatArray, rules: list[Rule]) -> FloatArray:
    """Return the aim of a problem along a curve, as (T,)."""
    if rules and problem.aim.average == "instance" and problem.labelled:  # not a function of confusions
        return np.array([problem.value_of_rule(rule) for rule in rules])
    objective = problem.objective(judge)
    return np.asarray([objective.value(tensor) for tensor in confusion])


def _bounded(limits: ConstraintSystem, confusion: FloatArray) -> dict[str, FloatArray]:
    """Return the bounded metrics at confusion tensors, (T,) each; the worst of those of a constraint on several."""
    by_constraint: dict[int, list[tuple[FloatArray, FloatArray]]] = {}
    names: dict[int, str] = {}
    for limit in limits.constraints:
        value, constraint = np.asarray(limit.value(confusion)), limit.constraint
        slack = np.minimum(value - constraint.low, constraint.high - value)
        by_constraint.setdefault(constraint.promise, []).append((slack, value))
        names[constraint.promise] = constraint.name
    out = {}
    for key, pairs in by_constraint.items():
        slacks, values = (np.stack(column) for column in zip(*pairs, strict=True))
        out[names[key]] = np.take_along_axis(values, slacks.argmin(axis=0)[None], axis=0)[0]
    return out


def _rules_along(rule: Any, steps: FloatArray, schema: Schema) -> list[Rule]:
    """Return a rule at steps (T,) from argmax; cut points of a score move on straight lines."""
    if rule.is_flat:
        base = link_or_base(None, schema)
        return [rule.map_rules(partial(at_step, step=step, base=base)) for step in steps.tolist()]
    start, cuts = argmax_cuts(schema), rule.cuts
    moving = np.isfinite(cuts) & np.isfinite(start)
    first, last = np.where(moving, start, 0.0), np.where(moving, cuts, 0.0)
    rules: list[Rule] = []
    for step in steps.tolist():
        moved = np.where(moving, first + step * (last - first), start if step == 0 else cuts)
        rules.append(replace(rule, cuts=np.maximum.accumulate(moved, axis=1)))
    return rules


def at_step(rule: WeightedRule, step: float, base: TemperatureScaling | None = None) -> WeightedRule:
    """Return the rule at a step from argmax, at 0, to a rule, at 1, and beyond in the same direction.

    Class weights and temperatures are interpolated geometrically, other losses and biases of the link linearly. `base`
    is the map of logits whose most probable class is argmax.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.inspection.details.curve import at_step
    >>> rule = mw.WeightedRule.from_weights([1.0, 4.0, 9.0])
    >>> at_step(rule, 0.5).class_weight
    array([1., 2., 3.])
    >>> at_step(rule, 1) == rule
    True
    """
    if step == 1:
        return rule
    if step == 0:
        return replace(rule, loss=Loss.argmax(rule.schema.decision_width), link=base)
    return replace(rule, loss=_loss_at(rule.loss, step), link=rule.link and _link_at(rule.link, step, base))


def _link_at(link: TemperatureScaling, step: float, base: TemperatureScaling | None) -> TemperatureScaling:
    """Return the link at a step from what argmax is taken of to a link, at 1."""
    if base is None:
        return TemperatureScaling(link.temperature**step, link.bias * step, link.floor)
    temperature = base.temperature * (link.temperature / base.temperature) ** step
    return TemperatureScaling(temperature, base.bias + step * (link.bias - base.bias), link.floor)


def _loss_at(loss: Loss, step: float) -> Loss:
    if loss.is_diagonal:
        diagonal, offset = loss.arrays
        if not offset.any() and (diagonal < 0).all():
            return Loss(diagonal=-((-diagonal) ** step), offset=offset)
    full = loss.tensor()
    # A loss is determined up to its scale and up to a constant in each row.
    full = full - full.mean(axis=2, keepdims=True)
    k = full.shape[-1]
    argmax_loss = np.full((k, k), 1 / k) - np.eye(k)
    size = np.linalg.norm(full, axis=(1, 2), keepdims=True) / np.linalg.norm(argmax_loss)
    return Loss.from_tensor((1 - step) * size * argmax_loss + step * full)
