"""What a rule is judged by: any number of metrics, each under its name.

Owns which metrics are meant, and which positive class and average they get. Must not know rows, nor how values come
about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, mention, shown
from ..core.labels import known_positive, python_labels
from ..core.schema import Schema
from ..metrics.abstention import AbstentionCost, check_pooled
from ..metrics.aim import AveragedMetric
from ..metrics.averages import check_average
from ..metrics.base import Metric
from ..metrics.functions import check_whole_rows
from ..metrics.naming import check_same_classes, positive_places
from ..metrics.resolution import Resolved, metric_meant, resolve, target_kind
from ..metrics.scales import check_order_agrees
from .for_outputs import are_for_outputs, resolve_outputs, settle, unused_positive
from .spec import GoalSpec
from .worst import opened

__all__ = ["list_metrics", "positive_of", "read_aims"]

FloatArray = NDArray[np.float64]


def read_aims(
    goal: GoalSpec,
    schema: Schema,
    output_weight: FloatArray,
    *,
    sample_weight: Any = None,
    strict: bool = True,
    allowed: AbstentionCost | None = None,
    by_group: bool = False,
) -> dict[str, AveragedMetric]:
    """Read what a rule is judged by, each under its name.

    Parameters
    ----------
    goal : GoalSpec
        Its metric is what :func:`metricwise.evaluate` takes as `metrics`; `average`, `pos_label` and `order` apply to
        all of them.
    schema : Schema
    output_weight : ndarray of shape (M,)
    sample_weight : ndarray of shape (N,), optional
        As read: metrics of whole rows take no fractions.
    strict : bool, default=True
        Whether a `pos_label` that no metric wants is refused.
    allowed : AbstentionCost, optional
        What an abstention counts for.
    by_group : bool, default=False
        Whether a metric may be that of the worst group: its aim says `least`.

    Returns
    -------
    dict of str to AveragedMetric
    """
    aims = {}
    metric_list = [(name, *opened(metric)) for name, metric in list_metrics(goal.metric, schema)]
    worst = [worst for _, _, worst in metric_list]
    if any(worst) and not by_group:
        raise InvalidParameter(
            "metrics",
            problem=f"metrics: the worst group's value needs {mention('sensitive_features')}, the group of every row",
        )
    read = _read_metrics(metric_list, schema, goal, strict)
    for (name, meant), least in zip(read.items(), worst, strict=True):
        if goal.order is not None:
            check_order_agrees(meant.metric, schema.order, schema.classes)
        check_whole_rows(meant.metric, sample_weight=sample_weight, output_weight=output_weight, average=meant.average)
        positive = positive_places(meant.metric, schema.classes) if meant.support_weighted else None
        metric = meant.metric
        if allowed is not None:
            check_pooled(meant.average, schema.n_classes)
            metric = allowed.judge(metric, schema.classes)
            allowed.check(metric, schema.classes)
        aims[name] = AveragedMetric(
            metric, meant.average, output_weight, meant.support_weighted, positive, name, least=least
        )
    return aims


def positive_of(rule: Any, schema: Schema, pos_label: Any) -> tuple[Any, bool]:
    """Return the positive class, and whether it is that which the rule keeps: it need not say it, nor may change it."""
    if pos_label is None and not _all_show_positive(schema):
        return rule.metadata.pos_label, True
    return pos_label, False


def _read_metrics(
    metric_list: Sequence[tuple[str | None, Any, bool]],
    schema: Schema,
    goal: GoalSpec,
    strict: bool,
) -> dict[str, Resolved]:
    """Find the metrics that are meant, each under its name."""
    pos_label = goal.pos_label
    if goal.average is not None:
        check_average(goal.average)
    resolved: dict[str, Resolved] = {}
    for name, metric, worst in metric_list:
        meant = _meant(metric, schema, goal.average, pos_label)
        if name is None:
            name = f"worst_group({meant.name})" if worst else meant.name
        if name in resolved:
            raise InvalidParameter(
                "metrics",
                problem=f"metrics: {name!r} is the name of two metrics",
                remedy="pass a dict of distinct names to metrics",
            )
        resolved[name] = settle(meant, schema.classes, scales=schema.order)
    if (
        strict
        and pos_label is not None
        and not any(_takes_positive(metric, schema, pos_label) for _, metric, _ in metric_list)
    ):
        raise unused_positive()
    return resolved


def _all_show_positive(schema: Schema) -> bool:
    """Whether the labels of every output show by themselves which class is the positive one."""
    return all(known_positive(python_labels(labels)) is not None for labels in schema.classes)


def _takes_positive(metric: Any, schema: Schema, pos_label: Any) -> bool:
    """Whether a metric wants a positive class, or names this one itself."""
    if are_for_outputs(metric):
        return True  # else they have been refused already
    resolved = metric_meant(metric, target_kind(schema.width, schema.multioutput), class_named=True).metric
    return resolved.traits.needs_positive or (
        pos_label is not None and getattr(resolved, "pos_label", None) == pos_label
    )


def list_metrics(metrics: Any, schema: Schema) -> list[tuple[str | None, Any]]:
    """Metrics with their names, None where they are called what they are."""
    if isinstance(metrics, Mapping):
        outputs = set(schema.output_names or ()) if schema.multioutput else set()
        if not metrics or not all(isinstance(name, str) for name in metrics) or set(metrics) == outputs:
            raise InvalidParameter(
                "metrics",
                problem=f"metrics as a dict must have text keys, which name the metrics, got {shown(list(metrics))}",
                remedy="to give a metric for each output, put the dict into a list: metrics=[{output: metric, ...}]",
            )
        return list(metrics.items())
    if isinstance(metrics, (str, Metric)) or not isinstance(metrics, Iterable):
        return [(None, metrics)]
    each = list(metrics)
    if not each:
        raise InvalidParameter("metrics", "name at least one metric, such as 'f1' or ['f1', 'recall']", "none")
    return [(None, metric) for metric in each]


def _meant(metric: Any, schema: Schema, average: str | None, pos_label: Any) -> Resolved:
    """Find what is meant by one metric; `average` and `pos_label` are for those that want for them."""
    several, names = schema.multioutput, schema.classes
    if are_for_outputs(metric):
        meant = resolve_outputs(
            metric,
            names,
            several=several,
            average=average,
            pos_label=pos_label,
            outputs=schema.output_names,
        )
    else:
        kind = target_kind(schema.width, several)
        meant = resolve(metric, kind, pos_label=pos_label, wanted_only=True)
        if average is not None and not meant.fixed:
            meant = replace(meant, average=average, average_given=True)  # type: ignore[arg-type]  # checked
    if not meant.average_given:
        check_same_classes(names)
    return meant
