"""Rows in a Dask collection.

A pass is a graph: chunks are processed by the workers that hold them, and the results are added in a tree, in order.
Must not know what is counted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.rows import Rows
from ...core.schema import Schema
from .base import LazySource, Passes, changed, join_rows

__all__ = ["DaskSource", "add_up", "call", "compute", "leaf"]

IntArray = NDArray[np.intp]
T = TypeVar("T")

_MAX_ANSWER_ITEMS = 1 << 20  # some 40 MB of changes
_TREE_WIDTH = 8  # answers that are added up by one task


@dataclass(frozen=True, eq=False)
class DaskSource(LazySource):
    """Rows in chunks that Dask computes, on threads, processes or a cluster.

    Parameters
    ----------
    pieces : tuple of Delayed
        Each of rows, of one at least.
    starts : ndarray of shape (P + 1,), int
        How many rows come before each piece; the last is N.
    schema : Schema
    has_labels, has_weights : bool
    passes : Passes, optional
    changes : tuple of callables
        What becomes of rows when they have been read.

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

    @property
    def n_rows(self) -> int:
        """N."""
        return int(self.starts[-1])

    @property
    def labelled(self) -> bool:
        """Whether rows have labels."""
        return self.has_labels

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.has_weights

    @property
    def capacity(self) -> int:
        """Items that an answer may hold: it travels."""
        return _MAX_ANSWER_ITEMS

    def map_reduce(self, ask: Callable[[Rows], T], add: Callable[[T, T], T]) -> T:
        """Ask every piece where it lies, and add up in a tree, in order."""
        if ask is not Rows.tally:
            self._known()  # before the question is packed: a client that waits while it packs may wait for ever
        total: T = compute(add_up(self._asked(self.pieces, ask), add))
        return total

    def take(self, rows: IntArray) -> Rows:
        """Return the rows at ascending positions, in memory."""
        ends = np.searchsorted(rows, self.starts)
        some = np.flatnonzero(np.diff(ends))
        takes = [_Taken(rows[ends[p] : ends[p + 1]] - self.starts[p]) for p in some]
        parts = [self._asked([self.pieces[p]], take)[0] for p, take in zip(some, takes, strict=True)]
        return join_rows(compute(add_up([call(_listed, part) for part in parts], operator.add)))

    def _asked(self, pieces: Sequence[Any], ask: Callable[[Rows], Any]) -> list[Any]:
        question = leaf(_Question(self.changes, ask))
        return [call(_answer, piece, question) for piece in pieces]

    def _known(self) -> dict[str, Any]:
        """What has been counted of labels and weights, the classes in any case: they travel with questions."""
        weights = {"class_weights": self.class_weights} if self.labelled else {}
        return {**super()._known(), **weights}

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels with a question: all but rows, samples of them, and who listens to passes."""
        state = {name: vars(self)[name] for name in ("starts", "schema", "has_labels", "has_weights")}
        return {**super()._known(), **state, "pieces": (), "passes": Passes(), "changes": ()}


class _Question:
    """What is asked of rows once they have been changed. Not a dataclass, into which Dask would look."""

    def __init__(self, changes: tuple[Callable[[Rows], Rows], ...], ask: Callable[[Rows], Any]) -> None:
        self.changes, self.ask = changes, ask

    def __call__(self, rows: Rows) -> Any:
        return self.ask(changed(rows, self.changes))


class _Taken:
    """Rows at positions."""

    def __init__(self, rows: IntArray) -> None:
        self.rows = rows

    def __call__(self, rows: Rows) -> Rows:
        return rows.take(self.rows)


def _answer(rows: Rows, question: _Question) -> Any:
    return question(rows)


def _listed(value: Any) -> list[Any]:
    return [value]


def _added(add: Callable[[Any, Any], Any], values: Sequence[Any]) -> Any:
    return reduce(add, values)


def call(function: Callable[..., Any], *values: Any) -> Any:
    """Return a task with a unique name, so that every pass is computed anew."""
    from dask.delayed import delayed

    return delayed(function, pure=False)(*values)


def leaf(value: Any) -> Any:
    """Return a task of a value that is sent once to each worker, not along with each task."""
    from dask.delayed import delayed

    return delayed(value, pure=False, traverse=False)


def add_up(parts: Sequence[Any], add: Callable[[Any, Any], Any]) -> Any:
    """Return the task that adds up what tasks give, in order, by a tree.

    Parameters
    ----------
    parts : sequence of Delayed
    add : callable

    Returns
    -------
    Delayed
    """
    how = leaf(add)
    while len(parts) > 1:
        parts = [call(_added, how, list(parts[at : at + _TREE_WIDTH])) for at in range(0, len(parts), _TREE_WIDTH)]
    return parts[0]


def compute(task: Any) -> Any:
    """Return what a task gives, computed by the scheduler in use; say so where that is lost.

    Parameters
    ----------
    task : Delayed
    """
    try:
        value = task.compute()
    except BaseException as error:
        said = _lost(error)
        if said is None:
            raise
        raise RuntimeError(f"{said} Nothing has been written, and the input is unchanged.") from error
    return value


def _lost(error: BaseException) -> str | None:
    """Say what became of the cluster, if that is what an error is about; what rows are like is not."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if "KilledWorker" in kinds:
        return (
            "The Dask cluster failed on a chunk whose workers were killed repeatedly, usually because of too little "
            f"memory ({error}). Use smaller chunks, or give the workers more memory."
        )
    if kinds & {"CancelledError", "CommClosedError", "ClosedClientError"}:
        return (
            f"The connection to the Dask cluster was lost during a pass ({type(error).__name__}). Connect to a "
            "cluster and call again; collections that were persisted on the lost cluster must be created "
            "again."
        )
    return None
