"""Peak memory of a call beyond its input: the default call, and a single fit.

    python benchmarks/memory.py                     writes memory.csv and memory.md beside it
    python benchmarks/memory.py --output folder
    python benchmarks/memory.py --quick             fewer rows and tries; writes nothing

Each call runs in new processes, which load the rows, warm up on a thousand of them, and report the increase of the
resident memory at its peak during the call; the largest of several counts. The time is the best of further calls in the
same processes. Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import facts, peak_of
from tables import significant, table, write_csv, write_text
from workloads import LABELS, Workload, draw, find, load

import metricwise as mw

HERE = Path(__file__).parent
WARM_UP_ROWS = 1000
AIM = 0.25  # of the input, for the default call
SETTINGS: dict[str, dict[str, Any]] = {"default": {}, "labels, not recalibrated": LABELS}


def million(metric: str, law: str = "multiclass") -> Workload:
    return Workload(metric, f"{metric}, N=1e6, K=10", metric, law, 1_000_000, classes=10)


WORKLOADS = (
    million("macro_f1"),
    million("quadratic_kappa", "ordinal"),
    million("balanced_accuracy"),
    million("min_recall"),
    find("W4-macro"),
)


@dataclass(frozen=True)
class Call:
    """One call of `optimize`."""

    workload: str
    settings: str
    dtype: str

    @property
    def rows(self) -> Workload:
        return next(one for one in WORKLOADS if one.key == self.workload)


CALLS = [
    Call(workload.key, settings, dtype)
    for settings, dtype in [("default", "float64"), ("labels, not recalibrated", "float64"), ("default", "float32")]
    for workload in WORKLOADS
]


def measure(folder: Path, call: Call, tries: int) -> dict[str, Any]:
    """Call in this process, and return the bytes of the input, the peak beyond them, and the seconds."""
    workload = call.rows
    proba, y = load(folder, workload.law)
    proba = np.ascontiguousarray(proba, dtype=call.dtype)
    options: dict[str, Any] = {"average": workload.average} if workload.several else {}
    strategy = mw.Strategy(**SETTINGS[call.settings])

    def run(rows: int) -> None:
        mw.optimize(proba[:rows], y[:rows], workload.metric, strategy=strategy, **options)

    run(WARM_UP_ROWS)
    peak = peak_of(lambda: run(len(y)))
    seconds = []
    for _ in range(tries):
        start = time.perf_counter()
        run(len(y))
        seconds.append(time.perf_counter() - start)
    return {"input": proba.nbytes + y.nbytes, "peak": peak, "seconds": min(seconds)}


def in_process(folder: Path, call: Call, tries: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", str(folder), json.dumps(asdict(call)), str(tries)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def row(folder: Path, call: Call, processes: int, tries: int) -> dict[str, Any]:
    found = [in_process(folder, call, tries) for _ in range(processes)]
    peak, size = max(one["peak"] for one in found), found[0]["input"]
    verdict = "yes" if peak <= AIM * size else "**no**"
    return {
        "what": call.rows.title,
        "call": call.settings,
        "numbers": call.dtype,
        "input MB": significant(size / 1e6),
        "peak MB": significant(peak / 1e6),
        "share": f"{peak / size:.2f}",
        f"≤ {AIM:g}": verdict if call.settings == "default" else None,
        "seconds": significant(min(one["seconds"] for one in found)),
    }


def save(folder: Path, scale: float) -> None:
    for workload in {one.law: one for one in WORKLOADS}.values():
        proba, y = draw(workload, "fitted", scale)
        np.save(folder / f"{workload.law}_proba.npy", proba)
        np.save(folder / f"{workload.law}_y.npy", y)


def markdown(rows: list[dict[str, Any]], processes: int, busy: float) -> str:
    machine = facts()
    return f"""# Memory

Made by `python benchmarks/memory.py`. {machine["processor"]}, {machine["cores"]} cores, Python
{machine["Python"]}, NumPy {machine["numpy"]}; metricwise {machine["metricwise"]}. The largest peak
of {processes} processes. The load from other processes was {busy:.1f} before the first call, and slows the calls.

{table(rows, left=3)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows and tries")
    parser.add_argument("--output", type=Path, help="folder; without it only a full run writes, beside this file")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        folder, call, tries = given.measure
        print(json.dumps(measure(Path(folder), Call(**json.loads(call)), int(tries))))
        return
    if sys.platform != "linux":
        raise SystemExit("memory.py: needs Linux, which says how much memory a process held at its peak.")
    scale, processes, tries = (0.1, 1, 1) if given.quick else (1.0, 3, 2)
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        save(Path(name), scale)
        rows = [row(Path(name), call, processes, tries) for call in CALLS]
    output = given.output or (None if given.quick else HERE)
    text = markdown(rows, processes, busy)
    print(text)
    if given.quick:
        print("With a tenth of the rows that are named here.")
    if output is not None:
        write_csv(output / "memory.csv", rows)
        write_text(output / "memory.md", text)


if __name__ == "__main__":
    main()
