"""Labels are read the same whichever way is taken: all outputs at once where they are numbers, else column by column.

Arrays of objects always go column by column: they are the reference here.
"""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metricwise as mw
import worlds
from metricwise.core.labels import decode, shared
from metricwise.data.labels import observed_labels, read_labels, read_pair
from metricwise.data.probabilities import read_proba
from profiles import examples

INTEGERS = (np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64)


@st.composite
def tables(draw, low=-2, high=6):
    """Whole numbers of shape (N, M), few of them distinct."""
    n_rows, n_outputs = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    least, most = sorted((draw(st.integers(low, high)), draw(st.integers(low, high))))
    cells = st.lists(st.integers(least, most), min_size=n_rows * n_outputs, max_size=n_rows * n_outputs)
    return np.array(draw(cells)).reshape(n_rows, n_outputs)


def outcome(function, *args):
    """What a call gives, or the words it refuses with."""
    try:
        return function(*args)
    except ValueError as error:
        return str(error)


def as_python(classes):
    return [[(type(label), label) for label in labels.tolist()] for labels in classes]


def uniform(n_rows, n_outputs, k):
    return read_proba(np.full((n_rows, n_outputs, k), 1 / k), multioutput=True)


def assert_same_labels(fast, slow):
    if isinstance(fast, str) or isinstance(slow, str):
        assert fast == slow
        return
    np.testing.assert_array_equal(fast.codes, slow.codes)
    assert fast.codes.dtype == slow.codes.dtype
    assert as_python(fast.classes) == as_python(slow.classes)


@given(table=tables(), k=st.integers(2, 6), data=st.data())
def test_integers_are_read_as_objects_are(table, k, data):
    proba = uniform(*table.shape, k)
    fits = [kind for kind in INTEGERS if (table.astype(kind) == table).all()]
    own = table.astype(data.draw(st.sampled_from(fits)))
    classes = data.draw(st.sampled_from([None, list(range(k)), list(range(k))[::-1], [c + 1 for c in range(k)]]))
    reference = outcome(read_labels, own.astype(object), proba, classes)
    assert_same_labels(outcome(read_labels, own, proba, classes), reference)


@given(table=tables(), k=st.integers(2, 6), data=st.data())
def test_floats_with_gaps_are_read_as_objects_are(table, k, data):
    own = table.astype(data.draw(st.sampled_from([np.float32, np.float64])))
    gone = data.draw(st.lists(st.booleans(), min_size=table.size, max_size=table.size))
    own[np.reshape(gone, table.shape)] = np.nan
    if data.draw(st.booleans()):
        own[0, 0] = data.draw(st.sampled_from([0.5, np.inf, 1e20]))
    reference = outcome(read_labels, own.astype(object), uniform(*table.shape, k), None)
    assert_same_labels(outcome(read_labels, own, uniform(*table.shape, k), None), reference)


@given(table=tables(), to_float=st.booleans())
def test_labels_without_probabilities_are_read_as_objects_are(table, to_float):
    own = np.where(table == 5, np.nan, table) if to_float else table
    assert_same_labels(observed_labels(own), observed_labels(own.astype(object)))


@given(data=st.data(), first=st.booleans(), second=st.booleans())
def test_pairs_are_read_as_objects_are(data, first, second):
    true = data.draw(tables(low=-1))
    cells = st.lists(st.integers(0, 4), min_size=true.size, max_size=true.size)
    predicted = np.array(data.draw(cells)).reshape(true.shape)
    true, predicted = (a.astype(float) if f else a for a, f in ((true, first), (predicted, second)))
    if first:
        true[true == 2] = np.nan
    classes = data.draw(st.sampled_from([None, [0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [0, 1, 2]]))
    fast = outcome(read_pair, true, predicted, classes)
    slow = outcome(read_pair, true.astype(object), predicted.astype(object), classes)
    if isinstance(slow, str):
        assert fast == slow
        return
    np.testing.assert_array_equal(fast[0], slow[0])
    np.testing.assert_array_equal(fast[1], slow[1])
    assert as_python(fast[2]) == as_python(slow[2])


MISSING = pytest.mark.parametrize(
    ("true", "predicted"),
    [
        ([0, 1, 2, 0], [0, np.nan, 2, 1]),
        (["a", "b", "c", "a"], ["a", None, "c", "b"]),
        ([0, 1, 2, 0], pd.Series([0, pd.NA, 2, 1], dtype="Int64")),
        ([0, 1, 2, 0], np.ma.masked_array([0, 1, 2, 1], [False, True, False, False])),
    ],
    ids=["NaN", "None", "NA", "masked"],
)


@MISSING
def test_a_missing_prediction_is_refused(true, predicted):
    """It would be counted in the cell before its own."""
    words = r"Accuracy\.score: y_pred must hold a class wherever y_true does, got 1 missing, the first in row 1;"
    with pytest.raises(ValueError, match=words):
        mw.metrics.Accuracy().score(true, predicted)


@MISSING
def test_a_missing_prediction_of_a_missing_label_counts_nothing(true, predicted):
    gone = np.array([None if n == 1 else label for n, label in enumerate(true)], dtype=object)
    assert mw.metrics.Accuracy().score(gone, predicted) == pytest.approx(2 / 3)


def test_a_missing_prediction_of_several_outputs_says_which():
    true, predicted = np.array([[0, 1], [1, 1], [1, 0]]), np.array([[0, 1], [1, np.nan], [np.nan, 0]])
    with pytest.raises(ValueError, match="got 2 missing, the first in row 1 of output 1;"):
        mw.metrics.get_metric("f1").score(true, predicted, average="macro")
    both = np.where(np.isnan(predicted), np.nan, true)
    for average in ("micro", "macro", "instance"):
        assert mw.metrics.get_metric("accuracy").score(both, predicted, average=average) == 1.0


@examples(30)
@given(table=tables(low=0, high=1))
def test_booleans_keep_their_type_in_every_output(table):
    labels = outcome(read_labels, table.astype(bool), uniform(*table.shape, 2), None)
    numbers = outcome(read_labels, table, uniform(*table.shape, 2), [0, 1])
    if isinstance(labels, str):
        assert "at least two classes" in labels
        assert "at least two classes" in numbers
        return
    np.testing.assert_array_equal(labels.codes, numbers.codes)
    assert as_python(labels.classes) == [[(bool, False), (bool, True)]] * table.shape[1]


@pytest.mark.parametrize("kind", [int, float, bool])
def test_data_frames_are_read_as_their_arrays(kind):
    table = np.array([[0, 1], [1, 0], [1, 1]]).astype(kind)
    framed, plain = (read_labels(y, uniform(3, 2, 2), None) for y in (pd.DataFrame(table), table))
    assert_same_labels(framed, plain)


def test_columns_of_a_data_frame_keep_their_own_types():
    frame = pd.DataFrame({"a": [0, 1, 1], "b": [True, False, True], "c": [0.0, 1.0, np.nan]})
    labels = read_labels(frame, uniform(3, 3, 2), None)
    assert [labels.dtype.kind for labels in labels.classes] == ["i", "b", "f"]
    assert labels.codes.tolist() == [[0, 1, 0], [1, 0, 1], [1, 1, -1]]


# --------------------------------------------------------------------------------------------- thousands of outputs


def test_outputs_share_one_array_of_labels():
    table = np.add.outer(np.arange(4), np.arange(6)) % 2
    for y in (table, table.astype(bool), table.astype(float), table.astype(str)):
        assert len({id(labels) for labels in read_labels(y, uniform(4, 6, 2), None).classes}) == 1
    solution = mw.optimize(
        np.full((4, 6), 0.5), table, "f1", strategy=mw.Strategy(confusion="labels", recalibrate=False)
    )
    assert len({id(labels) for labels in solution.rule.classes}) == 1
    assert len({id(labels) for labels in mw.load_rule(solution.rule.to_json()).classes}) == 1


def test_equal_arrays_are_shared_and_others_are_not():
    arrays = [np.array([0, 1]), np.array([0, 1]), np.array([0.0, 1.0]), np.array([False, True]), np.array(["0", "1"])]
    assert [labels is arrays[0] for labels in shared(arrays)] == [True, True, False, False, False]
    assert as_python(shared(arrays)) == as_python(arrays)


@given(data=st.data())
def test_decoding_is_a_lookup_in_each_output(data):
    names = [
        np.array([0, 1]),
        np.array(["a", "bc"]),
        np.array([5.5, 2.0, 1.0]),
        np.array([7, 8, 9]),
        np.array([1, "a"]),
    ]
    classes = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=5))
    codes = np.array([[data.draw(st.integers(0, len(labels) - 1)) for labels in classes] for _ in range(3)])
    found = decode(codes, classes)
    kinds = {labels.dtype.kind for labels in classes}
    for m, labels in enumerate(classes):
        assert found[:, m].tolist() == labels[codes[:, m]].tolist()
    assert found.dtype.kind == (kinds.pop() if len(kinds) == 1 else "O")


@pytest.mark.parametrize(("kind", "share"), [(np.int8, 0.3), (np.int64, 1.3), (bool, 0.3)])
def test_reading_takes_no_more_than_the_codes(kind, share):
    """Codes of one byte, and none where the labels are such codes."""
    y = (np.arange(4_000_000).reshape(8_000, 500) % 2).astype(kind)
    proba = read_proba(np.full((8_000, 500), np.float32(0.5)), multioutput=True)
    tracemalloc.start()
    labels = read_labels(y, proba, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert labels.codes.dtype == np.int8
    assert peak < share * y.size


def test_checking_probabilities_takes_no_copy():
    proba = np.full((40_000, 10, 10), np.float32(0.1))
    tracemalloc.start()
    read_proba(proba, multioutput=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * proba.nbytes


# ---------------------------------------------------------------------------------------- the order of given classes


def test_classes_in_the_order_of_a_scale_are_doubted_where_sorted_columns_fit():
    proba, y = worlds.multiclass(400, [0.3, 0.3, 0.3], names=["high", "low", "mid"], seed=3)
    likeliest = proba.argmax(axis=1)
    right = [100 * np.mean(np.array(order)[likeliest] == y) for order in (sorted(set(y)), ["low", "mid", "high"])]
    words = (
        rf"is correct in {right[1]:.0f} % .* in {right[0]:.0f} % if the columns were those of \['high', 'low', 'mid'\]"
    )
    with pytest.warns(UserWarning, match=words):
        mw.optimize(proba, y, "accuracy", classes=["low", "mid", "high"])
    # Columns that do stand in the order given, and too few rows to tell: nothing is said.
    mw.optimize(proba[:, [1, 2, 0]], y, "accuracy", classes=["low", "mid", "high"])
    mw.optimize(proba[:8], y[:8], "accuracy", classes=["low", "mid", "high"])


def test_the_question_for_an_order_shows_how_to_give_it():
    proba, y = worlds.multiclass(400, [0.3, 0.3, 0.3], names=["high", "low", "mid"], seed=3)
    for classes in (None, ["high", "low", "mid"]):
        with pytest.raises(ValueError, match=r"pass order=\[lowest, \.\.\., highest\]"):
            mw.optimize(proba, y, "quadratic_kappa", classes=classes)
