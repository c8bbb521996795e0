"""The exact path: every rule of the family ``g B - A``, g over the whole real line."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..metrics.objective import Objective, Ratio
from ..oracles.base import Oracle
from .base import FloatArray, Solution, best_of, finish
from .ratios import certify, loss_at, need_ratio

__all__ = ["Path"]


@dataclass(frozen=True)
class Path:
    """Maximise ``<A, C> / <B, C>`` exactly over all losses ``g B - A``.

    As g grows, the decision of a row is the lower envelope of K lines and changes at most K - 1 times. With all changes
    in order, running sums give the ratio on every interval of g, both unbounded ends included. The best few intervals
    are then counted with the kernel that predicts, so that the value reported is the value of the rule.

    Guarantee: with labels, the best value in this one-parameter family on the rows given; with expected confusion, the
    best over all rules. Not for very few rows without recalibration: what is exact on 300 rows overfits them.

    Parameters
    ----------
    n_candidates : int, default=16
        Intervals that are counted again. Only rounding can make them differ from the running sums.

    Examples
    --------
    >>> import metricwise as mw
    >>> proba = [[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.3, 0.3, 0.4], [0.5, 0.1, 0.4]]
    >>> solution = mw.optimize(proba, [0, 1, 2, 2], "micro_f1", solver="path", confusion="labels", recalibrate=False)
    >>> round(solution.value, 6), solution.gap
    (1.0, 0.0)
    """

    n_candidates: int = 16

    def solve(self, oracle: Oracle, objective: Objective) -> Solution:
        """Return the rule at the best g of every group."""
        ratio = need_ratio(objective, "Path")
        candidates = np.stack(
            [self._candidates(oracle, objective, ratio, g) for g in range(objective.grouping.n_groups)], axis=1
        )
        best = best_of(oracle, objective, [loss_at(ratio.line, g) for g in candidates])
        g = np.take_along_axis(candidates, best[None], axis=0)[0]
        solution = finish(
            oracle,
            objective,
            loss_at(ratio.line, g),
            status="Optimal over the losses g B - A for all g.",
            n_passes=2,
            extra={"g": g},
        )
        if oracle.certified:
            return certify(
                solution, oracle, objective, ratio, ratio.value(*ratio.at(objective.grouping.pool(solution.confusion)))
            )
        return replace(solution, upper_bound=solution.value)

    def _candidates(self, oracle: Oracle, objective: Objective, ratio: Ratio, group: int) -> FloatArray:
        """Points inside the best intervals of one group, best first, repeated to n_candidates."""
        grouping = objective.grouping
        outputs = np.flatnonzero((grouping.group == group) & (grouping.share > 0))
        constant, slope = (loss.output(group) for loss in ratio.line)
        # Columns of B that differ by rounding alone have one slope: their lines would cross at some g near infinity.
        noise = 1e-13 * np.abs(ratio.B[group]).max()
        slope = slope.map(lambda a: np.where(np.abs(a) <= noise, 0.0, a))
        functionals = np.stack([ratio.A[group], ratio.B[group]])
        walk = oracle.walk(outputs, grouping.share[outputs], (constant, slope), functionals, tol=1e-12)
        values = ratio.value(walk.values[:, 0], walk.values[:, 1])
        return walk.interior(walk.best(values, self.n_candidates))
