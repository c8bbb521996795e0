"""Proportional odds, beside differences of sigmoids with many digits."""

import json
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest

from metricwise.core.ordinal_map import OrdinalMap, proba_of_maps


def logs_of_differences(score, slope, intercepts):
    """The same with 1,000 digits, for scores that are not too far out."""
    with localcontext() as context:
        context.prec, context.Emin = 1000, -(10**6)
        above = [1 / (1 + (Decimal(b) - Decimal(slope) * Decimal(score)).exp()) for b in intercepts]
        edges = [Decimal(1), *above, Decimal(0)]
        return [float((high - low).ln()) for high, low in pairwise(edges)]


@pytest.mark.parametrize("intercepts", [[0.3], [-2.0, -1.999999, 3.0], [-1e-9, 0.0, 1e-9, 40.0]])
@pytest.mark.parametrize("slope", [0.01, 1.0, 30.0])
def test_logarithms_are_right_to_the_last_digits(intercepts, slope):
    scores = [-20.0, -1.0, 0.0, 0.25, 3.0, 25.0]
    expected = [logs_of_differences(score, slope, intercepts) for score in scores]
    np.testing.assert_allclose(OrdinalMap(slope, intercepts).log_proba(scores), expected, rtol=1e-13, atol=1e-15)


def test_probabilities_sum_to_1_and_rise_with_the_score():
    fitted = OrdinalMap(1.7, [-1.0, 0.5, 0.6, 4.0])
    proba = np.exp(fitted.log_proba(np.linspace(-8, 8, 101)))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-14)
    assert (np.diff(np.cumsum(proba, axis=1)[:, :-1], axis=0) < 0).all()


def test_ends_are_certain_and_far_scores_do_not_underflow():
    fitted = OrdinalMap(1.0, [-1.0, 1.0])
    certain = fitted.log_proba([-np.inf, np.inf])
    np.testing.assert_array_equal(certain, [[0.0, -np.inf, -np.inf], [-np.inf, -np.inf, 0.0]])
    far = fitted.log_proba([2000.0, 1e308])
    assert np.isfinite(far).all()
    assert far[0] == pytest.approx([-2001.0, -1999.0 + np.log(1 - np.exp(-2)), 0.0])


def test_equal_intercepts_leave_a_grade_no_probability():
    np.testing.assert_array_equal(OrdinalMap(1.0, [0.5, 0.5]).log_proba([0.0, 1.0])[:, 1], [-np.inf, -np.inf])


def test_a_change_of_unit_is_linear_between_knots_and_beyond():
    fitted = OrdinalMap(2.0, [0.5, 1.0], [0.0, 1.0, 3.0], [-1.0, 0.0, 4.0])
    scores = np.array([-np.inf, -2.0, 0.5, 2.0, 4.0, np.inf])
    np.testing.assert_array_equal(fitted.change_unit(scores), [-np.inf, -3.0, -0.5, 2.0, 6.0, np.inf])
    changed = OrdinalMap(2.0, [0.5, 1.0]).log_proba(fitted.change_unit(scores))
    np.testing.assert_array_equal(fitted.log_proba(scores), changed)


@pytest.mark.parametrize(
    "fitted", [OrdinalMap(0.1, [-1 / 3, 2 / 3]), OrdinalMap(1.0, [0.0], [0.1, 0.7], [-1.0, 1 / 3])]
)
def test_a_map_survives_json(fitted):
    assert OrdinalMap.from_dict(json.loads(json.dumps(fitted.to_dict()))) == fitted
    assert fitted != OrdinalMap(0.1, [-1 / 3, 0.5])
    assert fitted.n_classes == fitted.log_proba([0.0]).shape[1]


@pytest.mark.parametrize(
    ("slope", "intercepts", "message"),
    [
        (0.0, [0.0], "slope must be positive"),
        (np.nan, [0.0], "slope must be positive"),
        (np.inf, [0.0], "slope must be positive"),
        (1.0, [1.0, 0.0], "intercepts must be ascending"),
        (1.0, [np.inf], "intercepts must be finite"),
        (1.0, [np.nan, 0.0], "intercepts must be finite"),
        (1.0, [], r"intercepts must have shape \(K - 1,\)"),
        (1.0, [[0.0]], r"intercepts must have shape \(K - 1,\)"),
    ],
)
def test_other_parameters_are_refused(slope, intercepts, message):
    with pytest.raises(ValueError, match=message):
        OrdinalMap(slope, intercepts)


@pytest.mark.parametrize(
    ("knots", "heights", "message"),
    [
        ([0.0, 1.0], None, "heights must be two or more finite numbers that rise"),
        ([0.0, 0.0], [0.0, 1.0], "knots must be two or more finite numbers that rise"),
        ([0.0, np.nan], [0.0, 1.0], "knots must be two or more finite numbers that rise"),
        ([0.0, 1.0], [0.0, 1.0, 2.0], "knots and heights must have one shape"),
    ],
)
def test_other_changes_of_unit_are_refused(knots, heights, message):
    with pytest.raises(ValueError, match=message):
        OrdinalMap(1.0, [0.0], knots, heights)


def test_probabilities_of_several_maps_are_those_of_each():
    knots = ([-1.0, 0.0, 2.0], [-2.0, 0.0, 1.0])
    maps = [OrdinalMap(2.0, [0.5, 1.0], *knots), OrdinalMap(0.1, [-3.0, 4.0], *knots)]
    scores = np.array([-np.inf, -700.0, -1.5, 0.0, 0.3, 5.0, np.inf])
    expected = np.exp([fitted.log_proba(scores) for fitted in maps])
    np.testing.assert_allclose(proba_of_maps(maps, scores), expected, rtol=1e-12, atol=1e-15)
