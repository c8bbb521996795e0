"""The worst sensitive group's value of a metric, as an aim.

Owns how that is written. It is no metric of one confusion matrix: who maximises it counts groups apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

__all__ = ["WorstGroup", "opened", "worst_group"]

_WRITTEN = re.compile(r"\s*worst_group\s*\((.*)\)\s*", re.DOTALL)


@dataclass(frozen=True, eq=False)
class WorstGroup:
    """The smallest value of a metric over sensitive groups; made by :func:`metricwise.worst_group`."""

    metric: Any

    @property
    def name(self) -> str:
        """As it is written."""
        inside = self.metric
        if not isinstance(inside, str):
            inside = getattr(inside, "name", getattr(inside, "__name__", repr(inside)))
        return f"worst_group({inside})"


def worst_group(metric: Any) -> WorstGroup:
    """Return the metric of the worst sensitive group, as an aim to maximise.

    Parameters
    ----------
    metric : str or object
        A metric as in :func:`metricwise.optimize` that is linear, a ratio of linear metrics, or concave.

    Returns
    -------
    WorstGroup
        To be passed as `metric` to :func:`metricwise.optimize`, with `sensitive_features`; the text
        ``"worst_group(accuracy)"`` is equivalent.

    See Also
    --------
    metricwise.in_every_group : A bound for all groups, under another metric.

    Examples
    --------
    >>> import metricwise as mw
    >>> proba, y = [0.1, 0.4, 0.6, 0.2, 0.3, 0.7], [0, 1, 1, 0, 0, 1]
    >>> group = ["a", "a", "a", "b", "b", "b"]
    >>> solution = mw.optimize(proba, y, mw.worst_group("accuracy"), sensitive_features=group,
    ...                        strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> solution.value
    1.0
    """
    return WorstGroup(metric)


def opened(metric: Any) -> tuple[Any, bool]:
    """Return the metric that is meant, and whether the worst group's value of it is.

    Examples
    --------
    >>> from metricwise.goals.worst import opened
    >>> opened("worst_group(recall[yes])"), opened("accuracy")
    (('recall[yes]', True), ('accuracy', False))
    """
    if isinstance(metric, WorstGroup):
        return metric.metric, True
    written = _WRITTEN.fullmatch(metric) if isinstance(metric, str) else None
    return (metric, False) if written is None else (written.group(1).strip(), True)
