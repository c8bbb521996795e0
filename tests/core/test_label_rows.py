"""Rows of very many labels: parts of them, the order by which rows are filled up, and numbers of labels per row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from metricwise.core.label_rows import LabelRows, fill_labels, read_labels_per_row
from metricwise.data.label_rows import read_label_rows
from profiles import examples


def sparse_rows(seed, n_rows=30, n_labels=12, share=0.3):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((n_rows, n_labels)) < share, rng.random((n_rows, n_labels)), 0.0)
    dense[rng.random(n_rows) < 0.2] = 0.0  # rows that store nothing
    return dense


def dense_of(rows):
    labels = np.arange(rows.n_entries) % rows.n_labels if rows.indices is None else rows.indices
    return csr_array((rows.values, labels, rows.indptr), shape=(rows.n_rows, rows.n_labels)).toarray()


@given(st.integers(0, 1000), st.integers(1, 40), st.booleans())
@examples(60)
def test_chunks_hold_all_rows_in_order_and_few_entries(seed, most, is_dense):
    dense = sparse_rows(seed)
    rows = LabelRows.of_array(dense) if is_dense else read_label_rows(csr_array(dense))
    parts = list(rows.chunks(most))
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == rows.n_rows
    for part in parts:
        own = rows.take(part)
        np.testing.assert_array_equal(dense_of(own), dense[part])
        assert own.n_entries <= most or own.n_rows == 1
        assert own.values.base is not None  # a view


def test_rows_without_entries_are_one_chunk():
    rows = read_label_rows(csr_array((5, 3)))
    assert list(rows.chunks(1)) == [slice(0, 5)]
    assert rows.longest == 0


def test_weights_go_with_their_rows():
    rows = LabelRows.of_array(np.ones((4, 2)), weight=np.arange(4.0))
    assert rows.take(slice(1, 3)).weight.tolist() == [1.0, 2.0]
    assert rows.block().weight is rows.weight


def test_blocks_take_other_values_and_some_rows():
    rows = LabelRows.of_array(np.full((3, 2), 0.25, dtype=np.float16))
    assert rows.values.dtype == np.float32
    block = rows.block(-rows.values, np.array([2, 0]))
    assert block.values.tolist() == [-0.25] * 6
    assert (block.n_read, block.n_labels, block.indices) == (2, 2, None)


@given(st.integers(0, 1000), st.integers(0, 60), st.integers(1, 60))
@examples(100)
def test_rows_are_filled_up_by_offset_and_then_by_label(seed, count, n_labels):
    offset = np.random.default_rng(seed).integers(-3, 3, n_labels) / 4
    expected = sorted(range(n_labels), key=lambda m: (-offset[m], m))[:count]
    assert fill_labels(offset, count).tolist() == expected


@pytest.mark.parametrize(
    ("value", "budget"),
    [(None, None), (3, (0, 3)), (np.int64(2), (0, 2)), ((1, 3), (1, 3)), ([3, 3], (3, 3)), (np.array([0, 1]), (0, 1))],
)
def test_numbers_of_labels(value, budget):
    assert read_labels_per_row(value, 5) == budget


@pytest.mark.parametrize("value", [0, -1, True, 2.0, "3", (3, 1), (1,), (1, 2, 3), (0, 0), (-1, 2), (1, True), {}])
def test_what_is_no_number_of_labels_is_refused(value):
    with pytest.raises(
        ValueError, match=r"labels_per_row must be the largest number of labels of a row, or the .*, got"
    ):
        read_labels_per_row(value)


def test_more_labels_than_there_are_are_refused():
    with pytest.raises(ValueError, match=r"labels_per_row must be at most the number of labels, 4, got \(1, 5\)"):
        read_labels_per_row((1, 5), 4)
