"""Concave metrics: means and the minimum of the recalls of all classes.

A recall ``C[i, i] / pi_i`` is linear once the priors are known, so a concave function of recalls is concave in C. A
class without rows has no recall and is left out; with no class at all the value is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.cached import cached_property
from ..core.errors import InvalidParameter, entry_point, mention
from ..core.matrices import EMPTY, FloatArray, as_shares, diagonal, divide, inner
from .base import Form, Linear, Metric, MinimumForm, ShareForm, Traits, centred
from .linear import Recall
from .registry import register
from .row_forms import RatioMean, mean_of_recalls

__all__ = ["GMean", "HMean", "QMean", "MinRecall", "Minimum", "MinimumOfLinear"]

# Slopes at a recall below this are those at this recall: the geometric mean's is infinite at 0, and a solver that
# starts there must still be told which way is up.
_FLOOR = 1e-9


class RecallMean(Metric):
    """Base of the smooth concave means of recalls.

    Subclasses implement :meth:`mean` and :meth:`slopes` for recalls and weights of shape (..., K); the weights are
    equal over the classes that occur, 0 for the others, and sum to 1.
    """

    def _class_metric(self) -> Metric:
        return Recall(index=1)

    def mean(self, recall: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the mean, shape (...)."""
        raise NotImplementedError

    def slopes(self, recall: FloatArray, weight: FloatArray) -> FloatArray:
        """Return its derivative by each recall, shape (..., K), always finite."""
        raise NotImplementedError

    def terms(self, recall: FloatArray, weight: FloatArray) -> FloatArray | None:
        """Return terms (..., K) whose sum the mean increases with; -inf for a recall that makes the mean 0."""
        return None

    _kind: ClassVar[str]
    """Name of the mean in :class:`metricwise.metrics.row_forms.RatioMean`."""

    def _of_ratios(self, n_classes: int, classes: Sequence[Any] | None = None) -> RatioMean:
        return mean_of_recalls(self._kind, n_classes)

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> RecallMeanForm:
        return RecallMeanForm(self, as_shares(priors))

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> RecallMeanForm:
        return self.bind(priors)  # a class without rows is left out

    def _free_gradient(self, confusion: ArrayLike, classes: Sequence[Any] | None = None) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        recall, weight = recalls(diagonal(confusion), confusion.sum(axis=1))
        # Where the mean is 0 it stays there, whatever the other recalls do: slopes for a way out mean nothing here.
        slopes = self.slopes(recall, weight) if self.mean(recall, weight) > 0 else np.zeros_like(recall)
        return _free_of_recalls(slopes, confusion)


def recalls(hits: FloatArray, priors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return recalls and weights; an absent class has recall 1 (so that no logarithm fails) and weight 0."""
    present = (priors > EMPTY).astype(np.float64)
    return divide(hits, priors, 1.0), divide(present, present.sum(axis=-1, keepdims=True))


def _free_of_recalls(slopes: FloatArray, confusion: FloatArray) -> FloatArray:
    """Return the gradient, priors free, of a function of recalls ``C[i, i] / pi_i`` by its slopes (K,) in them."""
    priors = confusion.sum(axis=1)
    by_hit = divide(slopes, priors)
    by_prior = -divide(by_hit * diagonal(confusion), priors)
    return centred(np.diag(by_hit) + by_prior[:, None], confusion)


@dataclass(frozen=True, eq=False)
class RecallMeanForm(ShareForm):
    """A mean of recalls at class priors (..., K)."""

    metric: RecallMean
    priors: FloatArray

    traits = Traits(name="recall_mean_form", family="concave", concave=True, monotone=True)

    def summary_of(self, hits: FloatArray, columns: FloatArray) -> FloatArray:
        return hits

    def summary(self, confusion: FloatArray) -> FloatArray:
        return diagonal(confusion)

    def value_at(self, summary: FloatArray) -> FloatArray:
        recall, weight = recalls(summary, self.priors)
        return np.where(weight.any(axis=-1), self.metric.mean(recall, weight), 0.0)

    def slope_at(self, summary: FloatArray) -> FloatArray:
        recall, weight = recalls(summary, self.priors)
        return divide(self.metric.slopes(recall, weight), self.priors)

    def gradient_parts(self, slope: FloatArray) -> tuple[FloatArray, ...]:
        return slope, np.zeros_like(slope)

    def class_terms(self, hits: FloatArray, predicted: FloatArray) -> FloatArray | None:
        recall, weight = recalls(hits, self.priors)
        return self.metric.terms(recall, weight)


@register("g_mean")
@dataclass(frozen=True, eq=False)
class GMean(RecallMean):
    """Geometric mean of the recalls, ``(prod_i r_i)^(1/K)`` with ``r_i = C[i, i] / pi_i``.

    Range [0, 1]. Classes without rows are left out. The gradient at a recall below 1e-9 is that at 1e-9: finite, and
    pointing towards the class that is never hit.

    See Also
    --------
    HMean : Harmonic mean of the recalls.
    BalancedAccuracy : Arithmetic mean of the recalls.

    References
    ----------
    .. [1] Kubat, Matwin (1997), "Addressing the Curse of Imbalanced Training Sets: One-Sided Selection", ICML.
    .. [2] Sun, Kamel, Wang (2006), "Boosting for Learning Multiple Classes with Imbalanced Class Distribution", ICDM.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.GMean().value([[0.75, 0.0], [0.1875, 0.0625]]))
    0.5
    """

    traits = Traits(name="g_mean", family="concave", concave=True, by_class=True)
    _kind = "geometric"

    def mean(self, recall: FloatArray, weight: FloatArray) -> FloatArray:
        zero = np.any((recall <= 0) & (weight > 0), axis=-1)
        logs = np.log(np.where(recall > 0, recall, 1.0))
        return np.where(zero, 0.0, np.exp(np.sum(weight * logs, axis=-1)))

    def slopes(self, recall: FloatArray, weight: FloatArray) -> FloatArray:
        recall = np.maximum(recall, _FLOOR)
        return weight * self.mean(recall, weight)[..., None] / recall

    def terms(self, recall: FloatArray, weight: FloatArray) -> FloatArray:
        logs = np.log(recall, where=recall > 0, out=np.full_like(recall, -np.inf))
        return np.multiply(weight, logs, where=weight > 0, out=np.zeros_like(recall))


@register("h_mean")
@dataclass(frozen=True, eq=False)
class HMean(RecallMean):
    """Harmonic mean of the recalls, ``K / sum_i (1 / r_i)`` with ``r_i = C[i, i] / pi_i``.

    Range [0, 1]; 0 if a recall is 0. Classes without rows are left out. The gradient at a recall below 1e-9 is that at
    1e-9.

    See Also
    --------
    GMean : Geometric mean of the recalls.
    BalancedAccuracy : Arithmetic mean of the recalls.

    References
    ----------
    .. [1] Kennedy, Mac Namee, Delany (2009), "Learning without Default: A Study of One-Class Classification and the
           Low-Default Portfolio Problem", AICS.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.HMean().value([[0.75, 0.0], [0.125, 0.125]]))
    0.6666666666666666
    """

    traits = Traits(name="h_mean", family="concave", concave=True, by_class=True)
    _kind = "harmonic"

    def mean(self, recall: FloatArray, weight: FloatArray) -> FloatArray:
        zero = np.any((recall <= 0) & (weight > 0), axis=-1)
        total = np.sum(weight / np.where(recall > 0, recall, 1.0), axis=-1)
        return np.where(zero, 0.0, divide(np.ones_like(total), total))

    def slopes(self, recall: FloatArray, weight: FloatArray) -> FloatArray:
        recall = np.maximum(recall, _FLOOR)
        return weight * (self.mean(recall, weight)[..., None] / recall) ** 2

    def terms(self, recall: FloatArray, weight: FloatArray) -> FloatArray:
        inverse = np.divide(1.0, recall, where=recall > 0, out=np.full_like(recall, np.inf))
        return -np.multiply(weight, inverse, where=weight > 0, out=np.zeros_like(recall))


@register("q_mean")
@dataclass(frozen=True, eq=False)
class QMean(RecallMean):
    """One minus the quadratic mean of the misses, ``1 - sqrt(mean_i (1 - r_i)^2)`` with ``r_i = C[i, i] / pi_i``.

    Range [0, 1]. Classes without rows are left out. At perfect recall, the only point without a gradient, 0 is returned
    (a supergradient, as this is the maximum).

    See Also
    --------
    GMean : Geometric mean of the recalls.
    BalancedAccuracy : Arithmetic mean of the recalls.

    References
    ----------
    .. [1] Lawrence, Burns, Back, Tsoi, Giles (1998), "Neural Network Classification and Prior Class Probabilities".
    .. [2] Narasimhan, Ramaswamy, Saha, Agarwal (2015), "Consistent Multiclass Algorithms for Complex Performance
           Measures", ICML.

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.QMean().value([[0.375, 0.375], [0.125, 0.125]]))
    0.5
    """

    traits = Traits(name="q_mean", family="concave", concave=True, by_class=True)
    _kind = "quadratic"

    def mean(self, recall: FloatArray, weight: FloatArray) -> FloatArray:
        return np.asarray(1 - _root_mean_square(1 - recall, weight))

    def slopes(self, recall: FloatArray, weight: FloatArray) -> FloatArray:
        return divide(weight * (1 - recall), _root_mean_square(1 - recall, weight)[..., None])

    def terms(self, recall: FloatArray, weight: FloatArray) -> FloatArray:
        return np.asarray(-weight * (1 - recall) ** 2)


def _root_mean_square(miss: FloatArray, weight: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.sum(weight * miss**2, axis=-1)))


@dataclass(frozen=True, eq=False)
class MinimumOfLinear(MinimumForm, Metric):
    """The smallest of P linear functions, ``min_p <parts[p], C>``: concave, not smooth.

    The gradient is that of the smallest part (the first of equals), a supergradient.

    Parameters
    ----------
    parts : ndarray of shape (P, K, K) or (..., P, K, K)
        The linear functions; leading axes are those of stacked priors.
    limits : (float, float)
        The range.

    See Also
    --------
    Minimum : The smallest of several linear metrics.
    MinRecall : The smallest recall.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.metrics import MinimumOfLinear
    >>> recalls = np.array([[[2.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 2.0]]])  # with equal class priors
    >>> float(MinimumOfLinear(recalls, (0.0, 1.0)).value(np.array([[0.5, 0.0], [0.2, 0.3]])))
    0.6
    """

    parts: FloatArray
    limits: tuple[float, float] = (0.0, 1.0)

    @property
    def traits(self) -> Traits:
        return Traits(name="minimum_of_linear", family="concave", range=self.limits, concave=True, smooth=False)

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        return self

    def summary(self, confusion: FloatArray) -> FloatArray:
        return inner(self.parts, confusion[..., None, :, :])

    def gradient_parts(self, slope: FloatArray) -> tuple[FloatArray, ...]:
        return (np.asarray(np.einsum("...p,...pij->...ij", slope, self.parts)),)


@dataclass(frozen=True, eq=False)
class MinimumOfRecalls(MinimumForm, ShareForm):
    """The smallest recall of the classes `which`, (..., P), at class priors (..., K).

    The same as a :class:`MinimumOfLinear`, without its matrices.
    """

    priors: FloatArray
    which: NDArray[np.intp]

    traits = Traits(name="minimum_of_recalls", family="concave", concave=True, smooth=False, monotone=True)

    @cached_property
    def _part_priors(self) -> FloatArray:
        return np.take_along_axis(self.priors, self.which, axis=-1)

    def summary_of(self, hits: FloatArray, columns: FloatArray) -> FloatArray:
        lead = np.broadcast_shapes(hits.shape[:-1], self.which.shape[:-1])
        hits = np.broadcast_to(hits, (*lead, hits.shape[-1]))
        which = np.broadcast_to(self.which, (*lead, self.which.shape[-1]))
        return divide(np.take_along_axis(hits, which, axis=-1), self._part_priors)

    def gradient_parts(self, slope: FloatArray) -> tuple[FloatArray, ...]:
        parts = divide(slope, self._part_priors)
        by_hit = np.zeros((*parts.shape[:-1], self.priors.shape[-1]))
        lead = np.indices(parts.shape, sparse=True)[:-1]
        np.add.at(by_hit, (*lead, np.broadcast_to(self.which, parts.shape)), parts)
        return by_hit, np.zeros_like(by_hit)


@register("min_recall")
@dataclass(frozen=True, eq=False)
class MinRecall(Metric):
    """Worst recall, ``min_i C[i, i] / pi_i``: the min-max metric.

    Range [0, 1]. Classes without rows are left out. Not smooth: the gradient is that of the worst class.

    See Also
    --------
    Minimum : The smallest of any linear metrics.
    GMean : Geometric mean of the recalls.

    References
    ----------
    .. [1] Poor (1994), "An Introduction to Signal Detection and Estimation".

    Examples
    --------
    >>> import metricwise as mw
    >>> float(mw.metrics.MinRecall().value([[0.75, 0.0], [0.125, 0.125]]))
    0.5
    """

    traits = Traits(name="min_recall", family="concave", concave=True, smooth=False, by_class=True)

    def _class_metric(self) -> Metric:
        return Recall(index=1)

    def _of_ratios(self, n_classes: int, classes: Sequence[Any] | None = None) -> RatioMean:
        return mean_of_recalls("minimum", n_classes)

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> MinimumOfRecalls:
        priors = as_shares(priors)
        n_classes = priors.shape[-1]
        present = priors > EMPTY
        occurs = np.flatnonzero(present.reshape(-1, n_classes).any(axis=0))
        if len(occurs) == 0:
            occurs = np.zeros(1, dtype=np.intp)
        # Stacked priors need one number of parts: where a class is absent, the part of the first present is repeated.
        which = np.where(present[..., occurs], occurs, present.argmax(axis=-1)[..., None])
        return MinimumOfRecalls(priors, which)

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> MinimumOfRecalls:
        return self.bind(priors)  # a class without rows is left out

    def _free_gradient(self, confusion: ArrayLike, classes: Sequence[Any] | None = None) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        recall, weight = recalls(diagonal(confusion), confusion.sum(axis=1))
        worst = np.where(weight > 0, recall, np.inf).argmin()
        return _free_of_recalls((np.arange(len(recall)) == worst).astype(np.float64), confusion)


@dataclass(frozen=True, eq=False)
class Minimum(Metric):
    """The smallest of several linear metrics, ``min_p psi_p(C)``, for decisions that must be good in every respect.

    Range: from the smallest of their lower ends to the smallest of their upper ends. Not smooth: the gradient is that
    of the smallest metric (the first of equals).

    Parameters
    ----------
    metrics : sequence of Metric
        Each must be linear once bound to the priors.

    See Also
    --------
    MinRecall : The smallest recall.
    metricwise.worst_group : The smallest value over sensitive groups.

    Examples
    --------
    >>> import metricwise as mw
    >>> worst = mw.metrics.Minimum([mw.metrics.Accuracy(), mw.metrics.Recall(index=1)])
    >>> float(worst.value([[0.75, 0.0], [0.125, 0.125]]))
    0.5
    """

    metrics: Sequence[Metric]

    @entry_point("{class}")
    def __post_init__(self) -> None:
        metrics = tuple(self.metrics)
        good = len(metrics) > 0 and all(isinstance(metric, Metric) for metric in metrics)
        if not good:
            raise InvalidParameter("metrics", "be a sequence of at least one Metric", repr(self.metrics))
        object.__setattr__(self, "metrics", metrics)

    @cached_property
    def traits(self) -> Traits:
        limits = _smallest([metric.range for metric in self.metrics])
        positive = any(metric.traits.needs_positive for metric in self.metrics)
        return Traits(
            name="minimum",
            family="concave",
            range=limits,
            concave=True,
            smooth=False,
            by_class=True,
            needs_positive=positive,
        )

    def _places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return tuple(place for metric in self.metrics for place in metric._places(classes))

    def _check_order(self, classes: Sequence[Any]) -> None:
        for metric in self.metrics:
            metric._check_order(classes)

    @entry_point("{class}")
    def _with_positive(self, label: Any) -> Minimum:
        if not self.traits.needs_positive:
            raise InvalidParameter(
                "metrics",
                problem="none of the metrics needs a positive class",
                remedy=f"leave {mention('pos_label')} out",
            )
        return Minimum(
            [metric._with_positive(label) if metric.traits.needs_positive else metric for metric in self.metrics]
        )

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> MinimumOfLinear:
        return self._of([metric.bind(priors, classes) for metric in self.metrics])

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> MinimumOfLinear:
        return self._of([metric._bind_undecided(priors, classes) for metric in self.metrics])

    @entry_point("{class}")
    def _of(self, bound: Sequence[Form]) -> MinimumOfLinear:
        """Return the smallest of bound metrics."""
        linear = [metric for metric in bound if isinstance(metric, Linear)]
        bad = [
            f"{m.name} ({b.traits.family})"
            for m, b in zip(self.metrics, bound, strict=True)
            if not isinstance(b, Linear)
        ]
        if bad:
            raise InvalidParameter(
                "metrics",
                problem=f"every metric must be linear once the class priors are known, got metrics that are not: {bad}",
            )
        parts = np.stack(np.broadcast_arrays(*(metric.A for metric in linear)), axis=-3)
        return MinimumOfLinear(parts, _smallest([metric.range for metric in linear]))

    def _free_gradient(self, confusion: ArrayLike, classes: Sequence[Any] | None = None) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        values = [metric.bind(confusion.sum(axis=1), classes).value(confusion) for metric in self.metrics]
        return self.metrics[int(np.argmin(values))]._free_gradient(confusion, classes)


def _smallest(ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return (min(low for low, _ in ranges), min(high for _, high in ranges))
