"""Options that commands share: each is declared once, with its help.

A record of options is a dataclass whose fields are options; a command takes records (:func:`takes`), and Typer sees
their fields.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, get_type_hints

import typer

__all__ = ["Against", "ColumnOptions", "Json", "LabelOptions", "OutputOptions", "Rule", "Table", "takes"]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs instead of words.")]
Rule = Annotated[str, typer.Argument(metavar="RULE", help="A rule: a JSON file that fit or Python has written.")]
Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A table: .csv, .tsv, .parquet, .feather, .arrow, .npy, .npz, or - for CSV from the standard input.",
    ),
]
Against = Annotated[str | None, typer.Option("--against", metavar="RULE", help="The other rule.")]


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns are probabilities."""

    proba: Annotated[
        list[str] | None,
        typer.Option(
            "--proba",
            metavar="COLUMN",
            help="The column with the probability of the positive class of a binary target; one for each of several.",
        ),
    ] = None
    proba_prefix: Annotated[
        str | None,
        typer.Option(
            "--proba-prefix",
            metavar="TEXT",
            help="What the names of the columns of probabilities begin with; the class follows.",
        ),
    ] = None
    separator: Annotated[
        str | None, typer.Option("--separator", metavar="CHARACTER", help="Of CSV, if it is not a comma.")
    ] = None


@dataclass(frozen=True)
class LabelOptions:
    """Which columns are labels, and what else is known of rows."""

    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="The column of the labels, or an .npy file of them. Several times for several outputs.",
        ),
    ] = None
    pos_label: Annotated[
        list[str] | None,
        typer.Option(
            "--pos-label",
            metavar="CLASS",
            help="The positive class of metrics of one class. Several times: one for each target, in their order.",
        ),
    ] = None
    missing: Annotated[
        str | None,
        typer.Option("--missing", metavar="TEXT", help="What stands for a missing label besides an empty cell."),
    ] = None
    weight: Annotated[
        str | None, typer.Option("--weight", metavar="COLUMN", help="The column of the weights of rows.")
    ] = None
    weight_kind: Annotated[
        str,
        typer.Option("--weight-kind", metavar="KIND", help="What weights mean: importance, or frequency of the row."),
    ] = "importance"
    groups: Annotated[
        str | None,
        typer.Option("--groups", metavar="COLUMN", help="The column that says which rows belong together."),
    ] = None
    time: Annotated[
        str | None,
        typer.Option(
            "--time", metavar="COLUMN", help="The column that says when rows were observed: numbers or dates."
        ),
    ] = None

    @property
    def known(self) -> list[str]:
        """Columns that are no probabilities."""
        return [name for name in (*(self.target or ()), self.weight, self.groups, self.time) if name is not None]


@dataclass(frozen=True)
class OutputOptions:
    """What becomes of the result."""

    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file if it is there.")] = False


def takes(*records: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take records of options: its first parameters are the records, the others are its own.

    Parameters
    ----------
    *records : dataclasses
        Whose fields are options of Typer's.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        own = list(inspect.signature(command).parameters.values())[len(records) :]
        parameters = [one.replace(annotation=hints[one.name], kind=one.KEYWORD_ONLY) for one in own]
        for record in records:
            types = get_type_hints(record, include_extras=True)
            for field in fields(record):
                default = inspect.Parameter.empty if field.default is MISSING else field.default
                parameters.append(
                    inspect.Parameter(
                        field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[field.name]
                    )
                )

        def call(**given: Any) -> None:
            made = [record(**{field.name: given.pop(field.name) for field in fields(record)}) for record in records]
            command(*made, **given)

        vars(call)["__signature__"] = inspect.Signature(parameters)
        call.__name__, call.__doc__ = command.__name__, command.__doc__
        call.__annotations__ = {one.name: one.annotation for one in parameters}
        return call

    return decorate
