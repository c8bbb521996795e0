"""Labels as integer codes, their positions among the classes.

Labels that are codes already, and small numbers, are read for all outputs at once, others column by column with the
same result. Must not know probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.errors import InvalidParameter, listed, shown
from ..core.labels import check_labels, distinct_arrays, python_labels, split_missing, unique
from ..kernels import code_type

__all__ = ["distinct_values", "encode_column", "recode", "seen_numbers", "small_numbers", "whole_codes"]

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]

_MAX_SMALL_NUMBER = (
    127  # numbers below this are read for all outputs at once: they fit in a byte, and so do their codes
)
_BLOCK_LABELS = 1 << 18  # labels looked at together, so that what they take beside the codes stays small


# ----------------------------------------------------------------------------------------------- all outputs at once


def whole_codes(table: Any, n_classes: IntArray, width: int) -> NDArray[Any] | None:
    """Return integers or booleans (N, M) that are codes already as codes; None if any is not, or may be missing."""
    if type(table) is not np.ndarray or table.dtype.kind not in "iub":
        return None
    return kernels.encode(table.view(np.int8) if table.dtype.kind == "b" else table, n_classes, width)


def small_numbers(table: Any) -> NDArray[np.int8] | None:
    """Return whole numbers (N, M) from 0 to 126 as they are, -1 where one is missing; None if there are others."""
    if type(table) is not np.ndarray or table.dtype.kind not in "iufb" or table.size == 0:
        return None
    whole = whole_codes(table, np.full(table.shape[1], _MAX_SMALL_NUMBER, dtype=np.intp), _MAX_SMALL_NUMBER)
    if whole is not None:
        return whole
    out = np.empty(table.shape, dtype=np.int8)
    for rows in _row_blocks(table):
        values = table[rows]
        gone = np.isnan(values) if table.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
        values = np.where(gone, values.dtype.type(0), values)
        if not (values.min() >= 0 and values.max() < _MAX_SMALL_NUMBER):
            return None
        out[rows] = values
        if (out[rows] != values).any():
            return None
        out[rows][gone] = -1
    return out


def _row_blocks(table: NDArray[Any]) -> Iterator[slice]:
    step = max(1, _BLOCK_LABELS // table.shape[1])
    for start in range(0, len(table), step):
        yield slice(start, start + step)


def seen_numbers(numbers: NDArray[np.int8], width: int) -> BoolArray:
    """Say which of the numbers 0..width-1 each output has, of shape (M, width)."""
    return np.asarray(kernels.tally(numbers, None, width) > 0)


def recode(numbers: NDArray[np.int8], occurs: BoolArray, classes: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
    """Turn small numbers into codes, their positions among the classes of their output; None if one has no code.

    Parameters
    ----------
    numbers : ndarray of shape (N, M)
        Small numbers, -1 where one is missing, which it stays.
    occurs : ndarray of shape (M, width)
        What `seen_numbers` says of them.
    classes : sequence of M ndarrays
        Equal ones as one object.
    """
    which, distinct = distinct_arrays(classes)
    none = -2
    table = np.full((len(distinct), occurs.shape[1] + 1), none, dtype=code_type(max(map(len, distinct))))
    table[:, -1] = -1  # where the number -1 looks
    for row, labels in zip(table, distinct, strict=True):
        for code, label in enumerate(labels.tolist()):
            if _is_number(label) and label in range(occurs.shape[1]):
                row[int(label)] = code
    codes_of_numbers = table[which, :-1]
    if (codes_of_numbers[occurs] == none).any():
        return None
    if (codes_of_numbers == np.arange(codes_of_numbers.shape[1]))[occurs].all():
        return numbers.astype(table.dtype, copy=False)
    out = np.empty(numbers.shape, dtype=table.dtype)
    for rows in _row_blocks(numbers):
        out[rows] = table[which, numbers[rows]]
    return out


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))


# --------------------------------------------------------------------------------------------------- column by column


def encode_column(
    column: Any, classes: NDArray[Any] | None, infer: Callable[[NDArray[Any]], NDArray[Any]], output: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the codes of a column and its classes: those given, or what `infer` makes of the labels seen."""
    values, mask = split_missing(column)
    observed = values[~mask]
    check_labels(observed, output)
    if classes is None:
        classes = infer(observed)
    codes = np.full(len(values), -1, dtype=np.intp)
    observed, keys = _in_one_unit(observed, classes)
    lookup = {label: code for code, label in enumerate(python_labels(keys))}
    labels, inverse = unique(observed)
    try:
        codes[~mask] = np.array([lookup[label] for label in labels], dtype=np.intp)[inverse]
    except KeyError as error:
        label = error.args[0]
        raise InvalidParameter(
            "y",
            problem=f"{output} must hold only the classes {listed(classes)}, got {shown(label)}",
            remedy="missing labels must be NaN, None or masked" if label == -1 else "",
        ) from None
    return codes, classes


def _in_one_unit(values: NDArray[Any], classes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return dates or durations and the classes they are looked up among in a common unit; other labels as they are."""
    kind = values.dtype.kind
    if kind not in "mM":
        return values, classes
    if classes.dtype.kind == "O" and all(hasattr(c, "isoformat" if kind == "M" else "total_seconds") for c in classes):
        try:
            classes = classes.astype(f"{kind}8[us]")
        except (TypeError, ValueError):  # with a time zone
            return values, classes
    if classes.dtype.kind != kind:
        return values, classes
    unit = np.promote_types(values.dtype, classes.dtype)
    return values.astype(unit), classes.astype(unit)


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
    >>> from metricwise.data.encoding import distinct_values
    >>> distinct_values([np.array([3.0, np.nan]), np.array([3.0, 1.0, np.nan])])
    array([ 1.,  3., nan])
    """
    whole = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    if whole.dtype.kind != "O":
        return np.unique(whole)
    distinct: dict[Any, Any] = {}
    for label in whole.tolist():
        distinct.setdefault(_key(label), label)
    out = np.empty(len(distinct), dtype=object)
    out[:] = list(distinct.values())
    return out


def _key(label: Any) -> Any:
    """What tells labels apart: their value and type; all NaN are one."""
    try:
        hash(label)
    except TypeError:  # is refused by those who read it
        return id(label)
    return (type(label), label) if label == label else type(label)
