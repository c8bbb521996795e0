"""The judge of costs per row: minus the mean cost of decisions about a single output, with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.row_costs import table_of
from ..data.sources.memory import MemorySource
from ..rules.example_cost import CostRule
from .decisions import Decisions
from .results import Comparison, Estimate
from .spread import Spread

__all__ = ["CostJudge", "heaviest_share", "mean_interval"]

FloatArray = NDArray[np.float64]


class CostJudge:
    """Compares decisions about the single output of labelled rows by their costs.

    Parameters
    ----------
    source : MemorySource
    payer : CostRule
        Says what a decision costs.
    cost : ndarray of shape (N, K), (N, K, K) or (N, K, K + 1)
    eta : ndarray of shape (N, K)
        Calibrated probabilities: they weigh amounts that no label has shown.
    """

    def __init__(self, source: MemorySource, payer: CostRule, cost: FloatArray, eta: FloatArray) -> None:
        rows, self.payer, self.cost, self.eta = source.rows, payer, cost, eta
        assert rows.codes is not None
        self.spread, self.true = Spread.of(source), rows.codes[:, 0]
        self.weight = np.where(self.true >= 0, 1.0 if rows.weight is None else rows.weight, 0.0)

    def paid(self, decisions: Decisions) -> tuple[FloatArray, FloatArray]:
        """Return the expected cost of decisions about each row, (N,), and if it were of each class, (N, K)."""
        paid, by_class = np.zeros(len(self.true)), np.zeros(self.cost.shape[:2])
        for share, codes in zip(decisions.shares[0], decisions.codes, strict=True):
            paid += share * self.payer.paid(self.cost, self.true, codes[:, 0])
            by_class += share * self.payer.paid_by_class(self.cost, codes[:, 0])
        return paid, by_class

    def compare(self, both: Sequence[Decisions]) -> Comparison:
        """Return minus the mean cost of two sets of decisions and the difference, with 95 % intervals."""
        (first, first_by_class), (second, second_by_class) = map(self.paid, both)
        largest = -float(table_of(self.cost, self.payer.abstain_cost).min())

        def estimate(values: FloatArray, by_class: FloatArray, largest: float = np.inf) -> Estimate:
            return Estimate(*mean_interval(values, self.weight, self.spread, by_class, self.eta, largest))

        return Comparison(
            estimate(-first, -first_by_class, largest),
            estimate(-second, -second_by_class, largest),
            estimate(second - first, second_by_class - first_by_class),
        )


def mean_interval(
    values: FloatArray,
    weight: FloatArray,
    spread: Spread,
    by_class: FloatArray,
    eta: FloatArray,
    largest: float = np.inf,
) -> tuple[float, float, float]:
    """Return the mean over rows of values that may have a long tail, such as costs, and the ends of its 95 % interval.

    A sample without the few large losses has too small a variance as well as too small a mean. The variance over other
    labels that the rows could have had, by the probabilities, includes amounts that no label has shown. The standard
    error is that, or half way to that of the labels if this is larger.

    Parameters
    ----------
    values : ndarray of shape (N,)
        By the labels.
    weight : ndarray of shape (N,)
        0 without a label.
    spread : Spread
    by_class : ndarray of shape (N, K)
        The value if a row were of each class.
    eta : ndarray of shape (N, K)
        Calibrated probabilities.
    largest : float
        Upper bound of the values.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.inference.costs import mean_interval
    >>> from metricwise.inference.spread import Spread
    >>> amount = np.array([10.0, 10.0, 10.0, 1000.0])  # lost with a probability of 0.1: not in this sample
    >>> lost = np.array([1, 0, 0, 0])
    >>> by_class, eta = np.stack([0 * amount, amount], axis=1), np.tile([0.9, 0.1], (4, 1))
    >>> mean, low, high = mean_interval(lost * amount, np.ones(4), Spread(None, None, 4), by_class, eta)
    >>> mean, high > 100
    (2.5, True)
    """
    share = weight / weight.sum()
    mean, expected = float(values @ share), np.sum(eta * by_class, axis=1)
    by_labels = (values - mean) * share
    deviation = np.sum(eta * (by_class - expected @ share) ** 2, axis=1)
    alone = Spread(None, spread.repeats, len(values))
    error, independent = spread.error(by_labels), alone.error(by_labels)
    design_effect = error / independent if independent > 0 else 1.0
    modelled = design_effect * alone.error(np.sqrt(deviation) * share)
    half = spread.quantile * max(modelled, (modelled + error) / 2)
    return mean, mean - half, min(mean + half, max(mean, largest))


def heaviest_share(values: FloatArray, weight: FloatArray, n_rows: int = 10) -> float:
    """Return the share of some rows, those furthest from the mean, in the variance of the mean of values (N,)."""
    share = weight / weight.sum()
    squares = np.sort(((values - values @ share) * share) ** 2)
    total = float(squares.sum())
    return float(squares[-n_rows:].sum()) / total if total > 0 else 0.0
