"""Metrics as specifications, their traits, and the forms that they take once the class priors are known.

A metric psi is a function of one confusion matrix ``C`` (K, K), shares of weight that sum to 1, true class by row. No
rule changes the row sums of C (the class priors pi), so a :class:`Metric` is first bound to them: the :class:`Form` is
what solvers see. All methods take stacks (..., K, K). Must not know data, rules or solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from math import isqrt
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from ..core.cached import cached_property
from ..core.errors import InvalidParameter, argument, entry_point, mention
from ..core.matrices import (
    EMPTY,
    FloatArray,
    check_matrix,
    check_size,
    diagonal,
    diagonal_plus_columns,
    inner,
    quotient,
)

if TYPE_CHECKING:
    from ..kernels import RatioMeans
    from .row_forms import PairRatio, RatioMean

__all__ = ["Metric", "Linear", "FractionalLinear", "Increasing"]

_STEP = 1e-4  # of a finite difference, relative to the cell that it changes
_MAX_CELLS = 1 << 20  # cells of confusion matrices that are evaluated together


def _square(flat: FloatArray) -> FloatArray:
    k = isqrt(flat.shape[-1])
    return flat.reshape(*flat.shape[:-1], k, k)


# -------------------------------------------------------------------------------------------------------------- traits


@dataclass(frozen=True, kw_only=True)
class Traits:
    """Properties of a metric, or of its bound form, that solvers, fits and displays ask for.

    Attributes
    ----------
    name : str
        The registry's name, or a description of a user's metric.
    family : str
        The form in words: "linear", "fractional-linear", "increasing transform", "concave", "callable" or "other".
    range : (float, float)
        Smallest and largest value that the metric can take on any confusion matrix.
    concave : bool
        Whether the bound metric is a concave function of C.
    smooth : bool
        Whether its gradient exists wherever its value is inside its range.
    by_class : bool
        Whether every class counts equally, however few rows it has.
    monotone : bool
        Whether, for two classes and once bound, it never decreases when a right decision replaces a wrong one. The
        value with all possible hits and no misses is then an upper bound.
    fixed_form : bool
        Whether the bound form is the same for all class priors.
    reads_labels : bool
        Whether its value may depend on the class labels, so that pooled outputs must have the same ones.
    slow : bool
        Whether a value requires a call of a user's function, so that solvers should evaluate few.
    needs_integer_counts : bool
        Whether it is a function of whole rows, and so can be evaluated with labels only.
    lower_is_better : bool
        Whether it is a loss: as an aim, minus its value is maximised.
    loss_name : str or None
        The name of the loss or cost that the metric is minus of, which is displayed instead.
    needs_positive : bool
        Whether it is the metric of one class, without naming it.
    of_abstentions : bool
        Whether it is only about how often a rule abstains.
    prices_abstentions : bool
        Whether the metric itself defines the value of an abstention.
    degenerate : str or None
        A sentence that explains why maximising this metric alone gives a useless rule.
    """

    name: str = "metric"
    family: str = "other"
    range: tuple[float, float] = (0.0, 1.0)
    concave: bool = False
    smooth: bool = True
    by_class: bool = False
    monotone: bool = False
    fixed_form: bool = False
    reads_labels: bool = False
    slow: bool = False
    needs_integer_counts: bool = False
    lower_is_better: bool = False
    loss_name: str | None = None
    needs_positive: bool = False
    of_abstentions: bool = False
    prices_abstentions: bool = False
    degenerate: str | None = None


# -------------------------------------------------------------------------------------------------------------- forms


class _Described:
    """What specifications and forms share: traits, and equality by content."""

    @property
    def traits(self) -> Traits:
        """What is known about the metric; see :class:`metricwise.metrics.base.Traits`."""
        return Traits()

    @property
    def name(self) -> str:
        """The registry's name, or a description of a user's metric."""
        return self.traits.name

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest value that the metric can take on any confusion matrix."""
        return self.traits.range

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(cast(Any, self)) if f.compare)
        return all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else bool(a == b)
            for a, b in pairs
        )

    __hash__ = None  # type: ignore[assignment]  # some hold arrays; all compare by content


class Form(_Described):
    """A metric bound to class priors: a function of confusion matrices with these row sums.

    Subclasses implement :meth:`value` and :meth:`gradient`, or derive from :class:`SummaryForm`.
    """

    def value(self, confusion: ArrayLike) -> FloatArray:
        """Return psi(C) for each matrix of a stack of shape (..., K, K)."""
        raise NotImplementedError

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        """Return d psi / d C at fixed class priors, shape (..., K, K); defined up to a constant per row."""
        raise NotImplementedError

    def summary(self, confusion: FloatArray) -> FloatArray:
        """Return the linear functions of C that the value depends on, (..., D); by default, all cells."""
        return confusion.reshape(*confusion.shape[:-2], -1)

    def value_at(self, summary: FloatArray) -> FloatArray:
        """Return psi(C) for each of a stack of summaries (..., D)."""
        return self.value(_square(summary))

    def slope_at(self, summary: FloatArray) -> FloatArray:
        """Return d psi / d summary at fixed class priors, shape (..., D)."""
        return self.summary(self.gradient(_square(summary)))

    def gradient_parts(self, slope: FloatArray) -> tuple[FloatArray, ...]:
        """Return a slope of the summary as one of C: ``(matrix,)``, or ``(by_hit, by_column)``, (..., K) each."""
        return (_square(slope),)

    @property
    def _ratio_means(self) -> RatioMeans | None:
        """The arrays of a form that is a mean of ratios of classes, for searches by the kernels; else None."""
        return None

    def class_terms(self, hits: FloatArray, predicted: FloatArray) -> FloatArray | None:
        """Return a term for each class, (..., K), by its hits and predicted share, (..., K) each.

        Of two predictions, the one with the larger sum of terms has the larger value. A term can be -inf. None for
        metrics that are not such a sum.
        """
        return None


class SummaryForm(Form):
    """Base of the forms that are functions of a summary; value and gradient follow from it.

    A mixture of rules has the mixed summary, so solvers keep summaries of some K numbers instead of K^2 cells.
    """

    def value(self, confusion: ArrayLike) -> FloatArray:
        return self.value_at(self.summary(np.asarray(confusion, dtype=np.float64)))

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        parts = self.gradient_parts(self.slope_at(self.summary(np.asarray(confusion, dtype=np.float64))))
        return parts[0] if len(parts) == 1 else diagonal_plus_columns(*parts)


class ShareForm(SummaryForm):
    """Base of the forms of hits ``C[k, k]`` and predicted shares only, for which whole matrices need not be counted."""

    def summary_of(self, hits: FloatArray, columns: FloatArray) -> FloatArray:
        """Return the summary of hits and predicted shares, (..., K) each: by default one after the other."""
        return np.concatenate([hits, columns], axis=-1)

    def summary(self, confusion: FloatArray) -> FloatArray:
        return self.summary_of(diagonal(confusion), confusion.sum(axis=-2))

    def gradient_parts(self, slope: FloatArray) -> tuple[FloatArray, ...]:
        k = slope.shape[-1] // 2
        return slope[..., :k], slope[..., k:]


class MinimumForm(SummaryForm):
    """Base of the smallest of P linear functions: concave, not smooth. The summary is the value of each part.

    The gradient is that of the smallest part (the first of equals), a supergradient.
    """

    def value_at(self, summary: FloatArray) -> FloatArray:
        return np.asarray(summary.min(axis=-1))

    def slope_at(self, summary: FloatArray) -> FloatArray:
        smallest = np.arange(summary.shape[-1]) == summary.argmin(axis=-1)[..., None]
        return np.asarray(smallest, dtype=np.float64)


# ------------------------------------------------------------------------------------------------------ specifications


class Metric(_Described):
    """Base class of all metrics; subclasses are frozen dataclasses.

    A subclass implements :meth:`bind`, or overrides :meth:`value` and :meth:`gradient`.

    Attributes
    ----------
    traits : Traits
        What is known about the metric, such as its name, its range, and whether lower values are better.

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

    _score: ClassVar[Callable[..., float]]  # set by of_labels.py, which is built on this class

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        """Fix the class priors, and with them the form of the metric.

        Parameters
        ----------
        priors : array-like of shape (..., K)
            Row sums of C.
        classes : sequence of K labels, optional
            Labels of the classes, in order, to which a class given by label refers.

        Returns
        -------
        Form
            A :class:`Linear`, :class:`FractionalLinear`, :class:`Increasing`, or another function of C.
        """
        return _UnboundForm(self)

    def value(self, confusion: ArrayLike) -> FloatArray:
        """Return psi(C) for each matrix of a stack of shape (..., K, K)."""
        confusion = np.asarray(confusion, dtype=np.float64)
        return self.bind(confusion.sum(axis=-1)).value(confusion)

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        """Return d psi / d C at fixed class priors, shape (..., K, K); defined up to a constant per row."""
        confusion = np.asarray(confusion, dtype=np.float64)
        return self.bind(confusion.sum(axis=-1)).gradient(confusion)

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

    # What the rest of the package asks a metric, with answers that fit most metrics.

    def _maximised(self) -> Metric:
        """Return the metric as an aim, of which more is better: itself, or minus itself if it is a loss."""
        return negated(self) if self.traits.lower_is_better else self

    def _class_metric(self) -> Metric | None:
        """Return the metric of class 1 against the rest that shows for which classes a rule gains; None for F1."""
        return None

    def _of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear | Increasing | None:
        """Return the metric as a ratio of sums of cells of C, whatever the class priors; None if it is not one.

        Such a metric has the same form on a subset of the rows, so that rows can be left out.
        """
        return None

    def _of_cells_undecided(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear | None:
        """Return the same for rules that may leave rows undecided, whose cells have one more column."""
        if not self.traits.fixed_form:
            return None
        form = self._bind_undecided(np.append(np.full(n_classes, 1.0 / n_classes), 0.0), classes)
        return form.as_ratio() if isinstance(form, (Linear, FractionalLinear)) else None

    def _of_pairs(self, n_classes: int, classes: Sequence[Any] | None = None) -> PairRatio | None:
        """Return the metric as a ratio of means over pairs of rows, whatever the class priors; None if it is none."""
        return None

    def _of_ratios(self, n_classes: int, classes: Sequence[Any] | None = None) -> RatioMean | None:
        """Return the metric as an increasing function of such ratios as :meth:`_of_cells` returns; None if it is not.

        A ratio alone is None here, too.
        """
        return None

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        """Bind the metric of rules that may leave rows undecided, which counts as a miss of their class.

        An undecided row is neither right nor predicted as any class, like an additional predicted label in
        scikit-learn, with ``labels=classes`` for averages over classes. The priors, of shape (..., K + 1), end with 0,
        and the last row of confusions (..., K + 1, K + 1) is empty.
        """
        raise InvalidParameter(
            "",
            problem=f"{self.name} does not define a value for undecided rows, so a rule for it cannot abstain",
            remedy="leave abstain out",
            owner=type(self).__name__,
        )

    def _price(self, A: FloatArray, cost: float) -> FloatArray:
        """Return the value of an undecided row of each class, (..., K), at a cost, for a linear metric <A, C>.

        A cost of 0 is as good as the best decision about the row, a cost of 1 as bad as the worst one.
        """
        best, worst = A.max(axis=-1), A.min(axis=-1)
        return np.asarray(best - cost * (best - worst))

    def _of_rows(self, total: ArrayLike) -> Self:
        """Return the metric of confusions of this number of rows, one number or one for each matrix of a stack."""
        return self

    def _places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        """Return the positions of the classes that the metric names; pooled outputs must agree on them.

        A class that is missing, or that has not been named, raises an error.
        """
        return ()

    def _check_order(self, classes: Sequence[Any]) -> None:
        """Raise an error if the metric depends on the order of the labels and no order is known."""

    def _with_positive(self, label: Any) -> Metric:
        """Return the metric with this positive class; an error if it has none, or already names one."""
        raise InvalidParameter(
            "pos_label",
            problem=f"{self.name!r} has no positive class",
            remedy=f"leave {mention('pos_label')} out",
            owner=type(self).__name__,
        )

    def _of_output(self, output: int) -> Metric:
        """Return the metric of one of several outputs: the same, unless each output has its own."""
        return self

    def _of_outputs(self, outputs: Sequence[int]) -> Metric:
        """Return the metric of some of several outputs, given by position."""
        return self

    @property
    def _distinct(self) -> tuple[Metric, ...]:
        """The distinct metrics of several outputs: only itself, unless each output has its own."""
        return (self,)

    def _map_outputs(self, change: Callable[[Metric], Metric]) -> Metric:
        """Return the metric with that of each output changed; outputs that share a metric go on sharing it."""
        return change(self)

    def _prior_slopes(self, confusion: FloatArray, classes: Sequence[Any] | None = None) -> FloatArray | None:
        """Return how the value of the bound metric at a fixed C (K, K) changes with the priors, shape (K,).

        None, where no formula is known: then :meth:`_free_gradient` takes differences.
        """
        return np.zeros(len(confusion)) if self.traits.fixed_form else None

    def _free_gradient(self, confusion: ArrayLike, classes: Sequence[Any] | None = None) -> FloatArray:
        """Return d psi / d C with the class priors free to move and the sum of C held at 1; C of shape (K, K).

        Sampling errors need it, because samples differ in their class shares as well. The cells of an empty row get 0,
        for there the metric may jump.
        """
        confusion = np.asarray(confusion, dtype=np.float64)
        slope = self.bind(confusion.sum(axis=-1), classes).gradient(confusion)
        by_prior = self._prior_slopes(confusion, classes)
        if by_prior is None:
            by_prior = _row_slopes(self, confusion, slope, classes)
        return centred(slope + by_prior[:, None], confusion)


@dataclass(frozen=True, eq=False)
class _UnboundForm(Form):
    """A metric that defines its value and gradient itself, whatever the priors."""

    metric: Metric

    @property
    def traits(self) -> Traits:
        return self.metric.traits

    def value(self, confusion: ArrayLike) -> FloatArray:
        return self.metric.value(confusion)

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        return self.metric.gradient(confusion)


def centred(slope: FloatArray, confusion: FloatArray) -> FloatArray:
    """Return a gradient (K, K) along the matrices that sum to 1; 0 in the rows of C that are empty."""
    occurs = confusion.sum(axis=1, keepdims=True) > 0
    slope = np.where(occurs, slope, 0.0)
    return np.where(occurs, slope - np.sum(slope * confusion), 0.0)


def _row_slopes(metric: Metric, confusion: FloatArray, slope: FloatArray, classes: Sequence[Any] | None) -> FloatArray:
    """Return what a gradient at fixed priors lacks for each row, (K,), by differences in its largest cell."""
    k = len(confusion)
    cells, rows = confusion.argmax(axis=1), np.arange(k)
    steps = _STEP * confusion[rows, cells]
    out = np.zeros(k)
    for batch in np.array_split(rows, min(k, -(-2 * k**3 // _MAX_CELLS))):
        sides = np.repeat(confusion[None, None], 2, axis=0).repeat(len(batch), axis=1)
        sides[:, rows[: len(batch)], batch, cells[batch]] += np.outer([1.0, -1.0], steps[batch])
        sides /= sides.sum(axis=(-2, -1), keepdims=True)
        up, down = metric.bind(sides.sum(axis=-1), classes).value(sides)
        out[batch] = (up - down) / np.where(steps[batch] > 0, 2 * steps[batch], 1.0)
    return np.asarray(out - slope[rows, cells])


class Wrapped(Metric):
    """Base of the metrics that change the values of another metric, `base`: all traits and answers are its own."""

    base: Metric

    @property
    def traits(self) -> Traits:
        return self.base.traits

    def _class_metric(self) -> Metric | None:
        return self.base._class_metric()

    def _places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return self.base._places(classes)

    def _check_order(self, classes: Sequence[Any]) -> None:
        self.base._check_order(classes)

    def _with_positive(self, label: Any) -> Metric:
        return replace(cast(Any, self), base=self.base._with_positive(label))  # type: ignore[no-any-return]

    def _price(self, A: FloatArray, cost: float) -> FloatArray:
        return self.base._price(A, cost)


def with_parts(metric: Metric, change: Callable[[Any], Metric | None]) -> Metric:
    """Return the metric with metrics inside of it replaced; itself if none is.

    `change` returns what takes the place of a part, or None to look into the part. A part that occurs several times
    stays one object.
    """
    made: dict[int, Metric] = {}

    def changed(part: Metric) -> Metric:
        if id(part) not in made:
            new = change(part)
            made[id(part)] = inside(part) if new is None else new
        return made[id(part)]

    def inside(whole: Any) -> Metric:
        values = {field.name: getattr(whole, field.name) for field in fields(whole)} if is_dataclass(whole) else {}
        new: dict[str, Any] = {}
        for name, value in values.items():
            if isinstance(value, Metric):
                new[name] = changed(value)
            elif isinstance(value, tuple) and value and all(isinstance(part, Metric) for part in value):
                parts = tuple([changed(part) for part in value])
                new[name] = parts if any(a is not b for a, b in zip(parts, value, strict=True)) else value
        different = {name: value for name, value in new.items() if value is not values[name]}
        result: Metric = replace(whole, **different) if different else whole
        return result

    return changed(metric)


# ------------------------------------------------------------------------------------------------- linear, and ratios


class _FormMetric(Form, Metric):
    """Base of the forms that are specifications too, bound to any priors."""

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        return self


@dataclass(frozen=True, eq=False)
class Linear(_FormMetric):
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

    @entry_point("{class}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "A", check_matrix(self.A, "A"))

    @cached_property
    def traits(self) -> Traits:
        limits = self.limits or (float(self.A.min()), float(self.A.max()))
        return Traits(name="linear", family="linear", range=limits, concave=True, fixed_form=True)

    @entry_point("{class}")
    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Linear:
        check_size(self.A, np.shape(priors)[-1], "A")
        return self

    def _of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear:
        return self.bind(np.zeros(n_classes)).as_ratio()

    @entry_point("{class}")
    def _price(self, A: FloatArray, cost: float) -> FloatArray:
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
class FractionalLinear(_FormMetric):
    """A ratio of two linear functions, ``<A, C> / <B, C>``.

    Parameters
    ----------
    A, B : array-like of shape (K, K)
        Numerator and denominator.
    zero_division : float, optional
        The value at 0/0. None (the default) means that the denominator must be positive for all predictions, which
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

    @entry_point("{class}")
    def __post_init__(self) -> None:
        for part in ("A", "B"):
            object.__setattr__(self, part, check_matrix(getattr(self, part), part))
        if self.A.shape[-1] != self.B.shape[-1]:
            raise InvalidParameter(
                "A", problem=f"A and B must have one shape (K, K), got {self.A.shape} and {self.B.shape}"
            )

    @cached_property
    def traits(self) -> Traits:
        limits = self.limits or (-np.inf, np.inf)
        if self.limits is None and (self.B > 0).all():
            ratios = self.A / self.B
            limits = (float(ratios.min()), float(ratios.max()))
        return Traits(name="fractional_linear", family="fractional-linear", range=limits, fixed_form=True)

    @entry_point("{class}")
    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> FractionalLinear:
        priors = np.asarray(priors, dtype=np.float64)
        check_size(self.A, priors.shape[-1], "A and B")
        if self.zero_division is not None and self.limits is not None:
            return self
        extremes = [
            np.sum(priors * pick(part, axis=-1), axis=-1) for part in (self.A, self.B) for pick in (np.min, np.max)
        ]
        num_lo, num_hi, den_lo, den_hi = extremes
        if self.zero_division is None and np.any(den_lo <= EMPTY * self._scale):
            raise InvalidParameter(
                "B",
                problem=(
                    "the denominator <B, C> must be positive for all predictions, but with these class "
                    f"priors it can be as small as {float(np.min(den_lo)):.6g}"
                ),
                remedy=f"increase B, or set {argument('zero_division')}",
            )
        if np.any(den_lo < -EMPTY * self._scale):
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

    @entry_point("{class}")
    def _of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear:
        check_size(self.A, n_classes, "A and B")
        return self

    @cached_property
    def _scale(self) -> float:
        """The largest absolute entry of B, relative to which a denominator counts as zero."""
        return float(np.abs(self.B).max())

    def value(self, confusion: ArrayLike) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        return quotient(inner(self.A, confusion), inner(self.B, confusion), self._scale, self.zero_division)

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        value, denominator = self.value(confusion), inner(self.B, confusion)
        empty = np.abs(denominator) <= EMPTY * self._scale
        slope = (self.A - value[..., None, None] * self.B) / np.where(empty, 1.0, denominator)[..., None, None]
        return np.where(empty[..., None, None], 0.0, slope)

    def as_ratio(self) -> FractionalLinear:
        """Return self: the twin of :meth:`Linear.as_ratio`."""
        return self


@dataclass(frozen=True, eq=False)
class Increasing(_FormMetric):
    """A non-decreasing transform of a metric, which has the same best rule.

    Parameters
    ----------
    base : Form
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

    base: Form
    transform: Callable[[FloatArray], FloatArray] = field(compare=False)
    derivative: Callable[[FloatArray], FloatArray] = field(compare=False)
    limits: tuple[float, float] = (0.0, 1.0)

    @property
    def traits(self) -> Traits:
        return Traits(name="increasing", family="increasing transform", range=self.limits)

    def value(self, confusion: ArrayLike) -> FloatArray:
        return self.transform(self.base.value(confusion))

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        slope = self.derivative(self.base.value(confusion))
        return slope[..., None, None] * self.base.gradient(confusion)

    def class_terms(self, hits: FloatArray, predicted: FloatArray) -> FloatArray | None:
        return self.base.class_terms(hits, predicted)


@dataclass(frozen=True, eq=False)
class Affine(Wrapped):
    """``scale * psi(C) + shift``, which is linear or a ratio where psi is, because the cells of C sum to 1.

    Parameters
    ----------
    base : Metric
    scale : float, default=-1.0
        Not 0.
    shift : float, default=0.0
    title : str, optional
        The name; by default made from that of `base`.
    is_loss : bool, default=False
        Whether smaller values are better.
    minus : str, optional
        The name of the loss that it is minus of, if that is displayed instead.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.metrics.base import Affine
    >>> error = Affine(mw.metrics.Accuracy(), -1.0, 1.0)
    >>> float(error.value([[0.5, 0.25], [0.0, 0.25]])), error.bind([0.75, 0.25]).traits.family
    (0.25, 'linear')
    """

    base: Metric
    scale: float = -1.0
    shift: float = 0.0
    title: str | None = None
    is_loss: bool = False
    minus: str | None = None

    @cached_property
    def traits(self) -> Traits:
        base, prefix = self.base.traits, "neg" if (self.scale, self.shift) == (-1.0, 0.0) else "affine"
        return replace(
            base,
            name=self.title or f"{prefix}_{base.name}",
            range=_affine_range(base.range, self.scale, self.shift),
            concave=base.concave and self.scale > 0,
            monotone=base.monotone and self.scale > 0,
            lower_is_better=self.is_loss,
            loss_name=self.minus,
            degenerate=base.degenerate if base.lower_is_better else None,
        )

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        return affine_form(self.base.bind(priors, classes), self.scale, self.shift)

    def _of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> FractionalLinear | Increasing | None:
        form = self.base._of_cells(n_classes, classes)
        return None if form is None else cast(FractionalLinear, affine_form(form, self.scale, self.shift))

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        return affine_form(self.base._bind_undecided(priors, classes), self.scale, self.shift)


@dataclass(frozen=True, eq=False)
class _AffineForm(Form):
    """``scale * psi(C) + shift`` of a form that is neither linear nor a ratio."""

    base: Form
    scale: float
    shift: float

    @cached_property
    def traits(self) -> Traits:
        base, rising = self.base.traits, self.scale > 0
        limits = _affine_range(base.range, self.scale, self.shift)
        return replace(base, range=limits, concave=base.concave and rising, monotone=base.monotone and rising)

    def value(self, confusion: ArrayLike) -> FloatArray:
        return np.asarray(self.scale * self.base.value(confusion) + self.shift)

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        return np.asarray(self.scale * self.base.gradient(confusion))

    def class_terms(self, hits: FloatArray, predicted: FloatArray) -> FloatArray | None:
        terms = self.base.class_terms(hits, predicted)
        return None if terms is None else np.asarray(self.scale * terms)


def _affine_range(limits: tuple[float, float], scale: float, shift: float) -> tuple[float, float]:
    low, high = sorted(scale * end + shift for end in limits)
    return low, high


def affine_form(form: Form, scale: float, shift: float) -> Form:
    """Return ``scale * psi(C) + shift`` of a bound metric, in the same form where it is linear or a ratio."""
    if isinstance(form, Linear):
        return Linear(scale * form.A + shift, _affine_range(form.range, scale, shift))
    if isinstance(form, FractionalLinear):
        at_zero = scale * (form.zero_division or 0.0) + shift
        return FractionalLinear(
            scale * form.A + shift * form.B, form.B, at_zero, _affine_range(form.range, scale, shift)
        )
    return _AffineForm(form, scale, shift)


def negated(metric: Metric, name: str | None = None) -> Affine:
    """Return minus a metric, which is displayed as the metric itself, under its name or another one.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.metrics.base import negated
    >>> least = negated(mw.metrics.Accuracy())
    >>> least.name, least.traits.loss_name
    ('neg_accuracy', 'accuracy')
    """
    name = metric.name if name is None else name
    return Affine(metric, -1.0, 0.0, title=f"neg_{name}", minus=name)
