"""The form of a rule: threshold, regions, weights and bonuses, cut points or a table of losses.

All but thresholds, regions and cut points of a score refer to the recalibrated probabilities. Sentences are in
``describe.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.labels import python_labels
from ..data.classes import kept_order
from .decisions import bisect_regions
from .metadata import RuleMetadata, as_float

FloatArray = NDArray[np.float64]

_ROUNDING = 1e-12  # of the largest loss: what differs by less is no difference
_MAX_LOSS = 1e300  # of a rule by cut points: sums and differences of losses near the largest double overflow
_LARGEST_LOSS = 1e300  # twice as much is still a number


class Region(NamedTuple):
    """A label, and the smallest and the largest probability (log-odds, score) of class 1 at which it is predicted."""

    label: Any
    low: float
    high: float


class Threshold(NamedTuple):
    """Two classes: decisions if class 1 has probability 0 and 1, and the largest probability decided as 0 is."""

    at_zero: int
    at_one: int
    last: float

    @property
    def value(self) -> float:
        """Class 1 is predicted above it; -inf if it always is, inf if it never is, NaN if it is below a probability."""
        if self.at_zero == self.at_one:
            return -np.inf if self.at_one == 1 else np.inf
        return self.last if self.at_zero == 0 else np.nan


class Regions(NamedTuple):
    """Two classes and abstentions: what is predicted along the probability of class 1."""

    regions: tuple[Region, ...]


class CutPoints(NamedTuple):
    """Grades (K,) of the classes in column order, and ascending cut points (K - 1,) of the expected grade."""

    grades: FloatArray
    cut_points: FloatArray


class ScoreCuts(NamedTuple):
    """Ascending cut points (K - 1,) of one score: the class at position j is predicted if j of them are below it."""

    cut_points: FloatArray


class Weights(NamedTuple):
    """The largest weight * probability + bonus, (K,) each, is predicted; none of less than `least` if not None."""

    weights: FloatArray
    bonuses: FloatArray
    least: float | None


class LossTable(NamedTuple):
    """The decision of least expected loss, by losses (K, D), is predicted; D is K + 1 if the rule may abstain."""

    losses: FloatArray


def form_of(
    rule: Any, output: int, metadata: RuleMetadata | None = None
) -> Threshold | Weights | CutPoints | ScoreCuts | LossTable | Regions:
    """Return the simplest form of what a rule decides about an output."""
    k, extra = int(rule.n_classes[output]), rule.schema.n_extra
    score_cuts = rule.score_cuts(output)
    if score_cuts is not None:
        return ScoreCuts(score_cuts)
    if k == 2:
        if extra:
            return Regions(regions_of(rule, output))
        at_zero, at_one, last = (array[output] for array in rule.changes)
        return Threshold(int(at_zero), int(at_one), float(last))
    scale = None if extra else scale_of(rule, output, metadata)
    if scale is not None:
        return scale
    if rule.class_weight is None or rule.bonus is None:
        return LossTable(rule.loss.output(output).tensor()[0, :k, : k + extra])
    weight, bonus = (np.atleast_2d(values)[output] for values in (rule.class_weight, rule.bonus))
    return Weights(weight[:k], bonus[:k], float(bonus[-1]) if extra else None)


def weights_and_bonuses(rule: Any) -> tuple[FloatArray, FloatArray] | None:
    """Return weights (M, K) and bonuses (M, D) such that the largest weight * probability + bonus is predicted.

    D is K, and one more, the last, for abstentions if the rule may abstain. Padding is 0. None for a full loss.
    """
    if not rule.loss.is_diagonal:
        return None
    width, extra = rule.width, rule.schema.n_extra
    diagonal, offset = (np.broadcast_to(a, (rule.n_outputs, width + extra)) for a in rule.loss.arrays)
    # Weights have no scale: what may overflow is brought down.
    largest = np.maximum(np.abs(diagonal), np.abs(offset)).max(axis=1, keepdims=True)
    down = np.where(largest > _LARGEST_LOSS, 0.25, 1.0)
    weight, bonus = -diagonal * down, -offset * down
    weights, bonuses = np.zeros((rule.n_outputs, width)), np.zeros((rule.n_outputs, width + extra))
    for m, k in enumerate(rule.n_classes.tolist()):
        weight_of_classes, more = weight[m, :k], bonus[m, : k + extra]
        if k + extra == 2:  # a bonus of one of two classes is a weight of both
            weight_of_classes, more = weight_of_classes + more - more[::-1], np.zeros(2)
        weight_of_classes, more = readable_weights(weight_of_classes, more)
        weights[m, :k], bonuses[m, :k] = weight_of_classes, more[:k]
        bonuses[m, width:] = more[k:]
    return weights, bonuses


def readable_weights(weight: FloatArray, bonus: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return weights (K,) and bonuses (K,) or (K + 1,) that decide alike, in a scale that people can read.

    The smallest bonus of a class is 0 and the smallest weight 1, where all weights are positive.
    """
    bonus = bonus - bonus[: len(weight)].min()
    if (weight > 0).all():
        with np.errstate(over="ignore"):
            scaled = weight / weight.min(), bonus / weight.min()
        if all(np.isfinite(values).all() for values in scaled):
            return scaled
    return weight, bonus


def scale_places(rule: Any, m: int, metadata: RuleMetadata | None = None) -> list[int]:
    """Return the positions of the classes of output m from the lowest to the highest; as they stand without an order.

    The order is in the metadata of the rule, or of the one that it is a part of; numbers have their own.
    """
    labels = python_labels(rule.classes[m])
    kept = kept_order(rule.metadata if metadata is None else metadata, rule.classes)
    numbers = all(isinstance(label, (int, float)) for label in labels)
    scale = sorted(labels) if numbers else labels
    return [labels.index(label) for label in (scale if kept is None or kept[m] is None else kept[m] or ())]


def scale_of(rule: Any, m: int, metadata: RuleMetadata | None = None) -> CutPoints | None:
    """Return grades and cut points of output m, if its rule rounds the expected grade; None for any other rule."""
    labels, loss = python_labels(rule.classes[m]), rule.loss.output(m)
    k = len(labels)
    # Two classes have a threshold, and wider diagonals no cut points.
    if k == 2 or rule.abstain_label is not None or (k > 3 and loss.is_diagonal):
        return None
    places = scale_places(rule, m, metadata)
    scale = _cut_points(loss.tensor()[0][np.ix_(places, places)], [labels[place] for place in places])
    return None if scale is None else scale._replace(grades=scale.grades[np.argsort(places)])


def _cut_points(full: FloatArray, labels: list[Any]) -> CutPoints | None:
    """Return grades (K,) and ascending cut points (K - 1,) of the expected grade, where the loss decides by these.

    It does if it falls from class to class by a number of the class less one of the true class, as squared errors and
    quadratic kappa have it. Grades have no scale: they are the labels where these are numbers as far apart, else they
    go from 0 to K - 1.
    """
    if np.abs(full).max() > _MAX_LOSS:
        return None
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
    return CutPoints(start + grades * factor, start + cuts * factor)


def regions_of(rule: Any, m: int) -> tuple[Region, ...]:
    """Return what output m, of two classes, predicts along the probability of class 1 that the model gives."""
    labels = [*python_labels(rule.classes[m]), rule.abstain_label]
    if rule.abstain_label is None:
        first, last, below = (array[m] for array in rule.changes)
        first, last, above = int(first), int(last), float(np.nextafter(below, np.inf))
    else:
        first, last, below, above = bisect_regions(rule.loss, None if rule.link is None else rule.link.arrays, m)
    lowest, highest = (-np.inf, np.inf) if rule.schema.input.is_logits else (0.0, 1.0)
    if first == last:
        return (Region(labels[first], lowest, highest),)
    after, before = float(np.nextafter(below, highest)), float(np.nextafter(above, lowest))
    ends = (Region(labels[first], lowest, float(below)), Region(labels[last], float(above), highest))
    if after >= above:
        return ends
    (between,) = {0, 1, 2} - {first, last}
    return (ends[0], Region(labels[between], after, before), ends[1])
