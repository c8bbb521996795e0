"""Which rows have one score for ordered classes, and the order of these."""

import numpy as np
import pytest

import metricwise as mw
from metricwise.data.grades import grades_of
from metricwise.data.row_spec import RowSpec

SCORES = np.array([0.1, 0.9, 2.2, 1.1])
LABELS = np.array([0, 1, 2, 1])


@pytest.mark.parametrize(
    ("options", "grades"),
    [
        ({}, [0, 1, 2]),
        ({"order": [2, 1, 0]}, [2, 1, 0]),
        ({"order": [0, 1, 2, 3]}, [0, 1, 2, 3]),
        ({"classes": [2, 0, 1]}, [0, 1, 2]),
        ({"classes": [0, 1, 2, 3], "order": [3, 2, 1, 0]}, [3, 2, 1, 0]),
        ({"classes": [0, 1]}, None),  # which labels of y refuse
    ],
)
def test_the_order_is_that_of_values_unless_it_is_given(options, grades):
    assert grades_of(RowSpec(SCORES, LABELS, **options)) == grades


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": [0, 1]}, r"order must hold all labels of y, \[0, 1, 2\], got \[0, 1\]"),
        ({"order": [0, 1, 2], "classes": [0, 1, 2, 3]}, r"order must hold all classes, \[0, 1, 2, 3\], got"),
        ({"order": [0, 1, 2, 3], "classes": [0, 1, 2]}, r"classes must hold all labels of order, \[0, 1, 2, 3\], got"),
        ({"classes": [0, 1, 4]}, r"classes must hold all labels of y, \[0, 1, 2\], got \[0, 1, 4\]"),
    ],
)
def test_an_order_lacks_no_class(options, message):
    with pytest.raises(mw.InvalidParameter, match=message):
        grades_of(RowSpec(SCORES, LABELS, **options))


@pytest.mark.parametrize("shape", [(4, 2), (4, 3)])
def test_a_rule_of_one_score_takes_one_column(shape):
    rule = mw.WeightedRule.from_cut_points([0.5, 1.5], input="scores")
    np.testing.assert_array_equal(rule.predict(SCORES[:, None]), [0, 1, 2, 1])
    with pytest.raises(mw.InvalidParameter, match=r"one score of each row for all 3 classes, got \(4, [23]\)"):
        rule.predict(np.ones(shape))
