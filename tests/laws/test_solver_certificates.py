"""Certificates hold for rows that sum to 1 only after rounding, against every rule that there is."""

import itertools

import numpy as np
import pytest

import metricwise as mw
import programmes as p
from engines import counts
from laws.metric_records import EVERY, having, make
from laws.solver_promises import objective_of
from metricwise.core.losses import Loss
from metricwise.data.probabilities import read_proba
from profiles import first

pytestmark = pytest.mark.usefixtures("engine")

FIXED = {"confusion": "expected", "recalibrate": False}
ROUNDING = 1e-12


def rounded(rng, n, k, decimals):
    """Rows to so many decimals that are still taken for probabilities, few of which sum to 1."""
    tolerance = min(0.005 * k, 0.05)
    rows = []
    while len(rows) < n:
        row = rng.dirichlet(np.full(k, rng.choice([0.5, 1.0, 3.0]))).round(decimals)
        off = abs(row.sum() - 1)
        if off <= tolerance and (off > 1e-9 or rng.random() < 0.2):
            rows.append(row)
    return np.array(rows)


def solvers(metric, priors):
    """The solvers that give a metric a certificate: those that declare a form which it has."""
    objective = objective_of(metric, priors)
    needs = {name: solver.needs for name, solver in mw.solvers.SOLVERS.items() if solver.needs.form != "any"}
    return tuple(name for name in needs if needs[name].missing(objective) is None)


def bounds(proba, metric, names, **options):
    """What each solver proves; None where a denominator can vanish."""
    for name in names:
        solution = mw.optimize(proba, None, metric, strategy=mw.Strategy(solver=name, **FIXED), **options)
        assert solution.upper_bound is None or solution.upper_bound >= solution.value - ROUNDING
        yield name, solution


CERTIFIED = [name for name in EVERY if solvers(make(name, 3), np.full(3, 1 / 3))]


@pytest.mark.filterwarnings("ignore:.*alone is highest")
@pytest.mark.parametrize("decimals", first(1, [2, 3]))
@pytest.mark.parametrize("name", CERTIFIED)
def test_no_rule_of_few_rows_is_above_the_bound(name, decimals):
    rng = np.random.default_rng([3, decimals, *name.encode()])
    for k, n in ((2, 6), (3, 5), (4, 4)):
        metric = make(name, k)
        for _ in range(3):
            eta = rounded(rng, n, k, decimals)
            rows = p.single(eta)
            best = metric.bind(rows.priors).value(rows.vertices()).max()
            for solver, solution in bounds(eta, metric, solvers(metric, rows.priors)):
                if solution.upper_bound is not None:
                    assert best <= solution.upper_bound + ROUNDING, solver


@pytest.mark.filterwarnings("ignore:.*alone is highest")
@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("name", CERTIFIED)
def test_no_rule_of_several_outputs_is_above_the_bound(name, average):
    rng = np.random.default_rng([4, *average.encode(), *name.encode()])
    metric = make(name, 3)
    for _ in range(3):
        etas = [rounded(rng, 3, 3, 2) for _ in range(2)]
        weight = rng.integers(1, 4, 3).astype(float)
        groups = [p.stacked(etas, weight)] if average == "micro" else [p.single(eta, weight) for eta in etas]
        best = np.mean([metric.bind(rows.priors).value(rows.vertices()).max() for rows in groups])
        proba = np.stack(etas, axis=1)
        names = solvers(metric, groups[0].priors)
        for solver, solution in bounds(proba, metric, names, average=average, sample_weight=weight):
            if solution.upper_bound is not None:
                assert best <= solution.upper_bound + ROUNDING, solver


def test_outputs_of_unequal_classes_under_micro():
    """A block of two columns follows a loss of three classes, offset and all."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        etas = [rounded(rng, 3, 2, 2), rounded(rng, 3, 3, 2)]
        rows = p.stacked(etas)
        for metric in (mw.metrics.MicroF1(), mw.metrics.Kappa()):
            best = metric.bind(rows.priors).value(rows.vertices()).max()
            solution = mw.optimize(etas, None, metric, average="micro", strategy=mw.Strategy(**FIXED))
            assert best <= solution.upper_bound + ROUNDING
            assert best <= solution.value + 1e-9


def best_ratio(rows, A, B):
    """The largest <A, C> / <B, C> over all rules: where the best <A - g B, C>, row by row, is 0."""
    value = lambda q: float(np.sum(A * rows.confusion(q)) / np.sum(B * rows.confusion(q)))  # noqa: E731
    g = value(np.full(rows.eta.shape, 1 / rows.n_classes))
    for _ in range(100):
        scores = rows.mass @ (A - g * B)
        following = value(np.eye(rows.n_classes)[scores.argmax(axis=1)])
        if following <= g:
            return g
        g = following
    raise AssertionError("did not settle")


def ratio_of(metric, priors):
    bound = metric.bind(priors)
    form = getattr(bound, "base", bound)
    return form.as_ratio(), getattr(bound, "transform", lambda value: value)


SAFE = [*having(form="linear"), *having(form="ratio", vanishing=False)]


@pytest.mark.filterwarnings("ignore:.*alone is highest")
@pytest.mark.parametrize("dtype", first(1, [np.float64, np.float32]))
@pytest.mark.parametrize("name", SAFE)
def test_bounds_of_many_rows_are_those_of_a_programme(name, dtype):
    rng = np.random.default_rng([6, *name.encode()])
    for k, decimals in ((3, 2), (4, 2), (6, 2), (6, 9)):
        metric = make(name, k)
        eta = rounded(rng, int(rng.integers(10, 61)), k, decimals).astype(dtype)
        rows = p.single(eta.astype(float))
        ratio, transform = ratio_of(metric, rows.priors)
        best = float(transform(np.array(best_ratio(rows, ratio.A, ratio.B))))
        for solver, solution in bounds(eta, metric, solvers(metric, rows.priors)):
            if solution.upper_bound is not None:
                assert best <= solution.upper_bound + ROUNDING, solver
            assert solution.value == pytest.approx(best, abs=1e-9), solver


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_of_the_worst_recall_is_that_of_a_programme(seed):
    from scipy.optimize import linprog

    rng = np.random.default_rng([7, seed])
    n, k = int(rng.integers(10, 61)), 3
    rows = p.single(rounded(rng, n, k, 2 + seed % 2))
    gain = -(rows.mass / rows.priors)  # (n, k): what a row given class j adds to the recall of j
    below = np.hstack([np.vstack([(gain * np.eye(k)[j]).ravel() for j in range(k)]), np.ones((k, 1))])
    once = np.hstack([np.kron(np.eye(n), np.ones(k)), np.zeros((n, 1))])
    cost = np.append(np.zeros(n * k), -1.0)
    free = [(0, None)] * (n * k) + [(None, None)]
    answer = linprog(cost, A_ub=below, b_ub=np.zeros(k), A_eq=once, b_eq=np.ones(n), bounds=free, method="highs-ipm")
    solution = mw.optimize(rows.eta, None, "min_recall", strategy=mw.Strategy(**FIXED))
    assert -answer.fun <= solution.upper_bound + 1e-8
    assert solution.alternative == pytest.approx(-answer.fun, abs=2e-6)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_diagonal_form_decides_as_the_full_one(k):
    """With an offset in it a score follows the sum of its row, as the full loss does."""
    rng = np.random.default_rng([8, k])
    for decimals in (2, 3, 7):
        eta = rounded(rng, 400, k, decimals)
        loss = Loss(diagonal=-rng.random((1, k)), offset=rng.normal(size=(1, k)) / 4)
        oracle = counts(read_proba(eta), confusion="expected")
        short, full = oracle.confusions([loss, Loss(full=loss.tensor())])
        assert np.sum(loss.tensor() * short) == pytest.approx(np.sum(loss.tensor() * full), abs=1e-15)


def test_where_rows_sum_to_one_an_offset_is_just_added():
    eighths = np.array([row for row in itertools.product(range(9), repeat=3) if sum(row) == 8]) / 8
    rng = np.random.default_rng(9)
    for _ in range(20):
        diagonal, offset = rng.integers(-8, 0, 3) / 4, rng.integers(-4, 5, 3) / 8
        rule = mw.WeightedRule(Loss(diagonal=diagonal[None], offset=offset[None]), (np.arange(3),))
        assert (rule.predict(eighths) == (eighths * diagonal + offset).argmin(axis=1)).all()
