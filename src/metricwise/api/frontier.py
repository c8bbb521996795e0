"""``trade_off``: how much of one metric must be given up for another.

Owns the frontier: the best rule for one metric at every bound on another one, each found from where the last one was.
Must not know algorithms.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InvalidParameter, entry_point, refuses_removed, shown
from ..core.losses import Loss
from ..core.progress import Progress, read_verbose
from ..data.keeping import keeping_rows
from ..data.labels import Labels
from ..data.row_spec import Frequencies, RowSpec
from ..fitting.constraints.explain import explain_infeasible
from ..fitting.constraints.resolve import InfeasibleConstraintsError
from ..fitting.constraints.search import ConstrainedRule, NoSingleRuleError, Search
from ..fitting.metadata import metadata_of
from ..fitting.secondary_metrics import record_rule
from ..fitting.solving import Settings, present
from ..fitting.strategy import Strategy
from ..goals.constraint import Constraint
from ..goals.constraint_text import ConstraintSpec, read_constraints
from ..goals.for_outputs import MetricSpec
from ..goals.labels import is_of_labels
from ..goals.recording import RecordSpec
from ..goals.spec import GoalSpec
from ..metrics.abstention import Abstention
from ..oracles.problem import Problem
from ..rules.labels import LabelRule
from ..rules.mixture import MixtureRule
from ..rules.weighted import WeightedRule
from ..solvers.constrained import InfeasibleError
from .problems import open_problem, read_seed

__all__ = ["TradeOff", "TradeOffPoint", "trade_off"]

FloatArray = NDArray[np.float64]

_HALVINGS = 14  # in which the end of the frontier is found
_SAME = 1e-12


@dataclass(frozen=True, eq=False)
class TradeOffPoint:
    """One point of a trade-off between two metrics.

    Parameters
    ----------
    rule : WeightedRule, MixtureRule or LabelRule
        The rule at this point.
    value : float
        Value of the metric that is maximised.
    against : float
        Value of the metric that is bounded.
    recorded : dict of str to float
        Values of the recorded metrics.

    See Also
    --------
    TradeOff.choose : Return the best point within a bound.

    Examples
    --------
    >>> import metricwise as mw
    >>> frontier = mw.trade_off([0.1, 0.3, 0.4, 0.8], [0, 1, 0, 1], "recall", "precision", n_points=5)
    >>> point = frontier.choose(0.9)
    >>> point.value, point.against
    (0.5, 1.0)
    """

    rule: WeightedRule | MixtureRule | LabelRule
    value: float
    against: float
    recorded: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Trade-off between two metrics: the best value of one at every bound on the other.

    Points are in the order of the bound, from the loosest to the tightest.

    Parameters
    ----------
    metric, against : str
        The metric that is maximised and the one that is bounded.
    ceiling : bool
        Whether it is bounded from above.
    bounds : ndarray of shape (T,)
        The bound of each point; the first is the value of `against` for the best unconstrained rule for `metric`.
    values, others : ndarray of shape (T,)
        Values of `metric` and `against` at each point, counted with the labels, or in expectation without labels.
    rules : tuple of T WeightedRule, MixtureRule or LabelRule
        The rule of each point.
    baseline : tuple of float
        Values of both metrics for argmax.
    recorded : dict of str to ndarray of shape (T,)
        Values of the recorded metrics at each point.
    recorded_baseline : dict of str to float
        Values of the recorded metrics for argmax.

    See Also
    --------
    metricwise.trade_off : Computes a trade-off.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> frontier = mw.trade_off(p, y, "recall", "precision", n_points=5)
    >>> frontier
    TradeOff(recall at precision >= 0.266 to 1, 5 points)
    >>> point = frontier.choose(0.6)
    >>> point.against >= 0.6, round(point.value, 2)
    (True, 0.47)
    """

    metric: str
    against: str
    ceiling: bool
    bounds: FloatArray
    values: FloatArray
    others: FloatArray
    rules: tuple[WeightedRule | MixtureRule | LabelRule, ...]
    baseline: tuple[float, float]
    recorded: dict[str, FloatArray] = field(default_factory=dict)
    recorded_baseline: dict[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rules)

    def __getitem__(self, index: int) -> TradeOffPoint:
        recorded = {name: float(values[index]) for name, values in self.recorded.items()}
        return TradeOffPoint(self.rules[index], float(self.values[index]), float(self.others[index]), recorded)

    def __repr__(self) -> str:
        sign = "<=" if self.ceiling else ">="
        ends = f"{self.bounds[0]:.3g} to {self.bounds[-1]:.3g}"
        return f"TradeOff({self.metric} at {self.against} {sign} {ends}, {len(self)} points)"

    def choose(self, bound: float) -> TradeOffPoint:
        """Return the best point that satisfies a bound on the given rows.

        New rows satisfy it about half of the time. For a bound that holds with a given confidence, and for the best
        rule between two points, use :func:`metricwise.optimize` with ``subject_to`` and ``confidence``.

        Parameters
        ----------
        bound : float
            Bound on `against`.

        Returns
        -------
        TradeOffPoint
        """
        kept = self.others <= bound + _SAME if self.ceiling else self.others >= bound - _SAME
        if not kept.any():
            end = f"down to {self.others.min():.4g}" if self.ceiling else f"up to {self.others.max():.4g}"
            raise InvalidParameter("bound", f"be satisfied by at least one point, {end}", repr(bound))
        return self[int(np.argmax(np.where(kept, self.values, -np.inf)))]

    def plot(self, ax: Any = None, *, bound: float | None = None, **kwargs: Any) -> Any:
        """Plot the frontier, with argmax; requires matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default, new ones.
        bound : float, optional
            Bound on `against`, which is drawn with the best point that satisfies it.
        **kwargs
            Passed to the `plot` method of the display.

        Returns
        -------
        metricwise.displays.FrontierDisplay
            The display, with the attributes `ax_` and `figure_`.

        See Also
        --------
        metricwise.displays.FrontierDisplay : Also draws several frontiers, for example one for each group of rows.

        Examples
        --------
        ``frontier.plot(bound=0.6).figure_.savefig("frontier.png")`` also marks the best point at a bound of 0.6.
        """
        from ..inspection.displays.frontier import FrontierDisplay

        return FrontierDisplay.from_trade_off(self, bound=bound, ax=ax, **kwargs)

    def to_dict(self) -> dict[str, FloatArray]:
        """Return the columns of a table for ``pandas.DataFrame``: the bound, both metrics, and the recorded ones.

        A metric that occurs twice has one column.
        """
        return {"bound": self.bounds, self.metric: self.values, self.against: self.others, **self.recorded}


@entry_point("trade_off")
@refuses_removed("trade_off")
@keeping_rows
def trade_off(
    proba: Any,
    y: ArrayLike | Labels | None,
    metric: MetricSpec,
    against: str | Any,
    *,
    ceiling: bool = False,
    n_points: int = 25,
    record: RecordSpec = None,
    subject_to: Any = None,
    average: str | None = None,
    sample_weight: ArrayLike | Frequencies | None = None,
    output_weight: ArrayLike | None = None,
    classes: Any = None,
    order: Any = None,
    pos_label: Any = None,
    input: str = "probabilities",
    abstain: bool | float | Abstention | None = None,
    labels_per_row: int | tuple[int, int] | None = None,
    strategy: Strategy | None = None,
    random_state: int | None = None,
    verbose: bool | None = None,
) -> TradeOff:
    """Compute the frontier of two metrics: the best value of one at every bound on the other.

    The frontier starts at the value of `against` for the best rule for `metric` and ends at the best value of `against`
    that any rule reaches. With labels and binary targets, every point is optimal over all thresholds.

    Parameters
    ----------
    proba, y, metric
        As in :func:`metricwise.optimize`.
    against : str or object
        The metric that is bounded, as in its `subject_to`: ``"precision"``, ``"recall[urgent]"``, ``"share[topic,
        spam]"``, ``"macro_f1"``. Unless it is linear, a ratio, or concave and bounded from below, the frontier of
        more than two classes is found locally.
    ceiling : bool, default=False
        Whether to bound `against` from above, as for a share or a false positive rate.
    n_points : int, default=25
        Number of bounds, evenly spaced.
    record : list or dict, optional
        Metrics to record along the frontier.
    subject_to : str, constraint, or list of these, optional
        Further constraints that every point satisfies on the given rows.
    average, sample_weight, output_weight, classes, order, pos_label, input
        As in :func:`metricwise.optimize`.
    abstain : bool, float or Abstention, optional
        As in :func:`metricwise.optimize`. With ``abstain=True, against="abstained"`` the frontier is the risk-coverage
        curve: the share of abstentions is bounded from above, whatever `ceiling` is, from no row decided to all rows
        decided. ``metric="coverage", against="accuracy"`` is the same curve from the other side: the largest share of
        decided rows at every accuracy of these.
    labels_per_row : int or (int, int), optional
        The largest number of labels of a row, or the least and the largest, as in :func:`metricwise.optimize`.
    strategy : Strategy, optional
        How the metric that is maximised is counted, by default with labels if there are any, whether probabilities are
        recalibrated, by default if there are labels, and whether to allow mixtures of rules: the frontier is then that
        over all mixtures. Solvers cannot be chosen.
    random_state : int, optional
        Seed for the draws of mixtures.
    verbose : bool, optional
        Whether to report progress, as in :func:`metricwise.optimize`.

    Returns
    -------
    TradeOff
        Values are counted on the given rows, so that the best of many points are slightly optimistic.

    See Also
    --------
    metricwise.optimize : Find the best rule at one bound that holds on new data with a given confidence.
    metricwise.evaluate : Evaluate a rule by several metrics, with intervals.

    Notes
    -----
    For sparse probabilities or with `labels_per_row`, `against` is a ratio of all labels pooled, such as precision or
    recall. Every point is the best rule found that keeps its bound on the given rows: of all thresholds that labels
    have in common for micro-averages without `labels_per_row`, else of the rules at rising prices of the bound, which
    are local. Averages over instances, label coverage and `subject_to` are refused there.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([3, 1, 1], 1000)
    >>> y = np.array(["low", "mid", "urgent"])[(P.cumsum(axis=1) < rng.random((1000, 1))).sum(axis=1)]
    >>> frontier = mw.trade_off(P, y, "accuracy", "recall[urgent]", n_points=4, record=["macro_f1"])
    >>> bool(np.all(np.diff(frontier.others) > 0)), bool(frontier.values[0] > frontier.values[-1])
    (True, True)
    """
    chosen = Strategy.of(strategy)
    settings, show_progress = _settings(n_points, ceiling, chosen, random_state), read_verbose(verbose)
    rows = RowSpec(proba, y, sample_weight, classes=classes, order=order, pos_label=pos_label, input=input)
    bounded = _bounded(against)
    spec = GoalSpec(
        metric,
        average,
        pos_label,
        output_weight,
        record,
        subject_to,
        abstain=abstain,
        order=order,
        against=bounded,
        labels_per_row=labels_per_row,
    )
    name = str(replace(bounded, low=0.0, text="")).removesuffix(" >= 0")
    if is_of_labels(rows, spec):
        from .label_rules import trace_label_rules

        return trace_label_rules(rows, spec, chosen, bool(ceiling), int(n_points), name, show_progress)
    problem, _, goal = open_problem(rows, spec)
    recipe, problem = chosen.single_recipe(problem.labelled), replace(problem, constraints=())
    first, *rest = goal.constraints
    # Of fewer and fewer rows more and more is right: what is bounded is how many are left out.
    bounded_traits = first.metric.traits
    ceiling = ceiling or (bounded_traits.of_abstentions and bounded_traits.lower_is_better)
    search = Search(problem, recipe, problem.link(recipe.recalibrate), [_from_zero(first, ceiling), *rest], settings)
    with Progress("trade_off", n_points, show_progress) as progress:
        return _Frontier(problem, search, ceiling, settings).trace(name, n_points, progress)


def _settings(n_points: Any, ceiling: Any, strategy: Strategy, random_state: Any) -> Settings:
    """Check what is not about rows or metrics."""
    if isinstance(n_points, bool) or not isinstance(n_points, (int, np.integer)) or n_points < 2:
        raise InvalidParameter("n_points", "be a whole number of at least 2", shown(n_points))
    if not isinstance(ceiling, (bool, np.bool_)):
        raise InvalidParameter("ceiling", "be True or False", shown(ceiling))
    if strategy.solver != "auto" or strategy.tol is not None:
        raise InvalidParameter(
            "strategy", "leave solver and tol at their defaults, because constraints have their own solver"
        )
    return Settings(bool(strategy.randomized), read_seed(random_state))


def _bounded(against: Any) -> ConstraintSpec:
    """Read the metric that is bounded."""
    if isinstance(against, ConstraintSpec):
        raise InvalidParameter("against", "be a metric without a bound", repr(str(against)))
    if not isinstance(against, str):
        return ConstraintSpec(against)
    if any(sign in against for sign in "<>=≤≥"):
        raise InvalidParameter("against", "be a metric without a bound", repr(against))
    (constraint,) = read_constraints(f"{against} >= 0")
    return replace(constraint, low=-np.inf)


def _from_zero(constraint: Constraint, ceiling: bool) -> Constraint:
    """Return the constraint with a bound of 0, which margins move."""
    low, high = (-np.inf, 0.0) if ceiling else (0.0, np.inf)
    return replace(constraint, low=low, high=high, name=constraint.metric.name)


class _Frontier:
    """The search along the bounds on the first constraint."""

    def __init__(self, problem: Problem, search: Search, ceiling: bool, settings: Settings) -> None:
        self.problem, self.search, self.ceiling, self.settings = problem, search, ceiling, settings

    def at(self, bound: float) -> ConstrainedRule | None:
        """Return the best rule that keeps a bound, None where none does."""
        margins = np.zeros((len(self.search.constraints), 2))
        margins[0] = (0.0, -bound) if self.ceiling else (bound, 0.0)
        try:
            return self.search.best(margins, single=not self.settings.randomized)
        except (InfeasibleError, NoSingleRuleError):
            return None

    def trace(self, name: str, n_points: int, progress: Progress) -> TradeOff:
        """Return the points, from the loosest bound to the tightest."""
        least, most = self.search.limits.constraints[0].range
        loose, tight = (float(most), float(least)) if self.ceiling else (float(least), float(most))
        progress.stage("looking for the ends")
        free = self.at(loose)
        if free is None:
            others = self.search.constraints[1:] or self.search.constraints
            search = Search(self.problem, self.search.recipe, self.search.link, others, self.settings)
            raise InfeasibleConstraintsError(explain_infeasible(search, None))
        tight = tight if np.isfinite(tight) else self._furthest()
        begin = float(self.search.limits.values(free.judged)[0])
        end, last = self._end(begin, tight)
        bounds = np.linspace(begin, end, n_points)
        optima: list[ConstrainedRule | None] = [free]
        for p, bound in enumerate(bounds[1:-1].tolist(), start=2):
            progress.stage(f"point {p} of {n_points}")
            optima.append(self.at(bound))
        optima.append(last or free)
        points = [(float(bound), optimum) for bound, optimum in zip(bounds, optima, strict=True) if optimum is not None]
        return self._packed(name, points)

    def _furthest(self) -> float:
        """Return the tightest bound that a rule asked for keeps, of a function whose range is not known."""
        values = self.search.limits.constraints[0].value(self.search.asked_for)
        return float(values.min() if self.ceiling else values.max())

    def _end(self, begin: float, tight: float) -> tuple[float, ConstrainedRule | None]:
        """Return the tightest bound that is kept, and by what."""
        optimum = self.at(tight)
        if optimum is not None:
            return tight, optimum
        kept, lost = begin, tight
        for _ in range(_HALVINGS):
            middle = (kept + lost) / 2
            candidate = self.at(middle)
            if candidate is None:
                lost = middle
            else:
                kept, optimum = middle, candidate
        return kept, optimum

    def _packed(self, name: str, points: list[tuple[float, ConstrainedRule]]) -> TradeOff:
        search, problem = self.search, self.problem
        metadata = metadata_of(problem, str(search.recipe))
        sign = "<=" if self.ceiling else ">="
        others = [constraint.name for constraint in search.constraints[1:]]
        solutions = [
            present(
                problem,
                search.recipe,
                search.oracle,
                search.objective,
                optimum.result,
                metadata.updated(subject_to=[f"{name} {sign} {bound:.6g}", *others]),
            )
            for bound, optimum in points
        ]
        recorded = [record_rule(problem, fitted.rule) for fitted in solutions]
        argmax = search.judge.confusions([Loss.argmax(problem.schema.decision_width)], linked=False)[0]
        return TradeOff(
            problem.aim.name,
            name,
            self.ceiling,
            np.array([bound for bound, _ in points]),
            np.array([fitted.value for fitted in solutions]),
            np.array([search.limits.values(optimum.judged)[0] for _, optimum in points]),
            tuple(fitted.rule for fitted in solutions),
            (solutions[0].baseline, float(search.limits.values(argmax)[0])),
            {key: np.array([values[key].value for values in recorded]) for key in recorded[0]},
            {key: value.baseline for key, value in recorded[0].items()},
        )
