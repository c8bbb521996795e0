"""Confidence limits against SciPy's exact ones, and against rows that are drawn again and counted by scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn import metrics as sk

import worlds
from metricwise import Frequencies, InTime, metrics
from metricwise.core.losses import Loss
from metricwise.fitting.constraints.resolve import bind_constraints
from metricwise.goals.constraint import Constraint
from metricwise.goals.constraint_text import read_constraints
from metricwise.goals.resolve import resolve_constraints
from metricwise.inference.confidence_limits import (
    SampledGap,
    SampledMetric,
    lower_limit,
    sample_constraints,
    upper_limit,
)
from metricwise.rules import anonymous_rule
from problems import read_problem
from profiles import examples

PROPORTIONS = {
    "precision": (metrics.Precision(index=1), lambda C: (C[1, 1], C[:, 1].sum())),
    "recall": (metrics.Recall(index=1), lambda C: (C[1, 1], C[1].sum())),
    "share": (metrics.PredictedShare(index=1), lambda C: (C[:, 1].sum(), C.sum())),
    "false_positive_rate": (metrics.FalsePositiveRate(index=1), lambda C: (C[0, 1], C[0].sum())),
    "specificity": (metrics.Specificity(index=1), lambda C: (C[0, 0], C[0].sum())),
    "accuracy": (metrics.Accuracy(), lambda C: (np.trace(C), C.sum())),
    "jaccard": (metrics.Jaccard(index=1), lambda C: (C[1, 1], C[1].sum() + C[0, 1])),
}


def counted(metric, C, **options):
    """A constraint on a matrix of numbers of rows."""
    C = np.asarray(C, dtype=float)
    share = C / C.sum()
    return SampledMetric(Constraint(metric).bind(share.sum(axis=1)), share, C.sum(), tuple(range(len(C))), **options)


@pytest.mark.parametrize("name", sorted(PROPORTIONS))
@examples(40)
@given(st.lists(st.integers(0, 60), min_size=4, max_size=4))
def test_the_variance_of_a_proportion_is_that_of_its_slopes(name, cells):
    C = np.array(cells).reshape(2, 2) + np.eye(2)
    sampled = counted(PROPORTIONS[name][0], C)
    by_slopes = np.sum(sampled.smooth_slopes**2 * sampled.smooth) / C.sum()
    assert sampled.variance == pytest.approx(by_slopes, rel=1e-9)


@pytest.mark.parametrize("name", sorted(PROPORTIONS))
@examples(40)
@given(st.lists(st.integers(0, 60), min_size=4, max_size=4), st.sampled_from([0.5, 0.8, 0.95, 0.999]))
def test_proportions_have_exact_limits(name, cells, level):
    C = np.array(cells).reshape(2, 2)
    metric, ways = PROPORTIONS[name]
    hits, trials = ways(C)
    if not (C.sum(axis=1) > 0).all() or trials == 0:
        return
    for side, limit, other in (("greater", lower_limit, "low"), ("less", upper_limit, "high")):
        exact = binomtest(int(hits), int(trials), alternative=side).proportion_ci(level, method="exact")
        assert limit(counted(metric, C), level) == pytest.approx(getattr(exact, other), abs=1e-9)


def test_a_precision_of_one_and_nothing_predicted():
    """No error in five does not mean none, and of nothing nothing is known."""
    assert lower_limit(counted(metrics.Precision(index=1), [[90, 0], [5, 5]]), 0.95) == pytest.approx(0.05 ** (1 / 5))
    nothing = counted(metrics.Precision(index=1), [[95, 0], [5, 0]])
    assert (lower_limit(nothing, 0.95), upper_limit(nothing, 0.95)) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("metric", "score"),
    [
        (metrics.FBeta(index=1), lambda y, d: sk.f1_score(y == 1, d == 1)),
        (metrics.Kappa(), sk.cohen_kappa_score),
        (metrics.Kappa(weights="quadratic"), lambda y, d: sk.cohen_kappa_score(y, d, weights="quadratic")),
        (metrics.BalancedAccuracy(), sk.balanced_accuracy_score),
        (metrics.GMean(), lambda y, d: np.prod(sk.recall_score(y, d, average=None)) ** (1 / 3)),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_smooth_metrics_against_rows_drawn_again(metric, score):
    C = np.array([[300, 50, 20], [60, 200, 40], [10, 30, 120]])
    true, decided = (np.repeat(index.reshape(-1), C.reshape(-1)) for index in np.indices(C.shape))
    rng = np.random.default_rng(0)
    draws = rng.integers(0, len(true), (300, len(true)))
    error = np.std([score(true[rows], decided[rows]) for rows in draws])
    own = counted(metric, C)
    assert own.value == pytest.approx(score(true, decided))
    for limit, side in ((lower_limit, -1), (upper_limit, 1)):
        assert limit(own, 0.95) == pytest.approx(own.value + side * 1.645 * error, abs=0.2 * error)


def test_limits_are_wider_with_more_confidence_and_fewer_rows():
    C = np.array([[61, 9], [7, 23]])
    for metric in (metrics.Precision(index=1), metrics.FBeta(index=1), metrics.Kappa(), metrics.GMean()):
        lows = [lower_limit(counted(metric, C), level) for level in (0.5, 0.8, 0.95, 0.99)]
        assert all(np.diff(lows) < 0)
        assert lower_limit(counted(metric, 10 * C), 0.95) > lower_limit(counted(metric, C), 0.95)


# ------------------------------------------------------------------------------------------------ rows as they are


def argmax_counted(text, proba, y, **options):
    """Constraints as counted of argmax."""
    problem = read_problem(proba, y, "f1", **options)
    schema, oracle = problem.schema, problem.oracle()
    limits = bind_constraints(resolve_constraints(read_constraints(text), schema), schema, oracle)
    rule = anonymous_rule(Loss.argmax(schema.width), schema.n_classes)
    C = oracle.confusions([Loss.argmax(schema.width)])[0]
    return sample_constraints(problem, limits, C, lambda: rule, None)


def binary(n):
    rng = np.random.default_rng(0)
    return *worlds.binary(n, b=1.5, seed=rng), rng


def test_frequencies_are_repeated_rows():
    p, y, rng = binary(300)
    times = rng.integers(1, 5, len(p))
    for text in ("precision >= 0.5", "f1 >= 0.5", "kappa >= 0.2", "min_recall >= 0.3"):
        (one,) = argmax_counted(text, p, y, sample_weight=Frequencies(times))
        (many,) = argmax_counted(text, np.repeat(p, times), np.repeat(y, times))
        for limit in (lower_limit, upper_limit):
            assert limit(one, 0.95) == pytest.approx(limit(many, 0.95), abs=2e-3)


@pytest.mark.parametrize("text", ["precision >= 0.5", "f1 >= 0.5", "share <= 0.5"])
@pytest.mark.parametrize("what", ["weights", "groups", "outputs"])
def test_design_effects_against_rows_drawn_again(text, what):
    """Weights, rows that belong together, and outputs of one row that go together."""
    rng = np.random.default_rng(1)
    n, size = 600, 6
    level = np.repeat(rng.normal(size=n // size), size)
    z = 1.5 * level[:, None] + rng.normal(size=(n, 3)) - 0.5
    if what == "outputs":
        z = 1.5 * rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 3))
    p = 1 / (1 + np.exp(-z))
    common = rng.random((n, 1)) if what == "outputs" else np.repeat(rng.random((n // size, 3)), size, axis=0)
    y = ((common if what != "weights" else rng.random((n, 3))) < p).astype(int)
    weight, cluster, options = np.ones(n), np.arange(n), {}
    if what == "weights":
        weight = rng.choice([0.1, 1.0, 5.0], n)
        options = {"sample_weight": weight}
    if what == "groups":
        cluster = np.arange(n) // size
        options = {"groups": cluster}
    if what != "outputs":
        p, y = p[:, :1], y[:, :1]
    name = text.split()[0]

    def score(drawn):
        w, true, decided = np.repeat(drawn, y.shape[1]), y.reshape(-1), (p > 0.5).reshape(-1).astype(int)
        hits, predicted = w @ (true * decided), w @ decided
        return {
            "precision": hits / predicted,
            "f1": 2 * hits / (predicted + w @ true),
            "share": predicted / w.sum(),
        }[name]

    count = rng.multinomial(cluster.max() + 1, np.full(cluster.max() + 1, 1 / (cluster.max() + 1)), 1500)
    error = np.std([score(own[cluster] * weight) for own in count])
    (one,) = argmax_counted(text, p if what == "outputs" else p[:, 0], y if what == "outputs" else y[:, 0], **options)
    assert one.value == pytest.approx(score(weight))
    assert np.sqrt(one.variance) == pytest.approx(error, rel=0.1)
    assert one.n_rows / one.design_effect < y.size / 1.2
    assert lower_limit(one, 0.95) == pytest.approx(one.value - 1.645 * error, abs=0.4 * error)


@pytest.mark.parametrize("what", ["groups", "weights"])
def test_no_error_in_rows_that_count_as_one_says_as_little_as_one(what):
    """Ten copies of one row, or one that weighs as ten, are right: that is one row that is."""
    y = np.repeat([0, 1, 1], [200, 100, 10])
    p = np.where(np.arange(310) < 300, 0.2, 0.9)
    groups = np.concatenate([np.arange(300), np.full(10, 300)])
    if what == "groups":
        (one,) = argmax_counted("precision >= 0.5", p, y, groups=groups)
    else:
        weight = np.where(np.arange(301) < 300, 1.0, 10.0)
        (one,) = argmax_counted("precision >= 0.5", p[:301], y[:301], sample_weight=weight)
    assert one.value == 1.0
    assert lower_limit(one, 0.95) == pytest.approx(0.05, abs=0.05)


def test_no_error_in_rows_in_time_says_as_little_as_in_independent_ones():
    """Sixty runs of ten equal labels, all right: as much as sixty rows say."""
    y = np.repeat(np.random.default_rng(0).integers(0, 2, 60), 10)
    (one,) = argmax_counted("accuracy >= 0.5", 0.1 + 0.8 * y, y, groups=InTime(np.arange(600), 10))
    assert one.value == 1.0
    assert lower_limit(one, 0.95) == pytest.approx(0.05 ** (1 / 60), abs=0.005)


@pytest.mark.parametrize("level", [0.8, 0.975])
def test_limits_of_a_difference_are_those_of_both_sides_squared_and_added(level):
    """Zou and Donner, by SciPy's limits of either proportion: the nearer to 0 or 1 one is, the less it is symmetric."""
    hits, trials = (18, 1), (20, 30)
    groups = [counted(metrics.Recall(index=1), [[40, 10], [n - k, k]]) for k, n in zip(hits, trials, strict=True)]
    apart = SampledGap(None, *groups)
    tests = [binomtest(k, n) for k, n in zip(hits, trials, strict=True)]
    ends = [test.proportion_ci(2 * level - 1, method="exact") for test in tests]
    values = [test.statistic for test in tests]
    difference = values[0] - values[1]
    assert upper_limit(apart, level) == pytest.approx(
        difference + np.hypot(ends[0].high - values[0], values[1] - ends[1].low)
    )
    assert lower_limit(apart, level) == pytest.approx(
        difference - np.hypot(values[0] - ends[0].low, ends[1].high - values[1])
    )


def test_known_priors_vary_no_more():
    """With `prior` rows of a class weigh what it is worth, and only what is decided within classes varies."""
    p, y, rng = binary(800)
    (one,) = argmax_counted("precision >= 0.5", p, y, prior=[0.9, 0.1])
    decided = p > 0.5
    rates = [decided[y == c].mean() for c in (0, 1)]

    def precision(fall_out, recall):
        return 0.1 * recall / (0.1 * recall + 0.9 * fall_out)

    assert one.value == pytest.approx(precision(*rates))
    sizes = np.bincount(y)
    drawn = rng.binomial(sizes, rates, (4000, 2)) / sizes
    assert np.sqrt(one.variance) == pytest.approx(np.std(precision(*drawn.T)), rel=0.1)


def test_a_share_near_the_prior_varies_as_the_difference():
    p, y, _ = binary(700)
    (one,) = argmax_counted("share within 0.1 of prior", p, y)
    apart = (p > 0.5) - y
    error = np.std(apart) / np.sqrt(len(p))
    assert np.sqrt(one.variance) == pytest.approx(error, rel=0.02)
    (share,) = argmax_counted("share <= 0.9", p, y)
    assert one.variance != pytest.approx(share.variance, rel=0.05)


def test_the_least_recall_is_as_unsure_as_its_least_sure_class():
    """A class of few rows, decided a little better than one of many, says less of all rows."""
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], [2000, 12])
    decided = np.concatenate([rng.random(2000) < 0.3, np.arange(12) < 9]).astype(int)
    proba = np.where(decided == 1, 0.9, 0.1)
    (one,) = argmax_counted("min_recall >= 0.5", proba, y)
    recalls = sk.recall_score(y, decided, average=None)
    assert recalls[0] < recalls[1] < recalls[0] + 0.1
    rare = binomtest(9, 12, alternative="greater").proportion_ci(0.95, method="exact").low
    assert lower_limit(one, 0.95) == pytest.approx(rare, abs=1e-9)
    assert one.value == pytest.approx(min(recalls))
