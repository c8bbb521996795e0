"""Bags: a recipe fitted to many resamples of the rows at once, and the one rule that they make together.

Owns how resamples are drawn and how fits to all of them are one problem. Rows are dealt into blocks, and a resample
leaves some of the blocks out: then it differs from the others in nothing but labels that it does not see, so that R
resamples of M outputs are R * M outputs with missing labels, which never interact, and one solver serves all of them.
Every row is left out by some resamples, whose rules may judge it. Must not know how recipes are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..core.errors import InvalidParameter, argument, mention
from ..core.losses import Loss
from ..core.probabilities import Probabilities
from ..data.sources.memory import MemorySource
from ..kernels import code_type, tally
from ..oracles.problem import FitStrategy, InMemory
from ..rules.calibration import TemperatureScaling, link_or_base, prior_shift
from ..rules.calibration_fit import fit_links
from ..rules.decisions import decide_loss
from ..rules.mixture import MixtureRule
from ..rules.weighted import WeightedRule, anonymous_rule
from ..solvers.base import Solver
from .solving import Settings, solve

__all__ = [
    "PARTS",
    "ROUNDS",
    "Bag",
    "BaggedRule",
    "Resamples",
    "deal_halves",
    "dealt_size",
    "decide_left_out",
    "draw",
    "fit_bags",
    "links_of",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_BLOCKS = 12
PARTS = 3  # of which a resample leaves one out; with two or five of them the rules did worse on new rows
ROUNDS = 7
_MAX_EXACT_COUNT = 10**9  # rows, of which NumPy draws some without replacement
_RESOLUTION = 1e-7  # of the largest number: closer ones may have been equal before they were rounded
_TILE = 1 << 21  # numbers that are held at once for resamples of the probabilities


@dataclass(frozen=True, eq=False)
class Resamples:
    """Blocks of rows, and which of them each resample leaves out.

    Parameters
    ----------
    problem : InMemory
        The rows that are dealt, N of them, in the order of their content, or in time. One that stands for several is a
        row in each block that has some of these.
    block : ndarray of shape (N,), int
        Block of each row.
    left_out : bool ndarray of shape (R, B)
    """

    problem: InMemory
    block: IntArray
    left_out: NDArray[np.bool_]

    @property
    def n_resamples(self) -> int:
        """R."""
        return len(self.left_out)

    @cached_property
    def rows(self) -> list[IntArray]:
        """The rows of each block, ascending."""
        order = np.argsort(self.block.astype(np.int8), kind="stable")  # a radix sort, for short integers
        ends = np.cumsum(np.bincount(self.block, minlength=self.left_out.shape[1]))
        return np.split(order, ends[:-1])

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Rows that each resample keeps, of shape (R, N)."""
        return np.asarray(~self.left_out[:, self.block])


def draw(problem: InMemory, rng: np.random.Generator, n_rounds: int = ROUNDS) -> Resamples:
    """Draw resamples of the rows of a problem.

    Rows that belong together come into one block. Of those in time each block is a stretch; others are dealt at random,
    evenly within the classes of a single output, and so are the rows that one with a frequency stands for. In each
    round the blocks are shuffled and cut into three parts, and each part is left out by one resample: over the rounds
    every block is left out equally often.

    Parameters
    ----------
    problem : InMemory
        With labels.
    rng : Generator
    n_rounds : int, default=7

    Returns
    -------
    Resamples
        R = 3 * n_rounds of them; 2 * n_rounds where there are but two blocks.
    """
    rows = problem.source.rows
    check_labelled(problem)
    if problem.dependence is None:
        # Sums over rows are then the same to the last bit in whatever order the rows came.
        problem = problem.take(_content_order(problem, [_strata(problem)]))
    if rows.cluster is None and rows.repeats is not None:
        problem, block = _dealt_counts(problem, rng)
    else:
        block = _dealt_rows(problem, rng)
    n_blocks = int(block.max()) + 1
    n_parts = min(PARTS, n_blocks)
    left_out = np.zeros((n_rounds, n_parts, n_blocks), dtype=bool)
    for round_parts in left_out:
        for part, blocks in zip(round_parts, np.array_split(rng.permutation(n_blocks), n_parts), strict=True):
            part[blocks] = True
    return Resamples(problem, block, left_out.reshape(-1, n_blocks))


def dealt_size(problem: InMemory) -> int:
    """Return how many numbers the rows hold that are dealt to blocks, at most."""
    rows = problem.source.rows
    if rows.cluster is not None or rows.repeats is None:
        return rows.proba.size
    return int(rows.proba.size * np.minimum(rows.repeats, _BLOCKS).mean())


def _dealt_rows(problem: InMemory, rng: np.random.Generator) -> IntArray:
    """Deal rows to blocks, (N,): those that belong together as one."""
    cluster, size = _clusters(problem)
    n_blocks = min(_BLOCKS, len(size))
    if problem.dependence is not None:
        block = _stretches(problem, size, n_blocks)
    else:
        order = rng.permutation(len(size))
        if problem.source.rows.cluster is not None:
            order = _content_order(problem, [_cluster_labels(problem, cluster), -size], cluster)[order]
        block = _dealt(problem, cluster, size, n_blocks, order)
    return np.asarray(block, dtype=np.intp)[cluster]


def deal_halves(problem: InMemory) -> Resamples:
    """Deal rows to two halves, each of which one resample leaves out.

    The halves depend on the number of rows, on their labels and on which rows belong together, and not on the
    probabilities: they are the same for all models that are compared on the rows. Rows in time are an earlier and a
    later half.
    """
    check_labelled(problem)
    cluster, size = _clusters(problem)
    if problem.dependence is not None:
        block = _stretches(problem, size, 2)
    else:
        block = _dealt(problem, cluster, size, 2, np.random.default_rng(0).permutation(len(size)))
    return Resamples(problem, np.asarray(block, dtype=np.intp)[cluster], np.eye(2, dtype=bool))


def _clusters(problem: InMemory) -> tuple[IntArray, IntArray]:
    """Return which rows belong together, numbers (N,), and how many rows each of these has."""
    rows = problem.source.rows
    if rows.cluster is None:
        return np.arange(rows.n_rows), np.ones(rows.n_rows, dtype=np.intp)
    cluster = np.unique(rows.cluster, return_inverse=True)[1].reshape(-1)
    return cluster, np.bincount(cluster)


def _stretches(problem: InMemory, size: IntArray, n_blocks: int) -> IntArray:
    """Deal runs of rows in time to blocks, each of which is a stretch of time.

    By where the middle of a run lies, so that two runs, however long, never come into one block alone.
    """
    assert problem.dependence is not None
    size = np.ones_like(size) if problem.dependence.by_weight else size
    block = (2 * np.cumsum(size) - size) * n_blocks // (2 * size.sum())
    return np.unique(block, return_inverse=True)[1]


def check_labelled(problem: InMemory) -> None:
    """Refuse labels of fewer than two independent rows: a rule fitted to one has none to be judged on."""
    rows = problem.source.rows
    assert rows.codes is not None
    labelled = (rows.codes >= 0).any(axis=1)
    if rows.weight is not None:
        labelled &= rows.weight > 0
    if rows.cluster is not None:
        n_independent = len(np.unique(rows.cluster[labelled]))
    else:
        n_independent = int(labelled.sum() if rows.repeats is None else rows.repeats[labelled].sum())
    if n_independent < 2:
        raise InvalidParameter(
            "proba",
            problem=(
                f"{mention('proba')} and y must have at least two independent rows with labels, because "
                "rules are evaluated on rows left out, got one"
            ),
            remedy=(
                f"add rows, or pass {argument('confusion', 'labels')} and {argument('recalibrate', False)} "
                f"(with constraints also {argument('confidence', None)}), to skip the evaluation"
            ),
        )


def _cluster_labels(problem: InMemory, cluster: IntArray) -> FloatArray:
    """The sum of the classes of rows that belong together: of binary labels, how many are positive."""
    strata = _strata(problem)
    return strata if problem.source.rows.cluster is None else np.bincount(cluster, strata).astype(np.float64)


def _dealt(problem: InMemory, cluster: IntArray, size: IntArray, n_blocks: int, order: IntArray) -> NDArray[np.intp]:
    """Deal clusters of rows to blocks, the largest first, to and fro: blocks are of about one size.

    Clusters with the same labels and of one size are dealt in the given order.
    """
    labels = _cluster_labels(problem, cluster)
    if problem.source.rows.cluster is None:
        order = order[np.argsort(labels.astype(np.int16)[order], kind="stable")]  # a radix sort, for short integers
    else:
        order = order[np.lexsort((-size[order], labels[order]))]
    turn, place = np.divmod(np.arange(len(size)), n_blocks)
    block = np.empty(len(size), dtype=np.intp)
    block[order] = np.where(turn % 2 == 0, place, n_blocks - 1 - place)
    return block


def _content_order(problem: InMemory, first: Sequence[NDArray[Any]], cluster: IntArray | None = None) -> IntArray:
    """Sort rows, or clusters of them, by given keys and then by content: neither their order nor noise matters.

    Numbers that differ by less than the resolution are ties, which the next one breaks. What is left of them is broken
    by the probabilities themselves: then rows change places that say the same.
    """
    columns = problem.source.rows.coordinates()
    if cluster is not None:
        # Sums of rows do not know which label belongs to which probability: a mix of all that is not linear does.
        mixed = np.sin(np.sum([column / _scale(column) for column in columns], axis=0))
        columns = [np.bincount(cluster, column).astype(np.float64) for column in (*columns, mixed)]
    keys = [*first, *(_levels(column) for column in columns), columns[1]]
    keys = [key for key in keys if key.min(initial=0) < key.max(initial=0)] or keys  # others decide nothing
    return np.asarray(np.lexsort(keys[::-1]), dtype=np.intp)


def _levels(values: FloatArray) -> IntArray:
    """Return the rank (n,) of numbers, the same of neighbours closer than the resolution."""
    if np.ptp(values) <= _RESOLUTION * _scale(values):
        return np.zeros(len(values), dtype=np.intp)
    order = np.argsort(values, kind="stable")
    levels = np.empty(len(values), dtype=np.intp)
    levels[order] = np.cumsum(np.diff(values[order], prepend=values[order[:1]]) > _RESOLUTION * _scale(values))
    return levels


def _scale(values: FloatArray) -> float:
    """Return the largest absolute number, 1 if all are 0."""
    return float(np.abs(values).max(initial=0.0)) or 1.0


def _strata(problem: InMemory) -> FloatArray:
    """What rows are dealt evenly within, (N,): the class of a single output, and the sensitive group."""
    rows, n_groups = problem.source.rows, problem.schema.n_groups
    if problem.schema.n_outputs != n_groups or rows.codes is None:
        return np.zeros(rows.n_rows)
    strata = rows.codes.max(axis=1).astype(np.float64)
    if rows.group is not None and n_groups > 1:
        strata += problem.schema.width * rows.group
    return np.asarray(strata)


def _dealt_counts(problem: InMemory, rng: np.random.Generator) -> tuple[InMemory, IntArray]:
    """Deal the rows that rows with frequencies stand for to blocks at random, as if they were written out.

    Returns
    -------
    problem : InMemory
        Whose rows stand for those of one block each.
    block : ndarray, int
        Block of each.
    """
    rows = problem.source.rows
    assert rows.repeats is not None
    repeats, counts = rows.repeats, rows.repeats.astype(np.int64)
    n_blocks = int(min(_BLOCKS, max(counts.sum(), 1)))
    strata = _strata(problem)
    dealt, first = np.zeros((rows.n_rows, n_blocks), dtype=np.int64), 0
    for stratum_rows in np.split(np.arange(rows.n_rows), np.flatnonzero(np.diff(strata)) + 1):
        total = int(counts[stratum_rows].sum())
        dealt[stratum_rows] = _thinned(counts[stratum_rows], np.roll(np.arange(n_blocks), -first), rng)
        first = (first + total) % n_blocks
    index, block = np.nonzero(dealt)
    many, share = rows.take(index), dealt[index, block] / repeats[index]
    scaled = {name: getattr(many, name) * share for name in ("weight", "frequency", "repeats")}
    source = MemorySource(replace(many, **scaled), problem.schema, problem.source.passes)
    return replace(problem, source=source), block.astype(np.intp)


def _thinned(counts: NDArray[np.int64], blocks: IntArray, rng: np.random.Generator) -> NDArray[np.int64]:
    """Deal counts (n,) to blocks at random, (n, B): blocks of one size up to a row, the first ones are larger."""
    total = int(counts.sum())
    if total >= _MAX_EXACT_COUNT:
        return rng.multinomial(counts, np.full(len(blocks), 1 / len(blocks)))
    out, left = np.zeros((len(counts), len(blocks)), dtype=np.int64), counts.copy()
    for turn, b in enumerate(blocks.tolist()):
        size = total // len(blocks) + (turn < total % len(blocks))
        out[:, b] = rng.multivariate_hypergeometric(left, size, method="marginals")
        left -= out[:, b]
    return out


class Bag(Protocol):
    """The rules of R resamples, and the decisions of the one that some of them make together."""

    @property
    def n_resamples(self) -> int:
        """R."""
        ...

    @property
    def is_randomized(self) -> bool:
        """Whether decisions are drawn."""
        ...

    def recalibrate(self, problem: InMemory, rows: IntArray, which: NDArray[np.bool_]) -> Probabilities | None:
        """Return the probabilities of some rows as some of the resamples recalibrate them; None if they do not."""
        ...

    def decide(self, problem: InMemory, which: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the decisions, codes (N, M), of the one rule that some of the resamples, a mask (R,), make."""
        ...


@dataclass(frozen=True, eq=False)
class BaggedRule:
    """The rules that one recipe fits to R resamples.

    Parameters
    ----------
    n_resamples : int
        R.
    losses : tuple of ndarray of shape (R, 1 or M, ...)
        Arrays of their losses, of one form, scaled to one size; see :class:`metricwise.core.losses.Loss`. Empty where
        the rules are mixtures.
    mixtures : tuple of R MixtureRule
        Over codes, without link; empty where the rules are none.
    link : TemperatureScaling or None
        That of all resamples, of R * M outputs.
    """

    n_resamples: int
    losses: tuple[FloatArray, ...]
    mixtures: tuple[MixtureRule, ...]
    link: TemperatureScaling | None

    @property
    def is_randomized(self) -> bool:
        """Whether the rules are mixtures."""
        return bool(self.mixtures)

    def loss(self, which: NDArray[np.bool_]) -> Loss:
        """Return the mean of the losses of some of the resamples, a mask of shape (R,)."""
        arrays = [losses[which].mean(axis=0) for losses in self.losses]
        return Loss(full=arrays[0]) if len(arrays) == 1 else Loss(diagonal=arrays[0], offset=arrays[1])

    def mean_link(self, which: NDArray[np.bool_]) -> TemperatureScaling | None:
        """Return the mean of the links of some of the resamples, a mask of shape (R,)."""
        if self.link is None:
            return None
        key = which.tobytes()
        if key not in self._mean_links:
            shape = (self.n_resamples, -1)
            temperature = self.link.temperature.reshape(shape)[which].mean(axis=0)
            bias = self.link.bias.reshape(*shape, self.link.n_classes)[which].mean(axis=0)
            self._mean_links[key] = TemperatureScaling(temperature, bias, self.link.floor)
        return self._mean_links[key]

    @cached_property
    def _mean_links(self) -> dict[bytes, TemperatureScaling]:
        """Mean links of the resamples that have been asked for: those of each block, to decide and to recalibrate."""
        return {}

    def recalibrate(self, problem: InMemory, rows: IntArray, which: NDArray[np.bool_]) -> Probabilities | None:
        """Return the probabilities of some rows behind the mean link of some of the resamples; None without links."""
        link = self.mean_link(which)
        return None if link is None else link.view(problem.source.rows.proba.take(rows)).recalibrated()

    def decide(self, problem: InMemory, which: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the decisions, codes (N, M), of the one rule that some of the resamples make together.

        Its link and its loss are the means of theirs. Mixtures are not averaged: that of the first of the resamples
        stands for them.
        """
        if self.mixtures:
            first = int(np.argmax(which))
            return problem.decide(self.mixtures[first], self.mean_link(np.arange(self.n_resamples) == first))
        link, proba = self.mean_link(which), problem.source.rows.proba
        return decide_loss(self.loss(which), proba if link is None else link.view(proba), problem.schema.n_decisions)

    @classmethod
    def merged(cls, bags: Sequence[BaggedRule]) -> BaggedRule:
        """Return the bag of the mean rule of several bags in each resample; they have the link in common."""
        if len(bags) == 1:
            return bags[0]
        diagonal = all(len(bag.losses) == 2 for bag in bags)
        losses = [bag.losses if diagonal else (bag.tensors,) for bag in bags]
        means = tuple(np.mean(arrays, axis=0) for arrays in zip(*losses, strict=True))
        return cls(bags[0].n_resamples, means, (), bags[0].link)

    @property
    def tensors(self) -> FloatArray:
        """The losses as one array of shape (R, 1 or M, K, K)."""
        if len(self.losses) == 1:
            return self.losses[0]
        diagonal, offset = self.losses
        return np.asarray(diagonal[..., :, None] * np.eye(diagonal.shape[-1]) + offset[..., None, :])

    def rule(self, n_classes: IntArray) -> tuple[WeightedRule, TemperatureScaling | None] | None:
        """Return the one rule that all resamples make together, over codes, and its link; None of mixtures."""
        if self.mixtures:
            return None
        everyone = np.ones(self.n_resamples, dtype=bool)
        return anonymous_rule(self.loss(everyone), n_classes), self.mean_link(everyone)


def _scaled(losses: Sequence[Loss]) -> tuple[FloatArray, ...]:
    """Put losses of one form together, each scaled so that entries of a row differ by 1 at most, on average over rows.

    Modulo row constants the size of a loss is what the largest entry of a row can differ by from another.
    """
    if not all(loss.is_diagonal for loss in losses):
        losses = [Loss(full=loss.tensor()) for loss in losses]
    arrays = tuple(np.concatenate(parts) for parts in zip(*(loss.arrays for loss in losses), strict=True))
    if len(arrays) == 1:
        size = np.ptp(arrays[0], axis=2).mean(axis=1)
    else:
        size = _spread(*arrays)
    size = np.where(size > 0, size, 1.0)
    return tuple(array / size.reshape((-1,) + (1,) * (array.ndim - 1)) for array in arrays)


def _spread(diagonal: FloatArray, offset: FloatArray) -> FloatArray:
    """The mean over the rows of a diagonal-plus-offset loss (B, K) of the largest difference within a row, (B,).

    Row i holds the offsets, with d_i added to the i-th: it is enough to know the extremes of the others.
    """
    k = diagonal.shape[1]
    if k == 1:
        return np.zeros(len(diagonal))
    order = np.argsort(offset, axis=1, kind="stable")
    ends = np.take_along_axis(offset, order[:, [0, 1, -2, -1]], axis=1)
    with_diagonal, index = offset + diagonal, np.arange(k)
    low = np.where(index == order[:, :1], ends[:, 1:2], ends[:, :1])
    high = np.where(index == order[:, -1:], ends[:, 2:3], ends[:, 3:])
    return np.asarray((np.maximum(high, with_diagonal) - np.minimum(low, with_diagonal)).mean(axis=1))


def links_of(problem: InMemory, resamples: Resamples, recalibrate: bool) -> TemperatureScaling | None:
    """Return the link of every resample, shifted to the known class priors; None where there is none.

    Parameters
    ----------
    problem : InMemory
        With labels.
    resamples : Resamples
    recalibrate : bool
        Whether links are fitted to the labels.

    Returns
    -------
    TemperatureScaling or None
        Of R * M outputs, resample by resample.
    """
    rows, link = problem.source.rows, None
    assert rows.codes is not None
    if recalibrate:
        fitted = fit_links(
            rows.proba,
            rows.codes,
            rows.weight,
            masks=resamples.kept,
            frequency=rows.frequency,
            max_rows=rows.n_rows,
        )
        link = TemperatureScaling(
            np.concatenate([resample_link.temperature for resample_link in fitted]),
            np.concatenate([resample_link.bias for resample_link in fitted]),
            fitted[0].floor,
        )
    if problem.prior is None:
        return link
    kept = resamples.kept.astype(np.float64)
    counts = tally(rows.codes, kept if rows.weight is None else kept * rows.weight, problem.schema.width)
    total = counts.sum(axis=2, keepdims=True)
    target = np.broadcast_to(problem.prior, counts.shape)
    shares = np.where(total > 0, counts / np.where(total > 0, total, 1.0), target)  # without labels nothing is shifted
    k, tiles = counts.shape[2], np.tile(np.arange(problem.schema.n_outputs), resamples.n_resamples)
    link = link_or_base(link, problem.schema.of_outputs(tiles))
    return prior_shift(link, shares.reshape(-1, k), target.reshape(-1, k))


def fit_bags(
    problem: InMemory,
    resamples: Resamples,
    recipes: Sequence[FitStrategy],
    solver: Solver | Settings,
    link: TemperatureScaling | None,
) -> list[BaggedRule]:
    """Fit rules to every resample of the rows of a problem, by recipes that have the link in common.

    Parameters
    ----------
    problem : InMemory
        With labels.
    resamples : Resamples
    recipes : sequence of FitStrategy
    solver : Solver or Settings
    link : TemperatureScaling or None
        That of all resamples; see :func:`links_of`.

    Returns
    -------
    list of BaggedRule
        One per recipe.
    """
    rules: list[list[WeightedRule | MixtureRule]] = [[] for _ in recipes]
    for tile in _tiles(problem, resamples, link):
        for recipe, recipe_rules in zip(recipes, rules, strict=True):
            recipe_rules.append(solve(tile, recipe, solver, None).rule)
        del tile  # before the next one is made
    return [_bag(problem, resamples.n_resamples, recipe_rules, link) for recipe_rules in rules]


def _bag(
    problem: InMemory, n_resamples: int, rules: Sequence[WeightedRule | MixtureRule], link: TemperatureScaling | None
) -> BaggedRule:
    """Put rules of some resamples each together."""
    n_outputs = problem.schema.n_outputs
    if any(rule.is_randomized for rule in rules):
        mixtures = [
            _of_outputs(rule, slice(start, start + n_outputs), problem)
            for rule in rules
            for start in range(0, len(rule.classes), n_outputs)
        ]
        return BaggedRule(n_resamples, (), tuple(mixtures), link)
    losses = _scaled([_spread_out(loss, len(rule.classes)) for rule in rules for loss in rule.flatten().losses])
    losses = tuple(array.reshape(n_resamples, -1, *array.shape[1:]) for array in losses)
    if problem.aim.average != "macro" and n_outputs > 1:
        # All outputs follow one loss; those without any label in a resample would have that of argmax there.
        first = int(np.argmax(problem.source.class_weights.sum(axis=1) * problem.aim.output_weight))
        losses = tuple(array[:, first : first + 1] for array in losses)
    return BaggedRule(n_resamples, losses, (), link)


def _spread_out(loss: Loss, n_outputs: int) -> Loss:
    """Give every output a loss of its own."""
    return loss.map(lambda a: a if len(a) == n_outputs else np.broadcast_to(a, (n_outputs, *a.shape[1:])))


def _tiles(problem: InMemory, resamples: Resamples, link: TemperatureScaling | None) -> Iterator[InMemory]:
    """Yield problems of some of the resamples each, whose outputs are those of the resamples, one after the other."""
    rows, n_outputs = problem.source.rows, problem.schema.n_outputs

    def tile(some: slice) -> InMemory:
        kept = resamples.kept[some]
        outputs = np.arange(some.start * n_outputs, (some.start + len(kept)) * n_outputs)
        tiled = rows.tiled(kept, None if link is None else link.of_outputs(outputs).arrays)
        outputs = outputs % n_outputs
        source = MemorySource(tiled, problem.schema.of_outputs(outputs), problem.source.passes)
        prior = None if problem.prior is None else problem.prior[outputs]
        return InMemory(source, problem.aim.tiled(n_outputs, len(kept)), prior)

    confusions = n_outputs * problem.schema.decision_width**2  # of which a solver holds some for every resample
    together = max(1, _TILE // max(rows.proba.size, 4 * confusions, 1))
    for start in range(0, resamples.n_resamples, together):
        yield tile(slice(start, start + together))


def _of_outputs(rule: WeightedRule | MixtureRule, outputs: slice, problem: InMemory) -> MixtureRule:
    """Return the mixture of the outputs of one resample, over codes."""
    rules, shares = rule.flatten()
    shares = np.broadcast_to(shares, (len(rule.classes), shares.shape[1]))[outputs]
    losses = [part.loss.map(lambda a: a if len(a) == 1 else a[outputs]) for part in rules]
    same = bool((shares == shares[0]).all())
    seed = getattr(rule, "seed", 0)
    parts = tuple(anonymous_rule(loss, problem.schema.n_decisions) for loss in losses)
    return MixtureRule(parts, shares[0] if same else shares, seed=seed)


def decide_left_out(problem: InMemory, resamples: Resamples, bag: Bag) -> NDArray[Any]:
    """Return decisions (N, M) on every row by the average rule of the resamples that left it out."""
    out = np.empty((problem.n_rows, problem.schema.n_outputs), dtype=code_type(problem.schema.decision_width))
    for rows, left_out_by in zip(resamples.rows, resamples.left_out.T, strict=True):
        out[rows] = bag.decide(problem.take(rows), left_out_by)
    return out
