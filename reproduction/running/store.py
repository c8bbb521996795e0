"""Results on disk: one CSV row per finished task, appended when it is finished.

A killed run leaves complete rows and at most one incomplete line, which is dropped on opening.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..protocol import Row, Task

__all__ = ["Store"]


class Store:
    """A CSV of finished tasks.

    Parameters
    ----------
    path : pathlib.Path
    keys : sequence of str
        Columns that name a task.
    """

    def __init__(self, path: Path, keys: Sequence[str]) -> None:
        self.path = path
        self.keys = tuple(keys)
        self.rows: dict[tuple[str, ...], dict[str, Any]] = {}
        self._read()

    def __contains__(self, task: Task) -> bool:
        return self._key(task) in self.rows

    def get(self, tasks: Sequence[Task]) -> list[Row]:
        """Return the rows of the finished tasks, in the given order."""
        return [self.rows[key] for key in map(self._key, tasks) if key in self.rows]

    def append(self, task: Task, values: dict[str, float]) -> None:
        """Append one row, and write it to disk before returning."""
        row = dict(zip(self.keys, self._key(task), strict=True)) | {k: _text(v) for k, v in values.items()}
        known = next(iter(self.rows.values()), row)
        if list(known) != list(row):
            raise ValueError(
                f"{self.path} holds results with other columns, of another version of this experiment; choose another "
                "--output, or delete them."
            )
        new = not self.path.exists() or self.path.stat().st_size == 0
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write((_line(row) if new else "") + _line(row.values()))
            file.flush()
            os.fsync(file.fileno())
        self.rows[self._key(task)] = row

    def sort(self, tasks: Sequence[Task]) -> None:
        """Put the rows in the order of the tasks, so that equal results are equal files; other rows come last."""
        wanted = {self._key(task): i for i, task in enumerate(tasks)}
        self._write(sorted(self.rows.values(), key=lambda row: wanted.get(self._key_of(row), len(wanted))))

    def _key(self, task: Task) -> tuple[str, ...]:
        return tuple(map(str, task))

    def _key_of(self, row: Row) -> tuple[str, ...]:
        return tuple(row[key] for key in self.keys)

    def _read(self) -> None:
        if not self.path.exists():
            return
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        header, *lines = list(csv.reader(io.StringIO(whole))) or [[]]
        rows = [dict(zip(header, line, strict=True)) for line in lines if len(line) == len(header)]
        self.rows = {self._key_of(row): row for row in rows}
        if whole != text:
            self._write(list(self.rows.values()))

    def _write(self, rows: Sequence[Row]) -> None:
        if not rows:
            self.path.unlink(missing_ok=True)
            return
        scratch = self.path.with_suffix(".csv.new")
        scratch.write_text(_line(rows[0]) + "".join(_line(row.values()) for row in rows), encoding="utf-8", newline="")
        scratch.replace(self.path)


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _line(values: Any) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(values)
    return buffer.getvalue()
