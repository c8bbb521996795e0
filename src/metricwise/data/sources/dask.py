"""Rows in a Dask collection.

A pass is a graph: chunks are processed by the workers that hold them, and the results are added in a tree, in order.
Must not know what is counted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.rows import Rows
from ...core.schema import Schema
from .base import ClusterSource, Passes, TakenRows, changed, join_rows
from .dask_batches import Batch, Kept
from .dask_tasks import add_up, compute, leaf

__all__ = ["DaskSource"]

IntArray = NDArray[np.intp]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class DaskSource(ClusterSource):
    """Rows in chunks that Dask computes, on threads, processes or a cluster.

    Parameters
    ----------
    pieces : tuple of Batch or Delayed
        Each of rows, of one at least, which know their position.
    starts : ndarray of shape (P + 1,), int
        How many rows come before each piece; the last is N.
    schema : Schema
    has_labels, has_weights : bool
    passes : Passes, optional
    changes : tuple of callables
        What becomes of rows when they have been read.
    kept : Kept, optional
        Rows that workers keep, which are asked in the place of pieces.

    See Also
    --------
    metricwise.optimize : takes Dask arrays and data frames.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from metricwise.core.schema import Schema
    >>> from metricwise.data.probabilities import read_proba
    >>> from metricwise.core.rows import Rows
    >>> from metricwise.data.sources.dask import DaskSource
    >>> rows = Rows(read_proba([0.2, 0.6, 0.9]), np.array([[0], [0], [1]]))
    >>> pieces = tuple(dask.delayed(rows.take)(slice(at, at + 2)) for at in (0, 2))
    >>> source = DaskSource(pieces, np.array([0, 2, 3]), Schema.of_codes([2]), has_labels=True)
    >>> source.class_weights.tolist()
    [[2.0, 1.0]]
    """

    pieces: tuple[Any, ...]
    starts: IntArray
    schema: Schema
    has_labels: bool = False
    has_weights: bool = False
    passes: Passes = field(default_factory=Passes)
    changes: tuple[Callable[[Rows], Rows], ...] = ()
    partition: Any = None
    kept: Kept = field(default_factory=Kept)

    @property
    def n_rows(self) -> int:
        """N."""
        return int(self.starts[-1])

    def map_reduce(self, ask: Callable[[Rows], T], add: Callable[[T, T], T]) -> T:
        """Ask every piece where it lies, and add up in a tree, in order."""
        if ask is not Rows.tally:
            self._known()  # before the question is packed: a client that waits while it packs may wait for ever
        return self._asked(range(len(self.pieces)), [ask] * len(self.pieces), add)

    def take(self, rows: IntArray) -> Rows:
        """Return the rows at ascending positions, in memory."""
        ends = np.searchsorted(rows, self.starts)
        some = np.flatnonzero(np.diff(ends)).tolist()
        takes = [TakenRows(rows[ends[p] : ends[p + 1]]) for p in some]
        return join_rows(self._asked(some, takes, operator.add))

    def _asked(self, places: Sequence[int], asks: Sequence[Callable[[Rows], T]], add: Callable[[T, T], T]) -> T:
        """Ask pieces at some places, each something."""
        pieces = self.kept.batches or self.pieces
        questions = {id(ask): leaf(_Question(self.changes, ask, add)) for ask in asks}
        parts = [Batch.of(pieces[p]).ask(questions[id(ask)]) for p, ask in zip(places, asks, strict=True)]
        total: T = compute(add_up(parts, add))
        return total

    def keep(self, n_bytes: float) -> None:
        """Let workers keep rows of so many bytes until the call ends, if they have room for them."""
        self.kept.keep([Batch.of(piece) for piece in self.pieces], n_bytes)

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels with a question: all but rows, samples of them, and who listens to passes."""
        return {**self._travelling("starts"), "pieces": (), "kept": Kept()}


class _Question:
    """What is asked of chunks once they have been changed. Not a dataclass, into which Dask would look."""

    def __init__(
        self, changes: Sequence[Callable[[Rows], Rows]], ask: Callable[[Rows], Any], add: Callable[[Any, Any], Any]
    ) -> None:
        self.changes, self.ask, self.add = changes, ask, add

    def __call__(self, chunks: Iterable[Rows]) -> Any:
        return reduce(self.add, (self.ask(changed(rows, self.changes)) for rows in chunks))
