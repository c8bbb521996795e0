"""A multioutput data set as a table: features, and labels with their classes in natural order.

Owns the record and the encoding of features as numbers. Must not know where files come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Table", "make_table"]

MISSING = "?"


@dataclass(frozen=True, eq=False)
class Table:
    """A data set with several labels of the same classes.

    Parameters
    ----------
    name : str
    features : ndarray of str of shape (N, D)
        As in the file; "?" is missing.
    feature_names : tuple of str
    numeric : tuple of bool
        Which features are numbers; the others are categories.
    y : integer ndarray of shape (N, M)
        Codes of the labels, positions in `classes`; -1 is missing.
    label_names : tuple of str
    classes : tuple of str
        In natural order, the lowest first.
    """

    name: str
    features: NDArray[Any]
    feature_names: tuple[str, ...]
    numeric: tuple[bool, ...]
    y: NDArray[np.intp]
    label_names: tuple[str, ...]
    classes: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    def matrix(self) -> NDArray[np.float64]:
        """Return the features as numbers: numbers as they are, categories one-hot, a missing number as the mean.

        Returns
        -------
        ndarray of shape (N, number of columns)
        """
        blocks = [
            _numbers(column) if numeric else _one_hot(column)
            for column, numeric in zip(self.features.T, self.numeric, strict=True)
        ]
        return np.hstack(blocks)

    def __repr__(self) -> str:
        n, d = self.features.shape
        return (
            f"Table({self.name}: {n} rows, {d} features, {len(self.label_names)} labels, {len(self.classes)} classes)"
        )


def make_table(
    name: str,
    rows: Sequence[Sequence[str]],
    columns: Sequence[str],
    labels: Sequence[str],
    classes: Sequence[str],
    numeric: Sequence[str] = (),
) -> Table:
    """Split rows of text into features and labels.

    Parameters
    ----------
    name : str
    rows : sequence of rows, each with one text per column
    columns : sequence of str
        Names of all columns, in order.
    labels : sequence of str
        Names of the columns that are labels.
    classes : sequence of str
        Values of the labels, in natural order.
    numeric : sequence of str
        Names of the features that are numbers.

    Returns
    -------
    Table

    Examples
    --------
    >>> from reproduction.datasets import make_table
    >>> table = make_table("toy", [["low", "1"], ["high", "2"]], ["risk", "age"], ["risk"], ["low", "high"], ["age"])
    >>> table.y.tolist(), table.matrix().tolist()
    ([[0], [1]], [[1.0], [2.0]])
    """
    wrong = next((i for i, row in enumerate(rows) if len(row) != len(columns)), None)
    if wrong is not None:
        raise ValueError(f"{name}: each row must have {len(columns)} values, row {wrong} has {len(rows[wrong])}.")
    text = np.array([[value.strip() for value in row] for row in rows], dtype=str)
    where = {column: i for i, column in enumerate(columns)}
    features = [column for column in columns if column not in labels]
    code = {value: i for i, value in enumerate(classes)} | {MISSING: -1}
    unknown = sorted(set(text[:, [where[label] for label in labels]].ravel().tolist()) - set(code))
    if unknown:
        raise ValueError(f"{name}: labels must be among {list(classes)}, got {unknown[:5]}.")
    y = np.array([[code[value] for value in text[:, where[label]]] for label in labels], dtype=np.intp).T
    return Table(
        name=name,
        features=text[:, [where[column] for column in features]],
        feature_names=tuple(features),
        numeric=tuple(column in numeric for column in features),
        y=np.ascontiguousarray(y),
        label_names=tuple(labels),
        classes=tuple(classes),
    )


def _numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    missing = column == MISSING
    values = np.where(missing, "nan", column).astype(np.float64)
    if not missing.any():
        return values[:, None]
    return np.column_stack([np.where(missing, np.nanmean(values), values), missing])


def _one_hot(column: NDArray[Any]) -> NDArray[np.float64]:
    levels, codes = np.unique(column, return_inverse=True)
    if len(levels) == 2:  # one column says it all
        return (codes == 1).astype(np.float64)[:, None]
    return np.eye(len(levels))[codes]
