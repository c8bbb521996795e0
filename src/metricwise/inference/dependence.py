"""How far rows in time depend on one another: the length of time periods that are taken to be independent.

Must not know metrics, nor how intervals are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.confusion import distributions
from ..core.dependence import Dependence
from ..core.notes import Note, NoteKind
from ..data.half_life import HalfLife
from ..data.row_spec import InTime
from ..data.sources.memory import MemorySource
from ..data.weights import row_shares, stretches

__all__ = ["dependence_length", "in_stretches", "notes_in_time"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Weak dependence that lasts cannot be told from none: with at most so many stretches, intervals hold whether there is
# any or not, and Student's quantile costs 6 %. Twice as many as resamples have blocks.
_MAX_STRETCHES = 24
_MIN_STRETCHES = 5  # if the length is measured
# Length of a stretch in units of the time that dependence lasts: standard errors are then some 3 % too small.
_STRETCH_LAGS = 15.0
_MIN_LOG_LIKELIHOOD = 3.0  # by which an autoregression must beat noise
_MAX_FREQUENCIES = 512  # the slowest, that a spectrum is fitted to
_MAX_CLASSES = 8  # the most frequent, whose labels are used
_MAX_OUTPUTS = 8  # whose probabilities are compared with labels


def in_stretches(source: MemorySource, influences: Iterable[FloatArray], time: InTime) -> MemorySource:
    """Return a source whose rows are clustered by time periods, so long that these are independent.

    Rows of little weight, such as those of many half-lives ago, count for as little of a period.

    Parameters
    ----------
    source : MemorySource
        Whose clusters are the times of rows, as codes that ascend.
    influences : iterable of ndarray of shape (N,)
        Of rows on what is judged; only used if `time` has no length.
    time : InTime
        With the rows of a stretch; None: measured on the rows.
    """
    times, length, weight = source.rows.cluster, time.length, _unequal_weights(source)
    assert times is not None
    share = None if weight is None else row_shares(weight)
    if length is None:
        series = [*(influences if source.labelled else ()), *_label_residuals(source)]
        order = _latest_rows(times, share)
        length = dependence_length([values[order] for values in series], len(order))
    codes = stretches(times, length, share)
    half_life = "" if time.half_life is None else str(HalfLife.of(time.half_life))
    dependence = Dependence(
        length,
        int(codes.max()) + 1,
        _largest_inflation(source, codes, weight),
        source.n_rows if weight is None else int((weight > 0).sum()),
        user_length=time.length is not None,
        by_weight=weight is not None,
        half_life=half_life,
    )
    return source.map(lambda rows: replace(rows, cluster=codes, dependence=dependence))


def notes_in_time(source: Any, *, has_intervals: bool = True) -> Iterator[Note]:
    """Yield notes about the weights of rows in time, if they decay, and about what intervals rest on, if any do."""
    if not isinstance(source, MemorySource) or source.rows.dependence is None:
        return
    rows, dependence = source.rows, source.rows.dependence
    yield from dependence.describe_decay(rows.n_rows, rows.n_effective)
    if has_intervals:
        yield Note(NoteKind.DATA, dependence.describe())


def _unequal_weights(source: MemorySource) -> FloatArray | None:
    """Return the weights (N,) of rows with labels if they differ, and say how much rows matter; else None."""
    rows = source.rows
    if rows.weight is None or rows.repeats is not None:
        return None
    weight = rows.observed_weight
    positive = weight[weight > 0]
    return weight if len(positive) and positive.min() < positive.max() else None


def _latest_rows(times: IntArray, share: FloatArray | None) -> IntArray:
    """Return rows in the order of time: all, or as many of the latest as weighted rows count for."""
    order = np.argsort(times, kind="stable")
    if share is None:
        return order
    order = order[share[order] > 0]
    return order[-max(round(float(share.sum())), 2) :]


def dependence_length(series: Sequence[FloatArray], n_rows: int) -> int:
    """Return the length of time periods whose means of several series are nearly independent.

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
    least = int(max(1, round(n_rows ** (1 / 3)), round(n_rows / _MAX_STRETCHES)))
    n_frequencies = min(max(8, round(n_rows ** (2 / 3) / 2)), (n_rows - 1) // 2, _MAX_FREQUENCIES)
    powers = [power for power in (_power(values, n_frequencies) for values in series) if power is not None]
    if not powers:
        return least
    lag = _mean_lag(np.mean(powers, axis=0), n_rows)
    return max(min(round(_STRETCH_LAGS * lag), n_rows // _MIN_STRETCHES), least)


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
    if fit[best] < _MIN_LOG_LIKELIHOOD:  # noise alone has 0
        return 0.0
    a, phi = float(share[best[0], 0]), float(decay[best[1], 0])
    return a * 2 * phi / (1 - phi) ** 2 / (1 - a + a * (1 + phi) / (1 - phi))


def _label_residuals(source: MemorySource) -> Iterator[FloatArray]:
    """Yield the labels of each frequent class less their probabilities, (N,), summed over outputs."""
    rows = source.rows
    if not source.labelled or rows.codes is None or rows.codes.shape[1] > _MAX_OUTPUTS:
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
    order = np.argsort(-counts, kind="stable")[:_MAX_CLASSES]
    return [int(k) for k in order if counts[k] > 0]


def _label_counts(source: MemorySource) -> Iterator[FloatArray]:
    """Yield the number of labels of each of the most frequent classes in every row, (N,)."""
    if not source.labelled:
        return
    codes = source.rows.codes
    assert codes is not None
    for k in _frequent(source):
        yield (codes == k).sum(axis=1).astype(np.float64)


def _largest_inflation(source: MemorySource, codes: IntArray, weight: FloatArray | None) -> float:
    """Return how much more sums of labels vary than those of independent rows of equal weight, at least 1."""
    if weight is None:
        return max([1.0, *(_inflation(labels, codes) for labels in _label_counts(source))])
    counted = weight > 0
    weight = weight[counted] / weight[counted].mean()
    inflations = (_inflation(labels[counted], codes[counted], weight) for labels in _label_counts(source))
    return max([float(weight @ weight) / len(weight), *inflations])


def _inflation(values: FloatArray, codes: IntArray, weight: FloatArray | None = None) -> float:
    """How much more the sums of values by stretch vary than those of independent rows; weights have mean 1."""
    values = values - np.average(values, weights=weight)
    weighted = values if weight is None else values * weight
    squares = float(values @ weighted)
    if squares <= 0:
        return 1.0
    sums = np.bincount(codes, weighted)
    return float(sums @ sums) * len(sums) / max(len(sums) - 1, 1) / squares
