"""Best label set of a row, where a metric of label sets is averaged over rows: the NumPy twins.

Arrays that all functions take:

values : ndarray of shape (E,), float32 or float64. The absolute value is the probability of a label.
indices : integer ndarray of shape (E,), the label of each entry, ascending within a row; None for dense rows, where
    entry e of row i is label ``e - indptr[i]``.
indptr : int64 ndarray of shape (N + 1,)
rows : int64 ndarray of shape (n,), the rows that are read, in this order; None for all.
factor : float64 ndarray of shape (M,), or None. Probabilities are multiplied by it, and are at most 1.
missing : float, or float64 ndarray of shape (N,). Rate of the true labels that are not stored; they are misses.

The labels of a row are taken as independent, and the number of missing ones as Poisson. Then no set of j labels has a
higher expected F-beta or Jaccard than the j most probable ones. With N true labels in all, T of them among these j, and
p_i their probabilities in descending order:

- ``F-beta = (1 + beta2) T / (beta2 N + j)``, so that its expectation is ``(1 + beta2) sum_s A_j(s) / (beta2 s + j)``
  with ``A_j(s) = sum_{i <= j} P(label i is true, N = s)``. The terms of A are found from the distribution of N in one
  recursion each, upwards from no label for p_i <= 1/2 and downwards for others: no error grows along it.
- ``Jaccard = T / (j + R)`` with R the number of true labels that are not predicted, which is independent of T: its
  expectation is ``sum_{i <= j} p_i * E[1 / (j + R_j)]``. R_j is found from R_{j + 1} by adding a label.

So a row of n entries takes O(n S) operations, S being the numbers of true labels with a probability of at least
`NEGLIGIBLE`; the ends of distributions below it are left out. This leaves out a probability of at most
``(n + S) * NEGLIGIBLE`` in all and changes an expected value by at most ``beta2 (1 + E[N]) + j`` times (for Jaccard,
``j + E[R_j]`` times) as much of itself, less than 1e-12 for F1 of rows of a hundred entries.

Sizes that cannot be best are not computed. By Jensen's inequality, the value of size j is at most
``(1 + beta2) m_j / (beta2 m_j + j)`` with m_j the sum of the first j probabilities (for Jaccard, ``m_j / j``), which
falls with j, and it is at least what it would be if numbers of other true labels were their means.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._block import FloatArray

NEGLIGIBLE = 2.0**-56  # 1.4e-17: ends of distributions below it are left out
TIE = 1e-12  # a larger size has to be better by this share, or both are equal but for rounding

_TOGETHER = 1 << 16  # entries, padding included, of the rows that are worked on at a time

IndexArray = NDArray[np.int64]


def label_set_sizes(
    values: NDArray[Any],
    indices: NDArray[Any] | None,
    indptr: IndexArray,
    rows: IndexArray | None,
    beta2: float,
    jaccard: bool,
    zero_division: float,
    missing: float | FloatArray,
    low: int,
    high: int,
    factor: FloatArray | None,
) -> IndexArray:
    """Return how many of its most probable labels each row predicts for the highest expected value, (n,).

    Parameters
    ----------
    values, indices, indptr, rows, missing, factor
        See the module.
    beta2 : float
        Square of beta, at least 0; unused for Jaccard.
    jaccard : bool
        Jaccard rather than F-beta.
    zero_division : float
        Value of 0/0: no predicted labels, and no true ones either unless beta is 0.
    low, high : int
        Least and largest size; high = -1 for no limit. No size but `low` exceeds the number of labels with a
        probability above 0. The smaller of equally good sizes is taken.
    """
    sizes = np.full(_number_of_rows(indptr, rows), low, dtype=np.int64)
    for part, start, length, rate in _parts(indptr, rows, missing):
        row = _SortedRows(
            _probabilities(values, indices, start, length, factor)[0], rate, beta2, jaccard, zero_division
        )
        most = row.n_positive if high < 0 else np.minimum(row.n_positive, high)
        first = np.full(len(part), low)
        expected = row.expected(first, np.where(most > low, row.largest(low, most), first))
        best, best_size = expected[0].copy(), first.copy()
        for size, value in enumerate(expected[1:], low + 1):
            better = value > best * (1.0 + TIE)
            np.copyto(best, value, where=better)
            best_size[better] = size
        sizes[part] = best_size
    return sizes


def label_set_values(
    values: NDArray[Any],
    indices: NDArray[Any] | None,
    indptr: IndexArray,
    rows: IndexArray | None,
    sizes: IndexArray,
    beta2: float,
    jaccard: bool,
    zero_division: float,
    missing: float | FloatArray,
    factor: FloatArray | None,
) -> FloatArray:
    """Return the expected value of each row, (n,), that predicts so many of its most probable labels.

    Parameters
    ----------
    sizes : int64 ndarray of shape (n,)
    values, indices, indptr, rows, beta2, jaccard, zero_division, missing, factor
        See :func:`label_set_sizes`.
    """
    out = np.empty(_number_of_rows(indptr, rows))
    check_sizes(sizes, len(out))
    for part, start, length, rate in _parts(indptr, rows, missing):
        row = _SortedRows(
            _probabilities(values, indices, start, length, factor)[0], rate, beta2, jaccard, zero_division
        )
        out[part] = row.expected(sizes[part], sizes[part])[0]
    return out


def label_set_choose(
    values: NDArray[Any],
    indices: NDArray[Any] | None,
    indptr: IndexArray,
    n_labels: int,
    rows: IndexArray | None,
    sizes: IndexArray,
    factor: FloatArray | None,
) -> tuple[IndexArray, NDArray[Any]]:
    """Return the most probable labels of each row, so many: where those of each row begin (n + 1,), and the labels.

    Labels ascend in a row and have the type of `indices`, int64 without. The lower of equally probable labels comes
    first; unstored labels have probability 0, as stored zeros have.

    Parameters
    ----------
    n_labels : int
        M. No row has more labels than that.
    sizes : int64 ndarray of shape (n,)
    values, indices, indptr, rows, factor
        See the module.
    """
    check_sizes(sizes, _number_of_rows(indptr, rows))
    sizes = np.minimum(sizes, n_labels)
    out_ptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])
    out = np.empty(out_ptr[-1], dtype=np.int64 if indices is None else indices.dtype)
    for part, start, length, _ in _parts(indptr, rows, 0.0):
        p, labels = _probabilities(values, indices, start, length, factor)
        order = np.argsort(-p, axis=0, kind="stable")
        n_positive = (p > 0.0).sum(axis=0)
        n_stored = np.minimum(sizes[part], n_positive)
        chosen = np.zeros(p.shape, dtype=bool)
        np.put_along_axis(chosen, order, np.arange(len(p))[:, None] < n_stored, axis=0)
        for column in np.flatnonzero(sizes[part] > n_positive):
            begin, end = out_ptr[part[column]], out_ptr[part[column] + 1]
            positive = labels[chosen[:, column], column]
            # Of the labels below the size at least as many are improbable as are wanted.
            improbable = np.setdiff1d(np.arange(end - begin), positive)[: end - begin - len(positive)]
            out[begin:end] = np.sort(np.concatenate([positive, improbable]))
            chosen[:, column] = False
            n_stored[column] = 0
        columns, entries = np.nonzero(chosen.T)
        earlier = np.cumsum(n_stored) - n_stored
        out[out_ptr[part[columns]] + np.arange(len(columns)) - earlier[columns]] = labels[entries, columns]
    return out_ptr, out


def _number_of_rows(indptr: IndexArray, rows: IndexArray | None) -> int:
    return len(indptr) - 1 if rows is None else len(rows)


def check_sizes(sizes: IndexArray, number: int) -> None:
    """Refuse sizes that no set has, or that are not one for each row: for both twins."""
    if len(sizes) != number or np.min(sizes, initial=0) < 0:
        raise ValueError("metricwise.kernels: sizes must be at least 0, one for each row that is read.")


def check_missing(missing: FloatArray, number: int) -> None:
    """Refuse rates that no Poisson number has: for both twins."""
    if missing.ndim and missing.shape != (number,):
        raise ValueError("metricwise.kernels: missing must be a number, or have one for each row.")
    if not (np.isfinite(missing) & (missing >= 0.0)).all():
        raise ValueError("metricwise.kernels: missing must be finite and at least 0.")


def _parts(
    indptr: IndexArray, rows: IndexArray | None, missing: float | FloatArray
) -> Iterator[tuple[IndexArray, IndexArray, IndexArray, FloatArray]]:
    """Yield some rows of like length at a time: places among those read, first entries, lengths, rates of missing."""
    rows = np.arange(len(indptr) - 1) if rows is None else rows
    start, length = indptr[rows], indptr[rows + 1] - indptr[rows]
    missing = np.asarray(missing, dtype=np.float64)
    check_missing(missing, len(indptr) - 1)
    rate = np.broadcast_to(missing, len(indptr) - 1)[rows]
    order = np.argsort(-length, kind="stable")
    begin = 0
    while begin < len(order):
        part = order[begin : begin + max(_TOGETHER // max(int(length[order[begin]]), 1), 1)]
        yield part, start[part], length[part], rate[part]
        begin += len(part)


def _probabilities(
    values: NDArray[Any],
    indices: NDArray[Any] | None,
    start: IndexArray,
    length: IndexArray,
    factor: FloatArray | None,
) -> tuple[FloatArray, NDArray[Any]]:
    """Return the probabilities and labels of rows, (longest, rows), with probability 0 behind the entries of a row."""
    place = np.arange(length.max())[:, None]
    stored = place < length
    entry = np.where(stored, start + place, 0)
    if not stored.any():
        return np.zeros(stored.shape), np.zeros(stored.shape, dtype=np.int64)
    p = np.abs(values[entry]).astype(np.float64)
    labels = np.where(stored, place if indices is None else indices[entry], 0)
    if factor is not None:
        p *= factor[labels]
    p[~stored] = 0.0
    return np.minimum(p, 1.0), labels


class _Count:
    """Distributions of a number of true labels, one for each row: (numbers, rows), from `first` to `last` of each."""

    def __init__(self, rate: FloatArray, n_labels: int) -> None:
        """Begin with Poisson numbers of missing labels, with room for so many others."""
        columns = np.arange(len(rate))
        mode = rate.astype(np.int64)
        steps = [np.ones(len(rate))]  # upwards from the mode, in units of it: no rate is too high for them
        while steps[-1].any():
            step = steps[-1] * rate / (mode + len(steps))
            steps.append(np.where(step < NEGLIGIBLE, 0.0, step))
        self.first, self.last = mode.copy(), mode + sum(step > 0.0 for step in steps) - 1
        self.mass = np.zeros((int(self.last.max(initial=0)) + n_labels + 2, len(rate)))
        for up, step in enumerate(steps):
            some = step > 0.0
            self.mass[mode[some] + up, columns[some]] = step[some]
        step, going = np.ones(len(rate)), mode > 0
        while going.any():
            step[going] = step[going] * self.first[going] / rate[going]
            going &= step >= NEGLIGIBLE
            self.first -= going
            self.mass[self.first[going], columns[going]] = step[going]
            going &= self.first > 0
        total = np.zeros(len(rate))
        for mass in self.mass:
            total += mass
        self.mass /= total
        self._leave_out()

    def add(self, p: FloatArray) -> None:
        """Count one more label of these probabilities (rows,)."""
        if not p.any():
            return
        columns = np.arange(len(p))
        begin, end = int(self.first.min()), int(self.last.max()) + 2
        before = self.mass[begin:end].copy()
        after = self.mass[begin:end]
        after *= 1.0 - p
        after[1:] += p * before[:-1]
        grown = self.mass[self.last + 1, columns] >= NEGLIGIBLE
        self.mass[self.last[~grown] + 1, columns[~grown]] = 0.0
        self.last += grown
        self._leave_out()

    def _leave_out(self) -> None:
        """Leave out the smallest numbers that are improbable."""
        columns = np.arange(len(self.first))
        small = self.mass[self.first, columns] < NEGLIGIBLE
        while small.any():
            self.mass[self.first[small], columns[small]] = 0.0
            self.first += small
            small = self.mass[self.first, columns] < NEGLIGIBLE

    def joint(self, p: FloatArray) -> FloatArray:
        """Return the probabilities that one of the labels counted, of probability p (rows,), is true as well."""
        up, down = np.zeros_like(self.mass), np.zeros_like(self.mass)
        often = p > 0.5
        odds = np.where(often, 0.0, p / np.where(often, 1.0, 1.0 - p))
        odds_against = np.where(often, (1.0 - p) / np.where(often, p, 1.0), 0.0)
        begin, end = int(self.first.min()), int(self.last.max()) + 1
        for s in range(begin, end):
            up[s + 1] = np.where(s <= self.last, odds * (self.mass[s] - up[s]), 0.0)
        for s in range(end - 1, max(begin, 1) - 1, -1):
            down[s] = np.where(s >= self.first, self.mass[s] - odds_against * down[s + 1], 0.0)
        return np.where(often, down, up)


def _mean_share(mass: FloatArray, slope: float, size: IndexArray) -> FloatArray:
    """Return ``sum_s mass[s] / (slope s + size)`` of each row, added in order."""
    total = np.zeros(mass.shape[1])
    for s in np.flatnonzero(mass.any(axis=1)):
        total += mass[s] / (slope * float(s) + size)
    return total


class _SortedRows:
    """Some rows and what is asked of them."""

    def __init__(self, p: FloatArray, rate: FloatArray, beta2: float, jaccard: bool, zero_division: float) -> None:
        self.p, self.rate, self.beta2, self.jaccard = p, rate, beta2, jaccard
        self.ranked = -np.sort(-p, axis=0)
        self.n_positive = (p > 0.0).sum(axis=0)
        self.sums = np.cumsum(self.ranked, axis=0)
        self.missing = _Count(rate, 0)
        none = self.missing.mass[0] * zero_division
        for share in p:
            none *= 1.0 - share
        self.none = none if jaccard or beta2 > 0.0 else np.full(len(rate), float(zero_division))

    def largest(self, low: int, most: IndexArray) -> IndexArray:
        """Return the largest size, at most `most`, that may be better than all smaller ones from `low` on."""
        mean = self.rate.copy()
        for share in self.p:
            mean += share
        out = np.zeros(len(most), dtype=np.int64)
        least = self.none if low == 0 else np.zeros(len(most))
        squares = np.zeros(len(most))
        for j in range(1, int(most.max(initial=0)) + 1):
            total = self.sums[j - 1]
            if self.jaccard:
                upper = total / j
            else:
                upper = (1.0 + self.beta2) * total / (self.beta2 * total + j)
            going = (out == j - 1) & (j <= most) & (upper > least)
            if not going.any():
                break
            out += going
            squares += self.ranked[j - 1] * self.ranked[j - 1]
            if j < low:
                continue
            if self.jaccard:
                lower = total / (j + (mean - total))
            else:
                among = squares / np.where(total > 0.0, total, 1.0)  # mean probability of a hit's label
                lower = (1.0 + self.beta2) * total / (self.beta2 * (1.0 + (mean - among)) + j)
            least = np.maximum(least, lower)
        return out

    def expected(self, first: IndexArray, last: IndexArray) -> FloatArray:
        """Return the expected values of sizes first, first + 1, ..., last of each row, (most sizes, rows).

        Sizes beyond the number of positive probabilities are asked for one at a time: ``first == last``.
        """
        reach = np.minimum(last, self.n_positive)
        out = np.full((int((last - first).max(initial=0)) + 1, len(reach)), -np.inf)
        out[0] = np.where(first == 0, self.none, 0.0)
        if not reach.any():
            return out
        for size, value, asked in self._jaccards(reach, last) if self.jaccard else self._f_betas(reach, last):
            asked &= size >= first
            out[(size - first)[asked], np.flatnonzero(asked)] = value[asked]
        return out

    def _f_betas(
        self, reach: IndexArray, last: IndexArray
    ) -> Iterator[tuple[IndexArray, FloatArray, NDArray[np.bool_]]]:
        count = _Count(self.rate, len(self.p))
        for share in self.p:
            count.add(share)
        hits = np.zeros_like(count.mass)
        for j in range(1, int(reach.max()) + 1):
            asked = j <= reach
            hits += count.joint(np.where(asked, self.ranked[j - 1], 0.0))
            size = np.where(j == reach, last, j)
            yield size, (1.0 + self.beta2) * _mean_share(hits, self.beta2, size), asked

    def _jaccards(
        self, reach: IndexArray, last: IndexArray
    ) -> Iterator[tuple[IndexArray, FloatArray, NDArray[np.bool_]]]:
        count = _Count(self.rate, len(self.p))
        ranks = np.arange(1, len(self.p) + 1)[:, None]
        lowest = np.where(reach > 0, self.ranked[np.maximum(reach, 1) - 1, np.arange(len(reach))], np.inf)
        for share in self.p:
            count.add(np.where(share < lowest, share, 0.0))
        equal = ((self.ranked == lowest) & (ranks > reach)).sum(axis=0)
        for number in range(int(equal.max())):
            count.add(np.where(number < equal, lowest, 0.0))
        for j in range(int(reach.max()), 0, -1):
            asked = j <= reach
            size = np.where(j == reach, last, j)
            yield size, self.sums[j - 1] * _mean_share(count.mass, 1.0, size), asked
            count.add(np.where(asked, self.ranked[j - 1], 0.0))
