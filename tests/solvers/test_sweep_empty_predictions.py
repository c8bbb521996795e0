"""A prediction that is empty is seen to be empty, whatever rounding leaves of sums of weights."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metricwise as mw
from engines import counts
from metricwise.data.probabilities import read_proba
from metricwise.kernels.sums import sums_to_zero
from metricwise.metrics import ClassAverage, Precision
from metricwise.metrics.aim import make_objective
from metricwise.metrics.averages import group_outputs
from metricwise.solvers.path import Path
from metricwise.solvers.sweep import Sweep
from profiles import examples

WEIGHT = st.sampled_from([1e-6, 0.1, 0.2, 0.3, 0.7, 1.0, 1 / 3, 12345.678, 1e6])


@given(st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_sums_to_zero_are_near_the_exact_ones_and_end_at_zero(changes):
    exact = [Fraction(change) for change in changes]
    start = -sum(exact, Fraction())
    sums = sums_to_zero(float(start), np.array(changes))
    assert sums[-1] == 0
    for t, found in enumerate(sums):
        true = start + sum(exact[:t], Fraction())
        less = min(
            abs(start) + sum(map(abs, exact[:t]), Fraction()),
            sum(map(abs, exact[t:]), Fraction()),
        )
        assert abs(Fraction(float(found)) - true) <= 40 * Fraction(2) ** -52 * less


def weighted_rows(n, k, seed):
    """Rows whose weights differ by many orders; the surest row of class 1 is heavy, and of another class."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(k), size=n)
    y = rng.integers(0, k, size=n)
    weight = np.exp(rng.normal(0, 4, size=n))
    surest = proba[:, 1].argmax()
    y[surest], weight[surest] = 0, 10 * weight.max()
    return proba, y, weight


def oracle_of(proba, y, weight, counted):
    read = read_proba(proba)
    return counts(read, y[:, None], weight, counted)


@pytest.mark.parametrize("counted", ["labels", "expected", "blended"])
@pytest.mark.parametrize("n", [3_000, 40_000])
@pytest.mark.parametrize("solver", [Sweep(), Path()])
def test_precision_of_nothing_is_what_zero_division_says(counted, n, solver):
    for k in [2] if isinstance(solver, Sweep) else [2, 3]:
        for seed in range(3):
            proba, y, weight = weighted_rows(n, k, seed)
            oracle = oracle_of(proba, y, weight, counted)
            grouping = group_outputs("micro", oracle.weight, oracle.n_classes, np.ones(1))
            metric = Precision(index=1, zero_division=1.0)
            objective = make_objective(metric, grouping, oracle.priors, oracle.n_classes)
            solution = solver.solve(oracle, objective)
            assert solution.value == 1
            assert not solution.confusion[0, :, 1].any()


class Heard:
    """An oracle that keeps what its walk returned."""

    def __init__(self, oracle):
        self.oracle = oracle

    def __getattr__(self, name):
        return getattr(self.oracle, name)

    def walk(self, *arguments):
        self.found = self.oracle.walk(*arguments)
        return self.found


@pytest.mark.parametrize("counted", ["labels", "expected", "blended"])
@pytest.mark.parametrize("n", [300, 40_000])
@pytest.mark.parametrize("metric", [Precision(index=1, zero_division=1.0), ClassAverage(Precision())])
def test_the_last_interval_of_a_sweep_is_empty(counted, n, metric, monkeypatch):
    monkeypatch.setattr(
        "metricwise.solvers.sweep._MAX_SEPARATE_GROUPS", 0
    )  # all intervals are listed, not those near the best alone
    proba, y, weight = weighted_rows(n, 2, 0)
    oracle = Heard(oracle_of(proba, y, weight, counted))
    grouping = group_outputs("micro", oracle.weight, oracle.n_classes, np.ones(1))
    Sweep().solve(oracle, make_objective(metric, grouping, oracle.priors, oracle.n_classes))
    last = np.isinf(oracle.found.upper)
    assert last.any()
    assert not oracle.found.values[last].any()


def best_threshold(p, y, weight, zero_division, average):
    """The best precision (of class 1, or the mean of both classes) over all thresholds, by exact sums."""

    def precision(chosen, hits):
        below = math.fsum(weight[chosen])
        return zero_division if below == 0 else math.fsum(weight[chosen & hits]) / below

    values = []
    for threshold in [-1.0, *p]:
        one = p > threshold
        values.append(precision(one, y == 1))
        if average:
            values[-1] = (values[-1] + precision(~one, y == 0)) / 2
    return max(values)


@pytest.mark.filterwarnings("ignore:optimize. Precision of")
@examples(200)
@given(st.data())
def test_weighted_precision_against_every_threshold(data):
    n = data.draw(st.integers(3, 12))
    p = np.array(data.draw(st.lists(st.integers(0, 20), min_size=n, max_size=n))) / 20
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    y[:2] = 0, 1
    weight = np.array(data.draw(st.lists(WEIGHT, min_size=n, max_size=n)))
    zero_division = data.draw(st.sampled_from([0.0, 0.5, 1.0]))
    average = data.draw(st.booleans())
    one = Precision(index=None if average else 1, zero_division=zero_division)
    metric = ClassAverage(one) if average else one
    found = mw.optimize(
        p, y, metric, sample_weight=weight, strategy=mw.Strategy(confusion="labels", recalibrate=False, solver="sweep")
    )
    assert found.value == pytest.approx(best_threshold(p, y, weight, zero_division, average), abs=1e-9)
