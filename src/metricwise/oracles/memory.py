"""The oracle over arrays in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..confusion import distributions, expected_confusion, from_predictions
from ..inputs import Probabilities
from ..losses import Loss
from .base import FloatArray, IntArray, Walk, merge_events

__all__ = ["MemoryOracle"]

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

    @property
    def n_classes(self) -> IntArray:
        return self.proba.n_classes

    @property
    def certified(self) -> bool:
        return self.expected

    @cached_property
    def _observed(self) -> NDArray[np.bool_] | None:
        if self.codes is None:
            return None
        observed = self.codes >= 0
        return None if observed.all() else observed

    @cached_property
    def _mass(self) -> NDArray[Any] | None:
        """What each entry (N, M) counts for in the expected confusion; None where all count alike."""
        if self.target_priors is None or self.codes is None:
            return self._observed
        # Shifted probabilities are eta_j w_j / S with w the ratio of the priors, and the row is S times as frequent.
        labelled = MemoryOracle(self.proba, self.codes, self.sample_weight).priors
        back = np.where(labelled > 0, labelled / np.maximum(self.target_priors, _LEAST_PRIOR), 1.0)
        mass = np.empty(self.codes.shape)
        for m in range(self.proba.n_outputs):
            eta = distributions(self.proba.output(m)[:, 0])
            mass[:, m] = 1.0 / (eta @ back[m, : eta.shape[1]])
        return mass if self._observed is None else mass * self._observed

    @cached_property
    def _row_sums(self) -> FloatArray:
        """Weight of each true class of each output, shape (M, K)."""
        zero = np.broadcast_to(np.intp(0), (self.proba.n_rows, self.proba.n_outputs))
        return self.count(zero)[:, :, 0]

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
        if self.expected:
            return expected_confusion(self.proba, predicted, self.sample_weight, self._mass)
        assert self.codes is not None
        return from_predictions(self.codes, predicted, self.proba.width, self.sample_weight)

    def confusion_of(self, predicted: NDArray[Any]) -> FloatArray:
        """Return the confusion tensor (M, K, K) of given decisions."""
        return self.count(predicted) * self._row_factor[:, :, None]

    def confusions(self, losses: Sequence[Loss]) -> FloatArray:
        k = self.proba.width
        out = np.zeros((len(losses), self.proba.n_outputs, k, k))
        for block, span in self.proba.outputs():
            width = 2 if block.ndim == 2 else block.shape[2]
            arrays = [_part(loss, span, width) for loss in losses]
            args = (self.sample_weight, self.n_classes[span], arrays)
            if self.expected:
                mass = None if self._mass is None else self._mass[:, span]
                sums = kernels.count_expected(block, mass, *args)
            else:
                assert self.codes is not None
                sums = kernels.count_labels(block, self.codes[:, span], *args)
            width = min(width, k)  # an array may be padded beyond the largest number of classes
            out[:, span, :width, :width] = sums[:, :, :width, :width]
        return out * self._row_factor[:, :, None]

    def walk(
        self, outputs: IntArray, share: FloatArray, line: tuple[Loss, Loss], functionals: FloatArray, tol: float
    ) -> Walk:
        return merge_events(*self.events(outputs, share, line, functionals), tol)

    def events(
        self, outputs: IntArray, share: FloatArray, line: tuple[Loss, Loss], functionals: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the functionals at g = -inf, the change points in no order, and the changes there."""
        start = np.zeros(len(functionals))
        points, changes = [np.empty(0)], [np.empty((0, len(functionals)))]
        for m, weight in zip(outputs.tolist(), share.tolist(), strict=True):
            eta = self.proba.output(m)
            k = 2 if eta.ndim == 2 else min(eta.shape[2], self.proba.width)
            eta = eta if eta.ndim == 2 else eta[:, :, :k]
            constant, slope = (_part(loss, slice(0, 1), k) for loss in line)
            first, row, g, old, new = kernels.envelope(eta, self.n_classes[m : m + 1], constant, slope)
            value = functionals[:, :k, :k] * (self._row_factor[m, :k, None] * weight)
            begin = self._worth(m, np.arange(len(first)), value, first)
            step = self._worth(m, row, value, new) - self._worth(m, row, value, old)
            start += begin.sum(axis=0)
            moved = np.logical_or.reduce([column != 0 for column in step.T])
            points.append(g[moved])
            changes.append(step[moved])
        return start, np.concatenate(points), np.concatenate(changes)

    def _worth(self, m: int, rows: IntArray, value: FloatArray, predicted: IntArray) -> FloatArray:
        """What each row adds to each functional if it is decided so, shape (len(rows), F)."""
        if self.expected:
            eta = distributions(self.proba.output(m)[rows, 0])
            worth = np.zeros((len(rows), len(value)))
            for i in range(value.shape[1]):
                worth += eta[:, i, None] * value[:, i, predicted].T
            if self._mass is not None:
                worth *= self._mass[rows, m, None]
        else:
            assert self.codes is not None
            # Code -1, a missing label, finds the row of zeros at the end.
            padded = np.concatenate([value, np.zeros_like(value[:, :1])], axis=1).reshape(len(value), -1)
            worth = padded[:, self.codes[rows, m].astype(np.intp) * value.shape[2] + predicted].T
        if self.sample_weight is not None:
            worth = worth * self.sample_weight[rows, None]
        return worth


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
