"""Which tests execute which lines: one run of the suite under coverage, kept beside the tree in ``.faults``.

Owns the map, and how old it is: of a file that has changed since, all tests count that executed any of it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.faults import suite
from tests.faults.catalogue import Fault, function_lines, locate

FOLDER = ".faults"
_TESTS = "tests"


@dataclass(frozen=True)
class Run:
    """One command under coverage: how long its tests took, and which of them failed without any fault."""

    command: suite.Command
    seconds: dict[str, float]
    failed: frozenset[str]
    coverage: Path

    @cached_property
    def data(self) -> Any:
        """The lines that tests executed."""
        from coverage import CoverageData

        data = CoverageData(basename=str(self.coverage))
        data.read()
        return data

    def tests_of(self, path: str, lines: Sequence[int] | None) -> list[str]:
        """Return the tests that executed some lines of a file, any of them if None.

        What a fixture or the import of a module executed, all tests of the file may depend on.
        """
        contexts = self.data.contexts_by_lineno(path)
        chosen = contexts if lines is None else {line: contexts[line] for line in lines if line in contexts}
        names = {name for own in chosen.values() for name in own}
        tests = {name.rpartition("|")[0] for name in names if name}
        files = {name.partition("::")[0] for name in names if name.endswith("|setup")}
        if names == {""} and lines is not None:  # executed at import, which says nothing of tests
            return self.tests_of(path, None)
        return [
            test
            for test in self.seconds
            if (test in tests or test.partition("::")[0] in files) and test not in self.failed
        ]


@dataclass(frozen=True)
class Map:
    """What the suite executed, and the files that it was made of."""

    runs: tuple[Run, ...]
    hashes: dict[str, str]

    def reaching(self, fault: Fault, root: Path, run: Run) -> list[str]:
        """Return the tests that execute a fault."""
        if fault.compiled:
            assert fault.through is not None
            path, lines = function_lines(fault.through, root, fault)
        else:
            place = locate(fault, root)
            path, lines = place.path, place.lines
        if path not in self.hashes:
            raise ValueError(f"{fault.id}: the map does not know {path}; make it anew: python -m tests.faults map")
        return run.tests_of(path, lines if self.hashes[path] == _hash(root / path) else None)

    def changed_tests(self, root: Path) -> list[str]:
        """Return the files of tests that have changed since the map was made, or are new."""
        files = _test_files(root)
        return [path for path in files if self.hashes.get(path) != _hash(root / path)]


def make(root: Path, faults: Sequence[Fault], jobs: int, say: Any) -> None:
    """Run the suite under coverage and keep what it executed."""
    folder = root / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files = sorted({_reached_path(fault, root) for fault in faults})
    hashes = {path: _hash(root / path) for path in [*files, *_test_files(root)]}
    runs = []
    for command in suite.commands(root):
        own = [path for path in files if "/kernels/" in path] if suite.KERNELS in command.variables else files
        with suite.copied(root) as copy:
            say(f"{command.name}: {len(own)} files under coverage")
            config = copy / "faults-coverage.ini"
            inside = "".join(f"\n    {path}" for path in own)
            config.write_text(f"[run]\nrelative_files = true\ninclude ={inside}\n", encoding="utf-8")
            arguments = ["-n", str(jobs), "--cov", f"--cov-config={config}", "--cov-context=test", "--cov-report="]
            notes, said = suite.run(copy, command, arguments, recordings=True)
            say(said.splitlines()[-1] if said else "nothing was said")
            shutil.copy(copy / ".coverage", folder / f"{command.name}.coverage")
        failed = sorted({note.test for note in notes if note.failed})
        for test in failed:
            say(f"fails without any fault, and is left out: {test}")
        runs.append(
            {
                "target": command.target,
                "arguments": command.arguments,
                "variables": command.variables,
                "seconds": {note.test: note.seconds for note in notes},
                "failed": failed,
            }
        )
    (folder / "map.json").write_text(json.dumps({"runs": runs, "hashes": hashes}, indent=1), encoding="utf-8")


def read(root: Path) -> Map:
    """Return the map that was made last."""
    path = root / FOLDER / "map.json"
    if not path.is_file():
        raise FileNotFoundError("there is no map of tests yet: python -m tests.faults map")
    document = json.loads(path.read_text(encoding="utf-8"))
    runs = []
    for run in document["runs"]:
        command = suite.Command(run["target"], tuple(run["arguments"]), run["variables"])
        runs.append(Run(command, run["seconds"], frozenset(run["failed"]), path.with_name(f"{command.name}.coverage")))
    return Map(tuple(runs), document["hashes"])


def _reached_path(fault: Fault, root: Path) -> str:
    return locate(fault, root).path if fault.through is None else function_lines(fault.through, root, fault)[0]


def _test_files(root: Path) -> list[str]:
    files = sorted((root / _TESTS).rglob("test_*.py"))
    names = [path.relative_to(root).as_posix() for path in files]
    return [name for name in names if not name.startswith((suite.OWN, suite.RECORDINGS))]


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""
