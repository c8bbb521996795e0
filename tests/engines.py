"""Engines: sources over the same rows that must be indistinguishable to whoever counts them."""

import contextlib
import itertools

import numpy as np

from metricwise import reading
from metricwise.inputs import Schema
from metricwise.oracles import Counts
from metricwise.rows import Rows
from metricwise.sources import ChunkedSource, MemorySource
from metricwise.sources.dask import DaskSource, call

# How many rows of so many are read at a time; None: all of them, in memory.
ENGINES = {
    "memory": None,
    "one by one": lambda _: 1,
    "chunks of 3": lambda _: 3,
    "chunks of 1000": lambda _: 1000,
    "pieces": lambda n_rows: 1 if n_rows <= 8 else -(-n_rows // 3),
    "dask": lambda n_rows: 1 if n_rows <= 8 else -(-n_rows // 3),
}


def source(rows, schema, engine="memory"):
    """Rows behind an engine."""
    whole, size = MemorySource(rows, schema), ENGINES[engine]
    if engine == "dask":
        return on_dask(rows, schema, size(rows.n_rows))
    return whole if size is None else ChunkedSource.of(whole, size(whole.n_rows))


def on_dask(rows, schema, size):
    """Rows as chunks that Dask computes, by whatever scheduler is in use."""
    starts = np.append(np.arange(0, rows.n_rows, size), rows.n_rows)
    pieces = tuple(call(rows.take, slice(int(a), int(b))) for a, b in itertools.pairwise(starts))
    return DaskSource(pieces, starts, schema, rows.codes is not None, rows.weight is not None)


def counts(proba, codes=None, weight=None, confusion="labels", prior=None, *, link=None, engine="memory"):
    """The oracle of probabilities that have been read."""
    return Counts(source(Rows(proba, codes, weight), Schema.of_codes(proba.n_classes), engine), confusion, link, prior)


@contextlib.contextmanager
def served_by(engine):
    """Let `optimize` put the rows that it reads behind an engine."""
    own = reading.MemorySource
    reading.MemorySource = lambda rows, schema: source(rows, schema, engine)
    try:
        yield
    finally:
        reading.MemorySource = own
