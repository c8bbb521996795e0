"""Rules as the parameter `thresholds` of classifiers of Spark ML, which predict the largest ``p_j / t_j``.

Spark compares from the first class to the last, and a class must exceed those before it. Must not know Spark.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, argument
from .forms import FloatArray, Threshold, form_of
from .writer import RuleWriter

__all__ = ["SparkThresholds"]

_REMEDY = "use metricwise.export.to_sql(rule, dialect='spark') on columns of the probabilities"


class SparkThresholds(RuleWriter[list[float]]):
    """Thresholds (K,) of a rule that weights of its classes describe; all others are refused with the reason."""

    target = "a threshold for each class"

    def weighted(self, rule: Any) -> list[float]:
        """Return the thresholds of a rule of one loss."""
        if rule.multioutput:
            raise _refusal("the rule has several outputs, and a classifier of Spark has one")
        if rule.schema.input.is_logits:
            raise _refusal(
                f"the rule takes {rule.schema.input.plural}, and thresholds divide probabilities",
                "optimise the rule on Spark's column of probabilities",
            )
        if rule.abstain_label is not None:
            raise _refusal("the rule may abstain")
        if rule.width == 2:
            return _of_threshold(form_of(rule, 0))
        return _of_weights(rule)

    def mixture(self, rule: Any) -> list[float]:
        """Refuse a rule that draws decisions."""
        raise _refusal("the rule draws one of several rules", f"fit with {argument('randomized', False)}")

    def grouped(self, rule: Any) -> list[float]:
        """Refuse a rule that sees groups or segments."""
        raise _refusal(f"the rule has other thresholds in each {rule.known.noun}")

    def cut_points(self, rule: Any) -> list[float]:
        """Refuse a rule on one score."""
        raise _refusal(
            f"the rule compares {rule.schema.input.plural} with cut points, and thresholds divide probabilities"
        )

    def other(self, rule: Any, reason: str = "", remedy: str = "") -> list[float]:
        """Refuse a rule of another kind."""
        raise _refusal(reason or f"a {type(rule).__name__} does not weight classes", remedy or "use rule.predict")


def _refusal(reason: str, remedy: str = _REMEDY) -> InvalidParameter:
    return InvalidParameter("rule", problem=f"thresholds of Spark cannot express this rule: {reason}", remedy=remedy)


def _of_threshold(form: Any) -> list[float]:
    """Return the thresholds of two classes: ``p_1 / t > p_0 / (1 - t)`` where ``p_1 > t``."""
    threshold = form.value if isinstance(form, Threshold) else np.nan
    if np.isnan(threshold):
        raise _refusal("it predicts the second class below a probability")
    if threshold == -np.inf:
        raise _refusal("it always predicts the second class, and Spark predicts no class of probability 0")
    if threshold >= 1:  # never the second class, not even where the first has probability 0
        return [1.0, np.inf]
    return [1.0 - threshold, threshold]


def _of_weights(rule: Any) -> list[float]:
    """Return the largest weight divided by that of each class, with the calibration; infinity for 0."""
    if rule.class_weight is None:
        raise _refusal("its loss is a full table, which no weights of the classes replace")
    weights = rule.class_weight
    if (rule.bonus != 0).any():
        raise _refusal("it adds an offset to the weighted probabilities")
    if (weights < 0).any():
        raise _refusal("it predicts a class because its probability is low")
    if rule.link is not None:
        weights = _calibrated_weights(rule, weights)
    if not weights.any():  # always the first class
        weights = np.eye(len(weights))[0]
    with np.errstate(divide="ignore"):
        return [float(ratio) for ratio in weights.max() / np.abs(weights)]  # -0.0 is 0


def _calibrated_weights(rule: Any, weights: FloatArray) -> FloatArray:
    """Return weights of the probabilities before the calibration, which decide as those after it do.

    The largest ``w_j * eta_j ** t * exp(c_j)`` is that of ``(w_j * exp(c_j)) ** (1 / t) * eta_j``.
    """
    with np.errstate(divide="ignore"):
        logarithms = (np.log(np.abs(weights)) + rule.link.bias[0]) / rule.link.temperature[0]
    # A probability below the floor is raised to it, and the largest is 1/K at least.
    if logarithms.max() + np.log(rule.link.floor * len(weights)) >= logarithms.min():
        raise _refusal("its weights differ so much that the smallest probability of its calibration decides")
    return np.asarray(np.exp(logarithms - logarithms.max()))
