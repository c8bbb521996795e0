"""Rows that belong together: groups, time, copies that are noticed, and weights that count rows."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw
import worlds
from metricwise.data.weights import read_groups, read_time, stretches
from problems import read_problem
from profiles import examples


def partition(codes):
    """Which rows are together, whatever the codes are."""
    return {frozenset(np.flatnonzero(codes == code).tolist()) for code in np.unique(codes)}


# ------------------------------------------------------------------------------------------------------ reading


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=30))
def test_groups_of_any_kind_are_read_alike(names):
    names = [7, *names]
    expected = partition(np.array(names))
    day = dt.date(2024, 1, 15)
    for given_groups in (
        names,
        np.array(names, dtype=float),
        np.array([str(name) for name in names]),
        np.array([str(name) for name in names], dtype=object),
        pd.Series([f"group {name}" for name in names]),
        pd.Series(names, dtype="category"),
        pd.Series(names, dtype="Int64"),
        [day + dt.timedelta(days=name) for name in names],
        pd.Series([("tuple", name) for name in names]),
    ):
        if len(set(names)) == 1:
            with pytest.raises(ValueError, match="groups must contain at least two groups"):
                read_groups(given_groups, len(names))
            continue
        codes = read_groups(given_groups, len(names))
        assert partition(codes) == expected
        assert codes[0] == 0  # by appearance, so that names change nothing


@given(st.lists(st.integers(0, 60), min_size=3, max_size=80))
def test_runs_ascend_with_time(moments):
    moments = np.array([-1, 61, *moments])
    n = len(moments)
    codes = read_time(mw.InTime(moments), n)
    order = np.argsort(moments, kind="stable")
    assert (np.diff(codes[order]) >= 0).all()
    assert set(codes.tolist()) == set(range(codes.max() + 1))
    for moment in np.unique(moments):
        assert len(set(codes[moments == moment].tolist())) == 1
    for length in (1, 3, n // 2):
        runs = stretches(codes, length)
        assert (np.diff(runs[order]) >= 0).all()
        assert set(runs.tolist()) == set(range(runs.max() + 1))
        assert all(len(set(runs[moments == moment].tolist())) == 1 for moment in np.unique(moments))
    assert np.bincount(stretches(np.arange(1_000), 10)).tolist() == [10] * 100
    start = dt.datetime(2024, 3, 30, 22, tzinfo=dt.UTC)
    hours = [start + dt.timedelta(hours=int(hour)) for hour in moments]
    abroad = dt.timezone(dt.timedelta(hours=-7))
    for same in (
        moments.tolist(),
        moments.astype(float),
        moments.astype(object),
        pd.Series(moments, dtype="Int64"),
        [hour.replace(tzinfo=None) for hour in hours],
        [hour.astimezone(abroad) if at % 2 else hour for at, hour in enumerate(hours)],
        pd.Series(pd.to_datetime(hours)),
        pd.Series(pd.to_datetime(hours)).dt.tz_localize(None),
        np.array([hour.replace(tzinfo=None) for hour in hours], dtype="datetime64[s]"),
        pd.Series(pd.to_timedelta(moments, unit="h")),
    ):
        np.testing.assert_array_equal(read_time(mw.InTime(same), n), codes)


PROBA, Y = [0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]
NAT = np.array(["2024-01-01", "NaT", "2024-01-03", "2024-01-04"], dtype="datetime64[D]")
ZONED = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)

ERRORS = [
    ({"groups": [1, 2, 3]}, r"groups must have shape \(4,\), one per row, got \(3,\)\."),
    ({"groups": 5}, r"groups must have shape \(4,\), one per row, got \(\)\."),
    ({"groups": np.eye(4)}, r"groups must have shape \(4,\), one per row, got \(4, 4\)\."),
    (
        {"groups": [[1], [2, 3], [4], [5]]},
        r"groups must hold one value per row, got \[\[1\], \[2, 3\], \[4\], \[5\]\]\.",
    ),
    ({"groups": [1, 1, 1, 1]}, r"at least two groups, .*, got one; leave groups out if rows are independent\."),
    ({"groups": [1, np.nan, 2, 2]}, r"groups must be known for every row, got a missing value in row 1; drop such"),
    ({"groups": ["a", "b", None, "b"]}, r"groups must be known for every row, got a missing value in row 2;"),
    (
        {"groups": pd.Series(["a", "b", "b", pd.NA])},
        r"groups must be known for every row, got a missing value in row 3;",
    ),
    ({"groups": pd.Series([pd.NA, 1, 2, 3], dtype="Int64")}, r"known for every row, got a missing value in row 0;"),
    ({"groups": np.ma.masked_equal([1, 2, 3, 4], 3)}, r"known for every row, got a missing value in row 2;"),
    ({"groups": NAT}, r"groups must be known for every row, got a missing value in row 1;"),
    ({"groups": np.array([{}, 1, 2, 3], dtype=object)}, r"groups must hold names or numbers, got \{\}\."),
    ({"groups": mw.InTime([1, 2, 3])}, r"time must have shape \(4,\), one per row, got \(3,\)\."),
    (
        {"groups": mw.InTime([2, 2, 2, 2])},
        r"time must hold at least two different times, got one; leave InTime out if rows have no order in time\.",
    ),
    ({"groups": mw.InTime([1, 2, np.nan, 4])}, r"time must be known for every row, got a missing value in row 2;"),
    ({"groups": mw.InTime(NAT)}, r"time must be known for every row, got a missing value in row 1;"),
    (
        {"groups": mw.InTime([ZONED, None, ZONED, ZONED])},
        r"time must be known for every row, got a missing value in row 1;",
    ),
    (
        {"groups": mw.InTime(["a", "b", "c", "d"])},
        r"time must hold numbers or dates, got 'a'; convert text to dates with pandas\.",
    ),
    (
        {"groups": mw.InTime(pd.Series(["2024-01-01"] * 4))},
        r"time must hold numbers or dates, got '2024-01-01'; convert text to",
    ),
    ({"groups": mw.InTime([True, False, True, False])}, r"time must hold numbers or dates, got True;"),
    (
        {"groups": mw.InTime([ZONED, ZONED.replace(tzinfo=None)] * 2)},
        r"dates that all have a time zone, or that all have none, got both\.",
    ),
    (
        {"groups": mw.InTime(np.array([(1,), 2, 3, [4]], dtype=object))},
        r"time must hold numbers or dates, got \(1,\)\.",
    ),
    (
        {"sample_weight": mw.Frequencies([1, 2.5, 1, 1])},
        r"sample_weight must hold whole numbers as Frequencies, .*, got 2\.5; pass other weights without",
    ),
]


@pytest.mark.parametrize(("options", "words"), ERRORS)
def test_what_is_wrong_is_said(options, words):
    with pytest.raises(ValueError, match=rf"^optimize: .*{words}"):
        mw.optimize(PROBA, Y, "f1", **options)


def test_names_of_groups_change_nothing():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 20, 200)
    proba = rng.beta(1, 3, 200)
    y = rng.random(200) < proba
    named = rng.permutation(20)[groups]
    one, other, text = (mw.optimize(proba, y, "f1", groups=g) for g in (groups, named, [f"p{g}" for g in named]))
    assert one.rule == other.rule == text.rule
    assert one.gain == other.gain == text.gain


# ------------------------------------------------------------------------------------------- copies that are noticed


def rows_of(proba, y, **options):
    average = None if np.ndim(y) == 1 else "macro"
    return read_problem(proba, y, "kappa", average=average, **options).source.rows


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(60,), (60, 3)])
def test_rows_that_are_there_ten_times_are_found(dtype, shape):
    rng = np.random.default_rng(0)
    proba = rng.beta(1, 3, shape)
    y = worlds.draw_flags(proba, rng)
    order = rng.permutation(np.repeat(np.arange(60), 10))
    found = rows_of(proba[order].astype(dtype), y[order]).copies()
    assert partition(found) == partition(order)


def test_copies_of_several_classes_and_of_several_outputs_are_found():
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet([2, 1, 1], 50), rng.dirichlet([1, 1], 50)
    order = np.repeat(np.arange(50), 3)
    y = rng.integers(0, 2, (50, 2))
    y[0] = 2, 1
    assert partition(rows_of(first[order], y[order, 0], classes=[0, 1, 2]).copies()) == partition(order)
    both = rows_of([first[order], second[order]], y[order], classes=[[0, 1, 2], [0, 1]])
    assert partition(both.copies()) == partition(order)
    missing = y.astype(float)
    missing[::7, 1] = np.nan
    both = rows_of([first[order], second[order]], missing[order], classes=[[0, 1, 2], [0, 1]])
    assert partition(both.copies()) == partition(order)


def test_an_oversampled_minority_is_found():
    rng = np.random.default_rng(1)
    proba = rng.beta(1, 3, 400)
    y = worlds.draw_flags(proba, rng)
    minority = np.flatnonzero(y == 1)
    order = np.concatenate([np.arange(400), rng.choice(minority, 300)])
    assert partition(rows_of(proba[order], y[order]).copies()) == partition(order)


def test_a_tree_has_no_copies():
    """Rows of a leaf have equal probabilities, and labels of both kinds."""
    X, y = worlds.features(400, above=0.5)
    tree = DecisionTreeClassifier(max_leaf_nodes=8, random_state=0).fit(X[:200], y[:200])
    proba = tree.predict_proba(X[200:])[:, 1]
    assert len(np.unique(proba)) <= 8
    assert rows_of(proba, y[200:]).copies() is None


def test_rounded_probabilities_are_no_copies():
    rng = np.random.default_rng(0)
    proba = rng.beta(1, 3, 500).round(2)
    assert rows_of(proba, worlds.draw_flags(proba, rng)).copies() is None


@given(st.integers(0, 10_000))
@examples(20)
def test_rows_without_copies_have_none(seed):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet([1, 1, 1], 100)
    assert rows_of(proba, np.arange(100) % 3).copies() is None


def test_what_cannot_be_told_is_left_alone():
    """Equal labels are no news where the probabilities had them for certain, or where there are few such rows."""
    rng = np.random.default_rng(0)
    certain = np.where(rng.random(300) < 0.3, 0.9999, 0.0001)
    assert rows_of(certain, (certain > 0.5).astype(int)).copies() is None
    proba = np.append(rng.random(200), [0.5, 0.5])
    assert rows_of(proba, np.append(worlds.draw_flags(proba[:200], rng), [1, 1])).copies() is None


def test_one_copy_with_another_label_is_no_copy():
    rng = np.random.default_rng(0)
    proba = rng.beta(1, 3, 60)
    y = worlds.draw_flags(proba, rng)
    proba, y = np.tile(proba, 10), np.tile(y, 10)
    y[7] = 1 - y[7]
    assert rows_of(proba, y).copies() is None


def test_copies_are_as_good_as_groups():
    rng = np.random.default_rng(0)
    proba = rng.beta(1, 3, 80)
    y = worlds.draw_flags(proba, rng)
    order = rng.permutation(np.repeat(np.arange(80), 5))
    noticed = mw.optimize(proba[order], y[order], "f1")
    told = mw.optimize(proba[order], y[order], "f1", groups=order)
    apart = mw.optimize(proba[order], y[order], "f1", groups=np.arange(400))
    width, as_told, as_apart = (
        one.value_on_new_rows.high - one.value_on_new_rows.low for one in (noticed, told, apart)
    )
    assert width == pytest.approx(as_told, rel=0.1)  # dealt in another order
    assert width > 1.8 * as_apart  # about the root of five


# ------------------------------------------------------------------------------------------------ weights of rows


def width(estimate):
    return estimate.high - estimate.low


@pytest.mark.parametrize("metric", ["f1", "mcc"])
def test_frequencies_are_rows(metric):
    """Rows with a count against each of them as often as it counts, as independent rows."""
    rng = np.random.default_rng(3)
    level = np.repeat(np.linspace(0.02, 0.9, 40), 2)
    y = np.tile([0, 1], 40)
    mass = np.where(y == 1, level, 1 - level) * (1 - level) ** 2
    n_rows = rng.multinomial(1_500, mass / mass.sum())
    counted = mw.optimize(level, y, metric, sample_weight=mw.Frequencies(n_rows))
    order = np.repeat(np.arange(80), n_rows)
    repeated = mw.optimize(level[order], y[order], metric, groups=np.arange(len(order)))
    assert counted.value_on_new_rows.estimate == pytest.approx(repeated.value_on_new_rows.estimate, abs=0.03)
    assert width(counted.value_on_new_rows) == pytest.approx(width(repeated.value_on_new_rows), rel=0.2)
    assert width(counted.gain) == pytest.approx(width(repeated.gain), rel=0.2)
    by_importance = mw.optimize(level, y, metric, sample_weight=n_rows)
    assert width(by_importance.value_on_new_rows) > 1.5 * width(counted.value_on_new_rows)


@pytest.mark.parametrize("confusion", ["labels", "expected"])
def test_rows_that_count_none_change_nothing(confusion):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([2, 1, 1], 200)
    y = rng.integers(0, 3, 200)
    weight = rng.integers(0, 3, 200)
    assert (weight == 0).sum() > 20
    fixed = {"strategy": mw.Strategy(confusion=confusion, recalibrate=True)}
    one = mw.optimize(proba, y, "macro_f1", sample_weight=mw.Frequencies(weight), **fixed)
    kept = weight > 0
    other = mw.optimize(proba[kept], y[kept], "macro_f1", sample_weight=mw.Frequencies(weight[kept]), **fixed)
    assert one.value == pytest.approx(other.value)
    np.testing.assert_array_equal(one.rule.predict(proba), other.rule.predict(proba))
    np.testing.assert_allclose(one.rule.link.bias, other.rule.link.bias, atol=1e-8)
    promised = mw.optimize(proba, y, "macro_f1", sample_weight=mw.Frequencies(weight)).value_on_new_rows
    assert promised.low < promised.estimate < promised.high


@pytest.mark.parametrize("factor", [2.0**-20, 8.0, 0.1, 1e6])
def test_importance_has_no_unit(factor):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([2, 1, 1], 200)
    y = rng.integers(0, 3, 200)
    weight = rng.integers(1, 9, 200)
    one, other = (mw.optimize(proba, y, "quadratic_kappa", sample_weight=w) for w in (weight, factor * weight))
    assert one.rule.metadata.recipe == other.rule.metadata.recipe
    np.testing.assert_array_equal(one.rule.predict(proba), other.rule.predict(proba))
    for name in ("estimate", "low", "high"):
        assert getattr(one.gain, name) == pytest.approx(getattr(other.gain, name), abs=1e-9)
        assert getattr(one.value_on_new_rows, name) == pytest.approx(getattr(other.value_on_new_rows, name), abs=1e-9)
