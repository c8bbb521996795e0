"""NumPy twins of the row passes: the reference, and the fallback where nothing is compiled.

Blocks of rows are laid out class by class, so that each step of a score is one vector operation over a block that
stays in cache. Products and sums are separate ufuncs: nothing here is fused, reordered or given to BLAS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._block import Block, FloatArray, IntArray, LineArrays, LinkArrays, LossArrays
from ._drawing import low_rows as low_rows  # a twin as well
from ._label_sets import label_set_choose as label_set_choose  # twins as well
from ._label_sets import label_set_sizes as label_set_sizes
from ._label_sets import label_set_values as label_set_values
from ._labels import label_ascend as label_ascend
from ._labels import label_calibrate as label_calibrate
from ._labels import label_check as label_check
from ._labels import label_count as label_count
from ._labels import label_decide as label_decide
from ._labels import label_mark as label_mark
from ._labels import label_sums as label_sums
from ._labels import label_sweep as label_sweep
from ._labels import label_table as label_table
from ._link import exp, log
from ._newton import fit_links as fit_links
from ._partition import log_partition as log_partition  # twins as well
from ._partition import relative_logits as relative_logits
from ._segments import search_ratio_means as search_ratio_means

_BLOCK = 1 << 16  # scores per block: half a megabyte of float64
_MIN_ROWS = 64  # with very many outputs, fewer rows than this cost more in calls than they save in cache
_SLOPE_TOL = 1e-13  # slopes closer than this are one slope plus rounding: their crossing is noise far away


def _row_blocks(n_rows: int, n_outputs: int, n_classes: int) -> Iterator[slice]:
    rows = max(_MIN_ROWS, _BLOCK // (n_outputs * n_classes))
    for start in range(0, n_rows, rows):
        yield slice(start, start + rows)


def _by_class(eta: NDArray[Any], n_classes: IntArray, link: LinkArrays | None, width: int) -> FloatArray:
    """Return a block as float64 of shape (K, n, M), recalibrated where there is a link."""
    if eta.ndim == 2:
        positive = eta.astype(np.float64)
        rest = np.zeros_like(positive) if link is not None and link.of_logits else 1.0 - positive
        block = np.stack([rest, positive])
    else:
        block = np.ascontiguousarray(np.moveaxis(eta, 2, 0), dtype=np.float64)
    if len(block) < width:
        block = np.concatenate([block, np.zeros((width - len(block), *block.shape[1:]))])
    return block if link is None else _recalibrated(block, n_classes, link, positive=eta.ndim == 2)


def _recalibrated(block: FloatArray, n_classes: IntArray, link: LinkArrays, positive: bool) -> FloatArray:
    """Apply a link to a class-major block (K, n, M); with `positive`, class 0 gets the rest of class 1."""
    logits = block if link.of_logits else log(np.maximum(block, link.floor))
    logits = logits * link.temperature
    logits += link.bias.T[:, None, :]
    if (n_classes < len(block)).any():
        np.copyto(logits, -np.inf, where=np.arange(len(block))[:, None, None] >= n_classes)
    logits -= logits.max(axis=0)
    out = exp(logits)
    total = out[0].copy()
    for part in out[1:]:  # in the order of scores: the result must not depend on the layout of the block
        total += part
    out *= 1.0 / total
    if positive:
        np.subtract(1.0, out[1], out=out[0])
    return out


def _scores(block: FloatArray, loss: LossArrays) -> Iterator[FloatArray]:
    """Yield the scores (n, M) of class 0, 1, ... of a class-major block."""
    if len(loss) == 2:
        diagonal, offset = loss
        total = _in_order(block) if offset.any() else None
        for j, eta_j in enumerate(block):
            score = eta_j * diagonal[:, j]
            if total is not None:
                score += total * offset[:, j]
            yield score
        return
    (full,) = loss
    columns = full.transpose(1, 2, 0)[:, :, None]  # by true class, then class, rows and outputs
    scores = block[0] * columns[0]
    for i in range(1, len(block)):
        scores += block[i] * columns[i]
    yield from scores


def _decide_block(block: FloatArray, n_classes: IntArray, loss: LossArrays) -> IntArray:
    codes = np.zeros(block.shape[1:], dtype=np.intp)
    best: FloatArray | None = None
    for j, score in enumerate(_scores(block, loss)):
        if best is None:
            best = score
            continue
        better = score < best
        if (n_classes <= j).any():
            better &= n_classes > j
        np.copyto(codes, j, where=better)
        np.copyto(best, score, where=better)
    return codes


def decide(block: Block, loss: LossArrays) -> IntArray:
    """Predict the class of least score.

    Returns
    -------
    ndarray of shape (N, M), intp
    """
    eta, n_classes = block.eta, block.n_classes
    n_rows, n_outputs = eta.shape[:2]
    out = np.empty((n_rows, n_outputs), dtype=np.intp)
    for rows in _row_blocks(n_rows, n_outputs, block.width):
        out[rows] = _decide_block(_by_class(eta[rows], n_classes, block.link, block.width), block.decisions, loss)
    return out


def count_labels(block: Block, losses: Sequence[LossArrays]) -> FloatArray:
    """Count true against predicted classes for L losses in one pass.

    Returns
    -------
    ndarray of shape (L, M, K, K), or (R, L, M, K, K) of weights (R, N)
        Sums of weights, not divided by anything.
    """
    eta, n_classes, codes = block.eta, block.n_classes, block.codes
    assert codes is not None
    n_rows, n_outputs = eta.shape[:2]
    k, weights = block.width, _each_weight(block)
    out = np.zeros((len(weights), len(losses), n_outputs * k * k))
    base = np.arange(n_outputs) * (k * k)
    for rows in _row_blocks(n_rows, n_outputs, k):
        tile = _by_class(eta[rows], n_classes, block.link, k)
        true = codes[rows].astype(np.intp)
        labelled = true >= 0
        whole = bool(labelled.all())
        cell = base + true * k
        shares = [None if w is None else np.broadcast_to(w[rows, None], cell.shape) for w in weights]
        shares = [share if share is None or whole else share[labelled] for share in shares]
        for r, loss in enumerate(losses):
            index = cell + _decide_block(tile, block.decisions, loss)
            index = (index if whole else index[labelled]).ravel()
            for q, share in enumerate(shares):
                out[q, r] += np.bincount(index, None if share is None else share.ravel(), minlength=out.shape[2])
    return _as_weighted(block, out.reshape(len(weights), len(losses), n_outputs, k, k))


def count_decided(block: Block, decided: Sequence[IntArray]) -> FloatArray:
    """Count true against predicted classes of L decisions (N, M), as `count_labels` does those of L losses."""
    assert block.codes is not None
    n_outputs, k, weights = block.codes.shape[1], block.width, _each_weight(block)
    out = np.empty((len(weights), len(decided), n_outputs, k, k))
    for m in range(n_outputs):
        true = block.codes[:, m].astype(np.intp)
        shown = np.flatnonzero(true >= 0)
        for r, codes in enumerate(decided):
            cell = true[shown] * k + codes[shown, m]
            for q, w in enumerate(weights):
                counted = np.bincount(cell, None if w is None else w[shown], minlength=k * k)
                out[q, r, m] = counted.reshape(k, k)
    return _as_weighted(block, out)


def count_expected(block: Block, losses: Sequence[LossArrays]) -> FloatArray:
    """Sum probabilities of the true class against predicted classes for L losses in one pass.

    Returns
    -------
    ndarray of shape (L, M, K, K), or (R, L, M, K, K) of weights (R, N)
    """
    eta, n_classes = block.eta, block.n_classes
    n_rows, n_outputs = eta.shape[:2]
    k, weights = block.width, _each_weight(block)
    out = np.zeros((len(weights), len(losses), n_outputs, k, k))
    base = np.arange(n_outputs) * k
    for rows in _row_blocks(n_rows, n_outputs, k):
        tile = _by_class(eta[rows], n_classes, block.link, k)
        masses = [tile if w is None else tile * w[rows, None] for w in weights]
        if block.mass is not None:
            masses = [mass * block.mass[rows] for mass in masses]
        for r, loss in enumerate(losses):
            index = (base + _decide_block(tile, block.decisions, loss)).ravel()
            for q, mass in enumerate(masses):
                for i in range(k):
                    sums = np.bincount(index, mass[i].ravel(), minlength=n_outputs * k)
                    out[q, r, :, i, :] += sums.reshape(n_outputs, k)
    return _as_weighted(block, out)


def _each_weight(block: Block) -> list[FloatArray | None]:
    return [None] if block.weight is None else list(np.atleast_2d(block.weight))


def _as_weighted(block: Block, sums: FloatArray) -> FloatArray:
    """Drop the first axis of sums unless the weights have it too."""
    return sums if block.weight is not None and block.weight.ndim == 2 else sums[0]


# ------------------------------------------------------------------------------------- changes along a line of losses


def slope_noise(slope: LossArrays) -> float:
    """Slopes closer than this are one slope plus rounding: their lines would cross at some g near infinity."""
    return _SLOPE_TOL * float(sum(np.abs(array).max(initial=0.0) for array in slope))


def constant_slopes(slope: LossArrays) -> FloatArray | None:
    """Return the slopes (G, K) of all classes, up to a term that they share, where they do not depend on the row.

    They are per unit of the sum of the row's probabilities, which heights have to be divided by.
    """
    if len(slope) == 1:
        (full,) = slope
        return full[:, 0] if (full == full[:, :1]).all() else None
    diagonal, offset = slope
    if not diagonal.any():
        return offset
    if diagonal.shape[1] == 2 and (diagonal[:, 0] == -diagonal[:, 1]).all():  # what the one lacks the other has
        return offset + np.stack([np.zeros(len(diagonal)), diagonal[:, 1]], axis=1)
    return None


def slope_lines(
    slopes: FloatArray, n_classes: IntArray, group: IntArray
) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Group the classes of each output by slope: in a row, only the lowest of each group can be on the envelope.

    Parameters
    ----------
    slopes : ndarray of shape (G, K)
    n_classes, group : ndarray of shape (M,)

    Returns
    -------
    order, line : ndarray of shape (M, K), int
        Classes, line by line and the lowest first within a line; and the line of each. Lines fall ever more steeply.
    steep : ndarray of shape (M, K)
        Slope of each line.
    n_lines : ndarray of shape (M,), int
    """
    arrays = (np.asarray(slopes, dtype=np.float64), np.asarray(n_classes, dtype=np.intp), np.asarray(group, np.intp))
    return _slope_lines(slopes.shape, *(array.tobytes() for array in arrays))


@lru_cache(maxsize=8)
def _slope_lines(
    shape: tuple[int, ...], slopes_: bytes, n_classes_: bytes, group_: bytes
) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Remember the last few: a solver walks the same line several times."""
    slopes = np.frombuffer(slopes_).reshape(shape)
    n_classes, group = np.frombuffer(n_classes_, dtype=np.intp), np.frombuffer(group_, dtype=np.intp)
    output_slopes = slopes[np.maximum(group, 0)]
    n_outputs, k = output_slopes.shape
    noise = slope_noise((slopes,))
    real = np.arange(k) < n_classes[:, None]
    falling = np.argsort(np.where(real, -output_slopes, np.inf), axis=1, kind="stable")
    sorted_slopes = np.take_along_axis(output_slopes, falling, axis=1)
    new = np.ones((n_outputs, k), dtype=bool)
    new[:, 1:] = (sorted_slopes[:, :-1] - sorted_slopes[:, 1:] > noise) | (np.arange(1, k) >= n_classes[:, None])
    line = np.cumsum(new, axis=1) - 1
    steep = np.zeros((n_outputs, k))
    np.put_along_axis(steep, line[:, ::-1], sorted_slopes[:, ::-1], axis=1)  # written last, the first of a line stays
    order = np.take_along_axis(falling, np.lexsort((falling, line), axis=1), axis=1)
    last = np.maximum(n_classes - 1, 0)
    n_lines = np.take_along_axis(line, last[:, None], axis=1)[:, 0] + 1
    return order.astype(np.intp), line.astype(np.intp), steep, n_lines.astype(np.intp)


def change_table(worth: FloatArray) -> FloatArray:
    """Tabulate how the functionals change, and by how much, by output, true class, old class and new class.

    Parameters
    ----------
    worth : ndarray of shape (M, K + 1, K, 2)

    Returns
    -------
    ndarray of shape (M * (K + 1) * K * K, 4)
    """
    change = (worth[:, :, None, :] - worth[:, :, :, None]).reshape(-1, 2)
    return np.concatenate([change, np.abs(change)], axis=1)


def few_changes(table: FloatArray, group: IntArray) -> tuple[NDArray[np.uint8], FloatArray] | None:
    """Find the changes, at most eight, that all kinds make, the same in all outputs; None where there are more.

    Parameters
    ----------
    table : ndarray of shape (M, T, 4)
        Changes by kind, see :func:`change_table`.

    Returns
    -------
    which : ndarray of shape (T,), uint8
        Which change each kind makes.
    changes : ndarray of shape (8, 2)
    """
    entries = table[group >= 0, :, :2] if (group < 0).any() else table[:, :, :2]
    if len(entries) == 0 or (len(entries) > 1 and not (entries == entries[0]).all()):
        return None
    distinct, which = np.unique(entries[0, :, 0] + 1j * entries[0, :, 1], return_inverse=True)
    if len(distinct) > 8:
        return None
    few = np.zeros((8, 2))
    few[: len(distinct), 0], few[: len(distinct), 1] = distinct.real, distinct.imag
    return which.astype(np.uint8), few


def changes(
    block: Block,
    line: LineArrays,
    grid: FloatArray,
    n_bins: int,
    listed_bins: NDArray[np.bool_] | None = None,
    summed: bool = True,
) -> tuple[FloatArray, NDArray[np.int64], FloatArray, IntArray, FloatArray, FloatArray]:
    """Follow decisions along the losses ``constant + g * slope``, g from -inf to inf, and note every change.

    The score of each class is a line in g; the decision of a row is the lower envelope of its K lines, and each change
    of it changes two linear functionals of the confusion. Changes are summed in bins of g, and those in `listed_bins`
    are listed.

    Parameters
    ----------
    block : Block
        Without codes, probabilities are counted in their place. Of weight (N,).
    line : LineArrays
    grid : ndarray of shape (G, 2)
        Where the bins of each line begin, and bins per unit of g. Bin 0 holds what lies before, the last what lies
        behind.
    n_bins : int
        B.
    listed_bins : bool ndarray of shape (G, B + 2), optional
        Bins whose changes are listed; with `summed` False, nothing else is done and the sums are all 0.

    Returns
    -------
    start : ndarray of shape (G, 2)
        Functionals at g = -inf.
    count : ndarray of shape (G, B + 2), int
        Changes in each bin.
    sums : ndarray of shape (G, B + 2, 4)
        Sums of the changes of both functionals, and of their absolute values.
    segment : ndarray of shape (E,), int
        ``group * (B + 2) + bin`` of each listed change, in no order.
    g : ndarray of shape (E,)
        Where it is.
    change : ndarray of shape (E, 2)
    """
    n_segments = len(grid) * (n_bins + 2)
    start, count = np.zeros((len(grid), 2)), np.zeros(n_segments, dtype=np.int64)
    sums = np.zeros((n_segments, 4))
    flat = np.zeros(n_segments, dtype=bool) if listed_bins is None else listed_bins.reshape(-1)
    listed: list[tuple[Any, ...]] = [(np.empty(0, dtype=np.intp), np.empty(0), np.empty((0, 2)))]
    for g_index, begin, g, change in _changes(block, line):
        segment = _segment(g, g_index, grid, n_bins)
        if summed:
            start[g_index] += begin
            count += np.bincount(segment, minlength=n_segments)
            for f, column in enumerate((change[:, 0], change[:, 1], np.abs(change[:, 0]), np.abs(change[:, 1]))):
                sums[:, f] += np.bincount(segment, column, minlength=n_segments)
        kept = flat[segment]
        listed.append((segment[kept], g[kept], change[kept]))
    segment, g, change = (np.concatenate(part) for part in zip(*listed, strict=True))
    shape = (len(grid), n_bins + 2)
    return start, count.reshape(shape), sums.reshape(*shape, 4), segment, g, change


def _segment(g: FloatArray, group: int, grid: FloatArray, n_bins: int) -> IntArray:
    at = (g - grid[group, 0]) * grid[group, 1]
    return group * (n_bins + 2) + np.where(at < 0, 0, np.clip(at, 0, n_bins).astype(np.intp) + 1)


def _changes(block: Block, line: LineArrays) -> Iterator[tuple[int, FloatArray, FloatArray, FloatArray]]:
    """Yield, block by block of each output, its group, its functionals at g = -inf, change points and changes."""
    eta, n_classes, weight, width = block.eta, block.n_classes, block.weight, block.width
    group, constant, slope, worth = line
    slopes, noise = constant_slopes(slope), slope_noise(slope)
    lines = None if slopes is None else slope_lines(slopes, block.decisions, group)
    for m in np.flatnonzero(group >= 0).tolist():
        line_group, k = int(group[m]), int(block.decisions[m])
        at_g = tuple(a[line_group : line_group + 1] if len(a) > 1 else a for a in constant)
        per_g = tuple(a[line_group : line_group + 1] if len(a) > 1 else a for a in slope)
        own_link = None if block.link is None else block.link.part(slice(m, m + 1), width)
        for rows in _row_blocks(len(eta), 1, width):
            tile = _by_class(eta[rows, m : m + 1], n_classes[m : m + 1], own_link, width)
            height = np.stack(list(_scores(tile, at_g)))[:k, :, 0]
            if lines is None:
                incline = np.stack(list(_scores(tile, per_g)))[:k, :, 0]
                first, crossings = _walk_block(height, incline, noise)
            else:
                total = _in_order(tile)[:, 0] if eta.ndim == 3 else None
                first, crossings = _walk_lines(height, total, *(part[m] for part in lines))
            if block.codes is not None:
                cell = (block.codes[rows, m].astype(np.intp) + 1) * worth.shape[2]
                value = _value_of_labels(cell, worth[m].reshape(-1, 2), None if weight is None else weight[rows])
            else:
                mass = tile[:, :, 0] if weight is None else tile[:, :, 0] * weight[rows]
                mass = mass if block.mass is None else mass * block.mass[rows, m]
                value = _value_of_masses(mass, worth[m, 1:])
            yield (line_group, *_sum_changes(first, crossings, value))


def _in_order(block: FloatArray) -> FloatArray:
    """Sums (n, M) of a class-major block, class by class: rounded probabilities need not sum to 1."""
    total: FloatArray = block[0].copy()
    for part in block[1:]:
        total += part
    return total


_Value = Callable[[IntArray, IntArray], FloatArray]


def _value_of_labels(cell: IntArray, worth: FloatArray, weight: FloatArray | None) -> _Value:
    """What rows add to both functionals if they are decided so, by the first cell of each row's label."""

    def value(rows: IntArray, decided: IntArray) -> FloatArray:
        values: FloatArray = worth[cell[rows] + decided]
        return values if weight is None else values * weight[rows, None]

    return value


def _value_of_masses(mass: FloatArray, worth: FloatArray) -> _Value:
    """The same by the probabilities (K, n) of each row."""

    def value(rows: IntArray, decided: IntArray) -> FloatArray:
        total = np.zeros((len(rows), 2))
        for i in range(len(mass)):
            total += mass[i, rows, None] * worth[i, decided]
        return total

    return value


def _sum_changes(
    first: IntArray, crossings: list[tuple[IntArray, FloatArray, IntArray, IntArray]], value: _Value
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Functionals at g = -inf, change points, and changes that are not 0."""
    begin = value(np.arange(len(first)), first).sum(axis=0)
    points, changes = [np.empty(0)], [np.empty((0, 2))]
    for row, g, old, new in crossings:
        change = value(row, new) - value(row, old)
        moved = (change[:, 0] != 0) | (change[:, 1] != 0)
        points.append(g[moved])
        changes.append(change[moved])
    return begin, np.concatenate(points), np.concatenate(changes)


def _walk_lines(
    height: FloatArray, total: FloatArray | None, order: IntArray, line: IntArray, steep: FloatArray, n_lines: int
) -> tuple[IntArray, list[tuple[IntArray, FloatArray, IntArray, IntArray]]]:
    """Lower envelopes of lines whose slopes per unit of `total` are the same in every row; `height` of shape (k, n)."""
    k, n = height.shape
    lowest, owner = np.empty((n_lines, n)), np.empty((n_lines, n), dtype=np.intp)
    for q in range(n_lines):
        members = order[:k][line[:k] == q]
        if len(members) == 1:
            lowest[q], owner[q] = height[members[0]], members[0]
            continue
        heights = height[members]
        which = heights.argmin(axis=0)
        lowest[q], owner[q] = heights[which, np.arange(n)], members[which]
    if total is not None:
        lowest /= total
    if n_lines == 2:  # every row goes from the one to the other
        g = (lowest[1] - lowest[0]) / (steep[0] - steep[1])
        return owner[0], [(np.arange(n), g, owner[0], owner[1])]
    slopes = np.broadcast_to(steep[:n_lines, None], lowest.shape)
    first, crossings = _walk_block(lowest, slopes, 0.0)
    return owner[first, np.arange(n)], [(row, g, owner[old, row], owner[new, row]) for row, g, old, new in crossings]


def _walk_block(
    height: FloatArray, slope: FloatArray, noise: float
) -> tuple[IntArray, list[tuple[IntArray, FloatArray, IntArray, IntArray]]]:
    """Lower envelopes of the lines ``height + g * slope``, both of shape (K, n): first class; row, g, old, new."""
    k, n = height.shape
    current = np.zeros(n, dtype=np.intp)
    h, s = height[0].copy(), slope[0].copy()
    for j in range(1, k):
        lower = (slope[j] > s + noise) | ((np.abs(slope[j] - s) <= noise) & (height[j] < h))
        np.copyto(current, j, where=lower)
        np.copyto(h, height[j], where=lower)
        np.copyto(s, slope[j], where=lower)
    first = current.copy()
    events: list[tuple[IntArray, FloatArray, IntArray, IntArray]] = []
    active, last = np.arange(n), np.full(n, -np.inf)
    for _ in range(k - 1):
        heights, slopes = height[:, active], slope[:, active]
        lines = current[active]
        h, s = heights[lines, np.arange(len(lines))], slopes[lines, np.arange(len(lines))]
        fall = s - slopes
        ahead = fall > noise
        crossing = np.where(ahead, (heights - h) / np.where(ahead, fall, 1.0), np.inf)
        nearest = crossing.min(axis=0)
        # Of all lines met at the same g the steepest fall stays below afterwards; argmin takes the lowest class.
        target = np.where(crossing == nearest, slopes, np.inf).argmin(axis=0)
        moving = np.isfinite(nearest)
        if not moving.any():
            break
        active, lines, target = active[moving], lines[moving], target[moving]
        g = np.maximum(nearest[moving], last[active])
        events.append((active, g, lines, target))
        current[active], last[active] = target, g
    return first, events


def recalibrate(block: Block) -> FloatArray:
    """Return the probabilities behind the link with the shape of `eta`, as float64: what passes see."""
    eta = block.eta
    out = np.empty(eta.shape)
    for rows in _row_blocks(eta.shape[0], eta.shape[1], block.stored):
        tile = _by_class(eta[rows], block.n_classes, block.link, block.stored)
        out[rows] = tile[1] if eta.ndim == 2 else np.moveaxis(tile, 0, 2)
    return out


def check_rows(eta: NDArray[Any], n_classes: IntArray, tolerance: float) -> bool:
    """Say whether every entry is a probability, every row sums to 1 within `tolerance`, and padding is 0.

    Of (N, M) arrays, the probabilities of class 1, only the range is looked at.
    """
    n_rows, n_outputs = eta.shape[:2]
    k = 2 if eta.ndim == 2 else int(eta.shape[2])
    padded = np.arange(k) >= n_classes[:, None] if eta.ndim == 3 and (n_classes < k).any() else None
    for rows in _row_blocks(n_rows, n_outputs, k):
        block = eta[rows]
        if not (block.min() >= 0 and block.max() <= (1 if eta.ndim == 2 else 2)):  # NaN fails both
            return False
        if eta.ndim == 2:
            continue
        total = np.add.reduce(np.moveaxis(block, 2, 0), dtype=np.float64)  # over short rows class by class is faster
        if np.abs(total - 1).max() > tolerance or (padded is not None and block[:, padded].any()):
            return False
    return True


def code_type(width: int) -> Any:
    """Return the integer type of the codes of at most `width` classes."""
    return np.int8 if width <= 127 else np.int32


def encode(labels: NDArray[Any], n_classes: IntArray, width: int) -> NDArray[Any] | None:
    """Return labels that are codes already, integers (N, M) in 0..K_m-1, as small integers; None if any is not.

    Returns
    -------
    ndarray of shape (N, M), int8 or int32, or None
        `labels` itself where it has that type.
    """
    if len(labels) == 0 or (labels.min(axis=0) < 0).any() or (labels.max(axis=0) >= n_classes).any():
        return None
    return labels.astype(code_type(width), copy=False)


def tally(codes: NDArray[Any], weight: FloatArray | None, width: int) -> FloatArray:
    """Sum the weights of each true class of each output; code -1 counts nowhere.

    Returns
    -------
    ndarray of shape (M, K), or (R, M, K) of weights (R, N)
    """
    if weight is not None and weight.ndim == 2:
        return np.stack([tally(codes, row, width) for row in weight])
    n_rows, n_outputs = codes.shape
    out = np.zeros(n_outputs * (width + 1))
    base = np.arange(n_outputs) * (width + 1) + 1
    for rows in _row_blocks(n_rows, n_outputs, 1):
        index = (base + codes[rows]).ravel()
        share = None if weight is None else np.repeat(weight[rows], n_outputs)
        out += np.bincount(index, share, minlength=len(out))
    return np.ascontiguousarray(out.reshape(n_outputs, width + 1)[:, 1:])
