"""Warning for columns that seem to belong to other classes.

Given if another assignment of columns to classes makes the most probable class right far more often. Must not know
metrics or rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import listed, shown, warn
from ..core.labels import Scales, python_labels
from ..core.probabilities import Probabilities

__all__ = ["warn_of_assignment"]

IntArray = NDArray[np.intp]

_MAX_CLASSES = 8  # of an output whose columns are looked at
_MIN_LABELS = 50  # of an output, below which chance may look like another assignment
_DOUBTED_SHARE = 0.2  # of the labels, that another assignment gets right beyond those that this one does
_JUDGED_ROWS = 10_000
_JUDGED_ENTRIES = 1 << 22  # rows times outputs that are looked at


def warn_of_assignment(
    proba: Probabilities, codes: NDArray[Any], classes: Sequence[NDArray[Any]], column_order: Scales | None = None
) -> None:
    """Warn if the most probable class is correct far more often with the columns assigned to the classes otherwise.

    Parameters
    ----------
    proba : Probabilities
    codes : integer ndarray of shape (N, M)
        Positions among the classes; -1 where the label is missing.
    classes : sequence of M ndarrays
    column_order : tuple of M tuples or None, optional
        Classes of each output as the user's columns stood, if that is another order.
    """
    step = max(1, -(-len(codes) // _JUDGED_ROWS), -(-codes.size // _JUDGED_ENTRIES))
    some = proba.take(slice(None, None, step))
    for (likeliest, span), block in zip(some.likeliest(), some.blocks, strict=True):
        true = codes[::step, span]
        if block.shape[-1] > _MAX_CLASSES and block.ndim == 3:
            continue
        n_labels, n_right = np.count_nonzero(true >= 0, axis=0), np.count_nonzero(true == likeliest, axis=0)
        doubtful = (n_labels >= _MIN_LABELS) & (n_labels - n_right >= _DOUBTED_SHARE * n_labels)
        for at in np.flatnonzero(doubtful).tolist():
            m = span.start + at
            better = _better_assignment(true[:, at], likeliest[:, at], int(proba.n_classes[m]))
            if better is not None:
                meant = dict(zip(python_labels(classes[m]), python_labels(classes[m][better[0]]), strict=True))
                order = (column_order[m] if column_order is not None else None) or tuple(meant)
                pairs = [(label, meant[label]) for label in order]
                _warn(pairs, *better[1:], block.ndim == 2, m if len(classes) > 1 else None)
                return


def _better_assignment(true: NDArray[Any], likeliest: IntArray, k: int) -> tuple[IntArray, float, float] | None:
    """Return the class of each column that makes far more rows right, and the shares before and after."""
    kept = true >= 0
    n_labels = int(np.count_nonzero(kept))
    counts = np.bincount(likeliest[kept] * k + true[kept].astype(np.intp), minlength=k * k).reshape(k, k)
    right = int(np.trace(counts))
    if counts.max(axis=1).sum() - right < _DOUBTED_SHARE * n_labels:  # no assignment does better than that
        return None
    from scipy.optimize import linear_sum_assignment

    _, best = linear_sum_assignment(counts, maximize=True)
    most = int(counts[np.arange(k), best].sum())
    return (best, right / n_labels, most / n_labels) if most - right >= _DOUBTED_SHARE * n_labels else None


def _warn(pairs: list[tuple[Any, Any]], before: float, after: float, single: bool, output: int | None) -> None:
    """Say which class each column is taken for, and which it seems to be of."""
    where = "" if output is None else f" of output {output}"
    labels, better = zip(*pairs, strict=True)
    if single:
        meant = f"the column{where} were the probability of {shown(better[1])} and not of {shown(labels[1])}"
        remedy = f"if it is, pass pos_label={shown(better[1])} or both columns"
    else:
        meant = f"the columns{where} were those of {listed(better)} in that order, and not of {listed(labels)}"
        remedy = "if they are, pass a data frame with these names, or the columns in the right order"
    warn(
        f"the most probable class is correct in {100 * before:.0f} % of the rows, and in {100 * after:.0f} % if "
        f"{meant}; {remedy}."
    )
