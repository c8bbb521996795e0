"""Linear metrics ``<A, C>``: each row of data is worth what its true and predicted class say.

Some of them are linear only once bound to the class priors. The best rule has a closed form, the loss -A.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..core.cached import cached_property
from ..core.errors import InvalidParameter, argument, entry_point, mention, shown
from ..core.labels import python_label
from ..core.matrices import (
    EMPTY,
    FloatArray,
    as_shares,
    check_matrix,
    check_size,
    diagonal_plus_columns,
    divide,
    prior_limits,
    with_column,
)
from .base import FractionalLinear, Linear, Metric, Traits
from .one_vs_rest import ClassRatio, Terms, averaged
from .parameters import check_finite, class_weights, order_places, ranks, require_order, weight_places
from .registry import register
from .row_forms import RatioMean, mean_of_recalls

__all__ = [
    "Accuracy",
    "BalancedAccuracy",
    "Cost",
    "FalsePositiveRate",
    "Ordinal",
    "PredictedShare",
    "Recall",
    "Specificity",
    "SquaredOrdinal",
    "WeightedAccuracy",
    "WeightedExponential",
]


class _LinearMetric(Metric):
    """Base of the linear metrics; subclasses implement :meth:`matrix`."""

    def matrix(self, priors: FloatArray, classes: Sequence[Any] | None) -> FloatArray:
        """Return A at these priors, of shape (K, K) or (..., K, K)."""
        raise NotImplementedError

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Linear:
        priors = as_shares(priors)
        matrix = self.matrix(priors, classes)
        return Linear(matrix, prior_limits(matrix, priors))

    def _of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear | None:
        if not self.traits.fixed_form:
            return None
        return Linear(self.matrix(np.full(n_classes, 1.0 / n_classes), classes)).as_ratio()


class _HitsOnly(_LinearMetric):
    """Base of the linear metrics by which all errors about a class are alike, so that an undecided row is one."""

    def _class_metric(self) -> Metric:
        return Recall(index=1)  # of which it is a weighted mean

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Linear:
        priors = as_shares(priors)
        decided = self.matrix(priors[..., :-1], classes)
        matrix = with_column(decided, decided.min(axis=-1))
        return Linear(matrix, prior_limits(matrix, priors))


@register("accuracy", "hamming_accuracy")
@dataclass(frozen=True, eq=False)
class Accuracy(_HitsOnly):
    """Accuracy, ``sum_i C[i, i]``; for a multilabel problem, averaged over outputs, it is the Hamming accuracy.

    Range [0, 1]. It has no 0/0.

    See Also
    --------
    BalancedAccuracy : Mean recall of the classes.
    WeightedAccuracy : Accuracy with a weight per class.
    sklearn.metrics.accuracy_score : The metric of labels.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.Accuracy().value([[0.5, 0.25], [0.0, 0.25]]))
    0.75
    """

    traits = Traits(name="accuracy", family="linear", concave=True, fixed_form=True)

    def matrix(self, priors: FloatArray, classes: Sequence[Any] | None) -> FloatArray:
        return np.eye(priors.shape[-1])


@register("weighted_accuracy", needs="class_weight", example="WeightedAccuracy(class_weight=[1, 3])")
@dataclass(frozen=True, eq=False)
class WeightedAccuracy(_HitsOnly):
    """Accuracy with a weight per class, ``sum_i w_i C[i, i]``.

    Range [0, max w]. It has no 0/0. The weights are used as given: they are not scaled to sum to 1.

    Parameters
    ----------
    class_weight : array-like of shape (K,) or dict
        Weights w by position, or by label (1 for a label that is not in the dict).

    See Also
    --------
    Accuracy : All classes with weight 1.
    Cost : A cost for each pair of true and predicted class.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.WeightedAccuracy([1.0, 3.0]).value([[0.5, 0.25], [0.0, 0.25]]))
    1.25
    """

    class_weight: ArrayLike | Mapping[Any, float]

    @cached_property
    def traits(self) -> Traits:
        weights = [1.0, *self.class_weight.values()] if isinstance(self.class_weight, Mapping) else self.class_weight
        limits = (0.0, float(np.max(weights, initial=0.0)))
        return Traits(name="weighted_accuracy", family="linear", range=limits, concave=True, fixed_form=True)

    @entry_point("{class}")
    def _places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return weight_places(self.class_weight, classes)

    @entry_point("{class}")
    def matrix(self, priors: FloatArray, classes: Sequence[Any] | None) -> FloatArray:
        return np.diag(class_weights(self.class_weight, priors.shape[-1], classes))


@register("weighted_exponential")
@dataclass(frozen=True, eq=False)
class WeightedExponential(_HitsOnly):
    """Accuracy with weights that decay from class to class, ``sum_i e^(-gamma i) C[i, i]``, i = f..f + K - 1.

    Range [0, e^(-gamma f)] for gamma >= 0. It has no 0/0. The first index f scales all values and does not change the
    best rule.

    Parameters
    ----------
    gamma : float, default=0.5
        Rate at which the weights decay.
    order : sequence of K labels, optional
        The classes from the lowest to the highest. None: the `order` of the call, or that of an ordered categorical;
        else numbers and dates are ordered by value, and text labels raise an error.
    first_index : int, default=1
        The index f of the first class: 1 as in the paper; with 0, the first class has weight 1.

    See Also
    --------
    WeightedAccuracy : Accuracy with arbitrary class weights.

    Notes
    -----
    The values that the paper reports for "Weighted 1/2" are those of ``gamma=2, first_index=0``: its 1/2 is a scale,
    ``e^(-i / (1/2))``, not a rate. See the reproduction of its experiments.

    References
    ----------
    .. [1] Wang et al. (2019), "Consistent Classification with Generalized Metrics".

    Examples
    --------
    >>> import metricwise as mw
    >>> C = [[0.5, 0.25], [0.0, 0.25]]
    >>> round(float(mw.metrics.WeightedExponential().value(C)), 6)
    0.395235
    >>> round(float(mw.metrics.WeightedExponential(gamma=2, first_index=0).value(C)), 6)
    0.533834
    """

    gamma: float = 0.5
    order: Sequence[Any] | None = None
    first_index: int = 1

    @entry_point("{class}")
    def __post_init__(self) -> None:
        check_finite(self.gamma, "gamma")
        if not float(self.first_index).is_integer():
            raise InvalidParameter("first_index", "be an integer", repr(self.first_index))

    @cached_property
    def traits(self) -> Traits:
        limits = (0.0, float(np.exp(-self.gamma * self.first_index)) if self.gamma >= 0 else np.inf)
        return Traits(name="weighted_exponential", family="linear", range=limits, concave=True, fixed_form=True)

    @entry_point("{class}")
    def _places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return order_places(self.order, classes)

    @entry_point("{class}")
    def _check_order(self, classes: Sequence[Any]) -> None:
        require_order(self.order, classes)

    @entry_point("{class}")
    def matrix(self, priors: FloatArray, classes: Sequence[Any] | None) -> FloatArray:
        places = ranks(self.order, priors.shape[-1], classes)
        return np.diag(np.exp(-self.gamma * (places + self.first_index)))


class _OnScale(_LinearMetric):
    """Base of the linear metrics of distances on a scale: an undecided row costs a share of its whole length."""

    order: Sequence[Any] | None
    power: ClassVar[int]

    @entry_point("{class}")
    def _places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return order_places(self.order, classes)

    @entry_point("{class}")
    def _check_order(self, classes: Sequence[Any]) -> None:
        if len(classes) > 2:  # two classes are as far apart in either order
            require_order(self.order, classes)

    @entry_point("{class}")
    def matrix(self, priors: FloatArray, classes: Sequence[Any] | None) -> FloatArray:
        places = ranks(self.order, priors.shape[-1], classes)
        distance = np.abs(np.subtract.outer(places, places)) / max(len(places) - 1, 1)
        return np.asarray(1 - distance**self.power)

    def _price(self, A: FloatArray, cost: float) -> FloatArray:
        return np.full(A.shape[:-1], 1.0 - cost)


@register("ordinal")
@dataclass(frozen=True, eq=False)
class Ordinal(_OnScale):
    """Closeness on an ordered scale, ``sum_ij (1 - |i - j| / (K - 1)) C[i, j]``.

    Range [0, 1]. It has no 0/0. One minus the mean absolute error in units of the scale.

    Parameters
    ----------
    order : sequence of K labels, optional
        The classes from the lowest to the highest. None: the `order` of the call, or that of an ordered categorical;
        else numbers and dates are ordered by value, and text labels raise an error.

    See Also
    --------
    SquaredOrdinal : Closeness by squared distances.
    Kappa : Agreement corrected for chance, with linear or quadratic weights.

    References
    ----------
    .. [1] Narasimhan, Ramaswamy, Saha, Agarwal (2015), "Consistent Multiclass Algorithms for Complex Performance
           Measures", ICML.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.Ordinal().value([[0.5, 0.25, 0.0], [0.0, 0.0, 0.0], [0.25, 0.0, 0.0]]))
    0.625
    """

    order: Sequence[Any] | None = None

    traits = Traits(name="ordinal", family="linear", concave=True, fixed_form=True)
    power = 1


@register("squared_ordinal")
@dataclass(frozen=True, eq=False)
class SquaredOrdinal(_OnScale):
    """Closeness on an ordered scale by squares, ``sum_ij (1 - (i - j)^2 / (K - 1)^2) C[i, j]``.

    Range [0, 1]. It has no 0/0. One minus the mean squared error in units of the scale.

    Parameters
    ----------
    order : sequence of K labels, optional
        The classes from the lowest to the highest. None: the `order` of the call, or that of an ordered categorical;
        else numbers and dates are ordered by value, and text labels raise an error.

    See Also
    --------
    Ordinal : Closeness by absolute distances.
    Kappa : Agreement corrected for chance, with linear or quadratic weights.

    References
    ----------
    .. [1] Baccianella, Esuli, Sebastiani (2009), "Evaluation Measures for Ordinal Regression", ISDA.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.SquaredOrdinal().value([[0.5, 0.25, 0.0], [0.0, 0.0, 0.0], [0.25, 0.0, 0.0]]))
    0.6875
    """

    order: Sequence[Any] | None = None

    traits = Traits(name="squared_ordinal", family="linear", concave=True, fixed_form=True)
    power = 2


@register("cost", needs="cost", example="Cost(cost=[[0, 1], [5, 0]])")
@dataclass(frozen=True, eq=False)
class Cost(_LinearMetric):
    """Minus the mean cost of a decision, ``-sum_ij cost[i, j] C[i, j]``.

    Range: minus the largest to minus the smallest entry of the matrix. It has no 0/0.

    Parameters
    ----------
    cost : array-like of shape (K, K) or (K, K + 1)
        Cost of predicting class j (column) if class i (row) is true. Negative entries are gains. An additional last
        column is the cost of abstaining, for ``abstain=True`` in :func:`metricwise.optimize`.
    classes : sequence of K labels, optional
        The classes of the rows and columns, by which these are matched to the classes of the problem; None: they are
        in its order.

    See Also
    --------
    Linear : Values instead of costs.
    metricwise.optimize : Takes ``cost=`` for costs per row.

    References
    ----------
    .. [1] Elkan (2001), "The Foundations of Cost-Sensitive Learning", IJCAI.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.Cost([[0, 1], [10, 0]]).value([[0.5, 0.25], [0.125, 0.125]]))
    -1.5
    >>> costs = mw.metrics.Cost([[0, 10], [1, 0]], classes=["fraud", "fine"])  # a missed fraud costs 10
    >>> mw.optimize([[0.8, 0.2], [0.9, 0.1]], None, costs, classes=["fine", "fraud"]).rule.predict([[0.8, 0.2]])
    array(['fraud'], dtype='<U5')
    """

    cost: FloatArray
    classes: Sequence[Any] | None = None

    declared = Traits(name="cost", family="linear", concave=True, fixed_form=True, loss_name="mean cost")

    @entry_point("{class}")
    def __post_init__(self) -> None:
        if self.classes is not None:
            object.__setattr__(self, "classes", tuple(map(python_label, self.classes)))
        shape = np.shape(self.cost)
        if len(shape) == 2 and shape[0] > 1 and shape[1] == shape[0] + 1:
            table = np.concatenate([np.asarray(self.cost, dtype=np.float64), np.zeros((1, shape[1]))])
            object.__setattr__(self, "cost", check_matrix(table, "cost")[:-1])
        else:
            object.__setattr__(self, "cost", check_matrix(self.cost, "cost"))
        if not (self.classes is None or len(set(self.classes)) == len(self.classes) == self.cost.shape[-2]):
            raise InvalidParameter(
                "classes",
                f"have a distinct label for each of the {self.cost.shape[-2]} rows of cost",
                repr(self.classes),
            )

    @cached_property
    def traits(self) -> Traits:
        limits = (-float(self.cost.max()), -float(self.cost.min()))
        return replace(self.declared, range=limits, prices_abstentions=self.cost.shape[-1] > self.cost.shape[-2])

    @entry_point("{class}")
    def matrix(self, priors: FloatArray, classes: Sequence[Any] | None) -> FloatArray:
        if self.traits.prices_abstentions:
            raise InvalidParameter(
                "cost",
                problem="a cost of shape (K, K + 1) includes the cost of abstaining, but the rule may not abstain",
                remedy=f"set {argument('abstain', True)}, or use a cost of shape (K, K)",
            )
        table = self._in_order(classes)
        check_size(table, priors.shape[-1], "cost")
        return -table

    def _places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return () if self.classes is None else self._rows_of(classes)

    @entry_point("{class}")
    def _rows_of(self, classes: Sequence[Any]) -> tuple[int, ...]:
        """The row of the table of each class."""
        assert self.classes is not None
        place = {label: row for row, label in enumerate(self.classes)}
        lacking = [label for label in classes if label not in place]
        if lacking:
            raise InvalidParameter(
                "cost",
                problem=(
                    f"the table of costs has no row and column for the class {shown(lacking[0])}, only for "
                    f"{list(self.classes)}"
                ),
            )
        return tuple(place[label] for label in classes)

    @entry_point("{class}")
    def _in_order(self, classes: Sequence[Any] | None) -> FloatArray:
        """The table with its rows and columns in the order of the classes."""
        if self.classes is None:
            return self.cost
        if classes is None:
            raise InvalidParameter(
                "classes", problem=f"{mention('classes')} needs the class labels, which are not known here"
            )
        rows = self._rows_of(list(classes))
        extra = range(len(self.classes), self.cost.shape[-1])
        return self.cost[..., list(rows), :][..., [*rows, *extra]]

    def _price(self, A: FloatArray, cost: float) -> FloatArray:
        return np.full(A.shape[:-1], -cost)  # in the units of the table

    @entry_point("{class}")
    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Linear:
        priors = as_shares(priors)
        if not self.traits.prices_abstentions:
            raise InvalidParameter(
                "cost",
                problem="the table does not include the cost of abstaining",
                remedy=f"add a last column, for shape (K, K + 1), or set {argument('abstain')} to the cost",
            )
        table = self._in_order(None if classes is None else list(classes)[: priors.shape[-1] - 1])
        check_size(table[:, :-1], priors.shape[-1] - 1, "cost")
        matrix = with_column(-table[:, :-1], -table[:, -1])
        return Linear(matrix, prior_limits(matrix, priors))


@register("balanced_accuracy")
@dataclass(frozen=True, eq=False)
class BalancedAccuracy(_HitsOnly):
    """Mean recall of the classes that occur, ``mean_i C[i, i] / pi_i``; linear once pi is known.

    Range [0, 1]; adjusted, [-1, 1]. A class without rows is left out (as in scikit-learn); with no class at all, or
    adjusted and a single one (0/0), the value is 0.

    Parameters
    ----------
    adjusted : bool, default=False
        Whether to shift and scale the value so that random guessing scores 0 and perfect predictions 1.

    See Also
    --------
    GMean : Geometric mean of the recalls.
    MinRecall : The smallest recall.
    sklearn.metrics.balanced_accuracy_score : The metric of labels.

    References
    ----------
    .. [1] Brodersen, Ong, Stephan, Buhmann (2010), "The Balanced Accuracy and Its Posterior Distribution", ICPR.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.BalancedAccuracy().value([[0.75, 0.0], [0.125, 0.125]]))
    0.75
    """

    adjusted: bool = False

    @cached_property
    def traits(self) -> Traits:
        limits = (-1.0 if self.adjusted else 0.0, 1.0)
        return Traits(name="balanced_accuracy", family="linear", range=limits, concave=True, by_class=True)

    def matrix(self, priors: FloatArray, classes: Sequence[Any] | None) -> FloatArray:
        n_present = np.sum(priors > EMPTY, axis=-1, keepdims=True).astype(np.float64)
        share = divide(np.ones_like(n_present), n_present)
        matrix = diagonal_plus_columns(divide(share, priors))
        if not self.adjusted:
            return matrix
        return divide(matrix - share[..., None], np.where(n_present > 1, 1 - share, 0.0)[..., None])

    def _of_ratios(self, n_classes: int, classes: Sequence[Any] | None = None) -> RatioMean | None:
        return None if self.adjusted else mean_of_recalls("arithmetic", n_classes)

    def _prior_slopes(self, confusion: FloatArray, classes: Sequence[Any] | None = None) -> FloatArray:
        priors = confusion.sum(axis=-1)
        n_present = int(np.sum(priors > EMPTY))
        chance = -1.0 / (n_present - 1) if self.adjusted and n_present > 1 else 0.0  # in every entry of A, adjusted
        # Each recall in it falls as C[i, i] / pi_i does.
        return -divide(np.diagonal(confusion) * np.diagonal(self.matrix(priors, classes) - chance), priors)


@register("recall")
@dataclass(frozen=True, eq=False, kw_only=True)
class Recall(ClassRatio):
    """Recall of a class, ``C[k, k] / pi_k``; linear once pi is known.

    Range [0, 1]; `zero_division` if the class has no rows. Alone it is a degenerate aim: always predicting the class
    is optimal.

    Parameters
    ----------
    index, pos_label : optional
        The class, by position or by label; by default, class 1 of a binary output with the labels 0 and 1, -1 and 1, or
        False and True.
    zero_division : float, default=0.0
        The value at 0/0.

    See Also
    --------
    Precision : Share of right decisions among predictions of the class.
    FBeta : Combines precision and recall.
    sklearn.metrics.recall_score : The metric of labels.

    References
    ----------
    .. [1] van Rijsbergen (1979), "Information Retrieval".

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.Recall().value([[0.5, 0.25], [0.125, 0.125]]))
    0.5
    """

    declared = Traits(
        name="recall",
        family="linear",
        concave=True,
        monotone=True,
        degenerate=(
            "Recall of {} alone is highest if that class is always predicted; aim at 'balanced_accuracy', 'f1' or "
            "'g_mean' instead."
        ),
    )
    numerator = Terms(hit=1.0)
    denominator = Terms(true=1.0)


@register("specificity")
@dataclass(frozen=True, eq=False, kw_only=True)
class Specificity(ClassRatio):
    """Share of the rows of other classes not predicted as the class, ``sum_(i, j != k) C[i, j] / (1 - pi_k)``.

    Range [0, 1]; `zero_division` if there are no rows of other classes. Alone it is a degenerate aim: never
    predicting the class is optimal.

    Parameters
    ----------
    index, pos_label : optional
        The class, by position or by label; by default, class 1 of a binary output with the labels 0 and 1, -1 and 1, or
        False and True.
    zero_division : float, default=0.0
        The value at 0/0.

    See Also
    --------
    Recall : The same for rows of the class.
    FalsePositiveRate : One minus the specificity.

    References
    ----------
    .. [1] Yerushalmy (1947), "Statistical Problems in Assessing Methods of Medical Diagnosis", Public Health Reports.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.Specificity().value([[0.5, 0.25], [0.125, 0.125]]))
    0.6666666666666666
    """

    declared = Traits(
        name="specificity",
        family="linear",
        concave=True,
        monotone=True,
        degenerate=(
            "Specificity for {} alone is highest if that class is never predicted; aim at 'balanced_accuracy', 'f1' "
            "or 'g_mean' instead."
        ),
    )
    numerator = Terms(hit=1.0, true=-1.0, predicted=-1.0, total=1.0)
    denominator = Terms(true=-1.0, total=1.0)


@register("false_positive_rate")
@dataclass(frozen=True, eq=False, kw_only=True)
class FalsePositiveRate(ClassRatio):
    """Share of the rows of other classes that are predicted as the class, ``sum_(i != k) C[i, k] / (1 - pi_k)``.

    One minus :class:`Specificity`. Range [0, 1]; `zero_division` if there are no rows of other classes. It is meant to
    be bounded or recorded: as an aim it is highest if the class is always predicted.

    Parameters
    ----------
    index, pos_label : optional
        The class, by position or by label; by default, class 1 of a binary output with the labels 0 and 1, -1 and 1, or
        False and True.
    zero_division : float, default=0.0
        The value at 0/0.

    See Also
    --------
    Specificity : One minus the false positive rate.

    References
    ----------
    .. [1] Fawcett (2006), "An introduction to ROC analysis", Pattern Recognition Letters.

    Examples
    --------
    >>> import metricwise as mw
    >>> round(float(mw.metrics.FalsePositiveRate().value([[0.5, 0.25], [0.125, 0.125]])), 4)
    0.3333
    """

    declared = Traits(
        name="false_positive_rate",
        family="linear",
        concave=True,
        degenerate=(
            "The false positive rate of {} alone is highest if that class is always predicted, which is rarely "
            "intended; bound it with subject_to instead, under another metric."
        ),
    )
    numerator = Terms(hit=-1.0, predicted=1.0)
    denominator = Terms(true=-1.0, total=1.0)


@register("share")
@dataclass(frozen=True, eq=False, kw_only=True)
class PredictedShare(ClassRatio):
    """Share of the rows that are predicted as the class, ``sum_i C[i, k]``.

    Range [0, 1]. It is meant to be bounded or recorded: as an aim it is highest if the class is always predicted.

    Parameters
    ----------
    index, pos_label : optional
        The class, by position or by label; by default, class 1 of a binary output with the labels 0 and 1, -1 and 1, or
        False and True.
    zero_division : float, default=0.0
        The value at 0/0, if there are no rows.

    See Also
    --------
    metricwise.near_prior : Keep the predicted share near the class prior.

    References
    ----------
    .. [1] Saerens, Latinne, Decaestecker (2002), "Adjusting the Outputs of a Classifier to New a Priori Probabilities",
       Neural Computation, on how far it may be from the share of the class.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.PredictedShare().value([[0.5, 0.25], [0.125, 0.125]]))
    0.375
    """

    declared = Traits(
        name="share",
        family="linear",
        concave=True,
        degenerate=(
            "The predicted share of {} alone is highest if that class is always predicted, which is rarely intended; "
            "bound it with subject_to instead, under another metric."
        ),
    )
    numerator = Terms(predicted=1.0)
    denominator = Terms(total=1.0)


register("macro_recall")(averaged(Recall, "macro"))
register("macro_specificity")(averaged(Specificity, "macro"))
