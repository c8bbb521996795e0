"""Metadata of a rule from its problem and its estimates: counts and names, never a row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from .._version import __version__
from ..core.labels import python_labels
from ..goals.worst import opened
from ..inference.results import ConstraintResult, Estimate, Gain
from ..metrics.base import Metric
from ..metrics.naming import PerOutput
from ..metrics.scales import order_of
from ..oracles.problem import Problem
from ..rules.base import Rule
from ..rules.metadata import RuleMetadata

__all__ = ["loss_names", "losses_of", "metadata_of", "with_estimates"]

R = TypeVar("R", bound=Rule)


def metadata_of(problem: Problem, recipe: str | None = None) -> RuleMetadata:
    """Return the metadata that every rule of a problem has, and that of a recipe."""
    aim, positive = problem.aim, _positive(problem.aim.metric)
    counts = problem.source.class_rows.round().astype(int).tolist() if problem.labelled else None
    return RuleMetadata(
        metric=aim.name,
        average=aim.average,
        rows=problem.n_rows,
        metricwise=__version__,
        pos_label=positive if "[" not in aim.name else None,
        order=_order(problem),
        losses=losses_of(problem) or None,
        abstain=None if problem.allowed is None else problem.allowed.said,
        class_counts=counts and [row[:k] for row, k in zip(counts, problem.schema.n_classes.tolist(), strict=True)],
        recipe=recipe,
        stated=("metric", "average"),  # files say null where there is no average over outputs
        **problem.schema.column_facts,
    )


def _order(problem: Problem) -> list[list[Any] | None] | None:
    """The classes of each output from the lowest to the highest, by the call or by a metric that was given an order."""
    schema, metrics = problem.schema, [problem.aim.metric, *(aim.metric for aim in problem.record.values())]
    orders_of_outputs: list[list[Any] | None] = []
    made: dict[Any, list[Any] | None] = {}  # thousands of outputs mostly share their labels and metrics
    for m, labels in enumerate(schema.classes):
        scale = None if schema.order is None else schema.order[m]
        key = (scale, id(labels), *(id(metric._of_output(m)) for metric in metrics))
        if key not in made:
            class_labels = python_labels(labels)
            orders = [list(scale)] if scale is not None else [order_of(metric, m, class_labels) for metric in metrics]
            made[key] = next((order for order in orders if order is not None), None)
        orders_of_outputs.append(made[key])
    return orders_of_outputs if any(order is not None for order in orders_of_outputs) else None


def losses_of(problem: Problem) -> dict[str, str]:
    """Return what people read instead of metrics that are minus a loss or a cost, by name."""
    names = {name: aim.metric for name, aim in {problem.aim.name: problem.aim, **problem.record}.items()}
    names.setdefault(opened(problem.aim.name)[0], problem.aim.metric)
    return loss_names(names)


def loss_names(metrics: Mapping[str, Metric]) -> dict[str, str]:
    """Return what people read instead of those of some metrics that are minus a loss or a cost, by name."""
    return {
        name: metric.traits.loss_name if name == metric.name else f"{name} ({metric.traits.loss_name})"
        for name, metric in metrics.items()
        if metric.traits.loss_name is not None
    }


def _positive(metric: Any) -> Any:
    """The class that a metric is of, or a list with that of each output; None if it names none that JSON has."""
    each = getattr(metric, "metrics", None) if isinstance(metric, PerOutput) and metric.kinds is None else None
    if each is not None:
        labels = [_positive(metric_of_output) for metric_of_output in each]
        return None if None in labels else labels
    while hasattr(metric, "base"):  # scaled, or with abstentions
        metric = metric.base
    label = getattr(metric, "pos_label", None)
    return label if isinstance(label, (str, bool, int)) else None


def with_estimates(
    rule: R,
    gain: Gain | None,
    value_on_new_rows: Estimate | None,
    constraints: Sequence[ConstraintResult] = (),
    of_shares: Sequence[bool] = (),
) -> R:
    """Return the rule with `gain`, `value_on_new_rows` and `promises` in its metadata, where they are known.

    `of_shares` says of each constraint whether what it bounds depends on class shares.
    """
    entries: dict[str, Any] = {}
    for name, estimate in (("gain", gain), ("value_on_new_rows", value_on_new_rows)):
        if estimate is not None:
            entries[name] = _interval(estimate)
    if constraints:
        entries["promises"] = [
            _promise(result) | {"of_shares": depends} for result, depends in zip(constraints, of_shares, strict=True)
        ]
    return rule.with_metadata(**entries) if entries else rule


def _interval(estimate: Estimate) -> dict[str, float | None]:
    values = {"estimate": estimate.estimate, "low": estimate.low, "high": estimate.high}
    return {name: _finite(value) for name, value in values.items()}


def _promise(result: ConstraintResult) -> dict[str, Any]:
    numbers = {"low": result.low, "high": result.high, "value": result.value, "confidence": result.confidence}
    return {"name": result.name, **{name: _finite(value) for name, value in numbers.items()}}


def _finite(value: float | None) -> float | None:
    """A number that JSON has; None where there is no bound."""
    return value if value is not None and math.isfinite(value) else None
