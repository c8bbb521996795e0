"""Constraints on groups compared with fairlearn's ThresholdOptimizer and error-parity.

    python -m benchmarks.fairness                           writes fairness.csv and fairness.md beside it
    python -m benchmarks.fairness --repeats 3               a minute's worth, writes nothing
    python -m benchmarks.fairness --tables                  fairness.md alone, from fairness.csv

`peers`: all libraries get the same probabilities, labels and groups, and return a randomised rule. Its metric and the
largest difference between groups are computed exactly on these rows, from the probability of every decision (fairlearn,
metricwise) or from the reported operating points (error-parity). `new`: draws of a problem with known class
probabilities; a rule is fitted to some rows and evaluated on 40,000 others, with and without `confidence`.

error-parity needs NumPy 1 (it requires cvxpy below 1.4), and has a separate dependency group: run `pip install --group
bench --group bench-error-parity` in a separate environment. Libraries that are not installed are left out.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import metricwise as mw

from .machine import cores, facts, installed
from .promise_runs import attempted, by, clocked, in_processes, mean, median, percent
from .tables import significant, table, write_csv, write_text

HERE = Path(__file__).parent
REPEATS = 100
N_NEW = 40_000
COLUMNS = ("part", "case", "rows", "repetition", "who", "aim", "violation", "promised", "ms", "error")
HEAD = """# Constraints on groups

Made by `python -m benchmarks.fairness`; all repetitions are in `fairness.csv`. {processor}, {cores}
cores, Python {Python}, NumPy {numpy}, fairlearn {fairlearn}, error-parity {parity}; metricwise {metricwise}. Times are
processor times.
"""


@dataclass(frozen=True)
class Rows:
    """Probabilities of class 1, labels and groups of rows; the true probabilities if they are known."""

    p: np.ndarray
    y: np.ndarray
    group: np.ndarray
    truth: np.ndarray | None = None


@dataclass(frozen=True)
class Task:
    """The metric and constraint of all libraries."""

    aim: str
    promise: str
    bound: float

    def __str__(self) -> str:
        return f"{self.aim}, {self.promise} <= {self.bound:g}"


# ---------------------------------------------------------------------------------------------------------------------
# rows


def world(rng: np.random.Generator, n: int, n_groups: int = 2) -> Rows:
    """Groups of different size, base rate and signal; the given probabilities are tempered, like those of models."""
    group = np.minimum(rng.geometric(0.45, n) - 1, n_groups - 1)
    score = rng.normal(0.9 * group - 1.0, 1.0 + 0.3 * group)
    truth = 1 / (1 + np.exp(-1.3 * score))
    return Rows(1 / (1 + np.exp(-1.7 * score - 0.2)), (rng.random(n) < truth).astype(int), group, truth)


def mortgages() -> Rows:
    """Boston's mortgage applications of 1990: out-of-fold probabilities of approval, groups by race."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from .generalisation.data import _r_table

    rows = _r_table("Ecdat/Hdma").dropna()
    y = (rows["deny"] == "no").to_numpy().astype(int)
    group = (rows["black"] == "yes").to_numpy().astype(int)
    X = rows.drop(columns=["deny", "black"])
    X = np.column_stack([(X[c] == "yes") if X[c].dtype.kind not in "if" else X[c] for c in X.columns]).astype(float)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return Rows(cross_val_predict(model, X, y, method="predict_proba")[:, 1], y, group)


PROBLEMS: dict[str, Callable[[], Rows]] = {
    "mortgages": mortgages,
    "2 groups, 2,000 rows": lambda: world(np.random.default_rng(1), 2_000),
    "2 groups, 20,000 rows": lambda: world(np.random.default_rng(2), 20_000),
    "4 groups, 20,000 rows": lambda: world(np.random.default_rng(3), 20_000, 4),
    "2 groups, 200,000 rows": lambda: world(np.random.default_rng(4), 200_000),
}
TASKS = [
    Task(aim, promise, bound)
    for aim in ("accuracy", "balanced_accuracy")
    for promise in ("demographic_parity", "equalized_odds")
    for bound in (0.0, 0.05)
]


# ---------------------------------------------------------------------------------------------------------------------
# who: each returns a function from rows to the probability of deciding 1, and what it needs for that is fitted before


def by_metricwise(rows: Rows, task: Task, **options: Any) -> Callable[[Rows], np.ndarray]:
    fixed = {
        "confidence": None,
        "strategy": mw.Strategy(confusion="labels", recalibrate=False, randomized=True),
    } | options
    text = f"{task.promise} <= {task.bound}"
    rule = mw.optimize(rows.p, rows.y, task.aim, subject_to=text, sensitive_features=rows.group, **fixed).rule
    return lambda new: rule.distribution(new.p, sensitive_features=new.group)[:, 1]


class AsIs:
    """An estimator whose features are the probabilities."""

    classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> AsIs:
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        p = np.asarray(X, dtype=float).reshape(-1)
        return np.stack([1 - p, p], axis=1)


def by_fairlearn(rows: Rows, task: Task, **options: Any) -> Callable[[Rows], np.ndarray]:
    from fairlearn.postprocessing import ThresholdOptimizer
    from sklearn.base import BaseEstimator, ClassifierMixin

    model = type("AsIs", (AsIs, ClassifierMixin, BaseEstimator), {})()
    found = ThresholdOptimizer(
        estimator=model,
        constraints=task.promise,
        objective=f"{task.aim}_score",
        prefit=True,
        predict_method="predict_proba",
        tol=task.bound or None,
        **options,
    )
    found.fit(rows.p[:, None], rows.y, sensitive_features=rows.group)
    return lambda new: found._pmf_predict(new.p[:, None], sensitive_features=new.group)[:, 1]


def by_error_parity(rows: Rows, task: Task, **options: Any) -> Callable[[Rows], np.ndarray]:
    from error_parity import RelaxedThresholdOptimizer

    prior = rows.y.mean()
    costs = (1.0, 1.0) if task.aim == "accuracy" else (1 / (1 - prior), 1 / prior)
    found = RelaxedThresholdOptimizer(
        predictor=lambda X: np.asarray(X)[:, 0],
        constraint=task.promise,
        tolerance=task.bound,
        false_pos_cost=costs[0],
        false_neg_cost=costs[1],
        **options,
    )
    found.fit(X=rows.p[:, None], y=rows.y, group=rows.group)

    def decide(new: Rows) -> np.ndarray:
        if new is rows:  # by its operating points: P(decided 1) of a row is that of its group and label
            points = np.asarray(found.groupwise_roc_points)
            return points[new.group, new.y]
        return np.asarray(found.predict(new.p[:, None], group=new.group), dtype=float)

    return decide


CONTESTANTS: dict[str, Callable[..., Callable[[Rows], np.ndarray]]] = {"metricwise": by_metricwise}
if find_spec("fairlearn") is not None:
    CONTESTANTS["fairlearn"] = by_fairlearn
if find_spec("error_parity") is not None:
    CONTESTANTS["error-parity"] = by_error_parity
    CONTESTANTS["error-parity, all thresholds"] = partial(by_error_parity, max_roc_ticks=None)


# ---------------------------------------------------------------------------------------------------------------------
# judging


def aim_of(name: str, decided: np.ndarray, y: np.ndarray) -> float:
    """Return accuracy or balanced accuracy of probabilities of deciding 1; y may be probabilities too."""
    hits = np.array([np.sum((1 - decided) * (1 - y)), np.sum(decided * y)])
    size = np.array([np.sum(1 - y), np.sum(y)])
    return float(hits.sum() / size.sum() if name == "accuracy" else np.mean(hits / size))


def violation_of(name: str, decided: np.ndarray, y: np.ndarray, group: np.ndarray) -> float:
    """Return the largest difference between two groups."""
    parts = [group == g for g in np.unique(group)]
    if name == "demographic_parity":
        rates = np.array([[decided[own].mean()] for own in parts])
    else:
        rates = np.array([[np.sum(decided[own] * of) / np.sum(of) for of in (1 - y[own], y[own])] for own in parts])
    return float(np.ptp(rates, axis=0).max())


def peers(task: tuple[str, int]) -> list[dict[str, Any]]:
    """Run all libraries on one problem."""
    case, repeats = task
    rows = PROBLEMS[case]()
    out = []
    for asked in TASKS:
        for who, fit in CONTESTANTS.items():
            row = {"part": "peers", "case": f"{case}: {asked}", "rows": len(rows.y), "repetition": 0, "who": who}
            times = [attempted(partial(fit, rows, asked)) for _ in range(1 + min(repeats, 3))]  # the first warms up
            decide, note = times[-1]
            if decide is None:
                out.append(row | note)
                continue
            decided = decide(rows)
            out.append(
                row
                | {
                    "aim": round(aim_of(asked.aim, decided, rows.y), 7),
                    "violation": round(violation_of(asked.promise, decided, rows.y, rows.group), 7),
                    "ms": min(one["ms"] for _, one in times[1:]),
                }
            )
    return out


NEW_TASKS = (
    Task("accuracy", "demographic_parity", 0.1),
    Task("accuracy", "equalized_odds", 0.1),
)
NEW_SIZES = (2_000, 8_000)


def new_rows(task: tuple[int, int, int]) -> list[dict[str, Any]]:
    """Return one draw: whether the constraint holds on new rows."""
    which, n, number = task
    asked = NEW_TASKS[which]
    rng = np.random.default_rng([11, n, number])
    rows, new = world(rng, n), world(rng, N_NEW)
    asks = {
        "metricwise, confidence=0.95": partial(by_metricwise, confidence=0.95),
        "metricwise, confidence=None": by_metricwise,
        **{who: fit for who, fit in CONTESTANTS.items() if who in ("fairlearn", "error-parity")},
    }
    out = []
    for who, fit in asks.items():
        row = {"part": "new", "case": str(asked), "rows": n, "repetition": number, "who": who}
        decide, note = attempted(partial(fit, rows, asked))
        if decide is not None:
            decided = decide(new)
            note |= {
                "aim": round(aim_of(asked.aim, decided, new.truth), 6),
                "violation": round(violation_of(asked.promise, decided, new.truth, new.group), 6),
            }
        out.append(row | note)
    return out


# ---------------------------------------------------------------------------------------------------------------------
# words


def peers_text(rows: list[dict[str, Any]]) -> str:
    cells, behind, slower = [], [], []
    for case in by(rows, "case"):
        own = {row["who"]: row for row in rows if row["case"] == case}
        ours = own["metricwise"]
        cell: dict[str, Any] = {"problem": case, "ours": f"{ours['aim']:.5f}", "violation": f"{ours['violation']:.4f}"}
        cell["ms"] = significant(ours["ms"])
        for who in [one for one in by(rows, "who") if one != "metricwise"]:
            theirs = own.get(who)
            if theirs is None or theirs["aim"] is None:
                cell |= {who: "refused", f"{who}: violation": "", f"{who}: ms": ""}
                continue
            cell |= {
                who: f"{theirs['aim']:.5f}",
                f"{who}: violation": f"{theirs['violation']:.4f}",
                f"{who}: ms": significant(theirs["ms"]),
            }
            fair = theirs["violation"] <= ours["violation"] + 1e-6
            if fair and theirs["aim"] > ours["aim"] + 1e-6:
                behind.append(f"{case} ({who}, by {theirs['aim'] - ours['aim']:.1e})")
            if theirs["ms"] < ours["ms"]:
                slower.append(f"{case} ({who})")
        cells.append(cell)

    def told(what: list[str]) -> str:
        return f"{len(what)} ({'; '.join(what)})" if what else "0"

    return f"""## The same labels

{len(cells)} problems. Another library has a better metric without a larger violation: {told(behind)}. Another
library is faster: {told(slower)}. *Refused*: fairlearn has no tolerance for equalised odds.

{table(cells)}
"""


def new_text(rows: list[dict[str, Any]]) -> str:
    cells = []
    for case, n in sorted({(row["case"], row["rows"]) for row in rows}):
        bound = float(case.rsplit(" ", 1)[1])
        for who in by(rows, "who"):
            own = [row for row in rows if (row["case"], row["rows"], row["who"]) == (case, n, who)]
            known = [row for row in own if row["violation"] is not None]
            if not known:
                continue
            cells.append(
                {
                    "case": case,
                    "rows": f"{n:,}",
                    "who": who,
                    "kept": percent(mean(row["violation"] <= bound for row in known)),
                    "violation, mean": f"{mean(row['violation'] for row in known):.4f}",
                    "95 % of draws below": f"{np.quantile([row['violation'] for row in known], 0.95):.4f}",
                    "aim": f"{mean(row['aim'] for row in known):.4f}",
                    "ms": significant(median(row["ms"] for row in known)),
                }
            )
    return f"""## New rows

{len(by(rows, "repetition"))} draws, evaluated with the true class probabilities of {N_NEW:,} rows. *Kept*: share of
draws in which the largest difference between groups is within the bound on them. `confidence=0.95` should satisfy it in
95 % of the draws; rules that satisfy it exactly on the given rows do so in about half, or
fewer with several differences.

{table(cells, left=1)}
"""


def number_of(column: str, text: str) -> Any:
    if column in ("part", "case", "who", "error"):
        return text
    if text == "":
        return None
    return float(text) if column in ("aim", "violation", "ms") else int(text)


def stored(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        return [{key: number_of(key, text) for key, text in row.items()} for row in csv.DictReader(file)]


def report(rows: list[dict[str, Any]]) -> str:
    known = [{key: row.get(key) for key in COLUMNS} for row in rows]
    own = facts() | {"fairlearn": installed("fairlearn"), "parity": installed("error-parity")}
    parts = {"peers": peers_text, "new": new_text}
    texts = [text([row for row in known if row["part"] == part]) for part, text in parts.items()]
    return "\n".join((HEAD.format(**own), *texts))


def run(repeats: int, jobs: int) -> Iterator[list[dict[str, Any]]]:
    # One after the other: what is timed should not be timed beside itself.
    yield from map(peers, [(case, repeats) for case in PROBLEMS])
    tasks = [(which, n, number) for number in range(repeats) for which in range(len(NEW_TASKS)) for n in NEW_SIZES]
    yield from in_processes(new_rows, tasks, jobs)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=REPEATS, help="draws; with fewer, nothing is written")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes")
    parser.add_argument("--output", type=Path, help="folder; without it only a full run writes, beside this file")
    parser.add_argument("--tables", action="store_true", help="run nothing, make the tables of fairness.csv anew")
    options = parser.parse_args(arguments)
    output = options.output or (HERE if options.repeats >= REPEATS or options.tables else None)
    if options.tables:
        rows = stored(output / "fairness.csv")
    else:
        rows, _ = clocked(lambda: [row for some in run(options.repeats, options.jobs) for row in some])
    text = report(rows)
    print(text)
    if output is not None:
        if not options.tables:
            write_csv(output / "fairness.csv", [{key: row.get(key) for key in COLUMNS} for row in rows])
        write_text(output / "fairness.md", text)


if __name__ == "__main__":
    main()
