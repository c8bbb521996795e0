"""Probabilities and labels read together: rows, and what they are of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rows import Rows
from .categories import Scales
from .classes import classes_from_columns, name_classes, warn_of_column_order
from .encoding import read_missing
from .frames import column_names, is_frame, position_named
from .labels import Labels, make_rows, read_labels
from .messages import shown
from .probabilities import read_proba
from .schema import Schema
from .tables import check_one_column, is_two_dimensional
from .weights import count_by_weight, read_groups, read_sample_weight, read_time, read_weight_kind, refuse_both

__all__ = ["Data", "output_names", "read_data"]


@dataclass(frozen=True, eq=False)
class Data:
    """What was read of probabilities, labels and weights.

    Parameters
    ----------
    rows : Rows
    schema : Schema
    declared : bool
        Whether the user gave the classes, and with them their order.
    scales : tuple of M tuples or None, optional
        The order of the classes of each output, where y has one; see :class:`Labels`.
    counts : ndarray of shape (M, K), optional
        Labels of each class, where they have been counted.
    """

    rows: Rows
    schema: Schema
    declared: bool
    scales: Scales | None = None
    counts: NDArray[np.float64] | None = None


def read_data(
    proba: Any,
    y: Any,
    *,
    classes: Any = None,
    missing: Any = None,
    normalize: Any = False,
    sample_weight: Any = None,
    weight_kind: Any = "importance",
    groups: Any = None,
    time: Any = None,
    who: str = "optimize",
) -> Data:
    """Read probabilities, labels, weights and what belongs together of the same rows; see :func:`metricwise.optimize`.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, M), Labels or None
        Labels have been read already, and are not read again.

    Returns
    -------
    Data
    """
    if not isinstance(normalize, (bool, np.bool_)):
        raise ValueError(f"{who}: normalize must be True or False, got {shown(normalize)}.")
    normalize, missing = bool(normalize), read_missing(missing, who)
    known = y if isinstance(y, Labels) else None
    multioutput = _several(y, who)
    if multioutput and known is None:
        check_one_column(y, proba, who)
    declared = classes is not None or known is not None
    if known is None:
        classes = classes_from_columns(proba, y, classes, multioutput, missing)
    else:
        classes = known.classes if multioutput else known.classes[0]
    columns = output_names(proba, y) if multioutput else None
    shape: dict[str, Any] = {"multioutput": multioutput, "classes": classes, "columns": columns, "who": who}
    try:
        read = read_proba(proba, normalize=normalize, **shape)
    except ValueError as error:
        raise (None if y is None or known is not None else _misfit(proba, y, missing, shape)) or error from None
    labels = known if known is not None or y is None else read_labels(y, read, classes, missing, who)
    if declared and known is None and labels is not None and not is_frame(proba):
        warn_of_column_order(read, labels.codes, labels.classes)
    schema = Schema(
        labels.classes if labels is not None else name_classes(classes, read, who),
        read.n_outputs > 1 if multioutput is None else multioutput,
        normalize,
        None if columns is None else tuple(map(str, columns)),
    )
    weight = read_sample_weight(sample_weight, read.n_rows, who)
    rows = make_rows(read, labels, weight)
    if read_weight_kind(weight_kind, weight, who) == "frequency":
        assert weight is not None
        rows = count_by_weight(rows, weight)
    refuse_both(groups, time, who)
    if groups is not None:
        rows = replace(rows, cluster=read_groups(groups, read.n_rows, who))
    elif time is not None:
        rows = replace(rows, cluster=read_time(time, read.n_rows, who))
    if labels is None:
        return Data(rows, schema, declared)
    return Data(rows, schema, declared, labels.scales, labels.counts if weight is None else None)


def _misfit(proba: Any, y: Any, missing: Any, shape: dict[str, Any]) -> Exception | None:
    """Return the error if labels do not fit probabilities that are refused, which is said before what these sum to."""
    try:
        unchecked = read_proba(proba, check=False, **shape)
        if unchecked.width > 1:
            read_labels(y, unchecked, shape["classes"], missing, shape["who"])
    except (ValueError, TypeError) as error:
        return error
    return None


def _several(y: Any, who: str) -> bool | None:
    """Whether there are several outputs by y; None without any."""
    if y is None:
        return None
    return y.multioutput if isinstance(y, Labels) else is_two_dimensional(y, who)


def output_names(proba: Any, y: Any) -> list[Any] | None:
    """Return the names of several outputs: those of the columns of y, or else of multilabel probabilities."""
    if isinstance(y, Labels):
        return None if y.output_names is None else list(y.output_names)
    if is_frame(y):
        return column_names(y)
    names = column_names(proba) if is_frame(proba) else []
    distinct = len(set(map(str, names))) == len(names)
    return names if names and distinct and not position_named(names) else None
