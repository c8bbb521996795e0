"""The linear programme of a mixture of rules that satisfies constraints: few rows, one column per rule.

Programmes of one block and one cut are solved by a small simplex method, all others by HiGHS. Must not know what rows
and columns mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


__all__ = ["Optimum", "Programme"]

_SAME = 1e-12
_EXACT = 1e-10  # of HiGHS: a ratio of little is as exact as that, over the little
_DENSE = 8  # blocks
_MAX_PIVOTS = 200  # of the small simplex method, before HiGHS takes over
_BLAND_PIVOTS = 50  # after which the first improving column enters, so that no cycle is possible


class Optimum(NamedTuple):
    """The solution of a programme.

    Parameters
    ----------
    weights : ndarray of shape (T * B,)
    value : float
    prices : ndarray
        Of the rows, and behind them of the cuts.
    basis : ndarray of int, optional
        Weights that are not 0, and ``-1 - r`` for every row r that is not tight, where the simplex method found them.
    """

    weights: FloatArray
    value: float
    prices: FloatArray
    basis: IntArray | None = None


@dataclass(frozen=True, eq=False)
class Programme:
    """Maximise ``sum_g weight[g] t[g]`` over weights w >= 0 that sum to 1 in every block.

    With ``keep @ w >= level``, and ``t[group] <= cut_level + lift @ w`` for every cut.

    Parameters
    ----------
    keep : ndarray of shape (R, T * B)
    level : ndarray of shape (R,)
    lift : ndarray of shape (F, T * B)
    cut_level : ndarray of shape (F,)
    group : ndarray of shape (F,), int
    weight : ndarray of shape (G,)
    n_blocks : int
        B, which the columns go round.
    tol : float
        By how much rows may be violated where no solver says otherwise.
    basis : ndarray of int, optional
        That of a programme with the same rows and fewer columns, where the simplex method begins.
    """

    keep: FloatArray
    level: FloatArray
    lift: FloatArray
    cut_level: FloatArray
    group: IntArray
    weight: FloatArray
    n_blocks: int
    tol: float
    basis: IntArray | None = None

    @cached_property
    def _scale(self) -> FloatArray:
        """Of the rows: entries of all of them are of one size."""
        size = np.abs(self.keep).max(axis=1, initial=0.0)
        return np.where(size > _SAME, size, 1.0)  # what no rule moves is left as it is

    @cached_property
    def _blocks(self) -> FloatArray:
        """Sums over the weights of every block, (B, T * B)."""
        return np.tile(np.eye(self.n_blocks), self.keep.shape[1] // self.n_blocks)

    def nearest(self) -> Optimum:
        """Return the mixture of the smallest total violation, in units of the size of rows; its value is minus that."""
        if self.n_blocks == 1:
            optimum = self._simplex(first_phase=True)
            if optimum is not None:
                return optimum
        n = len(self.keep)
        return self._highs(np.eye(n), np.ones(n), (0, None), np.empty((0, n)))

    def best(self) -> Optimum:
        """Return the best mixture that satisfies the rows, where at least one does."""
        if self.n_blocks == 1 and len(self.lift) == 1:
            optimum = self._simplex(first_phase=False)
            if optimum is not None:
                return optimum
        n = len(self.weight)
        return self._highs(np.zeros((len(self.keep), n)), -self.weight, (None, None), np.eye(n)[self.group])

    def _simplex(self, first_phase: bool) -> Optimum | None:
        """Solve a programme of one block by the revised simplex method; None where that fails.

        Columns are the weights, then the surplus of every row, then its violation.
        """
        n_rows, n_weights = self.keep.shape
        keep, level = self.keep / self._scale[:, None], self.level / self._scale
        A, b = np.zeros((n_rows + 1, n_weights + 2 * n_rows)), np.append(level, 1.0)
        A[:-1, :n_weights], A[-1, :n_weights] = keep, 1.0
        A[:-1, n_weights:] = np.hstack([-np.eye(n_rows), np.eye(n_rows)])
        feasible = n_weights + n_rows  # columns that are no violation
        basis = self._warm_basis(A, b)
        cost = np.zeros(A.shape[1])
        if basis is None:
            violation = np.maximum(level[:, None] - keep, 0.0)
            first = int(violation.sum(axis=0).argmin())
            missed = violation[:, first] > 0
            basis = np.append(n_weights + np.arange(n_rows) + n_rows * missed, first)
            cost[feasible:] = -1.0
            basis = _pivot(A, b, cost, basis, A.shape[1]) if missed.any() else basis
        if basis is not None and not first_phase:
            # A violation of 0 may stay in the basis; it must stay 0.
            worth = self.lift[0] * self.weight[0]
            cost = np.concatenate([worth, np.zeros(n_rows), np.full(n_rows, -1e3 * max(np.abs(worth).max(), 1.0))])
            basis = _pivot(A, b, cost, basis, feasible)
        if basis is None:
            return None
        inverse = np.linalg.inv(A[:, basis])
        solution, prices = inverse @ b, cost[basis] @ inverse
        total = float(solution[basis >= feasible].sum())
        if solution.min() < -_EXACT or (total > _EXACT and not first_phase):
            return None
        weights, chosen = np.zeros(n_weights), basis < n_weights
        weights[basis[chosen]] = solution[chosen]
        row_prices = np.maximum(-prices[:-1], 0.0) / self._scale
        codes = np.where(chosen, basis, n_weights - 1 - basis) if (basis < feasible).all() else None
        if first_phase:
            return Optimum(weights, -total, row_prices, codes)
        value = float(self.weight[0] * (self.cut_level[0] + self.lift[0] @ weights))
        return Optimum(weights, value, np.append(row_prices, self.weight[0]), codes)

    def _warm_basis(self, A: FloatArray, b: FloatArray) -> IntArray | None:
        """The basis to begin with, where it still satisfies all rows."""
        if self.basis is None or len(self.basis) != len(A):
            return None
        basis = np.where(self.basis >= 0, self.basis, self.keep.shape[1] - 1 - self.basis)
        try:
            return basis if np.linalg.solve(A[:, basis], b).min() >= 0 else None
        except np.linalg.LinAlgError:
            return None

    def _highs(
        self, slack: FloatArray, cost: FloatArray, bounds: tuple[float | None, float | None], epigraph: FloatArray
    ) -> Optimum:
        """Solve the programme by HiGHS, with variables beside the weights: violations, or t of the groups."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_array

        n_weights, n_extra = self.keep.shape[1], len(cost)
        steep = np.maximum(np.abs(self.lift).max(axis=1, initial=0.0), 1.0)[: len(epigraph)]
        cuts = np.hstack([-self.lift[: len(epigraph)], epigraph]) / steep[:, None]
        # Of many blocks most of it is empty; of few, making it sparse takes longer than it saves.
        form = csr_array if self.n_blocks > _DENSE else np.asarray
        for allowed in (0.0, self.tol):  # what was let pass before must not be refused
            solved = linprog(
                np.concatenate([np.zeros(n_weights), cost]),
                A_ub=form(np.vstack([np.hstack([-self.keep / self._scale[:, None], -slack]), cuts])),
                b_ub=np.concatenate([-self.level / self._scale + allowed, self.cut_level[: len(epigraph)] / steep]),
                A_eq=form(np.hstack([self._blocks, np.zeros((self.n_blocks, n_extra))])),
                b_eq=np.ones(self.n_blocks),
                bounds=[(0, None)] * n_weights + [bounds] * n_extra,
                method="highs-ds",
                options={"primal_feasibility_tolerance": _EXACT, "dual_feasibility_tolerance": _EXACT},
            )
            if solved.x is not None:
                break
        if solved.x is None:
            raise RuntimeError(
                f"metricwise: the linear programme of the constraints failed: {solved.message}; please report this."
            )
        prices = np.maximum(-solved.ineqlin.marginals, 0.0) / np.concatenate([self._scale, steep])
        return Optimum(solved.x[:n_weights], -float(solved.fun), prices)


def _pivot(A: FloatArray, b: FloatArray, cost: FloatArray, basis: IntArray, n_columns: int) -> IntArray | None:
    """Maximise ``cost @ x`` with ``A @ x == b`` and ``x >= 0`` from a feasible basis; None where that fails.

    Only the first `n_columns` may enter the basis.
    """
    basis = basis.copy()
    size = max(float(np.abs(cost[:n_columns]).max()), 1e-300)
    for step in range(_MAX_PIVOTS):
        try:
            inverse = np.linalg.inv(A[:, basis])
        except np.linalg.LinAlgError:
            return None
        gain = (cost - (cost[basis] @ inverse) @ A)[:n_columns]
        gain[basis[basis < n_columns]] = 0.0
        entering = int(gain.argmax()) if step < _BLAND_PIVOTS else int((gain > _SAME * size).argmax())
        if gain[entering] <= _SAME * size:
            return basis
        solution, direction = inverse @ b, inverse @ A[:, entering]
        falls = np.flatnonzero(direction > _SAME)
        if len(falls) == 0:
            return None
        ratio = np.maximum(solution[falls], 0.0) / direction[falls]
        ties = falls[ratio <= ratio.min() + _SAME]
        leaving = ties[direction[ties].argmax()] if step < _BLAND_PIVOTS else ties[basis[ties].argmin()]
        basis[leaving] = entering
    return None
