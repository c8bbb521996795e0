"""The commands that need no extra, and the ``metricwise`` command where Typer is not installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .._version import __version__

__all__ = ["demo", "run", "versions"]

BAD_INPUT = 2


def demo() -> None:
    """Compare argmax with the optimal rule on scikit-learn's example data.

    Three problems; takes about ten seconds.
    """
    from .demo import main

    main()


def versions() -> None:
    """Print the versions that a bug report should include.

    System, packages, and the kernels in use.
    """
    from ..api.versions import show_versions

    show_versions()


def run(arguments: Sequence[str]) -> int:
    """Run a command, and return the exit code."""
    commands = {"demo": demo, "versions": versions}
    if list(arguments) == ["--version"]:
        sys.stdout.write(f"metricwise {__version__}\n")
        return 0
    if len(arguments) == 1 and arguments[0] in commands:
        commands[arguments[0]]()
        return 0
    sys.stderr.write(
        "metricwise: this command needs Typer, Rich and pyarrow: pip install 'metricwise[cli]'. (Without "
        "them, only metricwise demo, versions and --version are available.)\n"
    )
    return BAD_INPUT
