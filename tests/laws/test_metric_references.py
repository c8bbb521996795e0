"""Values equal those of the references: scikit-learn called with labels=classes and an explicit zero_division."""

import warnings

import numpy as np
import pytest
from sklearn import metrics as sk

from laws.metric_records import EVERY, RECORDS, make, sized
from metricwise.metrics import metric_names, resolve

SUFFIXED = {"f1": sk.f1_score, "jaccard": sk.jaccard_score, "precision": sk.precision_score, "recall": sk.recall_score}


def test_every_metric_of_the_registry_has_a_record_and_every_record_a_metric():
    recorded = {name for name, record in RECORDS.items() if record.build is None}
    missing, dead = set(metric_names()) - recorded, recorded - set(metric_names())
    assert not missing, f"add a record to tests/laws/metric_records.py for {sorted(missing)}"
    assert not dead, f"no metric of the registry has the name of these records: {sorted(dead)}"


def samples(k):
    """Labels and predictions, among them few rows, absent classes, classes never predicted and weights."""
    rng = np.random.default_rng(k)
    for n, true_below, predicted_below in [(60, k, k), (7, k, k), (40, k - 1, k), (40, k, k - 1), (9, 1, k), (5, k, 1)]:
        y, p = rng.integers(0, true_below, n), rng.integers(0, predicted_below, n)
        yield y, p, None
        yield y, p, rng.uniform(0.1, 3.0, n)
    yield np.zeros(4, dtype=int), np.zeros(4, dtype=int), None
    yield np.full(4, k - 1), np.full(4, k - 1), None
    perfect = rng.integers(0, k, 30)
    yield perfect, perfect, None


def shares(y, p, w, k):
    counts = sk.confusion_matrix(y, p, labels=range(k), sample_weight=w)
    return counts / counts.sum()


@pytest.mark.parametrize("zero_division", [0.0, 1.0])
@pytest.mark.parametrize(
    ("name", "k"), [pytest.param(name, k, marks=pytest.mark.slow if k == 4 else []) for name, k in sized(2, 3, 4)]
)
def test_value_is_that_of_the_reference(name, k, zero_division):
    metric = make(name, k, zero_division)
    for y, p, w in samples(k):
        expected = RECORDS[name].value(y, p, w, k=k, zero_division=zero_division)
        assert metric.value(shares(y, p, w, k)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_a_score_counts_labels_and_only_the_ratios_of_weights_matter(name):
    metric, labels = make(name, 3), np.array([3, 5, 8])
    for y, p, w in list(samples(3))[1::3]:  # weights and none, absent classes, classes never predicted
        expected = RECORDS[name].value(y, p, w, k=3)
        for scale in (1e6, 2e-7):
            weight = scale * (np.ones(len(y)) if w is None else w)
            score = metric.score(labels[y], labels[p], sample_weight=weight, classes=labels)
            assert score == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("zero_division", [0.0, 1.0])
@pytest.mark.parametrize("suffix", ["macro", "micro", "weighted"])
@pytest.mark.parametrize("base", SUFFIXED)
@pytest.mark.parametrize(("kind", "k"), [("binary", 2), ("multiclass", 4)])
def test_suffixed_scorers_average_over_classes(base, suffix, kind, k, zero_division):
    resolved = resolve(f"{base}_{suffix}", kind, zero_division=zero_division)
    assert (resolved.average, resolved.support_weighted) == ("micro", False)
    for y, p, w in samples(k):
        expected = SUFFIXED[base](y, p, labels=range(k), average=suffix, sample_weight=w, zero_division=zero_division)
        assert resolved.metric.value(shares(y, p, w, k)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("base", SUFFIXED)
def test_plain_scorers_are_of_the_positive_class(base):
    metric = resolve(base, "binary").metric
    for y, p, w in samples(2):
        expected = SUFFIXED[base](y, p, sample_weight=w, zero_division=0)
        assert metric.value(shares(y, p, w, 2)) == pytest.approx(expected, abs=1e-12)


def over_outputs(resolved, Y, P, w):
    """The average over outputs by its definition."""
    tensor = np.stack([shares(Y[:, m], P[:, m], w, 2) for m in range(Y.shape[1])])
    if resolved.average == "micro":
        return resolved.metric.value(tensor.mean(axis=0))
    if resolved.average == "macro":
        weights = tensor[:, 1].sum(axis=1) if resolved.support_weighted else None
        return np.average(resolved.metric.value(tensor), weights=weights)
    rows = np.stack([shares(y, p, None, 2) for y, p in zip(Y, P, strict=True)])
    return np.average(resolved.metric.value(rows), weights=w)


@pytest.mark.parametrize("zero_division", [0.0, 1.0])
@pytest.mark.parametrize("suffix", ["macro", "micro", "weighted", "samples"])
@pytest.mark.parametrize("base", SUFFIXED)
def test_suffixed_scorers_average_over_labels_on_multilabel(base, suffix, zero_division):
    rng = np.random.default_rng(5)
    resolved = resolve(f"{base}_{suffix}", "multilabel", zero_division=zero_division)
    for w in (None, rng.uniform(0.1, 3.0, 30)):
        Y = (rng.uniform(size=(30, 4)) < [0.5, 0.3, 0.1, 0.0]).astype(int)
        P = (rng.uniform(size=(30, 4)) < [0.5, 0.3, 0.0, 0.0]).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            expected = SUFFIXED[base](Y, P, average=suffix, sample_weight=w, zero_division=zero_division)
        assert over_outputs(resolved, Y, P, w) == pytest.approx(expected, abs=1e-12)


def test_hamming_accuracy_is_one_minus_hamming_loss():
    rng = np.random.default_rng(6)
    Y, P = rng.integers(0, 2, (2, 50, 3))
    expected = 1 - sk.hamming_loss(Y, P)
    for average in ("micro", "macro", "instance"):
        resolved = resolve("hamming_accuracy", "multilabel", average)
        assert over_outputs(resolved, Y, P, None) == pytest.approx(expected, abs=1e-12)
