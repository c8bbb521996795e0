"""Rules fitted to a part of the rows with less and less to spare, which the other rows test in this order.

For bounds that no single threshold decides: several classes, abstentions by class, accuracy. Must not know user input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ...core.losses import Loss
from ...data.sources.memory import MemorySource
from ...inference.exact_tests import certify_in_sequence, largest_p_values
from ...oracles.problem import FitStrategy
from ...rules.calibration import TemperatureScaling
from ...solvers.constrained import Effort, InfeasibleError
from ..constraints.search import ConstrainedRule, NoSingleRuleError, Search
from ..solving import Settings
from .pieces import Piece

__all__ = ["Ladder", "climb"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Multiples of the standard errors of the bounded metrics on the rows that test, by which bounds are narrower. Negative
# ones are for probabilities by which bounds seem to be missed that are kept.
_SPARE_ERRORS = np.linspace(5.0, -1.0, 31)
_ASKED_EVERY = 5  # such rung asks the oracle for rules; on three classes and 1,000 or 4,000 rows 2 is no better


@dataclass(frozen=True, eq=False)
class Ladder:
    """Losses of rules in the order of their tests, their link, which are certified, and their cells by group."""

    losses: tuple[Loss, ...]
    link: TemperatureScaling | None
    certified: BoolArray
    cells: Mapping[int | None, NDArray[np.int64]]


def climb(fitted: Piece, tested: Piece, recalibrate: bool, settings: Settings, delta: float) -> Ladder | None:
    """Fit rules to some rows and test them on others; None if no rule is found.

    The labels of the rows that rules are fitted to are used for the link alone: bounds and metric are those that
    probabilities expect, of rows without labels if there are any.
    """
    link = fitted.rows.link(recalibrate)
    losses = _fit_rungs(fitted, link, settings, tested.rows.n_rows)
    if not losses:
        return None
    cells = {g: tested.count_losses(losses, link, g) for g in {None, *(p.group for p in tested.proportions)}}
    p_values = largest_p_values(tested.proportions, [cells[p.group] for p in tested.proportions])
    shares = np.zeros(len(losses))
    shares[0] = delta
    return Ladder(tuple(losses), link, certify_in_sequence(p_values, shares), cells)


def _fit_rungs(fitted: Piece, link: TemperatureScaling | None, settings: Settings, n_tested: int) -> list[Loss]:
    """Return the losses of rules from much to nothing to spare."""
    rows = fitted.rows
    proba = rows.source.rows.proba if fitted.unlabelled is None else fitted.unlabelled
    expected = replace(rows, source=MemorySource.unlabelled(proba, rows.schema))
    search = Search(expected, FitStrategy("expected"), link, fitted.constraints, settings)
    errors = _standard_errors(fitted, search, n_tested)
    for spare in _SPARE_ERRORS[::_ASKED_EVERY]:  # which asks for the rules that all rungs choose from
        _best_rule(search, spare * errors, single=False, effort=Effort.CAUTIOUS)
    rungs = [_best_rule(search, spare * errors, single=True, effort=Effort.KNOWN) for spare in _SPARE_ERRORS]
    return [rule.result.losses[0] for rule in rungs if rule is not None]


def _best_rule(search: Search, margins: FloatArray, *, single: bool, effort: Effort) -> ConstrainedRule | None:
    """Return the best rule within bounds that are narrower by margins; None if none is found."""
    try:
        return search.best(margins, single=single, effort=effort)
    except (InfeasibleError, NoSingleRuleError):
        return None


def _standard_errors(fitted: Piece, search: Search, n_tested: int) -> FloatArray:
    """Return the standard errors (Q, 2) of bounded metrics at their bounds, of so many rows decided by argmax."""
    width = fitted.rows.schema.width
    C = search.oracle.confusions([Loss.argmax(search.objective.width)])[0, 0, :width]
    by_promise: dict[int, float] = {}
    for proportion in fitted.proportions:
        trials = n_tested * float(C[proportion.trials].sum())
        error = sqrt(proportion.bound * (1.0 - proportion.bound) / max(trials, 1.0))
        by_promise[proportion.promise] = max(error, by_promise.get(proportion.promise, 0.0))
    return np.array([[by_promise[constraint.promise]] * 2 for constraint in fitted.constraints])
