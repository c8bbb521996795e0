"""Minima of linear metrics against a linear programme over every deterministic rule, and what mixtures add to them."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw
import programmes as p
import worlds

pytestmark = pytest.mark.usefixtures("engine")

TOL = 1e-6


def check(solution, best):
    assert solution.value == pytest.approx(best, abs=TOL)
    assert solution.value <= best + 1e-8
    assert solution.upper_bound >= best - 1e-8
    assert solution.gap <= TOL


def own_parts(rows):
    """Accuracy, recall of class 1, and closeness on a scale, as a user would ask for all three at once."""
    k = rows.n_classes
    recall = np.zeros((k, k))
    recall[1, 1] = 1 / rows.priors[1]
    away = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    return np.array([np.eye(k), recall, 1 - away / (k - 1)])


OWN = mw.metrics.Minimum([mw.metrics.Accuracy(), mw.metrics.Recall(index=1), mw.metrics.Ordinal()])
CASES = {"min_recall": ("min_recall", lambda rows: p.recall_parts(rows.priors)), "own": (OWN, own_parts)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(12))
def test_one_output(name, seed):
    rng = np.random.default_rng([1, seed])
    n, k = rng.integers(2, 7), rng.integers(2, 4)
    eta = worlds.stepped_or_smooth(n, k, rng)
    eta[0] = 1 / k
    weight = rng.integers(1, 5, n) / 2 if seed % 2 else None
    metric, parts = CASES[name]
    rows = p.single(eta, weight)
    solution = mw.optimize(eta, None, metric, sample_weight=weight, strategy=mw.Strategy(randomized=True))
    check(solution, p.best_minimum(rows, parts(rows)))
    assert not isinstance(solution.rule, mw.MixtureRule) or len(solution.rule.rules) <= len(parts(rows))


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(6))
def test_two_outputs(name, average, seed):
    rng = np.random.default_rng([2, seed])
    n = rng.integers(2, 4)
    etas = [worlds.stepped_or_smooth(n, k, rng) for k in [(3, 2), (2, 2), (3, 3)][seed % 3]]
    for eta in etas:
        eta[0] = 1 / eta.shape[1]
    weight = rng.integers(1, 5, n) / 2 if seed % 2 else None
    alpha = np.array([3.0, 1.0]) if seed >= 3 else np.ones(2)
    metric, parts = CASES[name]
    if average == "micro":
        rows = p.stacked(etas, weight, alpha)
        best = p.best_minimum(rows, parts(rows))
    else:
        each = [p.best_minimum(rows, parts(rows)) for rows in (p.single(eta, weight) for eta in etas)]
        best = np.average(each, weights=alpha)
    arguments = {"average": average, "sample_weight": weight, "output_weight": alpha}
    check(mw.optimize(etas, None, metric, strategy=mw.Strategy(randomized=True), **arguments), best)


# ------------------------------------------------------------------------------------------------- few distinct rows


def imbalanced(seed):
    return make_classification(
        600, 6, n_informative=4, n_classes=3, weights=[0.7, 0.2, 0.1], flip_y=0.1, random_state=seed
    )


def worst_recalls_of_all_rules(proba):
    """Worst recall of each of the 3^L deterministic rules over the L distinct rows."""
    distinct, count = np.unique(proba, axis=0, return_counts=True)
    mass = distinct * count[:, None]
    rules = np.array(list(itertools.product(range(3), repeat=len(distinct))))
    recalls = [((rules == k) @ mass[:, k]) / mass[:, k].sum() for k in range(3)]
    return np.min(recalls, axis=0)


@pytest.mark.parametrize("seed", range(4))
def test_on_a_tree_the_mixture_beats_every_single_rule(seed):
    X, y = imbalanced(seed)
    proba = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y).predict_proba(X)
    everything = worst_recalls_of_all_rules(proba)
    assert len(everything) == 3**8
    mixture = mw.optimize(proba, None, "min_recall", strategy=mw.Strategy(randomized=True))
    assert mixture.value > everything.max() + 0.01
    assert mixture.gap <= TOL
    assert 2 <= len(mixture.rule.rules) <= 3
    distinct, count = np.unique(proba, axis=0, return_counts=True)
    rows = p.single(distinct, count)
    assert mixture.value == pytest.approx(_row_programme(rows), abs=TOL)

    single = mw.optimize(proba, None, "min_recall")
    assert isinstance(single.rule, mw.WeightedRule)
    assert np.isclose(everything, single.value, atol=1e-12).any()
    assert mixture.alternative == pytest.approx(single.value, abs=1e-12)
    assert single.alternative == pytest.approx(mixture.value, abs=2 * TOL)
    assert f"would add {mixture.value - single.value:.3g}" in single.status
    assert f"best single rule found has a value of {single.value:.6g}" in mixture.status


def _row_programme(rows):
    """The largest worst recall as a programme over q (row, class): the rules are too many to list as columns."""
    from scipy.optimize import linprog

    n, k = rows.eta.shape
    hits = np.zeros((k, n * k + 1))
    for i in range(k):
        hits[i, i : n * k : k] = -rows.mass[:, i] / rows.priors[i]
    hits[:, -1] = 1.0
    sums = np.hstack([np.kron(np.eye(n), np.ones(k)), np.zeros((n, 1))])
    answer = linprog(
        np.append(np.zeros(n * k), -1.0),
        A_ub=hits,
        b_ub=np.zeros(k),
        A_eq=sums,
        b_eq=np.ones(n),
        bounds=[(0, 1)] * (n * k) + [(None, None)],
    )
    return -answer.fun


@pytest.mark.parametrize("seed", range(4))
def test_nearest_neighbours(seed):
    X, y = imbalanced(seed)
    proba = KNeighborsClassifier(7).fit(X, y).predict_proba(X)
    solution = mw.optimize(proba, None, "min_recall", strategy=mw.Strategy(randomized=True))
    assert solution.gap <= TOL
    assert len(solution.rule.rules) <= 3
    distinct, count = np.unique(proba.round(9), axis=0, return_counts=True)
    assert solution.value == pytest.approx(_row_programme(p.single(distinct, count)), abs=2 * TOL)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_ten_classes(seed, rounded):
    rng = np.random.default_rng(seed)
    eta = rng.dirichlet(np.linspace(0.2, 1.5, 10), size=20_000)
    if rounded:
        eta = np.round(eta * 20) + 1e-12
        eta /= eta.sum(axis=1, keepdims=True)
    solution = mw.optimize(eta, None, "min_recall", strategy=mw.Strategy(randomized=True))
    assert solution.gap <= TOL
    assert solution.n_passes <= 60
    assert len(solution.rule.rules) <= 10
    assert solution.value > solution.baseline + 0.1
    # The mean recall of the best rule for it bounds the worst recall of any rule; by hand.
    priors = eta.mean(axis=0)
    assert solution.value < np.max(eta / priors, axis=1).mean() / 10


def test_probabilities_of_a_class_that_never_occurs():
    eta = np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.5, 0.5, 0.0]])
    rows = p.single(eta)
    check(
        mw.optimize(eta, None, "min_recall", strategy=mw.Strategy(randomized=True)),
        p.best_minimum(rows, p.recall_parts(rows.priors)),
    )


def test_an_output_of_one_class_keeps_argmax_and_spoils_nothing():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=(60, 2))
    y = np.column_stack([rng.integers(0, 3, 60), np.ones(60)])
    options = {"average": "macro", "strategy": mw.Strategy(confusion="expected", recalibrate=False, randomized=True)}
    both = mw.optimize(proba, y, "min_recall", classes=[[0, 1, 2]] * 2, **options)
    alone = mw.optimize(proba[:, 0], y[:, 0], "min_recall", **{**options, "average": None})
    frozen = p.recalls(proba[:, 1].T @ np.eye(3)[proba[:, 1].argmax(axis=1)]).min()
    assert both.optimized_value == pytest.approx((alone.optimized_value + frozen) / 2, abs=2 * TOL)
    assert "use argmax: 1" in both.status
    assert (both.rule.predict(proba)[:, 1] == proba[:, 1].argmax(axis=1)).all()


def test_early_stop_says_so():
    rng = np.random.default_rng(0)
    eta = rng.dirichlet(np.linspace(0.2, 1.5, 10), size=2_000)
    solver = mw.solvers.ColumnGeneration(max_iter=3, equalize=2, randomized=True)
    early = mw.optimize(eta, None, "min_recall", strategy=mw.Strategy(solver=solver))
    late = mw.optimize(eta, None, "min_recall", strategy=mw.Strategy(randomized=True))
    assert early.upper_bound >= late.value > early.value
    assert "raise max_iter" in early.status


def test_a_metric_that_is_no_minimum_is_refused():
    with pytest.raises(ValueError, match="ColumnGeneration needs a minimum of linear metrics"):
        mw.optimize(
            [[0.2, 0.5, 0.3], [0.6, 0.2, 0.2]], None, "g_mean", strategy=mw.Strategy(solver="column_generation")
        )


def test_with_labels_it_stops_and_improves():
    rng = np.random.default_rng(4)
    eta = rng.dirichlet([3, 1, 0.5], size=500)
    y = np.array([rng.choice(3, p=row) for row in eta])
    solution = mw.optimize(eta, y, "min_recall", strategy=mw.Strategy(confusion="labels", recalibrate=False))
    reached = p.recalls(np.eye(3)[y].T @ np.eye(3)[solution.rule.predict(eta)]).min()
    assert solution.value == pytest.approx(reached, abs=1e-12)
    assert solution.value > solution.baseline + 0.05
    assert solution.upper_bound is None
