"""Estimators of other libraries; each test skips where its library is not installed."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.model_selection import cross_val_score

import metricwise as mw


def lightgbm():
    return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=10, num_leaves=7, verbose=-1, n_jobs=1)


def xgboost():
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1)


def catboost():
    module = pytest.importorskip("catboost")
    return module.CatBoostClassifier(iterations=10, depth=3, verbose=False, allow_writing_files=False, thread_count=1)


CATBOOST = pytest.param(catboost, marks=pytest.mark.catboost)


def skorch():
    net, torch = pytest.importorskip("skorch"), pytest.importorskip("torch")
    torch.manual_seed(0)

    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(20, 3)

        def forward(self, X):
            return torch.softmax(self.layer(X.float()), dim=-1)

    return net.NeuralNetClassifier(Linear, max_epochs=10, lr=0.1, verbose=0, train_split=None)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:X does not have valid")
@pytest.mark.parametrize("make", [lightgbm, xgboost, CATBOOST, skorch])
def test_multiclass(make):
    estimator = make()
    X, y = make_classification(400, n_informative=4, n_classes=3, weights=[0.7, 0.2], random_state=0)
    X = X.astype(np.float32)
    model = mw.MetricOptimalClassifierCV(estimator, metric="g_mean", cv=3)
    assert model.fit(X, y).score(X, y) > 0.5
    assert model.predict(X).shape == y.shape
    assert model.predict_proba(X).shape == (400, 3)
    assert np.isfinite(cross_val_score(model, X, y, cv=2)).all()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:X does not have valid")
@pytest.mark.parametrize("make", [lightgbm, xgboost, CATBOOST])
def test_several_outputs_with_missing_labels(make):
    estimator = make()
    X, Y = make_multilabel_classification(300, n_classes=4, random_state=0)
    masked = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)
    for y in (Y, masked):
        model = mw.MetricOptimalClassifierCV(estimator, metric="f1_macro", cv=2).fit(X, y)
        assert model.score(X, Y) > 0.6
        assert [block.shape for block in model.predict_proba(X)] == [(300, 2)] * 4


@pytest.mark.parametrize("make", [lightgbm, xgboost])
def test_training_for_a_metric(make):
    X, y = make_classification(400, n_informative=4, n_classes=3, weights=[0.7, 0.2], random_state=0)
    model = mw.MetricWeightedClassifier(make(), metric="g_mean", cv=2, max_iter=3).fit(X, y)
    assert model.best_score_ >= model.history_[0]


def test_text_labels_for_an_estimator_that_takes_codes_only():
    X, y = make_classification(300, n_informative=4, n_classes=3, random_state=0)
    names = np.array(["high", "low", "mid"])
    settings = {"metric": "g_mean", "cv": 2, "strategy": mw.Strategy(confusion="labels", recalibrate=False)}
    model = mw.MetricOptimalClassifierCV(xgboost(), **settings).fit(X, names[y])
    by_codes = mw.MetricOptimalClassifierCV(xgboost(), **settings).fit(X, y)
    assert model.classes_.tolist() == names.tolist()
    np.testing.assert_array_equal(model.predict(X), names[by_codes.predict(X)])
    np.testing.assert_array_equal(model.predict_proba(X), by_codes.predict_proba(X))
    pair = mw.MetricOptimalClassifierCV(xgboost(), average="macro", **settings).fit(X, np.stack([names[y]] * 2, axis=1))
    assert [labels.tolist() for labels in pair.classes_] == [names.tolist()] * 2
    np.testing.assert_array_equal(pair.predict(X)[:, 0], model.predict(X))
    with pytest.raises(ValueError, match=r"(?i)inf"):  # what else an estimator refuses is said as it says it
        mw.MetricOptimalClassifierCV(xgboost(), metric="g_mean", cv=2).fit(np.full_like(X, np.inf), names[y])
