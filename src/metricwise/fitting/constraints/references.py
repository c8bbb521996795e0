"""Reference rules for bounds that are not convex: the best found by the bounded metric itself, without constraints.

A local search for the best rule within such bounds begins at a rule that keeps them. If the references do not, few
rules do. Must not know how constraints are satisfied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...core.losses import Loss
from ...goals.constraint import ConstraintSystem, PooledConstraint
from ...metrics.aim import AveragedMetric
from ...oracles.problem import FitStrategy, Problem
from ...rules.calibration import TemperatureScaling
from ..solving import Settings, solve

__all__ = ["Reference", "find_references", "spread_references"]

IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Reference:
    """The best rule found by the metric of a constraint.

    Parameters
    ----------
    loss : Loss
        Of the outputs, or one for all of them.
    outputs : ndarray of int
        Those that the constraint is about.
    """

    loss: Loss
    outputs: IntArray


def find_references(
    problem: Problem,
    recipe: FitStrategy,
    settings: Settings,
    link: TemperatureScaling | None,
    limits: ConstraintSystem,
) -> list[Reference]:
    """Maximise every metric that has a floor which is not convex, by a recipe and as constraints are counted."""
    recipes = [recipe]
    if problem.labelled and recipe.confusion != "labels":
        recipes.append(replace(recipe, confusion="labels"))
    single = replace(settings, randomized=False)
    references = []
    for limit in limits.constraints:
        if not isinstance(limit, PooledConstraint) or limit.convex or np.isinf(limit.constraint.low):
            continue
        outputs = np.flatnonzero(limit.share)
        some = problem if len(outputs) == len(limit.share) else problem.of_outputs(outputs)
        aim = AveragedMetric(limit.constraint.metric, "micro", np.ones(len(outputs)))
        some = replace(some, aim=aim, record={}, constraints=())
        own_link = None if link is None else link.of_outputs(outputs)
        references += [Reference(solve(some, by, single, own_link).losses[0], outputs) for by in recipes]
    return references


def spread_references(references: Sequence[Reference], block: IntArray, width: int) -> list[Loss]:
    """Return losses of blocks: every reference in all of them, and all references together, each in its own blocks.

    Parameters
    ----------
    references : sequence of Reference
    block : ndarray of shape (M,), int
        Block of each output.
    width : int
        Number of decisions.
    """
    n_blocks = int(block.max()) + 1
    if n_blocks == 1:
        return [reference.loss.map(lambda a: a[:1]) for reference in references]
    together = Loss.argmax(width).tensor()[np.zeros(n_blocks, dtype=np.intp)]
    alone = []
    for reference in references:
        tensor = reference.loss.tensor()
        alone.append(Loss(full=tensor[np.zeros(n_blocks, dtype=np.intp)]))
        together[block[reference.outputs]] = tensor
    return [*alone, Loss(full=together)] if alone else []
