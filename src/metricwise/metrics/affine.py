"""A metric shifted and scaled: a loss that is to be small, as something to be large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._common import FloatArray
from .base import FractionalLinear, Increasing, Linear, Metric

__all__ = ["Affine"]


@dataclass(frozen=True, eq=False)
class Affine(Metric):
    """``scale * psi(C) + shift``; an increasing transform of psi, or of minus psi, where that is linear or a ratio.

    Parameters
    ----------
    base : Metric
    scale : float, default=-1.0
        Not 0.
    shift : float, default=0.0

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.metrics.affine import Affine
    >>> error = Affine(mw.metrics.Accuracy(), -1.0, 1.0)
    >>> float(error.value([[0.5, 0.25], [0.0, 0.25]])), error.bind([0.75, 0.25]).family
    (0.25, 'increasing transform')
    """

    base: Metric
    scale: float = -1.0
    shift: float = 0.0

    @property
    def name(self) -> str:  # type: ignore[override]  # made of its parts
        return f"neg_{self.base.name}" if (self.scale, self.shift) == (-1.0, 0.0) else f"affine_{self.base.name}"

    @property
    def family(self) -> str:  # type: ignore[override]  # likewise
        return self.base.family

    @property
    def concave(self) -> bool:  # type: ignore[override]  # likewise
        return self.base.concave and self.scale > 0

    @property
    def smooth(self) -> bool:  # type: ignore[override]  # likewise
        return self.base.smooth

    @property
    def by_class(self) -> bool:  # type: ignore[override]  # likewise
        return self.base.by_class

    @property
    def range(self) -> tuple[float, float]:
        return self._limits(self.base.range)

    def _limits(self, limits: tuple[float, float]) -> tuple[float, float]:
        low, high = sorted(self.scale * end + self.shift for end in limits)
        return low, high

    @property
    def wants_positive(self) -> bool:
        return self.base.wants_positive

    def places(self, classes: Sequence[Any]) -> tuple[int, ...]:
        return self.base.places(classes)

    def check_order(self, classes: Sequence[Any]) -> None:
        self.base.check_order(classes)

    def with_positive(self, label: Any) -> Affine:
        return Affine(self.base.with_positive(label), self.scale, self.shift)

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        return self._of(self.base.bind(priors, classes))

    def of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> Metric | None:
        form = self.base.of_cells(n_classes, classes)
        return None if form is None else self._of(form)

    def bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        return self._of(self.base.bind_undecided(priors, classes))

    def _of(self, bound: Metric) -> Metric:
        """Return the same of a bound metric."""
        if not isinstance(bound, Linear | FractionalLinear):
            return Affine(bound, self.scale, self.shift)
        form = bound if self.scale > 0 else _negative(bound)
        size, shift = abs(self.scale), self.shift
        if (size, shift) == (1.0, 0.0):
            return form
        return Increasing(
            form,
            lambda value: np.asarray(size * value + shift),
            lambda value: np.full_like(value, size),
            self._limits(bound.range),
        )

    def value(self, confusion: ArrayLike) -> FloatArray:
        return np.asarray(self.scale * self.base.value(confusion) + self.shift)

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        return np.asarray(self.scale * self.base.gradient(confusion))


def _negative(bound: Linear | FractionalLinear) -> Linear | FractionalLinear:
    limits = (-bound.range[1], -bound.range[0])
    if isinstance(bound, Linear):
        return Linear(-bound.A, limits)
    zero = None if bound.zero_division is None else -bound.zero_division
    return FractionalLinear(-bound.A, bound.B, zero, limits)
