"""Rows that come in pieces: what all of them are of is settled once, and every piece is read alike.

Owns the step from a piece of what the user handed over to rows. What the whole is of (outputs, classes, names) follows
from some rows and from the labels that occur, in the same way as it does for arrays in memory. Must not know where
pieces come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.rows import Rows
from .arrays import Data, output_names, read_data
from .classes import classes_from_columns
from .label_tables import is_two_dimensional
from .labels import Labels, read_labels
from .probabilities import read_proba
from .row_spec import RowSpec
from .schema import Schema
from .weights import check_frequencies, count_by_weight, read_piece_groups, read_piece_weight

__all__ = ["Piece", "PieceReader", "distinct_values"]


class Piece(NamedTuple):
    """What the user handed over of some rows, in memory: as `optimize` takes it; labels may have been read already."""

    proba: Any
    y: Any = None
    weight: Any = None
    groups: Any = None


@dataclass(frozen=True, eq=False)
class PieceReader:
    """Reads pieces of one whole, each as rows of the same outputs and classes.

    Parameters
    ----------
    schema : Schema
    multioutput : bool or None
        Whether y is 2-D; None without one.
    classes : object
        Of every column of the probabilities, where the user or the names of the columns say so.
    columns : list or None
        Names of the outputs, by which the columns of multilabel data frames are matched.
    counts_rows : bool, default=False
        Whether weights say how many rows each row stands for.

    See Also
    --------
    PieceReader.of : settle these from a few rows and the labels that occur.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.data.pieces import Piece, PieceReader
    >>> from metricwise.data.row_spec import RowSpec
    >>> head = RowSpec(np.array([[0.2, 0.8]]), np.array(["no", "yes"]))
    >>> reader, data = PieceReader.of(head)
    >>> rows = reader.rows(Piece(np.array([[0.6, 0.4], [0.3, 0.7]]), np.array(["yes", "yes"])), start=1000)
    >>> rows.codes.ravel().tolist(), rows.start
    ([1, 1], 1000)
    """

    schema: Schema
    multioutput: bool | None
    classes: Any
    columns: list[Any] | None
    counts_rows: bool = False

    @classmethod
    def of(cls, head: RowSpec) -> tuple[PieceReader, Data]:
        """Settle what the whole is of.

        Parameters
        ----------
        head : RowSpec
            The first row or more of the probabilities; and in the place of labels the distinct ones of all rows, as
            many as there are, missing ones among them. Of weights it is enough that there are some.

        Returns
        -------
        PieceReader
        Data
            Of rows that stand for all: they show whether there are labels and weights, not which.
        """
        several = None if head.y is None else is_two_dimensional(head.y)
        n_rows = 1 if head.y is None else len(head.y)
        proba = _repeated(head.proba, n_rows)
        weight = None if head.weight is None else np.ones(n_rows)
        data = read_data(replace(head, proba=proba, sample_weight=weight, groups=None))
        known = classes_from_columns(proba, head.y, head.classes, several)
        columns = output_names(proba, head.y) if several else None
        reader = cls(data.schema, several, known, columns, head.counts_rows)
        return reader, replace(data, counts=None)

    def rows(self, piece: Piece, start: int = 0, *, check: bool = True) -> Rows:
        """Read a piece that begins at a row of the whole; `check` is False if its numbers have been checked before."""
        proba = read_proba(
            piece.proba,
            multioutput=self.multioutput,
            classes=self.classes,
            columns=self.columns,
            normalize=self.schema.normalize,
            first_row=start,
            check=check,
        )
        names = list(self.schema.classes) if self.multioutput else self.schema.classes[0]
        labels = piece.y
        if labels is not None and not isinstance(labels, Labels):
            labels = read_labels(labels, proba, names, whole=False)
        weight = read_piece_weight(piece.weight, proba.n_rows)
        rows = Rows(proba, None if labels is None else labels.codes, weight, start=start)
        if weight is not None and self.counts_rows:
            check_frequencies(weight)
            rows = count_by_weight(rows, weight)
        if piece.groups is not None:
            rows = replace(rows, cluster=read_piece_groups(piece.groups, proba.n_rows))
        return rows


def _repeated(proba: Any, n_rows: int) -> Any:
    """The first row of probabilities so many times."""
    if isinstance(proba, (list, tuple)):
        return [_repeated(one, n_rows) for one in proba]
    rows = np.zeros(n_rows, dtype=np.intp)
    if hasattr(proba, "iloc"):
        return proba.iloc[rows]
    return proba.take(rows) if hasattr(proba, "to_pydict") else np.asarray(proba)[rows]


def distinct_values(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return what occurs in arrays of labels (n,), once each, missing ones among it.

    Parameters
    ----------
    arrays : sequence of ndarray of shape (n,)

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.data.pieces import distinct_values
    >>> distinct_values([np.array([3.0, np.nan]), np.array([3.0, 1.0, np.nan])])
    array([ 1.,  3., nan])
    """
    whole = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    if whole.dtype.kind != "O":
        return np.unique(whole)
    found: dict[Any, Any] = {}
    for label in whole.tolist():
        found.setdefault(_key(label), label)
    out = np.empty(len(found), dtype=object)
    out[:] = list(found.values())
    return out


def _key(label: Any) -> Any:
    """What tells labels apart: their value and type; all NaN are one."""
    try:
        hash(label)
    except TypeError:  # is refused by those who read it
        return id(label)
    return (type(label), label) if label == label else type(label)
