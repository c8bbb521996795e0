"""The Typer application. To add a command, write a function in a module of this package and list it here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .._version import __version__
from .apply import apply
from .bare import demo, versions
from .errors import BAD_INPUT, guarded
from .evaluate import compare, evaluate, report
from .explain import explain
from .exporting import export
from .fitting import fit, trade_off
from .listing import metrics
from .printing import note
from .unlabelled import expect, shares
from .watch import watch

__all__ = ["app", "run"]

_ABOUT = """Decisions that maximise your metric.

From a table of out-of-fold probabilities to decisions:

  metricwise fit oof.csv --target grade --metric quadratic_kappa -o rule.json

  metricwise apply rule.json new.csv -o decisions.csv

Exit codes: 0 success; 1 a bug in metricwise; 2 a wrong command or bad input, or the command was stopped; 3 no rule
satisfies the constraints; 4 a promise that is watched is broken.
"""


class _Commands(TyperGroup):
    """The commands, with errors in a sentence each."""

    def main(self, *arguments: Any, standalone_mode: bool = True, **options: Any) -> Any:
        options["standalone_mode"] = False  # errors are ours to tell

        def call() -> Any:
            try:
                return super(_Commands, self).main(*arguments, **options)
            except typer.TyperException as error:
                return _usage(error)

        code = guarded(call)
        if standalone_mode:
            sys.exit(code)
        return code


def _usage(error: typer.TyperException) -> int:
    """Say what is wrong with what was typed."""
    said = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    where = "metricwise" if context is None else context.command_path
    if said:  # else the help was printed
        end = " See" if said.endswith("?") else "; see"
        note(f"{said[0].lower()}{said[1:].rstrip('.')}{end} {where} --help.")
    return BAD_INPUT


app = typer.Typer(
    name="metricwise",
    cls=_Commands,
    help=_ABOUT,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"metricwise {__version__}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    if context.invoked_subcommand is None:
        sys.stdout.write(f"{context.get_help()}\n")


_COMMANDS: tuple[Callable[..., None], ...] = (
    fit, apply, evaluate, compare, shares, expect, watch, trade_off, explain, export, report, metrics, demo, versions,
)  # fmt: skip
for _command in _COMMANDS:
    app.command(_command.__name__.replace("_", "-"))(_command)


def run(arguments: Sequence[str]) -> int:
    """Run a command, and return the exit code."""
    return int(typer.main.get_command(app).main(list(arguments), "metricwise", standalone_mode=False))
