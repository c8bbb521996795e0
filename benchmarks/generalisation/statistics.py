"""The tests of the study: is a method worse than argmax beyond what the splits can explain?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["average_ranks", "holm", "p_below_zero"]

FloatArray = NDArray[np.float64]


def p_below_zero(differences: ArrayLike, test_share: float) -> float:
    """One-sided p-value of a negative mean over random splits: the corrected resampled t-test.

    Parameters
    ----------
    differences : array-like of shape (J,)
        One per split.
    test_share : float
        Held-out rows over training rows (Nadeau and Bengio, 2003); 0 for independent draws, the plain t-test.
    """
    from scipy.stats import t

    x = np.asarray(differences, dtype=np.float64)
    spread = float(np.var(x, ddof=1))
    if spread == 0.0:
        return 1.0 if x.mean() >= 0 else 0.0
    return float(t.cdf(x.mean() / np.sqrt((1 / len(x) + test_share) * spread), df=len(x) - 1))


def holm(p_values: ArrayLike) -> FloatArray:
    """Holm's adjusted p-values."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    out = np.empty_like(p)
    out[order] = np.minimum(stepped, 1.0)
    return out


def average_ranks(values: ArrayLike) -> FloatArray:
    """Mean rank of each column over the rows; 1 is best, ties share."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(-np.asarray(values, dtype=np.float64), axis=1).mean(axis=0))
