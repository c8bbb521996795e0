"""The synthetic experiment: gain of the consistent rule by the skew of the data and of the metric.

100,000 rows of 10 Gaussian features; ``eta_k`` proportional to ``exp(-w_k . x)`` with ``w_kd = C1 |k - d|``; the metric
has ``A_ii = exp(-C2 i)``. One logistic regression per C1 and repetition serves all C2, for the rule has a closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from metricwise import Strategy, optimize
from metricwise.metrics import WeightedExponential

from ..protocol import Row, RunSettings, Task, task_rng
from ..reports.synthetic import report

__all__ = ["SyntheticExperiment", "draw", "true_probabilities"]

FloatArray = NDArray[np.float64]

N_FEATURES = N_CLASSES = 10
C1_GRID = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
C2_GRID = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)


class SyntheticExperiment:
    """See the module."""

    name: ClassVar[str] = "synthetic"
    keys: ClassVar[tuple[str, ...]] = ("C1", "repetition")

    def tasks(self, settings: RunSettings) -> Sequence[Task]:
        repetitions = settings.repetitions or (1 if settings.quick else 30)
        return [(c1, repetition) for c1 in C1_GRID for repetition in range(repetitions)]

    def order(self, tasks: Sequence[Task]) -> Sequence[Task]:
        return sorted(tasks, key=lambda task: task[1])

    def run(self, task: Task, settings: RunSettings) -> dict[str, float]:
        c1, repetition = task
        rng = task_rng("synthetic", settings, c1, repetition)
        X, eta, y = draw(c1, 10_000 if settings.quick else 100_000, rng)
        n_train = len(y) * 4 // 5
        proba = _fit(X[:n_train], y[:n_train], X[n_train:])
        return _values(proba, eta[n_train:], y[n_train:])

    def report(self, rows: Sequence[Row], settings: RunSettings, folder: Path) -> dict[str, str]:
        return report(rows, C1_GRID, C2_GRID, folder)


def true_probabilities(X: FloatArray, c1: float) -> FloatArray:
    """Return eta of shape (N, 10)."""
    weights = c1 * np.abs(np.subtract.outer(np.arange(N_CLASSES), np.arange(N_FEATURES)))
    scores = -X @ weights.T
    eta = np.exp(scores - scores.max(axis=1, keepdims=True))
    return eta / eta.sum(axis=1, keepdims=True)


def draw(c1: float, n_rows: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
    """Return features, true probabilities and labels."""
    X = rng.normal(size=(n_rows, N_FEATURES))
    eta = true_probabilities(X, c1)
    y = (rng.random((n_rows, 1)) > np.cumsum(eta, axis=1)).sum(axis=1)
    return X, eta, np.minimum(y, N_CLASSES - 1)


def _fit(X: FloatArray, y: NDArray[np.intp], target: FloatArray) -> FloatArray:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1e4, tol=1e-3, max_iter=200).fit(X, y)
    out = np.zeros((len(target), N_CLASSES))
    out[:, model.classes_] = model.predict_proba(target)
    return out


def _values(proba: FloatArray, eta: FloatArray, y: NDArray[np.intp]) -> dict[str, float]:
    """Return, for each C2, the metric of both classifiers and of both true rules, and how often decisions differ."""
    plain, best_plain = proba.argmax(axis=1), eta.argmax(axis=1)
    out: dict[str, float] = {}
    for c2 in C2_GRID:
        metric = WeightedExponential(gamma=c2)
        shared: dict[str, Any] = {"strategy": Strategy(confusion="expected", recalibrate=False)}
        ours = optimize(proba, None, metric, **shared).rule.predict(proba)
        best = optimize(eta, None, metric, **shared).rule.predict(eta)
        weight = np.exp(-c2 * np.arange(1, N_CLASSES + 1))
        for name, decisions in (("base", plain), ("ours", ours)):
            out[f"{name}_{c2}"] = float(np.mean(weight[y] * (decisions == y)))
        for name, decisions in (("bayes_base", best_plain), ("bayes", best)):
            out[f"{name}_{c2}"] = float(np.mean(weight[decisions] * eta[np.arange(len(eta)), decisions]))
        out[f"differ_{c2}"] = float(np.mean(plain != ours))
    return out
