"""The order of rows in time, and which of them are neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, entry_point, shown
from .by_row import RowValues
from .weights import read_column

__all__ = ["InTime", "read_time", "stretches"]

IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class InTime(RowValues):
    """When rows were observed, and how far they depend on one another: a value for `groups`.

    Parameters
    ----------
    time : array-like of shape (N,)
        When each row was observed, as numbers or dates.
    length : int, optional
        Rows further apart in time than this number of rows are taken to be independent of one another: stretches of so
        many neighbours are kept together in resamples and standard errors. It should be several times as long as
        dependence lasts. None: measured on the rows.

    See Also
    --------
    metricwise.optimize : Find a rule, judged on stretches of time that it was not fitted to.
    metricwise.evaluate : Evaluate a rule, with intervals that allow for dependence.

    Notes
    -----
    The length is measured by the spectrum of the influences of rows on the metric, and of the differences of labels
    and probabilities: the slow part is fitted by an autoregression of order 1 with noise, by Whittle's likelihood. It
    is at least the cube root of N and a 24th of N, because weak dependence that lasts cannot be told from none,
    and at most a fifth of N. Intervals have the quantiles of Student's distribution for the number of stretches.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.beta(1, 3, 1000)
    >>> y = (rng.random(1000) < proba).astype(int)
    >>> rule = mw.WeightedRule.from_thresholds(0.35)
    >>> evaluation = mw.evaluate(rule, proba, y, "f1", groups=mw.InTime(np.arange(1000), length=20))
    >>> evaluation.notes[0]
    'Rows are taken to depend on one another over at most 20 rows (as given): intervals rest on 50 stretches of time.'
    """

    time: Any
    length: int | None = None

    by_row: ClassVar[str] = "time"

    @entry_point("{class}")
    def __post_init__(self) -> None:
        length: Any = self.length
        if length is None:
            return
        if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 1:
            raise InvalidParameter("length", "be a whole number of rows, at least 1", shown(length))


def read_time(time: InTime, n_rows: int) -> IntArray:
    """Read the order of rows in time, as codes of shape (N,), ascending with time; rows of one time have one code.

    Parameters
    ----------
    time : InTime
        Of numbers or dates.
    """
    values = read_column(time.time, n_rows, "time")
    if values.dtype.kind == "O":
        values = _moments(values.tolist())
    if values.dtype.kind not in "iufmM":
        raise InvalidParameter(
            "time", "hold numbers or dates", shown(values[0]), "convert text to dates with pandas.to_datetime"
        )
    moments, place = np.unique(values, return_inverse=True)
    if len(moments) < 2:
        raise InvalidParameter(
            "time", "hold at least two different times", "one", "leave InTime out if rows have no order in time"
        )
    if time.length is not None and time.length > n_rows // 2:
        raise InvalidParameter(
            "",
            problem=(
                f"the length of InTime must be at most half of the number of rows, {n_rows // 2}, because "
                f"intervals rest on several stretches of that length, got {time.length}"
            ),
        )
    return place.reshape(-1).astype(np.intp)


def stretches(place: IntArray, length: int) -> IntArray:
    """Return codes (N,) of stretches of about so many neighbours in time, ascending; rows of one time are in one.

    Parameters
    ----------
    place : ndarray of shape (N,)
        Codes of times, ascending.
    length : int
    """
    before = np.cumsum(np.bincount(place)) - 1
    n_stretches = max(round(len(place) / length), 2)
    runs = np.unique(before * n_stretches // len(place), return_inverse=True)[1].reshape(-1)
    codes = runs[place].astype(np.intp)
    return codes if codes.max() else place


def _moments(values: list[Any]) -> NDArray[Any]:
    """Return numbers, or dates without a zone, of Python's objects; text as it is."""
    if all(isinstance(value, Real) for value in values):
        return np.array(values, dtype=np.float64)
    if any(isinstance(value, str) for value in values):
        return np.array(values, dtype=str)
    zoned = [getattr(value, "tzinfo", None) is not None for value in values]
    if any(zoned):
        if not all(zoned):
            raise InvalidParameter("time", "hold dates that all have a time zone, or that all have none", "both")
        values = [value.astimezone(UTC).replace(tzinfo=None) for value in values]
    try:
        return np.array(values, dtype="datetime64[us]")
    except (TypeError, ValueError):
        raise InvalidParameter("time", "hold numbers or dates", shown(values[0])) from None
