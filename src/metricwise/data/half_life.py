"""Half-lives: how fast the weight of a row falls with its age, as a number, a timedelta or text such as "30d".

Must not know weights that users pass, nor what times mean for resamples and intervals.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import timedelta
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType, shown

__all__ = ["HalfLife"]

FloatArray = NDArray[np.float64]

# Seconds of the units that have a fixed length, by their names in NumPy; months and years have none.
_SECONDS = {"W": 604_800.0, "D": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
# How many of the other units are a second: dividing by these is exact for whole seconds, multiplying by 1e-9 is not.
_PER_SECOND = {"ms": 1e3, "us": 1e6, "ns": 1e9, "ps": 1e12, "fs": 1e15, "as": 1e18}
_TEXT_UNITS = {"w": "W", "d": "D", "h": "h", "min": "m", "s": "s"}
_TEXT = re.compile(rf"(\d+\.?\d*|\.\d+)\s*({'|'.join(_TEXT_UNITS)})", re.IGNORECASE)
_UNIT_NAMES = {"D": "day", "h": "hour", "m": "minute", "s": "second"}

_DURATION = "a timedelta, or text such as '30d', '12h' or '2w' (units: s, min, h, d, w)"


@dataclass(frozen=True)
class HalfLife:
    """The age at which a row has half of the weight of the latest one.

    Parameters
    ----------
    length : float
        In seconds for dates, else in the unit of the times.
    is_duration : bool
        Whether it is for dates and durations, not for numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.data.half_life import HalfLife
    >>> HalfLife.of("12h").decay(np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")).tolist()
    [0.25, 1.0]
    """

    length: float
    is_duration: bool

    @classmethod
    def of(cls, value: Any) -> HalfLife:
        """Read a half-life: a positive number, a timedelta of any library, or text."""
        if isinstance(value, str):
            half_life = cls(_seconds_of_text(value), is_duration=True)
        elif isinstance(value, (timedelta, np.timedelta64)):
            half_life = cls(_seconds_of_timedelta(value), is_duration=True)
        elif isinstance(value, bool) or not isinstance(value, Real):
            raise InvalidType("half_life", f"be a number for numeric times, and for dates {_DURATION}", shown(value))
        else:
            half_life = cls(_as_float(value), is_duration=False)
        if not (math.isfinite(half_life.length) and half_life.length > 0):
            raise InvalidParameter("half_life", "be positive and finite", shown(value))
        return half_life

    def __str__(self) -> str:
        if not self.is_duration:
            return f"{self.length:g} unit{'' if self.length == 1 else 's'} of time"
        unit = next((unit for unit in _UNIT_NAMES if self.length >= _SECONDS[unit]), "s")
        number = f"{self.length / _SECONDS[unit]:.4g}"
        return f"{number} {_UNIT_NAMES[unit]}{'' if number == '1' else 's'}"

    def decay(self, moments: NDArray[Any], counted: NDArray[np.bool_] | None = None) -> FloatArray:
        """Return the weights (N,) of rows by their times, 1 for the latest.

        Parameters
        ----------
        moments : ndarray of shape (N,)
            Numbers, dates or durations.
        counted : bool ndarray of shape (N,), optional
            Rows that weigh anything at all: the latest one is among these, so that all weights cannot vanish.
        """
        if self.is_duration != (moments.dtype.kind in "mM"):
            raise self._refusal
        latest = moments.max() if counted is None or not counted.any() else moments[counted].max()
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(0.5 ** (_ages(moments, latest) / self.length), dtype=np.float64)

    @property
    def _refusal(self) -> InvalidParameter:
        """The error for times of another kind."""
        if self.is_duration:
            must, remedy = "be a number if times are numbers", "pass it in the unit of the times"
            return InvalidParameter("half_life", must, str(self), remedy)
        return InvalidParameter("half_life", f"be a length of time if times are dates: {_DURATION}", f"{self.length:g}")


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # of an integer
        return math.inf


def _seconds_of_text(text: str) -> float:
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise InvalidParameter("half_life", f"be a number, {_DURATION}", shown(text))
    return float(match[1]) * _SECONDS[_TEXT_UNITS[match[2].lower()]]


def _seconds_of_timedelta(value: Any) -> float:
    """Return the seconds of a timedelta; those of pandas have nanoseconds, which Python's do not."""
    if hasattr(value, "to_timedelta64"):
        value = value.to_timedelta64()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if np.isnat(value):
        return float("nan")
    return float(_in_seconds(np.float64(value.astype(np.int64)), value.dtype, "half_life"))


def _in_seconds(lengths: Any, dtype: np.dtype[Any], parameter: str) -> Any:
    """Return the seconds of lengths, floats, in the unit of a NumPy type."""
    unit, count = np.datetime_data(dtype)
    if unit in _PER_SECOND:
        return lengths * count / _PER_SECOND[unit]
    if unit not in _SECONDS:
        name = {"Y": "years", "M": "months"}.get(unit, "durations without a unit")
        raise InvalidParameter(parameter, "have a unit of fixed length, of weeks at most", name, "pass days")
    return lengths * (_SECONDS[unit] * count)


def _ages(moments: NDArray[Any], latest: Any) -> FloatArray:
    """Return how long before the latest of the rows that count each row was, (N,), 0 if it was later."""
    if moments.dtype.kind == "f":
        if not np.isfinite(moments).all():
            raise InvalidParameter("time", "be finite if rows have a half-life", "infinity", "drop such rows")
        return np.asarray(np.maximum(np.float64(latest) - moments.astype(np.float64), 0.0))
    if moments.dtype.kind == "M" and np.datetime_data(moments.dtype)[0] in "YM":
        moments, latest = moments.astype("datetime64[D]"), latest.astype("datetime64[D]")
    # Differences of integers are exact as unsigned ones, also where they exceed the range of signed ones.
    whole = np.append(np.minimum(moments, latest), latest)
    whole = whole.astype(np.uint64 if moments.dtype.kind == "u" else np.int64).view(np.uint64)
    ages = np.asarray(whole[-1:] - whole[:-1], dtype=np.float64)
    return ages if moments.dtype.kind in "iu" else np.asarray(_in_seconds(ages, moments.dtype, "time"))
