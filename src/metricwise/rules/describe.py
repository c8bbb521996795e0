"""The sentences of ``describe()``. Reads weighted rules through their public names only.

Thresholds and regions are in the unit of the rows: probabilities, log-odds or scores.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.inputs import Input
from ..core.labels import python_labels
from ..core.schema import Schema
from .calibration import TemperatureScaling
from .decisions import bisect_score
from .forms import CutPoints, LossTable, Region, Regions, ScoreCuts, Threshold, Weights, form_of, scale_places
from .metadata import RuleMetadata

FloatArray = NDArray[np.float64]

_MAX_OUTPUTS = 8  # more than these are summarised
_MAX_CLASSES = 12
_MIN_LOG_ODDS = 1e-15  # thresholds of smaller log-odds are 0 but for rounding
_LARGE = 1000.0  # scores from here on have six digits rather than four
_SINGULARS = {"logits": "logit", "log_proba": "log-probability", "scores": "score"}
_ODDS_LINE = "The score is mapped to the probabilities of all classes by proportional odds first"


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
    # Behind links a shared loss means other thresholds on the model's own numbers, output by output.
    if shared and (rule.link is None or rule.width > 2 or _is_same_map(rule)):
        lines = [f"The same for each of {rule.n_outputs} outputs:", *_output_lines(rule, 0, metadata)]
        if _is_same_map(rule):
            return [*lines, *link_lines(rule.link, rule.schema, 0)]
        return lines if rule.link is None else [*lines, *_link_summary(rule)]
    if rule.n_outputs <= _MAX_OUTPUTS:
        lines = _shared_threshold(rule) if shared else []
        for m in range(rule.n_outputs):
            name = rule.output_names[m] if rule.output_names is not None else m
            first, *rest = [*_output_lines(rule, m, metadata), *link_lines(rule.link, rule.schema, m)]
            lines += [f"Output {name}: {first}", *("  " + line for line in rest)]
        return lines
    return _summary_lines(rule)


def cut_point_lines(rule: Any, metadata: RuleMetadata) -> list[str]:
    """Say what a rule of cut points does."""
    if rule.n_outputs > _MAX_OUTPUTS:
        return _threshold_summary(rule.thresholds, rule.n_outputs, unit_of(rule, 0))
    lines = [line for m in range(rule.n_outputs) for line in _output_lines(rule, m, metadata)]
    if not rule.multioutput:
        return lines
    names = rule.output_names or range(rule.n_outputs)
    return [f"Output {name}: {line}" for name, line in zip(names, lines, strict=True)]


def _shared_threshold(rule: Any) -> list[str]:
    """Say which threshold binary outputs share behind their links, where it is one."""
    threshold = float(replace(rule, link=None, input="probabilities").thresholds[0])
    if rule.abstain_label is not None or not np.isfinite(threshold):
        return []
    kinds = ("recalibrated probabilities", "model's probabilities")
    behind, before = ("probabilities", rule.schema.input.plural) if rule.schema.input.is_logits else kinds
    return [f"One threshold for all outputs, {threshold:.4g} on their {behind}; thresholds on the {before}:"]


def _is_same_map(rule: Any) -> bool:
    """Whether the rule is of logits that one map of all outputs takes to probabilities."""
    link = rule.link
    if not rule.schema.input.is_logits:
        return False
    return bool((link.temperature == link.temperature[0]).all() and (link.bias == link.bias[0]).all())


def _same_labels(rule: Any) -> bool:
    first = rule.classes[0]
    return all(labels is first or labels.tolist() == first.tolist() for labels in rule.classes)


def _output_lines(rule: Any, m: int, metadata: RuleMetadata) -> list[str]:
    """Say what is decided about output m, by its form."""
    labels = [repr(label) for label in python_labels(rule.classes[m])]
    abstain = None if rule.abstain_label is None else repr(rule.abstain_label)
    places = list(range(len(labels))) if len(labels) == 2 or abstain else scale_places(rule, m, metadata)
    ordered = [labels[place] for place in places]
    if rule.ordinal_map is not None and rule.is_flat:
        return [_intervals_sentence(rule, labels if abstain is None else [*labels, f"abstain: {abstain}"])]
    match form_of(rule, m, metadata):
        case Threshold() as form:
            return [_threshold_sentence(form, unit_of(rule, m), *labels)]
        case Regions(regions):
            return [_regions_sentence(regions, unit_of(rule, m), labels[1], str(abstain))]
        case ScoreCuts(cut_points):
            return [_score_sentence(cut_points, unit_of(rule, m), labels)]
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


class Unit(NamedTuple):
    """What thresholds are of: the noun, and the temperature of the map of logits, None of probabilities."""

    noun: str
    temperature: float | None = None

    def number(self, value: float) -> str:
        """Return a number of this unit, with four digits; six if it is large, as scores may be."""
        if self.temperature is None:
            return f"{value:.4g}"
        if abs(value) * self.temperature < _MIN_LOG_ODDS:
            return "0"
        return f"{value:.6g}" if abs(value) >= _LARGE else f"{value:.4g}"


def unit_of(rule: Any, m: int) -> Unit:
    """Return the unit of the thresholds of output m."""
    row_input = rule.schema.input
    if not row_input.is_logits:
        return Unit(row_input.noun)
    return Unit(row_input.noun, np.inf if rule.link is None else float(rule.link.temperature[m]))


def _threshold_sentence(form: Threshold, unit: Unit, negative: str, positive: str) -> str:
    threshold, noun = form.value, unit.noun
    if np.isnan(threshold):
        below = unit.number(float(np.nextafter(form.last, np.inf)))
        return f"Predict {positive} when its {noun} is below {below} (inverted threshold), else {negative}."
    if np.isinf(threshold):
        return f"Always predict {positive if threshold < 0 else negative}."
    return f"Predict {positive} when its {noun} exceeds {unit.number(threshold)}, else {negative}."


def _score_sentence(cuts: FloatArray, unit: Unit, labels: list[str]) -> str:
    """Say which class is predicted along one score, by its cut points."""
    ends = [-np.inf, *cuts.tolist(), np.inf]
    kept = [k for k in range(len(labels)) if ends[k] < ends[k + 1]]
    if len(kept) == 1:
        return f"Always predict {labels[kept[0]]}."
    parts = [f"{labels[k]} up to {unit.number(ends[k + 1])}" for k in kept[:-1]]
    never = [labels[k] for k in range(len(labels)) if k not in kept]
    unused = f" Never predicted: {', '.join(never)}." if never else ""
    return f"By the {unit.noun}: {', '.join(parts)}, {labels[kept[-1]]} above.{unused}"


def _intervals_sentence(rule: Any, decisions: list[str]) -> str:
    """Say what is decided along one score by losses behind its map to probabilities."""
    cuts, codes = bisect_score(lambda z: rule.decide(rule.read_rows(z))[:, 0], rule.ordinal_map)
    unit, said = unit_of(rule, 0), [decisions[code] for code in codes.tolist()]
    if len(said) == 1:
        return f"Always {said[0] if said[0].startswith('abstain') else f'predict {said[0]}'}."
    parts = [f"{decision} up to {unit.number(cut)}" for decision, cut in zip(said[:-1], cuts.tolist(), strict=True)]
    return f"By the {unit.noun}: {', '.join(parts)}, {said[-1]} above."


def _regions_sentence(regions: tuple[Region, ...], unit: Unit, positive: str, abstain: str) -> str:
    """Where a binary rule that may abstain does what, along the number of class 1."""
    decisions = [
        f"abstain: {abstain}" if repr(region.label) == abstain else f"predict {region.label!r}" for region in regions
    ]
    if len(regions) == 1:
        return f"Always {decisions[0]}."
    start = f"By the {unit.noun} of {positive}: up to {unit.number(regions[0].high)} {decisions[0]}; "
    if len(regions) == 2:
        return f"{start}above {decisions[1]}."
    return f"{start}from {unit.number(regions[2].low)} {decisions[2]}; in between {decisions[1]}."


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
    with np.errstate(over="ignore"):  # of losses near the largest double
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
    if schema.input.graded and not own_costs:  # what is said is in the unit of the score
        return []
    if link.of_logits:
        return _map_lines(link, schema, m, own_costs=own_costs)
    t = float(link.temperature[m])
    labels = [repr(label) for label in python_labels(schema.classes[m])]
    bias = link.bias[m, : len(labels)]
    if t == 1 and not (bias - bias[0]).any():
        return []
    effect = "equally extreme" if t == 1 else "less extreme" if t < 1 else "more extreme"
    with np.errstate(over="ignore"):  # more than any number is infinite odds
        odds = np.exp(bias[1] - bias[0])
    if len(labels) == 2:
        numbers = "The threshold applies" if schema.abstain_label is None else "These numbers apply"
        where = f"{numbers} to the model's probability; recalibration is already taken into account"
        where = "Probabilities are recalibrated first" if own_costs else where
        factor = f"odds of {labels[1]} times {odds:.4g}"
    else:
        where = "Probabilities are recalibrated first"
        factor = "factors " + _listed(labels, _factors(bias))
    return [f"{where} (temperature {t:.4g}, {effect}; {factor})."]


def _factors(bias: FloatArray) -> FloatArray:
    """Return what the link multiplies probabilities by, about 1."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(bias - bias.mean()))


def _map_lines(link: TemperatureScaling, schema: Schema, m: int, *, own_costs: bool) -> list[str]:
    """Say how the logits of output m are mapped to probabilities; thresholds of two classes need no map."""
    t, labels = float(link.temperature[m]), [repr(label) for label in python_labels(schema.classes[m])]
    bias, row_input = link.bias[m, : len(labels)], schema.input
    identical = t == 1 and not (bias - bias[0]).any()
    if len(labels) == 2 and not own_costs:
        return [] if identical else [_threshold_line(t, float(bias[1] - bias[0]), schema, labels)]
    if identical and row_input.graded:
        return [f"{_ODDS_LINE}."]
    if identical:
        return [] if row_input.kind == "log_proba" else [_softmax_line(row_input)]
    shifted = bool((bias - bias[0]).any())
    factors = f", factors {_listed(labels, _factors(bias))}" if shifted else ""
    if row_input.graded:
        return [f"{_ODDS_LINE}, recalibrated by a temperature of {t:.4g}{factors}."]
    return [f"{_mapped(row_input, shifted)} first (t = {t:.4g}{factors})."]


def _threshold_line(t: float, shift: float, schema: Schema, labels: list[str]) -> str:
    """Say that the threshold of two classes is of the number itself, and which map it accounts for."""
    row_input = schema.input
    numbers = "The threshold applies" if schema.abstain_label is None else "These numbers apply"
    both = " (of two columns, to their difference)" if row_input.is_scores and not schema.multioutput else ""
    sign = "-" if shift < 0 else "+"
    formula = f"{t:.4g} * {row_input.noun}" + (f" {sign} {abs(shift):.4g}" if shift else "")
    return f"{numbers} to the {row_input.noun} itself{both}; the probability of {labels[1]} is sigmoid({formula})."


def _mapped(row_input: Input, shifted: bool, function: str = "softmax") -> str:
    plural = row_input.plural.capitalize()
    return f"{plural} are mapped to probabilities by {function}(t * {_SINGULARS[row_input.kind]}{' + c' * shifted})"


def _softmax_line(row_input: Input) -> str:
    return f"{row_input.plural.capitalize()} are mapped to probabilities by softmax first."


def _summary_lines(rule: Any) -> list[str]:
    lines = []
    if rule.abstain_label is not None:
        text = f"{rule.n_outputs} outputs: predict the class with the lowest expected loss, or abstain"
        return [f"{text}: {rule.abstain_label!r}.", *_link_summary(rule)]
    binary = rule.n_classes == 2
    if binary.any():
        unit = Unit(rule.schema.input.noun, 1.0 if rule.schema.input.is_logits else None)
        lines += _threshold_summary(rule.thresholds[binary], int(binary.sum()), unit)
    if not binary.all():
        shared = "one table of losses" if rule.loss.n_outputs == 1 else "a table of losses for each output"
        form = shared.replace("table of losses", "set of class weights") if rule.loss.is_diagonal else shared
        lines.append(f"{int((~binary).sum())} outputs with more than two classes: lowest expected loss, {form}.")
    return [*lines, *_link_summary(rule)]


def _link_summary(rule: Any) -> list[str]:
    if rule.link is None:
        return []
    t, row_input = rule.link.temperature, rule.schema.input
    if row_input.is_logits:
        return _map_summary(rule)
    scale = "; thresholds apply to the model's probabilities" if (rule.n_classes == 2).any() else ""
    return [
        f"Probabilities are recalibrated first, for each output: temperatures {t.min():.4g} to {t.max():.4g}, median "
        f"{np.median(t):.4g}{scale}."
    ]


def _map_summary(rule: Any) -> list[str]:
    """Say how the logits of many outputs are mapped to probabilities."""
    t, row_input, binary = rule.link.temperature, rule.schema.input, rule.n_classes == 2
    shifted = bool((rule.link.bias - rule.link.bias[:, :1])[np.arange(rule.width) < rule.n_classes[:, None]].any())
    if (t == 1).all() and not shifted:
        return [] if binary.all() or row_input.kind == "log_proba" else [_softmax_line(row_input)]
    scale = f"; thresholds apply to the {row_input.plural} themselves" if binary.any() else ""
    function = "sigmoid" if binary.all() else "softmax"
    return [
        f"{_mapped(row_input, shifted, function)} first, for each output: t from {t.min():.4g} to {t.max():.4g}, "
        f"median {np.median(t):.4g}{scale}."
    ]


def _threshold_summary(thresholds: FloatArray, count: int, unit: Unit) -> list[str]:
    finite = thresholds[np.isfinite(thresholds)]
    lines = []
    if len(finite):
        low, high, middle = (unit.number(float(value)) for value in (finite.min(), finite.max(), np.median(finite)))
        lines.append(
            f"{count} binary outputs: predict class 1 when its {unit.noun} exceeds a threshold, {low} to {high}, "
            f"median {middle}."
        )
    for affected, effect in (
        (thresholds == np.inf, "never predict class 1"),
        (thresholds == -np.inf, "always predict class 1"),
        (np.isnan(thresholds), f"predict class 1 when its {unit.noun} is low"),
    ):
        if affected.any():
            lines.append(f"{int(affected.sum())} of {count} binary outputs {effect}.")
    return lines
