"""Runs cases for so many seconds, which all kinds share: in a process of their own, which may die of them.

The parent keeps the results. A case that kills the process, or that never ends, is a fault; the next process goes on
with the case behind it.
"""

from __future__ import annotations

import faulthandler
import math
import multiprocessing
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from fuzz import results as records
from fuzz.results import Results
from fuzz.verdicts import MAX_CPU_SECONDS, Kind, Outcome, Verdict, examine

MAX_WALL_SECONDS = 30 * MAX_CPU_SECONDS  # after which a process that does nothing is killed; machines are shared
MAX_START_SECONDS = 600.0  # of a process, which imports every engine
MAX_ADDRESS_SPACE = 1 << 35  # bytes, so that an input that asks for all memory is refused, not the machine's end
WRITE_EVERY = 15.0  # seconds
SAY_EVERY = 60.0


def run(kinds: dict[str, Kind], results: Results, seconds: float, folder: Path, say: Callable[[str], None]) -> Results:
    """Try inputs for so many seconds from the first on, and write the results as they come."""
    supervisor = _Supervisor(kinds, results, seconds, folder, say)
    while supervisor.seconds_left > 0:
        with tempfile.TemporaryDirectory(prefix="metricwise-fuzz-") as place:  # processes are killed, and leave files
            supervisor.run_process(place)
    records.write(results, folder, kinds)
    return results


class _Supervisor:
    """Starts processes, and records what they report."""

    def __init__(
        self, kinds: dict[str, Kind], results: Results, seconds: float, folder: Path, say: Callable[[str], None]
    ) -> None:
        self.kinds, self.results, self.folder, self.say = kinds, results, folder, say
        self.seconds, self.end = seconds, math.inf
        self.again = [
            row for row in results.unmended if row.kind in results.counts and row.died == "no"
        ]  # faults to try first
        self.written = self.said = time.monotonic()

    @property
    def seconds_left(self) -> float:
        return self.end - time.monotonic()

    def run_process(self, place: str) -> None:
        """Run one process, to the end of the time or to its own."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        plan = {name: (count.inputs, count.seconds) for name, count in self.results.counts.items()}
        again = [(row.kind, row.case) for row in self.again]
        process = context.Process(target=work, args=(theirs, self.results.seed, plan, again, place), daemon=True)
        process.start()
        theirs.close()
        self.running: tuple[str, int] | None = None
        self.last: Outcome | None = None
        try:
            self.listen(ours)
        except EOFError:
            process.join()
            self.record_death(f"kills the process: {_cause(process.exitcode)}")
        finally:
            process.kill()
            process.join()
            ours.close()

    def listen(self, connection: Connection) -> None:
        """Record what a process reports, until the time is over or a case does not end."""
        limit = MAX_START_SECONDS
        while self.seconds_left > 0:
            if not connection.poll(min(limit, self.seconds_left)):
                if self.seconds_left > 0:
                    self.record_death(f"does not end within {limit:g} seconds")
                return
            message = connection.recv()
            limit, self.end = MAX_WALL_SECONDS, min(self.end, time.monotonic() + self.seconds)
            if isinstance(message, Outcome):
                self.record(message)
                self.last = message
            self.running = None if isinstance(message, Outcome) else message
            self.again = [row for row in self.again if (row.kind, row.case) != message]

    def record(self, outcome: Outcome) -> None:
        self.results.add(outcome)
        if outcome.verdict == Verdict.FAULT:
            self.say(f"FAULT --kind '{outcome.kind}' --case {outcome.number}: {outcome.problem}")
        now = time.monotonic()
        if now - self.written > WRITE_EVERY:
            records.write(self.results, self.folder, self.kinds)
            self.written = now
        if now - self.said > SAY_EVERY:
            self.say(f"{self.results.inputs:,} inputs, {len(self.results.faults)} faults")
            self.said = now

    def record_death(self, problem: str) -> None:
        """Record a fault of the case that runs, or of the last one, whose threads may outlive its verdict."""
        if self.running is not None:
            self.record(Outcome(*self.running, Verdict.FAULT, 0.0, problem, died=True))
        elif self.last is not None:
            self.results.revoke(self.last, f"{problem}, after the verdict")
            self.say(f"FAULT --kind '{self.last.kind}' --case {self.last.number}: {problem}, after the verdict")
        else:
            raise RuntimeError(f"a process that ran no case {problem}")


def _cause(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"


def work(
    connection: Connection, seed: int, plan: dict[str, tuple[int, float]], again: list[tuple[str, int]], place: str
) -> None:
    """Run cases until killed: some again, then always one of the kind that has had the least time."""
    from fuzz.kinds import KINDS  # here, because it imports every engine

    tempfile.tempdir = place
    faulthandler.enable()  # where a process was that dies is on the standard error
    if "ASAN_OPTIONS" not in os.environ:  # the sanitizer of addresses maps terabytes for itself
        resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE, resource.RLIM_INFINITY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    numbers = {name: number for name, (number, _) in plan.items()}
    spent = {name: seconds for name, (_, seconds) in plan.items()}
    for name, number in again:
        connection.send((name, number))
        connection.send(examine(KINDS[name], seed, number))
    while True:
        name = min(spent, key=spent.__getitem__)
        connection.send((name, numbers[name]))
        outcome = examine(KINDS[name], seed, numbers[name])
        connection.send(outcome)
        numbers[name] += 1
        spent[name] += outcome.seconds
