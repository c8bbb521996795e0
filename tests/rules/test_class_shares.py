"""Rules moved to other class shares: against refits, Bayes' rule by hand, and themselves."""

import numpy as np
import pytest

import metricwise as mw
from worlds.gaussian import GaussianWorld

EXPECTED = mw.Strategy(confusion="expected", recalibrate=True)
RAW = mw.Strategy(confusion="expected", recalibrate=False)
COST = mw.metrics.Cost([[0, 1, 4], [2, 0, 1], [9, 3, 0]])


def drawn(k=3, n_rows=1500, seed=0):
    rng = np.random.default_rng(seed)
    world = GaussianWorld.draw_world(rng, k)
    x, y = world.draw(rng, n_rows)
    return world.posterior(x, 1.5), world.logits(x, 1.5), y


NEW = {2: [0.85, 0.15], 3: [0.6, 0.1, 0.3]}


@pytest.mark.parametrize("strategy", [EXPECTED, RAW])
@pytest.mark.parametrize(
    ("k", "metric"),
    [
        (3, "accuracy"),
        (3, COST),
        (3, "ordinal"),
        (3, mw.metrics.WeightedAccuracy(class_weight=[1, 3, 2])),
        (2, "accuracy"),
        (2, mw.metrics.Cost([[0, 1], [5, 0]])),
    ],
)
def test_exact_ones_equal_a_refit(k, metric, strategy):
    proba, _, y = drawn(k)
    rule = mw.optimize(proba, y, metric, strategy=strategy).rule
    assert rule.metadata.under_new_shares == "exact"
    moved = rule.with_prior(NEW[k])
    refit = mw.optimize(proba, y, metric, strategy=strategy, prior=NEW[k]).rule
    assert np.abs(moved.loss.tensor() - refit.loss.tensor()).max() < 1e-9
    assert np.abs(moved.link.bias - refit.link.bias).max() < 1e-9
    assert (moved.predict(proba) == refit.predict(proba)).all()


@pytest.mark.parametrize("metric", ["accuracy", mw.metrics.Cost([[0, 1], [5, 0]])])
def test_exact_ones_on_logits_equal_a_refit(metric):
    _, logits, y = drawn(2)
    rule = mw.optimize(logits, y, metric, strategy=EXPECTED, input="logits").rule
    refit = mw.optimize(logits, y, metric, strategy=EXPECTED, input="logits", prior=NEW[2]).rule
    assert rule.metadata.under_new_shares == "exact"
    assert rule.with_prior(NEW[2]).threshold == pytest.approx(refit.threshold, abs=1e-9)


@pytest.mark.parametrize("metric", ["balanced_accuracy", "g_mean", "min_recall", "recall[1]"])
@pytest.mark.filterwarnings("ignore:.*recall:UserWarning")
def test_functions_of_recalls_return_the_rule_itself(metric):
    proba, _, y = drawn()
    rule = mw.optimize(proba, y, metric).rule
    assert rule.metadata.under_new_shares == "unchanged"
    assert rule.with_prior(NEW[3]) is rule


def test_costs_per_row_move_exactly():
    proba, _, y = drawn()
    cost = np.random.default_rng(0).exponential(size=(len(y), 3))
    rule = mw.optimize(proba, y, "cost", cost=cost, strategy=mw.Strategy(recalibrate=True)).rule
    moved = rule.with_prior(NEW[3])
    ratio = np.array(NEW[3]) / np.bincount(y) * len(y)
    eta = rule.calibrated(proba) * ratio
    eta /= eta.sum(axis=1, keepdims=True)
    assert np.allclose(moved.calibrated(proba), eta)
    expected = (eta * cost).sum(axis=1, keepdims=True) - eta * cost
    assert (moved.predict(proba, cost=cost) == expected.argmin(axis=1)).all()


@pytest.mark.parametrize(("metric", "followed"), [("f1", 1 / 3), ("accuracy", 1.0), ("kappa", 1 / 3)])
@pytest.mark.parametrize("row_input", ["probabilities", "logits", "scores"])
def test_a_threshold_follows_the_calibrated_odds(row_input, metric, followed):
    proba, logits, y = drawn(2)
    numbers = proba[:, 1] if row_input == "probabilities" else logits[:, 1] - logits[:, 0]
    strategy = mw.Strategy(confusion="labels", recalibrate=False)
    rule = mw.optimize(numbers, y, metric, strategy=strategy, input=row_input).rule
    assert rule.metadata.under_new_shares == "approximate"
    moved = rule.with_prior(NEW[2])
    calibration = rule.metadata.calibration
    t, (c0, c1) = calibration["temperature"][0], calibration["bias"][0]
    unit = (lambda p: np.log(p / (1 - p))) if row_input == "probabilities" else (lambda z: z)
    old, new = ((t * unit(r.threshold) + c1 - c0) for r in (rule, moved))
    shares = np.bincount(y) / len(y)
    ratio = np.log(NEW[2][1] / NEW[2][0]) - np.log(shares[1] / shares[0])
    assert new + ratio * followed == pytest.approx(old, abs=1e-6)


def test_cut_points_of_a_score_are_those_of_weighted_probabilities():
    rng = np.random.default_rng(0)
    score = rng.normal(size=2000)
    y = np.digitize(score + rng.normal(size=2000), [-1, 0, 1.2])
    rule = mw.optimize(score, y, "quadratic_kappa", input="scores").rule
    shares = np.bincount(y) / len(y)
    assert np.allclose(rule.with_prior(shares).cut_points, rule.cut_points, atol=1e-6)
    moved = rule.with_prior([0.1, 0.2, 0.3, 0.4])
    assert (moved.cut_points < rule.cut_points).all()
    back = moved.with_prior(shares)
    assert np.allclose(back.cut_points, rule.cut_points, atol=1e-6)


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "quadratic_kappa"])
def test_moving_twice_is_moving_once_and_moving_back_is_nothing(metric):
    proba, _, y = drawn()
    rule = mw.optimize(proba, y, metric).rule
    twice = rule.with_prior([0.2, 0.5, 0.3]).with_prior(NEW[3])
    assert np.allclose(twice.link.bias, rule.with_prior(NEW[3]).link.bias)
    back = twice.with_prior(np.bincount(y) / len(y))
    assert (back.predict(proba) == rule.predict(proba)).mean() > 0.999


def test_a_mixture_moves_each_of_its_rules():
    proba, _, y = drawn()
    strategy = mw.Strategy(confusion="expected", recalibrate=True, randomized=True)
    rule = mw.optimize(proba, y, "accuracy", subject_to="recall[2] >= 0.93", confidence=None, strategy=strategy).rule
    assert isinstance(rule, mw.MixtureRule)
    moved = rule.with_prior(NEW[3])
    for before, after in zip(rule.rules, moved.rules, strict=True):
        shift = after.link.bias - before.link.bias
        expected = np.log(np.array(NEW[3]) * len(y) / np.bincount(y))
        assert np.allclose(shift - shift.mean(), expected - expected.mean(), atol=0.02)  # temperatures hardly differ


def test_promises_are_withdrawn_because_decisions_are_others():
    proba, _, y = drawn(2)
    rule = mw.optimize(proba, y, "recall", subject_to=["precision >= 0.2", "false_positive_rate <= 0.8"]).rule
    moved = rule.with_prior(NEW[2])
    assert [promise["confidence"] for promise in moved.metadata.promises] == [None, None]
    assert [promise["value"] for promise in moved.metadata.promises] == [None, None]
    assert [promise["of_shares"] for promise in rule.metadata.promises] == [True, False]
    assert moved.metadata.confidence is None
    assert "No longer promised: precision >= 0.2, false_positive_rate <= 0.8." in moved.describe()
    assert "approximate" in moved.describe()


def test_a_share_of_zero_can_be_left_again():
    proba, _, y = drawn(2)
    rule = mw.optimize(proba, y, mw.metrics.Cost([[0, 1], [4, 0]]), strategy=EXPECTED).rule
    assert rule.with_prior([1, 0]).with_prior(NEW[2]).threshold == pytest.approx(rule.with_prior(NEW[2]).threshold)


def test_shares_by_class_need_no_order():
    proba, _, y = drawn()
    names = np.array(["lo", "mid", "hi"])
    rule = mw.optimize(proba, names[y], "accuracy", classes=names, strategy=EXPECTED).rule
    by_class = rule.with_prior(dict(zip(names, NEW[3], strict=True)))
    in_order = rule.with_prior([NEW[3][list(names).index(label)] for label in rule.classes[0]])
    assert by_class == in_order
    with pytest.raises(mw.InvalidParameter, match="share for each of the classes"):
        rule.with_prior({"lo": 0.5, "mid": 0.5})
    with pytest.raises(TypeError, match=r"in the order of the classes, \['"):
        rule.with_prior("a")


def test_floors_on_recalls_stay():
    proba, _, y = drawn(2)
    rule = mw.optimize(proba, y, "balanced_accuracy", subject_to="recall >= 0.6").rule
    assert rule.with_prior(NEW[2]) is rule


def test_a_floor_that_depends_on_shares_makes_the_rule_depend_on_them():
    proba, _, y = drawn(2)
    rule = mw.optimize(proba, y, "balanced_accuracy", subject_to="precision >= 0.4").rule
    assert rule.metadata.under_new_shares == "approximate"


def test_estimates_of_before_are_gone():
    proba, _, y = drawn()
    metadata = mw.optimize(proba, y, "macro_f1").rule.with_prior(NEW[3]).metadata
    assert (metadata.value, metadata.gain, metadata.value_on_new_rows) == (None, None, None)
    assert metadata.prior == [NEW[3]]
    assert metadata.moved == "shifted"


def test_a_rule_that_was_fitted_for_other_shares_starts_from_these():
    proba, _, y = drawn()
    rule = mw.optimize(proba, y, "accuracy", strategy=EXPECTED, prior=[0.2, 0.2, 0.6]).rule
    direct = mw.optimize(proba, y, "accuracy", strategy=EXPECTED, prior=NEW[3]).rule
    assert np.allclose(rule.with_prior(NEW[3]).link.bias, direct.link.bias)


def test_rules_by_hand_are_refused():
    with pytest.raises(mw.InvalidParameter, match=r"keep a calibration .* rules by hand.*optimize and labels"):
        mw.WeightedRule.from_thresholds(0.3).with_prior(0.1)


def test_rules_by_group_are_refused():
    proba, _, y = drawn(2)
    group = np.arange(len(y)) % 2
    rule = mw.optimize(proba, y, "accuracy", subject_to="demographic_parity <= 0.2", sensitive_features=group).rule
    with pytest.raises(TypeError, match="sensitive groups alike"):
        rule.with_prior(0.1)


def test_a_class_without_labels_keeps_its_share():
    proba, _, y = drawn()
    y = np.where(y == 2, 0, y)
    rule = mw.optimize(proba, y, "accuracy", classes=[0, 1, 2], strategy=EXPECTED).rule
    with pytest.raises(mw.InvalidParameter, match=r"no labelled row of the fit had.*0.3 for 2"):
        rule.with_prior(NEW[3])
    moved = rule.with_prior([0.9, 0.1, 0.0])
    assert np.isfinite(moved.link.bias).all()


def test_a_share_of_zero_does_not_break_the_rule():
    proba, _, y = drawn()
    moved = mw.optimize(proba, y, "accuracy", strategy=EXPECTED).rule.with_prior([0.0, 0.5, 0.5])
    assert mw.load_rule(moved.to_json()) == moved
    assert (moved.predict(proba) > 0).all()


@pytest.mark.parametrize(
    ("prior", "match"),
    [([0.5, 0.6, 0.1], "sum to 1"), ([0.5, 0.5], "one share per class, 3"), ("a", "list of class shares")],
)
def test_other_priors_are_refused(prior, match):
    proba, _, y = drawn()
    with pytest.raises((ValueError, TypeError), match=match):
        mw.optimize(proba, y, "accuracy", strategy=EXPECTED).rule.with_prior(prior)


def test_shares_that_did_not_move_leave_the_rule_as_it_is():
    proba, _, y = drawn()
    rule = mw.optimize(proba, y, "macro_f1").rule
    assert rule.with_prior(np.bincount(y) / len(y)) is rule
