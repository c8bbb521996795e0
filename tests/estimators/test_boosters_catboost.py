"""Models of CatBoost with a rule, saved and loaded: make test-catboost."""

import pickle

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_classification

import metricwise as mw

pytestmark = pytest.mark.catboost
catboost = pytest.importorskip("catboost")

NAMES = np.array(["high", "low", "middle"])
WEIGHTS = mw.WeightedRule.from_weights([1, 2, 3], classes=NAMES)
THRESHOLD = mw.WeightedRule.from_thresholds({"low": 0.3}, classes=["high", "low"])
SETTINGS = {"iterations": 5, "depth": 3, "verbose": False, "allow_writing_files": False, "thread_count": 1}


@pytest.fixture(scope="module")
def data():
    return make_classification(300, n_informative=4, n_classes=3, weights=[0.6, 0.3], random_state=0)


def train(X, y, loss):
    return catboost.CatBoost({**SETTINGS, "loss_function": loss}).fit(X, y)


def classifier():
    return catboost.CatBoostClassifier(**SETTINGS)


@pytest.mark.parametrize("loss", ["Logloss", "Focal:focal_alpha=0.5;focal_gamma=1", "MultiClass", "MultiClassOneVsAll"])
def test_losses(data, loss):
    X, y = data
    rule = WEIGHTS if loss.startswith("Multi") else THRESHOLD
    model = train(X, NAMES[y if rule is WEIGHTS else np.minimum(y, 1)], loss)
    proba = model.predict(X, prediction_type="Probability")
    proba = proba / proba.sum(axis=1, keepdims=True)
    predictor = mw.FixedRuleClassifier(model, rule)
    np.testing.assert_allclose(predictor.predict_proba(X), proba, rtol=1e-12)
    for rows in (X, catboost.Pool(X)):
        np.testing.assert_array_equal(predictor.predict(rows), rule.predict(proba))


@pytest.mark.parametrize("kind", ["logits", "scores"])
@pytest.mark.parametrize("loss", ["Logloss", "MultiClass"])
def test_rules_on_logits_and_scores_take_raw_margins(data, loss, kind):
    X, y = data
    y = y if loss == "MultiClass" else np.minimum(y, 1)
    model = train(X, y, loss)
    margins = model.predict(X, prediction_type="RawFormulaVal")
    rule = mw.optimize(margins, y, "balanced_accuracy", input=kind).rule
    predictor = mw.FixedRuleClassifier(model, rule)
    np.testing.assert_array_equal(predictor.decision_input(X), margins)
    np.testing.assert_array_equal(predictor.predict(X), rule.predict(margins))


def test_several_outputs(data):
    X, y = data
    Y = np.stack([y > 0, y > 1, y == 1], axis=1).astype(int)
    model = train(X, Y, "MultiLogloss")
    rule = mw.WeightedRule.from_thresholds([0.2, 0.5, 0.7])
    proba = model.predict(X, prediction_type="Probability")
    np.testing.assert_array_equal(mw.FixedRuleClassifier(model, rule).predict(X), proba > [0.2, 0.5, 0.7])


def test_labels_are_those_of_the_model(data):
    X, y = data
    model = train(X, NAMES[y], "MultiClass")
    turned = mw.WeightedRule.from_weights([3, 1, 2], classes=["middle", "high", "low"])
    expected = mw.FixedRuleClassifier(model, WEIGHTS).predict(X)
    np.testing.assert_array_equal(mw.FixedRuleClassifier(model, turned).predict(X), expected)
    with pytest.raises(ValueError, match=r"classes must be among \['high', 'low', 'middle'\], got also \[0, 1, 2\]"):
        mw.FixedRuleClassifier(train(X, y, "MultiClass"), WEIGHTS).predict(X)


def test_what_is_refused(data):
    X, y = data
    with pytest.raises(ValueError, match=r"a catboost.CatBoost that was trained for one of .*, got 'RMSE'"):
        mw.FixedRuleClassifier(train(X, y, "RMSE"), WEIGHTS).predict(X)
    model = mw.FixedRuleClassifier(train(X, NAMES[y], "MultiClass"), WEIGHTS)
    with pytest.raises(ValueError, match=r"cannot be fitted here; .* or use catboost.CatBoostClassifier"):
        model.fit(X, NAMES[y])
    with pytest.raises(ValueError, match="not fitted"):
        mw.FixedRuleClassifier(catboost.CatBoost(SETTINGS), WEIGHTS).predict(X)


@pytest.mark.parametrize("interface", ["native", "fitted", "fitted here"])
def test_saved_together(data, interface, tmp_path):
    X, y = data
    labels = NAMES[y]
    if interface == "native":
        model = mw.FixedRuleClassifier(train(X, labels, "MultiClass"), WEIGHTS)
    elif interface == "fitted":
        model = mw.FixedRuleClassifier(classifier().fit(X, labels), WEIGHTS)
    else:
        model = mw.FixedRuleClassifier(classifier(), WEIGHTS).fit(X, labels)
    joblib.dump(model, tmp_path / "model.joblib")
    for loaded in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):  # noqa: S301
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("kind", ["cbm", "json"])
def test_the_rule_beside_the_file_of_the_model(data, kind, tmp_path):
    X, y = data
    model = mw.FixedRuleClassifier(classifier(), WEIGHTS).fit(X, NAMES[y])
    model.estimator_.save_model(tmp_path / f"model.{kind}", format=kind)
    model.rule_.to_json(tmp_path / "rule.json")
    booster = catboost.CatBoost().load_model(tmp_path / f"model.{kind}", format=kind)
    loaded = mw.FixedRuleClassifier(booster, tmp_path / "rule.json")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
