"""Values without labels: against labels that were kept back, in worlds whose shift is known."""

import numpy as np
import pytest

import metricwise as mw
from worlds.gaussian import GaussianWorld


def make_world(k=2):
    means = {2: [[0.0, 0, 0], [1.2, 0.6, 0]], 3: [[-1.0, 0, 0], [0, 0.5, 0], [1.0, 0, 0.5]]}[k]
    return GaussianWorld(np.array(means), np.array({2: [0.8, 0.2], 3: [0.5, 0.3, 0.2]}[k]))


def labelled(world, rng, n_rows, shares=None, temperature=1.5):
    x, y = world.draw(rng, n_rows, shares)
    return world.posterior(x, temperature), y


def moved_rows(world, rng, n_rows, temperature=1.5):
    """Rows of which those with a large first feature are more, labelled as all are."""
    x, y = world.draw(rng, 6 * n_rows)
    weight = np.exp(0.8 * np.clip(x[:, 0], -2, 2))
    rows = rng.choice(len(x), n_rows, p=weight / weight.sum())
    return world.posterior(x[rows], temperature), y[rows]


def world_shares(world, rng, concentration):
    """Shares about those of a world, none of them very small."""
    drawn = np.maximum(rng.dirichlet(world.shares * concentration * len(world.shares)), 0.03)
    return drawn / drawn.sum()


def true_value(rule, proba, y, metric):
    return mw.evaluate(rule, proba, y, metric)[metric].value.estimate


@pytest.mark.parametrize("metric", ["f1", "precision", "kappa", "mcc", "balanced_accuracy"])
def test_each_explanation_is_right_where_it_holds(metric):
    rng, world = np.random.default_rng(1), make_world()
    reference = labelled(world, rng, 20_000)
    rule = mw.WeightedRule.from_thresholds(0.3)
    proba, y = labelled(world, rng, 20_000, np.array([0.4, 0.6]))
    value = mw.expect(rule, proba, metric, reference=reference)[metric]
    assert value.if_shares_moved.estimate == pytest.approx(true_value(rule, proba, y, metric), abs=0.02)
    proba, y = moved_rows(world, rng, 20_000)
    value = mw.expect(rule, proba, metric, reference=reference)[metric]
    assert value.if_rows_moved.estimate == pytest.approx(true_value(rule, proba, y, metric), abs=0.02)


def test_the_correction_is_what_labels_say_beyond_their_expectation():
    """By hand: a rule of one threshold, uncalibrated beyond temperature and bias, counts with plain NumPy."""
    rng = np.random.default_rng(2)
    p = rng.random(3000)
    y = (rng.random(3000) < np.where(np.abs(p - 0.5) < 0.2, 0.5, p)).astype(int)  # no link mends the middle
    new = rng.beta(3, 3, 2000)
    rule = mw.WeightedRule.from_thresholds(0.55)
    value = mw.expect(rule, new, "precision", reference=(p, y))["precision"]
    fitted = mw.optimize(p, y, "accuracy", strategy=mw.Strategy(confusion="labels", recalibrate=False)).rule
    calibration = fitted.metadata.calibration
    t, (c0, c1) = calibration["temperature"][0], calibration["bias"][0]

    def calibrated(numbers):
        return 1 / (1 + np.exp(-(t * np.log(numbers / (1 - numbers)) + c1 - c0)))

    above, above_new = p > 0.55, new > 0.55
    excess_hits = np.mean((y - calibrated(p)) * above)
    excess_misses = np.mean(((1 - y) - (1 - calibrated(p))) * above)
    more = above_new.mean() / above.mean()  # what is known of rows of a decision is known of so many
    hits = np.mean(calibrated(new) * above_new) + more * excess_hits
    false = np.mean((1 - calibrated(new)) * above_new) + more * excess_misses
    assert value.if_rows_moved.estimate == pytest.approx(hits / (hits + false), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
def test_intervals_cover(k):
    world, metric = make_world(k), "f1" if k == 2 else "macro_f1"
    kinds = {"none": None, "mild": 20.0, "strong": 3.0, "rows": "rows"}
    covered = {kind: [] for kind in kinds}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        proba, y = labelled(world, rng, 1000)
        rule = mw.optimize(proba, y, metric, strategy=mw.Strategy(confusion="expected", recalibrate=True)).rule
        for kind, how in kinds.items():
            if how == "rows":
                new, labels = moved_rows(world, rng, 1000)
            else:
                new, labels = labelled(world, rng, 1000, None if how is None else world_shares(world, rng, how))
            value = mw.expect(rule, new, metric, reference=(proba, y))[metric]
            true = true_value(rule, new, labels, metric)
            covered[kind].append(value.low <= true <= value.high)
    for kind, hits in covered.items():
        assert np.mean(hits) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / len(hits)), kind


def test_the_interval_is_the_hull_and_the_estimate_its_middle():
    rng, world = np.random.default_rng(3), make_world()
    value = mw.expect(
        mw.WeightedRule.from_thresholds(0.3),
        labelled(world, rng, 1500, np.array([0.2, 0.8]))[0],
        "precision",
        reference=labelled(world, rng, 1500),
    )["precision"]
    first, second = value.if_shares_moved, value.if_rows_moved
    assert value.low == min(first.low, second.low)
    assert value.high == max(first.high, second.high)
    assert value.estimate == pytest.approx((value.low + value.high) / 2)
    assert value.disagree


def test_more_rows_make_shorter_intervals():
    rng, world = np.random.default_rng(4), make_world()
    rule = mw.WeightedRule.from_thresholds(0.3)
    widths = []
    for n_rows in (400, 6400):
        value = mw.expect(rule, labelled(world, rng, n_rows)[0], "f1", reference=labelled(world, rng, n_rows))["f1"]
        widths.append(value.high - value.low)
    assert 2.5 < widths[0] / widths[1] < 6.5


def test_more_rows_than_are_drawn_are_sampled():
    rng, world = np.random.default_rng(5), make_world()
    rule, reference = mw.WeightedRule.from_thresholds(0.3), labelled(world, rng, 30_000)
    proba, y = labelled(world, rng, 50_000)
    value = mw.expect(rule, proba, "f1", reference=reference)["f1"]
    assert value.low <= true_value(rule, proba, y, "f1") <= value.high
    assert value.high - value.low < 0.06


def test_a_solution_brings_its_own_rows_and_the_note_says_what_that_means():
    rng, world = np.random.default_rng(6), make_world()
    proba, y = labelled(world, rng, 800)
    solution = mw.optimize(proba, y, "f1")
    new = labelled(world, rng, 800)[0]
    expectation = mw.expect(solution, new)
    assert list(expectation) == ["f1"]
    assert any("was fitted to the reference rows" in note for note in expectation.notes)
    by_rows = mw.expect(solution.rule, new, reference=(proba, y))
    assert by_rows["f1"].estimate == pytest.approx(expectation["f1"].estimate)
    assert any("was fitted to the reference rows" in note for note in by_rows.notes)
    other = mw.expect(solution.rule, new, reference=labelled(world, rng, 800))
    assert not any("was fitted to the reference rows" in note for note in other.notes)


def test_constraints_are_never_promised_anew():
    rng, world = np.random.default_rng(7), make_world()
    proba, y = labelled(world, rng, 3000)
    rule = mw.optimize(proba, y, "recall", subject_to="precision >= 0.5").rule
    reference = labelled(world, rng, 3000)
    fine = mw.expect(rule, labelled(world, rng, 3000, np.array([0.3, 0.7]))[0], reference=reference)
    assert any("no sign that it is broken" in note and "no promise" in note for note in fine.notes)
    broken = mw.expect(rule, labelled(world, rng, 3000, np.array([0.97, 0.03]))[0], reference=reference)
    assert any(note.startswith("precision >= 0.5 ") and "be broken" in note for note in broken.notes)
    assert "precision >= 0.5" in broken.constraints
    assert "precision >= 0.5" in repr(broken)


def test_mixtures_and_abstentions_are_counted_by_their_distribution():
    rng, world = np.random.default_rng(8), make_world()
    proba, y = labelled(world, rng, 3000)
    rule = mw.optimize(proba, y, "accuracy", abstain=True, subject_to="abstained <= 0.2").rule
    new, labels = labelled(world, rng, 3000)
    value = mw.expect(rule, new, "accuracy", reference=labelled(world, rng, 3000), abstain=True)["accuracy"]
    true = mw.evaluate(rule, new, labels, "accuracy", abstain=True)["accuracy"].value.estimate
    assert value.low <= true <= value.high


def test_several_outputs():
    rng = np.random.default_rng(14)
    proba = rng.beta(0.6, 2, (4000, 12))
    y = (rng.random(proba.shape) < proba).astype(int)
    rule = mw.optimize(proba[:2000], y[:2000], "f1", average="macro").rule
    expectation = mw.expect(rule, proba[2000:], ["f1", "recall"], average="macro", reference=(proba[:2000], y[:2000]))
    for metric in expectation:
        true = mw.evaluate(rule, proba[2000:], y[2000:], metric, average="macro")[metric].value.estimate
        assert expectation[metric].low <= true <= expectation[metric].high


def test_weights_of_reference_rows():
    rng, world = np.random.default_rng(10), make_world()
    rule, new = mw.WeightedRule.from_thresholds(0.3), labelled(world, rng, 1000)[0]
    proba, y = labelled(world, rng, 1000)
    twice = mw.expect(rule, new, "f1", reference=(np.tile(proba, (2, 1)), np.tile(y, 2)))["f1"]
    weighted = mw.expect(rule, new, "f1", reference=(proba, y, np.full(1000, 2.0)))["f1"]
    once = mw.expect(rule, new, "f1", reference=(proba, y))["f1"]
    assert weighted.if_rows_moved.estimate == pytest.approx(once.if_rows_moved.estimate, abs=1e-9)
    assert twice.high - twice.low == pytest.approx(once.high - once.low, rel=0.3)  # copies are detected


def test_equal_calls_agree_and_seeds_differ():
    rng, world = np.random.default_rng(11), make_world()
    rule, new, reference = mw.WeightedRule.from_thresholds(0.3), labelled(world, rng, 500)[0], labelled(world, rng, 500)
    values = [mw.expect(rule, new, "f1", reference=reference, random_state=seed)["f1"] for seed in (None, 0, 1)]
    assert values[0] == values[1]
    assert values[0].low != values[2].low
    assert values[0].if_rows_moved.estimate == values[2].if_rows_moved.estimate


def test_few_rows_are_said():
    rng, world = np.random.default_rng(12), make_world()
    expectation = mw.expect(
        mw.WeightedRule.from_thresholds(0.3), labelled(world, rng, 100)[0], "f1", reference=labelled(world, rng, 1000)
    )
    assert any("fewer than 300 rows without labels" in note for note in expectation.notes)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "reference.*tuple"),
        ({"reference": np.zeros(3)}, "reference.*tuple"),
        ({"reference": ([0.1, 0.9] * 20, [0, 1] * 20), "random_state": -1}, "random_state"),
        ({"reference": ([0.1, 0.9] * 20, None)}, "y"),
    ],
)
def test_refusals(options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        mw.expect(mw.WeightedRule.from_thresholds(0.3), np.full(30, 0.4), "f1", **options)


def test_averages_over_rows_are_refused():
    rng = np.random.default_rng(13)
    proba = rng.random((50, 3))
    y = (rng.random(proba.shape) < proba).astype(int)
    rule = mw.optimize(proba, y, "f1", average="macro").rule
    with pytest.raises(mw.InvalidParameter, match="instance-average is no function of the confusion"):
        mw.expect(rule, proba, "f1_samples", reference=(proba, y))


def test_costs_per_row_are_refused():
    rule = mw.CostRule((np.array([0, 1]),))
    with pytest.raises(TypeError, match="needs their cost"):
        mw.expect(rule, [0.2], "f1", reference=([0.2], [1]))


def test_a_single_column_is_that_of_the_rule_whatever_the_positive_class_of_the_metric():
    rng, world = np.random.default_rng(15), make_world()
    proba, y = labelled(world, rng, 3000)
    new, labels = labelled(world, rng, 3000)
    rule = mw.WeightedRule.from_thresholds(0.3)
    value = mw.expect(rule, new[:, 1], "f1", reference=(proba[:, 1], y), pos_label=0)["f1"]
    true = mw.evaluate(rule, new[:, 1], labels, "f1", pos_label=0)["f1"].value.estimate
    assert value.low <= true <= value.high
    assert value.high - value.low < 0.1


def test_how_often_a_decision_is_taken_is_known_without_labels():
    rng, world = np.random.default_rng(16), make_world()
    proba, y = labelled(world, rng, 3000)
    rule = mw.optimize(proba, y, "accuracy", abstain=True, subject_to="abstained <= 0.2").rule
    new = labelled(world, rng, 2000, np.array([0.4, 0.6]))[0]
    expectation = mw.expect(rule, new, "accuracy", reference=(proba, y), abstain=True)
    abstained = np.mean(rule.predict(new) == rule.abstain_label)
    value = expectation.constraints["abstained <= 0.2"]
    assert value.if_shares_moved.estimate == pytest.approx(abstained)
    assert value.if_rows_moved.low == pytest.approx(abstained)


def test_estimators_are_told_to_pass_their_rule():
    class Fitted:
        rule_ = mw.WeightedRule.from_thresholds(0.3)

    with pytest.raises(TypeError, match="pass its rule_"):
        mw.expect(Fitted(), [0.2], "f1", reference=([0.2], [1]))


@pytest.mark.parametrize("sizes", [(3,), (3, 2), (2, 3)])
@pytest.mark.parametrize("abstain", [None, 0.2])
def test_on_the_reference_itself_it_is_what_labels_say(sizes, abstain):
    """The expected confusion cancels, so that the estimate is the value on the reference rows."""
    rng = np.random.default_rng(17)
    proba = [rng.dirichlet(np.ones(k), 1500) for k in sizes]
    y = np.stack([(P.cumsum(axis=1) < rng.random((1500, 1))).sum(axis=1) for P in proba], axis=1)
    solution = mw.optimize(proba, y, "accuracy", average="macro", abstain=abstain)
    value = mw.expect(solution, proba)["accuracy"]
    true = mw.evaluate(solution.rule, proba, y, "accuracy", average="macro")["accuracy"].value.estimate
    assert value.if_rows_moved.estimate == pytest.approx(true, abs=1e-9)


def test_frequencies_of_reference_rows_count_rows():
    rng, world = np.random.default_rng(18), make_world()
    rule, new = mw.WeightedRule.from_thresholds(0.3), labelled(world, rng, 1000)[0]
    proba, y = labelled(world, rng, 500)
    widths = []
    for weight in (np.full(500, 1), np.full(500, 16)):
        value = mw.expect(rule, new, "f1", reference=(proba, y, mw.Frequencies(weight)))["f1"]
        widths.append(value.if_rows_moved.high - value.if_rows_moved.low)
    assert widths[1] < 0.75 * widths[0]


def test_reference_rows_that_say_nothing_are_refused_and_labels_are_counted():
    rng, world = np.random.default_rng(19), make_world(3)
    proba, y = labelled(world, rng, 1000)
    rule = mw.optimize(proba, y, "macro_f1").rule
    with pytest.raises(mw.InvalidParameter, match=r"every class.*no row of 2"):
        mw.expect(rule, proba, reference=(proba[y < 2], y[y < 2]))
    with pytest.raises(mw.InvalidParameter, match=r"reference = \(proba, y\): .*at least one row"):
        mw.expect(rule, proba, reference=(proba[:0], y[:0]))
    some = np.where(np.arange(1000) % 4 == 0, y.astype(float), np.nan)
    expectation = mw.expect(rule, proba, reference=(proba, some))
    assert expectation.n_reference == 250
    assert any("fewer than 300 rows with labels" in note for note in expectation.notes)
    several = np.stack([y.astype(float), np.full(1000, np.nan)], axis=1)
    two = mw.optimize([proba, proba], np.stack([y, y], axis=1), "macro_f1", average="macro").rule
    with pytest.raises(mw.InvalidParameter, match="labels for every output, got none for output 1"):
        mw.expect(two, [proba, proba], reference=([proba, proba], several))


def test_constraints_about_groups_are_left_out():
    rng, world = np.random.default_rng(20), make_world()
    proba, y = labelled(world, rng, 600)
    blind = mw.Sensitive(np.arange(600) % 2, group_aware=False)
    rule = mw.optimize(proba, y, "accuracy", subject_to="demographic_parity <= 0.3", sensitive_features=blind).rule
    expectation = mw.expect(rule, proba, "accuracy", reference=(proba, y))
    assert not expectation.constraints
    with pytest.raises(mw.InvalidParameter, match="no constraints about sensitive groups"):
        rule.adapted(np.tile(proba, (2, 1)))
