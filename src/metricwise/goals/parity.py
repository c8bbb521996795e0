"""Named fairness constraints as lists of metrics whose gap between any two groups is bounded.

Must not know groups, rows or how bounds are satisfied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InvalidParameter, entry_point
from ..core.matrices import FloatArray, as_shares, divide, prior_limits
from ..metrics.base import Linear, Metric, Traits
from ..metrics.linear import PredictedShare, Recall
from ..metrics.ratio import Precision

__all__ = ["PARITIES", "DecisionRate"]


@dataclass(frozen=True, eq=False)
class DecisionRate(Metric):
    """Share of the rows of one class that are decided as another (or the same), ``C[i, j] / pi_i``.

    Range [0, 1]; 0 where there is no row of the class. Equalised odds holds all of these equal between groups.

    Parameters
    ----------
    true, decided : int
        i and j, by position.

    Examples
    --------
    >>> from metricwise.goals.parity import DecisionRate
    >>> float(DecisionRate(0, 1).value([[0.3, 0.1], [0.2, 0.4]]))
    0.25
    """

    true: int
    decided: int

    traits = Traits(name="decision_rate", family="linear", concave=True)

    @entry_point("{class}")
    def bind(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Linear:
        priors = as_shares(priors)
        k = priors.shape[-1]
        if not (max(self.true, self.decided) < k):
            raise InvalidParameter("true", problem=f"true and decided must be below {k}, the classes")
        cell = np.zeros((k, k))
        cell[self.true, self.decided] = 1.0
        matrix: FloatArray = divide(cell, priors[..., self.true, None, None])
        return Linear(matrix, prior_limits(matrix, priors))

    def _bind_undecided(self, priors: ArrayLike, classes: Sequence[Any] | None = None) -> Linear:
        return self.bind(priors, classes)  # a row that is left undecided is decided as no class


Parity = Callable[[int, int | None], list[Metric | str]]


def _each(n_classes: int, place: int | None) -> list[int]:
    """The classes that a promise is about: the one that it names, else all; of two, their gaps are the same."""
    if place is not None:
        return [place]
    return [1] if n_classes == 2 else list(range(n_classes))


def _shares(n_classes: int, place: int | None) -> list[Metric | str]:
    return [PredictedShare(index=j) for j in _each(n_classes, place)]


def _recalls(n_classes: int, place: int | None) -> list[Metric | str]:
    # Of two classes without a name it is the positive one, which is settled where the metric is read.
    return ["recall"] if n_classes == 2 and place is None else [Recall(index=j) for j in _each(n_classes, place)]


def _precisions(n_classes: int, place: int | None) -> list[Metric | str]:
    return ["precision"] if n_classes == 2 and place is None else [Precision(index=j) for j in _each(n_classes, place)]


def _rates(n_classes: int, place: int | None) -> list[Metric | str]:
    if n_classes == 2:
        return [Recall(index=j) for j in range(2)]
    decided = _each(n_classes, place)
    return [DecisionRate(i, j) for i in range(n_classes) for j in decided]


PARITIES: dict[str, Parity] = {
    "demographic_parity": _shares,
    "equal_opportunity": _recalls,
    "equalized_odds": _rates,
    "equalised_odds": _rates,
    "predictive_parity": _precisions,
}
