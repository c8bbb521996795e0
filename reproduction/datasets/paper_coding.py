"""The coding of the UCI sets that gives the paper's own table back: integers in natural order.

Owns the orders of levels and what differs from the loaders. The authors' code is not public: this coding is inferred
from the numbers that they print.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .table import Table

__all__ = ["paper_coding"]

# Natural orders of features that are words; words without one are in alphabetical order.
_ORDERS: dict[str, dict[str, tuple[str, ...]]] = {
    "car": {
        "doors": ("2", "3", "4", "5more"),
        "persons": ("2", "4", "more"),
        "lug_boot": ("small", "med", "big"),
        "safety": ("low", "med", "high"),
        "class": ("unacc", "acc", "good", "vgood"),
    },
    "nursery": {
        "parents": ("usual", "pretentious", "great_pret"),
        "has_nurs": ("proper", "less_proper", "improper", "critical", "very_crit"),
        "form": ("complete", "completed", "incomplete", "foster"),
        "children": ("1", "2", "3", "more"),
        "housing": ("convenient", "less_conv", "critical"),
        "finance": ("convenient", "inconv"),
        "class": ("not_recom", "recommend", "very_recom", "priority", "spec_prior"),
    },
}

# Labels whose classes go from the last to the first: health of Nursery is not_recom < priority < recommended.
_REVERSED = {"nursery": ("health",)}


def paper_coding(table: Table) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return features and labels of a set as integers, neither scaled nor one-hot.

    Numbers are as in the file; words are places in their natural order, from 0.

    Parameters
    ----------
    table : Table
        Of a set without missing values.

    Returns
    -------
    X : ndarray of shape (N, D)
    y : integer ndarray of shape (N, M)

    Examples
    --------
    >>> from reproduction.datasets import make_table, paper_coding
    >>> rows = [["low", "5more", "red"], ["high", "2", "blue"]]
    >>> car = make_table("car", rows, ["buying", "doors", "colour"], ["buying"], ["low", "high"])
    >>> X, y = paper_coding(car)
    >>> X.tolist(), y.tolist()
    ([[3.0, 1.0], [0.0, 0.0]], [[0], [1]])
    """
    orders = _ORDERS.get(table.name, {})
    columns = [
        _integers(column, orders.get(name)) for name, column in zip(table.feature_names, table.features.T, strict=True)
    ]
    y = table.y.copy()
    for label in _REVERSED.get(table.name, ()):
        m = table.label_names.index(label)
        y[:, m] = len(table.classes) - 1 - y[:, m]
    return np.column_stack(columns), y


def _integers(column: NDArray[Any], order: tuple[str, ...] | None) -> NDArray[np.float64]:
    if order is not None:
        place = {level: float(i) for i, level in enumerate(order)}
        return np.array([place[level] for level in column])
    try:
        return column.astype(np.float64)
    except ValueError:
        return np.unique(column, return_inverse=True)[1].astype(np.float64)
