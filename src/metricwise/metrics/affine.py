"""A metric shifted and scaled: a loss that is to be small, as something to be large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._common import FloatArray
from .base import FractionalLinear, Linear, Metric

__all__ = ["Affine", "negated"]


@dataclass(frozen=True, eq=False)
class Affine(Metric):
    """``scale * psi(C) + shift``, which is linear or a ratio where psi is, for cells of C sum to 1.

    Parameters
    ----------
    base : Metric
    scale : float, default=-1.0
        Not 0.
    shift : float, default=0.0
    title : str, optional
        The name; by default made of that of `base`.
    is_loss : bool, default=False
        Whether smaller values are better.
    minus : str, optional
        The name of the loss that it is minus of, if people read that instead.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.metrics.affine import Affine
    >>> error = Affine(mw.metrics.Accuracy(), -1.0, 1.0)
    >>> float(error.value([[0.5, 0.25], [0.0, 0.25]])), error.bind([0.75, 0.25]).family
    (0.25, 'linear')
    """

    base: Metric
    scale: float = -1.0
    shift: float = 0.0
    title: str | None = None
    is_loss: bool = False
    minus: str | None = None

    @property
    def name(self) -> str:  # type: ignore[override]  # made of its parts
        if self.title is not None:
            return self.title
        return f"neg_{self.base.name}" if (self.scale, self.shift) == (-1.0, 0.0) else f"affine_{self.base.name}"

    @property
    def lower_is_better(self) -> bool:  # type: ignore[override]  # depends on what it is made of
        return self.is_loss

    def class_metric(self) -> Metric | None:
        return self.base.class_metric()

    @property
    def loss_name(self) -> str | None:  # type: ignore[override]  # likewise
        return self.minus

    @property
    def of_abstentions(self) -> bool:  # type: ignore[override]  # likewise
        return self.base.of_abstentions

    @property
    def priced(self) -> bool:
        return self.base.priced

    @property
    def degenerate(self) -> str | None:
        return self.base.degenerate if self.base.lower_is_better else None

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
        return replace(self, base=self.base.with_positive(label))

    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        return self._of(self.base.bind(priors, classes))

    def of_cells(self, n_classes: int, classes: Sequence[Any] | None = None) -> Metric | None:
        form = self.base.of_cells(n_classes, classes)
        return None if form is None else self._of(form)

    def bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Metric:
        return self._of(self.base.bind_undecided(priors, classes))

    def _of(self, bound: Metric) -> Metric:
        """Return the same of a bound metric."""
        if isinstance(bound, Linear):
            return Linear(self.scale * bound.A + self.shift, self._limits(bound.range))
        if isinstance(bound, FractionalLinear):
            at_zero = self.scale * (bound.zero_division or 0.0) + self.shift
            A = self.scale * bound.A + self.shift * bound.B
            return FractionalLinear(A, bound.B, at_zero, self._limits(bound.range))
        return Affine(bound, self.scale, self.shift)

    def value(self, confusion: ArrayLike) -> FloatArray:
        return np.asarray(self.scale * self.base.value(confusion) + self.shift)

    def gradient(self, confusion: ArrayLike) -> FloatArray:
        return np.asarray(self.scale * self.base.gradient(confusion))


def negated(metric: Metric, name: str | None = None) -> Affine:
    """Return minus a metric, which people read as the metric itself, under its name or another one.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.metrics.affine import negated
    >>> least = negated(mw.metrics.Accuracy())
    >>> least.name, least.loss_name
    ('neg_accuracy', 'accuracy')
    """
    name = metric.name if name is None else name
    return Affine(metric, -1.0, 0.0, title=f"neg_{name}", minus=name)


Metric._negate = staticmethod(negated)
