"""Labels: classes, codes, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .probabilities import IntArray, Probabilities, is_frame, per_output

__all__ = [
    "Labels",
    "classes_from_columns",
    "decode",
    "is_two_dimensional",
    "name_classes",
    "observed_labels",
    "read_labels",
    "read_pair",
]

_FEW_LABELS = 1 << 12  # integers this close together are counted instead of sorted


@dataclass(frozen=True, eq=False)
class Labels:
    """True classes of M outputs.

    Parameters
    ----------
    codes : integer ndarray of shape (N, M)
        -1 where the label is missing.
    classes : tuple of M ndarrays
        Label of each code, in column order.
    multioutput : bool
        Whether y was 2-D.
    """

    codes: NDArray[Any]
    classes: tuple[NDArray[Any], ...]
    multioutput: bool


def is_two_dimensional(y: Any, who: str) -> bool:
    """Whether labels are given for several outputs."""
    return _label_columns(y, who)[1]


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
    columns, multioutput = _label_columns(y, who)
    if len(columns) != proba.n_outputs:
        hint = " (a single output takes a 1-D y)" if len(columns) == 1 else ""
        raise ValueError(
            f"{who}: y must have one column per output, {proba.n_outputs} by proba, got {len(columns)}{hint}."
        )
    if len(columns[0]) != proba.n_rows:
        raise ValueError(f"{who}: y must have as many rows as proba, {proba.n_rows}, got {len(columns[0])}.")
    given = _given_classes(classes, proba, who)
    dtype = np.int8 if proba.width <= 127 else np.int32
    codes = np.empty((proba.n_rows, proba.n_outputs), dtype=dtype)
    found = []
    for m, column in enumerate(columns):
        output = f"output {m} of y" if multioutput else "y"
        codes[:, m], labels = _encode(column, given[m], int(proba.n_classes[m]), missing, output, who)
        found.append(labels)
    if not (codes >= 0).any():
        raise ValueError(f"{who}: y must have at least one observed label, all {codes.size} are missing.")
    if len(found) == 1 and len(np.unique(codes[codes >= 0])) < 2:
        raise ValueError(f"{who}: y must have at least two classes, got only {found[0].tolist()[codes.max()]!r}.")
    return Labels(codes, tuple(found), multioutput)


def _label_columns(y: Any, who: str) -> tuple[list[Any], bool]:
    """Return the columns of y as 1-D arrays, and whether y is 2-D."""
    if hasattr(y, "tocsr"):
        y = y.toarray()
    if is_frame(y):
        return [_as_labels(y[name]) for name in y.columns], True
    try:
        array = _as_labels(y)
    except ValueError:
        raise ValueError(f"{who}: y must have shape (N,) or (N, M), got rows of unequal length.") from None
    if array.ndim == 1:
        return [array], False
    if array.ndim == 2:
        return [array[:, m] for m in range(array.shape[1])], True
    raise ValueError(f"{who}: y must have shape (N,) or (N, M), got {array.shape}.")


def _as_labels(y: Any) -> Any:
    """Labels as an array that keeps each label what it was."""
    if np.ma.isMaskedArray(y):
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


def _given_classes(classes: Any, proba: Probabilities, who: str) -> list[Any]:
    if classes is None:
        return [None] * proba.n_outputs
    arrays = [_label_array(labels) for labels in per_output(classes, proba.n_outputs, who)]
    for m, labels in enumerate(arrays):
        if len(labels) != proba.n_classes[m]:
            raise ValueError(
                f"{who}: classes must have one label per column of proba, {proba.n_classes[m]}, got {len(labels)}."
            )
        if len(set(labels.tolist())) != len(labels):
            raise ValueError(f"{who}: classes must be distinct, got {labels.tolist()}.")
    return arrays


def _label_array(labels: Any) -> NDArray[Any]:
    """Labels as a 1-D array that keeps mixed types apart (never 1 and 'a' both as strings)."""
    array = np.asarray(labels)
    if array.dtype.kind in "US" and not all(isinstance(label, (str, bytes)) for label in labels):
        array = np.empty(len(labels), dtype=object)
        array[:] = list(labels)
    return array


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return bool(value != value)


def _missing_mask(column: Any, missing: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    mask = np.ma.getmaskarray(column) if np.ma.isMaskedArray(column) else np.zeros(len(column), dtype=bool)
    values = np.asarray(column)
    if values.dtype.kind == "f":
        mask = mask | np.isnan(values)
    elif values.dtype.kind in "mM":
        mask = mask | np.isnat(values)
    elif values.dtype.kind == "O":
        mask = mask | np.fromiter((_is_missing(v) for v in values), dtype=bool, count=len(values))
    if missing is not None and values.dtype.kind in "iufb" and isinstance(missing, (int, float, np.number)):
        mask = mask | (values == missing)
    elif missing is not None:
        mask = mask | np.fromiter((v == missing for v in values), dtype=bool, count=len(values))
    return values, mask


def _encode(
    column: Any, classes: NDArray[Any] | None, n_classes: int, missing: Any, output: str, who: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    values, mask = _missing_mask(column, missing)
    whole = values.dtype.kind in "iu" and len(values) > 0 and not mask.any() and _within(values, n_classes)
    if whole and (classes is None or _is_range(classes)):  # codes already, which need no search for distinct labels
        return values, np.arange(n_classes) if classes is None else classes
    seen = values[~mask]
    if classes is None:
        classes = _infer_classes(seen, n_classes, output, who)
    codes = np.full(len(values), -1, dtype=np.intp)
    lookup = {label: code for code, label in enumerate(classes.tolist())}
    labels, inverse = _unique(seen)
    try:
        codes[~mask] = np.array([lookup[label] for label in labels], dtype=np.intp)[inverse]
    except KeyError as error:
        raise ValueError(
            f"{who}: {output} must hold only the classes {classes.tolist()}, got {error.args[0]!r}"
            + ("; missing labels are NaN or None, or give missing=-1." if error.args[0] == -1 else ".")
        ) from None
    return codes, classes


def _unique(values: NDArray[Any]) -> tuple[list[Any], IntArray]:
    """Distinct labels, sorted where they can be, and where each value stands among them."""
    if values.dtype.kind in "iu" and len(values) > 0 and int(values.max()) - int(values.min()) < _FEW_LABELS:
        wide = values.astype(np.int64) if values.dtype.kind == "i" else values  # small signed types overflow
        shifted = (wide - wide.min()).astype(np.intp)
        seen = np.bincount(shifted) > 0
        return (np.flatnonzero(seen) + int(values.min())).tolist(), (np.cumsum(seen) - 1)[shifted]
    if values.dtype.kind != "O":
        labels, inverse = np.unique(values, return_inverse=True)
        return labels.tolist(), inverse.reshape(-1)
    distinct = _sorted(list(dict.fromkeys(values.tolist())))
    lookup = {label: code for code, label in enumerate(distinct)}
    return distinct, np.fromiter((lookup[v] for v in values.tolist()), dtype=np.intp, count=len(values))


def _sorted(labels: list[Any]) -> list[Any]:
    """Sort labels, by type and text where they cannot be compared."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def _infer_classes(seen: NDArray[Any], n_classes: int, output: str, who: str) -> NDArray[Any]:
    labels, _ = _unique(seen)
    if seen.dtype.kind == "b" and n_classes == 2:
        return np.array([False, True])
    if len(labels) == n_classes:
        return _label_array(labels)
    if all(isinstance(v, (int, float)) and v == int(v) and 0 <= v < n_classes for v in labels):
        return np.arange(n_classes)
    shown = labels if len(labels) <= 10 else [*labels[:10], "..."]
    hint = " If -1 stands for a missing label, pass missing=-1." if -1 in labels else ""
    raise ValueError(
        f"{who}: {output} has {len(labels)} distinct labels {shown} where proba has {n_classes} classes; pass classes= "
        f"with the label of each column.{hint}"
    )


def _is_range(classes: NDArray[Any]) -> bool:
    return classes.dtype.kind in "iub" and np.array_equal(classes, np.arange(len(classes)))


def _within(values: NDArray[Any], n_classes: int) -> bool:
    return bool(values.min() >= 0 and values.max() < n_classes)


def decode(codes: NDArray[Any], classes: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Turn codes (N, M) into labels (N, M)."""
    if all(labels is classes[0] for labels in classes) or all(
        labels.dtype == classes[0].dtype and np.array_equal(labels, classes[0]) for labels in classes
    ):
        return np.asarray(classes[0][codes])
    same = len({labels.dtype.kind for labels in classes}) == 1
    dtype = np.result_type(*classes) if same else np.dtype(object)
    out = np.empty(codes.shape, dtype=dtype)
    for m, labels in enumerate(classes):
        out[:, m] = labels[codes[:, m]]
    return out


def classes_from_columns(proba: Any, y: Any, classes: Any, multioutput: bool | None, missing: Any = None) -> Any:
    """Take the classes of one output from the column names of a data frame, if `classes` does not say."""
    if classes is not None or multioutput or not is_frame(proba) or len(proba.columns) < 2:
        return classes
    names = list(proba.columns)
    if names == list(range(len(names))):
        return None
    if y is None:
        return names
    labels = _unique(_drop_missing(_label_columns(y, "optimize")[0][0], missing))[0]
    # Sorted as labels always are: which class is the positive one must not hang on the order of the columns.
    if set(labels) <= set(names):
        return _sorted(names)
    # A table read from a file has text for column names whatever the labels are.
    by_text = {str(label): label for label in labels}
    if set(by_text) <= set(map(str, names)):
        return _sorted([by_text.get(str(name), name) for name in names])
    return labels


def _drop_missing(column: Any, missing: Any = None) -> NDArray[Any]:
    values, mask = _missing_mask(column, missing)
    return values[~mask]


def name_classes(classes: Any, proba: Probabilities, who: str) -> tuple[NDArray[Any], ...]:
    """Return the labels of every output where there is no y: those given, or 0..K_m-1."""
    given = _given_classes(classes, proba, who)
    return tuple(np.arange(k) if names is None else names for names, k in zip(given, proba.n_classes, strict=True))


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
    columns, multioutput = _label_columns(y, who)
    codes = np.full((len(columns[0]), len(columns)), -1, dtype=np.intp)
    classes = []
    for m, column in enumerate(columns):
        values, mask = _missing_mask(column, missing)
        labels, codes[~mask, m] = _unique(values[~mask])
        own = np.array(labels, dtype=values.dtype) if values.dtype.kind != "O" else _label_array(labels)
        classes.append(own)
    return Labels(codes, tuple(classes), multioutput)


def read_pair(
    true: Any, predicted: Any, classes: Any = None, missing: Any = None, who: str = "score"
) -> tuple[NDArray[Any], NDArray[Any], tuple[NDArray[Any], ...]]:
    """Read true and predicted labels of one or several outputs with common classes.

    Returns
    -------
    true, predicted : integer ndarray of shape (N, M)
        Codes; -1 where a true label is missing.
    classes : tuple of M ndarrays
    """
    (true_columns, several), (columns, _) = _label_columns(true, who), _label_columns(predicted, who)
    if len(true_columns) != len(columns) or len(true_columns[0]) != len(columns[0]):
        raise ValueError(
            f"{who}: y_pred must have the shape of y_true, {(len(true_columns[0]), len(true_columns))}, "
            f"got {(len(columns[0]), len(columns))}."
        )
    given: list[Any] = [None] * len(columns)
    if classes is not None:  # labels that all outputs share may be given once
        nested = several and len(classes) > 0 and np.ndim(classes[0]) == 1
        given = list(classes) if nested else [classes] * len(columns)
    if len(given) != len(columns):
        raise ValueError(f"{who}: classes must be a list of M = {len(columns)} arrays, got {len(given)}.")
    codes: list[list[NDArray[Any]]] = [[], []]
    names = []
    for m, (first, second) in enumerate(zip(true_columns, columns, strict=True)):
        labels = given[m]
        if labels is None:
            values = [*_unique(_drop_missing(first))[0], *_unique(_drop_missing(second))[0]]
            labels = _unique(np.array([v for v in values if missing is None or v != missing], dtype=object))[0]
            binary = all(isinstance(v, (bool, int, float)) and v in (0, 1) for v in labels)
            labels = [0, 1] if binary else labels
        labels = _label_array(labels)
        codes[0].append(_encode(first, labels, len(labels), missing, f"output {m} of y_true", who)[0])
        codes[1].append(_encode(second, labels, len(labels), None, f"output {m} of y_pred", who)[0])
        names.append(labels)
    if len(codes[0][0]) == 0:
        raise ValueError(f"{who}: y_true must have at least one row, got none.")
    return np.stack(codes[0], axis=1).astype(np.intp), np.stack(codes[1], axis=1).astype(np.intp), tuple(names)
