"""How far rows in time depend on one another.

Owns the length of the stretches of time that are taken to be independent, measured on the rows themselves. Must not
know how intervals are made of them, nor resamples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..core.confusion import distributions
from ..core.losses import Loss
from ..core.rows import Dependence
from ..data.sources.memory import MemorySource
from ..data.weights import stretches
from ..oracles.problem import InMemory, argmax_rule
from ..rules.weighted import anonymous_rule
from .uncertainty import influence

__all__ = ["dependence_length", "in_stretches"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Weak dependence that lasts cannot be told from none: with at most so many stretches, intervals hold whether there is
# any or not, and Student's quantile costs 6 %. Twice as many as resamples have blocks.
_MOST_STRETCHES = 24
_LEAST_STRETCHES = 5  # where the length is measured
# Lengths of a stretch in units of the time that dependence lasts: standard errors are then some 3 % too small.
_LASTING = 15.0
_CLEARLY = 3.0  # log-likelihood by which an autoregression beats noise, at least, to be believed
_MOST_FREQUENCIES = 512  # the slowest, that a spectrum is fitted to
_MOST_CLASSES = 8  # the most frequent, whose labels are looked at
_MOST_OUTPUTS = 8  # whose probabilities are held against labels


def in_stretches(source: MemorySource, problems: Sequence[InMemory], length: int | None) -> MemorySource:
    """Return a source whose rows belong together by stretches of time, so long that these are independent.

    Parameters
    ----------
    source : MemorySource
        Whose clusters are the times of rows, as codes that ascend.
    problems : sequence of InMemory
        Of the same rows: what is judged, each by its own metric.
    length : int or None
        Rows of a stretch; None: as long as the rows ask for.
    """
    rows = source.rows
    place = rows.cluster
    assert place is not None
    n_rows, given = rows.n_rows, length is not None
    if length is None:
        order = np.argsort(place, kind="stable")
        length = dependence_length([series[order] for series in _series(source, problems)], n_rows)
    codes = stretches(place, length)
    n_stretches = int(codes.max()) + 1
    inflation = max([1.0, *(_inflation(labels, codes) for labels in _label_counts(source))])
    found = Dependence(length, n_stretches, inflation, n_rows, given)
    return source.map(lambda own: replace(own, cluster=codes, dependence=found))


def dependence_length(series: Sequence[FloatArray], n_rows: int) -> int:
    """Return the length of stretches that are independent for what concerns the means of several series in time.

    The mean spectrum of the slowest frequencies, of periods above the cube root of N, is fitted by that of an
    autoregression of order 1 beside noise, by Whittle's likelihood. The mean of a stretch of L rows misses the share
    G / L of the variance, with G the sum of lags times their covariances over the sum of these.

    Parameters
    ----------
    series : sequence of ndarray of shape (N,)
    n_rows : int
        N.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.inference.dependence import dependence_length
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=10_000)
    >>> dependence_length([noise], 10_000)
    417
    >>> slow = np.convolve(noise, 0.99 ** np.arange(1000))[:10_000]
    >>> 1_000 < dependence_length([slow], 10_000) <= 2_000
    True
    """
    least = int(max(1, round(n_rows ** (1 / 3)), round(n_rows / _MOST_STRETCHES)))
    n_frequencies = min(max(8, round(n_rows ** (2 / 3) / 2)), (n_rows - 1) // 2, _MOST_FREQUENCIES)
    powers = [power for power in (_power(own, n_frequencies) for own in series) if power is not None]
    if not powers:
        return least
    lag = _mean_lag(np.mean(powers, axis=0), n_rows)
    return max(min(round(_LASTING * lag), n_rows // _LEAST_STRETCHES), least)


def _power(series: FloatArray, n_frequencies: int) -> FloatArray | None:
    """The power of a series at its slowest frequencies, 1 on average; None where it has none."""
    spread = series - series.mean()
    if n_frequencies < 4 or not np.isfinite(spread).all() or not spread.any():
        return None
    power = np.abs(np.fft.rfft(spread)[1 : n_frequencies + 1]) ** 2
    return np.asarray(power / power.mean())


def _mean_lag(power: FloatArray, n_rows: int) -> float:
    """The mean lag of covariances, in rows, of the autoregression that fits a spectrum; 0 where noise fits as well."""
    angle = 2 * np.pi * np.arange(1, len(power) + 1) / n_rows
    lasting = np.geomspace(max(n_rows ** (1 / 3) / 4, 1.01), max(n_rows / 8, 2.0), 24)
    decay = 1 - 1 / lasting[:, None]
    slow = (1 - decay**2) / (1 + decay**2 - 2 * decay * np.cos(angle))
    share = 1 / (1 + np.exp(-np.linspace(-8, 6, 29)))[:, None]  # of the slow part in the variance
    spectrum = (1 - share)[..., None] + share[..., None] * slow
    fit = -np.log(spectrum).sum(axis=2) - len(power) * np.log(np.mean(power / spectrum, axis=2))
    best = np.unravel_index(np.argmax(fit), fit.shape)
    if fit[best] < _CLEARLY:  # noise alone has 0
        return 0.0
    a, phi = float(share[best[0], 0]), float(decay[best[1], 0])
    return a * 2 * phi / (1 - phi) ** 2 / (1 - a + a * (1 + phi) / (1 - phi))


def _series(source: MemorySource, problems: Sequence[InMemory]) -> Iterator[FloatArray]:
    """Yield what rows (N,) add to what may be judged.

    The influence on each metric of argmax, and of the decisions that make up for unequal classes; and the labels of
    every class less their probabilities, whatever the metric is.
    """
    if not source.labelled:
        return
    for problem in problems:
        priors = problem.oracle().priors
        weight = np.divide(1.0, priors, out=np.zeros_like(priors), where=priors > 0)
        balanced = anonymous_rule(Loss(diagonal=-weight, offset=np.zeros_like(weight)), problem.schema.n_decisions)
        for rule in (argmax_rule(problem), balanced):
            yield influence(problem, problem.decide(rule))[1]
    rows = source.rows
    assert rows.codes is not None
    if rows.codes.shape[1] > _MOST_OUTPUTS:
        return
    for k, labels in zip(_frequent(source), _label_counts(source), strict=True):
        for m in range(rows.codes.shape[1]):
            eta = distributions(rows.proba.output(m)[:, 0])
            if k < eta.shape[1]:
                labels = labels - np.where(rows.codes[:, m] >= 0, eta[:, k], 0.0)
        yield labels if rows.weight is None else labels * rows.weight


def _frequent(source: MemorySource) -> list[int]:
    """The most frequent classes."""
    counts = source.class_rows.sum(axis=0)
    order = np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    return [int(k) for k in order if counts[k] > 0]


def _label_counts(source: MemorySource) -> Iterator[FloatArray]:
    """Yield the number of labels of each of the most frequent classes in every row, (N,)."""
    if not source.labelled:
        return
    codes = source.rows.codes
    assert codes is not None
    for k in _frequent(source):
        yield (codes == k).sum(axis=1).astype(np.float64)


def _inflation(values: FloatArray, codes: IntArray) -> float:
    """How much more the sums of values by stretch vary than those of independent rows."""
    values = values - values.mean()
    squares = float(values @ values)
    if squares <= 0:
        return 1.0
    sums = np.bincount(codes, values)
    return float(sums @ sums) * len(sums) / (len(sums) - 1) / squares
