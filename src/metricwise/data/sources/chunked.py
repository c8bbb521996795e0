"""Rows that are read in chunks, some of them at a time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidParameter, entry_point
from ...core.losses import Loss
from ...core.rows import Rows
from ...core.schema import Schema
from ...kernels import LinkArrays, work_alone
from ..tables.reading import closed
from .base import LazySource, Passes, changed, join_rows

__all__ = ["ChunkedSource", "Chunks"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
KeyArray = NDArray[np.uint64]
T = TypeVar("T")
Read = Callable[[], Rows]

_N_THREADS = min(os.cpu_count() or 1, 4)  # decoding takes longer than counting, and chunks that are held take memory


class RowsInMemory(Protocol):
    """What is needed of a source in memory to cut its rows into chunks."""

    @property
    def rows(self) -> Rows: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def passes(self) -> Passes: ...


class Chunks(Protocol):
    """Some rows at a time, in order; each lot says at `start` how many rows come before it.

    Whatever gives the same rows whenever it is gone through will do: chunks may be read anew in every pass. `reads`
    yields what makes rows of each, in order, so that several threads can do so at a time.

    Attributes
    ----------
    n_rows : int
        N.
    labelled, weighted : bool
        Whether rows have labels, and weights.
    """

    @property
    def n_rows(self) -> int: ...

    @property
    def labelled(self) -> bool: ...

    @property
    def weighted(self) -> bool: ...

    def reads(self) -> Iterator[Read]: ...


@dataclass(frozen=True, eq=False)
class ChunkedSource(LazySource):
    """Source of rows that are read chunk by chunk, for rows that do not fit into memory.

    Parameters
    ----------
    chunks : Chunks
    schema : Schema
    passes : Passes, optional
    changes : tuple of callables
        Functions that are applied to every chunk after reading.
    most : int, optional
        Maximum number of items that an answer may hold; by default, no limit.

    See Also
    --------
    ChunkedSource.of : Split rows in memory into chunks.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.core.schema import Schema
    >>> from metricwise.data.probabilities import read_proba
    >>> from metricwise.core.rows import Rows
    >>> from metricwise.data.sources.chunked import ChunkedSource
    >>> from metricwise.data.sources.memory import MemorySource
    >>> rows = Rows(read_proba([0.2, 0.6, 0.9]), np.array([[0], [0], [1]]))
    >>> whole = MemorySource(rows, Schema.of_codes([2]))
    >>> source = ChunkedSource.of(whole, 2)
    >>> source.reduce(lambda rows: [(rows.start, rows.n_rows)])
    [(0, 2), (2, 1)]
    >>> source.class_weights.tolist()
    [[2.0, 1.0]]
    """

    chunks: Chunks
    schema: Schema
    passes: Passes = field(default_factory=Passes)
    changes: tuple[Callable[[Rows], Rows], ...] = ()
    most: int | None = None
    partition: Any = None

    @classmethod
    @entry_point()
    def of(cls, source: RowsInMemory, n_rows: int) -> ChunkedSource:
        """Split the rows of a source into chunks of `n_rows`."""
        if n_rows < 1:
            raise InvalidParameter("n_rows", "be at least 1", repr(n_rows))
        starts = range(0, max(source.rows.n_rows, 1), n_rows)
        chunks = _Cut([source.rows.take(slice(start, start + n_rows)) for start in starts])
        return cls(chunks, source.schema, source.passes)

    def _reads(self) -> Iterator[Read]:
        with closed(self.chunks.reads()) as reads:
            for read in reads:
                yield read
                if self.passes.listener is not None:
                    self.passes.listener()

    @property
    def n_rows(self) -> int:
        """N."""
        return self.chunks.n_rows

    @property
    def labelled(self) -> bool:
        """Whether rows have labels."""
        return self.chunks.labelled

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.chunks.weighted

    @property
    def capacity(self) -> int | None:
        """Maximum number of items that an answer may hold; None: no limit."""
        return self.most

    def map_reduce(self, ask: Callable[[Rows], T], add: Callable[[T, T], T]) -> T:
        """Ask several chunks at a time while the next are read, and add up in order."""
        with closed(self._reads()) as reads:
            return reduce(add, _answers(lambda read: ask(changed(read(), self.changes)), reads))

    def _there(self, name: str) -> Any:
        """What chunks that are counted where they are have by this name; None where rows must be read.

        Only databases count, and only rows that have not been changed.
        """
        return None if self.changes else getattr(self.chunks, name, None)

    def count_losses(
        self, losses: Sequence[Loss], expected: bool, link: LinkArrays | None = None, linked: bool = True
    ) -> FloatArray | None:
        """Return sums of weights (2, R, M, K, K) by label and by expected label, and by decision: one pass.

        None where rows must be read to be counted.

        Parameters
        ----------
        losses : sequence of R Loss
        expected : bool
            Whether expected labels are counted; otherwise their sums are 0.
        link : LinkArrays, optional
            Of probabilities, which are counted behind it.
        linked : bool, default=True
            Whether they are decided behind it as well.
        """
        count = self._there("count_losses")
        counted: FloatArray | None = None if count is None else count(losses, expected, link, linked)
        if counted is not None:
            self.passes.add(self.n_rows * self.schema.n_outputs)
        return counted

    @property
    def _label_counts(self) -> tuple[FloatArray, FloatArray] | None:
        counts: tuple[FloatArray, FloatArray] | None = self._there("label_counts")
        return counts

    @property
    def _low_there(self) -> Callable[[KeyArray, int], tuple[IntArray, KeyArray, Rows]] | None:
        low: Callable[[KeyArray, int], tuple[IntArray, KeyArray, Rows]] | None = self._there("low")
        return low

    def take(self, rows: IntArray) -> Rows:
        """Return the rows at ascending positions, in memory."""
        select = self._there("take")
        selected: Rows | None = None if select is None else select(rows)
        if selected is not None:
            return selected
        parts = []
        with closed(self._reads()) as reads:
            for read in reads:
                chunk = changed(read(), self.changes)
                begin, end = np.searchsorted(rows, (chunk.start, chunk.start + chunk.n_rows))
                if begin < end:
                    parts.append(chunk.take(rows[begin:end] - chunk.start))
                if end == len(rows):  # chunks come in order: the others have none of these
                    break
        return join_rows(parts)


def _answers(answer: Callable[[Read], T], reads: Iterator[Read]) -> Iterator[T]:
    """Yield the answers of chunks in order, each counted by one thread.

    Threads that share a chunk would wait for the next one at full speed, and take the processor from those that decode
    it. One that has a chunk to itself sleeps.
    """
    with ThreadPoolExecutor(_N_THREADS, initializer=work_alone) as pool:
        asked: deque[Future[T]] = deque()
        for read in reads:
            asked.append(pool.submit(answer, read))
            if len(asked) > _N_THREADS:
                yield asked.popleft().result()
        while asked:
            yield asked.popleft().result()


@dataclass(frozen=True, eq=False)
class _Cut:
    """Chunks that are in memory."""

    chunks: Sequence[Rows]

    @property
    def n_rows(self) -> int:
        last = self.chunks[-1]
        return last.start + last.n_rows

    @property
    def labelled(self) -> bool:
        return self.chunks[0].codes is not None

    @property
    def weighted(self) -> bool:
        return self.chunks[0].weight is not None

    def reads(self) -> Iterator[Read]:
        return (partial(Rows.take, chunk, slice(None)) for chunk in self.chunks)
