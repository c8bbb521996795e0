"""What the options say of a table, as the library takes it: probabilities, labels, weights.

Owns the way from columns to arguments, and says aloud which columns were taken for what. Must not know metrics.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, refused_by
from ..data import InTime, ProbabilityColumns, few, match_label, probability_columns, python_labels, shown
from ..data.columns import all_classes, check_singles, tables_of_columns
from ..data.tables import Arrays, Columns, open_table
from .errors import note
from .options import ColumnOptions, LabelOptions

__all__ = [
    "Labelled",
    "check_two_classes",
    "find_columns",
    "given_classes",
    "Target",
    "is_csv",
    "labels_of",
    "order_option",
    "positive_of",
    "proba_array",
    "proba_columns",
    "read_labelled",
    "read_targets",
    "refuse_columns",
    "row_options",
    "say_columns",
    "sensitive_of",
    "single_columns",
]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with labels, as the library takes them.

    Parameters
    ----------
    proba, y : array-like
    options : dict
        Further arguments of `optimize`, `evaluate` and `trade_off`, as far as they are about rows.
    targets : tuple of str
        Names of the outputs.
    columns : tuple of ProbabilityColumns
        Of each output; none of arrays.
    known : tuple
        Labels of the first output.
    """

    proba: Any
    y: Any
    options: dict[str, Any] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    columns: tuple[ProbabilityColumns, ...] = ()
    known: tuple[Any, ...] = ()

    def label(self, text: str | None) -> Any:
        """Return the label that a text means beside those of the first target."""
        return None if text is None else match_label(text, self.known)

    def metadata(self, rule: Any) -> dict[str, Any]:
        """Return what a rule should remember of these rows: which columns were what, in the order of its classes."""
        entries: dict[str, Any] = {"targets": list(self.targets)}
        if not self.columns:
            return entries
        each = []
        for found, labels in zip(self.columns, rule.classes, strict=True):
            place = dict(zip(found.classes, found.columns, strict=False))
            each.append(list(found.columns) if found.single else [place[label] for label in python_labels(labels)])
        return {**entries, "columns": each}


# ------------------------------------------------------------------------------------------------------------ labels


@dataclass(frozen=True, eq=False)
class Target:
    """A column of labels, the distinct ones of which are known."""

    name: str
    column: Any
    labels: list[Any]
    n_missing: int

    @classmethod
    def read(cls, table: Columns | Arrays, name: str) -> Target:
        column = _column(table, name, lambda columns: columns.labels(name))
        if isinstance(column, np.ndarray):
            values = np.unique(column[~_is_nan(column)])
            labels, gone = python_labels(values), int(_is_nan(column).sum())
        else:
            labels, gone = _distinct(column)
        return cls(name if name in table.names else Path(name).stem, column, labels, gone)


def _distinct(column: Any) -> tuple[list[Any], int]:
    """Return the distinct labels of an Arrow column, those that it declares included, and how many are missing."""
    from pyarrow import compute, types

    if types.is_dictionary(column.type):
        whole = column.combine_chunks()
        chunk = whole.chunk(0) if hasattr(whole, "chunk") else whole
        return chunk.dictionary.to_pylist(), int(column.null_count)
    found = [label for label in column.unique().to_pylist() if label is not None and label == label]
    nan = compute.sum(compute.is_nan(column)).as_py() if types.is_floating(column.type) else 0
    return _sorted(found), int(column.null_count) + int(nan or 0)


def _is_nan(column: Any) -> Any:
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(column.shape, dtype=bool)


def is_csv(table: Columns | Arrays) -> bool:
    """Whether missing labels have been told from others by their text already."""
    return isinstance(table, Columns) and table.has_texts


def _sorted(labels: list[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:
        return labels


def _column(table: Columns | Arrays, name: str, read: Any) -> Any:
    """Return a column by name, or what an .npy file of that name holds."""
    if name not in table.names and name.lower().endswith(".npy") and Path(name).exists():
        (array,) = open_table(name).arrays.values()  # type: ignore[union-attr]  # .npy is an array
        return array
    return table.get(name) if isinstance(table, Arrays) else read(table)


def read_targets(table: Columns | Arrays, given: Sequence[str]) -> list[Target]:
    """Read the columns of labels, and say which are missing."""
    if not given:
        raise InvalidParameter("target", problem="name the column of labels: --target COLUMN", owner=table.path)
    if len(set(given)) < len(given):
        raise InvalidParameter(
            "target", problem=f"every target must be given once, got {few(list(given))}", owner=table.path
        )
    targets = [Target.read(table, name) for name in given]
    for one in targets:
        if one.n_missing:
            note(f"{one.n_missing:,} of {len(one.column):,} labels of {shown(one.name)} are missing.")
    return targets


def labels_of(targets: Sequence[Target], several: bool) -> Any:
    """Return y: one column, or a table of several."""
    if not several:
        return targets[0].column
    import pyarrow as pa

    return pa.table({one.name: one.column for one in targets})


def row_options(table: Columns | Arrays, labels: LabelOptions) -> dict[str, Any]:
    """Return what is known of rows besides labels, by the names of the library."""
    options: dict[str, Any] = {}
    labels.check()
    if labels.weight is not None:
        name = labels.weight
        column = _column(table, name, lambda columns: columns.numbers([name]).column(0))
        options["sample_weight"] = labels.weights(np.asarray(column))
    if labels.groups is not None:
        group = labels.groups
        options["groups"] = _column(table, group, lambda columns: columns.values([group]).column(0))
    if labels.time is not None:
        time = labels.time
        moments = np.asarray(_column(table, time, lambda columns: columns.moments(time)))
        if labels.dependence is not None and labels.dependence > len(moments) // 2:
            raise InvalidParameter(
                "dependence",
                problem=(
                    f"--dependence must be at most half of the number of rows, {len(moments) // 2}, got "
                    f"{labels.dependence}"
                ),
            )
        options["groups"] = InTime(moments, labels.dependence)
    return options


def sensitive_of(table: Columns | Arrays, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the sensitive groups of rows, as the library takes them: by the names of their columns."""
    if not names:
        return {}
    import pyarrow as pa

    if isinstance(table, Arrays):
        raise InvalidParameter(
            "sensitive_features",
            problem="--sensitive-features needs a table whose columns have names",
            remedy="leave it out",
            owner=table.path,
        )
    return {"sensitive_features": pa.table({name: table.labels(name) for name in dict.fromkeys(names)})}


def positive_of(given: Sequence[str] | None, known: Sequence[list[Any]]) -> Any:
    """Return pos_label: one label, or one for each output."""
    if not given:
        return None
    if len(given) not in (1, len(known)):
        raise InvalidParameter(
            "pos_label",
            problem=f"--pos-label must be given once, or for each of the {len(known)} targets, got {len(given)}",
        )
    each = list(given) if len(given) == len(known) else list(given) * len(known)
    found = [match_label(text, labels) for text, labels in zip(each, known, strict=True)]
    return found if len(given) > 1 else found[0]


def _given_label(text: str, labels: list[Any]) -> Any:
    """Return the label that a text of a list means, with or without the blanks around it."""
    exact = match_label(text, labels)
    return exact if exact in labels else match_label(text.strip(), labels)


def given_classes(
    given: Sequence[str] | None, targets: Sequence[Target], option: str = "--classes"
) -> list[list[Any] | None]:
    """Return the classes that an option lists, in its order, for each target."""
    found: list[list[Any] | None] = [None] * len(targets)
    for text in given or ():
        at, listed = 0, text
        if len(targets) > 1:
            name, sign, listed = text.partition("=")
            if not sign or name not in [one.name for one in targets]:
                raise InvalidParameter(
                    "",
                    problem=(
                        f"{option} must name the target if there are several, as in {targets[0].name}=a,b,c, "
                        f"got {shown(text)}"
                    ),
                )
            at = [one.name for one in targets].index(name)
        found[at] = own = [
            _given_label(label, targets[at].labels) for label in next(csv.reader([listed], skipinitialspace=True))
        ]
        lacking = [label for label in targets[at].labels if label not in own]
        if lacking:
            raise InvalidParameter(
                "",
                problem=(
                    f"{option} must contain all labels of {shown(targets[at].name)}, but lacks {shown(lacking[0])}"
                ),
            )
    return found


def order_option(given: Sequence[str] | None, targets: Sequence[Target]) -> dict[str, Any]:
    """Return what --order says, as the library takes it."""
    if not given:
        return {}
    found = given_classes(given, targets, "--order")
    return {"order": found if len(targets) > 1 else found[0]}


# ----------------------------------------------------------------------------------------------------- with labels


def read_labelled(
    path: str,
    columns: ColumnOptions,
    labels: LabelOptions,
    classes: Sequence[str] | None,
    order: Sequence[str] | None,
    tick: Any,
    named: str | None = None,
) -> Labelled:
    """Read rows that a rule is to be fitted to.

    Parameters
    ----------
    path : str
    columns : ColumnOptions
    labels : LabelOptions
    classes, order : sequence of str or None
        As --classes and --order have them.
    tick : callable
        Called as reading goes on.
    named : str, optional
        The class that a single column of probabilities is of, if --pos-label is not given.

    Returns
    -------
    Labelled
    """
    table = open_table(path, separator=columns.separator, tick=tick)
    targets = read_targets(table, labels.target or [])
    declared = given_classes(classes, targets)
    positive = positive_of(labels.pos_label, [one.labels for one in targets])
    several = len(targets) > 1
    if isinstance(table, Arrays):
        refuse_columns(columns, table.path)
        found: list[ProbabilityColumns] = []
        proba, given = proba_array(table), declared if several else declared[0]
    else:
        check_two_classes(targets)
        known = [*labels.known, *(columns.sensitive_features or ())]
        of_class = named if positive is None else positive
        found = find_columns(table.path, table.names, targets, declared, of_class, columns, known)
        declared = [
            all_classes(own, columns_found, one.labels)
            for own, columns_found, one in zip(declared, found, targets, strict=True)
        ]
        proba, given = proba_columns(table, found, [one.name for one in targets], declared)
    options = {
        **row_options(table, labels),
        **sensitive_of(table, columns.sensitive_features),
        **order_option(order, targets),
        "pos_label": positive,
    }
    if given is not None and not (several and all(one is None for one in given)):
        options["classes"] = given
    return Labelled(
        proba,
        labels_of(targets, several),
        options,
        tuple(one.name for one in targets),
        tuple(found),
        tuple(targets[0].labels),
    )


def check_two_classes(targets: Sequence[Target]) -> None:
    """Refuse a single target of one class."""
    if len(targets) == 1 and len(targets[0].labels) < 2:
        seen = f"only one class, {shown(targets[0].labels[0])}" if targets[0].labels else "no label"
        raise InvalidParameter(
            "target",
            problem=f"the target {shown(targets[0].name)} has {seen}",
            remedy="a rule needs rows of at least two classes",
        )


def refuse_columns(columns: ColumnOptions, path: str) -> None:
    """Refuse options about names of columns, where columns have none."""
    for option, value in (("--proba", columns.proba), ("--proba-prefix", columns.proba_prefix)):
        if value is not None:
            raise InvalidParameter(
                "", problem=f"{option} needs a table whose columns have names", remedy="leave it out", owner=path
            )


def proba_array(table: Arrays) -> Any:
    """Return the array of probabilities: the one there is, or the one called proba."""
    if "" in table.arrays:
        return table.arrays[""]
    note(f"probabilities: the array 'proba' of {table.path}.")
    return table.get("proba")


def find_columns(
    path: str,
    names: Sequence[str],
    targets: Sequence[Target],
    declared: Sequence[list[Any] | None],
    positive: Any,
    columns: ColumnOptions,
    known: Sequence[str],
) -> list[ProbabilityColumns]:
    """Find the columns of probabilities of each target among names, and say which they are."""
    several, single = len(targets) > 1, single_columns(columns.proba, len(targets))
    free = [name for name in names if name not in known]
    found = []
    for at, one in enumerate(targets):
        with refused_by(path):
            found.append(
                probability_columns(
                    free,
                    one.labels,
                    output=one.name,
                    several=several,
                    prefix=columns.proba_prefix,
                    classes=declared[at],
                    column=single[at],
                    pos_label=positive[at] if isinstance(positive, list) else positive,
                )
            )
    for columns_found, one in zip(found, targets, strict=True):
        say_columns(columns_found, one.name)
    return found


def single_columns(given: Sequence[str] | None, n_outputs: int) -> list[str | None]:
    """Return the column that --proba names for each output."""
    if not given:
        return [None] * n_outputs
    if len(given) != n_outputs:
        raise InvalidParameter(
            "proba", problem=f"--proba must be given for each of the {n_outputs} targets, got {len(given)}"
        )
    return list(given)


def say_columns(found: ProbabilityColumns, output: str | None) -> None:
    """Say which columns were taken for probabilities."""
    title = "" if output is None else f" of {shown(output)}"
    guess = "" if found.guessed_prefix is None else f" (by the prefix {shown(found.guessed_prefix)}: a guess)"
    if found.single:
        note(f"probability of {shown(found.classes[1])}{title}: column {shown(found.columns[0])}{guess}.")
    else:
        note(f"probabilities{title}: columns {few(found.columns)}{guess}.")


def proba_columns(
    table: Columns, found: Sequence[ProbabilityColumns], outputs: Sequence[str], declared: Sequence[list[Any] | None]
) -> tuple[Any, Any]:
    """Return probabilities and the classes that must be said with them, of one output or several."""
    with refused_by(table.path):
        check_singles(found, outputs)
    numbers = table.numbers(list(dict.fromkeys(name for one in found for name in one.columns)))
    return tables_of_columns(numbers, found, outputs, declared)
