"""What a solver promises of a metric, by the form that it declares, beside the best of all rules that there are."""

from functools import partial

import numpy as np
import pytest

import metricwise as mw
import worlds
from laws.metric_records import RECORDS, exact_ratio, largest, make
from metricwise.metrics.aim import make_objective
from metricwise.metrics.averages import group_outputs
from metricwise.solvers import SOLVERS, Outcome

LABELS = {"confusion": "labels", "recalibrate": False}


def objective_of(metric, priors):
    """The objective of one output with these class priors."""
    sizes = np.array([len(priors)])
    grouping = group_outputs("micro", np.ones(1), sizes, np.ones(1))
    return make_objective(metric, grouping, np.asarray(priors)[None], sizes)


def serving(name, k):
    """The solvers that serve a metric of K classes, by what they declare."""
    objective = objective_of(make(name, k), np.full(k, 1 / k))
    return [solver for solver, cls in SOLVERS.items() if cls.needs.missing(objective) is None]


def settings_of(solver, name):
    """Optima of concave metrics are mixtures: those who can find them are asked to."""
    form = RECORDS[name].form if solver == "auto" else SOLVERS[solver].needs.form
    return {"randomized": True} if form in ("concave", "minimum") else {}


def check_promise(solver, name, solution, best, best_threshold):
    """Expected confusion: `best` of all deterministic rules, `best_threshold` of those that a binary output has."""
    form = RECORDS[name].form if solver == "auto" else SOLVERS[solver].needs.form
    if form in ("linear", "ratio"):
        assert solution.optimized_value == pytest.approx(best, abs=1e-9)
        if solution.upper_bound is None:
            assert RECORDS[name].vanishing
        else:
            assert best - 1e-9 <= solution.upper_bound <= best + 1e-5
        assert solution.outcome is Outcome.OPTIMAL
    elif form in ("concave", "minimum"):
        assert solution.optimized_value >= best - 1e-6
        assert solution.upper_bound >= best - 1e-9
        assert solution.gap <= 1e-5
        assert solution.outcome is Outcome.OPTIMAL
    elif solver != "auto" and SOLVERS[solver].needs.binary:
        assert solution.optimized_value == pytest.approx(best_threshold, abs=1e-9)
        assert solution.outcome is Outcome.OPTIMAL
    else:
        assert solution.optimized_value <= best + 1e-9
        assert solution.upper_bound is None or solution.upper_bound >= best - 1e-9
        if solver != "auto":
            assert solution.outcome in (Outcome.LOCAL, Outcome.NOT_CONVERGED)
            assert solution.upper_bound is None


def solve(problem, name, *, average=None, **settings):
    """Of metrics of one class, that of class 1, which every output has; settings are those of a strategy."""
    metric, strategy = make(name, max(problem.sizes), c=1), mw.Strategy(**settings)
    options = {"average": average, **problem.arguments()}
    return mw.optimize(problem.proba, problem.labels, metric, strategy=strategy, **options)


def check_path(problem, name, average):
    """With labels, the path finds the best rule of its family, and says so."""
    solution = solve(problem, name, average=average, solver="path", **LABELS)
    best = worlds.best_of_family(problem, partial(exact_ratio, name), partial(largest, name), average)
    assert solution.value == pytest.approx(best, abs=1e-9)
    assert solution.upper_bound == solution.value
