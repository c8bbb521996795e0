"""From labels to codes and back: values in, positions among the classes out.

Owns what a label is, and when one is missing. Labels that are codes already, and small numbers with gaps, are read for
all outputs at once; whatever else there is goes column by column and gives the same. Must not know probabilities.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.errors import TAGS_REMEDY, InvalidParameter, InvalidType, listed, shown
from ..kernels import code_type

__all__ = [
    "are_labels",
    "check_labels",
    "code_type",
    "decode",
    "drop_missing",
    "encode_column",
    "has_masked",
    "is_masked",
    "is_range",
    "label_array",
    "missing_rows",
    "python_label",
    "python_labels",
    "recode",
    "seen_numbers",
    "shared",
    "small_numbers",
    "sorted_labels",
    "split_missing",
    "unique",
    "whole_codes",
]

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]

_FEW_LABELS = 1 << 12  # integers this close together are counted instead of sorted
_SMALL = 127  # numbers below this are read for all outputs at once: they fit in a byte, and so do their codes
_BLOCK = 1 << 18  # labels looked at together, so that what they take beside the codes stays small


def is_masked(values: Any) -> bool:
    """Whether `values` is a masked array, found out without loading ``numpy.ma``, which takes longer than all of us."""
    module = sys.modules.get("numpy.ma")
    return module is not None and bool(module.isMaskedArray(values))


def has_masked(values: Any) -> bool:
    """Whether `values` is a masked array of which at least one entry is masked."""
    return is_masked(values) and bool(np.ma.getmaskarray(values).any())


def shared(arrays: Iterable[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
    """Return the arrays, equal ones as one object: thousands of outputs mostly have the same few labels."""
    arrays = tuple(arrays)
    if len(set(map(id, arrays))) <= 1:
        return arrays
    found: dict[Any, NDArray[Any]] = {}
    return tuple(found.setdefault((array.dtype.str, array.shape, array.tobytes()), array) for array in arrays)


def label_array(labels: Any) -> NDArray[Any]:
    """Labels as a 1-D array that keeps mixed types apart (never 1 and 'a' both as strings)."""
    array = np.asarray(labels)
    if array.dtype.kind in "US" and not all(isinstance(label, (str, bytes)) for label in labels):
        array = np.empty(len(labels), dtype=object)
        array[:] = list(labels)
    return array


def python_label(label: Any) -> Any:
    """Return a label as Python's own type; a date or a duration, which may come out as a bare number, as it is."""
    return label.item() if isinstance(label, np.generic) and label.dtype.kind not in "mM" else label


def python_labels(labels: NDArray[Any]) -> list[Any]:
    """Return an array of labels as Python's own types, out of object arrays too; see :func:`python_label`."""
    return [python_label(label) for label in (labels if labels.dtype.kind in "mM" else labels.tolist())]


def is_range(classes: NDArray[Any]) -> bool:
    """Whether labels are their own codes."""
    return classes.dtype.kind in "iub" and classes.tolist() == list(range(len(classes)))


def decode(codes: NDArray[Any], classes: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Turn codes (N, M) into labels (N, M)."""
    if len(classes) > 1:
        which, distinct = _distinct(shared(classes))
        if len(distinct) > 1:
            return np.asarray(_padded(distinct)[which, codes])
    return np.asarray(classes[0][codes])


def _distinct(arrays: Sequence[NDArray[Any]]) -> tuple[IntArray, list[NDArray[Any]]]:
    """Return the distinct objects among arrays, and which of them each is."""
    places: dict[int, int] = {}
    which = np.array([places.setdefault(id(array), len(places)) for array in arrays], dtype=np.intp)
    by_id = {id(array): array for array in arrays}
    return which, [by_id[key] for key in places]


def _padded(classes: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Labels of several outputs as the rows of one array; as objects where one type would change some of them."""
    same = len({labels.dtype.kind for labels in classes}) == 1
    dtype = np.result_type(*classes) if same else np.dtype(object)
    out = np.empty((len(classes), max(map(len, classes))), dtype=dtype)
    for row, labels in zip(out, classes, strict=True):
        row[: len(labels)] = labels
    return out


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
    whole = whole_codes(table, np.full(table.shape[1], _SMALL, dtype=np.intp), _SMALL)
    if whole is not None:
        return whole
    out = np.empty(table.shape, dtype=np.int8)
    for rows in _row_blocks(table):
        values = table[rows]
        gone = np.isnan(values) if table.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
        values = np.where(gone, values.dtype.type(0), values)
        if not (values.min() >= 0 and values.max() < _SMALL):
            return None
        out[rows] = values
        if (out[rows] != values).any():
            return None
        out[rows][gone] = -1
    return out


def _row_blocks(table: NDArray[Any]) -> Iterator[slice]:
    step = max(1, _BLOCK // table.shape[1])
    for start in range(0, len(table), step):
        yield slice(start, start + step)


def seen_numbers(numbers: NDArray[np.int8], width: int) -> BoolArray:
    """Say which of the numbers 0..width-1 each output has, of shape (M, width)."""
    return np.asarray(kernels.tally(numbers, None, width) > 0)


def recode(numbers: NDArray[np.int8], seen: BoolArray, classes: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
    """Turn small numbers into codes, their positions among the classes of their output; None if one has no code.

    Parameters
    ----------
    numbers : ndarray of shape (N, M)
        Small numbers, -1 where one is missing, which it stays.
    seen : ndarray of shape (M, width)
        What `seen_numbers` says of them.
    classes : sequence of M ndarrays
        Equal ones as one object.
    """
    which, distinct = _distinct(classes)
    none = -2
    table = np.full((len(distinct), seen.shape[1] + 1), none, dtype=code_type(max(map(len, distinct))))
    table[:, -1] = -1  # where the number -1 looks
    for row, labels in zip(table, distinct, strict=True):
        for code, label in enumerate(labels.tolist()):
            if _is_number(label) and label in range(seen.shape[1]):
                row[int(label)] = code
    own = table[which, :-1]
    if (own[seen] == none).any():
        return None
    if (own == np.arange(own.shape[1]))[seen].all():
        return numbers.astype(table.dtype, copy=False)
    out = np.empty(numbers.shape, dtype=table.dtype)
    for rows in _row_blocks(numbers):
        out[rows] = table[which, numbers[rows]]
    return out


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))


# --------------------------------------------------------------------------------------------------- column by column


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return bool(value != value)


def split_missing(column: Any) -> tuple[NDArray[Any], BoolArray]:
    """Return the values of a column, and which of them are missing."""
    mask = np.ma.getmaskarray(column) if is_masked(column) else np.zeros(len(column), dtype=bool)
    values = np.asarray(column)
    if values.dtype.kind == "f":
        mask = mask | np.isnan(values)
    elif values.dtype.kind in "mM":
        mask = mask | np.isnat(values)
    elif values.dtype.kind == "O":
        mask = mask | np.fromiter((_is_missing(v) for v in values), dtype=bool, count=len(values))
    return values, mask


def missing_rows(values: NDArray[Any]) -> IntArray:
    """Return the rows of an array of objects in which something is missing."""
    if values.ndim == 0:
        return np.empty(0, dtype=np.intp)
    gone = np.fromiter((_is_missing(v) for v in values.flat), dtype=bool, count=values.size)
    return np.flatnonzero(gone.reshape(len(values), -1).any(axis=1))


def drop_missing(column: Any) -> NDArray[Any]:
    """Return the labels of a column that are not missing."""
    values, mask = split_missing(column)
    return values[~mask]


def are_labels(values: Sequence[Any]) -> bool:
    """Whether values can be looked up, as lists and dictionaries cannot."""
    try:
        set(values)
    except TypeError:
        return False
    return True


def check_labels(values: NDArray[Any], output: str) -> None:
    """Refuse what cannot be a label."""
    if values.dtype.kind != "O" or are_labels(values.tolist()):
        return
    first = next(value for value in values.tolist() if not are_labels([value]))
    tags = f"; {TAGS_REMEDY}" if isinstance(first, (list, set)) else ""
    raise InvalidType("y", problem=f"{output} must hold labels, such as text and numbers, got {shown(first)}{tags}")


def encode_column(
    column: Any, classes: NDArray[Any] | None, infer: Callable[[NDArray[Any]], NDArray[Any]], output: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the codes of a column and its classes: those given, or what `infer` makes of the labels seen."""
    values, mask = split_missing(column)
    seen = values[~mask]
    check_labels(seen, output)
    if classes is None:
        classes = infer(seen)
    codes = np.full(len(values), -1, dtype=np.intp)
    seen, keys = _in_one_unit(seen, classes)
    lookup = {label: code for code, label in enumerate(python_labels(keys))}
    labels, inverse = unique(seen)
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


def unique(values: NDArray[Any]) -> tuple[list[Any], IntArray]:
    """Distinct labels, sorted where they can be, and where each value stands among them."""
    if values.dtype.kind in "iu" and len(values) > 0 and int(values.max()) - int(values.min()) < _FEW_LABELS:
        wide = values.astype(np.int64) if values.dtype.kind == "i" else values  # small signed types overflow
        shifted = (wide - wide.min()).astype(np.intp)
        seen = np.bincount(shifted) > 0
        return (np.flatnonzero(seen) + int(values.min())).tolist(), (np.cumsum(seen) - 1)[shifted]
    if values.dtype.kind != "O":
        labels, inverse = np.unique(values, return_inverse=True)
        return python_labels(labels), inverse.reshape(-1)
    distinct = sorted_labels(list(dict.fromkeys(values.tolist())))
    lookup = {label: code for code, label in enumerate(distinct)}
    return distinct, np.fromiter((lookup[v] for v in values.tolist()), dtype=np.intp, count=len(values))


def sorted_labels(labels: list[Any]) -> list[Any]:
    """Sort labels, by type and text where they cannot be compared."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))
