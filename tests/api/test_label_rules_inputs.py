"""Labels per row, of probabilities in every form that outputs of two classes have."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import metricwise as mw
from worlds.labels import label_world

NAMES = ["news", "sport", "weather", "music"]
GOAL = {"metric": "f1", "average": "macro", "labels_per_row": 2}


@pytest.fixture(scope="module")
def few_labels():
    proba, y = label_world(300, len(NAMES), stored=3, missed=0.1, dtype=np.float64)
    return proba.toarray(), y.toarray()


def frames(proba, y):
    return pd.DataFrame(proba, columns=NAMES), pd.DataFrame(y, columns=NAMES)


def one_table(proba, y):
    columns = {f"p_{name}": column for name, column in zip(NAMES, proba.T, strict=True)}
    return mw.Table(pa.table({**columns, **dict(zip(NAMES, y.T, strict=True))}), proba_prefix="p_"), NAMES


FORMS = {
    "csr": lambda proba, y: (sparse.csr_array(proba), sparse.csr_array(y)),
    "pandas": frames,
    "polars": lambda proba, y: tuple(map(pl.from_pandas, frames(proba, y))),
    "arrow": lambda proba, y: tuple(map(pa.Table.from_pandas, frames(proba, y))),
    "table": one_table,
    "both classes": lambda proba, y: ([np.c_[1 - p, p] for p in proba.T], y),
    "three axes": lambda proba, y: (np.stack([1 - proba, proba], axis=2), y),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_rule_of_arrays(few_labels, form):
    proba, y = few_labels
    solution, expected = mw.optimize(*FORMS[form](proba, y), **GOAL), mw.optimize(proba, y, **GOAL)
    for name in ("scale", "offset", "factor", "temperature", "bias"):
        np.testing.assert_array_equal(getattr(solution.rule, name), getattr(expected.rule, name))
    assert solution.value == expected.value
    named = form in ("pandas", "polars", "arrow", "table")
    assert solution.rule.output_names == (tuple(NAMES) if named else None)


def test_weights_and_groups_are_columns_of_a_table(few_labels):
    proba, y = few_labels
    rng = np.random.default_rng(1)
    weight, groups = rng.integers(1, 4, len(y)), rng.integers(0, 50, len(y))
    table, names = one_table(proba, y)
    table = mw.Table(table.data.append_column("w", pa.array(weight)).append_column("g", pa.array(groups)), "p_")
    solution = mw.optimize(table, names, sample_weight="w", groups="g", **GOAL)
    expected = mw.optimize(*frames(proba, y), sample_weight=weight, groups=groups, **GOAL)
    assert solution.rule == expected.rule
    assert solution.gain == expected.gain


def test_boolean_labels_stay_boolean(few_labels):
    proba, y = few_labels
    for labels in (y == 1, pd.DataFrame(y == 1)):
        rule = mw.optimize(proba, labels, **GOAL).rule
        assert rule.classes[0].tolist() == [False, True]
        assert rule.predict(proba).dtype == bool
    table, names = one_table(proba, y == 1)
    assert mw.optimize(table, names, **GOAL).rule.classes[0].tolist() == [False, True]


def test_a_probability_of_0_is_the_same_whether_stored_or_not(few_labels):
    proba, y = few_labels
    stored = sparse.csr_array(np.where(proba > 0, proba, 2.0))
    stored.data[stored.data == 2.0] = 0.0
    assert stored.nnz == proba.size
    plain = mw.optimize(sparse.csr_array(proba), y, **GOAL)
    assert mw.optimize(stored, y, **GOAL).rule == plain.rule


def test_other_classes_are_refused(few_labels):
    proba, y = few_labels
    table, names = one_table(proba, np.array(["no", "yes"])[y])
    with pytest.raises(ValueError, match=r"y must have a column of 0 and 1, or of False and True, .* got the classes"):
        mw.optimize(table, names, pos_label="yes", **GOAL)
    with pytest.raises(ValueError, match="with labels_per_row, got a single output"):
        mw.optimize(one_table(proba, y)[0], "news", "f1", labels_per_row=1)


def test_missing_labels_of_a_table_are_refused(few_labels):
    proba, y = few_labels
    table, names = one_table(proba, np.where(np.arange(len(y))[:, None] == 7, np.nan, y))
    with pytest.raises(ValueError, match=r"y must not have missing labels, .* got a missing label in row 7"):
        mw.optimize(table, names, **GOAL)
