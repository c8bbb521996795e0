"""Which classes a metric is about, in each of several outputs.

Owns `pos_label`, and the refusal to guess: which class is the positive one, in which order classes come, and whether
outputs of different classes may be pooled. Must not know data, rules or solvers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InvalidParameter, InvalidType, argument, entry_point, shown
from ..core.labels import python_label, python_labels
from .base import Metric

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

_LISTED = 6  # outputs of one metric, beyond which some are left out of its name


@dataclass(frozen=True, eq=False)
class PerOutput(Metric):
    """A metric with a class of its own for each of several outputs, or a metric of its own for each.

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

    @property
    def name(self) -> str:  # type: ignore[override]  # that of what it holds
        return self.metrics[0].name if self.kinds is None else self.title(range(len(self.metrics)))

    def title(self, outputs: Iterable[int]) -> str:
        """Say which outputs, of those given by position, have which metric; many are counted instead of listed."""
        assert self.kinds is not None
        shared: dict[int, list[str]] = {}
        for m in outputs:
            shared.setdefault(self.kinds[m], []).append(self.outputs[m])
        return ", ".join(f"{self.names[kind]} ({_few(outputs)})" for kind, outputs in shared.items())

    @property
    def each(self) -> tuple[Metric, ...]:
        return tuple({id(metric): metric for metric in self.metrics}.values())

    @property
    def range(self) -> tuple[float, float]:
        low, high = zip(*(metric.range for metric in self.each), strict=True)
        return min(low), max(high)

    @property
    def degenerate(self) -> str | None:
        if self.kinds is None:
            return self.metrics[0].degenerate
        said: dict[str, list[int]] = {}
        for m, metric in enumerate(self.metrics):
            if metric.degenerate is not None:
                said.setdefault(metric.degenerate, []).append(m)
        return " ".join(f"{self.title(outputs)}: {words}" for words, outputs in said.items()) or None

    @property
    def smooth(self) -> bool:  # type: ignore[override]  # that of what it holds
        return all(metric.smooth for metric in self.each)

    @property
    def by_class(self) -> bool:  # type: ignore[override]  # that of what it holds
        return any(metric.by_class for metric in self.each)

    @property
    def costly(self) -> bool:  # type: ignore[override]  # that of what it holds
        return any(metric.costly for metric in self.each)

    @property
    def whole_rows(self) -> bool:  # type: ignore[override]  # that of what it holds
        return any(metric.whole_rows for metric in self.each)

    @property
    def lower_is_better(self) -> bool:  # type: ignore[override]  # that of what it holds
        return any(metric.lower_is_better for metric in self.each)

    @property
    def loss_name(self) -> str | None:  # type: ignore[override]  # that of what it holds
        return self.metrics[0].loss_name if self.kinds is None else None

    def maximised(self) -> PerOutput:
        if all(metric.maximised() is metric for metric in self.each):
            return self
        made = {id(metric): metric.maximised() for metric in self.metrics}
        metrics, names = tuple([made[id(metric)] for metric in self.metrics]), list(self.names)
        for metric, kind in zip(self.metrics, self.kinds or (), strict=False):
            names[kind] = made[id(metric)].name if metric.lower_is_better else names[kind]
        return replace(self, metrics=metrics, names=tuple(names))

    def of_output(self, output: int) -> Metric:
        return self.metrics[output]

    def of_outputs(self, outputs: Sequence[int]) -> Metric:
        metrics = tuple([self.metrics[m] for m in outputs])
        if self.kinds is not None and len({self.kinds[m] for m in outputs}) > 1:
            kinds, names = tuple([self.kinds[m] for m in outputs]), tuple([self.outputs[m] for m in outputs])
            return PerOutput(metrics, kinds, self.names, names)
        return metrics[0] if all(metric is metrics[0] for metric in metrics) else PerOutput(metrics)

    @entry_point("{class}")
    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        raise InvalidType("metric", problem="each output has its own metric", remedy="bind of_output(m)")


def _few(names: Sequence[str]) -> str:
    return (
        ", ".join(names)
        if len(names) <= _LISTED
        else f"{', '.join(names[: _LISTED - 1])} and {len(names) - _LISTED + 1} more"
    )


def with_positive(metric: Metric, pos_label: Any, several: bool) -> Metric:
    """Return the metric of the positive class, or classes, that a user names.

    Parameters
    ----------
    metric : Metric
    pos_label : object, or list of M objects
        One for all outputs, or one each.
    several : bool
        Whether there are several outputs, or one that is given as a column.

    Examples
    --------
    >>> from metricwise.metrics import FBeta
    >>> from metricwise.metrics.naming import with_positive
    >>> with_positive(FBeta(), "fraud", False).pos_label
    'fraud'
    >>> with_positive(FBeta(), ["fraud", "late"], True).of_output(1).pos_label
    'late'
    """
    column = getattr(pos_label, "ndim", 0) == 1
    given = python_labels(np.asarray(pos_label)) if column else python_label(pos_label)
    labels = list(given) if isinstance(given, (list, tuple)) else [given]
    good = len(labels) > 0 and (several or not isinstance(given, (list, tuple)))
    if not good or not all(isinstance(label, Hashable) and label == label for label in labels):
        raise InvalidParameter(
            "pos_label",
            "be one label or, for a 2-D y, a list with one label for each output",
            shown(given),
            owner="metric",
        )
    made = {label: metric.with_positive(label) for label in labels}
    return made[labels[0]] if len(made) == 1 else PerOutput(tuple(made[label] for label in labels))


def _by_labels(metric: Metric, classes: Classes) -> Iterator[tuple[int, Metric, tuple[Any, ...]]]:
    """Yield an output, its metric and its labels, once for outputs that share both."""
    seen = set()
    for m, labels in enumerate(classes):
        own = metric.of_output(m)
        if (id(own), id(labels)) not in seen:
            seen.add((id(own), id(labels)))
            yield m, own, tuple(python_labels(np.asarray(labels)))


def same_classes(classes: Classes) -> bool:
    """Whether all outputs have the same labels in the same order."""
    distinct = {id(labels): labels for labels in classes}.values()
    return len({tuple(python_labels(np.asarray(labels))) for labels in distinct}) <= 1


def check_same_classes(classes: Classes, remedy: str = "") -> None:
    """Refuse to pool outputs of different classes unasked.

    Parameters
    ----------
    classes : sequence of M label sequences
    remedy : str
        What may be done besides, as a sentence.
    """
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
    """Refuse classes of which nothing says what the metric must know: which is the positive one, or their order.

    Parameters
    ----------
    metric : Metric
    classes : sequence of M label sequences
    """
    if isinstance(metric, PerOutput) and len(metric.metrics) != len(classes):
        raise InvalidParameter(
            "pos_label",
            f"be one label, or one for each of the {len(classes)} outputs",
            len(metric.metrics),
            owner="metric",
        )
    for m, own, labels in _by_labels(metric, classes):
        try:
            own.places(labels)
            own.check_order(labels)
        except InvalidParameter as error:
            raise (error.within(after=f" (output {m})") if len(classes) > 1 else error) from None


def pooled(metric: Metric, classes: Classes) -> tuple[Metric, tuple[Any, ...]]:
    """Return the metric of outputs that are pooled, and the labels to bind it to: those of the widest output.

    Raises
    ------
    ValueError
        If a class that the metric names does not stand at the same position in all outputs.
    """
    groups = list(_by_labels(metric, classes))
    if groups[0][1].reads_labels and not same_classes(classes):
        raise InvalidParameter(
            "metric",
            problem=(
                f"{metric.name} is a function of labels, so outputs with different labels cannot be pooled "
                "by 'micro' or 'instance'"
            ),
            remedy=f"use {argument('average', 'macro')}",
            owner="metric",
        )
    found = {own.places(labels): m for m, own, labels in groups}
    if len(found) > 1:
        (here, first), (there, second) = list(found.items())[:2]
        raise InvalidParameter(
            "",
            problem=(
                "a class given by label must have the same position in all outputs that are pooled by "
                f"'micro' or 'instance', but it is at {_words(here)} in output {first} and at "
                f"{_words(there)} in output {second}"
            ),
            remedy=f"use {argument('average', 'macro')}, or put the classes of all outputs in one order",
            owner=type(groups[0][1]).__name__,
        )
    _, own, labels = max(groups, key=lambda group: len(group[2]))
    return own, labels


def _words(places: tuple[int, ...]) -> str:
    return str(places[0]) if len(places) == 1 else str(list(places))


def positive_places(metric: Metric, classes: Classes) -> NDArray[np.intp] | None:
    """Return the position of the positive class of each output, of shape (M,); None for a metric that has none."""
    found = {}
    for m, own, labels in _by_labels(metric, classes):
        places = own.places(labels)
        if not places:
            return None
        found[id(own), id(classes[m])] = places[0]
    return np.array([found[id(metric.of_output(m)), id(labels)] for m, labels in enumerate(classes)], dtype=np.intp)
