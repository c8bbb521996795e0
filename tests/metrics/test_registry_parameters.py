"""Parameters of metrics: classes by index and label, class weights, and the sentences that refuse bad ones."""

import numpy as np
import pytest

import metricwise as mw
from laws.metric_records import ONE_CLASS, make
from metricwise import metrics

CONFUSION = np.array([[0.3, 0.05, 0.05], [0.1, 0.2, 0.0], [0.0, 0.1, 0.2]])
PRIORS = CONFUSION.sum(axis=1)
OF_ONE_CLASS = list(dict.fromkeys(type(make(name, 2)) for name in ONE_CLASS))


@pytest.mark.parametrize("metric", OF_ONE_CLASS)
def test_a_class_by_label_is_the_class_by_index(metric):
    by_label = metric(pos_label="b").bind(PRIORS, ["a", "b", "c"])
    assert by_label.value(CONFUSION) == metric(index=1).value(CONFUSION)
    assert by_label.value(CONFUSION) != metric(index=0).value(CONFUSION)
    as_array = metric(pos_label=20).bind(PRIORS, np.array([10, 20, 30]))
    assert as_array.value(CONFUSION) == by_label.value(CONFUSION)


@pytest.mark.parametrize("metric", OF_ONE_CLASS)
def test_without_a_class_it_is_the_positive_one(metric):
    binary = np.array([[0.5, 0.1], [0.15, 0.25]])
    assert metric().value(binary) == metric(index=1).value(binary) != metric(index=0).value(binary)
    with pytest.raises(
        ValueError, match="with 3 classes there is no default positive class; name one with index= or pos_label="
    ):
        metric().value(CONFUSION)


@pytest.mark.parametrize("metric", OF_ONE_CLASS)
def test_a_class_that_is_not_there_is_refused(metric):
    name = metric.__name__
    with pytest.raises(ValueError, match=rf"{name}: index must be an integer in 0\.\.2, got 3"):
        metric(index=3).value(CONFUSION)
    with pytest.raises(ValueError, match=r"index must be an integer in 0\.\.2, got -1"):
        metric(index=-1).value(CONFUSION)
    with pytest.raises(ValueError, match=rf"{name}: pos_label must be one of the classes \['a', 'b', 'c'\], got 'd'"):
        metric(pos_label="d").bind(PRIORS, ["a", "b", "c"])
    with pytest.raises(ValueError, match="needs the class labels, which are not known here; use index= instead"):
        metric(pos_label="b").value(CONFUSION)
    with pytest.raises(ValueError, match="give index or pos_label, not both"):
        metric(index=1, pos_label="b").bind(PRIORS, ["a", "b", "c"])


@pytest.mark.parametrize("metric", [*OF_ONE_CLASS, metrics.MicroF1])
@pytest.mark.parametrize("bad", [float("nan"), -0.1, 2.0])
def test_zero_division_is_a_share(metric, bad):
    with pytest.raises(ValueError, match=rf"{metric.__name__}: zero_division must be a number in \[0, 1\]"):
        metric(zero_division=bad)


def test_micro_f1_takes_its_negative_class_by_index_or_label():
    by_label = metrics.MicroF1(negative_label="none").bind(PRIORS, ["x", "y", "none"])
    assert by_label.value(CONFUSION) == metrics.MicroF1(negative_index=2).value(CONFUSION)
    assert metrics.MicroF1().value(CONFUSION) == metrics.MicroF1(negative_index=0).value(CONFUSION)
    hits, true_or_predicted = 0.2 + 0.2, 0.3 + 0.3 + 0.35 + 0.25
    assert metrics.MicroF1().value(CONFUSION) == pytest.approx(2 * hits / true_or_predicted)


def test_class_weights_by_position_and_by_label():
    expected = 1 * 0.3 + 4 * 0.2 + 1 * 0.2
    assert metrics.WeightedAccuracy([1, 4, 1]).value(CONFUSION) == pytest.approx(expected)
    by_label = metrics.WeightedAccuracy({"b": 4.0})
    assert by_label.bind(PRIORS, ["a", "b", "c"]).value(CONFUSION) == pytest.approx(expected)
    assert by_label.range == metrics.WeightedAccuracy([1, 4, 1]).range == (0.0, 4.0)


def test_class_average_with_weights_of_ones_own():
    f1 = [float(metrics.FBeta(index=k).value(CONFUSION)) for k in range(3)]
    weighted = metrics.ClassAverage(metrics.FBeta(), class_weight=[1, 0, 3])
    assert weighted.value(CONFUSION) == pytest.approx((f1[0] + 3 * f1[2]) / 4)
    by_label = metrics.ClassAverage(metrics.FBeta(), "weighted", {"c": 0.0}).bind(PRIORS, ["a", "b", "c"])
    assert by_label.value(CONFUSION) == pytest.approx((PRIORS[0] * f1[0] + PRIORS[1] * f1[1]) / PRIORS[:2].sum())


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
@pytest.mark.parametrize("base", [metrics.Recall, metrics.Specificity])
def test_averages_of_linear_metrics_are_linear(base, average):
    assert isinstance(metrics.ClassAverage(base(), average).bind(PRIORS), metrics.Linear)


def test_kappa_with_a_matrix_is_the_named_kappa():
    steps = np.subtract.outer(np.arange(3), np.arange(3))
    for name, matrix in [(None, 7.0 * (steps != 0)), ("linear", 0.5 * abs(steps)), ("quadratic", 2.0 * steps**2)]:
        assert metrics.Kappa(matrix).value(CONFUSION) == pytest.approx(metrics.Kappa(name).value(CONFUSION))


def test_kappa_with_a_matrix_has_a_finite_range_once_bound():
    lopsided = metrics.Kappa([[0, 1], [0, 0]])
    assert lopsided.range == (-np.inf, 1.0)
    low, high = lopsided.bind([0.1, 0.9]).range
    worst = lopsided.value([[0.0, 0.1], [0.9, 0.0]])
    assert worst == pytest.approx(low) == pytest.approx(-9)
    assert high == 1
    # The one cell that counts has no rows: no weight on any mistake.
    assert metrics.Kappa([[0, 1], [0, 0]]).value([[0.0, 0.0], [0.4, 0.6]]) == 0


def test_min_recall_and_minimum_have_the_parts_that_a_linear_programme_needs():
    bound = metrics.MinRecall().bind(PRIORS)
    np.testing.assert_allclose(bound.summary(CONFUSION), np.diagonal(CONFUSION) / PRIORS)
    assert metrics.MinRecall().bind([0.5, 0.0, 0.5]).summary(CONFUSION).shape == (2,)
    stacked = metrics.MinRecall().bind([[0.5, 0.0, 0.5], [0.2, 0.3, 0.5]])
    assert stacked.summary(np.stack([CONFUSION, CONFUSION])).shape == (2, 3)
    several = metrics.Minimum([metrics.Accuracy(), metrics.Recall(index=2)]).bind(PRIORS)
    np.testing.assert_allclose(several.summary(CONFUSION), [0.7, 0.2 / 0.3])
    assert several.value(CONFUSION) == pytest.approx(min(0.7, 0.2 / 0.3))


def test_zero_recall_still_says_which_way_is_up():
    never_hit = np.array([[0.6, 0.0], [0.4, 0.0]])
    for metric in (metrics.GMean(), metrics.HMean(), metrics.QMean(), metrics.MinRecall()):
        gradient = metric.gradient(never_hit)
        assert gradient[1, 1] > gradient[1, 0]
    for metric in (metrics.MCC(), metrics.FowlkesMallows()):
        gradient = metric.gradient(never_hit)
        towards_the_truth, away = gradient[1, 1] - gradient[1, 0], gradient[0, 1] - gradient[0, 0]
        assert towards_the_truth > max(away, 0)


def test_means_of_recalls_leave_absent_classes_out():
    without = np.array([[0.4, 0.1, 0.1], [0.0, 0.0, 0.0], [0.1, 0.1, 0.2]])
    recalls = [0.4 / 0.6, 0.2 / 0.4]
    assert metrics.GMean().value(without) == pytest.approx(np.sqrt(np.prod(recalls)))
    assert metrics.HMean().value(without) == pytest.approx(2 / sum(1 / r for r in recalls))
    assert metrics.MinRecall().value(without) == pytest.approx(min(recalls))


def test_stated_values_at_zero_over_zero():
    one_class = np.array([[1.0, 0.0], [0.0, 0.0]])
    for metric in (metrics.FBeta, metrics.Jaccard, metrics.Precision, metrics.Recall, metrics.FowlkesMallows):
        assert metric().value(one_class) == 0
        assert metric(zero_division=1.0).value(one_class) == 1
    assert metrics.Specificity(index=0, zero_division=1.0).value(one_class) == 1
    assert metrics.MicroF1(zero_division=1.0).value(one_class) == 1
    assert metrics.Kappa().value(one_class) == metrics.MCC().value(one_class) == 0
    assert metrics.BalancedAccuracy(adjusted=True).value(one_class) == 0
    assert metrics.ClassAverage(metrics.FBeta()).value(one_class) == 0.5
    assert metrics.ClassAverage(metrics.FBeta(zero_division=1.0)).value(one_class) == 1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: metrics.FBeta(-1.0), "FBeta: beta must be a finite number of at least 0, got -1.0"),
        (lambda: metrics.FBeta(float("inf")), "beta must be a finite number"),
        (lambda: metrics.WeightedExponential(float("nan")), "WeightedExponential: gamma must be a finite number, got"),
        (
            lambda: metrics.WeightedExponential(first_index=0.5),
            "WeightedExponential: first_index must be an integer, got 0.5",
        ),
        (lambda: metrics.Polynomial(gamma=0.0), "Polynomial: gamma must be a finite number above 0, got 0.0"),
        (lambda: metrics.Decathlon(max_error=-1.0), "Decathlon: max_error must be a finite number above 0"),
        (lambda: metrics.Cost([[0, 1]]), r"Cost: cost must have shape \(K, K\), got \(1, 2\)"),
        (lambda: metrics.Cost([[0, np.inf], [1, 0]]), "Cost: cost must be finite"),
        (lambda: metrics.Cost(np.eye(2)).value(CONFUSION), r"Cost: cost must have shape \(K, K\) with K = 3"),
        (lambda: metrics.Kappa("cubic"), "Kappa: weights must be None, 'linear', 'quadratic' or a .K, K. matrix, got"),
        (lambda: metrics.Kappa(-np.ones((2, 2))), "Kappa: weights must be non-negative"),
        (lambda: metrics.Kappa(np.ones((2, 2))), "zeros on the diagonal"),
        (lambda: metrics.Kappa(1 - np.eye(2)).value(CONFUSION), "Kappa: weights must have shape"),
        (lambda: metrics.WeightedAccuracy([1, 2]).value(CONFUSION), "one number for each of the 3 classes, got shape"),
        (lambda: metrics.WeightedAccuracy([1, -2, 1]).value(CONFUSION), "finite, non-negative and not all zero"),
        (lambda: metrics.WeightedAccuracy({"d": 1}).bind(PRIORS, list("abc")), "label must be one of the classes"),
        (
            lambda: metrics.WeightedAccuracy({"b": 1}).value(CONFUSION),
            "needs the class labels, which are not known here",
        ),
        (lambda: metrics.ClassAverage(metrics.GMean()), "ClassAverage: base must be a metric of one class"),
        (lambda: metrics.ClassAverage(metrics.FBeta(index=1)), "without index or pos_label"),
        (lambda: metrics.ClassAverage(metrics.FBeta(), "samples"), "average must be 'macro', 'weighted' or 'micro'"),
        (lambda: metrics.ClassAverage(metrics.FBeta(), "micro", [1, 2, 3]), "class_weight must be None with"),
        (lambda: metrics.ClassAverage(metrics.FowlkesMallows(), "micro").value(CONFUSION), "would be 'accuracy'"),
        (lambda: metrics.Minimum([]), "Minimum: metrics must be a sequence of at least one Metric"),
        (lambda: metrics.Minimum(["accuracy"]), "Minimum: metrics must be a sequence"),
        (
            lambda: metrics.Minimum([metrics.Accuracy(), metrics.MCC()]).value(CONFUSION),
            r"got metrics that are not: \['mcc \(other\)'\]",
        ),
    ],
)
def test_bad_parameters_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_first_index_by_name_and_in_a_rule():
    """It scales the values and changes no rule; a rule that was found with it comes back from JSON as it was."""
    metric = metrics.get_metric("weighted_exponential", gamma=2.0, first_index=0)
    shifted = metrics.get_metric("weighted_exponential", gamma=2.0, first_index=3)
    assert metric == metrics.WeightedExponential(2.0, first_index=0)
    assert metric != shifted
    assert shifted.value(CONFUSION) == pytest.approx(np.exp(-6) * metric.value(CONFUSION))
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    y = np.arange(200) % 3
    found = [
        mw.optimize(proba, y, each, strategy=mw.Strategy(confusion="expected", recalibrate=False)).rule
        for each in (metric, shifted)
    ]
    assert np.array_equal(found[0].predict(proba), found[1].predict(proba))
    again = mw.WeightedRule.from_json(found[0].to_json())
    assert np.array_equal(again.predict(proba), found[0].predict(proba))


def test_ranges():
    assert metrics.Kappa().range == metrics.MCC().range == (-1.0, 1.0)
    assert metrics.Kappa(1 - np.eye(2)).range == (-np.inf, 1.0)
    assert metrics.Cost([[0, 1], [5, -2]]).range == (-5.0, 2.0)
    assert metrics.BalancedAccuracy(adjusted=True).range == (-1.0, 1.0)
    assert metrics.Polynomial(gamma=2, max_error=0.5).range == (0.0, 0.25)
    assert metrics.WeightedExponential(gamma=1.0).range == (0.0, pytest.approx(np.exp(-1)))
    assert metrics.WeightedExponential(gamma=1.0, first_index=0).range == (0.0, 1.0)
    assert metrics.WeightedExponential(gamma=1.0, first_index=-1).range == (0.0, pytest.approx(np.e))
    assert metrics.Minimum([metrics.Accuracy(), metrics.WeightedAccuracy([3, 3])]).range == (0.0, 1.0)
    # Bound, a range is what predictions can still reach.
    assert metrics.Cost([[0, 1], [5, -2]]).bind([0.5, 0.5]).range == (-3.0, 1.0)
    assert metrics.BalancedAccuracy().bind([0.75, 0.25]).range == pytest.approx((0.0, 1.0))
