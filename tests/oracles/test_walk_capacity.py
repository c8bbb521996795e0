"""Exact where not all changes of decisions can be held: bins first, then those near the best; else Dinkelbach."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import metricwise as mw
import worlds
from engines import rows_served_by
from metricwise.data.sources.chunked import ChunkedSource
from metricwise.data.sources.memory import MemorySource
from metricwise.oracles.base import TooManyChangesError
from problems import with_strategy

RATIOS = ["micro_f1", "quadratic_kappa", "f1", "kappa"]


def draw(n, k, decimals, seed):
    eta, y = worlds.multiclass(n, np.linspace(0.4, 1, k), seed=seed)
    if decimals is not None:
        eta = eta.round(decimals)
        eta[:, 0] += 1 - eta.sum(axis=1)
        eta = np.abs(eta)
    return worlds.normalized(eta), y


def optimize_within(capacity, *args, **options):
    """Optimise over chunks of which so many changes may be held."""

    def source(rows, schema):
        chunks = ChunkedSource.of(MemorySource(rows, schema), 700)
        return replace(chunks, most=capacity)

    with rows_served_by(source):
        return mw.optimize(*args, **with_strategy(recalibrate=False, **options))


@pytest.mark.parametrize("confusion", ["labels", "expected"])
@pytest.mark.parametrize("decimals", [None, 2])
@pytest.mark.parametrize("metric", RATIOS)
def test_the_optimum_is_that_of_memory(metric, decimals, confusion):
    k = 2 if metric == "f1" else 3
    eta, y = draw(12_000, k, decimals, seed=len(metric))
    whole = mw.optimize(eta, y, metric, strategy=mw.Strategy(confusion, recalibrate=False))
    found = optimize_within(2_000, eta, y, metric, confusion=confusion)
    assert found.value == pytest.approx(whole.value, abs=1e-12)
    assert found.outcome == whole.outcome
    assert "memory limit" not in found.status


@pytest.mark.parametrize("metric", RATIOS)
def test_without_room_dinkelbach_serves_and_says_so(metric):
    k = 2 if metric == "f1" else 3
    eta, y = draw(9_000, k, None, seed=1)
    whole = mw.optimize(eta, y, metric, strategy=mw.Strategy("expected", recalibrate=False))
    found = optimize_within(3, eta, y, metric, confusion="expected")
    assert found.optimized_value == pytest.approx(whole.optimized_value, abs=1e-9)  # both are optimal over all rules
    assert "Not exact: the best rule is among" in found.status
    assert "memory limit" in found.status
    if whole.upper_bound is not None:
        assert found.optimized_value - 1e-12 <= found.upper_bound <= whole.optimized_value + 1e-5


def test_any_metric_of_a_binary_output_without_room():
    eta, y = draw(9_000, 2, None, seed=2)
    metric = mw.metrics.from_function(lambda C: C[0, 0] - C[1, 0] ** 2 + C[1, 1] * C[0, 1])
    found = optimize_within(3, eta[:, 1], y, metric, confusion="labels")
    assert found.value >= found.baseline
    assert "Not exact: the best rule is among" in found.status


def test_a_solver_that_is_named_says_what_it_lacks():
    eta, y = draw(9_000, 3, None, seed=3)
    with pytest.raises(TooManyChangesError, match=r"the memory limit allows only 3; raise it, or use a solver"):
        optimize_within(3, eta, y, "micro_f1", confusion="labels", solver="path")


def test_the_error_travels():
    error = pickle.loads(pickle.dumps(TooManyChangesError(10, 3)))  # noqa: S301  # our own
    assert (error.n_changes, error.capacity) == (10, 3)
