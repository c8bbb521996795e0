"""The best rule among those that keep their promises: column generation with constraints as rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..losses import Loss
from ..metrics.base import Increasing
from ..metrics.constraint import BoundConstraint, HalfSpace, Limits
from ..metrics.objective import Objective
from ..oracles.base import Oracle
from .base import FloatArray, IntArray
from .programme import Programme

__all__ = ["Feasible", "InfeasibleError", "Point", "functionals", "maximise"]

_STEPS = 300
_OUTER = 60
_SAME = 1e-12
_LITTLE = 1e-5  # of the rows
_SLOW = 1e-6  # of a step of a climb that ends where it is local anyway
_CLOSE = 1e-7  # of tangents to a concave aim, of which more and more are needed to come closer
_GRID = np.linspace(0.0, 1.0, 17)


class InfeasibleError(Exception):
    """No rule keeps all constraints.

    Attributes
    ----------
    point : Point or None
        What comes nearest, where that is known.
    """

    def __init__(self, point: Point | None = None) -> None:
        super().__init__("no rule keeps all constraints")
        self.point = point


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Outputs that follow one loss, as the rows of the programme see them.

    Parameters
    ----------
    block : ndarray of shape (M,), int
        Block of each output.
    within : ndarray of shape (M,)
        Weight of an output in the confusion of its block.
    aim : ndarray of shape (G, B)
        Weight of the confusion of each block in that of each group.
    limits : ndarray of shape (Q, B)
        The same for the constraints.
    """

    block: IntArray
    within: FloatArray
    aim: FloatArray
    limits: FloatArray

    @classmethod
    def of(cls, objective: Objective, limits: Limits) -> _Blocks:
        """Let outputs share a loss where aim and constraints pool them alike, and have one each where they do not."""
        grouping = objective.grouping
        n_outputs = len(grouping.share)
        if grouping.n_groups == 1 and np.allclose(limits.share, grouping.share, atol=1e-12):
            one = np.ones((len(limits.share), 1))
            return cls(np.zeros(n_outputs, dtype=np.intp), grouping.share, np.ones((1, 1)), one)
        aim = np.zeros((grouping.n_groups, n_outputs))
        counted = grouping.group >= 0
        aim[grouping.group[counted], np.flatnonzero(counted)] = grouping.share[counted]
        return cls(np.arange(n_outputs), np.ones(n_outputs), aim, limits.share)

    @property
    def n_blocks(self) -> int:
        """B."""
        return int(self.aim.shape[1])

    def pool(self, C: FloatArray) -> FloatArray:
        """Return the confusions (R, B, K, K) of blocks, of tensors (R, M, K, K)."""
        if self.n_blocks == C.shape[1]:
            return C
        return np.asarray(np.einsum("m,rmij->rij", self.within, C)[:, None])


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
    limits : Limits
    tol : float
        Of values and of constraints.
    """

    def __init__(self, oracle: Oracle, judge: Oracle, objective: Objective, limits: Limits, tol: float) -> None:
        self.oracle, self.judge, self.objective, self.limits, self.tol = oracle, judge, objective, limits, tol
        self.blocks = _Blocks.of(objective, limits)
        self.certified = oracle.certified and judge is oracle
        self.losses: list[Loss] = []
        shape = (0, len(objective.grouping.share), objective.width, objective.width)
        self.aim, self.judged = np.zeros(shape), np.zeros(shape)
        self.tangents: list[tuple[int, HalfSpace]] = []
        self.never_empty = False
        first = _first_losses(objective, self.blocks.n_blocks)
        self.add(first, *self.ask(first))

    def narrow(self, limits: Limits) -> None:
        """Keep other bounds on the same metrics from now on."""
        self.limits, self.tangents, self.never_empty = limits, [], False

    # ---------------------------------------------------------------------------------------------- rules asked for

    def add(self, losses: Sequence[Loss], aim: FloatArray, judged: FloatArray) -> None:
        """Take rules whose confusions have been asked for."""
        self.losses += losses
        self.aim, self.judged = np.concatenate([self.aim, aim]), np.concatenate([self.judged, judged])
        self.__dict__.pop("pooled", None)

    def ask(self, losses: Sequence[Loss]) -> tuple[FloatArray, FloatArray]:
        """Return the confusions (R, M, K, K) of such rules as the aim is counted, and as constraints are."""
        spread = [self.spread(loss) for loss in losses]
        aim = self.oracle.confusions(spread)
        return aim, aim if self.judge is self.oracle else self.judge.confusions(spread)

    def spread(self, loss: Loss) -> Loss:
        """Turn losses of blocks into losses of outputs; outputs that keep argmax get its loss.

        Of several blocks all are full: which rule each of them follows is chosen later, and rules of two structures
        would decide ties in two ways.
        """
        block, frozen = self.blocks.block, self.objective.frozen
        loss = loss if self.blocks.n_blocks == 1 else Loss(full=loss.tensor())
        if self.blocks.n_blocks == 1 and not frozen.any():
            return loss
        plain = Loss.argmax(self.objective.width)
        plain = plain if loss.is_diagonal else Loss(full=plain.tensor())

        def expand(ours: FloatArray, argmax: FloatArray) -> FloatArray:
            out = ours[block]
            out[frozen] = argmax[0]
            return out

        return loss.map(expand, plain)

    @cached_property
    def pooled(self) -> tuple[FloatArray, FloatArray]:
        """Confusions (T, B, K, K) of blocks, of the aim and of the constraints."""
        return self.blocks.pool(self.aim), self.blocks.pool(self.judged)

    # ----------------------------------------------------------------------------------------------- the programme

    @property
    def rows(self) -> list[tuple[int, HalfSpace]]:
        """Half-spaces, each with the constraint that it is of: those of linear ones and ratios, and tangents so far."""
        limits = enumerate(self.limits.constraints)
        own = [(q, space) for q, one in limits for space in (*one.half_spaces, *self._something(one))]
        return own + self.tangents

    def _something(self, one: BoundConstraint) -> list[HalfSpace]:
        """Where nothing predicted would seem to keep a bound on a ratio: at least a little of its denominator."""
        B = one.denominator
        return [] if B is None or not self.never_empty else [HalfSpace(B, _LITTLE * float(np.abs(B).max()))]

    def point(self, weights: FloatArray, bound: float, prices: FloatArray) -> Point:
        """Return the mixture of what has been asked for with these weights (T, B)."""
        by_output = weights[:, self.blocks.block]
        aim, judged = (np.einsum("tm,tmij->mij", by_output, C) for C in (self.aim, self.judged))
        return Point(tuple(self.losses), weights, aim, judged, self.objective.value(aim), bound, prices)

    def values(self, aim: FloatArray) -> FloatArray:
        """Return the values (T,) of confusions (T, M, K, K) as the aim is counted."""
        grouping = self.objective.grouping
        return np.asarray(self.objective.values(grouping.pool_each(aim)) @ grouping.weight)

    def solve(self, cuts: Sequence[_Cut], first_phase: bool = False) -> tuple[FloatArray, float, FloatArray, Loss]:
        """Solve the programme over what has been asked for.

        Returns
        -------
        weights : ndarray of shape (T, B)
        value : float
            Of the sum of the cuts; in the first phase, less the sum of what constraints are violated by.
        prices : ndarray
            Of the rows, and behind them of the cuts.
        loss : Loss
            Whose rule the programme would like best.
        """
        rows, grouping, blocks = self.rows, self.objective.grouping, self.blocks
        aim, judged = self.pooled
        keep = functionals([(blocks.limits[q], space.A) for q, space in rows], judged)
        lift = functionals([(blocks.aim[cut.group], cut.slope) for cut in cuts], aim)
        programme = Programme(
            keep,
            np.array([space.level for _, space in rows]),
            lift,
            np.array([cut.level for cut in cuts]),
            np.array([cut.group for cut in cuts], dtype=np.intp),
            grouping.weight,
            blocks.n_blocks,
            self.tol,
        )
        found = programme.nearest() if first_phase else programme.best()
        weights = np.maximum(found.weights.reshape(aim.shape[:2]), 0.0)
        return weights / weights.sum(axis=0), found.value, found.prices, self._wanted(rows, cuts, found.prices)

    def _wanted(self, rows: Sequence[tuple[int, HalfSpace]], cuts: Sequence[_Cut], prices: FloatArray) -> Loss:
        k = self.objective.width
        slope = np.zeros((self.blocks.n_blocks, k, k))
        for price, (q, space) in zip(prices, rows, strict=False):
            slope[:, : len(space.A), : len(space.A)] += price * self.blocks.limits[q][:, None, None] * space.A
        for price, cut in zip(prices[len(rows) :], cuts, strict=False):
            slope += price * self.blocks.aim[cut.group][:, None, None] * cut.slope
        return Loss.from_tensor(-slope)

    def _promise(self, cuts: Sequence[_Cut], prices: FloatArray, aim: FloatArray, judged: FloatArray) -> float:
        """What the rule that the programme liked best, of such confusions (M, K, K), says of all rules (Lagrange)."""
        rows = self.rows
        own, other = self.blocks.pool(aim[None])[0], self.blocks.pool(judged[None])[0]
        total = 0.0
        for price, (q, space) in zip(prices, rows, strict=False):
            reached = np.einsum("ij,bij->b", space.A, other[:, : len(space.A), : len(space.A)])
            total += price * float(self.blocks.limits[q] @ reached - space.level)
        for price, cut in zip(prices[len(rows) :], cuts, strict=False):
            total += price * float(cut.level + self.blocks.aim[cut.group] @ np.einsum("ij,bij->b", cut.slope, own))
        return total

    # ------------------------------------------------------------------------------------------------- the search

    def start(self) -> Point:
        """Return a mixture that keeps the constraints.

        Raises
        ------
        InfeasibleError
            If there is none, as far as the rules asked for say.
        """
        if not self.limits.constraints:
            plain = np.zeros((len(self.losses), self.blocks.n_blocks))
            plain[0] = 1.0
            return self.point(plain, np.inf, np.zeros(0))
        for _ in range(_STEPS):
            weights, value, _, loss = self.solve((), first_phase=True)
            if value > -self.tol:
                point = self.point(weights, np.inf, np.zeros(len(self.limits.constraints)))
                if not self._tangents_at(point):
                    return point
                continue
            if not self._grow(loss):
                break
        raise InfeasibleError(self.point(weights, np.inf, np.zeros(len(self.limits.constraints))))

    def climb(self, cuts: list[_Cut], refine: Callable[[Point], list[_Cut]] | None = None) -> Point:
        """Maximise the sum over groups of the least of their cuts, among mixtures that keep the constraints.

        Parameters
        ----------
        refine : callable, optional
            From a point to cuts that it violates, which are added: tangents of a concave aim.
        """
        bound = np.inf
        for _ in range(_STEPS):
            rows = self.rows
            weights, value, prices, loss = self.solve(cuts)
            point = self.point(weights, bound, np.zeros(len(self.limits.constraints)))
            aim, judged = self.ask([loss])
            bound = min(bound, self._promise(cuts, prices, aim[0], judged[0]))
            more = [] if refine is None else refine(point)
            cuts += more
            tangents = self._tangents_at(point)
            new = self._is_new(aim[0], judged[0]) and bound > value + self.tol / 10
            if new:
                self.add([loss], aim, judged)
            if not (new or more or tangents):
                break
        return replace(
            point, bound=bound if self.certified else np.inf, prices=self._by_constraint(rows, prices, point)
        )

    def _by_constraint(self, rows: Sequence[tuple[int, HalfSpace]], prices: FloatArray, point: Point) -> FloatArray:
        """What a unit of each bound is worth, where the rows of the programme have these prices."""
        out = np.zeros(len(self.limits.constraints))
        for price, (q, space) in zip(prices, rows, strict=False):
            if self.limits.constraints[q].denominator is None or space.level == 0.0:  # else that something is predicted
                out[q] += price
        units = [one.unit(C) for one, C in zip(self.limits.constraints, self.limits.pool(point.judged), strict=True)]
        return np.asarray(out * np.array(units))

    def _tangents_at(self, point: Point) -> bool:
        """Cut off a point that violates a bound on a concave metric; say whether there was one."""
        found = False
        for q, (one, C) in enumerate(zip(self.limits.constraints, self.limits.pool(point.judged), strict=True)):
            if not one.half_spaces and not one.keeps(C, self.tol):
                self.tangents.append((q, one.tangent(C)))
                found = True
        return found

    def _grow(self, loss: Loss) -> bool:
        aim, judged = self.ask([loss])
        if not self._is_new(aim[0], judged[0]):
            return False
        self.add([loss], aim, judged)
        return True

    def _is_new(self, aim: FloatArray, judged: FloatArray) -> bool:
        apart = np.abs(self.aim - aim).max(axis=(1, 2, 3)) + np.abs(self.judged - judged).max(axis=(1, 2, 3))
        return bool(apart.min() > _SAME)


def maximise(feasible: Feasible) -> Point:
    """Return the best mixture that keeps the constraints, by what the aim is.

    Linear aims and minima of linear ones are one programme; a ratio of one confusion is Dinkelbach's iteration around
    it, exact as well; concave aims are cut by tangents. Sums of ratios, and all other aims, are climbed from a point
    that keeps the constraints along their gradient: that is local.

    Nothing predicted keeps no bound on a ratio that is 0/0 then. Where that would be best, at least a little is.

    Raises
    ------
    InfeasibleError
        If no mixture keeps the constraints.
    """
    point = _maximise(feasible)
    if not feasible.never_empty and feasible.limits.empty(point.judged):
        feasible.never_empty = True
        point = _maximise(feasible)
    return point


def _maximise(feasible: Feasible) -> Point:
    objective = feasible.objective
    start = feasible.start()
    ratio = objective.ratio
    alone = objective.grouping.n_groups == 1
    transformed = any(isinstance(metric, Increasing) for _, metric in objective.bound)
    if ratio is not None and ratio.linear and (alone or not transformed):
        point = feasible.climb([_Cut(g, 0.0, A) for g, A in enumerate(ratio.A)])
        if not transformed:
            return point
        prices = point.prices * _rise(objective, point, ratio.A[0])
        return replace(point, bound=objective.from_ratios(np.array([point.bound])), prices=prices)
    if ratio is not None and alone:
        return _dinkelbach(feasible, start)
    if objective.concave:
        return _by_tangents(feasible, start)
    return _ascend(feasible, start)


def _dinkelbach(feasible: Feasible, point: Point) -> Point:
    """Raise g to the ratio of the best point for ``A - g B`` until it rises no more."""
    objective = feasible.objective
    ratio = objective.ratio
    assert ratio is not None
    g = float(ratio.value(*ratio.at(objective.grouping.pool(point.aim)))[0])
    for _ in range(_OUTER):
        found = feasible.climb([_Cut(0, 0.0, ratio.A[0] - g * ratio.B[0])])
        numerator, denominator = (float(part[0]) for part in ratio.at(objective.grouping.pool(found.aim)))
        reached = float(ratio.value(np.array([numerator]), np.array([denominator]))[0])
        bound = g + max(found.bound, 0.0) / denominator if denominator > 0 and np.isfinite(found.bound) else np.inf
        if reached <= g + feasible.tol / 10:
            best = found if reached >= g else point
            upper = objective.from_ratios(np.array([bound])) if np.isfinite(bound) else np.inf
            prices = found.prices * _rise(objective, best, ratio.A[0] - g * ratio.B[0])
            return replace(best, bound=max(upper, best.value), prices=prices)
        point, g = found, reached
    return point


def _rise(objective: Objective, point: Point, slope: FloatArray) -> float:
    """By how much the aim rises at a point per unit of the linear functional that its gradient is a multiple of."""
    own, other = (
        A - A.mean(axis=1, keepdims=True)  # modulo row constants
        for A in (objective.gradient(objective.grouping.pool(point.aim))[0], slope)
    )
    return float(np.sum(own * other) / max(np.sum(other**2), np.finfo(float).tiny))


def _by_tangents(feasible: Feasible, start: Point) -> Point:
    """Maximise a concave aim: the value of every group is at most each of its tangents."""
    objective, close = feasible.objective, max(feasible.tol, _CLOSE)

    def tangents(point: Point) -> list[_Cut]:
        pooled = objective.grouping.pool(point.aim)
        values, slopes = objective.values(pooled), objective.gradient(pooled)
        found = []
        for g, (value, slope) in enumerate(zip(values, slopes, strict=True)):
            level = float(value - np.sum(slope * pooled[g]))
            if all(cut.group != g or cut.level + np.sum(cut.slope * pooled[g]) > value + close for cut in cuts):
                found.append(_Cut(g, level, slope))
        return found

    cuts: list[_Cut] = []
    cuts += tangents(start)
    return feasible.climb(cuts, tangents)


def _ascend(feasible: Feasible, point: Point) -> Point:
    """Climb along the gradient among points that keep the constraints, which are a convex set."""
    objective = feasible.objective
    for _ in range(_OUTER):
        slopes = objective.gradient(objective.grouping.pool(point.aim))
        found = feasible.climb([_Cut(g, 0.0, slope) for g, slope in enumerate(slopes)])
        before = np.concatenate(
            [point.weights, np.zeros((len(found.weights) - len(point.weights), point.weights.shape[1]))]
        )
        steps = _GRID[1:, None, None, None]
        step = _GRID[1 + int(np.argmax(feasible.values(point.aim + steps * (found.aim - point.aim))))]
        best = feasible.point(before + step * (found.weights - before), np.inf, found.prices)
        if best.value <= point.value + max(feasible.tol, _SLOW):
            return max(point, best, key=lambda one: one.value)
        point = best
    return point


def functionals(terms: Sequence[tuple[FloatArray, FloatArray]], C: FloatArray) -> FloatArray:
    """Linear functionals of the weights, (F, T * B): weights of blocks (B,) times <A, C> of confusions (T, B, K, K)."""
    rows = [(share * np.einsum("ij,tbij->tb", A, C[..., : len(A), : len(A)])).reshape(-1) for share, A in terms]
    return np.array(rows).reshape(len(terms), C.shape[0] * C.shape[1])


def _first_losses(objective: Objective, n_blocks: int) -> list[Loss]:
    """Argmax, and every class alone, in all blocks."""
    k = objective.width
    eye = np.eye(k)
    alone = [Loss.from_tensor(np.tile(-np.outer(np.ones(k), eye[j])[None], (n_blocks, 1, 1))) for j in range(k)]
    plain = Loss(diagonal=-np.ones((n_blocks, k)), offset=np.zeros((n_blocks, k)))
    return [plain, *alone]
