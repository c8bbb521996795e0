"""Values of the worst of several sensitive groups, and of the largest gap between two of them, with intervals.

Both are the largest of several numbers, of which any might be the largest among all rows like those given. So the
interval of the largest reaches as far as that of any of them does to one side, and to the other as far as the interval
of each does if all of them are to hold at once. Must not know what users hand over, nor rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter
from ..data.sources.memory import MemorySource
from ..metrics.aim import Aim
from ..oracles.problem import InMemory
from .judging import Decisions, Judged, judge, judge_pair
from .results import Comparison, Estimate
from .uncertainty import Spread

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


def rows_of_groups(
    source: MemorySource, names: Sequence[Any], codes: IntArray, both: Sequence[Decisions]
) -> list[GroupRows]:
    """Return the rows of every group that has labels.

    Parameters
    ----------
    source : MemorySource
        Of M outputs.
    names : sequence
        Of the groups.
    codes : ndarray of shape (N,)
        The group of each row.
    both : two Decisions
        About the outputs once for every group, one group after the other.
    """
    found, n_outputs = [], source.schema.n_outputs
    for g, name in enumerate(names):
        rows = np.flatnonzero(codes == g)
        some = MemorySource(source.take(rows), source.schema, source.passes)
        if some.class_weights.sum() > 0:
            outputs = slice(g * n_outputs, (g + 1) * n_outputs)
            first, second = (own.take(rows).of_outputs(outputs) for own in both)
            found.append(GroupRows(name, rows, some, (first, second)))
    return found


@dataclass(frozen=True, eq=False)
class _Part:
    """One of several numbers of two sides, the rule and its baseline: values, half intervals, and of the difference."""

    values: FloatArray  # (2,)
    halves: FloatArray  # (3,)
    widened: FloatArray  # (3,), if the intervals of all parts are to hold at once


def _compare_largest(parts: Sequence[_Part], low: float, high: float, sign: float = 1.0) -> Comparison:
    """Compare the largest of several numbers (the smallest, with the sign -1) with that of the baseline."""
    values, halves, widened = (np.stack([getattr(part, name) for part in parts]) for name in _Part.__annotations__)
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


# -------------------------------------------------------------------------------------------------------------- groups


def compare_worst(groups: Sequence[GroupRows], aim: Aim) -> Comparison:
    """Compare the smallest value of a metric over groups."""
    parts = []
    for one in groups:
        problem = InMemory(one.source, aim)
        spread = Spread.of(problem)
        pair = judge_pair(problem, list(one.both), spread)
        errors = np.array(pair.errors)
        parts.append(
            _Part(
                np.array(pair.values),
                errors * _quantile(spread.n_independent, 1),
                errors * _quantile(spread.n_independent, len(groups)),
            )
        )
    return _compare_largest(parts, *aim.metric.range, sign=-1.0)


def compare_gap(source: MemorySource, groups: Sequence[GroupRows], aims: Sequence[Aim], name: str) -> Comparison:
    """Compare the largest difference of any of some metrics between two groups."""
    if len(groups) < 2:
        raise InvalidParameter(
            "metrics",
            problem=f"metrics: {name} compares groups, but only {groups[0].name!r} has labelled rows",
            remedy="provide labelled rows of at least two groups",
        )
    spread = Spread.of_rows_in(source)
    n_pairs = len(aims) * len(groups) * (len(groups) - 1) // 2
    parts = []
    for aim in aims:
        judged = [_judged_group(one, aim, name) for one in groups]
        for g, h in permutations(range(len(groups)), 2):
            errors = [_error(spread, [groups[g].rows, groups[h].rows], [judged[g][s], judged[h][s]]) for s in range(2)]
            change = [_difference(*judged[g]), _difference(*judged[h])]
            errors.append(_error(spread, [groups[g].rows, groups[h].rows], change))
            free = min(Spread.of_rows_in(groups[one].source).n_independent for one in (g, h))
            values = np.array([judged[g][s].value - judged[h][s].value for s in range(2)])
            halves = np.array(errors)
            parts.append(_Part(values, halves * _quantile(free, 1), halves * _quantile(free, n_pairs)))
    low = min(aim.metric.range[0] for aim in aims)
    high = max(aim.metric.range[1] for aim in aims)
    return _compare_largest(parts, 0.0, high - low)


def _judged_group(one: GroupRows, aim: Aim, name: str) -> tuple[Judged, Judged]:
    problem = InMemory(one.source, aim)
    spread = Spread.of(problem)
    first, second = (judge(problem, own, spread) for own in one.both)
    if not first.moves:
        raise InvalidParameter(
            "metrics",
            problem=(
                f"metrics: {name} is the same whatever is predicted in the group {one.name!r}, because no "
                "row of it is of a class that it is about"
            ),
            remedy="leave the metric out, or provide such rows",
        )
    return first, second


def _difference(one: Judged, other: Judged) -> Judged:
    return Judged(one.value - other.value, one.rows - other.rows, one.unseen - other.unseen)


def _error(spread: Spread, rows: Sequence[IntArray], judged: Sequence[Judged]) -> float:
    """Standard error of the difference of a metric between two groups, whose rows may belong together."""
    total = np.zeros(int(max(own.max() for own in rows)) + 1)
    for sign, own, one in zip((1.0, -1.0), rows, judged, strict=True):
        total[own] = sign * one.rows
    some = np.concatenate(rows)
    unseen = float(np.linalg.norm(np.concatenate([one.unseen.ravel() for one in judged])))
    return float(np.hypot(spread.of_rows(some).error(total[some]), unseen))


def _quantile(n_independent: float, n_intervals: int) -> float:
    """Quantile of Student's distribution for the half of a 95 % interval, if so many are to hold at once."""
    from scipy.special import stdtrit

    return float(stdtrit(max(n_independent - 1.0, 1.0), 1.0 - _ERROR / (2 * n_intervals)))
