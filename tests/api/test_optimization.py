"""The front door: every bad input gets one sentence, priors and weights mean what they say, nothing is ever NaN."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

import metricwise as mw
import worlds
from profiles import examples

LABELS = {"confusion": "labels", "recalibrate": False}
RNG = np.random.default_rng(0)
PROBA = RNG.dirichlet(np.ones(3), size=12)
Y = np.arange(12) % 3
P = RNG.random(12)
B = np.arange(12) % 2
ML = RNG.random((12, 3))
YL = (np.arange(36).reshape(12, 3) // 2 % 2).astype(int)
LISTED = [RNG.dirichlet(np.ones(k), size=12) for k in (2, 3)]
Y2 = np.column_stack([B, Y])
ONES = np.ones(12)
F = mw.metrics.FractionalLinear

BAD = {
    # probabilities
    "proba none": ((None, B, "f1"), {}, "optimize: proba must be an array of probabilities, got None."),
    "proba scalar": ((0.3, B, "f1"), {}, "optimize: proba must be an array of probabilities, got 0.3."),
    "proba empty": (
        (np.empty((0, 3)), [], "kappa"),
        {},
        r"optimize: proba must have at least one row, got shape \(0, 3\)",
    ),
    "proba empty list": (([], [], "kappa"), {}, "optimize: proba must have at least one row"),
    "proba text": ((P.astype(str), B, "f1"), {}, "optimize: proba must be an array of numbers, got ndarray of <U"),
    "proba complex": (
        (P.astype(complex), B, "f1"),
        {},
        "optimize: proba must be an array of numbers, got ndarray of comp",
    ),
    "proba dict": (({"a": 1}, B, "f1"), {}, "optimize: proba must be an array of numbers, got dict."),
    "proba sparse": (
        (sp.csr_matrix(ML), YL[:, 0], "f1"),
        {},
        "optimize: y must be an indicator matrix",
    ),
    "proba masked": (
        (np.ma.array(P, mask=B > 0), B, "f1"),
        {},
        "optimize: proba must not have masked entries, because",
    ),
    "proba nan": (
        (np.where(B, np.nan, P), B, "f1"),
        {},
        "optimize: proba must be finite, got NaN or infinity in row 1",
    ),
    "proba none inside": (
        ([*P[:-1], None], B, "f1"),
        {},
        "optimize: proba must be finite, got NaN or infinity in row 11",
    ),
    "proba infinite": ((np.where(B, np.inf, P), B, "f1"), {}, "optimize: proba must be finite"),
    "proba negative": ((P - 1, B, "f1"), {}, "optimize: proba must be non-negative, got -.* in row 0"),
    "proba above 1": ((P + 1, B, "f1"), {}, "optimize: proba must be at most 1, got 1"),
    "proba sum": (
        (PROBA * 2, Y, "kappa"),
        {},
        "optimize: proba must sum to 1 over the classes .* got 2 in row 0; divide scores by",
    ),
    "proba 3-D": (
        (np.ones((12, 1, 2)) / 2, B, "f1"),
        {},
        r"optimize: proba must have shape \(N,\) or \(N, K\) if y is 1-D",
    ),
    "proba 4-D": ((np.ones((12, 1, 2, 2)), YL, "f1"), {}, "optimize: proba must have shape"),
    "proba 1-D": ((P, YL, "f1"), {}, "optimize: proba must be 2-D or 3-D if y is 2-D"),
    "proba one class": (
        (np.ones((12, 2, 1)), YL[:, :2], "accuracy"),
        {},
        "optimize: proba must have at least 2 classes",
    ),
    "proba list rows": (([LISTED[0], LISTED[1][:5]], Y2, "kappa"), {}, r"same number of rows, got \[12, 5\]"),
    "proba list length": (
        ([*LISTED, LISTED[0]], Y2, "kappa"),
        {},
        "optimize: y must have one column for each of the 3 outputs of proba",
    ),
    "proba list for one": (
        (LISTED, B, "kappa"),
        {},
        "optimize: proba must be an array of numbers, got a list of arrays",
    ),
    "proba columns": (
        (pd.DataFrame(PROBA, columns=["p", "q", "r"]), list("abc" * 4), "kappa"),
        {},
        "optimize: the columns of proba must be named like the classes",
    ),
    "proba twin columns": (
        (pd.DataFrame(PROBA, columns=list("aab")), list("abb" * 4), "kappa"),
        {},
        "optimize: the columns of proba must have distinct names",
    ),
    "y scalar": ((P, 3, "f1"), {}, r"optimize: y must have shape \(N,\) or \(N, M\), got \(\)"),
    "y text": ((P, "abc", "f1"), {}, r"optimize: y must have shape \(N,\) or \(N, M\)"),
    "y 3-D": ((P, np.zeros((12, 2, 2)), "f1"), {}, "optimize: y must have shape"),
    "y ragged": ((P, [[1], [1, 2]], "f1"), {}, "optimize: y must have shape .* got rows of unequal length"),
    "y rows": ((P, B[:5], "f1"), {}, "optimize: y must have as many rows as proba, 12, got 5"),
    "y (N, 1)": (
        (PROBA, Y[:, None], "kappa"),
        {},
        r"y must be 1-D for a single output, .* got y of shape .12, 1.; pass y.ravel..",
    ),
    "y columns": (
        (ML, YL[:, :2], "f1"),
        {},
        "optimize: y must have one column for each of the 3 outputs of proba, got 2",
    ),
    "y one class": ((PROBA, Y * 0, "kappa"), {}, "optimize: y must have at least two classes, got only 0."),
    "y one word": (
        (P, ["a"] * 12, "f1"),
        {"classes": ["a", "b"]},
        "optimize: y must have at least two classes, got only 'a'.",
    ),
    "y all missing": (
        (PROBA, [None] * 12, "kappa"),
        {},
        "optimize: y must have at least one observed label, got 12 miss",
    ),
    "y too many": (
        (PROBA, np.arange(12) % 4, "kappa"),
        {},
        "optimize: y has 4 distinct labels .* 3 classes; pass classes=",
    ),
    "y outside": (
        (PROBA, Y + 5, "kappa"),
        {"classes": [0, 1, 2]},
        r"optimize: y must hold only the classes \[0, 1, 2\], got 5",
    ),
    "y outside, output": (
        (ML, YL + np.array([0, 0, 1]), "f1"),
        {"classes": [0, 1]},
        r"optimize: output 2 of y must hold only the classes \[0, 1\], got 2",
    ),
    "no y": ((PROBA, None, "kappa"), {}, r"confusion='labels'\) needs y"),
    "classes short": (
        (PROBA, Y, "kappa"),
        {"classes": [0, 1]},
        "optimize: classes must have one label per column of proba, 3",
    ),
    "classes twice": ((PROBA, Y, "kappa"), {"classes": [0, 1, 1]}, "optimize: classes must be distinct"),
    "classes number": (
        (PROBA, Y, "kappa"),
        {"classes": 3},
        "optimize: classes must be a list of labels in column order",
    ),
    "classes text": (
        (PROBA, Y, "kappa"),
        {"classes": "abc"},
        "optimize: classes must be a list of labels in column order",
    ),
    "classes set": (
        (PROBA, Y, "kappa"),
        {"classes": {0, 1, 2}},
        "optimize: classes must be a list of labels in column order",
    ),
    "classes lists": (
        (LISTED, Y2, "kappa"),
        {"classes": [[0, 1]]},
        "optimize: classes must hold the labels of each of 2 outputs",
    ),
    "weight negative": (
        (PROBA, Y, "kappa"),
        {"sample_weight": -ONES},
        "optimize: sample_weight must be non-negative, got -1",
    ),
    "weight nan": ((PROBA, Y, "kappa"), {"sample_weight": ONES * np.nan}, "optimize: sample_weight must be finite"),
    "weight zero": ((PROBA, Y, "kappa"), {"sample_weight": ONES * 0}, "optimize: sample_weight must not be all zero"),
    "weight shape": (
        (PROBA, Y, "kappa"),
        {"sample_weight": ONES[:3]},
        r"optimize: sample_weight must have shape \(12,\)",
    ),
    "weight word": (
        (PROBA, Y, "kappa"),
        {"sample_weight": "balanced"},
        "optimize: sample_weight must be an array of numbers",
    ),
    "weight on gaps": (
        (PROBA, [np.nan, *Y[1:]], "kappa"),
        {"sample_weight": np.eye(12)[0]},
        "optimize: no observed label has a positive weight",
    ),
    "weight on one class": (
        (PROBA, Y, "kappa"),
        {"sample_weight": 1.0 * (Y == 0)},
        "optimize: sample_weight must be positive for rows of at least two classes",
    ),
    "output negative": ((ML, YL, "f1"), {"output_weight": [1, -1, 1]}, "optimize: output_weight must be non-negative"),
    "output shape": (
        (ML, YL, "f1"),
        {"output_weight": [1, 1]},
        r"optimize: output_weight must have shape \(3,\), one per out",
    ),
    "output zero": ((ML, YL, "f1"), {"output_weight": [0, 0, 0]}, "optimize: output_weight must not be all zero"),
    "prior sum": ((PROBA, Y, "kappa"), {"prior": [0.5, 0.5, 0.5]}, "optimize: prior must be non-negative and sum to 1"),
    "prior shape": (
        (PROBA, Y, "kappa"),
        {"prior": [0.5, 0.5]},
        "optimize: prior must have one share per class, 3 for output 0",
    ),
    "prior text": ((PROBA, Y, "kappa"), {"prior": "abc"}, "optimize: prior must be a list of class shares"),
    "prior words": ((PROBA, Y, "kappa"), {"prior": ["a", "b", "c"]}, "optimize: prior must hold numbers"),
    "prior empty": ((PROBA, Y, "kappa"), {"prior": []}, "optimize: prior must be a list of class shares"),
    "prior nan": ((P, B, "f1"), {"prior": np.nan}, "optimize: prior must be non-negative and sum to 1"),
    "prior rows": (
        (LISTED, Y2, "kappa"),
        {"prior": [[0.5, 0.5]], "average": "macro"},
        "optimize: prior must be given once, or for each of the 2 outputs",
    ),
    "metric none": ((P, B, None), {}, "metric: must be a name, a Metric, a scorer, a function"),
    "metric class": ((P, B, mw.metrics.FBeta), {}, "metric: must be a metric object, got its class"),
    "metric typo": ((P, B, "kapa"), {}, "metric: 'kapa' is not known; did you mean 'kappa'"),
    "metric of one class": ((PROBA, Y, "f1"), {}, "metric: 'f1' is about one class"),
    "metric label": (
        (P, B, mw.metrics.FBeta(pos_label="yes")),
        {},
        r"FBeta: pos_label must be one of the classes \[0, 1\], got 'yes'",
    ),
    "metric three arguments": ((P, B, lambda a, b, c: 1.0), {}, "metric: function needs a, b, c; a metric is"),
    "metric nan": (
        (P, B, lambda C: float("nan")),
        {},
        "from_function: the metric must return a finite number, got nan",
    ),
    "A shape": ((PROBA, Y, mw.metrics.Linear(np.eye(2))), {}, r"Linear: A must have shape \(K, K\) with K = 3"),
    "B zero": ((PROBA, Y, F(np.eye(3), np.eye(3))), {}, "FractionalLinear: the denominator <B, C> must be positive"),
    "B negative": (
        (PROBA, Y, F(np.eye(3), -np.ones((3, 3)))),
        {},
        "FractionalLinear: the denominator <B, C> must be positive",
    ),
    "average": (
        (ML, YL, "f1"),
        {"average": "weighted"},
        "average must be 'micro', 'macro', 'instance' or None, got 'weighted'",
    ),
    "average fixed": (
        (ML, YL, "f1_macro"),
        {"average": "micro"},
        "metric: for multilabel targets, 'f1_macro' fixes average='macro'",
    ),
    "strategy": (
        (P, B, "f1"),
        {"strategy": "labels"},
        "strategy must be a Strategy, such as .*, or None, got 'labels'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence(case):
    arguments, options, words = BAD[case]
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        mw.optimize(*arguments, **{"strategy": mw.Strategy(**LABELS)} | options)
    assert_sentence(caught.value)


def assert_sentence(error):
    """Who, a colon or "needs", and a sentence that ends; no NumPy scalars in it, no line breaks."""
    text = str(error)
    assert re.match(r"^[A-Za-z_][A-Za-z_.]*(: | needs )\S", text), text
    assert "np." not in text, text
    assert "\n" not in text, text
    assert text.rstrip()[-1] in ".?", text


@pytest.mark.parametrize("matrix", [np.ones((2, 3)), np.full((2, 2), np.nan), [["a", "b"], ["c", "d"]], 3.0])
def test_matrices_of_ones_own_are_checked(matrix):
    for build in (mw.metrics.Linear, lambda A: F(A, np.ones((2, 2))), lambda B: F(np.ones((2, 2)), B)):
        with pytest.raises(ValueError, match=r"(Linear|FractionalLinear): [AB] must") as caught:
            build(matrix)
        assert_sentence(caught.value)


def test_sentences_about_new_rows():
    rule = mw.optimize(PROBA, Y, "kappa", strategy=mw.Strategy(**LABELS)).rule
    for proba in (PROBA[:, :2], PROBA * 2, np.full((2, 3), np.nan), "abc", np.empty((0, 3)), P):
        with pytest.raises((ValueError, TypeError), match=r"WeightedRule.predict: proba ") as caught:
            rule.predict(proba)
        assert_sentence(caught.value)


# --------------------------------------------------------------------------------------- classes, priors, weights


def test_a_class_by_name_is_that_class():
    y = np.where(B == 1, "yes", "no")
    both = np.stack([1 - P, P], axis=1)
    by_name = mw.optimize(both, y, mw.metrics.FBeta(pos_label="no"), strategy=mw.Strategy(**LABELS))
    assert by_name.value == pytest.approx(sk.f1_score(y, by_name.rule.predict(P, pos_label="yes"), pos_label="no"))
    assert (
        by_name.value
        == mw.optimize(P, y, mw.metrics.FBeta(index=0), pos_label="yes", strategy=mw.Strategy(**LABELS)).value
    )
    assert (
        mw.optimize(P, y, mw.metrics.FBeta(pos_label="yes"), strategy=mw.Strategy(**LABELS)).value
        == mw.optimize(P, B, "f1", strategy=mw.Strategy(**LABELS)).value
    )


@pytest.mark.parametrize("k", [2, 3, 4])
def test_prior_is_reweighting_rows_and_shifting_probabilities(k):
    """Bayes' rule by hand: rows of class i weigh target_i / share_i, probabilities are multiplied alike.

    Without their labels, rows weigh by what that is in the mean: how much more frequent they are under the new priors.
    """
    rng = np.random.default_rng(k)
    for _ in range(10):
        proba = rng.dirichlet(np.ones(k), size=30)
        y = worlds.draw_codes(proba, rng)
        y[:k] = range(k)
        share, target = np.bincount(y) / len(y), rng.dirichlet(np.full(k, 5.0))
        shifted = proba * (target / share)
        shifted /= shifted.sum(axis=1, keepdims=True)
        ours = mw.optimize(proba, y, "quadratic_kappa", prior=target, strategy=mw.Strategy(**LABELS))
        by_hand = mw.optimize(
            shifted, y, "quadratic_kappa", sample_weight=(target / share)[y], strategy=mw.Strategy(**LABELS)
        )
        assert ours.value == pytest.approx(by_hand.value, abs=1e-9)
        expected = {"confusion": "expected", "recalibrate": False}
        ours = mw.optimize(proba, y, "quadratic_kappa", prior=target, strategy=mw.Strategy(**expected))
        frequent = (proba * (target / share)).sum(axis=1)
        by_hand = mw.optimize(shifted, y, "quadratic_kappa", sample_weight=frequent, strategy=mw.Strategy(**expected))
        assert ours.optimized_value == pytest.approx(by_hand.optimized_value, abs=1e-9)
        predicted = ours.rule.predict(proba)
        on_labels = mw.metrics.Kappa("quadratic").score(y, predicted, sample_weight=(target / share)[y])
        assert ours.value == pytest.approx(on_labels, abs=1e-9)


def test_prior_for_every_output():
    """Unequal outputs, a prior each: macro is each output alone with its own prior."""
    prior = [[0.3, 0.7], [0.2, 0.5, 0.3]]
    together = mw.optimize(LISTED, Y2, "kappa", average="macro", prior=prior, strategy=mw.Strategy(**LABELS))
    alone = [
        mw.optimize(LISTED[m], Y2[:, m], "kappa", prior=prior[m], strategy=mw.Strategy(solver="path", **LABELS))
        for m in (0, 1)
    ]
    assert together.value == pytest.approx(np.mean([solution.value for solution in alone]))


def test_prior_helps_under_the_shift_it_names():
    """Fitted where a third is positive, used where a twentieth is: knowing that beats not knowing it."""
    rng = np.random.default_rng(1)

    def sample(n, share):
        y = (rng.random(n) < share).astype(int)
        x = rng.normal(size=n) + 1.5 * y
        odds = 0.5 * np.exp(1.5 * x - 1.125)  # calibrated where a third is positive
        return odds / (1 + odds), y

    proba, y = sample(20_000, 1 / 3)
    new, truth = sample(100_000, 0.05)
    known = mw.optimize(proba, y, "f1", prior=0.05, strategy=mw.Strategy(**LABELS)).rule
    unknown = mw.optimize(proba, y, "f1", strategy=mw.Strategy(**LABELS)).rule
    best = mw.optimize(new, truth, "f1", strategy=mw.Strategy(**LABELS)).value
    assert sk.f1_score(truth, known.predict(new)) > sk.f1_score(truth, unknown.predict(new)) + 0.05
    assert sk.f1_score(truth, known.predict(new)) > best - 0.01


# ------------------------------------------------------------------------------------------------------- fuzzing

METRICS = [
    "accuracy", "hamming_accuracy", "balanced_accuracy", "ordinal", "recall", "f1", "jaccard", "precision", "micro_f1",
    "kappa", "linear_kappa", "quadratic_kappa", "polynomial", "g_mean", "mcc", "fowlkes_mallows", "f1_macro",
    "f1_micro", "f1_weighted", "f1_samples", "macro_f1", "roc_auc",
]  # fmt: skip
KINDS = ["binary", "two columns", "multiclass", "multilabel", "multioutput", "list"]


@st.composite
def anything(draw):
    """A problem of any kind, often degenerate: constant probabilities, single classes, gaps, few rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(KINDS))
    n, m, k = draw(st.integers(1, 12)), draw(st.integers(1, 3)), draw(st.integers(2, 4))
    decimals = draw(st.sampled_from([0, 1, 2, 12]))

    def simplex(k):
        return worlds.stepped(n, k, 10**decimals, rng)

    if kind == "binary":
        proba, y = rng.random(n).round(decimals), rng.integers(0, 2, size=n)
    elif kind == "two columns":
        proba, y = simplex(2), rng.integers(0, 2, size=n)
    elif kind == "multiclass":
        proba, y = simplex(k), rng.integers(0, k, size=n)
    elif kind == "multilabel":
        proba, y = rng.random((n, m)).round(decimals), rng.integers(0, 2, size=(n, m))
    elif kind == "multioutput":
        proba, y = np.stack([simplex(k) for _ in range(m)], axis=1), rng.integers(0, k, size=(n, m))
    else:
        sizes = rng.integers(2, 5, size=m)
        proba = [simplex(size) for size in sizes]
        y = np.column_stack([rng.integers(0, size, size=n) for size in sizes])
    if draw(st.booleans()):
        y = np.where(rng.random(y.shape) < 0.3, np.nan, y)
    if draw(st.booleans()):
        y = y * 0
    options = {
        "metric": draw(st.sampled_from(METRICS)),
        "average": draw(st.sampled_from([None, "micro", "macro", "instance"])),
        "sample_weight": rng.integers(0, 3, size=n).astype(float) if draw(st.booleans()) else None,
        "output_weight": rng.integers(0, 3, size=m).astype(float) if y.ndim == 2 and draw(st.booleans()) else None,
        "zero_division": draw(st.sampled_from([0.0, 1.0])),
        "strategy": mw.Strategy(
            solver=draw(st.sampled_from(["auto", "closed_form", "sweep", "path", "dinkelbach", "bisection"])),
            confusion=draw(st.sampled_from(["labels", "expected"])),
            recalibrate=draw(st.booleans()),
        ),
    }
    if kind in ("binary", "multilabel") and draw(st.booleans()):
        options["prior"] = round(rng.random(), 1)
    return proba, y, options


@examples(400)
@given(case=anything())
def test_never_nan_never_a_traceback(case):
    """Anything in: finite numbers and a rule that predicts and survives JSON, or one sentence on what is wrong."""
    proba, y, options = case
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="optimize: .* alone is highest", category=UserWarning)
        try:
            solution = mw.optimize(proba, y, **options)
        except (ValueError, TypeError) as error:
            assert_sentence(error)
            return
    for number in (solution.value, solution.baseline, solution.optimized_value, solution.upper_bound):
        assert number is None or np.isfinite(number)
    assert solution.gap is None or solution.gap >= 0
    assert np.isfinite(solution.confusion).all()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*proba is read as two rows", category=UserWarning)
        predicted = solution.rule.predict(proba)
        again = mw.load_rule(solution.rule.to_json()).predict(proba)
    assert predicted.shape == np.shape(y)
    assert solution.status
    assert np.array_equal(again, predicted)


def test_a_solution_predicts_as_its_rule_does():
    rng = np.random.default_rng(0)
    p, group = rng.random(300), rng.choice(["a", "b"], 300)
    y, cost = (rng.random(300) < p).astype(int), rng.random((300, 2))
    plain = mw.optimize(p, y, "f1")
    np.testing.assert_array_equal(plain.predict(p), plain.rule.predict(p))
    np.testing.assert_array_equal(plain.predict(p, sensitive_features=group), plain.rule.predict(p))
    mixed = mw.optimize(
        p,
        y,
        "f1",
        subject_to="recall <= 0.5",
        confidence=None,
        strategy=mw.Strategy(randomized=True, confusion="expected"),
    )
    np.testing.assert_array_equal(mixed.predict(p[7:], start=7), mixed.rule.predict(p)[7:])
    fair = mw.optimize(p, y, "f1", sensitive_features=group, subject_to="equal_opportunity <= 0.1", confidence=None)
    np.testing.assert_array_equal(
        fair.predict(p, sensitive_features=group), fair.rule.predict(p, sensitive_features=group)
    )
    with pytest.raises(
        ValueError, match=r"GroupedRule\.predict: the rule has a loss for each group, so it needs sensitive_features"
    ):
        fair.predict(p)
    by_row = mw.optimize(p, y, "cost", cost=cost)
    np.testing.assert_array_equal(by_row.predict(p, cost=cost), by_row.rule.predict(p, cost=cost))
    np.testing.assert_array_equal(by_row.rule.calibrated(p).shape, p.shape)
    with pytest.raises(ValueError, match=r"CostRule\.predict: cost must give the costs of decisions"):
        by_row.predict(p)
    with pytest.raises(
        ValueError, match=r"WeightedRule\.predict: cost must be left out, because this rule has one loss"
    ):
        plain.predict(p, cost=cost)


@pytest.mark.parametrize("kept", [1.0, 0.1])
def test_recalibrated_probabilities_undo_undersampling(kept):
    rng = np.random.default_rng(1)
    true = rng.beta(1, 8, 20_000)
    y = (rng.random(20_000) < true).astype(int)
    shown = true / (true + kept * (1 - true))  # what a model says that saw a share of the negative rows
    rule = mw.optimize(
        shown[:10_000], y[:10_000], "f1", strategy=mw.Strategy(recalibrate=True, confusion="labels")
    ).rule
    np.testing.assert_allclose(rule.calibrated(shown[10_000:]), true[10_000:], atol=0.03)
