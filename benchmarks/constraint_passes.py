"""Passes over the rows and time of a call with each kind of constraint, before and after.

    python -m benchmarks.constraint_passes                  writes constraint_passes.csv and .md beside it
    python -m benchmarks.constraint_passes --as before      measures another version, and keeps what is stored of others
    python -m benchmarks.constraint_passes --tables         constraint_passes.md alone, from constraint_passes.csv
    python -m benchmarks.constraint_passes --only "3 class" some cases alone, by a part of their names

Rows are drawn from known class probabilities, labels from these. Every case is a call with default settings but for
what its name says. Times are processor time on one thread, the best of three calls (of one, where it takes over 5 s);
*times free* is the time over that of the same call without constraints and groups. A case that is refused, because no
rule was found, has no value.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import metricwise as mw

from .tables import table, write_csv, write_text

HERE = Path(__file__).parent
COLUMNS = ("version", "case", "rows", "passes", "ms", "free ms", "value", "constraint", "confidence")
SIZE, REPEATS, LONG = 4_000, 3, 5_000.0
RANDOMIZED = mw.Strategy(randomized=True)
HEAD = """# Passes and time of every kind of constraint

Made by `python -m benchmarks.constraint_passes`, which says how. *Constraint*: the value of the (first) constraint on
the given rows; *confidence*: with what it is promised, 0 where labels are too few for any.

Cells that are empty were not measured: before, a call with ten groups took up to a minute and a half.

*Before*: single rules are searched anew for every margin and resample. *After*: thresholds of sensitive groups are
compared by their confidence limits, on counts of one pass.
"""


def grouped(n_groups: int, n: int = SIZE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities, labels and sensitive groups that differ in base rate and signal."""
    rng = np.random.default_rng([n_groups, n])
    if n_groups == 2:
        group = np.minimum(rng.geometric(0.45, n) - 1, 1)
        score = rng.normal(0.9 * group - 1.0, 1.0 + 0.3 * group)
    else:
        group = rng.integers(0, n_groups, n)
        score = rng.normal(0.12 * group - 0.6, 1.0 + 0.05 * group)
    truth = 1 / (1 + np.exp(-1.3 * score))
    return 1 / (1 + np.exp(-1.7 * score - 0.2)), (rng.random(n) < truth).astype(int), group


def of_classes(k: int, n: int = SIZE) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and labels of several classes; the first is the most frequent one."""
    rng = np.random.default_rng([k, n])
    proba = rng.dirichlet([4, *np.linspace(1.0, 0.5, k - 1)], n)
    return proba, np.minimum((proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)


def of_outputs(m: int, n: int = SIZE) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and labels of several binary outputs."""
    rng = np.random.default_rng([m, n, 1])
    score = rng.normal(np.linspace(-1.5, 0.0, m), 1.2, (n, m))
    return 1 / (1 + np.exp(-1.4 * score)), (rng.random((n, m)) < 1 / (1 + np.exp(-score))).astype(int)


Call = Callable[[], mw.Solution]


def cases() -> Iterator[tuple[str, Call, Call]]:
    """Names of cases with the call, and the same one without constraints."""
    for n_groups in (2, 10):
        p, y, group = grouped(n_groups)
        by_group = partial(mw.optimize, p, y, sensitive_features=group)
        for aim, text in (
            ("accuracy", "demographic_parity <= 0.05"),
            ("accuracy", "equal_opportunity <= 0.05"),
            ("accuracy", "equalized_odds <= 0.05"),
            ("accuracy", "equalized_odds <= 0.1"),
            ("accuracy", "predictive_parity <= 0.05"),
            ("f1", "demographic_parity <= 0.05"),
            ("accuracy", "recall >= 0.5 in every group"),
            ("worst_group(accuracy)", "demographic_parity <= 0.1"),
            ("worst_group(accuracy)", "recall >= 0.5"),
        ):
            free = partial(mw.optimize, p, y, "f1" if aim == "f1" else "accuracy")
            yield f"{n_groups} groups: {aim}, {text}", partial(by_group, aim, subject_to=text), free
        aim, text, free = "accuracy", "equalized_odds <= 0.05", partial(mw.optimize, p, y, "accuracy")
        call = partial(by_group, aim, subject_to=text)
        yield f"{n_groups} groups: {aim}, {text}, confidence=None", partial(call, confidence=None), free
        yield f"{n_groups} groups: {aim}, {text}, randomized", partial(call, strategy=RANDOMIZED), free
    yield from cases_of_classes()
    p, y = of_outputs(4)
    for average, text in (("micro", "precision >= 0.6"), ("macro", "precision[1] >= 0.5"), ("micro", "recall >= 0.5")):
        aim = "recall" if "precision" in text else "precision"
        free = partial(mw.optimize, p, y, aim, average=average)
        yield f"4 outputs, {average}: {aim}, {text}", partial(free, subject_to=text), free


def cases_of_classes() -> Iterator[tuple[str, Call, Call]]:
    """Floors among several classes."""
    for k, low, floor, kappa, mean in ((3, 0.3, 0.4, 0.3, 0.4), (10, 0.1, 0.2, 0.15, 0.1)):
        p, y = of_classes(k)
        for aim, text in (
            ("recall[1]", f"precision[1] >= {floor}"),
            ("accuracy", f"recall[1] >= {low}"),
            ("accuracy", f"recall[1] >= {low} and recall[2] >= {low}"),
            ("accuracy", f"min_recall >= {low / 2}"),
            ("macro_f1", f"kappa >= {kappa}"),
            ("accuracy", f"g_mean >= {mean}"),
        ):
            free = partial(mw.optimize, p, y, aim)
            yield f"{k} classes: {aim}, {text}", partial(free, subject_to=text), free
        aim, text, free = "accuracy", f"recall[1] >= {low}", partial(mw.optimize, p, y, "accuracy")
        call = partial(free, subject_to=text)
        yield f"{k} classes: {aim}, {text}, confidence=None", partial(call, confidence=None), free
        yield f"{k} classes: {aim}, {text}, randomized", partial(call, strategy=RANDOMIZED), free


def best_of(call: Call) -> tuple[mw.Solution | None, float]:
    """What a call returns, None where it finds no rule, and the fewest milliseconds of the processor that it took."""
    times: list[float] = []
    solution = None
    while len(times) < REPEATS and (not times or times[-1] < LONG):
        start = time.process_time()
        try:
            solution = call()
        except mw.InvalidParameter:
            solution = None
        times.append(1e3 * (time.process_time() - start))
    return solution, min(times)


def measured(version: str, only: str) -> Iterator[dict[str, Any]]:
    for name, call, free_call in cases():
        if only not in name:
            continue
        _, free = best_of(free_call)
        solution, ms = best_of(call)
        result: tuple[Any, ...] = ("", "", "")
        if solution is not None:
            kept = solution.constraints[0]
            result = round(solution.value, 4), round(kept.value, 4), round(kept.confidence or 0.0, 3)
        passes = "" if solution is None else solution.n_passes
        row = dict(zip(COLUMNS, (version, name, SIZE, passes, round(ms, 1), round(free, 1), *result), strict=True))
        print(row, flush=True)
        yield row


def report(rows: list[dict[str, Any]]) -> str:
    versions = list(dict.fromkeys(row["version"] for row in rows))
    cells = []
    for case in dict.fromkeys(row["case"] for row in rows):
        cell: dict[str, Any] = {"case": case}
        for name in versions:
            columns = ("passes", "ms", "times free", "value", "constraint", "confidence")
            cell |= {f"{column} {name}": "" for column in columns}
            for row in (row for row in rows if (row["case"], row["version"]) == (case, name)):
                times_free = f"{float(row['ms']) / float(row['free ms']):.1f}"
                shown = row | {"ms": f"{float(row['ms']):.0f}", "times free": times_free}
                cell |= {f"{column} {name}": shown[column] for column in columns}
        cells.append(cell)
    return f"{HEAD}\n{table(cells)}\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--as", dest="version", default="after")
    parser.add_argument("--only", default="")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--output", type=Path, default=HERE)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # that labels are too few is part of the table
    stored = options.output / "constraint_passes.csv"
    rows: list[dict[str, Any]] = []
    if stored.exists():
        with stored.open(newline="") as file:
            rows = list(csv.DictReader(file))
    if not options.tables:
        new = [{name: str(value) for name, value in row.items()} for row in measured(options.version, options.only)]
        done = {row["case"] for row in new}
        rows = [row for row in rows if row["version"] != options.version or row["case"] not in done] + new
        order = {name: place for place, (name, _, _) in enumerate(cases())}
        rows.sort(key=lambda row: ("before after".find(row["version"]), order.get(row["case"], -1)))
        write_csv(stored, rows)
    write_text(options.output / "constraint_passes.md", report(rows))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
