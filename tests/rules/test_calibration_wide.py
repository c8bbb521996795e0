"""The calibration of very many classes, compared with that over all classes and with finite differences."""

import numpy as np
import pytest

import worlds
from metricwise.core.probabilities import Probabilities
from metricwise.kernels import LinkArrays
from metricwise.rules import calibration_fit, fit_link, fit_links
from metricwise.rules.calibration_penalty import Penalty
from metricwise.rules.calibration_wide import WideLikelihood, keep_entries

K, N = 130, 1_000


def draw_rows(seed, sharpness):
    """Overconfident logits of a model that favours some classes, and labels by the true ones."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, sharpness, (N, K))
    truth = np.exp(logits - logits.max(axis=1, keepdims=True))
    codes = worlds.draw_codes((truth / truth.sum(axis=1, keepdims=True))[:, None], rng)
    codes[rng.random(codes.shape) < 0.05] = -1
    given = 1.5 * logits + rng.normal(0, 0.4, K)
    return given - given.max(axis=1, keepdims=True), codes, rng


def as_probabilities(logits):
    proba = np.exp(logits)
    return Probabilities(((proba / proba.sum(axis=1, keepdims=True))[:, None],), np.array([K]))


def as_logits(logits):
    return Probabilities((logits[:, None],), np.array([K]), LinkArrays(np.ones(1), np.zeros((1, K)), 0.0))


@pytest.fixture
def asked(monkeypatch):
    """Whether fits were made over all classes."""
    asked, batch = [], calibration_fit._batch
    monkeypatch.setattr(calibration_fit, "_batch", lambda *args: asked.append(args) or batch(*args))
    return asked


# Where all that is left out is at the floor nothing is lost; where some is above it, a fraction of a standard error.
@pytest.mark.parametrize(("sharpness", "t_off", "bias_off"), [(7.0, 1e-3, 0.01), (4.5, 3e-3, 0.1)])
@pytest.mark.parametrize("read", [as_probabilities, as_logits])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_the_fit_over_all_classes(monkeypatch, asked, sharpness, t_off, bias_off, read, weighted):
    logits, codes, rng = draw_rows(0, sharpness)
    weight = rng.exponential(1.0, N) if weighted else None
    masks = np.stack([rng.random(N) < 2 / 3, np.ones(N, dtype=bool), codes[:, 0] < 0])
    proba = read(logits)
    few = [fit_link(proba, codes, weight), *fit_links(proba, codes, weight, masks=masks)]
    assert not asked
    monkeypatch.setattr(calibration_fit, "WIDE", K)
    every = [fit_link(proba, codes, weight), *fit_links(proba, codes, weight, masks=masks)]
    shown = np.bincount(codes[masks[0]].clip(0).ravel(), minlength=K) > 0
    for link, expected in zip(few, every, strict=True):
        assert link.floor == expected.floor
        np.testing.assert_allclose(link.temperature, expected.temperature, atol=t_off)
        np.testing.assert_allclose(link.bias[:, shown], expected.bias[:, shown], atol=bias_off)


# Flat probabilities, flat logits of a large scale, and rows whose numbers say nothing: many classes are likely.
@pytest.mark.parametrize(("sharpness", "slope", "mixed"), [(0.3, 1.0, False), (1.5, 10.0, False), (3.0, 1.0, True)])
@pytest.mark.parametrize("read", [as_probabilities, as_logits])
def test_all_classes_are_summed_over_where_many_of_a_row_are_likely(monkeypatch, asked, sharpness, slope, mixed, read):
    if slope > 1.0 and read is as_probabilities:
        pytest.skip("most probabilities are at the floor, and nothing is lost")
    logits, codes, rng = draw_rows(4, sharpness)
    proba = read(slope * (logits[rng.permutation(N)] if mixed else logits))
    few = fit_link(proba, codes)
    assert asked
    monkeypatch.setattr(calibration_fit, "WIDE", K)
    every = fit_link(proba, codes)
    np.testing.assert_allclose(few.temperature, every.temperature, atol=1e-3)
    np.testing.assert_allclose(few.bias, every.bias, atol=0.01)


def test_the_scale_of_logits_does_not_matter(monkeypatch, asked):
    logits, codes, _ = draw_rows(5, 6.0)
    proba = as_logits(10.0 * logits)
    few = fit_link(proba, codes)
    assert not asked
    monkeypatch.setattr(calibration_fit, "WIDE", K)
    every = fit_link(proba, codes)
    np.testing.assert_allclose(few.temperature, every.temperature, rtol=3e-3)
    np.testing.assert_allclose(few.bias, every.bias, atol=0.1)


def test_a_temperature_is_held_to_its_bound(monkeypatch, asked):
    logits, codes, rng = draw_rows(6, 12.0)
    proba = as_probabilities(-logits)  # the model is upside down
    weight = rng.exponential(1.0, N)
    few = fit_link(proba, codes, weight)
    assert few.temperature[0] == calibration_fit.MIN_TEMPERATURE
    assert not asked
    monkeypatch.setattr(calibration_fit, "WIDE", K)
    np.testing.assert_allclose(few.bias, fit_link(proba, codes, weight).bias, atol=0.01)


@pytest.mark.parametrize("floor", [1e-6, 0.0])
def test_gradient_and_hessian_are_those_of_the_value(floor):
    logits, codes, rng = draw_rows(1, 3.0)
    values = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True) if floor else logits
    entries = keep_entries(values, codes[:, 0], floor, 0.8)
    weight = rng.random((1, N)) * (codes[:, 0] >= 0)
    likelihood = WideLikelihood.of(entries, codes[:, 0], weight, weight[0], Penalty(np.eye(1, K)[0], 1.0), np.ones(1))
    theta, fit, step = np.append(0.7, rng.normal(0, 0.5, K - 1)), np.zeros(1, dtype=np.intp), 1e-5
    value, gradient, hessian = (array[0] for array in likelihood.evaluate(theta[None], fit))
    assert likelihood.slope(theta, 0)[0] == pytest.approx(value)
    for j in (0, 1, 40, K - 1):
        moved = step * np.eye(K)[j]
        (up, slope_up), (down, slope_down) = likelihood.slope(theta + moved, 0), likelihood.slope(theta - moved, 0)
        assert (up - down) / (2 * step) == pytest.approx(gradient[j], rel=1e-4, abs=1e-4)
        np.testing.assert_allclose((slope_up - slope_down) / (2 * step), hessian[j], rtol=1e-4, atol=1e-4)


def test_kept_entries_hold_the_true_and_the_likeliest_class():
    logits, codes, _ = draw_rows(2, 3.0)
    values = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    entries = keep_entries(values, codes[:, 0], 1e-6)
    kept = np.zeros((N, K), dtype=bool)
    kept[entries.row, entries.column] = True
    shown = np.flatnonzero(codes[:, 0] >= 0)
    assert kept[shown, codes[shown, 0]].all()
    assert kept[np.arange(N), values.argmax(axis=1)].all()
    np.testing.assert_allclose(entries.logit, np.log(np.maximum(values[entries.row, entries.column], 1e-6)))
    # At the temperature that it is made for the sum over a row is that over all classes.
    others = np.where(kept, 0.0, np.maximum(values, 1e-6)).sum(axis=1)
    rest = (K - kept.sum(axis=1)) * np.exp(entries.rest + entries.level)
    np.testing.assert_allclose(rest, others, rtol=1e-9)


def test_nothing_to_learn_leaves_probabilities_as_they_are():
    logits, codes, _ = draw_rows(3, 3.0)
    for nothing in (np.full_like(codes, -1), np.zeros_like(codes)):
        link = fit_link(as_probabilities(logits), nothing)
        assert link.temperature[0] == 1.0
        assert not link.bias.any()


def test_other_classes_may_have_next_to_no_probability():
    logits = np.full((4, K), -1e5)
    logits[:, 0], logits[:, 1] = 0.0, -744.4  # of which the exponential is the least number above zero
    entries = keep_entries(logits, np.zeros(4, dtype=np.intp), 0.0)
    assert np.isfinite(entries.level).all()
    assert (np.exp(entries.rest + entries.level) * K < 1e-300).all()
