"""Classes of models together with those that occur in labels. Must not import scikit-learn."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ..data.labels import observed_labels
from ..goals.for_outputs import are_for_outputs
from ..goals.spec import GoalSpec
from ..metrics.naming import same_classes

__all__ = ["joined_classes"]


def joined_classes(
    classes: tuple[NDArray[Any], ...], observed: tuple[NDArray[Any], ...], goal: GoalSpec
) -> list[NDArray[Any]]:
    """Return the classes of each output and those observed in it; outputs that a goal pools share theirs."""
    pools = goal.average != "macro" and not are_for_outputs(goal.metric)
    if pools and same_classes(classes):
        pooled = [label for labels in observed for label in labels.tolist()]
        return [_joined(classes[0], pooled)] * len(classes)
    return [_joined(labels, others.tolist()) for labels, others in zip(classes, observed, strict=True)]


def _joined(classes: NDArray[Any], observed: list[Any]) -> NDArray[Any]:
    """Return the classes with the observed ones that are not among them, in order."""
    if set(observed) <= set(classes.tolist()):
        return classes
    return observed_labels([*classes.tolist(), *observed]).classes[0]
