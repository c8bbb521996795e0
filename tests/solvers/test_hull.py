"""Randomised rules as a solver returns them: when, how few, what they are worth, and that drawing is reproducible."""

import numpy as np
import pytest

import metricwise as mw
import programmes as p
import worlds

pytestmark = pytest.mark.usefixtures("engine")

SOLVED = {"min_recall": lambda C: p.recalls(C).min(), "g_mean": p.g_mean, "h_mean": p.h_mean, "q_mean": p.q_mean}


def atoms(seed=0, n=300, k=3, steps=5):
    """Probabilities with few distinct values, as trees and neighbours give."""
    return worlds.stepped(n, k, steps, seed, concentration=3.0)


def smooth(seed=0, n=2_000, k=3):
    return np.random.default_rng(seed).dirichlet(np.linspace(0.5, 2, k), size=n)


# ------------------------------------------------------------------------------------------------- when and how few


@pytest.mark.parametrize("name", SOLVED)
@pytest.mark.parametrize("seed", range(3))
def test_mixture_only_where_it_helps(name, seed):
    for eta in (atoms(seed), smooth(seed)):
        mixed = mw.optimize(eta, None, name, strategy=mw.Strategy(randomized=True))
        single = mw.optimize(eta, None, name)
        assert isinstance(single.rule, mw.WeightedRule)
        assert single.alternative == pytest.approx(mixed.value, abs=2e-6)
        if isinstance(mixed.rule, mw.MixtureRule):
            assert mixed.value > single.value + 1e-7
            assert mixed.alternative == pytest.approx(single.value, abs=1e-12)
            assert 2 <= len(mixed.rule.rules) <= 3
        else:
            assert mixed.rule == single.rule
            assert single.alternative - single.value <= 1e-6
            assert "No mixture of rules was found that is better than" in mixed.status


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "quadratic_kappa", "micro_f1"])
def test_linear_metrics_and_ratios_need_no_mixture(name):
    """Their optimum is at a vertex; what is optimal over all randomised rules is one rule."""
    solution = mw.optimize(atoms(), None, name, strategy=mw.Strategy(randomized=True))
    assert isinstance(solution.rule, mw.WeightedRule)
    assert solution.gap <= 1e-9


def test_one_half_of_each_where_rows_are_all_alike():
    """By hand: with the same row always, recall is how often a class is predicted."""
    solution = mw.optimize(np.tile([0.9, 0.1], (5, 1)), None, "min_recall", strategy=mw.Strategy(randomized=True))
    assert solution.value == pytest.approx(0.5, abs=1e-6)
    assert len(solution.rule.rules) == 2
    np.testing.assert_allclose(solution.rule.distribution([[0.9, 0.1]]), [[0.5, 0.5]], atol=1e-6)
    assert solution.alternative == 0.0
    three = mw.optimize(np.tile([0.5, 0.3, 0.2], (5, 1)), None, "min_recall", strategy=mw.Strategy(randomized=True))
    assert three.value == pytest.approx(1 / 3, abs=1e-6)
    assert len(three.rule.rules) == 3


@pytest.mark.parametrize("name", SOLVED)
@pytest.mark.parametrize("seed", range(4))
def test_two_rules_suffice_for_two_classes(name, seed):
    solution = mw.optimize(atoms(seed, k=2, steps=6), None, name, strategy=mw.Strategy(randomized=True))
    assert solution.gap <= 1e-6
    assert not isinstance(solution.rule, mw.MixtureRule) or len(solution.rule.rules) == 2


def test_two_rules_where_the_third_class_is_certain():
    """Two classes compete for the worst recall; the third is told apart, so that the optimum lies on an edge."""
    eta = np.vstack([np.tile([0.7, 0.3, 0.0], (6, 1)), np.tile([0.0, 0.0, 1.0], (2, 1))])
    for name in SOLVED:
        solution = mw.optimize(eta, None, name, strategy=mw.Strategy(randomized=True))
        assert solution.gap <= 1e-6
        assert len(solution.rule.rules) == 2


def best_of_pairs(recalls):
    """The largest worst recall that any two of the rules reach together."""
    one, two = np.triu_indices(len(recalls), 1)
    start, step = recalls[one], recalls[two] - recalls[one]
    best = recalls.min(axis=1).max()
    for i, j in ((0, 1), (0, 2), (1, 2)):
        apart = step[:, i] - step[:, j]
        share = np.clip(np.divide(start[:, j] - start[:, i], apart, out=np.zeros(len(apart)), where=apart != 0), 0, 1)
        best = max(best, (start + share[:, None] * step).min(axis=1).max())
    return best


def test_no_more_rules_than_needed():
    """Against all pairs of all deterministic rules: three rules are returned only where no two reach the optimum."""
    counted = {1: 0, 2: 0, 3: 0}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        eta = rng.dirichlet(np.full(3, rng.choice([0.2, 0.5])), size=rng.integers(2, 6)).round(1)
        rows = p.single(eta / eta.sum(axis=1, keepdims=True))
        if np.any(rows.priors == 0):
            continue
        solution = mw.optimize(rows.eta, None, "min_recall", strategy=mw.Strategy(randomized=True))
        n_rules = len(solution.rule.rules) if isinstance(solution.rule, mw.MixtureRule) else 1
        if n_rules == 3:
            recalls = np.array([p.recalls(C) for C in rows.vertices()])
            assert best_of_pairs(np.unique(recalls.round(12), axis=0)) < solution.value - 1e-6
        counted[n_rules] += 1
    assert counted[2] >= 3
    assert counted[3] >= 10


# ---------------------------------------------------------------------------------------------------- what it is worth


@pytest.mark.parametrize("name", SOLVED)
@pytest.mark.parametrize("weighted", [False, True])
def test_value_is_that_of_the_distribution(name, weighted):
    eta = atoms(2)
    weight = np.random.default_rng(0).integers(1, 4, len(eta)) if weighted else None
    solution = mw.optimize(eta, None, name, sample_weight=weight, strategy=mw.Strategy(randomized=True))
    assert isinstance(solution.rule, mw.MixtureRule)
    C = p.single(eta, weight).confusion(solution.rule.distribution(eta))
    np.testing.assert_allclose(solution.confusion[0], C, atol=1e-12)
    assert solution.value == pytest.approx(SOLVED[name](C), abs=1e-12)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_value_of_several_outputs(average):
    etas = [atoms(0), atoms(1, k=2, steps=4)]
    solution = mw.optimize(etas, None, "min_recall", average=average, strategy=mw.Strategy(randomized=True))
    distribution = solution.rule.distribution(etas)
    assert distribution.shape == (300, 2, 3)
    np.testing.assert_allclose(distribution.sum(axis=2), 1.0, atol=1e-12)
    assert (distribution[:, 1, 2] == 0).all()
    parts = [p.single(eta).confusion(distribution[:, m, : eta.shape[1]]) for m, eta in enumerate(etas)]
    if average == "macro":
        value = np.mean([p.recalls(C).min() for C in parts])
    else:
        value = p.recalls(parts[0] + np.pad(parts[1], (0, 1))).min()
    assert solution.value == pytest.approx(value, abs=1e-12)


def test_value_on_labels_is_the_expectation_over_draws():
    eta = atoms(3)
    rng = np.random.default_rng(1)
    y = np.array([rng.choice(3, p=row) for row in eta])
    solution = mw.optimize(
        eta, y, "min_recall", strategy=mw.Strategy(confusion="expected", recalibrate=False, randomized=True)
    )
    C = np.eye(3)[y].T @ solution.rule.distribution(eta)
    assert solution.value == pytest.approx(p.recalls(C).min(), abs=1e-12)


def test_draws_follow_the_distribution():
    eta = np.tile(atoms(4, n=4, steps=3), (5_000, 1))
    solution = mw.optimize(eta, None, "min_recall", strategy=mw.Strategy(randomized=True))
    assert isinstance(solution.rule, mw.MixtureRule)
    drawn = solution.rule.predict(eta).reshape(-1, 4)
    for row in range(4):
        seen = np.bincount(drawn[:, row], minlength=3) / len(drawn)
        assert np.abs(seen - solution.rule.distribution(eta[row : row + 1])[0]).max() < 4 * 0.5 / np.sqrt(len(drawn))


# ------------------------------------------------------------------------------------------------------------- drawing


@pytest.mark.parametrize("sizes", [[100, 200], [1] * 300, [0, 299, 1]])
def test_chunks_draw_like_the_whole(sizes):
    eta = atoms(5)
    rule = mw.optimize(eta, None, "min_recall", strategy=mw.Strategy(randomized=True)).rule
    assert isinstance(rule, mw.MixtureRule)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parts = [rule.predict(eta[a : a + n], start=int(a)) for a, n in zip(starts[:-1], sizes, strict=True) if n]
    np.testing.assert_array_equal(np.concatenate(parts), rule.predict(eta))


def test_draws_depend_on_the_seed_and_the_position_only():
    eta = atoms(5)
    rules = [
        mw.optimize(eta, None, "min_recall", random_state=seed, strategy=mw.Strategy(randomized=True)).rule
        for seed in (0, 0, 1)
    ]
    one, same, other = (rule.predict(eta) for rule in rules)
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    np.testing.assert_array_equal(rules[0].distribution(eta), rules[2].distribution(eta))
    # A row's draw does not depend on the rows around it.
    alone = [rules[0].predict(eta[i : i + 1], start=i)[0] for i in range(40)]
    np.testing.assert_array_equal(alone, one[:40])


def test_labels_and_a_file_keep_the_mixture():
    eta = atoms(6)
    rng = np.random.default_rng(2)
    y = np.array(["low", "mid", "top"])[[rng.choice(3, p=row) for row in eta]]
    solution = mw.optimize(
        eta, y, "min_recall", strategy=mw.Strategy(confusion="expected", recalibrate=True, randomized=True)
    )
    rule = mw.MixtureRule.from_json(solution.rule.to_json())
    assert rule == solution.rule
    assert set(rule.predict(eta)) <= {"low", "mid", "top"}
    np.testing.assert_array_equal(rule.predict(eta), solution.rule.predict(eta))


def test_choosing_a_recipe_leaves_the_mixture_to_the_end():
    eta = atoms(7)
    rng = np.random.default_rng(3)
    y = np.array([rng.choice(3, p=row) for row in eta])
    solution = mw.optimize(eta, y, "min_recall", strategy=mw.Strategy(randomized=True))
    assert solution.gain is not None
    assert np.isfinite([solution.gain.low, solution.gain.estimate, solution.gain.high]).all()
    C = np.eye(3)[y].T @ (
        solution.rule.distribution(eta)
        if isinstance(solution.rule, mw.MixtureRule)
        else np.eye(3)[solution.rule.predict(eta)]
    )
    assert solution.value == pytest.approx(p.recalls(C).min(), abs=1e-12)


@pytest.mark.parametrize("value", [1, "yes", None])
def test_randomized_must_be_a_truth_value(value):
    with pytest.raises(ValueError, match="randomized must be True or False"):
        mw.optimize(atoms(), None, "min_recall", strategy=mw.Strategy(randomized=value))
