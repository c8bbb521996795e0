"""Rules fitted anew to rows without labels: against the best threshold for the true shares, and refusals."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

import metricwise as mw
from worlds.gaussian import GaussianWorld


def binary_rows(seed=0, shares=(0.85, 0.15), n_rows=3000):
    rng = np.random.default_rng(seed)
    world = GaussianWorld(np.array([[0.0, 0.0, 0.0], [1.2, 0.6, 0.0]]), np.array([0.85, 0.15]))
    x, y = world.draw(rng, n_rows, np.array(shares))
    return world.posterior(x), y


def test_an_adapted_threshold_comes_close_to_the_best_one():
    proba, y = binary_rows()
    new, labels = binary_rows(1, (0.45, 0.55), 20_000)
    rule = mw.optimize(proba[:, 1], y, "f1").rule
    adapted = rule.adapted(new[:, 1])
    grid = np.linspace(0.01, 0.99, 99)
    values = [f1_score(labels, new[:, 1] > t) for t in grid]
    stale, value = (f1_score(labels, r.predict(new[:, 1])) for r in (rule, adapted))
    assert value > max(values) - 0.005
    assert stale < max(values) - 0.02
    assert adapted.metadata.moved == "adapted"
    assert "Adapted to the class shares of rows without labels." in adapted.describe()
    assert mw.load_rule(adapted.to_json()) == adapted


def test_nothing_moved_returns_the_rule():
    proba, y = binary_rows()
    rule = mw.optimize(proba[:, 1], y, "f1").rule
    assert rule.adapted(binary_rows(3)[0][:, 1]) is rule


def test_exact_rules_are_moved():
    proba, y = binary_rows()
    new = binary_rows(1, (0.4, 0.6))[0]
    rule = mw.optimize(proba, y, mw.metrics.Cost([[0, 1], [3, 0]]), strategy=mw.Strategy(confusion="expected")).rule
    assert rule.adapted(new) == rule.with_prior(mw.estimate_shares(rule, new))


@pytest.mark.parametrize("row_input", ["logits", "scores"])
def test_logits_and_scores_keep_their_unit(row_input):
    proba, y = binary_rows()
    new = binary_rows(1, (0.4, 0.6))[0]
    z, z_new = (np.log(p[:, 1] / p[:, 0]) for p in (proba, new))
    rule = mw.optimize(z, y, "f1", input=row_input).rule
    adapted = rule.adapted(z_new)
    assert isinstance(adapted, mw.CutPointRule)
    by_probability = mw.optimize(proba[:, 1], y, "f1").rule.adapted(new[:, 1]).threshold
    assert adapted.threshold == pytest.approx(np.log(by_probability / (1 - by_probability)), abs=0.1)


def test_constraints_hold_in_expectation_and_are_no_longer_promised():
    proba, y = binary_rows()
    new, labels = binary_rows(1, (0.95, 0.05), 20_000)
    rule = mw.optimize(proba, y, "recall", subject_to="precision >= 0.4").rule
    adapted = rule.adapted(new)
    before, after = (mw.evaluate(r, new, labels, "precision")["precision"].value.estimate for r in (rule, adapted))
    assert before < 0.35
    assert after > 0.36
    assert adapted.metadata.promises[0]["confidence"] is None
    assert "No longer promised" in adapted.describe()


def test_several_classes_and_an_order():
    rng = np.random.default_rng(0)
    world = GaussianWorld(np.array([[-1.0, 0, 0], [0, 0, 0], [1.0, 0, 0]]), np.array([0.5, 0.3, 0.2]))
    x, y = world.draw(rng, 3000)
    names = np.array(["low", "mid", "high"])
    rule = mw.optimize(
        world.posterior(x), names[y], "quadratic_kappa", classes=names, order=["low", "mid", "high"]
    ).rule
    new, labels = world.draw(rng, 5000, np.array([0.1, 0.3, 0.6]))
    adapted = rule.adapted(world.posterior(new))
    values = [
        mw.evaluate(r, world.posterior(new), names[labels], "quadratic_kappa")["quadratic_kappa"].value.estimate
        for r in (rule, adapted)
    ]
    assert values[1] > values[0] + 0.02


def test_outputs_that_did_not_move_are_decided_as_before():
    rng = np.random.default_rng(0)
    proba = rng.beta(0.6, 2, (6000, 3))
    y = (rng.random(proba.shape) < proba).astype(int)
    rule = mw.optimize(proba[:3000], y[:3000], "f1", average="macro").rule
    kept = 3000 + np.flatnonzero((y[3000:, 1] == 1) | (rng.random(3000) < 0.3))
    adapted = rule.adapted(proba[kept])
    same = (adapted.predict(proba) == rule.predict(proba)).all(axis=0)
    assert same.tolist() == [True, False, True]


def test_a_rule_that_may_abstain():
    proba, y = binary_rows()
    new = binary_rows(1, (0.4, 0.6))[0]
    rule = mw.optimize(proba, y, "accuracy", abstain=True, subject_to="abstained <= 0.2").rule
    adapted = rule.adapted(new)
    assert adapted.abstain_label == rule.abstain_label
    assert np.mean(adapted.predict(new) == rule.abstain_label) <= 0.21


def test_too_few_rows_are_refused_with_the_remedy():
    proba, y = binary_rows()
    rule = mw.optimize(proba, y, "f1").rule
    with pytest.raises(mw.InvalidParameter, match=r"at least 1,000 rows.*999.*estimate_shares"):
        rule.adapted(proba[:999])


def test_a_metric_that_has_no_name_must_be_given():
    proba, y = binary_rows()
    new = binary_rows(1, (0.4, 0.6))[0]
    half = mw.metrics.from_function(lambda C: C[1, 1] / (0.5 + C[:, 1].sum()))
    rule = mw.optimize(proba, y, half).rule
    with pytest.raises(mw.InvalidParameter, match="metric"):
        rule.adapted(new)
    assert rule.adapted(new, metric=half).metadata.moved == "adapted"


def test_rules_by_hand_are_refused():
    with pytest.raises(mw.InvalidParameter, match="rules by hand"):
        mw.WeightedRule.from_thresholds(0.3).adapted(np.full(1000, 0.5))


def test_a_rule_that_was_moved_goes_back_when_shares_do():
    proba, y = binary_rows()
    rule = mw.optimize(proba[:, 1], y, "f1").rule
    moved = rule.adapted(binary_rows(1, (0.4, 0.6))[0][:, 1])
    back = moved.adapted(binary_rows(3)[0][:, 1])
    assert abs(back.threshold - rule.threshold) < 0.05 < rule.threshold - moved.threshold


def test_another_metric_is_named():
    proba, y = binary_rows()
    rule = mw.optimize(proba, y, "f1").rule
    assert rule.adapted(binary_rows(1, (0.4, 0.6))[0], metric="mcc").metadata.metric == "mcc"


def test_metrics_by_output_are_asked_for():
    rng = np.random.default_rng(0)
    proba = rng.beta(0.6, 2, (4000, 2))
    y = (rng.random(proba.shape) < proba).astype(int)
    rule = mw.optimize(proba[:2000], y[:2000], ["f1", "kappa"]).rule
    kept = 2000 + np.flatnonzero((y[2000:, 1] == 1) | (rng.random(2000) < 0.3))
    new = np.tile(proba[kept], (3, 1))
    with pytest.raises(mw.InvalidParameter, match=r"metric must be given.*metric=\{output: metric"):
        rule.adapted(new)
    assert rule.adapted(new, metric=["f1", "kappa"]).metadata.moved == "adapted"


@pytest.mark.parametrize("level", [0.0, -3, "a", True])
def test_the_level_is_checked(level):
    proba, y = binary_rows()
    with pytest.raises((ValueError, TypeError), match="level must be above 0"):
        mw.optimize(proba, y, "f1").rule.adapted(proba, level=level)
