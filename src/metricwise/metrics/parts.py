"""Metrics inside of metrics: what a minimum, a negative or a metric per output is made of.

Owns the walk to them. Must not know any one metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from .base import Metric

__all__ = ["with_parts"]


def with_parts(metric: Metric, change: Callable[[Any], Metric | None]) -> Metric:
    """Return the metric with parts of it changed; itself if nothing is, and one part stays one wherever it stands.

    Parameters
    ----------
    metric : Metric
    change : callable
        From a part to what takes its place; None for a part that is to be looked into.

    Returns
    -------
    Metric

    Examples
    --------
    >>> from metricwise import metrics
    >>> from metricwise.metrics.parts import with_parts
    >>> worst = metrics.Minimum([metrics.Accuracy(), metrics.Recall(index=1)])
    >>> changed = with_parts(worst, lambda part: metrics.MinRecall() if isinstance(part, metrics.Recall) else None)
    >>> changed.metrics[1].name
    'min_recall'
    """
    made: dict[int, Metric] = {}

    def changed(part: Metric) -> Metric:
        if id(part) not in made:
            new = change(part)
            made[id(part)] = inside(part) if new is None else new
        return made[id(part)]

    def inside(whole: Any) -> Metric:
        values = {field.name: getattr(whole, field.name) for field in fields(whole)} if is_dataclass(whole) else {}
        new: dict[str, Any] = {}
        for name, value in values.items():
            if isinstance(value, Metric):
                new[name] = changed(value)
            elif isinstance(value, tuple) and value and all(isinstance(part, Metric) for part in value):
                parts = tuple([changed(part) for part in value])
                new[name] = parts if any(a is not b for a, b in zip(parts, value, strict=True)) else value
        different = {name: value for name, value in new.items() if value is not values[name]}
        result: Metric = replace(whole, **different) if different else whole
        return result

    return changed(metric)
