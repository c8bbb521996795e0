"""Engines that `out_of_memory.py` measures, one file each.

A file has a docstring that says how the rows are opened; `missing()`, which returns why the engine cannot be measured
on this machine, or None; and `measure(paths)`, which opens Parquet files in the engine and returns figures: what
`measure_call` and `measure_passes` return for all that `optimize` takes. Optional figures are `linked`, `reading` and
`evaluate` with its peak (of files), and `workers`, the peak memory of other processes. `measure` runs in a process of
its own.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from machine import resident

CLASSES = 10
NAMES = [f"p_{k}" for k in range(CLASSES)]  # columns of probabilities
LABELS = "grade"
METRIC = "macro_f1"
N_TRIES = 3


def measure_call(proba: Any, y: Any) -> dict[str, float]:
    """Make the default call: seconds, peak memory of this process in bytes, passes and the value."""
    import metricwise as mw

    start = time.perf_counter()
    solution = mw.optimize(proba, y, METRIC)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak": resident("VmHWM"), "n_passes": solution.n_passes, "value": solution.value}


def measure_passes(proba: Any, y: Any) -> dict[str, float]:
    """Time passes that count two losses, without and with recalibration, and count the decisions of argmax.

    Rows are checked, and read once, before.
    """
    from metricwise.core.losses import Loss
    from metricwise.data.open import open_rows
    from metricwise.data.row_spec import RowSpec
    from metricwise.oracles.counts import Counts
    from metricwise.rules import TemperatureScaling

    _, source = open_rows(RowSpec(proba, y))
    losses = [Loss.argmax(CLASSES), Loss.from_tensor(-np.diag(np.linspace(1, 3, CLASSES)))]
    link = TemperatureScaling(np.full(1, 0.7), np.linspace(0, 0.5, CLASSES)[None])
    confusion = Counts(source).confusions(losses)[0]
    return {
        "pass": best_of(lambda: Counts(source).confusions(losses)),
        "linked": best_of(lambda: Counts(source, link=link).confusions(losses)),
        "counts": checksum(confusion * source.n_rows),
    }


def best_of(action: Callable[[], Any]) -> float:
    """Return the fewest seconds of several tries."""
    seconds = []
    for _ in range(N_TRIES):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def checksum(confusion: np.ndarray) -> int:
    """Return a number that tells confusion matrices of counts, (K, K) with labels as rows, apart."""
    counts = np.rint(np.reshape(confusion, (CLASSES, CLASSES))).astype("<i8")
    return zlib.crc32(counts.tobytes())
