"""Whether a metric depends on the class shares of the rows, at given recalls and errors of each class.

Under a shift of the class shares alone, the rows of each class are decided as before: metrics of recalls keep their
value and their best rule. Must not know rows or rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.matrices import FloatArray
from .base import Linear, Metric

__all__ = ["depends_on_shares", "fixed_gains"]

_N_PROBES = 3  # confusions that are compared at other class shares
_TOL = 1e-9  # of the range of values: what differs by less is rounding


def depends_on_shares(metric: Metric, n_classes: int, classes: Sequence[Any] | None = None, n_extra: int = 0) -> bool:
    """Return whether a metric changes with the shares of K classes while the rows of each class are decided as before.

    Probed at some confusions: no class of metrics has to declare it, and functions of users are covered as well. There
    are `n_extra` decisions besides the classes.
    """
    if metric.traits.needs_integer_counts:
        return True
    size = n_classes + n_extra
    decided = np.random.default_rng(0).dirichlet(np.ones(size), (_N_PROBES, size))  # of the rows of each class
    shares = np.repeat(np.stack(_probed_shares(n_classes, n_extra))[:, None], _N_PROBES, axis=1)
    values = metric.bind(shares, classes).value(shares[..., None] * decided)
    low, high = metric.range
    scale = high - low if np.isfinite(high - low) else max(float(np.abs(values).max()), 1.0)
    return bool(np.abs(values[0] - values[1]).max() > _TOL * scale)


def fixed_gains(
    metric: Metric, n_classes: int, classes: Sequence[Any] | None = None, n_extra: int = 0
) -> FloatArray | None:
    """Return A (D, D) of a metric that is ``<A, C>`` whatever the class shares; None for all others."""
    forms = [metric.bind(shares, classes) for shares in _probed_shares(n_classes, n_extra)]
    first, second = (form if isinstance(form, Linear) else None for form in forms)
    if first is None or second is None or not np.allclose(first.A, second.A, rtol=_TOL, atol=0.0):
        return None
    return np.asarray(first.A)


def _probed_shares(n_classes: int, n_extra: int) -> list[FloatArray]:
    """Return two vectors of class shares, 0 for decisions that are no classes."""
    uneven = np.arange(1.0, n_classes + 1) ** 1.5  # no class has its even share
    return [np.append(shares / shares.sum(), np.zeros(n_extra)) for shares in (np.ones(n_classes), uneven)]
