"""The UCI experiment as the paper must have run it: its coding, models and algorithm, a hundred splits.

The authors' code is not public. Features as integers in natural order, models near scikit-learn's defaults and Weighted
1/2 as e^(-2 i) from i = 0 are inferred from the printed numbers. `uci` has our own settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from metricwise.metrics import Metric, MicroF1, Ordinal, WeightedExponential

from ..datasets import UCI_LOADERS, paper_coding
from ..protocol import Row, RunSettings, Task, task_rng
from ..reports.paper_numbers import SETS
from ..reports.uci_paper import report
from .uci import random_split, values
from .uci_models import MODELS, plain_probabilities

__all__ = ["UciPaperExperiment"]

METRICS: dict[str, Metric] = {
    "ordinal": Ordinal(),
    "micro_f1": MicroF1(),
    "weighted": WeightedExponential(gamma=2.0, first_index=0),
}

# Other readings of Weighted 1/2, rate and first index, to see which of them the paper's numbers are of.
READINGS = ((0.5, 1), (0.5, 0), (1.0, 0), (1.5, 0), (2.0, 0), (2.5, 0))

# base: argmax of the model of all training rows. half: bisection on the labels of one half with the model of the other;
# half_base: argmax of that model. These three are the paper's. default: ours, on the same features with the same model.
VARIANTS = ("base", "half_base", "half", "default")


class UciPaperExperiment:
    """See the module."""

    name: ClassVar[str] = "uci_paper"
    keys: ClassVar[tuple[str, ...]] = ("set", "split", "model")

    def tasks(self, settings: RunSettings) -> Sequence[Task]:
        repetitions = settings.repetitions or (2 if settings.quick else 100)
        return [(name, split, model) for name in SETS for split in range(repetitions) for model in MODELS]

    def order(self, tasks: Sequence[Task]) -> Sequence[Task]:
        return sorted(tasks, key=lambda task: task[1])  # all sets grow together

    def run(self, task: Task, settings: RunSettings) -> dict[str, float]:
        name, split, model = task
        X, y, n_classes = _load(name, settings)
        train, test = random_split(len(y), task_rng("uci-paper-split", settings, name, split), settings)
        seed = int(task_rng("uci-paper-model", settings, name, split).integers(2**31))
        proba = plain_probabilities(model, X, y, train, test, n_classes, seed)
        readings = {
            f"weighted_{rate}_from_{first}": WeightedExponential(rate, first_index=first) for rate, first in READINGS
        }
        return values(proba, y[train], y[test], METRICS, VARIANTS) | values(
            proba, y[train], y[test], readings, ("base",)
        )

    def report(self, rows: Sequence[Row], settings: RunSettings, folder: Path) -> dict[str, str]:
        return report(rows, READINGS, folder)


@lru_cache(maxsize=8)
def _load(name: str, settings: RunSettings) -> tuple[NDArray[np.float64], NDArray[np.intp], int]:
    table = UCI_LOADERS[name](settings.data, verify=not settings.made_up)
    return *paper_coding(table), len(table.classes)
