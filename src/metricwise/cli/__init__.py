"""The ``metricwise`` command.

A command reads tables and rules, calls one function of the library, and prints the result. Most commands need the
extra `cli`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the ``metricwise`` command; see the page "Command line" of the documentation.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command-line arguments after ``metricwise``; None uses those of the process.

    Raises
    ------
    SystemExit
        With the exit code, if it is not 0.

    Examples
    --------
    >>> from metricwise.cli import main
    >>> main(["versions"])
    System:
                  python: 3...
    """
    options = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has ended, such as head; Python would flush once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except KeyboardInterrupt:  # before the command has begun, or after its end
        sys.stderr.write("metricwise: interrupted.\n")
        code = 2
    if code:
        sys.exit(code)


def _run(options: Sequence[str]) -> int:
    """Run a command, and return the exit code; without Typer, one of those that need nothing else."""
    try:
        from .app import run
    except ImportError as error:
        if error.name != "typer":
            raise
        from .bare import run
    return run(options)
