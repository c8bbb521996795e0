"""Dask arrays and data frames as a source of rows.

Sizes and labels of all chunks are collected in one pass; chunks are read on the workers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from ...core.errors import InvalidParameter, shown
from ...core.probabilities import Probabilities
from ...core.rows import Rows
from ...core.schema import Schema
from ..encoding import distinct_values
from ..frames import is_frame, is_lazy
from ..row_spec import Piece, ReadHead, RowReader, RowSpec
from ..sensitive import distinct_groups, partition_of
from .dask import DaskSource
from .dask_batches import batches_of
from .dask_tasks import add_up, call, compute, leaf

__all__ = ["read_collection", "read_unlabelled_collection"]

_ABSENT, _UNEQUAL = -1, -2  # in the place of a number of rows: of what is not given, of arrays that differ


def read_collection(spec: RowSpec, read_head: ReadHead) -> DaskSource:
    """Open a Dask collection; see :func:`metricwise.optimize`.

    Parameters
    ----------
    spec : RowSpec
        Its y, weights and groups are Dask collections in chunks like those of the probabilities; what is in memory is
        cut so.

    read_head : callable
        Returns the reader of all rows by a row of probabilities and the labels that occur.
    """
    if spec.time is not None:
        raise InvalidParameter(
            "groups", problem="InTime needs all rows in memory, to sort them", remedy="pass groups, such as the month"
        )
    sensitive = None if spec.sensitive is None else spec.sensitive.values
    sensitive = sensitive if is_lazy(sensitive) else None  # what is in memory is looked up by position
    inputs = {"proba": spec.proba, "y": spec.y, "sample_weight": spec.weight, "groups": spec.groups}
    inputs["sensitive_features"] = sensitive
    parts = _Parts(spec.proba)
    columns = [parts.cut(value, name) for name, value in inputs.items()]
    raw = [call(_piece, *blocks) for blocks in zip(*columns, strict=True)]
    question = leaf(_summary)
    summary = compute(add_up([batch.ask(question) for batch, _ in batches_of(raw)], _Summary.add))
    sizes = _checked_sizes(summary.sizes, list(inputs))
    reader = read_head(replace(spec, proba=summary.head, y=_joined_labels(summary.labels, summary.frame)))
    row_bytes = _row_bytes(spec, reader, summary.head)
    if summary.sensitive is not None:
        names, features = summary.sensitive
        reader = replace(reader, partition=partition_of(names, features, spec.known_groups))  # type: ignore[type-var]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    filled = np.flatnonzero(sizes)
    n_bytes = starts[-1] * row_bytes
    pieces, begins, sent = [], [], leaf(reader)
    for batch, span in batches_of([raw[chunk] for chunk in filled], n_bytes):
        some = starts[filled[span]].tolist()
        pieces.append(batch.map(_rows, some, sent))
        begins.append(some[0])
    source = DaskSource(
        tuple(pieces),
        np.append(begins, starts[-1]),
        reader.schema,
        has_labels=spec.y is not None,
        has_weights=spec.weight is not None,
        partition=reader.partition,
    )
    source.keep(n_bytes)
    return source


def read_unlabelled_collection(proba: Any, schema: Schema, read: Callable[[Any], Probabilities]) -> DaskSource:
    """Open a Dask collection of probabilities without labels; see :func:`metricwise.data.open.open_unlabelled`."""
    blocks = _Parts(proba).cut(proba, "proba")
    sizes = compute(add_up([call(_length, block) for block in blocks], operator.add))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
    sent = leaf(_Read(read))
    pieces = tuple(
        call(_unlabelled, block, sent, int(start))
        for block, start, size in zip(blocks, starts[:-1], sizes, strict=True)
        if size
    )
    source = DaskSource(pieces, np.append(starts[:-1][np.array(sizes) > 0], starts[-1]), schema)
    source.keep(source.n_rows * source.take(np.zeros(1, dtype=np.intp)).n_bytes)
    return source


class _Read:
    """How probabilities are read. Not a dataclass, into which Dask would look."""

    def __init__(self, read: Callable[[Any], Probabilities]) -> None:
        self.read = read


def _length(proba: Any) -> list[int]:
    return [len(proba[0] if isinstance(proba, (list, tuple)) else proba)]


def _unlabelled(proba: Any, reader: _Read, start: int) -> Rows:
    return Rows(reader.read(proba), start=start)


def _piece(proba: Any, y: Any, weight: Any, groups: Any, sensitive: Any) -> Piece:
    return Piece(proba, y, weight, groups, sensitive)


def _rows(pieces: Iterable[Piece], starts: Sequence[int], reader: RowReader) -> Iterator[Rows]:
    return (reader.rows(piece, start) for piece, start in zip(pieces, starts, strict=True))


def _row_bytes(spec: RowSpec, reader: RowReader, head: Any) -> int:
    """Return the memory of a row, by one of probabilities."""
    n_others = sum(values is not None for values in (spec.weight, spec.groups, spec.sensitive))
    n_labels = 0 if spec.y is None else reader.schema.n_outputs
    return reader.rows(Piece(head)).n_bytes + 8 * (n_others + n_labels)


# -------------------------------------------------------------------------------------------------------------- chunks


class _Parts:
    """How the probabilities are cut into chunks of rows, which all else follows."""

    def __init__(self, proba: Any) -> None:
        first = proba[0] if isinstance(proba, (list, tuple)) else proba
        self._n_chunks, self._sizes, self._of_arrays = first.npartitions, None, hasattr(first, "chunks")
        if self._of_arrays:
            self._n_chunks = len(first.chunks[0])
            if not any(size != size for size in first.chunks[0]):  # NaN where they are not known
                self._sizes = first.chunks[0]

    def cut(self, values: Any, name: str) -> list[Any]:
        """Return the chunks of what goes with the probabilities, as tasks or in memory; None for each if it is None."""
        if values is None:
            return [None] * self._n_chunks
        if isinstance(values, (list, tuple)) and values and is_lazy(values[0]):
            if name != "proba" or not all(map(is_lazy, values)):
                must = "be Dask collections, all of them" if name == "proba" else "be one Dask collection"
                raise InvalidParameter(name, must, f"a list of {len(values)}")
            return [
                list(blocks) for blocks in zip(*(self._delayed(collection, name) for collection in values), strict=True)
            ]
        return self._delayed(values, name) if is_lazy(values) else self._cut_in_memory(values, name)

    def _delayed(self, values: Any, name: str) -> list[Any]:
        if hasattr(values, "chunks"):
            whole = dict.fromkeys(range(1, values.ndim), -1)
            if self._sizes is not None and len(values.chunks[0]) > 0 and not np.isnan(values.chunks[0]).any():
                if sum(values.chunks[0]) != sum(self._sizes):
                    raise InvalidParameter(
                        name, f"have as many rows as proba, {sum(self._sizes)}", sum(values.chunks[0])
                    )
                whole[0] = self._sizes
            blocks = values.rechunk(whole).to_delayed().reshape(-1).tolist() if whole else list(values.to_delayed())
        else:
            # Not optimised: partitions would be joined, and those of proba otherwise than those of y; as it is, both
            # are made of one reading of the frame that they are columns of.
            blocks = list(values.to_delayed(optimize_graph=False))
        if len(blocks) != self._n_chunks:
            raise InvalidParameter(
                name,
                f"have the same chunks as proba, {self._n_chunks}",
                len(blocks),
                "repartition or rechunk one like the other",
            )
        return blocks

    def _cut_in_memory(self, values: Any, name: str) -> list[Any]:
        if isinstance(values, str):
            raise InvalidParameter(
                name,
                "be a Dask collection or an array, not the name of a column",
                shown(values),
                f"pass proba[{values!r}], and of proba the columns of probabilities only",
            )
        if self._sizes is None:
            raise InvalidParameter(
                name,
                "be a Dask collection with the same chunks as proba, whose chunks do not know their number of rows",
                shown(values),
                "call compute_chunk_sizes() first" if self._of_arrays else "pass a column of the same Dask data frame",
            )
        total = sum(self._sizes)
        values = values if is_frame(values) or hasattr(values, "iloc") else np.asarray(values)
        if len(values) != total:
            raise InvalidParameter(name, f"have as many rows as proba, {total}", len(values))
        ends = np.cumsum(self._sizes)
        rows = values.iloc if hasattr(values, "iloc") else values
        return [rows[int(end) - size : int(end)] for end, size in zip(ends, self._sizes, strict=True)]


# ---------------------------------------------------------------------------------------------- one look at all chunks


@dataclass(frozen=True, eq=False)
class _Summary:
    """What must be known of all chunks before any is read: how long each is, and which labels occur.

    Parameters
    ----------
    sizes : list of tuples
        Rows of the probabilities, of the labels, and so on, of each chunk, or one of `_ABSENT` and `_UNEQUAL`.
    labels : list of arrays or series, or None
        Distinct labels of each output, missing ones among them.
    frame : object
        An empty y, which shows what kind of table it is.
    head : object
        The first row of the probabilities.
    sensitive : (list, tuple or None), optional
        Sensitive groups that occur, and the names of their columns.
    """

    sizes: list[tuple[int, ...]]
    labels: list[Any] | None
    frame: Any
    head: Any
    sensitive: tuple[list[Any], tuple[str, ...] | None] | None = None

    @classmethod
    def of(cls, piece: Piece) -> _Summary:
        """Look at one chunk."""
        lists = isinstance(piece.proba, (list, tuple))
        lengths = [len(output) for output in piece.proba] if lists else [len(piece.proba)]
        others = [_ABSENT if values is None else len(values) for values in piece[1:]]
        size = (lengths[0] if len(set(lengths)) == 1 else _UNEQUAL, *others)
        labels = None if piece.y is None else [_distinct([column]) for column in _columns(piece.y)]
        empty = None if piece.y is None else piece.y[:0]
        head = (
            None if min(lengths) == 0 else [_first(output) for output in piece.proba] if lists else _first(piece.proba)
        )
        sensitive = None if piece.partition is None else distinct_groups(piece.partition, len(piece.partition))
        return cls([size], labels, empty, head, sensitive)

    def add(self, other: _Summary) -> _Summary:
        """Put together what was seen."""
        labels = self.labels
        if labels is not None and other.labels is not None:
            labels = [_distinct(pair) for pair in zip(labels, other.labels, strict=True)]
        sensitive = self.sensitive
        if sensitive is not None and other.sensitive is not None:
            sensitive = list(dict.fromkeys([*sensitive[0], *other.sensitive[0]])), sensitive[1]
        head = other.head if self.head is None else self.head
        return _Summary(self.sizes + other.sizes, labels, self.frame, head, sensitive)


def _summary(pieces: Iterable[Piece]) -> _Summary:
    return reduce(_Summary.add, map(_Summary.of, pieces))


def _first(proba: Any) -> Any:
    return proba.iloc[:1] if hasattr(proba, "iloc") else proba[:1]


def _columns(y: Any) -> list[Any]:
    """The columns of labels of one output or several."""
    if hasattr(y, "columns"):
        return [y[name] for name in y.columns]
    return [y] if y.ndim == 1 else [y[:, m] for m in range(y.shape[1])]


def _distinct(columns: Sequence[Any]) -> Any:
    """What occurs in some columns, as a series of pandas where they are, which keeps categories."""
    if hasattr(columns[0], "iloc"):
        import pandas as pd

        filled = [column for column in columns if len(column)] or columns[:1]
        return pd.concat(filled).drop_duplicates() if len(filled) > 1 else filled[0].drop_duplicates()
    return distinct_values([np.asarray(column) for column in columns])


def _joined_labels(labels: list[Any] | None, frame: Any) -> Any:
    """Return labels that occur as a y that has them all: of outputs that have fewer, some more than once."""
    if labels is None:
        return None
    if frame.ndim == 1:
        return labels[0]
    n_rows = max(max(map(len, labels)), 1)
    places = [np.minimum(np.arange(n_rows), max(len(output_labels) - 1, 0)) for output_labels in labels]
    if hasattr(frame, "columns"):
        import pandas as pd

        columns = [
            output_labels.iloc[place].reset_index(drop=True)
            for output_labels, place in zip(labels, places, strict=True)
        ]
        return pd.concat(columns, axis=1, keys=frame.columns)
    return np.stack([output_labels[place] for output_labels, place in zip(labels, places, strict=True)], axis=1)


def _checked_sizes(sizes: list[tuple[int, ...]], names: list[str]) -> Any:
    """Return the rows of each chunk; refuse others than there are in the probabilities."""
    for chunk, size in enumerate(sizes):
        for name, n_rows in zip(names, size, strict=True):
            if n_rows == _UNEQUAL:
                raise InvalidParameter(
                    "proba",
                    problem=(
                        f"the arrays of proba must have the same number of rows, which they do not in chunk {chunk}"
                    ),
                )
            if n_rows not in (_ABSENT, size[0]):
                raise InvalidParameter(
                    name,
                    "have as many rows as proba in every chunk",
                    f"{n_rows} where proba has {size[0]} in chunk {chunk}",
                    "repartition or rechunk one like the other",
                )
    n_rows_of_chunks = np.array([size[0] for size in sizes], dtype=np.intp)
    if n_rows_of_chunks.sum() == 0:
        raise InvalidParameter("proba", "have at least one row", f"none in {len(sizes)} chunks")
    return n_rows_of_chunks
