"""Row passes on bare arrays: the only place where time is spent.

Owns every loop over rows. Knows arrays only: probabilities, integer codes, weights and the arrays of a loss; never a
metric, a solver or a label. All functions share these conventions:

eta : ndarray of shape (N, M, K), or (N, M) with the probability of class 1 of M binary outputs; float32 or float64,
    any strides, never copied whole.
codes : integer ndarray of shape (N, M), true classes, -1 where the label is missing.
weight : float64 ndarray of shape (N,), or None for ones.
n_classes : integer ndarray of shape (M,); classes at and beyond it are padding and never predicted.
loss : ``(full,)`` with shape (1 or M, K, K), or ``(diagonal, offset)`` with shape (1 or M, K) each.

A score has one definition, whoever computes it: ``sum_i L[i, j] * eta_i`` over i = 0..K-1 in that order in float64,
or ``d_j * eta_j + v_j``; the lowest j wins ties.
"""

from ._numpy import count_expected, count_labels, decide, envelope, recalibrate

__all__ = ["count_expected", "count_labels", "decide", "envelope", "recalibrate"]
