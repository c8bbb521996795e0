"""The best there is, by looking at everything: all thresholds, all decisions of a few rows.

Values of confusion matrices are ours here, many at once; that they are scikit-learn's is what `check_score` finds.
"""

import warnings

import numpy as np
import pytest

import metricwise as mw
import worlds
from fuzz.cases import optimize
from laws.metric_records import make

EXACT = ("linear", "fractional-linear", "increasing transform")  # one rule is best there, and it is found


def counts(y, decisions, weight):
    """Counts (R, 2, 2) of R rows of decisions (R, N) beside labels y (N,), -1 where one is missing."""
    cells = [((y == i) & (decisions == j)) @ weight for i in (0, 1) for j in (0, 1)]
    return np.stack(cells, axis=1).reshape(-1, 2, 2)


def best_threshold(case, outputs):
    """The best value, over all thresholds, of the pooled counts of some outputs that share one."""
    thresholds = np.unique([case.eta[m][:, 1] for m in outputs])
    thresholds = np.concatenate([[-1.0], thresholds])[:, None]  # class 1 always; the last one says never
    pooled = sum(
        case.alpha[m] * counts(case.codes[:, m], case.eta[m][:, 1] > thresholds, case.row_weight) for m in outputs
    )
    return case.our_metric.value(pooled / pooled[0].sum()).max()


def best_of_each_output(case):
    """The mean of the best values of all outputs; where y cannot tell a rule, of argmax."""
    values, weights = [], []
    for m in range(len(case.sizes)):
        seen = case.codes[(case.codes[:, m] >= 0) & (case.row_weight > 0), m]
        if len(seen) == 0:
            continue
        weights.append(case.alpha[m])
        if len(np.unique(seen)) == 2:
            values.append(best_threshold(case, [m]))
        else:
            kept = counts(case.codes[:, m], case.plain_argmax[None, :, m], case.row_weight)[0]
            values.append(case.our_metric.value(kept / kept.sum()))
    return np.average(values, weights=weights)


def check_thresholds(case):
    """No threshold, or thresholds of outputs under macro, beats the solution."""
    outputs = range(len(case.sizes))
    best = best_of_each_output(case) if case.average == "macro" else best_threshold(case, outputs)
    assert optimize(case, case.proba).value == pytest.approx(best, abs=1e-12)


# ------------------------------------------------------------------------------------ all decisions of a few rows


def few_rows(name, seed):
    """A few rows of multiples of 1/16, which sum to 1 exactly, with weights or none, and a metric."""
    rng = np.random.default_rng([seed, *name.encode()])
    k, n = ((3, 5), (4, 4), (2, 7))[seed % 3]
    eta = rng.multinomial(16, rng.dirichlet(np.ones(k), size=n)) / 16
    weight = rng.integers(1, 5, size=n) if rng.random() < 0.5 else None
    return worlds.Tiny([eta], np.zeros((n, 1), dtype=int), weight), make(name, k, float(rng.integers(2)), c=1)


def expected_solution(problem, metric, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="optimize: .* alone is highest")
        return mw.optimize(problem.proba, None, metric, sample_weight=problem.weight, **options)


def check_few_rows(name, seed):
    """No decisions of a few rows beat the certificate."""
    problem, metric = few_rows(name, seed)
    tensors = worlds.tables(problem, worlds.every_rule(problem), "expected")
    tensors /= tensors[0].sum()
    bound = metric.bind(tensors[0].sum(axis=1))
    best = float(bound.value(tensors).max())
    where = f"few_rows({name!r}, {seed})"
    one = expected_solution(problem, metric)
    assert one.value <= best + 1e-12, where
    if bound.traits.family in EXACT:
        assert one.value == pytest.approx(best, abs=1e-9), where
    if one.upper_bound is not None:
        assert best <= one.upper_bound + 1e-9, where
    if bound.traits.concave:
        mixed = expected_solution(problem, metric, strategy=mw.Strategy(randomized=True))
        assert best - 1e-6 <= mixed.value <= mixed.upper_bound + 1e-9, where
        assert mixed.upper_bound >= best - 1e-9, where
