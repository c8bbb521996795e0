"""Labels of all outputs as codes with their classes, with or without probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.errors import InvalidParameter, mention, shown
from ..core.labels import (
    Scales,
    check_labels,
    drop_missing,
    is_range,
    label_array,
    per_output,
    shared,
    split_missing,
    unique,
)
from ..core.probabilities import Probabilities
from ..core.rows import Rows
from ..kernels import code_type
from .classes import Classes, checked_classes, given_classes, infer_classes, infer_small, is_number, ranges
from .encoding import BoolArray, encode_column, recode, seen_numbers, small_numbers, whole_codes
from .frames import categories_of, read_table, scales_of, table_columns, table_shape

__all__ = ["Labels", "make_rows", "observed_labels", "read_labels", "read_pair"]


@dataclass(frozen=True, eq=False)
class Labels:
    """True classes of M outputs.

    Parameters
    ----------
    codes : integer ndarray of shape (N, M)
        -1 where the label is missing.
    classes : tuple of M ndarrays
        Label of each code, in column order; one object where outputs have the same.
    multioutput : bool
        Whether y was 2-D.
    counts : ndarray of shape (M, K), optional
        Labels of each class, where they have been counted.
    scales : tuple of M tuples or None, optional
        The classes of each output from one end of their scale to the other, where y is an ordered categorical, whatever
        the order of columns; None for an output without. What an ordinal metric goes by: see
        :func:`metricwise.metrics.in_order`.
    output_names : tuple, optional
        Names of the outputs, where who has read them keeps these.
    """

    codes: NDArray[Any]
    classes: Classes
    multioutput: bool
    counts: NDArray[np.float64] | None = None
    scales: Scales | None = None
    output_names: tuple[Any, ...] | None = None


def make_rows(proba: Probabilities, labels: Labels | None = None, weight: NDArray[np.float64] | None = None) -> Rows:
    """Put together what has been read of the same rows."""
    return Rows(proba, None if labels is None else labels.codes, weight)


def read_labels(y: Any, proba: Probabilities, classes: Any, *, whole: bool = True) -> Labels:
    """Read labels and encode them by the classes of each output.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, M)
    proba : Probabilities
    classes : array-like, list of array-likes, or None
        See DESIGN of the package: None infers them.
    whole : bool, default=True
        Whether these are all rows, and must show two classes; of a piece of them it is not asked.

    Returns
    -------
    Labels
    """
    table, multioutput = read_table(y)
    n_rows, n_outputs = table_shape(table)
    if n_outputs != proba.n_outputs:
        hint = " (a single output takes a 1-D y)" if n_outputs == 1 else ""
        raise InvalidParameter(
            "y", f"have one column for each of the {proba.n_outputs} outputs of proba", f"{n_outputs}{hint}"
        )
    if n_rows != proba.n_rows and not multioutput and n_rows == proba.blocks[0].shape[-1]:
        raise InvalidParameter(
            "y",
            problem=f"{mention('proba')} has {proba.n_rows} rows, y has {n_rows} labels",
            remedy="pass proba.T?",
        )
    if n_rows != proba.n_rows:
        raise InvalidParameter("y", f"have as many rows as proba, {proba.n_rows}", n_rows)
    checked = None if classes is None else given_classes(classes, proba)
    declared = categories_of(y)
    uncategorized = declared is None and (checked is None or all(labels is not None for labels in checked))
    codes, names, counts = (
        (uncategorized and _read_whole(table, proba, checked))
        or (uncategorized and _read_small(table, proba, checked))
        or _read_columns(table, proba, checked, declared, multioutput)
    )
    if whole:
        _check_observed(codes, names, counts)
    return Labels(codes, names, multioutput, counts, scales_of(y, names))


def _check_observed(codes: NDArray[Any], classes: Classes, counts: NDArray[np.float64]) -> None:
    n_seen = int(np.count_nonzero(counts))
    if n_seen == 0:
        raise InvalidParameter("y", "have at least one observed label", f"{codes.size} missing ones")
    if n_seen == 1 and len(classes) == 1:  # one class, or no label, in some of several outputs is legal
        raise InvalidParameter("y", "have at least two classes", f"only {shown(classes[0][codes.max()])}")


# ------------------------------------------------------------------------------------- codes, from fast to general


Read = tuple[NDArray[Any], Classes, NDArray[np.float64]]  # codes, classes, and labels of each class


def _read_whole(table: Any, proba: Probabilities, classes: Any) -> Read | None:
    """Labels that are codes already."""
    if classes is not None and not all(
        is_range(labels) for labels in {id(labels): labels for labels in classes}.values()
    ):
        return None
    codes = whole_codes(table, proba.n_classes, proba.width)
    if codes is None:
        return None
    counts = kernels.tally(codes, None, proba.width)
    if classes is not None:
        return codes, classes, counts
    boolean = table.dtype.kind == "b"
    if boolean:
        settled = proba.n_classes == 2
    else:
        zero = counts[:, 0] > 0
        settled = zero | ((proba.n_classes == 2) & _zero_known(proba, zero))
    return (codes, ranges(proba.n_classes, boolean), counts) if settled.all() else None


def _zero_known(proba: Probabilities, shows_zero: BoolArray) -> BoolArray:
    """Say of each output whether a label 1 alone means that 0 is the other class.

    So it is where proba is the probability of class 1, and for a binary output among others one of which shows a 0. A
    single output of one class is refused anyway, and for that reason.
    """
    zero_is_class = np.full(proba.n_outputs, proba.n_outputs == 1)
    for block, span in proba.spans():
        zero_is_class[span] |= block.ndim == 2
    return np.asarray(zero_is_class | bool((proba.n_classes[shows_zero] == 2).any()))


def _read_small(table: Any, proba: Probabilities, classes: Any) -> Read | None:
    """Small whole numbers, with gaps or as floats."""
    numbers = small_numbers(table)
    if numbers is None or table.dtype.kind == "b":  # False and True are labels of their own
        return None
    occurs = seen_numbers(numbers, max(int(numbers.max()) + 1, 1))
    if classes is None:
        is_float = table.dtype.kind == "f"
        zero = _zero_known(proba, occurs[:, 0])
        keys = list(zip(proba.n_classes.tolist(), zero.tolist(), strict=True))
        classes = _per_pattern(
            occurs, keys, lambda row, key: infer_small(np.flatnonzero(row), key[0], is_float, key[1])
        )
    codes = None if classes is None else recode(numbers, occurs, classes)
    if codes is None:
        return None
    codes = codes.astype(code_type(proba.width), copy=False)
    return codes, classes, kernels.tally(codes, None, proba.width)


def _per_pattern(rows: BoolArray, keys: list[Any], make: Callable[[Any, Any], NDArray[Any] | None]) -> Classes | None:
    """Make the classes of each output, once for outputs of equal rows and keys; None where one has none."""
    made: dict[Any, NDArray[Any] | None] = {}
    classes = []
    for row, key in zip(rows, keys, strict=True):
        pattern = (row.tobytes(), key)
        if pattern not in made:
            made[pattern] = make(row, key)
        classes.append(made[pattern])
    return None if any(labels is None for labels in made.values()) else shared(classes)


def _read_columns(table: Any, proba: Probabilities, classes: Any, declared: Any, multioutput: bool) -> Read:
    """Labels of any kind."""
    codes = np.empty((proba.n_rows, proba.n_outputs), dtype=code_type(proba.width))
    column_classes = []

    @cache
    def zero_known() -> BoolArray:
        zeros = [any(is_number(v) and v == 0 for v in _distinct(column)) for column in table_columns(table)]
        return _zero_known(proba, np.array(zeros))

    for m, column in enumerate(table_columns(table)):
        output = f"output {m} of y" if multioutput else "y"

        def infer(observed: NDArray[Any], m: int = m, output: str = output) -> NDArray[Any]:
            categories = None if declared is None else declared[m]
            return infer_classes(observed, int(proba.n_classes[m]), categories, lambda: bool(zero_known()[m]), output)

        codes[:, m], labels = encode_column(column, None if classes is None else classes[m], infer, output)
        column_classes.append(labels)
    return codes, shared(column_classes), kernels.tally(codes, None, proba.width)


def _distinct(column: Any) -> list[Any]:
    return unique(drop_missing(column))[0]


# ------------------------------------------------------------------------------------------ without probabilities


def observed_labels(y: Any) -> Labels:
    """Read labels without probabilities: the classes of each output are those that occur in it.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, M)

    Returns
    -------
    Labels
        An output without any observed label has no classes.
    """
    table, multioutput = read_table(y)
    numbers = small_numbers(table)
    if numbers is not None:
        occurs = seen_numbers(numbers, max(int(numbers.max()) + 1, 1))
        number_classes = _per_pattern(
            occurs, [None] * len(occurs), lambda row, _: np.flatnonzero(row).astype(table.dtype)
        )
        whole = None if number_classes is None else recode(numbers, occurs, number_classes)
        assert number_classes is not None and whole is not None  # every number that is seen is a class
        return Labels(whole.astype(np.intp), number_classes, multioutput, scales=scales_of(y, number_classes))
    codes = np.full(table_shape(table), -1, dtype=np.intp)
    classes = []
    for m, column in enumerate(table_columns(table)):
        values, mask = split_missing(column)
        check_labels(values[~mask], f"output {m} of y" if multioutput else "y")
        labels, codes[~mask, m] = unique(values[~mask])
        label_values = np.array(labels, dtype=values.dtype) if values.dtype.kind != "O" else label_array(labels)
        classes.append(label_values)
    names = shared(classes)
    return Labels(codes, names, multioutput, scales=scales_of(y, names))


def read_pair(true: Any, predicted: Any, classes: Any = None) -> tuple[NDArray[Any], NDArray[Any], Classes]:
    """Read true and predicted labels of one or several outputs with common classes.

    Returns
    -------
    true, predicted : integer ndarray of shape (N, M)
        Codes; -1 where a true label is missing. Every prediction is a class: 0 where it and the true label are missing.
    classes : tuple of M ndarrays
    """
    (first, several), (second, _) = read_table(true), read_table(predicted)
    (n_rows, n_outputs), other = table_shape(first), table_shape(second)
    if (n_rows, n_outputs) != other:
        raise InvalidParameter("y_pred", f"have the shape of y_true, {(n_rows, n_outputs)}", other)
    checked = None if classes is None else checked_classes(per_output(classes, n_outputs))
    if n_rows == 0:
        raise InvalidParameter("y_true", "have at least one row", "none")
    codes, guesses, names = _pair_of_numbers(first, second, checked) or _pair_of_columns(first, second, checked)
    return codes, _fill_predicted(codes, guesses, several), names


def _fill_predicted(true: NDArray[Any], predicted: NDArray[Any], several: bool) -> NDArray[Any]:
    """Return predictions without gaps: one where a label is known is refused, one where none is counts nothing."""
    if predicted.min() >= 0:
        return predicted
    gaps = np.argwhere((predicted < 0) & (true >= 0))
    if len(gaps) > 0:
        row, output = gaps[0].tolist()
        place = f"row {row} of output {output}" if several else f"row {row}"
        raise InvalidParameter(
            "y_pred",
            "hold a class wherever y_true does",
            f"{len(gaps)} missing, the first in {place}",
            "leave such rows out, or make their true labels missing too",
        )
    return np.where(predicted < 0, predicted.dtype.type(0), predicted)


def _pair_of_numbers(
    first: Any, second: Any, classes: Classes | None
) -> tuple[NDArray[Any], NDArray[Any], Classes] | None:
    """`read_pair` for small whole numbers, all outputs at once."""
    true = small_numbers(first)
    predicted = None if true is None else small_numbers(second)
    if true is None or predicted is None:
        return None
    width = max(int(true.max()), int(predicted.max()), 0) + 1
    true_occurs, also = seen_numbers(true, width), seen_numbers(predicted, width)
    if classes is None:
        labels = true_occurs | also
        floats = (first.dtype.kind == "f", second.dtype.kind == "f")
        rows = np.stack([labels, true_occurs], axis=1)
        classes = _per_pattern(rows, [None] * len(rows), lambda row, _: _pair_classes(row[0], row[1], *floats))
        assert classes is not None  # any set of numbers will do
    codes = (recode(true, true_occurs, classes), recode(predicted, also, classes))
    return None if codes[0] is None or codes[1] is None else (codes[0], codes[1], classes)


def _pair_classes(labels: BoolArray, true: BoolArray, float_true: bool, float_predicted: bool) -> NDArray[Any]:
    """The classes that small numbers stand for: each as the true labels have it, or else the predicted ones."""
    if not labels[2:].any():
        return np.arange(2)
    floating = np.where(true, float_true, float_predicted)
    return np.flatnonzero(labels).astype(np.float64 if floating[labels].any() else np.intp)


def _pair_of_columns(first: Any, second: Any, classes: Classes | None) -> tuple[NDArray[Any], NDArray[Any], Classes]:
    """`read_pair` for labels of any kind."""
    codes: list[list[NDArray[Any]]] = [[], []]
    names = []
    for m, (true, predicted) in enumerate(zip(table_columns(first), table_columns(second), strict=True)):
        for column, name in ((true, "true"), (predicted, "pred")):
            check_labels(drop_missing(column), f"output {m} of y_{name}")
        labels = _seen_in(true, predicted) if classes is None else classes[m]
        for side, column, name in ((codes[0], true, "true"), (codes[1], predicted, "pred")):
            side.append(encode_column(column, labels, label_array, f"output {m} of y_{name}")[0])
        names.append(labels)
    return np.stack(codes[0], axis=1), np.stack(codes[1], axis=1), shared(names)


def _seen_in(true: Any, predicted: Any) -> NDArray[Any]:
    """The classes of an output by what occurs in it; 0 and 1 where nothing else does."""
    values = [*unique(drop_missing(true))[0], *unique(drop_missing(predicted))[0]]
    if values and all(isinstance(v, (np.datetime64, np.timedelta64)) for v in values):
        return np.unique(np.array(values))  # in the finer of their units
    labels = unique(np.array(values, dtype=object))[0]
    binary = all(isinstance(v, (bool, int, float)) and v in (0, 1) for v in labels)
    return label_array([0, 1] if binary else labels)
