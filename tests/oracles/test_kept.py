"""Decisions by the classes that matter in a row, compared with counts over all classes."""

import numpy as np
import pytest

import worlds
from metricwise.core.losses import Loss
from metricwise.core.probabilities import Probabilities
from metricwise.core.rows import Rows
from metricwise.core.schema import Schema
from metricwise.data.sources.memory import MemorySource
from metricwise.oracles.counts import Counts
from metricwise.rules.calibration import TemperatureScaling

K, N = 150, 800


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    eta = np.exp(rng.normal(0, 5, (N, 1, K)))
    eta /= eta.sum(axis=2, keepdims=True)
    codes = worlds.draw_codes(eta, rng)
    codes[rng.random(codes.shape) < 0.1] = -1
    return Rows(Probabilities((eta.astype(np.float32),), np.array([K])), codes, weight=rng.exponential(1.0, N))


def draw_link(rng):
    return TemperatureScaling(np.array([0.8]), rng.normal(0, 0.3, (1, K)))


@pytest.mark.parametrize("confusion", ["labels", "expected", "blended"])
@pytest.mark.parametrize("linked", [False, True])
def test_shares_are_those_of_the_confusion(rows, confusion, linked):
    rng = np.random.default_rng(1)
    oracle = Counts(MemorySource(rows, Schema.of_codes([K])), confusion, draw_link(rng) if linked else None)
    loss = Loss(diagonal=-np.exp(rng.normal(0, 0.3, (1, K))), offset=np.zeros((1, K)))
    (shares,), (tensor,) = oracle.shares([loss]), oracle.confusions([loss])
    assert oracle._kept is not None
    np.testing.assert_allclose(shares[0, 0], np.diag(tensor[0]), atol=1e-4)
    np.testing.assert_allclose(shares[0, 1], tensor[0].sum(axis=0), atol=1e-4)


def test_all_classes_are_counted_where_many_of_a_row_are_likely():
    rng = np.random.default_rng(2)
    eta = rng.dirichlet(np.full(K, 2.0), (N, 1))
    rows = Rows(Probabilities((eta,), np.array([K])), worlds.draw_codes(eta, rng))
    oracle = Counts(MemorySource(rows, Schema.of_codes([K])), "labels")
    loss = Loss(diagonal=-np.exp(rng.normal(0, 1.0, (1, K))), offset=np.zeros((1, K)))
    (shares,), (tensor,) = oracle.shares([loss]), oracle.confusions([loss])
    np.testing.assert_allclose(shares[0, 0], np.diag(tensor[0]), atol=1e-12)


@pytest.mark.parametrize("linked", [False, True])
def test_hardly_anything_is_lost_with_offsets(rows, linked):
    rng = np.random.default_rng(1)
    oracle = Counts(MemorySource(rows, Schema.of_codes([K])), "expected", draw_link(rng) if linked else None)
    diagonal, offset = -np.exp(rng.normal(0, 0.3, (1, K))), 0.3 * np.exp(rng.normal(0, 1, (1, K)))
    loss = Loss(diagonal=diagonal, offset=offset)
    (shares,), (tensor,) = oracle.shares([loss]), oracle.confusions([loss])
    reached = diagonal @ shares[0, 0] + offset @ shares[0, 1]
    least = diagonal @ np.diag(tensor[0]) + offset @ tensor[0].sum(axis=0)
    assert reached == pytest.approx(least, abs=1e-4)


def test_an_offset_below_all_others_is_that_of_the_class_decided(rows):
    oracle = Counts(MemorySource(rows, Schema.of_codes([K])), "expected")
    offset = np.full((1, K), 5.0)
    offset[0, 7] = -5.0
    (shares,) = oracle.shares([Loss(diagonal=-np.ones((1, K)), offset=offset)])
    assert shares[0, 1, 7] == pytest.approx(1.0)
