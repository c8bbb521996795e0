"""Functions that `to_python` copies: decisions about one row, on lists of floats.

Must import nothing but `math`; every function is copied as it is.
"""

from __future__ import annotations

import math


def total_of(numbers):
    """Return the sum in order, because sum() rounds differently in newer Python versions."""
    total = numbers[0]
    for number in numbers[1:]:
        total += number
    return total


def read(probabilities, classes, normalize):
    """Return the checked probabilities of all classes, and whether only that of the second class was given."""
    if len(classes) == 2 and not normalize and not hasattr(probabilities, "__len__"):
        p = float(probabilities)
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"the probability of {classes[1]!r} must be between 0 and 1, got {p!r}.")
        return [1.0 - p, p], True
    if not hasattr(probabilities, "__len__") or len(probabilities) != len(classes):
        raise ValueError(f"there must be one number for each of the classes {classes!r}, got {probabilities!r}.")
    eta = [float(p) for p in probabilities]
    total = total_of(eta)
    if normalize:
        if not (min(eta) >= 0.0 and 0.0 < total < math.inf):
            raise ValueError(f"the scores of {classes!r} must be finite, non-negative and not all zero, got {eta!r}.")
        return [score / total for score in eta], False
    if not (min(eta) >= 0.0 and abs(total - 1.0) <= min(0.005 * len(eta) + 1e-6, 0.05)):
        raise ValueError(f"the probabilities of {classes!r} must be non-negative and sum to 1, got {eta!r}.")
    return eta, False


def recalibrated(rule, eta, positive):
    """Return softmax(temperature * log(max(eta, floor)) + bias)."""
    logits = [rule["temperature"] * math.log(max(p, rule["floor"])) + c for p, c in zip(eta, rule["bias"])]
    highest = max(logits)
    powers = [math.exp(logit - highest) for logit in logits]
    scale = 1.0 / total_of(powers)
    eta = [power * scale for power in powers]
    return [1.0 - eta[1], eta[1]] if positive else eta


def scores(rule, eta, total):
    """Return the expected loss of each decision, in one order of sums."""
    if "full" in rule:
        sums = [eta[0] * loss for loss in rule["full"][0]]
        for p, losses in zip(eta[1:], rule["full"][1:]):
            sums = [score + p * loss for score, loss in zip(sums, losses)]
        return sums
    known = eta + [0.0] * (len(rule["diagonal"]) - len(eta))  # a decision that is no class has probability 0
    return [d * p + v * total for d, p, v in zip(rule["diagonal"], known, rule["offset"])]


def decision(rule, probabilities, classes, normalize):
    """Return the position of the first decision with the lowest expected loss."""
    eta, positive = read(probabilities, classes, normalize)
    if "temperature" in rule:
        eta = recalibrated(rule, eta, positive)
    losses = scores(rule, eta, 1.0 if positive else total_of(eta))
    return losses.index(min(losses))


def mixed(state):
    """Return 64 pseudo-random bits, from the mixer of SplitMix64."""
    state &= 0xFFFFFFFFFFFFFFFF
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return state ^ (state >> 31)


def drawn(seed, key, output, edges):
    """Return which rule is drawn for a row and an output."""
    if isinstance(key, bool) or not hasattr(key, "__index__") or key.__index__() < 0:
        raise ValueError(f"key must be an integer from 0, such as the position of the row, got {key!r}.")
    step = 0x9E3779B97F4A7C15
    bits = mixed(mixed(mixed(seed + step) + key.__index__() * step) + (output + 1) * step)
    number = (bits >> 11) * 2.0**-53
    return len([edge for edge in edges if number >= edge])


def group_or_other(group, groups):
    """Return the group as in the tables, None if it is unknown; raise an error if only its type differs."""
    name = tuple(group) if isinstance(group, (list, tuple)) else (group,)
    if name in groups:
        return name
    for known in groups:
        if tuple(map(str, known)) == tuple(map(str, name)):
            raise ValueError(f"group must have the type that the tables have, {known!r}, got {group!r}.")
    return None


def known_group(group, groups):
    """Return the group as in the tables; raise an error if there is no rule for it."""
    name = tuple(group) if isinstance(group, (list, tuple)) else (group,)
    if name not in groups:
        raise ValueError(f"group must be one of {list(groups)!r}, got {group!r}.")
    return name
