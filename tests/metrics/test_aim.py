"""Two maps: outputs that are pooled, and outputs that share a loss.

Rows of an output that may be decided by losses of their own, as those of sensitive groups, are parts of it: outputs
whose labels are missing outside of the part. Pooled, they are the output again.
"""

import numpy as np
import pytest

import metricwise as mw
import worlds
from engines import source
from metricwise.core.losses import Loss
from metricwise.core.rows import Rows
from metricwise.core.schema import Schema
from metricwise.data.probabilities import read_proba
from metricwise.metrics.aim import AveragedMetric
from metricwise.metrics.averages import group_outputs
from metricwise.oracles.counts import Counts
from metricwise.solvers import SOLVERS, make_solver

CASES = [
    ("closed_form", "accuracy", 3),
    ("path", "quadratic_kappa", 3),
    ("dinkelbach", "kappa", 3),
    ("bisection", "micro_f1", 3),
    ("frank_wolfe", "g_mean", 3),
    ("column_generation", "min_recall", 3),
    ("ascent", "macro_f1", 3),
    ("sweep", "f1", 2),
    ("sweep", "mcc", 2),
]


def draw(k, n=60):
    rng = np.random.default_rng(0)
    eta, codes = worlds.multiclass((n, 2), np.linspace(0.5, 1.5, k), every_class=True, seed=rng)
    group = rng.integers(0, 3, n)
    return eta, codes, group, rng.integers(1, 4, n) / 2


def whole_and_divided(k, confusion, engine="memory"):
    """The oracle of two outputs, and that of the six parts that three groups of rows make of them."""
    eta, codes, group, weight = draw(k)
    parted = np.concatenate([np.where(group[:, None] == g, codes, -1) for g in range(3)], axis=1)
    proba, repeated = (read_proba(array, multioutput=True) for array in (eta, np.concatenate([eta] * 3, axis=1)))
    one = Counts(source(Rows(proba, codes, weight), Schema.of_codes([k] * 2), engine), confusion)
    other = Counts(source(Rows(repeated, parted, weight), Schema.of_codes([k] * 6), engine), confusion)
    return one, other, np.array([0, 1] * 3)


def bound(aim, oracle):
    return aim.bind(oracle.priors, oracle.weight, oracle.n_classes)


def test_every_solver_is_here():
    assert {solver for solver, *_ in CASES} == set(SOLVERS)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("confusion", ["labels", "expected"])
@pytest.mark.parametrize("alpha", [(1.0, 1.0), (3.0, 0.5)])
def test_parts_of_an_output_are_the_output_again(average, confusion, alpha):
    one, other, parts = whole_and_divided(3, confusion)
    rng = np.random.default_rng(1)
    loss = Loss(full=rng.random((2, 3, 3)))
    C = one.confusions([loss])[0]
    divided = other.confusions([Loss(full=np.concatenate([loss.full] * 3))])[0]
    for metric in map(mw.metrics.get_metric, ("macro_f1", "g_mean", "accuracy")):
        value = bound(AveragedMetric(metric, average, np.array(alpha)), one).value(C)
        aim = AveragedMetric(metric, average, np.array(alpha * 3), parts=parts)
        assert bound(aim, other).value(divided) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("engine", ["memory", "pieces"])
@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("confusion", ["labels", "expected"])
@pytest.mark.parametrize(("solver", "metric", "k"), CASES)
def test_solvers_find_for_parts_what_they_find_for_the_whole(solver, metric, k, confusion, average, engine):
    one, other, parts = whole_and_divided(k, confusion, engine)
    metric = mw.metrics.get_metric(metric)
    settings = {"tol": 1e-7} if "tol" in SOLVERS[solver].settings() else {}
    found = make_solver(solver, **settings).solve(one, bound(AveragedMetric(metric, average, np.ones(2)), one))
    aim = AveragedMetric(metric, average, np.ones(6), parts=parts, loss=np.arange(6))
    divided = make_solver(solver, **settings).solve(other, bound(aim, other))
    close = 1e-6 if solver in ("frank_wolfe", "column_generation", "ascent") else 1e-9
    assert divided.value == pytest.approx(found.value, abs=close)
    if found.upper_bound is not None and divided.upper_bound is not None:
        assert divided.upper_bound == pytest.approx(found.upper_bound, abs=10 * close)


@pytest.mark.parametrize(("solver", "metric", "k"), CASES)
def test_one_loss_for_outputs_that_are_judged_apart_is_refused(solver, metric, k):
    """The best loss of one output is not that of the other: no solver has an oracle for their common one."""
    one, _, _ = whole_and_divided(k, "expected")
    objective = bound(
        AveragedMetric(mw.metrics.get_metric(metric), "macro", np.ones(2), loss=np.zeros(2, dtype=np.intp)), one
    )
    with pytest.raises(ValueError, match=r"needs outputs that share a loss to be pooled in one confusion"):
        make_solver(solver).solve(one, objective)


def test_pooling_adds_up():
    weight, k = np.array([4.0, 3.0, 1.0, 0.0]), np.array([2, 2, 2, 2])
    grouping = group_outputs("macro", weight, k, np.array([1.0, 2.0, 2.0, 1.0]), parts=np.array([7, 3, 3, 5]))
    C = np.arange(16.0).reshape(4, 2, 2)
    # In the order of their numbers: the parts of 3, and 7; 5 has no labels.
    assert grouping.group.tolist() == [1, 0, 0, -1]
    np.testing.assert_allclose(grouping.pool(C), [0.75 * C[1] + 0.25 * C[2], C[0]])
    np.testing.assert_allclose(grouping.pool_each(np.stack([C, 2 * C]))[1], 2 * grouping.pool(C))
    np.testing.assert_allclose(grouping.weight, [2 / 3, 1 / 3])
    np.testing.assert_allclose(grouping.total, [4.0, 4.0])


def test_support_is_that_of_all_parts():
    """As scikit-learn's weighted average over labels has it."""
    from sklearn.metrics import f1_score

    eta, codes, group, _ = draw(2, 200)
    parted = np.concatenate([np.where(group[:, None] == g, codes, -1) for g in range(3)], axis=1)
    proba = read_proba(np.concatenate([eta[..., 1]] * 3, axis=1), multioutput=True)
    oracle = Counts(source(Rows(proba, parted), Schema.of_codes([2] * 6)))
    aim = AveragedMetric(mw.metrics.FBeta(), "macro", np.ones(6), support_weighted=True, parts=np.array([0, 1] * 3))
    value = bound(aim, oracle).value(oracle.confusions([Loss.argmax(2)])[0])
    assert value == pytest.approx(f1_score(codes, (eta[..., 1] > 0.5).astype(int), average="weighted"), abs=1e-12)
