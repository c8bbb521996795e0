"""A Dask cluster of real processes: workers that die, come late, or are all lost."""

import logging
import os
import signal
import threading
import time
from contextlib import contextmanager
from functools import partial

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, wait

import metricwise as mw
import worlds
from engines import served_by
from laws.engine_promises import check_agreement
from laws.solver_promises import check_path
from metricwise.data.sources import dask as on_dask
from metricwise.data.sources import dask_batches

RECIPE = {"confusion": "labels", "recalibrate": False}


def start(n_workers=2):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    )


@pytest.fixture(scope="module")
def cluster():
    with start() as cluster, Client(cluster):
        yield cluster


def draw(n=600, seed=0):
    return worlds.multiclass(n, [0.4, 1.0, 0.6], sharpen=2, seed=seed)


def chunks(eta, y, block=None):
    lazy = da.from_array(eta, chunks=(100, 3))
    return (lazy if block is None else lazy.map_blocks(block, meta=eta[:0])), da.from_array(y, chunks=100)


def check(found, whole):
    assert found.value == pytest.approx(whole.value, abs=1e-12)
    assert found.n_passes == whole.n_passes


def test_a_default_call_and_lazy_predictions(cluster):
    eta, y = draw()
    whole = mw.optimize(eta, y, "macro_f1")
    lazy, labels = chunks(eta, y)
    lazy, labels = lazy.persist(), labels.persist()
    found = mw.optimize(lazy, labels, "macro_f1")
    check(found, whole)
    assert found.gain.estimate == pytest.approx(whole.gain.estimate, abs=1e-12)
    np.testing.assert_array_equal(found.rule.predict(lazy).compute(), whole.rule.predict(eta))


@pytest.mark.parametrize("metric", ["accuracy", "micro_f1", "g_mean"])
@pytest.mark.parametrize("confusion", ["labels", "expected"])
def test_solvers_of_every_form(cluster, metric, confusion):
    eta, y = draw(90, seed=1)
    call = {"metric": metric, "strategy": mw.Strategy(confusion=confusion, recalibrate=True)}
    whole = mw.optimize(eta, y, **call)
    with served_by("dask"):
        check(mw.optimize(eta, y, **call), whole)


@pytest.mark.parametrize("confusion", ["labels", "expected", "blended"])
@pytest.mark.parametrize("layout", ["binary", "array", "list"])
def test_the_laws_of_engines(cluster, confusion, layout):
    for options in ((False, False, False), (True, True, True)):
        check_agreement("dask", confusion, 3, layout, options)


@pytest.mark.parametrize("name", ["f1", "quadratic_kappa"])
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_the_best_of_everything_there_is(cluster, name, average):
    rng = np.random.default_rng(5)
    with served_by("dask"):
        for _ in range(2):
            check_path(worlds.random_tiny(rng, max_outputs=2), name, average)


def test_a_worker_killed_in_the_middle_of_a_pass(cluster, tmp_path):
    eta, y = draw(seed=2)
    whole = mw.optimize(eta, y, "macro_f1", strategy=mw.Strategy(**RECIPE))
    left = tmp_path / "lives"
    left.write_text("2")

    def fatal(block):
        lives = int(left.read_text())
        if lives and block[0, 0] == eta[300, 0]:
            left.write_text(str(lives - 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    check(mw.optimize(*chunks(eta, y, fatal), "macro_f1", strategy=mw.Strategy(**RECIPE)), whole)
    assert left.read_text() == "0"


def test_a_worker_that_comes_late(cluster):
    eta, y = draw(seed=3)
    whole = mw.optimize(eta, y, "macro_f1", strategy=mw.Strategy(**RECIPE))

    def slow(block):
        time.sleep(0.02)
        return block

    before = len(cluster.scheduler_info["workers"])
    late = threading.Timer(0.3, cluster.scale, [before + 1])
    late.start()
    try:
        check(mw.optimize(*chunks(eta, y, slow), "macro_f1", strategy=mw.Strategy(**RECIPE)), whole)
    finally:
        late.join()
        cluster.scale(2)


def test_calls_within_tasks(cluster):
    """More calls than threads: one that waits for a pass must not make wait another that has the place of a worker."""
    drawn = [draw(seed=seed) for seed in range(5)]

    def found(eta, y):
        rows = da.from_array(eta, chunks=(200, 3)), da.from_array(y, chunks=200)
        return mw.optimize(*rows, "macro_f1", strategy=mw.Strategy(**RECIPE)).value

    with Client(cluster) as client:
        values = client.gather([client.submit(found, eta, y) for eta, y in drawn])
        assert n_tasks(client, 0) == 0
    expected = [mw.optimize(eta, y, "macro_f1", strategy=mw.Strategy(**RECIPE)).value for eta, y in drawn]
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def test_an_error_of_a_worker_names_the_row(cluster):
    eta, y = draw(seed=4)
    eta[412, 2] = np.nan
    with pytest.raises(ValueError, match=r"optimize: proba must be finite, got NaN or infinity in row 412"):
        mw.optimize(*chunks(eta, y), "macro_f1")


def test_a_cluster_that_is_lost():
    eta, y = draw(seed=5)

    def slow(block):
        time.sleep(0.5)
        return block

    with start(1) as lost, Client(lost) as client:
        closing = threading.Timer(1.0, client.shutdown)
        closing.start()
        with pytest.raises(
            RuntimeError, match=r"The connection to the Dask cluster was lost during a pass .*call again"
        ):
            mw.optimize(*chunks(eta, y, slow), "macro_f1")
        closing.join()


# --------------------------------------------------------------------------------------------- rows that workers keep


def n_tasks(client, wanted=None):
    """How many tasks the scheduler knows, once they are as many as wanted: they are forgotten a little later."""
    for _ in range(1 if wanted is None else 100):
        known = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        if known == wanted:
            break
        time.sleep(0.1)
    return known


def at_compute(monkeypatch, number, action):
    """Do something before a computation of its number, when rows have been kept."""
    compute, asked = on_dask.compute, []

    def watched(task):
        asked.append(task)
        if len(asked) == number:
            action()
        return compute(task)

    monkeypatch.setattr(on_dask, "compute", watched)
    return asked


def test_nothing_is_left_on_the_cluster(cluster, monkeypatch):
    eta, y = draw(4000, seed=6)
    frame = da.from_array(eta, chunks=(50, 3)), da.from_array(y, chunks=50)
    with Client(cluster) as client:
        known = []
        at_compute(monkeypatch, 3, lambda: known.append(n_tasks(client)))
        solution = mw.optimize(*frame, "macro_f1")  # it keeps the source, but no rows
        assert known[0] >= 32
        assert n_tasks(client, 0) == 0
        assert solution.n_passes == mw.optimize(eta, y, "macro_f1").n_passes
        eta[3999, 1] = np.nan
        bad = da.from_array(eta, chunks=(50, 3)), frame[1]
        with pytest.raises(ValueError, match=r"NaN or infinity in row 3999") as info:
            mw.optimize(*bad, "macro_f1")
        assert info.traceback  # which holds what the call held
        assert n_tasks(client, 0) == 0


@contextmanager
def interrupts_after(delay):
    """Yield a timer that interrupts this thread if it is still in the block: a late interrupt does nothing.

    Also where a shell that started the tests in the background ignores interrupts.
    """
    inside = True

    def handle(*_):
        if inside:
            raise KeyboardInterrupt

    handler = signal.signal(signal.SIGINT, handle)
    timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
    try:
        yield timer
    finally:
        inside = False
        if timer.ident is not None:
            timer.join()
        time.sleep(0.01)  # what is pending is handled here
        signal.signal(signal.SIGINT, handler)


@pytest.mark.parametrize(
    ("number", "kept_share", "delay"),
    [(1, dask_batches._KEPT_SHARE, 0.2), (4, dask_batches._KEPT_SHARE, 0.0), (4, 0.0, 0.2)],
)
def test_nothing_is_left_after_an_interrupt(cluster, monkeypatch, number, kept_share, delay):
    monkeypatch.setattr(dask_batches, "_KEPT_SHARE", kept_share)
    eta, y = draw(4000, seed=7)

    def slow(block):
        time.sleep(0.02)
        return block

    lazy = da.from_array(eta, chunks=(50, 3)).map_blocks(slow, meta=eta[:0]), da.from_array(y, chunks=50)
    with Client(cluster) as client:

        def optimize_until_interrupted():
            with interrupts_after(delay) as interrupt:
                # A pass of kept rows is too short to be met by a timer.
                interruption = interrupt.start if delay else partial(signal.raise_signal, signal.SIGINT)
                at_compute(monkeypatch, number, interruption)
                mw.optimize(*lazy, "macro_f1")
                time.sleep(1.0)  # it comes late

        with pytest.raises(KeyboardInterrupt) as info:
            optimize_until_interrupted()
        assert info.traceback  # which holds what the call held
        assert n_tasks(client, 0) == 0


def test_nothing_is_left_after_an_interrupt_while_tasks_are_sent(cluster, monkeypatch):
    """The error holds the frame that sent them, as that of an interactive session does."""
    persist = dask_batches.persist

    def interrupted(tasks):
        kept = persist(tasks)
        wait([value for task in kept for value in task.dask.values()])
        raise KeyboardInterrupt

    monkeypatch.setattr(dask_batches, "persist", interrupted)
    eta, y = draw(4000, seed=7)
    with Client(cluster) as client:
        with pytest.raises(KeyboardInterrupt) as info:
            mw.optimize(da.from_array(eta, chunks=(50, 3)), da.from_array(y, chunks=50), "macro_f1")
        assert info.traceback
        assert n_tasks(client, 0) == 0


def test_kept_rows_of_a_killed_worker_are_read_again(cluster, monkeypatch):
    eta, y = draw(4000, seed=8)
    whole = mw.optimize(eta, y, "macro_f1", strategy=mw.Strategy(**RECIPE))
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        pids = client.run(os.getpid)
        asked = at_compute(monkeypatch, 3, lambda: os.kill(min(pids.values()), signal.SIGKILL))
        found = mw.optimize(
            da.from_array(eta, chunks=(50, 3)),
            da.from_array(y, chunks=50),
            "macro_f1",
            strategy=mw.Strategy(**RECIPE),
        )
        assert len(asked) > 3
        check(found, whole)
        assert found.rule.to_dict() == whole.rule.to_dict()
        assert n_tasks(client, 0) == 0


def test_rows_are_read_anew_where_workers_have_no_room(cluster, monkeypatch, tmp_path):
    eta, y = draw(2000, seed=9)

    def logged(block):
        with (tmp_path / "reads").open("a") as file:
            file.write("." * (len(block) > 0))
        return block

    lazy = da.from_array(eta, chunks=(50, 3)).map_blocks(logged, meta=eta[:0]), da.from_array(y, chunks=50)
    found = mw.optimize(*lazy, "macro_f1", strategy=mw.Strategy(**RECIPE))
    n_reads = len((tmp_path / "reads").read_text())
    assert 80 <= n_reads <= 100  # twice, and more if a worker was asked for what another had
    monkeypatch.setattr(dask_batches, "_KEPT_SHARE", 0.0)
    again = mw.optimize(*lazy, "macro_f1", strategy=mw.Strategy(**RECIPE))
    assert len((tmp_path / "reads").read_text()) - n_reads >= 40 * (2 + found.n_passes)
    check(again, found)
    assert again.rule.to_dict() == found.rule.to_dict()


@pytest.mark.parametrize("persisted", [False, True])
def test_a_data_frame_in_many_partitions(cluster, persisted):
    eta, y = draw(1000, seed=10)
    frame = pd.DataFrame(eta, columns=[0, 1, 2]).assign(y=y)
    lazy = dd.from_pandas(frame, npartitions=50)
    lazy = lazy.persist() if persisted else lazy
    whole = mw.optimize(eta, y, "macro_f1", strategy=mw.Strategy(**RECIPE))
    found = mw.optimize(lazy[[0, 1, 2]], lazy["y"], "macro_f1", strategy=mw.Strategy(**RECIPE))
    check(found, whole)
    assert found.rule.to_dict() == whole.rule.to_dict()
