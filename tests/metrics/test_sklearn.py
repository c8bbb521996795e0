"""Values equal scikit-learn's, called with labels=classes and an explicit zero_division."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sk

from metrics.cases import NAMES, NEEDED, make
from metricwise.metrics import BalancedAccuracy, resolve

SUFFIXED = {"f1": sk.f1_score, "jaccard": sk.jaccard_score, "precision": sk.precision_score, "recall": sk.recall_score}


def of_class(function, **fixed):
    """The metric of the last class."""

    def reference(y, p, w, k, zd):
        return function(y, p, labels=[k - 1], average="macro", sample_weight=w, zero_division=zd, **fixed)

    return reference


def averaged(function, average):
    def reference(y, p, w, k, zd):
        return function(y, p, labels=range(k), average=average, sample_weight=w, zero_division=zd)

    return reference


def specificity(y, p, w, c, zd):
    return sk.recall_score(y != c, p != c, pos_label=True, sample_weight=w, zero_division=zd)


def of_recalls(mean):
    def reference(y, p, w, k, zd):
        return mean(sk.recall_score(y, p, labels=np.unique(y), average=None, sample_weight=w, zero_division=0))

    return reference


def gain(function):
    def reference(y, p, w, k, zd):
        return np.average([function(i, j, k) for i, j in zip(y, p, strict=True)], weights=w)

    return reference


def kappa(weights):
    def reference(y, p, w, k, zd):
        return sk.cohen_kappa_score(y, p, labels=range(k), weights=weights, sample_weight=w, replace_undefined_by=0.0)

    return reference


def balanced(adjusted=False):
    return lambda y, p, w, k, zd: sk.balanced_accuracy_score(y, p, sample_weight=w, adjusted=adjusted)


def accuracy(y, p, w, k, zd):
    return sk.accuracy_score(y, p, sample_weight=w)


def fowlkes_mallows(y, p, w, k, zd):
    precision, recall = (of_class(f)(y, p, w, k, zd) for f in (sk.precision_score, sk.recall_score))
    return np.sqrt(precision * recall)


REFERENCES = {
    "accuracy": accuracy,
    "hamming_accuracy": lambda y, p, w, k, zd: 1 - sk.hamming_loss(y, p, sample_weight=w),
    "weighted_accuracy": gain(lambda i, j, k: NEEDED["weighted_accuracy"](k)["class_weight"][i] * (i == j)),
    "weighted_exponential": gain(lambda i, j, k: np.exp(-0.5 * (i + 1)) * (i == j)),
    "ordinal": lambda y, p, w, k, zd: 1 - sk.mean_absolute_error(y, p, sample_weight=w) / (k - 1),
    "squared_ordinal": lambda y, p, w, k, zd: 1 - sk.mean_squared_error(y, p, sample_weight=w) / (k - 1) ** 2,
    "cost": gain(lambda i, j, k: -NEEDED["cost"](k)["cost"][i, j]),
    "balanced_accuracy": balanced(),
    "recall": of_class(sk.recall_score),
    "specificity": lambda y, p, w, k, zd: specificity(y, p, w, k - 1, zd),
    "f1": of_class(sk.f1_score),
    "fbeta": of_class(sk.fbeta_score, beta=2.0),
    "micro_f1": lambda y, p, w, k, zd: sk.f1_score(
        y, p, labels=range(1, k), average="micro", sample_weight=w, zero_division=zd
    ),
    "jaccard": of_class(sk.jaccard_score),
    "precision": of_class(sk.precision_score),
    "kappa": kappa(None),
    "linear_kappa": kappa("linear"),
    "quadratic_kappa": kappa("quadratic"),
    "polynomial": lambda *args: accuracy(*args) ** 2,
    "decathlon": lambda *args: accuracy(*args) ** 2,
    "g_mean": of_recalls(stats.gmean),
    "h_mean": of_recalls(stats.hmean),
    "q_mean": of_recalls(lambda r: 1 - np.sqrt(np.mean((1 - r) ** 2))),
    "min_recall": of_recalls(np.min),
    "macro_f1": averaged(sk.f1_score, "macro"),
    "weighted_f1": averaged(sk.f1_score, "weighted"),
    "macro_jaccard": averaged(sk.jaccard_score, "macro"),
    "weighted_jaccard": averaged(sk.jaccard_score, "weighted"),
    "macro_precision": averaged(sk.precision_score, "macro"),
    "weighted_precision": averaged(sk.precision_score, "weighted"),
    "macro_recall": averaged(sk.recall_score, "macro"),
    "macro_specificity": lambda y, p, w, k, zd: np.mean([specificity(y, p, w, c, zd) for c in range(k)]),
    "mcc": lambda y, p, w, k, zd: sk.matthews_corrcoef(y, p, sample_weight=w),
    "fowlkes_mallows": fowlkes_mallows,
}


def test_every_metric_has_a_reference():
    assert set(REFERENCES) == set(NAMES)


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


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore:A single label was found")
@pytest.mark.parametrize("zero_division", [0.0, 1.0])
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_value_is_scikit_learns(name, k, zero_division):
    metric = make(name, k, zero_division)
    for y, p, w in samples(k):
        expected = REFERENCES[name](y, p, w, k, zero_division)
        assert metric.value(shares(y, p, w, k)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.filterwarnings("ignore:A single label was found")
def test_adjusted_balanced_accuracy_is_scikit_learns():
    metric = BalancedAccuracy(adjusted=True)
    for y, p, w in samples(3):
        if len(np.unique(y)) == 1:
            assert metric.value(shares(y, p, w, 3)) == 0  # scikit-learn divides by zero
        else:
            assert metric.value(shares(y, p, w, 3)) == pytest.approx(balanced(True)(y, p, w, 3, 0), abs=1e-12)


@pytest.mark.parametrize("zero_division", [0.0, 1.0])
@pytest.mark.parametrize("suffix", ["macro", "micro", "weighted"])
@pytest.mark.parametrize("base", SUFFIXED)
@pytest.mark.parametrize(("kind", "k"), [("binary", 2), ("multiclass", 4)])
def test_suffixed_scorers_average_over_classes(base, suffix, kind, k, zero_division):
    resolved = resolve(f"{base}_{suffix}", kind, zero_division=zero_division)
    assert (resolved.average, resolved.support_weighted) == ("micro", False)
    for y, p, w in samples(k):
        expected = averaged(SUFFIXED[base], suffix)(y, p, w, k, zero_division)
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
