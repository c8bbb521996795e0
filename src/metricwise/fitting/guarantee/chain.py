"""Rules with one parameter, a threshold on a score, and the thresholds that tests in a fixed sequence certify.

The thresholds are fixed by the scores of other rows. The rows above one are then a sample of the population above it,
and the successes among its trials are binomial, whatever the distribution. Must not know user input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil, log, sqrt

import numpy as np
from numpy.typing import NDArray

from ...goals.proportions import Proportion
from ...inference.exact_tests import certify_in_sequence, largest_p_values

__all__ = ["Chain", "End", "OtherRows", "ScoreFamily", "certify_thresholds", "safest_end"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
Count = Callable[[FloatArray, int | None], NDArray[np.int64]]

# Heads are thresholds with a share of the level of their own, so that tests can begin there. The first one leaves so
# many rows above it that successes alone have a p-value of the square of the level. A quarter of the level is for heads
# at 1, 4, 16, ... times this rank, a quarter for heads by steps of an eighth, which meet bumps, and half for the rank
# that is safest by the probabilities. On four synthetic worlds that are not in benchmarks/guarantees, with tempered
# probabilities and 500, 1,000 and 4,000 rows, recall was .327, .401, .465; .290, .357, .416 with the first kind alone.
_SPARSE_FACTOR, _SPARSE_WEIGHT = 4.0, 1.0
_DENSE_FACTOR, _DENSE_WEIGHT = 1.12, 1.0
_SAFEST_WEIGHT = 2.0
_ROUNDING = 1e-12  # of scores of about 1
_FURTHER_SHARE = 0.25  # of the sparse heads, relative to the first one


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

    def is_clear_of(self, thresholds: FloatArray) -> bool:
        """Whether no score is so near to one of ascending thresholds that rounding could decide the row otherwise."""
        after = np.searchsorted(thresholds, self.score)
        near = np.minimum(
            np.abs(self.score - thresholds[np.minimum(after, len(thresholds) - 1)]),
            np.abs(self.score - thresholds[np.maximum(after - 1, 0)]),
        )
        return bool((near > _ROUNDING * np.maximum(np.abs(self.score), 1.0)).all())

    @property
    def _sides(self) -> tuple[IntArray, IntArray]:
        return self.above, self.below

    def _cells(self, place: IntArray, code: IntArray, decision: IntArray, n: int) -> NDArray[np.int64]:
        k, d = self.shape
        flat = np.bincount((place * k + code) * d + decision, minlength=(n + 1) * k * d)
        return flat.reshape(n + 1, k, d)


@dataclass(frozen=True, eq=False)
class OtherRows:
    """Rows that place thresholds: scores (N,) and, if known, the probability that a row above one is a success."""

    score: FloatArray
    success: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Chain:
    """Ascending thresholds (T,), which of them are certified, and their counted cells (T, K, D), by group.

    Those of all rows are of the group None.
    """

    thresholds: FloatArray
    certified: BoolArray
    cells: Mapping[int | None, NDArray[np.int64]]


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
    count: Count, n_rows: int, proportions: Sequence[Proportion], ends: Sequence[End], others: OtherRows, delta: float
) -> Chain:
    """Certify thresholds that are fixed by the scores of other rows, so that all keep all bounds but for delta.

    `count` returns the cells of `n_rows` tested rows, see :meth:`ScoreFamily.count`. Bounds are tested from the end at
    which they are safest; if there are some of either end, with half of delta each, and only thresholds that both
    certify are certified. How rows are counted must not depend on labels.
    """
    used = [end for end in End if end in ends]
    level = delta / len(used)
    tested = {end: [p for p, safest in zip(proportions, ends, strict=True) if safest is end] for end in used}
    heads = {end: _Heads.of(end, tested[end], others, n_rows, level) for end in used}
    grid = _Grid.of(others.score, heads)
    cells_by_group = {g: count(grid.thresholds, g) for g in {None, *(p.group for p in proportions)}}
    certified = np.ones(len(grid.thresholds), dtype=bool)
    for end in used:
        p_values = largest_p_values(tested[end], [cells_by_group[p.group] for p in tested[end]])
        step = -1 if end is End.TOP else 1  # thresholds ascend
        shares = level * grid.level_shares(end)
        certified &= certify_in_sequence(p_values[::step], shares[::step])[::step]
    return Chain(grid.thresholds, certified, cells_by_group)


@dataclass(frozen=True, eq=False)
class _Heads:
    """Ranks of other rows at which tests may begin, from one end, and their shares of the level, which sum to 1.

    Without ranks all tests begin at the very end.
    """

    ranks: IntArray
    shares: FloatArray

    @classmethod
    def of(cls, end: End, proportions: Sequence[Proportion], others: OtherRows, n_rows: int, level: float) -> _Heads:
        """Place the heads of bounds whose trials are on one side of the threshold; others need none."""
        one_sided = [p for p in proportions if not p.trials.any(axis=0).all()]
        n = len(others.score)
        first = round(n / max(n_rows, 1) * max((_trials_needed(level, p) for p in one_sided), default=0))
        if first == 0:
            return cls(np.empty(0, dtype=np.intp), np.ones(1))
        sparse, dense = (_growing(min(first, n), n, factor) for factor in (_SPARSE_FACTOR, _DENSE_FACTOR))
        kinds = [
            (_SPARSE_WEIGHT, sparse, np.append(1.0, np.full(len(sparse) - 1, _FURTHER_SHARE))),
            (_DENSE_WEIGHT, dense, np.ones(len(dense))),
        ]
        floors = [p.bound for p in one_sided if p.is_floor]
        if floors and others.success is not None:
            kinds.append((_SAFEST_WEIGHT, np.array([_safest_rank(end, others, max(floors))]), np.ones(1)))
        total = sum(weight for weight, _, _ in kinds)
        shares = [weight / total * parts / parts.sum() for weight, _, parts in kinds]
        return cls(np.concatenate([ranks for _, ranks, _ in kinds]), np.concatenate(shares))


def _trials_needed(level: float, proportion: Proportion) -> int:
    """Return how many rows above a threshold, if all are successes, have a p-value of the square of the level."""
    bound = proportion.bound if proportion.is_floor else 1.0 - proportion.bound
    n_trials = ceil(2 * log(level) / log(bound)) if 0 < bound < 1 else 1
    of_all_classes = bool(proportion.trials.any(axis=1).all())
    return n_trials if of_all_classes else n_trials * len(proportion.trials)


def _growing(first: int, n: int, factor: float) -> IntArray:
    """Return ranks from the first on, each a multiple of the one before, up to half of n rows."""
    n_steps = max(0, int(log(n / 2 / first) / log(factor))) if first < n / 2 else 0
    return np.unique((first * factor ** np.arange(n_steps + 1)).astype(np.intp))


def _safest_rank(end: End, others: OtherRows, floor: float) -> int:
    """Return the rank from an end down to which successes are expected to exceed a floor by most standard errors."""
    assert others.success is not None
    order = np.argsort(others.score, kind="stable")
    success = others.success[order[::-1]] if end is End.TOP else 1.0 - others.success[order]
    ranks = np.arange(1, len(success) + 1)
    return int(np.argmax((np.cumsum(success) / ranks - floor) * np.sqrt(ranks))) + 1


@dataclass(frozen=True, eq=False)
class _Grid:
    """Ascending thresholds (T,), and by end the positions of heads with their shares of the level."""

    thresholds: FloatArray
    heads: Mapping[End, tuple[IntArray, FloatArray]]

    @classmethod
    def of(cls, others: FloatArray, heads: Mapping[End, _Heads]) -> _Grid:
        """Place thresholds at ranks of other rows that grow by their square root, and at heads."""
        scores, values = np.sort(others), np.unique(others)
        n, lowest = len(scores), np.nextafter(values[0], -np.inf)
        middles = (values[1:] + values[:-1]) / 2
        middles = np.where(middles < values[1:], middles, values[:-1])  # between neighbouring numbers there is none
        middles = np.concatenate([[lowest], middles, [values[-1]]])

        def places(end: End, ranks: IntArray) -> IntArray:
            """Return the positions of thresholds that have so many of the other rows above or below them."""
            if end is End.TOP:
                return np.searchsorted(values, scores[n - ranks], side="left")
            return np.searchsorted(values, scores[ranks - 1], side="right")

        at_heads = {end: places(end, head.ranks) for end, head in heads.items()}
        steps = {End.TOP, *(end for end, head in heads.items() if len(head.ranks))}
        kept = np.unique(np.concatenate([[0], *(places(end, _ranks(n)) for end in steps), *at_heads.values()]))
        ends = {End.TOP: len(kept) - 1, End.BOTTOM: 0}
        positions = {
            end: np.searchsorted(kept, place) if len(place) else np.array([ends[end]])
            for end, place in at_heads.items()
        }
        return cls(middles[kept], {end: (positions[end], head.shares) for end, head in heads.items()})

    def level_shares(self, end: End) -> FloatArray:
        """Return the share of the level that each threshold begins with, (T,)."""
        shares = np.zeros(len(self.thresholds))
        np.add.at(shares, *self.heads[end])
        return shares


def _ranks(n: int) -> IntArray:
    """Return ranks of n rows, each further than the one before by its square root."""
    ranks = [1]
    while ranks[-1] + int(sqrt(ranks[-1])) <= n:
        ranks.append(ranks[-1] + int(sqrt(ranks[-1])))
    return np.array(ranks, dtype=np.intp)
