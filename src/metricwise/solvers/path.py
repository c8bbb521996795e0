"""The exact path: all rules of the family ``g B - A`` for real g."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from ..metrics.objective import Objective, Ratio
from ..oracles.base import Oracle, Walk
from .base import BaseSolver, Needs, finish_walk, no_losses
from .ratios import RatioScore, bounding_losses, certify_walk, empty_at_last, falls_short, line_of, loss_at, ratio_of
from .result import SolverResult

_MAX_LISTED_ENTRIES = 1 << 20  # entries whose changes may all be put in order


@dataclass(frozen=True)
class Path(BaseSolver):
    """Maximise ``<A, C> / <B, C>`` exactly over all losses ``g B - A``.

    As g grows, the decision about a row follows the lower envelope of K lines and changes at most K - 1 times. With all
    changes in order, running sums give the ratio on every interval of g, including both unbounded ends; with many
    changes, only those that can be near the best are sorted. The best interval is then counted with the kernel that
    predicts, so that the reported value is that of the rule.

    Guarantee: with labels, the best value in this one-parameter family on the given rows; with expected confusion, the
    best over all rules. Do not use it on very few rows without recalibration: an exact optimum on 300 rows overfits.

    Parameters
    ----------
    n_candidates : int, default=16
        Number of intervals that are counted if rounding makes the best one differ from the running sums.

    See Also
    --------
    Dinkelbach : Few passes, without sorting.
    Sweep : For any metric of binary outputs.

    Examples
    --------
    >>> import metricwise as mw
    >>> proba = [[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.3, 0.3, 0.4], [0.5, 0.1, 0.4]]
    >>> solution = mw.optimize(proba, [0, 1, 2, 2], "micro_f1",
    ...     strategy=mw.Strategy(solver="path", confusion="labels", recalibrate=False))
    >>> round(solution.value, 6), solution.gap
    (1.0, 0.0)
    """

    needs: ClassVar[Needs] = Needs(form="ratio")

    n_candidates: int = 16

    def search(self, oracle: Oracle, objective: Objective) -> SolverResult:
        """Return the rule at the best g of every group."""
        ratio = ratio_of(objective)
        constant, slope = ratio.line
        # Columns of B that differ by rounding alone have one slope: their lines would cross at some g near infinity.
        noise = 1e-13 * np.abs(ratio.B).max(axis=(1, 2))
        slope = slope.map(lambda a: np.where(np.abs(a) <= noise.reshape((-1,) + (1,) * (a.ndim - 1)), 0.0, a))
        score = RatioScore(ratio)
        line = partial(line_of, objective, ratio, constant, slope, empty_at_last(objective, ratio))
        result, short = self._finish(oracle, objective, ratio, oracle.walk(line(), 1e-12, score))
        if short and oracle.n_rows * len(objective.n_classes) <= _MAX_LISTED_ENTRIES:
            # Where rounding decides what the running sums count, the best may lie in what the search has left out.
            other, _ = self._finish(oracle, objective, ratio, oracle.walk(line(), 1e-12))
            return max(result, other, key=lambda candidate: candidate.value)
        return result

    def _finish(self, oracle: Oracle, objective: Objective, ratio: Ratio, walk: Walk) -> tuple[SolverResult, bool]:
        """Return the best rule of a walk, and whether it falls short of what the running sums promise."""
        values = RatioScore(ratio).value(walk.values)
        result, g, others = finish_walk(
            oracle,
            objective,
            walk,
            values,
            points=walk.interior,
            loss=partial(loss_at, ratio.line),
            value=lambda pooled: ratio.value(*ratio.at(pooled)),
            n_candidates=self.n_candidates,
            status="Optimal over the losses g B - A for all g.",
            beside=partial(bounding_losses, objective, ratio) if oracle.certified else no_losses,
        )
        hoped = values[walk.best(values)]
        result = replace(result, level=g, upper_bound=None if oracle.certified else result.value)
        result = certify_walk(result, oracle, objective, ratio, hoped, others)
        return result, falls_short(result, objective, ratio, hoped)
