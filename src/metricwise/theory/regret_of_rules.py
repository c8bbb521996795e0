"""Regret of a rule against the best rule for known probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.errors import InvalidParameter, InvalidType, entry_point
from ..data.classes import kept_order
from ..data.labels import make_rows
from ..data.sources.memory import MemorySource
from ..data.weights import read_output_weight, read_sample_weight
from ..fitting.solving import Settings, fit
from ..goals.for_outputs import resolve_for
from ..metrics.aim import AveragedMetric
from ..metrics.resolution import to_maximise
from ..oracles.problem import FitStrategy, Problem, mixed
from ..rules.base import Rule, RuleRows
from ._checks import MetricLike

__all__ = ["Regret", "regret"]


@dataclass(frozen=True, eq=False)
class Regret:
    """Regret of a rule with respect to the best one; ``float()`` returns the regret.

    Parameters
    ----------
    value : float
        The metric of the rule, under the true probabilities.
    best : float
        The metric of the best rule found with the true probabilities.
    upper_bound : float or None
        Upper bound over all rules, including randomised ones; None if no bound is known. It equals `best` if the solver
        is exact; otherwise the true regret is between `regret` and ``upper_bound - value``.
    best_rule : WeightedRule or MixtureRule
        The best rule, which takes the true probabilities.

    See Also
    --------
    regret : Computes the regret.

    Examples
    --------
    >>> import metricwise as mw
    >>> p = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6]]
    >>> found = mw.theory.regret(mw.WeightedRule.from_thresholds(0.5), p, p, "accuracy")
    >>> float(found)
    0.0
    """

    value: float
    best: float
    upper_bound: float | None
    best_rule: Rule

    @property
    def regret(self) -> float:
        """``best - value``."""
        return self.best - self.value

    def __float__(self) -> float:
        return self.regret

    def __repr__(self) -> str:
        return f"Regret(regret={self.regret:.6g}, value={self.value:.6g}, best={self.best:.6g})"


@entry_point("regret")
def regret(
    rule: Rule,
    proba: Any,
    eta: Any,
    metric: MetricLike,
    *,
    average: str | None = None,
    sample_weight: ArrayLike | None = None,
    output_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> Regret:
    """Compare a rule with the best one for known class probabilities.

    The rule decides by `proba`, which may be any estimate. Its confusion is the expected one under `eta`, the true
    probabilities: nothing is drawn, and for a randomised rule its exact distribution is used. The best rule is
    optimised with `eta`; for a concave metric it may be a mixture. This is the paper's psi-regret, with the given rows
    as the distribution of x.

    Parameters
    ----------
    rule : WeightedRule or MixtureRule
        The rule to compare.
    proba : array-like
        Probabilities by which the rule decides, in any shape that its `predict` takes.
    eta : array-like
        True class probabilities of the same rows, in any such shape.
    metric : str, Metric or callable
        The metric, as in :func:`metricwise.optimize`.
    average : {"micro", "macro", "instance"}, optional
        Average over outputs; "micro" unless the name of the metric fixes it or the outputs have different classes. The
        population value of "instance" is that of "micro".
    sample_weight : array-like of shape (N,), optional
        Sample weights.
    output_weight : array-like of shape (M,), optional
        Weights of the outputs in the average.
    pos_label : object, or list of M objects, optional
        Label of the positive class of a metric of one class, for all outputs or for each.

    Returns
    -------
    Regret

    See Also
    --------
    regret_bound : The paper's bound on the regret.

    Examples
    --------
    Argmax is a threshold of 0.5. The best F1 has a lower one, half the F1:

    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.core.losses import Loss
    >>> eta = np.linspace(0.0, 1.0, 1001) ** 3
    >>> argmax = mw.WeightedRule(Loss.argmax(2), classes=(np.array([0, 1]),))
    >>> found = mw.theory.regret(argmax, eta, eta, "f1")
    >>> found
    Regret(regret=0.0295837, value=0.661805, best=0.691389)
    >>> abs(found.best_rule.threshold - found.best / 2) < 0.01
    True
    """
    if not getattr(rule, "is_flat", False):
        raise InvalidType("rule", "be a WeightedRule or a MixtureRule", type(rule).__name__)
    estimate, truth = rule.read(proba), rule.read(eta)
    if estimate.n_rows != truth.n_rows:
        raise InvalidParameter("eta", f"have as many rows as proba, {estimate.n_rows}", truth.n_rows)
    resolved = to_maximise(
        resolve_for(
            metric,
            rule.classes,
            several=rule.multioutput,
            scales=kept_order(rule.metadata, rule.classes),
            average=average,
            pos_label=pos_label,
            outputs=rule.schema.output_names,
        )
    )
    weight = read_sample_weight(sample_weight, truth.n_rows)
    alpha = read_output_weight(output_weight, truth.n_outputs)
    aim = AveragedMetric(resolved.metric, resolved.average, alpha, resolved.support_weighted)
    problem = Problem(MemorySource(make_rows(truth, None, weight), replace(rule.schema, normalize=False)), aim)
    oracle = problem.oracle("expected")
    objective = problem.objective(oracle)
    rules, shares = rule.flatten()
    value = objective.value(
        mixed(np.stack([oracle.confusion_of(rule.decide(RuleRows(estimate))) for rule in rules]), shares)
    )
    # Only for concave metrics can a mixture be found that is sure to be best.
    recipe = FitStrategy(confusion="expected", recalibrate=False)
    fitted = fit(problem, recipe, Settings(randomized=objective.concave))
    bound = fitted.certificate.upper_bound
    if fitted.value < value:  # by rounding, or because the solver is no exact one
        return Regret(value, value, None if bound is None else max(bound, value), rule)
    return Regret(value, fitted.value, bound, fitted.rule)
