"""``python -m tests.fuzz``: try inputs of all kinds, each with a verdict: right, refused in a sentence, or a fault.

python -m tests.fuzz                              an hour; tries faults again, and goes on where this seed stopped
python -m tests.fuzz --seconds 60 --seed 7        for less, and other inputs
python -m tests.fuzz --kind tables --kind texts   some kinds alone
python -m tests.fuzz --kind arrays --case 12345   one input again, with its traceback
python -m tests.fuzz --fresh                      forget what was tried

Results are written to tests/fuzz/results, or to the folder of --output. Exit code 1: a fault.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
DEFAULT_SECONDS = 3600.0
if str(TESTS) not in sys.path:  # as pytest has it, for what tests share
    sys.path.insert(0, str(TESTS))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(words: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code."""
    from fuzz import results as records
    from fuzz import running
    from fuzz.kinds import KINDS

    options = _read(words, list(KINDS))
    kinds = {name: KINDS[name] for name in options.kind or KINDS}
    if options.case is not None:
        return _replay(next(iter(kinds.values())), options.seed, options.case)
    results = records.read(options.output, options.seed, KINDS)
    if options.fresh:
        results = records.Results(options.seed, {name: records.Count(name, options.seed) for name in KINDS})
    before, n_faults = results.inputs, len(results.faults)
    _say(f"Seed {options.seed}, {options.seconds:g} seconds, from input {before:,} on: {', '.join(kinds)}")
    chosen = records.Results(options.seed, {name: results.counts[name] for name in kinds}, results.faults)
    try:
        running.run(kinds, chosen, options.seconds, options.output, _say)
    except KeyboardInterrupt:
        _say("interrupted; the next run goes on from here")
    results.faults = chosen.faults
    records.write(results, options.output, KINDS)
    _say(records.summary(results, KINDS))
    found = len(results.faults) - n_faults
    _say(f"{results.inputs - before:,} inputs in this run, {found} faults; {options.output}")
    return int(found > 0)


def _read(words: Sequence[str] | None, kinds: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seconds", type=float, default=DEFAULT_SECONDS, help="for all kinds together; 3600 by default"
    )
    parser.add_argument("--seed", type=int, default=0, help="0 by default")
    parser.add_argument("--kind", action="append", choices=kinds, help="kinds of inputs; all by default")
    parser.add_argument("--case", type=int, help="the number of one input of a kind, to try again")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the results, which a run continues")
    parser.add_argument("--fresh", action="store_true", help="start anew")
    options = parser.parse_args(words)
    if options.case is not None and len(options.kind or ()) != 1:
        parser.error("--case needs one --kind")
    return options


def _replay(kind, seed: int, number: int) -> int:
    """Try one input again: print it, its verdict, and the traceback of a fault."""
    from fuzz.verdicts import Verdict, examine, generator

    outcome = examine(kind, seed, number)
    _say(f"{kind.name} {number}: {outcome.verdict} in {outcome.seconds:.2f} s")
    if outcome.verdict != Verdict.FAULT:
        return 0
    _say(f"{outcome.problem}\n{outcome.case}")
    case = kind.draw(generator(seed, kind.name, number))
    case.judge()
    return 1


if __name__ == "__main__":
    sys.exit(main())
