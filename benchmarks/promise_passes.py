"""Passes over the rows and time of a call with constraints, beside a call without.

    python -m benchmarks.promise_passes                 writes promise_passes.csv and promise_passes.md beside it
    python -m benchmarks.promise_passes --as before     measures another version, and keeps what is stored of others
    python -m benchmarks.promise_passes --classes 2     some numbers of classes anew, the others as they are stored
    python -m benchmarks.promise_passes --tables        promise_passes.md alone, from promise_passes.csv

Rows are drawn from a Dirichlet distribution, labels from the rows. One floor is `precision[1]` under `recall[1]`, two
are `recall[1]` and `recall[2]` (of two classes `recall[0]`) under accuracy. Times are processor time on one thread, the
best of three calls; the free call is `optimize(proba, y, "f1[1]")`.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import metricwise as mw

from .tables import table, write_csv, write_text

HERE = Path(__file__).parent
COLUMNS = ("version", "classes", "rows", "floors", "passes", "ms", "free ms", "value", "confidence")
SIZES = {2: (1_000, 20_000, 100_000, 1_000_000), 3: (1_000, 100_000), 10: (1_000, 100_000)}  # rows, by classes
REPEATS = 3
HEAD = """# Passes and time of calls with constraints

Made by `python -m benchmarks.promise_passes`, which says how. Of two classes, *before*: a sweep over the rows for every
margin and every resample, and a linear programme for the mixture; *after*: thresholds are counted once, and margins,
resamples and mixtures come from these counts. Of more classes, *before*: one loss in each pass, linear programmes by
HiGHS; *after*: up to 32 multipliers in each pass, aim and constraints counted in the same pass, programmes of one block
by a small simplex method, resamples from the multipliers of all rows. *Times free*: the time over that of the free
call.
"""


def drawn(k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and labels; the first class is the most frequent one."""
    rng = np.random.default_rng([k, n])
    proba = rng.dirichlet([4, *np.linspace(1.0, 0.5, k - 1)], n)
    y = np.minimum((proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)
    return (proba[:, 1] if k == 2 else proba), y


def problems(k: int) -> dict[str, tuple[str, str]]:
    """What is maximised and what it is subject to."""
    other = 0 if k == 2 else 2
    low = {2: 0.6, 3: 0.3, 10: 0.1}[k]
    floor = {2: 0.5, 3: 0.4, 10: 0.2}[k]
    return {
        "one": ("recall[1]", f"precision[1] >= {floor}"),
        "two": ("accuracy", f"recall[1] >= {low} and recall[{other}] >= {low}"),
    }


def best_of(call: Callable[[], mw.Solution]) -> tuple[mw.Solution, float]:
    """What a call returns, and the fewest milliseconds of the processor that it took."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        solution = call()
        times.append(1e3 * (time.process_time() - start))
    return solution, min(times)


def measured(version: str, classes: list[int]) -> list[dict[str, Any]]:
    rows = []
    for k in classes:
        for n in SIZES[k]:
            proba, y = drawn(k, n)
            _, free = best_of(partial(mw.optimize, proba, y, "f1[1]"))
            for floors, (aim, text) in problems(k).items():
                solution, ms = best_of(partial(mw.optimize, proba, y, aim, subject_to=text))
                row = (version, k, n, floors, solution.n_passes, round(ms, 1), round(free, 1), round(solution.value, 4))
                rows.append(
                    dict(zip(COLUMNS, (*row, round(solution.constraints[0].confidence or 0.0, 3)), strict=True))
                )
                print(rows[-1], flush=True)
    return rows


def report(rows: list[dict[str, Any]]) -> str:
    cells = []
    for key in dict.fromkeys((row["classes"], row["rows"], row["floors"]) for row in rows):
        cell: dict[str, Any] = {"classes": key[0], "rows": f"{int(key[1]):,}", "floors": key[2]}
        for row in rows:
            if (row["classes"], row["rows"], row["floors"]) == key:
                name, free = row["version"], float(row["ms"]) / float(row["free ms"])
                cell |= {f"passes {name}": row["passes"], f"ms {name}": f"{float(row['ms']):.0f}"}
                cell |= {f"times free {name}": f"{free:.1f}", f"value {name}": row["value"]}
        cells.append(cell)
    return f"{HEAD}\n{table(cells, left=0)}\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--as", dest="version", default="after")
    parser.add_argument("--classes", type=int, nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--output", type=Path, default=HERE)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # that labels are too few is part of the table
    stored = options.output / "promise_passes.csv"
    rows: list[dict[str, Any]] = []
    if stored.exists():
        with stored.open(newline="") as file:
            rows = list(csv.DictReader(file))
    if not options.tables:
        anew = {(options.version, str(k)) for k in options.classes}
        rows = [row for row in rows if (row["version"], row["classes"]) not in anew]
        new_rows = measured(options.version, options.classes)
        rows += [{name: str(value) for name, value in row.items()} for row in new_rows]
        rows.sort(key=lambda row: ("before after".find(row["version"]), row["version"], int(row["classes"])))
        write_csv(stored, rows)
    write_text(options.output / "promise_passes.md", report(rows))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
