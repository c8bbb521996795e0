"""Data frames of Spark as a source of rows.

The labels that occur are listed in one pass over their columns; rows are checked, written as records and counted in
another, both on the workers. Columns mean what they mean in tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import InvalidParameter, InvalidType, shown
from ...core.rows import Rows
from ...core.schema import Schema
from ...kernels import work_alone
from ..keeping import release_at_end
from ..row_spec import ReadHead, RowSpec
from ..sensitive import partition_of
from ..tables.reading import Table, TableReader, batch_rows
from .spark import Partitions, SparkSource, collect_answers, items_of, marked, named_batches, numbered_columns, quoted
from .spark_records import RecordFormat
from .tables import (
    BatchLayout,
    DistinctLabels,
    LabelColumn,
    feature_names,
    groups_of,
    read_layout,
    read_unlabelled_layout,
    target_names,
    updated_groups,
)

__all__ = ["Reader", "open_partitions", "read_spark", "read_unlabelled_spark"]

_MAX_BATCH_ROWS = 1 << 16  # read at a time by each of the workers, which share the memory of a machine
_TITLE = "the Spark data frame"
_ITEMS = "metricwise items"  # a column that is added


def read_spark(table: Table, spec: RowSpec, read_head: ReadHead) -> SparkSource:
    """Open a data frame of Spark whose y, weights, groups and features are names of columns; see `read_collection`."""
    _refuse_stream(table)
    names = target_names(table, spec)
    targets = [labels.target(False) for labels in _survey(_FirstRow(table.data), names)]
    table = _with_columns(table, spec.classes, targets)
    opened = _FirstRow(table.data)
    features = feature_names(opened, spec)
    if spec.sensitive is not None and not features:
        raise InvalidParameter(
            "sensitive_features",
            "be the name of a column of the Spark data frame, or a list of names",
            shown(spec.sensitive.values),
        )
    layout, row_bytes = read_layout(opened, table, spec, targets, read_head, features)
    if features:
        occurring = _survey_groups(opened, features)
        layout = replace(layout, partition=partition_of(occurring, features, spec.known_groups))
    reader = Reader(layout, min(batch_rows(row_bytes, table.memory_limit), _MAX_BATCH_ROWS))
    return open_partitions(
        opened.select(layout.columns), reader, layout.reader.schema, bool(names), layout.weight is not None
    )


def read_unlabelled_spark(table: Table, schema: Schema) -> SparkSource:
    """Open the columns of a data frame of Spark that a rule decides by; see `open_unlabelled`."""
    _refuse_stream(table)
    table = _with_columns(table, list(schema.classes[0]), ())
    opened = _FirstRow(table.data)
    layout, row_bytes = read_unlabelled_layout(opened, table, schema)
    reader = Reader(layout, min(batch_rows(row_bytes, table.memory_limit), _MAX_BATCH_ROWS))
    return open_partitions(opened.select(layout.columns), reader, schema, False, False)


def open_partitions(frame: Any, reader: Reader, schema: Schema, labelled: bool, weighted: bool) -> SparkSource:
    """Return the source of a data frame of the columns that are read, whose rows are checked, kept and counted here.

    Spark keeps records until the call ends. Without a call, they are made anew in every pass.
    """
    first = next(_Batches(_first_batches(frame, reader.layout.columns), reader.layout.columns).batches({}, 1))
    records = RecordFormat(reader.rows(first, 0, False).take(slice(0, 0)), reader.n_rows)
    kept = frame.mapInArrow(_Pack(reader, records), records.types)
    if release_at_end(lambda: _release(kept)):
        kept.persist()
    counts = _count_partitions(kept, records, labelled)
    if any(count.refused for count in counts):
        _name_refused(frame, reader)
    starts = np.cumsum([0, *(count.n_rows for count in counts)])
    partitions = Partitions(starts, np.array([count.mark for count in counts]))
    source = SparkSource(kept, records, partitions, schema, labelled, weighted, partition=reader.layout.partition)
    if labelled:
        vars(source)["class_weights"] = reduce(np.add, [count.tally for count in counts if count.tally is not None])
    return source


def _release(kept: Any) -> None:
    """Let Spark forget records. A session that is lost keeps none, and the error of the call says what became of it."""
    with suppress(Exception):
        kept.unpersist()


def _refuse_stream(table: Table) -> None:
    if table.data.isStreaming:
        raise InvalidType("proba", "be a batch of rows", "a Spark stream", "write it to a table first")


class _FirstRow(TableReader):
    """A data frame that gives its first row only, which shows what its columns are like."""

    title = _TITLE

    def __init__(self, frame: Any) -> None:
        self._frame, self.names = frame, tuple(frame.columns)

    def select(self, names: Iterable[str]) -> Any:
        """Return the data frame of some columns, numbered."""
        self.check(names)
        return numbered_columns(self._frame, names)

    def scan(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        return _first_batches(self.select(columns), columns)


def _first_batches(frame: Any, columns: Iterable[str]) -> Iterator[Any]:
    """Return the Arrow batches of the first row of a data frame of numbered columns."""
    answers = collect_answers(frame.limit(1), _listed)
    batches = [batch for answer in answers for batch in named_batches(answer, columns) if batch.num_rows]
    if not batches:
        raise _without_rows()
    return iter(batches)


def _without_rows() -> InvalidParameter:
    return InvalidParameter("", problem="the table must have at least one row, got none", owner=_TITLE)


def _with_columns(table: Table, classes: Any, targets: Sequence[LabelColumn]) -> Table:
    """Return a table with a column for each class in place of a column of arrays or of vectors of Spark ML.

    Their items are those of the classes in order: numbers from 0, as indices of Spark ML are, if the labels are such.
    """
    column = table.proba
    items = items_of(table.data, column) if isinstance(column, str) else None
    if items is None:
        return table
    labels = list(classes) if classes is not None else [label for target in targets for label in target.labels]
    frame = table.data.withColumn(_ITEMS, items)
    first = next(_FirstRow(frame).scan({_ITEMS: True}, 1)).column(0)[0]
    n_items = len(first) if first.is_valid else 0
    kinds = {type(label) for label in labels}
    if kinds in ({int}, {float}) and set(labels) <= set(range(n_items)):
        labels = [kind(label) for kind in kinds for label in range(n_items)]
    if len(labels) != n_items:
        raise InvalidParameter(
            "classes",
            f"be given, one for each of the {n_items} items of {shown(column)}, unless labels are their numbers from 0",
            shown(list(labels)),
        )
    items = quoted(_ITEMS)  # of rows with more or fewer items they are missing, so that the row is refused by its place
    columns = (
        f"CASE WHEN size({items}) = {n_items} THEN {items}[{place}] END AS {quoted(f'{column}_{label}')}"
        for place, label in enumerate(labels)
    )
    return replace(table, data=frame.selectExpr("*", *columns).drop(_ITEMS), proba=None, proba_prefix=f"{column}_")


def _listed(_place: int, batches: Iterator[Any]) -> list[Any]:
    return list(batches)


# ------------------------------------------------------------------------------------ a look at all labels and groups


def _survey(opened: _FirstRow, names: Sequence[str]) -> list[DistinctLabels]:
    """Return the labels that occur in each of some columns."""
    if not names:
        return []
    answers = collect_answers(opened.select(names), _Survey(tuple(names)))
    if not answers:
        raise _without_rows()
    return [reduce(DistinctLabels.update, counters) for counters in zip(*answers, strict=True)]


@dataclass(frozen=True)
class _Survey:
    """Lists the labels of a partition."""

    names: tuple[str, ...]

    def __call__(self, place: int, batches: Iterator[Any]) -> list[DistinctLabels] | None:
        from pyarrow import chunked_array

        counters = [DistinctLabels(name, _TITLE) for name in self.names]
        n_rows = 0
        for batch in batches:
            n_rows += batch.num_rows
            for counter, column in zip(counters, batch.columns, strict=True):
                counter.add(chunked_array([column]))
        return counters if n_rows else None


def _survey_groups(opened: _FirstRow, features: Sequence[str]) -> list[Any]:
    """Return the distinct groups of some columns that occur, None where it is missing."""
    answers = collect_answers(opened.select(features), _GroupSurvey(tuple(features)))
    occurring: dict[Any, None] = {}
    for groups in answers:
        occurring = updated_groups(occurring, groups)
    return list(occurring)


@dataclass(frozen=True)
class _GroupSurvey:
    """Lists the groups of a partition."""

    features: tuple[str, ...]

    def __call__(self, place: int, batches: Iterator[Any]) -> dict[Any, None]:
        from pyarrow import Table as ArrowTable

        occurring: dict[Any, None] = {}
        for batch in named_batches(batches, self.features):
            groups, _ = groups_of(ArrowTable.from_batches([batch]), self.features, has_texts=False)
            occurring = updated_groups(occurring, groups)
        return occurring


# ------------------------------------------------------------------------------------------------ a look at all rows


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads the batches of a partition as rows, `n_rows` at a time."""

    layout: BatchLayout
    n_rows: int

    def tables(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield batches as Arrow tables."""
        columns = self.layout.columns
        return _Batches(named_batches(batches, columns), columns).batches(columns, self.n_rows)

    def rows(self, table: Any, start: int, check: bool) -> Rows:
        """Return the rows of a table."""
        return self.layout.rows(table, start, check)


class _Batches(TableReader):
    """The batches of a partition."""

    title = _TITLE

    def __init__(self, batches: Iterator[Any], names: Iterable[str]) -> None:
        self._batches, self.names = batches, tuple(names)

    def scan(self, columns: Mapping[str, bool], n_rows: int) -> Iterator[Any]:
        return self._batches


@dataclass(frozen=True, eq=False)
class _Pack:
    """Checks the rows of a partition, and writes them as records."""

    reader: Reader
    records: RecordFormat

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        work_alone()  # a task has one core
        try:
            for table in self.reader.tables(batches):
                if table.num_rows:
                    yield self.records.records(self.reader.rows(table, 0, True))
        except (ValueError, TypeError, RuntimeError):  # whose message names a row by its place, which is not known yet
            yield self.records.refused()


class _Partition(NamedTuple):
    """What was counted of a partition; `refused`: whether any of its rows is no distribution."""

    place: int
    n_rows: int
    mark: int
    tally: Any
    refused: bool


def _count_partitions(kept: Any, records: RecordFormat, labelled: bool) -> list[_Partition]:
    """Count the rows of all partitions."""
    counts = {count.place: count for count in collect_answers(kept, _Count(records, labelled))}
    if not counts:
        raise _without_rows()
    empty = _Partition(-1, 0, 0, None, False)
    return [counts.get(place, empty) for place in range(max(counts) + 1)]


@dataclass(frozen=True, eq=False)
class _Count:
    """Counts the rows of a partition."""

    records: RecordFormat
    labelled: bool

    def __call__(self, place: int, batches: Iterator[Any]) -> _Partition | None:
        count = _Partition(place, 0, 0, None, False)
        for rows in self.records.rows(batches):
            if rows is None:
                return count._replace(refused=True)
            tally = rows.tally() if self.labelled else None
            tally = tally if count.tally is None else count.tally + tally
            count = count._replace(n_rows=count.n_rows + rows.n_rows, mark=marked(rows, count.mark), tally=tally)
        return count if count.n_rows else None


def _name_refused(frame: Any, reader: Reader) -> None:
    """Raise the error of the first row that is no distribution, by its position among the rows of all partitions."""
    lengths = dict(collect_answers(frame, _length))
    starts = np.cumsum([0, *(lengths.get(place, 0) for place in range(max(lengths, default=0) + 1))])
    collect_answers(frame, _Check(reader, starts))
    raise RuntimeError(
        "The Spark data frame does not hold the same rows in every pass: call persist(), or write the result of the "
        "query to a file first."
    )


def _length(place: int, batches: Iterator[Any]) -> tuple[int, int]:
    return place, sum(batch.num_rows for batch in batches)


@dataclass(frozen=True, eq=False)
class _Check:
    """Reads the rows of a partition, whose positions are known; refuses those that are no distributions."""

    reader: Reader
    starts: Any

    def __call__(self, place: int, batches: Iterator[Any]) -> None:
        start = int(self.starts[place])
        for table in self.reader.tables(batches):
            self.reader.rows(table, start, True)
            start += table.num_rows
