"""The log-partition function of the NumPy twins: what the likelihood of a link is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

_BATCH = 1 << 17  # logits of outputs that are summed together: what is read stays in cache
_ROOM = 1 << 21  # numbers that are held beside the logits: with very many classes, few rows at a time
_WIDE = 128


def relative_logits(eta: NDArray[Any], outputs: IntArray, n_classes: int, floor: float) -> FloatArray:
    """Return ``log(eta_j / eta_0)`` of some outputs, of their classes j = 1, ..., n_classes - 1.

    Parameters
    ----------
    eta : ndarray of shape (N, M, K) or (N, M)
    outputs : ndarray of shape (B,), int
    n_classes : int
    floor : float
        Smaller probabilities count as this; 0: `eta` holds logits, (N, M) arrays log-odds of class 1.

    Returns
    -------
    ndarray of shape (B, n_classes - 1, N)
        The twins agree to rounding.
    """
    if eta.ndim == 2:
        positive = eta[:, outputs].T.astype(np.float64)[:, None]
        if floor == 0.0:
            return positive
        return np.log(np.maximum(positive, floor)) - np.log(np.maximum(1.0 - positive, floor))
    by_class = np.ascontiguousarray(np.moveaxis(eta[:, outputs, :n_classes], 0, 2), dtype=np.float64)
    if floor > 0.0:
        np.log(np.maximum(by_class, floor, out=by_class), out=by_class)
    by_class[:, 1:] -= by_class[:, :1]
    return np.ascontiguousarray(by_class[:, 1:])


def log_partition(
    logits: FloatArray,
    weight: FloatArray,
    taken: BoolArray | None,
    jobs: IntArray,
    theta: FloatArray,
    shown: BoolArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum the log-partition function over rows, with gradient and Hessian, for J parameters of k numbers each.

    With theta = (t, b_1, ..., b_{k-1}), b_0 = 0 and logits z relative to class 0, so that z_0 = 0, it is

        sum_n w_n log sum_j exp(t z_nj + b_j)

    over the rows n that are taken and the classes j that are shown. Logits are shared: jobs of one output differ in the
    rows that they take, and no row is copied for them.

    Parameters
    ----------
    logits : ndarray of shape (B, k - 1, N), float64, contiguous
        Of B outputs, finite.
    weight : ndarray of shape (B, N), float64, contiguous
        Non-negative; rows of weight 0 are left out.
    taken : bool ndarray of shape (R, N), contiguous, or None
        Rows of each resample; None for all rows, and R = 1.
    jobs : ndarray of shape (J, 2), intp, contiguous
        Resample and output that each theta belongs to.
    theta : ndarray of shape (J, k), float64, contiguous
    shown : bool ndarray of shape (J, k), contiguous
        Classes that are summed over; at least one.

    Returns
    -------
    value : ndarray of shape (J,)
    gradient : ndarray of shape (J, k)
    hessian : ndarray of shape (J, k, k)
        The twins agree to rounding, not to the bit. Of more than 128 classes the Hessian is summed in single precision.
    """
    n_jobs, k = theta.shape
    value, gradient = np.zeros(n_jobs), np.zeros((n_jobs, k))
    hessian = np.zeros((n_jobs, k, k))
    for resample in np.unique(jobs[:, 0]):
        rows = None if taken is None else np.flatnonzero(taken[resample])
        mine = np.flatnonzero(jobs[:, 0] == resample)
        step = max(1, _BATCH // (max(logits.shape[2], 1) * (k - 1)))
        for start in range(0, len(mine), step):
            some = mine[start : start + step]
            sums = _of_rows(logits, weight, rows, jobs[some, 1], theta[some], shown[some])
            value[some], gradient[some], hessian[some] = sums
    return value, gradient, hessian


def _of_rows(
    logits: FloatArray,
    weight: FloatArray,
    rows: IntArray | None,
    outputs: IntArray,
    theta: FloatArray,
    shown: BoolArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum over some of the rows, few enough at a time that little is held beside the logits."""
    n_outputs, k = theta.shape
    value, gradient = np.zeros(n_outputs), np.zeros((n_outputs, k))
    hessian = np.zeros((n_outputs, k, k))
    n_rows = logits.shape[2] if rows is None else len(rows)
    step = max(1, _ROOM // (n_outputs * (k - 1)))
    for start in range(0, n_rows, step):
        if rows is None:
            z, w = logits[outputs, :, start : start + step], weight[outputs, start : start + step]
        else:
            some = rows[start : start + step]
            z, w = np.stack([logits[m][:, some] for m in outputs]), weight[outputs[:, None], some]
        value += _add(z, w, theta, shown, gradient, hessian)
    return value, gradient, hessian


def _add(
    logits: FloatArray,
    weight: FloatArray,
    theta: FloatArray,
    shown: BoolArray,
    gradient: FloatArray,
    hessian: FloatArray,
) -> FloatArray:
    """Add what rows (B, k - 1, n) add to gradient and Hessian; return what they add to the value."""
    p = logits * theta[:, :1, None]
    p += theta[:, 1:, None]
    if not shown.all():
        p[~shown[:, 1:]] = -np.inf
    first = np.where(shown[:, :1], 0.0, -np.inf)
    top = np.maximum(p.max(axis=1), first)
    p -= top[:, None]
    np.exp(p, out=p)
    total = p.sum(axis=1) + np.exp(first - top)
    p /= total[:, None]
    mean = (p * logits).sum(axis=1)
    weighted = p * weight[:, None]
    mass = weighted.sum(axis=2)
    gradient[:, 0] += (weight * mean).sum(axis=1)
    gradient[:, 1:] += mass
    others = np.arange(1, theta.shape[1])
    # Of very many classes in single precision: the step is corrected by the next gradient, which is exact.
    if len(others) > _WIDE:
        size = max(float(weight.max(initial=0.0)), np.finfo(float).tiny)  # weights may be of any size
        products = (weighted / size).astype(np.float32) @ p.astype(np.float32).transpose(0, 2, 1)
        hessian[:, 1:, 1:] -= np.multiply(products, size, dtype=np.float64)
    else:
        hessian[:, 1:, 1:] -= weighted @ p.transpose(0, 2, 1)
    hessian[:, others, others] += mass
    weighted *= logits - mean[:, None]
    cross = weighted.sum(axis=2)
    hessian[:, 0, 0] += (weighted * logits).sum(axis=(1, 2))
    hessian[:, 0, 1:] += cross
    hessian[:, 1:, 0] += cross
    return np.asarray((weight * (top + np.log(total))).sum(axis=1))
