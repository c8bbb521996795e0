"""Checks of logits, log-probabilities and scores. Must not know metrics or rules."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, warn
from ..core.inputs import MAX_LOGIT, Input
from ..core.probabilities import Probabilities

__all__ = ["NO_INPUT", "OTHER_INPUT", "OTHER_RULE", "Remedies", "read_logits", "warn_of_probabilities"]

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]

_CHECK_ROWS = 1 << 14
_SUM_TOLERANCE = 1e-6  # of rows that sum to 1 as probabilities do, and logits hardly ever


class Remedies(NamedTuple):
    """What to do with numbers that are something else than they are taken for.

    The sentences are for scores that are taken for probabilities, probabilities taken for logits, and for numbers taken
    for log-probabilities: a single column, and rows whose probabilities do not sum to 1. `by_rule` is whether a rule
    takes them so, rather than the user.
    """

    for_scores: str
    for_probabilities: str
    for_single: str
    for_sums: str
    by_rule: bool = False

    def condition(self, kind: str) -> str:
        """Return why the numbers must be of a kind."""
        if self.by_rule:
            return f"because the rule takes {Input.of(kind).plural}"
        return f"if {argument('input', kind)}"


_LOGITS, _SCORES = argument("input", "logits"), argument("input", "scores")

OTHER_INPUT = Remedies(
    f"pass {_LOGITS} for numbers before a softmax or sigmoid, {argument('input', 'log_proba')} for log-probabilities, "
    f"{_SCORES} for scores of any other scale",
    f"leave {argument('input')} out, or pass their logarithms with {argument('input', 'log_proba')}",
    f"pass both columns, or log-odds with {_LOGITS}",
    f"pass {_LOGITS} for logits, whose softmax sums to 1",
)
OTHER_RULE = Remedies(
    "use a rule that was fitted to logits or scores, because this one takes probabilities",
    "pass np.log(proba)",
    "pass both columns",
    "subtract scipy.special.logsumexp(proba, axis=-1, keepdims=True)",
    by_rule=True,
)
NO_INPUT = OTHER_INPUT._replace(for_scores="turn scores into probabilities first")


def read_logits(
    block: NDArray[Any],
    row_input: Input,
    counts: IntArray,
    tolerance: float,
    first_row: int = 0,
    remedies: Remedies = NO_INPUT,
    *,
    check: bool = True,
) -> NDArray[Any]:
    """Return a block of logits, finite: what is infinite becomes a number that is as good as that.

    It is the block itself, and no copy, where all numbers are finite and padding is 0.

    Parameters
    ----------
    block : ndarray of shape (N, M, K), or (N, M)
    row_input : Input
        Not of probabilities.
    counts : ndarray of shape (M,)
        Classes of each output; what lies beyond is padding: 0, -inf or NaN, which becomes 0.
    tolerance : float
        How far the probabilities of log-probabilities may be from summing to 1.
    first_row : int, default=0
        Number of rows before these, for error messages.
    remedies : Remedies, optional
    check : bool, default=True
        Whether to check the numbers.
    """
    padding = np.zeros(block.shape[1:], dtype=bool)
    if block.ndim == 3:
        padding = np.arange(block.shape[2]) >= counts[:, None]
        block = _with_zero_padding(block, padding, row_input, check)
    elif row_input.kind == "log_proba":
        raise InvalidParameter(
            "proba",
            problem=(
                "log-probabilities must be of all classes, shape (N, 2) or (N, M, 2), "
                f"{remedies.condition('log_proba')}, got a single column"
            ),
            remedy=remedies.for_single,
        )
    low, high = float(block.min(initial=0.0)), float(block.max(initial=0.0))
    if check:
        _check_missing(block, low, row_input, first_row)
        if block.ndim == 3:
            _check_infinite(block, padding, row_input, first_row, low, high)
            if row_input.kind in ("logits", "log_proba") and low >= 0 and high <= 1:
                _refuse_probabilities(block, row_input, remedies)
            if row_input.kind == "log_proba":
                _check_log_sums(block, padding, tolerance, first_row, remedies)
    wide = np.promote_types(block.dtype, np.float32)  # of half precision no number is as good as infinite
    limit = MAX_LOGIT[wide.itemsize]
    if low >= -limit and high <= limit:
        return block
    return _finite(block.astype(wide, copy=False), padding, limit)


def _with_zero_padding(block: NDArray[Any], padding: BoolArray, row_input: Input, check: bool) -> NDArray[Any]:
    """Return a block whose padding is 0; refuse other numbers there."""
    copied = False
    for m in np.flatnonzero(padding.any(axis=1)).tolist():
        beyond = block[:, m, padding[m]]
        if check and (np.isfinite(beyond) & (beyond != 0)).any():
            n_classes = int(np.count_nonzero(~padding[m]))
            raise InvalidParameter(
                "proba", problem=f"{row_input.plural} of output {m} must be 0 or -inf beyond its {n_classes} classes"
            )
        copied = copied or bool((beyond != 0).any())
    return np.where(padding, block.dtype.type(0), block) if copied else block


def _check_missing(block: NDArray[Any], low: float, row_input: Input, first_row: int) -> None:
    """Refuse NaN, which is the smallest number wherever there is one."""
    if np.isnan(low):
        at = first_row + int(np.argwhere(np.isnan(block))[0][0])
        raise InvalidParameter(
            "proba",
            problem=f"{row_input.plural} must not be NaN, got NaN in row {at}",
            remedy="drop such rows, and their labels if there are any",
        )


def _check_infinite(
    block: NDArray[Any], padding: BoolArray, row_input: Input, first_row: int, low: float, high: float
) -> None:
    """Refuse rows in which no class or more than one is certain; all numbers are from `low` to `high`."""
    if np.isfinite(low) and np.isfinite(high):
        return
    certain = (block == np.inf).sum(axis=2)
    impossible = ((block == -np.inf) | padding).all(axis=2)
    for bad, got in ((certain > 1, "two or more of +inf"), (impossible, "-inf for every class")):
        if bad.any():
            row = first_row + int(np.argwhere(bad)[0][0])
            raise InvalidParameter(
                "proba",
                problem=(
                    f"{row_input.plural} must be +inf for at most one class of a row, and above -inf for some class, "
                    f"got {got} in row {row}"
                ),
            )


def _check_log_sums(
    block: NDArray[Any], padding: BoolArray, tolerance: float, first_row: int, remedies: Remedies
) -> None:
    """Refuse rows whose log-probabilities are not those of probabilities that sum to 1."""
    for start in range(0, len(block), _CHECK_ROWS):
        rows = np.where(padding, -np.inf, block[start : start + _CHECK_ROWS].astype(np.float64))
        with np.errstate(over="ignore"):
            total = np.exp(rows).sum(axis=2)
        off = ~(np.abs(total - 1) <= tolerance)
        if off.any():
            where = tuple(int(i) for i in np.argwhere(off)[0])
            raise InvalidParameter(
                "proba",
                problem=(
                    f"log-probabilities must be logarithms of probabilities that sum to 1 (within {tolerance:.3g}) "
                    f"{remedies.condition('log_proba')}, got a sum of {total[where]:.6g} in row "
                    f"{first_row + start + where[0]}"
                ),
                remedy=remedies.for_sums,
            )


def _refuse_probabilities(block: NDArray[Any], row_input: Input, remedies: Remedies) -> None:
    """Refuse rows from 0 to 1 that all sum to 1: these are probabilities, unless all are 0 or 1 as counts are."""
    fractions = False
    for start in range(0, len(block), _CHECK_ROWS):
        rows = block[start : start + _CHECK_ROWS]
        if (np.abs(rows.sum(axis=2, dtype=np.float64) - 1) > _SUM_TOLERANCE).any():
            return
        fractions = fractions or bool(((rows > 0) & (rows < 1)).any())
    if fractions:
        raise InvalidParameter(
            "proba",
            problem=(
                f"all numbers must be {row_input.plural} {remedies.condition(row_input.kind)}, got rows from 0 to 1 "
                "that sum to 1, which are probabilities"
            ),
            remedy=remedies.for_probabilities,
        )


def _finite(block: NDArray[Any], padding: BoolArray, limit: float) -> NDArray[Any]:
    """Return a copy in which infinite numbers are as large as the limit; one certain class leaves nothing to others."""
    out = np.clip(block, -limit, limit)
    if block.ndim == 3:
        certain = (block == np.inf).any(axis=2, keepdims=True) & ~padding
        out[certain] = np.where(block[certain] == np.inf, 0.0, -limit)
    return np.asarray(out, dtype=block.dtype)


def warn_of_probabilities(proba: Probabilities, row_input: Input, *, by_rule: bool = False) -> bool:
    """Warn if single columns of logits all lie between 0 and 1, as probabilities do, and return whether they do.

    `by_rule` is whether a rule takes them for logits, rather than the user.
    """
    if row_input.kind != "logits" or any(block.ndim == 3 for block in proba.blocks):
        return False
    if not all(block.min() >= 0 and block.max() <= 1 for block in proba.blocks):
        return False
    who = "the rule" if by_rule else argument("input", "logits")
    remedy = "pass np.log(p / (1 - p))" if by_rule else f"leave {argument('input', 'logits')} out"
    warn(
        f"all logits lie between 0 and 1, as probabilities do, and {who} takes them for log-odds; if they are "
        f"probabilities, {remedy}."
    )
    return True
