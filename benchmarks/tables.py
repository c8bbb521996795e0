"""Tables as CSV and Markdown, and atomic writing of files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_atomically(path: Path, save: Callable[[Path], Any]) -> None:
    """Let `save` write to a temporary file, then rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    try:
        save(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda draft: draft.write_text(text))


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, buffer.getvalue())


def write_figure(path: Path, figure: Any) -> None:
    write_atomically(path, lambda draft: figure.savefig(draft, format=path.suffix[1:], dpi=150))


def table(rows: list[dict[str, Any]], left: int = 1) -> str:
    """Return a Markdown table, with the first columns left-aligned."""
    head = list(rows[0])
    rule = ["---" if number < left else "--:" for number in range(len(head))]
    lines = [head, rule, *([show(row[key]) for key in head] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def show(cell: Any) -> str:
    return "" if cell is None else str(cell)


def significant(number: float | None, digits: int = 3) -> str | None:
    """Return a number with three digits, without an exponent, with thousands separators."""
    if number is None:
        return None
    if abs(number) >= 10 ** (digits - 1):
        return f"{number:,.0f}"
    return f"{number:.{digits}g}" if abs(number) >= 1e-4 or number == 0 else f"{number:.1e}"
