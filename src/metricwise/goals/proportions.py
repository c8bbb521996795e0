"""Constraints as bounds on proportions: shares of rows that are successes among those that are trials.

Only of these is the distribution known exactly, whatever the rows. Must not know rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..metrics.abstention import Abstaining
from ..metrics.base import Affine, FractionalLinear, Metric
from ..metrics.linear import Recall
from ..metrics.recall_means import Minimum, MinRecall
from .constraint import Constraint

__all__ = ["Proportion", "cells_of", "least_of", "proportions_of"]

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]

_ROUNDING = 1e-12  # of cells of a ratio, relative to the largest


@dataclass(frozen=True, eq=False)
class Proportion:
    """A share of rows with a bound.

    Parameters
    ----------
    successes, trials : ndarray of shape (K, D), bool
        Cells of true class and decision; successes are trials.
    bound : float
    is_floor : bool
        Whether the share must be at least the bound; otherwise at most.
    group : int, optional
        The sensitive group whose rows are counted; None: all rows.
    promise : int, default=0
        The constraint as written that it is of.
    """

    successes: BoolArray
    trials: BoolArray
    bound: float
    is_floor: bool
    group: int | None = None
    promise: int = 0

    def count(self, cells: NDArray[Any]) -> tuple[IntArray, IntArray]:
        """Return successes and trials (...) of counted cells (..., K, D)."""
        return cells[..., self.successes].sum(axis=-1), cells[..., self.trials].sum(axis=-1)


def proportions_of(constraint: Constraint, n_classes: int, labels: Sequence[Any]) -> list[Proportion] | None:
    """Return the bounds on proportions that a constraint is, which must all be kept; None if it is not such bounds.

    `labels` are the classes, `n_classes` their number.
    """
    parts = least_of(constraint.metric, range(n_classes))
    if constraint.near_prior or constraint.minus is not None or (parts and np.isfinite(constraint.high)):
        return None
    read = [cells_of(metric, n_classes, labels) for metric in parts or [constraint.metric]]
    cells = [pair for pair in read if pair is not None]
    if len(cells) < len(read):
        return None
    ends = [(end, is_floor) for end, is_floor in zip(constraint.ends, (True, False), strict=True) if np.isfinite(end)]
    return [Proportion(*pair, *end, constraint.group, constraint.promise) for pair in cells for end in ends]


def cells_of(metric: Metric, n_classes: int, labels: Sequence[Any]) -> tuple[BoolArray, BoolArray] | None:
    """Return the cells (K, D) of successes and of trials; None if the metric is not a share of rows.

    D is one more than K = `n_classes` for rules that may abstain.
    """
    form = metric._of_cells(n_classes, labels)
    if not isinstance(form, FractionalLinear):
        return None
    A, B = (np.asarray(part, dtype=np.float64)[:n_classes] for part in (form.A, form.B))
    size = float(B.max())
    if size <= 0:
        return None
    flags = [np.abs(part / size - 1) < _ROUNDING for part in (A, B)]
    others = [np.abs(part / size) < _ROUNDING for part in (A, B)]
    whole = all((flag | other).all() for flag, other in zip(flags, others, strict=True))
    return (flags[0], flags[1]) if whole and not (flags[0] & ~flags[1]).any() else None


def least_of(metric: Metric, classes: Sequence[int]) -> list[Metric]:
    """Return the metrics that a metric is the least of, where some classes occur; empty if it is no minimum."""
    if isinstance(metric, Abstaining):  # in a minimum, abstentions are misses
        return [replace(metric, base=part, accepted=False) for part in least_of(metric.base, classes)]
    if isinstance(metric, Affine):
        return [replace(metric, base=part) for part in least_of(metric.base, classes)]
    if isinstance(metric, MinRecall):
        return [Recall(index=j) for j in classes]
    return list(metric.metrics) if isinstance(metric, Minimum) else []
