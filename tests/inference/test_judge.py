"""Standard errors of the judge against brute force written here: the jackknife, and a plain bootstrap of rows."""

import numpy as np
import pytest
from sklearn import metrics as sk

import metricwise as mw
import worlds
from metricwise.inference.costs import CostJudge
from metricwise.inference.decisions import Decisions
from metricwise.inference.judge import Judge
from metricwise.rules import CostRule
from problems import read_problem

SCORES = {
    "accuracy": sk.accuracy_score,
    "macro_f1": lambda y, d, **options: sk.f1_score(y, d, average="macro", zero_division=0.0, **options),
    "kappa": sk.cohen_kappa_score,
    "mcc": sk.matthews_corrcoef,
    "balanced_accuracy": sk.balanced_accuracy_score,
}


def some_rows(n=240, seed=0):
    """Labels of three classes, and two sets of decisions that differ in a fifth of the rows."""
    rng = np.random.default_rng(seed)
    proba, y = worlds.multiclass(n, [4, 2, 1], seed=rng)
    first = proba.argmax(axis=1)
    second = np.where(rng.random(n) < 0.2, rng.integers(0, 3, n), first)
    return proba, y, first, second


def judge_of(proba, y, metric, **options):
    return Judge(read_problem(proba, y, metric, **options).sample(len(y), 0))


def pair_errors(judge, first, second):
    return judge.pair([Decisions.of_codes(codes[:, None]) for codes in (first, second)])


def jackknife(score, y, first, second, weight, units):
    """Standard errors of two scores and of their difference, each unit of rows left out in turn."""
    values = []
    for unit in np.unique(units):
        kept = units != unit
        options = {} if weight is None else {"sample_weight": weight[kept]}
        pair = [score(y[kept], codes[kept], **options) for codes in (first, second)]
        values.append([*pair, pair[0] - pair[1]])
    n = len(values)
    return np.std(values, axis=0) * np.sqrt(n - 1)


@pytest.mark.parametrize("rows", ["alike", "weighted", "clustered"])
@pytest.mark.parametrize("metric", SCORES)
def test_errors_are_those_of_the_jackknife(metric, rows):
    proba, y, first, second = some_rows()
    weight = np.random.default_rng(1).integers(1, 5, len(y)) if rows == "weighted" else None
    units = np.arange(len(y)) // 4 if rows == "clustered" else np.arange(len(y))
    options = {"sample_weight": weight, "groups": units if rows == "clustered" else None}
    values, errors = pair_errors(judge_of(proba, y, metric, **options), first, second)
    scored = [
        SCORES[metric](y, codes, **({} if weight is None else {"sample_weight": weight})) for codes in (first, second)
    ]
    np.testing.assert_allclose(values, scored, atol=1e-12)
    np.testing.assert_allclose(errors, jackknife(SCORES[metric], y, first, second, weight, units), rtol=0.08)


def bootstrap(values_of, n, seed=3, n_resamples=500):
    rng = np.random.default_rng(seed)
    return np.array([values_of(rng.integers(0, n, n)) for _ in range(n_resamples)])


def test_errors_of_a_metric_with_a_kink_are_those_of_the_bootstrap():
    """Root mean squares about the value: the least of several recalls is smaller in samples than in all rows."""
    proba, y, first, second = some_rows(600, seed=2)

    def least(codes, at):
        return sk.recall_score(y[at], codes[at], average=None, labels=[0, 1, 2], zero_division=0.0).min()

    values, errors = pair_errors(judge_of(proba, y, "min_recall"), first, second)
    drawn = bootstrap(lambda at: (least(first, at), least(second, at)), len(y))
    deviations = drawn - np.array(values)
    deviations = np.column_stack([deviations, deviations[:, 0] - deviations[:, 1]])
    np.testing.assert_allclose(errors, np.sqrt(np.mean(deviations**2, axis=0)), rtol=0.15)


def test_the_bootstrap_knows_that_class_priors_vary():
    """Kappa depends on the priors: resamples that keep those of all rows vary less."""
    proba, y, first, second = some_rows(300, seed=4)
    judge, pair = judge_of(proba, y, "kappa"), [Decisions.of_codes(codes[:, None]) for codes in (first, second)]
    by_hand = bootstrap(lambda at: [sk.cohen_kappa_score(y[at], codes[at]) for codes in (first, second)], len(y))
    expected = [*by_hand.std(axis=0), np.std(by_hand[:, 0] - by_hand[:, 1])]
    np.testing.assert_allclose(judge.bootstrap(pair, n=1_000), expected, rtol=0.1)


def test_errors_of_costs_are_those_of_the_bootstrap():
    """Of calibrated probabilities, by which the labels that rows could have had vary as new rows do."""
    rng = np.random.default_rng(5)
    proba = rng.beta(1, 3, 3_000)
    y, cost = (rng.random(3_000) < proba).astype(int), rng.gamma(2, 10, (3_000, 2))
    source = read_problem(proba, y, "accuracy").sample(3_000, 0).source
    codes = [(proba > threshold).astype(np.intp) for threshold in (0.2, 0.5)]
    judge = CostJudge(source, CostRule(([0, 1],)), cost, np.column_stack([1 - proba, proba]))
    comparison = judge.compare([Decisions.of_codes(own[:, None]) for own in codes])
    paid = [np.where(own != y, cost[np.arange(3_000), y], 0.0) for own in codes]
    by_hand = bootstrap(lambda at: [-paid[0][at].mean(), -paid[1][at].mean()], 3_000)
    expected = [*by_hand.std(axis=0), np.std(by_hand[:, 0] - by_hand[:, 1])]
    estimates = (comparison.value, comparison.baseline, comparison.difference)
    assert comparison.value.estimate == pytest.approx(-paid[0].mean())
    widths = [(estimate.high - estimate.low) / (2 * 1.96) for estimate in estimates]
    np.testing.assert_allclose(widths, expected, rtol=0.1)


def test_errors_of_a_gap_are_those_of_the_bootstrap():
    """Two groups that are clearly apart, so that it is plain which one is ahead."""
    rng = np.random.default_rng(6)
    group = np.arange(1_200) % 2
    y = rng.integers(0, 2, 1_200)
    first, second = (np.where(rng.random(1_200) < np.where(group == 0, p, 0.6), y, 1 - y) for p in (0.9, 0.8))

    def gaps(at):
        def recall(codes, g):
            members = at[(group[at] == g) & (y[at] == 1)]
            return codes[members].mean()

        return [recall(codes, 0) - recall(codes, 1) for codes in (first, second)]

    result = mw.evaluate(first, None, y, "recall gap", against=second, sensitive_features=group)["recall gap"]
    by_hand = bootstrap(gaps, 1_200)
    expected = [*by_hand.std(axis=0), np.std(by_hand[:, 0] - by_hand[:, 1])]
    value = gaps(np.arange(1_200))[0]
    assert result.value.estimate == pytest.approx(value)
    upper = [result.value.high - result.value.estimate, result.baseline.high - result.baseline.estimate]
    np.testing.assert_allclose(np.array(upper) / 1.96, expected[:2], rtol=0.1)
    difference = result.difference
    assert (difference.high - difference.low) / (2 * 1.96) == pytest.approx(expected[2], rel=0.1)


def test_errors_of_gains_by_class_are_those_of_the_jackknife():
    proba, y, _, _ = some_rows(300, seed=7)
    strategy = mw.Strategy(confusion="labels", recalibrate=False)
    solution = mw.optimize(proba, y, "macro_f1", strategy=strategy)
    gains, decided, argmax = solution.details.gains, solution.predict(proba), proba.argmax(axis=1)
    units = np.arange(len(y))
    for j in range(3):
        labels = [(codes == j).astype(int) for codes in (y, decided, argmax)]
        expected = jackknife(sk.f1_score, *labels, None, units)
        columns = (gains.value, gains.baseline, gains.difference)
        widths = [(column[j, 2] - column[j, 0]) / 1.97 for column in columns]  # the other ends may be clipped
        np.testing.assert_allclose(widths, expected, rtol=0.1)
