"""Data frames of Spark as a source of rows.

The labels that occur are listed in one pass over their columns, and rows are counted and checked in another, both on
the workers. Columns mean what they mean in tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import InvalidParameter, InvalidType, mention, shown
from ...core.rows import Rows
from ...core.schema import Schema
from ..row_spec import ReadHead, RowSpec
from ..tables.reading import Table, TableReader, batch_rows
from .spark import Partitions, Question, SparkSource, collect_answers, items_of, marked, named_batches, numbered_columns
from .tables import BatchLayout, DistinctLabels, LabelColumn, read_layout, target_names

__all__ = ["Reader", "open_partitions", "read_spark"]

_MAX_BATCH_ROWS = 1 << 16  # read at a time by each of the workers, which share the memory of a machine
_TITLE = "the Spark data frame"
_ITEMS = "metricwise items"  # a column that is added


def read_spark(table: Table, spec: RowSpec, read_head: ReadHead) -> SparkSource:
    """Open a data frame of Spark whose y, weights and groups are names of columns; see `read_collection`."""
    if table.data.isStreaming:
        raise InvalidType("proba", "be a batch of rows", "a Spark stream", "write it to a table first")
    names = target_names(table, spec)
    if spec.sensitive is not None:
        raise InvalidParameter(
            "sensitive_features",
            problem=f"{mention('sensitive_features')} cannot be read from a data frame of Spark",
            remedy="write it to Parquet files, and pass their path",
        )
    targets = [labels.target(False) for labels in _survey(_FirstRow(table.data), names)]
    table = _with_columns(table, spec.classes, targets)
    opened = _FirstRow(table.data)
    layout, row_bytes = read_layout(opened, table, spec, targets, read_head)
    reader = Reader(layout, min(batch_rows(row_bytes, table.memory_limit), _MAX_BATCH_ROWS))
    return open_partitions(
        opened.select(layout.columns), reader, layout.reader.schema, bool(names), layout.weight is not None
    )


def open_partitions(frame: Any, reader: Reader, schema: Schema, labelled: bool, weighted: bool) -> SparkSource:
    """Return the source of a data frame of the columns that are read, whose rows are counted and checked here."""
    counts = _count_partitions(frame, reader, labelled)
    starts = np.cumsum([0, *(count.n_rows for count in counts)])
    partitions = Partitions(starts, np.array([count.mark for count in counts]))
    if any(count.refused for count in counts):  # now that the rows before them are counted, the first is named
        collect_answers(frame, Question(reader, partitions, (), _count_rows, max, check=True))
    source = SparkSource(frame, reader, partitions, schema, labelled, weighted)
    if labelled:
        vars(source)["class_weights"] = reduce(np.add, [count.tally for count in counts if count.tally is not None])
    return source


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
        answers = collect_answers(self.select(columns).limit(1), _listed)
        batches = [batch for answer in answers for batch in named_batches(answer, columns) if batch.num_rows]
        if not batches:
            raise InvalidParameter("", problem="the table must have at least one row, got none", owner=self.title)
        return iter(batches)


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
    columns = (frame[_ITEMS][place].alias(f"{column}_{label}") for place, label in enumerate(labels))
    return replace(table, data=frame.select("*", *columns).drop(_ITEMS), proba=None, proba_prefix=f"{column}_")


def _listed(_place: int, batches: Iterator[Any]) -> list[Any]:
    return list(batches)


def _count_rows(rows: Rows) -> int:
    return rows.n_rows


# ------------------------------------------------------------------------------------------------ a look at all labels


def _survey(opened: _FirstRow, names: Sequence[str]) -> list[DistinctLabels]:
    """Return the labels that occur in each of some columns."""
    if not names:
        return []
    answers = collect_answers(opened.select(names), _Survey(tuple(names)))
    if not answers:
        raise InvalidParameter("", problem="the table must have at least one row, got none", owner=_TITLE)
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


# ------------------------------------------------------------------------------------------------ a look at all rows


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads the batches of a partition as rows, `n_rows` at a time."""

    layout: BatchLayout
    n_rows: int

    def tables(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield batches as Arrow tables."""
        return _Batches(named_batches(batches, self.layout.columns), self.layout.columns).batches(
            self.layout.columns, self.n_rows
        )

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


class _Partition(NamedTuple):
    """What was counted of a partition; `refused`: whether any of its rows is no distribution."""

    place: int
    n_rows: int
    mark: int
    tally: Any
    refused: bool


def _count_partitions(frame: Any, reader: Reader, labelled: bool) -> list[_Partition]:
    """Count and check the rows of all partitions."""
    counts = {count.place: count for count in collect_answers(frame, _Count(reader, labelled))}
    if not counts:
        raise InvalidParameter("", problem="the table must have at least one row, got none", owner=_TITLE)
    empty = _Partition(-1, 0, 0, None, False)
    return [counts.get(place, empty) for place in range(max(counts) + 1)]


@dataclass(frozen=True, eq=False)
class _Count:
    """Counts and checks the rows of a partition."""

    reader: Reader
    labelled: bool

    def __call__(self, place: int, batches: Iterator[Any]) -> _Partition | None:
        count = _Partition(place, 0, 0, None, False)
        for table in self.reader.tables(batches):
            n_rows = count.n_rows + table.num_rows
            try:
                rows = self.reader.rows(table, count.n_rows, True)
            except ValueError:  # its place among all rows is not known yet
                count = count._replace(n_rows=n_rows, refused=True)
                continue
            tally = rows.tally() if self.labelled else None
            tally = tally if count.tally is None else count.tally + tally
            count = count._replace(n_rows=n_rows, mark=marked(rows, count.mark), tally=tally)
        return count if count.n_rows else None
