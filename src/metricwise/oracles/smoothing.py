"""What a fit may not believe: a class that labels do not show, however much probability it is given.

Owns the *padding* of a confusion, a few rows that every rule is taken to have decided beside those given. Where
probabilities are counted in the place of labels, a metric that averages over classes weighs a class by one over its
mass, and one that never occurs has the smallest mass of all: without padding the rule gives it rows in plenty. Where
labels are counted it gives it none, though it may occur in the rows to come. With padding, the class weighs what an
average class does, as it does for argmax. Must not know which metric it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.losses import Loss
from ..core.matrices import with_extra
from ..metrics.averages import Grouping
from .base import Oracle

__all__ = ["pad"]

FloatArray = NDArray[np.float64]

# Rows that a class which occurs is padded with. On synthetic problems with one to five rows of a class, more of them
# lost on new rows (macro-F1 0.587 with none, 0.572 with 1, 0.560 with 5), whether the probabilities were right or not.
_RARE = 0.5


def pad(
    oracle: Oracle,
    grouping: Grouping,
    class_rows: FloatArray,
    *,
    rare: bool,
    smooth: bool | NDArray[np.bool_],
    by_class: bool | NDArray[np.bool_] = True,
) -> FloatArray | None:
    """Return the confusion to add to that of every rule, None where there is nothing to add.

    A class that no label of its group shows is padded up to the share of an average class that some label shows. The
    padded rows are right as often as all rows are under argmax, and the wrong ones spread over the other classes by
    their shares.

    Parameters
    ----------
    oracle : Oracle
    grouping : Grouping
    class_rows : ndarray of shape (M, K)
        Rows whose label shows each class.
    rare : bool
        Pad classes that occur as well, with half a row each: the fewer rows they have, the more that matters.
    smooth : bool, or ndarray of shape (G,)
        Of the metric. Of a minimum the padded rows must not be the worst: they are all right.
    by_class : bool, or ndarray of shape (G,), default=True
        Of the metric. Where not every class counts alike, nothing is padded.

    Returns
    -------
    ndarray of shape (G, K, K), or None
        In units of all rows.
    """
    # Decisions that are no class are classes to the oracle that no row is of, and none to be padded.
    n_extra = oracle.priors.shape[1] - class_rows.shape[1]
    labels = with_extra(_by_group(grouping, class_rows), n_extra)
    shown = labels > 0
    n_shown = np.maximum(shown.sum(axis=1, keepdims=True), 1)
    priors = grouping.pool(oracle.priors)
    n_rows = np.maximum(labels.sum(axis=1, keepdims=True), 1.0)
    room = np.maximum(1.0 / n_shown - priors, 0.0)
    extra = np.where(shown, np.minimum(_RARE / n_rows, room) if rare else 0.0, room)
    extra *= np.arange(labels.shape[1]) < grouping.n_classes[:, None] - n_extra
    extra *= shown.sum(axis=1, keepdims=True) > 1  # else the group has nothing to learn from
    extra *= np.reshape(by_class, (-1, 1))
    if not extra.any():
        return None
    right = np.ones((len(labels), 1, 1))
    if np.any(smooth):
        argmax_confusion = grouping.pool(oracle.confusions([Loss.argmax(labels.shape[1])])[0])
        right[:, 0, 0] = np.where(smooth, np.trace(argmax_confusion, axis1=1, axis2=2), 1.0)
    eye = np.eye(labels.shape[1])
    others = priors[:, None, :] * (1 - eye)
    others /= np.maximum(others.sum(axis=2, keepdims=True), np.finfo(np.float64).tiny)
    return np.asarray(extra[:, :, None] * (right * eye + (1 - right) * others))


def _by_group(grouping: Grouping, class_rows: FloatArray) -> FloatArray:
    """Sum rows (M, K) over the outputs of each group."""
    out = np.zeros((grouping.n_groups, class_rows.shape[1]))
    counted = grouping.group >= 0
    np.add.at(out, grouping.group[counted], class_rows[counted])
    return out
