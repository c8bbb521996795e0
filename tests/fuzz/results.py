"""How many inputs were tried with what verdict: the state that a run continues, and the tables that pages show.

A folder holds ``counts.csv``, one row for each kind, ``faults.csv``, and ``summary.md``. Cases are numbered from 0, so
that the number of inputs tried is where the next run goes on.
"""

from __future__ import annotations

import csv
import platform
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

import numpy as np
import scipy
import sklearn

import metricwise
from fuzz.verdicts import Kind, Outcome, Verdict
from metricwise import kernels

COUNTS, FAULTS, SUMMARY = "counts.csv", "faults.csv", "summary.md"


@dataclass
class Count:
    """What became of the inputs of a kind."""

    kind: str
    seed: int
    inputs: int = 0
    right: int = 0
    refused: int = 0
    fault: int = 0
    seconds: float = 0.0
    slowest: float = 0.0

    def add(self, outcome: Outcome) -> None:
        self.inputs = max(self.inputs, outcome.number + 1)
        setattr(self, outcome.verdict, getattr(self, outcome.verdict) + 1)
        self.seconds += outcome.seconds
        self.slowest = max(self.slowest, outcome.seconds)


@dataclass(frozen=True)
class FaultRow:
    """A fault, and how to see it again: `python -m tests.fuzz --seed SEED --kind KIND --case CASE`."""

    kind: str
    seed: int
    case: int
    problem: str
    input: str
    mended: str = "no"
    died: str = "no"


@dataclass
class Results:
    """Counts by kind, and faults."""

    seed: int
    counts: dict[str, Count]
    faults: list[FaultRow] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Add an input, or a fault that was tried again."""
        count = self.counts[outcome.kind]
        if outcome.number < count.inputs:
            self._settle(outcome)
            return
        count.add(outcome)
        if outcome.verdict == Verdict.FAULT:
            died = "yes" if outcome.died else "no"
            place = (outcome.kind, self.seed, outcome.number)
            self.faults.append(FaultRow(*place, outcome.problem, outcome.case, died=died))

    def revoke(self, outcome: Outcome, problem: str) -> None:
        """Count an input as a fault whose verdict was another."""
        count = self.counts[outcome.kind]
        if outcome.verdict != Verdict.FAULT:
            setattr(count, outcome.verdict, getattr(count, outcome.verdict) - 1)
            count.fault += 1
            self.faults.append(FaultRow(outcome.kind, self.seed, outcome.number, problem, "", died="yes"))

    def _settle(self, outcome: Outcome) -> None:
        """Count a fault that is mended by its new verdict."""
        at = next(i for i, row in enumerate(self.faults) if (row.kind, row.case) == (outcome.kind, outcome.number))
        if outcome.verdict != Verdict.FAULT:
            count = self.counts[outcome.kind]
            count.fault -= 1
            setattr(count, outcome.verdict, getattr(count, outcome.verdict) + 1)
            self.faults[at] = replace(self.faults[at], mended="yes")

    @property
    def unmended(self) -> list[FaultRow]:
        """Faults that are there still, as far as is known; the end of a process is not mended by another try."""
        return [row for row in self.faults if row.mended == "no"]

    @property
    def inputs(self) -> int:
        return sum(count.inputs for count in self.counts.values())

    @property
    def seconds(self) -> float:
        return sum(count.seconds for count in self.counts.values())


def read(folder: Path, seed: int, kinds: Iterable[str]) -> Results:
    """Return the results of a seed so far; another seed starts anew."""
    results = Results(seed, {kind: Count(kind, seed) for kind in kinds})
    for row in _rows(folder / COUNTS):
        if int(row["seed"]) == seed and row["kind"] in results.counts:
            numbers = {name: type(getattr(Count("", 0), name))(row[name]) for name in row if name != "kind"}
            results.counts[row["kind"]] = Count(row["kind"], **numbers)
    for row in _rows(folder / FAULTS):
        if int(row["seed"]) == seed:
            results.faults.append(FaultRow(**{**row, "seed": seed, "case": int(row["case"])}))
    return results


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(results: Results, folder: Path, kinds: dict[str, Kind]) -> None:
    """Write counts, faults and the summary."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = [{**asdict(count), "seconds": round(count.seconds, 1), "slowest": round(count.slowest, 2)}
              for count in results.counts.values()]  # fmt: skip
    _write_rows(folder / COUNTS, [field.name for field in fields(Count)], counts)
    _write_rows(folder / FAULTS, [field.name for field in fields(FaultRow)], [asdict(row) for row in results.faults])
    (folder / SUMMARY).write_text(summary(results, kinds), encoding="utf-8")


def _write_rows(path: Path, names: list[str], rows: list[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def summary(results: Results, kinds: dict[str, Kind]) -> str:
    """Return the table of a page."""
    lines = ["| inputs | compared with | tried | right | refused | faults | seconds |", "|---|---|--:|--:|--:|--:|--:|"]
    for count in results.counts.values():
        numbers = [f"{number:,}" for number in (count.inputs, count.right, count.refused, count.fault)]
        numbers.append(f"{count.seconds:,.0f}")
        lines.append(f"| {' | '.join([count.kind, kinds[count.kind].about, *numbers])} |")
    total = [
        sum(getattr(count, name) for count in results.counts.values())
        for name in ("inputs", "right", "refused", "fault")
    ]
    lines.append(f"| all | | {' | '.join(f'**{number:,}**' for number in total)} | {results.seconds:,.0f} |")
    mended = len(results.faults) - len(results.unmended)
    again = f" Of these inputs {mended} were faults at first, and are right or refused since." if mended else ""
    made = f"Made by `make fuzz`, seed {results.seed}, {time.strftime('%Y-%m-%d')}."
    return "\n".join([*lines, "", f"{made}{again} {_versions()}", ""])


def _versions() -> str:
    parts = [f"metricwise {metricwise.__version__}, kernels {kernels.in_use()}", f"Python {platform.python_version()}"]
    parts += [f"NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"]
    return ", ".join(parts) + "."
