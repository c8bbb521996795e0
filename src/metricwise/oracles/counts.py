"""The oracle: what is counted of the rows of any source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.cached import cached_property
from ..core.confusion import distributions, expected_confusion, from_predictions
from ..core.losses import Loss
from ..core.matrices import with_extra
from ..core.rows import Rows
from ..data.sources.base import Source
from ..data.sources.memory import MemorySource
from ..rules.calibration import TemperatureScaling
from ..rules.decisions import decide_loss
from .base import Bins, Changes, FloatArray, IntArray, Line, Score, TooManyChangesError, Walk
from .kept import KeptProbabilities, keep_probabilities
from .walk import follow, outline

__all__ = ["Counts"]

_FIRST = np.zeros(1, dtype=np.intp)
_MANY_ENTRIES = 1 << 18  # rows x outputs, a pass over which costs more than a look at what was counted
_FEW_CLASSES, _FEW_RULES = 32, 2  # with which argmax costs little more than the pass over the rows
_RECENT_RULES = 4
_LEAST_PRIOR = 1e-6  # as the shift of the probabilities has it: a class may not be shifted away for good


class _Kind(NamedTuple):
    """What is counted, and with what share it enters."""

    expected: bool
    share: float


_KINDS = {
    "labels": (_Kind(False, 1.0),),
    "expected": (_Kind(True, 1.0),),
    # Labels with less noise, probabilities with less faith.
    "blended": (_Kind(False, 0.5), _Kind(True, 0.5)),
}


@dataclass(frozen=True, eq=False)
class Counts:
    """The oracle that counts the rows of a source: a loss in, a confusion out.

    Parameters
    ----------
    source : Source
    confusion : {"labels", "expected", "blended"}, default="labels"
        What is counted: labels, the probabilities of the true class in their place (over the entries whose label is
        observed), or half of each.
    link : TemperatureScaling, optional
        Recalibration that is applied before deciding and counting.
    prior : ndarray of shape (M, K), optional
        Class priors to count for, if they differ from those of the rows: labelled rows are reweighted by true class; if
        probabilities are counted, rows are reweighted by how much more frequent they become, and `link` includes the
        shift.

    See Also
    --------
    metricwise.data.sources.MemorySource : Rows in memory.
    metricwise.data.sources.ChunkedSource : Rows in chunks.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.core.schema import Schema
    >>> from metricwise.data.probabilities import read_proba
    >>> from metricwise.core.losses import Loss
    >>> from metricwise.oracles.counts import Counts
    >>> from metricwise.core.rows import Rows
    >>> from metricwise.data.sources.memory import MemorySource
    >>> rows = Rows(read_proba([0.2, 0.6, 0.9]), np.array([[0], [0], [1]]))
    >>> source = MemorySource(rows, Schema.of_codes([2]))
    >>> Counts(source).confusions([Loss.argmax(2)]).round(3).tolist()
    [[[[0.333, 0.333], [0.0, 0.333]]]]
    """

    source: Source
    confusion: Literal["labels", "expected", "blended"] = "labels"
    link: TemperatureScaling | None = None
    prior: FloatArray | None = None

    # -------------------------------------------------------------------------------------------- what is counted

    @property
    def n_rows(self) -> int:
        """N."""
        return self.source.n_rows

    @property
    def n_classes(self) -> IntArray:
        """Rows and columns of the confusion of each output: its classes, and decisions that the schema adds.

        Those are columns; as classes no row is of them, and their rows are empty.
        """
        return self.source.schema.n_decisions

    @cached_property
    def _decisions(self) -> IntArray | None:
        """The same for kernels, None where they are the classes."""
        return self.n_classes if self.source.schema.n_extra else None

    @cached_property
    def _shape(self) -> tuple[int, int]:
        """K and D, the most classes and decisions that an output has."""
        width = self.source.schema.width
        return width, width + self.source.schema.n_extra

    @property
    def capacity(self) -> int | None:
        """Changes along a line that may be held; None: all."""
        return self.source.capacity

    @property
    def certified(self) -> bool:
        """Whether no rule has a smaller <L, C>: where probabilities are counted, and nothing else."""
        return self.confusion == "expected"

    @property
    def entries_read(self) -> int:
        """Entries that have been read so far."""
        return self.source.passes.entries

    @cached_property
    def _kinds(self) -> tuple[_Kind, ...]:
        return _KINDS[self.confusion]

    @cached_property
    def _expects(self) -> bool:
        """Whether probabilities are counted, alone or beside labels."""
        return any(kind.expected for kind in self._kinds)

    def counting(self, confusion: Literal["labels", "expected", "blended"]) -> Counts:
        """Return the oracle that counts something else for the same rows and the same link."""
        other = replace(self, confusion=confusion)
        vars(other)["_linked"] = self._linked
        return other

    @cached_property
    def _linked(self) -> Source:
        """The rows behind the link; a copy, which serves every pass that comes, only of rows that are kept."""
        if self.link is None:
            return self.source
        if isinstance(self.source, MemorySource):
            return self.source.map(self._behind)
        link = self.link.arrays
        return self.source.map(lambda rows: replace(rows, proba=rows.proba.linked(link)))

    @cached_property
    def _prepared(self) -> Source:
        """The rows as they are counted: behind the link, and every entry with what it counts for."""
        return self._linked.map(self._with_mass) if self._expects else self._linked

    def _behind(self, rows: Rows) -> Rows:
        return rows if self.link is None else rows.behind(self.link.arrays)

    def _with_mass(self, rows: Rows) -> Rows:
        return replace(rows, mass=self._mass(rows))

    def _mass(self, rows: Rows) -> NDArray[Any] | None:
        """What each entry (N, M) counts for where probabilities are counted; None where all count alike."""
        if rows.codes is None:
            return rows.mass
        observed = None if rows.codes.min(initial=0) >= 0 else rows.codes >= 0
        if self.prior is None:
            return observed
        # Shifted probabilities are eta_j w_j / S with w the ratio of the priors, and the row is S times as frequent.
        labels = _shares(self.source.class_weights)
        back = np.where(labels > 0, labels / np.maximum(self.prior, _LEAST_PRIOR), 1.0)
        mass = np.empty(rows.codes.shape)
        for part in rows.proba.chunks():
            some = rows.proba.take(part)
            for m in range(some.n_outputs):
                eta = distributions(some.output(m)[:, 0])
                mass[part, m] = 1.0 / (eta @ back[m, : eta.shape[1]])
        return mass if observed is None else mass * observed

    @cached_property
    def _row_sums(self) -> FloatArray:
        """Weight of each true class of each output by each kind of count, shape (kinds, M, K)."""
        if not self._expects:
            return self.source.class_weights[None]
        counted = self._argmax_sums.sum(axis=3)
        return np.stack(
            [
                by_kind if kind.expected else self.source.class_weights
                for kind, by_kind in zip(self._kinds, counted, strict=True)
            ]
        )

    @cached_property
    def _argmax(self) -> Loss:
        return Loss.argmax(self.source.schema.decision_width)

    @cached_property
    def _argmax_sums(self) -> FloatArray:
        """Sums (kinds, M, K, D) of argmax behind the link, for which everybody asks: counted once."""
        return self._counted([self._argmax])[:, 0]

    def _counted(self, losses: Sequence[Loss | None]) -> FloatArray:
        """Sums (kinds, R, M, K, D) of losses, zeros where there is None."""
        counted = self._counted_there(losses, self._kinds)
        return self._prepared.reduce(lambda rows: self._sums(rows, losses, self._kinds)) if counted is None else counted

    def _counted_there(
        self, losses: Sequence[Loss | None], kinds: Sequence[_Kind], linked: bool = True
    ) -> FloatArray | None:
        """Sums (kinds, R, M, K, D) that the source counts without its rows, as a database; None where it does not."""
        count = getattr(self.source, "count_losses", None)
        expects = any(kind.expected for kind in kinds)
        if count is None or (expects and self.prior is not None) or self._decisions is not None:
            return None
        link = None if self.link is None or not (linked or expects) else self.link.arrays
        asked = _asked(losses)
        counted = count([losses[r] for r in asked], expects, link, linked)
        if counted is None:
            return None
        sums = np.stack([counted[int(kind.expected)] for kind in kinds])
        if len(asked) == len(losses):
            return sums
        out = np.zeros((len(kinds), len(losses), *sums.shape[2:]))
        out[:, asked] = sums
        return out

    @cached_property
    def _factor(self) -> FloatArray:
        """What turns sums of weights into shares: 1 / n_m, times the shift of the class priors; (kinds, M, K)."""
        sums = self._row_sums
        out = np.empty(sums.shape)
        for q, kind in enumerate(self._kinds):
            total = sums[q].sum(axis=1, keepdims=True)
            if self.prior is None or kind.expected:
                out[q] = 1.0 / np.where(total > 0, total, 1.0)
                continue
            # Classes without a labelled row cannot be weighted up: the others share their mass.
            target = _shares(np.where(sums[q] > 0, self.prior, 0.0))
            out[q] = np.where(sums[q] > 0, target / np.where(sums[q] > 0, sums[q], 1.0), 0.0)
        return out

    @cached_property
    def priors(self) -> FloatArray:
        """Class priors (M, D), 0 for decisions that are not classes."""
        shares = self._mixed(self._row_sums * self._factor)
        return with_extra(shares, self.source.schema.n_extra)

    @cached_property
    def weight(self) -> FloatArray:
        """n_m, the weight of the observed labels of each output."""
        return np.asarray(self._row_sums[0].sum(axis=1))

    def _mixed(self, counted: FloatArray) -> FloatArray:
        """Mix what was counted by each kind, the first axis."""
        if len(self._kinds) == 1:
            return np.asarray(counted[0])
        return np.asarray(sum(kind.share * part for kind, part in zip(self._kinds, counted, strict=True)))

    # ------------------------------------------------------------------------------------------------- confusions

    def confusions(self, losses: Sequence[Loss], linked: bool = True) -> FloatArray:
        """Return the confusion tensors of the rules of R losses, shape (R, M, D, D), in one pass over the rows.

        Parameters
        ----------
        losses : sequence of R Loss
            Of D decisions, which are the K classes unless the schema has more of them. No row is of those.
        linked : bool, default=True
            False: decided by the probabilities before the link, as argmax is.
        """
        if linked or self.link is None:
            sums = self._linked_sums(losses)
        else:
            counted = self._counted_there(losses, self._kinds, linked=False)
            if counted is not None:
                sums = counted
            elif self.confusion == "labels":
                sums = self.source.reduce(lambda rows: self._sums(rows, losses, self._kinds))
            else:
                sums = self.source.reduce(lambda rows: self._decided_sums(rows, losses))
        sums *= self._factor[:, None, :, :, None]
        return self._square(self._mixed(sums))

    def confusions_beside(self, judge: Counts, losses: Sequence[Loss]) -> tuple[FloatArray, FloatArray]:
        """Return the confusion tensors as this oracle and as one that counts labels has them, in one pass."""
        kinds = self._kinds
        labels = next((q for q, kind in enumerate(kinds) if not kind.expected), len(kinds))
        counted = kinds if labels < len(kinds) else (*kinds, *judge._kinds)
        there = self._counted_there(losses, counted)
        sums = self._prepared.reduce(lambda rows: self._sums(rows, losses, counted)) if there is None else there
        judged = sums[labels : labels + 1] * judge._factor[:, None, :, :, None]
        aim = sums[: len(kinds)] * self._factor[:, None, :, :, None]
        return self._square(self._mixed(aim)), self._square(judge._mixed(judged))

    def _square(self, counted: FloatArray) -> FloatArray:
        """Add empty rows for decisions that are no class to tensors (..., K, D)."""
        return with_extra(counted, self.source.schema.n_extra, axis=-2)

    def _linked_sums(self, losses: Sequence[Loss]) -> FloatArray:
        """Sums (kinds, R, M, K, D) behind the link, of many rows those of the last few rules out of memory.

        A search ends by counting the rule that it has counted before, beside argmax: where that is counted in the first
        pass of a few rules, the end needs no pass.
        """
        if self.n_rows * self.source.schema.n_outputs < _MANY_ENTRIES or self._shape[1] > _FEW_CLASSES:
            return self._sums_beside_argmax(losses)
        recent = self._recent_sums
        contents = [tuple(array.tobytes() for array in loss.arrays) for loss in losses]
        new = [r for r, content in enumerate(contents) if content not in recent]
        if new:
            asked = [losses[r] for r in new]
            unknown = "_argmax_sums" not in vars(self)
            if unknown and len(asked) <= _FEW_RULES and not any(loss is self._argmax for loss in asked):
                asked.append(self._argmax)
            sums = self._sums_beside_argmax(asked)
            recent.update({contents[r]: sums[:, place] for place, r in enumerate(new)})
        out = np.stack([recent[content] for content in contents], axis=1)
        for content in list(recent)[:-_RECENT_RULES]:
            del recent[content]
        return out

    @cached_property
    def _recent_sums(self) -> dict[tuple[bytes, ...], FloatArray]:
        """Sums (kinds, M, K, D) of the rules that were counted last, by the numbers of their losses."""
        return {}

    def _sums_beside_argmax(self, losses: Sequence[Loss]) -> FloatArray:
        """Sums (kinds, R, M, K, D) behind the link, those of argmax out of memory once they are known."""
        argmax_sums: FloatArray | None = vars(self).get("_argmax_sums")
        is_argmax = np.array([loss is self._argmax for loss in losses])
        if argmax_sums is None or not is_argmax.any():
            sums = self._counted(losses)
            if is_argmax.any():
                vars(self)["_argmax_sums"] = sums[:, int(is_argmax.argmax())].copy()
            return sums
        if is_argmax.all():
            return np.repeat(argmax_sums[:, None], len(losses), axis=1)
        out = self._counted([None if loss is self._argmax else loss for loss in losses])
        out[:, is_argmax] = argmax_sums[:, None]
        return out

    def _sums(self, rows: Rows, losses: Sequence[Loss | None], kinds: Sequence[_Kind]) -> FloatArray:
        """Sums of weights (kinds, R, M, K, D), not divided by anything; zeros for a loss that is None."""
        k, d = self._shape
        out = np.zeros((len(kinds), len(losses), rows.proba.n_outputs, k, d))
        asked = _asked(losses)
        for block, span in rows.blocks(self._decisions):
            arrays = [_part(loss, span, block.width) for loss in losses if loss is not None]
            # An array may be narrower than others, or padded beyond the largest number of classes.
            high, wide = min(block.width, k), min(block.width, d)
            for q, kind in enumerate(kinds):
                count = kernels.count_expected if kind.expected else kernels.count_labels
                out[q, asked, span, :high, :wide] = count(block, arrays)[:, :, :high, :wide]
        return out

    def _decided_sums(self, rows: Rows, losses: Sequence[Loss]) -> FloatArray:
        """The same where decisions are taken before the link and counted behind it."""
        out = np.zeros((len(self._kinds), len(losses), rows.proba.n_outputs, *self._shape))
        for part in rows.chunks():
            counted = self._with_mass(self._behind(part))
            for r, loss in enumerate(losses):
                out[:, r] += self._count(counted, decide_loss(loss, part.proba, self._decisions))
        return out

    def _count(self, rows: Rows, decided: NDArray[Any]) -> FloatArray:
        """Sums of weights (kinds, M, K, D) of given decisions."""
        k, d = self._shape
        out = []
        for kind in self._kinds:
            if kind.expected:
                out.append(expected_confusion(rows.proba, decided, rows.weight, rows.mass, d))
            else:
                assert rows.codes is not None
                out.append(from_predictions(rows.codes, decided, d, rows.weight)[:, :k])
        return np.stack(out)

    def confusion_of(self, decided: NDArray[Any]) -> FloatArray:
        """Return the confusion tensor (M, D, D) of given decisions, codes of shape (N, M)."""
        sums = self._prepared.reduce(lambda rows: self._count(rows, decided[rows.start : rows.start + rows.n_rows]))
        return self._square(self._mixed(sums * self._factor[..., None]))

    def confusion_by(self, decide: Callable[[Rows], IntArray]) -> FloatArray:
        """Return the confusion tensor (M, D, D) of decisions about rows before the link, counted behind it."""

        def ask(rows: Rows) -> FloatArray:
            return self._count(self._counted_rows(rows), decide(rows))

        return self._square(self._mixed(self.source.reduce(ask) * self._factor[..., None]))

    def _counted_rows(self, rows: Rows) -> Rows:
        """Return rows as they are counted: behind the link, and every entry with what it counts for."""
        counted = self._behind(rows)
        return self._with_mass(counted) if self._expects else counted

    def confusions_above(self, thresholds: FloatArray) -> FloatArray:
        """Return the confusion tensors (T, 1, 2, 2) of one binary output: class 1 is predicted above thresholds (T,).

        These are compared with the numbers that rows were given as: probabilities of class 1, log-odds or scores.
        """

        def ask(rows: Rows) -> FloatArray:
            number, counted = rows.proba.positive_column(0), self._counted_rows(rows)
            return np.stack([self._count(counted, (number > t)[:, None].astype(np.intp)) for t in thresholds], axis=1)

        sums = self.source.reduce(ask) * self._factor[:, None, :, :, None]
        return self._square(self._mixed(sums))

    def shares(self, losses: Sequence[Loss]) -> FloatArray:
        """Return hits (the diagonals) and predicted shares (the column sums) of those tensors alone, (R, M, 2, D).

        Of very many classes, those that have next to no probability in a row are left out.
        """
        if self._kept is not None and all(loss.is_diagonal for loss in losses):
            self.source.passes.add(self.n_rows)
            return self._mixed(self._kept_shares(self._kept, losses))
        return self._mixed(self._prepared.reduce(lambda rows: self._shares(rows, losses)))

    @cached_property
    def _kept(self) -> KeptProbabilities | None:
        """What decides in rows of very many classes in memory."""
        source = self._prepared
        if not isinstance(source, MemorySource) or source.rows.codes is None or source.schema.n_extra:
            return None
        if source.rows.weight is not None and source.rows.weight.ndim > 1:
            return None
        return keep_probabilities(source.rows)

    def _kept_shares(self, kept: KeptProbabilities, losses: Sequence[Loss]) -> FloatArray:
        """Hits and predicted shares (kinds, R, 1, 2, K) by the classes that are kept."""
        rows = self._prepared.rows  # type: ignore[attr-defined]  # in memory
        true, d = rows.codes[:, 0].astype(np.intp), self._shape[1]
        weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
        mass = weight if rows.mass is None else weight * rows.mass[:, 0]
        out = np.empty((len(self._kinds), len(losses), 1, 2, d))
        for r, loss in enumerate(losses):
            decided, probability = kept.decide(loss)
            for q, kind in enumerate(self._kinds):
                factor = self._factor[q, 0]
                counted = factor[0] * mass if kind.expected else np.where(true >= 0, factor[true], 0.0) * weight
                hit = counted * (probability if kind.expected else decided == true)
                out[q, r, 0] = [np.bincount(decided, values, minlength=d) for values in (hit, counted)]
        return out

    def _shares(self, rows: Rows, losses: Sequence[Loss]) -> FloatArray:
        """Hits and predicted shares (kinds, R, M, 2, D): what rows add to them."""
        out = np.zeros((len(self._kinds), len(losses), rows.proba.n_outputs, 2, self._shape[1]))
        for part in rows.chunks():
            recalibrated = replace(part, proba=part.proba.recalibrated())
            for block, span in recalibrated.blocks(self._decisions):
                for r, loss in enumerate(losses):
                    decided = kernels.decide(block, _part(loss, span, block.width))
                    for m in range(span.start, span.stop):
                        output_block = block.part(slice(m - span.start, m - span.start + 1), block.width)
                        for q, kind in enumerate(self._kinds):
                            output_decisions = decided[:, m - span.start]
                            out[q, r, m] += _shares_of(
                                output_block, output_decisions, kind.expected, self._factor[q, m], self._shape[1]
                            )
        return out

    # -------------------------------------------------------------------------------------------------- the walk

    def walk(self, line: Line, tol: float, score: Score | None = None, bins: Bins | None = None) -> Walk:
        """Follow functionals of the confusion for all g along a line of losses; see :meth:`Oracle.walk`."""
        return follow(self, line, tol, score, bins)

    def outline(self, line: Line) -> Walk:
        """Follow functionals of one group at many places along a line; see :meth:`Oracle.outline`."""
        return outline(self, line)

    def changes(
        self, line: Line, grid: FloatArray, n_bins: int, listed_bins: NDArray[np.bool_] | None, summed: bool
    ) -> Changes:
        """Note the changes along a line.

        Where not all may be held, those of one place are listed once; if they are still too many, that is an error.
        """
        capacity, n_outputs = self.capacity, int((line.group >= 0).sum())

        def ask(rows: Rows) -> Changes:
            changes = self._changes(rows, line, grid, n_bins, listed_bins, summed)
            return changes if capacity is None else changes.merged()

        def add(first: Changes, other: Changes) -> Changes:
            both = first + other
            if capacity is None or len(both.g) <= capacity:
                return both
            both = both.merged()
            if len(both.g) > capacity:
                raise TooManyChangesError(len(both.g), capacity)
            return both

        return self._prepared.reduce(ask, add, n_outputs)

    def _changes(
        self,
        rows: Rows,
        line: Line,
        grid: FloatArray,
        n_bins: int,
        listed_bins: NDArray[np.bool_] | None,
        summed: bool,
    ) -> Changes:
        """Note the changes of some rows, block of outputs by block and kind by kind."""
        parts = []
        alone = len(rows.proba.blocks) == 1
        for block, span in rows.blocks(self._decisions):
            inside = line.group[span]
            groups = np.arange(line.n_groups) if alone else np.unique(inside[inside >= 0])
            if len(groups) and (inside >= 0).any():
                parts += [
                    (groups, self._follow(block, span, line, q, groups, grid, n_bins, listed_bins, summed))
                    for q in range(len(self._kinds))
                ]
        if len(parts) == 1 and len(parts[0][0]) == line.n_groups:
            return parts[0][1]
        return _gather(parts, line.n_groups, n_bins)

    def _follow(
        self,
        block: kernels.Block,
        span: slice,
        line: Line,
        q: int,
        groups: IntArray,
        grid: FloatArray,
        n_bins: int,
        listed_bins: NDArray[np.bool_] | None,
        summed: bool,
    ) -> Changes:
        """Note the changes of one block by one kind of count."""
        kind = self._kinds[q]
        k = min(block.width, self._shape[1])
        used = np.flatnonzero(line.group[span] >= 0)
        inner = slice(int(used[0]), int(used[-1]) + 1)
        block = block.part(inner, k)
        if kind.expected:
            block = block._replace(codes=None)
        span = slice(span.start + inner.start, span.start + inner.stop)
        inside = line.group[span]
        local = np.where(inside >= 0, np.searchsorted(groups, inside), -1) if len(inside) > 1 else _FIRST
        worth, scale = _worth(line, self._factor[q], span, local, len(groups), k)
        lines = (line.constant, line.slope)
        if len(groups) < line.n_groups:
            lines = (lines[0].map(lambda a: a[groups]), lines[1].map(lambda a: a[groups]))
            grid, listed_bins = grid[groups], None if listed_bins is None else listed_bins[groups]
        constant, slope = (_part(loss, slice(None), k) for loss in lines)
        noted = kernels.changes(
            block, kernels.LineArrays(local, constant, slope, worth), grid, n_bins, listed_bins, summed
        )
        changes = Changes(*noted, scale)
        return changes if len(self._kinds) == 1 else changes.scaled(kind.share)

    # --------------------------------------------------------------------------------------------------- samples

    def sample(self, n_rows: int) -> Counts:
        """Return the oracle of a sample of about `n_rows` rows, always the same ones; itself if it has no more."""
        if self.n_rows <= n_rows:
            return self
        drawn: dict[int, Counts] = vars(self).setdefault("_drawn", {})
        if n_rows not in drawn:
            drawn[n_rows] = self._of(self.source.sample(n_rows))
        return drawn[n_rows]

    def glance(self, n_rows: int) -> Counts:
        """Return the oracle of `n_rows` rows that are quick to read."""
        return self if self.n_rows <= n_rows else self._of(self.source.glance(n_rows))

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels to rows that are elsewhere: all but samples of them."""
        return {name: value for name, value in vars(self).items() if name not in ("_drawn", "_kept")}

    def _of(self, rows: Rows) -> Counts:
        return replace(self, source=MemorySource(rows, self.source.schema, self.source.passes))


def _asked(losses: Sequence[Loss | None]) -> list[int]:
    """Return the places of losses that are to be counted."""
    return [r for r, loss in enumerate(losses) if loss is not None]


def _shares(weights: FloatArray) -> FloatArray:
    """Divide by the sum of each output."""
    total = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0)


def _shares_of(block: kernels.Block, decided: IntArray, expected: bool, factor: FloatArray, d: int) -> FloatArray:
    """Hits and predicted shares (2, D) of decisions (n,) for one output, not behind a link."""
    weight, eta = block.weight, block.eta[:, 0]
    if not expected:
        assert block.codes is not None
        true = block.codes[:, 0].astype(np.intp)
        counted = np.where(true >= 0, factor[true], 0.0)
        counted = counted if weight is None else counted * weight
        hit = np.where(decided == true, counted, 0.0)
    else:
        counted = np.full(len(decided), factor[0]) if weight is None else factor[0] * weight
        counted = counted if block.mass is None else counted * block.mass[:, 0]
        if eta.ndim == 1:
            hit = counted * np.where(decided == 1, eta, np.where(decided == 0, 1.0 - eta, 0.0))
        else:
            right = np.take_along_axis(eta, np.minimum(decided, eta.shape[1] - 1)[:, None], axis=1)[:, 0]
            hit = counted * np.where(decided < eta.shape[1], right, 0.0)
            counted = counted * eta.sum(axis=1, dtype=np.float64)  # 1 but for rounding
    return np.stack([np.bincount(decided, values, minlength=d) for values in (hit, counted)])


def _worth(
    line: Line, factor: FloatArray, span: slice, local: IntArray, n_groups: int, k: int
) -> tuple[FloatArray, FloatArray]:
    """What an entry of true class i that is decided as j adds, (M, K + 1, K, 2), in units of a scale (G,)."""
    factor = factor[span, :k] * line.share[span, None]
    functionals = np.moveaxis(line.functionals[np.maximum(line.group[span], 0), :, :k, :k], 1, 3)
    if factor.shape[1] < k:  # a decision that is no class has a row of no weight
        factor = np.pad(factor, ((0, 0), (0, k - factor.shape[1])), mode="edge")
        functionals = np.pad(
            functionals, ((0, 0), (0, k - functionals.shape[1]), (0, k - functionals.shape[2]), (0, 0))
        )
    used = local >= 0
    scale = np.ones(n_groups)
    scale[local[used]] = factor[used, 0]
    alike = (factor[used] == scale[local[used], None]).all()  # rows of a group all count by 1 times the scale
    worth = np.zeros((len(local), k + 1, k, 2))  # nothing for a missing label
    worth[:, 1:] = functionals if alike else functionals * factor[:, :, None, None]
    return worth, scale if alike else np.ones(n_groups)


def _gather(parts: list[tuple[IntArray, Changes]], n_groups: int, n_bins: int) -> Changes:
    """Add up the changes of parts of the groups, each with the groups that it is of."""
    parts = [(groups, part.scaled()) for groups, part in parts]
    whole = Changes(
        np.zeros((n_groups, 2)),
        np.zeros((n_groups, n_bins + 2), dtype=np.int64),
        np.zeros((n_groups, n_bins + 2, 4)),
        np.concatenate([np.empty(0, dtype=np.intp), *(_shifted(part, groups, n_bins) for groups, part in parts)]),
        np.concatenate([np.empty(0), *(part.g for _, part in parts)]),
        np.concatenate([np.empty((0, 2)), *(part.change for _, part in parts)]),
        np.ones(n_groups),
    )
    for groups, part in parts:
        whole.start[groups] += part.start
        whole.count[groups] += part.count
        whole.sums[groups] += part.sums
    return whole


def _shifted(part: Changes, groups: IntArray, n_bins: int) -> IntArray:
    """Segments of a block of outputs, numbered by the groups of all."""
    group, bin_ = np.divmod(part.segment, n_bins + 2)
    return groups[group] * (n_bins + 2) + bin_


def _part(loss: Loss, span: slice, width: int) -> tuple[FloatArray, ...]:
    """The arrays of a loss for a block of outputs, cut or padded with zeros to the width of the block."""
    arrays = []
    for array in loss.arrays:
        part = array if len(array) == 1 else array[span]
        cut = (slice(None),) + (slice(0, width),) * (part.ndim - 1)
        part = part[cut]
        if part.shape[-1] < width:
            pad = [(0, 0)] + [(0, width - part.shape[-1])] * (part.ndim - 1)
            part = np.pad(part, pad)
        arrays.append(np.ascontiguousarray(part))
    return tuple(arrays)
