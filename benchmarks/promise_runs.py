"""Run and time repetitions, and summarise them."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

REPEATS = 300
SIZES = (1_000, 4_000)  # rows that rules are fitted to
N_NEW = 40_000
CONFIDENCE = 0.95


def clocked(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a call, and its processor time in milliseconds."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that labels are too few is counted instead
        found = call()
    return found, 1e3 * (time.process_time() - start)


def attempted(call: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    """Return the result of a call and its time; None and the error if it fails."""
    try:
        found, ms = clocked(call)
    except (ValueError, RuntimeError) as error:
        return None, {"error": type(error).__name__}
    return found, {"ms": round(ms, 1)}


def by(rows: list[dict[str, Any]], key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in rows))


def mean(values: Iterable[float]) -> float:
    known = list(values)
    return float(np.mean(known)) if known else float("nan")


def median(values: Iterable[float]) -> float:
    return float(np.median(list(values)))


def percent(share: float) -> str:
    return "" if np.isnan(share) else f"{share:.1%}"


def in_processes(work: Callable[[Any], Any], tasks: Sequence[Any], jobs: int) -> Iterator[Any]:
    """Return results in the order of the tasks, for any number of processes."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"  # the processes that follow read it when they load their libraries
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, tasks)
