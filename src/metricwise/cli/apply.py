"""The command that applies a rule to a table: apply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ..core.errors import InvalidParameter
from .options import ColumnOptions, Json, ListOptions, Output, OutputOptions, Rule, Table, saved, takes
from .printing import note, print_json

__all__ = ["apply"]


@dataclass(frozen=True)
class DecisionOptions:
    """Which columns are written."""

    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", "-k", metavar="COLUMN", help="A further column to write. May be repeated."),
    ] = None
    keep_all: Annotated[bool, typer.Option("--keep-all", help="Also write all columns of the table.")] = False
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="NAME",
            help="Name of the column of decisions, by default that of the target; once for each output.",
        ),
    ] = None


@takes(ColumnOptions, ListOptions, OutputOptions, DecisionOptions)
def apply(
    columns: ColumnOptions,
    lists: ListOptions,
    written: OutputOptions,
    decisions: DecisionOptions,
    rule: Rule,
    table: Table,
    output: Output = "-",
    json: Json = False,
) -> None:
    """Apply a rule to every row of a table.

    Decisions are written to the standard output as CSV, or to a file in the format of its extension; --keep adds
    columns of the table. Decisions about lists of labels are lists, which need a .parquet or .feather file.
    """
    from ..data.tables.reading import open_file
    from ..data.tables.writing import check_target, write_table
    from .lists import table_for_rule
    from .rows import check_input, in_batches, part_columns, read_parts_for_rule, read_proba_for_rule, read_rule

    with saved(output, written.force, json, "apply", 3) as progress:
        progress.stage(f"reading {table}")
        loaded = read_rule(rule)
        check_input(loaded, columns)
        of_lists = table_for_rule(table, loaded, lists, columns)
        if of_lists is not None:
            _apply_to_lists(loaded, of_lists, output, written.force, decisions, json)
            return
        if in_batches(table, output) and not loaded.is_partitioned:
            _apply_in_batches(loaded, table, output, columns, written.force, decisions, json)
            return
        opened = open_file(table, columns.separator, progress.tick)
        kept = _kept(opened, decisions.keep or [], decisions.keep_all)
        if columns.sensitive_features and "sensitive_features" not in loaded.needs:
            raise InvalidParameter(
                "sensitive_features",
                problem="--sensitive-features is only for rules by group, and this rule is not one",
                remedy="leave it out",
            )
        groups = read_parts_for_rule(loaded, opened, columns)
        proba = read_proba_for_rule(loaded, opened, columns, part_columns(columns))
        progress.stage("deciding")
        decided = loaded.predict(proba, **groups)
        named = _named(loaded, decided, decisions.column, list(kept))
        progress.stage("writing")
        check_target(output, force=written.force)
        write_table(
            output, {**kept, **named}, n_decided=len(named), separator=columns.separator or ",", tick=progress.tick
        )
    if json:
        counts = {name: _counts(values) for name, values in named.items()}
        print_json({"output": output, "rows": len(decided), "decisions": counts})
    else:
        note(f"{len(decided):,} rows decided" + (f"; decisions written to {output}." if output != "-" else "."))


def _apply_to_lists(rule: Any, table: Any, output: str, force: bool, decisions: DecisionOptions, json: bool) -> None:
    """Decide about rows that hold lists of labels; the decisions are lists."""
    from ..api.table_prediction import predict_table
    from ..data.tables.formats import Csv, file_format
    from ..data.tables.reading import open_table

    kind = file_format(output, written=True)
    if kind is None or isinstance(kind, Csv):
        raise InvalidParameter(
            "output",
            problem="decisions about lists of labels are lists, which need a .parquet, .feather or .arrow file",
            remedy="name one with --output",
            owner="standard output" if output == "-" else output,
        )
    targets = list(rule.metadata.targets or ())
    names = decisions.column or [targets[0] if len(targets) == 1 else "decision"]
    kept = list(dict.fromkeys([*(open_table(table).names if decisions.keep_all else ()), *(decisions.keep or [])]))
    _check_names(names, 1, kept, "once, for the column of lists")
    n_rows = predict_table(rule, table, output, keep=kept, column=names, force=force)
    if json:
        print_json({"output": output, "rows": n_rows, "decisions": _written_counts(output, names, None)})
    else:
        note(f"{n_rows:,} rows decided; decisions written to {output}.")


def _apply_in_batches(
    rule: Any,
    table: str,
    output: str,
    columns: ColumnOptions,
    force: bool,
    decisions: DecisionOptions,
    json: bool,
) -> None:
    """Decide about a table that does not fit in memory."""
    from ..api.table_prediction import predict_table
    from ..data.tables.reading import open_table
    from .rows import table_of_rule, target_names

    opened, names = table_of_rule(table, rule, columns), decisions.column or target_names(rule)
    kept = list(dict.fromkeys([*(open_table(opened).names if decisions.keep_all else ()), *(decisions.keep or [])]))
    n_rows = predict_table(rule, opened, output, keep=kept, column=names, force=force)
    if json:
        print_json({"output": output, "rows": n_rows, "decisions": _written_counts(output, names, columns.separator)})
    else:
        note(f"{n_rows:,} rows decided in batches; decisions written to {output}.")


def _written_counts(path: str, names: list[str], separator: str | None) -> dict[str, dict[str, int]]:
    """Return the number of rows of each decision in a file that was written; of lists, of each label."""
    from collections import Counter

    from ..data.tables.formats import Csv, file_format
    from ..data.tables.reading import MEMORY_LIMIT, Table, batch_rows, open_table

    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    reader = open_table(Table(path, separator=separator if isinstance(file_format(path), Csv) else None))
    for batch in reader.batches(dict.fromkeys(names, False), batch_rows(8 * len(names), MEMORY_LIMIT)):
        for name in names:
            column = batch.column(name)
            labels = column.combine_chunks().flatten() if str(column.type).startswith("list") else column
            for entry in labels.value_counts().to_pylist():
                counts[name][str(entry["values"])] += entry["counts"]
    return {name: dict(sorted(counter.items())) for name, counter in counts.items()}


def _kept(table: Any, names: list[str], keep_all: bool) -> dict[str, Any]:
    """Return the columns that are to be written besides decisions."""
    from ..data.tables.reading import Arrays

    kept = list(dict.fromkeys([*(table.names if keep_all else ()), *names]))
    if not kept:
        return {}
    if isinstance(table, Arrays):
        return {name: table.get(name) for name in kept if name != "proba" or name in names}
    values = table.read(kept)
    return {name: values.column(name) for name in kept}


def _named(rule: Any, decided: Any, column: list[str] | None, kept: list[str]) -> dict[str, Any]:
    """Return the decisions about each output by the name of their column."""
    from .rows import target_names

    names = column or target_names(rule)
    n_outputs = rule.schema.n_outputs
    _check_names(names, n_outputs, kept, f"once for each of the {n_outputs} outputs")
    if not rule.multioutput:
        return {names[0]: decided}
    return {name: decided[:, m] for m, name in enumerate(names)}


def _check_names(names: list[str], n_columns: int, kept: list[str], often: str) -> None:
    """Refuse names of columns of decisions that are too few or too many, or those of other columns."""
    from ..core.errors import shown

    if len(names) != n_columns or len(set(names)) < len(names):
        raise InvalidParameter("column", problem=f"--column must be given {often}, got {len(names)}")
    taken = [name for name in names if name in kept]
    if taken:
        raise InvalidParameter(
            "column",
            problem=f"the decisions would be in the column {shown(taken[0])}, which is also copied from the table",
            remedy="give them another name with --column",
        )


def _counts(decided: Any) -> dict[str, int]:
    import numpy as np

    labels, counts = np.unique(decided.astype(str) if decided.dtype.kind == "O" else decided, return_counts=True)
    return dict(zip(map(str, labels.tolist()), counts.tolist(), strict=True))
