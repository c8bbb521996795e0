"""Averages over outputs: micro-, macro- and instance-averaging as groupings of outputs.

The outputs of a group are pooled into one confusion matrix: micro-averaging has one group, macro-averaging one per
output. Solvers see groups only. Rows of an output that may follow different losses are *parts* of it, outputs here that
are pooled before anything else. Must not know which metric is averaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, shown

__all__ = ["AverageName", "Grouping", "check_average", "group_outputs"]

AverageName = Literal["micro", "macro", "instance"]
_NAMES = get_args(AverageName)


def check_average(average: Any) -> None:
    """Refuse an unknown average over outputs."""
    if not isinstance(average, str) or average not in _NAMES:
        raise InvalidParameter("average", "be 'micro', 'macro', 'instance' or None", shown(average))


@dataclass(frozen=True, eq=False)
class Grouping:
    """Which outputs are pooled into one confusion matrix, with what weights, and which share a loss.

    Parameters
    ----------
    group : ndarray of shape (M,), int
        Group of each output, -1 for an output that counts nowhere.
    share : ndarray of shape (M,)
        Weight of an output within its group; sums to 1 over a group.
    weight : ndarray of shape (G,)
        Weight of a group in the value; sums to 1.
    n_classes : ndarray of shape (G,), int
        Classes of each group.
    total : ndarray of shape (G,)
        Weight of the observed labels of each group, whatever its outputs count for.
    loss : ndarray of shape (M,), int, optional
        Which outputs follow one loss: those of one number. None: those of a group.
    least : bool, default=False
        Whether the value is that of the worst group, instead of the mean by their weights.
    """

    group: NDArray[np.intp]
    share: NDArray[np.float64]
    weight: NDArray[np.float64]
    n_classes: NDArray[np.intp]
    total: NDArray[np.float64]
    loss: NDArray[np.intp] | None = None
    least: bool = False

    @property
    def apart(self) -> bool:
        """Whether outputs that share a loss are pooled together, so that the best loss of each group is its own."""
        if self.loss is None:
            return True
        counted = self.group >= 0
        pairs = np.unique(np.stack([self.loss[counted], self.group[counted]]), axis=1)
        return bool(len(np.unique(pairs[0])) == pairs.shape[1])

    @property
    def n_groups(self) -> int:
        """G."""
        return len(self.weight)

    @property
    def first(self) -> list[int]:
        """The first output of each group."""
        groups, outputs = np.unique(self.group, return_index=True)
        return [int(m) for m in outputs[groups >= 0]]

    def pool(self, tensor: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average an array (M, ...) over the outputs of each group, to (G, ...)."""
        if len(self.share) == 1 and self.n_groups == 1:  # its share is 1
            return tensor
        scaled = tensor * self.share.reshape((-1,) + (1,) * (tensor.ndim - 1))
        if self.n_groups == 1:
            return np.asarray(scaled.sum(axis=0, keepdims=True))
        out = np.zeros((self.n_groups, *tensor.shape[1:]))
        counted = self.group >= 0
        if np.count_nonzero(counted) == self.n_groups:  # one output each
            out[self.group[counted]] = scaled[counted]
        else:
            np.add.at(out, self.group[counted], scaled[counted])
        return out

    def pool_each(self, tensors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pool R confusion tensors at once: (R, M, K, K) to (R, G, K, K), as :meth:`pool` does each."""
        return np.moveaxis(self.pool(np.moveaxis(tensors, 1, 0)), 0, 1)

    def spread(self, values: NDArray[np.float64], fill: NDArray[np.float64] | float = 0.0) -> NDArray[np.float64]:
        """Give each output what its group has; `fill` for outputs without a group."""
        out = values[np.maximum(self.group, 0)]
        out[self.group < 0] = fill
        return out


def group_outputs(
    average: str,
    weight: NDArray[np.float64],
    n_classes: NDArray[np.intp],
    output_weight: NDArray[np.float64],
    parts: NDArray[np.intp] | None = None,
    loss: NDArray[np.intp] | None = None,
) -> Grouping:
    """Build the grouping of an average.

    Instance-averaging is optimised as micro, its population value. `weight` n_m is that of the observed labels of each
    output, `output_weight` alpha_m, both (M,). Outputs with the same number in `parts` are pooled by their rows and
    alpha_m before anything else; outputs with the same number in `loss` follow one loss (None: those that are pooled).

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.metrics.averages import group_outputs
    >>> grouping = group_outputs("micro", np.array([30.0, 10.0]), np.array([2, 2]), np.ones(2))
    >>> grouping.share
    array([0.75, 0.25])

    Two outputs, the rows of the second in two parts:

    >>> grouping = group_outputs(
    ...     "macro", np.array([40.0, 30.0, 10.0]), np.array([2, 2, 2]), np.ones(3), parts=np.array([0, 1, 1])
    ... )
    >>> grouping.group, grouping.share, grouping.weight
    (array([0, 1, 1]), array([1.  , 0.75, 0.25]), array([0.5, 0.5]))
    """
    check_average(average)
    if average == "macro":
        counted = (weight > 0) & (output_weight > 0)
        if parts is None:
            group = np.where(counted, np.cumsum(counted) - 1, -1)
            alpha = output_weight[counted]
            return Grouping(
                group, counted.astype(float), alpha / alpha.sum(), n_classes[counted], weight[counted], loss
            )
        group = np.full(len(parts), -1, dtype=np.intp)
        _, first, group[counted] = np.unique(parts[counted], return_index=True, return_inverse=True)
        groups = group[counted]
        total, mass = (
            np.bincount(groups, values[counted]).astype(np.float64) for values in (weight, output_weight * weight)
        )
        share = np.where(counted, output_weight * weight / mass[group], 0.0)
        alpha = output_weight[counted][first]
        widest = np.zeros(len(first), dtype=np.intp)
        np.maximum.at(widest, groups, n_classes[counted])
        return Grouping(group, share, alpha / alpha.sum(), widest, total, loss)
    mass = output_weight * weight
    # Every output follows the shared loss, even one without a label of its own: the loss is right for all of them.
    shared = np.zeros(len(weight), dtype=np.intp)
    total = weight.sum(where=output_weight > 0, keepdims=True)
    return Grouping(shared, mass / mass.sum(), np.ones(1), n_classes.max(keepdims=True), total, loss)
