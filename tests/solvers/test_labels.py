"""Searches over very many labels, against enumeration of all decisions about few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import metricwise as mw
from metricwise.core.budget import NO_BUDGET, Budget
from metricwise.data.label_rows import read_label_rows
from metricwise.metrics.label_aims import CoverageAim, LabelAim, LabelCounts, LabelTable, MetricAim
from metricwise.oracles.labels import LabelOracle
from metricwise.solvers.labels import expected_table, label_form, maximise_labels, own_thresholds
from metricwise.solvers.result import Outcome
from tests.worlds.labels import all_decisions, all_label_sets, dense_counts, label_world, tiny_labels

BUDGETS = [Budget(0, 1), Budget(0, 2), Budget(1, 2), Budget(2, 2), Budget(0, 4)]
METRICS: dict[str, Any] = {
    "f1": mw.metrics.FBeta(),
    "f2": mw.metrics.FBeta(beta=2.0),
    "jaccard": mw.metrics.Jaccard(),
    "precision": mw.metrics.Precision(),
}


def oracle_of(proba: Any, budget: Budget, confusion: Any = "expected", **fields: Any) -> LabelOracle:
    return LabelOracle(read_label_rows(proba).block(), budget, confusion, **fields)


def counts_of(eta: np.ndarray, decided: np.ndarray) -> LabelCounts:
    return LabelCounts(*dense_counts(eta, decided), float(len(eta)))


def value_of_table(oracle: LabelOracle, aim: LabelAim, table: LabelTable) -> float:
    return aim.value(oracle.count([table])[0])


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("sparse_rows", [True, False], ids=["sparse", "dense"])
def test_the_oracle_of_a_table_is_best_over_all_label_sets_of_a_row(budget, sparse_rows):
    rng = np.random.default_rng(0)
    for _ in range(40):
        n_labels = int(rng.integers(max(budget.high, 2), 6))
        eta = tiny_labels(rng, 6, n_labels)
        scale, offset = rng.normal(size=n_labels), rng.normal(scale=0.5, size=n_labels)
        oracle = oracle_of(sparse.csr_array(eta) if sparse_rows else eta, budget)
        counts = oracle.count([LabelTable(scale, offset)])[0]
        gained = float(scale @ counts.hits + offset @ counts.predicted)
        sets = all_label_sets(n_labels, budget.low, budget.high)
        best = sum(max(float((scale * row + offset) @ labels) for labels in sets) for row in eta)
        assert gained == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("name", ["f1", "f2", "jaccard"])
@pytest.mark.parametrize("budget", [Budget(0, 2), Budget(2, 2), Budget(1, 3)], ids=str)
def test_pooled_ratios_are_best_over_all_decisions_on_expected_counts(name, budget):
    rng = np.random.default_rng(1)
    for _ in range(8):
        eta = tiny_labels(rng, 3, 4)
        aim = MetricAim(METRICS[name], "micro", name)
        search = maximise_labels(oracle_of(sparse.csr_array(eta), budget), aim)
        best = max(aim.value(counts_of(eta, decided)) for decided in all_decisions(3, 4, budget.low, budget.high))
        assert search.outcome is Outcome.OPTIMAL
        assert search.value == pytest.approx(best, abs=1e-9)


def test_a_pooled_ratio_without_a_budget_is_best_over_all_decisions():
    rng = np.random.default_rng(2)
    for _ in range(6):
        eta = tiny_labels(rng, 3, 4)
        aim = MetricAim(METRICS["f1"], "micro", "f1")
        search = maximise_labels(oracle_of(sparse.csr_array(eta), NO_BUDGET), aim)
        best = max(aim.value(counts_of(eta, decided)) for decided in all_decisions(3, 4, 0, 4))
        assert search.value == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("metric", ["recall", "hamming_accuracy"])
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_linear_aims_are_best_over_all_decisions(metric, average):
    rng = np.random.default_rng(3)
    for _ in range(10):
        eta = np.maximum(tiny_labels(rng, 3, 4), 1e-3)
        aim = MetricAim(mw.metrics.resolve(metric, "multilabel").metric, average, metric)
        search = maximise_labels(oracle_of(sparse.csr_array(eta), Budget(2, 2)), aim)
        if metric == "recall" and average == "macro":
            # What is maximised is the recall that rare labels are expected to have: the weights are damped.
            true = eta.sum(axis=0)
            weight = -np.expm1(-true) / true
            best = sum(np.sort(weight * row)[-2:].sum() for row in eta)
            table = search.table
            counts = oracle_of(sparse.csr_array(eta), Budget(2, 2)).count([table])[0]
            assert float(weight @ counts.hits) == pytest.approx(best, abs=1e-12)
        else:
            best = max(aim.value(counts_of(eta, decided)) for decided in all_decisions(3, 4, 2, 2))
            assert search.value == pytest.approx(best, abs=1e-12)


def damped_value(name: str, eta: np.ndarray, decided: np.ndarray) -> float:
    """Return the expected macro-average by its formula, ``hits * (1 - exp(-x)) / x``."""
    hits, predicted, true = dense_counts(eta, decided)
    size = {"f1": (true + predicted) / 2, "precision": predicted, "f2": (4 * true + predicted) / 5}[name]
    size = np.maximum(size, 1e-12)
    return float(np.mean(hits * -np.expm1(-size) / size))


@pytest.mark.parametrize("name", ["f1", "precision"])
def test_macro_with_a_budget_comes_close_to_the_best_of_all_decisions(name):
    rng = np.random.default_rng(4)
    shares = []
    for _ in range(25):
        eta = tiny_labels(rng, 4, 4)
        oracle = oracle_of(sparse.csr_array(eta), Budget(1, 1))
        aim = MetricAim(METRICS[name], "macro", name)
        weight = np.full(4, 0.25)
        start = expected_table(aim.ratio, LabelCounts(np.zeros(4), np.zeros(4), eta.sum(axis=0), 4.0), weight)
        ascent = oracle.ascend(label_form(aim.ratio), weight, start, 3, true=eta.sum(axis=0))
        decided = np.zeros_like(eta)
        for row, entries in enumerate(ascent.chosen):
            for entry in entries:
                label = oracle.block.indices[entry] if entry >= 0 else -entry - 2
                if entry != -1:
                    decided[row, label] = 1
        best = max(damped_value(name, eta, choice) for choice in all_decisions(4, 4, 1, 1))
        shares.append(damped_value(name, eta, decided) / best)
        assert decided.sum(axis=1).tolist() == [1.0] * 4
    assert np.mean(shares) > 0.97


@pytest.mark.parametrize("name", ["f1", "precision", "f2"])
def test_thresholds_of_single_labels_are_close_to_the_best(name):
    rng = np.random.default_rng(5)
    shares = []
    for _ in range(40):
        eta = tiny_labels(rng, 30, 1)
        aim = MetricAim(METRICS[name], "macro", name)
        oracle = oracle_of(sparse.csr_array(eta), NO_BUDGET)
        table = maximise_labels(oracle, aim).table
        decided = (table.scale * eta + table.offset > 0).astype(float)
        cuts = [(eta > cut).astype(float) for cut in np.append(0.0, np.unique(eta))]
        best = max(damped_value(name, eta, choice) for choice in cuts)
        shares.append(damped_value(name, eta, decided) / best)
    assert min(shares) > 0.9
    assert np.mean(shares) > 0.995


def test_coverage_by_rows_covers_more_labels_than_the_most_probable_ones():
    proba, _ = label_world(400, 60, seed=6)
    oracle = oracle_of(proba, Budget(0, 1))
    search = maximise_labels(oracle, CoverageAim())
    dense = proba.toarray()
    scale, offset = (np.broadcast_to(part, 60) for part in search.table)
    decided = np.zeros_like(dense)
    decided[np.arange(400), (scale * dense + offset).argmax(axis=1)] = 1
    top = np.zeros_like(dense)
    top[np.arange(400), dense.argmax(axis=1)] = 1
    covered, covered_by_top = (1 - np.prod(1 - dense * choice, axis=0) for choice in (decided, top))
    assert covered.sum() > covered_by_top.sum()


def test_own_thresholds_are_those_of_the_largest_f1_on_labels():
    proba, true = label_world(300, 20, seed=7)
    rows = read_label_rows(proba)
    from metricwise import kernels

    values = np.abs(rows.values)
    kernels.label_mark(values, rows.indptr, rows.indices, 20, true.indptr.astype(np.int64), true.indices)
    oracle = LabelOracle(rows.block(values), NO_BUDGET, "labels", true.sum(axis=0).astype(float))
    sweep = oracle.sweep()
    label = np.repeat(np.arange(20), np.diff(sweep.label_ptr))
    counts = LabelCounts(sweep.hits, sweep.predicted, oracle.labels_true[label], 300.0)
    aim = MetricAim(METRICS["f1"], "macro", "f1")
    thresholds = own_thresholds(sweep, aim.ratio.values(counts))
    dense, y = proba.toarray(), true.toarray()
    for m in range(20):
        if not (y[:, m] * dense[:, m] > 0).any():
            continue

        def f1(cut, m=m):
            predicted = dense[:, m] > cut
            return 2 * (predicted & (y[:, m] > 0)).sum() / max(predicted.sum() + y[:, m].sum(), 1)

        best = max(f1(cut) for cut in np.append(0.0, dense[:, m]))
        assert f1(thresholds[m]) == pytest.approx(best)
