"""eval_metric: early stopping by what the best rule makes of the predictions, in the forms of three libraries."""

import pickle

import lightgbm
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

import metricwise as mw
import worlds

xgboost = pytest.importorskip("xgboost", reason="needs XGBoost")


def rows(n_classes=3, n=1200, seed=0):
    X, y = make_classification(
        n, n_informative=5, n_classes=n_classes, weights=[0.7, 0.2], flip_y=0.1, random_state=seed
    )
    return train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)


def metric_of(n_classes):
    return "f1" if n_classes == 2 else "macro_f1"


def fit_lightgbm(data, feval, n_classes, weight=None):
    X, X_valid, y, y_valid = data
    objective = {"objective": "binary"} if n_classes == 2 else {"objective": "multiclass", "num_class": n_classes}
    params = {**objective, "verbose": -1, "metric": "None", "num_threads": 1, "learning_rate": 0.3}
    valid, values = lightgbm.Dataset(X_valid, y_valid, weight=weight), {}
    recorded = [lightgbm.record_evaluation(values), lightgbm.early_stopping(4, verbose=False)]
    booster = lightgbm.train(params, lightgbm.Dataset(X, y), 30, valid_sets=[valid], feval=feval, callbacks=recorded)
    return booster, values["valid_0"]


def fit_xgboost(data, custom_metric, n_classes, weight=None):
    X, X_valid, y, y_valid = data
    objective = {"objective": "binary:logistic"} if n_classes == 2 else {"objective": "multi:softprob", "num_class": 3}
    params = {**objective, "disable_default_eval_metric": 1, "nthread": 1}
    valid, values = xgboost.DMatrix(X_valid, y_valid, weight=weight), {}
    booster = xgboost.train(
        params,
        xgboost.DMatrix(X, y),
        30,
        evals=[(valid, "valid")],
        custom_metric=custom_metric,
        early_stopping_rounds=4,
        evals_result=values,
        verbose_eval=False,
    )
    return booster, values["valid"]


# ---------------------------------------------------------------------------------------------------------- LightGBM


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_lightgbm(n_classes, weighted):
    data = rows(n_classes)
    metric = metric_of(n_classes)
    weight = np.random.default_rng(0).random(len(data[3])).astype(np.float32) + 0.5 if weighted else None
    booster, values = fit_lightgbm(data, mw.eval_metric(metric, "lightgbm"), n_classes, weight)
    (name, history), *_ = values.items()
    expected = [
        mw.value_at_best(booster.predict(data[1], num_iteration=i + 1), data[3], metric, sample_weight=weight)
        for i in range(booster.best_iteration)  # later trees are dropped
    ]
    assert name == f"best_{metric}"
    assert history[: booster.best_iteration] == pytest.approx(expected, abs=1e-12)
    assert booster.best_iteration == np.argmax(history) + 1
    assert len(history) == min(booster.best_iteration + 4, 30)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore:.*eval_set.*")
def test_lightgbm_classifier_with_text_labels(n_classes):
    X, X_valid, y, y_valid = rows(n_classes)
    names = np.array(["a", "b", "c"])[:n_classes]
    metric = mw.eval_metric("f1[b]", "lightgbm", classes=names)
    model = lightgbm.LGBMClassifier(n_estimators=8, metric="None", verbose=-1, n_jobs=1)
    model.fit(X, names[y], eval_set=[(X_valid, names[y_valid])], eval_metric=metric)
    proba = model.predict_proba(X_valid)
    expected = mw.value_at_best(proba, names[y_valid], "f1[b]", classes=names)
    assert model.evals_result_["valid_0"]["best_f1[b]"][-1] == pytest.approx(expected, abs=1e-12)


def test_lightgbm_objective_of_the_user_passes_logits():
    data = rows(2)

    def logistic(predictions, train):
        share = 1 / (1 + np.exp(-predictions))
        return share - train.get_label(), share * (1 - share)

    X, X_valid, y, y_valid = data
    values = {}
    booster = lightgbm.train(
        {"objective": logistic, "verbose": -1, "num_threads": 1},
        lightgbm.Dataset(X, y),
        5,
        valid_sets=[lightgbm.Dataset(X_valid, y_valid)],
        feval=mw.eval_metric("f1", "lightgbm", input="logits"),
        callbacks=[lightgbm.record_evaluation(values)],
    )
    expected = mw.value_at_best(booster.predict(X_valid, raw_score=True), y_valid, "f1", input="logits")
    assert values["valid_0"]["best_f1"][-1] == pytest.approx(expected, abs=1e-12)


# ----------------------------------------------------------------------------------------------------------- XGBoost


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_xgboost_minimises_minus_the_value(n_classes, weighted):
    data = rows(n_classes)
    metric = metric_of(n_classes)
    weight = np.random.default_rng(0).random(len(data[3])).astype(np.float32) + 0.5 if weighted else None
    booster, values = fit_xgboost(data, mw.eval_metric(metric, "xgboost"), n_classes, weight)
    history = -np.array(values[f"minus_best_{metric}"])
    proba = booster.predict(xgboost.DMatrix(data[1]), iteration_range=(0, 3))
    expected = mw.value_at_best(proba, data[3], metric, sample_weight=weight)
    assert history[2] == pytest.approx(expected, abs=1e-6)  # XGBoost prints six digits
    assert booster.best_iteration == np.argmax(history)


def test_xgboost_classifier_and_several_outputs():
    X, X_valid, y, y_valid = rows(3)
    model = xgboost.XGBClassifier(n_estimators=4, n_jobs=1, eval_metric=mw.eval_metric("macro_f1", "xgboost"))
    model.fit(X, y, eval_set=[(X_valid, y_valid)], verbose=False)
    expected = mw.value_at_best(model.predict_proba(X_valid), y_valid, "macro_f1")
    assert -model.evals_result()["validation_0"]["minus_best_macro_f1"][-1] == pytest.approx(expected, abs=1e-6)

    Y, Y_valid = (np.stack([labels > 0, labels == 2], axis=1).astype(int) for labels in (y, y_valid))
    model = xgboost.XGBClassifier(n_estimators=4, n_jobs=1, eval_metric=mw.eval_metric("f1_macro", "xgboost"))
    model.fit(X, Y, eval_set=[(X_valid, Y_valid)], verbose=False)
    expected = mw.value_at_best(model.predict_proba(X_valid), Y_valid, "f1_macro")
    assert -model.evals_result()["validation_0"]["minus_best_f1_macro"][-1] == pytest.approx(expected, abs=1e-6)


# ------------------------------------------------------------------------------- CatBoost, without the library


def test_catboost_form_takes_margins():
    """What CatBoost calls; with the library itself in test_catboost.py."""
    proba, y = worlds.multiclass(500, (3, 2, 1))
    metric = mw.eval_metric("macro_f1", "catboost")
    value, weight = metric.evaluate(tuple(np.log(proba).T), y.astype(np.float32), None)
    assert metric.is_max_optimal()
    assert type(metric).__name__ == "best_macro_f1"
    assert metric.get_final_error(value, weight) == pytest.approx(
        mw.value_at_best(np.log(proba), y, "macro_f1", input="logits"), abs=1e-12
    )


# ---------------------------------------------------------------------------------------------------- names and errors


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_pickles(library):
    p, y = worlds.binary(400)
    metric = mw.eval_metric("f1", library)
    again = pickle.loads(pickle.dumps(metric))  # noqa: S301  # our own
    assert again.value(p, y, None) == metric.value(p, y, None)
    assert again.__name__ == metric.__name__


def test_names_have_no_separators():
    names = ["very bad", "good: yes"]
    assert mw.eval_metric("recall['very bad']", "xgboost", classes=names).__name__ == "minus_best_recall['very_bad']"


def test_refusals():
    with pytest.raises(
        ValueError, match="eval_metric: library must be one of 'lightgbm', 'xgboost', 'catboost', got 'lgb'"
    ):
        mw.eval_metric("f1", "lgb")
    with pytest.raises(ValueError, match="roc_auc"):
        mw.eval_metric("roc_auc", "lightgbm")
    with pytest.raises(ValueError, match="input must be"):
        mw.eval_metric("f1", "lightgbm", input="margins")
    with pytest.raises(ValueError, match="multilabel must be False for LightGBM"):
        mw.eval_metric("f1", "lightgbm", multilabel=True)
    metric = mw.eval_metric("macro_f1", "xgboost")
    with pytest.raises(ValueError, match=r"y must be classes 0 to 1.*'multi:softprob'"):
        metric(np.array([0, 1, 2]), np.array([0.1, 0.5, 0.9]))  # multi:softmax passes classes
    with pytest.raises(ValueError, match="classes must be the labels of 3 classes"):
        mw.eval_metric("macro_f1", "xgboost", classes=["a", "b"])(np.array([0, 1, 2]), np.full((3, 3), 1 / 3))
