"""Ordered grades from one score of a regression: rounding, Nelder-Mead over cut points, and metricwise.

    python -m benchmarks.grades                    writes grades.csv and grades.md beside it
    python -m benchmarks.grades --splits 2         a minute's worth, writes nothing
    python -m benchmarks.grades --only diabetes    sets by a part of their name; writes nothing
    python -m benchmarks.grades --tables           grades.md alone, from grades.csv

A set is split at random into halves, stratified by grade. A regression of the grades gives out-of-fold scores of the
first half (five folds), to which cut points are fitted; it is then fitted to the whole half, and decisions are
evaluated on the other half. Nelder-Mead is the snippet that is pasted everywhere: SciPy's defaults, from 0.5, 1.5, ...,
with a loop over the rows and scikit-learn's metric. A version in NumPy finds the same cut points in less time, and
gives the values.

Times are processor times on one thread: the shortest of several calls, methods in turn, on the first splits; and of
more and more rows, which are drawn from the scores of one set.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import cohen_kappa_score, f1_score
from sklearn.model_selection import KFold, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metricwise as mw

from .generalisation.data import Rows
from .generalisation.statistics import average_ranks
from .machine import cores, facts
from .promise_runs import by, in_processes, mean
from .score_sets import ORDINAL, ordinal_set
from .tables import significant, table, write_csv, write_text

HERE = Path(__file__).parent
SPLITS = 20
TIMED_SPLITS, TIMED_CALLS = 1, 3
SIZES = (300, 1_000, 3_000, 10_000, 30_000)
JITTER = 0.1  # standard deviations that drawn scores are moved by, so that they do not tie
COLUMNS = ("set", "regressor", "split", "rows", "metric", "who", "value", "ms")
OURS, PEER, SNIPPET = "metricwise", "Nelder-Mead", "Nelder-Mead, as pasted"

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Decide = Callable[[FloatArray], NDArray[Any]]

REGRESSORS = {
    "ridge": make_pipeline(StandardScaler(), Ridge()),
    "forest": RandomForestRegressor(50, min_samples_leaf=5, random_state=0),
}


# ---------------------------------------------------------------------------------------------------------------------
# metrics: as they are pasted, and of counts


def ordinal_score(y: IntArray, decided: NDArray[Any], n_grades: int) -> float:
    return float(1 - np.abs(y - decided).mean() / (n_grades - 1))


def pasted_metric(metric: str, n_grades: int) -> Callable[[IntArray, NDArray[Any]], float]:
    """Return a metric of labels and decisions by scikit-learn."""
    metrics = {
        "quadratic_kappa": partial(cohen_kappa_score, weights="quadratic"),
        "linear_kappa": partial(cohen_kappa_score, weights="linear"),
        "ordinal": partial(ordinal_score, n_grades=n_grades),
        "macro_f1": partial(f1_score, average="macro"),
    }
    return metrics[metric]


def weighted_kappa(counts: FloatArray, power: int) -> float:
    grades = np.arange(len(counts))
    weights = np.abs(grades[:, None] - grades) ** power
    chance = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    expected = (weights * chance).sum()
    return float(1 - (weights * counts).sum() / expected) if expected else 0.0


def mean_f1(counts: FloatArray) -> float:
    """Macro-F1 of the grades; 0 for a grade that is neither true nor predicted."""
    both = counts.sum(axis=0) + counts.sum(axis=1)
    return float(np.divide(2 * np.diag(counts), both, out=np.zeros(len(counts)), where=both > 0).mean())


def mean_closeness(counts: FloatArray) -> float:
    grades = np.arange(len(counts))
    return float(1 - (np.abs(grades[:, None] - grades) * counts).sum() / counts.sum() / (len(counts) - 1))


METRICS: dict[str, Callable[[FloatArray], float]] = {
    "quadratic_kappa": partial(weighted_kappa, power=2),
    "linear_kappa": partial(weighted_kappa, power=1),
    "ordinal": mean_closeness,
    "macro_f1": mean_f1,
}


def value(y: IntArray, decided: NDArray[Any], metric: str, n_grades: int) -> float:
    counts = np.bincount(n_grades * y + np.asarray(decided, dtype=np.intp), minlength=n_grades**2)
    return METRICS[metric](counts.reshape(n_grades, n_grades).astype(float))


# ---------------------------------------------------------------------------------------------------------------------
# methods: from scores and grades 0, 1, ... to a function that decides new scores


def nearest_grade(_scores: FloatArray, y: IntArray, _metric: str) -> Decide:
    return lambda new: np.clip(np.rint(new), 0, y.max()).astype(np.intp)


def nelder_mead_as_pasted(scores: FloatArray, y: IntArray, metric: str) -> Decide:
    score = pasted_metric(metric, y.max() + 1)

    def decide(cuts: FloatArray, new: FloatArray) -> FloatArray:
        grades = np.copy(new)
        for i, number in enumerate(new):
            for grade, cut in enumerate(cuts):
                if number < cut:
                    grades[i] = grade
                    break
            else:
                grades[i] = len(cuts)
        return grades

    def loss(cuts: FloatArray) -> float:
        return -score(y, decide(cuts, scores))

    found = minimize(loss, np.arange(y.max()) + 0.5, method="nelder-mead")
    return lambda new: decide(found.x, new)


def nelder_mead(scores: FloatArray, y: IntArray, metric: str) -> Decide:
    """The same search without loops over the rows; the first cut above a score decides, in order or not."""
    n_grades = int(y.max()) + 1

    def decide(cuts: FloatArray, new: FloatArray) -> IntArray:
        return np.searchsorted(np.maximum.accumulate(cuts), new, side="right")

    def loss(cuts: FloatArray) -> float:
        return -value(y, decide(cuts, scores), metric, n_grades)

    found = minimize(loss, np.arange(n_grades - 1) + 0.5, method="nelder-mead")
    return lambda new: decide(found.x, new)


def cut_points(scores: FloatArray, y: IntArray, metric: str, strategy: mw.Strategy | None = None) -> Decide:
    return mw.optimize(scores, y, metric, input="scores", strategy=strategy).rule.predict


METHODS: dict[str, Callable[[FloatArray, IntArray, str], Decide]] = {
    "rounding": nearest_grade,
    PEER: nelder_mead,
    SNIPPET: nelder_mead_as_pasted,
    OURS: cut_points,
    "metricwise, labels": partial(cut_points, strategy=mw.Strategy(confusion="labels", recalibrate=False)),
    "metricwise, expected": partial(cut_points, strategy=mw.Strategy(confusion="expected", recalibrate=False)),
}
VALUED = [who for who in METHODS if who != SNIPPET]  # decides as Nelder-Mead does
RANKED = ["rounding", PEER, OURS]
SIZED_SET = "MovieLens"


# ---------------------------------------------------------------------------------------------------------------------
# one split


def scores_of(regressor: Any, rows: Rows, seed: int) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Return out-of-fold scores and grades of one half, and those of the other half by a model fitted to the first."""
    fit, new = train_test_split(np.arange(len(rows.y)), test_size=0.5, stratify=rows.y, random_state=seed)
    X, y = rows.X[fit], rows.y[fit]
    scores = cross_val_predict(regressor, X, y, cv=KFold(5, shuffle=True, random_state=seed))
    return scores, y, clone(regressor).fit(X, y).predict(rows.X[new]), rows.y[new]


def measure(task: tuple[str, str, int]) -> list[dict[str, Any]]:
    """Return the rows of the CSV file of one set, regressor and split, one for each metric and method."""
    name, regressor, split = task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores, y, new, truth = scores_of(REGRESSORS[regressor], ordinal_set(name), split)
        rows = []
        for metric in METRICS:
            decides, times = fit_methods(scores, y, metric, split < TIMED_SPLITS)
            for who, decide in decides.items():
                reached = round(value(truth, decide(new), metric, int(y.max()) + 1), 6)
                head = {"set": name, "regressor": regressor, "split": split, "rows": len(y), "metric": metric}
                rows.append(head | {"who": who, "value": reached, "ms": times.get(who, "")})
    return rows


def fit_methods(
    scores: FloatArray, y: IntArray, metric: str, timed: bool
) -> tuple[dict[str, Decide], dict[str, float]]:
    """Return what each method decides by; if timed, all methods in turn, and the shortest time of each in ms."""
    if not timed:
        return {who: METHODS[who](scores, y, metric) for who in VALUED}, {}
    decides, times = {}, dict.fromkeys(METHODS, np.inf)
    for _ in range(TIMED_CALLS):
        for who, fit in METHODS.items():
            start = time.process_time()
            decides[who] = fit(scores, y, metric)
            times[who] = min(times[who], 1e3 * (time.process_time() - start))
    return decides, {who: round(ms, 3) for who, ms in times.items()}


def measure_size(task: tuple[str, int]) -> list[dict[str, Any]]:
    """Return the rows of the CSV file of one size: times only."""
    name, n_rows = task
    scores, y, *_ = scores_of(REGRESSORS["ridge"], ordinal_set(name), 0)
    rng = np.random.default_rng(n_rows)
    drawn = rng.integers(0, len(y), n_rows)
    jittered = scores[drawn] + JITTER * scores.std() * rng.normal(size=n_rows)
    head = {"set": name, "regressor": "ridge, drawn", "split": 0, "rows": n_rows, "value": ""}
    return [
        head | {"metric": metric, "who": who, "ms": ms}
        for metric in METRICS
        for who, ms in fit_methods(jittered, y[drawn], metric, True)[1].items()
    ]


# ---------------------------------------------------------------------------------------------------------------------
# what is made of them

Key = tuple[str, str, str]


def values_of(rows: list[dict[str, Any]]) -> dict[Key, dict[str, FloatArray]]:
    """Return the values over splits of each method in each cell of set, regressor and metric."""
    lists: dict[Key, dict[str, list[float]]] = {}
    for row in rows:
        if row["who"] in VALUED and row["value"] != "":
            cell = lists.setdefault((row["set"], row["regressor"], row["metric"]), {})
            cell.setdefault(row["who"], []).append(row["value"])
    return {key: {who: np.array(reached) for who, reached in cell.items()} for key, cell in lists.items()}


def ranks_of(cells: list[dict[str, FloatArray]]) -> dict[str, float]:
    """Return the mean rank over cells of each method by its mean value, among rounding, Nelder-Mead and the default."""
    means = [[cell[who].mean() for who in RANKED] for cell in cells]
    return dict(zip(RANKED, average_ranks(means).tolist(), strict=True))


def wins(cells: list[dict[str, FloatArray]], other: str) -> str:
    """Return the cells in which the default's mean is above another's, and the splits, with ties as halves."""
    apart = [cell[OURS] - cell[other] for cell in cells]
    cell_wins = sum(difference.mean() > 0 for difference in apart)
    split_wins = np.mean((1 + np.sign(np.concatenate(apart))) / 2)
    return f"{cell_wins} of {len(cells)} cells, {split_wins:.0%} of splits"


def times_of(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {who: mean(row["ms"] for row in rows if row["who"] == who and row["ms"] != "") for who in METHODS}


def metric_table(cells: dict[Key, dict[str, FloatArray]]) -> str:
    """Return a table of mean values and mean ranks, by metric and over all."""
    rows = []
    for metric in (*METRICS, "all"):
        chosen = [cell for key, cell in cells.items() if metric in (key[2], "all")]
        ranks = ranks_of(chosen)
        shown = {who: f"{mean(cell[who].mean() for cell in chosen):.4f}" for who in VALUED}
        rows.append({"metric": metric} | shown | {f"rank, {who}": f"{ranks[who]:.2f}" for who in RANKED})
    return table(rows)


def cell_table(cells: dict[Key, dict[str, FloatArray]]) -> str:
    """Return a table of the mean values of each cell, and the default minus Nelder-Mead with its standard error."""
    rows = []
    for (name, regressor, metric), cell in cells.items():
        apart = cell[OURS] - cell[PEER]
        error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.nan
        head = {"set": name, "regressor": regressor, "metric": metric}
        shown = {who: f"{cell[who].mean():.4f}" for who in VALUED}
        rows.append(head | shown | {"metricwise minus Nelder-Mead": f"{apart.mean():+.4f} ± {error:.4f}"})
    return table(rows, left=3)


def time_table(rows: list[dict[str, Any]], key: str) -> str:
    """Return a table of mean times for each value of a column, and the snippet's divided by those of metricwise."""
    return table([{key: name} | shown_times([row for row in rows if row[key] == name]) for name in by(rows, key)])


def shown_times(rows: list[dict[str, Any]]) -> dict[str, Any]:
    times = times_of(rows)
    shown = {f"{who}, ms": significant(times[who]) for who in METHODS if who != "rounding"}
    ratios = {f"snippet / {who}": f"{times[SNIPPET] / times[who]:.1f}" for who in METHODS if who.startswith(OURS)}
    return shown | ratios


def size_section(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    return f"""Rows drawn from the scores of {SIZED_SET} by ridge, with some noise:

{time_table([row for row in rows if row["metric"] != "macro_f1"], "rows")}

Macro-F1:

{time_table([row for row in rows if row["metric"] == "macro_f1"], "rows")}
"""


def report(rows: list[dict[str, Any]], made_with: str) -> str:
    cells = values_of(rows)
    fitted, drawn = ([row for row in rows if (row["value"] == "") == empty] for empty in (False, True))
    ranks = ranks_of(list(cells.values()))
    listed = ", ".join(f"{who} {rank:.2f}" for who, rank in ranks.items())
    beside = "; ".join(f"{other}: {wins(list(cells.values()), other)}" for other in RANKED[:2])
    return f"""# Grades from one score

Made by `python -m benchmarks.grades`; all splits are in `grades.csv`. Real sets: {len(by(fitted, "set"))}; regressors:
{", ".join(by(fitted, "regressor"))}; random halves: {len(by(fitted, "split"))}. {made_with}
Standard errors are those of the mean over splits of the same rows, as if splits were independent.

Mean ranks over {len(cells)} cells of set, regressor and metric: {listed}.
The default of metricwise is above {beside}.

## Values on new rows

{metric_table(cells)}

## Times

Processor time of one fit on one thread, splits of each cell: {TIMED_SPLITS}; the shortest of {TIMED_CALLS} calls.

{time_table(fitted, "metric")}

{time_table(fitted, "set")}

{size_section(drawn)}
## Cells

{cell_table(cells)}
"""


def versions() -> str:
    machine = facts()
    listed = ", ".join(f"{name} {machine[name]}" for name in ("numpy", "scipy", "scikit-learn"))
    return f"{machine['processor']}, Python {machine['Python']}, metricwise {mw.__version__}, {listed}."


def run(names: list[str], splits: int, jobs: int) -> list[dict[str, Any]]:
    """Return the rows of the CSV file, and print each set's progress."""
    for name in names:
        ordinal_set(name)  # a file that is missing is reported before anything runs
    tasks = [(name, regressor, split) for name in names for regressor in REGRESSORS for split in range(splits)]
    rows: list[dict[str, Any]] = []
    for number, (task, found) in enumerate(zip(tasks, in_processes(measure, tasks, jobs), strict=True), start=1):
        rows += found
        if task[2] == splits - 1:
            print(task[0], task[1], f"{number} of {len(tasks)}", sep=", ", flush=True)
    return rows


def run_sizes(jobs: int) -> list[dict[str, Any]]:
    """Return the rows of the CSV file with the times of more and more rows, the slowest first."""
    tasks = [(SIZED_SET, n_rows) for n_rows in sorted(SIZES, reverse=True)]
    rows: list[dict[str, Any]] = []
    for (_, n_rows), found in zip(tasks, in_processes(measure_size, tasks, jobs), strict=True):
        print(f"times of {n_rows} rows", flush=True)
        rows = found + rows
    return rows


def stored(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [row | {key: float(row[key]) if row[key] else "" for key in ("value", "ms")} for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=SPLITS, help="other than the default, nothing is written")
    parser.add_argument("--only", default="", help="sets by a part of their name; nothing is written")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes")
    parser.add_argument("--tables", action="store_true", help="grades.md alone, from grades.csv")
    options = parser.parse_args()
    path = HERE / "grades.csv"
    names = [name for name in ORDINAL if options.only in name]
    rows = stored(path) if options.tables else run(names, options.splits, options.jobs)
    complete = options.splits == SPLITS and not options.only
    if complete and not options.tables:
        rows += run_sizes(options.jobs)
    text = report(rows, versions())
    print(text)
    if options.tables or complete:
        write_csv(path, [{key: row[key] for key in COLUMNS} for row in rows])
        write_text(HERE / "grades.md", text)


if __name__ == "__main__":
    main()
