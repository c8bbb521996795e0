"""Scripts in processes of their own: what they print, with a limit of time."""

import os
import subprocess
import sys
import textwrap

PRELUDE = """
import gc
import hashlib
import json
import os
import signal
import sys
import threading
import time
import warnings
import numpy as np
import metricwise as mw

rng = np.random.default_rng(0)

def draw(n, k=3):
    eta = rng.dirichlet(np.ones(k), n)
    return eta, (eta.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)

def digest(solution, eta):
    text = json.dumps([solution.rule.to_dict(), solution.value, solution.baseline], sort_keys=True, default=str)
    return hashlib.sha256(text.encode() + solution.predict(eta).tobytes()).hexdigest()

def n_threads():
    return len(os.listdir("/proc/self/task"))

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
"""


def run(code, *words, seconds=600, **environment):
    """Return what a script prints, split into words; one that hangs is ended and fails."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
