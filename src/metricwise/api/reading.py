"""What was asked of ``optimize``, read and checked: rows, goal and strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType, argument, mention, warn
from ..data import (
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
from ..fitting.by_group import GroupTask
from ..fitting.constraints.fit import Pledge
from ..fitting.constraints.resolve import check_bounded, check_shown, read_limits
from ..fitting.selection import candidates
from ..fitting.solving import Settings
from ..goals.constraint_text import read_constraints
from ..goals.for_outputs import resolve_for, settle
from ..goals.probing import N_PROBES, metric_of_values
from ..goals.recording import RecordSpec, resolve_record
from ..inference.dependence import in_stretches
from ..metrics.abstention import Abstention, check_pooled, read_abstain
from ..metrics.aim import Aim
from ..metrics.base import Metric
from ..metrics.class_names import class_named, text_class
from ..metrics.functions import check_whole_rows
from ..metrics.naming import positive_places, same_classes
from ..metrics.resolution import Resolved, target_kind, to_maximise
from ..metrics.scales import check_order_agrees
from ..oracles.problem import InMemory, Problem, Recipe
from ..solvers import SOLVERS, Solver, make_solver

__all__ = [
    "only_labels",
    "read_abstention",
    "read_groups",
    "read_pledge",
    "read_problem",
    "read_recipe",
    "read_seed",
    "read_solver",
]

_DOUBTED_ROWS = 1 << 10  # of a source that is not in memory, which say whether columns may be of other classes


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
) -> Problem:
    """Read and check everything but the recipe and constraints, of which it is enough to know whether there are any."""
    warn_of_order(proba=proba, y=y, sample_weight=sample_weight)
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
    )
    rows, schema = data.rows, data.schema
    names = schema.classes
    if not (_is_number(zero_division) and 0 <= zero_division <= 1):
        raise InvalidParameter("zero_division", "be a number in [0, 1]", shown(zero_division))
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
        )
    )
    resolved, note = _by_values(resolved, names, source)
    recorded = resolve_record(record, target_kind(schema.width, schema.multioutput), resolved, zero_division, pos_label)
    recorded = {name: settle(one, names, scales=schema.order) for name, one in recorded.items()}
    if order is not None:
        for one in (resolved, *recorded.values()):
            check_order_agrees(one.metric, schema.order, names)
    if schema.single and pos_label is not None:
        _check_column_class(pos_label, names)
    if resolved.metric.degenerate and not constrained:
        warn(f"{resolved.metric.degenerate}")
    allowed = read_abstention(abstain, abstain_label, schema, resolved)
    if allowed is not None:
        schema = replace(schema, abstain_label=read_abstain_label(abstain_label, names))
    alpha = read_output_weight(output_weight, schema.n_outputs)
    positive = positive_places(resolved.metric, names) if resolved.support_weighted else None

    def aim_of(one: Resolved, main: bool = False) -> Aim:
        check_whole_rows(
            one.metric,
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

    shares = None if prior is None else read_prior(prior, schema.n_classes)
    record_of = {name: aim_of(one) for name, one in recorded.items()}
    problem = Problem(source.described(schema), aim_of(resolved, main=True), shares, record_of, allowed)
    _check_observed(problem)
    if source.labelled and not isinstance(y, Labels):  # an estimator has assigned columns by its classes
        some = rows if isinstance(source, MemorySource) else source.glance(_DOUBTED_ROWS)
        assert some.codes is not None
        warn_of_assignment(some.proba, some.codes, names, schema.column_order)
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


def read_abstention(abstain: Any, abstain_label: Any, schema: Schema, resolved: Resolved) -> Abstention | None:
    """Read whether a rule may abstain, and refuse what then has no meaning."""
    allowed = read_abstain(abstain)
    if allowed is None:
        if abstain_label is not None:
            raise InvalidParameter(
                "abstain_label",
                problem=f"{mention('abstain_label')} is only for rules that may abstain",
                remedy=f"pass {argument('abstain', True)} or the cost of an abstention as well",
            )
        return None
    check_pooled(resolved.average, schema.n_classes)
    read_abstain_label(abstain_label, schema.classes)
    return allowed


def read_groups(
    problem: Problem, sensitive_features: Any, group_aware: Any, worst: bool
) -> tuple[Problem, GroupTask | None]:
    """Read the sensitive groups of rows, and what is asked of them."""
    if not isinstance(group_aware, (bool, np.bool_)):
        raise InvalidParameter("group_aware", "be True or False", shown(group_aware))
    if sensitive_features is None:
        if worst or not group_aware:
            asked = "the metric is that of the worst group" if worst else "group_aware is False"
            raise InvalidParameter(
                "sensitive_features",
                problem=f"{asked}, so {mention('sensitive_features')} must give the group of every row, got None",
            )
        return problem, None
    if problem.prior is not None:
        raise InvalidParameter(
            "prior",
            problem=(
                f"{mention('prior')} and {mention('sensitive_features')} cannot both be given, because it "
                "is not known how the class priors of each group shift"
            ),
            remedy="leave one of them out",
        )
    if worst and problem.aim.average == "macro":
        raise InvalidParameter("average", "be 'micro' for the worst group's value, which pools outputs", "'macro'")
    sensitive = Sensitive.of(sensitive_features)
    sensitive.check(group_aware=bool(group_aware), may_abstain=problem.allowed is not None)
    read = read_sensitive_features(sensitive, problem.n_rows)
    aim = replace(problem.aim, name=f"worst_group({problem.aim.name})") if worst else problem.aim

    def with_group(rows: Any) -> Any:
        return replace(rows, group=read.codes[rows.start : rows.start + rows.n_rows])

    problem = replace(problem, source=problem.source.map(with_group), aim=aim)
    return problem, GroupTask(read.groups, bool(group_aware), worst, sensitive.unknown)


def _check_column_class(pos_label: Any, classes: Sequence[NDArray[Any]]) -> None:
    """Refuse the class of a single column that is none of any output."""
    for m, label in enumerate(positive_labels(pos_label, len(classes))):
        own = isinstance(pos_label, (list, tuple)) or len(classes) == 1
        known = [python_labels(labels) for labels in (classes[m : m + 1] if own else classes)]
        if label is not None and not any(label in labels for labels in known):
            raise InvalidParameter("pos_label", f"be one of the classes {known[0]}", shown(label))


def _check_observed(problem: Problem) -> None:
    """Refuse weights that leave no observed label."""
    if not problem.labelled:
        return
    seen = problem.source.class_weights > 0
    if not seen[problem.aim.output_weight > 0].any():
        raise InvalidParameter(
            "",
            problem="no observed label has a positive weight",
            remedy=f"check {mention('sample_weight')} and {mention('output_weight')}",
        )
    if problem.schema.n_outputs == 1 and seen.sum() < 2:
        raise InvalidParameter("sample_weight", "be positive for rows of at least two classes", "only one such class")


def read_recipe(confusion: Any, recalibrate: Any, y: Any) -> Recipe | list[Recipe] | None:
    """Return the one recipe that the arguments fix, or the candidates that they leave, the default first."""
    if not isinstance(confusion, str) or confusion not in ("auto", "labels", "expected", "blended"):
        raise InvalidParameter("confusion", "be 'auto', 'labels', 'expected' or 'blended'", shown(confusion))
    if not (isinstance(recalibrate, (bool, np.bool_)) or (isinstance(recalibrate, str) and recalibrate == "auto")):
        raise InvalidParameter("recalibrate", "be 'auto', True or False", shown(recalibrate))
    if y is None:
        if confusion in ("labels", "blended"):
            raise InvalidParameter(
                "confusion",
                problem=f"{argument('confusion', confusion)} needs y",
                remedy="without labels use 'expected' or 'auto'",
            )
        if recalibrate is True:
            raise InvalidParameter(
                "recalibrate",
                problem=f"{argument('recalibrate', True)} needs y",
                remedy="without labels use False or 'auto'",
            )
        return Recipe("expected")
    if confusion != "auto" and recalibrate != "auto":
        return Recipe(confusion, bool(recalibrate))  # type: ignore[arg-type]  # checked above
    if confusion != "auto":
        return [Recipe(confusion, recalibrate=True)]  # type: ignore[arg-type]  # checked above
    return [replace(recipe, recalibrate=bool(recalibrate)) for recipe in candidates()]


def read_pledge(
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
        raise InvalidParameter("confidence", "be a number in [0.5, 1) or None", shown(confidence))
    wanted = read_constraints(subject_to)
    check_bounded(wanted, problem.allowed, problem.aim.metric)
    if not wanted and (task is None or not task.worst):
        return None
    if problem.aim.metric.whole_rows:
        raise InvalidParameter(
            "subject_to",
            problem=(
                f"{mention('subject_to')} needs a metric that is a function of the confusion matrix, but "
                f"{problem.aim.metric.name} takes no {mention('sample_weight')} and can only be evaluated "
                "on whole rows"
            ),
            remedy=f"add a parameter {mention('sample_weight')} to the function",
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


def only_labels(metric: Metric, confusion: str, randomized: bool) -> str:
    """Return how to count for a metric of whole rows."""
    metric = next(own for own in metric.each if own.whole_rows)
    said = f"optimize: {metric.name} takes no sample_weight, so it can only be evaluated on whole rows with labels"
    remedy = "add a parameter sample_weight to the function"
    if confusion not in ("auto", "labels"):
        raise InvalidParameter(
            "confusion",
            problem=f"{said}, but {argument('confusion', confusion)} counts fractions of rows",
            remedy=f"{remedy}, or use {argument('confusion', 'labels')}",
        )
    if randomized:
        raise InvalidParameter(
            "rules",
            problem=f"{said}, but a mixture of rules counts fractions of rows",
            remedy=f"{remedy}, or use {argument('randomized', False)}",
        )
    return "labels"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number))


def read_seed(random_state: Any) -> int:
    """Return the seed that `random_state` stands for."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    raise InvalidParameter("random_state", "be None or a non-negative integer", shown(random_state))


def read_solver(solver: str | Solver, settings: Settings) -> Solver | Settings:
    """Return the solver that was asked for, or the settings for one that is chosen by the form of the metric."""
    if settings.tol is not None and not (_is_number(settings.tol) and 0 < settings.tol < np.inf):
        raise InvalidParameter("tol", "be a positive number", shown(settings.tol))
    if not isinstance(solver, str):
        if isinstance(solver, type) or not hasattr(solver, "solve"):
            got = f"the class {solver.__name__}" if isinstance(solver, type) else type(solver).__name__
            raise InvalidType("solver", "be a name or a solver such as solvers.Path()", got)
        _refuse_settings(type(solver).__name__, settings)
        return solver
    if solver == "auto":
        return settings
    if solver not in SOLVERS:
        raise InvalidParameter("solver", f"be 'auto' or one of {sorted(SOLVERS)}", repr(solver))
    # False and the seed, which is also that of folds and resamples, ask for nothing that a solver might lack.
    asked = {"tol": settings.tol, "randomized": settings.randomized or None}
    seed = {"seed": settings.seed} if "seed" in SOLVERS[solver].settings() else {}
    try:
        return make_solver(solver, **asked, **seed)
    except InvalidParameter as error:
        raise error.within(after=f". Leave it out, or use {argument('solver', 'auto')}") from None


def _refuse_settings(name: str, settings: Settings) -> None:
    """Refuse settings beside a solver object, which has its own."""
    for key, given in (("tol", settings.tol), ("randomized", settings.randomized or None)):
        if given is not None:
            raise InvalidParameter(
                key,
                "be left out if solver is an object, which carries its own settings",
                f"{key}={given!r} and a {name}",
                "pass it to the solver instead, if the solver takes it",
            )
