"""Compare W1 to W10 with other libraries: time, passes, value, memory.

    python benchmarks/speed.py                          all of it; writes speed.csv, speed.md and speed.png beside it
    python benchmarks/speed.py --quick                  a twentieth of the rows, fewer rounds; writes nothing
    python benchmarks/speed.py --only W1,W4 --output folder --scale 0.1

A pass is the time to read the bytes of the given probabilities and labels once with all cores; the speed is measured
before and after each workload, and the faster one counts.

Each method has its own process, which is warmed up on a thousand rows and then asked for one fit in each round, so that
methods alternate; the order rotates. All have the same number of rounds, except those that need more than a second,
which have fewer: a ratio uses the best of the rounds of both. Peers may use all cores.

The time is that from the arrays to the rule, without converting labels to the form that a library needs. Values are
computed by `workloads.py` for all. A peer reaches a value if it is within 1e-4 of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import speed_report
from contestants import Contestant
from machine import bandwidth, check_apis, facts
from worker import everyone
from workloads import Workload, chosen, save

HERE = Path(__file__).parent
SLOW = ((20.0, 1), (10.0, 2), (3.0, 3), (1.0, 5))  # who takes longer than so many seconds has so many rounds
MEMORY_UP_TO = 10.0  # seconds; measuring memory takes one more fit
QUICK_SCALE, QUICK_ROUNDS = 0.05, 3


class Process:
    """A worker process."""

    def __init__(self, folder: Path, workload: Workload, contestant: Contestant) -> None:
        self.errors = (folder / "errors.txt").open("a")
        command = [sys.executable, str(HERE / "worker.py"), str(folder), workload.key, contestant.name]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )

    def ready(self) -> dict[str, Any]:
        return self.read()

    def ask(self, request: str) -> dict[str, Any]:
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": "the process ended"}
        return self.read()

    def read(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"the process ended with {self.process.wait()}"}

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()


@dataclass
class Entry:
    """The results of one method on one workload."""

    workload: Workload
    contestant: Contestant
    process: Process
    error: str | None = None
    times: list[float] = field(default_factory=list)
    score: dict[str, Any] = field(default_factory=dict)
    peak: int | None = None

    def take(self, answer: dict[str, Any]) -> dict[str, Any]:
        if "error" in answer:
            self.error = answer["error"]
        return answer

    def rounds(self, most: int) -> int:
        slowest = max(self.times, default=0.0)
        return next((few for seconds, few in SLOW if slowest > seconds), most)

    def record(self, size: int, speed: float) -> dict[str, Any]:
        return {
            "bandwidth": speed,
            "workload": self.workload,
            "contestant": self.contestant.name,
            "role": self.contestant.role,
            "error": self.error,
            "times": self.times,
            "peak": self.peak,
            "size": size,
            **self.score,
        }


def time_rounds(entries: list[Entry], most: int) -> None:
    for number in range(most):
        turn = number % len(entries)
        for entry in entries[turn:] + entries[:turn]:
            if not entry.error and number < entry.rounds(most):
                answer = entry.take(entry.process.ask("time"))
                if "seconds" in answer:
                    entry.times.append(answer["seconds"])


def measure_memory(entry: Entry, folder: Path) -> None:
    if entry.error or min(entry.times) > MEMORY_UP_TO:
        return
    process = Process(folder, entry.workload, entry.contestant)
    process.ready()
    entry.peak = process.ask("memory").get("peak")
    process.close()


def compete(workload: Workload, scale: float, rounds: int | None) -> list[dict[str, Any]]:
    """Run all methods on one workload."""
    with tempfile.TemporaryDirectory(prefix="metricwise-speed-") as name:
        folder = Path(name)
        size = save(workload, folder, scale)
        before = bandwidth(tries=4)
        entries = []
        for contestant in everyone(workload):
            entry = Entry(workload, contestant, Process(folder, workload, contestant))
            entry.take(entry.process.ready())  # one after the other: starting is work too
            entries.append(entry)
        time_rounds(entries, min(workload.rounds, rounds or workload.rounds))
        speed = max(before, bandwidth(tries=4))
        for entry in entries:
            if not entry.error:
                entry.score = entry.take(entry.process.ask("score"))
            entry.process.close()
        for entry in entries:
            measure_memory(entry, folder)
            tell(entry)
        return [entry.record(size, speed) for entry in entries]


def tell(entry: Entry) -> None:
    if entry.error:
        print(f"  {entry.contestant.name:42} {entry.error}", flush=True)
        return
    print(
        f"  {entry.contestant.name:42} {1e3 * min(entry.times):10.2f} ms, best of {len(entry.times)};"
        f" {entry.score['fitted']:.5f} fitted, {entry.score['fresh']:.5f} fresh",
        flush=True,
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows, three rounds")
    parser.add_argument("--only", help="workloads, such as W1,W4")
    parser.add_argument("--scale", type=float, help="share of the rows")
    parser.add_argument("--output", type=Path, help="folder; without it only a full run writes, beside this file")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    check_apis()
    scale = given.scale or (QUICK_SCALE if given.quick else 1.0)
    full = not given.only and not given.quick and scale == 1.0
    started = time.perf_counter()
    records = []
    for workload in chosen(given.only):
        print(f"{workload.key}: {workload.title}", flush=True)
        small = workload.rows <= 10_000  # stays as it is
        records += compete(workload, 1.0 if small else scale, QUICK_ROUNDS if given.quick else None)
    run = speed_report.Run(facts(), scale, records, minutes=(time.perf_counter() - started) / 60)
    output = given.output or (HERE if full else None)
    if output is None:
        print(speed_report.markdown(run))
    else:
        speed_report.write(run, output)


if __name__ == "__main__":
    main()
