"""The map from scores to probabilities, and the fit of maps of logits, against SciPy's minimum."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from metricwise.core.inputs import Input
from metricwise.data.probabilities import read_proba
from metricwise.rules import TemperatureScaling, fit_link
from metricwise.rules.calibration_fit import bound_logits
from metricwise.rules.score_map import fit_score_map

SCORES = Input("scores")
rng = np.random.default_rng(0)


def scores_of(z, multioutput=False):
    return read_proba(z, multioutput=multioutput, row_input=SCORES)


def fitted(z, codes, row_input=SCORES, weight=None):
    return fit_score_map(scores_of(z), codes[:, None], weight, None, row_input)


def test_scores_that_are_log_odds_have_their_own_map():
    z = rng.normal(-1, 2, 20_000)
    y = (rng.random(20_000) < 1 / (1 + np.exp(-z))).astype(int)
    base = fitted(50 * z + 7, y)
    assert base.temperature[0] * 50 == pytest.approx(1, abs=0.05)
    assert base.bias[0, 1] - base.bias[0, 0] == pytest.approx(-7 / 50, abs=0.1)


def test_the_map_minimises_the_penalised_likelihood():
    z = rng.normal(size=60)  # no score is far out
    z = np.clip(z, -1.5, 1.5)
    y = (rng.random(60) < 1 / (1 + np.exp(-2 * z + 1))).astype(int)
    bounded = bound_logits(z, y, 0.0)
    x = (bounded - bounded.mean()) / bounded.std()
    center = np.log((np.sum(y == 1) + 0.5) / (np.sum(y == 0) + 0.5))

    def penalised(theta):
        t, b = np.exp(theta[0]), theta[1]
        # Biases are centred over the classes, c = (-b / 2, b / 2): their squares sum to (b - center)^2 / 2.
        return np.sum(np.logaddexp(0, t * x + b) - y * (t * x + b)) + theta[0] ** 2 / 2 + (b - center) ** 2 / 4

    best = minimize(penalised, [0.0, center], method="BFGS", options={"gtol": 1e-10}).x
    base = fitted(z, y)
    t, b = base.temperature[0] * bounded.std(), base.bias[0, 1] - base.bias[0, 0]
    assert t == pytest.approx(np.exp(best[0]), rel=1e-5)
    assert b + base.temperature[0] * bounded.mean() == pytest.approx(best[1], abs=1e-5)


def test_scores_of_all_classes_keep_their_argmax():
    z = rng.normal(size=(500, 3)) * 20
    y = (rng.random((500, 1)) > np.exp(log_softmax(z / 20, axis=1)).cumsum(axis=1)).sum(axis=1)
    base = fitted(z, y)
    assert (base.bias == 0).all()
    assert base.temperature[0] * 20 == pytest.approx(1, abs=0.2)


def test_a_boundary_stays_where_it_is():
    z = rng.normal(size=300)
    y = (z + rng.normal(size=300) > 1).astype(int)
    assert (fitted(z, y, Input("scores", has_boundary=True)).bias == 0).all()
    assert fitted(z, y).bias.any()


def test_labels_of_several_outputs_have_maps_of_their_own():
    z = rng.normal(size=(20_000, 2)) * [1.0, 100.0]
    y = (rng.random((20_000, 2)) < 1 / (1 + np.exp(-z / [1.0, 100.0]))).astype(int)
    base = fit_score_map(scores_of(z, multioutput=True), y, None, None, SCORES)
    np.testing.assert_allclose(base.temperature * [1.0, 100.0], 1, atol=0.07)


@pytest.mark.parametrize("z", [np.zeros(50), np.repeat([0.0, 1.0], [49, 1]), np.full(50, 1e200)])
def test_scores_that_say_nothing_have_a_map(z):
    y = np.arange(50) % 2
    base = fitted(z, y)
    assert np.isfinite(base.temperature).all()
    assert np.isfinite(base.bias).all()


def test_noise_is_not_refused_as_reversed():
    for seed in range(50):
        draw = np.random.default_rng(seed)
        fitted(draw.normal(size=100), draw.integers(0, 2, 100))


# ---------------------------------------------------------------------------------------------------- links of logits


def logits_of(z):
    return read_proba(z, row_input=Input("logits"))


def test_links_of_logits_and_of_probabilities_are_the_same_fit():
    z = rng.normal(size=(400, 4))
    y = rng.integers(0, 4, 400)[:, None]
    by_logits, by_proba = fit_link(logits_of(z), y), fit_link(read_proba(np.exp(log_softmax(z, axis=1))), y)
    assert by_logits.of_logits
    assert not by_proba.of_logits
    np.testing.assert_allclose(by_logits.temperature, by_proba.temperature, atol=1e-8)
    np.testing.assert_allclose(by_logits.bias, by_proba.bias, atol=1e-8)


def test_a_link_of_large_logits_minimises_the_penalised_likelihood():
    z = rng.uniform(-12, 12, (300, 3))
    y = (rng.random((300, 1)) > np.exp(log_softmax(z / 8, axis=1)).cumsum(axis=1)).sum(axis=1)
    bounded = bound_logits(z, y)

    def penalised(theta):
        logits = theta[0] * bounded + theta[1:]
        centred = theta[1:] - theta[1:].mean()
        loss = np.sum(logsumexp(logits, axis=1) - logits[np.arange(300), y])
        return loss + ((theta[0] - 1) ** 2 + np.sum(centred**2)) / 2

    best = minimize(penalised, [0.2, 0, 0, 0], method="BFGS", options={"gtol": 1e-9}).x
    link = fit_link(logits_of(z), y[:, None])
    assert link.temperature[0] == pytest.approx(best[0], rel=1e-5)
    np.testing.assert_allclose(link.bias[0], best[1:] - best[1:].mean(), atol=1e-5)


def test_a_true_class_of_probability_0_does_not_decide_a_fit():
    z = rng.normal(size=(500, 3))
    y = (rng.random((500, 1)) > np.exp(log_softmax(z, axis=1)).cumsum(axis=1)).sum(axis=1)
    impossible = z.copy()
    impossible[0, y[0]] = -np.inf
    link, other = fit_link(logits_of(z), y[:, None]), fit_link(logits_of(impossible), y[:, None])
    assert other.temperature[0] == pytest.approx(link.temperature[0], abs=0.25)
    assert other.apply(logits_of(impossible)).blocks[0][0, 0, y[0]] == 0


def test_a_map_of_logits_has_no_floor():
    link = TemperatureScaling(np.ones(1), np.zeros((1, 2)), 0.0)
    eta = link.apply(logits_of(np.array([[0.0, -300.0], [0.0, -700.0]]))).blocks[0][:, 0]
    np.testing.assert_allclose(eta[:, 1], np.exp([-300.0, -700.0]), rtol=1e-12)
