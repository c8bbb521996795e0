"""Reading of the probabilities and the true labels of very many labels: sparse rows and indicator matrices.

Must not know metrics or rules.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.errors import InvalidParameter, InvalidType, argument, shown
from ..core.inputs import MAX_LOGIT
from ..core.label_rows import LabelRows, entry_type
from ..core.label_sets import LabelSets
from ..core.labels import has_masked, split_missing
from .frames import as_array, is_frame, refuse_lazy
from .kernel_notice import warn_of_slow_kernels
from .logits import NO_INPUT, Remedies
from .probabilities import read_proba

__all__ = ["as_csr", "csr_like", "is_in_pieces", "is_sparse", "join_pieces", "read_label_rows", "read_label_targets"]

LongArray = NDArray[np.int64]

_KINDS = ("probabilities", "logits", "scores")
_NEEDS_ALL = "labels_per_row and sparse probabilities need all labels"
_TARGET_ROWS = 1 << 12  # rows of a dense indicator matrix that are compared at a time


def is_sparse(values: Any) -> bool:
    """Whether `values` is a sparse matrix or array, of SciPy or of a library that converts to it."""
    return hasattr(values, "tocsr") and not isinstance(values, type)


def is_in_pieces(values: Any) -> bool:
    """Whether probabilities or labels are sparse pieces, one below the other."""
    return isinstance(values, (list, tuple)) and len(values) > 0 and all(is_sparse(piece) for piece in values)


def join_pieces(values: Any, parameter: str) -> Any:
    """Return sparse pieces as one array; anything else as it is."""
    from scipy import sparse

    if not is_in_pieces(values):
        return values
    widths = {piece.shape[1] for piece in values}
    if len(widths) > 1:
        raise InvalidParameter(parameter, "be pieces with the same number of columns", shown(sorted(widths)))
    return sparse.vstack([piece.tocsr() for piece in values], format="csr")


def as_csr(values: Any, parameter: str) -> Any:
    """Return a sparse matrix or array as SciPy's CSR, which is itself if it is one."""
    from scipy import sparse

    if getattr(values, "ndim", 2) != 2:
        raise InvalidParameter(
            parameter, "have shape (N, M)", f"shape {values.shape}", f"pass {parameter}.reshape(1, -1) for a single row"
        )
    converted = values.tocsr()
    if not sparse.issparse(converted):
        kind = f"{type(values).__module__}.{type(values).__name__}"
        raise InvalidType(parameter, "be a sparse array of scipy.sparse", kind, "convert it to scipy.sparse.csr_array")
    return converted


def csr_like(
    original: Any, values: NDArray[Any], indices: NDArray[Any], indptr: LongArray, shape: tuple[int, int]
) -> Any:
    """Return entries as CSR: a matrix if the original is a matrix of SciPy, else an array."""
    from scipy import sparse

    make = sparse.csr_matrix if isinstance(original, sparse.spmatrix) else sparse.csr_array
    return make((values, indices, indptr), shape=shape)


def read_label_rows(
    proba: Any, n_labels: int | None = None, kind: str = "probabilities", remedies: Remedies = NO_INPUT
) -> LabelRows:
    """Read probabilities, logits or scores of very many labels.

    Parameters
    ----------
    proba : sparse array or matrix, or array-like, of shape (N, M)
        An entry that is not stored has probability 0, whatever `kind` is. Formats other than CSR are converted, and
        labels that are not in order within a row are sorted. The values of CSR in float32 or float64 are not copied.
    n_labels : int, optional
        M, if it is known.
    kind : {"probabilities", "logits", "scores"}, default="probabilities"
        What the stored numbers are.
    remedies : Remedies, optional
        What to do with numbers that are something else, for error messages.

    Returns
    -------
    LabelRows

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from metricwise.data.label_rows import read_label_rows
    >>> rows = read_label_rows(csr_array([[0.5, 0.0, 0.2], [0.0, 0.0, 0.7]]))
    >>> rows.indptr.tolist(), rows.indices.tolist(), rows.values.tolist()
    ([0, 2, 3], [0, 2, 2], [0.5, 0.2, 0.7])
    """
    refuse_lazy(proba, "proba")
    if kind not in _KINDS:
        raise InvalidParameter(
            "input",
            f"be one of {', '.join(map(repr, _KINDS))} for very many labels",
            shown(kind),
            f"pass {argument('input', 'logits')} with log-odds, log(p) - log(1 - p)",
        )
    if not is_sparse(proba):
        return _read_dense(proba, n_labels, kind, remedies)
    csr = as_csr(proba, "proba")
    _check_shape(csr.shape, n_labels)
    indptr = _read_indptr(csr, "proba")
    if csr.data.dtype.kind not in "fiub":
        raise InvalidType("proba", "hold real numbers", f"entries of type {csr.data.dtype}")
    values = np.ascontiguousarray(csr.data[: indptr[-1]], dtype=entry_type(csr.data.dtype))
    indices = _read_indices(csr.indices[: indptr[-1]])
    rows = LabelRows(indptr, indices, values, int(csr.shape[1]))
    return _checked(rows, kind, remedies)


def _read_dense(proba: Any, n_labels: int | None, kind: str, remedies: Remedies) -> LabelRows:
    if hasattr(proba, "shape") and not is_frame(proba) and len(proba.shape) != 2:
        raise InvalidParameter("proba", "have shape (N, M), one column for each label", f"shape {proba.shape}")
    (block,) = read_proba(proba, multioutput=True, check=False).blocks
    if block.ndim != 2:
        raise InvalidParameter("proba", "have shape (N, M), one column for each label", f"shape {block.shape}")
    _check_shape(block.shape, n_labels)
    return _checked(LabelRows.of_array(block), kind, remedies)


def _check_shape(shape: tuple[int, ...], n_labels: int | None) -> None:
    if n_labels is not None and shape[1] != n_labels:
        raise InvalidParameter(
            "proba", f"have {n_labels} columns, one for each label", f"shape {tuple(shape)}", "pass all labels in order"
        )
    if shape[0] == 0 or shape[1] == 0:
        what = "row" if shape[0] == 0 else "column"
        raise InvalidParameter("proba", f"have at least one {what}", f"shape {tuple(shape)}")


def _read_indptr(csr: Any, parameter: str) -> LongArray:
    indptr = np.ascontiguousarray(csr.indptr, dtype=np.int64)
    stored = min(len(csr.data), len(csr.indices))
    if len(indptr) != csr.shape[0] + 1 or indptr[0] != 0 or indptr[-1] > stored or (np.diff(indptr) < 0).any():
        raise InvalidParameter(
            parameter,
            "be a valid CSR array",
            "an indptr that does not ascend from 0 to the number of entries",
            f"see {parameter}.check_format()",
        )
    return indptr


def _read_indices(indices: NDArray[Any]) -> NDArray[Any]:
    wide = np.int32 if indices.dtype.itemsize <= 4 and indices.dtype != np.uint32 else np.int64
    return np.ascontiguousarray(indices, dtype=wide)


def _checked(rows: LabelRows, kind: str, remedies: Remedies) -> LabelRows:
    """Return the rows, sorted where they are not, without infinite logits; refuse what cannot be read."""
    warn_of_slow_kernels([rows.values])
    ends = (0.0, 1.0) if kind == "probabilities" else (-np.inf, np.inf)
    reason, entry = kernels.label_check(rows.indptr, rows.indices, rows.values, rows.n_labels, *ends)
    if reason == 2:
        indices, order = _sorted(rows, "proba")
        rows = LabelRows(rows.indptr, indices, rows.values[order], rows.n_labels)
        reason, entry = kernels.label_check(rows.indptr, rows.indices, rows.values, rows.n_labels, *ends)
    if reason == 3 and kind != "probabilities" and not np.isnan(rows.values).any():
        limit = MAX_LOGIT[rows.values.dtype.itemsize]
        values = np.clip(rows.values, -limit, limit)
        rows = LabelRows(rows.indptr, rows.indices, values, rows.n_labels)
        reason, entry = kernels.label_check(rows.indptr, rows.indices, values, rows.n_labels, *ends)
    if reason:
        _refuse_entry(rows, reason, entry, kind, remedies)
    return rows


def _sorted(rows: LabelRows, parameter: str) -> tuple[NDArray[Any], LongArray]:
    """Return the labels in order within each row, and the places that they had; refuse a label that is there twice."""
    assert rows.indices is not None
    row = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
    order = np.lexsort((rows.indices, row))
    indices = rows.indices[order]
    twice = np.flatnonzero((np.diff(indices) == 0) & (np.diff(row) == 0))
    if len(twice):
        at = int(twice[0])
        raise InvalidParameter(
            parameter,
            "have every label of a row once",
            f"label {indices[at]} more than once in row {row[at]}",
            f"call {parameter}.sum_duplicates() if the entries are meant to be added",
        )
    return indices, order


def _refuse_entry(rows: LabelRows, reason: int, entry: int, kind: str, remedies: Remedies) -> NoReturn:
    row = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
    label = entry - int(rows.indptr[row]) if rows.indices is None else int(rows.indices[entry])
    value = rows.values[entry]
    if reason == 1:
        raise InvalidParameter(
            "proba", f"have labels from 0 to {rows.n_labels - 1}", f"label {label} in row {row}", "check its indices"
        )
    if np.isnan(value) or (kind == "probabilities" and np.isinf(value)):
        problem = f"{kind} must not be NaN" if kind != "probabilities" else "proba must be finite"
        raise InvalidParameter(
            "proba",
            problem=f"{problem}, got {value} for label {label} in row {row}",
            remedy="drop such rows, and their labels if there are any",
        )
    must = "be non-negative" if value < 0 else "be at most 1"
    raise InvalidParameter("proba", must, f"{value} for label {label} in row {row}", remedies.for_scores)


# ------------------------------------------------------------------------------------------------------- true labels


def read_label_targets(y: Any, n_rows: int, n_labels: int, parameter: str = "y") -> LabelSets:
    """Read the true labels of rows of very many labels, or decisions about them.

    Parameters
    ----------
    y : sparse array or matrix, or array-like, of shape (N, M)
        An indicator matrix of 0 and 1, or False and True; entries that are not stored are 0.
    n_rows, n_labels : int
        N and M, as in the probabilities.
    parameter : str, default="y"
        What it was given as, for error messages.

    Returns
    -------
    LabelSets

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from metricwise.data.label_rows import read_label_targets
    >>> targets = read_label_targets(csr_array([[1, 0, 1], [0, 0, 0]]), 2, 3)
    >>> targets.indptr.tolist(), targets.indices.tolist()
    ([0, 2, 2], [0, 2])
    """
    refuse_lazy(y, parameter)
    if not is_sparse(y):
        return _read_dense_targets(y, n_rows, n_labels, parameter)
    csr = as_csr(y, parameter)
    _check_target_shape(csr.shape, n_rows, n_labels, parameter)
    indptr = _read_indptr(csr, parameter)
    values, indices = csr.data[: indptr[-1]], _read_indices(csr.indices[: indptr[-1]])
    _check_indicators(values, parameter)
    if len(indices) and not (indices.min() >= 0 and indices.max() < n_labels):
        at = int(np.argmax((indices < 0) | (indices >= n_labels)))
        got = f"label {indices[at]} in row {int(np.searchsorted(indptr, at, side='right')) - 1}"
        raise InvalidParameter(parameter, f"have labels from 0 to {n_labels - 1}", got, "check its indices")
    rows = LabelRows(indptr, indices, values, n_labels)
    falls = np.diff(indices) <= 0
    starts = indptr[1:-1]
    falls[starts[(starts > 0) & (starts < len(indices))] - 1] = False
    if falls.any():
        indices, order = _sorted(rows, parameter)
        values = values[order]
    if len(values) and not values.all():
        kept = np.append(0, np.cumsum(values != 0, dtype=np.int64))
        indices, indptr = indices[values != 0], kept[indptr]
    return LabelSets(indptr, indices, n_labels)


def _read_dense_targets(y: Any, n_rows: int, n_labels: int, parameter: str) -> LabelSets:
    if has_masked(y):
        _refuse_missing(parameter, int(np.argwhere(np.ma.getmaskarray(y))[0][0]))
    array = as_array(y)
    _check_target_shape(array.shape, n_rows, n_labels, parameter)
    counts, indices = [np.zeros(1, dtype=np.int64)], []
    narrow = np.int32 if n_labels <= np.iinfo(np.int32).max else np.int64
    for start in range(0, n_rows, _TARGET_ROWS):
        part = array[start : start + _TARGET_ROWS]
        _check_indicators(part.reshape(-1), parameter, n_labels, start)
        row, label = np.nonzero(part)
        counts.append(np.bincount(row, minlength=len(part)))
        indices.append(label.astype(narrow))
    return LabelSets(np.cumsum(np.concatenate(counts), dtype=np.int64), np.concatenate(indices), n_labels)


def _check_target_shape(shape: tuple[int, ...], n_rows: int, n_labels: int, parameter: str) -> None:
    if tuple(shape) != (n_rows, n_labels):
        raise InvalidParameter(
            parameter,
            f"have the shape of proba, {(n_rows, n_labels)}",
            f"shape {tuple(shape)}",
            "pass a 0/1 matrix with a row for each row of proba and a column for each label",
        )


def _check_indicators(values: NDArray[Any], parameter: str, width: int = 0, first_row: int = 0) -> None:
    """Refuse what is neither 0 nor 1; `width` is that of dense rows, whose positions messages tell."""
    if values.dtype.kind == "b":
        return
    if values.dtype.kind in "fO":
        _, missing = split_missing(values)
        if missing.any():
            _refuse_missing(parameter, first_row + int(np.argmax(missing)) // width if width else None)
    if values.dtype.kind in "fiuO":
        wrong = np.flatnonzero(~((values == 0) | (values == 1)))
        if not len(wrong):
            return
        got = shown(values[wrong[0]])
    else:
        got = f"entries of type {values.dtype}"
    raise InvalidParameter(
        parameter,
        "be 0 or 1, or False or True, for every label",
        got,
        "pass an indicator matrix, as from sklearn.preprocessing.MultiLabelBinarizer(sparse_output=True)",
    )


def _refuse_missing(parameter: str, row: int | None) -> NoReturn:
    where = "" if row is None else f" in row {row}"
    raise InvalidParameter(
        parameter,
        f"not have missing labels, because {_NEEDS_ALL}",
        f"a missing label{where}",
        "drop such rows, or pass 0 for labels that are known to be absent",
    )
