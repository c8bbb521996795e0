"""Solvers against brute force: what they call the best is the best of everything there is to choose from."""

import itertools
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import metricwise as mw
import worlds
from engines import counts
from laws.metric_records import EVERY, RECORDS, exact_ratio, having, largest, make
from laws.solver_promises import LABELS, check_path, check_promise, objective_of, serving, settings_of, solve
from metricwise.data.probabilities import read_proba
from metricwise.solvers.ratios import bounding_losses, ratio_bound
from profiles import examples

AVERAGES = st.sampled_from(["micro", "macro"])
COUNTS = st.sampled_from(["labels", "expected"])
EXPECTED = {"confusion": "expected", "recalibrate": False}
RATIOS, STEADY = having(form="ratio"), having(form="ratio", vanishing=False)
pytestmark = [pytest.mark.filterwarnings("ignore:.*alone is highest"), pytest.mark.usefixtures("engine")]


# ----------------------------------------------------------------------------------------------- the path, labels


@pytest.mark.parametrize("name", RATIOS)
@examples(5)
@given(data=st.data(), average=AVERAGES)
def test_path_is_best_of_its_family(name, data, average):
    problem = data.draw(worlds.tiny(max_outputs=1 if RECORDS[name].sized else 3))
    assume(not worlds.undecidable(problem, partial(exact_ratio, name), average))
    check_path(problem, name, average)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("name", RATIOS)
def test_path_is_best_of_its_family_on_random_problems(name, average):
    rng = np.random.default_rng([7, *name.encode(), *average.encode()])
    problems = (worlds.random_tiny(rng, max_outputs=1 if RECORDS[name].sized else 3) for _ in range(100))
    decidable = (one for one in problems if not worlds.undecidable(one, partial(exact_ratio, name), average))
    checked = list(itertools.islice(decidable, 8))
    assert len(checked) == 8
    for problem in checked:
        check_path(problem, name, average)


# ----------------------------------------------------------------------------------------------------- the sweep


def check_sweep(solution, best, count):
    assert solution.optimized_value == pytest.approx(best, abs=1e-9)
    if count == "labels":
        assert solution.upper_bound == solution.value == solution.optimized_value


@pytest.mark.parametrize("name", EVERY)
@examples(3)
@given(problem=worlds.tiny(max_classes=2), average=AVERAGES, count=COUNTS)
def test_sweep_is_best_of_all_thresholds(name, problem, average, count):
    solution = solve(problem, name, average=average, solver="sweep", confusion=count, recalibrate=False)
    check_sweep(solution, worlds.best_threshold(problem, partial(largest, name), average, count=count), count)


@examples(30)
@given(problem=worlds.tiny(max_classes=2), average=AVERAGES, count=COUNTS)
def test_sweep_is_best_of_all_thresholds_for_a_function_of_ones_own(problem, average, count):
    """No metric that anyone has a name for, neither monotone nor smooth."""

    def own(C):
        return float(np.sqrt(C[1, 1]) - 2 * C[0, 1] ** 2 + 0.3 * np.sign(C[1, 0] - 0.1))

    options = {"average": average, "strategy": mw.Strategy(solver="sweep", confusion=count, recalibrate=False)}
    solution = mw.optimize(problem.proba, problem.labels, own, **options, **problem.arguments())
    best = worlds.best_threshold(problem, lambda tables: max(own(C / C.sum()) for C in tables), average, count=count)
    check_sweep(solution, best, count)


# -------------------------------------------------------------------------------------------------- all rules at all


def all_rules(problem, name, count="expected"):
    return largest(name, worlds.tables(problem, worlds.every_rule(problem), count))


@pytest.mark.parametrize("name", EVERY)
@examples(3)
@given(problem=worlds.tiny(max_rows=5, max_classes=3, max_outputs=1), data=st.data())
def test_no_rule_beats_what_a_solver_finds_in_expectation(name, problem, data):
    """K^N deterministic rules; ties, weights and missing labels."""
    k = problem.sizes[0]
    assume(problem.shows_every_class or not make(name, k, c=1).traits.by_class)
    solver = data.draw(st.sampled_from(["auto", *serving(name, k)]))
    solution = solve(problem, name, solver=solver, **EXPECTED, **settings_of(solver, name))
    threshold = worlds.best_threshold(problem, partial(largest, name), "micro", count="expected") if k == 2 else None
    check_promise(solver, name, solution, all_rules(problem, name), threshold)


@pytest.mark.parametrize("name", EVERY)
@examples(2)
@given(problem=worlds.tiny(max_rows=5, max_classes=3, max_outputs=1), data=st.data())
def test_what_a_solver_finds_on_labels_is_worth_what_it_says(name, problem, data):
    """By the reference, at what the rule predicts; no better than the best of K^N decisions, which see the labels."""
    k = problem.sizes[0]
    solver = data.draw(st.sampled_from(["auto", *serving(name, k)]))
    solution = solve(problem, name, solver=solver, **LABELS)
    predicted = solution.rule.predict(problem.proba).astype(int)
    table = worlds.tables(problem, predicted[None, :, None])[0]
    assert solution.value == pytest.approx(RECORDS[name].of_counts(table, c=1), abs=1e-9)
    assert solution.value <= all_rules(problem, name, "labels") + 1e-9


@examples(40)
@given(
    problem=worlds.tiny(max_rows=4, max_classes=3, max_outputs=1, missing=False, weights=False),
    data=st.data(),
    solver=st.sampled_from(["auto", "path", "dinkelbach", "bisection"]),
)
def test_ratios_of_ones_own_beat_every_rule_in_expectation(problem, data, solver):
    """Any A and any positive B: predicting a class where it is unlikely may be what pays."""
    k = problem.sizes[0]
    numbers = st.lists(st.integers(-4, 4), min_size=k * k, max_size=k * k)
    A = np.array(data.draw(numbers), dtype=float).reshape(k, k)
    B = np.abs(np.array(data.draw(numbers), dtype=float)).reshape(k, k) + 1

    def plain(C):
        return float((A * C).sum() / (B * C).sum())

    solution = mw.optimize(
        problem.proba,
        problem.labels,
        mw.metrics.FractionalLinear(A, B),
        strategy=mw.Strategy(solver=solver, **EXPECTED),
        **problem.arguments(),
    )
    best = max(plain(C) for C in worlds.tables(problem, worlds.every_rule(problem), "expected"))
    assert solution.optimized_value == pytest.approx(best, abs=1e-9)
    assert best - 1e-9 <= solution.upper_bound <= best + 1e-5


@pytest.mark.parametrize("name", [*having(form="linear"), *RATIOS])
@examples(2)
@given(problem=worlds.tiny(max_rows=3, max_classes=2, max_outputs=2))
def test_micro_beats_every_joint_rule_in_expectation(name, problem):
    solution = solve(problem, name, average="micro", **EXPECTED)
    assert solution.optimized_value == pytest.approx(all_rules(problem, name), abs=1e-9)


@pytest.mark.parametrize("name", RATIOS)
@examples(5)
@given(
    problem=worlds.tiny(max_rows=5, max_classes=3, max_outputs=1, weights=False, missing=False),
    below=st.sampled_from([0.0, 1e-6, 0.01, 0.1, 0.5]),
)
def test_the_bound_holds_wherever_it_is_taken(name, problem, below):
    """psi* <= g + max <A - g B, C> / min <B, C>, both extremes over every rule there is."""
    oracle = counts(read_proba(problem.eta[0]), problem.y, confusion="expected")
    objective = objective_of(make(name, problem.sizes[0], c=1), oracle.priors[0])
    ratio = objective.ratio
    tensors = worlds.tables(problem, worlds.every_rule(problem), "expected") / problem.n_rows
    above, below_the_line = ((part[0] * tensors).sum(axis=(1, 2)) for part in (ratio.A, ratio.B))
    best = all_rules(problem, name)
    g = np.array([best - below])
    bound = ratio_bound(objective, ratio, g, oracle.confusions(bounding_losses(objective, ratio, g)))
    excess, least = max(0.0, (above - g * below_the_line).max()), below_the_line.min()
    if least < 1e-9:
        assert bound is None or bound[0] >= best - 1e-9
    else:
        assert bound[0] == pytest.approx(g + excess / least, abs=1e-9)
        assert bound[0] >= best - 1e-9


def test_sweep_admits_what_no_threshold_reaches():
    """Rewarding class 1 where it is unlikely: the best rule is no threshold, and the gap must say so."""
    proba, y = [0.1, 0.2, 0.6, 0.9], [0, 1, 0, 1]
    metric = mw.metrics.FractionalLinear([[0.0, 2.0], [1.0, 0.0]], [[1.0, 2.0], [1.0, 1.5]])
    sweep = mw.optimize(proba, y, metric, strategy=mw.Strategy(solver="sweep", **EXPECTED))
    path = mw.optimize(proba, y, metric, strategy=mw.Strategy(solver="path", **EXPECTED))
    assert sweep.optimized_value < path.optimized_value - 0.1
    assert sweep.upper_bound >= path.optimized_value - 1e-12
    assert path.gap == pytest.approx(0, abs=1e-12)


def test_classes_that_only_rounding_tells_apart_do_not_cross():
    """Balanced priors: kappa's two slopes are equal but for rounding, so that no g changes a decision."""
    proba = np.array([[0.0002, 0.9998]] * 7 + [[0.05, 0.95]])
    y = np.array([0, 1, 0, 0, 0, 0, 0, 0])
    weight = np.where(y == 1, 4.0, 4 / 7)
    solution = mw.optimize(proba, y, "kappa", sample_weight=weight, strategy=mw.Strategy(solver="path", **LABELS))
    assert solution.value == pytest.approx(0, abs=1e-12)
    assert np.abs(solution.rule.loss.tensor()).max() < 10


# --------------------------------------------------------------------------------- fixed points of the iterations


def reaching(problem, name):
    """From g to what the rule of g B - A reaches on the labels, decided in exact arithmetic; and where rows tie."""
    ((_, (rows,), _),) = worlds.families(problem, partial(exact_ratio, name), "micro")

    @cache
    def worth(codes):
        return largest(name, worlds.tables(problem, np.array(codes)[None, :, None]))

    return lambda g: worth(tuple(worlds.decide(row, g) for row in rows)), set(worlds.crossings(rows))


@pytest.mark.parametrize("name", STEADY)
@examples(5)
@given(problem=worlds.tiny(max_outputs=1))
def test_dinkelbach_settles_where_its_rule_reproduces_g(name, problem):
    """With labels: the last rule is that of a g which it reaches within tol (1e-5), unless the status denies it."""
    assume(not worlds.undecidable(problem, partial(exact_ratio, name), "micro"))
    solution = solve(problem, name, solver="dinkelbach", **LABELS)
    assume(solution.status.startswith("Converged"))
    near = [solution.value + d for d in (0.0, -5e-6, 5e-6, -1e-5, 1e-5)]
    reached, _ = reaching(problem, name)
    assert any(abs(reached(Fraction(g)) - solution.value) <= 1e-5 for g in near)


@pytest.mark.parametrize("name", [name for name in STEADY if make(name, 3).range == (0.0, 1.0)])
@examples(8)
@given(problem=worlds.tiny(max_outputs=1))
def test_bisection_ends_where_acceptance_changes(name, problem):
    """With labels: the rule is that of the last g accepted, by halving [0, 1] in exact arithmetic to tol (1e-12)."""
    assume(not worlds.undecidable(problem, partial(exact_ratio, name), "micro"))
    solution = solve(problem, name, solver="bisection", **LABELS)
    low, high = Fraction(0), Fraction(1)
    reached, ties = reaching(problem, name)
    while high - low > 1e-12:
        g = (low + high) / 2
        value = reached(g)
        assume(g not in ties)  # rounding decides such rows
        assume(abs(value - g) > 1e-15)  # rounding decides whether that counts as reached
        low, high = (g, high) if value >= g else (low, g)
    assert solution.value == pytest.approx(reached(low), abs=1e-9)


def test_the_three_agree_on_many_rows():
    """On many rows of a calibrated model the fixed points are one point, up to sampling error."""
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(20_000, 4)) * 1.5
    proba = worlds.softmax(logits)
    y = worlds.draw_codes(proba, rng)
    values = [
        mw.optimize(proba, y, "micro_f1", strategy=mw.Strategy(solver=solver, **LABELS)).value
        for solver in ("path", "dinkelbach", "bisection")
    ]
    assert values[0] >= max(values) - 1e-12
    assert max(values) - min(values) < 2e-3
