"""One solution of several: outputs of different metrics are solved apart, each part by the solver that fits it.

Under macro-averaging outputs never interact, so that the best rules of the parts together are the best rule. Owns the
join. Must not know any one algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core.losses import Loss
from ..metrics.objective import Objective
from ..oracles.base import Oracle
from ..rules import MixtureRule, anonymous_rule
from .base import FloatArray, IntArray, Outcome, Solution, settle
from .hull import mixed_confusion

__all__ = ["Part", "join"]

# From the best to the worst: all of a solution is no better than its worst part.
_OUTCOMES = (Outcome.OPTIMAL, Outcome.LOCAL, Outcome.NOT_CONVERGED)


@dataclass(frozen=True, eq=False)
class Part:
    """The solution of some of the outputs.

    Parameters
    ----------
    outputs : ndarray of int
        Their positions among all.
    title : str
        What they are, in words.
    solution : Solution
        Of these alone.
    """

    outputs: IntArray
    title: str
    solution: Solution

    @property
    def losses(self) -> list[Loss]:
        """The loss of each of its rules."""
        losses: list[Loss] = self.solution.rule.flatten().losses
        return losses

    @property
    def shares(self) -> FloatArray:
        """What share of the rows each of its rules decides, (1, R) or (M_part, R)."""
        shares: FloatArray = self.solution.rule.flatten().shares
        return shares


def join(oracle: Oracle, objective: Objective, parts: Sequence[Part]) -> Solution:
    """Return the solution of all outputs, counted anew; outputs of no part keep argmax.

    Parameters
    ----------
    oracle : Oracle
        Of all outputs.
    objective : Objective
        Of all outputs, with a group for each that counts.
    parts : sequence of Part
        Of different outputs.

    Returns
    -------
    Solution
        Values and bounds are those of the parts, weighted as the objective weighs their outputs. Where one part is
        a mixture of rules, all are, the others with one rule of share 1.
    """
    grouping = objective.grouping
    groups = [np.unique(grouping.group[part.outputs]) for part in parts]  # some outputs may be parts of one
    weights = np.array([grouping.weight[own].sum() for own in groups])
    solution = _count(oracle, objective, parts)
    # Outputs that keep argmax count as well, and the same whatever is decided for the others.
    rest = np.setdiff1d(np.arange(grouping.n_groups), np.concatenate([np.empty(0, dtype=np.intp), *groups]))
    left = float(grouping.weight[rest] @ objective.values(grouping.pool(solution.confusion))[rest])

    def total(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return left + float(weights @ known) if len(known) == len(values) else None

    found = [part.solution for part in parts]
    bound = total([one.upper_bound for one in found])
    others = [one.optimized_value if one.alternative is None else one.alternative for one in found]
    steps = max((len(one.history) for one in found), default=1)
    return replace(
        solution,
        status=_words(parts),
        outcome=max((one.outcome for one in found), key=_OUTCOMES.index, default=Outcome.OPTIMAL),
        history=tuple(
            left + float(weights @ [one.history[min(t, len(one.history) - 1)] for one in found]) for t in range(steps)
        ),
        upper_bound=None if bound is None else max(bound, solution.optimized_value),
        alternative=total(others) if any(one.alternative is not None for one in found) else None,
        level=_gather([one.level for one in found], groups, grouping.n_groups),
        threshold=_gather([one.threshold for one in found], groups, grouping.n_groups),
    )


def _count(oracle: Oracle, objective: Objective, parts: Sequence[Part]) -> Solution:
    """Count the rules of all parts together, with the kernel that predicts."""
    n_rules = max((len(part.losses) for part in parts), default=1)
    losses = [_loss(objective, parts, r) for r in range(n_rules)]
    first = settle(oracle, objective, losses[0], status="", outcome=Outcome.OPTIMAL)
    if n_rules == 1:
        return first
    shares = np.eye(1, n_rules).repeat(len(objective.n_classes), axis=0)
    for part in parts:
        shares[part.outputs, : len(part.losses)] = part.shares
    C = mixed_confusion(oracle, losses, shares)
    value = objective.value(C)
    seed = next(part.solution.rule.seed for part in parts if part.solution.rule.is_randomized)
    rules = tuple([anonymous_rule(loss, oracle.n_classes) for loss in losses])
    return replace(first, rule=MixtureRule(rules, shares, seed=seed), value=value, confusion=C, optimized_value=value)


def _loss(objective: Objective, parts: Sequence[Part], r: int) -> Loss:
    """Return the losses of the r-th rule of every output, of which some have fewer; of one structure for all."""
    own = [part.losses[r] if r < len(part.losses) else part.losses[0] for part in parts]
    argmax = Loss.argmax(objective.width)
    if not all(loss.is_diagonal for loss in own):
        argmax = Loss(full=argmax.tensor())
        own = [loss if not loss.is_diagonal else Loss(full=loss.tensor()) for loss in own]

    def place(plain: FloatArray, *arrays: FloatArray) -> FloatArray:
        out = plain.repeat(len(objective.n_classes), axis=0)
        for part, array in zip(parts, arrays, strict=True):
            out[part.outputs] = 0.0  # of classes that none of its outputs has
            out[np.ix_(part.outputs, *map(np.arange, array.shape[1:]))] = array
        return out

    return argmax.map(place, *own)


def _gather(values: Sequence[FloatArray | None], groups: Sequence[IntArray], n_groups: int) -> FloatArray | None:
    """Return what the groups of the parts have, (G,), NaN for those without; None if no part has any."""
    if all(own is None for own in values):
        return None
    out = np.full(n_groups, np.nan)
    for own, where in zip(values, groups, strict=True):
        if own is not None:
            out[where] = own
    return out


def _words(parts: Sequence[Part]) -> str:
    """Say what happened to which outputs; once, if the same happened to all."""
    said: dict[str, list[str]] = {}
    for part in parts:
        said.setdefault(part.solution.status, []).append(part.title)
    if len(said) == 1:
        return next(iter(said))
    return " ".join(f"{', '.join(titles)}: {status}" for status, titles in said.items())
