"""Which metrics change with class shares, beside what their formulas say."""

import numpy as np
import pytest

import metricwise as mw
from metricwise.metrics.class_shares import depends_on_shares, fixed_gains
from metricwise.metrics.registry import get_metric

OF_RECALLS = ("balanced_accuracy", "g_mean", "h_mean", "q_mean", "min_recall", "macro_recall", "recall[1]")
OF_SHARES = ("accuracy", "f1[1]", "macro_f1", "kappa", "quadratic_kappa", "mcc", "precision[1]", "share[1]", "micro_f1")


def metric_of(name):
    if "[" in name:
        return get_metric(name.split("[")[0], index=1)
    return get_metric(name)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", OF_RECALLS)
def test_functions_of_recalls_do_not_depend_on_shares(name, k):
    assert not depends_on_shares(metric_of(name), k)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", OF_SHARES)
def test_others_do(name, k):
    assert depends_on_shares(metric_of(name), k)


def test_a_false_positive_rate_mixes_the_other_classes():
    rate = get_metric("false_positive_rate", index=1)
    assert not depends_on_shares(rate, 2)
    assert depends_on_shares(rate, 3)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("name", ["specificity", "false_positive_rate", "recall"])
def test_no_class_hides_behind_an_even_share(name, k):
    for index in range(k):
        assert fixed_gains(get_metric(name, index=index), k) is None


def test_functions_of_users_are_probed():
    recall = mw.metrics.from_function(lambda C: C[1, 1] / C[1].sum())
    hits = mw.metrics.from_function(lambda C: C[1, 1])
    assert not depends_on_shares(recall, 2)
    assert depends_on_shares(hits, 2)


@pytest.mark.parametrize(
    ("metric", "gains"),
    [
        (mw.metrics.Accuracy(), np.eye(3)),
        (mw.metrics.Cost([[0, 1, 2], [3, 0, 1], [5, 2, 0]]), -np.array([[0, 1, 2], [3, 0, 1], [5, 2, 0]])),
        (mw.metrics.Ordinal(), [[1, 0.5, 0], [0.5, 1, 0.5], [0, 0.5, 1]]),
    ],
)
def test_tables_that_do_not_depend_on_shares(metric, gains):
    assert np.allclose(fixed_gains(metric, 3), gains)


@pytest.mark.parametrize("name", ["balanced_accuracy", "f1[1]", "kappa", "g_mean", "macro_f1"])
def test_other_metrics_have_no_such_table(name):
    assert fixed_gains(metric_of(name), 3) is None


def test_the_price_of_an_abstention_is_part_of_the_table():
    priced = mw.metrics.Abstaining(mw.metrics.Accuracy(), cost=0.2)
    assert np.allclose(fixed_gains(priced, 2, n_extra=1)[:2], [[1, 0, 0.8], [0, 1, 0.8]])
    assert depends_on_shares(priced, 2, n_extra=1)
