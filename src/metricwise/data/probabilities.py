"""Probabilities in any of the accepted shapes, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.errors import InvalidParameter, InvalidType, argument, shown
from ..core.inputs import MAX_LOGIT, PROBABILITIES, Input, identity
from ..core.labels import has_masked, missing_rows, per_output
from ..core.probabilities import Probabilities
from .frames import as_array, is_frame, is_list_of_outputs, match_columns, refuse_lazy
from .kernel_notice import warn_of_slow_kernels
from .logits import NO_INPUT, Remedies, read_logits

__all__ = ["Probabilities", "read_proba", "sum_tolerance"]

IntArray = NDArray[np.intp]

_CHECK_ROWS = 1 << 14


def sum_tolerance(n_classes: int) -> float:
    """How far a row of probabilities may be from summing to 1: rounding to two decimals is accepted, more is not."""
    return min(0.005 * n_classes + 1e-6, 0.05)


def read_proba(
    proba: Any,
    *,
    multioutput: bool | None = None,
    classes: Any = None,
    columns: Sequence[Any] | None = None,
    normalize: bool = False,
    first_row: int = 0,
    check: bool = True,
    row_input: Input = PROBABILITIES,
    remedies: Remedies = NO_INPUT,
) -> Probabilities:
    """Read probabilities, or logits, in any of the accepted shapes.

    Parameters
    ----------
    proba : array-like
        (N,) binary, (N, K), (N, M) multilabel, (N, M, K), or a list of M arrays (N, K_m).
    multioutput : bool, optional
        Whether y is 2-D; None if there is no y, when a 2-D array is (N, K).
    classes : array-like or list of array-likes, optional
        Class labels, to which the columns of a data frame are matched, and which determine K_m of a padded (N, M, K)
        array.
    columns : sequence, optional
        Names of the outputs, to which the columns of a multilabel data frame are matched.
    normalize : bool, default=False
        Whether to divide each row by its sum, so that non-negative scores are accepted.
    first_row : int, default=0
        Number of rows before these, for error messages.
    check : bool, default=True
        Whether to check the numbers.
    row_input : Input, optional
        What the numbers are; by default, probabilities.
    remedies : Remedies, optional
        What to do with numbers that are something else, for error messages.

    Returns
    -------
    Probabilities

    See Also
    --------
    metricwise.core.probabilities.Probabilities : The result.

    Examples
    --------
    >>> from metricwise.data.probabilities import read_proba
    >>> proba = read_proba([[0.7, 0.2, 0.1], [0.2, 0.2, 0.6]])
    >>> proba.n_rows, proba.n_classes.tolist()
    (2, [3])
    """
    refuse_lazy(proba, "proba")
    if hasattr(proba, "tocsr"):
        raise InvalidType("proba", "be a dense array", "a sparse matrix", "pass proba.toarray()")
    if is_list_of_outputs(proba) and multioutput is not False:
        blocks = _read_list(proba, classes)
    else:
        blocks = [_read_array(proba, multioutput, classes, columns)]
    if normalize:
        blocks = [_normalized(block) for block in blocks]
    if len({len(block) for block in blocks}) != 1:
        raise InvalidParameter(
            "proba",
            problem=f"the arrays of proba must have the same number of rows, got {[len(block) for block in blocks]}",
        )
    counts = _class_counts(blocks, classes)
    warn_of_slow_kernels(blocks)
    if row_input.graded:
        _check_one_score(blocks[0], classes)
        scores = _read_logits(blocks, counts, row_input, first_row, remedies, check)
        return graded_logits(scores, row_input, len(classes))
    if row_input.is_logits:
        return _read_logits(blocks, counts, row_input, first_row, remedies, check)
    result = Probabilities(tuple(blocks), counts)
    if check:
        _check_values(result, first_row, remedies)
    return result


def _read_logits(
    blocks: Sequence[NDArray[Any]],
    counts: IntArray,
    row_input: Input,
    first_row: int,
    remedies: Remedies,
    check: bool,
) -> Probabilities:
    """Return logits behind the map of their input; of scores without one yet, as they are."""
    width = int(counts.max())
    result = Probabilities(tuple(blocks), counts, row_input.base or identity(len(counts), width))
    if check:
        _check_class_counts(result)
    read = (
        read_logits(block, row_input, counts[span], sum_tolerance(block.shape[-1]), first_row, remedies, check=check)
        for block, span in result.spans()
    )
    return replace(result, blocks=tuple(read))


def _check_one_score(block: NDArray[Any], classes: Any) -> None:
    """Refuse numbers for each class, and several scores."""
    if block.ndim != 2 or block.shape[1] != 1:
        got = (len(block), *block.shape[1 if block.ndim == 2 else 2 :])
        raise InvalidParameter("proba", f"have shape (N,), one score of each row for all {len(classes)} classes", got)


def graded_logits(proba: Probabilities, row_input: Input, n_classes: int) -> Probabilities:
    """Return the logits of ordered classes that one score stands for; the score alone before its map is fitted.

    Parameters
    ----------
    proba : Probabilities
        A single column of scores, or what this has made of it before.
    row_input : Input
        Graded.
    n_classes : int
    """
    scores = proba.blocks[0][:, 0] if proba.scores is None else proba.scores
    counts = np.array([n_classes], dtype=np.intp)
    if row_input.ordinal is None:
        return Probabilities((scores[:, None],), counts, identity(1, n_classes), scores)
    logits = np.maximum(row_input.ordinal.log_proba(scores), -MAX_LOGIT[8])
    return Probabilities((logits[:, None, :],), counts, identity(1, n_classes), scores)


def _float_array(values: Any) -> NDArray[Any]:
    if has_masked(values):
        raise InvalidType(
            "proba",
            "not have masked entries, because every row needs probabilities",
            remedy="drop the masked rows, and their labels if there are any",
        )
    try:
        array = as_array(values)
        if array.dtype.kind not in "fiubO":
            raise TypeError
        if array.dtype.kind != "f" or array.dtype.itemsize > 8:
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        _refuse_missing(values)
        raise InvalidType("proba", "be an array of numbers", _kind_of(values)) from None
    if array.ndim == 0:
        raise InvalidParameter("proba", "be an array of probabilities", shown(values))
    if array.size == 0:
        what = "row" if len(array) == 0 else "column"
        raise InvalidParameter("proba", f"have at least one {what}", f"shape {array.shape}")
    return array


def _refuse_missing(values: Any) -> None:
    """Say which row has no probability, where that is why it is no array of numbers."""
    try:
        rows = missing_rows(as_array(values))
    except ValueError:  # rows of unequal length
        return
    if len(rows):
        raise InvalidParameter(
            "proba",
            "be finite",
            f"NA in row {rows[0]}",
            "probabilities must not be missing: drop such rows, and their labels if there are any",
        )


def _kind_of(values: Any) -> str:
    """What was given instead of numbers, in a word or two."""
    if isinstance(values, (list, tuple)) and len(values) and hasattr(values[0], "shape"):
        return f"a {type(values).__name__} of arrays of shapes {[np.shape(item) for item in values[:3]]}"
    dtype = getattr(values, "dtype", None)
    return type(values).__name__ if dtype is None else f"{type(values).__name__} of {dtype}"


def _read_list(proba: Sequence[Any], classes: Any) -> list[NDArray[Any]]:
    blocks = []
    names = per_output(classes, len(proba))
    for m, item in enumerate(proba):
        array = _float_array(match_columns(item, names[m], f"proba[{m}]"))
        if array.ndim != 2:
            raise InvalidParameter(
                "proba",
                problem=f"proba given as a list must hold arrays of shape (N, K_m), got {array.shape} for output {m}",
            )
        blocks.append(array[:, None, :])
    return blocks


def _read_array(proba: Any, multioutput: bool | None, classes: Any, columns: Sequence[Any] | None) -> NDArray[Any]:
    if is_frame(proba):
        if multioutput:
            proba = match_columns(proba, columns, kind="output")
        else:
            proba = match_columns(proba, per_output(classes, 1)[0])
    array = _float_array(proba)
    if array.ndim == 1:
        if multioutput:
            raise InvalidParameter("proba", "be 2-D or 3-D if y is 2-D", f"shape {array.shape}")
        return array[:, None]
    if array.ndim == 2:
        return array if multioutput else (array if array.shape[1] == 1 else array[:, None, :])
    if array.ndim == 3 and multioutput is not False:
        return array
    expected = "(N,) or (N, K) if y is 1-D" if multioutput is False else "1-D, 2-D or 3-D"
    raise InvalidParameter("proba", f"have shape {expected}", array.shape)


def _normalized(block: NDArray[Any]) -> NDArray[Any]:
    if block.ndim == 2:
        raise InvalidParameter(
            "normalize",
            problem=f"{argument('normalize', True)} needs a score for every class, shape (N, K) or (N, M, K)",
            remedy="got only the scores of the positive class",
        )
    total = block[..., :1].astype(np.float64)
    for k in range(1, block.shape[-1]):  # in order, whatever the layout: a chunk must give what the whole gives
        total += block[..., k : k + 1]
    if block.size and not (block.min() >= 0 and total.min() > 0 and total.max() < np.inf):  # NaN fails them all
        raise InvalidParameter(
            "proba",
            problem=(
                f"with {argument('normalize', True)}, the scores in proba must be finite, non-negative and "
                "not all zero in any row"
            ),
        )
    return np.asarray(block / total, dtype=block.dtype)


def _class_counts(blocks: Sequence[NDArray[Any]], classes: Any) -> IntArray:
    """K_m of each output: the width of its block, less the padding that `classes` reveals."""
    counts = [2 if block.ndim == 2 else block.shape[2] for block in blocks]
    if len(blocks) == 1 and blocks[0].shape[1] == 1:  # a row is served in as many microseconds as there are steps
        return np.array(counts, dtype=np.intp)
    widths = np.array(counts, dtype=np.intp).repeat([block.shape[1] for block in blocks])
    if classes is None or len(widths) == 1 or blocks[0].ndim == 2:
        return widths
    listed = per_output(classes, len(widths))
    n_labels = np.array([k if names is None else len(names) for names, k in zip(listed, widths, strict=True)], np.intp)
    if (n_labels > widths).any():
        m = int(np.argmax(n_labels > widths))
        raise InvalidParameter(
            "classes",
            problem=f"classes of output {m} must have one label per column of proba, {widths[m]}, got {n_labels[m]}",
        )
    return n_labels


def _check_values(proba: Probabilities, first_row: int, remedies: Remedies) -> None:
    _check_class_counts(proba)
    for block, span in proba.spans():
        counts = proba.n_classes[span]
        if kernels.check_rows(block, counts, sum_tolerance(block.shape[-1])):
            continue
        for start in range(0, len(block), _CHECK_ROWS):  # to say which row it is
            _check_rows(block[start : start + _CHECK_ROWS], counts, first_row + start, remedies)


def _check_class_counts(proba: Probabilities) -> None:
    least = int(proba.n_classes[0] if proba.n_outputs == 1 else proba.n_classes.min())
    if least < 2:
        raise InvalidParameter("proba", "have at least 2 classes per output", least)


def _check_rows(rows: NDArray[Any], counts: IntArray, start: int, remedies: Remedies) -> None:
    low, high = rows.min(), rows.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        at = start + int(np.argwhere(~np.isfinite(rows))[0][0])
        raise InvalidParameter(
            "proba",
            "be finite",
            f"NaN or infinity in row {at}",
            "probabilities must not be missing: drop such rows, and their labels if there are any",
        )
    if low < 0:
        at = start + int(np.argwhere(rows < 0)[0][0])
        raise InvalidParameter("proba", "be non-negative", f"{low} in row {at}", remedies.for_scores)
    if rows.ndim == 2:
        if high > 1:
            raise InvalidParameter("proba", "be at most 1", high, remedies.for_scores)
        return
    tolerance = sum_tolerance(rows.shape[2])
    total = np.add.reduce(np.moveaxis(rows, 2, 0), dtype=np.float64)  # over short rows class by class is faster
    off = np.abs(total - 1) > tolerance
    if off.any():
        where = tuple(int(i) for i in np.argwhere(off)[0])
        raise InvalidParameter(
            "proba",
            f"sum to 1 over the classes (within {tolerance:.3g})",
            f"{total[where]:.6g} in row {start + where[0]}",
            f"divide scores by their sum, or {remedies.for_scores}",
        )
    for m in np.flatnonzero(counts < rows.shape[2]):
        if (rows[:, m, counts[m] :] != 0).any():
            raise InvalidParameter("proba", problem=f"proba of output {m} must be 0 beyond its {counts[m]} classes")
