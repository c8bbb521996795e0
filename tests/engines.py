"""Engines: sources over the same rows that must be indistinguishable to whoever counts them."""

import contextlib

from metricwise import optimization
from metricwise.inputs import Schema
from metricwise.oracles import Counts
from metricwise.rows import Rows
from metricwise.sources import ChunkedSource, MemorySource

# How many rows of so many are read at a time; None: all of them, in memory.
ENGINES = {
    "memory": None,
    "one by one": lambda _: 1,
    "chunks of 3": lambda _: 3,
    "chunks of 1000": lambda _: 1000,
    "pieces": lambda n_rows: 1 if n_rows <= 8 else -(-n_rows // 3),
}


def source(rows, schema, engine="memory"):
    """Rows behind an engine."""
    whole, size = MemorySource(rows, schema), ENGINES[engine]
    return whole if size is None else ChunkedSource.of(whole, size(whole.n_rows))


def counts(proba, codes=None, weight=None, confusion="labels", prior=None, *, link=None, engine="memory"):
    """The oracle of probabilities that have been read."""
    return Counts(source(Rows(proba, codes, weight), Schema.of_codes(proba.n_classes), engine), confusion, link, prior)


@contextlib.contextmanager
def served_by(engine):
    """Let `optimize` put the rows that it reads behind an engine."""
    own = optimization.MemorySource
    optimization.MemorySource = lambda rows, schema: source(rows, schema, engine)
    try:
        yield
    finally:
        optimization.MemorySource = own
