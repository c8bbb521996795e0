"""Class labels as values: what can be a label, which are missing, distinct ones in order, and their Python types.

Must not know rows, files or data frames.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from numbers import Number
from operator import is_
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import TAGS_REMEDY, InvalidParameter, InvalidType, shown

__all__ = [
    "Categories",
    "Scales",
    "are_labels",
    "are_one",
    "check_labels",
    "decode",
    "distinct_objects",
    "drop_missing",
    "has_masked",
    "in_scale_order",
    "is_masked",
    "is_range",
    "known_positive",
    "label_array",
    "missing_rows",
    "per_output",
    "python_label",
    "python_labels",
    "shared",
    "sorted_labels",
    "split_missing",
    "unique",
]


BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]
T = TypeVar("T")
Scales = tuple[tuple[Any, ...] | None, ...]  # classes of each output from the lowest to the highest


_MAX_COUNTED_RANGE = 1 << 12  # integers this close together are counted instead of sorted


_MEANING = {"classes": "in column order", "order": "from the lowest to the highest"}


_KNOWN_PAIRS: tuple[set[Any], ...] = ({0, 1}, {-1, 1})  # False and True equal 0 and 1


def is_masked(values: Any) -> bool:
    """Whether `values` is a masked array, found out without loading ``numpy.ma``, which takes longer than all of us."""
    kind = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)  # another thread may be importing it just now
    return kind is not None and isinstance(values, kind)


def has_masked(values: Any) -> bool:
    """Whether `values` is a masked array of which at least one entry is masked."""
    return is_masked(values) and bool(np.ma.getmaskarray(values).any())


def are_one(values: Sequence[Any]) -> bool:
    """Whether all values, of which there are some, are one object: found out fast, as there may be a million."""
    return len(values) > 0 and all(map(is_, values, repeat(values[0])))


def distinct_objects(values: Sequence[T]) -> list[T]:
    """Return the distinct objects among values, in their order."""
    return [values[0]] if are_one(values) else list({id(value): value for value in values}.values())


def shared(arrays: Iterable[Any]) -> tuple[NDArray[Any], ...]:
    """Return what it is given as arrays, equal ones as one object: thousands of outputs mostly have the same labels."""
    arrays = tuple(arrays)
    if are_one(arrays):
        return (np.asarray(arrays[0]),) * len(arrays)
    arrays = tuple(map(np.asarray, arrays))
    if len(set(map(id, arrays))) <= 1:
        return arrays
    distinct: dict[Any, NDArray[Any]] = {}
    return tuple(distinct.setdefault((array.dtype.str, array.shape, array.tobytes()), array) for array in arrays)


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


def unique(values: NDArray[Any]) -> tuple[list[Any], IntArray]:
    """Distinct labels, sorted where they can be, and where each value stands among them."""
    if values.dtype.kind in "iu" and len(values) > 0 and int(values.max()) - int(values.min()) < _MAX_COUNTED_RANGE:
        wide = values.astype(np.int64) if values.dtype.kind == "i" else values  # small signed types overflow
        shifted = (wide - wide.min()).astype(np.intp)
        occurs = np.bincount(shifted) > 0
        return (np.flatnonzero(occurs) + int(values.min())).tolist(), (np.cumsum(occurs) - 1)[shifted]
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


def decode(codes: NDArray[Any], classes: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Turn codes (N, M) into labels (N, M)."""
    if len(classes) > 1 and not are_one(classes):
        which, distinct = distinct_arrays(shared(classes))
        if len(distinct) > 1:
            return np.asarray(_padded(distinct)[which, codes])
    return np.asarray(classes[0][codes])


def distinct_arrays(arrays: Sequence[NDArray[Any]]) -> tuple[IntArray, list[NDArray[Any]]]:
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


@dataclass(frozen=True, eq=False)
class Categories:
    """What a categorical column can hold.

    Parameters
    ----------
    labels : ndarray
        In the order in which they were declared.
    ordered : bool
        Whether that order means anything.
    """

    labels: NDArray[Any]
    ordered: bool


def in_scale_order(labels: Sequence[Any], categories: Categories | None) -> list[Any] | None:
    """Return labels in the order of the categories; None where these have none, or lack one of the labels."""
    if categories is None or not categories.ordered:
        return None
    place = {label: at for at, label in enumerate(python_labels(categories.labels))}
    return sorted(labels, key=place.__getitem__) if set(labels) <= set(place) else None


def _is_scalar(values: Any) -> bool:
    return getattr(values, "shape", None) == ()


def per_output(classes: Any, n_outputs: int, parameter: str = "classes") -> list[Any]:
    """Class labels of each output, None where they are not known; labels given once are those of every output."""
    if classes is None:
        return [None] * n_outputs
    if (
        isinstance(classes, (str, bytes, set, frozenset, dict))
        or not hasattr(classes, "__len__")
        or _is_scalar(classes)
    ):
        raise InvalidType(
            parameter, f"be a list of labels {_MEANING[parameter]}, or one such list per output", shown(classes)
        )
    items = list(classes)
    lists = [hasattr(item, "__len__") and not isinstance(item, (str, bytes)) for item in items]
    nested = any(lists)
    if nested and not all(is_list or item is None for item, is_list in zip(items, lists, strict=True)):
        raise InvalidType(parameter, "be labels, or a list of labels for each output", shown(items))
    if nested and len(items) != n_outputs:
        raise InvalidParameter(parameter, f"hold the labels of each of {n_outputs} outputs", f"{len(items)} lists")
    return items if nested else [items] * n_outputs


def known_positive(labels: Iterable[Any]) -> Any:
    """Return class 1 of {0, 1} and {-1, 1}, True of {False, True}; None for other labels, and for text.

    Examples
    --------
    >>> from metricwise.core.labels import known_positive
    >>> known_positive([-1, 1]), known_positive([True, False]), known_positive(["0", "1"])
    (1, True, None)
    """
    pair = list(labels)
    numbers = all(isinstance(label, (Number, np.bool_)) and not isinstance(label, complex) for label in pair)
    return max(pair) if numbers and len(pair) == 2 and set(pair) in _KNOWN_PAIRS else None
