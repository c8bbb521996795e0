"""Averages over outputs as laws: what is shared, what decomposes, what reduces to what."""

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

import metricwise as mw
import worlds
from laws.metric_records import exact_ratio
from profiles import examples

pytestmark = pytest.mark.usefixtures("engine")

LABELS = {"confusion": "labels", "recalibrate": False}
RATIOS = ["micro_f1", "kappa", "quadratic_kappa"]


def solve(problem, metric, *, solver="auto", confusion="labels", **options):
    strategy = mw.Strategy(confusion, recalibrate=False, solver=solver)
    return mw.optimize(problem.proba, problem.labels, metric, strategy=strategy, **{**problem.arguments(), **options})


def several(**options):
    return worlds.tiny(max_rows=10, **options).filter(lambda problem: problem.n_outputs > 1)


# ------------------------------------------------------------------------------------------- the two theorems


@examples(40)
@given(problem=several(), metric=st.sampled_from(RATIOS), solver=st.sampled_from(["path", "dinkelbach", "bisection"]))
def test_micro_has_one_shared_loss(problem, metric, solver):
    rule = solve(problem, metric, average="micro", solver=solver).rule
    assert rule.loss.n_outputs == 1
    assert rule.n_outputs == problem.n_outputs


@examples(40)
@given(problem=several(), metric=st.sampled_from(RATIOS), solver=st.sampled_from(["path", "dinkelbach", "bisection"]))
def test_macro_decomposes(problem, metric, solver):
    """The best for all outputs at once is the best for each output alone.

    Bisection ends with the last rule that was accepted. With labels that hangs on how ties are decided, and so on the
    form of the loss, which outputs have in common; with probabilities it does not.
    """
    families = list(worlds.families(problem, partial(exact_ratio, metric), "macro"))
    assume(not any(ties for _, _, ties in families))
    counted = {"confusion": "expected" if solver == "bisection" else "labels"}
    together = solve(problem, metric, average="macro", solver=solver, **counted)
    assume("Did not converge" not in together.status)
    for g, (_, (rows,), _) in zip(together.level, families, strict=True):
        # Dinkelbach may settle where rows tie, and rounding decides them.
        assume(solver != "dinkelbach" or not any(abs(g - point) < 1e-9 for point in worlds.crossings(rows)))
    parts = [solve(part, metric, solver=solver, **counted).optimized_value for part, _, _ in families]
    assert together.optimized_value == pytest.approx(np.mean(parts), abs=1e-9 if solver == "path" else 1e-5)


def test_macro_of_binary_outputs_decomposes_for_any_metric():
    rng = np.random.default_rng(0)
    proba, y = rng.random((60, 4)).round(2), rng.integers(0, 2, size=(60, 4))
    weight = np.array([1.0, 2.0, 0.5, 3.0])
    for metric in ("g_mean", "mcc", "f1"):
        parts = [mw.optimize(proba[:, m], y[:, m], metric, strategy=mw.Strategy(**LABELS)) for m in range(4)]
        together = mw.optimize(proba, y, metric, average="macro", output_weight=weight, strategy=mw.Strategy(**LABELS))
        assert together.value == pytest.approx(np.average([part.value for part in parts], weights=weight))
        np.testing.assert_array_equal(together.rule.threshold, [part.rule.threshold for part in parts])


# ------------------------------------------------------------------------------------------------ reductions


@examples(40)
@given(
    problem=worlds.tiny(max_rows=10, same_size=True, missing=False),
    metric=st.sampled_from(["accuracy", "ordinal", "squared_ordinal", "weighted_exponential"]),
)
def test_micro_is_macro_is_instance_for_linear_metrics(problem, metric):
    """Complete labels, equal output weights, a metric that is linear before it knows any priors."""
    metric = "hamming_accuracy" if metric == "accuracy" else metric
    micro, macro, instance = (
        solve(problem, metric, average=average, solver="closed_form") for average in ("micro", "macro", "instance")
    )
    assert micro.value == pytest.approx(macro.value, abs=1e-12)
    assert micro.value == pytest.approx(instance.value, abs=1e-12)
    decisions = micro.rule.predict(problem.proba)
    assert np.array_equal(decisions, macro.rule.predict(problem.proba))
    assert np.array_equal(decisions, instance.rule.predict(problem.proba))


def test_instance_is_not_micro_for_f1():
    """The counterexample: two rows, one of them right but for its many labels.

    Row 1 has labels (1, 0, 0), predicted (1, 0, 0): F1 = 1. Row 2 has (1, 1, 1), predicted (1, 0, 0): F1 = 1/2. The
    mean of the rows is 3/4; pooled, there are 2 hits, 0 false alarms, 2 misses: F1 = 4/6.
    """
    y, predicted = np.array([[1, 0, 0], [1, 1, 1]]), np.array([[1, 0, 0], [1, 0, 0]])
    f1 = mw.metrics.FBeta()
    assert f1.score(y, predicted, average="instance") == pytest.approx(0.75)
    assert f1.score(y, predicted, average="micro") == pytest.approx(2 / 3)
    assert f1_score(y, predicted, average="samples") == pytest.approx(0.75)


def test_instance_is_valued_row_by_row_and_called_a_surrogate():
    rng = np.random.default_rng(1)
    proba = rng.random((80, 5)).round(2)
    y = (rng.random((80, 5)) < proba).astype(int)
    y[:, 0] = 1
    solution = mw.optimize(proba, y, "f1", average="instance", strategy=mw.Strategy(**LABELS))
    micro = mw.optimize(proba, y, "f1", average="micro", strategy=mw.Strategy(**LABELS))
    assert solution.rule == micro.rule
    by_row = f1_score(y, solution.rule.predict(proba), average="samples", zero_division=0)
    assert solution.value == pytest.approx(by_row)
    assert solution.optimized_value == micro.optimized_value  # the surrogate's, which the bound belongs to
    assert solution.upper_bound == micro.upper_bound
    assert "surrogate" in solution.status


@examples(40)
@given(problem=worlds.tiny(max_outputs=1), metric=st.sampled_from(RATIOS), average=st.sampled_from(["micro", "macro"]))
def test_one_output_is_multiclass(problem, metric, average):
    """y (N, 1) with proba [(N, K)] is y (N,) with proba (N, K)."""
    flat = solve(problem, metric, solver="path")
    wide = mw.optimize(
        [problem.eta[0]],
        problem.labels[:, None],
        metric,
        average=average,
        sample_weight=problem.weight,
        classes=[problem.classes],
        strategy=mw.Strategy(solver="path", **LABELS),
    )
    assert wide.value == flat.value
    predicted = wide.rule.predict([problem.eta[0]])
    assert predicted.shape == (problem.n_rows, 1)
    assert np.array_equal(predicted[:, 0], flat.rule.predict(problem.eta[0]))


@examples(40)
@given(
    problem=worlds.tiny(max_classes=2),
    metric=st.sampled_from(["f1", "kappa", "mcc"]),
    average=st.sampled_from(["micro", "macro"]),
)
def test_two_classes_are_multilabel(problem, metric, average):
    """A list of (N, 2) arrays is the (N, M) array of probabilities of class 1."""
    y = problem.labels.reshape(problem.n_rows, -1)
    options = {"average": average, "sample_weight": problem.weight, "strategy": mw.Strategy(**LABELS)}
    pairs = mw.optimize(list(problem.eta), y, metric, classes=[[0, 1]] * problem.n_outputs, **options)
    positive = np.column_stack([eta[:, 1] for eta in problem.eta])
    labels = mw.optimize(positive, y, metric, classes=[0, 1], **options)
    assert pairs.value == labels.value
    assert np.array_equal(pairs.rule.predict(list(problem.eta)), labels.rule.predict(positive))


# --------------------------------------------------------------------------------- missing labels and weights


@examples(40)
@given(problem=worlds.tiny(max_outputs=1, weights=False), metric=st.sampled_from(RATIOS))
def test_masking_a_label_is_dropping_its_row(problem, metric):
    seen = problem.y[:, 0] >= 0
    masked = solve(problem, metric, solver="path")
    dropped = solve(worlds.Tiny([problem.eta[0][seen]], problem.y[seen]), metric, solver="path")
    assert masked.value == pytest.approx(dropped.value, abs=1e-12)
    assert np.array_equal(masked.rule.predict(problem.proba), dropped.rule.predict(problem.proba))


@examples(40)
@given(problem=several(weights=False), metric=st.sampled_from(RATIOS), average=st.sampled_from(["micro", "macro"]))
def test_a_missing_row_of_everything_weighs_nothing(problem, metric, average):
    more = worlds.Tiny(
        [np.vstack([eta, np.eye(eta.shape[1])[[0]]]) for eta in problem.eta],
        np.vstack([problem.y, -np.ones((1, problem.n_outputs), dtype=int)]),
    )
    assert solve(more, metric, average=average, solver="path").value == pytest.approx(
        solve(problem, metric, average=average, solver="path").value, abs=1e-12
    )


@examples(40)
@given(
    problem=worlds.tiny(max_rows=8, weights=False),
    counts=st.lists(st.integers(0, 3), min_size=8, max_size=8),
    metric=st.sampled_from(RATIOS),
    average=st.sampled_from(["micro", "macro"]),
)
def test_a_weight_is_a_number_of_copies(problem, counts, metric, average):
    times = np.array(counts[: problem.n_rows])
    times[:2] += 1
    repeated = worlds.Tiny(problem.eta, problem.y, times.astype(float))
    assume(not worlds.undecidable(repeated, partial(exact_ratio, metric), average))
    options = {"average": average, "solver": "path"}
    weighted = solve(problem, metric, sample_weight=times.astype(float), **options)
    copies = np.repeat(np.arange(problem.n_rows), times)
    repeated = solve(worlds.Tiny([eta[copies] for eta in problem.eta], problem.y[copies]), metric, **options)
    assert weighted.value == pytest.approx(repeated.value, abs=1e-9)


def test_a_weight_is_a_number_of_copies_in_expectation_and_for_the_link():
    rng = np.random.default_rng(9)
    proba = rng.dirichlet(np.ones(3), size=40)
    y, times = rng.integers(0, 3, size=40), rng.integers(1, 4, size=40)
    copies = np.repeat(np.arange(40), times)
    expected = {"confusion": "expected", "recalibrate": False}
    weighted = mw.optimize(proba, y, "micro_f1", sample_weight=times, strategy=mw.Strategy(**expected))
    assert weighted.value == pytest.approx(
        mw.optimize(proba[copies], y[copies], "micro_f1", strategy=mw.Strategy(**expected)).value
    )
    doubled = mw.optimize(
        proba, y, "kappa", sample_weight=np.full(40, 7.0), strategy=mw.Strategy(confusion="expected", recalibrate=True)
    )
    plain = mw.optimize(proba, y, "kappa", strategy=mw.Strategy(confusion="expected", recalibrate=True))
    np.testing.assert_allclose(doubled.rule.link.bias, plain.rule.link.bias, atol=1e-6)  # in effective rows
    assert doubled.value == pytest.approx(plain.value, abs=1e-6)


def test_output_weights():
    """Macro: weighted mean. Micro: an output of weight 2 is an output given twice. Weight 0: an output left out."""
    rng = np.random.default_rng(2)
    proba, y = rng.random((40, 3)).round(2), rng.integers(0, 2, size=(40, 3))
    twice = mw.optimize(proba[:, [0, 1, 1, 2]], y[:, [0, 1, 1, 2]], "f1", strategy=mw.Strategy(**LABELS))
    weighted = mw.optimize(proba, y, "f1", output_weight=[1, 2, 1], strategy=mw.Strategy(**LABELS))
    assert weighted.value == pytest.approx(twice.value)
    assert weighted.rule.loss == twice.rule.loss
    for average in ("micro", "macro"):
        without = mw.optimize(proba[:, :2], y[:, :2], "f1", average=average, strategy=mw.Strategy(**LABELS))
        zero = mw.optimize(proba, y, "f1", average=average, output_weight=[1, 1, 0], strategy=mw.Strategy(**LABELS))
        assert zero.value == pytest.approx(without.value)
        assert np.array_equal(zero.rule.predict(proba)[:, :2], without.rule.predict(proba[:, :2]))
    assert np.array_equal(zero.rule.predict(proba)[:, 2], proba[:, 2] > 0.5)


@pytest.mark.parametrize("metric", ["f1", "g_mean", "kappa"])
@pytest.mark.parametrize("count", ["labels", "expected"])
def test_outputs_that_say_nothing_keep_argmax_under_macro(metric, count):
    """Output 1 has no label, output 2 a single class: both keep argmax and are named, the others are as without."""
    rng = np.random.default_rng(3)
    proba = rng.random((50, 4)).round(2)
    y = (rng.random((50, 4)) < proba**2).astype(float)
    y[:, 1], y[:, 2] = np.nan, 0
    options = {"average": "macro", "strategy": mw.Strategy(count, recalibrate=False)}
    solution = mw.optimize(proba, y, metric, **options)
    predicted = solution.rule.predict(proba)
    assert np.array_equal(predicted[:, 1:3], proba[:, 1:3] > 0.5)
    assert "Outputs without labels or with only one class use argmax: 1, 2." in solution.status
    rest = mw.optimize(proba[:, [0, 3]], y[:, [0, 3]], metric, **options)
    assert np.array_equal(predicted[:, [0, 3]], rest.rule.predict(proba[:, [0, 3]]))
    assert np.isfinite(solution.value)
    if count == "labels":
        parts = [mw.metrics.get_metric(metric).score(y[:, m], predicted[:, m], classes=[0, 1]) for m in (0, 2, 3)]
        assert solution.value == pytest.approx(np.mean(parts))


def test_zero_weights_can_make_an_output_say_nothing():
    rng = np.random.default_rng(4)
    proba, y = rng.random((30, 2)), rng.integers(0, 2, size=(30, 2))
    weight = (y[:, 0] == 1).astype(float)
    y[:, 1] = np.arange(30) // 2 % 2
    solution = mw.optimize(proba, y, "f1", average="macro", sample_weight=weight, strategy=mw.Strategy(**LABELS))
    assert "use argmax: 0." in solution.status
    assert np.array_equal(solution.rule.predict(proba)[:, 0], proba[:, 0] > 0.5)


def test_micro_gives_the_shared_loss_to_an_output_without_labels():
    rng = np.random.default_rng(5)
    proba, y = rng.random((50, 3)), (rng.random((50, 3)) < 0.2).astype(float)
    y[:, 2] = np.nan
    solution = mw.optimize(proba, y, "f1", average="micro", strategy=mw.Strategy(**LABELS))
    thresholds = solution.rule.threshold
    assert thresholds[0] == thresholds[1] == thresholds[2]
    assert (
        solution.value
        == mw.optimize(proba[:, :2], y[:, :2], "f1", average="micro", strategy=mw.Strategy(**LABELS)).value
    )


def test_unequal_sizes_macro_binds_to_each_outputs_own_classes():
    """Quadratic kappa of outputs of 2 and 4 classes: each by its own scale."""
    rng = np.random.default_rng(6)
    sizes = (2, 4)
    proba = [rng.dirichlet(np.ones(k), size=60) for k in sizes]
    y = np.column_stack([rng.integers(0, k, size=60) for k in sizes])
    solution = mw.optimize(proba, y, "ordinal", average="macro", strategy=mw.Strategy(solver="closed_form", **LABELS))
    predicted = solution.rule.predict(proba)
    assert predicted[:, 0].max() <= 1
    values = [1 - np.abs(predicted[:, m] - y[:, m]).mean() / (k - 1) for m, k in enumerate(sizes)]
    assert solution.value == pytest.approx(np.mean(values))
    micro = mw.optimize(proba, y, "ordinal", average="micro", strategy=mw.Strategy(solver="closed_form", **LABELS))
    predicted = micro.rule.predict(proba)
    assert micro.value == pytest.approx(1 - np.abs(predicted - y).mean() / 3)


@pytest.mark.parametrize("average", ["micro", "macro", "instance"])
@pytest.mark.parametrize("labels", [[[0, 1]], [[0, 1], [np.nan, np.nan]], [[np.nan, np.nan]] * 4 + [[0, 1]]])
@pytest.mark.parametrize("options", [{}, {"subject_to": "recall >= 0.5"}, {"subject_to": "recall <= 0.5"}])
def test_one_row_with_labels_cannot_be_judged_by_others(average, labels, options):
    y, p = np.array(labels, dtype=float), np.tile([0.3, 0.8], (len(labels), 1)) + np.arange(len(labels))[:, None] / 100
    with pytest.raises(ValueError, match=r"^optimize: proba and y must have at least two independent rows with labels"):
        mw.optimize(p, y, "f1", average=average, **options)
    if not options:  # the advice that is printed
        fitted = mw.optimize(p, y, "f1", average=average, strategy=mw.Strategy(confusion="labels", recalibrate=False))
        assert fitted.value == mw.metrics.FBeta().score(y, fitted.rule.predict(p), average=average)


def test_one_row_with_labels_is_enough_where_nothing_is_resampled():
    """Without a confidence, thresholds are searched on the rows at hand: no row has to be left out."""
    y, p = np.array([[0, 1], [np.nan, np.nan]]), np.array([[0.3, 0.8], [0.4, 0.6]])
    fitted = mw.optimize(p, y, "f1", average="micro", subject_to="recall >= 0.5", confidence=None)
    assert fitted.value == mw.metrics.FBeta().score(y, fitted.rule.predict(p), average="micro") == 1


@pytest.mark.parametrize("average", ["micro", "macro", "instance"])
def test_resamples_without_any_label_are_left_out(average):
    y = np.full((9, 2), np.nan)
    y[:2] = [[0, 1], [1, 0]]  # resamples that leave out both of these rows have none
    p = np.random.default_rng(0).random(y.shape)
    with pytest.warns(UserWarning, match="Too few labels"):
        solution = mw.optimize(p, y, "f1", average=average, subject_to="recall >= 0.5")
    assert solution.constraints[0].value >= 0.5


def test_dinkelbach_goes_on_until_all_outputs_have_converged():
    """The first output is at its best at once, for all of its rows are sure; the second takes several steps."""
    rng = np.random.default_rng(0)
    proba = np.column_stack([np.repeat([0.001, 0.999], 200), rng.beta(0.5, 8, 400)])
    y = (rng.random(proba.shape) < proba).astype(int)
    options = {"solver": "dinkelbach", "confusion": "expected", "recalibrate": False}
    both = mw.optimize(proba, y, "f1", average="macro", strategy=mw.Strategy(**options))
    alone = [mw.optimize(proba[:, m], y[:, m], "f1", strategy=mw.Strategy(**options)) for m in range(2)]
    assert len(alone[0].history) < len(alone[1].history)
    assert both.optimized_value == pytest.approx(np.mean([one.optimized_value for one in alone]), abs=1e-9)
    assert both.gap < 1e-8
