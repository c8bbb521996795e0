"""MetricOptimalClassifierCV: kinds of targets, folds, fitted attributes, and life among scikit-learn's tools."""

import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw
from metricwise.estimators._per_output import fit_labels
from problems import asking
from sklearn_versions import needs_temperature

LABELS = {"confusion": "labels", "recalibrate": False}
EXPECTED = {"confusion": "expected", "recalibrate": False}


@pytest.fixture(scope="module")
def multiclass():
    return make_classification(400, n_informative=4, n_classes=3, weights=[0.7, 0.2], random_state=0)


@pytest.fixture(scope="module")
def multilabel():
    return make_multilabel_classification(300, n_classes=4, n_labels=1, random_state=0)


@pytest.fixture(scope="module")
def grades():
    """Three outputs of 3, 2 and 4 classes."""
    X, Y = make_multilabel_classification(400, n_classes=6, random_state=1)
    return X, np.stack([Y[:, 0] + Y[:, 1], Y[:, 2], Y[:, 3] + Y[:, 4] + Y[:, 5]], axis=1)


# ------------------------------------------------------------------------------------------------------ targets


@pytest.mark.parametrize(
    "names",
    [
        np.array([0, 1, 2]),
        np.array([7, 20, 33]),
        np.array(["a", "b", "c"]),
        np.array(["a", "b", "c"], dtype=object),
        np.array([1, 2, 3], dtype=object),
        np.array([1.0, 2.0, 3.0]),
    ],
    ids=str,
)
def test_labels_of_any_type(multiclass, names):
    X, y = multiclass
    model = mw.MetricOptimalClassifierCV(GaussianNB(), metric="f1_macro", strategy=mw.Strategy(**EXPECTED)).fit(
        X, names[y]
    )
    plain = mw.MetricOptimalClassifierCV(GaussianNB(), metric="f1_macro", strategy=mw.Strategy(**EXPECTED)).fit(X, y)
    assert model.classes_.tolist() == names.tolist()
    assert model.predict(X).tolist() == names[plain.predict(X)].tolist()
    assert model.score(X, names[y]) == plain.score(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_labels_of_mixed_types(multiclass):
    X, y = multiclass
    names = np.array([1, "two", "three"], dtype=object)
    model = mw.MetricOptimalClassifierCV(GaussianNB(), metric="f1_macro", strategy=mw.Strategy(**EXPECTED)).fit(
        X, names[y]
    )
    assert set(model.predict(X).tolist()) == {1, "two", "three"}
    assert model.score(X, names[y]) > 0.5


def test_boolean_labels(multiclass):
    X, y = multiclass
    model = mw.MetricOptimalClassifierCV(GaussianNB(), metric="f1", strategy=mw.Strategy(**LABELS)).fit(X, y > 0)
    assert model.classes_.tolist() == [False, True]
    assert model.predict(X).dtype == bool
    assert model.score(X, y > 0) == pytest.approx(f1_score(y > 0, model.predict(X)))


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianNB(),
        RandomForestClassifier(10, random_state=0),
        KNeighborsClassifier(),
        OneVsRestClassifier(GaussianNB()),
        MultiOutputClassifier(GaussianNB()),
        ClassifierChain(GaussianNB()),
        make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=0)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, pd.DataFrame, pl.DataFrame])
def test_multilabel(multilabel, estimator, container):
    X, Y = multilabel
    model = mw.MetricOptimalClassifierCV(estimator, metric="f1_micro", strategy=mw.Strategy(**EXPECTED)).fit(
        X, container(Y)
    )
    predicted = model.predict(X)
    assert predicted.shape == Y.shape
    assert set(np.unique(predicted)) <= {0, 1}
    assert [labels.tolist() for labels in model.classes_] == [[0, 1]] * 4
    assert [block.shape for block in model.predict_proba(X)] == [(300, 2)] * 4
    assert model.decision_distribution(X).shape == (300, 4, 2)
    assert model.score(X, container(Y)) == pytest.approx(f1_score(Y, predicted, average="micro"))


def test_estimators_that_take_all_outputs_are_fitted_once(multilabel, grades):
    forest = RandomForestClassifier(5, random_state=0)
    for X, Y in (multilabel, grades):
        model = mw.MetricOptimalClassifierCV(
            forest, metric="micro_f1", average="micro", strategy=mw.Strategy(**EXPECTED)
        ).fit(X, Y)
        assert isinstance(model.estimator_, RandomForestClassifier)
        for ours, own in zip(model.predict_proba(X), clone(forest).fit(X, Y).predict_proba(X), strict=True):
            np.testing.assert_array_equal(ours, own)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_outputs_of_unequal_classes(grades, average):
    X, Y = grades
    model = mw.MetricOptimalClassifierCV(GaussianNB(), metric="quadratic_kappa", average=average, n_jobs=2).fit(X, Y)
    assert [len(labels) for labels in model.classes_] == [3, 2, 4]
    assert [block.shape[1] for block in model.predict_proba(X)] == [3, 2, 4]
    assert (model.predict(X) <= [2, 1, 3]).all()
    own = MultiOutputClassifier(GaussianNB()).fit(X, Y)
    for ours, other in zip(model.predict_proba(X), own.predict_proba(X), strict=True):
        np.testing.assert_array_equal(ours, other)


def test_outputs_with_labels_of_different_types(grades):
    X, Y = grades
    frame = pd.DataFrame({"size": np.array(["S", "M", "L"])[Y[:, 0]], "sold": Y[:, 1] == 1, "stars": Y[:, 2]})
    for y in (frame, pl.from_pandas(frame)):
        model = mw.MetricOptimalClassifierCV(
            GaussianNB(), metric="macro_f1", average="macro", strategy=mw.Strategy(**EXPECTED)
        ).fit(X, y)
        predicted = model.predict(X)
        assert [set(column) for column in predicted.T] == [{"S", "M", "L"}, {False, True}, {0, 1, 2, 3}]
        assert model.rule_.output_names == ("size", "sold", "stars")
        assert 0 < model.score(X, y) < 1


@pytest.mark.parametrize("estimator", [GaussianNB(), DecisionTreeClassifier(max_depth=3, random_state=0)])
def test_missing_labels_are_left_out_output_by_output(grades, estimator):
    X, Y = grades
    hidden = np.random.default_rng(0).random(Y.shape) < 0.3
    masked = np.where(hidden, np.nan, Y)
    settings = {"metric": "macro_f1", "average": "macro", "strategy": mw.Strategy(**EXPECTED)}
    model = mw.MetricOptimalClassifierCV(estimator, **settings).fit(X, masked)
    for m, block in enumerate(model.predict_proba(X)):
        seen = ~hidden[:, m]
        alone = clone(estimator).fit(X[seen], Y[seen, m])
        np.testing.assert_array_equal(block, alone.predict_proba(X))
    objects = np.where(hidden, None, Y.astype(object))
    same = mw.MetricOptimalClassifierCV(estimator, **settings).fit(X, objects)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    nullable = pd.DataFrame(Y).astype("Int64").mask(hidden)
    same = mw.MetricOptimalClassifierCV(estimator, **settings).fit(X, nullable)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.predict(X).dtype.kind == "i"
    assert model.score(X, masked) == pytest.approx(same.score(X, nullable))


def test_outputs_of_one_class_or_none_keep_argmax_and_are_named(grades):
    X, Y = grades
    Y = np.column_stack([Y[:, 0], np.full(len(Y), 1.0), np.full(len(Y), np.nan), Y[:, 0]])
    model = mw.MetricOptimalClassifierCV(GaussianNB(), metric="macro_f1", average="macro").fit(X, Y)
    assert "use argmax: 1, 2" in model.solution_.status
    assert [labels.tolist() for labels in model.classes_] == [[0, 1, 2]] * 4
    assert (model.predict(X)[:, 1] == 1).all()


def test_a_single_column_is_a_single_output(multiclass):
    X, y = multiclass
    model = mw.MetricOptimalClassifierCV(GaussianNB(), metric="micro_f1", strategy=mw.Strategy(**EXPECTED)).fit(
        X, y[:, None]
    )
    plain = mw.MetricOptimalClassifierCV(GaussianNB(), metric="micro_f1", strategy=mw.Strategy(**EXPECTED)).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X)[:, None])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_names(multiclass, frame):
    X, y = multiclass
    X = frame({f"f{i}": column for i, column in enumerate(X.T)})
    names = np.array(["low", "middle", "high"])
    series = pd.Series(names[y], dtype="category") if frame is pd.DataFrame else pl.Series(names[y])
    model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="g_mean", strategy=mw.Strategy(**EXPECTED)).fit(
        X, series
    )
    assert model.feature_names_in_.tolist() == [f"f{i}" for i in range(20)]
    assert model.n_features_in_ == 20
    assert set(model.predict(X)) == set(names)


def test_metrics_of_every_sort(multiclass):
    X, y = multiclass
    for metric in ("recall_macro", mw.metrics.FBeta(beta=2, index=2), lambda C: np.trace(C) - C[0, 2]):
        model = mw.MetricOptimalClassifierCV(GaussianNB(), metric=metric, cv=2, strategy=mw.Strategy(**LABELS)).fit(
            X, y
        )
        assert model.best_score_ == pytest.approx(model.solution_.value)


@pytest.mark.parametrize("metric", ["roc_auc", "neg_log_loss", "f1"])
def test_what_is_no_metric_of_the_confusion_is_refused(multiclass, metric):
    X, y = multiclass
    never = KNeighborsClassifier(n_neighbors=-1)  # any fit would fail
    with pytest.raises(ValueError, match=f"metric: '{metric}' is"):
        mw.MetricOptimalClassifierCV(never, metric=metric).fit(X, y)


# -------------------------------------------------------------------------------------------------------- folds


@pytest.mark.parametrize("cv", [None, 3, StratifiedKFold(4), KFold(3, shuffle=True, random_state=0)])
def test_the_rule_is_that_of_out_of_fold_probabilities(multiclass, cv):
    X, y = multiclass
    model = mw.MetricOptimalClassifierCV(
        LogisticRegression(), metric="f1_macro", cv=cv, strategy=mw.Strategy(**LABELS)
    ).fit(X, y)
    proba = cross_val_predict(LogisticRegression(), X, y, cv=cv, method="predict_proba")
    by_hand = mw.optimize(proba, y, "f1_macro", strategy=mw.Strategy(**LABELS))
    assert model.rule_ == by_hand.rule
    assert model.best_score_ == by_hand.value
    np.testing.assert_array_equal(model.predict_proba(X), LogisticRegression().fit(X, y).predict_proba(X))


def test_folds_that_lack_a_class_are_aligned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.array(["a"] * 30 + ["b"] * 28 + ["c"] * 2)
    X[y == "b", 0] += 2
    X[y == "c", 1] += 5
    folds = [(np.arange(58), np.array([58, 59])), (np.arange(20, 60), np.arange(20)), (np.arange(2), np.arange(2, 4))]
    model = mw.MetricOptimalClassifierCV(
        GaussianNB(), metric="g_mean", cv=folds[:2], strategy=mw.Strategy(**LABELS)
    ).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.predict_proba(X).shape == (60, 3)
    assert model.solution_.rule.metadata.rows == 22  # rows that no fold tests do not take part
    # By default a class with fewer rows than folds is no reason to warn.
    mw.MetricOptimalClassifierCV(GaussianNB(), metric="g_mean", strategy=mw.Strategy(**LABELS)).fit(X, y)


def test_rows_that_are_tested_several_times_count_once(multiclass):
    X, y = multiclass
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    model = mw.MetricOptimalClassifierCV(GaussianNB(), metric="f1_macro", cv=cv, strategy=mw.Strategy(**LABELS)).fit(
        X, y
    )
    splits = list(cv.split(X, y))
    proba = [cross_val_predict(GaussianNB(), X, y, cv=splits[i : i + 3], method="predict_proba") for i in (0, 3)]
    assert model.best_score_ == pytest.approx(
        mw.optimize(np.mean(proba, axis=0), y, "f1_macro", strategy=mw.Strategy(**LABELS)).value
    )


@pytest.mark.parametrize("n", [200, 201])
def test_a_float_is_one_split_and_the_model_takes_the_odd_row(multiclass, n):
    X, y = (part[:n] for part in multiclass)
    model = mw.MetricOptimalClassifierCV(
        GaussianNB(), cv=0.5, refit=False, random_state=0, strategy=mw.Strategy(**LABELS)
    ).fit(X, y)
    assert model.estimator_.class_count_.sum() == n - n // 2
    assert model.rule_.metadata.rows == n // 2
    refitted = mw.MetricOptimalClassifierCV(GaussianNB(), cv=0.5, random_state=0, strategy=mw.Strategy(**LABELS)).fit(
        X, y
    )
    assert refitted.estimator_.class_count_.sum() == n
    assert refitted.rule_ == model.rule_


def test_a_single_split_of_a_splitter_can_be_kept(multiclass):
    X, y = multiclass
    cv = ShuffleSplit(1, test_size=0.25, random_state=0)
    model = mw.MetricOptimalClassifierCV(GaussianNB(), cv=cv, refit=False, strategy=mw.Strategy(**LABELS)).fit(X, y)
    assert model.estimator_.class_count_.sum() == 300


def test_refit_false_needs_a_single_split(multiclass):
    with pytest.raises(ValueError, match="refit=False needs a single split, got 5"):
        mw.MetricOptimalClassifierCV(GaussianNB(), refit=False).fit(*multiclass)


def test_a_fitted_estimator_stays_as_it_is(multiclass):
    X, y = multiclass
    fitted = GaussianNB().fit(X[:200], y[:200])
    prefit = mw.MetricOptimalClassifierCV(fitted, cv="prefit", strategy=mw.Strategy(**LABELS)).fit(X[200:], y[200:])
    frozen = mw.MetricOptimalClassifierCV(FrozenEstimator(fitted), strategy=mw.Strategy(**LABELS)).fit(X[200:], y[200:])
    assert prefit.estimator_ is fitted
    by_hand = mw.optimize(fitted.predict_proba(X[200:]), y[200:], "balanced_accuracy", strategy=mw.Strategy(**LABELS))
    assert prefit.rule_ == frozen.rule_ == by_hand.rule


def test_a_fitted_estimator_may_know_more_classes(multiclass):
    X, y = multiclass
    fitted, few = GaussianNB().fit(X, y), y < 2
    model = mw.MetricOptimalClassifierCV(fitted, cv="prefit", strategy=mw.Strategy(**LABELS)).fit(X[few], y[few])
    assert model.classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="must hold only known classes"):
        mw.MetricOptimalClassifierCV(GaussianNB().fit(X[few], y[few]), cv="prefit").fit(X, y)


def test_a_fitted_estimator_of_several_outputs(grades):
    X, Y = grades
    forest = RandomForestClassifier(5, random_state=0).fit(X[:200], Y[:200])
    model = mw.MetricOptimalClassifierCV(
        forest, metric="quadratic_kappa", average="micro", cv="prefit", strategy=mw.Strategy(**EXPECTED)
    )
    model.fit(X[200:], Y[200:])
    assert [len(labels) for labels in model.classes_] == [3, 2, 4]


def test_what_is_not_fitted_is_refused(multiclass):
    for settings in ({"estimator": GaussianNB(), "cv": "prefit"}, {"estimator": FrozenEstimator(GaussianNB())}):
        with pytest.raises(NotFittedError, match="need a fitted estimator"):
            mw.MetricOptimalClassifierCV(**settings).fit(*multiclass)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", pytest.param("temperature", marks=needs_temperature)])
def test_calibration_inside_the_folds(multiclass, method):
    X, y = multiclass
    y = np.array(["a", "b", "c"])[y]
    model = mw.MetricOptimalClassifierCV(GaussianNB(), cv=2, calibration=method, strategy=mw.Strategy(**EXPECTED)).fit(
        X, y
    )
    assert type(model.estimator_).__name__ == "CalibratedClassifierCV"
    assert model.estimator_.method == method
    assert model.score(X, y) > 0.5


def test_calibration_makes_probabilities_of_scores(multilabel):
    X, Y = multilabel
    for y in (Y[:, 0], Y):
        model = mw.MetricOptimalClassifierCV(LinearSVC(), cv=2, calibration="sigmoid", strategy=mw.Strategy(**EXPECTED))
        assert hasattr(model, "predict_proba")
        assert model.fit(X, y).score(X, y) > 0.5
    with pytest.raises(ValueError, match="LinearSVC has no predict_proba; use response='auto', or calibration='sigm"):
        mw.MetricOptimalClassifierCV(LinearSVC(), response="predict_proba").fit(X, Y[:, 0])


@needs_temperature
def test_calibration_of_a_fitted_estimator(multiclass, multilabel):
    X, y = multiclass
    fitted = GaussianNB().fit(X[:200], y[:200])
    for settings in ({"estimator": fitted, "cv": "prefit"}, {"estimator": FrozenEstimator(fitted)}):
        model = mw.MetricOptimalClassifierCV(**asking(settings, **EXPECTED), calibration="temperature").fit(
            X[200:], y[200:]
        )
        assert type(model.estimator_).__name__ == "CalibratedClassifierCV"
        assert model.rule_.metadata.rows == 200
    X, Y = multilabel
    forest = FrozenEstimator(RandomForestClassifier(5).fit(X, Y))
    with pytest.raises(ValueError, match="needs a 1-D y if the estimator is prefitted"):
        mw.MetricOptimalClassifierCV(forest, calibration="sigmoid").fit(X, Y)


# ------------------------------------------------------------------------------------------- fitted attributes


def test_the_fitted_attributes_say_what_was_found(multiclass):
    X, y = multiclass
    model = mw.MetricOptimalClassifierCV(GaussianNB(), metric="g_mean").fit(X, y)
    assert model.gain_.low <= model.gain_.estimate <= model.gain_.high
    assert model.gain_ is model.solution_.gain
    assert model.best_score_ == model.solution_.value
    table = pd.DataFrame(model.cv_results_)
    assert list(table.columns) == ["recipe", "score", "gain", "std_error"]
    assert table.recipe.tolist() == ["recalibrated + expected and labels"]
    fixed = mw.MetricOptimalClassifierCV(GaussianNB(), metric="g_mean", strategy=mw.Strategy(**LABELS)).fit(X, y)
    assert fixed.gain_ is None
    assert fixed.cv_results_ is None


def test_decision_distribution(multiclass):
    X, y = multiclass
    model = mw.MetricOptimalClassifierCV(
        GaussianNB(), metric="min_recall", strategy=mw.Strategy(randomized=True, **EXPECTED)
    ).fit(X, y)
    distribution = model.decision_distribution(X)
    np.testing.assert_allclose(distribution.sum(axis=1), 1)
    assert (distribution[np.arange(len(X)), model.predict(X)] > 0).all()
    assert isinstance(model.rule_, mw.MixtureRule)
    assert set(np.unique(distribution)) > {0.0, 1.0}


def test_a_class_that_was_never_seen_is_scored_as_an_error(multiclass):
    X, y = multiclass
    few = y < 2
    model = mw.MetricOptimalClassifierCV(GaussianNB(), metric="accuracy", strategy=mw.Strategy(**EXPECTED)).fit(
        X[few], y[few]
    )
    assert model.score(X, y) == pytest.approx(np.mean(model.predict(X) == y))


# ------------------------------------------------------------------------------------------ weights and groups


def test_weights_of_rows_are_repetitions(multiclass):
    X, y = multiclass
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    half = len(y) // 2
    folds = [(np.arange(half), np.arange(half, len(y))), (np.arange(half, len(y)), np.arange(half))]
    same = [(np.flatnonzero(np.isin(rows, a)), np.flatnonzero(np.isin(rows, b))) for a, b in folds]
    settings = {"metric": "f1_macro", "strategy": mw.Strategy(**LABELS)}
    weighted = mw.MetricOptimalClassifierCV(GaussianNB(), cv=folds, **settings).fit(X, y, sample_weight=weight)
    repeated = mw.MetricOptimalClassifierCV(GaussianNB(), cv=same, **settings).fit(X[rows], y[rows])
    assert weighted.best_score_ == pytest.approx(repeated.best_score_)
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    assert weighted.score(X, y, weight) == pytest.approx(repeated.score(X[rows], y[rows]))


def test_weights_that_the_estimator_does_not_take_weigh_the_metric(multiclass):
    X, y = multiclass
    with pytest.warns(UserWarning, match="KNeighborsClassifier does not take sample_weight"):
        mw.MetricOptimalClassifierCV(KNeighborsClassifier(), strategy=mw.Strategy(**LABELS)).fit(
            X, y, sample_weight=1.0 + y
        )


def test_groups_reach_the_splitter(multiclass):
    X, y = multiclass
    groups = np.arange(len(y)) % 7
    model = mw.MetricOptimalClassifierCV(GaussianNB(), cv=GroupKFold(3), strategy=mw.Strategy(**LABELS)).fit(
        X, y, groups=groups
    )
    splits = list(GroupKFold(3).split(X, y, groups))
    assert (
        model.rule_
        == mw.MetricOptimalClassifierCV(GaussianNB(), cv=splits, strategy=mw.Strategy(**LABELS)).fit(X, y).rule_
    )
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = GaussianNB().set_fit_request(sample_weight=True)
        routed = mw.MetricOptimalClassifierCV(estimator, cv=GroupKFold(3), strategy=mw.Strategy(**LABELS))
        routed.fit(X, y, groups=groups, sample_weight=np.ones(len(y)))
        assert routed.rule_ == model.rule_
        outer = cross_val_score(
            routed.set_fit_request(sample_weight=True).set_score_request(sample_weight=True),
            X,
            y,
            cv=GroupKFold(2),
            params={"groups": groups, "sample_weight": np.ones(len(y))},
        )
        assert np.isfinite(outer).all()


def test_a_pipeline_takes_weights_through_routing(multiclass):
    X, y = multiclass
    weight = 1.0 + y
    with sklearn.config_context(enable_metadata_routing=True):
        steps = StandardScaler().set_fit_request(sample_weight=False), GaussianNB().set_fit_request(sample_weight=True)
        model = mw.MetricOptimalClassifierCV(make_pipeline(*steps), strategy=mw.Strategy(**LABELS)).fit(
            X, y, sample_weight=weight
        )
        alone = GaussianNB().fit(StandardScaler().fit_transform(X), y, sample_weight=weight)
        np.testing.assert_allclose(model.estimator_[-1].class_prior_, alone.class_prior_)


# ----------------------------------------------------------------------------------------------- good citizens


def test_life_among_the_tools_of_scikit_learn(multiclass):
    X, y = multiclass
    model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="g_mean", cv=2, strategy=mw.Strategy(**EXPECTED))
    pipeline = make_pipeline(StandardScaler(), model).set_output(transform="pandas")
    search = GridSearchCV(pipeline, {"metricoptimalclassifiercv__estimator__C": [0.1, 1.0]}, cv=2).fit(X, y)
    fitted = search.best_estimator_[-1]
    assert search.best_score_ == pytest.approx(cross_val_score(search.best_estimator_, X, y, cv=2).mean())
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    assert again.rule_ == fitted.rule_
    assert "MetricOptimalClassifierCV" in search._repr_html_()
    assert "LogisticRegression" in fitted._repr_html_()
    assert "estimator=LogisticRegression()" in repr(clone(model))
    assert clone(fitted).get_params()["metric"] == "g_mean"
    assert not hasattr(clone(fitted), "rule_")


def test_seeds(multiclass):
    X, y = multiclass
    settings = {"estimator": GaussianNB(), "cv": 0.5, "metric": "g_mean"}
    one, two = (mw.MetricOptimalClassifierCV(**settings, random_state=3).fit(X, y) for _ in range(2))
    assert one.rule_ == two.rule_
    mw.MetricOptimalClassifierCV(**settings, random_state=np.random.RandomState(3)).fit(X, y)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("cv", 1.5), ("average", "samples"), ("strategy", "guess"), ("calibration", "beta"), ("metric", 3)],
)
def test_bad_parameters_are_refused(multiclass, parameter, value):
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of MetricOptimalClassifierCV must be"):
        mw.MetricOptimalClassifierCV(GaussianNB(), **{parameter: value}).fit(*multiclass)


def test_bad_targets_are_refused(multiclass):
    X, y = multiclass
    model = mw.MetricOptimalClassifierCV(GaussianNB())
    with pytest.raises(ValueError, match="y must not have missing labels"):
        model.fit(X, np.where(y == 2, np.nan, y))
    with pytest.raises(ValueError, match="y must have at least two classes, got one class"):
        model.fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(X, np.column_stack([np.full(len(y), 3), np.full(len(y), 3)]))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        model.fit(X, X[:, 0])
    with pytest.raises(ValueError, match="score: y must have the shape of the predictions"):
        model.fit(X, y).score(X, y[:, None])


class Fussy(LogisticRegression):
    """Refuses what it is told to, and counts the rows that it is fitted to."""

    rows: ClassVar[list[int]] = []

    def fit(self, X, y, sample_weight=None):
        self.rows.append(len(y))
        if self.C > 1 and np.asarray(y).dtype.kind != "i":
            raise ValueError("no text")
        if len(y) > 100:
            raise ValueError("too many rows")
        return super().fit(X, y, sample_weight)


def test_an_error_of_the_estimator_is_not_hidden_by_codes():
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.resize(["no", "yes"], 200)
    Fussy.rows.clear()
    with pytest.raises(ValueError, match=r"^too many rows$"):  # whatever labels it has
        fit_labels(Fussy(), X, y, {})
    with pytest.raises(ValueError, match=r"^too many rows$"):  # of codes, which a few rows may have
        fit_labels(Fussy(C=2), X, y, {"sample_weight": np.ones(200)})
    assert Fussy.rows.count(200) == 3  # the rest is tried on a few rows
    mixed = np.array([None, "yes"] * 100, dtype=object)
    with pytest.raises(ValueError, match=r"^too many rows$"):  # such labels cannot be sorted
        fit_labels(Fussy(), X, mixed, {})
