"""Bounds that cannot be broken or kept, and what is said of those that were tightened."""

import re

import numpy as np
import pytest

import metricwise as mw
import worlds
from metricwise.goals.constraint_text import read_constraints
from metricwise.metrics.class_names import read_name

FIXED = {"confusion": "labels", "recalibrate": False}


# ---------------------------------------------------------------------------------------- bounds that cannot be broken


def world(n=1_500, seed=0):
    rng = np.random.default_rng(seed)
    return *worlds.binary(n, seed=rng), np.where(rng.random(n) < 0.5, "a", "b")


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ("share <= 2", r"is always satisfied: share is at most 1; write 2 % if you mean a percentage"),
        ("false_positive_rate <= 5", r"is always satisfied: false_positive_rate is at most 1; write 5 %"),
        ("recall <= 80", r"is always satisfied: recall is at most 1; write 80 %"),
        ("recall >= 80", r"can never be satisfied: recall is at most 1; write 80 %"),
        ("0.1 <= share <= 20", r"is always satisfied: share is at most 1; write 20 %"),
        ("recall >= -1", r"is always satisfied: recall is at least 0; leave it out"),
        ("share <= -0.5", r"can never be satisfied: share is at least 0; choose a bound"),
        ("kappa <= 300", r"is always satisfied: kappa is at most 1; leave it out"),
        ("demographic_parity <= 5", r"is always satisfied: a gap of share is at most 1; write 5 %"),
        ("recall gap <= 3", r"is always satisfied: a gap of recall is at most 1; write 3 %"),
        ("recall <= 80 in every group", r"is always satisfied: recall is at most 1; write 80 %"),
        (
            "share within 5 of prior",
            r"is always satisfied: the distance of share from the prior is at most 1; write 5 %",
        ),
    ],
)
def test_a_bound_outside_the_range_of_a_metric_is_refused(bound, message):
    p, y, group = world(100)
    with pytest.raises(ValueError, match=message):
        mw.optimize(p, y, "f1", subject_to=bound, sensitive_features=group)


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("share <= 1", "so it has no effect"),
        ("recall >= 0", "so it has no effect"),
        ("g_mean >= 0", "so it has no effect"),
        ("kappa <= 1", "so it has no effect"),
        ("share within 0.9 of prior", "so it has no effect"),
        ("demographic_parity <= 1", "so it has no effect"),
        ("f1 gap <= 1", "so it has no effect"),
        ("precision >= 0", "except if its metric is 0/0"),
        ("precision <= 1", "except if its metric is 0/0"),
    ],
)
def test_a_bound_that_no_rule_can_break_is_named(bound, words):
    p, y, group = world(600)
    found = mw.optimize(p, y, "f1", subject_to=bound, sensitive_features=group, strategy=mw.Strategy(**FIXED))
    assert f"No rule can violate '{bound}', {words}." in found.status
    assert found.constraints[0].margin == 0


@pytest.mark.parametrize(
    "bound", ["share <= 0.99", "recall >= 0.001", "share within 0.5 of prior", "recall gap <= 0.9"]
)
def test_of_a_bound_that_a_rule_can_break_nothing_is_said(bound):
    p, y, group = world(600)
    found = mw.optimize(p, y, "f1", subject_to=bound, sensitive_features=group, strategy=mw.Strategy(**FIXED))
    assert "No rule can violate" not in found.status


def test_a_frontier_against_costs_that_are_never_0_is_found():
    p, y, _ = world(300)
    frontier = mw.trade_off(p, y, "recall", mw.metrics.Cost([[1, 2], [5, 1]]), n_points=4)
    assert np.all(np.diff(frontier.others) > 0)


# ----------------------------------------------------------------------------------------- what is said of tightening


def test_bounds_that_were_tightened_are_called_so():
    p, y, _ = world(800)
    loose = mw.optimize(p, y, "recall", subject_to="precision >= 0.6", confidence=None)
    sure = mw.optimize(p, y, "recall", subject_to="precision >= 0.6")
    assert sure.value < loose.value  # on these rows more satisfies them
    assert loose.status.startswith("Optimal over all thresholds that satisfy the constraints.")
    assert sure.status.startswith("Optimal over all thresholds that satisfy the tightened constraints.")
    margin = sure.constraints[0].margin
    assert f"bounds were tightened on the given rows: precision >= 0.6 by {margin:.2g}" in sure.status
    assert "tightened" not in loose.status


def test_the_margin_is_no_more_than_the_distance_to_the_bound():
    p, y, _ = world(1_000, seed=2)
    group = np.where(np.arange(1_000) % 5 == 0, "few", "many")  # of the few, the bound is tightened by more
    floor = "recall >= 0.7 in every group"
    (promise,) = mw.optimize(p, y, "accuracy", subject_to=floor, sensitive_features=group).constraints
    assert 0 < promise.margin <= promise.value - 0.7 + 1e-6


def test_a_class_of_several_words_is_to_be_quoted():
    with pytest.raises(ValueError, match="must have quotes around a class that is not one word, 'sehr gut'"):
        read_constraints("recall[sehr gut] >= 0.8")
    with pytest.raises(ValueError, match="quotes around a class that is not one word, 'sehr gut'"):
        read_constraints("recall[topic, sehr gut] >= 0.8")
    with pytest.raises(ValueError, match=r"metric: .* quotes around a class that is not one word, 'a-b'"):
        read_name("recall[a-b]")
    with pytest.raises(ValueError, match=re.escape("must have ']' at character 9, got the end")):
        read_name("recall[a")
    assert read_constraints("recall['sehr gut'] >= 0.8")[0].labels == ("sehr gut",)


def test_the_least_abstentions_at_an_accuracy():
    rng = np.random.default_rng(0)
    P, y = worlds.multiclass(300, [1.2, 1.0, 1.0], seed=rng)
    options = {"abstain": mw.Abstention(label="?")}
    frontier = mw.trade_off(P, y, "accuracy", "abstained", n_points=12, **options)
    found = mw.optimize(P, y, "abstained", subject_to="accuracy >= 0.75", confidence=None, **options)
    decided = np.asarray(found.rule.predict(P))
    kept = decided != "?"
    right = np.array([int(label) for label in decided[kept]]) == y[kept]
    assert right.mean() >= 0.75
    assert -found.value == pytest.approx(1 - kept.mean(), abs=1e-12)
    # No point of the frontier that is as accurate abstains much less.
    assert 1 - kept.mean() <= frontier.others[frontier.values >= 0.75].min() + 0.02
    with pytest.warns(UserWarning, match="alone is lowest if every row is decided"):
        alone = mw.optimize(P, y, "abstained", **options)
    assert alone.value == 0


def test_bounds_on_abstentions_and_percentages_are_refused_for_what_they_are():
    rng = np.random.default_rng(0)
    proba = rng.random(200)
    y = (rng.random(200) < proba).astype(int)
    with pytest.raises(ValueError, match="abstained is at most 1; write 5 % if you mean a percentage"):
        mw.optimize(proba, y, "accuracy", abstain=True, subject_to="abstained <= 5")
    with pytest.raises(ValueError, match="recall is at most 1; leave it out"):
        mw.optimize(proba, y, "f1", subject_to="recall <= 200 %")
