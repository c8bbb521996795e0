"""The order of the classes of an ordered target, for all metrics that have the parameter `order`.

Must not know any one metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, listed, mention
from ..core.labels import python_labels
from .base import Metric, with_parts
from .naming import PerOutput
from .parameters import scale_of

__all__ = ["check_order_agrees", "in_order", "order_of"]

Scale = tuple[Any, ...]


def in_order(metric: Metric, scales: tuple[Scale | None, ...] | None) -> Metric:
    """Return the metric with the order of each output's classes, where it has the parameter `order` and that is None.

    `scales` has the classes of each output from the lowest to the highest, None for an output without an order.

    Examples
    --------
    >>> from metricwise import metrics
    >>> from metricwise.metrics.scales import in_order
    >>> in_order(metrics.Ordinal(), (("low", "mid", "high"),)).order
    ('low', 'mid', 'high')
    >>> in_order(metrics.Ordinal(order=["a", "b"]), (("b", "a"),)).order
    ['a', 'b']
    """
    if isinstance(metric, PerOutput):
        return _each_in_order(metric, scales)
    orders = () if scales is None else tuple(dict.fromkeys(scale for scale in scales if scale is not None))
    if scales is None or not orders:
        return metric
    same = len(orders) == 1 and None not in scales

    def ordered(part: Any) -> Metric | None:
        if not hasattr(part, "order"):
            return None
        if part.order is not None:
            return part  # type: ignore[no-any-return]  # a Metric
        if len({frozenset(scale) for scale in orders}) < len(orders):
            raise InvalidParameter(
                "order",
                problem=f"outputs with the same labels must have the same order, got {orders}",
                remedy=f"pass {argument('order')} to the metric",
                owner=type(part).__name__,
            )
        made: Metric = replace(part, order=orders[0] if same else orders)
        return made

    return with_parts(metric, ordered)


def _each_in_order(metric: PerOutput, scales: tuple[Scale | None, ...] | None) -> PerOutput:
    """Give the metric of each output the order of that output; outputs with the same of both share the result."""
    if scales is None:
        return metric
    made: dict[tuple[int, Scale | None], Metric] = {}
    for base, scale in zip(metric.metrics, scales, strict=True):
        if (id(base), scale) not in made:
            made[id(base), scale] = base if scale is None else in_order(base, (scale,))
    ordered = tuple([made[id(base), scale] for base, scale in zip(metric.metrics, scales, strict=True)])
    return replace(metric, metrics=ordered)


def order_of(metric: Metric, output: int, labels: Sequence[Any]) -> list[Any] | None:
    """Return the order that a metric has of the classes of an output; None if it was given none.

    Examples
    --------
    >>> from metricwise import metrics
    >>> from metricwise.metrics.scales import order_of
    >>> order_of(metrics.Ordinal(order=["low", "mid", "high"]), 0, ["high", "low", "mid"])
    ['low', 'mid', 'high']
    """
    orders: list[list[Any]] = []

    def note(part: Any) -> Metric | None:
        if not hasattr(part, "order"):
            return None
        scale = scale_of(part.order, len(labels), labels)
        if scale is not None and set(scale) == set(labels):
            orders.append(scale)
        made: Metric = part
        return made

    with_parts(metric._of_output(output), note)
    return orders[0] if orders else None


def check_order_agrees(
    metric: Metric, order: Sequence[Sequence[Any] | None] | None, classes: Sequence[NDArray[Any]]
) -> None:
    """Refuse a metric with another order than `order` of the call, which has one for each output."""
    for m, (scale, labels) in enumerate(zip(order or (), classes, strict=False)):
        of_metric = None if scale is None else order_of(metric, m, python_labels(labels))
        if scale is not None and of_metric is not None and of_metric != list(scale):
            raise InvalidParameter(
                "order",
                problem=f"{mention('order')} is {listed(scale)}, but {metric.name} was given the order "
                f"{listed(of_metric)}",
                remedy="give it once, or the same",
            )
