"""Rules for very many labels do not depend on how rows are handed in, and their values are those of their decisions."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import f1_score

import metricwise as mw


def label_rows(n_rows=600, n_labels=40, seed=0):
    """Return sparse probabilities and labels; some rows store nothing, and some true labels are not stored."""
    rng = np.random.default_rng(seed)
    stored = rng.random((n_rows, n_labels)) < 5 / n_labels
    stored[:5] = False
    proba = np.where(stored, rng.beta(0.5, 1.5, (n_rows, n_labels)), 0.0).astype(np.float32)
    y = (rng.random((n_rows, n_labels)) < np.maximum(proba, 0.002)).astype(np.int8)
    return sparse.csr_array(proba), sparse.csr_array(y)


def macro_f1(y, decided):
    return f1_score(y.toarray(), decided.toarray(), average="macro", zero_division=0.0)


@pytest.mark.parametrize("labels_per_row", [3, (1, 3), (3, 3)])
def test_the_value_is_that_of_the_decisions(labels_per_row):
    proba, y = label_rows()
    solution = mw.optimize(proba, y, "f1", average="macro", labels_per_row=labels_per_row)
    assert solution.value == pytest.approx(macro_f1(y, solution.rule.predict(proba)), rel=1e-12)


@pytest.mark.parametrize("labels_per_row", [2, 3])
def test_an_array_with_zeros_is_the_sparse_array(labels_per_row):
    proba, y = label_rows()
    from_csr = mw.optimize(proba, y, "f1", average="macro", labels_per_row=labels_per_row)
    from_array = mw.optimize(proba.toarray(), y.toarray(), "f1", average="macro", labels_per_row=labels_per_row)
    assert from_array.rule.metadata.recipe == from_csr.rule.metadata.recipe
    for name in ("scale", "offset", "factor"):
        numbers = getattr(from_csr.rule, name)
        np.testing.assert_allclose(
            getattr(from_array.rule, name), numbers, rtol=1e-9, atol=1e-9 * np.abs(numbers).max()
        )
    assert (from_array.rule.predict(proba) != from_csr.rule.predict(proba)).nnz == 0
    assert any("have probability 0 in proba" in note.text for note in from_array.notes)
    assert any("are not stored in proba" in note.text for note in from_csr.notes)


def test_a_map_of_many_entries_is_fitted_to_the_same_rows():
    proba, y = label_rows(4000, 120)  # more entries in the array than fix a map, not in the sparse one
    fixed = mw.Strategy(confusion="expected", recalibrate=True)
    from_csr = mw.optimize(proba, y, "f1", average="macro", labels_per_row=3, strategy=fixed).rule
    from_array = mw.optimize(proba.toarray(), y.toarray(), "f1", average="macro", labels_per_row=3, strategy=fixed).rule
    assert (from_array.temperature, from_array.bias) == (from_csr.temperature, from_csr.bias)


def test_boolean_labels_stay_boolean():
    proba, y = label_rows(200, 4)
    rule = mw.optimize(proba.toarray(), y.toarray() == 1, "f1", average="macro", labels_per_row=2).rule
    assert rule.classes[0].tolist() == [False, True]
    assert rule.predict(proba.toarray()).dtype == bool
