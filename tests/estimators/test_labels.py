"""Estimators with very many labels: sparse indicator matrices, sparse probabilities, and a number of labels per row."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import metrics as sk
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, RepeatedKFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw
from metricwise.estimators._labels import LabelTarget, join_folds, read_label_target
from metricwise.estimators._targets import read_target


@pytest.fixture(scope="module")
def rows():
    X, y = make_multilabel_classification(240, n_features=8, n_classes=6, n_labels=2, random_state=0)
    return X, np.hstack([y, np.eye(240, 1, dtype=int)])  # the last label is true for one row


def _one_vs_rest():
    return OneVsRestClassifier(LogisticRegression())


class SparseBayes(ClassifierMixin, BaseEstimator):
    """Multilabel classifier whose probabilities are sparse, as those of libraries for very many labels."""

    def fit(self, X, y):
        self.form_of_y_ = type(y).__name__
        dense = y.toarray() if sparse.issparse(y) else np.asarray(y)
        self.models_ = [GaussianNB().fit(X, column) for column in dense.T]
        self.classes_ = np.arange(dense.shape[1])
        return self

    def predict_proba(self, X):
        columns = [model.predict_proba(X) @ (model.classes_ == 1) for model in self.models_]
        proba = np.stack(columns, axis=1)
        return sparse.csr_array(np.where(proba > 0.02, proba, 0.0))

    def predict(self, X):
        return sparse.csr_array(self.predict_proba(X) > 0.5)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


_FORMS = {"csr_matrix": sparse.csr_matrix, "csr_array": sparse.csr_array, "array": np.asarray}


_CASES = [
    ("f1_macro", _one_vs_rest(), "csr_matrix"),
    ("f1_samples", _one_vs_rest(), "array"),
    ("f1_macro", MultiOutputClassifier(LogisticRegression()), "csr_array"),
    ("precision@2", MultiOutputClassifier(LogisticRegression()), "array"),
    ("f1_macro", GaussianNB(), "csr_matrix"),
    *[
        (metric, estimator, form)
        for metric in ("f1_macro", "precision@2", "f1_samples")
        for estimator in (DecisionTreeClassifier(max_depth=3, random_state=0), SparseBayes())
        for form in _FORMS
    ],
]


@pytest.mark.parametrize(("metric", "estimator", "form"), _CASES)
def test_labels_are_limited_and_have_the_form_of_y(rows, metric, estimator, form):
    X, y = rows
    model = mw.MetricOptimalClassifierCV(estimator, metric=metric, labels_per_row=2, cv=3).fit(X, _FORMS[form](y))
    predicted = model.predict(X)
    assert type(predicted) is (np.ndarray if form == "array" else getattr(sparse, form))
    dense = predicted if form == "array" else predicted.toarray()
    assert dense.shape == y.shape
    assert dense.sum(axis=1).max() <= 2
    assert set(np.unique(dense)) == {0, 1}
    assert isinstance(model.rule_, mw.LabelSetRule if metric == "f1_samples" else mw.LabelRule)
    assert model.rule_.labels_per_row == (0, 2)
    if metric == "precision@2":
        expected = (dense * y).sum() / (2 * len(y))
    else:
        average = metric.removeprefix("f1_")
        expected = sk.f1_score(y, dense, average=average, zero_division=0)
    assert model.score(X, _FORMS[form](y)) == pytest.approx(expected, abs=1e-12)
    again = model.rule_.predict(model.decision_input(X))
    np.testing.assert_array_equal(again.toarray() if sparse.issparse(again) else again, dense)


def test_the_rule_is_that_of_out_of_fold_probabilities(rows):
    X, y = rows
    from sklearn.model_selection import KFold

    y = y[:, :6]
    folds = KFold(4)
    proba = cross_val_predict(_one_vs_rest(), X, y, cv=folds, method="predict_proba")
    expected = mw.optimize(proba, y, "f1_macro", labels_per_row=(1, 2))
    for given in (y, sparse.csr_array(y)):
        model = mw.MetricOptimalClassifierCV(_one_vs_rest(), metric="f1_macro", labels_per_row=(1, 2), cv=folds)
        model.fit(X, given)
        assert model.rule_ == expected.rule
        assert model.best_score_ == expected.value
        assert model.gain_ == expected.gain
        assert model.cv_results_["recipe"] == [candidate.recipe for candidate in expected.candidates]


def test_sparse_probabilities_of_folds_are_stacked(rows):
    X, y = rows
    from sklearn.model_selection import KFold

    folds = KFold(4)
    parts = [(test, SparseBayes().fit(X[train], y[train]).predict_proba(X[test])) for train, test in folds.split(X)]
    proba = sparse.vstack([part for _, part in parts], format="csr")
    expected = mw.optimize(proba, y, "f1_micro")
    model = mw.MetricOptimalClassifierCV(SparseBayes(), metric="f1_micro", cv=folds).fit(X, sparse.csr_matrix(y))
    assert model.rule_ == expected.rule
    assert model.rule_.labels_per_row is None
    assert model.best_score_ == expected.value
    assert type(model.predict(X)) is sparse.csr_matrix
    assert type(model.predict_proba(X)) is sparse.csr_array
    assert type(model.decision_input(X)) is sparse.csr_array
    assert len(model.classes_) == 7


def test_without_labels_per_row_a_sparse_y_is_as_before(rows):
    X, y = rows
    y = y[:, :6]
    first, second = (
        mw.MetricOptimalClassifierCV(_one_vs_rest(), metric="f1_macro", cv=3).fit(X, given)
        for given in (y, sparse.csr_matrix(y))
    )
    assert isinstance(first.rule_, mw.WeightedRule)
    assert first.rule_ == second.rule_
    assert isinstance(second.predict(X), np.ndarray)
    np.testing.assert_array_equal(first.predict(X), second.predict(X))


def test_estimators_are_given_the_labels_that_they_take(rows):
    X, y = rows
    for form, seen in (("csr_matrix", "csr_matrix"), ("csr_array", "csr_array"), ("array", "ndarray")):
        model = mw.MetricOptimalClassifierCV(SparseBayes(), metric="f1_macro", labels_per_row=2, cv=3)
        assert model.fit(X, _FORMS[form](y)).estimator_.form_of_y_ == seen
    for estimator in (DecisionTreeClassifier(max_depth=3), make_pipeline(StandardScaler(), _one_vs_rest())):
        model = mw.MetricOptimalClassifierCV(estimator, metric="f1_macro", labels_per_row=2, cv=3)
        assert type(model.fit(X, sparse.csr_array(y)).predict(X)) is sparse.csr_array


def test_scores_of_a_decision_function(rows):
    X, y = rows
    model = mw.MetricOptimalClassifierCV(OneVsRestClassifier(LinearSVC()), metric="f1_macro", labels_per_row=2, cv=3)
    model.fit(X, sparse.csr_array(y))
    assert (model.input_, model.rule_.input, model.response_method_) == ("scores", "scores", "decision_function")
    assert model.predict(X).sum(axis=1).max() <= 2


@pytest.mark.parametrize(
    "options",
    [
        {"cv": 0.4, "refit": False},
        {"cv": RepeatedKFold(n_splits=2, n_repeats=2, random_state=0)},
        {"cv": [(np.arange(120), np.arange(120, 200))]},
        {"average": "macro", "metric": "f1"},
        {"output_weight": np.arange(1, 8)},
        {"record": ["f1_samples", "precision@2"]},
        {"strategy": mw.Strategy("expected", False)},
        {"metric": mw.metrics.RecallAt(2), "labels_per_row": None},
    ],
    ids=lambda options: "-".join(options),
)
def test_settings(rows, options):
    X, y = rows
    for estimator in (DecisionTreeClassifier(max_depth=3, random_state=0), SparseBayes()):
        settings = {"metric": "f1_macro", "labels_per_row": 2, "cv": 2, **options}
        model = mw.MetricOptimalClassifierCV(estimator, **settings).fit(X, sparse.csr_array(y))
        assert model.predict(X).sum(axis=1).max() <= 2
        assert np.isfinite(model.score(X, y))
        if "record" in options:
            assert set(model.solution_.recorded) == {"f1_samples", "precision@2"}


def test_prefitted_estimators(rows):
    X, y = rows
    fitted = SparseBayes().fit(X[:120], y[:120])
    model = mw.MetricOptimalClassifierCV(fitted, metric="f1_macro", labels_per_row=2, cv="prefit")
    model.fit(X[120:], sparse.csr_array(y[120:]))
    assert model.estimator_ is fitted
    assert model.rule_ == mw.optimize(fitted.predict_proba(X[120:]), y[120:], "f1_macro", labels_per_row=2).rule


def test_weights_and_groups(rows):
    X, y = rows
    rng = np.random.default_rng(0)
    weight, groups = rng.integers(0, 3, len(y)).astype(float), rng.integers(0, 40, len(y))
    model = mw.MetricOptimalClassifierCV(
        DecisionTreeClassifier(max_depth=3), metric="f1_macro", labels_per_row=2, cv=GroupKFold(3)
    )
    model.fit(X, sparse.csr_array(y), weight, groups=groups)
    predicted = model.predict(X)
    expected = sk.f1_score(y, predicted.toarray(), average="macro", sample_weight=weight, zero_division=0)
    assert model.score(X, y, weight) == pytest.approx(expected)


def test_names_of_columns_are_those_of_y(rows):
    X, y = rows
    names = list("abcdefg")
    model = mw.MetricOptimalClassifierCV(_one_vs_rest(), metric="f1_macro", labels_per_row=2, cv=3)
    model.fit(X, pd.DataFrame(y, columns=names))
    assert model.rule_.output_names == tuple(names)
    assert isinstance(model.predict(X), np.ndarray)


def test_grid_search_and_clone(rows):
    X, y = rows
    model = mw.MetricOptimalClassifierCV(
        DecisionTreeClassifier(random_state=0), metric=mw.metrics.PrecisionAt(2), labels_per_row=(1, 2), cv=2
    )
    copy = clone(model)
    assert copy.get_params()["labels_per_row"] == (1, 2)
    assert copy.metric == mw.metrics.PrecisionAt(2)
    search = GridSearchCV(model, {"labels_per_row": [2, (2, 2)], "estimator__max_depth": [1, 3]}, cv=2)
    search.fit(X, sparse.csr_array(y))
    assert search.best_params_["estimator__max_depth"] in (1, 3)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(X).shape == y.shape


@pytest.mark.parametrize("as_sparse", [False, True])
def test_fixed_rules(rows, as_sparse):
    X, y = rows
    given = sparse.csr_matrix(y) if as_sparse else y
    rule = mw.LabelRule.top(2, 7)
    for estimator in (MultiOutputClassifier(DecisionTreeClassifier(max_depth=3, random_state=0)), SparseBayes()):
        model = mw.FixedRuleClassifier(estimator, rule.to_json()).fit(X, given)
        predicted = model.predict(X)
        assert type(predicted) is (sparse.csr_matrix if as_sparse else np.ndarray)
        dense = predicted.toarray() if as_sparse else predicted
        assert (dense.sum(axis=1) == 2).all()
        assert model.score(X, given) == pytest.approx((dense == y).mean())
        assert len(model.classes_) == 7
    fitted = SparseBayes().fit(X, y)
    assert type(mw.FixedRuleClassifier(fitted, rule).predict(X)) is sparse.csr_array
    with pytest.raises(mw.InvalidParameter, match="estimator must have a dense predict_proba for this rule"):
        mw.FixedRuleClassifier(fitted, mw.WeightedRule.from_thresholds([0.5] * 7)).predict(X)


def test_scorers_of_metrics_of_rows(rows):
    X, y = rows
    model = mw.FixedRuleClassifier(SparseBayes(), mw.LabelRule.top(2, 7)).fit(X, y)
    expected = (model.predict(X) * y).sum() / (2 * len(y))
    for metric in ("precision@2", mw.metrics.PrecisionAt(2)):
        scorer = mw.make_scorer(metric)
        assert scorer(model, X, y) == pytest.approx(expected)
        assert scorer(model, X, sparse.csr_matrix(y)) == pytest.approx(expected)
        assert "precision@2" in repr(scorer)
    assert mw.make_scorer("recall@2", average="macro")(model, X, y) == pytest.approx(
        sk.recall_score(y, model.predict(X), average="macro", zero_division=0)
    )
    with pytest.raises(mw.InvalidParameter, match="'precision@1' is about at most 1 labels of a row, but 'y_pred'"):
        mw.make_scorer("precision@1")(model, X, y)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"average": "macro"}, "average must be 'micro' or 'instance' for 'precision@2'"),
        ({"order": [0, 1]}, "order must be left out for very many labels"),
        ({"classes": [0, 1]}, "classes must be left out for very many labels"),
        ({"abstain": 0.1}, "abstain must be left out for very many labels"),
        ({"pos_label": 0}, "pos_label must be 1 or None"),
    ],
)
def test_scorers_refuse_what_such_metrics_do_not_have(options, match):
    with pytest.raises(mw.InvalidParameter, match=match):
        mw.make_scorer("precision@2", **options)


@pytest.mark.parametrize(
    ("options", "arguments", "match"),
    [
        ({"classes": [0, 1]}, {}, "classes must be left out with sparse probabilities or labels_per_row"),
        ({"order": [0, 1]}, {}, "order must be left out"),
        ({"abstain": 0.1}, {}, "abstain must be left out"),
        ({"pos_label": 0}, {}, "pos_label must be 1 or None"),
        ({"labels_per_row": 8}, {}, "labels_per_row must be at most the number of labels, 7"),
        ({"labels_per_row": (3, 1)}, {}, "labels_per_row must be"),
        ({"metric": "precision@3"}, {}, "labels_per_row must allow at most 3 labels for 'precision@3'"),
        ({"metric": ["f1"] * 7}, {}, "metric must be one metric for all labels"),
        ({"response": "predict_log_proba"}, {}, "response must be 'auto', 'predict_proba' or 'decision_function'"),
        ({}, {"sensitive_features": ["a"] * 240}, "sensitive_features must be left out"),
        ({}, {"cost": np.ones((240, 2))}, "cost must be left out"),
        ({}, {"sample_weight": mw.Frequencies(np.ones(240))}, "sample_weight must not be Frequencies"),
        ({}, {"groups": mw.InTime(np.arange(240))}, "groups must not be an InTime"),
        ({}, {"y": np.arange(240) % 3}, "y must be an indicator matrix of shape"),
        ({}, {"y": np.full((240, 7), 2)}, "y must be 0 or 1"),
        ({}, {"y": np.full((240, 7), np.nan)}, "y must not have missing labels"),
    ],
)
def test_refusals(rows, options, arguments, match):
    X, y = rows
    model = mw.MetricOptimalClassifierCV(_one_vs_rest(), **{"metric": "f1_macro", "labels_per_row": 2, **options})
    with pytest.raises(mw.InvalidParameter, match=match):
        model.fit(X, **{"y": y, **arguments})


def test_sparse_probabilities_need_an_indicator_matrix(rows):
    X, y = rows

    class Disguised(SparseBayes):
        def fit(self, X, y):
            return super().fit(X, np.asarray(y) == "yes")

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.target_tags.multi_output = True
            return tags

    words = np.where(y[:, :6] == 1, "yes", "no")
    with pytest.raises(mw.InvalidParameter, match="y must be an indicator matrix of 0 and 1 without missing labels"):
        mw.MetricOptimalClassifierCV(Disguised(), metric="balanced_accuracy", cv=2).fit(X, words)


def test_rare_labels_do_not_warn(rows):
    X, y = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mw.MetricOptimalClassifierCV(_one_vs_rest(), metric="f1_macro", labels_per_row=2, cv=3)
        model.fit(X, sparse.csr_array(np.hstack([y, np.zeros((len(y), 1), dtype=int)])))
    assert isinstance(model.estimator_, OneVsRestClassifier)


def test_an_indicator_matrix_that_is_never_dense():
    rng = np.random.default_rng(0)
    n_rows, n_labels = 2000, 1_000_000
    X = rng.random((n_rows, 2))
    y = sparse.csr_array((np.ones(n_rows), (np.arange(n_rows), rng.integers(0, 50, n_rows))), shape=(n_rows, n_labels))

    class Frequent(SparseBayes):
        def fit(self, X, y):
            counts = np.asarray(y.sum(axis=0)).ravel()
            self.labels_ = np.argsort(-counts, kind="stable")[:5]
            self.share_ = counts[self.labels_] / y.shape[0]
            self.n_labels_ = y.shape[1]
            return self

        def predict_proba(self, X):
            indices = np.tile(np.sort(self.labels_), len(X))
            values = np.tile(self.share_[np.argsort(self.labels_)], len(X))
            return sparse.csr_array((values, indices, np.arange(len(X) + 1) * 5), shape=(len(X), self.n_labels_))

    model = mw.MetricOptimalClassifierCV(Frequent(), metric="f1_micro", cv=2).fit(X, y)
    predicted = model.predict(X)
    assert predicted.shape == (n_rows, n_labels)
    assert predicted.nnz > 0
    assert 0 < model.score(X, y) < 1


# ------------------------------------------------------------------------------------------------------------- targets


def test_targets_are_those_of_codes(rows):
    _, y = rows
    target, codes = read_label_target(sparse.csr_array(y)), read_target(y)
    assert isinstance(target, LabelTarget)
    assert target.compete
    assert target.indicator
    np.testing.assert_array_equal(target.codes, codes.codes)
    np.testing.assert_array_equal(target.class_rows(), codes.class_rows())
    pairs = np.stack([target.strata(), codes.strata()], axis=1)
    assert len(np.unique(pairs, axis=0)) == len(np.unique(pairs[:, 0])) == len(np.unique(pairs[:, 1]))
    for m in (0, 6):
        for mine, theirs in zip(target.column(m), codes.column(m), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    some = target.take(np.arange(1, 200, 2))
    np.testing.assert_array_equal(some.codes, y[1:200:2])
    assert (target.complete, some.complete) == (True, False)
    np.testing.assert_array_equal(target.whole(dense=True), y)


@pytest.mark.parametrize("tests", [[[2, 0], [1, 4]], [[0, 1, 2], [1, 4]], [None, [3]]])
def test_folds_are_joined_in_the_order_of_rows(tests):
    rng = np.random.default_rng(0)
    n_rows = 5
    numbers = [np.arange(n_rows) if part is None else np.array(part) for part in tests]
    answers = [rng.random((len(part), 3)) for part in numbers]
    sums, counts = np.zeros((n_rows, 3)), np.zeros(n_rows, dtype=int)
    for part, answer in zip(numbers, answers, strict=True):
        sums[part] += answer
        counts[part] += 1
    kept = np.flatnonzero(counts)
    expected = sums[kept] / counts[kept, None]
    np.testing.assert_allclose(join_folds(answers, tests, counts, kept), expected)
    joined = join_folds([sparse.csr_array(answer) for answer in answers], tests, counts, kept)
    np.testing.assert_allclose(joined.toarray(), expected)
