"""Rows and schema from arrays in memory, and from pieces of arrays that are read alike.

Must not know where pieces come from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.inputs import Input
from ..core.labels import drop_missing, unique
from ..core.probabilities import Probabilities
from ..core.rows import Rows
from ..core.schema import Schema
from .classes import name_classes, read_order
from .column_classes import classes_from_columns, named_order
from .frames import (
    check_one_column,
    column_names,
    columns_of,
    is_frame,
    is_two_dimensional,
    position_named,
    read_table,
    repeat_first_row,
    select_columns,
    surplus_columns,
    table_columns,
)
from .grades import grades_of
from .labels import Labels, make_rows, read_labels
from .logits import OTHER_INPUT, Remedies
from .probabilities import read_proba
from .row_spec import Piece, RowSpec
from .sensitive import Partition
from .single_column import is_single, positive_last
from .weights import (
    check_frequencies,
    count_by_weight,
    read_groups,
    read_piece_groups,
    read_piece_weight,
    read_row_weight,
    read_time,
)

__all__ = ["Data", "PieceReader", "output_names", "read_data"]


@dataclass(frozen=True, eq=False)
class Data:
    """What was read of probabilities, labels and weights.

    Parameters
    ----------
    rows : Rows
    schema : Schema
    counts : ndarray of shape (M, K), optional
        Labels of each class, where they have been counted.
    """

    rows: Rows
    schema: Schema
    counts: NDArray[np.float64] | None = None


def read_data(spec: RowSpec) -> Data:
    """Read probabilities, labels, weights and what belongs together of rows in memory.

    Parameters
    ----------
    spec : RowSpec
        Probabilities and labels that have been read already (:class:`Probabilities`, :class:`Labels`) are not read
        again.

    Returns
    -------
    Data
    """
    proba, y, classes = spec.proba, spec.y, spec.classes
    read_before = y if isinstance(y, Labels) else None
    multioutput = _several(y)
    if multioutput and read_before is None:
        check_one_column(y, proba)
    row_input = Input.of(spec.input)
    grades = grades_of(spec) if row_input.is_scores and read_before is None else None
    if grades is not None:
        row_input, classes = replace(row_input, graded=True), grades
    declared = classes is not None or read_before is not None
    if read_before is None:
        classes = classes_from_columns(proba, y, classes, multioutput)
    else:
        classes = read_before.classes if multioutput else read_before.classes[0]
    columns = output_names(proba, y) if multioutput else None
    shape: dict[str, Any] = {
        "multioutput": multioutput,
        "classes": classes,
        "columns": columns,
        "row_input": row_input,
        "remedies": OTHER_INPUT,
    }
    try:
        read = proba if isinstance(proba, Probabilities) else read_proba(proba, normalize=spec.normalize, **shape)
    except (ValueError, TypeError) as error:
        surplus = None if declared else _surplus(proba, y, spec.normalize, shape)
        misfit = surplus if surplus or y is None or read_before is not None else _misfit(proba, y, shape)
        raise misfit or error from None
    labels = read_before if read_before is not None or y is None else read_labels(y, read, classes)
    names = labels.classes if labels is not None else name_classes(classes, read)
    single = is_single(read) and grades is None
    if single and read_before is None:
        names, codes, turned = positive_last(names, None if labels is None else labels.codes, spec.pos_label)
        if labels is not None and codes is not None and turned:
            labels = replace(labels, classes=names, codes=codes, counts=None)
    schema = Schema(
        names,
        read.n_outputs > 1 if multioutput is None else multioutput,
        spec.normalize,
        None if columns is None else tuple(map(str, columns)),
        order=read_order(spec.order, names, None if labels is None else labels.scales),
        single=single,
        column_order=None if single else named_order(proba, names),
        input=replace(row_input, base=read.link) if row_input.is_logits else row_input,
    )
    weight = read_row_weight(spec, read.n_rows)
    rows = make_rows(read, labels, weight)
    if weight is not None and spec.counts_rows:
        check_frequencies(weight)
        rows = count_by_weight(rows, weight)
    if spec.time is not None:
        rows = replace(rows, cluster=read_time(spec.time, read.n_rows))
    elif spec.groups is not None:
        rows = replace(rows, cluster=read_groups(spec.groups, read.n_rows))
    return Data(rows, schema, labels.counts if labels is not None and weight is None else None)


def _misfit(proba: Any, y: Any, shape: dict[str, Any]) -> Exception | None:
    """Return the error if labels do not fit the probabilities, which takes precedence over invalid probabilities."""
    try:
        unchecked = read_proba(proba, check=False, **shape)
        if unchecked.width > 1:
            read_labels(y, unchecked, shape["classes"])
    except (ValueError, TypeError) as error:
        return error
    return None


def _surplus(proba: Any, y: Any, normalize: bool, shape: dict[str, Any]) -> Exception | None:
    """Return the error if a frame is refused for columns that are no class, without which it is fine.

    These are columns that y does not show; without y, those whose values can be no probabilities, or no numbers at all.
    """
    names = column_names(proba) if is_frame(proba) else []
    if not names or shape["multioutput"] or position_named(names) or len(set(map(str, names))) < len(names):
        return None
    if y is None:
        columns = map(np.asarray, columns_of(proba))
        further = [
            name for name, values in zip(names, columns, strict=True) if not _may_be_of(values, shape["row_input"])
        ]
    else:
        (labels,) = table_columns(read_table(y)[0])
        observed = set(map(str, unique(drop_missing(labels))[0]))
        further = [name for name in names if str(name) not in observed]
    kept = [name for name in names if name not in further]
    if not further or len(kept) < 2:
        return None
    try:
        read_proba(select_columns(proba, kept), normalize=normalize, **{**shape, "classes": kept})
    except (ValueError, TypeError):
        return None
    return surplus_columns(proba, further, kept, kind="class" if y is None else "label of y")


def _may_be_of(values: NDArray[Any], row_input: Input) -> bool:
    """Whether all values of a column are numbers, from 0 to 1 if they are to be probabilities."""
    if values.dtype.kind not in "fiub":
        return False
    return row_input.is_logits or bool(((values >= 0) & (values <= 1)).all())


def _several(y: Any) -> bool | None:
    """Whether there are several outputs by y; None without any."""
    if y is None:
        return None
    return y.multioutput if isinstance(y, Labels) else is_two_dimensional(y)


def output_names(proba: Any, y: Any) -> list[Any] | None:
    """Return the names of several outputs: those of the columns of y, or else of multilabel probabilities."""
    if isinstance(y, Labels):
        return None if y.output_names is None else list(y.output_names)
    if is_frame(y):
        return column_names(y)
    names = column_names(proba) if is_frame(proba) else []
    distinct = len(set(map(str, names))) == len(names)
    return names if names and distinct and not position_named(names) else None


# --------------------------------------------------------------------------------------------- rows in pieces


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
    partition : Partition, optional
        The sensitive groups of rows.
    remedies : Remedies, optional
        What to do with numbers that are something else, for error messages.

    See Also
    --------
    PieceReader.of : settle these from a few rows and the labels that occur.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.data.arrays import PieceReader
    >>> from metricwise.data.row_spec import Piece
    >>> from metricwise.data.row_spec import RowSpec
    >>> head = RowSpec(np.array([[0.2, 0.8]]), np.array(["no", "yes"]))
    >>> reader = PieceReader.of(head)
    >>> rows = reader.rows(Piece(np.array([[0.6, 0.4], [0.3, 0.7]]), np.array(["yes", "yes"])), start=1000)
    >>> rows.codes.ravel().tolist(), rows.start
    ([1, 1], 1000)
    """

    schema: Schema
    multioutput: bool | None
    classes: Any
    columns: list[Any] | None
    counts_rows: bool = False
    remedies: Remedies = OTHER_INPUT
    partition: Partition | None = None

    @classmethod
    def of(cls, head: RowSpec) -> PieceReader:
        """Settle what the whole is of.

        Parameters
        ----------
        head : RowSpec
            The first row or more of the probabilities; and in the place of labels the distinct ones of all rows, as
            many as there are, missing ones among them. Of weights it is enough that there are some.
        """
        several = None if head.y is None else is_two_dimensional(head.y)
        n_rows = 1 if head.y is None else len(head.y)
        proba = _repeated(head.proba, n_rows)
        weight = None if head.weight is None else np.ones(n_rows)
        data = read_data(replace(head, proba=proba, sample_weight=weight, groups=None))
        classes = classes_from_columns(proba, head.y, head.classes, several)
        classes = data.schema.classes[0] if data.schema.input.graded else classes
        columns = output_names(proba, head.y) if several else None
        return cls(data.schema, several, classes, columns, head.counts_rows)

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
            row_input=self.schema.input,
            remedies=self.remedies,
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
        if piece.partition is not None and self.partition is not None:
            rows = replace(rows, group=self.partition.codes(piece.partition, proba.n_rows))
        return rows


def _repeated(proba: Any, n_rows: int) -> Any:
    """Return copies of the first row of probabilities."""
    if isinstance(proba, (list, tuple)):
        return [_repeated(output, n_rows) for output in proba]
    if is_frame(proba):
        return repeat_first_row(proba, n_rows)
    return np.asarray(proba)[np.zeros(n_rows, dtype=np.intp)]
