"""The scale of an ordered target, handed to the metrics that go by one.

Owns the step from what y says of its order to `order` of an ordinal metric. Must not know any one metric: whichever has
the parameter takes part.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .base import Metric
from .naming import PerOutput

__all__ = ["in_order"]

Scale = tuple[Any, ...]


def in_order(metric: Metric, scales: tuple[Scale | None, ...] | None) -> Metric:
    """Return the metric with the order of an ordered target, where it has the parameter `order` and that is not given.

    Parameters
    ----------
    metric : Metric
    scales : tuple of M tuples or None, optional
        The classes of each output from one end of the scale to the other, None for an output without an order; what
        :func:`metricwise.inputs.scales_of` reads of an ordered categorical.

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
    unordered: Any = metric
    if scales is None or getattr(metric, "order", "none") is not None:
        return metric
    known = tuple(dict.fromkeys(scale for scale in scales if scale is not None))
    if len({frozenset(scale) for scale in known}) < len(known):
        raise ValueError(
            f"{type(metric).__name__}: outputs with the same labels must have the same order, got {known}; "
            "pass order= to the metric."
        )
    same = len(known) == 1 and None not in scales
    ordered: Metric = replace(unordered, order=known[0] if same else known)
    return ordered


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
