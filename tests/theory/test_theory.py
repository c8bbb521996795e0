"""The theory as tools, against finite differences, numbers worked out by hand, and brute force."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

import metricwise as mw
import programmes
from laws.metric_records import EVERY, RECORDS, make, sized
from metricwise.core.losses import Loss
from metricwise.rules import anonymous_rule
from metricwise.theory import check_monotonic, loss_from_gradient, regret, regret_bound

F1_A, F1_B = [[0, 0], [0, 2]], [[0, 1], [1, 2]]


def random_confusion(rng, *shape):
    C = rng.dirichlet(np.ones(shape[-1] ** 2), size=shape[:-2])
    return C.reshape(shape)


def unit(values):
    return (values - values.min()) / (values.max() - values.min())


# ------------------------------------------------------------------------------------------ the loss at an optimum


@pytest.mark.parametrize("name", [name for name in EVERY if make(name, 3).traits.smooth])
def test_loss_is_the_negative_gradient_by_finite_differences_within_rows(name):
    C = random_confusion(np.random.default_rng(0), 3, 3)
    metric = make(name, 3)
    value, L = metric.value, loss_from_gradient(metric, C)
    assert L.min() == 0.0
    assert L.max() == 1.0
    step, rise, fall = 1e-6, [], []
    for i, j, k in itertools.product(range(3), repeat=3):
        D = np.zeros((3, 3))
        D[i, j] += step
        D[i, k] -= step
        rise.append((value(C + D) - value(C - D)) / (2 * step))
        fall.append(L[i, j] - L[i, k])
    rise, fall = np.array(rise), np.array(fall)
    scale = -(rise @ fall) / (fall @ fall)  # one positive scale for all moves
    assert scale > 0
    np.testing.assert_allclose(rise, -scale * fall, atol=1e-6)


def test_loss_of_a_ratio_is_its_value_times_B_minus_A():
    rng = np.random.default_rng(1)
    A, B = rng.uniform(size=(2, 4, 4))
    C = random_confusion(rng, 4, 4)
    value = np.sum(A * C) / np.sum(B * C)
    L = loss_from_gradient(mw.metrics.FractionalLinear(A, B), C)
    np.testing.assert_allclose(L, unit(value * B - A), atol=1e-12)


def test_loss_of_ordinal_by_hand():
    L = loss_from_gradient("ordinal", np.full((4, 4), 1 / 16))
    np.testing.assert_allclose(L, np.abs(np.subtract.outer(range(4), range(4))) / 3, atol=1e-15)


def test_micro_has_one_shared_loss_at_the_pooled_confusion():
    rng = np.random.default_rng(2)
    counts = rng.integers(1, 50, (3, 4, 4))
    L = loss_from_gradient("quadratic_kappa", counts, average="micro")
    pooled = loss_from_gradient("quadratic_kappa", counts.sum(axis=0))
    np.testing.assert_allclose(L, np.broadcast_to(pooled, L.shape), atol=1e-12)


def test_macro_decomposes_into_a_loss_per_output():
    rng = np.random.default_rng(3)
    C = random_confusion(rng, 3, 4, 4)
    L = loss_from_gradient("quadratic_kappa", C, average="macro")
    np.testing.assert_allclose(L, [loss_from_gradient("quadratic_kappa", Cm) for Cm in C], atol=1e-12)


def test_a_gradient_goes_without_a_confusion():
    gradient = np.array([[3.0, 1.0], [-1.0, 1.0]])
    np.testing.assert_array_equal(loss_from_gradient(gradient), [[0.0, 0.5], [1.0, 0.5]])
    both = loss_from_gradient([gradient, 2 * gradient + 5])
    np.testing.assert_array_equal(both[0], both[1])


def test_unequal_numbers_of_classes_use_their_own():
    rng = np.random.default_rng(4)
    C = np.zeros((2, 3, 3))
    C[0], C[1, :2, :2] = random_confusion(rng, 3, 3), random_confusion(rng, 2, 2)
    L = loss_from_gradient("ordinal", C, average="macro", n_classes=[3, 2])
    np.testing.assert_array_equal(L[1, :2, :2], [[0, 1], [1, 0]])
    assert L.shape == (2, 3, 3)


def test_an_output_without_labels_gets_the_loss_of_argmax():
    C = np.zeros((2, 2, 2))
    C[0] = [[0.6, 0.1], [0.1, 0.2]]
    np.testing.assert_array_equal(loss_from_gradient("f1", C, average="macro")[1], [[0, 1], [1, 0]])


def test_a_flat_metric_has_no_loss():
    np.testing.assert_array_equal(loss_from_gradient(np.ones((3, 3))), np.zeros((3, 3)))


def test_the_loss_at_the_optimum_reproduces_the_optimal_rule():
    rng = np.random.default_rng(5)
    eta = rng.dirichlet([2.0, 1.0, 0.5], size=4000)
    solution = mw.optimize(eta, None, "quadratic_kappa", strategy=mw.Strategy(confusion="expected", recalibrate=False))
    L = loss_from_gradient("quadratic_kappa", solution.confusion[0])
    rule = anonymous_rule(Loss.from_tensor(L), np.array([3]))
    assert np.mean(rule.predict(eta) == solution.rule.predict(eta)) > 0.999


@pytest.mark.parametrize(
    ("metric", "confusion", "options", "message"),
    [
        ("f1", None, {}, "confusion must be given"),
        ("f1", [0.5, 0.5], {}, r"shape \(K, K\) or \(M, K, K\)"),
        ("f1", [[0.5, -0.5], [0.5, 0.5]], {}, "non-negative"),
        ("f1", [[0.5, np.nan], [0.5, 0.5]], {}, "finite"),
        ("f1", np.zeros((2, 2)), {}, "not all zero"),
        (np.eye(2), np.eye(3), {}, "the shape of confusion"),
        ([["a", "b"], ["c", "d"]], None, {}, "array of numbers"),
        ("ordinal", np.ones((2, 3, 3)), {"n_classes": [3, 1]}, "integers from 2 to 3"),
        ("f1_macro", np.ones((2, 2, 2)), {"average": "micro"}, "fixes average='macro'"),
    ],
)
def test_loss_refuses_bad_input(metric, confusion, options, message):
    with pytest.raises(ValueError, match=message):
        loss_from_gradient(metric, confusion, **options)


# ------------------------------------------------------------------------------------------------ monotonicity


@pytest.mark.parametrize(
    ("name", "n_classes"),
    [pytest.param(name, k, marks=pytest.mark.slow if k == 5 else []) for name, k in sized(2, 3, 5)],
)
def test_repairs_never_lower_a_metric_but_those_corrected_for_chance(name, n_classes):
    result = check_monotonic(make(name, n_classes), n_classes)
    expected = (RECORDS[name].monotonic or n_classes == 2) and not RECORDS[name].rewards_mistakes
    assert result.monotonic == expected
    assert bool(result) == result.monotonic
    assert (result.counterexample is None) == result.monotonic


def test_a_counterexample_can_be_checked_by_hand():
    found = check_monotonic("quadratic_kappa", 5).counterexample
    repaired = found.confusion.copy()
    repaired[found.true, found.predicted] -= found.amount
    repaired[found.true, found.true] += found.amount
    y, h = np.indices((5, 5)).reshape(2, -1)
    before, after = (
        cohen_kappa_score(y, h, weights="quadratic", sample_weight=C.ravel()) for C in (found.confusion, repaired)
    )
    assert (found.before, found.after) == pytest.approx((before, after), abs=1e-9)
    assert after < before
    assert found.true != found.predicted


def test_the_counterexample_of_the_errata():
    C = np.zeros((5, 5))
    C[1, 0], C[1, 4], C[4, 4] = 0.01, 0.09, 0.9
    repaired = C.copy()
    repaired[1, [0, 1]] = 0.0, 0.01
    values = mw.metrics.get_metric("quadratic_kappa").value(np.array([C, repaired]))
    np.testing.assert_allclose(values, [0.208, 0.167], atol=5e-4)


def test_credit_for_near_misses_is_monotonic_and_credit_for_errors_is_not():
    assert check_monotonic(mw.metrics.Linear([[1.0, 0.9], [0.9, 1.0]]), 2)
    assert not check_monotonic(mw.metrics.Linear([[1.0, 1.1], [0.9, 1.0]]), 2)
    assert check_monotonic(lambda C: float(np.trace(C)) ** 3, 3, n_matrices=50)
    assert not check_monotonic(lambda C: -float(np.trace(C)), 3, n_matrices=50)


def test_the_check_is_reproducible():
    first, second = (check_monotonic("mcc", 3, random_state=1) for _ in range(2))
    np.testing.assert_array_equal(first.counterexample.confusion, second.counterexample.confusion)


@pytest.mark.parametrize(
    ("n_classes", "options", "message"),
    [
        (1, {}, "n_classes must be an integer of at least 2"),
        (2.0, {}, "n_classes must be an integer"),
        (2, {"n_matrices": 0}, "n_matrices"),
        (2, {"tol": -1.0}, "tol must be"),
    ],
)
def test_monotonicity_refuses_bad_input(n_classes, options, message):
    with pytest.raises(ValueError, match=message):
        check_monotonic("accuracy", n_classes, **options)


# ------------------------------------------------------------------------------------------------------ regret


@pytest.mark.parametrize("name", ["accuracy", "ordinal", "micro_f1", "kappa", "quadratic_kappa"])
def test_regret_is_against_the_best_of_all_decisions(name):
    rng = np.random.default_rng(6)
    metric = mw.metrics.get_metric(name)
    for _ in range(5):
        eta, proba = rng.dirichlet(np.ones(3), size=(2, 7))
        found = regret(anonymous_rule(Loss.argmax(3), np.array([3])), proba, eta, name)
        C = np.zeros((3, 3))
        for truth, j in zip(eta, proba.argmax(axis=1), strict=True):
            C[:, j] += truth / 7
        best = metric.value(programmes.single(eta).vertices()).max()
        assert found.value == pytest.approx(float(metric.value(C)), abs=1e-12)
        assert found.best == pytest.approx(best, abs=1e-9)
        assert found.regret == float(found) == pytest.approx(best - found.value)
        assert found.upper_bound == pytest.approx(best, abs=1e-9)


def test_regret_of_a_threshold_against_all_thresholds():
    rng = np.random.default_rng(7)
    eta = rng.beta(1, 4, size=300)
    rule = mw.WeightedRule(Loss.argmax(2), classes=(np.array(["no", "yes"]),))
    found = regret(rule, eta, eta, "f1", pos_label="yes")

    def f1(threshold):
        chosen = eta > threshold
        return 2 * eta[chosen].sum() / (eta.sum() + chosen.sum())

    assert found.value == pytest.approx(f1(0.5))
    assert found.best == pytest.approx(max(f1(t) for t in [-1.0, *eta]))
    assert regret(found.best_rule, eta, eta, "f1", pos_label="yes").regret == pytest.approx(0.0, abs=1e-12)


def test_regret_over_outputs_and_weights():
    rng = np.random.default_rng(8)
    eta, weight = rng.beta(1, 3, size=(200, 2)), rng.uniform(size=200)
    argmax = anonymous_rule(Loss.argmax(2), np.array([2, 2]))
    single = anonymous_rule(Loss.argmax(2), np.array([2]))
    macro = regret(argmax, eta, eta, "f1", average="macro", sample_weight=weight, output_weight=[1, 3])
    each = [regret(single, eta[:, m], eta[:, m], "f1", sample_weight=weight) for m in range(2)]
    assert macro.value == pytest.approx((each[0].value + 3 * each[1].value) / 4)
    assert macro.best == pytest.approx((each[0].best + 3 * each[1].best) / 4)
    assert regret(argmax, eta, eta, "f1_macro").regret == pytest.approx(
        np.mean([float(regret(single, eta[:, m], eta[:, m], "f1")) for m in range(2)])
    )
    micro = regret(argmax, eta, eta, "f1")
    pooled = regret(single, eta.ravel(), eta.ravel(), "f1")
    assert (micro.value, micro.best) == pytest.approx((pooled.value, pooled.best))


def test_regret_of_a_randomised_rule_counts_its_distribution():
    eta = np.random.default_rng(9).beta(1, 2, size=50)
    never, always = (anonymous_rule(Loss.from_tensor(L), np.array([2])) for L in ([[0, 1], [0, 1]], [[1, 0], [1, 0]]))
    rule = mw.MixtureRule((never, always), np.array([0.75, 0.25]))
    expected = 0.75 * np.mean(1 - eta) + 0.25 * np.mean(eta)
    assert regret(rule, eta, eta, "accuracy").value == pytest.approx(expected)


def test_the_best_rule_may_be_a_mixture():
    """One distinct row, three classes: each must be predicted a third of the time for a smallest recall of 1/3."""
    eta = np.full((6, 3), 1 / 3)
    found = regret(anonymous_rule(Loss.argmax(3), np.array([3])), eta, eta, "min_recall")
    assert found.value == 0.0
    assert found.best == pytest.approx(1 / 3)
    assert isinstance(found.best_rule, mw.MixtureRule)


@pytest.mark.parametrize("name", ["f1", "mcc", "g_mean", "min_recall"])
def test_no_threshold_beats_the_best_rule(name):
    rng = np.random.default_rng(12)
    eta = rng.beta(1, 3, size=100)
    rule = anonymous_rule(Loss.argmax(2), np.array([2]))
    found = regret(rule, eta, eta, name)
    chosen = eta > np.sort(eta)[:, None]
    C = np.array([[[np.sum((1 - eta)[~h]), np.sum((1 - eta)[h])], [np.sum(eta[~h]), np.sum(eta[h])]] for h in chosen])
    assert mw.metrics.get_metric(name).value(C / 100).max() <= found.best + 1e-9


def test_a_rule_by_the_true_probabilities_has_no_regret_and_one_by_worse_ones_has():
    rng = np.random.default_rng(10)
    eta = rng.dirichlet([1.0, 0.5, 0.5, 0.2], size=3000)
    noisy = rng.dirichlet(np.ones(4), size=3000) * 0.5 + eta * 0.5
    rule = mw.optimize(eta, None, "quadratic_kappa", strategy=mw.Strategy(confusion="expected", recalibrate=False)).rule
    assert 0 <= float(regret(rule, eta, eta, "quadratic_kappa")) < 1e-9
    assert float(regret(rule, noisy, eta, "quadratic_kappa")) > 0.01


def test_regret_refuses_bad_input():
    rule = anonymous_rule(Loss.argmax(2), np.array([2]))
    with pytest.raises(ValueError, match="eta must have as many rows as proba, 2, got 3"):
        regret(rule, [0.1, 0.2], [0.1, 0.2, 0.3], "f1")
    with pytest.raises(ValueError, match="2 classes"):
        regret(rule, [0.1, 0.2], [[0.1, 0.2, 0.7], [0.1, 0.2, 0.7]], "f1")
    with pytest.raises(TypeError, match="rule must be a WeightedRule"):
        regret("argmax", [0.1], [0.1], "f1")


# ------------------------------------------------------------------------------------------------ the regret bound


def test_bound_by_hand():
    bound = regret_bound(F1_A, F1_B, 0.5, n_rows=1000, n_outputs=4, eta_error=[0.1, 0.2, 0.3, 0.0], delta=0.1)
    assert bound.tau == pytest.approx((2 + 4) / 0.5)
    assert bound.estimation == pytest.approx(2 * 12 * 0.6 / 4)  # over M = 4 outputs
    # K^2 log K log(MN) + log(K^2 / delta) = 22.995988 + 3.688879 = 26.684868
    assert bound.sampling == pytest.approx(2 * 2**0.5 * 12 * (26.684868 / 4000) ** 0.5, rel=1e-6)
    assert bound.total == bound.estimation + bound.sampling + bound.bisection
    assert bound.vacuous


def test_a_single_error_is_the_mean_over_outputs():
    options = {"n_rows": 100, "n_outputs": 3}
    each = regret_bound(F1_A, F1_B, 1.0, eta_error=[0.1, 0.2, 0.6], **options)
    assert each.estimation == pytest.approx(regret_bound(F1_A, F1_B, 1.0, eta_error=0.3, **options).estimation)


def test_halvings_are_kappa_times_rows_whatever_the_outputs():
    bound = regret_bound(F1_A, F1_B, 1.0, n_rows=5, n_outputs=7, eta_error=0.0, kappa=2.0)
    assert bound.bisection == 2.0**-10


def test_macro_bound_is_a_union_over_the_outputs():
    """The mean of the outputs' own bounds, each of which must hold with probability 1 - delta / M."""
    options = {"n_rows": 400, "kappa": 0.01}
    least, error = [1.0, 0.5, 0.25], [0.1, 0.2, 0.3]
    macro = regret_bound(
        F1_A,
        F1_B,
        least,
        n_outputs=3,
        eta_error=error,
        delta=0.3,
        average="macro",
        independent_outputs=False,
        **options,
    )
    each = [regret_bound(F1_A, F1_B, b, eta_error=e, delta=0.1, **options) for b, e in zip(least, error, strict=True)]
    assert macro.total == pytest.approx(np.mean([one.total for one in each]))
    assert macro.tau == pytest.approx(np.mean([one.tau for one in each]))
    careless = np.mean([regret_bound(F1_A, F1_B, b, eta_error=0.0, delta=0.3, **options).sampling for b in least])
    assert macro.sampling > careless
    stacked = regret_bound(
        [F1_A] * 3, [F1_B] * 3, least, n_outputs=3, eta_error=error, delta=0.3, average="macro", **options
    )
    assert stacked == macro
    one = regret_bound(F1_A, F1_B, 1.0, eta_error=0.1, average="macro", **options)
    assert one == regret_bound(F1_A, F1_B, 1.0, eta_error=0.1, **options)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"average": "instance"}, "regret_bound: average must be 'micro' or 'macro', got 'instance'"),
        ({"b": [1.0, 1.0]}, r"b must be one for all outputs or one for each of 3, got shape \(2,\)"),
        ({"eta_error": [[0.1]]}, r"eta_error must be one for all outputs or one for each of 3, got shape \(1, 1\)"),
        ({"delta": 0.0}, "delta must be a finite number above 0"),
        ({"b": [1.0, 1.0, 0.0]}, "b must be a finite number above 0"),
    ],
)
def test_macro_bound_refuses(changed, message):
    arguments = {"A": F1_A, "B": F1_B, "b": 1.0, "n_rows": 10, "n_outputs": 3, "eta_error": 0.1, "average": "macro"}
    with pytest.raises(ValueError, match=message):
        regret_bound(**(arguments | changed))


def test_the_cautious_option_counts_rows_once():
    options = {"n_rows": 500, "eta_error": 0.1}
    printed = regret_bound(F1_A, F1_B, 1.0, n_outputs=9, **options)
    cautious = regret_bound(F1_A, F1_B, 1.0, n_outputs=9, independent_outputs=False, **options)
    assert cautious.sampling == regret_bound(F1_A, F1_B, 1.0, **options).sampling
    assert cautious.sampling > printed.sampling
    assert cautious.estimation == printed.estimation


def test_the_unknown_constant_scales_the_sampling_term_alone():
    one, two = (regret_bound(F1_A, F1_B, 1.0, n_rows=10, eta_error=0.1, constant=c) for c in (1.0, 2.0))
    assert two.sampling == pytest.approx(2 * one.sampling)
    assert (two.estimation, two.bisection) == (one.estimation, one.bisection)


def test_the_estimation_term_bounds_the_regret_of_plug_in_rules():
    """With the true psi* in hand, 2 tau times the error of eta bounds what a wrong eta costs."""
    rng = np.random.default_rng(11)
    eta = rng.beta(1, 3, size=500)
    proba = np.clip(eta + rng.normal(0, 0.02, size=500), 0, 1)
    best = regret(anonymous_rule(Loss.argmax(2), np.array([2])), eta, eta, "f1")
    loss = Loss.from_tensor(best.best * np.array(F1_B) - np.array(F1_A))
    found = regret(anonymous_rule(loss, np.array([2])), proba, eta, "f1")
    bound = regret_bound(F1_A, F1_B, eta.mean(), n_rows=500, eta_error=2 * np.abs(proba - eta).mean())
    assert 0 < found.regret < bound.estimation


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": [[0, -1], [0, 2]]}, "A must be non-negative"),
        ({"B": [[0, -1], [1, 2]]}, "B must be non-negative"),
        ({"A": np.eye(3)}, r"A and B must have one shape \(K, K\)"),
        ({"A": [[1.0]], "B": [[1.0]]}, "K >= 2"),
        ({"b": 0.0}, "b must be a finite number above 0 and at most 2"),
        ({"b": 2.5}, "b must be a finite number above 0 and at most 2"),
        ({"n_rows": 0}, "n_rows must be an integer of at least 1"),
        ({"n_outputs": 1.5}, "n_outputs must be an integer"),
        ({"delta": 0.0}, "delta must be a finite number above 0 and at most 1"),
        ({"delta": 1.5}, "delta must be a finite number above 0 and at most 1"),
        ({"kappa": -1.0}, "kappa must be"),
        ({"constant": np.nan}, "constant must be"),
        ({"eta_error": 2.5}, "eta_error must be between 0 and 2"),
        ({"eta_error": [0.1, 0.2]}, "eta_error must be one number or one for each of 1 outputs"),
    ],
)
def test_bound_refuses_bad_input(changes, message):
    arguments = {"A": F1_A, "B": F1_B, "b": 0.5, "n_rows": 100, "eta_error": 0.1} | changes
    with pytest.raises(ValueError, match=message):
        regret_bound(**arguments)
