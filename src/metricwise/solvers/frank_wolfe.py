"""Concave metrics: fully corrective Frank-Wolfe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..metrics.objective import Objective
from ..oracles.base import Oracle
from .base import BaseSolver, Needs, run
from .hull import Hull, conclude, correct, count_vertices, starting_losses
from .result import Outcome, SolverResult

_MANY, _FEW = 200, 10
_ROUGH = 5e-5  # tolerance from which on vertices serve better than the best point among few of them


@dataclass(frozen=True, eq=False)
class _State:
    hull: Hull
    gap: float
    bound: float
    history: tuple[float, ...]


@dataclass(frozen=True)
class FrankWolfe(BaseSolver):
    """Maximise a concave, smooth metric over all rules, randomised ones included.

    Each step linearises the metric at the current confusion, asks the oracle for the vertex that is best for the
    tangent, and then moves to the best point among all vertices found so far. The tangent bounds the metric from above,
    so the distance to it (the duality gap) is a certificate.

    Guarantee: with expected confusion the value is within the reported gap of the best over all randomised rules. With
    labels, there is no certificate, and it stops when a step no longer improves the value. Not for metrics that are not
    concave, nor for a minimum, which is not smooth: use column generation, which is exact.

    Parameters
    ----------
    tol : float, default=1e-6
        Stop when the duality gap is smaller than this.
    max_iter : int, default=100
        Maximum number of steps.
    randomized : bool, default=False
        Whether to return a mixture of rules if it beats the best single rule by more than `tol`.
    seed : int, default=0
        Seed for the draws of a mixture.

    See Also
    --------
    ColumnGeneration : For minima of linear metrics.
    Ascent : For metrics that are not concave.

    Examples
    --------
    >>> import metricwise as mw
    >>> proba = [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.6, 0.1, 0.3], [0.4, 0.4, 0.2]]
    >>> solution = mw.optimize(proba, None, "g_mean",
    ...     strategy=mw.Strategy(solver="frank_wolfe", confusion="expected", recalibrate=False))
    >>> solution.value > solution.baseline
    True
    """

    needs: ClassVar[Needs] = Needs(form="concave")

    tol: float = 1e-6
    max_iter: int = 100
    randomized: bool = False
    seed: int = 0

    @property
    def _exchanges(self) -> int:
        """Exchanges of weight between two vertices, at most, before the next one is asked for."""
        return _MANY if self.tol < _ROUGH else _FEW

    def init(self, oracle: Oracle, objective: Objective) -> _State:
        hull = Hull.start(oracle, objective, starting_losses(objective))
        hull = correct(objective, hull, self.tol, self._exchanges)
        return _State(hull, np.inf, np.inf, (objective.total(objective.values_at(hull.point)),))

    def step(self, oracle: Oracle, objective: Objective, state: _State) -> _State:
        point = state.hull.point
        slope = objective.slopes_at(point)
        loss = objective.loss_of(slope)
        vertex = count_vertices(oracle, objective, [loss])[0]
        rise = np.sum(slope * (vertex - point), axis=-1)
        gap = objective.total(np.maximum(rise, 0.0))
        bound = min(state.bound, state.history[-1] + gap)
        hull = correct(objective, state.hull.add(loss, vertex), max(self.tol / 10, 0.02 * gap), self._exchanges)
        value = objective.total(objective.values_at(hull.point))
        if not oracle.certified and value <= state.history[-1] + self.tol:
            gap = 0.0  # labels: the tangent proves nothing, what counts is that the step no longer helps
        return _State(hull, gap, bound, (*state.history, value))

    def done(self, state: _State) -> bool:
        # Half of the tolerance is left for a mixture of fewer rules.
        return state.gap <= self.tol / 2 or len(state.history) > self.max_iter

    def search(self, oracle: Oracle, objective: Objective) -> SolverResult:
        """Return the best rule, or the best mixture."""
        state = run(self, oracle, objective)
        outcome, status = self._end(state, oracle.certified)
        return conclude(
            oracle,
            objective,
            state.hull,
            randomized=self.randomized,
            seed=self.seed,
            tol=self.tol,
            status=status,
            outcome=outcome,
            history=state.history,
            upper_bound=state.bound if oracle.certified else None,
        )

    def _end(self, state: _State, certified: bool) -> tuple[Outcome, str]:
        """Say how the iteration ended."""
        n_steps = len(state.history)
        if state.gap > self.tol:
            gap = f"Duality gap {state.gap:.2g}" if certified else "The value was still improving"
            return Outcome.NOT_CONVERGED, f"{gap} after {n_steps} steps; raise max_iter or tol."
        if not certified:
            return Outcome.LOCAL, f"Stopped after {n_steps} steps, when another step no longer improved the value."
        return Outcome.OPTIMAL, f"Optimal over all randomised rules within {self.tol:g} after {n_steps} steps."
