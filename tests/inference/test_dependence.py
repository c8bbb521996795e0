"""Rows in time: how far they depend on one another is measured on them, and intervals allow for it."""

import re

import numpy as np
import pytest
from scipy.special import betaincinv, ndtri, stdtrit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_score, recall_score

import metricwise as mw
import worlds
from metricwise.core.quantiles import student_quantile
from metricwise.goals.constraint import Constraint
from metricwise.inference.confidence_limits import SampledMetric, lower_limit, upper_limit
from metricwise.inference.dependence import dependence_length
from metricwise.inference.spread import Spread
from metricwise.metrics import Accuracy, Precision
from problems import read_problem

SCORES = {"f1": f1_score, "precision": precision_score, "recall": recall_score}


# -------------------------------------------------------------------------------------------------- the length


@pytest.mark.parametrize(("rho", "n"), [(0.97, 3_000), (0.99, 30_000), (0.995, 30_000)])
def test_stretches_are_several_times_as_long_as_dependence_lasts(rho, n):
    lag = 2 * rho / (1 - rho**2)  # the mean lag of the covariances of an autoregression
    lengths = [dependence_length([worlds.autoregressive(n, rho, seed)], n) for seed in range(20)]
    assert 8 * lag <= np.median(lengths) <= n / 5
    assert np.median(lengths) <= max(25 * lag, n / 24 + 1)


@pytest.mark.parametrize("n", [2, 5, 30, 500, 20_000])
def test_stretches_have_at_least_the_cube_root_of_all_rows(n):
    rng = np.random.default_rng(n)
    for series in ([], [np.zeros(n)], [np.full(n, np.nan)], [rng.normal(size=n)]):
        length = dependence_length(series, n)
        assert max(round(n ** (1 / 3)), n // 24) <= length <= max(n // 5, round(n ** (1 / 3)))


def test_the_length_that_is_given_is_used():
    rng = np.random.default_rng(0)
    p, y = worlds.in_time(600, 0.9, seed=rng)
    order = rng.permutation(600)
    for length, n_stretches in ((1, 600), (20, 30), (np.int64(300), 2)):
        rows = read_problem(p[order], y[order], "f1", groups=mw.InTime(order, length)).source.rows
        assert rows.dependence.n_stretches == n_stretches
        np.testing.assert_array_equal(rows.cluster, order // length)


@pytest.mark.parametrize(("n", "half_life"), [(3_000, 200), (30_000, 200), (30_000, 2_000)])
def test_stretches_of_decayed_weights_share_the_weight(n, half_life):
    """However many rows there are: what is older than some half-lives is one stretch, not one of 24 each."""
    p, y = worlds.in_time(n, 0.0, seed=1)
    rows = read_problem(p, y, "f1", groups=mw.InTime(np.arange(n), half_life=half_life)).source.rows
    weight, size = np.bincount(rows.cluster, rows.weight), np.bincount(rows.cluster)
    assert rows.dependence.n_stretches == len(weight)
    assert (np.diff(rows.cluster) >= 0).all()
    n_effective = weight.sum() ** 2 / (weight**2).sum()
    assert 18 <= n_effective <= len(weight) <= 25
    assert size.min() >= 0.9 * rows.dependence.length
    assert rows.dependence.n_rows / rows.dependence.inflation <= rows.n_effective * 1.000001


def test_equal_weights_make_the_same_stretches_as_none():
    p, y = worlds.in_time(1_000, 0.9, seed=1)
    time = mw.InTime(np.arange(1_000))
    first, second = (
        read_problem(p, y, "f1", groups=time, sample_weight=weight).source.rows
        for weight in (None, np.full(1_000, 0.1))
    )
    np.testing.assert_array_equal(first.cluster, second.cluster)
    assert first.dependence == second.dependence


# ------------------------------------------------------------------------------------------------- intervals


@pytest.mark.parametrize("rho", [0.0, 0.97])
def test_intervals_cover_with_a_half_life(rho):
    """Periods of as many rows each covered 68 % without dependence."""
    p, y = worlds.in_time(400_000, 0.0, seed=99)
    truth = f1_score(y, p > 0.4)
    inside = []
    for seed in range(100):
        p, y = worlds.in_time(6_000, rho, seed=seed)
        evaluation = mw.evaluate(0.4, p, y, "f1", groups=mw.InTime(np.arange(6_000), half_life=300))
        value = evaluation["f1"].value
        inside.append(value.low <= truth <= value.high)
    assert np.mean(inside) >= 0.89  # 95 %, less almost three standard errors


def test_intervals_cover_under_long_dependence():
    """Before, stretches had the cube root of N rows: 61 to 77 %."""
    p, y = worlds.in_time(400_000, 0.0, seed=99)
    truth = {name: score(y, p > 0.4) for name, score in SCORES.items()}
    rule, inside = mw.WeightedRule.from_thresholds(0.4), []
    for seed in range(40):
        p, y = worlds.in_time(3_000, 0.97, seed=seed)
        values = mw.evaluate(rule, p, y, list(SCORES), groups=mw.InTime(np.arange(3_000)))
        inside += [values[name].value.low <= truth[name] <= values[name].value.high for name in SCORES]
    assert np.mean(inside) >= 0.88


def test_independent_rows_lose_little():
    widths = []
    for seed in range(10):
        p, y = worlds.in_time(2_000, 0.0, seed=seed)
        rule = mw.WeightedRule.from_thresholds(0.4)
        each = [
            mw.evaluate(rule, p, y, "f1", **own)["f1"].value for own in ({}, {"groups": mw.InTime(np.arange(2_000))})
        ]
        widths.append([one.high - one.low for one in each])
    plain, timed = np.mean(widths, axis=0)
    assert timed == pytest.approx(plain, rel=0.12)


def test_intervals_are_those_of_stretches():
    """Of an accuracy, by hand: sums over stretches, Student's quantile, and Wilson's interval."""
    p, y = worlds.in_time(1_000, 0.9, seed=3)
    values = mw.evaluate(
        mw.WeightedRule.from_thresholds(0.4), p, y, "accuracy", groups=mw.InTime(np.arange(1_000), 100)
    )
    right = np.stack([(p > 0.4) == y, (p > 0.5) == y]).astype(float)
    sums = (right - right.mean(axis=1, keepdims=True)).reshape(2, 10, 100).sum(axis=2) / 1_000
    one, difference = values["accuracy"].value, values["accuracy"].difference
    quantile = stdtrit(9, 0.975)
    half = quantile * np.sqrt(np.sum((sums[0] - sums[1]) ** 2) * 10 / 9)
    assert difference.high - difference.estimate == pytest.approx(half, rel=1e-3)
    error = np.sqrt(np.sum(sums[0] ** 2) * 10 / 9)
    for end in (one.low, one.high):  # where the distance is the quantile times the error that would be there
        there = error * np.sqrt(end * (1 - end) / (one.estimate * (1 - one.estimate)))
        assert abs(end - one.estimate) == pytest.approx(quantile * there, rel=1e-3)


@pytest.mark.parametrize("free", [4, 9, 23, 1_000])
def test_student_quantile(free):
    for level in (0.6, 0.9, 0.975):
        assert student_quantile(ndtri(level), free) == pytest.approx(stdtrit(free, level), rel=5e-3)


def test_what_rows_have_in_common_does_not_vanish_in_larger_samples():
    """A part of the rows says how far a sum over all of them varies."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(60), 40)
    values = rng.normal(size=60)[cluster] + rng.normal(size=2_400)
    values = (values - values.mean()) / 2_400
    whole, parts = Spread(cluster, None, 60).error(values), []
    for _ in range(100):
        rows = np.sort(rng.choice(2_400, 600, replace=False))
        parts.append(Spread(cluster[rows], None, 60).error(4 * values[rows], 0.25))
    assert np.mean(parts) == pytest.approx(whole, rel=0.03)
    alone = Spread(None, None, 600)
    assert alone.error(values[:600], 0.25) == pytest.approx(alone.error(values[:600]) / 2)


def test_few_stretches_widen_limits():
    """Korn and Graubard: the exact limits of fewer rows; normal limits have Student's quantile."""
    C = np.array([[60, 12], [10, 18]]) / 100
    floor = Constraint(Precision(index=1), low=0.5).bind(C.sum(axis=1))
    n = 30 * (ndtri(0.95) / stdtrit(9, 0.95)) ** 2
    few = SampledMetric(floor, C, 100, (0, 1), degrees_of_freedom=9)
    assert lower_limit(few, 0.95) == pytest.approx(betaincinv(0.6 * n, 0.4 * n + 1, 0.05), rel=1e-3)
    assert upper_limit(few, 0.95) > upper_limit(SampledMetric(floor, C, 100, (0, 1)), 0.95)
    many = SampledMetric(Constraint(Accuracy(), low=0.5).bind(C.sum(axis=1)), C, 100, (0, 1), degrees_of_freedom=1e9)
    assert lower_limit(many, 0.95) == pytest.approx(betaincinv(78, 23, 0.05), rel=1e-6)


# ------------------------------------------------------------------------------------------------------ notes


def test_it_is_said_how_far_rows_depend():
    p, y = worlds.in_time(600, 0.5, seed=0)
    said = r"depend on each other over at most 25 rows \(estimated\): intervals are based on 24 periods"
    evaluation = mw.evaluate(mw.WeightedRule.from_thresholds(0.4), p, y, "f1", groups=mw.InTime(np.arange(600)))
    assert re.search(said, evaluation.notes[0])
    assert evaluation.notes[0] in repr(evaluation)
    assert mw.evaluate(mw.WeightedRule.from_thresholds(0.4), p, y, "f1").notes == ()
    assert re.search(said, mw.optimize(p, y, "f1", groups=mw.InTime(np.arange(600))).status)


def test_it_is_said_when_no_interval_can_be_trusted():
    p, y = worlds.in_time(500, 0.99, seed=1)
    solution = mw.optimize(p, y, "accuracy", groups=mw.InTime(np.arange(500)))
    assert "too few for reliable intervals" in solution.status
    evaluation = mw.evaluate(solution, p, y, "accuracy", groups=mw.InTime(np.arange(500), 125))
    assert "too few for reliable intervals" in evaluation.notes[0]


# ---------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("length", [0, -3, 2.5, True, "20"])
def test_lengths_are_whole_numbers(length):
    with pytest.raises(ValueError, match="length must be a whole number of rows, at least 1, got"):
        mw.InTime([1, 2, 3], length)


def test_a_length_leaves_several_stretches():
    p, y = worlds.in_time(100, 0.5, seed=0)
    with pytest.raises(ValueError, match=r"optimize: the length of InTime must be at most half .*, 50, .* got 60"):
        mw.optimize(p, y, "f1", groups=mw.InTime(np.arange(100), 60))


def test_estimators_take_it():
    X, y = worlds.features(300, 2, above=0)
    model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="f1")
    model.fit(X, y, groups=mw.InTime(np.arange(300), 30))
    assert "at most 30 rows (as given)" in model.solution_.status
