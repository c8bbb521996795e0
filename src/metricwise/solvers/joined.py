"""Join of the results of outputs with different metrics, which are solved separately.

Under macro-averaging outputs do not interact: the best rules of the parts are the best rule. Must not know algorithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core.losses import Loss
from ..core.notes import Note, NoteKind, joined_text
from ..metrics.objective import Objective
from ..oracles.base import Oracle
from .base import FloatArray, IntArray
from .hull import mixed_confusion
from .result import Outcome, SolverResult, count_rule

# From the best to the worst: all of a result is no better than its worst part.
_OUTCOMES = (Outcome.OPTIMAL, Outcome.LOCAL, Outcome.NOT_CONVERGED)


@dataclass(frozen=True, eq=False)
class Part:
    """The result of some of the outputs.

    Parameters
    ----------
    outputs : ndarray of int
        Their positions among all.
    title : str
        What they are, in words.
    result : SolverResult
        Of these alone.
    """

    outputs: IntArray
    title: str
    result: SolverResult


def join(oracle: Oracle, objective: Objective, parts: Sequence[Part]) -> SolverResult:
    """Return the result of all outputs, counted anew; outputs of no part keep argmax.

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
    SolverResult
        Values and bounds are those of the parts, weighted as the objective weighs their outputs. Where one part is
        a mixture of rules, all are, the others with one rule of share 1.
    """
    grouping = objective.grouping
    groups = [np.unique(grouping.group[part.outputs]) for part in parts]  # some outputs may be parts of one
    weights = np.array([grouping.weight[members].sum() for members in groups])
    result = _count(oracle, objective, parts)
    # Outputs that keep argmax count as well, and the same whatever is decided for the others.
    rest = np.setdiff1d(np.arange(grouping.n_groups), np.concatenate([np.empty(0, dtype=np.intp), *groups]))
    left = float(grouping.weight[rest] @ objective.values(grouping.pool(result.confusion))[rest])

    def total(values: Sequence[float | None]) -> float | None:
        finite = [value for value in values if value is not None]
        return left + float(weights @ finite) if len(finite) == len(values) else None

    bound = total([part.result.upper_bound for part in parts])
    others = [part.result.value if part.result.alternative is None else part.result.alternative for part in parts]
    histories = [part.result.history for part in parts]
    steps = max(map(len, histories), default=1)
    return replace(
        result,
        notes=_notes(parts),
        outcome=max((part.result.outcome for part in parts), key=_OUTCOMES.index, default=Outcome.OPTIMAL),
        history=tuple(
            left + float(weights @ [values[min(t, len(values) - 1)] for values in histories]) for t in range(steps)
        ),
        upper_bound=None if bound is None else max(bound, result.value),
        alternative=total(others) if any(part.result.alternative is not None for part in parts) else None,
        level=_gather([part.result.level for part in parts], groups, grouping.n_groups),
        threshold=_gather([part.result.threshold for part in parts], groups, grouping.n_groups),
    )


def _count(oracle: Oracle, objective: Objective, parts: Sequence[Part]) -> SolverResult:
    """Count the rules of all parts together, with the kernel that predicts."""
    n_rules = max((len(part.result.losses) for part in parts), default=1)
    losses = [_loss(objective, parts, r) for r in range(n_rules)]
    first = count_rule(oracle, objective, losses[0], status="", outcome=Outcome.OPTIMAL)
    if n_rules == 1:
        return first
    shares = np.eye(1, n_rules).repeat(len(objective.n_classes), axis=0)
    for part in parts:
        shares[part.outputs, : len(part.result.losses)] = part.result.shares
    C = mixed_confusion(oracle, losses, shares)
    value = objective.value(C)
    seed = next(part.result.seed for part in parts if len(part.result.losses) > 1)
    return replace(first, losses=tuple(losses), shares=shares, seed=seed, value=value, confusion=C)


def _loss(objective: Objective, parts: Sequence[Part], r: int) -> Loss:
    """Return the losses of the r-th rule of every output, of which some have fewer; of one structure for all."""
    losses = [part.result.losses[r] if r < len(part.result.losses) else part.result.losses[0] for part in parts]
    argmax = Loss.argmax(objective.width)
    if not all(loss.is_diagonal for loss in losses):
        argmax = Loss(full=argmax.tensor())
        losses = [loss if not loss.is_diagonal else Loss(full=loss.tensor()) for loss in losses]

    def place(base: FloatArray, *arrays: FloatArray) -> FloatArray:
        out = base.repeat(len(objective.n_classes), axis=0)
        for part, array in zip(parts, arrays, strict=True):
            out[part.outputs] = 0.0  # of classes that none of its outputs has
            out[np.ix_(part.outputs, *map(np.arange, array.shape[1:]))] = array
        return out

    return argmax.map(place, *losses)


def _gather(values: Sequence[FloatArray | None], groups: Sequence[IntArray], n_groups: int) -> FloatArray | None:
    """Return what the groups of the parts have, (G,), NaN for those without; None if no part has any."""
    if all(numbers is None for numbers in values):
        return None
    out = np.full(n_groups, np.nan)
    for numbers, where in zip(values, groups, strict=True):
        if numbers is not None:
            out[where] = numbers
    return out


def _notes(parts: Sequence[Part]) -> tuple[Note, ...]:
    """Return what happened to which outputs; without their names if the same happened to all."""
    titles: dict[tuple[Note, ...], list[str]] = {}
    for part in parts:
        titles.setdefault(part.result.notes, []).append(part.title)
    if len(titles) <= 1:
        return next(iter(titles), ())
    return tuple(
        Note(NoteKind.OUTCOME, f"{', '.join(names)}: {joined_text(notes).marked}") for notes, names in titles.items()
    )
