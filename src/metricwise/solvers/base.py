"""What every solver shares: the problem, the loop, and the Solution.

Owns the contract of a solver: a frozen dataclass of settings with ``solve(oracle, objective) -> Solution``. Those here
are a :class:`BaseSolver`, which checks what they declare, lets them ``search`` and counts the passes. Iterative ones
implement ``init``, ``step`` and ``done`` on a state of their own, and :func:`run` owns the loop. Must not know any one
algorithm.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..losses import Loss
from ..metrics.objective import Objective
from ..oracles.base import Oracle, Walk
from ..rules import anonymous_rule
from ..rules.serialize import dump
from ..sources.passes import in_passes
from ..views import above
from .needs import Needs

__all__ = [
    "BaseSolver",
    "Candidate",
    "Estimate",
    "Gain",
    "Iterative",
    "Outcome",
    "Promise",
    "Recorded",
    "Solution",
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


@dataclass(frozen=True)
class Estimate:
    """An honest estimate of something on rows that have not been seen.

    Parameters
    ----------
    estimate : float
    low, high : float
        A 95 % interval.
    """

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Gain(Estimate):
    """An honest estimate of what a rule adds to argmax on rows it has not seen.

    Parameters
    ----------
    estimate : float
        Mean difference in the metric.
    low, high : float
        A 95 % interval.
    """


@dataclass(frozen=True)
class Recorded:
    """A metric that was recorded beside the one that is maximised.

    Parameters
    ----------
    value : float
        Of the rule, counted with the labels given; in expectation without labels.
    baseline : float
        Of plain argmax, counted alike.
    """

    value: float
    baseline: float


@dataclass(frozen=True)
class Promise:
    """A constraint, and how the rule keeps it.

    Parameters
    ----------
    name : str
        As it was written.
    low, high : float
        The bounds; infinite where there is none.
    value : float
        Of the metric that is bounded: of the rule, counted with the labels given; in expectation without labels.
    margin : float
        By how much the rule was made to stay off the bound on the rows given, so that new rows keep it too; of two
        bounds, the larger one.
    confidence : float or None
        With what probability all constraints together are kept on rows like those given, as far as these can tell:
        what was asked for, less where labels are too few, None where nothing is promised of new rows.
    on_new_rows : Estimate or None
        The metric on unseen rows, with a 95 % interval; None without labels.
    price : float or None
        What the optimised value would gain per unit by which the bound were looser, near it; 0 where the constraint
        does not bind, None where the solver does not tell.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> solution = mw.optimize(p, y, "recall", subject_to="precision >= 0.6")
    >>> (promise,) = solution.constraints
    >>> promise.value >= 0.6, promise.margin > 0
    (True, True)
    """

    name: str
    low: float
    high: float
    value: float
    margin: float = 0.0
    confidence: float | None = None
    on_new_rows: Estimate | None = None
    price: float | None = None


@dataclass(frozen=True)
class Candidate:
    """A recipe that was tried.

    Parameters
    ----------
    recipe : str
        What is counted, and whether the probabilities are recalibrated first.
    value : float
        The metric on rows that the rules had not seen.
    gain : float
        Its difference to that of plain argmax.
    std_error : float
        Of the gain.
    recorded : dict of str to float
        The metrics that were to be recorded, on the same rows.
    """

    recipe: str
    value: float
    gain: float
    std_error: float
    recorded: dict[str, float] = field(default_factory=dict)


class Outcome(Enum):
    """How a solution came about; `Solution.status` says it in words."""

    OPTIMAL = "optimal"
    """The best there is by the guarantee of the solver, to its tolerance."""
    LOCAL = "local"
    """Where nothing that was tried does better; nothing is proved."""
    NOT_CONVERGED = "not converged"
    """The best so far, at the last step that was allowed."""
    ARGMAX = "argmax"
    """Plain argmax, because no rule promised more on new rows."""


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver found.

    Parameters
    ----------
    rule : WeightedRule, MixtureRule or GroupedRule
        What to predict with.
    value : float
        The metric of the rule, counted with the labels given (with `prior`, reweighted to it); without labels its
        expectation by the probabilities.
    baseline : float
        The metric of plain argmax, counted alike.
    confusion : ndarray of shape (M, K, K), or (M, K, K + 1) of a rule that may abstain
        The confusion tensor of the rule, counted alike. Abstentions are the column behind the classes of each output.
    counted : {"labels", "expected"}
        What these three were counted with.
    optimized_value : float
        What the solver maximised, as it counted it: by labels, probabilities or both, and through a surrogate where the
        metric has one. It is `value` where labels are counted, show every class, and the metric is no surrogate.
    upper_bound : float or None
        No rule has a larger `optimized_value`. With expected confusion a certificate over all rules, randomised ones
        included; with labels only for the sweep and the path, over their own family of rules; else None.
    gap : float or None
        ``upper_bound - optimized_value``.
    gain : Gain or None
        The honest estimate for unseen rows, where one was asked for.
    value_on_new_rows : Estimate or None
        The metric itself on unseen rows, likewise: `value` is counted on rows that the rule was fitted to.
    threshold_range : ndarray of shape (2,) or (M, 2), or None
        For binary outputs with a threshold each, the smallest and the largest threshold on the raw probability that
        are as good on these rows, up to 1.96 standard errors of the difference; NaN where an output has none. None
        where the recipe was given, outputs share a threshold, or they are more than 64.
    alternative : float or None
        The optimised value that the other kind of rule would have: the best mixture found where one rule is returned,
        the best single rule where a mixture is. None where the solver did not look.
    outcome : Outcome
        What kind of solution it is: optimal by the guarantee of the solver, local, not converged, or argmax.
    status : str
        What happened, in words, with a remedy where one is due.
    n_passes : int
        Passes over all rows from the class priors to the final count, as the oracles count them: parts of the rows or
        of the outputs by their share, rows that are counted by label and by probability twice. The fit of the link
        and the choice of the recipe are not among them.
    history : tuple of float
        The optimised value after each step.
    level : ndarray of shape (G,) or None
        For ratios ``<A, C> / <B, C>``, the g of the loss ``g B - A`` of each group of outputs that share a confusion.
        NaN where the metric of an output is no ratio and that of another is one.
    threshold : ndarray of shape (G,) or None
        For the sweep, the threshold of each group on the (recalibrated) probabilities; NaN likewise.
    candidates : tuple of Candidate
        The recipes that were compared; empty where the recipe was given.
    recorded : dict of str to Recorded
        The metrics that were to be recorded, of the rule and of argmax.
    constraints : tuple of Promise
        What the rule was to keep besides, in the order given.
    by_group : dict of dict of str to Recorded
        Where sensitive groups are known, by the name of each: the metric, whatever promises about groups are about, and
        recorded metrics, of the rule and of argmax, on the rows of the group alone.
    problem : object or None
        What was solved: the rows, no copy of them, and the aim. It is there for whoever looks at the solution, and does
        not go into pickles.
    """

    rule: Any  # one of three kinds, of which solvers make two: a union would have everybody say which it is not
    value: float
    baseline: float
    confusion: FloatArray
    optimized_value: float
    status: str
    n_passes: int = 0
    outcome: Outcome = Outcome.LOCAL
    counted: Literal["labels", "expected"] = "labels"
    history: tuple[float, ...] = ()
    upper_bound: float | None = None
    gain: Gain | None = None
    value_on_new_rows: Estimate | None = None
    threshold_range: FloatArray | None = None
    alternative: float | None = None
    level: FloatArray | None = None
    threshold: FloatArray | None = None
    candidates: tuple[Candidate, ...] = ()
    recorded: dict[str, Recorded] = field(default_factory=dict)
    constraints: tuple[Promise, ...] = ()
    by_group: dict[Any, dict[str, Recorded]] = field(default_factory=dict)
    problem: Any = field(default=None, repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the solution, its rule included, as JSON; :func:`metricwise.load_solution` reads it again.

        Parameters
        ----------
        path : path
            Written whole or not at all, as by ``rule.to_json``.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import metricwise as mw
        >>> solution = mw.optimize([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], "f1", recalibrate=False, confusion="labels")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     solution.save(Path(folder) / "solution.json")
        ...     again = mw.load_solution(Path(folder) / "solution.json")
        >>> again.rule == solution.rule, again.value == solution.value
        (True, True)
        """
        from .solution_file import to_dict

        dump(to_dict(self), path)

    @property
    def gap(self) -> float | None:
        """How far the optimised value may be from the best one; None where nothing is known."""
        return None if self.upper_bound is None else max(0.0, self.upper_bound - self.optimized_value)

    @property
    def value_on_labels(self) -> float | None:
        """Deprecated: `value` is counted with labels wherever there are any."""
        warnings.warn(
            "Solution.value_on_labels is deprecated and goes with version 0.3; where there are labels, it is value.",
            FutureWarning,
            stacklevel=2,
        )
        return self.value if self.counted == "labels" else None

    @cached_property
    def details(self) -> Any:
        """What the rows say of the rule, as a :class:`~metricwise.details.Details`; counted when it is asked for.

        The rows must be those that were given: who changes an array in place and looks at the solution afterwards is
        told so. A pickle holds what had been counted before.
        """
        return above("details").Details.of_solution(self)

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Draw what says most about the solution; needs matplotlib.

        The gain of every output where several have confusions of their own, else the metric along the rules from
        argmax to this one, or, where that is not known, the confusion. :mod:`metricwise.displays` has others.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For the `plot` of the display.

        Returns
        -------
        display
            With `ax_` and `figure_`.

        See Also
        --------
        metricwise.displays.MetricCurveDisplay, metricwise.displays.GainsDisplay
        """
        return above("displays").display_of(self).plot(ax=ax, **kwargs)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page that says all that is known of the solution, for people who do not program; needs Jinja.

        One HTML file that fetches nothing: whether the rule is worth it, what it decides, what changes for whom, the
        promises, pictures, a slider along the way from argmax to the rule, and how to apply it.

        Parameters
        ----------
        path : path
            Written whole or not at all.

        See Also
        --------
        metricwise.report.write : The same of a rule and other rows.
        metricwise.report.summarize : What it says, as a dict.
        """
        above("report").write(path, self)

    def _repr_html_(self) -> str:
        return str(above("cards").solution_card(self))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "problem": None}

    def __repr__(self) -> str:
        parts = [f"value={self.value:.6g}", f"baseline={self.baseline:.6g}"]
        if self.gap is not None:
            parts.append(f"gap={self.gap:.2g}")
        return f"Solution({', '.join(parts)}, n_passes={self.n_passes}, status={self.status!r})"


class Solver(Protocol):
    """Anything that maximises an objective with the help of an oracle."""

    def solve(self, oracle: Oracle, objective: Objective) -> Solution:
        """Return the best rule found."""
        ...


class BaseSolver(ABC):
    """A solver that declares what it needs and which settings it takes.

    Subclasses are frozen dataclasses: `needs` says what objectives they serve, their fields are their settings, and
    ``search`` does the work.
    """

    needs: ClassVar[Needs] = Needs()

    def solve(self, oracle: Oracle, objective: Objective) -> Solution:
        """Return the best rule found.

        Parameters
        ----------
        oracle : Oracle
        objective : Objective
            Refused if it is not what the solver needs.

        Returns
        -------
        Solution
        """
        self.needs.check(objective, type(self).__name__)
        before = oracle.entries_read
        solution = self.search(oracle, objective)
        n_passes = in_passes(oracle.entries_read - before, oracle.n_rows, len(oracle.n_classes))
        return replace(solution, n_passes=n_passes)

    @abstractmethod
    def search(self, oracle: Oracle, objective: Objective) -> Solution:
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
) -> tuple[Solution, FloatArray, FloatArray]:
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
    solution : Solution
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
) -> Solution:
    """Count the rule of the losses of groups beside argmax, and pack the Solution."""
    solution = settle(oracle, objective, objective.spread(loss), status=status, outcome=outcome)
    return replace(
        solution,
        history=(*history, solution.value),
        upper_bound=None if upper_bound is None else max(upper_bound, solution.optimized_value),
        level=level,
    )


def settle(oracle: Oracle, objective: Objective, loss: Loss, *, status: str, outcome: Outcome) -> Solution:
    """Count the rule of the losses of outputs with the kernel that predicts, beside argmax."""
    counted = oracle.confusions([loss, Loss.argmax(objective.width)])
    return pack(oracle, objective, loss, counted, status=status, outcome=outcome)


def pack(
    oracle: Oracle, objective: Objective, loss: Loss, counted: FloatArray, *, status: str, outcome: Outcome
) -> Solution:
    """Pack the Solution of the losses of outputs, of which the confusion and that of argmax have been counted."""
    value = objective.value(counted[0])
    return Solution(
        rule=anonymous_rule(loss, oracle.n_classes),
        value=value,
        baseline=objective.value(counted[1]),
        confusion=counted[0],
        optimized_value=value,
        status=status,
        outcome=outcome,
        history=(value,),
    )
