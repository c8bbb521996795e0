"""Without labels the probabilities stand in for them: every kind of target, weights, and known shifts of the priors."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score

import metricwise as mw
import worlds
from laws.metric_records import RECORDS


def proba_of(kind, seed=0, n=120):
    """What the user passes, the same as a list of (N, K_m) arrays, and the metric."""
    rng = np.random.default_rng(seed)
    if kind in ("binary", "two columns"):
        p = rng.beta(1, 3, n)
        both = np.column_stack([1 - p, p])
        return (p if kind == "binary" else both), [both]
    if kind == "multiclass":
        p = rng.dirichlet([2, 1, 0.5], n)
        return p, [p]
    if kind == "tensor":
        p = rng.dirichlet([2, 1, 0.5], (n, 2))
        return p, [p[:, 0], p[:, 1]]
    p = [rng.dirichlet([2, 1, 0.5], n), rng.dirichlet([1, 2], n)]
    return p, p


KINDS = ["binary", "two columns", "multiclass", "tensor", "list"]
METRICS = {name: RECORDS[name].of_counts for name in ("mcc", "g_mean", "quadratic_kappa")}


def as_problem(etas, weight=None):
    return worlds.Tiny(etas, np.zeros((len(etas[0]), len(etas)), dtype=int), weight)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_expected_counts(kind, name, average):
    proba, etas = proba_of(kind)
    weight = np.random.default_rng(1).integers(1, 4, len(etas[0])) / 2
    solution = mw.optimize(proba, None, name, average=average, sample_weight=weight)
    predicted = solution.rule.predict(proba).reshape(len(weight), -1)
    problem = as_problem(etas, weight)
    assert solution.value == pytest.approx(
        worlds.value(problem, predicted, METRICS[name], average, count="expected"), abs=1e-9
    )
    plain = np.column_stack([eta.argmax(axis=1) for eta in etas])
    assert solution.baseline == pytest.approx(
        worlds.value(problem, plain, METRICS[name], average, count="expected"), abs=1e-9
    )
    assert solution.value >= solution.baseline - 1e-12
    assert solution.counted == "expected"
    assert solution.gain is None


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("kind", ["multiclass", "tensor", "list"])
def test_labels_drawn_from_the_probabilities_bear_it_out(kind, name):
    proba, etas = proba_of(kind, n=20_000)
    rng = np.random.default_rng(2)
    y = np.column_stack([worlds.draw_codes(eta, rng) for eta in etas])
    solution = mw.optimize(proba, None, name, average="micro")
    predicted = solution.rule.predict(proba).reshape(y.shape)
    seen = worlds.value(worlds.Tiny(etas, y), predicted, METRICS[name])
    assert solution.value == pytest.approx(seen, abs=0.02)


def test_labels_that_are_ignored_change_nothing():
    """Expected confusion never looks at which label it is, only whether there is one."""
    proba, _ = proba_of("multiclass")
    y = np.random.default_rng(0).integers(0, 3, len(proba))
    without = mw.optimize(proba, None, "macro_f1")
    ignored = mw.optimize(proba, y, "macro_f1", strategy=mw.Strategy(confusion="expected", recalibrate=False))
    assert without.value == ignored.optimized_value
    assert without.rule == ignored.rule


def test_classes_name_the_columns():
    proba, _ = proba_of("multiclass")
    solution = mw.optimize(proba, None, "macro_f1", classes=["low", "mid", "top"])
    codes = mw.optimize(proba, None, "macro_f1").rule.predict(proba)
    np.testing.assert_array_equal(solution.rule.predict(proba), np.array(["low", "mid", "top"])[codes])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": mw.Strategy(confusion="labels")}, r"confusion='labels'\) needs y"),
        ({"strategy": mw.Strategy(confusion="blended")}, r"confusion='blended'\) needs y"),
        ({"strategy": mw.Strategy(recalibrate=True)}, r"recalibrate=True\) needs y"),
    ],
)
def test_what_needs_labels_says_so(options, message):
    with pytest.raises(ValueError, match=message):
        mw.optimize(proba_of("multiclass")[0], None, "macro_f1", **options)


# --------------------------------------------------------------------------------------------------- shifted priors
# Classes are Gaussian clouds, so that the right probabilities are known under any priors.

CENTRES = np.array([[0, 0], [1.5, 0], [0, 1.5]])
SHIFTS = [
    ([0.9, 0.1], [0.5, 0.5], "f1"),
    ([0.5, 0.5], [0.95, 0.05], "f1"),
    ([0.6, 0.3, 0.1], [0.2, 0.2, 0.6], "macro_f1"),
    ([0.6, 0.3, 0.1], [0.2, 0.2, 0.6], "quadratic_kappa"),
]


def score(metric, y, predicted):
    if metric == "quadratic_kappa":
        return cohen_kappa_score(y, predicted, weights="quadratic")
    return f1_score(y, predicted, average="binary" if metric == "f1" else "macro")


def on_new_rows(rule, metric, trained, target):
    """The rule's value on many rows of the target priors, and that of the best rule for the right probabilities."""
    X, y = worlds.clouds(40_000, target, CENTRES, seed=99)
    right = worlds.posterior(X, target, CENTRES)
    best = mw.optimize(right, None, metric).rule.predict(right)
    return score(metric, y, rule.predict(worlds.posterior(X, trained, CENTRES))), score(metric, y, best)


@pytest.mark.parametrize(("trained", "target", "metric"), SHIFTS)
def test_shift_with_labels(trained, target, metric):
    """Labelled rows of the old priors, a rule for the new: each class is weighed by what is known of it."""
    X, y = worlds.clouds(5_000, trained, CENTRES, seed=0)
    options = {"prior": target, "strategy": mw.Strategy(confusion="labels", recalibrate=False)}
    solution = mw.optimize(worlds.posterior(X, trained, CENTRES), y, metric, **options)
    reached, best = on_new_rows(solution.rule, metric, trained, target)
    assert reached > best - 0.02
    assert solution.value == pytest.approx(reached, abs=0.05)


@pytest.mark.parametrize(("trained", "target", "metric"), SHIFTS)
def test_shift_of_a_batch_without_labels(trained, target, metric):
    """A batch of the new priors, probabilities of a model that was trained under the old, and no labels."""
    X, _ = worlds.clouds(5_000, target, CENTRES, seed=0)
    solution = mw.optimize(worlds.posterior(X, trained, CENTRES), None, metric, prior=target)
    reached, best = on_new_rows(solution.rule, metric, trained, target)
    assert reached > best - 0.005
    assert solution.value == pytest.approx(reached, abs=0.02)


@pytest.mark.parametrize(("trained", "target", "metric"), SHIFTS)
def test_shift_with_labels_and_expected_confusion(trained, target, metric):
    """Labelled rows of the old priors, counted by probabilities: rows of classes that grow must weigh more."""
    X, y = worlds.clouds(5_000, trained, CENTRES, seed=0)
    options = {"prior": target, "strategy": mw.Strategy(confusion="expected", recalibrate=False)}
    solution = mw.optimize(worlds.posterior(X, trained, CENTRES), y, metric, **options)
    reached, best = on_new_rows(solution.rule, metric, trained, target)
    assert reached > best - 0.005
    assert solution.optimized_value == pytest.approx(reached, abs=0.02)
    assert solution.value == pytest.approx(reached, abs=0.05)  # fewer rows of the classes that grow


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_takes_a_prior(kind):
    """The rule carries the shift: on each output it leans towards the class that is said to be common."""
    proba, etas = proba_of(kind)
    rare = [np.array([0.5, 0.25, 0.25]) if eta.shape[1] == 3 else np.array([0.6, 0.4]) for eta in etas]
    common = [np.array([0.02, 0.03, 0.95]) if eta.shape[1] == 3 else np.array([0.02, 0.98]) for eta in etas]
    counts = []
    for prior in (rare, common):
        given = prior if len(etas) > 1 else prior[0]
        predicted = mw.optimize(proba, None, "quadratic_kappa", prior=given, average="macro").rule.predict(proba)
        last = [eta.shape[1] - 1 for eta in etas]
        counts.append((predicted.reshape(len(etas[0]), -1) == last).sum())
    assert counts[1] > counts[0]
