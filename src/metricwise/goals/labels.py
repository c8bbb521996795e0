"""What users ask for of rules for very many labels, read for a number of labels. Must not know rows or rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.budget import NO_BUDGET, Budget
from ..core.errors import InvalidParameter, argument, mention, shown, warn
from ..core.label_rows import read_labels_per_row
from ..core.label_sets import LabelSets
from ..core.schema import Schema
from ..data.frames import has_lists
from ..data.label_rows import is_in_pieces, is_sparse
from ..data.row_spec import RowSpec
from ..data.weights import read_output_weight
from ..metrics.averages import check_average
from ..metrics.base import Metric
from ..metrics.label_aims import LabelAim, MetricAim, RatioTerms
from ..metrics.label_metrics import LabelMetric, RecallAt, read_label_metric
from ..metrics.resolution import Resolved, resolve, to_maximise
from .constraint_text import EVERY_LABEL, ConstraintSpec, read_constraints
from .for_outputs import are_for_outputs
from .judged import list_metrics
from .spec import GoalSpec

__all__ = [
    "LabelConstraint",
    "LabelGoal",
    "is_of_labels",
    "judged_label_aims",
    "read_label_aims",
    "read_label_goal",
]

FloatArray = NDArray[np.float64]

_KIND = "multilabel"


def is_of_labels(rows: RowSpec, goal: Any) -> bool:
    """Whether a call is about rules for very many labels: sparse probabilities, or labels of a row that compete."""
    if is_sparse(rows.proba) or is_in_pieces(rows.proba) or has_lists(rows.proba):
        return True
    if not isinstance(goal, GoalSpec):
        return False
    return goal.labels_per_row is not None or _of_rows(goal.metric) is not None


def _of_rows(metric: Any) -> LabelMetric | None:
    return None if are_several(metric) else read_label_metric(metric)


def are_several(metric: Any) -> bool:
    """Whether there is one metric for each output."""
    return not isinstance(metric, (str, LabelMetric)) and are_for_outputs(metric)


@dataclass(frozen=True, eq=False)
class LabelConstraint:
    """A bound on a ratio of counts, of all labels pooled or of each label.

    Parameters
    ----------
    aim : MetricAim
        What is bounded, pooled over labels; its ratio is that of each label.
    low, high : float
        Infinite where there is no such bound.
    every_label : bool
    name : str
        As it was written.
    """

    aim: MetricAim
    low: float
    high: float
    every_label: bool
    name: str

    @property
    def ratio(self) -> RatioTerms:
        """What is bounded, by the counts of a label."""
        assert self.aim.ratio is not None
        return self.aim.ratio


@dataclass(frozen=True, eq=False)
class LabelGoal:
    """What is asked for of a rule for very many labels."""

    aim: LabelAim
    budget: Budget
    record: dict[str, LabelAim] = field(default_factory=dict)
    constraints: tuple[LabelConstraint, ...] = ()
    confidence: float | None = None


def read_label_goal(
    spec: GoalSpec, schema: Schema, targets: LabelSets | None, row_weight: FloatArray | None = None
) -> LabelGoal:
    """Read a goal for rows with these labels and weights; what such rules do not have is refused by name."""
    _refuse(spec)
    if are_several(spec.metric):
        raise _refuse_several(spec.metric)
    n_labels = schema.n_outputs
    aims = read_label_aims(spec.metric, spec, n_labels, targets, row_weight)
    ((name, (metric, aim)),) = aims.items()
    budget = _read_budget(spec.labels_per_row, metric, n_labels)
    if aim.is_coverage and not budget.is_limited:
        raise InvalidParameter(
            "labels_per_row",
            f"be given for {name!r}, because without a limit predicting every label is best",
            "None",
            f"pass {argument('labels_per_row', 3)}, for example",
        )
    if isinstance(aim, MetricAim) and aim.metric.traits.degenerate and not budget.is_limited and not spec.constrained:
        warn(aim.metric.traits.degenerate)
    recorded = _read_record(spec, aim, n_labels, targets, row_weight)
    return LabelGoal(aim, budget, recorded, _read_constraints(spec), spec._read_confidence())


def _refuse(spec: GoalSpec) -> None:
    """Refuse what rules for very many labels do not have."""
    for parameter, value in (("abstain", spec.abstain), ("prior", spec.prior), ("order", spec.order)):
        if value is not None and value is not False:
            raise InvalidParameter(
                parameter,
                f"be left out with sparse probabilities or {mention('labels_per_row')}, which rules for very many "
                "labels do not take",
                shown(value),
            )
    if spec.pos_label not in (None, 1):
        raise InvalidParameter(
            "pos_label", "be 1 or None, because labels are an indicator matrix of 0 and 1", shown(spec.pos_label)
        )


def _read_budget(labels_per_row: Any, metric: LabelMetric | None, n_labels: int) -> Budget:
    """Return how many labels rows may have; a metric at k says so too."""
    pair = read_labels_per_row(labels_per_row, n_labels)
    slots = None if metric is None else metric.slots
    if slots is None or metric is None:
        return NO_BUDGET if pair is None else Budget(*pair)
    if pair is not None and pair[1] != slots:
        raise InvalidParameter(
            "labels_per_row",
            f"allow at most {slots} labels for {metric.name!r}",
            shown(labels_per_row),
            f"leave it out, or pass {slots} or a pair that ends with {slots}",
        )
    if slots > n_labels:
        raise InvalidParameter("metric", f"be at most at {n_labels}, the number of labels", repr(metric.name))
    return Budget(slots, slots) if pair is None else Budget(*pair)


def read_label_aims(
    metrics: Any, spec: GoalSpec, n_labels: int, targets: LabelSets | None, row_weight: FloatArray | None = None
) -> dict[str, tuple[LabelMetric | None, LabelAim]]:
    """Return the aim of every metric under its name, with the metric of rows that it may be.

    Parameters
    ----------
    metrics : str, Metric, LabelMetric, callable, or list or dict of these
    spec : GoalSpec
        For `average`, `output_weight` and `pos_label`.
    n_labels : int
        M.
    targets : LabelSets or None
        The true labels.
    row_weight : ndarray of shape (N,), optional
    """
    weight = None if spec.output_weight is None else read_output_weight(spec.output_weight, n_labels)
    if isinstance(metrics, Mapping):
        listed: Iterable[tuple[str | None, Any]] = metrics.items()
    elif isinstance(metrics, (list, tuple)):
        listed = ((None, metric) for metric in metrics)
    else:
        listed = ((None, metrics),)
    aims: dict[str, tuple[LabelMetric | None, LabelAim]] = {}
    for text, metric in listed:
        of_rows = _of_rows(metric)
        if of_rows is None:
            aim = _metric_aim(metric, spec, weight)
        else:
            aim = of_rows.aim(spec.average, targets, weight, row_weight)
        name = aim.name if text is None else text
        if name in aims:
            raise InvalidParameter(
                "metrics", problem=f"{name!r} is the name of two metrics", remedy="pass a dict of distinct names"
            )
        aims[name] = (of_rows, aim if text is None else replace(aim, name=text))  # type: ignore[type-var]
    return aims


def judged_label_aims(
    metrics: Any, spec: GoalSpec, schema: Schema, targets: LabelSets, row_weight: FloatArray | None
) -> dict[str, tuple[LabelMetric | None, LabelAim]]:
    """Return what decisions are judged by, each under its name, with the metric of rows that it may be.

    Losses are as they are, and `average` is for metrics whose names do not fix it.
    """
    n_labels = schema.n_outputs
    weight = None if spec.output_weight is None else read_output_weight(spec.output_weight, n_labels)
    aims: dict[str, tuple[LabelMetric | None, LabelAim]] = {}
    for text, metric in list_metrics(metrics, schema):
        of_rows = _of_rows(metric)
        if of_rows is None:
            free = replace(spec, average=None if _fixes_average(metric, spec) else spec.average)
            aim = _metric_aim(metric, free, weight, maximised=False)
        else:
            average = spec.average if isinstance(of_rows, RecallAt) else None
            aim = of_rows.aim(average, targets, weight, row_weight)
        name = aim.name if text is None else text
        if name in aims:
            raise InvalidParameter(
                "metrics",
                problem=f"metrics: {name!r} is the name of two metrics",
                remedy="pass a dict of distinct names",
            )
        aims[name] = (of_rows, aim)
    return aims


def _fixes_average(metric: Any, spec: GoalSpec) -> bool:
    """Whether the name of a metric says how it is averaged."""
    return not are_several(metric) and resolve(metric, _KIND, pos_label=spec.pos_label, wanted_only=True).fixed


def _metric_aim(metric: Any, spec: GoalSpec, weight: FloatArray | None, *, maximised: bool = True) -> LabelAim:
    """Return the aim of a metric of one confusion matrix; of a loss minus it, if it is to be `maximised`."""
    if are_several(metric):
        raise _refuse_several(metric)
    if spec.average is not None:
        check_average(spec.average)
    resolved: Resolved = resolve(metric, _KIND, spec.average, pos_label=spec.pos_label, wanted_only=True)
    resolved = to_maximise(resolved) if maximised else resolved
    _check_metric(resolved.metric)
    return MetricAim(resolved.metric, resolved.average, resolved.name, weight, resolved.support_weighted)


def _refuse_several(metric: Any) -> InvalidParameter:
    return InvalidParameter(
        "metric",
        f"be one metric for all labels with sparse probabilities or {mention('labels_per_row')}",
        shown(metric),
        f"weigh labels by {mention('output_weight')}",
    )


def _check_metric(metric: Metric) -> None:
    if metric.traits.needs_integer_counts:
        raise InvalidParameter(
            "metric",
            problem=f"{metric.name} can only be evaluated on whole rows, which rules for very many labels do not do",
            remedy=f"add a parameter {mention('sample_weight')} to the function",
        )


def _read_record(
    spec: GoalSpec, aim: LabelAim, n_labels: int, targets: LabelSets | None, row_weight: FloatArray | None
) -> dict[str, LabelAim]:
    if spec.record is None:
        return {}
    if isinstance(spec.record, str) or not isinstance(spec.record, (list, tuple, Mapping)):
        raise InvalidParameter(
            "record",
            "be a list of metrics, such as ['precision', 'recall'], or a dict of names to metrics",
            shown(spec.record),
        )
    metrics = spec.record if isinstance(spec.record, Mapping) else {_name_of(m): m for m in spec.record}
    recorded = {}
    for name, metric in metrics.items():
        fixed = isinstance(metric, str) and _of_rows(metric) is None and resolve(metric, _KIND).fixed
        as_aim = replace(spec, average=None if fixed or _of_rows(metric) is not None else aim.average)
        ((_, (_, secondary)),) = read_label_aims(metric, as_aim, n_labels, targets, row_weight).items()
        recorded[str(name)] = secondary
    return recorded


def _name_of(metric: Any) -> str:
    return metric if isinstance(metric, str) else str(getattr(metric, "name", getattr(metric, "__name__", metric)))


# -------------------------------------------------------------------------------------------------------- constraints


def _read_constraints(spec: GoalSpec) -> tuple[LabelConstraint, ...]:
    specs = read_constraints(spec.subject_to) if spec.subject_to is not None else ()
    if spec.against is not None:
        specs = (spec.against, *specs)
    return tuple(_read_constraint(constraint) for constraint in specs)


def _read_constraint(spec: ConstraintSpec) -> LabelConstraint:
    if spec.labels or spec.near_prior is not None or spec.over not in (None, EVERY_LABEL):
        raise InvalidParameter(
            "subject_to",
            problem=f"'{spec}' must bound a metric of all labels pooled, or 'in every label', for very many labels",
            remedy="write 'precision >= 0.8' or 'precision >= 0.8 in every label'",
            owner="subject_to",
        )
    resolved = resolve(spec.metric, _KIND, "micro", wanted_only=True)
    aim = MetricAim(resolved.metric, "micro", str(spec))
    if aim.ratio is None:
        raise InvalidParameter(
            "subject_to",
            problem=f"'{spec}' bounds {resolved.metric.name}, which is no ratio of counts",
            remedy="bound precision, recall, F, Jaccard or a share instead",
            owner="subject_to",
        )
    return LabelConstraint(aim, spec.low, spec.high, spec.over == EVERY_LABEL, str(spec))
