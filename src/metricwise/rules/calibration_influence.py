"""Sampling error of a fitted calibration: the influence of every labelled row on it.

Must not know losses or metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.cached import cached_property
from ..core.matrices import row_maxima, row_sums
from ..core.probabilities import Probabilities
from .calibration import TemperatureScaling
from .calibration_fit import SHRINKAGE, bound_rows
from .stored_calibration import StoredCalibration

__all__ = ["Influence", "calibration_influence", "softmax_of", "stored_calibration"]

FloatArray = NDArray[np.float64]

_MAX_COVARIANCE_CLASSES = 30  # of an output: beyond, a rule file would be mostly covariances
_MAX_STORED_ENTRIES = 100_000  # of the covariances of all outputs together, for the same reason
_MAX_COVARIANCE_ENTRIES = 1 << 20  # rows x outputs x classes that covariances are summed over; of more, some rows


def stored_calibration(rows: Any, link: TemperatureScaling, class_weights: FloatArray) -> StoredCalibration:
    """Return what a rule keeps of labelled rows behind a link that was fitted to them.

    Parameters
    ----------
    rows : Rows
        With labels; a sample if there are many.
    link : TemperatureScaling
    class_weights : ndarray of shape (M, K)
        Weight of the labels of each class among all rows.
    """
    total = class_weights.sum(axis=1, keepdims=True)
    shares = np.divide(class_weights, total, out=np.zeros_like(class_weights), where=total > 0)
    observed = rows.codes >= 0
    counted = np.ones(rows.n_rows) if rows.frequency is None else rows.frequency
    weight = counted if rows.weight is None else rows.weight
    sums, squares = weight @ observed, (weight**2 / counted) @ observed
    n_rows = np.divide(sums**2, squares, out=np.zeros_like(sums), where=squares > 0)
    return StoredCalibration(link, shares, n_rows, tuple(_covariances(rows, link)))


def _covariances(rows: Any, link: TemperatureScaling) -> list[FloatArray | None]:
    """Return the sandwich covariance of each output; None where it is not kept."""
    proba = rows.proba
    is_small = int((proba.n_classes**2).sum()) <= _MAX_STORED_ENTRIES
    kept = is_small & (proba.n_classes <= _MAX_COVARIANCE_CLASSES)
    if not kept.any():
        return [None] * proba.n_outputs
    n_entries = max(proba.n_rows * proba.n_outputs * min(proba.width, _MAX_COVARIANCE_CLASSES), 1)
    step = -(-n_entries // _MAX_COVARIANCE_ENTRIES)
    some = rows
    if step > 1:
        order = np.random.default_rng(0).permutation(rows.n_rows)
        some = rows.take(np.sort(order[: -(-rows.n_rows // step)]))
    covariances: list[FloatArray | None] = []
    for m, is_kept in enumerate(kept.tolist()):
        influence = calibration_influence(some, link, m) if is_kept else None
        covariances.append(None if influence is None else influence.covariance_of_ratios / step)
    return covariances


@dataclass(frozen=True, eq=False)
class Influence:
    """Influence of each labelled row on the fitted calibration of one output.

    Parameters
    ----------
    of_parameters : ndarray of shape (N, K)
        On ``(t, b_1, ..., b_{K-1})`` of the link, ``b_j = c_j - c_0``.
    of_log_shares : ndarray of shape (N, K)
        On the logarithm of the share of each class.
    scale : ndarray of shape (N,)
        Root of the number of independent rows that a row stands for.
    cluster : ndarray of shape (N,) or None
        Rows that belong together.
    """

    of_parameters: FloatArray
    of_log_shares: FloatArray
    scale: FloatArray
    cluster: NDArray[np.intp] | None

    @cached_property
    def covariance_of_ratios(self) -> FloatArray:
        """Covariance of t and of the biases less the logarithms of shares, (K, K)."""
        on_log_shares = self.of_log_shares.T  # class by class, as rows are read
        on_ratios = np.subtract(on_log_shares, on_log_shares[0])
        np.subtract(self.of_parameters.T, on_ratios, out=on_ratios)
        on_ratios /= self.scale
        if self.cluster is not None:
            _, codes = np.unique(self.cluster, return_inverse=True)
            on_ratios = np.stack([np.bincount(codes, column) for column in on_ratios])
        return np.asarray(on_ratios @ on_ratios.T)


def calibration_influence(rows: Any, link: TemperatureScaling, m: int) -> Influence | None:
    """Return the influence of rows on the calibration of output m; None if there is nothing to learn from."""
    codes, k = rows.codes[:, m], int(rows.proba.n_classes[m])
    counted = np.ones(rows.n_rows) if rows.frequency is None else rows.frequency
    weight = np.where(codes >= 0, counted if rows.weight is None else rows.weight, 0.0)
    by_class = np.bincount(codes[codes >= 0], weight[codes >= 0], minlength=k)
    shown = by_class > 0
    if shown.sum() < 2:
        return None
    z, base_t, base_b = _fitted_logits(rows.proba, codes, link, m)
    ratio = float(link.temperature[m]) / base_t
    eta = _softmax(ratio * z, link.bias[m, :k] - link.bias[m, 0] - ratio * base_b, shown)
    true = codes == np.arange(k)[:, None]
    scale = weight.sum() / max(float((weight**2 / counted).sum()), np.finfo(float).tiny)  # to effective rows
    effective = weight * scale
    information = _information(z, eta, effective) + SHRINKAGE * _penalty_matrix(k)
    score = np.subtract(true, eta, out=eta)  # here and below in place: each of these arrays is as large as the rows
    score[0] = _row_sum(score[1:], z)
    score *= effective
    del z, eta
    on_parameters = np.linalg.inv(information) @ score
    del score
    on_parameters[1:] += on_parameters[0] * base_b[1:, None]  # from logits behind their map to the numbers themselves
    on_parameters[0] *= base_t
    safe = np.where(shown, by_class, 1.0)
    on_log_shares = true / safe[:, None]
    on_log_shares -= (shown / weight.sum())[:, None]
    on_log_shares *= shown[:, None]
    on_log_shares *= weight
    independent = np.ones(rows.n_rows) if rows.repeats is None else np.maximum(rows.repeats, 1.0)
    return Influence(on_parameters.T, on_log_shares.T, np.sqrt(independent), rows.cluster)


def _fitted_logits(
    proba: Probabilities, codes: NDArray[Any], link: TemperatureScaling, m: int
) -> tuple[FloatArray, float, FloatArray]:
    """Return the logits (K - 1, N) of output m that its calibration is fitted to, relative to the first class.

    Logits are behind their own map ``base_t * z + base_b``, which is returned too, and those far out are bounded.
    """
    k = int(proba.n_classes[m])
    single = proba.of_outputs(np.array([m]))
    base_t, base_b = 1.0, np.zeros(k)
    if proba.of_logits:
        assert single.link is not None
        base_t, base_b = float(single.link.temperature[0]), single.link.bias[0, :k] - single.link.bias[0, 0]
        single = bound_rows(single, codes[:, None])
    return kernels.relative_logits(single.blocks[0], np.zeros(1, dtype=np.intp), k, link.floor)[0], base_t, base_b


def softmax_of(logits: FloatArray, shown: NDArray[np.bool_]) -> FloatArray:
    """Return the softmax (N, K) of logits over the classes that are shown, (K,); 0 for the others."""
    logits = np.where(shown, logits, -np.inf)
    eta = np.exp(logits - row_maxima(logits)[:, None])
    return np.asarray(eta / row_sums(eta)[:, None])


def _softmax(z: FloatArray, b: FloatArray, shown: NDArray[np.bool_]) -> FloatArray:
    """Return the same (K, N), class by class, of logits ``z + b`` with 0 for z of the first class."""
    eta = np.empty((len(b), z.shape[1]))
    eta[0] = b[0]
    np.add(z, b[1:, None], out=eta[1:])
    eta[~shown] = -np.inf
    eta -= eta.max(axis=0)
    np.exp(eta, out=eta)
    eta /= eta.sum(axis=0)
    return eta


def _information(z: FloatArray, eta: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the Hessian (K, K) of minus the log-likelihood in (t, b_1, ..., b_{K-1})."""
    weighted = weight * eta[1:]
    result = np.empty((len(eta), len(eta)))
    result[1:, 1:] = np.diag(weighted.sum(axis=1)) - weighted @ eta[1:].T
    moment = z - _row_sum(eta[1:], z)
    moment *= weighted
    result[0, 1:] = result[1:, 0] = moment.sum(axis=1)
    moment *= z
    result[0, 0] = moment.sum()
    return result


def _row_sum(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the sums (N,) over classes of products (K, N), without an array of these."""
    total: FloatArray = first[0] * second[0]
    for one, other in zip(first[1:], second[1:], strict=True):
        total += one * other
    return total


def _penalty_matrix(k: int) -> FloatArray:
    """Return the quadratic form of the shrinkage in (t, b_1, ..., b_{K-1}) of one output."""
    form = np.eye(k) - 1.0 / k
    form[0] = form[:, 0] = 0.0
    form[0, 0] = 1.0
    return form
