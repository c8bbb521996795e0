"""What a metric is, and the forms that metrics take once the class priors are known.

A metric psi is a function of one confusion matrix ``C`` (K, K), shares of weight that sum to 1, true class by row.
No rule changes the row sums of C (the class priors pi), so a metric is first *bound* to them; many metrics that look
hard are linear or fractional-linear once bound. Solvers ask the bound metric what it is and never which one it is.

Every method takes stacks: C of shape (..., K, K) gives values of shape (...). Must not know data, rules or solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import isqrt
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InvalidParameter, InvalidType, argument, entry_point, mention, shown
from ._free import centred, row_slopes

__all__ = ["FractionalLinear", "Increasing", "Linear", "Metric"]

FloatArray = NDArray[np.float64]

# A denominator this small beside the largest entry of B is an empty sum plus rounding.
_EMPTY = 1e-14


def inner(weights: FloatArray, confusion: FloatArray) -> FloatArray:
    """Return <A, C> over the last two axes."""
    return cast(FloatArray, np.add.reduce(weights * confusion, axis=(-2, -1)))


def quotient(
    numerator: FloatArray, denominator: FloatArray, scale: float, zero_division: float | None = None
) -> FloatArray:
    """Return numerator / denominator; `zero_division` where the denominator is empty beside the entries of B.

    Parameters
    ----------
    scale : float
        The largest entry of B in absolute value.
    """
    empty = np.abs(denominator) <= _EMPTY * scale
    if not empty.any():
        return np.asarray(numerator / denominator)
    return np.where(empty, zero_division or 0.0, numerator / np.where(empty, 1.0, denominator))


def _square(flat: FloatArray) -> FloatArray:
    k = isqrt(flat.shape[-1])
    return flat.reshape(*flat.shape[:-1], k, k)


class Metric:
    """Base class of all metrics; subclasses are frozen dataclasses.

    A subclass implements :meth:`bind`, or overrides :meth:`value` and :meth:`gradient` if it is a bound form itself.

    Attributes
    ----------
    name : str
        The registry's name, or a description of a user's metric.
    concave : bool
        Whether the bound metric is a concave function of C.
    smooth : bool
        Whether its gradient exists wherever its value is inside its range.
    by_class : bool
        Whether every class counts equally, however few rows it has.
    rising : bool
        Whether, for two classes and once bound, it never decreases when a right decision replaces a wrong one. The
        value with all possible hits and no misses is then an upper bound.
    reads_labels : bool
        Whether its value may depend on the class labels, so that pooled outputs must have the same ones.
    costly : bool
        Whether a value requires a call of a user's function, so that solvers should evaluate few.
    whole_rows : bool
        Whether it is a function of whole rows, and so can be evaluated with labels only.
    lower_is_better : bool
        Whether it is a loss: as an aim, minus its value is maximised (:meth:`maximised`).
    of_abstentions : bool
        Whether it is only about how often a rule abstains.
    loss_name : str or None
        The name of the loss or cost that the metric is minus of, which people read instead; None for most metrics.

    See Also
    --------
    from_function : Make a metric from a function of the confusion matrix.
    Linear : A linear metric.
    FractionalLinear : A ratio of linear functions.

    Examples
    --------
    >>> import metricwise as mw
    >>> metric = mw.metrics.FBeta(beta=2.0)
    >>> metric.score([0, 1, 1, 0], [0, 1, 0, 0]), metric.range
    (0.5555555555555556, (0.0, 1.0))
    """

    name: ClassVar[str] = "metric"
    family: ClassVar[str] = "other"
    concave: ClassVar[bool] = False
    smooth: ClassVar[bool] = True
    by_class: ClassVar[bool] = False
    rising: ClassVar[bool] = False
    reads_labels: ClassVar[bool] = False
    costly: ClassVar[bool] = False
    whole_rows: ClassVar[bool] = False
    lower_is_better: ClassVar[bool] = False
    of_abstentions: ClassVar[bool] = False
    loss_name: ClassVar[str | None] = None

    # Set by modules that are built on this class: affine.py and of_labels.py.
    _negate: ClassVar[Callable[[Metric], Metric]]
    _score: ClassVar[Callable[..., float]]

    def maximised(self) -> Metric:
        """Return the metric as an aim, of which more is better: itself, or minus itself if it is a loss."""
        return Metric._negate(self) if self.lower_is_better else self

    def class_metric(self) -> Metric | None:
        """Return the metric of class 1 against the rest that shows for which classes a rule gains; None: F1 will do."""
        return None

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest value that the metric can take on any confusion matrix."""
        return (0.0, 1.0)

    @property
    def degenerate(self) -> str | None:
        """A sentence that explains why maximising this metric alone gives a useless rule; None for a sound aim."""
        return None

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        """Fix the class priors, and with them the form of the metric.

        Parameters
        ----------
        priors : array-like of shape (..., K)
            Row sums of C.
        classes : sequence of K labels, optional
            Labels of the classes, in order, to which a class given by label refers.

        Returns
        -------
        Metric
            A :class:`Linear`, :class:`FractionalLinear`, :class:`Increasing`, or a metric of its own form.
        """
        return self

    def of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> Metric | None:
        """Return the metric as a ratio of sums of cells of C, whatever the class priors; None if it is not one.

        Such a metric has the same form on a subset of the rows, so that rows can be left out.

        Returns
        -------
        FractionalLinear, Increasing or None
        """
        return None

    def bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        """Bind the metric of rules that may leave rows undecided, which counts as a miss of their class.

        An undecided row is neither right nor predicted as any class, like an additional predicted label in
        scikit-learn, with ``labels=classes`` for averages over classes.

        Parameters
        ----------
        priors : array-like of shape (..., K + 1)
            Of the K classes, and 0 for the decision that is none of them.
        classes : sequence of K labels, optional

        Returns
        -------
        Metric
            Of confusions (..., K + 1, K + 1), whose last row is empty.
        """
        raise InvalidParameter(
            "",
            problem=f"{self.name} does not define a value for undecided rows, so a rule for it cannot abstain",
            remedy="leave abstain out",
            owner=type(self).__name__,
        )

    def price(self, A: FloatArray, cost: float) -> FloatArray:
        """Return the value of an undecided row of each class, (..., K), at a cost, for a linear metric <A, C>.

        A cost of 0 is as good as the best decision about the row, a cost of 1 as bad as the worst one.
        """
        best, worst = A.max(axis=-1), A.min(axis=-1)
        return np.asarray(best - cost * (best - worst))

    @property
    def priced(self) -> bool:
        """Whether the metric itself defines the value of an undecided row."""
        return False

    def of_rows(self, total: ArrayLike) -> Metric:
        """Return the metric of confusions of a given number of rows, one number or one for each matrix of a stack."""
        return self

    def places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        """Return the positions of the classes that the metric names; pooled outputs must agree on them.

        A class that is missing, or that has not been named, raises an error.
        """
        return ()

    def check_order(self, classes: Sequence[Any]) -> None:
        """Raise an error if the metric depends on the order of the labels and no order is known."""

    @property
    def wants_positive(self) -> bool:
        """Whether the metric is that of one class, without naming it."""
        return False

    def with_positive(self, label: Any) -> Metric:
        """Return the metric with this positive class; an error if it has none, or already names one."""
        raise InvalidParameter(
            "pos_label",
            problem=f"{self.name!r} has no positive class",
            remedy=f"leave {mention('pos_label')} out",
            owner=type(self).__name__,
        )

    def of_output(self, output: int) -> Metric:
        """Return the metric of one of several outputs: the same, unless each output has its own."""
        return self

    def of_outputs(self, outputs: Sequence[int]) -> Metric:
        """Return the metric of some of several outputs, given by position."""
        return self

    @property
    def each(self) -> tuple[Metric, ...]:
        """The distinct metrics of several outputs: only itself, unless each output has its own."""
        return (self,)

    def value(self, confusion: ArrayLike) -> FloatArray:
        """Return psi(C) for each matrix of a stack of shape (..., K, K)."""
        confusion = np.asarray(confusion, dtype=np.float64)
        return self.bind(confusion.sum(axis=-1)).value(confusion)

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        """Return d psi / d C at fixed class priors, shape (..., K, K); defined up to a constant per row."""
        confusion = np.asarray(confusion, dtype=np.float64)
        return self.bind(confusion.sum(axis=-1)).gradient(confusion)

    def summary(self, confusion: FloatArray) -> FloatArray:
        """Return the linear functions of C that a bound metric depends on, (..., D); by default, all cells."""
        return confusion.reshape(*confusion.shape[:-2], -1)

    def value_at(self, summary: FloatArray) -> FloatArray:
        """Return psi(C) for each of a stack of summaries (..., D)."""
        return self.value(_square(summary))

    def slope_at(self, summary: FloatArray) -> FloatArray:
        """Return d psi / d summary at fixed class priors, shape (..., D)."""
        return self.summary(self.gradient(_square(summary)))

    def form_of(self, slope: FloatArray) -> tuple[FloatArray, ...]:
        """Return a slope of the summary as one of C: ``(matrix,)``, or ``(by_hit, by_column)``, (..., K) each."""
        return (_square(slope),)

    def prior_slopes(self, confusion: FloatArray, classes: Sequence[Any] | None = None) -> FloatArray | None:
        """Return how the value of the bound metric at a fixed C (K, K) changes with the priors, shape (K,).

        None, where no formula is known: then :meth:`free_gradient` takes differences.
        """
        return None

    def free_gradient(self, confusion: ArrayLike, classes: Sequence[Any] | None = None) -> FloatArray:
        """Return d psi / d C with the class priors free to move and the sum of C held at 1; C of shape (K, K).

        What a sampling error needs: samples differ in their class shares as well. The cells of a row that is empty get
        0, for there the metric may jump.
        """
        confusion = np.asarray(confusion, dtype=np.float64)
        slope = self.bind(confusion.sum(axis=-1), classes).gradient(confusion)
        through = self.prior_slopes(confusion, classes)
        if through is not None:
            return centred(slope + through[:, None], confusion)
        return centred(slope + row_slopes(self, confusion, slope, classes)[:, None], confusion)

    def score(self, y_true: ArrayLike, y_pred: ArrayLike, **options: Any) -> float:
        """Return the value of the metric for true and predicted labels.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (N,) or (N, M)
            True and predicted labels; missing true labels are ignored.
        **options
            ``sample_weight``, ``average``, ``output_weight``, ``classes``, ``pos_label`` and ``abstain``, as in
            :func:`metricwise.metrics.of_labels.score`.

        Returns
        -------
        float

        Examples
        --------
        >>> import metricwise as mw
        >>> mw.metrics.Accuracy().score(["a", "b", "b"], ["a", "b", "a"], sample_weight=[1, 1, 2])
        0.5
        """
        return Metric._score(self, y_true, y_pred, **options)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(cast(Any, self)) if f.compare)
        return all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else bool(a == b)
            for a, b in pairs
        )

    __hash__ = None  # type: ignore[assignment]  # some hold arrays; all compare by content


@dataclass(frozen=True, eq=False)
class Linear(Metric):
    """A linear metric, ``<A, C>``.

    Range: the smallest to the largest entry of A, or `limits`. It has no 0/0.

    Parameters
    ----------
    A : array-like of shape (K, K)
        Value of predicting class j for a row of true class i.
    limits : (float, float), optional
        The range, if it is known to be narrower than that of the entries of A.

    See Also
    --------
    Cost : Minus the mean cost.
    FractionalLinear : A ratio of linear functions.

    Examples
    --------
    >>> import metricwise as mw
    >>> metric = mw.metrics.Linear([[1.0, 0.0], [-5.0, 1.0]])
    >>> float(metric.value([[0.6, 0.1], [0.1, 0.2]]))
    0.3
    """

    A: FloatArray
    limits: tuple[float, float] | None = field(default=None, compare=False)

    name: ClassVar[str] = "linear"
    family: ClassVar[str] = "linear"
    concave: ClassVar[bool] = True

    @entry_point("{class}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "A", _check_matrix(self.A, "A"))

    @property
    def range(self) -> tuple[float, float]:
        return self.limits or (float(self.A.min()), float(self.A.max()))

    @entry_point("{class}")
    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Linear:
        _check_size(self.A, np.shape(priors)[-1], "A")
        return self

    def prior_slopes(self, confusion: FloatArray, classes: Sequence[Any] | None = None) -> FloatArray:
        return np.zeros(len(confusion))

    def of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear:
        return self.bind(np.zeros(n_classes)).as_ratio()

    @entry_point("{class}")
    def price(self, A: FloatArray, cost: float) -> FloatArray:
        raise InvalidParameter(
            "",
            problem="the entries of A do not define the value of an abstention",
            remedy=(
                "use metrics.Cost(cost) with a cost of shape (K, K + 1), whose last column is the cost of "
                f"abstaining, and {argument('abstain', True)}"
            ),
        )

    def value(self, confusion: ArrayLike) -> FloatArray:
        return inner(self.A, np.asarray(confusion, dtype=np.float64))

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        return np.broadcast_to(self.A, np.broadcast_shapes(self.A.shape, np.shape(confusion))).copy()

    def as_ratio(self) -> FractionalLinear:
        """Return the same metric as a ratio whose denominator is 1."""
        return FractionalLinear(self.A, np.ones_like(self.A), limits=self.range)


@dataclass(frozen=True, eq=False)
class FractionalLinear(Metric):
    """A ratio of two linear functions, ``<A, C> / <B, C>``.

    Parameters
    ----------
    A, B : array-like of shape (K, K)
        Numerator and denominator.
    zero_division : float, optional
        The value at 0/0. None (the default) means that the denominator must be positive whatever is predicted, which
        is checked when the class priors are known.
    limits : (float, float), optional
        The range, if it is known.

    See Also
    --------
    Linear : A linear metric.
    from_function : Any function of the confusion matrix.

    Examples
    --------
    >>> import metricwise as mw
    >>> f1 = mw.metrics.FractionalLinear([[0, 0], [0, 2]], [[0, 1], [1, 2]], zero_division=0.0)
    >>> float(f1.value([[0.6, 0.1], [0.1, 0.2]]))
    0.6666666666666666
    """

    A: FloatArray
    B: FloatArray
    zero_division: float | None = None
    limits: tuple[float, float] | None = field(default=None, compare=False)

    name: ClassVar[str] = "fractional_linear"
    family: ClassVar[str] = "fractional-linear"

    @entry_point("{class}")
    def __post_init__(self) -> None:
        for part in ("A", "B"):
            object.__setattr__(self, part, _check_matrix(getattr(self, part), part))
        if self.A.shape[-1] != self.B.shape[-1]:
            raise InvalidParameter(
                "A", problem=f"A and B must have one shape (K, K), got {self.A.shape} and {self.B.shape}"
            )

    @property
    def range(self) -> tuple[float, float]:
        if self.limits is not None:
            return self.limits
        if not (self.B > 0).all():
            return (-np.inf, np.inf)
        ratios = self.A / self.B
        return (float(ratios.min()), float(ratios.max()))

    @entry_point("{class}")
    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> FractionalLinear:
        priors = np.asarray(priors, dtype=np.float64)
        _check_size(self.A, priors.shape[-1], "A and B")
        if self.zero_division is not None and self.limits is not None:
            return self
        extremes = [
            np.sum(priors * pick(part, axis=-1), axis=-1) for part in (self.A, self.B) for pick in (np.min, np.max)
        ]
        num_lo, num_hi, den_lo, den_hi = extremes
        if self.zero_division is None and np.any(den_lo <= _EMPTY * self.scale):
            raise InvalidParameter(
                "B",
                problem=(
                    "the denominator <B, C> must be positive whatever is predicted, but with these class "
                    f"priors it can be as small as {float(np.min(den_lo)):.6g}"
                ),
                remedy=f"increase B, or set {argument('zero_division')}",
            )
        if np.any(den_lo < -_EMPTY * self.scale):
            raise InvalidParameter(
                "B",
                problem=(
                    "the denominator <B, C> must not be negative, but with these class priors it can be as "
                    f"small as {float(np.min(den_lo)):.6g}"
                ),
                remedy="increase B",
            )
        if np.any(den_lo <= 0):
            return self
        corners = np.stack([num_lo / den_lo, num_lo / den_hi, num_hi / den_lo, num_hi / den_hi])
        limits = (float(corners.min()), float(corners.max()))
        return FractionalLinear(self.A, self.B, self.zero_division, limits)

    def prior_slopes(self, confusion: FloatArray, classes: Sequence[Any] | None = None) -> FloatArray:
        return np.zeros(len(confusion))

    @entry_point("{class}")
    def of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear:
        _check_size(self.A, n_classes, "A and B")
        return self

    def ratio(self, numerator: FloatArray, denominator: FloatArray) -> FloatArray:
        """Return numerator / denominator, or the value at 0/0 if the denominator vanishes."""
        return quotient(numerator, denominator, self.scale, self.zero_division)

    @cached_property
    def scale(self) -> float:
        """The largest absolute entry of B, relative to which a denominator counts as zero."""
        return float(np.abs(self.B).max())

    def value(self, confusion: ArrayLike) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        return self.ratio(inner(self.A, confusion), inner(self.B, confusion))

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        value, denominator = self.value(confusion), inner(self.B, confusion)
        empty = np.abs(denominator) <= _EMPTY * self.scale
        slope = (self.A - value[..., None, None] * self.B) / np.where(empty, 1.0, denominator)[..., None, None]
        return np.where(empty[..., None, None], 0.0, slope)

    def as_ratio(self) -> FractionalLinear:
        """Return self: the twin of :meth:`Linear.as_ratio`."""
        return self


@dataclass(frozen=True, eq=False)
class Increasing(Metric):
    """A non-decreasing transform of a metric, which has the same best rule.

    Parameters
    ----------
    base : Metric
        The bound metric that is transformed.
    transform, derivative : callable
        Applied to arrays of values of `base`.
    limits : (float, float)
        The range of the transformed value.

    See Also
    --------
    Polynomial : An increasing transform of accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> accuracy = mw.metrics.Accuracy().bind([0.5, 0.5])
    >>> cubed = mw.metrics.Increasing(accuracy, lambda a: a**3, lambda a: 3 * a**2, (0.0, 1.0))
    >>> float(cubed.value(np.array([[0.25, 0.25], [0.25, 0.25]])))
    0.125
    """

    base: Metric
    transform: Callable[[FloatArray], FloatArray] = field(compare=False)
    derivative: Callable[[FloatArray], FloatArray] = field(compare=False)
    limits: tuple[float, float] = (0.0, 1.0)

    name: ClassVar[str] = "increasing"
    family: ClassVar[str] = "increasing transform"

    @property
    def range(self) -> tuple[float, float]:
        return self.limits

    def value(self, confusion: ArrayLike) -> FloatArray:
        return self.transform(self.base.value(confusion))

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        slope = self.derivative(self.base.value(confusion))
        return slope[..., None, None] * self.base.gradient(confusion)


def as_value(found: Any, confusion: FloatArray, function: str, owner: str) -> float:
    """Return what a user's function gave as a number, or say what is wrong with it."""
    try:
        value = float(found)
    except (TypeError, ValueError):
        raise InvalidType(
            "metric", problem=f"{function} must return a number, got {shown(found)}", owner=owner
        ) from None
    if not np.isfinite(value):
        raise InvalidParameter(
            "metric",
            problem=f"{function} must return a finite number, got {shown(found)} for the confusion matrix "
            f"{confusion.tolist()}",
            remedy="return a finite value in this case too (for example at 0/0)",
            owner=owner,
        )
    return value


def differences(
    value: Callable[[FloatArray], FloatArray], matrix: FloatArray, step: float, part: float = 0.5
) -> FloatArray:
    """Return a gradient by moves of mass within rows, from the largest cell: those never leave the valid matrices.

    Parameters
    ----------
    value : callable
        From a stack (..., K, K) to values (...).
    matrix : ndarray of shape (K, K)
    step, part : float
        How much is moved: `step`, but no more than this part of the largest cell.
    """
    gradient = np.zeros_like(matrix)
    for i, row in enumerate(matrix):
        source = int(np.argmax(row))
        most = min(step, part * row[source])
        others = [j for j in range(len(row)) if j != source and most > 0]
        ends = np.repeat(matrix[None], 2 * len(others), axis=0).reshape(len(others), 2, *matrix.shape)
        moves = np.array([[most, -min(most, row[j])] for j in others]).reshape(-1, 2)
        for own, j, move in zip(ends, others, moves, strict=True):
            own[:, i, j] += move
            own[:, i, source] -= move
        if others:
            high, low = np.moveaxis(value(ends), 1, 0)
            gradient[i, others] = (high - low) / (moves[:, 0] - moves[:, 1])
    return gradient


def _check_matrix(matrix: ArrayLike, parameter: str) -> FloatArray:
    try:
        array = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(parameter, "be a (K, K) array of numbers", repr(matrix)) from None
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise InvalidParameter(parameter, "have shape (K, K)", array.shape)
    if not np.isfinite(array).all():
        raise InvalidParameter(parameter, "be finite", "NaN or infinity")
    return array


def _check_size(matrix: FloatArray, n_classes: int, parameter: str) -> None:
    if matrix.shape[-1] != n_classes:
        raise InvalidParameter(
            parameter, f"have shape (K, K) with K = {n_classes}, the number of classes", matrix.shape[-2:]
        )
