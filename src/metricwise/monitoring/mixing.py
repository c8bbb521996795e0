"""Class shares of rows without labels by maximum likelihood: mathematics on arrays.

With the density ratios ``W[n, k] = p_k(x_n) / old_k`` of calibrated probabilities p and the class shares old that they
belong to, the log-likelihood of shares q is ``sum_n log(sum_k q_k W[n, k])``: concave, maximised by the EM algorithm of
Saerens et al., here by Newton's method. Must not know rules.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

__all__ = ["LikelihoodRatio", "Mixing", "ShareInfluence", "maximise_shares"]

FloatArray = NDArray[np.float64]

_MAX_STEPS = 100
_TOL = 1e-16  # of the log-likelihood left to gain, for each row
_LEAST_WEIGHT = 1e-10  # of each class, in rows for each row: keeps the maximum off the boundary, by less than 1e-9
_RANK_TOL = 1e-10  # of the information: classes that rows do not tell apart
_INSIDE = 0.95  # of the way to the boundary that a step may go


class Mixing(NamedTuple):
    """Density ratios of rows, and how they count.

    Parameters
    ----------
    ratios : ndarray of shape (N, K)
    old : ndarray of shape (K,)
        Class shares that the ratios are relative to; positive.
    deflation : float
        What a row counts for, because the calibration was fitted to finitely many: ``1 / (1 + N / n_labelled)``.
    """

    ratios: FloatArray
    old: FloatArray
    deflation: float = 1.0

    def log_likelihood(self, shares: FloatArray) -> float:
        """Return the log-likelihood of shares (K,), not deflated."""
        return float(np.log(self.ratios @ shares).sum())


class LikelihoodRatio(NamedTuple):
    """Likelihood-ratio test of the old shares against any others."""

    shares: FloatArray
    statistic: float
    p_value: float

    @classmethod
    def of(cls, mixing: Mixing) -> LikelihoodRatio:
        """Test the old shares."""
        shares = maximise_shares(mixing, 0.0)
        gain = mixing.log_likelihood(shares) - mixing.log_likelihood(mixing.old)
        statistic = max(2 * mixing.deflation * gain, 0.0)
        return cls(shares, statistic, float(chdtrc(len(mixing.old) - 1, statistic)))


def maximise_shares(mixing: Mixing, prior_rows: float) -> FloatArray:
    """Return the shares (K,) that maximise the deflated log-likelihood with a Dirichlet prior around the old shares.

    The prior is worth `prior_rows` rows for each class. By damped Newton steps within the simplex.
    """
    ratios, old, deflation = mixing
    n_rows, k = ratios.shape
    strength = prior_rows * k * old + _LEAST_WEIGHT * deflation * n_rows  # (K,)
    shares = old / old.sum()
    value = _value(shares, mixing, strength)
    for _ in range(_MAX_STEPS):
        weights = ratios / (ratios @ shares)[:, None]
        gradient = deflation * weights.sum(axis=0) + strength / shares
        information = deflation * weights.T @ weights + np.diag(strength / shares**2)
        step = _newton_step(gradient, information)
        gain = float(gradient @ step)
        if gain <= _TOL * max(n_rows, 1):
            break
        shares, value = _line_search(shares, step, gain, value, mixing, strength)
    return np.asarray(shares)


def _value(shares: FloatArray, mixing: Mixing, strength: FloatArray) -> float:
    return mixing.deflation * mixing.log_likelihood(shares) + float(strength @ np.log(shares))


def _newton_step(gradient: FloatArray, information: FloatArray) -> FloatArray:
    """Return Newton's step along the simplex."""
    both = np.linalg.solve(information, np.column_stack([gradient, np.ones(len(gradient))]))
    return np.asarray(both[:, 0] - both[:, 1] * (both[:, 0].sum() / both[:, 1].sum()))


def _line_search(
    shares: FloatArray, step: FloatArray, gain: float, value: float, mixing: Mixing, strength: FloatArray
) -> tuple[FloatArray, float]:
    """Halve a step until it pays; it never reaches the boundary."""
    falling = step < 0
    size = min(1.0, _INSIDE * float(np.min(shares[falling] / -step[falling], initial=np.inf)))
    while size > 1e-12:
        trial = shares + size * step
        trial /= trial.sum()
        new = _value(trial, mixing, strength)
        if new >= value + 1e-4 * size * gain:
            return trial, new
        size /= 2
    return shares, value


class ShareInfluence(NamedTuple):
    """What the shares of maximum likelihood depend on, to first order.

    Parameters
    ----------
    of_rows : ndarray of shape (N, K)
        Change of the shares by one more row like each.
    of_parameters : ndarray of shape (K, K)
        Change of each share, by row, with each parameter ``(t, a_1, ..., a_{K-1})`` of the calibration.
    """

    of_rows: FloatArray
    of_parameters: FloatArray

    @classmethod
    def of(cls, mixing: Mixing, shares: FloatArray, z: FloatArray) -> ShareInfluence:
        """Return the influences on shares (K,), with the logits (N, K) that the calibration maps."""
        posterior = mixing.ratios * shares
        posterior /= posterior.sum(axis=1, keepdims=True)
        slopes = posterior / shares  # of the log-likelihood of each row
        basis = np.linalg.svd(np.ones((1, len(shares))))[2][1:].T  # (K, K - 1), along the simplex
        along = slopes @ basis
        inverse = basis @ np.linalg.pinv(along.T @ along, rcond=_RANK_TOL) @ basis.T
        # d log W_nk / dt = z_k and d log W_nk / da_j = [k = j], up to constants of the row.
        mean = (posterior * z).sum(axis=1, keepdims=True)
        by_t = (posterior * (z - mean)).sum(axis=0)
        by_bias = np.diag(posterior.sum(axis=0)) - posterior.T @ posterior
        cross = np.column_stack([by_t, by_bias[:, 1:]]) / shares[:, None]
        return cls((slopes - slopes.mean(axis=0)) @ inverse, np.asarray(inverse @ cross))

    def covariance(self, of_calibration: FloatArray | None) -> FloatArray:
        """Return the covariance (K, K) of the shares, from that of the calibration; None: it is taken as known."""
        spread = self.of_rows.T @ self.of_rows
        if of_calibration is not None:
            spread = spread + self.of_parameters @ of_calibration @ self.of_parameters.T
        return np.asarray(spread)
