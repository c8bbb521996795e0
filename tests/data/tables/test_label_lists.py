"""Tables whose rows hold lists of labels are read as the sparse arrays that they hold, and decided batch by batch."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from scipy import sparse

import metricwise as mw
from metricwise.data.open import open_rows
from metricwise.data.row_spec import Frequencies, InTime, RowSpec
from metricwise.data.tables.label_lists import load_list_table
from worlds.labels import label_world

N_LABELS = 30
GOAL = {"metric": "f1", "average": "macro", "labels_per_row": (1, 3)}


def lists(matrix, values, kind):
    """Return a column of lists: the values of the entries of each row."""
    return pa.ListArray.from_arrays(matrix.indptr.astype(np.int32), pa.array(values, kind))


def list_table(proba, y, index_type=None):
    """Return sparse probabilities and labels as an Arrow table of lists, with an id, a weight and a group of rows."""
    rows = np.arange(proba.shape[0])
    return pa.table(
        {
            "id": rows,
            "label": lists(proba, proba.indices, index_type or pa.int32()),
            "p": lists(proba, proba.data, pa.from_numpy_dtype(proba.dtype)),
            "true": lists(y, y.indices, index_type or pa.int32()),
            "weight": rows % 3 + 1.0,
            "group": [f"g{row % 40}" for row in rows],
        }
    )


def table_of(data, **options):
    return mw.Table(data, **{"indices": "label", "values": "p", "n_labels": N_LABELS, **options})


@pytest.fixture(scope="module")
def rows():
    return label_world(400, N_LABELS, stored=6, missed=0.1)


@pytest.fixture(scope="module")
def solution(rows):
    return mw.optimize(*rows, **GOAL)


def in_row_groups(table, folder):
    pq.write_table(table, folder / "rows.parquet", row_group_size=37)
    return folder / "rows.parquet"


def in_files(table, folder):
    for part in range(3):
        pq.write_table(table.slice(part * 150, 150), folder / f"{part}.parquet")
    return str(folder / "*.parquet")


def in_feather(table, folder):
    feather.write_feather(table, folder / "rows.feather", chunksize=50)
    return folder / "rows.feather"


def of_pandas(table, folder):
    return table.to_pandas()


FORMS = {
    "row groups": in_row_groups,
    "files": in_files,
    "feather": in_feather,
    "arrow": lambda table, folder: table,
    "dataset": lambda table, folder: ds.dataset(in_row_groups(table, folder)),
    "pandas": of_pandas,
    "polars": lambda table, folder: pl.from_arrow(table),
    "query": lambda table, folder: pl.scan_parquet(in_row_groups(table, folder)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_rule_of_sparse_arrays(rows, solution, tmp_path, form):
    table = table_of(FORMS[form](list_table(*rows), tmp_path), memory_limit=1 << 20)
    read = mw.optimize(table, "true", **GOAL)
    assert read.rule == solution.rule
    assert (read.value, read.baseline, read.gain) == (solution.value, solution.baseline, solution.gain)


def test_pieces_and_dense_arrays_give_the_same_rule(rows, solution):
    proba, y = rows
    pieces = mw.optimize([proba[:100], proba[100:]], [y[:250], y[250:]], **GOAL)
    dense = mw.optimize(proba.toarray(), y.toarray(), **GOAL)
    assert pieces.rule == solution.rule == dense.rule
    assert pieces.value == solution.value == dense.value


@pytest.mark.parametrize("value_type", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("index_type", [pa.uint8(), pa.int32(), pa.uint64()])
def test_types_of_numbers(rows, index_type, value_type):
    proba, y = rows
    dtype = value_type.to_pandas_dtype()
    proba = sparse.csr_array((proba.data.astype(dtype).astype(np.float32), proba.indices, proba.indptr), proba.shape)
    table = list_table(proba, y, index_type)
    table = table.set_column(2, "p", lists(proba, proba.data.astype(dtype), value_type))
    read = load_list_table(RowSpec(table_of(table), "true"))
    assert read.proba.indices.dtype == read.y.indices.dtype == np.int32
    assert read.proba.dtype == (np.float64 if value_type == pa.float64() else np.float32)
    assert (read.proba != proba).nnz == (read.y != y).nnz == 0


def knows_list_views():
    """Say whether pyarrow has more than the type: older versions cannot tell how large such an array is."""
    try:
        return pa.array([[1]], pa.list_view(pa.int8())).nbytes > 0
    except pa.ArrowTypeError:
        return False


@pytest.mark.parametrize("kind", ["large_list", "fixed_size_list", "list_view"])
def test_types_of_lists(kind):
    if kind == "list_view" and not knows_list_views():
        pytest.skip("this pyarrow does not know the size of list views")
    types = {
        "large_list": pa.large_list,
        "fixed_size_list": lambda inner: pa.list_(inner, 2),
        "list_view": pa.list_view,
    }
    make = types[kind]
    table = pa.table(
        {
            "label": pa.array([[2, 0], [1, 4]], make(pa.int16())),
            "p": pa.array([[0.75, 0.5], [0.25, 1.0]], make(pa.float64())),
        }
    )
    read = load_list_table(RowSpec(table_of(table.slice(0, 2), n_labels=5)))
    assert read.proba.toarray().tolist() == [[0.5, 0.0, 0.75, 0.0, 0.0], [0.0, 0.25, 0.0, 0.0, 1.0]]
    assert read.y is None
    part = load_list_table(RowSpec(table_of(table.slice(1), n_labels=5)))
    assert part.proba.toarray().tolist() == [[0.0, 0.25, 0.0, 0.0, 1.0]]


def test_rows_without_labels_are_empty_lists():
    table = pa.table({"label": [[], []], "p": [[], []], "true": [[], [1]]})
    read = load_list_table(RowSpec(table_of(table, n_labels=3), "true"))
    assert read.proba.shape == (2, 3)
    assert read.proba.nnz == 0
    assert read.y.toarray().tolist() == [[0, 0, 0], [0, 1, 0]]


def test_weights_groups_and_times_are_columns(rows):
    proba, y = rows
    frame = list_table(proba, y)
    weight, groups = frame["weight"].to_numpy(), frame["group"].to_pylist()
    read = mw.optimize(table_of(frame), "true", sample_weight="weight", groups="group", **GOAL)
    expected = mw.optimize(proba, y, sample_weight=weight, groups=groups, **GOAL)
    assert read.rule == expected.rule
    assert read.gain == expected.gain
    loaded = load_list_table(RowSpec(table_of(frame), "true", Frequencies("weight"), InTime("id", 5)))
    assert loaded.counts_rows
    assert loaded.weight.tolist() == weight.tolist()
    assert loaded.time.length == 5
    assert loaded.time.time.tolist() == frame["id"].to_pylist()


@pytest.mark.parametrize("kind", ["logits", "scores"])
def test_logits_and_scores(rows, kind):
    proba, y = rows
    logits = proba.copy()
    logits.data = np.log(proba.data / (1 - proba.data))
    goal = {**GOAL, "input": kind}
    assert mw.optimize(table_of(list_table(logits, y)), "true", **goal).rule == mw.optimize(logits, y, **goal).rule


def test_without_labels(rows):
    proba, y = rows
    table = table_of(list_table(proba, y).drop_columns(["true"]))
    assert mw.optimize(table, None, **GOAL).rule == mw.optimize(proba, None, **GOAL).rule


def test_trade_off_reads_tables(rows):
    proba, y = rows
    options = {"metric": "recall", "against": "precision", "n_points": 3, "labels_per_row": 3}
    read = mw.trade_off(table_of(list_table(proba, y)), "true", **options).to_dict()
    expected = mw.trade_off(proba, y, **options).to_dict()
    assert {name: values.tolist() for name, values in read.items()} == {
        name: values.tolist() for name, values in expected.items()
    }


def test_evaluate_reads_tables(rows, solution):
    proba, y = rows
    frame = list_table(proba, y)
    expected = mw.evaluate(solution.rule, proba, y, sample_weight=frame["weight"].to_numpy())
    for table in (table_of(frame), table_of(frame, n_labels=None)):
        read = mw.evaluate(solution.rule, table, "true", sample_weight="weight")
        assert read.to_dict() == expected.to_dict()
    against = mw.evaluate(solution.rule, table_of(frame), "true", ["precision", "recall"], against=0.3)
    assert against.to_dict() == mw.evaluate(solution.rule, proba, y, ["precision", "recall"], against=0.3).to_dict()


def test_evaluate_reads_tables_with_a_column_for_each_label(rows):
    proba, y = (matrix.toarray()[:, :3] for matrix in rows)
    names = ["a", "b", "c"]
    columns = {f"p_{name}": column for name, column in zip(names, proba.T, strict=True)}
    table = mw.Table(pa.table({**columns, **dict(zip(names, y.T, strict=True))}), "p_")
    rule = mw.optimize(table, names, "f1", average="macro", labels_per_row=2).rule
    expected = mw.evaluate(rule, proba, y)
    assert mw.evaluate(rule, table, names).to_dict() == expected.to_dict()
    assert mw.evaluate(rule, table, names[::-1]).to_dict() == expected.to_dict()


# ---------------------------------------------------------------------------------------------------------- decisions


@pytest.mark.parametrize("labels_per_row", [None, (1, 3)])
@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_decisions_are_lists(rows, tmp_path, ending, labels_per_row):
    proba, y = rows
    rule = mw.LabelRule.from_thresholds(0.3, N_LABELS, labels_per_row=labels_per_row)
    path, output = in_row_groups(list_table(proba, y), tmp_path), tmp_path / f"decisions.{ending}"
    table = table_of(path, n_labels=None, memory_limit=1 << 20)
    assert mw.predict_table(rule, table, output, keep=["id", "true"]) == proba.shape[0]
    written = feather.read_table(output) if ending == "feather" else pq.read_table(output)
    assert written.column_names == ["id", "true", "decision"]
    assert written.schema.field("decision").type == pa.list_(pa.int32())
    decided = rule.predict(proba)
    assert written["decision"].to_pylist() == [row.tolist() for row in np.split(decided.indices, decided.indptr[1:-1])]
    assert written["id"].to_pylist() == list(range(proba.shape[0]))


def test_decisions_in_many_batches(rows, tmp_path):
    proba, y = (sparse.csr_array(sparse.vstack([matrix] * 30)) for matrix in rows)
    rule = mw.LabelRule.top(2, N_LABELS)
    assert mw.predict_table(rule, table_of(list_table(proba, y)), tmp_path / "all.parquet", column="top") == 12_000
    mw.predict_table(rule, table_of(list_table(proba, y), memory_limit=1 << 20), tmp_path / "few.parquet", column="top")
    assert pq.read_table(tmp_path / "few.parquet") == pq.read_table(tmp_path / "all.parquet")
    assert pq.ParquetFile(tmp_path / "few.parquet").num_row_groups > 1


def test_nothing_is_left_of_a_table_that_could_not_be_decided(rows, tmp_path):
    proba, y = rows
    worse = sparse.csr_array(sparse.vstack([proba] * 30))
    worse.data[-3] = 1.5
    table = list_table(worse, sparse.csr_array(sparse.vstack([y] * 30)))
    rule, output = mw.LabelRule.top(2, N_LABELS), tmp_path / "decisions.parquet"
    with pytest.raises(
        ValueError, match=r"'p' must hold probabilities from 0 to 1, got 1.5 for label .* in row 11999;"
    ):
        mw.predict_table(rule, table_of(table, memory_limit=1 << 20), output)
    assert list(tmp_path.iterdir()) == []
    output.write_bytes(b"before")
    with pytest.raises(ValueError, match="use a rule that was fitted to logits or scores"):
        mw.predict_table(rule, table_of(table, memory_limit=1 << 20), output, force=True)
    assert output.read_bytes() == b"before"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"output": "decisions.csv"}, "decisions.csv: CSV cannot hold lists of labels; write .parquet or .feather"),
        ({"column": ["a", "b"]}, r"column must have one distinct name for each column of lists, got \['a', 'b'\]"),
        ({"keep": ["id"], "column": "id"}, "column must not be the name of a column in keep, got 'id'"),
        ({"keep": ["other"]}, "there is no column 'other'"),
        ({"rule": mw.WeightedRule.from_thresholds([0.5] * 3)}, "rule must be for very many labels to decide rows that"),
        ({"rule": mw.LabelRule.top(1, 7)}, "Table: n_labels must be 7, which the rule has, got 30; leave it out"),
        ({"table": {"n_labels": None}, "rule": mw.LabelRule.top(1, 20)}, "must have labels from 0 to 19, got label 2"),
    ],
)
def test_decisions_that_are_refused(rows, tmp_path, options, match):
    options = {"rule": mw.LabelRule.top(2, N_LABELS), "output": "decisions.parquet", "table": {}, **options}
    rule, output = options.pop("rule"), tmp_path / options.pop("output")
    table = table_of(list_table(*rows), **options.pop("table"))
    with pytest.raises(ValueError, match=match):
        mw.predict_table(rule, table, output, **options)
    assert list(tmp_path.iterdir()) == []


# ----------------------------------------------------------------------------------------------------------- refusals

GOOD = {"label": [[0, 2], [], [1]], "p": [[0.5, 0.25], [], [1.0]], "true": [[2], [], [0, 1]], "w": [1.0, 2.0, 1.0]}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            {"label": [[0, 2], None, [1]]},
            "'label' must hold a list in every row, got none in row 1; drop such rows, or",
        ),
        ({"p": [[0.5, None], [], [1.0]]}, "'p' must not have nulls in its lists, got one in row 0"),
        ({"true": [[2], [], [0, None]]}, "'true' must not have nulls in its lists, got one in row 2"),
        ({"true": [[2], None, [0]]}, "'true' must hold a list in every row, got none in row 1"),
        (
            {"p": [[0.5, 0.25], [0.5], [1.0]]},
            "columns 'label' and 'p' must have lists of equal length, got 0 and 1 entries in row 1",
        ),
        (
            {"label": [[0, 2], [], [3]]},
            "'label' must have labels from 0 to 2, got label 3 in row 2; labels are counted",
        ),
        ({"label": [[0, -1], [], [1]]}, "'label' must have labels from 0 to 2, got label -1 in row 0"),
        ({"true": [[2], [], [7, 1]]}, "'true' must have labels from 0 to 2, got label 7 in row 2"),
        (
            {"label": [[2, 2], [], [1]]},
            "'label' must have every label of a row once, got label 2 more than once in row 0",
        ),
        (
            {"true": [[2], [], [1, 0, 1]]},
            "'true' must have every label of a row once, got label 1 more than once in row 2",
        ),
        ({"p": [[0.5, 1.5], [], [1.0]]}, "'p' must hold probabilities from 0 to 1, got 1.5 for label 2 in row 0; pass"),
        (
            {"p": [[0.5, 0.5], [], [np.nan]]},
            "'p' must hold probabilities from 0 to 1, got nan for label 1 in row 2; drop",
        ),
        ({"label": ["0 2", "", "1"]}, "'label' must hold lists of labels, got type string"),
        ({"label": [[0.5, 2.0], [], [1.0]]}, "'label' must hold lists of labels, got type list"),
        ({"p": [["a", "b"], [], ["c"]]}, "'p' must hold lists of numbers, got type list"),
        ({"w": ["a", "b", "c"]}, "the column 'w' must hold numbers, got type string"),
        ({"true": [2, 0, 1]}, "'true' must hold lists of labels, got type int64"),
    ],
)
def test_columns_that_are_refused(change, match):
    table = table_of(pa.table({**GOOD, **change}), n_labels=3)
    with pytest.raises(ValueError, match=f"the table: .*{match}"):
        mw.optimize(table, "true", sample_weight="w", **{**GOAL, "labels_per_row": 1})


def test_rows_in_messages_are_those_of_the_table(rows):
    proba, y = (sparse.csr_array(sparse.vstack([matrix] * 30)) for matrix in rows)
    proba.data[-1] = np.nan
    with pytest.raises(ValueError, match=r"got nan for label .* in row 11999"):
        mw.optimize(table_of(list_table(proba, y), memory_limit=1 << 20), "true", **GOAL)


def test_labels_in_any_order_are_sorted():
    table = pa.table({**GOOD, "label": [[2, 0], [], [1]], "true": [[2], [], [1, 0]]})
    read = load_list_table(RowSpec(table_of(table, n_labels=3), "true"))
    assert read.proba.toarray().tolist() == [[0.25, 0.0, 0.5], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert read.y.toarray().tolist() == [[0, 0, 1], [0, 0, 0], [1, 1, 0]]
    assert read.y.has_sorted_indices
    assert read.proba.has_sorted_indices


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"y": ["true"]}, "y must be the name of the column of lists of true labels"),
        ({"y": "other"}, "there is no column 'other'"),
        ({"sample_weight": [1, 2, 3]}, "sample_weight must be the name of a column of the table"),
        ({"groups": [1, 2, 3]}, "groups must be the name of a column of the table"),
    ],
)
def test_arguments_that_are_refused(arguments, match):
    with pytest.raises(ValueError, match=f"optimize: {match}|the table: {match}"):
        mw.optimize(table_of(pa.table(GOOD), n_labels=3), **{"y": "true", **GOAL, "labels_per_row": 1, **arguments})


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"indices": "label"}, r"mw.Table\(path, indices=...\) needs mw.Table\(path, values=...\), which is not given"),
        ({"values": "p"}, r"mw.Table\(path, values=...\) needs mw.Table\(path, indices=...\), which is not given"),
        ({"n_labels": 5}, r"n_labels=...\) needs mw.Table\(path, indices=...\), which is not given"),
        ({"indices": 3, "values": "p"}, "indices must be the name of a column of lists, got 3"),
        (
            {"indices": "label", "values": "p", "n_labels": 0},
            "n_labels must be a whole number from 1 to 16,777,216, got 0",
        ),
        ({"indices": "label", "values": "p", "n_labels": True}, "n_labels must be a whole number .* got True"),
        (
            {"indices": "label", "values": "p", "proba": "p"},
            r"proba=...\) must be left out with mw.Table\(path, indices",
        ),
        ({"indices": "label", "values": "p", "proba_prefix": "p"}, r"proba_prefix=...\) must be left out with"),
    ],
)
def test_options_of_tables_that_are_refused(options, match):
    with pytest.raises(ValueError, match=f"Table: .*{match}"):
        mw.Table(pa.table(GOOD), **options)


def test_the_number_of_labels_is_needed_to_fit():
    with pytest.raises(
        ValueError, match=r"the number of labels must be given to fit a rule .* pass mw.Table\(path, n_la"
    ):
        mw.optimize(table_of(pa.table(GOOD), n_labels=None), "true", **GOAL)


def test_csv_has_no_lists(tmp_path):
    pd.DataFrame({"label": ["[0, 2]"], "p": ["[0.5, 0.25]"], "true": ["[2]"]}).to_csv(tmp_path / "rows.csv")
    with pytest.raises(ValueError, match=r"rows\.csv: CSV has no lists; use Parquet, Feather or a data frame"):
        mw.optimize(table_of(tmp_path / "rows.csv"), "true", **GOAL)


def test_a_table_without_rows(tmp_path):
    with pytest.raises(ValueError, match="the table: the table must have at least one row, got none"):
        mw.optimize(table_of(pa.table(GOOD).slice(3), n_labels=3), "true", **GOAL)
    with pytest.raises(ValueError, match="the table: the table must have at least one row, got none"):
        mw.predict_table(
            mw.LabelRule.top(1, 3), table_of(pa.table(GOOD).slice(3), n_labels=3), tmp_path / "never.parquet"
        )


def test_lists_are_refused_where_one_label_is_expected(rows):
    frame = list_table(*rows)
    with pytest.raises(
        ValueError, match=r"'true' must hold one label in every row, got type list.* indices=...\) and "
    ):
        mw.optimize(mw.Table(frame), "true", "f1")
    with pytest.raises(ValueError, match=r"lists of labels .* are only for optimize, trade_off, evaluate and predict"):
        open_rows(RowSpec(table_of(frame), "true"))
