"""Shares of maximum likelihood: against the EM algorithm, grids, and simulated samples."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from metricwise.monitoring.mixing import InfluenceSums, LikelihoodRatio, Mixing, ShareInfluence, maximise_shares
from worlds.gaussian import GaussianWorld


def expectation_maximisation(ratios, old, deflation, prior_rows, n_steps=20_000):
    """The EM algorithm with a Dirichlet prior around the old shares, as it is printed."""
    shares, pseudo = old.copy(), prior_rows * len(old)
    for _ in range(n_steps):
        responsible = ratios * shares
        responsible /= responsible.sum(axis=1, keepdims=True)
        new = (deflation * responsible.sum(axis=0) + pseudo * old) / (deflation * len(ratios) + pseudo)
        if np.abs(new - shares).max() < 1e-14:
            break
        shares = new
    return shares


def mixing(world, rng, n_rows, shares, deflation=1.0):
    x, _ = world.draw(rng, n_rows, shares)
    return Mixing(world.posterior(x) / world.shares, world.shares, deflation)


@pytest.mark.parametrize("prior_rows", [0.0, 3.0])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_newton_reaches_the_fixed_point_of_em(k, prior_rows):
    rng = np.random.default_rng(k)
    world = GaussianWorld.draw_world(rng, k)
    rows = mixing(world, rng, 800, rng.dirichlet(np.full(k, 2.0)), deflation=0.6)
    expected = expectation_maximisation(rows.ratios, rows.old, 0.6, prior_rows)
    assert np.abs(maximise_shares(rows, prior_rows) - expected).max() < 1e-6


def test_a_grid_finds_nothing_better():
    rng = np.random.default_rng(0)
    rows = mixing(GaussianWorld.draw_world(rng, 2), rng, 300, np.array([0.3, 0.7]))
    best = rows.log_likelihood(maximise_shares(rows, 0.0))
    grid = np.linspace(0.001, 0.999, 999)
    assert best >= max(rows.log_likelihood(np.array([1 - p, p])) for p in grid) - 1e-9


def test_a_class_that_no_row_is_of_gets_next_to_nothing_without_a_prior_and_a_little_with_one():
    ratios = np.tile([1.0, 0.2], (500, 1))
    rows = Mixing(ratios, np.array([0.5, 0.5]))
    assert maximise_shares(rows, 0.0)[1] < 1e-6
    assert 0.5 * 6 / 506 * 0.5 < maximise_shares(rows, 3.0)[1] < 0.02


@pytest.mark.slow
def test_p_values_are_uniform_where_nothing_moved():
    rng = np.random.default_rng(1)
    p_values = []
    for _ in range(400):
        world = GaussianWorld.draw_world(rng, 3)
        p_values.append(LikelihoodRatio.of(mixing(world, rng, 400, world.shares)).p_value)
    assert kstest(p_values, "uniform").pvalue > 0.001


def test_the_p_value_is_that_of_the_chi_square_distribution():
    rng = np.random.default_rng(2)
    test = LikelihoodRatio.of(mixing(GaussianWorld.draw_world(rng, 4), rng, 300, np.full(4, 0.25), deflation=0.5))
    assert test.p_value == pytest.approx(chi2(3).sf(test.statistic), rel=1e-9)


def test_the_influence_of_rows_is_the_spread_of_samples():
    rng = np.random.default_rng(3)
    world, shares = GaussianWorld.draw_world(rng, 3), np.array([0.2, 0.3, 0.5])
    samples = [mixing(world, rng, 2000, shares) for _ in range(150)]
    spread = np.cov(np.array([maximise_shares(rows, 0.0) for rows in samples]).T)
    rows = samples[0]
    formula = InfluenceSums.of(rows.ratios, maximise_shares(rows, 0.0), np.zeros_like(rows.ratios)).covariance(
        maximise_shares(rows, 0.0), None
    )
    assert np.allclose(np.sqrt(np.diag(formula)), np.sqrt(np.diag(spread)), rtol=0.25)


def test_the_influence_of_the_calibration_is_a_finite_difference():
    rng = np.random.default_rng(4)
    world, shares = GaussianWorld.draw_world(rng, 3), np.array([0.5, 0.2, 0.3])
    x, _ = world.draw(rng, 1500, shares)
    z = world.logits(x)
    z = z - z[:, :1]

    def ratios(t, a):
        eta = np.exp(t * z + np.append(0.0, a))
        return Mixing(eta / eta.sum(axis=1, keepdims=True), world.shares)

    a, step = np.array([0.1, -0.2]), 1e-5
    best = maximise_shares(ratios(0.8, a), 0.0)
    formula = ShareInfluence.of(ratios(0.8, a), best, z).of_parameters
    for column, change in enumerate(np.eye(3) * step):
        up, down = (maximise_shares(ratios(0.8 + s * change[0], a + s * change[1:]), 0.0) for s in (1, -1))
        assert np.allclose(formula[:, column], (up - down) / (2 * step), atol=2e-3)
