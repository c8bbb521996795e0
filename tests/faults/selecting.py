"""A pytest plugin: run some tests in a given order, and note how long each takes and which fail.

Two variables of the environment name files: FAULTS_ORDER has the names of tests, a line each; to FAULTS_NOTES a line of
JSON is written for every test.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

ORDER, NOTES = "FAULTS_ORDER", "FAULTS_NOTES"


def pytest_configure(config: Any) -> None:
    """Take notes in the process that hears of all tests."""
    path = os.environ.get(NOTES)
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Notes(Path(path)))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave the tests that are asked for, in their order."""
    path = os.environ.get(ORDER)
    if not path:
        return
    place = {name: at for at, name in enumerate(Path(path).read_text(encoding="utf-8").splitlines())}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in place])
    items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])


class _Notes:
    """What became of each test."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed or report.when == "teardown":
            self._write(report.nodeid, report.failed)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._write(report.nodeid, True)

    def _write(self, name: str, failed: bool) -> None:
        note = {"test": name, "seconds": round(self._seconds.get(name, 0.0), 3), "failed": failed}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
