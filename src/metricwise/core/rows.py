"""Rows in memory: probabilities, label codes, weights and groups.

Must not know metrics, rules, or labels as users write them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from .dependence import Dependence
from .probabilities import Probabilities

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
KeyArray = NDArray[np.uint64]

HEAD_ROWS = 1 << 10  # rows that say whether many are alike
_AS_GOOD_AS_INFINITE = 1e30  # of logits: beside it, the digits of usual ones are lost in a sum
MIN_CHANCE_PAIRS = 10.0  # rows of other labels that chance must have made, before equal ones are taken for copies


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in memory, with all that is known about each.

    Parameters
    ----------
    proba : Probabilities
    codes : integer ndarray of shape (N, M), optional
        True classes, -1 if the label is missing. None: only the probabilities are known.
    weight : ndarray of shape (N,) or (R, N), optional
        Weight of each row, with shape (R, N) for R resamples; multiplied by `frequency` if given.
    mass : bool or float ndarray of shape (N, M), optional
        Weight of each entry if probabilities are counted in place of labels; None means equal weights.
    frequency : ndarray of shape (N,), optional
        Number of rows that a row stands for, if the rows are a sample.
    group : integer ndarray of shape (N,), optional
        Code of the sensitive group that a row belongs to.
    cluster : integer ndarray of shape (N,), optional
        Code of the rows that belong together: a resample keeps all or none of them. None: every row is independent.
    repeats : ndarray of shape (N,), optional
        Number of independent rows that a row represents, if weights are frequencies; included in `frequency`.
    dependence : Dependence, optional
        How far rows depend on one another, if clusters are time periods, which their codes ascend with.
    cost : ndarray of shape (N, K) or (N, K, D), optional
        Cost of each decision about a row.
    start : int, default=0
        Position of the first row in its source; meaningless for selected rows.
    baseline : integer ndarray of shape (N, M), optional
        Decisions of argmax, if `proba` is no longer what these are made by. None: they are made by `proba`.

    See Also
    --------
    Probabilities : The probabilities of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.data.probabilities import read_proba
    >>> from metricwise.core.rows import Rows
    >>> rows = Rows(read_proba([0.2, 0.6, 0.9]), np.array([[0], [0], [1]]))
    >>> rows.tally().tolist(), rows.take(slice(1, 3)).start
    ([[2.0, 1.0]], 1)
    """

    proba: Probabilities
    codes: NDArray[Any] | None = None
    weight: FloatArray | None = None
    mass: NDArray[Any] | None = None
    frequency: FloatArray | None = None
    group: IntArray | None = None
    cost: FloatArray | None = None
    cluster: IntArray | None = None
    repeats: FloatArray | None = None
    start: int = 0
    dependence: Dependence | None = None
    baseline: NDArray[Any] | None = None

    @property
    def n_rows(self) -> int:
        """N."""
        return self.proba.n_rows

    @property
    def n_bytes(self) -> int:
        """Memory of all arrays."""
        arrays = [*self.proba.blocks, *(value for value in vars(self).values() if isinstance(value, np.ndarray))]
        return sum(array.nbytes for array in arrays)

    @property
    def observed_weight(self) -> FloatArray:
        """Weights (N,) of rows, 0 of those without any label if there are labels."""
        weight = np.ones(self.n_rows) if self.weight is None else self.weight
        return weight if self.codes is None else np.where((self.codes >= 0).any(axis=1), weight, 0.0)

    @property
    def n_effective(self) -> float:
        """Kish's effective number of rows: so many equally weighted ones estimate means as well."""
        weight = self.observed_weight
        weight = weight / max(float(weight.max(initial=0.0)), np.finfo(float).tiny)  # squares of small ones would be 0
        squares = float(weight @ weight)
        return float(weight.sum()) ** 2 / squares if squares > 0 else 0.0

    def take(self, rows: Any) -> Rows:
        """Return some of the rows, by a slice, a mask or indices."""

        def taken(values: NDArray[Any] | None) -> Any:
            return None if values is None else values[rows]

        start = self.start + (rows.start or 0) if isinstance(rows, slice) else 0
        weight = None if self.weight is None else self.weight[..., rows]
        return Rows(
            self.proba.take(rows),
            taken(self.codes),
            weight,
            taken(self.mass),
            taken(self.frequency),
            taken(self.group),
            taken(self.cost),
            taken(self.cluster),
            taken(self.repeats),
            start,
            self.dependence,
            taken(self.baseline),
        )

    def tiled(self, kept: NDArray[np.bool_], link: kernels.LinkArrays | None = None) -> Rows:
        """Return the rows with all outputs R times over, each time with the labels of some of the rows only.

        Parameters
        ----------
        kept : bool ndarray of shape (R, N)
            Rows whose labels are there each time; the others are missing.
        link : LinkArrays, optional
            TemperatureScaling of R * M outputs, which is applied to the probabilities.

        Returns
        -------
        Rows
            Of R * M outputs, one time after the other.
        """
        assert self.codes is not None
        codes = np.where(kept.T[:, :, None], self.codes[:, None, :], self.codes.dtype.type(-1))
        return replace(
            self,
            proba=self.proba.tiled(len(kept), link),
            codes=codes.reshape(self.n_rows, -1),
            mass=None,
            start=0,
            baseline=None,
        )

    def by_group(self, n_groups: int) -> Rows:
        """Return the rows with all outputs once for every sensitive group, as views: labels of other rows are missing.

        Parameters
        ----------
        n_groups : int
            G.

        Returns
        -------
        Rows
            Of G * M outputs, one group after the other.
        """
        assert self.group is not None
        proba, inside = self.proba, self.group[:, None] == np.arange(n_groups)
        link = (
            None if proba.link is None else proba.link.part(np.tile(np.arange(proba.n_outputs), n_groups), proba.width)
        )
        shown = Probabilities(proba.blocks * n_groups, np.tile(proba.n_classes, n_groups), link, proba.scores)
        if self.codes is None:
            mass = np.repeat(inside, proba.n_outputs, axis=1)
            return replace(self, proba=shown, mass=mass)
        codes = np.where(inside[:, :, None], self.codes[:, None, :], self.codes.dtype.type(-1))
        return replace(self, proba=shown, codes=codes.reshape(self.n_rows, -1), mass=None)

    def whole(self, n_groups: int) -> Rows:
        """Return the rows whose groups these are: each output once; see :meth:`by_group`."""
        n_outputs = self.proba.n_outputs // n_groups
        codes = None if self.codes is None else self.codes.reshape(self.n_rows, n_groups, n_outputs).max(axis=1)
        return replace(self, proba=self.proba.of_outputs(np.arange(n_outputs)), codes=codes, mass=None)

    @property
    def _ends(self) -> tuple[list[NDArray[Any]], NDArray[Any] | None]:
        """The first and the last entry of every row, (N,) each, and the first label: what hardly any two have alike."""
        blocks = self._blocks
        entries = [blocks[0][:, 0]]
        if len(blocks) > 1 or blocks[0].shape[1] > 1:
            entries.append(blocks[-1][:, -1])
        return entries, None if self.codes is None else self.codes[:, 0]

    @property
    def _blocks(self) -> list[NDArray[Any]]:
        """The numbers of each block as (N, columns): two classes are one column, in whatever shape they come."""
        blocks = []
        for block in self.proba.blocks:
            if block.shape[2:] == (2,):
                low, high = block[:, :, 0], block[:, :, 1]
                block = np.subtract(high, low, dtype=np.float64) if self.proba.of_logits else high
            blocks.append(block.reshape(self.n_rows, -1))
        return blocks

    def alike(self) -> bool:
        """Whether any two rows agree in their first and last values."""
        return len(np.unique(kernels.row_keys(*self._ends))) < self.n_rows

    def low(self, stratum: NDArray[Any], below: KeyArray, seed: int) -> tuple[IntArray, KeyArray]:
        """Return rows of low keys, made of what they begin and end with; see :data:`metricwise.core.sampling.Low`."""
        return kernels.low_rows(*self._ends, stratum, below, seed)

    def hashes(self) -> KeyArray:
        """Return numbers (N,) made of all that rows hold but weights, whose unit means nothing."""
        key = kernels.row_keys(*self._ends)
        with np.errstate(over="ignore"):
            for block in (*self._blocks, *([] if self.codes is None else [self.codes])):
                factors = kernels.scattered(np.arange(block.shape[1], dtype=np.uint64), 1) | np.uint64(1)
                for rows in self.proba.chunks():
                    bits = np.ascontiguousarray(block[rows], dtype=np.float64).view(np.uint64)
                    key[rows] = kernels.scattered(key[rows] + (bits * factors).sum(axis=1), 2)
        return key

    def coordinates(self) -> list[FloatArray]:
        """Return numbers (N,) that together tell rows apart, and move as little as the probabilities do.

        The first ones are sums of labels and of probabilities with fixed weights, the same in whatever shape both come.
        """
        columns = [np.zeros(self.n_rows), np.zeros(self.n_rows)]
        for rows in self.proba.chunks():
            if self.codes is not None:
                columns[0][rows] = self.codes[rows] @ _weights(0, self.proba.n_outputs, 1)[:, 0]
            some = self.proba.take(rows)
            # Logits are dealt as the probabilities that they stand for.
            columns[1][rows] = _weighted_sums(some.recalibrated() if some.of_logits else some)
        if self.proba.of_logits:  # which tell rows apart whose probabilities round to 0 or 1
            columns.append(_weighted_sums(self.proba))
        if self.weight is not None and self.weight.ndim == 1:
            columns.append(self.weight)
        if self.group is not None:
            columns.append(self.group.astype(np.float64))
        if self.cost is not None:
            cost = self.cost.reshape(self.n_rows, -1)
            columns.append(cost @ _weights(0, cost.shape[1], 1)[:, 0])
        return columns

    def content_codes(self) -> IntArray:
        """Return codes (N,) that are the same for rows of one content, in whatever chunk they lie."""
        return (self.hashes() >> np.uint64(2)).astype(np.intp)

    def copies(self) -> IntArray | None:
        """Return codes (N,) of rows that are copies of each other; None if there are none, or if it cannot be
        determined.

        Rows of equal probabilities are copies if they all have equal labels as well, though as many rows that chance
        had given equal probabilities, as those of a tree's leaf, would have had different ones: ten in all, at least.
        """
        assert self.codes is not None
        rng = np.random.default_rng(0)
        key = np.zeros(self.n_rows)
        for block in self.proba.blocks:
            flat = _moderate(block).reshape(self.n_rows, -1) if self.proba.of_logits else block.reshape(self.n_rows, -1)
            # Sums along rows are taken in one order in every row, so that equal rows have equal keys.
            key += (flat * rng.uniform(1, 2, flat.shape[1])).sum(axis=1, dtype=np.float64)
        ascending = np.sort(key)
        if (ascending[1:] > ascending[:-1]).all():
            return None
        _, first, cluster, size = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        if (self.codes != self.codes[first][cluster]).any():
            return None
        several = np.flatnonzero(size > 1)
        if self.take(first[several]).chance_pairs(size[several]) >= MIN_CHANCE_PAIRS:
            return np.asarray(cluster, dtype=np.intp)
        return None

    def chance_pairs(self, size: IntArray) -> float:
        """Return how many sets of rows like each of these, `size` (N,) of them, chance would give different labels.

        Counting stops where there are enough to tell copies from rows that are equal by chance.
        """
        alike, n_unlike = np.ones(self.n_rows), 0.0
        for m in range(self.proba.n_outputs):
            eta = self.proba.output(m)[:, 0].astype(np.float64)
            eta = np.stack([1.0 - eta, eta], axis=1) if eta.ndim == 1 else eta
            alike *= np.sum(eta ** size[:, None], axis=1)
            n_unlike = float(np.sum(1 - alike))
            if n_unlike >= MIN_CHANCE_PAIRS:
                break
        return n_unlike

    def of_outputs(self, outputs: IntArray) -> Rows:
        """Return some of the outputs of all rows, given by position in order."""
        each = (self.codes, self.mass, self.baseline)
        codes, mass, baseline = (None if values is None else values[:, outputs] for values in each)
        return replace(self, proba=self.proba.of_outputs(outputs), codes=codes, mass=mass, baseline=baseline)

    def sampled(self, rows: IntArray | slice, frequency: FloatArray) -> Rows:
        """Return some of the rows, each of which represents a number of these."""
        some = self.take(rows)

        def scaled(values: FloatArray | None) -> FloatArray:
            return frequency if values is None else values * frequency

        return replace(some, weight=scaled(some.weight), frequency=scaled(some.frequency))

    def behind(self, link: kernels.LinkArrays) -> Rows:
        """Return the rows after a link; see :meth:`Probabilities.behind`."""
        return replace(self, proba=self.proba.behind(link))

    def chunks(self) -> Iterator[Rows]:
        """Yield all rows, few enough at a time that a copy of them is small."""
        if self.proba.fits_a_chunk:
            yield self
            return
        for rows in self.proba.chunks():
            yield self.take(rows)

    def blocks(self, n_decisions: IntArray | None = None) -> Iterator[tuple[kernels.Block, slice]]:
        """Yield each array of outputs as row passes take it; see :meth:`Probabilities.outputs`."""
        for block, span in self.proba.outputs(n_decisions):
            codes, mass = (None if array is None else array[:, span] for array in (self.codes, self.mass))
            yield block._replace(codes=codes, weight=self.weight, mass=mass), span

    def all_right(self) -> bool:
        """Say whether the most probable class is correct wherever there is a label; False without labels."""
        if self.codes is None:
            return False
        # Some rows at first: hardly ever is there need to look at the others.
        return self.take(slice(0, HEAD_ROWS))._right() and all(rows._right() for rows in self.chunks())

    def _right(self) -> bool:
        assert self.codes is not None
        for likeliest, span in self.proba.likeliest():
            codes = self.codes[:, span]
            if ((codes >= 0) & (codes != likeliest)).any():
                return False
        return True

    def tally(self) -> FloatArray:
        """Return the weight of the labels of each class of each output, (M, K), or (R, M, K) of R resamples."""
        assert self.codes is not None
        return kernels.tally(self.codes, self.weight, self.proba.width)


def _weighted_sums(proba: Probabilities) -> FloatArray:
    """Return sums (N,) of the numbers of all blocks with fixed weights; of two classes the second alone counts."""
    total = np.zeros(proba.n_rows)
    for block, span in proba.spans():
        numbers = _moderate(block) if proba.of_logits else block
        values = numbers[:, :, None] if block.ndim == 2 else numbers[:, :, 1:]
        if proba.of_logits and block.ndim == 3:
            values = values - numbers[:, :, :1]
        total += np.tensordot(values.astype(np.float64), _weights(span.start, span.stop, values.shape[2]), axes=2)
    return total


def _moderate(block: NDArray[Any]) -> FloatArray:
    """Return logits of which those that stand for infinity are 1 or -1: in a sum they would hide all others."""
    numbers = block.astype(np.float64)
    return np.where(np.abs(numbers) < _AS_GOOD_AS_INFINITE, numbers, np.sign(numbers))


def _weights(start: int, stop: int, width: int) -> FloatArray:
    """Return fixed weights from 1 to 2, (stop - start, width), of the classes of outputs."""
    numbers = (np.arange(start, stop)[:, None] << 32) + np.arange(width)
    return np.asarray(1.0 + kernels.scattered(numbers.astype(np.uint64), 3) / 2.0**64)
