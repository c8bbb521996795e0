"""The command that writes rules for other systems: export."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ..core.errors import InvalidParameter
from .options import Output, OutputOptions, Rule, saved, takes
from .printing import note

__all__ = ["export"]

_FORMATS = {".onnx": "onnx", ".sql": "sql", ".py": "python"}


@dataclass(frozen=True)
class SqlOptions:
    """What an SQL expression is made of."""

    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="NAME",
            help="SQL: a column of probabilities; repeat for all, in the order of outputs and classes. By default, "
            "the columns that the rule was fitted to.",
        ),
    ] = None
    dialect: Annotated[
        str | None,
        typer.Option("--dialect", metavar="NAME", help="SQL: duckdb, postgres, sqlite, bigquery, snowflake or spark."),
    ] = None
    draw: Annotated[
        list[str] | None,
        typer.Option(
            "--draw", metavar="NAME", help="SQL: the column of random numbers in [0, 1) by which a mixture is drawn."
        ),
    ] = None


@takes(OutputOptions, SqlOptions)
def export(
    written: OutputOptions,
    sql: SqlOptions,
    rule: Rule,
    output: Output,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help="onnx, sql or python; by default, by the extension of FILE."),
    ] = None,
    append_to: Annotated[
        str | None,
        typer.Option("--append-to", metavar="MODEL", help="ONNX: the classifier to which the rule is appended."),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype", metavar="TYPE", help="ONNX: type of the input probabilities, float64 by default, or float32."
        ),
    ] = None,
) -> None:
    """Write a rule for other systems.

    As an ONNX model, an SQL expression, or Python source without dependencies: .onnx, .sql or .py.
    """
    from .. import export as exports
    from .rows import read_rule

    kind = _format(output, to)
    of_sql = {"--column": sql.column, "--dialect": sql.dialect, "--draw": sql.draw}
    for needed, options in (("sql", of_sql), ("onnx", {"--append-to": append_to, "--dtype": dtype})):
        odd = [option for option, value in options.items() if value and kind != needed]
        if odd:
            raise InvalidParameter("", problem=f"{odd[0]} is only for {needed}, not for {kind}", remedy="leave it out")
    if dtype and append_to:
        raise InvalidParameter(
            "dtype", problem="--dtype must be left out with --append-to, because the classifier determines the type"
        )
    with saved(output, written.force, False, "export", 1) as progress:
        progress.stage("writing")
        loaded = read_rule(rule)
        path = None if output == "-" else output
        if kind == "onnx":
            content = exports.to_onnx(loaded, path, append_to, dtype=dtype or "float64").SerializeToString()
        elif kind == "sql":
            names = _grouped(loaded, sql.column) if sql.column else loaded.metadata.columns
            drawn = sql.draw[0] if sql.draw and len(sql.draw) == 1 else sql.draw
            text = exports.to_sql(loaded, _flat(loaded, names), sql.dialect or "duckdb", path, draw=drawn)
            content = f"{text}\n".encode()
        else:
            content = exports.to_python(loaded, path).encode()
    if output == "-":
        sys.stdout.buffer.write(content)
    else:
        note(f"rule written to {output}.")


def _format(output: str, to: str | None) -> str:
    ending = next((kind for end, kind in _FORMATS.items() if output.lower().endswith(end)), None)
    kind = to or ending
    if kind not in _FORMATS.values():
        must = f"be onnx, sql or python, got {to!r}" if to else "give the format"
        raise InvalidParameter(
            "output", problem=f"the name must end in .onnx, .sql or .py, or --to must {must}", owner=output
        )
    return str(kind)


def _grouped(rule: Any, names: Sequence[str]) -> list[list[str]]:
    """Return names for each output: one of each class, or one of each output."""
    sizes = rule.schema.n_classes.tolist()
    if len(names) == len(sizes) and set(sizes) == {2}:
        return [[name] for name in names]
    if len(names) != sum(sizes):
        raise InvalidParameter(
            "column", problem=f"--column must be given for each class, {sum(sizes)} times, got {len(names)}"
        )
    rest = list(names)
    return [[rest.pop(0) for _ in range(size)] for size in sizes]


def _flat(rule: Any, columns: Any) -> Any:
    """Return columns as `to_sql` takes them: one list for one output, the name for a single column."""
    if not isinstance(columns, list) or len(columns) != rule.schema.n_outputs:
        return None
    if not rule.multioutput:
        return columns[0]
    return [output_columns[0] if len(output_columns) == 1 else output_columns for output_columns in columns]
