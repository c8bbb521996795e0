"""What the user is judged by: a metric, its average over outputs, and what outputs weigh.

Owns the step from the metric, as it was meant, to the objective of given class priors: groups of outputs, weights by
support, binding. Must not know rows or solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .averages import Grouping, group_outputs
from .base import Metric
from .naming import positive_places
from .objective import Objective, make_objective

__all__ = ["Aim"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Classes = Sequence[Sequence[Any] | NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Aim:
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
        What the user should know of how the metric was read.
    least : bool, default=False
        Whether the value is the least of those that are averaged, instead of their mean.

    See Also
    --------
    metricwise.metrics.resolve : Find the metric and the average of a name.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.metrics import FBeta
    >>> from metricwise.metrics.aim import Aim
    >>> C = np.array([[[0.5, 0.1], [0.1, 0.3]], [[0.6, 0.0], [0.2, 0.2]]])
    >>> aim = Aim(FBeta(), "macro", np.ones(2))
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

    def maximised(self) -> Aim:
        """Return the aim of which more is better: that of minus a loss."""
        metric = self.metric.maximised()
        return self if metric is self.metric else replace(self, metric=metric, name=metric.name)

    def of_outputs(self, outputs: IntArray) -> Aim:
        """Return the aim for some of the outputs, given by position."""
        positive = None if self.positive is None else self.positive[outputs]
        metric = self.metric.of_outputs(outputs.tolist())
        return replace(
            self,
            metric=metric,
            output_weight=self.output_weight[outputs],
            positive=positive,
            parts=None if self.parts is None else self.parts[outputs],
            loss=None if self.loss is None else self.loss[outputs],
        )

    def tiled(self, n_outputs: int, times: int) -> Aim:
        """Return the aim for all of M outputs, repeated a number of times; outputs are pooled within each repetition
        only.

        Every repetition counts equally: the value is the mean over them.
        """
        outputs = np.tile(np.arange(n_outputs), times)
        if self.average == "macro":
            own = self.parts
        else:
            own = np.zeros(n_outputs, dtype=np.intp) if n_outputs > 1 else None
        parts, loss = (_tiled(numbers, times) for numbers in (own, self.loss))
        return replace(self.of_outputs(outputs), average="macro", parts=parts, loss=loss)

    def by_group(self, n_groups: int, *, aware: bool, worst: bool) -> Aim:
        """Return the aim for all of M outputs once for every sensitive group, whose rows are parts of them.

        Parameters
        ----------
        aware : bool
            Whether rows of different groups may follow different losses.
        worst : bool
            Whether the worst group is what counts, instead of all of them pooled.
        """
        n_outputs = len(self.output_weight)
        outputs = np.tile(np.arange(n_outputs), n_groups)
        own = replace(self.of_outputs(outputs), parts=outputs, loss=None if aware else outputs)
        if not worst:
            return own
        return replace(own, average="macro", parts=np.repeat(np.arange(n_groups), n_outputs), least=True)

    def grouping(
        self, priors: FloatArray, weight: FloatArray, n_classes: IntArray, classes: Classes | None = None
    ) -> Grouping:
        """Return which outputs are pooled, and what they weigh, for outputs of these priors; see :meth:`bind`."""
        alpha = self.output_weight
        if self.support_weighted:
            own = None if classes is None else positive_places(self.metric, classes)
            places = own if own is not None else self.positive
            places = np.ones(len(alpha), dtype=np.intp) if places is None else places
            support = alpha * weight * priors[np.arange(len(alpha)), places]
            if self.parts is not None:
                support = np.bincount(self.parts, support).astype(np.float64)[self.parts]
            alpha = support if support.sum() > 0 else alpha
        found = group_outputs(self.average, weight, n_classes, alpha, self.parts, self.loss)
        return replace(found, least=True) if self.least else found

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

        Parameters
        ----------
        priors : ndarray of shape (M, K)
        weight : ndarray of shape (M,)
            n_m, the weight of the observed labels of each output.
        n_classes : ndarray of shape (M,), int
        classes : sequence of M label sequences, optional
            What a class given by label refers to.
        frozen : ndarray of shape (M,), bool, optional
            Outputs that keep argmax.
        pad : callable, optional
            Function from the grouping to the confusion (G, K, K) that is added to that of every rule.

        Returns
        -------
        Objective
        """
        grouping = self.grouping(priors, weight, n_classes, classes)
        padding = None if pad is None else pad(grouping)
        return make_objective(self.metric, grouping, priors, n_classes, classes=classes, frozen=frozen, padding=padding)


def _tiled(numbers: IntArray | None, times: int) -> IntArray | None:
    """Repeat numbers (M,) so many times, every time with others."""
    if numbers is None:
        return None
    return np.asarray(np.arange(times)[:, None] * (numbers.max() + 1) + numbers, dtype=np.intp).reshape(-1)
