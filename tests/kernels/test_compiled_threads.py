"""Threads of the compiled kernels: results that do not know how many, limits that hold, no deadlock, no GIL."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kernels.bare import Bare
from metricwise import kernels

compiled = pytest.importorskip(
    "metricwise.kernels._compiled", reason="the compiled kernels are not built", exc_type=ImportError
)
compiled = Bare(compiled)
with_openmp = pytest.mark.skipif(not compiled.has_openmp(), reason="the compiled kernels were built without OpenMP")


def passes(k=3, n=360_000):
    """Each kernel on more than a million numbers, below which one thread does the work; by name."""
    rng = np.random.default_rng(0)
    eta = rng.dirichlet(np.ones(k), size=(n, 1)).astype(np.float32)
    binary = rng.random((53_000, 20))
    sizes, pairs = np.array([k]), np.full(20, 2)
    codes, flags = rng.integers(-1, k, size=(n, 1)), rng.integers(0, 2, size=binary.shape, dtype=np.int8)
    weight = rng.random(n)
    losses = [(rng.normal(size=(1, k, k)),), (rng.normal(size=(1, k)), rng.normal(size=(1, k)))]
    worth, small = np.zeros((1, k + 1, k, 2)), np.zeros((20, 3, 2, 2))
    worth[:, 1:], small[:, 1:] = rng.normal(size=(k, k, 2)), rng.normal(size=(2, 2, 2))
    sums = rng.random(len(binary))
    flat, grid = (np.zeros((1, k)), rng.normal(size=(1, k))), np.array([[-1.0, 8.0]])
    all_bins, group = np.ones((1, 18), dtype=bool), np.array([0])
    one = np.zeros(20, dtype=np.intp)
    each, each_grid = np.arange(20), np.tile(grid, (20, 1))
    each_loss = tuple(rng.normal(size=(20, 2)) for _ in range(2))
    logits, parts = rng.normal(size=(2, 4, 30_000)), rng.random((3, 30_000)) < 0.6
    jobs, theta = np.array([[0, 0], [1, 0], [2, 1]]), rng.normal(size=(3, 5))
    shown = np.array([[True] * 5, [True, False, True, True, False], [False, True, True, True, True]])
    first, first_flat = tuple(array[:1] for array in each_loss), (np.zeros((1, 2)), each_loss[0][:1])

    def walk(codes, weight, slope, wanted=None):
        return compiled.changes(eta, codes, None, weight, sizes, group, losses[0], slope, worth, grid, 16, wanted)

    return {
        "decide": lambda: compiled.decide(eta, sizes, losses[0]),
        "count_labels": lambda: compiled.count_labels(eta, codes, weight, sizes, losses),
        "count_labels, binary": lambda: compiled.count_labels(binary, flags, None, pairs, [each_loss]),
        "count_expected": lambda: compiled.count_expected(eta, None, weight, sizes, losses),
        "count_expected, binary": lambda: compiled.count_expected(binary, flags > 0, None, pairs, [each_loss]),
        "changes, labels": lambda: walk(codes, None, flat, all_bins),
        "changes, weights": lambda: walk(codes, weight, flat),
        "changes, expected": lambda: walk(None, weight, flat, all_bins),
        "changes, general": lambda: walk(codes, weight, losses[1], all_bins),
        "changes, binary": lambda: compiled.changes(
            binary, flags, None, None, pairs, one, first, first_flat, small, grid, 16, all_bins
        ),
        "changes, each output": lambda: compiled.changes(
            binary, flags, None, None, pairs, each, each_loss, (np.zeros((20, 2)), each_loss[0]), small, each_grid, 16
        ),
        "check_rows": lambda: compiled.check_rows(eta, sizes, 1e-3),
        "encode": lambda: compiled.encode(flags.astype(int), pairs, 2),
        "log_partition": lambda: compiled.log_partition(logits, parts[:2] * 1.0, parts, jobs, theta, shown),
        "log_partition, one": lambda: compiled.log_partition(
            logits, parts[:2] * 1.0, None, jobs[:1], theta[:1], shown[:1]
        ),
        "fit_links": lambda: compiled.fit_links(
            kernels.LinkFits(
                logits[:, :, :5000].copy(),
                np.ones((2, 5000)),
                parts[:, :5000].copy(),
                jobs,
                shown,
                np.ones(3),
                np.full((3, 5), 800.0),
                np.eye(1, 5)[0],
                np.eye(5),
                0.0,
                np.full(3, 0.05),
            ),
            np.eye(3, 5) * 0.0 + np.eye(1, 5),
        ),
        "relative_logits": lambda: compiled.relative_logits(binary, each, 2, 1e-6),
        "tally": lambda: compiled.tally(flags, None, 2),
        "tally, weights": lambda: compiled.tally(flags, sums, 2),
    }


PASSES = passes()


def as_bytes(result):
    return [np.asarray(part).tobytes() for part in (result if isinstance(result, tuple) else (result,))]


@with_openmp
@pytest.mark.parametrize("name", PASSES)
def test_results_do_not_depend_on_the_number_of_threads(name):
    """To the last bit, sums of floats and the order of listed changes included."""
    results = []
    for n_threads in (1, 2, 3, 8):
        with threadpool_limits(limits=n_threads, user_api="openmp"):
            assert compiled.max_threads() == n_threads
            results.append(as_bytes(PASSES[name]()))
    assert all(result == results[0] for result in results[1:])


def test_several_threads_of_python_may_run_passes_at_once():
    alone = {name: as_bytes(run()) for name, run in PASSES.items()}
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda name: (name, as_bytes(PASSES[name]())), [*PASSES] * 3))
    assert all(result == alone[name] for name, result in together)


def test_the_numpy_twins_have_one_thread():
    if kernels.in_use() == "compiled":
        assert kernels.max_threads() == compiled.max_threads()
    else:
        assert kernels.max_threads() == 1


# ------------------------------------------------------------------------------------------------------ other processes

PASS = """
    import hashlib
    import os
    import numpy as np
    from metricwise import kernels

    def digest(seed=0):
        rng = np.random.default_rng(seed)
        eta = rng.random((200_000, 3)).round(3)
        weight, sizes = rng.random(len(eta)), np.full(3, 2)
        loss = (rng.normal(size=(3, 2)), rng.normal(size=(3, 2)))
        rows = kernels.Block(eta, sizes, weight=weight)
        sums = kernels.count_expected(rows, [loss])
        worth = np.zeros((3, 3, 2, 2))
        worth[:, 1:] = rng.normal(size=(3, 2, 2, 2))
        line = kernels.LineArrays(np.zeros(3, dtype=int), (loss[0][:1], loss[1][:1]),
                                  (np.zeros((1, 2)), np.array([[0.0, 1.0]])), worth)
        walk = kernels.changes(rows, line, np.array([[-1.0, 4.0]]), 8)
        return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in (sums, *walk))).hexdigest()
"""


def run(code, **environment):
    """What a script prints; one that hangs is ended and fails."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PASS) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "METRICWISE_KERNELS": "compiled", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@with_openmp
@pytest.mark.parametrize("n_threads", [1, 3])
def test_omp_num_threads_is_respected(n_threads):
    assert run("print(kernels.max_threads())", OMP_NUM_THREADS=str(n_threads)) == [str(n_threads)]


def test_workers_of_joblib_give_the_same():
    """Threads of one process, and processes of their own, whose share of the threads joblib sets."""
    first, *others = run(
        """
        from joblib import Parallel, delayed
        if __name__ == "__main__":
            print(digest())
            for backend in ("threading", "loky"):
                print(*Parallel(n_jobs=2, backend=backend)(delayed(digest)() for _ in range(3)))
        """,
        OMP_NUM_THREADS="2",
    )
    assert others == [first] * 6


# The time limit is the parent's: a child that waits for threads which are not there would wait for ever.
FORK = """
    import select
    import signal
    import warnings
    warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads, which is what is tried here

    def in_child(function, seconds=60):
        inlet, outlet = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(outlet, str(function()).encode())
            finally:
                os._exit(0)
        os.close(outlet)
        ready, _, _ = select.select([inlet], [], [], seconds)
        answer = os.read(inlet, 1000).decode() if ready else "deadlock"
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return answer or "crash"
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_after_a_threaded_pass_runs_too():
    code = textwrap.dedent(FORK) + textwrap.dedent("""
        print(digest(), in_child(digest), in_child(kernels.max_threads), in_child(lambda: in_child(digest)))
        print(digest(), kernels.max_threads())
    """)
    parent, child, child_threads, grandchild, again, threads = run(code, OMP_NUM_THREADS="3")
    assert child == grandchild == again == parent
    assert child_threads == "1"
    assert threads == ("3" if compiled.has_openmp() else "1")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_pool_of_forked_processes_runs_too():
    code = """
        import multiprocessing
        import warnings
        warnings.simplefilter("ignore")
        if __name__ == "__main__":
            print(digest())
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(*pool.map_async(digest, [0, 0, 0]).get(timeout=60))
    """
    first, *others = run(code, OMP_NUM_THREADS="2")
    assert others == [first] * 3


# ------------------------------------------------------------------------------------------------------------------ GIL


def test_python_goes_on_during_a_pass():
    """Ticks of another thread in the middle half of a pass: none could be there if the pass held the lock."""
    eta = np.random.default_rng(0).dirichlet(np.ones(8), size=(100_000, 1))
    loss = (np.random.default_rng(1).normal(size=(1, 8, 8)),)
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(1e-4)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        for _ in range(100):  # a busy machine may let the other thread wait: one pass that it sees is enough
            with threadpool_limits(limits=1, user_api="openmp"):
                start = time.perf_counter()
                compiled.count_expected(eta, None, None, np.array([8]), [loss] * 8)
                end = time.perf_counter()
            quarter = (end - start) / 4
            if any(start + quarter < at < end - quarter for at in list(ticks)):
                break
        else:
            pytest.fail("no other thread ran during any of 100 passes")
    finally:
        stop.set()
        thread.join()
