"""Estimators that take codes only, fitted to labels."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression
from xgboost import XGBClassifier

import metricwise as mw
from metricwise.estimators._encoded import EncodedClassifier

NAMES = np.array(["high", "low", "mid"])
RULE = mw.WeightedRule.from_weights([1, 2, 3], classes=NAMES)
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
y = np.digitize(X[:, 0] + rng.normal(size=300), [-0.5, 1])


def boosted(**settings):
    return XGBClassifier(n_estimators=20, max_depth=2, n_jobs=1, **settings)


def test_the_estimator_behind_labels():
    model = EncodedClassifier(boosted()).fit(X, NAMES[y])
    fitted = boosted().fit(X, y)
    assert is_classifier(model)
    assert model.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(model.predict(X), NAMES[fitted.predict(X)])
    np.testing.assert_array_equal(model.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(model.feature_importances_, fitted.feature_importances_)
    assert model.n_features_in_ == 4
    assert not hasattr(model, "decision_function")
    assert isinstance(clone(model).estimator, XGBClassifier)
    loaded = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_early_stopping_by_labels():
    evaluated = {"eval_set": [(X[200:], NAMES[y[200:]])], "verbose": False}
    stopping = boosted(early_stopping_rounds=2, learning_rate=1)
    model = mw.FixedRuleClassifier(stopping, RULE).fit(X[:200], NAMES[y[:200]], **evaluated)
    fitted = clone(stopping).fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])], verbose=False)
    assert model.estimator_.best_iteration == fitted.best_iteration < 19
    np.testing.assert_array_equal(model.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize("labels", [NAMES, np.array([1, 2, 5]), np.array([0.5, 1.5, 2.5])])
def test_a_rule_on_labels(labels):
    rule = mw.WeightedRule.from_weights([1, 2, 3], classes=labels)
    if labels.dtype.kind == "f":
        rule = None  # scikit-learn takes such numbers for those of a regression
        labels = np.array([False, True])
    codes = np.minimum(y, len(labels) - 1)
    model = mw.FixedRuleClassifier(boosted(), rule).fit(X, labels[codes])
    proba = boosted().fit(X, codes).predict_proba(X)
    expected = labels[proba.argmax(axis=1)] if rule is None else rule.predict(proba)
    np.testing.assert_array_equal(model.predict(X), expected)
    assert model.classes_.tolist() == labels.tolist()


def test_a_fold_that_lacks_a_code():
    codes = np.where(y == 1, 2, y)  # without 1
    rule = mw.WeightedRule.from_weights([1, 1, 1])
    model = mw.FixedRuleClassifier(boosted(), rule).fit(X, codes)
    assert model.predict_proba(X)[:, 1].tolist() == [0] * 300
    np.testing.assert_array_equal(model.predict(X), np.array([0, 2])[boosted().fit(X, codes // 2).predict(X)])


def test_training_for_a_metric_and_calibration():
    trained = mw.MetricWeightedClassifier(boosted(), metric="g_mean", cv=2, max_iter=2).fit(X, NAMES[y])
    assert set(trained.predict(X)) <= set(NAMES)
    calibrated = mw.MetricOptimalClassifierCV(boosted(), metric="g_mean", cv=2, calibration="sigmoid").fit(X, NAMES[y])
    by_codes = mw.MetricOptimalClassifierCV(boosted(), metric="g_mean", cv=2, calibration="sigmoid").fit(X, y)
    np.testing.assert_array_equal(calibrated.predict_proba(X), by_codes.predict_proba(X))


class CodesOnly(LogisticRegression):
    """Takes codes 0 to K - 1 only, as XGBClassifier does, and is converted as its base class is."""

    def fit(self, X, y):
        if not np.array_equal(np.unique(y), np.arange(len(np.unique(y)))):
            raise ValueError("no labels")
        return super().fit(X, y)


def test_onnx_converters_see_the_estimator():
    skl2onnx, runtime = pytest.importorskip("skl2onnx"), pytest.importorskip("onnxruntime")
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes
    from skl2onnx.operator_converters.linear_classifier import convert_sklearn_linear_classifier

    skl2onnx.update_registered_converter(
        CodesOnly,
        "CodesOnly",
        calculate_linear_classifier_output_shapes,
        convert_sklearn_linear_classifier,
        options={"zipmap": [True, False], "nocl": [True, False], "raw_scores": [True, False]},
    )
    mw.export.register_converters()
    model = mw.FixedRuleClassifier(CodesOnly(), RULE).fit(X, NAMES[y])
    onnx_model = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})
    session = runtime.InferenceSession(onnx_model.SerializeToString(), providers=["CPUExecutionProvider"])
    labels, proba = session.run(None, {"X": X})
    np.testing.assert_allclose(proba, model.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(labels, model.predict(X))
