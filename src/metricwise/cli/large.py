"""Tables that are larger than the memory limit: read in batches, unasked.

Owns when that is, and what options mean then. Must not know metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.errors import InvalidParameter
from ..data import InTime
from ..data.sources.tables import survey_labels
from ..data.tables import MEMORY_LIMIT, STANDARD_STREAM, Table, format_of, open_stream
from .errors import note
from .options import ColumnOptions, LabelOptions
from .rows import Labelled, Target, check_two_classes, find_columns, given_classes, order_option, positive_of

__all__ = ["count_labels", "is_large", "read_large", "table_for"]

_ROWS = 1 << 16
_IN_BATCHES = ("csv", "parquet", "feather")


def is_large(path: str, output: str | None = None) -> bool:
    """Whether a table is to be read in batches.

    Parameters
    ----------
    path : str
    output : str, optional
        Where a table goes that is made of it, which must be a file that can be written so.
    """
    for one in (path, output):
        if one is not None and (one == STANDARD_STREAM or format_of(one) not in _IN_BATCHES):
            return False
    return Path(path).is_file() and Path(path).stat().st_size > MEMORY_LIMIT


def table_for(path: str, columns: ColumnOptions, prefix: str | None = None) -> Table:
    """Return what options say of a table."""
    return Table(path, prefix if prefix is not None else columns.proba_prefix, columns.proba, columns.separator)


def read_large(
    path: str,
    columns: ColumnOptions,
    labels: LabelOptions,
    classes: Sequence[str] | None,
    order: Sequence[str] | None,
    named: str | None = None,
) -> Labelled:
    """Read the labels that occur, and leave the rows where they are; see :func:`metricwise.cli.rows.read_labelled`.

    Returns
    -------
    Labelled
        With names of columns in the place of what they hold.
    """
    note(f"{path} is larger than {MEMORY_LIMIT >> 20} MB and is read in batches.")
    labels.check()
    names = labels.target or []
    if not names:
        raise InvalidParameter("target", problem="name the column of labels: --target COLUMN", owner=path)
    stream = open_stream(table_for(path, columns))
    seen = survey_labels(stream, names)
    targets = [Target(name, None, own, 0) for name, own in zip(names, seen, strict=True)]
    check_two_classes(targets)
    declared = given_classes(classes, targets)
    positive = positive_of(labels.pos_label, [one.labels for one in targets])
    of_class = named if positive is None else positive
    found = find_columns(stream.title, stream.names, targets, declared, of_class, columns, labels.known)
    options: dict[str, Any] = {"groups": labels.groups, "pos_label": positive, **order_option(order, targets)}
    if labels.weight is not None:
        options["sample_weight"] = labels.weights(labels.weight)
    if labels.time is not None:
        options["groups"] = InTime(labels.time)
    if any(own is not None for own in declared):
        options["classes"] = declared if len(targets) > 1 else declared[0]
    return Labelled(
        table_for(path, columns, found[0].guessed_prefix),
        names if len(names) > 1 else names[0],
        options,
        tuple(names),
        tuple(found),
        tuple(targets[0].labels),
    )


def count_labels(path: str, names: Sequence[str], separator: str | None) -> dict[str, dict[str, int]]:
    """Return how often each label is in columns of a table."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    stream = open_stream(Table(path, separator=separator if format_of(path) == "csv" else None))
    for batch in stream.batches(dict.fromkeys(names, False), _ROWS):
        for name in names:
            for one in batch.column(name).value_counts().to_pylist():
                counts[name][str(one["values"])] += one["counts"]
    return {name: dict(sorted(found.items())) for name, found in counts.items()}
