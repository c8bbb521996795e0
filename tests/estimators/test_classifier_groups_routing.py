"""Sensitive groups through scikit-learn: fit, predict and score, pipelines and searches."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metricwise as mw
from sklearn_versions import needs_routed_scores

QUICK = {"confidence": None, "cv": 3, "strategy": mw.Strategy(confusion="labels", recalibrate=False)}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    group = np.where(rng.random(600) < 0.4, "a", "b")
    X = pd.DataFrame({"x": rng.normal(np.where(group == "a", -0.6, 0.4)), "z": rng.normal(size=600)})
    y = (X["x"] + 0.5 * X["z"] + rng.logistic(size=600) > 0).astype(int)
    return X, y, pd.Series(group, name="colour")


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def gap(decided, group):
    return abs(np.mean(decided[group == "a"]) - np.mean(decided[group == "b"]))


def test_the_rule_is_that_of_the_out_of_fold_rows(data):
    X, y, group = data
    model = mw.MetricOptimalClassifierCV(
        LogisticRegression(), metric="accuracy", subject_to="demographic_parity <= 0.05", **QUICK
    ).fit(X, y, sensitive_features=group)
    proba = cross_val_predict(LogisticRegression(), X, y, cv=3, method="predict_proba")
    assert gap(model.rule_.predict(proba, sensitive_features=group), group) <= 0.05 + 1e-12
    assert model.rule_.features == ("colour",)
    decided = model.predict(X, sensitive_features=group)
    np.testing.assert_array_equal(decided, model.rule_.predict(model.predict_proba(X), sensitive_features=group))
    assert model.score(X, y, sensitive_features=group) == pytest.approx(np.mean(decided == y))
    shares = model.decision_distribution(X, sensitive_features=group)
    np.testing.assert_array_equal(shares.argmax(axis=1), decided)
    with pytest.raises(ValueError, match="so it needs sensitive_features, the group of every row, by 'colour'"):
        model.predict(X)
    fixed = mw.FixedRuleClassifier(LogisticRegression(), model.rule_.to_json()).fit(X, y)
    np.testing.assert_array_equal(fixed.predict(X, group), decided)
    assert fixed.score(X, y, sensitive_features=group) == pytest.approx(np.mean(decided == y))


def test_a_rule_that_does_not_see_groups_predicts_without(data):
    X, y, group = data
    model = mw.MetricOptimalClassifierCV(
        LogisticRegression(), metric="accuracy", subject_to="demographic_parity <= 0.2", **QUICK
    ).fit(X, y, sensitive_features=mw.Sensitive(group, group_aware=False))
    assert isinstance(model.rule_, mw.WeightedRule)
    np.testing.assert_array_equal(model.predict(X), model.predict(X, sensitive_features=group))


def test_the_worst_group_is_scored_by_the_worst_group(data):
    X, y, group = data
    model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric=mw.worst_group("accuracy"), **QUICK)
    model.fit(X, y, sensitive_features=group)
    right = model.predict(X, sensitive_features=group) == y
    expected = min(right[group == "a"].mean(), right[group == "b"].mean())
    assert model.score(X, y, sensitive_features=group) == pytest.approx(expected)
    with pytest.raises(ValueError, match="metric is that of the worst group, so sensitive_features must give"):
        model.fit(X, y)


@needs_routed_scores
@pytest.mark.usefixtures("routing")
def test_pipelines_and_searches_route_groups(data):
    X, y, group = data
    model = mw.MetricOptimalClassifierCV(
        LogisticRegression(), metric="accuracy", subject_to="demographic_parity <= 0.05", **QUICK
    )
    for method in ("fit", "predict", "score"):
        getattr(model, f"set_{method}_request")(sensitive_features=True)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y, sensitive_features=group)
    alone = mw.MetricOptimalClassifierCV(
        LogisticRegression(), metric="accuracy", subject_to="demographic_parity <= 0.05", **QUICK
    )
    alone.fit(StandardScaler().fit_transform(X), y, sensitive_features=group)
    assert pipeline[-1].rule_ == alone.rule_
    decided = pipeline.predict(X, sensitive_features=group)
    assert pipeline.score(X, y, sensitive_features=group) == pytest.approx(np.mean(decided == y))
    grid = {"metricoptimalclassifiercv__estimator__C": [1e-4, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y, sensitive_features=group)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.predict(X, sensitive_features=group).shape == (600,)
