"""What users hand in, read once at the boundary: probabilities, labels, weights.

Owns shapes, class labels, missing labels and every check of them; everything above works on :class:`Probabilities`
and integer codes. Must not know metrics, rules or solvers, nor import pandas, polars or scikit-learn: data frames are
recognised by their ``columns``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Labels",
    "Probabilities",
    "classes_from_columns",
    "decode",
    "is_frame",
    "is_two_dimensional",
    "name_classes",
    "read_labels",
    "read_output_weight",
    "read_pair",
    "read_prior",
    "read_proba",
    "read_sample_weight",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_CHECK_ROWS = 1 << 14


def sum_tolerance(n_classes: int) -> float:
    """How far a row of probabilities may be from summing to 1: rounding to two decimals is accepted, more is not."""
    return min(0.005 * n_classes + 1e-6, 0.05)


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Class probabilities of M outputs, as views of what the user gave.

    Parameters
    ----------
    blocks : tuple of ndarray
        Each of shape (N, M_b, K_b), or (N, M_b) with the probability of class 1; the outputs in order, block by block.
    n_classes : ndarray of shape (M,), int
        K_m of each output.
    """

    blocks: tuple[NDArray[Any], ...]
    n_classes: IntArray

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.blocks[0])

    @property
    def n_outputs(self) -> int:
        """M."""
        return len(self.n_classes)

    @property
    def width(self) -> int:
        """K, the largest K_m."""
        return int(self.n_classes.max())

    def outputs(self) -> Iterator[tuple[NDArray[Any], slice]]:
        """Yield each block with the slice of outputs that it holds."""
        start = 0
        for block in self.blocks:
            yield block, slice(start, start + block.shape[1])
            start += block.shape[1]

    def output(self, m: int) -> NDArray[Any]:
        """Return output m alone, of shape (N, 1, K_b) or (N, 1)."""
        for block, span in self.outputs():
            if m < span.stop:
                return block[:, m - span.start : m - span.start + 1]
        raise IndexError(m)

    def take(self, rows: Any) -> Probabilities:
        """Return some of the rows."""
        return Probabilities(tuple(block[rows] for block in self.blocks), self.n_classes)


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


def is_frame(values: Any) -> bool:
    """Whether `values` is a pandas or polars data frame."""
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def is_two_dimensional(y: Any, who: str) -> bool:
    """Whether labels are given for several outputs."""
    return _label_columns(y, who)[1]


# ---------------------------------------------------------------------------------------------- probabilities


def read_proba(
    proba: Any,
    *,
    multioutput: bool | None = None,
    classes: Any = None,
    columns: Sequence[Any] | None = None,
    normalize: bool = False,
    who: str = "optimize",
) -> Probabilities:
    """Read probabilities in any of the accepted shapes.

    Parameters
    ----------
    proba : array-like
        (N,) binary, (N, K), (N, M) multilabel, (N, M, K), or a list of M arrays (N, K_m).
    multioutput : bool, optional
        Whether y is 2-D; None if there is no y, when a 2-D array is (N, K).
    classes : array-like or list of array-likes, optional
        Labels that the columns of a data frame are matched to, and that say K_m of a padded (N, M, K) array.
    columns : sequence, optional
        Names of the outputs, which the columns of a multilabel data frame are matched to.
    normalize : bool, default=False
        Accept non-negative scores and divide each row by its sum.
    who : str
        Name for messages.

    Returns
    -------
    Probabilities
    """
    if hasattr(proba, "tocsr"):
        raise TypeError(f"{who}: proba must be a dense array, got a sparse matrix; pass proba.toarray().")
    if isinstance(proba, (list, tuple)) and len(proba) and np.ndim(_peek(proba[0])) >= 1 and multioutput is not False:
        blocks = _read_list(proba, classes, who)
    else:
        blocks = [_read_array(proba, multioutput, classes, columns, who)]
    if normalize:
        blocks = [_normalized(block, who) for block in blocks]
    if len({len(block) for block in blocks}) != 1:
        raise ValueError(
            f"{who}: the arrays of proba must have equally many rows, got {[len(block) for block in blocks]}."
        )
    result = Probabilities(tuple(blocks), _class_counts(blocks, classes, who))
    _check_values(result, who)
    return result


def _peek(first: Any) -> Any:
    """A list of arrays is one array per output; a list of lists of numbers is one array."""
    is_array = hasattr(first, "shape") or is_frame(first)
    return first if is_array and np.ndim(first) == 2 else 0.0


def _float_array(values: Any, who: str) -> NDArray[Any]:
    if np.ma.isMaskedArray(values):
        raise TypeError(f"{who}: proba must not be a masked array: every row needs its probabilities.")
    try:
        array = np.asarray(values.to_numpy() if is_frame(values) else values)
        if array.dtype.kind != "f" or array.dtype.itemsize > 8:
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{who}: proba must be an array of numbers, got {type(values).__name__}.") from None
    if array.ndim == 0:
        raise ValueError(f"{who}: proba must be an array of probabilities, got the single value {array!r}.")
    if len(array) == 0:
        raise ValueError(f"{who}: proba must have at least one row, got shape {array.shape}.")
    return array


def _read_list(proba: Sequence[Any], classes: Any, who: str) -> list[NDArray[Any]]:
    blocks = []
    for m, item in enumerate(proba):
        names = None if classes is None else np.asarray(classes[m])
        array = _float_array(_match_columns(item, names, who), who)
        if array.ndim != 2:
            raise ValueError(
                f"{who}: proba given as a list must hold arrays of shape (N, K_m), got {array.shape} for output {m}."
            )
        blocks.append(array[:, None, :])
    return blocks


def _read_array(
    proba: Any, multioutput: bool | None, classes: Any, columns: Sequence[Any] | None, who: str
) -> NDArray[Any]:
    if is_frame(proba):
        if multioutput:
            proba = _match_columns(proba, columns, who)
        else:
            proba = _match_columns(proba, None if classes is None else np.asarray(classes), who)
    array = _float_array(proba, who)
    if array.ndim == 1:
        if multioutput:
            raise ValueError(f"{who}: proba must be 2-D or 3-D where y is 2-D, got shape {array.shape}.")
        return array[:, None]
    if array.ndim == 2:
        return array if multioutput else (array if array.shape[1] == 1 else array[:, None, :])
    if array.ndim == 3 and multioutput is not False:
        return array
    expected = "(N,) or (N, K) where y is 1-D" if multioutput is False else "1-D, 2-D or 3-D"
    raise ValueError(f"{who}: proba must have shape {expected}, got {array.shape}.")


def _match_columns(frame: Any, names: Any, who: str) -> Any:
    """Put the columns of a data frame in the order of `names`."""
    if not is_frame(frame):
        return frame
    columns = list(frame.columns)
    if names is None or columns == list(range(len(columns))):
        return frame
    wanted = [name.item() if isinstance(name, np.generic) else name for name in names]
    for have, want in ((columns, wanted), (list(map(str, columns)), list(map(str, wanted)))):
        if len(set(have)) == len(have) and set(have) == set(want):
            order = [have.index(name) for name in want]
            return frame if order == list(range(len(order))) else frame.to_numpy()[:, order]
    raise ValueError(
        f"{who}: the columns of proba must be named like the classes {wanted}, got {columns}; pass "
        "proba.to_numpy() to take the columns by position."
    )


def _normalized(block: NDArray[Any], who: str) -> NDArray[Any]:
    if block.ndim == 2:
        raise ValueError(
            f"{who}: normalize=True needs a score for every class, shape (N, K) or (N, M, K); got the scores of the "
            "positive class alone."
        )
    total = block[..., :1].astype(np.float64)
    for k in range(1, block.shape[-1]):  # in order, whatever the layout: a chunk must give what the whole gives
        total += block[..., k : k + 1]
    if not (np.isfinite(total).all() and (block >= 0).all() and (total > 0).all()):
        raise ValueError(f"{who}: with normalize=True, scores must be finite, non-negative and not all zero in a row.")
    return np.asarray(block / total, dtype=block.dtype)


def _class_counts(blocks: Sequence[NDArray[Any]], classes: Any, who: str) -> IntArray:
    """K_m of each output: the width of its block, less the padding that `classes` reveals."""
    widths = np.concatenate([np.full(b.shape[1], 2 if b.ndim == 2 else b.shape[2]) for b in blocks]).astype(np.intp)
    if classes is None or len(widths) == 1 or blocks[0].ndim == 2:
        return widths
    if len(classes) != len(widths):
        raise ValueError(
            f"{who}: classes must be a list of M = {len(widths)} arrays, one per output, got {len(classes)}."
        )
    given = np.array([len(c) for c in classes], dtype=np.intp)
    if (given > widths).any():
        m = int(np.argmax(given > widths))
        raise ValueError(f"{who}: classes of output {m} has {given[m]} labels, proba only {widths[m]} columns.")
    return given


def _check_values(proba: Probabilities, who: str) -> None:
    n_classes = proba.n_classes
    for block, span in proba.outputs():
        counts = n_classes[span]
        if (counts < 2).any():
            raise ValueError(f"{who}: proba must have at least 2 classes per output, got {int(counts.min())}.")
        for start in range(0, len(block), _CHECK_ROWS):
            _check_rows(block[start : start + _CHECK_ROWS], counts, start, who)


def _check_rows(rows: NDArray[Any], counts: IntArray, start: int, who: str) -> None:
    low, high = rows.min(), rows.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        at = start + int(np.argwhere(~np.isfinite(rows))[0][0])
        raise ValueError(f"{who}: proba must be finite, got NaN or infinity in row {at}.")
    if low < 0:
        at = start + int(np.argwhere(rows < 0)[0][0])
        raise ValueError(
            f"{who}: proba must be non-negative, got {low} in row {at}; turn scores into probabilities first."
        )
    if rows.ndim == 2:
        if high > 1:
            raise ValueError(f"{who}: proba must be at most 1, got {high}.")
        return
    tolerance = sum_tolerance(rows.shape[2])
    total = rows.sum(axis=2, dtype=np.float64)
    off = np.abs(total - 1) > tolerance
    if off.any():
        where = tuple(int(i) for i in np.argwhere(off)[0])
        raise ValueError(
            f"{who}: proba must sum to 1 over the classes (within {tolerance:.3g}), got {total[where]:.6g} in row "
            f"{start + where[0]}; pass normalize=True to divide scores by their sum."
        )
    for m in np.flatnonzero(counts < rows.shape[2]):
        if (rows[:, m, counts[m] :] != 0).any():
            raise ValueError(f"{who}: proba of output {m} must be 0 beyond its {counts[m]} classes.")


# ----------------------------------------------------------------------------------------------------- labels


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
        raise ValueError(
            f"{who}: y must have at least two classes, got only {decode(codes[codes >= 0][:1, None], found)[0, 0]!r}."
        )
    return Labels(codes, tuple(found), multioutput)


def _label_columns(y: Any, who: str) -> tuple[list[Any], bool]:
    """Return the columns of y as 1-D arrays, and whether y is 2-D."""
    if hasattr(y, "tocsr"):
        y = y.toarray()
    if is_frame(y):
        return [np.asarray(y[name]) for name in y.columns], True
    try:
        array = y if np.ma.isMaskedArray(y) else np.asarray(y)
    except ValueError:
        raise ValueError(f"{who}: y must have shape (N,) or (N, M), got rows of unequal length.") from None
    if array.ndim == 1:
        return [array], False
    if array.ndim == 2:
        return [array[:, m] for m in range(array.shape[1])], True
    raise ValueError(f"{who}: y must have shape (N,) or (N, M), got {array.shape}.")


def _given_classes(classes: Any, proba: Probabilities, who: str) -> list[Any]:
    if classes is None:
        return [None] * proba.n_outputs
    # Labels shared by all outputs may be given once, as a multilabel problem's usually are.
    nested = len(classes) > 0 and np.ndim(classes[0]) == 1
    per_output = list(classes) if nested else [classes] * proba.n_outputs
    if len(per_output) != proba.n_outputs:
        raise ValueError(f"{who}: classes must be a list of M = {proba.n_outputs} arrays, got {len(per_output)}.")
    arrays = [_label_array(labels) for labels in per_output]
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
    elif values.dtype.kind == "O":
        mask = mask | np.fromiter((_is_missing(v) for v in values), dtype=bool, count=len(values))
    if missing is not None:
        mask = mask | np.fromiter((v == missing for v in values), dtype=bool, count=len(values))
    return values, mask


def _encode(
    column: Any, classes: NDArray[Any] | None, n_classes: int, missing: Any, output: str, who: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    values, mask = _missing_mask(column, missing)
    seen = values[~mask]
    if classes is None:
        classes = _infer_classes(seen, n_classes, output, who)
    if values.dtype.kind in "iub" and not mask.any() and _is_range(classes) and _within(values, n_classes):
        return values, classes
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
    if values.dtype.kind != "O":
        labels, inverse = np.unique(values, return_inverse=True)
        return labels.tolist(), inverse.reshape(-1)
    distinct = list(dict.fromkeys(values.tolist()))
    try:
        distinct = sorted(distinct)
    except TypeError:
        distinct = sorted(distinct, key=lambda label: (type(label).__name__, str(label)))
    lookup = {label: code for code, label in enumerate(distinct)}
    return distinct, np.fromiter((lookup[v] for v in values.tolist()), dtype=np.intp, count=len(values))


def _infer_classes(seen: NDArray[Any], n_classes: int, output: str, who: str) -> NDArray[Any]:
    labels, _ = _unique(seen)
    if seen.dtype.kind == "b" and n_classes == 2:
        return np.array([False, True])
    if len(labels) == n_classes:
        return _label_array(labels)
    if all(isinstance(v, (int, float)) and v == int(v) and 0 <= v < n_classes for v in labels):
        return np.arange(n_classes)
    shown = labels if len(labels) <= 10 else [*labels[:10], "..."]
    raise ValueError(
        f"{who}: {output} has {len(labels)} distinct labels {shown} where proba has {n_classes} classes; pass classes= "
        "with the label of each column."
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


def classes_from_columns(proba: Any, y: Any, classes: Any, multioutput: bool | None) -> Any:
    """Take the classes of one output from the column names of a data frame, if `classes` does not say."""
    if classes is not None or multioutput or not is_frame(proba) or len(proba.columns) < 2:
        return classes
    names = list(proba.columns)
    if names == list(range(len(names))):
        return None
    if y is None:
        return names
    labels = _unique(_drop_missing(_label_columns(y, "optimize")[0][0]))[0]
    if set(labels) <= set(names):
        return names
    # A table read from a file has text for column names whatever the labels are.
    by_text = {str(label): label for label in labels}
    if set(by_text) <= set(map(str, names)):
        return [by_text.get(str(name), name) for name in names]
    return labels


def _drop_missing(column: Any) -> NDArray[Any]:
    values, mask = _missing_mask(column, None)
    return values[~mask]


def name_classes(classes: Any, proba: Probabilities, who: str) -> tuple[NDArray[Any], ...]:
    """Return the labels of every output where there is no y: those given, or 0..K_m-1."""
    given = _given_classes(classes, proba, who)
    return tuple(np.arange(k) if names is None else names for names, k in zip(given, proba.n_classes, strict=True))


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
    given = [None] * len(columns) if classes is None else list(classes) if several else [classes]
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


# ---------------------------------------------------------------------------------------------------- weights


def _read_weight(weight: Any, size: int, who: str, parameter: str, what: str) -> FloatArray:
    try:
        array = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{who}: {parameter} must be an array of numbers, got {type(weight).__name__}.") from None
    if array.shape != (size,):
        raise ValueError(f"{who}: {parameter} must have shape ({size},), one per {what}, got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{who}: {parameter} must be finite, got NaN or infinity.")
    if (array < 0).any():
        raise ValueError(f"{who}: {parameter} must be non-negative, got {array.min():.6g}.")
    if not (array > 0).any():
        raise ValueError(f"{who}: {parameter} must not be all zero.")
    return array


def read_sample_weight(sample_weight: Any, n_rows: int, who: str = "optimize") -> FloatArray | None:
    """Check the weights of rows; None stays None."""
    return None if sample_weight is None else _read_weight(sample_weight, n_rows, who, "sample_weight", "row")


def read_output_weight(output_weight: Any, n_outputs: int, who: str = "optimize") -> FloatArray:
    """Check the weights of outputs; None is ones."""
    if output_weight is None:
        return np.ones(n_outputs)
    return _read_weight(output_weight, n_outputs, who, "output_weight", "output")


def read_prior(prior: Any, n_classes: IntArray, who: str = "optimize") -> FloatArray:
    """Read class priors as an array of shape (M, K), padded with zeros.

    Parameters
    ----------
    prior : float, array-like of shape (K,) or (M, K), or list of M arrays
        A single number is the share of class 1 of a binary output.
    n_classes : ndarray of shape (M,)
    """
    n_outputs, width = len(n_classes), int(n_classes.max())
    if np.ndim(prior) == 0 and not isinstance(prior, (str, bytes)):
        rows = [[1.0 - float(prior), float(prior)]] * n_outputs
    elif np.ndim(prior[0]) == 0:
        rows = [prior] * n_outputs
    else:
        rows = list(prior)
    if len(rows) != n_outputs:
        raise ValueError(f"{who}: prior must be given once or for each of {n_outputs} outputs, got {len(rows)} rows.")
    out = np.zeros((n_outputs, width))
    for m, row in enumerate(rows):
        values = np.asarray(row, dtype=np.float64)
        if values.shape != (n_classes[m],):
            raise ValueError(
                f"{who}: prior must have one share per class, {n_classes[m]} for output {m}, got shape {values.shape}."
            )
        if not np.isfinite(values).all() or (values < 0).any() or abs(values.sum() - 1) > 1e-6:
            raise ValueError(f"{who}: prior must be non-negative and sum to 1, got {values.tolist()} for output {m}.")
        out[m, : n_classes[m]] = values
    return out
