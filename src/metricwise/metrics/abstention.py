"""Metrics of rules that may abstain: one more decision, which is not a class.

Confusions have one more column for it, and are square, (K + 1, K + 1), with an empty last row. An abstention has a
cost, is left out, or counts as a miss. Must not know rows, rules or solvers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.cached import cached_property
from ..core.errors import InvalidParameter, argument, entry_point, mention, shown
from ..core.labels import python_labels
from ..core.matrices import FloatArray, as_shares, prior_limits, with_column
from ..core.params import Parameters
from .base import Form, FractionalLinear, Increasing, Linear, Metric, Traits, Wrapped
from .registry import register

__all__ = ["Abstained", "Abstaining", "Abstention", "Coverage"]

_COST = "a finite number of at least 0"


@dataclass(frozen=True)
class AbstentionCost:
    """What an abstention costs in metrics.

    Without a cost, metrics are those of the accepted rows, or of all rows with abstentions as misses where that is not
    possible.
    """

    cost: float | None = None

    @property
    def said(self) -> bool | float:
        """The value of the parameter `abstain`."""
        return True if self.cost is None else self.cost

    def aim(self, metric: Metric) -> Metric:
        """Return what is maximised: at the cost, or of the accepted rows."""
        return metric._map_outputs(lambda base: _checked(Abstaining(base, self.cost)))

    def beside(self, metric: Metric, aim: Metric) -> Metric:
        """Return a metric that is bounded or recorded beside an aim: abstentions cost nothing in it."""
        traits = [part.traits for part in aim._distinct]
        accepted = self.cost is None and not any(t.prices_abstentions and not t.of_abstentions for t in traits)
        return metric._map_outputs(lambda base: _checked(Abstaining(base, None, accepted)))

    def judge(self, metric: Metric, classes: Sequence[NDArray[Any]]) -> Metric:
        """Return a metric that a rule is evaluated by: at the cost, where it is linear, else as if recorded."""

        def wrap(base: Metric) -> Metric:
            if self.cost is None or base.traits.prices_abstentions:
                return Abstaining(base)
            k = max(map(len, classes))
            bound = base.bind(np.full(k, 1.0 / k), python_labels(max(classes, key=len)))
            return Abstaining(base, self.cost) if isinstance(bound, Linear) else Abstaining(base, None, False)

        return metric if isinstance(metric, Abstaining) else metric._map_outputs(wrap)

    def check(self, metric: Metric, classes: Sequence[NDArray[Any]]) -> None:
        """Refuse a metric, as wrapped above, that does not define a value for abstentions."""
        outputs = {(id(metric._of_output(m)), id(labels)): (m, labels) for m, labels in enumerate(classes)}
        for m, labels in outputs.values():
            k = len(labels)
            metric._of_output(m).bind(np.append(np.full(k, 1.0 / k), 0.0), python_labels(labels))

    def prices(self, metric: Metric) -> bool:
        """Whether an abstention has a cost, so that its frequency need not be bounded."""
        return self.cost is not None or all(part.traits.prices_abstentions for part in metric._distinct)


@dataclass(frozen=True)
class Abstention(Parameters):
    """Cost and label of the abstentions of a rule.

    Can be passed as `abstain`, where a number or True stand for an abstention of that cost with the default label.

    Parameters
    ----------
    cost : float or True, optional
        Cost of an abstention, for linear metrics, as in :func:`metricwise.optimize`. None or True: the metric is
        computed on the accepted rows, and `subject_to` must bound the share of the others.
    label : text, number or boolean, optional
        Label that is predicted for an abstention, which must not be one of the classes; by default "abstain" for text
        classes and -1 for numeric ones.

    See Also
    --------
    metricwise.optimize : Find a rule that may abstain.
    metricwise.make_scorer : Score predictions, some of which are abstentions.

    Examples
    --------
    >>> import metricwise as mw
    >>> proba, y = [0.1, 0.4, 0.45, 0.9], ["no", "no", "yes", "yes"]
    >>> undecided = mw.Abstention(0.2, label="ask a person")
    >>> fixed = mw.Strategy(confusion="expected", recalibrate=False)
    >>> solution = mw.optimize(proba, y, "accuracy", pos_label="yes", abstain=undecided, strategy=fixed)
    >>> solution.rule.predict(proba).tolist()
    ['no', 'ask a person', 'ask a person', 'yes']
    """

    cost: float | bool | None = None
    label: Any = None

    @entry_point("{class}")
    def __post_init__(self) -> None:
        if not (self.cost is None or self.cost is True or _is_cost(self.cost)):
            raise InvalidParameter("cost", f"be None, True, or {_COST}", shown(self.cost))

    @property
    def terms(self) -> AbstentionCost:
        """What an abstention counts for in metrics."""
        return AbstentionCost(None if self.cost is None or self.cost is True else float(self.cost))


def read_abstain(abstain: Any) -> Abstention | None:
    """Read True, a cost, an Abstention, or None or False for rules that never abstain.

    Examples
    --------
    >>> from metricwise.metrics.abstention import read_abstain
    >>> read_abstain(True), read_abstain(0.2), read_abstain(None)
    (Abstention(cost=None, label=None), Abstention(cost=0.2, label=None), None)
    """
    if abstain is None or isinstance(abstain, (bool, np.bool_)):
        return Abstention() if abstain else None
    if isinstance(abstain, Abstention):
        return abstain
    if not _is_cost(abstain):
        must = f"be True, None, or the cost of an abstention, {_COST}"
        raise InvalidParameter("abstain", must, shown(abstain))
    return Abstention(float(abstain))


def _is_cost(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(0 <= value < np.inf)


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
class Abstaining(Wrapped):
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
    Coverage : The share of rows that are decided.

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

    @cached_property
    def traits(self) -> Traits:
        low, high = self.base.range
        if self.cost is None or not np.isfinite([low, high]).all():
            return self.base.traits
        value = float(self.base._price(np.array([[low, high]]), self.cost)[0])
        return replace(self.base.traits, range=(min(low, value), max(high, value)))

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        """Bind the metric to class priors (..., K + 1), the last one 0; see :meth:`Metric.bind`."""
        priors = as_shares(priors)
        if self.cost is not None:
            return self._at_cost(priors, self.cost, classes)
        form = self._of_accepted(priors.shape[-1] - 1, classes)
        return self.base._bind_undecided(priors, classes) if form is None else form

    def _at_cost(self, priors: FloatArray, cost: float, classes: Sequence[Any] | None) -> Linear:
        bound = self.base.bind(priors[..., :-1], classes)
        if not isinstance(bound, Linear):
            raise InvalidParameter(
                "abstain",
                problem=f"a cost of abstaining needs a linear metric, but {self.name} is {bound.traits.family}",
                remedy=(
                    f"set {argument('abstain', True)} and bound how often the rule abstains, as in "
                    f"{argument('subject_to', 'abstained <= 0.05')}"
                ),
                owner="abstain",
            )
        matrix = with_column(bound.A, self.base._price(bound.A, cost))
        return Linear(matrix, prior_limits(matrix, priors))

    def _of_accepted(self, n_classes: int, classes: Sequence[Any] | None) -> Form | None:
        """Return the metric of the accepted rows; None where it is not the same ratio of their counts."""
        if not self.accepted or self.base.traits.prices_abstentions:
            return None
        form = self.base._of_cells(n_classes, classes)
        if isinstance(form, Increasing):
            return replace(form, base=_without_column(form.base))
        return None if form is None else _without_column(form)

    def _of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear | Increasing | None:
        """Return the ratio of cells of confusions with the additional column, of K = `n_classes` classes."""
        if self.cost is not None:
            return None
        accepted = self._of_accepted(n_classes, classes)
        if accepted is None:
            return self.base._of_cells_undecided(n_classes, classes)
        return cast("FractionalLinear | Increasing", accepted)

    def _prior_slopes(self, confusion: FloatArray, classes: Sequence[Any] | None = None) -> FloatArray | None:
        accepted = self.cost is None and self._of_accepted(len(confusion) - 1, classes) is not None
        return np.zeros(len(confusion)) if accepted else None

    def value(self, confusion: ArrayLike) -> FloatArray:
        """Return the metric of confusions of shape (..., K, K + 1), or with an empty last row."""
        return super().value(_square(confusion))

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        """Return the slopes at confusions (..., K, K + 1), or with an empty last row, in that shape."""
        confusion = np.asarray(confusion, dtype=np.float64)
        return super().gradient(_square(confusion))[..., : confusion.shape[-2], :]


class _OfAbstentions(Metric):
    """A metric of how often a rule abstains, linear in the column of abstentions."""

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Linear:
        raise InvalidParameter(
            "metric",
            problem="only for rules that may abstain",
            remedy=f"set {argument('abstain', True)}, or to the cost of an abstention",
            owner=self.name,
        )


@register("abstained", listed=False)
@dataclass(frozen=True, eq=False)
class Abstained(_OfAbstentions):
    """Share of abstentions, ``sum_i C[i, K]`` of confusion matrices with an additional column.

    Range [0, 1]. It has no 0/0. It is for rules that may abstain, to be bounded or recorded; as an aim it is minimised,
    subject to a bound on another metric.

    See Also
    --------
    Coverage : The share of the other rows.
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

    traits = Traits(
        name="abstained",
        family="linear",
        concave=True,
        fixed_form=True,
        lower_is_better=True,
        of_abstentions=True,
        prices_abstentions=True,
        degenerate=(
            "The share of abstentions alone is lowest if every row is decided; bound another metric with subject_to, "
            "such as 'accuracy >= 0.9', or bound the share of abstentions under another metric."
        ),
    )

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Linear:
        k = as_shares(priors).shape[-1] - 1
        return Linear(with_column(np.zeros((k, k)), 1.0), (0.0, 1.0))


@register("coverage", listed=False)
@dataclass(frozen=True, eq=False)
class Coverage(_OfAbstentions):
    """Share of rows that are decided, ``sum_ij C[i, j]`` over classes j: 1 minus the share of abstentions.

    Range [0, 1]. It has no 0/0. It is for rules that may abstain: maximised subject to a bound on a metric of the
    decided rows, or bounded or recorded itself. It is neither the coverage of an interval nor that of labels
    (:class:`LabelCoverage`).

    See Also
    --------
    Abstained : The share of the other rows.
    Abstaining : How abstentions count in other metrics.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> solution = mw.optimize(p, y, "coverage", abstain=True, subject_to="accuracy >= 0.9")
    >>> decided = solution.rule.predict(p) != -1
    >>> bool(np.isclose(decided.mean(), solution.value)), bool((solution.rule.predict(p) == y)[decided].mean() > 0.9)
    (True, True)
    """

    traits = Traits(
        name="coverage",
        family="linear",
        concave=True,
        fixed_form=True,
        of_abstentions=True,
        prices_abstentions=True,
        degenerate=(
            "Coverage alone is highest if every row is decided; bound another metric with subject_to, such as "
            "'accuracy >= 0.9', or bound the coverage under another metric."
        ),
    )

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Linear:
        k = as_shares(priors).shape[-1] - 1
        return Linear(with_column(np.ones((k, k)), 0.0), (0.0, 1.0))


def _without_column(form: Form) -> FractionalLinear:
    """Return a ratio in which abstentions do not count."""
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


def _checked(metric: Abstaining) -> Abstaining:
    """Refuse a cost for a metric that defines the cost of an abstention itself."""
    traits = metric.base.traits
    if metric.cost is not None and traits.of_abstentions:
        raise InvalidParameter(
            "abstain",
            problem=f"{metric.name} is the share of rows that are {'not ' if traits.lower_is_better else ''}decided, "
            "so an abstention has no other cost in it",
            remedy=f"set {argument('abstain', True)}",
            owner="abstain",
        )
    if metric.cost is not None and traits.prices_abstentions:
        raise InvalidParameter(
            "abstain",
            problem=f"the table of {metric.name} already includes the cost of abstaining",
            remedy=f"set {argument('abstain', True)}, or use a table of shape (K, K)",
            owner="abstain",
        )
    return metric
