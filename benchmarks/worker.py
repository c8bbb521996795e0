"""One method in its own process, which waits for requests of the driver.

    python benchmarks/worker.py FOLDER WORKLOAD CONTESTANT

The folder contains the rows. Each line on stdin is one request, each line on stdout its answer in JSON: ``time`` is one
timed fit, ``score`` the value of the last rule, ``memory`` the peak of one fit beyond the inputs.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from contestants import Contestant, ours, safe
from machine import peak_of
from peers import peers
from workloads import Workload, find, load, value

WARM_UP_ROWS = 1000
THREADS_START = 50_000


class Worker:
    def __init__(self, folder: Path, workload: Workload, contestant: Contestant) -> None:
        self.folder, self.workload, self.contestant = folder, workload, contestant
        self.proba, y = load(folder, "fitted")
        self.truth = self.proba if workload.expected and contestant.role != "ours" else y
        self.labels = contestant.labels(workload, self.truth)
        self.rules: list[Any] = []
        self.warm_up()

    def warm_up(self, rows: int = WARM_UP_ROWS) -> None:
        """Import and compile everything, on a few rows."""
        labels = self.contestant.labels(self.workload, self.truth[:rows])
        self.contestant.fit(self.workload, self.proba[:rows], labels)

    def fit(self) -> None:
        self.rules = self.contestant.fit(self.workload, self.proba, self.labels)

    def time(self) -> dict[str, Any]:
        self.rules = []
        gc.collect()
        gc.disable()
        start = time.perf_counter()
        self.fit()
        took = time.perf_counter() - start
        gc.enable()
        return {"seconds": took}

    def memory(self) -> dict[str, Any]:
        """Return the peak beyond the inputs, with threads already started, whose memory does not depend on the size."""
        self.warm_up(THREADS_START)
        return {"peak": peak_of(self.fit)}

    def score(self) -> dict[str, Any]:
        """Return the value on the fitted rows, counted as the workload says, and on fresh rows, counted with labels."""
        fitted = self.value_on(self.proba, self.proba if self.workload.expected else load(self.folder, "fitted")[1])
        facts = self.contestant.facts(self.rules[0])
        return {"fitted": fitted, "fresh": self.value_on(*load(self.folder, "fresh")), **facts}

    def value_on(self, proba: np.ndarray, truth: np.ndarray) -> float:
        return value(self.workload, self.contestant.confusion(self.workload, self.rules, proba, truth))


def everyone(workload: Workload) -> list[Contestant]:
    found = peers(workload)
    return ours(workload) + found + [safe(peer) for peer in found if peer.name == workload.safe_peer]


def answering() -> Callable[[dict[str, Any]], None]:
    """Keep stdout for answers: output of libraries goes to stderr."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    return answer


def main() -> None:
    answer = answering()
    folder, key, name = sys.argv[1:4]
    workload = find(key)
    contestant = next(one for one in everyone(workload) if one.name == name)
    try:
        worker = Worker(Path(folder), workload, contestant)
        answer({"ready": True})
        for line in sys.stdin:
            answer(getattr(worker, line.strip())())
    except Exception as error:  # the driver writes it into the table
        answer({"error": f"{type(error).__name__}: {error}"})
        raise


if __name__ == "__main__":
    main()
