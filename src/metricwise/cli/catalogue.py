"""What metrics there are: from the registry, their docstrings, and the solvers that would serve them."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from ..fitting.solving import choose_solver
from ..metrics.aim import Aim
from ..metrics.base import Metric
from ..metrics.one_vs_rest import ClassAverage
from ..metrics.registry import get_metric, metric_names, needed_parameter
from ..solvers import SOLVERS

__all__ = ["Entry", "catalogue", "entry"]

_PRIORS = np.array([[0.5, 0.3, 0.2]])  # any three classes: of two, all thresholds are tried
_EXAMPLES = {"class_weight": [1.0, 2.0, 3.0], "cost": 1.0 - np.eye(3), "beta": 2.0}
# By the form that the solver needs which would be chosen.
_OPTIMUM = {
    "linear": "linear: exact, in closed form",
    "ratio": "a ratio: exact, along a path of rules",
    "concave": "concave: the best mixture of rules, with a certificate, and the best single one found",
    "minimum": "a minimum: the best mixture of rules, by linear programmes, and the best single one found",
    "any": "no special form: local search from several starts",
}


@dataclass(frozen=True)
class Entry:
    """A metric: its name, what it is, more of that, the solver that serves three classes or more, and in words."""

    name: str
    about: str
    details: str
    solver: str
    optimum: str


def catalogue() -> list[Entry]:
    """Return all metrics that have a name of ours.

    Examples
    --------
    >>> from metricwise.cli.catalogue import catalogue
    >>> {one.name: one.solver for one in catalogue()}["quadratic_kappa"]
    'path'
    """
    return [entry(name) for name in metric_names()]


def entry(name: str) -> Entry:
    """Return what there is to say of a metric."""
    needed = needed_parameter(name)
    parameters: dict[str, Any] = {} if needed is None else {needed: _EXAMPLES[needed]}
    metric = get_metric(name, **parameters)
    objective = Aim(metric._with_positive(1) if metric.traits.needs_positive else metric, "micro", np.ones(1)).bind(
        _PRIORS, np.ones(1), np.array([3]), [np.arange(3)]
    )
    oracle: Any = SimpleNamespace(certified=True)
    solver = choose_solver(oracle, objective)
    about, details = _words(metric)
    if needed is not None:
        about += " Needs a table of costs: --cost FILE." if needed == "cost" else f" Needs {needed}, in Python only."
    return Entry(name, about, details, solver, _OPTIMUM[SOLVERS[solver].needs.form])


def _words(metric: Metric) -> tuple[str, str]:
    """Return the first paragraph of the docstring of a metric, with the settings that make it, and the others."""
    if isinstance(metric, ClassAverage):
        about, details = _words(cast(Metric, metric.base))
        how = {"macro": "Mean over the classes", "weighted": "Mean over the classes, weighted by their rows"}
        return f"{how[metric.average]}: {about}", details
    text = (type(metric).__doc__ or "").split("Parameters\n")[0].split("References\n")[0].split("Examples\n")[0]
    about, *rest = [_plain(paragraph) for paragraph in text.split("\n\n") if paragraph.strip()]
    settings = [
        f"{one.name} = {getattr(metric, one.name)}"
        for one in fields(cast(Any, metric))
        if isinstance(getattr(metric, one.name), str) and getattr(metric, one.name) != one.default
    ]
    return about + (f" Here {', '.join(settings)}." if settings else ""), " ".join(rest)


def _plain(text: str) -> str:
    """Return a paragraph of a docstring as plain text on one line."""
    return " ".join(re.sub(r":\w+:`~?([^`]*)`", r"\1", text).replace("`", "").split())
