"""Metrics of several outputs, and the classes that they name in each of them.

Nothing is guessed: not which class is positive, nor the order of classes, nor whether outputs of different classes may
be pooled. Must not know rows, rules or solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.cached import cached_property
from ..core.errors import InvalidParameter, InvalidType, argument, entry_point, listed, shown
from ..core.labels import python_label, python_labels
from .base import Form, Metric, Traits

__all__ = [
    "PerOutput",
    "check_classes",
    "check_same_classes",
    "pooled",
    "positive_places",
    "same_classes",
    "with_positive",
]

Classes = Sequence[Sequence[Any] | NDArray[Any]]

_MAX_LISTED = 6  # outputs of one metric that its name lists

_OF_ALL = ("concave", "smooth", "monotone", "fixed_form")  # traits of several metrics if all have them; others if any


@dataclass(frozen=True, eq=False)
class PerOutput(Metric):
    """A metric for each of several outputs, which may differ by the positive class only.

    Parameters
    ----------
    metrics : tuple of M Metric
        One object for outputs of one metric and one class.
    kinds : tuple of M int, optional
        Numbers the metrics that differ by more than the class; None where all are equal but for that.
    names : tuple of str, optional
        What each kind is called.
    outputs : tuple of M str, optional
        What the outputs are called.
    """

    metrics: tuple[Metric, ...]
    kinds: tuple[int, ...] | None = None
    names: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    @cached_property
    def traits(self) -> Traits:
        parts = [metric.traits for metric in self._distinct]
        low, high = zip(*(part.range for part in parts), strict=True)
        same = self.kinds is None
        merged: dict[str, Any] = {
            name: (all if name in _OF_ALL else any)(getattr(part, name) for part in parts)
            for name, value in vars(Traits()).items()
            if isinstance(value, bool)
        }
        return Traits(
            name=parts[0].name if same else self.title(range(len(self.metrics))),
            range=(min(low), max(high)),
            loss_name=parts[0].loss_name if same else None,
            degenerate=parts[0].degenerate if same else self._degenerate(),
            **(merged | {"needs_positive": False}),  # positive classes are given for each output
        )

    def title(self, outputs: Iterable[int]) -> str:
        """Describe which of these outputs have which metric; many are counted instead of listed."""
        assert self.kinds is not None
        shared: dict[int, list[str]] = {}
        for m in outputs:
            shared.setdefault(self.kinds[m], []).append(self.outputs[m])
        return ", ".join(f"{self.names[kind]} ({_few(outputs)})" for kind, outputs in shared.items())

    @property
    def _distinct(self) -> tuple[Metric, ...]:
        return tuple({id(metric): metric for metric in self.metrics}.values())

    def _degenerate(self) -> str | None:
        outputs_of: dict[str, list[int]] = {}
        for m, metric in enumerate(self.metrics):
            if metric.traits.degenerate is not None:
                outputs_of.setdefault(metric.traits.degenerate, []).append(m)
        return " ".join(f"{self.title(outputs)}: {sentence}" for sentence, outputs in outputs_of.items()) or None

    def _map_outputs(self, change: Callable[[Metric], Metric]) -> PerOutput:
        changed = {id(metric): change(metric) for metric in self.metrics}
        return replace(self, metrics=tuple([changed[id(metric)] for metric in self.metrics]))

    def _maximised(self) -> PerOutput:
        if all(metric._maximised() is metric for metric in self._distinct):
            return self
        maximised, names = self._map_outputs(lambda metric: metric._maximised()), list(self.names)
        for metric, new, kind in zip(self.metrics, maximised.metrics, self.kinds or (), strict=False):
            names[kind] = new.name if metric.traits.lower_is_better else names[kind]
        return replace(maximised, names=tuple(names))

    def _of_output(self, output: int) -> Metric:
        return self.metrics[output]

    def _of_outputs(self, outputs: Sequence[int]) -> Metric:
        metrics = tuple([self.metrics[m] for m in outputs])
        if self.kinds is not None and len({self.kinds[m] for m in outputs}) > 1:
            kinds, names = tuple([self.kinds[m] for m in outputs]), tuple([self.outputs[m] for m in outputs])
            return PerOutput(metrics, kinds, self.names, names)
        return metrics[0] if all(metric is metrics[0] for metric in metrics) else PerOutput(metrics)

    @entry_point("{class}")
    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        raise InvalidType("metric", problem="each output has its own metric", remedy="bind of_output(m)")


def _few(names: Sequence[str]) -> str:
    return (
        ", ".join(names)
        if len(names) <= _MAX_LISTED
        else f"{', '.join(names[: _MAX_LISTED - 1])} and {len(names) - _MAX_LISTED + 1} more"
    )


def with_positive(metric: Metric, pos_label: Any, several: bool) -> Metric:
    """Return the metric with the positive class that a user gives, one label for all outputs or a list of M labels.

    `several` is whether y is 2-D, so that there may be one label for each output.

    Examples
    --------
    >>> from metricwise.metrics import FBeta
    >>> from metricwise.metrics.naming import with_positive
    >>> with_positive(FBeta(), "fraud", False).pos_label
    'fraud'
    >>> with_positive(FBeta(), ["fraud", "late"], True)._of_output(1).pos_label
    'late'
    """
    column = getattr(pos_label, "ndim", 0) == 1
    positive = python_labels(np.asarray(pos_label)) if column else python_label(pos_label)
    labels = list(positive) if isinstance(positive, (list, tuple)) else [positive]
    good = len(labels) > 0 and (several or not isinstance(positive, (list, tuple)))
    if not good or not all(isinstance(label, Hashable) and label == label for label in labels):
        raise InvalidParameter(
            "pos_label",
            "be one label or, for a 2-D y, a list with one label for each output",
            listed(labels) if isinstance(positive, (list, tuple)) else shown(positive),
            owner="metric",
        )
    made = {label: metric._with_positive(label) for label in labels}
    return made[labels[0]] if len(made) == 1 else PerOutput(tuple(made[label] for label in labels))


def _by_labels(metric: Metric, classes: Classes) -> Iterator[tuple[int, Metric, tuple[Any, ...]]]:
    """Yield an output, its metric and its labels, once for outputs that share both."""
    distinct = {(id(metric._of_output(m)), id(labels)): m for m, labels in reversed(list(enumerate(classes)))}
    for m in sorted(distinct.values()):
        yield m, metric._of_output(m), tuple(python_labels(np.asarray(classes[m])))


def same_classes(classes: Classes) -> bool:
    """Whether all outputs have the same labels in the same order."""
    distinct = {id(labels): labels for labels in classes}.values()
    return len({tuple(python_labels(np.asarray(labels))) for labels in distinct}) <= 1


def check_same_classes(classes: Classes, remedy: str = "") -> None:
    """Refuse to pool outputs of different classes where no average was given; `remedy` is a further sentence."""
    if same_classes(classes):
        return
    first = python_labels(np.asarray(classes[0]))
    m = next(m for m, labels in enumerate(classes) if python_labels(np.asarray(labels)) != first)
    other = python_labels(np.asarray(classes[m]))
    raise InvalidParameter(
        "average",
        f"be given if outputs have different classes, such as output 0 with {first} and output {m} with {other}",
        remedy=(
            "usually 'macro', the mean over outputs, is intended, because 'micro' pools their classes by "
            f"position.{remedy}"
        ),
    )


def check_classes(metric: Metric, classes: Classes) -> None:
    """Refuse classes without a positive class or an order, where the metric needs one."""
    if isinstance(metric, PerOutput) and len(metric.metrics) != len(classes):
        raise InvalidParameter(
            "pos_label",
            f"be one label, or one for each of the {len(classes)} outputs",
            len(metric.metrics),
            owner="metric",
        )
    for m, of_output, labels in _by_labels(metric, classes):
        try:
            of_output._places(labels)
            of_output._check_order(labels)
        except InvalidParameter as error:
            raise (error.within(after=f" (output {m})") if len(classes) > 1 else error) from None


def pooled(metric: Metric, classes: Classes) -> tuple[Metric, tuple[Any, ...]]:
    """Return the metric of outputs that are pooled, and the labels to bind it to: those of the widest output.

    A class that the metric names must have the same position in all outputs.
    """
    groups = list(_by_labels(metric, classes))
    if groups[0][1].traits.reads_labels and not same_classes(classes):
        raise InvalidParameter(
            "metric",
            problem=(
                f"{metric.name} is a function of labels, so outputs with different labels cannot be pooled "
                "by 'micro' or 'instance'"
            ),
            remedy=f"use {argument('average', 'macro')}",
            owner="metric",
        )
    positions = {of_output._places(labels): m for m, of_output, labels in groups}
    if len(positions) > 1:
        (places, first), (other_places, second) = list(positions.items())[:2]
        raise InvalidParameter(
            "",
            problem=(
                "a class given by label must have the same position in all outputs that are pooled by "
                f"'micro' or 'instance', but it is at {_text(places)} in output {first} and at "
                f"{_text(other_places)} in output {second}"
            ),
            remedy=f"use {argument('average', 'macro')}, or put the classes of all outputs in one order",
            owner=type(groups[0][1]).__name__,
        )
    _, widest, labels = max(groups, key=lambda group: len(group[2]))
    return widest, labels


def _text(places: tuple[int, ...]) -> str:
    return str(places[0]) if len(places) == 1 else str(list(places))


def positive_places(metric: Metric, classes: Classes) -> NDArray[np.intp] | None:
    """Return the position of the positive class of each output, of shape (M,); None for a metric that has none."""
    positions = {}
    for m, of_output, labels in _by_labels(metric, classes):
        places = of_output._places(labels)
        if not places:
            return None
        positions[id(of_output), id(classes[m])] = places[0]
    keys = [(id(metric._of_output(m)), id(labels)) for m, labels in enumerate(classes)]
    return np.array([positions[key] for key in keys], dtype=np.intp)
