"""The metrics: how each kind of set is judged, and values of confusion matrices by formulas of their own.

A confusion is (K, K), shares of all rows, true classes in rows. Values do not come from metricwise, so that what judges
is independent of what is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import metricwise as mw

from .cases import Case

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

BY_KIND = {
    "binary": ("f1", "kappa", "mcc", "cost"),
    "multiclass": ("macro_f1", "kappa", "mcc", "cost"),
    "ordinal": ("macro_f1", "quadratic_kappa", "kappa", "cost"),
}
OF_RECALLS = ("balanced_accuracy", "g_mean", "min_recall")  # do not change with class shares
FREQUENT_MISS = 0.25  # cost of missing the most frequent class, where that of the rarest is 1
HIGHER_GRADE = 0.5  # cost of a grade too high, where a grade too low costs 1; of the whole scale


def count(y: IntArray, decided: IntArray, weight: FloatArray | None, n_classes: int) -> FloatArray:
    """Return the confusion, in shares of the weight."""
    counts = np.bincount(n_classes * y + decided, weight, minlength=n_classes**2).astype(float)
    return (counts / counts.sum()).reshape(n_classes, n_classes)


def ratio(numerator: Any, denominator: Any) -> Any:
    """Return quotients, and 0 for 0/0."""
    denominator = np.asarray(denominator, dtype=float)
    return np.divide(numerator, denominator, out=np.zeros_like(denominator), where=denominator > 0)


def f1_by_class(C: FloatArray) -> FloatArray:
    return np.asarray(ratio(2 * np.diag(C), C.sum(axis=0) + C.sum(axis=1)))


def f1(C: FloatArray) -> float:
    return float(f1_by_class(C)[1])


def macro_f1(C: FloatArray) -> float:
    return float(f1_by_class(C).mean())


def accuracy(C: FloatArray) -> float:
    return float(np.trace(C))


def weighted_kappa(C: FloatArray, power: int | None) -> float:
    """Return kappa with weights |i - j| ** power, or with all errors alike."""
    distance = np.abs(np.subtract.outer(np.arange(len(C)), np.arange(len(C))))
    weight = (distance > 0).astype(float) if power is None else distance.astype(float) ** power
    by_chance = (weight * np.outer(C.sum(axis=1), C.sum(axis=0))).sum()
    return float(1 - (weight * C).sum() / by_chance) if by_chance > 0 else 0.0


def kappa(C: FloatArray) -> float:
    return weighted_kappa(C, None)


def quadratic_kappa(C: FloatArray) -> float:
    return weighted_kappa(C, 2)


def mcc(C: FloatArray) -> float:
    true, predicted = C.sum(axis=1), C.sum(axis=0)
    spread = np.sqrt((1 - true @ true) * (1 - predicted @ predicted))
    return float((np.trace(C) - true @ predicted) / spread) if spread > 0 else 0.0


def recalls(C: FloatArray) -> FloatArray:
    return np.asarray(ratio(np.diag(C), C.sum(axis=1)))


def balanced_accuracy(C: FloatArray) -> float:
    return float(recalls(C).mean())


def g_mean(C: FloatArray) -> float:
    return float(np.prod(recalls(C)) ** (1 / len(C)))


def min_recall(C: FloatArray) -> float:
    return float(recalls(C).min())


FORMULAS: dict[str, Callable[[FloatArray], float]] = {
    formula.__name__: formula
    for formula in (f1, macro_f1, accuracy, kappa, quadratic_kappa, mcc, balanced_accuracy, g_mean, min_recall)
}


def cost_table(case: Case) -> FloatArray:
    """Return what decisions cost, at most 1.

    Classes without an order: missing a class costs from 1 (the rarest) to 0.25 (the most frequent), evenly spaced by
    rank. Ordered ones: grades too low cost their number and grades too high half of it, in units of the whole scale.
    """
    K = case.n_classes
    if case.kind == "ordinal":
        distance = np.subtract.outer(np.arange(K), np.arange(K)) / (K - 1)
        return np.where(distance > 0, distance, -HIGHER_GRADE * distance)
    rank = np.argsort(np.argsort(case.shares))
    return np.outer(np.linspace(1.0, FREQUENT_MISS, K)[rank], np.ones(K)) * (1 - np.eye(K))


def metric_of(name: str, case: Case) -> Any:
    """Return the metric as `metricwise.optimize` takes it."""
    return mw.metrics.Cost(cost_table(case)) if name == "cost" else name


def value_of(name: str, C: FloatArray, case: Case) -> float:
    return -float((cost_table(case) * C).sum()) if name == "cost" else FORMULAS[name](C)
