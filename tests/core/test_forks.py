"""Children that are forked while another thread holds a lock of the package."""

import os
import subprocess
import sys
import textwrap

import pytest

FORK = """
import os
import select
import signal
import threading
import warnings
from functools import cached_property
from metricwise.core import schema
from metricwise.core.progress import Progress

warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads, which is what is tried here

class Slow:
    @cached_property
    def value(self):
        if wait:
            inside.set()
            leave.wait()
        return 1

Slow.__module__, schema.Slow = "metricwise.core.schema", Slow
inside, leave, wait = threading.Event(), threading.Event(), True

def hold():
    with Progress._first_lock:
        Slow().value

threading.Thread(target=hold, daemon=True).start()
inside.wait()
wait = False
inlet, outlet = os.pipe()
child = os.fork()
if child == 0:
    with Progress("title", 1, True):
        os.write(outlet, str(Slow().value).encode())
    os._exit(0)
ready, _, _ = select.select([inlet], [], [], 20)
print(os.read(inlet, 10).decode() if ready else "hangs")
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
leave.set()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_locks_held_by_other_threads_are_new_in_a_child():
    command = [sys.executable, "-c", textwrap.dedent(FORK)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "1\n"
