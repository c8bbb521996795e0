"""Bounds that are not convex: what is said of them, and their half-spaces against finite differences."""

import numpy as np
import pytest

from metricwise import metrics
from metricwise.goals.constraint import Constraint, ConstraintSystem, PooledConstraint

PRIORS = np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize(
    ("metric", "ends", "convex"),
    [
        (metrics.Recall(index=0), {"low": 0.5, "high": 0.6}, True),
        (metrics.Precision(index=0), {"high": 0.6}, True),
        (metrics.Decathlon(), {"low": 0.1}, True),
        (metrics.GMean(), {"low": 0.5}, True),
        (metrics.GMean(), {"high": 0.5}, False),
        (metrics.GMean(), {"low": 0.2, "high": 0.5}, False),
        (metrics.MCC(), {"low": 0.5}, False),
        (metrics.get_metric("macro_f1"), {"low": 0.5}, False),
        (metrics.from_function(lambda C: C[0, 0]), {"low": 0.1}, False),
        (metrics.from_function(lambda C: C[0, 0], concave=True), {"low": 0.1}, True),
    ],
)
def test_which_bounds_are_convex(metric, ends, convex):
    bound = Constraint(metric, **ends).bind(PRIORS)
    limits = ConstraintSystem((PooledConstraint(bound, np.ones(1)),))
    assert bound.convex is convex
    assert limits.convex is convex


@pytest.mark.parametrize("name", ["macro_f1", "mcc", "macro_precision", "g_mean"])
def test_half_spaces_are_those_of_the_linearised_metric(name):
    rng = np.random.default_rng(0)
    C, other = (PRIORS[:, None] * rng.dirichlet(np.ones(3), 3) for _ in range(2))
    metric = metrics.get_metric(name)
    bound = Constraint(metric, low=0.2, high=0.4).bind(PRIORS)
    floor, ceiling = bound.linearised(C)
    step = 1e-6
    rise = (metric.value(C + step * (other - C)) - metric.value(C - step * (other - C))) / (2 * step)
    linear = float(metric.value(C) + rise)
    assert np.sum(floor.A * other) - floor.level == pytest.approx(linear - 0.2, abs=1e-5)
    assert np.sum(ceiling.A * other) - ceiling.level == pytest.approx(0.4 - linear, abs=1e-5)
    assert floor.holds(C[None]) == bool(metric.value(C) >= 0.2)
    assert ceiling.holds(C[None]) == bool(metric.value(C) <= 0.4)
