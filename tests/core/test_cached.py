"""Properties that are computed once, and wait for no other instance."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest

from metricwise.core.cached import cached_property


class Row:
    """A row that knows what it is read with."""

    def __init__(self, read):
        self.read, self.n_reads = read, 0

    @cached_property
    def label(self):
        self.n_reads += 1
        return self.read()


def test_what_is_computed_is_kept():
    row = Row(lambda: "low")
    assert (row.label, row.label, row.n_reads) == ("low", "low", 1)
    assert Row.label.func(row) == "low"


def test_one_instance_is_computed_while_another_waits():
    may_end, waits = threading.Event(), threading.Event()

    def wait():
        waits.set()
        return may_end.wait(20)

    first = Row(wait)
    thread = threading.Thread(target=lambda: first.label)
    thread.start()
    waits.wait(20)
    found = []
    other = threading.Thread(target=lambda: found.append(Row(lambda: "low").label))
    other.start()
    other.join(5)
    may_end.set()
    assert found == ["low"]
    thread.join()
    other.join()
    assert first.label is True


# A child that is forked while another thread computes a property, and holds the lock of the progress messages.
FORK = """
import os
import select
import signal
import threading
import warnings
from metricwise.core.cached import cached_property
from metricwise.core.progress import Progress

warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads, which is what is tried here

class Slow:
    @cached_property
    def value(self):
        if wait:
            inside.set()
            leave.wait()
        return 1

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
def test_a_child_does_not_wait_for_threads_of_its_parent():
    command = [sys.executable, "-c", textwrap.dedent(FORK)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "1\n"
