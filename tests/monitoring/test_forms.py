"""Forms of promises: their observations have the metric as the ratio of means, and stay within their range."""

from itertools import product

import numpy as np
import pytest

import metricwise as mw
from metricwise.monitoring.forms import BY_CLASS, BY_DECISION, MEANS, RANDOM
from metricwise.monitoring.promises import read_promises

K3 = mw.WeightedRule.from_weights([1, 1, 1], classes=[0, 1, 2])
K2 = mw.WeightedRule.from_thresholds(0.5)


def form_of(text, rule=K3):
    (promise,) = read_promises(rule, text, None, RANDOM)
    return promise.form


def rows(k, n=60, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, k, n)
    return codes, np.where(rng.random(n) < 0.6, codes, rng.integers(0, k, n))


RATIOS = {
    "accuracy": mw.metrics.Accuracy(),
    "precision[1]": mw.metrics.Precision(index=1),
    "recall[2]": mw.metrics.Recall(index=2),
    "f1[0]": mw.metrics.FBeta(index=0),
    "jaccard[1]": mw.metrics.Jaccard(index=1),
    "share[2]": mw.metrics.PredictedShare(index=2),
    "specificity[0]": mw.metrics.Specificity(index=0),
    "ordinal": mw.metrics.Ordinal(),
    "micro_f1": mw.metrics.MicroF1(),
}


@pytest.mark.parametrize("name", RATIOS)
def test_the_ratio_of_sums_is_the_metric(name):
    codes, decisions = rows(3)
    form = form_of(f"{name} >= 0.5")
    a, b = form.observe(codes[:, None], decisions[:, None])
    assert form.value(np.array([[a.sum()], [b.sum()]])) == pytest.approx(RATIOS[name].score(codes, decisions))
    missing = np.append(codes, [-1, -1])
    again = form.observe(missing[:, None], np.append(decisions, [0, 2])[:, None])
    assert again[1][-2:].sum() == (2 if name.startswith("share") else 0)


@pytest.mark.parametrize("name", ["kappa", "quadratic_kappa"])
def test_the_mean_over_all_pairs_is_kappa(name):
    codes, decisions = rows(3, n=40)
    form = form_of(f"{name} >= 0.5")
    pairs = np.array([(i, j) for i, j in product(range(40), repeat=2)])  # with itself: as if drawn with replacement
    own_A, own_B = form.own.A[codes, decisions].mean(), form.own.B[codes, decisions].mean()
    a, b = form.observe(codes[pairs], decisions[pairs])
    assert a.mean() / b.mean() == pytest.approx(mw.metrics.get_metric(name).score(codes, decisions))
    assert own_B == 0 > own_A


CLASS_MEANS = ["macro_f1", "macro_precision", "macro_recall", "balanced_accuracy"]
MEAN_NAMES = [*CLASS_MEANS, "g_mean", "h_mean", "q_mean", "min_recall"]


@pytest.mark.parametrize(("name", "k"), [*((name, 3) for name in MEAN_NAMES), ("mcc", 2), ("fowlkes_mallows", 2)])
def test_the_function_of_ratios_is_the_metric(name, k):
    codes, decisions = rows(k)
    form = form_of(f"{name} >= 0.3", K3 if k == 3 else K2)
    observed = [part.observe(codes[:, None], decisions[:, None]) for part in form.parts]
    sums = np.array([[a.sum() for a, _ in observed], [b.sum() for _, b in observed]])
    assert form.value(sums) == pytest.approx(mw.metrics.get_metric(name).score(codes, decisions))
    assert form.limits == (pytest.approx(-1.0 if name == "mcc" else 0.0), pytest.approx(1.0))


@pytest.mark.parametrize("kind", MEANS)
def test_means_increase_with_every_part(kind):
    rng = np.random.default_rng(0)
    weight = np.full(4, 0.25)
    for _ in range(200):
        values = rng.random(4)
        higher = values.copy()
        higher[rng.integers(4)] += rng.random() * (1 - higher.max())
        assert MEANS[kind](higher, weight) >= MEANS[kind](values, weight) - 1e-12


def test_parts_without_rows_are_left_out_or_zero():
    sums = np.array([[3.0, 0.0, 1.0], [4.0, 0.0, 2.0]])
    assert form_of("balanced_accuracy >= 0.5").value(sums) == pytest.approx(0.625)
    assert form_of("macro_f1 >= 0.5").value(sums) == pytest.approx(1.25 / 3)
    assert form_of("mcc >= 0.5", K2).value(np.array([[3.0, 0, 1, 1], [4.0, 0, 2, 2]])) is None
    assert form_of("g_mean >= 0.5").value(np.zeros((2, 3))) is None
    assert form_of("recall[1] >= 0.5").value(np.zeros((2, 1))) is None


@pytest.mark.parametrize(
    "text", ["accuracy >= 0.9", "f1[1] >= 0.7", "precision[0] <= 0.4", "kappa >= 0.6", "kappa <= 0.2"]
)
def test_slacks_stay_within_their_range(text):
    (promise,) = read_promises(K3, text, None, RANDOM)
    (side,) = promise.sides
    cells = np.array(list(product(range(3), repeat=4)))
    if text.startswith("kappa"):
        a, b = promise.form.observe(cells[:, :2], cells[:, 2:])
    else:
        a, b = promise.form.observe(cells[:, :1], cells[:, 2:3])
    slack = side.sign * (a - side.bound * b)
    low, high = (float(end[0]) for end in promise.form.slack_range(np.array([side.bound]), side.sign))
    assert low - 1e-12 <= slack.min() <= slack.max() <= high + 1e-12
    if not text.startswith("kappa"):
        assert (slack.min(), slack.max()) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("text", "by_decision", "by_class"),
    [
        ("precision[1] >= 0.5", True, False),
        ("recall[1] >= 0.5", False, True),
        ("share[1] >= 0.1", True, True),
        ("accuracy >= 0.5", False, False),
        ("f1[1] >= 0.5", False, False),
        ("kappa >= 0.5", False, False),
        ("balanced_accuracy >= 0.5", False, True),
        ("macro_precision >= 0.5", True, False),
        ("share[1] within 0.1 of prior", False, False),
    ],
)
def test_what_labels_that_are_missing_for_a_reason_show(text, by_decision, by_class):
    form = form_of(text)
    assert form.is_known(RANDOM)
    assert form.is_known(BY_DECISION) == by_decision
    assert form.is_known(BY_CLASS) == by_class


def test_what_is_known_is_right_by_simulation():
    """Labels kept by decision or by class: known ratios have the same mean, an unknown one does not."""
    rng = np.random.default_rng(0)
    codes, decisions = rows(3, n=200_000, seed=1)
    for labelled, of in ((BY_DECISION, decisions), (BY_CLASS, codes)):
        kept = rng.random(len(codes)) < np.array([0.9, 0.3, 0.05])[of]
        for text in ("precision[1] >= 0.5", "recall[1] >= 0.5"):
            form = form_of(text)
            a, b = form.observe(codes[:, None], decisions[:, None])
            difference = a[kept].sum() / b[kept].sum() - a.sum() / b.sum()
            assert (abs(difference) < 0.01) == form.is_known(labelled)
