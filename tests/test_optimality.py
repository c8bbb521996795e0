"""Solvers against brute force: what they call the best is the best of everything there is to choose from."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import metricwise as mw
import strategies as s
from engines import counts
from metricwise.inputs import read_proba
from metricwise.metrics.averages import group_outputs
from metricwise.metrics.objective import make_objective
from metricwise.solvers.ratios import ratio_bound

pytestmark = pytest.mark.usefixtures("engine")

AVERAGES = st.sampled_from(["micro", "macro"])
LABELS = {"confusion": "labels", "recalibrate": False}
EXPECTED = {"confusion": "expected", "recalibrate": False}


def named(name, problem):
    """Metrics of one class of a target with more classes need to be told which."""
    return {"f1": mw.metrics.FBeta(index=1), "jaccard": mw.metrics.Jaccard(index=1)}.get(name, name)


# ----------------------------------------------------------------------------------------------- the path, labels


def check_path(problem, name, average):
    solution = mw.optimize(
        problem.proba,
        problem.labels,
        named(name, problem),
        average=average,
        solver="path",
        **LABELS,
        **problem.arguments(),
    )
    assert solution.value == pytest.approx(s.best_of_family(problem, name, average), abs=1e-9)
    assert solution.upper_bound == solution.value


@settings(max_examples=100)
@given(problem=s.tiny(), name=st.sampled_from(sorted(s.RATIOS)), average=AVERAGES)
def test_path_is_best_of_its_family(problem, name, average):
    assume(not s.undecidable(problem, name, average))
    check_path(problem, name, average)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("name", sorted(s.RATIOS))
def test_path_is_best_of_its_family_on_random_problems(name, average):
    rng = np.random.default_rng([7, *name.encode(), *average.encode()])
    problems = [s.random_tiny(rng) for _ in range(30)]
    checked = [problem for problem in problems if not s.undecidable(problem, name, average)]
    assert len(checked) >= 20
    for problem in checked:
        check_path(problem, name, average)


# ----------------------------------------------------------------------------------------------------- the sweep


def own(C):
    """No metric that anyone has a name for, neither monotone nor smooth."""
    C = np.asarray(C)
    return float(np.sqrt(C[1, 1]) - 2 * C[0, 1] ** 2 + 0.3 * np.sign(C[1, 0] - 0.1))


def own_of_counts(C):
    return own(np.asarray(C) / np.sum(C))


ANY = {
    "f1": s.f1,
    "mcc": s.mcc,
    "g_mean": s.g_mean,
    "kappa": s.kappa,
    "balanced_accuracy": s.balanced_accuracy,
    "jaccard": s.jaccard,
}


@settings(max_examples=200)
@given(
    problem=s.tiny(max_classes=2),
    name=st.sampled_from([*sorted(ANY), "own"]),
    average=AVERAGES,
    count=st.sampled_from(["labels", "expected"]),
)
def test_sweep_is_best_of_all_thresholds(problem, name, average, count):
    metric, plain = (own, own_of_counts) if name == "own" else (name, ANY[name])
    solution = mw.optimize(
        problem.proba,
        problem.labels,
        metric,
        average=average,
        solver="sweep",
        confusion=count,
        recalibrate=False,
        **problem.arguments(),
    )
    best = s.best_threshold(problem, plain, average, count=count)
    assert solution.optimized_value == pytest.approx(best, abs=1e-9)
    if count == "labels":
        assert solution.upper_bound == solution.value == solution.optimized_value


# ------------------------------------------------------------------------------- expected confusion: all rules at all


def all_rules(problem, metric):
    return max(s.value(problem, [[c] for c in codes], metric, count="expected") for codes in s.every_rule(problem))


@settings(max_examples=60)
@given(
    problem=s.tiny(max_rows=5, max_classes=3, max_outputs=1),
    name=st.sampled_from(sorted(s.RATIOS)),
    solver=st.sampled_from(["auto", "path", "dinkelbach", "bisection"]),
)
def test_ratio_solvers_beat_every_rule_in_expectation(problem, name, solver):
    """K^N deterministic rules; Dinkelbach and bisection within their tolerance, the path to rounding."""
    solution = mw.optimize(
        problem.proba, problem.labels, named(name, problem), solver=solver, **EXPECTED, **problem.arguments()
    )
    best = all_rules(problem, s.RATIOS[name])
    assert solution.optimized_value == pytest.approx(best, abs=1e-9)
    assert solution.upper_bound is not None
    assert best - 1e-9 <= solution.upper_bound <= best + 1e-5


@settings(max_examples=40)
@given(
    problem=s.tiny(max_rows=5, max_classes=3, max_outputs=1),
    name=st.sampled_from(["accuracy", "balanced_accuracy", "ordinal"]),
    solver=st.sampled_from(["closed_form", "path", "dinkelbach", "bisection"]),
)
def test_linear_metrics_beat_every_rule_in_expectation(problem, name, solver):
    assume(name != "balanced_accuracy" or problem.shows_every_class)
    solution = mw.optimize(problem.proba, problem.labels, name, solver=solver, **EXPECTED, **problem.arguments())
    best = all_rules(problem, getattr(s, name))
    assert solution.optimized_value == pytest.approx(best, abs=1e-9)
    assert best - 1e-9 <= solution.upper_bound <= best + 1e-5


@settings(max_examples=40)
@given(
    problem=s.tiny(max_rows=4, max_classes=3, max_outputs=1, missing=False, weights=False),
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
        solver=solver,
        **EXPECTED,
        **problem.arguments(),
    )
    best = max(
        plain(np.array(s.expected(problem.eta[0], problem.y[:, 0], codes, problem.row_weight, k)))
        for codes in s.every_rule(problem)
    )
    assert solution.optimized_value == pytest.approx(best, abs=1e-9)
    assert best - 1e-9 <= solution.upper_bound <= best + 1e-5


@settings(max_examples=30)
@given(problem=s.tiny(max_rows=3, max_classes=2, max_outputs=2), name=st.sampled_from(["f1", "jaccard", "kappa"]))
def test_micro_beats_every_joint_rule_in_expectation(problem, name):
    solution = mw.optimize(problem.proba, problem.labels, name, average="micro", **EXPECTED, **problem.arguments())
    cells = problem.n_rows * problem.n_outputs
    best = max(
        s.value(problem, np.reshape(codes, (problem.n_rows, -1)), s.RATIOS[name], count="expected")
        for codes in itertools.product(range(2), repeat=cells)
    )
    assert solution.optimized_value == pytest.approx(best, abs=1e-9)


@settings(max_examples=60)
@given(
    problem=s.tiny(max_rows=5, max_classes=3, max_outputs=1, weights=False, missing=False),
    name=st.sampled_from(["micro_f1", "kappa", "quadratic_kappa"]),
    below=st.sampled_from([0.0, 1e-6, 0.01, 0.1, 0.5]),
)
def test_the_bound_holds_wherever_it_is_taken(problem, name, below):
    """psi* <= g + max <A - g B, C> / min <B, C>, both extremes over every rule there is."""
    oracle = counts(read_proba(problem.eta[0]), problem.y, confusion="expected")
    grouping = group_outputs("micro", oracle.weight, oracle.n_classes, np.ones(1))
    objective = make_objective(mw.metrics.get_metric(name), grouping, oracle.priors, oracle.n_classes)
    ratio, k, ones = objective.ratio, problem.sizes[0], problem.row_weight
    tensors = np.array([s.expected(problem.eta[0], problem.y[:, 0], codes, ones, k) for codes in s.every_rule(problem)])
    tensors /= problem.n_rows
    above, below_the_line = ((part[0] * tensors).sum(axis=(1, 2)) for part in (ratio.A, ratio.B))
    best = all_rules(problem, s.RATIOS[name])
    g = best - below
    bound = ratio_bound(oracle, ratio, objective, np.array([g]))
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
    sweep = mw.optimize(proba, y, metric, solver="sweep", **EXPECTED)
    path = mw.optimize(proba, y, metric, solver="path", **EXPECTED)
    assert sweep.optimized_value < path.optimized_value - 0.1
    assert sweep.upper_bound >= path.optimized_value - 1e-12
    assert path.gap == pytest.approx(0, abs=1e-12)


def test_classes_that_only_rounding_tells_apart_do_not_cross():
    """Balanced priors: kappa's two slopes are equal but for rounding, so that no g changes a decision."""
    proba = np.array([[0.0002, 0.9998]] * 7 + [[0.05, 0.95]])
    y = np.array([0, 1, 0, 0, 0, 0, 0, 0])
    weight = np.where(y == 1, 4.0, 4 / 7)
    solution = mw.optimize(proba, y, "kappa", solver="path", sample_weight=weight, **LABELS)
    assert solution.value == pytest.approx(0, abs=1e-12)
    assert np.abs(solution.rule.loss.tensor()).max() < 10


# --------------------------------------------------------------------------------- fixed points of the iterations


def reached_at(problem, name, g, average_matrix):
    """The ratio that the rule of g B - A reaches on the labels, in exact arithmetic."""
    A, B = s.ratio_matrices(name, average_matrix)
    codes = [s.decide(s.lines(row, A, B), g) for row in s.whole(problem.eta[0])]
    return s.RATIOS[name](s.confusion(problem.y[:, 0], codes, problem.row_weight, problem.sizes[0]))


def priors_matrix(problem):
    return s.confusion(problem.y[:, 0], [0] * problem.n_rows, problem.row_weight, problem.sizes[0])


@settings(max_examples=100)
@given(problem=s.tiny(max_outputs=1), name=st.sampled_from(["f1", "micro_f1", "quadratic_kappa"]))
def test_dinkelbach_settles_where_its_rule_reproduces_g(problem, name):
    """With labels: the last rule is that of a g which it reaches within tol (1e-5), unless the status denies it."""
    assume(not s.undecidable(problem, name, "micro"))
    solution = mw.optimize(
        problem.proba, problem.labels, named(name, problem), solver="dinkelbach", **LABELS, **problem.arguments()
    )
    assume(solution.status.startswith("Settled"))
    near = [solution.value + d for d in (0.0, -5e-6, 5e-6, -1e-5, 1e-5)]
    matrix = priors_matrix(problem)
    assert any(abs(reached_at(problem, name, Fraction(g), matrix) - solution.value) <= 1e-5 for g in near)


@settings(max_examples=100)
@given(problem=s.tiny(max_outputs=1), name=st.sampled_from(["f1", "micro_f1", "jaccard"]))
def test_bisection_ends_where_acceptance_changes(problem, name):
    """With labels: the rule is that of the last g accepted, by halving [0, 1] in exact arithmetic to tol (1e-12)."""
    solution = mw.optimize(
        problem.proba, problem.labels, named(name, problem), solver="bisection", **LABELS, **problem.arguments()
    )
    matrix = priors_matrix(problem)
    low, high = Fraction(0), Fraction(1)
    while high - low > 1e-12:
        g = (low + high) / 2
        reached = reached_at(problem, name, g, matrix)
        assume(reached != g)  # equal to the last bit: rounding decides whether that counts as reached
        low, high = (g, high) if reached >= g else (low, g)
    assert solution.value == pytest.approx(reached_at(problem, name, low, matrix), abs=1e-9)


def test_the_three_agree_on_many_rows():
    """On many rows of a calibrated model the fixed points are one point, up to sampling error."""
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(20_000, 4)) * 1.5
    proba = np.exp(logits)
    proba /= proba.sum(axis=1, keepdims=True)
    y = (proba.cumsum(axis=1) < rng.random((len(proba), 1))).sum(axis=1)
    values = [
        mw.optimize(proba, y, "micro_f1", solver=solver, **LABELS).value
        for solver in ("path", "dinkelbach", "bisection")
    ]
    assert values[0] >= max(values) - 1e-12
    assert max(values) - min(values) < 2e-3
