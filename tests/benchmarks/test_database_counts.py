"""The benchmark of databases that count: answers must be equal, and a way to read without samples is left out."""

import sys
from contextlib import ExitStack

import numpy as np
import pytest

from pages import ROOT

N_ROWS = 600  # few enough that the sample of all engines is all rows


@pytest.fixture
def benchmark(load, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    benchmark = load("database_counts")
    monkeypatch.setattr(benchmark, "N_TRIES", 1)
    return benchmark


@pytest.fixture
def paths(benchmark, tmp_path):
    return benchmark.files(tmp_path, N_ROWS)


@pytest.mark.slow
def test_databases_count_what_files_count(benchmark, paths):
    with ExitStack() as stack:
        contestants, left_out = benchmark.open_contestants(paths, stack)
        seconds, calls = benchmark.measure(contestants)
    names = {contestant.name for contestant in contestants}
    assert {"files"} <= names
    assert len(names) + len(left_out) >= 3
    assert set(seconds["one loss, labels"]) == names
    assert set(seconds) == set(benchmark.passes())
    assert set(calls) == set(benchmark.METRICS)
    assert set(calls["macro_f1"]) == names - {"DuckDB counts"}
    assert all(value > 0 for best in seconds.values() for value in best.values())
    text = benchmark.markdown(seconds, calls, {"left_out": ["a: b"], "rows": N_ROWS, "load": 0.0})
    assert text.count("\n| ") == 2 * 2 + len(seconds) + len(calls)
    assert "- Not measured: a: b." in text


def test_ways_that_do_not_count_the_same_are_noticed(benchmark, paths, tmp_path):
    import pyarrow.parquet as pq

    rows = pq.read_table(paths[0])
    other = tmp_path / "other.parquet"
    order = np.roll(np.arange(N_ROWS), 1)
    pq.write_table(rows.set_column(rows.num_columns - 1, "grade", rows["grade"].take(order)), other)
    table = [benchmark.Contestant(name, lambda path=path: _table(path)) for name, path in (("a", paths), ("b", other))]
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        benchmark.measure(table)


def _table(path):
    import metricwise as mw

    return mw.Table(path, proba_prefix="p_")
