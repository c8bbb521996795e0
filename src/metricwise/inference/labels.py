"""Values of sets of labels on rows with labels, and their standard errors for new rows.

Rows, or clusters of them, are dealt into blocks; leaving out one block after the other gives the standard error of any
function of counts, however rare its labels (the delete-a-group jackknife). Must not know how decisions were made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..core.label_sets import LabelSets
from ..metrics.label_aims import LabelAim, LabelCounts
from .results import Comparison, Estimate

__all__ = ["LabelJudge", "deal_blocks"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

N_BLOCKS = 20
_ERROR = 0.05  # of 95 % intervals


def deal_blocks(n_rows: int, clusters: NDArray[Any] | None, seed: int, n_blocks: int = N_BLOCKS) -> IntArray:
    """Return the block of each row, (N,), drawn at random; rows of a cluster have one block.

    Parameters
    ----------
    n_rows : int
        N.
    clusters : integer ndarray of shape (N,), optional
        Codes of the rows that belong together.
    seed : int
    n_blocks : int
    """
    rng = np.random.default_rng(seed)
    if clusters is None:
        return rng.permutation(n_rows) % n_blocks
    return np.asarray((rng.permutation(int(clusters.max(initial=0)) + 1) % n_blocks)[clusters])


@dataclass(frozen=True, eq=False)
class LabelJudge:
    """Rows with true labels, by which decisions are valued.

    Parameters
    ----------
    targets : LabelSets
    weight : ndarray of shape (N,), optional
    block : ndarray of shape (N,)
        The block that each row is in.
    """

    targets: LabelSets
    weight: FloatArray | None
    block: IntArray

    def take(self, rows: IntArray) -> LabelJudge:
        """Return the judge of some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return LabelJudge(self.targets.take(rows), weight, self.block[rows])

    @cached_property
    def block_ids(self) -> IntArray:
        """The blocks that have rows, ascending."""
        return np.unique(self.block)

    @cached_property
    def _of_blocks(self) -> list[IntArray]:
        """The rows of each block that has any."""
        order = np.argsort(self.block, kind="stable")
        ends = np.flatnonzero(np.diff(self.block[order])) + 1
        return np.split(order, ends)

    @cached_property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.targets.n_rows) if self.weight is None else float(self.weight.sum())

    @cached_property
    def true(self) -> FloatArray:
        """True rows of each label, (M,)."""
        return self.targets.count(self.weight)

    def counts(self, decisions: LabelSets) -> LabelCounts:
        """Return the counts of each label."""
        hits = decisions.common(self.targets)
        return LabelCounts(hits.count(self.weight), decisions.count(self.weight), self.true, self.total)

    def row_values(self, aim: LabelAim, decisions: LabelSets) -> FloatArray:
        """Return the metric of each row's own labels, (N,), which count by the weights of the aim."""
        weight = aim.weight
        total = float(self.targets.n_labels) if weight is None else float(weight.sum())
        hits, predicted, true = (
            labels.row_sums(weight) for labels in (decisions.common(self.targets), decisions, self.targets)
        )
        values = aim.by_label(LabelCounts(hits, predicted, true, total))
        assert values is not None
        return values

    def value(self, aim: LabelAim, decisions: LabelSets) -> float:
        """Return the value of decisions about all rows."""
        if aim.average == "instance":
            return float(np.average(self.row_values(aim, decisions), weights=self.weight))
        return aim.bind(self.true).value(self.counts(decisions))

    def left_out(self, aim: LabelAim, decisions: LabelSets) -> FloatArray:
        """Return the value without each of the blocks that have rows, (B,)."""
        weight = np.ones(self.targets.n_rows) if self.weight is None else self.weight
        if aim.average == "instance":
            values = self.row_values(aim, decisions)
            sums, sizes = (
                np.array([part[rows].sum() for rows in self._of_blocks]) for part in (weight * values, weight)
            )
            return np.asarray((sums.sum() - sums) / np.maximum(sizes.sum() - sizes, 1e-300))
        whole = self.counts(decisions)
        hits = decisions.common(self.targets)
        out = []
        for rows in self._of_blocks:
            counts = [labels.take(rows).count(weight[rows]) for labels in (hits, decisions, self.targets)]
            block = LabelCounts(counts[0], counts[1], counts[2], float(weight[rows].sum()))
            kept = whole.minus(block)
            out.append(aim.bind(kept.true).value(kept))
        return np.array(out)

    def estimate(self, value: float, left_out: FloatArray) -> Estimate:
        """Return a value with its interval, from the values without each block."""
        margin = _student_quantile(len(left_out)) * standard_error(left_out)
        return Estimate(value, value - margin, value + margin)

    def compare(self, aim: LabelAim, decisions: LabelSets, baseline: LabelSets) -> Comparison:
        """Return the values of two decisions and their difference, with intervals."""
        first, second = (self.value(aim, labels) for labels in (decisions, baseline))
        without = [self.left_out(aim, labels) for labels in (decisions, baseline)]
        return Comparison(
            self.estimate(first, without[0]),
            self.estimate(second, without[1]),
            self.estimate(first - second, without[0] - without[1]),
        )


def _student_quantile(n_blocks: int) -> float:
    """Return the quantile of Student's distribution for 95 % intervals from so many blocks."""
    from scipy.special import stdtrit

    return float(stdtrit(max(n_blocks - 1, 1), 1.0 - _ERROR / 2))


def standard_error(left_out: FloatArray) -> float:
    """Return the standard error of a value from the values without each of B blocks."""
    n_blocks = len(left_out)
    if n_blocks < 2:
        return float("inf")
    return float(np.sqrt((n_blocks - 1) / n_blocks * np.sum((left_out - left_out.mean()) ** 2)))
