"""What fitted rules keep of their rows: against refits to resamples, and through files."""

import json

import numpy as np
import pytest

import metricwise as mw
from metricwise.rules.stored_calibration import StoredCalibration
from worlds.gaussian import GaussianWorld

LABELS = mw.Strategy(confusion="labels", recalibrate=False)


def drawn(seed=0, n_rows=800, k=3, temperature=1.7):
    rng = np.random.default_rng(seed)
    world = GaussianWorld.draw_world(rng, k)
    x, y = world.draw(rng, n_rows)
    return world.logits(x, temperature), world.posterior(x, temperature), y


def kept(proba, y, **options):
    rule = mw.optimize(proba, y, "accuracy", strategy=LABELS, classes=np.arange(3), **options).rule
    calibration = StoredCalibration.of(rule.metadata.calibration, rule.schema)
    assert calibration is not None
    return calibration


def parameters(calibration):
    link, shares = calibration.link, calibration.shares[0]
    bias = link.bias[0] - link.bias[0, 0] - np.log(shares / shares[0])
    return np.append(link.temperature[0], bias[1:])


@pytest.mark.parametrize("row_input", ["probabilities", "logits", "scores"])
def test_the_covariance_is_that_of_refits_to_resamples(row_input):
    logits, proba, y = drawn()
    numbers = proba if row_input == "probabilities" else logits
    covariance = kept(numbers, y, input=row_input).covariance[0]
    rng = np.random.default_rng(1)
    refits = []
    for _ in range(120):
        rows = rng.integers(0, len(y), len(y))
        refits.append(parameters(kept(numbers[rows], y[rows], input=row_input)))
    assert np.allclose(np.sqrt(np.diag(covariance)), np.std(refits, axis=0), rtol=0.25)


def test_rows_that_belong_together_count_once():
    _, proba, y = drawn()
    once, twice = kept(proba, y), kept(np.tile(proba, (2, 1)), np.tile(y, 2), groups=np.tile(np.arange(len(y)), 2))
    assert np.allclose(np.diag(twice.covariance[0]), np.diag(once.covariance[0]), rtol=0.05)


def test_frequencies_count_rows():
    _, proba, y = drawn()
    many = kept(np.tile(proba, (2, 1)), np.tile(y, 2), groups=np.arange(2 * len(y)))
    counted = kept(proba, y, sample_weight=mw.Frequencies(np.full(len(y), 2)))
    assert np.allclose(counted.covariance[0], many.covariance[0], rtol=1e-6)
    assert counted.n_rows == many.n_rows


def test_weights_make_for_fewer_rows_and_other_shares():
    _, proba, y = drawn()
    weight = np.where(y == 0, 3.0, 1.0)
    calibration = kept(proba, y, sample_weight=weight)
    assert calibration.n_rows[0] == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert np.allclose(calibration.shares[0], np.bincount(y, weight) / weight.sum())


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "g_mean", "quadratic_kappa"])
def test_every_fitted_rule_keeps_one_and_files_hold_it(metric):
    _, proba, y = drawn()
    rule = mw.optimize(proba, y, metric).rule
    again = mw.load_rule(rule.to_json())
    assert again.metadata.calibration == rule.metadata.calibration
    assert again.metadata.under_new_shares == rule.metadata.under_new_shares
    read = StoredCalibration.of(json.loads(rule.to_json())["facts"]["calibration"], rule.schema)
    assert read.to_dict() == rule.metadata.calibration


def test_decisions_do_not_use_it():
    _, proba, y = drawn()
    rule = mw.optimize(proba, y, "macro_f1").rule
    bare = rule.with_metadata(calibration=None)
    assert bare.metadata.calibration is None
    assert (bare.predict(proba) == rule.predict(proba)).all()


@pytest.mark.parametrize(
    "broken",
    [
        {"shares": [[0.5, 0.5]]},
        {"covariance": [[[1.0]]]},
        {"covariance": []},
        {"temperature": [0.0]},
        {"floor": 0.0},
        {"rows": [-1.0]},
        {"shares": [[-0.5, 1.0, 0.5]]},
    ],
)
def test_what_does_not_fit_the_rule_counts_as_nothing(broken):
    _, proba, y = drawn()
    rule = mw.optimize(proba, y, "accuracy", strategy=LABELS).rule
    document = {**rule.metadata.calibration, **broken}
    assert StoredCalibration.of(document, rule.schema) is None


def test_without_labels_nothing_is_kept():
    _, proba, _ = drawn()
    rule = mw.optimize(proba, None, "macro_f1").rule
    assert rule.metadata.calibration is None


def test_outputs_of_very_many_classes_keep_no_covariance():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(40), 400)
    y = np.array([rng.choice(40, p=row) for row in proba])
    rule = mw.optimize(proba, y, "accuracy", classes=np.arange(40), strategy=LABELS).rule
    assert rule.metadata.calibration["covariance"] == [None]
    shares = mw.estimate_shares(rule, proba)
    assert not shares.moved
    assert (shares.low <= shares.old).all()
