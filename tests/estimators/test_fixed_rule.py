"""FixedRuleClassifier: a saved rule on any estimator."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import metricwise as mw

NAMES = np.array(["high", "low", "middle"])


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(300, n_informative=4, n_classes=3, weights=[0.7, 0.2], random_state=0)
    return X, NAMES[y]


@pytest.fixture(scope="module")
def tuned(data):
    return mw.MetricOptimalClassifierCV(
        GaussianNB(), metric="g_mean", strategy=mw.Strategy(confusion="labels", recalibrate=True)
    ).fit(*data)


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


class Framed(GaussianNB):
    """Probabilities in a data frame, the columns of which are named, and in another order than the classes."""

    def predict_proba(self, X):
        return pd.DataFrame(super().predict_proba(X), columns=self.classes_.astype(str)).iloc[:, ::-1]


class Labelled(GaussianNB):
    """Probabilities in a data frame whose columns have other names than the classes, and their order."""

    def predict_proba(self, X):
        return pd.DataFrame(super().predict_proba(X)).add_prefix("p")


@pytest.mark.parametrize("estimator", [Framed(), Labelled()], ids=repr)
@pytest.mark.parametrize("numbers", [False, True])
def test_probabilities_in_a_frame_are_read_by_name(data, estimator, numbers):
    X, y = data
    y = np.unique(y, return_inverse=True)[1] if numbers else y
    plain = GaussianNB().fit(X, y)
    model = mw.FixedRuleClassifier(estimator, None).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    settings = {"metric": "g_mean", "strategy": mw.Strategy(confusion="labels", recalibrate=False)}
    tuned = mw.MetricOptimalClassifierCV(estimator, **settings).fit(X, y)
    assert tuned.rule_ == mw.MetricOptimalClassifierCV(GaussianNB(), **settings).fit(X, y).rule_
    several = np.stack([y, y[::-1]], axis=1)
    outputs = mw.FixedRuleClassifier(MultiOutputClassifier(estimator), None).fit(X, several)
    np.testing.assert_array_equal(outputs.predict(X), MultiOutputClassifier(GaussianNB()).fit(X, several).predict(X))


def test_a_mixture(data):
    X, y = data
    mixed = mw.MetricOptimalClassifierCV(
        GaussianNB(),
        metric="min_recall",
        strategy=mw.Strategy(randomized=True, confusion="expected", recalibrate=False),
    ).fit(X, y)
    assert isinstance(mixed.rule_, mw.MixtureRule)
    model = mw.FixedRuleClassifier(GaussianNB(), mixed.rule_.to_dict()).fit(X, y)
    np.testing.assert_array_equal(model.decision_distribution(X), mixed.decision_distribution(X))


def test_the_classes_of_the_rule_may_be_in_another_order(data):
    from metricwise.core.losses import Loss

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
    tuned = mw.MetricOptimalClassifierCV(
        estimator, metric="f1_macro", strategy=mw.Strategy(confusion="labels", recalibrate=False)
    ).fit(X, Y)
    model = mw.FixedRuleClassifier(estimator, tuned.rule_).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), tuned.predict(X))
    assert model.score(X, Y) == pytest.approx(np.mean(model.predict(X) == Y))
    with pytest.raises(ValueError, match="y must have 3 outputs, in a 2-D array, as the rule has"):
        mw.FixedRuleClassifier(estimator, tuned.rule_).fit(X, Y[:, 0])


ONE_VS_REST = OneVsRestClassifier(GaussianNB())
PERCEPTRON = MLPClassifier((5,), max_iter=300, tol=0.01, random_state=0)


@pytest.mark.parametrize(
    "estimator",
    [
        ONE_VS_REST,
        PERCEPTRON,
        KNeighborsClassifier(),
        DecisionTreeClassifier(max_depth=3, random_state=0),
        ClassifierChain(GaussianNB()),
        MultiOutputClassifier(GaussianNB()),
        make_pipeline(StandardScaler(), ONE_VS_REST),
        GridSearchCV(ONE_VS_REST, {"estimator__var_smoothing": [1e-9]}, cv=2),
        XGBClassifier(n_estimators=3, n_jobs=1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("frame", [False, True])
def test_a_fitted_multilabel_estimator_predicts_at_once(estimator, frame):
    """Some of them have the numbers of their outputs as classes, as if those were classes of one output."""
    X, Y = make_multilabel_classification(150, n_classes=3, random_state=0)
    X = pd.DataFrame(X).add_prefix("x") if frame else X
    fitted = clone(estimator).fit(X, Y)
    tuned = mw.MetricOptimalClassifierCV(
        fitted, metric="f1_macro", cv="prefit", strategy=mw.Strategy(recalibrate=False)
    ).fit(X, Y)
    for wrapped in (fitted, FrozenEstimator(fitted)):
        model = mw.FixedRuleClassifier(wrapped, None)
        np.testing.assert_array_equal(model.predict(X), fitted.predict(X))
        assert [labels.tolist() for labels in model.classes_] == [[0, 1]] * 3
        assert [block.shape for block in model.predict_proba(X)] == [(150, 2)] * 3
        assert model.score(X, Y) == pytest.approx(np.mean(fitted.predict(X) == Y))
        np.testing.assert_array_equal(mw.FixedRuleClassifier(wrapped, tuned.rule_).predict(X), tuned.predict(X))


def test_a_fitted_estimator_of_columns_that_go_by_name():
    """Its classes cannot be tried out on a row of zeros; its predictions need none."""
    X, Y = make_multilabel_classification(100, n_features=4, n_classes=3, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    columns = ColumnTransformer([("scale", StandardScaler(), ["a", "b", "d"])])
    fitted = make_pipeline(columns, ONE_VS_REST).fit(frame, Y)
    np.testing.assert_array_equal(mw.FixedRuleClassifier(fitted, None).predict(frame), fitted.predict(frame))


@pytest.mark.parametrize("estimator", [OneVsRestClassifier(GaussianNB()), PERCEPTRON, XGBClassifier(n_estimators=3)])
def test_a_fitted_multiclass_estimator_stays_one(data, estimator):
    X, y = data
    y = np.unique(y, return_inverse=True)[1]
    fitted = clone(estimator).fit(X, y)
    model = mw.FixedRuleClassifier(fitted, None)
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))
    assert model.classes_.tolist() == [0, 1, 2]


def test_other_classes_are_refused(data, tuned):
    X, y = data
    with pytest.raises(ValueError, match="must hold only known classes"):
        mw.FixedRuleClassifier(GaussianNB(), tuned.rule_).fit(X, np.char.upper(y))
    with pytest.raises(ValueError, match="classes must be among"):
        mw.FixedRuleClassifier(GaussianNB().fit(X, np.char.upper(y)), tuned.rule_).predict(X)


def test_score_of_outputs_with_different_classes_is_the_share_of_right_decisions(data):
    X, grade = data
    y = np.column_stack([grade, np.where(X[:, 0] > 0, "yes", "no")]).astype(object)
    y[::7, 1] = None
    seen = np.array([[label is not None for label in row] for row in y])
    model = MultiOutputClassifier(GaussianNB()).fit(X, np.where(seen, y, "no").astype(str))
    solution = mw.optimize(model.predict_proba(X), y, "macro_f1", average="macro", classes=model.classes_)
    fixed = mw.FixedRuleClassifier(FrozenEstimator(model), solution.rule).fit(X, y)
    right = fixed.predict(X) == y
    assert fixed.score(X, y) == pytest.approx(right[seen].mean())
