"""The command line application: one command per file."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the ``metricwise`` command."""
    try:
        import rich  # noqa: F401  # only to know that it is there
        import typer
    except ImportError:
        sys.exit("metricwise: the command needs typer and rich: pip install 'metricwise[cli]'")
    from .reproduce import reproduce

    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.command()(reproduce)
    app.callback()(_describe)
    app()


def _describe() -> None:
    """Decisions that maximise the metric you are judged by."""
