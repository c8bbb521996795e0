"""The interface of a source of rows, and the base classes of sources."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.cached import cached_property
from ...core.probabilities import Probabilities
from ...core.rows import HEAD_ROWS, Rows
from ...core.sampling import Found, Strata, by_keys, count_rows, number_copies, numbered
from ...core.schema import Schema
from ...kernels import tally

__all__ = [
    "ClusterSource",
    "LazySource",
    "Passes",
    "Source",
    "SourceBase",
    "TakenRows",
    "changed",
    "in_passes",
    "join_rows",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
KeyArray = NDArray[np.uint64]
T = TypeVar("T")

MAX_CACHED_ROWS = 20_000  # rows of a sample that is asked for more than once, and kept
_MAX_HELD_KEYS = 1 << 20  # rows whose keys may all be held
_MAX_ANSWER_ITEMS = 1 << 20  # some 40 MB of changes, which travel from workers
_LABEL_COUNTS = ("class_weights", "class_rows", "_shown")
_RUN_ROWS = 16  # neighbours, which cost less to read than rows one by one


@dataclass(eq=False)
class Passes:
    """Counter of entries, one per row and output, that have been read so far.

    Rows times outputs entries make one pass, so that a pass over a sample or over some of the outputs counts as a
    fraction.

    Parameters
    ----------
    whole : Passes, optional
        A counter to which all entries are also added, for example that of the fit that an oracle serves.
    entries : int
        Number of entries so far.
    listener : callable, optional
        Function that is called at every read.

    See Also
    --------
    SourceBase : Counts its passes.

    Examples
    --------
    >>> from metricwise.data.sources.base import Passes, in_passes
    >>> fit = Passes()
    >>> Passes(fit).add(300)
    >>> Passes(fit).add(110)
    >>> fit.entries, in_passes(fit.entries, n_rows=100, n_outputs=2)
    (410, 2)
    """

    whole: Passes | None = None
    entries: int = 0
    listener: Callable[[], None] | None = None

    def add(self, entries: int) -> None:
        """Count entries that are being read."""
        self.entries += entries
        if self.listener is not None:
            self.listener()
        if self.whole is not None:
            self.whole.add(entries)


def in_passes(entries: int, n_rows: int, n_outputs: int) -> int:
    """Return the number of passes over all rows and outputs that some entries make, rounded."""
    return round(entries / max(n_rows * n_outputs, 1))


class Source(Protocol):
    """The interface of a source of rows, wherever they are stored.

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
        Counter of what has been read from this source or sources derived from it.
    capacity : int or None
        Maximum number of items, of some tens of bytes each, that an answer may hold; None: no limit.

    See Also
    --------
    SourceBase : Base class of sources.
    """

    @property
    def schema(self) -> Schema: ...

    @property
    def capacity(self) -> int | None: ...

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
        """Apply a function to all rows, chunk by chunk, and add up the results in order: one pass.

        Parameters
        ----------
        ask : callable
            Function from some rows, with their position in `start`, to a small result.
        add : callable
            Function that adds two results. Counts are added unnormalised, and are equal for any chunking.
        n_outputs : int, optional
            Number of outputs that are read, M by default, which determines what the pass counts for.
        """
        ...

    def map(self, change: Callable[[Rows], Rows]) -> Source:
        """Return the source of changed rows: changed at once if they are in memory, otherwise whenever they are read.

        Labels and weights remain unchanged.
        """
        ...

    def of_outputs(self, outputs: IntArray) -> Source:
        """Return the source of some of the outputs, given by position in order; reading them counts by their number."""
        ...

    def by_group(self, n_groups: int) -> Source:
        """Return the source of all outputs once for every sensitive group, whose rows alone have labels there."""
        ...

    def sample(self, n_rows: int, seed: int = 0) -> Rows:
        """Return about `n_rows` rows in memory, stratified by class and reweighted; all rows if there are no more."""
        ...

    def glance(self, n_rows: int) -> Rows:
        """Return `n_rows` rows that are quick to read, for uses in which an unrepresentative sample only costs time."""
        ...


class SourceBase(ABC):
    """Base class of sources: what follows from a pass and from rows at given positions. Subclasses are dataclasses.

    See Also
    --------
    MemorySource : Rows in memory.
    ChunkedSource : Rows in chunks.
    """

    schema: Schema
    passes: Passes
    partition: Any = None
    """The sensitive groups (Partition), where rows know theirs since they were read."""

    @property
    def capacity(self) -> int | None:
        """Maximum number of items that an answer may hold; None: no limit."""
        return None

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """N."""

    @property
    @abstractmethod
    def labelled(self) -> bool:
        """Whether rows have labels."""

    @property
    @abstractmethod
    def weighted(self) -> bool:
        """Whether rows have weights."""

    @abstractmethod
    def map_reduce(self, ask: Callable[[Rows], T], add: Callable[[T, T], T]) -> T:
        """Apply `ask` to all rows, some at a time, and add up the results in order."""

    @abstractmethod
    def take(self, rows: IntArray) -> Rows:
        """Return the rows at ascending positions, in memory."""

    @abstractmethod
    def map(self, change: Callable[[Rows], Rows]) -> Self:
        """Return the source of changed rows; see :meth:`Source.map`."""

    @abstractmethod
    def of_outputs(self, outputs: IntArray) -> Self:
        """Return the source of some of the outputs."""

    @abstractmethod
    def by_group(self, n_groups: int) -> Self:
        """Return the source of all outputs once for every sensitive group."""

    def described(self, schema: Schema) -> Self:
        """Return the source of the same rows under another schema of the same classes."""
        other = replace(self, schema=schema)  # type: ignore[type-var]  # a dataclass by contract
        vars(other).update(self._known())
        return other

    def _known(self) -> dict[str, Any]:
        """What has been counted of labels and weights, which no change of rows touches."""
        return {name: vars(self)[name] for name in _LABEL_COUNTS if name in vars(self)}

    def reduce(
        self, ask: Callable[[Rows], T], add: Callable[[T, T], T] = operator.add, n_outputs: int | None = None
    ) -> T:
        """Ask all rows, and count the pass."""
        self.passes.add(self.n_rows * (self.schema.n_outputs if n_outputs is None else n_outputs))
        return self.map_reduce(ask, add)

    @cached_property
    def class_weights(self) -> FloatArray:
        """Weight of the labels of each class of each output, of shape (M, K)."""
        counted = self._label_counts
        return self.map_reduce(Rows.tally, operator.add) if counted is None else counted[0]

    @cached_property
    def class_rows(self) -> FloatArray:
        """Rows of positive weight that show each class of each output, (M, K); of a sample, what they stand for."""
        if not self.weighted:
            return self.class_weights
        counted = self._label_counts
        return self.map_reduce(_present, operator.add) if counted is None else counted[1]

    @property
    def _label_counts(self) -> tuple[FloatArray, FloatArray] | None:
        """Weights of labels, and rows of positive weight, by class (M, K), if they are counted where they are."""
        return None

    def sample(self, n_rows: int, seed: int = 0) -> Rows:
        """Return about `n_rows` rows in memory, stratified by class and reweighted; all rows if there are no more."""
        return self._kept("sample", n_rows, seed, lambda: self._sample(n_rows, seed))

    def _kept(self, name: str, n_rows: int, seed: int, draw: Callable[[], Rows]) -> Rows:
        """Return a sample, which is cached if it is small."""
        drawn: dict[tuple[str, int, int], Rows] = vars(self).setdefault("_drawn", {})
        if (name, n_rows, seed) in drawn:
            return drawn[name, n_rows, seed]
        rows = draw()
        if n_rows <= MAX_CACHED_ROWS and self._keeps(rows):
            drawn[name, n_rows, seed] = rows
        return rows

    def _keeps(self, rows: Rows) -> bool:
        """Whether a sample of so few rows is kept: to draw it again would take passes."""
        return True

    def _sample(self, n_rows: int, seed: int) -> Rows:
        if self.n_rows <= n_rows:
            return replace(self.take(np.arange(self.n_rows)), start=0)
        strata = Strata.of(self._shown if self.labelled else None, self.n_rows)
        if strata.size is None:
            strata = replace(
                strata, size=self.map_reduce(lambda rows: strata.count(_stratum(strata, rows)), operator.add)
            )
        sampled = None if strata.place is not None else self._drawn_there(strata, n_rows, seed)
        if sampled is not None:
            return sampled
        find = self._find(strata, seed)

        def below(keys: KeyArray) -> Found:
            parts = self.map_reduce(lambda rows: [find(rows, keys)], operator.add)
            rows, numbers, stratum = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            return rows, numbers, stratum

        drawn = strata.draw(n_rows, below)
        taken = self.take(drawn.rows)
        if not np.array_equal(_stratum(strata, taken), drawn.stratum):  # type: ignore[arg-type]  # known of what is drawn
            raise RuntimeError(
                "The rows are in a different order in every pass, so a sample cannot be drawn: sort the "
                "query, or write its result to a file."
            )
        return taken.sampled(slice(None), drawn.frequency)

    def _drawn_there(self, strata: Strata, n_rows: int, seed: int) -> Rows | None:
        """Return a sample that is drawn where rows are; None where they must be read."""
        low = self._low_there
        if low is None:
            return None
        met: list[tuple[IntArray, Rows]] = []

        def below(keys: KeyArray) -> Found:
            places, numbers, rows = low(keys, seed)
            met.append((places, rows))
            return places, numbers, _stratum(strata, rows)

        drawn = strata.draw(n_rows, below)
        places, rows = met[-1]
        return rows.take(np.searchsorted(places, drawn.rows)).sampled(slice(None), drawn.frequency)

    @property
    def _low_there(self) -> Callable[[KeyArray, int], tuple[IntArray, KeyArray, Rows]] | None:
        """Return how rows of keys below those of their class are drawn where they are, with places and keys, if so.

        By keys (K + 1,), that of rows which show no class first, and a seed.
        """
        return None

    @cached_property
    def _shown(self) -> FloatArray:
        """Rows of positive weight by the class that they show, (M, K)."""
        if not self.weighted:
            return self.class_weights
        counted, width = self._label_counts, self.schema.width
        if counted is not None:
            return counted[1]
        return self.map_reduce(lambda rows: count_rows(_codes(rows), rows.weight, width), operator.add)

    def _find(self, strata: Strata, seed: int) -> Callable[[Rows, KeyArray], Found]:
        """Return how rows of low keys are found among some; see :meth:`metricwise.core.sampling.Strata.draw`.

        What rows begin and end with tells them apart, unless some are alike. Then all that they hold does, and copies
        are numbered: in the order of their weights where the keys of all rows are held, so that the same are drawn in
        whatever order rows come; of more rows by position.
        """
        alike, held = self._has_copies, None
        if alike and self.n_rows <= _MAX_HELD_KEYS:
            hashes = _joined(self.map_reduce(lambda rows: [rows.hashes()], operator.add))
            held = number_copies(hashes, _joined(self.map_reduce(lambda rows: [rows.weight], operator.add)))

        def find(rows: Rows, keys: KeyArray) -> Found:
            stratum = _stratum(strata, rows)
            if not alike:
                places, numbers = rows.low(stratum, keys, seed)
            elif held is not None:
                places, numbers = by_keys(held[rows.start : rows.start + rows.n_rows])(stratum, keys, seed)
            else:
                copies = numbered(rows.hashes(), np.arange(rows.start, rows.start + rows.n_rows))
                places, numbers = by_keys(copies)(stratum, keys, seed)
            return places + rows.start, numbers, stratum[places]

        return find

    @cached_property
    def _has_copies(self) -> bool:
        """Whether some of a few rows are alike in what they begin and end with."""
        return self.take(np.arange(0, self.n_rows, max(1, self.n_rows // HEAD_ROWS))).alike()

    def glance(self, n_rows: int) -> Rows:
        """Return `n_rows` rows in short runs of neighbours."""
        return self._kept("glance", n_rows, 0, lambda: self._glance(n_rows))

    def _glance(self, n_rows: int) -> Rows:
        if self.n_rows <= n_rows:
            return self.take(np.arange(self.n_rows))
        if n_rows == 1:  # asked for to see what rows have: the first one is read fastest
            return self.take(np.arange(1))
        run = min(_RUN_ROWS, n_rows)
        starts = np.random.default_rng(0).integers(0, self.n_rows - run + 1, -(-n_rows // run))
        return self.take(np.sort((np.sort(starts)[:, None] + np.arange(run)).reshape(-1)[:n_rows]))  # runs may overlap


class LazySource(SourceBase):
    """What sources of rows that are read anew in every pass do alike: rows are changed whenever they have been read.

    A dataclass that derives from it has a field `changes`: functions, in the order in which they are applied.
    """

    changes: tuple[Callable[[Rows], Rows], ...]

    def map(self, change: Callable[[Rows], Rows]) -> Self:
        """Return the source whose rows are changed whenever they are read."""
        other = replace(self, changes=(*self.changes, change))  # type: ignore[type-var]  # a dataclass by contract
        vars(other).update(self._known())
        return other

    def of_outputs(self, outputs: IntArray) -> Self:
        """Return the source of some of the outputs."""
        schema = self.schema.of_outputs(outputs)
        some = self.map(lambda rows: rows.of_outputs(outputs))
        other = replace(some, schema=schema)  # type: ignore[type-var]  # a dataclass by contract
        counts = {name: counted[outputs, : schema.width] for name, counted in self._known().items()}
        vars(other).update(counts)
        return other

    def by_group(self, n_groups: int) -> Self:
        """Return the source of all outputs once for every sensitive group."""
        some = replace(self, changes=(*self.changes, lambda rows: rows.by_group(n_groups)))  # type: ignore[type-var]
        return replace(some, schema=self.schema.by_group(n_groups))  # type: ignore[type-var]  # a dataclass by contract


class ClusterSource(LazySource):
    """What sources of rows on the workers of a cluster do alike: questions travel to rows, with what is known of them.

    A dataclass that derives from it has the fields `has_labels` and `has_weights`.
    """

    has_labels: bool
    has_weights: bool

    @property
    def labelled(self) -> bool:
        """Whether rows have labels."""
        return self.has_labels

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.has_weights

    @property
    def capacity(self) -> int:
        """Items that an answer may hold: it travels."""
        return _MAX_ANSWER_ITEMS

    def _known(self) -> dict[str, Any]:
        """What has been counted of labels and weights, the classes in any case: they travel with questions."""
        weights = {"class_weights": self.class_weights} if self.labelled else {}
        return {**super()._known(), **weights}

    def _travelling(self, *names: str) -> dict[str, Any]:
        """Return the fields that travel with a question, without rows, samples of them, and who listens to passes."""
        fields = {name: vars(self)[name] for name in ("schema", "has_labels", "has_weights", *names)}
        return {**super()._known(), **fields, "passes": Passes(), "changes": ()}


class TakenRows:
    """Rows at ascending positions, as a list of what each chunk has of them. Dask would look into a dataclass."""

    def __init__(self, rows: IntArray) -> None:
        self.rows = rows

    def __call__(self, chunk: Rows) -> list[Rows]:
        begin, end = np.searchsorted(self.rows, (chunk.start, chunk.start + chunk.n_rows))
        return [chunk.take(self.rows[begin:end] - chunk.start)] if begin < end else []


def changed(rows: Rows, changes: Sequence[Callable[[Rows], Rows]]) -> Rows:
    """Return rows after all changes."""
    return reduce(lambda changed_rows, change: change(changed_rows), changes, rows)


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Put rows one after the other."""
    first = parts[0]
    if len(parts) == 1:
        return first
    link = first.proba.link if first.proba.of_logits else None
    each = [part.proba if link is not None else part.proba.recalibrated() for part in parts]
    blocks = zip(*(proba.blocks for proba in each), strict=True)
    scores = _joined([proba.scores for proba in each])
    proba = Probabilities(tuple(np.concatenate(arrays) for arrays in blocks), first.proba.n_classes, link, scores)

    def joined(name: str, axis: int = 0) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays, axis=axis)

    others = [joined(name) for name in ("mass", "frequency", "group", "cost", "cluster", "repeats")]
    return replace(Rows(proba, joined("codes"), joined("weight", -1), *others), dependence=first.dependence)


def _codes(rows: Rows) -> NDArray[Any]:
    assert rows.codes is not None
    return rows.codes


def _stratum(strata: Strata, rows: Rows) -> NDArray[Any]:
    return strata.of_rows(rows.codes, rows.weight, rows.n_rows)


def _present(rows: Rows) -> FloatArray:
    """Rows of positive weight by the class that they show."""
    assert rows.codes is not None
    if rows.weight is None:
        return rows.tally()
    stand_for = np.ones(rows.n_rows) if rows.frequency is None else rows.frequency
    return tally(rows.codes, stand_for * (rows.weight > 0), rows.proba.width)


def _joined(arrays: Sequence[NDArray[Any] | None]) -> Any:
    """Return concatenated arrays; None if they are None."""
    if arrays[0] is None or len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays)  # type: ignore[arg-type]  # all have them, or none
