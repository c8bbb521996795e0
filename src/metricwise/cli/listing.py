"""The command that lists the metrics, from the registry, their docstrings and the solvers that serve them: metrics."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from .options import Json
from .printing import print_json, print_table, say

__all__ = ["Entry", "entry", "metrics"]

# By the form that the solver needs which would be chosen.
_OPTIMUM = {
    "linear": "linear: exact, in closed form",
    "ratio": "a ratio: exact, along a path of rules",
    "concave": "concave: the best mixture of rules, with a certificate, and the best single one found",
    "minimum": "a minimum: the best mixture of rules, by linear programmes, and the best single one found",
    "any": "no special form: local search from several starts",
}


def metrics(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show only this metric, in detail.")] = None,
    json: Json = False,
) -> None:
    """List all metrics.

    Prints the definition of each metric and how it is maximised.
    """
    from ..metrics.registry import metric_names

    entries = [entry(metric) for metric in (metric_names() if name is None else [name])]
    if json:
        print_json({"metrics": [vars(listed) for listed in entries]})
    elif name is None:
        print_table(
            ["metric", "definition", "how it is maximised"],
            [[listed.name, listed.about, listed.optimum] for listed in entries],
        )
        say(
            "By default, rules are chosen for new data: with two classes, the threshold may differ slightly from the "
            "best one on the given rows. Further names: f2, f0.5 and so on are F-measures; scikit-learn's scorer names "
            "have the same meaning as there; a metric of one class may name the class, as in recall[urgent]; coverage "
            "and abstained are for rules that may abstain."
        )
    else:
        (listed,) = entries
        say(f"{listed.name}: {listed.about}\n{listed.details}\nIts best rule: {listed.optimum}.")


@dataclass(frozen=True)
class Entry:
    """A metric: name, summary, details, the solver for three classes or more, and how its best rule is found."""

    name: str
    about: str
    details: str
    solver: str
    optimum: str


def entry(name: str) -> Entry:
    """Return the entry of a metric.

    Examples
    --------
    >>> from metricwise.cli.listing import entry
    >>> entry("quadratic_kappa").solver
    'path'
    """
    import numpy as np

    from ..fitting.solving import choose_solver
    from ..metrics.aim import AveragedMetric
    from ..metrics.registry import get_metric, needed_parameter
    from ..solvers import SOLVERS

    examples = {"class_weight": [1.0, 2.0, 3.0], "cost": 1.0 - np.eye(3), "beta": 2.0}
    needed = needed_parameter(name)
    parameters: dict[str, Any] = {} if needed is None else {needed: examples[needed]}
    metric = get_metric(name, **parameters)
    # Any three classes: with two, all thresholds are tried.
    objective = AveragedMetric(
        metric._with_positive(1) if metric.traits.needs_positive else metric, "micro", np.ones(1)
    ).bind(np.array([[0.5, 0.3, 0.2]]), np.ones(1), np.array([3]), [np.arange(3)])
    oracle: Any = SimpleNamespace(certified=True)
    solver = choose_solver(oracle, objective)
    about, details = _description(metric)
    if needed is not None:
        about += " Needs a table of costs: --cost FILE." if needed == "cost" else f" Needs {needed}, in Python only."
    return Entry(name, about, details, solver, _OPTIMUM[SOLVERS[solver].needs.form])


def _description(metric: Any) -> tuple[str, str]:
    """Return the first paragraph of a metric's docstring with its settings, and the other paragraphs."""
    from ..metrics.one_vs_rest import ClassAverage

    if isinstance(metric, ClassAverage):
        about, details = _description(metric.base)
        how = {"macro": "Mean over the classes", "weighted": "Mean over the classes, weighted by their rows"}
        return f"{how[metric.average]}: {about}", details
    text = (type(metric).__doc__ or "").split("Parameters\n")[0].split("References\n")[0].split("Examples\n")[0]
    about, *rest = [_without_markup(paragraph) for paragraph in text.split("\n\n") if paragraph.strip()]
    settings = [
        f"{setting.name} = {getattr(metric, setting.name)}"
        for setting in fields(metric)
        if isinstance(getattr(metric, setting.name), str) and getattr(metric, setting.name) != setting.default
    ]
    return about + (f" Here {', '.join(settings)}." if settings else ""), " ".join(rest)


def _without_markup(text: str) -> str:
    """Return a paragraph of a docstring as text on one line."""
    return " ".join(re.sub(r":\w+:`~?([^`]*)`", r"\1", text).replace("`", "").split())
