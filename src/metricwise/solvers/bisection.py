"""The paper's Algorithm 1: bisection on the value of a ratio."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..metrics.objective import Objective
from ..oracles.base import Oracle
from .base import FloatArray, Solution, finish, run
from .ratios import certify, loss_at, need_ratio

__all__ = ["Bisection"]


@dataclass(frozen=True, eq=False)
class _State:
    low: FloatArray
    high: FloatArray
    accepted: FloatArray
    value: float
    passes: int
    history: tuple[float, ...]


@dataclass(frozen=True)
class Bisection:
    """Maximise ``<A, C> / <B, C>`` by halving the interval that its best value lies in.

    Each step asks whether the rule of the loss ``g B - A`` at the midpoint g reaches g, and keeps that half. The
    result is the last rule accepted, not the best one seen: that is the paper's algorithm, and it generalises better.
    Micro- and macro-averages run in the same steps, one interval per group.

    Guarantee: with expected confusion the value is within `tol` of the best over all rules. With labels it ends within
    `tol` of a point where acceptance changes. Not for badly calibrated probabilities, with which it does harm.

    Parameters
    ----------
    tol : float, default=1e-12
        Width at which an interval counts as closed. About 40 passes.
    max_iter : int, default=60
        More halvings than a double has bits are never needed.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.35, 0.4, 0.8], [0, 1, 0, 1], "f1", solver="bisection",
    ...                        confusion="labels", recalibrate=False)
    >>> round(solution.value, 6)
    0.8
    """

    tol: float = 1e-12
    max_iter: int = 60

    def init(self, oracle: Oracle, objective: Objective) -> _State:
        ratio = need_ratio(objective, "Bisection")
        if not (np.isfinite(ratio.low).all() and np.isfinite(ratio.high).all()):
            raise ValueError("Bisection needs a metric with a finite range: use solver='path' or 'dinkelbach'.")
        return _State(ratio.low, ratio.high, ratio.low, np.nan, 0, ())

    def step(self, oracle: Oracle, objective: Objective, state: _State) -> _State:
        ratio = need_ratio(objective, "Bisection")
        g = state.low + (state.high - state.low) / 2
        C = oracle.confusions([objective.spread(loss_at(ratio.line, g))])[0]
        pooled = objective.grouping.pool(C)
        reached = ratio.value(*ratio.at(pooled)) >= g
        value = objective.total(objective.values(pooled))
        return _State(
            low=np.where(reached, g, state.low),
            high=np.where(reached, state.high, g),
            accepted=np.where(reached, g, state.accepted),
            value=value,
            passes=state.passes + 1,
            history=(*state.history, value),
        )

    def done(self, state: _State) -> bool:
        return state.passes >= self.max_iter or bool(np.all(state.high - state.low <= self.tol))

    def solve(self, oracle: Oracle, objective: Objective) -> Solution:
        """Return the last rule accepted."""
        state = run(self, oracle, objective)
        ratio = need_ratio(objective, "Bisection")
        solution = finish(
            oracle,
            objective,
            loss_at(ratio.line, state.accepted),
            status=f"Closed the interval of the value after {state.passes} halvings.",
            n_passes=state.passes,
            history=state.history,
        )
        return certify(solution, oracle, objective, ratio, state.accepted)
