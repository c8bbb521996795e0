"""Rows in arrays in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.cached import cached_property
from ...core.probabilities import Probabilities
from ...core.rows import HEAD_ROWS, Rows
from ...core.sampling import Low, Sample, by_keys, draw_rows, number_copies
from ...core.schema import Schema
from .base import MAX_CACHED_ROWS, Passes, SourceBase

__all__ = ["MemorySource"]

_SMALL_SAMPLE = 10_000  # rows: with which a search begins that goes on with a larger sample
_LISTED_SHARE = 10  # times as many rows of low keys are listed then, out of which that is drawn
_MAX_KEPT_BYTES = 1 << 22  # of a sample that is kept, and not only where its rows are
_MAX_SHARE = 1 - 2.0**-53  # of all keys, as a number of 64 bits

IntArray = NDArray[np.intp]
KeyArray = NDArray[np.uint64]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class MemorySource(SourceBase):
    """Source of rows in memory, which are processed at once, on all cores.

    Parameters
    ----------
    rows : Rows
    schema : Schema
    passes : Passes, optional
        Counter of passes.

    See Also
    --------
    ChunkedSource : Rows in chunks.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.core.schema import Schema
    >>> from metricwise.data.probabilities import read_proba
    >>> from metricwise.core.rows import Rows
    >>> from metricwise.data.sources.memory import MemorySource
    >>> source = MemorySource(Rows(read_proba([0.2, 0.6, 0.9]), np.array([[0], [0], [1]])), Schema.of_codes([2]))
    >>> source.reduce(lambda rows: rows.n_rows), source.passes.entries
    (3, 3)
    """

    rows: Rows
    schema: Schema
    passes: Passes = field(default_factory=Passes)

    @classmethod
    def unlabelled(cls, proba: Probabilities, schema: Schema) -> MemorySource:
        """Return the source of probabilities without labels."""
        return cls(Rows(proba), schema)

    @property
    def n_rows(self) -> int:
        """N."""
        return self.rows.n_rows

    @property
    def labelled(self) -> bool:
        """Whether rows have labels."""
        return self.rows.codes is not None

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.rows.weight is not None

    def map_reduce(self, ask: Callable[[Rows], T], add: Callable[[T, T], T]) -> T:
        """Ask all rows."""
        return ask(self.rows)

    def map(self, change: Callable[[Rows], Rows]) -> MemorySource:
        """Return the source of changed rows."""
        return MemorySource(change(self.rows), self.schema, self.passes)

    def of_outputs(self, outputs: IntArray) -> MemorySource:
        """Return the source of some of the outputs."""
        return replace(self.map(lambda rows: rows.of_outputs(outputs)), schema=self.schema.of_outputs(outputs))

    def by_group(self, n_groups: int) -> MemorySource:
        """Return the source of all outputs once for every sensitive group."""
        return replace(self.map(lambda rows: rows.by_group(n_groups)), schema=self.schema.by_group(n_groups))

    def take(self, rows: Any) -> Rows:
        """Return some of the rows."""
        return replace(self.rows.take(rows), start=0)

    def _sample(self, n_rows: int, seed: int) -> Rows:
        drawn = self._places.get((n_rows, seed)) or self._draw(n_rows, seed)
        if n_rows <= MAX_CACHED_ROWS:
            self._places[n_rows, seed] = drawn
        return self.take(drawn.rows).sampled(slice(None), drawn.frequency)

    @cached_property
    def _places(self) -> dict[tuple[int, int], Sample]:
        """What samples have been drawn of which size by which seed, from which they are taken again at little cost."""
        return {}

    def _keeps(self, rows: Rows) -> bool:
        return rows.n_bytes <= _MAX_KEPT_BYTES

    def _draw(self, n_rows: int, seed: int) -> Sample:
        rows = self.rows
        low = rows.low if self._keys is None else by_keys(self._keys)
        thin = rows.dependence is not None and rows.dependence.by_weight
        if not thin:  # then all samples of one seed are drawn from the same strata
            low = partial(
                self._low,
                low,
                _LISTED_SHARE if n_rows <= _SMALL_SAMPLE and _LISTED_SHARE * n_rows <= self.n_rows else 1,
            )
        return draw_rows(rows.codes, n_rows, self.n_rows, weight=rows.weight, low=low, seed=seed, thin=thin)

    def _low(
        self, low: Low, share: float, stratum: NDArray[Any], below: KeyArray, seed: int
    ) -> tuple[IntArray, KeyArray]:
        """Draw out of the rows of low keys that an earlier draw has listed; where these are too few, list more."""
        listed = self._listed.get(seed)
        if listed is None or (below > listed[0]).any():
            limits = np.maximum(below, np.minimum(below * share, _MAX_SHARE * 2.0**64).astype(np.uint64))
            listed = self._listed[seed] = (limits, *low(stratum, limits, seed))
        _, rows, keys = listed
        drawn = keys <= below[stratum[rows].astype(np.intp) + 1]
        return rows[drawn], keys[drawn]

    @cached_property
    def _listed(self) -> dict[int, tuple[KeyArray, IntArray, KeyArray]]:
        """By seed, the limits of the keys of each stratum up to which rows are listed, these rows and their keys."""
        return {}

    @cached_property
    def _keys(self) -> KeyArray | None:
        """Keys by which rows are drawn if many rows are alike; None otherwise."""
        if not self.take(np.arange(0, self.n_rows, max(1, self.n_rows // HEAD_ROWS))).alike():
            return None
        return number_copies(self.rows.hashes(), self.rows.weight)

    def sample(self, n_rows: int, seed: int = 0) -> Rows:
        """Return a sample of about `n_rows` rows, stratified by class and reweighted; all rows if there are no more."""
        return self.rows if self.n_rows <= n_rows else super().sample(n_rows, seed)

    def glance(self, n_rows: int) -> Rows:
        """Return `n_rows` rows in short runs of neighbours."""
        return self.rows if self.n_rows <= n_rows else self._glance(n_rows)
