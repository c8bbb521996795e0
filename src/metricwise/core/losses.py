"""Loss tensors and their structure.

``L[m, i, j]`` is the loss of predicting class j where class i is true, in one of two forms. Must not know metrics, data
or solvers.

* *full*: the score of class j is ``sum_i L[i, j] * eta_i``, summed over i = 0..K-1 in that order, in float64;
* *diagonal plus offset*: the score of class j is ``d_j * eta_j + v_j * s`` with s the sum of the row, which is 1
  up to rounding. Without s the two forms would decide rounded probabilities differently.

Terms that depend on the true class alone (``u_i``) shift all scores of a row equally and are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

# Entries of A and B are sums of a few numbers of order one: what differs by less than this is rounding.
_STRUCTURE_TOL = 1e-13


def diagonal_form(tensor: ArrayLike) -> tuple[FloatArray, FloatArray] | None:
    """Write ``L[i, j] = d_j [i = j] + u_i + v_j`` where that is possible.

    Parameters
    ----------
    tensor : array-like of shape (..., K, K)
        Matrices; the form is returned only if every one of them has it.

    Returns
    -------
    (diagonal, offset) : tuple of ndarray of shape (..., K), or None

    See Also
    --------
    Loss : A loss with its structure.

    Examples
    --------
    >>> from metricwise.core.losses import diagonal_form
    >>> diagonal_form([[-2.0, 1.0, 3.0], [0.0, -1.0, 3.0], [0.0, 1.0, 1.0]])
    (array([-2., -2., -2.]), array([0., 1., 3.]))
    """
    tensor = np.asarray(tensor, dtype=np.float64)
    k = tensor.shape[-1]
    if k == 1:
        return tensor[..., 0, :].copy(), np.zeros(tensor.shape[:-1])
    if k == 2:  # always possible, and without an offset, so that equal columns tie exactly
        wrong = tensor[..., [0, 1], [1, 0]]
        return tensor[..., [0, 1], [0, 1]] - wrong, np.zeros(tensor.shape[:-1])
    rows = np.zeros(tensor.shape[:-1])
    offset = np.empty(tensor.shape[:-1])
    offset[..., 1:] = tensor[..., 0, 1:]
    rows[..., 1] = tensor[..., 1, 2] - tensor[..., 0, 2]
    rows[..., 2:] = tensor[..., 2:, 1] - tensor[..., None, 0, 1]
    offset[..., 0] = tensor[..., 1, 0] - rows[..., 1]
    rest = tensor - rows[..., :, None]
    rest -= offset[..., None, :]
    diagonal = rest.diagonal(0, -2, -1).copy()
    if np.count_nonzero(rest) > np.count_nonzero(diagonal):  # no exact form; one up to rounding?
        scale = np.abs(tensor).max(axis=(-2, -1), keepdims=True, initial=0.0)
        if (np.abs(rest * (1 - np.eye(k))) > _STRUCTURE_TOL * scale).any():
            return None
    return diagonal, offset


@dataclass(frozen=True, eq=False)
class Loss:
    """Loss of a weighted rule: for one output or shared by all (leading size 1), or one per output (M).

    Parameters
    ----------
    full : ndarray of shape (1 or M, K, K), optional
        ``L[m, i, j]``; give this or `diagonal` and `offset`.
    diagonal, offset : ndarray of shape (1 or M, K), optional
        ``d_j`` and ``v_j``.

    See Also
    --------
    diagonal_form : Find the diagonal form.
    metricwise.WeightedRule : The rule of a loss.

    Examples
    --------
    >>> from metricwise.core.losses import Loss
    >>> Loss.argmax(3)
    Loss(diagonal=[[-1.0, -1.0, -1.0]], offset=[[0.0, 0.0, 0.0]])
    >>> Loss.from_tensor([[0.0, 2.0], [1.0, 0.0]]).is_diagonal
    True
    """

    full: FloatArray | None = None
    diagonal: FloatArray | None = None
    offset: FloatArray | None = None

    @classmethod
    def argmax(cls, n_classes: int) -> Loss:
        """Return the loss whose rule is argmax: always the same object, so that oracles know it again."""
        return _argmax(n_classes)

    @classmethod
    def from_tensor(cls, tensor: ArrayLike) -> Loss:
        """Return the loss for ``L`` of shape (K, K) or (M, K, K), diagonal plus offset where it has that form."""
        tensor = np.array(tensor, dtype=np.float64, ndmin=3)
        form = diagonal_form(tensor)
        if form is None:
            return cls(full=tensor)
        return cls(diagonal=form[0], offset=form[1])

    @property
    def is_diagonal(self) -> bool:
        """Whether scores cost O(K) instead of O(K^2)."""
        return self.full is None

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """The bare arrays that kernels take: ``(full,)`` or ``(diagonal, offset)``."""
        if self.full is not None:
            return (self.full,)
        assert self.diagonal is not None and self.offset is not None
        return (self.diagonal, self.offset)

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.arrays[0].shape[-1])

    @property
    def n_outputs(self) -> int:
        """1 for a shared loss, else M."""
        return int(self.arrays[0].shape[0])

    def tensor(self) -> FloatArray:
        """Return the loss as an array of shape (1 or M, K, K)."""
        if self.full is not None:
            return self.full
        diagonal, offset = self.arrays
        return diagonal[:, :, None] * np.eye(self.n_classes) + offset[:, None, :]

    def map(self, function: Any, *others: Loss) -> Loss:
        """Combine losses of one structure array by array: every form is linear in its arrays."""
        combined = [function(*arrays) for arrays in zip(self.arrays, *(o.arrays for o in others), strict=True)]
        if self.full is not None:
            return Loss(full=combined[0])
        return Loss(diagonal=combined[0], offset=combined[1])

    def output(self, m: int) -> Loss:
        """Return the loss of output m."""
        return self.map(lambda a: a[m : m + 1] if len(a) > 1 else a)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Loss) or len(self.arrays) != len(other.arrays):
            return False
        return all(np.array_equal(a, b) for a, b in zip(self.arrays, other.arrays, strict=True))

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content

    def __repr__(self) -> str:
        names = ("full",) if self.full is not None else ("diagonal", "offset")
        return f"Loss({', '.join(f'{n}={a.tolist()}' for n, a in zip(names, self.arrays, strict=True))})"


@cache
def _argmax(n_classes: int) -> Loss:
    diagonal, offset = -np.ones((1, n_classes)), np.zeros((1, n_classes))
    for array in (diagonal, offset):
        array.setflags(write=False)
    return Loss(diagonal=diagonal, offset=offset)
