"""The fit of proportional odds, beside SciPy's minimum of the same likelihood and finite differences."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from metricwise.rules import ordinal_fit
from metricwise.rules.ordinal_fit import fit_ordinal_maps


def draw(rng, n, k, slope=2.0):
    scores = 50 + 10 * rng.normal(size=n)
    latent = slope * (scores - 50) / 10 + rng.logistic(size=n)
    return scores, np.digitize(latent, np.linspace(-2, 2, k - 1)) if k > 2 else (latent > 0).astype(int)


def penalised(parameters, x, codes, weight, k):
    """Minus the penalised log-likelihood by log slope, first intercept and logarithms of the distances."""
    intercepts = np.cumsum(np.concatenate([parameters[1:2], np.exp(parameters[2:])]))
    above = 1 / (1 + np.exp(intercepts - np.exp(parameters[0]) * x[:, None]))
    edges = np.column_stack([np.ones(len(x)), above, np.zeros(len(x))])
    logs = np.log(np.maximum(edges[:, :-1] - edges[:, 1:], 1e-300))
    effective = weight * weight.sum() / np.sum(weight**2)
    likelihood = np.sum(effective * logs[np.arange(len(x)), codes])
    return -likelihood - np.sum(weight / weight.sum() * logs.mean(axis=1)) + parameters[0] ** 2 / 8


def reference(scores, codes, k, weight=None):
    """Slope and intercepts in the user's unit, by SciPy without derivatives of ours."""
    weight = np.ones(len(scores)) if weight is None else weight
    center = np.average(scores, weights=weight)
    scale = np.sqrt(np.average((scores - center) ** 2, weights=weight))
    start = np.concatenate([[0.0, -1.0], np.zeros(k - 2)])
    x = (scores - center) / scale
    found = minimize(penalised, start, (x, codes, weight, k), method="BFGS", options={"gtol": 1e-7}).x
    slope = np.exp(found[0]) / scale
    return slope, np.cumsum(np.concatenate([found[1:2], np.exp(found[2:])])) + slope * center


@pytest.mark.parametrize(("n", "k"), [(6, 2), (30, 3), (200, 5), (500, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_is_the_minimum_of_the_penalised_likelihood(n, k, weighted):
    rng = np.random.default_rng(n + k)
    scores, codes = draw(rng, n, k)
    weight = rng.random(n) + 0.1 if weighted else None
    (fitted,) = fit_ordinal_maps(scores, codes, k, weight)
    slope, intercepts = reference(scores, codes, k, weight)
    assert fitted.slope == pytest.approx(slope, rel=2e-4)
    np.testing.assert_allclose(fitted.intercepts, intercepts, rtol=2e-4, atol=2e-3)


def test_scores_in_an_odd_unit_get_the_unit_in_which_they_are_normal():
    rng = np.random.default_rng(8)
    scores, codes = draw(rng, 600, 4)
    (fitted,) = fit_ordinal_maps(scores, codes, 4)
    assert fitted.knots is None
    odd = np.exp((scores - 50) / 6)
    (changed,) = fit_ordinal_maps(odd, codes, 4)
    assert changed.knots is not None
    np.testing.assert_allclose(np.exp(changed.log_proba(odd)), np.exp(fitted.log_proba(scores)), atol=0.05)


def test_derivatives_are_finite_differences():
    rng = np.random.default_rng(0)
    problem = ordinal_fit._Problem(rng.normal(size=20), rng.random((2, 20, 4)))
    theta = np.array([[0.3, -1.0, 0.2, 0.9], [-0.5, -2.0, -1.9, 3.0]])
    fits, step = np.arange(2), 1e-6
    _, gradient, hessian = problem.evaluate(theta, fits)
    for i in range(4):
        move = step * np.eye(4)[i]
        up, down = problem.evaluate(theta + move, fits), problem.evaluate(theta - move, fits)
        np.testing.assert_allclose(gradient[:, i], (up[0] - down[0]) / (2 * step), rtol=1e-6, atol=1e-6)
        slopes = (up[1] - down[1]) / (2 * step)
        inner = slice(1, None) if i == 0 else slice(None)  # that of the slope may be raised, so that it is positive
        np.testing.assert_allclose(hessian[:, i, inner], slopes[:, inner], rtol=1e-5, atol=1e-5)


def test_resamples_are_fits_to_their_rows_alone():
    rng = np.random.default_rng(1)
    scores, codes = draw(rng, 300, 4)
    weight = rng.random(300)
    masks = rng.random((5, 300)) < 2 / 3
    for mask, fitted in zip(masks, fit_ordinal_maps(scores, codes, 4, weight, masks), strict=True):
        # The scores are standardised by all rows, which moves the prior of the slope by next to nothing.
        (alone,) = fit_ordinal_maps(scores[mask], codes[mask], 4, weight[mask])
        assert fitted.slope == pytest.approx(alone.slope, rel=1e-3)
        np.testing.assert_allclose(fitted.intercepts, alone.intercepts, rtol=1e-3, atol=1e-2)


def test_missing_labels_weights_of_0_and_infinite_scores_are_left_out():
    rng = np.random.default_rng(2)
    scores, codes = draw(rng, 100, 3)
    weight = np.ones(100)
    more_scores = np.concatenate([scores, [40.0, 60.0, np.inf, -np.inf]])
    more_codes = np.concatenate([codes, [-1, 0, 2, 0]])
    more_weight = np.concatenate([weight, [1.0, 0.0, 1.0, 1.0]])
    assert fit_ordinal_maps(more_scores, more_codes, 3, more_weight) == fit_ordinal_maps(scores, codes, 3, weight)


def test_frequencies_are_rows():
    rng = np.random.default_rng(3)
    scores, codes = draw(rng, 40, 3)
    times = rng.integers(1, 5, 40).astype(float)
    (fitted,) = fit_ordinal_maps(scores, codes, 3, times, frequency=times)
    repeats = times.astype(int)
    (repeated,) = fit_ordinal_maps(np.repeat(scores, repeats), np.repeat(codes, repeats), 3)
    assert fitted.slope == pytest.approx(repeated.slope, rel=1e-6)
    np.testing.assert_allclose(fitted.intercepts, repeated.intercepts, rtol=1e-6)


@pytest.mark.parametrize("absent", [0, 1, 3])
def test_a_grade_without_labels_keeps_a_small_probability(absent):
    rng = np.random.default_rng(4)
    scores, codes = draw(rng, 400, 4)
    (fitted,) = fit_ordinal_maps(scores[codes != absent], codes[codes != absent], 4)
    share = np.exp(fitted.log_proba(scores)).mean(axis=0)[absent]
    assert 1e-5 < share < 0.01


def test_separable_and_useless_scores_have_finite_maps():
    (steep,) = fit_ordinal_maps(np.arange(60.0), np.arange(60) // 20, 3)
    assert np.isfinite(steep.slope)
    assert (np.exp(steep.log_proba(np.arange(60.0))).argmax(axis=1) == np.arange(60) // 20).all()
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, 500)
    for scores in (rng.normal(size=500), np.full(500, 7.0)):
        (flat,) = fit_ordinal_maps(scores, codes, 3)
        shares = np.exp(flat.log_proba(scores)).mean(axis=0)
        np.testing.assert_allclose(shares, np.bincount(codes) / 500, atol=0.01)
    (single,) = fit_ordinal_maps(np.arange(10.0), np.ones(10, dtype=int), 3)
    assert (np.exp(single.log_proba(np.arange(10.0))).argmax(axis=1) == 1).all()


def test_many_scores_are_merged_without_loss():
    rng = np.random.default_rng(6)
    scores, codes = draw(rng, 900, 4)
    (fitted,) = fit_ordinal_maps(scores, codes, 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordinal_fit, "_MAX_BINS", 200)
        (merged,) = fit_ordinal_maps(scores, codes, 4)
    grid = np.linspace(20, 80, 50)
    np.testing.assert_allclose(np.exp(merged.log_proba(grid)), np.exp(fitted.log_proba(grid)), atol=2e-3)


def test_scores_the_wrong_way_round_are_refused_and_noise_is_not():
    rng = np.random.default_rng(7)
    scores, codes = draw(rng, 60, 3)
    with pytest.raises(ValueError, match=r"larger must mean more of the class, .*; pass -scores"):
        fit_ordinal_maps(-scores, codes, 3)
    refused = 0
    for _ in range(200):
        try:
            fit_ordinal_maps(rng.normal(size=40), rng.integers(0, 3, 40), 3)
        except ValueError:
            refused += 1
    assert refused <= 3
    # A resample may have them: only the fit to all rows is refused.
    masks = np.zeros((1, 60), dtype=bool)
    order = np.argsort(scores)
    masks[0, order[:3]] = masks[0, order[-3:]] = True
    odd = codes.copy()
    odd[order[:3]], odd[order[-3:]] = 2, 0
    assert fit_ordinal_maps(scores, odd, 3, masks=masks)[0].slope > 0


def test_an_empty_resample_has_a_map_and_no_labels_are_refused():
    scores, codes = np.arange(10.0), np.arange(10) // 4
    (empty,) = fit_ordinal_maps(scores, codes, 3, masks=np.zeros((1, 10), dtype=bool))
    np.testing.assert_allclose(np.exp(empty.log_proba(scores)).mean(axis=0), 1 / 3, atol=0.05)
    with pytest.raises(ValueError, match="y must have a label for at least one row with a finite score"):
        fit_ordinal_maps(scores, np.full(10, -1), 3)


def test_an_outlier_does_not_turn_the_scores_round():
    """In its own unit the score falls with the grade, because of one row; in that of normal scores it rises."""
    rng = np.random.default_rng(9)
    scores, codes = draw(rng, 200, 3)
    scores[np.flatnonzero(codes == 0)[0]] = 1e6
    (fitted,) = fit_ordinal_maps(scores, codes, 3)
    assert fitted.knots is not None
    assert np.corrcoef(fitted.log_proba(scores)[:, 2], codes)[0, 1] > 0.5


@pytest.mark.parametrize("odd", [False, True])
def test_a_fit_from_a_map_of_other_rows_is_the_same(odd):
    rng = np.random.default_rng(10)
    scores, codes = draw(rng, 400, 4)
    scores = np.exp((scores - 50) / 6) if odd else scores
    (fitted,) = fit_ordinal_maps(scores, codes, 4)
    far = replace(fitted, slope=2 * fitted.slope, intercepts=1.5 * fitted.intercepts - 0.3)
    (again,) = fit_ordinal_maps(scores, codes, 4, start=far)
    assert again.slope == pytest.approx(fitted.slope, rel=1e-5)
    np.testing.assert_allclose(again.intercepts, fitted.intercepts, rtol=1e-5, atol=1e-5)
