"""Rules as thresholds of Spark ML, against a transcription of what Spark predicts."""

import numpy as np
import pytest

import metricwise as mw
from laws.rule_records import RECORDS
from metricwise.core.losses import Loss
from metricwise.rules import TemperatureScaling, WeightedRule

rng = np.random.default_rng(0)


def spark_predict(proba, thresholds):
    """Predict as ProbabilisticClassificationModel does: the first of the largest p / t, where 0 / 0 is never larger."""
    decisions = []
    for row in proba:
        largest, decision = -np.inf, 0
        for j, (p, t) in enumerate(zip(row, thresholds, strict=True)):
            with np.errstate(divide="ignore", invalid="ignore"):
                scaled = np.float64(p) / np.float64(t)
            if scaled > largest:
                largest, decision = scaled, j
        decisions.append(decision)
    return np.array(decisions)


def both(positive):
    return np.stack([1 - positive, positive], axis=1)


def rows(n_classes, thresholds=()):
    """Return random rows, rounded ones that tie, certain ones, and for two classes those around thresholds."""
    drawn = rng.dirichlet(np.ones(n_classes), 300)
    rounded = rng.multinomial(12, np.full(n_classes, 1 / n_classes), 300) / 12
    if n_classes > 2:
        return np.concatenate([drawn, rounded, np.eye(n_classes)])
    near = [t for t in thresholds if 0 <= t <= 1]
    near += [np.nextafter(t, end) for t in near for end in (0, 1)]
    return both(np.concatenate([drawn[:, 1], rounded[:, 1], near, [0, 1]]))


@pytest.mark.parametrize(
    "threshold", [0.0, 1e-300, 1e-17, 0.1, 0.25, 1 / 3, 0.5, 0.7, 11 / 12, 1 - 2**-53, 1.0, np.inf]
)
def test_two_classes_decide_alike_to_the_last_bit(threshold):
    rule = WeightedRule.from_thresholds(threshold)
    thresholds = rule.as_spark_thresholds()
    assert len(thresholds) == 2
    assert min(thresholds) >= 0
    assert np.count_nonzero(thresholds) >= 1
    proba = rows(2, [threshold])
    np.testing.assert_array_equal(spark_predict(proba, thresholds), rule.predict(proba))


def test_random_thresholds_and_probabilities_next_to_them():
    for threshold in np.concatenate([rng.random(100), rng.random(20) ** 20, np.arange(1, 20) / 20]):
        rule = WeightedRule.from_thresholds(threshold)
        near = threshold + np.arange(-4, 5) * np.spacing(threshold)
        proba = both(near[(near >= 0) & (near <= 1)])
        np.testing.assert_array_equal(spark_predict(proba, rule.as_spark_thresholds()), rule.predict(proba))


@pytest.mark.parametrize(
    "rule",
    [
        WeightedRule(Loss.from_tensor([[0, 1], [3, 0]]), (np.array([0, 1]),)),
        WeightedRule(
            Loss.from_tensor([[0, 1], [3, 0]]),
            (np.array([0, 1]),),
            TemperatureScaling(np.array([0.7]), np.array([[0.0, 0.4]])),
        ),
        WeightedRule.from_thresholds({"bad": 0.3}, classes=["bad", "good"]),
    ],
    ids=["costs", "calibrated", "first class"],
)
def test_any_rule_of_two_classes(rule):
    proba = both(rng.random(2000))
    codes = spark_predict(proba, rule.as_spark_thresholds())
    np.testing.assert_array_equal(rule.classes[0][codes], rule.predict(proba))


@pytest.mark.parametrize(
    "weights", [[1, 1, 1], [1, 2, 4], [3, 5, 7], [1, 0, 4], [0, 1, 1], [0, 0, 0], [1e-9, 1, 1e9], [1, 2, 3, 4, 5]]
)
def test_weights(weights):
    rule = WeightedRule(
        Loss(diagonal=-np.array([weights], dtype=float), offset=np.zeros((1, len(weights)))),
        (np.arange(len(weights)),),
    )
    thresholds = rule.as_spark_thresholds()
    assert min(thresholds) == 1
    proba = rows(len(weights))
    scores = np.sort(proba * weights, axis=1)
    apart = scores[:, -1] - scores[:, -2] > 1e-12 * scores[:, -1]
    same = spark_predict(proba, thresholds) == rule.predict(proba)
    assert same[apart].all()
    if all(weight in (0, 1, 2, 4) for weight in weights):  # nothing is rounded
        assert same.all()


@pytest.mark.parametrize("temperature", [0.3, 0.9, 1.0, 2.5])
def test_a_calibration_is_folded_into_the_weights(temperature):
    for _ in range(20):
        link = TemperatureScaling(np.array([temperature]), rng.normal(0, 0.5 * temperature, (1, 4)))
        loss = Loss(diagonal=-rng.uniform(0.7, 1.4, (1, 4)), offset=np.zeros((1, 4)))
        rule = WeightedRule(loss, (np.arange(4),), link)
        proba = np.concatenate([rng.dirichlet(np.full(4, 0.3), 100), np.eye(4)])
        np.testing.assert_array_equal(spark_predict(proba, rule.as_spark_thresholds()), rule.predict(proba))


def test_costs_that_are_weights_and_a_bias():
    loss = Loss.from_tensor([[0, 1, 1], [5, 0, 5], [2, 2, 0]])
    rule = WeightedRule(loss, (np.array(["a", "b", "c"]),))
    assert rule.as_spark_thresholds() == pytest.approx([5, 1, 2.5])
    link = TemperatureScaling(np.ones(1), np.log([[2.0, 1.0, 1.0]]))
    calibrated = WeightedRule(loss, rule.classes, link)
    assert calibrated.as_spark_thresholds() == pytest.approx([2.5, 1, 2.5])
    proba = rng.dirichlet(np.full(3, 0.3), 1000)
    codes = spark_predict(proba, calibrated.as_spark_thresholds())
    np.testing.assert_array_equal(rule.classes[0][codes], calibrated.predict(proba))


CLASSES = (np.arange(3),)
DIAGONAL = Loss(diagonal=-np.array([[1.0, 2.0, 3.0]]), offset=np.zeros((1, 3)))
REFUSED = {
    "an offset": WeightedRule(Loss(diagonal=-np.ones((1, 3)), offset=np.array([[0.0, 0.1, 0.2]])), CLASSES),
    "a full table": WeightedRule(Loss.from_tensor([[0, 2, 4], [1, 0, 1], [7, 1, 0]]), CLASSES),
    "smallest probability of its calibration decides": WeightedRule(
        Loss(diagonal=-np.array([[1.0, 1.0, 1e6]]), offset=np.zeros((1, 3))),
        CLASSES,
        TemperatureScaling.identity(1, 3),
    ),
    "because its probability is low": WeightedRule(
        Loss(diagonal=np.array([[1.0, -2.0, -3.0]]), offset=np.zeros((1, 3))), CLASSES
    ),
    "second class below a probability": WeightedRule(Loss.from_tensor([[1, 0], [0, 1]]), (np.arange(2),)),
    "always predicts the second class": WeightedRule.from_thresholds(-np.inf),
    "several outputs": WeightedRule.from_thresholds([0.2, 0.3]),
    "compares logits with cut points": WeightedRule.from_thresholds(0.3, input="logits"),
    "takes logits": WeightedRule(
        DIAGONAL, CLASSES, TemperatureScaling(np.ones(1), np.zeros((1, 3)), floor=0.0), input="logits"
    ),
    "may abstain": WeightedRule(
        Loss.from_tensor([[0, 1, 0.3], [1, 0, 0.3], [0, 0, 0]]), (np.arange(2),), abstain_label="ask"
    ),
    "draws one of several rules": mw.MixtureRule(
        (WeightedRule.from_thresholds(0.2), WeightedRule.from_thresholds(0.4)), np.array([[0.5, 0.5]])
    ),
    "other thresholds in each group": mw.GroupedRule(
        (WeightedRule.from_thresholds(0.2), WeightedRule.from_thresholds(0.4)), ("f", "m"), ("sex",)
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_weights_cannot_say_is_refused(reason):
    with pytest.raises(
        ValueError, match=rf"as_spark_thresholds: thresholds of Spark cannot express this rule: .*{reason}.*; \w+"
    ):
        REFUSED[reason].as_spark_thresholds()


@pytest.mark.parametrize("name", RECORDS)
def test_every_kind_is_refused_or_decides_alike(name):
    record = RECORDS[name]
    rule = record.rule
    try:
        thresholds = rule.as_spark_thresholds()
    except ValueError as error:
        assert "thresholds of Spark cannot express this rule" in str(error)  # noqa: PT017
        return
    proba = rng.dirichlet(np.ones(len(rule.classes[0])), 500)
    codes = spark_predict(proba, thresholds)
    assert [rule.classes[0][code] for code in codes] == rule.predict(proba).tolist()
