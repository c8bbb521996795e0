"""metricwise: a fixed recipe, the default call, and these rows together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import metricwise as mw
from metricwise import kernels

from .data import Rows
from .peers import Contestant
from .values import Goal

FIXED: dict[str, Any] = {"confusion": "expected", "recalibrate": False}
RECALIBRATED: dict[str, Any] = {"confusion": "expected", "recalibrate": True}


def optimize(rows: Rows, goal: Goal, strategy: dict[str, Any] | None) -> Any:
    """Return the rule of a call."""
    options: dict[str, Any] = {"labels_per_row": None if goal.k is None else (goal.k, goal.k)}
    if strategy is not None:
        options["strategy"] = mw.Strategy(**strategy)
    if goal.metric != "label_coverage":
        options["average"] = goal.average
    return mw.optimize(rows.proba, rows.y, goal.metric, **options).rule


def decide(rule: Any, proba: csr_matrix, _: Goal) -> csr_matrix:
    return rule.predict(proba)


def decide_together(rule: Any, proba: csr_matrix, _: Goal) -> csr_matrix:
    return rule.predict_together(proba)


def fitted_by(strategy: dict[str, Any] | None) -> Any:
    return lambda rows, goal: optimize(rows, goal, strategy)


def ours(goal: Goal) -> list[Contestant]:
    """Return our ways to decide for a goal; together not where that is the same as row by row."""
    made = [
        Contestant("fixed recipe", "metricwise", "rule", fitted_by(FIXED), decide),
        Contestant("fixed recipe, recalibrated", "metricwise", "rule", fitted_by(RECALIBRATED), decide),
        Contestant("default", "metricwise", "rule", fitted_by(None), decide),
    ]
    if goal.average == "macro" or goal.k is None:
        made += [
            Contestant("together", "metricwise", "together", fitted_by(FIXED), decide_together),
            Contestant("together, recalibrated", "metricwise", "together", fitted_by(RECALIBRATED), decide_together),
        ]
    return made


def passes(proba: csr_matrix, k: int) -> dict[str, Callable[[], Any]]:
    """Return the passes that fits are made of: counts of the k best labels, and of those above a threshold."""
    n_labels = proba.shape[1]
    block = kernels.LabelBlock(proba.data, proba.indices, proba.indptr.astype(np.int64), n_labels, None, None)
    scale = np.random.default_rng(0).random(n_labels) + 0.5
    best, above = (scale, np.zeros(n_labels)), (scale, np.full(n_labels, -0.3))
    fill = [np.arange(min(n_labels, k + int(np.diff(proba.indptr).max())))]
    return {
        "top k": lambda: kernels.label_count(block, [best], k, k, fill),
        "threshold": lambda: kernels.label_count(block, [above], 0, -1, None),
    }
