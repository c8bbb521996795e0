"""The value of the worst sensitive group, and the largest gap between two groups, with intervals.

Any group may be the worst in the population. So an interval extends on one side as far as that of any group, and on
the other as far as the intervals of all groups that hold at once. Must not know user input, nor rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter
from ..data.sensitive import SensitiveFeatures
from ..data.sources.memory import MemorySource
from ..inference.decisions import Decisions
from ..inference.judge import Judge, Scored
from ..inference.results import Comparison, Estimate
from ..inference.spread import Spread
from ..metrics.aim import AveragedMetric
from ..oracles.problem import InMemory

__all__ = ["GroupRows", "compare_gap", "compare_worst", "rows_of_groups"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_ERROR = 0.05  # of a 95 % interval


@dataclass(frozen=True, eq=False)
class GroupRows:
    """The rows of one sensitive group, and what the rule and its baseline decide about them."""

    name: Any
    rows: IntArray
    source: MemorySource
    both: tuple[Decisions, Decisions]


def rows_of_groups(source: MemorySource, sensitive: SensitiveFeatures, both: Sequence[Decisions]) -> list[GroupRows]:
    """Return the rows of every group that has labels, with decisions about the outputs of that group.

    `both` decide the outputs once for every group, one group after the other.
    """
    groups, n_outputs = [], source.schema.n_outputs
    for g, name in enumerate(sensitive.groups.names):
        rows = np.flatnonzero(sensitive.codes == g)
        of_group = MemorySource(source.take(rows), source.schema, source.passes)
        if of_group.class_weights.sum() > 0:
            outputs = slice(g * n_outputs, (g + 1) * n_outputs)
            first, second = (decisions.take(rows).of_outputs(outputs) for decisions in both)
            groups.append(GroupRows(name, rows, of_group, (first, second)))
    return groups


@dataclass(frozen=True, eq=False)
class _Part:
    """One of several numbers of two sides, the rule and its baseline: values, half intervals, and of the difference."""

    values: FloatArray  # (2,)
    halves: FloatArray  # (3,)
    widened: FloatArray  # (3,), if the intervals of all parts are to hold at once

    @classmethod
    def of(cls, values: Sequence[float], errors: Sequence[float], n_effective: float, n_intervals: int) -> _Part:
        """Return the part with Student's quantiles, those of all intervals by Bonferroni's correction."""
        from scipy.special import stdtrit

        free = max(n_effective - 1.0, 1.0)
        single, joint = (float(stdtrit(free, 1.0 - _ERROR / (2 * n))) for n in (1, n_intervals))
        return cls(np.array(values), np.array(errors) * single, np.array(errors) * joint)


def _compare_largest(parts: Sequence[_Part], low: float, high: float, sign: float = 1.0) -> Comparison:
    """Compare the largest of several numbers (the smallest, with the sign -1) with that of the baseline."""
    values, halves, widened = (np.stack([getattr(p, name) for p in parts]) for name in ("values", "halves", "widened"))
    values = sign * values
    largest = values.max(axis=0)
    ends = [(float((values[:, s] - widened[:, s]).max()), float((values[:, s] + halves[:, s]).max())) for s in range(2)]
    change, bounds = float(largest[0] - largest[1]), _change(values, halves, widened, ends)

    def estimate(value: float, interval: tuple[float, float], least: float, most: float) -> Estimate:
        near, far = sorted((sign * interval[0], sign * interval[1]))
        value = sign * value
        return Estimate(value, max(min(near, value), min(value, least)), min(max(far, value), max(value, most)))

    return Comparison(
        estimate(float(largest[0]), ends[0], low, high),
        estimate(float(largest[1]), ends[1], low, high),
        estimate(change, bounds, low - high, high - low),
    )


def _change(
    values: FloatArray, halves: FloatArray, widened: FloatArray, ends: list[tuple[float, float]]
) -> tuple[float, float]:
    """Interval of the difference of two largest numbers.

    Where it is plain which number is the largest of either side, it is that of their difference. Else it holds the
    differences of all that might be, as the difference lies between those at the largest of one side and of the other;
    but no more than the ends of the two intervals allow.
    """
    near, far = values - widened[:, :2], values + widened[:, :2]
    possible = [np.flatnonzero(far[:, s] >= near[:, s].max()) for s in range(2)]
    first, second = (int(values[:, s].argmax()) for s in range(2))
    change = float(values[first, 0] - values[second, 1])
    if max(map(len, possible)) == 1:
        half = halves[first, 2] if first == second else float(np.hypot(halves[first, 0], halves[second, 1]))
        return change - half, change + half
    differences = values[:, 0] - values[:, 1]
    low = float((differences - halves[:, 2])[possible[1]].min())
    high = float((differences + halves[:, 2])[possible[0]].max())
    return max(low, ends[0][0] - ends[1][1]), min(high, ends[0][1] - ends[1][0])


def compare_worst(groups: Sequence[GroupRows], aim: AveragedMetric) -> Comparison:
    """Compare the smallest value of a metric over groups."""
    parts = []
    for group in groups:
        judge = Judge(InMemory(group.source, aim))
        values, errors = judge.pair(group.both)
        parts.append(_Part.of(values, errors, judge.spread.n_independent, len(groups)))
    return _compare_largest(parts, *aim.metric.range, sign=-1.0)


def compare_gap(
    source: MemorySource, groups: Sequence[GroupRows], aims: Sequence[AveragedMetric], name: str
) -> Comparison:
    """Compare the largest difference of any of some metrics between two groups."""
    if len(groups) < 2:
        raise InvalidParameter(
            "metrics",
            problem=f"metrics: {name} compares groups, but only {groups[0].name!r} has labelled rows",
            remedy="provide labelled rows of at least two groups",
        )
    spread = Spread.of(source)
    n_pairs = len(aims) * len(groups) * (len(groups) - 1) // 2
    parts = []
    for aim in aims:
        scores = [_score_group(group, aim, name) for group in groups]
        for g, h in permutations(range(len(groups)), 2):
            pair = [
                (scores[g][0], scores[h][0]),
                (scores[g][1], scores[h][1]),
                (_difference(*scores[g]), _difference(*scores[h])),
            ]
            errors = [_error(spread, (groups[g].rows, groups[h].rows), sides) for sides in pair]
            values = [first.value - second.value for first, second in pair[:2]]
            n_effective = min(scores[g][0].n_effective, scores[h][0].n_effective)
            parts.append(_Part.of(values, errors, n_effective, n_pairs))
    low = min(aim.metric.range[0] for aim in aims)
    high = max(aim.metric.range[1] for aim in aims)
    return _compare_largest(parts, 0.0, high - low)


def _score_group(group: GroupRows, aim: AveragedMetric, name: str) -> tuple[Scored, Scored]:
    judge = Judge(InMemory(group.source, aim))
    first, second = (judge.score(decisions, unshown=True) for decisions in group.both)
    if not first.can_move:
        raise InvalidParameter(
            "metrics",
            problem=(
                f"metrics: {name} is the same for all predictions in the group {group.name!r}, because none "
                "of its rows has a class that the metric depends on"
            ),
            remedy="leave the metric out, or provide such rows",
        )
    return first, second


def _difference(first: Scored, second: Scored) -> Scored:
    return replace(
        first,
        value=first.value - second.value,
        influence=first.influence - second.influence,
        unshown=first.unshown - second.unshown,
    )


def _error(spread: Spread, rows: Sequence[IntArray], scores: Sequence[Scored]) -> float:
    """Standard error of the difference of a metric between two groups, whose rows may be in the same clusters."""
    influence = np.concatenate([scores[0].influence, -scores[1].influence])
    unshown = float(np.linalg.norm(np.concatenate([score.unshown.ravel() for score in scores])))
    return float(np.hypot(spread.take(np.concatenate(rows)).error(influence), unshown))
