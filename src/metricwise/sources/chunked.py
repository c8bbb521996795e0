"""Rows in chunks, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..inputs import Schema
from ..rows import Probabilities, Rows
from .base import SourceBase
from .memory import MemorySource
from .passes import Passes

__all__ = ["ChunkedSource"]

IntArray = NDArray[np.intp]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ChunkedSource(SourceBase):
    """Rows that are read a chunk at a time, as they are wherever they do not fit into memory.

    Parameters
    ----------
    chunks : sequence of Rows
        In order; each says at `start` how many rows come before it. Whatever has a length and gives the same rows
        whenever it is gone through will do: chunks may be read anew in every pass.
    schema : Schema
    passes : Passes, optional
    changes : tuple of callables
        What becomes of a chunk when it has been read.

    See Also
    --------
    ChunkedSource.of : cut rows that are in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.inputs import Schema, read_proba
    >>> from metricwise.rows import Rows
    >>> from metricwise.sources import ChunkedSource, MemorySource
    >>> rows = Rows(read_proba([0.2, 0.6, 0.9]), np.array([[0], [0], [1]]))
    >>> whole = MemorySource(rows, Schema.of_codes([2]))
    >>> source = ChunkedSource.of(whole, 2)
    >>> source.reduce(lambda rows: [(rows.start, rows.n_rows)])
    [(0, 2), (2, 1)]
    >>> source.class_weights.tolist()
    [[2.0, 1.0]]
    """

    chunks: Sequence[Rows]
    schema: Schema
    passes: Passes = field(default_factory=Passes)
    changes: tuple[Callable[[Rows], Rows], ...] = ()

    @classmethod
    def of(cls, source: MemorySource, n_rows: int) -> ChunkedSource:
        """Cut the rows of a source into chunks of so many."""
        if n_rows < 1:
            raise ValueError(f"ChunkedSource.of: n_rows must be at least 1, got {n_rows!r}.")
        starts = range(0, max(source.n_rows, 1), n_rows)
        chunks = [source.rows.take(slice(start, start + n_rows)) for start in starts]
        return cls(chunks, source.schema, source.passes)

    def _read(self) -> Iterator[Rows]:
        for chunk in self.chunks:
            yield reduce(lambda rows, change: change(rows), self.changes, chunk)

    @property
    def n_rows(self) -> int:
        """N."""
        last = self.chunks[-1]
        return last.start + last.n_rows

    @property
    def labelled(self) -> bool:
        """Whether rows have labels."""
        return self.chunks[0].codes is not None

    def ask_all(self, ask: Callable[[Rows], T], add: Callable[[T, T], T]) -> T:
        """Ask chunk by chunk, and add up in order."""
        return reduce(add, map(ask, self._read()))

    def map(self, change: Callable[[Rows], Rows]) -> ChunkedSource:
        """Return the source whose chunks are changed whenever they are read."""
        return ChunkedSource(self.chunks, self.schema, self.passes, (*self.changes, change))

    def of_outputs(self, outputs: IntArray) -> ChunkedSource:
        """Return the source of some of the outputs."""
        return replace(self.map(lambda rows: rows.of_outputs(outputs)), schema=self.schema.of_outputs(outputs))

    def take(self, rows: IntArray) -> Rows:
        """Return the rows at ascending positions, in memory."""
        found = []
        for chunk in self._read():
            begin, end = np.searchsorted(rows, (chunk.start, chunk.start + chunk.n_rows))
            if begin < end:
                found.append(chunk.take(rows[begin:end] - chunk.start))
        return _joined(found)


def _joined(parts: Sequence[Rows]) -> Rows:
    """Put rows one after the other."""
    first = parts[0]
    if len(parts) == 1:
        return first
    blocks = zip(*(part.proba.recalibrated().blocks for part in parts), strict=True)
    proba = Probabilities(tuple(np.concatenate(arrays) for arrays in blocks), first.proba.n_classes)

    def joined(name: str, axis: int = 0) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays, axis=axis)

    others = [joined(name) for name in ("mass", "frequency", "group", "cost", "cluster", "repeats")]
    return Rows(proba, joined("codes"), joined("weight", -1), *others)
