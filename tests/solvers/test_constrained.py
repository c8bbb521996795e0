"""Constrained aims against linear programmes over all randomised rules, which know nothing of columns or prices.

A randomised rule of n rows is n distributions over the classes; confusions are linear in them, and a ratio is turned
into a linear programme by Charnes and Cooper's substitution.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

import worlds
from metricwise import metrics
from metricwise.goals.constraint import Constraint, ConstraintSystem, PooledConstraint
from metricwise.solvers.constrained import Feasible, InfeasibleError, maximise
from metricwise.solvers.constrained_single import best_single
from problems import read_problem
from profiles import examples
from programmes import best_of_all, coefficients, denominators_of, spaces_of

pytestmark = pytest.mark.filterwarnings("ignore:.*alone is highest")
TOL = 1e-9
AIMS = {
    "accuracy": lambda c: metrics.Accuracy(),
    "balanced_accuracy": lambda c: metrics.BalancedAccuracy(),
    "recall": lambda c: metrics.Recall(index=c),
    "f1": lambda c: metrics.FBeta(index=c),
    "micro_f1": lambda c: metrics.MicroF1(),
    "quadratic_kappa": lambda c: metrics.Kappa(weights="quadratic"),
    "decathlon": lambda c: metrics.Decathlon(),
}
CONSTRAINTS = {
    "precision": lambda c, b: Constraint(metrics.Precision(index=c), low=b),
    "recall": lambda c, b: Constraint(metrics.Recall(index=c), low=b),
    "share": lambda c, b: Constraint(metrics.PredictedShare(index=c), low=b - 0.1, high=b + 0.1),
    "false_positive_rate": lambda c, b: Constraint(metrics.FalsePositiveRate(index=c), high=b),
    "f1": lambda c, b: Constraint(metrics.FBeta(index=c), low=b, high=min(1.0, b + 0.3)),
    "kappa": lambda c, b: Constraint(metrics.Kappa(), low=b - 0.1),
    "decathlon": lambda c, b: Constraint(metrics.Decathlon(), low=b / 2),
}


@st.composite
def promises(draw, k):
    names = draw(st.lists(st.sampled_from(sorted(CONSTRAINTS)), min_size=1, max_size=3))
    return [CONSTRAINTS[name](draw(st.integers(0, k - 1)), draw(st.floats(0.1, 0.9))) for name in names]


def bound_limits(constraints, oracle, share=None):
    bound = tuple(one.bind(oracle.priors[one.output or 0]) for one in constraints)
    return placed(bound, np.ones((len(bound), 1)) if share is None else share)


def placed(bound, shares):
    """Constraints, each of the outputs that its shares say."""
    return ConstraintSystem(tuple(map(PooledConstraint, bound, np.asarray(shares, dtype=float))))


def check(problem, limits, eta):
    """The value is that of the best mixture of all, the bound proves it, and every promise is kept."""
    oracle = problem.oracle("expected")
    objective = problem.objective(oracle)
    ratio, grouping = objective.ratio, objective.grouping
    A, B = (grouping.spread(part) * grouping.share[:, None, None] for part in (ratio.A, ratio.B))
    if grouping.n_groups > 1:
        A = A * grouping.weight[grouping.group, None, None]
    feasible = Feasible(oracle, oracle, objective, limits, TOL)
    try:
        point = maximise(feasible)
    except InfeasibleError:
        point = None
    spaces = spaces_of(limits) + (denominators_of(limits) if feasible.never_empty else [])
    best = best_of_all(eta, A, spaces, None if ratio.linear else B)
    if best is None or point is None:
        assert best is None
        assert point is None
        return
    if not ratio.linear or objective.family == "increasing transform":
        best = float(objective.from_ratios(np.array([best])))
    assert point.value == pytest.approx(best, abs=1e-7)
    assert limits.kept(point.judged, tol=1e-4 if feasible.never_empty else 1e-8).all()
    assert point.bound >= best - 1e-8
    assert point.bound <= best + 1e-6
    slack = [np.sum(R * point.judged) - level for R, level in spaces]
    assert min(slack) >= -1e-8
    # A basic solution: one rule, and one more for each constraint that binds, and output by output alike.
    assert (point.weights > 1e-12).sum() <= point.weights.shape[1] + len(slack)


@examples(80)
@given(st.data())
def test_one_output(data):
    eta = data.draw(worlds.small_proba())
    k = eta.shape[2]
    metric = AIMS[data.draw(st.sampled_from(sorted(AIMS)))](data.draw(st.integers(0, k - 1)))
    problem = read_problem(eta[:, 0], None, metric)
    check(problem, bound_limits(data.draw(promises(k)), problem.oracle("expected")), eta)


@examples(30)
@given(st.data())
def test_a_promise_about_one_output_gives_every_output_its_own_loss(data):
    """Micro: one confusion is maximised, and constraints are about single outputs, or all of them together."""
    eta = data.draw(worlds.small_proba(n_outputs=2, max_rows=6))
    k = eta.shape[2]
    metric = AIMS[data.draw(st.sampled_from(["accuracy", "micro_f1", "quadratic_kappa"]))](0)
    problem = read_problem(eta, None, metric, average="micro")
    oracle = problem.oracle("expected")
    together = CONSTRAINTS["share"](0, data.draw(st.floats(0.3, 0.7))).bind(oracle.priors.mean(axis=0))
    single = [one.bind(oracle.priors[0]) for one in data.draw(promises(k))]
    limits = placed((together, *single), np.array([[0.5, 0.5], *[[1.0, 0.0]] * len(single)]))
    check(problem, limits, eta)


@examples(20)
@given(st.data())
def test_linear_aims_of_outputs_that_a_promise_couples(data):
    """Macro, and a share over all outputs."""
    eta = data.draw(worlds.small_proba(n_outputs=3, max_rows=5))
    problem = read_problem(eta, None, metrics.BalancedAccuracy(), average="macro")
    oracle = problem.oracle("expected")
    b = data.draw(st.floats(0.1, 0.5))
    share = Constraint(metrics.PredictedShare(index=0), high=b).bind(oracle.priors.mean(axis=0))
    recall = Constraint(metrics.Recall(index=1), low=b).bind(oracle.priors[2])
    check(problem, placed((share, recall), np.array([[1 / 3] * 3, [0.0, 0.0, 1.0]])), eta)


@examples(30)
@given(st.data())
def test_the_least_recall(data):
    """A minimum of linear aims: the programme of all rules has one variable more, which is at most each of them."""
    eta = data.draw(worlds.small_proba(max_rows=8))
    n, _, k = eta.shape
    problem = read_problem(eta[:, 0], None, metrics.MinRecall())
    oracle = problem.oracle("expected")
    constraint = CONSTRAINTS["share"](0, data.draw(st.floats(0.2, 0.8)))
    limits = bound_limits([constraint], oracle)
    recalls = [np.diag(np.eye(k)[j]) / oracle.priors[0, j] for j in range(k)]
    upper = [np.append(-coefficients(eta, R[None]), 1.0) for R in recalls]
    upper += [np.append(-coefficients(eta, R), 0.0) for R, _ in spaces_of(limits)]
    limit = [0.0] * k + [-level for _, level in spaces_of(limits)]
    equal = np.hstack([np.kron(np.eye(n), np.ones(k)), np.zeros((n, 1))])
    best = linprog(np.append(np.zeros(n * k), -1.0), upper, limit, equal, np.ones(n))
    objective = problem.objective(oracle)
    if best.status != 0:
        with pytest.raises(InfeasibleError):
            maximise(Feasible(oracle, oracle, objective, limits, TOL))
        return
    point = maximise(Feasible(oracle, oracle, objective, limits, TOL))
    assert point.value == pytest.approx(-best.fun, abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_concave_aims_and_floors(seed):
    """G-mean at most, and harmonic mean at least, against a general solver of smooth programmes over all rules."""
    rng = np.random.default_rng(seed)
    eta = rng.dirichlet(np.ones(3), (8, 1))
    n, _, k = eta.shape
    problem = read_problem(eta[:, 0], None, metrics.GMean())
    oracle = problem.oracle("expected")
    priors = oracle.priors[0]
    plain = maximise(
        Feasible(oracle, oracle, problem.objective(oracle), bound_limits([], oracle, np.zeros((0, 1))), TOL)
    )
    share = float(plain.judged[0, :, 0].sum())
    constraints = [Constraint(metrics.PredictedShare(index=0), low=share + 0.1), Constraint(metrics.HMean(), low=0.4)]
    limits = bound_limits(constraints, oracle)
    point = maximise(Feasible(oracle, oracle, problem.objective(oracle), limits, 1e-7))

    def recalls(h):
        return np.einsum("ni,ni->i", eta[:, 0], h.reshape(n, k)) / n / priors

    best = max(
        (
            minimize(
                lambda h: -(np.prod(np.maximum(recalls(h), 1e-12)) ** (1 / k)),
                start,
                bounds=[(0, 1)] * (n * k),
                constraints=[
                    {"type": "eq", "fun": lambda h: h.reshape(n, k).sum(axis=1) - 1},
                    {"type": "ineq", "fun": lambda h: h.reshape(n, k)[:, 0].mean() - share - 0.1},
                    {"type": "ineq", "fun": lambda h: k / np.sum(1 / np.maximum(recalls(h), 1e-9)) - 0.4},
                ],
                method="SLSQP",
                options={"maxiter": 500, "ftol": 1e-12},
            )
            for start in (np.full(n * k, 1 / k), rng.dirichlet(np.ones(k), n).reshape(-1))
        ),
        key=lambda found: -found.fun if found.success else -1.0,
    )
    assert point.value == pytest.approx(-best.fun, abs=2e-5)
    assert limits.kept(point.judged, 1e-6).all()
    assert point.bound >= -best.fun - 1e-6


@pytest.mark.parametrize("metric", [metrics.MCC(), metrics.FBeta(index=1)])
def test_other_aims_end_where_no_mixture_nearby_is_better(metric):
    """MCC, and a sum of ratios over outputs: local, and among points that keep the promises."""
    rng = np.random.default_rng(3)
    eta = rng.dirichlet(np.ones(2), (40, 2))
    several = isinstance(metric, metrics.FBeta)
    proba = eta if several else eta[:, 0]
    problem = read_problem(proba, None, metric, average="macro" if several else None)
    oracle = problem.oracle("expected")
    objective = problem.objective(oracle)
    share = np.full((1, 2 if several else 1), 0.5 if several else 1.0)
    limits = placed((Constraint(metrics.PredictedShare(index=1), high=0.3).bind(oracle.priors.mean(axis=0)),), share)
    feasible = Feasible(oracle, oracle, objective, limits, 1e-9)
    point = maximise(feasible)
    assert limits.kept(point.judged, 1e-8).all()
    for _ in range(300):
        weights = rng.dirichlet(np.full(len(point.losses), 0.1), point.weights.shape[1]).T
        step = rng.choice([0.01, 0.1, 0.5])
        mixed = point.weights + step * (weights - point.weights)
        C = np.einsum("tm,tmij->mij", mixed[:, feasible.blocks.block], feasible.aim[: len(mixed)])
        if limits.kept(C, 1e-9).all():
            assert objective.value(C) <= point.value + 1e-7


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("aim", ["f1", "balanced_accuracy", "quadratic_kappa"])
def test_no_other_single_rule_is_better(aim, seed):
    """Against random losses, most of them near to what was found."""
    rng = np.random.default_rng(seed)
    eta = rng.dirichlet([2, 1, 0.7], 400)
    problem = read_problem(eta, None, AIMS[aim](1))
    oracle = problem.oracle("expected")
    objective = problem.objective(oracle)
    constraints = [Constraint(metrics.Recall(index=2), low=0.6), Constraint(metrics.PredictedShare(index=0), low=0.35)]
    limits = bound_limits(constraints, oracle)
    feasible = Feasible(oracle, oracle, objective, limits, 1e-9)
    mixture = maximise(feasible)
    found = best_single(feasible, mixture)
    assert limits.kept(found.judged).all()
    assert (found.weights.sum(axis=0) == 1).all()
    assert mixture.value - 0.01 <= found.value <= mixture.value + 1e-9
    own = found.losses[int(found.weights[:, 0].argmax())].tensor()[0]
    own = own / np.ptp(own, axis=1).max()
    for spread in (1.0, 0.1, 0.01):
        losses = own + spread * rng.normal(size=(1000, 3, 3))
        decided = np.einsum("ni,rij->rnj", eta, losses).argmin(axis=2)
        C = np.einsum("ni,rnj->rij", eta / len(eta), np.eye(3)[decided])
        kept = limits.kept(C[:, None]).all(axis=1)
        assert objective.values_of(0, C[kept]).max(initial=-1.0) <= found.value + 1e-3
