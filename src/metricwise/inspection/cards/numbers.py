"""Numbers and sentences that cards and reports have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...inference import ConstraintResult, Estimate
from ...solvers import Outcome
from ..view import View

__all__ = [
    "advice",
    "as_read",
    "improvement",
    "interval",
    "is_loss",
    "losses_known",
    "metric_name",
    "number",
    "promise_words",
    "turned",
]


def number(value: float | None, signed: bool = False) -> str:
    """Return a number as people read it.

    Examples
    --------
    >>> from metricwise.inspection.cards.numbers import number
    >>> number(0.45671), number(-0.02, signed=True), number(12345.6), number(1851 / 2000), number(None)
    ('0.457', '−0.020', '12,346', '0.926', '–')
    """
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "not known"
    digits = 3 if abs(value) < 10 else 1 if abs(value) < 1000 else 0
    # Halves go up, also those that are not exact in binary: report.js computes the same.
    rounded = math.floor(abs(value) * 10**digits + 0.5 + 1e-6) / 10**digits
    text = f"{math.copysign(rounded, value):{'+' if signed else ''},.{digits}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("+-")
    return text.replace("-", "−")


def percent(share: float) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> from metricwise.inspection.cards.numbers import percent
    >>> percent(0.95), percent(0.995)
    ('95 %', '99.5 %')
    """
    return f"{100 * share:.4g} %"


def interval(estimate: Estimate, signed: bool = False) -> str:
    """Return an estimate with its interval."""
    low, high = number(estimate.low, signed), number(estimate.high, signed)
    return f"{number(estimate.estimate, signed)} [{low}, {high}]"


def losses_known(rule: Any) -> Mapping[str, str]:
    """Return which metrics a rule knows to be minus a loss or a cost, by name, and what people read instead."""
    losses = rule.metadata.losses
    return losses if isinstance(losses, Mapping) else {}


def is_loss(solution: View) -> bool:
    """Whether the metric of a solution is minus a loss or a cost, which the rule lowers."""
    return solution.rule.metadata.metric in losses_known(solution.rule)


def turned(estimate: Estimate) -> Estimate:
    """Return minus an estimate; its ends change places, and 0 has no sign."""
    return Estimate(0.0 - estimate.estimate, 0.0 - estimate.high, 0.0 - estimate.low)


def as_read(name: str, value: Any, losses: Mapping[str, str]) -> tuple[str, Any]:
    """Return the name and a value, or an array of values, of a metric as people read them.

    A loss or a cost is maximised as minus itself; people read the loss.

    Parameters
    ----------
    name : str
    value : float, array or Estimate
    losses : mapping of str to str
        Which metrics are minus a loss, by name, and what to call that.

    Examples
    --------
    >>> from metricwise.inspection.cards.numbers import as_read
    >>> as_read("cost", -0.5, {"cost": "mean cost"}), as_read("f1", 0.5, {})
    (('mean cost', 0.5), ('f1', 0.5))
    """
    if name not in losses:
        return name, value
    if isinstance(value, Estimate):
        return losses[name], turned(value)
    return losses[name], None if value is None else 0.0 - value  # never -0


def improvement(name: str, gain: float, value: float | None = None, about: str = "", *, loss: bool = False) -> str:
    """Say what a rule does for a metric, or for a loss, whose value is given as minus itself.

    Examples
    --------
    >>> from metricwise.inspection.cards.numbers import improvement
    >>> improvement("f1", 0.1, 0.8), improvement("mean cost", 0.7, -0.5, loss=True)
    ('adds 0.100 to f1', 'lowers the mean cost from 1.200 to 0.500')
    """
    if not loss:
        return f"adds {about}{number(gain)} to {name}"
    if value is None:
        return f"lowers the {name} by {about}{number(gain)}"
    return f"lowers the {name} from {about}{number(gain - value)} to {about}{number(0.0 - value)}"


def promise_words(promise: ConstraintResult) -> tuple[bool, str]:
    """Return whether a constraint is kept on the given rows, and what may be said of new rows."""
    kept = promise.low - 1e-9 <= promise.value <= promise.high + 1e-9
    if promise.confidence is not None:
        return kept, f"holds on new rows with {percent(promise.confidence)} confidence"
    return kept, "no promise for new rows"


def advice(solution: View) -> tuple[str, str]:
    """Say in a sentence whether the rule is worth using.

    Parameters
    ----------
    solution : Solution

    Returns
    -------
    kind : {"yes", "maybe", "no"}
    sentence : str

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.inspection.cards.numbers import advice
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> print(advice(mw.optimize(p, y, "f1"))[1])
    Use the rule: on new rows it adds about 0.142 to f1 (at least 0.094 by the 95 % interval).
    """
    name, loss = metric_name(solution), is_loss(solution)
    gain = solution.gain
    if solution.constraints:
        return _advice_within(solution, name)
    if solution.outcome is Outcome.ARGMAX:
        return "no", "Keep plain argmax: no rule that was tried is expected to do better on new rows."
    if gain is not None:
        new = solution.value_on_new_rows
        adds = improvement(name, gain.estimate, None if new is None else new.estimate, "about ", loss=loss)
        about = f"on new rows it {adds}"
        if gain.low > 0:
            least = f"{'by ' if loss else ''}at least {number(gain.low)}"
            return "yes", f"Use the rule: {about} ({least} by the 95 % interval)."
        if gain.estimate > 0:
            return (
                "maybe",
                f"The rule is likely to help: {about}, but the 95 % interval includes zero: the gain may be none.",
            )
        change = number(0.0 - gain.estimate if loss else gain.estimate, True)
        return "no", f"Keep plain argmax: on new rows the rule changes {name} by about {change}."
    difference = solution.value - solution.baseline
    if solution.counted == "expected":
        said = "if the probabilities are right" if difference > 0 else "as far as the probabilities can tell"
        verb = improvement(name, difference, solution.value, loss=loss) if difference > 0 else "gains nothing"
        return ("maybe" if difference > 0 else "no"), f"The rule {verb}, {said}; pass labels to check."
    said = f"On the given rows, the rule {improvement(name, difference, solution.value, loss=loss)}"
    return "maybe", f"{said}; on new rows it will gain less, by an amount that has not been estimated."


def _advice_within(solution: View, name: str) -> tuple[str, str]:
    broken = [one.name for one in solution.constraints if not promise_words(one)[0]]
    if broken:
        return "no", f"Do not rely on the rule: it violates {', '.join(broken)} on the given rows."
    n, new = len(solution.constraints), solution.value_on_new_rows
    what = "the constraint" if n == 1 else "both constraints" if n == 2 else f"all {n} constraints"
    sign = -1.0 if is_loss(solution) else 1.0
    value = (
        f"{name} is {number(sign * solution.value + 0.0)}"
        if new is None
        else f"{name} is about {number(sign * new.estimate + 0.0)} on new rows"
    )
    sure = [one.confidence for one in solution.constraints if one.confidence is not None]
    if len(sure) == n:
        holds = f"this holds on new rows with {percent(min(sure))} confidence"
        return "yes", f"Use the rule to satisfy {what}: {holds}, and {value}."
    return "maybe", f"The rule satisfies {what} on the given rows, but not necessarily on others; {value}."


def metric_name(solution: View) -> str:
    """Return what the metric is called, or the loss that it is minus of."""
    name = solution.rule.metadata.metric
    return as_read(name, None, losses_known(solution.rule))[0] if isinstance(name, str) and name else "the metric"
