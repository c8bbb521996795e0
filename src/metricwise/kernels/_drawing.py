"""Numbers made of what rows hold, by which rows are drawn alike in whatever order they come: the NumPy twins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

KeyArray = NDArray[np.uint64]

FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)  # of the first and the second entry
FOLD = 0xD6E8FEB86659FD93
_ALL_BITS = (1 << 64) - 1
_FEW = 1 << 16  # rows whose keys are made together


def scatter_factor(seed: int) -> int:
    """Return the odd number that keys are multiplied by first."""
    return (seed * 0xD1342543DE82EF95 + 0x9E3779B97F4A7C15 | 1) & _ALL_BITS


def scattered(keys: KeyArray, seed: int) -> KeyArray:
    """Return numbers that look drawn at random, equal ones for equal keys: products, high bits folded onto low ones.

    Parameters
    ----------
    keys : ndarray of uint64
    seed : int
        Another one scatters the same keys otherwise.
    """
    with np.errstate(over="ignore"):
        out = keys * np.uint64(scatter_factor(seed))
        for _ in range(2):
            out ^= out >> np.uint64(32)
            out *= np.uint64(FOLD)
    return np.asarray(out)


def row_keys(entries: Sequence[NDArray[Any]], codes: NDArray[Any] | None) -> KeyArray:
    """Return numbers (N,) made of one or two entries of each row and a label.

    Parameters
    ----------
    entries : sequence of one or two float ndarray of shape (N,)
    codes : integer ndarray of shape (N,), or None
    """
    n_rows = len(entries[0])
    keys = np.zeros(n_rows, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for start in range(0, n_rows, _FEW):
            rows = slice(start, start + _FEW)
            for part, factor in zip(entries, FACTORS, strict=False):
                keys[rows] += part[rows].astype(np.float64).view(np.uint64) * np.uint64(factor)
            if codes is not None:
                keys[rows] += codes[rows].astype(np.uint64)
    return keys


def low_rows(
    entries: Sequence[NDArray[Any]],
    codes: NDArray[Any] | None,
    stratum: NDArray[Any],
    below: KeyArray,
    seed: int,
) -> tuple[NDArray[np.intp], KeyArray]:
    """Return the rows whose scattered key is at most that of their stratum, ascending, and these keys.

    Parameters
    ----------
    entries : sequence of one or two float ndarray of shape (N,)
    codes : integer ndarray of shape (N,), or None
        What keys are made of; see :func:`row_keys`.
    stratum : integer ndarray of shape (N,)
        From -1 on.
    below : ndarray of shape (S + 1,), uint64
        Of each stratum, the first of which is -1.
    seed : int
    """

    def keys(some: slice) -> KeyArray:
        return row_keys([entry[some] for entry in entries], None if codes is None else codes[some])

    return low_keys(keys, stratum, below, seed)


def low_keys(
    keys: Callable[[slice], KeyArray], stratum: NDArray[Any], below: KeyArray, seed: int
) -> tuple[NDArray[np.intp], KeyArray]:
    """Return the same of rows whose keys are made, or taken, some rows at a time: a callable from a slice of them."""
    rows, numbers = [], []
    for start in range(0, len(stratum), _FEW):
        some = slice(start, min(start + _FEW, len(stratum)))
        numbered = scattered(keys(some), seed)
        low = np.flatnonzero(numbered <= below[stratum[some].astype(np.intp) + 1])
        rows.append(low + start)
        numbers.append(numbered[low])
    return np.concatenate(rows), np.concatenate(numbers)
