"""From the columns of a table to the arguments of the library: probabilities, labels, weights, groups.

A table is opened once per command; which columns were used is reported on standard error. Must not know metrics.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, refused_by, shown
from ..core.inputs import PROBABILITIES, Input
from ..core.labels import python_labels
from ..data.columns import (
    NoColumnsError,
    OutputLabels,
    ProbabilityColumns,
    all_classes,
    check_singles,
    few,
    match_label,
    probability_columns,
    tables_of_columns,
)
from ..data.single_column import positive_labels
from ..data.sources.tables import sorted_or_same, survey_labels
from ..data.tables.formats import STANDARD_STREAM, file_format
from ..data.tables.reading import MEMORY_LIMIT, Arrays, Table, TableReader, open_file, open_table
from ..rules.reading import says_single
from .options import ColumnOptions, LabelOptions
from .printing import note

__all__ = [
    "LabelledRows",
    "check_input",
    "in_batches",
    "read_ids",
    "read_labelled",
    "read_label_columns",
    "read_labels_for_rule",
    "read_other_columns",
    "read_proba_for_rule",
    "read_rule",
    "part_columns",
    "read_parts_for_rule",
    "table_of_options",
    "table_of_rule",
    "target_names",
]

OpenedTable = TableReader | Arrays
Classes = list[Any] | None


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows with labels, as the library takes them.

    Parameters
    ----------
    proba, y : array-like, or a Table and names of its columns
    options : dict
        Further arguments of `optimize`, `evaluate` and `trade_off` that are about rows.
    targets : tuple of str
        Names of the outputs.
    columns : tuple of ProbabilityColumns
        Of each output; empty for arrays.
    labels : tuple
        Labels of the first output.
    lists : tuple of str, optional
        The columns with the lists of labels and of their probabilities, of tables with very many labels.
    """

    proba: Any
    y: Any
    options: dict[str, Any] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    columns: tuple[ProbabilityColumns, ...] = ()
    labels: tuple[Any, ...] = ()
    lists: tuple[str, str] | None = None

    def label(self, text: str | None) -> Any:
        """Return the label that a text means beside those of the first target."""
        return None if text is None else match_label(text, self.labels)

    def metadata(self, rule: Any) -> dict[str, Any]:
        """Return the targets and columns that a rule stores, in the order of its classes."""
        entries: dict[str, Any] = {"targets": list(self.targets)}
        if self.lists is not None:
            return {**entries, "columns": [list(self.lists)]}
        if not self.columns:
            return entries
        names = []
        for output, labels in zip(self.columns, rule.classes, strict=True):
            place = dict(zip(output.classes, output.columns, strict=False))
            names.append(list(output.columns) if output.single else [place[label] for label in python_labels(labels)])
        return {**entries, "columns": names}


# ------------------------------------------------------------------------------------------------------ large tables


def in_batches(path: str, output: str | None = None) -> bool:
    """Whether a table is larger than the memory limit, and it and the table made of it can be streamed."""
    for name in (path, output):
        if name is not None and (name == STANDARD_STREAM or file_format(name) is None):
            return False
    return Path(path).is_file() and Path(path).stat().st_size > MEMORY_LIMIT


def table_of_options(path: str, columns: ColumnOptions, prefix: str | None = None) -> Table:
    """Return the table that is read in batches."""
    return Table(path, prefix if prefix is not None else columns.proba_prefix, columns.proba, columns.separator)


def table_of_rule(path: str, rule: Any, columns: ColumnOptions) -> Table:
    """Return the table that a rule decides in batches, by the single columns that it was fitted to if it was."""
    table, stored = table_of_options(path, columns), _stored_columns(rule)
    names = [output.columns[0] for output in stored if output.single]
    options = columns.proba is not None or columns.proba_prefix is not None
    if options or not stored or len(names) < len(stored) or not set(names) <= set(open_table(table).names):
        return table
    return replace(table, proba=names)


# ------------------------------------------------------------------------------------------------------------ labels


@dataclass(frozen=True, eq=False)
class _Target:
    """A column of labels, and the distinct labels in it; the column is None if it is read in batches."""

    name: str
    labels: list[Any]
    column: Any = None
    n_missing: int = 0

    @classmethod
    def read(cls, table: OpenedTable, name: str) -> _Target:
        column = _read_column(table, name, lambda reader: reader.labels(name))
        if isinstance(column, np.ndarray):
            missing = np.isnan(column) if column.dtype.kind == "f" else np.zeros(column.shape, dtype=bool)
            labels, n_missing = python_labels(np.unique(column[~missing])), int(missing.sum())
        else:
            labels, n_missing = _distinct(column)
        return cls(name if name in table.names else Path(name).stem, labels, column, n_missing)


def _distinct(column: Any) -> tuple[list[Any], int]:
    """Return the distinct labels of an Arrow column, declared ones included, and the number of missing ones."""
    from pyarrow import compute, types

    if types.is_dictionary(column.type):
        whole = column.combine_chunks()
        chunk = whole.chunk(0) if hasattr(whole, "chunk") else whole
        return chunk.dictionary.to_pylist(), int(column.null_count)
    labels = [label for label in column.unique().to_pylist() if label is not None and label == label]
    n_nan = compute.sum(compute.is_nan(column)).as_py() if types.is_floating(column.type) else 0
    return sorted_or_same(labels), int(column.null_count) + int(n_nan or 0)


def _read_column(table: OpenedTable, name: str, read: Callable[[TableReader], Any]) -> Any:
    """Return a column by the function that reads it, or the array of an .npy file of that name."""
    if name not in table.names and name.lower().endswith(".npy") and Path(name).exists():
        (array,) = open_file(name).arrays.values()  # type: ignore[union-attr]  # .npy is an array
        return array
    return table.get(name) if isinstance(table, Arrays) else read(table)


def _target_options(names: Sequence[str], title: str) -> Sequence[str]:
    if not names:
        raise InvalidParameter("target", problem="name the column of labels: --target COLUMN", owner=title)
    if len(set(names)) < len(names):
        raise InvalidParameter(
            "target", problem=f"every target must be given once, got {few(list(names))}", owner=title
        )
    return names


def _read_targets(table: OpenedTable, names: Sequence[str]) -> list[_Target]:
    """Read the columns of labels, and report missing ones."""
    targets = [_Target.read(table, name) for name in _target_options(names, table.title)]
    for target in targets:
        if target.n_missing:
            note(f"{target.n_missing:,} of {len(target.column):,} labels of {shown(target.name)} are missing.")
    return targets


def _joined_labels(targets: Sequence[_Target], several: bool) -> Any:
    """Return y: one column, or a table of several."""
    if not several:
        return targets[0].column
    import pyarrow as pa

    return pa.table({target.name: target.column for target in targets})


def _positive_labels(texts: Sequence[str] | None, labels: Sequence[list[Any]]) -> Any:
    """Return pos_label: one label, or one for each output."""
    if not texts:
        return None
    if len(texts) not in (1, len(labels)):
        raise InvalidParameter(
            "pos_label",
            problem=f"--pos-label must be given once, or for each of the {len(labels)} targets, got {len(texts)}",
        )
    of_outputs = list(texts) if len(texts) == len(labels) else list(texts) * len(labels)
    positive = [match_label(text, output_labels) for text, output_labels in zip(of_outputs, labels, strict=True)]
    return positive if len(texts) > 1 else positive[0]


def _listed_classes(
    texts: Sequence[str] | None, targets: Sequence[_Target], option: str = "--classes"
) -> list[Classes]:
    """Return the classes that an option lists, in its order, for each target."""
    classes: list[Classes] = [None] * len(targets)
    names = [target.name for target in targets]
    for text in texts or ():
        at, listed = 0, text
        if len(targets) > 1:
            name, sign, listed = text.partition("=")
            if not sign or name not in names:
                raise InvalidParameter(
                    "",
                    problem=(
                        f"{option} must name the target if there are several, as in {names[0]}=a,b,c, got {shown(text)}"
                    ),
                )
            at = names.index(name)
        labels = targets[at].labels
        classes[at] = listed_labels = [
            _listed_label(label, labels) for label in next(csv.reader([listed], skipinitialspace=True))
        ]
        lacking = [label for label in labels if label not in listed_labels]
        if lacking:
            raise InvalidParameter(
                "", problem=f"{option} must contain all labels of {shown(names[at])}, but lacks {shown(lacking[0])}"
            )
    return classes


def _listed_label(text: str, labels: list[Any]) -> Any:
    """Return the label that a text of a list means, with or without the blanks around it."""
    exact = match_label(text, labels)
    return exact if exact in labels else match_label(text.strip(), labels)


def _order_option(texts: Sequence[str] | None, targets: Sequence[_Target]) -> dict[str, Any]:
    if not texts:
        return {}
    orders = _listed_classes(texts, targets, "--order")
    return {"order": orders if len(targets) > 1 else orders[0]}


# ----------------------------------------------------------------------------------------------- other inputs of rows


def _row_options(table: OpenedTable, labels: LabelOptions) -> dict[str, Any]:
    """Return weights, groups and times, by the names of the library's parameters."""
    options: dict[str, Any] = {}
    labels.check()
    weight, groups, time = labels.weight, labels.groups, labels.time
    if weight is not None:
        weights = _read_column(table, weight, lambda reader: reader.numbers([weight]).column(0))
        options["sample_weight"] = labels.weights(np.asarray(weights))
    if groups is not None:
        options["groups"] = _read_column(table, groups, lambda reader: reader.read([groups]).column(0))
    if time is not None:
        moments = np.asarray(_read_column(table, time, lambda reader: reader.moments(time)))
        if labels.dependence is not None and labels.dependence > len(moments) // 2:
            raise InvalidParameter(
                "dependence",
                problem=(
                    f"--dependence must be at most half of the number of rows, {len(moments) // 2}, got "
                    f"{labels.dependence}"
                ),
            )
        options["groups"] = labels.in_time(moments)
    return options


def _batch_options(labels: LabelOptions) -> dict[str, Any]:
    """Return the same of a table that is read in batches: names of columns in the place of values."""
    options: dict[str, Any] = {"groups": labels.groups}
    if labels.weight is not None:
        options["sample_weight"] = labels.weights(labels.weight)
    if labels.time is not None:
        options["groups"] = labels.in_time(labels.time)
    return options


def _read_parts(table: OpenedTable, columns: ColumnOptions) -> dict[str, Any]:
    """Return the sensitive groups and the segments of rows, by the names of their columns."""
    return {
        **_read_columns_of(table, "sensitive_features", columns.sensitive_features),
        **_read_columns_of(table, "segments", columns.segments),
    }


def _read_columns_of(table: OpenedTable, parameter: str, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the columns of a parameter as a table; nothing if none are named."""
    if not names:
        return {}
    import pyarrow as pa

    if isinstance(table, Arrays):
        raise InvalidParameter(
            parameter,
            problem=f"{option_of(parameter)} needs a table whose columns have names",
            remedy="leave it out",
            owner=table.title,
        )
    return {parameter: pa.table({name: table.labels(name) for name in dict.fromkeys(names)})}


def option_of(parameter: str) -> str:
    """Return the option that names the columns of a parameter."""
    return "--" + parameter.replace("_", "-")


def part_columns(columns: ColumnOptions) -> list[str]:
    """Return the columns that hold sensitive groups or segments."""
    return [*(columns.sensitive_features or ()), *(columns.segments or ())]


# ------------------------------------------------------------------------------------------------------ probabilities


def _input_option(columns: ColumnOptions) -> Input:
    """Return what --input says the numbers are."""
    return PROBABILITIES if columns.input is None else Input.of(columns.input)


def check_input(rule: Any, columns: ColumnOptions) -> None:
    """Refuse an --input other than what a rule was fitted to."""
    if columns.input is not None and _input_option(columns).kind != rule.input:
        raise InvalidParameter(
            "input",
            problem=f"--input must be {rule.input}, which the rule was fitted to, got {columns.input}",
            remedy="leave it out",
        )


def _read_array(table: Arrays, columns: ColumnOptions, row_input: Input) -> Any:
    """Return the array of probabilities: the only one, or the one called proba."""
    for option, value in (("--proba", columns.proba), ("--proba-prefix", columns.proba_prefix)):
        if value is not None:
            raise InvalidParameter(
                "", problem=f"{option} needs a table whose columns have names", remedy="leave it out", owner=table.title
            )
    if "" in table.arrays:
        return table.arrays[""]
    note(f"{row_input.plural}: the array 'proba' of {table.title}.")
    return table.get("proba")


def _single_columns(names: Sequence[str] | None, n_outputs: int) -> list[str | None]:
    """Return the column that --proba names for each output."""
    if not names:
        return [None] * n_outputs
    if len(names) != n_outputs:
        raise InvalidParameter(
            "proba", problem=f"--proba must be given for each of the {n_outputs} targets, got {len(names)}"
        )
    return list(names)


def _find_columns(
    table: TableReader,
    outputs: Sequence[OutputLabels],
    columns: ColumnOptions,
    others: Sequence[str],
    *,
    of_rule: bool = False,
) -> list[ProbabilityColumns]:
    """Return the columns of probabilities of each output by their names, among those that are not `others`."""
    singles, candidates = _single_columns(columns.proba, len(outputs)), [n for n in table.names if n not in others]
    with refused_by(table.title):
        return probability_columns(candidates, outputs, prefix=columns.proba_prefix, singles=singles, of_rule=of_rule)


def _report_columns(columns: ProbabilityColumns, output: str | None, row_input: Input) -> None:
    title = "" if output is None else f" of {shown(output)}"
    guess = "" if columns.guessed_prefix is None else f" (by the prefix {shown(columns.guessed_prefix)}: a guess)"
    if columns.single and len(columns.classes) > 2:
        note(f"{row_input.noun}{title}: column {shown(columns.columns[0])}{guess}.")
    elif columns.single:
        note(f"{row_input.noun} of {shown(columns.classes[1])}{title}: column {shown(columns.columns[0])}{guess}.")
    else:
        note(f"{row_input.plural}{title}: columns {few(columns.columns)}{guess}.")


def _read_columns(
    table: TableReader, columns: Sequence[ProbabilityColumns], outputs: Sequence[str], classes: Sequence[Classes]
) -> tuple[Any, Any]:
    """Return probabilities, and the classes that must be said with them, of one output or several."""
    with refused_by(table.title):
        check_singles(columns, outputs)
    numbers = table.numbers(list(dict.fromkeys(name for output in columns for name in output.columns)))
    return tables_of_columns(numbers, columns, outputs, classes)


# ------------------------------------------------------------------------------------------------- rows to fit a rule


def read_labelled(
    path: str,
    columns: ColumnOptions,
    labels: LabelOptions,
    listed: Mapping[str, Sequence[str] | None],
    tick: Callable[[], None],
    class_named: str | None = None,
    *,
    batches: bool = False,
) -> LabelledRows:
    """Read rows that a rule is to be fitted to.

    Parameters
    ----------
    path : str
    columns : ColumnOptions
    labels : LabelOptions
    listed : dict
        The options --classes and --order, by their names.
    tick : callable
        Called as reading goes on.
    class_named : str, optional
        The class that a single column of probabilities is of, if --pos-label is not given.
    batches : bool, default=False
        Whether only the labels are read, and the rows stay where they are: proba is then a Table.
    """
    names: Sequence[str] = labels.target or []
    row_input = _input_option(columns)
    if batches:
        note(f"{path} is larger than {MEMORY_LIMIT >> 20} MB and is read in batches.")
        labels.check()
        table: OpenedTable = open_table(table_of_options(path, columns))
        assert isinstance(table, TableReader)
        names = _target_options(names, path)
        targets = [_Target(name, values) for name, values in zip(names, survey_labels(table, names), strict=True)]
    else:
        table = open_file(path, columns.separator, tick)
        targets = _read_targets(table, names)
    classes = _listed_classes(listed["classes"], targets)
    positive = _positive_labels(labels.pos_label, [target.labels for target in targets])
    outputs, several = [target.name for target in targets], len(targets) > 1
    found_columns: list[ProbabilityColumns] = []
    proba: Any
    if isinstance(table, Arrays):
        proba, classes_said = _read_array(table, columns, row_input), classes if several else classes[0]
    else:
        _check_two_classes(targets)
        single_class = class_named if positive is None else positive
        of_outputs = single_class if isinstance(single_class, list) else [single_class] * len(targets)
        others = [*labels.columns, *part_columns(columns)]
        labels_of_outputs = [
            OutputLabels(output, target.labels, output_classes, label, row_input.is_scores)
            for output, target, output_classes, label in zip(outputs, targets, classes, of_outputs, strict=True)
        ]
        found_columns = _find_columns(table, labels_of_outputs, columns, others)
        for output_columns, output in zip(found_columns, outputs, strict=True):
            _report_columns(output_columns, output, row_input)
        if batches:
            proba = table_of_options(path, columns, found_columns[0].guessed_prefix)
            classes_said = classes if several else classes[0]
        else:
            classes = list(map(all_classes, classes, found_columns, [target.labels for target in targets]))
            proba, classes_said = _read_columns(table, found_columns, outputs, classes)
    options = {
        **(_batch_options(labels) if batches else _row_options(table, labels)),
        **_read_parts(table, columns),
        **_order_option(listed["order"], targets),
        "pos_label": positive,
        "input": row_input.kind,
    }
    if classes_said is not None and not (several and all(labels is None for labels in classes_said)):
        options["classes"] = classes_said
    y = (list(names) if several else names[0]) if batches else _joined_labels(targets, several)
    return LabelledRows(proba, y, options, tuple(outputs), tuple(found_columns), tuple(targets[0].labels))


def read_unlabelled(path: str, rows: LabelledRows, columns: ColumnOptions) -> Any:
    """Read the probabilities of rows without labels from the columns that labelled rows have them in."""
    table = open_file(path, columns.separator)
    if isinstance(table, Arrays) != (not rows.columns):
        raise InvalidParameter(
            "unlabelled", "be of the kind of the table of labelled rows: both arrays, or both with columns", path
        )
    if isinstance(table, Arrays):
        return _read_array(table, columns, _input_option(columns))
    return _read_columns(table, rows.columns, rows.targets, [None] * len(rows.columns))[0]


def _check_two_classes(targets: Sequence[_Target]) -> None:
    """Refuse a single target of one class."""
    if len(targets) == 1 and len(targets[0].labels) < 2:
        problem = f"only one class, {shown(targets[0].labels[0])}" if targets[0].labels else "no label"
        raise InvalidParameter(
            "target",
            problem=f"the target {shown(targets[0].name)} has {problem}",
            remedy="a rule needs rows of at least two classes",
        )


# --------------------------------------------------------------------------------------------------- rows for a rule


def read_rule(path: str, *, any_kind: bool = False) -> Any:
    """Read a rule from a file; one that takes more than probabilities, such as costs of rows, only if `any_kind`."""
    from ..rules.load import load_rule

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


def target_names(rule: Any) -> list[str]:
    """Return the names of a rule's outputs: its own, those of the columns it was fitted to, or "decision"."""
    names, targets, n_outputs = rule.schema.output_names, rule.metadata.targets, rule.schema.n_outputs
    if names is not None:
        return list(names)
    if targets is not None and len(targets) == n_outputs:
        return list(targets)
    return ["decision"] if n_outputs == 1 else [f"decision_{m}" for m in range(n_outputs)]


def read_parts_for_rule(rule: Any, table: OpenedTable, columns: ColumnOptions) -> dict[str, Any]:
    """Return what a rule needs of rows, groups or segments: of the columns named, or of those that it was fitted to."""
    options = _read_parts(table, columns)
    if not rule.is_partitioned:
        return options
    groups = rule.known
    parameter, names = groups.parameter, getattr(columns, groups.parameter)
    if not names and not (groups.features and all(name in table.names for name in groups.features)):
        raise InvalidParameter(
            "",
            problem=f"the rule needs the {groups.noun} of each row",
            remedy=f"name its column: {option_of(parameter)}",
            owner=table.title,
        )
    options |= _read_known(rule, table, names or groups.features)
    if groups.features and names:
        if len(names) != len(groups.features):
            raise InvalidParameter(
                parameter,
                problem=f"{option_of(parameter)} must be given {len(groups.features)} times, got {len(names)}",
            )
        options[parameter] = options[parameter].rename_columns(list(groups.features))
    return options


def _read_known(rule: Any, table: OpenedTable, names: Sequence[str]) -> dict[str, Any]:
    """Return the parts of rows; of text those that the rule has, others are missing if it decides these too."""
    groups = rule.known
    if rule.other is None or isinstance(table, Arrays) or not table.has_texts:
        return _read_columns_of(table, groups.parameter, names)
    import pyarrow as pa

    columns = {}
    for at, name in enumerate(names):
        labels = list(dict.fromkeys(part[at] if isinstance(part, tuple) else part for part in groups.names))
        texts = table.read([name]).column(0).to_pylist()
        parts = {text: match_label(text, labels) for text in set(texts) if text is not None}
        columns[name] = pa.array([part if (part := parts.get(text)) in labels else None for text in texts])
    return {groups.parameter: pa.table(columns)}


def read_proba_for_rule(
    rule: Any, table: OpenedTable, columns: ColumnOptions, others: Sequence[str] = (), pos_label: Any = None
) -> Any:
    """Return the probabilities that a rule decides by.

    Parameters
    ----------
    rule : Rule
    table : TableReader or Arrays
    columns : ColumnOptions
    others : sequence of str
        Columns that are not probabilities.
    pos_label : object, or list, optional
        The class that a single column is of, for a rule that was fitted to two columns.
    """
    check_input(rule, columns)
    if isinstance(table, Arrays):
        return _read_array(table, columns, rule.schema.input)
    _refuse_lists(rule, table, columns)
    single = says_single(rule.metadata, rule.classes)
    with refused_by(table.title):
        positive = positive_labels(None if single else pos_label, len(rule.classes))
    rule_columns, names = _columns_of_rule(rule, table, columns, others, positive), target_names(rule)
    proba, _ = _read_columns(table, rule_columns, names, [None] * len(rule_columns))
    of_two = rule_columns[0].single and not rule.schema.input.graded
    if of_two and not single and rule.input != "log_proba":  # of which single columns are refused
        both = [
            _both_columns(column, output, rule.schema.input)
            for column, output in zip(proba.columns, rule_columns, strict=True)
        ]
        return both if rule.multioutput else both[0]
    return proba if not (rule.multioutput and len(rule_columns) == 1 and not rule_columns[0].single) else [proba]


def _refuse_lists(rule: Any, table: OpenedTable, columns: ColumnOptions) -> None:
    """Refuse a rule that was fitted to lists of labels, unless options name columns of single labels."""
    from .lists import stored_lists

    if stored_lists(rule) is not None and columns.proba is None and columns.proba_prefix is None:
        raise InvalidParameter(
            "",
            problem="the rule was fitted to lists of labels, which this command does not take",
            remedy="use metricwise apply, evaluate or compare, or Python",
            owner=table.title,
        )


def _both_columns(column: Any, output: ProbabilityColumns, row_input: Input) -> Any:
    """Return the probability of the second of two classes, or its log-odds or score, as a table of both."""
    import pyarrow as pa
    from pyarrow import compute

    first = np.zeros(len(column)) if row_input.is_logits else compute.subtract(1.0, column)
    return pa.table({str(output.classes[0]): first, str(output.classes[1]): column})


def _columns_of_rule(
    rule: Any, table: TableReader, columns: ColumnOptions, others: Sequence[str], positive: Sequence[Any]
) -> list[ProbabilityColumns]:
    """Return the columns that the rule was fitted to, if the table has them; else those that are named by classes."""
    classes, names, stored = _classes(rule), target_names(rule), _stored_columns(rule)
    options = columns.proba is not None or columns.proba_prefix is not None
    if stored and not options and all(name in table.names for output in stored for name in output.columns):
        return stored
    of_outputs = [labels[1] if label is None else label for labels, label in zip(classes, positive, strict=True)]
    graded = [rule.schema.input.graded] * len(classes)
    outputs = list(map(OutputLabels, names, classes, classes, of_outputs, graded))
    try:
        named_columns = _find_columns(table, outputs, columns, others, of_rule=True)
    except NoColumnsError:
        if not stored or options:
            raise
        raise _lacking_columns(stored, table) from None
    for output, name in zip(named_columns, names, strict=True):
        _report_columns(output, name if len(names) > 1 else None, rule.schema.input)
    return named_columns


def _classes(rule: Any) -> list[list[Any]]:
    return [python_labels(labels) for labels in rule.classes]


def _stored_columns(rule: Any) -> list[ProbabilityColumns]:
    """Return the columns that the rule was fitted to, if its file has them."""
    columns, classes = rule.metadata.columns, _classes(rule)
    if columns is None or len(columns) != len(classes):
        return []
    if any(len(names) not in (1, len(labels)) for names, labels in zip(columns, classes, strict=True)):
        return []
    return [ProbabilityColumns(tuple(names), tuple(labels)) for names, labels in zip(columns, classes, strict=True)]


def _lacking_columns(stored: Sequence[ProbabilityColumns], table: TableReader) -> ValueError:
    """Return the error for a table without the columns that a rule was fitted to, or others named by classes."""
    lacking = [name for output in stored for name in output.columns if name not in table.names]
    option = "--proba" if all(output.single for output in stored) else "--proba-prefix"
    return InvalidParameter(
        "",
        problem=f"there is no column {few(lacking)}, which the rule was fitted to",
        remedy=f"the columns are {few(table.names)}. If the columns have other names here, set {option}",
        owner=table.title,
    )


def read_other_columns(table: OpenedTable, rule: Any, first: Any, columns: ColumnOptions) -> Any:
    """Return the probabilities that a rule was fitted to, if they are others than those of the first rule.

    None if they are the same, if the rule does not say, or if options name the columns for both.
    """
    if isinstance(table, Arrays) or columns.proba is not None or columns.proba_prefix is not None:
        return None
    stored = _stored_columns(rule)
    names = [name for output in stored for name in output.columns]
    if not stored or stored == _stored_columns(first) or not all(name in table.names for name in names):
        return None
    note(f"the other rule uses the columns {few(names)}, which it was fitted to.")
    return read_proba_for_rule(rule, table, columns)


def _target_columns(table: OpenedTable, rule: Any, target: Sequence[str] | None) -> list[str]:
    """Return the names of the columns of labels: those given, or those of a rule's outputs that the table has."""
    names = target or [name for name in target_names(rule) if name in table.names]
    if not target and names:
        plural = "s" if len(names) > 1 else ""
        note(f"labels: column{plural} {few(names)}, matched by the rule's output name{plural}.")
    if target and len(names) != rule.schema.n_outputs and not isinstance(table, Arrays):
        raise InvalidParameter(
            "target",
            problem=(
                f"--target must be given for each of the {rule.schema.n_outputs} outputs of the rule, got {len(names)}"
            ),
        )
    return list(names)


def read_label_columns(table: OpenedTable, rule: Any, target: Sequence[str] | None) -> tuple[list[str], Any]:
    """Return the columns of labels of a rule's outputs, and the labels; None without any column."""
    names = _target_columns(table, rule, target)
    if not names:
        return [], None
    targets = _read_targets(table, names)
    several = rule.multioutput and (len(targets) > 1 or np.ndim(targets[0].column) == 1)
    return names, _joined_labels(targets, several)


def read_ids(table: OpenedTable, name: str) -> list[str]:
    """Return a column of ids as text, so that tables in different formats agree."""
    column = _read_column(table, name, lambda reader: reader.read([name]).column(0))
    ids = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    wrong = next((value for value in ids if isinstance(value, bool) or not isinstance(value, (str, int))), None)
    if wrong is not None or None in ids:
        raise InvalidParameter(
            "id", problem=f"--id must name a column of texts or integers, none missing, got {shown(wrong)}"
        )
    return list(map(str, ids))


def read_labels_for_rule(
    table: OpenedTable, rule: Any, columns: ColumnOptions, labels: LabelOptions, order: Sequence[str] | None
) -> LabelledRows:
    """Read rows that a rule is to be judged on; `order` are the texts of --order."""
    _refuse_lists(rule, table, columns)
    names = _target_columns(table, rule, labels.target)
    targets = _read_targets(table, names)
    options = _row_options(table, labels)
    classes = _classes(rule)
    options["pos_label"] = _positive_labels(labels.pos_label, classes)
    options |= _order_option(
        order,
        [_Target(target.name, classes_of_output) for target, classes_of_output in zip(targets, classes, strict=False)],
    )
    options |= read_parts_for_rule(rule, table, columns)
    others = [*names, *labels.columns, *part_columns(columns)]
    proba = read_proba_for_rule(rule, table, columns, others, options["pos_label"])
    several = rule.multioutput and (len(targets) > 1 or np.ndim(targets[0].column) == 1)
    return LabelledRows(proba, _joined_labels(targets, several), options)
