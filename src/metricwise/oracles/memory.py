"""The oracle over arrays in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..confusion import distributions, expected_confusion, from_predictions
from ..inputs import Probabilities
from ..losses import Loss
from ..sampling import draw_rows
from .base import Changes, FloatArray, IntArray, Line, Score, Walk, follow
from .passes import Passes

__all__ = ["MemoryOracle"]

_FIRST = np.zeros(1, dtype=np.intp)
_RUN = 16
_LEAST_PRIOR = 1e-6  # as the shift of the probabilities has it: a class may not be shifted away for good


@dataclass(frozen=True, eq=False)
class MemoryOracle:
    """Counts in memory, with labels or with the probabilities in their place.

    Parameters
    ----------
    proba : Probabilities
    codes : integer ndarray of shape (N, M), optional
        True classes, -1 where missing. None: nothing is known but the probabilities.
    sample_weight : ndarray of shape (N,), optional
    expected : bool, default=False
        Count probabilities of the true class instead of labels, over the entries whose label is observed.
    target_priors : ndarray of shape (M, K), optional
        Count as if the classes had these shares, where labels say what shares the rows have: labelled rows weigh by
        true class; with `expected`, rows weigh by how much more frequent they are, and `proba` has been shifted.
    class_weights : ndarray of shape (M, K), optional
        Weight of the labels of each class, where that has been counted already.
    passes : Passes, optional
        Where reading of the rows is counted, shared with samples of them.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.inputs import read_proba
    >>> from metricwise.losses import Loss
    >>> from metricwise.oracles import MemoryOracle
    >>> oracle = MemoryOracle(read_proba([0.2, 0.6, 0.9]), np.array([[0], [0], [1]]))
    >>> oracle.confusions([Loss.argmax(2)]).round(3).tolist()
    [[[[0.333, 0.333], [0.0, 0.333]]]]
    """

    proba: Probabilities
    codes: NDArray[Any] | None = None
    sample_weight: FloatArray | None = None
    expected: bool = False
    target_priors: FloatArray | None = None
    class_weights: FloatArray | None = None
    passes: Passes = field(default_factory=Passes)

    @property
    def n_rows(self) -> int:
        return self.proba.n_rows

    @property
    def n_classes(self) -> IntArray:
        return self.proba.n_classes

    @property
    def certified(self) -> bool:
        return self.expected

    @property
    def entries_read(self) -> int:
        return self.passes.entries

    @cached_property
    def _observed(self) -> NDArray[np.bool_] | None:
        if self.codes is None:
            return None
        if self.codes.min() >= 0:
            return None
        return np.asarray(self.codes >= 0)

    @cached_property
    def _mass(self) -> NDArray[Any] | None:
        """What each entry (N, M) counts for in the expected confusion; None where all count alike."""
        if self.target_priors is None or self.codes is None:
            return self._observed
        # Shifted probabilities are eta_j w_j / S with w the ratio of the priors, and the row is S times as frequent.
        labelled = MemoryOracle(self.proba, self.codes, self.sample_weight, class_weights=self.class_weights).priors
        back = np.where(labelled > 0, labelled / np.maximum(self.target_priors, _LEAST_PRIOR), 1.0)
        mass = np.empty(self.codes.shape)
        for rows in self.proba.chunks():
            part = self.proba.take(rows)
            for m in range(self.proba.n_outputs):
                eta = distributions(part.output(m)[:, 0])
                mass[rows, m] = 1.0 / (eta @ back[m, : eta.shape[1]])
        return mass if self._observed is None else mass * self._observed

    @cached_property
    def _row_sums(self) -> FloatArray:
        """Weight of each true class of each output, shape (M, K)."""
        if not self.expected:
            assert self.codes is not None
            if self.class_weights is not None:
                return self.class_weights
            return kernels.tally(self.codes, self.sample_weight, self.proba.width)
        return np.asarray(self._sums([Loss.argmax(self.proba.width)])[0].sum(axis=2))

    @cached_property
    def _row_factor(self) -> FloatArray:
        """What turns sums of weights into shares: 1 / n_m, times the shift of the class priors."""
        total = self._row_sums.sum(axis=1, keepdims=True)
        share = self._row_sums / np.where(total > 0, total, 1.0)
        if self.target_priors is None or self.expected:
            return np.broadcast_to(1.0 / np.where(total > 0, total, 1.0), share.shape)
        # Classes without a labelled row cannot be weighted up: the others share their mass.
        target = np.where(share > 0, self.target_priors, 0.0)
        target = target / np.where(target.sum(axis=1, keepdims=True) > 0, target.sum(axis=1, keepdims=True), 1.0)
        return np.where(self._row_sums > 0, target / np.where(self._row_sums > 0, self._row_sums, 1.0), 0.0)

    @cached_property
    def priors(self) -> FloatArray:
        return np.asarray(self._row_sums * self._row_factor)

    @cached_property
    def weight(self) -> FloatArray:
        return np.asarray(self._row_sums.sum(axis=1))

    def count(self, predicted: NDArray[Any]) -> FloatArray:
        """Sum weights of given decisions, codes of shape (N, M), to (M, K, K); not divided by anything."""
        self.passes.add(self.n_rows * self.proba.n_outputs)
        if self.expected:
            return expected_confusion(self.proba, predicted, self.sample_weight, self._mass)
        assert self.codes is not None
        return from_predictions(self.codes, predicted, self.proba.width, self.sample_weight)

    def confusion_of(self, predicted: NDArray[Any]) -> FloatArray:
        """Return the confusion tensor (M, K, K) of given decisions."""
        return self.count(predicted) * self._row_factor[:, :, None]

    def confusions(self, losses: Sequence[Loss]) -> FloatArray:
        return self._sums(losses) * self._row_factor[:, :, None]

    def _sums(self, losses: Sequence[Loss]) -> FloatArray:
        """Sums of weights (R, M, K, K), not divided by anything."""
        self.passes.add(self.n_rows * self.proba.n_outputs)
        k = self.proba.width
        out = np.zeros((len(losses), self.proba.n_outputs, k, k))
        for block, span, link in self.proba.outputs():
            width = 2 if block.ndim == 2 else block.shape[2]
            arrays = [_part(loss, span, width) for loss in losses]
            args = (self.sample_weight, self.n_classes[span], arrays, link)
            if self.expected:
                mass = None if self._mass is None else self._mass[:, span]
                sums = kernels.count_expected(block, mass, *args)
            else:
                assert self.codes is not None
                sums = kernels.count_labels(block, self.codes[:, span], *args)
            width = min(width, k)  # an array may be padded beyond the largest number of classes
            out[:, span, :width, :width] = sums[:, :, :width, :width]
        return out

    def shares(self, losses: Sequence[Loss]) -> FloatArray:
        self.passes.add(len(losses) * self.n_rows * self.proba.n_outputs)  # loss by loss
        out = np.zeros((len(losses), self.proba.n_outputs, 2, self.proba.width))
        for rows in self.proba.chunks():
            for block, span, _ in self.proba.take(rows).recalibrated().outputs():
                width = 2 if block.ndim == 2 else block.shape[2]
                for r, loss in enumerate(losses):
                    decided = kernels.decide(block, self.n_classes[span], _part(loss, span, width))
                    for m in range(span.start, span.stop):
                        out[r, m] += self._shares_of(rows, block[:, m - span.start], decided[:, m - span.start], m)
        return out

    def _shares_of(self, rows: slice, eta: NDArray[Any], decided: IntArray, m: int) -> FloatArray:
        """Hits and predicted shares (2, K) of decisions (n,) for one output of some rows, of eta (n,) or (n, K)."""
        k, factor = self.proba.width, self._row_factor[m]
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        if not self.expected:
            assert self.codes is not None
            true = self.codes[rows, m].astype(np.intp)
            counted = np.where(true >= 0, factor[true], 0.0)
            counted = counted if weight is None else counted * weight
            hit = np.where(decided == true, counted, 0.0)
        else:
            counted = np.full(len(decided), factor[0]) if weight is None else factor[0] * weight
            counted = counted if self._mass is None else counted * self._mass[rows, m]
            if eta.ndim == 1:
                hit = counted * np.where(decided == 1, eta, 1.0 - eta)
            else:
                hit = counted * np.take_along_axis(eta, decided[:, None], axis=1)[:, 0]
                counted = counted * self._totals[rows, m]
        return np.stack([np.bincount(decided, values, minlength=k) for values in (hit, counted)])

    @cached_property
    def _totals(self) -> FloatArray:
        """What the probabilities of each entry (N, M) sum to, 1 but for rounding."""
        out = np.ones((self.n_rows, self.proba.n_outputs))
        for rows in self.proba.chunks():
            for block, span, _ in self.proba.take(rows).recalibrated().outputs():
                if block.ndim == 3:
                    out[rows, span] = block.sum(axis=2, dtype=np.float64)
        return out

    def walk(self, line: Line, tol: float, score: Score | None = None) -> Walk:
        return follow(self, line, tol, score)

    def changes(
        self, line: Line, grid: FloatArray, n_bins: int, wanted: NDArray[np.bool_] | None, summed: bool
    ) -> Changes:
        """Note the changes along a line, block of outputs by block."""
        self.passes.add(self.n_rows * int((line.group >= 0).sum()))
        parts = []
        for block, span, link in self.proba.outputs():
            inside = line.group[span]
            groups = np.unique(inside[inside >= 0]) if len(self.proba.blocks) > 1 else np.arange(line.n_groups)
            if len(groups) and (inside >= 0).any():
                parts.append((groups, self._changes(block, span, link, line, groups, grid, n_bins, wanted, summed)))
        if len(parts) == 1 and len(parts[0][0]) == line.n_groups:
            return parts[0][1]
        return _gather([(groups, part.scaled()) for groups, part in parts], line.n_groups, n_bins)

    def _changes(
        self,
        block: NDArray[Any],
        span: slice,
        link: kernels.LinkArrays | None,
        line: Line,
        groups: IntArray,
        grid: FloatArray,
        n_bins: int,
        wanted: NDArray[np.bool_] | None,
        summed: bool,
    ) -> Changes:
        k = 2 if block.ndim == 2 else min(block.shape[2], self.proba.width)
        block = block if block.ndim == 2 else block[:, :, :k]
        used = np.flatnonzero(line.group[span] >= 0)
        inner = slice(int(used[0]), int(used[-1]) + 1)
        block = block[:, inner]
        link = None if link is None else link.part(inner, k)
        span = slice(span.start + int(used[0]), span.start + int(used[-1]) + 1)
        inside = line.group[span]
        local = np.where(inside >= 0, np.searchsorted(groups, inside), -1) if len(inside) > 1 else _FIRST
        worth, scale = self._worth(line, span, local, len(groups), k)
        lines = (line.constant, line.slope)
        if len(groups) < line.n_groups:
            lines = (lines[0].map(lambda a: a[groups]), lines[1].map(lambda a: a[groups]))
            grid, wanted = grid[groups], None if wanted is None else wanted[groups]
        constant, slope = (_part(loss, slice(None), k) for loss in lines)
        start, count, sums, segment, g, change = kernels.changes(
            block,
            None if self.expected else self.codes[:, span],  # type: ignore[index]  # labels are there if counted
            self._mass[:, span] if self.expected and self._mass is not None else None,
            self.sample_weight,
            self.n_classes[span],
            local,
            constant,
            slope,
            worth,
            grid,
            n_bins,
            wanted,
            summed,
            link,
        )
        return Changes(start, count, sums, segment, g, change, scale)

    def _worth(self, line: Line, span: slice, local: IntArray, n_groups: int, k: int) -> tuple[FloatArray, FloatArray]:
        """What an entry of true class i that is decided as j adds, (M, K + 1, K, 2), in units of a scale (G,)."""
        factor = self._row_factor[span, :k] * line.share[span, None]
        used = local >= 0
        scale = np.ones(n_groups)
        scale[local[used]] = factor[used, 0]
        alike = (factor[used] == scale[local[used], None]).all()  # rows of a group all count by 1 times the scale
        worth = np.zeros((len(local), k + 1, k, 2))  # nothing for a missing label
        own = np.moveaxis(line.functionals[np.maximum(line.group[span], 0), :, :k, :k], 1, 3)
        worth[:, 1:] = own if alike else own * factor[:, :, None, None]
        return worth, scale if alike else np.ones(n_groups)

    def sample(self, n_rows: int) -> MemoryOracle:
        if self.n_rows <= n_rows:
            return self
        drawn: dict[int, MemoryOracle] = vars(self).setdefault("_drawn", {})
        if n_rows not in drawn:
            sample = draw_rows(self.codes, n_rows, self.n_rows, weight=self.sample_weight)
            drawn[n_rows] = self._take(sample.rows, sample.frequency)
        return drawn[n_rows]

    def glance(self, n_rows: int) -> MemoryOracle:
        if self.n_rows <= n_rows:
            return self
        # In short runs of neighbours, which cost less to read than rows one by one.
        starts = np.random.default_rng(0).integers(0, self.n_rows - _RUN + 1, -(-n_rows // _RUN))
        return self._take((np.sort(starts)[:, None] + np.arange(_RUN)).reshape(-1)[:n_rows], None)

    def _take(self, rows: IntArray, frequency: FloatArray | None) -> MemoryOracle:
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        if frequency is not None:
            weight = frequency if weight is None else weight * frequency
        codes = None if self.codes is None else self.codes[rows]
        return MemoryOracle(self.proba.take(rows), codes, weight, self.expected, self.target_priors, passes=self.passes)


def _gather(parts: list[tuple[IntArray, Changes]], n_groups: int, n_bins: int) -> Changes:
    """Add up the changes of blocks of outputs, each with the groups that it is of."""
    whole = Changes(
        np.zeros((n_groups, 2)),
        np.zeros((n_groups, n_bins + 2), dtype=np.int64),
        np.zeros((n_groups, n_bins + 2, 4)),
        np.concatenate([np.empty(0, dtype=np.intp), *(_shifted(part, groups, n_bins) for groups, part in parts)]),
        np.concatenate([np.empty(0), *(part.g for _, part in parts)]),
        np.concatenate([np.empty((0, 2)), *(part.change for _, part in parts)]),
        np.ones(n_groups),
    )
    for groups, part in parts:
        whole.start[groups] += part.start
        whole.count[groups] += part.count
        whole.sums[groups] += part.sums
    return whole


def _shifted(part: Changes, groups: IntArray, n_bins: int) -> IntArray:
    """Segments of a block of outputs, numbered by the groups of all."""
    own, bin_ = np.divmod(part.segment, n_bins + 2)
    return groups[own] * (n_bins + 2) + bin_


def _part(loss: Loss, span: slice, width: int) -> tuple[FloatArray, ...]:
    """The arrays of a loss for a block of outputs, cut or padded with zeros to the width of the block."""
    arrays = []
    for array in loss.arrays:
        part = array if len(array) == 1 else array[span]
        cut = (slice(None),) + (slice(0, width),) * (part.ndim - 1)
        part = part[cut]
        if part.shape[-1] < width:
            pad = [(0, 0)] + [(0, width - part.shape[-1])] * (part.ndim - 1)
            part = np.pad(part, pad)
        arrays.append(np.ascontiguousarray(part))
    return tuple(arrays)
