"""Time of one evaluation, beside scikit-learn's metrics, and what it adds to the training of a booster.

Times are of the processor, with one thread, so that they do not depend on what else runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import metricwise as mw

__all__ = ["measure"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Line = dict[str, Any]

SIZES = (1_000, 10_000, 100_000)
CLASSES = (2, 10)
TRIES = 5
TRAINING_TRIES = 3
N_ROUNDS = 100


@dataclass(frozen=True)
class Stored:
    """A classifier whose rows are the probabilities themselves, so that the time of a model is not counted."""

    n_classes: int

    @property
    def classes_(self) -> IntArray:
        return np.arange(self.n_classes)

    def predict_proba(self, proba: FloatArray) -> FloatArray:
        return proba

    def predict(self, proba: FloatArray) -> IntArray:
        return proba.argmax(axis=1)


def measure(quick: bool = False) -> tuple[list[Line], list[Line]]:
    """Return milliseconds of single evaluations, and seconds of trainings with and without them."""
    sizes = SIZES[:1] if quick else SIZES
    evaluations = [_evaluations(n_rows, n_classes) for n_rows in sizes for n_classes in CLASSES]
    trainings = [_training(n_rows, n_classes) for n_rows in sizes[:2] for n_classes in CLASSES]
    return evaluations, trainings


def _evaluations(n_rows: int, n_classes: int) -> Line:
    from sklearn.metrics import f1_score, log_loss

    proba, y = _draw(n_rows, n_classes)
    metric, average = ("f1", "binary") if n_classes == 2 else ("macro_f1", "macro")
    scorer, model = mw.make_scorer(metric, at="best"), Stored(n_classes)
    callback = mw.eval_metric(metric, "lightgbm")
    scores = np.log(proba)
    calls: dict[str, Callable[[], Any]] = {
        "make_scorer(at='best')": lambda: scorer(model, proba, y),
        "eval_metric": lambda: callback(y, proba[:, 1] if n_classes == 2 else proba),
        "f1_score at argmax": lambda: f1_score(y, scores.argmax(axis=1), average=average),
        "log_loss": lambda: log_loss(y, proba),
    }
    return {"rows": n_rows, "classes": n_classes} | {name: 1e3 * _fastest(call, TRIES) for name, call in calls.items()}


def _training(n_rows: int, n_classes: int) -> Line:
    """LightGBM with a quarter of the rows for validation, evaluated after every round, and never stopped."""
    rng = np.random.default_rng(n_rows + n_classes)
    X = rng.normal(size=(n_rows, 20))
    y = np.argmax(X[:, :n_classes] + rng.gumbel(size=(n_rows, n_classes)), axis=1)
    metric = mw.eval_metric("f1" if n_classes == 2 else "macro_f1", "lightgbm")
    ways: dict[str, dict[str, Any]] = {
        "not evaluated, s": {"metric": "None"},
        "by log loss, s": {"metric": "binary_logloss" if n_classes == 2 else "multi_logloss"},
        "by eval_metric, s": {"metric": "None", "feval": metric},
    }
    line: Line = {"rows": n_rows, "classes": n_classes, "rounds": N_ROUNDS}
    for name, way in ways.items():
        line[name] = _fastest(lambda way=way: _train(X, y, n_classes, **way), TRAINING_TRIES)
    return line | {"added": line["by eval_metric, s"] / line["by log loss, s"] - 1}


def _train(X: FloatArray, y: IntArray, n_classes: int, metric: str, feval: Any = None) -> Any:
    import lightgbm

    n_train = 3 * len(y) // 4
    objective = {"objective": "binary"} if n_classes == 2 else {"objective": "multiclass", "num_class": n_classes}
    params = {**objective, "metric": metric, "num_leaves": 15, "num_threads": 1, "verbose": -1}
    train = lightgbm.Dataset(X[:n_train], y[:n_train])
    validation = lightgbm.Dataset(X[n_train:], y[n_train:], reference=train)
    return lightgbm.train(params, train, N_ROUNDS, valid_sets=[validation], feval=feval)


def _draw(n_rows: int, n_classes: int) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(n_rows + n_classes)
    scores = 1.5 * rng.normal(size=(n_rows, n_classes)) - np.linspace(0, 2, n_classes)
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return proba, np.argmax(np.log(proba) + rng.gumbel(size=proba.shape), axis=1)


def _fastest(call: Callable[[], Any], tries: int) -> float:
    """Processor seconds of the fastest of several calls, after one that is not counted."""
    call()
    return min(_seconds(call) for _ in range(tries))


def _seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start
