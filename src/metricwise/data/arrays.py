"""Probabilities and labels read together: rows, and what they are of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.rows import Probabilities, Rows
from .classes import classes_from_columns, name_classes, named_order
from .encoding import drop_missing, unique
from .frames import column_names, columns_of, is_frame, position_named, surplus_columns
from .label_tables import check_one_column, is_two_dimensional, read_table, table_columns
from .labels import Labels, make_rows, read_labels
from .order import read_order
from .probabilities import read_proba
from .row_spec import RowSpec
from .schema import Schema
from .single_column import is_single, positive_last
from .time_order import read_time
from .weights import check_frequencies, count_by_weight, read_groups, read_sample_weight

__all__ = ["Data", "output_names", "read_data"]


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
    known = y if isinstance(y, Labels) else None
    multioutput = _several(y)
    if multioutput and known is None:
        check_one_column(y, proba)
    declared = classes is not None or known is not None
    if known is None:
        classes = classes_from_columns(proba, y, classes, multioutput)
    else:
        classes = known.classes if multioutput else known.classes[0]
    columns = output_names(proba, y) if multioutput else None
    shape: dict[str, Any] = {"multioutput": multioutput, "classes": classes, "columns": columns}
    try:
        read = proba if isinstance(proba, Probabilities) else read_proba(proba, normalize=spec.normalize, **shape)
    except (ValueError, TypeError) as error:
        surplus = None if declared else _surplus(proba, y, spec.normalize, shape)
        misfit = surplus if surplus or y is None or known is not None else _misfit(proba, y, shape)
        raise misfit or error from None
    labels = known if known is not None or y is None else read_labels(y, read, classes)
    names = labels.classes if labels is not None else name_classes(classes, read)
    single = is_single(read)
    if single and known is None:
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
    )
    weight = read_sample_weight(spec.weight, read.n_rows)
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
    """Return the error if labels do not fit probabilities that are refused, which is said before what these sum to."""
    try:
        unchecked = read_proba(proba, check=False, **shape)
        if unchecked.width > 1:
            read_labels(y, unchecked, shape["classes"])
    except (ValueError, TypeError) as error:
        return error
    return None


def _surplus(proba: Any, y: Any, normalize: bool, shape: dict[str, Any]) -> Exception | None:
    """Return the error if a frame is refused for columns that are no class, without which it is fine.

    These are columns that y does not show; without y, those whose values can be no probabilities.
    """
    if not is_frame(proba) or shape["multioutput"] or position_named(column_names(proba)):
        return None
    names = column_names(proba)
    if y is None:
        columns = map(np.asarray, columns_of(proba))
        further = [name for name, own in zip(names, columns, strict=True) if not _may_be_probabilities(own)]
    else:
        (labels,) = table_columns(read_table(y)[0])
        seen = set(map(str, unique(drop_missing(labels))[0]))
        further = [name for name in names if str(name) not in seen]
    kept = [name for name in names if name not in further]
    if not further or len(kept) < 2:
        return None
    some = proba.select(kept) if hasattr(proba, "select") else proba[kept]
    try:
        read_proba(some, normalize=normalize, **{**shape, "classes": kept})
    except (ValueError, TypeError):
        return None
    return surplus_columns(proba, further, kept, kind="class" if y is None else "label of y")


def _may_be_probabilities(values: NDArray[Any]) -> bool:
    """Whether all values of a column are numbers from 0 to 1."""
    return values.dtype.kind in "fiub" and bool(((values >= 0) & (values <= 1)).all())


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
