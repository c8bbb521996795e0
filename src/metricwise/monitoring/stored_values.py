"""Strict readers of the values in the file of a watch: numbers, counts, arrays, ids. Must not know watches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter
from ..rules import codec

__all__ = [
    "read_array",
    "read_bound",
    "read_count",
    "read_counts",
    "read_each",
    "read_limits",
    "read_number",
    "read_optional",
    "read_stored_ids",
    "refuse",
    "write_number",
]

Id = str | int
Shape = tuple[int | None, ...]
T = TypeVar("T")

_MAX_COUNT = 2**53  # above which floats are no longer all whole numbers


def refuse(name: str, expected: str, value: Any) -> NoReturn:
    """Refuse a value."""
    raise InvalidParameter(name, f"be {expected}", codec.shown(value))


def write_number(value: float | None) -> float | None:
    """Return a number; None where there is none, or it is infinite."""
    return None if value is None or not math.isfinite(value) else float(value)


def read_number(value: Any, name: str) -> float:
    """Read a finite number."""
    return float(codec.read_numbers([value], name, 1)[0])


def read_bound(value: Any, name: str, absent: float) -> float:
    """Read a number; null is `absent`."""
    return absent if value is None else read_number(value, name)


def read_count(value: Any, name: str, least: int = 0) -> int:
    """Read an integer that is not too small."""
    if not least <= codec.read_int(value, name) <= _MAX_COUNT:
        refuse(name, f"an integer from {least}", value)
    return int(value)


def read_optional(value: Any, name: str, read: Callable[[Any, str], T]) -> T | None:
    """Read a value, or null."""
    return None if value is None else read(value, name)


def read_each(value: Any, name: str, read: Callable[[Any, str], T], length: int | None = None) -> tuple[T, ...]:
    """Read a list, of a given length if it has one."""
    if not isinstance(value, list) or (length is not None and len(value) != length):
        refuse(name, "a list" if length is None else f"a list of {length}", value)
    return tuple(read(entry, f"{name}[{place}]") for place, entry in enumerate(value))


def read_array(value: Any, name: str, shape: Shape) -> NDArray[np.float64]:
    """Read an array of finite numbers of a shape; None stands for any length."""
    if value == [] and shape[0] is None:
        return np.zeros((0, *(length or 0 for length in shape[1:])))
    array = codec.read_numbers(value, name, len(shape))
    if any(length not in (None, actual) for length, actual in zip(shape, array.shape, strict=True)):
        refuse(name, f"an array of shape {shape}".replace("None", "n"), value)
    return array


def read_counts(value: Any, name: str, shape: Shape, dtype: type = np.intp) -> NDArray[Any]:
    """Read an array of integers from 0; see :func:`read_array`."""
    array = read_array(value, name, shape)
    if ((array != np.round(array)) | (array < 0) | (array > _MAX_COUNT)).any():
        refuse(name, "made of integers from 0", value)
    return array.astype(dtype)


def read_limits(value: Any, name: str) -> tuple[float, float]:
    """Read two numbers, null where there is no limit."""
    low, high = read_each(value, name, lambda entry, where: entry if entry is None else read_number(entry, where), 2)
    return (-math.inf if low is None else low), (math.inf if high is None else high)


def read_stored_ids(value: Any, name: str, length: int | None = None) -> tuple[Id, ...]:
    """Read distinct ids of rows."""

    def read(entry: Any, where: str) -> Id:
        if isinstance(entry, bool) or not isinstance(entry, (str, int)):
            refuse(where, "text or an integer", entry)
        return entry

    ids = read_each(value, name, read, length)
    if len(set(ids)) < len(ids):
        refuse(name, "distinct ids", value)
    return ids
