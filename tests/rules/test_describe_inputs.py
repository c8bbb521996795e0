"""Descriptions of rules on logits, log-probabilities and scores, in the unit of these."""

import re

import numpy as np
import pytest

import metricwise as mw
import worlds
from metricwise.core.losses import Loss
from metricwise.core.ordinal_map import OrdinalMap
from metricwise.rules import TemperatureScaling
from metricwise.solvers.sweep import threshold_loss

NAMES = np.array(["no", "yes"])
EXPECTED = mw.Strategy(confusion="expected", recalibrate=False)


def binary_rule(kind, threshold=0.3, temperature=1.0, shift=0.0, **options):
    link = TemperatureScaling(np.array([temperature]), np.array([[0.0, shift]]), 0.0)
    return mw.WeightedRule(threshold_loss(np.array([threshold])), (NAMES,), link, input=kind, **options)


def logit(p):
    return np.log(p / (1 - p))


@pytest.mark.parametrize(("kind", "noun"), [("logits", "logit"), ("log_proba", "log-odds"), ("scores", "score")])
def test_a_threshold_is_in_the_unit_of_the_rows(kind, noun):
    rule = binary_rule(kind, 0.3, temperature=2.0, shift=-1.5)
    number = (logit(0.3) + 1.5) / 2
    assert rule.threshold == pytest.approx(number)
    first, second = rule.describe().splitlines()
    assert first == f"Predict 'yes' when its {noun} exceeds {number:.4g}, else 'no'."
    both = " (of two columns, to their difference)" if kind == "scores" else ""
    where = f"The threshold applies to the {noun} itself{both}"
    assert second == f"{where}; the probability of 'yes' is sigmoid(2 * {noun} - 1.5)."


def test_a_threshold_needs_no_map_where_that_is_the_identity():
    assert binary_rule("logits", 0.5).describe() == "Predict 'yes' when its logit exceeds 0, else 'no'."


def test_large_scores_keep_six_digits():
    rule = binary_rule("scores", 0.5, temperature=1e-3, shift=-12.3456)
    assert rule.describe().startswith("Predict 'yes' when its score exceeds 12345.6, else 'no'.")


def test_constant_and_inverted_rules():
    never, always = binary_rule("logits", 2.0), binary_rule("logits", -1.0)
    assert (never.describe(), always.describe()) == ("Always predict 'no'.", "Always predict 'yes'.")
    link = TemperatureScaling(np.ones(1), np.zeros((1, 2)), 0.0)
    inverted = mw.WeightedRule(Loss.from_tensor([[1.0, 0.0], [0.0, 1.0]]), (NAMES,), link, input="scores")
    assert re.match(r"Predict 'yes' when its score is below .* \(inverted threshold\)", inverted.describe())


def test_regions_are_in_the_unit_of_the_rows():
    p, y = worlds.binary(500)
    z = logit(p)
    solution = mw.optimize(4 * z + 2, y, "accuracy", input="scores", abstain=0.2, strategy=EXPECTED)
    (_, low, end), _, (_, start, high) = solution.rule.regions
    assert (low, high) == (-np.inf, np.inf)
    lines = solution.rule.describe().splitlines()
    assert (
        lines[1] == f"By the score of 1: up to {end:.4g} predict 0; from {start:.4g} predict 1; in between abstain: -1."
    )
    assert lines[2].startswith("These numbers apply to the score itself")


@pytest.mark.parametrize(
    ("kind", "temperature", "line"),
    [
        ("logits", 1.0, "Logits are mapped to probabilities by softmax first."),
        ("logits", 0.5, "Logits are mapped to probabilities by softmax(t * logit) first (t = 0.5)."),
        ("scores", 0.5, "Scores are mapped to probabilities by softmax(t * score) first (t = 0.5)."),
        (
            "log_proba",
            0.5,
            "Log-probabilities are mapped to probabilities by softmax(t * log-probability) first (t = 0.5).",
        ),
    ],
)
def test_weights_of_several_classes_say_how_probabilities_come_about(kind, temperature, line):
    link = TemperatureScaling(np.array([temperature]), np.zeros((1, 3)), 0.0)
    rule = mw.WeightedRule(
        Loss(diagonal=-np.array([[1.0, 2, 3]]), offset=np.zeros((1, 3))), (np.arange(3),), link, input=kind
    )
    assert rule.describe().splitlines()[1:] == [line]
    shifted = TemperatureScaling(np.array([temperature]), np.log([[1.0, 2.0, 4.0]]), 0.0)
    with_bias = mw.WeightedRule(rule.loss, rule.classes, shifted, input=kind)
    assert "+ c) first (t = " in with_bias.describe()
    assert "factors 0: 0.5, 1: 1, 2: 2)." in with_bias.describe()


@pytest.mark.parametrize(
    ("temperature", "end"), [(1.0, "first."), (0.5, "first, recalibrated by a temperature of 0.5.")]
)
def test_one_score_becomes_probabilities_by_proportional_odds(temperature, end):
    link = TemperatureScaling(np.array([temperature]), np.zeros((1, 3)), 0.0)
    ordinal = OrdinalMap(2.0, np.array([-1.0, 1.0]))
    rule = mw.CostRule((np.arange(3),), link, input="scores", ordinal_map=ordinal)
    line = rule.describe().splitlines()[1]
    assert line == f"The score is mapped to the probabilities of all classes by proportional odds {end}"
    rule = mw.WeightedRule(Loss.argmax(3), (np.arange(3),), link, input="scores", ordinal_map=ordinal)
    assert rule.describe().startswith("By the score: 0 up to -0.")


def test_log_probabilities_are_probabilities_without_a_map():
    link = TemperatureScaling(np.ones(1), np.zeros((1, 3)), 0.0)
    rule = mw.WeightedRule(Loss.argmax(3), (np.arange(3),), link, input="log_proba")
    assert rule.describe() == "Predict the most probable class."


def several_outputs(n_outputs, temperature, shared=True):
    link = TemperatureScaling(temperature, np.zeros((n_outputs, 2)), 0.0)
    loss = threshold_loss(np.full(1 if shared else n_outputs, 0.3))
    return mw.WeightedRule(loss, (np.arange(2),) * n_outputs, link, multioutput=True, input="logits")


def test_outputs_that_share_a_map_and_a_threshold_are_one_sentence():
    lines = several_outputs(12, np.ones(12)).describe().splitlines()
    assert lines == ["The same for each of 12 outputs:", "Predict 1 when its logit exceeds -0.8473, else 0."]


def test_a_shared_threshold_on_probabilities_is_named_beside_those_on_logits():
    lines = several_outputs(2, np.array([1.0, 2.0])).describe().splitlines()
    assert lines == [
        "One threshold for all outputs, 0.3 on their probabilities; thresholds on the logits:",
        "Output 0: Predict 1 when its logit exceeds -0.8473, else 0.",
        "Output 1: Predict 1 when its logit exceeds -0.4236, else 0.",
        "  The threshold applies to the logit itself; the probability of 1 is sigmoid(2 * logit).",
    ]


def test_many_outputs_are_summarised_in_the_unit_of_the_rows():
    temperature = np.linspace(1, 2, 12)
    lines = several_outputs(12, temperature, shared=False).describe().splitlines()
    middle = f"{np.median(logit(0.3) / temperature):.4g}"
    assert lines == [
        f"12 binary outputs: predict class 1 when its logit exceeds a threshold, -0.8473 to -0.4236, median {middle}.",
        "Logits are mapped to probabilities by sigmoid(t * logit) first, for each output: t from 1 to 2, median 1.5; "
        "thresholds apply to the logits themselves.",
    ]


def test_no_sentence_on_logits_speaks_of_more_or_less_extreme():
    p, y = worlds.binary(400)
    for kind, numbers in (("logits", logit(p)), ("scores", 3 * logit(p) + 1)):
        text = mw.optimize(numbers, y, "f1", input=kind).rule.describe()
        assert "extreme" not in text
        assert "model's probability" not in text
