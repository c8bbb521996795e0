"""Means over cells with their standard errors, and the tables of the pages.

Sets are the independent units: the standard error of a mean is that of leaving out one set at a time (the jackknife).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tables import table

FloatArray = NDArray[np.float64]
Row = dict[str, Any]
Statistic = Callable[[list[Row]], float]

POINT = 0.01
MAX_LOSS = -1.0  # points


def by(rows: list[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by the values of some columns, in their order of appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def jackknife(statistic: Statistic, rows: list[Row], unit: str = "set") -> float:
    """Return the standard error of a statistic, leaving out one unit at a time."""
    parts = by(rows, (unit,))
    if len(parts) < 2:
        return float("nan")
    left = [statistic([row for row in rows if row[unit] != name]) for (name,) in parts]
    return float(np.sqrt((len(left) - 1) * np.var(left)))


def with_error(statistic: Statistic, rows: list[Row], digits: int = 2, unit: str = "set") -> str:
    return f"{statistic(rows):+.{digits}f} ± {jackknife(statistic, rows, unit):.{digits}f}"


def changes(rows: Iterable[Row], method: str) -> FloatArray:
    """Return the change of a method against the stale rule, in points."""
    return np.array([(row[method] - row["stale"]) / POINT for row in rows])


def mean_change(method: str) -> Statistic:
    return lambda rows: float(changes(rows, method).mean())


def share_below(method: str) -> Statistic:
    return lambda rows: float((changes(rows, method) < MAX_LOSS).mean())


def of_oracle(method: str, oracle: str = "true shares") -> Statistic:
    return lambda rows: float(100 * changes(rows, method).sum() / changes(rows, oracle).sum())


def change_table(rows: list[Row], methods: Sequence[str], keys: Sequence[str]) -> str:
    """Return a table with a line for each combination of keys and method."""
    lines = []
    for values, cells in by(rows, keys).items():
        for method in methods:
            measured = [row for row in cells if row.get(method) is not None]
            if measured:
                head = dict(zip(keys, values, strict=True))
                lines.append(head | {"method": method} | change_line(measured, method))
    return table(lines, left=len(keys) + 1)


def change_line(rows: list[Row], method: str) -> Row:
    gain = changes(rows, "true shares").sum()
    return {
        "change": with_error(mean_change(method), rows),
        "below -1": f"{share_below(method)(rows):.1%}",
        "of true shares, %": with_error(of_oracle(method), rows, 0) if gain > POINT * len(rows) else None,
        "cells": len(rows),
    }


def share_table(rows: list[Row]) -> str:
    lines = []
    for (n_rows, shift), cells in by(rows, ("rows", "shift")).items():
        errors = [key for key in cells[0] if key.startswith("error of ")]
        lines.append(
            {
                "rows": n_rows,
                "shift": shift,
                "alarms": f"{mean(cells, 'moved'):.1%}",
                "covered": f"{mean(cells, 'covered'):.1%} ± {jackknife(lambda r: mean(r, 'covered'), cells):.1%}",
                "width": f"{mean(cells, 'width') / POINT:.1f}",
            }
            | {key: f"{mean(cells, key) / POINT:.2f}" for key in errors}
        )
    return table(lines, left=2)


def mean(rows: list[Row], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def part_page(title: str, part: str, made_with: str, body: str) -> str:
    return f"""# {title}

Made by `python -m benchmarks.life {part}`. {made_with}

{body}
"""
