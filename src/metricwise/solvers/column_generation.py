"""Worst cases: column generation for the minimum of linear metrics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..metrics.objective import Objective
from ..oracles.base import Oracle
from .base import BaseSolver, FloatArray, IntArray, Needs, run
from .hull import Hull, conclude, count_vertices, starting_losses
from .result import Outcome, SolverResult

_N_PAST_STEPS = 6  # past steps that the equalising iteration learns from
_FIRST_STEP = 4.0  # recalls move by about a quarter per unit of log weight
_MAX_STEP = 1.0
_EQUALITY_TOL = 1e-4  # parts as equal as this: the linear programme does the rest
_MAX_STEPS = 200
_MAX_PARTS = 1 << 15  # parts of all steps together


@dataclass(frozen=True, eq=False)
class _State:
    hull: Hull
    dual: FloatArray  # (G, P): weights of the parts, where the next vertex is asked for; 0 where a group has fewer
    center: FloatArray  # (G, P): the weights with the least bound so far
    bounds: FloatArray  # (G,)
    trail: tuple[tuple[FloatArray, FloatArray], ...]  # log weights and parts, while equalising
    gap: float
    history: tuple[float, ...]


@dataclass(frozen=True)
class ColumnGeneration(BaseSolver):
    """Maximise ``min_p <parts_p, C>`` over all rules, randomised ones included.

    Weights on the parts (the dual) turn the minimum into one linear metric, for which the oracle returns the best
    vertex. A linear programme over the vertices so far gives the best mixture, and its dual the next weights. Cutting
    planes alone are slow with many classes, so the first steps equalise the parts instead, and later ones use weights
    between the programme's dual and the best weights so far.

    Guarantee: with expected confusion the value is within the reported gap of the best over all randomised rules; the
    mixture has at most as many rules as there are parts. With labels there is no certificate.

    Parameters
    ----------
    tol : float, default=1e-6
        Stop when the gap is smaller than this.
    max_iter : int, optional
        Maximum number of steps. By default 200, and fewer if there are more than about 160 parts, whose steps cost
        more: with a thousand parts, the result has the gap that the equalising steps reach.
    equalize : int, default=25
        Maximum number of equalising steps.
    randomized : bool, default=False
        Whether to return a mixture of rules if it beats the best single rule by more than `tol`.
    seed : int, default=0
        Seed for the draws of a mixture.

    See Also
    --------
    FrankWolfe : For smooth concave metrics.
    metricwise.metrics.MinRecall : A minimum of linear metrics.

    Examples
    --------
    >>> import metricwise as mw
    >>> proba = [[0.6, 0.4], [0.6, 0.4], [0.6, 0.4]]  # three rows that no single rule tells apart
    >>> solution = mw.optimize(proba, None, "min_recall",
    ...     strategy=mw.Strategy(solver="column_generation", confusion="expected", recalibrate=False, randomized=True))
    >>> round(solution.value, 6), round(solution.alternative, 6)
    (0.5, 0.0)
    """

    needs: ClassVar[Needs] = Needs(form="minimum")

    tol: float = 1e-6
    max_iter: int | None = None
    equalize: int = 25
    randomized: bool = False
    seed: int = 0

    def init(self, oracle: Oracle, objective: Objective) -> _State:
        hull = Hull.start(oracle, objective, starting_losses(objective))
        real = np.arange(hull.vertices.shape[-1]) < objective.n_parts[:, None]
        dual = real / objective.n_parts[:, None]
        value = objective.total(objective.values_at(hull.point))
        return _State(hull, dual, dual, np.full(len(dual), np.inf), (), np.inf, (value,))

    def step(self, oracle: Oracle, objective: Objective, state: _State) -> _State:
        loss = objective.loss_of(state.dual)
        reached = count_vertices(oracle, objective, [loss])[0]  # a vertex is the values of its parts
        bounds = np.sum(state.dual * reached, axis=1)
        better = bounds < state.bounds
        center = np.where(better[:, None], state.dual, state.center)
        state = replace(
            state,
            hull=state.hull.add(loss, reached),
            center=center,
            bounds=np.minimum(bounds, state.bounds),
        )
        trail = (*state.trail, (np.log(np.maximum(state.dual, 1e-12)), reached))
        real = np.arange(reached.shape[1]) < objective.n_parts[:, None]
        spread = float(
            np.max(np.where(real, reached, -np.inf).max(axis=1) - np.where(real, reached, np.inf).min(axis=1))
        )
        if len(state.history) < self.equalize and spread > _EQUALITY_TOL:
            dual = _equalized(trail, objective.n_parts)
            return replace(state, dual=dual, trail=trail, history=(*state.history, state.history[-1]))
        return self._master(oracle, objective, state)

    def _master(self, oracle: Oracle, objective: Objective, state: _State) -> _State:
        """Solve the linear programmes; ask next between their duals and the centers."""
        weights, duals = _programme(state.hull.vertices, objective.n_parts)
        hull = replace(state.hull, weights=weights)
        values = objective.values_at(hull.point)
        value = objective.total(values)
        gap = objective.total(np.maximum(state.bounds - values, 0.0))
        if not oracle.certified and value <= state.history[-1] + self.tol and state.trail == ():
            gap = 0.0  # labels: nothing is proved, what counts is that the last vertex did not help
        # A step halfway to the center is safer far from the end; every third one goes all the way, so that the
        # programme's own certificate is reached.
        share = 0.0 if len(state.history) % 3 == 2 else 0.5
        dual = share * state.center + (1 - share) * duals
        return replace(state, hull=hull, dual=dual, trail=(), gap=gap, history=(*state.history, value))

    def done(self, state: _State) -> bool:
        n_parts = state.dual.shape[1]
        most = (
            max(min(_MAX_STEPS, _MAX_PARTS // n_parts), self.equalize + 1) if self.max_iter is None else self.max_iter
        )
        return state.gap <= self.tol or len(state.history) > most

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
            upper_bound=objective.total(state.bounds) if oracle.certified else None,
        )

    def _end(self, state: _State, certified: bool) -> tuple[Outcome, str]:
        """Say how the iteration ended."""
        n_steps = len(state.history)
        if state.gap > self.tol:
            gap = f"Gap {state.gap:.2g}" if certified else "The value was still improving"
            return Outcome.NOT_CONVERGED, f"{gap} after {n_steps} steps; raise max_iter or tol."
        if not certified:
            return Outcome.LOCAL, f"Stopped after {n_steps} steps, when another vertex no longer improved the value."
        return Outcome.OPTIMAL, f"Optimal over all randomised rules within {self.tol:g} after {n_steps} steps."


def _programme(vertices: FloatArray, n_parts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Maximise the least part of a mixture of vertices, in every group: one programme, whose blocks never interact.

    Parameters
    ----------
    vertices : ndarray of shape (T, G, P)
        Parts of each vertex; those of group g are the first ``n_parts[g]``.
    n_parts : ndarray of shape (G,), int

    Returns
    -------
    weights : ndarray of shape (T, G)
        A basic solution: at most P of them are not zero in each group.
    dual : ndarray of shape (G, P)
    """
    from scipy.optimize import linprog  # a tenth of a second to import: only who needs it pays
    from scipy.sparse import block_diag, csc_array  # of arrays, not matrices: SciPy is giving these up

    n, n_groups, p = vertices.shape
    real = np.arange(p) < n_parts[:, None]
    # The columns of a group are the weights of its vertices and its least part; a row says that no part is less.
    blocks = [np.column_stack([-vertices[:, g, : n_parts[g]].T, np.ones(n_parts[g])]) for g in range(n_groups)]
    sums = [np.append(np.ones(n), 0.0)[None]] * n_groups
    result = linprog(
        np.tile(np.append(np.zeros(n), -1.0), n_groups),
        A_ub=blocks[0] if n_groups == 1 else block_diag([csc_array(block) for block in blocks], format="csc"),
        b_ub=np.zeros(int(n_parts.sum())),
        A_eq=sums[0] if n_groups == 1 else block_diag([csc_array(row) for row in sums], format="csc"),
        b_eq=np.ones(n_groups),
        bounds=([(0, None)] * n + [(None, None)]) * n_groups,
        method="highs-ds",
    )
    weights = np.maximum(result.x.reshape(n_groups, n + 1)[:, :n], 0.0)
    dual = np.zeros((n_groups, p))
    dual[real] = np.maximum(-result.ineqlin.marginals, 0.0)
    return (weights / weights.sum(axis=1, keepdims=True)).T, dual / dual.sum(axis=1, keepdims=True)


def _equalized(trail: tuple[tuple[FloatArray, FloatArray], ...], n_parts: IntArray) -> FloatArray:
    """Next weights of an iteration that raises the weight of parts below their mean; Anderson's acceleration."""
    points, parts = (np.stack(steps, axis=1) for steps in zip(*trail[-_N_PAST_STEPS:], strict=True))  # (G, steps, P)
    real = np.arange(points.shape[2]) < n_parts[:, None, None]
    mean = np.sum(parts, axis=2, where=real, keepdims=True) / n_parts[:, None, None]
    below = np.where(real, _FIRST_STEP * (mean - parts), 0.0)
    points = np.where(real, points, 0.0)
    following = points[:, -1] + below[:, -1]
    if points.shape[1] > 1:
        changes = np.diff(below, axis=1).transpose(0, 2, 1)
        mix = np.linalg.pinv(changes, rcond=1e-8) @ below[:, -1, :, None]
        following = following - ((np.diff(points, axis=1).transpose(0, 2, 1) + changes) @ mix)[..., 0]
    log = points[:, -1] + np.clip(following - points[:, -1], -_MAX_STEP, _MAX_STEP)
    log = np.where(real[:, 0], log, -np.inf)
    weight = np.where(real[:, 0], np.exp(np.clip(log - log.max(axis=1, keepdims=True), -12.0, 0.0)), 0.0)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
