"""From user input to a rule for very many labels: sparse probabilities, or a number of labels per row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._version import __version__
from ..core.errors import InvalidParameter, InvalidType, argument, listed, mention, shown
from ..core.inputs import Input
from ..core.label_rows import LabelRows
from ..core.label_sets import LabelSets
from ..core.labels import python_labels
from ..core.progress import Progress
from ..core.schema import Schema
from ..data.frames import as_array, column_names, has_lists, is_frame, is_table
from ..data.label_rows import is_in_pieces, is_sparse, join_pieces, read_label_rows, read_label_targets
from ..data.open import open_rows
from ..data.row_spec import RowSpec
from ..data.tables.label_lists import load_list_table
from ..data.weights import read_groups, read_row_weight
from ..fitting.label_frontier import LabelFrontier, trace_labels
from ..fitting.label_route import LabelTask, default_label_recipes, fit_label_task, value_of_fit
from ..fitting.labels import LabelProblem, baseline_fit
from ..fitting.strategy import Strategy
from ..goals.labels import LabelConstraint, LabelGoal, read_label_goal
from ..goals.spec import GoalSpec
from ..oracles.problem import FitStrategy
from ..rules.label_base import positive_numbers
from ..rules.metadata import RuleMetadata
from .frontier import TradeOff
from .results import Solution

__all__ = [
    "find_label_rule",
    "label_recipes",
    "load_rows",
    "open_label_problem",
    "open_labels",
    "refuse_rows",
    "trace_label_rules",
]

_PAIRS: tuple[list[Any], ...] = ([0, 1], [False, True])


def load_rows(rows: RowSpec) -> tuple[RowSpec, tuple[str, ...] | None]:
    """Return rows whose probabilities are sparse or of shape (N, M), in memory, and the names of the labels."""
    refuse_rows(rows)
    if has_lists(rows.proba):
        return load_list_table(rows), None
    if is_table(rows.proba, rows.y) or _has_both_classes(rows.proba):
        return _load_outputs(rows)
    named = next((table for table in (rows.proba, rows.y) if is_frame(table)), None)
    return rows, None if named is None else tuple(map(str, column_names(named)))


def _has_both_classes(proba: Any) -> bool:
    """Whether probabilities have a column for either class of each output."""
    listed = isinstance(proba, (list, tuple)) and len(proba) > 0 and len(np.shape(proba[0])) == 2
    return (listed and not is_in_pieces(proba)) or len(getattr(proba, "shape", ())) == 3


def _load_outputs(rows: RowSpec) -> tuple[RowSpec, tuple[str, ...] | None]:
    """Return the rows of a table, or of outputs with two columns, with probabilities and labels of shape (N, M)."""
    schema, source = open_rows(rows)
    pairs = [python_labels(labels) for labels in schema.classes]
    if not schema.multioutput or any(pair not in _PAIRS for pair in pairs):
        wrong = next((pair for pair in pairs if pair not in _PAIRS), None)
        got = "a single output" if wrong is None else f"the classes {listed(wrong)}"
        raise InvalidParameter(
            "y",
            f"have a column of 0 and 1, or of False and True, for each label, with {mention('labels_per_row')}",
            got,
        )
    read = source.take(np.arange(source.n_rows))
    y = None
    if read.codes is not None:
        codes = read.codes
        y = codes == 1 if isinstance(pairs[0][0], bool) else codes
        y = np.ma.masked_array(y, codes < 0) if (codes < 0).any() else y
    arrays = replace(
        rows, proba=positive_numbers(read.proba), y=y, sample_weight=read.weight, groups=read.cluster, classes=None
    )
    return arrays, schema.output_names


def open_labels(rows: RowSpec, names: tuple[str, ...] | None = None) -> tuple[LabelRows, LabelSets | None, Schema]:
    """Read probabilities and labels that are in memory, and what is known of the labels."""
    proba, y = join_pieces(rows.proba, "proba"), join_pieces(rows.y, "y")
    kind = Input.of(rows.input).kind
    read = read_label_rows(proba, kind=kind)
    if kind == "probabilities":
        read = read.without_zeros()
    weight = read_row_weight(rows, read.n_rows)
    read = read if weight is None else replace(read, weight=weight)
    targets = None
    if y is not None:
        _check_columns(y, names)
        targets = read_label_targets(y, read.n_rows, read.n_labels)
    elif kind == "scores":
        raise InvalidParameter(
            "y",
            f"be given if {argument('input', 'scores')}, because scores have no scale but that which labels show",
            "None",
            f"pass labels, or logits with {argument('input', 'logits')}",
        )
    pair = np.array([False, True]) if _is_boolean(y) else np.array([0, 1])
    schema = Schema((pair,) * read.n_labels, multioutput=True, output_names=names, input=Input.of(rows.input))
    return read, targets, schema


def _is_boolean(y: Any) -> bool:
    return not is_sparse(y) and y is not None and as_array(y).dtype.kind == "b"


def _check_columns(y: Any, names: tuple[str, ...] | None) -> None:
    """Refuse labels whose columns are named otherwise than the probabilities, or in another order."""
    if names is None or not is_frame(y) or tuple(map(str, column_names(y))) == names:
        return
    raise InvalidParameter(
        "y",
        "have the columns of proba, in the same order, with labels_per_row",
        shown(list(map(str, column_names(y)))),
        "select y[proba.columns]",
    )


def refuse_rows(rows: RowSpec) -> None:
    """Refuse arguments about rows that rules for very many labels do not take."""
    what = f"sparse probabilities or {mention('labels_per_row')}"
    _check_classes(rows.classes)
    for parameter, value in (
        ("sensitive_features", rows.sensitive_features),
        ("segments", rows.segments),
        ("cost", rows.cost),
        ("order", rows.order),
    ):
        if value is not None:
            raise InvalidParameter(parameter, f"be left out with {what}", shown(type(value).__name__))
    if rows.time is not None:
        raise InvalidParameter("groups", f"not be an InTime with {what}", "InTime", "pass the period of each row")
    if rows.counts_rows:
        raise InvalidParameter("sample_weight", f"not be Frequencies with {what}", "Frequencies", "repeat the rows")
    if getattr(rows.y, "ndim", 2) != 2 and not isinstance(rows.y, str):
        raise InvalidType(
            "y",
            f"be an indicator matrix of shape (N, M), a column for each label, with {what}",
            f"shape {rows.y.shape}",
            f"pass {mention('proba')}.toarray() if there is one output",
        )


def _check_classes(classes: Any) -> None:
    """Refuse classes other than those that all labels have, which need not be said."""
    if classes is None:
        return
    what = f"sparse probabilities or {mention('labels_per_row')}"
    if not isinstance(classes, (list, tuple)) or not all(isinstance(pair, list) for pair in classes):
        raise InvalidParameter("classes", f"be left out with {what}", shown(type(classes).__name__))
    wrong = [pair for pair in classes if pair not in _PAIRS]
    if wrong:
        raise InvalidParameter(
            "y",
            f"be 0 or 1, or False or True, for every label with {what}",
            f"the classes {shown(wrong[0])}",
        )


def open_label_problem(rows: RowSpec, spec: GoalSpec) -> tuple[LabelProblem, LabelGoal]:
    """Open rows of very many labels and read the goal for them."""
    rows, names = load_rows(rows)
    read, targets, schema = open_labels(rows, names)
    goal = read_label_goal(spec, schema, targets, read.weight)
    clusters = None if rows.clusters is None else read_groups(rows.clusters, read.n_rows).astype(np.int64)
    problem = LabelProblem(read, schema, targets, goal.aim, goal.budget, goal.record, clusters)
    return problem, goal


def label_recipes(strategy: Strategy, problem: LabelProblem) -> FitStrategy | list[FitStrategy]:
    """Return the recipe that is fixed, or the candidates that are left."""
    for name, default in (("solver", "auto"), ("tol", None), ("randomized", False)):
        if getattr(strategy, name) != default:
            raise InvalidParameter(
                "strategy",
                f"leave {mention(name)} at its default with sparse probabilities or {mention('labels_per_row')}",
            )
    strategy._check_labels(problem.labelled)
    if not problem.labelled:
        return FitStrategy("expected")
    recipes = default_label_recipes(problem)
    confusion: Any = strategy.confusion
    if confusion == "auto":
        if isinstance(strategy.recalibrate, str):
            return recipes
        return [replace(recipe, recalibrate=bool(strategy.recalibrate)) for recipe in recipes]
    if isinstance(strategy.recalibrate, str):
        return [FitStrategy(confusion, recalibrate=True)]
    return FitStrategy(confusion, bool(strategy.recalibrate))


def find_label_rule(
    rows: RowSpec, spec: GoalSpec, strategy: Strategy, seed: int, show_progress: bool | None
) -> Solution:
    """Find the rule for rows of very many labels."""
    problem, goal = open_label_problem(rows, spec)
    recipes = label_recipes(strategy, problem)
    task = LabelTask(problem, recipes, goal.constraints, goal.confidence, seed)
    with Progress("optimize", 3 if isinstance(recipes, list) else 1, show_progress) as progress:
        fitted = fit_label_task(replace(task, stage=progress.stage))
    return Solution(**vars(fitted), problem=None)


def trace_label_rules(
    rows: RowSpec,
    spec: GoalSpec,
    strategy: Strategy,
    ceiling: bool,
    n_points: int,
    name: str,
    show_progress: bool | None,
) -> TradeOff:
    """Compute the frontier of two metrics for rows of very many labels; `name` is that of the bounded one."""
    if spec.subject_to is not None:
        raise InvalidParameter(
            "subject_to",
            f"be left out with sparse probabilities or {mention('labels_per_row')}, where one metric is bounded",
            shown(spec.subject_to),
        )
    problem, goal = open_label_problem(rows, spec)
    (constraint,) = goal.constraints
    aim = problem.aim
    if aim.average == "instance" or aim.is_coverage:
        what = argument("average", aim.average) if aim.average == "instance" else repr(aim.name)
        raise InvalidParameter(
            "metric",
            problem=f"a trade-off is not computed for {what} of very many labels",
            remedy=f"use {argument('average', 'micro')} or {argument('average', 'macro')}",
        )
    recipes = label_recipes(strategy, problem)
    recipe = recipes[0] if isinstance(recipes, list) else recipes
    with Progress("trade_off", n_points, show_progress) as progress:
        frontier = trace_labels(problem, recipe, constraint, ceiling=ceiling, n_points=n_points, stage=progress.stage)
    return label_trade_off(problem, recipe, constraint, frontier, name, ceiling)


def label_trade_off(
    problem: LabelProblem,
    recipe: FitStrategy,
    constraint: LabelConstraint,
    frontier: LabelFrontier,
    name: str,
    ceiling: bool,
) -> TradeOff:
    """Return points as rules with their values."""
    aim = problem.aim.bind(frontier.baseline.true)
    values = [value_of_fit(problem, aim, point.fit, point.counts) for point in frontier.points]
    baseline = value_of_fit(problem, aim, None, frontier.baseline)
    rules = []
    for point, value in zip(frontier.points, values, strict=True):
        metadata = RuleMetadata(
            metric=aim.name,
            average=aim.average,
            rows=problem.rows.n_rows,
            metricwise=__version__,
            recipe=str(recipe),
            value=value,
            baseline=baseline,
            subject_to=[f"{name} {'<=' if ceiling else '>='} {point.bound:.6g}"],
        )
        rules.append(point.fit.rule(problem, metadata, is_bounded=True))
    recorded, recorded_baseline = {}, {}
    fits = [(point.fit, point.counts) for point in frontier.points]
    for key, secondary in problem.record.items():
        recorded[key] = np.array([value_of_fit(problem, secondary, *pair) for pair in fits])
        recorded_baseline[key] = value_of_fit(problem, secondary, baseline_fit(problem), frontier.baseline)
    return TradeOff(
        aim.name,
        name,
        ceiling,
        np.array([point.bound for point in frontier.points]),
        np.array(values),
        np.array([constraint.aim.value(point.counts) for point in frontier.points]),
        tuple(rules),
        (baseline, constraint.aim.value(frontier.baseline)),
        recorded,
        recorded_baseline,
    )
