"""Numbers and signs of metrics as people read them, the same in displays, cards, pages and the command line.

Must not know views or rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..inference.results import Estimate

__all__ = ["display_value", "improvement", "metric_losses", "negated", "number", "percent", "shown_metric", "weight"]


def number(value: float | None, signed: bool = False) -> str:
    """Return a number with three decimals, fewer if it is large.

    Examples
    --------
    >>> from metricwise.inspection.text import number
    >>> number(0.45671), number(-0.02, signed=True), number(12345.6), number(1851 / 2000), number(None)
    ('0.457', '−0.020', '12,346', '0.926', '–')
    """
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "not known"
    digits = 3 if abs(value) < 10 else 1 if abs(value) < 1000 else 0
    # Halves are rounded up, also those that are not exact in binary: page.js does the same.
    rounded = math.floor(abs(value) * 10**digits + 0.5 + 1e-6) / 10**digits
    text = f"{math.copysign(rounded, value):{'+' if signed else ''},.{digits}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("+-")
    return text.replace("-", "−")


def weight(value: float, signed: bool = False) -> str:
    """Return a weight of rows: a whole number if it is one or large."""
    whole = abs(value - round(value)) < 1e-6 or abs(value) >= 100
    sign = "+" if signed and abs(value) > 1e-9 else ""
    return (f"{round(value):{sign},d}" if whole else f"{value:{sign},.1f}").replace("-", "−")


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{100 * share:.4g} %"


def metric_losses(rule: Any) -> Mapping[str, str]:
    """Return the name of the loss of every metric of a rule that is minus a loss or a cost."""
    losses = rule.metadata.losses
    return losses if isinstance(losses, Mapping) else {}


def shown_metric(name: str, losses: Mapping[str, str]) -> str:
    """Return the name of a metric whose values and gains are shown as they are maximised."""
    return f"minus the {losses[name]}" if name in losses else name


def negated(estimate: Estimate) -> Estimate:
    """Return minus an estimate, with no negative zeros."""
    return Estimate(0.0 - estimate.estimate, 0.0 - estimate.high, 0.0 - estimate.low)


def display_value(name: str, value: Any, losses: Mapping[str, str]) -> tuple[str, Any]:
    """Return the displayed name and value (a number, array or Estimate) of a metric: of a loss rather than minus it.

    Examples
    --------
    >>> from metricwise.inspection.text import display_value
    >>> display_value("cost", -0.5, {"cost": "mean cost"}), display_value("f1", 0.5, {})
    (('mean cost', 0.5), ('f1', 0.5))
    """
    if name not in losses:
        return name, value
    if isinstance(value, Estimate):
        return losses[name], negated(value)
    return losses[name], None if value is None else 0.0 - value  # never -0


def improvement(name: str, gain: float, value: float | None = None, about: str = "", *, loss: bool = False) -> str:
    """Return what a rule does for a metric, or for a loss, whose value is passed as minus itself.

    Examples
    --------
    >>> from metricwise.inspection.text import improvement
    >>> improvement("f1", 0.1, 0.8), improvement("mean cost", 0.7, -0.5, loss=True)
    ('adds 0.100 to f1', 'lowers the mean cost from 1.200 to 0.500')
    """
    if not loss:
        return f"adds {about}{number(gain)} to {name}"
    if value is None:
        return f"lowers the {name} by {about}{number(gain)}"
    return f"lowers the {name} from {about}{number(gain - value)} to {about}{number(0.0 - value)}"
