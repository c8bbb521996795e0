"""The grammar of constraints: what is written is what is meant, text and objects say the same, errors point."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricwise.goals.constraint_text import at_least, at_most, between, near_prior, read_constraints

INF = np.inf
names = st.sampled_from(["recall", "precision", "f1", "f0.5", "share", "false_positive_rate"])
labels = st.one_of(st.integers(-5, 99), st.text(max_size=8), st.booleans())
bounds = st.floats(-10, 10, allow_nan=False)
BOTH = st.tuples(bounds, bounds).map(sorted)


@given(name=names, inside=st.lists(labels, max_size=2), ends=BOTH, kind=st.sampled_from([at_least, at_most, between]))
def test_objects_print_as_text_that_says_the_same(name, inside, ends, kind):
    wanted = kind(name, *(ends if kind is between else ends[:1]), *inside)
    (read,) = read_constraints(str(wanted))
    assert (read.metric, read.labels) == (name, tuple(inside))
    assert [type(label) for label in read.labels] == [type(label) for label in inside]
    for end in ("low", "high"):
        assert getattr(read, end) == pytest.approx(getattr(wanted, end), rel=1e-5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("precision >= 0.9", ("precision", 0.9, INF, ())),
        ("recall[urgent]>=80%", ("recall", 0.8, INF, ("urgent",))),
        ("share['on hold'] <= .1", ("share", -INF, 0.1, ("on hold",))),
        ("0.1 <= share[3] <= 20 %", ("share", 0.1, 0.2, (3,))),
        ("0.2 >= share[3] >= 0.1", ("share", 0.1, 0.2, (3,))),
        ("0.9 <= precision", ("precision", 0.9, INF, ())),
        ("recall[topic, urgent] ≥ 0.5", ("recall", 0.5, INF, ("topic", "urgent"))),
        ("kappa >= -1e-1", ("kappa", -0.1, INF, ())),
    ],
)
def test_text(text, expected):
    (one,) = read_constraints(text)
    assert (one.metric, one.low, one.high, one.labels) == expected
    assert one.text == text


def test_several_in_a_text_or_a_list():
    text = read_constraints("precision >= 0.9 and share[review] within 2 % of prior and recall[a] >= 0.1")
    assert [one.text for one in text] == ["precision >= 0.9", "share[review] within 2 % of prior", "recall[a] >= 0.1"]
    assert text[1].near_prior == pytest.approx(0.02)
    listed = read_constraints(["precision >= 0.9", [near_prior(0.02, "review"), "recall[a] >= 0.1"]])
    assert [(one.metric, one.low, one.near_prior) for one in listed] == [
        (one.metric, one.low, one.near_prior) for one in text
    ]
    assert read_constraints(None) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("precision > 0.9", r"must have '>=' or '<=' at character 11, got '>':\n    precision > 0.9\n              \^"),
        ("precision = 0.9", "must have '>=' or '<=' at character 11, got '='"),
        ("precision >=", "must have a number, such as 0.9 or 90 %, at character 13, got the end"),
        ("precision >= high", "must have a number, such as 0.9 or 90 %, at character 14, got 'h'"),
        ("recall[a >= 0.1", r"must have '\]' at character 10, got '>'"),
        ("recall[a, b, c] >= 0.1", r"must have '\]' at character 12, got ','"),
        ("precision >= 0.9, recall >= 0.5", "must have nothing more at character 17, got ','"),
        ("0.1 <= share[a] >= 0.2", "must have a bound on the other side"),
        ("0.3 <= share[a] <= 0.2", "the lower bound must not exceed the upper one, got 0.3 and 0.2"),
        ("recall[a] within 0.1 of prior", "'within ... of prior' is only for a share, got 'recall"),
        ("share[a] within 0.1 of it", "must have 'prior' at character 24, got 'i'"),
        ("", "must have the name of a metric, such as recall at character 1, got the end"),
    ],
)
def test_errors_point_at_what_is_wrong(text, message):
    with pytest.raises(ValueError, match=message):
        read_constraints(text)


@pytest.mark.parametrize("bound", [np.nan, np.inf, "0.9", None, True])
def test_bounds_are_numbers(bound):
    with pytest.raises(ValueError, match="a bound must be a finite number"):
        at_least("recall", bound)
    with pytest.raises(ValueError, match="a bound must be a finite number, at least 0"):
        near_prior(bound)


def test_other_things_are_refused():
    with pytest.raises(TypeError, match=r"must be text such as 'precision >= 0\.9', at_least"):
        read_constraints(0.9)
