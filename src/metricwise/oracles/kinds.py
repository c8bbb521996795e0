"""Rows by kind: how many rows share their true labels and all that is decided about them.

Whatever is a function of labels and decisions is the same of a few kinds as of all rows, wherever these are. Must not
know metrics, nor who decides.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.probabilities import Probabilities
from ..core.rows import MIN_CHANCE_PAIRS, Rows
from ..data.sources.base import Source
from ..data.sources.memory import MemorySource

__all__ = ["KindRows", "count_kinds", "has_copies", "with_copies"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_MAX_DENSE_KINDS = 1 << 20  # that have a place each in an array, whether they occur or not
_MAX_PACKED_KINDS = 1 << 62  # that have a number each
_MIN_JOINED_KINDS = 1 << 12  # below which equal kinds may stand side by side
_MAX_COMPARED_ROWS = 1 << 20  # among which copies are looked for; of more rows, those of the lowest keys
_MAX_CHANCE_ROWS = 1 << 12  # rows read at a time to tell copies from rows that are equal by chance
_ROWS, _STAND_FOR, _WEIGHT, _SQUARES = range(4)  # what is summed


@dataclass(frozen=True, eq=False)
class KindRows:
    """One row for every kind of row that occurs, and the numbers that were part of the kind.

    Parameters
    ----------
    source : MemorySource
        Rows whose weights are sums; unless rows are clustered, `repeats` makes sums of squares those of all rows.
    numbers : ndarray of shape (U, E)
    counts : ndarray of shape (U,)
        Rows of each kind.
    """

    source: MemorySource
    numbers: NDArray[Any]
    counts: FloatArray


def count_kinds(
    source: Source, describe: Callable[[Any], NDArray[Any]], n_values: Sequence[int], n_groups: int = 0
) -> KindRows:
    """Count rows by true labels, sensitive group, cluster and further numbers, in one pass.

    Parameters
    ----------
    source : Source
        With labels; rows know their group if there are groups.
    describe : callable
        From some rows to numbers (n, E) about each, at least 0.
    n_values : sequence of E int
        Bounds of these.
    n_groups : int, default=0
        0: rows have no group.
    """
    schema = source.schema
    bounds = np.array([2, max(n_groups, 1), *schema.n_classes.tolist(), *n_values], dtype=np.intp)
    kinds = source.reduce(_Ask(describe, bounds, n_groups), _Kinds.add)
    return _as_rows(kinds.distinct(), source, source.glance(1), n_groups)


class _Ask:
    """Counts the kinds of some rows."""

    def __init__(self, describe: Callable[[Any], NDArray[Any]], bounds: IntArray, n_groups: int) -> None:
        self.describe, self.bounds, self.n_groups = describe, bounds, n_groups

    def __call__(self, rows: Rows) -> _Kinds:
        kinds: _Kinds | None = None
        for part in rows.chunks():  # a batch may be large, and arrays are made of what is counted
            kinds = self._count(part) if kinds is None else kinds.add(self._count(part))
        assert kinds is not None
        return kinds

    def _count(self, rows: Rows) -> _Kinds:
        assert rows.codes is not None
        ones = np.ones(rows.n_rows)
        weight = ones if rows.weight is None else rows.weight
        group = np.zeros(rows.n_rows, dtype=np.int8) if self.n_groups == 0 or rows.group is None else rows.group
        columns = [(weight > 0)[:, None], group[:, None], rows.codes, self.describe(rows)]
        squares = weight**2 if rows.repeats is None else weight**2 / np.where(rows.repeats > 0, rows.repeats, 1.0)
        sums = np.stack([ones, ones if rows.frequency is None else rows.frequency, weight, squares])
        narrow = kernels.code_type(int(self.bounds.max()))
        table = np.concatenate([column.astype(narrow, copy=False) for column in columns], axis=1)
        return _Kinds.of(table, sums, rows.cluster, self.bounds)


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Rows (U, C) of a table of numbers from -1 to bounds (C,), sums (4, U) and clusters (U,) of each.

    They are distinct but for some that were added, no more than there were: `n_distinct` were when all were compared.
    """

    table: NDArray[Any]
    sums: FloatArray
    cluster: IntArray | None
    bounds: IntArray
    n_distinct: int

    @classmethod
    def of(cls, table: NDArray[Any], sums: FloatArray, cluster: IntArray | None, bounds: IntArray) -> _Kinds:
        """Return the distinct rows of a table."""
        radices = [int(bound) + 1 for bound in bounds]
        size = 1
        for radix in radices:
            size *= radix
        if size < _MAX_PACKED_KINDS:
            key = np.zeros(len(table), dtype=np.int64)
            for column, radix in zip(table.T, radices, strict=True):
                key *= radix
                key += column
                key += 1
        else:
            packed = np.ascontiguousarray(table).view(np.dtype((np.void, table.itemsize * table.shape[1])))
            key = np.unique(packed.reshape(-1), return_inverse=True)[1].reshape(-1)
        if cluster is None and size <= _MAX_DENSE_KINDS:
            dense: FloatArray = np.stack([np.bincount(key, values, size) for values in sums]).astype(np.float64)
            occupied = np.flatnonzero(dense[_ROWS])
            return cls(_unpacked(occupied, radices, table.dtype), dense[:, occupied], None, bounds, len(occupied))
        order = np.argsort(key, kind="stable") if cluster is None else np.lexsort((key, cluster))
        changes = key[order[1:]] != key[order[:-1]]
        if cluster is not None:
            changes |= cluster[order[1:]] != cluster[order[:-1]]
        begin = np.flatnonzero(np.append(True, changes)) if len(order) else np.empty(0, dtype=np.intp)
        added = np.asarray(np.add.reduceat(sums[:, order], begin, axis=1), dtype=np.float64) if len(order) else sums
        first = order[begin]
        return cls(table[first], added, None if cluster is None else cluster[first], bounds, len(first))

    def add(self, other: _Kinds) -> _Kinds:
        """Put kinds together; equal ones are joined once they may be many, so that not all are sorted each time."""
        table = np.concatenate([self.table, other.table])
        sums = np.concatenate([self.sums, other.sums], axis=1)
        cluster = None
        if self.cluster is not None and other.cluster is not None:
            cluster = np.concatenate([self.cluster, other.cluster])
        both = _Kinds(table, sums, cluster, self.bounds, self.n_distinct)
        return both.distinct() if len(table) > max(2 * self.n_distinct, _MIN_JOINED_KINDS) else both

    def distinct(self) -> _Kinds:
        """Join equal kinds."""
        return _Kinds.of(self.table, self.sums, self.cluster, self.bounds)


def _unpacked(keys: NDArray[np.int64], radices: Sequence[int], dtype: Any) -> NDArray[Any]:
    """Return the numbers (U, C) that keys were made of."""
    out = np.empty((len(keys), len(radices)), dtype=dtype)
    for c in range(len(radices) - 1, -1, -1):
        keys, number = np.divmod(keys, radices[c])
        out[:, c] = number - 1
    return out


def _as_rows(kinds: _Kinds, source: Source, head: Rows, n_groups: int) -> KindRows:
    """Return a row for every kind.

    Weights that differ within a kind have the spread of fewer rows, its effective number; the others are put into a row
    of weight 0 in each group, so that the number of independent rows is that of all.
    """
    n_outputs = source.schema.n_outputs
    rows, stand_for, weight, squares = kinds.sums
    group = kinds.table[:, 1].astype(np.intp)
    codes, numbers = np.split(kinds.table[:, 2:], [n_outputs], axis=1)
    repeats = None if head.repeats is None else weight
    if kinds.cluster is None:
        repeats = np.divide(weight**2, squares, out=np.zeros_like(weight), where=squares > 0)
        if head.weight is None:
            repeats = rows
        elif head.repeats is None:
            lost = np.bincount(group, rows - repeats, max(n_groups, 1))
            n_pads = len(lost)
            codes = np.concatenate([codes, np.full((n_pads, n_outputs), -1, dtype=codes.dtype)])
            numbers = np.concatenate([numbers, np.zeros((n_pads, numbers.shape[1]), dtype=numbers.dtype)])
            group = np.append(group, np.arange(n_pads))
            repeats = np.append(repeats, np.maximum(lost, 0.0))
            rows, stand_for, weight = (np.append(values, np.zeros(n_pads)) for values in (rows, stand_for, weight))
    kind_rows = Rows(
        _repeated(head.proba, len(codes)),
        np.ascontiguousarray(codes),
        weight,
        frequency=stand_for,
        group=group if n_groups else None,
        cluster=kinds.cluster,
        repeats=repeats,
    )
    return KindRows(MemorySource(kind_rows, source.schema, source.passes), numbers, rows)


def _repeated(proba: Probabilities, n_rows: int) -> Probabilities:
    """Return the probabilities of one row as those of others, which nobody looks at: they have been decided."""
    blocks = tuple(np.broadcast_to(np.zeros(1, dtype=np.int8), (n_rows, *block.shape[1:])) for block in proba.blocks)
    return Probabilities(blocks, proba.n_classes)


# -------------------------------------------------------------------------------------------------------------- copies


def has_copies(source: Source) -> bool:
    """Whether some rows are exact copies of others; see :meth:`metricwise.core.rows.Rows.copies`.

    Of very many rows, some are compared: all rows of the lowest keys, so that copies are compared with each other.
    """
    below = np.uint64(min(_MAX_COMPARED_ROWS / source.n_rows, 1 - 2.0**-53) * 2.0**64)
    parts = source.reduce(_Keys(None if source.n_rows <= _MAX_COMPARED_ROWS else below), operator.add)
    key, labelled, position = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(key, kind="stable")
    key, labelled, position = key[order], labelled[order], position[order]
    equal = key[1:] == key[:-1]
    if not equal.any() or (labelled[1:] != labelled[:-1])[equal].any():
        return False
    begin = np.flatnonzero(np.append(True, ~equal))
    size = np.diff(np.append(begin, len(key)))
    first, size = position[begin][size > 1], size[size > 1]
    by_position = np.argsort(first)
    return _are_copies(source, first[by_position], size[by_position])


class _Keys:
    """Keys of rows by their numbers, and by their labels as well, and positions; of all, or of those of low keys."""

    def __init__(self, below: np.uint64 | None) -> None:
        self.below = below

    def __call__(self, rows: Rows) -> list[tuple[NDArray[np.uint64], NDArray[np.uint64], IntArray]]:
        key = replace(rows, codes=None).hashes()
        if self.below is None:
            some = np.arange(rows.n_rows)
        else:
            some = np.flatnonzero(kernels.scattered(key, 4) < self.below)
        labelled = rows.take(some).hashes() if len(some) else key[:0]
        return [(key[some], labelled, some + rows.start)]


def with_copies(rows: Rows) -> Rows:
    """Return rows with all that have one content in one cluster."""
    return replace(rows, cluster=rows.content_codes())


def _are_copies(source: Any, first: IntArray, size: IntArray) -> bool:
    """Whether chance would have given rows of equal probabilities different labels, as it has not."""
    n_unlike = 0.0
    for start in range(0, len(first), _MAX_CHANCE_ROWS):
        some = slice(start, start + _MAX_CHANCE_ROWS)
        n_unlike += source.take(first[some]).chance_pairs(size[some])
        if n_unlike >= MIN_CHANCE_PAIRS:
            return True
    return False
