"""Counts and values of each label, and their means by frequency, against scikit-learn and sums over dense arrays."""

import numpy as np
import pytest
from sklearn import metrics as sk

import metricwise as mw
from metricwise.inference import LabelSummary
from worlds.labels import dense_counts, label_world

P, Y = label_world(300, 60, stored=10, missed=0.2)
TRUE = Y.toarray()


@pytest.fixture(scope="module", params=[None, 2, (1, 3)])
def solution(request):
    return mw.optimize(P, Y, "f1", average="macro", labels_per_row=request.param)


def plain(budget):
    """Return the labels with a probability above 1/2, within a budget, by looking at every row."""
    decided = np.zeros(P.shape, dtype=int)
    low, high = (0, 60) if budget is None else (0, budget) if isinstance(budget, int) else budget
    for row, eta in zip(decided, P.toarray(), strict=True):
        order = np.argsort(-eta, kind="stable")
        row[order[:low]] = 1
        row[[m for m in order[:high] if eta[m] > 0.5]] = 1
    return decided


def test_counts_and_values_are_those_of_the_decisions(solution):
    labels, budget = solution.by_label, solution.rule.labels_per_row
    for decided, names in (
        (solution.predict(P).toarray(), ("hits", "predicted", "value")),
        (plain(budget), ("baseline_hits", "baseline_predicted", "baseline")),
    ):
        hits, predicted, true = dense_counts(TRUE, decided)
        np.testing.assert_allclose(getattr(labels, names[0]), hits)
        np.testing.assert_allclose(getattr(labels, names[1]), predicted)
        np.testing.assert_allclose(labels.true, true)
        each = sk.f1_score(TRUE, decided, average=None, zero_division=0.0)
        np.testing.assert_allclose(getattr(labels, names[2]), each)
    assert solution.value == pytest.approx(labels.value.mean())
    assert solution.baseline == pytest.approx(labels.baseline.mean())
    assert labels.total == 300
    assert labels.n_entries == P.nnz
    assert labels.unstored == (TRUE * (P.toarray() == 0)).sum()


def test_groups_by_frequency_are_means_of_their_labels(solution):
    labels, n_seen = solution.by_label, 0
    ends = {"none": (0, 0), "up to 5": (1, 5), "6 to 20": (6, 20), "21 to 100": (21, 100), "more than 100": (101, 300)}
    for group in labels.by_frequency():
        least, most = ends[group.name]
        chosen = (labels.true >= least) & (labels.true <= most)
        assert group.n_labels == chosen.sum() > 0
        assert group.true == labels.true[chosen].sum()
        assert group.n_predicted == (labels.predicted[chosen] > 0).sum()
        assert group.value == pytest.approx(labels.value[chosen].mean())
        assert group.baseline == pytest.approx(labels.baseline[chosen].mean())
        n_seen += group.n_labels
    assert n_seen == 60


def test_labels_that_are_never_predicted_are_listed_by_frequency(solution):
    labels, decided = solution.by_label, solution.predict(P).toarray()
    never = labels.never_predicted
    assert set(never) == set(np.flatnonzero((decided.sum(axis=0) == 0) & (TRUE.sum(axis=0) > 0)))
    assert (np.diff(labels.true[never]) <= 0).all()


def test_what_the_value_of_a_label_is():
    assert mw.optimize(P, Y, "precision@3").by_label.metric == "recall"
    assert mw.optimize(P, Y, "recall@3").by_label.metric == "recall"
    coverage = mw.optimize(P, Y, "label_coverage", labels_per_row=1)
    assert coverage.by_label.metric == "hit"
    assert set(coverage.by_label.value) <= {0.0, 1.0}
    assert coverage.value == pytest.approx(coverage.by_label.value.mean())
    precision = mw.optimize(P, Y, "precision@3")
    decided = precision.predict(P).toarray()
    recall = sk.recall_score(TRUE, decided, average=None, zero_division=0.0)
    np.testing.assert_allclose(precision.by_label.value, recall)


def test_without_labels_counts_are_expected():
    labels = mw.optimize(P, None, "f1", average="macro", labels_per_row=2).by_label
    np.testing.assert_allclose(labels.true, P.toarray().sum(axis=0), rtol=1e-5)
    assert labels.unstored == 0


def test_weights_are_counted():
    weight = np.random.default_rng(0).integers(1, 4, 300).astype(float)
    labels = mw.optimize(P, Y, "f1", average="macro", labels_per_row=2, sample_weight=weight).by_label
    np.testing.assert_allclose(labels.true, weight @ TRUE)
    assert labels.total == weight.sum()
    assert labels.unstored == pytest.approx((weight @ (TRUE * (P.toarray() == 0))).sum())


def test_other_rules_have_none():
    assert mw.optimize([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], "f1").by_label is None


def test_arrays_must_fit():
    ones = np.ones(3)
    with pytest.raises(ValueError, match=r"hits must have one number for each of 3 labels, got shape \(2,\)"):
        LabelSummary("f1", ones, ones, ones[:2], ones, ones, ones, ones, 3.0, 3, 0.0)
