"""``python -m tests.endurance``: kills, interrupts, full disks, lost clusters, forks, threads, memory, large arrays.

python -m tests.endurance                all of it, with full numbers; half an hour or so
python -m tests.endurance --only kills   a file of tests, test_kills.py; the other counts on the page stay

The counts go to results.csv and results.md beside this file, which the page "How it is tested" shows.
Exit code 1: a test has failed.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
TABLE = FOLDER / "results.csv"
COLUMNS = ("topic", "case", "count", "value")
Row = tuple[str, str, str, str]


def main(words: Sequence[str] | None = None) -> int:
    """Run tests, write their counts, and return the exit code."""
    files = {path.stem.removeprefix("test_"): path for path in sorted(FOLDER.glob("test_*.py"))}
    parser = argparse.ArgumentParser(prog="python -m tests.endurance")
    parser.add_argument("--only", choices=sorted(files), action="append", help="a file of tests; repeat for several")
    options = parser.parse_args(words)
    chosen = [str(files[name]) for name in options.only or files]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "counts.jsonl"
        log.touch()
        environment = {**os.environ, "METRICWISE_ENDURANCE": "full", "METRICWISE_ENDURANCE_LOG": str(log)}
        command = [sys.executable, "-m", "pytest", "-q", "-m", "endurance", "--durations=5", *chosen]
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        rows = read_log(log.read_text(encoding="utf-8"))
    before = read_table() if options.only else []
    write(merge(before, rows))
    return int(code != 0)


def read_log(text: str) -> list[Row]:
    """Return the counts that tests have recorded, a row for each."""
    entries = [json.loads(line) for line in text.splitlines()]
    return [
        (entry["topic"], entry["case"], name, f"{value:g}" if isinstance(value, float) else str(value))
        for entry in entries
        for name, value in entry["counts"].items()
    ]


def read_table() -> list[Row]:
    """Return the counts that were written before."""
    if not TABLE.exists():
        return []
    with TABLE.open(newline="", encoding="utf-8") as file:
        return [(row["topic"], row["case"], row["count"], row["value"]) for row in csv.DictReader(file)]


def merge(before: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """Return the counts of cases that were run, and those of others as they were, by topic."""
    new = {row[:2] for row in rows}
    return sorted([*(row for row in before if row[:2] not in new), *rows], key=lambda row: row[0])


def write(rows: Sequence[Row]) -> None:
    """Write the table of counts, and the part of the page that shows it."""
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    TABLE.with_suffix(".md").write_text(page(rows), encoding="utf-8")


def page(rows: Sequence[Row]) -> str:
    """Return a table in Markdown for each topic: a row for each case, a column for each count."""
    parts = []
    for topic in dict.fromkeys(row[0] for row in rows):
        cases: dict[str, dict[str, str]] = {}
        for _, case, name, value in (row for row in rows if row[0] == topic):
            cases.setdefault(case, {})[name] = value
        names = list(dict.fromkeys(name for counts in cases.values() for name in counts))
        head = f"| {topic} | {' | '.join(name.replace('_', ' ') for name in names)} |"
        lines = [f"| {case} | {' | '.join(counts.get(name, '') for name in names)} |" for case, counts in cases.items()]
        parts.append("\n".join([head, f"|---|{'--:|' * len(names)}", *lines]))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
