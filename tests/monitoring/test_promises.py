"""Which promises of which rules can be watched, and what is said of the others."""

import numpy as np
import pytest

import metricwise as mw
import worlds
from metricwise.goals.constraint import Constraint
from metricwise.goals.resolve import complete_text
from metricwise.monitoring.forms import RANDOM, PairedRatio, RatiosMean, RowRatio
from metricwise.monitoring.promises import read_promises

BINARY = mw.WeightedRule.from_thresholds(0.5)
WORDS = mw.WeightedRule.from_weights({"low": 1, "mid": 2, "urgent": 3})
OUTPUTS = mw.WeightedRule.from_thresholds({"news": 0.3, "sport": 0.6})
GROUPED = mw.GroupedRule((BINARY, mw.WeightedRule.from_thresholds(0.4)), ("a", "b"))


def promises_of(rule, subject_to=None, pos_label=None, labelled=RANDOM):
    return read_promises(rule, subject_to, pos_label, labelled)


@pytest.mark.parametrize(
    ("text", "form", "bounds"),
    [
        ("precision >= 0.9", RowRatio, (0.9, np.inf)),
        ("0.05 <= share <= 10 %", RowRatio, (0.05, 0.1)),
        ("false_positive_rate <= 0.2", RowRatio, (-np.inf, 0.2)),
        ("share within 0.1 of prior", RowRatio, (-0.1, 0.1)),
        ("kappa >= 0.3", PairedRatio, (0.3, np.inf)),
        ("macro_f1 >= 0.5", RatiosMean, (0.5, np.inf)),
        ("min_recall >= 0.5", RatiosMean, (0.5, np.inf)),
        ("mcc >= 0.5", RatiosMean, (0.5, np.inf)),
    ],
)
def test_what_can_be_watched(text, form, bounds):
    (promise,) = promises_of(BINARY, text)
    assert isinstance(promise.form, form)
    assert (promise.name, promise.low, promise.high) == (text, *bounds)
    assert len(promise.sides) == np.isfinite(bounds).sum()


def test_the_constraints_of_the_fit_are_the_promises():
    proba, y = worlds.binary(3000)
    rule = mw.optimize(proba, y, "recall", subject_to=["precision >= 0.5", mw.at_most("share", 0.4)]).rule
    assert [promise.name for promise in promises_of(rule)] == ["precision >= 0.5", "share <= 0.4"]
    assert [promise.name for promise in promises_of(rule, "f1 >= 0.3")] == ["f1 >= 0.3"]


def test_costs_have_the_range_of_their_table():
    cost = mw.metrics.Cost([[0, 1], [10, 0]])
    (promise,) = promises_of(BINARY, mw.at_least(cost, -0.5))
    assert promise.form.limits == (-10.0, 0.0)
    a, b = promise.form.observe(np.array([[0], [1], [1]]), np.array([[1], [0], [1]]))
    assert (a.tolist(), b.tolist()) == ([-1.0, -10.0, 0.0], [1.0, 1.0, 1.0])


def test_outputs_are_pooled_or_named():
    pooled, named = promises_of(OUTPUTS, ["precision >= 0.5", "recall[sport] >= 0.4"])
    assert (pooled.output, pooled.form.n_outputs, named.output, named.form.n_outputs) == (None, 2, 1, 1)
    codes, decisions = np.array([[1, 0], [1, -1], [0, 1]]), np.array([[1, 1], [1, 1], [0, 0]])
    a, b = pooled.form.observe(codes, decisions)
    assert (a.tolist(), b.tolist()) == ([1.0, 1.0, 0.0], [2.0, 1.0, 0.0])
    low, high = pooled.form.slack_range(np.array([0.5]), 1.0)
    assert (low[0], high[0]) == (-1.0, 1.0)


def test_promises_in_groups_are_about_their_rows():
    first, second = promises_of(GROUPED, "accuracy >= 0.8 in every group")
    assert [first.name, second.name] == ["accuracy >= 0.8 in group 'a'", "accuracy >= 0.8 in group 'b'"]
    codes = np.array([[0], [1], [-1], [1]])
    assert second.rows(codes, np.array([1, 0, 1, 1])).tolist() == [0, 3]
    (one,) = promises_of(GROUPED, "recall >= 0.5 in group b")
    assert one.group == 1


def test_the_positive_class_is_that_of_the_rule_or_of_the_call():
    proba, y = worlds.binary(2000, names=["fine", "fraud"])
    rule = mw.optimize(proba, y, "recall", pos_label="fraud", subject_to="precision >= 0.5").rule
    of_rule, of_call = promises_of(rule), promises_of(rule, "precision >= 0.5", pos_label="fine")
    assert np.flatnonzero(of_rule[0].form.B.any(axis=0)).tolist() == [1]
    assert np.flatnonzero(of_call[0].form.B.any(axis=0)).tolist() == [0]
    with pytest.raises(ValueError, match="pos_label"):
        promises_of(WORDS, "precision >= 0.5")


def test_rules_that_abstain():
    proba, y = worlds.binary(3000)
    selective = mw.optimize(proba, y, "accuracy", abstain=True, subject_to="abstained <= 0.2 and precision >= 0.5").rule
    share, precision = promises_of(selective)
    assert not share.form.needs_labels
    assert precision.form.A.shape == (2, 3)
    decisions = np.array([[2], [1], [1]])
    assert share.form.observe(np.full((3, 1), -1), decisions)[0].tolist() == [1.0, 0.0, 0.0]
    assert precision.form.observe(np.array([[1], [1], [0]]), decisions)[1].tolist() == [0.0, 1.0, 1.0]
    costed = mw.optimize(proba, y, "accuracy", abstain=0.2).rule
    (recall,) = promises_of(costed, "recall >= 0.3")  # with a cost, abstentions are misses
    assert recall.form.observe(np.array([[1], [1]]), np.array([[2], [1]]))[1].tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="kappa of a rule that may abstain is none of these"):
        promises_of(costed, "kappa >= 0.3")
    by_function = selective.with_metadata(metric="my_own")
    with pytest.raises(ValueError, match="how abstentions count in constraints depends on the metric 'my_own'"):
        promises_of(by_function)


def test_refusals():
    with pytest.raises(ValueError, match=r"subject_to must name what is promised, .* the rule was fitted without"):
        promises_of(BINARY)
    with pytest.raises(ValueError, match=r"subject_to must name what is promised, .* got none"):
        promises_of(BINARY, [])
    with pytest.raises(
        ValueError, match=r"'recall gap <= 0\.1' bounds a gap between groups, which is no mean over rows"
    ):
        promises_of(GROUPED, "recall gap <= 0.1")
    with pytest.raises(ValueError, match=r"'equalized_odds <= 0\.1' bounds a gap between groups"):
        promises_of(GROUPED, "equalized_odds <= 0.1")
    with pytest.raises(ValueError, match="is about groups, which this rule decides without; watch the rows of each"):
        promises_of(BINARY, "recall >= 0.5 in every group")
    with pytest.raises(ValueError, match="mcc is none of these"):
        promises_of(WORDS, "mcc >= 0.5")
    with pytest.raises(ValueError, match="weighted_f1 is none of these"):
        promises_of(WORDS, "weighted_f1 >= 0.5")
    with pytest.raises(ValueError, match="kappa of several outputs together is none of these"):
        promises_of(OUTPUTS, "kappa >= 0.5")
    with pytest.raises(ValueError, match="polynomial is none of these"):
        promises_of(BINARY, "polynomial >= 0.5")
    with pytest.raises(ValueError, match="can never be satisfied"):
        promises_of(BINARY, "precision >= 1.5")
    rule = BINARY.with_metadata(subject_to=["cost >= -0.5"])
    with pytest.raises(ValueError, match="the rule keeps only this text of its constraint, so pass subject_to="):
        promises_of(rule)


@pytest.mark.parametrize("labelled", ["by_decision", "by_class"])
def test_what_labels_cannot_show_is_refused_by_name(labelled):
    with pytest.raises(ValueError, match=f"'accuracy >= 0.5' cannot be known .*labelled='{labelled}'"):
        promises_of(BINARY, "accuracy >= 0.5", labelled=labelled)
    with pytest.raises(ValueError, match="cannot be known"):
        promises_of(OUTPUTS, "precision >= 0.5" if labelled == "by_decision" else "recall >= 0.5", labelled=labelled)


# -------------------------------------------------------------------------------------------- what a rule keeps as text


def constraint_of(subject_to, classes=(0, 1), pos_label=None):
    proba, y = worlds.binary(400)
    y = y if classes == (0, 1) else np.array(classes)[y]
    options = {"pos_label": pos_label} if pos_label is not None else {}
    return mw.optimize(
        np.c_[1 - proba, proba], y, "accuracy", subject_to=subject_to, classes=list(classes), **options
    ).rule


@pytest.mark.parametrize(
    ("subject_to", "options", "text"),
    [
        ("precision >= 0.3", {}, "precision >= 0.3"),
        ("precision >= 0.3", {"pos_label": 0}, "precision[0] >= 0.3"),
        ("precision >= 0.3", {"classes": ("a", "b"), "pos_label": "b"}, "precision['b'] >= 0.3"),
        (mw.at_least(mw.metrics.Precision(index=0), 0.3), {}, "precision[0] >= 0.3"),
        (mw.at_least(mw.metrics.Cost([[0, 1], [5, 0]]), -3.0), {}, "cost >= -3"),
        (
            mw.at_least(mw.metrics.BalancedAccuracy(adjusted=True), 0.01),
            {},
            "balanced_accuracy >= 0.01 (of a metric object)",
        ),
    ],
)
def test_a_rule_keeps_what_its_constraint_is_about(subject_to, options, text):
    """Without the class that the call named, another class would be watched."""
    assert constraint_of(subject_to, **options).metadata.subject_to == [text]


def test_a_text_that_says_all_is_left_alone():
    schema = BINARY.schema
    known = Constraint(mw.metrics.Precision(pos_label=1), low=0.5, name="precision >= 0.5")
    assert complete_text(known, schema, None) == "precision >= 0.5"
    unreadable = Constraint(mw.metrics.Precision(index=0), low=0.5, name="my own >= 0.5")
    assert complete_text(unreadable, schema, None) == "my own >= 0.5"
