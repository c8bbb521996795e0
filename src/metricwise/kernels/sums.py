"""Running sums that vanish where they should."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def sums_to_zero(start: float | FloatArray, change: FloatArray) -> FloatArray:
    """Return ``start, start + change[0], ...``, of which the last is known to be 0 but for rounding.

    Each is added up from the end that has less to add. Added up from the start alone, what is left when the last row
    has gone is rounding, and a ratio of two such sums is any number.

    Parameters
    ----------
    start : float, or ndarray of shape (...)
    change : ndarray of shape (..., T)

    Returns
    -------
    ndarray of shape (..., T + 1)
    """
    first = np.asarray(start, dtype=np.float64)[..., None]
    ahead = np.cumsum(np.concatenate([first, change], axis=-1), axis=-1)
    behind = _left(change)
    size = np.abs(change)
    nearer = np.cumsum(np.concatenate([np.abs(first), size], axis=-1), axis=-1) <= _left(size)
    return np.where(nearer, ahead, 0.0 - behind)


def _left(change: FloatArray) -> FloatArray:
    """Sums of the changes that are still to come, the last of none."""
    return np.concatenate(
        [np.cumsum(change[..., ::-1], axis=-1)[..., ::-1], np.zeros((*change.shape[:-1], 1))], axis=-1
    )
