"""A thousand classes: what calls hold besides their input, and that nothing grows with a power of K that need not."""

import tracemalloc

import numpy as np
import pytest

import metricwise as mw
import worlds
from metricwise import kernels
from metricwise.core import confusion

K = 1000
LIMIT = 250e6  # bytes; a confusion matrix of these classes has 8e6
compiled_only = pytest.mark.skipif(
    kernels.in_use() == "numpy", reason="the same memory, and minutes of NumPy passes over 1,000 classes"
)


def peak(call):
    tracemalloc.start()
    try:
        result = call()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def rows():
    """Probabilities that are right about one row in two, and labels of all classes."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(2 * K) % K)
    scores = rng.normal(size=(2 * K, K))
    scores[np.arange(2 * K), y] += 3.5
    return worlds.softmax(scores), y


FIXED = ["accuracy", "macro_f1", "balanced_accuracy", "g_mean", "min_recall", "kappa", "mcc", "micro_f1"]
SLOW = {"kappa": pytest.mark.slow, "micro_f1": pytest.mark.slow}  # to walk along 1,000 classes takes seconds


@compiled_only
@pytest.mark.parametrize("confusion", ["labels", "expected"])
@pytest.mark.parametrize("metric", [pytest.param(name, marks=SLOW.get(name, [])) for name in FIXED])
def test_solvers(rows, metric, confusion):
    if metric == "g_mean":
        metric = "q_mean"  # the same way; with two rows per class the geometric mean is 0 and nothing is left to climb
    proba, y = rows
    fit = lambda: mw.optimize(proba, y, metric, strategy=mw.Strategy(confusion=confusion, recalibrate=False, tol=1e-3))  # noqa: E731
    solution, used = peak(fit)
    assert used < LIMIT, f"{used / 1e6:.0f} MB"
    assert solution.value >= solution.baseline - 1e-9


@pytest.mark.parametrize("metric", [*FIXED, "quadratic_kappa", "macro_recall", "h_mean", "f1_weighted"])
def test_sampling_errors(rows, metric):
    """The gradient with priors free to move is what an influence needs, once per recipe and fold."""
    proba, y = rows
    C = confusion.from_predictions(y[:, None], proba.argmax(axis=1)[:, None], K)[0] / len(y)
    aim = mw.metrics.get_metric({"f1_weighted": "weighted_f1"}.get(metric, metric))
    slope, used = peak(lambda: aim._free_gradient(C))
    assert used < LIMIT, f"{used / 1e6:.0f} MB"
    assert np.isfinite(slope).all()


def test_the_link(rows):
    from metricwise.data.probabilities import read_proba
    from metricwise.rules import fit_link

    proba, y = rows
    link, used = peak(lambda: fit_link(read_proba(proba), y[:, None]))
    assert used < LIMIT, f"{used / 1e6:.0f} MB"
    assert link.temperature[0] > 0


@pytest.mark.slow
@compiled_only
def test_a_default_call(rows):
    proba, y = rows[0][:K], rows[1][:K]
    solution, used = peak(lambda: mw.optimize(proba, y, "macro_f1", classes=range(K)))
    assert used < LIMIT, f"{used / 1e6:.0f} MB"
    assert solution.gain is not None


def test_recipes_of_full_losses_are_compared_on_fewer_rows(rows):
    """A row costs as the square of its classes there."""
    from metricwise.fitting.selection import _max_rows
    from problems import read_problem

    proba, y = rows
    assert _max_rows(read_problem(proba, y, "quadratic_kappa")) == 2 * K
    assert _max_rows(read_problem(proba, y, "kappa")) == _max_rows(read_problem(proba, y, "macro_f1")) == 20_000
