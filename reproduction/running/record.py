"""The record of the results: command, machine and time.

Writes the JSON file. Results that were continued by another command or on another machine keep both records.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..protocol import RunSettings

__all__ = ["THREADS", "Record", "machine"]

THREADS = 1  # of BLAS and OpenMP in each process

_PACKAGES = ("metricwise", "numpy", "scipy", "scikit-learn", "joblib")


class Record:
    """What made the results of an experiment.

    Parameters
    ----------
    path : pathlib.Path
    name : str
    settings : RunSettings
    command : str
        What was typed.
    jobs : int
        Processes.
    """

    def __init__(self, path: Path, name: str, settings: RunSettings, command: str, jobs: int) -> None:
        self.path = path
        self._fixed = {"experiment": name, "seed": settings.seed, "quick": settings.quick, "made_up": settings.made_up}
        self._old: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self._now: dict[str, Any] = {"command": command, "jobs": jobs} | machine()
        self.facts: dict[str, Any] = self._fixed | self._now | {"seconds": 0.0}

    def check(self, has_rows: bool) -> None:
        """Raise an error if results of different settings would be mixed, and keep the record of finished ones."""
        different = [key for key, value in self._fixed.items() if self._old and self._old.get(key) != value]
        if has_rows and (different or not self._old):
            was = {key: self._old.get(key) for key in different}
            raise ValueError(
                f"{self.path.parent} holds results of other settings ({was or 'unknown'}); choose another "
                "--output, or delete them."
            )
        if has_rows:
            self.facts = self._old

    def start(self) -> None:
        """Record the start of a run, and who continues it."""
        known = [self.facts, *self.facts.get("continued", [])]
        if not any(all(run.get(key) == value for key, value in self._now.items()) for run in known):
            self.facts = self.facts | {"continued": [*self.facts.get("continued", []), self._now]}
        self._write()

    def add_time(self, seconds: float) -> None:
        """Add the time of one task to the file immediately, in case of a kill."""
        self.facts = self.facts | {"seconds": round(self.facts.get("seconds", 0.0) + seconds, 3)}
        self._write()

    def _write(self) -> None:
        self.path.write_text(json.dumps(self.facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """Return what last digits may depend on: processor, BLAS, threads and versions."""
    return {
        "processor": _processor(),
        "cores": _cores(),
        "blas": _blas(),
        "threads": THREADS,
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    """Return the model of the processor, from Linux if available."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = (line.split(":", 1) for line in info.read_text(encoding="utf-8").splitlines() if ":" in line)
        names = [value.strip() for key, value in lines if key.strip() == "model name"]
        if names:
            return names[0]
    return platform.processor() or platform.machine() or "unknown"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _blas() -> str:
    """Return the BLAS libraries that NumPy and SciPy have loaded, and their code paths."""
    import numpy.linalg  # noqa: F401  # loads its library
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    found = [info for info in threadpool_info() if info.get("user_api") == "blas"]
    words = (
        " ".join(str(info[key]) for key in ("internal_api", "version", "architecture") if info.get(key))
        for info in found
    )
    return ", ".join(sorted(set(words))) or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
