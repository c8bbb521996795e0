"""Tables whose rows hold labels as lists: the labels that are stored, their probabilities, and the true labels.

All rows become one sparse array, or sparse arrays batch by batch. Must not know metrics or rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidParameter, InvalidType, argument, shown
from ...core.inputs import Input
from ...core.label_rows import entry_type
from ..logits import OTHER_RULE
from ..row_spec import Frequencies, RowSpec
from .reading import Table, TableReader, batch_rows, check_numbers, closed, open_table

__all__ = ["ListColumns", "load_list_table"]

LongArray = NDArray[np.int64]

_TRIAL_ROWS = 1 << 12  # of the first batch, which shows the bytes of a row
_LIST_TYPES = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
_OTHER_INPUT = (
    f"pass {argument('input', 'logits')} for numbers before a sigmoid, {argument('input', 'scores')} for scores of any "
    "other scale"
)


@dataclass(frozen=True, eq=False)
class ListColumns:
    """The columns of a table that hold lists, and how they are read.

    Parameters
    ----------
    reader : TableReader
    table : Table
    n_labels : int
        M.
    kind : str, default="probabilities"
        What the numbers of labels are, as in `Input`.
    by_rule : bool, default=False
        Whether a rule takes them so, rather than the user.
    """

    reader: TableReader
    table: Table
    n_labels: int
    kind: str = "probabilities"
    by_rule: bool = False

    @classmethod
    def open(cls, table: Table, kind: str = "probabilities", n_labels: int | None = None) -> ListColumns:
        """Open a table of lists; `n_labels` is the number of labels of a rule, by which the table is read."""
        known = n_labels is not None
        if n_labels is None:
            n_labels = table.n_labels
        elif table.n_labels not in (None, n_labels):
            raise InvalidParameter(
                "n_labels", f"be {n_labels}, which the rule has", table.n_labels, "leave it out", owner="Table"
            )
        if n_labels is None:
            raise InvalidParameter(
                "Table.n_labels",
                problem="the number of labels must be given to fit a rule to lists of labels, because labels that do "
                "not occur in these rows are labels too",
                remedy=f"pass {argument('Table.n_labels')}",
            )
        reader = open_table(table)
        if reader.has_texts:
            raise InvalidParameter(
                "", problem="CSV has no lists", remedy="use Parquet, Feather or a data frame", owner=reader.title
            )
        return cls(reader, table, int(n_labels), kind, known)

    def batches(self, others: Sequence[str] = ()) -> Iterator[tuple[int, Any]]:
        """Yield batches of rows with the number of the first row; `others` are columns besides the stored labels."""
        assert self.table.indices is not None and self.table.values is not None
        names = dict.fromkeys((self.table.indices, self.table.values, *others), False)
        limit = self.table.memory_limit
        with closed(self.reader.batches(names, _TRIAL_ROWS)) as batches:
            first = next(batches, None)
        if first is None:
            raise InvalidParameter(
                "", problem="the table must have at least one row, got none", owner=self.reader.title
            )
        n_batch, start = batch_rows(first.nbytes // first.num_rows, limit), 0
        with closed(self.reader.batches(names, n_batch)) as batches:
            for batch in batches:
                yield start, batch
                start += batch.num_rows

    def stored(self, batch: Any, start: int) -> _Lists:
        """Return the stored labels of a batch and their numbers, in order within each row."""
        labels, numbers = self.table.indices, self.table.values
        assert labels is not None and numbers is not None
        counts, indices = self._labels(batch, labels, start)
        lengths, values = self._flat(batch.column(numbers), numbers, start, "numbers")
        unequal = np.flatnonzero(counts != lengths)
        if len(unequal):
            row = int(unequal[0])
            self._refuse(
                f"the columns {shown(labels)} and {shown(numbers)} must have lists of equal length, got "
                f"{counts[row]} and {lengths[row]} entries in row {start + row}"
            )
        lists = _Lists(counts, indices, values.astype(entry_type(values.dtype), copy=False))
        self._check_values(lists, start)
        return self._sorted(lists, labels, start)

    def true(self, batch: Any, name: str, start: int) -> _Lists:
        """Return the true labels of a batch, in order within each row."""
        counts, indices = self._labels(batch, name, start)
        return self._sorted(_Lists(counts, indices, np.ones(len(indices), dtype=np.int8)), name, start)

    def _refuse(self, problem: str, remedy: str = "") -> NoReturn:
        raise InvalidParameter("", problem=problem, remedy=remedy, owner=self.reader.title)

    def _flat(self, column: Any, name: str, start: int, what: str) -> tuple[LongArray, NDArray[Any]]:
        """Return the length of each list and the entries of all, of a column of lists without nulls."""
        from pyarrow import compute, types

        kind = column.type
        if not any(getattr(types, test, lambda _: False)(kind) for test in _LIST_TYPES):
            self._refuse(f"the column {shown(name)} must hold lists of {what}, got type {kind}")
        if column.null_count:
            row = start + column.is_null().to_pylist().index(True)
            self._refuse(
                f"the column {shown(name)} must hold a list in every row, got none in row {row}",
                "drop such rows, or write an empty list where there is no label",
            )
        inner = kind.value_type
        accepted = types.is_integer(inner) or (what == "numbers" and types.is_floating(inner))
        lengths, flats = [np.zeros(0, dtype=np.int64)], []
        for chunk in column.chunks:
            lengths.append(compute.list_value_length(chunk).to_numpy(zero_copy_only=False).astype(np.int64))
            flat = chunk.flatten()
            if len(flat) and not accepted:
                self._refuse(f"the column {shown(name)} must hold lists of {what}, got type {kind}")
            if flat.null_count:
                at = flat.is_null().to_pylist().index(True)
                row = start + sum(map(len, lengths[:-1])) + int(np.searchsorted(np.cumsum(lengths[-1]), at, "right"))
                self._refuse(f"the column {shown(name)} must not have nulls in its lists, got one in row {row}")
            if accepted:
                flats.append(flat.to_numpy(zero_copy_only=False))
        empty = np.zeros(0, dtype=np.int32 if what == "labels" else np.float32)
        return np.concatenate(lengths), np.concatenate(flats) if flats else empty

    def _labels(self, batch: Any, name: str, start: int) -> tuple[LongArray, NDArray[Any]]:
        """Return the number of labels of each row, and the labels of all, which are in range."""
        counts, indices = self._flat(batch.column(name), name, start, "labels")
        wrong = np.flatnonzero((indices < 0) | (indices >= self.n_labels))
        if len(wrong):
            label, row = indices[wrong[0]], start + _row_of(counts, int(wrong[0]))
            self._refuse(
                f"the column {shown(name)} must have labels from 0 to {self.n_labels - 1}, got label {label} in row "
                f"{row}",
                "labels are counted from 0" if label == self.n_labels else "",
            )
        return counts, indices.astype(np.int32, copy=False)

    def _check_values(self, lists: _Lists, start: int) -> None:
        """Refuse what is no probability, or no number."""
        values, name = lists.values, self.table.values
        if self.kind == "probabilities":
            wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
            must, remedy = "probabilities from 0 to 1", OTHER_RULE.for_scores if self.by_rule else _OTHER_INPUT
        else:
            wrong, must, remedy = np.flatnonzero(np.isnan(values)), Input.of(self.kind).plural, ""
        if len(wrong):
            at = int(wrong[0])
            value, row = values[at], start + _row_of(lists.counts, at)
            self._refuse(
                f"the column {shown(name)} must hold {must}, got {value} for label {lists.indices[at]} in row {row}",
                "drop such rows" if np.isnan(value) else remedy,
            )

    def _sorted(self, lists: _Lists, name: str, start: int) -> _Lists:
        """Return lists with the labels in order within each row; refuse a label that is there twice."""
        indices, firsts = lists.indices, np.cumsum(lists.counts)[:-1]
        falls = np.diff(indices) <= 0
        falls[firsts[(firsts > 0) & (firsts < len(indices))] - 1] = False
        if not falls.any():
            return lists
        row = np.repeat(np.arange(len(lists.counts)), lists.counts)
        order = np.lexsort((indices, row))
        indices = indices[order]
        twice = np.flatnonzero((np.diff(indices) == 0) & (np.diff(row) == 0))
        if len(twice):
            at = int(twice[0])
            self._refuse(
                f"the column {shown(name)} must have every label of a row once, got label {indices[at]} more than once "
                f"in row {start + row[at]}"
            )
        return _Lists(lists.counts, indices, lists.values[order])


@dataclass(frozen=True, eq=False)
class _Lists:
    """Labels of rows and their numbers: of row i, as many as ``counts[i]``."""

    counts: LongArray
    indices: NDArray[Any]
    values: NDArray[Any]

    def csr(self, n_labels: int) -> Any:
        """Return them as a sparse array (N, M), without a copy."""
        from scipy import sparse

        indptr = np.append(0, np.cumsum(self.counts))
        if indptr[-1] <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        return sparse.csr_array((self.values, self.indices, indptr), shape=(len(self.counts), n_labels))


def _row_of(counts: LongArray, entry: int) -> int:
    return int(np.searchsorted(np.cumsum(counts), entry, side="right"))


@dataclass
class _Gathered:
    """Lists of batches, to be joined; parts are given up as they are."""

    parts: list[_Lists] = field(default_factory=list)

    def joined(self) -> _Lists:
        counts = np.concatenate([part.counts for part in self.parts])
        indices = [part.indices for part in self.parts]
        values = [part.values for part in self.parts]
        self.parts.clear()
        return _Lists(counts, _join(indices), _join(values))


def _join(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays as one, and forget them."""
    joined = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    arrays.clear()
    return joined


def load_list_table(spec: RowSpec, n_labels: int | None = None) -> RowSpec:
    """Return the rows of a table of lists with its columns in memory: probabilities and labels as sparse arrays.

    Parameters
    ----------
    spec : RowSpec
        Whose `proba` is a Table with lists; `y`, `sample_weight` and `groups` are names of columns.
    n_labels : int, optional
        Number of labels of the rule that the rows are for; by default, that of the table.

    Returns
    -------
    RowSpec

    Examples
    --------
    >>> import metricwise as mw
    >>> import pyarrow as pa
    >>> from metricwise.data.tables.label_lists import load_list_table
    >>> from metricwise.data.row_spec import RowSpec
    >>> frame = pa.table({"label": [[2, 0], []], "p": [[0.7, 0.1], []], "true": [[2], [1]]})
    >>> rows = load_list_table(RowSpec(mw.Table(frame, indices="label", values="p", n_labels=3), "true"))
    >>> rows.proba.toarray().tolist(), rows.y.toarray().tolist()
    ([[0.1, 0.0, 0.7], [0.0, 0.0, 0.0]], [[0, 0, 1], [0, 1, 0]])
    """
    table, y, time = spec.proba, spec.y, spec.time
    if y is not None and not isinstance(y, str):
        raise InvalidType("y", "be the name of the column of lists of true labels", shown(y))
    by_row = {"sample_weight": spec.weight, "groups": spec.clusters if time is None else time.time}
    names = {parameter: name for parameter, name in by_row.items() if name is not None}
    for parameter, name in names.items():
        if not isinstance(name, str):
            raise InvalidType(parameter, "be the name of a column of the table", shown(name))
    columns = ListColumns.open(table, Input.of(spec.input).kind, n_labels)
    stored, true = _Gathered(), _Gathered()
    others: dict[str, list[NDArray[Any]]] = {parameter: [] for parameter in names}
    with closed(columns.batches([name for name in (y, *names.values()) if name is not None])) as batches:
        for start, batch in batches:
            stored.parts.append(columns.stored(batch, start))
            if y is not None:
                true.parts.append(columns.true(batch, y, start))
            if "sample_weight" in names:
                check_numbers(batch.select([names["sample_weight"]]), columns.reader.title)
            for parameter, name in names.items():
                others[parameter].append(batch.column(name).to_numpy())
    count, read = columns.n_labels, {parameter: np.concatenate(parts) for parameter, parts in others.items()}
    weight, groups = read.get("sample_weight"), read.get("groups")
    return replace(
        spec,
        proba=stored.joined().csr(count),
        y=None if y is None else true.joined().csr(count),
        sample_weight=Frequencies(weight) if spec.counts_rows else weight,
        groups=groups if time is None else replace(time, time=groups),
    )
