"""Numbers and sentences that cards and reports have in common."""

from __future__ import annotations

import math

from ..solvers import Estimate, Outcome, Promise, Solution

__all__ = ["advice", "interval", "number", "promise_words"]


def number(value: float | None, signed: bool = False) -> str:
    """Return a number as people read it.

    Examples
    --------
    >>> from metricwise.cards.numbers import number
    >>> number(0.45671), number(-0.02, signed=True), number(12345.6), number(None)
    ('0.457', '−0.020', '12,346', '–')
    """
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "not known"
    digits = 3 if abs(value) < 10 else 1 if abs(value) < 1000 else 0
    text = f"{value:{'+' if signed else ''},.{digits}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("+-")
    return text.replace("-", "−")


def interval(estimate: Estimate, signed: bool = False) -> str:
    """Return an estimate with its interval."""
    low, high = number(estimate.low, signed), number(estimate.high, signed)
    return f"{number(estimate.estimate, signed)} [{low}, {high}]"


def promise_words(promise: Promise) -> tuple[bool, str]:
    """Return whether a constraint is kept on the given rows, and what may be said of new rows."""
    kept = promise.low - 1e-9 <= promise.value <= promise.high + 1e-9
    if promise.confidence is not None:
        return kept, f"holds on new rows with {promise.confidence:.0%} confidence"
    return kept, "no promise for new rows"


def advice(solution: Solution) -> tuple[str, str]:
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
    >>> from metricwise.cards.numbers import advice
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> print(advice(mw.optimize(p, y, "f1"))[1])
    Use the rule: on new rows it adds about 0.141 to f1 (at least 0.092 by the 95 % interval).
    """
    name = metric_name(solution)
    gain = solution.gain
    if solution.constraints:
        return _advice_within(solution, name)
    if solution.outcome is Outcome.ARGMAX:
        return "no", "Keep plain argmax: no rule that was tried is expected to do better on new rows."
    if gain is not None:
        about = f"on new rows it adds about {number(gain.estimate)} to {name}"
        if gain.low > 0:
            return "yes", f"Use the rule: {about} (at least {number(gain.low)} by the 95 % interval)."
        if gain.estimate > 0:
            return "maybe", f"The rule is likely to help: {about}, but the 95 % interval includes no gain at all."
        return "no", f"Keep plain argmax: on new rows the rule changes {name} by about {number(gain.estimate, True)}."
    difference = solution.value - solution.baseline
    if solution.counted == "expected":
        said = "if the probabilities are right" if difference > 0 else "as far as the probabilities can tell"
        verb = f"adds {number(difference)} to {name}" if difference > 0 else "adds nothing"
        return ("maybe" if difference > 0 else "no"), f"The rule {verb}, {said}; pass labels to check."
    said = f"On the given rows, the rule adds {number(difference)} to {name}"
    return "maybe", f"{said}; on new rows it will add less, by an amount that has not been estimated."


def _advice_within(solution: Solution, name: str) -> tuple[str, str]:
    broken = [one.name for one in solution.constraints if not promise_words(one)[0]]
    if broken:
        return "no", f"Do not rely on the rule: it violates {', '.join(broken)} on the given rows."
    n, new = len(solution.constraints), solution.value_on_new_rows
    what = "the constraint" if n == 1 else "both constraints" if n == 2 else f"all {n} constraints"
    value = (
        f"{name} is {number(solution.value)}" if new is None else f"{name} is about {number(new.estimate)} on new rows"
    )
    sure = [one.confidence for one in solution.constraints if one.confidence is not None]
    if len(sure) == n:
        return (
            "yes",
            f"Use the rule to satisfy {what}: this holds on new rows with {min(sure):.0%} confidence, and {value}.",
        )
    return "maybe", f"The rule satisfies {what} on the given rows, but not necessarily on others; {value}."


def metric_name(solution: Solution) -> str:
    """Return what the metric is called."""
    name = solution.rule.facts.get("metric")
    if name == "cost":  # which is maximised, so that it is less than nothing
        return "minus the mean cost"
    return name if isinstance(name, str) and name else "the metric"
