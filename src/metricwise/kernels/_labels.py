"""Passes over rows that store few of very many labels: the NumPy twins.

Rows are read some at a time, so that what is held beside them stays small. A label is predicted by its score,
``scale * probability + offset`` in float64, a product and a sum that are rounded one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._block import FloatArray, LabelBlock, LabelForm
from ._link import exp, log

LongArray = NDArray[np.int64]

_FEW = 1 << 20  # entries that are read together
_CERTAIN = 1.0 - 1e-12  # the largest probability of a hit: the logarithm of a miss is finite
_RESIDUE = 1e-9  # what is left of sums by rounding, per unit of the weight taken out
_LEAST_DENOMINATOR = 1e-12
_SERIES = 1e-5  # below, (1 - exp(-x)) / x is a polynomial
_SLOPE_SERIES = 1e-2  # below, so is its derivative


class _Rows(NamedTuple):
    """Some rows, entry by entry."""

    numbers: LongArray  # (n,): which rows
    entries: Any  # positions of their entries, or a slice
    row: LongArray  # of each entry, counted within these rows
    labels: NDArray[Any]
    values: NDArray[Any]


def _some_rows(block: LabelBlock) -> Iterator[_Rows]:
    """Yield all rows that are read, few enough at a time."""
    numbers = np.arange(len(block.indptr) - 1) if block.rows is None else block.rows
    length = block.indptr[numbers + 1] - block.indptr[numbers]
    ends = np.cumsum(length)
    start = 0
    while start < len(numbers):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _FEW, side="right")))
        row_numbers, own_length = numbers[start:stop], length[start:stop]
        row = np.repeat(np.arange(len(row_numbers)), own_length)
        first = block.indptr[row_numbers]
        place = np.arange(len(row)) - np.repeat(np.cumsum(own_length) - own_length, own_length)
        entries: Any = first[row] + place
        if block.rows is None:
            entries = slice(int(first[0]), int(first[0]) + len(row))
        labels = place if block.indices is None else block.indices[entries]
        yield _Rows(row_numbers, entries, row, labels, block.values[entries])
        start = stop


def _weights(block: LabelBlock, numbers: LongArray) -> FloatArray:
    """Return the weights of rows, ones where none are given."""
    return np.ones(len(numbers)) if block.weight is None else block.weight[numbers]


def label_check(
    indptr: LongArray, indices: NDArray[Any] | None, values: NDArray[Any], n_labels: int, low: float, high: float
) -> tuple[int, int]:
    """Find the first entry that is not as it should be.

    Returns
    -------
    reason : int
        0 where all is well; 1 the label is out of range, 2 it is not above the label before it in its row, 3 the value
        is not finite or not within `low` and `high`.
    entry : int
        Its position; -1 where all is well.
    """
    for start in range(0, len(values), _FEW):
        some = slice(start, start + _FEW)
        wide = values[some].astype(np.float64)
        reason = np.where(np.isfinite(wide) & (wide >= low) & (wide <= high), 0, 3)
        if indices is not None:
            labels = indices[some]
            begins = indptr[:-1][(indptr[:-1] >= start) & (indptr[:-1] < start + len(labels))] - start
            before = np.append(indices[start - 1] if start else -1, labels[:-1])
            falls = labels <= before
            falls[begins] = False
            reason[falls] = 2
            reason[(labels < 0) | (labels >= n_labels)] = 1
        wrong = np.flatnonzero(reason)
        if len(wrong):
            return int(reason[wrong[0]]), start + int(wrong[0])
    return 0, -1


def label_mark(
    values: NDArray[Any],
    indptr: LongArray,
    indices: NDArray[Any] | None,
    n_labels: int,
    y_indptr: LongArray,
    y_indices: NDArray[Any],
) -> None:
    """Set the sign of the entries whose label is true, in place; true labels that are not stored are left out.

    Parameters
    ----------
    values : ndarray of shape (E,), float32 or float64
        Not negative.
    indptr, indices : ndarray of shape (N + 1,) and (E,)
        As in a `LabelBlock`.
    n_labels : int
    y_indptr, y_indices : ndarray
        True labels of each row, ascending.
    """
    n_rows = len(indptr) - 1
    for start in range(0, n_rows, max(1, _FEW // 64)):
        stop = min(start + max(1, _FEW // 64), n_rows)
        row = np.repeat(np.arange(start, stop), np.diff(y_indptr[start : stop + 1]))
        true = y_indices[y_indptr[start] : y_indptr[stop]].astype(np.int64)
        if indices is None:
            marked = indptr[row] + true
        else:
            row_entries = slice(int(indptr[start]), int(indptr[stop]))
            stored_row = np.repeat(np.arange(start, stop), np.diff(indptr[start : stop + 1]))
            stored = stored_row * n_labels + indices[row_entries]
            true_keys = row * n_labels + true
            at = np.searchsorted(stored, true_keys)
            at, true_keys = at[at < len(stored)], true_keys[at < len(stored)]
            marked = row_entries.start + at[stored[at] == true_keys]
        values[marked] = np.copysign(values[marked], -1.0)


def label_calibrate(
    values: NDArray[Any], temperature: float, bias: float, floor: float, of_logits: bool
) -> NDArray[Any]:
    """Return ``sigmoid(temperature * logit(p) + bias)`` of each value, signs kept and 0 as it is.

    Parameters
    ----------
    values : ndarray of shape (E,), float32 or float64
    temperature, bias : float
    floor : float
        Probabilities are kept this far from 0 and 1.
    of_logits : bool
        Values are logits, without marks.

    Returns
    -------
    ndarray of shape (E,)
        Of the dtype of `values`; the twins agree to the bit.
    """
    out = np.empty_like(values)
    for start in range(0, len(values), _FEW):
        some = slice(start, start + _FEW)
        chosen = values[some]
        if of_logits:
            logit = chosen.astype(np.float64)
        else:
            p = np.minimum(np.maximum(np.abs(chosen).astype(np.float64), floor), 1.0 - floor)
            logit = log(p) - log(1.0 - p)
        x = logit * temperature
        x += bias
        e = exp(-np.abs(x))
        r = 1.0 / (1.0 + e)
        p = np.where(x >= 0, r, e * r)
        if of_logits:
            out[some] = p
        else:
            out[some] = np.copysign(np.where(chosen == 0, 0.0, p), chosen)
    return out


def label_sums(block: LabelBlock) -> FloatArray:
    """Sum weighted probabilities, and the weights of true labels, of each label.

    Returns
    -------
    ndarray of shape (M, 2)
    """
    out = np.zeros((block.n_labels, 2))
    for rows in _some_rows(block):
        weight = _weights(block, rows.numbers)[rows.row]
        true = np.signbit(rows.values)
        out[:, 0] += np.bincount(rows.labels, np.abs(rows.values) * weight, minlength=block.n_labels)
        out[:, 1] += np.bincount(rows.labels[true], weight[true], minlength=block.n_labels)
    return out


def _score(rows: _Rows, scale: FloatArray, offset: FloatArray) -> FloatArray:
    by_label, shift = (part if len(part) == 1 else part[rows.labels] for part in (scale, offset))
    score: FloatArray = by_label * np.abs(rows.values).astype(np.float64)
    score += shift
    return score


def _ranked(
    scores: FloatArray,
    labels: Sequence[int],
    offset: Callable[[int], float],
    low: int,
    high: int,
    fill: Sequence[int],
) -> list[tuple[float, int, int]]:
    """Return what is predicted for one row: minus the score, the label, and its place in the row or -1."""
    best = [(-float(scores[at]), int(labels[at]), int(at)) for at in np.argsort(-scores, kind="stable")[:high]]
    # What a score must reach: the best `high` of the row if it is positive, the best `low` if it is not.
    positive, other = (-best[rank - 1][0] if 0 < rank <= len(best) else -math.inf for rank in (high, low))
    stored: set[int] | None = None
    others: list[tuple[float, int, int]] = []
    for label in fill:
        score = offset(label)
        if len(others) == high or (score < positive if score > 0 else score < other or len(others) >= low):
            break
        stored = set(labels) if stored is None else stored
        if label not in stored:
            others.append((-score, label, -1))
    ranking = sorted(best + others)[:high]
    return [entry for rank, entry in enumerate(ranking) if rank < low or entry[0] < 0]


def _predicted(
    rows: _Rows, scale: FloatArray, offset: FloatArray, low: int, high: int, fill: LongArray | None
) -> tuple[NDArray[np.bool_], LongArray, LongArray]:
    """Say which entries are predicted, and the rows and labels of what is predicted and not stored."""
    score = _score(rows, scale, offset)
    nothing = np.empty(0, dtype=np.int64)
    if high < 0:
        return score > 0, nothing, nothing
    order = np.lexsort((-score, rows.row))
    length = np.bincount(rows.row, minlength=len(rows.numbers))
    first = np.cumsum(length) - length
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(first, length)
    picked = (rank < low) | ((rank < high) & (score > 0))
    if fill is None or len(fill) == 0:
        return picked, nothing, nothing

    def shift(label: int) -> float:
        return float(offset[label if len(offset) > 1 else 0])

    # Most rows store enough labels that are better than the best of those that they do not store.
    best, label = shift(int(fill[0])), int(fill[0])
    ahead = (score > best) | ((score == best) & (rows.labels < label))
    better = np.bincount(rows.row[ahead], minlength=len(rows.numbers))
    extra_rows, extra_labels = [], []
    fill_labels = None
    for i in np.flatnonzero((better < high) & ((best > 0) | (better < low))).tolist():
        fill_labels = fill.tolist() if fill_labels is None else fill_labels
        row_entries = slice(int(first[i]), int(first[i] + length[i]))
        picked[row_entries] = False
        for _, label, place in _ranked(
            score[row_entries], rows.labels[row_entries].tolist(), shift, low, high, fill_labels
        ):
            if place >= 0:
                picked[row_entries.start + place] = True
            else:
                extra_rows.append(i)
                extra_labels.append(label)
    return picked, np.array(extra_rows, dtype=np.int64), np.array(extra_labels, dtype=np.int64)


def label_count(
    block: LabelBlock,
    tables: Sequence[tuple[FloatArray, FloatArray]],
    low: int,
    high: int,
    fill: Sequence[LongArray | None] | None,
) -> FloatArray:
    """Count what each of R tables predicts.

    Parameters
    ----------
    block : LabelBlock
    tables : sequence of (scale, offset)
        Each of shape (M,), or (1,) for all labels alike.
    low, high : int
        Of the labels of a row, ordered by score, the first `low` are predicted, and the others before `high` whose
        score is positive. With high -1 all stored labels of positive score are.
    fill : sequence of int64 ndarray, or None
        For each table, labels by decreasing offset, the lower first among equals: those that a row does not store
        take part with these. At least as many as `high` and the entries of any row, or all M. None: they take no part.

    Returns
    -------
    ndarray of shape (R, M, 3)
        Weighted probabilities of predicted entries, weights of those that are true, and weights of all rows that the
        label is predicted for, whether stored or not.
    """
    out = np.zeros((len(tables), block.n_labels, 3))
    for rows in _some_rows(block):
        weight = _weights(block, rows.numbers)
        for r, (scale, offset) in enumerate(tables):
            own_fill = None if fill is None else fill[r]
            picked, extra_rows, extra_labels = _predicted(rows, scale, offset, low, high, own_fill)
            labels, values = rows.labels[picked], rows.values[picked]
            of_entry = weight[rows.row[picked]]
            true = np.signbit(values)
            out[r, :, 0] += np.bincount(labels, np.abs(values) * of_entry, minlength=block.n_labels)
            out[r, :, 1] += np.bincount(labels[true], of_entry[true], minlength=block.n_labels)
            out[r, :, 2] += np.bincount(labels, of_entry, minlength=block.n_labels)
            np.add.at(out[r, :, 2], extra_labels, weight[extra_rows])
    return out


def label_decide(
    block: LabelBlock, scale: FloatArray, offset: FloatArray, low: int, high: int, fill: LongArray | None
) -> tuple[LongArray, NDArray[Any]]:
    """Predict labels; see :func:`label_count` for the rule.

    Returns
    -------
    indptr : ndarray of shape (n + 1,), int64
    indices : ndarray
        Labels of each row that is read, ascending; of the dtype of those of the block, int64 where it has none.
    """
    dtype = np.dtype(np.int64) if block.indices is None else block.indices.dtype
    counts: list[NDArray[Any]] = [np.zeros(1, dtype=np.int64)]
    indices: list[NDArray[Any]] = [np.empty(0, dtype=dtype)]
    for rows in _some_rows(block):
        picked, extra_rows, extra_labels = _predicted(rows, scale, offset, low, high, fill)
        row = np.concatenate([rows.row[picked], extra_rows])
        labels = np.concatenate([rows.labels[picked].astype(np.int64), extra_labels])
        indices.append(labels[np.lexsort((labels, row))].astype(dtype))
        counts.append(np.bincount(row, minlength=len(rows.numbers)))
    return np.cumsum(np.concatenate(counts), dtype=np.int64), np.concatenate(indices)


def _damping(x: float) -> float:
    """Return (1 - exp(-x)) / x."""
    if x < _SERIES:
        return 1.0 - x * (0.5 - x / 6.0)
    return (1.0 - math.exp(-x)) / x


def _damping_slope(x: float) -> float:
    """Return the derivative of (1 - exp(-x)) / x."""
    if x < _SLOPE_SERIES:
        return -1 / 2 + x * (1 / 3 - x * (1 / 8 - x * (1 / 30 - x * (1 / 144 - x / 840))))
    return (math.exp(-x) * (1.0 + x) - 1.0) / (x * x)


def _table_of(
    form: LabelForm, total: float, factor: float, true: float, weight: float, tp: float, predicted: float
) -> tuple[float, float]:
    """Return scale and offset of one label: what one more row that it is predicted for adds."""
    if form.coverage:
        return weight * factor * math.exp(min(tp, 0.0)), 0.0
    hit, own, per_row, constant = form.denominator
    n_hit, n_own, n_per_row, n_constant = form.numerator
    den = hit * tp + own * true + per_row * predicted + constant * total
    hits_alone = n_own == 0 and n_per_row == 0 and n_constant == 0
    if hits_alone and hit == 0:
        x, after = den / n_hit, (den + per_row) / n_hit
        if form.damped:
            s, s_after = _damping(max(x, 0.0)), _damping(max(after, 0.0))
        else:
            s, s_after = 1.0 / x if x > 0 else 0.0, 1.0 / after if after > 0 else 0.0
        return weight * factor * s_after, weight * tp * (s_after - s)
    if form.damped:
        x = max(den / n_hit, 0.0)
        steep = tp * _damping_slope(x) / n_hit
        return weight * factor * (_damping(x) + steep * hit), weight * steep * per_row
    if den <= 0:
        return weight * factor * n_hit / max(den + per_row, _LEAST_DENOMINATOR), 0.0
    value = (n_hit * tp + n_own * true + n_per_row * predicted + n_constant * total) / den
    return weight * factor * (n_hit - value * hit) / den, weight * (n_per_row - value * per_row) / den


def label_table(
    form: LabelForm,
    factor: FloatArray,
    true: FloatArray,
    label_weight: FloatArray,
    tp: FloatArray,
    predicted: FloatArray,
    total: float,
) -> tuple[FloatArray, FloatArray]:
    """Return scale and offset of all labels at some counts, which :func:`label_ascend` starts from.

    Parameters
    ----------
    form : LabelForm
    factor : ndarray of shape (M,)
        What the probabilities of a label are multiplied by.
    true : ndarray of shape (M,)
        Rows that each label is true for.
    label_weight : ndarray of shape (M,)
    tp, predicted : ndarray of shape (M,)
        Hits and predicted rows; with coverage, `tp` sums the logarithms of the probabilities of a miss.
    total : float
        All rows.

    Returns
    -------
    scale, offset : ndarray of shape (M,)
    """
    columns = (part.tolist() for part in (factor, true, label_weight, tp, predicted))
    table = np.array([_table_of(form, total, *state) for state in zip(*columns, strict=True)]).reshape(-1, 2)
    return np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])


def label_ascend(
    block: LabelBlock,
    form: LabelForm,
    factor: FloatArray,
    true: FloatArray,
    label_weight: FloatArray,
    tp: FloatArray,
    predicted: FloatArray,
    scale: FloatArray,
    offset: FloatArray,
    chosen: LongArray,
    low: int,
    high: int,
    fill: LongArray | None,
    total: float,
) -> None:
    """Decide the rows one after the other, each by what its labels add to the counts of all other rows.

    Parameters
    ----------
    block : LabelBlock
    form : LabelForm
    factor, true, label_weight : ndarray of shape (M,), float64
        As in :func:`label_table`.
    tp, predicted : ndarray of shape (M,), float64
        Counts, brought up to date in place.
    scale, offset : ndarray of shape (M,), float64
        The table of these counts, likewise.
    chosen : ndarray of shape (n, high), int64
        What each row that is read is predicted, as the last pass left it, and as this one does: by label, positions of
        entries, -(label + 2) for a label that is not stored; -1 behind them. At first all -1.
    low, high : int
        As in :func:`label_count`; `high` is at least 1.
    fill : ndarray of int64, or None
        Labels that take part where they are not stored, the most promising first; those behind one that is not good
        enough are not looked at.
    total : float
    """
    values, indices, indptr = block.values, block.indices, block.indptr
    numbers = np.arange(len(indptr) - 1) if block.rows is None else block.rows
    every = list(range(block.n_labels)) if indices is None else []
    others: list[int] = [] if fill is None else fill.tolist()

    def move(label: int, eta: float, weight: float) -> None:
        hit = float(factor[label]) * eta
        tp[label] += weight * (math.log(1.0 - min(hit, _CERTAIN)) if form.coverage else hit)
        predicted[label] += weight
        if weight < 0 and abs(predicted[label]) <= -_RESIDUE * weight:  # nothing is left but rounding
            predicted[label] = 0.0
            if abs(tp[label]) <= -_RESIDUE * weight:
                tp[label] = 0.0
        state = (float(part[label]) for part in (factor, true, label_weight, tp, predicted))
        scale[label], offset[label] = _table_of(form, total, *state)

    for i, row in enumerate(numbers.tolist()):
        begin, end = int(indptr[row]), int(indptr[row + 1])
        weight = 1.0 if block.weight is None else float(block.weight[row])
        for entry in chosen[i].tolist():
            if entry >= 0:
                label = entry - begin if indices is None else int(indices[entry])
                move(label, abs(float(values[entry])), -weight)
            elif entry < -1:
                move(-entry - 2, 0.0, -weight)
        labels = every if indices is None else indices[begin:end].tolist()
        eta = np.abs(values[begin:end]).astype(np.float64)
        at = slice(None) if indices is None else indices[begin:end]
        best = _ranked(scale[at] * eta + offset[at], labels, lambda label: float(offset[label]), low, high, others)
        chosen[i] = -1
        for column, (_, label, place) in enumerate(sorted(best, key=lambda item: item[1])):
            chosen[i, column] = -(label + 2) if place < 0 else begin + place
            move(label, 0.0 if place < 0 else float(eta[place]), weight)


def label_sweep(block: LabelBlock) -> tuple[LongArray, FloatArray, FloatArray, FloatArray]:
    """List the thresholds of each label at which a true label is just predicted.

    Returns
    -------
    label_ptr : ndarray of shape (M + 1,), int64
    value : ndarray of shape (H,)
        Probabilities of the entries whose label is true, label by label, descending.
    hits : ndarray of shape (H,)
        Weight of the true entries of the label that are at least as probable.
    predicted : ndarray of shape (H,)
        Weight of all stored entries of the label that are.
    """
    marked: list[tuple[NDArray[Any], FloatArray]] = [(np.empty(0, dtype=np.int64), np.empty(0))]
    for rows in _some_rows(block):
        true = np.signbit(rows.values)
        marked.append((rows.labels[true], -rows.values[true].astype(np.float64)))
    labels, value = (np.concatenate(part) for part in zip(*marked, strict=True))
    order = np.lexsort((-value, labels))
    value = value[order] + 0.0  # of a true label of probability 0, no -0
    label_ptr = np.zeros(block.n_labels + 1, dtype=np.int64)
    np.cumsum(np.bincount(labels, minlength=block.n_labels), out=label_ptr[1:])
    sums = np.zeros((2, len(value)))
    for rows in _some_rows(block):
        eta, weight = np.abs(rows.values).astype(np.float64), _weights(block, rows.numbers)[rows.row]
        left, right = label_ptr[rows.labels], label_ptr[rows.labels + 1]
        end = right.copy()
        while (left < right).any():  # the first threshold of the label that is not above
            middle = (left + right) // 2
            above = (left < right) & (value[np.minimum(middle, len(value) - 1)] > eta)
            right = np.where(above | (left >= right), right, middle)
            left = np.where(above, middle + 1, left)
        true = np.signbit(rows.values)
        for part, entries in ((0, (left < end) & true), (1, left < end)):
            sums[part] += np.bincount(left[entries], weight[entries], minlength=len(value))
    for label in np.flatnonzero(np.diff(label_ptr)).tolist():
        label_sums = sums[:, label_ptr[label] : label_ptr[label + 1]]
        np.cumsum(label_sums, axis=1, out=label_sums)
    return label_ptr, value, sums[0], sums[1]
