"""Functions of labels that are a metric of ours by their values, such as a lambda around one of scikit-learn's.

A function that cannot be looked into is asked about some confusion matrices. If a metric of ours has the same value at
all of them, it takes the function's place: it has exact solvers, and no value of it is a call. A function that refuses
one of them is taken as it is. Must not know data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.matrices import FloatArray
from ..metrics.base import Metric
from ..metrics.functions import FromLabels
from ..metrics.recognised import known_loss
from ..metrics.registry import get_metric, metric_names, needed_parameter

__all__ = ["N_PROBES", "metric_of_values"]

N_PROBES = 50  # matrices at which a metric and the function must agree
_N_REAL = 10  # of them with the class counts of the data
_PROBE_ROWS = 60  # or two for each class, if those are more
_MAX_ROWS = 5_000  # of a matrix with the class counts of the data, which are thinned
_SAME = 1e-9  # beside 1: scikit-learn's functions and ours differ by rounding
_COMMON = ("accuracy", "f1", "macro_f1", "balanced_accuracy", "weighted_f1", "mcc", "kappa")  # named first if equal
_NUMBERED = ("f2", "f0.5", "macro_f2", "macro_f0.5")


def metric_of_values(function: Metric, classes: Sequence[Any], class_rows: ArrayLike) -> Metric | None:
    """Return the metric of ours that has the same values as a function of labels; None if there is none.

    Parameters
    ----------
    function : Metric
        Nothing but a function of labels is asked.
    classes : sequence of K labels
    class_rows : array-like of shape (K,)
        How many rows of each class there are.

    Returns
    -------
    Metric or None

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.metrics.user_functions import from_callable
    >>> from metricwise.goals.probing import metric_of_values
    >>> share_right = from_callable(lambda y_true, y_pred: np.mean(y_true == y_pred))
    >>> metric_of_values(share_right, [0, 1], [10, 20]).name
    'accuracy'
    >>> metric_of_values(from_callable(lambda y_true, y_pred: np.mean(y_true == y_pred) ** 3), [0, 1], [10, 20])
    """
    if not isinstance(function, FromLabels):
        return None
    labels = tuple(classes)
    candidates = list(_candidates(labels))
    rows = np.asarray(class_rows, dtype=np.float64)
    rows = np.ceil(rows * min(1.0, _MAX_ROWS / max(rows.sum(), 1.0))).astype(np.int64)
    for counts in _probes(rows):
        if not candidates:
            return None
        try:
            value = _asked(function, counts, labels)
        except Exception:  # whatever the user's function raises at rows that are not the user's
            return None
        candidates = [candidate for candidate in candidates if abs(_value(candidate, counts, labels) - value) <= _SAME]
    return candidates[0] if candidates else None


def _candidates(classes: tuple[Any, ...]) -> Iterator[Metric]:
    """Yield the metrics of ours that need nothing but labels, those of one class for each of them."""
    names = [name for name in metric_names() if needed_parameter(name) is None and name not in _COMMON]
    for name in (*_COMMON, *names, *_NUMBERED):
        for at_zero in (0.0, 1.0):
            metric = get_metric(name, zero_division=at_zero)
            for candidate in (
                [metric._with_positive(label) for label in classes] if metric.traits.needs_positive else [metric]
            ):
                try:
                    candidate._check_order(classes)
                except ValueError:  # of words, whose order nobody knows
                    continue
                yield candidate
    loss = known_loss("zero_one_loss")
    assert loss is not None
    yield loss.meant(loss.metric)._maximised()


def _probes(class_rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield counts (K, K) of true against predicted classes, in which every class occurs; some are never predicted."""
    rng, k = np.random.default_rng(0), len(class_rows)
    for probe in range(N_PROBES):
        real = probe % (N_PROBES // _N_REAL) == 0
        totals = class_rows if real else 1 + rng.multinomial(max(_PROBE_ROWS - k, k), rng.dirichlet(np.ones(k)))
        shares = rng.dirichlet(np.ones(k), size=k)
        if probe % 4 == 3:
            shares[:, rng.permutation(k)[: rng.integers(1, k)]] = 0.0
            shares /= shares.sum(axis=1, keepdims=True)
        yield np.stack([rng.multinomial(total, share) for total, share in zip(totals, shares, strict=True)])


def _asked(function: FromLabels, counts: NDArray[np.int64], classes: tuple[Any, ...]) -> float:
    total = int(counts.sum())
    C: FloatArray = counts / total
    return float(function._of_rows(total).bind(C.sum(axis=1), classes).value(C))


def _value(metric: Metric, counts: NDArray[np.int64], classes: tuple[Any, ...]) -> float:
    C: FloatArray = counts / counts.sum()
    return float(metric.bind(C.sum(axis=1), classes).value(C))
