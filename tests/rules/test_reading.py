"""Columns without names: whose probability each is, what is asked, and what is doubted."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, recall_score

import metricwise as mw
import worlds

SCALE = ["low", "mid", "high"]
FIXED = {"confusion": "labels", "recalibrate": False}


def kappa(y, predicted):
    return cohen_kappa_score(y, predicted, labels=SCALE, weights="quadratic")


PROBA, Y = worlds.graded(names=SCALE)
NEW, Y_NEW = worlds.graded(names=SCALE, seed=1)
RNG = np.random.default_rng(3)
P = RNG.beta(1, 4, 1000)
FRAUD = RNG.random(1000) < P
WORDS = np.where(FRAUD, "fraud", "ok")


# ------------------------------------------------------------------------------------------------- arrays after frames


FRAMES = {
    "pandas": lambda proba: pd.DataFrame(proba, columns=SCALE),
    "polars": lambda proba: pl.DataFrame(dict(zip(SCALE, proba.T, strict=True))),
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("given", [None, sorted(SCALE), SCALE], ids=["names", "sorted", "scale"])
def test_an_array_is_taken_in_the_order_of_the_frame_that_a_rule_was_fitted_to(frame, given):
    solution = mw.optimize(FRAMES[frame](PROBA), Y, "quadratic_kappa", order=SCALE, classes=given)
    rule = mw.load_rule(solution.rule.to_json())
    assert rule.classes[0].tolist() == (given or sorted(SCALE))
    by_name = rule.predict(FRAMES[frame](NEW))
    assert kappa(Y_NEW, by_name) > 0.7
    assert rule.predict(FRAMES[frame](NEW)[sorted(SCALE)]).tolist() == by_name.tolist()  # names win
    words = re.escape("columns are assumed to be in the same order, ['low', 'mid', 'high']; pass a data frame")
    for bare in (NEW, NEW.tolist(), pd.DataFrame(NEW)):
        with pytest.warns(UserWarning, match=words) as said:
            by_place = rule.predict(bare)
        assert len(said) == 1
        assert by_place.tolist() == by_name.tolist()
    with pytest.warns(UserWarning, match=words) as said:
        found = mw.evaluate(rule, NEW, Y_NEW, "quadratic_kappa")
    assert len(said) == 1
    assert found["quadratic_kappa"].value.estimate == pytest.approx(kappa(Y_NEW, by_name))
    with pytest.warns(UserWarning, match=words) as said:
        mw.report.summarize(rule, NEW, Y_NEW)
    assert len(said) == 1


def test_two_classes_in_the_order_of_a_frame():
    y = np.where(FRAUD, 1, 0)
    frame = pd.DataFrame({1: P, 0: 1 - P})
    rule = mw.optimize(frame, y, "f1", strategy=mw.Strategy(**FIXED)).rule
    assert (
        rule.threshold == mw.optimize(P, y, "f1", strategy=mw.Strategy(**FIXED)).rule.threshold
    )  # of class 1, wherever that stands
    with pytest.warns(UserWarning, match=re.escape("in the same order, [1, 0]")):
        assert rule.predict(frame.to_numpy()).tolist() == rule.predict(frame).tolist()
    assert rule.predict(P).tolist() == rule.predict(frame).tolist()


def test_the_sorted_order_of_a_frame_is_taken_without_a_word():
    columns = sorted(SCALE)
    frame = pd.DataFrame(PROBA, columns=SCALE)[columns]
    turned = [SCALE.index(label) for label in columns]
    for options in ({"classes": SCALE}, {}):
        rule = mw.optimize(frame, pd.Categorical(Y, SCALE, ordered=True), "quadratic_kappa", **options).rule
        assert rule.classes[0].tolist() == SCALE
        assert rule.predict(NEW[:, turned]).tolist() == rule.predict(pd.DataFrame(NEW, columns=SCALE)).tolist()


def test_sorted_names_and_arrays_are_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        turned = [SCALE.index(label) for label in sorted(SCALE)]
        named = mw.optimize(pd.DataFrame(PROBA, columns=SCALE)[sorted(SCALE)], Y, "accuracy").rule
        by_name = named.predict(pd.DataFrame(NEW, columns=SCALE))
        assert named.predict(NEW[:, turned]).tolist() == by_name.tolist()
        declared = mw.optimize(PROBA, Y, "accuracy", classes=SCALE).rule  # the columns of arrays, as they stand
        assert declared.predict(NEW).tolist() == declared.predict(pd.DataFrame(NEW, columns=SCALE)).tolist()
        declared.predict(pd.DataFrame(NEW, columns=SCALE))


def test_tables_keep_the_order_of_their_columns(tmp_path):
    frame = pd.DataFrame(PROBA, columns=SCALE).assign(truth=Y)
    frame.to_parquet(tmp_path / "rows.parquet")
    rule = mw.optimize(tmp_path / "rows.parquet", "truth", "quadratic_kappa", order=SCALE).rule
    with pytest.warns(UserWarning, match=re.escape(f"columns are assumed to be in the same order, {SCALE}")):
        assert kappa(Y_NEW, rule.predict(NEW)) > 0.7


def test_outputs_have_a_column_order_each():
    other = np.where(Y == "low", "a", "b")
    low = NEW[:, 0]
    frames = [
        pd.DataFrame(PROBA, columns=SCALE),
        pd.DataFrame(PROBA, columns=SCALE)[["high", "mid", "low"]],
        pd.DataFrame({"b": 1 - PROBA[:, 0], "a": PROBA[:, 0]}),
    ]
    y = pd.DataFrame({"x": Y, "y": Y, "z": other})
    rule = mw.optimize(frames, y, "accuracy", average="macro", strategy=mw.Strategy(**FIXED)).rule
    bare = [NEW, NEW[:, ::-1], np.column_stack([1 - low, low])]
    named = [pd.DataFrame(part, columns=list(frame.columns)) for part, frame in zip(bare, frames, strict=True)]
    with pytest.warns(UserWarning, match=re.escape("['low', 'mid', 'high'], ['high', 'mid', 'low'], ['b', 'a']")):
        decided = rule.predict(bare)
    assert decided.tolist() == rule.predict(named).tolist()
    with pytest.warns(UserWarning, match="in the same order"):
        assert rule.predict([named[0], *bare[1:]]).tolist() == decided.tolist()
    pair = mw.optimize(frames[:2], y[["x", "y"]], "accuracy", strategy=mw.Strategy(**FIXED)).rule
    with pytest.warns(UserWarning, match="in the same order"):
        assert pair.predict(np.stack(bare[:2], axis=1)).tolist() == pair.predict(named[:2]).tolist()


def test_an_estimator_aligns_columns_itself():
    from sklearn.linear_model import LogisticRegression

    X = np.log(PROBA)
    rule = mw.optimize(pd.DataFrame(PROBA, columns=SCALE), Y, "quadratic_kappa", order=SCALE).rule
    model = mw.FixedRuleClassifier(LogisticRegression(), rule).fit(X, Y)
    assert kappa(Y, model.predict(X)) > 0.7


# ----------------------------------------------------------------------------------------------------- a single column


def test_a_single_column_of_words_is_asked_for():
    words = r"optimize: the probabilities are a single column, .* pass pos_label='\w+' or pos_label='\w+', or both"
    for options in ({}, {"classes": ["ok", "fraud"]}, {"classes": ["fraud", "ok"]}):
        for proba in (P, P[:, None], pd.DataFrame({"score": P})):
            with pytest.raises(ValueError, match=words):
                mw.optimize(proba, WORDS, "balanced_accuracy", **options)
    with pytest.raises(ValueError, match=r"the single column of probabilities is ambiguous: 'a' or 'b'"):
        mw.optimize(P, None, "accuracy", classes=["a", "b"])
    with pytest.raises(ValueError, match="trade_off: the probabilities are a single column"):
        mw.trade_off(P, WORDS, "accuracy", "balanced_accuracy")
    with pytest.raises(ValueError, match=r"pos_label must be 'fraud' or 'ok', .* got 'frud'"):
        mw.optimize(P, WORDS, "balanced_accuracy", pos_label="frud")
    with pytest.raises(ValueError, match=r"pos_label must be one of the classes \[0, 1\], got 'fraud'"):
        mw.optimize(P, FRAUD.astype(int), "balanced_accuracy", pos_label="fraud")


@pytest.mark.parametrize("options", [{}, {"classes": ["ok", "fraud"]}, {"classes": ["fraud", "ok"]}], ids=str)
def test_a_single_column_is_that_of_pos_label(options):
    numbers = mw.optimize(P, FRAUD.astype(int), "balanced_accuracy")
    solution = mw.optimize(P, WORDS, "balanced_accuracy", pos_label="fraud", **options)
    assert solution.value == pytest.approx(numbers.value)
    rule = mw.load_rule(solution.rule.to_json())
    assert rule.classes[0].tolist() == ["ok", "fraud"]
    assert rule.threshold == numbers.rule.threshold
    assert balanced_accuracy_score(WORDS, rule.predict(P)) == pytest.approx(solution.value)
    judged = mw.evaluate(rule, P, WORDS, ["balanced_accuracy", "recall"], pos_label="fraud")
    assert judged["balanced_accuracy"].value.estimate == pytest.approx(solution.value)
    specificity = mw.evaluate(rule, P, WORDS, "recall", pos_label="ok")["recall"].value.estimate  # the same column
    assert specificity == pytest.approx(recall_score(WORDS, rule.predict(P), pos_label="ok"))


@pytest.mark.parametrize("pair", [(0, 1), (-1, 1), (False, True)], ids=str)
def test_class_1_is_known(pair):
    y = np.array(pair)[FRAUD.astype(int)]
    solution = mw.optimize(P, y, "balanced_accuracy")
    assert balanced_accuracy_score(y, solution.rule.predict(P)) == pytest.approx(solution.value)
    turned = mw.optimize(1 - P, y, "balanced_accuracy", pos_label=pair[0], strategy=mw.Strategy(**FIXED))
    assert turned.value == pytest.approx(mw.optimize(P, y, "balanced_accuracy", strategy=mw.Strategy(**FIXED)).value)


def test_the_first_lines_of_the_page_on_floors():
    solution = mw.optimize(P, WORDS, "recall", pos_label="fraud", subject_to="precision >= 0.4")
    numbers = mw.optimize(P, FRAUD.astype(int), "recall", subject_to="precision >= 0.4")
    assert solution.value == pytest.approx(numbers.value)
    assert len(mw.trade_off(P, WORDS, "recall", "precision", pos_label="fraud", n_points=3).rules) > 1
    named = mw.optimize(P, WORDS, "recall[fraud]", subject_to="precision[fraud] >= 0.4")  # a metric may name it
    assert named.value == pytest.approx(numbers.value)
    with pytest.raises(ValueError, match="already names class 'ok'"):
        mw.optimize(P, WORDS, "f1[ok]", pos_label="fraud")


def test_single_columns_of_several_outputs():
    y = np.column_stack([WORDS, np.where(FRAUD, "late", "on time")])
    proba = np.column_stack([P, P])
    with pytest.raises(ValueError, match=r"of output 0 are a single column, .* 'fraud' or of 'ok'"):
        mw.optimize(proba, y, "hamming_accuracy", average="macro")
    solution = mw.optimize(proba, y, "f1", pos_label=["fraud", "late"], average="macro", strategy=mw.Strategy(**FIXED))
    assert [labels.tolist() for labels in solution.rule.classes] == [["ok", "fraud"], ["on time", "late"]]
    assert solution.value == pytest.approx(mw.optimize(P, FRAUD.astype(int), "f1", strategy=mw.Strategy(**FIXED)).value)
    decided = solution.rule.predict(proba)
    assert (decided[:, 0] == "fraud").tolist() == (decided[:, 1] == "late").tolist()
    missing = y.astype(object)
    missing[::7] = None
    assert mw.optimize(proba, missing, "f1", pos_label=["fraud", "late"], average="macro").value > 0.4
    same = np.column_stack([WORDS, WORDS])
    once = mw.optimize(proba, same, "hamming_accuracy", pos_label="fraud", strategy=mw.Strategy(**FIXED))
    assert once.value == pytest.approx(
        mw.optimize(P, FRAUD.astype(int), "accuracy", strategy=mw.Strategy(**FIXED)).value
    )


def test_costs_per_row_take_pos_label_for_a_single_column():
    cost = np.column_stack([np.ones(1000), 5 * np.ones(1000)])
    numbers = mw.optimize(P, FRAUD.astype(int), "cost", cost=cost, strategy=mw.Strategy(recalibrate=False))
    turned = mw.optimize(P, WORDS, "cost", cost=cost, pos_label="fraud", strategy=mw.Strategy(recalibrate=False))
    assert turned.value == pytest.approx(numbers.value)  # costs in the order of the classes, the column's class last
    assert (turned.rule.predict(P, cost=cost) == "fraud").tolist() == (numbers.rule.predict(P, cost=cost) == 1).tolist()


def test_a_rule_of_two_columns_says_how_it_takes_one():
    both = np.column_stack([P, 1 - P])
    rule = mw.optimize(both, WORDS, "balanced_accuracy").rule
    with pytest.warns(UserWarning, match="is assumed to be that of 'ok', the second class of the rule") as said:
        assert rule.predict(1 - P).tolist() == rule.predict(both).tolist()
    assert len(said) == 1
    assert rule.predict(P, pos_label="fraud").tolist() == rule.predict(both).tolist()
    assert rule.distribution(P, pos_label="fraud").tolist() == rule.distribution(both).tolist()
    solution = mw.optimize(both, WORDS, "balanced_accuracy")
    assert solution.predict(P, pos_label="fraud").tolist() == solution.predict(both).tolist()
    judged = mw.evaluate(rule, P, WORDS, "recall", pos_label="fraud")["recall"].value.estimate
    assert judged == pytest.approx(recall_score(WORDS, rule.predict(both), pos_label="fraud"))
    mixture = mw.MixtureRule((rule, rule), np.array([0.5, 0.5]))
    assert mixture.predict(P, pos_label="fraud").tolist() == rule.predict(both).tolist()
    grouped = mw.GroupedRule((rule, rule), ("a", "b"))
    groups = np.where(np.arange(1000) % 2, "a", "b")
    assert grouped.predict(P, sensitive_features=groups, pos_label="fraud").tolist() == rule.predict(both).tolist()
    by_hand = mw.WeightedRule.from_thresholds({"fraud": 0.3}, classes=["ok", "fraud"])
    assert (by_hand.predict(P) == "fraud").tolist() == (P > 0.3).tolist()  # nothing to say


# --------------------------------------------------------------------------------------------- columns of other classes


def test_another_assignment_of_columns_is_named():
    assigned = re.escape("if the columns were those of ['low', 'mid', 'high'] in that order, and not of ")
    share = np.mean(np.array(SCALE)[PROBA.argmax(axis=1)] == Y)
    words = rf"optimize: the most probable class is correct in \d+ % .* in {100 * share:.0f} % {assigned}"
    for ask in (
        lambda: mw.optimize(PROBA, Y, "accuracy"),  # sorted, as a model of scikit-learn would have them
        lambda: mw.optimize(PROBA, Y, "accuracy", classes=sorted(SCALE)),
        lambda: mw.optimize(pd.DataFrame(PROBA, columns=sorted(SCALE)), Y, "accuracy"),  # and wrong names
    ):
        with pytest.warns(UserWarning, match=words) as said:
            ask()
        assert len(said) == 1
    turned = pd.DataFrame(PROBA[:, [2, 0, 1]], columns=SCALE)  # as the columns of the user stand
    with pytest.warns(UserWarning, match=r"those of \['high', 'low', 'mid'\] in that order, and not of \['low', 'mid'"):
        mw.optimize(turned, Y, "accuracy")
    rule = mw.optimize(PROBA[:, [2, 0, 1]], Y, "accuracy").rule
    with pytest.warns(UserWarning, match=words.replace("optimize", "evaluate")) as said:
        mw.evaluate(rule, PROBA, Y, "accuracy")
    assert len(said) == 1
    with pytest.warns(UserWarning, match="if the column were the probability of 'fraud' and not of 'ok'"):
        mw.optimize(P, WORDS, "balanced_accuracy", pos_label="ok")
    with pytest.warns(UserWarning, match="if the column of output 1 were the probability of 0 and not of 1"):
        mw.optimize(np.column_stack([P, 1 - P]), np.column_stack([FRAUD, FRAUD]).astype(int), "f1")


def test_a_table_is_doubted_too(tmp_path):
    frame = pd.DataFrame(PROBA, columns=sorted(SCALE)).assign(truth=Y)
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.warns(UserWarning, match=r"if the columns were those of \['low', 'mid', 'high'\]"):
        mw.optimize(tmp_path / "rows.parquet", "truth", "accuracy")


def doubted(n_right, n_swapped, n_rows):
    """Whether columns are doubted of which so many of some rows are right, and right if two are swapped."""
    likeliest = np.arange(n_rows) % 2
    true = likeliest.copy()
    true[: n_rows - n_right] = 2
    true[:n_swapped] = 1 - likeliest[:n_swapped]
    true[-1] = likeliest[-1] = 2  # right either way
    proba = np.full((n_rows, 3), 0.1)
    proba[np.arange(n_rows), likeliest] = 0.8
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        mw.optimize(proba, np.array(list("abc"))[true], "accuracy", strategy=mw.Strategy(**FIXED))
    return any("the most probable class is correct" in str(one.message) for one in said)


def test_columns_are_doubted_from_fifty_rows_and_twenty_points_on():
    assert doubted(20, 29, 50)  # the last row is right twice
    assert not doubted(20, 28, 50)
    assert not doubted(1, 48, 49)
    assert doubted(400, 599, 1000)
    assert not doubted(400, 598, 1000)


def test_very_many_classes_are_not_doubted():
    codes = np.arange(900) % 9
    proba = np.full((900, 9), 0.025)
    proba[np.arange(900), (codes + 1) % 9] = 0.8
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mw.optimize(proba, codes, "accuracy", strategy=mw.Strategy(**FIXED))


def test_calibrated_probabilities_follow_the_columns_of_the_fit():
    rng = np.random.default_rng(0)
    cost = np.zeros((len(Y), 3, 3)) + rng.random((len(Y), 3, 1)) * (1 - np.eye(3))
    frame, groups = pd.DataFrame(PROBA, columns=SCALE), np.arange(len(Y)) % 2
    rules = [
        (mw.optimize(frame, Y, "macro_f1").rule, {}),
        (mw.optimize(frame, Y, "cost", cost=cost).rule, {}),
        (
            mw.optimize(frame, Y, "accuracy", subject_to="demographic_parity <= 0.5", sensitive_features=groups).rule,
            {"sensitive_features": np.zeros(len(NEW), dtype=int)},
        ),
    ]
    for rule, options in rules:
        by_name = rule.calibrated(pd.DataFrame(NEW, columns=SCALE), **options)
        with pytest.warns(UserWarning, match="columns are assumed to be in the same order"):
            np.testing.assert_array_equal(rule.calibrated(NEW, **options), by_name)


def test_missing_labels_stay_missing_where_the_column_is_that_of_the_first_class():
    y = WORDS.astype(object)
    y[::7] = None
    known = np.arange(len(y)) % 7 != 0
    found = mw.optimize(P, y, "f1", pos_label="fraud", strategy=mw.Strategy(**FIXED))
    expected = mw.optimize(P[known], y[known], "f1", pos_label="fraud", strategy=mw.Strategy(**FIXED))
    assert found.value == expected.value
    np.testing.assert_array_equal(found.confusion, expected.confusion)
