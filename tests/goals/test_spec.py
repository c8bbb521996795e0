"""What was asked is read once, from a schema alone."""

import numpy as np
import pytest

import metricwise as mw
from metricwise.core.schema import Schema
from metricwise.data.open import open_rows
from metricwise.data.row_spec import RowSpec
from metricwise.goals.spec import GoalSpec

CLASSES = Schema((np.array(["high", "low", "mid"]),), order=(("low", "mid", "high"),))
ONE_OF_TWO = Schema((np.array(["no", "yes"]),))


def test_a_goal_needs_no_rows():
    spec = GoalSpec("accuracy", record=["macro_f1"], subject_to="recall[low] >= 0.5", abstain=0.2, confidence=None)
    goal = spec.read(CLASSES)
    assert (goal.aim.name, list(goal.record)) == ("accuracy", ["macro_f1"])
    assert [one.name for one in goal.constraints] == ["recall[low] >= 0.5"]
    assert (goal.abstention.cost, goal.schema.abstain_label, goal.confidence) == (0.2, "abstain", None)


def test_what_rows_show_is_the_same_goal():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(3), 60), np.array(["high", "low", "mid"])[np.arange(60) % 3]
    schema, source = open_rows(RowSpec(proba, y, order=["low", "mid", "high"]))
    spec = GoalSpec("quadratic_kappa", order=["low", "mid", "high"])
    by_rows, by_schema = (spec.read(one) for one in (schema, CLASSES))
    assert by_rows.aim.metric == by_schema.aim.metric
    assert by_rows.aim.name == by_schema.aim.name
    assert source.labelled


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "f1"}, "pos_label"),
        ({"metric": "accuracy", "confidence": 2}, r"confidence must be a number in \[0.5, 1\) or None, got 2"),
        ({"metric": "accuracy", "abstain": -1}, "abstain must be True, None, or the cost"),
        ({"metric": "accuracy", "subject_to": "recall[maybe] >= 0.5"}, "names the class 'maybe'"),
        ({"metric": mw.worst_group("accuracy")}, "so sensitive_features must give the group of every row"),
        ({"metric": "accuracy", "prior": [0.2, 0.2]}, "prior must be non-negative and sum to 1"),
        ({"metric": "accuracy", "output_weight": [1, 2]}, r"output_weight must have shape \(1,\)"),
    ],
)
def test_what_is_wrong_is_said_before_any_row_is_read(options, words):
    with pytest.raises(ValueError, match=words):
        GoalSpec(**options).read(ONE_OF_TWO)


def test_groups_are_known_by_name():
    goal = GoalSpec("accuracy", subject_to="demographic_parity <= 0.1", pos_label="yes").read(ONE_OF_TWO, ["a", "b"])
    assert {(one.group, one.minus) for one in goal.constraints} == {(0, 1), (1, 0)}
    with pytest.raises(ValueError, match="prior and sensitive_features cannot both be given"):
        GoalSpec("accuracy", prior=[0.5, 0.5]).read(ONE_OF_TWO, ["a", "b"])
