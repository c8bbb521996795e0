"""Rows that a rule decides about, or is judged on: which columns are what, by what the rule knows.

Owns the reading of rule files and the way from columns to what a rule takes. Must not know metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, refused_by
from ..data import (
    NoColumnsError,
    ProbabilityColumns,
    few,
    match_label,
    positive_labels,
    probability_columns,
    python_labels,
)
from ..data.tables import Arrays, Columns, open_table
from ..rules.reading import says_single
from .errors import note
from .options import ColumnOptions, LabelOptions
from .rows import (
    Labelled,
    Target,
    is_csv,
    labels_of,
    order_option,
    positive_of,
    proba_array,
    proba_columns,
    read_targets,
    refuse_columns,
    row_options,
    say_columns,
    sensitive_of,
    single_columns,
)

__all__ = [
    "read_for_rule",
    "read_labels_for_rule",
    "read_own_columns",
    "read_rule",
    "sensitive_for_rule",
    "target_names",
]


def read_rule(path: str, *, any_kind: bool = False) -> Any:
    """Read a rule from a file; one that takes more than probabilities, such as costs of rows, only if `any_kind`."""
    from .. import load_rule

    if not Path(path).is_file():
        raise InvalidParameter("", problem="there is no such file", remedy="pass the JSON file of a rule", owner=path)
    try:
        rule = load_rule(Path(path))
    except InvalidParameter as error:
        raise error.within("this is not a metricwise rule: ", owner=path) from None
    if not any_kind and "cost" in rule.needs:
        raise InvalidParameter(
            "",
            problem=f"a {type(rule).__name__} needs more than probabilities",
            remedy="apply it in Python",
            owner=path,
        )
    return rule


def sensitive_for_rule(rule: Any, table: Columns | Arrays, columns: ColumnOptions) -> dict[str, Any]:
    """Return the sensitive groups of rows that a rule decides by: of the columns given, or of those that it knows."""
    names = columns.sensitive_features
    if "sensitive_features" not in rule.needs:
        return sensitive_of(table, names)
    if not names and not (rule.features and all(name in table.names for name in rule.features)):
        raise InvalidParameter(
            "",
            problem="the rule decides by the group of a row",
            remedy="name its column: --sensitive-features",
            owner=table.path,
        )
    read = _groups_for_rule(rule, table, names or rule.features)
    if rule.features and names:
        if len(names) != len(rule.features):
            raise InvalidParameter(
                "sensitive_features",
                problem=f"--sensitive-features must be given {len(rule.features)} times, got {len(names)}",
            )
        read["sensitive_features"] = read["sensitive_features"].rename_columns(list(rule.features))
    return read


def _groups_for_rule(rule: Any, table: Columns | Arrays, names: Sequence[str]) -> dict[str, Any]:
    """Return the groups of rows, those of text by what the rule knows: others, which may stand beside, are missing."""
    if rule.other is None or isinstance(table, Arrays) or not is_csv(table):
        return sensitive_of(table, names)
    import pyarrow as pa

    columns = {}
    for at, name in enumerate(names):
        labels = list(dict.fromkeys(own[at] if isinstance(own, tuple) else own for own in rule.groups))
        texts = table.values([name]).column(0).to_pylist()
        found = {text: match_label(text, labels) for text in set(texts) if text is not None}
        columns[name] = pa.array([found[text] if text in found and found[text] in labels else None for text in texts])
    return {"sensitive_features": pa.table(columns)}


def target_names(rule: Any) -> list[str]:
    """Return what the outputs of a rule are called: by the rule, by the columns it was fitted to, or not at all."""
    names = rule.schema.output_names
    if names is not None:
        return list(names)
    targets = rule.metadata.targets
    if targets is not None and len(targets) == rule.schema.n_outputs:
        return list(targets)
    n_outputs = rule.schema.n_outputs
    return ["decision"] if n_outputs == 1 else [f"decision_{m}" for m in range(n_outputs)]


def read_for_rule(
    rule: Any, table: Columns | Arrays, columns: ColumnOptions, known: Sequence[str] = (), pos_label: Any = None
) -> Any:
    """Return the probabilities that a rule decides on.

    Parameters
    ----------
    rule : WeightedRule or MixtureRule
    table : Columns or Arrays
    columns : ColumnOptions
    known : sequence of str
        Columns that are no probabilities.
    pos_label : object, or list, optional
        The class that a single column is of, for a rule that was fitted to two.

    Returns
    -------
    array-like
    """
    if isinstance(table, Arrays):
        refuse_columns(columns, table.path)
        return proba_array(table)
    said = says_single(rule.metadata, rule.classes)
    with refused_by(table.path):
        positive = positive_labels(None if said else pos_label, len(rule.classes))
    found, names = _columns_of_rule(rule, table, columns, known, positive), target_names(rule)
    proba, _ = proba_columns(table, found, names, [None] * len(found))
    if found[0].single and not said:
        both = [_both_columns(column, one) for column, one in zip(proba.columns, found, strict=True)]
        return both if rule.multioutput else both[0]
    return proba if not (rule.multioutput and len(found) == 1 and not found[0].single) else [proba]


def _both_columns(column: Any, found: ProbabilityColumns) -> Any:
    """Return the probability of the second of two classes as a table of both."""
    import pyarrow as pa
    from pyarrow import compute

    return pa.table({str(found.classes[0]): compute.subtract(1.0, column), str(found.classes[1]): column})


def _columns_of_rule(
    rule: Any, table: Columns, columns: ColumnOptions, known: Sequence[str], positive: Sequence[Any]
) -> list[ProbabilityColumns]:
    """Return the columns that the rule was fitted to, if they are there; else those that names show."""
    classes = [python_labels(labels) for labels in rule.classes]
    recorded = _recorded(rule, classes)
    asked = columns.proba is not None or columns.proba_prefix is not None
    if recorded and not asked and all(name in table.names for one in recorded for name in one.columns):
        return recorded
    meant = [labels[1] if own is None else own for labels, own in zip(classes, positive, strict=True)]
    try:
        found = _named_columns(rule, classes, table, columns, known, meant)
    except NoColumnsError:
        if not recorded or asked:
            raise
        raise _without_columns(recorded, table) from None
    for one, target in zip(found, target_names(rule), strict=True):
        say_columns(one, target if len(found) > 1 else None)
    return found


def read_own_columns(path: str, rule: Any, first: Any, columns: ColumnOptions) -> Any:
    """Return the probabilities that a rule was fitted to, where they are others than those of the first rule.

    None where they are the same, where the rule does not say, or where options name the columns for both.
    """
    table = open_table(path, separator=columns.separator)
    if isinstance(table, Arrays) or columns.proba is not None or columns.proba_prefix is not None:
        return None
    own, other = (_recorded(one, [python_labels(labels) for labels in one.classes]) for one in (rule, first))
    names = [name for one in own for name in one.columns]
    if not own or own == other or not all(name in table.names for name in names):
        return None
    note(f"the other rule decides by the columns {few(names)}, which it was fitted to.")
    return read_for_rule(rule, table, columns)


def _without_columns(recorded: Sequence[ProbabilityColumns], table: Columns) -> ValueError:
    """Return the error where a table has not the columns that a rule was fitted to, nor others that may be them."""
    lacking = [name for one in recorded for name in one.columns if name not in table.names]
    option = "--proba" if all(one.single for one in recorded) else "--proba-prefix"
    return InvalidParameter(
        "",
        problem=f"there is no column {few(lacking)}, which the rule was fitted to",
        remedy=f"the columns are {few(table.names)}. If the probabilities have other names here, set {option}",
        owner=table.path,
    )


def _named_columns(
    rule: Any,
    classes: Sequence[list[Any]],
    table: Columns,
    columns: ColumnOptions,
    known: Sequence[str],
    meant: Sequence[Any],
) -> list[ProbabilityColumns]:
    """Return the columns that are named like the classes of a rule, or that options name."""
    targets = target_names(rule)
    single, free = single_columns(columns.proba, len(classes)), [n for n in table.names if n not in known]
    with refused_by(table.path):
        return [
            probability_columns(
                free,
                labels,
                output=targets[at],
                several=len(classes) > 1,
                prefix=columns.proba_prefix,
                classes=labels,
                column=single[at],
                pos_label=meant[at],
                of_rule=True,
            )
            for at, labels in enumerate(classes)
        ]


def _recorded(rule: Any, classes: Sequence[list[Any]]) -> list[ProbabilityColumns]:
    """Return the columns that the rule remembers, if it does."""
    columns = rule.metadata.columns
    if columns is None or len(columns) != len(classes):
        return []
    found = []
    for names, labels in zip(columns, classes, strict=True):
        if len(names) not in (1, len(labels)):
            return []
        found.append(ProbabilityColumns(tuple(names), tuple(labels)))
    return found


def read_labels_for_rule(
    path: str, rule: Any, columns: ColumnOptions, labels: LabelOptions, order: Sequence[str] | None, tick: Any
) -> Labelled:
    """Read rows that a rule is to be judged on.

    Parameters
    ----------
    path : str
    rule : WeightedRule or MixtureRule
    columns : ColumnOptions
    labels : LabelOptions
    order : sequence of str or None
        As --order has it; the rule may know it besides.
    tick : callable

    Returns
    -------
    Labelled
    """
    table = open_table(path, separator=columns.separator, tick=tick)
    names = labels.target or [name for name in target_names(rule) if name in table.names]
    if not labels.target and names:
        note(f"labels: column{'s' if len(names) > 1 else ''} {few(names)}, named like the rule's outputs.")
    if labels.target and len(names) != rule.schema.n_outputs and not isinstance(table, Arrays):
        raise InvalidParameter(
            "target",
            problem=(
                f"--target must be given for each of the {rule.schema.n_outputs} outputs of the rule, got {len(names)}"
            ),
        )
    targets = read_targets(table, names)
    options = row_options(table, labels)
    classes = [python_labels(own) for own in rule.classes]
    options["pos_label"] = positive_of(labels.pos_label, classes)
    known = [Target(one.name, None, own, 0) for one, own in zip(targets, classes, strict=False)]
    options |= order_option(order, known)
    options |= sensitive_for_rule(rule, table, columns)
    others = [*names, *labels.known, *(columns.sensitive_features or ())]
    proba = read_for_rule(rule, table, columns, others, options["pos_label"])
    several = rule.multioutput and (len(targets) > 1 or np.ndim(targets[0].column) == 1)
    return Labelled(proba, labels_of(targets, several), options)
