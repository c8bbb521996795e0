"""Engines: sources over the same rows that must be indistinguishable to whoever counts them."""

import itertools
import shutil
import tempfile
import weakref
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from metricwise.core.inputs import PROBABILITIES, Input
from metricwise.core.rows import Rows
from metricwise.core.schema import Schema
from metricwise.data.arrays import PieceReader
from metricwise.data.columns import ProbabilityColumns
from metricwise.data.sources import tables
from metricwise.data.sources.chunked import ChunkedSource
from metricwise.data.sources.dask import DaskSource
from metricwise.data.sources.dask_tasks import call
from metricwise.data.sources.memory import MemorySource
from metricwise.data.tables.reading import Table, open_table
from metricwise.oracles.counts import Counts

# How many rows of so many are read at a time; None: all of them, in memory.
ENGINES = {
    "memory": None,
    "one by one": lambda _: 1,
    "chunks of 3": lambda _: 3,
    "chunks of 1000": lambda _: 1000,
    "pieces": lambda n_rows: -(-n_rows // 3),
    "parquet": lambda n_rows: max(2, -(-n_rows // 3)),
    "dask": lambda n_rows: 1 if n_rows <= 8 else -(-n_rows // 3),
    "spark": lambda n_rows: max(2, -(-n_rows // 3)),
}


def source(rows, schema, engine="memory"):
    """Rows behind an engine."""
    whole, size = MemorySource(rows, schema), ENGINES[engine]
    if engine == "parquet" and is_table(rows):
        return on_disk(rows, schema, size(rows.n_rows))
    if engine == "dask":
        return on_dask(rows, schema, size(rows.n_rows))
    if engine == "spark" and is_table(rows):
        return on_spark(rows, schema, size(rows.n_rows))
    return whole if size is None else ChunkedSource.of(whole, size(whole.n_rows))


def is_table(rows):
    """Whether rows hold what a table does, and nothing else."""
    link = None if rows.proba.of_logits else rows.proba.link
    others = (rows.mass, rows.frequency, rows.group, rows.cost, rows.cluster, rows.repeats, link)
    plain = all(one is None for one in others) and (rows.weight is None or rows.weight.ndim == 1)
    return plain and len({block.ndim for block in rows.proba.blocks}) == 1


def on_disk(rows, schema, size):
    """Rows as a Parquet file that is read in batches."""
    table, layout = as_table(rows)
    folder = Path(tempfile.mkdtemp())
    pq.write_table(table, folder / "rows.parquet", row_group_size=size)
    chunks = tables.TableChunks(open_table(Table(folder / "rows.parquet")), layout, rows.n_rows, size)
    weakref.finalize(chunks, shutil.rmtree, folder, ignore_errors=True)
    return ChunkedSource(chunks, schema)


def on_spark(rows, schema, size):
    """Rows as partitions of a data frame of Spark, by the session in use."""
    from metricwise.data.sources.spark import numbered_columns
    from metricwise.data.sources.spark_reading import Reader, open_partitions
    from spark_frames import as_frame

    table, layout = as_table(rows)
    frame = as_frame([table.slice(start, size) for start in range(0, rows.n_rows, size)])
    reader = Reader(layout, max(1, size // 2))
    return open_partitions(
        numbered_columns(frame, layout.columns), reader, schema, rows.codes is not None, rows.weight is not None
    )


def as_table(rows):
    """Rows as an Arrow table, and which of its columns is what."""
    n_classes = rows.proba.n_classes
    found, columns, targets = [], {}, []
    for m, k in enumerate(n_classes):
        eta = numbers_of(rows.proba, m)
        eta = eta[:, None] if eta.ndim == 1 else eta[:, :k]
        names = tuple(f"{m}={c}" for c in range(eta.shape[1]))
        columns |= dict(zip(names, eta.T, strict=True))
        found.append(ProbabilityColumns(names, tuple(range(k))))
        if rows.codes is not None:
            columns[f"y{m}"] = pa.array(rows.codes[:, m], mask=rows.codes[:, m] < 0)
            targets.append(tables.LabelColumn(f"y{m}", list(range(k)), None, None))
    if rows.weight is not None:
        columns["weight"] = rows.weight
    row_input = Input("logits", rows.proba.link) if rows.proba.of_logits else PROBABILITIES
    codes = replace(Schema.of_codes(n_classes), multioutput=True, input=row_input)
    reader = PieceReader(codes, True, None, None)
    weight = None if rows.weight is None else "weight"
    layout = tables.BatchLayout(reader, found, tuple(targets), weight, None, "rows")
    return pa.table(columns), layout


def numbers_of(proba, m):
    """Probabilities or logits of an output, (N,) or (N, K), as a table has them."""
    return next(block[:, m - span.start] for block, span in proba.spans() if m < span.stop)


def on_dask(rows, schema, size):
    """Rows as chunks that Dask computes, by whatever scheduler is in use."""
    starts = np.append(np.arange(0, rows.n_rows, size), rows.n_rows)
    pieces = tuple(call(rows.take, slice(int(a), int(b))) for a, b in itertools.pairwise(starts))
    return DaskSource(pieces, starts, schema, rows.codes is not None, rows.weight is not None)


def counts(proba, codes=None, weight=None, confusion="labels", prior=None, *, link=None, engine="memory"):
    """The oracle of probabilities that have been read."""
    return Counts(source(Rows(proba, codes, weight), Schema.of_codes(proba.n_classes), engine), confusion, link, prior)


def served_by(engine):
    """Let `optimize` put the rows that it reads behind an engine, by its name."""
    return rows_served_by(partial(source, engine=engine))


def rows_served_by(engine):
    """Let `optimize` put the rows that it reads behind an engine, from rows and schema to a source."""
    return mock.patch("metricwise.data.open.MemorySource", engine)
