"""Values of sets of labels and their intervals: scikit-learn, the bootstrap, and fresh rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import f1_score, jaccard_score

import metricwise as mw
from metricwise.core.label_sets import LabelSets
from metricwise.inference.labels import LabelJudge, deal_blocks, standard_error
from metricwise.metrics.label_aims import MetricAim


def sets_of(dense: np.ndarray) -> LabelSets:
    csr = sparse.csr_array(dense.astype(np.int8))
    return LabelSets(csr.indptr.astype(np.int64), csr.indices, dense.shape[1])


def draw(seed: int, n_rows: int = 400, n_labels: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    eta = rng.beta(1, 2, (n_rows, n_labels))
    return rng.random(eta.shape) < eta, eta > 0.4


@pytest.mark.parametrize("average", ["micro", "macro", "instance"])
@pytest.mark.parametrize("weighted", [True, False])
def test_values_are_those_of_scikit_learn(average, weighted):
    true, decided = draw(0)
    weight = np.random.default_rng(1).random(400) if weighted else None
    judge = LabelJudge(sets_of(true), weight, deal_blocks(400, None, 0))
    suffix = {"instance": "samples"}.get(average, average)
    for metric, score in ((mw.metrics.FBeta(), f1_score), (mw.metrics.Jaccard(), jaccard_score)):
        value = judge.value(MetricAim(metric, average, "metric"), sets_of(decided))
        expected = score(true, decided, average=suffix, sample_weight=weight, zero_division=0)
        assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("average", ["micro", "macro", "instance"])
def test_values_without_a_block_are_those_of_the_other_rows(average):
    true, decided = draw(2)
    judge = LabelJudge(sets_of(true), None, deal_blocks(400, None, 3))
    aim = MetricAim(mw.metrics.FBeta(), average, "f1")
    for block, value in zip(judge.block_ids, judge.left_out(aim, sets_of(decided)), strict=True):
        rest = np.flatnonzero(judge.block != block)
        assert value == pytest.approx(judge.take(rest).value(aim, sets_of(decided[rest])))


def test_rows_of_a_cluster_are_in_one_block():
    clusters = np.random.default_rng(0).integers(0, 90, 1000)
    block = deal_blocks(1000, clusters, 0)
    assert all(len(np.unique(block[clusters == cluster])) == 1 for cluster in range(90))


@pytest.mark.parametrize("average", ["micro", "macro", "instance"])
def test_standard_errors_are_those_between_sets_of_rows(average):
    aim = MetricAim(mw.metrics.FBeta(), average, "f1")
    values, errors = [], []
    for seed in range(120):
        true, decided = draw(seed, 200)
        judge = LabelJudge(sets_of(true), None, deal_blocks(200, None, seed))
        values.append(judge.value(aim, sets_of(decided)))
        errors.append(standard_error(judge.left_out(aim, sets_of(decided))))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)


def test_intervals_hold_the_difference_of_all_rows():
    aim = MetricAim(mw.metrics.FBeta(), "macro", "f1")
    true, _ = draw(1, 200_000)
    rng = np.random.default_rng(1)
    eta = rng.beta(1, 2, (200_000, 6))
    true = rng.random(eta.shape) < eta
    first, second = eta > 0.3, eta > 0.5
    truth = f1_score(true, first, average="macro") - f1_score(true, second, average="macro")
    covered = 0
    for start in range(0, 60_000, 300):
        rows = slice(start, start + 300)
        judge = LabelJudge(sets_of(true[rows]), None, deal_blocks(300, None, start))
        difference = judge.compare(aim, sets_of(first[rows]), sets_of(second[rows])).difference
        covered += difference.low <= truth <= difference.high
    assert 0.9 <= covered / 200 <= 0.99
