"""Samples of rows in which rare classes are there.

Owns the one way in which rows are sampled, wherever some of them must stand for all: the link, the choice of the
recipe, the starts of a search. Must not know probabilities, metrics or oracles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels

__all__ = ["Found", "Low", "Sample", "Strata", "by_keys", "count_rows", "draw_rows", "number_copies", "numbered"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
KeyArray = NDArray[np.uint64]

# From the stratum (N,) of each row, from -1 on, a key for each stratum, (S + 1,), of -1 first, and a seed: to the rows
# whose scattered key is at most that of their stratum, ascending, and these keys (as `kernels.low_rows` has it).
Low = Callable[[NDArray[Any], KeyArray, int], tuple[IntArray, KeyArray]]
Found = tuple[IntArray, KeyArray, NDArray[Any]]  # rows, their keys, their strata

_EVENLY = 0.5  # share of a sample that is spent on all rows alike, so that no row stands for too many
_UNWANTED = 1e-6  # rarity of a row that shows no class: it comes when nothing else is left
_HALVINGS = 80
# Rows of uneven weight are thinned first if, within strata, they are worth less than this share of as many equal ones.
_MIN_EVENNESS = 0.5
_MAX_THINNING_LOSS = 0.02  # by which thinning may raise the variance of weighted sums
_LEVELS = 63  # of weights, each half of the one before
_THINNING_SEED = 1 << 40  # added to the seed, so that rows that are kept are not also those drawn first
_ALL_BITS = (1 << 64) - 1
_TINY = float(np.finfo(float).tiny)
_BLOCK = 1 << 20  # labels looked at together
_TABLE_BLOCK = 1 << 17  # labels looked up together: what is made of them stays in cache


@dataclass(frozen=True, eq=False)
class Sample:
    """Some of the rows, and how many each of them stands for.

    Parameters
    ----------
    rows : ndarray of shape (n,), int
        Ascending.
    frequency : ndarray of shape (n,)
        Rows of the whole that a row stands for; sums to N.
    stratum : ndarray of shape (n,), int, optional
        What each was drawn for; see :class:`Strata`.
    """

    rows: IntArray
    frequency: FloatArray
    stratum: IntArray | None = None


def draw_rows(
    codes: NDArray[Any] | None,
    n_rows: int,
    n_total: int,
    *,
    weight: FloatArray | None = None,
    low: Low | None = None,
    seed: int = 0,
    thin: bool = False,
) -> Sample:
    """Draw about `n_rows` rows without replacement, stratified by class.

    A row belongs to the rarest class that it shows, over all of its outputs. Half of the sample goes to all rows alike,
    the other half to each class alike; a class with fewer rows than that gives all that it has. Within a class every
    row is as likely as any other, and stands for equally many: sums over the sample, weighted by `frequency`, estimate
    sums over all rows without bias, and the counts of the classes of a single output are exact.

    Of rows whose weights differ greatly, such as those that decay with age, an even sample would have few that matter.
    With `thin`, rows of little weight are thinned first: each is kept with a probability that falls with its weight,
    and stands for as many more. Then counts are exact in expectation only.

    Parameters
    ----------
    codes : integer ndarray of shape (N, M), or None
        True classes, -1 where the label is missing. None: all rows alike.
    n_rows : int
        Rows to draw; all, if there are no more.
    n_total : int
        N.
    weight : ndarray of shape (N,), optional
        Rows of weight 0 show no class.
    low : callable, optional
        What rows are drawn by, their position by default: with keys of their content the same rows are drawn in
        whatever order they come. See :data:`Low` and :func:`by_keys`.
    seed : int, default=0
    thin : bool, default=False
        Whether rows of little weight are thinned first, if weights differ greatly.

    Returns
    -------
    Sample

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.core.sampling import draw_rows
    >>> codes = np.zeros((100_000, 1), dtype=np.int8)
    >>> codes[::20_000] = 1  # five rows
    >>> sample = draw_rows(codes, 1000, 100_000)
    >>> len(sample.rows), int(codes[sample.rows].sum()), round(sample.frequency.sum())
    (1000, 5, 100000)
    """
    if n_rows >= n_total:
        return Sample(np.arange(n_total), np.ones(n_total))
    strata = Strata.of(None if codes is None else count_rows(codes, weight), n_total)
    stratum = strata.of_rows(codes, weight, n_total)
    low = low or by_keys()
    thinned = _thin_rows(weight, stratum, low, seed) if thin and weight is not None else None
    if weight is not None and thinned is not None:
        return _draw_thinned(codes, n_rows, weight, thinned, low, seed)
    if strata.size is None:
        strata = replace(strata, size=strata.count(stratum))

    def below(keys: KeyArray) -> Found:
        rows, numbers = low(stratum, keys, seed)
        return rows, numbers, stratum[rows]

    return strata.draw(n_rows, below)


def _thin_rows(weight: FloatArray, stratum: NDArray[Any], low: Low, seed: int) -> Sample | None:
    """Keep rows with a probability that falls with their weight within strata; None if weights hardly differ.

    Weights are told apart by powers of 2. Rows of weight 0 are dropped.
    """
    place, positive = stratum.astype(np.intp) + 1, weight > 0
    means = np.bincount(place, weight) / np.maximum(np.bincount(place, positive), 1)
    relative = weight / np.maximum(means, _TINY)[place]
    squares = float(relative @ relative)
    if float(relative.sum()) ** 2 >= _MIN_EVENNESS * squares * int(positive.sum()):
        return None
    positive = relative > 0
    level = np.full(len(weight), -1, dtype=np.int8)
    level[positive] = np.minimum(np.log2(relative.max()) - np.log2(relative[positive]), _LEVELS - 1)
    # Of the levels from the first on that is thinned, each is kept half as often as the one before.
    at_level = np.bincount(level[positive], relative[positive] ** 2, _LEVELS)
    halvings = np.maximum(np.arange(_LEVELS) - np.arange(_LEVELS)[:, None], 0)
    loss = (2.0**halvings - 1) @ at_level
    kept = 2.0 ** -halvings[np.argmax(loss <= _MAX_THINNING_LOSS * squares)]
    keys = np.where(kept < 1, (np.minimum(kept, 0.5) * 2.0**64).astype(np.uint64), np.uint64(_ALL_BITS))
    rows, _ = low(level, np.append(np.uint64(0), keys), seed + _THINNING_SEED)
    rows = rows[positive[rows]]
    return Sample(rows, 1.0 / kept[level[rows]])


def _draw_thinned(
    codes: NDArray[Any] | None, n_rows: int, weight: FloatArray, thinned: Sample, low: Low, seed: int
) -> Sample:
    """Draw about `n_rows` of the rows that thinning has kept."""
    some, n_kept = thinned.rows, len(thinned.rows)
    if n_kept <= n_rows:
        return thinned
    counts = None if codes is None else count_rows(codes[some], weight[some])
    strata = Strata.of(counts, n_kept)
    kept = strata.of_rows(None if codes is None else codes[some], weight[some], n_kept).astype(np.int32)
    strata = replace(strata, size=strata.count(kept))
    stratum = np.full(len(weight), len(strata.rarity) - 1, dtype=np.int32)  # of rows that are never drawn
    stratum[some] = kept

    def below(keys: KeyArray) -> Found:
        rows, numbers = low(stratum, np.append(keys, np.uint64(0)), seed)
        drawn = stratum[rows] < len(strata.rarity) - 1
        return rows[drawn], numbers[drawn], stratum[rows[drawn]]

    drawn = strata.draw(n_rows, below)
    frequency = np.empty(len(weight))
    frequency[some] = thinned.frequency
    return replace(drawn, frequency=drawn.frequency * frequency[drawn.rows])


def number_copies(keys: KeyArray, weight: FloatArray | None) -> KeyArray:
    """Return the keys (N,) of rows with those of copies made different, by their number in the order of weights."""
    order = np.argsort(keys, kind="stable") if weight is None else np.lexsort((weight, keys))
    begin = np.flatnonzero(np.append(True, keys[order[1:]] != keys[order[:-1]]))
    number = np.arange(len(keys)) - np.repeat(begin, np.diff(begin, append=len(keys)))
    out = np.empty_like(keys)
    out[order] = numbered(keys[order], number)
    return out


def numbered(keys: KeyArray, number: IntArray) -> KeyArray:
    """Return keys (N,) that differ where numbers (N,) do."""
    with np.errstate(over="ignore"):
        return keys + number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def by_keys(keys: KeyArray | None = None) -> Low:
    """Return how rows of given keys (N,), by default their positions, are drawn."""

    def some_keys(some: slice) -> KeyArray:
        return np.arange(some.start, some.stop, dtype=np.uint64) if keys is None else keys[some]

    return partial(kernels.low_keys, some_keys)


def count_rows(codes: NDArray[Any], weight: FloatArray | None, width: int | None = None) -> FloatArray:
    """Return how many rows of positive weight show each class of each output, (M, K)."""
    width = int(codes.max(initial=0)) + 1 if width is None else width
    return kernels.tally(codes, None if weight is None else (weight > 0).astype(np.float64), width)


@dataclass(frozen=True, eq=False)
class Strata:
    """Rows by the rarest class that they show; -1 shows none.

    Parameters
    ----------
    place : integer ndarray of shape (M, K + 1), or None
        The stratum that a class of an output means, -1 last, where a missing label looks. None: of a single output
        classes are strata, and without labels there is one.
    rarity : ndarray of shape (S + 1,)
        What a row of each, of -1 first, is wanted for beside one of an average class.
    size : ndarray of shape (S + 1,), int, or None
        Rows of each, where they are known without a look at all of them.
    """

    place: NDArray[Any] | None
    rarity: FloatArray
    size: IntArray | None

    @classmethod
    def of(cls, counts: FloatArray | None, n_total: int) -> Strata:
        """Return the strata of so many rows that show each class of each output, (M, K); None without labels."""
        if counts is None:
            return cls(None, np.array([_UNWANTED, 1.0]), np.array([0, n_total]))
        average = counts.sum(axis=1, keepdims=True) / np.maximum((counts > 0).sum(axis=1, keepdims=True), 1)
        rarity = (average / np.maximum(counts, 1.0)).reshape(-1)
        if len(counts) == 1:  # the classes themselves
            size = np.append(n_total - counts.sum(), counts[0]).astype(np.intp)
            return cls(None, np.concatenate([[_UNWANTED], rarity]), size)
        # The classes of all outputs, the most frequent first.
        by_count = np.argsort(-counts.reshape(-1), kind="stable")[: int((counts > 0).sum())]
        place = np.full(counts.size, -1, dtype=np.int8 if len(by_count) < 1 << 7 else np.int32)
        place[by_count] = np.arange(len(by_count))
        nothing = np.full((len(counts), 1), -1, dtype=place.dtype)
        table = np.concatenate([place.reshape(counts.shape), nothing], axis=1)
        return cls(table, np.concatenate([[_UNWANTED], rarity[by_count]]), None)

    def of_rows(self, codes: NDArray[Any] | None, weight: FloatArray | None, n_rows: int) -> NDArray[Any]:
        """Return the stratum (n,) of each of some rows."""
        if codes is None:
            return np.zeros(n_rows, dtype=np.int8)
        if self.place is None:
            return codes[:, 0] if weight is None else np.where(weight > 0, codes[:, 0], -1)
        stratum = _rarest(codes, self.place)
        if weight is not None:
            stratum[weight <= 0] = -1
        return stratum

    def count(self, stratum: NDArray[Any]) -> IntArray:
        """Return how many of some rows are in each stratum, (S + 1,)."""
        # Block by block: counted at once, small integers become large ones first.
        blocks = (stratum[start : start + _BLOCK].astype(np.intp) + 1 for start in range(0, len(stratum), _BLOCK))
        return np.asarray(sum(np.bincount(block, minlength=len(self.rarity)) for block in blocks))

    def draw(self, n_rows: int, below: Callable[[KeyArray], Found]) -> Sample:
        """Draw about so many rows: of each stratum those of the lowest keys, of equal ones the first.

        Parameters
        ----------
        n_rows : int
        below : callable
            From a key for each stratum, (S + 1,), to the rows whose scattered key is at most that of their stratum,
            ascending, these keys, and the strata of these rows.
        """
        size = self.size
        assert size is not None
        quota = _quotas(size, self.rarity, n_rows)
        rows, strata = _lowest(below, size, quota)
        frequency = size / np.maximum(np.bincount(strata, minlength=len(size)), 1)
        return Sample(rows, frequency[strata], strata - 1)


def _lowest(below: Callable[[KeyArray], Found], size: IntArray, quota: IntArray) -> tuple[IntArray, IntArray]:
    """Return the rows of the lowest scattered keys, so many of each stratum, ascending, and their strata."""
    share = quota / np.maximum(size, 1)
    margin = 4 * np.sqrt(np.maximum(quota, 1)) / np.maximum(size, 1)
    while True:
        # Hardly more than are wanted have a key below this, in each stratum.
        part = np.minimum(share + margin, 1 - 2.0**-53)
        keys = np.where(share + margin < 1, (part * 2.0**64).astype(np.uint64), np.uint64(_ALL_BITS))
        rows, numbers, stratum = below(keys)
        strata = stratum.astype(np.intp) + 1
        met = np.bincount(strata, minlength=len(size))
        if (met >= quota).all():
            break
        margin = np.where(met < quota, 4 * margin + share, margin)
    order = _order(numbers, strata)
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(met) - met, met)
    kept = np.sort(order[rank < quota[strata[order]]])
    return rows[kept], strata[kept]


def _order(numbers: KeyArray, strata: IntArray) -> IntArray:
    """Return the order by stratum and number, and by place where both are equal."""
    order = np.argsort(numbers)  # which is far faster than a sort by two keys, and leaves equal ones in any order
    ascending = numbers[order]
    if (ascending[1:] == ascending[:-1]).any():
        return np.lexsort((numbers, strata))
    codes = strata[order]
    codes = codes.astype(np.uint16) if codes.max(initial=0) < 1 << 16 else codes  # a radix sort, for integers so small
    return np.asarray(order[np.argsort(codes, kind="stable")])


def _rarest(codes: NDArray[Any], table: NDArray[Any]) -> NDArray[Any]:
    """Return the largest entry of the table (M, K + 1) that the labels of each row point to."""
    out = np.empty(len(codes), dtype=table.dtype)
    step = max(1, _TABLE_BLOCK // codes.shape[1])
    entries = np.roll(table, 1, axis=1).reshape(-1)  # of a missing label, -1, first
    first = np.arange(codes.shape[1]) * table.shape[1] + 1
    for start in range(0, len(codes), step):
        rows = slice(start, start + step)
        out[rows] = entries.take(codes[rows] + first).max(axis=1)
    return out


def _quotas(size: IntArray, rarity: FloatArray, n_rows: int) -> IntArray:
    """Return how many rows of each stratum are drawn: as its size and its rarity say, at most all, at least one.

    A row of a stratum is drawn with probability ``min(1, base + t * rarity)``; t makes the sum right.
    """
    base = _EVENLY * n_rows / size.sum()

    def drawn(t: float) -> FloatArray:
        return np.asarray(size * np.minimum(1.0, base + t * rarity))

    low, high = 0.0, 1.0 / _UNWANTED
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if drawn(middle).sum() < n_rows else (low, middle)
    return np.clip(np.rint(drawn(high)).astype(np.intp), np.minimum(size, 1), size)
