"""Trade-offs of very many labels, against enumeration of all thresholds or of all decisions."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import sparse
from sklearn import metrics as sk

import metricwise as mw

COUNTED = mw.Strategy("labels", False)


def _world(seed, n_rows, n_labels):
    rng = np.random.default_rng(seed)
    proba = np.where(rng.random((n_rows, n_labels)) < 0.8, rng.beta(0.7, 1.5, (n_rows, n_labels)), 0.0)
    return proba, (rng.random((n_rows, n_labels)) < proba).astype(int)


_METRICS = {"f1": sk.f1_score, "precision": sk.precision_score, "recall": sk.recall_score, "jaccard": sk.jaccard_score}


def _pooled(name, y, decided):
    return _METRICS[name](y.ravel(), decided.ravel(), zero_division=0)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("metric", "against", "ceiling"),
    [
        ("f1", "precision", False),
        ("recall", "precision", False),
        ("precision", "recall", False),
        ("f1", "recall", True),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pooled_metrics_have_the_best_of_all_thresholds(seed, metric, against, ceiling, dtype):
    proba, y = _world(seed, 9, 5)
    proba = proba.astype(dtype)
    frontier = mw.trade_off(
        sparse.csr_array(proba), y, metric, against, ceiling=ceiling, n_points=6, average="micro", strategy=COUNTED
    )
    thresholds = [0.0, *np.nextafter(np.unique(proba[y == 1]), dtype(0)), 1.0]
    pairs = [(_pooled(metric, y, proba > t), _pooled(against, y, proba > t)) for t in thresholds]
    sign = -1 if ceiling else 1
    for bound, value, other in zip(frontier.bounds, frontier.values, frontier.others, strict=True):
        assert sign * other >= sign * bound - 1e-12
        assert value == pytest.approx(max(v for v, o in pairs if sign * o >= sign * bound - 1e-9), abs=1e-12)
    assert frontier.bounds[-1] == pytest.approx(sign * max(sign * other for _, other in pairs))


@pytest.mark.parametrize("seed", range(5))
def test_expected_counts_of_thresholds(seed):
    proba, _ = _world(seed, 9, 5)
    frontier = mw.trade_off(sparse.csr_array(proba), None, "recall", "precision", n_points=5, average="micro")
    for bound, value, rule in zip(frontier.bounds, frontier.values, frontier.rules, strict=True):
        kept = []
        for threshold in [0.0, *np.nextafter(np.unique(proba[proba > 0]), 0.0)]:
            chosen = proba > threshold
            if proba[chosen].sum() >= bound * chosen.sum() - 1e-9:
                kept.append(proba[chosen].sum() / proba.sum())
        assert value == pytest.approx(max(kept))
        decided = rule.predict(sparse.csr_array(proba)).toarray()
        assert value == pytest.approx((decided * proba).sum() / proba.sum())


def _all_decisions(n_rows, n_labels, high):
    sets = [
        np.isin(np.arange(n_labels), chosen) for k in range(high + 1) for chosen in combinations(range(n_labels), k)
    ]
    return [np.array(rows, dtype=int) for rows in product(sets, repeat=n_rows)]


@pytest.mark.parametrize("seed", range(4))
def test_limited_labels_reach_what_the_best_decisions_at_prices_do(seed):
    rng = np.random.default_rng(seed)
    proba = rng.beta(1, 1, (4, 3))
    frontier = mw.trade_off(proba, None, "recall", "precision", n_points=4, average="micro", labels_per_row=2)
    hits, predicted = np.array([((d * proba).sum(), d.sum()) for d in _all_decisions(4, 3, 2)]).T
    precision = np.divide(hits, predicted, out=np.zeros_like(hits), where=predicted > 0)
    recall = hits / proba.sum()
    assert frontier.values[0] == pytest.approx(recall.max())
    for bound, value, other in zip(frontier.bounds, frontier.values, frontier.others, strict=True):
        assert other >= bound - 1e-12
        assert value <= recall[precision >= bound - 1e-9].max() + 1e-12
        prices = np.geomspace(0.05, 1e3, 200)[:, None]
        best = np.argmax(recall + prices * (hits - bound * predicted) / 8, axis=1)
        kept = best[precision[best] >= bound - 1e-9]
        if len(kept):
            assert value >= recall[kept].max() - 0.08


@pytest.mark.parametrize(
    ("metric", "labels_per_row", "against"),
    [
        ("f1_macro", 2, "precision"),
        ("f1_macro", (1, 2), "precision"),
        ("f1_macro", None, "recall"),
        ("precision@2", None, "recall"),
        ("f1_weighted", 2, "precision"),
        ("f1_micro", 2, "jaccard"),
        ("f1_micro", None, "precision"),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_points_keep_their_bounds_and_values_fall(metric, labels_per_row, against, weighted):
    proba, y = _world(1, 300, 15)
    weight = np.random.default_rng(0).random(300) if weighted else None
    rows = sparse.csr_array(proba)
    frontier = mw.trade_off(
        rows, y, metric, against, n_points=7, labels_per_row=labels_per_row, sample_weight=weight, record=["f1_samples"]
    )
    assert len(frontier) == 7
    assert (np.diff(frontier.bounds) >= 0).all()
    assert (np.diff(frontier.values) <= 1e-12).all()
    assert (frontier.others >= frontier.bounds - 1e-12).all()
    for place in range(7):
        point = frontier[place]
        assert isinstance(point.rule, mw.LabelRule)
        evaluation = mw.evaluate(point.rule, rows, y, [metric, f"{against}_micro", "f1_samples"], sample_weight=weight)
        assert evaluation[metric].value.estimate == pytest.approx(point.value, abs=1e-12)
        assert evaluation[f"{against}_micro"].value.estimate == pytest.approx(point.against, abs=1e-12)
        assert evaluation["f1_samples"].value.estimate == pytest.approx(point.recorded["f1_samples"], abs=1e-12)
    assert evaluation[metric].baseline.estimate == pytest.approx(frontier.baseline[0], abs=1e-12)
    assert frontier.rules[-1].metadata.subject_to == [f"{against} >= {frontier.bounds[-1]:.6g}"]


def test_points_are_no_worse_than_rules_that_keep_the_same_bound():
    proba, y = _world(2, 500, 20)
    rows = sparse.csr_array(proba)
    frontier = mw.trade_off(rows, y, "f1_macro", "precision", n_points=12, labels_per_row=3)
    for bound in frontier.bounds[[3, 6, 9]]:
        solution = mw.optimize(
            rows, y, "f1_macro", subject_to=f"precision >= {bound}", confidence=None, labels_per_row=3
        )
        assert frontier.choose(bound).value >= solution.value - 0.01


def test_dense_and_sparse_rows_have_the_same_frontier():
    proba, y = _world(3, 100, 8)
    first = mw.trade_off(proba, y, "f1_macro", "precision", n_points=4, labels_per_row=2)
    for rows in (sparse.csr_array(proba), [sparse.csr_array(proba[:40]), sparse.csr_array(proba[40:])]):
        other = mw.trade_off(rows, y, "f1_macro", "precision", n_points=4, labels_per_row=2)
        np.testing.assert_allclose(other.values, first.values, atol=1e-12)
        np.testing.assert_allclose(other.others, first.others, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"metric": "f1_samples"}, "a trade-off is not computed for average='instance' of very many labels"),
        ({"metric": "label_coverage"}, "a trade-off is not computed for 'label_coverage' of very many labels"),
        ({"subject_to": "recall >= 0.1"}, "subject_to must be left out with sparse probabilities"),
        ({"against": "mcc"}, "which is no ratio of counts"),
        ({"abstain": 0.1}, "abstain must be left out"),
        ({"classes": [0, 1]}, "classes must be left out"),
        ({"sample_weight": mw.Frequencies(np.ones(20))}, "sample_weight must not be Frequencies"),
        ({"n_points": 1}, "n_points must be a whole number of at least 2"),
        ({"labels_per_row": 0}, "labels_per_row must be the largest number of labels"),
        ({"strategy": mw.Strategy(randomized=True)}, "leave randomized at its default"),
    ],
)
def test_refusals(options, match):
    proba, y = _world(0, 20, 4)
    arguments = {"metric": "f1_macro", "against": "precision", "labels_per_row": 2, **options}
    with pytest.raises(mw.InvalidParameter, match=match):
        mw.trade_off(sparse.csr_array(proba), y, **arguments)
