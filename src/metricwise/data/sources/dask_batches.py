"""Batches of neighbouring chunks, which one task reads or keeps. Must not know what is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from traceback import clear_frames
from typing import Any

import numpy as np

from ...kernels import working_alone
from ..keeping import release_at_end
from .dask_tasks import Workers, call, is_future, persist, release, task_of

__all__ = ["Batch", "Kept", "batches_of"]

Graph = Mapping[Any, Any]

# Tuned on 5 and 10 million rows of ten classes in 20 and 40 partitions, two workers of one thread.
_MIN_BATCHES = 32  # enough for workers that come later, few enough for a scheduler that takes a millisecond a task
_BATCHES_PER_THREAD = 4  # so that no worker waits long for the slowest one
_MAX_BATCH_BYTES = 1 << 27
_KEPT_SHARE = 0.4  # of the memory that workers have left; Dask begins to write to disk at 0.6 of their limit
_MAX_LOCAL_BYTES = 1 << 28  # that are kept in this process, as much as tables hold at a time


class Batch:
    """Chunks that one task reads, one after the other. Not a dataclass, into which Dask would look.

    Parameters
    ----------
    read : callable
        Yields chunks; it takes what the tasks that it needs give.
    needs : sequence of Delayed
    """

    def __init__(self, read: Callable[..., Iterable[Any]], needs: Sequence[Any] = ()) -> None:
        self.read, self.needs = read, tuple(needs)

    @classmethod
    def of(cls, chunk: Any) -> Batch:
        """Return the batch of a single task, which gives a chunk; a batch is returned as it is."""
        return chunk if isinstance(chunk, Batch) else cls(_single, [chunk])

    def ask(self, question: Any) -> Any:
        """Return the task that asks a question, a task of a function of an iterator of chunks."""
        return call(_answer, self.read, question, *self.needs)

    def map(self, change: Callable[..., Iterator[Any]], values: Sequence[Any], shared: Any) -> Batch:
        """Return the batch of chunks that become of these: ``change(chunks, values, shared)`` yields them.

        Parameters
        ----------
        change : callable
        values : sequence
            What it is told of these chunks.
        shared : Delayed
            What it is told of all.
        """
        return Batch(_Mapped(self.read, change, values), [shared, *self.needs])


class _Mapped:
    def __init__(self, read: Callable[..., Iterable[Any]], change: Callable[..., Any], values: Sequence[Any]) -> None:
        self.read, self.change, self.values = read, change, values

    def __call__(self, shared: Any, *needs: Any) -> Iterator[Any]:
        return self.change(self.read(*needs), self.values, shared)  # type: ignore[no-any-return]


def _single(chunk: Any) -> Iterator[Any]:
    yield chunk


def _answer(read: Callable[..., Iterable[Any]], question: Callable[[Iterable[Any]], Any], *needs: Any) -> Any:
    with working_alone():  # as many tasks at a time as there are processors are computed already
        return question(read(*needs))


# ------------------------------------------------------------------------------------------------------------ kept rows


@dataclass(eq=False)
class Kept:
    """Rows that are kept where they were read, until the call ends; what is read meanwhile is read from them.

    Parameters
    ----------
    batches : tuple of Batch
        None while nothing is kept.
    """

    batches: tuple[Batch, ...] = ()

    def keep(self, batches: Sequence[Batch], n_bytes: float) -> None:
        """Have workers keep batches of rows of so many bytes if they have room, and there is a call that ends."""
        workers = Workers()
        room = _MAX_LOCAL_BYTES if workers.shares_memory else _KEPT_SHARE * workers.free_bytes
        if n_bytes <= room and release_at_end(self.release):
            tasks = [call(_KeptRows.of, batch.read, *batch.needs) for batch in batches]
            try:
                tasks = persist(tasks)
            except BaseException as error:  # an interrupt, whose frames hold what has been sent as long as it is held
                clear_frames(error.__traceback__)
                raise
            self.batches = tuple(Batch(iter, [task]) for task in tasks)

    def release(self) -> None:
        """Keep nothing from now on."""
        batches, self.batches = self.batches, ()
        for batch in batches:
            for task in batch.needs:
                release(task)


class _KeptRows:
    """Chunks of rows in memory, which tell Dask their size."""

    def __init__(self, chunks: Sequence[Any]) -> None:
        self.chunks = chunks

    @classmethod
    def of(cls, read: Callable[..., Iterable[Any]], *needs: Any) -> _KeptRows:
        with working_alone():
            return cls(list(read(*needs)))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.chunks)

    def __sizeof__(self) -> int:
        return sum(rows.n_bytes for rows in self.chunks)


# ---------------------------------------------------------------------------------------------- batches of a collection


def batches_of(chunks: Sequence[Any], n_bytes: float = 0.0) -> list[tuple[Batch, slice]]:
    """Return batches of neighbouring chunks, and which chunks each is of.

    On a cluster every task costs a round trip, so several chunks are computed by one task, one after the other. What
    only these chunks depend on is computed within that task; what others depend on as well, or what lies on a worker,
    remains a task of its own. Elsewhere, and if there are few chunks, each is a batch.

    Parameters
    ----------
    chunks : sequence of Delayed
    n_bytes : float
        Memory of all chunks, if it is known.
    """
    n_threads = Workers().n_threads
    n_batches = max(_MIN_BATCHES, _BATCHES_PER_THREAD * (n_threads or 0), int(n_bytes // _MAX_BATCH_BYTES))
    graph = {} if n_threads is None or len(chunks) <= n_batches else _joined_graph(chunks)
    if not graph:
        return [(Batch.of(chunk), slice(at, at + 1)) for at, chunk in enumerate(chunks)]
    ends = np.linspace(0, len(chunks), n_batches + 1).astype(int).tolist()
    spans = [slice(start, end) for start, end in pairwise(ends)]
    return list(zip(_inlined(graph, [[chunk.key for chunk in chunks[span]] for span in spans]), spans, strict=True))


def _joined_graph(chunks: Sequence[Any]) -> dict[Any, Any]:
    """Return the tasks that all chunks are made by; nothing if they must not be computed by other tasks.

    Chunks that lie on workers are counted there, one by one; and a user's annotations are about tasks.
    """
    layers: dict[int, Any] = {}  # by identity: most of them belong to all chunks
    for chunk in chunks:
        chunk_graph = chunk.__dask_graph__()
        layers.update((id(layer), layer) for layer in getattr(chunk_graph, "layers", {"": chunk_graph}).values())
    if any(getattr(layer, "annotations", None) for layer in layers.values()):
        return {}
    graph: dict[Any, Any] = {}
    for layer in layers.values():
        graph.update(layer)
    return {} if any(map(is_future, graph.values())) else graph


def _inlined(graph: Graph, batches: Sequence[Sequence[Any]]) -> Iterator[Batch]:
    """Yield the batch of each list of keys, which computes the tasks that no other batch depends on."""
    needed = [[_reachable(graph, key) for key in keys] for keys in batches]
    uses: dict[Any, int] = {}
    for sets in needed:
        for key in set().union(*sets):
            uses[key] = uses.get(key, 0) + 1
    shared = {key for key, n_batches in uses.items() if n_batches > 1}
    outer = {key: graph[key] for key in shared}
    for keys, sets in zip(batches, needed, strict=True):
        inner = [{key: graph[key] for key in chunk_keys - shared} for chunk_keys in sets]
        borders = sorted(set().union(*(_neighbours(graph, tasks) for tasks in inner)) & shared, key=str)
        yield Batch(_Subgraphs(keys, inner, borders), [task_of(key, outer) for key in borders])


def _reachable(graph: Graph, key: Any) -> set[Any]:
    """Return the keys of the tasks that a task depends on, itself among them."""
    from dask.core import get_dependencies

    reached, left = {key}, [key]
    while left:
        new = get_dependencies(graph, left.pop()) - reached
        reached |= new
        left += new
    return reached


def _neighbours(graph: Graph, tasks: Iterable[Any]) -> set[Any]:
    from dask.core import get_dependencies

    return set().union(*(get_dependencies(graph, key) for key in tasks))


class _Subgraphs:
    """Computes chunks one after the other, each by a graph of its own and the values of tasks that are shared."""

    def __init__(self, keys: Sequence[Any], graphs: Sequence[Graph], shared: Sequence[Any]) -> None:
        self.keys, self.graphs, self.shared = keys, graphs, shared

    def __call__(self, *values: Any) -> Iterator[Any]:
        from dask.local import get_sync

        known = {key: (_Constant(value),) for key, value in zip(self.shared, values, strict=True)}
        for key, graph in zip(self.keys, self.graphs, strict=True):
            yield get_sync({**known, **graph}, key)


class _Constant:
    """A task that gives a value; a value itself might look like a task."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value
