"""Tasks of Dask, the scheduler in use, and what is said when it is lost. Must not know rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

__all__ = ["Workers", "add_up", "call", "compute", "is_future", "leaf", "persist", "release", "task_of"]

_TREE_WIDTH = 8  # answers that are added up by one task
_IN_THIS_PROCESS = ("dask.threaded", "dask.local")  # modules of schedulers


def call(function: Callable[..., Any], *values: Any) -> Any:
    """Return a task with a unique name, so that every pass is computed anew."""
    from dask.delayed import delayed

    return delayed(function, pure=False)(*values)


def task_of(key: Any, graph: Mapping[Any, Any]) -> Any:
    """Return the task of a graph that has a key."""
    from dask.delayed import Delayed

    make: Any = Delayed
    return make(key, graph)


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


def _added(add: Callable[[Any, Any], Any], values: Sequence[Any]) -> Any:
    return reduce(add, values)


def compute(task: Any) -> Any:
    """Return what a task gives, computed by the scheduler in use; say so where that is lost.

    Parameters
    ----------
    task : Delayed
    """
    with _naming_losses():
        return task.compute()


def persist(tasks: Sequence[Any]) -> list[Any]:
    """Return tasks whose values stay where they are computed, on workers or in this process, until they are released.

    Parameters
    ----------
    tasks : sequence of Delayed
    """
    from dask import base

    keep: Any = base.persist
    with _naming_losses():
        return list(keep(*tasks))


def release(task: Any) -> None:
    """Let workers forget the value of a task that was persisted.

    Parameters
    ----------
    task : Delayed
    """
    for value in dict(task.__dask_graph__()).values():
        if is_future(value):
            value.release()


def is_future(value: Any) -> bool:
    """Whether a value of a graph lies on a cluster."""
    return any(kind.__name__ == "Future" for kind in type(value).__mro__)


class Workers:
    """The workers of the scheduler in use, as it reports them now.

    Attributes
    ----------
    n_threads : int or None
        Tasks that all workers compute at a time. None: there is no cluster.
    free_bytes : float
        Memory that is left under the limits of the workers: of those that have one. 0 without a cluster.
    shares_memory : bool
        Whether tasks are computed by threads of this process.
    """

    def __init__(self) -> None:
        from dask import base

        choose: Any = base.get_scheduler
        get = choose()
        client: Any = getattr(get, "__self__", None)
        self.n_threads: int | None = None
        self.free_bytes, self.shares_memory = 0.0, getattr(get, "__module__", "") in _IN_THIS_PROCESS
        if hasattr(client, "scheduler_info"):
            with _naming_losses():
                workers = client.scheduler_info(n_workers=-1)["workers"].values()
            self.n_threads, self.shares_memory = sum(worker["nthreads"] for worker in workers), False
            self.free_bytes = sum(map(_free_bytes, workers))


def _free_bytes(worker: Any) -> float:
    limit, metrics = worker.get("memory_limit") or 0, worker.get("metrics") or {}
    return float(max(limit - metrics.get("memory", 0), 0))


@contextmanager
def _naming_losses() -> Iterator[None]:
    """Say what became of the cluster where an error is about that."""
    try:
        yield
    except BaseException as error:
        said = _lost(error)
        if said is None:
            raise
        raise RuntimeError(f"{said} Nothing has been written, and the input is unchanged.") from error


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
