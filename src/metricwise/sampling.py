"""Samples of rows in which rare classes are there.

Owns the one way in which rows are sampled, wherever some of them must stand for all: the link, the choice of the
recipe, the starts of a search. Must not know probabilities, metrics or oracles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import kernels

__all__ = ["Low", "Sample", "by_keys", "draw_rows", "number_copies"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
KeyArray = NDArray[np.uint64]

# From the stratum (N,) of each row, from -1 on, a key for each stratum, (S + 1,), of -1 first, and a seed: to the rows
# whose scattered key is at most that of their stratum, ascending, and these keys (as `kernels.low_rows` has it).
Low = Callable[[NDArray[Any], KeyArray, int], tuple[IntArray, KeyArray]]

_EVENLY = 0.5  # share of a sample that is spent on all rows alike, so that no row stands for too many
_UNWANTED = 1e-6  # rarity of a row that shows no class: it comes when nothing else is left
_HALVINGS = 80
_ALL_BITS = (1 << 64) - 1
_BLOCK = 1 << 20  # labels looked at together


@dataclass(frozen=True, eq=False)
class Sample:
    """Some of the rows, and how many each of them stands for.

    Parameters
    ----------
    rows : ndarray of shape (n,), int
        Ascending.
    frequency : ndarray of shape (n,)
        Rows of the whole that a row stands for; sums to N.
    """

    rows: IntArray
    frequency: FloatArray


def draw_rows(
    codes: NDArray[Any] | None,
    n_rows: int,
    n_total: int,
    *,
    weight: FloatArray | None = None,
    low: Low | None = None,
    seed: int = 0,
) -> Sample:
    """Draw about `n_rows` rows without replacement, stratified by class.

    A row belongs to the rarest class that it shows, over all of its outputs. Half of the sample goes to all rows alike,
    the other half to each class alike; a class with fewer rows than that gives all that it has. Within a class every
    row is as likely as any other, and stands for equally many: sums over the sample, weighted by `frequency`, estimate
    sums over all rows without bias, and the counts of the classes of a single output are exact.

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

    Returns
    -------
    Sample

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.sampling import draw_rows
    >>> codes = np.zeros((100_000, 1), dtype=np.int8)
    >>> codes[::20_000] = 1  # five rows
    >>> sample = draw_rows(codes, 1000, 100_000)
    >>> len(sample.rows), int(codes[sample.rows].sum()), round(sample.frequency.sum())
    (1000, 5, 100000)
    """
    if n_rows >= n_total:
        return Sample(np.arange(n_total), np.ones(n_total))
    strata = _strata(codes, n_total, weight)
    size, quota = strata.size, _quotas(strata.size, strata.rarity, n_rows)
    rows = _lowest(low or by_keys(), seed, strata.of_row, size, quota)
    own = strata.of_row[rows].astype(np.intp) + 1
    frequency = size / np.maximum(np.bincount(own, minlength=len(size)), 1)
    return Sample(rows, frequency[own])


def number_copies(keys: KeyArray, weight: FloatArray | None) -> KeyArray:
    """Return the keys (N,) of rows with those of copies made different, by their number in the order of weights."""
    order = np.argsort(keys, kind="stable") if weight is None else np.lexsort((weight, keys))
    begin = np.flatnonzero(np.append(True, keys[order[1:]] != keys[order[:-1]]))
    number = np.arange(len(keys)) - np.repeat(begin, np.diff(begin, append=len(keys)))
    out = keys.copy()
    with np.errstate(over="ignore"):
        out[order] += number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return out


def by_keys(keys: KeyArray | None = None) -> Low:
    """Return how rows of given keys (N,), by default their positions, are drawn."""

    def some_keys(some: slice) -> KeyArray:
        return np.arange(some.start, some.stop, dtype=np.uint64) if keys is None else keys[some]

    return partial(kernels.low_keys, some_keys)


def _lowest(low: Low, seed: int, stratum: NDArray[Any], size: IntArray, quota: IntArray) -> IntArray:
    """Return the rows of the lowest scattered keys, so many of each stratum, ascending; of equal ones the first."""
    share = quota / np.maximum(size, 1)
    margin = 4 * np.sqrt(np.maximum(quota, 1)) / np.maximum(size, 1)
    while True:
        # Hardly more than are wanted have a key below this, in each stratum.
        part = np.minimum(share + margin, 1 - 2.0**-53)
        below = np.where(share + margin < 1, (part * 2.0**64).astype(np.uint64), np.uint64(_ALL_BITS))
        rows, numbers = low(stratum, below, seed)
        own = stratum[rows].astype(np.intp) + 1
        met = np.bincount(own, minlength=len(size))
        if (met >= quota).all():
            break
        margin = np.where(met < quota, 4 * margin + share, margin)
    order = np.lexsort((numbers, own))
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(met) - met, met)
    return np.sort(rows[order[rank < quota[own[order]]]])


class _Strata(NamedTuple):
    """Rows by the rarest class that they show; -1 shows none.

    Fields
    ------
    of_row : integer ndarray of shape (N,)
    size : ndarray of shape (S + 1,), int
        Rows of each stratum, of -1 first.
    rarity : ndarray of shape (S + 1,)
        What a row of each is wanted for beside one of an average class.
    """

    of_row: NDArray[Any]
    size: IntArray
    rarity: FloatArray


def _strata(codes: NDArray[Any] | None, n_total: int, weight: FloatArray | None) -> _Strata:
    if codes is None:
        nowhere = np.zeros(n_total, dtype=np.int8)
        return _Strata(nowhere, np.array([0, n_total]), np.array([_UNWANTED, 1.0]))
    width = int(codes.max(initial=0)) + 1
    counts = kernels.tally(codes, None if weight is None else (weight > 0).astype(np.float64), width)
    average = counts.sum(axis=1, keepdims=True) / np.maximum((counts > 0).sum(axis=1, keepdims=True), 1)
    rarity = (average / np.maximum(counts, 1.0)).reshape(-1)
    if len(counts) == 1:  # the classes themselves
        size = np.append(n_total - counts.sum(), counts[0]).astype(np.intp)
        own = codes[:, 0] if weight is None else np.where(weight > 0, codes[:, 0], -1)
        return _Strata(own, size, np.concatenate([[_UNWANTED], rarity]))
    # The classes of all outputs, the most frequent first.
    by_count = np.argsort(-counts.reshape(-1), kind="stable")[: int((counts > 0).sum())]
    place = np.full(counts.size, -1, dtype=np.int8 if len(by_count) < 1 << 7 else np.int32)
    place[by_count] = np.arange(len(by_count))
    # Where a missing label (-1) looks, the last column, nothing is shown.
    table = np.concatenate([place.reshape(counts.shape), np.full((len(counts), 1), -1, dtype=place.dtype)], axis=1)
    own = _rarest(codes, table)
    if weight is not None:
        own[weight <= 0] = -1
    # Block by block: counted at once, small integers become large ones first.
    blocks = (own[start : start + _BLOCK].astype(np.intp) + 1 for start in range(0, n_total, _BLOCK))
    size = np.asarray(sum(np.bincount(block, minlength=len(by_count) + 1) for block in blocks))
    return _Strata(own, size, np.concatenate([[_UNWANTED], rarity[by_count]]))


def _rarest(codes: NDArray[Any], table: NDArray[Any]) -> NDArray[Any]:
    """Return the largest entry of the table (M, K + 1) that the labels of each row point to."""
    out = np.empty(len(codes), dtype=table.dtype)
    step = max(1, _BLOCK // codes.shape[1])
    outputs = np.arange(codes.shape[1])
    for start in range(0, len(codes), step):
        rows = slice(start, start + step)
        out[rows] = table[outputs, codes[rows]].max(axis=1)
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
