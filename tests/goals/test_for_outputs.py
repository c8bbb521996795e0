"""A metric for each output: every output is decided as if it were all there is, and the value is the mean."""

import json
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as sk
from hypothesis import assume, given
from hypothesis import strategies as st

import metricwise as mw
import worlds
from laws.metric_records import RECORDS, exact_ratio, having, largest, make
from metricwise.data.sources.chunked import ChunkedSource
from metricwise.fitting.solving import Settings, fit
from metricwise.oracles.problem import FitStrategy
from metricwise.solvers import Outcome
from problems import read_problem
from profiles import examples

LABELS = {"confusion": "labels", "recalibrate": False}
EXPECTED = {"confusion": "expected", "recalibrate": False}
COUNTING = [
    {"strategy": mw.Strategy(confusion=confusion, recalibrate=recalibrate)}
    for confusion in ("labels", "expected", "blended")
    for recalibrate in (False, True)
]
RATIOS = having(form="ratio", vanishing=False)
LINEAR = having(form="linear", degenerate=False)


def drawn(seed, sizes, n=300, *, decimals=None):
    """Probabilities of outputs of so many classes, and labels that follow them, as a frame with names."""
    rng = np.random.default_rng(seed)
    proba = [rng.dirichlet(np.full(k, 0.7), n) for k in sizes]
    if decimals is not None:
        proba = [np.round(own, decimals) for own in proba]
        proba = [worlds.normalized(own) for own in proba]
    codes = [worlds.draw_codes(own, rng) for own in proba]
    return proba, pd.DataFrame(dict(zip("abcdefgh", codes, strict=False)))


def alone(proba, y, m, metric, **options):
    """The call for one of the outputs."""
    return mw.optimize(proba[m], y.iloc[:, m].to_numpy(), metric, **options)


# ------------------------------------------------------------------------------------------------ against brute force


def solve(problem, names, **options):
    """Of metrics of one class, that of class 1, which every output has."""
    y = problem.labels.reshape(problem.n_rows, -1)
    metrics = [make(name, k, c=1) for name, k in zip(names, problem.sizes, strict=True)]
    classes = [list(range(k)) for k in problem.sizes]
    return mw.optimize(problem.eta, y, metrics, sample_weight=problem.weight, classes=classes, **options)


@examples(150)
@given(problem=worlds.tiny(max_rows=10), data=st.data())
def test_labels_every_output_is_best_of_its_own_family(problem, data):
    names = [data.draw(st.sampled_from(RATIOS)) for _ in problem.sizes]
    weight = data.draw(st.lists(st.sampled_from([1.0, 2.0, 0.5]), min_size=len(names), max_size=len(names)))
    best, singles = [], worlds.blocks(problem, "macro")
    for one, name in zip(singles, names, strict=True):
        ratio, most = partial(exact_ratio, name), partial(largest, name)
        assume(not worlds.undecidable(one, ratio, "macro"))
        binary = one.sizes == [2]
        best.append(
            worlds.best_threshold(one, most, "macro") if binary else worlds.best_of_family(one, ratio, most, "macro")
        )
    solution = solve(problem, names, output_weight=weight, strategy=mw.Strategy(**LABELS))
    assert solution.value == pytest.approx(np.average(best, weights=weight), abs=1e-9)
    assert solution.upper_bound == pytest.approx(solution.value, abs=1e-12)
    assert solution.outcome is Outcome.OPTIMAL
    decided = solution.rule.predict(problem.eta).astype(int)
    counted = [
        worlds.value(one, decided[:, [m]], partial(RECORDS[name].of_counts, c=1))
        for m, (one, name) in enumerate(zip(singles, names, strict=True))
    ]
    assert solution.value == pytest.approx(np.average(counted, weights=weight), abs=1e-12)


@examples(60)
@given(problem=worlds.tiny(max_rows=5, max_classes=3, max_outputs=3), data=st.data())
def test_probabilities_no_rule_at_all_is_better_for_any_output(problem, data):
    names = [data.draw(st.sampled_from([*RATIOS, *LINEAR])) for _ in problem.sizes]
    alike = any(make(name, k, c=1).traits.by_class for name, k in zip(names, problem.sizes, strict=True))
    assume(problem.shows_every_class or not alike)
    best = [
        largest(name, worlds.tables(one, worlds.every_rule(one), "expected"))
        for one, name in zip(worlds.blocks(problem, "macro"), names, strict=True)
    ]
    solution = solve(problem, names, strategy=mw.Strategy(**EXPECTED))
    assert solution.optimized_value == pytest.approx(np.mean(best), abs=1e-9)
    assert np.mean(best) - 1e-9 <= solution.upper_bound <= np.mean(best) + 1e-9


# --------------------------------------------------------------------------------------------- against separate calls


MIXTURES = [
    ((5, 2, 3), ("quadratic_kappa", "f1", "g_mean")),
    ((3, 3, 2), ("macro_f1", "balanced_accuracy", "mcc")),
    ((2, 2, 2), ("f1", "accuracy", "g_mean")),
    ((4, 2, 4), ("min_recall", "kappa", "accuracy")),
    ((3, 2), (lambda C: float(np.sqrt(np.trace(C))), mw.metrics.FBeta(beta=2.0))),
    ((3, 3), ("micro_f1", "quadratic_kappa")),
]


@pytest.mark.parametrize("counting", COUNTING, ids=str)
@pytest.mark.parametrize(("sizes", "metrics"), MIXTURES)
def test_decisions_and_values_are_those_of_separate_calls(sizes, metrics, counting):
    for decimals in (None, 1):  # with one decimal, rows tie
        proba, y = drawn(len(sizes), sizes, decimals=decimals)
        solution = mw.optimize(proba, y, list(metrics), **counting)
        separate = [alone(proba, y, m, metric, **counting) for m, metric in enumerate(metrics)]
        decided = solution.rule.predict(proba)
        for m, one in enumerate(separate):
            np.testing.assert_array_equal(decided[:, m], one.rule.predict(proba[m]))
            np.testing.assert_allclose(solution.confusion[m, : sizes[m], : sizes[m]], one.confusion[0], atol=1e-12)
        for what in ("value", "baseline", "optimized_value"):
            mean = np.mean([getattr(one, what) for one in separate])
            assert getattr(solution, what) == pytest.approx(mean, abs=1e-12), what
        bounds = [one.upper_bound for one in separate]
        if None in bounds:
            assert solution.upper_bound is None
        else:
            assert solution.upper_bound == pytest.approx(np.mean(bounds), abs=1e-12)


def test_a_single_array_of_padded_outputs_is_cut_to_the_classes_of_each():
    proba, y = drawn(3, (5, 2, 3))
    padded = np.zeros((len(y), 3, 5))
    for m, own in enumerate(proba):
        padded[:, m, : own.shape[1]] = own
    metrics, classes = ["quadratic_kappa", "f1", "g_mean"], [list(range(5)), [0, 1], [0, 1, 2]]
    first, second = (
        mw.optimize(p, y, metrics, classes=classes, strategy=mw.Strategy(**LABELS)) for p in (padded, proba)
    )
    np.testing.assert_array_equal(first.rule.predict(padded), second.rule.predict(proba))
    assert first.value == second.value


def test_outputs_of_one_metric_are_solved_together_wherever_they_stand():
    proba, y = drawn(5, (3, 2, 3, 2, 3))
    metrics = ["quadratic_kappa", "f1", "g_mean", "f1", "quadratic_kappa"]
    solution = mw.optimize(proba, y, metrics, strategy=mw.Strategy(**LABELS))
    for m, metric in enumerate(metrics):
        own = alone(proba, y, m, metric, strategy=mw.Strategy(**LABELS))
        np.testing.assert_array_equal(solution.rule.predict(proba)[:, m], own.rule.predict(proba[m]))
    name = "quadratic_kappa (a, e), f1 (b, d), g_mean (c)"
    assert solution.rule.metadata.metric == name
    assert "f1 (b, d): Optimal over all thresholds." in solution.status
    np.testing.assert_array_equal(np.isnan(solution.threshold), [True, False, True, False, True])
    np.testing.assert_array_equal(np.isnan(solution.level), [False, True, True, True, False])


@pytest.mark.parametrize("counting", COUNTING, ids=str)
def test_weights_priors_missing_labels_and_classes_that_never_occur(counting):
    rng = np.random.default_rng(9)
    proba, y = drawn(9, (4, 2, 3))
    y = y.astype(float).mask(rng.random(y.shape) < 0.3)
    y = y.mask(y == 3)  # of the first output, a class without a label
    options = {"sample_weight": rng.integers(0, 3, len(y)).astype(float), **counting}
    prior = [np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.3, 0.7]), np.array([0.2, 0.2, 0.6])]
    classes, weight = [[0, 1, 2, 3], [0, 1], [0, 1, 2]], np.array([1.0, 3.0, 0.5])
    # A function of recalls alone does without priors, beside other metrics it has those of all.
    for priors, last in ((None, "min_recall"), (prior, "macro_f1")):
        metrics = ["balanced_accuracy", "f1", last]
        solution = mw.optimize(proba, y, metrics, classes=classes, output_weight=weight, prior=priors, **options)
        separate = [
            alone(proba, y, m, metric, classes=classes[m], prior=None if priors is None else priors[m], **options)
            for m, metric in enumerate(metrics)
        ]
        assert solution.value == pytest.approx(np.average([one.value for one in separate], weights=weight), abs=1e-12)
        mean = np.average([one.optimized_value for one in separate], weights=weight)
        assert solution.optimized_value == pytest.approx(mean, abs=1e-12)
        for m, one in enumerate(separate):
            np.testing.assert_array_equal(solution.rule.predict(proba)[:, m], one.rule.predict(proba[m]))


@pytest.mark.parametrize(
    "recipe", [FitStrategy("labels"), FitStrategy("expected", True), FitStrategy("blended", True)], ids=str
)
def test_rows_in_chunks_give_the_rule_of_rows_in_memory(recipe):
    proba, y = drawn(33, (4, 2, 3, 2))
    problem = read_problem(proba, y, ["quadratic_kappa", "f1", "g_mean", "accuracy"])
    cut = replace(problem, source=ChunkedSource.of(problem.source, 71))
    whole, chunked = (fit(one, recipe, Settings()) for one in (problem, cut))
    np.testing.assert_array_equal(chunked.rule.predict(proba), whole.rule.predict(proba))
    assert chunked.value == pytest.approx(whole.value, abs=1e-12)
    assert chunked.n_passes == whole.n_passes


def test_without_labels():
    proba, _ = drawn(13, (4, 2))
    solution = mw.optimize(proba, None, {0: "quadratic_kappa", 1: "f1"})
    separate = [mw.optimize(own, None, metric) for own, metric in zip(proba, ["quadratic_kappa", "f1"], strict=True)]
    assert solution.counted == "expected"
    assert solution.value == pytest.approx(np.mean([one.value for one in separate]), abs=1e-12)
    assert solution.upper_bound == pytest.approx(np.mean([one.upper_bound for one in separate]), abs=1e-12)
    assert solution.rule.metadata.metric == "quadratic_kappa (output 0), f1 (output 1)"


# --------------------------------------------------------------------------------------------------------- solvers


@pytest.mark.parametrize(
    ("solver", "sizes", "metrics"),
    [
        ("closed_form", (3, 2), ("accuracy", "balanced_accuracy")),
        ("path", (3, 2), ("quadratic_kappa", "f1")),
        ("dinkelbach", (3, 2), ("quadratic_kappa", "accuracy")),
        ("bisection", (3, 2), ("micro_f1", "f1")),
        ("sweep", (2, 2), ("g_mean", "f1")),
        ("frank_wolfe", (3, 2), ("g_mean", "h_mean")),
        ("ascent", (3, 2), ("macro_f1", "quadratic_kappa")),
    ],
)
def test_a_solver_by_name_serves_every_output(solver, sizes, metrics):
    proba, y = drawn(14, sizes)
    solution = mw.optimize(proba, y, list(metrics), strategy=mw.Strategy(solver=solver, **EXPECTED))
    separate = [
        alone(proba, y, m, metric, strategy=mw.Strategy(solver=solver, **EXPECTED)) for m, metric in enumerate(metrics)
    ]
    assert solution.value == pytest.approx(np.mean([one.value for one in separate]), abs=1e-12)
    for m, one in enumerate(separate):
        np.testing.assert_array_equal(solution.rule.predict(proba)[:, m], one.rule.predict(proba[m]))


def test_ratios_with_different_values_at_zero_division_keep_them():
    """Both outputs never predict class 1 with this loss of rows: the 0/0 of each is its own."""
    proba, y = np.full((4, 2), 0.2), np.zeros((4, 2), dtype=int)
    y[0] = 1
    kind = mw.metrics.Precision
    with pytest.warns(UserWarning, match="Precision of"):
        solution = mw.optimize(
            proba, y, [kind(zero_division=1.0), kind(zero_division=0.0)], strategy=mw.Strategy(solver="path", **LABELS)
        )
    assert solution.value == pytest.approx((1.0 + 0.25) / 2)


@pytest.mark.parametrize(
    ("solver", "metrics", "words"),
    [
        ("path", ["f1", "g_mean"], r"Path needs a linear or .* metric\. g_mean \(b\) is concave: use .*solver='auto'"),
        ("closed_form", ["accuracy", "f1"], r"ClosedForm needs a linear metric\. f1 \(b\) is fractional-linear"),
        ("sweep", ["f1", "quadratic_kappa"], r"Sweep needs binary outputs, got 3 classes for quadratic_kappa \(b\)"),
        (mw.solvers.FrankWolfe(), ["f1", "g_mean"], r"FrankWolfe needs a concave .* f1 \(a\) is fractional-linear"),
    ],
)
def test_a_solver_refuses_an_output_that_it_does_not_serve(solver, metrics, words):
    proba, y = drawn(15, (2, 2) if metrics[-1] != "quadratic_kappa" else (2, 3))
    with pytest.raises(ValueError, match=words):
        mw.optimize(proba, y, metrics, strategy=mw.Strategy(solver=solver, **EXPECTED))


def test_a_mixture_of_one_output_makes_a_mixture_of_all():
    proba, y = drawn(16, (3, 3, 2), n=30)
    metrics = ["quadratic_kappa", "min_recall", "f1"]
    options = {"random_state": 5, "strategy": mw.Strategy(randomized=True, **EXPECTED)}
    solution = mw.optimize(proba, y, metrics, **options)
    separate = [alone(proba, y, m, metric, **options) for m, metric in enumerate(metrics)]
    assert [isinstance(one.rule, mw.MixtureRule) for one in separate] == [False, True, False]
    assert isinstance(solution.rule, mw.MixtureRule)
    assert solution.rule.seed == 5
    distribution = solution.rule.distribution(proba)
    np.testing.assert_allclose(distribution[:, 1], separate[1].rule.distribution(proba[1]), atol=1e-12)
    for m in (0, 2):
        codes = separate[m].rule.predict(proba[m]).astype(int)
        np.testing.assert_array_equal(distribution[:, m], np.eye(3)[codes])
    for what in ("value", "optimized_value", "upper_bound"):
        assert getattr(solution, what) == pytest.approx(np.mean([getattr(one, what) for one in separate]), abs=1e-12)
    others = [separate[0].optimized_value, separate[1].alternative, separate[2].optimized_value]
    assert solution.alternative == pytest.approx(np.mean(others), abs=1e-12)
    assert mw.MixtureRule.from_json(solution.rule.to_json()) == solution.rule


# --------------------------------------------------------------------------------------------- outputs left to argmax


def test_outputs_that_keep_argmax_count_as_they_are():
    proba, y = drawn(17, (3, 2, 2, 3))
    y["b"] = 1
    y = y.astype(float)
    y["d"] = np.nan
    classes = [[0, 1, 2], [0, 1], [0, 1], [0, 1, 2]]
    solution = mw.optimize(
        proba, y, ["quadratic_kappa", "accuracy", "f1", "g_mean"], classes=classes, strategy=mw.Strategy(**LABELS)
    )
    kept = sk.accuracy_score(y["b"], proba[1].argmax(axis=1))
    best = [
        alone(proba, y, m, metric, strategy=mw.Strategy(**LABELS)).value
        for m, metric in ((0, "quadratic_kappa"), (2, "f1"))
    ]
    assert solution.value == pytest.approx(np.mean([*best, kept]), abs=1e-12)
    decided = solution.rule.predict(proba)
    for m in (1, 3):
        np.testing.assert_array_equal(decided[:, m], proba[m].argmax(axis=1))
    assert "use argmax: 1, 3." in solution.status
    assert solution.upper_bound is None


def test_an_output_of_weight_zero_does_not_count():
    proba, y = drawn(18, (3, 2))
    solution = mw.optimize(
        proba, y, {"a": "quadratic_kappa", "b": "g_mean"}, output_weight=[1, 0], strategy=mw.Strategy(**LABELS)
    )
    assert solution.value == pytest.approx(
        alone(proba, y, 0, "quadratic_kappa", strategy=mw.Strategy(**LABELS)).value, abs=1e-12
    )
    np.testing.assert_array_equal(solution.rule.predict(proba)[:, 1], proba[1].argmax(axis=1))


def test_outputs_of_one_class_each_keep_argmax_altogether():
    proba, y = drawn(19, (3, 2))
    y[:] = 0
    metrics = ["accuracy", mw.metrics.FBeta(zero_division=1.0)]
    solution = mw.optimize(proba, y, metrics, classes=[[0, 1, 2], [0, 1]], strategy=mw.Strategy(**LABELS))
    plain = np.column_stack([own.argmax(axis=1) for own in proba])
    np.testing.assert_array_equal(solution.rule.predict(proba), plain)
    expected = [sk.accuracy_score(y["a"], plain[:, 0]), sk.f1_score(y["b"], plain[:, 1], zero_division=1.0)]
    assert solution.value == solution.baseline == pytest.approx(np.mean(expected), abs=1e-12)


# --------------------------------------------------------------------------------------------------- what is accepted


def by_scikit_learn(y, h):
    return np.mean(
        [
            sk.cohen_kappa_score(y["grade"], h[:, 0], weights="quadratic"),
            sk.f1_score(y["spam"], h[:, 1]),
            sk.f1_score(y["topic"], h[:, 2], average="macro"),
        ]
    )


def three_outputs(n=300):
    proba, y = drawn(21, (4, 2, 3), n=n)
    return proba, y.set_axis(["grade", "spam", "topic"], axis=1)


@pytest.mark.parametrize(
    "metric",
    [
        {"spam": "f1", "topic": "f1_macro", "grade": "quadratic_kappa"},
        ["qwk", sk.f1_score, partial(sk.f1_score, average="macro")],
        (mw.metrics.Kappa(weights="quadratic"), sk.make_scorer(sk.f1_score), "macro_f1"),
        {"grade": mw.make_scorer("qwk"), "spam": mw.metrics.FBeta(pos_label=1), "topic": "f1_macro"},
    ],
    ids=["names", "functions", "objects", "scorers"],
)
def test_every_entry_may_be_what_a_metric_may_be(metric):
    proba, y = three_outputs()
    solution = mw.optimize(proba, y, metric, average="macro", strategy=mw.Strategy(**LABELS))
    assert solution.value == pytest.approx(by_scikit_learn(y, solution.rule.predict(proba)), abs=1e-12)
    plain = np.column_stack([own.argmax(axis=1) for own in proba])
    assert solution.baseline == pytest.approx(by_scikit_learn(y, plain), abs=1e-12)


def test_outputs_go_by_the_columns_of_y_of_probabilities_or_by_position():
    proba, y = drawn(22, (2, 2))
    table = pd.DataFrame({"b": proba[1][:, 1], "a": proba[0][:, 1]})
    given = {"b": "accuracy", "a": "f1"}
    by_y = mw.optimize(table, y, given, strategy=mw.Strategy(**LABELS))
    by_proba = mw.optimize(table[["a", "b"]], y.to_numpy(), given, strategy=mw.Strategy(**LABELS))
    by_place = mw.optimize(
        table[["a", "b"]].to_numpy(), y.to_numpy(), {1: "accuracy", 0: "f1"}, strategy=mw.Strategy(**LABELS)
    )
    in_order = mw.optimize(
        table[["a", "b"]].to_numpy(), y.to_numpy(), ["f1", "accuracy"], strategy=mw.Strategy(**LABELS)
    )
    assert by_y.value == by_proba.value == by_place.value == in_order.value
    assert by_y.rule.metadata.metric == by_proba.rule.metadata.metric == "f1 (a), accuracy (b)"
    assert by_place.rule.metadata.metric == "f1 (output 0), accuracy (output 1)"
    numbered = mw.optimize(
        table[["a", "b"]].to_numpy(),
        y.set_axis([7, 8], axis=1),
        {8: "accuracy", "7": "f1"},
        strategy=mw.Strategy(**LABELS),
    )
    assert numbered.value == by_y.value


def test_binary_outputs_read_names_as_if_alone():
    """On multilabel "accuracy" is that of whole rows; of one output it is what it says."""
    proba, y = drawn(23, (2, 2))
    solution = mw.optimize(proba, y, ["accuracy", "macro_f1"], strategy=mw.Strategy(**LABELS))
    decided = solution.rule.predict(proba)
    expected = [sk.accuracy_score(y["a"], decided[:, 0]), sk.f1_score(y["b"], decided[:, 1], average="macro")]
    assert solution.value == pytest.approx(np.mean(expected), abs=1e-12)


def test_the_positive_class_is_for_those_that_want_one():
    proba, y = three_outputs()
    words = y.assign(spam=np.array(["ham", "spam"])[y["spam"]])
    metrics = {"grade": "qwk", "spam": "f1", "topic": "f1"}
    classes = [[0, 1, 2, 3], ["spam", "ham"], [0, 1, 2]]
    flipped = [proba[0], proba[1][:, ::-1], proba[2]]
    solution = mw.optimize(
        flipped, words, metrics, classes=classes, pos_label=[None, "spam", 2], strategy=mw.Strategy(**LABELS)
    )
    decided = solution.rule.predict(flipped)
    expected = [
        sk.cohen_kappa_score(y["grade"], decided[:, 0].astype(int), weights="quadratic"),
        sk.f1_score(words["spam"], decided[:, 1], pos_label="spam"),
        sk.f1_score(y["topic"] == 2, decided[:, 2].astype(int) == 2),
    ]
    assert solution.value == pytest.approx(np.mean(expected), abs=1e-12)
    named = {"grade": "qwk", "spam": "f1", "topic": mw.metrics.FBeta(pos_label=2)}
    again = mw.optimize(flipped, words, named, classes=classes, pos_label="spam", strategy=mw.Strategy(**LABELS))
    assert again.value == solution.value


def test_every_output_has_the_order_of_its_own_column():
    proba, y = drawn(24, (3, 3))
    scales = ["low", "mid", "high"], ["cold", "warm", "hot"]
    kinds = [pd.CategoricalDtype(scale, ordered=True) for scale in scales]
    words = pd.DataFrame(
        {name: pd.Categorical.from_codes(y[name], dtype=kind) for name, kind in zip(y, kinds, strict=True)}
    )
    frames = [pd.DataFrame(own, columns=scale) for own, scale in zip(proba, scales, strict=True)]
    solution = mw.optimize(frames, words, {"a": "quadratic_kappa", "b": "ordinal"}, strategy=mw.Strategy(**LABELS))
    plain = mw.optimize(proba, y, {"a": "quadratic_kappa", "b": "ordinal"}, strategy=mw.Strategy(**LABELS))
    assert solution.value == pytest.approx(plain.value, abs=1e-12)
    with pytest.raises(ValueError, match=r"Kappa.*\(output 0\)"):
        mw.optimize(proba, words.astype(str), {"a": "quadratic_kappa", "b": "accuracy"}, strategy=mw.Strategy(**LABELS))


def test_the_value_at_0_by_0_is_that_of_each_metric():
    proba, y = np.full((4, 2), 0.2), np.zeros((4, 2), dtype=int)
    y[0] = 1
    one = mw.metrics.Precision(zero_division=1.0)
    with pytest.warns(UserWarning, match=r"precision \(output 0, output 1\)"):
        solution = mw.optimize(proba, y, [one, one], strategy=mw.Strategy(**LABELS))
    assert solution.value == pytest.approx(1.0)
    with pytest.warns(UserWarning, match=r"optimize: precision \(output 0\), precision \(output 1\): Precision of"):
        solution = mw.optimize(proba, y, [one, "precision"], strategy=mw.Strategy(**LABELS))
    assert solution.value == pytest.approx((1.0 + 0.25) / 2)


def test_a_degenerate_aim_of_one_output_is_warned_of_by_name():
    proba, y = three_outputs()
    with pytest.warns(UserWarning, match=r"optimize: recall \(spam\): Recall of .* alone"):
        mw.optimize(proba, y, {"grade": "qwk", "spam": "recall", "topic": "accuracy"}, strategy=mw.Strategy(**LABELS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mw.optimize(proba, y, {"grade": "qwk", "spam": "f1", "topic": "accuracy"}, strategy=mw.Strategy(**LABELS))


def test_a_function_of_whole_rows_binds_all_outputs_to_labels():
    def hits(y_true, y_pred):
        return np.mean(y_true == y_pred)

    proba, y = drawn(25, (3, 2))
    solution = mw.optimize(proba, y, {"a": "quadratic_kappa", "b": hits}, strategy=mw.Strategy(recalibrate=False))
    assert solution.rule.metadata.recipe in ("labels", "argmax")
    with pytest.raises(ValueError, match=r"hits takes no sample_weight.*confusion='expected'"):
        mw.optimize(proba, y, {"a": "quadratic_kappa", "b": hits}, strategy=mw.Strategy(**EXPECTED))
    with pytest.raises(ValueError, match=r"optimize: hits takes no sample_weight.*fractions"):
        mw.optimize(
            proba, y, ["quadratic_kappa", hits], sample_weight=np.full(len(y), 0.5), strategy=mw.Strategy(**LABELS)
        )


def test_recorded_metrics_are_averaged_over_outputs_as_ever():
    proba, y = drawn(26, (2, 2))
    solution = mw.optimize(proba, y, ["f1", "g_mean"], record=["f1", "f1_micro"], strategy=mw.Strategy(**LABELS))
    decided = solution.rule.predict(proba)
    assert solution.recorded["f1"].value == pytest.approx(sk.f1_score(y, decided, average="macro"), abs=1e-12)
    assert solution.recorded["f1_micro"].value == pytest.approx(sk.f1_score(y, decided, average="micro"), abs=1e-12)


def test_the_recipe_is_chosen_for_all_outputs_together():
    rng = np.random.default_rng(27)
    proba, y = drawn(27, (4, 2), n=1500)
    skewed = [own * rng.dirichlet(np.full(own.shape[1], 2.0)) for own in proba]
    skewed = [own / own.sum(axis=1, keepdims=True) for own in skewed]
    solution = mw.optimize(skewed, y, {"a": "quadratic_kappa", "b": "f1"}, record=["accuracy"])
    assert solution.gain.estimate > 0
    assert len(solution.candidates) == 1
    assert solution.value > solution.baseline
    decided = solution.rule.predict(skewed)
    expected = [sk.cohen_kappa_score(y["a"], decided[:, 0], weights="quadratic"), sk.f1_score(y["b"], decided[:, 1])]
    assert solution.value == pytest.approx(np.mean(expected), abs=1e-12)


def test_a_rule_knows_what_it_is_for_and_goes_through_json():
    proba, y = three_outputs()
    solution = mw.optimize(
        proba, y, {"grade": "qwk", "spam": "f1", "topic": "f1_macro"}, strategy=mw.Strategy(**LABELS)
    )
    document = json.loads(solution.rule.to_json())
    assert document["facts"]["metric"] == "qwk (grade), f1 (spam), f1_macro (topic)"
    assert "qwk (grade), f1 (spam), f1_macro (topic)" in solution.rule.describe()
    assert mw.WeightedRule.from_json(solution.rule.to_json()) == solution.rule


def test_many_outputs_of_one_metric_are_counted_in_its_name():
    proba, y = drawn(28, (2,) * 8)
    solution = mw.optimize(
        np.stack([own[:, 1] for own in proba], axis=1), y, ["f1"] * 7 + ["g_mean"], strategy=mw.Strategy(**LABELS)
    )
    assert solution.rule.metadata.metric == "f1 (a, b, c, d, e and 2 more), g_mean (h)"


def test_regret_takes_a_metric_for_each_output():
    proba, y = three_outputs(100)
    rule = mw.optimize(proba, y, "accuracy", average="macro", strategy=mw.Strategy(**LABELS)).rule
    metrics = {"grade": "qwk", "spam": "f1", "topic": "g_mean"}
    found = mw.theory.regret(rule, proba, proba, metrics)
    best = mw.optimize(proba, None, list(metrics.values()), strategy=mw.Strategy(randomized=True))
    assert found.best == pytest.approx(best.value, abs=1e-9)
    assert found.regret >= 0


# ---------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("metric", "options", "words"),
    [
        ({"grade": "qwk", "spam": "f1"}, {}, r"optimize: metric as a dict .* none for \['topic'\].*output_weight to 0"),
        (
            {"grade": "qwk", "spm": "f1", "topic": "qwk"},
            {},
            r"\['grade', 'spam', 'topic'\], got 'spm'. Did you mean 'spam'",
        ),
        ({"grade": "qwk", "x": "f1", "topic": "qwk"}, {}, r"got 'x'\.$"),
        (["qwk", "f1"], {}, r"metric as a list must hold one metric for each of the 3 outputs, got 2: \['qwk', 'f1'\]"),
        ([], {}, r"must hold one metric for each of the 3 outputs, got 0"),
        (["qwk", "f1", "f2_macr"], {}, r"'f2_macr' is not known; did you mean .* \(topic\)"),
        (["qwk", "f1", "f1"], {}, r"'f1' is about one class, .* \(topic\)"),
        (["qwk", "f1", "roc_auc"], {}, r"'roc_auc' is not a function .* \(topic\)"),
        (["qwk", "f1", "f1_samples"], {}, r"'f1_samples' is for multilabel targets.* \(topic\)"),
        (["qwk", "f1", mw.make_scorer("qwk", average="micro")], {}, r"fixes average='micro'.* \(topic\)"),
        (["qwk", "f1", "qwk"], {"average": "micro"}, r"average must be 'macro' or None .* got 'micro'"),
        (["qwk", "f1", "qwk"], {"average": "instance"}, r"average must be 'macro' or None .* got 'instance'"),
        (
            ["qwk", "f1", "qwk"],
            {"pos_label": ["x", 1]},
            r"pos_label must be one label, or a list with one for each of the 3",
        ),
        (
            ["qwk", "accuracy", "qwk"],
            {"pos_label": 1},
            r"pos_label is only for metrics of one class.* none of the metrics",
        ),
        (["qwk", "f1", "qwk"], {"pos_label": "spam"}, r"'spam'.*\(output 1\)"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(metric, options, words):
    proba, y = three_outputs(40)
    with pytest.raises(ValueError, match=words):
        mw.optimize(proba, y, metric, **options)


@pytest.mark.parametrize("entry", [["f1", "f1"], {"a": "f1"}, None, 3])
def test_an_entry_that_is_no_metric_is_refused(entry):
    proba, y = three_outputs(40)
    with pytest.raises(TypeError, match=r"metric: must be a name, .* \(topic\)"):
        mw.optimize(proba, y, ["qwk", "f1", entry])


@pytest.mark.parametrize("name", ["f1_micro", "f1_macro", "recall_weighted", "f2_samples"])
def test_names_of_averages_over_outputs_are_refused_on_multilabel(name):
    proba, y = drawn(29, (2, 2))
    with pytest.raises(ValueError, match=rf"for multilabel targets, '{name}' is an average over outputs.*\(b\)"):
        mw.optimize(proba, y, {"a": "accuracy", "b": name})


@pytest.mark.parametrize("metric", [["f1"], {"a": "f1"}, ["f1", "f1"]])
def test_one_output_has_one_metric(metric):
    proba, y = drawn(30, (2,))
    with pytest.raises(ValueError, match="optimize: metric must be a single metric if there is one output, got"):
        mw.optimize(proba[0], y["a"], metric)
    with pytest.raises(ValueError, match="optimize: metric must be a single metric if there is one output, got"):
        mw.optimize(proba[0], None, metric)


def test_a_column_of_one_output_takes_a_list_of_one():
    proba, y = drawn(31, (2,))
    solution = mw.optimize(proba, y, {"a": "f1"}, strategy=mw.Strategy(**LABELS))
    assert solution.value == alone(proba, y, 0, "f1", strategy=mw.Strategy(**LABELS)).value


def test_outputs_without_names_go_by_position():
    proba, y = drawn(32, (3, 2))
    with pytest.raises(
        ValueError, match="keys, 0 to 1, because the outputs have no distinct names, got 'a'; pass y as a data"
    ):
        mw.optimize(proba, y.to_numpy(), {"a": "qwk", "b": "f1"})
    with pytest.raises(ValueError, match="name each output once, got 1 twice"):
        mw.optimize(proba, y.to_numpy(), {0: "qwk", 1: "f1", "1": "f1"})
