"""What is shown of very many labels: tables of those that matter most, as a dict of JSON types.

Must not know how anything looks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..inference.label_summary import LabelSummary
from ..rules.label_base import LabelRuleBase
from ..rules.label_words import budget_words
from .text import number, shown_metric

__all__ = ["baseline_words", "label_facts", "label_tables"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_MAX_ROWS = 10  # of a table of labels
_LEAST_TRUE = 5  # true rows above which the value of a single label says something
_ROUNDING = 1e-12


def baseline_words(rule: LabelRuleBase) -> str:
    """Return what the baseline of a rule predicts."""
    budget = rule.labels_per_row
    if budget is not None and budget[0] == budget[1]:
        return f"the most probable labels, {budget_words(budget)} of a row"
    limit = "" if budget is None else f", {budget_words(budget)} of a row"
    return f"labels with a probability above 1/2{limit}"


def label_tables(rule: LabelRuleBase, labels: LabelSummary, losses: Mapping[str, str]) -> dict[str, Any]:
    """Return the sections about labels: by frequency, largest, worst, gains, losses, and those never predicted."""
    thresholds = getattr(rule, "threshold", None)
    if thresholds is not None and (thresholds == thresholds[0]).all():
        thresholds = None  # one for all labels, which the description tells

    def rows(chosen: IntArray) -> list[dict[str, Any]]:
        return [_row(rule, labels, thresholds, m) for m in chosen[:_MAX_ROWS].tolist()]

    common = np.flatnonzero(labels.true > _LEAST_TRUE)
    least = _LEAST_TRUE
    if not len(common):
        common, least = np.flatnonzero(labels.true > 0), 0
    gain = labels.value - labels.baseline
    ups, downs = (common[sign * gain[common] > _ROUNDING] for sign in (1, -1))
    never = labels.never_predicted
    of_true = gain[labels.true > 0]
    return {
        "metric": shown_metric(labels.metric, losses),
        "n_labels": labels.n_labels,
        "n_true": int(np.count_nonzero(labels.true > 0)),
        "least_true": least,
        "has_thresholds": thresholds is not None,
        "by_frequency": [{**group._asdict(), "gain": group.value - group.baseline} for group in labels.by_frequency()],
        "better": int(np.count_nonzero(of_true > _ROUNDING)),
        "worse": int(np.count_nonzero(of_true < -_ROUNDING)),
        "largest": rows(_ordered(np.flatnonzero(labels.true > 0), labels)),
        "worst": rows(_ordered(common, labels, labels.value)),
        "gains": rows(_ordered(ups, labels, -gain)),
        "losses": rows(_ordered(downs, labels, gain)),
        "never": {"n_labels": len(never), "true": float(labels.true[never].sum()), "largest": rows(never)},
    }


def _ordered(chosen: IntArray, labels: LabelSummary, by: FloatArray | None = None) -> IntArray:
    """Return labels by a number, the smallest first; of equal ones the most frequent first."""
    keys = (-labels.true[chosen],) if by is None else (-labels.true[chosen], np.round(by[chosen], 12))
    return np.asarray(chosen[np.lexsort(keys)])


def _row(rule: LabelRuleBase, labels: LabelSummary, thresholds: FloatArray | None, m: int) -> dict[str, Any]:
    row = {
        "name": f"label {m}" if rule.output_names is None else str(rule.output_names[m]),
        **{key: float(getattr(labels, key)[m]) for key in ("true", "predicted", "hits", "value", "baseline")},
        "gain": float(labels.value[m] - labels.baseline[m]),
    }
    if thresholds is not None:
        threshold = float(thresholds[m])
        row["threshold"] = number(threshold) if math.isfinite(threshold) else "never predicted"
    return row


def label_facts(rule: LabelRuleBase, labels: LabelSummary) -> list[tuple[str, str | None]]:
    """Return facts of the labels of rows, as pairs of text."""
    total, true = max(labels.total, 1e-300), float(labels.true.sum())
    return [
        ("Labels", f"{labels.n_labels:,}"),
        ("Labels with true rows", f"{int(np.count_nonzero(labels.true > 0)):,}"),
        ("Stored entries", f"{labels.n_entries:,}"),
        ("True labels per row", number(true / total)),
        ("Predicted labels per row", number(float(labels.predicted.sum()) / total)),
        ("True labels that are not stored", f"{100 * labels.unstored / true:.2g} %" if labels.unstored else None),
        ("Labels never predicted", f"{int(np.count_nonzero(labels.predicted <= 0)):,}"),
        ("Baseline", baseline_words(rule)),
    ]
