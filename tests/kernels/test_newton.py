"""Fits of links: the minimum against SciPy, the twins beside one another."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from metricwise import kernels
from metricwise.kernels import _newton, _numpy
from profiles import examples

try:
    from metricwise.kernels import _compiled
except ImportError:
    _compiled = None
needs_compiled = pytest.mark.skipif(_compiled is None, reason="the compiled kernels are not built")


@pytest.fixture(params=["numpy", pytest.param("compiled", marks=needs_compiled)])
def twin(request):
    return _numpy if request.param == "numpy" else _compiled


def fits_of(seed, n, k, n_outputs=2, n_resamples=3, scale_strength=0.0):
    """Fits to labels drawn from other probabilities than those given; a class may have no label."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_outputs, k - 1, n)) * rng.uniform(0.3, 4)
    codes = rng.integers(0, k, (n_outputs, n))
    codes[rng.random(codes.shape) < 0.3] = 0
    weight = rng.random((n_outputs, n)) * (rng.random((n_outputs, n)) < 0.8)
    taken = rng.random((n_resamples, n)) < 0.7 if n_resamples else None
    jobs = np.array([(r, m) for r in range(max(n_resamples, 1)) for m in range(n_outputs)])
    labels = np.zeros((len(jobs), k))
    for j, (r, m) in enumerate(jobs):
        w = weight[m] * (1.0 if taken is None else taken[r])
        labels[j] = [w @ (codes[m] == c) for c in range(k)]
    shown, scale = labels > 0, rng.uniform(0.5, 1.5, len(jobs))
    z = np.concatenate([np.zeros((n_outputs, 1, n)), logits], axis=1)
    true = np.take_along_axis(z, codes[:, None], axis=1)[:, 0] * weight
    for j, (r, m) in enumerate(jobs):
        labels[j, 0] = (true[m] * (1.0 if taken is None else taken[r])).sum()
    form = np.eye(k) - 1.0 / k
    form[0] = form[:, 0] = 0.0
    form[0, 0] = 0.0 if scale_strength else 1.0
    center = np.append(1.0, rng.normal(size=k - 1) * 0.1)
    return kernels.LinkFits(
        logits,
        weight,
        taken,
        jobs,
        shown,
        scale,
        labels * scale[:, None],
        center,
        form,
        scale_strength,
        np.full(len(jobs), 0.05),
    )


def value(fits, theta, j):
    """The definition, in SciPy's words."""
    r, m = fits.jobs[j]
    weight = fits.weight[m] * (1.0 if fits.taken is None else fits.taken[r])
    z = np.concatenate([np.zeros((1, fits.logits.shape[2])), fits.logits[m]])
    scores = (theta[0] * z + np.append(0.0, theta[1:])[:, None])[fits.shown[j]]
    away = theta - fits.center
    total = fits.scale[j] * (weight @ logsumexp(scores, axis=0)) - theta @ fits.labels[j]
    return total + 0.5 * away @ fits.penalty @ away + 0.5 * fits.scale_strength * np.log(theta[0] / fits.center[0]) ** 2


@pytest.mark.parametrize("scale_strength", [0.0, 3.0])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_the_minimum_is_that_of_scipy(twin, k, scale_strength):
    fits = fits_of(k, 60, k, scale_strength=scale_strength)
    theta = twin.fit_links(fits, np.tile(fits.center, (len(fits.jobs), 1)))
    for j in np.flatnonzero(~fits.fixed):
        found = minimize(lambda t, j=j: value(fits, t, j), theta[j], bounds=[(0.05, None), *[(None, None)] * (k - 1)])
        assert value(fits, theta[j], j) <= found.fun + 1e-8
        best = minimize(lambda t, j=j: value(fits, t, j), fits.center, bounds=[(0.05, None), *[(None, None)] * (k - 1)])
        assert value(fits, theta[j], j) == pytest.approx(best.fun, abs=1e-5)


@needs_compiled
@examples(100)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 8, 129, 1000, 40_000]),
    st.sampled_from([2, 3, 5, 9]),
    st.integers(0, 3),
    st.sampled_from([0.0, 2.0]),
)
def test_twins_agree(seed, n, k, n_resamples, scale_strength):
    fits = fits_of(seed, n, k, n_resamples=n_resamples, scale_strength=scale_strength)
    start = np.tile(fits.center, (len(fits.jobs), 1))
    one, other = (twin.fit_links(fits, start) for twin in (_numpy, _compiled))
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    free = np.flatnonzero(~fits.fixed)
    values = [[value(fits, thetas[j], j) for j in free] for thetas in (one, other)]
    np.testing.assert_allclose(*values, rtol=1e-10, atol=1e-8)
    np.testing.assert_array_equal(start, np.tile(fits.center, (len(fits.jobs), 1)))  # is not changed


def test_a_temperature_is_held_to_its_bound(twin):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(1, 1, 300)) * 5
    positive = z[0, 0] < 0  # the model is upside down
    labels = np.array([[z[0, 0][positive].sum(), positive.sum()]])
    weight, jobs, shown = np.ones((1, 300)), np.zeros((1, 2), dtype=np.intp), np.ones((1, 2), dtype=bool)
    form = np.diag([1.0, 0.5])
    fits = kernels.LinkFits(
        z, weight, None, jobs, shown, np.ones(1), labels, np.eye(1, 2)[0], form, 0.0, np.full(1, 0.05)
    )
    theta = twin.fit_links(fits, np.array([[1.0, 0.0]]))
    assert theta[0, 0] == 0.05
    gradient = fits.evaluate(twin.log_partition, theta, np.zeros(1, dtype=np.intp))[1]
    assert gradient[0, 0] > 0
    assert abs(gradient[0, 1]) < 1e-4


def test_fits_with_nothing_to_learn_from_change_nothing(twin):
    fits = fits_of(1, 50, 3)
    shown = fits.shown.copy()
    shown[1, :2] = False
    theta = twin.fit_links(fits._replace(shown=shown), np.tile(fits.center, (len(fits.jobs), 1)))
    assert theta[1].tolist() == [1.0, 0.0, 0.0]


@needs_compiled
def test_a_singular_hessian_is_left_to_the_twin(monkeypatch):
    fits = fits_of(2, 20, 3)
    fits = fits._replace(penalty=np.full((3, 3), np.nan))
    asked = []
    monkeypatch.setattr(_newton, "fit_links", lambda *args: asked.append(args))
    _compiled.fit_links(fits, np.tile(fits.center, (len(fits.jobs), 1)))
    assert len(asked) == 1
