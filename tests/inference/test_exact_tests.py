"""Exact tests: p-values against SciPy, sequences of tests step by step, numbers of rows by simulation."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import metricwise as mw
from metricwise.goals.proportions import Proportion
from metricwise.inference.exact_tests import binomial_p_values, certify_in_sequence, largest_p_values


@pytest.mark.parametrize("bound", [0.01, 0.3, 0.5, 0.8, 0.95])
def test_p_values_are_those_of_scipy(bound):
    for trials in (1, 2, 7, 30, 1000):
        successes = np.unique(np.linspace(0, trials, 25).astype(int))
        floor = binomial_p_values(successes, np.full(len(successes), trials), bound, is_floor=True)
        ceiling = binomial_p_values(successes, np.full(len(successes), trials), bound, is_floor=False)
        for hits, low, high in zip(successes.tolist(), floor, ceiling, strict=True):
            assert low == pytest.approx(binomtest(hits, trials, bound, "greater").pvalue, rel=1e-9)
            assert high == pytest.approx(binomtest(hits, trials, bound, "less").pvalue, rel=1e-9)


def test_without_trials_nothing_is_proved():
    for is_floor in (True, False):
        assert binomial_p_values([0], [0], 0.5, is_floor=is_floor).tolist() == [1.0]


def test_p_values_are_valid_for_every_value_beyond_the_bound():
    for trials in (3, 10, 40):
        p = binomial_p_values(np.arange(trials + 1), trials, 0.7, is_floor=True)
        for value in (0.3, 0.6, 0.7):  # true proportions that do not keep the floor, or just do
            chances = binom.pmf(np.arange(trials + 1), trials, value)
            for level in (0.01, 0.05, 0.2):
                assert chances[p <= level].sum() <= level + 1e-12


def test_the_largest_p_value_of_several_bounds_is_taken():
    correct, everything = np.eye(2, dtype=bool), np.ones((2, 2), dtype=bool)
    first = np.array([[False, False], [True, True]])
    cells = np.array([[[40, 10], [5, 45]], [[50, 0], [0, 50]]])
    bounds = [Proportion(correct, everything, 0.8, True), Proportion(correct & first, first, 0.85, True)]
    expected = [
        max(binomtest(85, 100, 0.8, "greater").pvalue, binomtest(45, 50, 0.85, "greater").pvalue),
        max(binomtest(100, 100, 0.8, "greater").pvalue, binomtest(50, 50, 0.85, "greater").pvalue),
    ]
    assert largest_p_values(bounds, [cells, cells]) == pytest.approx(expected)


def walk(p_values, shares):
    """The fallback procedure, written out: the level that a test has is its share and what the one before hands on."""
    certified, handed_on = [], 0.0
    for p, share in zip(p_values, shares, strict=True):
        level = share + handed_on
        certified.append(bool(p <= level and level > 0))
        handed_on = level if certified[-1] else 0.0
    return certified


def test_sequences_hand_on_their_level():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(1, 12))
        p_values, shares = rng.random(n) ** 3, rng.random(n) * (rng.random(n) < 0.4) / n
        assert certify_in_sequence(p_values, shares).tolist() == walk(p_values, shares)


def test_sequences_keep_their_level_whatever_the_dependence():
    """Independent and equal p-values, of which the true hypotheses are any subset: at most the level is rejected."""
    rng = np.random.default_rng(1)
    shares = np.array([0.05, 0.0, 0.02, 0.0, 0.03])
    for true in ([0], [1, 2], [0, 4], [2, 3, 4], [0, 1, 2, 3, 4]):
        for equal in (True, False):
            p = rng.random((20_000, 1 if equal else 5)) * np.ones((1, 5))
            p[:, [k for k in range(5) if k not in true]] = 0.0  # false hypotheses are always rejected
            broken = np.mean([certify_in_sequence(row, shares)[true].any() for row in p])
            assert broken <= shares.sum() + 3 * np.sqrt(0.1 * 0.9 / len(p))


@pytest.mark.parametrize(
    ("bound", "value", "share"), [(0.9, 0.95, 1.0), (0.9, 0.95, 0.1), (0.5, 0.6, 0.5), (0.05, 0.02, 1.0)]
)
def test_so_many_rows_prove_a_bound_as_often_as_said(bound, value, share):
    rows = mw.rows_to_guarantee(bound, value, share=share, confidence=0.9, power=0.7)
    trials, hits = round(rows * share), np.random.default_rng(0).binomial(round(rows * share), value, 20_000)
    proved = binomial_p_values(hits, trials, bound, is_floor=value > bound) <= 0.1
    assert 0.69 <= proved.mean() <= 0.88  # numbers of successes are whole: from there on, it is never below 0.7


def test_a_tighter_bound_needs_more_rows():
    rows = [mw.rows_to_guarantee(0.9, value, share=0.2) for value in (0.99, 0.95, 0.92, 0.91)]
    assert rows == sorted(rows)
    assert rows[0] < 500 < 20_000 < rows[-1]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"bound": 1.0, "value": 0.9}, "bound must be a number above 0 and below 1, got 1.0"),
        ({"bound": 0.9, "value": 1.2}, "value must be a number from 0 to 1, got 1.2"),
        ({"bound": 0.9, "value": 0.9}, "value must differ from bound"),
        ({"bound": 0.9, "value": 0.95, "share": 0.0}, "share must be a number above 0"),
        ({"bound": 0.9, "value": 0.95, "power": 1.0}, "power must be a number above 0 and below 1"),
        ({"bound": 0.9, "value": 0.95, "confidence": 0.2}, "confidence must be a number at least 0.5"),
        ({"bound": "0.9", "value": 0.95}, "bound must be a number above 0 and below 1, got '0.9'"),
    ],
)
def test_invalid_numbers_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        mw.rows_to_guarantee(**arguments)
