"""One problem, read and checked: probabilities, labels, weights, and the metric to maximise.

Owns the step from what was read to what a solver takes: the link, the oracle and the objective of some rows under a
recipe. Must not know how recipes are chosen, nor read user input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .inputs import Probabilities
from .losses import Loss, average_loss
from .metrics.averages import group_outputs
from .metrics.base import Metric
from .metrics.instance import instance_value
from .metrics.naming import positive_places
from .metrics.objective import Objective, make_objective
from .metrics.resolution import Resolved
from .oracles import BlendedOracle, MemoryOracle, Oracle, Passes, in_passes
from .padding import pad
from .rules import Link, MixtureRule, WeightedRule, anonymous_rule, fit_link, prior_shift
from .sampling import draw_rows
from .solvers import SOLVERS, Outcome, Solution, Solver, make_solver
from .solvers.base import settle

__all__ = ["Problem", "Recipe", "Settings", "argmax", "argmax_rule", "choose_solver", "fit", "solve"]

FloatArray = NDArray[np.float64]

_MAX_SHIFTS = 100
_SHIFT_TOL = 1e-9
_WIDE = 200  # classes, beyond which a full loss is not walked along


@dataclass(frozen=True)
class Recipe:
    """How a rule is fitted to rows.

    Parameters
    ----------
    confusion : {"labels", "expected", "blended"}
        What is counted: labels, probabilities in their place, or half of each.
    recalibrate : bool
        Whether a link is fitted to the labels first.
    n_bootstrap : int
        Average the losses of this many resamples of the rows; 0 fits the rows once.
    """

    confusion: Literal["labels", "expected", "blended"] = "labels"
    recalibrate: bool = False
    n_bootstrap: int = 0

    def __str__(self) -> str:
        return ("recalibrated + " if self.recalibrate else "") + self.confusion


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a rule is fitted to.

    Parameters
    ----------
    proba : Probabilities
    codes : integer ndarray of shape (N, M), or None without labels
    classes : tuple of M ndarrays
    metric : Metric
    average : {"micro", "macro", "instance"}
    support_weighted : bool
        Whether outputs weigh by their share of positives, as scikit-learn's "weighted" does on multilabel targets.
    sample_weight : ndarray of shape (N,), or None
        Times `frequency`, where that is given.
    output_weight : ndarray of shape (M,)
    prior : ndarray of shape (M, K), or None
        Class priors of the rows that the rule is for.
    multioutput : bool
        Whether predictions are 2-D.
    normalize : bool
        Whether the rule takes scores and divides them by their sum.
    output_names : tuple of str, or None
    frequency : ndarray of shape (N,), or None
        How many rows a row stands for, where the rows are a sample.
    record : mapping of str to Resolved
        Metrics that are recorded beside `metric`.
    positive : ndarray of shape (M,), or None
        The positive class of each output where outputs weigh by it, for metrics that have none of their own.
    passes : Passes
        Of all oracles of this problem and of what is made from it.
    """

    proba: Probabilities
    codes: NDArray[Any] | None
    classes: tuple[NDArray[Any], ...]
    metric: Metric
    average: str
    support_weighted: bool
    sample_weight: FloatArray | None
    output_weight: FloatArray
    prior: FloatArray | None = None
    multioutput: bool = False
    normalize: bool = False
    output_names: tuple[str, ...] | None = None
    frequency: FloatArray | None = None
    record: Mapping[str, Resolved] = field(default_factory=dict)
    positive: NDArray[np.intp] | None = None
    passes: Passes = field(default_factory=Passes)

    def take(self, rows: Any) -> Problem:
        """Return the problem of some of the rows."""
        return replace(
            self,
            proba=self.proba.take(rows),
            codes=None if self.codes is None else self.codes[rows],
            sample_weight=None if self.sample_weight is None else self.sample_weight[rows],
            frequency=None if self.frequency is None else self.frequency[rows],
        )

    def sample(self, n_rows: int, seed: int) -> Problem:
        """Return the problem of about so many rows, stratified by class and weighted back; itself if it has no more."""
        if self.proba.n_rows <= n_rows:
            return self
        drawn = draw_rows(self.codes, n_rows, self.proba.n_rows, weight=self.sample_weight, seed=seed)
        some = self.take(drawn.rows)
        weight = drawn.frequency if some.sample_weight is None else some.sample_weight * drawn.frequency
        return replace(some, sample_weight=weight, frequency=drawn.frequency)

    def link(self, recalibrate: bool) -> Link | None:
        """Fit the link, and shift it to the known class priors."""
        link = self._calibration if recalibrate else None
        if self.prior is None:
            return link
        if self.codes is not None:
            return prior_shift(link, MemoryOracle(self.proba, self.codes, self.sample_weight).priors, self.prior)
        # Without labels the rows themselves have the new priors, and those of training are not known: the shift is
        # right where the mean of the shifted probabilities is the prior (Sinkhorn's iteration, which converges fast).
        for _ in range(_MAX_SHIFTS):
            proba = self.proba if link is None else link.view(self.proba)
            seen = MemoryOracle(proba, None, self.sample_weight, expected=True).priors
            if link is not None and np.abs(seen - self.prior).max() < _SHIFT_TOL:
                break
            link = prior_shift(link, seen, self.prior)
        return link

    @cached_property
    def _calibration(self) -> Link:
        """The link as the labels have it: of these rows several recipes may want it."""
        assert self.codes is not None
        return fit_link(self.proba, self.codes, self.sample_weight, frequency=self.frequency)

    def linked(self, link: Link | None) -> Problem:
        """Return the problem of the recalibrated probabilities: of many rows a view, which row passes recalibrate."""
        if link is None:
            return self
        proba = link.view(self.proba)
        # Solvers go over the rows many times: of few rows a copy costs next to nothing, and has the same bits.
        linked = replace(self, proba=proba.recalibrated() if proba.fits_a_chunk else proba)
        if "class_weights" in vars(self):  # the labels are the same
            vars(linked)["class_weights"] = self.class_weights
        return linked

    def oracle(self, confusion: str = "labels") -> MemoryOracle | BlendedOracle:
        """Return the oracle of these rows."""
        if confusion == "blended":
            return BlendedOracle(self._counts(False), self._counts(True))
        return self._counts(confusion == "expected")

    def _counts(self, expected: bool) -> MemoryOracle:
        weights = None if self.codes is None else self.class_weights
        passes = Passes(self.passes)
        return MemoryOracle(self.proba, self.codes, self.sample_weight, expected, self.prior, weights, passes)

    def passes_since(self, entries: int) -> int:
        """Return the passes over all rows since so many entries had been read."""
        return in_passes(self.passes.entries - entries, self.proba.n_rows, self.proba.n_outputs)

    def objective(self, oracle: Oracle, recipe: Recipe | None = None) -> Objective:
        """Bind the metric to the class priors that an oracle counts.

        Parameters
        ----------
        oracle : Oracle
        recipe : Recipe, optional
            What a rule is fitted by, rather than judged: where there are labels and the metric counts every class
            alike, classes that no label shows are padded (:func:`metricwise.padding.pad`).
        """
        n_classes, alpha = oracle.n_classes, self.output_weight
        if self.support_weighted:
            own = positive_places(self.metric, self.classes)
            positive = self.positive if own is None else own
            assert positive is not None  # a metric of one class asks for these weights, for itself or for others
            support = alpha * oracle.weight * oracle.priors[np.arange(len(alpha)), positive]
            alpha = support if support.sum() > 0 else alpha
        grouping = group_outputs(self.average, oracle.weight, n_classes, alpha)
        padding = None
        if recipe is not None and self.codes is not None and self.metric.by_class:
            rare = recipe.recalibrate and recipe.confusion != "labels"
            padding = pad(oracle, grouping, self.class_rows, rare=rare, smooth=self.metric.smooth)
        return make_objective(
            self.metric,
            grouping,
            oracle.priors,
            n_classes,
            classes=self.classes,
            frozen=self.keeps_argmax,
            padding=padding,
        )

    @cached_property
    def class_weights(self) -> FloatArray:
        """Weight of the labels of each class of each output, of shape (M, K)."""
        assert self.codes is not None
        return kernels.tally(self.codes, self.sample_weight, self.proba.width)

    @cached_property
    def class_rows(self) -> FloatArray:
        """Rows that show each class of each output, (M, K), if they have weight; of a sample, what they stand for."""
        assert self.codes is not None
        if self.sample_weight is None:
            return self.class_weights
        stand_for = np.ones(self.proba.n_rows) if self.frequency is None else self.frequency
        return kernels.tally(self.codes, stand_for * (self.sample_weight > 0), self.proba.width)

    @cached_property
    def keeps_argmax(self) -> NDArray[np.bool_]:
        """Outputs that no label can tell a rule for: without any, or of one class, each by itself (macro)."""
        if self.codes is None or self.average != "macro" or self.proba.n_outputs == 1:
            return np.zeros(self.proba.n_outputs, dtype=bool)
        return np.asarray((self.class_weights > 0).sum(axis=1) < 2)

    def resampled(self, rng: np.random.Generator) -> Problem:
        """Return the problem with the rows drawn anew with replacement, as weights."""
        n = self.proba.n_rows
        counts = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
        weight = counts if self.sample_weight is None else counts * self.sample_weight
        return replace(self, sample_weight=weight) if weight.any() else self

    def confusion_of_rule(self, rule: WeightedRule | MixtureRule) -> FloatArray:
        """Return the confusion tensor of a rule without a link, counted with labels; of a mixture its expectation."""
        rules = (rule,) if isinstance(rule, WeightedRule) else rule.rules
        shares = np.ones((1, 1)) if isinstance(rule, WeightedRule) else np.asarray(rule.weights)
        tensors = self.oracle().confusions([one.loss for one in rules])
        shares = np.broadcast_to(shares, (self.proba.n_outputs, len(rules)))
        return np.asarray(np.einsum("mr,rmij->mij", shares, tensors))

    def value_of(self, predicted: NDArray[Any]) -> float:
        """Return the metric of decisions (codes) counted with labels; row by row for the instance-average."""
        oracle = self.oracle()
        if self.average == "instance":
            assert self.codes is not None
            return instance_value(
                self.metric,
                self.codes,
                predicted,
                self.proba.width,
                self.output_weight,
                self.sample_weight,
                self.classes,
            )
        return self.objective(oracle).value(oracle.confusion_of(predicted))


@dataclass(frozen=True)
class Settings:
    """What the user says to whichever solver fits the metric.

    A solver that lacks one of these has no use for it: the exact ones meet any tolerance, and where they are picked
    the optimum is one rule, which no mixture beats.

    Parameters
    ----------
    randomized : bool
    seed : int
    tol : float or None
    """

    randomized: bool = False
    seed: int = 0
    tol: float | None = None

    def make(self, oracle: Oracle, objective: Objective) -> Solver:
        """Return the solver that fits."""
        name = choose_solver(oracle, objective, self.randomized)
        return make_solver(name, **{key: vars(self)[key] for key in vars(self).keys() & SOLVERS[name].settings()})


# From the most exact to the most general; of those whose needs are met, the first that is not ruled out.
_PREFERENCE = ("closed_form", "path", "dinkelbach", "sweep", "column_generation", "frank_wolfe", "ascent")


def choose_solver(oracle: Oracle, objective: Objective, randomized: bool = False) -> str:
    """Name the solver that is exact, or else best, for what the objective is and what the oracle counts."""
    ratio, ruled_out = objective.ratio, set()
    if objective.width == 2 and not oracle.certified:
        # With labels the sweep is exact over all thresholds. With probabilities the path is so over all rules, also
        # those that predict class 1 where it is less likely.
        ruled_out |= {"closed_form", "path", "dinkelbach"}
    if randomized and ratio is None:
        ruled_out.add("sweep")  # a mixture may be better than any threshold
    if ratio is not None and objective.width > _WIDE and not ratio.line[0].is_diagonal:
        # A row that weighs very many classes cell by cell changes its decision as often: the walk along them all costs
        # far more than the few rules that Dinkelbach's iteration asks for.
        ruled_out.add("path")
    return next(name for name in _PREFERENCE if name not in ruled_out and not SOLVERS[name].needs.missing(objective))


def solve(problem: Problem, recipe: Recipe, solver: Solver | Settings, seed: int = 0) -> tuple[Solution, Link | None]:
    """Fit a rule to a problem by a recipe, and nothing else.

    What a rule that is judged elsewhere needs, on rows that were not fitted; see :func:`fit` for the others.

    Parameters
    ----------
    problem : Problem
    recipe : Recipe
    solver : Solver or Settings
        Settings pick one for the metric.
    seed : int
        Of the resamples of the recipe, whatever the solver.

    Returns
    -------
    solution : Solution
        Its rule is over codes, without the link.
    link : Link or None
    """
    link = problem.link(recipe.recalibrate)
    linked = problem.linked(link)
    oracle = linked.oracle(recipe.confusion)
    return _maximise(linked, recipe, solver, oracle, linked.objective(oracle, recipe), seed), link


def _maximise(
    problem: Problem,
    recipe: Recipe,
    solver: Solver | Settings,
    oracle: MemoryOracle | BlendedOracle,
    objective: Objective,
    seed: int,
) -> Solution:
    """Solve once, or on resamples of the rows whose losses are averaged; behind the link."""
    chosen = solver.make(oracle, objective) if isinstance(solver, Settings) else solver
    ratio = objective.ratio
    fixed = recipe.confusion == "expected" or (ratio is not None and ratio.linear)  # labels are not counted
    if not recipe.n_bootstrap or fixed or getattr(chosen, "randomized", False):
        return chosen.solve(oracle, objective)
    rng = np.random.default_rng(seed)
    losses = []
    for _ in range(recipe.n_bootstrap):
        resampled = problem.resampled(rng).oracle(recipe.confusion)
        rule = chosen.solve(resampled, problem.objective(resampled, recipe)).rule
        assert isinstance(rule, WeightedRule)  # only randomised solvers mix
        losses.append(rule.loss)
    words = f"The mean of the rules of {recipe.n_bootstrap} resamples of the rows."
    return settle(oracle, objective, average_loss(losses), status=words, outcome=Outcome.LOCAL)


def fit(
    problem: Problem,
    recipe: Recipe,
    solver: Solver | Settings,
    facts: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Solution:
    """Fit a rule to a problem by a recipe, and say how good it is; see :func:`solve`.

    Parameters
    ----------
    facts : mapping, optional
        What the rule is to know of itself, besides its value.
    seed : int
        Of the resamples of the recipe, whatever the solver.

    Returns
    -------
    Solution
        Its rule has the user's labels.
    """
    link = problem.link(recipe.recalibrate)
    linked = problem.linked(link)
    read_before = problem.passes.entries
    oracle = linked.oracle(recipe.confusion)
    objective = linked.objective(oracle, recipe)
    solution = _maximise(linked, recipe, solver, oracle, objective, seed)
    padded = objective.padding is not None
    if objective.frozen.any():
        solution = replace(solution, upper_bound=None)  # outputs that keep argmax might do better

    def named(facts: Mapping[str, Any]) -> WeightedRule | MixtureRule:
        rule, names = solution.rule, problem.output_names
        return rule.named(problem.classes, problem.multioutput, link, problem.normalize, facts, names)

    if problem.codes is None:
        if link is not None:  # without one, argmax is what the solver has counted beside its rule
            solution = replace(solution, baseline=objective.value(oracle.confusion_of(argmax(problem))))
        solution = replace(solution, counted="expected")
    elif problem.average == "instance":
        row_by_row = problem.value_of(named({}).decide(problem.proba)), problem.value_of(argmax(problem))
        solution = replace(
            _on_labels(problem, linked, recipe, solution, padded), value=row_by_row[0], baseline=row_by_row[1]
        )
    else:
        solution = _on_labels(problem, linked, recipe, solution, padded)
    rule = named({**(facts or {}), "value": solution.value})
    return replace(solution, rule=rule, n_passes=problem.passes_since(read_before))


def _on_labels(problem: Problem, linked: Problem, recipe: Recipe, solution: Solution, padded: bool) -> Solution:
    """Count the rule and argmax with labels and nothing else, where the solver did not."""
    if recipe.confusion == "labels" and linked is problem and not padded:
        return solution
    oracle = linked.oracle()
    objective = linked.objective(oracle)
    confusion = solution.confusion if recipe.confusion == "labels" else linked.confusion_of_rule(solution.rule)
    return replace(
        solution,
        value=objective.value(confusion),
        baseline=objective.value(problem.oracle().confusions([Loss.argmax(problem.proba.width)])[0]),
        confusion=confusion,
    )


def argmax(problem: Problem) -> NDArray[np.intp]:
    """Return the plain argmax decisions (codes) of a problem, before any link."""
    return argmax_rule(problem).decide(problem.proba)


def argmax_rule(problem: Problem) -> WeightedRule:
    """Return the rule of plain argmax, in the user's labels."""
    rule = anonymous_rule(Loss.argmax(problem.proba.width), problem.proba.n_classes)
    return rule.named(problem.classes, problem.multioutput, None, problem.normalize, {}, problem.output_names)
