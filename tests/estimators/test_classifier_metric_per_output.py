"""Estimators and scorers with a metric for each output."""

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as sk
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw

METRICS = {"grade": "quadratic_kappa", "spam": "f1"}
FIXED = {"confusion": "labels", "recalibrate": False}


def table(n=400, seed=0):
    """Features, and a frame of a grade from 0 to 3 and a label that is 1 or, for spam, 2."""
    rng = np.random.default_rng(seed)
    grade = rng.choice(4, p=[0.5, 0.3, 0.15, 0.05], size=n)
    spam = rng.random(n) < 0.2
    X = np.column_stack([grade + rng.normal(size=n), 2 * spam + rng.normal(size=n), rng.normal(size=n)])
    return X, pd.DataFrame({"grade": grade, "spam": np.where(spam, 2, 1)})


def by_scikit_learn(y, h):
    y = np.asarray(y)
    kappa = sk.cohen_kappa_score(y[:, 0], h[:, 0], weights="quadratic")
    return (kappa + sk.f1_score(y[:, 1], h[:, 1], pos_label=2)) / 2


@pytest.mark.parametrize(
    "metric",
    [METRICS, ["quadratic_kappa", "f1"], [sk.make_scorer(sk.cohen_kappa_score, weights="quadratic"), sk.f1_score]],
)
@pytest.mark.parametrize("cv", [None, "prefit"])
def test_the_classifier_fits_and_scores(metric, cv):
    X, y = table()
    inner = MultiOutputClassifier(LogisticRegression()).fit(X, y) if cv else LogisticRegression()
    model = mw.MetricOptimalClassifierCV(inner, metric=metric, pos_label=2, cv=cv, strategy=mw.Strategy(**FIXED)).fit(
        X, y
    )
    assert model.score(X, y) == pytest.approx(by_scikit_learn(y, model.predict(X)), abs=1e-12)
    assert model.score(X, y.to_numpy()) == model.score(X, y)
    assert model.rule_.metadata.metric.endswith("(spam)")
    assert model.best_score_ > model.solution_.baseline


def test_the_rule_of_each_output_is_that_of_a_classifier_of_its_own():
    X, y = table()
    folds = [(np.arange(200, 400), np.arange(200)), (np.arange(200), np.arange(200, 400))]
    options = {"cv": folds, "strategy": mw.Strategy(**FIXED)}
    both = mw.MetricOptimalClassifierCV(LogisticRegression(), metric=METRICS, pos_label=2, **options).fit(X, y)
    grade = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="quadratic_kappa", **options).fit(X, y["grade"])
    spam = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="f1", pos_label=2, **options).fit(X, y["spam"])
    decided = both.predict(X)
    np.testing.assert_array_equal(decided[:, 0], grade.predict(X))
    np.testing.assert_array_equal(decided[:, 1], spam.predict(X))
    assert both.best_score_ == pytest.approx((grade.best_score_ + spam.best_score_) / 2, abs=1e-12)


@pytest.mark.parametrize("metric", [METRICS, ["quadratic_kappa", mw.metrics.FBeta(beta=1.0)]])
def test_parameters_are_kept_cloned_and_searched_over(metric):
    X, y = table(200)
    model = mw.MetricOptimalClassifierCV(
        DecisionTreeClassifier(random_state=0), metric=metric, pos_label=2, strategy=mw.Strategy(**FIXED)
    )
    assert model.get_params()["metric"] is metric
    copy = clone(model)
    assert copy.metric == metric
    assert type(copy.metric) is type(metric)
    search = GridSearchCV(copy, {"estimator__max_depth": [1, 4]}, cv=2, error_score="raise").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.metric == metric
    assert search.score(X, y) == pytest.approx(by_scikit_learn(y, search.predict(X)), abs=1e-12)


def test_metrics_are_candidates_of_a_search():
    X, y = table(200)
    model = mw.MetricOptimalClassifierCV(
        LogisticRegression(), metric="accuracy", average="macro", strategy=mw.Strategy(**FIXED)
    )
    scorer = mw.make_scorer(METRICS, pos_label=2, classes=[[0, 1, 2, 3], [1, 2]])
    folds = list(KFold(3).split(X))
    candidates = ["accuracy", ["quadratic_kappa", "accuracy"], {"grade": "accuracy", "spam": "balanced_accuracy"}]
    search = GridSearchCV(model, {"metric": candidates}, scoring=scorer, cv=folds, error_score="raise").fit(X, y)
    for metric, found in zip(candidates, search.cv_results_["mean_test_score"], strict=True):
        fitted = [clone(model).set_params(metric=metric).fit(X[train], y.iloc[train]) for train, _ in folds]
        pairs = zip(fitted, folds, strict=True)
        values = [by_scikit_learn(y.iloc[test], one.predict(X[test])) for one, (_, test) in pairs]
        assert found == pytest.approx(np.mean(values), abs=1e-12)


def test_the_scorer_scores_any_estimator():
    X, y = table()
    y = y.assign(spam=(y["spam"] == 2).astype(int))
    scorer = mw.make_scorer(METRICS)
    model = MultiOutputClassifier(LogisticRegression()).fit(X, y)
    decided = model.predict(X)
    expected = (
        sk.cohen_kappa_score(y["grade"], decided[:, 0], weights="quadratic"),
        sk.f1_score(y["spam"], decided[:, 1]),
    )
    assert scorer(model, X, y) == pytest.approx(np.mean(expected), abs=1e-12)
    assert "quadratic_kappa (grade), f1 (spam)" in repr(scorer)
    assert np.isfinite(cross_val_score(model, X, y, scoring=scorer, error_score="raise")).all()
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    expected = (
        sk.cohen_kappa_score(y["grade"], decided[:, 0], weights="quadratic", sample_weight=weight),
        sk.f1_score(y["spam"], decided[:, 1], sample_weight=weight),
    )
    assert scorer(model, X, y, sample_weight=weight) == pytest.approx(np.mean(expected), abs=1e-12)
    listed = mw.make_scorer(["quadratic_kappa", sk.f1_score])
    assert listed(model, X, y.to_numpy()) == scorer(model, X, y)
    with pytest.raises(ValueError, match="keys, 0 to 1, because the outputs have no distinct names, got 'grade'"):
        scorer(model, X, y.to_numpy())


def test_a_scorer_is_a_metric_for_each_output_as_well():
    rng = np.random.default_rng(0)
    proba = [rng.dirichlet(np.ones(3), 100), rng.dirichlet(np.ones(2), 100)]
    y = np.column_stack([rng.integers(0, 3, 100), rng.integers(0, 2, 100)])
    scorer = mw.make_scorer(["quadratic_kappa", "f1"])
    found, direct = (
        mw.optimize(proba, y, metric, strategy=mw.Strategy(**FIXED)) for metric in (scorer, ["quadratic_kappa", "f1"])
    )
    assert found.value == direct.value
    with pytest.raises(ValueError, match="average must be 'macro' or None"):
        mw.optimize(proba, y, scorer, average="micro")


def test_what_can_never_be_right_is_refused_before_any_fit():
    X, y = table(60)
    with pytest.raises(ValueError, match="make_scorer: average must be 'macro' or None"):
        mw.make_scorer(METRICS, average="micro")
    with pytest.raises(ValueError, match="'qwkk' is not known"):
        mw.make_scorer({"grade": "qwkk", "spam": "f1"})

    class Unfittable(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("a metric that is refused must not cost any fits")

    for metric, words in (
        ({"grade": "qwk", "spm": "f1"}, "got 'spm'. Did you mean 'spam'"),
        (["qwk"], "MetricOptimalClassifierCV: metric as a list must hold one metric for each of the 2 outputs, got 1"),
    ):
        with pytest.raises(ValueError, match=words):
            mw.MetricOptimalClassifierCV(Unfittable(), metric=metric, pos_label=2).fit(X, y)
    with pytest.raises(
        ValueError, match="MetricOptimalClassifierCV: metric must be a single metric if there is one output"
    ):
        mw.MetricOptimalClassifierCV(Unfittable(), metric=["qwk"]).fit(X, y["grade"])
