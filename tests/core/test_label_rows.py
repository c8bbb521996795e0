"""Rows of very many labels: parts of them, the order by which rows are filled up, and numbers of labels per row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from metricwise.core.label_rows import LabelRows, read_labels_per_row
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


def test_more_labels_than_there_are_are_refused():
    with pytest.raises(ValueError, match=r"labels_per_row must be at most the number of labels, 4, got \(1, 5\)"):
        read_labels_per_row((1, 5), 4)
