"""The join of metric and average: labels that outputs share, and certificates that hold."""

import numpy as np
import pytest

import metricwise as mw
from metricwise.metrics.aim import make_objective
from metricwise.metrics.averages import group_outputs

FIXED = {"confusion": "expected", "recalibrate": False}


def test_a_label_at_different_positions_is_refused_under_micro():
    proba = [np.array([[0.6, 0.4], [0.3, 0.7]]), np.array([[0.2, 0.8], [0.5, 0.5]])]
    y = np.array([["no", "yes"], ["yes", "no"]])
    metric = mw.metrics.FBeta(pos_label="yes")
    classes = [["no", "yes"], ["yes", "no"]]
    with pytest.raises(ValueError, match="FBeta: a class given by label must have the same position"):
        mw.optimize(proba, y, metric, classes=classes, average="micro", strategy=mw.Strategy(**FIXED))
    macro = mw.optimize(proba, y, metric, classes=classes, average="macro", strategy=mw.Strategy(**FIXED))
    swapped = [proba[0], proba[1][:, ::-1]]
    same = mw.optimize(swapped, y, metric, classes=["no", "yes"], average="macro", strategy=mw.Strategy(**FIXED))
    assert macro.value == pytest.approx(same.value, abs=1e-12)


def test_no_certificate_where_an_output_keeps_argmax():
    rng = np.random.default_rng(0)
    proba = rng.random((40, 2))
    y = (rng.random((40, 2)) < proba).astype(int)
    y[:, 1] = 0
    frozen = mw.optimize(proba, y, "f1", average="macro", strategy=mw.Strategy(**FIXED))
    assert frozen.upper_bound is None
    assert "use argmax: 1" in frozen.status
    free = mw.optimize(
        np.stack([1 - proba, proba], axis=-1), None, "f1", average="macro", strategy=mw.Strategy(**FIXED)
    )
    assert free.gap == pytest.approx(0, abs=1e-9)
    assert free.value > frozen.value


def test_a_denominator_below_zero_is_refused_even_with_a_value_at_zero():
    metric = mw.metrics.FractionalLinear([[1, 0], [0, 1]], [[1, -1], [1, 1]], zero_division=0.0)
    with pytest.raises(ValueError, match="FractionalLinear: the denominator <B, C> must not be negative"):
        mw.optimize([0.2, 0.7], [0, 1], metric, strategy=mw.Strategy(**FIXED))


@pytest.mark.parametrize("found", [None, "high", np.ones(3)])
def test_a_callable_must_return_a_number(found):
    with pytest.raises(TypeError, match="from_function: the metric must return a number, got"):
        mw.optimize([[0.2, 0.8], [0.7, 0.3]], [1, 0], lambda C: found, strategy=mw.Strategy(**FIXED))


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("name", ["f1", "kappa", "g_mean", "accuracy"])
def test_arrays_of_labels_may_be_shared_or_not(average, name):
    """Outputs of the same labels are bound together, whether those are one object or equal ones."""
    rng = np.random.default_rng(0)
    C = rng.dirichlet(np.ones(4), size=5).reshape(5, 2, 2)
    n_classes, weight = np.full(5, 2), np.array([3.0, 1.0, 0.0, 2.0, 5.0])
    C[2] = 0
    grouping = group_outputs(average, weight, n_classes, np.array([1.0, 2.0, 1.0, 0.0, 1.0]))
    one = np.array([-1, 1])
    metric = mw.metrics.get_metric(name)
    shared, copied, unnamed = (
        make_objective(metric, grouping, C.sum(axis=-1), n_classes, classes=classes)
        for classes in ((one,) * 5, tuple(one.copy() for _ in range(5)), None)
    )
    assert len(shared.bound) == len(copied.bound) == 1
    assert shared.value(C) == copied.value(C) == unnamed.value(C)
    # Group by group, as the definition has it.
    pooled = grouping.pool(C)
    each = [metric.bind(c.sum(axis=-1)).value(c) for c in pooled]
    assert shared.value(C) == pytest.approx(float(grouping.weight @ each), abs=1e-15)


def test_outputs_of_unequal_labels_are_bound_apart():
    C = np.zeros((3, 3, 3))
    C[0, :2, :2] = C[2, :2, :2] = [[0.5, 0.1], [0.1, 0.3]]
    C[1] = np.diag([0.2, 0.3, 0.5])
    n_classes = np.array([2, 3, 2])
    grouping = group_outputs("macro", np.ones(3), n_classes, np.ones(3))
    classes = (np.array(["a", "b"]), np.array(["a", "b", "c"]), np.array(["b", "a"]))
    metric = mw.metrics.Recall(pos_label="b")
    objective = make_objective(metric, grouping, C.sum(axis=-1), n_classes, classes=classes)
    assert [groups.tolist() for groups, _ in objective.bound] == [[0], [1], [2]]
    assert objective.values(C).tolist() == pytest.approx([0.75, 1.0, 0.5 / 0.6])
    assert objective.ratio.value(*objective.ratio.at(C)).tolist() == pytest.approx([0.75, 1.0, 0.5 / 0.6])


def test_a_ratio_is_its_value_at_zero_where_its_denominator_is_empty():
    C = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.5, 0.25], [0.0, 0.25]]])
    grouping = group_outputs("macro", np.ones(2), np.full(2, 2), np.ones(2))
    objective = make_objective(
        mw.metrics.Precision(zero_division=0.5), grouping, C.sum(axis=-1), np.full(2, 2), classes=None
    )
    ratio = objective.ratio
    assert ratio.value(*ratio.at(C)).tolist() == objective.values(C).tolist() == [0.5, 0.5]
    assert ratio.value(np.array([1.0]), np.array([2.0])).tolist() == [0.5]
    constant, slope = ratio.line
    assert constant.is_diagonal
    assert np.allclose(np.ptp(constant.tensor() + ratio.A, axis=2), 0)
    assert np.allclose(np.ptp(slope.tensor() - ratio.B, axis=2), 0)


@pytest.mark.parametrize("n_outputs", [1, 4])
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_tensors_are_pooled_together_as_each_alone(average, n_outputs):
    tensors = np.random.default_rng(0).random((6, n_outputs, 3, 3))
    weight = np.arange(1.0, n_outputs + 1)
    weight[1:2] = 0.0
    grouping = group_outputs(average, weight, np.full(n_outputs, 3), np.ones(n_outputs))
    together = grouping.pool_each(tensors)
    assert np.array_equal(together, np.stack([grouping.pool(C) for C in tensors]))
