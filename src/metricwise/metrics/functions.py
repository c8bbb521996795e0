"""Metrics given as functions of labels, ``f(y_true, y_pred)``.

Such a function is one of the confusion matrix: it is called with the K * K pairs of classes (i, j), each with the
weight C[i, j]; or, if it takes no weights, with as many rows of each pair as there are. Must not know which functions
there are.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.cached import cached_property
from ..core.errors import InvalidParameter, InvalidType, argument, mention, shown
from ..core.matrices import FloatArray
from .base import Form, Metric, Traits, with_parts

__all__ = [
    "FromLabels",
    "check_whole_rows",
    "from_labels",
    "takes_labels",
    "unclear_direction",
    "with_caches",
]

_DEFAULT_ROWS = 10_000  # of a confusion matrix whose number of rows is not known
_MAX_CACHE_BYTES = 1 << 26
_ENTRY_BYTES = 300  # of a value in a cache, without its matrix
_MAX_ROUNDING = 1e-6  # how far a number of rows may be from an integer
WEIGHT = "sample_weight"
# Names of functions that are probably losses, for which the direction must be given.
_LOSS_LIKE = re.compile(r"(^|_)(loss|error)$")
# scikit-learn's names of second arguments that are not labels.
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
        """Store the value of a key, whose matrix has this number of bytes."""
        if self._bytes + n_bytes + _ENTRY_BYTES > _MAX_CACHE_BYTES:
            self._values, self._bytes = {}, 0
        self._values[key] = value
        self._bytes += n_bytes + _ENTRY_BYTES


class UserFunction(Form, Metric):
    """Base of the metrics given as functions, whose direction the user knows.

    `sign` is -1 for minus the function. `is_loss` is None for a function that is a loss by its name, where nobody said
    whether smaller values are better.
    """

    function: Callable[..., Any]
    parameters: Mapping[str, Any]
    sign: int
    is_loss: bool | None
    title: str

    @cached_property
    def traits(self) -> Traits:
        return Traits(
            name=self.title if self.sign > 0 else f"neg_{self.title}",
            family="callable",
            range=(-np.inf, np.inf),
            by_class=True,  # unknown: classes without labels are smoothed
            lower_is_better=bool(self.is_loss),
            loss_name=None if self.sign > 0 else self.title,
        )

    def _maximised(self) -> Metric:
        if self.is_loss is None:
            raise unclear_direction(self.function, self.parameters)
        return replace(self, is_loss=False, sign=-self.sign) if self.is_loss else self  # type: ignore[type-var]


@dataclass(frozen=True, eq=False)
class FromLabels(UserFunction):
    """A metric given as a function of true and predicted labels; see :func:`metricwise.metrics.from_function`.

    If it is not `weighted`, it takes no ``sample_weight`` and is called with integer counts: `total` times C, rounded
    such that every class keeps its rows. It sees the labels `classes`, 0 to K - 1 unless bound. Copies of the metric
    share the `cache` of one call.
    """

    function: Callable[..., Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    sign: int = 1
    weighted: bool = True
    classes: tuple[Any, ...] | None = None
    total: ArrayLike = _DEFAULT_ROWS
    is_loss: bool | None = False
    cache: ValueCache | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the cache: where the metric is loaded, the function may be another."""
        return {**vars(self), "cache": None}

    @property
    def title(self) -> str:  # type: ignore[override]  # read-only
        return function_name(self.function)

    @cached_property
    def traits(self) -> Traits:
        integer = not self.weighted
        return replace(super().traits, slow=True, reads_labels=True, smooth=self.weighted, needs_integer_counts=integer)

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> FromLabels:
        labels = tuple(range(np.shape(priors)[-1])) if classes is None else tuple(classes)
        checked: set[tuple[Any, ...]] = vars(self).setdefault("_checked", set())
        if self.weighted and labels not in checked:
            self._check_weights(replace(self, classes=labels))
            checked.add(labels)
        return replace(self, classes=labels)

    def _check_weights(self, bound: FromLabels) -> None:
        """Refuse a function that ignores its weights, which would have the same value for every rule."""
        k = len(bound.classes or ())
        right, wrong, first = np.eye(k), np.roll(np.eye(k), 1, axis=1), np.eye(k)[np.zeros(k, dtype=int)]
        # All pairs occur, so that nothing is 0/0.
        if len({bound._call_weighted((0.7 * C + 0.3 / k) / k) for C in (right, wrong, first)}) == 1:
            raise InvalidParameter(
                "metric",
                problem=f"{function_name(self.function)} returns the same value for all sample weights",
                remedy=f"make it use {mention('sample_weight')}, or remove the parameter",
                owner="metric",
            )

    def _of_rows(self, total: ArrayLike) -> FromLabels:
        return replace(self, total=total) if self.traits.needs_integer_counts else self

    def value(self, confusion: ArrayLike) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        if self.classes is None:
            return self.bind(confusion.sum(axis=-1)).value(confusion)
        shape = confusion.shape[:-2]
        flat = confusion.reshape(-1, *confusion.shape[-2:])
        if self.weighted:
            return np.array([self._call_weighted(C) for C in flat], dtype=np.float64).reshape(shape)
        totals = np.broadcast_to(np.asarray(self.total, dtype=np.float64), shape).reshape(-1)
        values = [self._call_counts(whole_counts(C * rows)) for C, rows in zip(flat, totals, strict=True)]
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

    def _free_gradient(self, confusion: ArrayLike, classes: Sequence[Any] | None = None) -> FloatArray:
        """Differences with one row more and one row less in every cell, if rows are what is counted."""
        if self.weighted:
            return super()._free_gradient(confusion, classes)
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
        return float(self._of_rows(rows * total).bind(moved.sum(axis=-1), classes).value(moved / total))

    def _slope(self, matrix: FloatArray, rows: float) -> FloatArray:
        if self.weighted:
            return differences(self.value, matrix, 1e-6)
        counts = whole_counts(matrix * rows).astype(np.float64)
        of_counts = replace(self, total=1.0)
        return differences(of_counts.value, counts, 1.0, part=1.0) * rows

    @cached_property
    def _pairs(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """True and predicted labels of all pairs of classes."""
        assert self.classes is not None
        labels = label_array(self.classes)
        return np.repeat(labels, len(labels)), np.tile(labels, len(labels))

    def _call_weighted(self, matrix: FloatArray) -> float:
        return self._call(*self._pairs, matrix, {WEIGHT: matrix.ravel()})

    def _call_counts(self, counts: NDArray[np.int64]) -> float:
        true, predicted = (np.repeat(labels, counts.ravel()) for labels in self._pairs)
        return self._call(true, predicted, counts, {})

    def _call(
        self, true: NDArray[Any], predicted: NDArray[Any], matrix: NDArray[Any], weight: Mapping[str, Any]
    ) -> float:
        """Call the function, unless its value at this matrix is in the cache."""
        if self.cache is None:
            return self.sign * self._evaluate(true, predicted, matrix, weight)
        key = self.classes, matrix.dtype.char, matrix.tobytes()
        value = self.cache.get(key)
        if value is None:
            value = self._evaluate(true, predicted, matrix, weight)
            self.cache.add(key, value, matrix.nbytes)
        return self.sign * value

    def _evaluate(
        self, true: NDArray[Any], predicted: NDArray[Any], matrix: NDArray[Any], weight: Mapping[str, Any]
    ) -> float:
        with warnings.catch_warnings():
            # Mostly about classes that are never predicted, by rules that are tried and not chosen.
            warnings.simplefilter("ignore")
            result = self.function(true, predicted, **self.parameters, **weight)
        return as_value(result, matrix, function_name(self.function), "metric")


def with_caches(metric: Metric) -> Metric:
    """Return the metric for one call: functions of labels in it get empty caches, because they may change."""
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
    """Return the nearest integers (K, K) whose row sums are those of `counts`, rounded.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.metrics.functions import whole_counts
    >>> whole_counts(np.array([[1.5, 1.5], [0.2, 3.8]])).tolist()
    [[2, 1], [0, 4]]
    """
    nearest = np.rint(counts)
    if np.abs(nearest - counts).max(initial=0.0) <= _MAX_ROUNDING:
        return nearest.astype(np.int64)
    least = np.floor(counts + _MAX_ROUNDING)
    short = np.rint(counts.sum(axis=1)) - least.sum(axis=1)
    # The rest of a row goes to the cells that lost most, the first among equals.
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
    """Refuse fractions of rows for a metric that needs integer counts."""
    if not metric.traits.needs_integer_counts:
        return
    metric = next(part for part in metric._distinct if part.traits.needs_integer_counts)
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
    """Whether a function takes true and predicted labels, rather than a confusion matrix, by its signature."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin without a signature
        return False
    needed = _required(function, signature, parameters or {})
    if not signature.parameters:
        raise InvalidType(
            "metric",
            problem=f"{function_name(function)} takes no arguments",
            remedy="a metric is f(C) of a confusion matrix, or f(y_true, y_pred) of labels",
            owner="metric",
        )
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
            problem=f"{function_name(function)} evaluates {_NO_LABELS[needed[1]]}, not decisions",
            remedy="choose a metric of decisions, such as 'f1'",
            owner="metric",
        )
    return len(needed) == 2


def loss_by_name(function: Any) -> bool | None:
    """Return None for a function that is a loss by its name, whose direction must be given; else False."""
    return None if _LOSS_LIKE.search(function_name(function)) else False


def unclear_direction(function: Any, parameters: Mapping[str, Any]) -> ValueError:
    """Return the error for a function that is a loss by its name, and whose direction is not given."""
    name = function_name(function)
    partial = f"functools.partial({name}, {', '.join(f'{key}={value!r}' for key, value in parameters.items())})"
    call = f"mw.metrics.from_function({partial if parameters else name}, greater_is_better=False)"
    return InvalidParameter(
        "metric",
        problem=(
            f"{name} looks like a loss, but metrics are maximised; to minimise it, pass "
            f"{call}; pass True instead if greater values are better"
        ),
        owner="metric",
    )


def _required(function: Any, signature: inspect.Signature, parameters: Mapping[str, Any]) -> list[str]:
    """Return the names of the positional arguments that have no default and no value."""
    free = [
        parameter
        for name, parameter in signature.parameters.items()
        if parameter.default is parameter.empty and name != WEIGHT and name not in parameters
    ]
    keywords = [parameter.name for parameter in free if parameter.kind is parameter.KEYWORD_ONLY]
    if keywords:
        raise InvalidType(
            "metric",
            problem=f"{function_name(function)} needs {', '.join(keywords)}",
            remedy=f"set it with functools.partial({function_name(function)}, {keywords[0]}=...)",
            owner="metric",
        )
    return [
        parameter.name
        for parameter in free
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]


def as_value(result: Any, confusion: FloatArray, function: str, owner: str) -> float:
    """Return the result of a user's function as a number; refuse anything else."""
    try:
        value = float(result)
    except (TypeError, ValueError):
        raise InvalidType(
            "metric", problem=f"{function} must return a number, got {shown(result)}", owner=owner
        ) from None
    if not np.isfinite(value):
        raise InvalidParameter(
            "metric",
            problem=f"{function} must return a finite number, got {shown(result)} for the confusion matrix "
            f"{confusion.tolist()}",
            remedy="return a finite value in this case too (for example at 0/0)",
            owner=owner,
        )
    return value


def differences(
    value: Callable[[FloatArray], FloatArray], matrix: FloatArray, step: float, part: float = 0.5
) -> FloatArray:
    """Return a gradient (K, K) by differences, moving mass within rows from the largest cell.

    At most `step`, and at most this `part` of the largest cell, is moved, so that matrices stay valid.
    """
    gradient = np.zeros_like(matrix)
    for i, row in enumerate(matrix):
        source = int(np.argmax(row))
        most = min(step, part * row[source])
        others = [j for j in range(len(row)) if j != source and most > 0]
        ends = np.repeat(matrix[None], 2 * len(others), axis=0).reshape(len(others), 2, *matrix.shape)
        moves = np.array([[most, -min(most, row[j])] for j in others]).reshape(-1, 2)
        for pair, j, move in zip(ends, others, moves, strict=True):
            pair[:, i, j] += move
            pair[:, i, source] -= move
        if others:
            high, low = np.moveaxis(value(ends), 1, 0)
            gradient[i, others] = (high - low) / (moves[:, 0] - moves[:, 1])
    return gradient
