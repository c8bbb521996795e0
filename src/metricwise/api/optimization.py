"""``optimize``: probabilities and a metric in, the best rule out.

Owns the reading of arguments and the naming of the result. Must not know algorithms: those are chosen by what the
metric is and what the data can say.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.progress import Progress, read_verbose
from ..data import (
    InTime,
    Labels,
    Schema,
    Sensitive,
    in_time,
    positive_labels,
    python_labels,
    read_abstain_label,
    read_output_weight,
    read_prior,
    read_sensitive_features,
    shown,
    warn_of_assignment,
    warn_of_order,
)
from ..data.open import read_source
from ..data.sources import MemorySource
from ..fitting.by_group import GroupTask, fit_by_group, values_by_group
from ..fitting.constraints.fit import Pledge, fit_within
from ..fitting.constraints.resolve import check_bounded, check_shown, read_limits
from ..fitting.example_costs import CostSolution, fit_row_costs, refuse_beside_costs, with_costs
from ..fitting.metadata import facts_of, informed
from ..fitting.secondary_metrics import record_rule
from ..fitting.selection import Choice, candidates, choose
from ..fitting.solving import Settings, fit
from ..goals.aim import Aim
from ..goals.constraint import Constraint
from ..goals.constraint_text import read_constraints
from ..goals.for_outputs import MetricSpec, resolve_for, settle
from ..goals.probing import N_PROBES, metric_of_values
from ..goals.recording import RecordSpec, resolve_record
from ..goals.worst import opened
from ..inference.dependence import in_stretches
from ..inference.uncertainty import threshold_range
from ..metrics.abstention import Abstention, check_pooled, read_abstain
from ..metrics.base import Metric
from ..metrics.class_names import class_named, text_class
from ..metrics.functions import check_whole_rows
from ..metrics.linear import Accuracy
from ..metrics.naming import positive_places, same_classes
from ..metrics.resolution import Resolved, target_kind, to_maximise
from ..metrics.scales import check_order_agrees
from ..oracles.problem import InMemory, Problem, Recipe, argmax_rule
from ..rules import CostRule, GroupedRule, MixtureRule, WeightedRule
from ..rules.grouped import abstaining
from ..solvers import SOLVERS, Outcome, Solution, Solver, make_solver

__all__ = ["optimize", "read_problem"]

_SUSPICIOUS_ROWS = 50  # that argmax gets right without exception, beyond which rows will have been trained on
_DOUBTED_ROWS = 1 << 10  # of a source that is not in memory, which say whether columns may be of other classes


def optimize(
    proba: Any,
    y: ArrayLike | Labels | None,
    metric: MetricSpec,
    *,
    average: str | None = None,
    sample_weight: ArrayLike | None = None,
    weight_kind: str = "importance",
    groups: ArrayLike | None = None,
    time: ArrayLike | InTime | None = None,
    sensitive_features: Any = None,
    group_aware: bool = True,
    output_weight: ArrayLike | None = None,
    classes: Any = None,
    order: Any = None,
    pos_label: Any = None,
    missing: Any = None,
    record: RecordSpec = None,
    solver: str | Solver = "auto",
    confusion: str = "auto",
    recalibrate: bool | str = "auto",
    prior: ArrayLike | None = None,
    randomized: bool = False,
    random_state: int | None = None,
    tol: float | None = None,
    normalize: bool = False,
    zero_division: float = 0.0,
    subject_to: Any = None,
    confidence: float | None = 0.95,
    abstain: bool | float | None = None,
    abstain_label: Any = None,
    cost: ArrayLike | None = None,
    verbose: bool | None = None,
) -> Solution:
    """Find the decision rule that maximises a metric.

    Parameters
    ----------
    proba : array-like
        Class probabilities. With a 1-D y: (N,) or (N, 2) binary, or (N, K). A single column is the probability of
        `pos_label`, or of class 1 if the labels are 0 and 1, -1 and 1, or False and True; any other labels raise an
        error that asks for `pos_label`. With a 2-D y: (N, M) multilabel, (N, M, K),
        or a list of M arrays (N, K_m), which is what scikit-learn's multioutput ``predict_proba`` returns. Without y, a
        2-D array is (N, K). Columns of data frames, also of frames in a list, are matched to classes by name. Dask
        arrays and data frames are read lazily, chunk by chunk, in every pass over the rows; see :doc:`/scale`. Tables
        are read in batches: pass a :class:`metricwise.Table`, or a path that it accepts.
    y : array-like of shape (N,) or (N, M), or None
        True labels; NaN, None, NA and masked entries are missing. If None, the metric is computed in expectation, with
        the probabilities in place of labels. For a table, the name of the column that holds the labels, or a list of
        names; `sample_weight` and `groups` are then column names too.
    metric : str, Metric, callable, dict or list
        The metric to maximise: a metricwise or scikit-learn scorer name, a metric object, a function, or a scorer made
        by scikit-learn's `make_scorer`. The name of a metric of one class may say which class: ``"recall[urgent]"``,
        ``"f1[3]"``. A function with one required argument is read as f(C) of a (K, K) confusion matrix of shares, a
        function with two as f(y_true, y_pred) of labels; if the latter takes no `sample_weight`, it can only be
        evaluated on whole rows, with labels. Each of several outputs may have its own metric: pass a dict keyed by the
        columns of y or of multilabel probabilities (by position if they have no names), or a list in the order of the
        outputs. Every output is then optimised separately, and the value is the mean over the outputs.
    average : {"micro", "macro", "instance"}, optional
        Average over outputs. None means "micro" unless the name of the metric fixes the average; `average` is required
        if the outputs have different classes. If each output has its own metric, only "macro" is allowed.
    sample_weight : array-like of shape (N,), optional
        Sample weights.
    weight_kind : {"importance", "frequency"}, default="importance"
        What the sample weights mean: how much a row matters, or how many rows it stands for (whole numbers). The rule
        is the same either way; the standard errors of estimates for new rows differ.
    groups : array-like of shape (N,), optional
        Group labels of rows that belong together, such as the rows of one patient: a rule is never judged on rows of a
        group that it was fitted to. Exact duplicates of rows are detected without it.
    time : array-like of shape (N,), or InTime, optional
        When each row was observed, as numbers or dates: neighbours in time belong together, and rules are judged on
        periods that they were not fitted to. How far rows depend on one another is measured on the rows, and said in
        `Solution.status`; :class:`metricwise.InTime` takes it as a number of rows.
    sensitive_features : array-like of shape (N,) or (N, F), optional
        The sensitive group of every row, by name or number; several columns are combined. `subject_to` may then
        constrain groups: ``"demographic_parity <= 0.05"``, ``"equal_opportunity <= 0.05"``, ``"equalized_odds <=
        0.05"``, ``"predictive_parity <= 0.05"``, ``"accuracy gap <= 0.05"``, ``"accuracy >= 0.8 in every group"``,
        ``"recall >= 0.8 in group women"``. `metric` may be the :func:`metricwise.worst_group` value of another metric.
        `Solution.by_group` has the results of every group. Pass a :class:`metricwise.Sensitive` to choose what the rule
        does about rows of groups that are not among these.
    group_aware : bool, default=True
        Whether the rule may use the group of a row. If True, the rule has one loss per group: it is a
        :class:`metricwise.GroupedRule`, whose `predict` takes `sensitive_features`. If False, one rule serves all
        groups; it is found by a local search.
    output_weight : array-like of shape (M,), optional
        Weights of the outputs in the average.
    classes : array-like, or list of M array-likes, optional
        Class labels in column order. None uses the column names of data frames; otherwise the sorted labels in y if
        there are as many as columns; otherwise 0..K-1 if y holds integers from 0 on, 0 among them. Ambiguous cases
        raise an error that asks for `classes`: ratings that start at 1 and lack a value, or ordered categories whose
        order is not their sorted order. It says which column is which class, and nothing about the order of classes.
    order : array-like, or list of M array-likes, optional
        Classes from the lowest to the highest, which ordinal metrics such as "quadratic_kappa" need for text labels:
        ``order=["low", "mid", "high"]``; for several outputs one such list for each, None for those without an order.
        Numbers and dates are ordered by value, an ordered categorical y by its categories. The rule keeps the order,
        and :func:`evaluate` and reports use it.
    pos_label : object, or list of M objects, optional
        Label of the positive class of metrics of one class, such as "f1" and "recall": one for all outputs, or one for
        each. Required unless the labels are 0 and 1, -1 and 1, or False and True; with more than two classes, the
        metric is that of this class against the rest. Must not be given if the metric names another class. A single
        column of probabilities is that of this class.
    missing : scalar, optional
        A code that marks missing labels, in addition to NaN, None, NA and masked entries.
    record : list or dict, optional
        Further metrics to compute for the rule, each in any form that `metric` takes; a dict gives them names. Their
        values are in `Solution.recorded`. They are averaged over outputs as `metric` is, unless their names fix the
        average.
    solver : str or Solver, default="auto"
        "closed_form", "sweep", "path", "dinkelbach", "bisection", "frank_wolfe", "column_generation", "ascent", or a
        solver object; "auto" picks one by the form of the metric. A solver raises an error for a metric whose form it
        cannot handle. A solver given by name raises an error if `tol` or `randomized` is given and it has no such
        setting; a solver object carries its own settings.
    confusion : {"auto", "labels", "expected", "blended"}, default="auto"
        How confusion matrices are counted: with the labels, with the probabilities in place of labels, or with half of
        each.
    recalibrate : {"auto", True, False}, default="auto"
        Whether to first recalibrate the probabilities with a temperature and a bias per class, fitted to the labels;
        "auto" does. If this or `confusion` is "auto", rules are fitted to resamples of the rows (with labels and with
        probabilities, unless `confusion` fixes which), and their average is judged on the rows that the resamples leave
        out: plain argmax is returned if it is no worse, and `Solution.gain` estimates what the rule adds on new rows.
        With more than 20,000 rows, a sample is used to judge the rule, which is fitted to all rows. Fixing both
        parameters switches this off.
    prior : array-like of shape (K,) or (M, K), or list of M arrays, optional
        Class priors of the rows that the rule will be applied to, if they are known to differ from those of the given
        rows.
    randomized : bool, default=False
        Whether to allow a mixture of rules where that beats any single rule; if False, the best single rule is
        returned. With ``solver="auto"`` it may be set for any metric: if a single rule is optimal, it is returned.
    random_state : int, optional
        Seed for folds, resamples, starting points and the draws of a mixture; None means 0, so that equal calls agree.
        A solver object uses its own seed for starting points and draws.
    tol : float, optional
        Tolerance of an iterative solver. With ``solver="auto"`` it may be set for any metric: an exact solver meets any
        tolerance.
    normalize : bool, default=False
        Whether to divide each row of `proba` by its sum, so that scores are accepted.
    zero_division : float, default=0.0
        Value at 0/0 of metrics that are given by name.
    subject_to : str, constraint, or list of these, optional
        Constraints that the rule must satisfy, as metrics with a bound: ``"precision >= 0.9"``, ``"recall[urgent] >= 80
        %"``, ``"0.05 <= share[review] <= 0.1"``, ``"share[fraud] within 0.01 of prior"``. With several outputs,
        ``"recall[topic, urgent] >= 0.8"`` is about the output "topic"; a constraint that names no output is about all
        outputs pooled. Labels that are not plain words must be quoted. To build constraints in code, see
        :func:`metricwise.at_least`. Constraints are counted with the labels if there are any. `Solution.constraints`
        says how each one is met.
    confidence : float or None, default=0.95
        Approximate confidence, on average over data sets, with which all constraints in `subject_to` hold in the
        population that the rows are drawn from, and not only on the given rows: bounds are tightened by as much as this
        requires. None: the constraints hold on the given rows, and on new rows about half of the time.
    abstain : bool or float, optional
        Whether the rule may abstain from deciding about a row. A number is the cost of an abstention, for linear
        metrics: in units of one error for accuracy and its weighted and balanced forms (0.2: abstain if the decision is
        right with a probability below 0.8), in units of the whole scale for ordinal metrics, in units of the cost table
        for costs. True: the metric is computed on the accepted rows, and `subject_to` must bound the share of the
        others, ``"abstained <= 0.05"``; metrics that are not ratios of counts (balanced accuracy, G-mean, kappa,
        macro-F1) count abstentions as misses.
    abstain_label : text, number or boolean, optional
        Label that is predicted for an abstention, which must not be one of the classes; by default "abstain" for text
        classes and -1 for numeric ones.
    cost : array-like of shape (N, K) or (N, K, K), optional
        Costs per row, for ``metric="cost"`` and a single output: ``cost[n, k]`` is the cost of a wrong decision about
        row n if its true class is k, right decisions being free; ``cost[n, i, j]`` is the cost of predicting class j
        for row n if its true class is i. With ``abstain=True`` the shape is (N, K, K + 1), with the cost of abstaining
        in the last column. The rule is a :class:`CostRule`, whose `predict` takes the costs of new rows. For costs that
        are the same in all rows, use ``metric=metrics.Cost(cost)``.
    verbose : bool, optional
        Whether to report progress on standard error if the call takes more than a second. None: on a terminal and in a
        notebook only.

    Returns
    -------
    Solution
        The rule, with its value, the estimated gain over argmax on new rows, and a status in plain sentences.

    See Also
    --------
    evaluate : Value a given rule by several metrics, with intervals.
    trade_off : The best of one metric at every bound on another one.
    MetricOptimalClassifierCV : The same as a scikit-learn estimator, which cross-fits the probabilities.
    load_rule : Read a rule that was saved as JSON.

    Examples
    --------
    >>> import metricwise as mw
    >>> proba = [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.4, 0.3, 0.3], [0.5, 0.1, 0.4]]
    >>> solution = mw.optimize(proba, [1, 2, 2, 3], "quadratic_kappa", confusion="labels", recalibrate=False)
    >>> solution.rule.predict(proba).tolist()
    [1, 2, 2, 2]

    Two outputs, each with its own metric:

    >>> import pandas as pd
    >>> stars = pd.DataFrame(proba, columns=[1, 2, 3])
    >>> spam = pd.DataFrame({0: [0.8, 0.6, 0.9, 0.3], 1: [0.2, 0.4, 0.1, 0.7]})
    >>> y = pd.DataFrame({"stars": [1, 2, 2, 3], "spam": [0, 1, 0, 1]})
    >>> aims = {"stars": "quadratic_kappa", "spam": "f1"}
    >>> solution = mw.optimize([stars, spam], y, aims, confusion="labels", recalibrate=False)
    >>> solution.rule.predict([stars, spam]).tolist()
    [[1, 0], [2, 1], [2, 0], [2, 1]]
    >>> solution.rule.facts["metric"]
    'quadratic_kappa (stars), f1 (spam)'
    """
    if cost is not None:
        refused = {
            "average": average,
            "output_weight": output_weight,
            "record": record,
            "prior": prior,
            "subject_to": subject_to,
            "tol": tol,
            "randomized": randomized or None,
            "solver": None if isinstance(solver, str) and solver == "auto" else solver,
            "confusion": None if confusion == "auto" else confusion,
        }
        refuse_beside_costs(metric, refused)
        # Links, resamples and argmax are those of any problem of these rows, whatever it is judged by.
        problem = read_problem(
            proba,
            y,
            Accuracy(),
            average="micro",
            sample_weight=sample_weight,
            weight_kind=weight_kind,
            groups=groups,
            time=time,
            classes=classes,
            order=order,
            pos_label=pos_label,
            missing=missing,
            normalize=normalize,
        )
        seed, show_progress = _read_seed(random_state), read_verbose(verbose, "optimize")
        priced = with_costs(problem, cost, abstain, abstain_label)
        return _solve_row_costs(*priced, _read_recipe("auto", recalibrate, y), seed, show_progress)
    recipe = _read_recipe(confusion, recalibrate, y)
    seed, show_progress = _read_seed(random_state), read_verbose(verbose, "optimize")
    if not isinstance(randomized, (bool, np.bool_)):
        raise ValueError(f"optimize: randomized must be True or False, got {shown(randomized)}.")
    chosen_solver = _read_solver(solver, Settings(bool(randomized), seed, tol))
    aim, worst = opened(metric)
    problem = read_problem(
        proba,
        y,
        aim,
        average=average,
        sample_weight=sample_weight,
        weight_kind=weight_kind,
        groups=groups,
        time=time,
        output_weight=output_weight,
        classes=classes,
        order=order,
        pos_label=pos_label,
        missing=missing,
        prior=prior,
        normalize=normalize,
        zero_division=zero_division,
        record=record,
        constrained=subject_to is not None,
        abstain=abstain,
        abstain_label=abstain_label,
    )
    problem, task = _read_groups(problem, sensitive_features, group_aware, worst)
    pledge = _read_pledge(subject_to, confidence, problem, task, order is not None, pos_label, zero_division)
    if problem.aim.metric.whole_rows:
        recipe = _read_recipe(_only_labels(problem.aim.metric, confusion, bool(randomized)), recalibrate, y)
    with Progress("optimize", _n_stages(problem, recipe, pledge, task), show_progress) as progress:
        problem.source.passes.listener = progress.tick
        if pledge is not None:
            problem = replace(problem, constraints=pledge.constraints)
            solution = _solve_within(problem, task, recipe, chosen_solver, pledge, seed, progress)
        else:
            solution = _with_groups(problem, task, _solve(problem, recipe, chosen_solver, seed, progress))
    problem.source.passes.listener = None
    return replace(solution, problem=problem)


def _n_stages(
    problem: Problem, recipe: Recipe | list[Recipe] | None, pledge: Pledge | None, task: GroupTask | None
) -> int:
    """Return how many stages there are at most: of the fit, and of that of rows of unknown groups."""
    free = 4 if isinstance(recipe, list) else 1
    if pledge is None:
        return free
    several = isinstance(recipe, list) and len(recipe) > 1
    within = 2 if problem.labelled and (pledge.confidence is not None or several) else 1
    if task is None or not (task.aware and task.unknown == "blind" and task.needed(pledge.constraints)):
        return within
    return within + (within if pledge.without_groups else free)


def _solve(
    problem: Problem, recipe: Recipe | list[Recipe] | None, solver: Solver | Settings, seed: int, progress: Progress
) -> Solution:
    """Choose the recipe, if there are several, fit the rule, and say what the user should know of it."""
    choice, found = None, None
    if isinstance(recipe, list):
        choice = choose(problem, recipe, solver, seed=seed, stage=progress.stage)
        recipe, found = choice.recipe, choice.rule
    progress.stage("fitting all rows")
    facts = {**facts_of(problem), "recipe": str(recipe) if choice is None else choice.name}
    solution = _plain(problem, facts) if recipe is None else fit(problem, recipe, solver, facts, found)
    solution = replace(
        solution, status=_status(solution, problem, choice), recorded=record_rule(problem, solution.rule)
    )
    if choice is None:
        return solution
    judges = choice.judges
    some = judges.schema.n_outputs < problem.schema.n_outputs  # of very many outputs, not all judge
    ranges = None if some else threshold_range(judges, solution.rule)
    return informed(
        replace(
            solution,
            gain=choice.gain,
            value_on_new_rows=choice.value,
            threshold_range=ranges if ranges is None or problem.schema.multioutput else ranges[0],
            candidates=choice.candidates,
        )
    )


def _solve_within(
    problem: Problem,
    task: GroupTask | None,
    recipe: Recipe | list[Recipe] | None,
    solver: Solver | Settings,
    pledge: Pledge,
    seed: int,
    progress: Progress,
) -> Solution:
    """Fit the best rule that keeps promises."""
    if not isinstance(solver, Settings):
        raise ValueError(
            "optimize: solver must be 'auto' if subject_to is given, because constraints have their own solver."
        )
    facts = facts_of(problem)
    recipes = recipe if isinstance(recipe, list) else [recipe or Recipe()]
    if task is not None and task.needed(pledge.constraints):
        found = fit_by_group(problem, task, recipes, solver, pledge, seed=seed, facts=facts, stage=progress.stage)
        if isinstance(found.rule, GroupedRule) and task.unknown != "refuse":
            other = _other_rule(problem, task, recipe, solver, pledge, seed, progress)
            found = replace(found, rule=replace(found.rule, other=other))
        return informed(replace(found, status=_status(found, problem, None)))
    solution = fit_within(problem, recipes, solver, pledge, seed=seed, facts=facts, stage=progress.stage)
    assert not isinstance(solution.rule, GroupedRule)
    solution = replace(solution, status=_status(solution, problem, None), recorded=record_rule(problem, solution.rule))
    return informed(_with_groups(problem, task, solution, pledge.constraints))


def _other_rule(
    problem: Problem,
    task: GroupTask,
    recipe: Recipe | list[Recipe] | None,
    solver: Settings,
    pledge: Pledge,
    seed: int,
    progress: Progress,
) -> WeightedRule | MixtureRule:
    """Return the rule of rows of unknown groups: it abstains, or is fitted to all rows without their groups."""
    if task.unknown == "abstain":
        return abstaining(problem.schema)
    rest = pledge.without_groups
    blind = replace(problem, constraints=rest, aim=replace(problem.aim, name=opened(problem.aim.name)[0]))
    if not rest:
        rule = _solve(blind, recipe, solver, seed, progress).rule
    else:
        recipes = recipe if isinstance(recipe, list) else [recipe or Recipe()]
        rule = fit_within(
            blind, recipes, solver, replace(pledge, constraints=rest), seed=seed, stage=progress.stage
        ).rule
    assert isinstance(rule, (WeightedRule, MixtureRule))
    return replace(rule, facts={})


def _with_groups(
    problem: Problem, task: GroupTask | None, solution: Solution, constraints: Sequence[Constraint] = ()
) -> Solution:
    """Say how groups fare by a rule that was found without a promise about them."""
    if task is None:
        return solution
    assert not isinstance(solution.rule, GroupedRule)
    words = "No constraint is about groups, so one rule decides all of them; by_group has the results of each."
    found = values_by_group(problem, task.groups, solution.rule, constraints)
    return replace(solution, by_group=found, status=f"{solution.status} {words}".strip())


def _solve_row_costs(
    problem: Problem, rule: CostRule, recipe: Recipe | list[Recipe] | None, seed: int, show_progress: bool | None
) -> CostSolution:
    """Fit the rule for costs per row; where several recipes come into question, rows left out judge it."""
    judged = isinstance(recipe, list)
    first = recipe[0] if isinstance(recipe, list) else recipe or Recipe()
    with Progress("optimize", 2 if judged else 1, show_progress) as progress:
        return fit_row_costs(problem, rule, first.recalibrate, judged=judged, seed=seed, stage=progress.stage)


def _plain(problem: Problem, facts: dict[str, Any]) -> Solution:
    """The Solution of plain argmax."""
    read_before = problem.source.passes.entries
    oracle, rule = problem.oracle(), argmax_rule(problem)
    confusion = oracle.confusions([rule.loss])[0]
    by_row = problem.aim.average == "instance"
    value = problem.value_of_rule(rule) if by_row else problem.objective(oracle).value(confusion)
    return Solution(
        rule=replace(rule, facts={**facts, "value": value, "baseline": value}),
        value=value,
        baseline=value,
        confusion=confusion[:, : problem.schema.width],
        optimized_value=value,
        status="",
        outcome=Outcome.ARGMAX,
        n_passes=problem.passes_since(read_before),
        history=(value,),
    )


def read_problem(
    proba: Any,
    y: Any,
    metric: Any,
    *,
    average: str | None = None,
    sample_weight: Any = None,
    weight_kind: Any = "importance",
    groups: Any = None,
    time: Any = None,
    output_weight: Any = None,
    classes: Any = None,
    order: Any = None,
    pos_label: Any = None,
    missing: Any = None,
    prior: Any = None,
    normalize: bool = False,
    zero_division: float = 0.0,
    record: RecordSpec = None,
    constrained: bool = False,
    abstain: Any = None,
    abstain_label: Any = None,
    who: str = "optimize",
) -> Problem:
    """Read and check everything but the recipe and constraints, of which it is enough to know whether there are any."""
    warn_of_order(who, 3, proba=proba, y=y, sample_weight=sample_weight)
    data, source = read_source(
        proba,
        y,
        classes=classes,
        order=order,
        missing=missing,
        normalize=normalize,
        sample_weight=sample_weight,
        weight_kind=weight_kind,
        groups=groups,
        time=time,
        pos_label=text_class(metric) if pos_label is None else pos_label,
        who=who,
    )
    rows, schema = data.rows, data.schema
    names = schema.classes
    if not (_is_number(zero_division) and 0 <= zero_division <= 1):
        raise ValueError(f"{who}: zero_division must be a number in [0, 1], got {shown(zero_division)}.")
    resolved = to_maximise(
        resolve_for(
            metric,
            names,
            several=schema.multioutput,
            average=average,
            zero_division=zero_division,
            pos_label=pos_label,
            # It may be that of a constraint, or of a single column: there a metric need not want it, but must not
            # name another.
            wanted_only=constrained or (schema.single and class_named(metric) in (None, pos_label)),
            scales=schema.order,
            outputs=schema.output_names,
            who=who,
        )
    )
    resolved, note = _by_values(resolved, names, source)
    recorded = resolve_record(
        record, target_kind(schema.width, schema.multioutput), resolved, zero_division, pos_label, who
    )
    recorded = {name: settle(one, names, scales=schema.order) for name, one in recorded.items()}
    if order is not None:
        for one in (resolved, *recorded.values()):
            check_order_agrees(one.metric, schema.order, names, who)
    if schema.single and pos_label is not None:
        _check_column_class(pos_label, names, who)
    if resolved.metric.degenerate and not constrained:
        warnings.warn(f"{who}: {resolved.metric.degenerate}", UserWarning, stacklevel=3)
    allowed = read_abstention(abstain, abstain_label, schema, resolved, who)
    if allowed is not None:
        schema = replace(schema, abstain_label=read_abstain_label(abstain_label, names, who))
    alpha = read_output_weight(output_weight, schema.n_outputs, who)
    positive = positive_places(resolved.metric, names) if resolved.support_weighted else None

    def aim_of(one: Resolved, main: bool = False) -> Aim:
        check_whole_rows(
            one.metric,
            who,
            sample_weight=rows.weight,
            output_weight=alpha,
            average=one.average,
            prior=prior,
            labelled=rows.codes is not None,
        )
        metric = one.metric
        if allowed is not None:
            metric = allowed.aim(metric) if main else allowed.beside(metric, resolved.metric)
            allowed.check(metric, names)
        own_note = note if main else ""
        return Aim(metric, one.average, alpha, one.support_weighted, positive, one.name, note=own_note)

    shares = None if prior is None else read_prior(prior, schema.n_classes, who)
    record_of = {name: aim_of(one) for name, one in recorded.items()}
    problem = Problem(source.described(schema), aim_of(resolved, main=True), shares, record_of, allowed)
    _check_observed(problem, who)
    if source.labelled and not isinstance(y, Labels):  # an estimator has assigned columns by its classes
        some = rows if isinstance(source, MemorySource) else source.glance(_DOUBTED_ROWS)
        assert some.codes is not None
        warn_of_assignment(some.proba, some.codes, names, who, schema.column_order)
    return problem if time is None else _in_time(problem, time)


def _in_time(problem: Problem, time: Any) -> Problem:
    """Return the problem whose rows belong together by stretches of time."""
    source = problem.source
    assert isinstance(source, MemorySource)  # others refuse time
    judged = InMemory(source, problem.aim, problem.prior, allowed=problem.allowed)
    return replace(problem, source=in_stretches(source, [judged], in_time(time).length))


def _by_values(resolved: Resolved, classes: tuple[NDArray[Any], ...], source: Any) -> tuple[Resolved, str]:
    """Return the metric of ours that a function of labels is by its values, and a sentence that says so."""
    metric = resolved.metric
    if not (metric.costly and source.labelled and same_classes(classes)):
        return resolved, ""
    known = metric_of_values(metric, python_labels(classes[0]), source.class_rows.sum(axis=0))
    if known is None:
        return resolved, ""
    note = f"The function equals {known.name} at {N_PROBES} confusion matrices and was optimised as {known.name}."
    return replace(resolved, metric=known, name=known.name), note


def read_abstention(
    abstain: Any, abstain_label: Any, schema: Schema, resolved: Resolved, who: str
) -> Abstention | None:
    """Read whether a rule may abstain, and refuse what then has no meaning."""
    allowed = read_abstain(abstain, who)
    if allowed is None:
        if abstain_label is not None:
            raise ValueError(
                f"{who}: abstain_label is only for rules that may abstain; pass abstain=True or the cost of an "
                "abstention as well."
            )
        return None
    check_pooled(resolved.average, schema.n_classes, who)
    read_abstain_label(abstain_label, schema.classes, who)
    return allowed


def _read_groups(
    problem: Problem, sensitive_features: Any, group_aware: Any, worst: bool
) -> tuple[Problem, GroupTask | None]:
    """Read the sensitive groups of rows, and what is asked of them."""
    if not isinstance(group_aware, (bool, np.bool_)):
        raise ValueError(f"optimize: group_aware must be True or False, got {shown(group_aware)}.")
    if sensitive_features is None:
        if worst or not group_aware:
            asked = "the metric is that of the worst group" if worst else "group_aware is False"
            raise ValueError(f"optimize: {asked}, so sensitive_features must give the group of every row, got None.")
        return problem, None
    if problem.prior is not None:
        raise ValueError(
            "optimize: prior and sensitive_features cannot both be given, because it is not known how the "
            "class priors of each group shift; leave one of them out."
        )
    if worst and problem.aim.average == "macro":
        raise ValueError(
            "optimize: average must be 'micro' for the worst group's value, which pools outputs, got 'macro'."
        )
    sensitive = Sensitive.of(sensitive_features)
    sensitive.check(group_aware=bool(group_aware), may_abstain=problem.allowed is not None, who="optimize")
    read = read_sensitive_features(sensitive, problem.n_rows, "optimize")
    aim = replace(problem.aim, name=f"worst_group({problem.aim.name})") if worst else problem.aim

    def with_group(rows: Any) -> Any:
        return replace(rows, group=read.codes[rows.start : rows.start + rows.n_rows])

    problem = replace(problem, source=problem.source.map(with_group), aim=aim)
    return problem, GroupTask(read.groups, bool(group_aware), worst, sensitive.unknown)


def _check_column_class(pos_label: Any, classes: Sequence[NDArray[Any]], who: str) -> None:
    """Refuse the class of a single column that is none of any output."""
    for m, label in enumerate(positive_labels(pos_label, len(classes), who)):
        own = isinstance(pos_label, (list, tuple)) or len(classes) == 1
        known = [python_labels(labels) for labels in (classes[m : m + 1] if own else classes)]
        if label is not None and not any(label in labels for labels in known):
            raise ValueError(f"{who}: pos_label must be one of the classes {known[0]}, got {shown(label)}.")


def _check_observed(problem: Problem, who: str) -> None:
    """Refuse weights that leave no observed label."""
    if not problem.labelled:
        return
    seen = problem.source.class_weights > 0
    if not seen[problem.aim.output_weight > 0].any():
        raise ValueError(f"{who}: no observed label has a positive weight; check sample_weight and output_weight.")
    if problem.schema.n_outputs == 1 and seen.sum() < 2:
        raise ValueError(
            f"{who}: sample_weight must be positive for rows of at least two classes, got only one such class."
        )


def _read_recipe(confusion: Any, recalibrate: Any, y: Any) -> Recipe | list[Recipe] | None:
    """Return the one recipe that the arguments fix, or the candidates that they leave, the default first."""
    if not isinstance(confusion, str) or confusion not in ("auto", "labels", "expected", "blended"):
        raise ValueError(
            f"optimize: confusion must be 'auto', 'labels', 'expected' or 'blended', got {shown(confusion)}."
        )
    if not (isinstance(recalibrate, (bool, np.bool_)) or (isinstance(recalibrate, str) and recalibrate == "auto")):
        raise ValueError(f"optimize: recalibrate must be 'auto', True or False, got {shown(recalibrate)}.")
    if y is None:
        if confusion in ("labels", "blended"):
            raise ValueError(f"optimize: confusion={confusion!r} needs y; without labels use 'expected' or 'auto'.")
        if recalibrate is True:
            raise ValueError("optimize: recalibrate=True needs y; without labels use False or 'auto'.")
        return Recipe("expected")
    if confusion != "auto" and recalibrate != "auto":
        return Recipe(confusion, bool(recalibrate))  # type: ignore[arg-type]  # checked above
    if confusion != "auto":
        return [Recipe(confusion, recalibrate=True)]  # type: ignore[arg-type]  # checked above
    return [replace(recipe, recalibrate=bool(recalibrate)) for recipe in candidates()]


def _read_pledge(
    subject_to: Any,
    confidence: Any,
    problem: Problem,
    task: GroupTask | None,
    ordered: bool,
    pos_label: Any,
    zero_division: float,
) -> Pledge | None:
    """Return what the rule is to keep, None where nothing is that takes a programme."""
    if confidence is not None and not (_is_number(confidence) and 0.5 <= confidence < 1):
        raise ValueError(f"optimize: confidence must be a number in [0.5, 1) or None, got {shown(confidence)}.")
    wanted = read_constraints(subject_to)
    check_bounded(wanted, problem.allowed, problem.aim.metric, "optimize")
    if not wanted and (task is None or not task.worst):
        return None
    if problem.aim.metric.whole_rows:
        raise ValueError(
            "optimize: subject_to needs a metric that is a function of the confusion matrix, but "
            f"{problem.aim.metric.name} takes no sample_weight and can only be evaluated on whole rows; add a "
            "parameter sample_weight to the function."
        )
    names = None if task is None else task.groups.names
    constraints = read_limits(
        wanted,
        problem.schema,
        ordered=ordered,
        pos_label=pos_label,
        zero_division=zero_division,
        allowed=problem.allowed,
        aim=problem.aim.metric,
        groups=names,
    )
    apart = task is not None and task.needed(constraints)
    check_shown(constraints, problem.by_group(task.n_groups, aware=True) if apart and task else problem, names)
    return Pledge(constraints, None if confidence is None else float(confidence))


def _only_labels(metric: Metric, confusion: str, randomized: bool) -> str:
    """Return how to count for a metric of whole rows."""
    metric = next(own for own in metric.each if own.whole_rows)
    said = f"optimize: {metric.name} takes no sample_weight, so it can only be evaluated on whole rows with labels"
    remedy = "add a parameter sample_weight to the function"
    if confusion not in ("auto", "labels"):
        raise ValueError(
            f"{said}, but confusion={confusion!r} counts fractions of rows; {remedy}, or use confusion='labels'."
        )
    if randomized:
        raise ValueError(f"{said}, but a mixture of rules counts fractions of rows; {remedy}, or use randomized=False.")
    return "labels"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))


def _read_seed(random_state: Any) -> int:
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    raise ValueError(f"optimize: random_state must be None or a non-negative integer, got {shown(random_state)}.")


def _read_solver(solver: str | Solver, settings: Settings) -> Solver | Settings:
    if settings.tol is not None and not (_is_number(settings.tol) and 0 < settings.tol < np.inf):
        raise ValueError(f"optimize: tol must be a positive number, got {shown(settings.tol)}.")
    if not isinstance(solver, str):
        if isinstance(solver, type) or not hasattr(solver, "solve"):
            got = f"the class {solver.__name__}" if isinstance(solver, type) else type(solver).__name__
            raise TypeError(f"optimize: solver must be a name or a solver such as solvers.Path(), got {got}.")
        _refuse_settings(type(solver).__name__, settings)
        return solver
    if solver == "auto":
        return settings
    if solver not in SOLVERS:
        raise ValueError(f"optimize: solver must be 'auto' or one of {sorted(SOLVERS)}, got {solver!r}.")
    # False and the seed, which is also that of folds and resamples, ask for nothing that a solver might lack.
    asked = {"tol": settings.tol, "randomized": settings.randomized or None}
    seed = {"seed": settings.seed} if "seed" in SOLVERS[solver].settings() else {}
    try:
        return make_solver(solver, **asked, **seed)
    except ValueError as error:
        raise ValueError(f"optimize: {error} Leave it out, or use solver='auto'.") from None


def _refuse_settings(name: str, settings: Settings) -> None:
    """Refuse settings beside a solver object, which has its own."""
    for key, given in (("tol", settings.tol), ("randomized", settings.randomized or None)):
        if given is not None:
            raise ValueError(
                f"optimize: {key} must be left out if solver is an object, which carries its own settings, got "
                f"{key}={given!r} and a {name}; pass it to the solver instead, if the solver takes it."
            )


def _status(solution: Solution, problem: Problem, choice: Choice | None) -> str:
    """Say what else the user should know."""
    words = [part for part in (solution.status, choice.words() if choice else "") if part]
    if problem.aim.note:
        words.append(problem.aim.note)
    if problem.aim.average == "instance":
        words.append("The instance-average is optimised through its surrogate, the micro-average.")
    kept = np.flatnonzero(problem.keeps_argmax)
    if len(kept):
        listing = ", ".join(map(str, kept[:10])) + (", ..." if len(kept) > 10 else "")
        words.append(f"Outputs without labels or with only one class keep plain argmax: {listing}.")
    if solution.value < solution.baseline - 1e-12 and not solution.constraints:  # not by rounding alone
        words.append("Plain argmax does better on these rows: try recalibrate=True.")
    if problem.dependence is not None and problem.labelled:
        words.append(problem.dependence.words())
    source = problem.source
    if isinstance(source, MemorySource) and source.n_rows >= _SUSPICIOUS_ROWS and source.rows.all_right():
        words.append(
            "The most probable class is right in every row: are these rows that the model was trained on? Use "
            "out-of-fold probabilities, such as those of cross_val_predict."
        )
    return " ".join(words)
