"""One contestant in a process of its own, which waits for requests of the driver.

    python -m benchmarks.many_labels.worker FOLDER GOAL LIBRARY CONTESTANT

The folder has the rows, the goal is JSON. Each line on stdin is a request, each line on stdout its answer in JSON:
``time`` is one fit and one decision about the fresh rows, ``memory`` the peak of them beyond their input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scipy.sparse import csr_matrix, load_npz, save_npz

from ..machine import peak_of
from .cases import clock, contestants
from .data import Rows, Split
from .peers import Contestant
from .synthetic import World, draw_rows
from .values import Goal

WARM_UP_ROWS, WARM_UP_LABELS = 300, 100


def save_split(folder: Path, split: Split) -> None:
    for name, rows in (("fit", split.fit), ("fresh", split.fresh)):
        save_npz(folder / f"{name}_P.npz", rows.proba, compressed=False)
        save_npz(folder / f"{name}_Y.npz", rows.y, compressed=False)


def load_rows(folder: Path, name: str) -> Rows:
    return Rows(*(csr_matrix(load_npz(folder / f"{name}_{part}.npz")) for part in "PY"))


class Worker:
    """A contestant that has been called once, on few rows, so that all is imported and compiled."""

    def __init__(self, folder: Path, goal: Goal, contestant: Contestant) -> None:
        self.goal, self.contestant = goal, contestant
        few = Rows(*draw_rows(World(n_labels=WARM_UP_LABELS), WARM_UP_ROWS))
        contestant.decide(contestant.fit(few, goal), few.proba, goal)
        self.fit_rows, self.fresh = load_rows(folder, "fit"), load_rows(folder, "fresh")

    def fit(self) -> Any:
        return self.contestant.fit(self.fit_rows, self.goal)

    def time(self) -> dict[str, float]:
        rule, fit = clock(self.fit)
        _, decide = clock(lambda: self.contestant.decide(rule, self.fresh.proba, self.goal))
        return {"fit": fit, "decide": decide}

    def memory(self) -> dict[str, Any]:
        """Return peaks beyond the rows, and the size of the probabilities that are read."""
        rules: list[Any] = []
        fit = peak_of(lambda: rules.append(self.fit()))
        decide = peak_of(lambda: self.contestant.decide(rules[0], self.fresh.proba, self.goal))
        proba = self.fit_rows.proba
        size = sum(part.nbytes for part in (proba.data, proba.indices, proba.indptr))
        return {"fit": fit, "decide": decide, "input": size}


class Running:
    """A worker as the driver sees it."""

    def __init__(self, folder: Path, goal: Goal, contestant: Contestant, threads: int) -> None:
        command = [sys.executable, "-m", __name__, str(folder), json.dumps(asdict(goal)), *contestant[:2][::-1]]
        limits = {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | limits
        )
        self.contestant = contestant
        self.error = self.receive().get("error")

    def ask(self, request: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{request}\n")
        self.process.stdin.flush()
        return self.receive()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process has ended"}

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def main() -> None:
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer

    def answer(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    warnings.simplefilter("ignore")
    folder, goal, library, name = sys.argv[1:5]
    aim = Goal(**json.loads(goal))
    one = next(one for one in contestants(aim, 0) if (one.library, one.name) == (library, name))
    try:
        worker = Worker(Path(folder), aim, one)
        answer({"ready": True})
        for line in sys.stdin:
            answer(getattr(worker, line.strip())())
    except Exception as error:  # the driver writes it into the table
        answer({"error": f"{type(error).__name__}: {error}"})
        raise


if __name__ == "__main__":
    main()
