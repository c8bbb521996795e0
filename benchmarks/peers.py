"""The other libraries, each used as in its documentation.

Defines which library runs on which workload. Libraries are imported where they are used, so that a process loads only
what it measures.

- SciPy: bounded search for a threshold; Nelder-Mead for class weights, offsets or cut points. Their objective is NumPy
  at its best, in blocks that stay in the cache, not scikit-learn's metrics, which would take many times as long.
  SciPy's own first simplex has steps of 0.00025 around zero and never moves: ours has steps that change decisions.
- scikit-learn: TunedThresholdClassifierCV over its grid of 100, and the best point of precision_recall_curve.
- xcolumns: Frank-Wolfe, with its defaults and, to be faster, from its "top" start with steps of 0.01 in the line search
  (its ternary search, which would be faster still, keeps the wrong third in 0.0.2 and finds a minimum).
  Multiclass is its budget of one label per row. Its block coordinate ascent visits rows one by one in Python (at
  N=1e6 more than a minute for each sweep) and predicts given rows without leaving a rule: it is left out.
- optimal-classification-cutoffs: sort and scan (exact), and coordinate ascent for macro-F1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from contestants import Contestant, Decisions
from workloads import METRICS, Workload

# ---------------------------------------------------------------------------------------------------------------------
# thresholds of one probability


def above(threshold: float, proba: np.ndarray) -> Decisions:
    return [(1.0, (proba > threshold).astype(np.int8))]


def at_least(threshold: float, proba: np.ndarray) -> Decisions:
    return [(1.0, (proba >= threshold).astype(np.int8))]


def as_bool(_: Workload, y: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(y, dtype=bool)


def as_int(_: Workload, y: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(y, dtype=np.int64)


def bounded_f1(proba: np.ndarray, right: np.ndarray, true: int, low: float, high: float) -> tuple[float, float]:
    """Return (-F1, threshold) of a search; `right` says for each row whether predicting it positive is right."""
    from scipy.optimize import minimize_scalar

    def objective(threshold: float) -> float:
        positive = proba > threshold
        return -2 * np.count_nonzero(positive & right) / (np.count_nonzero(positive) + true)

    found = minimize_scalar(objective, bounds=(low, high), method="bounded")
    return found.fun, found.x


def scipy_bounded(_: Workload, proba: np.ndarray, y: np.ndarray) -> float:
    return bounded_f1(np.ascontiguousarray(proba), y, np.count_nonzero(y), 0.0, 1.0)[1]


def scipy_bounded_thrice(_: Workload, proba: np.ndarray, y: np.ndarray) -> float:
    """Search [0, 1], then shrinking neighbourhoods of the best, in case of a local maximum."""
    proba, true = np.ascontiguousarray(proba), np.count_nonzero(y)
    best = bounded_f1(proba, y, true, 0.0, 1.0)
    for width in (0.1, 0.03):
        best = min(best, bounded_f1(proba, y, true, best[1] - width, best[1] + width))
    return best[1]


def sklearn_curve(_: Workload, proba: np.ndarray, y: np.ndarray) -> float:
    from sklearn.metrics import precision_recall_curve

    precision, recall, thresholds = precision_recall_curve(y, np.ascontiguousarray(proba))
    total = precision + recall
    f1 = np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)
    return float(thresholds[f1[:-1].argmax()])


def sklearn_tuned(_: Workload, proba: np.ndarray, y: np.ndarray) -> float:
    from sklearn.model_selection import TunedThresholdClassifierCV
    from sklearn_known import Known

    tuned = TunedThresholdClassifierCV(Known(), scoring="f1", cv="prefit", refit=False)
    return float(tuned.fit(proba[:, None], y).best_threshold_)


def cutoffs_scan(_: Workload, proba: np.ndarray, y: np.ndarray) -> float:
    from optimal_cutoffs import get_optimal_threshold

    found = get_optimal_threshold(y, np.ascontiguousarray(proba), metric="f1", method="sort_scan")
    return float(found.thresholds[0])


def threshold_peers(workload: Workload) -> list[Contestant]:
    peers = [
        Contestant("SciPy bounded", scipy_bounded, above, as_bool),
        Contestant("SciPy bounded, three times", scipy_bounded_thrice, above, as_bool),
        Contestant("scikit-learn precision_recall_curve", sklearn_curve, at_least),
        Contestant("optimal-cutoffs sort_scan", cutoffs_scan, above, as_int),
    ]
    if workload.key == "W1":
        peers.append(Contestant("scikit-learn TunedThresholdClassifierCV", sklearn_tuned, at_least))
    return peers


# ---------------------------------------------------------------------------------------------------------------------
# Nelder-Mead over class weights, class offsets, or cut points between grades


BLOCK = 1 << 14  # rows of ten classes that stay in the cache


def decide_columns(columns: np.ndarray, weights: Any, offsets: Any) -> tuple[np.ndarray, np.ndarray]:
    """Argmax of ``weights * p + offsets`` over (K, N) columns, twice as fast as NumPy's argmax; also the best score."""
    n = columns.shape[1]
    codes, best = np.zeros(n, dtype=np.int8), np.empty(n)
    for start in range(0, n, BLOCK):
        stop = start + BLOCK
        scores = columns[:, start:stop] * weights[:, None] + offsets[:, None]
        top = scores.max(axis=0, out=best[start:stop])
        for j in range(len(columns) - 1, -1, -1):
            np.putmask(codes[start:stop], scores[j] == top, j)
    return codes, best


def cells_of(workload: Workload, y: np.ndarray) -> np.ndarray:
    """First cell of the confusion matrix's row for each label; probabilities stay as they are."""
    return y if y.dtype.kind == "f" else np.ascontiguousarray(y, dtype=np.int64) * workload.classes


def nelder_mead(objective: Callable[[np.ndarray], float], start: np.ndarray, step: float) -> np.ndarray:
    from scipy.optimize import minimize

    simplex = np.vstack([start, start + step * np.eye(len(start))])
    options = {"initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-5, "adaptive": len(start) > 5}
    return minimize(objective, start, method="Nelder-Mead", options=options).x


def spread(free: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Weights and offsets of all classes from the free numbers; the first class is the fixed one."""
    full = np.concatenate([[0.0], free])
    return (np.exp(full), np.zeros(len(full))) if kind == "weights" else (np.ones(len(full)), full)


def nelder_mead_classes(kind: str) -> Callable[[Workload, np.ndarray, np.ndarray], np.ndarray]:
    """Search class weights (from the inverse priors for recalls, from 1 else) or offsets (from 0)."""

    def fit(workload: Workload, proba: np.ndarray, known: np.ndarray) -> np.ndarray:
        columns = np.ascontiguousarray(proba.T)
        K, metric = len(columns), METRICS[workload.metric]
        priors = columns.mean(axis=1)

        def objective(free: np.ndarray) -> float:
            weights, offsets = spread(free, kind)
            codes, best = decide_columns(columns, weights, offsets)
            if known.dtype.kind == "f":  # only for min_recall, over weights: score / weight is the probability
                hits = np.bincount(codes, weights=best, minlength=K) / weights
                return -float((hits / len(codes) / priors).min())
            return -float(metric(np.bincount(known + codes, minlength=K * K).reshape(K, K) / len(codes)))

        balanced = kind == "weights" and workload.metric in ("g_mean", "min_recall")
        start = np.log(priors[0] / priors[1:]) if balanced else np.zeros(K - 1)
        return nelder_mead(objective, start, 0.5 if kind == "weights" else 0.1)

    return fit


def decide_classes(kind: str) -> Callable[[np.ndarray, np.ndarray], Decisions]:
    return lambda free, proba: [(1.0, decide_columns(np.ascontiguousarray(proba.T), *spread(free, kind))[0])]


def expected_grade(proba: np.ndarray) -> np.ndarray:
    return proba @ np.arange(proba.shape[1], dtype=float)


def cut(grade: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    codes = np.zeros(len(grade), dtype=np.int8)
    for one in cuts:
        codes += grade > one
    return codes


def nelder_mead_rounding(workload: Workload, proba: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Cut points of the expected grade, from halves: what is usual for quadratic kappa."""
    grade, K = expected_grade(proba), workload.classes

    def objective(cuts: np.ndarray) -> float:
        codes = cut(grade, cuts)
        return -float(METRICS[workload.metric](np.bincount(known + codes, minlength=K * K).reshape(K, K)))

    return nelder_mead(objective, np.arange(K - 1) + 0.5, 0.25)


def nelder_mead_peers(*kinds: str) -> list[Contestant]:
    return [
        Contestant(f"SciPy Nelder-Mead, {kind}", nelder_mead_classes(kind), decide_classes(kind), cells_of)
        for kind in kinds
    ]


def rounding_peer() -> Contestant:
    decide = lambda cuts, proba: [(1.0, cut(expected_grade(proba), cuts))]  # noqa: E731
    return Contestant("SciPy Nelder-Mead, rounding", nelder_mead_rounding, decide, cells_of)


# ---------------------------------------------------------------------------------------------------------------------
# xcolumns


def one_hot(workload: Workload, y: np.ndarray) -> np.ndarray:
    """Return the labels for xcolumns: float64, one column each; probabilities for expected confusion."""
    if y.dtype.kind == "f":
        return y
    if workload.classes == 2:
        return y.reshape(len(y), -1).astype(np.float64)
    return (y[:, None] == np.arange(workload.classes)).astype(np.float64)


def x_micro_f1(tp: Any, fp: Any, fn: Any, _: Any) -> Any:
    return 2 * tp[1:].sum() / (2 * tp[1:].sum() + fp[1:].sum() + fn[1:].sum())


def x_recalls(tp: Any, fn: Any) -> Any:
    return tp / (tp + fn + 1e-9)


def x_g_mean(tp: Any, _fp: Any, fn: Any, _tn: Any) -> Any:
    import autograd.numpy as anp

    return anp.exp(anp.mean(anp.log(x_recalls(tp, fn) + 1e-9)))


def x_min_recall(tp: Any, _fp: Any, fn: Any, _tn: Any) -> Any:
    import autograd.numpy as anp

    return anp.min(x_recalls(tp, fn))


def x_soft_min_recall(tp: Any, _fp: Any, fn: Any, _tn: Any) -> Any:
    """Smooth, and within 0.005 of the minimum: Frank-Wolfe is for smooth metrics."""
    import autograd.numpy as anp

    return -anp.log(anp.mean(anp.exp(-500 * x_recalls(tp, fn)))) / 500


def x_metric(workload: Workload, smooth: bool) -> Callable[..., Any]:
    """Return the metric of xcolumns, or one written as in its guide."""
    from xcolumns import metrics

    if workload.law in ("binary", "multilabel"):
        return getattr(metrics, f"{workload.average}_f1_score_on_conf_matrix")
    return {
        "micro_f1": x_micro_f1,
        "macro_f1": metrics.macro_f1_score_on_conf_matrix,
        "g_mean": x_g_mean,
        "min_recall": x_soft_min_recall if smooth else x_min_recall,
    }[workload.metric]


def frank_wolfe(smooth: bool = False, **options: Any) -> Callable[[Workload, np.ndarray, np.ndarray], Any]:
    def fit(workload: Workload, proba: np.ndarray, truth: np.ndarray) -> Any:
        from xcolumns.frank_wolfe import find_classifier_using_fw

        proba = np.ascontiguousarray(proba).reshape(truth.shape)
        metric, budget = x_metric(workload, smooth), 0 if workload.classes == 2 else 1
        return find_classifier_using_fw(truth, proba, metric, budget, skip_tn=True, seed=0, **options)

    return fit


def decide_mixture(rule: Any, proba: np.ndarray) -> Decisions:
    from xcolumns.weighted_prediction import predict_weighted_per_instance

    columns = proba if proba.ndim == 2 else proba[:, None]
    for share, a, b in zip(rule.p, rule.a, rule.b, strict=True):
        if share > 0:
            chosen = predict_weighted_per_instance(columns, rule.k, a=a, b=b)
            yield float(share), (chosen.argmax(axis=1) if rule.k else chosen.astype(np.int8).reshape(proba.shape))


def xcolumns_peers(workload: Workload) -> list[Contestant]:
    whole = workload.law == "multilabel"
    quick = frank_wolfe(init_classifier="top", alpha_uniform_search_step=0.01)
    fits = {"xcolumns": frank_wolfe(), "xcolumns from top, coarse": quick}
    if workload.metric == "min_recall":
        fits = {"xcolumns": frank_wolfe(), "xcolumns smooth minimum": frank_wolfe(smooth=True, init_classifier="top")}
    return [Contestant(name, fit, decide_mixture, one_hot, whole) for name, fit in fits.items()]


# ---------------------------------------------------------------------------------------------------------------------
# optimal-classification-cutoffs on several classes, and a shortcut


def cutoffs_ascent(_: Workload, proba: np.ndarray, y: np.ndarray) -> np.ndarray:
    from optimal_cutoffs import get_optimal_threshold

    return get_optimal_threshold(y, proba, metric="f1", method="coord_ascent").thresholds


def cutoffs_peer() -> Contestant:
    decide = lambda offsets, proba: [(1.0, (proba - offsets).argmax(axis=1))]  # noqa: E731
    return Contestant("optimal-cutoffs coord_ascent", cutoffs_ascent, decide, as_int)


def shortcut_fit(_: Workload, proba: np.ndarray, y: np.ndarray) -> float:
    """Fit micro-F1 as the F1 of one threshold on the largest probability of a positive class."""
    strongest = proba[:, 1:].argmax(axis=1) + 1
    height = np.take_along_axis(proba, strongest[:, None], axis=1)[:, 0]
    return bounded_f1(height, strongest == y, np.count_nonzero(y), 0.0, 1.0)[1]


def shortcut_decide(threshold: float, proba: np.ndarray) -> Decisions:
    strongest = proba[:, 1:].argmax(axis=1) + 1
    return [(1.0, np.where(proba[:, 1:].max(axis=1) > threshold, strongest, 0))]


def shortcut() -> Contestant:
    return Contestant("by hand: one threshold, SciPy bounded", shortcut_fit, shortcut_decide, as_int, role="shortcut")


def peers(workload: Workload) -> list[Contestant]:
    """Return the peers that support a workload."""
    if workload.metric == "f1":
        return threshold_peers(workload) + xcolumns_peers(workload)
    if workload.metric == "quadratic_kappa":  # no function of what xcolumns counts
        return [rounding_peer(), *nelder_mead_peers("weights")]
    kinds = {"micro_f1": ("weights", "offsets"), "macro_f1": ("weights", "offsets")}.get(workload.metric, ("weights",))
    found = xcolumns_peers(workload) + nelder_mead_peers(*kinds)
    if workload.metric == "macro_f1":
        found.append(cutoffs_peer())
    return [*found, shortcut()] if workload.metric == "micro_f1" else found
