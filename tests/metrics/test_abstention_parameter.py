"""Whether a rule may abstain, as users say it."""

import numpy as np
import pytest
from sklearn.base import clone

import metricwise as mw
from metricwise.metrics.abstention import AbstentionCost, read_abstain


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (-0.1, "abstain must be True, None, or the cost of an abstention, a finite number of at least 0, got -0.1"),
        (np.inf, "got inf"),
        (np.nan, "got nan"),
        ("often", "got 'often'"),
    ],
)
def test_what_is_no_cost_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        read_abstain(given)


@pytest.mark.parametrize("cost", [-1, np.nan, False, "low"])
def test_a_cost_is_checked_when_it_is_said(cost):
    with pytest.raises(
        ValueError, match=r"^Abstention: cost must be None, True, or a finite number of at least 0, got"
    ):
        mw.Abstention(cost)


@pytest.mark.parametrize(("said", "cost"), [(True, None), (0.2, 0.2), (mw.Abstention(0.2, "ask"), 0.2)])
def test_all_ways_to_say_it_mean_the_same(said, cost):
    assert read_abstain(said).terms == AbstentionCost(cost)


def test_none_and_false_never_abstain():
    assert read_abstain(None) is read_abstain(False) is None


def test_clones_are_equal():
    abstention = mw.Abstention(0.2, label="ask")
    assert clone(abstention) == abstention
    assert clone(abstention).set_params(cost=0.3) == mw.Abstention(0.3, label="ask")
    assert abstention.cost == 0.2
