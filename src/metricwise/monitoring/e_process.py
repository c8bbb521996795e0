"""E-processes: the evidence that a mean is below zero, valid however often one looks, and intervals by inversion.

An observation has a *slack* s, which is not negative on average while a promise is kept, and at most a known `unit`.
Who bets the share `lambda` of the wealth against the promise holds ``prod (1 - lambda * s / unit)`` times the stake: at
most 1 on average at any time, whatever the past made the conditional means, so that it reaches ``1 / alpha`` with
probability `alpha` at most (Ville). Stakes are divided over bets, and over the batches at which one starts to bet: the
j-th gets ``1 / (j * (j + 1))``, so that a promise broken late in a long stream is noticed. All starts share the factors
of later batches, so that their sum obeys a recursion and the state is a few numbers.

Must not know promises, rows or metrics: arrays only.

References
----------
.. [1] Waudby-Smith, Ramdas (2024), "Estimating Means of Bounded Random Variables by Betting", JRSS B.
.. [2] Shin, Ramdas, Rinaldo (2024), "E-detectors: A Nonparametric Framework for Sequential Change Detection", NEJSDS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BETS", "EProcess", "Tally", "bet_unit", "log_factors", "log_sum", "value_limit"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Tuned on accuracies from 0.6 to 0.95 that fall by 0.02 to 0.3, after 0, 2,000 and 20,000 rows on the promise, in
# batches of 100: grids of 5 to 15 bets differ by a tenth in the median delay, and so
# on promises of 0.99 and falls of 0.005, on which nothing was tuned. The smallest matter for intervals of 100,000 rows.
BETS: FloatArray = 2.0 ** -np.arange(1.0, 11.0)
_LOG_BETS = float(np.log(len(BETS)))
MAX_PAIRS = 5_000  # distinct observations that are counted one by one
_NEGLIGIBLE = 1e-9  # of the largest slack: a promise without any room counts as one with so much
_GRID_POINTS, _REFINEMENTS = 33, 5  # places between which a limit is looked for, and how often


def log_sum(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of numbers (..., L) that are given by their logarithms."""
    largest = logs.max(axis=-1, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):  # nothing at all is minus infinity
        return np.asarray(np.log(np.exp(logs - shift).sum(axis=-1)) + shift[..., 0])


def bet_unit(largest: FloatArray | float, smallest: FloatArray | float) -> FloatArray:
    """Return the unit of bets, above every slack between two ends: positive, even if no slack is."""
    return np.maximum(np.maximum(largest, -_NEGLIGIBLE * np.asarray(smallest)), np.finfo(np.float64).tiny)


def log_factors(slack: FloatArray, unit: FloatArray | float) -> FloatArray:
    """Return the logarithm of what each bet is multiplied by, (..., L), at slacks (...)."""
    return np.log1p(-np.multiply.outer(slack / unit, BETS))


@dataclass(frozen=True, eq=False)
class EProcess:
    """Evidence against a promise, over a stream of batches; leading axes are streams.

    Parameters
    ----------
    log_wealth : ndarray of shape (..., L)
        Of each bet, over all starts so far.
    log_peak : ndarray of shape (..., L)
        Wealth of the single start that has the most.
    peak : integer ndarray of shape (..., L)
        The mark of that start.
    n_starts : int
        Batches so far.
    """

    log_wealth: FloatArray
    log_peak: FloatArray
    peak: IntArray
    n_starts: int = 0

    @classmethod
    def begin(cls, shape: tuple[int, ...] = ()) -> EProcess:
        """Return the evidence before any batch."""
        nothing = np.full((*shape, len(BETS)), -np.inf)
        return cls(nothing, nothing, np.zeros(nothing.shape, dtype=np.int64))

    def advance(self, log_factor: FloatArray, mark: int) -> EProcess:
        """Return the evidence after a batch with the product of its factors, (..., L), which starts at a mark."""
        n_starts = self.n_starts + 1
        stake = -np.log(n_starts * (n_starts + 1.0))
        newer = stake > self.log_peak
        return EProcess(
            np.logaddexp(self.log_wealth, stake) + log_factor,
            np.where(newer, stake, self.log_peak) + log_factor,
            np.where(newer, mark, self.peak),
            n_starts,
        )

    @property
    def log_evidence(self) -> FloatArray:
        """Logarithm of the e-value (...): wealth over all bets, and the stakes of starts still to come."""
        unused = -np.log(self.n_starts + 1.0)
        return np.asarray(np.logaddexp(log_sum(self.log_wealth) - _LOG_BETS, unused))

    @property
    def change(self) -> IntArray:
        """Mark of the start (...) that explains the evidence best."""
        best = self.log_peak.argmax(axis=-1)
        return np.take_along_axis(self.peak, best[..., None], axis=-1)[..., 0]


@dataclass(frozen=True, eq=False)
class Tally:
    """How often each observation (a, b) of a ratio of means has occurred, whatever the order.

    Parameters
    ----------
    pairs : ndarray of shape (P, 2), or None
        Distinct observations, sorted; None if there were too many.
    counts : integer ndarray of shape (P,)
    sums : ndarray of shape (2,)
        Sums of a and of b.
    n_rows : int
        Observations with a or b other than 0.
    """

    pairs: FloatArray | None
    counts: IntArray
    sums: FloatArray
    n_rows: int = 0

    @classmethod
    def empty(cls) -> Tally:
        """Return the tally of nothing."""
        return cls(np.zeros((0, 2)), np.zeros(0, dtype=np.int64), np.zeros(2))

    @classmethod
    def of(cls, a: FloatArray, b: FloatArray) -> Tally:
        """Count observations (n,), however many are distinct; those that are 0 and 0 say nothing and are left out."""
        matters = (a != 0) | (b != 0)
        pairs, counts = np.unique(np.stack([a[matters], b[matters]], axis=1), axis=0, return_counts=True)
        return cls(pairs, counts.astype(np.int64), counts @ pairs, int(matters.sum()))

    def merged(self, other: Tally) -> Tally:
        """Return the tally of both."""
        sums, n_rows = self.sums + other.sums, self.n_rows + other.n_rows
        if self.pairs is None or other.pairs is None:
            return Tally(None, np.zeros(0, dtype=np.int64), sums, n_rows)
        both = np.concatenate([self.pairs, other.pairs])
        pairs, place = np.unique(both, axis=0, return_inverse=True)
        if len(pairs) > MAX_PAIRS:
            return Tally(None, np.zeros(0, dtype=np.int64), sums, n_rows)
        counts = np.zeros(len(pairs), dtype=np.int64)
        np.add.at(counts, place.reshape(-1), np.concatenate([self.counts, other.counts]))
        return Tally(pairs, counts, counts @ pairs, n_rows)

    def log_factor(self, bound: float, sign: float, unit: FloatArray | float) -> FloatArray:
        """Return the logarithm of the product of all factors, (L,), with slacks ``sign * (a - bound * b)``."""
        assert self.pairs is not None
        slack = sign * (self.pairs[:, 0] - bound * self.pairs[:, 1])
        return np.asarray(self.counts @ log_factors(slack, unit))


def value_limit(tally: Tally, form: Any, sign: float, alpha: float) -> float:
    """Return what the ratio of means is at most (sign 1) or at least (-1) with confidence ``1 - alpha``, at all times.

    Values are left out that the wealth of all bets from the first observation on refutes. That is so for a ratio that
    has not changed since.

    Parameters
    ----------
    tally : Tally
    form : object
        Has the `limits` of the ratio, and ``slack_range(bounds, sign)``, the smallest and the largest slack at bounds.
    sign : {1, -1}
    alpha : float

    Returns
    -------
    float
    """
    low, high = form.limits
    end = high if sign > 0 else low
    if tally.pairs is None or tally.sums[1] <= 0 or not np.isfinite([low, high]).all():
        return float(end)
    inside, outside = float(np.clip(tally.sums[0] / tally.sums[1], low, high)), float(end)
    for _ in range(_REFINEMENTS):
        points = np.linspace(inside, outside, _GRID_POINTS)
        kept = np.flatnonzero(_log_evidence_from_start(tally, form, points, sign) < -np.log(alpha))
        last = int(kept[-1]) if len(kept) else 0
        if last == _GRID_POINTS - 1:
            break
        inside, outside = float(points[last]), float(points[last + 1])
    return outside


def _log_evidence_from_start(tally: Tally, form: Any, bounds: FloatArray, sign: float) -> FloatArray:
    """Return the evidence (T,) that the ratio is not beyond bounds (T,), of bets since the first observation."""
    assert tally.pairs is not None
    smallest, largest = form.slack_range(bounds, sign)
    slack = sign * (tally.pairs[:, 0] - bounds[:, None] * tally.pairs[:, 1])
    factors = log_factors(slack, bet_unit(largest, smallest)[:, None])
    return log_sum(np.einsum("p,tpl->tl", tally.counts.astype(np.float64), factors)) - _LOG_BETS
