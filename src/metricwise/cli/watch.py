"""The command that watches a rule in use: watch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import InvalidParameter, shown
from .errors import BROKEN
from .options import ColumnOptions, Json, Rule, takes
from .printing import note, print_json, say

if TYPE_CHECKING:
    from ..monitoring.watching import Watch

__all__ = ["watch"]


@dataclass(frozen=True)
class WatchOptions:
    """What is watched, and how; kept in the state."""

    subject_to: Annotated[
        list[str] | None,
        typer.Option(
            "--subject-to",
            metavar="BOUND",
            help="A promise, such as 'precision >= 0.9'. May be repeated; by default, the constraints of the rule.",
        ),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            metavar="NUMBER",
            help="Probability of calling a promise broken although all are kept: 0.05 by default.",
        ),
    ] = None
    labelled: Annotated[
        str | None,
        typer.Option(
            "--labelled",
            metavar="HOW",
            help="Which rows get labels: random (the default), by_decision if that depends on the decision, or "
            "by_class if it depends on the true class.",
        ),
    ] = None
    pos_label: Annotated[
        list[str] | None,
        typer.Option(
            "--pos-label",
            metavar="CLASS",
            help="The positive class of promises that name none; by default, that of the rule.",
        ),
    ] = None
    forget_after: Annotated[
        int | None,
        typer.Option(
            "--forget-after",
            metavar="BATCHES",
            min=1,
            help="Number of batches after which a row no longer waits for its label; by default, it waits for ever.",
        ),
    ] = None


@dataclass(frozen=True)
class BatchOptions:
    """Rows, labels and files of a batch."""

    state: Annotated[
        str, typer.Option("--state", metavar="FILE", help="The state of the watch, which is begun if there is none.")
    ]
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="The column of labels, some of which may be missing. Repeat for several outputs; by default, the "
            "columns that the rule was fitted to.",
        ),
    ] = None
    id: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="COLUMN", help="The column with the id of each row, by which labels may come later."
        ),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="TABLE",
            help="A table of labels of rows decided before, with the columns of --id and --target.",
        ),
    ] = None
    report: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="Also write an HTML page about the watch.")
    ] = None


Batch = Annotated[
    str | None,
    typer.Argument(metavar="TABLE", help="A table of new rows, as for apply; may be left out if --labels is given."),
]


@takes(ColumnOptions, WatchOptions, BatchOptions)
def watch(
    columns: ColumnOptions,
    watched: WatchOptions,
    batch: BatchOptions,
    rule: Rule,
    table: Batch = None,
    json: Json = False,
) -> None:
    """Watch whether a rule in use keeps its promises.

    Adds a batch of rows, with labels if there are any, or labels that came late, to the state of the watch, and says
    which promises are broken. The exit code is 4 if one is. If anything is wrong, the state stays as it was.
    """
    from .rows import read_rule

    _check(batch, table)
    loaded = read_rule(rule)
    watching = _open(loaded, watched, batch)
    added = []
    if table is not None:
        added.append(_add_rows(watching, table, columns, watched, batch))
    if batch.labels is not None:
        added.append(_add_labels(watching, batch.labels, columns, batch))
    if batch.report is not None:
        watching.report(batch.report)
    watching.to_json(batch.state)
    for text in added:  # what is not written was not added
        note(text)
    if json:
        print_json({"state": batch.state, **_without_history(watching.summary())})
    else:
        say(repr(watching))
    if watching.broken:
        raise typer.Exit(BROKEN)


def _check(batch: BatchOptions, table: str | None) -> None:
    """Refuse options that contradict one another."""
    if table is None and batch.labels is None:
        raise InvalidParameter("", problem="there is nothing to add", remedy="pass a table of rows, or --labels TABLE")
    if batch.labels is not None and batch.id is None:
        raise InvalidParameter("id", problem="--labels needs --id, the column by which rows are found")


def _open(rule: Any, watched: WatchOptions, batch: BatchOptions) -> Watch:
    """Return the watch of a state, which must be of this rule and these options, or a new one."""
    from ..monitoring.watching import load_watch
    from ..monitoring.watching import watch as begin_watch

    settings = {name: getattr(watched, name) for name in ("alpha", "labelled", "forget_after")}
    chosen = {name: value for name, value in settings.items() if value is not None}
    positive = _positive(rule, watched)
    if not Path(batch.state).is_file():
        return begin_watch(rule, watched.subject_to, pos_label=positive, **chosen)
    try:
        loaded = load_watch(Path(batch.state))
    except InvalidParameter as error:
        raise error.within("this is not the state of a watch: ", owner=batch.state) from None
    if loaded.rule.to_dict() != rule.to_dict():
        raise _differs(batch.state, "another rule")
    for name, value in chosen.items():
        if getattr(loaded, name) != value:
            raise _differs(batch.state, f"--{name.replace('_', '-')} {getattr(loaded, name)}")
    if watched.subject_to is not None:
        new = begin_watch(rule, watched.subject_to, pos_label=positive, labelled=loaded.labelled)
        if _bounds(new) != _bounds(loaded):
            raise _differs(batch.state, f"the promises {shown([status.name for status in loaded.promises])}")
    return loaded


def _positive(rule: Any, watched: WatchOptions) -> Any:
    """Return the positive class that --pos-label names, or a list of them."""
    from ..core.labels import python_labels
    from ..data.columns import match_label

    if not watched.pos_label:
        return None
    positive = [match_label(text, python_labels(rule.classes[0])) for text in watched.pos_label]
    return positive[0] if len(positive) == 1 else positive


def _bounds(watching: Watch) -> list[tuple[str, float, float]]:
    return [(status.name, status.low, status.high) for status in watching.promises]


def _differs(state: str, begun: str) -> InvalidParameter:
    return InvalidParameter(
        "",
        problem=f"this watch was begun with {begun}",
        remedy="begin another one, with another file in --state",
        owner=state,
    )


def _add_rows(watching: Watch, path: str, columns: ColumnOptions, watched: WatchOptions, batch: BatchOptions) -> str:
    from ..data.tables.reading import open_file
    from .rows import part_columns, read_ids, read_label_columns, read_parts_for_rule, read_proba_for_rule

    table = open_file(path, columns.separator)
    targets, y = read_label_columns(table, watching.rule, batch.target)
    groups = read_parts_for_rule(watching.rule, table, columns) if watching.rule.needs else {}
    others = [*targets, *([] if batch.id is None else [batch.id]), *part_columns(columns)]
    positive = _positive(watching.rule, watched)
    proba = read_proba_for_rule(watching.rule, table, columns, others, positive)
    ids = None if batch.id is None else read_ids(table, batch.id)
    before = watching.n_rows
    watching.update(proba, y, ids, **groups)
    return f"{watching.n_rows - before:,} rows added from {path}."


def _add_labels(watching: Watch, path: str, columns: ColumnOptions, batch: BatchOptions) -> str:
    from ..data.tables.reading import open_file
    from .rows import read_ids, read_label_columns

    table = open_file(path, columns.separator)
    _, y = read_label_columns(table, watching.rule, batch.target)
    if y is None:
        raise InvalidParameter("target", problem="name the column of labels: --target COLUMN", owner=path)
    assert batch.id is not None
    before = watching.n_labelled
    watching.update_labels(read_ids(table, batch.id), y)
    return f"{watching.n_labelled - before:,} labels added from {path}."


def _without_history(summary: dict[str, Any]) -> dict[str, Any]:
    """Return a summary without what was known after each batch."""
    over_time = ("values", "running", "running_low", "running_high", "log_evidence")
    promises = [
        {name: value for name, value in promise.items() if name not in over_time} for promise in summary["promises"]
    ]
    return {name: value for name, value in summary.items() if name != "history"} | {"promises": promises}
