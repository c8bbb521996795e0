"""Decision codes from a loss and probabilities, and where binary decisions change. Must not know labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.inputs import MAX_LOGIT
from ..core.losses import Loss
from ..core.ordinal_map import OrdinalMap
from ..core.probabilities import Probabilities
from ..data.row_costs import table_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_ALL_BUT_SIGN = np.int64(2**63 - 1)


def decide_loss(loss: Loss, proba: Probabilities, n_decisions: IntArray | None = None) -> IntArray:
    """Codes (N, M) of least expected loss, among the classes of each output or as many decisions as are given."""
    codes = []
    if n_decisions is not None and np.array_equal(n_decisions, proba.n_classes):
        n_decisions = None
    for block, span in proba.outputs(n_decisions):
        width = min(block.width, loss.n_classes)
        real = block if width == block.width else block.part(slice(None), width)  # what lies beyond is padding
        codes.append(kernels.decide(real, _cut(loss, span, width)))
    return codes[0] if len(codes) == 1 else np.concatenate(codes, axis=1)


def decide_costs(proba: Probabilities, cost: FloatArray, abstain_cost: float | None = None) -> IntArray:
    """Codes (N, 1) of least expected cost, by the costs of each row; see :func:`metricwise.data.table_of`.

    The cost of a decision is summed over the true classes in their order, in float64, and ties go to the lowest code.
    """
    out = np.empty((proba.n_rows, 1), dtype=np.intp)
    for rows in proba.chunks():
        eta = proba.take(rows).output(0)[:, 0].astype(np.float64)
        eta = np.stack([1.0 - eta, eta], axis=1) if eta.ndim == 1 else eta
        table = table_of(cost[rows], abstain_cost)
        scores = eta[:, :1] * table[:, 0]
        for i in range(1, table.shape[1]):
            scores = scores + eta[:, i : i + 1] * table[:, i]
        out[rows, 0] = scores.argmin(axis=1)
    return out


def _cut(loss: Loss, span: Any, width: int) -> tuple[FloatArray, ...]:
    """Bare arrays of the loss for some outputs and the first classes."""
    if loss.n_outputs == 1 and loss.n_classes == width:
        return loss.arrays
    arrays = (a if len(a) == 1 else a[span] for a in loss.arrays)
    if loss.is_diagonal:
        return tuple(a[:, :width] for a in arrays)
    return tuple(a[:, :width, :width] for a in arrays)


def bisect_changes(
    loss: Loss, link: kernels.LinkArrays | None, outputs: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Decisions at p = 0 and p = 1 of binary outputs, and the last p decided as p = 0 is.

    The difference of two scores is monotone in p, so that one change at most lies between p = 0 and p = 1. Floats have
    ordered numbers: halving those reaches neighbouring floats in at most 64 steps. Of logits p are log-odds.
    """
    if len(outputs) == 1 and (link is None or not link.of_logits):
        return _bisect_change(loss, link, outputs)
    arrays, two = _cut(loss, outputs, 2), np.full(len(outputs), 2, dtype=np.intp)
    first = None if link is None else link.part(outputs, 2)

    def decide(p: FloatArray) -> IntArray:
        return kernels.decide(kernels.Block(p[None, :], two, link=first), arrays).reshape(-1)

    low, high = (np.full(len(outputs), number) for number in _ends(link))
    at_zero, at_one = decide(_floats(low)), decide(_floats(high))
    while (high > low + 1).any():
        middle = _middle(low, high)
        changed = decide(_floats(middle)) != at_zero
        low, high = np.where(changed, low, middle), np.where(changed, middle, high)
    return at_zero, at_one, np.where(at_zero == at_one, np.nan, _floats(low))


def _bisect_change(
    loss: Loss, link: kernels.LinkArrays | None, outputs: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """The same of the probability of one output, which rules of two classes have: a row is decided in a microsecond."""
    first = None if link is None else link.part(outputs, 2)
    decider = kernels.RowDecider(_cut(loss, outputs, 2), first, 2, 1.0)
    low, high = map(int, _ends(None))
    bits = np.zeros(1, dtype=np.int64)
    p = bits.view(np.float64)

    def decide(number: int) -> int:
        bits[0] = number
        codes = decider.decide(p)
        assert codes is not None  # numbers from 0 to 1 are probabilities
        return int(codes[0])

    at_zero, at_one = decide(low), decide(high)
    while high > low + 1:
        middle = _middle(low, high)
        low, high = (middle, high) if decide(middle) == at_zero else (low, middle)
    bits[0] = low
    change = np.nan if at_zero == at_one else float(p[0])
    return np.array([at_zero]), np.array([at_one]), np.array([change])


def bisect_grades(ordinal: OrdinalMap, log_weight: FloatArray | float = 0.0) -> FloatArray:
    """Return the cut points (K - 1,) of the score at which the most probable grade of a map changes.

    Probabilities are weighted, by weights of the grades whose logarithms (K,) are given. Along the score the most
    probable grade rises: the logarithm of the odds of a grade against a lower one does.
    """
    grades = np.arange(ordinal.n_classes - 1)
    low, high = (np.full(len(grades), number) for number in _bits(-MAX_LOGIT[8], MAX_LOGIT[8]))

    def above(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray((ordinal.log_proba(_floats(numbers)) + log_weight).argmax(axis=1) > grades)

    at_low, at_high = above(low), above(high)
    while (high > low + 1).any():
        middle = _middle(low, high)
        risen = above(middle)
        low, high = np.where(risen, low, middle), np.where(risen, middle, high)
    return np.where(at_low, -np.inf, np.where(at_high, _floats(low), np.inf))


def bisect_score(
    decide: Callable[[FloatArray], IntArray], ordinal: OrdinalMap, n_points: int = 1 << 14
) -> tuple[FloatArray, IntArray]:
    """Return where decisions along one score change: the last score (C,) before each change, and codes (C + 1,).

    Decisions are taken on a grid that covers the probabilities of a map, and every change between two of its points is
    bisected down to neighbouring floats; two changes that cancel between neighbouring points would be missed.
    """
    grid = ordinal.grid(n_points)
    codes = decide(grid)
    places = np.flatnonzero(codes[1:] != codes[:-1])
    low, high = _ordered(grid[places]), _ordered(grid[places + 1])
    while (high > low + 1).any():
        middle = _middle(low, high)
        stays = decide(_floats(middle)) == codes[places]
        low, high = np.where(stays, middle, low), np.where(stays, high, middle)
    return _floats(low), np.append(codes[places], codes[-1:])


def _ends(link: kernels.LinkArrays | None) -> tuple[np.int64, np.int64]:
    """Return the ordered numbers of the smallest and the largest p, probabilities or log-odds."""
    limit = MAX_LOGIT[8]
    return _bits(0.0, 1.0) if link is None or not link.of_logits else _bits(-limit, limit)


def _bits(low: float, high: float) -> tuple[np.int64, np.int64]:
    """Return the ordered numbers of two floats."""
    first, last = _ordered(np.array([low, high]))
    return first, last


def _ordered(values: FloatArray) -> NDArray[np.int64]:
    """Return integers that are ordered as floats are, neighbours by neighbours."""
    bits = np.ascontiguousarray(values).view(np.int64)
    return np.where(bits < 0, bits ^ _ALL_BUT_SIGN, bits)


def _floats(numbers: NDArray[np.int64]) -> FloatArray:
    """Return floats of ordered numbers: positive ones are ordered like their bits, negative ones the other way."""
    return np.where(numbers < 0, numbers ^ _ALL_BUT_SIGN, numbers).view(np.float64)


def _middle(low: Any, high: Any) -> Any:
    """Return numbers halfway between, without a sum that overflows."""
    return (low >> 1) + (high >> 1) + (low & high & 1)


def bisect_regions(loss: Loss, link: kernels.LinkArrays | None, output: int) -> tuple[int, int, float, float]:
    """Decisions at p = 0 and p = 1 of a binary output of three decisions, the last p decided as 0 is, the first as 1.

    Every decision is taken along one interval of p: scores are lines in the probability behind the link, which rises.
    """
    index = np.array([output])
    arrays, two, three = _cut(loss, index, 3), np.array([2], dtype=np.intp), np.array([3], dtype=np.intp)
    behind = None if link is None else link.part(index, 3)

    def decide(number: int) -> int:
        p = _floats(np.array([[number]], dtype=np.int64))
        return int(kernels.decide(kernels.Block(p, two, n_decisions=three, link=behind), arrays)[0, 0])

    low, high = map(int, _ends(link))
    first, last = map(decide, (low, high))
    below = _halved((low, high), lambda at: decide(at) == first)[0]
    above = _halved((low, high), lambda at: decide(at) != last)[1]
    places = _floats(np.array([below, above]))
    return first, last, float(places[0]), float(places[1])


def _halved(ends: tuple[int, int], stays: Callable[[int], bool]) -> tuple[int, int]:
    """Neighbouring numbers of which the first is still as the lower end is, and the second is not."""
    low, high = ends
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if stays(middle) else (low, middle)
    return low, high
