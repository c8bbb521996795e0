"""The command without Typer: what needs no extra, and how to get the rest."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .._version import __version__
from .errors import BAD_INPUT
from .plain import demo, versions

__all__ = ["run"]

_COMMANDS = {"demo": demo, "versions": versions}


def run(words: Sequence[str]) -> int:
    """Run `words`, and return the exit code."""
    if list(words) == ["--version"]:
        sys.stdout.write(f"metricwise {__version__}\n")
        return 0
    if len(words) == 1 and words[0] in _COMMANDS:
        _COMMANDS[words[0]]()
        return 0
    sys.stderr.write(
        "metricwise: this command needs Typer, Rich and pyarrow: pip install 'metricwise[cli]'. (Without "
        "them, only metricwise demo, versions and --version are available.)\n"
    )
    return BAD_INPUT
