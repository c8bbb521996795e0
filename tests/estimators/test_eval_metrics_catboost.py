"""eval_metric with CatBoost itself, which calls it in every iteration."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

import metricwise as mw

catboost = pytest.importorskip("catboost", reason="needs CatBoost: make test-catboost")
pytestmark = [pytest.mark.catboost, pytest.mark.filterwarnings("ignore:Failed to import numba")]


def rows(n_classes):
    X, y = make_classification(
        1200, n_informative=5, n_classes=n_classes, weights=[0.7, 0.2], flip_y=0.1, random_state=0
    )
    return train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)


def fit(metric, X, y, X_valid, y_valid, **options):
    settings = {"iterations": 40, "thread_count": 1, "verbose": 0, "allow_writing_files": False, "random_seed": 0}
    model = catboost.CatBoostClassifier(eval_metric=metric, early_stopping_rounds=5, **settings, **options)
    return model.fit(X, y, eval_set=(X_valid, y_valid))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_stops_at_the_best_iteration(n_classes):
    X, X_valid, y, y_valid = rows(n_classes)
    metric = "f1" if n_classes == 2 else "macro_f1"
    model = fit(mw.eval_metric(metric, "catboost"), X, y, X_valid, y_valid)
    history = model.evals_result_["validation"][f"best_{metric}"]
    margins = model.predict(X_valid, prediction_type="RawFormulaVal")
    assert model.best_iteration_ == np.argmax(history)
    expected = mw.value_at_best(margins, y_valid, metric, input="logits")
    assert max(history) == pytest.approx(expected, abs=1e-6)


def test_text_labels():
    X, X_valid, y, y_valid = rows(2)
    names = np.array(["no", "yes"])
    metric = mw.eval_metric("f1[yes]", "catboost", classes=names)
    by_name = fit(metric, X, names[y], X_valid, names[y_valid])
    by_code = fit(mw.eval_metric("f1", "catboost"), X, y, X_valid, y_valid)
    assert by_name.evals_result_["validation"]["best_f1[yes]"] == by_code.evals_result_["validation"]["best_f1"]


def test_several_outputs():
    X, X_valid, y, y_valid = rows(3)
    Y, Y_valid = (np.stack([labels > 0, labels == 2], axis=1).astype(int) for labels in (y, y_valid))
    metric = mw.eval_metric("f1_macro", "catboost", multilabel=True)
    model = fit(metric, X, Y, X_valid, Y_valid, loss_function="MultiLogloss")
    margins = model.predict(X_valid, prediction_type="RawFormulaVal")
    expected = mw.value_at_best(margins, Y_valid, "f1_macro", input="logits")
    assert max(model.evals_result_["validation"]["best_f1_macro"]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("multilabel", [False, True])
def test_copies(multilabel):
    metric = mw.eval_metric("f1", "catboost", average="macro" if multilabel else None, multilabel=multilabel)
    for again in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):  # noqa: S301  # our own
        assert type(again).__name__ == "best_f1"
        assert again.multilabel is multilabel
