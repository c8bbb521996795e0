"""Rules in plain words.

Owns the sentences of ``describe()``. Reads rules through their public names only, and decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..inputs import python_labels
from .decisions import bisect_regions
from .serialize import as_float

if TYPE_CHECKING:
    from .weighted import WeightedRule

__all__ = ["describe_mixture", "describe_rule", "headline", "link_lines", "readable_weights", "rounds_grades"]

FloatArray = NDArray[np.float64]

_MANY_OUTPUTS = 8  # more than these are summarised
_MANY_CLASSES = 12
_ROUNDING = 1e-12  # of the largest loss: what differs by less is no difference


def describe_rule(rule: WeightedRule) -> str:
    """Return a few lines: what the rule is for, what it predicts when, what the link does before."""
    return "\n".join([*headline(rule.facts, rule.n_outputs > 1), *_decision_lines(rule)])


def describe_mixture(rules: tuple[WeightedRule, ...], weights: FloatArray, facts: Any) -> str:
    """Return the components of a randomised rule with their shares."""
    lines = [
        *headline(facts, rules[0].n_outputs > 1),
        f"For each row, one of {len(rules)} rules is drawn, reproducibly:",
    ]
    for r, rule in enumerate(rules):
        share = weights[..., r]
        low, high = float(share.min()), float(share.max())
        shown = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}, by output"
        lines += [f"- with probability {shown}:", *("  " + line for line in _decision_lines(rule))]
    return "\n".join(lines)


def headline(facts: Any, several: bool) -> list[str]:
    """Say which metric the rule was made for, where the facts know it."""
    if not isinstance(facts.get("metric"), str):
        return []
    average, positive = facts.get("average"), facts.get("pos_label")
    words = f" of {positive!r}" if isinstance(positive, (str, bool, int)) else ""
    words += f", {average} average over the outputs" if several and isinstance(average, str) else ""
    abstain = facts.get("abstain")
    if abstain is True:
        words += ", abstentions allowed"
    elif isinstance(abstain, float):
        words += f", abstentions at a cost of {abstain:g}"
    kept = facts.get("subject_to")
    if isinstance(kept, (list, tuple)) and kept:
        confidence = as_float(facts.get("confidence"))
        sure = "" if confidence is None else f", with a confidence of {confidence:.3g}"
        words += f", subject to {' and '.join(map(str, kept))}{sure}"
    return [f"Rule for {facts['metric']}{words}."]


def _decision_lines(rule: WeightedRule) -> list[str]:
    if rule.n_outputs == 1:
        return [*_output_lines(rule, 0), *link_lines(rule, 0)]
    shared = rule.loss.n_outputs == 1 and _same_labels(rule)
    # Behind links a shared loss means other thresholds on the model's own probabilities, output by output.
    if shared and (rule.link is None or rule.width > 2):
        lines = [f"The same for each of {rule.n_outputs} outputs:", *_output_lines(rule, 0)]
        return lines if rule.link is None else [*lines, *_link_summary(rule)]
    if rule.n_outputs <= _MANY_OUTPUTS:
        lines = []
        for m in range(rule.n_outputs):
            name = rule.output_names[m] if rule.output_names is not None else m
            first, *rest = [*_output_lines(rule, m), *link_lines(rule, m)]
            lines += [f"Output {name}: {first}", *("  " + line for line in rest)]
        return lines
    return _summary_lines(rule)


def _same_labels(rule: WeightedRule) -> bool:
    first = rule.classes[0]
    return all(labels is first or labels.tolist() == first.tolist() for labels in rule.classes)


def _output_lines(rule: WeightedRule, m: int) -> list[str]:
    labels = [repr(label) for label in python_labels(rule.classes[m])]
    if rule.abstain_label is not None:
        return _abstaining_lines(rule, m, labels)
    if len(labels) == 2:
        return [_binary_sentence(rule, m, *labels)]
    k, loss = len(labels), rule.loss.output(m)
    full = loss.tensor()[0, :k, :k] if k == 3 or not loss.is_diagonal else None  # wider diagonals have no cut points
    scale = None if full is None else _cut_points(full, python_labels(rule.classes[m]))
    if scale is not None:
        return _cut_lines(labels, *scale)
    if loss.is_diagonal:
        diagonal, offset = (a[0, :k] for a in loss.arrays)
        return _weight_lines(labels, -diagonal, -offset)
    assert full is not None
    return _table_lines(labels, full)


def _binary_sentence(rule: WeightedRule, m: int, negative: str, positive: str) -> str:
    threshold = rule.thresholds[m]
    if np.isnan(threshold):
        below = np.nextafter(rule.changes[2][m], np.inf)
        return (
            f"Predict {positive} when its probability is below {below:.4g} (inverted: low, not high), else {negative}."
        )
    if np.isinf(threshold):
        return f"Always predict {positive if threshold < 0 else negative}."
    return f"Predict {positive} when its probability exceeds {threshold:.4g}, else {negative}."


def _abstaining_lines(rule: WeightedRule, m: int, labels: list[str]) -> list[str]:
    """What a rule that may abstain does: as without, and where it abstains."""
    k, loss, label = len(labels), rule.loss.output(m), repr(rule.abstain_label)
    if k == 2:
        return [_regions_sentence(rule, m, labels, label)]
    if not loss.is_diagonal:
        return _table_lines(labels, loss.tensor()[0, :k, : k + 1], label)
    weight, bonus = -loss.arrays[0][0, :k], -loss.arrays[1][0, : k + 1]
    if (weight > 0).all():
        bonus, weight = (bonus - bonus[:k].min()) / weight.min(), weight / weight.min()
    if (weight == 1).all() and not bonus[:k].any():
        return [
            f"Predict the most probable class if its probability is at least {bonus[k]:.4g}, else abstain: {label}."
        ]
    first, *rest = _weight_lines(labels, weight, bonus[:k])
    return [first, *rest, f"Abstain, {label}, if that is below {bonus[k]:.4g}."]


def _regions_sentence(rule: WeightedRule, m: int, labels: list[str], label: str) -> str:
    """Where a binary rule that may abstain does what, along the probability of class 1."""
    words = [f"predict {own}" for own in labels] + [f"abstain: {label}"]
    first, last, below, above = bisect_regions(rule.loss, rule.link, m)
    if first == last:
        return f"Always {words[first]}."
    (between,) = {0, 1, 2} - {first, last}
    middle = "" if np.nextafter(below, 1.0) >= above else f", between the two {words[between]}"
    start = f"By the probability of {labels[1]}: up to {below:.4g} {words[first]}, "
    return f"{start}{'above' if not middle else f'from {above:.4g} on'} {words[last]}{middle}."


def readable_weights(weight: FloatArray, bonus: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return weights and bonuses (K,) that decide alike, in a scale that people can read."""
    bonus = bonus - bonus.min()
    if (weight > 0).all():
        bonus, weight = bonus / weight.min(), weight / weight.min()
    return weight, bonus


def _weight_lines(labels: list[str], weight: FloatArray, bonus: FloatArray) -> list[str]:
    weight, bonus = readable_weights(weight, bonus)
    if not bonus.any():
        if (weight == 1).all():
            return ["Predict the most probable class."]
        return ["Predict the class with the largest weight * probability. Weights: " + _listed(labels, weight) + "."]
    return [
        "Predict the class with the largest weight * probability + bonus.",
        f"Weights: {_listed(labels, weight)}.",
        f"Bonuses: {_listed(labels, bonus)}.",
    ]


def _listed(labels: list[str], values: FloatArray) -> str:
    # Adding 0 turns -0 into 0.
    pairs = [f"{label}: {value + 0.0:.4g}" for label, value in zip(labels, values, strict=True)]
    if len(pairs) > _MANY_CLASSES:
        pairs = [*pairs[:_MANY_CLASSES], f"and {len(pairs) - _MANY_CLASSES} more"]
    return ", ".join(pairs)


def _cut_points(full: FloatArray, labels: list[Any]) -> tuple[FloatArray, FloatArray] | None:
    """Return grades (K,) and ascending cut points (K - 1,) of the expected grade, where the loss decides by these.

    It does if it falls from class to class by a number of the class less one of the true class, as squared errors and
    quadratic kappa have it. Grades have no scale: they are the labels where these are numbers as far apart, else they
    go from 0 to K - 1.
    """
    steps = np.diff(full, axis=1)
    cuts, grades = steps[0], steps[0, 0] - steps[:, 0]
    if not ((np.diff(grades) > 0).all() and (np.diff(cuts) > 0).all()):
        return None
    if np.abs(steps - (cuts - grades[:, None])).max() > _ROUNDING * np.abs(full).max():
        return None
    start, end = 0.0, len(labels) - 1.0
    numbers = [number for number in map(as_float, labels) if number is not None]
    if len(numbers) == len(labels):
        spread = numbers[0] + grades * ((numbers[-1] - numbers[0]) / grades[-1])
        if np.allclose(spread, numbers, rtol=0, atol=1e-9 * abs(numbers[-1] - numbers[0])):
            start, end = numbers[0], numbers[-1]
    factor = (end - start) / grades[-1]
    return start + grades * factor, start + cuts * factor


def rounds_grades(rule: WeightedRule) -> bool:
    """Whether a rule of a single output rounds the expected grade at cut points."""
    k = len(rule.classes[0])
    return _cut_points(rule.loss.tensor()[0, :k, :k], python_labels(rule.classes[0])) is not None


def _cut_lines(labels: list[str], grades: FloatArray, cuts: FloatArray) -> list[str]:
    shown = [f"{cut + 0.0:.4g}" for cut in cuts[:_MANY_CLASSES]]
    more = [f"and {len(cuts) - _MANY_CLASSES} more"] if len(cuts) > _MANY_CLASSES else []
    return [
        f"Predict by the expected grade, rounded at the cut points {', '.join([*shown, *more])}.",
        f"Grades: {_listed(labels, grades)}.",
    ]


def _table_lines(labels: list[str], full: FloatArray, abstain: str | None = None) -> list[str]:
    """A table of losses, (K, K), or (K, K + 1) where the rule may abstain."""
    columns = labels if abstain is None else [*labels, abstain]
    if len(labels) > _MANY_CLASSES:
        return [f"Predict the class of least expected loss, by a table of {len(labels)} x {len(columns)} losses."]
    # Row constants change no decision: each row is shown against its least loss.
    cells = [[f"{value:.4g}" for value in row - row.min()] for row in full]
    first = max(len(label) for label in ["true", *labels])
    widths = [max(len(label), *(len(row[j]) for row in cells)) for j, label in enumerate(columns)]
    rows = [["true", *columns], *([label, *row] for label, row in zip(labels, cells, strict=True))]
    table = [
        "  ".join([head.ljust(first), *(c.rjust(w) for c, w in zip(row, widths, strict=True))]) for head, *row in rows
    ]
    what = "Predict the class of least expected loss" + ("" if abstain is None else f", or abstain: {abstain}")
    return [f"{what}. Losses of predicting each column:", *table]


def link_lines(rule: WeightedRule, m: int) -> list[str]:
    """Say what the link does before, for output m."""
    if rule.link is None:
        return []
    t = float(rule.link.temperature[m])
    labels = [repr(label) for label in python_labels(rule.classes[m])]
    bias = rule.link.bias[m, : len(labels)]
    if t == 1 and not (bias - bias[0]).any():
        return []
    effect = "as extreme as they were" if t == 1 else "less extreme" if t < 1 else "more extreme"
    with np.errstate(over="ignore"):  # more than any number is infinite odds
        factors = np.exp(bias - bias.mean())
        odds = np.exp(bias[1] - bias[0])
    if len(labels) == 2:
        where = "The threshold applies to the model's own probability: recalibration is already taken into account"
        factor = f"odds of {labels[1]} times {odds:.4g}"
    else:
        where = "Probabilities are recalibrated first"
        factor = "factors " + _listed(labels, factors)
    return [f"{where} (temperature {t:.4g}, {effect}; {factor})."]


def _summary_lines(rule: WeightedRule) -> list[str]:
    lines = []
    if rule.abstain_label is not None:
        words = f"{rule.n_outputs} outputs: least expected loss, of their classes or of abstaining"
        return [f"{words}: {rule.abstain_label!r}.", *_link_summary(rule)]
    binary = rule.n_classes == 2
    if binary.any():
        lines += _threshold_summary(rule.thresholds[binary], int(binary.sum()))
    if not binary.all():
        shared = "one table of losses" if rule.loss.n_outputs == 1 else "a table of losses each"
        form = shared.replace("table of losses", "set of class weights") if rule.loss.is_diagonal else shared
        lines.append(f"{int((~binary).sum())} outputs of more than two classes: least expected loss, {form}.")
    return [*lines, *_link_summary(rule)]


def _link_summary(rule: WeightedRule) -> list[str]:
    if rule.link is None:
        return []
    t = rule.link.temperature
    words = "; thresholds apply to the model's own probabilities" if (rule.n_classes == 2).any() else ""
    return [
        f"Probabilities are recalibrated first, for each output: temperatures {t.min():.4g} to {t.max():.4g}, median "
        f"{np.median(t):.4g}{words}."
    ]


def _threshold_summary(thresholds: FloatArray, count: int) -> list[str]:
    finite = thresholds[np.isfinite(thresholds)]
    lines = []
    if len(finite):
        lines.append(
            f"{count} binary outputs: predict class 1 when its probability exceeds a threshold, {finite.min():.4g} to "
            f"{finite.max():.4g}, median {np.median(finite):.4g}."
        )
    for found, words in (
        (thresholds == np.inf, "never predict class 1"),
        (thresholds == -np.inf, "always predict class 1"),
        (np.isnan(thresholds), "predict class 1 when its probability is low"),
    ):
        if found.any():
            lines.append(f"{int(found.sum())} of {count} binary outputs {words}.")
    return lines
