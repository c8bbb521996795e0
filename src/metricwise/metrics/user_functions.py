"""User-defined metrics: any function of the confusion matrix, or of labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.cached import cached_property
from ..core.errors import InvalidParameter, InvalidType, shown
from ..core.matrices import FloatArray
from .base import Form, Metric, Traits
from .functions import (
    WEIGHT,
    UserFunction,
    as_value,
    differences,
    from_labels,
    function_name,
    loss_by_name,
    takes_labels,
)

__all__ = ["FromFunction", "from_function"]


@dataclass(frozen=True, eq=False)
class FromFunction(UserFunction):
    """A metric given as a callable f(C) of one (K, K) matrix; made by :func:`from_function`.

    Parameters
    ----------
    function, derivative, is_concave, limits
        The `function`, `gradient`, `concave` and `range` of :func:`from_function`.
    step : float, default=1e-6
        Step of finite differences.
    is_loss : bool or None, default=False
        Whether smaller values are better; None: not given, and the name is that of a loss.
    sign : int, default=1
        -1 for minus the function.
    parameters : mapping, optional
        Further keyword arguments of the function.

    See Also
    --------
    from_function : Make a metric from a function.

    Examples
    --------
    >>> from metricwise.metrics import from_function
    >>> from_function(lambda C: C[0, 0] * C[1, 1], range=(0.0, 0.25)).name
    'function'
    """

    function: Callable[[FloatArray], float]
    derivative: Callable[[FloatArray], ArrayLike] | None = None
    is_concave: bool = False
    limits: tuple[float, float] = (-np.inf, np.inf)
    step: float = 1e-6
    is_loss: bool | None = False
    sign: int = 1
    parameters: Mapping[str, Any] = field(default_factory=dict)

    title = "function"

    @cached_property
    def traits(self) -> Traits:
        low, high = self.limits
        concave = self.is_concave and not self.is_loss
        return replace(super().traits, range=(low, high) if self.sign > 0 else (-high, -low), concave=concave)

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Form:
        return self

    def value(self, confusion: ArrayLike) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        flat = confusion.reshape(-1, *confusion.shape[-2:])
        results = [self.function(matrix, **self.parameters) for matrix in flat]
        values = [self.sign * as_value(v, C, "the metric", "from_function") for v, C in zip(results, flat, strict=True)]
        return np.array(values, dtype=np.float64).reshape(confusion.shape[:-2])

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        flat = confusion.reshape(-1, *confusion.shape[-2:])
        if self.derivative is None:
            slopes = [differences(self.value, matrix, self.step) for matrix in flat]
        else:
            slopes = [self.sign * np.asarray(self.derivative(matrix), dtype=np.float64) for matrix in flat]
        return np.array(slopes).reshape(confusion.shape)


def from_function(
    function: Callable[..., float],
    gradient: Callable[[FloatArray], ArrayLike] | None = None,
    *,
    concave: bool = False,
    range: tuple[float, float] = (-np.inf, np.inf),
    greater_is_better: bool | None = None,
) -> Metric:
    """Make a metric from any callable f(C) of a confusion matrix, or f(y_true, y_pred) of labels.

    Parameters
    ----------
    function : callable
        Function of a (K, K) confusion matrix of shares (true classes in rows, sum 1) that returns a finite number; or
        of two arrays of labels, preferably with a parameter ``sample_weight``.
    gradient : callable, optional
        Function that returns the (K, K) gradient of f(C); without it, finite differences within rows are used.
    concave : bool, default=False
        Whether f(C), or minus f(C) if smaller is better, is concave in C at fixed row sums. This is not checked,
        and allows a certificate of optimality.
    range : (float, float), optional
        Smallest and largest possible value of f(C).
    greater_is_better : bool, optional
        Whether greater values are better. False for a loss: :func:`metricwise.optimize` minimises it, and its value is
        then minus the loss, as that of scikit-learn's ``neg_...`` scorers. None means True; for a function whose name
        ends in ``_loss`` or ``_error``, `optimize` then asks for it.

    Returns
    -------
    Metric

    See Also
    --------
    Linear : For a linear function of the confusion matrix, which is maximised exactly.
    FractionalLinear : For a ratio of linear functions, which is maximised exactly.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> metric = mw.metrics.from_function(lambda C: float(np.sqrt(np.trace(C))))
    >>> float(metric.value([[0.64, 0.2], [0.16, 0.0]]))
    0.8
    >>> def share_of_errors(y_true, y_pred):
    ...     return np.mean(y_true != y_pred)
    >>> loss = mw.metrics.from_function(share_of_errors, greater_is_better=False)
    >>> proba, y = [0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1]
    >>> mw.optimize(proba, y, loss, strategy=mw.Strategy(confusion="labels", recalibrate=False)).value
    0.0
    """
    if not callable(function):
        raise InvalidType("function", "be callable", type(function).__name__, owner="from_function")
    if not (greater_is_better is None or isinstance(greater_is_better, (bool, np.bool_))):
        raise InvalidType("greater_is_better", "be True or False", shown(greater_is_better), owner="from_function")
    is_loss = loss_by_name(function) if greater_is_better is None else not greater_is_better
    if not takes_labels(function):
        return FromFunction(function, gradient, concave, range, is_loss=is_loss)
    if gradient is not None or concave or range != (-np.inf, np.inf):
        raise InvalidParameter(
            "confusion",
            problem=(
                "gradient, concave and range are only for a function f(C) of the confusion matrix, but "
                "this one takes labels"
            ),
            remedy="leave them out",
            owner="from_function",
        )
    return from_labels(function, is_loss=is_loss)


def from_callable(function: Any, parameters: Mapping[str, Any] | None = None, sign: int = 1) -> Metric:
    """Make a metric of a callable by its signature: f(C) with one required argument, f(y_true, y_pred) with two.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.metrics.user_functions import from_callable
    >>> C = [[0.5, 0.25], [0.0, 0.25]]
    >>> float(from_callable(lambda C: np.trace(C) ** 2).value(C))
    0.5625
    >>> float(from_callable(lambda y, p: np.mean(y == p)).value(C))
    0.75
    """
    parameters = dict(parameters or {})
    if parameters.pop(WEIGHT, None) is not None:
        raise InvalidParameter(
            "metric",
            problem=f"{function_name(function)} has a fixed {WEIGHT}",
            remedy="pass it to optimize instead",
            owner="metric",
        )
    is_loss = loss_by_name(function) if sign > 0 else False
    if takes_labels(function, parameters):
        return from_labels(function, parameters, sign, is_loss)
    return FromFunction(function, sign=sign, is_loss=is_loss, parameters=parameters)
