"""Classes that no label shows: they keep the weight that argmax gives them."""

import numpy as np
import pytest

import metricwise as mw
import worlds
from metricwise.oracles.problem import FitStrategy
from metricwise.rules import fit_link
from problems import read_problem

BY_CLASS = ["balanced_accuracy", "macro_f1", "g_mean", "h_mean", "q_mean", "min_recall"]
COUNTING = [
    ("expected", True),
    ("expected", False),
    ("blended", True),
    ("blended", False),
    ("labels", True),
    ("labels", False),
]


def world(rng, n, priors, centres, model_prior):
    """Rows of normal classes; the probabilities of a model that knows them but has other priors in mind."""
    X, y = worlds.clouds(n, priors, centres, seed=rng)
    return worlds.posterior(X, model_prior, centres), y


@pytest.mark.parametrize(("confusion", "recalibrate"), COUNTING)
@pytest.mark.parametrize("metric", BY_CLASS)
def test_declared_classes_that_never_occur_get_no_more_rows_than_argmax_gives_them(metric, confusion, recalibrate):
    score = mw.metrics.get_metric(metric).score
    gains, given = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(5, 4))
        setting = ([0.5, 0.3, 0.2, 0.0, 0.0], centres, [0.45, 0.27, 0.18, 0.05, 0.05])
        proba, y = world(rng, 500, *setting)
        new, labels = world(rng, 10_000, *setting)
        solution = mw.optimize(
            proba, y, metric, classes=list(range(5)), strategy=mw.Strategy(confusion=confusion, recalibrate=recalibrate)
        )
        predicted, plain = solution.rule.predict(new), new.argmax(axis=1)
        given.append(np.mean(predicted >= 3) - np.mean(plain >= 3))
        values = [score(labels, codes, classes=list(range(5))) for codes in (predicted, plain)]
        gains.append(values[0] - values[1])
    assert np.mean(given) < 0.02
    assert np.mean(gains) > 0


def test_many_declared_classes_of_several_outputs_do_no_harm():
    """Three outputs of nine classes each, most of them in no label given, and all of them in the rows to come."""
    rng = np.random.default_rng(0)
    centres = [rng.normal(size=(9, 5)) * 1.5 for _ in range(3)]
    priors = [rng.dirichlet(np.full(9, 0.35)) for _ in range(3)]

    def draw(n):
        parts = [
            world(rng, n, prior, centre, prior * 0.7 + 0.3 / 9) for prior, centre in zip(priors, centres, strict=True)
        ]
        return [proba for proba, _ in parts], np.column_stack([y for _, y in parts])

    (proba, y), (new, labels) = draw(60), draw(20_000)
    assert min(len(np.unique(y[:, m])) for m in range(3)) < 8
    classes = [list(range(9))] * 3
    score = mw.metrics.BalancedAccuracy().score
    plain = score(labels, np.column_stack([p.argmax(axis=1) for p in new]), average="macro", classes=classes)
    for confusion, recalibrate in COUNTING:
        solution = mw.optimize(
            proba,
            y,
            "balanced_accuracy",
            average="macro",
            classes=classes,
            strategy=mw.Strategy(confusion=confusion, recalibrate=recalibrate),
        )
        assert score(labels, solution.rule.predict(new), average="macro", classes=classes) > plain - 0.02


@pytest.mark.parametrize("metric", ["kappa", "quadratic_kappa", "micro_f1", "accuracy", "mcc", "weighted_f1"])
def test_metrics_that_weigh_by_rows_take_the_probabilities_at_their_word(metric):
    """They give a rare class no more than its rows: what is expected is maximised, whatever the labels show."""
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(4), 40)
    y = worlds.draw_codes(worlds.normalized(proba[:, :3]), rng)  # never the last class
    options = {"classes": [0, 1, 2, 3], "strategy": mw.Strategy(confusion="expected", recalibrate=False)}
    assert mw.optimize(proba, y, metric, **options).rule == mw.optimize(proba, None, metric).rule


def test_classes_that_labels_show_are_taken_at_their_word_too():
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.ones(3), 40)
    y = worlds.draw_codes(worlds.normalized(proba), rng)
    y[:3] = range(3)
    fixed = mw.optimize(proba, y, "macro_f1", strategy=mw.Strategy(confusion="expected", recalibrate=False))
    assert fixed.rule == mw.optimize(proba, None, "macro_f1").rule


def test_weight_of_a_class_that_no_label_shows_is_that_of_an_average_class():
    """Balanced accuracy weighs a class by one over its share; rows have the weight 1 in the mean, and so has it."""
    rng = np.random.default_rng(3)
    proba = rng.dirichlet([6.0, 3.0, 1.0, 0.3], 400)
    y = worlds.draw_codes(worlds.normalized(proba[:, :3]), rng)
    problem = read_problem(proba, y, "balanced_accuracy", classes=[0, 1, 2, 3])
    oracle = problem.oracle("expected")
    objective = problem.objective(oracle, FitStrategy("expected"))
    weights = np.diagonal(objective.ratio.A[0] - objective.ratio.A[0, 0, 1])
    mean = (weights[:3] * oracle.priors[0, :3]).sum()
    assert weights[3] == pytest.approx(mean, rel=0.05)
    bare = problem.objective(oracle)
    assert np.diagonal(bare.ratio.A[0])[3] > 5 * mean


@pytest.mark.parametrize("metric", BY_CLASS)
def test_padded_objective_is_the_metric_of_both_confusions_together(metric):
    """Values, gradients, ratios and summaries all speak of (C + D) / (1 + sum D)."""
    rng = np.random.default_rng(4)
    proba = rng.dirichlet([6.0, 3.0, 1.0, 0.3], 60)
    y = worlds.draw_codes(worlds.normalized(proba[:, :3]), rng)
    problem = read_problem(proba, y, metric, classes=[0, 1, 2, 3])
    oracle = problem.oracle("expected")
    objective = problem.objective(oracle, FitStrategy("expected", recalibrate=True))
    predicted = np.eye(4)[rng.integers(0, 4, 60)]
    C = (proba.T @ predicted / 60)[None]
    together = (C + objective.padding) / (1 + objective.padding.sum())
    assert objective.value(C) == pytest.approx(float(mw.metrics.get_metric(metric).value(together[0])))
    if objective.ratio is not None:
        assert objective.ratio.value(*objective.ratio.at(C))[0] == pytest.approx(objective.value(C))
    assert objective.values_at(objective.summarise(C))[0] == pytest.approx(objective.value(C))
    if objective.metric.traits.smooth:
        step = 1e-6 * (np.eye(4)[1] - np.eye(4)[0])
        move = np.zeros((1, 4, 4))
        move[0, 0] = -step  # within the row of class 0
        slope = (objective.value(C + move) - objective.value(C - move)) / 2
        assert slope == pytest.approx(np.sum(objective.gradient(C) * move), rel=1e-4, abs=1e-12)


@pytest.mark.parametrize(("confusion", "recalibrate"), COUNTING)
@pytest.mark.parametrize("metric", BY_CLASS)
def test_padding_leaves_the_judging_alone(metric, confusion, recalibrate):
    rng = np.random.default_rng(5)
    proba = rng.dirichlet([6.0, 3.0, 1.0, 0.3], 60)
    y = worlds.draw_codes(worlds.normalized(proba[:, :3]), rng)
    options = {"classes": [0, 1, 2, 3], "strategy": mw.Strategy(confusion=confusion, recalibrate=recalibrate)}
    solution = mw.optimize(proba, y, metric, **options)
    score = mw.metrics.get_metric(metric).score
    assert solution.value == pytest.approx(score(y, solution.rule.predict(proba), classes=[0, 1, 2, 3]))
    assert solution.baseline == pytest.approx(score(y, proba.argmax(axis=1), classes=[0, 1, 2, 3]))


def test_link_does_not_judge_a_class_by_the_labels_it_does_not_have():
    from metricwise.data.probabilities import read_proba

    rng = np.random.default_rng(6)
    proba = rng.dirichlet([6.0, 3.0, 1.0, 1.0], 300)
    three = proba[:, :3] / proba[:, :3].sum(axis=1, keepdims=True)
    y = worlds.draw_codes(worlds.normalized(three), rng)
    for last in ([0, 1, 2, 3], [3, 0, 1, 2]):  # wherever the class stands
        order = np.argsort(last)
        link = fit_link(read_proba(proba[:, last]), order[y][:, None])
        assert link.bias[0, order[3]] == pytest.approx(0.0, abs=1e-6)
        alone = fit_link(read_proba(three), y[:, None])
        np.testing.assert_allclose(np.diff(link.bias[0, order[:3]]), np.diff(alone.bias[0]), atol=0.02)
