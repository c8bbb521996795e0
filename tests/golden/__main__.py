"""``python -m tests.golden``: make the stored calls, compare what comes of them with the recordings, or record it anew.

python -m tests.golden                          both kernels; exit code 1 if anything differs
python -m tests.golden --calls constrained/     calls whose names contain a text
python -m tests.golden record                   all columns, both kernels
python -m tests.golden record --column notes    a column, and what changed in it; may be repeated
python -m tests.golden freeze                   signatures, pickles and times, which have tests of their own
python -m tests.golden signatures               the public signatures alone
python -m tests.golden times                    benchmarks as committed beside the frozen times
python -m tests.golden compose                  write calls.jsonl anew after compose.py has changed
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.golden import compose, recording
from tests.golden.columns import NAMES
from tests.golden.comparison import Difference, differences, report, unsteady

ROOT = Path(__file__).parents[2]
N_SLOWEST = 3  # calls that are named with their times
COMMANDS = ("check", "record", "freeze", "signatures", "times", "compose")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(words: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code."""
    options = _read(words)
    if options.command == "compose":
        calls = compose.compose()
        compose.write(calls)
        _say(f"{len(calls)} calls, of which `make test` makes {sum('quick' in call for call in calls)}.")
        return 0
    if options.command in ("freeze", "signatures", "times"):
        from tests.golden import frozen

        if options.command == "signatures":
            return frozen.freeze_signatures(_say)
        return frozen.freeze(_say) if options.command == "freeze" else frozen.compare_times(_say)
    if options.kernel is None:
        return _in_processes(options, list(sys.argv[1:] if words is None else words))
    return _record(options) if options.command == "record" else _check(options)


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "command",
        nargs="?",
        default="check",
        choices=COMMANDS,
        help="see above",
    )
    parser.add_argument("--kernel", choices=recording.KERNELS, help="one kernel, in this process")
    parser.add_argument("--calls", default="", metavar="TEXT", help="calls whose names contain TEXT")
    parser.add_argument("--column", action="append", choices=NAMES, help="record: columns to record anew")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="make the calls in another order")
    parser.add_argument("--folder", type=Path, default=recording.FOLDER, help="where recordings are")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes at a time")
    return parser.parse_args(words)


def _in_processes(options: argparse.Namespace, words: list[str]) -> int:
    """Run the same for each kernel, which a process chooses once, when it loads them."""
    running: list[tuple[str, subprocess.Popen[str]]] = []
    worst = 0
    for kernel in recording.KERNELS:
        command = [sys.executable, "-m", "tests.golden", *words, "--kernel", kernel]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        running.append((kernel, process))
        if len(running) >= options.jobs:
            worst = max(worst, _finish(*running.pop(0)))
    return max([worst, *(_finish(*entry) for entry in running)])


def _finish(kernel: str, process: subprocess.Popen[str]) -> int:
    said, _ = process.communicate()
    _say(f"== {kernel} kernels\n{said.rstrip()}")
    return process.returncode


def _chosen(options: argparse.Namespace) -> list[dict[str, Any]]:
    calls = [call for call in compose.read() if options.calls in call["id"]]
    if not calls:
        raise SystemExit(f"golden: no call has {options.calls!r} in its name.")
    return calls


def _made(options: argparse.Namespace, calls: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What comes of calls now."""
    os.environ["METRICWISE_KERNELS"] = options.kernel
    from tests.golden import adapter

    if adapter.kernel_in_use() != options.kernel:
        raise SystemExit(f"golden: the {options.kernel} kernels are not available.")
    order = list(calls)
    if options.shuffle is not None:
        random.Random(options.shuffle).shuffle(order)
    made, spent, started = {}, {}, time.perf_counter()
    for call in order:
        before = time.process_time()
        made[call["id"]] = adapter.perform(call)
        spent[call["id"]] = time.process_time() - before
    wall, slowest = time.perf_counter() - started, sorted(spent, key=spent.__getitem__, reverse=True)[:N_SLOWEST]
    _say(f"{len(made)} calls in {wall:.0f} s, {sum(spent.values()):.0f} s of processor time; the slowest:")
    _say("".join(f"  {spent[name]:.1f} s {name}\n" for name in slowest).rstrip())
    return made


def _check(options: argparse.Namespace) -> int:
    if not recording.exists(options.kernel, options.folder):
        _say(f"There is no recording: {recording.path_of(options.kernel, options.folder)}.")
        return 1
    stored, calls = recording.read(options.kernel, options.folder), _chosen(options)
    made = _made(options, calls)
    skipped = left_out(stored, options.folder)
    found: list[Difference] = []
    for name, fresh in made.items():
        if name not in skipped:
            found += differences(name, stored.calls.get(name, {}), fresh, exact=stored.exact)
    strangers = [name for name in stored.calls if options.calls in name and name not in made]
    _say(report(found, len(made)))
    if not stored.exact:
        _say("Another processor or other versions than recorded: floats are compared to 1e-9, and calls that the last")
        _say(f"bits of sums decide are left out: {sorted(skipped) or 'none'}.")
    if strangers:
        _say(f"Recorded, and no longer called: {strangers}.")
    old = old_rules(stored, calls)
    _say(report(old, len(calls)).replace("as recorded", "decided as recorded by the rules that were recorded"))
    return int(bool(found or strangers or old))


def left_out(stored: recording.Recording, folder: Path = recording.FOLDER) -> set[str]:
    """Return calls that the last bits of sums decide, where these need not be those of the recording."""
    if stored.exact or not all(recording.exists(kernel, folder) for kernel in recording.KERNELS):
        return set()
    return unsteady(*(recording.read(kernel, folder).calls for kernel in recording.KERNELS))


def old_rules(stored: recording.Recording, calls: list[dict[str, Any]]) -> list[Difference]:
    """Return where a rule file of the recording decides new rows otherwise than it did."""
    from tests.golden import adapter

    found = []
    for call in calls:
        columns = stored.calls.get(call["id"], {})
        then = columns.get("decisions", {}).get("new")
        if call["do"] in ("optimize", "apply") and then is not None:
            now = adapter.decide_by_document(columns["rule"], call)
            found += differences(call["id"], {"stored rule": then}, {"stored rule": now}, exact=True)
    return found


def _record(options: argparse.Namespace) -> int:
    stored = (
        recording.read(options.kernel, options.folder) if recording.exists(options.kernel, options.folder) else None
    )
    calls = _chosen(options)
    made = _made(options, calls)
    names = [call["id"] for call in compose.read()]
    recorded = recording.renewed(stored, made, names, options.column)
    recording.write(recorded, options.kernel, options.folder)
    if stored is None:
        _say(f"Recorded {len(recorded.calls)} calls.")
        return 0
    known = {name: columns for name, columns in made.items() if name in stored.calls}
    found = [d for name, new in known.items() for d in differences(name, stored.calls[name], new, exact=True)]
    chosen = set(options.column or NAMES)
    _say(f"Recorded anew: {', '.join(options.column or ['all columns'])}; {len(made) - len(known)} calls are new.")
    _say(report([one for one in found if one.column in chosen], len(known)))
    left = {one.column: 0 for one in found if one.column not in chosen}
    for column in left:
        left[column] = len({one.call for one in found if one.column == column})
        _say(f"Left as it was, and differs: {column}, of {left[column]} calls.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
