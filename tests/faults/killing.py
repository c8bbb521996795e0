"""What kills a fault: tests that execute it, then those that start processes, then all, then the recordings.

Owns the order in which tests are tried and the row that is written for each fault.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from tests.faults import suite
from tests.faults.catalogue import ROOT, Fault, apply
from tests.faults.mapping import Map, Run

RESULTS = Path(__file__).with_name("results.csv")
EXECUTING, WHOLE, RECORDED = "executing tests", "whole suite", "recordings only"
_FIRST_SECONDS = 45.0  # of tests that are run before all others, for most faults die in them
_START, _PATIENCE = 180.0, 5.0  # the limit of a run: seconds to start with, and times what its tests took
_PROCESSES = ("subprocess", "sys.executable")  # in a file: its tests may start processes, which coverage does not see


@dataclass(frozen=True)
class Row:
    """What became of a fault.

    Parameters
    ----------
    id, area, where : str
        As in the catalogue.
    killed : str
        "yes", or "no"; a fault that recordings alone notice is killed by no test that knows what is right.
    by : str
        The first test that failed.
    stage : str
        "executing tests", "whole suite" or "recordings only".
    slow_only : str
        "yes" if what `make test` runs did not notice it, but another target did.
    """

    id: str
    area: str
    where: str
    killed: str
    by: str
    stage: str
    slow_only: str


def judge(fault: Fault, known: Map, *, whole_suite: bool, root: Path = ROOT) -> Row:
    """Seed a fault into a copy of the tree, and run tests until one fails."""
    with suite.copied(root) as copy:
        apply(fault, copy)
        if fault.compiled:
            suite.build_kernels(copy)
        for stage, target, by in _attempts(fault, known, copy, root, whole_suite):
            if by is not None:
                killed = "no" if stage == RECORDED else "yes"
                slow = "yes" if target != suite.TARGET else "no"
                return Row(fault.id, fault.area, fault.where, killed, by, stage, slow)
    return Row(fault.id, fault.area, fault.where, "no", "", "", "no")


def _attempts(
    fault: Fault, known: Map, copy: Path, root: Path, whole_suite: bool
) -> Iterator[tuple[str, str, str | None]]:
    """Yield stage, target and the test that failed, or None, of ever more tests."""
    recorded: list[tuple[Run, list[str]]] = []
    for run in _runs(fault, known):
        target = run.command.target
        tests = known.reaching(fault, root, run)
        recorded.append((run, [test for test in tests if test.startswith(suite.RECORDINGS)]))
        ours = _sorted(fault, run, [test for test in tests if not test.startswith(suite.RECORDINGS)])
        changed = [path for path in known.changed_tests(root) if _related(fault, path)]
        for batch in (changed, *_batches(run, ours), _in_processes(run, ours, root)):
            if batch:
                yield EXECUTING, target, _killer(copy, run, batch)
    for command in suite.commands(root, (suite.TARGET, *suite.SLOW_TARGETS)) if whole_suite else ():
        failing = {test for run in known.runs if run.command.name == command.name for test in run.failed}
        yield WHOLE, command.target, _killer_among_all(copy, root, command, failing)
    for run, tests in recorded:
        if tests:
            yield RECORDED, run.command.target, _killer(copy, run, tests)


def _runs(fault: Fault, known: Map) -> list[Run]:
    """Return the runs whose tests execute a fault; what is no kernel need not be tried with both of them."""
    if "kernels" in fault.module.split("."):
        return list(known.runs)
    return [run for run in known.runs if suite.KERNELS not in run.command.variables]


def _related(fault: Fault, path: str) -> bool:
    """Whether a file of tests, or of doctests, has the name of the faulty module."""
    last = fault.module.rpartition(".")[2].strip("_")
    stem = Path(path).stem.removeprefix("test_")
    return stem == last or last in stem.split("_") or stem in last.split("_") or last in Path(path).parts


def _sorted(fault: Fault, run: Run, tests: Iterable[str]) -> list[str]:
    """Return tests in the order in which they are run: those of the faulty module first, then the quick ones."""
    return sorted(tests, key=lambda test: (not _related(fault, test.partition("::")[0]), run.seconds[test]))


def _batches(run: Run, tests: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return some tests that are quick together, and the others."""
    total = 0.0
    for at, test in enumerate(tests):
        total += run.seconds[test]
        if total > _FIRST_SECONDS and at:
            return list(tests[:at]), list(tests[at:])
    return list(tests), []


def _in_processes(run: Run, tests: Sequence[str], root: Path) -> list[str]:
    """Return tests that may start processes and are not among others."""
    files = {test.partition("::")[0] for test in run.seconds}
    starting = {
        path
        for path in files
        if not path.startswith((suite.RECORDINGS, "src/")) and _mentions((root / path), _PROCESSES)
    }
    known = set(tests)
    return [test for test in run.seconds if test.partition("::")[0] in starting and test not in known | run.failed]


def _mentions(path: Path, words: Sequence[str]) -> bool:
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return any(word in text for word in words)


def _killer(copy: Path, run: Run, tests: Sequence[str]) -> str | None:
    """Return the first of some tests, or files of tests, that fails."""
    files = [test for test in tests if "::" not in test]
    if files:
        return _first(suite.run(copy, suite.Command("", tuple(files), run.command.variables), ["-x"], limit=600.0)[0])
    limit = _START + _PATIENCE * sum(run.seconds[test] for test in tests)
    return _first(suite.run(copy, run.command, ["-x"], tests=tests, limit=limit)[0])


def _killer_among_all(copy: Path, root: Path, command: suite.Command, failing: set[str]) -> str | None:
    """Return the first of all tests of a command that fails, unless it fails without a fault as well."""
    while True:
        arguments = ["-x", *(f"--deselect={test}" for test in sorted(failing))]
        by = _first(suite.run(copy, command, arguments)[0])
        if by is None or "::" not in by:
            return by
        with suite.copied(root) as pristine:
            if _first(suite.run(pristine, command, tests=[by])[0]) is None:
                return by
        failing = {*failing, by}


def _first(notes: Iterable[suite.Note]) -> str | None:
    return next((note.test for note in notes if note.failed), None)


# -------------------------------------------------------------------------------------------------------- the table


def read_results(path: Path = RESULTS) -> dict[str, Row]:
    """Return the rows that have been written, by the name of the fault."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["id"]: Row(**row) for row in csv.DictReader(file)}


def write_results(rows: Iterable[Row], path: Path = RESULTS) -> None:
    """Write the table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Row)])
        writer.writerows(astuple(row) for row in rows)


def table(rows: Sequence[Row], faults: Sequence[Fault]) -> str:
    """Return how many faults of each area are killed, and which are not."""
    wrong = {fault.id: fault.wrong for fault in faults}
    lines = [f"{'area':<16}{'killed':>8}{'of':>5}"]
    for area in dict.fromkeys(row.area for row in rows):
        own = [row for row in rows if row.area == area]
        lines.append(f"{area:<16}{sum(row.killed == 'yes' for row in own):>8}{len(own):>5}")
    lines.append(f"{'all':<16}{sum(row.killed == 'yes' for row in rows):>8}{len(rows):>5}")
    for row in rows:
        if row.killed == "no":
            lines.append(f"survives: {row.id} ({wrong.get(row.id, row.where)}){row.stage and ': ' + row.stage}")
        elif row.slow_only == "yes":
            lines.append(f"only a slow target kills {row.id}: {row.by}")
    return "\n".join(lines)
