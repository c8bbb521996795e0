"""Constraints as they were written, and what they mean for the outputs and classes at hand.

Owns the step from names in brackets to confusions: which output a constraint is about, which class, and its bounds once
the class priors are known; and what is said where no rule keeps them. Must not know how they are kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .inputs import Schema, python_labels, shown
from .metrics import Precision
from .metrics.abstention import Abstained, Abstaining, Abstention
from .metrics.aim import Aim
from .metrics.base import Metric
from .metrics.constraint import BoundConstraint, Constraint, Limits
from .metrics.constraint_text import Wanted
from .metrics.for_outputs import resolve_for
from .metrics.naming import same_classes
from .metrics.resolution import metric_meant, target_kind
from .oracles import Counts, Oracle
from .problem import Problem
from .solvers.constrained import Feasible, InfeasibleError, Point, maximise
from .solvers.sweep import sweep_within

__all__ = [
    "InfeasibleConstraintsError",
    "bind_limits",
    "check_bounded",
    "check_shown",
    "explain_infeasible",
    "read_limits",
]

FloatArray = NDArray[np.float64]

_WHO = "subject_to"
_TOL = 1e-9


class InfeasibleConstraintsError(ValueError):
    """No rule that was found keeps the constraints, which are fine as such."""


def read_limits(
    wanted: Sequence[Wanted],
    schema: Schema,
    *,
    declared: bool,
    pos_label: Any = None,
    zero_division: float = 0.0,
    allowed: Abstention | None = None,
    aim: Metric | None = None,
) -> tuple[Constraint, ...]:
    """Find the metric, the class and the output of each constraint.

    A constraint that names no output of several is about all of them together: their confusions are pooled, as the
    micro-average does.

    Parameters
    ----------
    wanted : sequence of Wanted
    schema : Schema
    declared : bool
        Whether the user gave the classes.
    pos_label : object, optional
        The positive class of metrics of one class that name none.
    zero_division : float, default=0.0
        The value at 0/0 of metrics given by name.
    allowed : Abstention, optional
        What an abstention counts for, where rules may abstain.
    aim : Metric, optional
        What is maximised, where they may.

    Returns
    -------
    tuple of Constraint
        Those near the prior have the tolerance for bounds, around 0; see :func:`bind_limits`.
    """
    found = tuple(_read(one, schema, declared, pos_label, zero_division) for one in wanted)
    out = []
    for one in found:
        metric = one.metric if allowed is None or aim is None else allowed.beside(one.metric, aim)
        classes = schema.classes[one.output or 0]
        k, n_extra = len(classes), 0 if allowed is None else 1
        constraint = replace(one, metric=metric)
        # Refused by its form.
        constraint.bind(np.append(np.full(k, 1 / k), np.zeros(n_extra)), python_labels(np.asarray(classes)))
        out.append(constraint)
    return tuple(out)


def _read(one: Wanted, schema: Schema, declared: bool, pos_label: Any, zero_division: float) -> Constraint:
    metric = one.metric
    output, label = _places(one, schema)
    classes = schema.classes if output is None else (schema.classes[output],)
    if output is None and len(classes) > 1 and not same_classes(classes):
        raise ValueError(
            f"{_WHO}: '{one}' names no output, and outputs whose classes differ cannot be counted together; name one: "
            f"{_example(one, schema)}."
        )
    try:
        if output is None and schema.multioutput:  # a name that means something else of whole rows is refused
            metric_meant(metric, target_kind(schema.width, several=True), class_named=True)
        found = resolve_for(
            metric,
            classes[:1],
            several=False,
            declared=declared,
            zero_division=zero_division,
            pos_label=label if label is not None else _if_wanted(metric, classes[0], pos_label, output),
            who=_WHO,
        )
    except (TypeError, ValueError) as error:
        names = python_labels(np.asarray(classes[0]))
        if label is not None and label not in names:
            words = f"names the class {label!r}, which must be one of {shown(names)}."
            raise ValueError(f"{_WHO}: '{one}' {words}{_pointed(one, label)}") from None
        words = str(error).removeprefix(f"{_WHO}: ").removeprefix("metric: ")
        raise type(error)(f"{_WHO}: '{one}': {words}{_pointed(one, metric)}") from None
    low, high = (one.low, one.high) if one.near_prior is None else (-one.near_prior, one.near_prior)
    least, most = found.metric.range
    if one.near_prior is None and (low > most or high < least):
        words = f"is at most {most:g}" if low > most else f"is at least {least:g}"
        hint = f"; write {low:g} % where that is meant" if most == 1 < low <= 100 else ""
        raise ValueError(f"{_WHO}: '{one}' can never be kept: {found.metric.name} {words}{hint}.")
    return Constraint(found.metric, low, high, output, str(one), near_prior=one.near_prior is not None)


def check_bounded(wanted: Sequence[Wanted], allowed: Abstention | None, aim: Metric, who: str) -> None:
    """Refuse rules that may abstain as often as they like: of nearly no accepted rows everything is best."""
    if allowed is None or allowed.prices(aim):
        return
    name = Abstained.name
    bounded = (one for one in wanted if one.metric == name or isinstance(one.metric, Abstained))
    if not any(one.high < 1 for one in bounded):
        raise ValueError(
            f"{who}: abstain=True needs a bound on how often the rule abstains, subject_to='{name} <= 0.05'; or give "
            "what an abstention costs, abstain=0.2."
        )


def _if_wanted(metric: Any, classes: NDArray[Any], pos_label: Any, output: int | None) -> Any:
    """The positive class, for a metric that wants one; of a list of one for each output, that of its own."""
    if isinstance(pos_label, (list, tuple, np.ndarray)):
        if output is not None:
            pos_label = pos_label[output]
        elif all(one == pos_label[0] for one in pos_label):
            pos_label = pos_label[0]
    kind = target_kind(len(classes), several=False)
    if pos_label is None or not metric_meant(metric, kind, class_named=True).metric.wants_positive:
        return None
    return pos_label


def _places(one: Wanted, schema: Schema) -> tuple[int | None, Any]:
    """The position of the output and the label of the class that stand in brackets."""
    if len(one.labels) == 2:
        return _output(one.labels[0], one, schema), one.labels[1]
    if not one.labels:
        return None, None
    (label,) = one.labels
    kind = target_kind(schema.width, several=False)
    wants_class = not schema.multioutput or metric_meant(one.metric, kind, class_named=True).metric.wants_positive
    if wants_class and not _only_an_output(label, schema):
        return None, label
    return _output(label, one, schema), None


def _only_an_output(label: Any, schema: Schema) -> bool:
    """Whether an output is called so, and no class."""
    known = schema.multioutput and label in (schema.output_names or ())
    return known and all(label not in python_labels(np.asarray(own)) for own in schema.classes)


def _output(name: Any, one: Wanted, schema: Schema) -> int:
    names = list(range(schema.n_outputs)) if schema.output_names is None else list(schema.output_names)
    if not schema.multioutput:
        raise ValueError(f"{_WHO}: '{one}' names an output, and there is one only; leave {name!r} out.")
    if name in names:
        return names.index(name)
    words = f"names the output {name!r}, which must be one of {shown(names)}."
    raise ValueError(f"{_WHO}: '{one}' {words}{_pointed(one, name)}")


def _pointed(one: Wanted, word: Any) -> str:
    """A line below a constraint that was written, which points at a word of it."""
    at = one.text.find(str(word), one.text.find("[") + 1 if word in one.labels else 0)
    return "" if at < 0 or not one.text else f"\n    {one.text}\n    {' ' * at}^"


def _example(one: Wanted, schema: Schema) -> str:
    name = 0 if schema.output_names is None else schema.output_names[0]
    inside = (name, *one.labels) if len(one.labels) < 2 else one.labels
    return f"'{replace(one, labels=tuple(inside), text='')}'"


def check_shown(constraints: Sequence[Constraint], problem: Problem) -> None:
    """Refuse constraints about outputs that have no label, and about classes whose recall is 0/0: no rule keeps those.

    Raises
    ------
    ValueError
    """
    judge = problem.oracle("labels" if problem.labelled else "expected")
    names = problem.schema.output_names
    for one in constraints:
        m = one.output
        if m is not None and judge.weight[m] == 0:
            name = m if names is None else names[m]
            raise ValueError(f"{_WHO}: '{one.name}' is about the output {name!r}, which has no label; leave it out.")
    for one, bound in zip(constraints, bind_limits(constraints, problem.schema, judge).constraints, strict=True):
        if bound.constant:
            words = "whatever is predicted, for no row has a class that it is about; leave it out, or give such rows."
            raise ValueError(f"{_WHO}: '{one.name}' bounds what is the same {words}")


def bind_limits(constraints: Sequence[Constraint], schema: Schema, oracle: Oracle) -> Limits:
    """Bind constraints to the class priors that an oracle counts.

    Parameters
    ----------
    constraints : sequence of Constraint
    schema : Schema
    oracle : Oracle
        That counts them.

    Returns
    -------
    Limits
    """
    mass = oracle.weight / oracle.weight.sum()
    share = np.array([mass if one.output is None else np.eye(len(mass))[one.output] for one in constraints])
    bound = []
    for one, own in zip(constraints, share, strict=True):
        k = int(schema.n_decisions[own > 0].max())
        labels = tuple(python_labels(np.asarray(schema.classes[int(np.argmax(own > 0))])))
        bound.append(one.bind(own @ oracle.priors[:, :k], labels))
    return Limits(tuple(bound), share.reshape(len(constraints), len(mass)))


def explain_infeasible(
    problem: Problem, judge: Counts, constraints: Sequence[Constraint], nearest: Point | None
) -> str:
    """Say that no rule keeps constraints, and how far rules get.

    Parameters
    ----------
    problem : Problem
    judge : Counts
        Counts the constraints.
    constraints : sequence of Constraint
    nearest : Point or None
        What comes nearest to all of them together.

    Returns
    -------
    str
    """
    limits = bind_limits(constraints, problem.schema, judge)
    names = [f"'{one.name}'" for one in constraints]
    where = "on the rows given" if problem.labelled else "by these probabilities"
    for q, (one, share) in enumerate(zip(limits.constraints, limits.share, strict=True)):
        alone = Limits((one,), share[None])
        if not _can_be_kept(problem, judge, alone):
            end = _furthest(problem, judge, constraints[q], one, Limits((), np.empty((0, len(share)))))
            return f"subject_to: no rule keeps {names[q]} {where}{end}; loosen the bound, or bring a better model."
    said = f"subject_to: no rule keeps {_listed(names)} together {where}"
    for q in reversed(range(len(constraints))):
        others = [r for r in range(len(constraints)) if r != q]
        rest = Limits(tuple(limits.constraints[r] for r in others), limits.share[others])
        if _can_be_kept(problem, judge, rest):
            end = _furthest(problem, judge, constraints[q], limits.constraints[q], rest)
            if end:
                said += f": with {_listed([names[r] for r in others])},{end.removeprefix(':')}"
                return f"{said}; loosen a bound."
    if nearest is not None:
        values = limits.values(nearest.judged)
        near = ", ".join(f"{one.metric.name} {value:.3g}" for one, value in zip(constraints, values, strict=True))
        said += f"; what comes nearest has {near}"
    return f"{said}; loosen a bound."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _can_be_kept(problem: Problem, judge: Counts, limits: Limits) -> bool:
    return _best_confusion(problem, judge, limits) is not None


def _best_confusion(problem: Problem, judge: Counts, limits: Limits) -> FloatArray | None:
    """The confusion of the best rule that keeps limits, None where none does: of mixtures, or of thresholds."""
    objective, found = problem.objective(judge), []
    try:
        point = maximise(Feasible(judge, judge, objective, limits, _TOL))
        found += [point.judged] if limits.kept(point.judged, 1e-4).all() else []
    except InfeasibleError:
        pass
    if problem.schema.n_outputs == 1 and objective.width == 2 and not judge.certified:
        threshold = sweep_within(judge, objective, limits)  # which does better by labels
        found += [] if threshold is None else [threshold.confusion]
    return max(found, key=objective.value, default=None)


def _furthest(problem: Problem, judge: Counts, given: Constraint, bound: BoundConstraint, rest: Limits) -> str:
    """How far the metric of a constraint gets towards its bound among rules that keep others, as words; or nothing."""
    n_outputs = problem.schema.n_outputs
    if n_outputs > 1 or np.isinf(bound.constraint.low):
        return ""
    aim = replace(problem, aim=Aim(given.metric, "micro", np.ones(1)), record={})
    C = _best_confusion(aim, judge, rest)
    if C is None:
        return ""
    if bound.empty(C[0]):
        return f": {_term(given)} is 0/0, which keeps no bound"
    value = float(bound.value(C[0]))
    if value >= bound.constraint.low:
        return ""
    share = ""
    metric = given.metric.base if isinstance(given.metric, Abstaining) else given.metric
    if isinstance(metric, Precision) and bound.denominator is not None:
        share = f", of a predicted share of {float(np.sum(bound.denominator * C[0])):.2g}"
    proved = judge.certified or problem.schema.width == 2
    most = f"{value:.3g} at most" if proved else f"about {value:.3g} at most"
    return f": {_term(given)} reaches {most}{share}"


def _term(given: Constraint) -> str:
    """What a constraint bounds, as it was written."""
    return re.sub(r"^[^\[\]]*<=\s*|\s*(>=|<=|≥|≤)[^\[\]]*$", "", given.name) or given.metric.name
