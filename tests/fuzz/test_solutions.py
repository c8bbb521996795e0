"""What optimize reports is what its rule gets, and what a rule predicts hangs on the numbers it is shown alone."""

import numpy as np
import pytest
from sklearn import metrics as sk
from threadpoolctl import threadpool_limits

import metricwise as mw
from fuzz.cases import LABELS, TARGETS, draw, named, optimize
from fuzz.checks import check_solution, same_labels
from fuzz.guises import proba_layouts
from metricwise import kernels
from profiles import first

CHUNK, CHUNKS = 40, 3


@pytest.mark.parametrize("chunk", first(1, range(CHUNKS)))
@pytest.mark.parametrize("target", TARGETS)
def test_a_solution_is_worth_what_it_says(target, chunk):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        case = draw(target, seed)
        with named(case):
            check_solution(case)


SCORERS = {
    f"{name}_{average}": (function, average)
    for name, function in [("f1", sk.f1_score), ("jaccard", sk.jaccard_score)]
    for average in ("micro", "macro", "weighted", "samples")
}


@pytest.mark.parametrize("name", SCORERS)
def test_scorer_names_are_worth_what_scikit_learn_says_on_multilabel(name):
    function, average = SCORERS[name]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        proba = rng.random((20, 3)).round(rng.integers(1, 4))
        y = (rng.random(proba.shape) < proba).astype(int)
        weight = rng.uniform(0, 2, size=20) if seed % 2 else None
        solution = mw.optimize(proba, y, name, sample_weight=weight, strategy=mw.Strategy(**LABELS))
        for value, predicted in ((solution.value, solution.rule.predict(proba)), (solution.baseline, proba > 0.5)):
            expected = function(y, predicted, average=average, sample_weight=weight, zero_division=0.0)
            assert value == pytest.approx(expected, abs=1e-12), f"seed {seed}"


@pytest.mark.skipif(kernels.in_use() != "compiled", reason="the NumPy twins have one thread")
@pytest.mark.parametrize(
    "metric", [mw.metrics.Kappa("quadratic"), mw.metrics.FBeta(index=1), mw.metrics.BalancedAccuracy()]
)
@pytest.mark.parametrize("shape", [(360_000, 3), (53_000, 20)])  # more than a million numbers, which threads share
def test_nothing_depends_on_the_number_of_threads(shape, metric):
    rng = np.random.default_rng(0)
    multilabel = shape[1] > 3
    proba = rng.random(shape).round(3) if multilabel else rng.dirichlet(np.ones(3), size=shape[0]).astype(np.float32)
    y = rng.integers(0, 2 if multilabel else 3, size=shape if multilabel else shape[0])
    weight = rng.random(shape[0])
    solutions = []
    for n_threads in (1, 3):
        with threadpool_limits(limits=n_threads, user_api="openmp"):
            solution = mw.optimize(
                proba, y, metric, average="micro", sample_weight=weight, strategy=mw.Strategy(**LABELS)
            )
            solutions.append((solution, solution.rule.predict(proba)))
    (one, labels), (other, others) = solutions
    assert (one.rule, one.value) == (other.rule, other.value)
    same_labels(labels, others)


@pytest.mark.parametrize("target", TARGETS)
def test_the_rule_does_not_depend_on_layout_and_dtype(target):
    for seed in range(CHUNK // 2):
        case = draw(target, seed)
        with named(case):
            loss = optimize(case, case.proba).rule.loss
            for layout in proba_layouts(case.proba):  # lists hold the same numbers as float64
                assert optimize(case, case.dressed(layout)).rule.loss == loss
