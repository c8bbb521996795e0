"""Tables whose rows hold lists of labels: which columns they are, and the arguments of the library for them.

Must not know metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import InvalidParameter, shown
from ..data.columns import few
from ..data.tables.formats import Csv, file_format
from ..data.tables.reading import Table, open_table
from ..rules.label_base import LabelRuleBase
from .options import ColumnOptions, LabelOptions, ListOptions
from .printing import note
from .rows import LabelledRows, check_input

__all__ = ["read_lists_for_rule", "read_lists_to_fit", "read_other_lists", "stored_lists", "table_for_rule"]


def stored_lists(rule: Any) -> tuple[str, str] | None:
    """Return the columns of labels and of their numbers that a rule was fitted to, if its file has them."""
    columns = rule.metadata.columns
    if not isinstance(rule, LabelRuleBase) or rule.n_labels == 1 or columns is None:
        return None
    return (columns[0][0], columns[0][1]) if len(columns) == 1 and len(columns[0]) == 2 else None


def _refuse_beside_lists(columns: ColumnOptions, others: dict[str, Any] | None = None) -> None:
    """Refuse options about columns of single labels; `others` are further options by their names."""
    names = ("proba", "proba_prefix", "sensitive_features", "segments", "separator")
    options = {f"--{name.replace('_', '-')}": getattr(columns, name) for name in names} | (others or {})
    odd = [option for option, value in options.items() if value]
    if odd:
        raise InvalidParameter("", problem=f"{odd[0]} must be left out with --indices, for lists of labels")


def _list_table(path: str, names: tuple[str, str], n_labels: int | None = None) -> Table:
    """Return the table that has these columns of lists."""
    kind = file_format(path)
    if kind is None or isinstance(kind, Csv):
        raise InvalidParameter(
            "indices",
            problem="lists of labels need a .parquet, .feather or .arrow file",
            owner="standard input" if path == "-" else path,
        )
    table = Table(path, indices=names[0], values=names[1], n_labels=n_labels)
    open_table(table).check(names)
    return table


def _report(names: tuple[str, str], kind: str) -> None:
    note(f"labels of rows: column {shown(names[0])}, their {kind}: column {shown(names[1])}.")


def _row_options(labels: LabelOptions) -> dict[str, Any]:
    """Return the names of the columns of weights and groups, by the names of the library's parameters."""
    labels.check()
    if labels.time is not None:
        raise InvalidParameter(
            "time",
            problem="--time is not for very many labels",
            remedy="name the period of each row with --groups",
        )
    if labels.pos_label:
        raise InvalidParameter("pos_label", problem="--pos-label must be left out with --indices, for lists of labels")
    options: dict[str, Any] = {"groups": labels.groups}
    if labels.weight is not None:
        options["sample_weight"] = labels.weights(labels.weight)
    return options


def _target(target: Sequence[str] | None, title: str) -> str:
    if not target:
        raise InvalidParameter(
            "target", problem="name the column of lists of true labels: --target COLUMN", owner=title
        )
    if len(target) > 1:
        raise InvalidParameter(
            "target",
            problem=f"--target must be given once, for the lists of true labels, got {few(list(target))}",
        )
    return target[0]


def read_lists_to_fit(
    path: str, lists: ListOptions, columns: ColumnOptions, labels: LabelOptions, others: dict[str, Any]
) -> LabelledRows:
    """Return rows that a rule is to be fitted to, which the library reads.

    Parameters
    ----------
    path : str
    lists : ListOptions
    columns : ColumnOptions
    labels : LabelOptions
    others : dict
        Further options by their names, which are refused if they are given.
    """
    names = lists.names()
    assert names is not None
    _refuse_beside_lists(columns, others)
    if lists.n_labels is None:
        raise InvalidParameter(
            "n_labels",
            problem="--n-labels, the number of labels, must be given with --indices, because labels that do not occur "
            "in these rows are labels too",
        )
    table = _list_table(path, names, lists.n_labels)
    kind = columns.input or "probabilities"
    options = {**_row_options(labels), "input": kind}
    target = _target(labels.target, path)
    _report(names, kind)
    return LabelledRows(table, target, options, (target,), lists=names)


def table_for_rule(path: str, rule: Any, lists: ListOptions, columns: ColumnOptions) -> Table | None:
    """Return the table of lists that a rule decides: by the columns named, or those that it was fitted to.

    None if the rule is for columns of single labels.
    """
    named, stored = lists.names(), stored_lists(rule)
    if named is None and (stored is None or columns.proba is not None or columns.proba_prefix is not None):
        return None
    if not isinstance(rule, LabelRuleBase):
        raise InvalidParameter(
            "indices", problem="--indices is only for rules for very many labels, and this rule is not one"
        )
    check_input(rule, columns)
    _refuse_beside_lists(columns)
    if lists.n_labels not in (None, rule.n_labels):
        raise InvalidParameter(
            "n_labels",
            problem=f"--n-labels must be {rule.n_labels}, which the rule has, got {lists.n_labels}",
            remedy="leave it out",
        )
    names = named or stored
    assert names is not None
    if named is None and file_format(path) is not None:
        lacking = [name for name in names if name not in open_table(Table(path)).names]
        if lacking:
            raise InvalidParameter(
                "",
                problem=f"there is no column {few(lacking)}, which the rule was fitted to",
                remedy="if the columns have other names here, set --indices and --values",
                owner=path,
            )
    table = _list_table(path, names)
    if named is not None:
        _report(names, rule.schema.input.plural)
    return table


def read_lists_for_rule(table: Table, rule: Any, labels: LabelOptions, order: Sequence[str] | None) -> LabelledRows:
    """Return rows that a rule is to be judged on, which the library reads."""
    title = str(table.data)
    if order:
        raise InvalidParameter("order", problem="--order must be left out with lists of labels")
    target = labels.target
    if not target:
        fitted = [name for name in rule.metadata.targets or () if name in open_table(table).names]
        target = fitted if len(fitted) == 1 else None
        if target:
            note(f"labels: column {shown(target[0])}, which the rule was fitted to.")
    return LabelledRows(table, _target(target, title), _row_options(labels))


def read_other_lists(table: Table, rule: Any, lists: ListOptions) -> Table | None:
    """Return the lists that another rule was fitted to, if they are others than those of the first rule.

    None if they are the same, if the rule does not say, or if options name the columns for both.
    """
    stored = stored_lists(rule) if isinstance(rule, LabelRuleBase) else None
    if stored is None or lists.names() is not None or stored == (table.indices, table.values):
        return None
    if not all(name in open_table(table).names for name in stored):
        return None
    note(f"the other rule uses the columns {few(stored)}, which it was fitted to.")
    return _list_table(str(table.data), stored)
