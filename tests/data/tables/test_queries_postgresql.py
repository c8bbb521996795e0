"""Queries of a PostgreSQL server, which is started in a temporary folder: skipped where it is not installed."""

import tempfile
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricwise as mw
import worlds
from databases import POSTGRES, address, connected, load, open_postgres, rows_of
from metricwise.core.losses import Loss
from metricwise.core.rows import Rows
from metricwise.data.open import open_rows
from metricwise.data.row_spec import RowSpec
from metricwise.data.tables import reading
from metricwise.data.tables.query_counts import LabelStatement
from metricwise.oracles.counts import Counts
from metricwise.rules import TemperatureScaling

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
pytest.importorskip("adbc_driver_postgresql", reason="the ADBC driver of PostgreSQL is not installed")
export_engines = pytest.importorskip("benchmarks.export_engines")

CLASSES = np.array(["high", "low", "mid"])
SELECT = "SELECT * FROM oof ORDER BY id"


@pytest.fixture(scope="module")
def server():
    with export_engines.postgres() as running:
        if running is None:
            pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
        yield running


def draw(n, seed=0):
    eta, y = worlds.multiclass(n, [0.4, 0.7, 1.0], sharpen=2, seed=seed)
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.1, None, CLASSES[y])
    return eta.astype(np.float32), labels, rng.integers(1, 4, n) / 3


@pytest.mark.parametrize("driver", POSTGRES)
@pytest.mark.parametrize("copy", [True, False])
def test_counts_and_answers_are_those_of_parquet(server, driver, copy, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_MAX_BATCH", 1 << 12)
    eta, labels, weight = draw(10_000)
    table = rows_of(eta, labels, CLASSES, w=pa.array(weight))
    pq.write_table(table, tmp_path / "oof.parquet", row_group_size=3000)
    files = mw.Table(tmp_path / "oof.parquet", proba_prefix="p_")
    link = TemperatureScaling(np.full(1, 0.7), np.linspace(0, 0.5, 3)[None])
    losses = [Loss.argmax(3), Loss.from_tensor(-np.diag([1.0, 2.5, 3.0]))]
    with connected(driver, server, oof=table) as connection:
        rows = mw.Table(mw.Query(connection, SELECT, copy=copy), proba_prefix="p_")
        for w, confusion in ((None, "labels"), ("w", "labels"), ("w", "expected"), (None, "blended")):
            first, second = (open_rows(RowSpec(data, "grade", w))[1] for data in (files, rows))
            close(first.class_weights, second.class_weights)
            assert (second.count_losses(losses, confusion == "expected") is None) == copy
            for both in ((first, second, None), (first, second, link)):
                one, other = (Counts(source, confusion, both[2]).confusions(losses) for source in both[:2])
                exact = w is None and confusion == "labels"  # powers may differ in the last bit, but not by a decision
                same = np.testing.assert_array_equal if exact else close
                same(one, other)
        strategy = mw.Strategy(confusion="labels", recalibrate=False) if driver == "psycopg" else None
        whole, solution = (mw.optimize(data, "grade", "macro_f1", strategy=strategy) for data in (files, rows))
        assert mw.predict_table(solution.rule, rows, tmp_path / "decided.parquet", keep=["id"]) == 10_000
    assert solution.value == pytest.approx(whole.value, abs=1e-12)
    np.testing.assert_array_equal(solution.rule.predict(eta), whole.rule.predict(eta))
    np.testing.assert_array_equal(pq.read_table(tmp_path / "decided.parquet")["id"], np.arange(10_000))


def close(first, second):
    np.testing.assert_allclose(first, second, rtol=1e-12)


class Fetched:
    """How many rows each statement has sent, as cursors of psycopg count them."""

    def __init__(self, connection):
        self.numbers, self.streamed = [], 0
        fetched = self

        class Client(psycopg.Cursor):
            def fetchmany(self, size=0):
                rows = super().fetchmany(size)
                fetched.numbers.append(len(rows))
                return rows

        class Server(psycopg.ServerCursor):
            def fetchmany(self, size=0):
                rows = super().fetchmany(size)
                fetched.streamed += len(rows)
                return rows

        connection.cursor_factory, connection.server_cursor_factory = Client, Server


@pytest.mark.parametrize("metric", ["macro_f1", "g_mean", "balanced_accuracy", "mcc"])
def test_only_counts_and_samples_leave_the_database(server, metric):
    """Default calls on rows in any order; values are those of the decisions about all rows."""
    n_rows = 60_000
    eta, _, _ = draw(n_rows)
    y = np.random.default_rng(1).random((n_rows, 1))
    labels = CLASSES[(eta.cumsum(axis=1) < y).sum(axis=1).clip(0, 2)]
    load(server, many=rows_of(eta, labels, CLASSES))
    with open_postgres("psycopg, autocommit", server) as connection:
        rows = mw.Table(mw.Query(connection, "SELECT * FROM many", copy=False), proba_prefix="p_")
        fetched = Fetched(connection)
        solution = mw.optimize(rows, "grade", metric)
        first = fetched.numbers[:]
        again = mw.optimize(mw.Table(mw.Query(connection, "SELECT * FROM many", copy=False), proba_prefix="p_"),
                            "grade", metric)  # fmt: skip
    assert fetched.streamed == 0
    assert 20_000 <= max(first) < 22_000
    assert sum(first) < n_rows
    assert sum(number > 1000 for number in first) <= 3  # the sample, and those of the starts of a search
    score = mw.metrics.get_metric(metric).score
    assert solution.value == pytest.approx(score(labels, solution.rule.predict(eta)), abs=1e-12)
    assert solution.baseline == pytest.approx(score(labels, CLASSES[eta.argmax(axis=1)]), abs=1e-12)
    assert again.rule.to_dict() == solution.rule.to_dict()
    whole = mw.optimize(eta, labels, metric)
    assert solution.value == pytest.approx(whole.value, abs=0.005)


@pytest.mark.parametrize("driver", POSTGRES)
def test_rows_that_are_sent_and_those_that_are_not_give_one_answer(server, driver):
    """Of few rows, samples are all of them: answers are those of memory."""
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, 4000).astype(np.float32)
    y = (rng.random(4000) < p).astype(int)
    group, second = np.array(["a", "b"])[rng.integers(0, 2, 4000)], (rng.random(4000) < 0.3).astype(int)
    table = pa.table({"id": np.arange(4000), "p": p, "q": 1 - p, "y": y, "z": second, "g": group})
    text = "SELECT * FROM sent ORDER BY id"
    with connected(driver, server, sent=table) as connection:
        single = mw.Table(mw.Query(connection, text, copy=False), proba="p")
        solution, whole = mw.optimize(single, "y", "f1"), mw.optimize(p, y, "f1")
        assert solution.value == pytest.approx(whole.value, abs=1e-12)
        np.testing.assert_array_equal(solution.rule.predict(p), whole.rule.predict(p))
        rows = mw.evaluate(solution.rule, single, "y", "f1")
        assert str(rows) == str(mw.evaluate(whole.rule, p, y, "f1"))
        several = mw.Table(mw.Query(connection, text, copy=False), proba=["p", "q"])
        both = mw.optimize(several, ["y", "z"], "f1", average="macro")
        outputs = mw.optimize(np.stack([p, 1 - p], axis=1), np.stack([y, second], axis=1), "f1", average="macro")
        assert both.value == pytest.approx(outputs.value, abs=1e-12)
        known = {"subject_to": "demographic_parity <= 0.2"}
        fair = mw.optimize(single, "y", "accuracy", sensitive_features="g", **known)
        assert fair.value == pytest.approx(
            mw.optimize(p, y, "accuracy", sensitive_features=group, **known).value, abs=1e-12
        )


@pytest.mark.parametrize("driver", POSTGRES)
def test_products_that_vanish(server, driver):
    """Which are errors in PostgreSQL."""
    eta = np.array([[1.0, 0, 0], [1e-320, 1.0, 0], [0.5, 1e-300, 0.5], [0.2, 0.3, 0.5], [0.0, 0.5, 0.5]] * 20)
    labels, weight = CLASSES[np.arange(100) % 3], np.where(np.arange(100) % 2, 1e-120, 1.0)
    losses = [Loss.from_tensor(-np.diag([1e-9, 1e-12, 1.0])), Loss.from_tensor(np.arange(9.0).reshape(3, 3) % 4 * 1e-9)]
    memory = open_rows(RowSpec(eta, labels, weight))[1]
    with connected(driver, server, oof=rows_of(eta, labels, CLASSES, w=pa.array(weight))) as connection:
        rows = mw.Table(mw.Query(connection, "SELECT * FROM oof", copy=False), proba_prefix="p_")
        source = open_rows(RowSpec(rows, "grade", "w"))[1]
        for confusion in ("labels", "blended"):
            one, other = (Counts(some, confusion).confusions(losses) for some in (memory, source))
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
        with psycopg.connect(address(server)) as writer:
            writer.execute("UPDATE oof SET p_low = 1e308 WHERE id = 7")
        with pytest.raises(ValueError, match=r"proba must sum to 1"):
            mw.optimize(mw.Query(connection, "SELECT * FROM oof ORDER BY id", copy=False), "grade", "accuracy")


def test_samples_are_stratified_and_unbiased(server):
    eta, labels, weight = draw(50_000)
    table = rows_of(eta, labels, CLASSES, w=pa.array(np.where(weight > 0.9, weight, 0)))
    load(server, drawn=table)
    with open_postgres("adbc", server) as connection:
        rows = mw.Table(mw.Query(connection, "SELECT * FROM drawn ORDER BY id", copy=False), proba_prefix="p_")
        files = open_rows(RowSpec(mw.Table(table, proba_prefix="p_"), "grade", "w"))[1]
        source = open_rows(RowSpec(rows, "grade", "w"))[1]
        sample, other = source.sample(4000), source.sample(4000, seed=1)
        mine = files.sample(4000)
        assert sample.n_rows == pytest.approx(4000, abs=2)
        assert sample.frequency.sum() == pytest.approx(50_000)
        share = np.bincount(sample.codes[:, 0] + 1, minlength=4) - np.bincount(mine.codes[:, 0] + 1, minlength=4)
        assert abs(share).max() <= 60  # rows of weight 0 show no class, and come last
        means = [np.average(some.proba.blocks[0][:, 0], axis=0, weights=some.weight) for some in (sample, other)]
        all_weights = np.asarray(table["w"])
        for mean in means:
            np.testing.assert_allclose(mean, np.average(eta, axis=0, weights=all_weights), atol=0.02)
        assert not np.array_equal(sample.proba.blocks[0], other.proba.blocks[0])
        places = np.array([3, 40_000, 49_999])
        np.testing.assert_array_equal(source.take(places).proba.blocks[0][:, 0], eta[places])


@pytest.mark.parametrize("driver", POSTGRES)
def test_numbers_are_not_rounded_as_text(server, driver):
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    table = pa.table({"id": np.arange(1000), "p": p, "y": (rng.random(1000) < p).astype(int)})
    with connected(driver, server, digits=table) as connection:
        with closing(connection.cursor()) as cursor:
            cursor.execute("SET extra_float_digits = -5")
        query = mw.Query(connection, "SELECT * FROM digits ORDER BY id", copy=False)
        source = open_rows(RowSpec(mw.Table(query, proba="p"), "y"))[1]
        places = np.arange(0, 1000, 10)
        assert source.take(places).proba.positive_column(0).tolist() == p[places].tolist()


@pytest.mark.parametrize("driver", POSTGRES)
def test_columns_of_every_type(server, driver):
    text = """SELECT 0.25::numeric::float8 AS p, i % 2 = 0 AS flag, 'a'::varchar AS name, date '2024-01-31' AS day,
        i::smallint AS small, i AS plain, i::bigint AS big, 0.1::real AS single FROM generate_series(1, 10) t(i)"""
    types = {
        "p": pa.float64(), "flag": pa.bool_(), "name": pa.string(), "day": pa.date32(), "small": pa.int16(),
        "plain": pa.int32(), "big": pa.int64(), "single": pa.float32(),
    }  # fmt: skip
    with connected(driver, server) as connection:
        query = mw.Query(connection, text)
        assert query.names == tuple(types)
        table = pa.Table.from_batches(query.scan(dict.fromkeys(types, False), 4))
        assert dict(zip(table.column_names, table.schema.types, strict=True)) == types
        assert table.column("plain").to_pylist() == list(range(1, 11))
        single = pa.Table.from_batches(query.scan({"single": True}, 4)).column("single")
        assert single.to_numpy().tolist() == [np.float32(0.1)] * 10


@pytest.mark.parametrize("driver", POSTGRES)
def test_decimals(server, driver):
    text = "SELECT (i / 10.0)::numeric AS p, i % 2 AS label FROM generate_series(1, 9) t(i)"
    with connected(driver, server) as connection:
        query = mw.Table(mw.Query(connection, text), proba="p")
        if driver == "adbc":  # which has decimals as text
            with pytest.raises(ValueError, match=r"the column 'p' must hold numbers, got type"):
                open_rows(RowSpec(query, "label"))
            return
        _, source = open_rows(RowSpec(query, "label"))
        assert source.take(np.arange(9)).proba.positive_column(0).tolist() == [i / 10 for i in range(1, 10)]


@pytest.mark.parametrize("driver", POSTGRES)
def test_what_the_server_refuses(server, driver):
    with connected(driver, server) as connection, pytest.raises(ValueError, match=r"Query: query must be.*nowhere"):
        mw.Query(connection, "SELECT * FROM nowhere")
    text = "SELECT i AS id, 1 / (i - 900) AS p FROM generate_series(1, 1000) t(i)"
    with connected(driver, server) as connection:
        query = mw.Query(connection, text)
        assert sum(batch.num_rows for batch in query.scan({"id": True}, 100)) == 1000  # p is not computed
        with pytest.raises(RuntimeError, match=r"the query: the database failed while rows were read: .*division"):
            list(query.scan({"p": True}, 100))
        assert not query._copies[1:]


@pytest.mark.parametrize("driver", POSTGRES)
@pytest.mark.parametrize("copy", [True, False])
def test_a_server_that_ends_the_connection_in_the_middle_of_a_pass(server, driver, copy):
    """More rows than the sockets and the drivers hold at a time."""
    text = "SELECT i AS id, 0.5::float8 AS no, 0.5::float8 AS yes, i % 2 AS label FROM generate_series(1, 1000000) t(i)"
    columns = {"no": True, "yes": True, "label": False}
    with open_postgres(driver, server) as connection:
        query = mw.Query(connection, text, copy=copy)
        batches = query.scan(columns, 50_000)
        assert next(batches).num_rows > 0
        with psycopg.connect(address(server), autocommit=True) as other:
            ended = other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            ).fetchall()
            assert ended == [(True,)]
        with pytest.raises(RuntimeError, match=r"the query: the database failed while rows were read: .*; call again"):
            for _ in batches:
                pass
        with pytest.raises(RuntimeError, match=r"the query: the database failed"):
            mw.optimize(query, "label", "accuracy")
    with open_postgres(driver, server) as connection:  # the server goes on
        assert next(mw.Query(connection, text, copy=copy).scan(columns, 50_000)).num_rows > 0


def test_another_thread_that_writes_is_not_seen_in_the_middle(server):
    """Rows of one pass are those of one moment, and those of a copy are those of all passes."""
    eta, labels, _ = draw(500)
    load(server, oof=rows_of(eta, labels, CLASSES))
    with open_postgres("psycopg, autocommit", server) as connection, psycopg.connect(address(server)) as other:
        query = mw.Query(connection, SELECT)
        batches = query.scan({"id": True}, 100)
        next(batches)
        other.execute("DELETE FROM oof WHERE id > 200")
        other.commit()
        assert sum(batch.num_rows for batch in batches) == 400
        assert sum(batch.num_rows for batch in query.scan({"id": True}, 100)) == 500
        assert sum(batch.num_rows for batch in mw.Query(connection, SELECT).scan({"id": True}, 100)) == 201


# ---------------------------------------------------------------------------------------- what is killed or interrupted


def status(connection):
    return connection.info.transaction_status.name


@pytest.mark.parametrize("driver", POSTGRES[:2])
@pytest.mark.parametrize("copy", [True, False])
def test_rows_that_a_connection_has_as_mappings(server, driver, copy):
    eta, labels, _ = draw(500)
    with connected(driver, server, oof=rows_of(eta, labels, CLASSES)) as connection:
        whole = mw.optimize(eta, labels, "macro_f1").value
        for factory in (psycopg.rows.dict_row, psycopg.rows.namedtuple_row):
            connection.row_factory = factory
            rows = mw.Table(mw.Query(connection, SELECT, copy=copy), proba_prefix="p_")
            assert mw.optimize(rows, "grade", "macro_f1").value == pytest.approx(whole, abs=1e-12)
        connection.row_factory = psycopg.rows.scalar_row
        with pytest.raises(ValueError, match=r"connection must have rows that are tuples or mappings, got "):
            mw.optimize(mw.Query(connection, SELECT, copy=copy), "grade", "macro_f1")


@pytest.mark.parametrize("driver", POSTGRES[:2])
@pytest.mark.parametrize("copy", [True, False])
def test_transactions_are_as_they_were(server, driver, copy, monkeypatch):
    """After a statement that fails, and an interrupt whose traceback is kept, within a transaction and outside."""
    monkeypatch.setattr(reading, "_MIN_BATCH", 64)
    monkeypatch.setattr(reading, "_MAX_BATCH", 64)
    eta, labels, _ = draw(500)
    with connected(driver, server, oof=rows_of(eta, labels, CLASSES)) as connection:

        def interrupt(*_):
            raise KeyboardInterrupt

        def interrupted():
            with monkeypatch.context() as changed:
                changed.setattr(Rows, "tally", interrupt)
                changed.setattr(LabelStatement, "read", interrupt)
                mw.optimize(mw.Table(mw.Query(connection, SELECT, copy=copy), proba_prefix="p_"), "grade", "macro_f1")

        def wrong():
            text = "SELECT 1 / (id - 70) AS p, id % 2 AS y FROM oof"
            mw.optimize(mw.Table(mw.Query(connection, text, copy=copy), proba="p"), "y", "f1")

        calls = {
            lambda: mw.Query(connection, "SELECT nothing FROM oof", copy=copy): ValueError,
            interrupted: KeyboardInterrupt,
            wrong: RuntimeError,
        }
        kept = []
        for call, kind in calls.items():
            with pytest.raises(kind) as error:
                call()
            kept.append(error)
            assert status(connection) in {"IDLE", "IDLE" if connection.autocommit else "INTRANS"}
            assert connection.execute("SELECT COUNT(*) FROM pg_cursors").fetchone() == (0,)
            connection.rollback()
        with connection.transaction():
            connection.execute("DELETE FROM oof WHERE id >= 400")
            for call, kind in calls.items():
                with pytest.raises(kind) as error:
                    call()
                kept.append(error)
                assert status(connection) == "INTRANS"
                assert connection.execute("SELECT COUNT(*) FROM oof").fetchone() == (400,)
                assert connection.execute("SELECT COUNT(*) FROM pg_cursors").fetchone() == (0,)
            rows = mw.Table(mw.Query(connection, SELECT, copy=copy), proba_prefix="p_")
            whole = mw.optimize(eta[:400], labels[:400], "macro_f1").value
            assert mw.optimize(rows, "grade", "macro_f1").value == pytest.approx(whole, abs=1e-12)
            assert status(connection) == "INTRANS"


@pytest.mark.slow
@pytest.mark.parametrize("driver", POSTGRES)
@pytest.mark.parametrize("copy", [True, False])
def test_a_server_that_is_killed(server, driver, copy, tmp_path, monkeypatch):
    """While decisions are written, and for later calls: one error, no hang, and no part of a file."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(reading, "_MAX_BATCH", 1 << 16)
    rule = mw.WeightedRule.from_thresholds(0.3, classes=["no", "yes"], pos_label="yes")
    text = "SELECT 0.5::float8 AS no, 0.5::float8 AS yes, i % 2 AS label FROM generate_series(1, 1000000) t(i)"
    message = r"the query: the database failed while rows were read: .*; call again with an open connection"
    target, own, n_decided = tmp_path / "decisions.parquet", mw.WeightedRule.decide, []

    def decide(self, rows):
        n_decided.append(rows.proba.n_rows)
        if len(n_decided) == 2:
            data, log = server.folder / "data", server.folder / "log"
            server.call("pg_ctl", "-D", str(data), "-w", "-l", str(log), "-m", "immediate", "restart")
        return own(self, rows)

    with open_postgres(driver, server) as connection, monkeypatch.context() as changed:
        query = mw.Query(connection, text, copy=copy)
        changed.setattr(mw.WeightedRule, "decide", decide)
        for call in (
            lambda: mw.predict_table(rule, query, target),
            lambda: mw.predict_table(rule, query, target),
            lambda: mw.optimize(query, "label", "f1"),
        ):
            with pytest.raises(RuntimeError, match=message):
                call()
            assert not list(tmp_path.iterdir())
    assert sum(n_decided) < 1_000_000
    with open_postgres(driver, server) as connection:
        assert mw.predict_table(rule, mw.Query(connection, text, copy=copy), target) == 1_000_000
