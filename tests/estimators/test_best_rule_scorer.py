"""make_scorer(at="best"): what the best rule makes of an estimator's probabilities, in scikit-learn's searches."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  imports HalvingGridSearchCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, KFold, StratifiedGroupKFold, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw
import worlds


class Given(ClassifierMixin, BaseEstimator):
    """Returns the probabilities that are its input."""

    def __init__(self, classes=(0, 1, 2)):
        self.classes = classes

    def fit(self, X=None, y=None):
        self.classes_ = np.array(self.classes)
        return self

    def predict_proba(self, X):
        return np.asarray(X)

    def predict(self, X):
        return self.classes_[np.argmax(X, axis=1)]


def given(classes=(0, 1, 2)):
    return Given(classes).fit()


def rows(n=600):
    return worlds.multiclass(n, (4, 2, 1), sharpen=2)


# ------------------------------------------------------------------------------------------------------------ values


def test_equals_value_at_best():
    proba, y = rows()
    weight, groups = np.random.default_rng(0).random(len(y)) + 0.1, np.arange(len(y)) // 5
    scorer = mw.make_scorer("macro_f1", at="best")
    assert scorer(given(), proba, y) == mw.value_at_best(proba, y, "macro_f1")
    options = {"sample_weight": weight, "groups": groups}
    assert scorer(given(), proba, y, **options) == mw.value_at_best(proba, y, "macro_f1", **options)


def test_is_above_the_value_of_predictions_that_follow_the_wrong_rule():
    proba, y = worlds.binary(2000, a=1, b=9)
    halved = np.stack([1 - proba / 2, proba / 2], axis=1)
    at_best, at_argmax = (mw.make_scorer("f1", at=at)(given((0, 1)), halved, y) for at in ("best", "predict"))
    assert at_argmax == f1_score(y, proba / 2 > 0.5, zero_division=0)
    assert at_best > at_argmax + 0.15


def test_text_labels_and_columns_in_another_order():
    proba, y = rows()
    names = np.array(["low", "mid", "high"])
    model = given(("high", "low", "mid"))
    score = mw.make_scorer("f1[high]", at="best")(model, proba[:, [2, 0, 1]], names[y])
    expected = mw.value_at_best(pd.DataFrame(proba, columns=names), names[y], "f1[high]")
    assert score == pytest.approx(expected, abs=0.02)  # classes sorted by name are dealt in another order


def test_fold_without_a_class_that_the_model_knows():
    proba, y = rows()
    shown = y != 2
    assert 0 < mw.make_scorer("macro_f1", at="best")(given(), proba[shown], y[shown]) < 1


def test_fold_with_a_class_that_the_model_does_not_know():
    proba, y = rows()
    two = proba[:, :2] / proba[:, :2].sum(axis=1, keepdims=True)
    assert 0 < mw.make_scorer("macro_f1", at="best")(given((0, 1)), two, y) < 0.7


def test_decision_functions_serve_where_there_are_no_probabilities():
    X, y = load_iris(return_X_y=True)
    scores = cross_val_score(LinearSVC(), X, y, scoring=mw.make_scorer("macro_f1", at="best"))
    assert scores.min() > 0.7


def test_response_is_chosen():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=500).fit(X, y)
    by_scores = mw.make_scorer("macro_f1", at="best", response="decision_function")(model, X, y)
    expected = mw.value_at_best(model.decision_function(X), y, "macro_f1", input="scores")
    assert by_scores == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["multilabel", "unequal"])
def test_several_outputs(kind):
    X, y = load_wine(return_X_y=True)
    Y = np.stack([y > 0, y == 2], axis=1).astype(int) if kind == "multilabel" else np.stack([y, y > 0], axis=1)
    scorer = mw.make_scorer("f1_macro" if kind == "multilabel" else "macro_f1", at="best", average="macro")
    model = MultiOutputClassifier(DecisionTreeClassifier(max_depth=2, random_state=0))
    folds = KFold(5, shuffle=True, random_state=0)
    assert cross_val_score(model, X, Y, cv=folds, scoring=scorer).mean() > 0.7


def test_constraints():
    proba, y = worlds.binary(3000, a=2, b=3)
    both = np.stack([1 - proba, proba], axis=1)
    scorer = mw.make_scorer("recall", at="best", subject_to="precision >= 0.6")
    assert scorer(given((0, 1)), both, y) == mw.value_at_best(proba, y, "recall", subject_to="precision >= 0.6")


# ------------------------------------------------------------------------------------------------------------ searches


def test_searches():
    X, y = load_wine(return_X_y=True)
    scorer = mw.make_scorer("g_mean", at="best")
    tree, grid = DecisionTreeClassifier(random_state=0), {"max_depth": [1, 4]}
    for search in (GridSearchCV(tree, grid, scoring=scorer), HalvingGridSearchCV(tree, grid, scoring=scorer)):
        assert search.fit(X, y).best_params_ == {"max_depth": 4}
    several = GridSearchCV(tree, grid, scoring={"best": scorer, "argmax": mw.make_scorer("g_mean")}, refit="best")
    assert several.fit(X, y).best_params_ == {"max_depth": 4}


def test_chooses_by_probabilities_not_by_argmax():
    """A model that never predicts the rare class by argmax, and ranks well, is better than chance."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 1))
    y = (rng.random(3000) < 0.12 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    informed, chance = LogisticRegression(), DummyClassifier(strategy="stratified", random_state=0)

    def score(model, at):
        return cross_val_score(model, X, y, scoring=mw.make_scorer("f1", at=at)).mean()

    assert score(informed, "predict") < score(chance, "predict")
    assert score(informed, "best") > score(chance, "best") + 0.02


def test_metadata_routing():
    X, y = load_iris(return_X_y=True)
    weight, groups = np.random.default_rng(0).random(len(y)) + 0.1, np.arange(len(y)) // 3
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = mw.make_scorer("macro_f1", at="best").set_score_request(sample_weight=True, groups=True)
        model = LogisticRegression(max_iter=500).set_fit_request(sample_weight=True)
        folds = StratifiedGroupKFold(3)
        params = {"sample_weight": weight, "groups": groups}
        scores = cross_val_score(model, X, y, cv=folds, scoring=scorer, params=params)
    expected = []
    for train, test in folds.split(X, y, groups):
        fitted = clone(model).fit(X[train], y[train], sample_weight=weight[train])
        options = {"sample_weight": weight[test], "groups": groups[test]}
        expected.append(mw.value_at_best(fitted.predict_proba(X[test]), y[test], "macro_f1", **options))
    assert scores.tolist() == expected


def test_pickles_and_prints():
    proba, y = rows(200)
    scorer = mw.make_scorer("macro_f1", at="best")
    again = pickle.loads(pickle.dumps(scorer))  # noqa: S301  # our own
    assert again(given(), proba, y) == scorer(given(), proba, y)
    assert repr(scorer) == "make_scorer(macro_f1, at='best')"


# ------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": "argmax"}, "make_scorer: at must be 'predict' or 'best', got 'argmax'"),
        ({"subject_to": "precision >= 0.5"}, "subject_to is for the best rule.*add at='best'"),
        ({"response": "decision_function"}, "response is for the best rule"),
        ({"at": "best", "response": "logits"}, "response must be one of 'auto', 'predict_proba'"),
        ({"at": "best", "metric": "roc_auc"}, "roc_auc"),
    ],
)
def test_refused_at_once(options, message):
    with pytest.raises(ValueError, match=message):
        mw.make_scorer(**{"metric": "f1"} | options)


def test_refused_when_it_scores():
    proba, y = rows(100)

    class Silent(ClassifierMixin, BaseEstimator):
        classes_ = np.arange(3)

    scorer = mw.make_scorer("macro_f1", at="best")
    with pytest.raises(
        ValueError, match="make_scorer: estimator must have predict_proba or decision_function, got Silent"
    ):
        scorer(Silent(), proba, y)
    with pytest.raises(ValueError, match="the scorer takes sample_weight and groups, got 'costs'"):
        scorer.set_score_request(costs=True)
    with pytest.raises(ValueError, match="y must have 1 outputs, as the estimator has, got 2"):
        scorer(given(), proba, np.stack([y, y], axis=1))
