"""Resolves constraints for a schema: which metric, output, class and sensitive group each of them is about.

Must not know rows, nor how constraints are satisfied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, mention, shown
from ..core.labels import python_labels
from ..core.schema import Schema
from ..metrics.abstention import Abstained, Abstaining, AbstentionCost, Coverage
from ..metrics.base import FractionalLinear, Linear, Metric
from ..metrics.naming import same_classes
from ..metrics.one_vs_rest import OneVsRest
from ..metrics.resolution import metric_meant, target_kind
from ..metrics.scales import check_order_agrees
from .constraint import BoundConstraint, Constraint
from .constraint_text import EVERY, EVERY_LABEL, GAP, ConstraintSpec, read_constraints
from .for_outputs import resolve_for
from .parity import PARITIES

__all__ = ["check_bounded", "complete_text", "resolve_constraints"]

_ROUNDING = 1e-12  # by which a bound that is the end of a range may seem to lie beyond it


def resolve_constraints(
    specs: Sequence[ConstraintSpec],
    schema: Schema,
    *,
    ordered: bool = False,
    pos_label: Any = None,
    allowed: AbstentionCost | None = None,
    aim: Metric | None = None,
    groups: Sequence[Any] | None = None,
    any_form: bool = False,
) -> tuple[Constraint, ...]:
    """Find the metric, the class and the output of each constraint.

    A constraint that names no output of several is about all of them together: their confusions are pooled, as the
    micro-average does. Unless `any_form`, what no rule can be fitted to is refused.
    """
    resolved: list[Constraint] = []
    for promise, spec in enumerate(specs):
        if spec.over == EVERY_LABEL:
            raise InvalidParameter(
                "subject_to",
                problem=f"'{spec}' is for rules of very many labels, whose probabilities are a sparse array",
                remedy="name the output instead, as in precision[output, 1]",
                owner="subject_to",
            )
        if spec.over is not None and groups is None:
            raise InvalidParameter(
                "subject_to",
                problem=(
                    f"'{spec}' is about groups, so {mention('sensitive_features')} must give the group of "
                    "every row, got None"
                ),
                owner="subject_to",
            )
        for part, metric in enumerate(_metrics(spec, schema)):
            simple = replace(metric, text=str(spec))
            read = _read(simple, schema, ordered, pos_label)
            if allowed is not None and aim is not None:
                read = replace(read, metric=allowed.beside(read.metric, aim))
            if not any_form:
                _check_form(spec, read, schema, allowed)
            resolved += _of_groups(replace(read, promise=promise, part=part), spec, groups)
    return tuple(resolved)


def complete_text(constraint: Constraint, schema: Schema, pos_label: Any) -> str:
    """Return a constraint as text that says all, to who knows the schema and the positive class of the aim alone.

    The class is added where the text names none and it is another one. What no text says, such as the parameters of a
    metric object, is marked.
    """
    if schema.n_groups > 1:  # each output is there once for every sensitive group
        outputs = np.arange(schema.n_outputs // schema.n_groups)
        schema = replace(schema.of_outputs(outputs), multioutput=len(outputs) > 1, n_groups=1)
    metric = constraint.metric.base if isinstance(constraint.metric, Abstaining) else constraint.metric
    classes = python_labels(np.asarray(schema.classes[constraint.output or 0]))
    try:
        (spec,) = read_constraints(constraint.name)
    except InvalidParameter:
        return constraint.name
    same = _is_of(spec, metric, schema, pos_label, classes)
    if same is not True and isinstance(metric, OneVsRest):
        named = replace(spec, labels=(*spec.labels, classes[metric.position(len(classes), classes)]), text="")
        if _is_of(named, metric, schema, pos_label, classes):
            return str(named)
    return f"{constraint.name} (of a metric object)" if same is False else constraint.name


def _is_of(spec: ConstraintSpec, metric: Metric, schema: Schema, pos_label: Any, classes: list[Any]) -> bool | None:
    """Whether a constraint that was written is about a metric, or several that it stands for; None if it is of none."""
    try:
        others = [_read(part, schema, False, pos_label).metric for part in _metrics(spec, schema)]
        return any(_of_place(other, classes) == _of_place(metric, classes) for other in others)
    except InvalidParameter:
        return None


def _of_place(metric: Metric, classes: list[Any]) -> Metric:
    """Return a metric of one class with that class by its position."""
    if not isinstance(metric, OneVsRest):
        return metric
    return replace(metric, index=metric.position(len(classes), classes), pos_label=None, zero_division=0.0)


def _check_form(spec: ConstraintSpec, read: Constraint, schema: Schema, allowed: AbstentionCost | None) -> None:
    """Refuse bounds that the form of a metric does not allow, whatever the priors."""
    if read.metric.traits.needs_integer_counts:
        raise InvalidParameter(
            "subject_to",
            problem=(
                f"'{spec}' bounds {read.metric.name}, which takes no {mention('sample_weight')} and can only be "
                "evaluated on whole rows"
            ),
            remedy=f"add a parameter {mention('sample_weight')} to the function",
            owner="subject_to",
        )
    labels = python_labels(np.asarray(schema.classes[read.output or 0]))
    k, n_extra = len(labels), 0 if allowed is None else 1
    free = replace(read, high=np.inf) if spec.over == GAP else read
    bound = free.bind(np.append(np.full(k, 1 / k), np.zeros(n_extra)), labels)
    if spec.over == GAP:
        _check_gap(spec, bound)


def _metrics(spec: ConstraintSpec, schema: Schema) -> list[ConstraintSpec]:
    """What a promise is about: a metric, or several where its name stands for them."""
    if not isinstance(spec.metric, str) or spec.metric not in PARITIES:
        return [spec]
    output, label = _places(replace(spec, metric="share"), schema)
    classes = python_labels(np.asarray(schema.classes[0 if output is None else output]))
    if label is not None and label not in classes:
        raise InvalidParameter(
            "subject_to",
            problem=f"'{spec}' names the class {label!r}, which must be one of {shown(classes)}",
            owner="subject_to",
            detail=_pointed(spec, label),
        )
    place = None if label is None else classes.index(label)
    names = [spec.labels[0]] if output is not None else []
    return [
        replace(spec, metric=metric, labels=tuple(names))
        if not isinstance(metric, str)
        else replace(spec, metric=metric)
        for metric in PARITIES[spec.metric](len(classes), place)
    ]


def _of_groups(read: Constraint, spec: ConstraintSpec, groups: Sequence[Any] | None) -> list[Constraint]:
    """What a promise is in terms of single groups, or of pairs of them."""
    if spec.over is None or groups is None:
        return [read]
    if spec.over == GAP:
        pairs = permutations(range(len(groups)), 2)
        return [replace(read, low=-np.inf, group=g, minus=h) for g, h in pairs]
    if spec.over == EVERY:
        return [replace(read, group=g) for g in range(len(groups))]
    if spec.group not in groups:
        raise InvalidParameter(
            "subject_to",
            problem=f"'{spec}' names the group {spec.group!r}, which must be one of {shown(list(groups))}",
            owner="subject_to",
        )
    return [replace(read, group=list(groups).index(spec.group))]


def _check_gap(spec: ConstraintSpec, bound: BoundConstraint) -> None:
    if np.isfinite(spec.low) or spec.near_prior is not None or spec.high < 0:
        raise InvalidParameter(
            "subject_to",
            problem=f"'{spec}' must bound a gap from above, by a number of at least 0, as in 'recall gap <= 0.05'",
            owner="subject_to",
        )
    if not isinstance(bound.metric, (Linear, FractionalLinear)):
        raise InvalidParameter(
            "subject_to",
            problem=(
                f"'{spec}' bounds the gap of {bound.constraint.metric.name}, which is neither linear nor a "
                "ratio of linear metrics"
            ),
            remedy=(
                "bound the gap of a share, recall, precision, F, accuracy or cost instead, or bound the "
                "metric in every group"
            ),
            owner="subject_to",
        )


def _read(spec: ConstraintSpec, schema: Schema, ordered: bool, pos_label: Any) -> Constraint:
    metric = spec.metric
    output, label = _places(spec, schema)
    classes = schema.classes if output is None else (schema.classes[output],)
    if output is None and len(classes) > 1 and not same_classes(classes):
        raise InvalidParameter(
            "subject_to",
            problem=f"'{spec}' names no output, and outputs with different classes cannot be pooled",
            remedy=f"name one, as in {_example(spec, schema)}",
            owner="subject_to",
        )
    scales = None if schema.order is None else schema.order[output or 0 : (output or 0) + 1]
    try:
        if output is None and schema.multioutput:  # a name that means something else of whole rows is refused
            metric_meant(metric, target_kind(schema.width, several=True), class_named=True)
        resolved = resolve_for(
            metric,
            classes[:1],
            several=False,
            scales=scales,
            pos_label=label if label is not None else _if_wanted(metric, classes[0], pos_label, output),
        )
        if ordered:
            check_order_agrees(resolved.metric, scales, classes[:1])
    except InvalidParameter as error:
        names = python_labels(np.asarray(classes[0]))
        if label is not None and label not in names:
            problem = f"'{spec}' names the class {label!r}, which must be one of {shown(names)}"
            raise InvalidParameter(
                "subject_to", problem=problem, owner="subject_to", detail=_pointed(spec, label)
            ) from None
        raise error.within(f"'{spec}': ", owner="subject_to", detail=_pointed(spec, metric)) from None
    _check_range(spec, resolved.metric)
    low, high = (spec.low, spec.high) if spec.near_prior is None else (-spec.near_prior, spec.near_prior)
    return Constraint(resolved.metric, low, high, output, str(spec), near_prior=spec.near_prior is not None)


def _check_range(spec: ConstraintSpec, metric: Metric) -> None:
    """Refuse a bound outside the range of what is bounded: no rule satisfies it, or every rule does."""
    least, most = metric.range
    name, low, high = metric.name, spec.low, spec.high
    if spec.near_prior is not None:
        name, least, high = f"the distance of {name} from the prior", 0.0, spec.near_prior
    elif spec.over == GAP:
        name, least, most = f"a gap of {name}", 0.0, most - least
    for bound, floor in ((low, True), (high, False)):
        if np.isinf(bound) or least - _ROUNDING <= bound <= most + _ROUNDING:
            continue
        above = bound > most
        verdict = "can never be" if above == floor else "is always"
        end = f"at most {most:g}" if above else f"at least {least:g}"
        remedy = (
            "choose a bound within the range" if above == floor else "leave it out, or choose a bound within the range"
        )
        if most == 1 < bound <= 100 and "%" not in str(spec):
            remedy = f"write {bound:g} % if you mean a percentage"
        raise InvalidParameter(
            "subject_to",
            problem=f"'{spec}' {verdict} satisfied: {name} is {end}",
            remedy=f"{remedy}",
            owner="subject_to",
        )


def check_bounded(specs: Sequence[ConstraintSpec], allowed: AbstentionCost | None, aim: Metric) -> None:
    """Refuse rules that may abstain as often as they like: of nearly no accepted rows everything is best."""
    if allowed is None or allowed.prices(aim):
        return
    if not any(map(_bounds_abstentions, specs)):
        raise InvalidParameter(
            "abstain",
            problem=(
                f"{argument('abstain', True)} needs a bound on how often the rule abstains, such as "
                f"{argument('subject_to', f'{Abstained().name} <= 0.05')}"
            ),
            remedy=f"or give the cost of an abstention, such as {argument('abstain', 0.2)}",
        )


def _bounds_abstentions(spec: ConstraintSpec) -> bool:
    """Whether a constraint bounds how often a rule abstains, by more than the range does."""
    for metric in (Abstained(), Coverage()):
        if spec.metric == metric.name or isinstance(spec.metric, type(metric)):
            bound, idle = (spec.high, 1) if metric.traits.lower_is_better else (spec.low, 0)
            return spec.over != GAP and bool(np.isfinite(bound)) and bound != idle
    return False


def _if_wanted(metric: Any, classes: NDArray[Any], pos_label: Any, output: int | None) -> Any:
    """The positive class, for a metric that wants one; of a list of one for each output, that of its own."""
    if isinstance(pos_label, (list, tuple, np.ndarray)):
        if output is not None:
            pos_label = pos_label[output]
        elif all(label == pos_label[0] for label in pos_label):
            pos_label = pos_label[0]
    kind = target_kind(len(classes), several=False)
    if pos_label is None or not metric_meant(metric, kind, class_named=True).metric.traits.needs_positive:
        return None
    return pos_label


def _places(spec: ConstraintSpec, schema: Schema) -> tuple[int | None, Any]:
    """The position of the output and the label of the class that stand in brackets."""
    if len(spec.labels) == 2:
        return _output(spec.labels[0], spec, schema), spec.labels[1]
    if not spec.labels:
        return None, None
    (label,) = spec.labels
    wants_class = not schema.multioutput or _wants_class(spec, schema)
    if wants_class and not _only_an_output(label, schema):
        return None, label
    return _output(label, spec, schema), None


def _wants_class(spec: ConstraintSpec, schema: Schema) -> bool:
    """Whether the metric of a constraint is of one class."""
    try:
        meant = metric_meant(spec.metric, target_kind(schema.width, several=False), class_named=True)
    except InvalidParameter as error:
        raise error.within(f"'{spec}': ", owner="subject_to", detail=_pointed(spec, spec.metric)) from None
    return meant.metric.traits.needs_positive


def _only_an_output(label: Any, schema: Schema) -> bool:
    """Whether an output is called so, and no class."""
    is_output = schema.multioutput and label in (schema.output_names or ())
    return is_output and all(label not in python_labels(np.asarray(labels)) for labels in schema.classes)


def _output(name: Any, spec: ConstraintSpec, schema: Schema) -> int:
    names = list(range(schema.n_outputs)) if schema.output_names is None else list(schema.output_names)
    if not schema.multioutput:
        raise InvalidParameter(
            "subject_to",
            problem=f"'{spec}' names an output, but there is only one",
            remedy=f"leave {name!r} out",
            owner="subject_to",
        )
    if name in names:
        return names.index(name)
    text = f"names the output {name!r}, which must be one of {shown(names)}."
    raise InvalidParameter("subject_to", problem=f"'{spec}' {text}", owner="subject_to", detail=_pointed(spec, name))


def _pointed(spec: ConstraintSpec, word: Any) -> str:
    """A line below a constraint that was written, which points at a word of it."""
    at = spec.text.find(str(word), spec.text.find("[") + 1 if word in spec.labels else 0)
    return "" if at < 0 or not spec.text else f"\n    {spec.text}\n    {' ' * at}^"


def _example(spec: ConstraintSpec, schema: Schema) -> str:
    name = 0 if schema.output_names is None else schema.output_names[0]
    inside = (name, *spec.labels) if len(spec.labels) < 2 else spec.labels
    return f"'{replace(spec, labels=tuple(inside), text='')}'"
