"""Native models of LightGBM and XGBoost with a rule, saved and loaded; CatBoost is in test_boosters_catboost.py."""

import pickle

import joblib
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.estimators._boosters import as_classifier

NAMES = np.array(["high", "low", "middle"])
WEIGHTS = mw.WeightedRule.from_weights([1, 2, 3], classes=NAMES)
THRESHOLD = mw.WeightedRule.from_thresholds({"late": 0.3}, classes=["fine", "late"])


@pytest.fixture(scope="module")
def data():
    return make_classification(300, n_informative=4, n_classes=3, weights=[0.6, 0.3], random_state=0)


def train_lightgbm(X, y, objective):
    n_classes = {"num_class": 3} if objective.startswith("multi") else {}
    params = {"objective": objective, "verbose": -1, "num_threads": 1, **n_classes}
    return lightgbm.train(params, lightgbm.Dataset(X, y if n_classes else (y > 0) * 1), 5)


def train_xgboost(X, y, objective):
    n_classes = {"num_class": 3} if objective.startswith("multi") else {}
    params = {"objective": objective, "nthread": 1, "max_depth": 3, **n_classes}
    return xgboost.train(params, xgboost.DMatrix(X, y if n_classes else (y > 0) * 1), 5)


TRAIN = {"lightgbm": train_lightgbm, "xgboost": train_xgboost}
CLASSIFIERS = {
    "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1),
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1),
}


def both_columns(positive):
    return np.stack([1 - positive, positive], axis=1)


# What each objective gives, by the library's own predictions: the probabilities, and the raw margins.
LIGHTGBM = {
    "binary": both_columns,
    "cross_entropy": both_columns,
    "multiclass": lambda predicted: predicted,
    "multiclassova": lambda predicted: predicted / predicted.sum(axis=1)[:, None],
}
XGBOOST = {
    "binary:logistic": both_columns,
    "reg:logistic": both_columns,
    "binary:logitraw": lambda predicted: both_columns(expit(predicted)),
    "multi:softprob": lambda predicted: predicted,
    "multi:softmax": None,  # predicts classes
}


def rule_for(proba):
    return WEIGHTS if proba.shape[1] == 3 else THRESHOLD


@pytest.mark.parametrize("objective", LIGHTGBM)
def test_objectives_of_lightgbm(data, objective):
    X, y = data
    booster = train_lightgbm(X, y, objective)
    proba = LIGHTGBM[objective](booster.predict(X))
    model = mw.FixedRuleClassifier(booster, rule_for(proba))
    np.testing.assert_array_equal(model.predict(X), rule_for(proba).predict(proba))
    np.testing.assert_array_equal(model.predict_proba(X), proba)
    np.testing.assert_array_equal(as_classifier(booster).decision_function(X), booster.predict(X, raw_score=True))


@pytest.mark.parametrize("objective", XGBOOST)
def test_objectives_of_xgboost(data, objective):
    X, y = data
    booster, rows = train_xgboost(X, y, objective), xgboost.DMatrix(X)
    margins = booster.predict(rows, output_margin=True)
    read = XGBOOST[objective]
    proba = softmax(margins, axis=1) if read is None else read(booster.predict(rows))
    model = mw.FixedRuleClassifier(booster, rule_for(proba))
    for given in (X, rows, sparse.csr_array(X), pd.DataFrame(X)):
        np.testing.assert_array_equal(model.predict(given), rule_for(proba).predict(proba))
    np.testing.assert_allclose(model.predict_proba(X), proba, rtol=1e-6)
    np.testing.assert_array_equal(as_classifier(booster).decision_function(X), margins)


@pytest.mark.parametrize(
    ("library", "objective"),
    [
        ("lightgbm", "regression"),
        ("lightgbm", "cross_entropy_lambda"),
        ("xgboost", "reg:squarederror"),
        ("xgboost", "rank:pairwise"),
        ("xgboost", "binary:hinge"),
    ],
)
def test_other_objectives_are_refused(data, library, objective):
    X, y = data
    model = mw.FixedRuleClassifier(TRAIN[library](X, y, objective), THRESHOLD)
    with pytest.raises(
        ValueError, match=f"a {library}.Booster that was trained for one of .*, got '{objective}'; .* to rule.predict"
    ):
        model.predict(X)


def test_custom_objectives_are_refused(data):
    X, y = data

    def squared(predicted, rows):
        return predicted - rows.get_label(), np.ones_like(predicted)

    params = {"objective": squared, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(params, lightgbm.Dataset(X, y), 2)
    with pytest.raises(ValueError, match=r"estimator must be a classifier: .*, got a custom objective"):
        mw.FixedRuleClassifier(booster, THRESHOLD).predict(X)
    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(X, y), 2, obj=squared)
    with pytest.raises(ValueError, match=r"estimator must be a classifier: .*, got 'reg:squarederror'"):
        mw.FixedRuleClassifier(booster, THRESHOLD).predict(X)


@pytest.mark.parametrize(("library", "objectives"), [("lightgbm", ("binary", "multiclass")), ("xgboost", XGBOOST)])
@pytest.mark.parametrize("kind", ["logits", "scores"])
def test_rules_on_logits_and_scores_take_raw_margins(data, library, objectives, kind):
    X, y = data
    for objective in objectives:
        booster = TRAIN[library](X, y, objective)
        margins = as_classifier(booster).margins(X)
        target = y if margins.ndim == 2 else (y > 0) * 1
        rule = mw.optimize(margins, target, "balanced_accuracy", input=kind).rule
        model = mw.FixedRuleClassifier(booster, rule)
        np.testing.assert_array_equal(model.decision_input(X), margins)
        np.testing.assert_array_equal(model.predict(X), rule.predict(margins))


@pytest.mark.parametrize("kind", ["logits", "scores"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_of_xgb_classifier(data, kind, n_classes):
    X, y = data
    y = np.minimum(y, n_classes - 1)
    margins = CLASSIFIERS["xgboost"]().fit(X, y).predict(X, output_margin=True)
    rule = mw.optimize(margins, NAMES[y], "g_mean", input=kind, pos_label="low" if n_classes == 2 else None).rule
    for model in (
        mw.FixedRuleClassifier(CLASSIFIERS["xgboost"](), rule).fit(X, NAMES[y]),
        mw.FixedRuleClassifier(CLASSIFIERS["xgboost"]().fit(X, y), rule),
    ):
        np.testing.assert_array_equal(model.predict(X), rule.predict(margins))


def test_a_rule_on_log_probabilities_is_refused(data):
    X, y = data
    rule = mw.optimize(np.log([[0.2, 0.3, 0.5]] * 30), np.resize([0, 1, 2], 30), "accuracy", input="log_proba").rule
    with pytest.raises(ValueError, match="estimator must have predict_log_proba, because the rule takes log_proba"):
        mw.FixedRuleClassifier(train_lightgbm(X, y, "multiclass"), rule).predict(X)


# ------------------------------------------------------------------------------------------------------------ classes


@pytest.mark.parametrize("library", TRAIN)
def test_columns_are_classes_of_the_rule(data, library):
    X, y = data
    booster = TRAIN[library](X, y, {"lightgbm": "multiclass", "xgboost": "multi:softprob"}[library])
    proba = as_classifier(booster).predict_proba(X)
    loss = Loss.from_tensor([[0, 1, 2], [1, 0, 1], [3, 1, 0]])

    grades = mw.WeightedRule(loss, (np.array([1, 2, 3]),))  # code j is the label of column j
    np.testing.assert_array_equal(mw.FixedRuleClassifier(booster, grades).predict(X), grades.predict(proba))

    turned = mw.WeightedRule(loss, (np.array([2, 0, 1]),))  # codes are what they are
    model = mw.FixedRuleClassifier(booster, turned)
    np.testing.assert_array_equal(model.predict(X), turned.predict(proba[:, [2, 0, 1]]))
    np.testing.assert_array_equal(model.predict_proba(X), proba[:, [2, 0, 1]])

    frame = pd.DataFrame(proba, columns=["low", "middle", "high"])  # the order of the codes, not that of the alphabet
    named = mw.optimize(frame, frame.columns.to_numpy()[y], "g_mean").rule
    assert named.classes[0].tolist() == ["high", "low", "middle"]
    np.testing.assert_array_equal(mw.FixedRuleClassifier(booster, named).predict(X), named.predict(frame))

    with pytest.raises(ValueError, match="must have one column per class, 2, got shape"):
        mw.FixedRuleClassifier(booster, THRESHOLD).predict(X)


@pytest.mark.parametrize("labels", [NAMES, np.array([1, 2, 3])])
def test_xgb_classifier_of_codes_with_a_rule_on_labels(data, labels):
    X, y = data
    fitted = CLASSIFIERS["xgboost"]().fit(X, y)
    rule = mw.WeightedRule.from_weights([1, 2, 3], classes=labels)
    model = mw.FixedRuleClassifier(fitted, rule)
    np.testing.assert_array_equal(model.predict(X), rule.predict(fitted.predict_proba(X)))
    assert model.classes_.tolist() == labels.tolist()
    codes = mw.WeightedRule.from_weights([3, 1, 2], classes=[2, 0, 1])
    np.testing.assert_array_equal(mw.FixedRuleClassifier(fitted, codes).predict(X), rule_of_codes(fitted, X))


def rule_of_codes(fitted, X):
    return np.argmax(fitted.predict_proba(X) * np.array([1, 2, 3]), axis=1)


def test_estimators_that_take_labels_must_have_those_of_the_rule(data):
    X, y = data
    with pytest.raises(ValueError, match=r"classes must be among \['high', 'low', 'middle'\], got also \[0, 1, 2\]"):
        mw.FixedRuleClassifier(CLASSIFIERS["lightgbm"]().fit(X, y), WEIGHTS).predict(X)


def test_several_outputs_of_xgboost(data):
    X, y = data
    Y = np.stack([y > 0, y > 1, y == 1], axis=1).astype(int)
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, xgboost.DMatrix(X, Y), 3)
    rule = mw.WeightedRule.from_thresholds({"a": 0.2, "b": 0.5, "c": 0.7})
    model = mw.FixedRuleClassifier(booster, rule)
    np.testing.assert_array_equal(model.predict(X), booster.predict(xgboost.DMatrix(X)) > [0.2, 0.5, 0.7])


def test_columns_without_names_have_those_of_the_booster(data):
    X, y = data
    frame = pd.DataFrame(X).add_prefix("column ")
    booster = xgboost.train({"objective": "multi:softprob", "num_class": 3}, xgboost.DMatrix(frame, y), 3)
    model = mw.FixedRuleClassifier(booster, WEIGHTS)
    np.testing.assert_array_equal(model.predict(X), model.predict(frame))


# -------------------------------------------------------------------------------------------------- as an estimator


def native(data, library):
    return TRAIN[library](*data, {"lightgbm": "multiclass", "xgboost": "multi:softprob"}[library])


@pytest.mark.parametrize("library", TRAIN)
def test_a_native_model_is_not_fitted(data, library):
    X, y = data
    model = mw.FixedRuleClassifier(native(data, library), WEIGHTS)
    instead = {"lightgbm": "lightgbm.LGBMClassifier", "xgboost": "xgboost.XGBClassifier"}[library]
    with pytest.raises(
        ValueError,
        match=f"^FixedRuleClassifier: a native {library}.Booster cannot be fitted here; "
        f"call predict without fit, or use {instead}.$",
    ):
        model.fit(X, NAMES[y])
    with pytest.raises(ValueError, match=f"rule must be given for a native {library}.Booster"):
        mw.FixedRuleClassifier(native(data, library), None).predict(X)
    with pytest.raises(NotFittedError):
        mw.FixedRuleClassifier(CLASSIFIERS[library](), WEIGHTS).predict(X)


@pytest.mark.parametrize("library", TRAIN)
def test_a_native_model_is_part_of_an_estimator(data, library):
    X, y = data
    model = mw.FixedRuleClassifier(native(data, library), WEIGHTS)
    assert is_classifier(model)
    assert model.__sklearn_is_fitted__()
    assert model.score(X, NAMES[y]) == pytest.approx(np.mean(model.predict(X) == NAMES[y]))
    assert hasattr(model, "predict_proba")
    assert "Booster" in repr(model)
    assert "Booster" in model._repr_html_()
    np.testing.assert_array_equal(clone(model).predict(X), model.predict(X))


# --------------------------------------------------------------------------------------------------- saved and loaded


@pytest.mark.parametrize("library", TRAIN)
@pytest.mark.parametrize("interface", ["native", "fitted", "fitted here"])
def test_saved_together(data, library, interface, tmp_path):
    X, y = data
    labels = NAMES[y]
    if interface == "native":
        model = mw.FixedRuleClassifier(native(data, library), WEIGHTS)
    elif interface == "fitted here":
        model = mw.FixedRuleClassifier(CLASSIFIERS[library](), WEIGHTS).fit(X, labels)
    else:
        model = mw.FixedRuleClassifier(CLASSIFIERS[library]().fit(X, y if library == "xgboost" else labels), WEIGHTS)
    joblib.dump(model, tmp_path / "model.joblib")
    for loaded in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):  # noqa: S301
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert loaded.classes_.tolist() == NAMES.tolist()


@pytest.mark.parametrize("library", TRAIN)
def test_the_rule_beside_the_file_of_the_model(data, library, tmp_path):
    X, y = data
    model = mw.FixedRuleClassifier(CLASSIFIERS[library](), WEIGHTS).fit(X, NAMES[y])
    model.rule_.to_json(tmp_path / "rule.json")
    path = str(tmp_path / "model.json")
    if library == "lightgbm":
        model.estimator_.booster_.save_model(path)
        booster = lightgbm.Booster(model_file=path)
    else:
        model.estimator_.save_model(path)
        booster = xgboost.Booster(model_file=path)
    loaded = mw.FixedRuleClassifier(booster, tmp_path / "rule.json")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_saved_by_skops(data, tmp_path):
    io = pytest.importorskip("skops.io")
    X, y = data
    for library, make in CLASSIFIERS.items():
        model = mw.FixedRuleClassifier(make(), WEIGHTS.to_dict()).fit(X, NAMES[y])
        path = tmp_path / f"{library}.skops"
        io.dump(model, path)
        loaded = io.load(path, trusted=io.get_untrusted_types(file=path))
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
