"""Functions of labels and scikit-learn's scorers as metrics: values, recognition, and what is refused."""

import functools
import pickle
import warnings

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import metricwise as mw
import worlds
from metricwise import metrics
from metricwise.goals.probing import metric_of_values
from metricwise.metrics import resolve, scorer_names
from metricwise.metrics.functions import FromLabels, whole_counts, with_caches
from metricwise.metrics.user_functions import from_callable
from profiles import diagonal, examples, first
from sklearn_versions import needs_value_of_undefined_kappa

KINDS = ["binary", "multiclass", "multilabel", "multioutput"]
FIXED = {"confusion": "labels", "recalibrate": False}


def partial(function, **parameters):
    return functools.partial(function, **parameters)


# Functions that are metrics of ours, as they are called, for each kind of target that scikit-learn takes them for.
ONE_OUTPUT = [
    partial(sk.accuracy_score),
    partial(sk.zero_one_loss),
    partial(sk.hamming_loss),
    partial(sk.balanced_accuracy_score),
    partial(sk.balanced_accuracy_score, adjusted=True),
    partial(sk.cohen_kappa_score),
    partial(sk.cohen_kappa_score, weights="linear"),
    partial(sk.cohen_kappa_score, weights="quadratic"),
    partial(sk.cohen_kappa_score, weights="quadratic", labels=["b", "c", "a"]),
    partial(sk.matthews_corrcoef),
]
AVERAGED = [
    partial(function, average=average, **options)
    for function, options in [
        (sk.f1_score, {}),
        (sk.fbeta_score, {"beta": 2}),
        (sk.fbeta_score, {"beta": 0.3}),
        (sk.precision_score, {}),
        (sk.recall_score, {}),
        (sk.jaccard_score, {}),
    ]
    for average in ("micro", "macro", "weighted")
]
SOME = [
    partial(function, labels=labels, zero_division=zero)
    for function in AVERAGED
    for labels in (["a", "c"], ["b"])
    for zero in (0.0, 1.0)
]
POSITIVE = [
    partial(function, **label, **options)
    for function, options in [
        (sk.f1_score, {}),
        (sk.fbeta_score, {"beta": 2}),
        (sk.precision_score, {"zero_division": 1.0}),
        (sk.recall_score, {}),
        (sk.jaccard_score, {}),
    ]
    for label in ({}, {"pos_label": 0}, {"pos_label": 1})
]
OVER_OUTPUTS = [
    *AVERAGED,
    *(partial(f.func, **{**f.keywords, "average": "samples", "zero_division": 1.0}) for f in AVERAGED[::3]),
]


def draw(seed, shape, labels):
    rng = np.random.default_rng(seed)
    y, h = (np.array(labels)[rng.integers(0, len(labels), size=shape)] for _ in range(2))
    return y, np.where(rng.random(shape) < 0.5, y, h), rng.integers(1, 9, size=len(y)) / 4


def words(function):
    return function.func.__name__ + "".join(f"-{value}" for value in function.keywords.values())


def agree(function, y, h, weight, **classes):
    expected = function(y, h, sample_weight=weight)
    expected = -expected if function.func in (sk.zero_one_loss, sk.hamming_loss) else expected  # greater is better
    assert mw.make_scorer(function, **classes)._score_func(y, h, sample_weight=weight) == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.parametrize("function", [*ONE_OUTPUT, *AVERAGED, *SOME], ids=words)
def test_functions_of_several_classes_have_their_values(function):
    for seed in range(5):
        y, h, weight = draw(seed, 40, ["a", "b", "c"])
        known = "classes" if "labels" in function.keywords else "order"
        agree(function, y, h, weight, **{known: ["a", "b", "c"]})
    assert not isinstance(resolve(function, "multiclass").metric, FromLabels)


@pytest.mark.parametrize("function", [*POSITIVE, *ONE_OUTPUT[:-3], *AVERAGED], ids=words)
def test_functions_of_two_classes_have_their_values(function):
    for seed in range(5):
        agree(function, *draw(seed, 30, [0, 1]))
    assert not isinstance(resolve(function, "binary").metric, FromLabels)


@pytest.mark.parametrize("function", [*OVER_OUTPUTS, partial(sk.hamming_loss)], ids=words)
def test_functions_of_many_labels_have_their_values(function):
    for seed in range(5):
        agree(function, *draw(seed, (30, 4), [0, 1]))
    assert not isinstance(resolve(function, "multilabel").metric, FromLabels)


def test_what_scikit_learn_averages_over_no_class_of_its_own_is_asked_as_it_is():
    odd = [
        partial(sk.f1_score, average="macro", zero_division=np.nan),
        partial(sk.cohen_kappa_score, labels=["a", "b"]),
    ]
    for function in odd:
        assert isinstance(resolve(function, "multiclass").metric, FromLabels)
        agree(function, *draw(0, 60, ["a", "b", "c"]))


@needs_value_of_undefined_kappa
def test_kappa_with_a_value_of_its_own_where_it_is_undefined_is_asked_as_it_is():
    function = partial(sk.cohen_kappa_score, replace_undefined_by=-1.0)
    assert isinstance(resolve(function, "multiclass").metric, FromLabels)
    agree(function, *draw(0, 60, ["a", "b", "c"]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", scorer_names())
def test_a_scorer_object_is_what_its_name_is(name, kind):
    try:
        expected = resolve(name, kind)
    except ValueError:
        with pytest.raises(ValueError, match=r"use|set average"):
            resolve(sk.get_scorer(name), kind)
        return
    found = resolve(sk.get_scorer(name), kind)
    assert found.metric == expected.metric
    assert (found.average, found.support_weighted, found.fixed) == (
        expected.average,
        expected.support_weighted,
        expected.fixed,
    )


def test_a_scorer_of_ours_may_be_given_as_a_metric():
    found = resolve(mw.make_scorer("f1_macro"), "multiclass")
    assert found.metric == metrics.ClassAverage(metrics.FBeta())
    assert resolve(mw.make_scorer(metrics.Kappa(), average="macro"), "multioutput").average == "macro"


def test_a_partial_of_a_partial_of_a_scorer_is_looked_into():
    inner = partial(partial(sk.fbeta_score, beta=1), average="macro")
    assert resolve(partial(inner, beta=3), "multiclass").metric == metrics.ClassAverage(metrics.FBeta(3))


@pytest.mark.parametrize("function", [sk.f1_score, sk.zero_one_loss, partial(sk.f1_score, average="macro")])
def test_a_loss_is_what_is_to_be_small(function):
    scorer = sk.make_scorer(function, greater_is_better=False)
    y, h, weight = draw(1, 50, [0, 1])
    metric = resolve(scorer, "binary").metric
    assert metric.score(y, h, sample_weight=weight) == pytest.approx(-function(y, h, sample_weight=weight), abs=1e-12)
    plain = FromLabels(lambda y, p, sample_weight: function(y, p, sample_weight=sample_weight), sign=-1)
    C = np.array([[0.4, 0.2], [0.1, 0.3]])
    bound = metric.bind(C.sum(axis=1))
    assert bound.value(C) == pytest.approx(plain.value(C), abs=1e-12)
    move = np.array([[1.0, -1.0], [1.0, -1.0]])
    slope, numerical = bound.gradient(C), plain.gradient(C)
    np.testing.assert_allclose(np.sum(slope * move, axis=1), np.sum(numerical * move, axis=1), atol=1e-6)
    assert bound.range[0] <= bound.value(C) <= bound.range[1]


# --------------------------------------------------------------------------------------------------- any function


def mean_f1(y_true, y_pred, sample_weight=None):
    """What nobody has given a name: the mean of F1 and accuracy."""
    return (
        sk.f1_score(y_true, y_pred, average="macro", sample_weight=sample_weight)
        + sk.accuracy_score(y_true, y_pred, sample_weight=sample_weight)
    ) / 2


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"], [-1.0, 0.0, 7.0], [True, False], ["a", "b", "c", "d"]])
@pytest.mark.parametrize("weighted", [True, False])
def test_any_function_of_labels_has_its_value(labels, weighted):
    function = mean_f1 if weighted else lambda y_true, y_pred: mean_f1(y_true, y_pred)
    for seed in range(3):
        y, h, weight = draw(seed, 40, sorted(labels))
        weight = weight if weighted else np.rint(4 * weight)
        metric = resolve(function, "multiclass").metric
        assert metric.traits.needs_integer_counts is not weighted
        rows = np.arange(40) if weighted else np.repeat(np.arange(40), weight.astype(int))
        expected = mean_f1(y[rows], h[rows], weight if weighted else None)
        assert metric.score(y, h, sample_weight=weight) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("average", ["micro", "macro", "instance"])
@pytest.mark.parametrize("weighted", [True, False])
def test_several_outputs_are_averaged_as_asked(average, weighted):
    function = mean_f1 if weighted else lambda y_true, y_pred: mean_f1(y_true, y_pred)
    y, h, _ = draw(3, (30, 4), [0, 1, 2])
    found = resolve(function, "multioutput").metric.score(y, h, average=average, classes=[[0, 1, 2]] * 4)
    parts = {
        "micro": [(y.ravel(), h.ravel())],
        "macro": list(zip(y.T, h.T, strict=True)),
        "instance": list(zip(y, h, strict=True)),
    }[average]
    # With weights all classes are seen, as with labels=classes; in whole rows those that occur.
    labels = [0, 1, 2] if weighted else None
    expected = [
        (sk.f1_score(a, b, average="macro", labels=labels, zero_division=0) + np.mean(a == b)) / 2 for a, b in parts
    ]
    assert found == pytest.approx(np.mean(expected), abs=1e-12)


def check_gradient_of_mcc(seed, weighted):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    C = (rng.dirichlet(np.ones(k * k)) + 0.05).reshape(k, k)
    counts = np.rint(C / C.sum() * 40_000)
    C = counts / counts.sum()
    exact = metrics.MCC().bind(C.sum(axis=1)).gradient(C)
    function = sk.matthews_corrcoef if weighted else lambda y, p: sk.matthews_corrcoef(y, p)
    found = FromLabels(function, weighted=weighted)
    slope = found._of_rows(counts.sum()).gradient(C)
    centred = [one - one.mean(axis=1, keepdims=True) for one in (slope, exact)]
    np.testing.assert_allclose(centred[0], centred[1], atol=1e-3)


@given(st.integers(0, 10**6))
@examples(20)
def test_gradients_are_those_of_the_metric_that_the_function_is(seed):
    check_gradient_of_mcc(seed, weighted=True)


@pytest.mark.parametrize("seed", first(2, range(8)))
def test_gradients_in_whole_rows_are_those_of_the_metric_that_the_function_is(seed):
    """Few: for each cell a function of 40,000 rows is called twice."""
    check_gradient_of_mcc(seed, weighted=False)


@given(st.integers(2, 5), st.integers(0, 10**6))
def test_counts_are_rounded_to_the_rows_of_their_classes(k, seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, size=(k, k)).astype(float)
    assert (whole_counts(counts) == counts).all()
    shares = rng.dirichlet(np.ones(k), size=k) * rng.integers(0, 20, size=(k, 1))
    found = whole_counts(shares)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), shares.sum(axis=1), atol=1e-9)
    assert (np.abs(found - shares) < 1 + 1e-6).all()


def test_labels_are_the_users_own():
    seen = []

    def spy(y_true, y_pred):
        seen.extend([*np.unique(y_true), *np.unique(y_pred)])
        return float(np.mean(y_true == y_pred))

    p = np.linspace(0.05, 0.95, 20)
    mw.optimize(p, np.where(p > 0.4, "spam", "ham"), spy, pos_label="spam", strategy=mw.Strategy(**FIXED))
    assert set(seen) == {"ham", "spam"}


# ----------------------------------------------------------------------------------------------------- optimising


def problem(seed, n=60, k=2):
    return worlds.multiclass(n, np.linspace(2, 0.7, k), every_class=True, seed=seed)


@pytest.mark.parametrize(
    ("function", "name", "k"),
    [
        (sk.f1_score, "f1", 2),
        (sk.make_scorer(sk.fbeta_score, beta=2), "f2", 2),
        (partial(sk.f1_score, average="macro"), "macro_f1", 3),
        (partial(sk.cohen_kappa_score, weights="quadratic"), "qwk", 4),
        (sk.get_scorer("balanced_accuracy"), "balanced_accuracy", 3),
        (sk.make_scorer(sk.zero_one_loss, greater_is_better=False), "accuracy", 3),
    ],
)
def test_known_functions_are_served_by_the_exact_solvers(function, name, k):
    eta, y = problem(0, k=k)
    for options in (
        {"strategy": mw.Strategy(**FIXED)},
        {"strategy": mw.Strategy(confusion="expected", recalibrate=True)},
    ):
        found, expected = mw.optimize(eta, y, function, **options), mw.optimize(eta, y, name, **options)
        assert (found.rule.predict(eta) == expected.rule.predict(eta)).all()
        assert found.value == pytest.approx(expected.value - (name == "accuracy"), abs=1e-12)


@pytest.mark.parametrize(("seed", "weighted"), diagonal(5, range(5), [True, False]))
def test_the_sweep_is_exact_for_any_function(seed, weighted):
    eta, y = problem(seed, n=25)
    function = mean_f1 if weighted else lambda y_true, y_pred: mean_f1(y_true, y_pred)
    found = mw.optimize(eta, y, function, strategy=mw.Strategy(**FIXED))
    every = [mean_f1(y, (eta[:, 1] > t).astype(int)) for t in [-1.0, *eta[:, 1]]]
    assert found.value == pytest.approx(max(every), abs=1e-12)
    assert found.value == pytest.approx(mean_f1(y, found.rule.predict(eta)), abs=1e-12)


def test_of_many_thresholds_those_near_the_best_are_looked_at():
    eta, y = problem(1, n=3_000)
    calls = []

    def counted(y_true, y_pred, sample_weight=None):
        calls.append(1)
        return sk.f1_score(y_true, y_pred, sample_weight=sample_weight) ** 3  # which is best where f1 is

    found, best = (
        mw.optimize(eta, y, counted, strategy=mw.Strategy(**FIXED)),
        mw.optimize(eta, y, "f1", strategy=mw.Strategy(**FIXED)),
    )
    assert len(calls) < 400
    assert found.upper_bound is None
    assert "best of the evaluated thresholds" in found.status
    assert found.value >= best.value**3 - 0.002


@pytest.mark.parametrize("weighted", [True, False])
def test_ascent_climbs_any_function(weighted):
    eta, y = problem(2, n=200, k=3)
    function = mean_f1 if weighted else lambda y_true, y_pred: mean_f1(y_true, y_pred)
    found = mw.optimize(eta, y, function, strategy=mw.Strategy(**FIXED))
    assert found.value > found.baseline + 0.01
    assert found.value == pytest.approx(mean_f1(y, found.rule.predict(eta)), abs=1e-12)


def test_without_weights_the_recipe_is_chosen_among_labels():
    eta, y = problem(3, n=120)
    found = mw.optimize(eta, y, lambda y, p: np.mean(y == p) ** 3)
    assert {one.recipe for one in found.candidates} == {"recalibrated + labels"}
    assert found.gain is not None


def test_whole_weights_are_rows():
    eta, y = problem(4, n=20)
    weight = np.random.default_rng(0).integers(0, 4, size=20)
    weight[:2] = 1
    rows = np.repeat(np.arange(20), weight)
    found = mw.optimize(eta, y, lambda y, p: mean_f1(y, p), sample_weight=weight, strategy=mw.Strategy(**FIXED))
    assert found.value == pytest.approx(mean_f1(y[rows], found.rule.predict(eta[rows])), abs=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"strategy": mw.Strategy(confusion="expected")},
            r"confusion='expected'\) counts fractions of rows; add a parameter sample_weight",
        ),
        (
            {"strategy": mw.Strategy(confusion="blended", recalibrate=True)},
            r"confusion='blended'\) counts fractions of rows",
        ),
        ({"sample_weight": np.full(60, 0.5)}, "sample_weight= has fractions.*or use whole weights"),
        ({"prior": [0.5, 0.5]}, "prior= counts fractions of rows"),
        ({"strategy": mw.Strategy(randomized=True)}, "a mixture of rules counts fractions of rows"),
    ],
)
def test_a_function_without_weights_is_refused_parts_of_rows(options, message):
    def less_wrong(y_true, y_pred):
        return -(np.mean(y_true != y_pred) ** 2)

    with pytest.raises(ValueError, match=f"optimize: less_wrong takes no sample_weight.*{message}"):
        mw.optimize(*problem(0), less_wrong, **options)


def test_a_function_without_weights_needs_labels_and_outputs_that_count_alike():
    eta, _ = problem(0)
    with pytest.raises(ValueError, match="there is no y"):
        mw.optimize(eta, None, lambda y, p: np.mean(y == p))
    y = np.column_stack([problem(seed)[1] for seed in range(2)])
    with pytest.raises(ValueError, match="output_weight= counts fractions of rows with average='micro'"):
        mw.optimize(np.full((60, 2), 0.4), y, lambda y, p: np.mean(y == p) ** 3, output_weight=[1, 2], average="micro")
    with pytest.raises(ValueError, match=r"FromLabels.score: function takes no sample_weight.*has fractions"):
        mw.make_scorer(lambda y, p: np.mean(y == p))._score_func([0, 1], [0, 1], sample_weight=[0.5, 1])


# ------------------------------------------------------------------------------------------- recognised by values


def odd(y_true, y_pred):
    """What is no metric of ours, and takes no weights."""
    return 0.3 * sk.f1_score(y_true, y_pred, average="macro") + 0.7 * sk.matthews_corrcoef(y_true, y_pred) ** 2


def counting(function):
    def counted(y_true, y_pred):
        counted.calls += 1
        return function(y_true, y_pred)

    counted.calls = 0
    return counted


@pytest.mark.parametrize(
    ("function", "name", "k"),
    [
        (lambda y, p: sk.f1_score(y, p), "f1", 2),
        (lambda y, p: sk.f1_score(y, p, pos_label=0), "f1[0]", 2),
        (lambda y, p: sk.f1_score(y, p, average="macro"), "macro_f1", 3),
        (lambda y, p: sk.matthews_corrcoef(y, p), "mcc", 3),
        (lambda y, p: sk.recall_score(y, p, average=None).min(), "min_recall", 3),
        (lambda y, p: sk.cohen_kappa_score(y, p, weights="quadratic"), "qwk", 3),
        (lambda y, p: sk.fbeta_score(y, p, beta=2, average="macro"), "macro_f2", 3),
    ],
)
def test_a_lambda_around_a_metric_is_that_metric(function, name, k):
    eta, y = problem(5, n=2_000, k=k)
    counted = counting(function)
    found, expected = mw.optimize(eta, y, counted), mw.optimize(eta, y, name)
    assert counted.calls <= 60
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert (found.rule.predict(eta) == expected.rule.predict(eta)).all()
    assert "at 50 confusion matrices and was optimised as" in found.status
    assert found.value == pytest.approx(function(y, found.rule.predict(eta)), abs=1e-9)


def test_what_differs_from_a_metric_somewhere_is_not_taken_for_it():
    def nearly(y_true, y_pred):  # F1, but where nothing is predicted
        return sk.f1_score(y_true, y_pred) if np.any(y_pred == 1) else -1.0

    def of_few(y_true, y_pred):  # accuracy, but of many rows
        return np.mean(y_true == y_pred) if len(y_true) < 1_000 else np.mean(y_true == y_pred) ** 2

    for function in (nearly, of_few, lambda y, p: np.mean(y == p) ** 3):
        found = metric_of_values(from_callable(function), [0, 1], [1_000, 500])
        assert found is None
    assert metric_of_values(metrics.FBeta(), [0, 1], [10, 10]) is None


@pytest.mark.parametrize("k", [2, 3])
def test_another_function_is_asked_a_few_hundred_times(k):
    rng = np.random.default_rng(k)
    truth = rng.dirichlet([4.0] + [0.5] * (k - 1), 2_000)
    y = worlds.draw_codes(truth, rng)
    eta = truth * np.append(3.0, np.ones(k - 1))  # too little of the rare ones
    eta /= eta.sum(axis=1, keepdims=True)
    counted = counting(odd)
    found = mw.optimize(eta, y, counted)
    assert counted.calls <= 500
    assert found.gain is not None
    assert found.gain.low > 0
    assert found.value == pytest.approx(odd(y, found.rule.predict(eta)), abs=1e-12)
    if k == 2:  # nearly the best of all thresholds, which the default does not aim at
        best = max(odd(y, (eta[:, 1] > t).astype(int)) for t in np.quantile(eta[:, 1], np.linspace(0.5, 1, 200)))
        fixed = mw.optimize(eta, y, odd, strategy=mw.Strategy(confusion="labels", recalibrate=False))
        assert fixed.value >= best - 0.002
        assert found.value >= best - 0.015
    else:  # no worse than what one fit to all rows finds
        assert (
            found.value
            >= mw.optimize(eta, y, odd, strategy=mw.Strategy(confusion="labels", recalibrate=False)).value - 0.002
        )


def test_a_function_with_a_kink_is_fitted_to_resamples_as_it_is():
    def kink(y_true, y_pred):
        recalls = sk.recall_score(y_true, y_pred, average=None)
        return 0.5 * recalls.min() + 0.5 * sk.accuracy_score(y_true, y_pred)

    rng = np.random.default_rng(0)
    truth = rng.beta(0.5, 3, 2_000)
    y = (rng.random(2_000) < truth).astype(int)
    found = mw.optimize(truth / (truth + 4 * (1 - truth)), y, kink)
    assert found.gain is not None
    assert found.gain.low > 0


def test_a_value_that_is_known_is_not_asked_for_again():
    counted = counting(odd)
    metric = with_caches(from_callable(counted))._of_rows(30)
    C = np.array([[10, 5], [3, 12]]) / 30
    values = [metric.bind(C.sum(axis=1), [0, 1]).value(C) for _ in range(3)]
    assert counted.calls == 1
    assert len(set(map(float, values))) == 1
    assert metric.bind(C.sum(axis=1), ["a", "b"]).value(C) == values[0]  # other labels are asked about
    assert counted.calls == 2


def fussy_f1(y_true, y_pred):
    if len(np.unique(y_pred)) < 2:
        raise ZeroDivisionError("all rows are predicted to be of one class")
    return sk.f1_score(y_true, y_pred)


def share_right(y_true, y_pred):
    return np.mean(y_true == y_pred)


def test_a_function_may_refuse_matrices_that_it_is_asked_about_to_recognise_it():
    assert metric_of_values(from_callable(fussy_f1), [0, 1], [100, 50]) is None
    eta, y = problem(5, n=300, k=3)

    def fussy_accuracy(y_true, y_pred):
        if len(np.unique(y_pred)) < 3:
            raise ZeroDivisionError("a class is never predicted")
        return np.mean(y_true == y_pred)

    found = mw.optimize(eta, y, fussy_accuracy)
    assert found.value == pytest.approx(fussy_accuracy(y, found.rule.predict(eta)), abs=1e-12)


@pytest.mark.parametrize("k", [59, 60, 61, 150])
def test_functions_of_many_classes_are_recognised(k):
    found = metric_of_values(from_callable(share_right), list(range(k)), np.full(k, 3))
    assert found is not None
    assert found.name == "accuracy"


class OfState:
    """A function of labels that depends on something else."""

    __name__ = "of_state"

    def __init__(self):
        self.power = 3

    def __call__(self, y_true, y_pred):
        return np.mean(y_true == y_pred) ** self.power


@pytest.mark.parametrize("wrapped", [False, True])
def test_no_value_is_kept_from_one_call_to_the_next(wrapped):
    function = OfState()
    bare = from_callable(function)
    metric = metrics.Increasing(bare, np.sqrt, lambda a: 0.5 / np.sqrt(a)) if wrapped else bare
    C = np.array([[0.3, 0.2], [0.1, 0.4]])
    eta, y = problem(0)
    for function.power in (3, 5):
        exponent = function.power / 2 if wrapped else function.power
        found = mw.optimize(eta, y, metric, strategy=mw.Strategy(**FIXED))
        assert found.value == pytest.approx(np.mean(y == found.rule.predict(eta)) ** exponent, abs=1e-12)
        assert float(metric.value(C)) == pytest.approx(0.7**exponent)


def test_outputs_of_one_function_go_on_sharing_it():
    eta, y = problem(0)
    metric = from_callable(OfState())
    found = mw.optimize(
        np.column_stack([eta[:, 1]] * 2), np.column_stack([y, y]), [metric, metric], strategy=mw.Strategy(**FIXED)
    )
    assert len(found.problem.aim.metric._distinct) == 1


def test_kept_values_are_bounded_in_bytes_and_not_pickled(monkeypatch):
    metric = with_caches(from_callable(OfState()))._of_rows(30).bind([0.5, 0.5])
    monkeypatch.setattr("metricwise.metrics.functions._MAX_CACHE_BYTES", 2_000)
    for hits in range(15):
        metric.value(np.array([[hits, 15 - hits], [0, 15]]) / 30)
    assert 0 < len(metric.cache._values) <= 6
    other = pickle.loads(pickle.dumps(metric))  # noqa: S301  # it is ours
    assert other.cache is None
    assert metric.cache is not None


# -------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("metric", "error", "message"),
    [
        (sk.roc_auc_score, ValueError, "roc_auc_score evaluates the order of the scores, not decisions"),
        (sk.log_loss, ValueError, "log_loss evaluates the probabilities themselves"),
        (sk.get_scorer("roc_auc"), ValueError, "the scorer of roc_auc_score evaluates the order of the scores"),
        (sk.get_scorer("neg_log_loss"), ValueError, "the scorer of log_loss evaluates the probabilities themselves"),
        (
            sk.make_scorer(mean_f1, response_method="predict_proba"),
            ValueError,
            "evaluates the probabilities themselves",
        ),
        (lambda y_true, y_score: 0.0, ValueError, "function evaluates the order of the scores"),
        (partial(sk.f1_score, average=None), ValueError, "average=None gives a number for each class"),
        (partial(sk.accuracy_score, normalize=False), ValueError, "normalize must not be False"),
        (partial(mean_f1, sample_weight=[1, 2]), ValueError, "mean_f1 has a fixed sample_weight"),
        (sk.f1_score, ValueError, "'f1_score' is about one class.*set average='macro'"),
        (partial(sk.f1_score, average="samples"), ValueError, "is for multilabel targets"),
        (sk.fbeta_score, TypeError, "needs beta; set it with functools.partial"),
        (lambda estimator, X, y: 0.0, TypeError, "a scorer that calls an estimator cannot be inspected|A scorer"),
    ],
)
def test_what_is_no_metric_of_decisions_is_refused(metric, error, message):
    with pytest.raises(error, match=message):
        resolve(metric, "multiclass")


def test_on_multilabel_what_is_of_whole_rows_or_outputs_is_refused():
    for function in (sk.accuracy_score, sk.zero_one_loss):
        with pytest.raises(ValueError, match=f"scikit-learn's '{function.__name__}' is that of whole rows"):
            resolve(function, "multilabel")
    with pytest.raises(ValueError, match="labels= of f1_score selects outputs"):
        resolve(partial(sk.f1_score, average="macro", labels=[0, 1]), "multilabel")
    with pytest.raises(ValueError, match="'f1_score' fixes average='macro', got average='micro'"):
        resolve(partial(sk.f1_score, average="macro"), "multilabel", "micro")


def test_a_function_that_forgets_its_weights_is_refused():
    def forgetful(y_true, y_pred, sample_weight=None):
        return np.mean(y_true == y_pred)

    with pytest.raises(ValueError, match="forgetful returns the same value for all sample weights"):
        mw.optimize(*problem(0), forgetful, strategy=mw.Strategy(**FIXED))


def test_labels_that_are_no_classes_are_refused():
    metric = resolve(partial(sk.f1_score, average="macro", labels=["a", "x"]), "multiclass").metric
    with pytest.raises(ValueError, match=r"labels must be among the classes \['a', 'b', 'c'\], each once, got"):
        metric.score(["a", "b", "c"], ["a", "b", "c"])


def test_a_function_must_return_a_finite_number():
    with pytest.raises(ValueError, match=r"must return a finite number, got nan.*for example at 0/0"):
        resolve(lambda y, p: np.nan, "binary").metric.value([[0.5, 0.0], [0.0, 0.5]])
    with pytest.raises(TypeError, match="must return a number, got 'good'"):
        resolve(lambda y, p: "good", "binary").metric.value([[0.5, 0.0], [0.0, 0.5]])


def test_warnings_about_rules_that_are_merely_tried_are_not_passed_on():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mw.optimize(
            *problem(0), lambda y, p: sk.precision_score(y, p) + sk.recall_score(y, p), strategy=mw.Strategy(**FIXED)
        )


# ------------------------------------------------------------------------------------------------------- estimators


def test_estimators_take_functions_and_scorers():
    X, y = worlds.features(150, above=1.2, names=["no", "yes"])
    for metric in (partial(sk.f1_score, pos_label="yes"), sk.make_scorer(sk.fbeta_score, beta=2, pos_label="yes")):
        model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric=metric, strategy=mw.Strategy(**FIXED)).fit(
            X, y
        )
        function, parameters = (
            (metric.func, metric.keywords)
            if hasattr(metric, "func")
            else (
                metric._score_func,
                metric._kwargs,
            )
        )
        assert model.score(X, y) == pytest.approx(function(y, model.predict(X), **parameters), abs=1e-12)
    own = mw.MetricWeightedClassifier(LogisticRegression(), metric=lambda y, p: mean_f1(y, p), max_iter=3).fit(X, y)
    assert own.score(X, y) == pytest.approx(mean_f1(y, own.predict(X)), abs=1e-12)
    assert own.best_score_ >= own.history_[0]


def test_a_function_without_arguments_is_no_metric():
    with pytest.raises(mw.InvalidParameter, match=r"takes no arguments; a metric is f\(C\) of a confusion matrix"):
        from_callable(lambda: 1.0)
