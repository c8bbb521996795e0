"""``expect``: metrics of a rule on rows without labels, with intervals, under two explanations of what has moved.

Must not fit rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InvalidParameter, InvalidType, argument, entry_point, mention, shown
from ..core.labels import python_labels
from ..data.keeping import keeping_rows
from ..data.row_spec import RowSpec
from ..data.sources.base import SourceBase
from ..data.weights import read_output_weight
from ..evaluation.arguments import (
    ReadRows,
    allowed_for,
    own_average,
    own_metric,
    read_judged,
    read_rule,
)
from ..goals.constraint import Constraint
from ..goals.constraint_text import read_constraints
from ..goals.for_outputs import MetricSpec
from ..goals.judged import positive_of
from ..goals.spec import GoalSpec
from ..inference.results import Estimate
from ..metrics.aim import AveragedMetric
from ..oracles.problem import Problem
from ..rules.base import PARTITIONS, Rule
from ..rules.reading import says_single
from .drawn_confusions import DrawnConfusions, draw_confusions
from .shares import ShareEstimate, read_unlabelled, shares_of_rows

__all__ = ["ExpectedValue", "Expectation", "expect"]

FloatArray = NDArray[np.float64]

_MIN_ROWS = (
    300  # without labels, or with: with fewer the intervals of the benchmark held in 91 % of draws instead of 95 %
)
_UNKNOWABLE = (
    "Without labels it cannot be seen whether the relation of probabilities and labels has changed: the intervals "
    "assume that it has not."
)


@dataclass(frozen=True)
class ExpectedValue(Estimate):
    """A metric on rows without labels, under both explanations.

    Parameters
    ----------
    estimate : float
        Mid-point of the interval, which may lie outside both estimates.
    low, high : float
        Hull of the 95 % intervals of both explanations.
    if_shares_moved : Estimate
        If the shares of the classes have moved, and the rows of each class look as before.
    if_rows_moved : Estimate
        If other rows are drawn, and the labels of equal rows are as before.

    See Also
    --------
    metricwise.expect : Returns one for every metric.

    Examples
    --------
    >>> from metricwise.inference import Estimate
    >>> from metricwise.monitoring.expectation import ExpectedValue
    >>> value = ExpectedValue.of(Estimate(0.6, 0.5, 0.7), Estimate(0.5, 0.4, 0.6))
    >>> value.low, value.high, round(value.estimate, 2)
    (0.4, 0.7, 0.55)
    """

    if_shares_moved: Estimate
    if_rows_moved: Estimate

    @classmethod
    def of(cls, if_shares_moved: Estimate, if_rows_moved: Estimate) -> ExpectedValue:
        """Return the hull of two estimates."""
        low = min(if_shares_moved.low, if_rows_moved.low)
        high = max(if_shares_moved.high, if_rows_moved.high)
        return cls((low + high) / 2, low, high, if_shares_moved, if_rows_moved)

    @property
    def disagree(self) -> bool:
        """Whether neither interval contains the other estimate."""
        first, second = self.if_shares_moved, self.if_rows_moved
        return not (first.low <= second.estimate <= first.high or second.low <= first.estimate <= second.high)

    def to_dict(self) -> dict[str, float]:
        """Return the numbers by name."""
        numbers = {"estimate": self.estimate, "low": self.low, "high": self.high}
        for name in ("if_shares_moved", "if_rows_moved"):
            explained = getattr(self, name)
            numbers |= {name: explained.estimate, f"{name}_low": explained.low, f"{name}_high": explained.high}
        return numbers


@dataclass(frozen=True, eq=False, repr=False)
class Expectation(Mapping[str, ExpectedValue]):
    """Metrics of a rule on rows without labels: a mapping of names to expected values, which prints as a table.

    Parameters
    ----------
    values_ : dict of str to ExpectedValue
        By name of the metric.
    constraints : dict of str to ExpectedValue
        What the constraints of the rule bound, by constraint as it was written; never a renewed promise.
    shares : ShareEstimate
        Class shares of the rows.
    n_rows, n_reference : int
        Number of rows without labels, and of reference rows with labels.
    notes : tuple of str
        What cannot be known, and what should be.

    See Also
    --------
    metricwise.expect : Returns it.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 4000)
    >>> y = (rng.random(4000) < p).astype(int)
    >>> rule = mw.WeightedRule.from_thresholds(0.35)
    >>> expectation = mw.expect(rule, p[2000:], ["f1", "recall"], reference=(p[:2000], y[:2000]))
    >>> sorted(expectation.to_dict()["f1"])[:3]
    ['estimate', 'high', 'if_rows_moved']
    """

    values_: dict[str, ExpectedValue]
    constraints: dict[str, ExpectedValue]
    shares: ShareEstimate
    n_rows: int
    n_reference: int
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ExpectedValue:
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return a dict of numbers per metric, for ``pandas.DataFrame.from_dict(..., orient="index")``."""
        return {name: value.to_dict() for name, value in {**self.values_, **self.constraints}.items()}

    def __repr__(self) -> str:
        head = ["metric", "expected", "if shares moved", "if rows moved"]
        table = [head]
        for name, value in {**self.values_, **self.constraints}.items():
            table.append([name, _interval(value), _interval(value.if_shares_moved), _interval(value.if_rows_moved)])
        widths = [max(len(row[c]) for row in table) for c in range(len(head))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
        title = f"{self.n_rows} rows without labels, {self.n_reference} with, 95 % intervals:"
        return "\n".join([title, *lines, *self.notes])


def _interval(estimate: Estimate) -> str:
    # Adding 0 turns -0 into 0.
    return f"{estimate.estimate + 0.0:.4f} [{estimate.low + 0.0:.4f}, {estimate.high + 0.0:.4f}]"


@entry_point("expect")
@keeping_rows
def expect(
    rule: Any,
    proba: Any,
    metrics: MetricSpec | Iterable[MetricSpec] | Mapping[str, MetricSpec] | None = None,
    *,
    reference: Any = None,
    average: str | None = None,
    output_weight: ArrayLike | None = None,
    order: Any = None,
    pos_label: Any = None,
    abstain: Any = None,
    random_state: int | None = None,
) -> Expectation:
    """Estimate metrics of a rule on rows without labels, with intervals.

    The expected confusion behind a calibration of the reference rows is corrected by what the labels of these say
    beyond their own expectation. This is done twice: as if the shares of the classes had moved, and as if other rows
    had. Nothing in rows without labels tells the two apart, so that the interval is the hull of both.

    Parameters
    ----------
    rule : rule, Solution, path, str or dict
        As in :func:`evaluate`. Rules by sensitive group and for costs per row are refused.
    proba : array-like, Table or Dask collection
        Class probabilities, logits or scores of the rows without labels, as ``rule.predict`` takes them. Class shares
        of all rows of a :class:`metricwise.Table` or a Dask collection are estimated pass by pass.
    metrics : str, Metric, callable, list or dict, optional
        As in :func:`evaluate`. None: the metric that the rule was optimised for.
    reference : tuple (proba, y) or (proba, y, sample_weight)
        Rows with labels, from before: preferably rows that neither the model nor the rule was fitted to. May be left
        out for a Solution, whose own rows are then used; the rule was chosen on them, which makes its values slightly
        too good, and a note says so.
    average, output_weight, order, pos_label, abstain
        As in :func:`evaluate`.
    random_state : int, optional
        Seed of the draws; None means 0, so that equal calls agree.

    Returns
    -------
    Expectation
        A mapping of metric names to :class:`~metricwise.monitoring.expectation.ExpectedValue` objects.

    See Also
    --------
    evaluate : The same for rows with labels, which go first where they can be had.
    estimate_shares : Class shares of rows without labels.
    watch : Watch constraints over time, as labels come in.

    Notes
    -----
    Intervals are those of the value on these very rows. 64 times, the reference rows are drawn again, and with them the
    calibration, the correction and the shares; the rows without labels, for the shares; and labels of these from their
    probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 4000)
    >>> y = (rng.random(4000) < p).astype(int)
    >>> rule = mw.WeightedRule.from_thresholds(0.35)
    >>> expected = mw.expect(rule, p[2000:], "f1", reference=(p[:2000], y[:2000]))["f1"]
    >>> true = mw.evaluate(rule, p[2000:], y[2000:], "f1")["f1"].value.estimate
    >>> expected.low < true < expected.high
    True
    """
    read = read_rule(rule, inputs=("cost", *PARTITIONS))
    _check_kind(read)
    goal = _goal_of(read, metrics, average, output_weight, order, pos_label)
    problem, aims = _read_reference(rule, read, reference, goal, abstain)
    rows = read_unlabelled(read, proba, None if says_single(read.metadata, read.schema.classes) else pos_label)
    for name, aim in aims.items():
        _check_aim(name, aim)
    calibration = problem.calibration
    shares = shares_of_rows(read, rows, calibration)
    if_moved = shares_of_rows(read, rows, calibration, level=1.0)  # what the first explanation supposes, untested
    table = np.atleast_2d(if_moved.estimate)
    drawn = draw_confusions(read, rows, problem.source, calibration, table, _read_seed(random_state))
    values = {name: _value_of_aim(aim, drawn, problem) for name, aim in aims.items()}
    bounded = {constraint.name: constraint for constraint in _constraints_of(read, problem)}
    constraints = {name: _value_of_constraint(constraint, drawn, problem) for name, constraint in bounded.items()}
    notes = [_UNKNOWABLE, *_notes(read, problem, rows.n_rows, values, reference is None)]
    notes += [_constraint_note(constraint, constraints[name]) for name, constraint in bounded.items()]
    return Expectation(values, constraints, shares, rows.n_rows, _n_labelled(problem), tuple(notes))


# ----------------------------------------------------------------------------------------------------------- arguments


def _check_kind(rule: Rule) -> None:
    """Refuse rules that need more of a row than its probabilities."""
    if rule.needs:
        needs = " and ".join(sorted(rule.needs))
        raise InvalidType(
            "rule",
            f"decide rows by their probabilities alone, but a {type(rule).__name__} needs their {needs}",
            remedy="evaluate it on rows with labels, with metricwise.evaluate",
        )


def _goal_of(rule: Rule, metrics: Any, average: Any, output_weight: Any, order: Any, pos_label: Any) -> GoalSpec:
    """Return what is asked for; by default the metric of the rule."""
    if metrics is None:
        metrics, average = own_metric(rule), own_average(rule) if average is None else average
        pos_label = rule.metadata.pos_label if pos_label is None else pos_label
    return GoalSpec(metrics, average, pos_label, output_weight, order=order)


def _read_reference(
    given_rule: Any, rule: Rule, reference: Any, goal: GoalSpec, abstain: Any
) -> tuple[Problem, dict[str, AveragedMetric]]:
    """Read the rows with labels, and what the rule is judged by."""
    allowed = allowed_for(abstain, rule)
    if reference is None:
        source = _rows_of_solution(given_rule)
        weight = read_output_weight(goal.output_weight, source.schema.n_outputs)
        pos_label, kept = positive_of(rule, source.schema, goal.pos_label)
        aims = ReadRows(source, weight).aims(replace(goal, pos_label=pos_label), strict=not kept, allowed=allowed)
    else:
        if not isinstance(reference, (tuple, list)) or len(reference) not in (2, 3):
            raise InvalidType("reference", "be a tuple (proba, y) or (proba, y, sample_weight)", shown(reference))
        proba, y, *weight_of_rows = reference
        weights = weight_of_rows[0] if weight_of_rows else None
        rows = RowSpec(proba, y, weights, order=goal.order, pos_label=goal.pos_label, input=None)
        try:
            source, aims = read_judged(rule, rows, goal, allowed=allowed)
        except (InvalidParameter, InvalidType) as error:
            if error.parameter not in ("proba", "y", "sample_weight"):
                raise
            raise error.within(before="reference = (proba, y): ") from None
    _check_classes(rule, source)
    return Problem(source, next(iter(aims.values()))), aims


def _check_classes(rule: Rule, source: SourceBase) -> None:
    """Refuse reference rows that lack an output, or a class of a single output that the rule was fitted to."""
    unlabelled = np.flatnonzero(source.class_rows.sum(axis=1) == 0)
    if len(unlabelled):
        raise InvalidParameter("reference", "have labels for every output", f"none for output {unlabelled[0]}")
    shown_classes = source.class_rows[0, : rule.width] > 0
    fitted = (
        [True] * rule.width if rule.metadata.class_counts is None else [n > 0 for n in rule.metadata.class_counts[0]]
    )
    missing = [
        label
        for label, here, there in zip(python_labels(rule.classes[0]), shown_classes, fitted, strict=False)
        if there and not here
    ]
    if rule.n_outputs == 1 and missing:
        raise InvalidParameter(
            "reference",
            "have labelled rows of every class, without which nothing is known of it",
            f"no row of {', '.join(map(shown, missing))}",
            "pass more labelled rows",
        )


def _rows_of_solution(solution: Any) -> SourceBase:
    """Return the rows that a solution was fitted to."""
    source: SourceBase | None = getattr(getattr(solution, "problem", None), "source", None)
    if source is None or not source.labelled:
        raise InvalidParameter(
            "reference",
            "be a tuple (proba, y) of rows with labels, unless a Solution is passed that was fitted to labelled rows",
            "None",
            f"pass {argument('reference')}, preferably rows that the rule was not fitted to",
        )
    return source


def _check_aim(name: str, aim: AveragedMetric) -> None:
    """Refuse metrics that are no function of the confusion."""
    if aim.average == "instance":
        raise InvalidParameter(
            "average",
            "be 'micro' or 'macro', because the instance-average is no function of the confusion",
            f"'instance' for {name}",
        )
    if aim.metric.traits.needs_integer_counts:
        raise InvalidParameter(
            "metrics",
            "be functions of the confusion",
            f"{name}, which can only be evaluated on whole rows",
            f"add a parameter {mention('sample_weight')} to the function",
        )


def _read_seed(random_state: Any) -> int:
    if random_state is None:
        return 0
    if isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer)) or random_state < 0:
        raise InvalidParameter("random_state", "be None or a non-negative integer", shown(random_state))
    return int(random_state)


# -------------------------------------------------------------------------------------------------------------- values


def _value_of_aim(aim: AveragedMetric, drawn: DrawnConfusions, problem: Problem) -> ExpectedValue:
    """Return what a metric is expected to be."""
    schema = problem.schema
    weight = np.full(schema.n_outputs, float(problem.n_rows))
    priors = drawn.if_rows_moved[0].sum(axis=2)
    objective = aim.bind(priors, weight, schema.n_decisions, schema.classes)

    def values(tensors: FloatArray) -> FloatArray:
        return objective.totals(objective.values_at_own_priors(objective.grouping.pool_each(tensors)))

    return ExpectedValue.of(*drawn.estimates(values, aim.metric.range))


def _constraints_of(rule: Rule, problem: Problem) -> list[Constraint]:
    """Return the constraints that a rule was fitted for, but for those about sensitive groups."""
    metadata = rule.metadata
    if not metadata.subject_to:
        return []
    about_all = [spec for spec in read_constraints(list(metadata.subject_to)) if spec.over is None]
    if not about_all:
        return []
    goal = GoalSpec("accuracy", "micro", metadata.pos_label, subject_to=about_all, abstain=_abstain(rule))
    constraints = goal.read(problem.schema if rule.abstain_label is None else rule.schema).constraints
    return [constraint for constraint in constraints if not constraint.near_prior]


def _abstain(rule: Rule) -> Any:
    return None if rule.abstain_label is None else (rule.metadata.abstain or True)


def _value_of_constraint(constraint: Constraint, drawn: DrawnConfusions, problem: Problem) -> ExpectedValue:
    """Return what the metric of a constraint is expected to be; outputs that are pooled count alike."""
    schema = problem.schema
    outputs = np.arange(schema.n_outputs) if constraint.output is None else np.array([constraint.output])
    k, labels = int(schema.n_decisions[outputs[0]]), schema.classes[outputs[0]].tolist()

    def values(tensors: FloatArray) -> FloatArray:
        pooled = tensors[:, outputs, :k, :k].mean(axis=1)
        return np.asarray(constraint.metric.bind(pooled.sum(axis=2), labels).value(pooled))

    return ExpectedValue.of(*drawn.estimates(values, constraint.metric.range))


# --------------------------------------------------------------------------------------------------------------- notes


def _notes(
    rule: Rule, problem: Problem, n_rows: int, values: Mapping[str, ExpectedValue], own_rows: bool
) -> Iterator[str]:
    """Say what cannot be known."""
    if n_rows < _MIN_ROWS or _n_labelled(problem) < _MIN_ROWS:
        few = "without labels" if n_rows < _MIN_ROWS else "with labels"
        yield f"There are fewer than {_MIN_ROWS} rows {few}: the intervals may be too short."
    if own_rows or _was_fitted_to(rule, problem):
        yield "The rule was fitted to the reference rows, so that its values are slightly too good: pass other rows."
    apart = [name for name, value in values.items() if value.disagree]
    if apart:
        yield (
            f"The two explanations disagree about {', '.join(apart)}: the labels of some hundred rows would say which "
            "of them is right."
        )


def _n_labelled(problem: Problem) -> int:
    """Return the number of rows with a label."""
    return int(problem.source.reduce(_count_labelled))


def _count_labelled(rows: Any) -> int:
    return int((rows.codes >= 0).any(axis=1).sum())


def _was_fitted_to(rule: Rule, problem: Problem) -> bool:
    """Whether rows seem to be those that a rule was fitted to: as many, of the same classes."""
    counts = problem.source.class_rows[:, : problem.schema.width].round().astype(int).tolist()
    kept = rule.metadata.class_counts
    same = kept is not None and all(list(row) == count[: len(row)] for row, count in zip(kept, counts, strict=False))
    return same and rule.metadata.rows == problem.n_rows


def _constraint_note(constraint: Constraint, value: ExpectedValue) -> str:
    """Say whether a constraint may be broken; never that it is kept."""
    if value.low >= constraint.low and value.high <= constraint.high:
        return f"{constraint.name}: no sign that it is broken, if either explanation is right. This is no promise."
    broken = value.high < constraint.low or value.low > constraint.high
    return f"{constraint.name} {'seems to be' if broken else 'may be'} broken: labels of recent rows would show it."
