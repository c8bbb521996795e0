"""FixedRuleClassifier: a saved rule on any estimator."""

import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw

NAMES = np.array(["high", "low", "middle"])


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(300, n_informative=4, n_classes=3, weights=[0.7, 0.2], random_state=0)
    return X, NAMES[y]


@pytest.fixture(scope="module")
def tuned(data):
    return mw.MetricOptimalClassifierCV(GaussianNB(), metric="g_mean", confusion="labels", recalibrate=True).fit(*data)


def test_a_rule_in_any_form(data, tuned, tmp_path):
    X, y = data
    path = tmp_path / "rule.json"
    text = tuned.rule_.to_json(path)
    for rule in (tuned.rule_, text, path, str(path), json.loads(text)):
        model = mw.FixedRuleClassifier(GaussianNB(), rule).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), tuned.predict(X))
        np.testing.assert_array_equal(model.predict_proba(X), tuned.predict_proba(X))
        assert model.classes_.tolist() == NAMES.tolist()
        assert model.score(X, y) == pytest.approx(np.mean(tuned.predict(X) == y))
        again = pickle.loads(pickle.dumps(clone(model).fit(X, y)))  # noqa: S301
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_fitted_estimator_predicts_at_once(data, tuned):
    X, y = data
    fitted = GaussianNB().fit(X, y)
    for estimator in (fitted, FrozenEstimator(fitted)):
        model = mw.FixedRuleClassifier(estimator, tuned.rule_)
        np.testing.assert_array_equal(model.predict(X), tuned.predict(X))
        np.testing.assert_array_equal(mw.FixedRuleClassifier(estimator, None).predict(X), fitted.predict(X))
    with pytest.raises(NotFittedError, match="not fitted"):
        mw.FixedRuleClassifier(GaussianNB(), tuned.rule_).predict(X)


def test_a_mixture(data):
    X, y = data
    mixed = mw.MetricOptimalClassifierCV(
        GaussianNB(), metric="min_recall", randomized=True, confusion="expected", recalibrate=False
    ).fit(X, y)
    assert isinstance(mixed.rule_, mw.MixtureRule)
    model = mw.FixedRuleClassifier(GaussianNB(), mixed.rule_.to_dict()).fit(X, y)
    np.testing.assert_array_equal(model.decision_distribution(X), mixed.decision_distribution(X))


def test_the_classes_of_the_rule_may_be_in_another_order(data):
    from metricwise.losses import Loss

    X, y = data
    order = np.array(["low", "middle", "high"])
    rule = mw.WeightedRule(Loss.from_tensor([[0, 1, 2], [1, 0, 1], [2, 1, 0]]), (order,))
    model = mw.FixedRuleClassifier(GaussianNB(), rule).fit(X, y)
    assert model.classes_.tolist() == order.tolist()
    proba = GaussianNB().fit(X, y).predict_proba(X)[:, [1, 2, 0]]
    np.testing.assert_array_equal(model.predict_proba(X), proba)
    np.testing.assert_array_equal(model.predict(X), rule.predict(proba))


@pytest.mark.parametrize("estimator", [GaussianNB(), DecisionTreeClassifier(max_depth=3, random_state=0)])
def test_several_outputs(estimator):
    X, Y = make_multilabel_classification(200, n_classes=3, random_state=0)
    tuned = mw.MetricOptimalClassifierCV(estimator, metric="f1_macro", confusion="labels", recalibrate=False).fit(X, Y)
    model = mw.FixedRuleClassifier(estimator, tuned.rule_).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), tuned.predict(X))
    assert model.score(X, Y) == pytest.approx(np.mean(model.predict(X) == Y))
    with pytest.raises(ValueError, match="y must have 3 outputs, in a 2-D array, as the rule has"):
        mw.FixedRuleClassifier(estimator, tuned.rule_).fit(X, Y[:, 0])


def test_other_classes_are_refused(data, tuned):
    X, y = data
    with pytest.raises(ValueError, match="must hold only the classes that are known"):
        mw.FixedRuleClassifier(GaussianNB(), tuned.rule_).fit(X, np.char.upper(y))
    with pytest.raises(ValueError, match="classes must be among"):
        mw.FixedRuleClassifier(GaussianNB().fit(X, np.char.upper(y)), tuned.rule_).predict(X)
