"""Part d: watched promises: how often one that is kept is called broken, and how soon one that is broken is.

Streams are simulated: half of the rows are predicted positive, and a decision is right with a known probability, for
either class, so that accuracy, precision, recall and F1 are all equal to it. The promise is 0.8, checked after every
batch of 100 rows. MAPIE's `RiskMonitoring` gets the promise as its threshold; of its level it spends half on reference
rows, which a given threshold does not need: it is run with the level as it is, and with twice the level, so that all of
0.05 is spent on the stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import metricwise as mw

from ..tables import table
from .peers import HAS
from .summaries import Row, by, part_page

PROMISE = 0.8
BROKEN = 0.75
LEVEL = 0.05
BATCH = 100
FILES = ("watch",)
NEEDS: tuple[str, ...] = ("mapie",)
PROMISES = {
    "accuracy": ("accuracy >= 0.8",),
    "precision": ("precision >= 0.8",),
    "f1": ("f1 >= 0.8",),
    "all three": ("accuracy >= 0.8", "precision >= 0.8", "f1 >= 0.8"),
}
PEERS = {"MAPIE": LEVEL, "MAPIE, twice the level": 2 * LEVEL}
DRAWS = 1_000
PART = 25  # streams of a task
N_DELAYS = 100  # streams of each kind that breaks its promise, and null streams of MAPIE, which takes longer


@dataclass(frozen=True)
class Scenario:
    """A stream: the accuracy of its first rows, how many they are, and that of the others."""

    name: str
    n_good: int
    good: float
    n_rows: int
    later: float

    def draw(self, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return probabilities, decisions and labels."""
        p = rng.random(self.n_rows)
        right = rng.random(self.n_rows) < np.where(np.arange(self.n_rows) < self.n_good, self.good, self.later)
        decided = p > 0.5
        return p, decided.astype(int), np.where(right, decided, ~decided).astype(int)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("kept", 5_000, PROMISE, 5_000, PROMISE),
        Scenario("broken from the start", 0, PROMISE, 8_000, BROKEN),
        Scenario("broken after 2,000 rows on the promise", 2_000, PROMISE, 12_000, BROKEN),
        Scenario("broken after 2,000 rows at 0.85", 2_000, 0.85, 12_000, BROKEN),
    )
}


@dataclass(frozen=True)
class Task:
    """A scenario and the numbers of streams."""

    scenario: str
    first: int
    n_streams: int
    with_peer: bool


def tasks(only: str = "", draws: int = DRAWS) -> list[Task]:
    made = []
    for name in SCENARIOS:
        n = draws if name == "kept" else min(draws, N_DELAYS)
        made += [
            Task(name, first, min(PART, n - first), first < N_DELAYS) for first in range(0, n, PART) if only in name
        ]
    return made


def measure(task: Task) -> dict[str, list[Row]]:
    """Return the rows of the file: when each method found a promise broken, in rows from the start, or nothing."""
    scenario, rows = SCENARIOS[task.scenario], []
    for number in range(task.first, task.first + task.n_streams):
        rng = np.random.default_rng([list(SCENARIOS).index(task.scenario), number])
        p, decided, y = scenario.draw(rng)
        watched = PROMISES if task.scenario == "kept" else {"accuracy": PROMISES["accuracy"]}
        found = {("metricwise", name): watch_stream(p, y, promises) for name, promises in watched.items()}
        if task.with_peer and HAS["mapie"]:
            found |= {(name, "accuracy"): monitor_stream(decided, y, level) for name, level in PEERS.items()}
        rows += [
            {"scenario": task.scenario, "stream": number, "method": method, "promise": promise, "found": at}
            for (method, promise), at in found.items()
        ]
    return {"watch": rows}


def watch_stream(p: NDArray[Any], y: NDArray[Any], promises: tuple[str, ...]) -> int | None:
    """Return after how many rows `metricwise.watch` says that a promise is broken."""
    watch = mw.watch(mw.WeightedRule.from_thresholds(0.5), list(promises), alpha=LEVEL)
    for start in range(0, len(p), BATCH):
        if watch.update(p[start : start + BATCH], y[start : start + BATCH]).broken:
            return start + BATCH
    return None


def monitor_stream(decided: NDArray[Any], y: NDArray[Any], level: float) -> int | None:
    """Return after how many rows MAPIE detects a harmful shift.

    Its bounds are a sequence over rows that is computed anew in each update and does not change in its past, so that
    one update with all rows has the bounds of all batches.
    """
    from mapie.exchangeability_testing import RiskMonitoring

    monitor = RiskMonitoring("accuracy", test_level=level, threshold=1 - PROMISE, warn=False)
    bounds = monitor.update(y, decided).online_risk_lower_bound_sequence_history[BATCH - 1 :: BATCH]
    found = np.flatnonzero(bounds > monitor.threshold)
    return int((found[0] + 1) * BATCH) if len(found) else None


# ---------------------------------------------------------------------------------------------------------------------
# the page


def report(files: dict[str, list[Row]], made_with: str) -> str:
    rows = files["watch"]
    kept = [row for row in rows if row["scenario"] == "kept"]
    broken = [row for row in rows if row["scenario"] != "kept"]
    peer = "" if HAS["mapie"] or any(row["method"] != "metricwise" for row in rows) else "MAPIE is not installed.\n\n"
    return part_page(
        "Watched promises",
        "d",
        made_with,
        f"""Streams with a known accuracy, precision and F1, checked after every {BATCH} rows, level {LEVEL}; the
promise is {PROMISE}. MAPIE's `RiskMonitoring` has the promise as its threshold; with twice the level it spends all of
{LEVEL} on the stream.

{peer}## Promises that are kept, exactly

{null_table(kept)}

## Promises that are broken

Accuracy {BROKEN}, promise {PROMISE}. *Delay*: rows from the break to the alarm; streams without an alarm count as later
than all others. *Early*: alarms before the break.

{delay_table(broken)}""",
    )


def null_table(rows: list[Row]) -> str:
    lines = []
    for (method, promise), cells in by(rows, ("method", "promise")).items():
        share = float(np.mean([row["found"] is not None for row in cells]))
        limit = LEVEL + 2 * np.sqrt(LEVEL * (1 - LEVEL) / len(cells))
        lines.append(
            {"method": method, "promise": promise, "streams": len(cells)}
            | {"alarms": f"{share:.1%}", "asked": f"<= {limit:.1%}"}
        )
    return table(lines, left=2)


def delay_table(rows: list[Row]) -> str:
    lines = []
    for (name, method), cells in by(rows, ("scenario", "method")).items():
        n_good = SCENARIOS[name].n_good
        delays = np.array([np.inf if row["found"] is None else row["found"] - n_good for row in cells])
        late = delays[delays > 0]
        quartiles = [
            f"{q:,.0f}" if np.isfinite(q) else "none" for q in np.quantile(late, [0.25, 0.5, 0.75], method="lower")
        ]
        lines.append(
            {"stream": name, "method": method, "streams": len(cells), "median delay": quartiles[1]}
            | {"quartiles": f"{quartiles[0]}, {quartiles[2]}", "early": f"{np.mean(delays <= 0):.1%}"}
            | {"never": f"{np.mean(np.isinf(delays)):.1%}"}
        )
    return table(lines, left=2)
