"""A DuckDB file, in which the Parquet files are a table: a query of it is run in every pass."""

from __future__ import annotations

import importlib.util
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from out_of_memory_engines import LABELS, measure_call, measure_passes


def missing() -> str | None:
    return None if importlib.util.find_spec("duckdb") else "duckdb is not installed"


def load(path: Path, paths: list[str]) -> None:
    import duckdb

    with duckdb.connect(path) as connection:
        connection.execute(f"CREATE TABLE oof AS SELECT * FROM read_parquet({paths})")


def measure(paths: list[str]) -> dict[str, float]:
    import duckdb

    import metricwise as mw

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.duckdb"
        with ProcessPoolExecutor(1, get_context("spawn")) as other:  # whose memory does not count
            other.submit(load, path, paths).result()
        with duckdb.connect(path, config={"memory_limit": "256MB"}) as connection:
            rows = mw.Table(mw.Query(connection, "SELECT * FROM oof"), proba_prefix="p_"), LABELS
            return {**measure_call(*rows), **measure_passes(*rows)}
