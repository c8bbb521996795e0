"""Thresholds fitted to resamples of rows, all of them at once: what each block of rows counts between thresholds.

Resamples are unions of blocks, so their counts are sums of those of blocks, and no resample is searched by itself. Must
not know how margins are found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.cached import cached_property
from ...goals.constraint import BoundConstraint, ConstraintSystem
from ...metrics.objective import Objective
from ...oracles.base import Oracle
from ...oracles.problem import InMemory
from ...rules.calibration import TemperatureScaling
from ...solvers.sweep import thresholds_inside
from ..bagging import Resamples

__all__ = ["ResampledThresholds", "ThresholdFits"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_MAX_BINS = 1 << 10  # between which thresholds of resamples lie: with more, neither estimates nor intervals changed
_ROUNDING = 1e-12


class ThresholdFits(NamedTuple):
    """The best thresholds of F of the resamples, which have one that keeps the constraints.

    Parameters
    ----------
    resamples : ndarray of shape (F,), int
    threshold : ndarray of shape (F,)
        In units of the scores.
    aim : ndarray of shape (F,)
        The metric on the rows that were kept.
    constrained : ndarray of shape (F, Q)
        What is constrained, on the same rows.
    """

    resamples: IntArray
    threshold: FloatArray
    aim: FloatArray
    constrained: FloatArray


@dataclass(frozen=True, eq=False)
class ResampledThresholds:
    """Counts of blocks of labelled rows, in bins of the scores of one pooled binary confusion.

    Parameters
    ----------
    resamples : Resamples
    link : TemperatureScaling or None
        Of all rows.
    oracle : Oracle
        Of all rows, which outputs have their weights from.
    objective : Objective
        Of one group, bound to all rows.
    limits : ConstraintSystem
        Bound to all rows; may be without constraints.
    """

    resamples: Resamples
    link: TemperatureScaling | None
    oracle: Oracle
    objective: Objective
    limits: ConstraintSystem

    @property
    def problem(self) -> InMemory:
        """The rows."""
        return self.resamples.problem

    # ----------------------------------------------------------------------------------------------------- counting

    @cached_property
    def scores(self) -> FloatArray:
        """The share of class 1 in each entry, (N, M), behind the link."""
        proba = self.problem.source.rows.proba
        proba = proba if self.link is None else self.link.view(proba)
        columns = [proba.output(m)[:, 0].astype(np.float64) for m in range(proba.n_outputs)]
        return np.stack([eta if eta.ndim == 1 else eta[:, 1] / (eta[:, 0] + eta[:, 1]) for eta in columns], axis=1)

    @cached_property
    def _entries(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Rows and true classes of the entries with a label, and their weights."""
        rows, share, weight = self.problem.source.rows, self.objective.grouping.share, self.oracle.weight
        codes = self._codes
        if codes.shape[1] == 1 and codes.min(initial=0) >= 0:
            row_weight = np.ones(len(codes)) if rows.weight is None else rows.weight
            return np.arange(len(codes)), codes[:, 0].astype(np.intp), row_weight
        row, output = np.nonzero(codes >= 0)
        each = np.divide(share, weight, out=np.zeros_like(share), where=weight > 0)
        each = each / each.max()  # so that rows without weights are whole numbers
        return (
            row,
            codes[row, output].astype(np.intp),
            each[output] * (1.0 if rows.weight is None else rows.weight[row]),
        )

    @property
    def _codes(self) -> NDArray[Any]:
        """True classes (N, M), -1 where the label is missing."""
        codes = self.problem.source.rows.codes
        assert codes is not None
        return codes

    @cached_property
    def _bins(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """The least and the largest score in each of n bins, ascending, and the bin of each entry with a label."""
        codes = self._codes
        scores = self.scores.reshape(-1) if codes.min(initial=0) >= 0 else self.scores[codes >= 0]
        order = np.argsort(scores)  # of equal scores in any order: they are in one bin
        ascending = scores[order]
        cuts = np.flatnonzero(ascending[1:] > ascending[:-1]) + 1
        if len(cuts) >= _MAX_BINS:
            cuts = cuts[np.linspace(0, len(cuts) - 1, _MAX_BINS - 1).astype(np.intp)]
        begin, end = np.concatenate([[0], cuts]), np.append(cuts, len(scores))
        place = np.empty(len(scores), dtype=np.intp)
        place[order] = np.repeat(np.arange(len(begin)), end - begin)
        return ascending[begin], ascending[end - 1], place

    @cached_property
    def _kept_weights(self) -> FloatArray:
        """Weights (R, 2, n) of each class in each bin that the resamples keep."""
        (row, true, weight), (least, _, place) = self._entries, self._bins
        kept = (~self.resamples.left_out).astype(np.float64)
        n, n_blocks = len(least), kept.shape[1]
        cell = (self.resamples.block[row] * 2 + true) * n + place
        by_block = np.bincount(cell, weight, minlength=n_blocks * 2 * n).reshape(n_blocks, -1)
        return (kept @ by_block).reshape(-1, 2, n)

    # ------------------------------------------------------------------------------------------------------- values

    def _confusions(self, ones: FloatArray, totals: FloatArray) -> FloatArray:
        """Confusions (S, T, 2, 2) from weights that are predicted 1, (S, T, 2), of totals (S, 2) of each class."""
        priors = totals if self.problem.prior is None else np.where(totals > 0, self.problem.prior[0, :2], 0.0)
        priors = priors / np.maximum(priors.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        factor = np.divide(priors, totals, out=np.zeros_like(totals), where=totals > 0)
        return np.asarray(np.stack([totals[:, None] - ones, ones], axis=-1) * factor[:, None, :, None])

    def _aim(self, C: FloatArray) -> FloatArray:
        """The metric (S, T) of confusions (S, T, 2, 2), each at its class priors."""
        objective = self.objective
        metric = objective.metrics[0]._of_rows(objective.grouping.total[0])
        return np.asarray(metric.bind(C[:, :1].sum(axis=-1), objective.labels[0]).value(C))

    def _constrained(self, C: FloatArray) -> list[tuple[BoundConstraint, FloatArray]]:
        """What is constrained, bound to the class priors of confusions (S, T, 2, 2), and its values (S, T)."""
        priors, bounds = C[:, :1].sum(axis=-1), [limit.bound for limit in self.limits.pooled]
        labels = self.objective.labels[0]
        bounds = [replace(bound, metric=bound.constraint.metric.bind(priors, labels)) for bound in bounds]
        return [(bound, np.asarray(bound.value(C))) for bound in bounds]

    def judged(self, decided: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Return the aim (S,) and what is constrained (S, Q) of decisions (S, N, M), -1 where there are none."""
        (_, true, weight), codes = self._entries, self._codes
        counts = np.stack([_counted(some[codes >= 0], true, weight) for some in decided])
        C = self._confusions(counts[:, None, :, 1], counts.sum(axis=2))
        values = [value[:, 0] for _, value in self._constrained(C)]
        return self._aim(C)[:, 0], np.stack(values, axis=-1)

    # --------------------------------------------------------------------------------------------------------- fits

    def fit(self, margins: FloatArray) -> ThresholdFits:
        """Return the best thresholds with bounds tightened by margins (Q, 2), or by less where these leave no room."""
        weights = self._kept_weights
        above = np.zeros((*weights.shape[:2], weights.shape[2] + 1))
        above[:, :, :-1] = np.cumsum(weights[:, :, ::-1], axis=2)[:, :, ::-1]
        C = self._confusions(np.moveaxis(above, 1, 2), above[:, :, 0])
        aim, constrained = self._aim(C), self._constrained(C)
        kept = self._kept(C, constrained, margins)
        fitted = np.flatnonzero(kept.any(axis=1) & (above[:, :, 0].sum(axis=1) > 0))
        values = np.where(kept, aim, -np.inf)
        places, thresholds = np.empty(len(fitted), dtype=np.intp), np.empty(len(fitted))
        for f, r in enumerate(fitted):
            near = np.flatnonzero(values[r] >= values[r].max() - _ROUNDING)
            places[f], thresholds[f] = self._widest(near, np.flatnonzero(weights[r].any(axis=0)))
        at = np.array([value[fitted, places] for _, value in constrained]).reshape(len(constrained), len(fitted)).T
        return ThresholdFits(fitted, thresholds, aim[fitted, places], at)

    def _kept(
        self, C: FloatArray, constrained: list[tuple[BoundConstraint, FloatArray]], margins: FloatArray
    ) -> NDArray[np.bool_]:
        """Which thresholds (S, T) keep bounds tightened by margins (Q, 2); where none does, by half of them or none."""
        priors = C[:, :1].sum(axis=-1)
        full = np.ones(C.shape[:2], dtype=bool)
        for bound, _ in constrained:
            full &= ~np.asarray(bound.empty(C))
        out = np.zeros(full.shape, dtype=bool)
        for share in (1.0, 0.5, 0.0) if margins.any() else (1.0,):
            kept = full
            for (bound, value), (low, high) in zip(constrained, share * margins, strict=True):
                ends = np.array(bound.constraint.ends)
                if bound.around is not None:  # bounds lie around the prior of the rows that are kept
                    moved = priors[:, :, bound.around] - self._prior_of_all(bound.around)
                    ends = ends[:, None, None] + moved
                kept = kept & (value >= ends[0] + low - _ROUNDING) & (value <= ends[1] - high + _ROUNDING)
            none = ~out.any(axis=1)
            out[none] = kept[none]
        return out

    def _prior_of_all(self, i: int) -> float:
        """The class prior of all rows, to which bounds were moved."""
        return float(self.limits.pooled[0].share @ self.oracle.priors[:, i])

    def _widest(self, near: IntArray, shown: IntArray) -> tuple[int, float]:
        """Of thresholds below bins `near`, that of the widest interval between bins with rows, and a point inside."""
        least, largest, _ = self._bins
        at = np.searchsorted(shown, near)
        low = np.append(largest[shown], -np.inf)[at - 1]
        high = np.append(least[shown], np.inf)[at]
        width = np.where(np.isfinite(low) & np.isfinite(high), high - low, 0.0)
        best = int(width.argmax())
        return int(near[best]), float(thresholds_inside(low[best : best + 1], high[best : best + 1])[0])


def _counted(decided: NDArray[Any], true: IntArray, weight: FloatArray) -> FloatArray:
    """Weights (2, 2) of entries by true class and decision, without those that are not decided."""
    cell = np.where(decided >= 0, true * 2 + decided, 4)
    return np.bincount(cell, weight, minlength=5)[:4].reshape(2, 2).astype(np.float64)
