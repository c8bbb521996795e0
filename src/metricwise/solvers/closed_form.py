"""Linear metrics: the best rule in closed form, without a pass over rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ..core.losses import Loss
from ..metrics.objective import Objective
from ..oracles.base import Oracle
from .base import BaseSolver, Needs
from .ratios import ratio_of
from .result import Outcome, SolverResult, finish


@dataclass(frozen=True)
class ClosedForm(BaseSolver):
    """Maximise ``<A, C>`` (or an increasing transform of it) by the loss ``L = -A``.

    Guarantee: no rule, randomised or not, has a larger expected value under the given probabilities. Nothing is fitted
    except the class priors if the metric needs them, so it does not overfit. Not for metrics with a denominator.

    See Also
    --------
    Path : For ratios.
    FrankWolfe : For concave metrics.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([[0.4, 0.6], [0.9, 0.1]], [0, 1], mw.metrics.Cost([[0, 1], [4, 0]]),
    ...                        strategy=mw.Strategy(solver="closed_form", confusion="labels", recalibrate=False))
    >>> solution.rule.threshold
    0.2
    """

    needs: ClassVar[Needs] = Needs(form="linear")

    def search(self, oracle: Oracle, objective: Objective) -> SolverResult:
        """Return the rule of the loss -A."""
        result = finish(
            oracle,
            objective,
            Loss.from_tensor(-ratio_of(objective).A),
            status="Optimal: the metric is linear in the confusion matrix, so its negative is the best loss.",
            outcome=Outcome.OPTIMAL,
        )
        return replace(result, upper_bound=result.value) if oracle.certified else result
