"""The interface of a source of rows, and what every source does alike."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..inputs import Schema
from ..kernels import tally
from ..rows import GLANCE, Rows
from ..sampling import by_keys, draw_rows, number_copies
from .passes import Passes

__all__ = ["Source", "SourceBase"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
KeyArray = NDArray[np.uint64]
T = TypeVar("T")

_RUN = 16  # neighbours, which cost less to read than rows one by one


class Source(Protocol):
    """Rows, wherever they lie.

    Attributes
    ----------
    schema : Schema
    n_rows : int
        N.
    labelled : bool
        Whether rows have labels.
    class_weights : ndarray of shape (M, K)
        Weight of the labels of each class of each output.
    class_rows : ndarray of shape (M, K)
        Rows of positive weight that show each class of each output; of a sample, what they stand for.
    passes : Passes
        What has been read, for this source or what was made of it.
    """

    @property
    def schema(self) -> Schema: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def labelled(self) -> bool: ...

    @property
    def class_weights(self) -> FloatArray: ...

    @property
    def class_rows(self) -> FloatArray: ...

    @property
    def passes(self) -> Passes: ...

    def reduce(
        self, ask: Callable[[Rows], T], add: Callable[[T, T], T] = operator.add, n_outputs: int | None = None
    ) -> T:
        """Ask all rows, some of them at a time, and add up what they say, in order: one pass.

        Parameters
        ----------
        ask : callable
            From some rows, with their position in `start`, to something small.
        add : callable
            Of two such things. Counts add up unnormalised, and are equal however the rows are cut.
        n_outputs : int, optional
            How many outputs are read, M by default: what the pass counts for.
        """
        ...

    def map(self, change: Callable[[Rows], Rows]) -> Source:
        """Return the source of changed rows: changed at once where they are in memory, else whenever they are read.

        Labels and weights stay what they are.
        """
        ...

    def of_outputs(self, outputs: IntArray) -> Source:
        """Return the source of some of the outputs, given by position in order; reading them counts by their number."""
        ...

    def sample(self, n_rows: int, seed: int = 0) -> Rows:
        """Return about so many rows in memory, stratified by class and weighted back; all if there are no more."""
        ...

    def glance(self, n_rows: int) -> Rows:
        """Return so many rows that are quick to read: for what costs time at the most if they mislead."""
        ...


class SourceBase(ABC):
    """What follows from a pass and from the rows at given positions."""

    schema: Schema
    passes: Passes

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """N."""

    @property
    @abstractmethod
    def labelled(self) -> bool:
        """Whether rows have labels."""

    @abstractmethod
    def ask_all(self, ask: Callable[[Rows], T], add: Callable[[T, T], T]) -> T:
        """Ask all rows and add up what they say, in order."""

    @abstractmethod
    def take(self, rows: IntArray) -> Rows:
        """Return the rows at ascending positions, in memory."""

    def reduce(
        self, ask: Callable[[Rows], T], add: Callable[[T, T], T] = operator.add, n_outputs: int | None = None
    ) -> T:
        """Ask all rows, and count the pass."""
        self.passes.add(self.n_rows * (self.schema.n_outputs if n_outputs is None else n_outputs))
        return self.ask_all(ask, add)

    @cached_property
    def class_weights(self) -> FloatArray:
        """Weight of the labels of each class of each output, of shape (M, K)."""
        return self.ask_all(Rows.tally, operator.add)

    @cached_property
    def class_rows(self) -> FloatArray:
        """Rows of positive weight that show each class of each output, (M, K); of a sample, what they stand for."""
        return self.ask_all(_present, operator.add)

    def sample(self, n_rows: int, seed: int = 0) -> Rows:
        """Return about so many rows in memory, stratified by class and weighted back; all if there are no more."""
        if self.n_rows <= n_rows:
            return replace(self.take(np.arange(self.n_rows)), start=0)
        labels = self.ask_all(lambda rows: [(rows.codes, rows.weight)], operator.add)
        codes, weight = (_joined(arrays) for arrays in zip(*labels, strict=True))
        low = self._low if self._keys is None else by_keys(self._keys)
        drawn = draw_rows(codes, n_rows, self.n_rows, weight=weight, low=low, seed=seed)
        return self.take(drawn.rows).sampled(slice(None), drawn.frequency)

    def _low(self, stratum: NDArray[Any], below: KeyArray, seed: int) -> tuple[IntArray, KeyArray]:
        """Rows of low keys, which are made on the way and not held; see :data:`metricwise.sampling.Low`."""

        def low(rows: Rows) -> list[tuple[IntArray, KeyArray]]:
            own, numbers = rows.low(stratum[rows.start : rows.start + rows.n_rows], below, seed)
            return [(own + rows.start, numbers)]

        rows, numbers = zip(*self.ask_all(low, operator.add), strict=True)
        return np.concatenate(rows), np.concatenate(numbers)

    @cached_property
    def _keys(self) -> KeyArray | None:
        """Numbers that tell rows apart, by which they are drawn; None where what they begin and end with does."""
        if not self.take(np.arange(0, self.n_rows, max(1, self.n_rows // GLANCE))).alike():
            return None
        hashes = _joined(self.ask_all(lambda rows: [rows.hashes()], operator.add))
        return number_copies(hashes, _joined(self.ask_all(lambda rows: [rows.weight], operator.add)))

    def glance(self, n_rows: int) -> Rows:
        """Return so many rows in short runs of neighbours."""
        if self.n_rows <= n_rows:
            return self.take(np.arange(self.n_rows))
        run = min(_RUN, n_rows)
        starts = np.random.default_rng(0).integers(0, self.n_rows - run + 1, -(-n_rows // run))
        return self.take(np.sort((np.sort(starts)[:, None] + np.arange(run)).reshape(-1)[:n_rows]))  # runs may overlap


def _present(rows: Rows) -> FloatArray:
    """Rows of positive weight by the class that they show."""
    assert rows.codes is not None
    if rows.weight is None:
        return rows.tally()
    stand_for = np.ones(rows.n_rows) if rows.frequency is None else rows.frequency
    return tally(rows.codes, stand_for * (rows.weight > 0), rows.proba.width)


def _joined(arrays: Sequence[NDArray[Any] | None]) -> Any:
    """Put arrays one after the other; None where there are none."""
    if arrays[0] is None or len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays)  # type: ignore[arg-type]  # all have them, or none
