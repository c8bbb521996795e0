"""Search for the common level of gaps that are linear at a fixed level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Levels = dict[Any, float]

_GRID = 6  # steps across a window, which then closes around the best
_ZOOMS = 4
_WINDOW = 0.25  # of the range, beyond what is known
_NARROW_WINDOW = 0.05  # likewise, around levels that were good before
_ROUNDS = 2  # of several levels, one after the other


def best_levels(
    value: Callable[[Levels], float],
    ranges: Mapping[Any, tuple[float, float]],
    observed: Mapping[Any, tuple[float, float]],
    before: Mapping[Any, float] | None = None,
) -> Levels:
    """Return the levels of the largest value found.

    The value is no concave function of a level: a grid comes first, then finer ones around the best. Where that lies at
    the end of a window, the window moves on.

    Parameters
    ----------
    value : callable
        From levels to what is to be large; -inf where nothing is possible.
    ranges : mapping of keys to (float, float)
        Between what each level lies.
    observed : mapping of keys to (float, float)
        Between what the metrics lie that are to be brought together: where to look first.
    before : mapping of keys to float, optional
        Levels of a problem much like this one: where to look first instead.

    Returns
    -------
    dict
    """
    levels = {key: (low + high) / 2 for key, (low, high) in observed.items()} if before is None else dict(before)
    best = value(levels)
    for _ in range(_ROUNDS if len(ranges) > 1 else 1):
        start = best
        for key, (least, most) in ranges.items():
            low, high = observed[key]
            more = _WINDOW * (most - least) if before is None else _NARROW_WINDOW * (most - least)
            center, half = (low + high) / 2 if before is None else levels[key], (high - low) / 2 + more
            half = half if before is None else more
            for _ in range(_ZOOMS):
                for level in np.linspace(max(center - half, least), min(center + half, most), _GRID + 1).tolist():
                    reached = value({**levels, key: level})
                    if reached > best:
                        best, levels = reached, {**levels, key: level}
                at_end = np.isfinite(best) and abs(abs(levels[key] - center) - half) < half / _GRID
                center, half = levels[key], half if at_end else half / (_GRID / 2)
        if best <= start:
            break
    return levels
