"""Refusals as data: what they say, who says it, and what is left of it in another process."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import metricwise as mw
from metricwise.core.errors import (
    InvalidParameter,
    InvalidType,
    MissingDependency,
    Refusal,
    Sentence,
    argument,
    entry_point,
    mention,
    refused_by,
    shown,
    warn,
)
from metricwise.fitting.constraints.resolve import InfeasibleConstraintsError


def refuse():
    raise InvalidParameter("tol", "be positive", -1, f"leave {mention('tol')} out")


class Thing:
    @entry_point("{class}")
    def __init__(self, bad=False):
        if bad:
            refuse()

    @entry_point()
    def work(self):
        refuse()

    @classmethod
    @entry_point()
    def made(cls):
        refuse()


def test_a_refusal_says_parameter_bound_value_and_remedy():
    error = InvalidParameter("tol", "be positive", -1, "leave it out")
    assert str(error) == "tol must be positive, got -1; leave it out."
    assert (error.parameter, error.must, error.got, error.remedy) == ("tol", "be positive", -1, "leave it out")


def test_a_value_that_is_zero_or_empty_is_still_said():
    assert str(InvalidParameter("tol", "be positive", 0)) == "tol must be positive, got 0."


@pytest.mark.parametrize("end", [".", "?", ":"])
def test_sentences_end_once(end):
    assert str(InvalidParameter("", problem=f"so it is{end}")).endswith(f"is{end}")


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Thing(bad=True), "Thing"),
        (Thing().work, "Thing.work"),
        (Thing.made, "Thing.made"),
        (entry_point("optimize")(refuse), "optimize"),
        (entry_point("outer")(entry_point("inner")(refuse)), "inner"),
    ],
)
def test_the_innermost_entry_point_adds_its_name(call, name):
    with pytest.raises(ValueError, match=f"^{name}: tol must be positive, got -1; leave tol out\\.$"):
        call()


def test_who_refuses_by_itself_is_named_instead_of_the_entry_point():
    call = entry_point("optimize")(refuse)
    with (
        pytest.raises(InvalidParameter, match=r"^rows\.csv: tol must") as caught,
        refused_by("other.csv"),
        refused_by("rows.csv"),
    ):
        call()
    assert caught.value.entry_point == "optimize"


def test_a_sentence_that_stands_alone_gets_no_name():
    @entry_point("optimize")
    def call():
        raise InvalidParameter("solver", problem="Path needs a ratio", owner=None)

    with pytest.raises(ValueError, match=r"^Path needs a ratio\.$"):
        call()


def test_kinds_are_caught_as_pythons_own():
    assert issubclass(InvalidParameter, ValueError)
    assert issubclass(InvalidType, (TypeError, ValueError))
    assert issubclass(MissingDependency, ImportError)


def test_a_part_of_another_sentence_keeps_its_marks():
    error = InvalidParameter("", problem=f"pass {argument('pos_label', 'a')}").within(
        "'f1': ", " (output 2)", owner="metric"
    )
    assert str(error) == "metric: 'f1': pass pos_label='a' (output 2)."
    assert error.sentence.render(lambda name, value: f"<{name} {value}>") == "'f1': pass <pos_label 'a'> (output 2)."
    assert str(InvalidParameter("", problem="is it?").within(after="")) == "is it?"


@pytest.mark.parametrize("kind", [InvalidParameter, InvalidType, InfeasibleConstraintsError])
def test_another_process_sees_the_same_refusal(kind):
    made = kind("no rule") if kind not in (InvalidParameter, InvalidType) else kind("tol", "be positive", -1)
    made.entry_point = "optimize"
    copied = pickle.loads(pickle.dumps(made))  # noqa: S301  what was pickled here
    assert type(copied) is kind
    assert str(copied) == str(made)
    assert copied.sentence.marked == made.sentence.marked


def test_a_sentence_is_pickled_with_its_marks():
    sentence = pickle.loads(pickle.dumps(Sentence(f"pass {argument('order')}", "subject_to")))  # noqa: S301
    assert sentence == "subject_to: pass order="
    assert sentence.render(lambda name, value: name.upper()) == "pass ORDER"


def test_warnings_have_the_name_of_the_entry_point():
    with pytest.warns(UserWarning, match=r"^optimize: beware of tol\.$"):
        entry_point("optimize")(lambda: warn(f"beware of {mention('tol')}."))()
    with pytest.warns(UserWarning, match=r"^subject_to: beware\.$"):
        entry_point("optimize")(lambda: warn("beware.", owner="subject_to"))()
    with pytest.warns(UserWarning, match=r"^beware\.$"):
        warn("beware.")


def test_what_the_library_refuses_is_a_refusal():
    with pytest.raises(Refusal, match=r"^optimize: random_state must be None or .*, got -1\.$") as caught:
        mw.optimize([0.2, 0.8], [0, 1], "f1", random_state=-1)
    assert caught.value.parameter == "random_state"
    assert caught.value.entry_point == "optimize"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([np.datetime64("2020-01-01"), np.int64(3), "a"], "[2020-01-01, 3, 'a']"),
        ([1, "a"], "[1, 'a']"),
        (np.float64(0.5), "0.5"),
    ],
)
def test_values_are_shown_without_the_names_of_numpy(value, text):
    assert shown(value) == text
    assert len(shown([np.int64(1)] * 10_000)) < 200
