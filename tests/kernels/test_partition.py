"""The log-partition function: values against SciPy, derivatives against differences, the twins beside one another."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import worlds
from metricwise.data.probabilities import read_proba
from metricwise.kernels import _numpy, _partition
from metricwise.rules import calibration_fit, fit_link
from profiles import examples

try:
    from metricwise.kernels import _compiled
except ImportError:
    _compiled = None
needs_compiled = pytest.mark.skipif(_compiled is None, reason="the compiled kernels are not built")


@pytest.fixture(params=["numpy", pytest.param("compiled", marks=needs_compiled)])
def twin(request):
    return _numpy if request.param == "numpy" else _compiled


class Case:
    """Logits of several outputs, weights of which some are 0, resamples, classes that are not shown."""

    def __init__(self, seed, n, k, n_outputs=2, n_resamples=3, spread=3.0):
        rng = np.random.default_rng(seed)
        self.logits = rng.normal(size=(n_outputs, k - 1, n)) * spread
        self.weight = rng.random((n_outputs, n)) * (rng.random((n_outputs, n)) < 0.8)
        self.taken = rng.random((n_resamples, n)) < rng.random() if n_resamples else None
        jobs = [(r, m) for r in range(max(n_resamples, 1)) for m in range(n_outputs)]
        self.jobs = np.array([jobs[i] for i in rng.permutation(len(jobs))[: 1 + rng.integers(len(jobs))]])
        self.theta = rng.normal(size=(len(self.jobs), k))
        self.theta[:, 0] = np.exp(self.theta[:, 0])
        self.shown = rng.random(self.theta.shape) < 0.8
        self.shown[np.arange(len(self.jobs)), rng.integers(0, k, len(self.jobs))] = True

    def sums(self, twin, theta=None):
        theta = self.theta if theta is None else theta
        return twin.log_partition(self.logits, self.weight, self.taken, self.jobs, theta, self.shown)

    def value(self, theta, j):
        """The definition, row by row in SciPy's words."""
        resample, output = self.jobs[j]
        rows = slice(None) if self.taken is None else self.taken[resample]
        logits = np.concatenate([np.zeros((1, self.logits.shape[2])), self.logits[output]])[:, rows]
        scores = theta[0] * logits + np.append(0.0, theta[1:])[:, None]
        return self.weight[output, rows] @ logsumexp(scores[self.shown[j]], axis=0)


def differences(function, at, step):
    """Central differences in every direction, stacked first."""
    moves = np.eye(len(at)) * step
    return np.array([(function(at + move) - function(at - move)) / (2 * step) for move in moves])


@pytest.mark.parametrize("n_resamples", [0, 3])
@pytest.mark.parametrize("k", [2, 3, 5, 9])
@pytest.mark.parametrize("n", [1, 7, 130])
def test_values_and_derivatives(twin, n, k, n_resamples):
    case = Case(10 * n + k, n, k, n_resamples=n_resamples)
    value, gradient, hessian = case.sums(twin)

    def slope(at, j):
        theta = case.theta.copy()
        theta[j] = at
        return case.sums(twin, theta)[1][j]

    for j, theta in enumerate(case.theta):
        assert value[j] == pytest.approx(case.value(theta, j), rel=1e-12, abs=1e-12)
        scale = 1 + np.abs(hessian[j]).max()
        by_value = differences(lambda at, j=j: case.value(at, j), theta, 1e-5)
        np.testing.assert_allclose(gradient[j], by_value, atol=1e-6 * scale)
        by_slope = differences(lambda at, j=j: slope(at, j), theta, 1e-5)
        np.testing.assert_allclose(hessian[j], by_slope, atol=1e-6 * scale)


def test_scores_far_apart_neither_overflow_nor_vanish(twin):
    case = Case(0, 40, 4, spread=1e5)
    case.shown[:] = True
    for part in case.sums(twin):
        assert np.isfinite(part).all()
    for j, theta in enumerate(case.theta):
        assert case.sums(twin)[0][j] == pytest.approx(case.value(theta, j), rel=1e-12)


@needs_compiled
@examples(100)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 8, 127, 128, 129, 300, 5000, 20_000]),
    st.sampled_from([2, 3, 4, 5, 6, 9, 14]),
    st.integers(1, 3),
    st.integers(0, 3),
)
def test_twins_agree(seed, n, k, n_outputs, n_resamples):
    case = Case(seed, n, k, n_outputs, n_resamples)
    for one, other in zip(case.sums(_numpy), case.sums(_compiled), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * (1 + np.abs(one).max()))


def test_weights_of_very_many_classes_may_be_of_any_size(twin):
    case = Case(7, 60, 150, n_outputs=1, n_resamples=0)
    expected, weight = case.sums(twin), case.weight
    for size in (2.0**400, 2.0**-400):
        case.weight = size * weight
        for sums, whole in zip(case.sums(twin), expected, strict=True):
            np.testing.assert_allclose(sums / size, whole, rtol=1e-12)


@needs_compiled
def test_very_many_classes_are_passed_on():
    case = Case(1, 50, 140, n_outputs=1)
    for one, other in zip(case.sums(_numpy), case.sums(_compiled), strict=True):
        np.testing.assert_array_equal(one, other)


def test_few_rows_or_outputs_at_a_time_are_all_of_them(monkeypatch):
    case = Case(2, 300, 5, n_outputs=3)
    together = case.sums(_numpy)
    monkeypatch.setattr(_partition, "_BATCH", 1500)
    monkeypatch.setattr(_partition, "_ROOM", 200)
    for one, other in zip(together, case.sums(_numpy), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 128, 300])
def test_logits_are_relative_to_class_0(twin, dtype, n):
    rng = np.random.default_rng(n)
    eta = rng.dirichlet(np.ones(4), (n, 5)).astype(dtype)
    eta[: n // 2, :, 3] = 0
    outputs = np.array([3, 0, 4])
    expected = np.log(np.maximum(eta.astype(float), 1e-6))
    expected = expected[:, outputs, 1:3] - expected[:, outputs, :1]
    # Of four classes the last is padding here.
    result = twin.relative_logits(eta, outputs, 3, 1e-6)
    np.testing.assert_allclose(result, np.moveaxis(expected, 0, 2), atol=1e-12)
    p = eta[:, :, 0].astype(float)
    expected = np.log(np.maximum(p, 1e-6) / np.maximum(1 - p, 1e-6))[:, outputs]
    np.testing.assert_allclose(twin.relative_logits(eta[:, :, 0], outputs, 2, 1e-6)[:, 0], expected.T, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 128, 300])
def test_logits_without_a_floor_are_taken_as_they_are(twin, dtype, n):
    z = (np.random.default_rng(n).normal(size=(n, 5, 4)) * 30).astype(dtype)
    outputs = np.array([3, 0, 4])
    wide = z.astype(float)
    expected = wide[:, outputs, 1:3] - wide[:, outputs, :1]
    np.testing.assert_array_equal(twin.relative_logits(z, outputs, 3, 0.0), np.moveaxis(expected, 0, 2))
    np.testing.assert_array_equal(twin.relative_logits(z[:, :, 0], outputs, 2, 0.0)[:, 0], wide[:, outputs, 0].T)


@needs_compiled
@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("n", [20, 3000])
def test_twins_fit_the_same_link(monkeypatch, k, n):
    rng = np.random.default_rng(n + k)
    eta = rng.dirichlet(np.ones(k), n)
    y = worlds.draw_codes(eta, rng)
    bent = eta**2 / (eta**2).sum(axis=1, keepdims=True)
    links = []
    for twin in (_numpy, _compiled):
        for name in ("fit_links", "log_partition", "relative_logits", "tally"):
            monkeypatch.setattr(calibration_fit.kernels, name, getattr(twin, name))
        links.append(fit_link(read_proba(bent), y[:, None]))
    np.testing.assert_allclose(links[0].temperature, links[1].temperature, rtol=1e-10)
    np.testing.assert_allclose(links[0].bias, links[1].bias, atol=1e-10)
