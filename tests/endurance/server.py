"""A process that runs commands in children of its own, and sends them signals at moments that are asked for.

It has imported what commands import, so that a command takes as long as its work and not as long as its imports. A
request is a line of JSON on the standard input, the answer a line on the standard output.
"""

import importlib
import json
import os
import resource
import select
import signal
import sys
import threading
import time
import traceback

IMPORTED = [
    "jinja2", "metricwise", "metricwise.api.frontier", "metricwise.api.optimization", "metricwise.api.table_prediction",
    "metricwise.cli.app", "metricwise.cli.rows", "metricwise.export", "metricwise.export.onnx_graph",
    "metricwise.export.python_source", "metricwise.export.sql", "metricwise.inspection.report",
    "metricwise.monitoring.watching", "onnx", "pyarrow.csv", "pyarrow.dataset", "pyarrow.feather", "pyarrow.parquet",
    "scipy.optimize", "scipy.special", "scipy.stats", "sqlglot",
]  # fmt: skip
# What Python announces before it touches a file; os.fsync is announced here.
EVENTS = {"open", "os.rename", "os.remove", "os.chmod", "os.chown", "fcntl.flock", "os.listdir", "os.scandir", "fsync"}
MAX_SECONDS = 120  # of a command, beyond which it hangs
HANGS = -1000  # in the place of its exit code


class _Events:
    """Counts what a process does to files, and sends it a signal when it is about to do the n-th of these."""

    def __init__(self, at, number):
        self.count, self.at, self.number = 0, at, number

    def __call__(self, event, arguments):
        if event not in EVENTS or (event == "open" and _is_code(arguments[0])):
            return
        self.count += 1
        if self.count == self.at:
            os.kill(os.getpid(), self.number)


def _is_code(path):
    return isinstance(path, str) and path.endswith((".py", ".pyc", ".so")) and "site-packages" in path


def _run(request, answer, said):
    """Run a command in a child, which ends here; `answer` and `said`, its standard error, are pipes."""
    from metricwise import cli
    from metricwise.cli import rows

    os.chdir(request["folder"])
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(said, 2)
    if request.get("in_batches"):
        rows.MEMORY_LIMIT = 0
    if request.get("file_size") is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_size"],) * 2)
    events = _Events(request.get("event"), request["signal"])
    fsync = os.fsync
    os.fsync = lambda number: (events("fsync", ()), fsync(number))[1]
    os.write(answer, b"ready\n")
    sys.addaudithook(events)
    code = 0
    try:
        cli.main(request["words"])
    except SystemExit as error:
        code = error.code
    except BaseException:  # of which the parent hears by the exit code
        traceback.print_exc()
        code = 70
    events.at = None
    deadline = time.monotonic() + 5
    while threading.active_count() > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.write(answer, json.dumps([events.count, threading.active_count() - 1]).encode())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


def serve(request):
    """Run a command; returns what became of it."""
    (inlet, outlet), (hears, says) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _run(request, outlet, says)
        finally:
            os._exit(71)
    os.close(outlet)
    os.close(says)
    os.read(inlet, 6)
    begin = time.monotonic()
    if request.get("after") is not None:
        time.sleep(request["after"])
        os.kill(child, request["signal"])
    ready = select.select([inlet], [], [], MAX_SECONDS)[0]
    if not ready:
        os.kill(child, signal.SIGKILL)
    said = os.read(inlet, 1000)
    os.close(inlet)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    n_events, n_threads = json.loads(said) if said else (None, None)
    seconds = time.monotonic() - begin
    with os.fdopen(hears, "rb") as stream:
        error = stream.read().decode()
    return {
        "code": code if ready else HANGS, "seconds": seconds, "events": n_events, "threads": n_threads, "error": error
    }  # fmt: skip


def main():
    """Answer requests until there are no more."""
    for name in IMPORTED:
        importlib.import_module(name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(serve(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
