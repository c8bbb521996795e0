"""Gradients with the class priors free to move, and summaries, against cell-by-cell differences of the value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.metric_cases import degenerate_counts, interior
from laws.metric_records import EVERY, make
from metricwise import metrics
from profiles import examples

OWN = {
    "function": metrics.from_function(lambda C: float(np.sqrt(C[0, 0] * C.sum(axis=1)[1]) + C[-1, 0] ** 2)),
    "function with a gradient": metrics.from_function(
        lambda C: float(np.trace(C) ** 2), gradient=lambda C: 2 * np.trace(C) * np.eye(len(C))
    ),
}


def by_cells(metric, confusion, step=1e-7):
    """Mass added to and taken from each cell in turn, the matrix scaled back to 1."""
    out = np.empty_like(confusion)
    for cell in np.ndindex(confusion.shape):
        ends = []
        for move in (step, -step):
            moved = confusion.copy()
            moved[cell] += move
            ends.append(float(metric.value(moved / moved.sum())))
        out[cell] = (ends[0] - ends[1]) / (2 * step)
    return out


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", [*EVERY, *OWN])
def test_free_gradient_is_that_of_every_cell(name, k):
    rng = np.random.default_rng([k, *name.encode()])
    for _ in range(5):
        confusion = interior(rng, k)
        metric = OWN[name] if name in OWN else make(name, k, zero_division=0.5)
        exact = metric._free_gradient(confusion)
        np.testing.assert_allclose(exact, by_cells(metric, confusion), rtol=1e-5, atol=1e-5)
        assert np.sum(exact * confusion) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", EVERY)
def test_free_gradient_by_a_formula_is_that_by_differences(name):
    """The way that a metric without formulas of its own goes."""
    rng = np.random.default_rng(list(name.encode()))
    confusion, metric = interior(rng, 4), make(name, 4)

    class Plain(metrics.Metric):
        def bind(self, priors, classes=None):
            return metric.bind(priors, classes)

    np.testing.assert_allclose(
        metric._free_gradient(confusion), Plain()._free_gradient(confusion), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("name", EVERY)
@examples(30)
@given(counts=degenerate_counts(3), zero_division=st.sampled_from([0.0, 1.0]))
def test_free_gradient_is_finite_and_zero_in_empty_rows(name, counts, zero_division):
    confusion = counts / counts.sum()
    slope = make(name, 3, zero_division)._free_gradient(confusion)
    assert np.isfinite(slope).all()
    assert not slope[counts.sum(axis=1) == 0].any()


def test_a_mean_that_is_zero_stays_so_whatever_other_recalls_do():
    confusion = np.array([[0.3, 0.1, 0.0], [0.3, 0.0, 0.1], [0.0, 0.0, 0.2]])
    for name in ("g_mean", "h_mean"):
        assert not make(name, 3)._free_gradient(confusion).any()


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", [*EVERY, *OWN])
def test_a_summary_says_all_that_a_metric_looks_at(name, k):
    rng = np.random.default_rng([2, k, *name.encode()])
    first, second = interior(rng, k), interior(rng, k)
    priors = first.sum(axis=1)
    second *= (priors / second.sum(axis=1))[:, None]
    bound = (OWN[name] if name in OWN else make(name, k)).bind(priors)
    ends = bound.summary(first), bound.summary(second)
    middle = 0.3 * first + 0.7 * second
    np.testing.assert_allclose(bound.summary(middle), 0.3 * ends[0] + 0.7 * ends[1], atol=1e-15)
    assert bound.value_at(bound.summary(middle)) == pytest.approx(float(bound.value(middle)), abs=1e-14)
    slope = bound.slope_at(bound.summary(middle))
    along = np.sum(bound.gradient(middle) * (second - first))
    assert np.sum(slope * (ends[1] - ends[0])) == pytest.approx(along, rel=1e-9, abs=1e-12)
    form = bound.gradient_parts(slope)
    matrix = form[0] if len(form) == 1 else np.diag(form[0]) + form[1]
    assert np.sum(matrix * (second - first)) == pytest.approx(along, rel=1e-9, abs=1e-12)
