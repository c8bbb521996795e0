"""Estimated class shares: coverage in known worlds, alarms where nothing moved, and refusals."""

import numpy as np
import pytest

import metricwise as mw
from worlds.gaussian import GaussianWorld

LABELS = mw.Strategy(confusion="labels", recalibrate=False)


def fitted(seed=0, k=3, n_rows=1000, temperature=1.6, metric="macro_f1", row_input="probabilities"):
    """A world, the rule of its rows, and a model of the world."""
    rng = np.random.default_rng(seed)
    world = GaussianWorld.draw_world(rng, k)
    model = world.posterior if row_input == "probabilities" else world.logits
    x, y = world.draw(rng, n_rows)
    rule = mw.optimize(model(x, temperature), y, metric, strategy=LABELS, classes=np.arange(k), input=row_input).rule
    return rng, world, rule, lambda rows: model(rows, temperature)


def test_shares_that_moved_are_found_behind_a_model_that_is_overconfident():
    rng, world, rule, model = fitted()
    x, y = world.draw(rng, 4000, np.array([0.1, 0.2, 0.7]))
    shares = mw.estimate_shares(rule, model(x))
    true = np.bincount(y) / len(y)
    assert shares.moved
    assert shares.p_value < 1e-6
    assert np.abs(shares.estimate - true).max() < 0.05
    assert np.abs(shares.old - true).max() > 0.15
    assert shares.estimate.sum() == pytest.approx(1)
    assert ((shares.low < shares.estimate) & (shares.estimate < shares.high)).all()


@pytest.mark.parametrize("row_input", ["probabilities", "logits", "scores"])
def test_shares_do_not_depend_on_the_form_of_the_numbers(row_input):
    _, world, rule, model = fitted(row_input=row_input)
    x, _ = world.draw(np.random.default_rng(9), 2000, np.array([0.6, 0.3, 0.1]))
    shares = mw.estimate_shares(rule, model(x))
    _, _, of_probabilities, of_rows = fitted()
    expected = mw.estimate_shares(of_probabilities, of_rows(x))
    # Fits to logits bound what is far out, fits to probabilities have a floor: a quarter of a standard error apart.
    assert np.allclose(shares.estimate, expected.estimate, atol=0.025)
    assert np.allclose(shares.low, expected.low, atol=0.025)


def test_one_score_for_ordered_classes():
    rng = np.random.default_rng(0)
    score = rng.normal(size=6000)
    y = np.digitize(score + rng.normal(size=6000), [-1, 0, 1.2])
    rule = mw.optimize(score[:3000], y[:3000], "quadratic_kappa", input="scores").rule
    assert not mw.estimate_shares(rule, score[3000:]).moved
    kept = 3000 + np.flatnonzero((y[3000:] < 3) | (rng.random(3000) < 0.3))
    shares = mw.estimate_shares(rule, score[kept])
    true = np.bincount(y[kept]) / len(kept)
    assert shares.moved
    assert (shares.low <= true).all()
    assert (true <= shares.high).all()


@pytest.mark.slow
def test_intervals_cover_and_alarms_are_rare():
    covered, alarms = {"none": [], "mild": [], "strong": []}, []
    for seed in range(120):
        rng, world, rule, model = fitted(seed, k=2 + seed % 3)
        for kind, concentration in (("none", None), ("mild", 30.0), ("strong", 4.0)):
            k = len(world.shares)
            new = world.shares if concentration is None else rng.dirichlet(world.shares * concentration * k)
            shares = mw.estimate_shares(rule, model(world.draw(rng, 1000, new)[0]))
            covered[kind].append(np.mean((shares.low <= new) & (new <= shares.high)))
            if kind == "none":
                alarms.append(shares.moved)
    assert np.mean(alarms) <= 0.01 + 2 * np.sqrt(0.01 * 0.99 / 120) + 1e-9
    for kind in covered:
        assert np.mean(covered[kind]) >= 0.9, kind


def test_where_nothing_moved_the_estimate_is_the_old_share_and_the_interval_reaches_it():
    rng, world, rule, model = fitted()
    shares = mw.estimate_shares(rule, model(world.draw(rng, 1500)[0]))
    assert not shares.moved
    assert (shares.estimate == shares.old).all()
    assert ((shares.low <= shares.old) & (shares.old <= shares.high)).all()
    assert "can tell moved shares from rows that look different" in shares.notes[0]


def test_the_level_and_the_prior():
    rng, world, rule, model = fitted()
    rows = model(world.draw(rng, 200, np.array([0.05, 0.05, 0.9]))[0])
    anyway = mw.estimate_shares(rule, rows, level=1.0, prior_rows=0.0)
    shrunk = mw.estimate_shares(rule, rows, level=1.0, prior_rows=50.0)
    assert anyway.moved
    assert shrunk.moved
    assert np.abs(shrunk.estimate - shrunk.old).sum() < np.abs(anyway.estimate - anyway.old).sum()
    assert not mw.estimate_shares(rule, rows, level=1e-300).moved


def test_a_class_without_labelled_rows_keeps_share_0_and_is_named():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([3, 2, 0.3], 1000)
    y = np.array([rng.choice(2, p=row[:2] / row[:2].sum()) for row in proba])
    labels = np.array(["a", "b"])[y]
    rule = mw.optimize(proba, labels, "accuracy", classes=["a", "b", "c"], strategy=LABELS).rule
    shares = mw.estimate_shares(rule, proba[:300], level=1.0)
    assert shares.estimate[2] == shares.low[2] == shares.high[2] == 0
    assert any("'c'" in note and "stays 0" in note for note in shares.notes)


def test_several_outputs_are_tested_together():
    rng = np.random.default_rng(0)
    proba = rng.beta(0.6, 2, (4000, 3))
    y = (rng.random(proba.shape) < proba).astype(int)
    rule = mw.optimize(proba[:2000], y[:2000], "f1", average="macro").rule
    kept = 2000 + np.flatnonzero((y[2000:, 1] == 1) | (rng.random(2000) < 0.4))
    shares = mw.estimate_shares(rule, proba[kept])
    assert shares.moved.tolist() == [False, True, False]
    assert shares.estimate.shape == (3, 2)
    assert shares.any_moved
    outputs = shares.to_dict()["outputs"]
    assert [output["moved"] for output in outputs] == [False, True, False]


def test_shares_are_a_prior_by_label_and_not_by_position():
    rng, world, rule, model = fitted()
    x, y = world.draw(rng, 2000)
    shares = mw.estimate_shares(rule, model(world.draw(rng, 2000, np.array([0.1, 0.2, 0.7]))[0]))
    proba = model(x)
    by_shares = mw.optimize(proba, y, "macro_f1", prior=shares, strategy=mw.Strategy(confusion="expected")).rule
    by_numbers = mw.optimize(
        proba, y, "macro_f1", prior=np.asarray(shares), strategy=mw.Strategy(confusion="expected")
    ).rule
    assert by_shares == by_numbers
    turned = mw.optimize(
        proba[:, ::-1], y, "macro_f1", classes=[2, 1, 0], prior=shares, strategy=mw.Strategy(confusion="expected")
    ).rule
    assert (turned.predict(proba[:, ::-1]) == by_shares.predict(proba)).mean() > 0.999
    with pytest.raises(ValueError, match="shares of the classes"):
        mw.optimize(proba, np.array(["a", "b", "c"])[y], "macro_f1", prior=shares)


def test_printed_and_drawn():
    rng, world, rule, model = fitted()
    shares = mw.estimate_shares(rule, model(world.draw(rng, 800, np.array([0.1, 0.2, 0.7]))[0]))
    assert "class shares moved (p = " in repr(shares)
    assert shares.plot().ax_.get_xlabel() == "share of the class"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"level": 0.0}, "level"),
        ({"level": True}, "level"),
        ({"prior_rows": -1}, "prior_rows"),
        ({"prior_rows": "a"}, "pr"),
    ],
)
def test_settings_are_checked(options, match):
    _, world, rule, model = fitted()
    with pytest.raises((ValueError, TypeError), match=match):
        mw.estimate_shares(rule, model(world.means), **options)


def test_rules_that_keep_nothing_are_refused():
    with pytest.raises(mw.InvalidParameter, match=r"estimate_shares: .*rules by hand.*fit the rule again"):
        mw.estimate_shares(mw.WeightedRule.from_thresholds(0.3), [0.1, 0.2])
    _, _, rule, _ = fitted()
    with pytest.raises(ValueError, match="at least one row"):
        mw.estimate_shares(rule, np.zeros((0, 3)))


def test_rules_by_group_are_refused():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    rule = mw.optimize(p, y, "f1", subject_to="demographic_parity <= 0.3", sensitive_features=np.arange(400) % 2).rule
    with pytest.raises(TypeError, match="sensitive groups alike"):
        mw.estimate_shares(rule, p)


def test_recalls_are_left_alone_and_said_so():
    rng, world, rule, model = fitted(metric="g_mean")
    rows = model(world.draw(rng, 2000, np.array([0.1, 0.2, 0.7]))[0])
    shares = mw.estimate_shares(rule, rows)
    assert any("function of recalls" in note for note in shares.notes)
    assert rule.adapted(rows) is rule


def test_rules_for_costs_per_row_have_shares_too():
    rng, world, _, model = fitted()
    x, y = world.draw(rng, 1000)
    cost = rng.exponential(size=(1000, 3))
    rule = mw.optimize(model(x), y, "cost", cost=cost).rule
    new = model(world.draw(rng, 3000, np.array([0.1, 0.2, 0.7]))[0])
    shares = mw.estimate_shares(rule, new)
    assert shares.moved
    assert rule.adapted(new) == rule.with_prior(shares)
