"""Latency of small calls: importing the package, one small fit, one predicted row.

    python benchmarks/latency.py                    writes latency.csv and latency.md beside it
    python benchmarks/latency.py --output folder
    python benchmarks/latency.py --quick            fewer tries; writes nothing

Importing is timed in new processes in which NumPy is already loaded. The package loads its parts on first use, so the
import of `optimize` is timed too; ``-X importtime`` gives the time by module. Predicting a row is compared with ``(p @
L).argmin(axis=1)`` in NumPy, without validation and labels.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from machine import facts
from tables import significant, table, write_csv, write_text
from workloads import draw, find

import metricwise as mw

HERE = Path(__file__).parent
CLOCK = "{before}; import time; start = time.perf_counter(); {timed}; print(time.perf_counter() - start)"
ON_TOP = re.compile(r"import time:\s*(\d+) \|\s*(\d+) \|( *)(\S+)")


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a new process with cached bytecode, like that of an installed package."""
    variables = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    variables["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "metricwise-latency-bytecode")
    return subprocess.run([sys.executable, *arguments], env=variables, capture_output=True, text=True, check=True)


def import_seconds(before: str, timed: str, tries: int) -> float:
    """Return the least time that new processes need for a statement after another one."""
    code = CLOCK.format(before=before, timed=timed)
    return min(float(python("-c", code).stdout) for _ in range(tries))


def import_times(tries: int, heaviest: int = 8) -> tuple[float, list[tuple[str, float]]]:
    """Return the seconds that ``-X importtime`` reports for metricwise without NumPy, and the slowest modules."""
    best: list[tuple[str, float]] | None = None
    for _ in range(tries):
        lines = python("-X", "importtime", "-c", "import numpy; from metricwise import optimize").stderr.splitlines()
        entries = [match.groups() for match in map(ON_TOP.match, lines) if match]
        names = [name for _, _, _, name in entries]
        ours = [(name, int(own) / 1e6) for own, _, _, name in entries[names.index("numpy") + 1 :]]
        if best is None or sum(own for _, own in ours) < sum(own for _, own in best):
            best = ours
    assert best is not None
    return sum(own for _, own in best), sorted(best, key=lambda entry: -entry[1])[:heaviest]


def best_seconds(call: Callable[[], Any], tries: int) -> float:
    timer = timeit.Timer(call)
    number, _ = timer.autorange()
    number = max(1, number // 10)
    return min(timer.repeat(tries, number)) / number


def row(what: str, found: float, unit: str, aim: float | None) -> dict[str, Any]:
    factor = {"ms": 1e3, "µs": 1e6}[unit]
    verdict = None if aim is None else f"≤ {aim:g}: {'yes' if factor * found <= aim else '**no**'}"
    return {"what": what, "best": significant(factor * found), "unit": unit, "aim": verdict}


def import_rows(tries: int, total: float) -> list[dict[str, Any]]:
    numpy, package, function = "import numpy", "import metricwise", "from metricwise import optimize"
    return [
        row(numpy, import_seconds("pass", numpy, tries), "ms", None),
        row(f"{package}, on top of numpy", import_seconds(numpy, package, tries), "ms", 20),
        row(f"{function}, on top of numpy", import_seconds(numpy, function, tries), "ms", None),
        row("the same, by -X importtime, which slows it", total, "ms", None),
    ]


def optimize_rows(tries: int) -> list[dict[str, Any]]:
    proba, y = draw(find("W9"), "fitted")
    fixed = {"confusion": "labels", "recalibrate": False}
    calls = {
        "optimize, N=1000, K=4, micro_f1": lambda: mw.optimize(proba, y, "micro_f1", strategy=mw.Strategy(**fixed)),
        "the same, dinkelbach": lambda: mw.optimize(
            proba, y, "micro_f1", strategy=mw.Strategy(solver="dinkelbach", **fixed)
        ),
        "optimize, N=1000, binary f1": lambda: mw.optimize(
            proba[:, 0], (y == 0).astype(np.int32), "f1", strategy=mw.Strategy(**fixed)
        ),
    }
    aims = [0.5, None, None]
    return [
        row(name, best_seconds(call, tries), "ms", aim) for (name, call), aim in zip(calls.items(), aims, strict=True)
    ]


def predict_rows(tries: int) -> list[dict[str, Any]]:
    proba, y = draw(find("W9"), "fitted")
    rows = []
    for name, metric in {"diagonal plus offset": "micro_f1", "full": "quadratic_kappa"}.items():
        rule = mw.optimize(proba, y, metric, strategy=mw.Strategy(confusion="labels", recalibrate=False)).rule
        one, L = proba[:1], np.random.default_rng(0).random((4, 4))
        floor = best_seconds(lambda one=one, L=L: (one @ L).argmin(axis=1), tries)
        ours = best_seconds(lambda one=one, rule=rule: rule.predict(one), tries)
        rows += [
            row(f"predict one row, {name} loss", ours, "µs", None),
            row("over NumPy's floor", ours - floor, "µs", 20),
        ]
    linked = mw.optimize(proba, y, "micro_f1", strategy=mw.Strategy(confusion="expected", recalibrate=True)).rule
    threshold = mw.WeightedRule.from_thresholds(0.3)
    for name, served, given in (
        ("behind a link", linked, proba[:1]),
        ("two classes, one probability", threshold, np.array([0.4])),
    ):
        ours = best_seconds(lambda served=served, given=given: served.predict(given), tries)
        rows += [
            row(f"predict one row, {name}", ours, "µs", None),
            row("over NumPy's floor", ours - floor, "µs", 20),
        ]
    return [row("NumPy's floor, one row", floor, "µs", None), *rows]


def markdown(rows: list[dict[str, Any]], heaviest: list[tuple[str, float]]) -> str:
    machine = facts()
    modules = [{"module": name, "ms": significant(1e3 * own)} for name, own in heaviest]
    return f"""# Latency

Made by `python benchmarks/latency.py`. {machine["processor"]}, Python {machine["Python"]}, NumPy
{machine["numpy"]}; metricwise {machine["metricwise"]}. Best of several.

{table(rows)}

Most of `from metricwise import optimize` goes to

{table(modules)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer tries")
    parser.add_argument("--output", type=Path, help="folder; without it only a full run writes, beside this file")
    given = parser.parse_args()
    tries = 3 if given.quick else 20
    total, heaviest = import_times(tries)
    rows = import_rows(tries, total) + optimize_rows(tries) + predict_rows(tries)
    output = given.output or (None if given.quick else HERE)
    text = markdown(rows, heaviest)
    print(text)
    if output is not None:
        write_csv(output / "latency.csv", rows)
        write_text(output / "latency.md", text)


if __name__ == "__main__":
    main()
