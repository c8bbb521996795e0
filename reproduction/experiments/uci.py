"""The UCI experiment: six and two more algorithms, three metrics, two averages, a hundred splits.

Owns what is measured on one split. The models are in `uci_models`, the tables in `uci_report`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from metricwise import optimize
from metricwise.metrics import Metric, get_metric

from ..datasets import UCI_LOADERS, Table
from ..protocol import Row, RunSettings, Task, task_rng
from ..reports.uci import report
from .uci_models import MODELS, SplitProbabilities, split_probabilities

__all__ = ["AVERAGES", "METRICS", "VARIANTS", "UciExperiment"]

METRICS = {"ordinal": "ordinal", "micro_f1": "micro_f1", "weighted": "weighted_exponential"}
AVERAGES = ("micro", "macro")

# base: argmax of the model of all training rows. half: the paper's, bisection on the labels of one half with the model
# of the other; half_base: argmax of that model. cross: our cross-fitting, expected confusion of out-of-fold
# probabilities; link: the same with the probabilities recalibrated first.
VARIANTS = ("base", "half_base", "half", "cross", "link")


class UciExperiment:
    """See the module."""

    name: ClassVar[str] = "uci"
    keys: ClassVar[tuple[str, ...]] = ("set", "split", "model")

    def tasks(self, settings: RunSettings) -> Sequence[Task]:
        repetitions = settings.repetitions or (2 if settings.quick else 100)
        return [(name, split, model) for name in UCI_LOADERS for split in range(repetitions) for model in MODELS]

    def order(self, tasks: Sequence[Task]) -> Sequence[Task]:
        return sorted(tasks, key=lambda task: task[1])  # all sets grow together

    def run(self, task: Task, settings: RunSettings) -> dict[str, float]:
        name, split, model = task
        table, X = _load(name, settings)
        train, test = _split(table, task_rng("uci-split", settings, name, split), settings)
        seed = int(task_rng("uci-model", settings, name, split).integers(2**31))
        proba = split_probabilities(model, X, table.y, train, test, len(table.classes), seed)
        return _values(proba, table.y[train], table.y[test])

    def report(self, rows: Sequence[Row], settings: RunSettings, folder: Path) -> dict[str, str]:
        tables = [_load(name, settings)[0] for name in UCI_LOADERS]
        return report(rows, tables, folder)


@lru_cache(maxsize=8)
def _load(name: str, settings: RunSettings) -> tuple[Table, NDArray[np.float64]]:
    table = UCI_LOADERS[name](settings.data, verify=not settings.made_up)
    return table, table.matrix()


def _split(table: Table, rng: np.random.Generator, settings: RunSettings) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows of an 80/20 split, of a part of the rows for a quick run."""
    order = rng.permutation(table.n_rows)
    if settings.quick:
        order = order[:500]
    n_test = round(0.2 * len(order))
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def _values(proba: SplitProbabilities, y_train: NDArray[np.intp], y_test: NDArray[np.intp]) -> dict[str, float]:
    """Return the value of every metric, average and variant on the test rows."""
    out: dict[str, float] = {}
    for short, name in METRICS.items():
        metric = get_metric(name)
        for average in AVERAGES:
            decisions = _decisions(proba, y_train, metric, average)
            classes = [np.arange(proba.test.shape[-1])] * y_test.shape[1]
            for variant, predicted in decisions.items():
                out[f"{short}_{average}_{variant}"] = round(
                    metric.score(y_test, predicted, average=average, classes=classes, missing=-1), 6
                )
    return out


def _decisions(
    proba: SplitProbabilities, y_train: NDArray[np.intp], metric: Metric, average: str
) -> dict[str, NDArray[Any]]:
    classes = [np.arange(proba.test.shape[-1])] * y_train.shape[1]
    shared: dict[str, Any] = {"average": average, "classes": classes, "missing": -1}
    half = optimize(
        proba.half,
        y_train[proba.half_rows],
        metric,
        solver="bisection",
        confusion="labels",
        recalibrate=False,
        **shared,
    )
    cross, link = (
        optimize(proba.out_of_fold, y_train, metric, confusion="expected", recalibrate=recalibrate, **shared)
        for recalibrate in (False, True)
    )
    return {
        "base": proba.test.argmax(axis=-1),
        "half_base": proba.half_test.argmax(axis=-1),
        "half": half.rule.predict(proba.half_test),
        "cross": cross.rule.predict(proba.test),
        "link": link.rule.predict(proba.test),
    }
