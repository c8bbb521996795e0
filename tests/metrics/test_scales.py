"""Ordered metrics on labels that do not sort into their order."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

import metricwise as mw
import worlds
from laws.metric_records import ORDERED, make

SCALE = ["low", "medium", "high"]  # sorted: high, low, medium


def draw(seed=0, n=200):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 3, n)
    return true, np.clip(true + rng.integers(-1, 2, n), 0, 2)


@pytest.mark.parametrize("name", ORDERED)
def test_words_in_their_order_score_as_their_places_do(name):
    true, predicted = draw()
    words, plain = np.array(SCALE), make(name, 3)
    in_order = replace(plain, order=SCALE).score(words[true], words[predicted])
    assert in_order == pytest.approx(plain.score(true, predicted), abs=1e-12)
    assert plain.score(true, predicted, classes=[2, 0, 1]) == pytest.approx(in_order, abs=1e-12)  # numbers sort


@pytest.mark.parametrize("weights", ["linear", "quadratic"])
def test_kappa_in_order_is_scikit_learns_with_labels_in_order(weights):
    true, predicted = draw(1)
    words = np.array(SCALE)
    ours = mw.metrics.Kappa(weights, order=SCALE).score(words[true], words[predicted])
    assert ours == pytest.approx(cohen_kappa_score(words[true], words[predicted], labels=SCALE, weights=weights))


@pytest.mark.parametrize("name", ORDERED)
def test_the_best_rule_is_that_of_the_places(name):
    rng = np.random.default_rng(2)
    eta = rng.dirichlet(np.ones(3), 300)
    true = worlds.draw_codes(eta, rng)
    words = np.array(SCALE)
    columns = np.argsort(words)  # as scikit-learn has them
    fixed = {"confusion": "labels", "recalibrate": False}
    by_place = mw.optimize(eta, true, make(name, 3), strategy=mw.Strategy(**fixed))
    by_word = mw.optimize(
        eta[:, columns], words[true], replace(make(name, 3), order=SCALE), strategy=mw.Strategy(**fixed)
    )
    assert by_word.value == pytest.approx(by_place.value, abs=1e-12)


def test_an_order_needs_labels_and_all_of_them():
    with pytest.raises(ValueError, match=r"Ordinal: order=.* needs the class labels"):
        mw.metrics.Ordinal(order=SCALE).value(np.eye(3) / 3)
    with pytest.raises(ValueError, match="Kappa: order must hold each of the 3 classes once"):
        mw.metrics.Kappa("quadratic", order=["low", "high"]).bind(np.ones(3) / 3, SCALE)
    with pytest.raises(ValueError, match="must be one of the classes"):
        mw.metrics.Ordinal(order=["low", "medium", "huge"]).bind(np.ones(3) / 3, SCALE)
