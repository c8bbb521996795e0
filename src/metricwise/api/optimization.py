"""``optimize``: probabilities and a metric in, the best rule out.

Opens the rows, reads the goal, and passes the task to the driver. Must not know algorithms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from ..core.errors import InvalidParameter, argument, entry_point, mention, refuses_removed
from ..core.progress import Progress, read_verbose
from ..data.keeping import keeping_rows
from ..data.labels import Labels
from ..data.row_spec import Frequencies, InTime, RowSpec
from ..fitting.driver import fit_task, n_stages
from ..fitting.solving import FitTask, Settings
from ..fitting.strategy import Strategy
from ..goals.for_outputs import MetricSpec
from ..goals.labels import is_of_labels
from ..goals.recording import RecordSpec
from ..goals.spec import Goal, GoalSpec
from ..metrics.abstention import Abstention, read_abstain
from ..metrics.linear import Accuracy
from .problems import check_constraints, make_problem, open_problem, open_source, read_seed, read_unlabelled
from .results import Solution

__all__ = ["find_rule", "optimize"]


@refuses_removed("optimize")
@entry_point("optimize")
def optimize(
    proba: Any,
    y: ArrayLike | Labels | None,
    metric: MetricSpec,
    *,
    average: str | None = None,
    output_weight: ArrayLike | None = None,
    pos_label: Any = None,
    order: Any = None,
    classes: Any = None,
    input: str = "probabilities",
    sample_weight: ArrayLike | Frequencies | None = None,
    groups: ArrayLike | InTime | None = None,
    sensitive_features: Any = None,
    segments: Any = None,
    cost: ArrayLike | None = None,
    subject_to: Any = None,
    confidence: float | None = 0.95,
    guarantee: str | None = None,
    unlabelled: Any = None,
    abstain: bool | float | Abstention | None = None,
    prior: ArrayLike | None = None,
    labels_per_row: int | tuple[int, int] | None = None,
    record: RecordSpec = None,
    strategy: Strategy | None = None,
    random_state: int | None = None,
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
        are read in batches: pass a :class:`metricwise.Table`, or a path that it accepts. Data frames of Spark are read
        by its executors; their columns are named as those of tables. A sparse array (CSR) of shape (N, M), or a list of
        such pieces, has multilabel probabilities, with 0 for what is not stored; so has a :class:`metricwise.Table`
        whose rows hold lists of labels. See :doc:`/many_labels`.
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
    output_weight : array-like of shape (M,), optional
        Weights of the outputs in the average.
    pos_label : object, or list of M objects, optional
        Label of the positive class of metrics of one class, such as "f1" and "recall": one for all outputs, or one for
        each. Required unless the labels are 0 and 1, -1 and 1, or False and True; with more than two classes, the
        metric is that of this class against the rest. Must not be given if the metric names another class. A single
        column of probabilities is that of this class.
    order : array-like, or list of M array-likes, optional
        Classes from the lowest to the highest, which ordinal metrics such as "quadratic_kappa" need for text labels:
        ``order=["low", "mid", "high"]``; for several outputs one such list for each, None for those without an order.
        Numbers and dates are ordered by value, an ordered categorical y by its categories. The rule keeps the order,
        and :func:`evaluate` and reports use it.
    classes : array-like, or list of M array-likes, optional
        Class labels in column order. None uses the column names of data frames; otherwise the sorted labels in y if
        there are as many as columns; otherwise 0..K-1 if y holds integers from 0 on, 0 among them. Ambiguous cases
        raise an error that asks for `classes`: ratings that start at 1 and lack a value, or ordered categories whose
        order is not their sorted order. It says which column is which class, and nothing about the order of classes.
    input : {"probabilities", "logits", "log_proba", "scores"}, default="probabilities"
        What the numbers in `proba` are. "logits": (N, K) before a softmax, (N,) or (N, M) before a sigmoid.
        "log_proba": logarithms of the probabilities of all classes. "scores": real numbers of any scale where larger
        means more of the class, such as margins or cosines, which need labels: (N,) binary, (N, M) multilabel, (N, K)
        one for each class; with more than two ordered classes, (N,) scores become grades by cut points. Nothing is lost
        where probabilities round to 0 or 1, and thresholds of the rule are in the unit of these numbers. See
        :doc:`/scores`.
    sample_weight : array-like of shape (N,), or Frequencies, optional
        Sample weights: how much a row matters. Weights that say how many rows a row stands for are passed as a
        :class:`metricwise.Frequencies`: the rule is the same either way; the standard errors of estimates for new rows
        differ.
    groups : array-like of shape (N,), or InTime, optional
        Group labels of rows that belong together, such as the rows of one patient: a rule is never judged on rows of a
        group that it was fitted to. Exact duplicates of rows are detected without it. For rows in time, pass a
        :class:`metricwise.InTime`: neighbours in time belong together, and rules are judged on periods that they were
        not fitted to. With a half-life, old rows count less.
    sensitive_features : array-like of shape (N,) or (N, F), or Sensitive, optional
        The sensitive group of every row, by name or number; several columns are combined. `subject_to` may then
        constrain groups: ``"demographic_parity <= 0.05"``, ``"equal_opportunity <= 0.05"``, ``"equalized_odds <=
        0.05"``, ``"predictive_parity <= 0.05"``, ``"accuracy gap <= 0.05"``, ``"accuracy >= 0.8 in every group"``,
        ``"recall >= 0.8 in group women"``. `metric` may be the :func:`metricwise.worst_group` value of another metric.
        `Solution.by_group` has the results of every group. Pass a :class:`metricwise.Sensitive` to choose whether
        the rule may use the group of a row, and what it does about rows of groups that are not among these. For a
        :class:`metricwise.Table`, the name of a column or a list of names.
    segments : array-like of shape (N,) or (N, F), optional
        The segment of every row, such as its country or device; several columns are combined, and missing values are
        allowed. Every segment gets a calibration of its own, shrunk towards that of all rows by as much as rows left
        out ask for, in front of common losses; if they ask for no difference, the rule is the one without segments.
        The metric and `subject_to` are about all rows together. The rule is a :class:`SegmentedRule`, whose `predict`
        takes `segments`; segments that it was not fitted to have the rule of all rows. See :doc:`/segments`.
    cost : array-like of shape (N, K) or (N, K, K), optional
        Costs per row, for ``metric="cost"`` and a single output: ``cost[n, k]`` is the cost of a wrong decision about
        row n if its true class is k, right decisions being free; ``cost[n, i, j]`` is the cost of predicting class j
        for row n if its true class is i. With ``abstain=True`` the shape is (N, K, K + 1), with the cost of abstaining
        in the last column. The rule is a :class:`CostRule`, whose `predict` takes the costs of new rows. For costs that
        are the same in all rows, use ``metric=metrics.Cost(cost)``.
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
    guarantee : {"exact"}, optional
        "exact": the constraints hold in the population with at least the probability `confidence`, for any distribution
        of independent rows, provided that the model has not seen them: pass probabilities of held-out rows, not of
        cross-validation. For constraints on proportions of rows: precisions, recalls, accuracy, false positive rates,
        shares, abstentions, the smallest recall. If no rule can be guaranteed, an error says how many rows may be
        enough. None: the confidence is approximate. See :doc:`/floors`.
    unlabelled : array-like, optional
        With `guarantee`: numbers of *other* rows, in arrays of the form of `proba`, whose labels need not be known,
        such as those of the training rows or of rows to come. They place the thresholds that are tested; without them,
        a random tenth of the rows does, whose labels are not used.
    abstain : bool, float or Abstention, optional
        Whether the rule may abstain from deciding about a row. A number is the cost of an abstention, for linear
        metrics: in units of one error for accuracy and its weighted and balanced forms (0.2: abstain if the decision is
        right with a probability below 0.8), in units of the whole scale for ordinal metrics, in units of the cost table
        for costs. True: the metric is computed on the accepted rows, and `subject_to` must bound the share of the
        others, ``"abstained <= 0.05"``; metrics that are not ratios of counts (balanced accuracy, G-mean, kappa,
        macro-F1) count abstentions as misses. ``metric="coverage"`` with a bound on another metric decides as
        many rows as possible. A :class:`metricwise.Abstention` has the label of abstentions besides.
    prior : array-like of shape (K,) or (M, K), list of M arrays, dict or ShareEstimate, optional
        Class priors of the rows that the rule will be applied to, if they are known to differ from those of the given
        rows: in the order of the rule's classes, a dict by class, or the result of :func:`estimate_shares`. Priors are
        not used for functions of recalls, whose best rule does not depend on them.
    labels_per_row : int or (int, int), optional
        For binary outputs, how many labels a row may have: 3 is at most 3, ``(1, 3)`` at least 1 and at most 3,
        ``(3, 3)`` exactly 3. Labels of a row then compete; see :doc:`/many_labels`. "precision@3" and "recall@3" set it
        to ``(3, 3)`` unless it is given.
    record : list or dict, optional
        Further metrics to compute for the rule, each in any form that `metric` takes; a dict gives them names. Their
        values are in `Solution.recorded`. They are averaged over outputs as `metric` is, unless their names fix the
        average.
    strategy : Strategy, optional
        How the rule is looked for: what is counted, whether probabilities are recalibrated, the solver and its
        settings; see :class:`metricwise.Strategy`. By default everything is chosen.
    random_state : int, optional
        Seed for folds, resamples, starting points and the draws of a mixture; None means 0, so that equal calls agree.
        A solver object uses its own seed for starting points and draws.
    verbose : bool, optional
        Whether to report progress on standard error if the call takes more than a second. None: on a terminal and in a
        notebook only.

    Returns
    -------
    Solution
        The rule, with its value, the estimated gain over argmax on new rows, and a status in plain sentences.

    See Also
    --------
    Strategy : How the rule is looked for.
    evaluate : Value a given rule by several metrics, with intervals.
    trade_off : The best of one metric at every bound on another one.
    MetricOptimalClassifierCV : The same as a scikit-learn estimator, which cross-fits the probabilities.
    load_rule : Read a rule that was saved as JSON.

    Examples
    --------
    >>> import metricwise as mw
    >>> proba = [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.4, 0.3, 0.3], [0.5, 0.1, 0.4]]
    >>> fixed = mw.Strategy(confusion="labels", recalibrate=False)
    >>> solution = mw.optimize(proba, [1, 2, 2, 3], "quadratic_kappa", strategy=fixed)
    >>> solution.rule.predict(proba).tolist()
    [1, 2, 2, 2]

    Two outputs, each with its own metric:

    >>> import pandas as pd
    >>> stars = pd.DataFrame(proba, columns=[1, 2, 3])
    >>> spam = pd.DataFrame({0: [0.8, 0.6, 0.9, 0.3], 1: [0.2, 0.4, 0.1, 0.7]})
    >>> y = pd.DataFrame({"stars": [1, 2, 2, 3], "spam": [0, 1, 0, 1]})
    >>> aims = {"stars": "quadratic_kappa", "spam": "f1"}
    >>> solution = mw.optimize([stars, spam], y, aims, strategy=fixed)
    >>> solution.rule.predict([stars, spam]).tolist()
    [[1, 0], [2, 1], [2, 0], [2, 1]]
    >>> solution.rule.metadata.metric
    'quadratic_kappa (stars), f1 (spam)'
    """
    rows = RowSpec(
        proba,
        y,
        sample_weight,
        groups,
        sensitive_features,
        cost,
        classes,
        order,
        pos_label,
        input=input,
        unlabelled=unlabelled,
        segments=segments,
    )
    goal = GoalSpec(
        metric,
        average,
        pos_label,
        output_weight,
        record,
        subject_to,
        confidence,
        guarantee,
        abstain,
        prior,
        order,
        labels_per_row=labels_per_row,
    )
    return find_rule(rows, goal, Strategy.of(strategy), read_seed(random_state), read_verbose(verbose))


@keeping_rows
def find_rule(
    rows: RowSpec, goal: GoalSpec | Goal, strategy: Strategy, seed: int, show_progress: bool | None
) -> Solution:
    """Find the rule for rows, a goal, which may have been read for them already, and a strategy."""
    if is_of_labels(rows, goal):
        from .label_rules import find_label_rule

        assert isinstance(goal, GoalSpec)
        return find_label_rule(rows, goal, strategy, seed, show_progress)
    by_costs = isinstance(goal, GoalSpec) and rows.cost is not None
    task = _cost_task(rows, goal, strategy, seed) if by_costs else _task(rows, goal, strategy, seed)
    passes = task.problem.source.passes
    with Progress("optimize", n_stages(task), show_progress) as progress:
        passes.listener = progress.tick
        fitted = fit_task(replace(task, stage=progress.stage))
    passes.listener = None
    return Solution(**vars(fitted), problem=task.problem)


def _task(rows: RowSpec, goal: GoalSpec | Goal, strategy: Strategy, seed: int) -> FitTask:
    """Return the task of rows and a goal."""
    solver = strategy.make_solver(seed)
    if isinstance(goal, GoalSpec):
        rows = rows.with_class(goal.column_class)
        problem, groups, goal = open_problem(rows, goal)
    else:
        problem, groups = make_problem(rows, *open_source(rows), goal)
    recipes = strategy.recipes(problem.labelled, problem.aim.metric)
    unlabelled = read_unlabelled(rows, problem, goal)
    segments = None
    if rows.segments is not None:
        groups, segments = None, groups
        _check_recalibrated(strategy)
    task = FitTask(
        problem, goal, recipes, solver, seed, groups, rows.sensitive, unlabelled=unlabelled, segments=segments
    )
    check_constraints(task)
    return task


def _check_recalibrated(strategy: Strategy) -> None:
    """Refuse segments without recalibration, which is all that tells them apart."""
    if strategy.recalibrate is False:
        raise InvalidParameter(
            "recalibrate",
            problem=f"{argument('recalibrate', False)} cannot be combined with {mention('segments')}, which are "
            "recalibrated each by itself",
            remedy="leave one of them out",
        )


def _cost_task(rows: RowSpec, spec: GoalSpec | Goal, strategy: Strategy, seed: int) -> FitTask:
    """Return the task of rows with costs, which are no function of a confusion matrix."""
    from ..fitting.example_costs import refuse_beside_costs, with_costs

    assert isinstance(spec, GoalSpec)
    if rows.segments is not None:
        raise InvalidParameter(
            "segments",
            problem=f"{mention('segments')} and {mention('cost')} cannot both be given",
            remedy="leave one of them out",
        )
    settings = {name: value for name, value in strategy.get_params().items() if name != "recalibrate"}
    defaults = Strategy().get_params()
    refuse_beside_costs(
        spec.metric,
        {name: getattr(spec, name) for name in ("average", "output_weight", "record", "prior", "subject_to")}
        | {name: None if value == defaults[name] else value for name, value in settings.items()},
    )
    # Links, resamples and argmax do not depend on the metric.
    accuracy = GoalSpec(Accuracy(), "micro", spec.pos_label, order=spec.order)
    problem, _, goal = open_problem(replace(rows, sensitive_features=None), accuracy)
    problem, rule = with_costs(problem, rows.cost, read_abstain(spec.abstain))
    recipes = strategy.recipes(problem.labelled, problem.aim.metric)
    return FitTask(problem, goal, recipes, Settings(), seed, cost_rule=rule)
