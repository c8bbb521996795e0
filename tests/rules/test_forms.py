"""The form of what a rule decides about an output: one of five."""

import numpy as np
import pytest

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.rules.forms import CutPoints, LossTable, Regions, Threshold, Weights, form_of

LABELS = (np.array(["a", "b", "c"]),)
PAIR = (np.array([0, 1]),)


def of_table(table, classes, **options):
    return mw.WeightedRule(Loss(full=np.array([table], dtype=float)), classes, **options)


@pytest.mark.parametrize(("threshold", "value"), [(0.25, 0.25), (-np.inf, -np.inf), (np.inf, np.inf)])
def test_two_classes_have_a_threshold(threshold, value):
    form = form_of(mw.WeightedRule.from_thresholds(threshold), 0)
    assert isinstance(form, Threshold)
    assert form.value == value


def test_an_inverted_rule_has_no_threshold_value_but_the_last_probability():
    form = form_of(of_table([[1, 0], [0, 1]], PAIR), 0)
    assert isinstance(form, Threshold)
    assert np.isnan(form.value)
    assert (form.at_zero, form.at_one) == (1, 0)
    assert form.last == pytest.approx(0.5)


def test_two_classes_and_abstentions_have_regions():
    form = form_of(of_table([[0, 1, 0.25], [1, 0, 0.25], [9, 9, 9]], PAIR, abstain_label=-1), 0)
    assert isinstance(form, Regions)
    assert [region.label for region in form.regions] == [0, -1, 1]
    assert [region.low for region in form.regions] == pytest.approx([0, 0.25, 0.75])


def test_class_weights():
    form = form_of(mw.WeightedRule.from_weights([1, 2, 4], classes=LABELS[0]), 0)
    assert isinstance(form, Weights)
    assert (form.weights.tolist(), form.bonuses.tolist(), form.least) == ([1, 2, 4], [0, 0, 0], None)
    loss = Loss(diagonal=np.array([[-1.0, -1, -1, 0]]), offset=np.array([[0.0, 0, 0, -0.6]]))
    form = form_of(mw.WeightedRule(loss, LABELS, abstain_label="?"), 0)
    assert isinstance(form, Weights)
    assert form.least == pytest.approx(0.6)


def test_cut_points_of_a_scale_that_only_the_whole_rule_knows():
    rule = mw.WeightedRule.from_cut_points([0.5, 1.25], classes=LABELS[0])
    form = form_of(rule, 0)
    assert isinstance(form, CutPoints)
    assert form.cut_points.tolist() == [0.5, 1.25]
    turned = of_table(rule.loss.tensor()[0][::-1, ::-1], (LABELS[0][::-1],))
    order = mw.RuleMetadata(order=[["a", "b", "c"]])
    assert isinstance(form_of(turned, 0, order), CutPoints)


def test_any_other_loss_is_a_table():
    table = [[0, 1, 5], [2, 0, 1], [1, 7, 0]]
    form = form_of(of_table(table, LABELS), 0)
    assert isinstance(form, LossTable)
    assert form.losses.tolist() == table
    table = [[0, 1, 5, 1], [2, 0, 1, 1], [1, 7, 0, 1]]
    form = form_of(of_table([*table, [9, 9, 9, 9]], LABELS, abstain_label="?"), 0)
    assert isinstance(form, LossTable)
    assert form.losses.tolist() == table


@pytest.mark.parametrize(
    "table", [[[0, 1e308, -1e308], [1, 0, 1], [2, 1, 0]], [[0, 1, 4], [1, 0, 1], [-1e308, 1e308, 0]]]
)
def test_losses_near_the_largest_number_are_no_cut_points(table):
    rule = of_table(table, LABELS)
    assert not isinstance(form_of(rule, 0), CutPoints)
    assert isinstance(rule.describe(), str)
