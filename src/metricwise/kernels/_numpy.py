"""NumPy twins of the row passes: the reference, and the fallback where nothing is compiled.

Blocks of rows are laid out class by class, so that each step of a score is one vector operation over a block that
stays in cache. Products and sums are separate ufuncs: nothing here is fused, reordered or given to BLAS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
LossArrays = tuple[FloatArray, ...]

_BLOCK = 1 << 16  # scores per block: half a megabyte of float64
_MIN_ROWS = 64  # with very many outputs, fewer rows than this cost more in calls than they save in cache
_SLOPE_TOL = 1e-13  # slopes closer than this are one slope plus rounding: their crossing is noise far away


def _row_blocks(n_rows: int, n_outputs: int, n_classes: int) -> Iterator[slice]:
    rows = max(_MIN_ROWS, _BLOCK // (n_outputs * n_classes))
    for start in range(0, n_rows, rows):
        yield slice(start, start + rows)


def _by_class(eta: NDArray[Any]) -> FloatArray:
    """Return a block as float64 of shape (K, n, M)."""
    if eta.ndim == 2:
        positive = eta.astype(np.float64)
        return np.stack([1.0 - positive, positive])
    return np.ascontiguousarray(np.moveaxis(eta, 2, 0), dtype=np.float64)


def _width(eta: NDArray[Any]) -> int:
    return 2 if eta.ndim == 2 else int(eta.shape[2])


def _scores(block: FloatArray, loss: LossArrays) -> Iterator[FloatArray]:
    """Yield the scores (n, M) of class 0, 1, ... of a class-major block."""
    if len(loss) == 2:
        diagonal, offset = loss
        for j, eta_j in enumerate(block):
            score = eta_j * diagonal[:, j]
            score += offset[:, j]
            yield score
        return
    (full,) = loss
    for j in range(len(block)):
        score = block[0] * full[:, 0, j]
        for i in range(1, len(block)):
            score += block[i] * full[:, i, j]
        yield score


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


def decide(eta: NDArray[Any], n_classes: IntArray, loss: LossArrays) -> IntArray:
    """Predict the class of least score.

    Returns
    -------
    ndarray of shape (N, M), intp
    """
    n_rows, n_outputs = eta.shape[:2]
    out = np.empty((n_rows, n_outputs), dtype=np.intp)
    for rows in _row_blocks(n_rows, n_outputs, _width(eta)):
        out[rows] = _decide_block(_by_class(eta[rows]), n_classes, loss)
    return out


def count_labels(
    eta: NDArray[Any],
    codes: NDArray[Any],
    weight: FloatArray | None,
    n_classes: IntArray,
    losses: Sequence[LossArrays],
) -> FloatArray:
    """Count true against predicted classes for several losses in one pass.

    Returns
    -------
    ndarray of shape (R, M, K, K)
        Sums of weights, not divided by anything.
    """
    n_rows, n_outputs = eta.shape[:2]
    k = _width(eta)
    out = np.zeros((len(losses), n_outputs * k * k))
    base = np.arange(n_outputs) * (k * k)
    for rows in _row_blocks(n_rows, n_outputs, k):
        block = _by_class(eta[rows])
        true = codes[rows].astype(np.intp)
        seen = true >= 0
        whole = bool(seen.all())
        cell = base + true * k
        share = None if weight is None else np.broadcast_to(weight[rows, None], cell.shape)
        share = share if share is None or whole else share[seen]
        for r, loss in enumerate(losses):
            index = cell + _decide_block(block, n_classes, loss)
            index = index if whole else index[seen]
            out[r] += np.bincount(index.ravel(), None if share is None else share.ravel(), minlength=out.shape[1])
    return out.reshape(len(losses), n_outputs, k, k)


def count_expected(
    eta: NDArray[Any],
    observed: NDArray[Any] | None,
    weight: FloatArray | None,
    n_classes: IntArray,
    losses: Sequence[LossArrays],
) -> FloatArray:
    """Sum probabilities of the true class against predicted classes for several losses in one pass.

    Parameters
    ----------
    observed : bool or float ndarray of shape (N, M), or None
        Entries that count, or what they count for; None means all alike.

    Returns
    -------
    ndarray of shape (R, M, K, K)
    """
    n_rows, n_outputs = eta.shape[:2]
    k = _width(eta)
    out = np.zeros((len(losses), n_outputs, k, k))
    base = np.arange(n_outputs) * k
    for rows in _row_blocks(n_rows, n_outputs, k):
        block = _by_class(eta[rows])
        mass = block
        if weight is not None:
            mass = mass * weight[rows, None]
        if observed is not None:
            mass = mass * observed[rows]
        for r, loss in enumerate(losses):
            index = (base + _decide_block(block, n_classes, loss)).ravel()
            for i in range(k):
                out[r, :, i, :] += np.bincount(index, mass[i].ravel(), minlength=n_outputs * k).reshape(n_outputs, k)
    return out


def envelope(
    eta: NDArray[Any], n_classes: IntArray, constant: LossArrays, slope: LossArrays
) -> tuple[IntArray, IntArray, FloatArray, IntArray, IntArray]:
    """Follow the decisions of one output along the line of losses ``constant + g * slope``, g from -inf to inf.

    The score of each class is a line in g; a row's decision is the lower envelope of its K lines.

    Parameters
    ----------
    eta : ndarray of shape (N, 1, K) or (N, 1)

    Returns
    -------
    first : ndarray of shape (N,)
        Decision at g = -inf.
    row, g, old, new : ndarrays of shape (E,)
        At g, the decision of the row goes from old to new; in order of g within a row.
    """
    k = int(n_classes[0])
    firsts = [np.empty(0, dtype=np.intp)]
    events: list[tuple[Any, ...]] = []
    for rows in _row_blocks(len(eta), 1, _width(eta)):
        block = _by_class(eta[rows])
        lines = [np.stack(list(_scores(block, loss)))[:k, :, 0] for loss in (constant, slope)]
        first, found = _walk_block(lines[0], lines[1])
        firsts.append(first)
        events.extend((row + rows.start, *rest) for row, *rest in found)
    if not events:
        none = np.empty(0, dtype=np.intp)
        return np.concatenate(firsts), none, np.empty(0), none, none
    row, g, old, new = (np.concatenate(part) for part in zip(*events, strict=True))
    return np.concatenate(firsts), row, g, old, new


def _walk_block(
    height: FloatArray, slope: FloatArray
) -> tuple[IntArray, list[tuple[IntArray, FloatArray, IntArray, IntArray]]]:
    """Lower envelopes of the lines ``height + g * slope``, both of shape (K, n)."""
    k, n = height.shape
    tol = _SLOPE_TOL * np.abs(slope).max(initial=0.0)
    current = np.zeros(n, dtype=np.intp)
    h, s = height[0].copy(), slope[0].copy()
    for j in range(1, k):
        lower = (slope[j] > s + tol) | ((np.abs(slope[j] - s) <= tol) & (height[j] < h))
        np.copyto(current, j, where=lower)
        np.copyto(h, height[j], where=lower)
        np.copyto(s, slope[j], where=lower)
    first = current.copy()
    events: list[tuple[IntArray, FloatArray, IntArray, IntArray]] = []
    active, last = np.arange(n), np.full(n, -np.inf)
    for _ in range(k - 1):
        heights, slopes = height[:, active], slope[:, active]
        own = current[active]
        h, s = heights[own, np.arange(len(own))], slopes[own, np.arange(len(own))]
        fall = s - slopes
        ahead = fall > tol
        crossing = np.where(ahead, (heights - h) / np.where(ahead, fall, 1.0), np.inf)
        nearest = crossing.min(axis=0)
        # Of all lines met at the same g the steepest fall stays below afterwards; argmin takes the lowest class.
        target = np.where(crossing == nearest, slopes, np.inf).argmin(axis=0)
        moving = np.isfinite(nearest)
        if not moving.any():
            break
        active, own, target = active[moving], own[moving], target[moving]
        g = np.maximum(nearest[moving], last[active])
        events.append((active, g, own, target))
        current[active], last[active] = target, g
    return first, events


def recalibrate(
    eta: NDArray[Any], n_classes: IntArray, temperature: FloatArray, bias: FloatArray, floor: float
) -> NDArray[Any]:
    """Return ``softmax(t * log(max(eta, floor)) + c)`` with the shape and dtype of `eta`.

    Parameters
    ----------
    temperature : ndarray of shape (M,)
    bias : ndarray of shape (M, K)
    """
    n_rows, n_outputs = eta.shape[:2]
    k = _width(eta)
    out = np.empty(eta.shape, dtype=eta.dtype)
    padded = np.arange(k)[:, None, None] >= n_classes
    for rows in _row_blocks(n_rows, n_outputs, k):
        logits = np.log(np.maximum(_by_class(eta[rows]), floor))
        logits *= temperature
        logits += bias.T[:, None, :]
        np.copyto(logits, -np.inf, where=padded)
        logits -= logits.max(axis=0)
        np.exp(logits, out=logits)
        total = logits[0].copy()
        for i in range(1, k):  # in order, as scores are: the result must not depend on the layout of the block
            total += logits[i]
        logits /= total
        out[rows] = logits[1] if eta.ndim == 2 else np.moveaxis(logits, 0, 2)
    return out
