"""Properties of the machine: memory bandwidth, description, and peak memory of calls.

Queries the operating system. Must not know workloads.
"""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ("numpy", "scipy", "scikit-learn", "xcolumns", "optimal-classification-cutoffs", "numba", "mapie")
NEW_APIS = {"optimal-classification-cutoffs": 2}  # first major version whose API is not the one that is called here
NOT_INSTALLED = "not installed"
READERS: dict[str, Callable[[np.ndarray], Any]] = {"max": np.max, "dot": lambda x: np.dot(x, x), "sum": np.sum}


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def bandwidth(megabytes: int = 512, tries: int = 8) -> float:
    """Return the bytes per second at which all cores together read an array: the best of several methods and tries."""
    array = np.ones(megabytes * 2**20 // 8)
    best = 0.0
    with ThreadPoolExecutor(2 * cores()) as pool:
        for threads in (cores(), 2 * cores()):
            for read in READERS.values():
                parts = [piece for part in np.array_split(array, threads) for piece in np.array_split(part, 8)]
                best = max(best, max(read_once(pool, read, parts, array.nbytes) for _ in range(tries)))
    return best


def read_once(pool: ThreadPoolExecutor, read: Callable[[np.ndarray], Any], parts: list[np.ndarray], size: int) -> float:
    start = time.perf_counter()
    list(pool.map(read, parts))
    return size / (time.perf_counter() - start)


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def check_apis() -> None:
    """Stop if a library is installed in a version with another API than the one that the benchmarks call."""
    for package, major in NEW_APIS.items():
        found = installed(package)
        if found[0].isdigit() and int(found.partition(".")[0]) >= major:
            raise SystemExit(
                f"{package} {found} has another API than versions before {major}, which the benchmarks call: "
                f"pip install '{package}<{major}', or leave it out"
            )


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return NOT_INSTALLED


def kernels() -> str:
    """Return which kernels metricwise uses, and the number of threads."""
    from metricwise import kernels

    in_use = getattr(kernels, "in_use", lambda: "numpy")()
    threads = getattr(kernels, "max_threads", lambda: 1)()
    return f"{in_use}, {threads} thread{'s' if threads > 1 else ''}"


def facts() -> dict[str, str]:
    import metricwise as mw

    return {
        "processor": processor(),
        "cores": str(cores()),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "metricwise": f"{mw.__version__}, kernels {kernels()}",
        **{package: installed(package) for package in PACKAGES},
        "threads": ", ".join(f"{key}={os.environ[key]}" for key in sorted(os.environ) if key.endswith("NUM_THREADS"))
        or f"not limited ({cores()})",
    }


# ---------------------------------------------------------------------------------------------------------------------
# memory


def resident(field: str) -> int:
    """Return the bytes of ``VmRSS`` (now) or ``VmHWM`` (the peak since the last reset)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def peak_of(action: Callable[[], Any]) -> int | None:
    """Return the peak memory of a call beyond what was used before; None if not on Linux."""
    if sys.platform != "linux":
        return None
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    action()
    return max(0, resident("VmHWM") - before)
