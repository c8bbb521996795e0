"""Decisions of diagonal losses over the few classes that matter in a row, for searches among very many classes.

Which rule to count is searched for with these; what is reported is counted with all classes. Must not know solvers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.losses import Loss
from ..core.rows import Rows
from ..rules.calibration import TemperatureScaling
from ..rules.calibration_wide import WIDE, KeptEntries, keep_entries

__all__ = ["KeptProbabilities", "keep_probabilities"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_MAX_OTHERS = 0.1  # of the probability, that classes have on average that are not kept
_N_LOW_OFFSETS = 4  # classes that are considered in rows that do not keep them


@dataclass(frozen=True, eq=False)
class KeptProbabilities:
    """Recalibrated probabilities (E,) of kept entries; those of another class are the product of `rest` and `odds`."""

    entries: KeptEntries
    probability: FloatArray
    rest: FloatArray
    odds: FloatArray

    def decide(self, loss: Loss) -> tuple[IntArray, FloatArray]:
        """Return the decisions (N,) of a diagonal loss, and the probabilities of the classes decided."""
        entries, (diagonal, offset) = self.entries, (array[0] for array in loss.arrays)
        score = diagonal[entries.column] * self.probability + offset[entries.column]
        lowest = np.minimum.reduceat(score, entries.first)
        at = np.flatnonzero(score == lowest[entries.row])
        at = at[np.diff(entries.row[at], prepend=-1) > 0]  # of ties the lowest class
        decided, probability = entries.column[at], self.probability[at]
        if offset.any():  # of the classes that are not kept, one of low offset may be better than all that are
            low = np.argsort(offset, kind="stable")[:_N_LOW_OFFSETS]
            theirs = self.rest[:, None] * self.odds[low]
            others = diagonal[low] * theirs + offset[low]
            best, index = others.argmin(axis=1), np.arange(len(others))
            better = others[index, best] < lowest
            decided = np.where(better, low[best], decided)
            probability = np.where(better, theirs[index, best], probability)
        return decided, probability


def keep_probabilities(rows: Rows) -> KeptProbabilities | None:
    """Return the probabilities of rows that are not next to nothing; None unless there are very many classes.

    None as well where those that are not kept add up to something: of these only the true class would be known.
    """
    proba = rows.proba
    if proba.n_outputs != 1 or proba.width <= WIDE or proba.n_rows == 0 or (proba.of_logits and proba.link is None):
        return None
    assert rows.codes is not None
    t, bias, floor = 1.0, np.zeros(proba.width), TemperatureScaling.floor
    if proba.link is not None:
        t, bias, floor = float(proba.link.temperature[0]), proba.link.bias[0], float(proba.link.floor)
    entries = keep_entries(proba.blocks[0][:, 0], rows.codes[:, 0], floor, t)
    odds = np.exp(bias - bias.max())
    p, rest, others, _ = entries.probabilities(t, odds)
    if not entries.exact and np.mean(rest * others) > _MAX_OTHERS:
        return None
    return KeptProbabilities(entries, p, rest, odds)
