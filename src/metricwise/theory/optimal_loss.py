"""The weighted loss at an optimum."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.confusion import normalize
from ..core.errors import InvalidParameter, entry_point
from ..data.weights import read_output_weight
from ..metrics.aim import AveragedMetric
from ..metrics.base import Metric
from ..metrics.naming import check_same_classes
from ..metrics.resolution import resolve, target_kind, to_maximise
from ._checks import FloatArray, MetricLike, read_sizes, read_tensor

__all__ = ["loss_from_gradient"]


@entry_point("loss_from_gradient")
def loss_from_gradient(
    metric: MetricLike | ArrayLike,
    confusion: ArrayLike | None = None,
    *,
    average: str | None = None,
    output_weight: ArrayLike | None = None,
    n_classes: ArrayLike | None = None,
) -> FloatArray:
    """Return the weighted loss ``-grad psi(C)``, scaled and shifted to [0, 1].

    If C maximises psi over all reachable confusions, then it minimises <L, C> for this loss L, and the weighted rule of
    L is optimal (up to rows that tie). For a fractional-linear metric this is the paper's ``psi* B - A``, scaled and
    shifted.

    The gradient is that at fixed class priors, which no rule changes; it is defined up to a constant per row, and so is
    the loss: such constants change no decision. Neither does the scale, which is one per output.

    Parameters
    ----------
    metric : str, Metric or callable; or array-like of shape (K, K) or (M, K, K)
        The metric psi, or its gradient.
    confusion : array-like of shape (K, K) or (M, K, K)
        Confusion matrices, as shares or counts, at which the gradient is taken. With counts, the micro-average weights
        outputs by their sums. May be left out if `metric` is a gradient.
    average : {"micro", "macro", "instance"}, optional
        Average over outputs; "micro" unless the name of the metric fixes it. With "micro" all outputs share one loss,
        with "macro" each has its own. "instance" is treated as "micro", its population value.
    output_weight : array-like of shape (M,), optional
        Weights of the outputs in the average.
    n_classes : array-like of shape (M,), optional
        Number K_m of classes of each output, if they differ and `confusion` is padded. The loss of padding is 1.

    Returns
    -------
    ndarray of the shape of `confusion`
        Zero everywhere if the gradient vanishes, since all decisions are then equally good; with "macro", the loss of
        argmax for an output without labels.

    See Also
    --------
    metricwise.WeightedRule : The rule of a loss.
    metricwise.geometry.does_weighting_suffice : Whether one weighted rule is enough.

    Examples
    --------
    >>> import metricwise as mw
    >>> mw.theory.loss_from_gradient("ordinal", [[0.2, 0.1, 0.0], [0.1, 0.2, 0.1], [0.0, 0.1, 0.2]])
    array([[0. , 0.5, 1. ],
           [0.5, 0. , 0.5],
           [1. , 0.5, 0. ]])

    At an F1 of 2/3 the loss is 2/3 B - A with A = [[0, 0], [0, 2]] and B = [[0, 1], [1, 2]]. The best threshold is
    half the F1:

    >>> L = mw.theory.loss_from_gradient("f1", [[0.6, 0.1], [0.1, 0.2]])
    >>> L
    array([[0.5, 1. ],
           [1. , 0. ]])
    >>> float((L[0, 1] - L[0, 0]) / (L[0, 1] - L[0, 0] + L[1, 0] - L[1, 1]))
    0.333...
    """
    if not (isinstance(metric, (str, Metric)) or callable(metric)):
        slope = read_tensor(metric, "the gradient")
        if confusion is not None and np.shape(confusion) != slope.shape:
            raise InvalidParameter(
                "gradient",
                problem=f"the gradient must have the shape of confusion, {np.shape(confusion)}, got {slope.shape}",
            )
        single, slope = slope.ndim == 2, slope.reshape(-1, *slope.shape[-2:])
        sizes = read_sizes(n_classes, slope)
        losses = _unit_losses(slope, np.arange(len(slope)), sizes)
        return losses[0] if single else losses
    if confusion is None:
        raise InvalidParameter("confusion", "be given with a metric", "None", "it may be left out only with a gradient")
    tensor = read_tensor(confusion, "confusion")
    if (tensor < 0).any() or not tensor.any():
        raise InvalidParameter("confusion", "be non-negative and not all zero")
    single = tensor.ndim == 2
    C, weight = normalize(tensor.reshape(-1, *tensor.shape[-2:]))
    sizes = read_sizes(n_classes, C)
    resolved = to_maximise(resolve(metric, target_kind(C.shape[-1], not single), average))
    if not resolved.average_given:
        check_same_classes([range(k) for k in sizes.tolist()])
    alpha = read_output_weight(output_weight, len(C))
    aim = AveragedMetric(resolved.metric, resolved.average, alpha, resolved.support_weighted)
    objective = aim.bind(C.sum(axis=-1), weight, sizes)
    grouping = objective.grouping
    slope = objective.gradient(grouping.pool(C))
    if not np.isfinite(slope).all():
        raise InvalidParameter(
            "confusion", problem=f"{resolved.name} has no finite gradient at this confusion", remedy="use another one"
        )
    losses = _unit_losses(slope, grouping.group, grouping.n_classes)
    return losses[0] if single else losses


def _unit_losses(slope: FloatArray, group: NDArray[np.intp], sizes: NDArray[np.intp]) -> FloatArray:
    """Scale and shift the negative gradient of each group, and give it to the outputs of the group."""
    width = slope.shape[-1]
    units = np.ones_like(slope)
    for g, k in enumerate(sizes.tolist()):
        loss = -slope[g, :k, :k]
        low, high = loss.min(), loss.max()
        units[g, :k, :k] = (loss - low) / (high - low) if high > low else 0.0
    losses = units[np.maximum(group, 0)]
    losses[group < 0] = 1.0 - np.eye(width)
    return losses
