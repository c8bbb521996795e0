"""Sparse probabilities and indicator matrices are read as they are, or refused in a sentence."""

import re

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from metricwise.core.errors import InvalidParameter, InvalidType
from metricwise.core.inputs import MAX_LOGIT
from metricwise.data.label_rows import read_label_rows, read_label_targets

DENSE = np.array([[0.5, 0.0, 0.25, 1.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.125, 0.0, 0.75]])
TWICE = "must have every label of a row once, got label 1 more than once in row 0"
MISSING = (
    "y must not have missing labels, because labels_per_row and sparse probabilities need all labels, got a missing "
    "label"
)
MATRICES = [sparse.csr_array, sparse.csc_matrix, sparse.coo_array]
OTHER = "y must be 0 or 1, or False or True, for every label, got"
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


def csr_of(values, indices, indptr, shape=(2, 4)):
    """A CSR array that SciPy does not put in order."""
    made = sparse.csr_array((np.array(values), np.array(indices), np.array(indptr)), shape=shape)
    made.has_sorted_indices = made.has_canonical_format = False
    return made


def dense_of(rows):
    return sparse.csr_array((rows.values, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_labels)).toarray()


# ------------------------------------------------------------------------------------------------------ probabilities


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_every_format_is_read(form, make):
    rows = read_label_rows(make(DENSE).asformat(form))
    np.testing.assert_array_equal(dense_of(rows), DENSE)
    assert rows.indptr.dtype == np.int64
    assert rows.indices.dtype in (np.int32, np.int64)


@pytest.mark.parametrize(
    ("dtype", "read"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.longdouble, np.float64),
        (">f4", np.float32),
        (bool, np.float64),
        (np.int8, np.float64),
    ],
)
def test_numbers_keep_their_precision(dtype, read):
    csr = sparse.csr_array(DENSE > 0.3)
    given = sparse.csr_array((csr.data.astype(dtype), csr.indices, csr.indptr), shape=csr.shape)
    rows = read_label_rows(given)
    assert rows.values.dtype == read
    assert rows.values.dtype.isnative
    np.testing.assert_array_equal(dense_of(rows), DENSE > 0.3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_what_is_csr_is_not_copied(dtype, index):
    csr = sparse.csr_array(DENSE.astype(dtype))
    csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
    rows = read_label_rows(csr)
    assert np.shares_memory(rows.values, csr.data)
    assert np.shares_memory(rows.indices, csr.indices)
    assert rows.indices.dtype == index


def test_room_behind_the_entries_is_not_read():
    csr = sparse.csr_array(DENSE)
    csr.data, csr.indices = np.append(csr.data, [9.0, np.nan]), np.append(csr.indices, [0, 77]).astype(np.int32)
    np.testing.assert_array_equal(dense_of(read_label_rows(csr)), DENSE)


def test_labels_out_of_order_are_sorted_in_a_copy():
    csr = csr_of([0.5, 0.25, 1.0, 0.75], [2, 0, 3, 1], [0, 2, 4])
    rows = read_label_rows(csr)
    assert rows.indices.tolist() == [0, 2, 1, 3]
    assert rows.values.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert csr.indices.tolist() == [2, 0, 3, 1]


def test_dense_rows_are_all_entries():
    rows = read_label_rows(np.asfortranarray(DENSE))
    assert rows.indices is None
    assert rows.indptr.tolist() == [0, 4, 8, 12]
    np.testing.assert_array_equal(rows.values.reshape(3, 4), DENSE)
    np.testing.assert_array_equal(read_label_rows(pd.DataFrame(DENSE)).values, rows.values)
    assert np.shares_memory(read_label_rows(DENSE).values, DENSE)


def test_infinite_logits_are_numbers_as_good():
    csr = csr_of([np.inf, -np.inf, 3.0], [0, 1, 2], [0, 2, 3])
    for dtype in (np.float32, np.float64):
        limit = dtype(MAX_LOGIT[np.dtype(dtype).itemsize])
        for kind in ("logits", "scores"):
            rows = read_label_rows(csr.astype(dtype), kind=kind)
            assert rows.values.tolist() == [limit, -limit, 3.0]
    assert csr.data[0] == np.inf


REFUSED = [
    (csr_of([0.5, 0.5], [1, 1], [0, 2, 2]), f"proba {TWICE}; call"),
    (csr_of([0.5, 0.5, 0.1], [1, 0, 1], [0, 3, 3]), f"proba {TWICE}"),
    (csr_of([0.5, np.nan], [0, 1], [0, 1, 2]), "proba must be finite, got nan for label 1 in row 1; drop such rows"),
    (csr_of([0.5, np.inf], [0, 1], [0, 1, 2]), "proba must be finite, got inf for label 1 in row 1"),
    (csr_of([0.5, -0.25], [0, 1], [0, 1, 2]), "proba must be non-negative, got -0.25 for label 1 in row 1; "),
    (csr_of([0.5, 1.25], [0, 1], [0, 1, 2]), "proba must be at most 1, got 1.25 for label 1 in row 1; "),
    (csr_of([0.5j, 1.0], [0, 1], [0, 1, 2]), "proba must hold real numbers, got entries of type complex128"),
    (sparse.csr_array((0, 4)), r"proba must have at least one row, got shape \(0, 4\)"),
    (sparse.csr_array((2, 0)), r"proba must have at least one column, got shape \(2, 0\)"),
    (np.full((2, 4), 1.5), "proba must be at most 1, got 1.5 for label 0 in row 0"),
    (np.array([[0.5, np.nan]]), "proba must be finite, got nan for label 1 in row 0"),
    (np.zeros((2, 4, 2)), r"proba must have shape \(N, M\), one column for each label, got shape \(2, 4, 2\)"),
    (np.zeros(4), r"proba must have shape \(N, M\), one column for each label, got shape \(4,\)"),
    (da.zeros((2, 4)), "proba must be in memory, got a Dask Array; pass proba.compute"),
]


@pytest.mark.parametrize(("proba", "sentence"), REFUSED)
def test_what_are_no_probabilities_is_refused(proba, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        read_label_rows(proba)


@pytest.mark.parametrize("kind", ["logits", "scores"])
def test_logits_that_are_missing_are_refused(kind):
    with pytest.raises(ValueError, match=f"{kind} must not be NaN, got nan for label 1 in row 1"):
        read_label_rows(csr_of([0.5, np.nan], [0, 1], [0, 1, 2]), kind=kind)


def test_other_kinds_are_refused():
    with pytest.raises(ValueError, match=r"input must be one of .*'scores' for .*, got 'log_proba'"):
        read_label_rows(sparse.csr_array(DENSE), kind="log_proba")


@pytest.mark.parametrize("proba", [sparse.csr_array(DENSE), DENSE])
def test_another_number_of_labels_is_refused(proba):
    with pytest.raises(ValueError, match=r"proba must have 5 columns, one for each label, got shape \(3, 4\)"):
        read_label_rows(proba, 5)


def test_labels_beyond_the_columns_are_refused():
    csr = sparse.csr_array(DENSE)
    csr.indices = np.array([0, 2, 7, 1, 3], dtype=np.int32)
    with pytest.raises(ValueError, match="proba must have labels from 0 to 3, got label 7 in row 0"):
        read_label_rows(csr)


@pytest.mark.parametrize("indptr", [[0, 4, 3, 5], [1, 3, 3, 5], [0, 3, 3, 9], [0, 3, 5]])
def test_broken_rows_are_refused(indptr):
    csr = sparse.csr_array(DENSE)
    csr.indptr = np.array(indptr, dtype=np.int32)
    with pytest.raises(ValueError, match="proba must be a valid CSR array, got an indptr that does not ascend"):
        read_label_rows(csr)


def test_sparse_arrays_of_other_libraries_are_refused():
    class Foreign:
        shape, ndim = (1, 2), 2

        def tocsr(self):
            return self

    with pytest.raises(InvalidType, match=re.escape("proba must be a sparse array of scipy.sparse, got ")):
        read_label_rows(Foreign())


def test_single_rows_without_their_axis_are_refused():
    class Single:
        shape, ndim = (4,), 1

        def tocsr(self):
            return sparse.csr_array(DENSE[:1])

    with pytest.raises(ValueError, match=r"proba must have shape \(N, M\), got shape \(4,\); pass"):
        read_label_rows(Single())


# -------------------------------------------------------------------------------------------------------- true labels

Y = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 1]])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, np.float64, object])
@pytest.mark.parametrize("make", [np.array, pd.DataFrame, np.ma.array, *MATRICES])
def test_indicators_of_every_kind_are_read(dtype, make):
    if dtype is object and make in MATRICES:
        return
    targets = read_label_targets(make(Y.astype(dtype)), 3, 4)
    assert targets.indptr.tolist() == [0, 2, 2, 4]
    assert targets.indices.tolist() == [0, 2, 1, 3]
    assert targets.indices.dtype in (np.int32, np.int64)
    assert targets.indptr.dtype == np.int64


def test_stored_zeros_are_no_labels_and_labels_are_sorted():
    y = csr_of([1, 0, 1, 1, 1], [3, 1, 0, 2, 1], [0, 3, 5])
    targets = read_label_targets(y, 2, 4)
    assert targets.indptr.tolist() == [0, 2, 4]
    assert targets.indices.tolist() == [0, 3, 1, 2]


def test_rows_without_labels():
    targets = read_label_targets(sparse.csr_array((3, 4), dtype=int), 3, 4)
    assert targets.indptr.tolist() == [0, 0, 0, 0]
    assert len(targets.indices) == 0


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (sparse.csr_array(2 * Y), f"{OTHER} 2; pass an indicator matrix"),
        (2 * Y, f"{OTHER} 2; pass an indicator matrix"),
        (Y.astype(str), f"{OTHER} entries of type <U21"),
        (sparse.csr_array(Y * 0.5), f"{OTHER} 0.5"),
        (np.where(Y == 1, np.nan, 0.0), f"{MISSING} in row 0"),
        (np.where(Y == 1, None, 0), f"{MISSING} in row 0"),
        (np.ma.masked_equal(Y, 1), f"{MISSING} in row 0; drop"),
        (sparse.csr_array(np.where(Y == 1, np.nan, 0.0)), f"{MISSING}; drop"),
        (Y[:2], r"y must have the shape of proba, \(3, 4\), got shape \(2, 4\)"),
        (sparse.csr_array(Y.T), r"y must have the shape of proba, \(3, 4\), got shape \(4, 3\)"),
        (Y[:, 0], r"y must have the shape of proba, \(3, 4\), got shape \(3,\)"),
        (csr_of([1, 1], [1, 1], [0, 2, 2, 2], (3, 4)), f"y {TWICE}"),
    ],
)
def test_what_is_no_indicator_is_refused(y, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        read_label_targets(y, 3, 4)


def test_true_labels_beyond_the_columns_are_refused():
    y = sparse.csr_array(Y)
    y.indices = np.array([0, 9, 1, 3], dtype=np.int32)
    with pytest.raises(ValueError, match="y must have labels from 0 to 3, got label 9 in row 0"):
        read_label_targets(y, 3, 4)
