"""The paper's Algorithm 1: bisection on the value of a ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..metrics.objective import Objective
from ..oracles.base import Oracle
from .base import BaseSolver, FloatArray, Needs, run
from .ratios import certify, loss_at, ratio_of
from .result import Outcome, SolverResult, finish


@dataclass(frozen=True, eq=False)
class _State:
    low: FloatArray
    high: FloatArray
    accepted: FloatArray
    history: tuple[float, ...]


@dataclass(frozen=True)
class Bisection(BaseSolver):
    """Maximise ``<A, C> / <B, C>`` by halving the interval that contains its best value.

    Each step tests whether the rule of the loss ``g B - A`` at the midpoint g reaches g, and keeps the corresponding
    half. The result is the last rule accepted, not the best one seen: this is the paper's algorithm, and it generalises
    better. With averages over outputs, all blocks take their steps together, with one interval per block.

    Guarantee: with expected confusion the value is within `tol` of the best over all rules. With labels, it ends within
    `tol` of a point where acceptance changes. Do not use it with badly calibrated probabilities, where it can do worse
    than argmax.

    Parameters
    ----------
    tol : float, default=1e-12
        Stop when the interval is narrower than this, which takes about 40 passes.
    max_iter : int, default=60
        Maximum number of halvings; more than the bits of a double are never needed.

    See Also
    --------
    Dinkelbach : Fewer passes.
    Path : Exact with labels.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.35, 0.4, 0.8], [0, 1, 0, 1], "f1",
    ...     strategy=mw.Strategy(solver="bisection", confusion="labels", recalibrate=False))
    >>> round(solution.value, 6)
    0.8
    """

    needs: ClassVar[Needs] = Needs(form="ratio", finite_range=True)

    tol: float = 1e-12
    max_iter: int = 60

    def init(self, oracle: Oracle, objective: Objective) -> _State:
        ratio = ratio_of(objective)
        return _State(ratio.low, ratio.high, ratio.low, ())

    def step(self, oracle: Oracle, objective: Objective, state: _State) -> _State:
        ratio = ratio_of(objective)
        g = state.low + (state.high - state.low) / 2
        C = oracle.confusions([objective.spread(loss_at(ratio.line, g))])[0]
        pooled = objective.grouping.pool(C)
        reached = ratio.value(*ratio.at(pooled)) >= g
        return _State(
            low=np.where(reached, g, state.low),
            high=np.where(reached, state.high, g),
            accepted=np.where(reached, g, state.accepted),
            history=(*state.history, objective.total(objective.values(pooled))),
        )

    def done(self, state: _State) -> bool:
        return len(state.history) >= self.max_iter or self._closed(state)

    def _closed(self, state: _State) -> bool:
        return bool(np.all(state.high - state.low <= self.tol))

    def search(self, oracle: Oracle, objective: Objective) -> SolverResult:
        """Return the last rule accepted."""
        state = run(self, oracle, objective)
        if self._closed(state):
            outcome = Outcome.OPTIMAL if oracle.certified else Outcome.LOCAL
            status = f"Converged after {len(state.history)} halvings of the interval of the value."
        else:
            outcome = Outcome.NOT_CONVERGED
            width = np.max(state.high - state.low)
            status = (
                f"Not converged: the interval is still {width:.2g} wide after {len(state.history)} halvings; raise "
                "max_iter or tol."
            )
        ratio = ratio_of(objective)
        result = finish(
            oracle,
            objective,
            loss_at(ratio.line, state.accepted),
            status=status,
            outcome=outcome,
            history=state.history,
            level=state.accepted,
        )
        return certify(result, oracle, objective, ratio, state.accepted)
