"""Rules by hand against comparisons, argmax and np.digitize on the bare arrays."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

import metricwise as mw
import worlds
from metricwise import WeightedRule
from metricwise.core.losses import Loss

unit = st.floats(0, 1)


def stored(rule):
    return WeightedRule.from_json(rule.to_json())


# --------------------------------------------------------------------------------------------------------- thresholds


@given(unit, st.lists(unit, min_size=1, max_size=8))
def test_one_threshold_is_a_comparison_to_the_last_bit(t, others):
    p = np.array([t, np.nextafter(t, 0), np.nextafter(t, 1), 0.0, 1.0, *others])
    rule = WeightedRule.from_thresholds(t)
    np.testing.assert_array_equal(rule.predict(p), (p > t).astype(int))
    np.testing.assert_array_equal(rule.predict(np.column_stack([1 - p, p])), (p > t).astype(int))
    assert rule.threshold == (t if t < 1 else np.inf)
    assert stored(rule) == rule


@given(unit, st.lists(unit, min_size=1, max_size=8))
def test_a_positive_class_that_comes_first(t, others):
    q = np.array([t, np.nextafter(t, 0), np.nextafter(t, 1), 0.0, 1.0, *others])  # of the positive class
    rule = WeightedRule.from_thresholds(t, classes=["fraud", "ok"], pos_label="fraud")
    expected = np.where(q > t, "fraud", "ok")
    rows = np.column_stack([q, 1 - q])
    assert (rows.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(rule.predict(rows), expected)
    assert WeightedRule.from_thresholds({"fraud": t}, classes=["fraud", "ok"]) == rule


@pytest.mark.parametrize("form", [dict, list, np.array, pd.Series])
def test_several_thresholds(form):
    rng = np.random.default_rng(0)
    t = {"news": 0.3, "sport": 0.6, "none": np.inf, "all": -np.inf}
    proba = np.round(rng.random((200, 4)), 1)  # at the thresholds too
    given_as = {
        dict: t,
        list: list(t.values()),
        np.array: np.array(list(t.values())),
        pd.Series: pd.Series(t),
    }[form]
    rule = WeightedRule.from_thresholds(given_as)
    np.testing.assert_array_equal(rule.predict(proba), (proba > np.array(list(t.values()))).astype(int))
    np.testing.assert_array_equal(rule.thresholds, list(t.values()))
    np.testing.assert_array_equal(rule.thresholds, WeightedRule.from_thresholds(rule.thresholds).thresholds)
    assert stored(rule) == rule
    named = form in (dict, pd.Series)
    assert rule.output_names == (tuple(t) if named else None)
    if named:
        frame = pd.DataFrame(proba, columns=list(t))[["all", "sport", "news", "none"]]
        np.testing.assert_array_equal(rule.predict(frame), rule.predict(proba))
        assert "Output sport: Predict 1 when its probability exceeds 0.6, else 0." in rule.describe()


def test_several_outputs_with_labels_of_their_own():
    proba = np.array([[0.2, 0.2], [0.5, 0.9], [0.9, 0.5]])
    classes = [["no", "yes"], ["late", "in time"]]
    rule = WeightedRule.from_thresholds([0.4, 0.4], classes=classes, pos_label=["yes", "late"])
    late = np.where(1 - proba[:, 1] > 0.4, "late", "in time")
    np.testing.assert_array_equal(rule.predict(proba)[:, 1], late)
    np.testing.assert_array_equal(rule.predict(proba)[:, 0], np.where(proba[:, 0] > 0.4, "yes", "no"))
    shared = WeightedRule.from_thresholds({"a": 0.4, "b": 0.6}, classes=["no", "yes"], pos_label="yes")
    assert shared.predict(proba).tolist() == [["no", "no"], ["yes", "yes"], ["yes", "no"]]


def test_the_only_key_of_a_mapping_is_a_class_or_an_output():
    assert not WeightedRule.from_thresholds({1: 0.3}).multioutput
    assert WeightedRule.from_thresholds({1: 0.3}) == WeightedRule.from_thresholds(0.3)
    news = WeightedRule.from_thresholds({"news": 0.3})
    assert (news.multioutput, news.output_names, news.classes[0].tolist()) == (True, ("news",), [0, 1])
    np.testing.assert_array_equal(news.predict(np.array([[0.3], [0.4]])), [[0], [1]])


@pytest.mark.parametrize("classes", [[0, 1], [-1, 1], [False, True]])
def test_pairs_whose_positive_class_is_known(classes):
    assert WeightedRule.from_thresholds(0.3, classes=classes).predict([0.2, 0.4]).tolist() == classes


def test_output_names_give_the_order():
    rule = WeightedRule.from_thresholds({"b": 0.2, "a": 0.8}, output_names=["a", "b"])
    assert rule.thresholds.tolist() == [0.8, 0.2]
    assert rule == WeightedRule.from_thresholds([0.8, 0.2], output_names=["a", "b"])


def test_scikit_learn_decides_at_its_threshold():
    X, y = worlds.features(300, 2, seed=1)
    model = LogisticRegression().fit(X, y)
    at = float(model.predict_proba(X)[17, 1])
    sklearn = FixedThresholdClassifier(model, threshold=at).fit(X, y)
    ours = mw.FixedRuleClassifier(model, WeightedRule.from_thresholds(np.nextafter(at, -np.inf))).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), sklearn.predict(X))
    assert sklearn.predict(X)[17] == 1
    strict = mw.FixedRuleClassifier(model, WeightedRule.from_thresholds(at)).fit(X, y)
    assert strict.predict(X)[17] == 0
    assert (strict.predict(X) != sklearn.predict(X)).sum() == 1


@pytest.mark.filterwarnings("ignore:.*sums to 1")  # two rows may, by chance
@given(unit, st.lists(unit, min_size=1, max_size=8))
def test_a_threshold_is_a_pair_of_weights(t, others):
    rule = WeightedRule.from_thresholds(t)
    np.testing.assert_allclose(rule.class_weight / rule.class_weight.sum(), [t, 1 - t], atol=1e-15)
    p = np.array(others)
    p = p[np.abs(p - t) > 1e-9]
    if len(p):
        weighted = (np.column_stack([1 - p, p]) * rule.class_weight).argmax(axis=1)
        np.testing.assert_array_equal(weighted, rule.predict(p))


@pytest.mark.parametrize(
    ("thresholds", "options", "words"),
    [
        (np.nan, {}, r"thresholds must lie in \[0, 1\], or be -inf .* always or inf .* never, got nan\."),
        (30, {}, r"must lie in \[0, 1\].*got 30\."),
        ({"a": 0.2, "b": -0.1}, {}, r"got -0\.1 for output 'b'"),
        (0.3, {"classes": ["no", "yes"]}, "the positive class is ambiguous: 'no' or 'yes'"),
        (
            [0.3, 0.4],
            {"classes": ["no", "yes"]},
            "class for output 0 is ambiguous: 'no' or 'yes'; set pos_label",
        ),
        (0.3, {"classes": ["no", "yes"], "pos_label": "ja"}, r"pos_label must be one of the classes \['no', 'yes'\]"),
        (
            0.3,
            {"classes": ["a", "b", "c"]},
            "classes must be two labels, because a threshold separates two classes.*from_weights",
        ),
        (0.3, {"classes": ["a", "a"]}, "classes must be distinct"),
        (
            {0: 0.3, 1: 0.4},
            {},
            "must have the names of outputs, as text, for keys, got 0; use a list for outputs without names",
        ),
        ({}, {}, "must have the names of outputs, as text, for keys"),
        ("0.3", {}, "thresholds must be a number for one output, or for several outputs a mapping"),
        (True, {}, "thresholds must be a number"),
        ([], {}, "thresholds must be a number"),
        ([0.2, "x"], {}, "thresholds must be a number for output 1, got 'x'"),
        (0.3, {"output_names": ["a"]}, "output_names is only for several outputs"),
        ([0.3, 0.2], {"output_names": ["a"]}, "output_names must have one name per output, 2, got 1"),
        ([0.3, 0.2], {"output_names": ["a", "a"]}, "output_names must be a list of distinct names"),
        ({"a": 0.3}, {"output_names": ["b"]}, r"must have exactly the keys output_names, \['b'\]"),
        (
            [0.3, 0.2],
            {"pos_label": [1]},
            "pos_label must be one label, or a list with one label for each of the 2 outputs",
        ),
    ],
)
def test_thresholds_that_are_refused(thresholds, options, words):
    with pytest.raises((ValueError, TypeError), match=f"^WeightedRule.from_thresholds: .*{words}"):
        WeightedRule.from_thresholds(thresholds, **options)


# ------------------------------------------------------------------------------------------------------------ weights


@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_weights_are_an_argmax(k, seed):
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 4, k).astype(float)
    weights[rng.integers(k)] += 1
    eta = rng.multinomial(8, np.full(k, 1 / k), 60) / 8  # products are exact, and tie often
    rule = WeightedRule.from_weights(weights)
    np.testing.assert_array_equal(rule.predict(eta), (weights * eta).argmax(axis=1))
    np.testing.assert_allclose(rule.class_weight, weights / (weights.min() or 1.0), rtol=1e-15)
    assert not rule.bonus.any()
    assert stored(rule) == rule
    assert isinstance(rule.describe(), str)


def test_weights_by_label():
    eta = pd.DataFrame([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], columns=["low", "middle", "high"])
    weights = {"middle": 2, "low": 1, "high": 0.5}
    ordered = WeightedRule.from_weights(weights, classes=["low", "middle", "high"])
    assert ordered.class_weight.tolist() == [2, 4, 1]  # as described
    assert ordered.predict(eta).tolist() == ["middle", "middle"]
    plain = WeightedRule.from_weights(pd.Series(weights))  # sorted, as the columns of scikit-learn are
    assert plain.classes[0].tolist() == ["high", "low", "middle"]
    assert plain.predict(eta).tolist() == ["middle", "middle"]
    assert plain.predict(eta[["high", "low", "middle"]].to_numpy()).tolist() == ["middle", "middle"]


def test_weights_of_several_outputs():
    rng = np.random.default_rng(3)
    blocks = [rng.dirichlet(np.ones(3), 50), rng.dirichlet(np.ones(2), 50)]
    rule = WeightedRule.from_weights({"grade": [1, 2, 5], "spam": {"no": 1, "yes": 4}})
    expected = [(blocks[0] * [1, 2, 5]).argmax(axis=1), (blocks[1] * [1, 4]).argmax(axis=1)]
    np.testing.assert_array_equal(rule.predict(blocks)[:, 0], expected[0])
    np.testing.assert_array_equal(rule.predict(blocks)[:, 1], np.array(["no", "yes"])[expected[1]])
    assert rule.output_names == ("grade", "spam")
    assert stored(rule) == rule
    table = WeightedRule.from_weights(np.array([[1, 2, 3], [3, 2, 1]]), output_names=["a", "b"])
    both = rng.dirichlet(np.ones(3), (50, 2))
    np.testing.assert_array_equal(table.predict(both), (both * [[1, 2, 3], [3, 2, 1]]).argmax(axis=2))


@pytest.mark.parametrize(
    ("weights", "options", "words"),
    [
        ([1, -1], {}, r"weights must be finite, non-negative and not all zero, got \[1, -1\]"),
        ([1, np.nan], {}, "must be finite"),
        ([0, 0], {}, "not all zero"),
        ([1], {}, "weights must be for at least two classes, got 1"),
        ([1, 2], {"classes": ["a", "b", "c"]}, "weights must be one per class, 3, got 2"),
        ({"a": 1, "b": 2}, {"classes": ["a", "c"]}, r"exactly the classes \['a', 'c'\] as keys, got"),
        ({"x": [1, 2], "y": [1, -2]}, {}, "for output 'y'"),
        (3, {}, "weights must be a mapping of labels to weights or a list of weights in the order of the classes for"),
        ([[1, 2], 3], {}, "for output 1, got 3"),
    ],
)
def test_weights_that_are_refused(weights, options, words):
    with pytest.raises((ValueError, TypeError), match=f"^WeightedRule.from_weights: .*{words}"):
        WeightedRule.from_weights(weights, **options)


# --------------------------------------------------------------------------------------------------------- cut points


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_cut_points_are_digitize(k, seed):
    """In eighths every sum is exact, and every second row lies on a cut point."""
    rng = np.random.default_rng(seed)
    eta = rng.multinomial(8, rng.dirichlet(np.ones(k)), 60) / 8
    grades = np.cumsum(rng.integers(1, 4, k)) - 3.0
    at = eta @ grades
    cuts = np.sort(np.where(rng.random(k - 1) < 0.7, rng.choice(at, k - 1), rng.integers(-20, 80, k - 1) / 8))
    rule = WeightedRule.from_cut_points(cuts, grades=grades)
    np.testing.assert_array_equal(rule.predict(eta), np.digitize(at, cuts, right=True))
    assert stored(rule) == rule
    assert isinstance(rule.describe(), str)


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_cut_points_of_any_rows(k, seed):
    rng = np.random.default_rng(seed)
    eta = rng.dirichlet(np.ones(k), 100)
    cuts = np.sort(rng.uniform(0, k - 1, k - 1))
    at = eta @ np.arange(k)
    clear = np.abs(at[:, None] - cuts).min(axis=1) > 1e-9
    expected = np.digitize(at, cuts, right=True)
    np.testing.assert_array_equal(WeightedRule.from_cut_points(cuts).predict(eta)[clear], expected[clear])


def test_halves_are_rounding_and_ties_go_down():
    eta = np.array([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.25, 0.5, 0.25], [0.25, 0, 0.75]])
    rule = WeightedRule.from_cut_points([0.5, 1.5], classes=["low", "middle", "high"])
    assert rule.predict(eta).tolist() == ["low", "middle", "middle", "middle"]
    squared = mw.optimize(
        eta, None, mw.metrics.SquaredOrdinal(order=["low", "middle", "high"]), classes=rule.classes[0]
    )
    np.testing.assert_array_equal(squared.rule.predict(eta), rule.predict(eta))


def test_cut_points_in_words():
    words = WeightedRule.from_cut_points([0.4, 1.7], classes=["low", "middle", "high"])
    assert words.describe().splitlines() == [
        "Predict the expected grade, rounded at the cut points 0.4, 1.7.",
        "Grades: 'low': 0, 'middle': 1, 'high': 2.",
    ]
    stars = WeightedRule.from_cut_points([1.4, 2.7, 3.1], grades=[1, 2, 3, 4], classes=[1, 2, 3, 4])
    assert stars.describe().splitlines()[0].endswith("cut points 1.4, 2.7, 3.1.")
    uneven = WeightedRule.from_cut_points([1, 5], grades=[0, 2, 8], classes=["s", "m", "l"])
    assert "points 0.25, 1.25.\nGrades: 's': 0, 'm': 0.5, 'l': 2." in uneven.describe()
    crossed = WeightedRule(
        Loss(full=np.cumsum(np.array([[0, 2, -2], [0, 1, -3], [0, 0, -4]]), axis=1)[None] * 1.0), (["a", "b", "c"],)
    )
    assert "lowest expected loss" in crossed.describe()  # no ascending cut points


def test_rules_for_quadratic_kappa_are_cut_points():
    rng = np.random.default_rng(4)
    proba = rng.dirichlet([3, 2, 1, 1], 400)
    y = np.array([rng.choice(4, p=p) for p in proba]) + 1
    rule = mw.optimize(proba, y, "quadratic_kappa", strategy=mw.Strategy(confusion="expected", recalibrate=False)).rule
    said = re.search(r"cut points (.*)\.\n", rule.describe()).group(1)
    cuts = [float(cut) for cut in said.split(", ")]
    at = proba @ np.arange(1, 5)
    clear = np.abs(at[:, None] - cuts).min(axis=1) > 1e-3  # four digits are shown
    np.testing.assert_array_equal(rule.predict(proba)[clear], np.digitize(at, cuts)[clear] + 1)
    assert clear.mean() > 0.95


def test_infinite_cut_points_cut_classes_off():
    eta = np.eye(3)
    assert WeightedRule.from_cut_points([-np.inf, np.inf]).predict(eta).tolist() == [1, 1, 1]
    assert WeightedRule.from_cut_points([0.5, 0.5]).predict(eta).tolist() == [0, 2, 2]


def test_cut_points_of_several_outputs():
    rng = np.random.default_rng(5)
    blocks = [rng.dirichlet(np.ones(4), 80), rng.dirichlet(np.ones(2), 80)]
    rule = WeightedRule.from_cut_points(
        {"stars": [1.7, 2.2, 3.4], "spam": [0.3]}, grades=[[1, 2, 3, 4], None], classes=[[1, 2, 3, 4], ["no", "yes"]]
    )
    stars = np.digitize(blocks[0] @ [1, 2, 3, 4], [1.7, 2.2, 3.4]) + 1
    np.testing.assert_array_equal(rule.predict(blocks)[:, 0], stars)
    np.testing.assert_array_equal(rule.predict(blocks)[:, 1], np.where(blocks[1][:, 1] > 0.3, "yes", "no"))
    assert rule.thresholds[1] == pytest.approx(0.3)
    assert stored(rule) == rule


@pytest.mark.parametrize(
    ("cuts", "options", "words"),
    [
        ([1, 0.5], {}, r"cut_points must ascend, got \[1, 0\.5\]; sort them"),
        ([0.5, np.nan], {}, "cut_points must ascend"),
        ([0.5], {"classes": ["a", "b", "c"]}, "must have one number fewer than there are classes, 2 for 3, got 1"),
        ([1.5, 2.5], {"classes": [1, 2, 3]}, r"grades=\[1, 2, 3\], or to their positions, grades=\[0, 1, 2\]"),
        ([0.5], {"grades": [1, 0]}, "grades must be finite and ascend with the classes"),
        ([0.5], {"grades": [0, 1, 2]}, "grades must have one number per class, 2, got 3"),
        ([0.5], {"grades": "ab"}, "grades must be a list of numbers, one per class, got 'ab'"),
        ({"a": [0.5], "b": [0.5]}, {"grades": [[0, 1]]}, "or a list of one such list for each of the 2 outputs"),
        (0.5, {}, "cut_points must be a list of ascending numbers for one output"),
        ({"a": [0.5], "b": [2, 1]}, {}, "for output 'b'"),
    ],
)
def test_cut_points_that_are_refused(cuts, options, words):
    with pytest.raises((ValueError, TypeError), match=f"^WeightedRule.from_cut_points: .*{words}"):
        WeightedRule.from_cut_points(cuts, **options)


def test_an_estimator_decides_by_a_rule_by_hand():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 1))
    y = np.clip(np.round(X[:, 0] + rng.normal(0, 0.5, 200)) + 1, 0, 2).astype(int)
    rule = WeightedRule.from_cut_points([0.6, 1.3])
    model = mw.FixedRuleClassifier(LogisticRegression(), rule.to_dict()).fit(X, y)
    expected = np.digitize(model.predict_proba(X) @ np.arange(3), [0.6, 1.3])
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input": "scores", "grades": [1, 2, 3]}, r"from_cut_points: grades must be left out if input='scores'"),
        ({"input": "scores", "output_names": ["a"]}, r"from_cut_points: output_names must be left out"),
        ({"input": "logits"}, r"more than two need one score .* got \[3\] classes and input='logits'"),
    ],
)
def test_cut_points_of_a_score_are_of_one_output(options, message):
    with pytest.raises(mw.InvalidParameter, match=message):
        mw.WeightedRule.from_cut_points([0.5, 1.5], **options)
