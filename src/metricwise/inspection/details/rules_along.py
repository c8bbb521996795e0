"""Rules on the way from plain argmax to a given rule, and beyond it.

Owns the one-parameter families that curves are drawn along. Must not know rows or metrics.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...core.losses import Loss
from ...rules.calibration import TemperatureScaling
from ...rules.weighted import WeightedRule

__all__ = ["at_step", "link_at_step"]

FloatArray = NDArray[np.float64]


def at_step(rule: WeightedRule, step: float) -> WeightedRule:
    """Return the rule that has gone so far from argmax, at 0, to a rule, at 1; what is beyond is further that way.

    Class weights are multiplied: as many times at every step. Other losses go along a straight line, and so do the
    logarithms of the temperature and the biases of the link.

    Parameters
    ----------
    rule : WeightedRule
    step : float
        From 0.

    Returns
    -------
    WeightedRule

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.inspection.details.rules_along import at_step
    >>> rule = mw.WeightedRule.from_weights([1.0, 4.0, 9.0])
    >>> at_step(rule, 0.5).class_weight
    array([1., 2., 3.])
    >>> at_step(rule, 1) == rule
    True
    """
    if step == 1:
        return rule
    if step == 0:
        return replace(rule, loss=Loss.argmax(rule.schema.decision_width), link=None)
    return replace(rule, loss=_loss_at(rule.loss, step), link=link_at_step(rule.link, step))


def link_at_step(link: TemperatureScaling | None, step: float) -> TemperatureScaling | None:
    """Return the link that has gone so far from none to the one given."""
    return None if link is None else TemperatureScaling(link.temperature**step, link.bias * step, link.floor)


def _loss_at(loss: Loss, step: float) -> Loss:
    if loss.is_diagonal:
        diagonal, offset = loss.arrays
        if not offset.any() and (diagonal < 0).all():
            return Loss(diagonal=-((-diagonal) ** step), offset=offset)
    full = loss.tensor()
    # Losses have no scale, and no meaning in what all decisions of a row have in common.
    full = full - full.mean(axis=2, keepdims=True)
    k = full.shape[-1]
    plain = np.full((k, k), 1 / k) - np.eye(k)
    size = np.linalg.norm(full, axis=(1, 2), keepdims=True) / np.linalg.norm(plain)
    return Loss.from_tensor((1 - step) * size * plain + step * full)
