"""Class probabilities of rows in memory, with their calibration. Must not know labels, metrics or rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from .cached import cached_property

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_CHUNK_ENTRIES = 1 << 20  # entries that are processed together
_MAX_COPIED_ENTRIES = 1 << 22  # entries of which a recalibrated copy is kept: 32 MB


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Class probabilities of M outputs, as views of what the user gave.

    Parameters
    ----------
    blocks : tuple of ndarray
        Each of shape (N, M_b, K_b), or (N, M_b) with the probability of class 1; the outputs in order, block by block.
        Logits, and log-odds of class 1, if the link is of these.
    n_classes : ndarray of shape (M,), int
        K_m of each output.
    link : LinkArrays, optional
        Recalibration that is applied to the blocks in every pass, so that no recalibrated copy exists;
        :meth:`recalibrated` makes one. Logits always have one.
    scores : ndarray of shape (N,), optional
        The one score of each row that logits of ordered classes were made of.

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
    scores: NDArray[Any] | None = None

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.blocks[0])

    @property
    def of_logits(self) -> bool:
        """Whether the blocks hold logits."""
        return self.link is not None and self.link.of_logits

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

    def likeliest(self) -> Iterator[tuple[IntArray, slice]]:
        """Yield the codes (N, M_b) of the most probable class by each array, before a recalibration of probabilities.

        That of logits is by their own map.
        """
        for block, span in self.spans():
            if not self.of_logits:
                yield (block > 0.5).astype(np.intp) if block.ndim == 2 else block.argmax(axis=2), span
                continue
            assert self.link is not None
            temperature, bias, _ = self.link.part(span, 2 if block.ndim == 2 else block.shape[2])
            if block.ndim == 2:
                yield (temperature * block + bias[:, 1] > bias[:, 0]).astype(np.intp), span
            else:
                padding = np.where(np.arange(block.shape[2]) < self.n_classes[span, None], 0.0, -np.inf)
                yield (temperature[:, None] * block + (bias + padding)).argmax(axis=2), span

    def output(self, m: int) -> NDArray[Any]:
        """Return output m alone, of shape (N, 1, K_b) or (N, 1); a recalibrated copy if there is a link."""
        for block, span in self.outputs():
            if m < span.stop:
                single = block.part(slice(m - span.start, m - span.start + 1), block.width)
                return single.eta if single.link is None else kernels.recalibrate(single)
        raise IndexError(m)

    def exceeds(self, distance: float) -> bool:
        """Whether some logits are further than a distance from the largest of their row; never of probabilities."""
        if not self.of_logits:
            return False
        for block, span in self.spans():
            if block.ndim == 2:
                away = np.abs(block)
            else:
                classes = np.arange(block.shape[2]) < self.n_classes[span, None]
                top = block.max(axis=2, keepdims=True, initial=-np.inf, where=classes)
                away = np.subtract(top, block, dtype=np.float64, where=classes, out=np.zeros(block.shape))
            if away.max(initial=0.0) > distance:
                return True
        return False

    def positive_column(self, m: int) -> FloatArray:
        """Return the numbers (N,) that thresholds of binary output m are in: probabilities of class 1, or log-odds.

        These are as the user gave them: before any recalibration.
        """
        for block, span in self.spans():
            if m < span.stop:
                values = block[:, m - span.start].astype(np.float64)
                if values.ndim == 1:
                    return values
                return values[:, 1] - values[:, 0] if self.of_logits else values[:, 1]
        raise IndexError(m)

    @property
    def number_range(self) -> tuple[float, float]:
        """The least and the largest number that a threshold may be of."""
        return (-np.inf, np.inf) if self.of_logits else (0.0, 1.0)

    def mapped_logits(self) -> Probabilities:
        """Return logits behind their map, ``t * z + c``, as logits that are taken as they are."""
        assert self.link is not None and self.link.of_logits
        blocks = []
        for block, span in self.spans():
            temperature, bias, _ = self.link.part(span, 2 if block.ndim == 2 else block.shape[2])
            if block.ndim == 2:
                blocks.append(temperature * block + (bias[:, 1] - bias[:, 0]))
            else:
                blocks.append(temperature[:, None] * block + bias)
        link = kernels.LinkArrays(np.ones(self.n_outputs), np.zeros_like(self.link.bias), 0.0)
        return Probabilities(tuple(blocks), self.n_classes, link)

    def take(self, rows: Any) -> Probabilities:
        """Return some of the rows."""
        scores = None if self.scores is None else self.scores[rows]
        return Probabilities(tuple(block[rows] for block in self.blocks), self.n_classes, self.link, scores)

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
        """Return copies of all outputs, repeated a number of times, with a link for all of them if there is one.

        A single one that is large is a view behind the link.
        """
        proba = self if link is not None and link.of_logits else self.recalibrated()
        if times == 1 and link is not None and len(proba.blocks) == 1 and self.size > _MAX_COPIED_ENTRIES:
            return proba.linked(link)
        n_classes, m = np.tile(self.n_classes, times), self.n_outputs
        outputs = [slice(t * m, (t + 1) * m) for t in range(times)]
        each = [proba if link is None else proba.linked(link.part(span, self.width)) for span in outputs]
        if len(proba.blocks) > 1:  # the arrays themselves follow one another
            return Probabilities(tuple(block for copy in each for block in copy.recalibrated().blocks), n_classes)
        (block,) = proba.blocks
        if (
            link is not None and m == 1 and link is not proba.link
        ):  # the copies of one output are a view, and read at once
            view = np.broadcast_to(block, (len(block), times, *block.shape[2:]))
            return Probabilities((view,), n_classes, link.part(slice(times), self.width)).recalibrated()
        dtype = block.dtype if link is None else np.float64
        out = np.empty((len(block), times * m, *block.shape[2:]), dtype=dtype)
        for span, copy in zip(
            outputs, each, strict=True
        ):  # one after the other, so that no more than the result is held
            for rows in copy.chunks():
                out[rows, span] = copy.take(rows).recalibrated().blocks[0]
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
        return Probabilities(tuple(blocks), n_classes, link, self.scores)

    @property
    def fits_a_chunk(self) -> bool:
        """Whether a copy of all rows is small."""
        return self.n_rows * self.n_outputs * self.width <= _CHUNK_ENTRIES

    def chunks(self) -> Iterator[slice]:
        """Yield slices of rows, short enough that copies of them are small."""
        step = max(1, _CHUNK_ENTRIES // (self.n_outputs * self.width))
        for start in range(0, max(self.n_rows, 1), step):
            yield slice(start, start + step)

    def recalibrated(self) -> Probabilities:
        """Return the probabilities after the link as float64 arrays, as kernels see them; itself without a link."""
        if self.link is None:
            return self
        return Probabilities(tuple(kernels.recalibrate(block) for block, _ in self.outputs()), self.n_classes)

    def linked(self, link: kernels.LinkArrays) -> Probabilities:
        """Return a view of the probabilities after a link, which is applied in every pass.

        A link of logits replaces theirs: it maps the same numbers. Of two other links one is applied here.
        """
        assert self.of_logits or not link.of_logits
        return replace(self if link.of_logits else self.recalibrated(), link=link)

    def behind(self, link: kernels.LinkArrays) -> Probabilities:
        """Return the probabilities after a link: a view if there are many rows, see :meth:`linked`.

        For fewer rows, a copy is small, has the same bits, and serves all later passes.
        """
        linked = self.linked(link)
        return linked.recalibrated() if self.n_rows * self.n_outputs * self.width <= _MAX_COPIED_ENTRIES else linked
