"""Choice of a classifier's response: probabilities, unless these tie rows that another response tells apart.

Must not know metrics or rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter
from ._responses import Blocks, Response

__all__ = ["choose_response"]

_CERTAIN = 1e-6  # distance from 1 of the largest probability; calibrations see no differences beyond it
_MAX_TIED = 0.01  # share of rows; below it, ties cost nothing that could be measured
_CLOSE = 1e-9  # relative difference of numbers that are the same but for rounding


def choose_response(responses: Sequence[Response], ask: Callable[[Response], Blocks]) -> Response:
    """Return the first response, or a later one that tells apart more than 1 % of the rows, which it ties.

    Certain rows are tied by probabilities if their largest class is the same, and by log-probabilities if the log-odds
    are. The share is that of the output where it is largest.

    Parameters
    ----------
    responses : sequence of Response
        From the first choice to the last.
    ask : callable
        From a response to its arrays, one for each output.
    """
    chosen = responses[0]
    for other in responses[1:]:
        certain = [chosen.certainty(block) >= 1 - _CERTAIN for block in ask(chosen)]
        if max(float(rows.mean()) for rows in certain) <= _MAX_TIED:
            return chosen
        answer = _try(other, ask)
        if answer is not None and _tied_share(chosen, ask(chosen), certain, other, answer) > _MAX_TIED:
            chosen = other
    return chosen


def _try(response: Response, ask: Callable[[Response], Blocks]) -> Blocks | None:
    """Return what a response says, None if it cannot be used: there is another."""
    try:
        blocks = ask(response)
    except InvalidParameter:
        return None
    return blocks if response.is_usable(blocks) else None


def _tied_share(
    chosen: Response, blocks: Blocks, certain: Sequence[NDArray[np.bool_]], other: Response, others: Blocks
) -> float:
    """Return the share of rows that a response ties and another tells apart, of the output where it is largest."""
    shares = []
    for block, rows, other_block in zip(blocks, certain, others, strict=True):
        codes = chosen.tie_codes(block[rows])
        shares.append(_count_tied(codes, other.tell_rows(other_block[rows])) / len(block))
    return max(shares)


def _count_tied(codes: NDArray[Any], values: NDArray[Any]) -> int:
    """Return the number of rows with a code that has rows of different values (n, w)."""
    if len(codes) == 0:
        return 0
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    differs = ~np.isclose(values, values[first[place]], rtol=_CLOSE, atol=0).all(axis=1)
    return int((np.bincount(place, differs) > 0)[place].sum())
