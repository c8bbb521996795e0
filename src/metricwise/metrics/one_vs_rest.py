"""Metrics of one class against the rest, and the form their averages over classes take.

Such a metric depends on three shares of each class only: hit (C[k, k]), true (row sum) and predicted (column sum). So
one class and the average over all K of them cost the same few operations on arrays of shape (..., K), and every
gradient is diagonal plus a constant per column. Must not know the registry or which metrics exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InvalidParameter, argument, entry_point, warn
from ._common import (
    EMPTY,
    FloatArray,
    as_shares,
    check_zero_division,
    divide,
    find_class,
    on_diagonal,
    prior_limits,
    with_column,
)
from ._free import centred
from .base import FractionalLinear, Linear, Metric
from .summary import HitsAndColumns

__all__ = ["AverageOfClasses", "ClassRatio", "OneVsRest", "Profile", "Terms"]


_STEP = 1e-5  # of a difference, beside the share that it moves
_TOGETHER = 1 << 19  # shares that differences are taken of together


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
        total = true.sum(axis=-1, keepdims=True)
        return np.asarray(self.hit * hit + self.true * true + self.predicted * predicted + self.total * total)

    def matrix(self, n_classes: int, k: int) -> FloatArray:
        """Return A with <A, C> equal to its value for class k."""
        matrix = np.full((n_classes, n_classes), self.total)
        matrix[k, :] += self.true
        matrix[:, k] += self.predicted
        matrix[k, k] += self.hit
        return matrix

    def pooled(self, n_classes: int) -> FloatArray:
        """Return A with <A, C> equal to the sum of its values over all classes."""
        everywhere = self.true + self.predicted + n_classes * self.total
        return self.hit * np.eye(n_classes) + everywhere

    def pooled_undecided(self, n_classes: int) -> FloatArray:
        """Return the same where rows may stay undecided, (K + 1, K + 1)."""
        return with_column(self.pooled(n_classes), self.true + n_classes * self.total)


class Profile(NamedTuple):
    """Value of each class and its slopes in the shares that predictions change, each of shape (..., K)."""

    value: FloatArray
    by_hit: FloatArray
    by_predicted: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class OneVsRest(Metric):
    """Base of the metrics of one class; subclasses implement :meth:`profile`.

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
        """Check what a subclass has besides; here, nothing."""

    def class_metric(self) -> OneVsRest:
        return replace(self, index=1, pos_label=None)

    @property
    def names_class(self) -> bool:
        """Whether the class is given, by position or by label."""
        return self.index is not None or self.pos_label is not None

    @property
    def wants_positive(self) -> bool:
        return not self.names_class

    @entry_point("{class}")
    def position(self, n_classes: int, classes: Sequence[Any] | None) -> int:
        """Return the index of the class among `n_classes`."""
        return find_class(n_classes, classes, self.index, self.pos_label)

    def places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return (self.position(len(classes), classes),)

    def with_positive(self, label: Any) -> OneVsRest:
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
        """Return the class in words."""
        if self.pos_label is not None:
            return f"class {self.pos_label!r}"
        return "the positive class" if self.index is None else f"class {self.index}"

    def profile(self, hit: FloatArray, true: FloatArray, predicted: FloatArray) -> Profile:
        """Return the value of each class by its shares, arrays of shape (..., K), and the slopes."""
        raise NotImplementedError

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        priors = as_shares(priors)
        return self._bound(priors, self.position(priors.shape[-1], classes))

    def bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        priors = as_shares(priors)
        return self._bound(priors, self.position(priors.shape[-1] - 1, classes))

    def _bound(self, priors: FloatArray, k: int) -> Metric:
        """Return the metric of class k; decisions that are no class come behind the classes."""
        return AverageOfClasses(self, np.eye(priors.shape[-1])[k], priors)

    def free_gradient(self, confusion: ArrayLike, classes: Sequence[Any] | None = None) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        k = self.position(len(confusion), classes)
        return free_gradient_of_classes(self, lambda priors: np.eye(priors.shape[-1])[k], confusion)

    def average(self, weights: FloatArray, priors: FloatArray) -> Metric:
        """Return the weighted mean over all classes as a bound metric."""
        return AverageOfClasses(self, weights, priors)

    def pool_undecided(self, n_classes: int) -> Metric:
        """Return the same of K classes where rows may stay undecided."""
        return self.pool(n_classes)  # which refuses

    @entry_point("{class}")
    def pool(self, n_classes: int) -> Metric:
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

    family: ClassVar[str] = "fractional-linear"

    @property
    def numerator(self) -> Terms:
        """What is counted."""
        raise NotImplementedError

    @property
    def denominator(self) -> Terms:
        """Out of what."""
        raise NotImplementedError

    def profile(self, hit: FloatArray, true: FloatArray, predicted: FloatArray) -> Profile:
        above, below = self.numerator, self.denominator
        denominator = below.of(hit, true, predicted)
        value = divide(above.of(hit, true, predicted), denominator, self.zero_division)
        by_hit = divide(above.hit - value * below.hit, denominator)
        return Profile(value, by_hit, divide(above.predicted - value * below.predicted, denominator))

    def _bound(self, priors: FloatArray, k: int) -> Linear | FractionalLinear:
        n_classes = priors.shape[-1]
        above, below = self.numerator.matrix(n_classes, k), self.denominator.matrix(n_classes, k)
        if not self.denominator.fixed:
            return FractionalLinear(above, below, self.zero_division, (0.0, 1.0))
        denominator = np.sum(priors * below[:, 0], axis=-1)[..., None, None]
        return _bound_linear(divide(above, denominator, self.zero_division), priors)

    def of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear:
        k = self.position(n_classes, classes)
        return FractionalLinear(
            self.numerator.matrix(n_classes, k),
            self.denominator.matrix(n_classes, k),
            self.zero_division,
            (0.0, 1.0),
        )

    def average(self, weights: FloatArray, priors: FloatArray) -> Metric:
        if not self.denominator.fixed:
            return super().average(weights, priors)
        denominator = self.denominator.of(priors, priors, priors)
        scale = divide(weights, denominator)
        constant = np.sum(np.where(np.abs(denominator) <= EMPTY, weights * self.zero_division, 0.0), axis=-1)
        above = self.numerator
        columns = above.predicted * scale + (above.total * scale.sum(axis=-1) + constant)[..., None]
        matrix = on_diagonal(above.hit * scale) + above.true * scale[..., None] + columns[..., None, :]
        return _bound_linear(matrix, priors)

    def pool_undecided(self, n_classes: int) -> Metric:
        above, below = self.numerator.pooled_undecided(n_classes), self.denominator.pooled_undecided(n_classes)
        return FractionalLinear(above, below, self.zero_division, (0.0, 1.0))

    def pool(self, n_classes: int) -> Metric:
        above, below = self.numerator.pooled(n_classes), self.denominator.pooled(n_classes)
        if self.denominator.hit != 0:
            return FractionalLinear(above, below, self.zero_division, (0.0, 1.0))
        # Shares of all classes sum to 1, so that without hits the denominator is the same whatever is predicted.
        return Linear(divide(above, below, self.zero_division), (0.0, 1.0))


@dataclass(frozen=True, eq=False)
class AverageOfClasses(HitsAndColumns):
    """A weighted mean over classes of a metric of one class, bound to the priors.

    Parameters
    ----------
    base : OneVsRest
        The metric of each class.
    weights : ndarray of shape (..., K)
        Weight of each class; sums to 1.
    priors : ndarray of shape (..., K)
        Row sums of C.
    """

    base: OneVsRest
    weights: FloatArray
    priors: FloatArray

    name: ClassVar[str] = "average_of_classes"

    @property
    def rising(self) -> bool:  # type: ignore[override]  # a mean is as its parts are
        return self.base.rising

    def _profile(self, summary: FloatArray) -> Profile:
        hit, predicted = np.split(summary, 2, axis=-1)
        return self.base.profile(hit, np.broadcast_to(self.priors, np.broadcast(hit, self.priors).shape), predicted)

    def value_at(self, summary: FloatArray) -> FloatArray:
        return np.asarray(np.sum(self.weights * self._profile(summary).value, axis=-1))

    def slope_at(self, summary: FloatArray) -> FloatArray:
        profile = self._profile(summary)
        return np.concatenate([self.weights * profile.by_hit, self.weights * profile.by_predicted], axis=-1)


def free_gradient_of_classes(
    base: OneVsRest, weights: Callable[[FloatArray], FloatArray], confusion: FloatArray
) -> FloatArray:
    """Return :meth:`Metric.free_gradient` of a mean over classes, whose weights may depend on the priors.

    The true shares are as good as any others here: differences in them cost K numbers each, not K^2.
    """
    priors, k = confusion.sum(axis=1), len(confusion)
    bound = AverageOfClasses(base, weights(priors), priors)
    summary = bound.summary(confusion)
    slope = bound.gradient(confusion)
    steps = _STEP * priors
    for some in np.array_split(np.arange(k), -(-2 * k * k // _TOGETHER)):
        sides = np.repeat(priors[None, None], 2, axis=0).repeat(len(some), axis=1)
        sides[:, np.arange(len(some)), some] += np.outer([1.0, -1.0], steps[some])
        up, down = AverageOfClasses(base, weights(sides), sides).value_at(summary)
        slope[some] += ((up - down) / np.where(steps[some] > 0, 2 * steps[some], 1.0))[:, None]
    return centred(slope, confusion)


def _bound_linear(matrix: FloatArray, priors: FloatArray) -> Linear:
    return Linear(matrix, prior_limits(matrix, priors))
