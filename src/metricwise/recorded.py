"""Values of the metrics that are recorded beside the one that is maximised.

Owns how a rule, or decisions, are counted for them: with the labels given, in expectation without. Must not know
solvers or user input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .metrics.resolution import Resolved
from .problem import Problem, argmax
from .rules import MixtureRule, WeightedRule
from .solvers import Recorded

__all__ = ["cross_validated", "record_rule"]


def record_rule(problem: Problem, rule: WeightedRule | MixtureRule) -> dict[str, Recorded]:
    """Value a rule, in the user's labels and behind its link, and plain argmax by every recorded metric.

    Parameters
    ----------
    problem : Problem
        With the metrics to record.
    rule : WeightedRule or MixtureRule

    Returns
    -------
    dict of str to Recorded
    """
    if not problem.record:
        return {}
    rules = (rule,) if isinstance(rule, WeightedRule) else rule.rules
    decided = [one.decide(problem.proba) for one in rules]
    shares = np.ones((1, 1)) if isinstance(rule, WeightedRule) else np.atleast_2d(rule.weights)
    plain = argmax(problem)
    drawn = decided[0] if len(decided) == 1 else rule.decide(problem.proba)
    # Without labels the recalibrated probabilities are what is believed, of argmax's decisions too.
    believed = problem if problem.codes is not None else problem.linked(rules[0].link)
    out = {}
    for name, one in problem.record.items():
        own = _of(believed, one)
        if own.average == "instance" and own.codes is not None:  # row by row, which is of decisions as they are drawn
            out[name] = Recorded(own.value_of(drawn), own.value_of(plain))
        else:
            out[name] = Recorded(_value(own, decided, shares), _value(own, [plain], np.ones((1, 1))))
    return out


def cross_validated(problem: Problem, trials: Sequence[Sequence[NDArray[Any]]]) -> dict[str, tuple[float, ...]]:
    """Value the decisions of candidates by every recorded metric, mean over trials.

    Parameters
    ----------
    problem : Problem
        With labels.
    trials : sequence of sequences of integer ndarray of shape (N, M)
        Decisions of each candidate, in each trial.

    Returns
    -------
    dict of str to tuple of float, one per candidate
    """
    found: Mapping[str, Resolved] = problem.record
    out = {}
    for name, one in found.items():
        own = _of(problem, one)
        values = np.mean([[own.value_of(codes) for codes in decisions] for decisions in trials], axis=0)
        out[name] = tuple(values.tolist())
    return out


def _of(problem: Problem, one: Resolved) -> Problem:
    """The problem with a recorded metric in the place of the one that is maximised."""
    return replace(problem, metric=one.metric, average=one.average, support_weighted=one.support_weighted, record={})


def _value(problem: Problem, decided: Sequence[NDArray[Any]], shares: NDArray[np.float64]) -> float:
    """The metric of decisions that are each taken with a share, (M, R) or (1, R)."""
    oracle = problem.oracle("expected" if problem.codes is None else "labels")
    tensors = np.stack([oracle.confusion_of(codes) for codes in decided])
    shares = np.broadcast_to(shares, (problem.proba.n_outputs, len(decided)))
    return problem.objective(oracle).value(np.einsum("mr,rmij->mij", shares, tensors))
