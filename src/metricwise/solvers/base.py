"""What every solver shares: the contract, the loop, and the final count.

Owns the contract of a solver: a frozen dataclass of settings with ``solve(oracle, objective) -> SolverResult``. Those
here are a :class:`BaseSolver`, which checks what they declare, lets them ``search`` and counts the passes. Iterative
ones implement ``init``, ``step`` and ``done`` on a state of their own, and :func:`run` owns the loop. Must not know any
one algorithm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.losses import Loss
from ..core.moved import moved_error
from ..core.notes import NoteKind, note_list
from ..data.sources.base import in_passes
from ..metrics.objective import Objective
from ..oracles.base import Oracle, Walk
from .needs import Needs
from .result import Outcome, SolverResult

__all__ = [
    "BaseSolver",
    "Iterative",
    "Solver",
    "concave_bound",
    "finish",
    "finish_walk",
    "nothing",
    "run",
    "settle",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class Solver(Protocol):
    """Anything that maximises an objective with the help of an oracle.

    See Also
    --------
    BaseSolver : Base class of the solvers.

    Examples
    --------
    >>> import metricwise as mw
    >>> isinstance(mw.solvers.Path(), mw.solvers.BaseSolver)
    True
    """

    def solve(self, oracle: Oracle, objective: Objective) -> SolverResult:
        """Return the best rule found."""
        ...


class BaseSolver(ABC):
    """Base class of solvers, which declare what they need and which settings they take.

    Subclasses are frozen dataclasses: `needs` declares the objectives that they can handle, their fields are their
    settings, and ``search`` does the work.

    See Also
    --------
    Needs : What a solver needs.
    Solver : The protocol.

    Examples
    --------
    >>> from metricwise.solvers import Bisection
    >>> Bisection.needs.form, sorted(Bisection.settings())
    ('ratio', ['max_iter', 'tol'])
    """

    needs: ClassVar[Needs] = Needs()

    def solve(self, oracle: Oracle, objective: Objective) -> SolverResult:
        """Return the best rule found.

        Parameters
        ----------
        oracle : Oracle
        objective : Objective
            Must have the form that the solver needs; otherwise a ValueError is raised.

        Returns
        -------
        SolverResult
        """
        self.needs.check(objective, type(self).__name__)
        before = oracle.entries_read
        result = self.search(oracle, objective)
        n_passes = in_passes(oracle.entries_read - before, oracle.n_rows, len(oracle.n_classes))
        return replace(result, n_passes=n_passes)

    @abstractmethod
    def search(self, oracle: Oracle, objective: Objective) -> SolverResult:
        """Return the best rule found for an objective that is what the solver needs."""

    @classmethod
    def settings(cls) -> frozenset[str]:
        """Return the names of the settings that the solver takes."""
        return frozenset(one.name for one in fields(cls))  # type: ignore[arg-type]  # subclasses are dataclasses


State = TypeVar("State")


class Iterative(Protocol[State]):
    """A solver that goes step by step."""

    def init(self, oracle: Oracle, objective: Objective) -> State: ...

    def step(self, oracle: Oracle, objective: Objective, state: State) -> State: ...

    def done(self, state: State) -> bool: ...


def run(solver: Iterative[State], oracle: Oracle, objective: Objective) -> State:
    """Drive an iterative solver to its end."""
    state = solver.init(oracle, objective)
    while not solver.done(state):
        state = solver.step(oracle, objective, state)
    return state


def concave_bound(oracle: Oracle, objective: Objective, C: FloatArray) -> float:
    """Bound a concave objective from above by its tangent at C: psi(C') <= psi(C) + <grad, C' - C> for all C'.

    Parameters
    ----------
    C : ndarray of shape (M, K, K)
        Any reachable confusion. Costs one pass; a certificate if the oracle is certified.
    """
    pooled = objective.grouping.pool(C)
    slope = objective.gradient(pooled)
    best = objective.grouping.pool(oracle.confusions([objective.spread(Loss.from_tensor(-slope))])[0])
    rise = np.maximum(np.sum(slope * (best - pooled), axis=(-2, -1)), 0.0)
    return objective.total(objective.values(pooled) + rise)


def nothing(_: FloatArray) -> Sequence[Loss]:
    """Return no losses."""
    return ()


def finish_walk(
    oracle: Oracle,
    objective: Objective,
    walk: Walk,
    values: FloatArray,
    *,
    points: Callable[[IntArray], FloatArray],
    loss: Callable[[FloatArray], Loss],
    value: Callable[[FloatArray], FloatArray],
    n_candidates: int,
    status: str,
    outcome: Outcome = Outcome.OPTIMAL,
    beside: Callable[[FloatArray], Sequence[Loss]] = nothing,
) -> tuple[SolverResult, FloatArray, FloatArray]:
    """Count the rules at the best points of a walk with the kernel that predicts, beside argmax.

    Parameters
    ----------
    values : ndarray of shape (T,)
        Values on the intervals of the walk, by its running sums.
    points : callable
        From indices of intervals to points inside them.
    loss : callable
        From the points of all groups to their losses.
    value : callable
        From pooled confusions (..., G, K, K) to what `values` holds, (..., G).
    n_candidates : int
        Intervals that are tried where the count falls short of the running sums.
    beside : callable, optional
        From the values (G,) that the running sums promise to R losses that are counted in the same pass.

    Returns
    -------
    result : SolverResult
    point : ndarray of shape (G,)
    others : ndarray of shape (R, M, K, K)
        The confusions of those losses.
    """
    best = walk.best(values)
    point, hoped = points(best), values[best]
    chosen = objective.spread(loss(point))
    counted = oracle.confusions([chosen, Loss.argmax(objective.width), *beside(hoped)])
    reached = value(objective.grouping.pool(counted[0]))
    # Rounding may decide rows otherwise than the running sums have it, in intervals that are hardly wider than that.
    short = (reached < hoped - 1e-9 * np.maximum(1.0, np.abs(hoped))) & ~objective.frozen_groups
    if short.any():
        tried = np.repeat(best[None], n_candidates, axis=0)
        for g in np.flatnonzero(short):
            tried[:, g] = walk.runners_up(values, int(g), n_candidates)
        candidates = [points(index) for index in tried]
        tensors = oracle.confusions([objective.spread(loss(at)) for at in candidates])
        which = np.argmax(value(objective.grouping.pool_each(tensors)), axis=0)
        point = np.take_along_axis(np.stack(candidates), which[None], axis=0)[0]
        chosen = objective.spread(loss(point))
        counted[0] = oracle.confusions([chosen])[0]
    return pack(oracle, objective, chosen, counted[:2], status=status, outcome=outcome), point, counted[2:]


def finish(
    oracle: Oracle,
    objective: Objective,
    loss: Loss,
    *,
    status: str,
    outcome: Outcome,
    history: Sequence[float] = (),
    upper_bound: float | None = None,
    level: FloatArray | None = None,
) -> SolverResult:
    """Count the rule of the losses of groups beside argmax, and pack the result."""
    result = settle(oracle, objective, objective.spread(loss), status=status, outcome=outcome)
    return replace(
        result,
        history=(*history, result.value),
        upper_bound=None if upper_bound is None else max(upper_bound, result.value),
        level=level,
    )


def settle(oracle: Oracle, objective: Objective, loss: Loss, *, status: str, outcome: Outcome) -> SolverResult:
    """Count the rule of the losses of outputs with the kernel that predicts, beside argmax."""
    counted = oracle.confusions([loss, Loss.argmax(objective.width)])
    return pack(oracle, objective, loss, counted, status=status, outcome=outcome)


def pack(
    oracle: Oracle, objective: Objective, loss: Loss, counted: FloatArray, *, status: str, outcome: Outcome
) -> SolverResult:
    """Pack the result of the losses of outputs, of which the confusion and that of argmax have been counted."""
    value = objective.value(counted[0])
    return SolverResult(
        losses=(loss,),
        shares=np.ones(1),
        n_classes=oracle.n_classes,
        confusion=counted[0],
        value=value,
        baseline=objective.value(counted[1]),
        outcome=outcome,
        notes=note_list(NoteKind.OUTCOME, status),
        history=(value,),
    )


# Classes that were here when they were pickled.
_MOVED = frozenset({"Candidate", "Estimate", "Gain", "Outcome", "Promise", "Recorded", "Solution"})

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MOVED:
            raise moved_error(f"{__name__}.{name}", "class")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
