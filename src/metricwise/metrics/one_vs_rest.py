"""Metrics of one class against the rest, and their averages over classes: macro, weighted and micro.

Such a metric depends on three shares of each class only: hit (C[k, k]), true (row sum) and predicted (column sum), so
that all K classes cost a few operations on arrays (..., K). Averages over outputs are in
:mod:`metricwise.metrics.averages`. Must not know which metrics exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core.cached import cached_property
from ..core.errors import InvalidParameter, argument, entry_point, mention, warn
from ..core.matrices import (
    EMPTY,
    FloatArray,
    as_shares,
    diagonal_plus_columns,
    divide,
    prior_limits,
    row_sums,
    with_column,
)
from ..kernels import RatioMeans
from .base import Form, FractionalLinear, Linear, Metric, ShareForm, Traits, centred
from .parameters import check_zero_division, class_weights, find_class, weight_places
from .row_forms import RatioMean

__all__ = ["ClassAverage"]

_AVERAGES = ("macro", "weighted", "micro")
_STEP = 1e-5  # of a finite difference, relative to the share that it changes
_MAX_SHARES = 1 << 19  # shares that are evaluated together


class Terms(NamedTuple):
    """A linear function of a class's shares: ``hit * C[k, k] + true * pi_k + predicted * q_k + total``."""

    hit: float = 0.0
    true: float = 0.0
    predicted: float = 0.0
    total: float = 0.0

    @property
    def fixed(self) -> bool:
        """Whether no prediction can change it once the priors are known."""
        return self.hit == 0 and self.predicted == 0

    def of(self, hit: FloatArray, true: FloatArray, predicted: FloatArray) -> FloatArray:
        """Return its value for each class, shape (..., K)."""
        shares = ((self.hit, hit), (self.true, true), (self.predicted, predicted))
        counted = [share if weight == 1 else weight * share for weight, share in shares if weight != 0]
        if self.total != 0:
            counted.append(self.total * true.sum(axis=-1, keepdims=True))
        value = reduce(np.add, counted) if counted else np.zeros(())
        whole = hit.shape == predicted.shape and true.shape == hit.shape[hit.ndim - true.ndim :]
        if whole and value.shape == hit.shape:  # as always but for terms of one share
            return np.asarray(value)
        return np.broadcast_to(value, np.broadcast_shapes(hit.shape, true.shape, predicted.shape))

    def matrix(self, n_classes: int, k: int) -> FloatArray:
        """Return A with <A, C> equal to its value for class k."""
        matrix = np.full((n_classes, n_classes), self.total)
        matrix[k, :] += self.true
        matrix[:, k] += self.predicted
        matrix[k, k] += self.hit
        return matrix

    def pooled(self, n_classes: int, undecided: bool) -> FloatArray:
        """Return A with <A, C> equal to the sum of its values over all classes, with a column for undecided rows."""
        everywhere = self.true + self.predicted + n_classes * self.total
        matrix = self.hit * np.eye(n_classes) + everywhere
        return with_column(matrix, self.true + n_classes * self.total) if undecided else matrix


class Profile(NamedTuple):
    """Value of each class and its slopes in the shares that predictions change, each of shape (..., K)."""

    value: FloatArray
    by_hit: FloatArray
    by_predicted: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class OneVsRest(Metric):
    """Base of the metrics of one class; subclasses implement :meth:`profile` and have `declared` traits.

    A "{}" in the sentence `degenerate` of these stands for the class. With the family "linear", slopes must depend on
    the true shares only.

    Parameters
    ----------
    index : int, optional
        The class by position.
    pos_label : object, optional
        The class by label. With neither, class 1 of a binary output of the labels 0 and 1, -1 and 1, or False and True;
        an error with other labels or more classes.
    zero_division : float, default=0.0
        The value at 0/0.
    label : object, optional
        The former name of `pos_label`.
    """

    index: int | None = None
    pos_label: Any = None
    zero_division: float = 0.0
    label: InitVar[Any] = None

    @entry_point("{class}")
    def __post_init__(self, label: Any) -> None:
        if label is not None:
            if self.pos_label is not None:
                raise InvalidParameter(
                    "pos_label",
                    problem=f"label= is the former name of {argument('pos_label')}",
                    remedy=f"use only {argument('pos_label')}",
                )
            warn(f"label= is deprecated; use {argument('pos_label')} instead.", FutureWarning)
            object.__setattr__(self, "pos_label", label)
        check_zero_division(self.zero_division)
        self.check_parameters()

    def check_parameters(self) -> None:
        """Check further parameters of a subclass."""

    @property
    def declared(self) -> Traits:
        """Traits that do not depend on the class."""
        raise NotImplementedError

    @cached_property
    def traits(self) -> Traits:
        sentence = self.declared.degenerate
        degenerate = None if sentence is None else sentence.format(self.describe_class())
        return replace(self.declared, needs_positive=not self.names_class, degenerate=degenerate)

    def _class_metric(self) -> OneVsRest:
        return replace(self, index=1, pos_label=None)

    @property
    def names_class(self) -> bool:
        """Whether the class is given, by position or by label."""
        return self.index is not None or self.pos_label is not None

    @entry_point("{class}")
    def position(self, n_classes: int, classes: Sequence[Any] | None) -> int:
        """Return the index of the class among `n_classes`."""
        return find_class(n_classes, classes, self.index, self.pos_label)

    def _places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return (self.position(len(classes), classes),)

    def _with_positive(self, label: Any) -> OneVsRest:
        if self.pos_label is not None and self.pos_label == label:
            return self
        if self.names_class:
            raise InvalidParameter(
                "pos_label",
                problem=f"the metric already names {self.describe_class()}",
                remedy=f"leave {argument('pos_label', label)} out",
                owner=type(self).__name__,
            )
        return replace(self, pos_label=label)

    def describe_class(self) -> str:
        """Return a description of the class."""
        if self.pos_label is not None:
            return f"class {self.pos_label!r}"
        return "the positive class" if self.index is None else f"class {self.index}"

    def profile(self, hit: FloatArray, true: FloatArray, predicted: FloatArray) -> Profile:
        """Return the value of each class by its shares, arrays of shape (..., K), and the slopes."""
        raise NotImplementedError

    def values(self, hit: FloatArray, true: FloatArray, predicted: FloatArray) -> FloatArray:
        """Return the value of each class alone, as :meth:`profile` does; true shares may lack leading axes."""
        return self.profile(hit, np.broadcast_to(true, np.broadcast(hit, true).shape), predicted).value

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        priors = as_shares(priors)
        return self._bound(priors, self.position(priors.shape[-1], classes))

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        priors = as_shares(priors)
        return self._bound(priors, self.position(priors.shape[-1] - 1, classes))

    def _bound(self, priors: FloatArray, k: int) -> Form:
        """Return the form of class k; decisions that are no class come after the classes."""
        return self._average(np.eye(priors.shape[-1])[k], priors)

    def _free_gradient(self, confusion: ArrayLike, classes: Sequence[Any] | None = None) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        k = self.position(len(confusion), classes)
        return _free_gradient_of_classes(self, lambda priors: np.eye(priors.shape[-1])[k], confusion)

    def _average(self, weights: FloatArray, priors: FloatArray) -> Form:
        """Return the weighted mean over all classes."""
        form = AverageOfClasses(self, weights, priors)
        return form.as_linear() if self.declared.family == "linear" else form

    @entry_point("{class}")
    def _pool(self, n_classes: int, undecided: bool = False) -> Linear | FractionalLinear:
        """Return the metric of the shares summed over classes (the micro-average over classes)."""
        raise InvalidParameter(
            "average",
            problem=f"{argument('average', 'micro')} needs a ratio of linear functions, which {self.name} is not",
            remedy="pooled over classes it would be 'accuracy', so use that",
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassRatio(OneVsRest):
    """Base of the metrics of one class that are ratios of two :class:`Terms`.

    Where the denominator depends on the priors alone the bound metric is :class:`Linear`, else
    :class:`FractionalLinear`; the same holds for averages over classes.
    """

    @property
    def numerator(self) -> Terms:
        """The rows that are counted."""
        raise NotImplementedError

    @property
    def denominator(self) -> Terms:
        """The rows that could be counted."""
        raise NotImplementedError

    def profile(self, hit: FloatArray, true: FloatArray, predicted: FloatArray) -> Profile:
        above, below = self.numerator, self.denominator
        denominator = below.of(hit, true, predicted)
        value = divide(above.of(hit, true, predicted), denominator, self.zero_division)
        by_hit = divide(above.hit - value * below.hit, denominator)
        return Profile(value, by_hit, divide(above.predicted - value * below.predicted, denominator))

    def values(self, hit: FloatArray, true: FloatArray, predicted: FloatArray) -> FloatArray:
        denominator = self.denominator.of(hit, true, predicted)
        return divide(self.numerator.of(hit, true, predicted), denominator, self.zero_division)

    def _bound(self, priors: FloatArray, k: int) -> Linear | FractionalLinear:
        return self._ratio([k], priors)

    def _ratio(self, counted: Sequence[int], priors: FloatArray) -> Linear | FractionalLinear:
        """Return the ratio of the sums over some classes."""
        n_classes = priors.shape[-1]
        above, below = (
            reduce(np.add, [terms.matrix(n_classes, k) for k in counted])
            for terms in (self.numerator, self.denominator)
        )
        if not self.denominator.fixed:
            return FractionalLinear(above, below, self.zero_division, self.range)
        denominator = np.sum(priors * below[:, 0], axis=-1)[..., None, None]
        return _bound_linear(divide(above, denominator, self.zero_division), priors)

    def _of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear:
        return self._ratio_of_cells(n_classes, self.position(n_classes, classes))

    def _of_cells_undecided(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear:
        return self._ratio_of_cells(n_classes + 1, self.position(n_classes, classes))

    def _ratio_of_cells(self, size: int, k: int) -> FractionalLinear:
        above, below = self.numerator.matrix(size, k), self.denominator.matrix(size, k)
        return FractionalLinear(above, below, self.zero_division, self.range)

    def _average(self, weights: FloatArray, priors: FloatArray) -> Form:
        if not self.denominator.fixed:
            return super()._average(weights, priors)
        denominator = self.denominator.of(priors, priors, priors)
        scale = divide(weights, denominator)
        constant = np.sum(np.where(np.abs(denominator) <= EMPTY, weights * self.zero_division, 0.0), axis=-1)
        above = self.numerator
        columns = above.predicted * scale + (above.total * scale.sum(axis=-1) + constant)[..., None]
        matrix = diagonal_plus_columns(above.hit * scale) + above.true * scale[..., None] + columns[..., None, :]
        return _bound_linear(matrix, priors)

    def _pool(self, n_classes: int, undecided: bool = False) -> Linear | FractionalLinear:
        above, below = (terms.pooled(n_classes, undecided) for terms in (self.numerator, self.denominator))
        if self.denominator.hit != 0 or undecided:
            return FractionalLinear(above, below, self.zero_division, self.range)
        # Shares of all classes sum to 1, so that without hits the denominator is the same for all predictions.
        return Linear(divide(above, below, self.zero_division), self.range)


@dataclass(frozen=True, eq=False)
class AverageOfClasses(ShareForm):
    """A mean over classes of a metric of one class, with weights (..., K) that sum to 1, at priors (..., K)."""

    base: OneVsRest
    weights: FloatArray
    priors: FloatArray

    @property
    def traits(self) -> Traits:
        base = self.base.traits
        return Traits(name="average_of_classes", range=base.range, smooth=base.smooth, monotone=base.monotone)

    def _profile(self, summary: FloatArray) -> Profile:
        hit, predicted = _halves(summary)
        return self.base.profile(hit, np.broadcast_to(self.priors, np.broadcast(hit, self.priors).shape), predicted)

    @property
    def _ratio_means(self) -> RatioMeans | None:
        base = self.base
        if not isinstance(base, ClassRatio):
            return None
        priors = np.atleast_2d(self.priors)
        weights = np.broadcast_to(self.weights, priors.shape)
        return RatioMeans(weights, priors, base.numerator, base.denominator, base.zero_division, EMPTY)

    def as_linear(self) -> Linear:
        """Return the same form as a matrix, where slopes do not depend on the predictions."""
        value, by_hit, by_predicted = self._profile(np.zeros((*self.priors.shape[:-1], 2 * self.priors.shape[-1])))
        constant = np.sum(self.weights * value, axis=-1)[..., None, None]
        return _bound_linear(
            diagonal_plus_columns(self.weights * by_hit, self.weights * by_predicted) + constant, self.priors
        )

    def value_at(self, summary: FloatArray) -> FloatArray:
        hit, predicted = _halves(summary)
        return row_sums(self.weights * self.base.values(hit, self.priors, predicted))

    def slope_at(self, summary: FloatArray) -> FloatArray:
        profile = self._profile(summary)
        return np.concatenate([self.weights * profile.by_hit, self.weights * profile.by_predicted], axis=-1)

    def class_terms(self, hits: FloatArray, predicted: FloatArray) -> FloatArray:
        return np.asarray(self.weights * self.base.values(hits, np.broadcast_to(self.priors, hits.shape), predicted))


def _halves(summary: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return hits and predicted shares (..., K) of summaries (..., 2 K)."""
    k = summary.shape[-1] // 2
    return summary[..., :k], summary[..., k:]


def _free_gradient_of_classes(
    base: OneVsRest, weights: Callable[[FloatArray], FloatArray], confusion: FloatArray
) -> FloatArray:
    """Return :meth:`Metric._free_gradient` of a mean over classes, whose weights may depend on the priors.

    Differences are taken in the true shares, K numbers each instead of K^2.
    """
    priors, k = confusion.sum(axis=1), len(confusion)
    bound = AverageOfClasses(base, weights(priors), priors)
    summary = bound.summary(confusion)
    slope = bound.gradient(confusion)
    steps = _STEP * priors
    for batch in np.array_split(np.arange(k), -(-2 * k * k // _MAX_SHARES)):
        sides = np.repeat(priors[None, None], 2, axis=0).repeat(len(batch), axis=1)
        sides[:, np.arange(len(batch)), batch] += np.outer([1.0, -1.0], steps[batch])
        up, down = AverageOfClasses(base, weights(sides), sides).value_at(summary)
        slope[batch] += ((up - down) / np.where(steps[batch] > 0, 2 * steps[batch], 1.0))[:, None]
    return centred(slope, confusion)


def _bound_linear(matrix: FloatArray, priors: FloatArray) -> Linear:
    return Linear(matrix, prior_limits(matrix, priors))


@dataclass(frozen=True, eq=False)
class ClassAverage(Metric):
    """Average of a metric of one class over all K classes, ``sum_k w_k psi_k(C)``, with weights scaled to sum to 1.

    Range: that of the metric. A class without rows also counts, with the metric's `zero_division` at 0/0, as in
    scikit-learn with ``labels=classes``. Averages of recall and specificity are linear once bound.

    Parameters
    ----------
    base : OneVsRest
        The metric of one class, such as ``FBeta(beta=2)``, without `index` or `pos_label`.
    average : {"macro", "weighted", "micro"}, default="macro"
        Whether classes count equally ("macro"), by their share of the rows ("weighted"), or hits, true and predicted
        shares are summed over classes first ("micro", which makes F1, precision and recall equal to accuracy).
    class_weight : array-like of shape (K,) or dict, optional
        Further weights by position, or by label (1 for a label that is not in the dict). Not for "micro".

    See Also
    --------
    FBeta : F-measure of one class.
    metric_names : Names such as "macro_f1" for common averages.

    References
    ----------
    .. [1] Lewis (1991), "Evaluating Text Categorization", HLT.

    Examples
    --------
    >>> import metricwise as mw
    >>> macro_f1 = mw.metrics.ClassAverage(mw.metrics.FBeta())
    >>> round(float(macro_f1.value([[0.5, 0.125], [0.125, 0.25]])), 6)
    0.733333
    >>> mw.metrics.ClassAverage(mw.metrics.Recall(), "weighted").bind([0.5, 0.5]).traits.family
    'linear'
    """

    base: OneVsRest
    average: str = "macro"
    class_weight: ArrayLike | Mapping[Any, float] | None = None

    @entry_point("{class}")
    def __post_init__(self) -> None:
        base: object = self.base
        if not isinstance(base, OneVsRest) or base.names_class:
            raise InvalidParameter(
                "base",
                f"be a metric of one class (such as FBeta()) without index or {mention('pos_label')}",
                repr(self.base),
            )
        if self.average not in _AVERAGES:
            raise InvalidParameter("average", "be 'macro', 'weighted' or 'micro'", repr(self.average))
        if self.class_weight is not None and self.average == "micro":
            raise InvalidParameter(
                "class_weight", f"be None with {argument('average', 'micro')}, which pools all classes"
            )

    @cached_property
    def traits(self) -> Traits:
        base, micro = self.base.traits, self.average == "micro"
        return replace(
            base,
            # "micro_f1" is the paper's metric, which has a negative class.
            name=f"{base.name}_micro" if micro else f"{self.average}_{base.name}",
            family="other",
            concave=False,
            by_class=self.average == "macro",
            fixed_form=micro,
            needs_positive=False,
            degenerate=None,
        )

    def _class_metric(self) -> Metric | None:
        return self.base._class_metric()

    @entry_point("{class}")
    def _places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return weight_places(self.class_weight, classes)

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        priors = as_shares(priors)
        if self.average == "micro":
            return self.base._pool(priors.shape[-1])
        return self.base._average(self._weights(priors, classes), priors)

    def _of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear | None:
        return self.base._pool(n_classes).as_ratio() if self.average == "micro" else None

    def _of_ratios(self, n_classes: int, classes: Sequence[Any] | None = None) -> RatioMean | None:
        if self.average != "macro" or not isinstance(self.base, ClassRatio):
            return None
        parts = [replace(self.base, index=k)._of_cells(n_classes) for k in range(n_classes)]
        return RatioMean("arithmetic", tuple(parts), self._weights(np.full(n_classes, 1.0 / n_classes), classes))

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        priors = as_shares(priors)
        if self.average == "micro":
            return self.base._pool(priors.shape[-1] - 1, undecided=True)
        weights = self._weights(priors[..., :-1], classes)
        return self.base._average(np.concatenate([weights, np.zeros_like(weights[..., :1])], axis=-1), priors)

    def _free_gradient(self, confusion: ArrayLike, classes: Sequence[Any] | None = None) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        if self.average == "micro":
            return super()._free_gradient(confusion, classes)
        return _free_gradient_of_classes(self.base, lambda priors: self._weights(priors, classes), confusion)

    @entry_point("{class}")
    def _weights(self, priors: FloatArray, classes: Sequence[Any] | None) -> FloatArray:
        n_classes = priors.shape[-1]
        weights = priors if self.average == "weighted" else np.ones(n_classes)
        if self.class_weight is not None:
            weights = weights * class_weights(self.class_weight, n_classes, classes)
        return divide(weights, weights.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class SomeClasses(Metric):
    """Average over some of the classes of a metric of one class, like scikit-learn's ``labels=``."""

    base: ClassRatio
    average: str
    labels: tuple[Any, ...] = ()

    @cached_property
    def traits(self) -> Traits:
        base = self.base.traits
        return replace(
            base,
            name=f"{base.name}_{self.average}_of_some",
            family="other",
            concave=False,
            by_class=self.average == "macro",
            needs_positive=False,
            degenerate=None,
        )

    def _class_metric(self) -> Metric | None:
        return self.base._class_metric()

    def _positions(self, n_classes: int, classes: Sequence[Any] | None) -> list[int]:
        names = list(range(n_classes)) if classes is None else list(classes)
        if not (len(set(self.labels)) == len(self.labels) and all(label in names for label in self.labels)):
            raise InvalidParameter(
                "labels", f"be among the classes {names}, each once", list(self.labels), owner="metric"
            )
        return [names.index(label) for label in self.labels]

    def _places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return tuple(self._positions(len(classes), classes))

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        priors = as_shares(priors)
        counted = self._positions(priors.shape[-1], classes)
        if self.average == "micro":
            return self.base._ratio(counted, priors)
        inside = np.isin(np.arange(priors.shape[-1]), counted).astype(np.float64)
        weights = inside * priors if self.average == "weighted" else inside
        return self.base._average(divide(weights, weights.sum(axis=-1, keepdims=True)), priors)


def averaged(base: Callable[..., OneVsRest], average: str) -> Callable[..., ClassAverage]:
    """Return the factory of an average over classes, for the registry of names."""

    def factory(
        zero_division: float = 0.0, class_weight: ArrayLike | Mapping[Any, float] | None = None
    ) -> ClassAverage:
        return ClassAverage(base(zero_division=zero_division), average, class_weight)

    return factory
