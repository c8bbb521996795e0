"""Rules with one parameter, a threshold on a score, and the thresholds that tests in a fixed sequence certify.

The thresholds are fixed by the scores of other rows. The rows above one are then a sample of the population above it,
and the successes among its trials are binomial, whatever the distribution. Must not know user input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from math import ceil, log, sqrt

import numpy as np
from numpy.typing import NDArray

from ...goals.proportions import Proportion
from ...inference.exact_tests import certify_in_sequence, largest_p_values

__all__ = ["Chain", "End", "ScoreFamily", "certify_thresholds", "safest_end"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
Count = Callable[[FloatArray, int | None], NDArray[np.int64]]

# The first rank leaves so many rows above the threshold that successes alone have a p-value of the square of the level;
# further heads, each with a share of the level of its own, are at 4, 16, 64, ... times this rank. On synthetic scores
# whose precision is not monotone, recall at a floor of 0.8 was within 0.01 of the best of all spacings tried.
_HEAD_FACTOR = 4
_FURTHER_SHARE = 0.25  # of the level of each further head, relative to that of the first


class End(Enum):
    """Where thresholds are most likely to keep a bound: high ones or low ones."""

    TOP = "top"
    BOTTOM = "bottom"


@dataclass(frozen=True, eq=False)
class ScoreFamily:
    """Rows whose decision is one of two, by whether a score is above a threshold.

    Parameters
    ----------
    score : ndarray of shape (N,)
    code : ndarray of shape (N,), int
        True class.
    above, below : ndarray of shape (N,), int
        Decision if the score is above the threshold, and otherwise.
    shape : (int, int)
        Numbers of classes and of decisions.
    group : ndarray of shape (N,), int, optional
        Sensitive group.
    """

    score: FloatArray
    code: IntArray
    above: IntArray
    below: IntArray
    shape: tuple[int, int]
    group: IntArray | None = None

    def count(self, thresholds: FloatArray, group: int | None = None) -> NDArray[np.int64]:
        """Return the rows of each true class and decision (T, K, D) at ascending thresholds, of one group or all."""
        rows = slice(None) if group is None else np.flatnonzero(self.group == group)
        n_below = np.searchsorted(thresholds, self.score[rows], side="left")  # thresholds that are below the score
        cells = [self._cells(n_below, self.code[rows], decision[rows], len(thresholds)) for decision in self._sides]
        above, below = (np.cumsum(part[::-1], axis=0)[::-1] for part in cells)
        return np.asarray(above[1:] + below[0] - below[1:])

    @property
    def _sides(self) -> tuple[IntArray, IntArray]:
        return self.above, self.below

    def _cells(self, place: IntArray, code: IntArray, decision: IntArray, n: int) -> NDArray[np.int64]:
        k, d = self.shape
        flat = np.bincount((place * k + code) * d + decision, minlength=(n + 1) * k * d)
        return flat.reshape(n + 1, k, d)


@dataclass(frozen=True, eq=False)
class Chain:
    """Ascending thresholds (T,), which of them are certified, and their counted cells (T, K, D) of all rows."""

    thresholds: FloatArray
    certified: BoolArray
    cells: NDArray[np.int64]


def safest_end(proportion: Proportion, above: BoolArray) -> End | None:
    """Return the end at which a proportion is most likely to keep its bound; None if that is between the ends.

    `above` (D,) says which decisions are those of rows above the threshold.
    """
    is_floor = proportion.is_floor
    trials_above, trials_below = (bool(proportion.trials[:, side].any()) for side in (above, ~above))
    hits_above, hits_below = (bool(proportion.successes[:, side].any()) for side in (above, ~above))
    if trials_above and trials_below:
        if hits_above and hits_below:
            return None
        rises = hits_above  # as the threshold falls
        return End.BOTTOM if rises == is_floor else End.TOP
    # Of the rows on one side alone, those farthest from the threshold are the most certain ones.
    return End.TOP if trials_above == is_floor else End.BOTTOM


def certify_thresholds(
    count: Count, n_rows: int, proportions: Sequence[Proportion], ends: Sequence[End], others: FloatArray, delta: float
) -> Chain:
    """Certify thresholds that are fixed by the scores of other rows, so that all keep all bounds but for delta.

    `count` returns the cells of `n_rows` tested rows, see :meth:`ScoreFamily.count`. Bounds are tested from the end at
    which they are safest; if there are some of either end, with half of delta each, and only thresholds that both
    certify are certified.
    """
    used = [end for end in End if end in ends]
    level = delta / len(used)
    tested = {end: [p for p, safest in zip(proportions, ends, strict=True) if safest is end] for end in used}
    rate = len(others) / max(n_rows, 1)
    firsts = {end: round(rate * max(map(partial(_head, level), tested[end]))) for end in used}
    grid = _Grid.of(others, firsts)
    cells_by_group = {g: count(grid.thresholds, g) for g in {None, *(p.group for p in proportions)}}
    certified = np.ones(len(grid.thresholds), dtype=bool)
    for end in used:
        p_values = largest_p_values(tested[end], [cells_by_group[p.group] for p in tested[end]])
        step = -1 if end is End.TOP else 1  # thresholds ascend
        shares = level * grid.level_shares(end)
        certified &= certify_in_sequence(p_values[::step], shares[::step])[::step]
    return Chain(grid.thresholds, certified, cells_by_group[None])


def _head(level: float, proportion: Proportion) -> int:
    """Return how many rows must be on one side of a threshold for a p-value of the square of the level.

    That is if all are successes. 0 if the trials are on both sides, so that there are as many at any threshold.
    """
    columns = proportion.trials.any(axis=0)
    if columns.all():
        return 0
    bound = proportion.bound if proportion.is_floor else 1.0 - proportion.bound
    n_trials = ceil(2 * log(level) / log(bound)) if 0 < bound < 1 else 1
    of_all_classes = bool(proportion.trials.any(axis=1).all())
    return n_trials if of_all_classes else n_trials * len(proportion.trials)


@dataclass(frozen=True, eq=False)
class _Grid:
    """Ascending thresholds (T,), and the positions of heads, which have a share of the level, by end."""

    thresholds: FloatArray
    heads: dict[End, IntArray]

    @classmethod
    def of(cls, others: FloatArray, firsts: Mapping[End, int]) -> _Grid:
        """Place thresholds at ranks of other rows that grow by their square root.

        `firsts` are the first ranks of heads, from each end that tests begin at; 0: they begin at the very end.
        """
        scores, values = np.sort(others), np.unique(others)
        n, lowest = len(scores), np.nextafter(values[0], -np.inf)
        middles = np.concatenate([[lowest], (values[1:] + values[:-1]) / 2, [values[-1]]])

        def places(end: End, ranks: IntArray) -> IntArray:
            """Return the positions of thresholds that have so many of the other rows above or below them."""
            if end is End.TOP:
                return np.searchsorted(values, scores[n - ranks], side="left")
            return np.searchsorted(values, scores[ranks - 1], side="right")

        heads = {end: _head_ranks(first, n) for end, first in firsts.items()}
        ranks = {End.TOP: _ranks(n)} | {end: np.append(_ranks(n), at) for end, at in heads.items() if len(at)}
        kept = np.unique(np.concatenate([[0], *(places(end, some) for end, some in ranks.items())]))
        ends = {End.TOP: len(kept) - 1, End.BOTTOM: 0}
        positions = {
            end: np.searchsorted(kept, places(end, at)) if len(at) else np.array([ends[end]])
            for end, at in heads.items()
        }
        return cls(middles[kept], positions)

    def level_shares(self, end: End) -> FloatArray:
        """Return the share of the level that each threshold begins with, (T,)."""
        first, *further = dict.fromkeys(self.heads[end].tolist())
        shares = np.zeros(len(self.thresholds))
        shares[further] = _FURTHER_SHARE
        shares[first] = 1.0
        return np.asarray(shares / shares.sum())


def _ranks(n: int) -> IntArray:
    """Return ranks of n rows, each further than the one before by its square root."""
    ranks = [1]
    while ranks[-1] + int(sqrt(ranks[-1])) <= n:
        ranks.append(ranks[-1] + int(sqrt(ranks[-1])))
    return np.array(ranks, dtype=np.intp)


def _head_ranks(first: int, n: int) -> IntArray:
    """Return the ranks of heads among n rows, from the first on; none if the first is 0."""
    if first == 0:
        return np.empty(0, dtype=np.intp)
    ranks = [min(first, n)]
    while ranks[-1] * _HEAD_FACTOR <= n // 2:
        ranks.append(ranks[-1] * _HEAD_FACTOR)
    return np.array(ranks, dtype=np.intp)
