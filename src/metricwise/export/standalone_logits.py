"""Functions that `to_python` copies for rules on logits, log-probabilities and scores; see `standalone` for the others.

Must import nothing but `math` and `bisect`; every function is copied as it is.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from .standalone import scores, total_of


def read_numbers(rule, row, classes, kind):
    """Return the checked numbers of all classes, or one that stands for all; 1e200 stands for infinity."""
    alone, each = "cuts" in rule and kind != "log_proba", "cuts" not in rule or len(classes) == 2
    if alone and not hasattr(row, "__len__"):
        numbers = [float(row)]
    elif each and hasattr(row, "__len__") and len(row) == len(classes):
        numbers = [float(z) for z in row]
    else:
        shape = "one number for each of the classes" if each else "one number for all of the classes"
        raise ValueError(f"there must be {shape} {classes!r}, got {row!r}.")
    if any(math.isnan(z) for z in numbers):
        raise ValueError(f"the numbers of {classes!r} must not be NaN, got {numbers!r}.")
    if len(numbers) > 1 and (max(numbers) == -math.inf or numbers.count(math.inf) > 1):
        raise ValueError(f"one of {classes!r} at most must be inf, and one above -inf, got {numbers!r}.")
    if kind == "log_proba":
        total = math.fsum(math.exp(min(z, 1.0)) for z in numbers)
        if abs(total - 1.0) > min(0.005 * len(numbers) + 1e-6, 0.05):
            raise ValueError(f"the numbers of {classes!r} must be logarithms of a sum of 1, got {numbers!r}.")
    return [min(max(z, -1e200), 1e200) for z in numbers]


def decision_by_cuts(rule, row, classes, kind):
    """Return the decision by the number of cuts strictly below the number of a row, or the difference of its two."""
    numbers = read_numbers(rule, row, classes, kind)
    z = numbers[0] if len(numbers) == 1 else numbers[1] - numbers[0]
    return rule["codes"][bisect_left(rule["cuts"], z)]


def softmax(rule, numbers):
    """Return softmax(temperature * numbers + bias)."""
    logits = [rule["temperature"] * z + c for z, c in zip(numbers, rule["bias"])]
    highest = max(logits)
    powers = [math.exp(logit - highest) for logit in logits]
    scale = 1.0 / total_of(powers)
    return [power * scale for power in powers]


def decision_by_softmax(rule, row, classes, kind):
    """Return the position of the first decision with the lowest expected loss."""
    if "cuts" in rule:
        return decision_by_cuts(rule, row, classes, kind)
    eta = softmax(rule, read_numbers(rule, row, classes, kind))
    losses = scores(rule, eta, total_of(eta))
    return losses.index(min(losses))
