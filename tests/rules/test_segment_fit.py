"""Calibrations by segment: the fit against SciPy, and rows recalibrated by them."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

import metricwise as mw
from metricwise.core.inputs import identity
from metricwise.core.probabilities import Probabilities
from metricwise.data.probabilities import read_proba
from metricwise.rules import fit_link
from metricwise.rules.segment_fit import SegmentFit, Shrinkage, log_likelihood

N, S = 400, 6


def rows(k, seed=0, n=N):
    """Logits, labels and segments, of unequal sizes; labels follow other biases and slopes in each segment."""
    rng = np.random.default_rng(seed)
    segment = np.sort(rng.integers(0, S, n) * (rng.random(n) < 0.7))[rng.permutation(n)]
    z = rng.normal(0, 1.5, (n, k))
    truth = softmax(rng.uniform(0.6, 1.5, S)[segment, None] * z + rng.normal(0, 1, (S, k))[segment], axis=1)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    return softmax(z, axis=1), np.minimum(y, k - 1), segment


def penalised(theta, z, y, weight, center, shrinkage):
    """Minus the penalised likelihood of one segment, theta = (log t, c_1, ..., c_k), biases at the mean row."""
    scores = np.exp(theta[0]) * z + theta[1:]
    value = -(weight * log_softmax(scores, axis=1)[np.arange(len(y)), y]).sum()
    away = theta[1:] - center[1:]
    away = away - away.mean()
    return value + away @ away / (2 * shrinkage.bias**2) + (theta[0] - center[0]) ** 2 / (2 * shrinkage.scale**2)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_of_each_segment_is_that_of_scipy(k, weighted):
    proba, y, segment = rows(k)
    weight = np.random.default_rng(1).uniform(0.2, 3, N) if weighted else None
    shrinkage = Shrinkage(0.5, 0.3)
    read = read_proba(proba)
    links = SegmentFit(read, y[:, None], weight, None, segment, S).links(shrinkage)
    common = fit_link(read, y[:, None], weight)
    z = np.log(proba)
    relative = z - z[:, :1]
    mean = np.average(relative, axis=0, weights=weight)
    center = np.append(np.log(common.temperature), common.bias[0] + common.temperature * mean)
    for s in range(S):
        inside = segment == s
        w = (
            np.ones(inside.sum())
            if weight is None
            else weight[inside] * weight[inside].sum() / (weight[inside] ** 2).sum()
        )
        start = np.zeros(k + 1)
        fit = minimize(penalised, start, (relative[inside] - mean, y[inside], w, center, shrinkage), tol=1e-12)
        t = np.exp(fit.x[0])
        bias = fit.x[1:] - t * mean
        np.testing.assert_allclose(links.temperature[s, 0], t, rtol=1e-4)
        np.testing.assert_allclose(links.bias[s, 0] - links.bias[s, 0, 0], bias - bias[0], atol=2e-4)


def test_temperatures_are_common_unless_their_deviation_is_given():
    proba, y, segment = rows(3)
    fit = SegmentFit(read_proba(proba), y[:, None], None, None, segment, S)
    links = fit.links(Shrinkage(0.5))
    np.testing.assert_allclose(links.temperature, fit.common.temperature[0], rtol=1e-5)
    assert np.ptp(fit.links(Shrinkage(0.5, 0.5)).temperature) > 0.05


def test_the_deviations_vanish_and_grow_with_the_standard_deviation():
    proba, y, segment = rows(3)
    fit = SegmentFit(read_proba(proba), y[:, None], None, None, segment, S)
    spread = [np.ptp(fit.links(Shrinkage(sd)).bias, axis=0).max() for sd in (1e-4, 0.2, 1.0, 10.0)]
    assert spread[0] < 1e-4
    assert spread == sorted(spread)


def test_segments_without_rows_and_rows_without_a_segment():
    proba, y, segment = rows(2)
    fit = SegmentFit(read_proba(proba), y[:, None], None, None, np.where(segment == 1, S + 1, segment), S + 1)
    links = fit.links(Shrinkage(0.5, 0.3))
    for place in (1, S):
        np.testing.assert_array_equal(links.bias[place], fit.common.bias)
    temperature, bias = links.of_rows(np.array([S + 1, 0]))
    np.testing.assert_array_equal(temperature[0], fit.common.temperature)
    np.testing.assert_array_equal(bias[1], links.bias[0])


def test_a_segment_of_one_class_leans_to_that_class_and_no_further_than_the_prior_allows():
    proba, y, segment = rows(2)
    y = np.where(segment == 0, 0, y)
    fit = SegmentFit(read_proba(proba), y[:, None], None, None, segment, S)
    links = fit.links(Shrinkage(0.5))
    odds = links.bias[:, 0, 1] - links.bias[:, 0, 0]
    common = fit.common.bias[0, 1] - fit.common.bias[0, 0]
    assert common - 10 < odds[0] < common - 0.5


def test_a_class_that_no_label_shows_keeps_its_odds():
    proba, y, segment = rows(3)
    y = np.minimum(y, 1)
    links = SegmentFit(read_proba(proba), y[:, None], None, None, segment, S).links(Shrinkage(0.5))
    assert np.isfinite(links.bias).all()


def test_missing_labels_count_for_nothing():
    proba, y, segment = rows(3)
    codes = np.where(np.arange(N) < 100, -1, y)[:, None]
    some = SegmentFit(read_proba(proba), codes, None, None, segment, S).links(Shrinkage(0.5))
    rest = SegmentFit(read_proba(proba[100:]), y[100:, None], None, None, segment[100:], S).links(Shrinkage(0.5))
    np.testing.assert_allclose(some.bias, rest.bias, atol=1e-6)


def test_frequencies_are_rows_written_out():
    proba, y, segment = rows(3)
    counts = np.random.default_rng(2).integers(1, 4, N)
    weight = counts.astype(float)
    fit = SegmentFit(read_proba(proba), y[:, None], weight, weight, segment, S).links(Shrinkage(0.5, 0.3))
    again = [np.repeat(values, counts, axis=0) for values in (proba, y, segment)]
    written = SegmentFit(read_proba(again[0]), again[1][:, None], None, None, again[2], S).links(Shrinkage(0.5, 0.3))
    np.testing.assert_allclose(fit.bias, written.bias, atol=1e-6)
    np.testing.assert_allclose(fit.temperature, written.temperature, atol=1e-6)


@pytest.mark.parametrize("k", [2, 3])
def test_rows_are_recalibrated_each_by_its_segment(k):
    proba, y, segment = rows(k)
    links = SegmentFit(read_proba(proba), y[:, None], None, None, segment, S).links(Shrinkage(0.5, 0.3))
    changed = links.apply(read_proba(proba), segment).blocks[0]
    for s, link in enumerate(links.links()):
        expected = softmax(link.temperature[0] * np.log(proba[segment == s]) + link.bias[0], axis=1)
        np.testing.assert_allclose(changed[segment == s].reshape(-1, k), expected, atol=1e-12)
    codes = y[:, None]
    expected = np.log(changed.reshape(N, k)[np.arange(N), y])
    np.testing.assert_allclose(log_likelihood(links.apply(read_proba(proba), segment), codes)[:, 0], expected)


def test_a_single_column_is_recalibrated_as_both_are():
    proba, y, segment = rows(2)
    both = SegmentFit(read_proba(proba), y[:, None], None, None, segment, S).links(Shrinkage(0.5, 0.3))
    alone = SegmentFit(read_proba(proba[:, 1]), y[:, None], None, None, segment, S).links(Shrinkage(0.5, 0.3))
    np.testing.assert_allclose(alone.bias, both.bias, atol=1e-7)
    first = both.apply(read_proba(proba), segment).blocks[0].reshape(N, 2)[:, 1]
    np.testing.assert_allclose(alone.apply(read_proba(proba[:, 1]), segment).blocks[0][:, 0], first, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_logits_behind_a_map_stand_for_the_same_probabilities(scale):
    proba, y, segment = rows(3)
    z = np.log(proba) / scale
    base = identity(1, 3)
    base = base._replace(temperature=base.temperature * scale)
    logits = Probabilities((z[:, None, :],), np.array([3]), base)
    of_logits = SegmentFit(logits, y[:, None], None, None, segment, S).links(Shrinkage(0.5, 0.3))
    of_proba = SegmentFit(read_proba(proba), y[:, None], None, None, segment, S).links(Shrinkage(0.5, 0.3))
    changed = of_logits.apply(logits, segment)
    assert changed.of_logits
    expected = of_proba.apply(read_proba(proba), segment).blocks[0]
    np.testing.assert_allclose(changed.recalibrated().blocks[0], expected, atol=1e-6)


def test_the_type_of_probabilities_is_kept():
    proba, y, segment = rows(3)
    read = read_proba(proba.astype(np.float32))
    links = SegmentFit(read, y[:, None], None, None, segment, S).links(Shrinkage(0.5))
    assert links.apply(read, segment).blocks[0].dtype == np.float32
    assert mw.__version__
