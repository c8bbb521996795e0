"""The best single rule that keeps its promises, searched between the rules that the best mixture is made of."""

from __future__ import annotations

import numpy as np

from ..losses import Loss
from .base import FloatArray
from .constrained import Feasible, Point, functionals
from .programme import Programme

__all__ = ["best_single"]

_SAME = 1e-12
_GRID = np.linspace(0.0, 1.0, 17)
_ZOOMS = 5  # each looks sixteen times as close
_HEAVY = 3  # rules between which others are tried
_TRIED = 8  # rules for each block
_SECONDS = 1.0  # of an integer programme, which may then be as far from the best as
_GAP = 1e-5


def best_single(feasible: Feasible, point: Point) -> Point | None:
    """Return the best single rule found that keeps the constraints, None where none does.

    Rules that the mixture is made of differ in few rows, and rules between them in fewer still: losses between two of
    them are tried, the nearer to the best one the closer. Where blocks have losses of their own, which rule each of
    them follows is an integer programme.

    Parameters
    ----------
    point : Point
        The best mixture.
    """
    best: Point | None = None
    for round_ in range(_ZOOMS):
        found = _choice(feasible, point)
        if found is not None and (best is None or found.value > best.value):
            best = found
        if round_ + 1 < _ZOOMS:
            between = _between(feasible, point, best)
            if not between:
                break
            feasible.add(between, *feasible.ask(between))
    return best


def _choice(feasible: Feasible, point: Point) -> Point | None:
    """The best of what has been asked for, one rule for each block."""
    blocks, n_rules = feasible.blocks, len(feasible.losses)
    if blocks.n_blocks == 1:
        kept = np.all(feasible.limits.kept(feasible.judged), axis=-1).reshape(n_rules)
        if not kept.any():
            return None
        values = np.full(n_rules, -np.inf)
        values[kept] = feasible.values(feasible.aim[kept])
        weights = (np.arange(n_rules) == values.argmax()).astype(np.float64)[:, None]
        return feasible.point(weights, np.inf, point.prices)
    weights = _integers(feasible, point)
    if weights is None:
        return None
    found = feasible.point(weights, np.inf, point.prices)
    return found if feasible.limits.kept(found.judged).all() else None


def _integers(feasible: Feasible, point: Point) -> FloatArray | None:
    """Choose a rule for each block, (T, B) of 0 and 1: the best by the slope of the aim at the mixture."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, vstack

    objective, blocks = feasible.objective, feasible.blocks
    aim, judged = feasible.pooled
    n_rules, n_blocks = aim.shape[:2]
    slopes = objective.gradient(objective.grouping.pool(point.aim)) * objective.grouping.weight[:, None, None]
    goal = functionals([(blocks.aim[g], slope) for g, slope in enumerate(slopes)], aim).sum(axis=0)
    rows = feasible.rows
    keep = functionals([(blocks.limits[q], space.A) for q, space in rows], judged)
    level = np.array([space.level for _, space in rows])
    group = np.zeros(1, dtype=np.intp)
    relaxed = Programme(keep, level, goal[None], np.zeros(1), group, np.ones(1), n_blocks, feasible.tol).best(None)
    # What is far from the best by the prices of the mixture is not worth a try.
    worth = (goal + relaxed.prices[: len(rows)] @ keep).reshape(n_rules, n_blocks)
    tried = np.sort(np.argsort(-worth, axis=0, kind="stable")[:_TRIED] * n_blocks + np.arange(n_blocks), axis=None)
    found = milp(
        -goal[tried],
        integrality=np.ones(len(tried)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(
            vstack([csr_array(keep[:, tried]), csr_array(np.eye(n_blocks)[:, tried % n_blocks])]),
            np.concatenate([level, np.ones(n_blocks)]),
            np.concatenate([np.full(len(level), np.inf), np.ones(n_blocks)]),
        ),
        options={"time_limit": _SECONDS, "mip_rel_gap": _GAP},
    )
    if found.x is None:
        return None
    weights = np.zeros(n_rules * n_blocks)
    weights[tried] = np.round(found.x)
    return weights.reshape(n_rules, n_blocks)


def _between(feasible: Feasible, point: Point, best: Point | None) -> list[Loss]:
    """Losses between the heaviest rules of the mixture, and between the best one so far and those next to it."""
    heavy = np.argsort(-point.weights.sum(axis=1), kind="stable")[:_HEAVY]
    heavy = heavy[point.weights[heavy].sum(axis=1) > 0]
    ends = [(int(a), int(b)) for n, a in enumerate(heavy) for b in heavy[n + 1 :]]
    if best is not None and feasible.blocks.n_blocks == 1:
        own = int(best.weights[:, 0].argmax())
        C = feasible.aim[own] + feasible.judged[own]
        apart = np.abs(feasible.aim + feasible.judged - C).sum(axis=(1, 2, 3))
        near = [int(t) for t in np.argsort(apart, kind="stable") if apart[t] > _SAME][:_HEAVY]
        ends = [(own, t) for t in near]
    return [
        one.map(lambda first, second, s=step: (1 - s) * first + s * second, other)
        for one, other in ((_scaled(feasible.losses[a]), _scaled(feasible.losses[b])) for a, b in ends)
        for step in _GRID[1:-1]
    ]


def _scaled(loss: Loss) -> Loss:
    """A full loss whose entries of a row differ by 1 at most, so that two of them can be mixed."""
    tensor = loss.tensor()
    size = np.ptp(tensor, axis=2).max(axis=1)[:, None, None]
    return Loss(full=tensor / np.where(size > 0, size, 1.0))
