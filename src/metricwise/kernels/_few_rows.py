"""Decisions about few rows of one output, checked and taken in one call: the NumPy twin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _numpy
from ._block import Block, IntArray, LinkArrays, LossArrays

MAX_FEW_ROWS = 128  # one tile of the compiled twin
_PLAIN = (np.dtype(np.float32), np.dtype(np.float64))


class RowDecider:
    """Checks probabilities of one output and decides about them, with the bits of `check_rows` and `decide`.

    Parameters
    ----------
    loss : tuple of ndarray
    link : LinkArrays or None
        Of probabilities.
    n_classes : int
    tolerance : float
        How far rows may be from summing to 1.
    """

    def __init__(self, loss: LossArrays, link: LinkArrays | None, n_classes: int, tolerance: float) -> None:
        self._loss, self._link, self._tolerance = loss, link, tolerance
        self._n_classes = np.array([n_classes], dtype=np.intp)

    def decide(self, eta: NDArray[Any]) -> IntArray | None:
        """Return codes (N,), or None where the rows are too many, of another kind, or no probabilities.

        Parameters
        ----------
        eta : ndarray of shape (N, K), or (N,) with the probability of class 1
            None is returned for all but native float32 and float64.
        """
        if eta.ndim not in (1, 2) or not 0 < len(eta) <= MAX_FEW_ROWS or eta.dtype not in _PLAIN:
            return None
        if self._n_classes[0] != (2 if eta.ndim == 1 else eta.shape[1]):
            return None
        rows = eta[:, None]
        if not _numpy.check_rows(rows, self._n_classes, self._tolerance):
            return None
        return _numpy.decide(Block(rows, self._n_classes, link=self._link), self._loss)[:, 0]
