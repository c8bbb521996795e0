"""Exact tests of proportions, tests in a fixed sequence, and the number of rows that such tests need.

The p-values are valid for any distribution of independent rows and a rule that these rows have not changed. Must not
know rules, rows or how candidates are made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InvalidParameter, entry_point, shown
from ..goals.proportions import Proportion

__all__ = ["binomial_p_values", "certify_in_sequence", "largest_p_values", "rows_to_guarantee"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

_MAX_TRIALS = 1 << 40  # for which a number of rows is looked for
_POWERS = 400  # numbers of trials that are compared


def binomial_p_values(successes: ArrayLike, trials: ArrayLike, bound: float, *, is_floor: bool) -> FloatArray:
    """Return p-values of the hypothesis that a proportion is beyond a bound: below a floor, or above a ceiling.

    They are ``P(Bin(trials, bound) >= successes)`` for a floor and ``P(Bin(trials, bound) <= successes)`` for a
    ceiling; 1 without trials.
    """
    from scipy.special import betainc

    hits, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    if not is_floor:
        hits, bound = n - hits, 1.0 - bound
    p = betainc(np.maximum(hits, 1.0), n - hits + 1.0, min(max(bound, 0.0), 1.0))
    return np.asarray(np.where(hits > 0, p, 1.0))


def largest_p_values(proportions: Sequence[Proportion], cells: Sequence[NDArray[Any]]) -> FloatArray:
    """Return the largest p-value of the bounds on proportions, (T,), by the counted cells (T, K, D) of each.

    It is a p-value of the hypothesis that some bound is not kept, whatever the dependence between them.
    """
    p_values = np.zeros(len(cells[0]))
    for proportion, counts in zip(proportions, cells, strict=True):
        successes, trials = proportion.count(counts)
        p = binomial_p_values(successes, trials, proportion.bound, is_floor=proportion.is_floor)
        p_values = np.maximum(p_values, p)
    return p_values


def certify_in_sequence(p_values: FloatArray, shares: FloatArray) -> BoolArray:
    """Return which hypotheses are rejected in their order, (T,), so that a true one is with probability sum(shares).

    Each begins with its share of the level, and hands on all the level that it has to the next one if it is rejected:
    the fallback procedure [1]_. With one share at the beginning, tests stop at the first that fails.

    References
    ----------
    .. [1] Wiens (2003), "A fixed sequence Bonferroni procedure for testing multiple endpoints".

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.inference.exact_tests import certify_in_sequence
    >>> certify_in_sequence(np.array([0.01, 0.04, 0.2, 0.01]), np.array([0.05, 0.0, 0.0, 0.0])).tolist()
    [True, True, False, False]
    >>> certify_in_sequence(np.array([0.2, 0.01, 0.04]), np.array([0.03, 0.02, 0.0])).tolist()
    [False, True, False]
    """
    level, certified = 0.0, np.zeros(len(p_values), dtype=bool)
    for k, (p, share) in enumerate(zip(p_values.tolist(), shares.tolist(), strict=True)):
        level += share
        certified[k] = level > 0 and p <= level
        level = level if certified[k] else 0.0
    return certified


@entry_point("rows_to_guarantee")
def rows_to_guarantee(
    bound: float, value: float, *, share: float = 1.0, confidence: float = 0.95, power: float = 0.8
) -> int:
    """Return the number of labelled rows that a guarantee of a bound on a proportion needs.

    Parameters
    ----------
    bound : float
        The bound that is to be guaranteed, such as a precision of at least 0.9.
    value : float
        The true value of the metric for the rule: above `bound` for a lower bound, below it for an upper one.
    share : float, default=1.0
        Share of the rows that the metric is a proportion of: for precision, the rows that are predicted positive; for
        recall, the rows of the class.
    confidence : float, default=0.95
        Confidence of the guarantee.
    power : float, default=0.8
        Probability with which it is to be given.

    Returns
    -------
    int
        For one rule that was fixed beforehand. Of several rules that are tested in a sequence, the first needs as many.

    See Also
    --------
    metricwise.optimize : Takes ``guarantee="exact"``.

    Examples
    --------
    >>> import metricwise as mw
    >>> mw.rows_to_guarantee(0.9, 0.95, share=0.1)
    2030
    >>> mw.rows_to_guarantee(0.9, 0.92, share=0.1)
    13600
    """
    _check_number("bound", bound, "above 0 and below 1", lambda number: 0 < number < 1)
    _check_number("value", value, "from 0 to 1", lambda number: 0 <= number <= 1)
    _check_number("share", share, "above 0 and at most 1", lambda number: 0 < number <= 1)
    _check_number("confidence", confidence, "at least 0.5 and below 1", lambda number: 0.5 <= number < 1)
    _check_number("power", power, "above 0 and below 1", lambda number: 0 < number < 1)
    if value == bound:
        raise InvalidParameter("value", "differ from bound, because no number of rows proves a bound that is just met")
    floor, level = value > bound, 1.0 - float(confidence)
    threshold, truth = (float(bound), float(value)) if floor else (1.0 - float(bound), 1.0 - float(value))
    return ceil(_trials_needed(threshold, truth, level, float(power)) / float(share))


def _check_number(name: str, number: Any, must: str, holds: Callable[[float], bool]) -> None:
    is_number = isinstance(number, (int, float, np.number)) and not isinstance(number, bool)
    if not is_number or not holds(float(number)):
        raise InvalidParameter(name, f"be a number {must}", shown(number))


def _trials_needed(bound: float, value: float, level: float, power: float) -> int:
    """Return the number of trials from which on a floor is proved with the power asked for; of very many, to 1 %."""
    low = high = max(ceil(log(level) / log(bound)), 1)  # with fewer, not even successes alone prove it
    while _powers(np.array([high]), bound, value, level)[0] < power:
        if high > _MAX_TRIALS:
            raise InvalidParameter(
                "value", f"be further from bound, which takes more than {_MAX_TRIALS:.0e} rows to prove"
            )
        low, high = high, 2 * high
    numbers = np.unique(np.linspace(low, 2 * high, _POWERS).astype(np.int64))
    short = np.flatnonzero(_powers(numbers, bound, value, level) < power)  # the power rises in a zigzag
    return int(numbers[min(short[-1] + 1, len(numbers) - 1)]) if len(short) else int(numbers[0])


def _powers(trials: NDArray[np.int64], bound: float, value: float, level: float) -> FloatArray:
    """Return the probability with which a floor is proved by numbers of trials of a proportion of this value."""
    from scipy.stats import binom

    critical = binom.isf(level, trials, bound) + 1  # successes of which P(Bin >= critical) <= level
    return np.where(critical <= trials, binom.sf(critical - 1, trials, value), 0.0)
