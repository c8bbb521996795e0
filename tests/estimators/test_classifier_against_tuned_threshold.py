"""Against scikit-learn's TunedThresholdClassifierCV, on the same data and the same folds."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB

import metricwise as mw
from profiles import diagonal

# Scorers of scikit-learn that judge the decisions of a binary classifier and are metrics here.
SCORERS = [name for name in mw.metrics.scorer_names() if not name.endswith("_samples")]

CASES = {
    "logistic": (make_classification(300, weights=[0.85], flip_y=0.1, random_state=0), LogisticRegression()),
    "bayes": (load_breast_cancer(return_X_y=True), GaussianNB()),
    # Few trees: many rows tie.
    "forest": (make_classification(200, flip_y=0.2, random_state=1), RandomForestClassifier(5, random_state=0)),
}


class Replay(ClassifierMixin, BaseEstimator):
    """Probabilities of rows by number, as a model: sixteen metrics need no sixteen times five fits."""

    def __init__(self, proba):
        self.proba = proba

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = self.proba[X[:, 0]]
        return np.stack([1 - p, p], axis=1)


@pytest.fixture(scope="module")
def replay(request):
    (X, y), model = CASES[request.param]
    splits = list(StratifiedKFold(3).split(X, y))
    proba = cross_val_predict(model, X, y, cv=splits, method="predict_proba")[:, 1]
    return Replay(proba), np.arange(len(y))[:, None], y, splits


def test_both_know_these_metrics():
    assert set(SCORERS) <= set(get_scorer_names())
    assert len(SCORERS) == 19


@pytest.mark.filterwarnings("ignore:MetricOptimalClassifierCV. (Recall|Precision)", "ignore:Precision is ill-defined")
@pytest.mark.parametrize(("replay", "name"), diagonal(len(SCORERS), CASES, SCORERS), indirect=["replay"])
def test_the_value_on_the_pooled_rows_is_never_lower(replay, name):
    model, X, y, splits = replay
    theirs = TunedThresholdClassifierCV(model, scoring=name, cv=splits, thresholds=40).fit(X, y)
    ours = mw.MetricOptimalClassifierCV(
        model, metric=name, cv=splits, strategy=mw.Strategy(confusion="labels", recalibrate=False)
    ).fit(X, y)
    scorer = get_scorer(name)
    assert ours.best_score_ >= scorer(theirs, X, y) - 1e-12
    assert ours.best_score_ == pytest.approx(scorer(ours, X, y))
