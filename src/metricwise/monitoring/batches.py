"""Batches of decided rows: rows that wait for their labels, by id, and a record of every batch.

Must not know metrics or evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, mention, shown

__all__ = [
    "Batch",
    "MAX_WAITING_ROWS",
    "Waiting",
    "WaitingRow",
    "neglect_error",
    "neglected_decision",
    "thinned",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Id = str | int

MAX_WAITING_ROWS = 200_000  # rows whose labels may still come
MAX_REMEMBERED_IDS = 200_000  # rows that have a label, whose ids are refused if they come again
MAX_BATCHES = 1_000  # records, before neighbours are joined
_NEGLECTED = 0.5  # of the share of labelled rows among other decisions: rows of a decision with fewer are neglected
_STANDARD_ERRORS = 5.0  # beyond chance


class WaitingRow(NamedTuple):
    """A row that was decided and has no label."""

    batch: int
    decisions: tuple[int, ...]
    group: int | None = None


@dataclass(frozen=True, eq=False)
class Waiting:
    """Rows by id: those that wait for a label, and those that have got one.

    Parameters
    ----------
    rows : mapping of ids to WaitingRow
        In the order in which they were decided.
    labelled : mapping of ids to None
        Ids of the last rows that have got a label, oldest first.
    n_forgotten : int
        Rows that are no longer waited for.
    """

    rows: Mapping[Id, WaitingRow] = field(default_factory=dict)
    labelled: Mapping[Id, None] = field(default_factory=dict)
    n_forgotten: int = 0

    def check_new(self, ids: Sequence[Id]) -> None:
        """Refuse ids of rows that were decided before."""
        for name in ids:
            if name in self.rows:
                got = f"{shown(name)}, which was decided in batch {self.rows[name].batch} and waits for its label"
                raise InvalidParameter("ids", "be of rows that were not decided before", got)
            if name in self.labelled:
                got = f"{shown(name)}, which was decided before and has its label"
                raise InvalidParameter("ids", "be of rows that were not decided before", got)

    def added(self, rows: Mapping[Id, WaitingRow], labelled: Iterable[Id] = ()) -> Waiting:
        """Return all with further rows, some of which wait."""
        waiting = {**self.rows, **rows}
        if len(waiting) > MAX_WAITING_ROWS:
            raise InvalidParameter(
                "ids",
                problem=f"{len(waiting):,} rows would wait for their labels, more than {MAX_WAITING_ROWS:,}",
                remedy=f"pass labels, set {argument('forget_after')} in watch, or give no ids to rows whose labels "
                "will not come",
            )
        return Waiting(waiting, self._remembered(labelled), self.n_forgotten)

    def taken(self, ids: Sequence[Id]) -> tuple[list[WaitingRow], Waiting]:
        """Return the rows of some ids, which get labels, and what waits then."""
        for name in ids:
            if name in self.labelled:
                got = f"{shown(name)}, which has its label already"
                raise InvalidParameter("ids", "be of rows that wait for their labels", got)
            if name not in self.rows:
                raise InvalidParameter(
                    "ids",
                    "be of rows that wait for their labels",
                    f"{shown(name)}, which was never decided with this id, or is no longer waited for",
                    self._advice(ids),
                )
        gone = set(ids)
        waiting = {name: row for name, row in self.rows.items() if name not in gone}
        return [self.rows[name] for name in ids], Waiting(waiting, self._remembered(ids), self.n_forgotten)

    def _advice(self, ids: Sequence[Id]) -> str:
        """Say what to do about ids that do not wait."""
        as_text = {str(name): name for name in self.rows}
        unknown = [name for name in ids if name not in self.rows]
        other_type = next((as_text[str(name)] for name in unknown if str(name) in as_text), None)
        if other_type is not None:
            return f"ids are compared with their type, and {shown(other_type)} waits"
        return f"leave out ids that do not wait, which are {len(unknown)} of {len(ids)}"

    def without_older(self, oldest: int) -> Waiting:
        """Return those that were decided in a batch or later."""
        waiting = {name: row for name, row in self.rows.items() if row.batch >= oldest}
        return Waiting(waiting, self.labelled, self.n_forgotten + len(self.rows) - len(waiting))

    def _remembered(self, ids: Iterable[Id]) -> Mapping[Id, None]:
        remembered = {**self.labelled, **dict.fromkeys(ids)}
        surplus = len(remembered) - MAX_REMEMBERED_IDS
        return remembered if surplus <= 0 else dict.fromkeys(islice(remembered, surplus, None))


# -------------------------------------------------------------------------------------------------- records of batches


@dataclass(frozen=True, eq=False)
class Batch:
    """What is kept of a batch, or of neighbouring ones.

    Parameters
    ----------
    first, last : int
        Numbers of the batches.
    decided, labelled : integer ndarray of shape (M, D)
        Rows of each decision about each output, and those of them whose label is known by now.
    sums : tuple of ndarrays of shape (2, P)
        For each promise, sums of the numerators and denominators of the rows that were decided in these batches.
    evidence : tuple of float or None
        For each promise, the logarithm of the e-value after the batch.
    estimates : tuple of (float, float, float) or None
        For each promise, its value on all rows up to then and an interval.
    """

    first: int
    last: int
    decided: IntArray
    labelled: IntArray
    sums: tuple[FloatArray, ...]
    evidence: tuple[float | None, ...]
    estimates: tuple[tuple[float, float, float] | None, ...]

    def joined(self, later: Batch) -> Batch:
        """Return the record of both."""
        return Batch(
            self.first,
            later.last,
            self.decided + later.decided,
            self.labelled + later.labelled,
            tuple(a + b for a, b in zip(self.sums, later.sums, strict=True)),
            later.evidence,
            later.estimates,
        )


def thinned(batches: Sequence[Batch]) -> tuple[Batch, ...]:
    """Return records of a long stream with neighbours joined in pairs, so that what is kept does not grow."""
    if len(batches) <= MAX_BATCHES:
        return tuple(batches)
    pairs = [batches[at].joined(batches[at + 1]) for at in range(0, len(batches) - 1, 2)]
    return (*pairs, *batches[2 * len(pairs) :])


def neglected_decision(batches: Sequence[Batch]) -> tuple[int, int] | None:
    """Return an output and a decision whose rows get labels clearly less often than others of the same batches.

    Within each batch, labels that are missing at random hit all decisions alike; the sum over batches of labelled rows
    less expected ones is compared with its standard error, as in the test of Cochran, Mantel and Haenszel. Batches are
    compared with themselves only, because labels of later ones may still come. A decision is neglected if its rows are
    labelled less than half as often as expected, by five standard errors: chance does that in one of three million
    looks, and 25 labels that should be there suffice, or fewer.
    """
    decided, labelled = (
        np.array([getattr(batch, name) for batch in batches], dtype=np.float64) for name in ("decided", "labelled")
    )
    n_rows, n_labelled = decided.sum(axis=2, keepdims=True), labelled.sum(axis=2, keepdims=True)
    share = np.divide(n_labelled, n_rows, out=np.zeros_like(n_rows), where=n_rows > 0)
    expected = (decided * share).sum(axis=0)
    spread = share * (1 - share) * decided * (n_rows - decided) / np.maximum(n_rows - 1, 1)
    actual, error = labelled.sum(axis=0), np.sqrt(spread.sum(axis=0))
    clear = (actual < _NEGLECTED * expected) & (expected - actual > _STANDARD_ERRORS * error) & (error > 0)
    places = np.argwhere(clear)
    return (int(places[0][0]), int(places[0][1])) if len(places) else None


def neglect_error(output: str, decision: Any, counts: tuple[int, int]) -> InvalidParameter:
    """Return the error that asks how labels are missing."""
    n_labelled, n_decided = counts
    return InvalidParameter(
        "labelled",
        problem=f"of {n_decided:,} rows with the decision {shown(decision)}{output}, {n_labelled:,} have labels, far "
        "fewer than of the others in the same batches, so that labels are not missing at random",
        remedy=f"set {argument('labelled', 'by_decision')} if whether a label becomes known depends on the decision, "
        f"and watch what is then known; if labels of some decisions only come later, pass {mention('y')} for all rows "
        "of a batch at once",
    )
