"""The scale of an ordered target, handed to the metrics that go by one.

Owns the step from what a call or y says of the order to `order` of an ordinal metric, and back: which order a metric
has. Must not know any one metric: whichever has the parameter takes part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, listed, mention
from ..core.labels import python_labels
from ._common import scale_of
from .base import Metric
from .naming import PerOutput
from .parts import with_parts

__all__ = ["check_order_agrees", "in_order", "order_of"]

Scale = tuple[Any, ...]


def in_order(metric: Metric, scales: tuple[Scale | None, ...] | None) -> Metric:
    """Return the metric with the order of an ordered target, where it has the parameter `order` and that is not given.

    Parameters
    ----------
    metric : Metric
    scales : tuple of M tuples or None, optional
        The classes of each output from the lowest to the highest, None for an output without an order.

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
    known = () if scales is None else tuple(dict.fromkeys(scale for scale in scales if scale is not None))
    if scales is None or not known:
        return metric
    same = len(known) == 1 and None not in scales

    def ordered(part: Any) -> Metric | None:
        if not hasattr(part, "order"):
            return None
        if part.order is not None:
            return part  # type: ignore[no-any-return]  # a Metric
        if len({frozenset(scale) for scale in known}) < len(known):
            raise InvalidParameter(
                "order",
                problem=f"outputs with the same labels must have the same order, got {known}",
                remedy=f"pass {argument('order')} to the metric",
                owner=type(part).__name__,
            )
        made: Metric = replace(part, order=known[0] if same else known)
        return made

    return with_parts(metric, ordered)


def _each_in_order(metric: PerOutput, scales: tuple[Scale | None, ...] | None) -> PerOutput:
    """Give the metric of each output the order of that output; outputs of one metric and one order go on sharing it."""
    if scales is None:
        return metric
    made: dict[tuple[int, Scale | None], Metric] = {}
    for own, scale in zip(metric.metrics, scales, strict=True):
        if (id(own), scale) not in made:
            made[id(own), scale] = own if scale is None else in_order(own, (scale,))
    ordered = tuple([made[id(own), scale] for own, scale in zip(metric.metrics, scales, strict=True)])
    return replace(metric, metrics=ordered)


def order_of(metric: Metric, output: int, labels: Sequence[Any]) -> list[Any] | None:
    """Return the order that a metric has of the classes of an output; None if it was given none.

    Parameters
    ----------
    metric : Metric
    output : int
    labels : sequence
        Classes of that output.

    Examples
    --------
    >>> from metricwise import metrics
    >>> from metricwise.metrics.scales import order_of
    >>> order_of(metrics.Ordinal(order=["low", "mid", "high"]), 0, ["high", "low", "mid"])
    ['low', 'mid', 'high']
    """
    found: list[list[Any]] = []

    def note(part: Any) -> Metric | None:
        if not hasattr(part, "order"):
            return None
        scale = scale_of(part.order, len(labels), labels)
        if scale is not None and set(scale) == set(labels):
            found.append(scale)
        made: Metric = part
        return made

    with_parts(metric.of_output(output), note)
    return found[0] if found else None


def check_order_agrees(
    metric: Metric, order: Sequence[Sequence[Any] | None] | None, classes: Sequence[NDArray[Any]]
) -> None:
    """Refuse a metric with another order than that of the call.

    Parameters
    ----------
    metric : Metric
    order : sequence of M sequences or None
        What was given as `order` in the call, for each output.
    classes : sequence of M ndarrays
    """
    for m, (scale, labels) in enumerate(zip(order or (), classes, strict=False)):
        own = None if scale is None else order_of(metric, m, python_labels(labels))
        if scale is not None and own is not None and own != list(scale):
            raise InvalidParameter(
                "order",
                problem=f"{mention('order')} is {listed(scale)}, but {metric.name} was given the order {listed(own)}",
                remedy="give it once, or the same",
            )
