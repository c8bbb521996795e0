"""Stage two: every recipe and peer fitted to the cached probabilities, measured on held-out rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import metricwise as mw
from metricwise.api.problems import open_problem
from metricwise.data.row_spec import RowSpec
from metricwise.goals.spec import GoalSpec
from metricwise.inference.decisions import Decisions
from metricwise.inference.judge import Judge

from . import peers
from .probabilities import Task, read

__all__ = ["METHODS", "RECIPES", "measure", "metrics_of"]

FloatArray = NDArray[np.float64]

RECIPES = {
    "expected": ("expected", False),
    "recal+expected": ("expected", True),
    "labels": ("labels", False),
    "recal+labels": ("labels", True),
    "blended": ("blended", False),
    "recal+blended": ("blended", True),
}
PEERS = ("nelder_mead", "coordinate", "xcolumns")
METHODS = ("argmax", *RECIPES, "auto", *PEERS)

_MULTICLASS = (
    "quadratic_kappa", "macro_f1", "balanced_accuracy", "g_mean", "min_recall", "mcc", "kappa", "micro_f1",
)  # fmt: skip
_BINARY = ("f1", "balanced_accuracy", "g_mean", "min_recall", "mcc", "kappa")


def metrics_of(n_classes: int) -> tuple[str, ...]:
    """The metrics of a set. With two classes quadratic kappa is kappa, and micro-F1 is F1."""
    return _BINARY if n_classes == 2 else _MULTICLASS


def measure(
    task: Task, cache: Path, *, with_peers: bool = True, default_only: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield one row per metric: held-out value and processor seconds of each method, and what the choice promised."""
    found = read(task, cache)
    for metric in metrics_of(found["oof"].shape[1]):
        row: dict[str, Any] = {
            "set": task.set,
            "model": task.model,
            "split": task.split,
            "metric": metric,
            "n_train": len(found["y"]),
            "n_test": len(found["y_test"]),
        }
        cell = _Cell(found, metric)
        yield row | (cell.auto() if default_only else cell.run(with_peers))


class _Cell:
    """One metric on one split of one set under one model."""

    def __init__(self, found: dict[str, NDArray[Any]], metric: str) -> None:
        self.oof, self.y = found["oof"], found["y"]
        self.test, self.y_test = found["test"], found["y_test"]
        self.name, self.metric = metric, mw.metrics.get_metric(metric)
        self.n_classes = self.oof.shape[1]

    def run(self, with_peers: bool) -> dict[str, Any]:
        row: dict[str, Any] = {"argmax": self.value(np.argmax(self.test, axis=1)), "argmax_seconds": 0.0}
        for name, (confusion, recalibrate) in RECIPES.items():
            row |= self.timed(name, lambda c=confusion, r=recalibrate: self.optimize(c, r).rule.predict)
        row |= self.auto()
        if with_peers:
            row |= self.timed("nelder_mead", lambda: peers.nelder_mead(self.oof, self.y, self.metric))
            row |= self.timed("coordinate", lambda: peers.coordinate_ascent(self.oof, self.y, self.metric))
            if peers.xcolumns_reason(self.name) is None:
                row |= self.timed("xcolumns", lambda: peers.xcolumns_frank_wolfe(self.oof, self.y, self.name))
        return row

    def auto(self) -> dict[str, Any]:
        start = time.process_time()
        solution = self.optimize("auto", "auto")
        seconds = time.process_time() - start
        predicted = solution.rule.predict(self.test)
        assert solution.gain is not None
        return {
            "auto": self.value(predicted),
            "auto_seconds": seconds,
            "recipe": solution.rule.metadata.recipe,
            "gain": solution.gain.estimate,
            "gain_low": solution.gain.low,
            "gain_high": solution.gain.high,
            "gain_test_error": self.test_error(predicted),
        }

    def optimize(self, confusion: str, recalibrate: bool | str) -> mw.Solution:
        return mw.optimize(
            self.oof, self.y, self.metric, strategy=mw.Strategy(confusion=confusion, recalibrate=recalibrate)
        )

    def timed(self, name: str, fit: Callable[[], Callable[[FloatArray], Any]]) -> dict[str, Any]:
        start = time.process_time()
        predict = fit()
        seconds = time.process_time() - start
        return {name: self.value(predict(self.test)), f"{name}_seconds": seconds}

    def value(self, predicted: NDArray[Any]) -> float:
        return float(self.metric.value(peers.confusion(self.y_test, np.asarray(predicted), self.n_classes)))

    def test_error(self, predicted: NDArray[Any]) -> float:
        """Standard error of the held-out gain over argmax: rows drawn again, paired."""
        plain = np.argmax(self.test, axis=1)
        if np.array_equal(plain, predicted):
            return 0.0
        problem = open_problem(RowSpec(self.test, self.y_test), GoalSpec(self.metric))[0].sample(len(self.y_test), 0)
        pair = [Decisions.of_codes(np.asarray(codes)[:, None]) for codes in (predicted, plain)]
        return Judge(problem).bootstrap(pair).difference
