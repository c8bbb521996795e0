"""What a rule knows of where it comes from, for whoever opens its file a year later.

Owns the facts: the metric, what the rule was fitted on, what it promises. Counts and names only, never a row. Must not
know how a rule is found.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ._version import __version__
from .metrics.naming import PerOutput
from .problem import Problem
from .solvers import Estimate, Promise, Solution

__all__ = ["facts_of", "informed"]


def facts_of(problem: Problem) -> dict[str, Any]:
    """Return what every rule is to know of the problem that it was fitted to.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    dict
        `metric`, `average`, `rows`, `metricwise` (the version), with labels `class_counts`: for each output, the rows
        that show each of its classes; and `pos_label`, if the name of the metric does not say which class it is of.
    """
    facts: dict[str, Any] = {
        "metric": problem.aim.name,
        "average": problem.aim.average,
        "rows": problem.n_rows,
        "metricwise": __version__,
    }
    positive = _positive(problem.aim.metric)
    if positive is not None and "[" not in problem.aim.name:
        facts["pos_label"] = positive
    if problem.allowed is not None:
        facts["abstain"] = problem.allowed.said
    if problem.labelled:
        counts = problem.source.class_rows.round().astype(int).tolist()
        facts["class_counts"] = [row[:k] for row, k in zip(counts, problem.schema.n_classes.tolist(), strict=True)]
    return facts


def _positive(metric: Any) -> Any:
    """The class that a metric is of, or a list with that of each output; None if it names none that JSON has."""
    each = getattr(metric, "metrics", None) if isinstance(metric, PerOutput) and metric.kinds is None else None
    if each is not None:
        found = [_positive(own) for own in each]
        return None if None in found else found
    while hasattr(metric, "base"):  # scaled, or with abstentions
        metric = metric.base
    label = getattr(metric, "pos_label", None)
    return label if isinstance(label, (str, bool, int)) else None


def informed(solution: Solution) -> Solution:
    """Return the same solution, whose rule knows what it adds to argmax and what it promises.

    Parameters
    ----------
    solution : Solution
        As it is handed to the user.

    Returns
    -------
    Solution
        Facts of its rule, where they are known: `gain` and `value_on_new_rows` with their intervals, and `promises`.
    """
    facts: dict[str, Any] = {}
    for name in ("gain", "value_on_new_rows"):
        estimate = getattr(solution, name)
        if estimate is not None:
            facts[name] = _interval(estimate)
    if solution.constraints:
        facts["promises"] = [_promise(one) for one in solution.constraints]
    return replace(solution, rule=solution.rule.with_facts(**facts)) if facts else solution


def _interval(estimate: Estimate) -> dict[str, float | None]:
    values = {"estimate": estimate.estimate, "low": estimate.low, "high": estimate.high}
    return {name: _finite(value) for name, value in values.items()}


def _promise(promise: Promise) -> dict[str, Any]:
    numbers = {"low": promise.low, "high": promise.high, "value": promise.value, "confidence": promise.confidence}
    return {"name": promise.name, **{name: _finite(value) for name, value in numbers.items()}}


def _finite(value: float | None) -> float | None:
    """A number that JSON has; None where there is no bound."""
    return value if value is not None and math.isfinite(value) else None
