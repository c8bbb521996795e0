"""Values of sets of labels, by hand-written counts."""

import numpy as np
import pytest
from scipy import sparse

from metricwise.core.label_sets import LabelSets
from metricwise.goals.labels import read_label_aims
from metricwise.goals.spec import GoalSpec
from metricwise.inference.labels import LabelJudge, deal_blocks, standard_error


def _sets(indicators):
    csr = sparse.csr_array(indicators)
    return LabelSets(csr.indptr.astype(np.int64), csr.indices, csr.shape[1])


def _aim(metric, n_labels, targets=None, row_weight=None, **options):
    ((_, aim),) = read_label_aims(metric, GoalSpec(metric, **options), n_labels, targets, row_weight).values()
    return aim


@pytest.fixture
def world():
    rng = np.random.default_rng(0)
    return rng.random((40, 6)) < 0.3, rng.random((40, 6)) < 0.4, rng.random(40), rng.random(6)


def test_instance_average_weighs_labels(world):
    true, decided, row_weight, label_weight = world
    judge = LabelJudge(_sets(true), row_weight, deal_blocks(40, None, 0))
    aim = _aim("jaccard", 6, average="instance", output_weight=label_weight)
    union = (true | decided) @ label_weight
    values = np.divide((true & decided) @ label_weight, union, out=np.zeros(40), where=union > 0)
    assert judge.value(aim, _sets(decided)) == pytest.approx(np.average(values, weights=row_weight), abs=1e-12)


def test_values_without_blocks_are_those_of_the_other_rows(world):
    true, decided, row_weight, _ = world
    block = deal_blocks(40, None, 0)
    judge = LabelJudge(_sets(true), row_weight, block)
    for metric in ("f1_weighted", "f1_macro", "f1_samples", "label_coverage"):
        aim = _aim(metric, 6)
        expected = []
        for b in range(20):
            rows = np.flatnonzero(block != b)
            expected.append(judge.take(rows).value(aim, _sets(decided[rows])))
        np.testing.assert_allclose(judge.left_out(aim, _sets(decided)), expected, atol=1e-12)


def test_propensity_precision_of_the_best_decisions_is_one_with_weights(world):
    true, _, row_weight, _ = world
    few = true & (true.cumsum(axis=1) <= 2)
    judge = LabelJudge(_sets(few), row_weight, deal_blocks(40, None, 0))
    aim = _aim("propensity_precision@2", 6, _sets(few), row_weight)
    assert judge.value(aim, _sets(few)) == pytest.approx(1.0, abs=1e-12)


def test_intervals_of_few_blocks_have_the_quantile_of_student(world):
    from scipy.stats import t

    true, decided, _, _ = world
    judge = LabelJudge(_sets(true), None, deal_blocks(40, np.arange(40) % 4, 0))
    aim = _aim("f1_macro", 6)
    without = judge.left_out(aim, _sets(decided))
    assert len(without) == 4
    estimate = judge.estimate(0.5, without)
    assert estimate.high - 0.5 == pytest.approx(t.ppf(0.975, 3) * standard_error(without))
