"""Which class is higher than which: `order=` says it, `classes=` never does, and the rule keeps it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score

import metricwise as mw
import worlds
from metricwise.core.losses import Loss

SCALE = ["low", "mid", "high"]
COLUMNS = sorted(SCALE)  # as a model of scikit-learn has them
FIXED = {"confusion": "labels", "recalibrate": False}
BY_VALUE = {"low": 1, "mid": 2, "high": 3}


def kappa(y, predicted, scale=SCALE):
    return cohen_kappa_score(y, predicted, labels=scale, weights="quadratic")


PROBA, Y = worlds.graded(names=COLUMNS)
NEW, Y_NEW = worlds.graded(names=COLUMNS, seed=1)
NUMBERS = np.array([BY_VALUE[label] for label in Y])


# ------------------------------------------------------------------------------------------------------------ asked for


@pytest.mark.parametrize("classes", [None, COLUMNS])
def test_classes_name_columns_and_set_no_order(classes):
    words = r"Kappa: .* pass order=\[lowest, \.\.\., highest\], .* The classes are 'high', 'low', 'mid'; classes= names"
    with pytest.raises(ValueError, match=words) as raised:
        mw.optimize(PROBA, Y, "quadratic_kappa", classes=classes)
    assert "['high', 'low', 'mid']" not in str(raised.value)  # nothing wrong to paste
    solution = mw.optimize(PROBA, Y, "quadratic_kappa", classes=classes, order=SCALE)
    assert solution.value == pytest.approx(kappa(Y, solution.rule.predict(PROBA)))
    exact = mw.optimize(PROBA, Y, "quadratic_kappa", classes=classes, order=SCALE, strategy=mw.Strategy(**FIXED))
    by_number = mw.optimize(PROBA[:, [1, 2, 0]], NUMBERS, "quadratic_kappa", strategy=mw.Strategy(**FIXED))
    assert exact.value == pytest.approx(by_number.value, abs=1e-12)
    assert kappa(Y_NEW, solution.rule.predict(NEW)) > kappa(Y_NEW, np.array(COLUMNS)[NEW.argmax(axis=1)])


def test_numbers_sort_whatever_the_columns_are():
    expected = mw.optimize(PROBA[:, [1, 2, 0]], NUMBERS, "quadratic_kappa", strategy=mw.Strategy(**FIXED))
    found = mw.optimize(PROBA, NUMBERS, "quadratic_kappa", classes=[3, 1, 2], strategy=mw.Strategy(**FIXED))
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert found.rule.describe() == expected.rule.describe()
    assert "Grades: 1: 1, 2: 2, 3: 3." in found.rule.describe()


@pytest.mark.parametrize("metric", ["neg_quadratic", "minimum"])
def test_an_order_reaches_metrics_within_metrics(metric):
    from metricwise.metrics.base import Affine

    made = {
        "neg_quadratic": lambda **order: Affine(mw.metrics.Kappa("quadratic", **order), 2.0, -1.0),
        "minimum": lambda **order: mw.metrics.Minimum([mw.metrics.Accuracy(), mw.metrics.Ordinal(**order)]),
    }[metric]
    expected = mw.optimize(PROBA, Y, made(order=SCALE), strategy=mw.Strategy(**FIXED))
    assert mw.optimize(PROBA, Y, made(), order=SCALE, strategy=mw.Strategy(**FIXED)).value == pytest.approx(
        expected.value
    )
    with pytest.raises(ValueError, match=r"pass order=\[lowest"):
        mw.optimize(PROBA, Y, made(), strategy=mw.Strategy(**FIXED))


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("low", r"order must be a list of labels from the lowest to the highest"),
        (["low", "high"], r"once, from the lowest to the highest: 'high', 'low', 'mid', got \['low', 'high'\]"),
        (["low", "mid", "huge"], r"order must hold each of the classes once"),
        (["low", "mid", "mid"], r"order must be distinct"),
        ([SCALE, SCALE], r"order must hold the labels of each of 1 outputs, got 2 lists"),
    ],
)
def test_what_is_no_order_of_the_classes_is_refused(order, words):
    with pytest.raises((ValueError, TypeError), match=words):
        mw.optimize(PROBA, Y, "quadratic_kappa", order=order)


def test_two_orders_are_refused_with_both_shown():
    other = ["high", "mid", "low"]
    words = r"order is \['low', 'mid', 'high'\], but quadratic_kappa was given the order \['high', 'mid', 'low'\]"
    metric = mw.metrics.Kappa("quadratic", order=other)
    for ask in (
        lambda: mw.optimize(PROBA, Y, metric, order=SCALE),
        lambda: mw.optimize(PROBA, Y, "accuracy", record={"quadratic_kappa": metric}, order=SCALE),
        lambda: mw.optimize(PROBA, Y, "accuracy", subject_to=mw.at_least(metric, 0.1), order=SCALE),
        lambda: mw.trade_off(PROBA, Y, metric, "accuracy", order=SCALE),
        lambda: mw.evaluate(mw.WeightedRule.from_weights([1, 1, 1], classes=COLUMNS), PROBA, Y, metric, order=SCALE),
        lambda: mw.MetricOptimalClassifierCV(LogisticRegression(), metric=metric, order=SCALE).fit(PROBA, Y),
        lambda: mw.MetricWeightedClassifier(LogisticRegression(), metric=metric, order=SCALE).fit(PROBA, Y),
        lambda: mw.make_scorer(metric, order=SCALE)._score_func(Y, Y),
    ):
        with pytest.raises(ValueError, match=words):
            ask()
    categorical = pd.Categorical(Y, SCALE, ordered=True)
    frame = pd.DataFrame(PROBA, columns=COLUMNS)
    with pytest.raises(ValueError, match=r"order is \['high', .* ordered categorical, 'low' < 'mid' < 'high'"):
        mw.optimize(frame, categorical, "quadratic_kappa", order=other)
    same = mw.optimize(
        frame, categorical, mw.metrics.Kappa("quadratic", order=SCALE), order=SCALE, strategy=mw.Strategy(**FIXED)
    )
    assert same.value == pytest.approx(
        mw.optimize(PROBA, Y, "quadratic_kappa", order=SCALE, strategy=mw.Strategy(**FIXED)).value
    )


def test_several_outputs_have_an_order_each():
    other = np.array(["x", "y"])[(NUMBERS > 1).astype(int)]
    proba = [PROBA, np.column_stack([PROBA[:, 1], 1 - PROBA[:, 1]])]
    y = np.column_stack([Y.astype(object), other])
    aims = ["quadratic_kappa", "accuracy"]
    solution = mw.optimize(proba, y, aims, order=[SCALE, None], strategy=mw.Strategy(**FIXED))
    single = mw.optimize(PROBA, Y, "quadratic_kappa", order=SCALE, strategy=mw.Strategy(**FIXED))
    accuracy = mw.optimize(proba[1], other, "accuracy", strategy=mw.Strategy(**FIXED)).value
    assert solution.value == pytest.approx((single.value + accuracy) / 2)
    assert solution.rule.metadata.order == [SCALE, None]
    (judged,) = mw.evaluate(solution.rule, proba, y, [aims]).values()
    assert judged.value.estimate == pytest.approx(solution.value)
    with pytest.raises(ValueError, match=r"each of the classes of output 1 once.* None in their place"):
        mw.optimize(proba, y, aims, order=SCALE)
    twice = mw.optimize(
        [PROBA, PROBA], np.column_stack([Y, Y]), "quadratic_kappa", order=SCALE, strategy=mw.Strategy(**FIXED)
    )
    assert twice.value == pytest.approx(single.value)


# --------------------------------------------------------------------------------------------------- kept with the rule


WAYS = {
    "call": lambda **options: mw.optimize(PROBA, Y, "quadratic_kappa", order=SCALE, **options),
    "metric": lambda **options: mw.optimize(PROBA, Y, mw.metrics.Kappa("quadratic", order=SCALE), **options),
    "record": lambda **options: mw.optimize(
        PROBA, Y, "accuracy", record=[mw.metrics.Kappa("quadratic", order=SCALE)], **options
    ),
    "categorical": lambda **options: mw.optimize(
        PROBA, pd.Categorical(Y, SCALE, ordered=True), "quadratic_kappa", classes=COLUMNS, **options
    ),
    "randomized": lambda **options: mw.optimize(
        PROBA,
        Y,
        "quadratic_kappa",
        order=SCALE,
        subject_to="recall[mid] >= 0.3",
        confidence=None,
        strategy=mw.Strategy(randomized=True),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_order_is_kept_with_the_rule_and_used_to_judge_it(way):
    solution = WAYS[way]()
    rule = mw.load_rule(solution.rule.to_json())
    assert rule.metadata.order == [SCALE]
    found = mw.evaluate(rule, NEW, Y_NEW, "quadratic_kappa")["quadratic_kappa"]
    argmax = kappa(Y_NEW, np.array(COLUMNS)[NEW.argmax(axis=1)])
    assert found.baseline.estimate == pytest.approx(argmax)
    if isinstance(rule, mw.WeightedRule):
        assert found.value.estimate == pytest.approx(kappa(Y_NEW, rule.predict(NEW)))
    assert mw.report.summarize(rule, NEW, Y_NEW, "quadratic_kappa")["figures"]
    with pytest.raises(ValueError, match=r"the rule was fitted with the order \['low', 'mid', 'high'\]"):
        mw.evaluate(rule, NEW, pd.Categorical(Y_NEW, ["mid", "low", "high"], ordered=True), "quadratic_kappa")
    again = ["mid", "low", "high"]  # another question, asked in so many words
    other = mw.evaluate(rule, NEW, Y_NEW, "quadratic_kappa", order=again)["quadratic_kappa"]
    assert other.baseline.estimate == pytest.approx(kappa(Y_NEW, np.array(COLUMNS)[NEW.argmax(axis=1)], again))


def test_classes_that_an_earlier_version_said_to_be_in_order_are():
    rule = mw.optimize(PROBA[:, [1, 2, 0]], Y, "accuracy", classes=SCALE).rule
    with pytest.raises(ValueError, match=r"pass order=\[lowest"):
        mw.evaluate(rule, NEW[:, [1, 2, 0]], Y_NEW, "quadratic_kappa")
    found = mw.evaluate(rule.with_metadata(ordered=[True]), NEW[:, [1, 2, 0]], Y_NEW, "quadratic_kappa")
    assert found["quadratic_kappa"].value.estimate == pytest.approx(kappa(Y_NEW, rule.predict(NEW[:, [1, 2, 0]])))


@pytest.mark.parametrize("facts", [{"order": "low"}, {"order": [["low", "mid"]]}, {"order": []}, {"ordered": True}])
def test_facts_that_are_no_order_are_none(facts):
    rule = mw.WeightedRule.from_weights([1, 1, 1], classes=COLUMNS).with_metadata(**facts)
    assert rule.describe() == "Predict the most probable class."
    with pytest.raises(ValueError, match=r"pass order=\[lowest"):
        mw.evaluate(rule, NEW, Y_NEW, "quadratic_kappa")


def test_cut_points_are_described_in_order():
    by_number = mw.optimize(
        PROBA[:, [1, 2, 0]], NUMBERS, "quadratic_kappa", strategy=mw.Strategy(**FIXED)
    ).rule.describe()
    for rule in (
        mw.optimize(PROBA, Y, "quadratic_kappa", order=SCALE, strategy=mw.Strategy(**FIXED)).rule,
        mw.optimize(PROBA, Y, mw.metrics.Kappa("quadratic", order=SCALE), strategy=mw.Strategy(**FIXED)).rule,
    ):
        assert "Grades: 'low': 0, 'mid': 1, 'high': 2." in rule.describe()
        cuts, expected = (
            np.array(text.partition("cut points ")[2].splitlines()[0].removesuffix(".").split(", "), dtype=float)
            for text in (rule.describe(), by_number)
        )
        np.testing.assert_allclose(cuts, expected - 1, atol=1e-3)  # grades from 0 on, not from 1
    one = mw.optimize(PROBA, Y, "quadratic_kappa", order=SCALE, strategy=mw.Strategy(**FIXED)).rule
    np.testing.assert_allclose(one.grades, [2, 0, 1], atol=1e-12)  # in the order of the columns
    assert (np.diff(one.cut_points) > 0).all()
    graded_rows = np.digitize(one.calibrated(NEW) @ one.grades, one.cut_points, right=True)
    assert np.array(SCALE)[graded_rows].tolist() == one.predict(NEW).tolist()
    parts = (one.with_metadata(order=None), one.with_metadata(order=None))
    for whole in (mw.MixtureRule(parts, np.array([0.5, 0.5])), mw.GroupedRule(parts, ("a", "b"))):
        assert "Grades:" not in whole.describe()
        assert whole.with_metadata(order=[SCALE]).describe().count("Grades: 'low': 0, 'mid': 1, 'high': 2.") == 2
    four = ["a", "d", "b", "c"]
    table = mw.WeightedRule.from_cut_points([0.5, 1.5, 2.5], classes=four).with_metadata(order=[four])
    turned = mw.WeightedRule(
        Loss.from_tensor(table.loss.tensor()[0][np.ix_([0, 2, 3, 1], [0, 2, 3, 1])]),
        (np.array(sorted(four)),),
    ).with_metadata(order=[four])
    assert turned.describe() == table.describe()


def test_estimators_take_an_order():
    X = np.log(PROBA)
    for model in (mw.MetricOptimalClassifierCV, mw.MetricWeightedClassifier):
        fitted = model(LogisticRegression(), metric="quadratic_kappa", order=SCALE).fit(X, Y)
        assert fitted.score(X, Y) == pytest.approx(kappa(Y, fitted.predict(X)))
    prefit = mw.MetricOptimalClassifierCV(
        LogisticRegression().fit(X, Y), metric="quadratic_kappa", order=SCALE, cv="prefit"
    )
    few = Y != "mid"  # the model knows a class that these rows do not show
    assert prefit.fit(X[few], Y[few]).rule_.metadata.order == [SCALE]


def test_a_frontier_and_a_floor_take_an_order():
    frontier = mw.trade_off(PROBA, Y, "quadratic_kappa", "recall[mid]", n_points=3, order=SCALE)
    assert frontier.rules[0].metadata.order == [SCALE]
    assert frontier.values[0] == pytest.approx(kappa(Y, frontier.rules[0].predict(PROBA)))
    floor = mw.optimize(PROBA, Y, "accuracy", subject_to="quadratic_kappa >= 0.6", order=SCALE, confidence=None)
    assert floor.constraints[0].value == pytest.approx(kappa(Y, floor.rule.predict(PROBA)))
