"""The common level of gaps that are linear at a fixed one: a search, zoom by zoom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["Levels", "best_levels"]

Levels = dict[Any, float]

_GRID = 12  # levels that are looked at, and then so many times as close around the best
_ZOOMS = 3
_ROUNDS = 2  # of several levels, one after the other


def best_levels(
    value: Callable[[Levels], float], ranges: Mapping[Any, tuple[float, float]], start: Mapping[Any, float]
) -> Levels:
    """Return the levels of the largest value found.

    The value is no concave function of a level: a grid over its range comes first, then finer ones around the best.

    Parameters
    ----------
    value : callable
        From levels to what is to be large; -inf where nothing is possible.
    ranges : mapping of keys to (float, float)
        Between what each level lies.
    start : mapping of keys to float
        Levels to begin with.

    Returns
    -------
    dict

    Examples
    --------
    >>> from metricwise.solvers.levels import best_levels
    >>> found = best_levels(lambda levels: -(levels["a"] - 0.3) ** 2, {"a": (0.0, 1.0)}, {"a": 0.5})
    >>> round(found["a"], 3)
    0.3
    """
    levels = dict(start)
    best = value(levels)
    for _ in range(_ROUNDS if len(ranges) > 1 else 1):
        before = best
        for key, (least, most) in ranges.items():
            step = (most - least) / _GRID
            tried = least + step * np.arange(_GRID + 1)
            for _ in range(_ZOOMS):
                for level in tried[(tried >= least) & (tried <= most)].tolist():
                    reached = value({**levels, key: level})
                    if reached > best:
                        best, levels = reached, {**levels, key: level}
                tried = levels[key] + step * (2 * np.arange(1, _GRID) / _GRID - 1)
                step *= 2 / _GRID
        if best <= before:
            break
    return levels
