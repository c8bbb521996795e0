"""Dates, Arrow arrays and ordered categories: labels come back as they were, in the order that they declare."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score

import metricwise as mw
from data.graded_rows import CODES, LABELS, PROBA, SCALE, solve
from metricwise.data.frames import scales_of

# ---------------------------------------------------------------------------------------------------------------- dates

DAYS = np.array(["2024-03-01", "2025-01-31", "2026-12-24"], dtype="datetime64[D]")
DATES = [
    *(DAYS.astype(f"datetime64[{unit}]") for unit in ("D", "s", "us", "ns")),
    *((DAYS - DAYS[0]).astype(f"timedelta64[{unit}]") for unit in ("D", "ns")),
]


@pytest.mark.parametrize("labels", DATES, ids=lambda labels: str(labels.dtype))
def test_dates_and_durations_come_back(labels):
    reference = solve(PROBA, CODES)
    for y in (labels[CODES], pd.Series(labels[CODES]), pd.Categorical(labels[CODES])):
        solution = solve(PROBA, y)
        predicted = solution.rule.predict(PROBA)
        assert solution.value == reference.value
        assert predicted.dtype.kind == labels.dtype.kind
        np.testing.assert_array_equal(predicted, labels[reference.rule.predict(PROBA)])
        assert mw.metrics.Kappa().score(y, predicted) == pytest.approx(solution.value)
    gaps = labels[CODES]
    gaps[5] = "NaT"
    assert solve(PROBA, gaps).value == pytest.approx(solve(np.delete(PROBA, 5, 0), np.delete(CODES, 5)).value)


def test_dates_are_found_among_given_classes_in_any_unit():
    reference = solve(PROBA, CODES)
    for classes in (DAYS, DAYS.astype("datetime64[ns]"), DAYS.tolist(), [pd.Timestamp(day) for day in DAYS]):
        assert solve(PROBA, DAYS.astype("datetime64[us]")[CODES], classes=classes).value == reference.value
    with pytest.raises(ValueError, match=r"must hold only the classes .*, got 2024-03-01"):
        solve(PROBA, DAYS[CODES].astype("datetime64[ns]"), classes=[0, 1, 2])


def test_dates_as_objects_come_back_as_they_were():
    for labels in ([dt.date(2024, 3, d) for d in (1, 2, 3)], list(pd.to_datetime(DAYS).tz_localize("UTC"))):
        predicted = solve(PROBA, [labels[code] for code in CODES]).rule.predict(PROBA)
        assert {type(label) for label in predicted.tolist()} == {type(labels[0])}


@pytest.mark.parametrize("labels", DATES, ids=lambda labels: str(labels.dtype))
def test_dates_are_refused_by_json_and_equal_only_dates(labels):
    rule = solve(PROBA, labels[CODES]).rule
    with pytest.raises(TypeError, match=r"to_dict: classes must be text, .*64\(.*convert the labels"):
        rule.to_json()
    numbers = mw.WeightedRule(rule.loss, (labels.astype(np.int64),))
    assert rule != numbers
    assert rule == mw.WeightedRule(rule.loss, (labels.copy(),))
    assert "64(" in rule.describe()


def test_dates_go_through_an_estimator():
    X, y = np.log(PROBA + 1e-3), DAYS.astype("datetime64[ns]")[CODES]
    model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="kappa", strategy=mw.Strategy(**LABELS)).fit(X, y)
    assert model.predict(X).dtype == y.dtype
    assert model.classes_.dtype == y.dtype
    assert model.score(X, y) == pytest.approx(
        cohen_kappa_score(CODES, np.searchsorted(model.classes_, model.predict(X)))
    )


# ---------------------------------------------------------------------------------------------------------------- Arrow

ARROW = [
    pa.array(CODES),
    pa.array(CODES.astype(np.int8)),
    pa.chunked_array([CODES[:50], CODES[50:]]),
    pa.array(np.array(["a", "b", "c"])[CODES]),
    pa.array(np.array(["a", "b", "c"])[CODES]).dictionary_encode(),
    pa.chunked_array([np.array(["a", "b", "c"])[part] for part in (CODES[:50], CODES[50:])]).dictionary_encode(),
    pa.array(DAYS[CODES]),
]


@pytest.mark.parametrize("y", ARROW, ids=lambda y: f"{type(y).__name__} of {y.type}")
def test_arrow_labels(y):
    assert solve(PROBA, y).value == solve(PROBA, CODES).value
    gaps = y.to_pylist()
    gaps[7] = None
    gaps = pa.array(gaps, type=y.type) if not pa.types.is_dictionary(y.type) else pa.array(gaps).dictionary_encode()
    expected = solve(np.delete(PROBA, 7, 0), np.delete(CODES, 7))
    assert solve(PROBA, gaps).value == pytest.approx(expected.value)
    assert solve(PROBA, gaps, sample_weight=pa.array(np.ones(200))).value == pytest.approx(expected.value)


def test_arrow_tables_of_labels():
    y = np.column_stack([CODES > 0, CODES > 1]).astype(int)
    table = pa.table({"x": y[:, 0], "y": y[:, 1]})
    proba = pa.table({"y": PROBA[:, 1], "x": PROBA[:, 0]})
    solution = solve(proba, table, "f1", average="macro")
    assert solution.value == solve(PROBA[:, :2], y, "f1", average="macro").value
    assert solution.rule.output_names == ("x", "y")


# ---------------------------------------------------------------------------------------------------------------- order


def ordered(labels=SCALE, codes=CODES, flag=True):
    return pd.Series(pd.Categorical.from_codes(codes, labels, ordered=flag))


ORDERED = pytest.mark.parametrize(
    "y",
    [
        ordered(),
        ordered().values,
        pl.Series(np.array(SCALE)[CODES].tolist(), dtype=pl.Enum(SCALE)),
        pa.DictionaryArray.from_arrays(pa.array(CODES), SCALE, ordered=True),
        pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(CODES), SCALE, ordered=True)]),
    ],
    ids=["Series", "Categorical", "Enum", "dictionary", "chunked"],
)
BY_PLACE = solve(PROBA, CODES, "quadratic_kappa")


@ORDERED
@pytest.mark.parametrize("columns", [SCALE, sorted(SCALE)], ids=["scale", "sorted"])
def test_an_ordered_categorical_keeps_its_order(y, columns):
    proba = pd.DataFrame(PROBA, columns=SCALE)[columns]
    solution = solve(proba, y, "quadratic_kappa")
    assert solution.rule.classes[0].tolist() == SCALE
    assert solution.value == pytest.approx(BY_PLACE.value, abs=1e-12)


@ORDERED
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]], ids=["scale", "sorted"])
def test_columns_without_names_are_asked_for_and_the_scale_is_kept(y, order):
    words = r"y is an ordered categorical, 'low' < 'mid' < 'high', .* Pass classes= with the label of each column"
    for metric in ("quadratic_kappa", "kappa"):
        with pytest.raises(ValueError, match=words):
            solve(PROBA[:, order], y, metric)
    solution = solve(PROBA[:, order], y, "quadratic_kappa", classes=[SCALE[k] for k in order])
    assert solution.value == pytest.approx(BY_PLACE.value, abs=1e-12)
    assert solution.rule.predict(PROBA[:, order]).tolist() == np.array(SCALE)[BY_PLACE.rule.predict(PROBA)].tolist()


def test_an_order_that_is_the_sorted_one_asks_nothing():
    solution = solve(PROBA, ordered(["a", "b", "c"]), "quadratic_kappa")
    assert solution.value == pytest.approx(BY_PLACE.value, abs=1e-12)
    assert solution.rule.classes[0].tolist() == ["a", "b", "c"]


def test_categories_without_an_order_stay_sorted():
    y = ordered(flag=False)
    turned = PROBA[:, [2, 0, 1]]
    solution = solve(turned, y, "kappa")
    assert solution.rule.classes[0].tolist() == sorted(SCALE)
    assert solution.value == pytest.approx(solve(PROBA, CODES, "kappa").value)
    assert scales_of(y, [np.array(SCALE)]) is None


@pytest.mark.parametrize("flag", [True, False])
def test_categories_that_do_not_occur_are_classes_if_there_are_as_many(flag):
    few = CODES < 2
    y = ordered(["c1", "c2", "c3"], CODES[few], flag)
    assert solve(PROBA[few], y).rule.classes[0].tolist() == ["c1", "c2", "c3"]
    ratings = ordered([1, 2, 3], CODES[few], flag)
    assert solve(PROBA[few], ratings).rule.classes[0].tolist() == [1, 2, 3]
    more = ordered(["c1", "c2", "c3", "c4"], CODES, flag)
    assert solve(PROBA, more).rule.classes[0].tolist() == ["c1", "c2", "c3"]
    with pytest.raises(ValueError, match="has 2 distinct labels"):
        solve(PROBA[few], ordered(["c1", "c2", "c3", "c4"], CODES[few], flag))


def test_missing_labels_of_a_categorical():
    codes = np.where(np.arange(200) % 7 == 0, -1, CODES)
    kept = codes >= 0
    y = pd.Series(pd.Categorical.from_codes(codes, SCALE, ordered=True))
    solution = solve(pd.DataFrame(PROBA, columns=SCALE), y, "quadratic_kappa")
    assert solution.value == pytest.approx(solve(PROBA[kept], CODES[kept], "quadratic_kappa").value)


def test_outputs_have_scales_of_their_own():
    y = pd.DataFrame({"size": ordered(), "cut": ordered(["poor", "fair", "good"]), "code": CODES})
    frames = [pd.DataFrame(PROBA, columns=SCALE), pd.DataFrame(PROBA, columns=["poor", "fair", "good"]), PROBA]
    by_place = solve([PROBA] * 3, np.column_stack([CODES] * 3), "quadratic_kappa", average="macro")
    assert solve(frames, y, "quadratic_kappa", average="macro").value == pytest.approx(by_place.value, abs=1e-12)
    columns = [sorted(SCALE), ["fair", "good", "poor"], [0, 1, 2]]
    turned = [PROBA[:, [2, 0, 1]], PROBA[:, [1, 2, 0]], PROBA]
    solution = solve(turned, y, "quadratic_kappa", average="macro", classes=columns)
    assert solution.value == pytest.approx(by_place.value, abs=1e-12)


def test_outputs_of_the_same_labels_in_two_orders_are_refused():
    y = pd.DataFrame({"size": ordered(), "cut": ordered(SCALE[::-1])})
    with pytest.raises(ValueError, match="outputs with the same labels must have the same order"):
        solve([pd.DataFrame(PROBA, columns=SCALE)] * 2, y, "quadratic_kappa", average="macro")


def test_scores_go_by_the_order_of_the_true_labels():
    predicted = np.array(SCALE)[np.roll(CODES, 1)]
    expected = cohen_kappa_score(ordered(), predicted, labels=SCALE, weights="quadratic")
    metric = mw.metrics.get_metric("quadratic_kappa")
    assert metric.score(ordered(), predicted) == pytest.approx(expected)
    assert mw.metrics.Kappa("quadratic", order=SCALE[::-1]).score(ordered(), predicted) == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["quadratic_kappa", "ordinal"])
def test_an_estimator_goes_by_the_order_of_its_labels(metric):
    X = np.log(PROBA + 1e-3)
    by_place = mw.MetricOptimalClassifierCV(LogisticRegression(), metric=metric, strategy=mw.Strategy(**LABELS)).fit(
        X, CODES
    )
    by_word = mw.MetricOptimalClassifierCV(LogisticRegression(), metric=metric, strategy=mw.Strategy(**LABELS)).fit(
        X, ordered()
    )
    assert by_word.classes_.tolist() == sorted(SCALE)  # as scikit-learn has them
    assert by_word.best_score_ == pytest.approx(by_place.best_score_, abs=5e-3)  # the fits differ by rounding
    words = np.array(SCALE)[CODES]  # no order any more: the model remembers
    weights = {"quadratic_kappa": "quadratic", "ordinal": None}[metric]
    if weights:
        expected = cohen_kappa_score(words, by_word.predict(X), labels=SCALE, weights=weights)
        assert by_word.score(X, words) == pytest.approx(expected)
    assert by_word.score(X, words) == by_word.score(X, ordered())
