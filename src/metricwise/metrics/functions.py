"""Metrics given as functions of labels, ``f(y_true, y_pred)``.

Such a function is one of the confusion matrix: it is asked about the K * K pairs of classes (i, j), each with the
weight C[i, j]; or, if it takes no weights, about so many rows of each pair as there are. Owns both ways of asking, and
what a callable's signature says of it. Must not know which functions there are.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InvalidParameter, InvalidType, argument, mention
from .base import FloatArray, Metric, as_value, differences
from .parts import with_parts

__all__ = [
    "FromLabels",
    "check_whole_rows",
    "from_labels",
    "takes_labels",
    "unclear_direction",
    "with_caches",
]

_ROWS = 10_000  # that a confusion stands for where nobody says how many there are
_MAX_CACHE_BYTES = 1 << 26
_ENTRY_BYTES = 300  # of a value in a cache, beside those of its matrix
_WHOLE = 1e-6  # how far a number of rows may be from a whole one
WEIGHT = "sample_weight"
# Names of functions that are hardly to be maximised: it is asked.
_LOSS_LIKE = re.compile(r"(^|_)(loss|error)$")
# What scikit-learn calls a second argument that is no label.
_NO_LABELS = {
    "y_score": "the order of the scores",
    "pred_decision": "the order of the scores",
    "y_prob": "the probabilities themselves",
    "y_proba": "the probabilities themselves",
}


class ValueCache:
    """Values of a function at confusion matrices, up to a number of bytes; emptied when they are more."""

    def __init__(self) -> None:
        self._values: dict[Any, float] = {}
        self._bytes = 0

    def get(self, key: Any) -> float | None:
        """Return the value of a key; None if there is none."""
        return self._values.get(key)

    def add(self, key: Any, value: float, n_bytes: int) -> None:
        """Keep the value of a key, whose matrix has so many bytes."""
        if self._bytes + n_bytes + _ENTRY_BYTES > _MAX_CACHE_BYTES:
            self._values, self._bytes = {}, 0
        self._values[key] = value
        self._bytes += n_bytes + _ENTRY_BYTES


@dataclass(frozen=True, eq=False)
class FromLabels(Metric):
    """A metric given as a function of true and predicted labels; see :func:`metricwise.metrics.from_function`.

    Parameters
    ----------
    function : callable
        ``f(y_true, y_pred)`` of two arrays of labels.
    parameters : mapping
        Further keyword arguments.
    sign : int, default=1
        -1 for minus the function.
    weighted : bool, default=True
        Whether it takes ``sample_weight``. If not, it is asked about whole rows: `total` times C, rounded so that every
        class keeps its rows where C is none of whole rows. Such a metric is counted with labels only.
    classes : tuple of K labels, optional
        What the function sees; 0 to K - 1 unless bound.
    total : float or ndarray of shape (...), default=10000
        How many rows a confusion stands for; :meth:`of_rows` sets it.
    is_loss : bool or None, default=False
        Whether smaller values are better; None: nobody says, and by its name they are.
    cache : ValueCache, optional
        Where its values are kept for the length of one call; copies of the metric share it. See :func:`with_caches`.
    """

    function: Callable[..., Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    sign: int = 1
    weighted: bool = True
    classes: tuple[Any, ...] | None = None
    total: ArrayLike = _ROWS
    is_loss: bool | None = False
    cache: ValueCache | None = field(default=None, compare=False, repr=False)

    family: ClassVar[str] = "callable"
    costly: ClassVar[bool] = True
    reads_labels: ClassVar[bool] = True
    by_class: ClassVar[bool] = True  # for all that is known

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the values that are kept: where the metric is read, the function may be another."""
        return {**vars(self), "cache": None}

    @property
    def name(self) -> str:  # type: ignore[override]  # the function's
        return ("neg_" if self.sign < 0 else "") + function_name(self.function)

    @property
    def loss_name(self) -> str | None:  # type: ignore[override]  # likewise
        return function_name(self.function) if self.sign < 0 else None

    @property
    def lower_is_better(self) -> bool:  # type: ignore[override]  # the user's word, not the class's
        return bool(self.is_loss)

    def maximised(self) -> FromLabels:
        if self.is_loss is None:
            raise unclear_direction(self.function, self.parameters)
        return replace(self, is_loss=False, sign=-self.sign) if self.is_loss else self

    @property
    def whole_rows(self) -> bool:  # type: ignore[override]  # depends on the function
        return not self.weighted

    @property
    def smooth(self) -> bool:  # type: ignore[override]  # likewise
        return self.weighted

    @property
    def range(self) -> tuple[float, float]:
        return (-np.inf, np.inf)

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> FromLabels:
        labels = tuple(range(np.shape(priors)[-1])) if classes is None else tuple(classes)
        checked: set[tuple[Any, ...]] = vars(self).setdefault("_checked", set())
        if self.weighted and labels not in checked:
            self._check_weights(replace(self, classes=labels))
            checked.add(labels)
        return replace(self, classes=labels)

    def _check_weights(self, bound: FromLabels) -> None:
        """Refuse a function that takes weights and does not heed them: it would be the same number for every rule."""
        k = len(bound.classes or ())
        right, wrong, first = np.eye(k), np.roll(np.eye(k), 1, axis=1), np.eye(k)[np.zeros(k, dtype=int)]
        # All pairs occur, so that nothing is 0/0.
        if len({bound._ask((0.7 * C + 0.3 / k) / k) for C in (right, wrong, first)}) == 1:
            raise InvalidParameter(
                "metric",
                problem=f"{function_name(self.function)} returns the same value for all sample weights",
                remedy=f"make it use {mention('sample_weight')}, or remove the parameter",
                owner="metric",
            )

    def of_rows(self, total: ArrayLike) -> FromLabels:
        return replace(self, total=total) if self.whole_rows else self

    def value(self, confusion: ArrayLike) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        if self.classes is None:
            return self.bind(confusion.sum(axis=-1)).value(confusion)
        shape = confusion.shape[:-2]
        flat = confusion.reshape(-1, *confusion.shape[-2:])
        if self.weighted:
            return np.array([self._ask(C) for C in flat], dtype=np.float64).reshape(shape)
        totals = np.broadcast_to(np.asarray(self.total, dtype=np.float64), shape).reshape(-1)
        values = [self._ask_rows(whole_counts(C * rows)) for C, rows in zip(flat, totals, strict=True)]
        return np.array(values, dtype=np.float64).reshape(shape)

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        """Differences within rows of C; of whole rows, at the nearest whole numbers, if they are what is counted."""
        confusion = np.asarray(confusion, dtype=np.float64)
        if self.classes is None:
            return self.bind(confusion.sum(axis=-1)).gradient(confusion)
        flat = confusion.reshape(-1, *confusion.shape[-2:])
        totals = np.broadcast_to(np.asarray(self.total, dtype=np.float64), confusion.shape[:-2]).reshape(-1)
        slopes = [self._slope(C, float(rows)) for C, rows in zip(flat, totals, strict=True)]
        return np.array(slopes).reshape(confusion.shape)

    def free_gradient(self, confusion: ArrayLike, classes: Sequence[Any] | None = None) -> FloatArray:
        """Differences with one row more and one row less in every cell, if rows are what is counted."""
        if not self.whole_rows:
            return super().free_gradient(confusion, classes)
        matrix, rows = np.asarray(confusion, dtype=np.float64), float(np.asarray(self.total))
        out = np.zeros_like(matrix)
        for i, j in np.ndindex(matrix.shape):
            if matrix[i].any():
                moves = (1.0 / rows, -min(1.0 / rows, float(matrix[i, j])))
                high, low = (self._moved(matrix, (i, j), move, rows, classes) for move in moves)
                out[i, j] = (high - low) / (moves[0] - moves[1])
        return out

    def _moved(
        self, matrix: FloatArray, cell: tuple[int, int], move: float, rows: float, classes: Sequence[Any] | None
    ) -> float:
        moved = matrix.copy()
        moved[cell] += move
        total = moved.sum()
        return float(self.of_rows(rows * total).bind(moved.sum(axis=-1), classes).value(moved / total))

    def _slope(self, matrix: FloatArray, rows: float) -> FloatArray:
        if self.weighted:
            return differences(self.value, matrix, 1e-6)
        counts = whole_counts(matrix * rows).astype(np.float64)
        one = replace(self, total=1.0)  # the counts are rows already
        return differences(one.value, counts, 1.0, part=1.0) * rows

    @cached_property
    def _pairs(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """True and predicted labels of all pairs of classes."""
        assert self.classes is not None
        labels = label_array(self.classes)
        return np.repeat(labels, len(labels)), np.tile(labels, len(labels))

    def _ask(self, matrix: FloatArray) -> float:
        return self._call(*self._pairs, matrix, {WEIGHT: matrix.ravel()})

    def _ask_rows(self, counts: NDArray[np.int64]) -> float:
        true, predicted = (np.repeat(labels, counts.ravel()) for labels in self._pairs)
        return self._call(true, predicted, counts, {})

    def _call(
        self, true: NDArray[Any], predicted: NDArray[Any], matrix: NDArray[Any], weight: Mapping[str, Any]
    ) -> float:
        """Call the function, unless its value at this matrix is in the cache."""
        if self.cache is None:
            return self.sign * self._called(true, predicted, matrix, weight)
        key = self.classes, matrix.dtype.char, matrix.tobytes()
        value = self.cache.get(key)
        if value is None:
            value = self._called(true, predicted, matrix, weight)
            self.cache.add(key, value, matrix.nbytes)
        return self.sign * value

    def _called(
        self, true: NDArray[Any], predicted: NDArray[Any], matrix: NDArray[Any], weight: Mapping[str, Any]
    ) -> float:
        with warnings.catch_warnings():
            # Of classes that are never predicted, mostly: rules are tried that nobody would choose.
            warnings.simplefilter("ignore")
            found = self.function(true, predicted, **self.parameters, **weight)
        return as_value(found, matrix, function_name(self.function), "metric")


def with_caches(metric: Metric) -> Metric:
    """Return the metric for one call: the functions of labels in it have empty caches of their own.

    A function may have other values in the next call, such as one of a table that has changed since.
    """
    return with_parts(metric, lambda part: replace(part, cache=ValueCache()) if isinstance(part, FromLabels) else None)


def function_name(function: Any) -> str:
    """Return what to call a function."""
    name = str(getattr(function, "__name__", "function"))
    return "function" if name.startswith("<") else name


def label_array(labels: Sequence[Any]) -> NDArray[Any]:
    """Return labels as an array that does not change them: words beside numbers stay what they are."""
    array = np.array(labels)
    if array.ndim == 1 and array.tolist() == list(labels):
        return array
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def whole_counts(counts: FloatArray) -> NDArray[np.int64]:
    """Return the nearest whole numbers (K, K) whose row sums are those of `counts`, rounded.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.metrics.functions import whole_counts
    >>> whole_counts(np.array([[1.5, 1.5], [0.2, 3.8]])).tolist()
    [[2, 1], [0, 4]]
    """
    nearest = np.rint(counts)
    if np.abs(nearest - counts).max(initial=0.0) <= _WHOLE:
        return nearest.astype(np.int64)
    least = np.floor(counts + _WHOLE)
    short = np.rint(counts.sum(axis=1)) - least.sum(axis=1)
    # What is short of a row goes to the cells that lost most, the first among equals.
    place = np.argsort(np.argsort(least - counts, axis=1, kind="stable"), axis=1)
    return np.asarray(least + (place < short[:, None]), dtype=np.int64)


def check_whole_rows(
    metric: Metric,
    *,
    sample_weight: ArrayLike | None = None,
    output_weight: ArrayLike | None = None,
    average: str = "micro",
    prior: Any = None,
    labelled: bool = True,
) -> None:
    """Refuse what makes parts of rows, for a metric that knows whole ones only."""
    if not metric.whole_rows:
        return
    metric = next(own for own in metric.each if own.whole_rows)
    said = f"{metric.name} takes no sample_weight, so it can only be evaluated on whole rows with labels"
    remedy = "add a parameter sample_weight to the function"
    if not labelled:
        raise InvalidParameter("y", problem=f"{said}, but there is no y", remedy=f"{remedy}, or pass y")
    if prior is not None:
        raise InvalidParameter(
            "prior", problem=f"{said}, but {argument('prior')} counts fractions of rows", remedy=f"{remedy}"
        )
    weight = np.zeros(1) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not np.array_equal(weight, np.rint(weight)):
        raise InvalidParameter(
            "", problem=f"{said}, but {WEIGHT}= has fractions", remedy=f"{remedy}, or use whole weights"
        )
    alpha = np.ones(1) if output_weight is None else np.asarray(output_weight, dtype=np.float64)
    counted = alpha[alpha > 0]
    if average != "macro" and len(counted) and np.ptp(counted) > 0:
        raise InvalidParameter(
            "output_weight",
            problem=(
                f"{said}, but {argument('output_weight')} counts fractions of rows with {argument('average', average)}"
            ),
            remedy=f"{remedy}, or use {argument('average', 'macro')}",
        )


# ------------------------------------------------------------------------------------------------- reading a callable


def from_labels(
    function: Any, parameters: Mapping[str, Any] | None = None, sign: int = 1, is_loss: bool | None = False
) -> FromLabels:
    """Make a metric of a function f(y_true, y_pred) of labels."""
    weight = inspect.signature(function).parameters.get(WEIGHT)
    weighted = weight is not None and weight.kind in (weight.POSITIONAL_OR_KEYWORD, weight.KEYWORD_ONLY)
    return FromLabels(function, dict(parameters or {}), sign, weighted, is_loss=is_loss)


def takes_labels(function: Any, parameters: Mapping[str, Any] | None = None) -> bool:
    """Say whether a function takes true and predicted labels, rather than a confusion matrix, by its signature.

    Raises
    ------
    TypeError
        If it needs more than that.
    ValueError
        If its second argument is no label.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin without a signature: it will speak for itself when called
        return False
    needed = _required(function, signature, parameters or {})
    if len(needed) > 2:
        raise InvalidType(
            "metric",
            problem=f"{function_name(function)} needs {', '.join(needed)}",
            remedy=(
                "a metric is f(C) of a confusion matrix, or f(y_true, y_pred) of labels. A scorer that "
                "calls an estimator cannot be inspected: pass the function that it uses"
            ),
            owner="metric",
        )
    if len(needed) == 2 and needed[1] in _NO_LABELS:
        raise InvalidParameter(
            "metric",
            problem=f"{function_name(function)} judges {_NO_LABELS[needed[1]]}, not decisions",
            remedy="choose a metric of decisions, such as 'f1'",
            owner="metric",
        )
    return len(needed) == 2


def loss_by_name(function: Any) -> bool | None:
    """Return None for a function that may be a loss by its name, which must be asked about; else False."""
    return None if _LOSS_LIKE.search(function_name(function)) else False


def unclear_direction(function: Any, parameters: Mapping[str, Any]) -> ValueError:
    """Return the error for a function that is a loss by its name, and to be maximised by all else that is said."""
    name = function_name(function)
    given = f"functools.partial({name}, {', '.join(f'{key}={value!r}' for key, value in parameters.items())})"
    call = f"mw.metrics.from_function({given if parameters else name}, greater_is_better=False)"
    return InvalidParameter(
        "metric",
        problem=(
            f"{name} is a loss or an error by its name, and a metric is maximised; to minimise it, pass "
            f"{call}; pass True instead if greater values are better"
        ),
        owner="metric",
    )


def _required(function: Any, signature: inspect.Signature, given: Mapping[str, Any]) -> list[str]:
    """Names of the positional arguments without a default."""
    known = {WEIGHT, *given}
    free = [one for name, one in signature.parameters.items() if one.default is one.empty and name not in known]
    words = [one.name for one in free if one.kind is one.KEYWORD_ONLY]
    if words:
        raise InvalidType(
            "metric",
            problem=f"{function_name(function)} needs {', '.join(words)}",
            remedy=f"set it with functools.partial({function_name(function)}, {words[0]}=...)",
            owner="metric",
        )
    return [one.name for one in free if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
