"""The sentences of ``describe()``. Reads weighted rules through their public names only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.labels import python_labels
from ..core.schema import Schema
from .calibration import TemperatureScaling
from .forms import CutPoints, LossTable, Region, Regions, Threshold, Weights, form_of, scale_places
from .metadata import RuleMetadata

FloatArray = NDArray[np.float64]

_MAX_OUTPUTS = 8  # more than these are summarised
_MAX_CLASSES = 12


def mixture_lines(rules: tuple[Any, ...], weights: FloatArray, metadata: RuleMetadata) -> list[str]:
    """Return the components of a randomised rule with their shares."""
    lines = [f"For each row, one of {len(rules)} rules is drawn, reproducibly:"]
    for r, rule in enumerate(rules):
        share = weights[..., r]
        low, high = float(share.min()), float(share.max())
        shown = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}, by output"
        lines += [f"- with probability {shown}:", *("  " + line for line in decision_lines(rule, metadata))]
    return lines


def decision_lines(rule: Any, metadata: RuleMetadata) -> list[str]:
    """Say what the rule does; classes are listed in the order that the metadata of the whole rule has."""
    if rule.n_outputs == 1:
        return [*_output_lines(rule, 0, metadata), *link_lines(rule.link, rule.schema, 0)]
    shared = rule.loss.n_outputs == 1 and _same_labels(rule)
    # Behind links a shared loss means other thresholds on the model's own probabilities, output by output.
    if shared and (rule.link is None or rule.width > 2):
        lines = [f"The same for each of {rule.n_outputs} outputs:", *_output_lines(rule, 0, metadata)]
        return lines if rule.link is None else [*lines, *_link_summary(rule)]
    if rule.n_outputs <= _MAX_OUTPUTS:
        lines = _shared_threshold(rule) if shared else []
        for m in range(rule.n_outputs):
            name = rule.output_names[m] if rule.output_names is not None else m
            first, *rest = [*_output_lines(rule, m, metadata), *link_lines(rule.link, rule.schema, m)]
            lines += [f"Output {name}: {first}", *("  " + line for line in rest)]
        return lines
    return _summary_lines(rule)


def _shared_threshold(rule: Any) -> list[str]:
    """Say which threshold binary outputs share behind their links, where it is one."""
    threshold = float(replace(rule, link=None, input="probabilities").thresholds[0])
    if rule.abstain_label is not None or not np.isfinite(threshold):
        return []
    return [
        f"One threshold for all outputs, {threshold:.4g} on their recalibrated probabilities; thresholds on the "
        "model's probabilities:"
    ]


def _same_labels(rule: Any) -> bool:
    first = rule.classes[0]
    return all(labels is first or labels.tolist() == first.tolist() for labels in rule.classes)


def _output_lines(rule: Any, m: int, metadata: RuleMetadata) -> list[str]:
    """Say what is decided about output m, by its form."""
    labels = [repr(label) for label in python_labels(rule.classes[m])]
    abstain = None if rule.abstain_label is None else repr(rule.abstain_label)
    places = list(range(len(labels))) if len(labels) == 2 or abstain else scale_places(rule, m, metadata)
    ordered = [labels[place] for place in places]
    match form_of(rule, m, metadata):
        case Threshold() as form:
            return [_threshold_sentence(form, *labels)]
        case Regions(regions):
            return [_regions_sentence(regions, labels[1], str(abstain))]
        case CutPoints(grades, cut_points):
            return _cut_lines(ordered, grades[places], cut_points)
        case LossTable(losses):
            return _table_lines(ordered, losses[places][:, [*places, *range(len(places), losses.shape[1])]], abstain)
        case Weights(weight, bonus, least):
            if least is not None and (weight == 1).all() and not bonus.any():
                return [
                    f"Predict the most probable class if its probability is at least {least:.4g}, else abstain: "
                    f"{abstain}."
                ]
            lines = _weight_lines(ordered, weight[places], bonus[places])
            return lines if least is None else [*lines, f"Abstain ({abstain}) if the maximum is below {least:.4g}."]


def _threshold_sentence(form: Threshold, negative: str, positive: str) -> str:
    threshold = form.value
    if np.isnan(threshold):
        below = np.nextafter(form.last, np.inf)
        return f"Predict {positive} when its probability is below {below:.4g} (inverted threshold), else {negative}."
    if np.isinf(threshold):
        return f"Always predict {positive if threshold < 0 else negative}."
    return f"Predict {positive} when its probability exceeds {threshold:.4g}, else {negative}."


def _regions_sentence(regions: tuple[Region, ...], positive: str, abstain: str) -> str:
    """Where a binary rule that may abstain does what, along the probability of class 1."""
    decisions = [
        f"abstain: {abstain}" if repr(region.label) == abstain else f"predict {region.label!r}" for region in regions
    ]
    if len(regions) == 1:
        return f"Always {decisions[0]}."
    start = f"By the probability of {positive}: up to {regions[0].high:.4g} {decisions[0]}; "
    if len(regions) == 2:
        return f"{start}above {decisions[1]}."
    return f"{start}from {regions[2].low:.4g} {decisions[2]}; in between {decisions[1]}."


def _weight_lines(labels: list[str], weight: FloatArray, bonus: FloatArray) -> list[str]:
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
    if len(pairs) > _MAX_CLASSES:
        pairs = [*pairs[:_MAX_CLASSES], f"and {len(pairs) - _MAX_CLASSES} more"]
    return ", ".join(pairs)


def _cut_lines(labels: list[str], grades: FloatArray, cuts: FloatArray) -> list[str]:
    shown = [f"{cut + 0.0:.4g}" for cut in cuts[:_MAX_CLASSES]]
    more = [f"and {len(cuts) - _MAX_CLASSES} more"] if len(cuts) > _MAX_CLASSES else []
    return [
        f"Predict the expected grade, rounded at the cut points {', '.join([*shown, *more])}.",
        f"Grades: {_listed(labels, grades)}.",
    ]


def _table_lines(labels: list[str], full: FloatArray, abstain: str | None = None) -> list[str]:
    """A table of losses, (K, K), or (K, K + 1) where the rule may abstain."""
    columns = labels if abstain is None else [*labels, abstain]
    if len(labels) > _MAX_CLASSES:
        return [
            f"Predict the class with the lowest expected loss, from a {len(labels)} x {len(columns)} table of losses."
        ]
    # Row constants change no decision: each row is shown against its least loss.
    cells = [[f"{value:.4g}" for value in row - row.min()] for row in full]
    first = max(len(label) for label in ["true", *labels])
    widths = [max(len(label), *(len(row[j]) for row in cells)) for j, label in enumerate(columns)]
    rows = [["true", *columns], *([label, *row] for label, row in zip(labels, cells, strict=True))]
    table = [
        "  ".join([head.ljust(first), *(c.rjust(w) for c, w in zip(row, widths, strict=True))]) for head, *row in rows
    ]
    what = "Predict the class with the lowest expected loss" + ("" if abstain is None else f", or abstain: {abstain}")
    return [f"{what}. Losses by true class (rows) and predicted class (columns):", *table]


def link_lines(link: TemperatureScaling | None, schema: Schema, m: int, *, own_costs: bool = False) -> list[str]:
    """Say what the link does before, for output m; with costs of its own for each row, there is no threshold."""
    if link is None:
        return []
    t = float(link.temperature[m])
    labels = [repr(label) for label in python_labels(schema.classes[m])]
    bias = link.bias[m, : len(labels)]
    if t == 1 and not (bias - bias[0]).any():
        return []
    effect = "equally extreme" if t == 1 else "less extreme" if t < 1 else "more extreme"
    with np.errstate(over="ignore"):  # more than any number is infinite odds
        factors = np.exp(bias - bias.mean())
        odds = np.exp(bias[1] - bias[0])
    if len(labels) == 2:
        numbers = "The threshold applies" if schema.abstain_label is None else "These numbers apply"
        where = f"{numbers} to the model's probability; recalibration is already taken into account"
        where = "Probabilities are recalibrated first" if own_costs else where
        factor = f"odds of {labels[1]} times {odds:.4g}"
    else:
        where = "Probabilities are recalibrated first"
        factor = "factors " + _listed(labels, factors)
    return [f"{where} (temperature {t:.4g}, {effect}; {factor})."]


def _summary_lines(rule: Any) -> list[str]:
    lines = []
    if rule.abstain_label is not None:
        text = f"{rule.n_outputs} outputs: predict the class with the lowest expected loss, or abstain"
        return [f"{text}: {rule.abstain_label!r}.", *_link_summary(rule)]
    binary = rule.n_classes == 2
    if binary.any():
        lines += _threshold_summary(rule.thresholds[binary], int(binary.sum()))
    if not binary.all():
        shared = "one table of losses" if rule.loss.n_outputs == 1 else "a table of losses for each output"
        form = shared.replace("table of losses", "set of class weights") if rule.loss.is_diagonal else shared
        lines.append(f"{int((~binary).sum())} outputs with more than two classes: lowest expected loss, {form}.")
    return [*lines, *_link_summary(rule)]


def _link_summary(rule: Any) -> list[str]:
    if rule.link is None:
        return []
    t = rule.link.temperature
    scale = "; thresholds apply to the model's probabilities" if (rule.n_classes == 2).any() else ""
    return [
        f"Probabilities are recalibrated first, for each output: temperatures {t.min():.4g} to {t.max():.4g}, median "
        f"{np.median(t):.4g}{scale}."
    ]


def _threshold_summary(thresholds: FloatArray, count: int) -> list[str]:
    finite = thresholds[np.isfinite(thresholds)]
    lines = []
    if len(finite):
        lines.append(
            f"{count} binary outputs: predict class 1 when its probability exceeds a threshold, {finite.min():.4g} to "
            f"{finite.max():.4g}, median {np.median(finite):.4g}."
        )
    for affected, effect in (
        (thresholds == np.inf, "never predict class 1"),
        (thresholds == -np.inf, "always predict class 1"),
        (np.isnan(thresholds), "predict class 1 when its probability is low"),
    ):
        if affected.any():
            lines.append(f"{int(affected.sum())} of {count} binary outputs {effect}.")
    return lines
