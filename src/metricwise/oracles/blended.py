"""Labels blended with probabilities: less noise than labels, less faith in the probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..losses import Loss
from .base import Changes, Countable, FloatArray, IntArray, Line, Score, Walk, follow

__all__ = ["BlendedOracle"]


@dataclass(frozen=True, eq=False)
class BlendedOracle:
    """Counts ``(1 - share) * C_labels + share * C_expected`` of the same rows.

    Parameters
    ----------
    labels, expected : Countable
        Of the same probabilities.
    share : float, default=0.5
        Weight of the expected confusion.
    """

    labels: Countable
    expected: Countable
    share: float = 0.5

    @property
    def n_rows(self) -> int:
        return self.labels.n_rows

    @property
    def n_classes(self) -> IntArray:
        return self.labels.n_classes

    @property
    def weight(self) -> FloatArray:
        return self.labels.weight

    @property
    def priors(self) -> FloatArray:
        return self._mix(self.labels.priors, self.expected.priors)

    @property
    def certified(self) -> bool:
        return False

    @property
    def entries_read(self) -> int:
        return self.labels.entries_read + self.expected.entries_read

    def _mix(self, labels: FloatArray, expected: FloatArray) -> FloatArray:
        return (1 - self.share) * labels + self.share * expected

    def confusion_of(self, predicted: IntArray) -> FloatArray:
        """Return the confusion tensor (M, K, K) of given decisions."""
        return self._mix(self.labels.confusion_of(predicted), self.expected.confusion_of(predicted))

    def confusions(self, losses: Sequence[Loss]) -> FloatArray:
        return self._mix(self.labels.confusions(losses), self.expected.confusions(losses))

    def shares(self, losses: Sequence[Loss]) -> FloatArray:
        return self._mix(self.labels.shares(losses), self.expected.shares(losses))

    def walk(self, line: Line, tol: float, score: Score | None = None) -> Walk:
        return follow(self, line, tol, score)

    def changes(
        self, line: Line, grid: FloatArray, n_bins: int, wanted: NDArray[np.bool_] | None, summed: bool
    ) -> Changes:
        """Note the changes of both."""
        labels = self.labels.changes(line, grid, n_bins, wanted, summed).scaled()
        expected = self.expected.changes(line, grid, n_bins, wanted, summed).scaled()
        return Changes(
            self._mix(labels.start, expected.start),
            labels.count + expected.count,
            self._mix(labels.sums, expected.sums),
            np.concatenate([labels.segment, expected.segment]),
            np.concatenate([labels.g, expected.g]),
            np.concatenate([(1 - self.share) * labels.change, self.share * expected.change]),
            labels.scale,
        )

    def sample(self, n_rows: int) -> BlendedOracle:
        return BlendedOracle(self.labels.sample(n_rows), self.expected.sample(n_rows), self.share)

    def glance(self, n_rows: int) -> BlendedOracle:
        return BlendedOracle(self.labels.glance(n_rows), self.expected.glance(n_rows), self.share)
