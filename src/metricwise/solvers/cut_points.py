"""One score into K ordered grades: the cut points that maximise an objective.

Rows are sorted by their score once. What a rule of cut points decides is then a cut of the sorted rows into K
consecutive parts, some of which may be empty, and the best cut is found by a programme over positions. It is not a
solver of the oracle: it needs the score of every row, not the confusion of a loss. Must not know rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..core.matrices import EMPTY
from ..metrics.objective import Objective, Ratio

__all__ = [
    "CutSearch",
    "ProfileStack",
    "ScoreProfile",
    "SortedScores",
    "average_thresholds",
    "search_cuts",
    "search_shown_cuts",
    "search_stack",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MAX_PAIRED_SCORES = 2000  # distinct scores of which all pairs are evaluated, in about half a second for five grades
_COARSE_SCORES = 1000  # parts into which more of them are merged for a first search
_BLOCK_TERMS = 1 << 15  # terms of intervals that are evaluated together
_MAX_ENUMERATED = 1 << 13  # cut vectors that are all evaluated where no programme applies
_BLOCK_CELLS = 1 << 18  # cells of confusions that are evaluated together
_MAX_RATIO_STEPS = 100  # of Dinkelbach's iteration, which takes three to eight
_MIN_MERGED_SCORES = 512  # distinct scores from which a ratio is maximised over merged ones first, to begin close by
_MAX_SWEEPS = 20  # over the cuts, of which every other one moves at once; two to five are taken
_REACH = 2  # parts of merged scores by which a cut moves in a sweep
# The search from several starts, for metrics without a programme. On 100 random problems of 60 rows and four grades it
# found the best of all cut vectors in 100 % (mcc), 99 % (minimum of three metrics; a user's function) and 94 %
# (smallest recall).
_CLIMB_SCORES = 200  # parts into which scores are merged for the first climbs
_RANDOM_STARTS = 4
_KEPT_CLIMBS = 3  # of the first climbs, the best go on with all scores
_MAX_LINEAR_STEPS = 5  # along the gradient from each start
# For metrics that call a function of the user for every value:
_MAX_SLOW_ENUMERATED = 1 << 8
_SLOW_SCORES = 32


@dataclass(frozen=True, eq=False)
class ScoreProfile:
    """How the true grades are distributed along a score.

    Parameters
    ----------
    scores : ndarray of shape (U,)
        Distinct scores of the rows that weigh something, ascending.
    counts : ndarray of shape (U, K)
        Weight of each true grade, in ascending order, at each score.
    """

    scores: FloatArray
    counts: FloatArray

    @property
    def n_scores(self) -> int:
        """U."""
        return len(self.counts)

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.counts.shape[1])

    @cached_property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.counts.sum())

    @property
    def mass(self) -> FloatArray:
        """The share of each true grade at each score, of shape (U, K)."""
        return self.counts / self.total

    @cached_property
    def cumulative(self) -> FloatArray:
        """The shares of each true grade below each position, of shape (U + 1, K)."""
        out = np.zeros((self.n_scores + 1, self.n_classes))
        np.cumsum(self.counts, axis=0, out=out[1:])
        out /= self.total
        return out

    @property
    def priors(self) -> FloatArray:
        """The shares of the true grades, of shape (K,), which an objective is bound to."""
        return np.asarray(self.cumulative[-1])

    @cached_property
    def levels(self) -> FloatArray:
        """The share of all rows below each position, of shape (U + 1,)."""
        return np.asarray(self.cumulative.sum(axis=1))

    def confusions(self, cuts: IntArray) -> FloatArray:
        """Return the confusions (T, K, K) of cut vectors (T, K - 1)."""
        return np.diff(self.cumulative[_with_ends(cuts, self.n_scores)], axis=1).swapaxes(1, 2)

    def shares(self, cuts: IntArray) -> FloatArray:
        """Return hits and predicted shares (T, 2, K) of cut vectors (T, K - 1)."""
        ends, grades = _with_ends(cuts, self.n_scores), np.arange(self.n_classes)
        hits = self.cumulative[ends[:, 1:], grades] - self.cumulative[ends[:, :-1], grades]
        return np.stack([hits, np.diff(self.levels[ends], axis=1)], axis=1)

    @cached_property
    def gaps(self) -> FloatArray:
        """A threshold at each position, of shape (U + 1,): halfway between scores, -inf and inf at the ends."""
        scores = np.concatenate([[-np.inf], self.scores, [np.inf]])
        return _halfway(scores[:-1], scores[1:])

    def thresholds(self, cuts: IntArray) -> FloatArray:
        """Return cut positions as thresholds of the score: the grade is the number of thresholds below the score."""
        return self.gaps[cuts]

    def merged(self, n_parts: int) -> tuple[ScoreProfile, IntArray]:
        """Merge neighbouring scores into parts of about equal weight; return also the positions of their ends."""
        ends = _ends_of_parts(self.levels, n_parts)
        counts = np.add.reduceat(self.counts, ends[:-1], axis=0)
        return ScoreProfile(self.scores[ends[1:] - 1], counts), ends


def _with_ends(cuts: IntArray, n_scores: int) -> IntArray:
    """Return where the grades of cut vectors (..., K - 1) begin and end, (..., K + 1)."""
    ends = np.zeros((*cuts.shape[:-1], cuts.shape[-1] + 2), dtype=np.intp)
    ends[..., 1:-1], ends[..., -1] = cuts, n_scores
    return ends


def _ends_of_parts(levels: FloatArray, n_parts: int) -> IntArray:
    """Return the positions, first and last included, between parts of about equal weight; `levels` (U + 1,)."""
    ends = np.searchsorted(levels[1:], np.arange(1, n_parts) / n_parts) + 1
    return np.unique(np.concatenate([[0], np.minimum(ends, len(levels) - 1), [len(levels) - 1]]))


def _halfway(below: FloatArray, above: FloatArray) -> FloatArray:
    """Return thresholds between scores; an infinite one is itself.

    A row is above a threshold if its score is larger: halfway may round up to the score above.
    """
    middle = below / 2 + above / 2
    middle = np.where((middle >= above) | (middle < below), below, middle)
    return np.where(np.isposinf(above), np.inf, middle)


@dataclass(frozen=True, eq=False)
class ProfileStack:
    """R profiles along the same scores, of which some may weigh nothing in a profile.

    Parameters
    ----------
    scores : ndarray of shape (U,)
        Distinct scores, ascending.
    counts : ndarray of shape (R, K, U)
        Weight of each true grade at each score.
    """

    scores: FloatArray
    counts: FloatArray

    @property
    def n_profiles(self) -> int:
        """R."""
        return len(self.counts)

    @cached_property
    def totals(self) -> FloatArray:
        """The weight of all rows, of shape (R,)."""
        return np.asarray(self._sums[:, :, -1].sum(axis=1))

    @cached_property
    def cumulative(self) -> FloatArray:
        """The shares of each true grade below each position, of shape (R, K, U + 1)."""
        return np.asarray(self._sums / self.totals[:, None, None])

    @cached_property
    def _sums(self) -> FloatArray:
        out = np.zeros((*self.counts.shape[:2], len(self.scores) + 1))
        np.cumsum(self.counts, axis=2, out=out[:, :, 1:])
        return out

    @property
    def priors(self) -> FloatArray:
        """The shares of the true grades, of shape (R, K)."""
        return np.asarray(self.cumulative[:, :, -1])

    @cached_property
    def _weighs(self) -> NDArray[np.bool_]:
        return np.asarray(self.counts.max(axis=1) > 0)

    def take(self, profiles: IntArray) -> ProfileStack:
        """Return some of the profiles."""
        return ProfileStack(self.scores, self.counts[profiles])

    def profile(self, r: int) -> ScoreProfile:
        """Return a profile by itself, of the scores that weigh something."""
        weighs = self._weighs[r]
        return ScoreProfile(self.scores[weighs], np.ascontiguousarray(self.counts[r][:, weighs].T))

    def positions(self, r: int, cuts: IntArray) -> IntArray:
        """Return cut positions of a profile by itself as positions among all scores."""
        weighs = np.flatnonzero(self._weighs[r])
        return np.concatenate([[0], weighs + 1])[cuts]

    def thresholds(self, cuts: IntArray) -> FloatArray:
        """Return cut positions (R, K - 1) as thresholds, halfway between the scores that weigh something."""
        n_positions = len(self.scores) + 1
        profile, place = np.nonzero(self._weighs)
        number = profile * n_positions + place  # ascending
        first = np.arange(self.n_profiles)[:, None] * n_positions
        at = np.searchsorted(number, first + cuts)  # the first score that is not below the cut
        below, above = np.maximum(at - 1, 0), np.minimum(at, len(number) - 1)
        scores = self.scores[place]
        return _halfway(
            np.where((at > 0) & (number[below] >= first), scores[below], -np.inf),
            np.where((at < len(number)) & (number[above] < first + n_positions), scores[above], np.inf),
        )


@dataclass(frozen=True, eq=False)
class SortedScores:
    """The scores of N rows, sorted once for any number of weights and labels.

    Parameters
    ----------
    scores : ndarray of shape (U,)
        Distinct scores, ascending.
    place : ndarray of shape (N,), int
        The position of each row's score among them.
    """

    scores: FloatArray
    place: IntArray

    @classmethod
    def read(cls, scores: NDArray[Any]) -> SortedScores:
        """Sort the finite scores (N,) of the rows."""
        distinct, place = np.unique(np.asarray(scores, dtype=np.float64), return_inverse=True)
        return cls(distinct, place.reshape(-1))

    def merged(self, n_parts: int) -> SortedScores:
        """Merge neighbouring scores into at most so many parts of about as many rows, at their mean score."""
        if len(self.scores) <= n_parts:
            return self
        rows = np.bincount(self.place)
        quantile = (np.cumsum(rows) - rows / 2) * n_parts // len(self.place)
        part = np.cumsum(np.diff(quantile, prepend=quantile[0]) > 0, dtype=np.intp)
        return SortedScores(np.bincount(part, rows * self.scores) / np.bincount(part, rows), part[self.place])

    def by_labels(self, codes: NDArray[Any], n_classes: int, weight: FloatArray | None = None) -> ScoreProfile:
        """Count labels of all rows; see :meth:`stack_of_labels`."""
        weight = np.ones(len(codes)) if weight is None else weight
        return self.stack_of_labels(codes, n_classes, weight[None]).profile(0)

    def stack_of_labels(self, codes: NDArray[Any], n_classes: int, weight: NDArray[Any]) -> ProfileStack:
        """Count labels: codes (N,) in ascending order of the grades, -1 where the label is missing.

        Weights, or masks of the rows that count, are those of each of R profiles, (R, N).
        """
        cells = codes * np.intp(len(self.scores)) + self.place
        order = np.argsort(cells, kind="stable")[np.count_nonzero(codes < 0) :]
        counts = np.zeros((len(weight), n_classes * len(self.scores)))
        if len(order):
            cells, starts = np.unique(cells[order], return_index=True)
            counts[:, cells] = _sum_runs(weight[:, order], starts)
        return ProfileStack(self.scores, counts.reshape(len(weight), n_classes, -1))

    def stack_of_probabilities(self, proba: FloatArray, weight: NDArray[Any]) -> ProfileStack:
        """Count probabilities (R, U, K) of the grades at the distinct scores in the place of labels."""
        order = np.argsort(self.place, kind="stable")
        starts = np.searchsorted(self.place[order], np.arange(len(self.scores)))
        return ProfileStack(self.scores, proba.swapaxes(1, 2) * _sum_runs(weight[:, order], starts)[:, None])

    def stack_of_both(self, codes: NDArray[Any], proba: FloatArray, weight: NDArray[Any]) -> ProfileStack:
        """Count half of each, of the rows that have a label."""
        labels = self.stack_of_labels(codes, proba.shape[2], weight)
        expected = self.stack_of_probabilities(proba, weight * (codes >= 0))
        return ProfileStack(self.scores, (labels.counts + expected.counts) / 2)


def _sum_runs(values: NDArray[Any], starts: IntArray) -> FloatArray:
    """Return the sums of runs of columns that begin at `starts`."""
    values = values.astype(np.float64)
    return values if len(starts) == values.shape[1] else np.add.reduceat(values, starts, axis=1)


@dataclass(frozen=True, eq=False)
class CutSearch:
    """The best cut points that a search has found.

    Parameters
    ----------
    cuts : ndarray of shape (K - 1,), int
        Positions, ascending: scores below position ``cuts[k]`` have a grade of at most k.
    value : float
        The objective there.
    exact : bool
        Whether no cut points are better.
    """

    cuts: IntArray
    value: float
    exact: bool

    @property
    def upper_bound(self) -> float | None:
        """The value that no cut points exceed, if that is proved."""
        return self.value if self.exact else None


def search_cuts(
    profile: ScoreProfile, objective: Objective, *, max_paired_scores: int = MAX_PAIRED_SCORES
) -> CutSearch:
    """Return the cut points that maximise an objective.

    Exact for linear metrics, ratios and their increasing transforms, in O(U K) a step. Metrics that increase with a sum
    over grades of a function of what is decided to be of the grade (averages over classes, means of recalls) take
    O(U^2 K) and are exact up to `max_paired_scores` distinct scores; more are merged first, and then all positions of a
    cut are tried in turn. Any other metric is climbed in this way from several starts.

    Parameters
    ----------
    profile : ScoreProfile
    objective : Objective
        Of one group, bound to the priors of the profile.
    max_paired_scores : int, default=2000

    Returns
    -------
    CutSearch
    """
    search = _Search(profile, objective)
    ratio = objective.ratio
    cuts = None if ratio is None else _best_of_ratio(search, ratio)
    if cuts is not None:
        return search.result(cuts, exact=True)
    if objective.class_terms(profile.priors, profile.priors) is not None:
        return _search_sum(search, max_paired_scores)
    if search.n_vectors <= search.max_enumerated:
        return search.result(search.best_value(search.every_vector())[0], exact=True)
    return _search_any(search)


def search_shown_cuts(
    profile: ScoreProfile, objective: Objective, *, max_paired_scores: int = MAX_PAIRED_SCORES
) -> CutSearch:
    """Return the best cut points that give rows grades of positive weight only; see :func:`search_cuts`.

    A metric that weighs distances may prefer a grade without any label in the middle of others, of which the labels say
    nothing.
    """
    shown = np.flatnonzero(profile.counts.any(axis=0))
    if len(shown) in (0, profile.n_classes):
        return search_cuts(profile, objective, max_paired_scores=max_paired_scores)
    some = ScoreProfile(profile.scores, profile.counts[:, shown])
    part: Any = _ShownGrades(objective, shown)
    result = search_cuts(some, part, max_paired_scores=max_paired_scores)
    cuts = _cuts_of_all(result.cuts[None], shown, profile.n_classes, profile.n_scores)[0]
    return CutSearch(cuts, result.value, result.exact)


def _cuts_of_all(cuts: IntArray, shown: IntArray, n_classes: int, n_scores: int) -> IntArray:
    """Return cuts (R, K' - 1) of the grades that are shown as (R, K - 1): other grades are empty."""
    ends = _with_ends(cuts, n_scores)
    n_below = np.searchsorted(shown, np.arange(n_classes - 1), side="right")  # shown grades up to each
    return ends[:, n_below]


def search_stack(
    stack: ProfileStack, bind: Callable[[ProfileStack], Objective], *, max_paired_scores: int = MAX_PAIRED_SCORES
) -> FloatArray:
    """Return the thresholds (R, K - 1) of the best cut points of R profiles; see :func:`search_shown_cuts`.

    Profiles with the same grades are searched at once for ratios and for sums over grades, which are merged to
    `max_paired_scores` for all together and then searched nearby; for other metrics one by one.

    Parameters
    ----------
    stack : ProfileStack
    bind : callable
        Returns the objective of profiles, with a group for each.
    max_paired_scores : int, default=2000
    """
    cuts = np.empty((stack.n_profiles, stack.counts.shape[1] - 1), dtype=np.intp)
    shown = stack.priors > 0
    for grades in shown[:1] if shown.all() else np.unique(shown, axis=0):
        alike = np.flatnonzero((shown == grades).all(axis=1))
        part = stack if len(alike) == stack.n_profiles else stack.take(alike)
        cuts[alike] = _search_alike(part, np.flatnonzero(grades), bind, max_paired_scores)
    return stack.thresholds(cuts)


def _search_alike(
    stack: ProfileStack, shown: IntArray, bind: Callable[[ProfileStack], Objective], max_paired_scores: int
) -> IntArray:
    """Return the best cuts (R, K - 1) of profiles that show the same grades."""
    n_classes, n_scores = stack.counts.shape[1:]
    objective: Any = bind(stack)
    cumulative = stack.cumulative
    if len(shown) < n_classes:
        objective, cumulative = _ShownGrades(objective, shown), cumulative[:, shown]
    solved = np.zeros(stack.n_profiles, dtype=bool)
    cuts = np.zeros((stack.n_profiles, len(shown) - 1), dtype=np.intp)
    if objective.ratio is not None:
        cuts, solved = _best_of_ratios(cumulative, objective.ratio)
    elif objective.class_terms(stack.priors[:, shown], stack.priors[:, shown]) is not None:
        cuts, solved = _search_sums(cumulative, objective, max_paired_scores), ~solved
    cuts = _cuts_of_all(cuts, shown, n_classes, n_scores)
    for r in np.flatnonzero(~solved).tolist():
        profile = stack.profile(r)
        alone = search_shown_cuts(profile, bind(stack.take(np.array([r]))), max_paired_scores=max_paired_scores)
        cuts[r] = stack.positions(r, alone.cuts)
    return cuts


@dataclass(frozen=True, eq=False)
class _ShownGrades:
    """An objective as one of some of its grades: no row is of the others, and none is decided so."""

    whole: Objective
    shown: IntArray

    @property
    def slow(self) -> bool:
        return self.whole.slow

    @property
    def of_shares(self) -> bool:
        return self.whole.of_shares

    @property
    def ratio(self) -> Ratio | None:
        ratio = self.whole.ratio
        return None if ratio is None else replace(ratio, A=self._cells(ratio.A), B=self._cells(ratio.B))

    def class_terms(self, hits: FloatArray, predicted: FloatArray) -> FloatArray | None:
        terms = self.whole.class_terms(self._spread(hits), self._spread(predicted))
        return None if terms is None else terms[..., self.shown]

    def summarise_shares(self, shares: FloatArray) -> FloatArray:
        return self.whole.summarise_shares(self._spread(shares))

    def values_at(self, summaries: FloatArray) -> FloatArray:
        return self.whole.values_at(summaries)

    def values(self, C: FloatArray) -> FloatArray:
        return self.whole.values(self._confusion(C))

    def value(self, C: FloatArray) -> float:
        return self.whole.value(self._confusion(C))

    def gradient(self, C: FloatArray) -> FloatArray:
        return self._cells(self.whole.gradient(self._confusion(C)))

    def _cells(self, tensor: FloatArray) -> FloatArray:
        """Return the cells (..., K', K') of the grades that are shown."""
        return tensor[..., self.shown[:, None], self.shown]

    def _spread(self, values: FloatArray) -> FloatArray:
        """Return values (..., K) of all grades, 0 of those that are not shown."""
        out = np.zeros((*values.shape[:-1], self.whole.width))
        out[..., self.shown] = values
        return out

    def _confusion(self, C: FloatArray) -> FloatArray:
        out = np.zeros((*C.shape[:-2], self.whole.width, self.whole.width))
        out[..., self.shown[:, None], self.shown] = C
        return out


@dataclass(frozen=True, eq=False)
class _Search:
    """A profile and an objective: values of cut vectors (T, K - 1)."""

    profile: ScoreProfile
    objective: Objective

    @property
    def n_cuts(self) -> int:
        return self.profile.n_classes - 1

    @property
    def n_vectors(self) -> int:
        """The number of all cut vectors."""
        return comb(self.profile.n_scores + self.n_cuts, self.n_cuts)

    @property
    def max_enumerated(self) -> int:
        """How many cut vectors are all evaluated; of two grades they are the thresholds."""
        if self.objective.slow:
            return _MAX_SLOW_ENUMERATED
        return self.n_vectors if self.n_cuts == 1 else _MAX_ENUMERATED

    def values(self, cuts: IntArray) -> FloatArray:
        if self.objective.of_shares:
            summaries = self.objective.summarise_shares(self.profile.shares(cuts)[:, None])
            return self.objective.values_at(summaries)[:, 0]
        return self.objective.values(self.profile.confusions(cuts)[:, None])[:, 0]

    def value(self, cuts: IntArray) -> float:
        return float(self.values(cuts[None])[0])

    def result(self, cuts: IntArray, exact: bool) -> CutSearch:
        value = self.objective.value(self.profile.confusions(cuts[None]))
        return CutSearch(cuts, value, exact)

    def blocks(self, cuts: IntArray) -> Iterator[IntArray]:
        size = max(1, _BLOCK_CELLS // self.profile.n_classes**2)
        for start in range(0, len(cuts), size):
            yield cuts[start : start + size]

    def best_value(self, cuts: IntArray) -> tuple[IntArray, float]:
        """Return the first of the best cut vectors and its value."""
        values = np.concatenate([self.values(block) for block in self.blocks(cuts)])
        return cuts[values.argmax()], float(values.max())

    def every_vector(self) -> IntArray:
        positions = range(self.profile.n_scores + 1)
        if self.n_cuts == 1:
            return np.arange(self.profile.n_scores + 1)[:, None]
        return np.array(list(combinations_with_replacement(positions, self.n_cuts)), dtype=np.intp)

    def best_of_linear(self, gain: FloatArray) -> IntArray:
        """Return the cuts of the largest ``<gain, C>``."""
        return np.asarray(best_of_linear(self.profile.cumulative.T[None], gain[None])[0])

    def by_shares(self) -> IntArray:
        """Return the cut vector whose grades are about as frequent as the true ones."""
        return np.asarray(_cuts_by_shares(self.profile.cumulative.T[None])[0])


def _cuts_by_shares(cumulative: FloatArray) -> IntArray:
    """Return the cuts (R, K - 1) of profiles (R, K, U + 1) whose grades are about as frequent as the true ones."""
    levels, ends = cumulative.sum(axis=1), np.cumsum(cumulative[:, :-1, -1], axis=1)
    cuts = [np.searchsorted(level, end) for level, end in zip(levels, ends, strict=True)]
    return np.asarray(np.minimum(cuts, cumulative.shape[2] - 1))  # where a sum of all shares is rounded up


def _cuts_of_one_grade(n_classes: int, n_scores: int) -> IntArray:
    """Return the cut vectors (K, K - 1) that give all rows one grade."""
    above = np.arange(n_classes - 1) >= np.arange(n_classes)[:, None]
    return np.where(above, n_scores, 0)


# ---------------------------------------------------------------------------------------------------- linear and ratios


def best_of_linear(cumulative: FloatArray, gain: FloatArray) -> IntArray:
    """Return the cuts (R, K - 1) that maximise ``<gain, C>`` of each profile, by one running maximum per grade.

    With S_j the running sum of what grade j would gain, ``best_j[e] = S_j[e] + max_{b <= e} best_{j-1}[b] - S_j[b]``
    is the most that the scores below position e gain with grades up to j. Profiles are shares (R, K, U + 1) below
    positions, gains (R, K, K).
    """
    sums = gain.swapaxes(1, 2) @ cumulative
    n_profiles, n_classes, n_positions = sums.shape
    running = np.empty((n_classes - 1, n_profiles, n_positions))  # the largest best_{j-1}[b] - S_j[b] so far
    best = sums[:, 0]
    for j in range(1, n_classes):
        np.subtract(best, sums[:, j], out=running[j - 1])
        np.maximum.accumulate(running[j - 1], axis=1, out=running[j - 1])
        best = running[j - 1] + sums[:, j]
    cuts = np.empty((n_profiles, n_classes - 1), dtype=np.intp)
    rows, end = np.arange(n_profiles), np.full(n_profiles, n_positions - 1)
    for j in range(n_classes - 2, -1, -1):
        reached = running[j, rows, end]
        cuts[:, j] = end = (running[j] >= reached[:, None]).argmax(axis=1)  # where it is reached first
    return cuts


def _best_of_ratio(search: _Search, ratio: Ratio) -> IntArray | None:
    """Return the cuts of the largest ratio; None where 0/0 stops the iteration."""
    cuts, solved = _best_of_ratios(np.ascontiguousarray(search.profile.cumulative.T)[None], ratio)
    return cuts[0] if solved[0] else None


def _best_of_ratios(cumulative: FloatArray, ratio: Ratio) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the cuts (R, K - 1) of the largest ratios, by Dinkelbach's iteration, and where 0/0 did not stop it, (R,).

    The ratio rises with every step, from the best of all cut vectors of a single grade and that of the true shares;
    where no step rises, no cut vector is better, unless one has the value that 0/0 is defined to have.
    """
    A, B = ratio.A, ratio.B
    n_profiles = len(cumulative)
    if ratio.linear:
        return best_of_linear(cumulative, A), np.ones(n_profiles, dtype=bool)
    least, most = EMPTY * np.abs(B).max(axis=(1, 2)), EMPTY * np.abs(A).max(axis=(1, 2))
    starts = _ratio_starts(cumulative, ratio)
    values, empty, _ = _ratios_of(cumulative, ratio, starts, least)
    first, rows = values.argmax(axis=0), np.arange(n_profiles)
    cuts, g, solved = starts[first, rows], values[first, rows], np.logical_not(empty.all(axis=0))
    g[~solved] = 0.0
    for _ in range(_MAX_RATIO_STEPS):
        trial = best_of_linear(cumulative, A - g[:, None, None] * B)
        values, empty, above = _ratios_of(cumulative, ratio, trial, least)
        solved &= ~(empty & (above > most))
        rises = solved & (values > g)
        if not rises.any():
            break
        cuts[rises], g[rises] = trial[rises], values[rises]
    below_undefined = solved & (g < ratio.zero_division)
    if below_undefined.any():  # 0/0 counts for more than the largest ratio
        trial = best_of_linear(cumulative, -B)
        denominator = ratio.at(_confusions(cumulative, trial))[1]
        undefined = below_undefined & (np.abs(denominator) <= least)
        cuts[undefined] = trial[undefined]
    return cuts, solved


def _ratio_starts(cumulative: FloatArray, ratio: Ratio) -> IntArray:
    """Return cut vectors (T, R, K - 1): a single grade, the true shares, and of many scores the best of merged ones."""
    n_profiles, n_classes, n_positions = cumulative.shape
    single = np.repeat(_cuts_of_one_grade(n_classes, n_positions - 1)[:, None], n_profiles, axis=1)
    starts = [*single, _cuts_by_shares(cumulative)]
    if n_positions > _MIN_MERGED_SCORES:
        ends = _ends_of_parts(cumulative.sum(axis=1).mean(axis=0), _MIN_MERGED_SCORES // 2)
        starts.append(ends[_best_of_ratios(np.ascontiguousarray(cumulative[:, :, ends]), ratio)[0]])
    return np.stack(starts)


def _ratios_of(
    cumulative: FloatArray, ratio: Ratio, cuts: IntArray, least: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_], FloatArray]:
    """Return ratios of cut vectors (..., R, K - 1), -inf at 0/0, whether they are so, and numerators, (..., R) each."""
    numerator, denominator = ratio.at(_confusions(cumulative, cuts))
    empty = denominator <= least
    return np.where(empty, -np.inf, numerator / np.where(empty, 1.0, denominator)), empty, numerator


def _confusions(cumulative: FloatArray, cuts: IntArray) -> FloatArray:
    """Return the confusions (..., R, K, K) of cut vectors (..., R, K - 1) of profiles (R, K, U + 1)."""
    n_profiles, _, n_positions = cumulative.shape
    ends = _with_ends(cuts, n_positions - 1)
    below = cumulative.swapaxes(1, 2)[np.arange(n_profiles)[:, None], ends]  # (..., R, K + 1, K)
    return np.diff(below, axis=-2).swapaxes(-1, -2)


# -------------------------------------------------------------------------------------------------- sums over intervals


def _search_sum(search: _Search, max_paired_scores: int) -> CutSearch:
    """Maximise a metric that increases with a sum over grades."""
    profile = search.profile
    if profile.n_scores <= max_paired_scores:
        return search.result(_best_of_sum(search), exact=True)
    coarse, ends = profile.merged(min(_COARSE_SCORES, max_paired_scores))
    cuts = ends[_best_of_sum(_Search(coarse, search.objective))]
    return search.result(_climb(search, cuts), exact=False)


def _best_of_sum(search: _Search) -> IntArray:
    """Return the best cuts of a sum over grades."""
    return np.asarray(_best_of_sums(np.ascontiguousarray(search.profile.cumulative.T)[None], search.objective)[0])


def _search_sums(cumulative: FloatArray, objective: Objective, max_paired_scores: int) -> IntArray:
    """Return the best cuts (R, K - 1) of sums over grades, of many scores those near the best of merged ones."""
    n_scores = cumulative.shape[2] - 1
    if n_scores <= max_paired_scores:
        return _best_of_sums(cumulative, objective)
    levels = cumulative.sum(axis=1).mean(axis=0)
    ends = _ends_of_parts(levels, max_paired_scores)
    cuts = ends[_best_of_sums(np.ascontiguousarray(cumulative[:, :, ends]), objective)]
    reach = -(-_REACH * n_scores // max_paired_scores)
    for _ in range(_MAX_SWEEPS):
        before = cuts
        for first in range(2):
            cuts = _move_every_other(cumulative, objective, cuts, first, reach)
        if (cuts == before).all():
            break
    return cuts


def _move_every_other(cumulative: FloatArray, objective: Objective, cuts: IntArray, first: int, reach: int) -> IntArray:
    """Move every other cut to its best position within reach, between its neighbours: no grade is next to two."""
    n_profiles, n_classes, n_positions = cumulative.shape
    below = np.arange(first, n_classes - 1, 2)  # grades below the cuts that move
    ends = _with_ends(cuts, n_positions - 1)
    offsets = np.arange(-reach, reach + 1)
    trials = np.clip(cuts[:, below, None] + offsets, ends[:, below, None], ends[:, below + 2, None])
    sides = np.repeat(np.stack([ends[:, :-1], ends[:, 1:]])[..., None], len(offsets), axis=3)  # (2, R, K, W)
    sides[1][:, below] = sides[0][:, below + 1] = trials
    start, end = cumulative.swapaxes(1, 2)[np.arange(n_profiles)[:, None, None], sides]  # (R, K, W, K)
    parts = end - start
    hits = np.einsum("rkwk->rkw", parts)
    terms = objective.class_terms(np.moveaxis(hits, 2, 0), np.moveaxis(parts.sum(axis=3), 2, 0))
    assert terms is not None
    sums = terms[..., below] + terms[..., below + 1]  # (W, R, cuts)
    best = sums.argmax(axis=0)
    moved = np.take_along_axis(trials, best[..., None], axis=2)[..., 0]
    out = cuts.copy()
    out[:, below] = np.where(sums.max(axis=0) > sums[reach], moved, cuts[:, below])
    return out


def _best_of_sums(cumulative: FloatArray, objective: Objective) -> IntArray:
    """Return the best cuts (R, K - 1) of profiles (R, K, U + 1), for blocks of b, by

    ``best_j[e] = max_{b <= e} best_{j-1}[b] + term_j(b, e)``.
    """
    n_profiles, n_classes, n_positions = cumulative.shape
    best = np.full((n_classes, n_profiles, n_positions), -np.inf)
    best[0] = _interval_terms(objective, cumulative, slice(0, 1), slice(None))[:, 0, 0]
    start = 0
    while start < n_positions:
        size = n_profiles * n_classes * (n_positions - start)
        stop = min(n_positions, start + max(1, _BLOCK_TERMS // size))
        terms = _interval_terms(objective, cumulative, slice(start, stop), slice(start, None))
        for j in range(1, n_classes):
            # Grade j - 1 is finished up to `stop`: its intervals begin no later.
            reached = best[j - 1, :, start:stop, None] + terms[:, j]
            np.maximum(best[j, :, start:], reached.max(axis=1), out=best[j, :, start:])
        start = stop
    return _trace_back(objective, cumulative, best)


def _trace_back(objective: Objective, cumulative: FloatArray, best: FloatArray) -> IntArray:
    """Return the cuts (R, K - 1) along which the best sums (K, R, U + 1) were reached."""
    n_classes, n_profiles, n_positions = best.shape
    cuts = np.empty((n_profiles, n_classes - 1), dtype=np.intp)
    rows, end = np.arange(n_profiles), np.full(n_profiles, n_positions - 1)
    for j in range(n_classes - 1, 0, -1):
        hits = cumulative[rows, :, end][:, :, None] - cumulative
        sums = best[j - 1] + _terms(objective, hits[:, :, None])[:, j, 0]
        cuts[:, j - 1] = end = np.where(np.arange(n_positions) <= end[:, None], sums, -np.inf).argmax(axis=1)
    return cuts


def _interval_terms(objective: Objective, cumulative: FloatArray, starts: slice, ends: slice) -> FloatArray:
    """Return the term of each grade for the intervals between positions, (R, K, B, E).

    It is -inf if one ends before it starts.
    """
    hits = cumulative[:, :, None, ends] - cumulative[:, :, starts, None]
    positions = np.arange(cumulative.shape[2])
    terms = _terms(objective, hits)
    terms[:, :, positions[ends] < positions[starts, None]] = -np.inf
    return terms


def _terms(objective: Objective, hits: FloatArray) -> FloatArray:
    """Return the term of each grade for intervals by their shares of the true grades, both (R, K, B, E).

    Grades come first in memory, so that operations run along the ends.
    """
    predicted = np.broadcast_to(hits.sum(axis=1, keepdims=True), hits.shape)
    views = (np.moveaxis(array, (0, 1), (2, 3)) for array in (np.maximum(hits, 0.0), predicted))
    terms = objective.class_terms(*views)
    assert terms is not None
    return np.moveaxis(terms, (2, 3), (0, 1))


# --------------------------------------------------------------------------------------------------- any other metric


def _search_any(search: _Search) -> CutSearch:
    """Climb from several starts: first with merged scores, then from the best ends with all of them."""
    n_parts = _SLOW_SCORES if search.objective.slow else _CLIMB_SCORES
    coarse, ends = search.profile.merged(n_parts)
    merged = _Search(coarse, search.objective)
    tops = np.unique([_climb(merged, start) for start in _starts(merged)], axis=0)
    tops = tops[np.argsort(-merged.values(tops), kind="stable")]
    if search.objective.slow:
        return search.result(ends[tops[0]], exact=False)
    tops = np.array([_climb(search, ends[top]) for top in tops[:_KEPT_CLIMBS]])
    return search.result(search.best_value(tops)[0], exact=False)


def _starts(search: _Search) -> IntArray:
    """Return cut vectors to climb from: by the true shares, the best of some linear metrics, and random ones."""
    k, priors = search.profile.n_classes, search.profile.priors
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    by_recall = np.diag(1.0 / np.maximum(priors, EMPTY) * (priors > EMPTY))
    gains = (np.eye(k), by_recall, -(distance.astype(np.float64) ** 2), -distance / np.maximum(priors, EMPTY)[:, None])
    linear = [search.best_of_linear(gain) for gain in gains]
    rng = np.random.default_rng(0)
    drawn = np.sort(rng.integers(0, search.profile.n_scores + 1, (_RANDOM_STARTS, k - 1)), axis=1)
    starts = np.concatenate([[search.by_shares()], linear, drawn])
    if search.objective.slow:
        return starts[:2]
    ahead = [_follow_gradient(search, start) for start in starts]
    return np.unique(np.concatenate([starts, ahead]), axis=0)


def _follow_gradient(search: _Search, cuts: IntArray) -> IntArray:
    """Go to the best cuts of the metric's tangent, as long as the value rises."""
    value = search.value(cuts)
    for _ in range(_MAX_LINEAR_STEPS):
        gain = search.objective.gradient(search.profile.confusions(cuts[None]))[0]
        trial = search.best_of_linear(gain)
        if not (reached := search.value(trial)) > value:
            break
        cuts, value = trial, reached
    return cuts


def _climb(search: _Search, cuts: IntArray) -> IntArray:
    """Move each cut to its best position between its neighbours; where none moves, two cuts or equal ones together."""
    value, moved = search.value(cuts), True
    while moved:
        cuts, value, moved = _move_all(search, cuts, value, [(k, k) for k in range(len(cuts))])
        if not moved:
            cuts, value, moved = _move_all(search, cuts, value, _runs(cuts))
    return cuts


def _move_all(
    search: _Search, cuts: IntArray, value: float, runs: list[tuple[int, int]]
) -> tuple[IntArray, float, bool]:
    """Move runs of cuts in turn; return the cuts, their value, and whether it has risen."""
    before = value
    for first, last in runs:
        moves = _moves(cuts, first, last, search.profile.n_scores)
        trial, reached = search.best_value(moves)
        if reached > value:
            cuts, value = trial, reached
    return cuts, value, value > before


def _runs(cuts: IntArray) -> list[tuple[int, int]]:
    """Return the first and last of all pairs of neighbouring cuts, and of all runs of equal ones."""
    pairs = [(k, k + 1) for k in range(len(cuts) - 1)]
    ends = np.flatnonzero(np.diff(cuts, append=-1)).tolist()
    equal = zip([0, *(end + 1 for end in ends)], ends, strict=False)
    return pairs + [(first, last) for first, last in equal if last > first + 1]


def _moves(cuts: IntArray, first: int, last: int, n_scores: int) -> IntArray:
    """Return the cut vectors in which some neighbouring cuts are at one position, each between the others."""
    low = cuts[first - 1] if first else 0
    high = cuts[last + 1] if last + 1 < len(cuts) else n_scores
    moves = np.tile(cuts, (high - low + 1, 1))
    moves[:, first : last + 1] = np.arange(low, high + 1)[:, None]
    return moves


# ---------------------------------------------------------------------------------------------------------------- bags


def average_thresholds(profile: ScoreProfile, thresholds: FloatArray) -> FloatArray:
    """Return the average (K - 1,) of thresholds (R, K - 1), as shares of the rows of a profile.

    Of the shares of rows at or below the thresholds the middle half is averaged, and turned into a threshold again: it
    does not depend on the unit of the score. On eight real sets of grades (42 resamples of two recipes, two
    regressors, four metrics, 20 splits) it was ahead of the mean by 0.0004 +- 0.0001 on new rows, and as good as the
    median; of the median by 0.0004 +- 0.0002 if the score was spoilt by ``exp(1.5 z)``.
    """
    places = np.searchsorted(profile.scores, thresholds, side="right")
    levels = np.sort(profile.levels[places], axis=0)
    quarter = len(levels) // 4
    return _thresholds_at(profile, levels[quarter : len(levels) - quarter].mean(axis=0))


def _thresholds_at(profile: ScoreProfile, levels: FloatArray) -> FloatArray:
    """Return thresholds with these shares of the rows below them; in between, where no threshold has the share."""
    gaps, (lowest, highest) = profile.gaps.copy(), profile.scores[[0, -1]]
    margin = (highest / 2 - lowest / 2) / profile.n_scores  # half a mean distance beyond the ends
    gaps[0], gaps[-1] = lowest - margin, highest + margin
    inside = np.interp(levels, profile.levels, gaps)
    return np.where(levels <= 0, -np.inf, np.where(levels >= profile.levels[-1], np.inf, inside))
