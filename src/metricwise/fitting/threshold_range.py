"""The range of thresholds that are as good as those of a rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..inference.judge import Judge
from ..oracles.problem import InMemory
from ..rules.base import RuleRows
from ..rules.mixture import MixtureRule
from ..rules.weighted import WeightedRule

__all__ = ["has_threshold_range", "threshold_range"]

FloatArray = NDArray[np.float64]

_MAX_SLOW_VALUES = 33  # thresholds at which a metric whose values are calls of a function is valued
_MAX_OUTPUTS = 64


def has_threshold_range(problem: InMemory, n_outputs: int) -> bool:
    """Return whether the rows of a problem may tell ranges of the thresholds of so many outputs."""
    schema, aim = problem.schema, problem.aim
    apart = schema.n_outputs == 1 or aim.average == "macro"
    binary = bool((schema.n_decisions == 2).all()) and schema.n_outputs <= _MAX_OUTPUTS
    return apart and binary and aim.average != "instance" and schema.n_outputs == n_outputs


def threshold_range(problem: InMemory, rule: WeightedRule | MixtureRule) -> FloatArray | None:
    """Return the smallest and the largest threshold (M, 2) of each binary output that are as good as that of a rule.

    As good: not worse on labelled rows by more than 1.96 standard errors of the difference, which comes from the rows
    between the two thresholds. NaN where the rule has no threshold; None if outputs are not binary, share a threshold,
    or are too many.
    """
    schema, rows = problem.schema, problem.source.rows
    if not has_threshold_range(problem, schema.n_outputs) or rule.is_randomized:
        return None
    assert rows.codes is not None
    judge = Judge(problem)
    table = judge.influence_table(judge.oracle.confusion_of(rule.decide(RuleRows(rows.proba))))
    oracle, objective = judge.oracle, judge.objective
    group = objective.grouping.group
    counts = problem.source.class_weights
    factor = np.divide(oracle.priors, counts, out=np.zeros_like(counts), where=counts > 0)
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    out = np.full((schema.n_outputs, 2), np.nan)
    thresholds, spread = rule.flatten().rules[0].thresholds, judge.spread
    for m in np.flatnonzero((group >= 0) & ~np.isnan(thresholds)).tolist():
        p = rows.proba.positive_column(m)
        order = np.argsort(p, kind="stable")
        order = order[rows.codes[order, m] >= 0]
        true, p, mass = rows.codes[order, m].astype(np.intp), p[order], weight[order]
        # Rows before a place are decided as 0, the others as 1.
        below = np.stack([np.append(0.0, np.cumsum(mass * (true == i) * factor[m, i])) for i in (0, 1)], axis=1)
        C = np.stack([below, below[-1] - below], axis=2)  # by true class, then decision
        values = _along(partial(objective.values_of, int(group[m])), C, objective.slow)
        step = (table[m, true, 1] - table[m, true, 0]) * mass / objective.grouping.weight[group[m]]
        noise = np.append(0.0, np.cumsum(spread.variances(order, step)))
        here = int(np.searchsorted(p, thresholds[m], side="right"))
        error = np.sqrt(np.abs(noise - noise[here]))
        good = values >= values[here] - 1.96 * error - 1e-12
        good[1:-1] &= p[1:] > p[:-1]  # equal probabilities are decided alike
        good[here] = True
        places = np.flatnonzero(good)
        low, high = rows.proba.number_range
        edges = np.concatenate([[low], p, [high]])
        out[m] = edges[places[0]], edges[places[-1] + 1]
    return out


def _along(value: Callable[[FloatArray], FloatArray], C: FloatArray, slow: bool) -> FloatArray:
    """Return the values (T,) of confusions (T, K, K) in a row; those of a slow metric are interpolated."""
    if not slow or len(C) <= _MAX_SLOW_VALUES:
        return value(C)
    places = np.unique(np.linspace(0, len(C) - 1, _MAX_SLOW_VALUES).astype(np.intp))
    return np.interp(np.arange(len(C)), places, value(C[places]))
