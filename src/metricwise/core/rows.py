"""Rows in memory: probabilities, and all that belongs to them row by row.

Owns the only values with N in their shape. What is done with rows is a pass in ``kernels``; where they come from is
the business of ``sources``. Must not know metrics, rules, or labels as users write them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
KeyArray = NDArray[np.uint64]

_CHUNK = 1 << 20  # entries
_COPIED = 1 << 22  # entries, of which a recalibrated copy is kept: 32 MB
GLANCE = 1 << 10  # rows that say whether many are alike
# Below these, 95 % intervals of autoregressive series covered less than 92 %.
_FEWEST_STRETCHES, _FEWEST_EFFECTIVE_ROWS = 6, 30
_DIFFERENT = 10.0  # rows of other labels that chance must have made, before equal ones are taken for copies


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Class probabilities of M outputs, as views of what the user gave.

    Parameters
    ----------
    blocks : tuple of ndarray
        Each of shape (N, M_b, K_b), or (N, M_b) with the probability of class 1; the outputs in order, block by block.
    n_classes : ndarray of shape (M,), int
        K_m of each output.
    link : LinkArrays, optional
        Recalibration that is applied to the blocks in every pass, so that no recalibrated copy exists;
        :meth:`recalibrated` makes one.

    See Also
    --------
    metricwise.data.read_proba : Read probabilities in any accepted shape.

    Examples
    --------
    >>> from metricwise.data.probabilities import read_proba
    >>> proba = read_proba([[0.7, 0.3], [0.2, 0.8]])
    >>> proba.n_rows, proba.n_outputs, proba.width
    (2, 1, 2)
    """

    blocks: tuple[NDArray[Any], ...]
    n_classes: IntArray
    link: kernels.LinkArrays | None = None

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.blocks[0])

    @property
    def n_outputs(self) -> int:
        """M."""
        return len(self.n_classes)

    @cached_property
    def width(self) -> int:
        """K, the largest K_m."""
        return int(self.n_classes[0] if len(self.n_classes) == 1 else self.n_classes.max())

    def spans(self) -> Iterator[tuple[NDArray[Any], slice]]:
        """Yield each array with the slice of outputs that it holds, without the link."""
        start = 0
        for block in self.blocks:
            yield block, slice(start, start + block.shape[1])
            start += block.shape[1]

    def outputs(self, n_decisions: IntArray | None = None) -> Iterator[tuple[kernels.Block, slice]]:
        """Yield each array as kernels take it, with the link, and the slice of outputs that it holds.

        Parameters
        ----------
        n_decisions : ndarray of shape (M,), int, optional
            Number of decisions about each output, if there are more than classes.
        """
        for array, span in self.spans():
            decisions = None if n_decisions is None else n_decisions[span]
            block = kernels.Block(array, self.n_classes[span], n_decisions=decisions)
            if self.link is not None:
                block = block._replace(link=self.link.part(span, block.width))
            yield block, span

    def output(self, m: int) -> NDArray[Any]:
        """Return output m alone, of shape (N, 1, K_b) or (N, 1); a recalibrated copy if there is a link."""
        for block, span in self.outputs():
            if m < span.stop:
                single = block.part(slice(m - span.start, m - span.start + 1), block.width)
                return single.eta if single.link is None else kernels.recalibrate(single)
        raise IndexError(m)

    def take(self, rows: Any) -> Probabilities:
        """Return some of the rows."""
        return Probabilities(tuple(block[rows] for block in self.blocks), self.n_classes, self.link)

    def compact(self) -> Probabilities:
        """Return a copy with all outputs in one array if they have the same shape; otherwise itself."""
        if len(self.blocks) == 1 or len({block.shape[2:] for block in self.blocks}) > 1:
            return self
        return replace(self, blocks=(np.concatenate(self.blocks, axis=1),))

    @property
    def size(self) -> int:
        """Numbers in all arrays."""
        return sum(block.size for block in self.blocks)

    def tiled(self, times: int, link: kernels.LinkArrays | None = None) -> Probabilities:
        """Return copies of all outputs, repeated a number of times, with a link for all of them if there is one."""
        proba = self.recalibrated()
        n_classes, m = np.tile(self.n_classes, times), self.n_outputs
        outputs = [slice(t * m, (t + 1) * m) for t in range(times)]
        each = [proba if link is None else proba.linked(link.part(span, self.width)) for span in outputs]
        if len(proba.blocks) > 1:  # the arrays themselves follow one another
            return Probabilities(tuple(block for copy in each for block in copy.recalibrated().blocks), n_classes)
        (block,) = proba.blocks
        dtype = block.dtype if link is None else np.float64
        out = np.empty((len(block), times * m, *block.shape[2:]), dtype=dtype)
        for span, copy in zip(
            outputs, each, strict=True
        ):  # one after the other, so that no more than the result is held
            out[:, span] = copy.recalibrated().blocks[0]
        return Probabilities((out,), n_classes)

    def of_outputs(self, outputs: IntArray) -> Probabilities:
        """Return some of the outputs, given by position in order, as views: neighbours share a block."""
        blocks = []
        for block, span in self.spans():
            within = outputs[(outputs >= span.start) & (outputs < span.stop)] - span.start
            for run in np.split(within, np.flatnonzero(np.diff(within) > 1) + 1) if len(within) else []:
                first, last = int(run[0]), int(run[-1]) + 1
                width = int(self.n_classes[span.start + first : span.start + last].max())
                blocks.append(block[:, first:last] if block.ndim == 2 else block[:, first:last, :width])
        n_classes = self.n_classes[outputs]
        link = None if self.link is None else self.link.part(outputs, int(n_classes.max()))
        return Probabilities(tuple(blocks), n_classes, link)

    @property
    def fits_a_chunk(self) -> bool:
        """Whether a copy of all rows is small."""
        return self.n_rows * self.n_outputs * self.width <= _CHUNK

    def chunks(self) -> Iterator[slice]:
        """Yield slices of rows, short enough that copies of them are small."""
        step = max(1, _CHUNK // (self.n_outputs * self.width))
        for start in range(0, max(self.n_rows, 1), step):
            yield slice(start, start + step)

    def recalibrated(self) -> Probabilities:
        """Return the probabilities after the link as float64 arrays, as kernels see them; itself without a link."""
        if self.link is None:
            return self
        return Probabilities(tuple(kernels.recalibrate(block) for block, _ in self.outputs()), self.n_classes)

    def linked(self, link: kernels.LinkArrays) -> Probabilities:
        """Return a view of the probabilities after a link, which is applied in every pass."""
        return replace(self.recalibrated(), link=link)  # of two links one is applied here

    def behind(self, link: kernels.LinkArrays) -> Probabilities:
        """Return the probabilities after a link: a view if there are many rows, see :meth:`linked`.

        For fewer rows, a copy is small, has the same bits, and serves all later passes.
        """
        linked = self.linked(link)
        return linked.recalibrated() if self.n_rows * self.n_outputs * self.width <= _COPIED else linked


@dataclass(frozen=True)
class Dependence:
    """How far rows in time depend on one another.

    Parameters
    ----------
    length : int
        Rows of a stretch of time; stretches are taken to be independent of one another.
    n_stretches : int
    inflation : float
        How much more sums of labels vary between stretches than those of independent rows would.
    n_rows : int
    user_length : bool
        Whether the user gave the length.
    """

    length: int
    n_stretches: int
    inflation: float
    n_rows: int
    user_length: bool

    @property
    def trusted(self) -> bool:
        """Whether there is enough of time to say how far values vary."""
        return self.n_stretches >= _FEWEST_STRETCHES and self.n_rows / self.inflation >= _FEWEST_EFFECTIVE_ROWS

    def describe(self) -> str:
        """Say what intervals rest on, and whether they can be trusted."""
        source = "as given" if self.user_length else "measured on these rows"
        text = (
            f"Rows are taken to depend on one another over at most {self.length} rows ({source}): intervals rest on "
            f"{self.n_stretches} stretches of time."
        )
        if self.trusted:
            return text
        return (
            f"{text} The rows correspond to about {max(self.n_rows / self.inflation, 1):.0f} independent rows, too "
            "few for reliable intervals: no interval can be trusted. Provide rows of a longer time."
        )


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
        How far rows depend on one another, if clusters are stretches of time, which their codes ascend with.
    cost : ndarray of shape (N, K) or (N, K, D), optional
        Cost of each decision about a row.
    start : int, default=0
        Position of the first row in its source; meaningless for selected rows.

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

    @property
    def n_rows(self) -> int:
        """N."""
        return self.proba.n_rows

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
            self, proba=self.proba.tiled(len(kept), link), codes=codes.reshape(self.n_rows, -1), mass=None, start=0
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
        shown = Probabilities(proba.blocks * n_groups, np.tile(proba.n_classes, n_groups), link)
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
        """The probabilities of each block as (N, columns): two classes are one column, in whatever shape they come."""
        blocks = (block[:, :, 1] if block.shape[2:] == (2,) else block for block in self.proba.blocks)
        return [block.reshape(self.n_rows, -1) for block in blocks]

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
            for block, span in self.proba.spans():
                values = block[rows, :, None] if block.ndim == 2 else block[rows, :, 1:]
                weights = _weights(span.start, span.stop, values.shape[2])
                columns[1][rows] += np.tensordot(values.astype(np.float64), weights, axes=2)
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
            flat = block.reshape(self.n_rows, -1)
            # Sums along rows are taken in one order in every row, so that equal rows have equal keys.
            key += (flat * rng.uniform(1, 2, flat.shape[1])).sum(axis=1, dtype=np.float64)
        _, first, cluster, size = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        if len(size) == self.n_rows or (self.codes != self.codes[first][cluster]).any():
            return None
        several = np.flatnonzero(size > 1)
        some, alike = self.proba.take(first[several]), np.ones(len(several))
        for m in range(some.n_outputs):
            eta = some.output(m)[:, 0].astype(np.float64)
            eta = np.stack([1.0 - eta, eta], axis=1) if eta.ndim == 1 else eta
            alike *= np.sum(eta ** size[several, None], axis=1)
            if np.sum(1 - alike) >= _DIFFERENT:
                return np.asarray(cluster, dtype=np.intp)
        return None

    def of_outputs(self, outputs: IntArray) -> Rows:
        """Return some of the outputs of all rows, given by position in order."""
        codes, mass = (None if values is None else values[:, outputs] for values in (self.codes, self.mass))
        return replace(self, proba=self.proba.of_outputs(outputs), codes=codes, mass=mass)

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
        """Say whether the most probable class is right wherever there is a label; False without labels."""
        if self.codes is None:
            return False
        # Some rows at first: hardly ever is there need to look at the others.
        return self.take(slice(0, GLANCE))._right() and all(rows._right() for rows in self.chunks())

    def _right(self) -> bool:
        assert self.codes is not None
        for block, span in self.proba.spans():
            codes = self.codes[:, span]
            likeliest = block > 0.5 if block.ndim == 2 else block.argmax(axis=2)
            if ((codes >= 0) & (codes != likeliest)).any():
                return False
        return True

    def tally(self) -> FloatArray:
        """Return the weight of the labels of each class of each output, (M, K), or (R, M, K) of R resamples."""
        assert self.codes is not None
        return kernels.tally(self.codes, self.weight, self.proba.width)


def _weights(start: int, stop: int, width: int) -> FloatArray:
    """Return fixed weights from 1 to 2, (stop - start, width), of the classes of outputs."""
    numbers = (np.arange(start, stop)[:, None] << 32) + np.arange(width)
    return np.asarray(1.0 + kernels.scattered(numbers.astype(np.uint64), 3) / 2.0**64)
