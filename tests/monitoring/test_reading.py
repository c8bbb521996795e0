"""Labels and ids, as users pass them."""

import numpy as np
import pandas as pd
import pytest

import metricwise as mw
from metricwise.monitoring.reading import read_codes, read_ids

BINARY = mw.WeightedRule.from_thresholds(0.5)
WORDS = mw.WeightedRule.from_weights({"low": 1, "mid": 2, "urgent": 3})
OUTPUTS = mw.WeightedRule.from_thresholds({"news": 0.3, "sport": 0.6})


@pytest.mark.parametrize(
    "ids",
    [
        ["a", "b"],
        ("a", "b"),
        np.array(["a", "b"]),
        pd.Series(["a", "b"], index=[7, 3]),
        pd.Index(["a", "b"]),
        np.array(["a", "b"], dtype=object),
    ],
)
def test_ids(ids):
    assert read_ids(ids, 2) == ["a", "b"]


def test_integers_are_ids():
    ids = read_ids(np.array([3, 1], dtype=np.int32), 2)
    assert (ids, [type(name) for name in ids]) == ([3, 1], [int, int])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a"], "ids must have one id for each of the 2 rows, got 1"),
        (["a", None], "ids must not be missing, got 1 missing"),
        ([1.5, 2.5], "ids must be texts or integers, got 1.5"),
        ([True, False], "ids must be texts or integers, got True"),
        (["a", "a"], "ids must be distinct, got 'a' twice"),
        (np.array([["a", "b"], ["c", "d"]]), "ids must be 1-D"),
    ],
)
def test_refused_ids(ids, message):
    with pytest.raises(ValueError, match=message):
        read_ids(ids, 2)


@pytest.mark.parametrize("y", [[1, None, 0], [1.0, np.nan, 0.0], pd.Series([1, None, 0], dtype="Int64")])
def test_missing_labels_have_the_code_minus_one(y):
    assert read_codes(BINARY, y, None, 3).tolist() == [[1], [-1], [0]]


def test_texts_and_outputs():
    assert read_codes(WORDS, ["mid", None, "low"], None, 3).tolist() == [[1], [-1], [0]]
    frame = pd.DataFrame({"sport": [1, None], "news": [0, 1]})
    assert read_codes(OUTPUTS, frame, None, 2).tolist() == [[0, 1], [1, -1]]
    assert read_codes(WORDS, [None, None], None, 2).tolist() == [[-1], [-1]]


def test_refused_labels():
    with pytest.raises(ValueError, match=r"y must hold only the classes \[0, 1\], got 'x'"):
        read_codes(BINARY, ["x"], None, None)
    with pytest.raises(ValueError, match="y must have as many rows as proba, 3, got 2"):
        read_codes(BINARY, [0, 1], None, 3)
    with pytest.raises(ValueError, match="y must be 1-D, as the rule has them"):
        read_codes(BINARY, [[0], [1]], None, 2)
    with pytest.raises(ValueError, match="y must be 2-D, with a column for each of its 2 outputs"):
        read_codes(OUTPUTS, [0, 1], None, 2)
    with pytest.raises(ValueError, match="y must have one column for each of the 2 outputs, got 3"):
        read_codes(OUTPUTS, [[0, 1, 1]], None, 1)
