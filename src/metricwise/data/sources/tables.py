"""Tables that are read in batches as a source of rows: which column is what, and how batches become rows.

Owns the one look at the labels that says how many rows there are and which classes occur, and the reading of batches in
every pass. Where batches come from is the business of ``table_files``; pyarrow is imported there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidParameter, InvalidType, refused_by, shown
from ...core.rows import Rows
from ...kernels import code_type
from ..arrays import Data
from ..columns import (
    ProbabilityColumns,
    all_classes,
    check_singles,
    few,
    labels_of_texts,
    probability_columns,
    tables_of_columns,
)
from ..encoding import python_labels
from ..labels import Labels
from ..pieces import Piece, PieceReader
from ..row_spec import RowSpec
from ..tables import MEMORY_LIMIT, Stream, Table, batch_rows, open_stream
from .chunked import ChunkedSource, Read

__all__ = ["TableChunks", "proba_columns", "proba_of", "read_table_source", "survey_labels"]

_MOST_LABELS = 10_000
_FIRST = 16  # times as few rows are read to see what a row takes
_ITEM = 256  # bytes that a change along a line takes, with what is made of it


def read_table_source(table: Table, spec: RowSpec) -> tuple[Data, ChunkedSource]:
    """Open a table; see :func:`metricwise.optimize`.

    Parameters
    ----------
    table : Table
    spec : RowSpec
        Its y, weights and groups are names of columns.

    Returns
    -------
    Data
        Of rows that stand for all.
    ChunkedSource
    """
    y, weight = spec.y, spec.weight
    names = _target_names(y)
    if spec.time is not None:
        raise InvalidParameter(
            "groups", problem="InTime needs all rows in memory, to sort them", remedy="pass groups, such as the month"
        )
    for parameter, value in (("sample_weight", weight), ("groups", spec.groups)):
        if value is not None and not isinstance(value, str):
            raise InvalidType(parameter, "be the name of a column of the table", shown(value))
    stream = open_stream(table)
    n_rows, targets = _survey(stream, names, table.memory_limit)
    beside = [name for name in (*names, weight, spec.groups) if name is not None]
    found, declared = _find(stream, table, targets, spec.classes, spec.pos_label, beside)
    numbers = dict.fromkeys((name for one in found for name in one.columns), True)
    some = next(stream.batches(numbers, batch_rows(8 * len(numbers), table.memory_limit // _FIRST)))
    first = _numbers_only(some.slice(0, 1), stream.title)
    n_batch = batch_rows(some.nbytes // some.num_rows + 8 * len(beside), table.memory_limit)
    proba, labels, classes = _head(first, found, targets, declared, isinstance(y, (list, tuple)))
    singles = [one.classes[1] if one.single else None for one in found]
    positive = singles if len(singles) > 1 else singles[0]
    reader, data = PieceReader.of(replace(spec, proba=proba, y=labels, classes=classes, pos_label=positive))
    layout = _Layout(reader, found, tuple(targets), weight, spec.groups, stream.title)
    chunks = TableChunks(stream, layout, n_rows, n_batch)
    return data, ChunkedSource(chunks, data.schema, most=table.memory_limit // _ITEM)


def _target_names(y: Any) -> list[str]:
    if y is None:
        return []
    names = [y] if isinstance(y, str) else y
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(name, str) for name in names):
        raise InvalidType("y", "be the name of the column of labels, or a list of names, if proba is a table", shown(y))
    if len(set(names)) < len(names):
        raise InvalidParameter("y", "name each column only once", shown(list(names)))
    return list(names)


# -------------------------------------------------------------------------------------------------------------- labels


@dataclass(frozen=True, eq=False)
class _Target:
    """A column of labels, of which it is known what occurs.

    Parameters
    ----------
    name : str
    labels : list
        Distinct ones, without what is missing.
    column : pyarrow.Array
        The same, with what is missing, of the type of the column.
    meaning : dict of str to label, or None
        What texts mean, where all is text.
    """

    name: str
    labels: list[Any]
    column: Any
    meaning: dict[str, Any] | None


def survey_labels(stream: Stream, names: Sequence[str]) -> list[list[Any]]:
    """Return the distinct labels of each of some columns.

    Parameters
    ----------
    stream : Stream
    names : sequence of str
    """
    return [one.labels for one in _survey(stream, names, MEMORY_LIMIT)[1]]


def _survey(stream: Stream, names: Sequence[str], memory_limit: int) -> tuple[int, list[_Target]]:
    """Read the columns of labels, and nothing else."""
    n_rows, distinct = 0, [_Distinct(name, stream.title) for name in names]
    columns = dict.fromkeys(names or stream.names[:1], False)
    for batch in stream.batches(columns, batch_rows(8 * len(columns), memory_limit)):
        n_rows += batch.num_rows
        for one in distinct:
            one.add(batch.column(one.name))
    if n_rows == 0:
        raise InvalidParameter("", problem="the table must have at least one row, got none", owner=stream.title)
    return n_rows, [one.target(stream.texts) for one in distinct]


class _Distinct:
    """What occurs in a column, batch by batch."""

    def __init__(self, name: str, title: str) -> None:
        self.name, self._title = name, title
        self._seen: dict[Any, None] = {}
        self._declared: dict[Any, None] = {}
        self._kind: Any = None

    def add(self, column: Any) -> None:
        self._kind = column.type
        if hasattr(column.type, "value_type") and hasattr(column.type, "ordered"):
            for chunk in column.chunks:
                self._declared.update(dict.fromkeys(chunk.dictionary.to_pylist()))
        found = column.unique().to_pylist()
        # NaN is not equal to itself, and would be another label every time.
        self._seen.update(dict.fromkeys(None if label != label else label for label in found))
        if len(self._seen) > _MOST_LABELS:
            raise InvalidParameter(
                "",
                problem=(
                    f"the column {shown(self.name)} must hold labels, got more than {_MOST_LABELS} distinct values"
                ),
                remedy="name another column",
                owner=self._title,
            )

    def target(self, texts: bool) -> _Target:
        import pyarrow as pa

        seen = list(self._seen)
        kept = [label for label in seen if label is not None]
        if texts:
            meaning = dict(zip(kept, labels_of_texts(kept), strict=True))
            column = pa.array([None if label is None else meaning[label] for label in seen])
            return _Target(self.name, list(meaning.values()), column, meaning)
        if self._declared:
            dictionary = pa.array([label for label in self._declared if label is not None], type=self._kind.value_type)
            place = {label: at for at, label in enumerate(dictionary.to_pylist())}
            indices = pa.array([None if label is None else place[label] for label in seen], type=pa.int32())
            column = pa.DictionaryArray.from_arrays(indices, dictionary, ordered=self._kind.ordered)
            return _Target(self.name, list(place), column, None)
        return _Target(self.name, _in_order(kept), pa.array(seen, type=self._kind), None)


def _in_order(labels: list[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:
        return labels


def _head(
    first: Any, found: Sequence[ProbabilityColumns], targets: Sequence[_Target], declared: Sequence[Any], several: bool
) -> tuple[Any, Any, Any]:
    """Return a row of probabilities and the labels that occur, which show what the table is of, and its classes."""
    outputs = [one.name for one in targets] or [""]
    proba, given = tables_of_columns(first, found, outputs, declared)
    if several and len(found) == 1:
        proba, given = proba if found[0].single else [proba], [given]
    if several and all(one is None for one in given):
        given = None
    return proba, _head_labels(targets, several), given


def _head_labels(targets: Sequence[_Target], several: bool) -> Any:
    """Return a y that has all labels that occur: of outputs that have fewer, some more than once."""
    if not targets:
        return None
    if not several:
        return targets[0].column
    import pyarrow as pa

    most = max(len(one.column) for one in targets)
    places = [np.minimum(np.arange(most), len(one.column) - 1) for one in targets]
    return pa.table({one.name: one.column.take(pa.array(at)) for one, at in zip(targets, places, strict=True)})


# ------------------------------------------------------------------------------------------------------------- columns


def _find(
    stream: Stream, table: Table, targets: Sequence[_Target], classes: Any, pos_label: Any, beside: Sequence[str]
) -> tuple[list[ProbabilityColumns], list[Any]]:
    """Find the columns of probabilities of each output, and say which were guessed."""
    if not targets and classes is None:
        raise InvalidParameter("classes", "be given without y, to identify the columns of probabilities", "None")
    n_outputs = max(len(targets), 1)
    nested = classes is not None and n_outputs > 1
    given = list(classes) if nested else [None if classes is None else list(classes)] * n_outputs
    labels: list[Any] = [one.labels for one in targets] or [given[0]]
    outputs: list[Any] = [one.name for one in targets] or [None]
    positive = pos_label if isinstance(pos_label, (list, tuple)) else [pos_label] * n_outputs
    found = proba_columns(stream, table, labels, outputs, given, positive, beside)
    return found, [all_classes(own, one, seen) for own, one, seen in zip(given, found, labels, strict=True)]


def proba_columns(
    stream: Stream,
    table: Table,
    labels: Sequence[Sequence[Any]],
    outputs: Sequence[str | None],
    classes: Sequence[Any],
    positive: Sequence[Any],
    beside: Sequence[str] = (),
    of_rule: bool = False,
) -> list[ProbabilityColumns]:
    """Find the columns of probabilities of each output.

    Parameters
    ----------
    stream : Stream
    table : Table
    labels : sequence of sequences
        Labels of each output that occur.
    outputs : sequence of str or None
        Their names.
    classes : sequence of lists or None
        All classes of each, where they are known.
    positive : sequence
        The positive class of each, or None.
    beside : sequence of str
        Columns that are no probabilities.
    of_rule : bool, default=False
        Whether the classes are those of a rule.

    Returns
    -------
    list of ProbabilityColumns
    """
    n_outputs = len(outputs)
    named: Any = [None] * n_outputs if table.proba is None else table.proba
    singles = [named] if isinstance(named, str) else list(named)
    if len(singles) != n_outputs:
        raise InvalidParameter(
            "proba", f"name a column for each of the {n_outputs} outputs", len(singles), owner="Table"
        )
    free = [name for name in stream.names if name not in beside]
    with refused_by(stream.title):
        found = [
            probability_columns(
                free,
                list(labels[m]),
                output=outputs[m],
                several=n_outputs > 1,
                prefix=table.proba_prefix,
                classes=classes[m],
                column=singles[m],
                pos_label=positive[m],
                of_rule=of_rule,
            )
            for m in range(n_outputs)
        ]
        check_singles(found, [str(name) for name in outputs])
    for one in found:
        if one.guessed_prefix is not None:
            sys.stderr.write(
                f"{stream.title}: probabilities are read from the columns {few(one.columns)}, guessed by the "
                f"prefix {shown(one.guessed_prefix)}; set mw.Table(path, proba_prefix=...) to choose.\n"
            )
    return found


def _numbers_only(table: Any, title: str) -> Any:
    """Refuse columns that hold something else than numbers."""
    for field in table.schema:
        if not str(field.type).startswith(("float", "double", "halffloat", "int", "uint", "decimal")):
            raise InvalidParameter(
                "", problem=f"the column {shown(field.name)} must hold numbers, got type {field.type}", owner=title
            )
    return table


# ----------------------------------------------------------------------------------------------------- rows of batches


@dataclass(frozen=True, eq=False)
class _Layout:
    """Which columns of a batch are what."""

    reader: PieceReader
    found: Sequence[ProbabilityColumns]
    targets: tuple[_Target, ...]
    weight: str | None
    groups: str | None
    title: str

    @property
    def columns(self) -> dict[str, bool]:
        """Columns that are read, and whether they hold numbers."""
        names = {name: True for one in self.found for name in one.columns}
        names.update({one.name: False for one in self.targets})
        if self.weight is not None:
            names[self.weight] = True
        if self.groups is not None:
            names[self.groups] = False
        return names

    def rows(self, batch: Any, start: int, check: bool) -> Rows:
        """Read a batch."""
        weight = None if self.weight is None else _numbers(batch.column(self.weight))
        groups = None if self.groups is None else batch.column(self.groups).to_numpy()
        piece = Piece(proba_of(batch, self.found, self.reader), self._labels(batch), weight, groups)
        return self.reader.rows(piece, start, check=check)

    def _labels(self, batch: Any) -> Any:
        if not self.targets:
            return None
        schema = self.reader.schema
        if len(self.targets) == 1 and not schema.multioutput and _plain(batch.column(self.targets[0].name)):
            return batch.column(self.targets[0].name).to_numpy()
        codes = np.empty((batch.num_rows, len(self.targets)), dtype=code_type(schema.width))
        for m, one in enumerate(self.targets):
            codes[:, m] = self._codes(batch.column(one.name), one, schema.classes[m])
        return Labels(codes, schema.classes, schema.multioutput)

    def _codes(self, column: Any, target: _Target, classes: NDArray[Any]) -> NDArray[Any]:
        """Codes of labels: each distinct one is looked up once."""
        encoded = (
            column.unify_dictionaries().combine_chunks() if hasattr(column.type, "ordered") else column.combine_chunks()
        )
        encoded = encoded if hasattr(encoded, "dictionary") else encoded.dictionary_encode()
        encoded = encoded.chunk(0) if hasattr(encoded, "chunks") else encoded
        place = {label: code for code, label in enumerate(_comparable(classes))}
        known = []
        for label in encoded.dictionary.to_pylist():
            label = target.meaning.get(label, label) if target.meaning is not None and label is not None else label
            if label is None or label != label:
                known.append(-1)
            elif label in place:
                known.append(place[label])
            else:
                raise InvalidParameter(
                    "",
                    problem=(
                        f"the column {shown(target.name)} must hold the same labels in every pass, got the "
                        f"new label {shown(label)}"
                    ),
                    owner=self.title,
                )
        table = np.array([*known, -1], dtype=np.intp)  # -1, the last, is where a missing label looks
        return np.asarray(table[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)])


def proba_of(batch: Any, found: Sequence[ProbabilityColumns], reader: PieceReader) -> Any:
    """Return the probabilities of a batch in the order of the classes, as arrays that the reader of pieces takes."""
    classes = reader.schema.classes
    if found[0].single:
        if not reader.multioutput:
            return _matrix(batch, [found[0].columns[0]])[:, 0]
        return _matrix(batch, [one.columns[0] for one in found])
    arrays = []
    for one, labels in zip(found, classes, strict=True):
        place = dict(zip(one.classes, one.columns, strict=True))
        arrays.append(_matrix(batch, [place[label] for label in _comparable(labels)]))
    return arrays if reader.multioutput else arrays[0]


def _comparable(labels: NDArray[Any]) -> list[Any]:
    """Labels as Arrow's own are once they are Python's: dates and times are."""
    return labels.tolist() if labels.dtype.kind in "mM" else python_labels(labels)


def _plain(column: Any) -> bool:
    """Whether labels are integers, none missing, which are read as an array is."""
    return str(column.type).startswith(("int", "uint")) and column.null_count == 0


def _numbers(column: Any) -> NDArray[Any]:
    """A column of numbers as an array; what is missing is NaN."""
    array: NDArray[Any] = column.to_numpy()
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _matrix(batch: Any, names: Sequence[str]) -> NDArray[Any]:
    """Columns as an array (n, K), each of them one stretch of memory, of the widest of their types."""
    columns = [batch.column(name) for name in names]
    kinds = {str(column.type) for column in columns}
    small = {"halffloat": np.float16, "float": np.float32}
    dtype = small[next(iter(kinds))] if len(kinds) == 1 and kinds <= set(small) else np.float64
    out = np.empty((len(columns), batch.num_rows), dtype=dtype)
    for own, column in zip(out, columns, strict=True):
        at = 0
        for chunk in column.chunks:
            own[at : at + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
            at += len(chunk)
    return out.T


@dataclass(frozen=True, eq=False)
class TableChunks:
    """Batches of a table as rows, read anew whenever they are gone through.

    Parameters
    ----------
    stream : Stream
    layout : object
        Which columns are what.
    n_rows : int
        N.
    n_batch : int
        Rows that are read at a time.
    """

    stream: Stream
    layout: _Layout
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

    def reads(self) -> Iterator[Read]:
        """Yield what makes rows of each batch."""
        start, check = 0, not vars(self).get("_checked", False)
        for batch in self.stream.batches(self.layout.columns, self.n_batch):
            yield partial(self.layout.rows, batch, start, check)
            start += batch.num_rows
        if start != self.n_rows:
            raise RuntimeError(
                f"{self.stream.title}: the number of rows must not change, got {self.n_rows} at first and "
                f"{start} in a later pass."
            )
        if self.stream.lasting:
            vars(self)["_checked"] = True
