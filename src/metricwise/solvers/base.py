"""What every solver shares: the problem, the loop, and the Solution.

Owns the contract of a solver: a frozen dataclass of settings with ``solve(oracle, objective) -> Solution``. Those here
are a :class:`BaseSolver`, which checks what they declare, lets them ``search`` and counts the passes. Iterative ones
implement ``init``, ``step`` and ``done`` on a state of their own, and :func:`run` owns the loop. Must not know any one
algorithm.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, entry_point, warn
from ..core.losses import Loss
from ..core.views import above
from ..data.sources.passes import in_passes
from ..metrics.objective import Objective
from ..oracles.base import Oracle, Walk
from ..rules import CostRule, GroupedRule, MixtureRule, anonymous_rule
from ..rules.serialize import dump
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
    """Estimate of a quantity on new rows, with a 95 % interval.

    Parameters
    ----------
    estimate : float
        The estimate.
    low, high : float
        Ends of the 95 % interval.

    See Also
    --------
    metricwise.evaluate : Returns estimates of metrics.
    Gain : Estimate of the gain over argmax.

    Examples
    --------
    >>> from metricwise.solvers import Estimate
    >>> Estimate(0.6, low=0.55, high=0.65).estimate
    0.6
    """

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Gain(Estimate):
    """Estimate of the gain of a rule over argmax on new rows, corrected for having been chosen on the given ones.

    Parameters
    ----------
    estimate : float
        Mean difference in the metric.
    low, high : float
        Ends of the 95 % interval.

    See Also
    --------
    metricwise.Solution : Has the gain of its rule.

    Examples
    --------
    >>> from metricwise.solvers import Gain
    >>> gain = Gain(0.02, low=-0.01, high=0.05)
    >>> gain.low > 0  # not a clear gain
    False
    """


@dataclass(frozen=True)
class Recorded:
    """A metric that was recorded in addition to the one that is maximised.

    Parameters
    ----------
    value : float
        Value for the rule, counted with the labels, or in expectation without labels.
    baseline : float
        Value for plain argmax, counted in the same way.

    See Also
    --------
    metricwise.optimize : Takes metrics to record.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1", record=["recall"],
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> solution.recorded["recall"].value, solution.recorded["recall"].baseline
    (1.0, 0.5)
    """

    value: float
    baseline: float


@dataclass(frozen=True)
class Promise:
    """A constraint, and how the rule satisfies it.

    Parameters
    ----------
    name : str
        The constraint as it was written.
    low, high : float
        The bounds; infinite if there is none.
    value : float
        Value of the bounded metric for the rule, counted with the labels, or in expectation without labels.
    margin : float
        By how much the bound was tightened on the given rows, so that the constraint also holds on new rows: the rule
        keeps at least this distance from the bound. Of two bounds, or of those in several groups, the margin of the one
        that `value` is nearest to.
    confidence : float or None
        Approximate confidence with which all constraints together hold in the population that the rows are drawn from:
        the requested one, a lower one if there are too few labels, or None if nothing can be said about new rows.
    on_new_rows : Estimate or None
        Estimate of the metric on new rows, with a 95 % interval; None without labels.
    price : float or None
        Gain in the optimised value per unit by which the bound is loosened (its shadow price); 0 if the constraint does
        not bind, None if the solver does not provide it.

    See Also
    --------
    metricwise.optimize : Takes constraints as `subject_to`.
    metricwise.Solution : Has a promise for each constraint.

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
    """A recipe, which is a way to fit a rule, that was compared with others.

    Parameters
    ----------
    recipe : str
        What is counted, and whether the probabilities are recalibrated first.
    value : float
        The metric on rows that the rules were not fitted to.
    gain : float
        Difference between this value and that of plain argmax.
    std_error : float
        Standard error of the gain.
    recorded : dict of str to float
        The recorded metrics on the same rows.

    See Also
    --------
    metricwise.Solution : Has the candidates that were compared.

    Examples
    --------
    >>> from metricwise.solvers import Candidate
    >>> Candidate("recalibrated + labels", value=0.61, gain=0.02, std_error=0.01).gain
    0.02
    """

    recipe: str
    value: float
    gain: float
    std_error: float
    recorded: dict[str, float] = field(default_factory=dict)


class Outcome(Enum):
    """Kind of a solution; `Solution.status` explains it in plain sentences.

    See Also
    --------
    metricwise.Solution : Has an outcome.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1",
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> solution.outcome is mw.solvers.Outcome.OPTIMAL
    True
    """

    OPTIMAL = "optimal"
    """Optimal by the guarantee of the solver, up to its tolerance."""
    LOCAL = "local"
    """A local optimum: nothing that was tried is better, but nothing is proved."""
    NOT_CONVERGED = "not converged"
    """The best solution when the maximum number of steps was reached."""
    ARGMAX = "argmax"
    """Plain argmax, because no rule is expected to do better on new rows."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of an optimisation: the rule, its value, and what is known about both.

    Parameters
    ----------
    rule : WeightedRule, MixtureRule or GroupedRule
        The rule that was found; use its `predict`.
    value : float
        The metric of the rule, counted with the labels (reweighted to `prior` if given), or in expectation under the
        probabilities without labels.
    baseline : float
        The metric of plain argmax, counted in the same way.
    confusion : ndarray of shape (M, K, K), or (M, K, K + 1) of a rule that may abstain
        The confusion tensor of the rule, counted in the same way. Abstentions are the column after the classes of each
        output.
    counted : {"labels", "expected"}
        How these three were counted.
    optimized_value : float
        What the solver maximised, as it counted it: with labels, probabilities or both, and by a surrogate if the
        metric has one. It equals `value` if labels are counted, every class occurs, and there is no surrogate.
    upper_bound : float or None
        Upper bound on `optimized_value`. With expected confusion, it is a certificate over all rules, including
        randomised ones; with labels, it is available for the sweep and the path only, over their family of rules;
        otherwise None.
    gap : float or None
        ``upper_bound - optimized_value``.
    gain : Gain or None
        Estimated gain over argmax on new rows; None without labels, or if `confusion` and `recalibrate` are fixed.
    value_on_new_rows : Estimate or None
        Estimated metric on new rows, with an interval. By contrast, `value` is counted on the rows that the rule was
        fitted to.
    threshold_range : ndarray of shape (2,) or (M, 2), or None
        For binary outputs with a threshold each, the smallest and the largest threshold on the raw probability that are
        as good on these rows, up to 1.96 standard errors of the difference; NaN if an output has none. None if
        `confusion` and `recalibrate` are fixed, if outputs share a threshold, or if there are more than 64 outputs.
    alternative : float or None
        The optimised value of the other kind of rule: of the best mixture found if a single rule is returned, of the
        best single rule if a mixture is returned. None if the solver did not compute it.
    outcome : Outcome
        What kind of solution it is: optimal by the guarantee of the solver, local, not converged, or argmax.
    status : str
        What happened, in plain sentences, with a remedy if there is one.
    n_passes : int
        Number of passes over all rows, from the class priors to the final count: a pass over part of the rows or
        outputs counts as that share, and one that counts both labels and probabilities counts twice. Recalibration and
        the choice of the recipe are not included.
    history : tuple of float
        The optimised value after each step.
    level : ndarray of shape (G,) or None
        For ratios ``<A, C> / <B, C>``, the g of the loss ``g B - A`` of each block of outputs that share a confusion;
        NaN for outputs whose metric is not a ratio if that of another output is one.
    threshold : ndarray of shape (G,) or None
        For the sweep, the threshold of each block on the (recalibrated) probabilities; NaN for outputs without one.
    candidates : tuple of Candidate
        The recipes that were compared; empty if `confusion` and `recalibrate` are fixed.
    recorded : dict of str to Recorded
        The recorded metrics, for the rule and for argmax.
    constraints : tuple of Promise
        The constraints of `subject_to`, in the order given, and how the rule satisfies them.
    by_group : dict of dict of str to Recorded
        With sensitive groups, for each group by name: the metric, the metrics that constraints about groups bound, and
        the recorded metrics, for the rule and for argmax, on the rows of the group.
    problem : object or None
        The problem that was solved: the rows, without a copy, and the aim. It serves plots and reports, and is not
        pickled.

    See Also
    --------
    metricwise.optimize : Returns a solution.
    metricwise.load_solution : Read a solution that was saved.
    metricwise.evaluate : Evaluate the rule on other rows.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1",
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> solution.value, solution.baseline
    (1.0, 0.6666666666666666)
    >>> solution.status
    'Optimal over all thresholds.'
    >>> solution.rule.predict([0.35]).tolist()
    [0]
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

    @entry_point()
    def predict(
        self, proba: Any, *, sensitive_features: Any = None, cost: Any = None, start: int = 0, pos_label: Any = None
    ) -> NDArray[Any]:
        """Predict labels by the rule that was found.

        Parameters
        ----------
        proba : array-like
            Class probabilities, as ``solution.rule.predict`` takes them.
        sensitive_features : array-like of shape (N,) or (N, F), optional
            The group of every row, for a rule by group; all other rules decide without it.
        cost : array-like, optional
            The costs of the decisions about each row, for a rule by costs per row; refused by all others.
        start : int, default=0
            Position of the first row, on which the draws of a mixture depend.
        pos_label : object, or list of M objects, optional
            The class that a single column of probabilities is of, for a rule that was fitted to two columns.

        Returns
        -------
        ndarray of shape (N,), or (N, M) for several outputs

        Examples
        --------
        >>> import metricwise as mw
        >>> solution = mw.optimize([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], "f1",
        ...     strategy=mw.Strategy(recalibrate=False, confusion="labels"))
        >>> solution.predict([0.2, 0.7])
        array([0, 1])
        """
        rule = self.rule
        if isinstance(rule, CostRule):
            return rule.predict(proba, cost, pos_label=pos_label)
        if cost is not None:
            raise InvalidParameter(
                "cost",
                "be left out, because this rule has one loss for all rows",
                remedy=f"optimise with {argument('cost')} to decide each row by its own costs",
            )
        if isinstance(rule, GroupedRule):
            return rule.predict(proba, sensitive_features, start, pos_label=pos_label)
        labels: NDArray[Any] = (
            rule.predict(proba, start, pos_label=pos_label)
            if isinstance(rule, MixtureRule)
            else rule.predict(proba, pos_label=pos_label)
        )
        return labels

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the solution, including its rule, as JSON; :func:`metricwise.load_solution` reads it.

        Parameters
        ----------
        path : path
            Where to write the file, which is written completely or not at all.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import metricwise as mw
        >>> solution = mw.optimize([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], "f1",
        ...     strategy=mw.Strategy(recalibrate=False, confusion="labels"))
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
        """Bound on the distance between the optimised value and the optimum; None if no bound is known."""
        return None if self.upper_bound is None else max(0.0, self.upper_bound - self.optimized_value)

    @property
    def value_on_labels(self) -> float | None:
        """Deprecated: `value` is counted with labels wherever there are any."""
        warn(
            (
                "Solution.value_on_labels is deprecated and will be removed in version 0.3; use value, which is "
                "counted with the labels if there are any."
            ),
            FutureWarning,
        )
        return self.value if self.counted == "labels" else None

    @cached_property
    def details(self) -> Any:
        """Details of the rule on the given rows, computed on first access.

        They are a :class:`~metricwise.inspection.details.Details`.

        The rows must be unchanged: if an array was modified in place since, an error says so. A pickle contains the
        details only if they were computed before.
        """
        return above("inspection.details").Details.of_solution(self)

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Plot the most informative display of the solution; requires matplotlib.

        This is the gain of every output if several outputs have their own confusions, otherwise the metric along the
        rules from argmax to this one or, if that is not known, the confusion. See :mod:`metricwise.displays` for
        others.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default, new ones.
        **kwargs
            Passed to the `plot` method of the display.

        Returns
        -------
        display
            The display, with the attributes `ax_` and `figure_`.

        See Also
        --------
        metricwise.displays.MetricCurveDisplay, metricwise.displays.GainsDisplay
        """
        return above("inspection.displays").display_of(self).plot(ax=ax, **kwargs)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write an HTML report about the solution for readers who do not program; requires Jinja2.

        The report is one self-contained HTML file: whether the rule is worth using, what it decides, what changes for
        whom, the constraints, figures, a slider along the path from argmax to the rule, and how to apply it.

        Parameters
        ----------
        path : path
            Where to write the file, which is written completely or not at all.

        See Also
        --------
        metricwise.report.write : Write a report about any rule and any rows.
        metricwise.report.summarize : The content of the report as a dict.
        """
        above("inspection.report").write(path, self)

    def _repr_html_(self) -> str:
        return str(above("inspection.cards").solution_card(self))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "problem": None}

    def __repr__(self) -> str:
        parts = [f"value={self.value:.6g}", f"baseline={self.baseline:.6g}"]
        if self.gap is not None:
            parts.append(f"gap={self.gap:.2g}")
        return f"Solution({', '.join(parts)}, n_passes={self.n_passes}, status={self.status!r})"


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

    def solve(self, oracle: Oracle, objective: Objective) -> Solution:
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

    def solve(self, oracle: Oracle, objective: Objective) -> Solution:
        """Return the best rule found.

        Parameters
        ----------
        oracle : Oracle
        objective : Objective
            Must have the form that the solver needs; otherwise a ValueError is raised.

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
