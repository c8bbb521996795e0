"""Coverage of 95 % intervals and validity of constraints on synthetic data with a known population.

    python -m benchmarks.intervals                          writes intervals.csv and intervals.md beside it
    python -m benchmarks.intervals "in time"                cells whose name has this text anew, the others as stored
    python -m benchmarks.intervals --draws 20               a quick look, writes nothing

Every cell draws a synthetic problem many times: independent rows, copies of rows, frequency tables, groups, time
series, costs with a long tail, too few labels. `evaluate` gets a threshold; `optimize` is called with its defaults,
with and without a constraint. Every interval is compared with the true value: that of the returned rule in a population
of 200,000 independent rows, computed with their true class probabilities. Calls of less than 0.1 s are drawn 1,000
times, others 300 times.
"""

from __future__ import annotations

import argparse
import csv
import functools
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaincinv

import metricwise as mw

from .interval_worlds import (
    BINARY,
    THREE,
    Population,
    Sample,
    World,
    autoregressive,
    copied,
    frequency_table,
    grouped,
    lognormal_costs,
)
from .machine import cores, facts
from .promise_runs import CONFIDENCE, attempted, in_processes, percent
from .promise_worlds import count, keeps, value
from .tables import significant, table, write_csv, write_text

HERE = Path(__file__).parent
COVERAGE = (0.92, 0.99)  # of a 95 % interval
LEAST_KEPT = 0.93  # of promises, where at least half of the draws were promised
MANY_DRAWS, FEW_DRAWS = 1_000, 300
BATCH = 20  # draws of one process at a time
THRESHOLD = 0.4  # of the rule that `evaluate` gets
COLUMNS = ("cell", "quantity", "draws", "refused", "counted", "hits", "below", "above", "width")

Intervals = dict[str, tuple[float, float, float]]  # of a quantity: low, high, truth


@dataclass(frozen=True)
class Cell:
    """A synthetic problem, a number of rows, a call, and the number of draws."""

    world: World
    n_rows: int
    call: Callable[[Sample, Population], Intervals]
    draws: int = MANY_DRAWS

    def __str__(self) -> str:
        return f"{self.world.name}; {self.n_rows:,} rows; {self.call.__doc__}"


def evaluate_threshold(sample: Sample, population: Population) -> Intervals:
    """evaluate"""
    rule = mw.WeightedRule.from_thresholds(THRESHOLD)
    names = ("f1", "precision", "recall")
    results = mw.evaluate(rule, sample.proba, sample.y, names, **sample.options)
    decided = count(population.truth, rule.predict(population.proba))
    argmax = count(population.truth, (population.proba > 0.5).astype(int))
    intervals = {}
    for name in names:
        truth, baseline = float(value(name, decided)), float(value(name, argmax))
        intervals[name] = ends(results[name].value, truth)
        intervals[f"{name}, difference to argmax"] = ends(results[name].difference, truth - baseline)
    return intervals


def ends(estimate: Any, truth: float) -> tuple[float, float, float]:
    return estimate.low, estimate.high, truth


def optimized(metric: str, subject_to: str | None = None) -> Callable[[Sample, Population], Intervals]:
    """Return the call that maximises a metric, with a constraint or without."""

    def call(sample: Sample, population: Population) -> Intervals:
        solution = mw.optimize(sample.proba, sample.y, metric, subject_to=subject_to, **sample.options)
        C = count(population.truth, solution.rule.predict(population.proba))
        truth, baseline = float(value(metric, C)), float(value(metric, count(population.truth, argmax_of(population))))
        intervals = {}
        if solution.gain is not None and solution.gain.low < solution.gain.high:  # else argmax is kept, and gains 0
            intervals["gain"] = ends(solution.gain, truth - baseline)
        if solution.value_on_new_rows is not None:
            intervals["value"] = ends(solution.value_on_new_rows, truth)
        for promise in solution.constraints:
            if promise.on_new_rows is not None:
                intervals[promise.name] = ends(promise.on_new_rows, float(value(promise.name.split()[0], C)))
        if subject_to is not None:
            promised = solution.constraints[0].confidence == CONFIDENCE
            intervals["promise"] = float(promised), float(promised), float(keeps(subject_to, C))
        return intervals

    call.__doc__ = f"optimize {metric}" + (f", {subject_to}" if subject_to else "")
    return call


def argmax_of(population: Population) -> np.ndarray:
    proba = population.proba
    return (proba > 0.5).astype(int) if proba.ndim == 1 else proba.argmax(axis=1)


def optimize_costs(sample: Sample, population: Population) -> Intervals:
    """optimize cost"""
    solution = mw.optimize(sample.proba, sample.y, "cost", **sample.options)
    assert population.cost is not None
    assert solution.gain is not None
    # (N, decisions): what a decision costs on average over the labels of a row
    expected = np.einsum("ni,nij->nj", population.truth, population.cost)
    decided = solution.rule.predict(population.proba, cost=population.cost)
    rows = np.arange(len(decided))
    return {
        "gain": ends(solution.gain, float(np.mean(expected[rows, argmax_of(population)] - expected[rows, decided])))
    }


F1 = optimized("f1")
PRECISION_FLOOR = optimized("recall", "precision >= 0.8")
HIGH_FLOOR = optimized("recall", "precision >= 0.9")  # that few data sets allow to promise
RECALL_FLOOR = optimized("precision", "recall >= 0.8")
CALLS = (evaluate_threshold, F1, PRECISION_FLOOR, RECALL_FLOOR)


def cells() -> list[Cell]:
    """Return all cells; the number of draws follows from the time of a call, as measured on an idle core."""
    out = [Cell(BINARY, n_rows, call) for n_rows in (1_000, 4_000) for call in CALLS]
    out += [
        Cell(BINARY, 300, evaluate_threshold),
        Cell(BINARY, 300, F1),
        Cell(BINARY, 300, PRECISION_FLOOR, FEW_DRAWS),
        Cell(BINARY, 300, RECALL_FLOOR),
        Cell(BINARY, 300, HIGH_FLOOR, FEW_DRAWS),
        Cell(BINARY, 1_000, HIGH_FLOOR),
        Cell(THREE, 1_000, optimized("macro_f1")),
        Cell(THREE, 1_000, optimized("accuracy", "recall[1] >= 0.65 and recall[2] >= 0.65"), FEW_DRAWS),
    ]
    out += [Cell(copied(3), 3_000, call) for call in CALLS]
    out += [Cell(frequency_table(), n_rows, call) for n_rows in (1_000, 4_000) for call in CALLS]
    out += [Cell(grouped(10), 3_000, call) for call in CALLS]
    out += [Cell(autoregressive(rho), 3_000, call) for rho in (0.8, 0.9) for call in CALLS]
    for world, n_rows in ((autoregressive(0.97), 3_000), (copied(10), 30_000), (autoregressive(0.99), 30_000)):
        out += [Cell(world, n_rows, call) for call in (evaluate_threshold, F1)]
        out += [Cell(world, n_rows, call, FEW_DRAWS) for call in (PRECISION_FLOOR, RECALL_FLOOR)]
    return out + [Cell(lognormal_costs(sigma), n, optimize_costs) for sigma in (1.5, 2) for n in (500, 1_000, 3_000)]


# ---------------------------------------------------------------------------------------------------------------------
# draws


@functools.lru_cache(maxsize=4)
def population_of(number: int) -> Population:
    return cells()[number].world.population(np.random.default_rng(2_026))


def run_batch(task: tuple[int, int, int]) -> tuple[int, list[Intervals | None]]:
    """Return some draws of a cell."""
    number, first, last = task
    cell = cells()[number]
    population = population_of(number)
    results = []
    for draw in range(first, last):
        sample = cell.world.draw(np.random.default_rng([number, draw]), cell.n_rows)
        results.append(attempted(functools.partial(cell.call, sample, population))[0])
    return number, results


def run(numbers: Sequence[int], draws: int | None, jobs: int) -> Iterator[tuple[int, list[Intervals | None]]]:
    """Yield batches of draws as they are computed."""
    tasks = []
    for number in numbers:
        n_draws = min(draws or math.inf, cells()[number].draws)
        tasks += [(number, first, min(first + BATCH, n_draws)) for first in range(0, n_draws, BATCH)]
    return in_processes(run_batch, tasks, jobs)


def summarize(cell: Cell, results: list[Intervals | None]) -> list[dict[str, Any]]:
    """Return one row per quantity of a cell: how many intervals cover the true value, or miss it on each side."""
    by_quantity: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for result in results:
        for quantity, interval in (result or {}).items():
            by_quantity[quantity].append(interval)
    common = {
        "cell": str(cell),
        "draws": len(results),
        "refused": sum(result is None for result in results),
    }
    lines = []
    for quantity, intervals in by_quantity.items():
        low, high, truth = np.array(intervals).T
        if quantity == "promise":  # promised, and kept
            counts = {"counted": int(low.sum()), "hits": int((low * truth).sum())}
        else:
            inside = (low <= truth) & (truth <= high)
            counts = {"counted": len(truth), "hits": int(inside.sum()), "below": int((high < truth).sum())}
            counts |= {"above": int((low > truth).sum()), "width": round(float(np.median(high - low)), 5)}
        line = common | {"quantity": quantity} | counts
        lines.append({column: line.get(column) for column in COLUMNS})
    return lines


# ---------------------------------------------------------------------------------------------------------------------
# tables


def binomial_limits(hits: int, n: int, level: float = 0.99) -> tuple[float, float]:
    """Clopper and Pearson's limits of a proportion."""
    tail = (1 - level) / 2
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits > 0 else 0.0
    return low, float(betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0


def coverage_holds(line: dict[str, Any]) -> bool:
    """Return whether the 99 % limits of a coverage overlap the required range."""
    low, high = binomial_limits(line["hits"], line["counted"])
    return low <= COVERAGE[1] and high >= COVERAGE[0]


def promise_holds(line: dict[str, Any]) -> bool:
    """Return whether constraints are violated in few of all draws, and hold in most guaranteed ones."""
    broken = (line["counted"] - line["hits"]) / line["draws"]
    often = line["counted"] * 2 < line["draws"] or line["hits"] >= LEAST_KEPT * line["counted"]
    return often and broken <= 1 - CONFIDENCE + 2 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / line["draws"])


def coverage_row(line: dict[str, Any]) -> dict[str, Any]:
    low, high = binomial_limits(line["hits"], line["counted"])
    return {
        "world, rows, call": line["cell"],
        "interval of": line["quantity"],
        "draws": line["draws"],
        "counted": line["counted"],
        "covers": percent(line["hits"] / line["counted"]),
        "99 % limits": f"{low:.1%} to {high:.1%}",
        "too low": percent(line["below"] / line["counted"]),
        "too high": percent(line["above"] / line["counted"]),
        "width": significant(line["width"]),
        "holds": "yes" if coverage_holds(line) else "**no**",
    }


def promise_row(line: dict[str, Any]) -> dict[str, Any]:
    return {
        "world, rows, call": line["cell"],
        "draws": line["draws"],
        "refused": percent(line["refused"] / line["draws"]),
        "promised": percent(line["counted"] / line["draws"]),
        "broken, of all draws": percent((line["counted"] - line["hits"]) / line["draws"]),
        "kept, of those promised": percent(line["hits"] / line["counted"]) if line["counted"] else "",
        "holds": "yes" if promise_holds(line) else "**no**",
    }


def brief_rows(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per problem and size: the range of the coverage, and the results of constraints."""
    by_world: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        by_world[", ".join(line["cell"].split("; ")[:2])].append(line)
    rows = []
    for world, members in by_world.items():
        coverages = [line for line in members if line["quantity"] != "promise" and line["counted"]]
        promises = [line for line in members if line["quantity"] == "promise"]
        shares = [line["hits"] / line["counted"] for line in coverages]
        promised = [line for line in promises if line["counted"]]
        rows.append(
            {
                "world": world,
                "intervals cover": f"{min(shares):.1%} to {max(shares):.1%}",
                "of them out of range": f"{sum(not coverage_holds(line) for line in coverages)} of {len(coverages)}",
                "promised": between([line["counted"] / line["draws"] for line in promises]),
                "broken, of all draws": between(
                    [(line["counted"] - line["hits"]) / line["draws"] for line in promises]
                ),
                "kept, of those promised": between([line["hits"] / line["counted"] for line in promised]),
            }
        )
    return rows


def between(shares: Sequence[float]) -> str:
    """Return the range of shares as text; empty if there are none."""
    return f"{min(shares):.1%} to {max(shares):.1%}" if shares else ""


HEAD = """# Intervals and constraints on synthetic data

Made by `python -m benchmarks.intervals`; all counts are in `intervals.csv`. {processor}, {cores} cores,
Python {Python}, NumPy {numpy}; metricwise {metricwise}.
"""


def report(lines: list[dict[str, Any]]) -> str:
    coverages = [line for line in lines if line["quantity"] != "promise" and line["counted"]]
    promises = [line for line in lines if line["quantity"] == "promise"]
    fallen = sum(not coverage_holds(line) for line in coverages), sum(not promise_holds(line) for line in promises)
    text = HEAD.format(**facts())
    text += f"""
<!-- brief -->
{table(brief_rows(lines), left=1)}
<!-- end of brief -->
"""
    if coverages:
        text += f"""
## Intervals

A 95 % interval should cover the true value in {COVERAGE[0]:.0%} to {COVERAGE[1]:.0%} of the draws; a cell fails only if
the 99 % limits of its coverage exclude that range. *Too low*: the whole interval is below the true value. Gains are
counted if a rule was returned; if argmax is kept, the gain is 0. Cells that fail: {fallen[0]} of {len(coverages)}.

{table([coverage_row(line) for line in coverages], left=2)}
"""
    if promises:
        text += f"""
## Promises

A constraint is promised if `optimize` reports it with a confidence of {CONFIDENCE:g}. It should be violated in at most
{1 - CONFIDENCE:.0%} of all draws (plus two standard errors), and hold in at least {LEAST_KEPT:.0%} of the draws in
which it was promised, if these are at least half. Cells that fail: {fallen[1]} of {len(promises)}.

{table([promise_row(line) for line in promises], left=1)}
"""
    return text


# ---------------------------------------------------------------------------------------------------------------------
# the command


def stored(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, numbers as numbers; none without a file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [{key: number_of(key, text) for key, text in line.items()} for line in csv.DictReader(file)]


def number_of(column: str, text: str) -> Any:
    if column in ("cell", "quantity"):
        return text
    if text == "":
        return None
    return float(text) if column == "width" else int(text)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default="", help="only cells whose name has this text")
    parser.add_argument("--draws", type=int, help="at most; nothing is written")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes")
    parser.add_argument("--output", type=Path, default=HERE, help="folder")
    options = parser.parse_args(arguments)
    names = [str(cell) for cell in cells()]
    numbers = [number for number, name in enumerate(names) if options.text in name]
    results: dict[int, list[Intervals | None]] = defaultdict(list)
    start = time.monotonic()
    for number, batch in run(numbers, options.draws, options.jobs):
        if not results[number]:
            print(f"{time.monotonic() - start:6.0f} s  {names[number]}", flush=True)
        results[number] += batch
    lines = [line for number in numbers for line in summarize(cells()[number], results[number])]
    drawn = {names[number] for number in numbers}
    path = options.output / "intervals.csv"
    if options.draws is None:
        lines += [line for line in stored(path) if line["cell"] not in drawn and line["cell"] in names]
        lines.sort(key=lambda line: names.index(line["cell"]))
        write_csv(path, lines)
        write_text(options.output / "intervals.md", report(lines))
    print(report(lines))


if __name__ == "__main__":
    main()
