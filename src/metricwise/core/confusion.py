"""Confusion tensors: from labels and predictions, from probabilities, of randomised rules; merge and normalise.

Owns the layout ``C[m, i, j]``: weight of rows of output m whose true class is i and predicted class j. Partial tensors
hold sums of weights, so that merging them is addition; :func:`normalize` turns sums into shares. Must not know
metrics, rules or solvers.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .probabilities import Probabilities

FloatArray = NDArray[np.float64]


def from_predictions(
    true: NDArray[Any], predicted: NDArray[Any], n_classes: int, sample_weight: FloatArray | None = None
) -> FloatArray:
    """Count true against predicted codes.

    Parameters
    ----------
    true : integer ndarray of shape (N, M)
        True codes, -1 if the label is missing.
    predicted : integer ndarray of shape (N, M)
    n_classes : int
        K.
    sample_weight : ndarray of shape (N,), optional

    Returns
    -------
    ndarray of shape (M, K, K)
        Sums of weights.

    See Also
    --------
    expected_confusion : Counts probabilities in place of labels.
    normalize : Turn sums into shares.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.core.confusion import from_predictions
    >>> from_predictions(np.array([[0], [1], [1], [-1]]), np.array([[0], [1], [0], [1]]), 2)
    array([[[1., 0.],
            [1., 1.]]])
    """
    k, n_outputs = n_classes, true.shape[1]
    labelled = true >= 0
    index = (np.arange(n_outputs) * k + true) * k + predicted
    weight = None if sample_weight is None else np.broadcast_to(sample_weight[:, None], true.shape)[labelled]
    sums = np.bincount(index[labelled].astype(np.intp), weight, minlength=n_outputs * k * k)
    return sums.reshape(n_outputs, k, k).astype(np.float64)


def expected_confusion(
    proba: Probabilities,
    predicted: NDArray[Any],
    sample_weight: FloatArray | None = None,
    observed: NDArray[Any] | None = None,
    n_decisions: int | None = None,
) -> FloatArray:
    """Sum the probabilities of the true class against predicted codes.

    Parameters
    ----------
    proba : Probabilities
    predicted : integer ndarray of shape (N, M)
    sample_weight : ndarray of shape (N,), optional
    observed : bool or float ndarray of shape (N, M), optional
        Entries that count, or what they count for.
    n_decisions : int, optional
        D, where decisions may be more than classes.

    Returns
    -------
    ndarray of shape (M, K, D)

    See Also
    --------
    from_predictions : Counts labels.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.core.confusion import expected_confusion
    >>> from metricwise.data.probabilities import read_proba
    >>> expected_confusion(read_proba([[0.75, 0.25], [0.5, 0.5]]), np.array([[0], [1]])).tolist()
    [[[0.75, 0.5], [0.25, 0.5]]]
    """
    n_decisions = proba.width if n_decisions is None else n_decisions
    out = np.zeros((proba.n_outputs, proba.width, n_decisions))
    for rows in proba.chunks():
        part = proba.take(rows)
        weight = np.ones(part.n_rows) if sample_weight is None else sample_weight[rows]
        for m in range(proba.n_outputs):
            eta = distributions(part.output(m)[:, 0])
            mass = weight if observed is None else weight * observed[rows, m]
            for i in range(int(proba.n_classes[m])):
                out[m, i] += np.bincount(predicted[rows, m], mass * eta[:, i], minlength=n_decisions)
    return out


def distributions(eta: NDArray[Any]) -> FloatArray:
    """Return rows of one output, (n,) or (n, K), as float64 of shape (n, K): class 0 of a binary one written out."""
    eta = eta.astype(np.float64)
    return np.stack([1.0 - eta, eta], axis=1) if eta.ndim == 1 else eta


def from_distribution(
    true: NDArray[Any], distribution: NDArray[Any], sample_weight: FloatArray | None = None
) -> FloatArray:
    """Sum the probabilities of the *predicted* class of a randomised rule against true codes.

    Parameters
    ----------
    true : integer ndarray of shape (N, M)
        True codes, -1 if the label is missing.
    distribution : ndarray of shape (N, M, K)
        Probability with which a randomised rule predicts each class.
    sample_weight : ndarray of shape (N,), optional

    Returns
    -------
    ndarray of shape (M, K, K)

    See Also
    --------
    from_predictions : For deterministic predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.core.confusion import from_distribution
    >>> from_distribution(np.array([[0], [1]]), np.array([[[0.25, 0.75]], [[0.5, 0.5]]]))
    array([[[0.25, 0.75],
            [0.5 , 0.5 ]]])
    """
    _, n_outputs, k = distribution.shape
    out = np.zeros((n_outputs, k, k))
    weight = np.ones(len(true)) if sample_weight is None else sample_weight
    for m in range(n_outputs):
        labelled = true[:, m] >= 0
        np.add.at(out[m], true[labelled, m], weight[labelled, None] * distribution[labelled, m])
    return out


def merge(*partial: FloatArray) -> FloatArray:
    """Add partial tensors of the same rule over disjoint rows.

    Parameters
    ----------
    *partial : ndarray of shape (M, K, K)
        Sums of weights.

    Returns
    -------
    ndarray of shape (M, K, K)

    See Also
    --------
    normalize : Turn sums into shares.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.core.confusion import merge
    >>> merge(np.eye(2)[None], np.ones((1, 2, 2)))
    array([[[2., 1.],
            [1., 2.]]])
    """
    return reduce(np.add, partial)


def normalize(sums: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Turn sums of weights into shares.

    Parameters
    ----------
    sums : array-like of shape (M, K, K)

    Returns
    -------
    C : ndarray of shape (M, K, K)
        Each C[m] sums to 1, or is all zero if output m has no observed label.
    weight : ndarray of shape (M,)
        n_m, the weight of the observed labels.

    See Also
    --------
    pool : Micro-average of shares.

    Examples
    --------
    >>> from metricwise.core.confusion import normalize
    >>> C, weight = normalize([[[3, 1], [0, 4]]])
    >>> C.tolist(), weight.tolist()
    ([[[0.375, 0.125], [0.0, 0.5]]], [8.0])
    """
    sums = np.asarray(sums, dtype=np.float64)
    weight = sums.sum(axis=(-2, -1))
    return sums / np.where(weight > 0, weight, 1.0)[..., None, None], weight


def pool(C: ArrayLike, weight: ArrayLike, output_weight: ArrayLike | None = None) -> FloatArray:
    """Pool the confusion matrices of all outputs (micro-average), weighted by their observed labels.

    Parameters
    ----------
    C : array-like of shape (M, K, K)
        Confusion matrices of shares.
    weight : array-like of shape (M,)
        Weight n_m of the observed labels of each output.
    output_weight : array-like of shape (M,), optional
        Weights alpha_m of the outputs.

    Returns
    -------
    ndarray of shape (K, K)

    See Also
    --------
    normalize : Turn sums into shares.

    Examples
    --------
    >>> from metricwise.core.confusion import pool
    >>> pool([[[0.5, 0.0], [0.0, 0.5]], [[0.0, 0.5], [0.5, 0.0]]], [3, 1]).tolist()
    [[0.375, 0.125], [0.125, 0.375]]
    """
    C, mass = np.asarray(C, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    if output_weight is not None:
        mass = mass * np.asarray(output_weight, dtype=np.float64)
    pooled: FloatArray = np.tensordot(mass / mass.sum(), C, axes=1)
    return pooled
