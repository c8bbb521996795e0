"""Values of the metrics that are recorded beside the one that is maximised.

Counted with labels, in expectation without. Must not know solvers or user input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from ..core.losses import Loss
from ..inference.results import Recorded
from ..oracles.problem import InMemory, Problem, argmax_rule
from ..rules.base import Rule

__all__ = ["held_out", "record_rule"]


def record_rule(problem: Problem, rule: Rule) -> dict[str, Recorded]:
    """Return the recorded metrics of a rule, in the user's labels and behind its link, and of argmax."""
    if not problem.record:
        return {}
    # Without labels the recalibrated probabilities are what is believed, of argmax's decisions too.
    oracle = problem.oracle("labels" if problem.labelled else "expected", rule.shared_link)
    confusion = problem.confusion_of_rule(rule, oracle)
    argmax = oracle.confusions([Loss.argmax(problem.schema.decision_width)], linked=False)[0]
    out = {}
    for name, aim in problem.record.items():
        secondary = replace(problem, aim=aim, record={})
        if aim.average == "instance" and problem.labelled:  # row by row, which is of decisions as they are drawn
            out[name] = Recorded(secondary.value_of_rule(rule), secondary.value_of_rule(argmax_rule(problem)))
        else:
            objective = secondary.objective(oracle)
            out[name] = Recorded(objective.value(confusion), objective.value(argmax))
    return out


def held_out(problem: InMemory, decisions: Sequence[NDArray[Any]]) -> dict[str, tuple[float, ...]]:
    """Return the recorded metrics of decisions (N, M) of each candidate about labelled rows."""
    out = {}
    for name, aim in problem.record.items():
        secondary = replace(problem, aim=aim, record={})
        out[name] = tuple([secondary.value_of(codes) for codes in decisions])
    return out
