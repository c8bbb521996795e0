"""The benchmark of engines: what each file of an engine has, what a row says, and equal counts."""

import subprocess

import numpy as np
import pytest

FIGURES = {"seconds": 2.0, "pass": 0.5, "peak": 2e8, "n_passes": 6, "value": 0.35, "counts": 17}


@pytest.fixture
def benchmark(load):
    return load("out_of_memory")


@pytest.fixture
def engines(load):
    return load("out_of_memory_engines")


def test_every_engine_says_how_it_reads_and_whether_it_can_be_measured(benchmark):
    assert benchmark.ENGINES[:1] == ["files"]
    assert "dask" in benchmark.ENGINES
    for name in benchmark.ENGINES:
        engine = benchmark.engine(name)
        problem = engine.missing()
        assert engine.__doc__
        assert callable(engine.measure)
        assert problem is None or problem
    assert benchmark.engine("files").missing() is None


def test_a_row_compares_with_files(benchmark):
    files = {**FIGURES, "reading": 0.25, "linked": 0.7}
    dask = {**FIGURES, "seconds": 3.0, "pass": 1.0, "workers": 3e8, "counts": 18}
    first = benchmark.row(1_000_000, "files", 0.0, files, files)
    other = benchmark.row(1_000_000, "dask", 0.0, dask, files)
    assert list(first) == list(other)
    assert (first["≤ 1.5 reads"], first["call to files"], first["counts equal"]) == ("**no**", "1.00", "yes")
    assert (other["pass to files"], other["call to files"], other["counts equal"]) == ("2.00", "1.50", "**no**")
    assert (other["ns per row"], other["workers' peak MB"]) == ("1,000", "300")
    alone = benchmark.row(1_000_000, "dask", 0.0, dask, None)
    assert alone["call to files"] is alone["counts equal"] is None


def test_an_engine_that_is_missing_or_fails_is_named(benchmark, monkeypatch, tmp_path):
    def measured(name, paths):
        if name == "broken":
            raise subprocess.CalledProcessError(3, name)
        return FIGURES

    class Absent:
        missing = staticmethod(lambda: "no such server")

    class Present:
        missing = staticmethod(lambda: None)

    monkeypatch.setattr(benchmark, "measured", measured)
    monkeypatch.setattr(benchmark, "engine", lambda name: Absent if name == "absent" else Present)
    monkeypatch.setattr(benchmark, "files", lambda folder, n_rows: [])
    rows, left_out = benchmark.rows_of(tmp_path, 1_000, ["files", "absent", "broken"])
    assert [row["engine"] for row in rows] == ["files"]
    assert left_out == ["absent, 1,000 rows: no such server", "broken, 1,000 rows: failed, exit code 3"]
    text = benchmark.markdown(rows, left_out, 0)
    assert "- Not measured: absent, 1,000 rows: no such server." in text


def test_what_is_measured(benchmark):
    assert benchmark.plan_of(benchmark.parsed([])) == benchmark.PLAN
    assert benchmark.plan_of(benchmark.parsed(["--quick"])) == {1_000_000: benchmark.ENGINES}
    assert benchmark.plan_of(benchmark.parsed(["--rows", "5", "7", "--engines", "dask"])) == {5: ["dask"], 7: ["dask"]}
    assert benchmark.plan_of(benchmark.parsed(["--engines", "files"])) == {
        n_rows: ["files"] for n_rows in benchmark.PLAN
    }


@pytest.mark.slow
def test_files_and_dask_count_what_the_files_hold(benchmark, engines, tmp_path):
    import pandas as pd

    paths = benchmark.files(tmp_path, 3_000)
    assert paths == benchmark.files(tmp_path, 3_000)
    frame = pd.concat([pd.read_parquet(path) for path in paths])
    counts = np.zeros((10, 10))
    np.add.at(counts, (frame["grade"], frame[engines.NAMES].to_numpy().argmax(axis=1)), 1)
    figures = [benchmark.engine(name).measure(paths) for name in ("files", "dask")]
    assert [figure["counts"] for figure in figures] == [engines.checksum(counts)] * 2
    assert engines.checksum(counts.T) != engines.checksum(counts)
    assert figures[0]["value"] == pytest.approx(figures[1]["value"], abs=1e-12)
    assert figures[0]["n_passes"] == figures[1]["n_passes"]
