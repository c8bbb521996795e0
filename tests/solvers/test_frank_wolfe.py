"""Concave metrics against a convex programme of SciPy's over all randomised rules."""

import numpy as np
import pytest

import metricwise as mw
import programmes as p
import worlds

pytestmark = pytest.mark.usefixtures("engine")

TOL = 1e-6
NAMED = {"g_mean": p.g_mean, "h_mean": p.h_mean, "q_mean": p.q_mean}


def diminishing(C):
    """A user's concave metric: returns on hits diminish, and one kind of error costs more the more there is of it."""
    C = np.asarray(C)
    return np.sqrt(np.diagonal(C, axis1=-2, axis2=-1) + 0.05).sum(axis=-1) - 2 * C[..., 0, 1] ** 2


METRICS = {
    **{name: (name, function, p.EASIER[function]) for name, function in NAMED.items()},
    "user": (mw.metrics.from_function(diminishing, concave=True), lambda C: float(diminishing(C)), None),
}


def check(solution, best):
    assert solution.value == pytest.approx(best, abs=1.5 * TOL)
    assert solution.value <= best + 1e-7
    assert solution.upper_bound >= best - 1e-7
    assert solution.gap <= TOL


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("seed", range(8))
def test_one_output(name, seed):
    rng = np.random.default_rng([1, seed])
    n, k = rng.integers(2, 7), rng.integers(2, 4)
    eta = worlds.stepped_or_smooth(n, k, rng)
    weight = rng.integers(1, 5, n) / 2 if seed % 2 else None
    metric, function, easier = METRICS[name]
    best = p.best_concave(p.single(eta, weight), function, convex_loss=easier)
    check(mw.optimize(eta, None, metric, sample_weight=weight, strategy=mw.Strategy(randomized=True)), best)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("seed", range(4))
def test_two_outputs(name, average, seed):
    """Equal and unequal numbers of classes, weights of rows and of outputs."""
    rng = np.random.default_rng([2, seed])
    n = rng.integers(2, 4)
    etas = [worlds.stepped_or_smooth(n, k, rng) for k in [(3, 2), (2, 2), (3, 3), (2, 3)][seed]]
    weight = rng.integers(1, 5, n) / 2 if seed % 2 else None
    alpha = np.array([3.0, 1.0]) if seed >= 2 else np.ones(2)
    metric, function, easier = METRICS[name]
    if average == "micro":
        best = p.best_concave(p.stacked(etas, weight, alpha), function, convex_loss=easier)
    else:
        each = [p.best_concave(p.single(eta, weight), function, convex_loss=easier) for eta in etas]
        best = np.average(each, weights=alpha)
    arguments = {"average": average, "sample_weight": weight, "output_weight": alpha}
    check(mw.optimize(etas, None, metric, strategy=mw.Strategy(randomized=True), **arguments), best)


def test_rises_from_rules_that_each_miss_a_class():
    """Three classes, and rows that no rule tells apart: every rule, and each way between two, has a recall of 0."""
    eta = np.tile([0.5, 0.3, 0.2], (4, 1))
    for name in ("g_mean", "h_mean"):
        solution = mw.optimize(eta, None, name, strategy=mw.Strategy(randomized=True))
        assert solution.value == pytest.approx(1 / 3, abs=1e-6)  # by symmetry: each class a third of the time
        assert solution.gap <= TOL
        assert solution.alternative == 0.0


def test_a_class_that_never_occurs_is_left_out():
    eta = np.array([[0.75, 0.25, 0.0], [0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.9, 0.1, 0.0]])
    best = p.best_concave(p.single(eta), p.g_mean, convex_loss=p.EASIER[p.g_mean])
    check(mw.optimize(eta, None, "g_mean", strategy=mw.Strategy(randomized=True)), best)
    check(mw.optimize(eta[:, :2], None, "g_mean", strategy=mw.Strategy(randomized=True)), best)


@pytest.mark.parametrize("name", NAMED)
def test_many_classes_in_tens_of_passes(name):
    """The certificate, not a reference, says how good it is; it is checked against hand-made rules as well."""
    rng = np.random.default_rng(0)
    eta = rng.dirichlet(np.linspace(0.2, 1.5, 10), size=20_000)
    solution = mw.optimize(eta, None, name, strategy=mw.Strategy(randomized=True))
    assert solution.gap <= TOL
    assert solution.n_passes <= 30
    assert solution.value > solution.baseline + 0.02
    weights = 1 / eta.mean(axis=0)
    for power in np.linspace(0, 1.5, 16):
        predicted = np.argmax(eta * weights**power, axis=1)
        assert NAMED[name](eta.T @ np.eye(10)[predicted]) <= solution.upper_bound


@pytest.mark.parametrize("name", NAMED)
def test_rounded_probabilities_reach_the_certificate(name):
    rng = np.random.default_rng(3)
    eta = rng.multinomial(10, [0.6, 0.3, 0.1], size=2_000) / 10
    solution = mw.optimize(eta, None, name, strategy=mw.Strategy(randomized=True))
    assert solution.gap <= TOL
    assert not isinstance(solution.rule, mw.MixtureRule) or len(solution.rule.rules) <= 3


def test_bound_holds_before_the_end():
    """Stopped early, the certificate is loose but true."""
    rng = np.random.default_rng(5)
    eta = rng.dirichlet([0.4, 1.0, 2.0], size=300)
    best = mw.optimize(eta, None, "h_mean", strategy=mw.Strategy(randomized=True))
    early = mw.optimize(
        eta, None, "h_mean", strategy=mw.Strategy(solver=mw.solvers.FrankWolfe(max_iter=2, randomized=True))
    )
    assert early.upper_bound >= best.value > early.value
    assert early.gap > TOL
    assert "raise max_iter" in early.status


def test_tol_is_the_gap_asked_for():
    rng = np.random.default_rng(6)
    eta = rng.dirichlet([0.4, 1.0, 2.0], size=2_000)
    rough = mw.optimize(eta, None, "g_mean", strategy=mw.Strategy(tol=1e-2, randomized=True))
    fine = mw.optimize(eta, None, "g_mean", strategy=mw.Strategy(tol=1e-9, randomized=True))
    assert rough.gap <= 1e-2
    assert fine.gap <= 1e-9
    assert rough.n_passes < fine.n_passes


def test_a_metric_that_is_not_concave_is_refused():
    with pytest.raises(ValueError, match="FrankWolfe needs a concave metric"):
        mw.optimize([[0.2, 0.5, 0.3], [0.6, 0.2, 0.2]], None, "macro_f1", strategy=mw.Strategy(solver="frank_wolfe"))


def test_labels_come_without_a_certificate():
    rng = np.random.default_rng(7)
    eta = rng.dirichlet([0.4, 1.0, 2.0], size=400)
    y = np.array([rng.choice(3, p=row) for row in eta])
    solution = mw.optimize(eta, y, "g_mean", strategy=mw.Strategy(confusion="labels", recalibrate=False))
    assert solution.upper_bound is None
    assert solution.gap is None
    assert solution.value == pytest.approx(p.g_mean(np.eye(3)[y].T @ np.eye(3)[solution.rule.predict(eta)]), abs=1e-12)
    assert solution.value > solution.baseline
