"""The result of a solver: losses, shares, their confusion, and what is proved; the final count of a rule.

Must not know algorithms, nor rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..core.losses import Loss
from ..core.notes import Note, NoteKind, joined_text, note_list
from ..core.schema import Schema
from ..metrics.objective import Objective
from ..oracles.base import Oracle
from ..rules.calibration import TemperatureScaling
from ..rules.mixture import MixtureRule
from ..rules.weighted import WeightedRule, anonymous_rule, rule_of_schema

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class Outcome(Enum):
    """Kind of a solution; `Solution.notes` explain it in plain sentences.

    See Also
    --------
    metricwise.Solution : Has an outcome.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1",
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> solution.outcome is mw.solvers.Outcome.OPTIMAL
    True
    """

    OPTIMAL = "optimal"
    """Optimal by the guarantee of the solver, up to its tolerance."""
    LOCAL = "local"
    """A local optimum: nothing that was tried is better, but nothing is proved."""
    NOT_CONVERGED = "not converged"
    """The best solution when the maximum number of steps was reached."""
    ARGMAX = "argmax"
    """Argmax, because no candidate is expected to be better on new data."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """What the solver maximised, how far the rule may be from the best, and where the search ended.

    Parameters
    ----------
    optimized_value : float
        What the solver maximised, as it counted it: with labels, probabilities or both, and by a surrogate if the
        metric has one.
    upper_bound : float or None
        Upper bound on `optimized_value`; None if nothing is proved.
    alternative : float or None
        The optimised value of the other kind of rule: of the best mixture found if a single rule is returned, of the
        best single rule if a mixture is returned. None if the solver did not compute it.
    level : ndarray of shape (G,) or None
        For ratios ``<A, C> / <B, C>``, the g of the loss ``g B - A`` of each block of outputs that share a confusion;
        NaN for outputs whose metric is not a ratio.
    threshold : ndarray of shape (G,) or None
        For the sweep, the threshold of each block on the probabilities that the solver saw, which are recalibrated
        ones if there is a link; NaN for outputs without one.

    See Also
    --------
    metricwise.Solution : Has a certificate.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1",
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> solution.certificate.upper_bound, solution.certificate.gap
    (1.0, 0.0)
    """

    optimized_value: float
    upper_bound: float | None = None
    alternative: float | None = None
    level: FloatArray | None = None
    threshold: FloatArray | None = None

    @property
    def gap(self) -> float | None:
        """Bound on the distance between the optimised value and the optimum; None if no bound is known."""
        return None if self.upper_bound is None else max(0.0, self.upper_bound - self.optimized_value)


@dataclass(frozen=True, eq=False)
class SolverResult:
    """Result of a solver: a loss, or several with shares, and what was counted for them.

    Parameters
    ----------
    losses : tuple of R Loss
        Losses of the outputs; several are mixed.
    shares : ndarray of shape (R,) or (M, R)
        Share of the rows that is decided by each loss.
    n_classes : ndarray of shape (M,)
        Number of decisions of each output.
    confusion : ndarray of shape (M, K, K)
        The confusion tensor, as the oracle counts it.
    value : float
        The objective at that confusion.
    baseline : float
        The objective of argmax, counted in the same way.
    outcome : Outcome
        How the search ended.
    notes : tuple of Note
        The same in sentences, with remedies.
    history : tuple of float
        The value after each step.
    upper_bound, alternative, level, threshold
        As in :class:`Certificate`.
    seed : int
        Seed of the draws of a mixture.
    n_passes : int
        Passes over all rows.

    See Also
    --------
    metricwise.Solution : The result of :func:`metricwise.optimize`.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.solvers.result import SolverResult
    >>> from metricwise.core.losses import Loss
    >>> result = SolverResult((Loss.argmax(2),), np.ones(1), np.array([2]), np.eye(2)[None] / 2, 1.0, 1.0,
    ...     mw.solvers.Outcome.OPTIMAL)
    >>> result.rule.threshold, result.gap
    (0.5, None)
    """

    losses: tuple[Loss, ...]
    shares: FloatArray
    n_classes: IntArray
    confusion: FloatArray
    value: float
    baseline: float
    outcome: Outcome
    notes: tuple[Note, ...] = ()
    history: tuple[float, ...] = ()
    upper_bound: float | None = None
    alternative: float | None = None
    level: FloatArray | None = None
    threshold: FloatArray | None = None
    seed: int = 0
    n_passes: int = 0

    @cached_property
    def rule(self) -> WeightedRule | MixtureRule:
        """The rule over codes of classes, without a link."""
        rules = tuple(anonymous_rule(loss, self.n_classes) for loss in self.losses)
        return rules[0] if len(rules) == 1 else MixtureRule(rules, self.shares, seed=self.seed)

    def named(self, schema: Schema, link: TemperatureScaling | None) -> WeightedRule | MixtureRule:
        """Return the rule in the user's labels, behind a link."""
        return rule_of_schema(self.losses[0], schema, link) if len(self.losses) == 1 else self.rule.named(schema, link)

    @property
    def certificate(self) -> Certificate:
        """What is proved about the value."""
        return Certificate(self.value, self.upper_bound, self.alternative, self.level, self.threshold)

    @property
    def gap(self) -> float | None:
        """Bound on the distance between the value and the optimum; None if no bound is known."""
        return self.certificate.gap

    @property
    def status(self) -> str:
        """The notes as one paragraph."""
        return joined_text(self.notes)


def finish(
    oracle: Oracle,
    objective: Objective,
    loss: Loss,
    *,
    status: str,
    outcome: Outcome,
    history: Sequence[float] = (),
    upper_bound: float | None = None,
    level: FloatArray | None = None,
) -> SolverResult:
    """Count the rule of the losses of groups beside argmax, and pack the result."""
    result = count_rule(oracle, objective, objective.spread(loss), status=status, outcome=outcome)
    return replace(
        result,
        history=(*history, result.value),
        upper_bound=None if upper_bound is None else max(upper_bound, result.value),
        level=level,
    )


def count_rule(oracle: Oracle, objective: Objective, loss: Loss, *, status: str, outcome: Outcome) -> SolverResult:
    """Count the rule of the losses of outputs with the kernel that predicts, beside argmax."""
    counted = oracle.confusions([loss, Loss.argmax(objective.width)])
    return build_result(oracle, objective, loss, counted, status=status, outcome=outcome)


def build_result(
    oracle: Oracle, objective: Objective, loss: Loss, counted: FloatArray, *, status: str, outcome: Outcome
) -> SolverResult:
    """Pack the result of the losses of outputs, of which the confusion and that of argmax have been counted."""
    value = objective.value(counted[0])
    return SolverResult(
        losses=(loss,),
        shares=np.ones(1),
        n_classes=oracle.n_classes,
        confusion=counted[0],
        value=value,
        baseline=objective.value(counted[1]),
        outcome=outcome,
        notes=note_list(NoteKind.OUTCOME, status),
        history=(value,),
    )
