"""Queries of databases: the answers of arrays in memory, a bounded part of the rows at a time, one clear error."""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import weakref
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import metricwise as mw
import worlds
from databases import LOCAL, connected, rows_of
from metricwise.core.losses import Loss
from metricwise.core.rows import Rows
from metricwise.data.open import open_rows
from metricwise.data.row_spec import RowSpec
from metricwise.data.tables import queries, reading
from metricwise.data.tables.reading import open_table
from metricwise.oracles.counts import Counts
from metricwise.rules import TemperatureScaling

RECIPE = {"confusion": "labels", "recalibrate": False}
CLASSES = np.array(["high", "low", "mid"])
SELECT = "SELECT * FROM oof ORDER BY id"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Batches of some rows, so that small tables have several."""
    monkeypatch.setattr(reading, "_MIN_BATCH", 64)
    monkeypatch.setattr(reading, "_MAX_BATCH", 64)


def draw(n=500, seed=0, dtype=np.float64):
    eta, y = worlds.multiclass(n, [0.4, 0.7, 1.0], sharpen=2, seed=seed)
    return eta.round(6).astype(dtype), y


def is_copied(driver, copy):
    return driver != "duckdb" if copy is None else copy


@pytest.mark.parametrize("driver", LOCAL)
@pytest.mark.parametrize("copy", [None, True, False])
def test_a_query_gives_the_answer_of_arrays(driver, copy, capsys):
    eta, y = draw()
    whole = mw.optimize(eta, CLASSES[y], "macro_f1")
    with connected(driver, oof=rows_of(eta, CLASSES[y], CLASSES)) as connection:
        query = mw.Query(connection, SELECT, copy=copy)
        solution = mw.optimize(mw.Table(query, proba_prefix="p_"), "grade", "macro_f1")
        assert query.lasting == is_copied(driver, copy)
    assert solution.value == pytest.approx(whole.value, abs=1e-12)
    assert solution.gain.estimate == pytest.approx(whole.gain.estimate, abs=1e-12)
    assert solution.n_passes == whole.n_passes
    np.testing.assert_array_equal(solution.rule.predict(eta), whole.rule.predict(eta))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("driver", LOCAL)
def test_weights_groups_and_missing_labels(driver):
    eta, y = draw(seed=1)
    rng = np.random.default_rng(1)
    weight, groups = rng.integers(1, 4, len(y)), rng.integers(0, 50, len(y)).astype(str)
    labels = np.where(rng.random(len(y)) < 0.2, None, CLASSES[y])
    labels[:70] = None  # a batch without any
    whole = mw.optimize(eta, labels, "macro_f1", sample_weight=weight, groups=groups)
    table = rows_of(eta, labels, CLASSES, w=pa.array(weight), who=pa.array(groups))
    with connected(driver, oof=table) as connection:
        rows = mw.Table(mw.Query(connection, SELECT), proba_prefix="p_")
        solution = mw.optimize(rows, "grade", "macro_f1", sample_weight="w", groups="who")
    assert solution.value == pytest.approx(whole.value, abs=1e-12)
    assert solution.gain.estimate == pytest.approx(whole.gain.estimate, abs=0.02)  # groups are dealt in another order


@pytest.mark.parametrize("driver", LOCAL)
def test_several_outputs_of_single_columns(driver, tmp_path):
    rng = np.random.default_rng(4)
    p = rng.random((200, 2))
    y = (rng.random((200, 2)) < p).astype(int)
    whole = mw.optimize(
        p, pd.DataFrame(y, columns=["news", "sport"]), "f1", average="macro", strategy=mw.Strategy(**RECIPE)
    )
    table = pa.table({"id": np.arange(200), "p_news": p[:, 0], "p_sport": p[:, 1], "news": y[:, 0], "sport": y[:, 1]})
    with connected(driver, oof=table) as connection:
        rows = mw.Table(mw.Query(connection, SELECT), proba=["p_news", "p_sport"])
        solution = mw.optimize(rows, ["news", "sport"], "f1", average="macro", strategy=mw.Strategy(**RECIPE))
        n_rows = mw.predict_table(solution.rule, rows, tmp_path / "decided.csv", keep=["id"])
        evaluation = mw.evaluate(solution.rule, rows, ["news", "sport"], "f1", average="macro")
    assert solution.value == pytest.approx(whole.value, abs=1e-12)
    assert n_rows == 200
    decided = pd.read_csv(tmp_path / "decided.csv")
    np.testing.assert_array_equal(decided["id"], np.arange(200))
    np.testing.assert_array_equal(decided[["news", "sport"]], whole.rule.predict(p))
    in_memory = mw.evaluate(solution.rule, p, y, "f1", average="macro")
    assert str(evaluation) == str(in_memory)


@pytest.mark.parametrize("kind", ["relation", "query"])
def test_columns_that_are_not_needed_are_not_computed(kind):
    eta, y = draw()
    with connected("duckdb", oof=rows_of(eta, CLASSES[y], CLASSES)) as connection:
        text = "SELECT *, CAST(error('computed') AS INTEGER) AS other FROM oof"
        rows = connection.sql(text) if kind == "relation" else mw.Query(connection, text)
        assert "other" in open_table(mw.Table(rows)).names
        solution = mw.optimize(mw.Table(rows, proba_prefix="p_"), "grade", "accuracy", strategy=mw.Strategy(**RECIPE))
        with pytest.raises(RuntimeError, match=r"the (relation|query): the database failed.*computed"):
            list(open_table(mw.Table(rows)).scan({"other": True}, 100))
    assert solution.value == mw.optimize(eta, CLASSES[y], "accuracy", strategy=mw.Strategy(**RECIPE)).value


def test_statements_select_the_columns_that_are_needed():
    eta, y = draw()
    statements = []
    with connected("sqlite", oof=rows_of(eta, CLASSES[y], CLASSES)) as connection:
        query = mw.Query(connection, f"{SELECT} DESC;  ")
        connection.set_trace_callback(statements.append)
        (first, *_) = query.scan({"p_low": True, "id": False}, 100)
    assert statements == [f'SELECT "p_low", "id" FROM (\n{SELECT} DESC\n) metricwise_rows']
    assert first.column("id").to_pylist() == list(range(499, 399, -1))


class CountingConnection:
    """A connection of DB-API whose cursors say how many rows were fetched; they cannot fetch all."""

    def __init__(self, n_rows):
        self.n_rows, self.fetched, self.largest, self.n_closed = n_rows, 0, 0, 0

    def cursor(self):
        remaining = [0]

        def execute(text):
            remaining[0] = 0 if "1 = 0" in text else self.n_rows

        def fetchmany(n_rows):
            n_rows = min(n_rows, remaining[0])
            remaining[0] -= n_rows
            self.fetched += n_rows
            self.largest = max(self.largest, n_rows)
            return [(0.25, 0.75, "yes")] * n_rows

        def close():
            self.n_closed += 1

        description = [(name, None) for name in ("no", "yes", "label")]
        return SimpleNamespace(execute=execute, fetchmany=fetchmany, close=close, description=description)


def test_rows_are_fetched_as_they_are_needed():
    connection = CountingConnection(1000)
    query = mw.Query(connection, "SELECT")
    columns = {"no": True, "yes": True, "label": False}
    batches = query.scan(columns, 100)
    assert next(batches).num_rows == 100
    assert connection.fetched == 100
    batches.close()
    assert connection.n_closed == 2
    assert sum(batch.num_rows for batch in query.scan(columns, 100)) == 1000
    assert connection.fetched == 1100  # what was not read to its end is no copy
    assert sum(batch.num_rows for batch in query.scan({"yes": True}, 100)) == 1000
    assert sum(batch.num_rows for batch in query.scan({"label": False, "no": True}, 100)) == 1000
    assert connection.fetched == 1100
    assert connection.largest == 100


def test_a_copy_is_the_rows_as_they_were_and_goes_with_the_query(tmp_path, monkeypatch):
    monkeypatch.setattr(queries.tempfile, "tempdir", str(tmp_path))
    eta, y = draw()
    columns = {"id": True, "grade": False}
    with connected("sqlite", oof=rows_of(eta, CLASSES[y], CLASSES)) as connection:
        copied, others = mw.Query(connection, SELECT), mw.Query(connection, SELECT, copy=False)
        first = pa.Table.from_batches(copied.scan(columns, 100))
        connection.execute("UPDATE oof SET id = id + 1000")
        assert pa.Table.from_batches(copied.scan(columns, 100)) == first
        assert pa.Table.from_batches(copied.scan({"grade": False}, 100)) == first.select(["grade"])
        assert pa.Table.from_batches(others.scan(columns, 100)).column("id")[0].as_py() == 1000
    assert len(list(tmp_path.iterdir())) == 1
    gone = weakref.ref(copied)
    del copied
    assert gone() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("driver", LOCAL)
@pytest.mark.parametrize("copy", [True, False])
def test_rows_without_labels_are_counted_by_the_database(driver, copy, monkeypatch):
    """No column is read for it: the first may be of any type."""
    eta, y = draw()
    text = "SELECT CASE WHEN id < 400 THEN 1 ELSE CAST('x' || id AS BLOB) END AS other, oof.* FROM oof ORDER BY id"
    text = text.replace("THEN 1", "THEN NULL") if driver == "duckdb" else text
    with connected(driver, oof=rows_of(eta, CLASSES[y], CLASSES)) as connection:
        query, read = mw.Query(connection, text, copy=copy), set()
        own = query.scan
        monkeypatch.setattr(query, "scan", lambda columns, n_rows: (read.update(columns), own(columns, n_rows))[1])
        rows = mw.Table(query, proba_prefix="p_")
        solution = mw.optimize(rows, None, "macro_f1", classes=CLASSES)
        whole = mw.optimize(eta, None, "macro_f1", classes=CLASSES)
        assert solution.value == pytest.approx(whole.value, abs=1e-12)
        np.testing.assert_array_equal(solution.rule.predict(eta), whole.rule.predict(eta))
        rule = mw.optimize(eta, CLASSES[y], "macro_f1").rule
        assert str(mw.estimate_shares(rule, rows)) == str(mw.estimate_shares(rule, eta))
        assert read == {"p_high", "p_low", "p_mid"}


def test_columns_that_are_copied_later_have_the_same_rows():
    eta, y = draw()
    table = rows_of(eta, CLASSES[y], CLASSES, g=pa.array(np.arange(500) % 50))
    with connected("sqlite", oof=table) as connection:
        rows = mw.Table(mw.Query(connection, SELECT), proba_prefix="p_")
        rule = mw.optimize(rows, "grade", "macro_f1", strategy=mw.Strategy(**RECIPE)).rule
        both = [
            str(mw.evaluate(rule, data, target, "macro_f1", groups=groups))
            for data, target, groups in ((rows, "grade", "g"), (eta, CLASSES[y], np.arange(500) % 50))
        ]
        assert both[0] == both[1]
        rows = mw.Table(mw.Query(connection, SELECT), proba_prefix="p_")
        mw.optimize(rows, "grade", "macro_f1", strategy=mw.Strategy(**RECIPE))
        connection.execute("INSERT INTO oof SELECT * FROM oof WHERE id < 10")
        message = r"the query: the number of rows must not change, got 500 at first and 510 .*; .* make another Query"
        for _ in range(2):
            with pytest.raises(RuntimeError, match=message):
                mw.evaluate(rule, rows, "grade", "macro_f1", groups="g")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_disk_without_room_for_a_copy(monkeypatch):
    eta, y = draw(3000)
    with connected("sqlite", oof=rows_of(eta, CLASSES[y], CLASSES)) as connection:
        query = mw.Query(connection, SELECT)
        own = queries._Copy.__init__

        def on_full_device(self, columns):
            own(self, columns)
            self._path = "/dev/full"

        monkeypatch.setattr(queries._Copy, "__init__", on_full_device)
        with pytest.raises(RuntimeError, match=r"cannot be copied to /dev/full.*set copy=False, or TMPDIR"):
            mw.optimize(mw.Table(query, proba_prefix="p_"), "grade", "accuracy")


# -------------------------------------------------------------------------------------------- counts in the database


@pytest.mark.parametrize("confusion", ["labels", "expected", "blended"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("labelled", [False, True])
def test_counts_of_a_database_are_those_of_memory(confusion, weighted, labelled):
    """DuckDB, which is read by default, counts too; probabilities are rounded, so that decisions tie."""
    if confusion != "expected" and not labelled:
        return
    eta, y = worlds.multiclass(3000, [0.4, 0.7, 1.0], sharpen=2)
    eta = eta.round(1).astype(np.float32)
    eta[:, 2] = 1 - eta[:, 0] - eta[:, 1]
    eta = eta.clip(0, None)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(len(y)) < 0.1, None, CLASSES[y])
    weight = rng.integers(0, 4, len(y)) / 3
    table = rows_of(eta, labels, CLASSES, w=pa.array(weight))
    weights = [Loss.from_tensor(-np.diag(rng.random(3))) for _ in range(9)]  # of more than one statement
    offset = Loss(diagonal=-rng.random((1, 3)), offset=-rng.random((1, 3)) / 5)
    losses = [Loss.argmax(3), Loss.from_tensor(-np.diag([1.0, 2.0, 0.3])), *weights, offset]
    losses.append(Loss.from_tensor(rng.random((3, 3)) - 2 * np.eye(3)))
    options = {"classes": list(CLASSES)} if not labelled else {}
    target, w = "grade" if labelled else None, "w" if weighted else None
    _, memory = open_rows(RowSpec(eta, labels if labelled else None, weight if weighted else None, **options))
    with connected("duckdb", oof=table) as connection:
        _, source = open_rows(RowSpec(counting(connection), target, w, **options))
        before = source.passes.entries
        assert source.count_losses(losses, confusion == "expected").shape == (2, len(losses), 1, 3, 3)
        assert source.passes.entries == before + 3000
        link = TemperatureScaling(np.full(1, 0.7), np.linspace(0, 0.5, 3)[None])
        for asked in (losses[:1], losses[1:2], losses):
            for behind, linked in ((None, True), (link, True), (link, False)):
                if behind is not None and linked:
                    asked = losses[1:2]  # without ties, which are broken by the last bit of a power
                one, other = (Counts(rows, confusion, behind).confusions(asked, linked) for rows in (memory, source))
                if confusion == "labels" and not weighted and behind is None:
                    np.testing.assert_array_equal(one, other)
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
        if labelled:
            judges = Counts(memory), Counts(source)
            both = [Counts(judge.source, confusion).confusions_beside(judge, losses) for judge in judges]
            np.testing.assert_allclose(*both, rtol=1e-12, atol=1e-15)
            for name in ("class_weights", "class_rows"):
                np.testing.assert_allclose(getattr(memory, name), getattr(source, name), rtol=1e-12)
        changed = Counts(source.map(lambda rows: rows), confusion).confusions(losses)
        np.testing.assert_allclose(changed, Counts(memory, confusion).confusions(losses), rtol=1e-12, atol=1e-13)
        steep = TemperatureScaling(np.full(1, 60.0), np.zeros((1, 3)))  # whose powers vanish
        assert source.count_losses(losses, True, steep.arrays) is None
        if labelled and confusion == "labels":
            connection.execute("UPDATE oof SET grade = 'new' WHERE id = 7")
            with pytest.raises(RuntimeError, match=r"labels must be the same in every pass, got the new one 'new'"):
                source.count_losses(losses, False)


def counting(connection, **options):
    """A query of DuckDB that counts as those of PostgreSQL do."""
    query = mw.Query(connection, SELECT, copy=False)
    query._driver = SimpleNamespace(
        counts=True, title="DuckDB", batches=query._driver.batches, answers=query._driver.answers
    )
    return mw.Table(query, **(options or {"proba_prefix": "p_"}))


@pytest.mark.parametrize("classes", [["no", "yes"], [False, True]])
def test_counts_of_a_single_column(classes):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, 2000).astype(np.float32)
    y = np.array(classes)[(rng.random(2000) < p).astype(int)]
    memory = open_rows(RowSpec(p, y, pos_label=classes[1]))[1]
    with connected("duckdb", oof=pa.table({"id": np.arange(2000), "p": p, "y": y})) as connection:
        source = open_rows(RowSpec(counting(connection, proba="p"), "y", pos_label=classes[1]))[1]
        losses = [Loss.argmax(2), *(Loss.from_tensor([[0.0, t], [1 - t, 0.0]]) for t in (0.1, 0.25, 0.7))]
        link = TemperatureScaling(np.full(1, 0.7), np.array([[0.0, 0.4]]))
        for confusion, behind in (("labels", None), ("blended", None), ("blended", link)):
            one, other = (Counts(rows, confusion, behind).confusions(losses) for rows in (memory, source))
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
        places = np.array([0, 7, 8, 1999])
        assert source.take(places).proba.positive_column(0).tolist() == p[places].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("p_low = 0.9, p_mid = 0.9", r"sum to 1 over the classes.*in row 7"),
        ("p_low = 'NaN'", r"finite, got NaN or infinity in row 7"),
        ("p_low = NULL", r"finite, got NaN or infinity in row 7"),
        ("p_low = -p_low", r"non-negative, got .* in row 7"),
        ("w = -1", r"sample_weight must be non-negative"),
    ],
)
@pytest.mark.parametrize("labelled", [True, False])
def test_rows_that_a_database_finds_to_be_no_probabilities(change, message, labelled):
    eta, y = draw()
    table = rows_of(eta, CLASSES[y], CLASSES, w=pa.array(np.ones(len(y))))
    with connected("duckdb", oof=table) as connection:
        connection.execute(f"UPDATE oof SET {change} WHERE id = 7")
        target, classes = ("grade", None) if labelled else (None, CLASSES)
        with pytest.raises(ValueError, match=message):
            mw.optimize(counting(connection), target, "accuracy", sample_weight="w", classes=classes)


# --------------------------------------------------------------------------------------------------------------- types


@pytest.mark.parametrize("driver", LOCAL)
def test_single_precision_and_numbers_of_other_types(driver):
    eta, y = draw(dtype=np.float32)
    names = CLASSES[:2]
    proba, labels = np.stack([eta[:, 0], 1 - eta[:, 0]], axis=1), (y > 0).astype(int)
    with connected(driver, oof=rows_of(proba, labels, names, w=pa.array(labels + 1))) as connection:
        rows = mw.Table(mw.Query(connection, SELECT), proba_prefix="p_")
        _, source = open_rows(RowSpec(mw.Table(rows.data, proba="p_low"), "grade", "w"))
        assert source.class_weights.tolist() == [[(labels == 0).sum(), 2 * (labels == 1).sum()]]
        taken = source.take(np.arange(500)).proba.positive_column(0)
    np.testing.assert_array_equal(taken, proba[:, 1])


def test_decimals_are_numbers():
    with connected("duckdb") as connection:
        text = "SELECT 0.25::DECIMAL(20, 2) AS no, 0.75::DECIMAL(20, 2) AS yes, x % 2 = 0 AS label FROM range(100) t(x)"
        table = pa.Table.from_batches(mw.Query(connection, text).scan({"no": True, "label": False}, 50))
        assert table.schema.types == [pa.decimal128(20, 2), pa.bool_()]
        _, source = open_rows(RowSpec(mw.Table(mw.Query(connection, text), proba="yes"), "label", pos_label=True))
        assert source.take(np.arange(3)).proba.positive_column(0).tolist() == [0.75] * 3


MIXED = "SELECT column1 AS p, column2 AS label FROM (VALUES {})"


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ("(0.5, 'a'), ('0.5', 'b')", r"the query: the column 'p' must hold numbers, got '0.5'"),
        ("(0.5, 'a'), (0.5, 1)", r"the column 'label' must hold values of one type, got 'int', 'str'.*CAST"),
        ("(0.5, 'a'), (NULL, 'b')", r"must hold a number in every row|must not be NaN|got NaN|missing"),
        ("(0.5, 'a'), (1.5, 'b')", r"must be at most 1, got 1.5"),
    ],
)
def test_rows_that_are_refused(values, match):
    with closing(sqlite3.connect(":memory:")) as connection:
        query = mw.Query(connection, MIXED.format(values))
        with pytest.raises(ValueError, match=match):
            mw.optimize(mw.Table(query, proba="p"), "label", "accuracy", pos_label="b")


def test_labels_that_are_missing_in_the_first_rows():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE oof (p REAL, label INTEGER, empty TEXT)")
        connection.executemany("INSERT INTO oof VALUES (0.5, ?, NULL)", [(None,)] * 100 + [(1,)] * 50)
        table = pa.Table.from_batches(mw.Query(connection, "SELECT * FROM oof").scan({"label": False}, 30))
        assert table.schema.types == [pa.int64()]
        assert table.column("label").null_count == 100
        connection.execute("INSERT INTO oof VALUES (0.5, 1.5, NULL)")
        with pytest.raises(ValueError, match=r"must hold values of one type, got 'float' after int64.*CAST"):
            list(mw.Query(connection, "SELECT * FROM oof").scan({"label": False}, 30))
        (batch,) = mw.Query(connection, "SELECT * FROM oof").scan({"empty": False}, 200)
        assert batch.schema.types == [pa.null()]


@pytest.mark.parametrize("copy", [True, False])
def test_rows_that_a_connection_has_as_mappings(copy):
    eta, y = draw()
    with connected("sqlite", oof=rows_of(eta, CLASSES[y], CLASSES)) as connection:
        for factory in (sqlite3.Row, lambda cursor, row: dict(zip(next(zip(*cursor.description)), row))):  # noqa: B905
            connection.row_factory = factory
            rows = mw.Table(mw.Query(connection, SELECT, copy=copy), proba_prefix="p_")
            solution = mw.optimize(rows, "grade", "macro_f1", strategy=mw.Strategy(**RECIPE))
            whole = mw.optimize(eta, CLASSES[y], "macro_f1", strategy=mw.Strategy(**RECIPE))
            assert solution.value == pytest.approx(whole.value, abs=1e-12)
        connection.row_factory = lambda cursor, row: row[0]
        rows = mw.Query(connection, SELECT, copy=copy)
        with pytest.raises(ValueError, match=r"Query: connection must have rows that are tuples or mappings, got str;"):
            mw.optimize(rows, "grade", "accuracy")


def test_labels_of_special_types():
    keys = pa.array([b"a" * 16, b"b" * 16], pa.uuid())
    table = mw.Table(pa.table({"p": [0.2, 0.7], "y": [0, 1], "key": keys}), proba="p")
    for call in (
        lambda: mw.optimize(table, "key", "accuracy"),
        lambda: mw.optimize(table, "y", "accuracy", sensitive_features="key"),
    ):
        with pytest.raises(ValueError, match=r"the column 'key' must hold text, .*arrow.uuid>; convert it to text"):
            call()


# ------------------------------------------------------------------------------------------------------------ refusals


def test_what_is_no_query():
    with pytest.raises(
        TypeError, match=r"Query: connection must be an open connection of DuckDB, ADBC or DB-API, got 7"
    ):
        mw.Query(7, "SELECT 1")
    engine = type("Engine", (), {"__module__": "sqlalchemy.engine.base"})()
    with pytest.raises(TypeError, match=r"pass engine.raw_connection\(\).driver_connection"):
        mw.Query(engine, "SELECT 1")

    class AsyncConnection:
        cursor = print

        async def commit(self): ...

    with pytest.raises(TypeError, match=r"got AsyncConnection; pass one that is not asynchronous"):
        mw.Query(AsyncConnection(), "SELECT 1")
    for driver in LOCAL:
        with connected(driver) as connection:
            with pytest.raises(TypeError, match=r"query must be the text of a SELECT statement, got 7"):
                mw.Query(connection, 7)
            with pytest.raises(TypeError, match=r"copy must be True, False or None, got 7"):
                mw.Query(connection, "SELECT 1 AS a", copy=7)
            with pytest.raises(ValueError, match=r"query must be a SELECT statement that \w+.* can run, got .*nothing"):
                mw.Query(connection, "SELECT * FROM nothing")
            query = mw.Query(connection, 'SELECT 1 AS "a ""b""", 2 AS c -- the last line')
            assert query.names == ('a "b"', "c")
            assert [batch.num_rows for batch in query.scan({'a "b"': True}, 10)] == [1]
            with pytest.raises(ValueError, match=r"the query: there is no column 'grade'; the columns are"):
                mw.optimize(query, "grade", "accuracy")


@pytest.mark.parametrize("driver", LOCAL)
def test_a_query_without_rows(driver):
    eta, y = draw()
    with connected(driver, oof=rows_of(eta, CLASSES[y], CLASSES)) as connection:
        for copy in (True, False):
            query = mw.Query(connection, "SELECT * FROM oof WHERE id < 0", copy=copy)
            for _ in range(2):
                with pytest.raises(ValueError, match=r"the query|the table must have at least one row"):
                    mw.optimize(query, "grade", "accuracy")


# ----------------------------------------------------------------------------------------------- what changes or breaks


def test_rows_that_come_in_another_order_every_time(monkeypatch):
    monkeypatch.setattr(reading, "_MIN_BATCH", 1 << 14)
    monkeypatch.setattr(reading, "_MAX_BATCH", 1 << 14)
    eta, y = draw(30_000)
    with connected("duckdb", oof=rows_of(eta, CLASSES[y], CLASSES)) as connection:
        text = "SELECT * FROM oof ORDER BY random()"
        for rows in (mw.Query(connection, text), connection.sql(text)):
            with pytest.raises(RuntimeError, match=r"a different order in every pass.*sort the query"):
                mw.optimize(mw.Table(rows, proba_prefix="p_"), "grade", "macro_f1")
        copied = mw.Table(mw.Query(connection, text, copy=True), proba_prefix="p_")
        solution = mw.optimize(copied, "grade", "macro_f1")
    assert solution.baseline == pytest.approx(mw.optimize(eta, CLASSES[y], "macro_f1").baseline, abs=1e-12)


def test_rows_that_are_added_between_passes():
    eta, y = draw()
    with connected("sqlite", oof=rows_of(eta, CLASSES[y], CLASSES)) as connection:
        query = mw.Query(connection, SELECT, copy=False)
        own, scans = query.scan, []

        def scan(columns, n_rows):
            scans.append(columns)
            if len(scans) == 4:
                connection.execute("INSERT INTO oof SELECT * FROM oof WHERE id < 10")
            return own(columns, n_rows)

        query.scan = scan
        with pytest.raises(RuntimeError, match=r"the query: the number of rows must not change, got 500 at first"):
            mw.optimize(mw.Table(query, proba_prefix="p_"), "grade", "macro_f1")


@pytest.mark.parametrize(("driver", "copy"), [("duckdb", False), ("sqlite", False), ("sqlite", True)])
def test_a_connection_that_is_closed_in_the_middle_of_a_pass(driver, copy):
    eta, y = draw(2000)
    with connected(driver, oof=rows_of(eta, CLASSES[y], CLASSES)) as connection:
        query = mw.Query(connection, SELECT, copy=copy)
        own, scans = query.scan, []

        def scan(columns, n_rows):
            scans.append(columns)
            for at, batch in enumerate(own(columns, n_rows)):
                if len(scans) == 3 and at == 2:
                    connection.close()
                yield batch

        query.scan = scan
        with pytest.raises(RuntimeError, match=r"the query: the database failed while rows were read: .*; call again"):
            mw.optimize(mw.Table(query, proba_prefix="p_"), "grade", "macro_f1")


def test_a_relation_whose_connection_is_closed():
    connection = duckdb.connect()
    relation = open_table(mw.Table(connection.sql("SELECT x AS p FROM range(1_000_000) t(x)")))
    batches = relation.scan({"p": True}, 2048)
    n_rows = next(batches).num_rows
    connection.close()
    assert n_rows + sum(batch.num_rows for batch in batches) == 1_000_000  # a stream that is open is read to its end
    with pytest.raises(RuntimeError, match=r"the relation: the database failed while rows were read: "):
        next(relation.scan({"p": True}, 2048))


@pytest.mark.parametrize("kind", ["query", "copy", "relation"])
def test_an_interrupt_leaves_no_open_result(kind, tmp_path, monkeypatch):
    """Also while a traceback is kept, as in notebooks: DuckDB runs no other statement before a result is closed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = "SELECT 0.5 AS p_no, 0.5 AS p_yes, IF(x % 2 = 0, 'no', 'yes') AS label FROM range(100_000) t(x)"
    with duckdb.connect() as connection:
        data = connection.sql(text) if kind == "relation" else mw.Query(connection, text, copy=kind == "copy")
        source, kept = open_rows(RowSpec(mw.Table(data, proba_prefix="p_"), "label"))[1], []
        rule = mw.WeightedRule.from_thresholds(0.3, classes=["no", "yes"], pos_label="yes")
        n_files = len(list(tmp_path.iterdir()))  # copies of labels

        def interrupt(*_):
            raise KeyboardInterrupt

        calls = {
            "tally": lambda: source.class_weights,
            "take": lambda: source.take(np.arange(3)),
            "decide": lambda: mw.predict_table(rule, mw.Table(data, proba_prefix="p_"), tmp_path / "decisions.parquet"),
        }
        for name, call in calls.items():
            with monkeypatch.context() as changed:
                changed.setattr(mw.WeightedRule if name == "decide" else Rows, name, interrupt)
                with pytest.raises(KeyboardInterrupt) as error:
                    call()
            kept.append(error)
            assert connection.sql("SELECT 42").fetchall() == [(42,)]
            assert len(list(tmp_path.iterdir())) == n_files


def test_an_interrupt_that_the_driver_raises_as_an_error(monkeypatch):
    """DuckDB does so while it computes."""

    def batches(*_):
        raise RuntimeError("Query interrupted")
        yield

    with connected("duckdb") as connection:
        query = mw.Query(connection, "SELECT 0.5 AS p, 'no' AS label")
        monkeypatch.setattr(query._driver, "batches", batches)
        with pytest.raises(KeyboardInterrupt):
            mw.optimize(mw.Table(query, proba="p"), "label", "accuracy")


INTERRUPTED = """
import os, signal, sys, threading, duckdb
import metricwise as mw
rule = mw.WeightedRule.from_thresholds(0.3, classes=["no", "yes"], pos_label="yes")
text = "SELECT sqrt(x) * 0 + 0.5 AS no, 0.5 AS yes FROM range(1_000_000_000) t(x)"
query = mw.Query(duckdb.connect(), text, copy=sys.argv[1] == "copying")
threading.Timer(0.5, os.kill, (os.getpid(), getattr(signal, sys.argv[3]))).start()
try:
    mw.predict_table(rule, query, sys.argv[2])
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.parametrize("when", ["reading", "copying"])
@pytest.mark.parametrize("kind", ["SIGINT", "SIGKILL"])
def test_a_process_that_is_interrupted_or_killed(when, kind, tmp_path):
    """It ends, with no part of a file under the name of the whole one; an interrupt also removes temporary files."""
    target = tmp_path / "decisions.parquet"
    command = [sys.executable, "-c", INTERRUPTED, when, str(target), kind]
    ended = subprocess.run(
        command, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, timeout=60
    )
    assert not target.exists()
    if kind == "SIGINT":
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted\n", "")
        assert not list(tmp_path.iterdir())
    else:
        assert ended.returncode == -signal.SIGKILL
