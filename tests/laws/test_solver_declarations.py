"""Solvers keep what they declare: the forms that they serve, the settings that they take, how a solution came about."""

import itertools
import re
from functools import cache

import numpy as np
import pytest

import metricwise as mw
from laws.metric_records import EVERY, RECORDS, make
from laws.solver_promises import check_promise, objective_of, serving, settings_of
from metricwise.fitting import bagging as bags
from metricwise.fitting import solving
from metricwise.inference.judge import Judge
from metricwise.inference.spread import Errors
from metricwise.solvers import SOLVERS, Outcome, make_solver
from problems import read_problem
from profiles import first_of_each

EXPECTED = {"confusion": "expected", "recalibrate": False}
LABELS = {"confusion": "labels", "recalibrate": False}
pytestmark = [pytest.mark.filterwarnings("ignore:.*alone is highest"), pytest.mark.usefixtures("engine")]


def draw(name, k, n=5):
    rng = np.random.default_rng([n, k, *name.encode()])
    return rng.dirichlet(np.ones(k), size=n)


# ------------------------------------------------------------------------------------------------ the forms declared

PAIRS = [(solver, name, k) for name in EVERY for k in (2, 3) for solver in SOLVERS]
SERVED = [(solver, name, k) for name in EVERY for k in (2, 3) for solver in serving(name, k)]
REFUSED = [pair for pair in PAIRS if pair not in set(SERVED)]


@cache
def bests(name, k):
    """The best of every deterministic rule there is, of every threshold, and of some mixtures, in expectation."""
    eta, metric = draw(name, k), make(name, k)

    def confusions(rules):
        return np.einsum("ni,rnj->rij", eta / len(eta), np.eye(k)[rules])

    every = confusions(np.array(list(itertools.product(range(k), repeat=len(eta)))))
    thresholds = confusions((eta[:, 1] > np.array([-1.0, *eta[:, 1]])[:, None]).astype(int))
    shares = np.random.default_rng(0).dirichlet(np.full(len(every), 0.02), size=200)
    return tuple(metric.value(C).max() for C in (every, thresholds, np.tensordot(shares, every, axes=1)))


@pytest.mark.parametrize(("solver", "name", "k"), SERVED)
def test_every_solver_keeps_the_promise_of_its_form(solver, name, k):
    """Expected confusion, against every deterministic rule there is; of a sweep, against every threshold."""
    solution = mw.optimize(
        draw(name, k), None, make(name, k), strategy=mw.Strategy(solver=solver, **EXPECTED, **settings_of(solver, name))
    )
    best, best_threshold, best_mixture = bests(name, k)
    check_promise(solver, name, solution, best, best_threshold)
    assert solution.optimized_value >= solution.baseline - 1e-9
    if "randomized" in settings_of(solver, name):
        assert solution.upper_bound >= max(best_mixture, solution.optimized_value) - 1e-9


@pytest.mark.parametrize(
    ("solver", "name", "k"), first_of_each(lambda solver, name, _: (solver, RECORDS[name].form), REFUSED)
)
def test_what_a_solver_does_not_serve_is_refused_and_sent_to_one_that_does(solver, name, k):
    eta, metric = draw(name, k), make(name, k)
    who = SOLVERS[solver].__name__
    with pytest.raises(
        ValueError, match=rf"^{who} needs .*: use strategy=mw\.Strategy\(solver='\w+'\) or 'auto'\.$"
    ) as caught:
        mw.optimize(eta, None, metric, strategy=mw.Strategy(solver=solver, **EXPECTED))
    other = re.search(r"Strategy\(solver='(\w+)'", str(caught.value)).group(1)
    assert SOLVERS[other].needs.missing(objective_of(metric, eta.mean(axis=0))) is None


def test_the_names_of_solvers_in_the_documentation_are_those_there_are():
    for name in SOLVERS:
        assert f'"{name}"' in mw.Strategy.__doc__


def test_frank_wolfe_leaves_minima_to_column_generation():
    """The tangent of a minimum is that of one part: the iteration would stall far from the best."""
    with pytest.raises(ValueError, match=r"FrankWolfe needs .* smooth\. MinRecall is a minimum: .*'column_generation'"):
        mw.optimize(draw("min_recall", 3), None, "min_recall", strategy=mw.Strategy(solver="frank_wolfe"))


def test_bisection_needs_an_interval_to_halve():
    metric = mw.metrics.FractionalLinear([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]], zero_division=0.0)
    with pytest.raises(
        ValueError, match=r"Bisection needs a metric with a finite range: use .*solver='path'\) or 'auto'"
    ):
        mw.optimize([0.2, 0.6, 0.7], [0, 1, 1], metric, strategy=mw.Strategy(solver="bisection", **LABELS))


# ------------------------------------------------------------------------------------------------------- the settings

METRICS = {"linear": "accuracy", "ratio": "f1", "concave": "g_mean", "minimum": "min_recall", "any": "mcc"}
PROBA, Y = [0.1, 0.35, 0.4, 0.8], [0, 1, 0, 1]
SETTINGS = [{"tol": 0.5}, {"randomized": True}]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_a_setting_that_a_solver_lacks_is_refused(solver, setting):
    metric = METRICS[SOLVERS[solver].needs.form]
    (key,) = setting
    takers = sorted(name for name in SOLVERS if key in SOLVERS[name].settings())
    assert takers
    if solver in takers:
        assert mw.optimize(PROBA, Y, metric, strategy=mw.Strategy(solver=solver, **LABELS, **setting)).value >= 0
        return
    named = ", ".join(map(repr, takers))
    words = rf"^Strategy: solver='{solver}' takes no {key}, got {key}=.*\. Solvers that take it: {named}\."
    with pytest.raises(ValueError, match=words + r" Leave it out, or use solver='auto'\.$"):
        mw.Strategy(solver=solver, **LABELS, **setting)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_solver_object_has_its_own_settings(setting):
    (key,) = setting
    words = rf"^Strategy: {key} must be left out if solver is an object.* got {key}=.* and a FrankWolfe;"
    with pytest.raises(ValueError, match=words):
        mw.Strategy(solver=mw.solvers.FrankWolfe(), **LABELS, **setting)


@pytest.mark.parametrize("metric", sorted(METRICS.values()))
def test_auto_takes_settings_for_any_metric(metric):
    """An exact solver meets every tolerance, and where the optimum is one rule no mixture beats it."""
    plain = mw.optimize(PROBA, Y, metric, strategy=mw.Strategy(**LABELS))
    told = mw.optimize(PROBA, Y, metric, random_state=3, strategy=mw.Strategy(tol=1e-3, randomized=True, **LABELS))
    assert told.value >= plain.value - 1e-3


def test_making_a_solver_refuses_what_no_solver_takes():
    with pytest.raises(ValueError, match=r"solver='path' takes no speed, got speed=9\. No solver takes it\."):
        make_solver("path", speed=9)


def test_auto_picks_a_solver_that_serves():
    """Whatever the metric, number of classes, what is counted, and whether mixtures are allowed."""
    for name, k, expected, randomized in itertools.product(EVERY, (2, 3), (True, False), (True, False)):
        rng = np.random.default_rng(k)
        problem = read_problem(draw(name, k, 9), rng.permutation(np.arange(9) % k), make(name, k))
        oracle = problem.oracle("expected" if expected else "labels")
        objective = problem.objective(oracle)
        chosen = solving.choose_solver(oracle, objective, randomized)
        assert SOLVERS[chosen].needs.missing(objective) is None


# ----------------------------------------------------------------------------------------------------------- the seed


@pytest.mark.parametrize("solver", ["auto", "path", mw.solvers.Path(), "ascent", mw.solvers.Ascent(seed=3)])
def test_random_state_reaches_the_resamples_whatever_the_solver(monkeypatch, solver):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=150)
    y = (proba.cumsum(axis=1) < rng.random((150, 1))).sum(axis=1)
    drawn = []

    def watched(*given):
        drawn.append(bags.draw(*given))
        return drawn[-1]

    monkeypatch.setattr("metricwise.fitting.selection.draw", watched)
    for seed in (0, 11, 0):
        mw.optimize(proba, y, "kappa", random_state=seed, strategy=mw.Strategy(solver=solver, confusion="labels"))
    first, other, again = ((one.block, one.left_out) for one in drawn)
    assert all(map(np.array_equal, first, again))
    assert not any(map(np.array_equal, first, other))


def test_random_state_reaches_the_error_of_a_metric_that_is_not_smooth(monkeypatch):
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), size=150) ** 3
    proba /= proba.sum(axis=1, keepdims=True)
    y = (proba.cumsum(axis=1) < rng.random((150, 1))).sum(axis=1)
    seeds = []
    errors = Errors(0.1, 0.1, 0.1)
    monkeypatch.setattr(Judge, "bootstrap", lambda *_, seed, **__: seeds.append(seed) or errors)
    mw.optimize(proba, y, "min_recall", random_state=5, strategy=mw.Strategy(confusion="expected"))
    assert seeds == [5]


# ------------------------------------------------------------------------------------------------ how a solution ended


@pytest.mark.parametrize(
    ("solver", "metric"),
    [
        (mw.solvers.Bisection(max_iter=3), "quadratic_kappa"),
        (mw.solvers.Dinkelbach(max_iter=1, tol=1e-15), "quadratic_kappa"),
        (mw.solvers.FrankWolfe(max_iter=1, randomized=True), "h_mean"),
        (mw.solvers.ColumnGeneration(max_iter=1, randomized=True), "min_recall"),
        (mw.solvers.Ascent(max_iter=1), "macro_f1"),
    ],
)
def test_what_is_cut_short_has_not_converged(solver, metric):
    rng = np.random.default_rng(2)
    solution = mw.optimize(rng.dirichlet([0.5, 1, 2, 3], size=300), None, metric, strategy=mw.Strategy(solver=solver))
    assert solution.outcome is Outcome.NOT_CONVERGED
    assert "max_iter" in solution.status


def test_a_single_rule_below_the_mixture_is_not_called_optimal():
    proba = [[0.6, 0.4]] * 3  # three rows that no single rule tells apart
    single = mw.optimize(proba, None, "min_recall", strategy=mw.Strategy(solver="column_generation"))
    mixed = mw.optimize(proba, None, "min_recall", strategy=mw.Strategy(solver="column_generation", randomized=True))
    assert (single.outcome, mixed.outcome) == (Outcome.LOCAL, Outcome.OPTIMAL)


@pytest.mark.parametrize("solver", ["path", "dinkelbach", "bisection"])
def test_the_level_is_where_the_rule_was_taken(solver):
    """With expected confusion the best level is the value of the metric."""
    solution = mw.optimize(draw("levels", 3, 40), None, "micro_f1", strategy=mw.Strategy(solver=solver))
    assert solution.level == pytest.approx([solution.value], abs=0.05)
    assert solution.threshold is None


def test_the_threshold_is_that_of_the_rule():
    solution = mw.optimize(PROBA, Y, "mcc", strategy=mw.Strategy(**LABELS))
    assert solution.threshold == solution.rule.threshold
    assert solution.certificate.threshold == pytest.approx([solution.rule.threshold])
    assert solution.level is None
    assert solution.candidates == ()


def test_candidates_say_what_was_tried():
    rng = np.random.default_rng(3)
    proba = rng.dirichlet(np.ones(3), size=200)
    y = (proba.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    solution = mw.optimize(proba, y, "macro_f1", record=["accuracy"])
    assert solution.candidates[0].recipe == "recalibrated + expected and labels"
    for one in solution.candidates:
        assert isinstance(one, mw.inference.Candidate)
        assert 0 < one.value < 1
        assert abs(one.gain) < 1
        assert one.std_error >= 0
        assert one.recorded.keys() == {"accuracy"}
