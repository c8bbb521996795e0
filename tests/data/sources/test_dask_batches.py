"""Batches of chunks: few tasks that give the same chunks, and rows that are kept no longer than a call."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import metricwise as mw
import worlds
from metricwise.data.keeping import keeping_rows
from metricwise.data.sources import dask_batches, dask_tasks

RECIPE = mw.Strategy(confusion="labels", recalibrate=False)


@pytest.fixture(autouse=True)
def one_thread():
    """Tasks in this process, one after the other, so that they can be watched."""
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture
def reads():
    """How often each chunk has been read."""
    return Counter()


def watched(reads, eta, size):
    def block(x):
        if len(x):
            reads[int(np.flatnonzero((eta == x[0]).all(axis=1))[0])] += 1
        return x

    return da.from_array(eta, chunks=(size, eta.shape[1])).map_blocks(block, meta=eta[:0], name=False)


def on_a_cluster(monkeypatch, n_threads=2):
    """Let the scheduler of this process pass for a cluster."""
    scheduler = dask_tasks.Workers

    def workers():
        made = scheduler()
        made.n_threads = n_threads
        return made

    monkeypatch.setattr(dask_batches, "Workers", workers)


def test_a_graph_that_chunks_share_is_read_once(monkeypatch):
    """Opening a collection would otherwise take as long as the square of the number of chunks."""
    on_a_cluster(monkeypatch)
    iterations = Counter()

    class Layer(Mapping):
        def __init__(self, name, tasks):
            self.name, self.tasks = name, tasks

        def __getitem__(self, key):
            return self.tasks[key]

        def __len__(self):
            return len(self.tasks)

        def __iter__(self):
            iterations[self.name] += 1
            return iter(self.tasks)

    @dataclass
    class Graph:
        layers: dict[str, Any]

    @dataclass
    class Chunk:
        key: str
        layers: dict[str, Any]

        def __dask_graph__(self):
            return Graph(self.layers)

    common = Layer("common", {f"read-{k}": (float, k) for k in range(100)})
    chunks = [
        Chunk(f"rows-{k}", {"common": common, "own": Layer(f"own {k}", {f"rows-{k}": (abs, f"read-{k}")})})
        for k in range(100)
    ]
    batches = dask_batches.batches_of(chunks)
    assert [chunk for batch, _ in batches for chunk in batch.read()] == list(range(100))
    assert set(iterations.values()) == {1}
    assert len(iterations) == 101


def test_few_tasks_give_the_same_chunks(monkeypatch):
    on_a_cluster(monkeypatch)
    chunks = [dask_tasks.call(list, [dask_tasks.leaf(number), number]) for number in range(100)]
    batches = dask_batches.batches_of(chunks)
    assert len(batches) == 32
    assert [number for _, span in batches for number in range(100)[span]] == list(range(100))
    question = dask_tasks.leaf(list)
    answers = [dask_tasks.compute(batch.ask(question)) for batch, _ in batches]
    assert [chunk for chunks in answers for chunk in chunks] == [[number, number] for number in range(100)]


def test_as_many_tasks_as_threads_and_memory_ask_for(monkeypatch):
    chunks = [dask_tasks.call(int, number) for number in range(100)]
    assert len(dask_batches.batches_of(chunks)) == 100  # no cluster
    on_a_cluster(monkeypatch, n_threads=12)
    assert len(dask_batches.batches_of(chunks)) == 48
    assert len(dask_batches.batches_of(chunks, 60 << 27)) == 60
    assert len(dask_batches.batches_of(chunks[:40])) == 40
    with dask.annotate(resources={"GPU": 1}):
        chunks[3] = dask_tasks.call(int, 3)
    assert len(dask_batches.batches_of(chunks)) == 100


def test_what_several_batches_need_is_computed_once(monkeypatch):
    on_a_cluster(monkeypatch)
    calls = Counter()

    def counted(name, value):
        calls[name] += 1
        return value

    model = dask_tasks.call(counted, "model", (min, 5))  # a value that looks like a task
    chunks = [dask_tasks.call(lambda a, b: (a, b), dask_tasks.call(counted, i, i), model) for i in range(64)]
    question = dask_tasks.leaf(list)
    parts = [batch.ask(question) for batch, _ in dask_batches.batches_of(chunks)]
    assert len(parts) == 32
    assert dask_tasks.compute(dask_tasks.add_up(parts, lambda a, b: a + b)) == [(i, (min, 5)) for i in range(64)]
    assert set(calls.values()) == {1}
    assert len(calls) == 65


@pytest.mark.parametrize("cluster", [False, True])
def test_chunks_are_read_twice_where_there_is_room_and_again_where_not(monkeypatch, reads, cluster):
    if cluster:
        on_a_cluster(monkeypatch)
    eta, y = worlds.multiclass(400, [0.4, 1.0, 0.6], sharpen=2, seed=3)
    rows, labels = watched(reads, eta, 10), da.from_array(y, chunks=10)
    reads.clear()
    whole = mw.optimize(eta, y, "macro_f1", strategy=RECIPE)
    found = mw.optimize(rows, labels, "macro_f1", strategy=RECIPE)
    assert len(reads) == 40
    assert set(reads.values()) == {2}  # to see how many rows there are and which labels; to keep them
    monkeypatch.setattr(dask_batches, "_MAX_LOCAL_BYTES", 400 * (3 * 8 + 8) - 1)
    again = mw.optimize(rows, labels, "macro_f1", strategy=RECIPE)
    assert min(reads.values()) > 2 + found.n_passes
    for solution in (found, again):
        assert solution.value == pytest.approx(whole.value, abs=1e-12)
        assert solution.rule.to_dict() == whole.rule.to_dict()


def test_rows_are_judged_as_they_are_kept(reads):
    eta, y = worlds.multiclass(400, [0.4, 1.0, 0.6], sharpen=2, seed=3)
    rule = mw.optimize(eta, y, "macro_f1").rule
    rows, labels = watched(reads, eta, 10), da.from_array(y, chunks=10)
    reads.clear()
    mw.evaluate(rule, rows, labels, "macro_f1")
    assert set(reads.values()) == {2}
    reads.clear()
    mw.estimate_shares(rule, rows)
    counts = Counter(reads.values())
    assert sorted(counts.items()) == [(2, 39), (3, 1)]  # the first row says how much memory a row takes


def test_rows_are_kept_until_the_call_ends(monkeypatch, reads):
    eta, y = worlds.multiclass(60, [0.4, 1.0, 0.6], sharpen=2, seed=3)
    kept = []
    keep = dask_batches.Kept.keep

    def watch(self, batches, n_bytes):
        kept.append(self)
        keep(self, batches, n_bytes)
        assert len(self.batches) == 6

    monkeypatch.setattr(dask_batches.Kept, "keep", watch)
    rows, labels = watched(reads, eta, 10), da.from_array(y, chunks=10)
    mw.optimize(rows, labels, "macro_f1", strategy=RECIPE)
    mw.trade_off(rows[:, 1], labels == 1, "recall", "precision", n_points=2, strategy=RECIPE)
    with pytest.raises(ValueError, match="metric"):
        mw.optimize(rows, labels, "no_such_metric")
    assert len(kept) >= 2
    assert [rows.batches for rows in kept] == [()] * len(kept)


def test_without_a_call_nothing_is_kept():
    batches = [dask_batches.Batch.of(dask_tasks.call(list, [1]))]
    kept = dask_batches.Kept()
    kept.keep(batches, 0)
    assert kept.batches == ()

    @keeping_rows
    def call():
        kept.keep(batches, float("inf"))
        assert kept.batches == ()
        kept.keep(batches, 0)
        return len(kept.batches)

    assert call() == 1
    assert kept.batches == ()
