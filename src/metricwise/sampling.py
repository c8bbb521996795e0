"""Samples of rows in which rare classes are there.

Owns the one way in which rows are sampled, wherever some of them must stand for all: the link, the choice of the
recipe, the starts of a search. Must not know probabilities, metrics or oracles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import kernels

__all__ = ["Sample", "draw_rows", "keys_of", "scattered"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
KeyArray = NDArray[np.uint64]

_EVENLY = 0.5  # share of a sample that is spent on all rows alike, so that no row stands for too many
_UNWANTED = 1e-6  # rarity of a row that shows no class: it comes when nothing else is left
_HALVINGS = 80
_FEW = 1 << 16  # rows whose keys are made together
_GLANCE = 1 << 10  # rows that say whether many are alike
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
    keys: KeyArray | None = None,
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
    keys : ndarray of shape (N,), uint64, optional
        What rows are drawn by, see :func:`scattered`: with keys of their content the same rows are drawn in whatever
        order they come. None: their position.
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
    stratum, rarity = _strata(codes, n_total, weight)
    # Block by block: counted at once, small integers become large ones first.
    blocks = (stratum[start : start + _BLOCK] for start in range(0, n_total, _BLOCK))
    size = np.asarray(sum(np.bincount(block, minlength=len(rarity)) for block in blocks))
    quota = _quotas(size, rarity, n_rows)
    rows = _lowest(keys, seed, stratum, size, quota)
    frequency = size / np.maximum(np.bincount(stratum[rows], minlength=len(size)), 1)
    return Sample(rows, frequency[stratum[rows]])


def scattered(keys: KeyArray, seed: int) -> KeyArray:
    """Return numbers that look drawn at random, equal ones for equal keys: products, high bits folded onto low ones.

    Parameters
    ----------
    keys : ndarray of uint64
    seed : int
        Another one scatters the same keys otherwise.
    """
    with np.errstate(over="ignore"):
        out = keys * np.uint64((seed * 0xD1342543DE82EF95 + 0x9E3779B97F4A7C15 | 1) & _ALL_BITS)
        out ^= out >> np.uint64(32)
        out *= np.uint64(0xD6E8FEB86659FD93)
        out ^= out >> np.uint64(32)
        out *= np.uint64(0xD6E8FEB86659FD93)
    return np.asarray(out)


def keys_of(hashes: Callable[[bool], KeyArray], weights: Callable[[], FloatArray | None]) -> KeyArray:
    """Return numbers by which rows can be drawn alike in whatever order they come.

    Parameters
    ----------
    hashes : callable
        From whether all that a row holds is looked at, or a few entries, to numbers (N,) made of it.
    weights : callable
        To the weights (N,) of rows, if any: copies of a row are numbered in their order.

    Returns
    -------
    ndarray of shape (N,), uint64
        Those of a few entries, unless they are often equal: then those of all, and copies of a row are numbered.
    """
    key = hashes(False)
    few = key[:: max(1, len(key) // _GLANCE)]
    if len(np.unique(few)) == len(few):
        return key
    key = hashes(True).copy()
    weight = weights()
    order = np.argsort(key, kind="stable") if weight is None else np.lexsort((weight, key))
    begin = np.flatnonzero(np.append(True, key[order[1:]] != key[order[:-1]]))
    number = np.arange(len(key)) - np.repeat(begin, np.diff(begin, append=len(key)))
    with np.errstate(over="ignore"):
        key[order] += number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return key


def _lowest(keys: KeyArray | None, seed: int, stratum: NDArray[Any], size: IntArray, quota: IntArray) -> IntArray:
    """Return the rows of the lowest scattered keys, so many of each stratum, ascending; of equal ones the first."""
    share = quota / np.maximum(size, 1)
    margin = 4 * np.sqrt(np.maximum(quota, 1)) / np.maximum(size, 1)
    while True:
        # Hardly more than are wanted have a key below this, in each stratum.
        part = np.minimum(share + margin, 1 - 2.0**-53)
        below = np.where(share + margin < 1, (part * 2.0**64).astype(np.uint64), np.uint64(_ALL_BITS))
        rows, numbers = _below(keys, seed, stratum, below)
        own = stratum[rows]
        met = np.bincount(own, minlength=len(size))
        if (met >= quota).all():
            break
        margin = np.where(met < quota, 4 * margin + share, margin)
    order = np.lexsort((numbers, own))
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(met) - met, met)
    return np.sort(rows[order[rank < quota[own[order]]]])


def _below(keys: KeyArray | None, seed: int, stratum: NDArray[Any], below: KeyArray) -> tuple[IntArray, KeyArray]:
    """Rows whose scattered key is at most that of their stratum, and the keys; some rows at a time, to hold little."""
    rows, numbers = [], []
    for start in range(0, len(stratum), _FEW):
        end = min(start + _FEW, len(stratum))
        own = scattered(np.arange(start, end, dtype=np.uint64) if keys is None else keys[start:end], seed)
        low = np.flatnonzero(own <= below[stratum[start:end]])
        rows.append(low + start)
        numbers.append(own[low])
    return np.concatenate(rows), np.concatenate(numbers)


def _strata(
    codes: NDArray[Any] | None, n_total: int, weight: FloatArray | None
) -> tuple[NDArray[np.integer[Any]], FloatArray]:
    """Return the stratum of each row, and what a row of each stratum is wanted for beside one of an average class.

    Stratum 0 shows no class; the others are the classes of all outputs, the most frequent first.
    """
    if codes is None:
        return np.zeros(n_total, dtype=np.int8), np.ones(1)
    width = int(codes.max(initial=0)) + 1
    counts = kernels.tally(codes, None if weight is None else (weight > 0).astype(np.float64), width)
    shown = counts.reshape(-1) > 0
    by_count = np.argsort(-counts.reshape(-1), kind="stable")[: int(shown.sum())]
    place = np.zeros(counts.size, dtype=np.int16 if len(by_count) < 1 << 15 else np.int32)
    place[by_count] = np.arange(1, len(by_count) + 1)
    # Where a missing label (-1) looks, the last column, nothing is shown.
    table = np.concatenate([place.reshape(counts.shape), np.zeros((len(counts), 1), dtype=place.dtype)], axis=1)
    stratum = _rarest(codes, table)
    if weight is not None:
        stratum[weight <= 0] = 0
    average = counts.sum(axis=1, keepdims=True) / np.maximum((counts > 0).sum(axis=1, keepdims=True), 1)
    rarity = (average / np.maximum(counts, 1.0)).reshape(-1)[by_count]
    return stratum, np.concatenate([[_UNWANTED], rarity])


def _rarest(codes: NDArray[Any], table: NDArray[Any]) -> NDArray[Any]:
    """Return the largest entry of the table (M, K + 1) that the labels of each row point to."""
    if codes.shape[1] == 1:
        return np.asarray(table[0][codes[:, 0]])
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
