"""Sets of labels of rows: counts, intersections and parts, against dense indicators."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from metricwise.core.label_sets import LabelSets


def random_sets(seed: int, n_rows: int = 30, n_labels: int = 7) -> tuple[np.ndarray, LabelSets]:
    dense = np.random.default_rng(seed).random((n_rows, n_labels)) < 0.3
    csr = sparse.csr_array(dense.astype(np.int8))
    return dense, LabelSets(csr.indptr.astype(np.int64), csr.indices, n_labels)


def as_dense(sets: LabelSets) -> np.ndarray:
    dense = np.zeros((sets.n_rows, sets.n_labels), dtype=bool)
    dense[sets.rows, sets.indices] = True
    return dense


def test_counts_are_column_sums():
    dense, sets = random_sets(0)
    weight = np.random.default_rng(1).random(30)
    np.testing.assert_array_equal(sets.count(), dense.sum(axis=0))
    np.testing.assert_allclose(sets.count(weight), weight @ dense)
    np.testing.assert_array_equal(sets.sizes, dense.sum(axis=1))


@pytest.mark.parametrize("seed", range(5))
def test_common_labels_are_those_of_both(seed):
    (dense, sets), (other_dense, other) = random_sets(seed), random_sets(seed + 100)
    np.testing.assert_array_equal(as_dense(sets.common(other)), dense & other_dense)


def test_common_with_rows_without_labels_is_empty():
    _, sets = random_sets(0)
    nothing = LabelSets(np.zeros(31, dtype=np.int64), np.zeros(0, dtype=np.int32), 7)
    assert sets.common(nothing).indices.tolist() == []
    assert nothing.common(sets).sizes.tolist() == [0] * 30


def test_parts_are_put_together_again():
    dense, sets = random_sets(2)
    order = np.random.default_rng(3).permutation(30)
    parts = [np.sort(order[:11]), np.sort(order[11:])]
    for rows in parts:
        np.testing.assert_array_equal(as_dense(sets.take(rows)), dense[rows])
    joined = LabelSets.joined([(rows, sets.take(rows)) for rows in parts], 30)
    np.testing.assert_array_equal(as_dense(joined), dense)
