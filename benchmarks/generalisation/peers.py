"""Other ways to choose class weights on labels, given a fair start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import metricwise as mw

__all__ = ["coordinate_ascent", "nelder_mead", "weighted_argmax", "xcolumns_frank_wolfe", "xcolumns_reason"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Predict = Callable[[FloatArray], Any]

_TINY = 1e-12


def confusion(y: IntArray, predicted: IntArray, n_classes: int) -> FloatArray:
    counts = np.bincount(y * n_classes + predicted, minlength=n_classes**2)
    return counts.reshape(n_classes, n_classes) / len(y)


def weighted_argmax(weights: FloatArray) -> Predict:
    """The rule that multiplies probabilities by class weights, given as logarithms."""
    return lambda proba: np.argmax(np.log(np.maximum(proba, _TINY)) + weights, axis=1)


def nelder_mead(proba: FloatArray, y: IntArray, metric: mw.metrics.Metric) -> Predict:
    """SciPy's Nelder-Mead over log-weights; the first simplex has edges of 0.5, so that decisions do change."""
    from scipy.optimize import minimize

    n_classes = proba.shape[1]
    logs = np.log(np.maximum(proba, _TINY))

    def loss(free: FloatArray) -> float:
        predicted = np.argmax(logs + np.append(0.0, free), axis=1)
        return -float(metric.value(confusion(y, predicted, n_classes)))

    start = np.zeros(n_classes - 1)
    simplex = np.vstack([start, start + 0.5 * np.eye(n_classes - 1)])
    options = {"initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-5, "maxfev": 60 * n_classes}
    found = minimize(loss, start, method="Nelder-Mead", options=options)
    return weighted_argmax(np.append(0.0, found.x))


def coordinate_ascent(proba: FloatArray, y: IntArray, metric: mw.metrics.Metric, rounds: int = 3) -> Predict:
    """The best weight of one class after the other, exact over all its change points on the labels."""
    n_classes = proba.shape[1]
    logs = np.log(np.maximum(proba, _TINY))
    weights = np.zeros(n_classes)
    best = float(metric.value(confusion(y, np.argmax(logs, axis=1), n_classes)))
    for _ in range(rounds):
        before = best
        for j in range(n_classes):
            weight, value = _best_weight(logs, y, weights, j, metric)
            if value > best:
                weights[j], best = weight, value
        if best <= before:
            break
    return weighted_argmax(weights)


def _best_weight(
    logs: FloatArray, y: IntArray, weights: FloatArray, j: int, metric: mw.metrics.Metric
) -> tuple[float, float]:
    """Return the best log-weight of class j, the others fixed, and its value: rows turn to j as its weight grows."""
    n, n_classes = logs.shape
    scores = logs + weights
    scores[:, j] = -np.inf
    other = np.argmax(scores, axis=1)
    change = scores[np.arange(n), other] - logs[:, j]
    order = np.argsort(change, kind="stable")
    moves = np.zeros((n, n_classes, n_classes))
    moves[np.arange(n), y[order], j] += 1 / n
    moves[np.arange(n), y[order], other[order]] -= 1 / n
    C = np.concatenate([np.zeros((1, n_classes, n_classes)), np.cumsum(moves, axis=0)]) + confusion(y, other, n_classes)
    cuts = np.concatenate([[change[order[0]] - 1], change[order], [change[order[-1]] + 1]])
    apart = cuts[1:] - cuts[:-1] > 1e-9  # rows that tie turn together
    values = np.where(apart, metric.value(np.maximum(C, 0.0)), -np.inf)
    top = int(np.argmax(values))
    return float((cuts[top] + cuts[top + 1]) / 2), float(values[top])


# ---------------------------------------------------------------------------------------------------- xcolumns


def xcolumns_reason(metric: str) -> str | None:
    """Why xcolumns cannot maximise a metric; None where it can."""
    if metric == "quadratic_kappa":
        return "no function of the per-class counts tp, fp, fn, tn"
    if metric == "min_recall":
        return "not differentiable"
    try:
        import xcolumns  # noqa: F401
    except ImportError:
        return "not installed"
    return None


def _per_class_metrics() -> dict[str, Callable[..., Any]]:
    """The metrics as xcolumns takes them: functions of vectors of per-class counts."""
    import autograd.numpy as anp

    eps = 1e-9

    def balanced_accuracy(tp: Any, _fp: Any, fn: Any, _tn: Any) -> Any:
        return anp.mean(tp / (tp + fn + eps))

    def g_mean(tp: Any, _fp: Any, fn: Any, _tn: Any) -> Any:
        return anp.exp(anp.mean(anp.log(tp / (tp + fn + eps) + eps)))

    def macro_f1(tp: Any, fp: Any, fn: Any, _tn: Any) -> Any:
        return anp.mean(2 * tp / (2 * tp + fp + fn + eps))

    def f1(tp: Any, fp: Any, fn: Any, _tn: Any) -> Any:
        return 2 * tp[1] / (2 * tp[1] + fp[1] + fn[1] + eps)

    def micro_f1(tp: Any, fp: Any, fn: Any, _tn: Any) -> Any:
        hits, claimed, there = anp.sum(tp[1:]), anp.sum(tp[1:] + fp[1:]), anp.sum(tp[1:] + fn[1:])
        return 2 * hits / (claimed + there + eps)

    def kappa(tp: Any, fp: Any, fn: Any, _tn: Any) -> Any:
        chance = anp.sum((tp + fp) * (tp + fn))
        return (anp.sum(tp) - chance) / (1 - chance + eps)

    def mcc(tp: Any, fp: Any, fn: Any, _tn: Any) -> Any:
        claimed, there = tp + fp, tp + fn
        spread = (1 - anp.sum(claimed**2)) * (1 - anp.sum(there**2))
        return (anp.sum(tp) - anp.sum(claimed * there)) / anp.sqrt(spread + eps)

    return {f.__name__: f for f in (balanced_accuracy, g_mean, macro_f1, f1, micro_f1, kappa, mcc)}


def xcolumns_frank_wolfe(proba: FloatArray, y: IntArray, metric: str, seed: int = 0) -> Predict:
    """xcolumns' Frank-Wolfe with a budget of one class per row, started from argmax; a randomised classifier."""
    from xcolumns.frank_wolfe import find_classifier_using_fw

    found = find_classifier_using_fw(
        np.eye(proba.shape[1])[y],
        np.ascontiguousarray(proba),
        _per_class_metrics()[metric],
        k=1,
        max_iters=20,
        init_classifier="top",
        alpha_uniform_search_step=0.01,
        seed=seed,
    )
    return lambda new: np.argmax(found.predict(np.ascontiguousarray(new), seed=seed), axis=1)
