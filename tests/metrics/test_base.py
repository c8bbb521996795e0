"""The user's own metrics: matrices and functions."""

import numpy as np
import pytest

from metricwise import metrics

CONFUSION = np.array([[0.3, 0.05, 0.05], [0.1, 0.2, 0.0], [0.0, 0.1, 0.2]])
PRIORS = CONFUSION.sum(axis=1)


def test_a_function_without_gradient_gets_a_numerical_one():
    own = metrics.from_function(lambda C: float(metrics.MCC().value(C)))
    exact = metrics.MCC().gradient(CONFUSION)
    numerical = own.gradient(CONFUSION)
    centred = [g - g.mean(axis=1, keepdims=True) for g in (exact, numerical)]
    np.testing.assert_allclose(centred[0], centred[1], rtol=1e-4, atol=1e-5)


def test_a_function_with_gradient_uses_it():
    own = metrics.from_function(lambda C: float(np.trace(C)), lambda C: 5 * np.eye(len(C)), concave=True, range=(0, 1))
    np.testing.assert_array_equal(own.gradient(CONFUSION), 5 * np.eye(3))
    assert own.traits.concave
    assert own.range == (0, 1)


def test_a_function_takes_stacks():
    own = metrics.from_function(lambda C: float(np.trace(C)))
    stack = np.stack([CONFUSION, CONFUSION.T])
    np.testing.assert_allclose(own.value(stack), [0.7, 0.7])
    assert own.gradient(stack).shape == (2, 3, 3)


def test_a_function_must_be_one_and_give_numbers():
    with pytest.raises(TypeError, match="from_function: function must be callable, got str"):
        metrics.from_function("f1")
    with pytest.raises(ValueError, match=r"must return a finite number, got nan for the confusion matrix \[\["):
        metrics.from_function(lambda C: float("nan")).value(CONFUSION)


def test_linear_as_ratio_is_the_same_metric():
    linear = metrics.Linear(np.arange(9.0).reshape(3, 3))
    assert linear.as_ratio().value(CONFUSION) == pytest.approx(linear.value(CONFUSION))
    assert linear.as_ratio().range == linear.range == (0.0, 8.0)


def test_a_linear_metric_stacked_over_groups_has_a_gradient_for_each():
    stacked = metrics.Linear(np.stack([np.eye(3), 2 * np.eye(3)]))
    np.testing.assert_array_equal(stacked.gradient(CONFUSION), stacked.A)


def test_a_ratio_with_a_denominator_that_may_vanish_is_refused_once_priors_are_known():
    f1 = ([[0, 0], [0, 2]], [[0, 1], [1, 2]])
    with pytest.raises(ValueError, match=r"must be positive for all predictions.*set zero_division="):
        metrics.FractionalLinear(*f1).bind([1.0, 0.0])
    assert metrics.FractionalLinear(*f1).bind([0.6, 0.4]).range[0] == 0
    assert metrics.FractionalLinear(*f1, zero_division=0.0).bind([1.0, 0.0]).value([[1.0, 0.0], [0.0, 0.0]]) == 0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: metrics.Linear("abc"), r"Linear: A must be a \(K, K\) array of numbers"),
        (lambda: metrics.Linear([1.0, 2.0]), r"Linear: A must have shape \(K, K\), got \(2,\)"),
        (lambda: metrics.Linear([[np.nan, 0], [0, 1]]), "Linear: A must be finite"),
        (lambda: metrics.Linear(np.eye(2)).bind(PRIORS), "Linear: A must have shape .* with K = 3"),
        (lambda: metrics.FractionalLinear(np.eye(2), np.ones((3, 3))), "A and B must have one shape"),
        (lambda: metrics.FractionalLinear(np.eye(2), np.ones((2, 2))).bind(PRIORS), "with K = 3"),
    ],
)
def test_bad_matrices_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_equality_is_by_content():
    assert metrics.Kappa("linear") != metrics.Kappa(1 - np.eye(2))
    assert metrics.Kappa(1 - np.eye(2)) == metrics.Kappa(1 - np.eye(2))
    assert metrics.FBeta(1.0) != metrics.FBeta(2.0)
    assert metrics.FBeta() != metrics.Jaccard()
