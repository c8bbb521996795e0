"""Rules by sensitive group as rules whose outputs are the groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...core.losses import Loss
from ...core.schema import Schema
from ...data.sources.base import SourceBase
from ...goals.worst import opened
from ...oracles.problem import Problem
from ...rules.calibration import TemperatureScaling
from ...rules.grouped import GroupedRule
from ...rules.mixture import MixtureRule
from ...rules.weighted import WeightedRule, rule_of_schema

__all__ = ["by_group", "pool_groups"]

FloatArray = NDArray[np.float64]


def by_group(rule: GroupedRule, problem: Problem) -> tuple[WeightedRule | MixtureRule, Problem]:
    """Return a rule by group and its problem as those of G * M outputs, named by group."""
    grouped = problem.by_group(len(rule.groups), aware=True, worst=opened(problem.aim.name)[1])
    schema = replace(grouped.schema, output_names=_names(rule, problem.schema))
    assert isinstance(grouped.source, SourceBase)
    grouped = replace(grouped, source=grouped.source.described(schema))
    mixtures = [part.flatten() for part in rule.rules]
    size, n_outputs = max(len(mixture.rules) for mixture in mixtures), rule.n_outputs
    shares = np.zeros((len(mixtures) * n_outputs, size))
    for g, (rules, weights) in enumerate(mixtures):
        shares[g * n_outputs : (g + 1) * n_outputs, : len(rules)] = weights
    parts = [_joined([rules[min(r, len(rules) - 1)] for rules, _ in mixtures], schema) for r in range(size)]
    return (parts[0] if size == 1 else MixtureRule(tuple(parts), shares, 0)), grouped


def pool_groups(C: FloatArray, weight: FloatArray, n_groups: int) -> FloatArray:
    """Return confusions (M, ...) of all groups together from those of each group (G * M, ...)."""
    total = weight.reshape(n_groups, -1).sum(axis=0)
    summed = (weight[:, None, None] * C).reshape(n_groups, -1, *C.shape[1:]).sum(axis=0)
    return np.asarray(summed / np.where(total > 0, total, 1.0)[:, None, None])


def _names(rule: GroupedRule, schema: Schema) -> tuple[str, ...]:
    groups = [", ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in rule.groups]
    if not schema.multioutput:
        return tuple(groups)
    outputs = schema.output_names or tuple(f"output {m}" for m in range(schema.n_outputs))
    return tuple(f"{group}: {output}" for group in groups for output in outputs)


def _joined(rules: list[WeightedRule], schema: Schema) -> WeightedRule:
    """Return the rules of all groups, each of M outputs, as one of G * M outputs."""
    n_outputs, width = rules[0].n_outputs, rules[0].width

    def joined(arrays: list[FloatArray]) -> FloatArray:
        return np.concatenate([np.broadcast_to(array, (n_outputs, *array.shape[1:])) for array in arrays])

    if all(rule.loss.is_diagonal for rule in rules):
        diagonal, offset = (joined([rule.loss.arrays[part] for rule in rules]) for part in (0, 1))
        loss = Loss(diagonal=diagonal, offset=offset)
    else:
        loss = Loss(full=joined([rule.loss.tensor() for rule in rules]))
    link = None
    if any(rule.link is not None for rule in rules):
        links = [rule.link or TemperatureScaling.identity(n_outputs, width) for rule in rules]
        temperature = np.concatenate([part.temperature for part in links])
        bias = np.concatenate([part.bias for part in links])
        link = TemperatureScaling(temperature, bias, min(part.floor for part in links))
    return rule_of_schema(loss, replace(schema, multioutput=True), link)
