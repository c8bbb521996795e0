"""Estimators are told which class is the positive one, and in which order classes come."""

import numpy as np
import pytest
import sklearn.metrics as sk
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

import metricwise as mw
from worlds import fraud, named_outputs

FIXED = {"confusion": "labels", "recalibrate": False}
SCALE = ["low", "mid", "high"]


def features(y, seed=0):
    """Two columns that tell something about labels."""
    rng = np.random.default_rng(seed)
    codes = np.unique(y, return_inverse=True)[1].reshape(np.shape(y))
    codes = codes if codes.ndim == 2 else codes[:, None]
    return np.hstack([codes + rng.normal(0, 1.0, codes.shape), rng.normal(size=(len(codes), 1))])


@pytest.mark.parametrize("cv", [None, "prefit"])
def test_an_estimator_takes_the_positive_class(cv):
    _, y = fraud(np.random.default_rng(3).beta(1, 4, 300))
    X = features(y)
    inner = LogisticRegression().fit(X, y)
    model = mw.MetricOptimalClassifierCV(inner, metric="f1", pos_label="fraud", cv=cv).fit(X, y)
    assert model.score(X, y) == pytest.approx(sk.f1_score(y, model.predict(X), pos_label="fraud"), abs=1e-12)
    trained = mw.MetricWeightedClassifier(LogisticRegression(), metric="f1", pos_label="fraud").fit(X, y)
    assert trained.score(X, y) == pytest.approx(sk.f1_score(y, trained.predict(X), pos_label="fraud"), abs=1e-12)


@pytest.mark.parametrize("cv", [None, "prefit"])
def test_an_estimator_takes_classes_in_their_order(cv):
    _, y, _ = named_outputs(sorted(SCALE))
    y = y[:, 0]
    places = np.array([SCALE.index(label) for label in y])
    X = features(places)
    by_word = mw.MetricOptimalClassifierCV(
        LogisticRegression().fit(X, y),
        metric="quadratic_kappa",
        classes=SCALE,
        order=SCALE,
        cv=cv,
        strategy=mw.Strategy(**FIXED),
    ).fit(X, y)
    by_place = mw.MetricOptimalClassifierCV(
        LogisticRegression().fit(X, places), metric="quadratic_kappa", cv=cv, strategy=mw.Strategy(**FIXED)
    ).fit(X, places)
    assert by_word.classes_.tolist() == SCALE
    np.testing.assert_array_equal(by_word.predict(X), np.array(SCALE)[by_place.predict(X)])
    np.testing.assert_allclose(by_word.predict_proba(X), by_place.predict_proba(X), atol=1e-4)
    expected = sk.cohen_kappa_score(y, by_word.predict(X), labels=SCALE, weights="quadratic")
    assert by_word.score(X, y) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match="must hold only the classes"):
        by_word.score(X, np.where(y == "low", "lowest", y))


def test_classes_that_do_not_occur_may_be_declared():
    _, y, _ = named_outputs(sorted(SCALE))
    y = y[:, 0]
    X = features(y)
    wide = ["none", *SCALE]
    model = mw.MetricOptimalClassifierCV(
        LogisticRegression(), metric="kappa", classes=wide, strategy=mw.Strategy(**FIXED)
    ).fit(X, y)
    assert model.classes_.tolist() == wide
    assert model.predict_proba(X).shape == (len(X), 4)
    assert not model.predict_proba(X)[:, 0].any()
    with pytest.raises(ValueError, match=r"y must hold only known classes, \['low', 'mid'\], got \['high'\]"):
        mw.MetricOptimalClassifierCV(LogisticRegression(), classes=["low", "mid"]).fit(X, y)
    with pytest.raises(ValueError, match="classes must be at least two distinct labels"):
        mw.MetricOptimalClassifierCV(LogisticRegression(), classes=["low", "low"]).fit(X, y)


def test_classes_and_positive_classes_of_several_outputs():
    _, y, _ = named_outputs(["bad", "good"], ["dirty", "neat"])
    X = features(y)
    model = mw.MetricOptimalClassifierCV(
        MultiOutputClassifier(LogisticRegression()),
        metric="f1",
        average="macro",
        classes=[["good", "bad"], ["dirty", "neat"]],
        pos_label=["bad", "neat"],
        strategy=mw.Strategy(**FIXED),
    ).fit(X, y)
    assert [labels.tolist() for labels in model.classes_] == [["good", "bad"], ["dirty", "neat"]]
    found = model.predict(X)
    expected = np.mean([sk.f1_score(y[:, m], found[:, m], pos_label=p) for m, p in enumerate(["bad", "neat"])])
    assert model.score(X, y) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match="classes must be one list of labels, or one for each of 2 outputs, got 3"):
        mw.MetricOptimalClassifierCV(LogisticRegression(), classes=[["a", "b"]] * 3).fit(X, y)


def test_a_label_never_seen_before_leaves_pooled_classes_where_they_are():
    _, y, _ = named_outputs([1, 2, 3], [1, 2, 3])
    X = features(y)
    for average in (None, "micro"):
        model = mw.MetricOptimalClassifierCV(
            MultiOutputClassifier(LogisticRegression()), metric="kappa", average=average
        )
        predicted = model.fit(X, y).predict(X)
        new = y.copy()
        new[:20, 1] = 0
        expected = sk.cohen_kappa_score(new.ravel(), predicted.ravel())
        assert model.score(X, new) == pytest.approx(expected, abs=1e-12)
