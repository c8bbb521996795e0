"""What users ask for, unread, and what it means for outputs and classes: the one place where it is read.

Owns the metric that is maximised, those that are recorded, constraints, abstentions and priors, as one
:class:`GoalSpec`, and what becomes of them, a :class:`Goal`. Must not know rows: what a goal means follows from a
:class:`~metricwise.data.Schema` alone, so that an estimator reads its goal before it fits a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, mention, shown, warn
from ..core.labels import python_labels
from ..core.schema import Schema
from ..data.abstention import read_abstain_label
from ..data.single_column import positive_labels
from ..data.weights import read_output_weight, read_prior
from ..metrics.abstention import AbstentionCost, check_pooled, read_abstain
from ..metrics.aim import AveragedMetric
from ..metrics.class_names import class_named, text_class
from ..metrics.functions import check_whole_rows
from ..metrics.naming import positive_places, same_classes
from ..metrics.resolution import Resolved, target_kind, to_maximise
from ..metrics.scales import check_order_agrees
from .constraint import Constraint
from .constraint_text import ConstraintSpec, read_constraints
from .for_outputs import resolve_for, settle
from .probing import N_PROBES, metric_of_values
from .recording import RecordSpec, resolve_record
from .resolve import check_bounded, resolve_constraints
from .worst import opened

__all__ = ["Goal", "GoalSpec"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Goal:
    """What is asked for, in terms of outputs and classes.

    Parameters
    ----------
    schema : Schema
        With the label of an abstention, if rules may abstain.
    aim : AveragedMetric
        What is maximised.
    record : dict of str to AveragedMetric
        What is recorded beside it.
    metrics : tuple of Resolved
        The metrics of these, without what abstentions count for.
    constraints : tuple of Constraint
    confidence : float or None
        Confidence with which all constraints hold jointly in the population; None: on the given rows.
    abstention : AbstentionCost or None
        What an abstention counts for; None: rules never abstain.
    prior : ndarray of shape (M, K), or None
        Class priors of the rows that the rule is for.
    worst_group : bool
        Whether the value of the worst sensitive group is maximised.
    guarantee : str or None
        "exact": constraints hold with the confidence for any distribution of the rows; None: approximately.
    """

    schema: Schema
    aim: AveragedMetric
    record: dict[str, AveragedMetric]
    metrics: tuple[Resolved, ...]
    constraints: tuple[Constraint, ...] = ()
    confidence: float | None = None
    abstention: AbstentionCost | None = None
    prior: FloatArray | None = None
    worst_group: bool = False
    guarantee: str | None = None

    @property
    def constrained(self) -> bool:
        """Whether a rule must keep something, which takes solvers of its own."""
        return bool(self.constraints) or self.worst_group

    def check_rows(self, weight: FloatArray | None, labelled: bool) -> None:
        """Refuse metrics of whole rows for weights that are fractions of rows, or without labels."""
        for resolved in self.metrics:
            check_whole_rows(
                resolved.metric,
                sample_weight=weight,
                output_weight=self.aim.output_weight,
                average=resolved.average,
                prior=self.prior,
                labelled=labelled,
            )


@dataclass(frozen=True, eq=False)
class GoalSpec:
    """What a user asks for: parameters of :func:`metricwise.optimize`, unread.

    `against` is the metric that :func:`metricwise.trade_off` bounds, which becomes the first constraint. Estimators and
    the command line fill the fields that they have by the same names.
    """

    metric: Any
    average: str | None = None
    pos_label: Any = None
    output_weight: Any = None
    record: RecordSpec = None
    subject_to: Any = None
    confidence: float | None = 0.95
    guarantee: str | None = None
    abstain: Any = None
    prior: Any = None
    order: Any = None
    against: ConstraintSpec | None = None
    labels_per_row: Any = None

    @property
    def column_class(self) -> Any:
        """The class that a single column of probabilities is of, as far as the goal says so."""
        return text_class(opened(self.metric)[0]) if self.pos_label is None else self.pos_label

    @property
    def constrained(self) -> bool:
        """Whether there are constraints, which may want for the positive class."""
        return self.subject_to is not None or self.against is not None

    def read(
        self,
        schema: Schema,
        groups: Sequence[Any] | None = None,
        class_rows: Callable[[], NDArray[Any]] | None = None,
    ) -> Goal:
        """Return what is asked for, in terms of outputs and classes.

        Parameters
        ----------
        schema : Schema
        groups : sequence, optional
            Names of the sensitive groups.
        class_rows : callable, optional
            Returns the number of rows of each class, (M, K), by which a function of labels is recognised as a metric
            that has a solver. None: it is not tried, such as without labels.

        Returns
        -------
        Goal
        """
        guarantee = self._read_guarantee()
        metric, worst_group = opened(self.metric)
        resolved, note = _recognise(self._resolve(metric, schema), schema, class_rows)
        recorded = self._resolve_record(resolved, schema)
        self._check_classes((resolved, *recorded.values()), schema)
        allowed, schema = self._read_abstention(resolved, schema)
        reader = _AimReader(schema, resolved, allowed, read_output_weight(self.output_weight, schema.n_outputs))
        aim = replace(reader.main(), note=note) if note else reader.main()
        record = {name: reader.recorded(secondary) for name, secondary in recorded.items()}
        prior = None if self.prior is None else read_prior(self.prior, schema.n_classes, schema.classes)
        self._check_groups(aim, worst_group, groups)
        if worst_group:
            aim = replace(aim, name=f"worst_group({aim.name})")
        return Goal(
            schema,
            aim,
            record,
            (resolved, *recorded.values()),
            self._read_constraints(aim, schema, allowed, groups),
            self._read_confidence(),
            allowed,
            prior,
            worst_group,
            guarantee,
        )

    def _resolve(self, metric: Any, schema: Schema) -> Resolved:
        # The positive class may be that of a constraint, or of a single column: there a metric need not want it, but
        # must not name another.
        of_column = schema.single and class_named(metric) in (None, self.pos_label)
        resolved = to_maximise(
            resolve_for(
                metric,
                schema.classes,
                several=schema.multioutput,
                average=self.average,
                pos_label=self.pos_label,
                wanted_only=self.constrained or of_column,
                scales=schema.order,
                outputs=schema.output_names,
            )
        )
        if resolved.metric.traits.degenerate and not self.constrained:
            warn(resolved.metric.traits.degenerate)
        return resolved

    def _resolve_record(self, main: Resolved, schema: Schema) -> dict[str, Resolved]:
        kind = target_kind(schema.width, schema.multioutput)
        recorded = resolve_record(self.record, kind, main, self.pos_label)
        return {name: settle(resolved, schema.classes, scales=schema.order) for name, resolved in recorded.items()}

    def _check_classes(self, metrics: Sequence[Resolved], schema: Schema) -> None:
        """Refuse metrics that contradict the order, and a positive class that is none."""
        if self.order is not None:
            for candidate in metrics:
                check_order_agrees(candidate.metric, schema.order, schema.classes)
        if schema.single and self.pos_label is not None:
            _check_column_class(self.pos_label, schema.classes)

    def _read_abstention(self, resolved: Resolved, schema: Schema) -> tuple[AbstentionCost | None, Schema]:
        """Return what an abstention counts for, and the schema with its label."""
        abstention = read_abstain(self.abstain)
        if abstention is None:
            return None, schema
        check_pooled(resolved.average, schema.n_classes)
        label = read_abstain_label(abstention.label, schema.classes)
        return abstention.terms, replace(schema, abstain_label=label)

    def _check_groups(self, aim: AveragedMetric, worst_group: bool, groups: Sequence[Any] | None) -> None:
        if groups is None:
            if worst_group:
                raise InvalidParameter(
                    "sensitive_features",
                    problem=f"the metric is that of the worst group, so {mention('sensitive_features')} must give the "
                    "group of every row, got None",
                )
            return
        if self.prior is not None:
            raise InvalidParameter(
                "prior",
                problem=f"{mention('prior')} and {mention('sensitive_features')} cannot both be given, because it is "
                "not known how the class priors of each group shift",
                remedy="leave one of them out",
            )
        if worst_group and aim.average == "macro":
            raise InvalidParameter(
                "average", "be 'micro' for the worst group's value, which pools outputs", repr(aim.average)
            )

    def _read_constraints(
        self, aim: AveragedMetric, schema: Schema, allowed: AbstentionCost | None, groups: Sequence[Any] | None
    ) -> tuple[Constraint, ...]:
        if not self.constrained and allowed is None:
            return ()
        specs = read_constraints(self.subject_to)
        if self.against is None:
            check_bounded(specs, allowed, aim.metric)
            if specs and aim.metric.traits.needs_integer_counts:
                raise InvalidParameter(
                    "subject_to",
                    problem=f"{mention('subject_to')} needs a metric that is a function of the confusion matrix, but "
                    f"{aim.metric.name} takes no {mention('sample_weight')} and can only be evaluated on whole rows",
                    remedy=f"add a parameter {mention('sample_weight')} to the function",
                )
        else:
            specs = (self.against, *specs)
        return resolve_constraints(
            specs,
            schema,
            ordered=self.order is not None,
            pos_label=self.pos_label,
            allowed=allowed,
            aim=aim.metric,
            groups=groups,
        )

    def _read_guarantee(self) -> str | None:
        """Return the kind of guarantee; refuse one without anything to guarantee, or without a confidence."""
        if self.guarantee is None:
            return None
        if self.guarantee != "exact":
            raise InvalidParameter("guarantee", "be 'exact' or None", shown(self.guarantee))
        if self.subject_to is None:
            raise InvalidParameter(
                "guarantee",
                problem=f"{argument('guarantee', 'exact')} is for constraints, but {mention('subject_to')} is None",
                remedy=f"pass {argument('subject_to', 'precision >= 0.9')}, or leave it out",
            )
        if self.confidence is None:
            raise InvalidParameter(
                "confidence",
                problem=f"{argument('guarantee', 'exact')} needs a confidence, got None",
                remedy=f"pass {argument('confidence', 0.95)}",
            )
        return "exact"

    def _read_confidence(self) -> float | None:
        confidence: Any = self.confidence
        if confidence is None:
            return None
        if not isinstance(confidence, (int, float, np.number)) or not 0.5 <= confidence < 1:
            raise InvalidParameter("confidence", "be a number in [0.5, 1) or None", shown(confidence))
        return float(confidence)


@dataclass(frozen=True, eq=False)
class _AimReader:
    """Averages metrics over outputs, and says what abstentions count for in them."""

    schema: Schema
    resolved: Resolved
    allowed: AbstentionCost | None
    output_weight: FloatArray
    positive: Any = field(init=False)

    def __post_init__(self) -> None:
        weighted = self.resolved.support_weighted
        places = positive_places(self.resolved.metric, self.schema.classes) if weighted else None
        object.__setattr__(self, "positive", places)

    def main(self) -> AveragedMetric:
        """Return what is maximised."""
        metric = self.resolved.metric
        return self._aim(self.resolved, metric if self.allowed is None else self.allowed.aim(metric))

    def recorded(self, resolved: Resolved) -> AveragedMetric:
        """Return what is recorded beside it."""
        metric = resolved.metric
        return self._aim(
            resolved, metric if self.allowed is None else self.allowed.beside(metric, self.resolved.metric)
        )

    def _aim(self, resolved: Resolved, metric: Any) -> AveragedMetric:
        if self.allowed is not None:
            self.allowed.check(metric, self.schema.classes)
        return AveragedMetric(
            metric, resolved.average, self.output_weight, resolved.support_weighted, self.positive, resolved.name
        )


def _recognise(
    resolved: Resolved, schema: Schema, class_rows: Callable[[], NDArray[Any]] | None
) -> tuple[Resolved, str]:
    """Return the metric of ours that a function of labels is by its values, and a sentence that says so."""
    if class_rows is None or not (resolved.metric.traits.slow and same_classes(schema.classes)):
        return resolved, ""
    metric = metric_of_values(resolved.metric, python_labels(schema.classes[0]), class_rows().sum(axis=0))
    if metric is None:
        return resolved, ""
    note = f"The function equals {metric.name} at {N_PROBES} confusion matrices and was optimised as {metric.name}."
    return replace(resolved, metric=metric, name=metric.name), note


def _check_column_class(pos_label: Any, classes: Sequence[NDArray[Any]]) -> None:
    """Refuse the class of a single column that is none of any output."""
    each = isinstance(pos_label, (list, tuple)) or len(classes) == 1
    for m, label in enumerate(positive_labels(pos_label, len(classes))):
        labels = [python_labels(names) for names in (classes[m : m + 1] if each else classes)]
        if label is not None and not any(label in names for names in labels):
            raise InvalidParameter("pos_label", f"be one of the classes {labels[0]}", shown(label))
