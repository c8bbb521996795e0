"""The link: its map, its fit against SciPy on the same objective and on known truths, and shifted priors."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.linear_model import LogisticRegression

import worlds
from metricwise.core.probabilities import Probabilities
from metricwise.data.probabilities import read_proba
from metricwise.rules import TemperatureScaling, fit_link, prior_shift
from metricwise.rules.calibration_fit import MIN_TEMPERATURE


def distorted(eta, t, c):
    """Probabilities from which the link (t, c) gives eta back."""
    return softmax((np.log(eta) - c) / t, axis=-1)


def objective(theta, z, y, w, shrinkage):
    t, c = theta[0], theta[1:]
    scores = t * z + c
    shown = np.unique(y)  # among the classes that occur
    likelihood = (w * (scores[np.arange(len(y)), y] - logsumexp(scores[:, shown], axis=1))).sum()
    return shrinkage / 2 * ((t - 1) ** 2 + (c**2).sum()) - likelihood


def reference_fit(eta, y, weight, shrinkage, floor=1e-6):
    """SciPy's minimum of the documented objective, one output, k + 1 parameters."""
    seen = y >= 0
    w = np.ones(seen.sum()) if weight is None else weight[seen] * weight[seen].sum() / (weight[seen] ** 2).sum()
    z, y = np.log(np.maximum(eta[seen], floor)), y[seen]
    start = np.r_[1.0, np.zeros(eta.shape[1])]
    bounds = [(MIN_TEMPERATURE, None)] + [(None, None)] * eta.shape[1]
    options = {"maxiter": 5000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-9}
    return minimize(objective, start, (z, y, w, shrinkage), method="L-BFGS-B", bounds=bounds, options=options).x


# ---------------------------------------------------------------------------------------------------------- map


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_link_is_its_formula(dtype):
    rng = np.random.default_rng(0)
    eta = rng.dirichlet(np.ones(4), (50, 3)).astype(dtype)
    eta[0, 0] = [1, 0, 0, 0]
    link = TemperatureScaling(np.array([0.5, 1.0, 2.0]), rng.normal(0, 1, (3, 4)))
    (result,) = link.apply(read_proba(eta, multioutput=True)).blocks
    raised = np.log(np.maximum(eta.astype(float), 1e-6)) * link.temperature[:, None] + link.bias
    np.testing.assert_allclose(result, softmax(raised, axis=2), rtol=1e-6 if dtype == np.float32 else 1e-13)
    assert result.dtype == dtype


def test_positive_column_and_both_columns_agree():
    p = np.array([[0.0, 0.3], [0.5, 1.0], [0.9, 1e-9]])
    link = TemperatureScaling(np.array([0.5, 2.0]), np.array([[0.0, 1.0], [0.5, -0.5]]))
    (one,) = link.apply(read_proba(p, multioutput=True)).blocks
    (both,) = link.apply(read_proba(np.stack([1 - p, p], axis=2), multioutput=True)).blocks
    np.testing.assert_allclose(one, both[:, :, 1], rtol=1e-14)


def test_padding_stays_zero_and_lists_are_taken_apart():
    rng = np.random.default_rng(1)
    sizes = np.array([2, 4, 3])
    parts = [rng.dirichlet(np.ones(k), 20) for k in sizes]
    padded = np.zeros((20, 3, 5))
    for m, part in enumerate(parts):
        padded[:, m, : sizes[m]] = part
    link = TemperatureScaling(np.array([0.5, 1.0, 2.0]), rng.normal(0, 1, (3, 4)))
    blocks = link.apply(read_proba(parts, multioutput=True)).blocks
    (whole,) = link.apply(Probabilities((padded,), sizes)).blocks
    assert whole.shape == padded.shape
    for m, k in enumerate(sizes):
        np.testing.assert_array_equal(whole[:, m, :k], blocks[m][:, 0])
        assert not whole[:, m, k:].any()


def test_identity_changes_nothing():
    eta = np.random.default_rng(2).dirichlet(np.ones(3), 100)
    (result,) = TemperatureScaling.identity(1, 3).apply(read_proba(eta)).blocks
    np.testing.assert_allclose(result[:, 0], eta, rtol=1e-12)


def test_links_compare_by_content():
    link = TemperatureScaling(np.array([1.0]), np.zeros((1, 2)))
    assert link == TemperatureScaling.identity(1, 2)
    assert link != TemperatureScaling(np.array([1.0]), np.zeros((1, 2)), floor=1e-9)
    assert link != TemperatureScaling(np.array([1.0]), np.ones((1, 2)))
    assert link != "link"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (np.ones(2), np.zeros((1, 2))),
            r"temperature must have shape \(M,\) and bias \(M, K\), got \(2,\) and \(1, 2\)",
        ),
        ((np.ones((1, 1)), np.zeros((1, 2))), "temperature must have shape"),
        ((np.zeros(1), np.zeros((1, 2))), "temperature must be positive and finite, got 0"),
        ((np.array([np.inf]), np.zeros((1, 2))), "temperature must be positive and finite, got inf"),
        ((np.ones(1), np.array([[0.0, -np.inf]])), "bias must be finite"),
        ((np.ones(1), np.zeros((1, 2)), -0.1), "floor must be at least 0 and below 0.5, got -0.1"),
    ],
)
def test_impossible_links_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^TemperatureScaling: {message}"):
        TemperatureScaling(*arguments)


def test_link_of_other_outputs_is_refused():
    with pytest.raises(
        ValueError, match=r"^TemperatureScaling.apply: proba must have 2 outputs of at most 2 classes, got 1 of 3"
    ):
        TemperatureScaling.identity(2, 2).apply(read_proba(np.full((5, 3), 1 / 3)))


# ---------------------------------------------------------------------------------------------------------- fit


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("n", [8, 40, 1500])
@pytest.mark.parametrize("shrinkage", [0.3, 1.0, 10.0])
def test_fit_is_the_minimum_of_its_objective(k, n, shrinkage):
    rng = np.random.default_rng(100 * k + n)
    truth = rng.dirichlet(np.ones(k), n)
    y = worlds.draw_codes(truth, rng)
    y[:2] = [0, 1]
    y[rng.random(n) < 0.1] = -1
    y[2:4] = [0, 1]
    eta = distorted(truth, 0.6, rng.normal(0, 1, k))
    weight = rng.random(n) + 0.1
    link = fit_link(read_proba(eta), y[:, None], weight, shrinkage=shrinkage)
    expected = reference_fit(eta, y, weight, shrinkage)
    assert link.temperature[0] == pytest.approx(expected[0], abs=2e-4)
    np.testing.assert_allclose(link.bias[0], expected[1:] - expected[1:].mean(), atol=2e-4)
    # No worse than SciPy's on the objective itself: the tolerance above is SciPy's, not ours.
    seen = y >= 0
    w = weight[seen] * weight[seen].sum() / (weight[seen] ** 2).sum()
    data = (np.log(np.maximum(eta[seen], 1e-6)), y[seen], w, shrinkage)
    assert objective(np.r_[link.temperature, link.bias[0]], *data) <= objective(expected, *data) + 1e-8


def test_a_few_outputs_at_once_are_each_alone():
    rng = np.random.default_rng(5)
    p = rng.random((300, 4))
    y = (rng.random(p.shape) < p**1.5).astype(int)
    y[rng.random(p.shape) < 0.3] = -1
    together = fit_link(read_proba(p, multioutput=True), y)
    for m in range(4):
        alone = fit_link(read_proba(p[:, m]), y[:, m : m + 1])
        np.testing.assert_allclose(together.temperature[m], alone.temperature[0], rtol=1e-7)
        np.testing.assert_allclose(together.bias[m], alone.bias[0], rtol=1e-6, atol=1e-8)


def test_many_outputs_borrow_strength():
    # One distortion for all: with few rows each, the outputs together know it better than any of them alone.
    rng = np.random.default_rng(5)
    truth = rng.beta(1, 4, (60, 200))
    y = (rng.random(truth.shape) < truth).astype(int)
    p = distorted(np.stack([1 - truth, truth], axis=-1), 2.0, np.array([0.0, 1.0]))[..., 1]
    together = fit_link(read_proba(p, multioutput=True), y)
    alone = [fit_link(read_proba(p[:, m]), y[:, m : m + 1]) for m in range(200)]
    error = np.abs(together.temperature - 2.0).mean()
    assert error < 0.6 * np.mean([abs(link.temperature[0] - 2.0) for link in alone])


def test_an_output_with_many_rows_keeps_its_own_link():
    rng = np.random.default_rng(6)
    truth = rng.random((20_000, 6))
    y = (rng.random(truth.shape) < truth).astype(int)
    p = truth.copy()
    p[:, 0] = truth[:, 0] ** 2 / (truth[:, 0] ** 2 + (1 - truth[:, 0]) ** 2)
    link = fit_link(read_proba(p, multioutput=True), y)
    assert link.temperature[0] == pytest.approx(0.5, abs=0.03)
    np.testing.assert_allclose(link.temperature[1:], 1.0, atol=0.06)


def test_unequal_numbers_of_classes_padded_or_not():
    rng = np.random.default_rng(6)
    sizes = np.array([2, 4, 3, 2])
    parts = [rng.dirichlet(np.ones(k), 400) for k in sizes]
    y = np.stack([worlds.draw_codes(part, rng) for part in parts], axis=1)
    padded = np.zeros((400, 4, 4), dtype=np.float32)
    for m, part in enumerate(parts):
        padded[:, m, : sizes[m]] = part
    one = fit_link(read_proba(parts, multioutput=True), y)
    other = fit_link(Probabilities((padded,), sizes), y)
    np.testing.assert_allclose(one.temperature, other.temperature, rtol=1e-4)
    np.testing.assert_allclose(one.bias, other.bias, atol=1e-4)
    for m, k in enumerate(sizes):
        assert not one.bias[m, k:].any()
        assert one.bias[m, :k].sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("t", [0.5, 2.0])
def test_known_distortions_are_recovered(k, t):
    rng = np.random.default_rng(7)
    truth = rng.dirichlet(np.ones(k), 50_000)
    c = np.linspace(-1, 1, k)
    link = fit_link(read_proba(distorted(truth, t, c)), worlds.draw_codes(truth, rng)[:, None])
    assert link.temperature[0] == pytest.approx(t, rel=0.03)
    np.testing.assert_allclose(link.bias[0], c, atol=0.05)


def test_class_balanced_logistic_regression_gets_its_log_odds_back():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(20_000, 2))
    eta = 1 / (1 + np.exp(-(x @ [1.5, -1.0] - 3.0)))
    y = (rng.random(len(x)) < eta).astype(int)
    proba = LogisticRegression(class_weight="balanced").fit(x, y).predict_proba(x)
    link = fit_link(read_proba(proba), y[:, None])
    share = y.mean()
    assert link.bias[0, 1] - link.bias[0, 0] == pytest.approx(np.log(share / (1 - share)), abs=0.1)
    assert link.temperature[0] == pytest.approx(1, abs=0.1)
    again = link.apply(read_proba(proba)).blocks[0][:, 0, 1]
    assert abs(again.mean() - share) < 1e-3
    assert np.abs(again - eta).mean() < 0.01 < 0.1 < np.abs(proba[:, 1] - eta).mean()


def test_outputs_with_nothing_to_learn_from_keep_their_probabilities():
    rng = np.random.default_rng(9)
    p = rng.random((200, 4))
    y = (rng.random(p.shape) < p).astype(int)
    y[:, 1] = -1  # no label
    y[:, 2] = 1  # one class
    y[:100, 3] = 1  # the other class only where the weight is zero
    weight = np.r_[np.ones(100), np.zeros(100)]
    link = fit_link(read_proba(p, multioutput=True), y, weight)
    assert link.temperature[0] != 1
    assert link.temperature[1:].tolist() == [1, 1, 1]
    assert not link.bias[1:].any()


def test_a_class_that_never_occurs_keeps_its_odds():
    """Labels that do not show a class do not judge it: among the others it keeps its odds, but for the temperature."""
    rng = np.random.default_rng(10)
    eta = rng.dirichlet(np.ones(4), 1000)
    link = fit_link(read_proba(eta), (worlds.draw_codes(eta, rng) % 3)[:, None])
    assert link.bias[0, 3] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("n", [20, 2_000])
def test_separable_labels_do_not_run_away(n):
    p = np.linspace(0.01, 0.99, n)
    y = (p > 0.5).astype(int)
    link = fit_link(read_proba(p), y[:, None])
    expected = reference_fit(np.stack([1 - p, p], axis=1), y, None, 1.0)
    assert link.temperature[0] == pytest.approx(expected[0], rel=1e-3)
    zeros_and_ones = fit_link(read_proba(y.astype(float)), y[:, None])
    assert np.isfinite(zeros_and_ones.bias).all()


def test_misleading_probabilities_stop_at_the_smallest_temperature():
    rng = np.random.default_rng(11)
    eta = rng.dirichlet(np.ones(3), 3000)
    y = worlds.draw_codes(eta[:, ::-1], rng)  # the most probable class is the least likely
    link = fit_link(read_proba(eta), y[:, None])
    expected = reference_fit(eta, y, None, 1.0)
    assert link.temperature[0] == MIN_TEMPERATURE
    np.testing.assert_allclose(link.bias[0], expected[1:] - expected[1:].mean(), atol=1e-3)


def test_few_rows_move_little_and_scale_of_weights_is_nothing():
    eta = np.array([[0.6, 0.4], [0.4, 0.6]])
    y = np.array([[0], [1]])
    link = fit_link(read_proba(eta), y)
    assert abs(link.temperature[0] - 1) < 0.5
    p = np.random.default_rng(12).random(300)
    codes = (p > 0.4).astype(int)[:, None]
    codes[::7] = 1 - codes[::7]
    plain, scaled = (fit_link(read_proba(p), codes, w) for w in (None, np.full(300, 1e-3)))
    np.testing.assert_allclose(plain.bias, scaled.bias, rtol=1e-9)
    repeated = fit_link(read_proba(np.r_[p, p]), np.r_[codes, 1 - codes], np.r_[np.ones(300), np.zeros(300)])
    np.testing.assert_allclose(plain.bias, repeated.bias, rtol=1e-7)


def test_large_data_are_subsampled_the_same_way_each_time():
    rng = np.random.default_rng(13)
    truth = rng.dirichlet(np.ones(3), 30_000)
    eta, y = distorted(truth, 0.5, np.array([-0.5, 0.0, 0.5])), worlds.draw_codes(truth, rng)[:, None]
    weight = np.ones(30_000)
    one, two = (fit_link(read_proba(eta), y, weight, max_rows=10_000) for _ in range(2))
    assert one == two
    assert one != fit_link(read_proba(eta), y)
    assert one.temperature[0] == pytest.approx(0.5, rel=0.1)


def test_wrong_arguments_are_refused():
    proba = read_proba(np.full(5, 0.5))
    with pytest.raises(ValueError, match=r"^fit_link: codes must have shape \(5, 1\), as proba has, got \(5,\)"):
        fit_link(proba, np.zeros(5, dtype=int))
    with pytest.raises(ValueError, match=r"^fit_link: shrinkage must be positive, got 0"):
        fit_link(proba, np.zeros((5, 1), dtype=int), shrinkage=0)
    with pytest.raises(ValueError, match=r"^fit_link: max_rows must be at least 1, got 0"):
        fit_link(proba, np.zeros((5, 1), dtype=int), max_rows=0)


# ------------------------------------------------------------------------------------------------------- priors


def test_prior_shift_is_bayes_rule():
    rng = np.random.default_rng(14)
    likelihood = rng.random((100, 3))
    source, target = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])

    def posterior(prior):
        joint = likelihood * prior
        return joint / joint.sum(axis=1, keepdims=True)

    link = prior_shift(None, source, target)
    (result,) = link.apply(read_proba(posterior(source))).blocks
    np.testing.assert_allclose(result[:, 0], posterior(target), rtol=1e-10)
    tempered = prior_shift(TemperatureScaling(np.array([2.0]), np.array([[0.0, 1.0, 0.0]])), source, target)
    assert tempered.temperature.tolist() == [2.0]
    difference = tempered.bias[0] - [0.0, 1.0, 0.0] - np.log(target / source)
    np.testing.assert_allclose(difference, difference[0])


def test_prior_shift_of_absent_classes_and_padding():
    source = np.array([[0.5, 0.5, 0.0], [0.4, 0.6, 0.0]])
    target = np.array([[0.9, 0.0, 0.1], [0.5, 0.5, 0.0]])
    link = prior_shift(None, source, target)
    assert np.isfinite(link.bias).all()
    assert link.bias[:, 2].tolist() == [0, 0]
    assert link.bias[0, 1] - link.bias[0, 0] < -10
    assert link.bias[1, 0] - link.bias[1, 1] == pytest.approx(np.log(0.5 / 0.4) - np.log(0.5 / 0.6))


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ([0.5, 0.6], [0.5, 0.5], r"source must sum to 1 over the classes, got 1\.1"),
        ([0.5, 0.5], [1.5, -0.5], "target must be non-negative and finite, got -0.5"),
        ([0.5, 0.5], [np.nan, 0.5], "target must be non-negative and finite, got nan"),
        ([0.5, 0.5], [0.2, 0.3, 0.5], r"target must have the shape of source, \(1, 2\), got \(1, 3\)"),
        ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5], r"source must have the shape of the link, \(1, 2\), got \(1, 3\)"),
        ([[[0.5, 0.5]]], [0.5, 0.5], r"source must have shape \(K,\) or \(M, K\), got \(1, 1, 2\)"),
    ],
)
def test_wrong_priors_are_refused(source, target, message):
    with pytest.raises(ValueError, match=f"^prior_shift: {message}"):
        prior_shift(TemperatureScaling.identity(1, 2), source, target)
