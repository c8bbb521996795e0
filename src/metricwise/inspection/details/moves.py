"""Decisions that a rule changes: from which class to which, and whether the decision is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.losses import Loss
from ...oracles.problem import Problem
from ...rules.base import Rule, RuleRows
from ...rules.weighted import anonymous_rule

__all__ = ["Moves", "count_moves"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Moves:
    """Decisions that a rule changes, in weight of rows: from the class of argmax to that of the rule.

    Parameters
    ----------
    gained : ndarray of shape (M, K, K)
        ``gained[m, a, b]``: rows of output m that argmax decides as a and the rule as b, where b is true. On the
        diagonal are unchanged rows whose decision is right.
    lost : ndarray of shape (M, K, K)
        Such rows where a is true.
    neither : ndarray of shape (M, K, K)
        Such rows where neither is true; on the diagonal are unchanged rows whose decision is wrong.
    expected : bool
        Whether probabilities were counted in place of labels.

    See Also
    --------
    metricwise.displays.MovesDisplay : Draw the moves.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1",
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> solution.details.moves.moved
    0.25
    """

    gained: FloatArray
    lost: FloatArray
    neither: FloatArray
    expected: bool = False

    @property
    def total(self) -> FloatArray:
        """All rows, (M, K, K); unchanged ones are on the diagonal."""
        both = np.eye(self.gained.shape[-1]) * self.lost  # right before and after: counted once
        return self.gained + self.lost - both + self.neither

    @property
    def moved(self) -> float:
        """Share of the decisions that the rule changes."""
        total = self.total
        stay = np.trace(total, axis1=1, axis2=2).sum()
        return float((total.sum() - stay) / max(total.sum(), np.finfo(float).tiny))


def count_moves(problem: Problem, rule: Rule) -> Moves:
    """Count the moves of a rule; those of a mixture by the shares of its rules."""
    schema = problem.schema
    width = schema.decision_width
    argmax_rule = anonymous_rule(Loss.argmax(width), schema.n_decisions)
    rules, shares = rule.flatten() if rule.is_flat else ((rule,), np.ones((1, 1)))
    shares = np.broadcast_to(shares, (schema.n_outputs, len(rules)))

    def ask(rows: Any) -> FloatArray:
        before = argmax_rule.decide(RuleRows(rows.proba))
        out = np.zeros((3, schema.n_outputs, width, width))
        for r, part in enumerate(rules):
            after = part.decide(RuleRows(rows.proba))
            masses = (
                _by_label(rows, before, after)
                if problem.labelled
                else _by_probability(rows, before, after, part.shared_link)
            )
            tallies = [_tally(before, after, width, mass, rows.weight) for mass in masses]
            out += shares[:, r, None, None] * np.stack(tallies)
        return out

    gained, lost, neither = problem.source.reduce(ask)
    return Moves(gained, lost, neither, expected=not problem.labelled)


def _by_label(rows: Any, before: IntArray, after: IntArray) -> tuple[NDArray[Any], ...]:
    """Return whether entries (N, M) are gained, lost or neither."""
    codes = rows.codes
    return codes == after, codes == before, (codes != after) & (codes != before) & (codes >= 0)


def _by_probability(rows: Any, before: IntArray, after: IntArray, link: Any) -> tuple[NDArray[Any], ...]:
    """Return the probability that entries (N, M) are gained, lost or neither."""
    proba = rows.proba if link is None else link.view(rows.proba).recalibrated()
    gained, lost = np.empty((2, *before.shape))
    for m in range(before.shape[1]):
        eta = np.asarray(proba.output(m)[:, 0], dtype=np.float64)
        eta = np.stack([1 - eta, eta], axis=1) if eta.ndim == 1 else eta
        for mass, decided in ((gained, after), (lost, before)):
            mass[:, m] = np.take_along_axis(eta, decided[:, m, None], axis=1)[:, 0]
    return gained, lost, np.where(before == after, 1 - gained, np.maximum(1 - gained - lost, 0.0))


def _tally(before: IntArray, after: IntArray, width: int, mass: NDArray[Any], weight: FloatArray | None) -> FloatArray:
    """Sum the mass of entries (N, M) by both decisions, (M, K, K)."""
    n_outputs = before.shape[1]
    mass = np.asarray(mass, dtype=np.float64)
    mass = mass if weight is None else mass * weight[:, None]
    cell = (np.arange(n_outputs) * width + before) * width + after
    return np.asarray(np.bincount(cell.ravel(), mass.ravel(), n_outputs * width**2).reshape(n_outputs, width, width))
