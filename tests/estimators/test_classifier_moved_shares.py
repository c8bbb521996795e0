"""The rule of an estimator on rows without labels whose class shares have moved."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import metricwise as mw

OLD, NEW = [0.6, 0.3, 0.1], [0.25, 0.25, 0.5]
ESTIMATORS = {
    "probabilities": (LogisticRegression(), "predict_proba"),
    "scores": (LinearSVC(), "decision_function"),
    "log_proba": (GaussianNB(), "predict_log_proba"),
}


def draw(n_rows, shares, seed):
    """Return rows of three classes that look the same whatever their shares."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, n_rows, p=shares)
    X = rng.normal(0, 1, (n_rows, 4))
    X[np.arange(n_rows), codes] += 1.5
    return X, np.array(["a", "b", "c"])[codes]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_shares_values_and_an_adapted_rule(kind):
    estimator, response = ESTIMATORS[kind]
    X, y = draw(2000, OLD, 0)
    clf = mw.MetricOptimalClassifierCV(estimator, metric="macro_f1", response=response).fit(X, y)
    assert clf.input_ == kind
    X_new, y_new = draw(2000, NEW, 1)
    new = clf.decision_input(X_new)
    shares = mw.estimate_shares(clf.rule_, new)
    true = np.array([np.mean(y_new == label) for label in clf.classes_])
    assert shares.moved
    assert ((shares.low <= true) & (true <= shares.high)).all()

    X_old, y_old = draw(2000, OLD, 2)
    expected = mw.expect(clf.rule_, new, reference=(clf.decision_input(X_old), y_old))["macro_f1"]
    stale = f1_score(y_new, clf.predict(X_new), average="macro")
    assert expected.if_shares_moved.estimate == pytest.approx(stale, abs=0.06)  # three standard errors

    adapted = clf.rule_.adapted(new)
    model = mw.FixedRuleClassifier(FrozenEstimator(clf.estimator_), adapted).fit(X_old, y_old)
    np.testing.assert_array_equal(model.predict(X_new), adapted.predict(new))
    X_later, y_later = draw(5000, NEW, 3)
    gain = f1_score(y_later, model.predict(X_later), average="macro") - f1_score(
        y_later, clf.predict(X_later), average="macro"
    )
    assert gain > 0.02


def test_a_rule_is_kept_where_nothing_moved():
    X, y = draw(2000, OLD, 0)
    clf = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="macro_f1").fit(X, y)
    assert clf.rule_.adapted(clf.decision_input(draw(2000, OLD, 1)[0])) is clf.rule_


def test_several_outputs():
    X, y = draw(2000, OLD, 0)
    Y = np.column_stack([y == "c", X[:, 3] + np.random.default_rng(4).normal(0, 0.5, 2000) > 1]).astype(int)
    clf = mw.MetricOptimalClassifierCV(MultiOutputClassifier(LogisticRegression()), metric="f1", average="macro").fit(
        X, Y
    )
    X_new, y_new = draw(2000, [0.4, 0.2, 0.4], 1)  # which is a movement of the shares of the first output alone
    new = clf.decision_input(X_new)
    shares = mw.estimate_shares(clf.rule_, new)
    assert shares.moved.tolist() == [True, False]
    assert shares.low[0, 1] <= np.mean(y_new == "c") <= shares.high[0, 1]
    adapted = clf.rule_.adapted(new)
    model = mw.FixedRuleClassifier(clf.estimator_, adapted).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X_new), adapted.predict(new))
    np.testing.assert_array_equal(model.predict(X_new)[:, 1], clf.predict(X_new)[:, 1])
    expected = mw.expect(clf.rule_, new, reference=(clf.decision_input(X), Y))
    assert list(expected) == ["f1"]
