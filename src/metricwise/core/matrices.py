"""Operations on stacks of confusion matrices (..., K, K) and of class shares (..., K).

Must not know metrics.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InvalidParameter

__all__ = [
    "EMPTY",
    "FloatArray",
    "as_shares",
    "check_matrix",
    "check_size",
    "diagonal",
    "diagonal_plus_columns",
    "divide",
    "inner",
    "prior_limits",
    "quotient",
    "with_column",
]

FloatArray = NDArray[np.float64]

EMPTY = 1e-14  # relative to the largest entry of B, a denominator below this is an empty sum plus rounding
_PAIRWISE = 8  # numbers from which on NumPy sums neighbours in pairs, and not one after the other


def inner(weights: FloatArray, confusion: FloatArray) -> FloatArray:
    """Return <A, C> over the last two axes."""
    return cast(FloatArray, np.add.reduce(weights * confusion, axis=(-2, -1)))


def quotient(
    numerator: FloatArray, denominator: FloatArray, scale: float, zero_division: float | None = None
) -> FloatArray:
    """Return numerator / denominator, or `zero_division` where the denominator is empty relative to `scale`."""
    empty = np.abs(denominator) <= EMPTY * scale
    if not empty.any():
        return np.asarray(numerator / denominator)
    return np.where(empty, zero_division or 0.0, numerator / np.where(empty, 1.0, denominator))


def as_shares(priors: ArrayLike) -> FloatArray:
    """Return priors as float64."""
    return np.asarray(priors, dtype=np.float64)


def divide(numerator: FloatArray, denominator: FloatArray, otherwise: float = 0.0) -> FloatArray:
    """Divide, with `otherwise` where the denominator is an empty sum of shares (or the rounding left of one)."""
    empty = np.abs(denominator) <= EMPTY
    if not empty.any():
        return np.asarray(numerator / denominator)
    return np.where(empty, otherwise, numerator / np.where(empty, 1.0, denominator))


def diagonal(confusion: FloatArray) -> FloatArray:
    """Return the diagonal of each matrix of a stack, shape (..., K)."""
    return np.diagonal(confusion, axis1=-2, axis2=-1)


def diagonal_plus_columns(by_hit: FloatArray, by_column: FloatArray | None = None) -> FloatArray:
    """Return matrices (..., K, K) with values (..., K) on the diagonal, plus a constant (..., K) per column."""
    matrix = by_hit[..., None] * np.eye(by_hit.shape[-1])
    return matrix if by_column is None else matrix + by_column[..., None, :]


def with_column(matrix: FloatArray, column: FloatArray | float) -> FloatArray:
    """Return matrices (..., K + 1, K + 1) with the column of one more decision, which is no class.

    The last row is multiplied by 0 in <A, C>. It is filled such that a matrix that is diagonal plus a constant per row
    and per column stays one, because the scores of such matrices cost O(K).
    """
    k = matrix.shape[-1]
    out = np.zeros((*matrix.shape[:-2], k + 1, k + 1))
    out[..., :k, :k] = matrix
    out[..., :k, k] = column
    columns = np.arange(k)
    other = (columns + 1) % k
    out[..., k, :k] = matrix[..., other, columns] - out[..., other, k]
    return out


def row_sums(array: FloatArray) -> FloatArray:
    """Return the sums over the last axis, class by class where there are few: the same bits, ten times as fast."""
    k = array.shape[-1]
    if not 0 < k < _PAIRWISE:
        return np.asarray(array.sum(axis=-1))
    total = array[..., 0].copy()
    for j in range(1, k):
        total += array[..., j]
    return total


def row_maxima(array: FloatArray) -> FloatArray:
    """Return the largest number along the last axis, class by class where there are few, which is faster."""
    k = array.shape[-1]
    if not 0 < k < _PAIRWISE:
        return np.asarray(array.max(axis=-1))
    largest = array[..., 0].copy()
    for j in range(1, k):
        np.maximum(largest, array[..., j], out=largest)
    return largest


def with_extra(array: FloatArray, n_extra: int, axis: int = -1) -> FloatArray:
    """Return an array with zeros behind it along an axis, for decisions that are no class; itself if there are none."""
    if n_extra == 0:  # as nearly always: np.pad takes as long as ten operations on a small array
        return array
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, n_extra)
    return np.pad(array, widths)


def prior_limits(weights: FloatArray, priors: FloatArray) -> tuple[float, float]:
    """Return the smallest and largest <A, C> over all C with these row sums: each row goes to one column."""
    low = np.sum(priors * weights.min(axis=-1), axis=-1)
    high = np.sum(priors * weights.max(axis=-1), axis=-1)
    return (float(low.min()), float(high.max()))


def check_matrix(matrix: ArrayLike, parameter: str) -> FloatArray:
    """Return a matrix, or a stack, of finite numbers; refuse anything else."""
    try:
        array = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(parameter, "be a (K, K) array of numbers", repr(matrix)) from None
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise InvalidParameter(parameter, "have shape (K, K)", array.shape)
    if not np.isfinite(array).all():
        raise InvalidParameter(parameter, "be finite", "NaN or infinity")
    return array


def check_size(matrix: FloatArray, n_classes: int, parameter: str) -> None:
    """Refuse a matrix that is not one of K classes."""
    if matrix.shape[-1] != n_classes:
        raise InvalidParameter(
            parameter, f"have shape (K, K) with K = {n_classes}, the number of classes", matrix.shape[-2:]
        )
