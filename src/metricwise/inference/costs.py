"""Minus the mean of costs per row: of two sets of decisions, with intervals.

Owns what decisions cost. Must not know what users hand over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.row_costs import table_of
from ..data.sources.memory import MemorySource
from ..rules.example_cost import CostRule
from .judging import Decisions
from .results import Comparison, Estimate
from .uncertainty import Spread, mean_interval

__all__ = ["compare_costs"]

FloatArray = NDArray[np.float64]


def compare_costs(
    source: MemorySource, payer: CostRule, cost: FloatArray, eta: FloatArray, both: list[Decisions]
) -> Comparison:
    """Compare minus the mean cost of two sets of decisions about a single output.

    Parameters
    ----------
    source : MemorySource
        With labels.
    payer : CostRule
        That says what a decision costs.
    cost : ndarray of shape (N, K), (N, K, K) or (N, K, K + 1)
    eta : ndarray of shape (N, K)
        Probabilities, as good as there are: amounts that no label has hit count by them.
    both : list of two Decisions
        Each about the one output.
    """
    rows, spread = source.rows, Spread.of_rows_in(source)
    assert rows.codes is not None
    true = rows.codes[:, 0]
    weight = np.where(true >= 0, 1.0 if rows.weight is None else rows.weight, 0.0)
    sides = [_paid(payer, cost, true, own) for own in both]
    (first, second), (first_by_class, second_by_class) = zip(*sides, strict=True)
    largest = -float(table_of(cost, payer.abstain_cost).min())
    return Comparison(
        Estimate(*mean_interval(-first, weight, spread, -first_by_class, eta, largest)),
        Estimate(*mean_interval(-second, weight, spread, -second_by_class, eta, largest)),
        Estimate(*mean_interval(second - first, weight, spread, second_by_class - first_by_class, eta)),
    )


def _paid(payer: CostRule, cost: FloatArray, true: NDArray[Any], decisions: Decisions) -> tuple[FloatArray, FloatArray]:
    """What decisions about each row cost, (N,), and would cost if it were of each class, (N, K): in expectation."""
    paid, by_class = np.zeros(len(true)), np.zeros(cost.shape[:2])
    for share, codes in zip(decisions.shares[0], decisions.codes, strict=True):
        paid += share * payer.paid(cost, true, codes[:, 0])
        by_class += share * payer.paid_by_class(cost, codes[:, 0])
    return paid, by_class
