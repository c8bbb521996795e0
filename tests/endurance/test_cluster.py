"""A Dask cluster in trouble in the middle of a pass: the same counts, or one clear error."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import metricwise as mw
import worlds
from endurance.scale import IS_FULL, record, repeats

STRATEGY = mw.Strategy(confusion="labels", recalibrate=False)
LOST = r"The connection to the Dask cluster was lost during a pass .*call again"
KILLED = r"workers were killed repeatedly, usually because of too little memory .*smaller chunks"


in_full = pytest.mark.skipif(not IS_FULL, reason="left to make endurance")


def start(n_workers=2, **options):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
        **options,
    )


def draw(seed):
    return worlds.multiclass(600, [0.4, 1.0, 0.6], sharpen=2, seed=seed)


def chunks(eta, y, block):
    return da.from_array(eta, chunks=(100, 3)).map_blocks(block, meta=eta[:0]), da.from_array(y, chunks=100)


def optimize(*rows):
    return mw.optimize(*rows, "macro_f1", strategy=STRATEGY)


def same(solution, whole):
    return abs(solution.value - whole.value) < 1e-12 and solution.rule.to_dict() == whole.rule.to_dict()


def test_workers_killed_at_random_moments():
    """By the test, and not by what they compute: whatever they are doing."""
    n_kills, n_same = repeats(8, 1), 0
    rng = np.random.default_rng(0)
    with start() as cluster, Client(cluster) as client:
        for i in range(n_kills):
            eta, y = draw(i)
            whole = optimize(eta, y)

            def slow(block):
                time.sleep(0.1)
                return block

            pids = list(client.run(os.getpid).values())
            kill = threading.Timer(rng.uniform(0.05, 1.0), os.kill, [pids[i % len(pids)], signal.SIGKILL])
            kill.start()
            n_same += same(optimize(*chunks(eta, y, slow)), whole)
            kill.join()
            client.wait_for_workers(1, timeout=60)  # a nanny need not bring back all that were killed
    assert n_same == n_kills
    record("Dask", "a worker killed at a random moment", tried=n_kills, same=n_same, broken=0)


@in_full
def test_one_worker_that_is_slow():
    eta, y = draw(1)
    whole = optimize(eta, y)
    with start() as cluster, Client(cluster) as client:
        slow_pid = min(client.run(os.getpid).values())

        def slow(block):
            time.sleep(0.5 if os.getpid() == slow_pid else 0.0)
            return block

        assert same(optimize(*chunks(eta, y, slow)), whole)
    record("Dask", "one slow worker", tried=1, same=1, broken=0)


@in_full
def test_a_worker_that_runs_out_of_memory_once(tmp_path):
    """Its nanny ends it, and the chunk is computed anew."""
    eta, y = draw(2)
    whole = optimize(eta, y)
    left = tmp_path / "left"
    left.write_text("1")

    def hungry(block):
        if left.read_text() == "1" and block[0, 0] == eta[300, 0]:
            left.write_text("0")
            held = [np.ones(1 << 22) for _ in range(40)]  # 1.3 GB
            time.sleep(20)
            del held
        return block

    with start(memory_limit="600MB") as cluster, Client(cluster):
        assert same(optimize(*chunks(eta, y, hungry)), whole)
    assert left.read_text() == "0"
    record("Dask", "a worker out of memory once", tried=1, same=1, broken=0)


@in_full
def test_chunks_that_no_worker_has_memory_for():
    eta, y = draw(3)

    def fatal(block):
        if block[0, 0] == eta[300, 0]:
            os.kill(os.getpid(), signal.SIGKILL)  # as the system does where memory is short
        return block

    few = dask.config.set({"distributed.scheduler.allowed-failures": 1})
    with few, start() as cluster, Client(cluster), pytest.raises(RuntimeError, match=KILLED):
        optimize(*chunks(eta, y, fatal))
    record("Dask", "a chunk that kills every worker", tried=1, one_clear_error=1, broken=0)


SCHEDULER = """
import asyncio, sys
from distributed import Scheduler

async def serve():
    async with Scheduler(port=0, dashboard_address=":0") as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()

asyncio.run(serve())
"""
WORKER = """
import asyncio, sys
from distributed import Worker

async def work():
    async with Worker(sys.argv[1], nthreads=1) as worker:
        await worker.finished()

asyncio.run(work())
"""


def test_a_scheduler_that_is_killed():
    eta, y = draw(4)
    whole = optimize(eta, y)

    def slow(block):
        time.sleep(0.5)
        return block

    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    scheduler = subprocess.Popen([sys.executable, "-c", SCHEDULER], **quiet)
    address = scheduler.stdout.readline().strip()
    worker = subprocess.Popen([sys.executable, "-c", WORKER, address], **quiet)
    try:
        with dask.config.set({"distributed.comm.timeouts.connect": "5s"}), Client(address) as client:
            client.wait_for_workers(1, timeout=60)
            kill = threading.Timer(1.5, scheduler.kill)
            kill.start()
            begin = time.monotonic()
            with pytest.raises(RuntimeError, match=LOST):
                optimize(*chunks(eta, y, slow))
            seconds = time.monotonic() - begin
            kill.join()
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.communicate()
    assert seconds < 120
    assert same(optimize(eta, y), whole)
    record("Dask", "a scheduler killed", tried=1, one_clear_error=1, seconds=round(seconds), broken=0)
