"""Whether a metric depends on the class shares of the rows, at given recalls and errors of each class.

Under a shift of the class shares alone, the rows of each class are decided as before: metrics of recalls keep their
value and their best rule. Must not know rows or rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.matrices import FloatArray
from .base import Linear, Metric

__all__ = ["depends_on_shares", "fixed_gains"]

_N_PROBES = 3  # confusions that are compared at other class shares
_MAX_KEPT_CLASSES = 100  # whose confusions are kept for the next call
_TOL = 1e-9  # of the range of values: what differs by less is rounding


def depends_on_shares(metric: Metric, n_classes: int, classes: Sequence[Any] | None = None, n_extra: int = 0) -> bool:
    """Return whether a metric changes with the shares of K classes while the rows of each class are decided as before.

    Probed at some confusions: no class of metrics has to declare it, and functions of users are covered as well. There
    are `n_extra` decisions besides the classes.
    """
    if metric.traits.needs_integer_counts:
        return True
    if n_classes + n_extra <= _MAX_KEPT_CLASSES:
        shares, confusions = _kept_probes(n_classes, n_extra)
        values = metric.bind(shares, classes).value(confusions)
    else:
        shares = np.stack(_probed_shares(n_classes, n_extra))
        objective = metric.bind(shares, classes)
        values = np.stack([objective.value(shares[..., None] * d) for d in _decided(n_classes + n_extra)], axis=1)
    low, high = metric.range
    scale = high - low if np.isfinite(high - low) else max(float(np.abs(values).max()), 1.0)
    return bool(np.abs(values[0] - values[1]).max() > _TOL * scale)


def fixed_gains(
    metric: Metric, n_classes: int, classes: Sequence[Any] | None = None, n_extra: int = 0
) -> FloatArray | None:
    """Return A (D, D) of a metric that is ``<A, C>`` whatever the class shares; None for all others."""
    first, second = _probed_shares(n_classes, n_extra)
    form = metric.bind(first, classes)
    if not isinstance(form, Linear):
        return None
    other = metric.bind(second, classes)
    return form.A if isinstance(other, Linear) and np.allclose(form.A, other.A, rtol=_TOL, atol=0.0) else None


def _decided(size: int) -> Iterator[FloatArray]:
    """Yield how the rows of each class are decided, one matrix (D, D) at a time: of very many classes it is large."""
    rng = np.random.default_rng(0)
    return (rng.dirichlet(np.ones(size), size) for _ in range(_N_PROBES))


@lru_cache(maxsize=16)  # of the sizes of the last problems
def _kept_probes(n_classes: int, n_extra: int) -> tuple[FloatArray, FloatArray]:
    """Return class shares (2, _N_PROBES, D) and confusions at these, in which rows of each class are decided alike."""
    shares = np.repeat(np.stack(_probed_shares(n_classes, n_extra))[:, None], _N_PROBES, axis=1)
    return shares, shares[..., None] * np.stack(list(_decided(n_classes + n_extra)))


def _probed_shares(n_classes: int, n_extra: int) -> list[FloatArray]:
    """Return two vectors of class shares, 0 for decisions that are no classes."""
    uneven = np.arange(1.0, n_classes + 1) ** 1.5  # no class has its even share
    return [np.append(shares / shares.sum(), np.zeros(n_extra)) for shares in (np.ones(n_classes), uneven)]
