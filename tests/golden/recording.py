"""Recordings: what came of every call, a line each, one file for each kernel, and on what machine.

Knows files and processors, and nothing of the library.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.golden.columns import NAMES

FOLDER = Path(__file__).parent / "recordings"
KERNELS = ("compiled", "numpy")
PINS = ("numpy", "scipy", "scikit-learn")
FLOATS = ("decisions", "rule", "numbers", "work")  # columns that depend on the last bits


def environment() -> dict[str, Any]:
    """Return what floats depend on: versions, and what the processor can do."""
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as features
    except ImportError:  # before NumPy 2
        from numpy.core._multiarray_umath import __cpu_features__ as features

    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in PINS},
        "processor": sorted(name for name, there in features.items() if there),
    }


@dataclass(frozen=True)
class Recording:
    """Columns of each call by its name, and where they were made."""

    environment: dict[str, Any] = field(default_factory=environment)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether floats must have the same bits here."""
        return self.environment == environment()


def path_of(kernel: str, folder: Path = FOLDER) -> Path:
    """Return where the recording of a kernel is."""
    return folder / f"{kernel}.jsonl"


def exists(kernel: str, folder: Path = FOLDER) -> bool:
    """Whether there is a recording of a kernel."""
    return path_of(kernel, folder).exists()


def read(kernel: str, folder: Path = FOLDER) -> Recording:
    """Read the recording of a kernel."""
    head, *lines = path_of(kernel, folder).read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return Recording(json.loads(head), {record.pop("id"): record for record in records})


def write(recording: Recording, kernel: str, folder: Path = FOLDER) -> None:
    """Write the recording of a kernel: the same bytes for the same content."""
    folder.mkdir(exist_ok=True)
    lines = [json.dumps(recording.environment)]
    for name, columns in recording.calls.items():
        ordered = {column: columns[column] for column in NAMES if column in columns}
        lines.append(json.dumps({"id": name, **ordered}, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    path_of(kernel, folder).write_text("\n".join(lines) + "\n", encoding="utf-8")


def renewed(
    stored: Recording | None, fresh: Mapping[str, dict[str, Any]], names: Iterable[str], columns: Iterable[str] | None
) -> Recording:
    """Return a recording with some columns, or all, as they are now.

    Parameters
    ----------
    stored : Recording or None
        As it was.
    fresh : mapping
        What came of calls now.
    names : iterable of str
        All calls, in order; what was recorded of others is dropped.
    columns : iterable of str or None
        Columns to record anew, None for all. Calls that were not recorded yet have all of them.
    """
    if stored is None:
        return Recording(calls={name: fresh[name] for name in names if name in fresh})
    chosen = set(NAMES if columns is None else columns)
    whole = columns is None and all(name in fresh for name in names)
    if not whole and not stored.exact and chosen & set(FLOATS):
        raise SystemExit(
            "golden: the recording was made with another processor or other versions, so that these columns cannot be "
            f"mixed with it: {sorted(chosen & set(FLOATS))}. Record all columns of all calls."
        )
    calls = {}
    for name in names:
        old, new = stored.calls.get(name), fresh.get(name)
        if old is None or new is None:
            calls[name] = new if old is None else old
        else:
            kept = {column: value for column, value in old.items() if column not in chosen}
            calls[name] = kept | {column: value for column, value in new.items() if column in chosen}
    calls = {name: columns for name, columns in calls.items() if columns is not None}
    return Recording(environment() if whole else stored.environment, calls)
