"""Bounds that are not convex: against exact programmes where they are in truth, against all rules of tiny problems."""

import numpy as np
import pytest

from metricwise import metrics
from metricwise.goals.constraint import Constraint, ConstraintSystem, PooledConstraint
from metricwise.solvers.constrained import Feasible, InfeasibleError, maximise
from metricwise.solvers.constrained_local import best_mixture, scattered_losses
from metricwise.solvers.constrained_single import best_single
from problems import read_problem

pytestmark = pytest.mark.filterwarnings("ignore:.*alone is highest")


def searched(problem, constraints):
    """The search of rules with expected counts, within constraints on one output."""
    oracle = problem.oracle("expected")
    bound = (PooledConstraint(constraint.bind(oracle.priors[0]), np.ones(1)) for constraint in constraints)
    feasible = Feasible(oracle, oracle, problem.objective(oracle), ConstraintSystem(tuple(bound)), 1e-9)
    losses = scattered_losses(1, oracle.priors.shape[1])
    feasible.add(losses, *feasible.ask(losses))
    return feasible


def confusions(eta, decisions):
    """Expected confusions (R, K, K) of decisions (R, N)."""
    return np.einsum("ni,rnj->rij", eta / len(eta), np.eye(eta.shape[1])[decisions])


DISGUISED = {
    "accuracy": (metrics.Accuracy(), 0.6),
    "recall": (metrics.Recall(index=2), 0.7),
    "precision": (metrics.Precision(index=1), 0.55),
    "kappa": (metrics.Kappa(), 0.35),
    "g_mean": (metrics.GMean(), 0.6),
}


@pytest.mark.parametrize("name", sorted(DISGUISED))
@pytest.mark.parametrize("aim", [metrics.Recall(index=0), metrics.FBeta(index=2), metrics.Accuracy()])
def test_what_is_convex_in_truth_is_solved_exactly(name, aim):
    """A function that nobody knows to be a ratio or concave ends where the exact programme does."""
    eta = np.random.default_rng(1).dirichlet([2, 1, 0.7], 300)
    metric, low = DISGUISED[name]
    problem = read_problem(eta, None, aim)
    exact = maximise(searched(problem, [Constraint(metric, low=low)]))
    disguised = searched(problem, [Constraint(metrics.from_function(lambda C: float(metric.value(C))), low=low)])
    local = best_mixture(disguised)
    assert disguised.limits.kept(local.judged, 1e-8).all()
    assert exact.value - 2e-4 <= local.value <= exact.value + 1e-6
    assert np.isinf(local.bound)


@pytest.mark.parametrize("name", ["macro_f1", "mcc", "macro_jaccard", "weighted_f1"])
@pytest.mark.parametrize("aim", ["recall", "f1", "g_mean", "macro_f1"])
def test_no_weight_rule_of_a_tiny_problem_is_better(name, aim):
    """All decisions of class weights on nine rows: no mixture is worse, and one single rule of four at most."""
    aims = {"recall": metrics.Recall(index=2), "f1": metrics.FBeta(index=0)}
    grid = np.geomspace(0.02, 50, 40)
    weights = np.stack([np.ones(1600), np.repeat(grid, 40), np.tile(grid, 40)], axis=1)
    metric, aim = metrics.get_metric(name), aims.get(aim) or metrics.get_metric(aim)
    missed = []
    for seed in range(4):
        eta = np.random.default_rng(seed).dirichlet([1, 0.8, 0.6], 9)
        C = confusions(eta, np.unique((weights[:, None] * eta).argmax(axis=2), axis=0))
        low = float(np.quantile(metric.value(C), 0.8))
        feasible = searched(read_problem(eta, None, aim), [Constraint(metric, low=low)])
        mixture = best_mixture(feasible)
        single = best_single(feasible, mixture)
        best = aim.value(C[metric.value(C) >= low - 1e-12]).max()
        assert feasible.limits.kept(mixture.judged, 1e-8).all()
        assert feasible.limits.kept(single.judged).all()
        assert mixture.value >= best - 1e-6
        missed.append(single.value < best - 1e-6)
    assert sum(missed) <= 1


@pytest.mark.parametrize("metric", [metrics.MCC(), metrics.get_metric("macro_f1")])
def test_every_step_keeps_convex_bounds_as_well(metric):
    eta = np.random.default_rng(2).dirichlet([2, 1, 0.7], 300)
    constraints = [
        Constraint(metric, low=0.35),
        Constraint(metrics.Recall(index=0), low=0.6),
        Constraint(metrics.PredictedShare(index=2), high=0.3),
    ]
    feasible = searched(read_problem(eta, None, metrics.Recall(index=1)), constraints)
    point = best_mixture(feasible)
    assert feasible.limits.kept(point.judged, 1e-7).all()
    free = searched(read_problem(eta, None, metrics.Recall(index=1)), constraints[1:])
    assert point.value <= maximise(free).value + 1e-9


def test_ceilings_of_concave_metrics():
    eta = np.random.default_rng(3).dirichlet([2, 1, 0.7], 200)
    feasible = searched(read_problem(eta, None, metrics.Accuracy()), [Constraint(metrics.GMean(), high=0.3)])
    point = best_mixture(feasible)
    assert metrics.GMean().value(point.judged[0]) <= 0.3 + 1e-8
    weights = np.exp(np.random.default_rng(4).normal(size=(5000, 1, 3)))
    C = confusions(eta, (weights * eta).argmax(axis=2))
    assert point.value >= metrics.Accuracy().value(C[metrics.GMean().value(C) <= 0.3]).max() - 1e-6


def test_a_point_is_looked_for_where_no_rule_asked_for_keeps_the_bounds():
    """With constant probabilities only mixtures of two constant rules have a correlation of 0 and a share of a half."""
    eta = np.full((40, 2), 0.5)
    bounds = [Constraint(metrics.from_function(lambda C: -((C[:, 1].sum() - 0.5) ** 2)), low=-1e-4)]
    feasible = searched(read_problem(eta, None, metrics.Accuracy()), bounds)
    point = best_mixture(feasible)
    assert point.judged[0][:, 1].sum() == pytest.approx(0.5, abs=0.0101)


def test_nothing_keeps_it():
    eta = np.random.default_rng(5).dirichlet([2, 1, 0.7], 100)
    feasible = searched(read_problem(eta, None, metrics.Accuracy()), [Constraint(metrics.MCC(), low=0.95)])
    with pytest.raises(InfeasibleError) as error:
        best_mixture(feasible)
    nearest = float(metrics.MCC().value(error.value.point.judged[0]))
    assert 0.2 < nearest < 0.95
