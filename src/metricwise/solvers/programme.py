"""The linear programme of a mixture that keeps constraints: few rows, a column for every rule asked for.

Owns how it is solved: by pivots from where the last one ended, in the time that a general solver takes to read it; by
HiGHS, through SciPy, where it is large or rounding gets in the way. Must not know what rows and columns mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .base import FloatArray, IntArray

__all__ = ["Optimum", "Programme", "simplex"]

_SAME = 1e-12
_EXACT = 1e-10  # of HiGHS: a ratio of little is as exact as that, over the little
_FEW = 64  # blocks, of which pivots are cheap
_DENSE = 8
_ZERO = 1e-11
_PIVOT = 1e-9  # the least that is divided by
_GREEDY = 60  # pivots after which the first column that is worth it is taken, which cannot cycle
_PIVOTS = 400


class Optimum(NamedTuple):
    """The solution of a programme.

    Parameters
    ----------
    weights : ndarray of shape (T * B,)
    value : float
    prices : ndarray
        Of the rows, and behind them of the cuts.
    basis : ndarray of int, or None
        Where the next programme may start.
    """

    weights: FloatArray
    value: float
    prices: FloatArray
    basis: IntArray | None


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

    def nearest(self, basis: IntArray | None) -> Optimum:
        """Return what violates rows by least in sum, whose value is less what that is; a row counts by its size."""
        n = len(self.keep)
        A, b = self._rows
        cost = np.concatenate([np.zeros(n), np.ones(n), np.zeros(self.keep.shape[1])])
        starts = [] if self.n_blocks > _FEW else [basis, self._first(A, b)]
        for start in starts:
            found = simplex(cost, A, b, start) if start is not None and len(start) == len(b) else None
            if found is not None:
                x, prices, basis = found
                return Optimum(x[2 * n :], -float(cost @ x), np.maximum(prices[:n], 0.0) / self._scale, basis)
        return self._by_highs(np.eye(n), np.ones(n), (0, None), np.empty((0, n)))

    def best(self, basis: IntArray | None) -> Optimum:
        """Return the best of what keeps the rows, of which some is known to."""
        found = self._pivoted(basis) if basis is not None and self.n_blocks <= _FEW else None
        if found is not None:
            return found
        n = len(self.weight)
        return self._by_highs(np.zeros((len(self.keep), n)), -self.weight, (None, None), np.eye(n)[self.group])

    # -------------------------------------------------------------------------------------------------- by pivots

    @cached_property
    def _rows(self) -> tuple[FloatArray, FloatArray]:
        """Rows and blocks; columns are what rows have to spare, what they are violated by, and then the weights."""
        n = len(self.keep)
        A = np.zeros((n + self.n_blocks, 2 * n + self.keep.shape[1]))
        A[:n, :n], A[:n, n : 2 * n] = -np.eye(n), np.eye(n)
        A[:n, 2 * n :] = self.keep / self._scale[:, None]
        A[n:, 2 * n :] = self._blocks
        return A, np.concatenate([self.level / self._scale, np.ones(self.n_blocks)])

    def _first(self, A: FloatArray, b: FloatArray) -> IntArray:
        """The first rule in every block, and what rows have to spare or are violated by then."""
        n = len(self.keep)
        weights = 2 * n + np.arange(self.n_blocks)
        spare = A[:n, weights].sum(axis=1) - b[:n]
        return np.concatenate([np.arange(n) + np.where(spare >= 0, 0, n), weights])

    def _pivoted(self, basis: IntArray) -> Optimum | None:
        """Start from what keeps the rows; t of a group is what its first cut says, less u >= 0."""
        n, (A, b) = len(self.keep), self._rows
        if len(basis) != len(b):
            return None
        # Nothing is violated: what seems to be by rounding is spared, with the other sign.
        basis = np.where((basis >= n) & (basis < 2 * n), basis - n, basis)
        first = np.unique(self.group, return_index=True)[1]
        others = np.setdiff1d(np.arange(len(self.group)), first)
        cost = np.zeros(A.shape[1])
        cost[2 * n :] = -(self.weight @ self.lift[first])
        if len(others):
            added = self._cuts(A, b, basis, first, others)
            if added is None:
                return None
            A, b, start = added
            cost = np.concatenate([cost, self.weight, np.zeros(len(others))])
        usable = np.ones(len(cost), dtype=bool)
        usable[n : 2 * n] = False
        found = simplex(cost, A, b, start if len(others) else basis, usable)
        if found is None:
            return None
        x, y, last = found
        prices = np.zeros(len(self.group))
        if len(others):
            prices[others] = np.maximum(-y[-len(others) :], 0.0) / self._steep(first, others)
        prices[first] = self.weight - np.bincount(self.group, prices, len(self.weight))
        value = float(self.weight @ self.cut_level[first] - cost @ x)
        weights = x[2 * n : 2 * n + self.keep.shape[1]]
        rows = np.maximum(y[:n], 0.0) / self._scale
        return Optimum(weights, value, np.concatenate([rows, prices]), basis if len(others) else last)

    def _steep(self, first: IntArray, others: IntArray) -> FloatArray:
        """How far cuts differ from the first ones of their groups: rows of them are scaled by it."""
        apart = np.abs(self.lift[first[self.group[others]]] - self.lift[others])
        return np.asarray(np.maximum(apart.max(axis=1, initial=0.0), 1.0))

    def _cuts(
        self, A: FloatArray, b: FloatArray, basis: IntArray, first: IntArray, others: IntArray
    ) -> tuple[FloatArray, FloatArray, IntArray] | None:
        """Add the other cuts, ``(first - other) @ w - u + spare = difference of the levels``, and a basis for them."""
        own, (m, n) = self.group[others], A.shape
        apart = self.lift[first[own]] - self.lift[others]
        level = self.cut_level[others] - self.cut_level[first[own]]
        steep, n_groups = self._steep(first, others), len(self.weight)
        wide = np.zeros((m + len(others), n + n_groups + len(others)))
        wide[:m, :n] = A
        wide[m:, n - apart.shape[1] : n] = apart / steep[:, None]
        wide[m + np.arange(len(others)), n + own] = -1 / steep
        wide[m:, n + n_groups :] = np.eye(len(others))
        try:
            held = np.linalg.solve(A[:, basis], b)
        except np.linalg.LinAlgError:
            return None
        x = np.zeros(n)
        x[basis] = held
        spare, behind = level - apart @ x[n - apart.shape[1] :], n + n_groups + np.arange(len(others))
        for g in range(n_groups):
            here = np.flatnonzero(own == g)
            if len(here) and spare[here].min() < 0:
                behind[here[spare[here].argmin()]] = n + g
        return wide, np.concatenate([b, level / steep]), np.concatenate([basis, behind])

    # --------------------------------------------------------------------------------------------------- by HiGHS

    def _by_highs(
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
            raise RuntimeError(f"metricwise: the linear programme of the constraints failed: {found.message}")
        prices = np.maximum(-found.ineqlin.marginals, 0.0) / np.concatenate([self._scale, steep])
        return Optimum(found.x[:n_weights], -float(found.fun), prices, None)


def simplex(
    cost: FloatArray, A: FloatArray, b: FloatArray, basis: IntArray, usable: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, IntArray] | None:
    """Minimise ``cost @ x`` among x >= 0 with ``A @ x = b``.

    Parameters
    ----------
    cost : ndarray of shape (n,)
    A : ndarray of shape (m, n)
    b : ndarray of shape (m,)
    basis : ndarray of shape (m,), int
        Columns that alone solve ``A @ x = b`` with no entry below 0, but for rounding.
    usable : bool ndarray of shape (n,), optional
        Columns that may come into it.

    Returns
    -------
    x : ndarray of shape (n,)
    prices : ndarray of shape (m,)
        What the least value rises by with each entry of b.
    basis : ndarray of shape (m,), int
        The columns that are not held at 0.
        None instead of all three where rounding got in the way, or there is no least value.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.solvers.programme import simplex
    >>> x, prices, basis = simplex(np.array([-1.0, -2.0, 0.0]), np.array([[1.0, 3.0, 1.0]]), np.array([6.0]), [2])
    >>> x, prices
    (array([6., 0., 0.]), array([-1.]))
    """
    basis = np.array(basis, dtype=np.intp)
    least = -_ZERO * max(float(np.abs(cost).max(initial=0.0)), 1e-300)
    for step in range(_PIVOTS):
        try:
            inverse = np.linalg.inv(A[:, basis])
        except np.linalg.LinAlgError:
            return None
        held, prices = inverse @ b, cost[basis] @ inverse
        if held.min() < -_PIVOT:
            return None
        worth = cost - prices @ A
        worth[basis] = 0.0
        worth = worth if usable is None else np.where(usable, worth, 0.0)
        entering = int(worth.argmin()) if step < _GREEDY else int(np.argmax(worth < least))
        if worth[entering] >= least:
            x = np.zeros(A.shape[1])
            x[basis] = np.maximum(held, 0.0)
            return (x, prices, basis) if np.abs(A @ x - b).max() < 2 * _PIVOT else None
        column = inverse @ A[:, entering]
        falls = column > _PIVOT
        if not falls.any():
            return None
        ratio = np.where(falls, np.maximum(held, 0.0) / np.where(falls, column, 1.0), np.inf)
        ties = np.flatnonzero(ratio <= ratio.min() + _ZERO)
        basis[ties[column[ties].argmax() if step < _GREEDY else basis[ties].argmin()]] = entering
    return None
