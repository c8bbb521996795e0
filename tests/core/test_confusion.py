"""Confusion tensors: scikit-learn's layout, sums that merge, probabilities on either side."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

import metricwise as mw
import worlds
from metricwise.core import confusion
from metricwise.data.probabilities import read_proba


@st.composite
def decisions(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m, k = (int(v) for v in rng.integers([1, 1, 2], [30, 4, 6]))
    true = rng.integers(-1, k, size=(n, m))
    return true, rng.integers(0, k, size=(n, m)), k, rng.integers(0, 8, size=n) / 4


@given(case=decisions())
def test_counts_are_scikit_learns(case):
    true, predicted, k, weight = case
    C = confusion.from_predictions(true, predicted, k, weight)
    for m in range(true.shape[1]):
        seen = true[:, m] >= 0
        if weight[seen].any():
            theirs = confusion_matrix(true[seen, m], predicted[seen, m], labels=range(k), sample_weight=weight[seen])
            np.testing.assert_allclose(C[m], theirs, atol=1e-12)
        else:
            assert not C[m].any()


@given(case=decisions(), cut=st.integers(0, 30), again=st.integers(0, 30))
def test_merging_is_associative_commutative_and_complete(case, cut, again):
    true, predicted, k, weight = case
    a, b = sorted((min(cut, len(true)), min(again, len(true))))
    parts = [
        confusion.from_predictions(true[rows], predicted[rows], k, weight[rows])
        for rows in (slice(0, a), slice(a, b), slice(b, None))
    ]
    whole = confusion.from_predictions(true, predicted, k, weight)
    x, y, z = parts
    assert np.array_equal(confusion.merge(confusion.merge(x, y), z), whole)  # weights are quarters: sums are exact
    assert np.array_equal(confusion.merge(x, confusion.merge(y, z)), whole)
    assert np.array_equal(confusion.merge(z, x, y), whole)


@given(case=decisions())
def test_shares_sum_to_one_or_nothing(case):
    true, predicted, k, weight = case
    C, mass = confusion.normalize(confusion.from_predictions(true, predicted, k, weight))
    for m, total in enumerate(mass):
        assert total == weight[true[:, m] >= 0].sum()
        assert C[m].sum() == pytest.approx(1.0 if total > 0 else 0.0)


def test_pooling_weighs_outputs_by_their_labels():
    C = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]])
    np.testing.assert_allclose(confusion.pool(C, [30, 10]), [[0.75, 0.0], [0.25, 0.0]])
    np.testing.assert_allclose(confusion.pool(C, [30, 10], [1, 3]), [[0.5, 0.0], [0.5, 0.0]])


@given(case=decisions())
def test_expected_counts_of_certainties_are_counts(case):
    """With probabilities 0 and 1 the expected confusion is the confusion."""
    true, predicted, k, weight = case
    seen = true >= 0
    proba = read_proba(np.eye(k)[np.maximum(true, 0)], multioutput=True)
    expected = confusion.expected_confusion(proba, predicted, weight, seen)
    np.testing.assert_allclose(expected, confusion.from_predictions(true, predicted, k, weight), atol=1e-12)


def test_expected_counts_are_the_mean_over_drawn_labels():
    rng = np.random.default_rng(3)
    eta = rng.dirichlet(np.ones(3), size=4)
    predicted = rng.integers(0, 3, size=(4, 1))
    draws = 40_000
    mean = np.zeros((1, 3, 3))
    labels = worlds.draw_codes(np.tile(eta, (draws, 1, 1)), rng)
    for n in range(4):
        mean[0, :, predicted[n, 0]] += np.bincount(labels[:, n], minlength=3) / draws
    np.testing.assert_allclose(confusion.expected_confusion(read_proba(eta), predicted), mean, atol=0.02)


def test_confusion_of_a_randomised_rule_is_the_mix_of_its_rules():
    rng = np.random.default_rng(4)
    proba, y = rng.random(50), rng.integers(0, 2, size=50)
    rules = [
        mw.optimize(proba, y, metric, strategy=mw.Strategy(solver="sweep", confusion="labels", recalibrate=False)).rule
        for metric in ("f1", "accuracy", "g_mean")
    ]
    mixture = mw.MixtureRule(tuple(rules), np.array([0.5, 0.3, 0.2]))
    mixed = confusion.from_distribution(y[:, None], mixture.distribution(proba)[:, None])
    each = [confusion_matrix(y, rule.predict(proba), labels=[0, 1]) for rule in rules]
    np.testing.assert_allclose(mixed[0], 0.5 * each[0] + 0.3 * each[1] + 0.2 * each[2], atol=1e-12)
    weight = rng.random(50)
    missing = np.where(np.arange(50) < 20, -1, y)[:, None]
    masked = confusion.from_distribution(missing, mixture.distribution(proba)[:, None], weight)
    assert masked.sum() == pytest.approx(weight[20:].sum())
