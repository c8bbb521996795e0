"""What people type: the ``metricwise`` command.

Owns the words of the command line. Must not know metrics, rules or solvers: a command calls one function of the
library, and loads it only when it is asked for.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ._version import __version__

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the ``metricwise`` command.

    Parameters
    ----------
    arguments : sequence of str, optional
        What was typed behind ``metricwise``; None takes it from the process.

    Examples
    --------
    >>> from metricwise.cli import main
    >>> main(["versions"])
    System:
                  python: 3...
    """
    parser = _parser()
    command = parser.parse_args(arguments).command
    if command is None:
        parser.print_help()
    else:
        _COMMANDS[command][0]()


def _demo() -> None:
    from .demo import main as compare

    compare()


def _versions() -> None:
    from .versions import show_versions

    show_versions()


_COMMANDS = {
    "demo": (_demo, "argmax against the optimal rule, on data that come with scikit-learn; some ten seconds"),
    "versions": (_versions, "what a bug report should say: system, packages, and which kernels serve"),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="metricwise",
        description="Decisions that maximise the metric you are judged by. The library is for Python: "
        "`import metricwise`. From the command line there is this:",
    )
    parser.add_argument("--version", action="version", version=f"metricwise {__version__}")
    commands = parser.add_subparsers(dest="command", title="commands", metavar="command")
    for name, (_, about) in _COMMANDS.items():
        commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
    return parser
