"""The linear programme of a mixture that keeps constraints: few rows, a column for every rule asked for.

Owns how it is handed to HiGHS, through SciPy: scales, tolerances, dense or sparse. Must not know what rows and columns
mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .base import FloatArray, IntArray

__all__ = ["Optimum", "Programme"]

_SAME = 1e-12
_EXACT = 1e-10  # of HiGHS: a ratio of little is as exact as that, over the little
_DENSE = 8  # blocks


class Optimum(NamedTuple):
    """The solution of a programme.

    Parameters
    ----------
    weights : ndarray of shape (T * B,)
    value : float
    prices : ndarray
        Of the rows, and behind them of the cuts.
    """

    weights: FloatArray
    value: float
    prices: FloatArray


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
    """

    keep: FloatArray
    level: FloatArray
    lift: FloatArray
    cut_level: FloatArray
    group: IntArray
    weight: FloatArray
    n_blocks: int
    tol: float

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
        """Return what violates rows by least in sum, whose value is less what that is; a row counts by its size."""
        n = len(self.keep)
        return self._solved(np.eye(n), np.ones(n), (0, None), np.empty((0, n)))

    def best(self) -> Optimum:
        """Return the best of what keeps the rows, of which some is known to."""
        n = len(self.weight)
        return self._solved(np.zeros((len(self.keep), n)), -self.weight, (None, None), np.eye(n)[self.group])

    def _solved(
        self, slack: FloatArray, cost: FloatArray, bounds: tuple[float | None, float | None], epigraph: FloatArray
    ) -> Optimum:
        """Solve it with other variables beside the weights: violations, or t of the groups."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_array

        n_weights, n_extra = self.keep.shape[1], len(cost)
        steep = np.maximum(np.abs(self.lift).max(axis=1, initial=0.0), 1.0)[: len(epigraph)]
        cuts = np.hstack([-self.lift[: len(epigraph)], epigraph]) / steep[:, None]
        # Of many blocks most of it is empty; of few, making it sparse takes longer than it saves.
        form = csr_array if self.n_blocks > _DENSE else np.asarray
        for allowed in (0.0, self.tol):  # what was let pass before must not be refused
            found = linprog(
                np.concatenate([np.zeros(n_weights), cost]),
                A_ub=form(np.vstack([np.hstack([-self.keep / self._scale[:, None], -slack]), cuts])),
                b_ub=np.concatenate([-self.level / self._scale + allowed, self.cut_level[: len(epigraph)] / steep]),
                A_eq=form(np.hstack([self._blocks, np.zeros((self.n_blocks, n_extra))])),
                b_eq=np.ones(self.n_blocks),
                bounds=[(0, None)] * n_weights + [bounds] * n_extra,
                method="highs-ds",
                options={"primal_feasibility_tolerance": _EXACT, "dual_feasibility_tolerance": _EXACT},
            )
            if found.x is not None:
                break
        if found.x is None:
            raise RuntimeError(
                f"metricwise: the linear programme of the constraints failed: {found.message}; please report this."
            )
        prices = np.maximum(-found.ineqlin.marginals, 0.0) / np.concatenate([self._scale, steep])
        return Optimum(found.x[:n_weights], -float(found.fun), prices)
