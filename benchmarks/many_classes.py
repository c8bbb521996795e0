"""A thousand classes: time, memory and value on new rows of the default call, of argmax and of a fixed recipe.

    python -m benchmarks.many_classes                        writes many_classes.csv and many_classes.md beside it
    python -m benchmarks.many_classes --rows 5000 --classes 100 --seeds 1        a minute's worth, writes nothing
    python -m benchmarks.many_classes --output folder

A simulated problem of the size of a validation set of ImageNet: 50,000 labelled rows of 1,000 classes in float32. Rows
are drawn about the centres of their classes, so that the true class probabilities are known; classes lie in families
of ten that are hard to tell apart, some more than others. The given probabilities are those of an overconfident model
that favours some classes. Values are those of the population: decisions about new rows are counted with their true
probabilities. Times are the best of several calls, in a process of each metric. Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import metricwise as mw

from .machine import facts, peak_of
from .tables import significant, table, write_csv, write_text

HERE = Path(__file__).parent
METRICS = ("balanced_accuracy", "kappa", "macro_f1", "min_recall")
WORLDS = ("balanced", "long-tailed")
FAMILY = 10  # classes that are hard to tell apart
DIMENSIONS = 48
CHUNK = 10_000  # rows that are drawn at once
WARM_UP_ROWS = 4  # per class
RECIPE = mw.Strategy("blended", recalibrate=True)
SEEDS = 3


@dataclass(frozen=True)
class World:
    """Classes as normal distributions about their centres, and a model of them.

    Parameters
    ----------
    prior : ndarray of shape (K,)
    centre : ndarray of shape (K, D)
    slope : float
        By which the model multiplies the true logits.
    bias : ndarray of shape (K,)
        That the model adds to them.
    """

    prior: np.ndarray
    centre: np.ndarray
    slope: float
    bias: np.ndarray

    @classmethod
    def draw(cls, kind: str, n_classes: int, rng: np.random.Generator) -> World:
        prior = np.ones(n_classes) if kind == "balanced" else np.exp(rng.normal(0, 0.8, n_classes))
        family = rng.normal(0, 0.9, (-(-n_classes // FAMILY), DIMENSIONS)).repeat(FAMILY, axis=0)[:n_classes]
        apart = rng.uniform(0.15, 0.55, (n_classes, 1))
        centre = family + apart * rng.normal(0, 1, (n_classes, DIMENSIONS))
        return cls(prior / prior.sum(), centre, 1.7, rng.normal(0, 0.5, n_classes))

    def rows(self, n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return given and true probabilities (N, K), in float32, and labels (N,)."""
        y = rng.choice(len(self.prior), n_rows, p=self.prior)
        x = self.centre[y] + rng.normal(0, 1, (n_rows, DIMENSIONS))
        logits = x @ self.centre.T + (np.log(self.prior) - 0.5 * (self.centre**2).sum(axis=1))
        return softmax(self.slope * logits + self.bias), softmax(logits), y

    def chunks(self, n_rows: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield rows, some at a time."""
        for start in range(0, n_rows, CHUNK):
            yield self.rows(min(CHUNK, n_rows - start), rng)

    def labelled(self, n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return given probabilities and labels of rows that hold every class twice at least, as a data set does."""
        proba, y = np.empty((n_rows, len(self.prior)), dtype=np.float32), np.empty(n_rows, dtype=np.intp)
        start = 0
        for given, _, labels in self.chunks(n_rows, rng):
            proba[start : start + len(labels)], y[start : start + len(labels)] = given, labels
            start += len(labels)
        return proba, y

    def confusion(self, decide: Callable[[np.ndarray], np.ndarray], n_rows: int, seed: int) -> np.ndarray:
        """Return the confusion matrix of decisions about new rows, counted with the true probabilities."""
        out = np.zeros((len(self.prior), len(self.prior)))
        for given, truth, _ in self.chunks(n_rows, np.random.default_rng(seed)):
            decided = decide(given)
            order = np.argsort(decided, kind="stable")
            starts = np.flatnonzero(np.diff(decided[order], prepend=-1))
            out[:, decided[order][starts]] += np.add.reduceat(truth[order], starts, axis=0, dtype=np.float64).T
        return out / out.sum()


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return probabilities in float32."""
    logits -= logits.max(axis=1, keepdims=True)
    out = np.exp(logits)
    return np.asarray(out / out.sum(axis=1, keepdims=True), dtype=np.float32)


def value(metric: str, confusion: np.ndarray) -> float:
    """Return the value of a metric, by its formula."""
    hit, true, predicted = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    if metric == "kappa":
        by_chance = true @ predicted
        return float((hit.sum() - by_chance) / (1 - by_chance))
    if metric == "macro_f1":
        return float(np.mean(2 * hit / (true + predicted)))
    recalls = hit / true
    return float(recalls.mean() if metric == "balanced_accuracy" else recalls.min())


def measure(kind: str, metric: str, n_rows: int, n_classes: int, seed: int, tries: int) -> dict[str, Any]:
    """Return the seconds, the peak memory and the values of one metric on one draw of a world."""
    rng = np.random.default_rng([seed, WORLDS.index(kind)])
    world = World.draw(kind, n_classes, rng)
    proba, y = world.labelled(n_rows, rng)
    classes = np.arange(n_classes)

    def fit(rows: int, strategy: mw.Strategy | None = None) -> Any:
        return mw.optimize(proba[:rows], y[:rows], metric, classes=classes, strategy=strategy)

    fit(min(WARM_UP_ROWS * n_classes, n_rows))
    seconds, fits = [], []

    def run() -> None:
        start = time.perf_counter()
        fits[:] = [fit(n_rows)]
        seconds.append(time.perf_counter() - start)

    peak = peak_of(run)
    for _ in range(tries - 1):
        run()
    solution = fits[0]
    recipe = fit(n_rows, RECIPE)
    decide: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "argmax": lambda given: given.argmax(axis=1),
        "default": solution.rule.predict,
        "recipe": recipe.rule.predict,
    }
    values = {name: value(metric, world.confusion(rule, 2 * n_rows, seed + 1_000)) for name, rule in decide.items()}
    return {
        "world": kind,
        "metric": metric,
        "seed": seed,
        "seconds": min(seconds),
        "peak": peak,
        "input": proba.nbytes + y.nbytes,
        **values,
        "promised": solution.value_on_new_rows.estimate,
        "gain promised": solution.gain.estimate,
        "chosen": "argmax" if solution.outcome.value == "argmax" else "rule",
    }


def in_process(kind: str, metric: str, n_rows: int, n_classes: int, seed: int, tries: int) -> dict[str, Any]:
    """Measure in a process of its own."""
    given = json.dumps([kind, metric, n_rows, n_classes, seed, tries])
    command = [sys.executable, "-m", "benchmarks.many_classes", "--measure", given]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE.parent)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def summarise(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row per world and metric: means over the draws; the best time and the largest peak."""
    for kind, metric in dict.fromkeys((row["world"], row["metric"]) for row in rows):
        cell = [row for row in rows if (row["world"], row["metric"]) == (kind, metric)]
        mean = {name: float(np.mean([row[name] for row in cell])) for name in ("argmax", "default", "recipe")}
        gains = np.array([row["default"] - row["argmax"] for row in cell])
        peaks = [row["peak"] / row["input"] for row in cell if row["peak"] is not None]
        yield {
            "classes": kind,
            "metric": metric,
            "seconds": significant(min(row["seconds"] for row in cell)),
            "peak / input": f"{max(peaks):.2f}" if peaks else None,
            **{name: f"{number:.4f}" for name, number in mean.items()},
            "gain": f"{gains.mean():+.4f}",
            "least gain": f"{gains.min():+.4f}",
            "promised gain": f"{np.mean([row['gain promised'] for row in cell]):+.4f}",
        }


def markdown(rows: list[dict[str, Any]], n_rows: int, n_classes: int, busy: float) -> str:
    """Return the page."""
    machine, draws = facts(), len({row["seed"] for row in rows})
    return f"""# Many classes

Made by `python -m benchmarks.many_classes`: {n_rows:,} rows of {n_classes:,} classes in float32, the mean of {draws}
draws. {machine["processor"]}, {machine["cores"]} cores, Python {machine["Python"]}, NumPy {machine["numpy"]};
metricwise {machine["metricwise"]}. The load from other processes was {busy:.1f} before the first call, and slows the
calls. `recipe` is a single fit, `Strategy("blended", recalibrate=True)`; `promised gain` is what the default call
expects on new rows.

{table(list(summarise(rows)), left=2)}
"""


def main() -> None:
    """Measure all metrics in all worlds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of draws")
    parser.add_argument("--tries", type=int, default=2, help="calls of which the fastest counts")
    parser.add_argument("--metrics", nargs="+", default=METRICS, choices=METRICS)
    parser.add_argument("--worlds", nargs="+", default=WORLDS, choices=WORLDS)
    parser.add_argument("--output", type=Path, help="folder; without it only a full run writes, beside this file")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(*json.loads(given.measure))))
        return
    if sys.platform != "linux":
        raise SystemExit("many_classes.py: needs Linux, which says how much memory a process held at its peak.")
    busy = os.getloadavg()[0]
    rows = [
        in_process(kind, metric, given.rows, given.classes, seed, given.tries)
        for kind in given.worlds
        for metric in given.metrics
        for seed in range(given.seeds)
    ]
    text = markdown(rows, given.rows, given.classes, busy)
    print(text)
    whole = (given.rows, given.classes, given.seeds) == (50_000, 1_000, SEEDS) and rows[-1]["metric"] == METRICS[-1]
    output = given.output or (HERE if whole else None)
    if output is not None:
        write_csv(output / "many_classes.csv", rows)
        write_text(output / "many_classes.md", text)


if __name__ == "__main__":
    main()
