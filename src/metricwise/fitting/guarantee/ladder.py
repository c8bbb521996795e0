"""Rules fitted to a part of the rows with less and less to spare, which the other rows test in this order.

For bounds that no single threshold decides: several classes, abstentions by class, accuracy. Must not know user input.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.losses import Loss
from ...inference.exact_tests import certify_in_sequence, largest_p_values
from ...oracles.problem import FitStrategy
from ...rules.calibration import TemperatureScaling
from ...solvers.constrained import Effort, InfeasibleError
from ..constraints.search import NoSingleRuleError, Search
from ..solving import Settings
from .pieces import Piece

__all__ = ["Ladder", "climb"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Multiples of the standard errors of the bounded metrics on the rows that test, by which bounds are narrower.
_SPARE_ERRORS = np.linspace(5.0, 0.0, 26)


@dataclass(frozen=True, eq=False)
class Ladder:
    """Losses of rules in the order of their tests, their link, which are certified, and their cells (T, K, D)."""

    losses: tuple[Loss, ...]
    link: TemperatureScaling | None
    certified: BoolArray
    cells: NDArray[np.int64]


def climb(fitted: Piece, tested: Piece, recipe: FitStrategy, settings: Settings, delta: float) -> Ladder | None:
    """Fit rules to some rows and test them on others; None if no rule keeps the bounds on those it is fitted to."""
    problem = fitted.rows
    link = problem.link(recipe.recalibrate)
    search = Search(problem, recipe, link, fitted.constraints, settings)
    losses = _fit_rungs(search, problem.n_rows / max(tested.rows.n_rows, 1))
    if not losses:
        return None
    cells = {g: tested.count_losses(losses, link, g) for g in {None, *(p.group for p in tested.proportions)}}
    p_values = largest_p_values(tested.proportions, [cells[p.group] for p in tested.proportions])
    shares = np.zeros(len(losses))
    shares[0] = delta
    return Ladder(tuple(losses), link, certify_in_sequence(p_values, shares), cells[None])


def _fit_rungs(search: Search, rate: float) -> list[Loss]:
    """Return the losses of rules from much to nothing to spare; `rate` is the rows fitted to those that test."""
    none = np.zeros((len(search.constraints), 2))
    try:
        loosest = search.best(none, single=True, effort=Effort.CAUTIOUS)
    except (InfeasibleError, NoSingleRuleError):
        return []
    variances = np.array([metric.variance for metric in search.counted(loosest)])
    margins = np.sqrt(variances * rate)[:, None] * np.ones((1, 2))
    effort = Effort.CAUTIOUS
    if search.compares_known:
        search.explore(_SPARE_ERRORS[0] * margins)
        effort = Effort.KNOWN
    losses = []
    for spare in _SPARE_ERRORS:
        try:
            candidate = search.best(spare * margins, single=True, effort=effort)
        except (InfeasibleError, NoSingleRuleError):
            continue
        losses.append(candidate.result.losses[0])
    return losses
