"""Tables in batches: the answer of arrays in memory, from every format, and a sentence where a file is broken."""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import metricwise as mw
import worlds
from laws.engine_promises import check_agreement
from metricwise.data.tables import formats, reading
from metricwise.data.tables.reading import open_table

RECIPE = {"confusion": "labels", "recalibrate": False}
CLASSES = np.array(["high", "low", "mid"])


def draw(n=500, seed=0):
    eta, y = worlds.multiclass(n, [0.4, 0.7, 1.0], sharpen=2, seed=seed)
    return eta.round(6), y


def table_of(eta, y, names=CLASSES, target="grade", **others):
    columns = {f"p_{name}": eta[:, k] for k, name in enumerate(names)}
    return pa.table({"id": np.arange(len(y)), **columns, target: np.asarray(names)[y], **others})


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Batches of some rows, so that small tables have several."""
    monkeypatch.setattr(reading, "_MIN_BATCH", 64)
    monkeypatch.setattr(reading, "_MAX_BATCH", 64)


def write(table, folder, form):
    """Write a table in two parts, or give it as the object that a form is."""
    half = table.num_rows // 3
    parts = [table.slice(0, half), table.slice(half)]
    if form in ("parquet", "feather", "csv"):
        for at, part in enumerate(parts):
            path = folder / f"part{at}.{form}"
            {
                "parquet": lambda t, p: pq.write_table(t, p, row_group_size=50),
                "feather": pa.feather.write_feather,
                "csv": pa.csv.write_csv,
            }[form](part, str(path))
        return str(folder / f"*.{form}")
    for at, part in enumerate(parts):
        pq.write_table(part, folder / f"part{at}.parquet")
    return {
        "folder": lambda: folder,
        "list": lambda: [folder / "part0.parquet", folder / "part1.parquet"],
        "dataset": lambda: pa.dataset.dataset(folder),
        "arrow": lambda: table,
        "pandas": table.to_pandas,
        "polars": lambda: pl.from_arrow(table),
        "lazy": lambda: pl.scan_parquet(folder / "*.parquet"),
        "duckdb": lambda: duckdb.read_parquet(f"{folder}/*.parquet"),
    }[form]()


FORMS = ["parquet", "feather", "csv", "folder", "list", "dataset", "arrow", "pandas", "polars", "lazy", "duckdb"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_answer_of_arrays(tmp_path, form, capsys):
    eta, y = draw()
    whole = mw.optimize(eta, CLASSES[y], "macro_f1")
    found = mw.optimize(mw.Table(write(table_of(eta, y), tmp_path, form), proba_prefix="p_"), "grade", "macro_f1")
    assert found.value == pytest.approx(whole.value, abs=1e-12)
    assert found.gain.estimate == pytest.approx(whole.gain.estimate, abs=1e-12)
    assert found.n_passes == whole.n_passes
    np.testing.assert_array_equal(found.rule.predict(eta), whole.rule.predict(eta))
    assert capsys.readouterr().err == ""


def test_a_bare_path_and_columns_that_are_guessed(tmp_path, capsys):
    eta, y = draw()
    path = write(table_of(eta, y), tmp_path, "parquet")
    whole = mw.optimize(eta, CLASSES[y], "macro_f1", strategy=mw.Strategy(**RECIPE))
    assert mw.optimize(path, "grade", "macro_f1", strategy=mw.Strategy(**RECIPE)).value == whole.value
    assert "by the prefix 'p_'" in capsys.readouterr().err
    frame = table_of(eta, y).select(["p_high", "p_low", "p_mid", "grade"]).rename_columns([*CLASSES, "grade"])
    assert (
        mw.optimize(frame, "grade", "macro_f1", strategy=mw.Strategy(**RECIPE)).value == whole.value
    )  # named like the classes: no guess
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", ["parquet", "csv", "lazy"])
def test_weights_groups_and_missing_labels(tmp_path, form):
    eta, y = draw(seed=1)
    rng = np.random.default_rng(1)
    weight, groups = rng.integers(1, 4, len(y)), rng.integers(0, 50, len(y)).astype(str)
    labels = np.where(rng.random(len(y)) < 0.2, None, CLASSES[y])
    whole = mw.optimize(eta, labels, "macro_f1", sample_weight=weight, groups=groups)
    table = table_of(eta, y).set_column(4, "grade", pa.array(labels)).append_column("w", pa.array(weight))
    table = table.append_column("who", pa.array(groups))
    found = mw.optimize(
        mw.Table(write(table, tmp_path, form), proba_prefix="p_"), "grade", "macro_f1", sample_weight="w", groups="who"
    )
    assert found.value == pytest.approx(whole.value, abs=1e-12)
    assert found.gain.estimate == pytest.approx(whole.gain.estimate, abs=0.02)  # groups may be dealt in another order


@pytest.mark.parametrize("kind", ["int", "float", "bool", "ordered", "dates"])
def test_labels_of_every_kind(tmp_path, kind):
    eta, y = draw(seed=2)
    k = 2 if kind == "bool" else 3
    if kind == "bool":
        eta, y = np.stack([eta[:, 0], 1 - eta[:, 0]], axis=1), np.minimum(y, 1)
    labels = {
        "int": np.array([1, 2, 3]),
        "float": np.array([0.5, 1.0, 1.5]),
        "bool": np.array([False, True]),
        "ordered": np.array(["low", "mid", "top"]),
        "dates": np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]"),
    }[kind]
    column = pd.Series(labels[y])
    if kind == "ordered":
        column = column.astype(pd.CategoricalDtype(["low", "mid", "top"], ordered=True))
    metric = "accuracy" if kind in ("bool", "dates") else "quadratic_kappa"
    names = [f"p_{label}" for label in labels.tolist()]
    whole = mw.optimize(eta, labels[y] if kind == "dates" else column, metric, strategy=mw.Strategy(**RECIPE))
    table = pa.table(
        {**{names[c]: eta[:, c] for c in range(k)}, "grade": pa.array(labels[y]) if kind == "dates" else column}
    )
    path = write(table, tmp_path, "parquet")
    found = mw.optimize(mw.Table(path, proba_prefix="p_"), "grade", metric, strategy=mw.Strategy(**RECIPE))
    assert found.value == whole.value
    assert [str(label) for label in found.rule.classes[0]] == [str(label) for label in whole.rule.classes[0]]


def test_binary_with_one_column(tmp_path):
    rng = np.random.default_rng(3)
    p = rng.random(300).astype(np.float32)
    y = np.where(rng.random(300) < p, "fraud", "fine")
    whole = mw.optimize(p, y, "f1", classes=["fine", "fraud"], pos_label="fraud", strategy=mw.Strategy(**RECIPE))
    pq.write_table(pa.table({"score": p, "label": y}), tmp_path / "a.parquet")
    table = mw.Table(tmp_path / "a.parquet", proba="score")
    assert mw.optimize(table, "label", "f1", pos_label="fraud", strategy=mw.Strategy(**RECIPE)).value == whole.value
    with pytest.raises(ValueError, match=r"the single column .* is ambiguous: 'fine' or 'fraud'"):
        mw.optimize(table, "label", "f1", strategy=mw.Strategy(**RECIPE))


@pytest.mark.parametrize("form", ["singles", "columns"])
def test_several_outputs(tmp_path, form):
    rng = np.random.default_rng(4)
    p = rng.random((200, 2))
    y = (rng.random((200, 2)) < p).astype(int)
    labels = {"news": y[:, 0], "sport": y[:, 1]}
    if form == "singles":
        table, given = pa.table({"p_news": p[:, 0], "p_sport": p[:, 1], **labels}), {"proba": ["p_news", "p_sport"]}
        eta = p
    else:
        own = {f"{n}={c}": (p[:, m] if c else 1 - p[:, m]) for m, n in enumerate(labels) for c in (0, 1)}
        table, given = pa.table({**own, **labels}), {}
        eta = [np.stack([1 - c, c], axis=1) for c in p.T]
    whole = mw.optimize(eta, pd.DataFrame(labels), "f1", average="macro", strategy=mw.Strategy(**RECIPE))
    path = write(table, tmp_path, "parquet")
    found = mw.optimize(
        mw.Table(path, **given), ["news", "sport"], "f1", average="macro", strategy=mw.Strategy(**RECIPE)
    )
    assert found.value == pytest.approx(whole.value, abs=1e-12)
    assert found.rule.output_names == ("news", "sport")
    n_rows = mw.predict_table(found.rule, mw.Table(path, **given), tmp_path / "decided.csv")
    decided = pd.read_csv(tmp_path / "decided.csv")
    assert n_rows == 200
    np.testing.assert_array_equal(decided[["news", "sport"]], whole.rule.predict(eta))


def test_without_labels(tmp_path):
    eta, y = draw()
    whole = mw.optimize(eta, None, "macro_f1", classes=list(CLASSES))
    table = mw.Table(write(table_of(eta, y), tmp_path, "parquet"), proba_prefix="p_")
    assert mw.optimize(table, None, "macro_f1", classes=list(CLASSES)).value == pytest.approx(whole.value, abs=1e-9)
    with pytest.raises(ValueError, match=r"classes must be given without y"):
        mw.optimize(table, None, "macro_f1")


def test_arrays_in_files_are_mapped(tmp_path):
    eta, y = draw()
    np.save(tmp_path / "proba.npy", eta.astype(np.float32))
    np.save(tmp_path / "y.npy", y)
    whole = mw.optimize(eta.astype(np.float32), y, "macro_f1", strategy=mw.Strategy(**RECIPE))
    assert (
        mw.optimize(tmp_path / "proba.npy", tmp_path / "y.npy", "macro_f1", strategy=mw.Strategy(**RECIPE)).value
        == whole.value
    )
    mapped = np.memmap(tmp_path / "raw", dtype=np.float64, mode="w+", shape=eta.shape)
    mapped[:] = eta
    assert (
        mw.optimize(mapped, y, "accuracy", strategy=mw.Strategy(**RECIPE)).value
        == mw.optimize(eta, y, "accuracy", strategy=mw.Strategy(**RECIPE)).value
    )
    (tmp_path / "y.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(ValueError, match=r"y.npy: must be an array of numbers or text"):
        mw.optimize(tmp_path / "proba.npy", tmp_path / "y.npy", "macro_f1")


@pytest.mark.parametrize("confusion", ["labels", "expected", "blended"])
def test_counts_walks_and_samples_agree_with_memory(confusion):
    # The law of all engines, on fewer examples: a pass opens a file.
    for seed, layout in enumerate(["binary", "list", "list"]):  # columns are an array for each output
        options = (seed % 2 == 0, seed % 2 == 1, seed == 2)
        for of_logits in (False, True):
            check_agreement("parquet", confusion, seed, layout, options, of_logits=of_logits)


class SqliteRows(reading.TableReader):
    """The rows of a SQLite query: what an engine with columns must be."""

    title = "the query"

    def __init__(self, connection, query):
        self.connection, self.query = connection, query
        self.names = tuple(column[0] for column in connection.execute(query).description)

    def scan(self, columns, n_rows):
        quoted = ", ".join(f'"{name}"' for name in columns)
        cursor = self.connection.execute(f"select {quoted} from ({self.query})")
        types = [None] * len(columns)
        while rows := cursor.fetchmany(n_rows):
            arrays = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), types, strict=True)]
            types = [array.type for array in arrays]  # a column must have the same type in every batch
            yield pa.record_batch(arrays, list(columns))


def test_a_reader_of_ones_own_is_an_engine():
    eta, y = draw()
    whole = mw.optimize(eta, CLASSES[y], "macro_f1", strategy=mw.Strategy(**RECIPE))
    with closing(sqlite3.connect(":memory:")) as connection:
        table_of(eta, y).to_pandas().to_sql("oof", connection, index=False)
        table = mw.Table(SqliteRows(connection, "select * from oof order by id"), proba_prefix="p_")
        assert mw.optimize(table, "grade", "macro_f1", strategy=mw.Strategy(**RECIPE)).value == whole.value
        named = ", ".join(f'"p_{name}" as "{name}"' for name in CLASSES)
        reader = SqliteRows(connection, f"select grade, {named} from oof order by id")
        assert mw.optimize(reader, "grade", "macro_f1", strategy=mw.Strategy(**RECIPE)).value == whole.value


def test_a_format_is_a_class_and_an_ending(tmp_path, monkeypatch):
    class Orc(formats.FileFormat):
        title = "ORC"

        def schema(self, path):
            return pyarrow.orc.ORCFile(path).schema

        def dataset_format(self, schema):
            return "orc"

        def writer(self, file, schema):
            opened = pyarrow.orc.ORCWriter(file)
            return SimpleNamespace(write_table=opened.write, close=opened.close)

    monkeypatch.setitem(formats.FORMATS, ".orc", Orc)
    eta, y = draw()
    rule = mw.optimize(eta, CLASSES[y], "macro_f1", strategy=mw.Strategy(**RECIPE)).rule
    pyarrow.orc.write_table(table_of(eta, y), tmp_path / "rows.orc")
    assert call(tmp_path / "rows.orc").rule.predict(eta).tolist() == rule.predict(eta).tolist()
    mw.predict_table(rule, mw.Table(tmp_path / "rows.orc", proba_prefix="p_"), tmp_path / "decided.orc", column="call")
    decided = pyarrow.orc.read_table(tmp_path / "decided.orc").column("call").to_pylist()
    assert decided == rule.predict(eta).tolist()


# -------------------------------------------------------------------------------------------------- from table to table


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv"])
@pytest.mark.parametrize("randomized", [False, True])
def test_decisions_from_table_to_table(tmp_path, ending, randomized):
    eta, y = draw()
    recipe = {"confusion": "expected", "recalibrate": False, "randomized": randomized}
    rule = mw.optimize(eta, CLASSES[y], "min_recall", strategy=mw.Strategy(**recipe)).rule
    path, output = write(table_of(eta, y), tmp_path, "parquet"), tmp_path / "out" / f"decided.{ending}"
    output.parent.mkdir()
    assert mw.predict_table(rule, mw.Table(path, proba_prefix="p_"), output, keep=["id"], column="call") == len(y)
    read = {"parquet": pd.read_parquet, "feather": pd.read_feather, "csv": pd.read_csv}[ending](output)
    assert list(read.columns) == ["id", "call"]
    np.testing.assert_array_equal(read["call"], rule.predict(eta))
    np.testing.assert_array_equal(read["id"], np.arange(len(y)))
    with pytest.raises(FileExistsError, match=r"the file exists"):
        mw.predict_table(rule, path, output)
    assert mw.predict_table(rule, mw.Table(path, proba_prefix="p_"), output, force=True) == len(y)


def test_nothing_is_left_of_a_table_that_could_not_be_written(tmp_path, monkeypatch):
    eta, y = draw()
    rule = mw.optimize(eta, CLASSES[y], "macro_f1", strategy=mw.Strategy(**RECIPE)).rule
    table = mw.Table(table_of(eta, y), proba_prefix="p_")
    output = tmp_path / "out" / "decided.parquet"
    output.parent.mkdir()
    output.write_text("old")
    own = pq.ParquetWriter.write_table
    written = []

    def full(self, batch, *args, **kwargs):
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        written.append(batch.num_rows)
        return own(self, batch, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(OSError, match=r"No space left on device; nothing was written to it.*decided.parquet"):
        mw.predict_table(rule, table, output, force=True)
    monkeypatch.undo()
    eta[150, 0] = np.nan
    with pytest.raises(ValueError, match=r"predict_table: proba must be finite, got NaN or infinity in row 150"):
        mw.predict_table(rule, mw.Table(table_of(eta, y), proba_prefix="p_"), output, force=True)
    assert output.read_text() == "old"
    assert list(output.parent.iterdir()) == [output]


def test_a_device_that_is_full(monkeypatch):
    if not Path("/dev/full").exists():
        pytest.skip("there is no such device")
    from metricwise.data.tables import writing

    monkeypatch.setattr(writing, "replacing", lambda path: open("/dev/full", "wb", buffering=0))  # noqa: PTH123, SIM115  # closed by the writer
    table = pa.table({"a": np.arange(1000)})
    full = pytest.raises(OSError, match=r"No space left on device; nothing was written")
    with full, writing.TableWriter("x.parquet") as writer:
        writer.write({"a": table.column("a")})


# ------------------------------------------------------------------------------------------------------ what is refused


def call(path, **others):
    return mw.optimize(
        mw.Table(path, proba_prefix="p_"), "grade", "macro_f1", **{**others, "strategy": mw.Strategy(**RECIPE)}
    )


def test_a_truncated_file(tmp_path):
    path = write(table_of(*draw()), tmp_path, "parquet")
    broken = tmp_path / "part1.parquet"
    broken.write_bytes(broken.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"part1.parquet: this is not a complete Parquet file"):
        call(path)


def test_a_page_that_is_broken_is_noticed_in_the_middle_of_a_pass(tmp_path):
    table = table_of(*draw())
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100, compression="snappy", use_dictionary=False)
    column = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(3).column(2)
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    at = column.data_page_offset
    content[at : at + 200] = bytes(200)
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"a.parquet: this is not a complete Parquet file"):
        call(tmp_path / "a.parquet")


def test_text_of_another_encoding(tmp_path):
    (tmp_path / "latin.csv").write_bytes("p_high,grade\n0.1,è\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin.csv: text must be in UTF-8"):
        call(tmp_path / "latin.csv")


def test_a_missing_column(tmp_path):
    eta, y = draw()
    path = write(table_of(eta, y), tmp_path, "parquet")
    with pytest.raises(ValueError, match=r"there is no column 'stars'; the columns are 'id', 'p_high'"):
        mw.optimize(path, "stars", "macro_f1")
    pq.write_table(table_of(eta, y).drop_columns(["p_low"]), tmp_path / "part1.parquet")
    with pytest.raises(ValueError, match=r"part1.parquet: there is no column 'p_low', which other files have"):
        call(path)
    with pytest.raises(ValueError, match=r"part1.parquet: there is no column for the class 'low'"):
        call(tmp_path / "part1.parquet")
    with pytest.raises(ValueError, match=r"there are no such files"):
        call(tmp_path / "*.feather")


def test_a_schema_that_differs_between_files(tmp_path):
    eta, y = draw()
    path = write(table_of(eta, y), tmp_path, "parquet")
    whole = call(path)
    other = pq.read_table(tmp_path / "part1.parquet")
    narrow = other.set_column(1, "p_high", other.column(1).cast(pa.float32())).select(other.column_names[::-1])
    pq.write_table(narrow, tmp_path / "part1.parquet")
    assert call(path).value == pytest.approx(whole.value, abs=0.01)  # numbers are numbers, in whatever order
    pq.write_table(other.set_column(4, "grade", pa.array(np.arange(other.num_rows))), tmp_path / "part1.parquet")
    with pytest.raises(
        ValueError,
        match=r"part1.parquet: the column 'grade' must have the same type in all files, got int64, but string in",
    ):
        call(path)
    pq.write_table(other.set_column(1, "p_high", pa.array(["x"] * other.num_rows)), tmp_path / "part1.parquet")
    with pytest.raises(
        ValueError, match=r"part1.parquet: the column 'p_high' must have the same type in all files, got string"
    ):
        call(path)


def test_a_batch_with_nan_and_one_with_a_null(tmp_path):
    eta, y = draw()
    eta[431, 2] = np.nan
    with pytest.raises(ValueError, match=r"optimize: proba must be finite, got NaN or infinity in row 431"):
        call(write(table_of(eta, y), tmp_path, "parquet"))
    column = pa.array([None if at == 77 else float(value) for at, value in enumerate(draw()[0][:, 0])])
    table = table_of(*draw()).set_column(1, "p_high", column)
    with pytest.raises(ValueError, match=r"optimize: proba must be finite, got NaN or infinity in row 77"):
        call(table)


def test_a_class_that_first_appears_late_and_empty_parts(tmp_path):
    eta, y = draw()
    order = np.argsort(y, kind="stable")
    whole = mw.optimize(eta[order], CLASSES[y[order]], "macro_f1", strategy=mw.Strategy(**RECIPE))
    table = table_of(eta[order], y[order])
    for at, (start, end) in enumerate([(0, 0), (0, 200), (200, 200), (200, 500), (500, 500)]):
        pq.write_table(table.slice(start, end - start), tmp_path / f"part{at}.parquet")
    assert call(tmp_path).value == whole.value
    for at in (1, 3):
        (tmp_path / f"part{at}.parquet").unlink()
    with pytest.raises(ValueError, match=r"part0.parquet and 2 more: the table must have at least one row"):
        call(tmp_path)


@pytest.mark.parametrize("when", ["between passes", "in the middle of one"])
def test_a_file_that_changes(tmp_path, when, monkeypatch):
    table = table_of(*draw())
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=50)
    scans, own = [], formats.scan_dataset

    def scan(source, names, n_rows):
        scans.append(names)
        for at, batch in enumerate(own(source, names, n_rows)):
            if len(scans) == 4 and at == 2 and when == "in the middle of one":
                os.utime(path)
            yield batch
        if len(scans) == 3 and when == "between passes":
            time.sleep(0.01)
            pq.write_table(table.slice(0, 400), path)

    monkeypatch.setattr(formats, "scan_dataset", scan)
    with pytest.raises(RuntimeError, match=r"a.parquet: the file has changed since it was first read.*call again"):
        call(path)


def test_rows_that_come_in_another_order_every_time(monkeypatch):
    eta, y = draw(30_000)
    table = table_of(eta, y)
    rng = np.random.default_rng(0)
    own = reading._Frame.scan

    def shuffled(self, columns, n_rows):
        order = rng.permutation(table.num_rows)
        self._data = table.take(pa.array(order))
        return own(self, columns, n_rows)

    monkeypatch.setattr(reading._Frame, "scan", shuffled)
    monkeypatch.setattr(reading, "_MIN_BATCH", 1 << 14)
    monkeypatch.setattr(reading, "_MAX_BATCH", 1 << 14)
    with pytest.raises(RuntimeError, match=r"a different order in every pass.*sort the query"):
        mw.optimize(mw.Table(table, proba_prefix="p_"), "grade", "macro_f1")


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"y": np.zeros(5)}, TypeError, r"y must be the name of the column of labels, or a list of names"),
        ({"y": ["grade", "grade"]}, ValueError, r"y must name each column only once"),
        ({"sample_weight": np.ones(5)}, TypeError, r"sample_weight must be the name of a column"),
        ({"groups": mw.InTime("id")}, ValueError, r"InTime needs all rows in memory"),
        ({"y": "id"}, ValueError, r"no columns hold the probabilities|there is no column for the class"),
    ],
)
def test_refusals(change, error, match):
    table = table_of(*draw())
    with pytest.raises(error, match=match):
        mw.optimize(**{"proba": mw.Table(table, proba_prefix="p_"), "y": "grade", "metric": "macro_f1", **change})


@pytest.mark.parametrize("form", ["parquet", "feather", "csv"])
def test_weights_that_are_no_numbers(form, tmp_path):
    eta, y = draw()
    table = table_of(eta, y).append_column("w", pa.array(["heavy"] * len(y)))
    with pytest.raises(ValueError, match=r"column 'w' must hold numbers"):
        mw.optimize(mw.Table(write(table, tmp_path, form), proba_prefix="p_"), "grade", "accuracy", sample_weight="w")


def test_what_is_no_table(tmp_path):
    with pytest.raises(ValueError, match=r"memory_limit must be a number of bytes of at least 1048576, got 10"):
        mw.Table("a.parquet", memory_limit=10)
    reader = pa.RecordBatchReader.from_batches(pa.schema([]), [])
    with pytest.raises(TypeError, match=r"which is exhausted after one pass"):
        open_table(mw.Table(reader))
    with pytest.raises(TypeError, match=r"data must be a path, a dataset, a query or a data frame"):
        open_table(mw.Table(7))
    with pytest.raises(FileNotFoundError, match=r"nowhere.parquet"):
        mw.optimize(tmp_path / "nowhere.parquet", "grade", "macro_f1")
    for name in ("a.parquet", "b.csv"):
        (tmp_path / name).write_text("x")
    with pytest.raises(ValueError, match=r"all must be of one format, got 'csv', 'parquet'"):
        mw.optimize(tmp_path, "grade", "macro_f1")
