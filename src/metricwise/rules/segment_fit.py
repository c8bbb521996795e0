"""Fit of a calibration for each segment of the rows, shrunk towards that of all rows.

A segment has its own temperature and biases, with a normal prior about the common ones. The fits of all segments are
one batch of the Newton method of ``calibration_fit``, with sums over the rows of each segment. Must not know losses or
metrics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.inputs import MAX_LOGIT
from ..core.probabilities import Probabilities
from .calibration import TemperatureScaling
from .calibration_fit import MIN_TEMPERATURE, bound_rows, fit_link
from .calibration_penalty import Penalty

__all__ = ["SegmentFit", "SegmentLinks", "Shrinkage", "log_likelihood", "recalibrate_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

_FIXED_STRENGTH = 1e9  # of the penalty that holds temperatures to the common one, in rows


@dataclass(frozen=True)
class Shrinkage:
    """Standard deviations of segments about the calibration of all rows: the larger, the less they are shrunk.

    Parameters
    ----------
    bias : float
        Of the bias of a class at the mean row; that of the log-odds of two classes is larger by the root of two.
    scale : float, default=0.0
        Of the logarithm of the temperature; 0: all segments have the common one.
    """

    bias: float
    scale: float = 0.0

    def penalty(self, center: FloatArray) -> Penalty:
        """Return the penalty of the parameters (k,) of a segment."""
        scale_strength = self.scale**-2 if self.scale > 0 else _FIXED_STRENGTH
        return Penalty(center, self.bias**-2, of_scale=True, scale_strength=scale_strength)


@dataclass(frozen=True, eq=False)
class SegmentLinks:
    """The calibration of all rows, and that of each of S segments.

    Parameters
    ----------
    common : TemperatureScaling
        Of M outputs; of rows of other segments.
    temperature : ndarray of shape (S, M)
    bias : ndarray of shape (S, M, K)
    """

    common: TemperatureScaling
    temperature: FloatArray
    bias: FloatArray

    def links(self) -> list[TemperatureScaling]:
        """Return the link of each segment."""
        floor = self.common.floor
        return [TemperatureScaling(t, c, floor) for t, c in zip(self.temperature, self.bias, strict=True)]

    def of_rows(self, segment: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return temperatures (N, M) and biases (N, M, K) of rows; segments from S on have the common ones."""
        temperature = np.concatenate([self.temperature, self.common.temperature[None]])
        bias = np.concatenate([self.bias, self.common.bias[None]])
        place = np.minimum(segment, len(self.temperature))
        return temperature[place], bias[place]

    def apply(self, proba: Probabilities, segment: IntArray) -> Probabilities:
        """Return a recalibrated copy of rows, as numbers of the same kind: probabilities, or logits with their map."""
        return recalibrate_rows(proba, *self.of_rows(segment), self.common.floor)


def recalibrate_rows(proba: Probabilities, temperature: FloatArray, bias: FloatArray, floor: float) -> Probabilities:
    """Return a copy of rows behind a link of each row, (N, M) and (N, M, K), in blocks of the same shapes and dtypes.

    Logits become logits that their own map takes to the recalibrated probabilities.
    """
    blocks = []
    for block, span in proba.spans():
        t, c = temperature[:, span], bias[:, span]
        if proba.of_logits:
            assert proba.link is not None
            base = proba.link.part(span, c.shape[2])
            c = (c - base.bias) / base.temperature[:, None]
            t = t / base.temperature
        changed = _changed_logits(block, t, c) if proba.of_logits else _changed_proba(block, t, c, floor)
        n_classes = proba.n_classes[span]
        if changed.ndim == 3 and not proba.of_logits:
            changed *= np.arange(changed.shape[2]) < n_classes[:, None]
            changed /= changed.sum(axis=2, keepdims=True)
        blocks.append(changed.astype(block.dtype))
    return replace(proba, blocks=tuple(blocks))


def _changed_logits(block: NDArray[Any], t: FloatArray, c: FloatArray) -> FloatArray:
    """Return ``t * z + c``; a single column of log-odds has the difference of the two biases."""
    limit = MAX_LOGIT[block.dtype.itemsize]
    z = block.astype(np.float64)
    changed = t * z + (c[:, :, 1] - c[:, :, 0]) if block.ndim == 2 else t[:, :, None] * z + c[:, :, : block.shape[2]]
    return np.clip(changed, -limit, limit)


def _changed_proba(block: NDArray[Any], t: FloatArray, c: FloatArray, floor: float) -> FloatArray:
    """Return what is proportional to ``eta ** t * exp(c)``; a single column is divided by the sum of both."""
    eta = block.astype(np.float64)
    if block.ndim == 2:
        odds = np.log(np.maximum(eta, floor)) - np.log(np.maximum(1.0 - eta, floor))
        odds = t * odds + (c[:, :, 1] - c[:, :, 0])
        return np.asarray(np.exp(-np.logaddexp(0.0, -odds)))
    logits = t[:, :, None] * np.log(np.maximum(eta, floor)) + c[:, :, : block.shape[2]]
    return np.asarray(np.exp(logits - logits.max(axis=2, keepdims=True)))


class SegmentFit:
    """Rows that segments are fitted to, sorted by segment once for fits of any shrinkage.

    Parameters
    ----------
    proba : Probabilities
    codes : integer ndarray of shape (N, M)
        -1 where the label is missing.
    weight, frequency : ndarray of shape (N,), optional
        As in :func:`.fit_link`.
    segment : ndarray of shape (N,), int
        From 0 to S - 1; rows of larger codes count for the common link only.
    n_segments : int
        S.
    """

    def __init__(
        self,
        proba: Probabilities,
        codes: NDArray[Any],
        weight: FloatArray | None,
        frequency: FloatArray | None,
        segment: IntArray,
        n_segments: int,
    ) -> None:
        self.common = fit_link(proba, codes, weight, frequency=frequency)
        self._base = _map_of(proba, self.common.n_classes)
        self._n_segments = n_segments
        order = np.argsort(segment, kind="stable")
        sizes = np.bincount(segment, minlength=n_segments)[:n_segments]
        order = order[: int(sizes.sum())]  # without rows of other segments
        self._present = np.flatnonzero(sizes)
        sums = _Sums(sizes[self._present])
        numbers = bound_rows(proba, codes) if proba.of_logits else proba.recalibrated()
        weight, frequency = (None if values is None else values[order] for values in (weight, frequency))
        self._outputs: list[_OutputRows] = []
        for block, span in numbers.spans():
            for at, k in enumerate(proba.n_classes[span].tolist()):
                logits = kernels.relative_logits(block, np.array([at]), k, self.common.floor)[0][:, order]
                true = codes[order, span.start + at]
                self._outputs.append(_OutputRows.read(logits, true, weight, frequency, sums, proba.of_logits))
        self._starts: list[FloatArray | None] = [None] * len(self._outputs)

    def links(self, shrinkage: Shrinkage) -> SegmentLinks:
        """Return the links of all segments; those without rows have the common one."""
        (t_base, c_base), width = self._base, self.common.n_classes
        temperature = np.tile(self.common.temperature, (self._n_segments, 1))
        bias = np.tile(self.common.bias, (self._n_segments, 1, 1))
        for m, rows in enumerate(self._outputs):
            if rows.shown.sum() < 2:
                continue
            k = rows.n_classes
            t = self.common.temperature[m] / t_base[m]
            relative = self.common.bias[m] - t * c_base[m]
            center = np.append(t, relative[1:k] - relative[0] + t * rows.mean)
            likelihood = _SegmentLikelihood(rows, shrinkage.penalty(center))
            start = self._starts[m]
            start = np.tile(center, (len(self._present), 1)) if start is None else start
            theta = kernels.minimise(likelihood.evaluate, start, likelihood.fixed, likelihood.least)
            self._starts[m] = theta
            changed = np.zeros((len(theta), width))
            changed[:, 1:k] = theta[:, 1:] - theta[:, :1] * rows.mean
            changed[:, :k] -= changed[:, :k].mean(axis=1, keepdims=True)
            temperature[self._present, m] = theta[:, 0] * t_base[m]
            bias[self._present, m] = theta[:, :1] * c_base[m] + changed
        return SegmentLinks(self.common, temperature, bias)


def _map_of(proba: Probabilities, width: int) -> tuple[FloatArray, FloatArray]:
    """Return temperature (M,) and bias (M, K) of the map that logits have; of probabilities 1 and 0."""
    if not proba.of_logits:
        return np.ones(proba.n_outputs), np.zeros((proba.n_outputs, width))
    assert proba.link is not None
    base = proba.link.part(slice(None), width)
    return base.temperature, base.bias


class _Sums:
    """Sums over the rows of each of S segments, which follow one another."""

    def __init__(self, sizes: IntArray) -> None:
        self.sizes = sizes
        self.first = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)

    def __call__(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(values, self.first))

    def rows(self, segments: IntArray) -> IntArray:
        """Return the rows of some segments, one segment after the other."""
        sizes = self.sizes[segments]
        ends = np.cumsum(sizes)
        return np.asarray(np.arange(ends[-1]) + np.repeat(self.first[segments] - (ends - sizes), sizes))


@dataclass(frozen=True, eq=False)
class _OutputRows:
    """The rows of one output of k classes, sorted by segment.

    logits : (k - 1, N), relative to class 0 and to their mean; mean : (k - 1,); true : (N,), 0 where the label is
    missing; weight : (N,), 0 there; shown : (k,), classes that some label has; least : smallest temperature.
    """

    logits: FloatArray
    mean: FloatArray
    true: IntArray
    weight: FloatArray
    shown: BoolArray
    least: float
    sums: _Sums

    @classmethod
    def read(
        cls,
        logits: FloatArray,
        codes: NDArray[Any],
        weight: FloatArray | None,
        frequency: FloatArray | None,
        sums: _Sums,
        of_logits: bool,
    ) -> _OutputRows:
        observed = (codes >= 0).astype(np.float64)
        each = observed if weight is None else observed * weight
        mean = logits @ each / max(float(each.sum()), np.finfo(float).tiny)
        true = np.maximum(codes, 0).astype(np.intp)
        shown = np.bincount(true, each, minlength=len(logits) + 1) > 0
        least = MIN_TEMPERATURE
        if of_logits:
            farthest = max(float(np.abs(logits).max(initial=0.0)), 1e-300)
            least *= min(-np.log(TemperatureScaling.floor) / farthest, 1.0)
        if weight is not None:  # in effective rows of each segment
            squares = sums(each * (weight if frequency is None else weight / frequency))
            scale = np.divide(sums(each), squares, out=np.zeros_like(squares), where=squares > 0)
            each = each * np.repeat(scale, sums.sizes)
        return cls(logits - mean[:, None], mean, true, each, shown, least, sums)

    @property
    def n_classes(self) -> int:
        return len(self.logits) + 1

    def take(self, segments: IntArray) -> _OutputRows:
        """Return the rows of some segments."""
        if len(segments) == len(self.sums.sizes):
            return self
        rows, sums = self.sums.rows(segments), _Sums(self.sums.sizes[segments])
        return replace(self, logits=self.logits[:, rows], true=self.true[rows], weight=self.weight[rows], sums=sums)


@dataclass(frozen=True, eq=False)
class _SegmentLikelihood:
    """The penalised likelihood of the segments of one output; see :func:`metricwise.kernels.minimise`.

    A segment of one class only, or without labels, still has the prior: no fit is fixed.
    """

    rows: _OutputRows
    penalty: Penalty

    @property
    def fixed(self) -> BoolArray:
        return np.zeros(len(self.rows.sums.sizes), dtype=bool)

    @property
    def least(self) -> FloatArray:
        return np.full(len(self.rows.sums.sizes), min(self.rows.least, float(self.penalty.center[0])))

    def evaluate(self, theta: FloatArray, fits: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value (F,), gradient (F, k) and Hessian (F, k, k) of some segments."""
        rows = self.rows.take(fits)
        z, weight, sums = rows.logits, rows.weight, rows.sums
        each = np.repeat(theta, sums.sizes, axis=0).T
        scores = each[0] * z + each[1:]
        p, log_total = _softmax(scores, rows.shown)
        true = np.arange(1, rows.n_classes)[:, None] == rows.true
        value = sums(weight * (log_total - _sum_of_classes(true, scores)))
        slopes = [_sum_of_classes(p, z) - _sum_of_classes(true, z), *(p - true.astype(np.float64))]
        gradient = np.stack([sums(weight * slope) for slope in slopes], axis=1)
        hessian = _hessian(z, p, weight * p, sums)
        self.penalty.add(theta, value, gradient, hessian)
        return value, gradient, hessian


def _hessian(z: FloatArray, p: FloatArray, weighted: FloatArray, sums: _Sums) -> FloatArray:
    """Return the Hessians (S, k, k) of the logarithms of totals, of probabilities and weighted ones (k - 1, N)."""
    away = z - _sum_of_classes(p, z)
    k = len(z) + 1
    hessian = np.empty((len(sums.sizes), k, k))
    hessian[:, 0, 0] = sums(_sum_of_classes(weighted * z, away))
    for j in range(k - 1):
        hessian[:, 0, j + 1] = hessian[:, j + 1, 0] = sums(weighted[j] * away[j])
        for i in range(j + 1):
            covariance = sums(weighted[j] * (float(i == j) - p[i]))
            hessian[:, i + 1, j + 1] = hessian[:, j + 1, i + 1] = covariance
    return hessian


def _sum_of_classes(first: NDArray[Any], second: NDArray[Any]) -> FloatArray:
    """Return the sums (N,) of products over classes."""
    return np.asarray(np.einsum("jn,jn->n", first, second, dtype=np.float64))


def _softmax(scores: FloatArray, shown: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities (k - 1, N) of all classes but class 0, whose score is 0, and the log of the total.

    Only classes that some label shows have any.
    """
    top = np.maximum(scores.max(axis=0), 0.0)
    powers = np.exp(scores - top) * shown[1:, None]
    total = shown[0] * np.exp(-top) + powers.sum(axis=0)
    return powers / total, np.log(total) + top


def log_likelihood(proba: Probabilities, codes: NDArray[Any]) -> FloatArray:
    """Return the log-likelihood (N, M) of the labels under recalibrated rows, 0 where there is none."""
    out = np.zeros(codes.shape)
    for block, span in proba.recalibrated().spans():
        for m in range(span.start, span.stop):
            eta = block[:, m - span.start].astype(np.float64)
            true = codes[:, m]
            if eta.ndim == 1:
                likelihood = np.where(true == 1, eta, 1.0 - eta)
            else:
                likelihood = np.take_along_axis(eta, np.maximum(true, 0).astype(np.intp)[:, None], axis=1)[:, 0]
            out[:, m] = np.where(true >= 0, np.log(np.maximum(likelihood, np.finfo(float).tiny)), 0.0)
    return out
