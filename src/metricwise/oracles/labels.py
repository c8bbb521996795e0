"""The oracle of very many labels: a table of scores in, counts of every label out.

Counts stored entries of the rows only; an entry that is not stored has probability 0, and true labels that are not
stored are misses, which are part of the true counts. Must not know metrics or how tables are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.budget import Budget
from ..core.cached import cached_property
from ..core.label_rows import fill_labels
from ..metrics.label_aims import LabelCounts, LabelTable

__all__ = ["Ascent", "BothCounts", "LabelOracle", "Sweep", "labels_to_fill"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Labels weigh n / (n + 5) beside probabilities in blended counts, n being a label's true rows, and factors of labels
# are shrunk by as many rows. The number did well in prototypes on six sets of 159 to 34,764 labels.
PSEUDO_POSITIVES = 5.0
_NO_LABELS = np.zeros(0, dtype=np.int64)


class Sweep(NamedTuple):
    """What thresholds just below the true entries of each label would count; entries from the highest down.

    Entries of label m are ``label_ptr[m]:label_ptr[m + 1]``; `hits` and `predicted` count entries at or above `value`.
    """

    label_ptr: IntArray
    value: FloatArray
    hits: FloatArray
    predicted: FloatArray


class Ascent(NamedTuple):
    """Where passes of single rows have ended: the table, and the entries that were chosen for each row."""

    table: LabelTable
    chosen: IntArray


class BothCounts(NamedTuple):
    """Counts as an oracle has them, and by labels; the same without labels."""

    counted: LabelCounts
    by_labels: LabelCounts


def labels_to_fill(offset: FloatArray, n_labels: int, budget: Budget, longest_row: int) -> IntArray:
    """Return the labels that may be predicted without a stored entry, the largest offset first, ties by position.

    Parameters
    ----------
    offset : ndarray of shape (M,) or (1,)
    n_labels : int
        M.
    budget : Budget
    longest_row : int
        The most entries that a row stores: so many of the first labels may be stored, and are passed over.
    """
    if not budget.is_limited or (budget.low == 0 and float(offset.max(initial=-np.inf)) <= 0):
        return _NO_LABELS
    n_needed = min(budget.high + longest_row, n_labels)
    return np.arange(n_needed) if len(offset) == 1 else fill_labels(offset, n_needed)


@dataclass(frozen=True, eq=False)
class LabelOracle:
    """Counts tables of scores on the stored entries of rows.

    Parameters
    ----------
    block : kernels.LabelBlock
        Calibrated probabilities; those of true labels are marked by their sign.
    budget : Budget
    confusion : {"labels", "expected", "blended"}
        What is counted: true labels, probabilities in their place, or both, labels with more weight the more true rows
        a label has.
    labels_true : ndarray of shape (M,), or None
        Weight of the true rows of each label, stored or not; None without labels.
    factor : ndarray of shape (M,), or None
        What multiplies the probabilities of each label.
    """

    block: kernels.LabelBlock
    budget: Budget
    confusion: Literal["labels", "expected", "blended"]
    labels_true: FloatArray | None = None
    factor: FloatArray | None = None

    @property
    def n_labels(self) -> int:
        """M."""
        return self.block.n_labels

    @cached_property
    def n_rows(self) -> int:
        """Number of rows that are counted."""
        return len(self.block.indptr) - 1 if self.block.rows is None else len(self.block.rows)

    @cached_property
    def total(self) -> float:
        """Weight of the rows that are counted."""
        weight, rows = self.block.weight, self.block.rows
        if weight is None:
            return float(self.n_rows)
        return float(weight.sum() if rows is None else weight[rows].sum())

    @cached_property
    def longest_row(self) -> int:
        """The most entries that a row stores."""
        return int(np.diff(self.block.indptr).max(initial=0))

    @cached_property
    def sums(self) -> FloatArray:
        """Probabilities and true stored entries of each label, summed, (M, 2)."""
        return kernels.label_sums(self.block)

    @cached_property
    def factors(self) -> FloatArray:
        """What multiplies the probabilities of each label, (M,)."""
        return np.ones(self.n_labels) if self.factor is None else self.factor

    @cached_property
    def true(self) -> FloatArray:
        """True rows of each label as this oracle counts them, (M,)."""
        if self.confusion == "labels" and self.labels_true is not None:
            return self.labels_true
        expected = self.factors * self.sums[:, 0]
        if self.labels_true is None:
            return expected
        missed = np.maximum(self.labels_true - self.sums[:, 1], 0.0)  # true labels that are not stored
        return self._mixed(self.labels_true, expected + missed)

    def _mixed(self, labels: FloatArray, expected: FloatArray) -> FloatArray:
        if self.confusion == "labels":
            return labels
        if self.confusion == "expected":
            return expected
        assert self.labels_true is not None
        share = self.labels_true / (self.labels_true + PSEUDO_POSITIVES)
        return share * labels + (1.0 - share) * expected

    def with_factor(self, factor: FloatArray | None) -> LabelOracle:
        """Return the oracle of probabilities that a factor of each label multiplies."""
        other = replace(self, factor=factor)
        vars(other)["sums"] = self.sums
        return other

    def count(self, tables: Sequence[LabelTable]) -> list[LabelCounts]:
        """Return the counts of rules by tables, in one pass over the rows."""
        return [counts.counted for counts in self.count_both(tables)]

    def count_both(self, tables: Sequence[LabelTable]) -> list[BothCounts]:
        """Return the counts of rules by tables, as this oracle counts and by labels, in one pass over the rows."""
        fills = [labels_to_fill(table.offset, self.n_labels, self.budget, self.longest_row) for table in tables]
        sums = kernels.label_count(self.block, list(tables), self.budget.low, self.budget.high, fills)
        out = []
        for expected, hits, predicted in sums.transpose(0, 2, 1):
            counted = LabelCounts(self._mixed(hits, self.factors * expected), predicted, self.true, self.total)
            by_labels = counted
            if self.labels_true is not None and self.confusion != "labels":
                by_labels = LabelCounts(hits, predicted, self.labels_true, self.total)
            out.append(BothCounts(counted, by_labels))
        return out

    def ascend(
        self, form: kernels.LabelForm, weight: FloatArray, start: LabelTable, n_passes: int, *, true: FloatArray
    ) -> Ascent:
        """Decide row after row by the table of what has been decided so far, and return the table that is left.

        Rows are taken in their order; only probabilities are counted, because a label would steer the decision about
        its own row.

        Parameters
        ----------
        form : kernels.LabelForm
            The value of a label by its counts.
        weight : ndarray of shape (M,)
            What the value of each label counts for.
        start : LabelTable
            The table of the first rows, of shape (M,).
        n_passes : int
        true : ndarray of shape (M,)
            Expected true rows of each label.
        """
        hits, predicted = np.zeros(self.n_labels), np.zeros(self.n_labels)
        scale, offset = start.scale.copy(), start.offset.copy()
        chosen = np.full((self.n_rows, self.budget.high), -1, dtype=np.int64)
        budget = self.budget
        # Rows that store too few labels get those that it costs least: at first, the rarest.
        fill = labels_to_fill(-true, self.n_labels, budget, self.longest_row) if budget.low else _NO_LABELS
        for n_done in range(n_passes):
            if n_done:
                fill = labels_to_fill(offset, self.n_labels, budget, self.longest_row)
            kernels.label_ascend(
                self.block,
                form,
                self.factors,
                true,
                weight,
                hits,
                predicted,
                scale,
                offset,
                chosen,
                budget.low,
                budget.high,
                fill,
                self.total,
            )
        return Ascent(LabelTable(scale, offset), chosen)

    def sweep(self) -> Sweep:
        """Return what thresholds just below the true entries of each label would count."""
        return Sweep(*kernels.label_sweep(self.block))
