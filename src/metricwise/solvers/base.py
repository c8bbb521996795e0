"""Base of solvers: what they need of an objective, the loop of iterative ones, and the end of a walk.

A solver is a frozen dataclass of settings with ``solve(oracle, objective) -> SolverResult``. Must not know any
algorithm, beyond the name of one that serves a form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument
from ..core.losses import Loss
from ..core.moved import moved_error
from ..data.sources.base import in_passes
from ..metrics.objective import Objective
from ..oracles.base import Oracle, Walk
from .result import Outcome, SolverResult, build_result

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Form = Literal["linear", "ratio", "concave", "minimum", "any"]


def _is_linear(objective: Objective) -> bool:
    return objective.ratio is not None and objective.ratio.linear


def _is_ratio(objective: Objective) -> bool:
    return objective.ratio is not None


def _is_concave(objective: Objective) -> bool:
    # The tangents of a minimum are those of one of its parts: they promise what a step does not keep.
    return objective.concave and not objective.is_minimum


_HAS: dict[Form, Callable[[Objective], bool]] = {
    "linear": _is_linear,
    "ratio": _is_ratio,
    "minimum": lambda objective: objective.is_minimum,
    "concave": _is_concave,
    "any": lambda _: True,
}
_WORDS: dict[Form, str] = {
    "linear": "a linear metric",
    "ratio": "a linear or fractional-linear metric",
    "minimum": "a minimum of linear metrics",
    "concave": "a concave metric that is smooth",
    "any": "any metric",
}
# A solver that takes any objective of a form; of several forms that an objective has, the first decides.
_SERVED_BY: dict[Form, str] = {
    "linear": "closed_form",
    "ratio": "path",
    "minimum": "column_generation",
    "concave": "frank_wolfe",
    "any": "ascent",
}


def has_form(objective: Objective, form: Form) -> bool:
    """Whether an objective has a form; a linear one is also a ratio, and increasing transforms are ignored."""
    return _HAS[form](objective)


@dataclass(frozen=True)
class Needs:
    """Requirements of a solver on its objective.

    Parameters
    ----------
    form : {"linear", "ratio", "concave", "minimum", "any"}
        Form that the metric must have.
    binary : bool, default=False
        Whether all outputs must have two classes.
    finite_range : bool, default=False
        Whether the ratios must have known bounds to start from.

    See Also
    --------
    BaseSolver : Declares its needs.

    Examples
    --------
    >>> from metricwise.solvers import SOLVERS
    >>> SOLVERS["dinkelbach"].needs.form, SOLVERS["sweep"].needs.binary
    ('ratio', True)
    """

    form: Form = "any"
    binary: bool = False
    finite_range: bool = False

    def missing(self, objective: Objective, title: str | None = None) -> str | None:
        """Return what an objective lacks and which solver to use instead; None if it lacks nothing.

        Parameters
        ----------
        objective : Objective
        title : str, optional
            Name of the metric, if it is one of several metrics of different outputs.
        """
        of = "" if title is None else f" for {title}"
        if not objective.grouping.apart:
            return (
                f"needs outputs that share a loss to be pooled in one confusion matrix{of}, because the best "
                f"loss of one block would change another; use {argument('solver', 'auto')}."
            )
        if not has_form(objective, self.form):
            name = type(objective.metrics[0]).__name__ if title is None else title
            kind = "a minimum" if objective.is_minimum else objective.family
            return f"needs {_WORDS[self.form]}. {name} is {kind}: {_remedy(objective, title)}."
        if self.binary and objective.width != 2:
            return f"needs binary outputs, got {objective.width} classes{of}: {_remedy(objective, title)}."
        if self.finite_range and not _has_finite_range(objective):
            return f"needs a metric with a finite range{of}: {_remedy(objective, title)}."
        return None

    def check(self, objective: Objective, solver: str, title: str | None = None) -> None:
        """Refuse an objective that lacks something; see :meth:`missing`."""
        missing = self.missing(objective, title)
        if missing is not None:
            raise InvalidParameter("solver", problem=f"{solver} {missing}", owner=None)


def _remedy(objective: Objective, title: str | None) -> str:
    """Say which solver serves an objective."""
    if title is not None:
        return f"use {argument('solver', 'auto')}, which chooses a solver for each metric"
    served_by = next(_SERVED_BY[form] for form in _HAS if has_form(objective, form))
    return f"use {argument('solver', served_by)} or 'auto'"


def _has_finite_range(objective: Objective) -> bool:
    ratio = objective.ratio
    return ratio is not None and bool(np.isfinite(ratio.low).all() and np.isfinite(ratio.high).all())


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
        return frozenset(setting.name for setting in fields(cls))  # type: ignore[arg-type]  # subclasses are dataclasses


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


def no_losses(_: FloatArray) -> Sequence[Loss]:
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
    beside: Callable[[FloatArray], Sequence[Loss]] = no_losses,
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
    return build_result(oracle, objective, chosen, counted[:2], status=status, outcome=outcome), point, counted[2:]


# Classes that were here when they were pickled.
_MOVED = frozenset({"Candidate", "Estimate", "Gain", "Outcome", "Promise", "Recorded", "Solution"})

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MOVED:
            raise moved_error(f"{__name__}.{name}", "class")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
