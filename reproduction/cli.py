"""The command line: ``python -m reproduction uci --quick``.

Parses the command line. Must not know what an experiment does.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .catalogue import EXPERIMENTS, reproduce
from .datasets import DataError

__all__ = ["main"]

_ALL = "all"
_INTERRUPTED = 130  # what a shell says of a programme that Ctrl-C has ended


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the paper's experiments and compare their results with the paper's.

    Parameters
    ----------
    arguments : sequence of str, optional
        What was typed behind ``python -m reproduction``; None takes it from the process.

    Raises
    ------
    SystemExit
        With 1 and one sentence if data or settings are wrong, with 130 after Ctrl-C.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(typed)
    try:
        reproduce(
            list(EXPERIMENTS) if options.experiment == _ALL else [options.experiment],
            options.output,
            seed=options.seed,
            quick=options.quick,
            repetitions=options.repetitions,
            jobs=options.jobs,
            say=lambda line: print(line, file=sys.stderr),
            command=shlex.join(["python", "-m", "reproduction", *typed]),
        )
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except (DataError, ValueError, ImportError) as error:
        sys.exit(f"reproduction: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Run the paper's experiments and put their results next to the paper's.",
        epilog="Results are appended as they come: stop with Ctrl-C whenever you like, the same command continues, and "
        "what is finished is not run again. Data come from the folder that METRICWISE_DATA names, from the cache, or "
        "from their owners.",
    )
    parser.add_argument("experiment", choices=[*EXPERIMENTS, _ALL], help="which experiment")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("reproduction/results"), help="folder of the results (%(default)s)"
    )
    parser.add_argument("--seed", type=_at_least(0), default=0, help="seed of all random numbers (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="a small version, in about two minutes")
    parser.add_argument("--repetitions", type=_at_least(1), help="repetitions; the paper's number if not given")
    parser.add_argument(
        "-j", "--jobs", type=_at_least(1), default=1, help="processes; numbers do not depend on it (%(default)s)"
    )
    return parser


def _at_least(least: int) -> Callable[[str], int]:
    """Return a parser of integers with a lower limit."""

    def read(text: str) -> int:
        number = int(text) if text.removeprefix("-").isdecimal() else None
        if number is None or number < least:
            raise argparse.ArgumentTypeError(f"must be an integer of at least {least}, got {text!r}")
        return number

    return read
