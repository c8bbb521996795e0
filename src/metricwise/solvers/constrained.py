"""The best mixture of rules that satisfies constraints: column generation with constraints as rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ..core.losses import Loss
from ..goals.constraint import ConstraintSystem, GroupGap, HalfSpace, PooledConstraint
from ..metrics.base import Increasing
from ..metrics.objective import Objective
from ..oracles.base import Oracle
from .programme import Programme

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

__all__ = ["Effort", "Feasible", "InfeasibleError", "Point", "maximise"]

_STEPS = 300
_OUTER = 60
_SAME = 1e-12
_LITTLE = 1e-5  # of the rows
_SLOW = 1e-6  # of a step of a climb that ends where it is local anyway
_CLOSE = 1e-7  # of tangents to a concave aim, of which more and more are needed to come closer
_GRID = np.linspace(0.0, 1.0, 17)
_EXPLORED = 4.0 ** np.arange(-1.0, 4.0)  # multipliers, times the size of the aim over that of a constraint
_ROUGH_STEPS = 1  # passes of a fit to a resample
_CAUTIOUS_GAP = 1e-6  # of the value, that a search for margins may stay behind where no bound is proved
_ROUGH_GAP = 1e-4  # of the value, that a fit to a resample may stay behind: it drowns in sampling error
_MAX_AROUND = 32  # losses in one pass, which the oracle counts together


class Effort(IntEnum):
    """How much a search may ask of the oracle."""

    KNOWN = 0  # nothing: the rules that have been asked for
    ROUGH = 1  # as much as a fit to a resample is worth
    CAUTIOUS = 2  # no random steps where nothing satisfies narrower bounds: that is luck on the given rows
    FULL = 3
    THOROUGH = 4  # random steps around the best single rule as well


class InfeasibleError(Exception):
    """No rule keeps all constraints."""

    def __init__(self, point: Point | None = None) -> None:
        super().__init__("no rule keeps all constraints")
        self.point = point


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Outputs that follow one loss.

    Parameters
    ----------
    block : ndarray of shape (M,), int
        Block of each output.
    n_blocks : int
        B.
    guess : ndarray of shape (M, K), or None
        Where outputs of a block are pooled in several ways, as groups that a rule must not see are: what a row of each
        class is taken to weigh in each of them, for nothing tells which of them it is in.
    """

    block: IntArray
    n_blocks: int
    guess: FloatArray | None = None

    @classmethod
    def of(cls, oracle: Oracle, objective: Objective, limits: ConstraintSystem) -> _Blocks:
        """Let outputs share a loss where they are told to, or where aim and constraints pool them alike."""
        grouping = objective.grouping
        n_outputs = len(grouping.share)
        if grouping.loss is not None:
            names, block = np.unique(grouping.loss, return_inverse=True)
            block = block.reshape(-1).astype(np.intp)
            total = np.zeros((len(names), oracle.priors.shape[1]))
            np.add.at(total, block, oracle.weight[:, None] * oracle.priors)
            weight = oracle.weight.sum() * oracle.priors / np.where(total > 0, total, 1.0)[block]
            return cls(block, len(names), weight)
        if grouping.n_groups == 1 and limits.shared(grouping.share):
            return cls(np.zeros(n_outputs, dtype=np.intp), 1)
        return cls(np.arange(n_outputs), n_outputs)

    def gathered(self, values: FloatArray) -> FloatArray:
        """Return the sums (R, B) over the outputs of each block, of values (R, M)."""
        if self.n_blocks == values.shape[1]:
            return values
        out = np.zeros((len(values), self.n_blocks))
        np.add.at(out.T, self.block, values.T)
        return out

    def losses(self, slope: FloatArray) -> FloatArray:
        """Return what each block would like to minimise, (B, K, K), to raise ``sum_m <slope[m], C[m]>``."""
        weighed = slope if self.guess is None else slope * self.guess[:, :, None]
        if self.n_blocks == len(slope):
            return -weighed
        out = np.zeros((self.n_blocks, *slope.shape[1:]))
        np.add.at(out, self.block, -weighed)
        return out


@dataclass(frozen=True, eq=False)
class Point:
    """A mixture of rules, block by block.

    Parameters
    ----------
    losses : tuple of T Loss
        Each with the losses of all B blocks.
    weights : ndarray of shape (T, B)
        Shares of the rules in each block.
    aim, judged : ndarray of shape (M, K, K)
        Its confusion as the aim is counted, and as constraints are.
    value : float
        Of the aim.
    bound : float
        No rule that keeps the constraints has a larger one; infinite where nothing is known.
    prices : ndarray of shape (Q,)
        What the value would gain per unit by which each constraint were looser; 0 where it does not bind.
    """

    losses: tuple[Loss, ...]
    weights: FloatArray
    aim: FloatArray
    judged: FloatArray
    value: float
    bound: float
    prices: FloatArray


@dataclass(frozen=True, eq=False)
class _Cut:
    """The value of a group is at most ``level + <slope, C>``."""

    group: int
    level: float
    slope: FloatArray


class Feasible:
    """Rules that have been asked for, and the best of their mixtures that keep the constraints.

    Parameters
    ----------
    oracle : Oracle
        Counts the aim.
    judge : Oracle
        Counts the constraints; the same one, or one that counts labels.
    objective : Objective
    limits : ConstraintSystem
    tol : float
        Of values and of constraints.
    """

    def __init__(
        self,
        oracle: Oracle,
        judge: Oracle,
        objective: Objective,
        limits: ConstraintSystem,
        tol: float,
        guess: FloatArray | None = None,
    ) -> None:
        self.oracle, self.judge, self.objective, self.limits, self.tol = oracle, judge, objective, limits, tol
        self.blocks = _Blocks.of(oracle, objective, limits)
        self.weight = _group_weights(objective)
        # Where a guess stands for what rows count for, the rule that is asked for need not be the best there is.
        self.certified = oracle.certified and judge is oracle and self.blocks.guess is None
        self.losses: list[Loss] = []
        shape = (0, len(objective.grouping.share), objective.width, objective.width)
        self.aim, self.judged = np.zeros(shape), np.zeros(shape)
        self.tangents: list[tuple[int, HalfSpace]] = []
        self.local: list[tuple[int, HalfSpace]] = []  # of bounds that are not convex, by their gradients
        self.never_empty = False
        self.effort = Effort.FULL
        self.prices: FloatArray | None = None
        self.last: Point | None = None  # the last local optimum, where bounds are not convex
        self._counted: dict[int, FloatArray] = {}  # metrics of such bounds for the rules asked for, by their forms
        self._rows: list[tuple[int, HalfSpace]] | None = None
        self._basis: IntArray | None = None
        first = _first_losses(objective, self.blocks.n_blocks) + self._first_trade_offs(guess)
        self.add(first, *self.ask(first))

    def _first_trade_offs(self, guess: FloatArray | None) -> list[Loss]:
        """Losses between the aim and the constraints, at multipliers of all sizes, or near a guess of them."""
        spaces = [space.A for _, space in self.rows]
        if not spaces or self._all_asked:
            return []
        aim = self._rough_slope()
        if guess is not None and len(guess) == len(spaces) and (guess > 0).any():
            prices, steps = guess, 2.0 ** np.linspace(-1.5, 1.5, 7)
        else:
            sizes = np.array([max(float(np.abs(A).sum()), _SAME) for A in spaces])
            prices, steps = float(np.abs(aim).sum()) / sizes, 4.0 ** np.arange(-2.0, 3.0)
        return [self._loss(aim, spaces, multipliers) for multipliers in _around(prices, steps)]

    def _rough_slope(self) -> FloatArray:
        """The slope of the aim (M, K, K) at a confusion that is half right, half by chance."""
        objective, priors = self.objective, self.oracle.priors
        if objective.ratio is None and not objective.concave:
            slopes = np.broadcast_to(np.eye(objective.width), (objective.grouping.n_groups, *(objective.width,) * 2))
        else:
            rough = (np.eye(objective.width) * priors[:, :, None] + priors[:, :, None] * priors[:, None, :]) / 2
            slopes = objective.gradient(objective.grouping.pool(rough))
            slopes = np.where(np.isfinite(slopes), slopes, 0.0)
        return np.asarray(np.einsum("gm,gij->mij", self.weight, slopes))

    def narrow(self, limits: ConstraintSystem) -> None:
        """Keep other bounds on the same metrics from now on."""
        self.limits, self.tangents, self.local, self.never_empty, self._rows = limits, [], [], False, None

    # ---------------------------------------------------------------------------------------------- rules asked for

    def add(self, losses: Sequence[Loss], aim: FloatArray, judged: FloatArray) -> None:
        """Take rules whose confusions have been asked for."""
        self.losses += losses
        self.aim, self.judged = np.concatenate([self.aim, aim]), np.concatenate([self.judged, judged])

    def ask(self, losses: Sequence[Loss]) -> tuple[FloatArray, FloatArray]:
        """Return the confusions (R, M, K, K) of such rules as the aim is counted, and as constraints are."""
        alike = self.blocks.n_blocks == 1 and not self.objective.frozen.any()
        spread = losses if alike else [self.spread(loss) for loss in losses]
        if self.judge is not self.oracle:
            return self.oracle.confusions_beside(self.judge, spread)
        aim = self.oracle.confusions(spread)
        return aim, aim

    def spread(self, loss: Loss) -> Loss:
        """Turn losses of blocks into losses of outputs; outputs that keep argmax get its loss.

        Of several blocks all are full: which rule each of them follows is chosen later, and rules of two structures
        would decide ties in two ways.
        """
        block, frozen = self.blocks.block, self.objective.frozen
        loss = loss if self.blocks.n_blocks == 1 else Loss(full=loss.tensor())
        if self.blocks.n_blocks == 1 and not frozen.any():
            return loss
        argmax_loss = Loss.argmax(self.objective.width)
        argmax_loss = argmax_loss if loss.is_diagonal else Loss(full=argmax_loss.tensor())

        def expand(ours: FloatArray, argmax: FloatArray) -> FloatArray:
            out = ours[block]
            out[frozen] = argmax[0]
            return out

        return loss.map(expand, argmax_loss)

    # ----------------------------------------------------------------------------------------------- the programme

    @property
    def rows(self) -> list[tuple[int, HalfSpace]]:
        """Half-spaces, each with the constraint that it is of: of linear ones and ratios, of gradients, and tangents.

        Those that no bound moves are of none, -1.
        """
        if self._rows is None:
            self._rows = [(q, space) for q, bound in enumerate(self.limits.constraints) for space in bound.half_spaces]
            self._rows += [(-1, space) for bound in self.limits.constraints for space in self._helpers(bound)]
        return self._rows + self.local + self.tangents

    def linearised(self, judged: FloatArray) -> list[tuple[int, HalfSpace]]:
        """Return the half-spaces of bounds that are not convex, by their gradients at a confusion (M, K, K)."""
        bounds = enumerate(self.limits.constraints)
        return [(q, space) for q, bound in bounds if not bound.convex for space in bound.linearised(judged)]

    def _helpers(self, bound: PooledConstraint | GroupGap) -> tuple[HalfSpace, ...]:
        """Where nothing predicted would seem to keep a bound on a ratio: at least a little of its denominator."""
        return bound.helpers + (bound.something(_LITTLE) if self.never_empty else ())

    def reset_empty(self) -> None:
        """Ask for at least a little of every denominator from now on."""
        self.never_empty, self._rows = True, None

    def cut_slope(self, cut: _Cut) -> FloatArray:
        """Return the slope of a cut in the confusions of all outputs, (M, K, K)."""
        return np.asarray(self.weight[cut.group][:, None, None] * cut.slope)

    def slope(self, point: Point) -> FloatArray:
        """Return the gradient of the aim at a point in the confusions of all outputs, (M, K, K)."""
        objective = self.objective
        pooled = objective.grouping.pool(point.aim)
        weight = objective.weight_at(objective.values(pooled))
        return np.asarray(np.einsum("gm,g,gij->mij", self.weight, weight, objective.gradient(pooled)))

    def functionals(self, slopes: Sequence[FloatArray], C: FloatArray) -> FloatArray:
        """Return linear functionals of the weights, (F, T * B), of slopes (M, k, k) and confusions (T, M, K, K)."""
        out = np.empty((len(slopes), len(C) * self.blocks.n_blocks))
        for row, slope in zip(out, slopes, strict=True):
            k = slope.shape[-1]
            row[:] = self.blocks.gathered(np.einsum("mij,tmij->tm", slope, C[..., :k, :k])).reshape(-1)
        return out

    def point(self, weights: FloatArray, bound: float, prices: FloatArray) -> Point:
        """Return the mixture of the first T rules that have been asked for with these weights (T, B)."""
        by_output, n_rules = weights[:, self.blocks.block], len(weights)
        aim, judged = (np.einsum("tm,tmij->mij", by_output, C[:n_rules]) for C in (self.aim, self.judged))
        return Point(tuple(self.losses[:n_rules]), weights, aim, judged, self.objective.value(aim), bound, prices)

    def rule_of_blocks(self, rules: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the confusions (M, K, K) of a rule for every block, by positions (B,) among those asked for."""
        place = rules[self.blocks.block], np.arange(len(self.blocks.block))
        return self.aim[place], self.judged[place]

    def values(self, aim: FloatArray) -> FloatArray:
        """Return the values (T,) of confusions (T, M, K, K) as the aim is counted."""
        return self.objective.totals(self.objective.values(self.objective.grouping.pool_each(aim)))

    def solve(self, cuts: Sequence[_Cut], first_phase: bool = False) -> tuple[FloatArray, float, FloatArray]:
        """Solve the programme over what has been asked for."""
        rows, grouping = self.rows, self.objective.grouping
        least = grouping.least  # then one number is below all cuts
        programme = Programme(
            self.functionals([space.A for _, space in rows], self.judged),
            np.array([space.level for _, space in rows]),
            self.functionals([self.cut_slope(cut) for cut in cuts], self.aim),
            np.array([cut.level for cut in cuts]),
            np.array([0 if least else cut.group for cut in cuts], dtype=np.intp),
            np.ones(1) if least else grouping.weight,
            self.blocks.n_blocks,
            self.tol,
            self._basis,
        )
        optimum = programme.nearest() if first_phase else programme.best()
        self._basis = optimum.basis
        weights = np.maximum(optimum.weights.reshape(len(self.losses), self.blocks.n_blocks), 0.0)
        return weights / weights.sum(axis=0), optimum.value, optimum.prices

    def _loss(self, aim: FloatArray, spaces: Sequence[FloatArray], prices: FloatArray) -> Loss:
        """The loss whose rule is best for the aim's slope (M, K, K) and half-spaces at these prices."""
        slope = aim.copy()
        for price, A in zip(prices.tolist(), spaces, strict=True):
            if price:
                k = A.shape[-1]
                slope[:, :k, :k] += price * A
        return Loss.from_tensor(self.blocks.losses(slope))

    def _slope_of_cuts(self, cuts: Sequence[_Cut], prices: FloatArray) -> FloatArray:
        slope = np.zeros((len(self.blocks.block), self.objective.width, self.objective.width))
        for price, cut in zip(prices.tolist(), cuts, strict=True):
            slope += price * self.cut_slope(cut)
        return slope

    def _lagrangians(
        self, level: float, slope: FloatArray, prices: FloatArray, aim: FloatArray, judged: FloatArray
    ) -> FloatArray:
        """The Lagrangian (P, T) at prices (P, R) of the rows and confusions (T, M, K, K), of an aim with this slope."""
        total = np.tile(level + np.einsum("mij,tmij->t", slope, aim), (len(prices), 1))
        for row_prices, (_, space) in zip(prices.T, self.rows, strict=True):
            k = space.A.shape[-1]
            total += np.outer(row_prices, np.einsum("mij,tmij->t", space.A, judged[..., :k, :k]) - space.level)
        return total

    # ------------------------------------------------------------------------------------------------- the search

    def start(self) -> Point:
        """Return a mixture that keeps the constraints."""
        if not self.limits.constraints:
            argmax = np.zeros((len(self.losses), self.blocks.n_blocks))
            argmax[0] = 1.0
            return self.point(argmax, np.inf, np.zeros(0))
        known_rule = self.best_known()
        if known_rule is not None and self._satisfies_rows(known_rule.judged):
            return known_rule
        for step in range(_STEPS):
            weights, value, prices = self.solve((), first_phase=True)
            if value > -self.tol:
                point = self.point(weights, np.inf, np.zeros(len(self.limits.constraints)))
                if not self._tangents_at(point):
                    return point
                continue
            if step >= self.n_steps or not self.grow(prices, step):
                break
        raise InfeasibleError(self.point(weights, np.inf, np.zeros(len(self.limits.constraints))))

    def _satisfies_rows(self, judged: FloatArray) -> bool:
        """Whether a confusion (M, K, K) satisfies all half-spaces, also those of levels and of small denominators."""
        for _, space in self.rows:
            k = space.A.shape[-1]
            if np.sum(space.A * judged[:, :k, :k]) < space.level:
                return False
        return True

    def best_known(self) -> Point | None:
        """The best of the rules asked for that keeps the constraints by itself; None of several blocks."""
        if self.blocks.n_blocks > 1:
            return None
        kept = self.kept_alone
        if not kept.any():
            return None
        values = np.full(len(kept), -np.inf)
        values[kept] = self.values(self.aim[kept])
        weights = (np.arange(len(kept)) == values.argmax()).astype(np.float64)[:, None]
        return self.point(weights, np.inf, np.zeros(len(self.limits.constraints)))

    @property
    def kept_alone(self) -> NDArray[np.bool_]:
        """Which of the rules asked for keep the constraints by themselves, in all blocks, (T,)."""
        kept = np.ones(len(self.judged), dtype=bool)
        for bound in self.limits.constraints:
            if bound.convex:
                kept &= bound.keeps(self.judged)
            else:
                kept &= self.to_spare(bound) >= -_SAME
        return kept

    def to_spare(self, bound: PooledConstraint | GroupGap) -> FloatArray:
        """Return by how much each of the rules asked for keeps a bound that is not convex, (T,)."""
        assert isinstance(bound, PooledConstraint)
        key = id(bound.bound.metric)  # which narrower bounds share
        counted = self._counted.get(key, np.empty(0))
        if len(counted) < len(self.judged):
            counted = np.concatenate([counted, bound.value(self.judged[len(counted) :])])
            self._counted[key] = counted
        return np.minimum(counted - bound.constraint.low, bound.constraint.high - counted)

    def grow(self, prices: FloatArray, step: int) -> bool:
        """Ask for the rules that violate rows by least at these prices; say whether there are new ones."""
        spaces = [space.A for _, space in self.rows]
        nothing = np.zeros((len(self.blocks.block), self.objective.width, self.objective.width))
        losses = [self._loss(nothing, spaces, multipliers) for multipliers in _around(prices, self._factors(step))]
        return bool(self._add_new(losses, *self.ask(losses)).any())

    def _add_new(self, losses: Sequence[Loss], aim: FloatArray, judged: FloatArray) -> NDArray[np.bool_]:
        """Take rules whose confusions differ from those of all others; say which."""
        both = np.concatenate([aim, judged], axis=1).reshape(len(losses), -1)
        asked = np.concatenate([self.aim, self.judged], axis=1).reshape(len(self.losses), -1)
        new = np.zeros(len(losses), dtype=bool)
        for r, confusion in enumerate(both):
            others = np.concatenate([asked, both[:r][new[:r]]])
            new[r] = np.abs(others - confusion).max(axis=1).min() > _SAME
        self.add([loss for loss, keep in zip(losses, new, strict=True) if keep], aim[new], judged[new])
        return new

    @property
    def _all_asked(self) -> bool:
        """Whether all thresholds are asked for, because there are two classes and labels are counted."""
        return self.objective.width == 2 and not self.certified

    def _factors(self, step: int) -> FloatArray:
        """What prices are multiplied by in a step of the search: the later, the closer to 1."""
        powers = np.zeros(1) if self._all_asked else np.array([0.0, -4.0, -2.0, -1.0, 1.0, 2.0, 4.0])
        return np.asarray(2.0 ** (0.25**step * powers))

    @property
    def n_steps(self) -> int:
        """How often a search may ask for rules."""
        return {Effort.KNOWN: 0, Effort.ROUGH: _ROUGH_STEPS}.get(self.effort, _STEPS)

    def explore(self, systems: Sequence[ConstraintSystem]) -> None:
        """Ask for rules that are best under other bounds on the same metrics, at multipliers of all sizes."""
        aim, before, local, losses = self._rough_slope(), self.limits, self.local, []
        for system in systems:
            self.narrow(system)
            self.local = local  # whose slopes are near enough
            spaces = [space.A for _, space in self.rows]
            sizes = np.array([max(float(np.abs(A).sum()), _SAME) for A in spaces])
            prices = float(np.abs(aim).sum()) / sizes
            losses += [self._loss(aim, spaces, prices * factor) for factor in _EXPLORED]
        self.narrow(before)
        self._add_new(losses, *self.ask(losses))

    def climb(self, cuts: list[_Cut], refine: Callable[[Point], list[_Cut]] | None = None) -> Point:
        """Maximise the sum over groups of the least of their cuts, among mixtures that keep the constraints."""
        bound, gap = np.inf, self.tol / 10
        if not self.certified and self.effort < Effort.FULL:
            gap = _ROUGH_GAP if self.effort is Effort.ROUGH else _CAUTIOUS_GAP
        for step in range(_STEPS):
            rows = self.rows
            weights, value, prices = self.solve(cuts)
            point = self.point(weights, bound, np.zeros(len(self.limits.constraints)))
            better = False
            if step < self.n_steps:
                better, bound = self._ask_around(cuts, prices, step, bound, value + gap)
            more = [] if refine is None else refine(point)
            cuts += more
            tangents = self._tangents_at(point)
            if not (better or more or tangents):
                break
        self.prices = prices[: len(self._rows or ())]
        return replace(
            point, bound=bound if self.certified else np.inf, prices=self._by_constraint(rows, prices, point)
        )

    def _ask_around(
        self, cuts: Sequence[_Cut], prices: FloatArray, step: int, bound: float, enough: float
    ) -> tuple[bool, float]:
        """Ask for the rules that are best at prices near these.

        Returns whether one of them would raise the value of the programme beyond `enough`, and the bound on all rules.
        """
        spaces = [space.A for _, space in self.rows]
        row_prices, of_cuts = prices[: len(spaces)], prices[len(spaces) :]
        slope = self._slope_of_cuts(cuts, of_cuts)
        level = float(sum(price * cut.level for price, cut in zip(of_cuts.tolist(), cuts, strict=True)))
        tried = _around(row_prices, self._factors(step))
        losses = [self._loss(slope, spaces, other) for other in tried]
        aim, judged = self.ask(losses)
        values = self._lagrangians(level, slope, np.array(tried), aim, judged)
        bound = min(bound, float(np.diagonal(values).min()))  # each rule is the best of all at its own prices
        new = self._add_new(losses, aim, judged)
        return bool((new & (values[0] > enough)).any() and (bound > enough or not self.certified)), bound

    def _by_constraint(self, rows: Sequence[tuple[int, HalfSpace]], prices: FloatArray, point: Point) -> FloatArray:
        """What a unit of each bound is worth, where the rows of the programme have these prices."""
        out = np.zeros(len(self.limits.constraints))
        for price, (q, _) in zip(prices, rows, strict=False):
            if q >= 0:
                out[q] += price
        return np.asarray(out * np.array([bound.unit(point.judged) for bound in self.limits.constraints]))

    def _tangents_at(self, point: Point) -> bool:
        """Cut off a point that violates a bound on a concave metric; say whether there was one."""
        violated = False
        for q, bound in enumerate(self.limits.constraints):
            if bound.convex and not bound.half_spaces and not bound.keeps(point.judged, self.tol):
                self.tangents.append((q, bound.tangent(point.judged)))
                violated = True
        return violated


def maximise(feasible: Feasible, start: Point | None = None) -> Point:
    """Return the best mixture that keeps the constraints, by what the aim is, from a `start` that keeps them if given.

    Linear aims and minima of linear ones are one programme; a ratio of one confusion is Dinkelbach's iteration around
    it, exact as well; concave aims are cut by tangents. Sums of ratios, and all other aims, are climbed from a point
    that keeps the constraints along their gradient: that is local.

    Nothing predicted keeps no bound on a ratio that is 0/0 then. Where that would be best, at least a little is.
    """
    point = _maximise(feasible, start)
    if not feasible.never_empty and feasible.limits.empty(point.judged):
        feasible.reset_empty()
        point = _maximise(feasible, None)
    return point


def _maximise(feasible: Feasible, start: Point | None) -> Point:
    objective = feasible.objective
    start = feasible.start() if start is None else start
    ratio = objective.ratio
    alone = objective.grouping.n_groups == 1 or objective.grouping.least
    transformed = any(isinstance(metric, Increasing) for _, metric in objective.bound)
    if ratio is not None and ratio.linear and (alone or not transformed):
        point = feasible.climb([_Cut(g, 0.0, A) for g, A in enumerate(ratio.A)])
        if not transformed:
            return point
        prices = point.prices * _rise(objective, point, ratio.A)
        return replace(point, bound=_transformed(objective, point.bound), prices=prices)
    if ratio is not None and alone:
        return _dinkelbach(feasible, start)
    if objective.concave:
        return _by_tangents(feasible, start)
    return _ascend(feasible, start)


def _dinkelbach(feasible: Feasible, point: Point) -> Point:
    """Raise g to the ratio of the best point for ``A - g B`` until it rises no more.

    Of one ratio, or of the least of several: of those the least ``A - g B`` is what is to be large.
    """
    objective = feasible.objective
    ratio = objective.ratio
    assert ratio is not None
    g = float(ratio.value(*ratio.at(objective.grouping.pool(point.aim))).min())
    for _ in range(_OUTER):
        slopes = ratio.A - g * ratio.B
        climbed = feasible.climb([_Cut(q, 0.0, slope) for q, slope in enumerate(slopes)])
        numerator, denominator = ratio.at(objective.grouping.pool(climbed.aim))
        reached, least = float(ratio.value(numerator, denominator).min()), float(denominator.min())
        bound = g + max(climbed.bound, 0.0) / least if least > 0 and np.isfinite(climbed.bound) else np.inf
        if reached <= g + feasible.tol / 10:
            best = climbed if reached >= g else point
            prices = climbed.prices * _rise(objective, best, slopes)
            return replace(best, bound=max(_transformed(objective, bound), best.value), prices=prices)
        point, g = climbed, reached
    return point


def _transformed(objective: Objective, bound: float) -> float:
    """What a bound on the ratio of every group is of the aim."""
    return objective.from_ratios(np.full(objective.grouping.n_groups, bound)) if np.isfinite(bound) else np.inf


def _rise(objective: Objective, point: Point, slopes: FloatArray) -> float:
    """By how much the aim rises at a point per unit of the linear functional that its gradient is a multiple of."""
    pooled = objective.grouping.pool(point.aim)
    g = int(objective.weight_at(objective.values(pooled)).argmax())  # of several groups, the least
    gradient, other = (
        A - A.mean(axis=1, keepdims=True)  # modulo row constants
        for A in (objective.gradient(pooled)[g], slopes[g])
    )
    return float(np.sum(gradient * other) / max(np.sum(other**2), np.finfo(float).tiny))


def _by_tangents(feasible: Feasible, start: Point) -> Point:
    """Maximise a concave aim: the value of every group is at most each of its tangents."""
    objective, close = feasible.objective, max(feasible.tol, _CLOSE)

    def tangents(point: Point) -> list[_Cut]:
        pooled = objective.grouping.pool(point.aim)
        values, slopes = objective.values(pooled), objective.gradient(pooled)
        new_cuts = []
        for g, (value, slope) in enumerate(zip(values, slopes, strict=True)):
            level = float(value - np.sum(slope * pooled[g]))
            if all(cut.group != g or cut.level + np.sum(cut.slope * pooled[g]) > value + close for cut in cuts):
                new_cuts.append(_Cut(g, level, slope))
        return new_cuts

    cuts: list[_Cut] = []
    cuts += tangents(start)
    return feasible.climb(cuts, tangents)


def _ascend(feasible: Feasible, point: Point) -> Point:
    """Climb along the gradient among points that keep the constraints, which are a convex set."""
    objective = feasible.objective
    for _ in range(_OUTER):
        slopes = objective.gradient(objective.grouping.pool(point.aim))
        climbed = feasible.climb([_Cut(g, 0.0, slope) for g, slope in enumerate(slopes)])
        before = np.concatenate(
            [point.weights, np.zeros((len(climbed.weights) - len(point.weights), point.weights.shape[1]))]
        )
        steps = _GRID[1:, None, None, None]
        step = _GRID[1 + int(np.argmax(feasible.values(point.aim + steps * (climbed.aim - point.aim))))]
        best = feasible.point(before + step * (climbed.weights - before), np.inf, climbed.prices)
        if best.value <= point.value + max(feasible.tol, _SLOW):
            return max(point, best, key=lambda candidate: candidate.value)
        point = best
    return point


def _around(prices: FloatArray, factors: FloatArray) -> list[FloatArray]:
    """Prices times factors: the positive ones together, and each by itself; the first are the prices themselves."""
    tried, used = [prices * factor for factor in factors], np.flatnonzero(prices)
    if len(used) == 0:
        return [prices]
    if len(used) > 1:
        for r in used:
            for factor in factors[factors != 1.0]:
                if len(tried) < _MAX_AROUND:
                    tried.append(np.where(np.arange(len(prices)) == r, prices * factor, prices))
    return tried


def _group_weights(objective: Objective) -> FloatArray:
    """Weight of every output in the confusion of each group, (G, M)."""
    grouping = objective.grouping
    out = np.zeros((grouping.n_groups, len(grouping.share)))
    counted = grouping.group >= 0
    out[grouping.group[counted], np.flatnonzero(counted)] = grouping.share[counted]
    return out


def _first_losses(objective: Objective, n_blocks: int) -> list[Loss]:
    """Argmax, and every class alone, in all blocks."""
    k = objective.width
    eye = np.eye(k)
    alone = [Loss.from_tensor(np.tile(-np.outer(np.ones(k), eye[j])[None], (n_blocks, 1, 1))) for j in range(k)]
    argmax_loss = Loss(diagonal=-np.ones((n_blocks, k)), offset=np.zeros((n_blocks, k)))
    return [argmax_loss, *alone]
