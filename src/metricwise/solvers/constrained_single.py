"""The best single rule that satisfies constraints, searched between and around the rules of the best mixture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..core.losses import Loss
from .constrained import Effort, Feasible, InfeasibleError, Point
from .constrained_local import best_mixture
from .programme import Programme

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

__all__ = ["MAX_REPAIRS", "best_by_labels", "best_single"]

_SAME = 1e-12
_GRID = np.linspace(0.0, 1.0, 33)
# Passes, each of which looks 32 times as close as the one before.
_ZOOMS = {Effort.KNOWN: 0, Effort.ROUGH: 1, Effort.CAUTIOUS: 2, Effort.FULL: 2, Effort.THOROUGH: 4}
_HEAVY = 3  # rules between which others are tried
_SHAKES = 16  # losses near one, for rows that tie under it
_ROUGH_SHAKES = 6
_TRIED = 24  # rules for each block, of which all together
_CHOICES = 200  # may be so many where blocks are few
_NODES = 300  # of an integer programme, so that it ends alike on any machine; it may be as far from the best as
_GAP = 1e-5
_SWEEPS = 30  # over the blocks, one after the other
_FIRST_STEPS = 0.3, 1.0, 0.5  # of a loss whose entries of a row differ by 1 at most
_LAST_STEPS = 0.1, 0.2  # likewise, one after the other from the best
_REPAIR = 0.3, 1.0, 0.1  # likewise, where nothing keeps the constraints yet
MAX_REPAIRS = 3
_LEAST_STEP = 3e-4
_PATIENCE = 2  # rounds in vain, after which steps are halved
_AT_ONCE = 200  # losses around one that are tried in a round
_ROUNDS = 120
_COUNTS = 1 << 28  # rows times classes of all that are tried


def best_single(feasible: Feasible, point: Point) -> Point | None:
    """Return the best single rule found that keeps the constraints, None where none does.

    Rules that the mixture is made of differ in few rows, and rules between them in fewer still: losses between two of
    them are tried, the nearer to the best one the closer. Where blocks have losses of their own, which rule each of
    them follows is an integer programme. The oracle gives the best rules by probabilities, which by labels they need
    not be: in the end losses around the best one may be tried, too.
    """
    best: Point | None = None
    n_zooms = 1 + _ZOOMS[feasible.effort]
    for round_ in range(n_zooms):
        candidate = _choice(feasible, point if best is None else best, point)
        if candidate is not None and (best is None or candidate.value > best.value):
            best = candidate
        if round_ + 1 < n_zooms:
            between = _between(feasible, point, best, round_ == 0)
            if not between:
                break
            feasible.add(between, *feasible.ask(between))
    if feasible.certified or feasible.effort is not Effort.THOROUGH:
        return best
    best = _repaired(feasible, point) if best is None else best
    if best is None:
        return None
    best = max((_polished(feasible, best, step) for step in _FIRST_STEPS), key=lambda polished: polished.value)
    for step in _LAST_STEPS:
        best = _polished(feasible, best, step)
    return best


def _repaired(feasible: Feasible, point: Point) -> Point | None:
    """Look for a single rule that keeps the constraints near the rules of a mixture that does; None if that fails."""
    rules = point.weights.argmax(axis=0)
    if not feasible.limits.kept(feasible.rule_of_blocks(rules)[1]).all():
        position = _repair(feasible, rules)
        if position is None:
            return None
        rules = np.full(len(rules), position)
    weights = np.zeros((len(feasible.losses), len(rules)))
    weights[rules, np.arange(len(rules))] = 1.0
    repaired = feasible.point(weights, np.inf, point.prices)
    return repaired if feasible.limits.kept(repaired.judged).all() else None


def _polished(feasible: Feasible, best: Point, step: float) -> Point:
    """Climb from a rule among those that keep the constraints."""

    def score(aim: FloatArray, judged: FloatArray) -> FloatArray:
        kept = np.all(feasible.limits.kept(judged), axis=-1)
        return np.where(kept, feasible.values(aim), -np.inf)

    if _climb(feasible, best.weights.argmax(axis=0), best.value, step, score) <= best.value:
        return best
    weights = np.zeros((len(feasible.losses), feasible.blocks.n_blocks))
    weights[-1] = 1.0
    return feasible.point(weights, np.inf, best.prices)


def best_by_labels(feasible: Feasible, n_repairs: int = MAX_REPAIRS) -> Point:
    """Return the best mixture that keeps the constraints, also where no rule that is best by probabilities does.

    Such rules are looked for by random steps, `n_repairs` times: what they keep is luck on the given rows.
    """
    for _ in range(n_repairs):
        try:
            return best_mixture(feasible)
        except InfeasibleError as error:
            if feasible.certified or error.point is None:
                raise
            if _repair(feasible, error.point.weights.argmax(axis=0)) is None:
                raise
    return best_mixture(feasible)


def _repair(feasible: Feasible, rules: IntArray) -> int | None:
    """Look for a rule that keeps the constraints by labels, by random steps from a rule of every block (B,).

    Returns the position of the one that comes nearest among those asked for; None if none comes nearer.
    """
    violation, n_before = feasible.limits.violation, len(feasible.losses)
    value = -float(violation(feasible.rule_of_blocks(rules)[1]))
    position: int | None = None

    def score(_: FloatArray, judged: FloatArray) -> FloatArray:
        return -violation(judged)

    for step in _REPAIR:
        # The last step is from the best of the others.
        if step == _REPAIR[-1] and position is not None:
            rules = np.full(len(rules), position)
            value = -float(violation(feasible.judged[position]))
        _climb(feasible, rules, value, step, score, 0.0)
        if len(feasible.losses) > n_before:
            position = n_before + int(violation(feasible.judged[n_before:]).argmin())
            if violation(feasible.judged[position]) <= 0:
                break
    return position


def _climb(
    feasible: Feasible,
    rules: IntArray,
    value: float,
    step: float,
    score: Callable[[FloatArray, FloatArray], FloatArray],
    enough: float = np.inf,
) -> float:
    """Climb from a rule of every block by random steps of losses, halved where in vain; return what is reached.

    Rules on the way are among those asked for then, the best one last.
    """
    k, n_blocks = feasible.objective.width, feasible.blocks.n_blocks
    n_rounds = min(_ROUNDS, _COUNTS // max(feasible.oracle.n_rows * k * _AT_ONCE * n_blocks, 1))
    rng, in_vain, center = np.random.default_rng(int(1000 * step)), 0, _of_blocks(feasible, rules)
    third = _AT_ONCE // 3
    for _ in range(n_rounds):
        # A third of them moves few entries, another one a class as a whole, the others everything.
        moves = step * rng.normal(size=(_AT_ONCE, n_blocks, k, k))
        moves[:third] *= rng.random((third, n_blocks, k, k)) < 1.0 / (n_blocks * k)
        moves[third : 2 * third] = moves[third : 2 * third, :, :1]
        losses = [Loss(full=center + move) for move in moves]
        aim, judged = feasible.ask(losses)
        values = score(aim, judged)
        t = int(values.argmax())
        if values[t] <= value + _SAME:
            in_vain += 1
            step *= 0.5 if in_vain % _PATIENCE == 0 else 1.0
            if step < _LEAST_STEP:
                break
            continue
        value, center = float(values[t]), _scaled(losses[t])
        feasible.add(losses[t : t + 1], aim[t : t + 1], judged[t : t + 1])
        if value >= enough:
            break
    return value


def _choice(feasible: Feasible, point: Point, mixture: Point) -> Point | None:
    """The best of what has been asked for, one rule for each block, by the slope of the aim at a point."""
    if feasible.blocks.n_blocks == 1:
        single = feasible.best_known()
        return None if single is None else replace(single, prices=point.prices)
    weights = _integers(feasible, point, mixture)
    if weights is None:
        return None
    chosen_point = feasible.point(weights, np.inf, point.prices)
    return chosen_point if feasible.limits.kept(chosen_point.judged).all() else None


def _integers(feasible: Feasible, point: Point, mixture: Point) -> FloatArray | None:
    """Choose a rule for each block, (T, B) of 0 and 1: the best by the slope of the aim at a point."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, vstack

    n_rules, n_blocks = len(feasible.losses), feasible.blocks.n_blocks
    goal = feasible.functionals([feasible.slope(point)], feasible.aim)[0]
    rows = feasible.rows
    keep = feasible.functionals([space.A for _, space in rows], feasible.judged)
    level = np.array([space.level for _, space in rows])
    group = np.zeros(1, dtype=np.intp)
    programme = Programme(keep, level, goal[None], np.zeros(1), group, np.ones(1), n_blocks, feasible.tol)
    prices = programme.best().prices[: len(rows)]
    tried = _worth_a_try(goal + prices @ keep, keep, mixture.weights, n_blocks)
    solved = milp(
        -goal[tried],
        integrality=np.ones(len(tried)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(
            vstack([csr_array(keep[:, tried]), csr_array(np.eye(n_blocks)[:, tried % n_blocks])]),
            np.concatenate([level, np.ones(n_blocks)]),
            np.concatenate([np.full(len(level), np.inf), np.ones(n_blocks)]),
        ),
        options={"node_limit": _NODES, "mip_rel_gap": _GAP},
    )
    chosen = _rounded(goal, keep, level, tried, n_blocks)
    if solved.x is not None and (chosen is None or -solved.fun > goal[chosen].sum()):
        chosen = tried[np.round(solved.x) > 0]
    if chosen is None:
        return None
    weights = np.zeros(n_rules * n_blocks)
    weights[chosen] = 1.0
    return weights.reshape(n_rules, n_blocks)


def _rounded(goal: FloatArray, keep: FloatArray, level: FloatArray, tried: IntArray, n_blocks: int) -> IntArray | None:
    """Choose a rule of every block, block by block, until all rows are kept and none is better; None if that fails.

    Of very many choices an integer programme may find none in its time.
    """
    parts = [tried[tried % n_blocks == b] for b in range(n_blocks)]
    chosen = np.array([part[goal[part].argmax()] for part in parts])
    for _ in range(_SWEEPS):
        before = chosen.copy()
        for b, part in enumerate(parts):
            others = keep[:, np.delete(chosen, b)].sum(axis=1) - level
            missed = np.maximum(-(others[:, None] + keep[:, part]), 0.0).sum(axis=0)
            missed[missed < _SAME] = 0.0
            chosen[b] = part[np.lexsort((-goal[part], missed))[0]]
        if (chosen == before).all():
            break
    return chosen if (keep[:, chosen].sum(axis=1) >= level - _SAME).all() else None


def _worth_a_try(worth: FloatArray, keep: FloatArray, mixture: FloatArray, n_blocks: int) -> IntArray:
    """Choose rules of every block, as positions in (T * B): by the prices of the mixture, and by what it keeps.

    What is far from the best by the prices is not worth a try. In a block that mixes two rules, though, those between
    them that come to the same as both do are what a single rule may be.
    """
    n_tried = max(_TRIED, _CHOICES // n_blocks)
    values = keep.reshape(len(keep), len(worth) // n_blocks, n_blocks)
    mixed = np.einsum("tb,rtb->rb", mixture, values[:, : len(mixture)])
    apart = np.abs(values - mixed[:, None]).sum(axis=0)
    by_price = np.argsort(-worth.reshape(apart.shape), axis=0, kind="stable")[: n_tried - n_tried // 3]
    by_place = np.argsort(apart, axis=0, kind="stable")[: n_tried // 3]
    return np.unique(np.concatenate([by_price, by_place]) * n_blocks + np.arange(n_blocks))


def _between(feasible: Feasible, point: Point, best: Point | None, first: bool) -> list[Loss]:
    """Losses between the best rule so far and those next to it; at first, between the heaviest rules of the mixture."""
    n_blocks, tensors_between, ends = feasible.blocks.n_blocks, [], []
    if first:
        heavy = np.argsort(-point.weights.sum(axis=1), kind="stable")[:_HEAVY]
        pure = [np.full(n_blocks, t) for t in heavy[point.weights[heavy].sum(axis=1) > 0]]
        ends += list(combinations(pure, 2))
        if n_blocks > 1:  # every block may mix rules of its own
            heaviest, runner_up = np.argsort(-point.weights, axis=0, kind="stable")[:2]
            mixes = np.take_along_axis(point.weights, runner_up[None], axis=0)[0] > 0
            ends += [(heaviest, np.where(mixes, runner_up, heaviest))] if mixes.any() else []
        n_shakes = _ROUGH_SHAKES if feasible.effort is Effort.ROUGH else _SHAKES
        tensors_between += [_shaken(_of_blocks(feasible, rules), n_shakes) for rules in pure]
    if best is not None and feasible.effort is not Effort.ROUGH:  # in every block
        best_rules, C, block = best.weights.argmax(axis=0), feasible.aim + feasible.judged, feasible.blocks.block
        apart = np.abs(C - C[best_rules[block], np.arange(len(block))]).sum(axis=(2, 3))
        apart = feasible.blocks.gathered(apart)  # (T, B)
        near = np.argsort(np.where(apart > _SAME, apart, np.inf), axis=0, kind="stable")[:_HEAVY]
        ends += [
            (best_rules, other) for other in near if (np.take_along_axis(apart, other[None], axis=0) > _SAME).any()
        ]
    steps = (_GRID[2:-1:2] if feasible.effort is Effort.ROUGH else _GRID[1:-1])[:, None, None, None]
    tensors_between += [
        (1 - steps) * _of_blocks(feasible, start) + steps * _of_blocks(feasible, end) for start, end in ends
    ]
    return [Loss(full=tensor) for tensors in tensors_between for tensor in tensors]


def _shaken(loss: FloatArray, n_shakes: int) -> FloatArray:
    """Losses (R, B, K, K) near one: rows that tie under it, as those of trees do, go one way or the other."""
    noise = np.random.default_rng(0).normal(size=(n_shakes, 1, *loss.shape[1:]))
    return np.asarray(loss + noise * np.geomspace(1e-4, 0.3, n_shakes)[:, None, None, None])


def _of_blocks(feasible: Feasible, rules: IntArray) -> FloatArray:
    """The losses (B, K, K) of a rule for every block, by their positions (B,) among those asked for."""
    tensors = {t: _scaled(feasible.losses[t]) for t in set(rules.tolist())}
    return np.stack([tensors[t][b] for b, t in enumerate(rules.tolist())])


def _scaled(loss: Loss) -> FloatArray:
    """A full loss (B, K, K) whose entries of a row differ by 1 at most, so that two of them can be mixed."""
    tensor = loss.tensor()
    size = np.ptp(tensor, axis=2).max(axis=1)[:, None, None]
    return np.asarray(tensor / np.where(size > 0, size, 1.0))
