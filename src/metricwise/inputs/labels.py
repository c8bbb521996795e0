"""Labels: classes, codes, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from .encoding import (
    BoolArray,
    code_type,
    drop_missing,
    encode_column,
    is_masked,
    is_range,
    label_array,
    recode,
    seen_numbers,
    shared,
    small_numbers,
    sorted_labels,
    split_missing,
    unique,
    whole_codes,
)
from .probabilities import IntArray, Probabilities, is_frame, per_output

__all__ = [
    "Labels",
    "classes_from_columns",
    "is_two_dimensional",
    "name_classes",
    "observed_labels",
    "read_labels",
    "read_pair",
]

Classes = tuple[NDArray[Any], ...]


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
    """

    codes: NDArray[Any]
    classes: Classes
    multioutput: bool
    counts: NDArray[np.float64] | None = None


def is_two_dimensional(y: Any, who: str) -> bool:
    """Whether labels are given for several outputs."""
    return is_frame(y) or _read_table(y, who)[1]


def read_labels(y: Any, proba: Probabilities, classes: Any, missing: Any, who: str = "optimize") -> Labels:
    """Read labels and encode them by the classes of each output.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, M)
    proba : Probabilities
    classes : array-like, list of array-likes, or None
        See DESIGN of the package: None infers them.
    missing : scalar or None
        A code for a missing label besides NaN, None, NA and masked entries.

    Returns
    -------
    Labels
    """
    table, multioutput = _read_table(y, who)
    n_rows, n_outputs = _shape(table)
    if n_outputs != proba.n_outputs:
        hint = " (a single output takes a 1-D y)" if n_outputs == 1 else ""
        raise ValueError(
            f"{who}: y must have one column per output, {proba.n_outputs} by proba, got {n_outputs}{hint}."
        )
    if n_rows != proba.n_rows:
        raise ValueError(f"{who}: y must have as many rows as proba, {proba.n_rows}, got {n_rows}.")
    given = None if classes is None else _given_classes(classes, proba, who)
    codes, names = (
        _read_whole(table, proba, given, missing)
        or _read_small(table, proba, given, missing)
        or _read_columns(table, proba, given, missing, multioutput, who)
    )
    counts = kernels.tally(codes, None, proba.width)
    _check_observed(codes, names, counts, who)
    return Labels(codes, names, multioutput, counts)


def _check_observed(codes: NDArray[Any], classes: Classes, counts: NDArray[np.float64], who: str) -> None:
    n_seen = int(np.count_nonzero(counts))
    if n_seen == 0:
        raise ValueError(f"{who}: y must have at least one observed label, all {codes.size} are missing.")
    if n_seen == 1 and len(classes) == 1:  # one class, or no label, in some of several outputs is legal
        raise ValueError(f"{who}: y must have at least two classes, got only {classes[0].tolist()[codes.max()]!r}.")


# ------------------------------------------------------------------------------------------------- what y can be


def _read_table(y: Any, who: str) -> tuple[Any, bool]:
    """Return labels as an array (N, M), those of a data frame as the list of its columns, and whether y is 2-D."""
    if hasattr(y, "tocsr"):
        y = y.toarray()
    if is_frame(y):
        columns = [_as_labels(y[name]) for name in y.columns]
        alike = len({(type(column), column.dtype) for column in columns}) == 1
        return (np.stack(columns, axis=1) if alike and columns[0].dtype.kind in "iufb" else columns), True
    try:
        array = _as_labels(y)
    except ValueError:
        raise ValueError(f"{who}: y must have shape (N,) or (N, M), got rows of unequal length.") from None
    if array.ndim == 1:
        return array[:, None], False
    if array.ndim == 2:
        return array, True
    raise ValueError(f"{who}: y must have shape (N,) or (N, M), got {array.shape}.")


def _shape(table: Any) -> tuple[int, int]:
    if isinstance(table, list):
        return (len(table[0]) if table else 0, len(table))
    n_rows, n_outputs = table.shape
    return n_rows, n_outputs


def _columns(table: Any) -> Iterator[Any]:
    return iter(table) if isinstance(table, list) else (table[:, m] for m in range(table.shape[1]))


def _as_labels(y: Any) -> Any:
    """Labels as an array that keeps each label what it was."""
    if type(y) is np.ndarray or is_masked(y):
        return y
    # A nullable column of integers must not turn into floats for the sake of its nulls.
    if hasattr(y, "null_count") and y.null_count():
        return np.array(y.to_list(), dtype=object)
    if hasattr(y, "isna") and not isinstance(y.dtype, np.dtype) and y.isna().any():
        return y.to_numpy(dtype=object)
    array = np.asarray(y)
    if array.dtype.kind in "US" and not hasattr(y, "dtype"):
        mixed = np.asarray(y, dtype=object)
        if not all(isinstance(label, (str, bytes)) for label in mixed.flat):
            return mixed
    return array


# ------------------------------------------------------------------------------------- codes, from fast to general


def _read_whole(table: Any, proba: Probabilities, given: Any, missing: Any) -> tuple[NDArray[Any], Classes] | None:
    """Labels that are codes already."""
    if given is not None and not all(is_range(labels) for labels in {id(labels): labels for labels in given}.values()):
        return None
    codes = whole_codes(table, proba.n_classes, proba.width, missing)
    if codes is None:
        return None
    return codes, given or _ranges(proba.n_classes, boolean=table.dtype.kind == "b")


def _ranges(n_classes: IntArray, boolean: bool = False) -> Classes:
    """0..K_m-1 for each output; False and True for outputs of two classes if `boolean`."""
    counts = n_classes.tolist()
    made = {k: np.arange(k) if k != 2 or not boolean else np.array([False, True]) for k in set(counts)}
    return tuple([made[k] for k in counts])


def _read_small(table: Any, proba: Probabilities, given: Any, missing: Any) -> tuple[NDArray[Any], Classes] | None:
    """Small whole numbers, with gaps or as floats."""
    numbers = small_numbers(table, missing)
    if numbers is None or table.dtype.kind == "b":  # False and True are labels of their own
        return None
    seen = seen_numbers(numbers, max(int(numbers.max()) + 1, 1))
    if given is None:
        own = table.dtype.kind == "f"
        given = _per_pattern(seen, proba.n_classes.tolist(), lambda row, k: _infer_small(np.flatnonzero(row), k, own))
    codes = None if given is None else recode(numbers, seen, given)
    return None if codes is None else (codes.astype(code_type(proba.width), copy=False), given)


def _infer_small(labels: IntArray, n_classes: int, floating: bool) -> NDArray[Any] | None:
    """What `_infer_classes` makes of small numbers; None for what it refuses."""
    if len(labels) == n_classes:
        return labels.astype(np.float64) if floating else labels
    return np.arange(n_classes) if len(labels) == 0 or labels[-1] < n_classes else None


def _per_pattern(rows: BoolArray, keys: list[Any], make: Callable[[Any, Any], NDArray[Any] | None]) -> Classes | None:
    """Make the classes of each output, once for outputs of equal rows and keys; None where one has none."""
    made: dict[Any, NDArray[Any] | None] = {}
    found = []
    for row, key in zip(rows, keys, strict=True):
        pattern = (row.tobytes(), key)
        if pattern not in made:
            made[pattern] = make(row, key)
        found.append(made[pattern])
    return None if any(labels is None for labels in made.values()) else shared(found)  # type: ignore[arg-type]  # no None in it


def _read_columns(
    table: Any, proba: Probabilities, given: Any, missing: Any, multioutput: bool, who: str
) -> tuple[NDArray[Any], Classes]:
    """Labels of any kind."""
    codes = np.empty((proba.n_rows, proba.n_outputs), dtype=code_type(proba.width))
    found = []
    for m, column in enumerate(_columns(table)):
        output = f"output {m} of y" if multioutput else "y"

        def infer(seen: NDArray[Any], k: int = int(proba.n_classes[m]), output: str = output) -> NDArray[Any]:
            return _infer_classes(seen, k, output, who)

        codes[:, m], labels = encode_column(column, None if given is None else given[m], infer, missing, output, who)
        found.append(labels)
    return codes, shared(found)


def _infer_classes(seen: NDArray[Any], n_classes: int, output: str, who: str) -> NDArray[Any]:
    labels, _ = unique(seen)
    if seen.dtype.kind == "b" and n_classes == 2:
        return np.array([False, True])
    if len(labels) == n_classes:
        return label_array(labels)
    if all(isinstance(v, (int, float)) and 0 <= v < n_classes and v == int(v) for v in labels):
        return np.arange(n_classes)
    shown = labels if len(labels) <= 10 else [*labels[:10], "..."]
    hint = " If -1 stands for a missing label, pass missing=-1." if -1 in labels else ""
    raise ValueError(
        f"{who}: {output} has {len(labels)} distinct labels {shown} where proba has {n_classes} classes; pass classes= "
        f"with the label of each column.{hint}"
    )


# ------------------------------------------------------------------------------------------------------- classes


def _given_classes(classes: Any, proba: Probabilities, who: str) -> Classes:
    made: dict[int, NDArray[Any]] = {}
    items = per_output(classes, proba.n_outputs, who)
    for labels in items:
        if id(labels) not in made:
            made[id(labels)] = label_array(labels)
    arrays = shared(made[id(labels)] for labels in items)
    counts = proba.n_classes.tolist()
    distinct = {(id(labels), k): (labels, k) for labels, k in zip(arrays, counts, strict=True)}
    for labels, k in distinct.values():
        if len(labels) != k:
            raise ValueError(f"{who}: classes must have one label per column of proba, {k}, got {len(labels)}.")
        if len(set(labels.tolist())) != len(labels):
            raise ValueError(f"{who}: classes must be distinct, got {labels.tolist()}.")
    return arrays


def classes_from_columns(proba: Any, y: Any, classes: Any, multioutput: bool | None, missing: Any = None) -> Any:
    """Take the classes of one output from the column names of a data frame, if `classes` does not say."""
    if classes is not None or multioutput or not is_frame(proba) or len(proba.columns) < 2:
        return classes
    names = list(proba.columns)
    if names == list(range(len(names))):
        return None
    if y is None:
        return names
    labels = unique(drop_missing(next(_columns(_read_table(y, "optimize")[0])), missing))[0]
    # Sorted as labels always are: which class is the positive one must not hang on the order of the columns.
    if set(labels) <= set(names):
        return sorted_labels(names)
    # A table read from a file has text for column names whatever the labels are.
    by_text = {str(label): label for label in labels}
    if set(by_text) <= set(map(str, names)):
        return sorted_labels([by_text.get(str(name), name) for name in names])
    return labels


def name_classes(classes: Any, proba: Probabilities, who: str) -> Classes:
    """Return the labels of every output where there is no y: those given, or 0..K_m-1."""
    return _ranges(proba.n_classes) if classes is None else _given_classes(classes, proba, who)


# ------------------------------------------------------------------------------------------ without probabilities


def observed_labels(y: Any, missing: Any = None, who: str = "fit") -> Labels:
    """Read labels where there are no probabilities yet: the classes of each output are those that occur in it.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, M)
    missing : scalar, optional
        A code for a missing label besides NaN, None, NA and masked entries.

    Returns
    -------
    Labels
        An output without any observed label has no classes.
    """
    table, multioutput = _read_table(y, who)
    numbers = small_numbers(table, missing)
    if numbers is not None:
        seen = seen_numbers(numbers, max(int(numbers.max()) + 1, 1))
        found = _per_pattern(seen, [None] * len(seen), lambda row, _: np.flatnonzero(row).astype(table.dtype))
        whole = None if found is None else recode(numbers, seen, found)
        assert found is not None and whole is not None  # every number that is seen is a class
        return Labels(whole.astype(np.intp), found, multioutput)
    codes = np.full(_shape(table), -1, dtype=np.intp)
    classes = []
    for m, column in enumerate(_columns(table)):
        values, mask = split_missing(column, missing)
        labels, codes[~mask, m] = unique(values[~mask])
        own = np.array(labels, dtype=values.dtype) if values.dtype.kind != "O" else label_array(labels)
        classes.append(own)
    return Labels(codes, shared(classes), multioutput)


def read_pair(
    true: Any, predicted: Any, classes: Any = None, missing: Any = None, who: str = "score"
) -> tuple[NDArray[Any], NDArray[Any], Classes]:
    """Read true and predicted labels of one or several outputs with common classes.

    Returns
    -------
    true, predicted : integer ndarray of shape (N, M)
        Codes; -1 where a true label is missing. Every prediction is a class: 0 where it and the true label are missing.
    classes : tuple of M ndarrays
    """
    (first, several), (second, _) = _read_table(true, who), _read_table(predicted, who)
    (n_rows, n_outputs), other = _shape(first), _shape(second)
    if (n_rows, n_outputs) != other:
        raise ValueError(f"{who}: y_pred must have the shape of y_true, {(n_rows, n_outputs)}, got {other}.")
    given = None
    if classes is not None:  # labels that all outputs share may be given once
        nested = several and len(classes) > 0 and np.ndim(classes[0]) == 1
        lists = list(classes) if nested else [classes]
        if nested and len(lists) != n_outputs:
            raise ValueError(f"{who}: classes must be a list of M = {n_outputs} arrays, got {len(lists)}.")
        given = shared([label_array(labels) for labels in lists] * (1 if nested else n_outputs))
    if n_rows == 0:
        raise ValueError(f"{who}: y_true must have at least one row, got none.")
    codes, guesses, names = _pair_of_numbers(first, second, given, missing) or _pair_of_columns(
        first, second, given, missing, who
    )
    return codes, _fill_predicted(codes, guesses, several, who), names


def _fill_predicted(true: NDArray[Any], predicted: NDArray[Any], several: bool, who: str) -> NDArray[Any]:
    """Return predictions without gaps: one where a label is known is refused, one where none is counts nothing."""
    if predicted.min() >= 0:
        return predicted
    gaps = np.argwhere((predicted < 0) & (true >= 0))
    if len(gaps) > 0:
        row, output = gaps[0].tolist()
        place = f"row {row} of output {output}" if several else f"row {row}"
        raise ValueError(
            f"{who}: y_pred must hold a class wherever y_true does, got {len(gaps)} missing, the first in {place}; "
            "leave such rows out, or make their true labels missing too."
        )
    return np.where(predicted < 0, predicted.dtype.type(0), predicted)


def _pair_of_numbers(
    first: Any, second: Any, given: Classes | None, missing: Any
) -> tuple[NDArray[Any], NDArray[Any], Classes] | None:
    """`read_pair` for small whole numbers, all outputs at once."""
    true = small_numbers(first, missing)
    predicted = None if true is None else small_numbers(second, None)
    if true is None or predicted is None:
        return None
    width = max(int(true.max()), int(predicted.max()), 0) + 1
    seen, also = seen_numbers(true, width), seen_numbers(predicted, width)
    if given is None:
        labels = seen | also
        if missing is not None and missing in range(width):
            labels[:, int(missing)] = False
        floats = (first.dtype.kind == "f", second.dtype.kind == "f")
        rows = np.stack([labels, seen], axis=1)
        given = _per_pattern(rows, [None] * len(rows), lambda row, _: _pair_classes(row[0], row[1], *floats))
        assert given is not None  # any set of numbers will do
    codes = (recode(true, seen, given), recode(predicted, also, given))
    return None if codes[0] is None or codes[1] is None else (codes[0], codes[1], given)


def _pair_classes(labels: BoolArray, true: BoolArray, float_true: bool, float_predicted: bool) -> NDArray[Any]:
    """The classes that small numbers stand for: each as the true labels have it, or else the predicted ones."""
    if not labels[2:].any():
        return np.arange(2)
    floating = np.where(true, float_true, float_predicted)
    return np.flatnonzero(labels).astype(np.float64 if floating[labels].any() else np.intp)


def _pair_of_columns(
    first: Any, second: Any, given: Classes | None, missing: Any, who: str
) -> tuple[NDArray[Any], NDArray[Any], Classes]:
    """`read_pair` for labels of any kind."""
    codes: list[list[NDArray[Any]]] = [[], []]
    names = []
    for m, (true, predicted) in enumerate(zip(_columns(first), _columns(second), strict=True)):
        labels = _seen_in(true, predicted, missing) if given is None else given[m]
        for found, column, gap, name in ((codes[0], true, missing, "true"), (codes[1], predicted, None, "pred")):
            found.append(encode_column(column, labels, label_array, gap, f"output {m} of y_{name}", who)[0])
        names.append(labels)
    return np.stack(codes[0], axis=1), np.stack(codes[1], axis=1), shared(names)


def _seen_in(true: Any, predicted: Any, missing: Any) -> NDArray[Any]:
    """The classes of an output by what occurs in it; 0 and 1 where nothing else does."""
    values = [*unique(drop_missing(true))[0], *unique(drop_missing(predicted))[0]]
    labels = unique(np.array([v for v in values if missing is None or v != missing], dtype=object))[0]
    binary = all(isinstance(v, (bool, int, float)) and v in (0, 1) for v in labels)
    return label_array([0, 1] if binary else labels)
