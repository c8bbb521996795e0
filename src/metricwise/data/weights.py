"""Weights of rows and outputs, class priors, groups of rows, and the order of rows in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.dependence import Dependence
from ..core.errors import InvalidParameter, InvalidType, mention, shown
from ..core.labels import has_masked, is_masked, python_labels, split_missing
from ..core.rows import Rows
from .half_life import HalfLife
from .row_spec import InTime, RowSpec

__all__ = [
    "Dependence",
    "check_frequencies",
    "check_sum",
    "count_by_weight",
    "read_column",
    "read_groups",
    "read_moments",
    "read_output_weight",
    "read_piece_groups",
    "read_piece_weight",
    "read_prior",
    "read_row_weight",
    "read_sample_weight",
    "read_time",
    "row_shares",
    "stretches",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Weights of rows and of outputs are multiplied, and squared for errors: within these bounds none of it overflows.
_MIN_WEIGHT_SUM, _MAX_WEIGHT_SUM = 1e-140, 1e140


def _real_numbers(values: Any) -> FloatArray:
    """Return numbers as float64; text, complex numbers and masked ones are refused with a TypeError, not converted."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiubO" or has_masked(values):
        raise TypeError
    return array.astype(np.float64, copy=False)


def _read_weight(weight: Any, size: int, parameter: str, what: str) -> FloatArray:
    array = _read_numbers(weight, size, parameter, what)
    if not (array > 0).any():
        raise InvalidParameter(parameter, "not be all zero", "only zeros")
    with np.errstate(over="ignore"):
        check_sum(array.sum(), array.max(), parameter)
    return array


def _read_numbers(weight: Any, size: int, parameter: str, what: str) -> FloatArray:
    """Read non-negative numbers."""
    try:
        array = _real_numbers(weight)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(parameter, "be an array of numbers", type(weight).__name__) from None
    if array.shape != (size,):
        raise InvalidParameter(parameter, f"have shape ({size},), one per {what}", array.shape)
    if not np.isfinite(array).all():
        raise InvalidParameter(parameter, "be finite", "NaN or infinity")
    if (array < 0).any():
        raise InvalidParameter(parameter, "be non-negative", f"{array.min():.6g}")
    return array


def check_sum(total: float, largest: float | None, parameter: str = "sample_weight") -> None:
    """Refuse weights whose sum, or the square of it, is no number."""
    if not _MIN_WEIGHT_SUM < total < _MAX_WEIGHT_SUM:
        amount = "" if largest is None else f", {largest:.6g}"
        raise InvalidParameter(
            parameter,
            (
                f"have a sum between {_MIN_WEIGHT_SUM:g} and {_MAX_WEIGHT_SUM:g}, beyond which products and squares "
                "of weights overflow or underflow"
            ),
            f"{total:.6g}",
            f"divide the weights by the largest{amount}: only their ratios matter",
        )


def read_sample_weight(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Check the weights of rows; None stays None."""
    return None if sample_weight is None else _read_weight(sample_weight, n_rows, "sample_weight", "row")


def read_row_weight(spec: RowSpec, n_rows: int) -> FloatArray | None:
    """Check the weights of rows, multiplied by their decay with age if times have a half-life; None: all alike."""
    weight = read_sample_weight(spec.weight, n_rows)
    if spec.time is None or spec.time.half_life is None:
        return weight
    if spec.counts_rows:
        raise InvalidParameter(
            "half_life",
            problem=f"{mention('half_life')} gives fractions of rows, but Frequencies count whole ones",
            remedy="pass the weights without Frequencies, or leave half_life out",
        )
    moments = read_moments(spec.time.time, n_rows)
    decay = HalfLife.of(spec.time.half_life).decay(moments, None if weight is None else weight > 0)
    if weight is None:
        return decay
    weight = weight * decay
    check_sum(float(weight.sum()), None)
    return weight


def read_piece_weight(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Check the weights of some of the rows, which may all be 0; None stays None."""
    return None if sample_weight is None else _read_numbers(sample_weight, n_rows, "sample_weight", "row")


def count_by_weight(rows: Rows, weight: FloatArray) -> Rows:
    """Return rows that stand for as many rows as their weights say."""
    # Rows that stand for none weigh nothing: that they stand for one changes no sum, and weights are divided by it.
    return replace(rows, frequency=np.where(weight > 0, weight, 1.0), repeats=weight)


def check_frequencies(weight: FloatArray) -> None:
    """Refuse weights that do not count rows."""
    odd = weight[weight != np.floor(weight)]
    if len(odd):
        raise InvalidParameter(
            "sample_weight",
            "hold whole numbers as Frequencies, because they count rows",
            f"{odd[0]:.6g}",
            "pass other weights without Frequencies",
        )


def read_output_weight(output_weight: Any, n_outputs: int) -> FloatArray:
    """Check the weights of outputs; None is ones."""
    if output_weight is None:
        return np.ones(n_outputs)
    return _read_weight(output_weight, n_outputs, "output_weight", "output")


def read_prior(prior: Any, n_classes: IntArray, classes: Sequence[NDArray[Any]] | None = None) -> FloatArray:
    """Read class priors as an array of shape (M, K), padded with zeros.

    Parameters
    ----------
    prior : float, array-like of shape (K,) or (M, K), or list of M arrays
        A single number is the share of class 1 of a binary output. An object with `as_prior(classes)`, such as
        estimated shares, is asked for those of `classes`, and a mapping has the shares of one output by class, so that
        their order cannot be confused.
    n_classes : ndarray of shape (M,)
    classes : sequence of M ndarrays, optional
        Labels of the classes.
    """
    if classes is not None:
        prior = prior.as_prior(classes) if hasattr(prior, "as_prior") else _shares_by_class(prior, classes)
    n_outputs, width = len(n_classes), int(n_classes.max())
    if isinstance(prior, (int, float, np.number)):
        share = prior.item() if isinstance(prior, np.number) else prior
        rows: list[Any] = [[1 - share, share]] * n_outputs
    elif isinstance(prior, (list, tuple, np.ndarray)) and getattr(prior, "shape", None) != () and len(prior):
        rows = list(prior) if np.ndim(prior[0]) else [prior] * n_outputs
    else:
        must = f"be a list of class shares in the order {_order_of(classes)}, a dict of shares by class, or a number"
        raise InvalidType("prior", must, shown(prior))
    if len(rows) != n_outputs:
        raise InvalidParameter("prior", f"be given once, or for each of the {n_outputs} outputs", f"{len(rows)} rows")
    out = np.zeros((n_outputs, width))
    for m, row in enumerate(rows):
        try:
            values = _real_numbers(row)
        except (TypeError, ValueError, OverflowError):
            raise InvalidType("prior", "hold numbers", f"{shown(row)} for output {m}") from None
        if values.shape != (n_classes[m],):
            raise InvalidParameter(
                "prior", f"have one share per class, {n_classes[m]} for output {m}", f"shape {values.shape}"
            )
        if not np.isfinite(values).all() or (values < 0).any() or abs(values.sum() - 1) > 1e-6:
            raise InvalidParameter("prior", "be non-negative and sum to 1", f"{values.tolist()} for output {m}")
        out[m, : n_classes[m]] = values
    return out


def _order_of(classes: Sequence[NDArray[Any]] | None) -> str:
    """Say in which order class shares are read."""
    return "of the classes" if classes is None else f"of the classes, {python_labels(classes[0])}"


def _shares_by_class(prior: Any, classes: Sequence[NDArray[Any]]) -> Any:
    """Return the shares of a mapping in the order of the classes of a single output; anything else as it is."""
    if not isinstance(prior, Mapping):
        return prior
    labels = python_labels(classes[0])
    if len(classes) != 1 or set(prior) != set(labels):
        must = f"have a share for each of the classes {labels} of a single output"
        raise InvalidParameter("prior", must, shown(list(prior)), "for several outputs, pass a list of shares for each")
    return [prior[label] for label in labels]


def read_groups(groups: Any, n_rows: int) -> IntArray:
    """Read which rows belong together, as codes of shape (N,) in order of appearance, whatever groups are called.

    Parameters
    ----------
    groups : array-like of shape (N,)
        Rows of one value, of any kind, belong together.
    """
    values = read_column(groups, n_rows, "groups")
    if values.dtype.kind == "O":
        numbers: dict[Any, int] = {}
        codes = np.array([numbers.setdefault(_named(value), len(numbers)) for value in values], dtype=np.intp)
    else:
        _, first, place = np.unique(values, return_index=True, return_inverse=True)
        codes = np.argsort(np.argsort(first))[place.reshape(-1)].astype(np.intp)
    if codes.max(initial=0) == 0:
        raise InvalidParameter(
            "groups",
            "contain at least two groups, because rules are evaluated on groups left out",
            "one",
            "leave groups out if rows are independent",
        )
    return codes


def read_piece_groups(groups: Any, n_rows: int) -> IntArray:
    """Read which of some rows belong together, as codes (N,) that are the same in every piece: hashes of the names."""
    values = read_column(groups, n_rows, "groups")
    names, place = (values, np.arange(n_rows)) if values.dtype.kind == "O" else np.unique(values, return_inverse=True)
    codes = {name: _hash(_named(name)) for name in names.tolist()}
    return np.array([codes[name] for name in names.tolist()], dtype=np.intp)[place.reshape(-1)]


def _hash(name: Any) -> int:
    """A number made of a name that every process makes alike, as Python's own of text is not."""
    import hashlib  # for groups with names only

    text = f"{type(name).__name__}:{name!r}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 2


def _named(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        raise InvalidParameter("groups", "hold names or numbers", shown(value)) from None
    return value


def read_column(values: Any, n_rows: int, parameter: str) -> NDArray[Any]:
    """Return one value per row, none of them missing."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of several lengths
        raise InvalidParameter(parameter, "hold one value per row", shown(values)) from None
    if array.shape != (n_rows,):
        raise InvalidParameter(parameter, f"have shape ({n_rows},), one per row", array.shape)
    missing = split_missing(values if is_masked(values) else array)[1]
    if missing.any():
        row = int(np.argmax(missing))
        raise InvalidParameter(parameter, "be known for every row", f"a missing value in row {row}", "drop such rows")
    return array


# -------------------------------------------------------------------------------------------------- order in time


def read_time(time: InTime, n_rows: int) -> IntArray:
    """Read the order of rows in time, as codes of shape (N,), ascending with time; rows of one time have one code.

    Parameters
    ----------
    time : InTime
        Of numbers or dates.
    """
    moments, place = np.unique(read_moments(time.time, n_rows), return_inverse=True)
    if len(moments) < 2:
        raise InvalidParameter(
            "time", "hold at least two different times", "one", "leave InTime out if rows have no order in time"
        )
    if time.length is not None and time.length > n_rows // 2:
        raise InvalidParameter(
            "",
            problem=(
                f"the length of InTime must be at most half of the number of rows, {n_rows // 2}, because "
                f"intervals are based on several periods of that length, got {time.length}"
            ),
        )
    return place.reshape(-1).astype(np.intp)


def read_moments(time: Any, n_rows: int) -> NDArray[Any]:
    """Read when rows were observed, as numbers, dates or durations of shape (N,)."""
    values = read_column(time, n_rows, "time")
    if values.dtype.kind == "O":
        values = _moments(values.tolist())
    if values.dtype.kind not in "iufmM":
        raise InvalidParameter(
            "time", "hold numbers or dates", shown(values[0]), "convert text to dates with pandas.to_datetime"
        )
    return values


def row_shares(weight: FloatArray) -> FloatArray:
    """Return how much of a row each weighted row counts for in the length of a stretch of time, (N,), at most 1.

    Stretches are then no shorter than their length, and none has much less weight than the others. With a half-life of
    h rows, the rows count for 2.44 h in all, whatever their number.
    """
    weight = weight / weight.max()  # squares of very small weights would be 0
    return np.asarray(np.minimum(weight * (weight.sum() / (weight @ weight)), 1.0))


def stretches(place: IntArray, length: int, share: FloatArray | None = None) -> IntArray:
    """Return codes (N,) of stretches of about `length` neighbours in time, ascending; rows of one time are in one.

    Parameters
    ----------
    place : ndarray of shape (N,)
        Codes of times, ascending.
    length : int
    share : ndarray of shape (N,), optional
        How much of a row each row counts for; see :func:`row_shares`.
    """
    if share is None:
        before, total = np.cumsum(np.bincount(place)) - 1, float(len(place))
    else:
        counts = np.cumsum(np.bincount(place, share))
        before, total = np.maximum(counts - 1, 0), float(counts[-1])
    n_stretches = max(round(total / length), 2)
    runs = np.unique(before * n_stretches // total, return_inverse=True)[1].reshape(-1)
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
