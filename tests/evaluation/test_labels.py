"""``evaluate`` for very many labels: values against scikit-learn and hand-written counts, intervals by simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import metrics as sk

import metricwise as mw

N, M = 300, 12


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(3)
    proba = np.where(rng.random((N, M)) < 0.6, rng.beta(0.6, 2, (N, M)), 0.0)
    y = (rng.random((N, M)) < proba).astype(int)
    rule = mw.LabelRule(rng.uniform(0.5, 2, M), -rng.uniform(0.1, 0.5, M), labels_per_row=(1, 3))
    return proba, y, rule, rng.random(N) + 0.1


_SKLEARN = {
    "f1_macro": lambda y, p, w: sk.f1_score(y, p, average="macro", sample_weight=w, zero_division=0),
    "f1_micro": lambda y, p, w: sk.f1_score(y, p, average="micro", sample_weight=w, zero_division=0),
    "f1_weighted": lambda y, p, w: sk.f1_score(y, p, average="weighted", sample_weight=w, zero_division=0),
    "f1_samples": lambda y, p, w: sk.f1_score(y, p, average="samples", sample_weight=w, zero_division=0),
    "precision_macro": lambda y, p, w: sk.precision_score(y, p, average="macro", sample_weight=w, zero_division=0),
    "recall_micro": lambda y, p, w: sk.recall_score(y, p, average="micro", sample_weight=w, zero_division=0),
    "jaccard_samples": lambda y, p, w: sk.jaccard_score(y, p, average="samples", sample_weight=w, zero_division=0),
    "hamming_loss": lambda y, p, w: sk.hamming_loss(y, p, sample_weight=w),
}


@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_scikit_learn(world, weighted):
    proba, y, rule, weight = world
    weight = weight if weighted else None
    rule = mw.LabelRule(rule.scale, rule.offset)
    evaluation = mw.evaluate(rule, sparse.csr_array(proba), sparse.csr_array(y), list(_SKLEARN), sample_weight=weight)
    decided, usual = rule.predict(proba), (proba > 0.5).astype(int)
    for name, value in _SKLEARN.items():
        first, second = value(y, decided, weight), value(y, usual, weight)
        assert evaluation[name].value.estimate == pytest.approx(first, abs=1e-12), name
        assert evaluation[name].baseline.estimate == pytest.approx(second, abs=1e-12), name
        assert evaluation[name].difference.estimate == pytest.approx(first - second, abs=1e-12), name
    assert evaluation.notes == ("Argmax predicts labels of a probability above 0.5.",)


def _top(proba, k):
    decided = np.zeros(proba.shape, dtype=int)
    order = np.argsort(-proba, axis=1, kind="stable")[:, :k]
    np.put_along_axis(decided, order, 1, axis=1)
    return decided


def test_metrics_at_k_are_counted_by_hand(world):
    proba, y, _, weight = world
    rule = mw.LabelRule.top(3, M)
    metrics = ["precision@3", "recall@3", "label_coverage", "propensity_precision@3"]
    evaluation = mw.evaluate(rule, sparse.csr_array(proba), y, metrics, sample_weight=weight)
    hits = _top(proba, 3) * y
    assert evaluation["precision@3"].value.estimate == pytest.approx(weight @ hits.sum(axis=1) / (3 * weight.sum()))
    assert evaluation["recall@3"].value.estimate == pytest.approx(weight @ hits.sum(axis=1) / (weight @ y.sum(axis=1)))
    assert evaluation["label_coverage"].value.estimate == pytest.approx(hits.any(axis=0).mean())
    value = 1 + (np.log(N) - 1) * 2.5**0.55 * (y.sum(axis=0) + 1.5) ** -0.55
    best = np.sort(y * value, axis=1)[:, -3:].sum(axis=1)
    expected = weight @ (hits @ value) / (weight @ best)
    assert evaluation["propensity_precision@3"].value.estimate == pytest.approx(expected)
    for name in metrics:  # the baseline is the same three labels
        assert evaluation[name].difference.estimate == 0
    assert evaluation.notes == ("Argmax predicts the 3 most probable labels of a row.",)


def test_recall_at_k_takes_an_average(world):
    proba, y, _, _ = world
    decided = _top(proba, 3)
    macro = mw.evaluate(mw.LabelRule.top(3, M), proba, y, ["recall@3", "precision@3"], average="macro")
    assert macro["recall@3"].value.estimate == pytest.approx(
        sk.recall_score(y, decided, average="macro", zero_division=0)
    )
    assert macro["precision@3"].value.estimate == pytest.approx((decided * y).sum() / (3 * N))


def test_the_baseline_has_the_budget_of_the_rule(world):
    proba, y, rule, _ = world
    evaluation = mw.evaluate(rule, sparse.csr_array(proba), y, "f1_macro")
    ranks = np.argsort(np.argsort(-proba, axis=1, kind="stable"), axis=1)
    usual = ((ranks < 1) | ((ranks < 3) & (proba > 0.5))).astype(int)
    expected = sk.f1_score(y, usual, average="macro", zero_division=0)
    assert evaluation["f1_macro"].baseline.estimate == pytest.approx(expected, abs=1e-12)
    (note,) = evaluation.notes
    assert note == (
        "Argmax predicts the most probable labels of a row, at most 3, of a probability above 0.5 beyond the first one."
    )


def test_every_way_to_give_the_same_gives_the_same(world):
    proba, y, rule, _ = world
    csr = sparse.csr_array(proba)
    expected = repr(mw.evaluate(rule, csr, y, "f1_macro"))
    halves = [csr[:100], csr[100:]]
    for given, rows, labels in (
        (rule, proba, y),
        (rule.to_json(), sparse.csr_matrix(proba), sparse.csr_matrix(y)),
        (rule.to_dict(), csr.tocoo(), y.astype(bool)),
        (rule, halves, [sparse.csr_array(y[:100]), sparse.csr_array(y[100:])]),
        (rule, pd.DataFrame(proba), pd.DataFrame(y)),
        (rule, csr.astype(np.float64), y.tolist()),
    ):
        assert repr(mw.evaluate(given, rows, labels, "f1_macro")) == expected


def test_decisions_are_compared_with_decisions(world):
    proba, y, rule, _ = world
    other = (proba > 0.3).astype(int)
    by_rule = mw.evaluate(rule, sparse.csr_array(proba), y, "f1_micro", against=other)
    decided = rule.predict(sparse.csr_array(proba))
    alone = mw.evaluate(decided, None, sparse.csr_array(y), "f1_micro", against=sparse.csr_array(other))
    by_threshold = mw.evaluate(decided, sparse.csr_array(proba), y, "f1_micro", against=0.3)
    assert repr(by_rule) == repr(alone) == repr(by_threshold)
    assert by_rule["f1_micro"].baseline.estimate == pytest.approx(sk.f1_score(y, other, average="micro"))
    dense = mw.evaluate(rule.predict(proba), proba, y, "precision@3", against=decided)
    assert dense["precision@3"].difference.estimate == 0


def test_decisions_are_compared_with_as_many_probable_labels_as_the_metric_is_about(world):
    proba, y, _, _ = world
    evaluation = mw.evaluate(sparse.csr_array(_top(proba, 2)), proba, y, "precision@2")
    assert evaluation["precision@2"].difference.estimate == 0


def test_ordinary_rules_are_judged_by_metrics_of_rows(world):
    proba, y, _, _ = world
    rule = mw.WeightedRule.from_thresholds([0.9] * M)
    evaluation = mw.evaluate(rule, proba, y, ["label_coverage", "f1_macro"])
    decided = (proba > 0.9).astype(int)
    assert evaluation["label_coverage"].value.estimate == pytest.approx((decided * y).any(axis=0).mean())
    assert evaluation["f1_macro"].value.estimate == pytest.approx(
        sk.f1_score(y, decided, average="macro", zero_division=0)
    )


def test_two_models(world):
    proba, y, rule, _ = world
    noisy = np.clip(proba + 0.1 * (proba > 0), 0, 1)
    models = {"first": (rule, sparse.csr_array(proba)), "second": (0.4, noisy)}
    evaluation = mw.evaluate(models, y, "f1_micro")
    assert (evaluation.title, evaluation.against) == ("first", "second")
    expected = sk.f1_score(y, noisy > 0.4, average="micro")
    assert evaluation["f1_micro"].baseline.estimate == pytest.approx(expected)


def test_logits_and_scores(world):
    proba, y, _, _ = world
    kept = proba > 0
    logits = sparse.csr_array((np.log(proba[kept]) - np.log1p(-proba[kept]), kept.nonzero()), shape=proba.shape)
    by_logits = mw.evaluate(np.log(0.3 / 0.7), logits, y, "f1_micro", input="logits")
    by_proba = mw.evaluate(0.3, sparse.csr_array(proba), y, "f1_micro")
    assert repr(by_logits) == repr(by_proba)
    top = mw.LabelRule(np.ones(M), np.full(M, -0.3), 2, input="logits")
    assert mw.evaluate(top, logits, y, "f1_micro")["f1_micro"].value.estimate == pytest.approx(
        mw.evaluate(mw.LabelRule(np.ones(M), np.full(M, -0.3), 2), proba, y, "f1_micro")["f1_micro"].value.estimate
    )
    scores = mw.LabelRule(np.ones(M), np.full(M, -0.3), input="scores", temperature=1.0, bias=0.0)
    assert mw.evaluate(scores, logits, y, "f1_micro")["f1_micro"].baseline.estimate == pytest.approx(
        by_proba["f1_micro"].baseline.estimate
    )


@pytest.mark.parametrize(
    "metric", ["f1_macro", "precision@2", "recall@2", "f1_samples", "label_coverage", "f1_weighted"]
)
def test_the_metric_is_by_default_that_of_the_rule(world, metric):
    proba, y, _, _ = world
    solution = mw.optimize(
        sparse.csr_array(proba), y, metric, labels_per_row=2, strategy=mw.Strategy("expected", False)
    )
    evaluation = mw.evaluate(solution, sparse.csr_array(proba), y)
    assert list(evaluation) == [metric]
    assert evaluation[metric].value.estimate == pytest.approx(solution.value, abs=1e-12)
    assert evaluation[metric].baseline.estimate == pytest.approx(solution.baseline, abs=1e-12)


def test_recorded_instance_averages_are_those_of_rows(world):
    proba, y, _, _ = world
    solution = mw.optimize(sparse.csr_array(proba), y, "f1_macro", labels_per_row=3, record=["f1_samples"])
    decided = solution.rule.predict(proba)
    expected = sk.f1_score(y, decided, average="samples", zero_division=0)
    assert solution.recorded["f1_samples"].value == pytest.approx(expected, abs=1e-12)


def test_columns_of_frames_are_matched_by_name(world):
    proba, y, _, _ = world
    names = [f"label {m}" for m in range(M)]
    rule = mw.LabelRule(np.arange(1.0, M + 1), np.full(M, -0.4), 3, output_names=names)
    back = list(reversed(names))
    frame, labels = pd.DataFrame(proba, columns=names), pd.DataFrame(y, columns=names)
    expected = mw.evaluate(rule, frame, labels, "f1_macro")
    assert repr(mw.evaluate(rule, frame[back], labels[back], "f1_macro")) == repr(expected)
    assert repr(mw.evaluate(rule, frame, labels[back], "f1_macro")) == repr(expected)


def test_output_weight_weighs_labels(world):
    proba, y, rule, _ = world
    weight = np.arange(1.0, M + 1)
    by_label = sk.f1_score(y, rule.predict(proba), average=None, zero_division=0)
    evaluation = mw.evaluate(rule, sparse.csr_array(proba), y, "f1", average="macro", output_weight=weight)
    assert evaluation["f1"].value.estimate == pytest.approx(np.average(by_label, weights=weight))


def test_groups_widen_intervals_of_rows_that_are_alike(world):
    proba, y, rule, _ = world
    rows = np.repeat(np.arange(60), 5)
    csr, labels = sparse.csr_array(proba[rows]), y[rows]
    alone = mw.evaluate(rule, csr, labels, "f1_micro")["f1_micro"].value
    together = mw.evaluate(rule, csr, labels, "f1_micro", groups=rows)["f1_micro"].value
    assert together.estimate == alone.estimate
    assert together.high - together.low > 1.5 * (alone.high - alone.low)


# ----------------------------------------------------------------------------------------------------------- intervals


@pytest.mark.slow
def test_intervals_cover_the_value_of_fresh_rows():
    rng = np.random.default_rng(0)
    n_labels, n_rows, n_worlds = 20, 200, 150
    shares = np.geomspace(0.3, 0.02, n_labels)
    rule = mw.LabelRule(1 / np.sqrt(shares), np.full(n_labels, -0.6), labels_per_row=(1, 3))
    metrics = ["f1_macro", "f1_micro", "f1_samples", "precision_macro"]
    values, differences, covered = [], [], []
    for _ in range(n_worlds):
        proba = rng.beta(2 * shares, 2 * (1 - shares), (n_rows, n_labels))
        y = rng.random((n_rows, n_labels)) < proba
        evaluation = mw.evaluate(rule, sparse.csr_array(proba), sparse.csr_array(y), metrics)
        values.append([evaluation[name].value.estimate for name in metrics])
        differences.append([evaluation[name].difference.estimate for name in metrics])
        covered.append(
            [
                [(estimate.low, estimate.high) for estimate in (evaluation[name].value, evaluation[name].difference)]
                for name in metrics
            ]
        )
    truth = np.stack([np.mean(values, axis=0), np.mean(differences, axis=0)], axis=1)
    ends = np.array(covered)
    shares_covered = ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).mean(axis=0)
    assert (shares_covered >= 0.88).all(), shares_covered
    assert (shares_covered <= 1.0).all()
    assert 0.92 <= shares_covered.mean() <= 0.98


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"sensitive_features": ["a"] * N}, "sensitive_features must be left out for very many labels"),
        ({"cost": np.ones((N, 2))}, "cost must be left out for very many labels"),
        ({"abstain": 0.2}, "abstain must be left out for very many labels"),
        ({"order": [0, 1]}, "order must be left out for very many labels"),
        ({"sample_weight": mw.Frequencies(np.ones(N))}, "sample_weight must not be Frequencies"),
        ({"groups": mw.InTime(np.arange(N))}, "groups must not be an InTime"),
        ({"pos_label": 0}, "pos_label must be 1 or None"),
        ({"metrics": "equalized_odds"}, "metrics must not be about groups of rows"),
        ({"metrics": mw.worst_group("f1")}, "metrics must not be about groups of rows"),
        ({"metrics": "cost"}, "metrics must not be about costs of rows"),
        ({"metrics": "precision@2"}, "'precision@2' is about at most 2 labels of a row, but 'rule' predicts 3"),
        ({"metrics": ["f1_macro", "f1_macro"]}, "'f1_macro' is the name of two metrics"),
        ({"metrics": [{"a": "f1", "b": "f1"}]}, "metric must be one metric for all labels"),
        ({"y": None}, "y must hold the labels of the rows"),
        ({"y": np.zeros(N)}, "y must be an indicator matrix"),
        ({"y": np.zeros((N, M + 1))}, "y must have the shape of proba"),
        ({"y": np.full((N, M), 2)}, "y must be 0 or 1"),
        ({"proba": None}, "proba must hold the probabilities"),
        ({"proba": sparse.csr_array((N, M + 1))}, "proba must have 12 columns"),
        ({"input": "logits"}, "the rule was fitted to probabilities"),
        ({"against": sparse.csr_array((N, M + 1))}, "against must have the shape of proba"),
        ({"against": mw.LabelRule.top(3, M + 1)}, "against must be a rule for the same outputs"),
        ({"against": mw.WeightedRule.from_thresholds([0.5] * M)}, "proba must be dense for a WeightedRule"),
        ({"rule": 1.5}, "rule as a threshold must be a number in"),
        ({"rule": mw.WeightedRule.from_thresholds(0.5)}, "a WeightedRule that has one output"),
        ({"rule": 0.3, "metrics": None}, "metrics must be given, because thresholds and decisions"),
        ({"rule": 0.3, "input": "scores"}, "against must be given if no rule maps scores"),
    ],
)
def test_refusals(world, options, match):
    proba, y, rule, _ = world
    arguments = {"rule": rule, "proba": sparse.csr_array(proba), "y": y, "metrics": "f1_macro", **options}
    with pytest.raises(mw.InvalidParameter, match=match):
        mw.evaluate(**arguments)


def test_rules_of_other_classes_are_refused(world):
    proba, y, _, _ = world
    rule = mw.WeightedRule.from_thresholds([0.5] * M, classes=[["no", "yes"]] * M, pos_label="yes")
    with pytest.raises(mw.InvalidParameter, match="rule must have the classes 0 and 1"):
        mw.evaluate(rule, proba, y, "precision@3")
