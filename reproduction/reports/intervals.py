"""Intervals of differences over random splits.

Must not know what was measured.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["holds_zero", "interval_text", "paired_interval"]


def paired_interval(difference: NDArray[np.float64], *, test_over_train: float) -> tuple[float, float, float]:
    """Return mean and 95 % interval of a difference over random splits.

    Splits share rows, so that the usual variance of the mean is too small; it is corrected as by Nadeau and Bengio.

    Parameters
    ----------
    difference : ndarray of shape (splits,)
    test_over_train : float
        Rows of the test part over those of the training part.

    Returns
    -------
    mean, low, high : float

    References
    ----------
    .. [1] Nadeau, Bengio (2003), "Inference for the Generalization Error", Machine Learning 52.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.reports.intervals import paired_interval
    >>> [round(x, 3) for x in paired_interval(np.array([0.1, 0.2, 0.3, 0.2]), test_over_train=0.25)]
    [0.2, 0.016, 0.384]
    """
    from scipy.stats import t

    n = len(difference)
    mean = float(difference.mean())
    if n < 2:
        return mean, float("nan"), float("nan")
    error = float(difference.std(ddof=1)) * math.sqrt(1 / n + test_over_train)
    reach = float(t.ppf(0.975, n - 1)) * error
    return mean, mean - reach, mean + reach


def holds_zero(interval: tuple[float, float, float]) -> bool:
    """Return whether the interval of mean, low and high contains 0.

    Examples
    --------
    >>> from reproduction.reports.intervals import holds_zero
    >>> holds_zero((0.1, -0.1, 0.3)), holds_zero((0.1, 0.05, 0.15))
    (True, False)
    """
    _, low, high = interval
    return not (low > 0 or high < 0)


def interval_text(interval: tuple[float, float, float]) -> str:
    """Return mean, low and high as a cell of a table; of a single split the mean alone.

    Examples
    --------
    >>> from reproduction.reports.intervals import interval_text
    >>> interval_text((0.1, -0.1, 0.3))
    '+0.1000 [-0.1000, +0.3000]'
    """
    mean, low, high = interval
    if math.isnan(low):
        return f"{mean:+.4f}"
    return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"
