"""Promises: constraints of a rule in a form that rows and labels can refute one after another.

Owns which constraints can be watched, and by which rows. Must not know batches, evidence or files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, mention, shown
from ..core.labels import python_labels
from ..core.schema import Schema
from ..data.classes import kept_order
from ..evaluation.arguments import allowed_for
from ..goals.constraint import Constraint
from ..goals.constraint_text import ONE, ConstraintSpec, read_constraints
from ..goals.resolve import resolve_constraints
from ..metrics.abstention import Abstaining, AbstentionCost
from ..metrics.base import FractionalLinear, Metric
from ..metrics.linear import Accuracy
from ..metrics.one_vs_rest import OneVsRest
from ..metrics.resolution import metric_meant, target_kind
from ..rules.base import Rule
from .forms import BY_CLASS, BY_DECISION, Labelled, PairedRatio, RatiosMean, RowRatio, StreamForm

__all__ = ["Promise", "Side", "read_promises"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_MUST = "bound a ratio of counts (shares, recalls, precisions, F, accuracy, costs), kappa, or a mean of class ratios"


@dataclass(frozen=True)
class Side:
    """A bound from below (sign 1) or from above (sign -1): the slack is ``sign * (a - bound * b)``."""

    bound: float
    sign: float


@dataclass(frozen=True, eq=False)
class Promise:
    """A constraint that is watched.

    Parameters
    ----------
    name : str
        As it was written.
    low, high : float
        Bounds; infinite where there is none.
    form : StreamForm
        What is bounded, as a function of means over rows.
    output : int, optional
        The output that it is about; None: all, pooled.
    group : int, optional
        The sensitive group that it is about; None: all rows.
    """

    name: str
    low: float
    high: float
    form: StreamForm
    output: int | None = None
    group: int | None = None

    @property
    def sides(self) -> tuple[Side, ...]:
        """The bounds that there are."""
        both = (Side(self.low, 1.0), Side(self.high, -1.0))
        return tuple(side for side in both if np.isfinite(side.bound))

    def rows(self, codes: IntArray, groups: IntArray | None) -> IntArray:
        """Return the places of the rows that it is about, among those with true classes (n, M), -1 if missing."""
        about = np.ones(len(codes), dtype=bool) if self.group is None or groups is None else groups == self.group
        if self.form.needs_labels:
            about = about & (self.of_output(codes) >= 0).any(axis=1)
        return np.flatnonzero(about)

    def of_output(self, table: IntArray) -> IntArray:
        """Return the columns (n, M) of the outputs that it is about."""
        return table if self.output is None else table[:, [self.output]]


def read_promises(rule: Rule, subject_to: Any, pos_label: Any, labelled: Labelled) -> tuple[Promise, ...]:
    """Return the promises of a rule: constraints in any form that ``optimize`` takes, by default those of its fit."""
    specs, by_rule = _read_specs(rule, subject_to)
    schema = replace(rule.schema, order=kept_order(rule.metadata, rule.classes))
    groups = getattr(rule, "groups", None) if "sensitive_features" in rule.needs else None
    for spec in specs:
        _check_groups(spec, groups)
    allowed = allowed_for(None, rule)
    try:
        constraints = resolve_constraints(
            specs,
            schema,
            pos_label=rule.metadata.pos_label if pos_label is None else pos_label,
            allowed=allowed,
            aim=None if allowed is None else _aim_of(rule, allowed),
            groups=groups,
            any_form=True,
        )
    except InvalidParameter as error:
        if not by_rule or pos_label is not None:
            raise
        remedy = f"; the rule keeps only this text of its constraint, so pass {argument('subject_to')}"
        raise error.within(after=remedy) from None
    promises = tuple(_promise(constraint, specs[constraint.promise], schema, groups) for constraint in constraints)
    for promise in promises:
        _check_known(promise, labelled)
    return promises


def _read_specs(rule: Rule, subject_to: Any) -> tuple[tuple[ConstraintSpec, ...], bool]:
    """Return the constraints, and whether they are those that the rule was fitted with."""
    by_rule = subject_to is None
    specs = read_constraints(list(rule.metadata.subject_to or ()) if by_rule else subject_to)
    if not specs:
        got = "None, and the rule was fitted without constraints" if by_rule else "none"
        raise InvalidParameter("subject_to", "name what is promised, such as 'precision >= 0.9'", got)
    return specs, by_rule


def _check_groups(spec: ConstraintSpec, groups: Sequence[Any] | None) -> None:
    if spec.over is None:
        return
    if spec.over == "gap":
        raise InvalidParameter(
            "subject_to",
            problem=f"'{spec}' bounds a gap between groups, which is no mean over rows",
            remedy="watch the metric in every group, as in 'recall >= 0.8 in every group'",
            owner="subject_to",
        )
    if groups is None:
        raise InvalidParameter(
            "subject_to",
            problem=f"'{spec}' is about groups, which this rule decides without",
            remedy="watch the rows of each group with a watch of their own",
            owner="subject_to",
        )


def _aim_of(rule: Rule, allowed: AbstentionCost) -> Metric:
    """Return the metric that the rule was optimised for, by which abstentions count in its constraints."""
    try:
        return metric_meant(
            rule.metadata.metric, target_kind(rule.schema.width, rule.schema.multioutput), class_named=True
        ).metric
    except InvalidParameter:
        if allowed.cost is not None:
            return Accuracy()  # at a cost, abstentions are misses in constraints, whatever the aim
        raise InvalidParameter(
            "rule",
            problem=f"how abstentions count in constraints depends on the metric {shown(rule.metadata.metric)} that "
            "the rule was optimised for, which is not known here",
            remedy="watch a rule that was optimised for a metric that has a name",
        ) from None


# ------------------------------------------------------------------------------------------------ from metrics to means


def _promise(constraint: Constraint, spec: ConstraintSpec, schema: Schema, groups: Sequence[Any] | None) -> Promise:
    output = 0 if constraint.output is None and schema.n_outputs == 1 else constraint.output
    classes = python_labels(np.asarray(schema.classes[output or 0]))
    form = _form(constraint, classes, schema.n_outputs if output is None else 1)
    if form is None:
        raise InvalidParameter(
            "subject_to",
            problem=f"'{spec}' must {_MUST}, to be watched; {constraint.metric.name}"
            f"{_circumstance(constraint, output)} is none of these",
            remedy=f"pass {argument('subject_to')} with what can be watched",
            owner="subject_to",
        )
    name = constraint.name
    if constraint.group is not None and groups is not None:
        name = str(replace(spec, over=ONE, group=groups[constraint.group], text=""))
    return Promise(name, constraint.low, constraint.high, form, output, constraint.group)


def _circumstance(constraint: Constraint, output: int | None) -> str:
    if output is None:
        return " of several outputs together"
    return " of a rule that may abstain" if isinstance(constraint.metric, Abstaining) else ""


def _form(constraint: Constraint, classes: list[Any], n_outputs: int) -> StreamForm | None:
    """Return what is bounded as a function of means over rows; None if it is not known to be one."""
    metric, k = constraint.metric, len(classes)
    if constraint.near_prior:
        return _distance_from_prior(metric, classes, n_outputs)
    ratio = metric._of_cells(k, classes)
    if isinstance(ratio, FractionalLinear):
        return _row_ratio(ratio, k, n_outputs)
    if n_outputs > 1 or isinstance(metric, Abstaining):
        return None
    pairs = metric._of_pairs(k, classes)
    if pairs is not None:
        return PairedRatio(_row_ratio(pairs.own, k), _row_ratio(pairs.crossed, k), pairs.limits)
    mean = metric._of_ratios(k, classes)
    if mean is None:
        return None
    parts = tuple(replace(_row_ratio(part, k), at_zero=part.zero_division) for part in mean.parts)
    return RatiosMean(mean.kind, parts, mean.weight)


def _row_ratio(ratio: FractionalLinear, n_classes: int, n_outputs: int = 1) -> RowRatio:
    A, B = ratio.A[:n_classes], ratio.B[:n_classes]  # rules that may abstain have one more row, which is empty
    return RowRatio(A, B, ratio.range, n_outputs)


def _distance_from_prior(metric: Metric, classes: list[Any], n_outputs: int) -> RowRatio | None:
    """Return the predicted share of a class minus its share: decisions for it, less the rows of it."""
    if not isinstance(metric, OneVsRest):
        return None
    k, place = len(classes), metric.position(len(classes), classes)
    A = np.zeros((k, k))
    A[:, place] += 1.0
    A[place] -= 1.0
    return RowRatio(A, np.ones((k, k)), (-1.0, 1.0), n_outputs)


def _check_known(promise: Promise, labelled: Labelled) -> None:
    """Refuse a promise that the rows with labels cannot show."""
    if promise.form.is_known(labelled):
        return
    whose = {BY_DECISION: "the decision about it", BY_CLASS: "its true class"}[labelled]
    known = {
        BY_DECISION: "precisions of one class and predicted shares",
        BY_CLASS: "recalls of one class and predicted shares",
    }[labelled]
    raise InvalidParameter(
        "subject_to",
        problem=f"'{promise.name}' cannot be known if whether the label of a row becomes known depends on {whose} "
        f"({argument('labelled', labelled)}): the rows with labels are not like the others",
        remedy=f"watch {known}, or label rows at random and leave {mention('labelled')} out",
        owner="subject_to",
    )
