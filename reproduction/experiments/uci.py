"""The UCI experiment with our settings: eight algorithms, three metrics, two averages, a hundred splits.

Defines what is measured on one split. The models are in `uci_models`, the tables in `reports.uci`; the paper's settings
are in `uci_paper`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from metricwise import Strategy, optimize
from metricwise.metrics import Metric, MicroF1, Ordinal, WeightedExponential

from ..datasets import UCI_LOADERS, Table
from ..protocol import Row, RunSettings, Task, task_rng
from ..reports.uci import report
from .uci_models import MODELS, SplitProbabilities, split_probabilities

__all__ = ["AVERAGES", "METRICS", "UciExperiment", "random_split", "values"]

METRICS: dict[str, Metric] = {"ordinal": Ordinal(), "micro_f1": MicroF1(), "weighted": WeightedExponential()}
AVERAGES = ("micro", "macro")

# base: argmax of the model of all training rows. half: the paper's, bisection on the labels of one half with the model
# of the other; half_base: argmax of that model. default: optimize without options, on out-of-fold probabilities.
# cross and link: one recipe of it, expected confusion of these probabilities, as they are and recalibrated.
VARIANTS = ("base", "half_base", "half", "default", "cross", "link")


class UciExperiment:
    """See the module."""

    name: ClassVar[str] = "uci"
    keys: ClassVar[tuple[str, ...]] = ("set", "split", "model")

    def tasks(self, settings: RunSettings) -> Sequence[Task]:
        repetitions = settings.repetitions or (1 if settings.quick else 100)
        return [(name, split, model) for name in UCI_LOADERS for split in range(repetitions) for model in MODELS]

    def order(self, tasks: Sequence[Task]) -> Sequence[Task]:
        return sorted(tasks, key=lambda task: task[1])  # all sets grow together

    def run(self, task: Task, settings: RunSettings) -> dict[str, float]:
        name, split, model = task
        table, X = _load(name, settings)
        train, test = random_split(table.n_rows, task_rng("uci-split", settings, name, split), settings)
        seed = int(task_rng("uci-model", settings, name, split).integers(2**31))
        proba = split_probabilities(model, X, table.y, train, test, len(table.classes), seed)
        return values(proba, table.y[train], table.y[test], METRICS, VARIANTS)

    def report(self, rows: Sequence[Row], settings: RunSettings, folder: Path) -> dict[str, str]:
        tables = [_load(name, settings)[0] for name in UCI_LOADERS]
        return report(rows, tables, folder)


@lru_cache(maxsize=8)
def _load(name: str, settings: RunSettings) -> tuple[Table, NDArray[np.float64]]:
    table = UCI_LOADERS[name](settings.data, verify=not settings.made_up)
    return table, table.matrix()


def random_split(
    n_rows: int, rng: np.random.Generator, settings: RunSettings
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of an 80/20 split, of a part of the rows for a quick run.

    In random order: nearest neighbours break ties by it, and the files are sorted by their attributes.
    """
    order = rng.permutation(n_rows)
    if settings.quick:
        order = order[:500]
    n_test = round(0.2 * len(order))
    return order[n_test:], order[:n_test]


def values(
    proba: SplitProbabilities,
    y_train: NDArray[np.intp],
    y_test: NDArray[np.intp],
    metrics: Mapping[str, Metric],
    variants: Sequence[str],
) -> dict[str, float]:
    """Return the value of every metric, average and variant on the test rows, by column of the results."""
    out: dict[str, float] = {}
    classes = [np.arange(proba.test.shape[-1])] * y_test.shape[1]
    shared: dict[str, Any] = {"classes": classes}
    y_train, y_test = (np.ma.masked_equal(labels, -1) for labels in (y_train, y_test))
    for short, metric in metrics.items():
        for average in AVERAGES:
            for variant in variants:
                predicted = _decisions(variant, proba, y_train, metric, {**shared, "average": average})
                value = metric.score(y_test, predicted, average=average, **shared)
                out[f"{short}_{average}_{variant}"] = round(value, 6)
    return out


def _decisions(
    variant: str, proba: SplitProbabilities, y_train: NDArray[np.intp], metric: Metric, shared: dict[str, Any]
) -> NDArray[Any]:
    if variant == "base":
        return proba.test.argmax(axis=-1)
    if variant == "half_base":
        return proba.half_test.argmax(axis=-1)
    if variant == "half":
        algorithm: dict[str, Any] = {"strategy": Strategy(solver="bisection", confusion="labels", recalibrate=False)}
        rule = optimize(proba.half, y_train[proba.half_rows], metric, **algorithm, **shared).rule
        return rule.predict(proba.half_test)
    recipes: dict[str, dict[str, Any]] = {
        "default": {},
        "cross": {"strategy": Strategy(confusion="expected", recalibrate=False)},
        "link": {"strategy": Strategy(confusion="expected", recalibrate=True)},
    }
    return optimize(proba.out_of_fold, y_train, metric, **recipes[variant], **shared).rule.predict(proba.test)
