"""Metrics of rules that may abstain: one more decision, which is no class.

Owns what an abstention counts for, as a metric of confusions with one more column: at a cost, of the accepted rows
only, or as a miss; and the share of the rows abstained. Must not know data, rules or solvers.

Confusions are square here, (K + 1, K + 1): the last row, of a class that the extra decision would be right for, is
empty, and what metrics hold there counts nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InvalidParameter, argument, mention
from ..core.labels import python_labels
from ._common import FloatArray, as_shares, prior_limits, with_column
from .base import FractionalLinear, Increasing, Linear, Metric
from .naming import PerOutput

__all__ = ["Abstained", "Abstaining", "AbstentionCost", "check_pooled"]


@dataclass(frozen=True)
class AbstentionCost:
    """What a rule may do besides naming a class, and what that counts for.

    Parameters
    ----------
    cost : float or None
        What an abstention costs; None: metrics are those of the accepted rows, where they can be, and of all rows with
        abstentions as misses where not.
    """

    cost: float | None = None

    @property
    def said(self) -> bool | float:
        """As users say it."""
        return True if self.cost is None else self.cost

    def aim(self, metric: Metric) -> Metric:
        """Return what is maximised: at the cost, or of the accepted rows."""
        return _wrapped(metric, lambda one: _checked(Abstaining(one, self.cost)))

    def beside(self, metric: Metric, aim: Metric) -> Metric:
        """Return what is bounded or recorded beside an aim, as it was given: abstentions cost nothing in it."""
        accepted = self.cost is None and not any(one.priced and not one.of_abstentions for one in aim.each)
        return _wrapped(metric, lambda one: _checked(Abstaining(one, None, accepted)))

    def judge(self, metric: Metric, classes: Sequence[NDArray[Any]]) -> Metric:
        """Return a metric that a rule is judged by: at the cost, where it is linear, else as what is recorded."""

        def made(one: Metric) -> Metric:
            if self.cost is None or one.priced:
                return Abstaining(one)
            k = max(map(len, classes))
            bound = one.bind(np.full(k, 1.0 / k), python_labels(max(classes, key=len)))
            return Abstaining(one, self.cost) if isinstance(bound, Linear) else Abstaining(one, None, False)

        return metric if isinstance(metric, Abstaining) else _wrapped(metric, made)

    def check(self, metric: Metric, classes: Sequence[NDArray[Any]]) -> None:
        """Refuse a metric, as one of the two above has made it, in which abstentions have no place."""
        for own, labels in {(id(metric.of_output(m)), id(own)): (m, own) for m, own in enumerate(classes)}.values():
            k = len(labels)
            metric.of_output(own).bind(np.append(np.full(k, 1.0 / k), 0.0), python_labels(labels))

    def prices(self, metric: Metric) -> bool:
        """Whether an abstention has a cost, so that nothing else need bound how often a rule abstains."""
        return self.cost is not None or all(one.priced for one in metric.each)


def check_pooled(average: str, n_classes: ArrayLike) -> None:
    """Refuse to pool outputs of different numbers of classes: abstentions of one would be a class of another."""
    if average != "macro" and len(np.unique(n_classes)) > 1:
        raise InvalidParameter(
            "abstain",
            problem=(
                f"{mention('abstain')} needs {argument('average', 'macro')} if outputs have different "
                f"numbers of classes, got {average!r}"
            ),
            remedy="pooled by position, abstentions of one output would be a class of another",
        )


@dataclass(frozen=True, eq=False)
class Abstaining(Metric):
    """A metric of rules that may abstain, as a function of confusion matrices with an additional column.

    With a cost, for linear metrics: the value of an abstention is that of a right decision minus the cost. In accuracy,
    its weighted and balanced forms and recalls, the cost is a fraction of what the worst decision about the row would
    lose: 0 is as good as a right decision, 1 as bad as a wrong one. On an ordered scale it is a fraction of the whole
    scale, in a table of costs an amount like the others.

    Without a cost, the metric is that of the accepted rows if it is a ratio of counts: accuracy, precision, recall, F,
    Jaccard, costs, closeness on a scale. Otherwise, or if `accepted` is False, abstentions are misses: neither right
    nor predicted as any class, like an additional predicted label in scikit-learn.

    Parameters
    ----------
    base : Metric
        The metric of K classes.
    cost : float, optional
        Cost of an abstention.
    accepted : bool, default=True
        Whether abstentions are left out, if the metric allows it and defines no cost for them.

    See Also
    --------
    Abstained : The share of abstentions.

    References
    ----------
    .. [1] Chow (1970), "On Optimum Recognition Error and Reject Tradeoff", IEEE Transactions on Information Theory.
    .. [2] El-Yaniv, Wiener (2010), "On the Foundations of Noise-free Selective Classification", JMLR.

    Examples
    --------
    >>> import metricwise as mw
    >>> C = [[0.5, 0.125, 0.125], [0.0, 0.125, 0.125]]  # the last column is abstained
    >>> round(float(mw.metrics.Abstaining(mw.metrics.Accuracy()).value(C)), 4)  # of 0.75 of the rows
    0.8333
    >>> float(mw.metrics.Abstaining(mw.metrics.Accuracy(), cost=0.25).value(C))
    0.8125
    >>> float(mw.metrics.Abstaining(mw.metrics.BalancedAccuracy()).value(C))  # misses
    0.5833333333333333
    """

    base: Metric
    cost: float | None = None
    accepted: bool = True

    @property
    def name(self) -> str:  # type: ignore[override]  # that of what it holds
        return self.base.name

    @property
    def family(self) -> str:  # type: ignore[override]  # likewise
        return self.base.family

    @property
    def concave(self) -> bool:  # type: ignore[override]  # likewise
        return self.base.concave

    @property
    def smooth(self) -> bool:  # type: ignore[override]  # likewise
        return self.base.smooth

    @property
    def by_class(self) -> bool:  # type: ignore[override]  # likewise
        return self.base.by_class

    @property
    def lower_is_better(self) -> bool:  # type: ignore[override]  # likewise
        return self.base.lower_is_better

    @property
    def of_abstentions(self) -> bool:  # type: ignore[override]  # likewise
        return self.base.of_abstentions

    def class_metric(self) -> Metric | None:
        return self.base.class_metric()

    @property
    def loss_name(self) -> str | None:  # type: ignore[override]  # likewise
        return self.base.loss_name

    @property
    def degenerate(self) -> str | None:
        return self.base.degenerate

    @property
    def range(self) -> tuple[float, float]:
        low, high = self.base.range
        if self.cost is None or not np.isfinite([low, high]).all():
            return low, high
        worth = float(self.base.price(np.array([[low, high]]), self.cost)[0])
        return min(low, worth), max(high, worth)

    @property
    def priced(self) -> bool:
        return self.base.priced

    @property
    def wants_positive(self) -> bool:
        return self.base.wants_positive

    def with_positive(self, label: Any) -> Abstaining:
        return replace(self, base=self.base.with_positive(label))

    def places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return self.base.places(classes)

    def check_order(self, classes: Sequence[Any]) -> None:
        self.base.check_order(classes)

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        """Bind the metric to class priors (..., K + 1), the last one 0; see :meth:`Metric.bind`."""
        priors = as_shares(priors)
        if self.cost is not None:
            return self._at_cost(priors, self.cost, classes)
        form = self._of_accepted(priors.shape[-1] - 1, classes)
        return self.base.bind_undecided(priors, classes) if form is None else form

    def _at_cost(self, priors: FloatArray, cost: float, classes: Sequence[Any] | None) -> Linear:
        bound = self.base.bind(priors[..., :-1], classes)
        if not isinstance(bound, Linear):
            raise InvalidParameter(
                "abstain",
                problem=f"a cost of abstaining needs a linear metric, but {self.name} is {bound.family}",
                remedy=(
                    f"set {argument('abstain', True)} and bound how often the rule abstains, as in "
                    f"{argument('subject_to', 'abstained <= 0.05')}"
                ),
                owner="abstain",
            )
        matrix = with_column(bound.A, self.base.price(bound.A, cost))
        return Linear(matrix, prior_limits(matrix, priors))

    def _of_accepted(self, n_classes: int, classes: Sequence[Any] | None) -> Metric | None:
        """Return the metric of the rows that are not abstained; None where it is not the same ratio of theirs."""
        counts = self.accepted and not self.base.priced
        form = self.base.of_cells(n_classes, classes) if counts else None
        if isinstance(form, Increasing):
            return replace(form, base=_without_column(form.base))
        return None if form is None else _without_column(form)

    def prior_slopes(self, confusion: FloatArray, classes: Sequence[Any] | None = None) -> FloatArray | None:
        accepted = self.cost is None and self._of_accepted(len(confusion) - 1, classes) is not None
        return np.zeros(len(confusion)) if accepted else None

    def value(self, confusion: ArrayLike) -> FloatArray:
        """Return the metric of confusions of shape (..., K, K + 1), or with an empty last row."""
        return super().value(_square(confusion))

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        """Return the slopes at confusions (..., K, K + 1), or with an empty last row, in that shape."""
        confusion = np.asarray(confusion, dtype=np.float64)
        return super().gradient(_square(confusion))[..., : confusion.shape[-2], :]


@dataclass(frozen=True, eq=False)
class Abstained(Metric):
    """Share of abstentions, ``sum_i C[i, K]`` of confusion matrices with an additional column.

    Range [0, 1]. It has no 0/0. It is for rules that may abstain, to be bounded or recorded; as an aim it is minimised,
    subject to a bound on another metric.

    See Also
    --------
    Abstaining : How abstentions count in other metrics.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> y = (rng.random(500) < p).astype(int)
    >>> solution = mw.optimize(p, y, "accuracy", abstain=0.3, record=["abstained"])
    >>> bool(0.2 < solution.recorded["abstained"].value < 0.5)
    True
    """

    name: ClassVar[str] = "abstained"
    family: ClassVar[str] = "linear"
    concave: ClassVar[bool] = True
    lower_is_better: ClassVar[bool] = True
    of_abstentions: ClassVar[bool] = True

    @property
    def priced(self) -> bool:
        return True

    @property
    def degenerate(self) -> str:
        return (
            "The share of abstentions alone is lowest if every row is decided; bound another metric with subject_to, "
            "such as 'accuracy >= 0.9', or bound the share of abstentions under another metric."
        )

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Linear:
        raise InvalidParameter(
            "metric",
            problem="only for rules that may abstain",
            remedy=f"set {argument('abstain', True)}, or to the cost of an abstention",
            owner="abstained",
        )

    def bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Linear:
        k = as_shares(priors).shape[-1] - 1
        return Linear(with_column(np.zeros((k, k)), 1.0), (0.0, 1.0))

    def prior_slopes(self, confusion: FloatArray, classes: Sequence[Any] | None = None) -> FloatArray:
        return np.zeros(len(confusion))


def _without_column(form: Metric) -> FractionalLinear:
    """Return a ratio to which rows that are abstained add nothing."""
    assert isinstance(form, FractionalLinear)
    zero = 0.0 if form.zero_division is None else form.zero_division  # where all are
    return FractionalLinear(with_column(form.A, 0.0), with_column(form.B, 0.0), zero, form.range)


def _square(confusion: ArrayLike) -> FloatArray:
    confusion = np.asarray(confusion, dtype=np.float64)
    missing = confusion.shape[-1] - confusion.shape[-2]
    if missing not in (0, 1):
        raise InvalidParameter(
            "confusion",
            problem=f"a confusion must have shape (..., K, K + 1), got {confusion.shape}",
            owner="Abstaining",
        )
    return np.pad(confusion, [(0, 0)] * (confusion.ndim - 2) + [(0, missing), (0, 0)])


def _wrapped(metric: Metric, wrap: Callable[[Metric], Metric]) -> Metric:
    """Wrap a metric, or that of each output; those that are one object stay one."""
    if not isinstance(metric, PerOutput):
        return wrap(metric)
    made = {id(one): wrap(one) for one in metric.metrics}
    return replace(metric, metrics=tuple([made[id(one)] for one in metric.metrics]))


def _checked(metric: Abstaining) -> Abstaining:
    """Refuse metrics in which abstentions have no place before any row is looked at."""
    if not (metric.cost is None or not metric.base.priced):
        raise InvalidParameter(
            "abstain",
            problem=f"the table of {metric.name} already includes the cost of abstaining",
            remedy=f"set {argument('abstain', True)}, or use a table of shape (K, K)",
            owner="abstain",
        )
    return metric
