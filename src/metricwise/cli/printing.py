"""Printing of results: text and tables for people, one JSON object for programs.

Names of columns and labels are printed as they are, never as markup. Must not know commands.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

__all__ = ["interval", "note", "print_json", "print_table", "say", "signed", "to_plain"]


def say(text: str) -> None:
    """Print lines, wrapped to the width of a terminal; into a pipe as they are."""
    if not sys.stdout.isatty():
        sys.stdout.write(f"{text}\n")
        return
    from rich.console import Console

    Console(markup=False, highlight=False, emoji=False).print(text)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: on a terminal with wrapped cells, into a pipe in columns as wide as need be."""
    if sys.stdout.isatty():
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in head:
            table.add_column(Text(name), overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        Console(highlight=False, emoji=False).print(table)
        return
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    for row in [head, *rows]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(f"{line.rstrip()}\n")


def signed(value: float) -> str:
    """Return a difference; 0 has no minus."""
    return f"{value + 0.0:+.4f}"


def interval(estimate: Any, *, difference: bool = False) -> str:
    """Return an estimate with its interval."""
    shown = signed if difference else lambda value: f"{value + 0.0:.4f}"
    return f"{shown(estimate.estimate)} [{shown(estimate.low)}, {shown(estimate.high)}]"


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON object on one line."""
    sys.stdout.write(json.dumps(to_plain(document), ensure_ascii=False, allow_nan=False) + "\n")


def to_plain(value: Any) -> Any:
    """Return a value as JSON has it; what is no finite number is null.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.cli.printing import to_plain
    >>> to_plain({"a": np.array([1.0, np.nan]), "b": np.int64(2)})
    {'a': [1.0, None], 'b': 2}
    """
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "tolist"):  # an array or a number of NumPy's
        return to_plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def note(text: str) -> None:
    """Print a message to standard error, after what was printed before."""
    sys.stdout.flush()
    sys.stderr.write(f"metricwise: {text}\n")
    sys.stderr.flush()
