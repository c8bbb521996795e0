"""The sentences of ``describe()`` for rules of very many labels. Reads rules through their public names only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.label_rows import CALIBRATION_FLOOR, LabelsPerRow
from ..core.labels import python_labels

FloatArray = NDArray[np.float64]

_MAX_EXAMPLES = 4  # labels whose thresholds or numbers are told


def label_lines(rule: Any) -> list[str]:
    """Say which labels a rule of scores predicts."""
    negative, positive = (repr(label) for label in python_labels(rule.classes[0]))
    noun = "probability" if rule.temperature is None else "recalibrated probability"
    if rule.labels_per_row is None:
        lines = _threshold_lines(rule, negative, positive)
    else:
        lines = _budget_lines(rule, negative, positive, noun)
    return [*lines, *map_lines(rule)]


def _threshold_lines(rule: Any, negative: str, positive: str) -> list[str]:
    thresholds, count, noun = rule.thresholds, labels_of(rule.n_labels), rule.schema.input.noun
    used = thresholds < np.inf
    if not used.any():
        return [f"{count}: always {negative}, {positive} is never predicted."]
    values = thresholds[used]
    if values.min() == values.max():
        lines = [f"{count}: {positive} if the {noun} exceeds {values[0]:.4g}, else {negative}."]
    else:
        lines = [
            f"{count}: {positive} if the {noun} exceeds the threshold of the label, else {negative}.",
            f"Thresholds: {_spread(values)}.",
            _examples("For example", rule, np.flatnonzero(used), thresholds),
        ]
    never = int(np.count_nonzero(~used))
    return [*lines, f"Never predicted: {labels_of(never)}."] if never else lines


def label_set_lines(rule: Any) -> list[str]:
    """Say which labels a rule of label sets predicts."""
    negative, positive = (repr(label) for label in python_labels(rule.classes[0]))
    beta = float(np.sqrt(rule.beta2))
    metric = "Jaccard" if rule.jaccard else "F1" if beta == 1 else f"F-beta (beta {beta:.4g})"
    budget = "" if rule.labels_per_row is None else f", {budget_words(rule.labels_per_row)},"
    lines = [
        f"{labels_of(rule.n_labels)}: {positive} for the most probable ones of a row, else {negative}; as many{budget} "
        f"as have the highest expected {metric} of the row.",
        "The labels of a row are taken as independent."
        + (f" A row without true and predicted labels counts {rule.zero_division:.4g}." if rule.zero_division else "")
        + (f" {rule.missing:.4g} true labels of a row are expected among those not stored." if rule.missing else ""),
    ]
    return [*lines, *map_lines(rule)]


def _budget_lines(rule: Any, negative: str, positive: str, noun: str) -> list[str]:
    low, high = rule.labels_per_row
    start = f"{labels_of(rule.n_labels)}: {positive} for {budget_words(rule.labels_per_row)} of a row, else {negative}."
    first = "of equal ones the first label" if rule.n_labels > 1 else "the only one"
    condition = (
        "" if low == high else "; only if it is positive" if low == 0 else f"; beyond {low} only if it is positive"
    )
    if _alike(rule.scale) and _alike(rule.offset) and rule.scale[0] > 0:
        line = f"The labels with the highest probability are taken, {first}"
        if low == high:
            return [start, f"{line}."]
        zero = -float(rule.offset[0]) / float(rule.scale[0])
        further = "" if low == 0 else f"beyond {low} "
        return [start, f"{line}; {further}only if the {noun} exceeds {zero + 0.0:.4g}."]
    lines = [
        start,
        f"The labels with the highest scale * {noun} + offset are taken, {first}{condition}.",
        f"Scales: {_spread(rule.scale)}. Offsets: {_spread(rule.offset)}.",
    ]
    zeros = rule.score_zeros
    used = np.flatnonzero(np.isfinite(zeros) & (zeros > 0))
    if low < high and len(used):
        lines.append(f"The score is positive above a {noun} of: {_spread(zeros[used])}.")
        lines.append(_examples("For example", rule, used, zeros))
    return lines


def budget_words(budget: LabelsPerRow) -> str:
    """Return how many labels a row may have, in words."""
    low, high = budget
    if low == high:
        return f"exactly {labels_of(high)}"
    return f"at most {labels_of(high)}" if low == 0 else f"{low:,} to {labels_of(high)}"


def labels_of(count: int) -> str:
    """Return a number of labels in words."""
    return f"{count:,} label{'' if count == 1 else 's'}"


def map_lines(rule: Any) -> list[str]:
    """Say how numbers are recalibrated first."""
    t, bias, row_input = rule.temperature, rule.bias, rule.schema.input
    lines = []
    if t is not None and row_input.is_logits:
        sign = "-" if bias < 0 else "+"
        formula = f"{t:.4g} * {row_input.noun}" + (f" {sign} {abs(bias):.4g}" if bias else "")
        lines = [f"Probabilities are sigmoid({formula})."]
    elif t is not None:
        with np.errstate(over="ignore"):
            odds = float(np.exp(bias))
        effect = "equally" if t == 1 else "less" if t < 1 else "more"
        lines = [
            f"Probabilities are recalibrated first (temperature {t:.4g}, {effect} extreme; odds times {odds:.4g}; "
            f"kept from {CALIBRATION_FLOOR:g} to 1 - {CALIBRATION_FLOOR:g})."
        ]
    if rule.factor is not None:
        lines.append(f"Factors of the probabilities of labels: {_spread(rule.factor)}.")
    return lines


def _alike(values: FloatArray) -> bool:
    return bool((values == values[0]).all())


def _spread(values: FloatArray) -> str:
    """Return the range and the quartiles of numbers, or the number that all are."""
    low, first, middle, third, high = np.quantile(values, [0.0, 0.25, 0.5, 0.75, 1.0]) + 0.0
    if low == high:
        return f"{low:.4g}"
    return f"{low:.4g} to {high:.4g}, half of them from {first:.4g} to {third:.4g}, median {middle:.4g}"


def _examples(start: str, rule: Any, places: NDArray[np.intp], numbers: FloatArray) -> str:
    """Tell the numbers of a few labels, from the lowest to the highest."""
    order = places[np.argsort(numbers[places], kind="stable")]
    picked = order[np.unique(np.linspace(0, len(order) - 1, min(_MAX_EXAMPLES, len(order))).astype(int))]
    names = rule.output_names
    told = [f"{m if names is None else repr(names[m])} {numbers[m]:.4g}" for m in picked.tolist()]
    return f"{start}, by label: {', '.join(told)}."
