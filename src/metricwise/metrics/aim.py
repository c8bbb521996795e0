"""A metric with its average over outputs and the weights of the outputs, and how it is bound to class priors.

Must not know rows or solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.labels import python_labels
from ..core.matrices import FloatArray
from .averages import Grouping, group_outputs
from .base import Metric
from .naming import pooled, positive_places
from .objective import Objective

__all__ = ["AveragedMetric", "make_objective"]

IntArray = NDArray[np.intp]
Classes = Sequence[Sequence[Any] | NDArray[Any]]


@dataclass(frozen=True, eq=False)
class AveragedMetric:
    """A metric, its average over outputs, and the weights of the outputs.

    Parameters
    ----------
    metric : Metric
        The metric of one confusion matrix, not bound.
    average : {"micro", "macro", "instance"}
        The average over outputs.
    output_weight : ndarray of shape (M,)
        Weights alpha_m of the outputs.
    support_weighted : bool, default=False
        Whether outputs are also weighted by their share of positives, as by scikit-learn's "weighted" for multilabel
        targets.
    positive : ndarray of shape (M,), optional
        If so, the positive class of each output, for metrics that do not name one; by default, the last of two.
    name : str, default=""
        The name that the user gave.
    parts, loss : ndarray of shape (M,), int, optional
        Which outputs are parts of one, and which follow one loss; see
        :func:`metricwise.metrics.averages.group_outputs`.
    note : str, default=""
        A note for the user about how the metric was read.
    least : bool, default=False
        Whether the value is the least of those that are averaged, instead of their mean.

    See Also
    --------
    metricwise.metrics.resolve : Find the metric and the average of a name.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.metrics import FBeta
    >>> from metricwise.metrics.aim import AveragedMetric
    >>> C = np.array([[[0.5, 0.1], [0.1, 0.3]], [[0.6, 0.0], [0.2, 0.2]]])
    >>> aim = AveragedMetric(FBeta(), "macro", np.ones(2))
    >>> round(aim.bind(C.sum(axis=2), np.array([10.0, 10.0]), np.array([2, 2])).value(C), 4)
    0.7083
    """

    metric: Metric
    average: str
    output_weight: FloatArray
    support_weighted: bool = False
    positive: IntArray | None = None
    name: str = ""
    parts: IntArray | None = None
    loss: IntArray | None = None
    least: bool = False
    note: str = ""

    def maximised(self) -> AveragedMetric:
        """Return the aim of which more is better: that of minus a loss."""
        metric = self.metric._maximised()
        return self if metric is self.metric else replace(self, metric=metric, name=metric.name)

    def of_outputs(self, outputs: IntArray) -> AveragedMetric:
        """Return the aim for some of the outputs, given by position."""
        positive = None if self.positive is None else self.positive[outputs]
        metric = self.metric._of_outputs(outputs.tolist())
        return replace(
            self,
            metric=metric,
            output_weight=self.output_weight[outputs],
            positive=positive,
            parts=None if self.parts is None else self.parts[outputs],
            loss=None if self.loss is None else self.loss[outputs],
        )

    def tiled(self, n_outputs: int, times: int) -> AveragedMetric:
        """Return the aim for M outputs, repeated a number of times: the mean over the repetitions."""
        outputs = np.tile(np.arange(n_outputs), times)
        pooled_parts = np.zeros(n_outputs, dtype=np.intp) if n_outputs > 1 else None
        of_one = self.parts if self.average == "macro" else pooled_parts
        parts, loss = (_tiled(numbers, times) for numbers in (of_one, self.loss))
        return replace(self.of_outputs(outputs), average="macro", parts=parts, loss=loss)

    def by_group(self, n_groups: int, *, aware: bool, worst: bool) -> AveragedMetric:
        """Return the aim for M outputs once for every sensitive group, whose rows are parts of them.

        Rows of different groups may follow different losses if it is group-`aware`; the value is that of all groups
        pooled, or of the `worst`.
        """
        n_outputs = len(self.output_weight)
        outputs = np.tile(np.arange(n_outputs), n_groups)
        pooled_groups = replace(self.of_outputs(outputs), parts=outputs, loss=None if aware else outputs)
        if not worst:
            return pooled_groups
        return replace(pooled_groups, average="macro", parts=np.repeat(np.arange(n_groups), n_outputs), least=True)

    def grouping(
        self, priors: FloatArray, weight: FloatArray, n_classes: IntArray, classes: Classes | None = None
    ) -> Grouping:
        """Return which outputs are pooled, and their weights, at these priors; see :meth:`bind`."""
        alpha = self.output_weight
        if self.support_weighted:
            named = None if classes is None else positive_places(self.metric, classes)
            places = named if named is not None else self.positive
            places = np.ones(len(alpha), dtype=np.intp) if places is None else places
            support = alpha * weight * priors[np.arange(len(alpha)), places]
            if self.parts is not None:
                support = np.bincount(self.parts, support).astype(np.float64)[self.parts]
            alpha = support if support.sum() > 0 else alpha
        grouping = group_outputs(self.average, weight, n_classes, alpha, self.parts, self.loss)
        return replace(grouping, least=True) if self.least else grouping

    def bind(
        self,
        priors: FloatArray,
        weight: FloatArray,
        n_classes: IntArray,
        classes: Classes | None = None,
        *,
        frozen: NDArray[np.bool_] | None = None,
        pad: Callable[[Grouping], FloatArray | None] | None = None,
    ) -> Objective:
        """Bind the metric to class priors.

        `weight` n_m (M,) is that of the observed labels of each output; outputs that are `frozen` keep argmax; `pad`
        returns the confusion (G, K, K) that is added to that of every rule.
        """
        grouping = self.grouping(priors, weight, n_classes, classes)
        padding = None if pad is None else pad(grouping)
        return make_objective(self.metric, grouping, priors, n_classes, classes=classes, frozen=frozen, padding=padding)


def _tiled(numbers: IntArray | None, times: int) -> IntArray | None:
    """Repeat numbers (M,), with other numbers in each repetition."""
    if numbers is None:
        return None
    return np.asarray(np.arange(times)[:, None] * (numbers.max() + 1) + numbers, dtype=np.intp).reshape(-1)


def make_objective(
    metric: Metric,
    grouping: Grouping,
    priors: FloatArray,
    n_classes: IntArray,
    *,
    classes: Sequence[Sequence[Any] | NDArray[Any]] | None = None,
    frozen: NDArray[np.bool_] | None = None,
    padding: FloatArray | None = None,
) -> Objective:
    """Bind a metric to the pooled priors of each group; priors (M, K) and `classes` are those of each output."""
    shares = grouping.pool(priors)
    if padding is not None:
        shares = (shares + padding.sum(axis=2)) / (1.0 + padding.sum(axis=(1, 2))[:, None])
    metrics, labels = _by_group(metric, grouping, classes)
    batches: dict[tuple[Any, ...], list[int]] = {}
    for g, key in enumerate(zip(grouping.n_classes.tolist(), labels, map(id, metrics), strict=True)):
        batches.setdefault(key, []).append(g)
    bound = []
    for (k, names, _), members in batches.items():
        groups = np.array(members, dtype=np.intp)
        # A single group is bound without the axis of a stack, so that a metric may reject what it can name.
        stack = shares[groups, :k] if len(groups) > 1 else shares[groups[0], :k]
        rows = grouping.total[groups] if len(groups) > 1 else grouping.total[groups[0]]
        bound.append((groups, metrics[members[0]]._of_rows(rows).bind(stack, names)))
    frozen = np.zeros(len(n_classes), dtype=bool) if frozen is None else frozen
    return Objective(metric, metrics, grouping, shares, labels, tuple(bound), n_classes, frozen, padding)


def _by_group(
    metric: Metric, grouping: Grouping, classes: Sequence[Sequence[Any] | NDArray[Any]] | None
) -> tuple[tuple[Metric, ...], tuple[tuple[Any, ...] | None, ...]]:
    """Return the metric of each group, and the labels that it is bound to."""
    groups, outputs = grouping.group, grouping.first
    if classes is None:
        return tuple([metric._of_output(m) for m in outputs]), (None,) * len(outputs)
    made: dict[Any, tuple[Metric, tuple[Any, ...]]] = {}
    if np.count_nonzero(groups >= 0) == len(outputs) and (len(outputs) > 1 or len(groups) == 1):  # one output each
        members = [[m] for m in outputs]
    else:
        members = [np.flatnonzero(groups == g).tolist() for g in range(grouping.n_groups)]
    by_group = []
    for group in members:
        key = (*(id(metric._of_output(m)) for m in group), *(id(classes[m]) for m in group))
        if key not in made:
            made[key] = _of_group(metric, group, classes)
        by_group.append(made[key])
    return tuple([of_group for of_group, _ in by_group]), tuple([names for _, names in by_group])


def _of_group(
    metric: Metric, outputs: list[int], classes: Sequence[Sequence[Any] | NDArray[Any]]
) -> tuple[Metric, tuple[Any, ...]]:
    """Return the metric of the outputs of one group, and the labels that it is bound to."""
    if len(outputs) == 1:
        return metric._of_output(outputs[0]), tuple(python_labels(np.asarray(classes[outputs[0]])))
    return pooled(metric._of_outputs(outputs), [classes[m] for m in outputs])
