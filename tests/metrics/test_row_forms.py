"""Metrics as means over rows and pairs of rows, beside their values on confusion matrices."""

import numpy as np
import pytest

import metricwise as mw
from metricwise.metrics.row_forms import precision_of, recall_of


def confusion(k, seed):
    return np.random.default_rng(seed).dirichlet(np.full(k * k, 0.6)).reshape(k, k)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", ["kappa", "linear_kappa", "quadratic_kappa"])
def test_kappa_is_a_ratio_of_means_over_pairs(name, k):
    metric = mw.metrics.get_metric(name)
    pairs, C = metric._of_pairs(k), confusion(k, seed=k)
    independent = np.outer(C.sum(axis=1), C.sum(axis=0))
    above = np.sum(pairs.own.A * C) + np.sum(pairs.crossed.A * independent)
    below = np.sum(pairs.own.B * C) + np.sum(pairs.crossed.B * independent)
    assert above / below == pytest.approx(float(metric.value(C)), abs=1e-12)
    assert pairs.limits == metric.range


def test_only_kappa_has_pairs_and_only_means_have_ratios():
    assert mw.metrics.Accuracy()._of_pairs(3) is None
    for name in ("accuracy", "kappa", "f1", "weighted_f1"):
        assert mw.metrics.get_metric(name)._of_ratios(2) is None
    assert mw.metrics.BalancedAccuracy(adjusted=True)._of_ratios(3) is None
    assert mw.metrics.MCC()._of_ratios(3) is None


def test_parts_are_recalls_and_precisions():
    C = confusion(3, seed=0)
    for k in range(3):
        for part, metric in ((recall_of, mw.metrics.Recall), (precision_of, mw.metrics.Precision)):
            assert float(part(k, 3).value(C)) == pytest.approx(float(metric(index=k).value(C)))


@pytest.mark.parametrize("metric", ["precision", "recall", "f1", "specificity", "share", "jaccard"])
def test_undecided_rows_count_as_misses_whatever_the_priors(metric):
    """The ratio of cells with a column for abstentions has the value of the metric that is bound to the priors."""
    base = mw.metrics.get_metric(metric)
    C = np.random.default_rng(1).dirichlet(np.ones(6)).reshape(2, 3)
    square = np.vstack([C, np.zeros(3)])
    expected = base._bind_undecided(square.sum(axis=1), [0, 1]).value(square)
    ratio = mw.metrics.Abstaining(base, None, False)._of_cells(2, [0, 1])
    assert float(ratio.value(square)) == pytest.approx(float(expected))
    accepted = mw.metrics.Abstaining(base)._of_cells(2, [0, 1])
    assert float(accepted.value(square)) == pytest.approx(float(base.value(C[:, :2] / C[:, :2].sum())))


def test_abstentions_are_a_share_of_cells():
    ratio = mw.metrics.Abstaining(mw.metrics.Abstained())._of_cells(2, [0, 1])
    assert float(ratio.value([[0.2, 0.3, 0.1], [0.1, 0.1, 0.2], [0, 0, 0]])) == pytest.approx(0.3)
    assert mw.metrics.Abstaining(mw.metrics.Accuracy(), 0.2)._of_cells(2, [0, 1]) is None
    assert mw.metrics.Abstaining(mw.metrics.BalancedAccuracy())._of_cells(2, [0, 1]) is None
