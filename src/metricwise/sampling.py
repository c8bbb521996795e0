"""Samples of rows in which rare classes are there.

Owns the one way in which rows are sampled, wherever some of them must stand for all: the link, the choice of the
recipe, the starts of a search. Must not know probabilities, metrics or oracles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import kernels

__all__ = ["Sample", "draw_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_EVENLY = 0.5  # share of a sample that is spent on all rows alike, so that no row stands for too many
_UNWANTED = 1e-6  # rarity of a row that shows no class: it comes when nothing else is left
_HALVINGS = 80
_FREQUENT = 64  # strata of at least one row in so many are met by drawing at random
_MOST = 0.25  # of the rows: from there on they are shuffled, not drawn one by one
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
    codes: NDArray[Any] | None, n_rows: int, n_total: int, *, weight: FloatArray | None = None, seed: int = 0
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
    rng = np.random.default_rng(seed)
    stratum, rarity = _strata(codes, n_total, weight)
    # Block by block: counted at once, small integers become large ones first.
    blocks = (stratum[start : start + _BLOCK] for start in range(0, n_total, _BLOCK))
    size = np.asarray(sum(np.bincount(block, minlength=len(rarity)) for block in blocks))
    quota = _quotas(size, rarity, n_rows)
    rows = np.concatenate([_frequent(stratum, size, quota, rng), _rare(stratum, size, quota, rng)])
    rows.sort()
    frequency = size / np.maximum(np.bincount(stratum[rows], minlength=len(size)), 1)
    return Sample(rows, frequency[stratum[rows]])


def _is_frequent(size: IntArray) -> NDArray[np.bool_]:
    return np.asarray(size * _FREQUENT >= size.sum())


def _frequent(stratum: NDArray[Any], size: IntArray, quota: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw from the strata that are met everywhere: rows at random, less those that are too many of their stratum."""
    wanted = np.where(_is_frequent(size), quota, 0)
    share = np.max(wanted / np.maximum(size, 1))
    n_total = len(stratum)
    # So many that with those drawn twice, and with luck as it mostly is, every stratum has enough.
    n_tries = n_total if share > _MOST else min(n_total, int(1.1 * n_total * share * (1 + share)) + 64 * len(size))
    while True:
        rows = rng.permutation(n_total) if n_tries == n_total else _distinct(rng.integers(0, n_total, n_tries))
        own = stratum[rows]
        order = np.argsort(own, kind="stable")
        met = np.bincount(own, minlength=len(size))
        if (met >= wanted).all():
            rank = np.arange(len(rows)) - np.repeat(np.cumsum(met) - met, met)
            return np.asarray(rows[order[rank < wanted[own[order]]]])
        n_tries = min(n_total, 2 * n_tries)


def _distinct(rows: IntArray) -> IntArray:
    """Return rows without repetition, in the order in which they first come."""
    _, first = np.unique(rows, return_index=True)
    return np.asarray(rows[np.sort(first)])


def _rare(stratum: NDArray[Any], size: IntArray, quota: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw from the strata that rows at random would miss: they are looked for."""
    frequent = _is_frequent(size)
    rows = np.flatnonzero(~frequent[stratum])
    rows = rows[np.argsort(stratum[rows], kind="stable")]
    kept, end = [rows[:0]], 0
    for have, want in zip(size[~frequent].tolist(), quota[~frequent].tolist(), strict=True):
        end += have
        own = rows[end - have : end]
        kept.append(own if want == have else own[rng.choice(have, want, replace=False)])
    return np.concatenate(kept)


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
