"""Labels blended with probabilities: less noise than labels, less faith in the probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..losses import Loss
from .base import Countable, FloatArray, IntArray, Walk, merge_events

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

    def _mix(self, labels: FloatArray, expected: FloatArray) -> FloatArray:
        return (1 - self.share) * labels + self.share * expected

    def confusion_of(self, predicted: IntArray) -> FloatArray:
        """Return the confusion tensor (M, K, K) of given decisions."""
        return self._mix(self.labels.confusion_of(predicted), self.expected.confusion_of(predicted))

    def confusions(self, losses: Sequence[Loss]) -> FloatArray:
        return self._mix(self.labels.confusions(losses), self.expected.confusions(losses))

    def walk(
        self, outputs: IntArray, share: FloatArray, line: tuple[Loss, Loss], functionals: FloatArray, tol: float
    ) -> Walk:
        start, g, change = self.labels.events(outputs, share, line, functionals)
        more_start, more_g, more_change = self.expected.events(outputs, share, line, functionals)
        change = np.concatenate([(1 - self.share) * change, self.share * more_change])
        return merge_events(self._mix(start, more_start), np.concatenate([g, more_g]), change, tol)
