"""Metrics recorded beside the one that is maximised: their values are those of the predictions."""

import functools
import warnings

import numpy as np
import pytest
import sklearn.metrics as sk
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import metricwise as mw
import worlds
from metricwise.metrics import FBeta, GMean

FIXED = {"confusion": "labels", "recalibrate": False}


def rows(seed, n=80, k=2, m=None):
    rng = np.random.default_rng(seed)
    eta, y = worlds.outputs(n, [np.linspace(2, 0.7, k)] * (m or 1), every_class=True, seed=rng)
    weight = rng.integers(1, 5, size=n) / 2
    return (eta if m else eta[0]), (y if m else y[:, 0]), weight


@pytest.mark.parametrize("strategy", [mw.Strategy(**FIXED), None, mw.Strategy("expected", recalibrate=True)])
def test_values_are_those_of_the_predictions_and_of_argmax(strategy):
    eta, y, weight = rows(0)
    record = {"P": "precision", "r": sk.recall_score, "f2": FBeta(2), "half": lambda C: C[0, 0] - C[1, 1] / 2}
    solution = mw.optimize(eta, y, "f1", sample_weight=weight, record=record, strategy=strategy)
    assert list(solution.recorded) == list(record)
    for predicted, field in ((solution.rule.predict(eta), "value"), (eta.argmax(axis=1), "baseline")):
        C = sk.confusion_matrix(y, predicted, sample_weight=weight) / weight.sum()
        expected = {
            "P": sk.precision_score(y, predicted, sample_weight=weight),
            "r": sk.recall_score(y, predicted, sample_weight=weight),
            "f2": sk.fbeta_score(y, predicted, beta=2, sample_weight=weight),
            "half": C[0, 0] - C[1, 1] / 2,
        }
        for name, value in expected.items():
            assert getattr(solution.recorded[name], field) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("average", ["micro", "macro", "instance"])
def test_outputs_are_averaged_as_for_the_metric(average):
    eta, y, weight = rows(1, k=3, m=4)
    solution = mw.optimize(
        eta,
        y,
        "balanced_accuracy",
        average=average,
        sample_weight=weight,
        record=["accuracy", GMean()],
        strategy=mw.Strategy(**FIXED),
    )
    plain = np.column_stack([one.argmax(axis=1) for one in eta])
    for metric in (mw.metrics.Accuracy(), GMean()):
        found = solution.recorded[metric.name]
        for predicted, value in ((solution.rule.predict(eta), found.value), (plain, found.baseline)):
            expected = metric.score(y, predicted, average=average, sample_weight=weight)
            assert value == pytest.approx(expected, abs=1e-12)


def test_a_name_that_says_its_average_keeps_it():
    eta, y, _ = rows(2, m=3)
    proba = np.column_stack([one[:, 1] for one in eta])
    solution = mw.optimize(
        proba,
        y,
        "f1_macro",
        record=["f1_micro", "precision_weighted", "recall", "jaccard_samples"],
        strategy=mw.Strategy(**FIXED),
    )
    predicted = solution.rule.predict(proba)
    expected = {
        "f1_micro": sk.f1_score(y, predicted, average="micro"),
        "precision_weighted": sk.precision_score(y, predicted, average="weighted"),
        "recall": sk.recall_score(y, predicted, average="macro"),
        "jaccard_samples": sk.jaccard_score(y, predicted, average="samples", zero_division=0),
    }
    assert {name: one.value for name, one in solution.recorded.items()} == pytest.approx(expected, abs=1e-12)


def test_without_labels_values_are_expected():
    eta, _, weight = rows(3, k=3)
    solution = mw.optimize(eta, None, "macro_f1", sample_weight=weight, record=["accuracy"])
    for predicted, value in (
        (solution.rule.predict(eta), solution.recorded["accuracy"].value),
        (eta.argmax(axis=1), solution.recorded["accuracy"].baseline),
    ):
        assert value == pytest.approx(weight @ eta[np.arange(len(eta)), predicted] / weight.sum(), abs=1e-12)


def test_a_mixture_is_valued_in_expectation():
    eta, y, _ = rows(4, k=3)
    solution = mw.optimize(eta, y, "min_recall", record=["accuracy"], strategy=mw.Strategy(randomized=True, **FIXED))
    chances = solution.rule.distribution(eta)
    assert isinstance(solution.rule, mw.MixtureRule)
    assert solution.recorded["accuracy"].value == pytest.approx(chances[np.arange(len(y)), y].mean(), abs=1e-12)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.9, 0.1]])
def test_the_metric_itself_has_the_value_of_the_solution(prior):
    eta, y, weight = rows(5)
    solution = mw.optimize(
        eta, y, "f1", sample_weight=weight, prior=prior, record=["f1"], strategy=mw.Strategy(**FIXED)
    )
    assert solution.recorded["f1"].value == pytest.approx(solution.value, abs=1e-12)
    assert solution.recorded["f1"].baseline == pytest.approx(solution.baseline, abs=1e-12)


def test_a_degenerate_aim_may_be_recorded_without_a_word():
    eta, y, _ = rows(6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mw.optimize(eta, y, "f1", record=["precision", "recall"], strategy=mw.Strategy(**FIXED))


def test_nothing_is_recorded_unless_asked_for():
    eta, y, _ = rows(6)
    assert mw.optimize(eta, y, "f1", strategy=mw.Strategy(**FIXED)).recorded == {}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("precision", r"record must be a list of metrics, such as \['precision', 'recall'\].*got 'precision'"),
        (["f1", "f1"], "record: 'f1' is the name of two metrics; pass a dict"),
        ([lambda C: 0.0, lambda C: 1.0], "record: 'function' is the name of two metrics"),
        ({"score": "f1"}, "record: 'score' is a column of the table of candidates"),
        ({1: "f1"}, "record must name metrics by strings, got 1"),
        (["roc_auc"], "evaluates the order of the scores"),
    ],
)
def test_what_cannot_be_recorded_is_refused(record, message):
    eta, y, _ = rows(7)
    with pytest.raises(ValueError, match=message):
        mw.optimize(eta, y, "f1", record=record)


def test_whole_rows_are_needed_where_they_are_counted():
    eta, y, _ = rows(7)
    for options, message in (({"y": None}, "there is no y"), ({"sample_weight": np.full(80, 0.5)}, "has fractions")):
        with pytest.raises(ValueError, match=message):
            mw.optimize(eta, options.pop("y", y), "f1", record=[lambda y, p: np.mean(y == p)], **options)


# -------------------------------------------------------------------------------------------------------- estimators


def test_the_table_of_candidates_has_a_column_for_each():
    X, y = worlds.features(200)
    record = ["precision", functools.partial(sk.fbeta_score, beta=2), "f1"]
    model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="f1", record=record)
    model = clone(model).fit(X, y)
    table = model.cv_results_
    assert list(table) == ["recipe", "score", "gain", "std_error", "precision", "fbeta_score", "f1"]
    np.testing.assert_allclose(table["f1"], table["score"], atol=1e-12)
    assert table["precision"].shape == (len(table["recipe"]),)
    assert ((table["precision"] > 0) & (table["precision"] < 1)).all()
    assert list(model.solution_.recorded) == ["precision", "fbeta_score", "f1"]


def test_where_the_recipe_is_fixed_the_solution_has_them():
    X, y = worlds.features(200)
    model = mw.MetricOptimalClassifierCV(
        LogisticRegression(), metric="f1", record=["recall"], strategy=mw.Strategy(**FIXED)
    ).fit(X, y)
    assert model.cv_results_ is None
    assert 0 < model.solution_.recorded["recall"].value <= 1


def test_a_metric_that_cannot_be_recorded_costs_no_fits():
    class Costly(LogisticRegression):
        def fit(self, *arguments, **options):
            raise AssertionError("fitted")

    X, y = worlds.features(200)
    with pytest.raises(ValueError, match="MetricOptimalClassifierCV: record: 'f1' is the name of two metrics"):
        mw.MetricOptimalClassifierCV(Costly(), metric="f1", record=["f1", "f1"]).fit(X, y)
