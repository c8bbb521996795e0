"""The consistency experiment: regret of the paper's algorithm compared with its bound.

Regret of the paper's algorithm (probabilities from one half of N rows, bisection on the labels of the other half)
against the true Bayes rule, for N from 10^2 to 10^6. The distribution is known, so that regret is exact up to the
sample of x that represents the population.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from metricwise import Strategy, optimize
from metricwise.metrics import Jaccard, Metric, MicroF1, Ordinal, WeightedExponential
from metricwise.theory import regret_bound

from ..protocol import Row, RunSettings, Task, task_rng
from ..reports.consistency import report

__all__ = ["AVERAGES", "ConsistencyExperiment", "METRICS", "SIZES"]

FloatArray = NDArray[np.float64]

N_OUTPUTS, N_CLASSES, N_FEATURES = 2, 4, 5
SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
AVERAGES = ("micro", "macro")
METRICS: dict[str, Metric] = {
    "ordinal": Ordinal(),
    "weighted": WeightedExponential(),
    "micro_f1": MicroF1(),
    "jaccard": Jaccard(index=3),
}


class ConsistencyExperiment:
    """See the module."""

    name: ClassVar[str] = "consistency"
    keys: ClassVar[tuple[str, ...]] = ("N", "repetition")

    def tasks(self, settings: RunSettings) -> Sequence[Task]:
        sizes = SIZES[:5] if settings.quick else SIZES
        repetitions = settings.repetitions or (2 if settings.quick else 20)
        return [(n, repetition) for n in sizes for repetition in range(repetitions)]

    def order(self, tasks: Sequence[Task]) -> Sequence[Task]:
        return sorted(tasks, key=lambda task: task[1])

    def run(self, task: Task, settings: RunSettings) -> dict[str, float]:
        n, repetition = task
        rng = task_rng("consistency", settings, n, repetition)
        X, eta = _population(10_000 if settings.quick else 50_000)
        half = (n + 1) // 2  # an odd row goes to the model, as in the paper
        models = _fit(*_draw(half, rng))
        rows, _, labels = _draw_all(n - half, rng)
        proba, here = _predict(models, rows), _predict(models, X)
        error = np.abs(here - eta).sum(axis=-1).mean(axis=0)
        out: dict[str, float] = {"eta_error": float(error.mean())}
        for name, metric in METRICS.items():
            for average in AVERAGES:
                best = _best(name, average, len(X))
                shared: dict[str, Any] = {"average": average, "classes": [np.arange(N_CLASSES)] * N_OUTPUTS}
                solution = optimize(
                    proba,
                    labels,
                    metric,
                    strategy=Strategy(solver="bisection", confusion="labels", recalibrate=False),
                    **shared,
                )
                key = f"{name}_{average}"
                out[f"{key}_regret"] = best - _value(metric, average, solution.rule.predict(here), eta)
                out[f"{key}_argmax"] = best - _value(metric, average, here.argmax(axis=-1), eta)
                out[f"{key}_bound"] = _bound(metric, average, eta, error, n)
        return out

    def report(self, rows: Sequence[Row], settings: RunSettings, folder: Path) -> dict[str, str]:
        return report(rows, tuple(METRICS), AVERAGES, folder)


def _weights() -> tuple[FloatArray, FloatArray]:
    """Return coefficients (M, K, D) and intercepts (M, K) with unequal classes, so that argmax is not optimal."""
    rng = np.random.default_rng(2019)
    return 0.7 * rng.normal(size=(N_OUTPUTS, N_CLASSES, N_FEATURES)), np.tile([1.0, 0.5, 0.0, -0.5], (N_OUTPUTS, 1))


def _eta(X: FloatArray) -> FloatArray:
    """Return true probabilities (N, M, K)."""
    weights, intercepts = _weights()
    scores = np.einsum("nd,mkd->nmk", X, weights) + intercepts
    eta = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return eta / eta.sum(axis=-1, keepdims=True)


def _draw_all(n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
    X = rng.normal(size=(n, N_FEATURES))
    eta = _eta(X)
    y = (rng.random((n, N_OUTPUTS, 1)) > np.cumsum(eta, axis=-1)).sum(axis=-1)
    return X, eta, np.minimum(y, N_CLASSES - 1)


def _draw(n: int, rng: np.random.Generator) -> tuple[FloatArray, NDArray[np.intp]]:
    X, _, y = _draw_all(n, rng)
    return X, y


@lru_cache(maxsize=2)
def _population(n: int) -> tuple[FloatArray, FloatArray]:
    X = np.random.default_rng(7).normal(size=(n, N_FEATURES))
    return X, _eta(X)


@lru_cache(maxsize=32)
def _best(name: str, average: str, n: int) -> float:
    """Return the value of the Bayes rule."""
    _, eta = _population(n)
    metric = METRICS[name]
    solution = optimize(eta, None, metric, average=average, strategy=Strategy(confusion="expected", recalibrate=False))
    return _value(metric, average, solution.rule.predict(eta), eta)


def _value(metric: Metric, average: str, decisions: NDArray[Any], eta: FloatArray) -> float:
    """Return the expected value of decisions under the true probabilities."""
    chosen = np.eye(N_CLASSES)[decisions]
    C = np.einsum("nmi,nmj->mij", eta, chosen) / len(eta)
    if average == "micro":
        return float(metric.value(C.mean(axis=0)))
    return float(np.mean([metric.value(one) for one in C]))


def _fit(X: FloatArray, y: NDArray[np.intp]) -> list[Any]:
    from sklearn.linear_model import LogisticRegression

    return [LogisticRegression(max_iter=300, tol=1e-5).fit(X, y[:, m]) for m in range(N_OUTPUTS)]


def _predict(models: list[Any], X: FloatArray) -> FloatArray:
    out = np.zeros((len(X), N_OUTPUTS, N_CLASSES))
    for m, model in enumerate(models):
        out[:, m, model.classes_] = model.predict_proba(X)
    return out


def _bound(metric: Metric, average: str, eta: FloatArray, error: FloatArray, n: int) -> float:
    """Return the theorem's bound, of the macro-average with its union over the outputs."""
    priors = eta.mean(axis=0)
    if average == "micro":
        A, B, least = _form(metric, priors.mean(axis=0))
        return regret_bound(A, B, least, n_rows=n, n_outputs=N_OUTPUTS, eta_error=error).total
    A, B, leasts = (np.array(part) for part in zip(*(_form(metric, pi) for pi in priors), strict=True))
    return regret_bound(A, B, leasts, n_rows=n, n_outputs=N_OUTPUTS, eta_error=error, average="macro").total


def _form(metric: Metric, priors: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return A, B and the smallest value of <B, C> over all rules."""
    bound: Any = metric.bind(priors)
    A = np.asarray(bound.A)
    B = np.asarray(bound.B) if hasattr(bound, "B") else np.ones_like(A)
    # Each true class sends its whole share to the column where B is least: no rule goes lower.
    return A, B, min(float(priors @ B.min(axis=1)), float(B.max()))
