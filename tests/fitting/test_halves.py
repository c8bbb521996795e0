"""Each half of the rows is decided by the rule of the other half, and the metric is counted once."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score, matthews_corrcoef, recall_score

import metricwise as mw
import worlds
from metricwise.fitting.bagging import deal_halves
from problems import read_problem


def blocks(proba, y, metric="accuracy", **options):
    return deal_halves(read_problem(proba, y, metric, **options)).block


def many_positives(n=1500, seed=0):
    p = np.random.default_rng(seed).beta(2, 3, n).round(2)
    return p, worlds.draw_flags(p, seed)


def best_thresholds(p, y, score):
    """Points inside every interval of thresholds that is best on some rows."""
    edges = np.concatenate([[-1.0], np.unique(p), [2.0]])
    inside = edges[:-1] + np.diff(edges) * 0.5
    values = np.array([score(y, p > t) for t in inside])
    best = np.flatnonzero(values >= values.max() - 1e-12)
    return np.concatenate([edges[i] + (edges[i + 1] - edges[i]) * np.linspace(1e-6, 1 - 1e-6, 9) for i in best])


# ------------------------------------------------------------------------------------------------------------ halves


def test_halves_do_not_depend_on_probabilities():
    p, y = many_positives()
    other = np.random.default_rng(1).random(len(p))
    assert np.array_equal(blocks(p, y), blocks(other, y))


def test_halves_are_of_one_size_in_every_class():
    proba, y = worlds.multiclass(503, (5, 2, 1))
    block = blocks(proba, y)
    assert abs(np.bincount(block)[0] - 251.5) <= 1.5
    for label in np.unique(y):
        first, second = np.bincount(block[y == label], minlength=2)
        assert abs(first - second) <= 1


def test_halves_do_not_alternate():
    """Rows of two sites in turn would otherwise be separated by site."""
    p, y = many_positives()
    block = blocks(p, y)
    assert 0.4 < block[::2].mean() < 0.6


def test_groups_stay_whole_and_are_dealt_by_label():
    p, y = many_positives(600)
    groups = np.arange(600) // 6
    block = blocks(p, y, groups=groups)
    assert all(len(set(block[groups == g])) == 1 for g in range(100))
    assert np.array_equal(block, blocks(np.sqrt(p), y, groups=groups))
    assert abs(y[block == 0].mean() - y[block == 1].mean()) < 0.05


def test_rows_in_time_are_an_earlier_and_a_later_half():
    p, y = many_positives(600)
    time = np.random.default_rng(3).permutation(600)
    block = blocks(p, y, groups=mw.InTime(time, length=5))
    assert time[block == 0].max() <= time[block == 1].min() + 5


# ------------------------------------------------------------------------------------------------------------ values


@pytest.mark.parametrize(("metric", "score"), [("f1", f1_score), ("mcc", matthews_corrcoef)])
def test_equals_thresholds_by_enumeration(metric, score):
    """The value is that of thresholds among the best of each half; any point between two scores may be taken."""
    p, y = many_positives()
    block = blocks(p, y)
    candidates = [best_thresholds(p[block == half], y[block == half], score) for half in (0, 1)]
    values = []
    for first in np.unique(candidates[0]):
        for second in np.unique(candidates[1]):
            decided = np.where(block == 1, p > first, p > second)
            values.append(score(y, decided))
    low, high = min(values), max(values)
    assert low - 1e-12 <= mw.value_at_best(p, y, metric) <= high + 1e-12
    assert high - low < 0.02


@pytest.mark.parametrize(
    ("metric", "score"),
    [
        ("quadratic_kappa", lambda y, h: cohen_kappa_score(y, h, weights="quadratic")),
        ("g_mean", lambda y, h: np.prod(recall_score(y, h, average=None)) ** (1 / 3)),
        ("accuracy", lambda y, h: np.mean(y == h)),
    ],
)
def test_equals_rules_of_optimize_on_each_half(metric, score):
    proba, y = worlds.multiclass(1500, (3, 2, 1), sharpen=2)
    block = blocks(proba, y)
    decided = np.empty_like(y)
    fixed = mw.Strategy(confusion="expected", recalibrate=True)
    for half in (0, 1):
        rule = mw.optimize(proba[block == half], y[block == half], metric, strategy=fixed).rule
        decided[block != half] = rule.predict(proba[block != half])
    assert mw.value_at_best(proba, y, metric) == pytest.approx(score(y, decided), abs=2e-3)


def test_several_outputs_are_averaged():
    proba, y = worlds.of_kind("multilabel", 900)
    decided = np.empty_like(y)
    block = blocks(proba, y, "f1_macro")
    fixed = mw.Strategy(confusion="expected", recalibrate=True)
    for half in (0, 1):
        rule = mw.optimize(proba[block == half], y[block == half], "f1_macro", strategy=fixed).rule
        decided[block != half] = rule.predict(proba[block != half])
    assert mw.value_at_best(proba, y, "f1_macro") == pytest.approx(f1_score(y, decided, average="macro"), abs=2e-3)


@pytest.mark.parametrize("n_rows", [500, 20_000])
def test_is_near_the_best_value_of_a_known_world(n_rows):
    """Of eta ** 3, which argmax decides badly: the best rule is the same as that of eta."""
    rng = np.random.default_rng(0)
    fresh = rng.beta(1, 5, 200_000)
    labels = rng.random(200_000) < fresh
    truth = max(f1_score(labels, fresh > t) for t in np.linspace(0.1, 0.5, 41))
    values = []
    for seed in range(8):
        eta = np.random.default_rng(seed + 1).beta(1, 5, n_rows)
        y = worlds.draw_flags(eta, seed + 1)
        values.append(mw.value_at_best(eta**3, y, "f1"))
    assert np.mean(values) == pytest.approx(truth, abs=0.03 if n_rows == 500 else 0.006)


def test_order_of_scores_is_all_that_matters_for_two_classes():
    p, y = many_positives()
    assert mw.value_at_best(p, y, "f1") == pytest.approx(mw.value_at_best(p**2, y, "f1"), abs=0.01)


def test_scaled_weights_change_nothing_and_others_do():
    p, y = many_positives()
    weight = np.random.default_rng(2).random(len(p)) + 0.1
    value = mw.value_at_best(p, y, "f1", sample_weight=weight)
    assert mw.value_at_best(p, y, "f1", sample_weight=3 * weight) == pytest.approx(value, abs=1e-12)
    assert value != mw.value_at_best(p, y, "f1")


def test_function_of_labels_equals_the_metric():
    def f1_of_labels(y_true, y_pred):
        return f1_score(y_true, y_pred, average="macro")

    proba, y = worlds.multiclass(300, (3, 2, 1))
    value = mw.value_at_best(proba, y, f1_of_labels)
    assert value == pytest.approx(mw.value_at_best(proba, y, "macro_f1"), abs=0.03)


def test_costed_abstention_is_never_below_none():
    proba, y = worlds.multiclass(2000, (3, 2, 1))
    with_abstention = mw.value_at_best(proba, y, "accuracy", abstain=0.3)
    assert with_abstention > mw.value_at_best(proba, y, "accuracy") + 0.05


# ------------------------------------------------------------------------------------------------------- constraints


def test_constraint_bounds_the_threshold():
    p, y = many_positives(4000)
    block = blocks(p, y)
    decided = np.empty(len(p), dtype=bool)
    for half in (0, 1):
        fitted = mw.optimize(
            p[block == half], y[block == half], "recall", subject_to="precision >= 0.6", confidence=None
        )
        decided[block != half] = fitted.rule.predict(p[block != half]) == 1
    value = mw.value_at_best(p, y, "recall", subject_to="precision >= 0.6")
    assert value == pytest.approx(recall_score(y, decided), abs=5e-3)


def test_constraint_of_several_classes():
    proba, y = worlds.multiclass(1500, (3, 2, 1))
    free = mw.value_at_best(proba, y, "accuracy")
    floor = mw.value_at_best(proba, y, "accuracy", subject_to="recall[2] >= 0.6")
    assert 0.3 < floor < free - 0.01


def test_infeasible_halves_have_the_smallest_value():
    p, y = many_positives(1000)
    assert mw.value_at_best(p, y, "recall", subject_to=["precision >= 0.99", "recall >= 0.9"]) == 0.0
    assert mw.value_at_best(p, y, "mcc", subject_to=["precision >= 0.99", "recall >= 0.9"]) == -1.0
    proba, labels = worlds.multiclass(600, (3, 2, 1))
    bounds = ["precision[2] >= 0.95", "recall[2] >= 0.95"]
    assert mw.value_at_best(proba, labels, "accuracy", subject_to=bounds) == 0.0


def test_one_infeasible_half_counts_by_its_weight():
    """The rule of the half that is separable decides the other one; the rule of the other one does not exist."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    block = blocks(rng.random(400), y)
    p = np.where(block == 0, np.where(y == 1, 0.9, 0.1), rng.choice([0.05, 0.95], 400))
    weight = rng.random(400) + 0.5
    value = mw.value_at_best(p, y, "recall", subject_to=["precision >= 0.9", "recall >= 0.9"], sample_weight=weight)
    decided = block == 1
    recall = recall_score(y[decided], p[decided] > 0.5, sample_weight=weight[decided])
    assert value == pytest.approx(recall * weight[decided].sum() / weight.sum(), abs=1e-12)


# ------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": None}, "value_at_best: y must be the labels of the rows"),
        ({"metric": "precision@1"}, "not for very many labels"),
        ({"metric": "roc_auc"}, "roc_auc"),
        ({"y": [0, 0, 0, 0]}, "class"),
        ({"subject_to": "precision >= 2"}, "precision"),
        ({"groups": [0, 0, 0, 0]}, "at least two groups"),
    ],
)
def test_refusals(options, message):
    call = {"proba": [0.1, 0.4, 0.6, 0.9], "y": [0, 1, 0, 1], "metric": "f1"} | options
    with pytest.raises(ValueError, match=message):
        mw.value_at_best(**call)
