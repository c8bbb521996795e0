"""Smooth metrics with no easy form: neither concave nor a ratio of linear functions.

A solver climbs them and cannot certify the top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.matrices import EMPTY, FloatArray, as_shares, divide
from .base import Metric, ShareForm, Traits
from .one_vs_rest import OneVsRest, Profile
from .registry import register
from .row_forms import RatioMean, precision_of, recall_of

__all__ = ["MCC", "FowlkesMallows"]

# Slopes at a predicted share (or spread of predictions) below this are those at this share: finite, not infinite.
_FLOOR = 1e-12


@register("mcc")
@dataclass(frozen=True, eq=False)
class MCC(Metric):
    """Matthews correlation, ``(sum_i C[i, i] - pi.q) / sqrt((1 - pi.pi) (1 - q.q))`` with q the predicted shares.

    Range [-1, 1]. At 0/0 (one class occurs, or one is predicted) the value is 0; the gradient there is that of nearly
    constant predictions, so that a solver can leave.

    See Also
    --------
    Kappa : Agreement corrected for chance.
    sklearn.metrics.matthews_corrcoef : The metric of labels.

    References
    ----------
    .. [1] Matthews (1975), "Comparison of the Predicted and Observed Secondary Structure of T4 Phage Lysozyme".
    .. [2] Gorodkin (2004), "Comparing Two K-Category Assignments by a K-Category Correlation Coefficient".

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.MCC().value([[0.375, 0.125], [0.125, 0.375]]))
    0.5
    """

    traits = Traits(name="mcc", range=(-1.0, 1.0))

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> BoundMCC:
        return BoundMCC(as_shares(priors))

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> BoundMCC:
        return self.bind(priors)  # one more label, which no row has

    def _of_ratios(self, n_classes: int, classes: Sequence[Any] | None = None) -> RatioMean | None:
        if n_classes != 2:
            return None
        return RatioMean.of("matthews", [part(k, 2) for k in (0, 1) for part in (precision_of, recall_of)])

    def _prior_slopes(self, confusion: FloatArray, classes: Sequence[Any] | None = None) -> FloatArray:
        priors, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
        spread = _spread(priors)
        scale = np.sqrt(spread * _spread(predicted))
        return divide(-predicted, scale) + divide(self.value(confusion) * priors, spread)


@dataclass(frozen=True, eq=False)
class BoundMCC(ShareForm):
    """:class:`MCC` at class priors (..., K)."""

    priors: FloatArray

    traits = Traits(name="bound_mcc", range=(-1.0, 1.0), monotone=True)

    def value_at(self, summary: FloatArray) -> FloatArray:
        covariance, predicted = self._covariance(summary)
        spread = _spread(predicted)
        scale = np.sqrt(spread * _spread(self.priors))
        return np.where(spread <= EMPTY, 0.0, divide(covariance, scale))

    def slope_at(self, summary: FloatArray) -> FloatArray:
        covariance, predicted = self._covariance(summary)
        spread = np.maximum(_spread(predicted), _FLOOR)
        scale = np.sqrt(spread * _spread(self.priors))
        by_column = (covariance / spread)[..., None] * predicted - self.priors
        return divide(np.concatenate([np.ones_like(by_column), by_column], axis=-1), scale[..., None])

    def _covariance(self, summary: FloatArray) -> tuple[FloatArray, FloatArray]:
        hit, predicted = np.split(summary, 2, axis=-1)
        return hit.sum(axis=-1) - np.sum(self.priors * predicted, axis=-1), predicted


def _spread(share: FloatArray) -> FloatArray:
    """Return 1 - sum of squares as a sum of products: no cancellation, and exactly 0 for a single class."""
    before = np.cumsum(share, axis=-1)[..., :-1]
    return np.asarray(2 * np.sum(share[..., 1:] * before, axis=-1))


@register("fowlkes_mallows")
@dataclass(frozen=True, eq=False, kw_only=True)
class FowlkesMallows(OneVsRest):
    """Geometric mean of precision and recall of a class, ``C[k, k] / sqrt(pi_k q_k)`` with q_k its predicted share.

    Range [0, 1]; 0 if the class occurs but is not predicted or vice versa, `zero_division` if it neither occurs nor is
    predicted. The gradient at a predicted share below 1e-12 is that at 1e-12. (scikit-learn's `fowlkes_mallows_score`
    is a different measure, which compares clusterings by pairs of rows.)

    Parameters
    ----------
    index, pos_label : optional
        The class, by position or by label; by default, class 1 of a binary output with the labels 0 and 1, -1 and 1, or
        False and True.
    zero_division : float, default=0.0
        The value at 0/0.

    See Also
    --------
    FBeta : Harmonic instead of geometric mean.
    GMean : Geometric mean of the recalls.

    References
    ----------
    .. [1] Fowlkes, Mallows (1983), "A Method for Comparing Two Hierarchical Clusterings".

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.FowlkesMallows().value([[0.5, 0.125], [0.25, 0.125]]))
    0.4082482904638631
    """

    declared = Traits(name="fowlkes_mallows", monotone=True)

    def _of_ratios(self, n_classes: int, classes: Sequence[Any] | None = None) -> RatioMean:
        k = self.position(n_classes, classes)
        return RatioMean.of("geometric", [precision_of(k, n_classes), recall_of(k, n_classes)])

    def profile(self, hit: FloatArray, true: FloatArray, predicted: FloatArray) -> Profile:
        neither = (true <= EMPTY) & (predicted <= EMPTY)
        safe = np.maximum(predicted, _FLOOR)
        by_hit = np.where(true <= EMPTY, 0.0, 1 / np.sqrt(np.maximum(true, EMPTY) * safe))
        ratio = np.where(predicted <= EMPTY, 0.0, hit * by_hit)
        return Profile(np.where(neither, self.zero_division, ratio), by_hit, -0.5 * ratio / safe)
