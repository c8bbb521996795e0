"""Fractional-linear metrics ``<A, C> / <B, C>``.

F-measures, Jaccard and precision of a class, the paper's micro-F1, and, because the class priors are known, Cohen's
kappa with any weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..core.cached import cached_property
from ..core.errors import InvalidParameter, entry_point
from ..core.matrices import EMPTY, FloatArray, as_shares, check_matrix, check_size, divide, with_column
from .base import FractionalLinear, Metric, Traits
from .one_vs_rest import ClassRatio, Terms, averaged
from .parameters import check_finite, check_zero_division, find_class, order_places, ranks, require_order, self_ordered
from .registry import register, register_numbered
from .row_forms import PairRatio

__all__ = ["FBeta", "Jaccard", "Kappa", "MicroF1", "Precision"]

_POWERS = {"linear": 1, "quadratic": 2}


@register("f1")
@dataclass(frozen=True, eq=False)
class FBeta(ClassRatio):
    """F-measure of a class, ``(1 + beta^2) C[k, k] / (beta^2 pi_k + q_k)`` with q_k its predicted share.

    Range [0, 1]; `zero_division` if the class neither occurs nor is predicted.

    Parameters
    ----------
    beta : float, default=1.0
        Weight of recall relative to precision.
    index, pos_label : optional
        The class, by position or by label; by default, class 1 of a binary output with the labels 0 and 1, -1 and 1, or
        False and True.
    zero_division : float, default=0.0
        The value at 0/0.

    See Also
    --------
    Precision : Precision alone.
    Recall : Recall alone.
    ClassAverage : Average over classes, such as macro-F1.
    sklearn.metrics.fbeta_score : The metric of labels.

    References
    ----------
    .. [1] van Rijsbergen (1979), "Information Retrieval".

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.FBeta().value([[0.5, 0.125], [0.125, 0.25]]))
    0.6666666666666666
    """

    beta: float = 1.0

    @entry_point("{class}")
    def check_parameters(self) -> None:
        check_finite(self.beta, "beta", above=0.0, closed=True)

    @property
    def declared(self) -> Traits:
        return Traits(name=f"f{self.beta:g}", family="fractional-linear", monotone=True)

    @property
    def numerator(self) -> Terms:
        return Terms(hit=1.0 + self.beta**2)

    @property
    def denominator(self) -> Terms:
        return Terms(true=self.beta**2, predicted=1.0)


def _averaged_fbeta(average: str, beta: float) -> Callable[..., Metric]:
    return averaged(partial(FBeta, beta=beta), average)


@register("jaccard")
@dataclass(frozen=True, eq=False, kw_only=True)
class Jaccard(ClassRatio):
    """Jaccard index of a class, ``C[k, k] / (pi_k + q_k - C[k, k])`` with q_k its predicted share.

    Range [0, 1]; `zero_division` if the class neither occurs nor is predicted.

    Parameters
    ----------
    index, pos_label : optional
        The class, by position or by label; by default, class 1 of a binary output with the labels 0 and 1, -1 and 1, or
        False and True.
    zero_division : float, default=0.0
        The value at 0/0.

    See Also
    --------
    FBeta : F-measure of a class.
    sklearn.metrics.jaccard_score : The metric of labels.

    References
    ----------
    .. [1] Jaccard (1901), "Étude comparative de la distribution florale dans une portion des Alpes et du Jura".

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.Jaccard().value([[0.5, 0.125], [0.125, 0.25]]))
    0.5
    """

    declared = Traits(name="jaccard", family="fractional-linear", monotone=True)
    numerator = Terms(hit=1.0)
    denominator = Terms(hit=-1.0, true=1.0, predicted=1.0)


@register("precision")
@dataclass(frozen=True, eq=False, kw_only=True)
class Precision(ClassRatio):
    """Precision of a class, ``C[k, k] / q_k`` with q_k its predicted share.

    Range [0, 1]; `zero_division` if the class is not predicted. Alone it is a degenerate aim: predicting the class only
    for the most certain row is optimal.

    Parameters
    ----------
    index, pos_label : optional
        The class, by position or by label; by default, class 1 of a binary output with the labels 0 and 1, -1 and 1, or
        False and True.
    zero_division : float, default=0.0
        The value at 0/0.

    See Also
    --------
    Recall : Share of the rows of the class that are found.
    FBeta : Combines precision and recall.
    sklearn.metrics.precision_score : The metric of labels.

    References
    ----------
    .. [1] van Rijsbergen (1979), "Information Retrieval".

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.Precision().value([[0.5, 0.0625], [0.25, 0.1875]]))
    0.75
    """

    declared = Traits(
        name="precision",
        family="fractional-linear",
        monotone=True,
        degenerate=(
            "Precision of {} alone is highest if that class is predicted only for the most certain rows; aim at 'f1' "
            "or FBeta(beta=0.5) instead."
        ),
    )
    numerator = Terms(hit=1.0)
    denominator = Terms(predicted=1.0)


@register("micro_f1")
@dataclass(frozen=True, eq=False)
class MicroF1(Metric):
    """F1 pooled over all classes but a negative one, ``2 sum_(i != n) C[i, i] / (2 - pi_n - q_n)``.

    This is the paper's Micro-F1, scikit-learn's `f1_score` with ``average="micro"`` and the negative class left out of
    `labels`. (Over *all* classes micro-F1 is accuracy.) Range [0, 1]; `zero_division` if only the negative class
    occurs and is predicted.

    Parameters
    ----------
    negative_index : int, optional
        The negative class n by position; the lowest class if neither this nor the label is given and the classes are
        numbers or dates.
    negative_label : object, optional
        The negative class by label.
    zero_division : float, default=0.0
        The value at 0/0.

    See Also
    --------
    FBeta : F-measure of one class.
    sklearn.metrics.f1_score : The metric of labels.

    References
    ----------
    .. [1] Kim, Wang, Yamamoto (2013), "The Genia Event Extraction Shared Task, 2013 Edition", BioNLP.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.MicroF1().value([[0.5, 0.0, 0.0], [0.0, 0.25, 0.0], [0.125, 0.125, 0.0]]))
    0.5714285714285714
    """

    negative_index: int | None = None
    negative_label: Any = None
    zero_division: float = 0.0

    traits = Traits(name="micro_f1", family="fractional-linear", fixed_form=True)

    @entry_point("{class}")
    def __post_init__(self) -> None:
        check_zero_division(self.zero_division)

    @entry_point("{class}")
    def _negative(self, n_classes: int, classes: Sequence[Any] | None) -> int:
        """Return the index of the negative class."""
        first = int(ranks(None, n_classes, classes).argmin()) if self._takes_first else self.negative_index
        names = ("negative_index", "negative_label")
        return find_class(n_classes, classes, first, self.negative_label, names)

    @property
    def _takes_first(self) -> bool:
        return self.negative_index is None and self.negative_label is None

    def _places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return (self._negative(len(classes), classes),)

    @entry_point("{class}")
    def _check_order(self, classes: Sequence[Any]) -> None:
        if self._takes_first and not self_ordered(classes):
            raise InvalidParameter(
                "negative_label",
                problem=f"the negative class is ambiguous: one of {list(classes)}",
                remedy=f"set it, as in MicroF1(negative_label={classes[0]!r})",
            )

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> FractionalLinear:
        n_classes = as_shares(priors).shape[-1]
        negative = self._negative(n_classes, classes)
        counted = (np.arange(n_classes) != negative).astype(np.float64)
        return FractionalLinear(2 * np.diag(counted), np.add.outer(counted, counted), self.zero_division, (0.0, 1.0))

    def _of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear:
        return self.bind(np.zeros(n_classes), classes)

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> FractionalLinear:
        decided = self._of_cells(as_shares(priors).shape[-1] - 1, classes)
        counted = np.diagonal(decided.A) / 2  # true, and predicted as nothing
        A, B = with_column(decided.A, 0.0), with_column(decided.B, counted)
        return FractionalLinear(A, B, self.zero_division, (0.0, 1.0))


@register("kappa")
@dataclass(frozen=True, eq=False)
class Kappa(Metric):
    """Cohen's kappa, ``1 - <W, C> / <W, pi q^T>``, with q the predicted shares; fractional-linear once pi is known.

    With pi fixed the chance disagreement ``<W, pi q^T> = <E, C>``, ``E[i, j] = sum_k W[k, j] pi_k``, is linear in C.

    Range [-1, 1], or (-inf, 1] for user-defined weights (finite once bound). At 0/0 (one class occurs, and only it is
    predicted) the value is 0: no agreement beyond chance.

    Parameters
    ----------
    weights : {"linear", "quadratic"} or array-like of shape (K, K), optional
        Weights W of disagreements: None for 1, "linear" for ``|i - j|``, "quadratic" for ``(i - j)^2``, or a
        non-negative matrix with zero diagonal.
    order : sequence of K labels, optional
        The classes from the lowest to the highest, for "linear" and "quadratic". None: the `order` of the call, or that
        of an ordered categorical; else numbers and dates are ordered by value, and text labels raise an error.

    See Also
    --------
    SquaredOrdinal : Closeness on an ordered scale.
    sklearn.metrics.cohen_kappa_score : The metric of labels.

    References
    ----------
    .. [1] Cohen (1960), "A Coefficient of Agreement for Nominal Scales".
    .. [2] Cohen (1968), "Weighted Kappa: Nominal Scale Agreement with Provision for Scaled Disagreement".

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.Kappa().value([[0.5, 0.125], [0.125, 0.25]]))
    0.4666666666666667
    >>> grades = mw.metrics.Kappa("quadratic", order=["low", "mid", "high"])
    >>> round(grades.score(["low", "mid", "high", "high"], ["low", "high", "high", "mid"]), 6)
    0.636364
    """

    weights: str | ArrayLike | None = None
    order: Sequence[Any] | None = None

    @entry_point("{class}")
    def __post_init__(self) -> None:
        if self.weights is None:
            return
        if isinstance(self.weights, str):
            if self.weights not in _POWERS:
                raise InvalidParameter(
                    "weights", "be None, 'linear', 'quadratic' or a (K, K) matrix", repr(self.weights)
                )
            return
        matrix = check_matrix(self.weights, "weights")
        if not bool((matrix >= 0).all() and not np.diagonal(matrix, axis1=-2, axis2=-1).any()):
            raise InvalidParameter("weights", "be non-negative, with zeros on the diagonal", matrix.tolist())
        object.__setattr__(self, "weights", matrix)

    @cached_property
    def traits(self) -> Traits:
        if isinstance(self.weights, np.ndarray):
            return Traits(name="weighted_kappa", family="fractional-linear", range=(-np.inf, 1.0))
        name = "kappa" if self.weights is None else f"{self.weights}_kappa"
        return Traits(name=name, family="fractional-linear", range=(-1.0, 1.0))

    @entry_point("{class}")
    def disagreement(self, n_classes: int, classes: Sequence[Any] | None = None) -> FloatArray:
        """Return W."""
        if isinstance(self.weights, np.ndarray):
            check_size(self.weights, n_classes, "weights")
            return self.weights
        if self.weights is None:
            return 1.0 - np.eye(n_classes)
        places = ranks(self.order, n_classes, classes)
        steps = np.abs(np.subtract.outer(places, places))
        return np.asarray(steps ** _POWERS[cast("str", self.weights)] * (steps > 0))

    @entry_point("{class}")
    def _places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return order_places(self.order, classes)

    @entry_point("{class}")
    def _check_order(self, classes: Sequence[Any]) -> None:
        # Two classes are as far apart in either order.
        if isinstance(self.weights, str) and len(classes) > 2:
            require_order(self.order, classes)

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> FractionalLinear:
        priors = as_shares(priors)
        weights = self.disagreement(priors.shape[-1], classes)
        chance = np.broadcast_to(priors[..., None, :] @ weights, (*priors.shape, priors.shape[-1]))
        # A ratio of sums lies between the smallest and the largest ratio of their terms.
        worst = np.max(np.where(priors[..., None] > EMPTY, divide(weights, chance), 1.0))
        limits = (max(self.range[0], 1.0 - float(worst)), 1.0)
        return FractionalLinear(chance - weights, chance, 0.0, limits)

    @entry_point("{class}")
    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> FractionalLinear:
        if self.weights is not None:
            raise InvalidParameter(
                "",
                problem=(
                    f"{self.name} depends on the distance between decision and truth, which is undefined for an "
                    "abstention"
                ),
                remedy="use 'kappa', where an abstention disagrees with every class",
            )
        return self.bind(priors)  # one more label, which no row has

    def _of_pairs(self, n_classes: int, classes: Sequence[Any] | None = None) -> PairRatio:
        weights = self.disagreement(n_classes, classes)
        none = np.zeros_like(weights)
        return PairRatio(FractionalLinear(-weights, none), FractionalLinear(weights, weights), self.range)

    def _prior_slopes(self, confusion: FloatArray, classes: Sequence[Any] | None = None) -> FloatArray:
        # 1 - <W, C> / <W, pi q^T> at fixed C: the chance disagreement grows by (W q)_i per unit of pi_i.
        weights, predicted = self.disagreement(len(confusion), classes), confusion.sum(axis=0)
        by_prior = weights @ predicted
        chance = confusion.sum(axis=1) @ by_prior
        return divide(np.sum(weights * confusion) * by_prior, np.full(len(confusion), chance**2))


register("fbeta", needs="beta", example="FBeta(beta=2)")(FBeta)
register("linear_kappa")(partial(Kappa, weights="linear"))
register("quadratic_kappa")(partial(Kappa, weights="quadratic"))
for _average in ("macro", "weighted"):
    register(f"{_average}_f1")(averaged(FBeta, _average))
    register(f"{_average}_jaccard")(averaged(Jaccard, _average))
    register(f"{_average}_precision")(averaged(Precision, _average))
    register_numbered(f"{_average}_f", partial(_averaged_fbeta, _average))
register_numbered("f", lambda beta: partial(FBeta, beta=beta))
