"""The join of metric and average: labels that outputs share, and certificates that hold."""

import numpy as np
import pytest

import metricwise as mw

FIXED = {"confusion": "expected", "recalibrate": False}


def test_a_label_at_different_positions_is_refused_under_micro():
    proba = [np.array([[0.6, 0.4], [0.3, 0.7]]), np.array([[0.2, 0.8], [0.5, 0.5]])]
    y = np.array([["no", "yes"], ["yes", "no"]])
    metric = mw.metrics.FBeta(label="yes")
    classes = [["no", "yes"], ["yes", "no"]]
    with pytest.raises(ValueError, match="FBeta: a class given by label must stand at the same position"):
        mw.optimize(proba, y, metric, classes=classes, average="micro", **FIXED)
    macro = mw.optimize(proba, y, metric, classes=classes, average="macro", **FIXED)
    swapped = [proba[0], proba[1][:, ::-1]]
    same = mw.optimize(swapped, y, metric, classes=["no", "yes"], average="macro", **FIXED)
    assert macro.value == pytest.approx(same.value, abs=1e-12)


def test_no_certificate_where_an_output_keeps_argmax():
    rng = np.random.default_rng(0)
    proba = rng.random((40, 2))
    y = (rng.random((40, 2)) < proba).astype(int)
    y[:, 1] = 0
    frozen = mw.optimize(proba, y, "f1", average="macro", **FIXED)
    assert frozen.upper_bound is None
    assert "keep argmax: 1" in frozen.status
    free = mw.optimize(np.stack([1 - proba, proba], axis=-1), None, "f1", average="macro", **FIXED)
    assert free.gap == pytest.approx(0, abs=1e-9)
    assert free.value > frozen.value


def test_a_denominator_below_zero_is_refused_even_with_a_value_at_zero():
    metric = mw.metrics.FractionalLinear([[1, 0], [0, 1]], [[1, -1], [1, 1]], zero_division=0.0)
    with pytest.raises(ValueError, match="FractionalLinear: the denominator <B, C> must not be negative"):
        mw.optimize([0.2, 0.7], [0, 1], metric, **FIXED)


@pytest.mark.parametrize("found", [None, "high", np.ones(3)])
def test_a_callable_must_return_a_number(found):
    with pytest.raises(TypeError, match="from_function: the metric must return a number, got"):
        mw.optimize([[0.2, 0.8], [0.7, 0.3]], [1, 0], lambda C: found, **FIXED)
