"""Stage two: what each criterion says of every configuration, and what its rule is worth on held-out rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import metricwise as mw

from ..generalisation.peers import confusion
from .configurations import ROUNDS, SETTINGS
from .criteria import best_value, log_loss, value_at_argmax
from .predictions import FOLDS, Task, read

__all__ = ["CRITERIA", "metrics_of", "scores", "stopping", "truths"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Line = dict[str, Any]

CRITERIA = ("log_loss", "argmax", "best")
PATIENCE = 5  # of ROUNDS without improvement, that is 50 rounds of boosting
ORDINAL = (
    *("car", "nursery", "student_grade", "wiki4he", "bundesliga"),
    *("marriage_rating", "health_rating", "diamond_cut", "happiness", "lecture_rating"),
)


def metrics_of(name: str, n_classes: int) -> tuple[str, ...]:
    """The metrics of a set."""
    of_all = ("mcc", "balanced_accuracy", "min_recall")
    if n_classes == 2:
        return ("f1", *of_all)
    return ("macro_f1", *of_all, *(("quadratic_kappa",) if name in ORDINAL else ()))


# --------------------------------------------------------------------------------------------------------- search


def truths(task: Task, cache: Path) -> Iterator[Line]:
    """Yield, for each metric and configuration, log loss, the metric at argmax, and the true value.

    The true value is the held-out one of the rule that `optimize` fits by default to all out-of-fold rows. Both
    criteria are means over the folds, as `cross_val_score` returns them, and higher is better.
    """
    stored = read(task, cache)
    folds = [stored["fold"] == number for number in range(FOLDS)]
    for metric, number, line in _configurations(task, stored):
        oof, y = stored["oof"][number], stored["y"]
        yield line | {
            "n_train": len(y),
            "n_held_out": len(stored["y_held_out"]),
            "n_classes": oof.shape[1],
            "log_loss": float(np.mean([-log_loss(oof[rows], y[rows]) for rows in folds])),
            "argmax": float(np.mean([value_at_argmax(oof[rows], y[rows], metric) for rows in folds])),
            "argmax_held_out": value_at_argmax(stored["held_out"][number], stored["y_held_out"], metric),
            "truth": held_out_value(oof, y, stored["held_out"][number], stored["y_held_out"], metric),
        }


def scores(task: Task, cache: Path) -> Iterator[Line]:
    """Yield, for each metric and configuration, the metric at the best rule: mean over folds, and all rows at once."""
    stored = read(task, cache)
    folds = [stored["fold"] == number for number in range(FOLDS)]
    for metric, number, line in _configurations(task, stored):
        oof, y = stored["oof"][number], stored["y"]
        start = time.process_time()
        of_folds = [best_value(oof[rows], y[rows], metric) for rows in folds]
        seconds = (time.process_time() - start) / FOLDS
        yield line | {"best": float(np.mean(of_folds)), "best_pooled": best_value(oof, y, metric), "seconds": seconds}


def _configurations(task: Task, stored: dict[str, NDArray[Any]]) -> Iterator[tuple[str, int, Line]]:
    n_configurations, _, n_classes = stored["oof"].shape
    for metric in metrics_of(task.set, n_classes):
        for number in range(n_configurations):
            line = {"set": task.set, "model": task.kind, "split": task.split, "metric": metric, "configuration": number}
            yield metric, number, line


def held_out_value(proba: FloatArray, y: IntArray, held_out: FloatArray, y_held_out: IntArray, metric: str) -> float:
    """Fit a rule by default, and return the metric of its decisions about held-out rows."""
    rule = mw.optimize(proba, y, metric).rule
    matrix = confusion(y_held_out, np.asarray(rule.predict(held_out)), proba.shape[1])
    return float(mw.metrics.get_metric(metric).value(matrix))


# ------------------------------------------------------------------------------------------------- early stopping


def stopping(task: Task, cache: Path) -> Iterator[Line]:
    """Yield, for each setting, metric and criterion, the round that is chosen and the held-out value of its rule.

    The rule is fitted to the validation rows at the chosen round.
    """
    stored = read(task, cache)
    y, y_held_out = stored["y"], stored["y_held_out"]
    n_classes = stored["validation"].shape[-1]
    for setting, path, held_out in zip(SETTINGS, stored["validation"], stored["held_out"], strict=True):
        for metric in metrics_of(task.set, n_classes):
            line: Line = {
                "set": task.set,
                "model": task.kind,
                "split": task.split,
                "metric": metric,
                "setting": setting,
            }
            line |= {"n_train": len(y), "n_held_out": len(y_held_out)}
            rounds = {name: stopped_at(path, judge) for name, judge in _judges(y, metric).items()}
            rounds["none"] = len(ROUNDS) - 1
            values = {
                number: held_out_value(path[number], y, held_out[number], y_held_out, metric)
                for number in sorted(set(rounds.values()))
            }
            yield (
                line
                | {f"{name}_round": ROUNDS[number] for name, number in rounds.items()}
                | {name: values[number] for name, number in rounds.items()}
            )


def _judges(y: IntArray, metric: str) -> dict[str, Callable[[FloatArray], float]]:
    return {
        "log_loss": lambda proba: -log_loss(proba, y),
        "argmax": lambda proba: value_at_argmax(proba, y, metric),
        "best": lambda proba: best_value(proba, y, metric),
    }


def stopped_at(path: FloatArray, judge: Callable[[FloatArray], float]) -> int:
    """Return the best of the rounds before `PATIENCE` of them bring nothing better; the first of equals."""
    best, highest = 0, -np.inf
    for number, proba in enumerate(path):
        value = judge(proba)
        if value > highest:
            best, highest = number, value
        elif number - best >= PATIENCE:
            break
    return best
