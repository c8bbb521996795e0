"""Class shares of rows without labels by maximum likelihood: mathematics on arrays.

With the density ratios ``W[n, k] = p_k(x_n) / old_k`` of calibrated probabilities p and the class shares old that they
belong to, the log-likelihood of shares q is ``sum_n log(sum_k q_k W[n, k])``: concave, maximised by the EM algorithm of
Saerens et al., here by Newton's method. Must not know rules.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

__all__ = [
    "InfluenceSums",
    "LikelihoodRatio",
    "LikelihoodSums",
    "MixedRows",
    "Mixing",
    "ShareInfluence",
    "maximise_shares",
]

FloatArray = NDArray[np.float64]

_MAX_STEPS = 100
_TOL = 1e-16  # of the log-likelihood left to gain, for each row
_LEAST_WEIGHT = 1e-10  # of each class, in rows for each row: keeps the maximum off the boundary, by less than 1e-9
_RANK_TOL = 1e-10  # of the information: classes that rows do not tell apart
_INSIDE = 0.95  # of the way to the boundary that a step may go


class LikelihoodSums(NamedTuple):
    """The log-likelihood of shares, and sums of its slopes (K,) and of their products (K, K) over rows."""

    value: float
    slopes: FloatArray
    products: FloatArray

    @classmethod
    def of(cls, ratios: FloatArray, shares: FloatArray) -> LikelihoodSums:
        """Return the sums over rows of density ratios (N, K)."""
        density = ratios @ shares
        weights = ratios / density[:, None]
        return cls(float(np.log(density).sum()), weights.sum(axis=0), weights.T @ weights)

    def add(self, other: LikelihoodSums) -> LikelihoodSums:
        """Add the sums over other rows."""
        return LikelihoodSums(self.value + other.value, self.slopes + other.slopes, self.products + other.products)


class MixedRows(Protocol):
    """Rows whose class shares are looked for, wherever they are; attributes as in :class:`Mixing`."""

    @property
    def old(self) -> FloatArray: ...

    @property
    def deflation(self) -> float: ...

    @property
    def n_rows(self) -> int: ...

    def at(self, shares: FloatArray) -> LikelihoodSums:
        """Return the log-likelihood of shares (K,) and its slopes."""
        ...


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

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.ratios)

    def at(self, shares: FloatArray) -> LikelihoodSums:
        """Return the log-likelihood of shares (K,), not deflated, and its slopes."""
        return LikelihoodSums.of(self.ratios, shares)

    def log_likelihood(self, shares: FloatArray) -> float:
        """Return the log-likelihood of shares (K,), not deflated."""
        return float(np.log(self.ratios @ shares).sum())


class LikelihoodRatio(NamedTuple):
    """Likelihood-ratio test of the old shares against any others."""

    shares: FloatArray
    statistic: float
    p_value: float

    @classmethod
    def of(cls, mixing: MixedRows) -> LikelihoodRatio:
        """Test the old shares."""
        shares = maximise_shares(mixing, 0.0)
        gain = mixing.at(shares).value - mixing.at(mixing.old).value
        statistic = max(2 * mixing.deflation * gain, 0.0)
        return cls(shares, statistic, float(chdtrc(len(mixing.old) - 1, statistic)))


def maximise_shares(mixing: MixedRows, prior_rows: float) -> FloatArray:
    """Return the shares (K,) that maximise the deflated log-likelihood with a Dirichlet prior around the old shares.

    The prior is worth `prior_rows` rows for each class. By damped Newton steps within the simplex.
    """
    old, deflation, n_rows = mixing.old, mixing.deflation, mixing.n_rows
    k = len(old)
    strength = prior_rows * k * old + _LEAST_WEIGHT * deflation * n_rows  # (K,)
    shares = old / old.sum()
    sums = mixing.at(shares)
    for _ in range(_MAX_STEPS):
        gradient = deflation * sums.slopes + strength / shares
        information = deflation * sums.products + np.diag(strength / shares**2)
        step = _newton_step(gradient, information)
        gain = float(gradient @ step)
        if gain <= _TOL * max(n_rows, 1):
            break
        trial, sums = _line_search(shares, step, gain, sums, mixing, strength)
        if trial is shares:
            break
        shares = trial
    return np.asarray(shares)


def _value(shares: FloatArray, sums: LikelihoodSums, deflation: float, strength: FloatArray) -> float:
    return deflation * sums.value + float(strength @ np.log(shares))


def _newton_step(gradient: FloatArray, information: FloatArray) -> FloatArray:
    """Return Newton's step along the simplex."""
    both = np.linalg.solve(information, np.column_stack([gradient, np.ones(len(gradient))]))
    return np.asarray(both[:, 0] - both[:, 1] * (both[:, 0].sum() / both[:, 1].sum()))


def _line_search(
    shares: FloatArray,
    step: FloatArray,
    gain: float,
    sums: LikelihoodSums,
    mixing: MixedRows,
    strength: FloatArray,
) -> tuple[FloatArray, LikelihoodSums]:
    """Halve a step until it pays; it never reaches the boundary. None that pays leaves the shares as they are."""
    value = _value(shares, sums, mixing.deflation, strength)
    falling = step < 0
    size = min(1.0, _INSIDE * float(np.min(shares[falling] / -step[falling], initial=np.inf)))
    while size > 1e-12:
        trial = shares + size * step
        trial /= trial.sum()
        there = mixing.at(trial)
        if _value(trial, there, mixing.deflation, strength) >= value + 1e-4 * size * gain:
            return trial, there
        size /= 2
    return shares, sums


class InfluenceSums(NamedTuple):
    """Sums over rows that the influences on shares of maximum likelihood are made of.

    Parameters
    ----------
    n_rows : float
    slopes, slope_products : ndarray of shape (K,) and (K, K)
        Of the log-likelihood of each row.
    posterior, posterior_products : ndarray of shape (K,) and (K, K)
    by_t : ndarray of shape (K,)
        Change of the posterior with the temperature of the calibration.
    """

    n_rows: float
    slopes: FloatArray
    slope_products: FloatArray
    posterior: FloatArray
    posterior_products: FloatArray
    by_t: FloatArray

    @classmethod
    def of(cls, ratios: FloatArray, shares: FloatArray, z: FloatArray) -> InfluenceSums:
        """Return the sums over rows of density ratios and logits (N, K)."""
        posterior = _posterior(ratios, shares)
        slopes = posterior / shares
        # d log W_nk / dt = z_k and d log W_nk / da_j = [k = j], up to constants of the row.
        mean = (posterior * z).sum(axis=1, keepdims=True)
        by_t = (posterior * (z - mean)).sum(axis=0)
        products = slopes.T @ slopes, posterior.T @ posterior
        return cls(float(len(ratios)), slopes.sum(axis=0), products[0], posterior.sum(axis=0), products[1], by_t)

    def add(self, other: InfluenceSums) -> InfluenceSums:
        """Add the sums over other rows."""
        pairs: list[Any] = list(zip(self, other, strict=True))
        return InfluenceSums(*(first + second for first, second in pairs))

    def inverse(self) -> FloatArray:
        """Return the inverse (K, K) of the observed information along the simplex."""
        basis = np.linalg.svd(np.ones((1, len(self.slopes))))[2][1:].T  # (K, K - 1), along the simplex
        return np.asarray(basis @ np.linalg.pinv(basis.T @ self.slope_products @ basis, rcond=_RANK_TOL) @ basis.T)

    def of_parameters(self, shares: FloatArray) -> FloatArray:
        """Return the change (K, K) of each share, by row, with each parameter of the calibration."""
        by_bias = np.diag(self.posterior) - self.posterior_products
        cross = np.column_stack([self.by_t, by_bias[:, 1:]]) / shares[:, None]
        return np.asarray(self.inverse() @ cross)

    def covariance(self, shares: FloatArray, of_calibration: FloatArray | None) -> FloatArray:
        """Return the covariance (K, K) of the shares, from that of the calibration; None: it is taken as known."""
        inverse = self.inverse()
        centred = self.slope_products - np.outer(self.slopes, self.slopes) / self.n_rows
        spread = inverse @ centred @ inverse
        if of_calibration is not None:
            of_parameters = self.of_parameters(shares)
            spread = spread + of_parameters @ of_calibration @ of_parameters.T
        return np.asarray(spread)


def _posterior(ratios: FloatArray, shares: FloatArray) -> FloatArray:
    posterior = ratios * shares
    posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior


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
        sums = InfluenceSums.of(mixing.ratios, shares, z)
        slopes = _posterior(mixing.ratios, shares) / shares
        of_rows = (slopes - slopes.mean(axis=0)) @ sums.inverse()
        return cls(of_rows, sums.of_parameters(shares))
