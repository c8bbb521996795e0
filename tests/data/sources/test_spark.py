"""Data frames of Spark: the answer of the same rows in files, with nothing large brought to the driver."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricwise as mw
import worlds
from engines import source
from laws.engine_promises import check_agreement
from metricwise.core.losses import Loss
from metricwise.core.rows import Rows
from metricwise.core.schema import Schema
from metricwise.data.open import open_rows
from metricwise.data.probabilities import read_proba
from metricwise.data.row_spec import RowSpec
from metricwise.data.sources import spark as on_spark
from metricwise.oracles.counts import Counts
from spark_frames import as_frame, cut, session

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.skipif(not (shutil.which("java") or os.environ.get("JAVA_HOME")), reason="Spark needs Java"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]
RECIPE = {"confusion": "labels", "recalibrate": False}


@pytest.fixture(scope="module", autouse=True)
def spark():
    spark = session()
    yield spark
    spark.stop()


def draw(n=400, seed=0, dtype=np.float64):
    """A table with probabilities of three classes, a weight, missing labels and groups."""
    eta, y = worlds.multiclass(n, [0.4, 1.0, 0.7], sharpen=2, seed=seed)
    eta, rng = eta.astype(dtype), np.random.default_rng(seed)
    labels = pa.array(np.array(["low", "mid", "high"])[y], mask=rng.random(n) < 0.1)
    proba = dict(zip(["p_low", "p_mid", "p_high"], eta.T, strict=True))
    return pa.table({**proba, "grade": labels, "weight": rng.integers(1, 5, n) / 4, "clinic": rng.integers(0, 40, n)})


def as_table(rows):
    return mw.Table(rows, proba_prefix="p_")


def same(one, other, tol=1e-12):
    same_values(one, other, tol)
    assert one.n_passes == other.n_passes


def same_values(one, other, tol=1e-12):
    assert one.value == pytest.approx(other.value, abs=tol)
    assert one.baseline == pytest.approx(other.baseline, abs=tol)
    assert (one.gain is None) == (other.gain is None)
    assert one.gain is None or one.gain.estimate == pytest.approx(other.gain.estimate, abs=tol)


@pytest.mark.parametrize("confusion", ["labels", "blended"])
def test_counts_walks_and_samples_agree_with_memory(confusion):
    seed = ["labels", "expected", "blended"].index(confusion)
    layout, options = ["binary", "list", "list"][seed], (seed % 2 == 0, seed % 2 == 1, seed == 2)
    check_agreement("spark", confusion, seed, layout, options, of_logits=seed == 1)


def test_counts_are_those_of_a_file_to_the_bit(tmp_path):
    table = draw(3_000, dtype=np.float32)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=700)
    losses = [Loss.argmax(3), Loss.from_tensor(-np.diag([1.0, 0.3, 2.0]))]
    spec = {"y": "grade", "sample_weight": "weight"}
    file, frame = (
        Counts(open_rows(RowSpec(as_table(rows), **spec))[1])
        for rows in (tmp_path / "rows.parquet", as_frame(cut(table, 700)))
    )
    np.testing.assert_array_equal(file.confusions(losses), frame.confusions(losses))
    np.testing.assert_array_equal(file.priors, frame.priors)


@pytest.mark.parametrize("metric", ["macro_f1", "min_recall"])
def test_default_calls_agree_with_files(metric, tmp_path):
    table = draw()
    pq.write_table(table, tmp_path / "rows.parquet")
    call = {"sample_weight": "weight", "groups": "clinic", "classes": ["low", "mid", "high"]}
    whole = mw.optimize(as_table(tmp_path / "rows.parquet"), "grade", metric, **call)
    found = mw.optimize(as_table(as_frame(cut(table, 130))), "grade", metric, **call)
    same(found, whole)
    assert str(found.rule) == str(whole.rule)


def test_rules_are_judged_as_on_files(tmp_path):
    table = draw()
    pq.write_table(table, tmp_path / "oof.parquet")
    rule = mw.WeightedRule.from_weights([1, 2, 1.5], classes=["high", "low", "mid"])
    options = {"metrics": ["macro_f1", "recall[low]"], "sample_weight": "weight"}
    whole = mw.evaluate(rule, as_table(tmp_path / "oof.parquet"), "grade", **options)
    evaluation = mw.evaluate(rule, as_table(as_frame(cut(table, 150))), "grade", **options)
    for name in whole:
        for field in ("value", "baseline", "difference"):
            estimate, expected = getattr(evaluation[name], field), getattr(whole[name], field)
            assert estimate.estimate == pytest.approx(expected.estimate, abs=1e-12)
            assert estimate.low == pytest.approx(expected.low, abs=1e-9)


def test_groups_of_rows_are_columns():
    table = draw(600)
    clinic = table.column("clinic").to_numpy() % 2
    table = table.append_column("site", pa.array(np.array(["north", "south"])[clinic]))
    call = {"subject_to": "demographic_parity <= 0.1", "sensitive_features": "site", "sample_weight": "weight"}
    whole = mw.optimize(as_table(table), "grade", "accuracy", **call, confidence=None)
    found = mw.optimize(as_table(as_frame(cut(table, 250))), "grade", "accuracy", **call, confidence=None)
    same_values(found, whole)
    (parity,), (parity_of_table,) = found.constraints, whole.constraints
    assert parity.value == pytest.approx(parity_of_table.value, abs=1e-12)
    assert found.rule.groups == whole.rule.groups
    options = {"metrics": "macro_f1", "sensitive_features": ["site", "clinic"]}
    rule = mw.WeightedRule.from_weights({"low": 1, "mid": 2, "high": 1.5})
    whole = mw.evaluate(rule, as_table(table), "grade", **options)
    judged = mw.evaluate(rule, as_table(as_frame(cut(table, 250))), "grade", **options)
    assert str(judged) == str(whole)


def test_rows_without_labels(tmp_path):
    table, later = draw(600), draw(1_200, seed=5).drop(["grade"])
    rule = mw.optimize(as_table(table), "grade", "macro_f1").rule
    path = tmp_path / "later.parquet"
    pq.write_table(later, path)
    rows, frame = as_table(path), as_table(as_frame(cut(later, 330)))
    shares, on_spark_shares = mw.estimate_shares(rule, rows), mw.estimate_shares(rule, frame)
    assert str(on_spark_shares) == str(shares)
    assert str(rule.adapted(frame)) == str(rule.adapted(rows))
    reference = (as_table(as_frame(cut(table, 250))), "grade")
    expected = mw.expect(rule, rows, "macro_f1", reference=(as_table(table), "grade"), random_state=0)
    assert str(mw.expect(rule, frame, "macro_f1", reference=reference, random_state=0)) == str(expected)


def test_a_sample_is_the_same_rows(tmp_path):
    """More rows than the sample on which rules are recalibrated and judged."""
    table = draw(30_000)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=4_000)
    file, frame = (
        open_rows(RowSpec(as_table(rows), "grade"))[1].sample(2_000, seed=3)
        for rows in (tmp_path / "rows.parquet", as_frame(cut(table, 9_000)))
    )
    np.testing.assert_array_equal(file.codes, frame.codes)
    np.testing.assert_array_equal(file.proba.blocks[0], frame.proba.blocks[0])
    np.testing.assert_array_equal(file.frequency, frame.frequency)


def test_many_partitions_are_added_in_order(monkeypatch):
    monkeypatch.setattr(on_spark, "_MAX_ANSWERS", 2)
    eta, y = worlds.multiclass(70, [0.4, 1.0, 0.7], seed=1)
    rows = Rows(read_proba(eta), y[:, None].astype(np.int8))
    pieces = source(rows, Schema.of_codes([3]), "spark")
    starts = pieces.map_reduce(lambda rows: [(rows.start, rows.n_rows)], lambda first, second: first + second)
    assert len(pieces.partitions.marks) == 3
    assert sum(n_rows for _, n_rows in starts) == 70
    assert starts == sorted(starts)


# ----------------------------------------------------------------------------------------- columns, and their kinds


def test_several_outputs_and_single_columns(tmp_path):
    rng = np.random.default_rng(4)
    p = rng.random((300, 2)).round(2)
    y = (rng.random((300, 2)) < p).astype(int)
    table = pa.table({"p_flu": p[:, 0], "p_cold": p[:, 1], "flu": y[:, 0], "cold": y[:, 1]})
    whole = mw.optimize(table.select(["p_flu", "p_cold"]).rename_columns(["flu", "cold"]), y, "f1")
    found = mw.optimize(mw.Table(as_frame(cut(table, 100)), proba=["p_flu", "p_cold"]), ["flu", "cold"], "f1")
    same(found, whole)
    assert [str(name) for name in found.rule.schema.output_names] == ["flu", "cold"]


def test_vectors_of_spark_ml(spark):
    from pyspark.ml.linalg import Vectors

    eta, y = worlds.multiclass(60, [0.4, 1.0, 0.7], sharpen=2, seed=3)
    rows = [(Vectors.dense(row.tolist()), float(label), row.tolist()) for row, label in zip(eta, y, strict=True)]
    frame = spark.createDataFrame(rows, ["probability", "label", "scores.3"])
    whole = mw.optimize(eta, y, "macro_f1", strategy=mw.Strategy(**RECIPE))
    for column in ("probability", "scores.3"):
        found = mw.optimize(mw.Table(frame, proba=column), "label", "macro_f1", strategy=mw.Strategy(**RECIPE))
        same(found, whole)
        np.testing.assert_array_equal(found.rule.predict(eta).astype(int), whole.rule.predict(eta))
    with pytest.raises(
        ValueError, match=r"optimize: classes must be given, one for each of the 3 items of 'probability'"
    ):
        mw.optimize(mw.Table(frame, proba="probability"), "label", "macro_f1", classes=["a", "b"])


@pytest.mark.parametrize("n_items", [2, 4])
def test_rows_with_another_number_of_items_are_refused(spark, n_items):
    """The items beyond those of the classes might be missed by a sum of probabilities."""
    eta, y = worlds.multiclass(60, [0.4, 1.0, 0.7], sharpen=2, seed=3)
    rows = [(row.tolist(), int(label)) for row, label in zip(eta, y, strict=True)]
    rows[40] = ([0.5, 0.5, 0.0, 0.2][:n_items], 1)
    frame = spark.createDataFrame(rows, ["scores", "label"])
    with pytest.raises(mw.InvalidParameter, match=r"^optimize: proba must be finite, got NaN or infinity in row 40"):
        mw.optimize(mw.Table(frame, proba="scores"), "label", "macro_f1")


def test_decisions_are_a_column_in_sql(spark):
    pytest.importorskip("sqlglot")
    table = draw(300)
    eta = table.select(["p_low", "p_mid", "p_high"]).rename_columns(["low", "mid", "high"])
    frame = as_frame([table])
    for strategy in (mw.Strategy(**RECIPE), mw.Strategy(confusion="expected", recalibrate=True)):
        rule = mw.optimize(as_table(table), "grade", "macro_f1", strategy=strategy).rule
        names = [f"p_{label}" for label in rule.schema.classes[0]]
        decision = mw.export.to_sql(rule, names, dialect="spark")
        decided = frame.selectExpr(f"{decision} AS decision").toArrow().column("decision").to_pylist()
        np.testing.assert_array_equal(decided, rule.predict(eta))


# ------------------------------------------------------------------------------------------------------------- refusals


def test_a_bad_row_is_named_by_its_place_among_all_rows():
    table = draw(300)
    bad = table.column("p_mid").to_numpy().copy()
    bad[210] = 7.0
    pieces = cut(table.set_column(1, "p_mid", pa.array(bad)), 100)
    with pytest.raises(mw.InvalidParameter, match=r"^optimize: .*row 210"):
        mw.optimize(as_table(as_frame(pieces)), "grade", "macro_f1")


def turned_later(path, n_first):
    """Turn partitions around after their first readings, which are listed in a file."""

    def turn(place, piece):
        n_readings = len(path.read_text()) if path.exists() else 0
        path.write_text("x" * (n_readings + 1))
        return piece if n_readings < n_first else piece.take(np.arange(piece.num_rows)[::-1])

    return turn


def test_rows_in_another_order_in_a_later_pass(tmp_path):
    """Outside of a call, nothing is kept."""
    frame = as_frame([draw(100)], turned_later(tmp_path / "readings", 5))
    _, rows = open_rows(RowSpec(as_table(frame), "grade"))
    np.testing.assert_array_equal(rows.map_reduce(Rows.tally, np.add), rows.class_weights)
    with pytest.raises(RuntimeError, match=r"Partition 0 .* same rows in the same order in every pass: sort it"):
        rows.map_reduce(Rows.tally, np.add)


def test_rows_are_read_once_and_kept_until_the_call_ends(tmp_path, spark):
    """A row for its columns, all rows for their labels, one for its types, and all once more."""
    table, path = draw(100), tmp_path / "readings"
    found = mw.optimize(as_table(as_frame([table], turned_later(path, 99))), "grade", "macro_f1")
    same(found, mw.optimize(as_table(table), "grade", "macro_f1"))
    assert path.read_text() == "xxxx"
    assert not spark.sparkContext._jsc.getPersistentRDDs()
    with pytest.raises(mw.InvalidParameter):
        mw.optimize(as_table(as_frame([table])), "grade", "macro_f1", subject_to="recall[low] >= 2")
    assert not spark.sparkContext._jsc.getPersistentRDDs()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda frame: mw.optimize(frame, "none", "f1"), "there is no column 'none'"),
        (lambda frame: mw.optimize(frame, [0, 1], "f1"), "y must be the name of the column of labels"),
        (lambda frame: mw.optimize(frame.limit(0), "grade", "f1"), "must have at least one row"),
        (
            lambda frame: mw.optimize(frame, "grade", "f1", sample_weight=[1.0]),
            "sample_weight must be the name of a co",
        ),
        (
            lambda frame: mw.WeightedRule.from_weights({"low": 1, "mid": 2, "high": 3}).predict(frame),
            "proba must be in memory, got a Spark data frame",
        ),
        (
            lambda frame: mw.predict_table(
                mw.WeightedRule.from_weights({"low": 1, "mid": 2, "high": 3}), frame, "out.parquet"
            ),
            "a Spark data frame, which is",
        ),
    ],
)
def test_what_is_refused(call, match):
    with pytest.raises((ValueError, TypeError), match=match):
        call(as_frame([draw(20)]))


# ------------------------------------------------------------------------------------------ workers that are lost


def fatal(path, n_times):
    """Return a question that kills its worker at row 20, until that has been done so many times.

    A function within a function travels as it is: workers need not import this file.
    """

    def ask(rows):
        n_done = len(path.read_text()) if path.exists() else 0
        if rows.start <= 20 < rows.start + rows.n_rows and n_done < n_times:
            path.write_text("x" * (n_done + 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return rows.tally()

    return ask


def test_a_worker_killed_in_the_middle_of_a_pass(tmp_path):
    eta, y = worlds.multiclass(60, [0.4, 1.0, 0.7], seed=1)
    rows = source(Rows(read_proba(eta), y[:, None].astype(np.int8)), Schema.of_codes([3]), "spark")
    np.testing.assert_array_equal(rows.map_reduce(fatal(tmp_path / "deaths", 2), np.add), [np.bincount(y)])
    assert (tmp_path / "deaths").read_text() == "xx"
    with pytest.raises(
        RuntimeError, match=r"A Spark task failed repeatedly because its worker was killed, .* unchanged"
    ):
        rows.map_reduce(fatal(tmp_path / "more", 99), np.add)


LOST = """
import subprocess, sys, threading
sys.path[:0] = ["tests"]
import pyarrow as pa
import metricwise as mw
import spark_frames
from metricwise.data.sources import spark, spark_reading
from pyspark import SparkContext

def stop():
    SparkContext._active_spark_context.stop()

def kill():
    SparkContext._gateway.proc.kill()
    SparkContext._gateway.proc.wait()

collect, queries = spark.collect_answers, []

def watched(*values):
    queries.append(values)
    if len(queries) == 6:  # when records are kept
        losing.start()
    return collect(*values)

spark.collect_answers = spark_reading.collect_answers = watched
table = pa.table({"p": [0.2, 0.7, 0.6, 0.9], "y": [0, 1, 0, 1]})
for lose in (stop, kill):
    queries.clear()
    losing = threading.Timer(0.2, lose)
    frame = spark_frames.session("local[1]").createDataFrame(table)
    try:
        mw.optimize(mw.Table(frame, proba="p"), "y", "f1")
    except RuntimeError as error:
        print(lose.__name__, error)
    losing.join()
"""


def test_a_session_that_is_lost():
    """Stopped by another thread, and with its process of Java."""
    command = [sys.executable, "-W", "ignore", "-c", LOST]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    said = "The Spark session was lost during a pass. Start a session and call again. Nothing has been written"
    assert [line for line in ("stop", "kill") if f"{line} {said}" in done.stdout] == ["stop", "kill"], done.stdout


def test_nothing_is_kept_after_an_interrupt(spark, monkeypatch):
    map_reduce, n_kept = on_spark.SparkSource.map_reduce, []

    def watched(*values):
        n_kept.append(len(spark.sparkContext._jsc.getPersistentRDDs()))
        if len(n_kept) == 2:
            signal.raise_signal(signal.SIGINT)  # before the next line, so that it cannot come late
        return map_reduce(*values)

    monkeypatch.setattr(on_spark.SparkSource, "map_reduce", watched)
    with pytest.raises(KeyboardInterrupt):
        mw.optimize(as_table(as_frame([draw(100)])), "grade", "macro_f1")
    assert n_kept == [1, 1]
    assert not spark.sparkContext._jsc.getPersistentRDDs()


MISSING = """
import os, stat, sys
from pathlib import Path
sys.path[:0] = ["tests"]
import pyarrow as pa
import metricwise as mw
import spark_frames

folder = Path(sys.argv[1])
(folder / "sitecustomize.py").write_text("import sys; sys.modules['metricwise'] = None")
python = folder / "python"
python.write_text(f'#!/bin/sh\\nPYTHONPATH={folder}:$PYTHONPATH exec {sys.executable} "$@"\\n')
python.chmod(0o755)
sys.executable = str(python)
frame = spark_frames.session("local[1]").createDataFrame(pa.table({"p": [0.2, 0.7], "y": [0, 1]}))
try:
    mw.optimize(mw.Table(frame, proba="p"), "y", "f1")
except RuntimeError as error:
    print(error)
"""


def test_executors_without_the_library(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", MISSING, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert (
        "The Python of Spark's executors has no module metricwise: install metricwise and pyarrow there" in done.stdout
    )
