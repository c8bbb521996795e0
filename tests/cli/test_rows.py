"""Which columns are probabilities, by their names: found whatever they are called, or asked about."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricwise.data import columns
from metricwise.data.columns import OutputLabels, labels_of_texts, match_label

WORDS = st.text(alphabet=string.ascii_letters + " _-.=äß日", min_size=1, max_size=6)
LABELS = st.one_of(
    st.lists(st.integers(-99, 99), min_size=2, max_size=5, unique=True),
    st.lists(WORDS, min_size=2, max_size=5, unique=True),
    st.just([False, True]),
)


def probability_columns(
    names, labels, *, output=None, several=False, prefix=None, classes=None, column=None, pos_label=None
):
    """The columns of one output, beside another one if there are several."""
    outputs = [OutputLabels(output, labels, classes, pos_label)]
    if several:
        outputs += [OutputLabels("another", [0, 1], positive=1)]
        names, singles = [*names, "another column"], [column, "another column"]
    else:
        singles = [column]
    return columns.probability_columns(names, outputs, prefix=prefix, singles=singles)[0]


@given(LABELS, st.randoms(use_true_random=False))
def test_columns_named_like_the_classes_are_found_in_any_order(labels, random):
    names = [str(label) for label in labels]
    random.shuffle(names)
    found = probability_columns(["#id", *names, "#other"], labels)
    assert list(found.columns) == names
    assert list(map(str, found.classes)) == names
    assert [type(label) for label in found.classes] == [type(labels[0])] * len(labels)
    assert found.guessed_prefix is None


@given(LABELS, WORDS.map(lambda word: f"#{word}"))
def test_columns_with_a_prefix_that_is_said_or_the_only_one_that_fits(labels, prefix):
    names = [f"{prefix}{label}" for label in labels]
    found = probability_columns(["id", *names], labels, prefix=prefix)
    assert found.columns == tuple(names)
    assert found.classes == tuple(labels)
    try:
        guessed, said = probability_columns(["/", *names], labels).columns, ""
    except ValueError as error:  # a label may end like another one with the prefix before it
        guessed, said = (), str(error)
    assert set(names) <= set(guessed) or "may be in the columns that begin with" in said


@given(st.lists(WORDS, min_size=2, max_size=4, unique=True), st.data())
def test_columns_of_several_outputs_say_which_they_are_of(outputs, data):
    labels = [data.draw(LABELS) for _ in outputs]
    names = [f"{output}={label}" for output, own in zip(outputs, labels, strict=True) for label in own]
    if len(set(names)) < len(names):  # an output called "a=b" beside one called "a"
        return
    for output, own in zip(outputs, labels, strict=True):
        found = probability_columns(names, own, output=output, several=True, classes=own)
        assert found.columns == tuple(f"{output}={label}" for label in own)


def test_classes_that_no_label_shows_are_found_by_the_prefix():
    found = probability_columns(["p_1", "p_2", "p_10", "p_value"], [1, 10], prefix="p_")
    assert (found.columns, found.classes) == (("p_1", "p_2", "p_10"), (1, 2, 10))
    found = probability_columns(["p_a", "p_b", "p_c"], ["a", "b"], prefix="p_")
    assert found.classes == ("a", "b", "c")
    assert probability_columns(["p_a", "p_b", "p_c"], ["a"], prefix="p_", classes=["b", "a"]).columns == ("p_a", "p_b")


@pytest.mark.parametrize(
    ("names", "labels", "options", "column", "classes"),
    [
        (["id", "p"], [0, 1], {"column": "p"}, "p", (0, 1)),
        (["id", "p"], [-1, 1], {"column": "p"}, "p", (-1, 1)),
        (["id", "p"], [False, True], {"column": "p"}, "p", (False, True)),
        (["id", "p"], ["no", "yes"], {"column": "p", "pos_label": "no"}, "p", ("yes", "no")),
        (["id", "yes"], ["no", "yes"], {"pos_label": "yes"}, "yes", ("no", "yes")),
        (["id", "1"], [0, 1], {}, "1", (0, 1)),
        (["p_spam"], [0, 1], {"output": "spam", "prefix": "p_"}, "p_spam", (0, 1)),
        (["p_spam", "p_ham"], [0], {"output": "spam", "prefix": "p_", "several": True}, "p_spam", (0, 1)),
        (["p_spam", "p_ham"], [], {"output": "spam", "prefix": "p_", "several": True}, "p_spam", (0, 1)),
        (["p_spam", "p_ham"], [True], {"output": "spam", "prefix": "p_", "several": True}, "p_spam", (False, True)),
        (["spam=1", "ham=1"], [0, 1], {"output": "spam", "several": True}, "spam=1", (0, 1)),
    ],
)
def test_the_one_column_of_a_binary_output(names, labels, options, column, classes):
    found = probability_columns(names, labels, **options)
    assert found.single
    assert (found.columns, found.classes) == ((column,), classes)
    assert [type(label) for label in found.classes] == [type(label) for label in classes]


@pytest.mark.parametrize(
    ("names", "labels", "options", "said"),
    [
        (["id", "p"], ["no", "yes"], {"column": "p"}, "the single column .* is ambiguous: 'no' or 'yes'"),
        (["id", "p"], [0, 1], {"column": "p", "pos_label": 7}, r"pos_label must be one of \[0, 1\], got 7"),
        (["id", "p"], [0, 1, 2], {"column": "p"}, "is for two classes, but there are 3"),
        (["id", "p"], [0, 1], {"column": "q"}, "no column 'q'"),
        (["id", "yes"], ["no", "yes"], {}, "no column for the class 'no'.*pos_label="),
        (["id", "a", "b"], ["a", "b", "c"], {}, "no column for the class 'c'.*leave those empty"),
        (["x_0", "x_1", "y_0", "y_1"], [0, 1], {}, "begin with 'x_' or 'y_'; choose one with .*proba_prefix="),
        (["id"], [0, 1], {}, "named like the classes, 0, 1, or with a prefix"),
        (["id"], [0, 1], {"prefix": "p"}, "named like 'p1'"),
        (["a=0", "a=1"], [0, 1], {"output": "b", "several": True}, "named like 'b=1'"),
        (["1", "1.0", "2"], [1, 2], {}, "'1' and '1.0' may both be the probability of 1"),
    ],
)
def test_what_is_not_there_or_ambiguous_is_asked_for(names, labels, options, said):
    with pytest.raises(ValueError, match=said):
        probability_columns(names, labels, **options)


def test_complete_columns_come_before_a_single_one():
    found = probability_columns(["1", "p_0", "p_1"], [0, 1])
    assert (found.columns, found.guessed_prefix) == (("p_0", "p_1"), "p_")


@given(LABELS)
def test_labels_survive_as_text(labels):
    for label in labels:
        found = match_label(str(label), labels)
        assert found == label
        assert type(found) is type(label)


@given(st.lists(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)), min_size=1, unique=True))
def test_numbers_are_numbers(values):
    found = labels_of_texts([str(value) for value in values])
    if all(isinstance(value, int) for value in values):
        assert found == values or any(abs(value) >= 2**53 for value in values)
    assert len(found) == len(values)


def test_text_stays_text():
    assert labels_of_texts(["01", "02"]) == ["01", "02"]
    assert labels_of_texts(["1.10", "1.1"]) == ["1.10", "1.1"]
    assert labels_of_texts(["1", "1.0"]) == ["1", "1.0"]
    assert labels_of_texts(["nan", "1"]) == ["nan", "1"]
    assert labels_of_texts(["True", "true"]) == ["True", "true"]
    assert labels_of_texts([]) == []
