"""Python processes that are interrupted, forked, shared by threads, and that call ten thousand times."""

import sys

import pytest

from endurance.scale import IS_FULL, record, repeats
from endurance.scripts import run

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

# Calls that take a while: passes over rows with threads, algebra, and a file that is written.
INTERRUPTED = """
    import tempfile
    from pathlib import Path

    warnings.simplefilter("ignore")

    def stop(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, stop)
    eta, y = draw(60_000)
    folder = Path(tempfile.mkdtemp())

    def call():
        solution = mw.optimize(eta, y, "macro_f1", strategy=mw.Strategy(confusion="labels", recalibrate=False))
        solution.rule.to_json(folder / "rule.json")
        return digest(solution, eta)

    expected = call()
    begin = time.monotonic()
    assert call() == expected
    seconds = time.monotonic() - begin
    complete = (folder / "rule.json").read_bytes()
    threads, stopped = n_threads(), 0
    for _ in range(int(sys.argv[1])):
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, seconds))
            call()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            stopped += 1
        assert (folder / "rule.json").read_bytes() == complete
        assert [path.name for path in folder.iterdir()] == ["rule.json"]
        assert threading.active_count() == 1
    assert call() == expected
    print(stopped, threads, n_threads())
"""


def test_calls_interrupted_at_random_moments():
    n_calls = repeats(100, 8)
    stopped, before, after = map(int, run(INTERRUPTED, n_calls, OMP_NUM_THREADS="2"))
    assert stopped > n_calls / 2
    assert after <= before
    record("optimize interrupted", "threads and a file", tried=n_calls, interrupted=stopped, broken=0)


FORKED = """
    import select
    warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads, which is what is tried here

    eta, y = draw(60_000)
    small, labels = draw(2_000)

    def call():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return digest(mw.optimize(small, labels, "macro_f1"), eta)

    expected = call()
    stop, ready = threading.Event(), threading.Barrier(4)

    def work():
        for i in range(10**9):
            mw.optimize(eta, y, "accuracy", strategy=mw.Strategy(confusion="labels", recalibrate=False))
            if i == 0:
                ready.wait()  # a child of a process that is importing may wait for the import for ever
            if stop.is_set():
                return

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    ready.wait()
    answers = []
    for _ in range(int(sys.argv[1])):
        inlet, outlet = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(outlet, call().encode())
            finally:
                os._exit(0)
        os.close(outlet)
        ready, _, _ = select.select([inlet], [], [], 60)
        answers.append(os.read(inlet, 100).decode() if ready else "hangs")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(inlet)
    stop.set()
    for thread in threads:
        thread.join()
    print(len(answers), sum(answer == expected for answer in answers), sum(answer == "hangs" for answer in answers))
"""


def test_children_forked_while_threads_are_in_passes():
    n_forks = repeats(50, 4)
    tried, equal, hanging = map(int, run(FORKED, n_forks, OMP_NUM_THREADS="2", seconds=1200))
    assert (tried, equal, hanging) == (n_forks, n_forks, 0)
    record("forked during passes", "optimize in the child", tried=tried, equal=equal, broken=0)


TOGETHER = """
    from concurrent.futures import ThreadPoolExecutor
    n_threads_used, n_calls = int(sys.argv[1]), int(sys.argv[2])
    eta, y = draw(30_000)
    many = rng.random((5_000, 8))
    flags = (many > rng.random(many.shape)).astype(int)
    strategy = mw.Strategy(confusion="labels", recalibrate=False)
    rule = mw.WeightedRule.from_weights([1.0, 2.0, 3.0])
    calls = [
        lambda: digest(mw.optimize(eta, y, "macro_f1", strategy=strategy), eta),
        lambda: digest(mw.optimize(eta[:2000], y[:2000], "quadratic_kappa"), eta),
        lambda: digest(mw.optimize(many, flags, "f1", average="macro", strategy=strategy), many),
        lambda: hashlib.sha256(rule.predict(eta).tobytes()).hexdigest(),
        lambda: repr(mw.value_at_best(eta, y, "macro_f1")),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [call() for call in calls]
        barrier = threading.Barrier(n_threads_used)

        def work(thread):
            barrier.wait()
            order = [(thread + i) % len(calls) for i in range(n_calls)]
            return sum(calls[at]() == expected[at] for at in order)

        with ThreadPoolExecutor(n_threads_used) as pool:
            equal = sum(pool.map(work, range(n_threads_used)))
    print(equal, threading.active_count())
"""


def test_sixteen_threads_calling_at_once():
    n_calls = repeats(20, 1)
    equal, active = map(int, run(TOGETHER, 16, n_calls, OMP_NUM_THREADS="2", seconds=1800))
    assert (equal, active) == (16 * n_calls, 1)
    record("sixteen threads at once", "optimize, predict, value_at_best", tried=16 * n_calls, equal=equal, broken=0)


FIRST = """
    from concurrent.futures import ThreadPoolExecutor
    warnings.simplefilter("ignore")
    eta, y = draw(300)
    barrier = threading.Barrier(16)

    def work(_):
        barrier.wait()
        return digest(mw.optimize(eta, y, "macro_f1"), eta)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(work, range(16)))
    print(sum(answer == digest(mw.optimize(eta, y, "macro_f1"), eta) for answer in answers))
"""


def test_the_first_calls_of_sixteen_threads():
    """What is imported on first use is imported by one thread while others go on."""
    n_processes = repeats(10, 1)
    equal = sum(int(run(FIRST, OMP_NUM_THREADS="2")[0]) for _ in range(n_processes))
    assert equal == 16 * n_processes
    record("sixteen threads at once", "first calls of a process", tried=16 * n_processes, equal=equal, broken=0)


# Growth is looked at in the second half: caches and arenas have been filled by then.
CALLS = {
    "optimize": 'mw.optimize(eta, y, "macro_f1", strategy=strategy)',
    "optimize, by default": 'mw.optimize(eta, y, "f1_macro")',
    "predict": "rule.predict(eta)",
    "predict of one row": "rule.predict(eta[:1])",
    "value_at_best": 'mw.value_at_best(eta, y, "macro_f1")',
    "load_rule": "mw.load_rule(path)",
    "evaluate": 'mw.evaluate(rule, eta, y, "macro_f1")',
    "to_json": "rule.to_json(path)",
}
SHORT_CALLS = ("predict", "load_rule", "value_at_best")
SLOW_CALLS = {"optimize, by default": 50, "evaluate": 10}  # times as long as others
REPEATED = """
    import tempfile
    from pathlib import Path
    warnings.simplefilter("ignore")
    eta, y = draw(40)
    strategy = mw.Strategy(confusion="labels", recalibrate=False)
    rule = mw.WeightedRule.from_weights([1.0, 2.0, 3.0])
    path = Path(tempfile.mkdtemp()) / "rule.json"
    rule.to_json(path)
    call = compile(sys.argv[1], "call", "eval")
    n_calls, sizes = int(sys.argv[2]), []
    for i in range(n_calls):
        eval(call)
        if i in (n_calls // 2, n_calls - 1):
            gc.collect()
            sizes.append(resident())
    print(sizes[1] - sizes[0], len(os.listdir("/proc/self/fd")), n_threads())
"""
MAX_GROWTH = 1 << 20  # bytes, over half of the calls


@pytest.mark.parametrize("name", CALLS if IS_FULL else SHORT_CALLS)
def test_ten_thousand_calls_do_not_grow(name):
    n_calls = repeats(10_000 // SLOW_CALLS.get(name, 1), 200 // SLOW_CALLS.get(name, 1))
    growth, n_files, threads = map(int, run(REPEATED, CALLS[name], n_calls, OMP_NUM_THREADS="2", seconds=3000))
    assert growth < MAX_GROWTH
    assert n_files < 10
    record("repeated calls", name, tried=n_calls, growth_kb=round(growth / 1024), threads=threads)
