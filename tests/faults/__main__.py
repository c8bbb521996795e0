"""``python -m tests.faults``: seed faults into copies of the tree, and see which tests notice.

python -m tests.faults check                 do all faults apply? at once; also a test of the suite
python -m tests.faults map                   run the suite under coverage once: which tests execute which lines
python -m tests.faults run                   every fault: first the tests that execute it, then the whole suite
python -m tests.faults run --only ID ...     some of them; the others keep their rows in results.csv
python -m tests.faults run --no-whole-suite  the tests that execute a fault, and those that start processes

It needs ``coverage`` and ``pytest-cov``: ``pip install --group faults``. Make the map anew when modules or tests have
moved. Exit code 1: a fault does not apply, or survives.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.faults import catalogue, killing, mapping
from tests.faults.catalogue import ROOT


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(words: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code."""
    options = _read(words)
    faults = catalogue.read()
    said = catalogue.misaimed(faults)
    for text in said:
        _say(text)
    if said:
        return 1
    if options.command == "check":
        _say(f"All {len(faults)} faults apply.")
        return 0
    begin = time.monotonic()
    if options.command == "map":
        mapping.make(ROOT, faults, options.jobs, _say)
        _say(f"Map made in {(time.monotonic() - begin) / 60:.1f} minutes.")
        return 0
    unknown = sorted(set(options.only or ()) - {fault.id for fault in faults})
    if unknown:
        _say(f"There are no faults called {', '.join(unknown)}.")
        return 1
    chosen = [fault for fault in faults if not options.only or fault.id in options.only]
    rows = _run(chosen, options)
    _say(killing.table(rows, faults))
    _say(f"{len(rows)} faults in {(time.monotonic() - begin) / 60:.1f} minutes.")
    return int(any(row.killed == "no" for row in rows))


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("check", "map", "run"))
    parser.add_argument("--only", nargs="+", metavar="ID", help="faults to seed; all by default")
    parser.add_argument("--jobs", type=int, default=2, help="processes; 2 by default")
    parser.add_argument("--output", type=Path, default=killing.RESULTS, help="where rows are written")
    parser.add_argument(
        "--whole-suite",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether faults that survive the tests that execute them face all others",
    )
    return parser.parse_args(words)


def _run(faults: Sequence[catalogue.Fault], options: argparse.Namespace) -> list[killing.Row]:
    """Judge faults, some at a time, and write the rows as they come."""
    known, begin = mapping.read(ROOT), time.monotonic()
    rows = killing.read_results(options.output)

    def judged(fault: catalogue.Fault) -> killing.Row:
        row = killing.judge(fault, known, whole_suite=options.whole_suite)
        after = f"{time.monotonic() - begin:6.0f} s"
        _say(f"{after}  {row.id}: {row.by if row.killed == 'yes' else 'SURVIVES ' + row.stage}")
        rows[row.id] = row
        killing.write_results([rows[one.id] for one in catalogue.read() if one.id in rows], options.output)
        return row

    with ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(judged, faults))


if __name__ == "__main__":
    sys.exit(main())
