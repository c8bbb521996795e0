"""Binary outputs: one sorted sweep over all thresholds, for any metric."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..losses import Loss
from ..metrics.objective import Objective
from ..oracles.base import Oracle, Walk
from .base import FloatArray, Solution, best_of, concave_bound, finish
from .ratios import certify

__all__ = ["Sweep"]

# Class 1 iff p > t, exactly so in floating point: score 0 against t - p.
_CONSTANT = Loss(diagonal=np.array([[0.0, -1.0]]), offset=np.zeros((1, 2)))
_SLOPE = Loss(diagonal=np.zeros((1, 2)), offset=np.array([[0.0, 1.0]]))
_PREDICTED_ONE = np.array([[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
_CHUNK = 1 << 16


def threshold_loss(threshold: FloatArray) -> Loss:
    """Return the losses of "class 1 iff p > t" for thresholds of shape (G,)."""
    return _CONSTANT.map(lambda a, b: a + threshold[:, None] * b, _SLOPE)


@dataclass(frozen=True)
class Sweep:
    """Maximise any metric of binary outputs exactly over all thresholds.

    Guarantee: no threshold does better on the rows given; outputs that share a confusion (micro-average) share the
    threshold. With expected confusion no deterministic rule does better, provided that the metric rewards predicting
    class 1 the more, the likelier it is; `upper_bound` proves it for ratios and concave metrics. Not for rare labels
    one by one: what is exact on few positives overfits them.

    Parameters
    ----------
    n_candidates : int, default=4
        Thresholds that are counted again with the kernel that predicts.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.35, 0.4, 0.8], [0, 1, 0, 1], "mcc", solver="sweep",
    ...                        confusion="labels", recalibrate=False)
    >>> round(solution.rule.threshold, 6), round(solution.value, 6)
    (0.6, 0.57735)
    """

    n_candidates: int = 4

    def solve(self, oracle: Oracle, objective: Objective) -> Solution:
        """Return the rule at the best threshold of every group."""
        if objective.width != 2:
            raise ValueError(
                f"Sweep needs binary outputs, got {objective.width} classes: use solver='auto', or 'path' for a ratio."
            )
        candidates = np.stack(
            [self._candidates(oracle, objective, g) for g in range(objective.grouping.n_groups)], axis=1
        )
        best = best_of(oracle, objective, [threshold_loss(t) for t in candidates])
        threshold = np.take_along_axis(candidates, best[None], axis=0)[0]
        solution = finish(
            oracle,
            objective,
            threshold_loss(threshold),
            status="Optimal over all thresholds.",
            n_passes=2,
            extra={"threshold": threshold},
        )
        return self._bounded(oracle, objective, solution)

    def _bounded(self, oracle: Oracle, objective: Objective, solution: Solution) -> Solution:
        """Attach the optimum of the family, or with probabilities what holds for all rules, randomised ones as well."""
        if not oracle.certified:
            return replace(solution, upper_bound=solution.value)
        ratio = objective.ratio
        if ratio is not None:
            reached = ratio.value(*ratio.at(objective.grouping.pool(solution.confusion)))
            return certify(solution, oracle, objective, ratio, reached)
        if objective.concave:
            bound = max(solution.value, concave_bound(oracle, objective, solution.confusion))
            words = f"{solution.status} A mixture could add at most {bound - solution.value:.2g}."
            return replace(solution, upper_bound=bound, status=words, n_passes=solution.n_passes + 1)
        return solution

    def _candidates(self, oracle: Oracle, objective: Objective, group: int) -> FloatArray:
        grouping = objective.grouping
        outputs = np.flatnonzero((grouping.group == group) & (grouping.share > 0))
        walk = oracle.walk(outputs, grouping.share[outputs], (_CONSTANT, _SLOPE), _PREDICTED_ONE, tol=0.0)
        metric = objective.group_metric(group)
        priors = objective.priors[group]
        values = [
            metric.value(_confusions(walk.values[start : start + _CHUNK], priors))
            for start in range(0, len(walk.values), _CHUNK)
        ]
        return _thresholds(walk, walk.best(np.concatenate(values), self.n_candidates))


def _confusions(predicted_one: FloatArray, priors: FloatArray) -> FloatArray:
    """Confusion matrices (T, 2, 2) from the shares of each true class that are predicted 1."""
    # Running sums end a rounding away from the truth: an empty cell must be empty for a 0/0 to be one.
    ones = np.where(predicted_one < 1e-12 * priors, 0.0, np.minimum(predicted_one, priors))
    rest = priors - ones
    rest = np.where(rest < 1e-12 * priors, 0.0, rest)
    return np.stack([rest, ones], axis=-1)


def _thresholds(walk: Walk, index: np.ndarray) -> FloatArray:
    """Thresholds inside intervals, kept within [0, 1] where that decides the same."""
    low, high = walk.lower[index], walk.upper[index]
    left = np.where(np.isinf(low) & (high > 0), 0.0, low)
    right = np.where(np.isinf(high) & (low <= 1), 1.0, high)
    return Walk(left, right, walk.values[index]).interior(np.arange(len(index)))
