"""Which constraints are proportions: by their cells, against shares of counted rows."""

import numpy as np
import pytest

from metricwise import metrics
from metricwise.goals.constraint import Constraint
from metricwise.goals.proportions import proportions_of
from metricwise.metrics.abstention import Abstained, Abstaining

PROPORTIONS = [
    metrics.Precision(index=1),
    metrics.Precision(index=0),
    metrics.Recall(index=1),
    metrics.Specificity(index=1),
    metrics.FalsePositiveRate(index=1),
    metrics.PredictedShare(index=0),
    metrics.Accuracy(),
    metrics.Jaccard(index=1),
]
OTHERS = [
    metrics.FBeta(index=1),
    metrics.Kappa(),
    metrics.BalancedAccuracy(),
    metrics.GMean(),
    metrics.MCC(),
    metrics.Cost([[0, 1, 1], [2, 0, 1], [1, 1, 0]]),
    metrics.QuadraticKappa() if hasattr(metrics, "QuadraticKappa") else metrics.Kappa(),
]


@pytest.mark.parametrize("metric", PROPORTIONS, ids=lambda metric: metric.name)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_share_of_successes_in_trials_is_the_metric(metric, n_classes):
    rng = np.random.default_rng(0)
    (bound,) = proportions_of(Constraint(metric, low=0.5), n_classes, tuple(range(n_classes)))
    for _ in range(20):
        cells = rng.integers(1, 30, (n_classes, n_classes))
        successes, trials = bound.count(cells)
        assert successes / trials == pytest.approx(float(metric.value(cells / cells.sum())))


@pytest.mark.parametrize("metric", OTHERS, ids=lambda metric: metric.name)
def test_other_metrics_are_none(metric):
    assert proportions_of(Constraint(metric, low=0.1), 3, (0, 1, 2)) is None


def test_of_rules_that_may_abstain():
    cells = np.array([[30, 5, 15], [4, 26, 20]])
    labels = (0, 1)

    def share(metric):
        (bound,) = proportions_of(Constraint(metric, low=0.5), 2, labels)
        successes, trials = bound.count(cells)
        return successes / trials

    assert share(Abstaining(metrics.Accuracy())) == 56 / 65
    assert share(Abstaining(metrics.Recall(index=1))) == 26 / 30
    assert share(Abstaining(metrics.Recall(index=1), None, False)) == 26 / 50
    assert share(Abstaining(Abstained())) == 35 / 100


def test_the_smallest_recall_is_every_recall_and_abstentions_are_misses():
    bounds = proportions_of(Constraint(metrics.MinRecall(), low=0.5), 3, (0, 1, 2))
    cells = np.arange(1, 10).reshape(3, 3)
    assert [bound.count(cells) for bound in bounds] == [(1, 6), (5, 15), (9, 24)]
    undecided = proportions_of(Constraint(Abstaining(metrics.MinRecall()), low=0.5), 2, (0, 1))
    cells = np.array([[30, 5, 15], [4, 26, 20]])
    assert [bound.count(cells) for bound in undecided] == [(30, 50), (26, 50)]
    assert proportions_of(Constraint(metrics.MinRecall(), high=0.5), 3, (0, 1, 2)) is None


def test_two_bounds_are_two_proportions():
    bounds = proportions_of(Constraint(metrics.PredictedShare(index=1), 0.1, 0.2), 2, (0, 1))
    assert [(bound.bound, bound.is_floor) for bound in bounds] == [(0.1, True), (0.2, False)]


def test_gaps_and_distances_to_the_prior_are_none():
    share = metrics.PredictedShare(index=1)
    assert proportions_of(Constraint(share, high=0.1, group=0, minus=1), 2, (0, 1)) is None
    assert proportions_of(Constraint(share, -0.1, 0.1, near_prior=True), 2, (0, 1)) is None
