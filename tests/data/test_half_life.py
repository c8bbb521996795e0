"""Half-lives: rows weigh half as much for every half-life of age, as if such weights were passed."""

import datetime as dt
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

import metricwise as mw
import worlds
from metricwise.core.notes import NoteKind
from metricwise.data.half_life import HalfLife
from problems import read_problem

N = 600
DAYS = np.datetime64("2024-01-01") + np.arange(N)
AGES = np.arange(N)[::-1]


@pytest.fixture(scope="module")
def binary():
    return worlds.binary(N, seed=3)


def weights(half_life):
    return 0.5 ** (AGES / half_life)


def kish(weight):
    """The effective number of rows."""
    return weight.sum() ** 2 / (weight**2).sum()


# ----------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("value", "days"),
    [
        ("30d", 30),
        ("30D", 30),
        (" 1.5 d ", 1.5),
        (".5d", 0.5),
        ("12h", 0.5),
        ("2w", 14),
        ("90min", 1 / 16),
        ("86400s", 1),
        (dt.timedelta(days=3, hours=12), 3.5),
        (np.timedelta64(36, "h"), 1.5),
        (np.timedelta64(2, "W"), 14),
        (pd.Timedelta(hours=30), 1.25),
        (pd.Timedelta(1, "ns"), 1e-9 / 86_400),
    ],
)
def test_lengths_of_time_are_read(value, days):
    half_life = HalfLife.of(value)
    assert half_life.is_duration
    assert half_life.length == pytest.approx(86_400 * days, rel=1e-12)


@pytest.mark.parametrize("unit", ["D", "h", "s", "ms", "us", "ns"])
def test_whole_days_weigh_alike_in_every_unit(unit):
    days = np.arange(400)
    times = (np.datetime64("2024-01-01") + days).astype(f"datetime64[{unit}]")
    half_life = HalfLife.of(np.timedelta64(90, "D").astype(f"timedelta64[{unit}]"))
    np.testing.assert_array_equal(half_life.decay(times), 0.5 ** (days[::-1] / 90))


@pytest.mark.parametrize("value", [7, 7.0, np.int8(7), np.float32(7), Fraction(7)])
def test_numbers_are_read(value):
    assert HalfLife.of(value) == HalfLife(7.0, is_duration=False)


@pytest.mark.parametrize(
    ("value", "words"),
    [("30d", "30 days"), ("1d", "1 day"), ("90min", "1.5 hours"), ("2w", "14 days"), ("0.5s", "0.5 seconds")],
)
def test_half_lives_are_named(value, words):
    assert str(HalfLife.of(value)) == words
    assert (str(HalfLife.of(1)), str(HalfLife.of(2.5))) == ("1 unit of time", "2.5 units of time")


ACCEPTED = r"a timedelta, or text such as '30d', '12h' or '2w' \(units: s, min, h, d, w\)"


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf, 10**400, "0d", dt.timedelta(0), -np.timedelta64(1, "D")])
def test_half_lives_are_positive_and_finite(value):
    with pytest.raises(ValueError, match=r"^InTime: half_life must be positive and finite, got "):
        mw.InTime([1, 2], half_life=value)


def test_a_duration_that_is_missing_is_refused():
    with pytest.raises(ValueError, match=r"half_life must be positive and finite, got NaT"):
        mw.InTime([1, 2], half_life=np.timedelta64("NaT", "D"))


@pytest.mark.parametrize("value", ["soon", "30", "3m", "1 month", "-3d", "1e3d", "d", "", "2d 3h"])
def test_other_text_is_refused(value):
    with pytest.raises(
        ValueError, match=f"^InTime: half_life must be a number, {ACCEPTED}, got {re.escape(repr(value))}"
    ):
        mw.InTime([1, 2], half_life=value)


@pytest.mark.parametrize("value", [True, [30], 3j, dt.date(2024, 1, 1), pd.NaT])
def test_other_types_are_refused(value):
    with pytest.raises(
        TypeError, match=f"^InTime: half_life must be a number for numeric times, and for dates {ACCEPTED}"
    ):
        mw.InTime([1, 2], half_life=value)


@pytest.mark.parametrize(("unit", "name"), [("M", "months"), ("Y", "years"), ("generic", "durations without a unit")])
def test_units_without_a_length_are_refused(unit, name):
    with pytest.raises(ValueError, match=f"half_life must have a unit of fixed length, of weeks at most, got {name};"):
        mw.InTime([1, 2], half_life=np.timedelta64(3) if unit == "generic" else np.timedelta64(3, unit))


# ----------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize(
    "moments",
    [
        AGES[::-1].astype(np.int16) - 300,
        AGES[::-1].astype(np.uint16),
        AGES[::-1].astype(np.float32),
        AGES[::-1] + 1_700_000_000_000_000_000,  # beyond the integers that are exact as floats
        AGES[::-1].astype(np.uint64) + np.uint64(1 << 63),
    ],
)
def test_numbers_of_any_type_have_the_same_weights(moments):
    np.testing.assert_array_equal(HalfLife.of(90).decay(moments), weights(90))


def test_differences_beyond_the_range_of_integers_are_exact():
    ends = np.array([np.iinfo(np.int64).min, 0, np.iinfo(np.int64).max])
    np.testing.assert_allclose(HalfLife.of(2.0**63).decay(ends), 0.5 ** np.array([2, 1, 0]))
    np.testing.assert_array_equal(
        HalfLife.of(90).decay(np.array([-127, 127], dtype=np.int8)), 0.5 ** (np.array([254, 0]) / 90)
    )


def test_ages_beyond_the_range_of_numbers_weigh_nothing():
    np.testing.assert_array_equal(HalfLife.of(1).decay(np.array([-1e308, 1e308])), [0, 1])
    np.testing.assert_array_equal(HalfLife.of(1e-300).decay(np.array([0.0, 1e300])), [0, 1])


@pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us", "ns"])
@pytest.mark.parametrize(
    "half_life", ["90d", "2160h", dt.timedelta(days=90), np.timedelta64(90, "D"), pd.Timedelta(days=90)]
)
def test_dates_of_any_unit_have_the_weights_of_numbers(unit, half_life):
    for moments in (DAYS.astype(f"datetime64[{unit}]"), (DAYS - DAYS[0]).astype(f"timedelta64[{unit}]")):
        np.testing.assert_allclose(HalfLife.of(half_life).decay(moments), weights(90), rtol=1e-12)


def test_months_are_as_long_as_they_are():
    decay = HalfLife.of("1d").decay(np.array(["2024-02", "2024-03"], dtype="datetime64[M]"))
    np.testing.assert_array_equal(decay, [0.5**29, 1])
    with pytest.raises(ValueError, match="time must have a unit of fixed length, of weeks at most, got months"):
        HalfLife.of("1d").decay(np.array([1, 2], dtype="timedelta64[M]"))


def test_centuries_do_not_overflow():
    moments = np.array(["1500-01-01", "2000-01-01"], dtype="datetime64[D]")
    days = (moments[1] - moments[0]).astype(int)
    np.testing.assert_allclose(HalfLife.of(pd.Timedelta(days=36_500)).decay(moments), [0.5 ** (days / 36_500), 1])


def test_rows_of_weight_0_do_not_make_others_old(binary):
    p, y = binary
    weight = np.where(np.arange(N) < N // 2, 3.0, 0.0)
    time = np.where(np.arange(N) < N // 2, np.arange(N), 1e7)  # ages of others would be 20,000 half-lives
    found = read_problem(p, y, "f1", sample_weight=weight, groups=mw.InTime(time, half_life=500)).source.rows.weight
    expected = np.where(weight > 0, 3 * 0.5 ** ((N // 2 - 1 - np.arange(N)) / 500), 0.0)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("time", "half_life", "words"),
    [
        (np.arange(N), "30d", "half_life must be a number if times are numbers, got 30 days; pass it in the unit"),
        (np.arange(N), dt.timedelta(1), "half_life must be a number if times are numbers, got 1 day;"),
        (DAYS, 30, f"half_life must be a length of time if times are dates: {ACCEPTED}, got 30"),
        (DAYS - DAYS[0], 30.5, f"half_life must be a length of time if times are dates: {ACCEPTED}, got 30.5"),
        (np.append(np.arange(N - 1.0), np.inf), 30, "time must be finite if rows have a half-life, got infinity;"),
        (np.append(np.arange(N - 1.0), np.nan), 30, "time must be known for every row, got a missing value in row 599"),
        (["noon"] * N, 30, "time must hold numbers or dates, got 'noon'"),
        (np.arange(3), 30, r"time must have shape \(600,\), one per row, got \(3,\)"),
    ],
)
def test_times_and_half_life_are_of_one_kind(binary, time, half_life, words):
    p, y = binary
    with pytest.raises(ValueError, match=f"^optimize: {words}"):
        mw.optimize(p, y, "f1", groups=mw.InTime(time, half_life=half_life))
    with pytest.raises(ValueError, match=f"^evaluate: {words}"):
        mw.evaluate(0.4, p, y, "f1", groups=mw.InTime(time, half_life=half_life))


def test_frequencies_are_refused(binary):
    p, y = binary
    options = {"sample_weight": mw.Frequencies(np.full(N, 2)), "groups": mw.InTime(np.arange(N), half_life=90)}
    words = "half_life gives fractions of rows, but Frequencies count whole ones; pass the weights without Frequencies"
    with pytest.raises(ValueError, match=f"^optimize: {words}"):
        mw.optimize(p, y, "f1", **options)
    with pytest.raises(ValueError, match=f"^evaluate: {words}"):
        mw.evaluate(0.4, p, y, "f1", **options)


# ------------------------------------------------------------------------------------------ the same as by hand


def alike(first, second):
    """Whether two solutions are of the same rule and values, whatever the notes."""
    assert first.rule == second.rule
    assert (first.value, first.baseline, first.gain) == (second.value, second.baseline, second.gain)
    assert first.value_on_new_rows == second.value_on_new_rows


@pytest.mark.parametrize(
    ("kind", "metric", "options"),
    [
        ("binary", "f1", {}),
        ("binary", "recall", {"subject_to": "precision >= 0.4"}),
        ("binary", "f1", {"strategy": mw.Strategy("expected", recalibrate=True)}),
        ("multiclass", "macro_f1", {}),
        ("multilabel", "f1", {"average": "macro"}),
    ],
)
def test_rules_are_those_of_the_same_weights_by_hand(kind, metric, options):
    proba, y = worlds.of_kind(kind, N, seed=1)
    own = 1.0 + np.arange(N) % 3
    for weight in (None, own):
        both = weights(90) if weight is None else own * weights(90)
        by_hand = mw.optimize(proba, y, metric, sample_weight=both, groups=mw.InTime(np.arange(N)), **options)
        for time, half_life in ((np.arange(N), 90), (DAYS, "90d"), (24 * np.arange(N), 2160.0)):
            found = mw.optimize(
                proba, y, metric, sample_weight=weight, groups=mw.InTime(time, half_life=half_life), **options
            )
            alike(found, by_hand)


def test_rows_in_any_order_have_the_same_rule(binary):
    p, y = binary
    order = np.random.default_rng(0).permutation(N)
    first = mw.optimize(p, y, "f1", groups=mw.InTime(DAYS, half_life="90d"))
    second = mw.optimize(p[order], y[order], "f1", groups=mw.InTime(DAYS[order], half_life="90d"))
    assert first.value == pytest.approx(second.value, abs=1e-12)
    assert first.notes[1] == second.notes[1]


def test_evaluations_are_those_of_the_same_weights_by_hand(binary):
    p, y = binary
    found = mw.evaluate(0.3, p, y, ["f1", "mcc"], groups=mw.InTime(DAYS, half_life="90d"))
    by_hand = mw.evaluate(0.3, p, y, ["f1", "mcc"], sample_weight=weights(90), groups=mw.InTime(DAYS))
    assert found.to_dict() == by_hand.to_dict()
    assert found.notes[-1:] == by_hand.notes
    assert found.to_dict() != mw.evaluate(0.3, p, y, ["f1", "mcc"], groups=mw.InTime(DAYS)).to_dict()


def test_costs_per_row_are_those_of_the_same_weights_by_hand(binary):
    p, y = binary
    amount = np.random.default_rng(0).lognormal(size=N)
    cost = np.stack([np.stack([0 * amount, 0 * amount + 0.3], 1), np.stack([amount, 0 * amount], 1)], 1)
    found = mw.optimize(p, y, "cost", cost=cost, groups=mw.InTime(DAYS, half_life="90d"))
    by_hand = mw.optimize(p, y, "cost", cost=cost, sample_weight=weights(90), groups=mw.InTime(DAYS))
    assert (found.value, found.gain) == (by_hand.value, by_hand.gain)
    assert f"the effective number of rows is {kish(weights(90)):.0f} of 600" in found.status


def test_rows_without_labels_are_weighted_too(binary):
    p, _ = binary
    found = mw.optimize(p, None, "f1", groups=mw.InTime(DAYS, half_life="90d"), classes=[0, 1])
    by_hand = mw.optimize(p, None, "f1", sample_weight=weights(90), classes=[0, 1])
    assert found.rule == by_hand.rule
    assert found.value == by_hand.value
    assert f"the effective number of rows is {kish(weights(90)):.0f} of 600" in found.status


def test_a_subset_has_the_weights_of_its_rows():
    time = mw.InTime(DAYS, half_life="90d")
    some = np.arange(0, 400, 3)
    assert time[some].half_life == "90d"
    whole, part = (HalfLife.of("90d").decay(t.time) for t in (time, time[some]))
    np.testing.assert_allclose(part / part.sum(), whole[some] / whole[some].sum())


# ------------------------------------------------------------------------------------------------------- notes


@pytest.mark.parametrize("half_life", [60, 200])
def test_the_effective_number_of_rows_is_reported(binary, half_life):
    p, y = binary
    own = 1.0 + np.arange(N) % 3
    options = {"sample_weight": own, "groups": mw.InTime(DAYS, half_life=f"{half_life}d")}
    solution, evaluation = mw.optimize(p, y, "f1", **options), mw.evaluate(0.4, p, y, "f1", **options)
    n_effective = kish(own * weights(half_life))
    said = f"Weights of rows halve every {half_life} days: the effective number of rows is {n_effective:.0f} of 600."
    warning = "The half-life leaves fewer than 300 effective rows, so the result is noisy. Use a longer half_life."
    assert next(note.text for note in solution.notes if note.kind is NoteKind.DATA) == said
    assert evaluation.notes[0] == said
    warnings = [note.text for note in solution.notes if note.kind is NoteKind.WARNING]
    assert warnings == ([warning] if half_life == 60 else [])
    assert (warning in evaluation.notes) == (half_life == 60) == (n_effective < 300)
    assert "halve" not in mw.optimize(p, y, "f1", groups=mw.InTime(DAYS)).status


def test_rows_whose_labels_are_not_there_yet_are_not_effective(binary):
    p, y = binary
    late = np.where(np.arange(N) < 500, y, np.nan)
    solution = mw.optimize(p, late, "f1", groups=mw.InTime(DAYS, half_life="200d"))
    known = mw.optimize(p[:500], y[:500], "f1", groups=mw.InTime(DAYS[:500], half_life="200d"))
    assert f"the effective number of rows is {kish(weights(200)[100:]):.0f} of 600" in solution.status
    assert solution.value == pytest.approx(known.value, abs=1e-12)
    assert re.search(r"over at most (\d+) rows", solution.status)[1] == re.search(r"most (\d+) rows", known.status)[1]


def test_notes_of_a_group_are_about_its_rows(binary):
    p, y = binary
    old = np.arange(N) < 300
    evaluation = mw.evaluate(
        0.4, p, y, "f1", groups=mw.InTime(DAYS, half_life="90d"), sensitive_features=np.where(old, "old", "new")
    )
    n_effective = {name: kish(weights(90)[old == (name == "old")]) for name in ("old", "new")}
    for name, group in evaluation.by_group.items():
        assert group.notes[0].endswith(f"the effective number of rows is {n_effective[name]:.0f} of 300.")


def test_a_keyword_of_that_name_is_refused_by_its_place(binary):
    with pytest.raises(
        TypeError, match=r"half_life= is not a parameter; pass groups=mw.InTime\(time, half_life=\.\.\.\)"
    ):
        mw.optimize(*binary, "f1", half_life=30)


# ------------------------------------------------------------------------------------------------------- streams


def stream(n, drift, seed):
    """Rows of a model whose calibration breaks after 70 % of the time by `drift` in log-odds, and the next batch."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(-1.5, 1.5, n + 20_000)
    y = (rng.random(len(logit)) < worlds.sigmoid(logit + drift * (np.arange(len(logit)) > 0.7 * n))).astype(int)
    p = worlds.sigmoid(logit)
    return (p[:n], y[:n]), (p[n:], y[n:])


@pytest.mark.parametrize(("drift", "least"), [(0.0, -0.005), (2.0, 0.03)])
def test_a_half_life_follows_drift_and_costs_little_without(drift, least):
    gains = []
    for seed in range(6):
        (p, y), (p_new, y_new) = stream(4_000, drift, seed)
        decayed, plain = (
            mw.optimize(p, y, "f1", groups=mw.InTime(np.arange(4_000), half_life=half_life)).rule
            for half_life in (500, None)
        )
        gains.append(f1_score(y_new, decayed.predict(p_new)) - f1_score(y_new, plain.predict(p_new)))
    assert np.mean(gains) >= least


def test_many_old_rows_change_nothing():
    """With 80,000 rows, a sample is drawn; it holds nearly all of the weight, and the rule is made of it."""
    (p, y), (p_new, y_new) = stream(80_000, 1.0, seed=0)
    values = {}
    for n in (10_000, 80_000):
        time = mw.InTime(np.arange(n), half_life=700)
        solution = mw.optimize(p[-n:], y[-n:], "f1", groups=time)
        values[n] = f1_score(y_new, solution.rule.predict(p_new))
        assert solution.rule.metadata.recipe == "recalibrated + expected and labels"
        assert f"the effective number of rows is 2020 of {n}" in solution.status
    assert values[80_000] == pytest.approx(values[10_000], abs=0.005)


def test_labels_may_be_hundreds_of_half_lives_older_than_the_last_row():
    rng = np.random.default_rng(0)
    p = rng.random(2001)
    y = (rng.random(2001) < p).astype(float)
    y[-1] = np.nan
    time = np.append(np.arange(2000), 2900.0)
    solution = mw.optimize(p, y, "f1", groups=mw.InTime(time, half_life=1.6))
    assert "effective number of rows" in solution.status
