"""Metrics of rules that may abstain, beside what scikit-learn says of one more predicted label, or of fewer rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.metric_records import EVERY, RECORDS, make
from metricwise import metrics
from metricwise.metrics.abstention import AbstentionCost
from metricwise.metrics.one_vs_rest import ClassRatio
from profiles import examples

SEEDS = st.integers(0, 2**32 - 1)
# What has no place for a decision that is undefined for an abstention from a class, or that a table says nothing of.
REFUSED = {
    "ordinal",
    "squared_ordinal",
    "cost",
    "linear_kappa",
    "quadratic_kappa",
    "Kappa(matrix)",
    "Linear",
    "FractionalLinear",
    "Minimum",
}
# Ratios of counts, which are the same of the accepted rows.
OF_ACCEPTED = {
    "accuracy",
    "hamming_accuracy",
    "weighted_accuracy",
    "weighted_exponential",
    "ordinal",
    "squared_ordinal",
    "cost",
    "micro_f1",
    "polynomial",
    "decathlon",
    "MicroF1(last)",
    "WeightedExponential(-1)",
    "WeightedExponential(2, from 0)",
    "Polynomial(root)",
    "Polynomial(strict)",
    "Polynomial(shift)",
    "ClassAverage(jaccard micro)",
    "ClassAverage(f1 micro)",
    "ClassAverage(specificity micro)",
    "Linear",
    "FractionalLinear",
}
OF_ACCEPTED |= {name for name in EVERY if isinstance(make(name, 3), ClassRatio)}
MISSES = [name for name in EVERY if name not in REFUSED]
# References that are told of all labels there are; others are told of the classes that are averaged over.
ALL_LABELS = {"kappa", "weighted_accuracy", "weighted_exponential", *(n for n in EVERY if n.startswith("WeightedExp"))}


def reference(name, y, p, w, k, zero):
    if name == "ClassAverage(specificity micro)":  # written out: its record counts every row as decided
        each = [((y != c) & (p != c), y != c) for c in range(k)]
        return sum(w[right].sum() for right, _ in each) / sum(w[others].sum() for _, others in each)
    named = k + 1 if name in ALL_LABELS and (p == k).any() else k
    return RECORDS[name].value(y, p, w, k=named, zero_division=zero, c=None if named == k else k - 1)


def drawn(seed, k, n=40):
    """True classes, decisions of which the last is to abstain, and weights."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    p = np.where(rng.random(n) < 0.5, y, rng.integers(0, k, n))
    p = np.where(rng.random(n) < rng.uniform(0.05, 0.6), k, p)
    p[:2], y[:2] = (0, k - 1), (0, k - 1)  # some are accepted
    return y, p, rng.integers(1, 4, n) / 2.0


def counted(y, p, w, k):
    C = np.zeros((k, k + 1))
    np.add.at(C, (y, p), w)
    return C / C.sum()


@pytest.mark.parametrize("name", MISSES)
@given(seed=SEEDS, k=st.sampled_from([2, 3]), zero=st.sampled_from([0.0, 1.0]))
@examples(4)
def test_a_miss_is_one_more_predicted_label(name, seed, k, zero):
    k = 3 if RECORDS[name].build is not None else k
    y, p, w = drawn(seed, k)
    metric = metrics.Abstaining(make(name, k, zero), accepted=False)
    assert metric.value(counted(y, p, w, k)) == pytest.approx(reference(name, y, p, w, k, zero), abs=1e-12)


@pytest.mark.parametrize("name", sorted(set(MISSES) | OF_ACCEPTED))
@given(seed=SEEDS, k=st.sampled_from([2, 3]), zero=st.sampled_from([0.0, 1.0]))
@examples(4)
def test_accepted_rows_are_all_that_counts_where_the_metric_is_a_ratio_of_counts(name, seed, k, zero):
    k = 3 if RECORDS[name].build is not None else k
    y, p, w = drawn(seed, k)
    kept = p < k if name in OF_ACCEPTED else np.ones(len(p), dtype=bool)
    metric = metrics.Abstaining(make(name, k, zero))
    expected = reference(name, y[kept], p[kept], w[kept], k, zero)
    assert metric.value(counted(y, p, w, k)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_has_no_place_for_an_abstention_is_refused(name):
    with pytest.raises(ValueError, match=r"undecided|abstention|abstaining"):
        metrics.Abstaining(make(name, 3), accepted=False).value(np.full((3, 4), 1 / 12))


def interior(seed, k):
    C = np.random.default_rng(seed).dirichlet(np.full(k * (k + 1), 2.0)).reshape(k, k + 1)
    return np.pad(C, [(0, 1), (0, 0)])


def variants(name, k):
    """The metric in every reading that it allows."""
    found = [metrics.Abstaining(make(name, k))] if name in OF_ACCEPTED else []
    found += [] if name in REFUSED else [metrics.Abstaining(make(name, k), accepted=False)]
    if RECORDS[name].form == "linear" and not RECORDS[name].increasing and name != "Linear":
        found.append(metrics.Abstaining(make(name, k), cost=0.3))
    return found


@pytest.mark.parametrize("name", sorted(set(EVERY) - {"Kappa(matrix)", "linear_kappa", "quadratic_kappa", "Minimum"}))
@given(seed=SEEDS)
@examples(2)
def test_gradients_are_slopes_and_ratios_are_their_matrices(name, seed):
    k = 3
    C = interior(seed, k)
    move = np.random.default_rng(seed).normal(size=(k + 1, k + 1))
    move[k] = 0.0
    move[:k] -= move[:k].mean(axis=1, keepdims=True)
    for metric in variants(name, k):
        bound = metric.bind(C.sum(axis=1))
        slope = (bound.value(C + 1e-6 * move) - bound.value(C - 1e-6 * move)) / 2e-6
        assert np.sum(bound.gradient(C) * move) == pytest.approx(slope, rel=2e-6, abs=2e-6)
        np.testing.assert_allclose(metric.gradient(C[:k]), metric.gradient(C)[:k])
        assert bound.range[0] - 1e-12 <= bound.value(C) <= bound.range[1] + 1e-12
        form = bound.base if isinstance(bound, metrics.Increasing) else bound
        if hasattr(form, "as_ratio"):
            ratio = form.as_ratio()
            assert form.value(C) == pytest.approx(np.sum(ratio.A * C) / np.sum(ratio.B * C), abs=1e-12)


@pytest.mark.parametrize(
    "name", ["accuracy", "balanced_accuracy", "f1", "kappa", "macro_f1", "g_mean", "micro_f1", "mcc"]
)
def test_gradients_with_free_priors_are_slopes_of_the_value(name):
    """Of matrices that sum to 1, by moves of mass between any two cells that rows can be in."""
    k = 3
    C = interior(5, k)
    for metric in variants(name, k):
        slope = metric._free_gradient(C)
        for i, j, m, n in [(0, 3, 1, 1), (2, 0, 2, 3), (1, 3, 2, 3), (0, 0, 2, 1)]:
            ends = [C.copy(), C.copy()]
            for end, step in zip(ends, (1e-6, -1e-6), strict=True):
                end[i, j] += step
                end[m, n] -= step
            risen = (metric.value(ends[0]) - metric.value(ends[1])) / 2e-6
            assert slope[i, j] - slope[m, n] == pytest.approx(risen, rel=1e-4, abs=1e-5)


def test_at_a_cost_an_abstention_is_worth_a_share_of_a_right_decision():
    y, p, w = drawn(3, 3, 200)
    C, gone, right = counted(y, p, w, 3), p == 3, p == y

    def mean(worth, where=slice(None)):
        return np.average(worth[where], weights=w[where])

    def at_cost(metric, cost):
        return float(metrics.Abstaining(metric, cost=cost).value(C))

    worth = np.where(gone, 0.7, right)
    assert at_cost(metrics.Accuracy(), 0.3) == pytest.approx(mean(worth))
    by_class = [mean(worth, y == c) for c in range(3)]
    assert at_cost(metrics.BalancedAccuracy(), 0.3) == pytest.approx(np.mean(by_class))
    assert at_cost(metrics.ClassAverage(metrics.Recall()), 0.3) == pytest.approx(np.mean(by_class))
    assert at_cost(metrics.WeightedAccuracy([1, 2, 5]), 0.3) == pytest.approx(mean(np.array([1, 2, 5])[y] * worth))
    close = np.where(gone, 0.7, 1 - np.abs(y - np.minimum(p, 2)) / 2)
    assert at_cost(metrics.Ordinal(), 0.3) == pytest.approx(mean(close))
    table = np.array([[0.0, 4.0, 1.0], [2.0, -1.0, 3.0], [9.0, 5.0, 0.0]])
    paid = np.where(gone, 2.5, table[y, np.minimum(p, 2)])
    assert at_cost(metrics.Cost(table), 2.5) == pytest.approx(-mean(paid))
    wide = np.column_stack([table, [0.5, 1.0, 4.0]])
    assert float(metrics.Abstaining(metrics.Cost(wide)).value(C)) == pytest.approx(-mean(wide[y, p]))
    assert float(metrics.Abstaining(metrics.Abstained()).value(C)) == pytest.approx(mean(gone.astype(float)))
    assert float(metrics.Abstaining(metrics.Coverage()).value(C)) == pytest.approx(mean(1.0 - gone))


def test_as_good_as_right_at_no_cost_and_as_bad_as_wrong_at_one():
    y, p, w = drawn(9, 3, 100)
    C = counted(y, p, w, 3)
    for metric in (metrics.Accuracy(), metrics.BalancedAccuracy(), metrics.BalancedAccuracy(adjusted=True)):
        all_right = counted(y, np.where(p == 3, y, p), w, 3)[:, :3]
        assert metrics.Abstaining(metric, cost=0.0).value(C) == pytest.approx(float(metric.value(all_right)))
        missed = metrics.Abstaining(metric, accepted=False).value(C)
        assert metrics.Abstaining(metric, cost=1.0).value(C) == pytest.approx(float(missed))


def test_a_cost_needs_a_linear_metric_and_is_said_once():
    with pytest.raises(ValueError, match=r"needs a linear metric, but macro_f1 is other; set abstain=True and bound"):
        metrics.Abstaining(make("macro_f1", 3), cost=0.1).value(np.full((3, 4), 1 / 12))
    table = np.ones((3, 4))
    with pytest.raises(ValueError, match="the table of cost already includes the cost of abstaining; set abstain=True"):
        AbstentionCost(0.2).aim(metrics.Cost(table))
    with pytest.raises(ValueError, match=r"a cost of shape \(K, K \+ 1\) includes the cost of abstaining"):
        metrics.Cost(table).value(np.eye(3) / 3)
    with pytest.raises(ValueError, match=r"use metrics.Cost\(cost\) with a cost of shape \(K, K \+ 1\)"):
        metrics.Abstaining(metrics.Linear(np.eye(3)), cost=0.1).value(np.full((3, 4), 1 / 12))
    with pytest.raises(ValueError, match=r"a confusion must have shape \(..., K, K \+ 1\), got \(3, 5\)"):
        metrics.Abstaining(metrics.Accuracy()).value(np.ones((3, 5)) / 15)
    for metric in (metrics.Abstained(), metrics.Coverage()):
        with pytest.raises(ValueError, match=f"{metric.name}: only for rules that may abstain; set abstain=True"):
            metric.value(np.eye(3) / 3)
        with pytest.raises(ValueError, match=r"so an abstention has no other cost in it; set abstain=True"):
            AbstentionCost(0.2).aim(metric)
