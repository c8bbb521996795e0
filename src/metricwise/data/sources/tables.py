"""Tables that are read in batches as a source of rows: which column is what, and how batches become rows.

The labels are read once, to count the rows and list the classes; batches are read in every pass. Must not know where
batches come from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.cached import cached_property
from ...core.errors import InvalidParameter, InvalidType, argument, refused_by, shown
from ...core.inputs import Input
from ...core.labels import python_labels
from ...core.losses import Loss
from ...core.rows import Rows
from ...core.schema import Schema
from ...kernels import LinkArrays, code_type
from ..arrays import PieceReader
from ..columns import (
    OutputLabels,
    ProbabilityColumns,
    all_classes,
    check_singles,
    few,
    labels_of_texts,
    probability_columns,
    tables_of_columns,
)
from ..labels import Labels
from ..probabilities import sum_tolerance
from ..row_spec import Piece, ReadHead, RowReader, RowSpec
from ..sensitive import Partition, partition_of
from ..tables.formats import arrow
from ..tables.queries import Query
from ..tables.query_counts import (
    CountedColumns,
    CountStatement,
    LabelStatement,
    SampleStatement,
    distinct_statement,
    has_literal,
    positions_statement,
)
from ..tables.reading import (
    MEMORY_LIMIT,
    Table,
    TableReader,
    batch_rows,
    check_labels,
    check_numbers,
    closed,
    open_table,
)
from .base import join_rows
from .chunked import ChunkedSource, Read

__all__ = [
    "BatchLayout",
    "DistinctLabels",
    "LabelColumn",
    "TableChunks",
    "arrow_labels",
    "feature_names",
    "groups_of",
    "proba_of",
    "read_layout",
    "read_table_source",
    "read_unlabelled_layout",
    "read_unlabelled_table",
    "rule_columns",
    "sorted_or_same",
    "survey_labels",
    "target_names",
    "updated_groups",
]

_MAX_LABELS = 10_000  # distinct ones of a column
_TRIAL_SHARE = 16  # the first batch, which shows the bytes of a row, is smaller by this factor
_MAX_COUNTED_GROUPS = 1 << 16  # combinations of features that have a place each, whether they occur or not
_ITEM_BYTES = 256  # of a change along a line, with the arrays made of it
_MIN_SELECTED, _MAX_PLACES = 4, 1 << 17  # of so many rows a database selects one; positions of one statement

KeyArray = NDArray[np.uint64]


def read_table_source(table: Table, spec: RowSpec, read_head: ReadHead) -> ChunkedSource:
    """Open a table whose y, weights, groups and sensitive features are names of columns; see `read_collection`."""
    names = target_names(table, spec)
    opened = open_table(table)
    n_rows, targets = _survey(opened, names, table.memory_limit)
    features = feature_names(opened, spec)
    layout, row_bytes = read_layout(opened, table, spec, targets, read_head, features)
    if features:
        occurring = _survey_groups(opened, features, table.memory_limit)
        layout = replace(layout, partition=partition_of(occurring, features, spec.known_groups))
    chunks = TableChunks(opened, layout, n_rows, batch_rows(row_bytes, table.memory_limit))
    most = table.memory_limit // _ITEM_BYTES
    return ChunkedSource(chunks, layout.reader.schema, most=most, partition=layout.partition)


def read_layout(
    opened: TableReader,
    table: Table,
    spec: RowSpec,
    targets: Sequence[LabelColumn],
    read_head: ReadHead,
    features: tuple[str, ...] = (),
) -> tuple[BatchLayout, int]:
    """Return which columns are what, found by their names, the labels and a first row, and the bytes of a row.

    Parameters
    ----------
    opened : TableReader
        Of which one batch is read.
    table : Table
    spec : RowSpec
    targets : sequence of LabelColumn
        The labels that occur.
    read_head : callable
        Returns the reader of all rows by a row of probabilities and the labels that occur.
    features : tuple of str
        Columns of sensitive features.
    """
    y, weight = spec.y, spec.weight
    named = (*(target.name for target in targets), weight, spec.groups, *features)
    others = [name for name in named if name is not None]
    columns, declared = _fitted_columns(opened, table, targets, spec, others)
    numbers = dict.fromkeys((name for output in columns for name in output.columns), True)
    numbers |= {} if weight is None else {weight: True}
    batch = opened.head(numbers, batch_rows(8 * len(numbers), table.memory_limit // _TRIAL_SHARE))
    first = check_numbers(batch.slice(0, 1), opened.title)
    proba, labels, classes = _head(first, columns, targets, declared, isinstance(y, (list, tuple)))
    singles = [output.classes[1] if output.single else None for output in columns]
    positive = singles if len(singles) > 1 else singles[0]
    reader = read_head(replace(spec, proba=proba, y=labels, classes=classes, pos_label=positive))
    layout = BatchLayout(
        reader, columns, tuple(targets), weight, spec.groups, opened.title, features, has_texts=opened.has_texts
    )
    return layout, batch.nbytes // batch.num_rows + 8 * len(set(others) - set(numbers))


def target_names(table: Table, spec: RowSpec) -> list[str]:
    """Return the names of the columns of labels; refuse arguments about rows that are no names of columns."""
    if table.indices is not None:
        raise _refused_lists()
    names = _target_names(spec.y)
    if spec.time is not None:
        raise InvalidParameter(
            "groups", problem="InTime needs all rows in memory, to sort them", remedy="pass groups, such as the month"
        )
    for parameter, value in (("sample_weight", spec.weight), ("groups", spec.groups)):
        if value is not None and not isinstance(value, str):
            raise InvalidType(parameter, "be the name of a column of the table", shown(value))
    return names


def read_unlabelled_table(table: Table, schema: Schema) -> ChunkedSource:
    """Open the columns of a table that a rule decides by; see :func:`metricwise.data.open.open_unlabelled`."""
    if table.indices is not None:
        raise _refused_lists()
    opened = open_table(table)
    layout, row_bytes = read_unlabelled_layout(opened, table, schema)
    n_rows, _ = _survey(opened, [], table.memory_limit)
    chunks = TableChunks(opened, layout, n_rows, batch_rows(row_bytes, table.memory_limit))
    return ChunkedSource(chunks, schema, most=table.memory_limit // _ITEM_BYTES)


def read_unlabelled_layout(opened: TableReader, table: Table, schema: Schema) -> tuple[BatchLayout, int]:
    """Return which columns a rule decides by, found by their names, and the bytes of a row."""
    classes = [arrow_labels(labels) for labels in schema.classes]
    columns = rule_columns(
        opened, table, list(schema.output_names or _default_names(schema)), classes, graded=schema.input.graded
    )
    several = schema.multioutput
    reader = PieceReader(schema, several, list(schema.classes) if several else schema.classes[0], None)
    layout = BatchLayout(reader, columns, (), None, None, opened.title)
    return layout, 8 * sum(len(output.columns) for output in columns)


def _default_names(schema: Schema) -> list[str | None]:
    """Return what outputs without names are called in columns, as in `predict_table`."""
    return [None] if schema.n_outputs == 1 else [f"decision_{m}" for m in range(schema.n_outputs)]


def _refused_lists() -> InvalidParameter:
    return InvalidParameter(
        "",
        problem=f"rows that hold lists of labels ({argument('Table.indices')}) are only for optimize, trade_off, "
        "evaluate and predict_table",
        remedy="pass a table with a column for each label",
    )


def _target_names(y: Any) -> list[str]:
    if y is None:
        return []
    names = [y] if isinstance(y, str) else y
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(name, str) for name in names):
        raise InvalidType("y", "be the name of the column of labels, or a list of names, if proba is a table", shown(y))
    if len(set(names)) < len(names):
        raise InvalidParameter("y", "name each column only once", shown(list(names)))
    return list(names)


# -------------------------------------------------------------------------------------------------- sensitive features


def feature_names(reader: TableReader, spec: RowSpec) -> tuple[str, ...]:
    """Return the columns that sensitive features are read from; none if they are arrays in memory."""
    values = None if spec.sensitive is None else spec.sensitive.values
    names = (values,) if isinstance(values, str) else values
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        return ()
    if not isinstance(values, str) and not set(names) <= set(reader.names):
        return ()  # the names of groups, row by row
    if len(set(names)) < len(names):
        raise InvalidParameter("sensitive_features", "name each column only once", shown(list(names)))
    reader.check(names)
    return tuple(names)


def _survey_groups(reader: TableReader, features: Sequence[str], memory_limit: int) -> list[Any]:
    """Return the distinct groups that occur, None where it is missing, reading the columns of these only."""
    occurring: dict[Any, None] = {}
    n_batch = batch_rows(8 * len(features), memory_limit)
    with closed(reader.batches(dict.fromkeys(features, False), n_batch)) as batches:
        for batch in batches:
            for feature in features:
                check_labels(batch.column(feature), feature, reader.title)
            occurring = updated_groups(occurring, groups_of(batch, features, has_texts=reader.has_texts)[0])
    return list(occurring)


def updated_groups(occurring: Mapping[Any, None], groups: Iterable[Any]) -> dict[Any, None]:
    """Return groups that occur with others added, in order; refuse more than groups there may be."""
    updated = {**occurring, **dict.fromkeys(groups)}
    if len(updated) > _MAX_LABELS:
        raise InvalidParameter("sensitive_features", f"make at most {_MAX_LABELS} groups", "more", "name other columns")
    return updated


def groups_of(batch: Any, features: Sequence[str], *, has_texts: bool) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the distinct groups of a batch, and which of them (n,) every row is in."""
    names, codes = [], []
    for feature in features:
        encoded = _encoded(batch.column(feature))
        values = [None if value != value else value for value in encoded.dictionary.to_pylist()]
        shown_values = [value for value in values if value is not None]
        if has_texts:
            meaning = dict(zip(shown_values, labels_of_texts(shown_values), strict=True))
            values = [meaning.get(value) for value in values]
        names.append([*values, None])
        codes.append(encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False).astype(np.intp))
    key, size = codes[0], len(names[0])
    for column, values in zip(codes[1:], names[1:], strict=True):
        key, size = key * len(values) + column, size * len(values)
    if size <= _MAX_COUNTED_GROUPS:
        occurring = np.flatnonzero(np.bincount(key, minlength=size))
        place = np.zeros(size, dtype=np.intp)
        place[occurring] = np.arange(len(occurring))
        of_row = place[key]
    else:
        occurring, of_row = np.unique(key, return_inverse=True)
    places = np.unravel_index(occurring, [len(values) for values in names])
    columns = [[values[place] for place in at.tolist()] for values, at in zip(names, places, strict=True)]
    groups = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    return groups, of_row.reshape(-1)


def _encoded(column: Any) -> Any:
    """Return a column as an array of a dictionary and indices."""
    encoded = (
        column.unify_dictionaries().combine_chunks() if hasattr(column.type, "ordered") else column.combine_chunks()
    )
    encoded = encoded if hasattr(encoded, "dictionary") else encoded.dictionary_encode()
    return encoded.chunk(0) if hasattr(encoded, "chunks") else encoded


# -------------------------------------------------------------------------------------------------------------- labels


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """A column of labels and the distinct ones that occur.

    Parameters
    ----------
    name : str
    labels : list
        Distinct labels that are not missing.
    column : pyarrow.Array
        The same and what is missing, of the type of the column.
    meaning : dict of str to label, or None
        The label of each text, if all columns are text.
    """

    name: str
    labels: list[Any]
    column: Any
    meaning: dict[str, Any] | None


def survey_labels(reader: TableReader, names: Sequence[str]) -> list[list[Any]]:
    """Return the distinct labels of each of some columns."""
    return [target.labels for target in _survey(reader, names, MEMORY_LIMIT)[1]]


def _survey(reader: TableReader, names: Sequence[str], memory_limit: int) -> tuple[int, list[LabelColumn]]:
    """Return the number of rows, and the labels that occur in some columns, reading these columns only."""
    n_rows, counters = 0, [DistinctLabels(name, reader.title) for name in names]
    columns = dict.fromkeys(names or reader.names[:1], False)
    if isinstance(reader, Query) and (reader.counts or not names):
        reader.check(names)
        n_rows = _survey_there(reader, counters)
    else:
        with closed(reader.batches(columns, batch_rows(8 * len(columns), memory_limit))) as batches:
            for batch in batches:
                n_rows += batch.num_rows
                for counter in counters:
                    counter.add(batch.column(counter.name))
    if n_rows == 0:
        raise InvalidParameter("", problem="the table must have at least one row, got none", owner=reader.title)
    return n_rows, [counter.target(reader.has_texts) for counter in counters]


def _survey_there(query: Query, counters: Sequence[DistinctLabels]) -> int:
    """Add the distinct values of columns of a query, by its database, and return the number of rows."""
    n_rows = 0
    some: Sequence[DistinctLabels | None] = counters or [None]
    for counter in some:
        name = None if counter is None else counter.name
        statement, n_rows = distinct_statement(query.rows, name, _MAX_LABELS + 2), 0
        for batch in query.answers(statement):
            table = arrow().Table.from_batches([batch])
            if counter is not None:
                counter.add(table.column(counter.name))
            n_rows += int(sum(table.column(list(statement.columns)[-1]).to_pylist()))
    return n_rows


class DistinctLabels:
    """The labels that occur in a column, batch by batch."""

    def __init__(self, name: str, title: str) -> None:
        self.name, self._title = name, title
        self._labels: dict[Any, None] = {}
        self._declared: dict[Any, None] = {}
        self._type: Any = None

    def add(self, column: Any) -> None:
        self._type = check_labels(column, self.name, self._title).type
        if hasattr(column.type, "value_type") and hasattr(column.type, "ordered"):
            for chunk in column.chunks:
                self._declared.update(dict.fromkeys(self._values(chunk.dictionary)))
        # NaN is not equal to itself, and would be another label every time.
        labels = (None if label != label else label for label in self._values(column.unique()))
        self._labels.update(dict.fromkeys(labels))
        self._checked()

    def update(self, other: DistinctLabels) -> DistinctLabels:
        """Add the labels that another counter has met in other rows of the column."""
        self._type = other._type if self._type is None else self._type
        self._declared.update(other._declared)
        self._labels.update(other._labels)
        return self._checked()

    def _checked(self) -> DistinctLabels:
        """Refuse columns of more values than labels have."""
        if len(self._labels) > _MAX_LABELS:
            raise InvalidParameter(
                "",
                problem=(
                    f"the column {shown(self.name)} must hold labels, got more than {_MAX_LABELS} distinct values"
                ),
                remedy="name another column",
                owner=self._title,
            )
        return self

    def _values(self, column: Any) -> list[Any]:
        """Return the values of a column; refuse those that Python cannot hold, of files that are damaged."""
        try:
            return list(column.to_pylist())
        except (OverflowError, ValueError) as error:  # dates beyond Python's, and text that is not UTF-8
            raise InvalidParameter(
                "",
                problem=f"the column {shown(self.name)} must hold labels, got a value that cannot be read: {error}",
                owner=self._title,
            ) from None

    def target(self, has_texts: bool) -> LabelColumn:
        import pyarrow as pa

        values = list(self._labels)
        labels = [label for label in values if label is not None]
        if has_texts:
            meaning = dict(zip(labels, labels_of_texts(labels), strict=True))
            column = pa.array([None if text is None else meaning[text] for text in values])
            return LabelColumn(self.name, list(meaning.values()), column, meaning)
        if self._declared:
            dictionary = pa.array([label for label in self._declared if label is not None], type=self._type.value_type)
            place = {label: at for at, label in enumerate(dictionary.to_pylist())}
            indices = pa.array([None if label is None else place[label] for label in values], type=pa.int32())
            column = pa.DictionaryArray.from_arrays(indices, dictionary, ordered=self._type.ordered)
            return LabelColumn(self.name, list(place), column, None)
        return LabelColumn(self.name, sorted_or_same(labels), pa.array(values, type=self._type), None)


def sorted_or_same(labels: list[Any]) -> list[Any]:
    """Return labels in order, as they are if they cannot be compared."""
    try:
        return sorted(labels)
    except TypeError:
        return labels


def _head(
    first: Any,
    columns: Sequence[ProbabilityColumns],
    targets: Sequence[LabelColumn],
    declared: Sequence[Any],
    several: bool,
) -> tuple[Any, Any, Any]:
    """Return a row of probabilities and the labels that occur, as `optimize` takes them, and their classes."""
    outputs = [target.name for target in targets] or [""]
    proba, classes = tables_of_columns(first, columns, outputs, declared)
    if several and len(columns) == 1:
        proba, classes = proba if columns[0].single else [proba], [classes]
    if several and all(labels is None for labels in classes):
        classes = None
    return proba, _head_labels(targets, several), classes


def _head_labels(targets: Sequence[LabelColumn], several: bool) -> Any:
    """Return a y with all labels that occur; the last label of an output that has fewer is repeated."""
    if not targets:
        return None
    if not several:
        return targets[0].column
    import pyarrow as pa

    n_rows = max(len(target.column) for target in targets)
    places = [np.minimum(np.arange(n_rows), len(target.column) - 1) for target in targets]
    return pa.table({target.name: target.column.take(pa.array(at)) for target, at in zip(targets, places, strict=True)})


# ------------------------------------------------------------------------------------------------------------- columns


def _fitted_columns(
    reader: TableReader, table: Table, targets: Sequence[LabelColumn], spec: RowSpec, others: Sequence[str]
) -> tuple[list[ProbabilityColumns], list[Any]]:
    """Return the columns of probabilities of each output, and its classes where they must be said."""
    classes, pos_label = spec.classes, spec.pos_label
    if not targets and classes is None:
        raise InvalidParameter("classes", "be given without y, to identify the columns of probabilities", "None")
    n_outputs = max(len(targets), 1)
    nested = classes is not None and n_outputs > 1
    declared = list(classes) if nested else [None if classes is None else list(classes)] * n_outputs
    labels: list[Any] = [target.labels for target in targets] or [declared[0]]
    names: list[Any] = [target.name for target in targets] or [None]
    positive = pos_label if isinstance(pos_label, (list, tuple)) else [pos_label] * n_outputs
    graded = [Input.of(spec.input).is_scores] * n_outputs
    outputs = [OutputLabels(*fields) for fields in zip(names, labels, declared, positive, graded, strict=True)]
    columns = _probability_columns(reader, table, outputs, others)
    return columns, list(map(all_classes, declared, columns, labels))


def rule_columns(
    reader: TableReader,
    table: Table,
    names: Sequence[str | None],
    classes: Sequence[list[Any]],
    *,
    graded: bool = False,
) -> list[ProbabilityColumns]:
    """Return the columns that a rule decides by.

    Parameters
    ----------
    reader : TableReader
    table : Table
    names : sequence of M str or None
        Names of the rule's outputs.
    classes : sequence of M lists
        Their classes, the positive one of two last.
    graded : bool, default=False
        Whether the rule takes one score for more than two classes.
    """
    outputs = [
        OutputLabels(name, labels, labels, labels[1], graded) for name, labels in zip(names, classes, strict=True)
    ]
    return _probability_columns(reader, table, outputs, (), of_rule=True)


def _probability_columns(
    reader: TableReader, table: Table, outputs: Sequence[OutputLabels], others: Sequence[str], *, of_rule: bool = False
) -> list[ProbabilityColumns]:
    """Return the columns of probabilities of each output; those that were guessed are reported."""
    n_outputs = len(outputs)
    named: Any = [None] * n_outputs if table.proba is None else table.proba
    singles = [named] if isinstance(named, str) else list(named)
    if len(singles) != n_outputs:
        raise InvalidParameter(
            "proba", f"name a column for each of the {n_outputs} outputs", len(singles), owner="Table"
        )
    candidates = [name for name in reader.names if name not in others]
    with refused_by(reader.title):
        columns = probability_columns(candidates, outputs, prefix=table.proba_prefix, singles=singles, of_rule=of_rule)
        check_singles(columns, [str(output.name) for output in outputs])
    for output_columns in columns:
        if output_columns.guessed_prefix is not None:
            sys.stderr.write(
                f"{reader.title}: probabilities are read from the columns {few(output_columns.columns)}, guessed by "
                f"the prefix {shown(output_columns.guessed_prefix)}; set mw.Table(path, proba_prefix=...) to choose.\n"
            )
    return columns


# ----------------------------------------------------------------------------------------------------- rows of batches


@dataclass(frozen=True, eq=False)
class BatchLayout:
    """Which columns of a batch are what."""

    reader: RowReader
    proba: Sequence[ProbabilityColumns]
    targets: tuple[LabelColumn, ...]
    weight: str | None
    groups: str | None
    title: str
    features: tuple[str, ...] = ()
    partition: Partition | None = None
    has_texts: bool = False

    @property
    def columns(self) -> dict[str, bool]:
        """Columns that are read, and whether they hold numbers."""
        names = {name: True for output in self.proba for name in output.columns}
        names.update({target.name: False for target in self.targets})
        if self.weight is not None:
            names[self.weight] = True
        if self.groups is not None:
            names[self.groups] = False
        return {**dict.fromkeys(self.features, False), **names}

    def rows(self, batch: Any, start: int, check: bool) -> Rows:
        """Read a batch."""
        weight = None if self.weight is None else _numbers(batch.column(self.weight))
        groups = None if self.groups is None else batch.column(self.groups).to_numpy()
        piece = Piece(proba_of(batch, self.proba, self.reader), self._labels(batch), weight, groups)
        rows = self.reader.rows(piece, start, check=check)
        if self.partition is None:
            return rows
        names, of_row = groups_of(batch, self.features, has_texts=self.has_texts)
        return replace(rows, group=self.partition.places(names)[of_row])

    def _labels(self, batch: Any) -> Any:
        if not self.targets:
            return None
        schema = self.reader.schema
        if len(self.targets) == 1 and not schema.multioutput and _is_integer(batch.column(self.targets[0].name)):
            return batch.column(self.targets[0].name).to_numpy()
        codes = np.empty((batch.num_rows, len(self.targets)), dtype=code_type(schema.width))
        for m, target in enumerate(self.targets):
            codes[:, m] = self._codes(batch.column(target.name), target, schema.classes[m])
        return Labels(codes, schema.classes, schema.multioutput)

    def _codes(self, column: Any, target: LabelColumn, classes: NDArray[Any]) -> NDArray[Any]:
        """Return the codes of labels; each distinct label is looked up once."""
        encoded = _encoded(column)
        place = {label: code for code, label in enumerate(arrow_labels(classes))}
        codes = []
        for label in encoded.dictionary.to_pylist():
            label = target.meaning.get(label, label) if target.meaning is not None and label is not None else label
            if label is None or label != label:
                codes.append(-1)
            elif label in place:
                codes.append(place[label])
            else:
                raise InvalidParameter(
                    "",
                    problem=(
                        f"the column {shown(target.name)} must hold the same labels in every pass, got the "
                        f"new label {shown(label)}"
                    ),
                    owner=self.title,
                )
        table = np.array([*codes, -1], dtype=np.intp)  # a missing label has the index -1
        return np.asarray(table[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)])


def proba_of(batch: Any, columns: Sequence[ProbabilityColumns], reader: RowReader) -> Any:
    """Return the probabilities of a batch in the order of the classes, as arrays."""
    if columns[0].single:
        if not reader.multioutput:
            return _matrix(batch, [columns[0].columns[0]])[:, 0]
        return _matrix(batch, [output.columns[0] for output in columns])
    arrays = []
    for output, labels in zip(columns, reader.schema.classes, strict=True):
        place = dict(zip(output.classes, output.columns, strict=True))
        arrays.append(_matrix(batch, [place[label] for label in arrow_labels(labels)]))
    return arrays if reader.multioutput else arrays[0]


def arrow_labels(labels: NDArray[Any]) -> list[Any]:
    """Return labels as Arrow's are in Python: dates and times are Python's own."""
    return labels.tolist() if labels.dtype.kind in "mM" else python_labels(labels)


def _is_integer(column: Any) -> bool:
    """Whether labels are integers, none missing, which are read as an array is."""
    return str(column.type).startswith(("int", "uint")) and column.null_count == 0


def _numbers(column: Any) -> NDArray[Any]:
    """Return a column of numbers as an array; missing ones are NaN."""
    array: NDArray[Any] = column.to_numpy()
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _matrix(batch: Any, names: Sequence[str]) -> NDArray[Any]:
    """Return columns as an array (n, K) of the widest of their types, contiguous by column."""
    columns = [batch.column(name) for name in names]
    kinds = {str(column.type) for column in columns}
    small = {"halffloat": np.float16, "float": np.float32}
    dtype = small[next(iter(kinds))] if len(kinds) == 1 and kinds <= set(small) else np.float64
    out = np.empty((len(columns), batch.num_rows), dtype=dtype)
    for row, column in zip(out, columns, strict=True):
        start = 0
        for chunk in column.chunks:
            row[start : start + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
            start += len(chunk)
    return out.T


@dataclass(frozen=True, eq=False)
class TableChunks:
    """Batches of a table as rows, read in every pass; `n_batch` rows at a time."""

    table: TableReader
    layout: BatchLayout
    n_rows: int
    n_batch: int

    @property
    def labelled(self) -> bool:
        """Whether rows have labels."""
        return bool(self.layout.targets)

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.layout.weight is not None

    @cached_property
    def _counted(self) -> tuple[Query, CountedColumns, list[Any]] | None:
        """The query whose database counts, the columns of its single output, and its classes; None: rows are read."""
        schema, layout = self.layout.reader.schema, self.layout
        plain = not (schema.normalize or schema.multioutput or schema.input.is_logits)
        if not (isinstance(self.table, Query) and self.table.counts and plain):
            return None
        (output,), classes = layout.proba, arrow_labels(schema.classes[0])
        place = dict(zip(output.classes, output.columns, strict=False))
        names = output.columns[:1] if output.single else [place[label] for label in classes]
        label = layout.targets[0].name if layout.targets else None
        kinds = set(map(str, self.table.head(dict.fromkeys(names, True), 1).schema.types))
        return self.table, CountedColumns(names, label, layout.weight, kinds == {"float"}), classes

    def count_losses(
        self, losses: Sequence[Loss], expected: bool, link: LinkArrays | None = None, linked: bool = True
    ) -> NDArray[np.float64] | None:
        """Return sums (2, R, 1, K, K) that a database counts itself; see :meth:`ChunkedSource.count_losses`."""
        if self._counted is None or not (self.labelled or self._proper):
            return None
        query, columns, classes = self._counted
        statements = CountStatement.of(query.rows, columns, losses, expected=expected, link=link, linked=linked)
        if statements is None:
            return None
        sums = [one.read(query.answers(one.statement), classes) for one in statements]
        return np.concatenate([np.stack(both) for both in sums], axis=1)[:, :, None]

    @cached_property
    def _proper(self) -> bool:
        """Whether a database finds that rows without labels are distributions; with labels, it checks as it counts."""
        return self._checked_there()[2] == 0

    def _checked_there(self) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
        """Return weights and rows of positive weight by class, and the number of rows that are no distributions."""
        assert self._counted is not None
        query, columns, classes = self._counted
        statement = LabelStatement.of(query.rows, columns, sum_tolerance(len(columns.proba)))
        weights, rows, n_rows, n_wrong = statement.read(query.answers(statement.statement), classes)
        self._check_number(n_rows)
        return weights, rows, n_wrong

    @cached_property
    def label_counts(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Weights and rows of positive weight by class, (1, K), by a database; None also if some rows are refused."""
        if self._counted is None or not self.labelled or self.layout.reader.counts_rows:
            return None
        weights, rows, n_wrong = self._checked_there()
        return None if n_wrong else (weights, rows)

    def take(self, places: NDArray[np.intp]) -> Rows | None:
        """Return the rows at a few ascending positions, which a database selects; None: they must be searched for."""
        if self._counted is None or len(places) * _MIN_SELECTED > self.n_rows or len(places) > _MAX_PLACES:
            return None
        statement = positions_statement(self._counted[0].rows, self.layout.columns, map(int, places))
        rows = [self._rows(batch) for batch in self._counted[0].answers(statement)]
        return join_rows(rows) if rows else None

    @property
    def low(self) -> Callable[[KeyArray, int], tuple[NDArray[np.intp], KeyArray, Rows]] | None:
        """How a database draws rows of low keys; None: they must be read. See :class:`SampleStatement`."""
        if self._counted is None or not all(map(has_literal, self._counted[2])):
            return None
        return self._low_rows

    def _low_rows(self, below: KeyArray, seed: int) -> tuple[NDArray[np.intp], KeyArray, Rows]:
        """Return rows of keys below those of their class, with their places and keys, in the order of places."""
        assert self._counted is not None
        query, columns, classes = self._counted
        drawn = SampleStatement.of(query.rows, self.layout.columns, columns, classes, below, seed)
        parts = [(*drawn.read(batch), self._rows(batch)) for batch in query.answers(drawn.statement)]
        if not parts:
            some = self._rows(self.table.head(self.layout.columns, 1))
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.uint64), some.take(slice(0, 0))
        places, keys, rows = zip(*parts, strict=True)
        order = np.argsort(np.concatenate(places), kind="stable")
        return np.concatenate(places)[order], np.concatenate(keys)[order], join_rows(rows).take(order)

    def _rows(self, batch: Any) -> Rows:
        """Read what a database has selected."""
        table = batch if isinstance(batch, arrow().Table) else arrow().Table.from_batches([batch])
        return self.layout.rows(table, 0, check=True)

    def _check_number(self, n_rows: int) -> None:
        """Refuse another number of rows than there were at first."""
        if n_rows != self.n_rows:
            raise RuntimeError(
                f"{self.table.title}: the number of rows must not change, got {self.n_rows} at first and "
                f"{n_rows} in a later pass."
            )

    def reads(self) -> Iterator[Read]:
        """Yield what makes rows of each batch."""
        start, check = 0, not vars(self).get("_checked", False)
        with closed(self.table.batches(self.layout.columns, self.n_batch)) as batches:
            for batch in batches:
                yield partial(self.layout.rows, batch, start, check)
                start += batch.num_rows
        self._check_number(start)
        if self.table.lasting:
            vars(self)["_checked"] = True
