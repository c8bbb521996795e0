"""A PostgreSQL server on this machine, reached by ADBC through a socket: rows are copied to a file when first read.

`streamed` and `counted` are a pass of the same two losses without that copy: rows that are sent by the server, and
counts that it makes itself.
"""

from __future__ import annotations

import importlib.util
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from unittest import mock

import numpy as np

from out_of_memory_engines import CLASSES, LABELS, best_of, measure_call, measure_passes

sys.path.append(str(Path(__file__).parents[2]))


def missing() -> str | None:
    from benchmarks.export_engines import find_postgres

    if importlib.util.find_spec("adbc_driver_postgresql") is None:
        return "adbc_driver_postgresql is not installed"
    return "PostgreSQL is not installed" if find_postgres() is None else None


def load(address: str, paths: list[str]) -> None:
    import pyarrow.dataset as ds
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("oof", ds.dataset(paths).scanner(batch_size=1 << 16).to_reader(), mode="create")
        cursor.execute("VACUUM ANALYZE oof")


def measure(paths: list[str]) -> dict[str, float]:
    from adbc_driver_postgresql import dbapi

    import metricwise as mw
    from benchmarks.export_engines import postgres

    with postgres() as server:
        address = f"postgresql:///postgres?host={server.folder}&user=postgres"
        with ProcessPoolExecutor(1, get_context("spawn")) as other:  # whose memory does not count
            other.submit(load, address, paths).result()
        with dbapi.connect(address, autocommit=True) as connection:
            query = "SELECT * FROM oof"
            copied = mw.Table(mw.Query(connection, query), proba_prefix="p_"), LABELS
            figures = {**measure_call(*copied), **measure_passes(*copied)}
            rows = mw.Table(mw.Query(connection, query, copy=False), proba_prefix="p_")
            return {**figures, **measure_without_copy(rows)}


def measure_without_copy(rows: object) -> dict[str, float]:
    """Time a pass that counts two losses, of rows that are read and within the database."""
    from metricwise.core.losses import Loss
    from metricwise.data.open import open_rows
    from metricwise.data.row_spec import RowSpec
    from metricwise.data.sources.chunked import ChunkedSource
    from metricwise.oracles.counts import Counts

    _, source = open_rows(RowSpec(rows, LABELS))
    losses = [Loss.argmax(CLASSES), Loss.from_tensor(-np.diag(np.linspace(1, 3, CLASSES)))]
    assert source.class_weights.sum() == source.n_rows  # the first pass, which checks rows
    assert source.count_losses(losses, False) is not None
    counted = best_of(lambda: Counts(source).confusions(losses))
    with mock.patch.object(ChunkedSource, "count_losses", return_value=None):
        return {"counted": counted, "streamed": best_of(lambda: Counts(source).confusions(losses))}
